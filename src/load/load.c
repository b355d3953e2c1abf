/* SPDX-License-Identifier: Apache-2.0 */
/* A load from start to end: sources, connect, prepare, load, indexes, balancer, verify, report.
 *
 * Whatever ends the load, `sl_load_run` executes the same last lines, which restore the
 * balancer. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "cluster/cluster.h"
#include "format/key_fields.h"
#include "job/decision.h"
#include "job/document_sample.h"
#include "job/numbers.h"
#include "job/sources.h"
#include "job/types.h"
#include "ledger/ledger.h"
#include "send/sink.h"
#include "send/writer.h"
#include "source/sql_dump.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/load_counts.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#include "embedding.h"
#include "progress.h"
#include "record.h"
#include "run.h"
#include "verify_counts.h"
#include "worker.h"

/* The interval of journal commits: after a crash, a resumed load repeats about this much work. */
#define COMMIT_SECONDS 1.0

/* ---- interrupts, and the balancer, which is restored however the load ends ---- */

/* The end of a load, expected or not. The balancer is restored by the load itself or, after a
 * second Ctrl-C, by the thread that handles signals. A lock ensures that exactly one of them
 * does. */

/* Holds the lock until the balancer is stopped, so that the handler of a second Ctrl-C waits and
 * then restores it. */
static bool stop_balancer(sl_load *load, sl_error *error) {
    pthread_mutex_lock(&load->balancer_lock);
    load->balancer_lost = false;
    bool ok = sl_balancer_pause(load->destination.connection, load->ledger.holder, &load->balancer,
                                error);
    if (load->balancer)
        snprintf(load->balancer_before, sizeof load->balancer_before, "%s",
                 sl_balancer_before(load->balancer));
    pthread_mutex_unlock(&load->balancer_lock);
    return ok;
}

/* Restores the balancer, once, whichever thread calls it. */
static bool restore_balancer(sl_load *load, sl_error *error) {
    bool ok = true;
    pthread_mutex_lock(&load->balancer_lock);
    atomic_store(&load->putting_back, true);
    if (load->balancer) {
        ok = sl_balancer_restore(load->balancer, error);
        load->balancer_lost = !ok;
        load->balancer = NULL;
    }
    atomic_store(&load->putting_back, false);
    pthread_mutex_unlock(&load->balancer_lock);
    return ok;
}

/* Has a failed load changed nothing, neither in the cluster nor in its output? Then its work
 * directory is removed. A load of a trial or a restore, whose work directory is inside another one,
 * always counts as used. */
static bool is_unused(const sl_load *load) {
    const sl_destination *destination = &load->destination;
    if (load->job.config->part_of_trial || atomic_load(&load->run.opened))
        return false;
    return !atomic_load(&load->run.begun) || load->job.config->sink != SL_SINK_CLUSTER ||
           (!load->job.resumed && !load->job.config->drop && !destination->created &&
            !destination->numbered);
}

/* Can --resume complete the load, which ended for the reason `why`? It can even if this run ended
 * before it began, as long as it resumed an earlier run: the journal of that run is kept. */
static bool may_be_resumed(const sl_load *load, const sl_error *why) {
    const sl_load_config *config = load->job.config;
    bool journal_kept = atomic_load(&load->run.begun) || config->resume || config->part_of_trial;
    return journal_kept && !why->no_resume && !why->afresh &&
           atomic_load(&load->run.ended_by) != SL_ENDED_ALL_REJECTED;
}

/* Has the limit of rejects ended the load before its first document? */
static bool is_of_rejects(const sl_load *load) {
    if (atomic_load(&load->run.ended_by) != SL_ENDED_BY_REJECT_LIMIT)
        return false;
    const sl_run_totals sum = sl_run_sum(&load->run);
    return load->run.earlier.documents + sum.inserted + sum.already_stored + sum.changed == 0;
}

/* Was the load refused before it began, because of its options, its sources or stored documents? */
static bool is_refused(const sl_load *load, const sl_error *why) {
    return !atomic_load(&load->run.begun) &&
           (why->code == SL_EXIT_USAGE || why->code == SL_EXIT_SOURCE);
}

/* The last status of a load that a user ends at once. */
static void stop_status(const sl_load *load) {
    sl_status_stop(load->status, SL_EXIT_INTERRUPTED, "interrupted by the user",
                   may_be_resumed(load, &(sl_error){0}));
}

void sl_log_how_to_resume(const char *directory) {
    char folder[SL_WORD_ROOM(SL_WORK_DIRECTORY_ROOM)];
    sl_log_warning("to complete this load, give the same command with --resume --work-dir %s",
                   sl_shell_word(directory, folder, sizeof folder));
}

/* Logs the command that completes a load which ended early. */
static void log_how_to_complete(const sl_load *load, const sl_error *why) {
    const sl_load_config *config = load->job.config;
    if (why->no_resume || config->part_of_trial)
        return;
    if (config->sink == SL_SINK_BSON && atomic_load(&load->run.opened)) {
        sl_log_warning("the BSON dump is incomplete");
        return;
    }
    if (!load->ledger.journal || is_unused(load) || !atomic_load(&load->run.begun) ||
        atomic_load(&load->run.ended_by) == SL_ENDED_ALL_REJECTED)
        return;
    bool changed = load->job.set && sl_source_set_has_changed(load->job.set);
    if (changed && config->map && config->map->table) /* other tables of the dump are loaded too */
        return;
    if (config->how_logged)
        *config->how_logged |= !why->afresh;
    char folder[SL_WORD_ROOM(SL_WORK_DIRECTORY_ROOM)];
    if (why->afresh)
        sl_log_warning("--resume cannot complete this load, because its source or its options must "
                       "change: load again with the change that the message names%s%s",
                       config->work_directory ? " and another --work-dir" : "",
                       why->code == SL_EXIT_SOURCE
                           ? ". If a source changes, first remove the documents of this load, or "
                             "give --drop, which removes all documents of the collection"
                           : "");
    else
        sl_log_warning(
            "to complete this load, %sgive %s with %s%s--resume --work-dir %s%s%s",
            changed ? "restore the original source and " : "",
            config->completed_by ? config->completed_by : "the same command",
            atomic_load(&load->run.ended_by) == SL_ENDED_BY_REJECT_LIMIT
                ? "a higher --max-rejects and "
                : "",
            why->skippable ? "--skip-other " : "",
            sl_shell_word(config->resumed_in ? config->resumed_in : load->ledger.work_directory,
                          folder, sizeof folder),
            changed ? "; to load the changed source, start again with --drop" : "",
            why->code == SL_EXIT_SOURCE && !why->skippable && !changed &&
                    atomic_load(&load->run.ended_by) != SL_ENDED_BY_REJECT_LIMIT
                ? "; if a source has to be replaced, load it without --resume, with --drop"
                : "");
}

/* --drop, if a message advises it, removes more than the documents of this load, unless this load
 * has created the collection. */
static void warn_of_drop(const sl_load *load, const sl_error *why) {
    const sl_load_config *config = load->job.config;
    const sl_destination *destination = &load->destination;
    bool advised = strstr(why->message, "--drop") ||
                   (load->job.set && sl_source_set_has_changed(load->job.set));
    if (advised && config->sink == SL_SINK_CLUSTER && !config->drop && !config->part_of_trial &&
        !destination->created)
        sl_log_warning("--drop removes all documents of %s.%s, also those of other loads and "
                       "programs",
                       config->database, config->collection);
}

/* The records of --embed are divided, but no document is loaded yet. */
static void log_embedded_records(const sl_load *load) {
    char path[600];
    if (!load->job.config->embed_field || !load->ledger.work_directory[0])
        return;
    snprintf(path, sizeof path, "%.500s/" SL_WORK_EMBED "/records", load->ledger.work_directory);
    if (access(path, F_OK) == 0)
        sl_log_warning(
            "%s holds the records of --embed that have been read. The next load with this "
            "--work-dir uses or replaces them; if you need them no more, remove %.500s",
            path, load->ledger.work_directory);
}

/* For sl_interrupt_listen; `context` is the sl_load. */
static bool on_first_request(void *context) {
    sl_load *load = context;
    if (load->job.config->part_of_trial && !atomic_load(&load->run.begun))
        return false;                     /* the load checks for an interrupt before it begins */
    if (!atomic_load(&load->run.begun)) { /* a program need not wait for a server or a pipe */
        const char *resumed_in = load->job.config->resumed_in;
        sl_log_warning("interrupted before anything was loaded%s%s", resumed_in ? " into " : "",
                       resumed_in ? load->job.config->collection : "");
        if (resumed_in)
            sl_log_how_to_resume(resumed_in);
        log_embedded_records(load);
        stop_status(load);
        sl_work_directory_abandon(load->ledger.work_directory, &load->ledger.lock);
        return true;
    }
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    sl_run_stop(&load->run);
    return false;
}

static void on_second_request(void *context) {
    sl_load *load = context;
    sl_error error = {0};
    if (!restore_balancer(load, &error))
        sl_log_error(SL_LINES, error.message);
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopped at once");
    log_how_to_complete(load, &error);
    stop_status(load);
}

/* ---- the phases before the first document ---- */

static bool not_interrupted(sl_error *error) {
    return !sl_interrupt_requested() ||
           sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before anything was loaded");
}

/* After Ctrl-C, commands are not retried, except those that restore the balancer. */
static bool keep_trying(void *context) {
    sl_load *load = context;
    return !sl_interrupt_requested() || atomic_load(&load->putting_back);
}

/* Connects to the cluster of the configuration. */
static bool connect_cluster(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    load->destination.connection = config->connection;
    load->destination.borrowed = config->connection != NULL;
    if (!config->connection && !(load->destination.connection =
                                     sl_load_open_connection(config, SL_FOR_WRITING, "shardload",
                                                             2 + SL_RANGES_AT_ONCE, error)))
        return false;
    sl_connection_set_retry_check(load->destination.connection, keep_trying, load);
    sl_record_server(load->record, load->destination.connection);
    sl_deployment deployment = sl_connection_server(load->destination.connection)->deployment;
    if (deployment != SL_SHARDED && deployment != SL_HIDDEN && config->shard_key)
        sl_log(config->shard_key_given ? SL_LOG_INFO : SL_LOG_DETAIL,
               "not a sharded cluster: the collection is not sharded");
    return true;
}

typedef struct distribution {
    sl_load *load;
    int64_t logged; /* when progress was logged last, by sl_clock_ns */
} distribution;

static bool on_prepare_step(void *context, size_t done, size_t all) {
    distribution *work = context;
    work->load->distribution_steps = done;
    if (sl_seconds_since(work->logged) > 2) {
        sl_log_info("distributing ranges: step %zu of %zu", done, all);
        work->logged = sl_clock_ns();
    }
    return !sl_interrupt_requested();
}

/* Logs the shard key of the collection and who finds the shard of each document. */
static void log_layout(const sl_load *load) {
    const sl_job *job = &load->job;
    const sl_destination *destination = &load->destination;
    const bson_t *key = sl_shard_map_key(destination->map);
    char *shown = key ? sl_document_json(key) : NULL;
    char ranges[60] = "";
    sl_route route = sl_shard_map_route(destination->map);
    if (route == SL_ROUTE_BY_ID)
        snprintf(ranges, sizeof ranges, ", %s", sl_plural(job->range_count, "range"));
    else if (key)
        snprintf(ranges, sizeof ranges, "; the %s finds each document's shard",
                 route == SL_ROUTE_BY_KEY ? "loader" : "router");
    sl_log_detail("%s.%s: %s%s%s, %s", destination->target.database, destination->target.collection,
                  key ? "sharded by " : "not sharded", shown ? shown : "", ranges,
                  sl_plural(job->shards, "shard"));
    bson_free(shown);
}

/* Builds the indexes: the unique ones before the load, so that each duplicate is a reject and
 * documents can be matched by them; the others after it, which costs less. */
static bool build_indexes(sl_load *load, bool before, sl_error *error) {
    const sl_load_config *config = load->job.config;
    for (size_t i = 0; i < config->index_count; i++) {
        if (sl_look_flag(config->indexes[i], "unique") != before)
            continue;
        char *json = sl_index_shown(config->indexes[i]);
        sl_log_info("building index %s", json);
        bson_free(json);
        if (sl_interrupt_requested())
            return sl_error_set(
                error, SL_EXIT_INTERRUPTED,
                before ? "interrupted before anything was loaded"
                       : "interrupted: all documents are loaded, but not all indexes are built");
        if (!sl_create_index(load->destination.connection, &load->destination.target,
                             config->indexes[i], error))
            return false;
    }
    return true;
}

/* Is the collection new, and sharded by ranges that sl_prepare_ranges does not place? */
static bool needs_quantiles(const sl_load *load) {
    const sl_target *target = &load->destination.target;
    return load->destination.created && load->job.shards > 1 && target->shard_key &&
           !sl_shard_key_is_hashed(target->shard_key) &&
           (load->job.own_ids || !sl_key_is_id(target->shard_key)) &&
           sl_connection_server(load->destination.connection)->deployment == SL_SHARDED;
}

/* Splits such a collection at quantiles of a sample of its shard key. The map that is read
 * afterwards determines the routes, so a failure, or a sample that is not representative, only
 * makes the shards' loads uneven. */
static bool place_quantiles(sl_load *load, sl_error *error) {
    const sl_destination *destination = &load->destination;
    const sl_target *target = &destination->target;
    size_t chunks = 1;
    sl_error why = {0};
    if (!needs_quantiles(load))
        return true;
    if (load->job.parts > 0 && load->job.config->direct) { /* other loaders may have read the chunk
                                                              map */
        sl_log_info("%s.%s is one range on one shard: with --part and --route direct it is not "
                    "split before the load",
                    target->database, target->collection);
        return true;
    }
    sl_key_sample *sample = sl_key_sample_create(target->shard_key);
    bool ok = (sample || sl_error_memory(error, "sampling the sources")) &&
              sl_key_sample_take(&load->job, sample, error) && not_interrupted(error);
    if (ok && !sl_presplit(destination->connection, target, destination->topology, sample, 1,
                           &chunks, &why))
        sl_log_warning("%s.%s could not be split before the load: " SL_LINES, target->database,
                       target->collection, why.message);
    else if (ok && chunks > 1)
        sl_log_detail("%s.%s: split into %zu ranges at quantiles of a sample of %zu shard keys",
                      target->database, target->collection, chunks, sl_key_sample_count(sample));
    else if (ok)
        sl_log_info("%s.%s is one range on one shard: the sources give no sample of its shard key "
                    "to split it by; --shard-key with a hashed field uses all shards",
                    target->database, target->collection);
    sl_key_sample_destroy(sample);
    return ok && not_interrupted(error);
}

/* Creates and shards the collection, stops the balancer, numbers the sources, and splits and places
 * the ranges. All checks that can refuse the load come before anything is created or, with --drop,
 * removed. */
static bool prepare(sl_load *load, sl_error *error) {
    sl_job *job = &load->job;
    sl_destination *destination = &load->destination;
    sl_connection *connection = destination->connection;
    bool sharded = sl_connection_server(connection)->deployment == SL_SHARDED;
    sl_target_configure(destination, job, job->resumed);
    sl_target_view view;
    if (!sl_resume_find_target(job, destination, &load->ledger, error) ||
        !sl_resume_decide_drop(job, destination, &load->ledger, error) ||
        !sl_decide(job, destination, &view, error))
        return false;
    sl_types_log(job); /* with those of the collection */
    if (!sl_route_open(job, destination, load->run.threads, error))
        return false;
    if (!sl_sources_refuse_same_text(job, error) ||
        !sl_sources_refuse_copies(job, destination, error))
        return false;
    sl_decision_log(job, destination, &view);
    atomic_store(&load->run.begun, true);
    if (!not_interrupted(error) || !stop_balancer(load, error))
        return false;
    const bool counted = destination->target.drop && !job->config->part_of_trial;
    const uint64_t stored = counted ? sl_record_stored(destination) : 0;
    if (!sl_target_begin(job, destination, error) ||
        (destination->target.drop &&
         !sl_registry_settle(destination->registry, &destination->target, SL_SETTLE_DROP, false,
                             error)) ||
        !sl_resume_record_drop(destination, &load->ledger, error) ||
        !sl_prepare_target(connection, &destination->target, &destination->created, error))
        return false;
    load->dropped = stored;
    if (!sl_target_identify(connection, &destination->target, error) ||
        !sl_target_check_shards(destination, NULL, error) ||
        !sl_registry_settle(destination->registry, &destination->target,
                            destination->created || !view.exists || view.change == SL_SHARDING_NEW
                                ? SL_SETTLE_CREATED /* also by another loader of this load */
                                : SL_SETTLE_WRITE,
                            job->config->again || job->resumed, error) ||
        !sl_types_record(job, destination, false, error) ||
        !sl_ids_record(job, destination, error) ||
        !sl_sources_number_by_registry(job, destination, load->ledger.work_directory, error) ||
        !sl_resume_target(job, destination, &load->ledger, error) ||
        !sl_shard_map_read(connection, &destination->target, destination->topology,
                           &destination->map, error))
        return false;
    const bson_t *key = sl_shard_map_key(destination->map);
    if (key && !destination->created && !job->resumed && !job->config->part_of_trial &&
        !sl_shard_key_look(job, &destination->target, key, error))
        return false;
    job->by_range = sl_shard_map_by_id(destination->map);
    job->shards = (uint32_t)destination->topology->count;
    if (key && !job->config->part_of_trial)
        sl_ids_warn(job, &destination->target, key);
    if (!sl_ranges_lay_out(job, destination, error))
        return false;
    if (job->by_range) {
        int64_t start = sl_clock_ns();
        distribution work = {load, start};
        if (!sl_prepare_ranges(connection, &destination->target, destination->topology, job->ranges,
                               job->range_count, on_prepare_step, &work, error))
            return false;
        load->distribution_seconds = sl_seconds_since(start);
    }
    if (!place_quantiles(load, error) || !sl_route_read_map(destination, error) ||
        !build_indexes(load, true, error))
        return false;
    sl_parts_choose_blocks(job, destination);
    if (sharded)
        log_layout(load);
    return not_interrupted(error);
}

/* Numbers the sources of a load into another sink. */
static bool prepare_offline(sl_load *load, sl_error *error) {
    load->job.shards = 1;
    if (!load->job.config->types)
        sl_types_log(&load->job);
    sl_types_log_names(&load->job);
    return sl_sources_number_offline(&load->job, error) &&
           sl_ranges_lay_out(&load->job, &load->destination, error);
}

/* ---- registering ---- */

/* Registers, at the end of a load, the sources or this loader's parts of them as loaded, with their
 * numbers of documents. The loader that finishes the last part of a source counts the stored
 * documents of that source. */

/* Sets the number of documents that this loader has stored for a part of a source, and the borders
 * of its blocks; with part 0, for all of the source. Each piece of a source in several pieces is a
 * separate range, laid out for one shard. */
static void set_part(const sl_job *job, const sl_ledger *ledger, size_t index, uint32_t part,
                     sl_registry_entry *entry) {
    const sl_job_source *source = &job->sources[index];
    const sl_source_account *account = &ledger->sources[index];
    entry->documents = entry->borders = 0;
    if (part == 0 || !job->own_shards ||
        (source->pieces == 1 && sl_job_shard_of(job, source, 0) == part - 1)) {
        entry->documents = atomic_load(&account->accepted);
        entry->documents += part == 0 ? 0 : atomic_load(&account->taken);
        entry->borders = atomic_load(&account->borders);
    }
    for (uint32_t piece = 0; part > 0 && job->own_shards && piece < source->pieces; piece++) {
        int64_t first = sl_stripe_first_id(source->number, sl_piece_begin(source, piece));
        const sl_range_account *range = &ledger->ranges[sl_job_range_of(job, first)];
        if (source->pieces == 1 || sl_job_shard_of(job, source, piece) != part - 1)
            continue;
        entry->documents += atomic_load(&range->accepted);
        entry->borders += atomic_load(&range->borders);
    }
}

/* Does the load insert only the records whose documents earlier loads of the source have not? */
static bool adds_to_earlier(const sl_job *job) {
    return job->own_ids && sl_load_mode(job->config)->matches;
}

/* The number of documents that all loads of a source have stored; `documents`: of this load. */
static uint64_t stored_by_all(const sl_job *job, const sl_registry_entry *entry,
                              uint64_t documents) {
    return adds_to_earlier(job) && entry->stored > documents ? entry->stored : documents;
}

static void set_documents(const sl_job *job, const sl_ledger *ledger, size_t index, uint32_t part,
                          sl_registry_entry *entry) {
    const sl_source_account *account = &ledger->sources[index];
    set_part(job, ledger, index, part, entry);
    if (part == 0)
        entry->documents = stored_by_all(job, entry, entry->documents);
    const uint64_t held = job->own_ids && part == 0 ? atomic_load(&account->held) : 0;
    entry->matched = held > entry->documents ? held - entry->documents : 0;
    entry->in_range_known = !job->own_ids && !sl_load_mode(job->config)->matches;
    entry->in_range = atomic_load(&account->accepted) + atomic_load(&account->taken);
    if (part > 0)
        return;
    char host[100] = "", path[PATH_MAX];
    entry->rejected = atomic_load(&account->rejected) + atomic_load(&account->refused);
    entry->refused_ids = atomic_load(&account->refused_ids);
    entry->text_bytes = atomic_load(&account->text_bytes);
    const sl_registry_entry *corrected = job->sources[index].corrected; /* its directory is kept */
    snprintf(entry->rejected_in, sizeof entry->rejected_in, "%s",
             corrected && entry->rejected > 0 ? corrected->rejected_in : "");
    if (entry->rejected == 0 || corrected || !realpath(ledger->work_directory, path))
        return;
    gethostname(host, sizeof host - 1);
    sl_print_text(entry->rejected_in, sizeof entry->rejected_in, "%s:%s", host, path);
}

static bool finish_part(const sl_job *job, const sl_destination *destination, const void *context,
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
           sl_error_set(error, SL_EXIT_VERIFICATION,
                        "verification failed: %s: its %u parts have loaded %s, and %s stored; has "
                        "another program written to %s.%s? shardload verify --content "
                        "lists the documents",
                        sl_source_set_at(job->set, index)->shown, job->parts,
                        sl_plural(expected, "document"), sl_plural(found, "[is|are]"),
                        target->database, target->collection);
}

/* Were the blocks of all parts of a source blocks of one text? */
static bool check_borders(const sl_job *job, const sl_destination *destination, size_t index,
                          const sl_registry_entry *entry, sl_error *error) {
    if (entry->borders == 0)
        return true;
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s: its %u parts were not read from the same text: it was changed while they "
                 "were loaded, or the machines have different copies. Records are missing in %s.%s "
                 "or stored twice: remove what was loaded, and load all parts again from one text",
                 sl_source_set_at(job->set, index)->shown, job->parts, destination->target.database,
                 destination->target.collection);
    error->no_resume = true;
    return false;
}

static void log_what_is_loaded(const sl_job *job, const sl_destination *destination, size_t whole,
                               uint64_t documents) {
    char names[SL_SHARD_NAMES_ROOM];
    size_t rest = job->active - whole;
    sl_unregistered stored;
    sl_error ignored;
    if (rest == 0 && job->own_ids && job->config->verify && !adds_to_earlier(job) &&
        !destination->target.capped && sl_count_all(destination, &stored, &ignored) &&
        stored.numbers < documents)
        sl_log_warning("%s.%s holds %s documents, but its parts have stored %s: unless _ids are "
                       "repeated, another program has removed some; shardload verify --content "
                       "shows which, and --again loads them",
                       destination->target.database, destination->target.collection,
                       sl_number_text(stored.numbers), sl_number_text(documents));
    if (rest == 0 && sl_load_mode(job->config)->matches) /* changed documents, too */
        sl_log_result("all %u parts are loaded", job->parts);
    else if (rest == 0)
        sl_log_result("all %u %s are loaded: %s in total", job->parts,
                      job->own_shards ? "shards" : "parts", sl_plural(documents, "document"));
    else if (job->own_shards)
        sl_log_result("this loader's shards (%s) are loaded; %zu of %zu sources wait for other "
                      "shards",
                      sl_shard_names(destination->topology, job->own_shards, names), rest,
                      job->active);
    else
        sl_log_result("part %u of %u is loaded; %zu of %zu sources wait for other parts",
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
        if (!check_borders(job, destination, i, entry, error))
            return false;
        /* Documents with their own _ids form no range that could be counted. */
        if (job->config->verify && !job->own_ids &&
            !count_source(job, destination, i, entry->documents, error))
            return false;
        documents += entry->documents;
        entry->documents = stored_by_all(job, entry, entry->documents);
        entry->in_range = entry->documents; /* of a part, these include documents of others */
        entries[whole++] = *entry;
    }
    if (whole > 0 && !sl_registry_finish_sources(destination->registry, entries, whole, error))
        return false;
    log_what_is_loaded(job, destination, whole, documents);
    return true;
}

/* Registers the job's sources as loaded; of a shared load, this loader's parts of them. Then, of a
 * shared load, counts and registers the sources that are complete now, and logs which parts are
 * missing. */
static bool register_loaded(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                            sl_error *error) {
    size_t count, next = 0;
    uint64_t foreign, loaded = 0;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && (!adds_to_earlier(job) ||
                          sl_registry_look_up(destination->registry, entries, count, error));
    for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            loaded += stored_by_all(job, &entries[next++], sl_ledger_accepted(ledger, i));
    }
    ok = ok && sl_unregistered_foreign(job, destination, ledger, loaded, &foreign, error);
    if (ok)
        sl_registry_set_foreign(destination->registry, foreign);
    ok = ok && sl_parts_each(job, destination, finish_part, ledger, entries, count, error) &&
         (job->parts == 0 || finish_complete(job, destination, entries, error));
    free(entries);
    return ok;
}

/* ---- phases ---- */

typedef bool phase_function(sl_load *load, sl_error *error);

static bool run_phase(sl_load *load, const char *name, phase_function *function, sl_error *error) {
    int64_t start = sl_clock_ns();
    sl_status_phase(load->status, name);
    bool ok = function(load, error) || sl_error_missing(error, name);
    sl_run_record_phase(load->record, name, sl_seconds_since(start));
    return ok;
}

static bool look_at_sources(sl_load *load, sl_error *error) {
    const bson_t *types = load->job.config->types;
    if (!sl_sources_open(&load->job, error) || !sl_not_loaded_check(&load->job, error) ||
        (types && !sl_types_restore(&load->job, types, error)))
        return false;
    if (load->job.own_ids && load->job.config->only_shards)
        return sl_error_set(
            error, SL_EXIT_USAGE,
            "--only-shards: the documents have their own _ids, so the shard of a document is "
            "not known before it is read; divide these sources with --part");
    if (load->job.config->sample < 1)
        sl_source_set_sample(load->job.set, load->job.config->sample);
    if (!sl_parts_begin(&load->job, error))
        return false;
    char bytes[SL_HUMAN_ROOM];
    const sl_job_source *first = load->job.sources;
    while (first->skipped)
        first++;
    char dialect[300];
    uint64_t stored = sl_source_set_stored_bytes(load->job.set);
    bool generated = sl_job_is_generated(&load->job);
    sl_log_detail("%s, %s %s: %s%s", sl_plural(load->job.active, "source"),
                  generated ? sl_human_count(stored / sl_job_record_bytes(&load->job), bytes)
                            : sl_human_bytes((double)stored, bytes),
                  generated ? "generated records" : "stored",
                  sl_source_describe(&load->job, first, dialect, sizeof dialect),
                  load->job.active > 1 ? " (the first of them)" : "");
    return true;
}

static const sl_sink_type *sink_of(const sl_load_config *config) {
    static const sl_sink_type *const sinks[] = {[SL_SINK_CLUSTER] = &sl_sink_cluster,
                                                [SL_SINK_NULL] = &sl_sink_null,
                                                [SL_SINK_BSON] = &sl_sink_bson,
                                                [SL_SINK_DIVIDED] = &sl_sink_divided};
    return config->search                  ? &sl_sink_search
           : sl_load_mode(config)->matches ? &sl_sink_modify
                                           : sinks[config->sink];
}

typedef struct sl_ticking {
    sl_load *load;
    sl_progress *progress;
    int64_t start, committed; /* times of the start and of the last commit, by sl_clock_ns */
} sl_ticking;

static void on_tick(void *context) {
    sl_ticking *ticking = context;
    sl_progress_tick(ticking->progress);
    sl_pace_tick(&ticking->load->run, ticking->start);
    if (sl_seconds_since(ticking->committed) < COMMIT_SECONDS)
        return;
    sl_error error;
    if (!sl_resume_commit(&ticking->load->destination, &ticking->load->ledger, &error))
        sl_run_fail(&ticking->load->run, &error);
    ticking->committed = sl_clock_ns();
}

static bool load_documents(sl_load *load, sl_error *error) {
    /* A request that came before this store has not stopped the run. */
    if (!atomic_exchange(&load->run.begun, true) && sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    if (!sl_run_create_counters(&load->run))
        return sl_error_memory(error, "starting workers");
    uint32_t batch_most = UINT32_MAX;
    if (load->destination.connection)
        batch_most =
            (uint32_t)sl_connection_server(load->destination.connection)->max_batch_documents;
    if (!sl_resume_recover(&load->job, &load->ledger, error) ||
        !sl_pace_start(&load->run, batch_most, error))
        return false;
    sl_rejects_count_kinds(load->ledger.rejects, &load->ledger.reject_kinds);
    if (load->job.config->rejects_auto)
        sl_rejects_limit_bytes(load->ledger.rejects);
    for (size_t i = 0; i < sl_source_set_count(load->job.set); i++) {
        const sl_job_source *source = &load->job.sources[i];
        if (!source->skipped)
            sl_rejects_set_header(load->ledger.rejects, i,
                                  sl_format_header(source->format, source->dialect),
                                  source->format->binary);
    }
    if (!sl_rejects_all_kept(load->ledger.rejects, error))
        return false;
    const sl_recovered *recovered = &load->ledger.recovered;
    load->run.earlier = (sl_earlier_totals){
        .records = recovered->counts.records,
        .documents = recovered->inserted + recovered->already_stored + recovered->changed,
        .rejects = recovered->counts.rejects + recovered->server_rejects,
        .text_bytes = recovered->text_bytes};
    sl_status_run(load->status, &load->run, &load->destination);
    if (load->job.embed)
        load->job.embed->counting = true;
    int64_t start = sl_clock_ns();
    sl_ticking ticking = {load, sl_progress_start(&load->run, &load->destination, load->record),
                          start, start};
    bool ok = sl_workers_run(&load->run, &load->destination, &load->ledger,
                             sink_of(load->job.config), on_tick, &ticking, error) &&
              (sl_interrupt_requested() || sl_source_set_unchanged(load->job.set, error));
    load->run.seconds = sl_seconds_since(start);
    sl_status_run(load->status, NULL, NULL);
    sl_progress_end(ticking.progress);
    sl_error closing = {0};
    /* After a failure, a resumed load sends the blocks again that cannot be confirmed at once. */
    bool closed = (ok ? sl_resume_commit_last : sl_resume_commit)(&load->destination, &load->ledger,
                                                                  &closing);
    closed = sl_rejects_close(load->ledger.rejects, NULL, closed ? &closing : NULL) && closed;
    if (!closed && ok) {
        *error = closing;
        ok = false;
    }
    load->ledger.rejects = NULL;
    if (ok && sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    if (ok && load->job.match_problem.code && sl_load_mode(load->job.config)->removes &&
        sl_run_sum(&load->run).changed == 0) {
        *error = load->job.match_problem;
        error->no_resume = true;
        return false;
    }
    if (!ok || sl_rejects_pass_limit(&load->run, &load->ledger, true, error))
        return false;
    if (!sl_rejects_are_all(&load->run, &load->ledger, error))
        return true;
    sl_sources_end_pipes(&load->job, &load->destination);
    return false;
}

static bool build_late_indexes(sl_load *load, sl_error *error) {
    return (load->job.config->index_count == 0 ||
            sl_target_is_ours(&load->destination, load->run.shard_documents, error)) &&
           build_indexes(load, false, error);
}

static bool verify_total(sl_load *load, sl_error *error) {
    sl_run_totals sum = sl_run_sum(&load->run);
    const sl_recovered *earlier = &load->ledger.recovered;
    const sl_outcomes outcomes = {.inserted = sum.inserted + earlier->inserted,
                                  .already_stored = sum.already_stored + earlier->already_stored,
                                  .changed = sum.changed + earlier->changed,
                                  .sent_twice = load->job.resumed || sum.retries > 0};
    return sl_verify_total(&load->job, &load->destination, &load->ledger, &outcomes,
                           sl_run_record_document(load->record), error);
}

/* For a capped collection, adds to the error of a count that the server has removed documents. */
static bool name_capped(const sl_load *load, sl_error *error) {
    const sl_target *target = &load->destination.target;
    sl_collection_facts facts;
    sl_error ignored;
    if (error->code != SL_EXIT_VERIFICATION)
        return false;
    bool read = sl_collection_read(load->destination.connection, target, &facts, &ignored);
    if (read && sl_look_flag(&facts.options, "capped")) {
        char size[SL_HUMAN_ROOM], most[SL_PLURAL_ROOM + 20] = "";
        double bytes = sl_look_amount(&facts.options, "size", 0);
        int64_t documents = sl_look_int64(&facts.options, "max", 0);
        if (documents > 0)
            snprintf(most, sizeof most, " and %s", sl_plural((uint64_t)documents, "document"));
        sl_error_set(
            error, SL_EXIT_VERIFICATION,
            "verification failed: %s.%s is a capped collection of at most %s%s: when it is full, "
            "the server removes the oldest documents, so it does not hold all documents of this "
            "load. Load them into a larger or a normal collection, or give --no-verify if only the "
            "newest documents are wanted",
            target->database, target->collection, sl_human_bytes(bytes, size), most);
    }
    sl_collection_facts_clear(&facts);
    return false;
}

static bool count_and_register(sl_load *load, sl_error *error) {
    if (!sl_target_is_ours(&load->destination, load->run.shard_documents, error) ||
        !sl_match_again(&load->job, &load->destination, error))
        return false;
    if (load->job.own_ids && load->job.config->verify && !verify_total(load, error))
        return false;
    /* Only the counts reveal stored documents of text that has changed since the earlier run. */
    if (!load->job.own_ids && (load->job.config->verify || load->ledger.compared) &&
        !sl_verify_counts(&load->job, &load->destination, &load->ledger,
                          sl_run_record_document(load->record), error))
        return false;
    if (load->job.config->sample < 1 || sl_load_mode(load->job.config)->removes)
        return true;
    sl_interrupt_begin_change();
    bool ok = register_loaded(&load->job, &load->destination, &load->ledger, error);
    sl_interrupt_end_change();
    return ok;
}

static bool verify(sl_load *load, sl_error *error) {
    return count_and_register(load, error) || name_capped(load, error);
}

static bool prepare_embedding(sl_load *load, sl_error *error) {
    bool begun = sl_resume_has_blocks(&load->ledger);
    sl_store_keys keys = begun ? SL_STORE_CONTINUED : SL_STORE_UNUSED;
    if (!load->job.config->embed_field)
        return true;
    if (!sl_embedding_open(&load->job, &load->destination, load->ledger.work_directory, keys,
                           error) ||
        !sl_resume_embed(&load->job, &load->ledger, error))
        return false;
    load->ledger.store = load->job.embed->store;
    return true;
}

static bool finish_embedding(sl_load *load, sl_error *error) {
    return sl_embedding_finish(&load->job, load->ledger.work_directory, error);
}

static bool run_phases(sl_load *load, sl_error *error) {
    static const struct {
        const char *name;
        phase_function *function;
        bool cluster_only;
        bool offline_only;
        bool embed_only;
        bool change; /* the phase as a unit changes the cluster: see sl_interrupt_begin_change */
    } phases[] = {
        {SL_PHASE_CONNECT, connect_cluster, .cluster_only = true},
        {SL_PHASE_EMBED, prepare_embedding, .embed_only = true},
        {SL_PHASE_PREPARE, prepare, .cluster_only = true, .change = true},
        {SL_PHASE_PREPARE, prepare_offline, .offline_only = true},
        {SL_PHASE_LOAD, .function = load_documents}, /* each batch is a separate change */
        {SL_PHASE_INDEXES, build_late_indexes, .cluster_only = true, .change = true},
        /* It may also run in the thread of the signal handler. */
        {SL_PHASE_BALANCER, restore_balancer, .cluster_only = true},
        {SL_PHASE_UNMATCHED, finish_embedding, .embed_only = true},
        {SL_PHASE_VERIFY, verify, .cluster_only = true},
    };
    bool cluster = load->job.config->sink == SL_SINK_CLUSTER;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (cluster ? phases[i].offline_only : phases[i].cluster_only)
            continue;
        if (phases[i].embed_only && !load->job.config->embed_field)
            continue;
        if (phases[i].change)
            sl_interrupt_begin_change();
        bool ok = run_phase(load, phases[i].name, phases[i].function, error);
        if (phases[i].change)
            sl_interrupt_end_change();
        if (!ok)
            return false;
        if (phases[i].function == load_documents && !sl_not_loaded_check(&load->job, error))
            return false;
    }
    return true;
}

/* ---- the load ---- */

/* Reads the sources of a completed load whose text may be another one, and compares it with the
 * journal. */
static bool compare_completed(sl_load *load, sl_error *error) {
    sl_job *job = &load->job;
    sl_reader *reader = NULL;
    sl_source_block block;
    const sl_dialect *dialect;
    sl_read_result result = SL_READ_END;
    if (!load->ledger.compared)
        return true;
    bool ok = sl_resume_compare_begin(job, &load->ledger, error) &&
              sl_reader_create(job->set, &reader, error);
    while (ok && (result = sl_reader_next(reader, &block, error)) == SL_READ_BLOCK) {
        sl_job_source *source = &job->sources[block.source];
        /* The blocks of other loaders are not in the journal. */
        const bool more = source->uncompared == 0 && block.text.length > 0 && !block.unselected &&
                          !job->config->only_shards;
        ok =
            sl_sources_dialect(job, &block, &dialect, error) &&
            sl_resume_block_fits(job, &load->ledger, &block, error) &&
            (!more || sl_error_set(error, SL_EXIT_SOURCE,
                                   "%s: the text goes on at byte %llu, where that of the completed "
                                   "load had ended: load it without --resume, with another "
                                   "--work-dir",
                                   sl_source_set_at(job->set, block.source)->shown,
                                   (unsigned long long)block.offset));
        if (ok)
            sl_sources_done_with(job, &block);
    }
    ok = ok && result == SL_READ_END;
    for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++)
        ok = !job->sources[i].compare || job->sources[i].uncompared == 0 ||
             sl_error_set(error, SL_EXIT_SOURCE,
                          "%s: ended before the text of the completed load: load it without "
                          "--resume, with another --work-dir",
                          sl_source_set_at(job->set, i)->shown);
    sl_reader_destroy(reader);
    return ok;
}

/* With --resume, a load that has been completed sends nothing, but its collection must exist. */
static bool confirm_completed(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    if (config->embed_field && !sl_embedding_check(&load->job, load->ledger.work_directory, error))
        return false;
    if (!compare_completed(load, error) || !connect_cluster(load, error))
        return false;
    sl_target_configure(&load->destination, &load->job, true);
    if (!sl_resume_find_target(&load->job, &load->destination, &load->ledger, error))
        return false;
    sl_log_result("%s: this load has been completed; there is nothing to resume",
                  load->ledger.work_directory);
    error->code = sl_resume_completed_code(&load->ledger);
    return true;
}

/* The records that are not in the collection; with --embed, also those that are in no document. */
static uint64_t rejects_of(const sl_load *load) {
    sl_run_totals sum = sl_run_sum(&load->run);
    const sl_embed *embed = load->job.embed;
    return sum.parser_rejects + sum.server_rejects +
           (embed ? embed->facts.rejects + embed->unmatched : 0);
}

/* Before anything that takes time: a load that begins in the work directory of a completed one
 * empties its journal. If this load is killed before it has begun, --resume must not take the other
 * one for it. */
static bool clear_journal(const sl_load_config *config, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    const char *directory = config->work_directory;
    sl_error later; /* a folder of the user is refused after the sources have been examined */
    if (config->resume || !directory || config->sink != SL_SINK_CLUSTER)
        return true;
    snprintf(path, sizeof path, "%s/" SL_WORK_JOURNAL, directory);
    if (access(path, F_OK) != 0 || !sl_outputs_check_folder(directory, &later) ||
        sl_resume_may_begin(directory, true, error))
        return true;
    const bool gone = access(path, F_OK) != 0; /* removed by another command meanwhile */
    if (gone)
        *error = (sl_error){0};
    return gone;
}

static void start_status(sl_load *load) {
    const sl_load_config *config = load->job.config;
    char target[300] = "";
    if (config->part_of_trial && !config->above)
        return;
    if (config->sink == SL_SINK_CLUSTER)
        snprintf(target, sizeof target, "%s.%s", config->database, config->collection);
    const char *command = config->completed_by ? config->completed_by : "the same command";
    load->status = sl_status_start(&(sl_status_setup){
        .command = "load",
        .config = config,
        .directory = load->ledger.work_directory,
        .target = target,
        .metrics = config->metrics,
        .resume_command = load->ledger.journal ? command : NULL,
        .resume_directory = config->resumed_in ? config->resumed_in : load->ledger.work_directory,
        .limit = load->run.rate_limit,
        .above = config->above,
        .item = config->above_item,
    });
}

static void load_clear(sl_load *load) {
    sl_ledger_clear(&load->ledger);
    sl_run_clear(&load->run);
    sl_destination_close(&load->destination);
    sl_job_clear(&load->job);
    sl_run_record_destroy(load->record);
    pthread_mutex_destroy(&load->balancer_lock);
}

sl_exit sl_load_run(const sl_load_config *config) {
    sl_error error = {0};
    sl_load load = {.report = config->report, .html = config->html};
    sl_job_init(&load.job, config);
    sl_run_init(&load.run, &load.job);
    pthread_mutex_init(&load.balancer_lock, NULL);
    sl_log_level level = config->part_of_trial
                             ? sl_log_set_level(config->search ? SL_LOG_ERROR : SL_LOG_WARNING)
                             : SL_LOG_DETAIL;
    load.record = sl_run_record_create();
    bool ok = load.record || sl_error_memory(&error, "starting");
    bool listening = ok && sl_interrupt_listen(on_first_request, on_second_request, &load, &error);
    ok = listening;
    if (ok)
        sl_record_start(load.record, config, "load");
    /* The sources come first: their errors are reported before anything is created. */
    bool finished = false;
    ok = ok && clear_journal(config, &error) &&
         run_phase(&load, SL_PHASE_SOURCES, look_at_sources, &error);
    ok = ok &&
         sl_work_directory_make(config, NULL, load.ledger.work_directory, &load.ledger.lock,
                                &error) &&
         sl_report_check(&load.report, &error) && sl_report_check(&load.html, &error) &&
         (!config->metrics || sl_private_file_may_replace(config->metrics, &error)) &&
         sl_resume_open(&load.job, &load.ledger, &finished, &error);
    if (ok && !finished)
        start_status(&load);
    ok = ok && (finished ? confirm_completed : run_phases)(&load, &error);

    if (!ok)
        sl_error_missing(&error, "the preparation of the load");
    const bool counted = !ok && error.loaded_before && config->loaded_before;
    /* Logged first, because restoring the balancer may have to wait for a server. */
    if (!ok && !(counted && (*config->loaded_before)++ > 0)) {
        sl_log_error(SL_LINES, error.message);
        log_how_to_complete(&load, &error);
        warn_of_drop(&load, &error);
    }
    sl_error restoring = {0};
    if (!restore_balancer(&load, &restoring))
        sl_log_error(SL_LINES, restoring.message);
    load.balancer_restored = !load.balancer_lost;
    if (!ok && config->no_resume)
        *config->no_resume = !may_be_resumed(&load, &error) || is_refused(&load, &error);
    sl_exit code = error.code;
    char unused[SL_WORK_DIRECTORY_ROOM] = "";
    if (!ok && is_unused(&load)) { /* run.json stays that of an earlier load */
        log_embedded_records(&load);
        strcpy(unused, load.ledger.work_directory);
        load.ledger.work_directory[0] = '\0';
    }
    if (load.record && !finished)
        code = sl_record_end(&load, ok ? SL_EXIT_OK : error.code);
    if (unused[0]) {
        sl_status_stop(load.status, code, error.message, may_be_resumed(&load, &error));
        sl_work_directory_abandon(unused, &load.ledger.lock);
    }
    const bool nothing = atomic_load(&load.run.ended_by) == SL_ENDED_ALL_REJECTED;
    sl_error ignored;
    if (load.destination.registry && (nothing || unused[0] || is_of_rejects(&load)))
        (void)sl_registry_withdraw_lists(load.destination.registry, &ignored);
    /* The last step: once a load is marked as finished, --resume does not write run.json again. */
    if (!finished && (sl_exit_is_complete(code) || nothing) &&
        !sl_resume_finish(&load.ledger, rejects_of(&load), nothing, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_status_stop(load.status, code, error.message, may_be_resumed(&load, &error));
    if (listening) /* otherwise this would end the listener of the command that runs the load */
        sl_interrupt_stop_listening();
    sl_status_end(load.status, code, error.message, false); /* which a handler has used until now */
    load_clear(&load);
    sl_log_close_file();
    if (config->part_of_trial)
        sl_log_set_level(level);
    return code;
}
