/* SPDX-License-Identifier: Apache-2.0 */
/* gzip through zlib: members that follow each other are one stream, as gzip itself has it. */
#include <stdlib.h>
#include <zlib.h>

#include <shardload/clock.h>
#include <shardload/log.h>

#include "unpack.h"

#define OUTPUT_BYTES ((size_t)64 << 10)

typedef struct gunzip_state {
    sl_input *packed;
    bool begun;       /* `inflater` is to be freed */
    bool member_open; /* inside a gzip member: an end here is a truncation */
    z_stream inflater;
} gunzip_state;

/* Between members: another one may follow, or padding, or the end. */
static void next_member(gunzip_state *state) {
    sl_input *packed = state->packed;
    unsigned char next = *sl_input_at(packed);
    if (next == 0x1F) {
        inflateReset(&state->inflater);
        state->member_open = true;
        return;
    }
    if (next != 0)
        sl_log_warning("%s: what follows the gzip data at byte %llu is not gzip and is ignored",
                       packed->name, (unsigned long long)sl_input_position(packed));
    packed->used = packed->length;
    packed->ended = true;
}

static bool inflate_some(sl_input *output, unsigned char *out, size_t room, size_t *made,
                         sl_reader_times *times, sl_error *error) {
    gunzip_state *state = output->context;
    sl_input *packed = state->packed;
    z_stream *z = &state->inflater;
    z->next_in = packed->buffer + packed->used;
    z->avail_in = (uInt)sl_input_left(packed);
    z->next_out = out;
    z->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
    uInt before = z->avail_out;
    int64_t start = sl_clock_ns();
    int result = inflate(z, Z_NO_FLUSH);
    times->inflating += sl_clock_ns() - start;
    packed->used = packed->length - z->avail_in;
    *made = before - z->avail_out;
    if (result == Z_STREAM_END)
        state->member_open = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the gzip data is damaged near byte %llu, after %llu bytes of "
                            "text (%s); fetch the file again",
                            packed->name, (unsigned long long)sl_input_position(packed),
                            (unsigned long long)output->offset + *made,
                            z->msg ? z->msg : "bad data");
    return true;
}

static bool fetch(sl_input *output, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    gunzip_state *state = output->context;
    sl_input *packed = state->packed;
    *got = 0;
    while (*got == 0) {
        if (!sl_input_peek(packed, 1, times, error))
            return false;
        bool dry = sl_input_left(packed) == 0;
        if (state->member_open && dry)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: the gzip data breaks off at byte %llu, after %llu bytes of "
                                "text; the file is truncated: fetch it again",
                                packed->name, (unsigned long long)packed->offset,
                                (unsigned long long)output->offset);
        if (dry)
            return true;
        if (!state->member_open)
            next_member(state);
        else if (!inflate_some(output, out, room, got, times, error))
            return false;
    }
    return true;
}

bool sl_gunzip_init(sl_input *output, sl_input *packed, sl_error *error) {
    *output = (sl_input){.fetch = fetch, .name = packed->name};
    gunzip_state *state = calloc(1, sizeof *state);
    output->context = state;
    if (!state)
        return sl_error_memory(error, "opening gzip sources");
    state->packed = packed;
    state->member_open = true;
    state->begun = inflateInit2(&state->inflater, 15 + 16) == Z_OK;
    return state->begun ? sl_input_init(output, OUTPUT_BYTES, error)
                        : sl_error_memory(error, "opening gzip sources");
}

void sl_gunzip_clear(sl_input *output) {
    gunzip_state *state = output->context;
    if (state && state->begun)
        inflateEnd(&state->inflater);
    free(state);
    sl_input_clear(output);
}
