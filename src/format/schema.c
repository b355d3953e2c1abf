/* SPDX-License-Identifier: Apache-2.0 */
/* Reads schemas from YAML, by two tables of keys. The functions read_* read values into fields of
 * the type that is given at the parameter. */
#include "schema.h"
#include "column_types.h"
#include "notation.h"
#include "util/yaml_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_text(sl_yaml *r, const yaml_node_t *node, void *field /* const char ** */) {
    const char **text = field;
    *text = sl_yaml_word(node);
    return *text || sl_yaml_expected(r, node, "a word");
}

static bool read_bool(sl_yaml *r, const yaml_node_t *node, void *field /* bool * */) {
    static const char *const words[] = {"false", "no", "true", "yes"};
    size_t index;
    bool ok = sl_yaml_choice(r, node, words, 4, "true or false", &index);
    *(bool *)field = index >= 2;
    return ok;
}

static bool read_choice(sl_yaml *r, const yaml_node_t *node, void *field /* sl_choice * */) {
    bool yes;
    if (!read_bool(r, node, &yes))
        return false;
    *(sl_choice *)field = yes ? SL_CHOICE_YES : SL_CHOICE_NO;
    return true;
}

static bool read_int64(sl_yaml *r, const yaml_node_t *node, void *field /* int64_t * */) {
    const char *word = sl_yaml_word(node);
    bool negative = word && *word == '-';
    uint64_t magnitude;
    if (!word || !sl_text_to_u64(sl_text_of(word + negative), &magnitude) ||
        magnitude > (uint64_t)INT64_MAX)
        return sl_yaml_expected(r, node, "a whole number");
    *(int64_t *)field = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool read_type(sl_yaml *r, const yaml_node_t *node, void *field /* sl_type * */) {
    char words[400];
    const char *word = sl_yaml_word(node);
    return (word && !strchr(word, ':') && sl_column_type_named(word, field)) ||
           sl_yaml_expected(r, node, sl_column_type_list(words, sizeof words));
}

#define WORDS_MAX 1000u /* each value may be compared with each word of a list */

/* One format, or a list. */
static bool read_words(sl_yaml *r, const yaml_node_t *node, void *field);
static bool read_format(sl_yaml *r, const yaml_node_t *node, void *field /* &column->formats */) {
    sl_words *formats = field;
    if (node->type == YAML_SEQUENCE_NODE)
        return sl_yaml_length(node) > 0
                   ? read_words(r, node, field)
                   : sl_yaml_expected(r, node, "a format, or a list of formats");
    formats->words = calloc(1, sizeof *formats->words);
    formats->count = formats->words != NULL;
    return formats->words ? read_text(r, node, &formats->words[0])
                          : sl_error_memory(r->error, "reading a schema");
}

static bool read_invalid(sl_yaml *r, const yaml_node_t *node, void *field /* sl_invalid * */) {
    static const char *const words[] = {"reject", "text", "missing"};
    size_t index;
    bool ok = sl_yaml_choice(r, node, words, 3, "reject, text or missing", &index);
    *(sl_invalid *)field = (sl_invalid)index;
    return ok;
}

bool sl_delimiter_named(const char *word, char *delimiter) {
    static const struct {
        const char *word;
        char byte;
    } names[] = {{"comma", ','}, {"pipe", '|'},      {"tab", '\t'},
                 {"\\t", '\t'},  {"semicolon", ';'}, {"blank", ' '}};
    unsigned byte = *word && word[1] == '\0' ? (uint8_t)*word : 0;
    int end = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(word, names[i].word) == 0)
            byte = (uint8_t)names[i].byte;
    }
    if (sscanf(word, "\\x%2x%n", &byte, &end) == 1 && word[end] != '\0')
        byte = 0;
    if (byte == 0 || byte > 0x7F || strchr("\"\\\r\n", (int)byte))
        return false;
    *delimiter = (char)byte;
    return true;
}

bool sl_quote_named(const char *word, char *quote) {
    if (*word <= ' ' || *word >= 0x7F || word[1] != '\0' || *word == '\\')
        return false;
    *quote = *word;
    return true;
}

static bool read_delimiter(sl_yaml *r, const yaml_node_t *node, void *field /* char * */) {
    const char *word = sl_yaml_word(node);
    return (word && sl_delimiter_named(word, field)) ||
           sl_yaml_expected(r, node,
                            "comma, pipe, tab, semicolon, blank, or one ASCII byte (\";\", "
                            "\"\\x01\") that is not a quote, a backslash or a line end");
}

static bool read_quotes(sl_yaml *r, const yaml_node_t *node, void *field /* char * */) {
    const char *word = sl_yaml_word(node);
    bool yes;
    if (word && *word && word[1] == '\0')
        return sl_quote_named(word, field) ||
               sl_yaml_expected(r, node, "true, false, or one character that quotes fields");
    if (!read_bool(r, node, &yes))
        return false;
    *(char *)field = yes ? '"' : SL_QUOTE_NONE;
    return true;
}

static bool read_notation(sl_yaml *r, const yaml_node_t *node, void *field /* notation */) {
    const char *word = sl_yaml_word(node);
    *(const sl_notation **)field = sl_notation_named(word);
    return *(const sl_notation **)field ||
           sl_yaml_expected(r, node,
                            "a dialect: csv, sql-csv, postgres, mysql, mysql-batch or excel");
}

static bool read_words(sl_yaml *r, const yaml_node_t *node, void *field /* sl_words * */) {
    sl_words *words = field;
    const yaml_node_t *item;
    char what[60];
    snprintf(what, sizeof what, "a list of at most %u words, [one, two]", WORDS_MAX);
    if (node->type != YAML_SEQUENCE_NODE || sl_yaml_length(node) > WORDS_MAX)
        return sl_yaml_expected(r, node, what);
    words->words = calloc(sl_yaml_length(node) + 1, sizeof *words->words);
    if (!words->words)
        return sl_error_memory(r->error, "reading a schema");
    for (size_t i = 0; (item = sl_yaml_item(r, node, i)); i++) {
        if (!read_text(r, item, &words->words[i]))
            return false;
        words->count++;
    }
    return true;
}

static bool read_counts(sl_yaml *r, const yaml_node_t *node, void *field /* field_counts */) {
    const size_t most = sizeof((sl_schema *)0)->field_counts / sizeof(uint32_t) - 1;
    uint32_t *counts = field;
    const yaml_node_t *item;
    int64_t value = 0;
    if (node->type != YAML_SEQUENCE_NODE || sl_yaml_length(node) > most)
        return sl_yaml_expected(r, node, "a list of at most 7 numbers of fields, [14, 15]");
    for (size_t i = 0; (item = sl_yaml_item(r, node, i)); i++) {
        if (!read_int64(r, item, &value))
            return false;
        if (value < 1 || value > SL_COLUMNS_MAX)
            return sl_yaml_expected(r, item, "a number of fields from 1 to 1024");
        counts[i] = (uint32_t)value;
    }
    return true;
}

/* ---- columns ---- */

/* Sets the error "source:line:column: expected ...". Returns false. */
static bool refuse(sl_yaml *r, const yaml_node_t *node, const char *expected) {
    return sl_yaml_fail(r, node->start_mark, "expected %s", expected);
}

/* Gives a coordinate its key: the longitude is the first of the point's coordinates. */
static bool check_point(sl_yaml *r, const yaml_node_t *node, sl_schema_column *column) {
    const sl_column_type *type = &sl_column_types[column->type];
    if (type->axis == SL_AXIS_NONE)
        return !column->point || refuse(r, node, "a point with the type longitude or latitude");
    if (!column->point || column->short_name || column->invalid == SL_INVALID_TEXT)
        return refuse(r, node,
                      "a coordinate with the key of its point, and without short or invalid: text: "
                      "{name: lon, type: longitude, point: at}");
    if (asprintf(&column->point_key, "%s.coordinates[%d]", column->point,
                 type->axis == SL_AXIS_LATITUDE) < 0) {
        column->point_key = NULL;
        return sl_error_memory(r->error, "reading a schema");
    }
    return true;
}

static bool check_column(sl_yaml *r, const yaml_node_t *node, sl_schema_column *column) {
    if (!column->name)
        return refuse(r, node, "a column with a name: {name: ..., type: ...}");
    const sl_column_type *type = &sl_column_types[column->type];
    if (type->has_words && !column->yes)
        return refuse(r, node, "a flag with the word for true: {type: flag, yes: Y}");
    for (size_t i = column->formats.count; i-- > 0;) {
        column->format = column->formats.words[i];
        if (!sl_column_format_valid(column) || (i > 0 && type->class != SL_CLASS_DATES))
            return refuse(
                r, node,
                "a format of a date or datetime: %Y or %y, %d, and %m or %b, with %H %M %S, "
                "%I %p, %z, %a where needed; or epoch, or epoch-ms; of a number: "
                "\"1.234,5\", \"1,234.5\", \"1 234,5\", \"1234,5\"; of hex: \\x; of an array: the "
                "type of its elements");
    }
    if ((column->minimum > INT64_MIN || column->maximum < INT64_MAX) && column->type != SL_TYPE_INT)
        return refuse(r, node, "a minimum or maximum only of type: int");
    if ((column->yes || column->no) && !type->has_words)
        return refuse(r, node, "yes and no only of type: flag");
    if (column->zone != SL_CHOICE_UNSET && column->type != SL_TYPE_DATETIME)
        return refuse(r, node, "offset only of type: datetime");
    if (column->minimum > column->maximum)
        return refuse(r, node, "a minimum that is not above the maximum");
    if (column->invalid == SL_INVALID_MISSING && column->required)
        return refuse(r, node, "a required column without invalid: missing");
    if (!check_point(r, node, column))
        return false;
    if (!column->short_name)
        column->short_name = column->point_key ? column->point_key : column->name;
    return true;
}

static bool read_columns(sl_yaml *r, const yaml_node_t *node, void *into /* sl_schema * */) {
    static const sl_yaml_key keys[] = {
        {"name", read_text, offsetof(sl_schema_column, name), false},
        {"short", read_text, offsetof(sl_schema_column, short_name), false},
        {"aliases", read_words, offsetof(sl_schema_column, aliases), false},
        {"type", read_type, offsetof(sl_schema_column, type), false},
        {"required", read_bool, offsetof(sl_schema_column, required), false},
        {"missing", read_words, offsetof(sl_schema_column, missing), false},
        {"minimum", read_int64, offsetof(sl_schema_column, minimum), false},
        {"maximum", read_int64, offsetof(sl_schema_column, maximum), false},
        {"yes", read_text, offsetof(sl_schema_column, yes), false},
        {"no", read_text, offsetof(sl_schema_column, no), false},
        {"format", read_format, offsetof(sl_schema_column, formats), false},
        {"trim", read_choice, offsetof(sl_schema_column, trim_choice), false},
        {"offset", read_choice, offsetof(sl_schema_column, zone), false},
        {"lossless", read_choice, offsetof(sl_schema_column, lossless_choice), false},
        {"invalid", read_invalid, offsetof(sl_schema_column, invalid), false},
        {"point", read_text, offsetof(sl_schema_column, point), false},
        {"spill", read_bool, offsetof(sl_schema_column, spill), false},
        {0},
    };
    sl_schema *schema = into;
    size_t count = sl_yaml_length(node);
    if (node->type != YAML_SEQUENCE_NODE || count < 1 || count > SL_COLUMNS_MAX)
        return refuse(r, node, "a list of 1 to 1024 columns");
    schema->columns = calloc(count, sizeof *schema->columns);
    if (!schema->columns)
        return sl_error_memory(r->error, "reading a schema");
    schema->column_count = count;
    bool spills = false;
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = sl_yaml_item(r, node, i);
        sl_schema_column *column = &schema->columns[i];
        *column = (sl_schema_column){.minimum = INT64_MIN, .maximum = INT64_MAX};
        if (!sl_yaml_mapping(r, item, keys, column) || !check_column(r, item, column))
            return false;
        if (column->spill && (spills || column->type != SL_TYPE_TEXT))
            return refuse(r, item, "at most one column that spills, and that one a text");
        spills |= column->spill;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(column->name, schema->columns[k].name) == 0 ||
                strcmp(column->short_name, schema->columns[k].short_name) == 0)
                return refuse(r, item, "names and short names that no other column has");
        }
    }
    return true;
}

/* Names that differ only in upper and lower case have the same hash. */
static uint64_t hash_of(sl_text name) {
    uint64_t hash = sl_process_seed();
    char part[64];
    for (size_t at = 0; at < name.length; at += sizeof part) {
        const size_t left = name.length - at, length = left < sizeof part ? left : sizeof part;
        for (size_t i = 0; i < length; i++)
            part[i] = (char)tolower((unsigned char)name.bytes[at + i]);
        hash = sl_seeded_hash(part, length, hash);
    }
    return hash;
}

/* Is alias number `i` the same as the column's name or an earlier alias? */
static bool is_repeated(const sl_schema_column *column, size_t i) {
    const sl_text alias = sl_text_of(column->aliases.words[i]);
    bool found = sl_text_equal_ignoring_case(alias, sl_text_of(column->name));
    for (size_t k = 0; k < i && !found; k++)
        found = sl_text_equal_ignoring_case(alias, sl_text_of(column->aliases.words[k]));
    return found;
}

/* Fills the index of names and aliases, by which sl_schema_find finds columns. */
static bool list_names(sl_schema *schema, sl_error *error) {
    size_t count = schema->column_count;
    for (size_t k = 0; k < schema->column_count; k++)
        count += schema->columns[k].aliases.count;
    if (!sl_name_index_reset(&schema->index, count))
        return sl_error_memory(error, "reading a schema");
    for (size_t k = 0; k < schema->column_count; k++) {
        const sl_schema_column *column = &schema->columns[k];
        sl_name_index_add(&schema->index, hash_of(sl_text_of(column->name)), k);
        for (size_t i = 0; i < column->aliases.count; i++) {
            if (!is_repeated(column, i))
                sl_name_index_add(&schema->index, hash_of(sl_text_of(column->aliases.words[i])), k);
        }
    }
    return true;
}

static bool read_document(sl_yaml *r, const yaml_node_t *root, sl_schema *schema) {
    static const sl_yaml_key keys[] = {
        {"name", read_text, offsetof(sl_schema, name), false},
        {"kind", read_text, offsetof(sl_schema, kind), false},
        {"dialect", read_notation, offsetof(sl_schema, notation), false},
        {"delimiter", read_delimiter, offsetof(sl_schema, delimiter), false},
        {"quotes", read_quotes, offsetof(sl_schema, quote), false},
        {"header", read_choice, offsetof(sl_schema, header), false},
        {"exact", read_bool, offsetof(sl_schema, exact), false},
        {"trim", read_bool, offsetof(sl_schema, trim), false},
        {"field_counts", read_counts, offsetof(sl_schema, field_counts), false},
        {"skip_lines", read_int64, offsetof(sl_schema, skip_lines), false},
        {"blanks", read_int64, offsetof(sl_schema, blanks), false},
        {"missing", read_words, offsetof(sl_schema, missing), false},
        {"null", read_words, offsetof(sl_schema, nulls), false},
#define OPTION(key, option) {#key, read_text, offsetof(sl_schema, key), false},
        SL_SCHEMA_OPTIONS(OPTION)
#undef OPTION
            {"lossless", read_bool, offsetof(sl_schema, lossless), false},
        {"columns", read_columns, 0, false},
        {0},
    };
    if (!root)
        return sl_error_set(r->error, SL_EXIT_USAGE, "%s: the schema is empty", r->file);
    if (!sl_yaml_mapping(r, root, keys, schema))
        return false;
    if (!schema->name || !schema->columns)
        return refuse(r, root, "a schema with the keys name and columns");
    if (schema->skip_lines < 0 || schema->skip_lines > 1000 || schema->blanks < 0 ||
        schema->blanks > 2)
        return refuse(r, root, "a schema with skip_lines from 0 to 1000, and blanks from 0 to 2");
    if (schema->delimiter && schema->quote == schema->delimiter)
        return refuse(r, root, "a schema whose delimiter is not its quote");
    return true;
}

static bool chosen(sl_choice own, bool general) {
    return own == SL_CHOICE_UNSET ? general : own == SL_CHOICE_YES;
}

bool sl_schema_read(sl_text yaml, const char *source, sl_schema **out, sl_error *error) {
    sl_yaml r = {.text = yaml, .file = source, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root;
    bool untrimmed = false;
    sl_schema *schema = calloc(1, sizeof *schema);
    if (!schema)
        return sl_error_memory(error, "reading a schema");
    if (!sl_yaml_read(&r, &root)) {
        free(schema);
        return false;
    }
    schema->document = r.document;
    if (!read_document(&r, root, schema) || !list_names(schema, error)) {
        sl_schema_destroy(schema);
        return false;
    }
    if (!schema->kind)
        schema->kind = schema->name;
    for (size_t i = 0; i < schema->column_count; i++) {
        sl_schema_column *column = &schema->columns[i];
        if (!column->missing.words)
            column->missing = schema->missing;
        column->lossless = chosen(column->lossless_choice, schema->lossless);
        column->trim = chosen(column->trim_choice, schema->trim);
        untrimmed = untrimmed || !column->trim;
    }
    schema->trim = schema->trim && !untrimmed; /* else each column has it */
    *out = schema;
    return true;
}

void sl_schema_destroy(sl_schema *schema) {
    if (!schema)
        return;
    for (size_t i = 0; i < schema->column_count; i++) {
        free(schema->columns[i].aliases.words);
        free(schema->columns[i].formats.words);
        free(schema->columns[i].point_key);
        if (schema->columns[i].missing.words != schema->missing.words)
            free(schema->columns[i].missing.words);
    }
    free(schema->missing.words);
    free(schema->nulls.words);
    free(schema->columns);
    sl_name_index_clear(&schema->index);
    yaml_document_delete(&schema->document);
    free(schema);
}

bool sl_schema_column_is_named(const sl_schema_column *column, sl_text name) {
    if (sl_text_equal_ignoring_case(name, sl_text_of(column->name)))
        return true;
    for (size_t i = 0; i < column->aliases.count; i++) {
        if (sl_text_equal_ignoring_case(name, sl_text_of(column->aliases.words[i])))
            return true;
    }
    return false;
}

size_t sl_schema_find(const sl_schema *schema, sl_text name, bool *named) {
    uint64_t at = hash_of(name);
    size_t k, found = schema->column_count, exact = SIZE_MAX;
    while ((k = sl_name_index_next(&schema->index, &at)) != SIZE_MAX) {
        if (!sl_schema_column_is_named(&schema->columns[k], name))
            continue;
        if (sl_text_equal(name, sl_text_of(schema->columns[k].name)))
            exact = k;
        found = k < found ? k : found;
        if (named)
            named[k] = true;
    }
    return exact < SIZE_MAX ? exact : found;
}
