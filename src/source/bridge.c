/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that libarchive calls back to read from an input. A piece handed to it stays in
 * the input's buffer until it asks for the next one. */
#include "bridge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <shardload/clock.h>

static la_ssize_t on_read(struct archive *library, void *context, const void **bytes) {
    sl_bridge *bridge = context;
    sl_input *input = bridge->input;
    if (!sl_input_peek(input, 1, bridge->times, bridge->error)) {
        bridge->input_failed = true;
        archive_set_error(library, EIO, "the input failed");
        return ARCHIVE_FATAL;
    }
    size_t left = sl_input_left(input);
    *bytes = sl_input_at(input);
    input->used = input->length;
    bridge->ran_out = left == 0;
    return (la_ssize_t)left;
}

static la_int64_t on_seek(struct archive *library, void *context, la_int64_t offset, int whence) {
    sl_bridge *bridge = context;
    uint64_t where;
    if (!bridge->input->seek(bridge->input, offset, whence, &where)) {
        archive_set_error(library, EIO, "cannot seek to byte %lld", (long long)offset);
        return ARCHIVE_FATAL;
    }
    bridge->ran_out = false;
    return (la_int64_t)where;
}

bool sl_bridge_open(sl_bridge *bridge) {
    struct archive *library = bridge->library;
    archive_read_set_read_callback(library, on_read);
    if (bridge->input->seek)
        archive_read_set_seek_callback(library, on_seek);
    archive_read_set_callback_data(library, bridge);
    return archive_read_open1(library) == ARCHIVE_OK;
}

void sl_bridge_enter(sl_bridge *bridge, sl_reader_times *times, sl_error *error) {
    bridge->times = times;
    bridge->error = error;
    bridge->began = sl_clock_ns();
    bridge->spent_before = times->reading + times->inflating;
}

void sl_bridge_leave(sl_bridge *bridge) {
    sl_reader_times *times = bridge->times;
    int64_t within = times->reading + times->inflating - bridge->spent_before;
    times->inflating += sl_clock_ns() - bridge->began - within;
    sl_input *input = bridge->input;
    uint64_t handed = input->offset - sl_input_left(input);
    la_int64_t used = archive_filter_bytes(bridge->library, -1);
    input->lent = used >= 0 && (uint64_t)used < handed ? (size_t)(handed - (uint64_t)used) : 0;
}

const char *sl_bridge_reason(sl_bridge *bridge) {
    const char *reason = archive_error_string(bridge->library);
    snprintf(bridge->reason, sizeof bridge->reason, "%s",
             reason && *reason ? reason : "unreadable");
    bridge->reason[strcspn(bridge->reason, "\n")] = '\0';
    return bridge->reason;
}
