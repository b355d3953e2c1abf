/* SPDX-License-Identifier: Apache-2.0 */
/* Records and fields of delimited text that are not on the fast path; see fields.h. */
#include "fields.h"

#include "bson/extjson.h"
#include "column_types.h"
#include "convert.h"
#include "key_fields.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the fields of a record ---- */

const char sl_delimited_quotes_advice[] =
    ", or, if the quote is data, give --quote none (in a schema `quotes: false`)";

/* Adds missing fields to a line with too few fields. */
static sl_line pad(sl_parser *parser, const sl_record *record, size_t count) {
    for (size_t f = count; f < parser->dialect->column_count; f++) {
        parser->before[f] = record->end - 1;
        parser->after[f] = record->end;
    }
    return SL_LINE_RECORD;
}

size_t sl_header_unquoted_length(const sl_dialect *d) {
    sl_text names[SL_COLUMNS_MAX];
    const sl_text header = {d->header, d->watched_length};
    const size_t count = sl_fields_split(header, d->delimiter, d->quote, 0, names, SL_COLUMNS_MAX);
    size_t length = count - 1;
    for (size_t i = 0; i < count && i < SL_COLUMNS_MAX; i++)
        length += names[i].length;
    return length;
}

/* Most lines are excluded by their first field. */
bool sl_line_is_header(const sl_dialect *d, sl_text line, bool *same_order) {
    sl_text names[SL_COLUMNS_MAX], own[SL_COLUMNS_MAX];
    const sl_text header = {d->header, d->watched_length};
    const size_t mark = sl_byte_order_mark(line);
    line = (sl_text){line.bytes + mark, line.length - mark};
    *same_order = true;
    if (header.length == 0 || (line.length != header.length && line.length != d->requoted_length))
        return false;
    if (sl_text_equal(line, header))
        return true;
    const bool quoted = d->quote && *line.bytes == d->quote;
    const char *end =
        memchr(line.bytes + quoted, quoted ? d->quote : d->delimiter, line.length - quoted);
    if (!end || !memmem(header.bytes, header.length, line.bytes + quoted,
                        (size_t)(end - line.bytes) - quoted))
        return false;
    const size_t count = sl_fields_split(line, d->delimiter, d->quote, 0, names, SL_COLUMNS_MAX);
    if (count > SL_COLUMNS_MAX ||
        count != sl_fields_split(header, d->delimiter, d->quote, 0, own, SL_COLUMNS_MAX))
        return false;
    for (size_t i = 0, k; i < count; i++) {
        for (k = 0; k < count && !sl_text_equal(names[i], own[k]);)
            k++;
        if (k == count)
            return false;
        *same_order = *same_order && k == i;
        own[k].length = SIZE_MAX; /* each name once */
    }
    return true;
}

/* Does a line that is not a record repeat the header? */
static bool is_header(const sl_parser *parser, const sl_record *record) {
    const sl_dialect *d = parser->dialect;
    sl_text line = {parser->block->text.bytes + record->start, record->end - record->start};
    bool same_order;
    const bool repeated = sl_line_is_header(d, line, &same_order);
    if (repeated || d->inferable)
        return repeated && same_order;
    sl_text names[SL_COLUMNS_MAX];
    size_t count = sl_fields_split(line, d->delimiter, d->quote, 0, names, d->column_count), i = 0;
    while (i < count && i < d->column_count &&
           (sl_text_equal_ignoring_case(names[i], sl_text_of(d->columns[i].published)) ||
            sl_schema_column_is_named(&d->columns[i].schema, names[i])))
        i++;
    return i == d->column_count || (i == count && i > 1);
}

/* Writes the reason if the text, which `subject` names, has an escape that the recognised notation
 * does not write. */
static bool explain_strange(const sl_dialect *d, sl_text text, const char *subject, char *out,
                            size_t room) {
    const char *at = d->bare_escape ? sl_notation_strange(d->notation, d->strict, text) : NULL;
    char escape[12], null[SL_WORD_ROOM(8)];
    if (!at)
        return false;
    sl_text_printable((sl_text){at, 2}, escape, sizeof escape);
    sl_print_text(out, room,
                  "%s has %s, which is no escape of the dialect %s that the first 64 KiB suggest "
                  "(%s): if backslashes are data, load all again with --dialect csv --null %s; "
                  "otherwise with --dialect %s",
                  subject, escape, d->notation->name, d->why,
                  sl_shell_word(d->notation->null, null, sizeof null),
                  d->notation->header_usual ? d->notation->name : "postgres or mysql");
    return true;
}

static sl_line check_count(sl_parser *parser, const sl_record *record, size_t count,
                           sl_reject *reject) {
    const sl_dialect *d = parser->dialect;
    if (count == d->column_count)
        return SL_LINE_RECORD;
    if (d->pad && count < d->column_count)
        return pad(parser, record, count);
    if (is_header(parser, record))
        return SL_LINE_HEADER;
    if (count < d->column_count)
        snprintf(reject->reason, sizeof reject->reason, SL_TOO_FEW_FIELDS ": %zu of %zu", count,
                 d->column_count);
    else
        snprintf(reject->reason, sizeof reject->reason, "too many fields: %zu instead of %zu%s",
                 count, d->column_count, d->quote ? "; is a quote missing?" : "");
    const size_t used = strlen(reject->reason);
    const char *line = parser->block->text.bytes + record->start;
    explain_strange(d, (sl_text){line, record->end - record->start}, "; the line",
                    reject->reason + used, sizeof reject->reason - used);
    return SL_LINE_BAD;
}

/* The position of the next delimiter, or `end`. */
static uint32_t find_delimiter(const sl_dialect *d, const char *text, uint32_t at, uint32_t end) {
    if (at >= end)
        return end;
    return (uint32_t)(sl_find_bare(text + at, text + end, d->delimiter, d->bare_escape) - text);
}

/* Splits a line of a dialect without quotes. If the line has too many fields, and the dialect has a
 * spill column, that column keeps the extra delimiters: the fields before it are counted from the
 * left, the fields after it from the right. */
static sl_line split_plain(sl_parser *parser, sl_record *record, sl_reject *reject) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    size_t count = 1;
    uint32_t at = find_delimiter(d, text, record->start, record->end);
    for (; at < record->end; at = find_delimiter(d, text, at + 1, record->end))
        count++;
    bool pads = d->pad && count < d->column_count;
    if ((count < d->column_count && !pads) || (count > d->column_count && d->spill == SIZE_MAX))
        return check_count(parser, record, count, reject);
    size_t extra = count > d->column_count ? count - d->column_count : 0;
    sl_text line = {text + record->start, record->end - record->start};
    if (extra > 0 && memchr(line.bytes, '\r', line.length) &&
        sl_line_holds_records(line, d->delimiter, d->quote, d->column_count)) {
        snprintf(reject->reason, sizeof reject->reason,
                 "several records in one line, separated by carriage returns (CR)");
        return SL_LINE_BAD;
    }
    record->repaired = extra > 0;
    at = record->start;
    for (size_t f = 0; f < d->column_count; f++) {
        parser->before[f] = at - 1;
        at = find_delimiter(d, text, at, record->end);
        for (size_t skip = f == d->spill ? extra : 0; skip > 0; skip--)
            at = find_delimiter(d, text, at + 1, record->end);
        parser->after[f] = at++;
        if (pads && f + 1 == count)
            return pad(parser, record, count);
    }
    return SL_LINE_RECORD;
}

/* For a source that is divided: the quoted field that begins at `open` is not closed, or is
 * followed by other text than a delimiter at `at`. Sets the reject and returns true if line ends
 * before this position may be the ends of records. */
static bool misleads(const sl_parser *parser, const sl_record *record, uint32_t open, uint32_t at,
                     sl_reject *reject) {
    const char *text = parser->block->text.bytes;
    char quoted[SL_QUOTED_ROOM];
    if (at < record->end && !memchr(text + record->start, '\n', record->end - record->start))
        return false;
    reject->misread = true;
    if (at < record->end)
        snprintf(reject->reason, sizeof reject->reason,
                 "a quoted field with line ends, %s, is followed by other text than a delimiter; "
                 "correct the quotes%s",
                 sl_quoted((sl_text){text + open, record->end - open}, quoted),
                 sl_delimited_quotes_advice);
    else
        snprintf(reject->reason, sizeof reject->reason,
                 "a quoted field is not closed before the end of the text: %s; correct the "
                 "quotes%s",
                 sl_quoted((sl_text){text + open, record->end - open}, quoted),
                 sl_delimited_quotes_advice);
    return true;
}

/* Does the quoted field that begins at `open` continue in the next line, or seem to? `at`: the
 * position after its closing quote, or the record's end. Then sets the reject. */
static bool continues(const sl_parser *parser, const sl_record *record, uint32_t open_at,
                      uint32_t at, sl_reject *reject) {
    const sl_dialect *d = parser->dialect;
    sl_text line = {parser->block->text.bytes + record->start, record->end - record->start};
    size_t open;
    char quoted[SL_QUOTED_ROOM];
    if (parser->block->divided)
        return misleads(parser, record, open_at, at, reject);
    if (d->stray_quotes || !sl_line_continues(line, d->delimiter, d->quote, &open))
        return false;
    reject->misread = true;
    snprintf(reject->reason, sizeof reject->reason, SL_LINE_CONTINUES "%s",
             sl_quoted((sl_text){line.bytes + open, line.length - open}, quoted),
             sl_delimited_quotes_advice);
    return true;
}

/* The position after a closing quote, and the blanks between it and a delimiter or the end. */
static uint32_t after_quote(const sl_dialect *d, const char *text, uint32_t close, uint32_t end) {
    uint32_t at = close + 1;
    while (at < end && text[at] == ' ' && d->notation)
        at++;
    return at >= end || text[at] == d->delimiter ? (at > end ? close + 1 : at) : close + 1;
}

/* The position of the quote that opens the field at `at`; `end`: the field is not quoted. A quote
 * after blanks opens a field only if another one closes it. */
static uint32_t opening_quote(const sl_dialect *d, const char *text, uint32_t at, uint32_t end) {
    uint32_t open = at;
    while (open < end && text[open] == ' ' && d->notation) /* the records of MOT have none */
        open++;
    if (open == end || text[open] != d->quote || open == at || d->blank_quotes)
        return open < end && text[open] == d->quote ? open : end;
    uint32_t close = (uint32_t)sl_closing_quote(text, open + 1, end, d->quote, d->escape);
    uint32_t after = close < end ? after_quote(d, text, close, end) : close;
    return close < end && (after == end || text[after] == d->delimiter) ? open : end;
}

static sl_line split_quoted(sl_parser *parser, sl_record *record, sl_reject *reject) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    uint32_t at = record->start;
    size_t count = 0;
    for (;;) {
        uint32_t before = at - 1, after;
        const char *column = count < d->column_count ? d->columns[count].published : NULL;
        const uint32_t open = opening_quote(d, text, at, record->end);
        if (open < record->end) {
            before = open;
            after = (uint32_t)sl_closing_quote(text, open + 1, record->end, d->quote, d->escape);
            at = after_quote(d, text, after, record->end);
            char quoted[SL_QUOTED_ROOM];
            if (after == record->end) {
                if (continues(parser, record, before, record->end, reject))
                    return SL_LINE_BAD;
                reject->column = column;
                snprintf(reject->reason, sizeof reject->reason,
                         "the quote that opens this field is never closed: %s",
                         sl_quoted((sl_text){text + before, record->end - before}, quoted));
                return SL_LINE_BAD;
            }
            if (at < record->end && text[at] != d->delimiter) {
                if (continues(parser, record, before, at, reject))
                    return SL_LINE_BAD;
                reject->column = column;
                snprintf(reject->reason, sizeof reject->reason,
                         "after the quote that closes this field comes %s, not a delimiter%s",
                         sl_quoted((sl_text){text + at, record->end - at}, quoted),
                         !d->escape && text[after - 1] == '\\'
                             ? "; if a backslash escapes quotes, load with --escape backslash"
                             : "");
                return SL_LINE_BAD;
            }
        } else {
            at = after = find_delimiter(d, text, at, record->end);
        }
        if (count < d->column_count) {
            parser->before[count] = before;
            parser->after[count] = after;
        }
        count++;
        if (at >= record->end)
            break;
        at++;
    }
    return check_count(parser, record, count, reject);
}

static sl_line split_blanks(sl_parser *parser, const sl_record *record, sl_reject *reject) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    sl_text fields[SL_COLUMNS_MAX];
    sl_text line = {text + record->start, record->end - record->start};
    size_t count = sl_blanks_split(line, d->blanks, fields, d->column_count);
    for (size_t f = 0; f < count && f < d->column_count; f++) {
        parser->before[f] = (uint32_t)(fields[f].bytes - text) - 1;
        parser->after[f] = parser->before[f] + 1 + (uint32_t)fields[f].length;
    }
    return check_count(parser, record, count, reject);
}

sl_line sl_record_split(sl_parser *parser, sl_record *record, sl_reject *reject) {
    sl_text line = {parser->block->text.bytes + record->start, record->end - record->start};
    const sl_dialect *d = parser->dialect;
    bool blanks_are_data = d->column_count == 1, same_order;
    /* In a column whose NULLs are known, an empty line is a record. */
    if (line.length == 0 ? !blanks_are_data || !d->null
                         : !blanks_are_data && sl_line_is_blank(line))
        return SL_LINE_BLANK;
    if (d->bare_escape && sl_text_equal(line, sl_text_of("\\."))) /* the end of COPY's data */
        return SL_LINE_BLANK;
    if (sl_line_is_header(d, line, &same_order)) {
        reject->misread = !same_order;
        snprintf(reject->reason, sizeof reject->reason,
                 "the line has the names of the header in another order, so the records after it "
                 "would be stored in the wrong columns: load the files that were joined here one "
                 "by one. If it is a record, load with a --schema (inspect --write-schema) that "
                 "has `header: false` and `skip_lines: 1`%s",
                 d->header_assumed ? "; if the first line is a record too, give --header no" : "");
        return same_order ? SL_LINE_HEADER : SL_LINE_BAD;
    }
    record->before = parser->before;
    record->after = parser->after;
    if (parser->dialect->blanks)
        return split_blanks(parser, record, reject);
    return parser->dialect->quote ? split_quoted(parser, record, reject)
                                  : split_plain(parser, record, reject);
}

bool sl_record_is_empty(sl_parser *parser, const sl_record *record) {
    const sl_dialect *d = parser->dialect;
    const char *at = parser->block->text.bytes + record->start;
    const size_t length = record->end - record->start;
    if (d->column_count == 1 || length != d->column_count - 1 || d->null || d->stores_null)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (at[i] != d->delimiter)
            return false;
    }
    parser->counts.blank_lines++;
    return true;
}

/* ---- values ---- */

bool sl_field_is_null(const sl_dialect *d, sl_text field, bool quoted) {
    if (quoted)
        return false;
    if (d->null && sl_text_equal(field, (sl_text){d->null, d->null_length}))
        return true;
    for (size_t i = 0; i < d->null_count; i++) {
        if (sl_text_equal(field, sl_text_of(d->nulls[i])))
            return true;
    }
    return false;
}

/* Must the field not be stored as text: is it \N, in a notation in which that means nothing? */
static bool field_is_doubtful(const sl_dialect *d, sl_text field, bool quoted) {
    return d->notation && !d->null && !d->notation_given && !quoted && field.length == 2 &&
           memcmp(field.bytes, "\\N", 2) == 0;
}

bool sl_field_may_be_empty(const sl_dialect *d, const sl_schema_column *schema) {
    return d->null && (sl_column_types[schema->type].empty || schema->invalid == SL_INVALID_TEXT);
}

bool sl_field_is_missing(const sl_dialect *d, const sl_schema_column *schema, sl_text field,
                         bool quoted) {
    if (sl_field_is_null(d, field, quoted))
        return true;
    if (field.length == 0)
        return !sl_field_may_be_empty(d, schema);
    for (size_t i = 0; i < schema->missing.count; i++) {
        const char *word = schema->missing.words[i];
        size_t at = 0;
        while (at < field.length && word[at] == field.bytes[at] && word[at] != '\0')
            at++;
        if (at == field.length && word[at] == '\0')
            return true;
    }
    return false;
}

/* Writes the text of a quoted field, without the quotes and escapes before other bytes, to `to`,
 * which may be the text itself. Returns the end. */
static char *unquote(const char *from, const char *end, char quote, char escape, char *to) {
    for (; from < end; from++) {
        bool escaped = escape && *from == escape;
        bool pair = from + 1 < end && ((escaped && (from[1] == quote || from[1] == escape)) ||
                                       (*from == quote && from[1] == quote));
        from += pair;
        *to++ = *from;
    }
    return to;
}

/* Removes the escapes from a text. NULL: the result is no text. */
static uint8_t *remove_escapes(const sl_notation *notation, uint8_t *text, uint8_t *end) {
    bool numeric = false;
    char *bytes = (char *)text;
    size_t length = sl_unescape(notation, bytes, (size_t)(end - text), bytes, &numeric);
    if (length == SIZE_MAX || memchr(bytes, '\0', length) ||
        (numeric && !sl_utf8_valid(bytes, length, NULL)))
        return NULL;
    return text + length;
}

uint8_t *sl_put_careful_text(const sl_dialect *dialect, sl_text field, bool quoted, uint8_t *to,
                             bool *transcoded) {
    const char bare = dialect->bare_escape;
    const bool escaped = bare && memchr(field.bytes, bare, field.length);
    if (sl_text_is_plain(field.bytes, field.length) && !quoted && !escaped)
        return sl_bson_put_text(to, field.bytes, field.length);
    if (memchr(field.bytes, '\0', field.length))
        return NULL;
    uint8_t *value = to + 4;
    const sl_encoding *encoding = dialect->encoding;
    size_t undefined;
    if ((!encoding || encoding->mixed) && sl_utf8_valid(field.bytes, field.length, NULL)) {
        to = sl_bson_copy(value, field.bytes, field.length);
    } else if (encoding) {
        to = sl_encoding_put(encoding, value, field, &undefined);
        if (!to)
            return NULL;
        *transcoded = true;
    } else {
        return NULL;
    }
    if (quoted && !bare) /* escapes are ASCII, so the transcoded text still has them */
        to = (uint8_t *)unquote((char *)value, (char *)to, dialect->quote, dialect->escape,
                                (char *)value);
    if (escaped && (sl_notation_strange(dialect->notation, dialect->strict, field) ||
                    !(to = remove_escapes(dialect->notation, value, to))))
        return NULL;
    *to++ = 0;
    sl_bson_put_int32(value - 4, (int32_t)(to - value));
    return to;
}

bool sl_leave_out(sl_parser *parser, size_t column) {
    if (parser->dialect->columns[column].schema.invalid != SL_INVALID_MISSING)
        return false;
    parser->left[parser->left_count++] = (uint16_t)column;
    return true;
}

uint8_t *sl_put_unusual(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *out,
                        bool *transcoded) {
    const sl_dialect *dialect = parser->dialect;
    const sl_schema_column *schema = &dialect->columns[column].schema;
    const sl_converter *converter = &dialect->converters[column];
    if (schema->trim)
        field = sl_field_trim(field, SL_TRIM_BOTH);
    const bool missing = sl_field_is_missing(dialect, schema, field, quoted);
    if (missing && (schema->required || !dialect->stores_null))
        return schema->required ? NULL : out;
    *out = missing ? SL_BSON_NULL : (uint8_t)dialect->columns[column].type;
    memcpy(out + 1, dialect->columns[column].key, converter->prefix_length - 1);
    if (missing)
        return out + converter->prefix_length;
    uint8_t *end = sl_put_value(parser, column, field, quoted, out, out + converter->prefix_length,
                                transcoded);
    return end || parser->scratch.no_room || !sl_leave_out(parser, column) ? end : out;
}

void sl_scratch_clear(sl_scratch *scratch) {
    free(scratch->bytes);
    sl_extjson_destroy(scratch->json);
}

bool sl_scratch_grow(sl_scratch *scratch, size_t room) {
    if (room > scratch->room) {
        char *bytes = realloc(scratch->bytes, 2 * room);
        if (!bytes)
            return false;
        scratch->bytes = bytes;
        scratch->room = 2 * room;
    }
    return true;
}

/* The field without quotes and escapes within it; itself if it has none. False: it has none of the
 * type. */
static bool plain_field(sl_parser *parser, sl_text *field, bool quoted) {
    const sl_dialect *d = parser->dialect;
    const char bare = d->bare_escape, byte = bare ? bare : quoted ? d->quote : 0;
    const char other = quoted ? d->escape : 0;
    bool numeric = false;
    if (!(byte && memchr(field->bytes, byte, field->length)) &&
        !(other && memchr(field->bytes, other, field->length)))
        return true;
    if ((bare && sl_notation_strange(d->notation, d->strict, *field)) ||
        !sl_scratch_grow(&parser->scratch, field->length + SL_SLACK))
        return false;
    char *to = parser->scratch.bytes;
    size_t length = !bare ? (size_t)(unquote(field->bytes, field->bytes + field->length, d->quote,
                                             d->escape, to) -
                                     to)
                          : sl_unescape(d->notation, field->bytes, field->length, to, &numeric);
    if (length == SIZE_MAX)
        return false;
    memset(to + length, 0, SL_SLACK);
    *field = (sl_text){to, length};
    return true;
}

/* Converts a field of JSON or an array, whose texts must be UTF-8. False: it has an undefined byte,
 * or memory is short. */
static bool convert_field(sl_parser *parser, sl_text *field, bool *transcoded) {
    const sl_encoding *encoding = parser->dialect->encoding;
    size_t undefined;
    if (!encoding || sl_text_is_plain(field->bytes, field->length) ||
        (encoding->mixed && sl_utf8_valid(field->bytes, field->length, NULL)))
        return true;
    if (!sl_scratch_grow(&parser->scratch, 3 * field->length + SL_SLACK))
        return false;
    char *to = parser->scratch.bytes;
    const uint8_t *end = sl_encoding_put(encoding, (uint8_t *)to, *field, &undefined);
    if (!end)
        return false;
    *field = (sl_text){to, (size_t)((const char *)end - to)};
    memset(to + field->length, 0, SL_SLACK);
    return *transcoded = true;
}

uint8_t *sl_put_value(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *out,
                      uint8_t *to, bool *transcoded) {
    const sl_dialect *dialect = parser->dialect;
    const sl_schema_column *schema = &dialect->columns[column].schema;
    const sl_column_type *type = &sl_column_types[schema->type];
    sl_value value = {.dialect = dialect,
                      .schema = schema,
                      .field = field,
                      .quoted = quoted,
                      .type = out,
                      .transcoded = transcoded};
    if (type->any_text && field_is_doubtful(dialect, field, quoted))
        return NULL;
    bool plain =
        type->any_text || ((!type->grows || convert_field(parser, &value.field, transcoded)) &&
                           plain_field(parser, &value.field, quoted));
    value.scratch = &parser->scratch;
    const size_t bound = type->value_bytes + field.length;
    value.limit = to + bound + parser->scratch.growth_left;
    uint8_t *end = plain ? type->put(&value, to) : NULL;
    if (end && type->grows && (size_t)(end - to) > bound)
        parser->scratch.growth_left -= (size_t)(end - to) - bound;
    if (end || schema->invalid != SL_INVALID_TEXT || parser->scratch.no_room)
        return end;
    *out = SL_BSON_TEXT;
    parser->left[parser->left_count++] = (uint16_t)(column | SL_KEPT_AS_TEXT);
    return sl_put_careful_text(dialect, field, quoted, to, transcoded);
}

/* ---- refused fields and records ---- */

/* Writes the reason for refusing a field of a lossless column, of a date with a format, or of a
 * type without reasons of its own. False for other columns. */
static bool explain_special(const sl_bound_column *column, sl_text field, char *out, size_t room) {
    const sl_schema_column *schema = &column->schema;
    char quoted[SL_QUOTED_ROOM], type[SL_TYPE_ROOM];
    double value;
    const sl_column_type *row = &sl_column_types[schema->type];
    bool number = row->class == SL_CLASS_NUMBERS && schema->type != SL_TYPE_DECIMAL;
    if (row->any_text || (row->explain && !schema->lossless && !schema->format))
        return false;
    if (sl_column_formats_differ(schema, field)) {
        snprintf(out, room,
                 "two formats of the column read %s as different dates: load the files of each "
                 "format with a schema of its own",
                 sl_quoted(field, quoted));
        return true;
    }
    const char *problem = number && sl_convert_double(field.bytes, field.length, &value)
                              ? "would be changed by the type"
                              : "does not fit the type";
    snprintf(out, room, "%s %s %s", sl_quoted(field, quoted), problem,
             sl_column_type_write(schema, type));
    return true;
}

/* Adds to the reason where a type that is not declared comes from, and what to do. A name with a
 * comma cannot be given to --types. */
static void explain_origin(const sl_bound_column *column, char *out, size_t room) {
    char name[48], declared[80], word[SL_WORD_ROOM(sizeof declared)];
    size_t used = strlen(out);
    sl_text_printable(sl_text_of(column->published), name, sizeof name);
    const int length = snprintf(declared, sizeof declared, "%s=text", column->published);
    const bool listed = length < (int)sizeof declared && !strchr(column->published, ',');
    used += sl_print_text(out + used, room - used,
                          column->schema.adopted ? ", which the column %s has in the collection"
                                                 : ", which was inferred for the column %s",
                          name);
    sl_print_text(out + used, room - used,
                  ": load all files again with --drop and %s%s%sa --schema (inspect "
                  "--write-schema)",
                  listed ? "--types " : "",
                  listed ? sl_shell_word(declared, word, sizeof word) : "",
                  listed ? ", or with " : "");
}

/* Writes the reason if a byte of the field is undefined in the encoding. */
static bool explain_encoding(const sl_encoding *encoding, sl_text field, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    size_t where;
    uint8_t *converted = encoding ? malloc(3 * field.length + 1) : NULL;
    bool undefined = converted && !sl_encoding_put(encoding, converted, field, &where);
    if (undefined) {
        char readings[SL_READINGS_ROOM];
        sl_encoding_readings_write(field, readings, sizeof readings);
        snprintf(out, room,
                 "byte 0x%02x at offset %zu of the field %s is undefined in %s: give --encoding: "
                 "%s",
                 (unsigned)(uint8_t)field.bytes[where], where, sl_quoted(field, quoted),
                 encoding->name, readings);
    }
    free(converted);
    return undefined;
}

/* Writes the reason if the field is \N where that means nothing, or has escapes that form no
 * text. */
static bool explain_escapes(const sl_dialect *d, sl_text field, bool quoted, char *out,
                            size_t room) {
    char shown[SL_QUOTED_ROOM];
    if (field_is_doubtful(d, field, quoted)) {
        snprintf(
            out, room,
            "\\N stands for NULL in exports of PostgreSQL and MySQL, and nothing else in the "
            "sample shows one: load with --dialect postgres or --dialect mysql; if only \\N is "
            "special, with --null '\\N'; if it is text, with --dialect csv");
        return true;
    }
    if (!d->bare_escape || !memchr(field.bytes, d->bare_escape, field.length))
        return false;
    if (explain_strange(d, field, sl_quoted(field, shown), out, room))
        return true;
    bool numeric = false;
    char *copy = malloc(field.length + 1);
    size_t length = copy ? sl_unescape(d->notation, field.bytes, field.length, copy, &numeric) : 0;
    const char *why =
        length == SIZE_MAX ? "ends with an incomplete escape"
        : copy && memchr(copy, '\0', length)
            ? "has an escaped NUL byte, which text cannot hold: declare the column as binary"
        : copy && numeric && !sl_utf8_valid(copy, length, NULL)
            ? "has escaped bytes that are not UTF-8"
            : NULL;
    free(copy);
    if (why)
        snprintf(out, room, "%s %s", sl_quoted(field, shown), why);
    return why != NULL;
}

/* Writes the reason for refusing the field of record->failed. */
static void record_explain(const sl_parser *parser, const sl_record *record, sl_reject *reject) {
    const sl_bound_column *column = &parser->dialect->columns[record->failed];
    const char *begin = parser->block->text.bytes + (uint32_t)(record->before[record->failed] + 1);
    const char *end = parser->block->text.bytes + record->after[record->failed];
    sl_text field = sl_field_trim((sl_text){begin, (size_t)(end - begin)}, parser->dialect->trim);
    char *out = reject->reason;
    size_t room = sizeof reject->reason;
    char quoted[SL_QUOTED_ROOM];
    reject->column = column->published;
    const uint32_t before = record->before[record->failed];
    const bool in_quotes = parser->dialect->quote && before != UINT32_MAX &&
                           parser->block->text.bytes[before] == parser->dialect->quote;
    if (sl_field_is_missing(parser->dialect, &column->schema, field, in_quotes)) {
        snprintf(out, room,
                 field.length == 0 ? "the field is empty, but must have a value"
                                   : "%s means \"no value\", but the field must have a value",
                 sl_quoted(field, quoted));
        return;
    }
    if (explain_encoding(parser->dialect->encoding, field, out, room) ||
        explain_escapes(parser->dialect, field, in_quotes, out, room))
        return;
    if (column->schema.invalid == SL_INVALID_TEXT) { /* only values that cannot be stored as text
                                                        either are refused */
        sl_explain_text(field, out, room);
        return;
    }
    if (explain_special(column, field, out, room)) {
        if (column->schema.inferred)
            explain_origin(column, out, room);
        return;
    }
    sl_column_types[column->schema.type].explain(&column->schema, field, out, room);
}

bool sl_record_count_left(sl_parser *parser, const sl_record *record) {
    const uint32_t count = parser->left_count;
    sl_sink *sink = parser->sink;
    bool left_out = false; /* kept texts are no sign of a header: in dumps it is a row */
    for (uint32_t i = 0; i < count; i++)
        left_out = left_out || !(parser->left[i] & SL_KEPT_AS_TEXT);
    parser->left_count = 0;
    if (left_out && is_header(parser, record)) {
        parser->counts.headers++;
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool kept = parser->left[i] & SL_KEPT_AS_TEXT;
        const size_t column = parser->left[i] & ~SL_KEPT_AS_TEXT;
        parser->counts.malformed_fields += !kept;
        if (sink->left_out)
            sink->left_out(sink, parser->dialect->columns[column].published, kept);
    }
    return true;
}

void sl_record_reject(sl_parser *parser, const sl_record *record, sl_reject *reject) {
    parser->left_count = 0;
    reject->offset = parser->block->offset + record->start;
    reject->line = record->line;
    reject->record =
        (sl_text){parser->block->text.bytes + record->start, record->end - record->start};
    parser->counts.rejects += !reject->misread;
    parser->sink->reject(parser->sink, reject);
}

#define SWALLOWED_LEAST 3u /* delimiters in the lines between the first and the last one */

/* The number of delimiters in a text, counted up to `most` + 1. */
static size_t delimiters_in(const sl_dialect *d, const char *from, const char *to, size_t most) {
    size_t count = 0;
    while (count <= most && from < to &&
           (from = memchr(from, d->delimiter, (size_t)(to - from))) != NULL) {
        count++;
        from++;
    }
    return count;
}

/* The first and the last line may have more delimiters, in other quoted fields. Most texts with
 * line ends are recognised by their second line. */
void sl_record_doubt(const sl_parser *parser, uint32_t start, uint32_t end, uint32_t line) {
    const sl_dialect *d = parser->dialect;
    const size_t each = d->column_count - 1;
    const char *begin = parser->block->text.bytes + start, *stop = parser->block->text.bytes + end;
    const char *first_end = memchr(begin, '\n', end - start);
    size_t between = 0;
    if (!first_end || each == 0 || !parser->sink->doubt)
        return;
    const char *at = first_end + 1, *next;
    for (; (next = memchr(at, '\n', (size_t)(stop - at))) != NULL; at = next + 1, between++) {
        if (delimiters_in(d, at, next, each) != each)
            return;
    }
    if (between * each < SWALLOWED_LEAST || delimiters_in(d, begin, first_end, each) < each ||
        delimiters_in(d, at, stop, each) < each)
        return;
    sl_reject record = {.offset = parser->block->offset + start, .line = line};
    snprintf(record.reason, sizeof record.reason,
             "a quoted field contains %s with as many fields as a record: is a quote not "
             "closed? Correct it, or, if quotes are data, give --quote none (in a schema `quotes: "
             "false`)",
             sl_plural(between, "line"));
    parser->sink->doubt(parser->sink, &record);
}

void sl_record_refuse(sl_parser *parser, const sl_record *record) {
    sl_reject reject = {0};
    parser->left_count = 0;
    if (is_header(parser, record)) {
        parser->counts.headers++;
        return;
    }
    record_explain(parser, record, &reject);
    sl_record_reject(parser, record, &reject);
}

bool sl_record_apply_keys(sl_parser *parser, const sl_record *record, uint8_t **end) {
    sl_reject reject = {0};
    sl_sink *sink = parser->sink;
    if (!sl_key_fields_apply(parser->dialect->keys, false, sink->cursor, end, &reject)) {
        sl_record_reject(parser, record, &reject);
        return false;
    }
    if (sink->offsets)
        sink->offsets[sink->documents] = parser->block->offset + record->start;
    return true;
}

void sl_record_refuse_size(sl_parser *parser, const sl_record *record) {
    sl_reject reject = {0};
    snprintf(reject.reason, sizeof reject.reason,
             "a record of %u bytes%s is too large for a document (16 MiB)",
             record->end - record->start,
             record->end - record->start > SL_BSON_DOCUMENT_MAX ? " or more" : "");
    sl_record_reject(parser, record, &reject);
}
