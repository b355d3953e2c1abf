/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with NEON, which every 64-bit ARM processor has. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "convert_scalar.h"
#include "scan.h"

/* The mask of four comparisons: each byte keeps one bit, and three pairwise additions collect eight
 * bits in a byte. */
static inline uint64_t sl_scan_mask(const uint8x16_t equal[4]) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(bits);
    uint8x16_t first = vpaddq_u8(vandq_u8(equal[0], bit), vandq_u8(equal[1], bit));
    uint8x16_t second = vpaddq_u8(vandq_u8(equal[2], bit), vandq_u8(equal[3], bit));
    uint8x16_t all = vpaddq_u8(first, second);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    uint8x16_t marks[4], lines[4], quoted[4], high = vdupq_n_u8(0), odd = high;
    for (unsigned i = 0; i < 4; i++) {
        uint8x16_t part = vld1q_u8((const uint8_t *)bytes + 16 * i);
        lines[i] = vceqq_u8(part, vdupq_n_u8('\n'));
        marks[i] = vorrq_u8(lines[i], vceqq_u8(part, vdupq_n_u8((uint8_t)delimiter)));
        if (quote) {
            quoted[i] = vceqq_u8(part, vdupq_n_u8((uint8_t)quote));
            marks[i] = vorrq_u8(marks[i], quoted[i]);
            odd = vorrq_u8(odd, vceqq_u8(part, vdupq_n_u8('\\')));
        }
        high = vorrq_u8(high, part);
        odd = vorrq_u8(odd, vceqzq_u8(part));
    }
    return (sl_scan){.marks = sl_scan_mask(marks),
                     .lines = sl_scan_mask(lines),
                     .quotes = quote ? sl_scan_mask(quoted) : 0,
                     .high = vmaxvq_u8(high) > 0x7F,
                     .odd = vmaxvq_u8(odd) != 0};
}

/* ---- the vector operations of utf8_lookup.h ---- */

typedef uint8x16_t utf8_vec;
#define UTF8_VEC sizeof(utf8_vec)
#define utf8_load(bytes) vld1q_u8((const uint8_t *)(bytes))
#define utf8_set(byte) vdupq_n_u8(byte)
#define utf8_zero() vdupq_n_u8(0)
#define utf8_or(a, b) vorrq_u8(a, b)
#define utf8_and(a, b) vandq_u8(a, b)
#define utf8_xor(a, b) veorq_u8(a, b)
#define utf8_less(a, b) vqsubq_u8(a, b)
#define utf8_upper(a) vshrq_n_u8(a, 4)
#define utf8_lookup(table, numbers) vqtbl1q_u8(vld1q_u8(table), numbers)
#define utf8_before(now, last, n) vextq_u8(last, now, 16 - (n))
#define utf8_any(a) (vmaxvq_u8(a) != 0)
#define utf8_any_high(a) (vmaxvq_u8(a) > 0x7F)

#include "utf8_lookup.h"

#include "delimited_loop.h"

const sl_simd sl_simd_neon = {.name = "neon", SL_KERNELS};

#endif
