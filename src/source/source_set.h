/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the source floor: the set's state, shared by source_set.c and block.c. */
#ifndef SHARDLOAD_SOURCE_SET_H
#define SHARDLOAD_SOURCE_SET_H

#include <pthread.h>
#include <stdatomic.h>

#include <shardload/source.h>

#include "names.h"
#include "stream.h"

typedef struct source_state {
    sl_source source;
    bool skip;
    const uint64_t *done; /* borrowed; see sl_source_set_skip_blocks */
    size_t done_words;
    bool compare;    /* they are read all the same, to be compared */
    uint64_t spread; /* where its first block stands among the shares; see sl_source_in_share */
} source_state;

static inline bool sl_source_block_is_done(const source_state *state, uint64_t sequence) {
    return sequence >> 6 < state->done_words && (state->done[sequence >> 6] >> (sequence & 63) & 1);
}

/* Whether a block belongs to the part and the sample. Multiples of the golden ratio, modulo 1, are
 * evenly spread over any stretch of blocks, and over any of those whose index has the same low bits:
 * so all ranges get their share (see ranges.c). Each source begins at another place (`spread`), which
 * keeps a folder of files of one block each from being taken whole. Parts are equal stretches of the places from 0 to 1, and a
 * sample is the beginning of each of them: so each part has its share of the sample. */
typedef struct source_share {
    uint32_t part, parts; /* 0 to parts - 1 */
    uint64_t sample;      /* UINT64_MAX: all of it */
} source_share;

static inline bool sl_source_in_share(const source_share *share, uint64_t spread,
                                      uint64_t sequence) {
    uint64_t place = sequence * UINT64_C(0x9E3779B97F4A7C15) + spread;
    unsigned __int128 among = (unsigned __int128)place * share->parts;
    return (uint64_t)(among >> 64) == share->part && (uint64_t)among <= share->sample;
}

/* A pipe that has been looked into, and what was read of it. */
typedef struct sl_kept_pipe {
    struct sl_kept_pipe *next;
    size_t source;
    sl_stream *stream; /* in its first member */
    char *head;
    size_t length;
} sl_kept_pipe;

/* A source that is being read from front to back; see sequential.c. */
typedef struct sl_open_source sl_open_source;

struct sl_source_set {
    source_state *states; /* made at creation; but see sl_source_set_look */
    size_t count, room;
    sl_names paths;
    const char *include;     /* in `paths`; may be NULL */
    sl_kept_pipe *kept;
    uint64_t stored_bytes;
    _Atomic uint64_t consumed_bytes;
    _Atomic bool stopped;
    _Atomic bool changed; /* a source is not the file any more that it was; identity.c */
    source_share share; /* of the blocks; set before the first one */
    sl_source_choice *choice; /* among them, the same; may be NULL */
    const void *choice_context;
    sl_source_passed_over *report; /* may be NULL */
    void *report_context;
    pthread_mutex_t lock;    /* guards what follows */
    sl_names members;        /* the names of the entries that sl_source_head has found */
    uint32_t *order;         /* in which sources are begun; made with the first block */
    size_t next;             /* the first in this order that nobody has begun */
    uint64_t next_block;     /* of that source, when it is plain */
    sl_open_source **open;   /* those that are read from front to back */
    size_t open_count, open_room;
};

/* Tells the kind of a source that nobody has looked into yet: SL_SOURCE_UNSEEN ends here. Only the
 * kind is written, under the set's lock, which the caller does not hold. */
bool sl_source_set_look(sl_source_set *set, size_t index, sl_error *error);

/* Opens the stream of a source. */
bool sl_source_set_open(sl_source_set *set, size_t index, sl_stream **stream,
                        sl_error *error);

const char *sl_base_name(const char *path);

#endif
