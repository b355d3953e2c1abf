/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: members that follow each other are one stream, as gzip itself has it. */
#include <stdlib.h>

#include <shardload/clock.h>
#include <shardload/log.h>

#include "inflate.h"
#include "unpack.h"

#define OUTPUT_BYTES ((size_t)64 << 10)

typedef struct gunzip_state {
    sl_input *packed;
    bool begun;       /* `inflater` is to be freed */
    bool member_open; /* inside a gzip member: an end here is a truncation */
    inflater inflater;
} gunzip_state;

/* Between members: another one may follow, or padding, or the end. */
static void next_member(gunzip_state *state) {
    sl_input *packed = state->packed;
    unsigned char next = *sl_input_at(packed);
    if (next == 0x1F) {
        inflater_next_member(&state->inflater);
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
    inflate_piece piece = {.in = packed->buffer + packed->used,
                           .in_left = sl_input_left(packed),
                           .out = out,
                           .out_left = room};
    int64_t start = sl_clock_ns();
    inflated result = inflater_run(&state->inflater, &piece);
    times->inflating += sl_clock_ns() - start;
    packed->used = packed->length - piece.in_left;
    *made = room - piece.out_left;
    if (result == INFLATED_ALL)
        state->member_open = false;
    else if (result == INFLATED_DAMAGED)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the gzip data is damaged near byte %llu, after %llu bytes of "
                            "text (%s); fetch the file again",
                            packed->name, (unsigned long long)sl_input_position(packed),
                            (unsigned long long)output->offset + *made, piece.fault);
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
        if (!state->member_open) {
            if (dry)
                return true;
            next_member(state);
            continue;
        }
        /* Also when there is no more input: the inflater may hold back some text. */
        if (!inflate_some(output, out, room, got, times, error))
            return false;
        if (dry && *got == 0 && state->member_open)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: the gzip data breaks off at byte %llu, after %llu bytes of "
                                "text; the file is truncated: fetch it again",
                                packed->name, (unsigned long long)packed->offset,
                                (unsigned long long)output->offset);
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
    state->begun = inflater_begin(&state->inflater);
    return state->begun ? sl_input_init(output, OUTPUT_BYTES, error)
                        : sl_error_memory(error, "opening gzip sources");
}

void sl_gunzip_clear(sl_input *output) {
    gunzip_state *state = output->context;
    if (state && state->begun)
        inflater_end(&state->inflater);
    free(state);
    sl_input_clear(output);
}
