/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited engine's inner loops, which exist once for each instruction set. All give the same
 * answers. Private to the format floor. */
#ifndef SHARDLOAD_KERNELS_H
#define SHARDLOAD_KERNELS_H

#include <shardload/simd.h>

#include "marks.h"
#include "record.h"

struct sl_simd {
    const char *name;
    bool (*supported)(void); /* by this processor */

    /* Finds the marks in text[start..stop), at most SL_STRETCH_BYTES, as positions in `text`. Reads
     * up to 63 bytes behind `stop`. */
    void (*find_marks)(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                       char delimiter, bool quotes);

    /* As sl_utf8_valid. */
    bool (*utf8_valid)(const char *text, size_t length);

    /* Each takes all lines of a stretch that starts at *start, and moves *start behind them. False
     * when the sink said stop. Plain: UTF-8 without NULs, quotes, escapes; nothing is trimmed. */
    bool (*take_plain)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_trimmed)(sl_parser *parser, sl_marks *marks, uint32_t *start);
    bool (*take_quoted)(sl_parser *parser, sl_marks *marks, uint32_t *start);  /* also trims */
    bool (*take_careful)(sl_parser *parser, sl_marks *marks, uint32_t *start); /* anything */

    /* Takes one record whose fields are known. False when the sink said stop. */
    bool (*take_record)(sl_parser *parser, sl_record *record);
};

/* Takes a line of any kind, byte by byte. False when the sink said stop. */
bool sl_delimited_take_line(sl_parser *parser, sl_record *record);

#endif
