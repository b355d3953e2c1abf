/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of experiments. Tunings: a grid of threads and batch size for each combination of the
 * other values, the fastest settings, and the storage and speed of compressors. Drills and plans:
 * the times of the phases, the prediction and the objective. Capacity models: the answer, the
 * results beside published figures, a sweep, and the inputs. */
#include "sections.h"

#include <stdlib.h>
#include <string.h>

#include "lookup.h"
#include "util/estimate.h"
#include "util/text.h"

/* ---- tunings: the settings ---- */

#define GRIDS_MAX 24
#define SETTINGS_MAX 4000
#define AXIS_MAX 24
#define BEST_SHOWN 12

/* The values of a setting besides threads and batch size. */
static const char *const others[] = {"compressor", "clustered", "writeConcern", "route",
                                     "wireCompression"};
#define OTHERS (sizeof others / sizeof others[0])

typedef struct setting {
    double threads, batch_size;
    double rate, low, high;
    const char *others[OTHERS];
    const char *combination; /* the values of `others` that differ between settings, as text */
    const char *stopped;     /* why there are no more trials, or "" */
    size_t trials;
    size_t index;
} setting;

typedef struct settings {
    setting *items;
    size_t count;
    size_t left_out;          /* number of settings beyond SETTINGS_MAX */
    double best, recommended; /* indexes in the record */
    double maximum, minimum;  /* of the rates */
} settings;

static settings read_settings(sl_page *page, const bson_t *record) {
    settings all = {.best = sl_look_number(record, "best"),
                    .recommended = sl_look_number(record, "recommended"),
                    .minimum = INFINITY};
    size_t count = sl_walk_count(record, "settings"), index = 0;
    if (count > SETTINGS_MAX) {
        all.left_out = count - SETTINGS_MAX;
        count = SETTINGS_MAX;
    }
    all.items = sl_page_memory(page, (count + 1) * sizeof *all.items);
    for (sl_walk walk = sl_walk_start(record, "settings");
         all.items && all.count < count && sl_walk_next(&walk); index++) {
        setting *one = &all.items[all.count++];
        one->index = index;
        one->threads = sl_look_amount(&walk.item, "threads", 0);
        one->batch_size = sl_look_amount(&walk.item, "batchSize", 0);
        one->rate = sl_look_number(&walk.item, "rate");
        one->low = sl_look_number(&walk.item, "low");
        one->high = sl_look_number(&walk.item, "high");
        one->trials = sl_walk_count(&walk.item, "trials");
        const char *stopped = sl_look_text(&walk.item, "stopped");
        one->stopped = stopped ? stopped : "";
        for (size_t i = 0; i < OTHERS; i++)
            one->others[i] = sl_cell_scalar(page, &walk.item, others[i]);
        if (one->rate > all.maximum)
            all.maximum = one->rate;
        if (one->rate < all.minimum)
            all.minimum = one->rate;
    }
    return all;
}

/* A value as text that is clear without the name of its dimension. */
static const char *words_of(sl_page *page, size_t dimension, const char *value) {
    static const char *const kinds[OTHERS] = {"", "", "w:", "route ", "wire "};
    if (dimension == 0 && !*value)
        return "server's compressor";
    if (dimension == 1)
        return strcmp(value, "yes") == 0 || strcmp(value, "true") == 0 ? "clustered"
                                                                       : "not clustered";
    return sl_page_text(page, "%s%.60s", kinds[dimension], value);
}

/* Sets `combination`: the values that differ between settings. */
static void name_combinations(sl_page *page, settings *all) {
    bool differs[OTHERS] = {false};
    for (size_t i = 1; i < all->count; i++) {
        for (size_t k = 0; k < OTHERS; k++)
            differs[k] =
                differs[k] || strcmp(all->items[i].others[k], all->items[0].others[k]) != 0;
    }
    for (size_t i = 0; i < all->count; i++) {
        const char *text = "";
        for (size_t k = 0; k < OTHERS; k++) {
            if (differs[k])
                text = sl_page_text(page, "%s%s%s", text, *text ? ", " : "",
                                    words_of(page, k, all->items[i].others[k]));
        }
        all->items[i].combination = text;
    }
}

/* The distinct values of an axis, ascending; at most AXIS_MAX. */
static size_t axis_of(const settings *all, const char *combination, bool threads,
                      double values[AXIS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        double value = threads ? one->threads : one->batch_size;
        bool known = strcmp(one->combination, combination) != 0;
        for (size_t k = 0; k < count; k++)
            known = known || values[k] == value;
        if (!known && count < AXIS_MAX)
            values[count++] = value;
    }
    qsort(values, count, sizeof *values, sl_by_value);
    return count;
}

static size_t index_of(const double *values, size_t count, double value) {
    size_t index = 0;
    while (index < count && values[index] != value)
        index++;
    return index;
}

static const char *spread_of(sl_page *page, const setting *one) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    if (!(one->low >= 0) || !(one->high >= 0))
        return one->trials == 1 ? "one trial" : NULL;
    return sl_page_text(page, "%s to %s", sl_short_text(one->low, low),
                        sl_short_text(one->high, high));
}

static const char *mark_of(const settings *all, const setting *one) {
    bool best = all->best == (double)one->index;
    if (all->recommended == (double)one->index)
        return best ? "expected fastest, recommended" : "recommended";
    return best ? "expected fastest" : NULL;
}

static void show_grid(sl_page *page, const settings *all, const char *combination) {
    double rows[AXIS_MAX], columns[AXIS_MAX];
    char human[SL_HUMAN_ROOM];
    size_t row_count = axis_of(all, combination, true, rows);
    size_t column_count = axis_of(all, combination, false, columns);
    const char *title = *combination ? combination : "by threads and batch size";
    sl_grid *grid = sl_page_add_grid(
        page, sl_page_text(page, "Documents per second: %s", title),
        "Each cell shows the median of its trials, and the 90 % range of the true rate, from the "
        "spread of all trials. The stronger the colour, the faster. Empty cells were not tried.",
        row_count, column_count);
    if (!grid)
        return;
    size_t left_out = 0;
    grid->row_name = "threads";
    grid->column_name = "batch size";
    grid->maximum = all->maximum;
    grid->minimum = all->minimum < all->maximum ? all->minimum : 0;
    for (size_t i = 0; i < row_count; i++)
        grid->rows[i] = sl_section_number(page, rows[i], SL_UNIT_COUNT);
    for (size_t i = 0; i < column_count; i++)
        grid->columns[i] = sl_section_number(page, columns[i], SL_UNIT_COUNT);
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        size_t row = index_of(rows, row_count, one->threads);
        size_t column = index_of(columns, column_count, one->batch_size);
        if (strcmp(one->combination, combination) != 0)
            continue;
        if (row == row_count || column == column_count) {
            left_out++;
            continue;
        }
        if (!(one->rate >= 0))
            continue;
        grid->cells[row * column_count + column] = (sl_cell){
            .value = one->rate,
            .text = sl_page_text(page, "%s", sl_short_text(one->rate, human)),
            .more = spread_of(page, one),
            .mark = mark_of(all, one),
        };
    }
    if (left_out > 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_WARNING,
                         "%zu settings are not in this picture, which has room for %d values per "
                         "axis; the list of the fastest settings includes them.",
                         left_out, AXIS_MAX);
}

static void show_grids(sl_page *page, const settings *all) {
    size_t grids = 0;
    for (size_t i = 0; i < all->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(all->items[k].combination, all->items[i].combination) == 0;
        if (!seen && grids++ < GRIDS_MAX)
            show_grid(page, all, all->items[i].combination);
    }
    if (grids > GRIDS_MAX)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
                         "%zu more combinations were tried; see the record.", grids - GRIDS_MAX);
}

static int faster_first(const void *left, const void *right) {
    const setting *a = left, *b = right;
    double x = a->rate >= 0 ? a->rate : -1, y = b->rate >= 0 ? b->rate : -1;
    return x < y ? 1 : x > y ? -1 : (a->index > b->index) - (a->index < b->index);
}

static void show_ranking(sl_page *page, settings *all) {
    static const char *const titles[] = {"threads",     "batch size", "other values",
                                         "documents/s", "90 % range", ""};
    qsort(all->items, all->count, sizeof *all->items, faster_first);
    sl_page_table *table = sl_page_add_table(page, "The fastest", titles, "rrlrrl", 6);
    size_t shown = 0;
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        const char *mark = mark_of(all, one);
        if (!(one->rate >= 0) || one->trials == 0 || (shown >= BEST_SHOWN && !mark))
            continue;
        shown++;
        sl_page_cell(page, table, sl_section_number(page, one->threads, SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_number(page, one->batch_size, SL_UNIT_COUNT));
        sl_page_cell(page, table, *one->combination ? one->combination : "the same for all");
        sl_page_cell(page, table, sl_section_number(page, one->rate, SL_UNIT_COUNT));
        sl_page_cell(page, table, spread_of(page, one));
        sl_page_cell(page, table, mark ? mark : one->stopped);
        if (all->recommended == (double)one->index)
            sl_section_emphasize(table);
    }
}

/* ---- tunings: compressors ---- */

/* The sum of the medians of all queries; NAN if one of them was not timed, because a sum without it
 * would be too small. */
static double query_time(const bson_t *item) {
    double sum = 0;
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(item, "queries"); sl_walk_next(&walk); count++)
        sum += sl_look_amount(&walk.item, "medianMilliseconds", NAN);
    return count > 0 ? sum : NAN;
}

static double total_bytes(const bson_t *item) {
    return sl_look_number(item, "storageBytes") + sl_look_amount(item, "indexBytes", 0);
}
static const char *compressor_of(sl_page *page, const bson_t *item) {
    return sl_cell_scalar(page, item, "compressor");
}

static void show_storage(sl_page *page, const bson_t *record) {
    static const sl_array bars[] = {
        {"storage", "Size on disk, by compressor",
         .caption = "Documents and indexes; shorter is better.", .label = compressor_of,
         .bar = {.unit = SL_UNIT_BYTES, .value = total_bytes}},
        {"storage", "Documents per second while loading, by compressor",
         .caption = "Longer is better.", .label = compressor_of, .bar = {.path = "rate"}},
        {"storage", "Time of the queries, by compressor",
         .caption = "The sum of the medians of all queries; shorter is better.",
         .label = compressor_of, .bar = {.unit = SL_UNIT_MILLISECONDS, .value = query_time}},
    };
    static const sl_figure columns[] = {
        {"compressor", "compressor", .left = sl_cell_scalar},
        {"documents", "documents", .unit = SL_UNIT_COUNT},
        {"data", "dataBytes", .unit = SL_UNIT_BYTES},
        {"stored", "storageBytes", .unit = SL_UNIT_BYTES},
        {"indexes", "indexBytes", .unit = SL_UNIT_BYTES},
        {"data to stored", "ratio", .right = sl_cell_ratio},
        {"documents/s", "rate", .unit = SL_UNIT_COUNT},
        {0},
    };
    static const sl_array table = {"storage", NULL, .columns = columns};
    if (sl_walk_count(record, "storage") == 0)
        return;
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Compressors");
    for (size_t i = 0; i < sizeof bars / sizeof bars[0]; i++)
        sl_section_bars(page, record, &bars[i]);
    sl_section_table(page, record, &table);
}

/* ---- tunings: the page ---- */

static const setting *find(const settings *all, double index) {
    for (size_t i = 0; i < all->count; i++) {
        if ((double)all->items[i].index == index)
            return &all->items[i];
    }
    return NULL;
}

static void add_recommendation(sl_page *page, const settings *all) {
    const setting *chosen = find(all, all->recommended);
    const setting *best = find(all, all->best);
    if (!chosen) {
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "No setting is recommended.");
        return;
    }
    const char *against = "";
    if (best && best != chosen && chosen->rate >= 0 && chosen->rate < best->rate)
        against = sl_page_text(page, ", %s of the one that is expected to be the fastest",
                               sl_section_number(page, chosen->rate / best->rate, SL_UNIT_SHARE));
    sl_page_add_text(
        page, SL_BLOCK_VERDICT, SL_TONE_GOOD,
        "Recommended: %s threads, batches of %s documents%s%s: %s documents per second%s.",
        sl_section_number(page, chosen->threads, SL_UNIT_COUNT),
        sl_section_number(page, chosen->batch_size, SL_UNIT_COUNT),
        *chosen->combination ? ", " : "", chosen->combination,
        sl_section_number(page, chosen->rate, SL_UNIT_COUNT), against);
}

void sl_sections_tune(sl_page *page, const bson_t *record) {
    static const sl_figure facts[] = {
        {"trials", "trials", .unit = SL_UNIT_COUNT},
        {"trials of the full grid", "gridTrials", .unit = SL_UNIT_COUNT},
        {"share of the sources", "sample.share", .unit = SL_UNIT_SHARE},
        {"records in the sample", "sample.records", .unit = SL_UNIT_COUNT},
        {"text in the sample", "sample.textBytes", .unit = SL_UNIT_BYTES},
        {"BSON in the sample", "sample.bsonBytes", .unit = SL_UNIT_BYTES},
        {0},
    };
    settings all = read_settings(page, record);
    if (!all.items)
        return;
    name_combinations(page, &all);
    add_recommendation(page, &all);
    if (all.left_out > 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_WARNING,
                         "The record has %zu more settings than the %d shown.", all.left_out,
                         SETTINGS_MAX);
    sl_section_facts(page, record, facts);
    if (all.count > 0) {
        sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Settings tried");
        show_grids(page, &all);
        show_ranking(page, &all);
    }
    show_storage(page, record);
    sl_section_setting(page, record);
}

/* ---- predictions ---- */

/* More phases than any run has. */
#define PHASES_MAX 64

/* The reason why the time of a phase is unknown, or NULL. Earlier programs wrote another name. */
static const char *unknown_because(const bson_t *phase) {
    const char *why = sl_look_text(phase, "unknownBecause");
    return why ? why : sl_look_text(phase, "cannotBeTold");
}

static const char *phase_cell(sl_page *page, const bson_t *phase, const char *path) {
    const char *why = unknown_because(phase), *name = sl_look_text(phase, path);
    return why ? sl_page_text(page, "%.60s: %.200s", name ? name : "?", why) : name;
}

static const sl_figure prediction_columns[] = {
    {"phase", "name", .left = phase_cell},
    {"predicted", "seconds", .unit = SL_UNIT_SECONDS},
    {"at least", "low", .unit = SL_UNIT_SECONDS},
    {"at most", "high", .unit = SL_UNIT_SECONDS},
    {0},
};

static const char *unknown_phases(sl_page *page, const bson_t *predicted) {
    const char *all = "";
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(predicted, "phases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        if (unknown_because(&walk.item) && count++ < PHASES_MAX)
            all = sl_page_text(page, "%.1000s%s%.60s", all, *all ? ", " : "", name ? name : "?");
    }
    return *all || sl_look_truth(predicted, "complete") != 0 ? all : "a part";
}

static void show_predicted(sl_page *page, const bson_t *record, const char *title) {
    bson_t predicted;
    size_t rows = 0;
    if (!sl_look_inside(record, "predicted", &predicted))
        return;
    sl_page_table *table = sl_section_columns(page, title, prediction_columns);
    for (sl_walk walk = sl_walk_start(&predicted, "phases"); sl_walk_next(&walk);) {
        if (rows++ < SL_ROWS_MAX)
            sl_section_row(page, table, &walk.item, prediction_columns);
    }
    sl_section_more(page, table, rows);
    sl_page_cell(page, table,
                 *unknown_phases(page, &predicted) ? "total, without the unknown phases" : "total");
    sl_section_row(page, table, &predicted, prediction_columns + 1);
    sl_section_emphasize(table);
}

/* ---- drills ---- */

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
    const char *words = sl_section_exit(record, sl_look_number(record, "exitCode"), &tone);
    const char *unknown =
        sl_look_number(record, "objectiveSeconds") > 0
            ? sl_page_text(page,
                           ", so it does not show whether the recovery time objective of %s is met",
                           time_at(page, record, "objectiveSeconds"))
            : "";
    sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD, "%s: the reload %s did not complete%s.",
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
        {"not shown", SL_TONE_BAD,
         "is not judged: no document was recovered, or no query was answered"},
        {"cannot be told", SL_TONE_WARNING, "may or may not be met"}, /* of earlier programs */
    };
    double objective = sl_look_number(record, "objectiveSeconds");
    const char *met = sl_look_text(record, "objectiveMet");
    const char *words = "was not judged";
    *tone = objective > 0 ? SL_TONE_WARNING : SL_TONE_PLAIN;
    if (!(objective > 0))
        return "No recovery time objective was given";
    for (size_t i = 0; met && i < sizeof verdicts / sizeof verdicts[0]; i++) {
        if (strcmp(met, verdicts[i].met) == 0) {
            *tone = verdicts[i].tone;
            words = verdicts[i].words;
        }
    }
    return sl_page_text(page, "The recovery time objective of %s %s",
                        time_at(page, record, "objectiveSeconds"), words);
}

/* The exit code first: an objective may be met by a drill whose answers are wrong. */
static void add_drill_verdict(sl_page *page, const bson_t *record) {
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
    sl_page_add_text(page, SL_BLOCK_VERDICT, tone, "%s%s: the reload %s took %s.%s%s", answers,
                     verdict, data_share(page, record),
                     sl_section_number(page, took, SL_UNIT_SECONDS), whole,
                     code == 1 ? " Records were rejected." : "");
}

static void show_timeline(sl_page *page, const bson_t *record) {
    bson_t predicted;
    double objective = sl_look_number(record, "objectiveSeconds");
    bool forecast = sl_look_inside(record, "predicted", &predicted);
    const char *caption = sl_page_text(
        page, "%s%s%s", objective > 0 ? "The line is the recovery time objective. " : "",
        forecast ? "The bracket below the end of the prediction is the range of the total for all "
                   "data. "
                 : "",
        sl_look_drill_ended(record) ? "" : "Phases that the reload did not reach are missing.");
    sl_strips *strips = sl_page_add_strips(page, "From the empty target to the correct answers",
                                           *caption ? caption : NULL, SL_UNIT_SECONDS);
    sl_section_phase_strip(page, strips, record, "phases", "this reload");
    if (forecast)
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", "predicted"),
                  &predicted);
    sl_section_objective(page, strips, record);
    sl_section_phase_table(page, record, "phases", "Phases of the reload");
    show_predicted(page, record, "Predicted for all data");
    sl_section_texts(page, record, "predicted.notes", SL_TONE_PLAIN);
}

static const sl_figure query_columns[] = {
    {"query", "name", .left = sl_cell_text},
    {"median", "medianMs", .unit = SL_UNIT_MILLISECONDS},
    {"documents/ms", "documentsPerMs", .unit = SL_UNIT_COUNT},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {"answer", "answer", .left = sl_cell_text},
    {0},
};

void sl_sections_reload(sl_page *page, const bson_t *record) {
    static const sl_figure facts[] = {
        {"first correct answer after", "firstCorrectQuerySeconds", .unit = SL_UNIT_SECONDS},
        {"first answer (not checked) after", "firstQuerySeconds", .unit = SL_UNIT_SECONDS},
        {"objective", "objectiveSeconds", .unit = SL_UNIT_SECONDS},
        {"share of the data", "sample", .unit = SL_UNIT_SHARE},
        {"documents", "accounting.inserted", .unit = SL_UNIT_COUNT},
        {0},
    };
    static const sl_array queries = {"queries", "Queries after the load", .columns = query_columns};
    bson_t load;
    add_drill_verdict(page, record);
    sl_section_facts(page, record, facts);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "The reload");
    show_timeline(page, record);
    sl_section_table(page, record, &queries);
    if (sl_look_inside(record, "load", &load)) {
        sl_page_add_text(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "The load within the reload");
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
        unknown = unknown_phases(page, &predicted);
        time = sl_page_text(page, "%s (%s to %s)", time_at(page, &predicted, "seconds"),
                            time_at(page, &predicted, "low"), time_at(page, &predicted, "high"));
    }
    sl_page_add_text(page, SL_BLOCK_VERDICT, *unknown ? SL_TONE_WARNING : SL_TONE_PLAIN,
                     "Predicted: %s records; %s%s%s%s.",
                     sl_section_value(page, record, "estimate.records", SL_UNIT_COUNT), time,
                     *unknown ? ", WITHOUT " : "", unknown,
                     *unknown ? ", whose time is unknown" : "");
}

void sl_sections_plan(sl_page *page, const bson_t *record) {
    static const sl_figure facts[] = {
        {"records", "estimate.records", .unit = SL_UNIT_COUNT},
        {"text", "estimate.textBytes", .unit = SL_UNIT_BYTES},
        {"BSON", "estimate.bsonBytes", .unit = SL_UNIT_BYTES},
        {"average document", "estimate.averageDocument", .unit = SL_UNIT_BYTES},
        {0},
    };
    static const sl_figure range_columns[] = {
        {"range from", "minimum", .right = sl_cell_scalar},
        {"to", "maximum", .right = sl_cell_scalar},
        {"shard", "shard", .left = sl_cell_scalar},
        {0},
    };
    static const sl_array ranges = {"ranges", "Ranges", .columns = range_columns};
    bson_t predicted;
    bool timed = sl_look_inside(record, "predicted", &predicted);
    const char *from = sl_look_text(record, "predicted.from");
    add_prediction(page, record);
    if (sl_look_text(record, "refused"))
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD, "The load would be refused: %.1000s",
                         sl_look_text(record, "refused"));
    sl_section_facts(page, record, facts);
    if (timed && sl_walk_count(&predicted, "phases") > 0) {
        const char *bracket = *unknown_phases(page, &predicted)
                                  ? "The bracket is the range of the total of these phases."
                                  : "The bracket is the range of the total.";
        sl_strips *strips = sl_page_add_strips(
            page, "Predicted time of each phase",
            from ? sl_page_text(page, "The rates come from %.500s. %s", from, bracket) : bracket,
            SL_UNIT_SECONDS);
        set_range(sl_section_phase_strip(page, strips, &predicted, "phases", ""), &predicted);
        show_predicted(page, record, NULL);
    }
    sl_section_table(page, record, &ranges);
    sl_section_setting(page, record);
}

/* ---- capacity models ---- */

/* A number with its unit: times and bytes in larger units, others with the unit's name. */
static const char *amount(sl_page *page, double value, const char *unit) {
    if (isnan(value))
        return "-";
    if (strcmp(unit, "s") == 0)
        return sl_section_number(page, value, SL_UNIT_SECONDS);
    if (strncmp(unit, "bytes", 5) == 0 && value >= 1000)
        return sl_page_text(page, "%s%.10s", sl_section_number(page, value, SL_UNIT_BYTES),
                            unit + 5);
    bool whole = value >= 100 || value == floor(value);
    const char *number =
        whole ? sl_section_number(page, value, SL_UNIT_COUNT) : sl_page_text(page, "%.3g", value);
    return *unit ? sl_page_text(page, "%s %.24s", number, unit) : number;
}

/* "1 h 10 min to 3 h 05 min", or "" without a range. */
static const char *range(sl_page *page, const bson_t *item, const char *unit) {
    double low = sl_look_number(item, "low"), high = sl_look_number(item, "high");
    return low < high
               ? sl_page_text(page, "%s to %s", amount(page, low, unit), amount(page, high, unit))
               : "";
}

/* Adds a bar for the value of `item`, with a whisker for its range. */
static void add_bar(sl_page *page, sl_bars *bars, const char *label, const bson_t *item,
                    const char *unit) {
    double value = sl_look_number(item, "value");
    sl_bar *bar = sl_page_bar(page, bars, label, value, amount(page, value, unit));
    double low = sl_look_number(item, "low"), high = sl_look_number(item, "high");
    if (bar && low < high) {
        bar->low = low;
        bar->high = high;
    }
}

/* Moves `walk` to the result that the model names as its answer; false if there is none. */
static bool find_answer(const bson_t *model, sl_walk *walk) {
    *walk = sl_walk_start(model, "results");
    while (sl_walk_next(walk)) {
        if (strcmp(sl_look_string(&walk->item, "name"), sl_look_string(model, "answer")) == 0)
            return true;
    }
    return false;
}

static void add_answer(sl_page *page, const bson_t *model) {
    sl_walk walk;
    if (!find_answer(model, &walk))
        return;
    const bson_t *answer = &walk.item;
    const char *unit = sl_look_string(answer, "unit"), *between = range(page, answer, unit);
    const char *decided = sl_look_string(answer, "decidedBy");
    sl_page_add_text(
        page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
        "Computed, not measured: %.40s is %s%s%s%s.%s%.60s%s", sl_look_string(answer, "name"),
        amount(page, sl_look_number(answer, "value"), unit), *between ? " (" : "", between,
        *between ? ")" : "", *decided ? " Decided by: " : "", decided, *decided ? "." : "");
}

static const char *amount_cell(sl_page *page, const bson_t *item, const char *path) {
    return amount(page, sl_look_number(item, path), sl_look_string(item, "unit"));
}

static const char *range_cell(sl_page *page, const bson_t *item, const char *path) {
    (void)path;
    return range(page, item, sl_look_string(item, "unit"));
}

static const sl_figure inputs[] = {
    {"input", "name", .left = sl_cell_text}, {"value", "value", .right = amount_cell},
    {"range", .left = range_cell},           {"from", "from", .left = sl_cell_text},
    {"why", "note", .left = sl_cell_text},   {0},
};
static const sl_figure results[] = {
    {"result", "name", .left = sl_cell_text},
    {"value", "value", .right = amount_cell},
    {"range", .left = range_cell},
    {"decided by", "decidedBy", .left = sl_cell_text},
    {"published", "published", .right = amount_cell},
    {"quotient", "quotient", .right = sl_cell_ratio},
    {"how", "how", .left = sl_cell_text},
    {0},
};
static const sl_figure formulas[] = {
    {"result", "name", .left = sl_cell_text},
    {"formula", "formula", .left = sl_cell_text},
    {"remark", "note", .left = sl_cell_text},
    {0},
};
static const sl_figure points[] = {
    {"result", "result", .left = sl_cell_text},
    {"set-up", "name", .left = sl_cell_text},
    {"computed", "value", .right = amount_cell},
    {"published", "published", .right = amount_cell},
    {"quotient", "quotient", .right = sl_cell_ratio},
    {"how", "how", .left = sl_cell_text},
    {0},
};

static void show_sweep(sl_page *page, const bson_t *model) {
    const char *input = sl_look_string(model, "sweep.input"),
               *unit = sl_look_string(model, "sweep.unit");
    const char *result = sl_look_string(model, "sweep.result");
    const char *const titles[] = {input, result, "range", "decided by"};
    size_t rows = 0;
    if (sl_walk_count(model, "sweep.rows") == 0)
        return;
    sl_bars *bars = sl_page_add_bars(page, sl_page_text(page, "%.80s by %.80s", result, input),
                                     "All other inputs as in the model.",
                                     strcmp(unit, "s") == 0 ? SL_UNIT_SECONDS : SL_UNIT_COUNT);
    sl_page_table *table = sl_page_add_table(page, "Sweep", titles, "rrll", 4);
    for (sl_walk walk = sl_walk_start(model, "sweep.rows"); sl_walk_next(&walk);) {
        if (rows++ >= SL_ROWS_MAX)
            continue;
        const char *label = amount(page, sl_look_number(&walk.item, "input"), "");
        add_bar(page, bars, label, &walk.item, unit);
        sl_page_cell(page, table, label);
        sl_page_cell(page, table, amount(page, sl_look_number(&walk.item, "value"), unit));
        sl_page_cell(page, table, range(page, &walk.item, unit));
        sl_page_cell(page, table, sl_look_string(&walk.item, "decidedBy"));
    }
    sl_section_more(page, table, rows);
}

/* Bars of the results that are times: what the load waits for, and what is idle. */
static void show_times(sl_page *page, const bson_t *model) {
    size_t row = 0;
    sl_bars *bars =
        sl_page_add_bars(page, "Times", "The whisker is the range of the inputs.", SL_UNIT_SECONDS);
    for (sl_walk walk = sl_walk_start(model, "results"); sl_walk_next(&walk) && row < SL_ROWS_MAX;
         row++) {
        if (strcmp(sl_look_string(&walk.item, "unit"), "s") == 0)
            add_bar(page, bars, sl_look_string(&walk.item, "name"), &walk.item, "s");
    }
}

void sl_sections_capacity(sl_page *page, const bson_t *record) {
    static const char *const texts[] = {"title", "about"};
    static const sl_array tables[] = {
        {"inputs", "Inputs", .columns = inputs},
        {"results", "Results", .columns = results},
        {"results", "Formulas", .columns = formulas},
        {"points", "Published points", .columns = points},
    };
    bson_t model;
    if (!sl_look_inside(record, "capacity", &model))
        return;
    add_answer(page, &model);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = sl_look_string(&model, texts[i]);
        if (*text)
            sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, "%s", text);
    }
    show_times(page, &model);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        sl_section_table(page, &model, &tables[i]);
    show_sweep(page, &model);
}
