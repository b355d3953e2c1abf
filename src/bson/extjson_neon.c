/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the Extended JSON parser with NEON. */
#if defined(__aarch64__)
#include "extjson_parser.h"

#include <arm_neon.h>

#define EXTJSON_STEP 16u

/* A bit for each byte of a comparison's result. */
static inline uint64_t bits_of(uint8x16_t equal) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t each = vandq_u8(equal, vld1q_u8(bits));
    uint64_t low = vaddv_u8(vget_low_u8(each)), high = vaddv_u8(vget_high_u8(each));
    return low | high << 8;
}

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    uint8x16_t part = vld1q_u8((const uint8_t *)from);
    vst1q_u8(to, part);
    uint8x16_t stop = vorrq_u8(vceqq_u8(part, vdupq_n_u8('"')), vceqq_u8(part, vdupq_n_u8('\\')));
    *high = bits_of(vcgeq_u8(part, vdupq_n_u8(0x80)));
    return bits_of(vorrq_u8(stop, vcltq_u8(part, vdupq_n_u8(0x20))));
}

#include "extjson_loop.h"

EXTJSON_KERNEL(neon);

#endif
