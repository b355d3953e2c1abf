/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited engine's inner loops, one version per instruction set. All versions give the same
 * results. Private to src/format. */
#ifndef SHARDLOAD_KERNELS_H
#define SHARDLOAD_KERNELS_H

#include "delimited.h"
#include "fields.h"
#include "scan.h"
#include "simd.h"

/* ---- marks: the positions in a stretch of text at which fields and lines end ---- */

#define SL_STRETCH_BYTES 8192u /* of text scanned at once; its lists fit into the L1 cache */

typedef struct sl_marks {
    uint32_t mark_count;
    uint32_t line_count;
    bool high; /* as in sl_scan, for the stretch and up to 63 bytes after it */
    bool odd;  /* as in sl_scan, for the same bytes */
    bool quoted;
    /* Positions of delimiters, line feeds and, in dialects with quotes, quotes:
     * marks[1..mark_count]. The caller may set marks[0] to the mark before the first field. */
    uint32_t marks[1 + SL_STRETCH_BYTES + 1 + SL_SCAN_SCRIBBLE];
    uint32_t lines[SL_STRETCH_BYTES + 1]; /* positions of line feeds: lines[0..line_count-1] */
    uint32_t escapes[SL_STRETCH_BYTES + 1 + SL_SCAN_SCRIBBLE]; /* of find_escaped only; ended by
                                                                   UINT32_MAX */
    /* Of find_records, which leaves out the marks and lines within quotes, and the quotes: */
    bool irregular; /* contains quotes that take_regular cannot read */
    /* Also of find_escaped: */
    uint16_t line_feeds;                    /* of the stretch, also those that are data */
    uint16_t numbers[SL_STRETCH_BYTES + 1]; /* how many of them lie before the end of lines[i] */
} sl_marks;

/* Adds the end of a last line without line feed. */
static inline void sl_marks_add_line_end(sl_marks *marks, uint32_t position) {
    marks->marks[++marks->mark_count] = position;
    marks->numbers[marks->line_count] = (uint16_t)(marks->line_feeds + 1);
    marks->lines[marks->line_count++] = position;
}

/* ---- instruction sets ---- */

struct sl_simd {
    const char *name;
    bool (*supported)(void); /* by this processor; NULL: by all */

    /* Finds the positions of the marks in text[start..stop), at most SL_STRETCH_BYTES. Reads up to
     * 63 bytes after `stop`. `quote`: the byte that quotes fields, or 0. */
    void (*find_marks)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                       char delimiter, char quote);

    /* As find_marks with quotes, of text[start..stop) that begins with a record: finds only the
     * marks outside of quoted fields, without the quotes. For dialects without escapes. */
    void (*find_records)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char quote);

    /* As find_marks, for a text without quotes in which `escape` makes the next byte data. */
    void (*find_escaped)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char escape);

    /* As sl_utf8_valid. */
    bool (*utf8_valid)(const char *text, size_t length);

    /* Each parses all lines of a stretch that starts at *start, and moves *start after them. False:
     * stop, as for sl_format.parse. take_plain is for UTF-8 text without NULs, quotes and escapes
     * that is not trimmed. */
    bool (*take_plain)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_trimmed)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_quoted)(sl_parser *parser, sl_marks *marks, uint32_t *start);  /* also trims */
    bool (*take_escaped)(sl_parser *parser, sl_marks *marks, uint32_t *start); /* of find_escaped */
    bool (*take_careful)(sl_parser *parser, sl_marks *marks, uint32_t *start); /* any text */

    /* For a stretch that contains quotes, in a divided block (see sl_block). Each parses the
     * complete records of the stretch, at least one, and sets *start to the position after the last
     * one. take_regular needs UTF-8 text without NULs and backslashes, and marks from find_records
     * that are not `irregular`. */
    bool (*take_regular)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_divided)(sl_parser *parser, sl_marks *marks, uint32_t *start, bool careful);

    /* See delimited_loop.c. */
    size_t (*pass_quotes)(const sl_dialect *dialect, const char *text, size_t at, size_t stop,
                          sl_quote_state *state);

    /* Writes the document of a record that has been split into fields. False: stop. */
    bool (*take_record)(sl_parser *parser, sl_record *record);
};

extern const sl_simd sl_simd_portable, sl_simd_sse2, sl_simd_avx2, sl_simd_neon;

/* ---- constants of the converters for vectors of sixteen bytes (delimited_sets.h) ---- */

/* They are defined in simd.c, because a compiler that knows their values computes them again for
 * each field. */

/* For a decimal number whose point has a certain index among sixteen bytes. */
typedef struct sl_point {
    uint8_t moves[16];  /* the shuffle that moves the bytes before the point to the point */
    double divisors[2]; /* 10 to the number of digits after the point; the same, negative */
} sl_point;

typedef struct sl_vector_constants {
    char zeros[16];
    char points[16]; /* '.' XOR '0' */
    uint8_t nines[16];
    int8_t tens[16];           /* weights of digits: of each pair, */
    int16_t hundreds[8];       /* of each pair of pairs, */
    int16_t thousands[8];      /* of each pair of these */
    uint8_t ends[32];          /* from index n on: the shuffle that moves n bytes to the end */
    sl_point point[17];        /* 16: there is no point */
    char date_form[16];        /* YYYY-MM-DD: its bytes with all digits 0, */
    uint8_t date_greatest[16]; /* the greatest value of each byte XOR the form's, */
    int8_t date_tens[16];      /* and weights, as above */
    int16_t date_hundreds[8];
    char time_form[16]; /* the same of hh:mm:ss */
    uint8_t time_greatest[16];
    int8_t time_tens[16];
    int16_t time_seconds[8];
} __attribute__((aligned(32))) sl_vector_constants;

extern const sl_vector_constants sl_vectors;

/* ---- the engine, for its loops ---- */

/* The position of the line feed that ends the record at `start` of a divided block, or the end of
 * the text. */
uint32_t sl_delimited_record_end(const sl_parser *parser, uint32_t start);

/* Parses a line of any kind, byte by byte. False: stop, as for sl_format.parse. */
bool sl_delimited_take_line(sl_parser *parser, sl_record *record);

#endif
