/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects: records that cannot be converted to documents, and documents that the server refused,
 * written to the work directory in the order of their source, with their line numbers. */
#ifndef SHARDLOAD_REJECTS_H
#define SHARDLOAD_REJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "format/format.h"
#include "source/source.h"
#include "util/text.h"

#include "journal.h"

/* ---- kinds ---- */

/* The rejects of a load summed up by reason and column, with the first example of each. */

#define SL_REJECT_KINDS_MAX 40

typedef struct sl_reject_kind {
    uint64_t count;
    char reason[240]; /* the common reason of its rejects, with "..." and N for values that
                         differ */
    char column[100];
    char first_place[200]; /* "year.txt, line 12" */
    char first_reason[240];
} sl_reject_kind;

/* All zero is empty. The memory is bounded: further kinds are counted together. */
typedef struct sl_reject_kinds {
    sl_reject_kind *items; /* in the order of their first rejects; allocated with the first one */
    size_t count;
    uint64_t others; /* rejects of further kinds */
} sl_reject_kinds;

void sl_reject_kinds_clear(sl_reject_kinds *kinds);

/* Counts a reject. The texts may be any bytes; `place` is made only for the first of a kind, by
 * `write_place`. Is it the first of its kind? */
bool sl_reject_kinds_add(sl_reject_kinds *kinds, sl_text reason, sl_text column,
                         void (*write_place)(const void *context, char *out, size_t room),
                         const void *context);

/* Counts the rejects in the first `bytes` of a rejects.tsv, which an earlier run has written. */
void sl_reject_kinds_read(sl_reject_kinds *kinds, const char *path, uint64_t bytes);

/* Indices of the kinds, the most frequent first. */
void sl_reject_kinds_order(const sl_reject_kinds *kinds, size_t order[SL_REJECT_KINDS_MAX]);

/* The most frequent kinds: ": 9 like year.txt, line 12, n: REASON; 1 like ...". */
#define SL_REJECT_KINDS_ROOM 1000
void sl_reject_kinds_text(const sl_reject_kinds *kinds, char out[SL_REJECT_KINDS_ROOM]);

uint64_t sl_reject_kinds_sum(const sl_reject_kinds *kinds);

/* Logs what sl_reject_summary_record has appended to a record; nothing if there were no rejects.
 * `of`: the source of the rejects; NULL where a load has only one kind of sources. */
void sl_reject_summary_log(const bson_t *record, const char *of);
/* `all`: the number of rejects in the totals. Those that are in no kind belong to blocks that were
 * not completed before an early end. */
void sl_reject_summary_record(const sl_reject_kinds *kinds, uint64_t all, bson_t *record);

/* ---- the rejects of a block, and their files ---- */

/* The rejects of one block, collected by the worker that parses it. */
typedef struct sl_reject_list {
    char *bytes; /* a header, then packed entries */
    size_t header, used, room;
    uint64_t count;
} sl_reject_list; /* all zero is empty */

/* Copies the header of an archive's entry, with its line end, into an empty list. False without
 * memory. */
bool sl_reject_list_begin(sl_reject_list *list, sl_text header);
/* Copies a reject into the list. False without memory. */
bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject);
/* An entry of a list; the texts point into the list. */
typedef struct sl_listed_reject {
    uint64_t offset; /* as in sl_reject */
    uint32_t line;   /* of the block, SL_NO_LINE or SL_REJECT_LINE_UNKNOWN; perhaps with
                        SL_REJECT_OF_SERVER */
    sl_text column, reason, record, text;
} sl_listed_reject;

void sl_reject_list_clear(sl_reject_list *list);

/* Writes the path of the only file with the unchanged records of rejects; or of the folder, if
 * there are several. `directory`: the work directory. Returns out. */
#define SL_REJECTED_PATH_ROOM 1024
const char *sl_rejected_path(const char *directory, char out[SL_REJECTED_PATH_ROOM]);

typedef struct sl_reject_files sl_reject_files;

/* Opens rejects.tsv in `directory`; NULL: rejects are only counted, and the first few logged.
 * `to_disk`: each file is synced when it is closed. The first `table_kept` bytes of rejects.tsv,
 * which an earlier run wrote, are not changed. */
bool sl_rejects_open(const char *directory, sl_source_set *set, bool to_disk, uint64_t table_kept,
                     sl_reject_files **rejects, sl_error *error);

/* Adds a block that an earlier run has completed; its rejects in the files are kept. Call it before
 * any other block is added. */
bool sl_rejects_block_was_done(sl_reject_files *rejects, const sl_source_block *block,
                               const sl_journal_entry *entry, sl_error *error);

/* Are the raw rejects of all blocks from earlier runs still in their files? If not, the error
 * (SL_EXIT_SOURCE) names a file. Called after the last of these blocks and the headers, and before
 * any other block. */
bool sl_rejects_all_kept(const sl_reject_files *rejects, sl_error *error);

/* Limits the bytes of the files to 64 MiB and four times the stored bytes of the sources that have
 * been read: a block whose rejects pass the limit is not completed, with SL_EXIT_SOURCE. Has no
 * effect without files. */
void sl_rejects_limit_bytes(sl_reject_files *rejects);

/* Sets the header line (with line end) to write in front of a source's raw rejects, unless their
 * list has another one. Borrowed. `binary`: no line ends are written between these rejects. */
void sl_rejects_set_header(sl_reject_files *rejects, size_t source, sl_text header, bool binary);

/* Adds a completed block with its rejects, which are moved out of the list. Line numbers, which
 * restart with each entry of an archive, require the number of lines of all earlier blocks
 * (entry->counts.lines), so the rejects of an early block are kept until these have been added. Any
 * thread. */
bool sl_rejects_block_done(sl_reject_files *rejects, const sl_source_block *block,
                           const sl_journal_entry *entry, sl_reject_list *list, sl_error *error);

/* Adds to the journal (NULL: none) the entries of blocks that belong there: without rejects, or
 * after these have been written, with the sizes of the files. They are added in order, since
 * these sizes include the rejects of the entries before. Call it after each sl_rejects_block_done.
 * False without memory. Any thread. */
bool sl_rejects_pass_on(sl_reject_files *rejects, sl_journal *journal);

/* Logs the first reject for each reason of a block that will not be completed: a resumed load
 * parses it again. One thread, after the workers have ended. */
void sl_rejects_show(sl_reject_files *rejects, const sl_source_block *block,
                     const sl_reject_list *list);

/* Makes `kinds` (borrowed until the files are closed) count the rejects from now on; rejects of the
 * earlier run are read from rejects.tsv. Call it before any block is added. */
void sl_rejects_count_kinds(sl_reject_files *rejects, sl_reject_kinds *kinds);

/* Syncs the files to disk. Any thread. */
bool sl_rejects_sync(sl_reject_files *rejects, sl_error *error);

/* Closes the files. `*written` (may be NULL) is the number of rejects written. NULL is fine. */
bool sl_rejects_close(sl_reject_files *rejects, uint64_t *written, sl_error *error);

#endif
