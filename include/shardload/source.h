/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: files, folders, archives and pipes, plain or compressed, handed out as blocks of whole
 * records to any number of threads at once. Knows nothing of formats: a record is a line.
 *
 * A block holds the lines that *begin* in one MiB of a source's uncompressed stream (see
 * document_id.h), so the cut does not depend on who reads, how many threads there are, or whether
 * the file is compressed.
 *
 * A zip or tar archive is one source: the members that are of use, unpacked, one behind the other
 * in archive order, each ended by a newline. A block never spans two members, so an archive's
 * blocks may be shorter than their MiB; the lines still begin in it. */
#ifndef SHARDLOAD_SOURCE_H
#define SHARDLOAD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/error.h>
#include <shardload/text.h>

typedef enum sl_source_kind {
    SL_SOURCE_PLAIN,      /* a regular file: read at any place by all threads */
    SL_SOURCE_GZIP,       /* one or more gzip members: sequential, as all below */
    SL_SOURCE_COMPRESSED, /* xz, zstd, bzip2, lz4, lzip, compress */
    SL_SOURCE_ARCHIVE,    /* zip, or tar, which may be compressed; so may be their members */
    SL_SOURCE_PIPE,       /* standard input, a FIFO: once; may carry any of the above */
    SL_SOURCE_FOREIGN,    /* sl_source_head has found that it is no text: a PDF, a 7-Zip archive */
    SL_SOURCE_MADE_UP,    /* no file at all: records without text, see sl_source_set_add_made_up */
    SL_SOURCE_UNSEEN,     /* found in a folder and not opened yet; sl_source_head tells the kind */
} sl_source_kind;

/* Which file a source is, as fstat returns it when it is first looked at; all zero for what is no
 * regular file. Times in nanoseconds since 1970. */
typedef struct sl_source_identity {
    uint64_t device, inode, size;
    int64_t modified_ns; /* mtime */
    int64_t changed_ns;  /* ctime: of the last change of contents, permissions, links or times */
} sl_source_identity;

/* A time of a file, in the form that `touch -d` takes; returns out. */
#define SL_FILE_TIME_ROOM 48
const char *sl_file_time_shown(int64_t ns, char out[SL_FILE_TIME_ROOM]);

bool sl_source_same_identity(const sl_source_identity *a, const sl_source_identity *b);

typedef struct sl_source {
    const char *path;      /* as the user would write it; "-" is standard input */
    const char *shown;     /* the same for messages: safe to print, and of a long one its end */
    uint64_t stored_bytes; /* on disk; 0 for a pipe; of made-up records, the room they stand on */
    sl_source_identity identity;
    sl_source_kind kind;
    bool named;            /* by the user himself, not found in a folder */
} sl_source;

/* Any thread can have any block of it without reading those in front. */
static inline bool sl_source_is_cut(const sl_source *source) {
    return source->kind == SL_SOURCE_PLAIN || source->kind == SL_SOURCE_MADE_UP;
}

typedef struct sl_source_set sl_source_set;

/* Longer lines are cut to this by the reader: no document can be made of them. */
#define SL_RECORD_BYTES_MAX ((size_t)16 << 20)

/* Finds the sources behind `paths`: folders are searched through, sorted by name, without hidden
 * files and __MACOSX; what they hold is not opened yet. `include` (may be NULL) is a shell pattern
 * for the names of files found in folders, and of the members of archives that are named in
 * `paths`; an archive found in a folder is picked by its own name and taken whole. Every path that
 * cannot be used is reported in one error (SL_EXIT_SOURCE). */
bool sl_source_set_create(const char *const *paths, size_t count, const char *include,
                          sl_source_set **set, sl_error *error);
void sl_source_set_destroy(sl_source_set *set); /* NULL is fine */

/* Adds a source of `records` made-up records, 1 to SL_MADE_UP_RECORDS_MAX. Its name is all that is
 * known of it, and who it is. Its blocks hold no bytes, only lengths; its head is empty. Before the
 * first block only. */
bool sl_source_set_add_made_up(sl_source_set *set, const char *name, uint64_t records,
                               sl_error *error);

size_t sl_source_set_count(const sl_source_set *set);
const sl_source *sl_source_set_at(const sl_source_set *set, size_t index);
uint64_t sl_source_set_stored_bytes(const sl_source_set *set); /* of all that are not left out */
/* Stored bytes read so far; any thread may ask. */
uint64_t sl_source_set_consumed_bytes(const sl_source_set *set);

/* Leaves a source out of what readers hand out. Before the first block only. */
void sl_source_set_skip(sl_source_set *set, size_t index);

/* The blocks of a source that are not needed: bit `sequence` of `words` 64-bit words, borrowed as
 * long as there are readers. Where sl_source_is_cut they are not read, unless `compare`; those of
 * any other source must be read. Those that are read are handed out with `done` set. Before the
 * first block only. */
void sl_source_set_skip_blocks(sl_source_set *set, size_t index, const uint64_t *done, size_t words,
                               bool compare);

/* Of all sources only this share of the blocks is wanted: above 0, below 1. Which ones depends on
 * nothing but the source's index (or spread) and the block's; they are evenly spread, also among the blocks
 * whose index has the same low bits. Those that are not wanted are handed out with `outside` set, and
 * without text where sl_source_is_cut. Before the first block only. */
void sl_source_set_sample(sl_source_set *set, double share);

/* Of all sources only one of `parts` parts (1 to `parts`) is wanted, which have no block in common
 * and are all blocks together; spread, and handed out, as a sample is. A sample is then a share of
 * the part. Before the first block only. */
void sl_source_set_part(sl_source_set *set, uint32_t part, uint32_t parts);
/* From where on the source's blocks are spread, instead of by its index: whoever loads another part
 * must use the same. Before the first block only. */
void sl_source_set_spread(sl_source_set *set, size_t index, uint64_t spread);
/* Of the blocks in part and sample only those are wanted of which the function says so; the others
 * are handed out like those. It is given the source's index, and an offset in the MiB in which the
 * block's lines begin; any thread may call it at any time. Before the first block only. */
typedef bool sl_source_choice(const void *context, size_t index, uint64_t offset);
void sl_source_set_choose(sl_source_set *set, sl_source_choice *choice, const void *context);
/* Is a block wanted? `offset` is any in the MiB in which its lines begin. Any thread. */
bool sl_source_set_wants(const sl_source_set *set, size_t index, uint64_t sequence,
                         uint64_t offset);

/* Reading fails with SL_EXIT_SOURCE as soon as a source is not the file any more that it was when
 * the set was created: replaced, grown, shrunk, rewritten or removed. What a reader has returned
 * was read from the unchanged file. These two tell the same at the end: is each source that is not
 * skipped still in its place, unchanged; and has any check found a change? */
bool sl_source_set_unchanged(sl_source_set *set, sl_error *error);
bool sl_source_set_has_changed(const sl_source_set *set);

/* Readers that wait for a pipe give up: their error is then of class SL_EXIT_INTERRUPTED. Any
 * thread. */
void sl_source_set_stop(sl_source_set *set);

/* The first bytes of the uncompressed stream, up to `room`, into `head`; of an archive, of its first
 * member that is of use. `*whole` when that is all there is. `*name` (may be NULL) is what the text
 * is called: the entry's name, or else the path; it lives as long as the set. A pipe keeps the
 * bytes for its readers. Before the first block only. */
bool sl_source_head(sl_source_set *set, size_t index, char *head, size_t room, size_t *length,
                    bool *whole, const char **name, sl_error *error);

/* Who a source is: a hash over its name without folders, its size and its first and last 64 KiB,
 * and its size. A pipe gets one of a kind; made-up records have no more than name and size. */
#define SL_FINGERPRINT_ROOM 48
#define SL_PIPE_FINGERPRINT "pipe-" /* what a pipe's begins with */
bool sl_source_fingerprint(sl_source_set *set, size_t index, char fingerprint[SL_FINGERPRINT_ROOM],
                           sl_error *error);

/* Do two regular files hold the same bytes as stored, to the last one? `*where` is the first byte that
 * differs. Reads both. True for made-up records. */
bool sl_source_same_text(sl_source_set *set, size_t a, size_t b, bool *same, uint64_t *where,
                         sl_error *error);

/* Is told of each entry of an archive that is not read, when it is met by a reader (or, in a pipe, by
 * sl_source_head): another archive, a PDF. Not of those that are hidden, empty, no files, or do not
 * match `include`. Both texts are safe to print, and valid during the call. Any thread, one at a time
 * for a source. Set it before anything is read. */
typedef void sl_source_passed_over(void *context, size_t source, const char *entry,
                                   const char *reason);
void sl_source_set_report(sl_source_set *set, sl_source_passed_over *report, void *context);

typedef struct sl_source_block {
    size_t source;     /* index into the set */
    uint64_t sequence; /* 0, 1, 2 ... within the source */
    uint64_t offset;   /* of text.bytes[0] in the uncompressed stream */
    sl_text text;      /* whole lines; may be empty. SL_SLACK readable bytes follow. The reader's,
                          until its next call. Of made-up records: no bytes (NULL), only a length */
    const char *member; /* the name of the archive's entry, safe to print; NULL when there is no
                           archive. The reader's, until its next call */
    uint64_t member_number; /* of that entry, from 1, among those that are read; 0: no archive */
    bool member_start; /* the first block of an entry, or of a source that is no archive */
    bool member_last;  /* the last block of an entry */
    bool last;         /* the last block of its source (which may be one that is skipped) */
    bool done;         /* see sl_source_set_skip_blocks */
    bool outside;      /* see sl_source_set_sample, _part, _choose */
} sl_source_block;

/* How a reader spent its time, in nanoseconds. */
typedef struct sl_reader_times {
    int64_t reading;
    int64_t inflating; /* and waiting for another thread that inflates the same file */
} sl_reader_times;

/* A reader is one thread's access to the set: its buffer and its open file. */
typedef struct sl_reader sl_reader;

bool sl_reader_create(sl_source_set *set, sl_reader **reader, sl_error *error);
void sl_reader_destroy(sl_reader *reader); /* NULL is fine */
const sl_reader_times *sl_reader_spent(const sl_reader *reader);

typedef enum sl_read_result { SL_READ_BLOCK, SL_READ_END, SL_READ_FAILED } sl_read_result;

/* The next block that nobody has had yet, from whichever source suits this thread. Sources that
 * can only be read from front to back are begun first, the largest first (a pipe counts as
 * largest), so that none of them is left over when all others are done; then come plain files in
 * their order. */
sl_read_result sl_reader_next(sl_reader *reader, sl_source_block *block, sl_error *error);

/* The first block of one source, for a look at it. Do not mix with sl_reader_next. */
bool sl_reader_first(sl_reader *reader, size_t index, sl_source_block *block, sl_error *error);

/* A look at more of one source: where sl_source_is_cut, its block `sequence`, which there must be; of
 * any other source the block behind the one that was looked at last, the first when that was of
 * another source, SL_READ_END behind the last. Do not mix with the two above. */
sl_read_result sl_reader_look(sl_reader *reader, size_t index, uint64_t sequence,
                              sl_source_block *block, sl_error *error);

#endif
