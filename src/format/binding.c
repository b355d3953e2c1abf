/* SPDX-License-Identifier: Apache-2.0 */
/* The format `delimited`, any text of fields between delimiters; and binding, for all formats of
 * such text: compiles a schema and a source's header (or number of fields) into a dialect, a flat
 * list of converters in the source's column order.
 *
 * Columns and types come from a schema; without one, the columns come from the table itself
 * (table.h), and their types may be inferred (typing.h). */
#include "bson/bson_writer.h"
#include "column_types.h"
#include "convert.h"
#include "declared.h"
#include "delimited.h"
#include "fields.h"
#include "key_fields.h"
#include "nesting.h"
#include "table.h"
#include "typing.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- binding ---- */

bool sl_delimited_plan_create(const sl_format_options *options, size_t schema_count, sl_plan **out,
                              sl_error *error) {
    const sl_simd *simd;
    if (!sl_simd_choose(&simd, error))
        return false;
    sl_encoding *encoding;
    if (!sl_encoding_create(options->encoding, &encoding, error))
        return false;
    sl_plan *plan = calloc(1, sizeof *plan);
    sl_schema **schemas = calloc(schema_count + 1, sizeof(sl_schema *));
    if (!plan || !schemas) {
        free(plan);
        free(schemas);
        free(encoding);
        return sl_error_memory(error, "reading schemas");
    }
    plan->options = *options;
    plan->encoding = encoding;
    plan->simd = simd;
    plan->schemas = schemas;
    plan->schema_count = schema_count;
    *out = plan;
    return true;
}

void sl_delimited_dialect_destroy(sl_dialect *dialect) {
    if (!dialect)
        return;
    free(dialect->header);
    free(dialect->preamble);
    free(dialect->converters);
    free(dialect->columns);
    free(dialect->names);
    free(dialect->repaired);
    sl_nesting_destroy(dialect->nesting);
    sl_key_fields_destroy(dialect->keys);
    free(dialect);
}

static bool check_name(sl_text name, size_t index, sl_error *error) {
    if (name.length == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "column %zu of the header has no name; a schema can name it",
                            index + 1);
    if (sl_utf8_valid(name.bytes, name.length, NULL) && !memchr(name.bytes, '\0', name.length))
        return true;
    char readings[SL_READINGS_ROOM];
    sl_encoding_readings_write(name, readings, sizeof readings);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "the name of column %zu of the header is not UTF-8; give --encoding: %s; "
                        "`iconv --list` shows all names",
                        index + 1, readings);
}

/* Finds the schema column of each named column. A name that the schema lacks becomes a text
 * column. */
static bool bind_names(sl_dialect *d, const sl_schema *schema, const sl_text *names,
                       sl_error *error) {
    char *memory = d->names;
    for (size_t i = 0; i < d->column_count; i++) {
        sl_text name = names[i];
        size_t undefined;
        bool converted =
            d->encoding && (!d->encoding->mixed || !sl_utf8_valid(name.bytes, name.length, NULL));
        uint8_t *end =
            converted ? sl_encoding_put(d->encoding, (uint8_t *)memory, name, &undefined) : NULL;
        if (end)
            name = (sl_text){memory, (size_t)((char *)end - memory)};
        else
            memcpy(memory, name.bytes, name.length);
        if (!check_name(name, i, error))
            return false;
        sl_bound_column *column = &d->columns[i];
        column->published = memory;
        memory += name.length;
        *memory++ = '\0';
        const size_t k = schema ? sl_schema_find(schema, name, NULL) : 0;
        if (schema && k < schema->column_count) {
            column->schema = schema->columns[k];
        } else {
            column->schema =
                (sl_schema_column){.name = column->published, .short_name = column->published};
            d->extra_columns += schema != NULL;
        }
    }
    return true;
}

/* Checks that the header has all required columns of the schema. */
static bool check_required(const sl_dialect *d, const sl_schema *schema, sl_error *error) {
    char lacking[400] = "";
    for (size_t k = 0; k < schema->column_count; k++) {
        const sl_schema_column *column = &schema->columns[k];
        bool found = !column->required;
        for (size_t i = 0; i < d->column_count && !found; i++)
            found = d->columns[i].schema.name == column->name;
        size_t used = strlen(lacking);
        if (!found)
            snprintf(lacking + used, sizeof lacking - used, "%s%s", used ? ", " : "", column->name);
    }
    if (lacking[0] == '\0')
        return true;
    return sl_error_set(error, SL_EXIT_SOURCE, "the header lacks columns that %s must have: %s",
                        schema->kind, lacking);
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *key_of(const sl_bound_column *column, bool long_names) {
    if (column->repaired)
        return column->repaired;
    return long_names && !column->schema.point ? column->schema.name : column->schema.short_name;
}

/* A server reads a dot in the name of a field as the path of an embedded document, and a $ at its
 * beginning as an operator: queries and indexes reach no field whose name has them. */
static bool is_reachable(const sl_dialect *d, const char *key) {
    return *key != '$' && (!strchr(key, '.') || (!d->contradict && sl_nesting_is_nested(key)));
}

static bool is_control(char byte) {
    return ((unsigned char)byte < ' ' && byte) || byte == '\x7F';
}

char *sl_name_put(char *to, const char *name) {
    const char *begin = to;
    for (const char *at = name; *at; at++) {
        if (!is_control(*at)) {
            *to++ = *at;
            continue;
        }
        while (is_control(at[1]) || at[1] == ' ')
            at++;
        if (at[1] && to > begin && to[-1] != ' ')
            *to++ = ' ';
    }
    *to++ = '\0';
    return to;
}

/* Writes the key without $ at its beginning, without dots at its end and before blanks, and with _
 * instead of other dots. Returns the end. */
static char *put_repaired(char *to, const char *key, size_t column) {
    char *begin = to;
    for (const char *at = key + strspn(key, "$"); *at; at++) {
        bool last = at[strspn(at, ".")] == '\0' || at[strspn(at, ".")] == ' ';
        if (*at != '.' || !last)
            *to++ = *at == '.' ? '_' : *at;
    }
    if (to == begin)
        to += snprintf(to, 24, "column%zu", column + 1);
    *to++ = '\0';
    return to;
}

/* The number of digits of an index, as in tags.0, that begins there; 0 if there is none. */
static size_t index_digits(const char *at) {
    size_t digits = strspn(at, "0123456789");
    bool ends = at[digits] == '\0' || at[digits] == '.';
    return ends && digits <= 4 && (digits == 1 || *at != '0') ? digits : 0;
}

/* Has a column the key that begins with these bytes, and goes on with the index 0? */
static bool has_first(const sl_dialect *d, bool long_names, const char *begin, size_t length) {
    for (size_t i = 0; i < d->column_count; i++) {
        const char *key = key_of(&d->columns[i], long_names);
        if (strncmp(key, begin, length) == 0 && key[length] == '0' && index_digits(key + length))
            return true;
    }
    return false;
}

/* Writes the key with tags[0] for tags.0, as mongoimport writes arrays, if there is a first
 * element. Returns the end; `to` if nothing changes. */
static char *put_indices(char *to, const sl_dialect *d, bool long_names, const char *key) {
    char *out = to;
    bool changed = false;
    for (const char *at = key; *at; at++) {
        size_t digits = *at == '.' ? index_digits(at + 1) : 0;
        if (digits > 0 && at > key && has_first(d, long_names, key, (size_t)(at + 1 - key))) {
            out += snprintf(out, 8, "[%.*s]", (int)digits, at + 1);
            at += digits;
            changed = true;
        } else {
            *out++ = *at;
        }
    }
    *out++ = '\0';
    return changed ? out : to;
}

/* Makes elements of arrays of the columns that mongoimport would load as such. The end of the texts
 * is returned. */
static char *name_elements(sl_dialect *d, bool long_names, char *at) {
    char **made = calloc(d->column_count, sizeof *made);
    for (size_t i = 0; made && i < d->column_count; i++) {
        const char *key = key_of(&d->columns[i], long_names);
        char *end = is_reachable(d, key) ? at : put_indices(at, d, long_names, key);
        made[i] = end > at ? at : NULL;
        at = end;
    }
    for (size_t i = 0; made && i < d->column_count; i++) {
        if (made[i])
            d->columns[i].schema.name = d->columns[i].schema.short_name = made[i];
    }
    free(made);
    return at;
}

/* Repairs the keys that no query could reach, and those with line breaks. Returns the end of their
 * texts. */
static char *repair_keys(sl_dialect *d, bool long_names, char *at) {
    for (size_t i = 0; i < d->column_count; i++) {
        const char *key = key_of(&d->columns[i], long_names);
        char *end = sl_name_put(at, key);
        const bool reachable = is_reachable(d, at) && (*at || !*key);
        if (reachable && strcmp(at, key) == 0)
            continue;
        d->columns[i].repaired = at;
        at = reachable ? end : put_repaired(at, at, i);
    }
    return at;
}

/* Refuses names with types, as mongoimport --columnsHaveTypes reads them: zip.string(). */
static bool check_no_types(const sl_dialect *d, sl_error *error) {
    static const char *const types[] = {"auto",    "binary",  "boolean",     "date",
                                        "date_go", "date_ms", "date_oracle", "decimal",
                                        "double",  "int32",   "int64",       "string"};
    for (size_t i = 0; i < d->column_count; i++) {
        const char *name = d->columns[i].published;
        const char *open = strchr(name, '('), *dot = open;
        while (dot && dot > name && *dot != '.')
            dot--;
        for (size_t k = 0; dot && *dot == '.' && k < sizeof types / sizeof types[0]; k++) {
            size_t length = (size_t)(open - dot - 1);
            if (strlen(types[k]) == length && strncmp(types[k], dot + 1, length) == 0 &&
                name[strlen(name) - 1] == ')')
                return sl_error_set(
                    error, SL_EXIT_SOURCE,
                    "the column %.200s has a type in its name, as for mongoimport "
                    "--columnsHaveTypes: remove the types from the header, and declare them with "
                    "--schema (`shardload inspect --write-schema` writes one)",
                    name);
        }
    }
    return true;
}

/* Checks that keys are unique and that none is `_id`, unless --id-field names it. */
static bool check_keys(const sl_dialect *d, const sl_format_options *options, sl_error *error) {
    const char **keys = malloc((d->column_count + 1) * sizeof *keys);
    if (!keys)
        return sl_error_memory(error, "reading a header");
    for (size_t i = 0; i < d->column_count; i++)
        keys[i] = key_of(&d->columns[i], options->long_names);
    keys[d->column_count] =
        options->id_fields && strcmp(options->id_fields, "_id") == 0 ? "" : "_id";
    qsort(keys, d->column_count + 1, sizeof *keys, compare_keys);
    const char *duplicate = NULL;
    for (size_t i = 0; i < d->column_count && !duplicate; i++)
        duplicate = strcmp(keys[i], keys[i + 1]) == 0 ? keys[i] : NULL;
    free(keys);
    if (!duplicate)
        return check_no_types(d, error);
    char shown[80];
    sl_text_printable(sl_text_of(duplicate), shown, sizeof shown);
    if (strcmp(duplicate, "_id") == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "a column is called _id: --id-field _id makes it the _id of the "
                            "documents; or give it another name, in the header, or as `short` in "
                            "a schema");
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "two columns of the header would have the key %s: give one of them another "
                        "name in a schema",
                        shown);
}

/* Would the fast conversion accept this word? */
static bool accepts(sl_field_step step, const char *word, size_t length) {
    uint64_t number;
    int64_t milliseconds;
    double value;
    switch (step) {
    case SL_STEP_INT:
    case SL_STEP_WHOLE:
        return sl_convert_digits(word, length, &number);
    case SL_STEP_DOUBLE:
        return sl_convert_double(word, length, &value);
    default:
        return sl_convert_datetime(word, length, &milliseconds);
    }
}

/* The result of accepts_any for one list of words, kept because most columns have the same list. */
typedef struct tried_words {
    const char *const *words;
    size_t count;
    bool accepted;
} tried_words;

/* Would the fast conversion accept one of the words? `tried`: the last result of each step. */
static bool accepts_any(const char *const *words, size_t count, sl_field_step step,
                        tried_words *tried) {
    tried_words *last = &tried[step];
    if (last->words == words && last->count == count)
        return last->accepted;
    *last = (tried_words){words, count, false};
    for (size_t i = 0; i < count && !last->accepted; i++) {
        char word[64] = {0}; /* with the readable bytes that converters need after a field */
        size_t length = strlen(words[i]);
        if (length > 32)
            continue;
        memcpy(word, words[i], length);
        last->accepted = accepts(step, word, length);
    }
    return last->accepted;
}

/* The fast conversion of a column's fields. */
static sl_field_step step_of(const sl_dialect *d, const sl_schema_column *schema,
                             tried_words tried[2][SL_STEP_END]) {
    const sl_column_type *type = &sl_column_types[schema->type];
    bool words =
        schema->missing.count > 0 || schema->invalid == SL_INVALID_MISSING || d->null_count > 0;
    bool strict = schema->lossless || (type->has_format && schema->zone != SL_CHOICE_UNSET);
    sl_field_step step = strict ? type->strict_step : type->step;
    if (step == SL_STEP_UNUSUAL || schema->format || schema->trim)
        return SL_STEP_UNUSUAL;
    bool unusual = type->any_text ? words
                                  : accepts_any(schema->missing.words, schema->missing.count, step,
                                                tried[0]) ||
                                        accepts_any(d->nulls, d->null_count, step, tried[1]);
    return unusual ? SL_STEP_UNUSUAL : step;
}

bool sl_dialect_compile(sl_dialect *d, bool long_names, sl_error *error) {
    tried_words tried[2][SL_STEP_END] = {{{0}}};
    d->fixed_bytes = SL_BSON_HEAD_BYTES + 1;
    d->grows = false;
    for (size_t i = 0; i < d->column_count; i++) {
        sl_bound_column *column = &d->columns[i];
        const sl_schema_column *schema = &column->schema;
        const sl_column_type *type = &sl_column_types[schema->type];
        sl_converter *converter = &d->converters[i];
        column->key = key_of(column, long_names);
        column->type = type->bson;
        size_t length = strlen(column->key) + 2;
        converter->prefix_length = (uint32_t)length;
        converter->step = SL_STEP_UNUSUAL;
        if (length <= SL_SHORT_PREFIX) {
            sl_bson_put_key(converter->prefix, column->type, column->key);
            converter->step = (uint8_t)step_of(d, schema, tried);
        }
        converter->skips_null = !schema->required && !d->stores_null;
        converter->skips_empty = converter->skips_null && !sl_field_may_be_empty(d, schema);
        converter->skips_dash = false;
        converter->refuses[0] = schema->zone == SL_CHOICE_YES;
        converter->refuses[1] = schema->zone == SL_CHOICE_NO;
        for (size_t k = 0; k < schema->missing.count && converter->skips_null; k++)
            converter->skips_dash =
                converter->skips_dash || strcmp(schema->missing.words[k], "-") == 0;
        converter->int64_limit = type->any_text ? UINT64_MAX : 0;
        if (!type->any_text && schema->minimum <= 0 && schema->maximum >= 0)
            converter->int64_limit = (uint64_t)schema->maximum + 1;
        converter->int32_limit =
            converter->int64_limit > INT32_MAX ? (uint64_t)INT32_MAX + 1 : converter->int64_limit;
        d->fixed_bytes += length + type->value_bytes;
        d->grows = d->grows || type->grows;
    }
    if (!d->nesting && !d->contradict && !sl_nesting_create(d, &d->nesting, &d->contradict, error))
        return false;
    d->fixed_bytes += d->nesting ? d->nesting->bytes : 0;
    d->converters[d->column_count].step = SL_STEP_END;
    if (d->fixed_bytes > 65536)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the columns' names are too long: %zu bytes a "
                            "document, and 65536 are allowed",
                            d->fixed_bytes);
    /* A repeated header of numbers only cannot be told from a record. */
    double number;
    bool only_numbers = true;
    for (size_t i = 0; i < d->column_count; i++)
        only_numbers = only_numbers && sl_convert_double(d->columns[i].published,
                                                         strlen(d->columns[i].published), &number);
    d->watched_length = only_numbers ? 0 : d->header_length;
    while (d->watched_length > 0 && strchr("\r\n", d->header[d->watched_length - 1]))
        d->watched_length--;
    d->requoted_length = sl_header_unquoted_length(d);
    if (d->requoted_length == d->watched_length)
        d->requoted_length += 2 * d->column_count;
    return true;
}

/* Has the column this name: in the header, or as its key? `loose`: or in the schema, in which
 * capital and small letters are equal? */
static bool is_named(const sl_bound_column *column, const char *name, bool loose) {
    return strcmp(column->published, name) == 0 || strcmp(column->key, name) == 0 ||
           (loose && sl_schema_column_is_named(&column->schema, sl_text_of(name)));
}

size_t sl_delimited_column_named(const sl_dialect *d, const char *name, const char *option,
                                 sl_error *error) {
    size_t found = SIZE_MAX;
    for (int loose = 0; loose < 2 && found == SIZE_MAX; loose++) {
        for (size_t i = 0; i < d->column_count; i++) {
            char shown[80];
            if (!is_named(&d->columns[i], name, loose))
                continue;
            if (found != SIZE_MAX) {
                sl_text_printable(sl_text_of(name), shown, sizeof shown);
                sl_error_set(error, SL_EXIT_USAGE,
                             "--%s: columns %zu and %zu are both called %s, in the header or as "
                             "fields; give one of them another name in the header or in a schema",
                             option, found + 1, i + 1, shown);
                return SIZE_MAX;
            }
            found = i;
        }
    }
    return found;
}

const char *sl_delimited_key_of(const sl_dialect *dialect, const char *column) {
    sl_error ignored = {0};
    const size_t found = sl_delimited_column_named(dialect, column, "on", &ignored);
    return found == SIZE_MAX ? NULL : dialect->columns[found].key;
}

static bool array_error(const sl_bound_column *column, const char *option, sl_error *error) {
    char name[64], key[64];
    sl_text_printable(sl_text_of(column->published), name, sizeof name);
    sl_text_printable(sl_text_of(column->key), key, sizeof key);
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--%s: the column %s is stored in an array, as %s (a coordinate, for "
                        "example), and a value in an array cannot identify a document: name "
                        "another column",
                        option, name, key);
}

/* Compiles the fields that identify a document, under their keys. */
static bool bind_key_fields(sl_dialect *d, const sl_format_options *options, sl_error *error) {
    if (!sl_key_fields_create(options, &d->keys, error))
        return false;
    if (d->keys)
        d->keys->table = true;
    sl_key_names *const lists[] = {d->keys ? &d->keys->id : NULL, d->keys ? &d->keys->match : NULL};
    for (size_t k = 0; d->keys && k < 2; k++) {
        for (size_t i = 0; i < lists[k]->count; i++) {
            const char *option = k == 0 ? "id-field" : "match-fields";
            const size_t at = sl_delimited_column_named(d, lists[k]->names[i], option, error);
            const sl_bound_column *column = at == SIZE_MAX ? NULL : &d->columns[at];
            if (!column && error->code)
                return false;
            if (column && d->nesting && strchr(column->key, '[') &&
                sl_nesting_is_nested(column->key))
                return array_error(column, option, error);
            if (column && column->schema.point)
                return sl_error_set(error, SL_EXIT_USAGE,
                                    "%s is a coordinate of the point %s and cannot identify a "
                                    "document: name another column",
                                    column->schema.name, column->schema.point);
            if (column && !sl_key_names_rename(lists[k], i, column->key))
                return sl_error_memory(error, "binding columns");
        }
    }
    if (d->keys && d->nesting && sl_modes[options->mode].sets_fields) {
        if (!sl_nesting_set_paths(d))
            return sl_error_memory(error, "binding columns");
        d->keys->paths = true;
        if (!sl_dialect_compile(d, options->long_names, error))
            return false;
    }
    return !d->keys || sl_key_fields_check(d->keys, error);
}

/* The column that takes extra delimiters. SIZE_MAX: none, or the columns are not in schema
 * order. */
static size_t find_spill(const sl_dialect *d, const sl_schema *schema) {
    size_t spill = SIZE_MAX;
    for (size_t i = 0; schema && i < d->column_count; i++) {
        if (i >= schema->column_count || d->columns[i].schema.name != schema->columns[i].name)
            return SIZE_MAX;
        if (schema->columns[i].spill)
            spill = i;
    }
    return spill;
}

/* Gives the columns their keys. If these contradict each other, none is nested: then dots are
 * repaired too. */
static bool bind_keys(sl_dialect *d, const sl_format_options *options, sl_error *error) {
    const bool long_names = options->long_names;
    size_t bytes = 1;
    for (size_t i = 0; i < d->column_count; i++)
        bytes += 6 * strlen(key_of(&d->columns[i], long_names)) + 96; /* for three texts */
    char *at = d->repaired = malloc(bytes);
    if (!at)
        return sl_error_memory(error, "reading a header");
    at = repair_keys(d, long_names, name_elements(d, long_names, at));
    if (!check_keys(d, options, error) || !sl_dialect_compile(d, long_names, error))
        return false;
    if (!d->contradict)
        return true;
    repair_keys(d, long_names, at);
    return check_keys(d, options, error) && sl_dialect_compile(d, long_names, error);
}

bool sl_dialect_bind(const sl_plan *plan, const sl_schema *schema, const sl_first_line *first,
                     const sl_text *names, size_t count, sl_dialect **out, sl_error *error) {
    if (count > SL_COLUMNS_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the header has %zu columns; at most %d are allowed", count,
                            SL_COLUMNS_MAX);
    assert(names || schema);
    sl_dialect *d = calloc(1, sizeof *d);
    if (!d)
        return sl_error_memory(error, "binding columns");
    d->delimiter = first->delimiter;
    d->quote = sl_quote_of(schema ? schema->quote : plan->options.quote, first->delimiter);
    if (plan->options.trim || (schema && schema->trim))
        d->trim = SL_TRIM_BOTH;
    d->encoding = first->marked ? NULL : plan->encoding;
    d->escape = plan->options.escape;
    d->nulls = plan->options.nulls;
    d->null_count = plan->options.null_count;
    d->stores_null = plan->options.store_null;
    d->pad = plan->options.pad;
    d->simd = plan->simd;
    d->kind = schema ? schema->kind : "records";
    d->column_count = count;
    d->inferable = !schema;
    d->header_length = names ? first->header_bytes : 0;
    d->body_offset = names ? first->end : first->text_start;
    d->converters = calloc(count + 1, sizeof *d->converters);
    d->columns = calloc(count, sizeof *d->columns);
    size_t name_bytes = count + 1;
    for (size_t i = 0; names && i < count; i++)
        name_bytes += (d->encoding ? 3 : 1) * names[i].length;
    d->names = malloc(name_bytes);
    d->header = malloc(d->header_length + 1);
    if (!d->converters || !d->columns || !d->names || !d->header) {
        sl_error_memory(error, "binding columns");
        goto fail;
    }
    memcpy(d->header, first->line.bytes, d->header_length);
    d->header[d->header_length] = '\0';
    if (names) {
        if (!bind_names(d, schema, names, error) || (schema && !check_required(d, schema, error)))
            goto fail;
    } else {
        for (size_t i = 0; i < count; i++)
            d->columns[i] = (sl_bound_column){.published = schema->columns[i].name,
                                              .schema = schema->columns[i]};
    }
    if (!bind_keys(d, &plan->options, error) || !bind_key_fields(d, &plan->options, error))
        goto fail;
    d->spill = d->quote ? SIZE_MAX : find_spill(d, schema);
    *out = d;
    return true;
fail:
    sl_delimited_dialect_destroy(d);
    return false;
}

static void set_given(sl_dialect *d, bool given) {
    d->notation_given = given;
    d->strict = given ? '\0' : d->delimiter ? d->delimiter : '\t';
    sl_notation_letters(d->notation, d->strict, d->letters);
}

/* Sets how values are written. `null`: what stands for NULL although the notation does not know it;
 * or NULL. */
static bool set_notation(sl_dialect *d, const sl_notation *notation, const char *null, bool given,
                         bool cr_lines, const sl_format_options *options, sl_error *error) {
    d->notation = notation;
    set_given(d, given);
    d->null = null ? null : notation->null;
    d->null_length = d->null ? strlen(d->null) : 0;
    d->bare_escape = notation->escape;
    d->keeps_cr = notation->cr_is_data && !cr_lines;
    if (d->quote && !d->escape)
        d->escape = notation->quote_escape;
    if (d->bare_escape)
        d->spill = SIZE_MAX;
    return sl_dialect_compile(d, options->long_names, error);
}

/* Binds the columns of a table: as sl_dialect_bind, with the table's names. */
static bool dialect_bind_table(const sl_plan *plan, const sl_table *table, sl_dialect **out,
                               sl_error *error) {
    if (!sl_dialect_bind(plan, NULL, &table->first, table->names, table->count, out, error))
        return false;
    sl_dialect *d = *out;
    d->blanks = table->blanks;
    d->skip_lines = table->skipped;
    memcpy(d->skipped_text, table->skipped_text, sizeof d->skipped_text);
    d->quote = table->quote;
    memcpy(d->note, table->note, sizeof d->note);
    d->header_assumed = table->header_assumed;
    d->header_missed = table->header_missed;
    d->quotes_kept = table->quotes_kept;
    d->advice = table->advice;
    d->other = table->other;
    d->other_fields = table->other_fields;
    if (!table->header) {
        d->header_length = d->watched_length = d->requoted_length = 0;
        d->header[0] = '\0';
        d->body_offset = table->first.text_start;
    }
    d->notation = table->notation;
    if (!sl_declared_apply(plan->declared, d, error) ||
        !set_notation(d, table->notation, table->null, plan->options.notation != NULL,
                      table->cr_lines, &plan->options, error)) {
        sl_delimited_dialect_destroy(d);
        *out = NULL;
        return false;
    }
    memcpy(d->why, table->why, sizeof d->why);
    return true;
}

void sl_dialect_move(sl_dialect *dialect, uint64_t offset) {
    dialect->body_offset += offset;
}

const char *sl_delimited_record_kind(const sl_dialect *dialect) {
    return dialect->kind;
}

static const char *delimiter_name(char delimiter) {
    static const struct {
        char delimiter;
        const char *name;
    } names[] = {{'|', "pipes"},      {',', "commas"}, {'\t', "tabs"},
                 {';', "semicolons"}, {' ', "blanks"}, {0, "no delimiter"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].delimiter == delimiter)
            return names[i].name;
    }
    return "another delimiter";
}

char *sl_delimited_describe(const sl_dialect *dialect, char *out, size_t room) {
    const sl_dialect *d = dialect;
    const bool named = d->notation && (d->notation_given || d->why[0]);
    char why[SL_NOTATION_WHY_ROOM + 4];
    snprintf(why, sizeof why, " (%s)", d->why);
    snprintf(out, room, "%s%s%s: %s, %s, %s%s%s%s%s%s", d->kind, d->letter[0] ? ", dialect " : "",
             d->letter, delimiter_name(d->delimiter), d->header_length > 0 ? "header" : "no header",
             sl_plural(d->column_count, "column"), named ? "; dialect " : "",
             named ? d->notation->name : "", named && d->why[0] ? why : "", d->note,
             d->contradict ? "; no name is nested: names such as a and a.b contradict each other, "
                             "or are parts of _id"
                           : "");
    const char *separator = "; not in the schema, loaded as text: ";
    for (size_t i = 0; i < d->column_count && d->extra_columns > 0; i++) {
        if (d->columns[i].schema.name != d->columns[i].published)
            continue;
        char name[64];
        sl_text_printable(sl_text_of(d->columns[i].published), name, sizeof name);
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s%s", separator, name);
        separator = ", ";
    }
    return out;
}

bool sl_delimited_check_head(const sl_dialect *d, sl_text head, bool whole, sl_error *error) {
    if (d->bare_escape) /* no line end is in quotes only, and CRs are data */
        return true;
    sl_lines lines = {.delimiter = d->delimiter,
                      .quote = d->quote,
                      .continues = d->quote && !d->stray_quotes,
                      .columns = d->column_count,
                      .advice = sl_delimited_quotes_advice,
                      .body = (size_t)d->body_offset};
    return sl_lines_check(head, whole, &lines, error);
}

sl_text sl_delimited_header(const sl_dialect *dialect) {
    return dialect->preamble ? sl_text_of(dialect->preamble)
                             : (sl_text){dialect->header, dialect->header_length};
}

/* ---- the format `delimited` ---- */

static bool plan_create(const sl_format_options *options, sl_plan **out, sl_error *error) {
    sl_plan *plan;
    *out = NULL;
    if (!sl_delimited_plan_create(options, options->schema_text ? 1 : 0, &plan, error))
        return false;
    const char *source = options->schema_name ? options->schema_name : "schema";
    bool ok =
        options->schema_text
            ? sl_schema_read(sl_text_of(options->schema_text), source, &plan->schemas[0], error)
            : (!options->infer_types || sl_typing_create(&plan->typing, error)) &&
                  sl_declared_create(options->declared, &plan->declared, error);
    if (ok)
        *out = plan;
    else
        sl_delimited_plan_destroy(plan);
    return ok;
}

/* How many columns of the schema does the first line name? `*required`: all that it requires? */
static size_t names_columns(const sl_schema *schema, const sl_text *names, size_t count,
                            bool *required) {
    bool found[SL_COLUMNS_MAX] = {false};
    size_t named = 0;
    *required = true;
    for (size_t i = 0; i < count; i++)
        sl_schema_find(schema, names[i], found);
    for (size_t k = 0; k < schema->column_count; k++) {
        *required = *required && (found[k] || !schema->columns[k].required);
        named += found[k];
    }
    return named;
}

/* Is the first line, with these fields, a header? A line that names no column of the schema is a
 * record; if the schema declares a header, that is an error. A line whose fields are columns by
 * half is a header, too, if required columns are missing, which sl_dialect_bind reports. */
static bool find_header(const sl_schema *schema, const sl_first_line *first, const sl_text *names,
                        bool *header, sl_error *error) {
    bool required;
    const size_t named = names_columns(schema, names, first->fields, &required);
    *header = schema->header == SL_CHOICE_YES || (schema->header == SL_CHOICE_UNSET && named > 0 &&
                                                  (required || 2 * named >= first->fields));
    if (!*header || named > 0)
        return true;
    char shown[80];
    sl_text_printable(first->line, shown, sizeof shown);
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "its first line, `%s`, names no column of the schema %s, which declares a "
        "header. If the line is a record, remove `header: true` from the schema; if "
        "the header comes later, correct `skip_lines`",
        shown, schema->name);
}

/* The number of columns of a text without header whose first line has `fields` fields: one of the
 * schema's counts, or all its columns. False with error when `fields` is another number; a line
 * that is `cut` may have more. */
static bool field_count(const sl_schema *schema, size_t fields, bool cut, size_t *count,
                        sl_error *error) {
    *count = schema->column_count;
    if (cut && fields <= *count)
        return true;
    for (size_t i = 0; schema->field_counts[i] != 0; i++) {
        if (schema->field_counts[i] == fields && fields <= schema->column_count)
            *count = fields;
    }
    if (*count == fields)
        return true;
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "the first line has %zu fields and is no header; the schema %s has %zu "
                        "columns",
                        fields, schema->name, schema->column_count);
}

static bool sniff_table(const sl_plan *plan, const char *name, sl_text head, bool whole,
                        sl_dialect **dialect, sl_error *error) {
    sl_table table;
    sl_format_options options = plan->options; /* borrows what it points to */
    bool named = name && (strcasestr(name, ".csv") || strcasestr(name, ".tsv")) &&
                 options.header == SL_HEADER_AUTO && !options.columns && !options.delimiter &&
                 options.skip_lines == 0 && sl_is_named_column(head, whole);
    if (named)
        options.header = SL_HEADER_YES;
    bool ok = sl_table_find(&options, plan->encoding, head, whole, &table, error);
    if (ok && named)
        snprintf(table.note + strlen(table.note), sizeof table.note - strlen(table.note),
                 "; the first line names the column: the other lines differ from it");
    if (ok && table.first.delimiter == 0) /* one column: a delimiter is one field too many */
        table.first.delimiter = plan->options.delimiter ? plan->options.delimiter : ',';
    const bool recognised = ok;
    ok = ok && dialect_bind_table(plan, &table, dialect, error);
    error->recognised = recognised && !ok;
    sl_table_clear(&table);
    return ok;
}

/* Reads the first line of the table, after `skip` lines. Returns its fields, which the caller
 * frees; NULL with error. */
static sl_text *read_first(sl_table *table, sl_text head, uint64_t skip, const char *delimiters,
                           char quote_choice, char delimiter, sl_error *error) {
    sl_first_line *first = &table->first;
    if (!sl_first_line_read(head, sl_after_lines(head, skip), delimiters, quote_choice, first,
                            error))
        return NULL;
    const bool spans = !first->delimiter && memchr(first->line.bytes, '"', first->line.length);
    if (delimiter && (table->notation->escape || spans))
        first->delimiter = delimiter;
    table->quote = sl_quote_of(quote_choice, first->delimiter);
    table->escape = table->notation->quote_escape;
    sl_table_extend_first(table, head); /* line ends may be data */
    first->fields = sl_table_split(table, first->line, NULL, 0);
    return sl_table_fields(table, error);
}

/* Is each name that of a column of the schema? */
static bool are_columns(const sl_schema *schema, const sl_text *names, size_t count) {
    size_t known = 0;
    while (known < count && sl_schema_find(schema, names[known], NULL) < schema->column_count)
        known++;
    return known > 0 && known == count;
}

static bool sniff_by_schema(const sl_plan *plan, sl_text head, bool whole, sl_dialect **dialect,
                            sl_error *error) {
    const sl_schema *schema = plan->schemas[0];
    char delimiters[] = "\t|,;";
    sl_table table = {.blanks = (uint8_t)schema->blanks};
    char quote_choice = schema->quote == SL_QUOTE_AUTO ? plan->options.quote : schema->quote;
    char delimiter = schema->delimiter ? schema->delimiter : plan->options.delimiter;
    sl_table_set_notation(&table, &plan->options, schema->notation, head, whole, &delimiter,
                          &quote_choice);
    if (delimiter) {
        delimiters[0] = delimiter;
        delimiters[1] = '\0';
    }
    const sl_first_line *first = &table.first;
    uint64_t skip = (uint64_t)schema->skip_lines;
    sl_text *names = read_first(&table, head, skip, delimiters, quote_choice, delimiter, error);
    bool header;
    /* If the file lacks the lines that the schema skips, its header is one of the skipped lines. */
    while (skip > 0 && schema->header == SL_CHOICE_YES &&
           !(names && are_columns(schema, names, first->fields))) {
        sl_table earlier = table;
        sl_error ignored;
        sl_text *fields =
            read_first(&earlier, head, --skip, delimiters, quote_choice, delimiter, &ignored);
        const size_t found = earlier.first.fields;
        if (!fields || !are_columns(schema, fields, found) ||
            (found < schema->column_count && (found < 2 || (names && found < first->fields)))) {
            free(fields);
            continue;
        }
        free(names);
        names = fields;
        table = earlier;
        snprintf(table.note, sizeof table.note, "; fewer lines before the table than skip_lines");
    }
    if (!names)
        return false;
    size_t count = first->fields;
    const bool cut = sl_line_is_cut(head, whole, first->line) && (first->delimiter || delimiter);
    bool fits = find_header(schema, first, names, &header, error) &&
                (header || field_count(schema, first->fields, cut, &count, error));
    if (first->delimiter == 0) /* one column: a line with a delimiter has one field too many */
        table.first.delimiter = cut ? delimiter : schema->delimiter ? schema->delimiter : ',';
    fits = fits && (!header || sl_table_set_names(&table, names, count, error)) &&
           sl_dialect_bind(plan, schema, first, header ? table.names : NULL, count, dialect, error);
    if (fits)
        memcpy((*dialect)->note, table.note, sizeof table.note);
    sl_table_clear(&table);
    if (fits) {
        (*dialect)->quote = schema->blanks ? 0 : table.quote;
        (*dialect)->blanks = (uint8_t)schema->blanks;
        fits = set_notation(*dialect, table.notation, table.null,
                            schema->notation || plan->options.notation, table.cr_lines,
                            &plan->options, error);
    }
    if (fits && schema->skip_lines > 0) { /* rejects are loaded by the same schema */
        char *preamble = malloc((size_t)schema->skip_lines + (*dialect)->header_length + 1);
        if (preamble) {
            memset(preamble, '\n', (size_t)schema->skip_lines);
            strcpy(preamble + schema->skip_lines, (*dialect)->header);
        }
        (*dialect)->preamble = preamble;
        fits = preamble || sl_error_memory(error, "reading a header");
    }
    free(names);
    return fits;
}

/* Do quotes after a delimiter and blanks, at least one, open fields that are closed? */
static bool has_blank_quotes(const sl_dialect *d, sl_text head) {
    const char pattern[3] = {d->delimiter, ' ', '\0'};
    size_t at = 0, found = 0;
    for (const char *hit; d->quote && !d->bare_escape && d->delimiter != ' ' &&
                          (hit = memmem(head.bytes + at, head.length - at, pattern, 2)) != NULL;) {
        at = (size_t)(hit - head.bytes) + 1;
        while (at < head.length && head.bytes[at] == ' ')
            at++;
        if (at >= head.length || head.bytes[at] != d->quote)
            continue;
        size_t close = sl_closing_quote(head.bytes, at + 1, head.length, d->quote, d->escape);
        for (at = close + 1; at < head.length && head.bytes[at] == ' ';)
            at++;
        if (close < head.length && at < head.length && head.bytes[at] != d->delimiter &&
            !memchr("\r\n", head.bytes[at], 2))
            return false;
        found++;
        at = at < head.length ? at : head.length;
    }
    return found > 0;
}

/* Does the line have a field of two dashes or more for each column, one of them of three? The outer
 * fields of a line of Markdown, which begins and ends with a pipe, are empty. */
static bool is_rule(const sl_dialect *d, sl_text line) {
    const char *at = line.bytes, *end = at + line.length;
    size_t fields = 0;
    bool outer = at < end && *at == '|' && d->delimiter == '|', three = false;
    if (outer)
        at++;
    while (at < end) {
        size_t dashes = 0;
        const char *from = at;
        for (; at < end && *at != d->delimiter; at++) {
            if (!strchr("-=: ", *at))
                return false;
            dashes += *at == '-' || *at == '=';
        }
        if (dashes < 2 && !(d->blanks && at == from))
            return false;
        three = three || dashes > 2;
        fields += dashes > 0;
        at += at < end;
    }
    return three && fields > 1 && (d->blanks || fields + 2 * outer == d->column_count);
}

/* Refuses a line of dashes between the names and the records, which sqlcmd, SQL*Plus and Markdown
 * write. It has as many fields as a record, and would be stored as one. */
static bool check_rule(const sl_plan *plan, const sl_dialect *d, sl_text head, bool whole,
                       sl_error *error) {
    const sl_format_options *options = &plan->options;
    char shown[80];
    size_t at = (size_t)d->body_offset;
    sl_text line;
    if (plan->schema_count > 0 || d->bare_escape || options->header == SL_HEADER_NO ||
        options->columns)
        return true;
    for (size_t i = 0; i < options->null_count; i++) {
        if (options->nulls[i][0] && options->nulls[i][strspn(options->nulls[i], "-=")] == '\0')
            return true;
    }
    for (int lines = d->header_length > 0 ? 1 : 2; lines > 0; lines--) {
        if (!sl_next_line(head, whole, &at, &line))
            return true;
        if (!is_rule(d, line))
            continue;
        const size_t number = sl_line_feeds(head.bytes, line.bytes) + 1;
        sl_text_printable(line, shown, sizeof shown);
        sl_error_set(error, SL_EXIT_SOURCE,
                     "line %zu, `%s`, is no record, but a line below the names: remove it, from a "
                     "plain file with sed %zud FILE | shardload ... -; if it is a record without "
                     "values, give --null ---",
                     number, shown, number);
        error->recognised = true;
        return false;
    }
    return true;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    if (!(plan->schema_count == 0 ? sniff_table(plan, name, head, whole, dialect, error)
                                  : sniff_by_schema(plan, head, whole, dialect, error)))
        return false;
    if (!check_rule(plan, *dialect, head, whole, error)) {
        sl_delimited_dialect_destroy(*dialect);
        *dialect = NULL;
        return false;
    }
    (*dialect)->blank_quotes = has_blank_quotes(*dialect, head);
    (*dialect)->quoted_lines = sl_quoted_divides(*dialect, head, plan->options.quoted_lines);
    return true;
}

bool sl_delimited_sniff_quoted(const sl_plan *plan, sl_text head, bool whole, char quote,
                               sl_dialect **dialect, sl_error *error) {
    sl_plan quoted = *plan; /* borrows what it points to */
    quoted.options.quote = quote ? quote : SL_QUOTE_NONE;
    return sniff(&quoted, NULL, head, whole, dialect, error);
}

bool sl_delimited_sniff_as(const sl_plan *plan, sl_text head, bool whole,
                           const sl_notation *notation, sl_dialect **dialect, sl_error *error) {
    sl_plan other = *plan; /* borrows what it points to */
    other.options.notation = notation;
    if (!sniff(&other, NULL, head, whole, dialect, error))
        return false;
    set_given(*dialect, false);
    return true;
}

static const sl_splitter *splitter(const sl_dialect *dialect, bool *lines) {
    *lines = false;
    return dialect->quoted_lines ? &sl_quoted_splitter : NULL;
}

static bool splits_alike(const sl_dialect *a, const sl_dialect *b) {
    return a->delimiter == b->delimiter && a->quote == b->quote;
}

static char line_escape(const sl_dialect *dialect) {
    return dialect->bare_escape;
}

void sl_delimited_plan_destroy(sl_plan *plan) {
    if (!plan)
        return;
    for (size_t i = 0; i < plan->schema_count; i++)
        sl_schema_destroy(plan->schemas[i]);
    free(plan->schemas);
    free(plan->encoding);
    sl_typing_destroy(plan->typing);
    sl_declared_destroy(plan->declared);
    free(plan);
}

const sl_format sl_format_delimited = {
    .name = "delimited",
    .summary = "text with a delimiter: columns as in a schema, or as found in the text",
    SL_DELIMITED_FUNCTIONS,
    .splitter = splitter,
    .splits_alike = splits_alike,
    .line_escape = line_escape,
};
