/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the journal of a load, and recovers it in a load that is resumed.
 *
 * The journal begins with three documents:
 *
 *   {begun: <date>, holder: <id>, options: {...}, sources: [{path, fingerprint, ...}]}
 *                                           before anything is changed
 *   {target: <uuid of the collection>, numbers: [...], outside: {...}}
 *                                           before the first document
 *   {finished: <date>, rejects: <number>}   after verification, when run.json is written
 *
 * with its blocks between the last two. A load that is resumed must have the same sources, the same
 * options that change documents, and the same collection (by UUID, not by name); otherwise the
 * blocks that it skips would not be the blocks that were sent. Without `target` no document has
 * been sent, and the load begins again with its options, --drop included.
 *
 * The order that makes it safe, for each block: its documents are acknowledged by the server with
 * the write concern of the load; then its rejects are synced to disk; then its entry is. Wherever
 * the load is killed, a block without an entry is loaded again, and its stored documents are found
 * under their _ids. Writing and recovering are in one file, since they must agree on these
 * steps. */
#include "earlier_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/md5.h"
#include "util/text.h"

#include "unregistered.h"

/* ---- reading ---- */

static bool on_document(void *context, const bson_t *document) {
    sl_earlier_run *earlier = context;
    bson_t **places[] = {&earlier->begun, &earlier->target, &earlier->finished};
    static const char *const names[] = {"begun", "target", "finished"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (bson_has_field(document, names[i]) && !*places[i] && (i == 0 || *places[i - 1])) {
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
    if (earlier->count == earlier->room) {
        size_t room = earlier->room ? earlier->room * 2 : 1024;
        sl_journal_entry *entries = realloc(earlier->entries, room * sizeof *entries);
        if (!entries) {
            earlier->no_memory = true;
            return false;
        }
        earlier->entries = entries;
        earlier->room = room;
    }
    earlier->entries[earlier->count++] = *entry;
    return true;
}

/* ---- the options of the load ---- */

static void append_schema(bson_t *options, const char *text) {
    uint8_t digest[SL_MD5_BYTES];
    char hex[2 * SL_MD5_BYTES + 1] = "none";
    if (text) {
        sl_md5 md5;
        sl_md5_begin(&md5);
        sl_md5_add(&md5, text, strlen(text));
        sl_md5_end(&md5, digest);
        for (size_t i = 0; i < SL_MD5_BYTES; i++)
            snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    }
    BSON_APPEND_UTF8(options, "schema", hex);
}

void sl_resume_format_options(const sl_load_config *config, bson_t *options) {
    const sl_format_options *format = &config->format_options;
    BSON_APPEND_UTF8(options, "format", config->format);
    append_schema(options, format->schema_text);
    BSON_APPEND_UTF8(options, "names", format->long_names ? "long" : "short");
    BSON_APPEND_UTF8(options, "encoding", format->latin1 ? "latin-1" : "utf-8");
    BSON_APPEND_UTF8(options, "trim", format->trim ? "yes" : "no");
    BSON_APPEND_UTF8(options, "missing", format->keep_missing ? "raw" : "omit");
}

/* Appends the options that change the documents or their target, under their names on the command
 * line. */
static void append_options(bson_t *document, const sl_load_config *config) {
    bson_t options;
    BSON_APPEND_DOCUMENT_BEGIN(document, "options", &options);
    BSON_APPEND_UTF8(&options, "db", config->database);
    BSON_APPEND_UTF8(&options, "collection", config->collection);
    sl_resume_format_options(config, &options);
    BSON_APPEND_UTF8(&options, "include", config->include ? config->include : "");
    char part[32] = "all";
    if (config->parts > 0)
        snprintf(part, sizeof part, "%u/%u", config->part, config->parts);
    BSON_APPEND_UTF8(&options, "part", part);
    BSON_APPEND_UTF8(&options, "only-shards", config->only_shards ? config->only_shards : "");
    bson_append_document_end(document, &options);
}

static bool write_begun(sl_load *load, sl_error *error) {
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&document, "begun", sl_wall_clock_ms());
    BSON_APPEND_UTF8(&document, "version", load->config->program_version);
    BSON_APPEND_UTF8(&document, "holder", load->holder);
    append_options(&document, load->config);
    sl_earlier_append_sources(&document, load);
    bool ok =
        sl_journal_begin(load->journal, error) && sl_journal_write(load->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

static bool same_options(const sl_load *load, sl_error *error) {
    bson_t now = BSON_INITIALIZER;
    bson_iter_t iter, options;
    char how[900] = "";
    size_t used = 0;
    append_options(&now, load->config);
    const char *version = sl_earlier_text(load->earlier->begun, "version");
    if (strcmp(version, load->config->program_version) != 0)
        used += (size_t)snprintf(how, sizeof how,
                                 "it was begun by version %.40s of this program, "
                                 "whose documents may differ; this is %.40s",
                                 version, load->config->program_version);
    bson_iter_init_find(&iter, &now, "options");
    bson_iter_recurse(&iter, &options);
    while (bson_iter_next(&options)) {
        char path[64];
        snprintf(path, sizeof path, "options.%s", bson_iter_key(&options));
        const char *was = sl_earlier_text(load->earlier->begun, path),
                   *is = bson_iter_utf8(&options, NULL);
        if (strcmp(was, is) != 0 && used < sizeof how)
            used += (size_t)snprintf(how + used, sizeof how - used,
                                     "%s--%s was \"%.100s\" and is \"%.100s\"", used ? ", " : "",
                                     bson_iter_key(&options), was, is);
    }
    bson_destroy(&now);
    return used == 0 || sl_earlier_differs(load, SL_EXIT_USAGE, how, error);
}

/* ---- opening ---- */

static void earlier_clear(sl_earlier_run *earlier) {
    bson_destroy(earlier->begun);
    bson_destroy(earlier->target);
    bson_destroy(earlier->finished);
    free(earlier->entries);
    memset(earlier, 0, sizeof *earlier);
}

/* Sets the id under which the load keeps the balancer stopped. All its runs use the same one, so
 * that a resumed run finds the hold of a killed run. The journal is locked, so that run has
 * ended. */
static void take_holder(sl_load *load) {
    bson_oid_t id;
    const char *holder =
        load->earlier->begun ? sl_earlier_text(load->earlier->begun, "holder") : "";
    if (bson_oid_is_valid(holder, strlen(holder)))
        bson_oid_init_from_string(&id, holder);
    else
        bson_oid_init(&id, NULL);
    bson_oid_to_string(&id, load->holder);
}

/* Decides from the journal's contents whether the load may begin, or be resumed. */
static bool judge(sl_load *load, bool empty, bool *finished, sl_error *error) {
    sl_earlier_run *earlier = load->earlier;
    const char *folder = load->work_directory;
    if (earlier->no_memory)
        return sl_error_memory(error, "reading the journal");
    take_holder(load);
    if (!load->config->resume) {
        /* Without a target no document has been sent. */
        if (empty || !earlier->target || earlier->finished) {
            earlier_clear(earlier);
            return write_begun(load, error);
        }
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s holds the journal of a load that has not been completed: complete "
                            "it with --resume, or name another folder with --work-dir",
                            folder);
    }
    if (!earlier->begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--resume: %s holds no journal of a load; leave --resume out to begin "
                            "one",
                            folder);
    if (!same_options(load, error) || !sl_earlier_same_sources(load, error))
        return false;
    *finished = earlier->finished != NULL;
    load->resumed = earlier->target != NULL;
    return true;
}

bool sl_resume_open(sl_load *load, bool *finished, sl_error *error) {
    *finished = false;
    if (load->config->sink != SL_SINK_CLUSTER)
        return true;
    load->earlier = calloc(1, sizeof *load->earlier);
    if (!load->earlier)
        return sl_error_memory(error, "opening the journal");
    sl_journal_handlers handlers = {on_document, on_entry, load->earlier};
    bool empty;
    if (!sl_journal_open(load->work_directory, &handlers, &load->journal, &empty, error) ||
        !judge(load, empty, finished, error)) {
        load->work_directory[0] = '\0'; /* keeps the run.json of the load that it belongs to */
        return false;
    }
    if (*finished) {
        bson_iter_t iter;
        bool rejects = bson_iter_init_find(&iter, load->earlier->finished, "rejects") &&
                       bson_iter_as_int64(&iter) > 0;
        sl_log_info("%s: this load has been completed; there is nothing to resume",
                    load->work_directory);
        error->code = rejects ? SL_EXIT_REJECTS : SL_EXIT_OK;
    }
    return true;
}

static void append_numbers(bson_t *document, const sl_load *load) {
    bson_t numbers;
    BSON_APPEND_ARRAY_BEGIN(document, "numbers", &numbers);
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        char room[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
        BSON_APPEND_INT32(&numbers, key, (int32_t)load->sources[i].number);
    }
    bson_append_array_end(document, &numbers);
}

static bool same_numbers(const sl_load *load) {
    bson_iter_t iter, numbers;
    if (!bson_iter_init_find(&iter, load->earlier->target, "numbers") ||
        !bson_iter_recurse(&iter, &numbers))
        return false;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        if (!bson_iter_next(&numbers) ||
            bson_iter_as_int64(&numbers) != (int64_t)load->sources[i].number)
            return false;
    }
    return true;
}

static bool same_target(const sl_load *load, const char *uuid, sl_error *error) {
    return strcmp(uuid, sl_earlier_text(load->earlier->target, "target")) == 0 ||
           sl_earlier_differs(
               load, SL_EXIT_CLUSTER,
               uuid[0]
                   ? "the collection has been dropped and created again since, or resharded; load "
                     "without --resume, into another --work-dir"
                   : "the collection does not exist any more; load without --resume, into "
                     "another --work-dir",
               error);
}

bool sl_resume_find_target(sl_load *load, sl_error *error) {
    char uuid[SL_UUID_ROOM];
    return !load->resumed || (sl_target_uuid(load->connection, &load->target, uuid, error) &&
                              same_target(load, uuid, error));
}

bool sl_resume_target(sl_load *load, sl_error *error) {
    if (load->resumed) {
        if (!same_target(load, load->target.uuid, error))
            return false;
        if (!same_numbers(load))
            return sl_earlier_differs(
                load, SL_EXIT_CLUSTER,
                "the registry beside the collection now has other numbers for the "
                "sources; load without --resume, into another --work-dir",
                error);
        sl_unregistered_recall(load, load->earlier->target);
    }
    if (!sl_unregistered_count(load, load->created, error))
        return false;
    if (load->resumed || !load->journal)
        return true;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "target", load->target.uuid);
    append_numbers(&document, load);
    sl_unregistered_append(load, &document);
    bool ok = sl_journal_write(load->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

/* ---- recovering ---- */

static bool mark_done(sl_load_source *source, uint64_t sequence) {
    size_t word = (size_t)(sequence >> 6);
    if (word >= source->done_words) {
        size_t words = (word + 1) * 2;
        uint64_t *done = realloc(source->done, words * sizeof *done);
        if (!done)
            return false;
        memset(done + source->done_words, 0, (words - source->done_words) * sizeof *done);
        source->done = done;
        source->done_words = words;
    }
    source->done[word] |= (uint64_t)1 << (sequence & 63);
    return true;
}

static bool recover(sl_load *load, const sl_journal_entry *entry, sl_error *error) {
    sl_recovered *recovered = &load->recovered;
    sl_load_source *source = &load->sources[entry->source];
    int64_t first_id = sl_document_id(source->number, entry->offset);
    if (entry->offset + entry->text_bytes > source->done_end)
        source->done_end = entry->offset + entry->text_bytes;
    recovered->blocks++;
    recovered->text_bytes += entry->text_bytes;
    recovered->inserted += entry->inserted;
    recovered->already_stored += entry->already_stored;
    recovered->refused += entry->refused;
    sl_parse_counts_add(&recovered->counts, &entry->counts);
    atomic_fetch_add(&load->accepted[sl_load_range_of(load, first_id)],
                     entry->inserted + entry->already_stored + entry->taken);
    atomic_fetch_add(&source->accepted, entry->inserted + entry->already_stored);
    atomic_fetch_add(&source->taken, entry->taken);
    sl_source_block block = {.source = (size_t)entry->source,
                             .sequence = entry->sequence,
                             .offset = entry->offset,
                             .entry_start = entry->entry_start != 0};
    return mark_done(source, entry->sequence)
               ? sl_rejects_block_was_done(load->rejects, &block, entry, error)
               : sl_error_memory(error, "recovering the journal");
}

/* The maximum number of blocks before this one: each has at least a byte of text, and 1 MiB in a
 * splittable source. */
static uint64_t blocks_before(const sl_load *load, const sl_journal_entry *entry) {
    const sl_source *facts = sl_source_set_at(load->set, (size_t)entry->source);
    return sl_source_is_splittable(facts) ? entry->offset >> SL_BLOCK_BITS : entry->offset;
}

static bool is_of_this_load(const sl_load *load, const sl_journal_entry *entry) {
    return entry->source < sl_source_set_count(load->set) &&
           !load->sources[entry->source].skipped && entry->sequence <= blocks_before(load, entry) &&
           entry->offset < SL_SOURCE_BYTES_MAX;
}

/* Removes repeated entries from the sorted list. */
static size_t drop_repeated(sl_journal_entry *entries, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || sl_earlier_entry_order(&entries[kept - 1], &entries[i]) != 0)
            entries[kept++] = entries[i];
    }
    return kept;
}

bool sl_resume_recover(sl_load *load, sl_error *error) {
    sl_earlier_run *earlier = load->earlier;
    const char *directory = load->work_directory[0] ? load->work_directory : NULL;
    uint64_t table_bytes = 0;
    if (earlier && earlier->count > 0) {
        qsort(earlier->entries, earlier->count, sizeof *earlier->entries, sl_earlier_entry_order);
        earlier->count = drop_repeated(earlier->entries, earlier->count);
    }
    for (size_t i = 0; earlier && i < earlier->count; i++) {
        if (earlier->entries[i].table_bytes > table_bytes)
            table_bytes = earlier->entries[i].table_bytes;
    }
    if (!sl_rejects_open(directory, load->set, load->journal, table_bytes, &load->rejects, error))
        return false;
    for (size_t i = 0; earlier && i < earlier->count; i++) {
        if (!is_of_this_load(load, &earlier->entries[i]))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s/journal names a block that the sources cannot have; load "
                                "without --resume, into another --work-dir",
                                directory);
        if (!recover(load, &earlier->entries[i], error))
            return false;
    }
    if (!sl_rejects_all_kept(load->rejects, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_load_source *source = &load->sources[i];
        if (source->done)
            sl_source_set_skip_blocks(load->set, i, source->done, source->done_words,
                                      source->compare);
    }
    if (load->resumed) {
        char records[SL_HUMAN_ROOM];
        sl_log_info("resuming: earlier runs have completed %s records",
                    sl_human_count(load->recovered.counts.records, records));
    }
    return true;
}

/* ---- during the load, and at its end ---- */

bool sl_resume_commit(sl_load *load, sl_error *error) {
    bool confirmed;
    if (!load->journal || !load->rejects)
        return true;
    /* Collected first: the confirmation covers documents that were acknowledged before it. */
    if (!load->uncommitted)
        sl_journal_collect(load->journal);
    load->uncommitted = true;
    if (!sl_route_confirm(load, &confirmed, error))
        return false;
    load->uncommitted = !confirmed;
    return !confirmed ||
           (sl_rejects_sync(load->rejects, error) && sl_journal_commit(load->journal, error));
}

static bool keep_waiting(void *context) {
    (void)context;
    return !sl_interrupt_requested();
}

bool sl_resume_commit_last(sl_load *load, sl_error *error) {
    bool held = load->uncommitted; /* since an earlier commit: later entries need a second one */
    for (unsigned attempt = 0; sl_resume_commit(load, error); attempt++) {
        if (!load->uncommitted && !held)
            return true;
        if (!load->uncommitted) {
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

bool sl_resume_finish(sl_load *load, sl_error *error) {
    if (!load->journal)
        return true;
    uint64_t rejects = load->recovered.counts.rejects + load->recovered.refused;
    for (unsigned i = 0; i < load->threads; i++)
        rejects += atomic_load(&load->counters[i].parser_rejects) +
                   atomic_load(&load->counters[i].server_rejects);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&document, "finished", sl_wall_clock_ms());
    BSON_APPEND_INT64(&document, "rejects", (int64_t)rejects);
    bool ok = sl_journal_write(load->journal, &document, error);
    bson_destroy(&document);
    return ok;
}

void sl_resume_close(sl_load *load) {
    sl_journal_close(load->journal);
    if (!load->earlier)
        return;
    earlier_clear(load->earlier);
    free(load->earlier);
}
