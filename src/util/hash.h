/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit hash of a document's bytes. The sum of the hashes (modulo 2^64) identifies a set of
 * documents in any order. Detects accidental differences, not deliberate collisions. Must never
 * change between versions, since hashes are stored and compared later. */
#ifndef SHARDLOAD_HASH_H
#define SHARDLOAD_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SL_HASH_A UINT64_C(0x9E3779B97F4A7C15) /* the golden ratio's fraction, times 2^64 */
#define SL_HASH_B UINT64_C(0xB7E151628AED2A6B) /* e's fraction, times 2^64, made odd */

/* The exclusive or of both halves of the 128-bit product. */
static inline uint64_t sl_hash_mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t sl_hash(const uint8_t *bytes, size_t length) {
    uint64_t hash = SL_HASH_A ^ length;
    uint64_t words[2];
    for (size_t at = 0; at < length; at += sizeof words) {
        size_t rest = length - at;
        words[0] = words[1] = 0; /* pads the last words; the hash includes the length */
        memcpy(words, bytes + at, rest < sizeof words ? rest : sizeof words);
        hash = sl_hash_mix(words[0] ^ SL_HASH_A, words[1] ^ hash);
    }
    return sl_hash_mix(hash ^ SL_HASH_B, length ^ SL_HASH_A);
}

/* A hash for large texts: four independent chains of products, which the processor computes in
 * parallel. Its values differ from those of sl_hash. */
static inline uint64_t sl_hash_text(const char *bytes, size_t length) {
    uint64_t chains[4] = {SL_HASH_B, SL_HASH_B * 3, SL_HASH_B * 5, SL_HASH_B * 7};
    size_t at = 0;
    for (; length - at >= 64; at += 64) {
        uint64_t words[8];
        memcpy(words, bytes + at, sizeof words);
        for (int i = 0; i < 4; i++)
            chains[i] = sl_hash_mix(words[2 * i] ^ SL_HASH_A, words[2 * i + 1] ^ chains[i]);
    }
    uint64_t hash = sl_hash((const uint8_t *)bytes + at, length - at) ^ length;
    for (int i = 0; i < 4; i++)
        hash = sl_hash_mix(hash ^ SL_HASH_B, chains[i] ^ SL_HASH_A);
    return hash;
}

/* A hash for tables whose keys come from outside: SipHash-1-3. Without the seed, nobody can choose
 * texts with equal hashes, which would cost time that grows with the square of their number. */
uint64_t sl_seeded_hash(const void *bytes, size_t length, uint64_t seed);
/* A random seed, drawn once, for tables that are not stored. */
uint64_t sl_process_seed(void);
/* The hash of a text with that seed. */
static inline uint64_t sl_process_hash(const char *text) {
    return sl_seeded_hash(text, strlen(text), sl_process_seed());
}

/* splitmix64: the word for a state. A sequence adds SL_HASH_A to its state before each word. */
static inline uint64_t sl_random_word(uint64_t state) {
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return state ^ (state >> 31);
}

/* The next number of a fast random sequence (xorshift), not for secrets; *state is not 0. */
static inline uint64_t sl_random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* ---- MD5 ---- */

#define SL_MD5_BYTES 16

typedef struct sl_md5 {
    uint32_t state[4];
    uint64_t length;   /* bytes added so far */
    uint8_t block[64]; /* the last (length modulo 64) bytes, not yet hashed */
} sl_md5;

void sl_md5_begin(sl_md5 *md5);
/* Any number of calls; `length` may be 0. */
void sl_md5_add(sl_md5 *md5, const void *bytes, size_t length);
/* Call sl_md5_begin before `md5` is used again. */
void sl_md5_end(sl_md5 *md5, uint8_t digest[SL_MD5_BYTES]);
/* The MD5 of a text, as hexadecimal digits. Returns hex. */
const char *sl_md5_text(const char *text, char hex[2 * SL_MD5_BYTES + 1]);

#endif
