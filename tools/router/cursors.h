/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which server each open cursor lives on. A cursor belongs to the server that opened it, but the
 * next getMore for it may come through any client connection, each of which has a server of its own
 * to route through.
 */

#ifndef ROUTER_CURSORS_H
#define ROUTER_CURSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a cursor is continued: by the server's router code, or by the server itself. */
enum cursor_kind {
    CURSOR_OF_ROUTER, /* clusterGetMore */
    CURSOR_OF_SERVER, /* getMore */
};

struct cursor_place {
    size_t set; /* which set of servers, as an index into the topology */
    enum cursor_kind kind;
};

struct cursors;

/*
 * A table for at most `capacity` cursors (a power of two); the one noted longest ago makes room for
 * a new one. NULL when out of memory. All functions may be called from any thread.
 */
struct cursors *cursors_create(size_t capacity);
void cursors_destroy(struct cursors *cursors);

/* Notes where the cursor `id` (never 0) lives. */
void cursors_note(struct cursors *cursors, int64_t id, struct cursor_place place);

/* Finds a cursor. False when it is not known. */
bool cursors_find(struct cursors *cursors, int64_t id, struct cursor_place *place);

/* Forgets a cursor; one that is not known is no harm. */
void cursors_forget(struct cursors *cursors, int64_t id);

#endif
