/* SPDX-License-Identifier: Apache-2.0 */
/* Lets libarchive read from an input, and measures libarchive's time. */
#ifndef SHARDLOAD_SOURCE_BRIDGE_H
#define SHARDLOAD_SOURCE_BRIDGE_H

#include <archive.h>

#include "input.h"

typedef struct sl_bridge {
    struct archive *library; /* created and configured by the owner */
    sl_input *input;         /* borrowed */
    uint64_t base;           /* the input's position when `library` was opened */
    bool input_failed;       /* reading failed; the error is set */
    bool ran_out;            /* libarchive requested bytes after the input's end */
    /* Of the current call. */
    sl_reader_times *times;
    sl_error *error;
    int64_t began, spent_before;
    char reason[200];
    /* See sl_bridge_copy_next. */
    unsigned char *copy;
    size_t copy_room, copied;
} sl_bridge;

/* Opens bridge->library on bridge->input; false when libarchive refuses. */
bool sl_bridge_open(sl_bridge *bridge);

/* Enclose each call of libarchive that may read, and sl_bridge_open. The time between the two calls
 * counts as inflating, except the time that the input itself has counted. */
void sl_bridge_enter(sl_bridge *bridge, sl_reader_times *times, sl_error *error);
void sl_bridge_leave(sl_bridge *bridge);

/* Copies the next `room` bytes that libarchive consumes to `out`, which is borrowed until
 * sl_bridge_copied ends this and returns the number of bytes copied. Not for libraries that
 * seek. */
void sl_bridge_copy_next(sl_bridge *bridge, unsigned char *out, size_t room);
size_t sl_bridge_copied(sl_bridge *bridge);

/* Ends libarchive's reading: the input continues after the last byte that libarchive has consumed.
 * False when the input cannot return to that byte. */
bool sl_bridge_take_back(sl_bridge *bridge);

/* libarchive's message for its last error, on one line. */
const char *sl_bridge_reason(sl_bridge *bridge);

#endif
