/* SPDX-License-Identifier: Apache-2.0 */
/* The table that numbers by Zipf's law are drawn from.
 *
 * Each value gets its share of 2^64, as a whole number; the shares add up to 2^64 exactly, because
 * the value 0 has what the others leave. Then the shares are cut up over as many slots of equal
 * size (2^48) as there are values, so that no slot holds parts of more than two values: a slot that
 * its own value does not fill takes the rest from one that has too much (Walker's method of
 * aliases, with Vose's two lists). All of that is done in whole numbers: nothing is lost. */
#include <shardload/ycsb.h>

#include <math.h>
#include <stdlib.h>

#define SLOT (UINT64_C(1) << (64 - SL_ZIPF_BITS))

/* Shares of 2^64. The sum goes from the small to the large, and wraps to give value 0 its share. */
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
        return sl_error_memory(error, "making up records");
    }
    make_shares(shares, skew);
    /* Two stacks in one array: from the left those with too little for their slot, from the right
     * the others. */
    uint32_t small = 0, large = SL_ZIPF_VALUES;
    for (uint32_t k = 0; k < SL_ZIPF_VALUES; k++) {
        table->slots[k] = k; /* full of itself: threshold 0, and its own alias */
        if (shares[k] < SLOT)
            lists[small++] = k;
        else
            lists[--large] = k;
    }
    while (small > 0) { /* then one has too much as well, since the sum is exact */
        uint32_t needy = lists[--small], rich = lists[large];
        table->slots[needy] = shares[needy] << SL_ZIPF_BITS | rich;
        shares[rich] -= SLOT - shares[needy];
        if (shares[rich] < SLOT) {
            large++;
            lists[small++] = rich;
        }
    }
    free(shares);
    free(lists);
    return true;
}
