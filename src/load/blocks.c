/* SPDX-License-Identifier: Apache-2.0 */
/* Open blocks: from the time a worker draws a block until the outcome of each of its records is
 * known.
 *
 * The documents of a block are spread over batches of one worker, so an open block belongs to that
 * worker and needs no lock. It is completed when it has been parsed to its end and no batch holds
 * one of its documents any more. Only then are its documents and rejects counted, and the block
 * added to the journal. Whatever ends the load, a block is completed as a unit or not at all, and a
 * resumed load sends every block again that was not completed. */
#include "ledger/resume.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

sl_open_block *sl_block_begin(sl_worker *worker, const sl_source_block *block) {
    sl_open_block *open_block = worker->free_blocks;
    if (open_block) {
        worker->free_blocks = open_block->next;
    } else {
        open_block = calloc(1, sizeof *open_block);
        if (!open_block) {
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
    }
    size_t length = block->entry ? strlen(block->entry) + 1 : 0;
    if (length > open_block->entry_name_room) {
        char *entry_name = realloc(open_block->entry_name, length);
        if (!entry_name) {
            open_block->next = worker->free_blocks;
            worker->free_blocks = open_block;
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
        open_block->entry_name = entry_name;
        open_block->entry_name_room = length;
    }
    char *entry_name = open_block->entry_name;
    size_t entry_name_room = open_block->entry_name_room;
    sl_reject_list rejects = open_block->rejects; /* empty, with its memory */
    *open_block = (sl_open_block){
        .next = worker->open_blocks,
        .link = &worker->open_blocks,
        .block = *block,
        .has_text = block->text.bytes != NULL,
        .first_id = sl_document_id(worker->job->sources[block->source].number, block->offset),
        .rejects = rejects,
        .entry_name = entry_name,
        .entry_name_room = entry_name_room,
    };
    if (length > 0)
        open_block->block.entry = memcpy(entry_name, block->entry, length);
    if (open_block->next)
        open_block->next->link = &open_block->next;
    worker->open_blocks = open_block;
    sl_count(&worker->counters->text_begun, block->text.length);
    return open_block;
}

static void recycle(sl_worker *worker, sl_open_block *open_block) {
    *open_block->link = open_block->next;
    if (open_block->next)
        open_block->next->link = open_block->link;
    open_block->next = worker->free_blocks;
    worker->free_blocks = open_block;
}

bool sl_block_complete(sl_worker *worker, sl_open_block *open_block) {
    if (!open_block->parsed || open_block->waiting > 0)
        return true;
    if (open_block->taken > 0 && !worker->job->own_ids &&
        !sl_resume_taken_fits(worker->job, &open_block->block, &worker->error))
        return false;
    uint64_t accepted = (uint64_t)open_block->inserted;
    /* A mode that matches stored documents adds only the inserted ones to the collection. */
    if (!sl_load_mode(worker->job->config)->matches)
        accepted += open_block->already_stored;
    sl_ledger_add(worker->ledger, worker->job, open_block->block.source, open_block->first_id,
                  accepted, open_block->taken);
    sl_journal_entry entry = {
        .source = open_block->block.source,
        .sequence = open_block->block.sequence,
        .offset = open_block->block.offset,
        .entry_start = open_block->block.entry_start,
        .check = open_block->check,
        .text_bytes = open_block->has_text ? open_block->block.text.length : 0,
        .inserted = open_block->inserted,
        .already_stored = open_block->already_stored,
        .server_rejects = open_block->refused,
        .taken = open_block->taken,
        .counts = open_block->counts,
    };
    bool ok = sl_rejects_block_done(worker->ledger->rejects, &open_block->block, &entry,
                                    &open_block->rejects, &worker->error);
    sl_count(&worker->counters->text_completed, open_block->block.text.length);
    recycle(worker, open_block);
    return ok;
}

uint64_t sl_blocks_waiting(const sl_worker *worker) {
    uint64_t waiting = 0;
    for (const sl_open_block *open_block = worker->open_blocks; open_block;
         open_block = open_block->next)
        waiting += open_block->waiting;
    return waiting;
}

void sl_blocks_clear(sl_worker *worker) {
    sl_open_block *lists[] = {worker->open_blocks, worker->free_blocks};
    for (int i = 0; i < 2; i++) {
        while (lists[i]) {
            sl_open_block *next = lists[i]->next;
            sl_reject_list_clear(&lists[i]->rejects);
            free(lists[i]->entry_name);
            free(lists[i]);
            lists[i] = next;
        }
    }
}
