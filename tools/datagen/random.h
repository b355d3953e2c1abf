// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that are the same on every machine: a 64-bit generator, weighted choice in
// constant time, and permutations of a range. Integers only, so that no rounding can differ between
// machines.
#ifndef DATAGEN_RANDOM_H
#define DATAGEN_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// xoshiro256++, started from one number.
struct rng {
    uint64_t state[4];
};

void rng_init(struct rng *rng, uint64_t seed);

static inline uint64_t rng_rotate(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

// The next 64 random bits.
static inline uint64_t rng_next(struct rng *rng) {
    uint64_t *s = rng->state;
    uint64_t result = rng_rotate(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotate(s[3], 45);
    return result;
}

static inline uint32_t low32(uint64_t bits) {
    return (uint32_t)bits;
}

static inline uint32_t high32(uint64_t bits) {
    return (uint32_t)(bits >> 32);
}

// Maps 32 random bits onto 0 .. n-1.
static inline uint32_t scale32(uint32_t bits, uint32_t n) {
    return (uint32_t)(((uint64_t)bits * n) >> 32);
}

// A weighted choice among `count` outcomes by Walker's alias method: cell i yields i below its
// threshold and its alias above.
enum { ALIAS_MAX = 1 << 14 };
struct alias {
    uint32_t count;
    struct alias_cell {
        uint32_t threshold;
        uint32_t other;
    } cells[ALIAS_MAX];
};

// Builds the table for 1 to ALIAS_MAX weights with a sum of 1 .. 2^31-1.
void alias_init(struct alias *alias, const uint32_t *weights, uint32_t count);

// Chooses with 32 random bits: the high part of their product with the count picks the cell, the
// low part is compared with its threshold.
static inline uint32_t alias_draw(const struct alias *alias, uint32_t bits) {
    uint64_t product = (uint64_t)bits * alias->count;
    uint32_t cell = (uint32_t)(product >> 32);
    const struct alias_cell *c = &alias->cells[cell];
    return (uint32_t)product < c->threshold ? cell : c->other;
}

// A permutation of 0 .. limit-1 chosen by a seed. Every step of the mixing can be undone modulo
// 2^31, so it permutes 31-bit numbers; repeating it while the result is too large makes it a
// permutation of the smaller range.
struct permutation {
    uint32_t factor[3]; // odd
    uint32_t addend[3];
    uint32_t limit; // at most 2^31
};

void permutation_init(struct permutation *permutation, struct rng *rng, uint32_t limit);

// The permuted value of `n` (below the limit).
static inline uint32_t permutation_at(const struct permutation *p, uint32_t n) {
    const uint32_t mask = 0x7FFFFFFF;
    do {
        n = (n * p->factor[0] + p->addend[0]) & mask;
        n ^= n >> 15;
        n = (n * p->factor[1] + p->addend[1]) & mask;
        n ^= n >> 13;
        n = (n * p->factor[2] + p->addend[2]) & mask;
        n ^= n >> 16;
    } while (n >= p->limit);
    return n;
}

#endif
