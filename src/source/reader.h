/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the source floor: a reader, and a source that readers take blocks of in turn. */
#ifndef SHARDLOAD_SOURCE_READER_H
#define SHARDLOAD_SOURCE_READER_H

#include "archive.h"
#include "source_set.h"

/* How much more is read when a line runs out of its block. */
#define SL_LOOKAHEAD ((size_t)64 << 10)

struct sl_reader {
    sl_source_set *set;
    char *buffer;
    size_t room;        /* without slack */
    int file;           /* open plain file, or -1 */
    size_t file_source; /* which */
    sl_open_source *own;
    char member[SL_ENTRY_NAME_ROOM]; /* of the block handed out last */
    sl_reader_times times;
};

/* Makes room for `room` bytes in the reader's buffer. */
bool sl_reader_grow(sl_reader *reader, size_t room, sl_error *error);

struct sl_open_source {
    pthread_mutex_t lock;
    size_t source;
    unsigned users;       /* under the set's lock */
    sl_stream *stream;    /* NULL until the first block is taken; this and all below: own lock */
    char member[SL_ENTRY_NAME_ROOM]; /* the name of its present entry */
    uint64_t member_number; /* of that entry; 0: no archive */
    bool member_start;    /* no block of the entry has been taken */
    uint64_t stored_seen; /* of stored bytes, added to the set's count so far */
    uint64_t offset;      /* where the next block's first line begins */
    uint64_t sequence;
    char *carry;          /* bytes read beyond the last block */
    size_t carry_length, carry_room;
    bool skip_line;       /* the rest of a line that was cut is still to come */
    bool ended;
    sl_error failure;     /* why there will be no more blocks; code 0: all is well */
};

/* An open source with one user; NULL without memory. */
sl_open_source *sl_open_source_create(size_t source);
void sl_open_source_destroy(sl_open_source *open);

/* The next block of an open source, under its lock. SL_READ_END: it has none left. */
sl_read_result sl_open_source_take(sl_reader *reader, sl_open_source *open, sl_source_block *block,
                                   sl_error *error);

void sl_kept_pipe_destroy(sl_kept_pipe *kept);

#endif
