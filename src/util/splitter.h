/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between sources, which divide text into blocks of complete records, and formats
 * whose records do not end at every line end (BSON, JSON, quoted line ends), which know where a
 * record ends.
 *
 * A source with a splitter is read sequentially: under the source's lock, the splitter finds the
 * ends of the records one after the other. A block holds the records whose first byte lies in one
 * MiB of the source's uncompressed stream. Sources of lines have such blocks, too. So blocks do not
 * depend on the reader, on the number of threads, or on compression. */
#ifndef SHARDLOAD_SPLITTER_H
#define SHARDLOAD_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* Number of bytes at a text's beginning that decide whether its records are lines. */
#define SL_SPLIT_HEAD_BYTES 65536u

/* The state of the search for the end of a block. All 0 at the beginning of a text (a file, or
 * an entry of an archive), except for `context`. */
typedef struct sl_split {
    const void *context; /* as given with the splitter (sl_source_set_splitter) */
    /* Private to the splitter, kept from block to block: what is known about the text before `at`.
     * The value of `state` at the beginning of a block is passed on to the block's parser. */
    uint64_t state;
    uint64_t words[4];
    /* Private to the splitter; 0 at the beginning of a block. `at`: how much of the text has been
     * searched, or where a record begins that has been found. */
    size_t at;
    uint64_t inside[2];
    const char *fault; /* why the text cannot be divided from `at` on; NULL: no fault */
} sl_split;

/* A splitter finds a block's end in a text of up to this many bytes after `least`, or sets a
 * fault. */
#define SL_SPLIT_BYTES_MAX ((size_t)64 << 20)

typedef struct sl_splitter {
    /* Do the records of a text that begins with these SL_SPLIT_HEAD_BYTES (`whole`: the complete
     * text) end elsewhere than at every line end? If not, its records are lines, and `find_end` is
     * not called. NULL: always true. */
    bool (*divides)(sl_text head, bool whole);
    /* Finds the end of a block: the first end of a record at or after `least` (at least 1). `text`
     * begins with the block's first record and is followed by SL_SLACK readable bytes; `ended`: no
     * text follows it. Returns the block's length, and sets split->state to the state at that
     * position. Returns 0 with split->fault set if the text cannot be divided, and 0 without it if
     * the end is not in the text: then the function is called again, with the same `split` and with
     * more text after the same bytes. With `ended`, returns text.length if no record ends at or
     * after `least`. The result must depend only on the text and on the state at its beginning. */
    size_t (*find_end)(sl_split *split, sl_text text, size_t least, bool ended);
    bool binary; /* the records are not text: no line end is added to an archive's entries */
} sl_splitter;

#endif
