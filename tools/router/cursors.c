/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server of each open cursor: see cursors.h.
 *
 * One mutex protects all data. A thread locks it for a few memory accesses only, and never while it
 * waits for a socket.
 *
 * The slots of the cursors form a ring, which is filled in the order in which cursors are opened. A
 * chained hash table finds a cursor: `heads` has the first slot of each chain, and each slot has
 * the next slot of its chain. The slot of a removed cursor stays empty until the ring reaches it
 * again.
 */

#include "cursors.h"

#include <pthread.h>
#include <stdlib.h>

static const uint32_t NONE = UINT32_MAX;

struct slot {
    int64_t id; /* 0: empty, and in no chain */
    struct cursor_place place;
    uint32_t next;
};

struct cursors {
    pthread_mutex_t lock;
    size_t capacity; /* set at creation */
    size_t newest;   /* under the lock, like all that follows: the slot to fill next */
    uint32_t *heads;
    struct slot *slots;
};

struct cursors *cursors_create(size_t capacity) {
    struct cursors *cursors = calloc(1, sizeof *cursors);
    if (!cursors) {
        return NULL;
    }
    cursors->capacity = capacity;
    cursors->heads = malloc(capacity * sizeof *cursors->heads);
    cursors->slots = calloc(capacity, sizeof *cursors->slots);
    if (!cursors->heads || !cursors->slots || pthread_mutex_init(&cursors->lock, NULL) != 0) {
        free(cursors->heads);
        free(cursors->slots);
        free(cursors);
        return NULL;
    }
    for (size_t i = 0; i < capacity; i++) {
        cursors->heads[i] = NONE;
    }
    return cursors;
}

void cursors_destroy(struct cursors *cursors) {
    if (cursors) {
        pthread_mutex_destroy(&cursors->lock);
        free(cursors->heads);
        free(cursors->slots);
        free(cursors);
    }
}

/* Returns the link to the cursor's slot, in a head or in another slot. Its value is NONE if the
 * cursor is unknown. */
static uint32_t *find_link(struct cursors *cursors, int64_t id) {
    const uint64_t hash = (uint64_t)id * 0x9e3779b97f4a7c15u;
    uint32_t *link = &cursors->heads[(hash >> 32) & (cursors->capacity - 1)];
    while (*link != NONE && cursors->slots[*link].id != id) {
        link = &cursors->slots[*link].next;
    }
    return link;
}

static void unlink_cursor(struct cursors *cursors, int64_t id) {
    uint32_t *link = find_link(cursors, id);
    if (*link != NONE) {
        struct slot *slot = &cursors->slots[*link];
        *link = slot->next;
        slot->id = 0;
    }
}

void cursors_note(struct cursors *cursors, int64_t id, struct cursor_place place) {
    pthread_mutex_lock(&cursors->lock);
    uint32_t *link = find_link(cursors, id);
    if (*link != NONE) {
        cursors->slots[*link].place = place;
    } else {
        struct slot *slot = &cursors->slots[cursors->newest];
        if (slot->id != 0) {
            unlink_cursor(cursors, slot->id);
            link = find_link(cursors, id); /* the link may have been in the slot that was freed */
        }
        *slot = (struct slot){.id = id, .place = place, .next = NONE};
        *link = (uint32_t)cursors->newest;
        cursors->newest = (cursors->newest + 1) & (cursors->capacity - 1);
    }
    pthread_mutex_unlock(&cursors->lock);
}

bool cursors_find(struct cursors *cursors, int64_t id, struct cursor_place *place) {
    pthread_mutex_lock(&cursors->lock);
    const uint32_t *link = find_link(cursors, id);
    const bool found = *link != NONE;
    if (found) {
        *place = cursors->slots[*link].place;
    }
    pthread_mutex_unlock(&cursors->lock);
    return found;
}

void cursors_forget(struct cursors *cursors, int64_t id) {
    pthread_mutex_lock(&cursors->lock);
    unlink_cursor(cursors, id);
    pthread_mutex_unlock(&cursors->lock);
}
