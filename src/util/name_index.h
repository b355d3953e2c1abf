/* SPDX-License-Identifier: Apache-2.0 */
/* Finds items of an array by a hash of their names, so that a file with very many names costs no
 * time that grows with the square of their number. The caller compares the names themselves. */
#ifndef SHARDLOAD_NAME_INDEX_H
#define SHARDLOAD_NAME_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

typedef struct sl_name_index {
    uint32_t *places; /* numbers of items plus 1; 0: none */
    size_t room;      /* a power of 2; 0: nothing has been added */
    size_t count;     /* of items */
} sl_name_index;

/* The hash of a database and a collection, in this process. */
static inline uint64_t sl_name_hash(const char *database, const char *collection) {
    return sl_seeded_hash(collection, strlen(collection),
                          sl_seeded_hash(database, strlen(database), sl_process_seed()));
}

static inline void sl_name_index_clear(sl_name_index *index) {
    free(index->places);
    *index = (sl_name_index){0};
}

/* The next item, from place *at on, which begins as the hash: its number, or SIZE_MAX for none. */
static inline size_t sl_name_index_next(const sl_name_index *index, uint64_t *at) {
    if (index->room == 0)
        return SIZE_MAX;
    const uint32_t found = index->places[(*at)++ & (index->room - 1)];
    return found ? found - 1 : SIZE_MAX;
}

/* Is there no room for another item? Then the caller makes room and adds all items again. */
static inline bool sl_name_index_is_full(const sl_name_index *index) {
    return 2 * (index->count + 1) > index->room;
}

/* Empties the index, with room for twice as many items as the array has. False without memory. */
static inline bool sl_name_index_reset(sl_name_index *index, size_t items) {
    size_t room = 64;
    while (room < 4 * (items + 1))
        room *= 2;
    sl_name_index_clear(index);
    index->places = calloc(room, sizeof *index->places);
    index->room = index->places ? room : 0;
    return index->places != NULL;
}

/* Adds the item of this number; the index is not full. */
static inline void sl_name_index_add(sl_name_index *index, uint64_t hash, size_t number) {
    while (index->places[hash & (index->room - 1)])
        hash++;
    index->places[hash & (index->room - 1)] = (uint32_t)number + 1;
    index->count++;
}

#endif
