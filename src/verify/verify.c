/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload verify`: the phases of a verification. Neither sources nor cluster are changed. */
#include "verify.h"
#include "job/numbers.h"
#include "job/ranges.h"
#include "job/sources.h"
#include "job/types.h"
#include "verification.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/phase_names.h"

#include "load/embedding.h"
#include "load/progress.h"
#include "load/record.h"

static bool interrupted(sl_error *error) {
    return sl_error_set(error, SL_EXIT_INTERRUPTED,
                        "interrupted before all documents were verified");
}

static bool on_first_signal(void *context) {
    sl_run *run = context;
    if (!atomic_load(&run->begun)) { /* it may be waiting for a server */
        sl_log_warning("interrupted before anything was verified");
        return true;
    }
    sl_log_warning("stopping; press Ctrl-C again to stop at once");
    sl_run_stop(run);
    return false;
}

static void on_second_signal(void *context) {
    (void)context;
}

/* ---- phases ---- */

/* A pipe has no fingerprint by which the registry could identify it. */
static bool refuse_pipe(const char *path, sl_error *error) {
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: a pipe cannot be verified, because it cannot be identified as the source of a load; "
        "name a file",
        strcmp(path, "-") == 0 ? "standard input" : path);
}

static bool look_at_sources(sl_verification *verification, sl_error *error) {
    sl_job *job = &verification->job;
    for (size_t i = 0; i < job->config->path_count; i++) {
        if (strcmp(job->config->paths[i], "-") == 0)
            return refuse_pipe("-", error);
    }
    if (!sl_sources_open(job, error))
        return false;
    sl_types_log(job);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_source *source = sl_source_set_at(job->set, i);
        if (source->kind == SL_SOURCE_PIPE)
            return refuse_pipe(source->shown, error);
    }
    return true;
}

static bool connect_to_cluster(sl_verification *verification, sl_error *error) {
    sl_job *job = &verification->job;
    sl_destination *destination = &verification->destination;
    const sl_load_config *config = job->config;
    destination->target = (sl_target){
        .database = config->database, .collection = config->collection, .own_ids = job->own_ids};
    if (!sl_load_open_connection(config, SL_FOR_READING, "shardload", config->threads + 2,
                                 &destination->connection, error))
        return false;
    sl_record_server(verification->record, destination->connection);
    if (!sl_topology_read(destination->connection, &destination->topology, error) ||
        !sl_registry_open(destination->connection, &destination->target, &destination->registry,
                          error) ||
        !(config->unregistered ? sl_sources_number_offline(job, error)
                               : sl_sources_number_as_loaded(job, destination, error)) ||
        (!config->unregistered &&
         !sl_registry_numbers(destination->registry, &verification->registered,
                              &verification->registered_count, error)) ||
        !sl_shard_map_read(destination->connection, &destination->target, destination->topology,
                           &destination->map, error))
        return false;
    job->by_range = sl_shard_map_by_id(destination->map);
    job->shards = job->by_range ? (uint32_t)destination->topology->count : 1;
    return sl_ranges_lay_out(job, destination, error);
}

static void on_tick(void *context) {
    sl_progress_tick(context);
}

static bool read_sources(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    sl_run *run = &verification->run;
    verification->ranges = calloc(job->range_count + 1, sizeof *verification->ranges);
    if (!sl_run_create_counters(run) || !verification->ranges)
        return sl_error_memory(error, "starting threads");
    atomic_store(&run->begun, true);
    sl_progress *progress =
        sl_progress_start(run, &verification->destination, verification->record);
    bool ok = sl_verify_blocks(verification, on_tick, progress, error);
    sl_progress_end(progress);
    if (ok && sl_interrupt_requested())
        return interrupted(error);
    return ok && sl_source_set_unchanged(job->set, error);
}

static bool count_ranges(sl_verification *verification, sl_error *error) {
    return verification->content || verification->job.own_ids ||
           sl_verify_ranges(verification, error);
}

static bool find_others(sl_verification *verification, sl_error *error) {
    return verification->job.own_ids
               ? sl_verify_total_by_id(verification, error)
               : sl_verify_gaps(verification, error) &&
                     (!verification->content || sl_verify_other_sources(verification, error));
}

static bool run_phases(sl_verification *verification, sl_error *error) {
    static const struct {
        const char *name;
        bool (*run)(sl_verification *verification, sl_error *error);
    } phases[] = {
        {SL_PHASE_CONNECT, connect_to_cluster},
        {SL_PHASE_SOURCES, read_sources},
        {"count", count_ranges},
        {"between", find_others},
    };
    bool ok = true;
    const sl_load_config *config = verification->job.config;
    if (config->embed_field) {
        int64_t start = sl_clock_ns();
        ok = sl_embedding_open(&verification->job, verification->work_directory, SL_STORE_READ_ONLY,
                               error);
        sl_run_record_phase(verification->record, SL_PHASE_EMBED, sl_seconds_since(start));
    }
    for (size_t i = 0; ok && i < sizeof phases / sizeof phases[0]; i++) {
        int64_t start = sl_clock_ns();
        ok = phases[i].run(verification, error) || sl_error_missing(error, phases[i].name);
        sl_run_record_phase(verification->record, phases[i].name, sl_seconds_since(start));
    }
    if (!ok && sl_interrupt_requested())
        interrupted(error);
    return ok;
}

/* ---- the verification ---- */

static bool write_record(sl_verification *verification, sl_exit code, sl_error *error) {
    const char *paths[2] = {NULL, verification->report};
    char path[600];
    sl_record_tail(sl_run_record_document(verification->record), code);
    if (verification->job.config->run_record)
        sl_run_record_copy(verification->record, verification->job.config->run_record);
    if (verification->work_directory[0]) {
        snprintf(path, sizeof path, "%s/verify.json", verification->work_directory);
        paths[0] = path;
    }
    bool ok = true;
    for (int i = 0; i < 2; i++)
        ok = (!paths[i] || sl_run_record_write(verification->record, paths[i], error)) && ok;
    return ok;
}

static void clear(sl_verification *verification) {
    sl_run_clear(&verification->run);
    sl_destination_close(&verification->destination);
    sl_job_clear(&verification->job);
    sl_run_record_destroy(verification->record);
    free(verification->ranges);
    bson_destroy(verification->other_sources);
    free(verification->registered);
    free(verification->covered);
    sl_work_directory_release(&verification->directory_lock);
    pthread_mutex_destroy(&verification->lock);
}

/* Opens the output files of the verification. */
static bool open_outputs(sl_verification *verification, uint64_t problems_shown, sl_error *error) {
    const sl_load_config *config = verification->job.config;
    char *directory = verification->work_directory;
    return (!config->work_directory ||
            sl_work_directory_make(config, NULL, directory, &verification->directory_lock,
                                   error)) &&
           sl_report_check(&verification->report, error) &&
           sl_problems_open(directory[0] ? directory : NULL, verification->job.set, problems_shown,
                            &verification->problems, error);
}

sl_exit sl_verify_run(const sl_load_config *config, bool content, uint64_t problems_shown) {
    sl_error error = {0};
    sl_verification verification = {.content = content, .report = config->report};
    sl_job_init(&verification.job, config);
    sl_run_init(&verification.run, &verification.job);
    pthread_mutex_init(&verification.lock, NULL);
    verification.record = sl_run_record_create();
    bool ok = verification.record || sl_error_memory(&error, "starting");
    bool listening =
        ok && sl_interrupt_listen(on_first_signal, on_second_signal, &verification.run, &error);
    ok = listening;
    if (ok)
        sl_record_start(verification.record, config, "verify");
    ok = ok && look_at_sources(&verification, &error);
    ok = ok && open_outputs(&verification, problems_shown, &error) &&
         run_phases(&verification, &error);
    sl_error closing = {0};
    if (!sl_problems_close(verification.problems, &closing) && ok) {
        error = closing;
        ok = false;
    }
    if (verification.record)
        sl_not_loaded_record(&verification.job, sl_run_record_document(verification.record));
    if (ok && !sl_verify_report(&verification))
        ok =
            sl_error_set(&error, SL_EXIT_VERIFICATION, "%s.%s differs from its sources (see above)",
                         config->database, config->collection);
    else if (ok)
        sl_log_info("%s.%s %s", config->database, config->collection,
                    content ? "is equal to its sources, byte by byte"
                            : "has the number of documents that its sources have");
    /* It is not known whether the collection should hold records of files that are not loaded. */
    ok = ok && sl_not_loaded_check(&verification.job, &error);
    if (!ok) {
        sl_error_missing(&error, "the verification");
        sl_log_error(SL_LINES, error.message);
    }
    sl_exit code = ok ? SL_EXIT_OK : error.code;
    if (verification.record && !write_record(&verification, code, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    if (listening)
        sl_interrupt_stop_listening();
    clear(&verification);
    sl_log_close_file();
    return code;
}
