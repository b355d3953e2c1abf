/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the Extended JSON parser in plain C, eight bytes at a time. */
#include "extjson_parser.h"

#define EXTJSON_STEP 8u

/* A bit for each byte whose highest bit is set. */
static inline uint64_t high_bits(uint64_t word) {
    return ((word >> 7) & 0x0101010101010101u) * 0x0102040810204080u >> 56;
}

/* The highest bit of each byte that is zero; exact. */
static inline uint64_t zero_bytes(uint64_t word) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    return ~(((word & low) + low) | word | low);
}

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
    uint64_t stop = zero_bytes(word ^ ones * '"') | zero_bytes(word ^ ones * '\\') |
                    zero_bytes(word & ones * 0xE0);
    *high = high_bits(word);
    return high_bits(stop);
}

#include "extjson_loop.h"

EXTJSON_KERNEL(portable);
