/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a parser for the values that it cannot convert where they are. It grows with the
 * largest value of a block; nothing is allocated per record. fields.c has the functions. */
#ifndef SHARDLOAD_SCRATCH_H
#define SHARDLOAD_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sl_scratch {
    char *bytes;
    size_t room;
    struct sl_extjson *json; /* created when it is needed first */
    bool no_room;            /* a value that grows needs more room than its limit: try again */
    size_t growth;           /* bytes by which the values of a record may exceed their bounds */
    size_t growth_left;      /* of this record */
} sl_scratch;

#define SL_GROWTH_FIRST 8192u
#define SL_GROWTH_MAX ((size_t)64 << 20)

/* A value that grows needed more room: doubles it. False: a document cannot be that large. */
static inline bool sl_scratch_more(sl_scratch *scratch) {
    bool again = scratch->no_room && scratch->growth < SL_GROWTH_MAX;
    scratch->no_room = false;
    scratch->growth *= again ? 4 : 1;
    return again;
}

void sl_scratch_clear(sl_scratch *scratch);

/* Makes room for this many bytes. False: out of memory. */
bool sl_scratch_grow(sl_scratch *scratch, size_t room);

#endif
