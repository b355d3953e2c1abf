/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a resumed load: its sources must be those of the journal, and completed blocks must
 * still have the same text. */
#include "earlier_run.h"
#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "resume.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

int sl_earlier_entry_order(const void *a, const void *b) {
    const sl_journal_entry *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* The fields of `identity` of a source in the journal: 64-bit numbers. */
static const struct {
    const char *name;
    size_t at; /* position of the value */
} identity_fields[] = {
    {"device", offsetof(sl_source_identity, device)},
    {"inode", offsetof(sl_source_identity, inode)},
    {"size", offsetof(sl_source_identity, size)},
    {"modified", offsetof(sl_source_identity, modified_ns)},
    {"changed", offsetof(sl_source_identity, changed_ns)},
};
#define IDENTITY_FIELDS (sizeof identity_fields / sizeof identity_fields[0])
_Static_assert(IDENTITY_FIELDS * 8 == sizeof(sl_source_identity), "all of it is in the journal");

void sl_resume_append_identity(bson_t *source, const sl_source_identity *identity) {
    bson_t fields;
    BSON_APPEND_DOCUMENT_BEGIN(source, "identity", &fields);
    for (size_t i = 0; i < IDENTITY_FIELDS; i++) {
        int64_t value;
        memcpy(&value, (const char *)identity + identity_fields[i].at, sizeof value);
        bson_append_int64(&fields, identity_fields[i].name, -1, value);
    }
    bson_append_document_end(source, &fields);
}

sl_source_identity sl_resume_identity_in(const bson_t *source) {
    bson_t fields;
    sl_source_identity identity = {0};
    sl_look_inside(source, "identity", &fields);
    for (size_t i = 0; i < IDENTITY_FIELDS; i++) {
        int64_t value = sl_look_int64(&fields, identity_fields[i].name, 0);
        memcpy((char *)&identity + identity_fields[i].at, &value, sizeof value);
    }
    return identity;
}

void sl_earlier_append_sources(bson_t *document, const sl_job *job) {
    bson_t sources, item;
    BSON_APPEND_ARRAY_BEGIN(document, "sources", &sources);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_source *facts = sl_source_set_at(job->set, i);
        char path[1024];
        sl_record_begin_item(&sources, i, &item);
        sl_text_printable(sl_text_of(facts->path), path, sizeof path);
        BSON_APPEND_UTF8(&item, "path", path);
        BSON_APPEND_UTF8(&item, "fingerprint", job->sources[i].fingerprint);
        BSON_APPEND_INT64(&item, "storedBytes", (int64_t)facts->stored_bytes);
        BSON_APPEND_BOOL(&item, "leftOut", job->sources[i].skipped);
        sl_resume_append_identity(&item, &facts->identity);
        bson_append_document_end(&sources, &item);
    }
    bson_append_array_end(document, &sources);
}

bool sl_earlier_differs(const sl_ledger *ledger, sl_exit code, const char *how, sl_error *error) {
    return sl_error_set(error, code, "--resume: the journal in %s belongs to a different load: %s",
                        ledger->work_directory, how);
}

/* Was the file modified since the earlier run? A fingerprint covers only the beginning and the end
 * of a file. If the modification time differs, its middle may have changed, also in blocks that
 * were not loaded and so cannot be compared: that is an error. */
static bool same_time(const sl_source *source, const sl_source_identity *was,
                      sl_sources_difference *difference) {
    char now[SL_FILE_TIME_ROOM];
    if (was->modified_ns == source->identity.modified_ns)
        return true;
    sl_file_time_shown(was->modified_ns, difference->modified);
    snprintf(difference->how, sizeof difference->how,
             "%.300s was modified at %s; the earlier run recorded %s", source->shown,
             sl_file_time_shown(source->identity.modified_ns, now), difference->modified);
    return false;
}

/* Compares a source with what the earlier run recorded of it. A pipe has no fingerprint: it gets
 * the recorded one, and its blocks are always compared. */
static bool same_source(const bson_t *was, sl_job *job, size_t index,
                        sl_sources_difference *difference) {
    const sl_source *facts = sl_source_set_at(job->set, index);
    sl_job_source *source = &job->sources[index];
    const char *fingerprint = sl_look_string(was, "fingerprint");
    bool pipe = facts->kind == SL_SOURCE_PIPE;
    bool left_out = sl_look_flag(was, "leftOut");
    if (pipe && strncmp(fingerprint, SL_PIPE_FINGERPRINT, strlen(SL_PIPE_FINGERPRINT)) == 0)
        snprintf(source->fingerprint, sizeof source->fingerprint, "%s", fingerprint);
    if (strcmp(fingerprint, source->fingerprint) == 0 && left_out == source->skipped) {
        sl_source_identity before = sl_resume_identity_in(was);
        if (!pipe && !same_time(facts, &before, difference))
            return false;
        source->compare = pipe || !sl_source_same_identity(&before, &facts->identity);
        difference->compare += source->compare;
        difference->changed += source->compare && !pipe;
        return true;
    }
    int64_t size = sl_look_int64(was, "storedBytes", 0);
    snprintf(difference->how, sizeof difference->how,
             "source %zu is %.300s with %llu bytes, but in the earlier run it was %.300s with %lld "
             "bytes%s",
             index + 1, facts->shown, (unsigned long long)facts->stored_bytes,
             sl_look_string(was, "path"), (long long)size,
             (uint64_t)size == facts->stored_bytes ? "; their contents differ" : "");
    return false;
}

bool sl_earlier_compare_sources(const bson_t *earlier, sl_job *job,
                                sl_sources_difference *difference) {
    bson_iter_t iter, sources;
    size_t count = sl_source_set_count(job->set), index = 0;
    *difference = (sl_sources_difference){.how = "its journal lists no sources"};
    if (!bson_iter_init_find(&iter, earlier, "sources") || !bson_iter_recurse(&iter, &sources))
        return false;
    for (; bson_iter_next(&sources); index++) {
        bson_t was;
        if (!sl_document_at(&sources, &was) ||
            (index < count && !same_source(&was, job, index, difference)))
            return false;
    }
    difference->how[0] = '\0';
    if (index != count)
        snprintf(difference->how, sizeof difference->how,
                 "there are %zu sources, but the earlier run had %zu", count, index);
    return index == count;
}

void sl_earlier_log_compared(const sl_sources_difference *difference, const char *since) {
    bool one = difference->changed == 1;
    if (difference->changed > 0)
        sl_log_warning(
            "%zu of the sources %s been copied or moved since %s, or %s permissions changed: the "
            "text that was loaded is read again and compared",
            difference->changed, one ? "has" : "have", since, one ? "its" : "their");
}

/* The completed blocks of a source are read again and compared, unless it is the same, unchanged
 * file. */
bool sl_earlier_same_sources(sl_job *job, sl_ledger *ledger, sl_error *error) {
    sl_sources_difference found;
    char how[1000];
    if (sl_earlier_compare_sources(ledger->earlier->begun, job, &found)) {
        ledger->compared = ledger->compared || found.compare > 0;
        sl_earlier_log_compared(&found, "the interrupted run");
        return true;
    }
    if (!found.modified[0])
        return sl_earlier_differs(ledger, SL_EXIT_SOURCE, found.how, error);
    snprintf(how, sizeof how,
             "%s. Load it again with --drop, or, if you know that its text is the same, restore "
             "its modification time (touch -d %s), and its text will be compared",
             found.how, found.modified);
    return sl_earlier_differs(ledger, SL_EXIT_SOURCE, how, error);
}

/* ---- checks of blocks ---- */

uint64_t sl_resume_check(const sl_source_block *block) {
    return block->text.bytes ? sl_hash_text(block->text.bytes, block->text.length) : 0;
}

bool sl_resume_block_fits(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error) {
    const sl_earlier_run *earlier = ledger->earlier;
    const sl_job_source *source = &job->sources[block->source];
    const char *shown = sl_source_set_at(job->set, block->source)->shown;
    uint64_t end = block->offset + block->text.length;
    if (block->last && end < source->done_end)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: ended at byte %llu, but the interrupted run had read up to byte "
                            "%llu; give it the full text again",
                            shown, (unsigned long long)end, (unsigned long long)source->done_end);
    if (!block->done)
        return true;
    sl_journal_entry key = {.source = block->source, .sequence = block->sequence};
    const sl_journal_entry *entry =
        bsearch(&key, earlier->entries, earlier->count, sizeof key, sl_earlier_entry_order);
    if (entry && entry->offset == block->offset && entry->text_bytes == block->text.length &&
        entry->check == sl_resume_check(block))
        return true;
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: the text at byte %llu differs from that of the interrupted run; give it "
        "the same text again, or start a new load: with --drop, or without "
        "--resume with another --work-dir",
        shown, (unsigned long long)block->offset);
}

/* Blocks that were sent but not completed when the earlier run ended are not in the journal. If
 * their text has changed, other documents are stored under their _ids. */
bool sl_resume_taken_fits(const sl_job *job, const sl_source_block *block, sl_error *error) {
    return !job->resumed || !job->sources[block->source].compare ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "%s: the text after byte %llu differs from that of the interrupted run: other "
               "documents "
               "are stored under the ids of its documents; give it the same text again, or start a "
               "new load with --drop",
               sl_source_set_at(job->set, block->source)->shown, (unsigned long long)block->offset);
}
