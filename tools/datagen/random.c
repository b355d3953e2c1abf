// SPDX-License-Identifier: Apache-2.0
//
// Set-up of the random generator, the weighted choices and the permutations of random.h.
#include "random.h"

void rng_init(struct rng *rng, uint64_t seed) {
    // splitmix64 spreads any seed, zero included, over the whole state.
    for (int i = 0; i < 4; i++) {
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        rng->state[i] = z ^ (z >> 31);
    }
}

void permutation_init(struct permutation *permutation, struct rng *rng, uint32_t limit) {
    for (int i = 0; i < 3; i++) {
        uint64_t bits = rng_next(rng);
        permutation->factor[i] = (uint32_t)bits | 1;
        permutation->addend[i] = (uint32_t)(bits >> 32);
    }
    permutation->limit = limit;
}

// Every cell holds `sum` units; outcome i has weight * count units. A cell whose outcome has too
// few units is filled up by an outcome that has too many.
void alias_init(struct alias *alias, const uint32_t *weights, uint32_t count) {
    static uint64_t units[ALIAS_MAX];
    static uint32_t work[ALIAS_MAX];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += weights[i];
    }
    alias->count = count;
    // Outcomes with too few units are stacked from the bottom of `work`, all others from its top.
    uint32_t poor = 0;
    uint32_t rich = count;
    for (uint32_t i = 0; i < count; i++) {
        units[i] = (uint64_t)weights[i] * count;
        alias->cells[i] = (struct alias_cell){UINT32_MAX, i};
        if (units[i] < sum) {
            work[poor++] = i;
        } else {
            work[--rich] = i;
        }
    }
    while (poor > 0 && rich < count) {
        uint32_t small = work[--poor];
        uint32_t large = work[rich];
        alias->cells[small] = (struct alias_cell){(uint32_t)((units[small] << 32) / sum), large};
        units[large] -= sum - units[small];
        if (units[large] < sum) {
            rich++;
            work[poor++] = large;
        }
    }
}
