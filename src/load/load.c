/* SPDX-License-Identifier: Apache-2.0 */
/* A load from start to end: sources, connect, prepare, load, indexes, balancer, verify, report.
 *
 * Whatever ends the load, `sl_load_run` executes the same last lines, which restore the balancer
 * (ending.c). */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/phase_names.h"
#include "util/private_file.h"
#include "util/text.h"

#include "cluster/cluster.h"
#include "embedding.h"
#include "job/numbers.h"
#include "job/sources.h"
#include "job/types.h"
#include "ledger/ledger.h"
#include "progress.h"
#include "record.h"
#include "run.h"
#include "send/sink.h"
#include "verify_counts.h"
#include "worker.h"

/* The interval of journal commits: after a crash, a resumed load repeats about this much work. */
#define COMMIT_SECONDS 1.0

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
    if (!sl_sources_open(&load->job, error) || !sl_not_loaded_check(&load->job, error))
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
    sl_log_info("%zu source%s, %s %s: %s%s", load->job.active, load->job.active == 1 ? "" : "s",
                generated ? sl_human_count(stored / sl_job_record_bytes(&load->job), bytes)
                          : sl_human_bytes((double)stored, bytes),
                generated ? "generated records" : "stored",
                sl_format_describe(first->format, first->dialect, dialect, sizeof dialect),
                load->job.active > 1 ? " (the first of them)" : "");
    sl_types_log(&load->job);
    return true;
}

static const sl_sink_type *sink_of(const sl_load_config *config) {
    static const sl_sink_type *const sinks[] = {[SL_SINK_CLUSTER] = &sl_sink_cluster,
                                                [SL_SINK_NULL] = &sl_sink_null,
                                                [SL_SINK_BSON] = &sl_sink_bson,
                                                [SL_SINK_DIVIDED] = &sl_sink_divided};
    return sl_load_mode(config)->matches ? &sl_sink_modify : sinks[config->sink];
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
    const sl_recovered *recovered = &load->ledger.recovered;
    load->run.earlier = (sl_earlier_totals){
        .records = recovered->counts.records,
        .documents = recovered->inserted + recovered->already_stored + recovered->changed,
        .rejects = recovered->counts.rejects + recovered->server_rejects,
        .text_bytes = recovered->text_bytes};
    sl_status_run(load->status, &load->run, &load->destination);
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
        char size[SL_HUMAN_ROOM], count[SL_HUMAN_ROOM], most[SL_HUMAN_ROOM + 20] = "";
        double bytes = sl_look_amount(&facts.options, "size", 0);
        int64_t documents = sl_look_int64(&facts.options, "max", 0);
        if (documents > 0)
            snprintf(most, sizeof most, " and %s documents",
                     sl_human_count((uint64_t)documents, count));
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
    if (!sl_target_is_ours(&load->destination, load->run.shard_documents, error))
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
    bool ok = sl_register_loaded(&load->job, &load->destination, &load->ledger, error);
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
    if (!sl_embedding_open(&load->job, load->ledger.work_directory, keys, error))
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
        {SL_PHASE_EMBED, prepare_embedding, .embed_only = true},
        {SL_PHASE_CONNECT, sl_load_connect, .cluster_only = true},
        {SL_PHASE_PREPARE, sl_load_prepare, .cluster_only = true, .change = true},
        {SL_PHASE_PREPARE, sl_load_prepare_offline, .offline_only = true},
        {SL_PHASE_LOAD, .function = load_documents}, /* each batch is a separate change */
        {SL_PHASE_INDEXES, build_indexes, .cluster_only = true, .change = true},
        /* It may also run in the thread of the signal handler. */
        {SL_PHASE_BALANCER, sl_load_restore_balancer, .cluster_only = true},
        {SL_PHASE_ORPHANS, finish_embedding, .embed_only = true},
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

/* With --resume, a load that has been completed sends nothing, but its collection must exist. */
static bool confirm_completed(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    if (config->embed_field && !sl_embedding_check(&load->job, load->ledger.work_directory, error))
        return false;
    if (!sl_load_connect(load, error))
        return false;
    sl_target_configure(&load->destination, &load->job, true);
    if (!sl_resume_find_target(&load->job, &load->destination, &load->ledger, error))
        return false;
    sl_log_info("%s: this load has been completed; there is nothing to resume",
                load->ledger.work_directory);
    error->code = sl_resume_completed_code(&load->ledger);
    return true;
}

/* The records that are not in the collection; with --embed, also those that are in no document. */
static uint64_t rejects_of(const sl_load *load) {
    sl_run_totals sum = sl_run_sum(&load->run);
    const sl_embed *embed = load->job.embed;
    return sum.parser_rejects + sum.server_rejects +
           (embed ? embed->facts.rejects + embed->orphans : 0);
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
        .resume_directory = load->ledger.work_directory,
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
    sl_log_level level = config->part_of_trial ? sl_log_set_level(SL_LOG_WARNING) : SL_LOG_INFO;
    load.record = sl_run_record_create();
    bool ok = load.record || sl_error_memory(&error, "starting");
    bool listening = ok && sl_interrupt_listen(sl_load_on_first_request, sl_load_on_second_request,
                                               &load, &error);
    ok = listening;
    if (ok)
        sl_record_start(load.record, config, "load");
    /* The sources come first: their errors are reported before anything is created. */
    bool finished = false;
    ok = ok && run_phase(&load, SL_PHASE_SOURCES, look_at_sources, &error);
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
    if (!ok) { /* logged first, because restoring the balancer may have to wait for a server */
        sl_log_error(SL_LINES, error.message);
        sl_load_log_how_to_complete(&load, &error);
    }
    sl_error restoring = {0};
    if (!sl_load_restore_balancer(&load, &restoring))
        sl_log_error(SL_LINES, restoring.message);
    load.balancer_restored = !load.balancer_lost;
    sl_exit code = error.code;
    char unused[SL_WORK_DIRECTORY_ROOM] = "";
    if (!ok && sl_load_is_unused(&load)) { /* run.json stays that of an earlier load */
        strcpy(unused, load.ledger.work_directory);
        load.ledger.work_directory[0] = '\0';
    }
    if (load.record && !finished)
        code = sl_record_end(&load, ok ? SL_EXIT_OK : error.code);
    if (unused[0]) {
        sl_status_stop(load.status, code, error.message, sl_load_may_be_resumed(&load, &error));
        sl_work_directory_abandon(unused, &load.ledger.lock);
    }
    /* The last step: once a load is marked as finished, --resume does not write run.json again. */
    if (!finished && (code == SL_EXIT_OK || code == SL_EXIT_REJECTS) &&
        !sl_resume_finish(&load.ledger, rejects_of(&load), &error)) {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_status_stop(load.status, code, error.message, sl_load_may_be_resumed(&load, &error));
    if (listening) /* otherwise this would end the listener of the command that runs the load */
        sl_interrupt_stop_listening();
    sl_status_end(load.status, code, error.message, false); /* which a handler has used until now */
    load_clear(&load);
    sl_log_close_file();
    if (config->part_of_trial)
        sl_log_set_level(level);
    return code;
}
