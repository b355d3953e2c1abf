/* SPDX-License-Identifier: Apache-2.0 */
/* The alias table for drawing numbers by Zipf's law.
 *
 * Each value gets an integer share of 2^64; the value 0 gets the remainder, so that the shares add
 * up to exactly 2^64. Walker's alias method, with Vose's two lists, then distributes the shares
 * over as many slots as there are values, each of size 2^48, with at most two values per slot: a
 * value whose share does not fill its slot is paired with a value whose share is larger than a
 * slot. The computation uses integers, so it is exact. */
#include "ycsb.h"

#include <math.h>
#include <stdlib.h>

#define SLOT (UINT64_C(1) << (64 - SL_ZIPF_BITS))

/* Computes the shares. Adds small terms first, for precision. shares[0] wraps from 0 to its
 * share. */
static void make_shares(uint64_t *shares, double skew) {
    double sum = 0;
    for (uint32_t k = SL_ZIPF_VALUES; k-- > 0;)
        sum += pow(k + 1.0, -skew);
    shares[0] = 0;
    for (uint32_t k = SL_ZIPF_VALUES; --k > 0;) {
        shares[k] = (uint64_t)ldexp(pow(k + 1.0, -skew) / sum, 64);
        shares[0] -= shares[k];
    }
}

bool sl_zipf_make(sl_zipf *table, double skew, sl_error *error) {
    uint64_t *shares = malloc(SL_ZIPF_VALUES * sizeof *shares);
    uint32_t *lists = malloc(SL_ZIPF_VALUES * sizeof *lists);
    if (!shares || !lists) {
        free(shares);
        free(lists);
        return sl_error_memory(error, "generating records");
    }
    make_shares(shares, skew);
    /* Two stacks in one array: from the left the values whose share is smaller than a slot, from
     * the right the other values. */
    uint32_t small = 0, large = SL_ZIPF_VALUES;
    for (uint32_t k = 0; k < SL_ZIPF_VALUES; k++) {
        table->slots[k] = k; /* threshold 0, and its own alias: always gives k */
        if (shares[k] < SLOT)
            lists[small++] = k;
        else
            lists[--large] = k;
    }
    while (small > 0) { /* the shares' sum is exact, so a value with more than a slot exists too */
        uint32_t under = lists[--small], over = lists[large];
        table->slots[under] = shares[under] << SL_ZIPF_BITS | over;
        shares[over] -= SLOT - shares[under];
        if (shares[over] < SLOT) {
            large++;
            lists[small++] = over;
        }
    }
    free(shares);
    free(lists);
    return true;
}
