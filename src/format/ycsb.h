/* SPDX-License-Identifier: Apache-2.0 */
/* Generated key-value records: the format `ycsb`, and its random numbers.
 *
 *   {_id: int64, f0 ... f7: random bytes, n0 ... n7: int32, by Zipf's law}
 *
 * A document depends only on the options and on its record's number: its variable bytes come from
 * one sequence of 64-bit words, which the generator SplitMix64 produces from the seed: word number
 * i of seed s is sl_random_word(s + (i + 1) * SL_HASH_A). All records use the same number of words.
 * docs/ycsb.md specifies the records exactly, so that other programs can generate them. */
#ifndef SHARDLOAD_YCSB_H
#define SHARDLOAD_YCSB_H

#include <stdint.h>

#include "format.h"

/* The maximum size of the documents of a block, in bytes of BSON. It determines the number of
 * source bytes that a record counts as (document_id.h). Blocks must be small because a load repeats
 * blocks after an interruption, and distributes blocks over threads and shards. */
#define SL_YCSB_BLOCK_BSON_MAX ((size_t)16 << 20)

/* The bytes that each record counts as, a power of two. */
uint32_t sl_ycsb_record_bytes(const sl_ycsb_options *options);

/* ---- integers from 0, each less frequent than the one before ---- */

#define SL_ZIPF_BITS 16
#define SL_ZIPF_VALUES (1u << SL_ZIPF_BITS)

/* An alias table. All slots are drawn equally often; slot i gives i if the word's low bits are
 * below the slot's threshold, else the slot's alias. */
typedef struct sl_zipf {
    uint64_t slots[SL_ZIPF_VALUES]; /* threshold << SL_ZIPF_BITS | alias */
} sl_zipf;

/* Maps a random word to a value, 0 to SL_ZIPF_VALUES - 1. */
static inline int32_t sl_zipf_draw(const sl_zipf *table, uint64_t word) {
    uint64_t slot = word >> (64 - SL_ZIPF_BITS);
    uint64_t entry = table->slots[slot];
    uint64_t low = word & (UINT64_MAX >> SL_ZIPF_BITS);
    return (int32_t)(low < entry >> SL_ZIPF_BITS ? slot : entry & (SL_ZIPF_VALUES - 1));
}

#endif
