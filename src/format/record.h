/* SPDX-License-Identifier: Apache-2.0 */
/* Records of delimited text that are not on the fast path: lines that must be parsed byte by byte,
 * fields that the fast converters refuse, rejects. Private to the delimited engine. */
#ifndef SHARDLOAD_RECORD_H
#define SHARDLOAD_RECORD_H

#include "bson/bson_writer.h"
#include "delimited.h"

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
    uint32_t left_count; /* values of this record that are left out: their columns */
    uint16_t left[SL_COLUMNS_MAX];
} sl_parser;

/* The kind of a line that is not on the fast path. */
typedef enum sl_line { SL_LINE_RECORD, SL_LINE_BLANK, SL_LINE_HEADER, SL_LINE_BAD } sl_line;

/* Splits the line record->start..end into parser->before and after. On SL_LINE_BAD `reject` has
 * reason and column. */
sl_line sl_record_split(sl_parser *parser, sl_record *record, sl_reject *reject);

/* Does a line that is not a record repeat the header? */
bool sl_record_is_header(const sl_parser *parser, const sl_record *record);

/* Writes the element of a field that a fast converter refused, or nothing if the value is missing
 * and not required, or is left out. Returns the end; NULL when the field is refused. */
uint8_t *sl_put_unusual(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *out,
                        bool *transcoded);

/* The field does not fit. True: the column demands that its value is left out; this is recorded. */
bool sl_leave_out(sl_parser *parser, size_t column);

/* Counts the values that have been left out of a document. False: the record is a repeated header,
 * none of whose words fits; it is counted as such. */
bool sl_record_count_left(sl_parser *parser, const sl_record *record);

/* Is the field empty, or a word for a missing value? */
bool sl_field_is_missing(const sl_schema_column *schema, sl_text field);

/* Writes the value of a field that is not missing to `to`. The element's type, at `type`, has been
 * written, and is changed if the value determines the type. Returns the end; NULL when the field is
 * refused. */
uint8_t *sl_put_value(const sl_dialect *dialect, size_t column, sl_text field, bool quoted,
                      uint8_t *type, uint8_t *to, bool *transcoded);

/* Writes the value of a text that may contain bytes above 0x7F, NULs or escapes. NULL: refused. */
uint8_t *sl_put_careful_text(const sl_dialect *dialect, sl_text field, bool quoted, uint8_t *to,
                             bool *transcoded);

/* A record has line ends in its quoted fields: if each of its lines has as many delimiters as a
 * record, they may be records that an unclosed quote hides; reports that to the sink. */
void sl_record_doubt(const sl_parser *parser, uint32_t start, uint32_t end, uint32_t line);

/* Writes the reason for refusing the field of record->failed. */
void sl_record_explain(const sl_parser *parser, const sl_record *record, sl_reject *reject);

/* Rejects a record with a refused field; if it is a repeated header, counts it as such. */
void sl_record_refuse(sl_parser *parser, const sl_record *record);

/* Rejects a record whose document could exceed the server's limit. */
void sl_record_refuse_size(sl_parser *parser, const sl_record *record);

/* Changes the document at the sink's cursor by the dialect's key fields (key_fields.h), and keeps
 * the record's offset. False: the record is refused, and has been rejected. */
bool sl_record_apply_keys(sl_parser *parser, const sl_record *record, uint8_t **end);

/* Passes the reject to the sink and counts it. */
void sl_record_reject(sl_parser *parser, const sl_record *record, sl_reject *reject);

/* ---- nesting.c ---- */

/* Nested documents: columns with names such as origin.name, tags[0] or items[0].price are stored in
 * embedded documents and arrays.
 *
 * A name is nested if its parts, between the points, begin with a letter, an underscore or a byte
 * above 0x7F, and contain no blanks; so "No. of items" and "3.5 mm" are ordinary keys. If the names
 * contradict each other (a and a.b; x[0] and x.y; x[1] without x[0]), none is nested. */

typedef enum sl_nest_kind { SL_NEST_OPEN, SL_NEST_COLUMN, SL_NEST_CLOSE } sl_nest_kind;

typedef struct sl_nest_step {
    sl_nest_kind kind;
    bool array;      /* SL_NEST_OPEN: an array */
    bool point;      /* SL_NEST_OPEN: a GeoJSON point, whose coordinates follow */
    bool pair;       /* SL_NEST_CLOSE: of coordinates: both, or none is written */
    uint32_t column; /* SL_NEST_COLUMN */
    char *key;       /* "" in an array; owned */
} sl_nest_step;

/* How the documents of a dialect are written. */
typedef struct sl_nesting {
    sl_nest_step *steps;
    size_t count;
    size_t bytes; /* upper bound of what the embedding adds to a document */
} sl_nesting;

/* Compiles the keys of a dialect. `*nesting` is NULL if no key is nested. `*contradict` is true if
 * keys would be nested, but contradict each other or are parts of _id. SL_EXIT_SOURCE if a point
 * lacks a coordinate, has other fields, or cannot be embedded because the names contradict each
 * other. */
bool sl_nesting_create(const sl_dialect *dialect, sl_nesting **nesting, bool *contradict,
                       sl_error *error);
void sl_nesting_destroy(sl_nesting *nesting); /* NULL is fine */

/* Is the column stored in an array, or in a document of an array? */
bool sl_nesting_in_array(const sl_nesting *nesting, size_t column);

/* Writes the document of a record that has been split into fields. Empty documents and arrays are
 * left out; so are missing elements at the end of an array; missing elements before others become
 * null, so that each element keeps its index. A point of which a coordinate is missing is left out.
 * NULL: a field is refused, record->failed is its column. */
uint8_t *sl_put_nested(sl_parser *parser, sl_record *record, int64_t id, uint8_t *start);

#endif
