/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow by doubling. */
#ifndef SHARDLOAD_GROW_H
#define SHARDLOAD_GROW_H

#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more item in an array of `count` items of `item_bytes` bytes each. `*room` is
 * the number of items that fit. Returns the array, which may have moved; NULL without memory: the
 * array and `*room` are then unchanged. The pointer of an empty array may be NULL. */
static inline void *sl_grow(void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room)
        return items;
    size_t grown = *room > 0 ? *room * 2 : 16;
    items = realloc(items, grown * item_bytes);
    if (items)
        *room = grown;
    return items;
}

#endif
