/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a data file with the journal of its load. The blocks of a file do not depend on the
 * threads that read it, so each block must be that of the journal: the same position, length and
 * hash. Blocks that have not been loaded are not compared. */
#include "restoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/format.h"
#include "ledger/resume.h"
#include "util/interrupt.h"

#define UNREAD_BYTES_MOST (128 << 10) /* same_dump.c compares all of a file of this size */

typedef struct loaded {
    sl_journal_entry *entries;
    size_t count, room;
    bool no_memory;
} loaded;

static bool on_document(void *context, const bson_t *document) {
    (void)context;
    (void)document;
    return true;
}

static bool on_entry(void *context, const sl_journal_entry *entry) {
    loaded *l = context;
    if (l->count == l->room) {
        size_t room = l->room ? l->room * 2 : 1024;
        sl_journal_entry *entries = realloc(l->entries, room * sizeof *entries);
        l->no_memory = !entries;
        if (!entries)
            return false;
        l->entries = entries;
        l->room = room;
    }
    l->entries[l->count++] = *entry;
    return true;
}

static int by_sequence(const void *a, const void *b) {
    const sl_journal_entry *x = a, *y = b;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static bool read_journal(const char *folder, loaded *l, sl_error *error) {
    const sl_journal_handlers handlers = {on_document, on_entry, l};
    sl_journal *journal;
    bool empty;
    if (!sl_journal_open(folder, &handlers, &journal, &empty, error))
        return false;
    sl_journal_close(journal);
    if (l->no_memory)
        return sl_error_memory(error, "comparing the dump");
    if (l->count > 0)
        qsort(l->entries, l->count, sizeof *l->entries, by_sequence);
    return true;
}

/* Blocks are read in their order. Reading ends after the last one of the journal. */
static bool compare(const loaded *l, sl_reader *reader, bool *same, uint64_t *where,
                    sl_error *error) {
    size_t at = 0;
    while (at < l->count && *same) {
        const sl_journal_entry *entry = &l->entries[at];
        sl_source_block block;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED,
                                "interrupted while the dump was compared");
        sl_read_result result = sl_reader_next(reader, &block, error);
        if (result == SL_READ_FAILED)
            return false;
        *where = result == SL_READ_BLOCK ? block.offset : entry->offset;
        if (result == SL_READ_BLOCK && block.sequence < entry->sequence)
            continue;
        *same = result == SL_READ_BLOCK && block.sequence == entry->sequence &&
                block.offset == entry->offset && block.text.length == entry->text_bytes &&
                sl_resume_check(&block) == entry->check;
        while (at < l->count && l->entries[at].sequence == entry->sequence)
            at++;
    }
    return true;
}

bool sl_restore_same_text(const char *folder, const sl_namespace *item, bool *same, uint64_t *where,
                          sl_error *error) {
    char path[600];
    loaded l = {0};
    sl_source_set *set = NULL;
    sl_reader *reader = NULL;
    const char *data = item->data;
    bool lines;
    *where = 0;
    snprintf(path, sizeof path, "%s/restored.json", folder);
    *same = item->data_bytes <= UNREAD_BYTES_MOST || access(path, F_OK) != 0;
    snprintf(path, sizeof path, "%s/journal", folder);
    if (access(path, F_OK) != 0)
        return true;
    *same = true;
    bool ok = read_journal(folder, &l, error) && sl_source_set_create(&data, 1, NULL, &set, error);
    if (ok) {
        sl_source_set_splitter(set, 0, sl_format_bson.splitter(NULL, &lines), NULL, false);
        ok = sl_reader_create(set, &reader, error) && compare(&l, reader, same, where, error);
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    free(l.entries);
    return ok;
}
