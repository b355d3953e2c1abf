/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a drill: tables on the terminal, reload.json, and the comparison with an earlier
 * drill. */
#include "reload_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/lookup.h"
#include "report/run_record.h"
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
    sl_log_result("  loads of the same size varied by %.1f %% (standard deviation of %u runs); the "
                  "ranges are of 95 %%",
                  100 * drill->variation.relative, 2 * drill->config->sample_runs);
    for (size_t i = 0; i < sample->run_count; i++) {
        if (sample->runs[i].count > 0)
            sl_log_result("  query %s: %s; with all data %s, between %s",
                          drill->config->suite->queries[i].name,
                          sl_human_seconds(sample->runs[i].sample.median / 1e3, took),
                          sl_human_seconds(drill->queries[i].seconds, whole),
                          interval(&drill->queries[i], range));
    }
}

static void print_first_answer(const sl_drill *drill) {
    char seconds[SL_HUMAN_ROOM], documents[SL_HUMAN_ROOM], range[80];
    if (drill->objective == SL_OBJECTIVE_UNSHOWN)
        sl_log_error("%s", sl_drill_last(drill)->documents > 0
                               ? "no query was answered"
                               : "the sources hold no documents: nothing was recovered");
    else if (drill->forecast)
        sl_log_result("first query answered, with all data (%s documents): after %s, between %s; "
                      "answers are not checked on a sample",
                      sl_human_count((uint64_t)drill->total_size.documents, documents),
                      sl_human_seconds(drill->total.seconds, seconds),
                      interval(&drill->total, range));
    else if (drill->correct)
        sl_log_result("first correct query: after %s",
                      sl_human_seconds(drill->first_correct, seconds));
    else if (drill->checked)
        sl_log_error("no query gave the expected answer");
    else
        sl_log_result("first query answered: after %s; its answer was not checked (give --answers "
                      "FILE, or answers in the suite)",
                      sl_human_seconds(drill->first_correct, seconds));
}

static void print_objective(const sl_drill *drill) {
    char objective[SL_HUMAN_ROOM];
    if (drill->config->objective_seconds <= 0)
        return;
    sl_human_seconds(drill->config->objective_seconds, objective);
    switch (drill->objective) {
    case SL_OBJECTIVE_MET:
        sl_log_result("the recovery time objective of %s is met", objective);
        break;
    case SL_OBJECTIVE_NOT_MET:
        sl_log_error("the recovery time objective of %s is NOT met", objective);
        break;
    case SL_OBJECTIVE_UNKNOWN:
        sl_log_warning("the recovery time objective of %s may or may not be met: it lies within "
                       "the error of the prediction; give a larger --sample",
                       objective);
        break;
    case SL_OBJECTIVE_UNSHOWN:
        sl_log_error("this reload does not show whether the recovery time objective of %s is met",
                     objective);
        break;
    }
}

void sl_drill_print(const sl_drill *drill) {
    sl_log_result("%s", "");
    if (drill->forecast)
        print_forecast(drill);
    else
        print_whole(drill);
    for (unsigned i = 0; i < drill->note_count; i++)
        sl_log_result("  note: %s", drill->notes[i]);
    print_first_answer(drill);
    print_objective(drill);
}

/* ---- reload.json ---- */

/* Copies the field `key` of the load's record into the drill's record. */
static void copy_field(const bson_t *load_record, const char *key, bson_t *record) {
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, load_record, key))
        bson_append_iter(record, key, -1, &iter);
}

static void append_prediction(bson_t *to, const sl_prediction *prediction) {
    BSON_APPEND_DOUBLE(to, "seconds", sl_rounded(prediction->seconds, 1000));
    BSON_APPEND_DOUBLE(to, "low", sl_rounded(prediction->low, 1000));
    BSON_APPEND_DOUBLE(to, "high", sl_rounded(prediction->high, 1000));
}

static void append_phases(bson_t *record, const double *seconds) {
    bson_t array, item;
    BSON_APPEND_ARRAY_BEGIN(record, "phases", &array);
    for (uint32_t i = 0; i < PHASES; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "name", sl_drill_phases[i].name);
        BSON_APPEND_DOUBLE(&item, "seconds", sl_rounded(seconds[i], 1000));
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
        if (drill->config->sampled)
            append_steps(drill, record);
        if (!drill->config->sampled && drill->first_correct > 0)
            BSON_APPEND_DOUBLE(record,
                               drill->correct ? "firstCorrectQuerySeconds" : "firstQuerySeconds",
                               sl_rounded(drill->first_correct, 1000));
        BSON_APPEND_BOOL(record, "answersChecked", drill->checked);
        ok = append_queries(drill, record);
        copy_field(&sl_drill_last(drill)->load_record, "accounting", record);
        ok = ok && BSON_APPEND_DOCUMENT(record, "load", &sl_drill_last(drill)->load_record);
    }
    sl_record_tail(record, code);
    return ok;
}

/* ---- the comparison ----
 *
 * Compares this drill with an earlier one by their records: the measured times per phase and in
 * total; for sampled drills also the times predicted for all documents. If the numbers of documents
 * differ, phases that grow with the documents are compared per document. Each drill is a single
 * run, so differences within the usual scatter of a phase are not reported as faster or slower. */

/* Two single runs that differ by less (relative, or in seconds) are not significantly different. */
#define RATIO_SCATTER 0.1
#define SECONDS_SCATTER 0.1
/* Further options that differ are only counted. */
#define OPTIONS_SHOWN 40

static const char *text_of(const bson_t *record, const char *path) {
    const char *text = sl_look_text(record, path);
    return text ? text : "unknown";
}

static double documents_of(const bson_t *record) {
    const double documents = sl_look_documents(record, "accounting");
    return isnan(documents) ? 0 : documents;
}

/* ---- differences of options, servers and hosts ---- */

/* The value of an option as text, safe on a terminal; "off" if it is off or missing. */
static const char *option_of(const bson_t *record, const char *name, char out[200]) {
    bson_iter_t at, items;
    size_t used = 0;
    strcpy(out, "off");
    if (!sl_option_find(record, name, &at))
        return out;
    if (BSON_ITER_HOLDS_UTF8(&at) && strcmp(bson_iter_utf8(&at, NULL), "false") != 0)
        sl_text_printable(sl_text_of(bson_iter_utf8(&at, NULL)), out, 200);
    bool list = BSON_ITER_HOLDS_ARRAY(&at) && bson_iter_recurse(&at, &items);
    while (list && bson_iter_next(&items)) {
        if (used > 0 && used < 190)
            used += (size_t)snprintf(out + used, 200 - used, ", ");
        if (BSON_ITER_HOLDS_UTF8(&items) && used < 190)
            used +=
                sl_text_printable(sl_text_of(bson_iter_utf8(&items, NULL)), out + used, 200 - used);
    }
    return out;
}

/* Logs the options that differ. Each record may have options that the other version does not
 * have. */
static void log_options(const bson_t *last, const bson_t *now) {
    const bson_t *const records[] = {now, last};
    size_t differing = 0;
    for (size_t i = 0; i < 2; i++) {
        bson_t options;
        bson_iter_t at, other;
        if (!sl_look_inside(records[i], "options", &options) || !bson_iter_init(&at, &options))
            continue;
        while (bson_iter_next(&at)) {
            const char *name = bson_iter_key(&at);
            char shown[60], before[200], after[200];
            if (!sl_option_matters(name) || (i == 1 && sl_option_find(now, name, &other)) ||
                !sl_option_differs(last, now, name) || differing++ >= OPTIONS_SHOWN)
                continue;
            sl_text_printable(sl_text_of(name), shown, sizeof shown);
            sl_log_result("  --%s differs: %s, now %s", shown, option_of(last, name, before),
                          option_of(now, name, after));
        }
    }
    if (differing > OPTIONS_SHOWN)
        sl_log_result("  and %zu more options differ", differing - OPTIONS_SHOWN);
}

static void log_differences(const bson_t *last, const bson_t *now) {
    static const struct {
        const char *path, *what;
    } texts[] = {
        {"server.version", "server version"},
        {"server.deployment", "deployment"},
        {"client.host", "loader host"},
        {"version", "shardload version"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *before = text_of(last, texts[i].path), *after = text_of(now, texts[i].path);
        char shown[200];
        sl_text_printable(sl_text_of(before), shown, sizeof shown);
        if (strcmp(before, after) != 0)
            sl_log_warning("not comparable: different %s: %s, now %s", texts[i].what, shown, after);
    }
    unsigned shards = sl_walk_count(last, "load.topology");
    unsigned shards_now = sl_walk_count(now, "load.topology");
    if (shards != shards_now)
        sl_log_warning("not comparable: different number of shards: %u, now %u", shards,
                       shards_now);
    double before = sl_look_amount(last, "sample", 0), after = sl_look_amount(now, "sample", 0);
    if (fabs(before - after) > 1e-9)
        sl_log_warning("not comparable: different sample: %.3g %%, now %.3g %%", 100 * before,
                       100 * after);
    if (sl_look_number(last, "exitCode") == SL_EXIT_CLUSTER)
        sl_log_warning("  not comparable: a query of the earlier reload failed");
    if (sl_look_number(now, "exitCode") == SL_EXIT_CLUSTER)
        sl_log_warning("  not comparable: a query of this reload failed");
    log_options(last, now);
}

/* ---- phases ---- */

static const char *verdict(double before, double after, double ratio) {
    if (fabs(after - before) < SECONDS_SCATTER || fabs(ratio - 1) < RATIO_SCATTER)
        return "within the scatter of single runs";
    return ratio < 1 ? "faster" : "slower";
}

static const sl_text_column columns[] = {
    {"phase", .left = true, .least = 12},
    {"then", .least = 11, .unit = SL_UNIT_SECONDS},
    {"now", .least = 11, .unit = SL_UNIT_SECONDS},
    {"ratio", .least = 7},
    {"", .left = true},
    {0},
};

/* `words`: NULL when the times are too short to be compared. */
static void add_row(sl_text_table *table, const char *name, double before, double after,
                    double ratio, const char *words, bool scaled) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_number(table, before);
    sl_text_table_number(table, after);
    sl_text_table_figure(table, words, ratio, 3);
    sl_text_table_cell(table, "%s%s", words ? words : "", words && scaled ? ", per document" : "");
}

static void compare_phase(sl_text_table *table, const bson_t *last, const bson_t *now,
                          unsigned phase, bool per_document) {
    const sl_phase_row *row = &sl_drill_phases[phase];
    double before = sl_look_phase_seconds(last, "phases", row->name);
    double after = sl_look_phase_seconds(now, "phases", row->name);
    if (isnan(before) || isnan(after))
        return;
    double ratio = before > 0 ? after / before : NAN;
    bool scaled = per_document && row->model.growth != SL_GROWS_NOT;
    bool long_enough = before >= 0.001 && after >= 0.001;
    if (scaled)
        ratio *= documents_of(last) / documents_of(now);
    add_row(table, row->name, before, after, ratio,
            long_enough ? verdict(scaled ? after / ratio : before, after, ratio) : NULL, scaled);
}

/* ---- totals ---- */

/* The total of one drill, measured, or for a sampled drill predicted for all documents. */
typedef struct extent {
    const bson_t *record;
    const char *path; /* of its phases */
    double documents; /* 0: unknown */
    double low, high; /* of the total, in seconds; equal when measured */
    bool predicted;
} extent;

/* The seconds of all phases, with `times` as many documents for the phases that grow. */
static double sum_of(const extent *all, double times) {
    double sum = 0;
    for (unsigned i = 0; i < PHASES; i++) {
        double seconds = sl_look_phase_seconds(all->record, all->path, sl_drill_phases[i].name);
        if (seconds > 0)
            sum += sl_drill_phases[i].model.growth == SL_GROWS_NOT ? seconds : times * seconds;
    }
    return sum;
}

static extent measured(const bson_t *record) {
    extent all = {.record = record, .path = "phases", .documents = documents_of(record)};
    all.low = all.high = sum_of(&all, 1);
    return all;
}

/* The total for all documents. */
static extent whole_of(const bson_t *record) {
    if (!(sl_look_amount(record, "sample", 1) < 1))
        return measured(record);
    return (extent){.record = record,
                    .path = "predicted.phases",
                    .documents = sl_look_amount(record, "predicted.documents", 0),
                    .low = sl_look_amount(record, "predicted.low", 0),
                    .high = sl_look_amount(record, "predicted.high", 0),
                    .predicted = true};
}

static void compare_extent(sl_text_table *table, const char *name, const extent *last,
                           const extent *now) {
    double before = sum_of(last, 1), after = sum_of(now, 1);
    double times = last->documents > 0 ? now->documents / last->documents : 1;
    bool scaled = fabs(times - 1) > 0.001;
    if (!(before > 0) || !(after > 0))
        return;
    /* The earlier drill's time for the same number of documents. */
    double rescaled = scaled ? sum_of(last, times) : before;
    const char *words = verdict(rescaled, after, after / rescaled);
    if ((last->predicted || now->predicted) && last->low * rescaled / before <= now->high &&
        now->low <= last->high * rescaled / before)
        words = "within the error of the prediction";
    add_row(table, name, before, after, after / rescaled, words, scaled);
}

bool sl_drill_check_last(const bson_t *last, sl_error *error) {
    double code = sl_look_amount(last, "exitCode", 0);
    if (strcmp(text_of(last, "command"), "reload") != 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the file of --compare is not the record of a reload (reload.json)");
    if (documents_of(last) <= 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "--compare: the earlier reload loaded no document, so there is nothing to "
            "compare with");
    return sl_look_drill_ended(last) ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "--compare: the earlier reload did not complete (exit code %.0f), and some of its "
               "phases are missing: name a completed reload",
               code);
}

bool sl_drill_compare(const bson_t *last, const bson_t *now, sl_error *error) {
    double before = documents_of(last), after = documents_of(now);
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (after <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "--compare: this reload loaded no document");
    if (!sl_look_drill_ended(now))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "--compare: this reload did not complete, and is not compared");
    bool per_document = fabs(after / before - 1) > 0.001;
    sl_log_result("%s", "");
    sl_log_result("compared with the earlier reload: %s documents, now %s",
                  sl_human_count((uint64_t)before, a), sl_human_count((uint64_t)after, b));
    log_differences(last, now);
    sl_text_table *table = sl_text_table_create(columns);
    for (unsigned i = 0; i < PHASES; i++)
        compare_phase(table, last, now, i, per_document);
    extent all_before = measured(last), all_now = measured(now);
    compare_extent(table, "total", &all_before, &all_now);
    extent whole_before = whole_of(last), whole_now = whole_of(now);
    if (whole_before.predicted || whole_now.predicted)
        compare_extent(table, "all data", &whole_before, &whole_now);
    sl_text_table_log(table);
    return true;
}
