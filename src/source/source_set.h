/* SPDX-License-Identifier: Apache-2.0 */
/* Private to src/source: the set of sources, the names of its files, and whether these have
 * changed. */
#ifndef SHARDLOAD_SOURCE_SET_H
#define SHARDLOAD_SOURCE_SET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#include "source.h"
#include "stream.h"

/* ---- names: many short strings in few allocations (a set may have hundreds of thousands of paths)
 * ---- */

typedef struct sl_name_chunk sl_name_chunk;

/* All zero: empty. */
typedef struct sl_names {
    sl_name_chunk *last;
} sl_names;

/* ---- repeated paths ---- */

/* A set of paths in 8 bytes each: their 64-bit hashes. Two paths that are the same file after
 * unpacking are equal: `a/b`, `./a//b`, `/a/b`. Two different paths are taken as equal with a
 * probability of 1 to 10^19 for each pair. */
typedef struct sl_path_set {
    uint64_t *hashes; /* open addressing; 0: free */
    size_t count, room;
    size_t most; /* of paths; 0: SL_PATH_SET_MOST */
} sl_path_set;

#define SL_PATH_SET_MOST ((size_t)12 << 20) /* paths: at most 128 MiB */

typedef enum sl_path_added {
    SL_PATH_NEW,
    SL_PATH_KNOWN,
    SL_PATH_TOO_MANY,
    SL_PATH_NO_MEMORY,
} sl_path_added;

sl_path_added sl_path_set_add(sl_path_set *set, const char *path);
bool sl_path_set_has(const sl_path_set *set, const char *path);
bool sl_path_same(const char *a, const char *b);
void sl_path_set_clear(sl_path_set *set);

/* ---- the set ---- */

typedef struct source_state {
    sl_source source;
    const sl_splitter *splitter; /* NULL: records are lines */
    const void *split_context;
    const char
        *special; /* why the file is never opened: it is a pipe, a dangling link ...; NULL: it
                            is a regular file, or named by the user */
    bool skip;
    bool opened;          /* a pipe that has been opened: it can be read only once */
    const uint64_t *done; /* borrowed; see sl_source_set_skip_blocks */
    size_t done_words;
    bool compare;    /* completed blocks are also read, for comparison */
    uint64_t spread; /* see sl_source_set_selects */
    unsigned passed; /* see sl_source_set_passed */
} source_state;

static inline bool sl_source_block_is_done(const source_state *state, uint64_t sequence) {
    return sequence >> 6 < state->done_words && (state->done[sequence >> 6] >> (sequence & 63) & 1);
}

/* The selection of blocks: part `part` (0 to parts - 1) of `parts`, and of that part a sample. */
typedef struct source_share {
    uint32_t part, parts;
    uint64_t sample; /* in units of 2^-64; UINT64_MAX: all blocks of the part */
} source_share;

/* A pipe whose head has been read. */
typedef struct sl_kept_pipe {
    struct sl_kept_pipe *next;
    size_t source;
    sl_stream *stream; /* in its first entry */
    char *head;        /* the bytes read; owned */
    size_t length;
    bool whole; /* they are the complete text */
} sl_kept_pipe;

/* A sequential source that is being read; see block.c. */
typedef struct sl_open_source sl_open_source;

struct sl_source_set {
    source_state *states; /* set at creation; sl_source_set_detect_kind changes the kind */
    size_t count, room;
    const char **folders; /* named by the user; in `paths` */
    size_t folder_count, folder_room;
    sl_names paths;
    const char *include;          /* in `paths`; may be NULL */
    bool dumps;                   /* archives of mongodump are accepted */
    const struct sl_sql_map *map; /* of an SQL dump; NULL: none is known. Borrowed */
    sl_kept_pipe *kept;
    uint64_t stored_bytes;
    _Atomic uint64_t consumed_bytes;
    _Atomic bool stopped;
    _Atomic bool changed;    /* sl_identity_check has found that a source's file has changed */
    source_share share;      /* `share` to `report_context`: set before the first read */
    sl_block_filter *filter; /* may be NULL */
    const void *filter_context;
    sl_skipped_entry_report *report; /* may be NULL */
    void *report_context;
    pthread_mutex_t lock;
    /* Guarded by `lock`: */
    sl_names entry_names;  /* returned by sl_source_head */
    uint32_t *order;       /* indexes of the sources in start order; NULL before the first block */
    size_t next;           /* index into `order` of the next source to begin */
    uint64_t next_block;   /* of that source, if it is splittable */
    sl_open_source **open; /* the sequential sources being read */
    size_t open_count, open_room;
};

/* Opens a source of kind SL_SOURCE_UNOPENED and sets its kind. The caller does not hold the set's
 * lock. */
bool sl_source_set_detect_kind(sl_source_set *set, size_t index, sl_error *error);

/* Fails if the stream has ended before the file's size: the bytes after it would be lost. */
bool sl_source_is_complete(const sl_source *source, const sl_stream *stream, sl_error *error);

/* Frees a sequential source that is being read, and a pipe (block.c). */
void sl_open_source_destroy(sl_open_source *open);
void sl_kept_pipe_destroy(sl_kept_pipe *kept);

/* The link to the kept pipe of a source; *link is NULL if there is none. */
static inline sl_kept_pipe **sl_kept_pipe_link(sl_source_set *set, size_t source) {
    sl_kept_pipe **link = &set->kept;
    while (*link && (*link)->source != source)
        link = &(*link)->next;
    return link;
}

/* Opens the stream of a source. */
bool sl_source_set_open(sl_source_set *set, size_t index, sl_stream **stream, sl_error *error);

/* ---- has a file changed? ---- */

/* Checked at each open, after each block read, and at the end.
 *
 * Compares a source's identity with that of the open descriptor `file`. False when the file has
 * changed; the error (SL_EXIT_SOURCE) describes the change. True for a source without identity. Any
 * thread. */
bool sl_identity_check_open(sl_source_set *set, size_t index, int file, sl_error *error);

/* The same for the file that is now at the source's path. */
bool sl_identity_check_path(sl_source_set *set, size_t index, sl_error *error);

#endif
