/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server of each open cursor. A cursor belongs to the server that opened it, but the next
 * getMore may arrive on any client connection, and each connection routes through another
 * server. */

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
 * A table for at most `capacity` cursors (a power of two); a new cursor replaces the oldest one
 * when the table is full. NULL when out of memory. All functions may be called from any thread.
 */
struct cursors *cursors_create(size_t capacity);
void cursors_destroy(struct cursors *cursors);

/* Stores the server of the cursor `id` (not 0). */
void cursors_note(struct cursors *cursors, int64_t id, struct cursor_place place);

/* Finds a cursor. False if it is unknown. */
bool cursors_find(struct cursors *cursors, int64_t id, struct cursor_place *place);

/* Removes a cursor, if it is known. */
void cursors_forget(struct cursors *cursors, int64_t id);

#endif
