/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a drill from start to end.
 *
 * A full drill runs one load into the target, then the queries. The load has its journal in the
 * drill's work directory and logs its own progress.
 *
 * A sampled drill loads into temporary collections beside the target, and runs the queries after
 * each load: once to warm the server up, then a quarter of the sample and the full sample in turn,
 * several times, which shows how much runs of the same size vary. Each collection is dropped after
 * its queries; the end of sl_reload_run drops a collection that is left after an error. After a
 * second Ctrl-C the signal thread drops the collection itself, once the running load has stopped
 * sending (throwaway.h). If that fails, it logs the collection's name, and the next drill drops the
 * collection. */
#include "reload_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "job/load_config.h"
#include "report/json.h"
#include "report/lookup.h"
#include "report/report.h"
#include "util/clock.h"
#include "util/document_id.h"
#include "util/interrupt.h"
#include "util/load_counts.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

/* ---- one step ----
 *
 * One step of a drill: a load, whose record contains the times of its phases, and then every query
 * of the suite, without warm-up runs. */

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
    const sl_load_config *user_config = drill->config->load;
    sl_load_config config = *user_config;
    if (drill->config->sampled) { /* all sizes are loaded with the same settings */
        config = sl_load_as_trial(user_config, &drill->target, step->collection, work_directory,
                                  step->share, &step->load_record);
        config.skip_other = user_config->skip_other;
        config.progress = user_config->progress;
        config.drop = false;
    }
    config.run_record = &step->load_record;
    config.collection = step->collection;
    config.work_directory = work_directory;
    config.report = NULL; /* the drill writes these */
    config.html = NULL;
    config.completed_by = "`shardload load` with the same sources and options";
    int64_t start = sl_clock_ns();
    atomic_store(&drill->loading, true);
    sl_exit code = sl_load_run(&config);
    atomic_store(&drill->loading, false);
    double wall = sl_seconds_since(start);
    char path[600];
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, drill->work_directory);
    sl_log_open_file(path, NULL); /* the load has closed it; on failure only the terminal is left */
    read_phases(step, wall);
    read_series(step);
    step->documents = sl_look_amount(&step->load_record, "accounting.inserted", 0) +
                      sl_look_amount(&step->load_record, "accounting.alreadyStored", 0);
    step->text_bytes = sl_look_amount(&step->load_record, "accounting.textBytes", 0);
    return code;
}

/* ---- the queries ---- */

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
    sl_log_result("  query %s: %s, answer %s", query->name,
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
        /* Expected answers are those for all data, not for a sample. */
        bool checked =
            !drill->config->sampled && sl_answer_expected(drill->config->answers, query, &expected);
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
                run->timings[0] / 1e3 + (drill->config->sampled ? 0 : start - begun);
        any = true;
        if (!drill->config->sampled)
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
    char line[300] = "";
    size_t used = 0;
    for (unsigned i = PHASE_PREPARE; i < PHASES && used < sizeof line; i++) {
        if (step->seconds[i] >= 0.0005)
            used += (size_t)snprintf(line + used, sizeof line - used, ", %s %.3f s",
                                     sl_drill_phases[i].name, step->seconds[i]);
    }
    sl_log_info("  %.3g %% of the blocks, %s%s", 100 * step->share,
                sl_plural((uint64_t)step->documents, "document"), line);
}

/* Runs the load of a step, then its queries. Increments drill->step_count first. Failures have been
 * logged; returns the exit code. */
static sl_exit run_step(sl_drill *drill, double share, const char *collection,
                        const char *work_directory) {
    sl_drill_step *step = &drill->steps[drill->step_count++];
    sl_error error = {0};
    *step = (sl_drill_step){.share = share};
    bson_init(&step->load_record);
    snprintf(step->collection, sizeof step->collection, "%s", collection);
    if (drill->step_count == 1)
        step->seconds[PHASE_START] = sl_seconds_since(drill->start);
    sl_exit code = load(drill, step, work_directory);
    if (!sl_exit_is_complete(code))
        return code;
    drill->rejects = drill->rejects || code == SL_EXIT_REJECTS;
    if (!run_queries(drill, step, &error)) {
        sl_log_error(SL_LINES, error.message);
        return error.code;
    }
    if (drill->config->sampled)
        log_step(step);
    return SL_EXIT_OK;
}

/* ---- the forecast ----
 *
 * Predicts the times for all data from the steps of a sampled drill.
 *
 * The first step warms the server up; only its phases that do not grow with the documents are used.
 * The other steps, with a quarter of the sample and with the full sample in turn, give each phase a
 * curve, and the variation between runs (extrapolate.h). Effects that a few seconds cannot show are
 * part of the interval (SL_STEEPNESS), or stated in a note. */

/* Standard deviations of a timing when no better value is known: relative, and in seconds. */
#define TIMING_DEVIATION 0.05
#define LOAD_DEVIATION 0.03
#define CLOCK_DEVIATION 0.01
#define GROWS_LINEARLY(fixed)                                                                      \
    { SL_GROWS_LINEARLY, fixed, SL_STEEPNESS, SL_STEEPNESS_DEVIATION }
#define GROWS_AS_SORTING(fixed)                                                                    \
    { SL_GROWS_AS_SORTING, fixed, SL_STEEPNESS, SL_STEEPNESS_DEVIATION }

#define SAMPLE_SECONDS_LEAST 5.0
#define SAMPLE_BLOCKS_LEAST 40.0
#define CHECKPOINT_SECONDS 60.0

const sl_phase_row sl_drill_phases[PHASES] = {
    [PHASE_START] = {"start", {SL_GROWS_NOT}},
    [PHASE_SOURCES] = {SL_PHASE_SOURCES, {SL_GROWS_NOT}},
    [PHASE_CONNECT] = {SL_PHASE_CONNECT, {SL_GROWS_NOT}},
    [PHASE_PREPARE] = {SL_PHASE_PREPARE, {SL_GROWS_NOT}}, /* as many ranges as for all data */
    [PHASE_LOAD] = {SL_PHASE_LOAD, GROWS_LINEARLY(0.1)},
    [PHASE_INDEXES] = {SL_PHASE_INDEXES, GROWS_AS_SORTING(0.1)},
    [PHASE_BALANCER] = {SL_PHASE_BALANCER, {SL_GROWS_NOT}},
    [PHASE_VERIFY] = {SL_PHASE_VERIFY, GROWS_LINEARLY(0.1)},
    [PHASE_ACCOUNT] = {"other", {SL_GROWS_NOT}},
    [PHASE_QUERY] = {"query", GROWS_LINEARLY(0.1)},
};

static void add_note(sl_drill *drill, const char *format, ...) {
    if (drill->note_count == sizeof drill->notes / sizeof drill->notes[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(drill->notes[drill->note_count++], sizeof drill->notes[0], format, arguments);
    va_end(arguments);
}

static double figure(const bson_t *load_record, const char *path) {
    return sl_look_amount(load_record, path, 0);
}

/* Totals of the sources in the record of a load. */
typedef struct source_sums {
    double records; /* of generated records */
    double stored_bytes;
    bool splittable; /* no source is compressed: stored bytes are bytes of text */
} source_sums;

static source_sums sum_of_sources(const bson_t *load_record) {
    source_sums sum = {.splittable = true};
    for (sl_walk walk = sl_walk_start(load_record, "sources"); sl_walk_next(&walk);) {
        if (sl_look_truth(&walk.item, "leftOut") == 1)
            continue;
        sum.records += figure(&walk.item, "records");
        sum.stored_bytes += figure(&walk.item, "storedBytes");
        sum.splittable = sum.splittable && sl_look_truth(&walk.item, "splittable") == 1;
    }
    return sum;
}

/* The number of documents in all sources. For generated records it is exact. For plain files it
 * follows from their bytes and the bytes that the sample has read. For compressed text only the
 * sample's share of the blocks is known, to one or two blocks. */
static sl_size size_of_all_sources(const sl_drill_step *sample) {
    const source_sums sources = sum_of_sources(&sample->load_record);
    if (sources.records > 0)
        return (sl_size){sources.records, 0};
    double blocks = fmax(sample->text_bytes / (double)SL_BLOCK_BYTES, 1);
    double by_share = sample->documents / sample->share;
    if (sources.splittable && sample->text_bytes > 0)
        return (sl_size){sample->documents * sources.stored_bytes / sample->text_bytes,
                         0.002 * by_share};
    return (sl_size){by_share, by_share * 1.5 / blocks};
}

static sl_timing timing_of(const sl_drill_step *step, double seconds, double relative) {
    return (sl_timing){step->documents, seconds, hypot(relative * seconds, CLOCK_DEVIATION)};
}

/* Widens the prediction of the load if sources are compressed. They are inflated completely for any
 * sample, so the fixed part of the load is unknown, as is how much of the sending overlaps with the
 * inflating: at best all threads send at the same time, at worst one after the other after the
 * inflating. */
static void allow_for_inflating(sl_drill *drill, sl_prediction *load) {
    const sl_drill_step *sample = sl_drill_last(drill);
    double inflating = figure(&sample->load_record, "workerSeconds.unpacking");
    double sending = figure(&sample->load_record, "workerSeconds.parsing") +
                     figure(&sample->load_record, "workerSeconds.server");
    if (inflating <= 0 || sample->documents <= 0)
        return;
    sending *= drill->total_size.documents / sample->documents;
    load->seconds = fmax(load->seconds, sending / drill->config->load->threads);
    load->low = fmin(load->low, load->seconds);
    load->high = fmax(load->high, inflating + sending);
    add_note(drill,
             "compressed sources are read completely for a sample, too (%.1f s of unpacking): "
             "how much of the sending overlaps with that is not known",
             inflating);
}

/* The standard deviation of a query's runs, relative to their median. */
static double scatter_of(const sl_query_run *run) {
    return run->count > 1 && run->sample.median > 0 ? run->sample.deviation / run->sample.median
                                                    : 0;
}

/* Raises the lower bound: all data take no less time than the sample. */
static void raise_low(sl_prediction *made, double sample_seconds) {
    made->low = fmax(made->low, fmin(sample_seconds, made->seconds));
}

static void forecast_phase(sl_drill *drill, unsigned phase) {
    sl_growth_model model = sl_drill_phases[phase].model;
    bool grows = model.growth != SL_GROWS_NOT;
    sl_timing timings[STEPS_MAX] = {{0}};
    size_t count = 0;
    bool idle = true; /* the phase did nothing: no index was requested */
    for (size_t i = grows && drill->step_count > 1; i < drill->step_count; i++) {
        const sl_drill_step *step = &drill->steps[i];
        double relative =
            phase == PHASE_LOAD ? hypot(LOAD_DEVIATION, step->load_deviation) : TIMING_DEVIATION;
        idle = idle && step->seconds[phase] < 0.001;
        if (phase == PHASE_QUERY)
            relative = hypot(relative, scatter_of(&step->runs[0]));
        if (phase != PHASE_START || i == 0)
            timings[count++] = timing_of(step, step->seconds[phase], relative);
    }
    if (phase == PHASE_LOAD &&
        figure(&sl_drill_last(drill)->load_record, "workerSeconds.unpacking") > 0)
        model.fixed_deviation = INFINITY;
    sl_prediction *made = &drill->phases[phase];
    if (grows && idle)
        count = 0;
    *made = sl_extrapolate(&model, timings, count, drill->total_size);
    if (phase == PHASE_LOAD) {
        drill->variation = sl_variation_of(timings, count);
        allow_for_inflating(drill, made);
    }
}

/* How much the total of all phases that grow with the documents varies between runs of a size. */
static sl_variation variation_of_sums(const sl_drill *drill) {
    sl_timing sums[STEPS_MAX] = {{0}};
    for (size_t i = 1; i < drill->step_count; i++) {
        sums[i - 1].size = drill->steps[i].documents;
        for (unsigned k = 0; k < PHASES; k++)
            sums[i - 1].seconds +=
                sl_drill_phases[k].model.growth != SL_GROWS_NOT ? drill->steps[i].seconds[k] : 0;
    }
    return sl_variation_of(sums, drill->step_count - 1);
}

static void forecast_phases(sl_drill *drill) {
    double sampled = 0;
    for (unsigned i = 0; i < PHASES; i++)
        forecast_phase(drill, i);
    drill->total = sl_prediction_sum(drill->phases, PHASES, variation_of_sums(drill));
    for (unsigned i = 0; i < PHASES; i++) {
        double least = sl_drill_last(drill)->seconds[i];
        sampled += least;
        if (sl_drill_phases[i].model.growth != SL_GROWS_NOT)
            raise_low(&drill->phases[i], least);
    }
    raise_low(&drill->total, sampled);
}

static void forecast_query(sl_drill *drill, size_t query) {
    sl_timing timings[STEPS_MAX] = {{0}};
    size_t count = 0;
    for (size_t i = drill->step_count > 1; i < drill->step_count; i++) {
        const sl_drill_step *step = &drill->steps[i];
        if (step->runs[query].count > 0)
            timings[count++] = timing_of(step, step->runs[query].timings[0] / 1e3,
                                         hypot(TIMING_DEVIATION, scatter_of(&step->runs[query])));
    }
    drill->queries[query] =
        sl_extrapolate(&sl_drill_phases[PHASE_QUERY].model, timings, count, drill->total_size);
    if (count > 0)
        raise_low(&drill->queries[query], timings[count - 1].seconds);
}

static void take_notes(sl_drill *drill) {
    const sl_drill_step *sample = sl_drill_last(drill);
    double load = sample->seconds[PHASE_LOAD];
    double blocks = sample->text_bytes / (double)SL_BLOCK_BYTES;
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (load < SAMPLE_SECONDS_LEAST)
        add_note(drill,
                 "the sample was loaded in %.1f s, so random variation is large: a larger "
                 "--sample gives a better prediction",
                 load);
    if (sample->text_bytes > 0 && blocks < SAMPLE_BLOCKS_LEAST)
        add_note(drill, "the sample has only %.0f blocks of 1 MiB: it may not represent all data",
                 ceil(blocks));
    double checkpoints = drill->phases[PHASE_LOAD].seconds / CHECKPOINT_SECONDS;
    if (load < CHECKPOINT_SECONDS && checkpoints >= 1)
        add_note(drill,
                 "the sample was loaded between two checkpoints of the servers; during the load "
                 "of all data there will be about %.0f checkpoints",
                 checkpoints);
    sl_storage_engine engine;
    sl_storage_engine_read(drill->connection, &engine);
    double bytes = figure(&sample->load_record, "accounting.bsonBytes");
    double whole =
        sample->documents > 0 ? bytes * drill->total_size.documents / sample->documents : 0;
    double cache = 0.8 * (double)engine.cache_bytes; /* eviction starts at 80 % */
    if (cache > 0 && whole > cache && bytes < cache)
        add_note(drill,
                 "all data (%s) do not fit into the server's cache (%s), but the sample does: "
                 "indexes, verification and queries may take longer than predicted",
                 sl_human_bytes(whole, a), sl_human_bytes((double)engine.cache_bytes, b));
    if (drill->config->load->rate_limit > 0)
        add_note(drill, "the load of all data is predicted with the same --rate-limit");
}

/* Predicts the times for all sources from the steps of a sampled drill. */
static bool forecast_times(sl_drill *drill, sl_error *error) {
    size_t count = drill->config->suite->count;
    drill->queries = calloc(count + 1, sizeof *drill->queries);
    if (!drill->queries)
        return sl_error_memory(error, "predicting");
    drill->total_size = size_of_all_sources(sl_drill_last(drill));
    forecast_phases(drill);
    for (size_t i = 0; i < count; i++)
        forecast_query(drill, i);
    take_notes(drill);
    drill->forecast = true;
    return true;
}

/* ---- the command ---- */

#define KIND "drill"
#define WARM_UP_SHARE (1.0 / 16) /* of the sample */
#define SMALL_SHARE (1.0 / 4)

/* ---- interrupts ---- */

static bool on_first_signal(void *context) {
    sl_drill *drill = context;
    if (!drill->connection) /* it may be waiting for a server */
        return true;
    if (drill->config->sampled)
        sl_log_warning("stopping, and dropping the temporary collection; press Ctrl-C again to "
                       "stop at once");
    else if (!atomic_load(&drill->loading))
        sl_log_warning("stopping after the running query; press Ctrl-C again to stop at once");
    return false;
}

static void on_second_signal(void *context) {
    sl_drill *drill = context;
    sl_error error = {0};
    if (!sl_throwaway_drop_at_once(&drill->throwaway, &error))
        sl_log_error(SL_LINES, error.message);
    if (drill->config->sampled || !atomic_load(&drill->loading)) /* otherwise the load has logged
                                                                     it */
        sl_log_warning("stopped at once");
}

/* ---- the beginning ---- */

static bool make_work_directory(sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    size_t room = sizeof drill->work_directory;
    bool made = false, ok = true;
    if (load->work_directory) {
        if (strlen(load->work_directory) >= room - 20)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                room - 21);
        if (!sl_outputs_check_folder(load->work_directory, error))
            return false;
        strcpy(drill->work_directory, load->work_directory);
        ok = sl_private_folder_make(drill->work_directory, NULL, error);
    }
    char name[300], path[600];
    snprintf(name, sizeof name, "reload-%s.%s", load->database, load->collection);
    ok = ok && (load->work_directory ||
                sl_private_folder_make_named(name, drill->work_directory,
                                             sizeof drill->work_directory, &made, error));
    snprintf(path, sizeof path, "%s/" SL_WORK_RELOAD, drill->work_directory);
    if (!ok)
        return sl_error_prefix(error, "name another directory with --work-dir");
    if (!sl_private_file_may_replace(path, error))
        return false;
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, drill->work_directory);
    return sl_log_open_file(path, error) &&
           (!load->report || sl_private_file_may_replace(load->report, error)) &&
           (!load->html || sl_private_file_may_replace(load->html, error));
}

static bool is_pipe(const char *path) {
    struct stat facts;
    return strcmp(path, "-") == 0 || (stat(path, &facts) == 0 && S_ISFIFO(facts.st_mode));
}

/* Refuses pipes for a sampled drill, which reads its sources several times. */
static bool check_sources(const sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    for (size_t i = 0; drill->config->sampled && i < load->path_count; i++) {
        if (is_pipe(load->paths[i]))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s is a pipe: with --sample sources are read several times; give "
                                "files, or leave --sample out",
                                load->paths[i]);
    }
    return true;
}

/* What a load would refuse is refused before anything is dropped. A source without documents would
 * recover nothing. Sources that are pipes are read once, by the load. */
static bool decide(sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    for (size_t i = 0; i < load->path_count; i++) {
        if (is_pipe(load->paths[i]))
            return true;
    }
    return sl_trial_target_decide(load, &drill->target, error) &&
           (!drill->target.empty ||
            sl_error_set(error, SL_EXIT_SOURCE,
                         "the sources hold no documents: a reload would recover nothing")) &&
           (!drill->config->sampled ||
            sl_disks_have_room(drill->connection, load->sample * drill->target.bson_bytes, error));
}

/* A full drill needs an empty target: no collection. */
static bool check_target(const sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    const sl_target target = {.database = load->database, .collection = load->collection};
    bool exists;
    if (drill->config->sampled || load->drop)
        return true;
    if (!sl_target_exists(drill->connection, &target, &exists, error))
        return false;
    return !exists || sl_error_set(error, SL_EXIT_USAGE,
                                   "%s.%s already exists, and a reload needs an empty target: "
                                   "--drop drops it; --sample "
                                   "5%% does not touch it",
                                   load->database, load->collection);
}

static bool begin(sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    if (!check_sources(drill, error))
        return false;
    drill->connection = sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, error);
    return drill->connection && decide(drill, error) && check_target(drill, error) &&
           sl_throwaway_begin(drill->connection, load->database, load->collection, KIND,
                              drill->config->sampled, error) &&
           make_work_directory(drill, error);
}

/* ---- the drills ---- */

static sl_exit report_error(const sl_error *error) {
    sl_log_error(SL_LINES, error->message);
    return error->code;
}

static sl_exit drill_size(sl_drill *drill, unsigned number, double share, const char *folder) {
    const sl_load_config *load = drill->config->load;
    char name[SL_THROWAWAY_ROOM], path[600];
    sl_error error = {0};
    if (sl_interrupt_requested())
        return SL_EXIT_INTERRUPTED;
    if (!sl_throwaway_name(load->database, load->collection, KIND, number, name, &error))
        return report_error(&error);
    /* A journal of an earlier, interrupted drill belongs to a collection that no longer exists. */
    snprintf(path, sizeof path, "%s/%s/" SL_WORK_JOURNAL, drill->work_directory, folder);
    sl_private_file_remove(path);
    snprintf(path, sizeof path, "%s/%s", drill->work_directory, folder);
    sl_throwaway_register(&drill->throwaway, drill->connection, load->database, name);
    sl_exit code = run_step(drill, share, name, path);
    if (!sl_throwaway_drop(&drill->throwaway, &error)) {
        report_error(&error);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    return code;
}

/* Only a drill that recovered documents, and in which a query was answered, shows anything about
 * the objective. */
static bool has_evidence(const sl_drill *drill) {
    const sl_drill_step *last = sl_drill_last(drill);
    bool answered = false;
    for (size_t i = 0; i < last->run_count; i++)
        answered = answered || last->runs[i].count > 0;
    return last->documents > 0 && answered;
}

static sl_exit drill_sample(sl_drill *drill) {
    double share = drill->config->load->sample;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_log_info("a sample of %.3g %%, in temporary collections beside %s.%s; the first load is to "
                "warm up",
                100 * share, drill->config->load->database, drill->config->load->collection);
    code = drill_size(drill, 1, share * WARM_UP_SHARE, "warm-up");
    for (unsigned i = 0; code == SL_EXIT_OK && i < 2 * drill->config->sample_runs; i++) {
        char folder[20];
        bool full = i % 2 == 1;
        snprintf(folder, sizeof folder, "%s-%u", full ? "sample" : "small", i / 2 + 1);
        code = drill_size(drill, i + 2, share * (full ? 1 : SMALL_SHARE), folder);
    }
    if (code == SL_EXIT_OK && sl_drill_last(drill)->documents == 0)
        sl_error_set(&error, SL_EXIT_SOURCE,
                     "there is no document in the sample: give a larger --sample");
    if (code == SL_EXIT_OK &&
        (error.code || (has_evidence(drill) && !forecast_times(drill, &error))))
        code = report_error(&error);
    return code;
}

/* ---- the end ---- */

static void judge(sl_drill *drill) {
    double objective = drill->config->objective_seconds;
    drill->judged = true;
    if (!has_evidence(drill)) {
        drill->objective = SL_OBJECTIVE_UNSHOWN;
        return;
    }
    if (drill->forecast) {
        drill->objective = sl_objective_of(&drill->total, objective);
        return;
    }
    bool reached = drill->correct || (!drill->checked && drill->first_correct > 0);
    drill->objective =
        reached && drill->first_correct <= objective ? SL_OBJECTIVE_MET : SL_OBJECTIVE_NOT_MET;
}

static sl_exit code_of(const sl_drill *drill) {
    if (drill->failed)
        return SL_EXIT_CLUSTER;
    if (sl_drill_last(drill)->documents == 0)
        return SL_EXIT_SOURCE;
    if (drill->wrong ||
        (drill->config->objective_seconds > 0 && drill->objective == SL_OBJECTIVE_NOT_MET))
        return SL_EXIT_VERIFICATION;
    return drill->rejects ? SL_EXIT_REJECTS : SL_EXIT_OK;
}

static bool write_record(const sl_drill *drill, sl_exit code, sl_error *error) {
    const sl_reload_config *config = drill->config;
    bson_t record = BSON_INITIALIZER;
    char path[600];
    snprintf(path, sizeof path, "%s/" SL_WORK_RELOAD, drill->work_directory);
    bool ok = sl_drill_record(drill, code, &record) || sl_error_memory(error, "making the record");
    ok = ok && sl_json_write_file(path, &record, error);
    if (ok)
        sl_log_result("reload record: %s", path);
    ok = ok && (!config->load->report || sl_json_write_file(config->load->report, &record, error));
    if (ok && config->load->html) {
        const bson_t *const records[] = {&record};
        ok = sl_report_html_write(records, 1, NULL, config->load->html, error);
    }
    if (ok && config->last)
        ok = sl_drill_compare(config->last, &record, error);
    bson_destroy(&record);
    return ok;
}

sl_exit sl_reload_run(const sl_reload_config *config) {
    sl_drill drill = {.config = config, .start = sl_clock_ns(), .wall_start = sl_wall_clock_ms()};
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_throwaway_init(&drill.throwaway);
    bool listening = (!config->last || sl_drill_check_last(config->last, &error)) &&
                     sl_interrupt_listen(on_first_signal, on_second_signal, &drill, &error);
    bool begun = listening && begin(&drill, &error);
    if (!begun)
        code = report_error(&error);
    if (begun)
        code = drill.config->sampled
                   ? drill_sample(&drill)
                   : run_step(&drill, 1, config->load->collection, drill.work_directory);
    if (begun && code == SL_EXIT_OK) {
        judge(&drill);
        code = code_of(&drill);
        sl_drill_print(&drill);
    } else if (begun && code == SL_EXIT_INTERRUPTED && drill.config->sampled) {
        sl_log_warning("interrupted; the target was not touched");
    }
    if (begun && !write_record(&drill, code, &error)) {
        report_error(&error);
        code = sl_exit_is_complete(code) ? error.code : code;
    }
    sl_error removing = {0};
    if (drill.connection && !sl_throwaway_drop(&drill.throwaway, &removing))
        report_error(&removing);
    if (listening)
        sl_interrupt_stop_listening();
    for (size_t i = 0; i < drill.step_count; i++) {
        for (size_t k = 0; k < drill.steps[i].run_count; k++)
            sl_query_run_clear(&drill.steps[i].runs[k]);
        free(drill.steps[i].runs);
        bson_destroy(&drill.steps[i].load_record);
    }
    free(drill.queries);
    sl_throwaway_clear(&drill.throwaway);
    sl_trial_target_clear(&drill.target);
    sl_connection_close(drill.connection);
    sl_log_close_file();
    return code;
}
