/* SPDX-License-Identifier: Apache-2.0 */
/* The structural scan: where, in 64 bytes of text, the bytes stand that cut it into fields.
 *
 * One function, sl_scan_64, in one version per instruction set; all give the same answer. Bit i of
 * a mask speaks of byte i. */
#ifndef SHARDLOAD_SCAN_H
#define SHARDLOAD_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SL_SCAN_BYTES 64u

typedef struct sl_scan {
    uint64_t marks; /* delimiters, line feeds and, where asked for, double quotes */
    uint64_t lines; /* line feeds */
    bool plain;     /* every byte is from 0x01 to 0x7F and, where quotes matter, no backslash */
    bool quoted;    /* there are quotes, where they matter */
} sl_scan;

/* How many bits are set. */
static inline uint32_t sl_scan_count(uint64_t mask) {
#ifdef __POPCNT__
    return (uint32_t)__builtin_popcountll(mask);
#else
    mask -= mask >> 1 & 0x5555555555555555u;
    mask = (mask & 0x3333333333333333u) + (mask >> 2 & 0x3333333333333333u);
    return (uint32_t)(((mask + (mask >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
#endif
}

#if defined(__SSE2__) && !defined(SL_SCAN_PORTABLE)

#include <emmintrin.h>

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, bool quotes) {
    const __m128i line_feeds = _mm_set1_epi8('\n');
    const __m128i delimiters = _mm_set1_epi8(delimiter);
    const __m128i one = _mm_set1_epi8(1);
    __m128i odd = _mm_setzero_si128(), quoted = _mm_setzero_si128();
    sl_scan scan = {0};
    for (unsigned i = 0; i < SL_SCAN_BYTES; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m128i lines = _mm_cmpeq_epi8(part, line_feeds);
        __m128i marks = _mm_or_si128(lines, _mm_cmpeq_epi8(part, delimiters));
        if (quotes) {
            __m128i here = _mm_cmpeq_epi8(part, _mm_set1_epi8('"'));
            marks = _mm_or_si128(marks, here);
            quoted = _mm_or_si128(quoted, here);
            odd = _mm_or_si128(odd, _mm_cmpeq_epi8(part, _mm_set1_epi8('\\')));
        }
        scan.lines |= (uint64_t)(unsigned)_mm_movemask_epi8(lines) << i;
        scan.marks |= (uint64_t)(unsigned)_mm_movemask_epi8(marks) << i;
        /* A byte, or the byte less 1, has its high bit set when it is 0 or above 0x7F. */
        odd = _mm_or_si128(odd, _mm_or_si128(part, _mm_sub_epi8(part, one)));
    }
    scan.plain = _mm_movemask_epi8(odd) == 0;
    scan.quoted = quotes && _mm_movemask_epi8(quoted) != 0;
    return scan;
}

#else

/* A bit for each zero byte of the word. */
static inline uint64_t sl_scan_zero_bytes(uint64_t word) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t zero = ~(((word & low) + low) | word | low);
    return (zero >> 7) * 0x0102040810204080u >> 56;
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, bool quotes) {
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t delimiters = ones * (uint8_t)delimiter;
    uint64_t odd = 0, quoted = 0;
    sl_scan scan = {0};
    for (unsigned i = 0; i < SL_SCAN_BYTES; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        uint64_t lines = sl_scan_zero_bytes(word ^ ones * '\n');
        uint64_t marks = lines | sl_scan_zero_bytes(word ^ delimiters);
        if (quotes) {
            uint64_t here = sl_scan_zero_bytes(word ^ ones * '"');
            marks |= here;
            quoted |= here;
            odd |= sl_scan_zero_bytes(word ^ ones * '\\') ? ones << 7 : 0;
        }
        scan.lines |= lines << i;
        scan.marks |= marks << i;
        odd |= word | (word - ones);
    }
    scan.plain = (odd & 0x8080808080808080u) == 0;
    scan.quoted = quoted != 0;
    return scan;
}

#endif

#endif
