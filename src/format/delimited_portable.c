/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop in plain C; the structural scan reads eight bytes to a word. */
#include "convert_scalar.h"
#include "scan.h"
#include "utf8_scalar.h"

/* A bit for each zero byte of the word. */
static inline uint64_t sl_scan_zero_bytes(uint64_t word) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t zero = ~(((word & low) + low) | word | low);
    return (zero >> 7) * 0x0102040810204080u >> 56;
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    const uint64_t ones = 0x0101010101010101u, highs = 0x80 * ones;
    const uint64_t delimiters = ones * (uint8_t)delimiter;
    uint64_t high = 0, odd = 0;
    sl_scan scan = {0};
    for (unsigned i = 0; i < SL_SCAN_BYTES; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        uint64_t lines = sl_scan_zero_bytes(word ^ ones * '\n');
        uint64_t marks = lines | sl_scan_zero_bytes(word ^ delimiters);
        if (quote) {
            uint64_t here = sl_scan_zero_bytes(word ^ ones * (uint8_t)quote);
            marks |= here;
            scan.quotes |= here << i;
            odd |= sl_scan_zero_bytes(word ^ ones * '\\');
        }
        scan.lines |= lines << i;
        scan.marks |= marks << i;
        high |= word;
        odd |= (word - ones) & ~word & highs; /* not 0 if and only if one of the bytes is 0 */
    }
    scan.high = (high & highs) != 0;
    scan.odd = odd != 0;
    return scan;
}

#include "delimited_loop.h"

const sl_simd sl_simd_portable = {.name = "portable", SL_KERNELS};
