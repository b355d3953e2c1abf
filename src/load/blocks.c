/* SPDX-License-Identifier: Apache-2.0 */
/* Open blocks: from the time a worker draws a block until the outcome of each of its records is known.
 *
 * The documents of a block are spread over batches of one worker, so an open block belongs to that
 * worker and needs no lock. It is completed when it has been parsed to its end and no batch holds a
 * document of it any more: only then its documents and rejects are counted, and it is added to the
 * journal. Whatever ends the load, a block is completed as a unit or not at all, and a load that is
 * resumed sends every block again that was not completed. */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

sl_block_account *sl_block_begin(sl_worker *worker, const sl_source_block *block) {
    sl_block_account *account = worker->free_accounts;
    if (account) {
        worker->free_accounts = account->next;
    } else {
        account = calloc(1, sizeof *account);
        if (!account) {
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
    }
    size_t length = block->member ? strlen(block->member) + 1 : 0;
    if (length > account->member_room) {
        char *member = realloc(account->member, length);
        if (!member) {
            account->next = worker->free_accounts;
            worker->free_accounts = account;
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
        account->member = member;
        account->member_room = length;
    }
    char *member = account->member;
    size_t member_room = account->member_room;
    sl_reject_list rejects = account->rejects; /* empty, with its memory */
    *account = (sl_block_account){
        .next = worker->open_accounts,
        .link = &worker->open_accounts,
        .block = *block,
        .has_text = block->text.bytes != NULL,
        .first_id = sl_document_id(worker->load->sources[block->source].number, block->offset),
        .rejects = rejects,
        .member = member,
        .member_room = member_room,
    };
    if (length > 0)
        account->block.member = memcpy(member, block->member, length);
    if (account->next)
        account->next->link = &account->next;
    worker->open_accounts = account;
    return account;
}

static void recycle(sl_worker *worker, sl_block_account *account) {
    *account->link = account->next;
    if (account->next)
        account->next->link = account->link;
    account->next = worker->free_accounts;
    worker->free_accounts = account;
}

bool sl_block_settle(sl_worker *worker, sl_block_account *account) {
    sl_load *load = worker->load;
    if (!account->parsed || account->waiting > 0)
        return true;
    if (account->taken > 0 && !sl_resume_taken_fits(load, &account->block, &worker->error))
        return false;
    uint64_t accepted = (uint64_t)account->inserted + account->already_there;
    /* Under a taken _id the range holds a document, too. */
    atomic_fetch_add_explicit(&load->accepted[sl_load_range_of(load, account->first_id)],
                              accepted + account->taken, memory_order_relaxed);
    sl_load_source *source = &load->sources[account->block.source];
    atomic_fetch_add_explicit(&source->accepted, accepted, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->taken, account->taken, memory_order_relaxed);
    sl_journal_entry entry = {
        .source = account->block.source,
        .sequence = account->block.sequence,
        .offset = account->block.offset,
        .member_start = account->block.member_start,
        .check = account->check,
        .text_bytes = account->has_text ? account->block.text.length : 0,
        .inserted = account->inserted,
        .already_there = account->already_there,
        .refused = account->refused,
        .taken = account->taken,
        .counts = account->counts,
    };
    bool ok = sl_rejects_block_done(load->rejects, &account->block, &entry, &account->rejects,
                                    &worker->error);
    recycle(worker, account);
    return ok;
}

uint64_t sl_blocks_waiting(const sl_worker *worker) {
    uint64_t waiting = 0;
    for (const sl_block_account *account = worker->open_accounts; account; account = account->next)
        waiting += account->waiting;
    return waiting;
}

void sl_blocks_clear(sl_worker *worker) {
    sl_block_account *lists[] = {worker->open_accounts, worker->free_accounts};
    for (int i = 0; i < 2; i++) {
        while (lists[i]) {
            sl_block_account *next = lists[i]->next;
            sl_reject_list_clear(&lists[i]->rejects);
            free(lists[i]->member);
            free(lists[i]);
            lists[i] = next;
        }
    }
}
