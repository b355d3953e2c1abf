/* SPDX-License-Identifier: Apache-2.0 */
/* A load from start to end: sources, connect, prepare, load, indexes, balancer, verify, report.
 *
 * Whatever ends the load, `sl_load_run` executes the same last lines, which put the balancer back.
 * Only after a second Ctrl-C the interrupt thread puts it back and ends the process. Both call
 * `put_balancer_back`, whose lock lets exactly one of them do it. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#include "job/numbers.h"
#include "job/parts.h"
#include "job/ranges.h"
#include "job/sources.h"
#include "job/target.h"
#include "job/types.h"
#include "ledger/resume.h"
#include "progress.h"
#include "record.h"
#include "registering.h"
#include "reject_limit.h"
#include "send/route.h"
#include "send/sink.h"
#include "verify_counts.h"
#include "worker.h"

/* The interval of journal commits: after a crash, a resumed load repeats about this much work. */
#define COMMIT_SECONDS 1.0

static struct {
    pthread_mutex_t lock;
    sl_balancer *balancer; /* NULL once it has been put back, or that has failed */
    bool lost;             /* putting it back has failed */
    _Atomic bool putting_back;
} pause_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Holds the lock until the balancer is stopped: a second Ctrl-C meanwhile waits, and puts it
 * back. */
static bool pause_balancer(sl_load *load, sl_error *error) {
    pthread_mutex_lock(&pause_state.lock);
    pause_state.lost = false;
    bool ok = sl_balancer_pause(load->destination.connection, load->ledger.holder,
                                &pause_state.balancer, error);
    if (pause_state.balancer)
        snprintf(load->balancer_before, sizeof load->balancer_before, "%s",
                 sl_balancer_before(pause_state.balancer));
    pthread_mutex_unlock(&pause_state.lock);
    return ok;
}

static bool put_balancer_back(sl_error *error) {
    bool ok = true;
    pthread_mutex_lock(&pause_state.lock);
    atomic_store(&pause_state.putting_back, true);
    if (pause_state.balancer) {
        ok = sl_balancer_restore(pause_state.balancer, error);
        pause_state.lost = !ok;
        pause_state.balancer = NULL;
    }
    atomic_store(&pause_state.putting_back, false);
    pthread_mutex_unlock(&pause_state.lock);
    return ok;
}

/* Logs the command that completes a load which ended early. */
static void log_how_to_complete(const sl_load *load, const sl_error *why) {
    if (why->no_resume || load->job.config->part_of_trial)
        return;
    bool changed = load->job.set && sl_source_set_has_changed(load->job.set);
    if (load->job.config->sink == SL_SINK_BSON)
        sl_log_warning("the BSON dump is incomplete");
    else if (load->ledger.journal && atomic_load(&load->run.begun) &&
             atomic_load(&load->run.ended_by) != SL_ENDED_ALL_REJECTED)
        sl_log_warning("to complete this load, %sgive %s with %s--resume --work-dir %s%s",
                       changed ? "put the source back as it was and " : "",
                       load->job.config->completed_by ? load->job.config->completed_by
                                                      : "the same command",
                       atomic_load(&load->run.ended_by) == SL_ENDED_BY_REJECT_LIMIT
                           ? "a higher --max-rejects and "
                           : "",
                       load->ledger.work_directory,
                       changed ? "; to load it as it is now, begin anew with --drop" : "");
}

static void on_first_signal(void *context) {
    sl_load *load = context;
    if (load->job.config->part_of_trial && !atomic_load(&load->run.begun))
        return;                           /* the load checks for it before it begins */
    if (!atomic_load(&load->run.begun)) { /* nothing to undo: do not wait for a server or a pipe */
        sl_log_warning("interrupted before anything was loaded");
        _exit(SL_EXIT_INTERRUPTED);
    }
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    sl_run_stop(&load->run);
}

static void on_second_signal(void *context) {
    const sl_load *load = context;
    sl_error error = {0};
    if (!put_balancer_back(&error))
        sl_log_error(SL_LINES, error.message);
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopped at once");
    log_how_to_complete(load, &error);
}

static bool not_interrupted(sl_error *error) {
    return !sl_interrupt_requested() ||
           sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before anything was loaded");
}

/* ---- phases ---- */

typedef bool phase_function(sl_load *load, sl_error *error);

static bool run_phase(sl_load *load, const char *name, phase_function *function, sl_error *error) {
    int64_t start = sl_clock_ns();
    bool ok = function(load, error);
    sl_run_record_phase(load->record, name, sl_seconds_since(start));
    return ok;
}

static bool look_at_sources(sl_load *load, sl_error *error) {
    if (!sl_sources_open(&load->job, error) || !sl_not_loaded_check(&load->job, error))
        return false;
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
    sl_log_info("%zu source%s, %s %s: %s%s", load->job.active, load->job.active == 1 ? "" : "s",
                generated ? sl_human_count(stored / SL_GENERATED_BYTES, bytes)
                          : sl_human_bytes((double)stored, bytes),
                generated ? "generated records" : "stored",
                first->format->describe(first->dialect, dialect, sizeof dialect),
                load->job.active > 1 ? " (the first of them)" : "");
    sl_types_log(&load->job);
    return true;
}

/* After Ctrl-C commands are not retried, except those that put the balancer back. */
static bool keep_trying(void *unused) {
    (void)unused;
    return !sl_interrupt_requested() || atomic_load(&pause_state.putting_back);
}

static bool connect_to_cluster(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    if (!sl_connection_open(config->uri, "shardload", 3, config->timeout_seconds,
                            &load->destination.connection, error))
        return false;
    sl_connection_set_retry_check(load->destination.connection, keep_trying, NULL);
    sl_record_server(load->record, load->destination.connection);
    if (sl_connection_server(load->destination.connection)->deployment != SL_SHARDED &&
        config->shard_key)
        sl_log_info("not a sharded cluster: the collection is not sharded");
    return true;
}

typedef struct placing {
    sl_load *load;
    int64_t logged; /* when progress was logged last, by sl_clock_ns */
} placing;

static bool on_prepare_step(void *context, size_t done, size_t all) {
    placing *work = context;
    work->load->placing_steps = done;
    if (sl_seconds_since(work->logged) > 2) {
        sl_log_info("placing ranges: step %zu of %zu", done, all);
        work->logged = sl_clock_ns();
    }
    return !sl_interrupt_requested();
}

static const char *layout_of(const sl_load *load) {
    switch (sl_shard_map_route(load->destination.map)) {
    case SL_ROUTE_BY_ID:
        return "sharded by _id";
    case SL_ROUTE_BY_KEY:
        return "sharded by another key; the loader finds each document's shard";
    default:
        return load->destination.target.shard_key
                   ? "sharded by another key; the router finds each document's shard"
                   : "not sharded";
    }
}

static bool batches_fit(const sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    const sl_server *server = sl_connection_server(load->destination.connection);
    return config->adapt_batches ||
           config->batch_documents <= (uint32_t)server->max_batch_documents ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--batch-size %u is more than the server accepts (%d documents)",
                        config->batch_documents, server->max_batch_documents);
}

/* All checks that can refuse the load come before anything is created or, with --drop, removed. */
static bool prepare(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    bool sharded = sl_connection_server(load->destination.connection)->deployment == SL_SHARDED;
    sl_target_configure(&load->destination, config, load->job.resumed);
    if (!batches_fit(load, error) ||
        !sl_resume_find_target(&load->job, &load->destination, &load->ledger, error) ||
        !sl_target_decide_sharding(&load->job, &load->destination, error) ||
        !sl_registry_open(load->destination.connection, &load->destination.target,
                          &load->destination.registry, error) ||
        !sl_topology_read(load->destination.connection, &load->destination.topology, error) ||
        !sl_parts_find_shards(&load->job, &load->destination, error) ||
        !sl_sources_look_for_target(&load->job, &load->destination, error) ||
        !sl_route_open(&load->job, &load->destination, load->run.threads, error))
        return false;
    atomic_store(&load->run.begun, true);
    if (!not_interrupted(error) || !pause_balancer(load, error))
        return false;
    if (!sl_target_begin(&load->job, &load->destination, error) ||
        !sl_prepare_target(load->destination.connection, &load->destination.target,
                           &load->destination.created, error) ||
        !sl_target_identify(load->destination.connection, &load->destination.target, error) ||
        !sl_target_check_shards(&load->destination, NULL, error) ||
        !sl_sources_number_by_registry(&load->job, &load->destination, load->ledger.work_directory,
                                       error) ||
        !sl_resume_target(&load->job, &load->destination, &load->ledger, error) ||
        !sl_shard_map_read(load->destination.connection, &load->destination.target,
                           load->destination.topology, &load->destination.map, error))
        return false;
    load->job.by_range = sl_shard_map_by_id(load->destination.map);
    load->job.shards = (uint32_t)load->destination.topology->count;
    if (!sl_ranges_lay_out(&load->job, &load->destination, error))
        return false;
    if (load->job.by_range) {
        int64_t start = sl_clock_ns();
        placing work = {load, start};
        if (!sl_prepare_ranges(load->destination.connection, &load->destination.target,
                               load->destination.topology, load->job.ranges, load->job.range_count,
                               on_prepare_step, &work, error))
            return false;
        load->placing_seconds = sl_seconds_since(start);
    }
    if (!sl_route_read_map(&load->destination, error))
        return false;
    sl_parts_choose_blocks(&load->job, &load->destination);
    if (sharded)
        sl_log_info("%s.%s: %s, %zu range%s on %u shards", config->database, config->collection,
                    layout_of(load), load->job.range_count, load->job.range_count == 1 ? "" : "s",
                    load->job.shards);
    return not_interrupted(error);
}

static bool prepare_offline(sl_load *load, sl_error *error) {
    load->job.shards = 1;
    return sl_sources_number_offline(&load->job, error) &&
           sl_ranges_lay_out(&load->job, &load->destination, error);
}

static const sl_sink_type *const sinks[] = {
    [SL_SINK_CLUSTER] = &sink_cluster, [SL_SINK_NULL] = &sink_null, [SL_SINK_BSON] = &sink_bson};

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
    atomic_store(&load->run.begun, true);
    if (!sl_run_create_counters(&load->run))
        return sl_error_memory(error, "starting workers");
    uint32_t batch_most = UINT32_MAX;
    if (load->destination.connection)
        batch_most =
            (uint32_t)sl_connection_server(load->destination.connection)->max_batch_documents;
    if (!sl_resume_recover(&load->job, &load->ledger, error) ||
        !sl_pace_start(&load->run, batch_most, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(load->job.set); i++) {
        const sl_job_source *source = &load->job.sources[i];
        if (!source->skipped)
            sl_rejects_set_header(load->ledger.rejects, i, source->format->header(source->dialect));
    }
    int64_t start = sl_clock_ns();
    sl_rate_limit_init(&load->run.rate_limit, load->job.config->rate_limit);
    sl_ticking ticking = {load, sl_progress_start(&load->run, &load->destination, load->record),
                          start, start};
    bool ok = sl_workers_run(&load->run, &load->destination, &load->ledger,
                             sinks[load->job.config->sink], on_tick, &ticking, error) &&
              (sl_interrupt_requested() || sl_source_set_unchanged(load->job.set, error));
    load->run.seconds = sl_seconds_since(start);
    sl_progress_end(ticking.progress);
    sl_error closing = {0};
    /* After a failure, blocks that cannot be confirmed at once are left to a resumed load. */
    bool closed = (ok ? sl_resume_commit_last : sl_resume_commit)(&load->destination, &load->ledger,
                                                                  &closing);
    char reasons[SL_REJECT_REASONS_ROOM];
    sl_rejects_first_reasons(load->ledger.rejects, reasons);
    closed = sl_rejects_close(load->ledger.rejects, NULL, closed ? &closing : NULL) && closed;
    if (!closed && ok) {
        *error = closing;
        ok = false;
    }
    load->ledger.rejects = NULL;
    if (ok && sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    return ok && !sl_rejects_pass_limit(&load->run, &load->ledger, true, error) &&
           !sl_rejects_are_all(&load->run, &load->ledger, reasons, error);
}

static bool build_indexes(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    if (config->index_count > 0 &&
        !sl_target_is_ours(&load->destination, load->run.shard_documents, error))
        return false;
    for (size_t i = 0; i < config->index_count; i++) {
        char *json = bson_as_relaxed_extended_json(config->indexes[i], NULL);
        sl_log_info("building index %s", json);
        bson_free(json);
        if (sl_interrupt_requested())
            return sl_error_set(
                error, SL_EXIT_INTERRUPTED,
                "interrupted: all documents are loaded, but not all indexes are built");
        if (!sl_create_index(load->destination.connection, &load->destination.target,
                             config->indexes[i], error))
            return false;
    }
    return true;
}

static bool restore_balancer(sl_load *load, sl_error *error) {
    (void)load;
    return put_balancer_back(error);
}

static bool verify(sl_load *load, sl_error *error) {
    if (!sl_target_is_ours(&load->destination, load->run.shard_documents, error))
        return false;
    /* Only the counts show documents of a text that has changed since the earlier run. */
    if ((load->job.config->verify || load->ledger.compared) &&
        !sl_verify_counts(&load->job, &load->destination, &load->ledger,
                          sl_run_record_document(load->record), error))
        return false;
    if (load->job.config->sample < 1)
        return true;
    sl_interrupt_begin_change();
    bool ok = sl_register_loaded(&load->job, &load->destination, &load->ledger, error);
    sl_interrupt_end_change();
    return ok;
}

static bool run_phases(sl_load *load, sl_error *error) {
    static const struct {
        const char *name;
        phase_function *function;
        bool cluster_only;
        bool offline_only;
        bool change; /* the phase as a unit changes the cluster: see sl_interrupt_begin_change */
    } phases[] = {
        {"connect", connect_to_cluster, true, false, false},
        {"prepare", prepare, true, false, true},
        {"prepare", prepare_offline, false, true, false},
        {"load", load_documents, false, false, false}, /* each batch is a change of its own */
        {"indexes", build_indexes, true, false, true},
        {"balancer", restore_balancer, true, false, false}, /* a handler puts it back, too */
        {"verify", verify, true, false, false},
    };
    bool cluster = load->job.config->sink == SL_SINK_CLUSTER;
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (cluster ? phases[i].offline_only : phases[i].cluster_only)
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

static uint64_t rejects_of(const sl_run *run) {
    sl_run_totals sum = sl_run_sum(run);
    return sum.parser_rejects + sum.server_rejects;
}

static void load_clear(sl_load *load) {
    sl_ledger_clear(&load->ledger);
    sl_run_clear(&load->run);
    sl_destination_close(&load->destination);
    sl_job_clear(&load->job);
    sl_run_record_destroy(load->record);
}

sl_exit sl_load_run(const sl_load_config *config) {
    sl_error error = {0};
    sl_load load = {.report = config->report, .html = config->html};
    sl_job_init(&load.job, config);
    sl_run_init(&load.run, &load.job);
    sl_log_level level = config->part_of_trial ? sl_log_set_level(SL_LOG_WARNING) : SL_LOG_INFO;
    load.record = sl_run_record_create();
    bool ok = load.record || sl_error_memory(&error, "starting");
    bool listening = ok && sl_interrupt_listen(on_first_signal, on_second_signal, &load, &error);
    ok = listening;
    if (ok)
        sl_record_start(load.record, config, "load");
    /* The sources come first: their errors are reported before anything is created. */
    bool finished = false;
    ok = ok && run_phase(&load, "sources", look_at_sources, &error) &&
         sl_work_directory_make(config, load.ledger.work_directory, &error) &&
         sl_report_check(&load.report, &error) && sl_report_check(&load.html, &error) &&
         sl_resume_open(&load.job, &load.ledger, &finished, &error) &&
         (finished || run_phases(&load, &error));

    if (!ok) { /* logged first, because putting the balancer back may have to wait for a server */
        sl_log_error(SL_LINES, error.message);
        log_how_to_complete(&load, &error);
    }
    sl_error restoring = {0};
    if (!put_balancer_back(&restoring))
        sl_log_error(SL_LINES, restoring.message);
    load.balancer_restored = !pause_state.lost;
    sl_exit code = error.code;
    if (load.record && !finished)
        code = sl_record_end(&load, ok ? SL_EXIT_OK : error.code);
    /* Last of all: once a load is marked as finished, --resume does not write run.json again. */
    if (!finished && (code == SL_EXIT_OK || code == SL_EXIT_REJECTS) &&
        !sl_resume_finish(&load.ledger, rejects_of(&load.run), &error)) {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    if (listening) /* otherwise this would end the listener of the command that runs the load */
        sl_interrupt_stop_listening();
    load_clear(&load);
    sl_log_close_file();
    if (config->part_of_trial)
        sl_log_set_level(level);
    return code;
}
