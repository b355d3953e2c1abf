/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a drill: a load, whose record contains the times of its phases, and then every query
 * of the suite, without warm-up runs. */
#include "drill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

/* ---- the load ---- */

/* Reads the times of the load's phases. PHASE_ACCOUNT is the part of `wall` (seconds) outside
 * them. */
static void read_phases(sl_drill_step *step, double wall) {
    double sum = 0;
    for (sl_walk walk = sl_walk_start(&step->load_record, "phases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        sum += seconds;
        for (unsigned i = 0; name && i < PHASES; i++) {
            if (strcmp(sl_drill_phases[i].name, name) == 0)
                step->seconds[i] += seconds;
        }
    }
    step->seconds[PHASE_ACCOUNT] = wall > sum ? wall - sum : 0;
}

/* Computes the deviation of the load's rate. Without memory it stays unknown. */
static void read_series(sl_drill_step *step) {
    size_t count = 0;
    sl_series_point *points =
        calloc(sl_walk_count(&step->load_record, "series") + 1, sizeof *points);
    for (sl_walk walk = sl_walk_start(&step->load_record, "series"); points && sl_walk_next(&walk);)
        points[count++] = (sl_series_point){sl_look_amount(&walk.item, "seconds", 0),
                                            sl_look_amount(&walk.item, "documents", 0)};
    step->load_deviation = sl_rate_deviation(points, count);
    free(points);
}

static sl_exit load(sl_drill *drill, sl_drill_step *step, const char *work_directory) {
    sl_load_config config = *drill->config->load;
    config.run_record = &step->load_record;
    config.collection = step->collection;
    config.work_directory = work_directory;
    config.report = NULL; /* the drill writes these */
    config.html = NULL;
    config.completed_by = "`shardload load` with the same sources and options";
    if (sl_drill_sampled(drill)) {
        config.sample = step->share;
        config.part_of_trial = true;
        config.drop = false;
        config.threads_most = 0; /* all sizes must be loaded with the same settings */
        config.adapt_batches = false;
    }
    int64_t start = sl_clock_ns();
    atomic_store(&drill->loading, true);
    sl_exit code = sl_load_run(&config);
    atomic_store(&drill->loading, false);
    double wall = sl_seconds_since(start);
    char path[600];
    snprintf(path, sizeof path, "%s/shardload.log", drill->work_directory);
    sl_log_open_file(path, NULL); /* the load has closed it; on failure only the terminal is left */
    read_phases(step, wall);
    read_series(step);
    step->documents = sl_look_amount(&step->load_record, "accounting.inserted", 0) +
                      sl_look_amount(&step->load_record, "accounting.alreadyThere", 0);
    step->text_bytes = sl_look_amount(&step->load_record, "accounting.textBytes", 0);
    return code;
}

/* ---- the queries ---- */

bool sl_drill_expected(const sl_drill *drill, const sl_query *query, bson_t *array) {
    /* Expected answers are those for all data, not for a sample. */
    return !sl_drill_sampled(drill) && sl_answer_expected(drill->config->answers, query, array);
}

/* Records whether the answer is correct; its time is the end of the query's first run. */
static void take_answer(sl_drill *drill, const sl_query_run *run, bool checked, double begun) {
    drill->checked = drill->checked || checked;
    drill->wrong = drill->wrong || run->answer == SL_ANSWER_WRONG;
    if (run->answer == SL_ANSWER_OK && !drill->correct) {
        drill->correct = true;
        drill->first_correct = begun + run->timings[0] / 1e3;
    }
}

static void log_query(const sl_query *query, const sl_query_run *run) {
    char seconds[SL_HUMAN_ROOM];
    sl_log_info("  query %s: %s, answer %s", query->name,
                sl_human_seconds(run->timings[0] / 1e3, seconds), sl_answer_text(run->answer));
    for (size_t i = 0;
         run->answer == SL_ANSWER_WRONG && i < run->differences.count && i < SL_DIFFERENCES_KEPT;
         i++)
        sl_log_error("query %s: %s", query->name, run->differences.text[i]);
}

static bool run_queries(sl_drill *drill, sl_drill_step *step, sl_error *error) {
    const sl_suite *suite = drill->config->suite;
    const sl_load_config *target = drill->config->load;
    double begun = sl_seconds_since(drill->start);
    bool exists, any = false;
    sl_error uncounted;
    step->runs = calloc(suite->count, sizeof *step->runs);
    if (!step->runs)
        return sl_error_memory(error, "running a query suite");
    for (; step->run_count < suite->count; step->run_count++) {
        sl_query *query = &suite->queries[step->run_count];
        sl_query_run *run = &step->runs[step->run_count];
        bson_t expected;
        bool checked = sl_drill_expected(drill, query, &expected);
        const sl_query_options options = {.database = target->database,
                                          .collection = step->collection,
                                          .repeat = sl_drill_repeat(drill),
                                          .limit = suite->limit,
                                          .expected = checked ? &expected : NULL};
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED,
                                "interrupted: the load was complete, but not every query was run");
        double start = sl_seconds_since(drill->start);
        if (!sl_query_execute(drill->connection, query, &options, run)) {
            sl_log_error(SL_LINES, run->error.message);
            drill->failed = true;
            drill->checked = drill->checked || checked;
            continue;
        }
        take_answer(drill, run, checked, start);
        if (!any && !checked)
            step->seconds[PHASE_QUERY] =
                run->timings[0] / 1e3 + (sl_drill_sampled(drill) ? 0 : start - begun);
        any = true;
        if (!sl_drill_sampled(drill))
            log_query(query, run);
    }
    if (drill->correct)
        step->seconds[PHASE_QUERY] = drill->first_correct - begun;
    else if (any && !drill->checked) /* no answer is expected: the first one counts */
        drill->first_correct = begun + step->seconds[PHASE_QUERY];
    /* For the report; stays 0 without the privilege to count. */
    sl_query_count_documents(drill->connection, target->database, step->collection, &step->stored,
                             &exists, &uncounted);
    return true;
}

/* ---- the step ---- */

static void log_step(const sl_drill_step *step) {
    char documents[SL_HUMAN_ROOM], line[300] = "";
    size_t used = 0;
    for (unsigned i = PHASE_PREPARE; i < PHASES && used < sizeof line; i++) {
        if (step->seconds[i] >= 0.0005)
            used += (size_t)snprintf(line + used, sizeof line - used, ", %s %.3f s",
                                     sl_drill_phases[i].name, step->seconds[i]);
    }
    sl_log_info("  %.3g %% of the blocks, %s documents%s", 100 * step->share,
                sl_human_count((uint64_t)step->documents, documents), line);
}

sl_exit sl_drill_run_step(sl_drill *drill, double share, const char *collection,
                          const char *work_directory) {
    sl_drill_step *step = &drill->steps[drill->step_count++];
    sl_error error = {0};
    *step = (sl_drill_step){.share = share};
    bson_init(&step->load_record);
    snprintf(step->collection, sizeof step->collection, "%s", collection);
    if (drill->step_count == 1)
        step->seconds[PHASE_START] = sl_seconds_since(drill->start);
    sl_exit code = load(drill, step, work_directory);
    if (code != SL_EXIT_OK && code != SL_EXIT_REJECTS)
        return code;
    drill->rejects = drill->rejects || code == SL_EXIT_REJECTS;
    if (!run_queries(drill, step, &error)) {
        sl_log_error(SL_LINES, error.message);
        return error.code;
    }
    if (sl_drill_sampled(drill))
        log_step(step);
    return SL_EXIT_OK;
}

void sl_drill_step_clear(sl_drill_step *step) {
    for (size_t i = 0; i < step->run_count; i++)
        sl_query_run_clear(&step->runs[i]);
    free(step->runs);
    bson_destroy(&step->load_record);
}
