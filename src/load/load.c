/* SPDX-License-Identifier: Apache-2.0 */
/* A load from start to end: sources, connect, prepare, load, indexes, balancer, verify, report.
 *
 * Whatever ends the load, `sl_load_run` executes the same last lines, which put the balancer back.
 * Only after a second Ctrl-C the interrupt thread puts it back and ends the process. Both call
 * `put_balancer_back`, whose lock lets exactly one of them do it. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include "progress.h"
#include "record.h"
#include "sink.h"

/* The interval of journal commits: after a crash, a resumed load repeats about this much work. */
#define COMMIT_SECONDS 1.0
#define STOPPING_BATCH 1000 /* documents per batch once a load with --rate-limit stops */

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
    bool ok = sl_balancer_pause(load->connection, load->holder, &pause_state.balancer, error);
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

void sl_load_stop(sl_load *load) {
    atomic_store(&load->stop, true);
    sl_source_set_stop(load->set);
    /* The rate limit no longer applies, so the remaining documents need not go in small batches. */
    if (load->config->rate_limit > 0)
        atomic_store(&load->pace.batch_documents, STOPPING_BATCH);
    sl_pace_over(load);
}

void sl_load_fail(sl_load *load, const sl_error *error) {
    pthread_mutex_lock(&load->failure_lock);
    if (!load->failure.code)
        load->failure = *error;
    pthread_mutex_unlock(&load->failure_lock);
    sl_load_stop(load);
}

/* Logs the command that completes a load which ended early. */
static void log_how_to_complete(const sl_load *load, const sl_error *why) {
    if (why->no_resume || load->config->part_of_trial)
        return;
    bool changed = load->set && sl_source_set_has_changed(load->set);
    if (load->config->sink == SL_SINK_BSON)
        sl_log_warning("the BSON dump is incomplete");
    else if (load->journal && atomic_load(&load->begun) &&
             atomic_load(&load->ended_by) != SL_ENDED_ALL_REJECTED)
        sl_log_warning("to complete this load, %sgive %s with %s--resume --work-dir %s%s",
                       changed ? "put the source back as it was and " : "",
                       load->config->completed_by ? load->config->completed_by : "the same command",
                       atomic_load(&load->ended_by) == SL_ENDED_BY_REJECT_LIMIT
                           ? "a higher --max-rejects and "
                           : "",
                       load->work_directory,
                       changed ? "; to load it as it is now, begin anew with --drop" : "");
}

static void on_first_signal(void *context) {
    sl_load *load = context;
    if (load->config->part_of_trial && !atomic_load(&load->begun))
        return;                       /* the load checks for it before it begins */
    if (!atomic_load(&load->begun)) { /* nothing to undo: do not wait for a server or a pipe */
        sl_log_warning("interrupted before anything was loaded");
        _exit(SL_EXIT_INTERRUPTED);
    }
    if (!load->config->part_of_trial)
        sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    sl_load_stop(load);
}

static void on_second_signal(void *context) {
    const sl_load *load = context;
    sl_error error = {0};
    if (!put_balancer_back(&error))
        sl_log_error(SL_LINES, error.message);
    if (!load->config->part_of_trial)
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
    if (!sl_sources_open(load, error) || !sl_not_loaded_check(load, error))
        return false;
    if (load->config->sample < 1)
        sl_source_set_sample(load->set, load->config->sample);
    if (!sl_parts_begin(load, error))
        return false;
    char bytes[SL_HUMAN_ROOM];
    const sl_load_source *first = load->sources;
    while (first->skipped)
        first++;
    char dialect[300];
    uint64_t stored = sl_source_set_stored_bytes(load->set);
    bool generated = sl_load_is_generated(load);
    sl_log_info("%zu source%s, %s %s: %s%s", load->active, load->active == 1 ? "" : "s",
                generated ? sl_human_count(stored / SL_GENERATED_BYTES, bytes)
                          : sl_human_bytes((double)stored, bytes),
                generated ? "generated records" : "stored",
                first->format->describe(first->dialect, dialect, sizeof dialect),
                load->active > 1 ? " (the first of them)" : "");
    return true;
}

/* After Ctrl-C commands are not retried, except those that put the balancer back. */
static bool keep_trying(void *unused) {
    (void)unused;
    return !sl_interrupt_requested() || atomic_load(&pause_state.putting_back);
}

static bool connect_to_cluster(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (!sl_connection_open(config->uri, "shardload", 3, config->timeout_seconds, &load->connection,
                            error))
        return false;
    sl_connection_set_retry_check(load->connection, keep_trying, NULL);
    sl_record_server(load);
    if (sl_connection_server(load->connection)->deployment != SL_SHARDED && config->shard_key)
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
    switch (sl_shard_map_route(load->map)) {
    case SL_ROUTE_BY_ID:
        return "sharded by _id";
    case SL_ROUTE_BY_KEY:
        return "sharded by another key; the loader finds each document's shard";
    default:
        return load->target.shard_key
                   ? "sharded by another key; the router finds each document's shard"
                   : "not sharded";
    }
}

static bool batches_fit(const sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    const sl_server *server = sl_connection_server(load->connection);
    return config->adapt_batches ||
           config->batch_documents <= (uint32_t)server->max_batch_documents ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--batch-size %u is more than the server accepts (%d documents)",
                        config->batch_documents, server->max_batch_documents);
}

/* All checks that can refuse the load come before anything is created or, with --drop, removed. */
static bool prepare(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    bool sharded = sl_connection_server(load->connection)->deployment == SL_SHARDED;
    sl_target_configure(load);
    if (!batches_fit(load, error) || !sl_resume_find_target(load, error) ||
        !sl_ranges_decide_sharding(load, error) ||
        !sl_registry_open(load->connection, &load->target, &load->registry, error) ||
        !sl_topology_read(load->connection, &load->topology, error) ||
        !sl_parts_find_shards(load, error) || !sl_sources_look_for_target(load, error) ||
        !sl_route_open(load, error))
        return false;
    atomic_store(&load->begun, true);
    if (!not_interrupted(error) || !pause_balancer(load, error))
        return false;
    if (!sl_target_begin(load, error) ||
        !sl_prepare_target(load->connection, &load->target, &load->created, error) ||
        !sl_target_identify(load->connection, &load->target, error) ||
        !sl_target_check_shards(load, error) || !sl_sources_number_by_registry(load, error) ||
        !sl_resume_target(load, error) ||
        !sl_shard_map_read(load->connection, &load->target, load->topology, &load->map, error))
        return false;
    load->by_range = sl_shard_map_by_id(load->map);
    load->shards = (uint32_t)load->topology->count;
    if (!sl_ranges_lay_out(load, error))
        return false;
    if (load->by_range) {
        int64_t start = sl_clock_ns();
        placing work = {load, start};
        if (!sl_prepare_ranges(load->connection, &load->target, load->topology, load->ranges,
                               load->range_count, on_prepare_step, &work, error))
            return false;
        load->placing_seconds = sl_seconds_since(start);
    }
    if (!sl_route_read_map(load, error))
        return false;
    sl_parts_choose_blocks(load);
    if (sharded)
        sl_log_info("%s.%s: %s, %zu range%s on %u shards", config->database, config->collection,
                    layout_of(load), load->range_count, load->range_count == 1 ? "" : "s",
                    load->shards);
    return not_interrupted(error);
}

static bool prepare_offline(sl_load *load, sl_error *error) {
    load->shards = 1;
    return sl_sources_number_offline(load, error) && sl_ranges_lay_out(load, error);
}

typedef struct sl_ticking {
    sl_load *load;
    sl_progress *progress;
    int64_t start, committed; /* times of the start and of the last commit, by sl_clock_ns */
} sl_ticking;

static void on_tick(void *context) {
    sl_ticking *ticking = context;
    sl_progress_tick(ticking->progress);
    sl_pace_tick(ticking->load, ticking->start);
    if (sl_seconds_since(ticking->committed) < COMMIT_SECONDS)
        return;
    sl_error error;
    if (!sl_resume_commit(ticking->load, &error))
        sl_load_fail(ticking->load, &error);
    ticking->committed = sl_clock_ns();
}

static bool load_documents(sl_load *load, sl_error *error) {
    atomic_store(&load->begun, true);
    load->latencies = calloc(load->threads, sizeof *load->latencies);
    if (!sl_workers_create_counters(load) || !load->latencies)
        return sl_error_memory(error, "starting workers");
    if (!sl_resume_recover(load, error) || !sl_pace_start(load, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_load_source *source = &load->sources[i];
        if (!source->skipped)
            sl_rejects_set_header(load->rejects, i, source->format->header(source->dialect));
    }
    int64_t start = sl_clock_ns();
    sl_rate_limit_init(&load->rate_limit, load->config->rate_limit);
    sl_ticking ticking = {load, sl_progress_start(load), start, start};
    bool ok = sl_workers_run(load, on_tick, &ticking, error) &&
              (sl_interrupt_requested() || sl_source_set_unchanged(load->set, error));
    load->load_seconds = sl_seconds_since(start);
    sl_progress_end(ticking.progress);
    sl_error closing = {0};
    /* After a failure, blocks that cannot be confirmed at once are left to a resumed load. */
    bool closed = (ok ? sl_resume_commit_last : sl_resume_commit)(load, &closing);
    char reasons[SL_REJECT_REASONS_ROOM];
    sl_rejects_first_reasons(load->rejects, reasons);
    closed = sl_rejects_close(load->rejects, NULL, closed ? &closing : NULL) && closed;
    if (!closed && ok) {
        *error = closing;
        ok = false;
    }
    load->rejects = NULL;
    if (ok && sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    return ok && !sl_rejects_pass_limit(load, true, error) &&
           !sl_rejects_are_all(load, reasons, error);
}

static bool build_indexes(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (config->index_count > 0 && !sl_target_is_ours(load, error))
        return false;
    for (size_t i = 0; i < config->index_count; i++) {
        char *json = bson_as_relaxed_extended_json(config->indexes[i], NULL);
        sl_log_info("building index %s", json);
        bson_free(json);
        if (sl_interrupt_requested())
            return sl_error_set(
                error, SL_EXIT_INTERRUPTED,
                "interrupted: all documents are loaded, but not all indexes are built");
        if (!sl_create_index(load->connection, &load->target, config->indexes[i], error))
            return false;
    }
    return true;
}

static bool restore_balancer(sl_load *load, sl_error *error) {
    (void)load;
    return put_balancer_back(error);
}

static bool verify(sl_load *load, sl_error *error) {
    if (!sl_target_is_ours(load, error))
        return false;
    /* Only the counts show documents of a text that has changed since the earlier run. */
    if ((load->config->verify || load->compared) && !sl_verify_counts(load, error))
        return false;
    if (load->config->sample < 1)
        return true;
    sl_interrupt_begin_change();
    bool ok = sl_sources_mark_loaded(load, error) && sl_parts_end(load, error);
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
    bool cluster = load->config->sink == SL_SINK_CLUSTER;
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
        if (phases[i].function == load_documents && !sl_not_loaded_check(load, error))
            return false;
    }
    return true;
}

/* ---- the load ---- */

void sl_load_init_locks(sl_load *load) {
    sl_clock_init_condition(&load->all_ended);
    pthread_mutex_init(&load->working_lock, NULL);
    pthread_mutex_init(&load->failure_lock, NULL);
    pthread_mutex_init(&load->entries_lock, NULL);
    pthread_cond_init(&load->entries_known, NULL);
    sl_not_loaded_init(&load->not_loaded);
    sl_pace_init(load);
}

void sl_load_destroy_locks(sl_load *load) {
    pthread_cond_destroy(&load->all_ended);
    pthread_mutex_destroy(&load->working_lock);
    pthread_mutex_destroy(&load->failure_lock);
    pthread_mutex_destroy(&load->entries_lock);
    pthread_cond_destroy(&load->entries_known);
    sl_not_loaded_clear(&load->not_loaded);
    sl_pace_clear(load);
}

static void load_clear(sl_load *load) {
    sl_rejects_close(load->rejects, NULL, NULL);
    sl_resume_close(load);
    sl_sources_close(load);
    sl_shard_map_destroy(load->map);
    sl_registry_close(load->registry);
    sl_direct_close(load->direct);
    sl_topology_destroy(load->topology);
    sl_connection_close(load->connection);
    sl_run_record_destroy(load->record);
    free(load->own_shards);
    free(load->ranges);
    free(load->accepted);
    free(load->shard_documents);
    free(load->counters);
    free(load->latencies);
    free(load->parsed);
    sl_load_destroy_locks(load);
}

static const sl_destination *const sinks[] = {&sink_cluster, &sink_null, &sink_bson};

sl_exit sl_load_run(const sl_load_config *config) {
    sl_error error = {0};
    sl_load load = {.config = config,
                    .sink = sinks[config->sink],
                    .shards = 1,
                    .report = config->report,
                    .html = config->html};
    sl_load_init_locks(&load);
    sl_log_level level = config->part_of_trial ? sl_log_set_level(SL_LOG_WARNING) : SL_LOG_INFO;
    load.record = sl_run_record_create();
    bool ok = load.record || sl_error_memory(&error, "starting");
    bool listening = ok && sl_interrupt_listen(on_first_signal, on_second_signal, &load, &error);
    ok = listening;
    if (ok)
        sl_record_start(&load, "load");
    /* The sources come first: their errors are reported before anything is created. */
    bool finished = false;
    ok = ok && run_phase(&load, "sources", look_at_sources, &error) &&
         sl_work_directory_make(&load, &error) && sl_report_check(&load, &error) &&
         sl_resume_open(&load, &finished, &error) && (finished || run_phases(&load, &error));

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
        !sl_resume_finish(&load, &error)) {
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
