/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash, after the paper of Aumasson and Bernstein (2012), with one round for each word and three
 * at the end; MD5, after section 3 of RFC 1321. Assume a little-endian machine, as bson_writer.h
 * does. */
#include "hash.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

static uint64_t rotate_word(uint64_t x, unsigned left) {
    return x << left | x >> (64 - left);
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate_word(v[1], 13) ^ v[0];
    v[3] = rotate_word(v[3], 16) ^ v[2];
    v[0] = rotate_word(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = rotate_word(v[1], 17) ^ v[2];
    v[3] = rotate_word(v[3], 21) ^ v[0];
    v[2] = rotate_word(v[2], 32);
}

uint64_t sl_seeded_hash(const void *bytes, size_t length, uint64_t seed) {
    const uint64_t second = seed ^ SL_HASH_B; /* half of the key */
    uint64_t v[4] = {seed ^ UINT64_C(0x736F6D6570736575), second ^ UINT64_C(0x646F72616E646F6D),
                     seed ^ UINT64_C(0x6C7967656E657261), second ^ UINT64_C(0x7465646279746573)};
    for (size_t at = 0; at <= length; at += 8) {
        const size_t rest = length - at;
        uint64_t word = rest < 8 ? (uint64_t)length << 56 : 0;
        memcpy(&word, (const uint8_t *)bytes + at, rest < 8 ? rest : 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t process_seed;

static void draw_seed(void) {
    struct timespec now;
    if (getrandom(&process_seed, sizeof process_seed, 0) == sizeof process_seed)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    process_seed = sl_hash_mix((uint64_t)now.tv_nsec ^ SL_HASH_A, (uint64_t)now.tv_sec ^ SL_HASH_B);
}

uint64_t sl_process_seed(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_seed);
    return process_seed;
}

/* ---- MD5 ---- */

/* Element i is the integer part of 2^32 times the absolute value of sin(i + 1). */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t rotate(uint32_t x, unsigned left) {
    return x << left | x >> (32 - left);
}

/* Step `i` of 64: changes `a`. */
#define STEP(a, b, c, d, function, i, word, left)                                                  \
    a = b + rotate(a + function(b, c, d) + words[(word) % 16] + sines[i], left)
#define ROUND(function, first, factor, offset, l0, l1, l2, l3)                                     \
    for (unsigned i = first; i < first + 16; i += 4) {                                             \
        STEP(a, b, c, d, function, i, (i + 0) * factor + offset, l0);                              \
        STEP(d, a, b, c, function, i + 1, (i + 1) * factor + offset, l1);                          \
        STEP(c, d, a, b, function, i + 2, (i + 2) * factor + offset, l2);                          \
        STEP(b, c, d, a, function, i + 3, (i + 3) * factor + offset, l3);                          \
    }

#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

static void take_block(uint32_t state[4], const uint8_t block[64]) {
    uint32_t words[16];
    memcpy(words, block, sizeof words);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    ROUND(F, 0, 1, 0, 7, 12, 17, 22)
    ROUND(G, 16, 5, 1, 5, 9, 14, 20)
    ROUND(H, 32, 3, 5, 4, 11, 16, 23)
    ROUND(I, 48, 7, 0, 6, 10, 15, 21)
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void sl_md5_begin(sl_md5 *md5) {
    static const uint32_t start[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    memcpy(md5->state, start, sizeof start);
    md5->length = 0;
}

void sl_md5_add(sl_md5 *md5, const void *bytes, size_t length) {
    const uint8_t *from = bytes;
    while (length > 0) {
        size_t at = md5->length % sizeof md5->block;
        size_t more = sizeof md5->block - at < length ? sizeof md5->block - at : length;
        memcpy(md5->block + at, from, more);
        md5->length += more;
        from += more;
        length -= more;
        if (at + more == sizeof md5->block)
            take_block(md5->state, md5->block);
    }
}

void sl_md5_end(sl_md5 *md5, uint8_t digest[SL_MD5_BYTES]) {
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = md5->length * 8;
    size_t at = md5->length % sizeof md5->block;
    /* At least one byte of padding, so that the 8 bytes of the length end a block. */
    sl_md5_add(md5, padding, (at < 56 ? 56 : 120) - at);
    sl_md5_add(md5, &bits, sizeof bits);
    memcpy(digest, md5->state, SL_MD5_BYTES);
}

const char *sl_md5_text(const char *text, char hex[2 * SL_MD5_BYTES + 1]) {
    uint8_t digest[SL_MD5_BYTES];
    sl_md5 md5;
    sl_md5_begin(&md5);
    sl_md5_add(&md5, text, strlen(text));
    sl_md5_end(&md5, digest);
    for (size_t i = 0; i < SL_MD5_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}
