/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-16 with byte order mark, as a decoder: the text is converted to UTF-8, and then read like the
 * text of a compressed file. A surrogate without its other half becomes the three bytes that it
 * would have in UTF-8; these are not UTF-8, so that the parser rejects the record that contains
 * them. */
#include "decoder.h"

#include <stdlib.h>

#include "util/text.h"

#define CHARACTER_BYTES 6u /* maximum of UTF-8 for one unit: a lone surrogate and a character */

typedef struct utf16_state {
    bool begun; /* the byte order mark has been read */
    bool big_endian;
    bool half; /* `byte` is the first byte of a unit */
    uint8_t byte;
    uint32_t surrogate; /* the first half of a character; 0: none */
} utf16_state;

static void *utf16_create(void) {
    return calloc(1, sizeof(utf16_state));
}

static bool utf16_begin(void *state) {
    *(utf16_state *)state = (utf16_state){0};
    return true;
}

static void put(sl_decode_piece *piece, uint32_t code) {
    unsigned char *end = sl_utf8_put(piece->out, code);
    piece->out_left -= (size_t)(end - piece->out);
    piece->out = end;
}

static void take_unit(utf16_state *state, sl_decode_piece *piece, uint32_t unit) {
    if (!state->begun) {
        state->begun = true;
        state->big_endian = unit == 0xFFFE; /* units are read as little-endian before this */
        return;
    }
    bool second = unit >= 0xDC00 && unit < 0xE000;
    if (state->surrogate && second) {
        put(piece, 0x10000 + ((state->surrogate - 0xD800) << 10) + (unit - 0xDC00));
        state->surrogate = 0;
        return;
    }
    if (state->surrogate)
        put(piece, state->surrogate);
    state->surrogate = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
    if (!state->surrogate)
        put(piece, unit);
}

/* Without input, the text has ended: it is complete unless it ends within a unit. */
static sl_decoded utf16_run(void *state_, sl_decode_piece *piece) {
    utf16_state *state = state_;
    if (piece->in_left == 0) {
        if (state->surrogate && piece->out_left >= CHARACTER_BYTES)
            put(piece, state->surrogate);
        state->surrogate = 0;
        return state->half ? SL_DECODED_SOME : SL_DECODED_END;
    }
    while (piece->in_left > 0 && piece->out_left >= CHARACTER_BYTES) {
        uint8_t byte = *piece->in++;
        piece->in_left--;
        state->half = !state->half;
        if (state->half)
            state->byte = byte;
        else if (state->big_endian)
            take_unit(state, piece, (uint32_t)state->byte << 8 | byte);
        else
            take_unit(state, piece, (uint32_t)byte << 8 | state->byte);
    }
    return SL_DECODED_SOME;
}

const sl_decoder sl_decoder_utf16 = {utf16_create, utf16_begin, utf16_run, free};
