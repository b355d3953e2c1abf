/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: files, folders, archives and pipes, plain or compressed, read as blocks of complete
 * lines by any number of threads at once. This module does not parse formats: a record is a line,
 * or what a function of the format finds (sl_source_set_splitter).
 *
 * A block holds the lines that *begin* in one MiB of a source's uncompressed stream (see
 * document_id.h), so block boundaries do not depend on the reader, on the number of threads, or on
 * compression.
 *
 * An SQL dump is an archive of tables (sql_dump.h).
 *
 * A zip or tar archive is one source: its readable entries, unpacked and concatenated in archive
 * order, each ended by a newline. A block never spans two entries, so an archive's blocks may be
 * shorter than their MiB; their lines still begin in it. */
#ifndef SHARDLOAD_SOURCE_H
#define SHARDLOAD_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/splitter.h"
#include "util/text.h"

typedef enum sl_source_kind {
    SL_SOURCE_PLAIN,      /* a regular file: all threads read it, at any offset */
    SL_SOURCE_GZIP,       /* one or more gzip streams; sequential, as the next three kinds are */
    SL_SOURCE_COMPRESSED, /* xz, zstd, bzip2, lz4, lzip, compress */
    SL_SOURCE_ARCHIVE,    /* zip, tar or SQL dump; the archive and its entries may be compressed */
    SL_SOURCE_PIPE,       /* standard input or a FIFO: readable once; content of any kind above */
    SL_SOURCE_NOT_TEXT,  /* a pipe, a device, a dangling link ... in a folder; or sl_source_head has
                             found a PDF, a 7-Zip archive or the like */
    SL_SOURCE_GENERATED, /* no file: records without text, see sl_source_set_add_generated */
    SL_SOURCE_UNOPENED,  /* found in a folder, not opened yet; sl_source_head sets the kind */
} sl_source_kind;

/* The identity of a regular file, as fstat returned it when the set was created; all zero for a
 * source that is not a regular file. Times in nanoseconds since 1970. */
typedef struct sl_source_identity {
    uint64_t device, inode, size;
    int64_t modified_ns; /* mtime */
    int64_t changed_ns;  /* ctime: of the last change of contents, permissions, links or times */
} sl_source_identity;

/* Writes a file time as `touch -d` accepts it; returns out. */
#define SL_FILE_TIME_ROOM 48
const char *sl_file_time_shown(int64_t ns, char out[SL_FILE_TIME_ROOM]);

bool sl_source_same_identity(const sl_source_identity *a, const sl_source_identity *b);
/* The identity of the file at `path` now; all zero if there is no regular file. */
sl_source_identity sl_source_identity_at(const char *path);
/* That of an open file. */
sl_source_identity sl_source_identity_of(int file);

typedef struct sl_source {
    const char *path;      /* as given, or below a given folder; "-" is standard input */
    const char *shown;     /* the path for messages: safe to print; only the end of a long path */
    uint64_t stored_bytes; /* on disk; 0 for a pipe; record_bytes per generated record */
    uint32_t record_bytes; /* of each generated record, see document_id.h; otherwise 0 */
    sl_source_identity identity;
    uint64_t content; /* a hash of the size, and of the first and last 64 KiB; set by
                         sl_source_fingerprint; 0 for pipes and generated records */
    sl_source_kind kind;
    const char *storage; /* "gzip", "UTF-16" and the like; NULL: as it is read, or an archive */
    const char *schema;  /* of an SQL dump: that of its tables, set by sl_source_head; or NULL */
    bool named;          /* given as a path by the user, not found in a folder */
    bool sequential;     /* a plain file whose records are found from its beginning on */
    bool cr_lines;       /* lines end in CR alone; see sl_source_set_cr_lines */
    char line_escape;    /* a line feed after it is data; 0: none is */
} sl_source;

/* Can a thread read any block of the source without reading the blocks before it? */
static inline bool sl_source_is_splittable(const sl_source *source) {
    return (source->kind == SL_SOURCE_PLAIN && !source->sequential) ||
           source->kind == SL_SOURCE_GENERATED;
}

/* The number of records of a generated source. */
static inline uint64_t sl_source_records(const sl_source *source) {
    return source->stored_bytes / source->record_bytes;
}

/* Is this the name of a file that this program writes into a work directory, or of the temporary
 * file from which it is renamed? Such files are not sources. */
bool sl_source_is_own_file(const char *name);

typedef struct sl_source_set sl_source_set;

#define SL_ENTRY_NAME_ROOM 800 /* of the name of an archive's entry, safe to print */

/* The reader cuts longer lines at this length: they are rejected, since a document has at most
 * 16 MiB. Not for sources with sl_source_set_splitter. */
#define SL_RECORD_BYTES_MAX ((size_t)16 << 20)
#define SL_BORDER_BYTES ((size_t)512)

/* Finds the sources in `paths`. Folders are searched recursively in order of name, without hidden
 * files and __MACOSX; the files found are not opened yet. Pipes, devices and dangling links are
 * never opened: sl_source_head fails for them. `include` (may be NULL) is a shell
 * pattern for the names of files found in folders, and of the entries of archives named in `paths`.
 * An archive found in a folder must itself match by name; all its entries are read. The unusable
 * paths are reported in one error (SL_EXIT_SOURCE), as many as its message has room for. */
bool sl_source_set_create(const char *const *paths, size_t count, const char *include,
                          sl_source_set **set, sl_error *error);
/* A set of one file or pipe, which may be an archive of mongodump; other sets refuse these. */
bool sl_source_set_create_dump(const char *path, sl_source_set **set, sl_error *error);
/* Does the archive hold a folder of mongodump, which has NAME.metadata.json beside NAME.bson? Then
 * `how` gets the commands that unpack and restore it. Reads the archive up to such entries. */
bool sl_source_holds_dump(sl_source_set *set, size_t index, char *how, size_t room);
/* Is the path, or standard input for `-`, a terminal, /dev/null or missing: the user gives no
 * source? An empty pipe is one: a program that writes nothing may have failed. */
bool sl_source_is_none(const char *path);
void sl_source_set_destroy(sl_source_set *set); /* NULL is fine */

/* Adds a source of `records` generated records, each of which counts as `record_bytes`, a power of
 * two from SL_GENERATED_BYTES to SL_BLOCK_BYTES; in all SL_SOURCE_BYTES_MAX at most. `name`
 * identifies it. Its blocks have lengths but no bytes; its head is empty. Call it before the first
 * block is read. */
bool sl_source_set_add_generated(sl_source_set *set, const char *name, uint64_t records,
                                 uint32_t record_bytes, sl_error *error);

struct sl_sql_map;
/* If the source is this SQL dump, it is read from the rows of this table on, up to those of the
 * next selected table. The map is borrowed. */
void sl_source_set_use_map(sl_source_set *set, const struct sl_sql_map *map);

/* Finds the lines of SQL dumps at which rows begin. All zero: nothing is open. One thread. */
typedef struct sl_row_lines {
    struct sl_stream *stream;
    size_t source;
    char entry[SL_ENTRY_NAME_ROOM];
    uint64_t row;
} sl_row_lines;

/* The line of the dump, from 1, at which a row of a table begins; it is found fastest in ascending
 * order. 0 if the line is not known, or if the source is no SQL dump. */
uint64_t sl_source_line_of_row(sl_source_set *set, sl_row_lines *at, size_t index,
                               const char *entry, uint64_t row);
void sl_row_lines_clear(sl_row_lines *at);

size_t sl_source_set_count(const sl_source_set *set);
const sl_source *sl_source_set_at(const sl_source_set *set, size_t index);
uint64_t sl_source_set_stored_bytes(const sl_source_set *set); /* of all sources not skipped */
/* Stored bytes read so far. Any thread. */
uint64_t sl_source_set_consumed_bytes(const sl_source_set *set);
/* Resets the count of read bytes, after a sample has been read before the load. */
void sl_source_set_reset_consumed(sl_source_set *set);

/* Skips a source: readers return none of its blocks. Call it before the first block is read. */
void sl_source_set_skip(sl_source_set *set, size_t index);

/* The source's records do not end at every line end: the splitter finds where its blocks end.
 * `context` (borrowed) becomes sl_split.context. `lines`: the records of a plain file are lines,
 * and it stays splittable; other plain files become sequential. Call it before the first block is
 * read, and before sl_source_set_skip_blocks. */
void sl_source_set_splitter(sl_source_set *set, size_t index, const sl_splitter *splitter,
                            const void *context, bool lines);

/* Marks blocks of a source as already loaded: bit i of `done` (`words` words of 64 bits, borrowed
 * while readers exist) is the block with sequence i. Marked blocks of a splittable source are read
 * only with `compare`; marked blocks of a sequential source are always read. Readers return them
 * with `done` set. Call it before the first block is read. */
void sl_source_set_skip_blocks(sl_source_set *set, size_t index, const uint64_t *done, size_t words,
                               bool compare);

/* Selects a sample of all sources' blocks: the share `share`, above 0 and below 1. The selection
 * depends only on the source's index (or spread) and the block's sequence; it is evenly spread,
 * also among the blocks whose sequences have the same low bits. Blocks outside the sample are
 * returned with `unselected` set, and without text if the source is splittable. Call it before the
 * first block is read. */
void sl_source_set_sample(sl_source_set *set, double share);

/* Selects part `part` (1 to `parts`) of all sources' blocks. The parts are disjoint and together
 * hold all blocks. Blocks are spread, and unselected blocks returned, as for a sample. With both
 * set, the sample is a share of the part. Call it before the first block is read. */
void sl_source_set_part(sl_source_set *set, uint32_t part, uint32_t parts);
/* Sets the number, by default the source's index, that determines which blocks of the source belong
 * to a sample or part: all loaders that share a load must set the same number. Call it before the
 * first block is read. */
void sl_source_set_spread(sl_source_set *set, size_t index, uint64_t spread);
/* Restricts the blocks selected by part and sample to those for which `filter` returns true.
 * `index` is the source's index; `offset` lies in the MiB in which the block's lines begin. Any
 * thread may call `filter` at any time. Call sl_source_set_filter before the first block is
 * read. */
typedef bool sl_block_filter(const void *context, size_t index, uint64_t offset);
void sl_source_set_filter(sl_source_set *set, sl_block_filter *filter, const void *context);
/* Is a block selected? `offset` is any offset in the MiB in which its lines begin. Any thread. */
bool sl_source_set_selects(const sl_source_set *set, size_t index, uint64_t sequence,
                           uint64_t offset);

/* Reading fails with SL_EXIT_SOURCE as soon as a source has been replaced, grown, shrunk, rewritten
 * or removed since the set was created. All text that a reader has returned was read from the
 * unchanged file. sl_source_set_unchanged, called at the end of a load, checks each source that is
 * not skipped, and that no file was added to a folder; sl_source_set_has_changed returns true if
 * any check so far has failed. */
bool sl_source_set_unchanged(sl_source_set *set, sl_error *error);
bool sl_source_set_has_changed(const sl_source_set *set);

/* Makes readers that wait for a pipe fail with an error of class SL_EXIT_INTERRUPTED. Any
 * thread. */
void sl_source_set_stop(sl_source_set *set);

/* Lets sl_source_head read the entry of an archive that follows so many readable entries; for an
 * archive with fewer, the head is then empty. Not for pipes. */
void sl_source_set_passed(sl_source_set *set, size_t index, unsigned entries);

/* Reads the first bytes of the uncompressed stream, up to `room`, into `head`; for an archive, of
 * its first readable entry (or see sl_source_set_passed). `*whole`: the head is the complete text.
 * `*name` (may be NULL) is the entry's name, or the path if the source is not an archive; it lives
 * as long as the set. The bytes read from a pipe are kept for its readers. Call it before the first
 * block is read. */
bool sl_source_head(sl_source_set *set, size_t index, char *head, size_t room, size_t *length,
                    bool *whole, const char **name, sl_error *error);

/* Declares that the lines of a source, which must not be an archive, end in CR alone: readers
 * return LF for each CR. Call it before the first block is read. */
void sl_source_set_cr_lines(sl_source_set *set, size_t index);

/* Declares that a line feed after this byte, which is not escaped itself, is data. Call it before
 * blocks are taken. */
void sl_source_set_line_escape(sl_source_set *set, size_t index, char escape);
/* Replaces each CR of a text by LF. */
void sl_source_replace_cr(char *text, size_t length);

/* Writes the source's fingerprint: a hash, then the size. The hash is of the file name without
 * folders, the size, and the first and last 64 KiB; of generated records, only of name and size.
 * The fingerprint of a pipe is random. Also sets `content` of the source. */
#define SL_FINGERPRINT_ROOM 48
#define SL_PIPE_FINGERPRINT "pipe-" /* a pipe's fingerprint begins with this */
bool sl_source_fingerprint(sl_source_set *set, size_t index, char fingerprint[SL_FINGERPRINT_ROOM],
                           sl_error *error);

/* Compares the uncompressed text of two regular files completely. `*where` is the offset of the
 * first difference. `*same` is always true for generated records. */
bool sl_source_same_text(sl_source_set *set, size_t a, size_t b, bool *same, uint64_t *where,
                         sl_error *error);

/* Reads a text of a plain file that a reader has returned once more. False: the source is not such
 * a file, or cannot be read. Any thread. */
bool sl_source_text_again(const sl_source_set *set, size_t index, uint64_t offset, char *text,
                          size_t length);

/* The size of the text of a source that is no pipe, which is read if it is packed. */
bool sl_source_text_bytes(sl_source_set *set, size_t index, uint64_t *bytes, sl_error *error);

/* Called for each archive entry that is not read because it is another archive, a PDF and so on,
 * or because it is empty (`reason` is then NULL), when a reader (or, in a pipe, sl_source_head)
 * reaches it. Not called for hidden entries, folders and links, and entries that do not match
 * `include`. Both texts are safe to print, and valid during the call. Any thread, one at a time
 * for a source. Set it before the first read. */
typedef void sl_skipped_entry_report(void *context, size_t source, const char *entry,
                                     const char *reason);
void sl_source_set_report_skipped(sl_source_set *set, sl_skipped_entry_report *report,
                                  void *context);

/* A block. `text` and `entry` belong to the reader, and are valid until its next call. */
typedef struct sl_source_block {
    size_t source;        /* index into the set */
    uint64_t sequence;    /* 0, 1, 2 ... within the source */
    uint64_t offset;      /* of text.bytes[0] in the uncompressed stream */
    uint64_t split_state; /* for a source with a splitter, sl_split.state at `offset`; otherwise
                             0 */
    /* Complete lines, or the records found by the source's splitter; may be empty. SL_SLACK
     * readable bytes follow. Generated records have no bytes (NULL), only a length. */
    sl_text text;
    /* For an archive's entry: the number of its bytes from text.bytes on that may be read, at least
     * text.length; and whether these are all its remaining bytes. */
    size_t known_length;
    bool known_to_end;
    const char *entry;     /* the archive entry's name, safe to print; NULL outside archives */
    uint64_t entry_number; /* from 1, counting the entries that are read; 0 outside archives */
    bool entry_start;      /* the first block of an archive's entry, or of any other source */
    bool entry_last;       /* the last block of an archive's entry */
    bool last;       /* last block of its source; set on no block if that block is not returned */
    bool done;       /* see sl_source_set_skip_blocks */
    bool unselected; /* see sl_source_set_sample, _part, _filter */
    /* Each border of two blocks has a hash: of its offset, and of the SL_BORDER_BYTES of text after
     * it. This is the hash at the block's end minus that at its beginning, so the sum over all
     * blocks of a source is 0 (modulo 2^64): otherwise they are not the blocks of one text. */
    uint64_t borders;
} sl_source_block;

/* How a reader spent its time, in nanoseconds. */
typedef struct sl_reader_times {
    int64_t reading;
    int64_t inflating; /* includes waiting for another thread that inflates the same file */
} sl_reader_times;

/* A reader is one thread's access to the set: its buffer and its open file. */
typedef struct sl_reader sl_reader;

bool sl_reader_create(sl_source_set *set, sl_reader **reader, sl_error *error);
void sl_reader_destroy(sl_reader *reader); /* NULL is fine */
const sl_reader_times *sl_reader_spent(const sl_reader *reader);

typedef enum sl_read_result { SL_READ_BLOCK, SL_READ_END, SL_READ_FAILED } sl_read_result;

/* Reads the next block that no reader has taken yet, from any source. Sequential sources are begun
 * first, the largest first (pipes before all), so that none of them is left when the other sources
 * are finished; then splittable ones in their order. */
sl_read_result sl_reader_next(sl_reader *reader, sl_source_block *block, sl_error *error);

/* Reads a block of one source, for inspection. Of a splittable source: block `sequence`, which must
 * exist. Of a sequential source: the block after the block that this function returned last, or the
 * first block if the last call was for another source; SL_READ_END after the last block. Do not mix
 * with sl_reader_next. */
sl_read_result sl_reader_next_of(sl_reader *reader, size_t index, uint64_t sequence,
                                 sl_source_block *block, sl_error *error);

#endif
