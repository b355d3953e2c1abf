/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a drill: tables on the terminal, and reload.json. */
#include "drill.h"

#include <stdio.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text_table.h"

/* ---- tables ---- */

static double sum_of_phases(const sl_drill_step *step) {
    double sum = 0;
    for (unsigned i = 0; i < PHASES; i++)
        sum += step->seconds[i];
    return sum;
}

/* "12.3 s .. 14.5 s" */
static const char *interval(const sl_prediction *prediction, char out[80]) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    snprintf(out, 80, "%s .. %s", sl_human_seconds(prediction->low, low),
             sl_human_seconds(prediction->high, high));
    return out;
}

static void print_whole(const sl_drill *drill) {
    static const sl_text_column columns[] = {{"phase", .left = true, .least = 12},
                                             {"took", .least = 11, .unit = SL_UNIT_SECONDS},
                                             {"share", .least = 7},
                                             {0}};
    const sl_drill_step *whole = sl_drill_last(drill);
    sl_text_table *table = sl_text_table_create(columns);
    double sum = sum_of_phases(whole);
    for (unsigned i = 0; i < PHASES; i++) {
        sl_text_table_cell(table, "%s", sl_drill_phases[i].name);
        sl_text_table_number(table, whole->seconds[i]);
        sl_text_table_cell(table, "%.1f %%", sum > 0 ? 100 * whole->seconds[i] / sum : 0);
    }
    sl_text_table_cell(table, "total");
    sl_text_table_number(table, sum);
    sl_text_table_end_row(table);
    sl_text_table_log(table);
}

static void print_forecast(const sl_drill *drill) {
    static const sl_text_column columns[] = {{"phase", .left = true, .least = 12},
                                             {"sample", .least = 11, .unit = SL_UNIT_SECONDS},
                                             {"all data", .least = 11, .unit = SL_UNIT_SECONDS},
                                             {"share", .least = 7},
                                             {"between", .left = true},
                                             {0}};
    const sl_drill_step *sample = sl_drill_last(drill);
    double total = drill->total.seconds;
    char took[SL_HUMAN_ROOM], whole[SL_HUMAN_ROOM], range[80];
    sl_text_table *table = sl_text_table_create(columns);
    for (unsigned i = 0; i < PHASES; i++) {
        const sl_prediction *phase = &drill->phases[i];
        sl_text_table_cell(table, "%s", sl_drill_phases[i].name);
        sl_text_table_number(table, sample->seconds[i]);
        sl_text_table_number(table, phase->seconds);
        sl_text_table_cell(table, "%.1f %%", total > 0 ? 100 * phase->seconds / total : 0);
        sl_text_table_cell(table, "%s", interval(phase, range));
    }
    sl_text_table_cell(table, "total");
    sl_text_table_number(table, sum_of_phases(sample));
    sl_text_table_number(table, total);
    sl_text_table_cell(table, "%s", "");
    sl_text_table_cell(table, "%s", interval(&drill->total, range));
    sl_text_table_log(table);
    sl_log_info("  loads of the same size varied by %.1f %% (standard deviation of %u runs); the "
                "ranges are of 95 %%",
                100 * drill->variation.relative, 2 * drill->config->sample_runs);
    for (size_t i = 0; i < sample->run_count; i++) {
        if (sample->runs[i].count > 0)
            sl_log_info("  query %s: %s; with all data %s, between %s",
                        drill->config->suite->queries[i].name,
                        sl_human_seconds(sample->runs[i].sample.median / 1e3, took),
                        sl_human_seconds(drill->queries[i].seconds, whole),
                        interval(&drill->queries[i], range));
    }
}

static void print_first_answer(const sl_drill *drill) {
    char seconds[SL_HUMAN_ROOM], documents[SL_HUMAN_ROOM], range[80];
    if (drill->forecast)
        sl_log_info("first query answered, with all data (%s documents): after %s, between %s; "
                    "answers are not checked on a sample",
                    sl_human_count((uint64_t)drill->total_size.documents, documents),
                    sl_human_seconds(drill->total.seconds, seconds),
                    interval(&drill->total, range));
    else if (drill->correct)
        sl_log_info("first correct query: after %s",
                    sl_human_seconds(drill->first_correct, seconds));
    else if (drill->checked)
        sl_log_error("no query gave the expected answer");
    else if (drill->first_correct > 0)
        sl_log_info("first query answered: after %s; its answer was not checked (give --answers "
                    "FILE, or answers in the suite)",
                    sl_human_seconds(drill->first_correct, seconds));
    else
        sl_log_error("no query was answered");
}

static void print_objective(const sl_drill *drill) {
    char objective[SL_HUMAN_ROOM];
    if (drill->config->objective_seconds <= 0)
        return;
    sl_human_seconds(drill->config->objective_seconds, objective);
    switch (drill->objective) {
    case SL_OBJECTIVE_MET:
        sl_log_info("the objective of %s is met", objective);
        break;
    case SL_OBJECTIVE_NOT_MET:
        sl_log_error("the objective of %s is NOT met", objective);
        break;
    case SL_OBJECTIVE_UNKNOWN:
        sl_log_warning("the objective of %s may or may not be met: it lies within the error of the "
                       "prediction; give a larger --sample",
                       objective);
        break;
    }
}

void sl_drill_print(const sl_drill *drill) {
    sl_log_info("%s", "");
    if (drill->forecast)
        print_forecast(drill);
    else
        print_whole(drill);
    for (unsigned i = 0; i < drill->note_count; i++)
        sl_log_info("  note: %s", drill->notes[i]);
    print_first_answer(drill);
    print_objective(drill);
}

/* ---- reload.json ---- */

static double rounded(double seconds) {
    return (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
}

/* Copies the field `key` of the load's record into the drill's record. */
static void copy_field(const bson_t *load_record, const char *key, bson_t *record) {
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, load_record, key))
        bson_append_iter(record, key, -1, &iter);
}

static void append_prediction(bson_t *to, const sl_prediction *prediction) {
    BSON_APPEND_DOUBLE(to, "seconds", rounded(prediction->seconds));
    BSON_APPEND_DOUBLE(to, "low", rounded(prediction->low));
    BSON_APPEND_DOUBLE(to, "high", rounded(prediction->high));
}

static void append_phases(bson_t *record, const double *seconds) {
    bson_t array, item;
    BSON_APPEND_ARRAY_BEGIN(record, "phases", &array);
    for (uint32_t i = 0; i < PHASES; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "name", sl_drill_phases[i].name);
        BSON_APPEND_DOUBLE(&item, "seconds", rounded(seconds[i]));
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

static void append_predicted(const sl_drill *drill, bson_t *record) {
    bson_t section, array, item;
    char room[SL_ARRAY_KEY_ROOM];
    BSON_APPEND_DOCUMENT_BEGIN(record, "predicted", &section);
    BSON_APPEND_DOUBLE(&section, "documents", (double)(int64_t)drill->total_size.documents);
    BSON_APPEND_ARRAY_BEGIN(&section, "phases", &array);
    for (uint32_t i = 0; i < PHASES; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "name", sl_drill_phases[i].name);
        append_prediction(&item, &drill->phases[i]);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(&section, &array);
    append_prediction(&section, &drill->total);
    BSON_APPEND_DOUBLE(&section, "runVariation", drill->variation.relative);
    BSON_APPEND_ARRAY_BEGIN(&section, "queries", &array);
    for (uint32_t i = 0; i < drill->config->suite->count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "name", drill->config->suite->queries[i].name);
        append_prediction(&item, &drill->queries[i]);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(&section, &array);
    BSON_APPEND_ARRAY_BEGIN(&section, "notes", &array);
    for (uint32_t i = 0; i < drill->note_count; i++)
        bson_append_utf8(&array, sl_array_key(i, room), -1, drill->notes[i], -1);
    bson_append_array_end(&section, &array);
    bson_append_document_end(record, &section);
}

/* Appends the steps that the prediction is based on. */
static void append_steps(const sl_drill *drill, bson_t *record) {
    bson_t array, item;
    BSON_APPEND_ARRAY_BEGIN(record, "steps", &array);
    for (uint32_t i = 0; i < drill->step_count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_DOUBLE(&item, "share", drill->steps[i].share);
        BSON_APPEND_INT64(&item, "documents", (int64_t)drill->steps[i].documents);
        BSON_APPEND_DOUBLE(&item, "loadDeviation", drill->steps[i].load_deviation);
        append_phases(&item, drill->steps[i].seconds);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

static bool append_queries(const sl_drill *drill, bson_t *record) {
    const sl_drill_step *step = sl_drill_last(drill);
    const sl_query_options options = {.database = drill->config->load->database,
                                      .collection = step->collection,
                                      .repeat = sl_drill_repeat(drill)};
    bson_t queries;
    bool ok = BSON_APPEND_ARRAY_BEGIN(record, "queries", &queries);
    for (size_t i = 0; ok && i < step->run_count; i++) {
        const sl_query_outcome outcome = {.suite = drill->config->suite,
                                          .query = &drill->config->suite->queries[i],
                                          .options = &options,
                                          .run = &step->runs[i],
                                          .documents = step->stored,
                                          .documents_known = step->stored > 0};
        ok = sl_report_append(&queries, &outcome);
    }
    return ok && bson_append_array_end(record, &queries);
}

bool sl_drill_record(const sl_drill *drill, sl_exit code, bson_t *record) {
    const sl_load_config *load = drill->config->load;
    sl_record_head(record, "reload", load->program_version, drill->wall_start, load->options);
    if (drill->step_count > 0)
        copy_field(&sl_drill_last(drill)->load_record, "server", record);
    BSON_APPEND_DOUBLE(record, "sample", load->sample);
    BSON_APPEND_BOOL(record, "ended", drill->judged);
    if (drill->config->objective_seconds > 0) {
        BSON_APPEND_DOUBLE(record, "objectiveSeconds", drill->config->objective_seconds);
        if (drill->judged)
            BSON_APPEND_UTF8(record, "objectiveMet", sl_objective_text(drill->objective));
    }
    bool ok = true;
    if (drill->step_count > 0) {
        append_phases(record, sl_drill_last(drill)->seconds);
        if (drill->forecast)
            append_predicted(drill, record);
        if (sl_drill_sampled(drill))
            append_steps(drill, record);
        if (!sl_drill_sampled(drill) && drill->first_correct > 0)
            BSON_APPEND_DOUBLE(record,
                               drill->correct ? "firstCorrectQuerySeconds" : "firstQuerySeconds",
                               rounded(drill->first_correct));
        BSON_APPEND_BOOL(record, "answersChecked", drill->checked);
        ok = append_queries(drill, record);
        copy_field(&sl_drill_last(drill)->load_record, "accounting", record);
        ok = ok && BSON_APPEND_DOCUMENT(record, "load", &sl_drill_last(drill)->load_record);
    }
    sl_record_tail(record, code);
    return ok;
}
