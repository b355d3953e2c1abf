/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for arrays and for types that need a large alignment. */
#ifndef SHARDLOAD_GROW_H
#define SHARDLOAD_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In bytes: for bson_t, bson_iter_t and structures that contain one. malloc aligns to 16. */
#define SL_ALIGNMENT_MOST 128

/* Zeroed memory for `count` items of any alignment, for free(). NULL without memory. */
static inline void *sl_zeroed(size_t count, size_t item_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, item_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return NULL;
    bytes = (bytes / SL_ALIGNMENT_MOST + 1) * SL_ALIGNMENT_MOST;
    void *made = aligned_alloc(SL_ALIGNMENT_MOST, bytes);
    return made ? memset(made, 0, bytes) : NULL;
}

/* Makes room for one more item in an array of `count` items of `item_bytes` bytes each. `*room` is
 * the number of items that fit. Returns the array, which may have moved; NULL without memory: the
 * array and `*room` are then unchanged. The pointer of an empty array may be NULL. */
static inline void *sl_grow(void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room)
        return items;
    size_t grown = *room > 0 ? *room * 2 : 16;
    const bool aligned = item_bytes % SL_ALIGNMENT_MOST == 0;
    void *made = aligned ? sl_zeroed(grown, item_bytes) : realloc(items, grown * item_bytes);
    if (!made)
        return NULL;
    if (aligned && count > 0)
        memcpy(made, items, count * item_bytes);
    if (aligned)
        free(items);
    *room = grown;
    return made;
}

#endif
