/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects: records that cannot be converted to documents, and documents that the server refused,
 * written to the work directory in the order of their source, with their line numbers. */
#ifndef SHARDLOAD_REJECTS_H
#define SHARDLOAD_REJECTS_H

#include "format/format.h"
#include "source/source.h"

#include "journal.h"
#include "reject_kinds.h"

/* The rejects of one block, collected by the worker that parses it. */
typedef struct sl_reject_list {
    char *bytes; /* packed entries */
    size_t used, room;
    uint64_t count;
} sl_reject_list; /* all zero is empty */

/* Copies a reject into the list. False without memory. */
bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject);
/* An entry of a list; the texts point into the list. */
typedef struct sl_listed_reject {
    uint64_t offset; /* as in sl_reject */
    uint32_t line;   /* of the block, SL_NO_LINE or SL_REJECT_LINE_UNKNOWN */
    sl_text column, reason, record;
} sl_listed_reject;

/* Reads the entry at `*at`, which begins as 0, and advances `*at`. False at the end. */
bool sl_reject_list_next(const sl_reject_list *list, size_t *at, sl_listed_reject *reject);

void sl_reject_list_clear(sl_reject_list *list);

typedef struct sl_reject_files sl_reject_files;

/* Opens rejects.tsv in `directory`; NULL: rejects are only counted, and the first few logged.
 * Completed blocks are added to `journal` (may be NULL): at once if they have no rejects, otherwise
 * when these have been written. The first `table_kept` bytes of rejects.tsv, which an earlier run
 * wrote, are not changed. */
bool sl_rejects_open(const char *directory, const sl_source_set *set, sl_journal *journal,
                     uint64_t table_kept, sl_reject_files **rejects, sl_error *error);

/* Adds a block that an earlier run has completed; its rejects in the files are kept. Call it before
 * any other block is added. */
bool sl_rejects_block_was_done(sl_reject_files *rejects, const sl_source_block *block,
                               const sl_journal_entry *entry, sl_error *error);

/* Are the raw rejects of all blocks from earlier runs still in their files? If not, the error
 * (SL_EXIT_SOURCE) names a file. Called after the last of these blocks and before any other. */
bool sl_rejects_all_kept(const sl_reject_files *rejects, sl_error *error);

/* Limits the bytes of the files to 64 MiB and four times the stored bytes of the sources that have
 * been read: a block whose rejects pass the limit is not completed, with SL_EXIT_SOURCE. Has no
 * effect without files. */
void sl_rejects_limit_bytes(sl_reject_files *rejects);

/* Sets the header line (with line end) to write in front of a source's raw rejects. Borrowed.
 * `binary`: no line ends are written between these rejects. */
void sl_rejects_set_header(sl_reject_files *rejects, size_t source, sl_text header, bool binary);

/* Adds a completed block with its rejects, which are moved out of the list. Line numbers, which
 * restart with each entry of an archive, require the number of lines of all earlier blocks
 * (entry->counts.lines), so an early block is kept until these have been added. Any thread. */
bool sl_rejects_block_done(sl_reject_files *rejects, const sl_source_block *block,
                           const sl_journal_entry *entry, sl_reject_list *list, sl_error *error);

/* Logs the first rejects of a block that will not be completed: a resumed load parses it again. One
 * thread, after the workers have ended. */
void sl_rejects_show(sl_reject_files *rejects, const sl_source_block *block,
                     const sl_reject_list *list);

/* Makes `kinds` (borrowed until the files are closed) count the rejects from now on; rejects of the
 * earlier run are read from rejects.tsv. Call it before any block is added. */
void sl_rejects_count_kinds(sl_reject_files *rejects, sl_reject_kinds *kinds);

#define SL_REJECT_REASONS_ROOM 600

/* The reasons of the first rejects of this run, without repetitions: "reason; reason". Empty if
 * there was no reject. Called when no thread adds rejects any more. */
void sl_rejects_first_reasons(const sl_reject_files *rejects, char out[SL_REJECT_REASONS_ROOM]);

/* Syncs the files to disk. Any thread. */
bool sl_rejects_sync(sl_reject_files *rejects, sl_error *error);

/* Closes the files. `*written` (may be NULL) is the number of rejects written. NULL is fine. */
bool sl_rejects_close(sl_reject_files *rejects, uint64_t *written, sl_error *error);

#endif
