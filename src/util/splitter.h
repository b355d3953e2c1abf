/* SPDX-License-Identifier: Apache-2.0 */
/* Splitters: find where records end in a text whose records are not lines, read sequentially. A
 * format provides one; src/source uses it to end blocks between records. */
#ifndef SHARDLOAD_SPLITTER_H
#define SHARDLOAD_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* Number of bytes at a text's beginning that decide whether its records are lines. */
#define SL_SPLIT_HEAD_BYTES 65536u

/* The state of a splitter within a text. Only the splitter reads `words`. */
typedef struct sl_splitting {
    uint64_t words[4];
    const char *fault; /* why the text cannot be split from here on; NULL: it can */
} sl_splitting;

typedef struct sl_splitter {
    /* Begins a text (a file, or an entry of an archive) by its first SL_SPLIT_HEAD_BYTES or,
     * with `whole`, all of it. False: its records are lines, and the other functions are not called. */
    bool (*begin)(sl_splitting *split, sl_text head, bool whole);
    /* Reads on, from the byte after the last one read, up to the first position between two records
     * that is not below `least`. Returns the number of bytes read: that position, and `*found`; or
     * text.length; or, with split->fault set, the position of the fault. SL_SLACK readable bytes
     * follow the text. */
    size_t (*read)(sl_splitting *split, sl_text text, size_t least, bool *found);
    /* Is the text complete? False, with split->fault, if it ends within a record or a list. */
    bool (*end)(sl_splitting *split);
} sl_splitter;

#endif
