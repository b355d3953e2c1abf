/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a load's columns; see typing.h. */
#include "typing.h"
#include "convert.h"
#include "fields.h"
#include "util/grow.h"
#include "util/log.h"
#include "util/memory_stream.h"
#include "util/name_index.h"
#include "util/yaml_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 400000u /* of all layouts: 1 GiB of memory */

struct sl_typing {
    sl_typed_layout **layouts;
    size_t count, room;
    sl_name_index index; /* of the layouts: by `hash`, and by the names that no earlier one has */
    size_t columns;      /* of all layouts */
    bool semicolons;     /* they separate fields, as where the decimal comma is usual */
};

bool sl_typing_create(sl_typing **typing, sl_error *error) {
    *typing = calloc(1, sizeof **typing);
    return *typing || sl_error_memory(error, "inferring types");
}

static void layout_destroy(sl_typed_layout *layout) {
    for (size_t i = 0; layout && i < layout->count; i++) {
        if (layout->columns[i].path != layout->columns[i].name)
            free(layout->columns[i].path);
        free(layout->columns[i].name);
    }
    if (layout)
        free(layout->columns);
    free(layout);
}

void sl_typing_destroy(sl_typing *typing) {
    if (!typing)
        return;
    for (size_t i = 0; i < typing->count; i++)
        layout_destroy(typing->layouts[i]);
    free(typing->layouts);
    sl_name_index_clear(&typing->index);
    free(typing);
}

size_t sl_typing_count(const sl_typing *typing) {
    return typing->count;
}

sl_typed_layout *sl_typing_at(const sl_typing *typing, size_t index) {
    return typing->layouts[index];
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const sl_typed_column *)a)->name, ((const sl_typed_column *)b)->name);
}

static int compare_name(const void *name, const void *column) {
    return strcmp(name, ((const sl_typed_column *)column)->name);
}

/* The column of that name; the layout must have it. */
static const sl_typed_column *typed_layout_column(const sl_typed_layout *layout, const char *name) {
    return bsearch(name, layout->columns, layout->count, sizeof *layout->columns, compare_name);
}

/* Does the layout have exactly the dialect's columns? Names of a dialect are unique. */
static bool fits(const sl_typed_layout *layout, const sl_dialect *dialect) {
    bool same = layout->count == dialect->column_count;
    for (size_t i = 0; same && i < dialect->column_count; i++)
        same = typed_layout_column(layout, dialect->columns[i].published) != NULL;
    return same;
}

static char delimiter_of(const sl_dialect *dialect) {
    return dialect->delimiter == ',' ? ',' : ';';
}

sl_typed_layout *sl_typing_layout_of(const sl_typing *typing, const sl_dialect *dialect) {
    const char delimiter = delimiter_of(dialect);
    uint64_t at = 0;
    for (size_t i = 0; i < dialect->column_count; i++)
        at += sl_process_hash(dialect->columns[i].published);
    for (size_t found; (found = sl_name_index_next(&typing->index, &at)) != SIZE_MAX;) {
        sl_typed_layout *layout = typing->layouts[found];
        if ((!layout->delimiter || layout->delimiter == delimiter) && fits(layout, dialect))
            return layout;
    }
    return NULL;
}

/* Adds layout `k` to the index, whose room is sufficient. */
static void list_layout(sl_typing *typing, size_t k) {
    const sl_typed_layout *layout = typing->layouts[k];
    sl_name_index_add(&typing->index, layout->hash, k);
    for (size_t i = 0; i < layout->count; i++) {
        if (layout->columns[i].first == k)
            sl_name_index_add(&typing->index, sl_process_hash(layout->columns[i].name), k);
    }
}

/* The first layout in the index that has a column of this name; `last` if none before it has. */
static size_t first_with(const sl_typing *typing, const char *name, size_t last) {
    uint64_t at = sl_process_hash(name);
    for (size_t k; (k = sl_name_index_next(&typing->index, &at)) != SIZE_MAX;) {
        if (k < last && typed_layout_column(typing->layouts[k], name))
            last = k;
    }
    return last;
}

/* Sets `element` and `path` of a column of an array's element. False without memory. */
static bool find_element(sl_typed_layout *layout, sl_typed_column *column) {
    const size_t room = strlen(column->path) + strlen(column->name) + 4;
    char *path = malloc(room), *first = malloc(room), *own = path;
    bool ok = path && first;
    if (ok && sl_nesting_is_element(column->name, path, first) &&
        (column->element = typed_layout_column(layout, first)) != NULL) {
        sl_nesting_is_element(column->path, path, first);
        own = column->path != column->name ? column->path : NULL;
        column->path = path;
        column->element = column->element == column ? NULL : column->element;
    }
    free(own);
    free(first);
    return ok;
}

/* The column of the same name in layout column->first; NULL if that is its `own` layout. */
static sl_typed_column *namesake(const sl_typing *typing, size_t own,
                                 const sl_typed_column *column) {
    if (column->first == own)
        return NULL;
    return (sl_typed_column *)typed_layout_column(typing->layouts[column->first], column->name);
}

/* Sorts the columns of the last layout, which is complete, and adds it to the index. */
static bool end_layout(sl_typing *typing, sl_error *error) {
    const size_t last = typing->count - 1;
    sl_typed_layout *layout = typing->layouts[last];
    qsort(layout->columns, layout->count, sizeof *layout->columns, by_name);
    for (size_t i = 0; i < layout->count; i++) {
        sl_typed_column *column = &layout->columns[i];
        if (!find_element(layout, column))
            return sl_error_memory(error, "inferring types");
        layout->hash += sl_process_hash(column->name);
        column->first = first_with(typing, column->name, last);
        sl_typed_column *first = namesake(typing, last, column);
        if (first && !first->second &&
            typing->layouts[column->first]->delimiter != layout->delimiter)
            first->second = last;
    }
    const size_t items = typing->columns + typing->count;
    if (2 * items < typing->index.room) {
        list_layout(typing, last);
        return true;
    }
    if (!sl_name_index_reset(&typing->index, items))
        return sl_error_memory(error, "inferring types");
    for (size_t k = 0; k <= last; k++)
        list_layout(typing, k);
    return true;
}

/* Adds an empty layout with room for `count` columns. */
static sl_typed_layout *add_layout(sl_typing *typing, size_t count, sl_error *error) {
    typing->columns += count;
    if (typing->columns > COLUMNS_MAX) {
        sl_error_set(error, SL_EXIT_SOURCE,
                     "the texts have different sets of columns, with more than %u columns in all: "
                     "load fewer of them at once, or with --schema FILE, which `inspect "
                     "--write-schema` writes for some of them",
                     COLUMNS_MAX);
        return NULL;
    }
    sl_typed_layout *layout = calloc(1, sizeof *layout);
    sl_typed_layout **layouts =
        sl_grow(typing->layouts, typing->count, &typing->room, sizeof(sl_typed_layout *));
    if (layouts)
        typing->layouts = layouts;
    if (layout)
        layout->columns = calloc(count, sizeof *layout->columns);
    if (!layouts || !layout || !layout->columns) {
        layout_destroy(layout);
        sl_error_memory(error, "inferring types");
        return NULL;
    }
    typing->layouts[typing->count++] = layout;
    return layout;
}

static bool add_column(sl_typed_layout *layout, const char *name, const char *array,
                       const char *key, const sl_schema_column *declared, sl_error *error) {
    sl_typed_column *column = &layout->columns[layout->count++];
    column->path = column->name = strdup(name);
    if (column->name && array) {
        const size_t room = strlen(array) + strlen(key) + 2;
        column->path = malloc(room);
        if (column->path)
            snprintf(column->path, room, "%s.%s", array, key);
    }
    column->guess = SL_COLUMN_GUESS;
    if (declared && declared->declared)
        column->schema = *declared;
    return column->path || sl_error_memory(error, "inferring types");
}

/* Adds the layout of a dialect. Column i of the dialect is column order[i] of the layout. */
static sl_typed_layout *layout_of(sl_typing *typing, const char *array, const sl_dialect *dialect,
                                  sl_error *error) {
    sl_typed_layout *layout = sl_typing_layout_of(typing, dialect);
    if (layout)
        return layout;
    layout = add_layout(typing, dialect->column_count, error);
    if (layout)
        layout->delimiter = delimiter_of(dialect);
    for (size_t i = 0; layout && i < dialect->column_count; i++) {
        const sl_bound_column *column = &dialect->columns[i];
        if (!add_column(layout, column->published, array, column->key, &column->schema, error))
            return NULL;
        layout->columns[i].written =
            layout->delimiter == ',' ? SL_BETWEEN_COMMAS : SL_BETWEEN_OTHERS;
    }
    return layout && end_layout(typing, error) ? layout : NULL;
}

/* The number of the line that begins at this byte of a source's first lines; 0 for later lines. */
static uint64_t line_at(const sl_block *block, uint32_t start) {
    uint64_t line = 1;
    for (uint32_t i = 0; i < start; i++)
        line += block->text.bytes[i] == '\n';
    return block->offset == 0 ? line : 0;
}

/* Has the value U+00A0 or U+202F at its beginning or end, as text copied from web pages has? */
static bool has_no_break_space(sl_text value) {
    static const char *const spaces[] = {"\xC2\xA0", "\xE2\x80\xAF"};
    bool has = false;
    for (size_t i = 0; i < 2 && value.length >= strlen(spaces[i]); i++) {
        const size_t length = strlen(spaces[i]);
        has = has || memcmp(value.bytes, spaces[i], length) == 0 ||
              memcmp(value.bytes + value.length - length, spaces[i], length) == 0;
    }
    return has;
}

static void add_value(sl_typed_column *column, sl_text field, const sl_parser *parser,
                      const sl_record *record, size_t source) {
    const sl_notation *notation = parser->dialect->notation;
    const sl_column_guess before = column->guess;
    const bool text_only = field.length == 0 && parser->dialect->null;
    if (text_only)
        sl_column_guess_add_text(&column->guess);
    else
        sl_column_guess_add(&column->guess, field, notation);
    const sl_text inner = sl_field_trim(field, SL_TRIM_BOTH);
    column->unbroken = column->unbroken || has_no_break_space(inner);
    if (!column->padded && inner.length < field.length) {
        column->padded = true;
        column->trimmed = before;
    }
    if (column->padded && inner.length > 0)
        sl_column_guess_add(&column->trimmed, inner, notation);
    for (sl_rest_types i = 0; i < SL_RESTS; i++) {
        sl_column_rest *rest = &column->rests[i];
        if (sl_column_rest_add(rest, i, &before, &column->guess, field, notation, text_only))
            continue;
        rest->source = source;
        rest->offset = parser->block->offset + record->start;
        rest->line = line_at(parser->block, record->start);
    }
}

/* Adds the fields of a record to the guesses. */
static void add_record(sl_typed_column *const *columns, const sl_parser *parser,
                       const sl_record *record, size_t source) {
    const char *text = parser->block->text.bytes;
    for (size_t i = 0; i < parser->dialect->column_count; i++) {
        const char *begin = text + (uint32_t)(record->before[i] + 1),
                   *end = text + record->after[i];
        const sl_dialect *d = parser->dialect;
        const bool quoted = d->quote && begin > text && begin[-1] == d->quote;
        sl_text field = sl_field_trim((sl_text){begin, (size_t)(end - begin)}, d->trim);
        if (sl_field_is_null(d, field, quoted)) {
            columns[i]->guess.missing++;
        } else {
            columns[i]->written |= quoted ? SL_BETWEEN_QUOTES : 0;
            add_value(columns[i], field, parser, record, source);
        }
    }
}

static void doubt(sl_typing_doubt *doubt, const sl_block *block, const char *line, sl_text value,
                  size_t source) {
    const uint32_t start = (uint32_t)(line - block->text.bytes);
    if (doubt->shown[0])
        return;
    sl_text_printable(value, doubt->shown, sizeof doubt->shown);
    doubt->source = source;
    doubt->offset = block->offset + start;
    doubt->line = line_at(block, start);
}

/* Looks for quotes around the fields of a line that is read without quotes: do they show that they
 * quote, as in the first lines of a text (table.c), or that they do not? */
static void doubt_quotes(sl_typed_layout *layout, const sl_dialect *d, const sl_block *block,
                         sl_text line, size_t source) {
    sl_text fields[SL_COLUMNS_MAX];
    size_t open;
    const char delimiter = d->delimiter;
    const sl_text rest = {line.bytes,
                          (size_t)(block->text.bytes + block->text.length - line.bytes)};
    if (!memchr(line.bytes, '"', line.length))
        return;
    const sl_quotes quotes = sl_line_quotes(line, delimiter, '"', false, &open);
    const char *end = rest.bytes + rest.length, *next = line.bytes + line.length;
    const size_t after = next < end ? (size_t)(sl_find_bare(next + 1, end, '\n', 0) - next) - 1 : 0;
    const bool spans =
        quotes == SL_QUOTES_OPEN && after > 0 &&
        sl_fields_split((sl_text){next + 1, after}, delimiter, 0, 0, NULL, 0) != layout->count &&
        sl_record_fields(rest, delimiter, '"', 0) == layout->count;
    const size_t plain = sl_fields_split(line, delimiter, 0, 0, fields, SL_COLUMNS_MAX);
    for (size_t i = 0; i < plain && i < SL_COLUMNS_MAX; i++) { /* without double quotes around */
        const sl_text field = fields[i];
        if (field.bytes > line.bytes && field.bytes[-1] == '"' && field.length > 0)
            doubt(&layout->quotes, block, line.bytes, (sl_text){field.bytes - 1, field.length + 2},
                  source);
    }
    if (spans)
        doubt(&layout->quotes, block, line.bytes, (sl_text){line.bytes + open, line.length - open},
              source);
    bool proven = spans;
    layout->unquoted = layout->unquoted || (quotes != SL_QUOTES_CLOSED && !spans);
    if (quotes != SL_QUOTES_CLOSED) {
        layout->quoted += proven;
        return;
    }
    const size_t count = sl_fields_split(line, delimiter, '"', 0, fields, SL_COLUMNS_MAX);
    layout->unquoted = layout->unquoted || (plain == layout->count && count != plain);
    for (size_t i = 0; i < count && count == layout->count; i++) {
        const sl_text field = fields[i];
        const bool divided = memchr(field.bytes, delimiter, field.length) != NULL;
        if (field.bytes == line.bytes || field.bytes[-1] != '"')
            continue;
        proven = proven || divided || memchr(field.bytes, '"', field.length);
        if (divided)
            doubt(&layout->quotes, block, line.bytes, field, source);
    }
    layout->quoted += proven;
}

/* Looks for backslashes as PostgreSQL and MySQL write them. Those of JSON may be its own. */
static void doubt_escapes(sl_typed_layout *layout, const sl_dialect *d, const sl_block *block,
                          sl_text line, size_t source) {
    const char *end = line.bytes + line.length, *at = line.bytes;
    if (memmem(line.bytes, line.length, "{\"", 2))
        return;
    for (; at < end && (at = memchr(at, '\\', (size_t)(end - at))) != NULL; at += 2) {
        const char next = at + 1 < end ? at[1] : '\n';
        layout->pairs = layout->pairs || next == '\\';
        layout->batch = layout->batch || next == 'n' || next == 't';
        layout->paths = layout->paths || !next || !strchr("nt\\\t\nbfrv0N", next);
        if (!next || !strchr(d->header_length > 0 ? "nt\\" : "nt\\\t\n", next))
            continue;
        const char *begin = at, *stop = at;
        while (begin > line.bytes && begin[-1] != d->delimiter)
            begin--;
        while (stop < end && (*stop != d->delimiter || stop == at + 1))
            stop++;
        doubt(&layout->escapes, block, line.bytes, (sl_text){begin, (size_t)(stop - begin)},
              source);
    }
}

/* Looks for signs in a line that the text is read wrongly, if it is not known how it is written. */
static void doubt_line(sl_typed_layout *layout, const sl_plan *plan, const sl_dialect *d,
                       const sl_block *block, sl_text line, size_t source) {
    if (d->blanks || d->bare_escape)
        return;
    if (!d->quote && d->delimiter && plan->options.quote == SL_QUOTE_AUTO)
        doubt_quotes(layout, d, block, line, source);
    if (d->delimiter == '\t' && !d->why[0] && !d->notation_given)
        doubt_escapes(layout, d, block, line, source);
}

/* The length of the record at `start`, without its line feed. */
static size_t record_length(const sl_dialect *dialect, sl_text lines, size_t start) {
    size_t left = lines.length - start;
    if (dialect->quoted_lines) {
        sl_quote_state state = SL_AT_FIELD;
        size_t end = sl_quoted_end(dialect, lines.bytes, start, lines.length, 0, &state);
        return end > 0 ? end - 1 - start : left;
    }
    const char *at = lines.bytes + start;
    return (size_t)(sl_find_bare(at, at + left, '\n', dialect->bare_escape) - at);
}

bool sl_typing_add(sl_typing *typing, const sl_plan *plan, const sl_dialect *dialect, sl_text lines,
                   size_t source, uint64_t offset, sl_error *error) {
    sl_typed_layout *layout = layout_of(typing, plan->options.array, dialect, error);
    if (!layout)
        return false;
    typing->semicolons = typing->semicolons || dialect->delimiter == ';';
    sl_typed_column **columns = calloc(dialect->column_count, sizeof(sl_typed_column *));
    sl_parser *parser = calloc(1, sizeof *parser);
    sl_block block = {.text = lines, .offset = offset, .divided = dialect->quoted_lines};
    bool ok = (columns && parser) || sl_error_memory(error, "inferring types");
    for (size_t i = 0; ok && i < dialect->column_count; i++) {
        size_t at =
            (size_t)(typed_layout_column(layout, dialect->columns[i].published) - layout->columns);
        columns[i] = &layout->columns[at];
    }
    size_t start = offset < dialect->body_offset ? (size_t)(dialect->body_offset - offset) : 0;
    while (ok && start < lines.length) {
        size_t length = record_length(dialect, lines, start);
        sl_record record = {.start = (uint32_t)start, .end = (uint32_t)(start + length)};
        sl_reject reject = {0};
        start += length + 1;
        if (length > 0 && !dialect->keeps_cr && lines.bytes[record.end - 1] == '\r')
            record.end--;
        parser->simd = plan->simd;
        parser->dialect = dialect;
        parser->block = &block;
        doubt_line(layout, plan, dialect, &block,
                   (sl_text){lines.bytes + record.start, record.end - record.start}, source);
        if (sl_record_split(parser, &record, &reject) == SL_LINE_RECORD) {
            add_record(columns, parser, &record, source);
            layout->records++;
        } else if (strncmp(reject.reason, SL_TOO_FEW_FIELDS, strlen(SL_TOO_FEW_FIELDS)) == 0) {
            layout->shorter++;
        }
    }
    free(columns);
    free(parser);
    return ok;
}

void sl_typing_forget(sl_typing *typing, const sl_dialect *dialect) {
    sl_typed_layout *layout = sl_typing_layout_of(typing, dialect);
    for (size_t i = 0; layout && i < layout->count; i++) {
        layout->columns[i].guess = SL_COLUMN_GUESS;
        layout->columns[i].padded = layout->columns[i].blanks = layout->columns[i].unbroken = false;
        memset(layout->columns[i].rests, 0, sizeof layout->columns[i].rests);
    }
    if (layout) {
        layout->records = layout->shorter = 0;
        layout->quotes.shown[0] = layout->escapes.shown[0] = '\0';
        layout->quoted = layout->unquoted = layout->pairs = layout->batch = layout->paths = false;
    }
}

bool sl_typing_shows_quotes(const sl_typing *typing) {
    size_t records = 0;
    for (size_t k = 0; k < typing->count; k++) {
        const sl_typed_layout *layout = typing->layouts[k];
        if (layout->unquoted || (layout->quotes.shown[0] && layout->quoted == 0))
            return false;
        records += layout->quoted;
    }
    return records > 1; /* one may be by chance */
}

bool sl_typing_restore(sl_typing *typing, const char *array, char delimiter,
                       const char *const *names, const char *const *types, size_t count,
                       sl_error *error) {
    sl_typed_layout *layout = add_layout(typing, count > 0 ? count : 1, error);
    bool ok = layout != NULL;
    if (layout)
        layout->delimiter = delimiter;
    for (size_t i = 0; ok && i < count; i++) {
        ok = add_column(layout, names[i], array, names[i], NULL, error);
        /* The declared types that cannot be read are those of --types again. */
        if (ok && !sl_column_type_read(types[i], &layout->columns[i].schema) &&
            layout->columns[i].schema.type == SL_TYPE_TEXT)
            ok = sl_error_set(error, SL_EXIT_USAGE, "the type \"%.60s\" is unknown", types[i]);
    }
    return ok && end_layout(typing, error);
}

/* The decimal separators in the numbers of texts with commas between fields, or of others. */
typedef struct separators {
    bool commas, points, likely; /* likely: points in numbers separate groups of digits */
} separators;

/* If points may separate groups of digits (`grouped`), a column of numbers such as 12.500 is
 * text. `surely`: only if they must. */
static void decide(sl_typed_layout *layout, const separators of[2]) {
    for (size_t i = 0; i < layout->count; i++) {
        sl_typed_column *column = &layout->columns[i];
        bool grouped = false, surely = true, commas = column->guess.values > 0;
        for (size_t c = 0; c < 2; c++) {
            if (column->written & (c == 0 ? SL_BETWEEN_COMMAS : SL_BETWEEN_OTHERS)) {
                grouped = grouped || of[c].likely || !of[c].points;
                surely = surely && !of[c].likely;
                commas = commas && of[c].commas && !of[c].points;
            }
        }
        column->blanks = column->blanks || column->padded;
        if (column->schema.declared)
            continue;
        if (commas)
            sl_column_guess_use_comma(&column->guess);
        if (grouped && sl_column_guess_is_grouped(&column->guess, surely))
            column->guess.kinds = 0;
        sl_column_guess_decide(&column->guess, &column->schema);
        sl_schema_column inner = {0};
        if (column->padded)
            sl_column_guess_decide(&column->trimmed, &inner);
        column->padded = column->padded && sl_column_class(&column->schema) == SL_CLASS_TEXT &&
                         sl_column_class(&inner) < SL_CLASS_TEXT;
        if (column->rest && (column->padded || sl_column_class(&column->schema) != SL_CLASS_TEXT ||
                             column->schema.mixed[0] || sl_column_guess_is_cut(&column->guess) ||
                             (grouped && sl_column_guess_is_grouped(&column->rest->guess, surely))))
            column->rest = NULL;
    }
}

/* Looks for the type that the fewest values of the column do not fit. */
static void decide_rest(sl_typed_column *column) {
    for (sl_rest_types i = 0; i < SL_RESTS && !column->schema.declared; i++) {
        const sl_column_rest *rest = &column->rests[i];
        sl_schema_column type = {0};
        if (!sl_column_rest_decide(rest, &type) ||
            (column->rest && column->rest->misfits <= rest->misfits))
            continue;
        column->rest = rest;
        column->type_of_rest = type;
    }
}

const sl_typed_column *sl_typing_next(sl_typing_walk *walk) {
    for (; walk->typing && walk->layout < walk->typing->count; walk->layout++, walk->column = 0) {
        const sl_typed_layout *layout = walk->typing->layouts[walk->layout];
        while (walk->column < layout->count) {
            const sl_typed_column *column = &layout->columns[walk->column++];
            if (column->first == walk->layout)
                return column;
        }
    }
    return NULL;
}

/* The decimal separator of a type of numbers; 0: it has none. */
static char separator_in(const sl_schema_column *type) {
    const sl_number_form *form = type->format ? sl_number_form_named(type->format) : NULL;
    if (sl_column_class(type) != SL_CLASS_NUMBERS)
        return 0;
    return form ? form->decimal : type->type == SL_TYPE_INT ? 0 : '.';
}

static bool has_separator(const sl_typed_column *column, char separator) {
    sl_schema_column type = {0};
    sl_column_guess_decide(&column->guess, &type);
    return column->guess.values > 0 && separator_in(&type) == separator;
}

/* Merges what is known of a column into `first`; `copies`: copies it from `first`, if not NULL. */
static void merge_column(sl_typed_column *first, sl_typed_column *column, bool copies) {
    for (sl_rest_types r = 0; r < SL_RESTS && first; r++) {
        if (copies)
            column->rests[r].misfits = 0;
        else
            sl_column_rest_merge(&first->rests[r], r, &first->guess, &column->rests[r],
                                 &column->guess);
    }
    if (first && copies) {
        column->guess = first->guess;
        column->written = first->written;
    } else if (first) {
        sl_column_guess_merge(&first->guess, &column->guess);
        first->written |= column->written;
    }
}

/* Merges the columns of array elements into those of the first elements; `copies`: the reverse. */
static void merge_elements(sl_typed_layout *layout, bool copies) {
    for (size_t i = 0; i < layout->count; i++) {
        sl_typed_column *column = &layout->columns[i];
        merge_column((sl_typed_column *)column->element, column, copies);
        if (copies && column->element && !column->schema.declared &&
            sl_column_types[column->element->schema.type].axis == SL_AXIS_NONE)
            column->schema = column->element->schema;
    }
}

/* For each name, merges the columns between commas, and the columns between other delimiters. Then
 * merges both, unless the former have decimal points, and the latter have decimal commas. */
static void merge_namesakes(sl_typing *typing) {
    for (size_t k = 0; k < typing->count; k++) {
        for (size_t i = 0; i < typing->layouts[k]->count; i++) {
            sl_typed_column *column = &typing->layouts[k]->columns[i];
            const sl_typed_column *first = namesake(typing, k, column);
            if (first && typing->layouts[column->first]->delimiter != typing->layouts[k]->delimiter)
                column->first = first->second;
            merge_column(namesake(typing, k, column), column, false);
        }
    }
    for (size_t k = 0; k < typing->count; k++) {
        for (size_t i = 0; i < typing->layouts[k]->count; i++) {
            sl_typed_column *first = &typing->layouts[k]->columns[i];
            if (!first->second)
                continue;
            sl_typed_column *second =
                (sl_typed_column *)typed_layout_column(typing->layouts[first->second], first->name);
            const bool points_first = typing->layouts[k]->delimiter == ',';
            if (has_separator(points_first ? first : second, '.') &&
                has_separator(points_first ? second : first, ',')) {
                second->other = first;
                continue;
            }
            second->first = k;
            merge_column(first, second, false);
        }
    }
}

void sl_typing_decide(sl_typing *typing) {
    for (size_t k = 0; k < typing->count; k++)
        merge_elements(typing->layouts[k], false);
    merge_namesakes(typing);
    for (size_t k = 0; k < typing->count; k++) {
        for (size_t i = 0; i < typing->layouts[k]->count; i++) {
            sl_typed_column *column = &typing->layouts[k]->columns[i];
            sl_typed_column *first = namesake(typing, k, column);
            column->first = first ? first->first : k;
            merge_column(namesake(typing, k, column), column, true);
        }
        merge_elements(typing->layouts[k], true);
    }
    separators of[2] = {{.commas = false}, {.commas = false}};
    for (size_t k = 0; k < typing->count; k++) {
        for (size_t i = 0; i < typing->layouts[k]->count; i++) {
            sl_typed_column *column = &typing->layouts[k]->columns[i];
            decide_rest(column);
            const char *form = column->rest ? column->type_of_rest.format : NULL;
            const sl_number_form *number = form ? sl_number_form_named(form) : NULL;
            for (size_t c = 0; c < 2; c++) {
                if (!(column->written & (c == 0 ? SL_BETWEEN_COMMAS : SL_BETWEEN_OTHERS)))
                    continue;
                of[c].commas |= column->guess.comma || column->guess.marked[1] ||
                                (number && number->decimal == ',');
                of[c].points |= sl_column_guess_has_point(&column->guess);
            }
        }
    }
    of[0].likely = of[0].commas;
    of[1].likely = of[1].commas || (typing->semicolons && !of[1].points);
    for (size_t k = 0; k < typing->count; k++)
        decide(typing->layouts[k], of);
}

void sl_typing_log_shorter(const sl_typing *typing) {
    for (size_t k = 0; typing && k < typing->count; k++) {
        const sl_typed_layout *layout = typing->layouts[k];
        if (layout->shorter >= 3 && layout->shorter > layout->records / 10)
            sl_log_warning("%llu of %llu sampled lines have too few fields, and are rejected: if "
                           "their last values are missing, --ragged pad loads them",
                           (unsigned long long)layout->shorter,
                           (unsigned long long)(layout->records + layout->shorter));
    }
}

/* For a set of columns that was not sampled: the column of this name in a sampled set. One with the
 * same kind of delimiter is preferred: numbers between commas may have another form. */
static const sl_typed_column *column_named(const sl_typing *typing, const char *name,
                                           char delimiter) {
    const size_t k = first_with(typing, name, SIZE_MAX);
    const sl_typed_layout *layout = k < SIZE_MAX ? typing->layouts[k] : NULL;
    const sl_typed_column *column = layout ? typed_layout_column(layout, name) : NULL;
    if (!column || !layout->delimiter || layout->delimiter == delimiter)
        return column;
    if (column->second)
        return typed_layout_column(typing->layouts[column->second], name);
    return separator_in(&column->schema) ? NULL : column;
}

bool sl_typing_apply(const sl_typing *typing, bool long_names, sl_dialect *dialect, bool *known,
                     sl_error *error) {
    const sl_typed_layout *layout = sl_typing_layout_of(typing, dialect);
    bool all = true;
    for (size_t i = 0; i < dialect->column_count; i++) {
        sl_schema_column *into = &dialect->columns[i].schema;
        sl_schema_column type = {0};
        if (into->declared)
            continue;
        const char *name = dialect->columns[i].published;
        const sl_typed_column *typed = layout ? typed_layout_column(layout, name)
                                              : column_named(typing, name, delimiter_of(dialect));
        if (typed)
            type = typed->schema;
        all = all && typed;
        type.name = into->name;
        type.short_name = into->short_name;
        type.inferred = typed != NULL;
        if (dialect->notation && !dialect->notation->words)
            type.missing.count = 0;
        *into = type;
    }
    if (known)
        *known = all;
    return sl_dialect_compile(dialect, long_names, error);
}

/* ---- schemas ---- */

static void put_words(FILE *out, const char *before, const sl_words *words, const char *after) {
    fputs(before, out);
    for (size_t i = 0; i < words->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        sl_yaml_put_quoted(out, words->words[i]);
    }
    fputs(after, out);
}

static void put_column(FILE *out, const sl_bound_column *column) {
    const sl_schema_column *schema = &column->schema;
    fputs("  - {name: ", out);
    sl_yaml_put_quoted(out, column->published);
    if (schema->type != SL_TYPE_TEXT)
        fprintf(out, ", type: %s", sl_column_types[schema->type].word);
    else if (schema->missing.count == 0)
        fputs(", missing: []", out);
    if (schema->format) {
        fputs(", format: ", out);
        sl_yaml_put_quoted(out, schema->format);
    }
    if (schema->missing.count > 0 && schema->missing.count != sl_missing_words.count)
        put_words(out, ", missing: [", &schema->missing, "]");
    if (schema->zone != SL_CHOICE_UNSET)
        fprintf(out, ", offset: %s", schema->zone == SL_CHOICE_YES ? "true" : "false");
    if (schema->yes)
        put_words(out, ", \"yes\": ", &(sl_words){(const char **)&schema->yes, 1}, "");
    if (schema->no && *schema->no)
        put_words(out, ", \"no\": ", &(sl_words){(const char **)&schema->no, 1}, "");
    if (schema->declared && !schema->lossless && schema->type != SL_TYPE_TEXT)
        fputs(", lossless: false", out);
    if (schema->mixed[0])
        fprintf(out, "}  # %s: %s\n", sl_column_mixed_kind(schema), schema->mixed);
    else
        fprintf(out, "}%s\n",
                sl_column_class(schema) == SL_CLASS_EMPTY ? "  # no values in the sample" : "");
}

/* Writes the options that describe the text, as --schema reads them. */
static void put_options(FILE *out, const sl_format_options *options) {
    const char byte[2] = {options->escape, '\0'};
    const char *encoding = options->encoding, *id_field = options->id_fields,
               *escape = byte[0] == '\\' ? "backslash" : byte,
               *null_as = options->store_null ? "null" : NULL,
               *quoted_lines = options->quoted_lines ? "yes" : NULL,
               *ragged = options->pad ? "pad" : NULL;
#define PUT(key, option)                                                                           \
    if (key && *key) {                                                                             \
        fputs(#key ": ", out);                                                                     \
        sl_yaml_put_quoted(out, key);                                                              \
        fputc('\n', out);                                                                          \
    }
    SL_SCHEMA_OPTIONS(PUT)
#undef PUT
    if (options->null_count > 0)
        put_words(out, "null: [", &(sl_words){(const char **)options->nulls, options->null_count},
                  "]\n");
}

/* Is the column one of a dialect before number `own`? `written`: the dialects by their columns. */
static bool is_written(const sl_dialect *const *dialects, const sl_name_index *written, size_t own,
                       const char *name) {
    uint64_t at = sl_process_hash(name);
    for (size_t k; (k = sl_name_index_next(written, &at)) != SIZE_MAX;) {
        for (size_t i = 0; k < own && i < dialects[k]->column_count; i++) {
            if (strcmp(dialects[k]->columns[i].published, name) == 0)
                return true;
        }
    }
    return false;
}

char *sl_typing_write_schema(const sl_plan *plan, const sl_dialect *const *dialects, size_t count,
                             const char *name, uint64_t records) {
    const sl_dialect *dialect = dialects[0];
    sl_name_index written = {0};
    char *text = NULL;
    size_t length = 0, columns = 0;
    for (size_t k = 0; k < count; k++)
        columns += dialects[k]->column_count;
    FILE *out = sl_name_index_reset(&written, columns) ? sl_memory_stream(&text, &length) : NULL;
    if (!out) {
        sl_name_index_clear(&written);
        return NULL;
    }
    char delimiter[2] = {dialect->delimiter, '\0'};
    fprintf(out,
            "# Types inferred from %s. Edit them, and load with --schema FILE.\n"
            "# A value that does not fit its type is a reject.\n"
            "name: ",
            sl_plural(records, "sampled record"));
    sl_yaml_put_quoted(out, name);
    fprintf(out, "\nkind: records\n");
    put_options(out, &plan->options);
    if (dialect->notation && (dialect->notation_given || dialect->why[0]))
        fprintf(out, "dialect: %s\n", dialect->notation->name);
    fprintf(out, "delimiter: ");
    sl_yaml_put_quoted(out, delimiter);
    const char quote[2] = {dialect->quote, '\0'};
    fprintf(out, "\nquotes: ");
    if (dialect->quote == '"' || !dialect->quote)
        fprintf(out, dialect->quote ? "true" : "false");
    else
        sl_yaml_put_quoted(out, quote);
    const bool header = dialect->header_length > 0, renamed = header && plan->options.columns;
    fprintf(out, "\nheader: %s\n", header && !renamed ? "true" : "false");
    if (dialect->skip_lines + renamed > 0)
        fprintf(out, "skip_lines: %zu\n", dialect->skip_lines + renamed);
    if (dialect->trim == SL_TRIM_BOTH)
        fprintf(out, "trim: true\n");
    if (dialect->blanks)
        fprintf(out, "blanks: %u\n", dialect->blanks);
    fprintf(out, "lossless: true      # values that a type would change (007) are refused\n");
    if (!dialect->notation || dialect->notation->words)
        put_words(out, "missing: [", &sl_missing_words, "]  # words for a missing value\n");
    fprintf(out, "columns:\n");
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < dialects[k]->column_count; i++) {
            const char *name_of_column = dialects[k]->columns[i].published;
            if (is_written(dialects, &written, k, name_of_column))
                continue;
            put_column(out, &dialects[k]->columns[i]);
            sl_name_index_add(&written, sl_process_hash(name_of_column), k);
        }
    }
    sl_name_index_clear(&written);
    return fclose(out) == 0 ? text : NULL;
}
