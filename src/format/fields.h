/* SPDX-License-Identifier: Apache-2.0 */
/* Records of delimited text that are not on the fast path: lines that must be parsed byte by byte,
 * fields that the fast converters refuse, rejects. Private to the delimited engine. */
#ifndef SHARDLOAD_FIELDS_H
#define SHARDLOAD_FIELDS_H

#include "bson/bson_writer.h"
#include "delimited.h"
#include "scratch.h"

/* Field f lies between the bytes before[f] and after[f] of the block, which are delimiters, line
 * ends or the field's quotes. before[0] of a block's first record is UINT32_MAX, so that adding 1
 * gives 0. */
typedef struct sl_record {
    uint32_t start; /* of the line in the block's text */
    uint32_t end;   /* without its line end */
    const uint32_t *before;
    const uint32_t *after;
    uint32_t line;   /* number of the block's lines before it */
    size_t failed;   /* set by the converters: the column whose field was refused */
    bool transcoded; /* set by the converters */
    bool repaired;   /* has extra delimiters in the spill column */
} sl_record;

/* The reason with which a line is rejected begins with this if it lacks fields; typing.c counts
 * such lines by it. */
#define SL_TOO_FEW_FIELDS "too few fields"

static inline sl_text sl_field_trim(sl_text field, sl_trim trim) {
    if (trim != SL_TRIM_NOTHING) {
        while (field.length > 0 && field.bytes[field.length - 1] == ' ')
            field.length--;
        while (trim == SL_TRIM_BOTH && field.length > 0 && *field.bytes == ' ')
            field.bytes++, field.length--;
    }
    return field;
}

typedef struct sl_parser {
    const struct sl_simd *simd;
    const sl_dialect *dialect;
    const sl_block *block;
    sl_sink *sink;
    sl_parse_counts counts;
    uint32_t before[SL_COLUMNS_MAX];
    uint32_t after[SL_COLUMNS_MAX];
    const uint32_t *escapes; /* positions of escape characters, from the next record on */
    sl_scratch scratch;
    uint32_t
        left_count; /* values of this record that do not fit, but do not refuse it: the columns */
    uint16_t left[SL_COLUMNS_MAX]; /* whose values are left out; and with SL_KEPT_AS_TEXT */
} sl_parser;

#define SL_KEPT_AS_TEXT 0x8000u
_Static_assert(SL_COLUMNS_MAX < SL_KEPT_AS_TEXT, "a column and the mark fit into 16 bits");

/* The length of the header without the quotes around its fields, and without line end. */
size_t sl_header_unquoted_length(const sl_dialect *dialect);

/* Is the line the watched header of a dialect, or has it the same names, all or none in quotes?
 * Sets *same_order. */
bool sl_line_is_header(const sl_dialect *dialect, sl_text line, bool *same_order);

/* The kind of a line that is not on the fast path. */
typedef enum sl_line { SL_LINE_RECORD, SL_LINE_BLANK, SL_LINE_HEADER, SL_LINE_BAD } sl_line;

/* Splits the line record->start..end into parser->before and after. On SL_LINE_BAD `reject` has
 * reason and column. */
sl_line sl_record_split(sl_parser *parser, sl_record *record, sl_reject *reject);

/* Has the record only delimiters, as spreadsheets write empty rows? Then it is counted as a blank
 * line. No record of a notation in which empty fields are values. */
bool sl_record_is_empty(sl_parser *parser, const sl_record *record);

/* Writes the element of a field that a fast converter refused, or nothing if the value is missing
 * and not required, or is left out. Returns the end; NULL when the field is refused. */
uint8_t *sl_put_unusual(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *out,
                        bool *transcoded);

/* The field does not fit. True: the column demands that its value is left out; this is recorded. */
bool sl_leave_out(sl_parser *parser, size_t column);

/* Counts the values that have been left out of a document, or kept as text. False: the record
 * repeats the header, whose words do not fit the columns; it is counted as a header. */
bool sl_record_count_left(sl_parser *parser, const sl_record *record);

/* Is an empty field a value, in a notation that knows NULL: the empty text, also in a column that
 * keeps misfits as text? */
bool sl_field_may_be_empty(const sl_dialect *dialect, const sl_schema_column *schema);

/* Is the value missing: is the field empty, NULL, or a word for a missing value? */
bool sl_field_is_missing(const sl_dialect *dialect, const sl_schema_column *schema, sl_text field,
                         bool quoted);

/* Is the field NULL? */
bool sl_field_is_null(const sl_dialect *dialect, sl_text field, bool quoted);

/* Writes the value of a field that is not missing to `to`. The element's type, at `type`, has been
 * written, and is changed if the value determines the type. Returns the end; NULL when the field is
 * refused. */
uint8_t *sl_put_value(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *type,
                      uint8_t *to, bool *transcoded);

/* Writes the value of a text that may contain bytes above 0x7F, NULs or escapes. NULL: refused. */
uint8_t *sl_put_careful_text(const sl_dialect *dialect, sl_text field, bool quoted, uint8_t *to,
                             bool *transcoded);

/* A record has line ends in its quoted fields: if each of its lines has as many delimiters as a
 * record, they may be records that an unclosed quote hides; reports that to the sink. */
void sl_record_doubt(const sl_parser *parser, uint32_t start, uint32_t end, uint32_t line);

/* Rejects a record with a refused field; if it is a repeated header, counts it as such. */
void sl_record_refuse(sl_parser *parser, const sl_record *record);

/* Rejects a record whose document could exceed the server's limit. */
void sl_record_refuse_size(sl_parser *parser, const sl_record *record);

/* Changes the document at the sink's cursor by the dialect's key fields (key_fields.h), and keeps
 * the record's offset. False: the record is refused, and has been rejected. */
bool sl_record_apply_keys(sl_parser *parser, const sl_record *record, uint8_t **end);

/* Passes the reject to the sink and counts it. */
void sl_record_reject(sl_parser *parser, const sl_record *record, sl_reject *reject);

#endif
