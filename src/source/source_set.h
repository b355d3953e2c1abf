/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the source floor: the set's state, shared by source_set.c and block.c. */
#ifndef SHARDLOAD_SOURCE_SET_H
#define SHARDLOAD_SOURCE_SET_H

#include <pthread.h>
#include <stdatomic.h>

#include <shardload/source.h>

#include "stream.h"

typedef struct source_state {
    sl_source source;
    bool skip;
    sl_stream *kept; /* a pipe that has been looked into, and what was read of it */
    char *kept_head;
    size_t kept_length;
} source_state;

/* A source that is being read from front to back; see block.c. */
typedef struct sl_open_source sl_open_source;

struct sl_source_set {
    source_state *states; /* set at creation */
    size_t count, room;
    size_t left_out;         /* files of folders that cannot be sources */
    uint64_t stored_bytes;
    _Atomic uint64_t consumed_bytes;
    pthread_mutex_t lock;    /* guards what follows */
    size_t next;             /* the first source that nobody has begun */
    uint64_t next_block;     /* of that source, when it is plain */
    sl_open_source **open;   /* those that are read from front to back */
    size_t open_count, open_room;
};

void sl_open_source_destroy(sl_open_source *open);
const char *sl_base_name(const char *path);

#endif
