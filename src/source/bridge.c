/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks by which libarchive reads from an input. A piece given to libarchive stays in the
 * input's buffer until libarchive asks for the next one. Bytes of it that libarchive has copied but
 * not consumed by then also stay in the buffer, so that the input can continue where libarchive
 * stops. */
#include "bridge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"

#define KEPT_MAX ((size_t)1 << 10) /* far below the room of any input */

/* Number of bytes given to libarchive that it has not consumed. */
static size_t unused(const sl_bridge *bridge) {
    uint64_t handed = bridge->input->offset - sl_input_left(bridge->input);
    la_int64_t read = archive_filter_bytes(bridge->library, -1);
    uint64_t used = bridge->base + (uint64_t)(read >= 0 ? read : 0);
    return read >= 0 && used < handed ? (size_t)(handed - used) : 0;
}

static void copy_next(sl_bridge *bridge, const unsigned char *bytes, size_t length) {
    size_t room = bridge->copy_room - bridge->copied;
    size_t piece = length < room ? length : room;
    memcpy(bridge->copy + bridge->copied, bytes, piece);
    bridge->copied += piece;
}

void sl_bridge_copy_next(sl_bridge *bridge, unsigned char *out, size_t room) {
    const sl_input *input = bridge->input;
    size_t kept = unused(bridge);
    bridge->copy = out;
    bridge->copied = 0;
    bridge->copy_room = kept <= input->used ? room : 0;
    if (bridge->copy_room > 0)
        copy_next(bridge, input->buffer + input->used - kept, kept);
}

size_t sl_bridge_copied(sl_bridge *bridge) {
    size_t copied = bridge->copied;
    bridge->copy_room = bridge->copied = 0;
    return copied;
}

static la_ssize_t on_read(struct archive *library, void *context, const void **bytes) {
    sl_bridge *bridge = context;
    sl_input *input = bridge->input;
    size_t kept = unused(bridge);
    if (kept > KEPT_MAX || kept > input->used)
        kept = 0;
    input->used -= kept;
    if (!sl_input_peek(input, kept + 1, bridge->times, bridge->error)) {
        bridge->input_failed = true;
        archive_set_error(library, EIO, "the input failed");
        return ARCHIVE_FATAL;
    }
    size_t left = sl_input_left(input) - kept;
    *bytes = sl_input_at(input) + kept;
    if (bridge->copied < bridge->copy_room)
        copy_next(bridge, *bytes, left);
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
    bridge->input->lent = unused(bridge);
}

bool sl_bridge_take_back(sl_bridge *bridge) {
    sl_input *input = bridge->input;
    uint64_t where, position = sl_input_position(input);
    bool buffered = input->lent <= input->used;
    if (buffered)
        input->used -= input->lent;
    input->lent = 0;
    return buffered || (input->seek && input->seek(input, (int64_t)position, SEEK_SET, &where));
}

const char *sl_bridge_reason(sl_bridge *bridge) {
    const char *reason = archive_error_string(bridge->library);
    snprintf(bridge->reason, sizeof bridge->reason, "%s",
             reason && *reason ? reason : "unreadable");
    bridge->reason[strcspn(bridge->reason, "\n")] = '\0';
    return bridge->reason;
}
