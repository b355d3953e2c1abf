/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a run, from their start to the last one's end, their counters, and the totals of
 * these. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/sources.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

void sl_run_init(sl_run *run, sl_job *job) {
    const sl_load_config *config = job->config;
    *run = (sl_run){.job = job, .threads = config->threads};
    if (config->threads_most > run->threads)
        run->threads = config->threads_most;
    sl_clock_init_condition(&run->all_ended);
    pthread_mutex_init(&run->working_lock, NULL);
    pthread_mutex_init(&run->failure_lock, NULL);
    pthread_mutex_init(&run->held_lock, NULL);
    sl_pace_init(&run->pace, config->threads, config->batch_documents);
    sl_rate_limit_init(&run->own_limit, config->rate_limit);
    run->rate_limit = config->shared_limit ? config->shared_limit : &run->own_limit;
}

void sl_run_clear(sl_run *run) {
    free(run->counters);
    free(run->latencies);
    free(run->parsed);
    for (unsigned i = 0; run->left_out && i < run->threads; i++)
        sl_left_out_clear(&run->left_out[i]);
    free(run->left_out);
    free(run->shard_documents);
    pthread_cond_destroy(&run->all_ended);
    pthread_mutex_destroy(&run->working_lock);
    pthread_mutex_destroy(&run->failure_lock);
    pthread_mutex_destroy(&run->held_lock);
    sl_pace_clear(&run->pace);
    sl_rate_limit_clear(&run->own_limit);
}

bool sl_run_create_counters(sl_run *run) {
    run->counters = sl_zeroed(run->threads, sizeof *run->counters);
    for (unsigned i = 0; run->counters && i < run->threads; i++)
        atomic_store(&run->counters[i].stage, STAGES);
    run->parsed = calloc(run->threads, sizeof *run->parsed);
    run->left_out = calloc(run->threads, sizeof *run->left_out);
    run->shard_documents = calloc(run->job->shards, sizeof *run->shard_documents);
    run->latencies = calloc(run->threads, sizeof *run->latencies);
    return run->counters && run->parsed && run->left_out && run->shard_documents && run->latencies;
}

/* Once the run stops, the rate limit no longer applies. */
uint32_t sl_run_batch_documents(const sl_run *run) {
    uint32_t pace = atomic_load_explicit(&run->pace.batch_documents, memory_order_relaxed);
    uint32_t limit = atomic_load_explicit(&run->stop, memory_order_relaxed)
                         ? UINT32_MAX
                         : sl_rate_limit_batch(run->rate_limit);
    return pace < limit ? pace : limit;
}

void sl_run_stop(sl_run *run) {
    atomic_store(&run->stop, true);
    sl_source_set_stop(run->job->set);
    sl_pace_over(&run->pace);
}

void sl_run_fail(sl_run *run, const sl_error *error) {
    sl_error why = *error;
    sl_error_missing(&why, "a worker");
    pthread_mutex_lock(&run->failure_lock);
    if (!run->failure.code)
        run->failure = why;
    pthread_mutex_unlock(&run->failure_lock);
    sl_run_stop(run);
}

void sl_run_ended(sl_run *run) {
    pthread_mutex_lock(&run->working_lock);
    if (--run->working == 0)
        pthread_cond_signal(&run->all_ended);
    pthread_mutex_unlock(&run->working_lock);
}

static bool is_working(sl_run *run) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&run->working_lock);
    if (run->working > 0)
        pthread_cond_timedwait(&run->all_ended, &run->working_lock, &until);
    bool working = run->working > 0;
    pthread_mutex_unlock(&run->working_lock);
    return working;
}

bool sl_run_threads(sl_run *run, void *(*work_of)(void *item), void *items, size_t item_bytes,
                    void (*tick)(void *context), void *context, sl_error *error) {
    unsigned threads = run->threads, started = 0;
    pthread_t *running = malloc(threads * sizeof *running);
    if (!running)
        return sl_error_memory(error, "starting threads");
    run->working = threads;
    for (unsigned i = 0; i < threads; i++) {
        int code = sl_thread_start(&running[started], work_of, (char *)items + i * item_bytes);
        started += code == 0;
        if (code != 0 && started >= run->job->config->threads) { /* enough threads to start with */
            sl_run_ended(run);
        } else if (code != 0) {
            sl_error why;
            sl_error_set(&why, SL_EXIT_RESOURCES, "cannot start %u threads: %s; use fewer (-j)",
                         threads, strerror(code));
            sl_run_fail(run, &why);
            sl_run_ended(run);
        }
    }
    while (is_working(run))
        tick(context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    free(running);
    if (run->failure.code)
        *error = run->failure;
    return !run->failure.code;
}

/* ---- stages ---- */

void sl_stage_enter(sl_worker_counters *counters, sl_stage next) {
    sl_stage ended = atomic_load(&counters->stage);
    int64_t now = sl_clock_ns(), since = atomic_load(&counters->stage_since);
    atomic_fetch_add(&counters->changes, 1);
    if (ended != STAGES)
        atomic_fetch_add(&counters->stage_ns[ended], now - since);
    atomic_store(&counters->stage, next);
    atomic_store(&counters->stage_since, now);
    atomic_fetch_add(&counters->changes, 1);
}

/* ==== totals: sums of the counters of the workers, and values left out by column ==== */

/* Adds a worker's time, including the stage in progress: otherwise a server that hangs would show
 * only after it has answered. A worker that changes its stage meanwhile is read again; a few
 * attempts are enough, since a stage lasts much longer than reading it. */
static void add_stages(const sl_worker_counters *one, int64_t now, double seconds[STAGES]) {
    int64_t spent[STAGES];
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        uint32_t changes = atomic_load(&one->changes);
        for (unsigned k = 0; k < STAGES; k++)
            spent[k] = atomic_load(&one->stage_ns[k]);
        sl_stage stage = atomic_load(&one->stage);
        int64_t since = atomic_load(&one->stage_since);
        if (stage < STAGES && now > since)
            spent[stage] += now - since;
        if (changes % 2 == 0 && atomic_load(&one->changes) == changes)
            break;
    }
    for (unsigned k = 0; k < STAGES; k++)
        seconds[k] += (double)spent[k] / 1e9;
}

sl_run_totals sl_run_sum(const sl_run *run) {
    sl_run_totals sum = {0};
    int64_t now = sl_clock_ns();
    for (unsigned i = 0; run->counters && i < run->threads; i++) {
        const sl_worker_counters *one = &run->counters[i];
#define READ(place, field, ...)                                                                    \
    sum.field += atomic_load_explicit(&one->field, memory_order_relaxed);
        SL_WORKER_COUNTS(READ)
        int64_t answered = atomic_load_explicit(&one->answered_ns, memory_order_relaxed);
        if (answered > sum.answered_ns)
            sum.answered_ns = answered;
        add_stages(one, now, sum.stage_seconds);
    }
    return sum;
}

void sl_run_totals_add(sl_run_totals *sum, const sl_run_totals *more) {
#define ADD(place, field, ...) sum->field += more->field;
    SL_WORKER_COUNTS(ADD)
    if (more->answered_ns > sum->answered_ns)
        sum->answered_ns = more->answered_ns;
    for (unsigned k = 0; k < STAGES; k++)
        sum->stage_seconds[k] += more->stage_seconds[k];
}

/* ---- values left out ---- */

bool sl_left_out_add(sl_left_out *list, const char *column, bool kept, uint64_t values) {
    size_t i = 0;
    while (i < list->count &&
           (list->columns[i].kept != kept || strcmp(list->columns[i].name, column) != 0))
        i++;
    if (i == list->count) {
        void *grown = realloc(list->columns, (i + 1) * sizeof *list->columns);
        char *name = strdup(column);
        list->columns = grown ? grown : list->columns;
        if (!grown || !name) {
            free(name);
            return false;
        }
        list->columns[list->count++] = (struct sl_left_out_column){.name = name, .kept = kept};
    }
    list->columns[i].values += values;
    return true;
}

bool sl_left_out_merge(sl_left_out *list, const sl_left_out *more) {
    bool ok = true;
    for (size_t i = 0; ok && i < more->count; i++)
        ok = sl_left_out_add(list, more->columns[i].name, more->columns[i].kept,
                             more->columns[i].values);
    return ok;
}

void sl_left_out_clear(sl_left_out *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->columns[i].name);
    free(list->columns);
    *list = (sl_left_out){0};
}

void sl_left_out_append(const sl_left_out *list, bson_t *record) {
    static const char *const keys[] = {"leftOutByColumn", "keptAsTextByColumn"};
    bson_t array, item;
    for (int kept = 0; kept < 2; kept++) {
        size_t count = 0;
        for (size_t i = 0; i < list->count; i++) {
            if (list->columns[i].kept != kept)
                continue;
            if (count == 0)
                BSON_APPEND_ARRAY_BEGIN(record, keys[kept], &array);
            sl_record_begin_item(&array, count++, &item);
            BSON_APPEND_UTF8(&item, "column", list->columns[i].name);
            BSON_APPEND_INT64(&item, "values", (int64_t)list->columns[i].values);
            bson_append_document_end(&array, &item);
        }
        if (count > 0)
            bson_append_array_end(record, &array);
    }
}

void sl_left_out_log(const sl_left_out *list, uint64_t total) {
    char label[40], human[SL_HUMAN_ROOM];
    uint64_t here = 0;
    for (size_t i = 0; i < list->count; i++) {
        const bool kept = list->columns[i].kept;
        sl_print_text(label, sizeof label, "%s in column %s", kept ? "kept as text" : "left out",
                      list->columns[i].name);
        sl_log_row(label, sl_human_count(list->columns[i].values, human));
        here += kept ? 0 : list->columns[i].values;
    }
    if (here > 0 && here < total)
        sl_log_row("left out in earlier runs", sl_human_count(total - here, human));
}

/* ---- the limit of rejects ---- */

/* Loads that end because of their rejects: more than --max-rejects allows, or every record. */

/* Records from which on a percentage is checked while the load runs. */
#define SHARE_RECORDS_LEAST 100000u

typedef struct sl_rejected {
    uint64_t records, by_parser, by_server;
} sl_rejected;

/* The counts of all runs of the load, earlier ones included. */
static sl_rejected rejected_so_far(const sl_run *run, const sl_ledger *ledger) {
    sl_run_totals sum = sl_run_sum(run);
    return (sl_rejected){.records = ledger->recovered.counts.records + sum.records,
                         .by_parser = ledger->recovered.counts.rejects + sum.parser_rejects,
                         .by_server = ledger->recovered.server_rejects + sum.server_rejects};
}

char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]) {
    if (config->rejects_max_share < 1)
        snprintf(out, SL_REJECT_LIMIT_ROOM, "%g%%", 100 * config->rejects_max_share);
    else
        snprintf(out, SL_REJECT_LIMIT_ROOM, "%llu", (unsigned long long)config->rejects_max);
    return out;
}

bool sl_rejects_pass_limit(sl_run *run, const sl_ledger *ledger, bool at_end, sl_error *error) {
    const sl_load_config *config = run->job->config;
    sl_rejected sum = rejected_so_far(run, ledger);
    uint64_t rejects = sum.by_parser + sum.by_server;
    bool share = (at_end || sum.records >= SHARE_RECORDS_LEAST) && config->rejects_max_share < 1 &&
                 (double)rejects > config->rejects_max_share * (double)sum.records;
    if (rejects <= config->rejects_max && !share)
        return false;
    char limit[SL_REJECT_LIMIT_ROOM];
    atomic_store(&run->ended_by, SL_ENDED_BY_REJECT_LIMIT);
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s of %s records rejected, more than --max-rejects %s allows; see the first ones "
                 "above%s%s%s",
                 sl_number_text(rejects), sl_number_text(sum.records),
                 sl_reject_limit_text(config, limit),
                 ledger->work_directory[0] ? ", and those of completed blocks in " : "",
                 ledger->work_directory, ledger->work_directory[0] ? "/" SL_WORK_REJECTS : "");
    return true;
}

bool sl_rejects_are_all(sl_run *run, const sl_ledger *ledger, sl_error *error) {
    sl_rejected sum = rejected_so_far(run, ledger);
    char reasons[SL_REJECT_KINDS_ROOM];
    /* A part of a shared load, or a collection of a restore, may have only a few records, all
     * rejected, while the others have valid records. */
    if (sum.records == 0 || sum.by_parser + sum.by_server < sum.records ||
        sl_load_is_shared(run->job->config) || run->job->config->equal_is_stored)
        return false;
    atomic_store(&run->ended_by, SL_ENDED_ALL_REJECTED);
    sl_reject_kinds_text(&ledger->reject_kinds, reasons);
    sl_error_set(
        error, SL_EXIT_SOURCE, "all records were rejected%s; nothing was loaded. %s%s%s", reasons,
        sum.by_parser ? sl_sources_advice(run->job) : "",
        sum.by_parser && sum.by_server ? ". " : "",
        !sum.by_server ? ""
        : !sl_load_mode(run->job->config)->creates
            ? "Check --id-field or --match-fields, and the types of these fields (--types)"
        : run->job->own_ids
            ? "If the documents are stored already, --mode upsert replaces them. Else check the "
              "collection's validator and unique indexes; --drop starts again"
            : "Check the collection's validator and unique indexes, and --names and --schema of "
              "earlier loads; --drop starts again");
    return true;
}
