/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the journal of a load, and recovers it in a resumed load.
 *
 * The journal has four documents:
 *
 *   {begun: <date>, holder: <id>, options: {...}, sources: [{path, fingerprint, ...}]}
 *                                           before anything is changed
 *   {dropping: <type and uuid>}             with --drop, before that collection is dropped
 *   {target: <uuid of the collection>, numbers: [...], outside: {...}}
 *                                           before the first document
 *   {finished: <date>, rejects: <number>}   after verification, when run.json is written; with
 *                                           `nothing: true` if all records were rejected
 *
 * The entries of its blocks are between the last two. A resumed load must have the same sources,
 * the same options that change documents, and the same collection (by UUID, not by name); otherwise
 * the blocks that it skips would not be the blocks that were sent. Without `target` no document has
 * been sent, and the load begins again with its options. But it drops only the collection that
 * `dropping` names: a collection with another UUID was created after the drop, by an earlier run or
 * by another user, who may have stored documents in it.
 *
 * The order of steps makes this safe. For each block, first its documents are acknowledged by the
 * server with the write concern of the load; then its rejects are synced to disk; then its entry is
 * synced. Wherever the load is killed, a block without an entry is loaded again, and its stored
 * documents are found under their _ids. */
#include "ledger.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "cluster/cluster.h"
#include "job/embed.h"
#include "job/embed_store.h"
#include "job/types.h"
#include "report/json.h"
#include "report/run_record.h"
#include "send/writer.h"
#include "util/clock.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

/* The contents of the journal of an earlier run, read once at the start of a resume and not changed
 * afterwards. */
typedef struct sl_earlier_run {
    bson_t *begun, *dropping, *target, *finished; /* NULL until read */
    sl_journal_entry *entries; /* sorted by source and sequence when all are read */
    size_t count, room;
    size_t document_bytes;
    bool no_memory;
} sl_earlier_run;

/* ---- reading ---- */

static bool on_document(void *context, const bson_t *document) {
    sl_earlier_run *earlier = context;
    static const char *const names[] = {"begun", "dropping", "target", "finished"};
    bson_t **places[] = {&earlier->begun, &earlier->dropping, &earlier->target, &earlier->finished};
    static const int before[] = {-1, 0, 0, 2}; /* the document that must have been read */
    earlier->document_bytes += document->len;
    if (earlier->document_bytes > SL_JOURNAL_DOCUMENTS_MAX)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (bson_has_field(document, names[i]) && !*places[i] && (i == 0 || *places[before[i]]) &&
            !(i == 1 && earlier->target)) {
            *places[i] = bson_copy(document);
            return true;
        }
    }
    return false;
}

static bool on_entry(void *context, const sl_journal_entry *entry) {
    sl_earlier_run *earlier = context;
    if (!earlier->target)
        return false;
    sl_journal_entry *entries =
        sl_grow(earlier->entries, earlier->count, &earlier->room, sizeof *entries);
    if (!entries) {
        earlier->no_memory = true;
        return false;
    }
    earlier->entries = entries;
    earlier->entries[earlier->count++] = *entry;
    return true;
}

/* ---- the sources of the earlier run ---- */

/* The order of entries, for qsort and bsearch. */
static int entry_order(const void *a, const void *b) {
    const sl_journal_entry *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Does the entry only show that a block was read? */
static bool is_read_only(const sl_journal_entry *entry) {
    return entry->entry_start == SL_JOURNAL_READ;
}

/* The same order; of entries of one block, the outcome first. */
static int reading_order(const void *a, const void *b) {
    const int order = entry_order(a, b);
    return order != 0 ? order : (int)is_read_only(a) - (int)is_read_only(b);
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

/* Sets the error that the journal belongs to another load; `how` is the difference. Returns
 * false. */
static bool refuse_journal(const sl_ledger *ledger, sl_exit code, const char *how,
                           sl_error *error) {
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

/* Compares the journal's sources with those of the load; a difference is an error (SL_EXIT_SOURCE).
 * Pipes get their fingerprints from the journal; `compare` is set for sources whose text may
 * differ. */
static bool same_sources(sl_job *job, sl_ledger *ledger, sl_error *error) {
    sl_sources_difference found;
    char how[1000];
    if (sl_earlier_compare_sources(ledger->earlier->begun, job, &found)) {
        ledger->compared = ledger->compared || found.compare > 0;
        sl_earlier_log_compared(&found, "the interrupted run");
        return true;
    }
    if (found.modified[0])
        snprintf(
            how, sizeof how,
            "%s. Load it again with --drop, or, if you know that its text is the same, restore "
            "its modification time (touch -d %s), and its text will be compared",
            found.how, found.modified);
    else
        snprintf(how, sizeof how,
                 "%s. Restore the sources of that run, or load without --resume, with another "
                 "--work-dir",
                 found.how);
    return refuse_journal(ledger, SL_EXIT_SOURCE, how, error);
}

/* ---- the options of the load ---- */

/* Appends the target, and the options that change documents, under their names on the command
 * line. */
static void append_options(bson_t *document, const sl_load_config *config) {
    bson_t options;
    BSON_APPEND_DOCUMENT_BEGIN(document, "options", &options);
    BSON_APPEND_UTF8(&options, "db", config->database);
    BSON_APPEND_UTF8(&options, "collection", config->collection);
    if (config->document_options)
        bson_concat(&options, config->document_options);
    bson_append_document_end(document, &options);
}

static bool write_begun(const sl_job *job, const sl_ledger *ledger, sl_error *error) {
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&document, "begun", sl_wall_clock_ms());
    BSON_APPEND_UTF8(&document, "version", job->config->program_version);
    BSON_APPEND_UTF8(&document, "holder", ledger->holder);
    BSON_APPEND_BOOL(&document, "drop", job->config->drop);
    append_options(&document, job->config);
    sl_earlier_append_sources(&document, job);
    bool ok = sl_journal_begin(ledger->journal, error) &&
              sl_journal_write(ledger->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

typedef struct difference {
    char how[900];
    size_t used;
} difference;

static void on_difference(void *context, const char *name, const char *was, const char *is) {
    difference *d = context;
    const char *texts[] = {was, is}, *words[] = {"was", "is"};
    if (d->used >= sizeof d->how)
        return;
    d->used += (size_t)snprintf(d->how + d->used, sizeof d->how - d->used, "%s--%s",
                                d->used ? ", " : "", name);
    for (int i = 0; i < 2 && d->used < sizeof d->how; i++)
        d->used += (size_t)snprintf(d->how + d->used, sizeof d->how - d->used,
                                    texts[i] ? "%s %s \"%.100s\"" : "%s %s not given",
                                    i ? " and" : "", words[i], texts[i]);
}

/* Writes which options differ between two lists, and their values, as text. False: none does. */
static bool options_differ(const bson_t *was, const bson_t *now, char *how, size_t room) {
    difference d = {.used = 0};
    sl_look_differences(was, now, on_difference, &d);
    snprintf(how, room, "%s", d.how);
    return d.used > 0;
}

/* The options of a command with a work directory for each collection. */
static bson_t *options_of(const sl_load_config *config) {
    bson_t *options = config->document_options ? bson_copy(config->document_options) : bson_new();
    return BSON_APPEND_UTF8(options, "drop", config->drop ? "yes" : "no") ? options : NULL;
}

bool sl_resume_write_options(const char *directory, const sl_load_config *config, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    bson_t *options = options_of(config);
    snprintf(path, sizeof path, "%s/" SL_WORK_OPTIONS, directory);
    bool ok = options ? sl_json_write_file(path, options, error)
                      : sl_error_memory(error, "keeping the options");
    bson_destroy(options);
    return ok;
}

bool sl_resume_check_options(const char *directory, const sl_load_config *config, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32], how[900];
    bson_t *was, *now;
    snprintf(path, sizeof path, "%s/" SL_WORK_OPTIONS, directory);
    if (!sl_json_read_private(path, &was, error))
        return sl_error_prefix(error, "--resume");
    if (!bson_has_field(was, "drop")) /* of an earlier version */
        BSON_APPEND_UTF8(was, "drop", config->drop ? "yes" : "no");
    now = options_of(config);
    bool differ = now && options_differ(was, now, how, sizeof how);
    bson_destroy(was);
    bson_destroy(now);
    if (!now)
        return sl_error_memory(error, "comparing the options");
    return !differ ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--resume: the command whose work directory is %s was begun with other "
                        "options: %s. Give the options of the first run, or begin anew with "
                        "another --work-dir",
                        directory, how);
}

static bool same_options(const sl_job *job, const sl_ledger *ledger, sl_error *error) {
    bson_t now = BSON_INITIALIZER, was_options, options;
    char how[900];
    const char *version = sl_look_string(ledger->earlier->begun, "version");
    if (strcmp(version, job->config->program_version) != 0) {
        snprintf(how, sizeof how,
                 "version %.40s of this program began it, whose documents may differ from those of "
                 "this version, %.40s",
                 version, job->config->program_version);
        return refuse_journal(ledger, SL_EXIT_USAGE, how, error);
    }
    append_options(&now, job->config);
    sl_look_inside(&now, "options", &options);
    sl_look_inside(ledger->earlier->begun, "options", &was_options);
    bool differ = options_differ(&was_options, &options, how, sizeof how);
    bson_destroy(&now);
    const bool dropped = sl_look_flag(ledger->earlier->begun, "drop");
    /* What the first run has dropped is not dropped again. */
    if (!differ && (dropped ? !job->config->drop && !ledger->earlier->target : job->config->drop))
        return refuse_journal(ledger, SL_EXIT_USAGE,
                              dropped ? "--drop was \"yes\" and is not given"
                                      : "--drop was not given and is \"yes\"",
                              error);
    return !differ || refuse_journal(ledger, SL_EXIT_USAGE, how, error);
}

/* ---- opening ---- */

static void earlier_clear(sl_earlier_run *earlier) {
    bson_destroy(earlier->begun);
    bson_destroy(earlier->dropping);
    bson_destroy(earlier->target);
    bson_destroy(earlier->finished);
    free(earlier->entries);
    memset(earlier, 0, sizeof *earlier);
}

/* Sets the id under which the load keeps the balancer stopped. All its runs use the same id, so
 * that a resumed run finds the entry of a killed run. The journal is locked, so that run has
 * ended. */
static void take_holder(sl_ledger *ledger) {
    bson_oid_t id;
    const char *holder =
        ledger->earlier->begun ? sl_look_string(ledger->earlier->begun, "holder") : "";
    if (bson_oid_is_valid(holder, strlen(holder)))
        bson_oid_init_from_string(&id, holder);
    else
        bson_oid_init(&id, NULL);
    bson_oid_to_string(&id, ledger->holder);
}

/* Without a target no document has been sent. */
static bool may_begin(const sl_earlier_run *earlier, const char *folder, sl_error *error) {
    return !earlier->target || earlier->finished ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "%s holds the journal of a load that has not been completed: complete it "
                        "with --resume, or name another --work-dir",
                        folder);
}

/* Reads the journal of a folder. Close `*journal` and clear `earlier` in any case. */
static bool read_journal(const char *directory, sl_journal **journal, sl_earlier_run *earlier,
                         sl_error *error) {
    const sl_journal_handlers handlers = {on_document, on_entry, earlier};
    bool empty;
    *journal = NULL;
    return sl_journal_open(directory, &handlers, journal, &empty, error) &&
           (!earlier->no_memory || sl_error_memory(error, "reading the journal"));
}

bool sl_resume_may_begin(const char *directory, bool clears, sl_error *error) {
    sl_earlier_run earlier = {0};
    sl_journal *journal;
    bool ok =
        read_journal(directory, &journal, &earlier, error) && may_begin(&earlier, directory, error);
    if (ok && clears && earlier.finished) {
        char status[SL_WORK_DIRECTORY_ROOM + 16];
        snprintf(status, sizeof status, "%s/" SL_WORK_STATUS, directory);
        sl_private_file_remove(status);
        ok = sl_journal_begin(journal, error);
    }
    sl_journal_close(journal);
    earlier_clear(&earlier);
    return ok;
}

/* Decides from the journal's contents whether the load may begin, or be resumed. */
static bool judge(sl_job *job, sl_ledger *ledger, bool *finished, sl_error *error) {
    sl_earlier_run *earlier = ledger->earlier;
    const char *folder = ledger->work_directory;
    if (earlier->no_memory)
        return sl_error_memory(error, "reading the journal");
    take_holder(ledger);
    if (!job->config->resume || (job->config->resume_or_begin && !earlier->begun)) {
        if (!may_begin(earlier, folder, error))
            return false;
        earlier_clear(earlier);
        return write_begun(job, ledger, error);
    }
    if (!earlier->begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--resume: %s holds no journal of a load; leave --resume out to start "
                            "a new load",
                            folder);
    if (!same_options(job, ledger, error) || !same_sources(job, ledger, error) ||
        (earlier->target && !sl_types_restore(job, earlier->target, error)))
        return false;
    *finished = earlier->finished != NULL;
    if (*finished && sl_look_flag(earlier->finished, "nothing"))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "--resume: all records of the load in %s were rejected, so there is "
                            "nothing to complete: correct its options or its sources, and load "
                            "without --resume",
                            folder);
    job->resumed = earlier->target != NULL;
    return true;
}

bool sl_resume_open(sl_job *job, sl_ledger *ledger, bool *finished, sl_error *error) {
    *finished = false;
    if (job->config->sink != SL_SINK_CLUSTER)
        return true;
    ledger->earlier = calloc(1, sizeof *ledger->earlier);
    if (!ledger->earlier)
        return sl_error_memory(error, "opening the journal");
    sl_journal_handlers handlers = {on_document, on_entry, ledger->earlier};
    bool empty;
    if (!sl_journal_open(ledger->work_directory, &handlers, &ledger->journal, &empty, error) ||
        !judge(job, ledger, finished, error)) {
        sl_work_directory_abandon(ledger->work_directory, &ledger->lock);
        ledger->work_directory[0] = '\0'; /* keeps the run.json of the load that it belongs to */
        return false;
    }
    return true;
}

sl_exit sl_resume_completed_code(const sl_ledger *ledger) {
    bool rejects = sl_look_int64(ledger->earlier->finished, "rejects", 0) > 0;
    return rejects ? SL_EXIT_REJECTS : SL_EXIT_OK;
}

bool sl_resume_decide_drop(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                           sl_error *error) {
    const sl_target *target = &destination->target;
    char identity[SL_COLLECTION_IDENTITY_ROOM];
    if (!target->drop || !job->config->resume || !ledger->earlier->dropping)
        return true;
    if (!sl_collection_identity(destination->connection, target, identity, error))
        return false;
    /* If there is none, the registry may remain to be dropped. */
    if (!identity[0] ||
        strcmp(identity, sl_look_string(ledger->earlier->dropping, "dropping")) == 0)
        return true;
    sl_log_info(
        "%s.%s: an earlier run of this load has dropped the collection; the one that exists "
        "now is not dropped",
        target->database, target->collection);
    destination->target.drop = false;
    return true;
}

bool sl_resume_record_drop(const sl_destination *destination, const sl_ledger *ledger,
                           sl_error *error) {
    char identity[SL_COLLECTION_IDENTITY_ROOM];
    if (!destination->target.drop || !ledger->journal || ledger->earlier->dropping)
        return true;
    if (!sl_collection_identity(destination->connection, &destination->target, identity, error))
        return false;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "dropping", identity);
    bool ok = sl_journal_write(ledger->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

static void append_numbers(bson_t *document, const sl_job *job) {
    bson_t numbers;
    BSON_APPEND_ARRAY_BEGIN(document, "numbers", &numbers);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        char room[SL_ARRAY_KEY_ROOM];
        BSON_APPEND_INT32(&numbers, sl_array_key(i, room), (int32_t)job->sources[i].number);
    }
    bson_append_array_end(document, &numbers);
}

static bool same_numbers(const sl_job *job, const sl_ledger *ledger) {
    bson_iter_t iter, numbers;
    if (!bson_iter_init_find(&iter, ledger->earlier->target, "numbers") ||
        !bson_iter_recurse(&iter, &numbers))
        return false;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!bson_iter_next(&numbers) ||
            bson_iter_as_int64(&numbers) != (int64_t)job->sources[i].number)
            return false;
    }
    return true;
}

static bool same_target(const sl_ledger *ledger, const char *uuid, sl_error *error) {
    return strcmp(uuid, sl_look_string(ledger->earlier->target, "target")) == 0 ||
           refuse_journal(
               ledger, SL_EXIT_CLUSTER,
               uuid[0] ? "the collection has been dropped and created again since, or resharded, "
                         "or copied "
                         "by movePrimary; load without --resume, with another --work-dir; --again "
                         "accepts the documents that are stored"
                       : "the collection no longer exists; load without --resume, with another "
                         "--work-dir",
               error);
}

bool sl_resume_find_target(const sl_job *job, const sl_destination *destination,
                           const sl_ledger *ledger, sl_error *error) {
    char uuid[SL_UUID_ROOM];
    return !job->resumed ||
           (sl_target_uuid(destination->connection, &destination->target, uuid, error) &&
            same_target(ledger, uuid, error));
}

bool sl_resume_embed(const sl_job *job, const sl_ledger *ledger, sl_error *error) {
    const char *was = job->resumed ? sl_look_string(ledger->earlier->target, "embed") : "";
    return !was[0] || strcmp(was, job->embed->text) == 0 ||
           refuse_journal(ledger, SL_EXIT_SOURCE,
                          "the records of --embed have changed since; give them again as they "
                          "were, or start a new load: without --resume, with --drop and another "
                          "--work-dir",
                          error);
}

bool sl_resume_target(sl_job *job, sl_destination *destination, sl_ledger *ledger,
                      sl_error *error) {
    if (job->resumed) {
        if (!same_target(ledger, destination->target.uuid, error))
            return false;
        if (!same_numbers(job, ledger))
            return refuse_journal(
                ledger, SL_EXIT_CLUSTER,
                "the registry beside the collection now has other numbers for the sources; load "
                "without --resume, with another --work-dir",
                error);
        sl_unregistered_recall(ledger, ledger->earlier->target);
    }
    if (!sl_unregistered_count(job, destination, ledger, error))
        return false;
    if (job->resumed || !ledger->journal)
        return true;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "target", destination->target.uuid);
    append_numbers(&document, job);
    if (job->embed)
        BSON_APPEND_UTF8(&document, "embed", job->embed->text);
    sl_types_append(job, &document);
    sl_unregistered_append(ledger, &document);
    bool ok = sl_journal_write(ledger->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

bool sl_resume_has_blocks(const sl_ledger *ledger) {
    const sl_earlier_run *earlier = ledger->earlier;
    size_t i = 0;
    while (earlier && i < earlier->count && is_read_only(&earlier->entries[i]))
        i++;
    return earlier && i < earlier->count;
}

/* ---- recovering ---- */

/* The bitmaps of all sources may use this many bytes, and this many for each entry of the journal:
 * a loader of one of 1,000 parts uses 250. */
#define BITMAP_BYTES ((size_t)16 << 20)
#define BITMAP_BYTES_PER_ENTRY ((size_t)256)

/* False without memory, or if the journal has not as many entries as such a number needs. */
static bool mark_done(sl_job_source *source, uint64_t sequence, size_t *budget, bool *possible) {
    uint64_t word = sequence >> 6;
    *possible = word < SIZE_MAX / 32;
    if (*possible && word >= source->done_words) {
        size_t words = ((size_t)word + 1) * 2;
        size_t more = (words - source->done_words) * sizeof *source->done;
        *possible = more <= *budget;
        if (!*possible)
            return false;
        *budget -= more;
        uint64_t *done = realloc(source->done, words * sizeof *done);
        if (!done)
            return false;
        memset(done + source->done_words, 0, (words - source->done_words) * sizeof *done);
        source->done = done;
        source->done_words = words;
    }
    if (*possible)
        source->done[word] |= (uint64_t)1 << (sequence & 63);
    return *possible;
}

bool sl_ledger_open_accounts(sl_ledger *ledger, const sl_job *job) {
    pthread_mutex_init(&ledger->found_lock, NULL);
    ledger->sources = calloc(sl_source_set_count(job->set) + 1, sizeof *ledger->sources);
    ledger->ranges = calloc(job->range_count + 1, sizeof *ledger->ranges);
    return ledger->sources && ledger->ranges;
}

static void note_found(sl_ledger *ledger, const sl_journal_entry *entry) {
    pthread_mutex_lock(&ledger->found_lock);
    struct sl_found_block *more =
        sl_grow(ledger->found, ledger->found_count, &ledger->found_room, sizeof *more);
    if (more) {
        ledger->found = more;
        more[ledger->found_count++] = (struct sl_found_block){entry->source, entry->sequence};
    }
    ledger->found_incomplete = ledger->found_incomplete || !more;
    pthread_mutex_unlock(&ledger->found_lock);
}

void sl_ledger_add(sl_ledger *ledger, const sl_job *job, const sl_journal_entry *entry) {
    sl_source_account *account = &ledger->sources[entry->source];
    const int64_t first_id = sl_document_id(job->sources[entry->source].number, entry->offset);
    sl_range_account *range = &ledger->ranges[sl_job_range_of(job, first_id)];
    const uint64_t taken = entry->taken;
    /* A mode that matches stored documents adds only the inserted ones to the collection. */
    const uint64_t accepted =
        entry->inserted + (sl_load_mode(job->config)->matches ? 0 : entry->already_stored);
    atomic_fetch_add_explicit(&account->rejected, entry->counts.rejects, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->refused, entry->server_rejects, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->refused_ids, entry->refused_ids, memory_order_relaxed);
    /* The range also holds a document under each taken _id. */
    atomic_fetch_add_explicit(&range->accepted, accepted + taken, memory_order_relaxed);
    atomic_fetch_add_explicit(&range->borders, entry->borders, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->accepted, accepted, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->taken, taken, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->held,
                              entry->counts.documents - entry->server_rejects + taken,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&account->text_bytes, entry->text_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->borders, entry->borders, memory_order_relaxed);
    if (entry->counts.documents > entry->inserted + entry->server_rejects)
        note_found(ledger, entry);
}

static bool impossible(const sl_ledger *ledger, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s/journal names a block that the sources cannot have; load "
                        "without --resume, with another --work-dir",
                        ledger->work_directory);
}

static bool recover(sl_job *job, sl_ledger *ledger, const sl_journal_entry *entry, size_t *budget,
                    sl_error *error) {
    sl_recovered *recovered = &ledger->recovered;
    sl_job_source *source = &job->sources[entry->source];
    if (source->compare)
        source->uncompared++;
    if (is_read_only(entry))
        return true;
    if (entry->offset + entry->text_bytes > source->done_end)
        source->done_end = entry->offset + entry->text_bytes;
    recovered->blocks++;
#define ADD(place, field, ...) recovered->field += entry->field;
    SL_JOURNAL_COUNTS(SL_NO_COUNT, ADD)
    /* The outcome of each document is known. */
    recovered->changed +=
        entry->counts.documents - entry->inserted - entry->already_stored - entry->server_rejects;
    sl_parse_counts_add(&recovered->counts, &entry->counts);
    sl_ledger_add(ledger, job, entry);
    sl_source_block block = {.source = (size_t)entry->source,
                             .sequence = entry->sequence,
                             .offset = entry->offset,
                             .entry_start = entry->entry_start != 0};
    bool possible;
    if (!mark_done(source, entry->sequence, budget, &possible))
        return possible ? sl_error_memory(error, "recovering the journal")
                        : impossible(ledger, error);
    return sl_rejects_block_was_done(ledger->rejects, &block, entry, error);
}

/* The maximum number of blocks before this one: each has at least a byte of text, and 1 MiB in a
 * splittable source. */
static uint64_t blocks_before(const sl_job *job, const sl_journal_entry *entry) {
    const sl_source *facts = sl_source_set_at(job->set, (size_t)entry->source);
    return sl_source_is_splittable(facts) ? entry->offset >> SL_BLOCK_BITS : entry->offset;
}

static bool is_of_this_load(const sl_job *job, const sl_journal_entry *entry) {
    return entry->source < sl_source_set_count(job->set) && !job->sources[entry->source].skipped &&
           entry->sequence <= blocks_before(job, entry) && entry->offset < SL_SOURCE_BYTES_MAX;
}

/* Removes repeated entries from the sorted list. */
static size_t drop_repeated(sl_journal_entry *entries, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || entry_order(&entries[kept - 1], &entries[i]) != 0)
            entries[kept++] = entries[i];
    }
    return kept;
}

static void sort_entries(sl_earlier_run *earlier) {
    if (!earlier || earlier->count == 0)
        return;
    qsort(earlier->entries, earlier->count, sizeof *earlier->entries, reading_order);
    earlier->count = drop_repeated(earlier->entries, earlier->count);
}

bool sl_resume_entries(const char *directory, sl_journal_entry **entries, size_t *count,
                       sl_error *error) {
    sl_earlier_run earlier = {0};
    sl_journal *journal;
    bool ok = read_journal(directory, &journal, &earlier, error);
    sl_journal_close(journal);
    sort_entries(&earlier);
    *entries = earlier.entries;
    *count = earlier.count;
    earlier.entries = NULL;
    earlier_clear(&earlier);
    return ok;
}

bool sl_resume_compare_begin(sl_job *job, sl_ledger *ledger, sl_error *error) {
    sl_earlier_run *earlier = ledger->earlier;
    sort_entries(earlier);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].compare)
            sl_source_set_skip(job->set, i);
    }
    for (size_t i = 0; i < earlier->count; i++) {
        if (!is_of_this_load(job, &earlier->entries[i]))
            return impossible(ledger, error);
        job->sources[earlier->entries[i].source].uncompared++;
    }
    return true;
}

bool sl_resume_recover(sl_job *job, sl_ledger *ledger, sl_error *error) {
    sl_earlier_run *earlier = ledger->earlier;
    const char *directory = ledger->work_directory[0] ? ledger->work_directory : NULL;
    uint64_t table_bytes = 0;
    sort_entries(earlier);
    for (size_t i = 0; earlier && i < earlier->count; i++) {
        if (earlier->entries[i].table_bytes > table_bytes)
            table_bytes = earlier->entries[i].table_bytes;
    }
    size_t budget = BITMAP_BYTES + BITMAP_BYTES_PER_ENTRY * (earlier ? earlier->count : 0);
    if (!sl_ledger_open_accounts(ledger, job))
        return sl_error_memory(error, "recovering the journal");
    if (directory && !(earlier && earlier->count > 0) &&
        !sl_work_directory_set_rejects_aside(directory, error))
        return false;
    if (!sl_rejects_open(directory, job->set, ledger->journal != NULL, table_bytes,
                         &ledger->rejects, error))
        return false;
    for (size_t i = 0; earlier && i < earlier->count; i++) {
        if (!is_of_this_load(job, &earlier->entries[i]))
            return impossible(ledger, error);
        if (!recover(job, ledger, &earlier->entries[i], &budget, error))
            return false;
    }
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        if (source->done)
            sl_source_set_skip_blocks(job->set, i, source->done, source->done_words,
                                      source->compare);
    }
    if (job->resumed) {
        sl_log_info("resuming: earlier runs have completed %s",
                    sl_plural(ledger->recovered.counts.records, "record"));
    }
    return true;
}

/* ---- during the load, and at its end ---- */

bool sl_resume_blocks_done(sl_ledger *ledger, sl_error *error) {
    return sl_rejects_pass_on(ledger->rejects, ledger->journal) ||
           sl_error_memory(error, "keeping the journal");
}

bool sl_resume_commit(sl_destination *destination, sl_ledger *ledger, sl_error *error) {
    bool confirmed;
    if (!ledger->journal || !ledger->rejects)
        return true;
    /* Collected first: the confirmation covers documents that were acknowledged before it. */
    if (!ledger->uncommitted)
        sl_journal_collect(ledger->journal);
    ledger->uncommitted = true;
    if (!sl_route_confirm(destination, &confirmed, error))
        return false;
    ledger->uncommitted = !confirmed;
    return !confirmed ||
           ((!ledger->store || sl_store_sync(ledger->store, error)) &&
            sl_rejects_sync(ledger->rejects, error) && sl_journal_commit(ledger->journal, error));
}

static bool keep_waiting(void *context) {
    (void)context;
    return !sl_interrupt_requested();
}

bool sl_resume_commit_last(sl_destination *destination, sl_ledger *ledger, sl_error *error) {
    bool held = ledger->uncommitted; /* entries of an earlier commit are still uncommitted: later
                                        entries need a second commit */
    for (unsigned attempt = 0; sl_resume_commit(destination, ledger, error); attempt++) {
        if (!ledger->uncommitted && !held)
            return true;
        if (!ledger->uncommitted) {
            held = false;
            continue;
        }
        if (sl_backoff(attempt, keep_waiting, NULL))
            continue;
        if (sl_interrupt_requested())
            error->code = SL_EXIT_INTERRUPTED;
        return sl_error_prefix(error, "the owners of the last batches could not be confirmed");
    }
    return false;
}

bool sl_resume_finish(const sl_ledger *ledger, uint64_t rejects, bool nothing, sl_error *error) {
    if (!ledger->journal)
        return true;
    rejects += ledger->recovered.counts.rejects + ledger->recovered.server_rejects;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&document, "finished", sl_wall_clock_ms());
    BSON_APPEND_INT64(&document, "rejects", (int64_t)rejects);
    if (nothing)
        BSON_APPEND_BOOL(&document, "nothing", true);
    bool ok = sl_journal_write(ledger->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

void sl_ledger_clear(sl_ledger *ledger) {
    sl_rejects_close(ledger->rejects, NULL, NULL);
    sl_journal_close(ledger->journal);
    if (ledger->earlier)
        earlier_clear(ledger->earlier);
    free(ledger->earlier);
    sl_work_directory_release(&ledger->lock);
    sl_reject_kinds_clear(&ledger->reject_kinds);
    if (ledger->sources)
        pthread_mutex_destroy(&ledger->found_lock);
    free(ledger->sources);
    free(ledger->ranges);
    free(ledger->found);
}

/* ---- checks of blocks ---- */

bool sl_resume_block_read(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error) {
    if (!ledger->journal || block->last ||
        sl_source_set_at(job->set, block->source)->kind != SL_SOURCE_PIPE)
        return true;
    const sl_journal_entry entry = {.source = block->source,
                                    .sequence = block->sequence,
                                    .offset = block->offset,
                                    .entry_start = SL_JOURNAL_READ,
                                    .check = sl_resume_check(block),
                                    .text_bytes = block->text.length};
    return sl_journal_add(ledger->journal, &entry) || sl_error_memory(error, "keeping the journal");
}

uint64_t sl_resume_check(const sl_source_block *block) {
    return block->text.bytes ? sl_hash_text(block->text.bytes, block->text.length) : 0;
}

bool sl_resume_block_fits(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error) {
    const sl_earlier_run *earlier = ledger->earlier;
    const sl_job_source *source = &job->sources[block->source];
    const sl_source *facts = sl_source_set_at(job->set, block->source);
    uint64_t end = block->offset + block->text.length;
    /* The last block of a splittable source may be empty; the size of such a source is compared. */
    if (block->last && end < source->done_end && !sl_source_is_splittable(facts))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: ended at byte %llu, but the interrupted run had read up to byte "
                            "%llu; give it the full text again",
                            facts->shown, (unsigned long long)end,
                            (unsigned long long)source->done_end);
    if (!block->done && !source->compare)
        return true;
    sl_journal_entry key = {.source = block->source, .sequence = block->sequence};
    const sl_journal_entry *entry =
        earlier->count > 0
            ? bsearch(&key, earlier->entries, earlier->count, sizeof key, entry_order)
            : NULL;
    if (!entry && !block->done)
        return true;
    if (entry && entry->offset == block->offset && entry->text_bytes == block->text.length &&
        entry->check == sl_resume_check(block)) {
        if (source->compare)
            atomic_fetch_sub(&job->sources[block->source].uncompared, 1);
        return true;
    }
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: the text at byte %llu differs from that of the earlier run; give it the same text "
        "again. If it is the same, and an earlier --resume was given another text, start a new "
        "load: with --drop, or without --resume with another --work-dir",
        facts->shown, (unsigned long long)block->offset);
}

/* Blocks that were sent but not completed when the earlier run ended are not in the journal. If
 * their text has changed, other documents are stored under their _ids. */
bool sl_resume_taken_fits(const sl_job *job, const sl_source_block *block, sl_error *error) {
    if (!job->resumed || !job->sources[block->source].compare)
        return true;
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s: the text after byte %llu differs from that of the earlier run: other "
                 "documents are stored under the ids of its documents. The text before is the same "
                 "as far as it was completed, but documents of both texts may be stored now: load "
                 "one of them again, with --drop, or into another collection",
                 sl_source_set_at(job->set, block->source)->shown,
                 (unsigned long long)block->offset);
    error->afresh = true;
    return false;
}
