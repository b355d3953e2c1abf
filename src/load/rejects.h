/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects: records that could not become documents, written to the work directory in the order of
 * their source, with their line numbers. */
#ifndef SHARDLOAD_REJECTS_H
#define SHARDLOAD_REJECTS_H

#include <shardload/format.h>
#include <shardload/source.h>

/* The rejects of one block, gathered by the worker that parses it. */
typedef struct sl_reject_list {
    char *bytes; /* packed entries; see rejects.c */
    size_t used, room;
    uint64_t count;
} sl_reject_list; /* all zero is empty */

/* Copies a reject into the list. False without memory. */
bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject);
void sl_reject_list_clear(sl_reject_list *list);

typedef struct sl_reject_files sl_reject_files;

/* `directory` NULL: only count, and show the first few. */
bool sl_rejects_open(const char *directory, const sl_source_set *set, sl_reject_files **rejects,
                  sl_error *error);

/* The header line (with line end) that goes in front of a source's raw rejects. Borrowed. */
void sl_rejects_set_header(sl_reject_files *rejects, size_t source, sl_text header);

/* A block has been parsed: `lines` lines in all, and these rejects, which are taken over (the list
 * is empty afterwards). Line numbers, which begin anew with each member of an archive, need the
 * blocks before it, so a block that is early is kept until they have come. Any thread. */
bool sl_rejects_block_done(sl_reject_files *rejects, const sl_source_block *block, uint64_t lines,
                           sl_reject_list *list, sl_error *error);

/* A document that the server refused: position and reason, with the document as JSON. Any thread. */
bool sl_rejects_add_refused(sl_reject_files *rejects, size_t source, uint64_t offset, const char *reason,
                         const char *document, sl_error *error);

/* Closes the files. `*written` (may be NULL) is the number of rejects written. NULL is fine. */
bool sl_rejects_close(sl_reject_files *rejects, uint64_t *written, sl_error *error);

#endif
