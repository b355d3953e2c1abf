/* SPDX-License-Identifier: Apache-2.0 */
/* Private to src/source: readers, and sequential sources whose blocks several readers take. */
#ifndef SHARDLOAD_SOURCE_READER_H
#define SHARDLOAD_SOURCE_READER_H

#include "archive.h"
#include "source_set.h"

/* Number of bytes read at once to find the end of a block's last line. */
#define SL_LOOKAHEAD ((size_t)64 << 10)

struct sl_reader {
    sl_source_set *set;
    char *buffer;
    size_t room;          /* without slack */
    int file;             /* open plain file, or -1 */
    size_t file_source;   /* index of that file's source */
    sl_open_source *open; /* the sequential source that the reader takes blocks of, or NULL */
    char entry[SL_ENTRY_NAME_ROOM]; /* archive entry of the last block returned */
    sl_reader_times times;
};

/* Enlarges the reader's buffer to at least `room` bytes. */
bool sl_reader_grow(sl_reader *reader, size_t room, sl_error *error);

struct sl_open_source {
    pthread_mutex_t lock;
    size_t source;
    unsigned users; /* number of readers; guarded by the set's lock */
    /* Guarded by `lock`: */
    sl_stream *stream;              /* NULL until the first block is taken, and after the last */
    char entry[SL_ENTRY_NAME_ROOM]; /* name of the current archive entry */
    uint64_t entry_number;          /* of that entry, from 1; 0 outside archives */
    bool entry_start;               /* no block of the entry has been taken */
    uint64_t stored_counted;        /* stored bytes added to the set's consumed_bytes so far */
    uint64_t offset;                /* of the next block's first line */
    uint64_t sequence;              /* of the next block */
    char *leftover;                 /* bytes read after the end of the last block */
    size_t leftover_length, leftover_room;
    bool splits;      /* the entry's records are found by the source's splitter */
    sl_split split;   /* the splitter's state at the beginning of the next block, if `splits` */
    bool skip_line;   /* the next bytes are the remainder of a line that was too long */
    bool ended;       /* the last block has been taken */
    sl_error failure; /* code not 0: there will be no more blocks */
};

/* Returns an open source with one user; NULL without memory. */
sl_open_source *sl_open_source_create(size_t source);
void sl_open_source_destroy(sl_open_source *open);

/* Takes the next block of an open source, under its lock. SL_READ_END: no block is left. */
sl_read_result sl_open_source_take(sl_reader *reader, sl_open_source *open, sl_source_block *block,
                                   sl_error *error);

void sl_kept_pipe_destroy(sl_kept_pipe *kept);

#endif
