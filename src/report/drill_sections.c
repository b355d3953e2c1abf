/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of drills and plans: the times of the phases, the prediction and the objective. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

static void set_range(sl_strip *strip, const bson_t *predicted) {
    if (!strip)
        return;
    strip->low = sl_look_amount(predicted, "low", NAN);
    strip->high = sl_look_amount(predicted, "high", NAN);
}

void sl_section_objective(sl_page *page, sl_strips *strips, const bson_t *record) {
    double objective = sl_look_number(record, "objectiveSeconds");
    if (!strips || !(objective > 0))
        return;
    strips->limit = objective;
    strips->limit_name =
        sl_page_text(page, "objective: %s", sl_section_number(page, objective, SL_UNIT_SECONDS));
}

void sl_section_drill_strip(sl_page *page, sl_strips *strips, const bson_t *record,
                            const char *label) {
    bson_t predicted;
    if (sl_look_amount(record, "sample", 1) < 1 &&
        sl_look_inside(record, "predicted", &predicted) && sl_walk_count(&predicted, "phases") > 0)
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases",
                                         sl_page_text(page, "%.60s, predicted", label)),
                  &predicted);
    else
        sl_section_phase_strip(page, strips, record, "phases", label);
}

/* ---- the verdict ---- */

static const char *data_share(sl_page *page, const bson_t *record) {
    double share = sl_look_amount(record, "sample", 1);
    return share < 1 ? sl_page_text(page, "with %s of the data",
                                    sl_section_number(page, share, SL_UNIT_SHARE))
                     : "with all of the data";
}

/* "3 h 05 min", from the number at the path. */
static const char *time_at(sl_page *page, const bson_t *record, const char *path) {
    return sl_section_value(page, record, path, SL_UNIT_SECONDS);
}

static void add_stop(sl_page *page, const bson_t *record) {
    sl_tone tone;
    const char *words = sl_section_ending(record, &tone);
    const char *unknown =
        sl_look_number(record, "objectiveSeconds") > 0
            ? sl_page_text(page, ", so it does not show whether the objective of %s is met",
                           time_at(page, record, "objectiveSeconds"))
            : "";
    sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD, "%s: the drill %s did not complete%s.",
                     words, data_share(page, record), unknown);
}

/* The number of wrong answers and failed queries; "" if there are none. */
static const char *describe_answers(sl_page *page, const bson_t *record) {
    unsigned all = 0, wrong = 0, failed = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk); all++) {
        const char *answer = sl_look_text(&walk.item, "answer");
        if (answer && strcmp(answer, "WRONG") == 0)
            wrong++;
        if (answer && strcmp(answer, "FAILED") == 0)
            failed++;
    }
    const char *words = "";
    if (wrong > 0)
        words = sl_page_text(page, "%u of %u answers %s WRONG. ", wrong, all,
                             wrong == 1 ? "is" : "are");
    if (failed > 0)
        words = sl_page_text(page, "%s%u of %u queries FAILED. ", words, failed, all);
    else if (sl_look_number(record, "exitCode") == 4) /* in an earlier step of the sample */
        words = sl_page_text(page, "%sA query of an earlier step FAILED. ", words);
    return words;
}

/* Whether a completed drill met its objective. */
static const char *describe_objective(sl_page *page, const bson_t *record, sl_tone *tone) {
    static const struct {
        const char *met;
        sl_tone tone;
        const char *words;
    } verdicts[] = {
        {"yes", SL_TONE_GOOD, "is met"},
        {"no", SL_TONE_BAD, "is NOT met"},
        {"unknown", SL_TONE_WARNING, "may or may not be met"},
        {"cannot be told", SL_TONE_WARNING, "may or may not be met"}, /* of earlier programs */
    };
    double objective = sl_look_number(record, "objectiveSeconds");
    const char *met = sl_look_text(record, "objectiveMet");
    const char *words = "was not judged";
    *tone = objective > 0 ? SL_TONE_WARNING : SL_TONE_PLAIN;
    if (!(objective > 0))
        return "No objective was given";
    for (size_t i = 0; met && i < sizeof verdicts / sizeof verdicts[0]; i++) {
        if (strcmp(met, verdicts[i].met) == 0) {
            *tone = verdicts[i].tone;
            words = verdicts[i].words;
        }
    }
    return sl_page_text(page, "The objective of %s %s", time_at(page, record, "objectiveSeconds"),
                        words);
}

/* The exit code first: an objective may be met by a drill whose answers are wrong. */
static void add_verdict(sl_page *page, const bson_t *record) {
    double code = sl_look_number(record, "exitCode");
    const char *whole = "";
    sl_tone tone;
    if (!sl_look_drill_ended(record)) {
        add_stop(page, record);
        return;
    }
    const char *verdict = describe_objective(page, record, &tone);
    const char *answers = describe_answers(page, record);
    if (sl_look_amount(record, "sample", 1) < 1 && sl_look_number(record, "predicted.seconds") >= 0)
        whole = sl_page_text(
            page, " All data would take %s (%s to %s).", time_at(page, record, "predicted.seconds"),
            time_at(page, record, "predicted.low"), time_at(page, record, "predicted.high"));
    if (code == 1 && tone != SL_TONE_BAD)
        tone = SL_TONE_WARNING;
    if (*answers || (code != 0 && code != 1))
        tone = SL_TONE_BAD;
    double took = sl_section_phase_seconds(record, "phases", NULL);
    sl_page_add_text(page, SL_BLOCK_VERDICT, tone, "%s%s: the drill %s took %s.%s%s", answers,
                     verdict, data_share(page, record),
                     sl_section_number(page, took, SL_UNIT_SECONDS), whole,
                     code == 1 ? " Records were rejected." : "");
}

static void show_timeline(sl_page *page, const bson_t *record) {
    bson_t predicted;
    double objective = sl_look_number(record, "objectiveSeconds");
    bool forecast = sl_look_inside(record, "predicted", &predicted);
    const char *caption = sl_page_text(
        page, "%s%s%s", objective > 0 ? "The line is the objective. " : "",
        forecast ? "The bracket below the end of the prediction is the range of the total for all "
                   "data. "
                 : "",
        sl_look_drill_ended(record) ? "" : "Phases that the drill did not reach are missing.");
    sl_strips *strips = sl_page_add_strips(page, "From the empty target to the correct answers",
                                           *caption ? caption : NULL, SL_UNIT_SECONDS);
    sl_section_phase_strip(page, strips, record, "phases", "this drill");
    if (forecast)
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", "predicted"),
                  &predicted);
    sl_section_objective(page, strips, record);
    sl_section_phase_table(page, record, "phases", "Phases of the drill");
    sl_section_predicted_table(page, record, "Predicted for all data");
    sl_section_texts(page, record, "predicted.notes", SL_TONE_PLAIN);
}

static const sl_column query_columns[] = {
    {"query", "name", .text = sl_cell_text},
    {"median", "medianMs", .unit = SL_UNIT_MILLISECONDS},
    {"documents/ms", "documentsPerMs", .unit = SL_UNIT_COUNT},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {"answer", "answer", .text = sl_cell_text},
    {0},
};

void sl_sections_reload(sl_page *page, const bson_t *record) {
    bson_t load;
    add_verdict(page, record);
    sl_page_table *facts = sl_page_add_facts(page);
    sl_section_fact(page, facts, record, "firstCorrectQuerySeconds", "first correct answer after",
                    SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "firstQuerySeconds", "first answer (not checked) after",
                    SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "objectiveSeconds", "objective", SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "sample", "share of the data", SL_UNIT_SHARE);
    sl_section_fact(page, facts, record, "accounting.inserted", "documents", SL_UNIT_COUNT);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "The drill");
    show_timeline(page, record);
    if (sl_walk_count(record, "queries") > 0)
        sl_section_table(page, record, "queries", "Queries after the load", query_columns);
    if (sl_look_inside(record, "load", &load)) {
        sl_page_add_text(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "The load within the drill");
        sl_sections_load(page, &load);
    } else {
        sl_section_accounting(page, record);
        sl_section_setting(page, record);
    }
}

/* ---- plans ---- */

/* Adds the predicted time, and the phases of unknown time that it does not contain. */
static void add_prediction(sl_page *page, const bson_t *record) {
    bson_t predicted;
    const char *unknown = "", *time = "no time was predicted";
    if (sl_look_inside(record, "predicted", &predicted) &&
        sl_look_number(&predicted, "seconds") >= 0) {
        unknown = sl_section_unknown_phases(page, &predicted);
        time = sl_page_text(page, "%s (%s to %s)", time_at(page, &predicted, "seconds"),
                            time_at(page, &predicted, "low"), time_at(page, &predicted, "high"));
    }
    sl_page_add_text(page, SL_BLOCK_VERDICT, *unknown ? SL_TONE_WARNING : SL_TONE_PLAIN,
                     "Predicted: %s records; %s%s%s%s.",
                     sl_section_value(page, record, "estimate.records", SL_UNIT_COUNT), time,
                     *unknown ? ", WITHOUT " : "", unknown,
                     *unknown ? ", whose time is unknown" : "");
}

static const char *scalar_cell(sl_page *page, const bson_t *item, const char *path) {
    bson_iter_t at;
    return bson_iter_init_find(&at, item, path) ? sl_section_scalar(page, &at) : "";
}

static const sl_column range_columns[] = {
    {"range from", "minimum", .figure = scalar_cell},
    {"to", "maximum", .figure = scalar_cell},
    {"shard", "shard", .text = scalar_cell},
    {0},
};

void sl_sections_plan(sl_page *page, const bson_t *record) {
    bson_t predicted;
    bool timed = sl_look_inside(record, "predicted", &predicted);
    const char *from = sl_look_text(record, "predicted.from");
    add_prediction(page, record);
    if (sl_look_text(record, "refused"))
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD, "The load would be refused: %.1000s",
                         sl_look_text(record, "refused"));
    sl_page_table *facts = sl_page_add_facts(page);
    sl_section_fact(page, facts, record, "estimate.records", "records", SL_UNIT_COUNT);
    sl_section_fact(page, facts, record, "estimate.textBytes", "text", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "estimate.bsonBytes", "BSON", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "estimate.averageDocument", "average document",
                    SL_UNIT_BYTES);
    if (timed && sl_walk_count(&predicted, "phases") > 0) {
        const char *bracket = *sl_section_unknown_phases(page, &predicted)
                                  ? "The bracket is the range of the total of these phases."
                                  : "The bracket is the range of the total.";
        sl_strips *strips = sl_page_add_strips(
            page, "Predicted time of each phase",
            from ? sl_page_text(page, "The rates come from %.500s. %s", from, bracket) : bracket,
            SL_UNIT_SECONDS);
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", ""), &predicted);
        sl_section_predicted_table(page, record, NULL);
    }
    if (sl_walk_count(record, "ranges") > 0)
        sl_section_table(page, record, "ranges", "Ranges", range_columns);
    sl_section_setting(page, record);
}
