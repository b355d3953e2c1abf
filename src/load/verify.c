/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload verify`: the phases of a verification. Neither sources nor cluster are changed. */
#include "verification.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/log.h"

#include "progress.h"
#include "record.h"

static bool interrupted(sl_error *error) {
    return sl_error_set(error, SL_EXIT_INTERRUPTED,
                        "interrupted before all documents were verified");
}

static void on_first_signal(void *context) {
    sl_load *load = context;
    if (!atomic_load(&load->begun)) { /* it may be waiting for a server */
        sl_log_warning("interrupted before anything was verified");
        _exit(SL_EXIT_INTERRUPTED);
    }
    sl_log_warning("stopping; press Ctrl-C again to stop at once");
    sl_load_stop(load);
}

static void on_second_signal(void *context) {
    (void)context;
}

/* ---- phases ---- */

/* A pipe has no fingerprint by which the registry could identify it. */
static bool refuse_pipe(const char *path, sl_error *error) {
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: a pipe cannot be identified as the source of a load, and so not verified",
        strcmp(path, "-") == 0 ? "standard input" : path);
}

static bool look_at_sources(sl_verification *verification, sl_error *error) {
    sl_load *load = verification->load;
    for (size_t i = 0; i < load->config->path_count; i++) {
        if (strcmp(load->config->paths[i], "-") == 0)
            return refuse_pipe("-", error);
    }
    if (!sl_sources_open(load, error))
        return false;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_source *source = sl_source_set_at(load->set, i);
        if (source->kind == SL_SOURCE_PIPE)
            return refuse_pipe(source->shown, error);
    }
    return true;
}

static bool connect_to_cluster(sl_verification *verification, sl_error *error) {
    sl_load *load = verification->load;
    const sl_load_config *config = load->config;
    load->target = (sl_target){.database = config->database, .collection = config->collection};
    if (!sl_connection_open(config->uri, "shardload", config->threads + 2, config->timeout_seconds,
                            &load->connection, error))
        return false;
    sl_record_server(load);
    if (!sl_topology_read(load->connection, &load->topology, error) ||
        !sl_registry_open(load->connection, &load->target, &load->registry, error) ||
        !sl_sources_number_as_loaded(load, error) ||
        !sl_registry_numbers(load->registry, &verification->registered,
                             &verification->registered_count, error) ||
        !sl_shard_map_read(load->connection, &load->target, load->topology, &load->map, error))
        return false;
    load->by_range = sl_shard_map_by_id(load->map);
    load->shards = load->by_range ? (uint32_t)load->topology->count : 1;
    return sl_ranges_lay_out(load, error);
}

static void on_tick(void *context) {
    sl_progress_tick(context);
}

static bool read_sources(sl_verification *verification, sl_error *error) {
    sl_load *load = verification->load;
    verification->ranges = calloc(load->range_count + 1, sizeof *verification->ranges);
    if (!sl_workers_create_counters(load) || !verification->ranges)
        return sl_error_memory(error, "starting threads");
    atomic_store(&load->begun, true);
    sl_progress *progress = sl_progress_start(load);
    bool ok = sl_verify_blocks(verification, on_tick, progress, error);
    sl_progress_end(progress);
    if (ok && sl_interrupt_requested())
        return interrupted(error);
    return ok && sl_source_set_unchanged(load->set, error);
}

static bool count_ranges(sl_verification *verification, sl_error *error) {
    return verification->content || sl_verify_ranges(verification, error);
}

static bool run_phases(sl_verification *verification, sl_error *error) {
    static const struct {
        const char *name;
        bool (*run)(sl_verification *verification, sl_error *error);
    } phases[] = {
        {"connect", connect_to_cluster},
        {"sources", read_sources},
        {"count", count_ranges},
        {"between", sl_verify_gaps},
    };
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof phases / sizeof phases[0]; i++) {
        int64_t start = sl_clock_ns();
        ok = phases[i].run(verification, error);
        sl_run_record_phase(verification->load->record, phases[i].name, sl_seconds_since(start));
    }
    if (!ok && sl_interrupt_requested())
        interrupted(error);
    return ok;
}

/* ---- the verification ---- */

static bool write_record(sl_load *load, sl_exit code, sl_error *error) {
    const char *paths[2] = {NULL, load->report};
    char path[600];
    bson_t *record = sl_run_record_document(load->record);
    sl_record_tail(record, code);
    if (load->work_directory[0]) {
        snprintf(path, sizeof path, "%s/verify.json", load->work_directory);
        paths[0] = path;
    }
    bool ok = true;
    for (int i = 0; i < 2; i++)
        ok = (!paths[i] || sl_run_record_write(load->record, paths[i], error)) && ok;
    return ok;
}

static void clear(sl_verification *verification) {
    sl_load *load = verification->load;
    sl_sources_close(load);
    sl_shard_map_destroy(load->map);
    sl_registry_close(load->registry);
    sl_topology_destroy(load->topology);
    sl_connection_close(load->connection);
    sl_run_record_destroy(load->record);
    free(load->ranges);
    free(load->accepted);
    free(load->shard_documents);
    free(load->counters);
    free(load->parsed);
    free(verification->ranges);
    free(verification->registered);
    free(verification->covered);
    pthread_mutex_destroy(&verification->lock);
    sl_load_destroy_locks(load);
}

sl_exit sl_verify_run(const sl_load_config *config, bool content, uint64_t problems_shown) {
    sl_error error = {0};
    sl_load load = {.config = config, .shards = 1, .report = config->report};
    sl_verification verification = {.load = &load, .content = content};
    sl_load_init_locks(&load);
    pthread_mutex_init(&verification.lock, NULL);
    load.record = sl_run_record_create();
    bool ok = load.record || sl_error_memory(&error, "starting");
    bool listening = ok && sl_interrupt_listen(on_first_signal, on_second_signal, &load, &error);
    ok = listening;
    if (ok)
        sl_record_start(&load, "verify");
    ok = ok && look_at_sources(&verification, &error) &&
         (!config->work_directory || sl_work_directory_make(&load, &error)) &&
         sl_report_check(&load, &error) &&
         sl_problems_open(load.work_directory[0] ? load.work_directory : NULL, load.set,
                          problems_shown, &verification.problems, &error) &&
         run_phases(&verification, &error);
    sl_error closing = {0};
    if (!sl_problems_close(verification.problems, &closing) && ok) {
        error = closing;
        ok = false;
    }
    if (load.record)
        sl_not_loaded_record(&load, sl_run_record_document(load.record));
    if (ok && !sl_verify_report(&verification))
        ok =
            sl_error_set(&error, SL_EXIT_VERIFICATION, "%s.%s differs from its sources (see above)",
                         config->database, config->collection);
    else if (ok)
        sl_log_info("%s.%s %s", config->database, config->collection,
                    content ? "is equal to its sources, byte by byte"
                            : "has the number of documents that its sources have");
    /* Nothing shows whether the collection should hold records of files that are not loaded. */
    ok = ok && sl_not_loaded_check(&load, &error);
    if (!ok)
        sl_log_error(SL_LINES, error.message);
    sl_exit code = ok ? SL_EXIT_OK : error.code;
    if (load.record && !write_record(&load, code, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = code == SL_EXIT_OK ? SL_EXIT_USAGE : code;
    }
    if (listening)
        sl_interrupt_stop_listening();
    clear(&verification);
    sl_log_close_file();
    return code;
}
