/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited engine's inner loops, one version per instruction set. All versions give the same
 * results. Private to src/format. */
#ifndef SHARDLOAD_KERNELS_H
#define SHARDLOAD_KERNELS_H

#include "simd.h"

#include "marks.h"
#include "quoted.h"
#include "record.h"

struct sl_simd {
    const char *name;
    bool (*supported)(void); /* by this processor */

    /* Finds the positions of the marks in text[start..stop), at most SL_STRETCH_BYTES. Reads up to
     * 63 bytes after `stop`. `quote`: the byte that quotes fields, or 0. */
    void (*find_marks)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                       char delimiter, char quote);

    /* As find_marks with quotes, of text[start..stop) that begins with a record: finds only the
     * marks outside of quoted fields, without the quotes. For dialects without escapes. */
    void (*find_records)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char quote);

    /* As sl_utf8_valid. */
    bool (*utf8_valid)(const char *text, size_t length);

    /* Each parses all lines of a stretch that starts at *start, and moves *start after them. False:
     * stop, as for sl_format.parse. take_plain is for UTF-8 text without NULs, quotes and escapes
     * that is not trimmed. */
    bool (*take_plain)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_trimmed)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_quoted)(sl_parser *parser, sl_marks *marks, uint32_t *start);  /* also trims */
    bool (*take_careful)(sl_parser *parser, sl_marks *marks, uint32_t *start); /* any text */

    /* For a stretch that contains quotes, in a divided block (see sl_block). Each parses the
     * complete records of the stretch, at least one, and sets *start to the position after the last
     * one. take_regular needs UTF-8 text without NULs and backslashes, and marks from find_records
     * that are not `irregular`. */
    bool (*take_regular)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_divided)(sl_parser *parser, sl_marks *marks, uint32_t *start, bool careful);

    /* See quoted_loop.h. */
    size_t (*pass_quotes)(const sl_dialect *dialect, const char *text, size_t at, size_t stop,
                          sl_quote_state *state);

    /* Writes the document of a record that has been split into fields. False: stop. */
    bool (*take_record)(sl_parser *parser, sl_record *record);
};

/* The position of the line feed that ends the record at `start` of a divided block, or the end of
 * the text. */
uint32_t sl_delimited_record_end(const sl_parser *parser, uint32_t start);

/* Parses a line of any kind, byte by byte. False: stop, as for sl_format.parse. */
bool sl_delimited_take_line(sl_parser *parser, sl_record *record);

#endif
