/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects: records that could not become documents, and documents that the server refused, written
 * to the work directory in the order of their source, with their line numbers. */
#ifndef SHARDLOAD_REJECTS_H
#define SHARDLOAD_REJECTS_H

#include <shardload/format.h>
#include <shardload/source.h>

#include "journal.h"

/* The rejects of one block, gathered by the worker that parses it. */
typedef struct sl_reject_list {
    char *bytes; /* packed entries; see rejects.c */
    size_t used, room;
    uint64_t count;
} sl_reject_list; /* all zero is empty */

/* A reject's line when it is a document that the server refused: its text is gone by then. */
#define SL_REJECT_LINE_UNKNOWN UINT32_MAX

/* Copies a reject into the list. False without memory. */
bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject);
void sl_reject_list_clear(sl_reject_list *list);

typedef struct sl_reject_files sl_reject_files;

/* `directory` NULL: only count, and show the first few. Blocks that are done are told to `journal`
 * (may be NULL): at once when they have no rejects, and otherwise when these have been written. Of
 * rejects.tsv the first `table_kept` bytes stay, which an earlier run has written. */
bool sl_rejects_open(const char *directory, const sl_source_set *set, sl_journal *journal,
                     uint64_t table_kept, sl_reject_files **rejects, sl_error *error);

/* A block that an earlier run has done: what it wrote for it stays. Before any other block. */
bool sl_rejects_block_was_done(sl_reject_files *rejects, const sl_source_block *block,
                               const sl_journal_entry *entry, sl_error *error);

/* Are the raw rejects of all these blocks still in their files? SL_EXIT_SOURCE names one where they
 * are not. After the last of them, before any other block. */
bool sl_rejects_all_kept(const sl_reject_files *rejects, sl_error *error);

/* The header line (with line end) that goes in front of a source's raw rejects. Borrowed. */
void sl_rejects_set_header(sl_reject_files *rejects, size_t source, sl_text header);

/* Nothing more will come of a block: it has entry->counts.lines lines, and these rejects, which are
 * taken over (the list is empty afterwards). Line numbers, which begin anew with each member of an
 * archive, need the blocks before it, so a block that is early is kept until they have come. Any
 * thread. */
bool sl_rejects_block_done(sl_reject_files *rejects, const sl_source_block *block,
                           const sl_journal_entry *entry, sl_reject_list *list, sl_error *error);

#define SL_REJECT_REASONS_ROOM 600

/* Why the first records of this run were rejected, a few reasons without repetitions: "reason; reason".
 * Empty when there was none. When no thread adds rejects any more. */
void sl_rejects_first_reasons(const sl_reject_files *rejects, char out[SL_REJECT_REASONS_ROOM]);

/* Brings what has been written to the disk. Any thread. */
bool sl_rejects_sync(sl_reject_files *rejects, sl_error *error);

/* Closes the files. `*written` (may be NULL) is the number of rejects written. NULL is fine. */
bool sl_rejects_close(sl_reject_files *rejects, uint64_t *written, sl_error *error);

#endif
