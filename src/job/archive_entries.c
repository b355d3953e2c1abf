/* SPDX-License-Identifier: Apache-2.0 */
/* The dialects of archive entries. Each entry is sniffed separately, like the files of a folder,
 * because the next entry may have its columns in another order, or hold no data at all.
 *
 * The worker that draws an entry's first block sniffs it and publishes the dialect; a worker with a
 * later block of the entry waits for that. The wait is short: blocks are drawn in order, so another
 * worker already has the entry's first block, and only sniffs it before it publishes the result.
 *
 * An entry is freed when all of its blocks have been parsed, so that memory holds at most one entry
 * per worker, however many an archive has. The number of an entry's blocks is known when its last
 * block has been read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/delimited.h"
#include "format/head.h"

#include "archive_entries.h"
#include "line_ends.h"
#include "sources.h"
#include "types.h"

typedef struct sl_archive_entry {
    struct sl_archive_entry *next;
    uint64_t number;     /* the same as in its blocks */
    uint64_t first;      /* sequence of its first block */
    uint64_t parsed;     /* blocks; guarded by entries_lock, like the next field */
    uint64_t blocks;     /* UINT64_MAX: its last block has not been read yet */
    sl_dialect *dialect; /* NULL: not loaded */
} sl_archive_entry;

/* Sniffs an entry by its first block. An entry of another format than the source, or with another
 * kind of record, is not loaded. */
static bool sniff(sl_job *job, const sl_job_source *source, const sl_source_block *block,
                  sl_dialect **result, sl_error *error) {
    const sl_format *format = source->format;
    sl_error why = {0};
    sl_dialect *dialect = NULL;
    /* The first block may be short, and hold nothing but blanks: its end depends on its offset. */
    sl_text head = {block->text.bytes, block->known_length};
    bool whole = block->known_to_end && head.length <= SL_SNIFF_BYTES;
    if (head.length > SL_SNIFF_BYTES)
        head.length = SL_SNIFF_BYTES;
    const char *path = sl_source_set_at(job->set, block->source)->shown;
    if (!format->binary && !sl_first_line_end_check(head, whole, &why)) {
        *result = NULL;
        if (sl_line_ends_is_binary(head)) {
            sl_not_loaded_add(job, block->source, block->entry, why.message);
            return true;
        }
        *error = why;
        return sl_error_prefix(error, "%s: %s", path, block->entry);
    }
    bool fits;
    if (!sl_sources_read_text(job, format, block->source, block->entry, head, whole, &dialect,
                              &fits, &why)) {
        *error = why;
        return false;
    }
    if (!fits) {
        sl_not_loaded_add(job, block->source, block->entry, why.message);
    } else if (strcmp(sl_format_record_kind(format, dialect),
                      sl_format_record_kind(format, source->dialect)) != 0) {
        char reason[200];
        snprintf(reason, sizeof reason, "holds %s, not %s", sl_format_record_kind(format, dialect),
                 sl_format_record_kind(format, source->dialect));
        sl_not_loaded_add(job, block->source, block->entry, reason);
        sl_format_dialect_destroy(format, dialect);
        dialect = NULL;
    }
    if (dialect && source->divided && format->splits_alike &&
        !format->splits_alike(dialect, source->dialect)) {
        sl_format_dialect_destroy(format, dialect);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: %s: this entry has another delimiter than the archive's first "
                            "entry, whose fields are quoted; unpack the archive and load its files",
                            path, block->entry);
    }
    /* An entry that the splitter has not divided may have an open quote before its first record. */
    bool unused;
    bool divided = source->divided &&
                   (!dialect || !format->splitter || format->splitter(dialect, &unused) != NULL);
    if (dialect && !divided && format->check_head &&
        !format->check_head(dialect, head, whole, error)) {
        sl_format_dialect_destroy(format, dialect);
        return sl_error_prefix(error, "%s: %s", path, block->entry);
    }
    if (dialect && (format == &sl_format_delimited || format == &sl_format_mot))
        sl_dialect_move(dialect, block->offset);
    if (dialect && !sl_types_apply_to_entry(job, block, dialect, error)) {
        sl_format_dialect_destroy(format, dialect);
        return false;
    }
    *result = dialect;
    return true;
}

/* The link to an entry in the source's list; *link is NULL if there is none. */
static sl_archive_entry **find(sl_job_source *source, uint64_t number) {
    sl_archive_entry **link = &source->entries;
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    return link;
}

bool sl_sources_dialect(sl_job *job, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error) {
    sl_job_source *source = &job->sources[block->source];
    *dialect = source->dialect;
    if (!block->entry)
        return true;
    const sl_archive_entry *known;
    if (block->entry_start) {
        sl_archive_entry *made = calloc(1, sizeof *made);
        if (!made)
            sl_error_memory(error, "reading an archive");
        if (!made || !sniff(job, source, block, &made->dialect, error)) {
            free(made);
            pthread_mutex_lock(&job->entries_lock);
            job->entries_failed = true; /* ends the wait for this entry */
            pthread_cond_broadcast(&job->entries_known);
            pthread_mutex_unlock(&job->entries_lock);
            return false;
        }
        made->number = block->entry_number;
        made->first = block->sequence;
        made->blocks = UINT64_MAX;
        pthread_mutex_lock(&job->entries_lock);
        made->next = source->entries;
        source->entries = made;
        pthread_cond_broadcast(&job->entries_known);
        pthread_mutex_unlock(&job->entries_lock);
        known = made;
    } else {
        pthread_mutex_lock(&job->entries_lock);
        while (!(known = *find(source, block->entry_number)) && !job->entries_failed)
            pthread_cond_wait(&job->entries_known, &job->entries_lock);
        pthread_mutex_unlock(&job->entries_lock);
    }
    if (!known) /* the thread that failed reports the reason */
        return false;
    *dialect = known->dialect;
    return true;
}

void sl_sources_done_with(sl_job *job, const sl_source_block *block) {
    sl_job_source *source = &job->sources[block->source];
    if (!block->entry)
        return;
    pthread_mutex_lock(&job->entries_lock);
    sl_archive_entry **link = find(source, block->entry_number), *entry = *link;
    entry->parsed++;
    if (block->entry_last)
        entry->blocks = block->sequence - entry->first + 1;
    bool over = entry->parsed == entry->blocks;
    if (over)
        *link = entry->next;
    pthread_mutex_unlock(&job->entries_lock);
    if (!over)
        return;
    sl_format_dialect_destroy(source->format, entry->dialect);
    free(entry);
}

void sl_archive_entries_clear(const sl_job_source *source) {
    for (sl_archive_entry *entry = source->entries; entry;) {
        sl_archive_entry *next = entry->next;
        sl_format_dialect_destroy(source->format, entry->dialect);
        free(entry);
        entry = next;
    }
}
