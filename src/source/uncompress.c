/* SPDX-License-Identifier: Apache-2.0 */
/* The format of compress(1) (.Z), through libarchive. The format has neither an end marker nor a
 * checksum: all bytes of the input are data. */
#include <errno.h>
#include <stdlib.h>

#include "bridge.h"
#include "unpack.h"

#define OUTPUT_BYTES ((size_t)64 << 10)

typedef struct uncompress_state {
    sl_bridge bridge;
    bool header_read, empty;
} uncompress_state;

/* For libarchive this is an archive of the format "raw" with one entry, or none when it is
 * empty. */
static bool read_header(uncompress_state *state) {
    struct archive_entry *entry;
    if (!sl_bridge_open(&state->bridge))
        return false;
    int result = archive_read_next_header(state->bridge.library, &entry);
    state->header_read = true;
    state->empty = result == ARCHIVE_EOF;
    return state->empty || result == ARCHIVE_OK;
}

static bool fetch(sl_input *output, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    uncompress_state *state = output->context;
    sl_bridge *bridge = &state->bridge;
    sl_bridge_enter(bridge, times, error);
    la_ssize_t result = -1;
    if (state->header_read || read_header(state))
        result = state->empty ? 0 : archive_read_data(bridge->library, out, room);
    sl_bridge_leave(bridge);
    *got = result > 0 ? (size_t)result : 0;
    if (result >= 0)
        return true;
    const sl_input *packed = bridge->input;
    if (archive_errno(bridge->library) == ENOMEM)
        return sl_error_memory(error, "unpacking sources");
    return !bridge->input_failed &&
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the compress data is damaged near byte %llu, after %llu bytes of text "
                        "(%s); fetch the file again",
                        packed->name, (unsigned long long)sl_input_position(packed),
                        (unsigned long long)output->offset, sl_bridge_reason(bridge));
}

bool sl_uncompress_init(sl_input *output, sl_input *packed, sl_error *error) {
    uncompress_state *state = calloc(1, sizeof *state);
    *output = (sl_input){.fetch = fetch, .name = packed->name, .context = state};
    struct archive *library = state ? archive_read_new() : NULL;
    if (!library)
        return sl_error_memory(error, "opening compressed sources");
    state->bridge = (sl_bridge){.library = library, .input = packed};
    return ((archive_read_support_format_raw(library) == ARCHIVE_OK &&
             archive_read_support_format_empty(library) == ARCHIVE_OK &&
             archive_read_support_filter_compress(library) == ARCHIVE_OK) ||
            sl_error_memory(error, "opening compressed sources")) &&
           sl_input_init(output, OUTPUT_BYTES, error);
}

void sl_uncompress_clear(sl_input *output) {
    uncompress_state *state = output->context;
    if (state)
        archive_read_free(state->bridge.library);
    free(state);
    sl_input_clear(output);
}
