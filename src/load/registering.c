/* SPDX-License-Identifier: Apache-2.0 */
/* Registers, at the end of a load, the sources or this loader's parts of them as loaded, with their
 * numbers of documents. The loader that finishes the last part of a source counts the stored
 * documents of that source. */
#include "record.h"

#include <stdlib.h>

#include "job/numbers.h"
#include "util/log.h"
#include "util/text.h"

/* The number of documents that this loader has stored for a part of a source; with part 0, for all
 * of the source. Each piece of a source in several pieces is a separate range, laid out for one
 * shard. */
static uint64_t documents_of(const sl_job *job, const sl_ledger *ledger, size_t index,
                             uint32_t part) {
    const sl_job_source *source = &job->sources[index];
    const sl_source_account *account = &ledger->sources[index];
    if (part == 0)
        return atomic_load(&account->accepted);
    if (!job->own_shards || source->pieces == 1)
        return !job->own_shards || sl_job_shard_of(job, source, 0) == part - 1
                   ? atomic_load(&account->accepted) + atomic_load(&account->taken)
                   : 0;
    uint64_t documents = 0;
    for (uint32_t piece = 0; piece < source->pieces; piece++) {
        int64_t first = sl_stripe_first_id(source->number, sl_piece_begin(source, piece));
        if (sl_job_shard_of(job, source, piece) == part - 1)
            documents += atomic_load(&ledger->accepted[sl_job_range_of(job, first)]);
    }
    return documents;
}

static void set_documents(const sl_job *job, const sl_ledger *ledger, size_t index, uint32_t part,
                          sl_registry_entry *entry) {
    const sl_source_account *account = &ledger->sources[index];
    entry->documents = documents_of(job, ledger, index, part);
    entry->in_range_known = !job->own_ids && !sl_load_mode(job->config)->matches;
    entry->in_range = atomic_load(&account->accepted) + atomic_load(&account->taken);
}

static bool finish(const sl_job *job, const sl_destination *destination, const void *context,
                   uint32_t part, sl_registry_entry *entries, size_t count, sl_error *error) {
    size_t next = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            set_documents(job, context, i, part, &entries[next++]);
    }
    return sl_registry_finish(destination->registry, entries, count, error);
}

/* Compares the documents that the cluster holds of a complete source with those of its parts. */
static bool count_source(const sl_job *job, const sl_destination *destination, size_t index,
                         uint64_t expected, sl_error *error) {
    const sl_job_source *source = &job->sources[index];
    const sl_target *target = &destination->target;
    uint64_t found;
    if (!sl_count_range(destination->connection, target, sl_stripe_first_id(source->number, 0),
                        sl_stripe_first_id(source->number, SL_STRIPES), &found, error))
        return false;
    return found == expected ||
           sl_error_set(
               error, SL_EXIT_VERIFICATION,
               "verification failed: %s: its %u parts have loaded %llu documents, and %llu "
               "are stored; has another program written to %s.%s? shardload verify --content "
               "lists the documents",
               sl_source_set_at(job->set, index)->shown, job->parts, (unsigned long long)expected,
               (unsigned long long)found, target->database, target->collection);
}

static void log_what_is_loaded(const sl_job *job, const sl_destination *destination, size_t whole,
                               uint64_t documents) {
    char shown[SL_HUMAN_ROOM], names[SL_SHARD_NAMES_ROOM];
    size_t rest = job->active - whole;
    if (rest == 0 && sl_load_mode(job->config)->matches) /* changed documents, too */
        sl_log_info("all %u parts are loaded", job->parts);
    else if (rest == 0)
        sl_log_info("all %u %s are loaded: %s documents in total", job->parts,
                    job->own_shards ? "shards" : "parts", sl_human_count(documents, shown));
    else if (job->own_shards)
        sl_log_info("this loader's shards (%s) are loaded; %zu of %zu sources wait for other "
                    "shards",
                    sl_shard_names(destination->topology, job->own_shards, names), rest,
                    job->active);
    else
        sl_log_info("part %u of %u is loaded; %zu of %zu sources wait for other parts",
                    job->config->part, job->parts, rest, job->active);
}

/* Of a shared load: counts the sources whose parts are all loaded, and registers them as loaded.
 * `entries`: the registry entries of the job's sources, after this loader's parts have been
 * registered. */
static bool finish_complete(const sl_job *job, const sl_destination *destination,
                            sl_registry_entry *entries, sl_error *error) {
    size_t whole = 0, next = 0;
    uint64_t documents = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (job->sources[i].skipped)
            continue;
        sl_registry_entry *entry = &entries[next++];
        if (entry->parts_loaded < job->parts)
            continue;
        /* Documents with their own _ids form no range that could be counted. */
        if (job->config->verify && !job->own_ids &&
            !count_source(job, destination, i, entry->documents, error))
            return false;
        documents += entry->documents;
        entry->in_range = entry->documents; /* of a part, these include documents of others */
        entries[whole++] = *entry;
    }
    if (whole > 0 && !sl_registry_finish_sources(destination->registry, entries, whole, error))
        return false;
    log_what_is_loaded(job, destination, whole, documents);
    return true;
}

bool sl_register_loaded(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                        sl_error *error) {
    size_t count;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_parts_each(job, destination, finish, ledger, entries, count, error) &&
              (job->parts == 0 || finish_complete(job, destination, entries, error));
    free(entries);
    return ok;
}
