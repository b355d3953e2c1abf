/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between sources, which divide text into blocks of complete records, and formats
 * whose records do not end at line ends (BSON, concatenated JSON), which know where a record ends.
 *
 * A source with such a format is read sequentially. Under the source's lock, the format's function
 * passes over the records of the text one after the other. A block holds the records that begin in
 * one MiB of the source's uncompressed stream, as it does for lines, so blocks do not depend on the
 * reader, on the number of threads, or on compression. */
#ifndef SHARDLOAD_SPLIT_H
#define SHARDLOAD_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* Where the search for the end of a block has got to. */
typedef struct sl_split {
    const void *context; /* as given with the function (sl_source_set_split) */
    /* The format's own: what a parser must know about the text before the position `at`. 0 at the
     * beginning of a source, and of an archive's entry; kept from block to block. Its value at the
     * beginning of a block is passed on to the parser of the block. */
    uint64_t state;
    /* The format's own; 0 at the beginning of a block. `at`: a record that has been found begins
     * here, or how much of the text has been searched. */
    size_t at;
    uint64_t inside[2];
} sl_split;

/* A function finds a block's end in a text of up to this many bytes behind `least`, at the latest.
 * Reading fails otherwise. */
#define SL_SPLIT_BYTES_MAX ((size_t)64 << 20)

/* Finds the end of a block: the first end of a record at or behind `least` (at least 1). `text`
 * begins with the block's first record and is followed by SL_SLACK readable bytes; `ended`: no text
 * follows it. Returns the block's length, and sets split->state to the state there. Returns 0 if
 * the end is not in the text: then the function is called again, with the same `split` and with
 * more text behind the same bytes. With `ended`, returns text.length if no record ends at or behind
 * `least`. Must depend on nothing but the text and the state at its beginning. */
typedef size_t sl_split_function(sl_split *split, sl_text text, size_t least, bool ended);

#endif
