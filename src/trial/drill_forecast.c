/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the times for all data from the steps of a sampled drill.
 *
 * The first step warms the server up; only its phases that do not grow with the documents are used.
 * The other steps, with a quarter of the sample and with the full sample in turn, give each phase a
 * curve, and the variation between runs (extrapolate.h). Effects that a few seconds cannot show are
 * part of the interval (STEEPNESS), or stated in a note. */
#include "drill.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/document_id.h"
#include "util/phase_names.h"
#include "util/text.h"

/* Standard deviations of a timing when no better value is known: relative, and in seconds. */
#define TIMING_DEVIATION 0.05
#define LOAD_DEVIATION 0.03
#define CLOCK_DEVIATION 0.01
/* A larger collection takes more time per document: deeper trees, less locality, checkpoints,
 * eviction, growing files. These are the prior values of that growth; the steps of a sample improve
 * them if the steps are long enough. See docs/reload.md. */
#define STEEPNESS 0.04
#define STEEPNESS_DEVIATION 0.05
#define GROWS_LINEARLY(fixed)                                                                      \
    { SL_GROWS_LINEARLY, fixed, STEEPNESS, STEEPNESS_DEVIATION }
#define GROWS_AS_SORTING(fixed)                                                                    \
    { SL_GROWS_AS_SORTING, fixed, STEEPNESS, STEEPNESS_DEVIATION }

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
    [PHASE_ACCOUNT] = {"account", {SL_GROWS_NOT}},
    [PHASE_QUERY] = {"query", GROWS_LINEARLY(0.1)},
};

void sl_drill_note(sl_drill *drill, const char *format, ...) {
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
        sum.splittable = sum.splittable && sl_look_truth(&walk.item, "cut") == 1;
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
    double inflating = figure(&sample->load_record, "workerSeconds.inflating");
    double sending = figure(&sample->load_record, "workerSeconds.parsing") +
                     figure(&sample->load_record, "workerSeconds.server");
    if (inflating <= 0 || sample->documents <= 0)
        return;
    sending *= drill->total_size.documents / sample->documents;
    load->seconds = fmax(load->seconds, sending / drill->config->load->threads);
    load->low = fmin(load->low, load->seconds);
    load->high = fmax(load->high, inflating + sending);
    sl_drill_note(drill,
                  "compressed sources are read completely for a sample, too (%.1f s of inflating): "
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
        figure(&sl_drill_last(drill)->load_record, "workerSeconds.inflating") > 0)
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

static void forecast_phases(sl_drill *drill) {
    double sampled = 0;
    for (unsigned i = 0; i < PHASES; i++)
        forecast_phase(drill, i);
    drill->total = sl_prediction_sum(drill->phases, PHASES);
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
        sl_drill_note(drill,
                      "the sample was loaded in %.1f s, so random variation is large: a larger "
                      "--sample gives a better prediction",
                      load);
    if (sample->text_bytes > 0 && blocks < SAMPLE_BLOCKS_LEAST)
        sl_drill_note(drill,
                      "the sample has only %.0f blocks of 1 MiB: it may not represent all data",
                      ceil(blocks));
    double checkpoints = drill->phases[PHASE_LOAD].seconds / CHECKPOINT_SECONDS;
    if (load < CHECKPOINT_SECONDS && checkpoints >= 1)
        sl_drill_note(
            drill,
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
        sl_drill_note(drill,
                      "all data (%s) do not fit into the server's cache (%s), but the sample does: "
                      "indexes, verification and queries may take longer than predicted",
                      sl_human_bytes(whole, a), sl_human_bytes((double)engine.cache_bytes, b));
    if (drill->config->load->rate_limit > 0)
        sl_drill_note(drill, "the load of all data is predicted with the same --rate-limit");
}

bool sl_drill_forecast(sl_drill *drill, sl_error *error) {
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
