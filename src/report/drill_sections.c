/* SPDX-License-Identifier: Apache-2.0 */
/* Drills and plans: how long it takes from an empty cluster to right answers, against the objective
 * and against what was predicted. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include <shardload/lookup.h>

#include "scale.h"

static void set_range(sl_strip *strip, const bson_t *predicted) {
    if (!strip)
        return;
    strip->low = sl_look_amount(predicted, "low", NAN);
    strip->high = sl_look_amount(predicted, "high", NAN);
}

void sl_section_whole_drill(sl_page *page, sl_strips *strips, const bson_t *record,
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

static void say_objective(sl_page *page, const bson_t *record) {
    char took[SL_HUMAN_ROOM], human[SL_HUMAN_ROOM], low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    double objective = sl_look_number(record, "objectiveSeconds");
    double share = sl_look_amount(record, "sample", 1);
    double seconds = sl_section_phase_seconds(record, "phases", NULL);
    const char *met = sl_look_text(record, "objectiveMet");
    const char *whole = "";
    const char *verdict = "No objective was given";
    sl_tone tone = SL_TONE_PLAIN;
    if (share < 1 && sl_look_number(record, "predicted.seconds") >= 0)
        whole = sl_page_text(
            page, " The whole would take %s (%s to %s).",
            sl_value_text(sl_look_number(record, "predicted.seconds"), SL_UNIT_SECONDS, human),
            sl_value_text(sl_look_number(record, "predicted.low"), SL_UNIT_SECONDS, low),
            sl_value_text(sl_look_number(record, "predicted.high"), SL_UNIT_SECONDS, high));
    if (objective > 0) {
        bool yes = met && strcmp(met, "yes") == 0;
        bool no = met && strcmp(met, "no") == 0;
        tone = yes ? SL_TONE_GOOD : no ? SL_TONE_BAD : SL_TONE_WARNING;
        verdict = sl_page_text(page, "The objective of %s %s",
                               sl_value_text(objective, SL_UNIT_SECONDS, human),
                               yes ? "is met" : no ? "is NOT met" : "may or may not be met");
    }
    sl_page_say(page, SL_BLOCK_VERDICT, tone,
                sl_page_text(page, "%s: the drill %s took %s.%s", verdict,
                             share < 1 ? sl_page_text(page, "with %s of the data",
                                                      sl_share_text(share, high))
                                       : "with all of the data",
                             sl_value_text(seconds, SL_UNIT_SECONDS, took), whole));
}

static void show_timeline(sl_page *page, const bson_t *record) {
    bson_t predicted;
    double objective = sl_look_number(record, "objectiveSeconds");
    bool forecast = sl_look_inside(record, "predicted", &predicted);
    const char *caption =
        sl_page_text(page, "%s%s", objective > 0 ? "The line is the objective. " : "",
                     forecast ? "The bracket below the end of the prediction is the range in which "
                                "the whole ends."
                              : "");
    sl_strips *strips = sl_page_add_strips(page, "From the empty cluster to the right answers",
                                           *caption ? caption : NULL, SL_UNIT_SECONDS);
    sl_section_phase_strip(page, strips, record, "phases", "this drill");
    if (forecast)
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", "predicted"),
                  &predicted);
    if (strips && objective > 0) {
        strips->limit = objective;
        strips->limit_name = sl_page_text(
            page, "objective: %s", sl_section_number(page, objective, SL_UNIT_SECONDS));
    }
    sl_section_phase_table(page, record, "phases", "Phases of the drill");
    sl_section_predicted_table(page, record, "Predicted for the whole");
    sl_section_texts(page, record, "predicted.notes", SL_TONE_PLAIN);
}

static void show_queries(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"query", "median", "documents/ms", "documents", "answer"};
    char rate[SL_HUMAN_ROOM];
    size_t row = 0;
    if (sl_walk_count(record, "queries") == 0)
        return;
    sl_page_table *table = sl_page_add_table(page, "Queries after the load", titles, "lrrrl", 5);
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk); row++) {
        if (row >= SL_ROWS_MAX)
            continue;
        const bson_t *item = &walk.item;
        double per = sl_look_number(item, "documentsPerMs");
        sl_page_cell(page, table, sl_look_text(item, "name"));
        sl_page_cell(page, table, sl_section_value(page, item, "medianMs", SL_UNIT_MILLISECONDS));
        sl_page_cell(page, table,
                     per >= 0 ? sl_page_text(page, "%s", sl_value_text(per, SL_UNIT_COUNT, rate))
                              : "-");
        sl_page_cell(page, table, sl_section_value(page, item, "documents", SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_look_text(item, "answer"));
    }
    sl_section_more(page, table, row > SL_ROWS_MAX ? row - SL_ROWS_MAX : 0);
}

void sl_sections_reload(sl_page *page, const bson_t *record) {
    bson_t load;
    say_objective(page, record);
    sl_page_table *facts = sl_page_add_facts(page);
    sl_section_fact(page, facts, record, "firstCorrectQuerySeconds", "first correct answer after",
                    SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "firstQuerySeconds", "first answer (not checked) after",
                    SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "objectiveSeconds", "objective", SL_UNIT_SECONDS);
    sl_section_fact(page, facts, record, "sample", "share of the data", SL_UNIT_SHARE);
    sl_section_fact(page, facts, record, "accounting.inserted", "documents", SL_UNIT_COUNT);
    sl_page_say(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "The drill");
    show_timeline(page, record);
    show_queries(page, record);
    if (sl_look_inside(record, "load", &load)) {
        sl_page_say(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "The load within the drill");
        sl_sections_load(page, &load);
    } else {
        sl_section_accounting(page, record);
        sl_section_setting(page, record);
    }
}

/* ---- plans ---- */

/* How long it takes; what cannot be told is not in the time that is. */
static void say_prediction(sl_page *page, const bson_t *record) {
    char human[SL_HUMAN_ROOM], low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM], records[SL_HUMAN_ROOM];
    bson_t predicted;
    const char *untold = "", *time = "how long it takes was not predicted";
    if (sl_look_inside(record, "predicted", &predicted) &&
        sl_look_number(&predicted, "seconds") >= 0) {
        untold = sl_section_untold(page, &predicted);
        time = sl_page_text(
            page, "%s (%s to %s)",
            sl_value_text(sl_look_number(&predicted, "seconds"), SL_UNIT_SECONDS, human),
            sl_value_text(sl_look_number(&predicted, "low"), SL_UNIT_SECONDS, low),
            sl_value_text(sl_look_number(&predicted, "high"), SL_UNIT_SECONDS, high));
    }
    sl_page_say(page, SL_BLOCK_VERDICT, *untold ? SL_TONE_WARNING : SL_TONE_PLAIN,
                sl_page_text(page, "Predicted: %s records; %s%s%s%s.",
                             sl_value_text(sl_look_number(record, "estimate.records"),
                                           SL_UNIT_COUNT, records),
                             time, *untold ? ", WITHOUT " : "", untold,
                             *untold ? ", which cannot be told" : ""));
}

static void show_ranges(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"range from", "to", "shard"};
    size_t row = 0;
    if (sl_walk_count(record, "ranges") == 0)
        return;
    sl_page_table *table = sl_page_add_table(page, "Ranges", titles, "rrl", 3);
    for (sl_walk walk = sl_walk_start(record, "ranges"); sl_walk_next(&walk); row++) {
        bson_iter_t at;
        if (row >= SL_ROWS_MAX)
            continue;
        static const char *const paths[] = {"minimum", "maximum", "shard"};
        for (size_t i = 0; i < 3; i++)
            sl_page_cell(page, table, bson_iter_init_find(&at, &walk.item, paths[i])
                                          ? sl_section_scalar(page, &at)
                                          : "");
    }
    sl_section_more(page, table, row > SL_ROWS_MAX ? row - SL_ROWS_MAX : 0);
}

void sl_sections_plan(sl_page *page, const bson_t *record) {
    bson_t predicted;
    bool timed = sl_look_inside(record, "predicted", &predicted);
    const char *from = sl_look_text(record, "predicted.from");
    say_prediction(page, record);
    if (sl_look_text(record, "refused"))
        sl_page_say(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                    sl_page_text(page, "The load would be refused: %.1000s",
                                 sl_look_text(record, "refused")));
    sl_page_table *facts = sl_page_add_facts(page);
    sl_section_fact(page, facts, record, "estimate.records", "records", SL_UNIT_COUNT);
    sl_section_fact(page, facts, record, "estimate.textBytes", "text", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "estimate.bsonBytes", "BSON", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "estimate.averageDocument", "average document",
                    SL_UNIT_BYTES);
    if (timed && sl_walk_count(&predicted, "phases") > 0) {
        const char *bracket = *sl_section_untold(page, &predicted)
                                  ? "The bracket is the range of what can be told."
                                  : "The bracket is the range in which the load ends.";
        sl_strips *strips = sl_page_add_strips(
            page, "Where the time will go",
            from ? sl_page_text(page, "The rates come from %.500s. %s", from, bracket) : bracket,
            SL_UNIT_SECONDS);
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", ""), &predicted);
        sl_section_predicted_table(page, record, NULL);
    }
    show_ranges(page, record);
    sl_section_setting(page, record);
}
