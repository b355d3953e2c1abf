/* SPDX-License-Identifier: Apache-2.0 */
/* Lets libarchive read from an input, and keeps count of the time that it takes. */
#ifndef SHARDLOAD_SOURCE_BRIDGE_H
#define SHARDLOAD_SOURCE_BRIDGE_H

#include <archive.h>

#include "input.h"

typedef struct sl_bridge {
    struct archive *library; /* made and configured by the owner */
    sl_input *input;         /* borrowed */
    bool input_failed;       /* then the error is set already */
    bool ran_out;            /* the library asked for more bytes than there are */
    /* of the call under way */
    sl_reader_times *times;
    sl_error *error;
    int64_t began, spent_before;
    char reason[200];
} sl_bridge;

/* Opens bridge->library on bridge->input; false when libarchive refuses. To be called between
 * sl_bridge_enter and sl_bridge_leave, as everything that may read. */
bool sl_bridge_open(sl_bridge *bridge);

/* Around calls of libarchive: the time between the two counts as inflating, without what the
 * input has counted itself. */
void sl_bridge_enter(sl_bridge *bridge, sl_reader_times *times, sl_error *error);
void sl_bridge_leave(sl_bridge *bridge);

/* libarchive is done: the input goes on behind the last byte that it has used. False when that byte
 * cannot be returned to. */
bool sl_bridge_take_back(sl_bridge *bridge);

/* libarchive's own words for its last error. */
const char *sl_bridge_reason(sl_bridge *bridge);

#endif
