/* SPDX-License-Identifier: Apache-2.0 */
/* splitmix64, a generator of random numbers with a state of 64 bits. */
#ifndef QUERY_RANDOM_H
#define QUERY_RANDOM_H

#include <stdint.h>

/* Returns 64 random bits and advances the state. Any initial state is good. */
static inline uint64_t sl_splitmix64(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

#endif
