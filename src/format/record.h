/* SPDX-License-Identifier: Apache-2.0 */
/* Records of delimited text off the fast path: lines that must be looked at byte by byte, fields
 * that the fast converters refuse, rejects. Private to the delimited engine. */
#ifndef SHARDLOAD_RECORD_H
#define SHARDLOAD_RECORD_H

#include <shardload/bson_writer.h>
#include <shardload/delimited.h>

/* Field f stands between the bytes before[f] and after[f] of the block: delimiters, line ends or
 * its quotes. The first field of a block has UINT32_MAX before it, so that adding 1 gives 0. */
typedef struct sl_record {
    uint32_t start; /* of the line in the block's text */
    uint32_t end;   /* without its line end */
    const uint32_t *before;
    const uint32_t *after;
    uint32_t line;   /* lines of the block before it */
    size_t failed;   /* set by the converters: the column that was refused */
    bool transcoded; /* set by the converters */
    bool repaired;   /* has extra delimiters in the column that takes them */
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
} sl_parser;

/* What a line that did not fit the fast path turned out to be. */
typedef enum sl_line { SL_LINE_RECORD, SL_LINE_BLANK, SL_LINE_HEADER, SL_LINE_BAD } sl_line;

/* Splits the line record->start..end into parser->before and after. On SL_LINE_BAD `reject` has
 * reason and column. */
sl_line sl_record_split(sl_parser *parser, sl_record *record, sl_reject *reject);

/* Is the line, which is no record, a repetition of the header? */
bool sl_record_is_header(const sl_parser *parser, const sl_record *record);

/* The element for a field that a fast converter did not take, or nothing (`out` itself) when the
 * field is missing and may be. NULL when it is refused. */
uint8_t *sl_put_unusual(const sl_dialect *dialect, size_t column, sl_text field, bool quoted,
                        uint8_t *out, bool *transcoded);

/* A text field's value where there are bytes above 0x7F, NULs or escapes. NULL when refused. */
uint8_t *sl_put_careful_text(const sl_dialect *dialect, sl_text field, bool quoted, uint8_t *to,
                             bool *transcoded);

/* Says why record->failed was refused. */
void sl_record_explain(const sl_parser *parser, const sl_record *record, sl_reject *reject);

/* A record with a field that was refused: rejected, unless it is a repeated header. */
void sl_record_refuse(sl_parser *parser, const sl_record *record);

/* Rejects a record that may become too large for a document. */
void sl_record_refuse_size(sl_parser *parser, const sl_record *record);

/* Hands the reject over and counts it. */
void sl_record_reject(sl_parser *parser, const sl_record *record, sl_reject *reject);

#endif
