/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up key-value records: the format `ycsb`, and the numbers that it draws.
 *
 *   {_id: int64, f0 ... f7: random bytes, n0 ... n7: int32, by Zipf's law}
 *
 * A document is a function of the options and of its record's number alone: all of its bytes that
 * are not fixed come from one sequence of 64-bit words, the generator SplitMix64 started with the
 * seed, of which each record has a stretch of equal length. docs/ycsb.md tells it to the letter, so
 * that other programs can make the same records. */
#ifndef SHARDLOAD_YCSB_H
#define SHARDLOAD_YCSB_H

#include <stdint.h>

#include <shardload/error.h>
#include <shardload/format.h>

extern const sl_format sl_format_ycsb;

/* A word, made from its place `state` in the sequence, which goes on in steps of SL_RANDOM_STEP:
 * word number i of the seed s is sl_random_word(s + (i + 1) * SL_RANDOM_STEP). After 2^64 words, of
 * which no two are equal, it begins anew. */
#define SL_RANDOM_STEP UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t sl_random_word(uint64_t state) {
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return state ^ (state >> 31);
}

/* ---- zipf.c: whole numbers from 0, each less frequent than the one before ---- */

#define SL_ZIPF_BITS 16
#define SL_ZIPF_VALUES (1u << SL_ZIPF_BITS)

/* A table of aliases. Slot i is drawn as often as any other, and gives i when the rest of the word
 * is below its threshold, else its alias. */
typedef struct sl_zipf {
    uint64_t slots[SL_ZIPF_VALUES]; /* threshold << SL_ZIPF_BITS | alias */
} sl_zipf;

/* Fills the table for the exponent `skew` (0 to 10): the value k comes up 1 / (k+1)^skew times as
 * often as the value 0; all alike when skew is 0. A value's share is wrong by 2^-36 of itself and
 * 2^-48 of the whole at most. False without memory. */
bool sl_zipf_make(sl_zipf *table, double skew, sl_error *error);

/* The value that a random word stands for, 0 to SL_ZIPF_VALUES - 1. */
static inline int32_t sl_zipf_draw(const sl_zipf *table, uint64_t word) {
    uint64_t slot = word >> (64 - SL_ZIPF_BITS);
    uint64_t entry = table->slots[slot];
    uint64_t rest = word & (UINT64_MAX >> SL_ZIPF_BITS);
    return (int32_t)(rest < entry >> SL_ZIPF_BITS ? slot : entry & (SL_ZIPF_VALUES - 1));
}

#endif
