/* SPDX-License-Identifier: Apache-2.0 */
/* Compares reports. A report is one run of the program and has one value for each figure of each
 * query. The test (difference.h) uses these values, not the repeats within a run. A query is not
 * compared if its answer was wrong, or too many of its operations failed, in any run of a side.
 *
 * Each row of the table is a test. Holm's rule corrects for the number of rows: when nothing
 * differs, the probability of any false verdict in the table is at most 5 %. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "report/lookup.h"
#include "report/run_record.h"
#include "util/print.h"
#include "util/text_table.h"

#include "difference.h"

#define QUERIES_MAX 2500 /* of a report: the time grows with their square */
#define LEVEL 0.05
#define LABEL_ROOM 120
#define KEY_ROOM 1000u /* also of long names */

/* The compared figures, and their paths in an entry of a report. */
static const struct {
    const char *path, *name;
    bool higher_is_better;
} figures[] = {
    {"medianMs", "median ms", false},
    {"operationsPerSecond", "operations/s", true},
    {"latencyMs.p50", "p50 ms", false},
    {"latencyMs.p99", "p99 ms", false},
};
#define FIGURES (sizeof figures / sizeof figures[0])
#define ROWS_MAX (QUERIES_MAX * FIGURES)

typedef struct side {
    const bson_t *const *reports;
    size_t count;
    const char *name;
    bool preferences; /* a run measured a query with several read preferences */
} side;

/* One figure of one query; or a query that is not compared, which has no figure. */
typedef struct row {
    char key[KEY_ROOM];     /* of the query: key_of */
    char label[LABEL_ROOM]; /* the key, safe to print */
    size_t figure;          /* index into `figures`; FIGURES: none */
    sl_difference difference;
    sl_significance verdict; /* corrected for the number of rows */
    size_t old_runs, new_runs;
    char reason[SL_UNSOUND_ROOM + 60]; /* why the query is not compared; "": it is */
} row;

/* ---- reading ---- */

/* The key of an entry: "suite/query, limit 100, clients 8". The read preference is part of it only
 * when a run measured several, so that two reports with one preference each can be compared. False
 * when `entry` has no suite or name. */
static bool key_of(const side *s, const bson_t *entry, char key[KEY_ROOM]) {
    static const char *const parts[] = {"limit", "clients", "rate"};
    const char *suite = sl_look_text(entry, "suite"), *name = sl_look_text(entry, "name");
    if (!suite || !name)
        return false;
    size_t used = (size_t)snprintf(key, KEY_ROOM, "%.400s/%.400s", suite, name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && used < KEY_ROOM; i++) {
        double number = sl_look_number(entry, parts[i]);
        if (number > 0)
            used += (size_t)snprintf(key + used, KEY_ROOM - used, ", %s %.15g", parts[i], number);
    }
    const char *phase = sl_look_text(entry, "phase");
    const char *preference = sl_look_text(entry, "readPreference");
    if (phase && used < KEY_ROOM)
        used += (size_t)snprintf(key + used, KEY_ROOM - used, ", %.20s", phase);
    if (s->preferences && preference && used < KEY_ROOM)
        snprintf(key + used, KEY_ROOM - used, ", %.20s", preference);
    return true;
}

/* Moves the walk over the entries of a report to the next one with this key. */
static bool find_key(const side *s, sl_walk *walk, const char *key) {
    char other[KEY_ROOM];
    while (sl_walk_next(walk)) {
        if (key_of(s, &walk->item, other) && strcmp(other, key) == 0)
            return true;
    }
    return false;
}

/* Finds the first entry of a side with this key, and its report. False: there is none. */
static bool find_first(const side *s, const char *key, size_t *report, sl_walk *walk) {
    for (*report = 0; *report < s->count; ++*report) {
        *walk = sl_walk_start(s->reports[*report], "queries");
        if (find_key(s, walk, key))
            return true;
    }
    return false;
}

/* Are there two entries in a report that differ only in the read preference? */
static bool has_preferences(const side *s) {
    char key[KEY_ROOM];
    for (size_t i = 0; i < s->count; i++) {
        for (sl_walk walk = sl_walk_start(s->reports[i], "queries"); sl_walk_next(&walk);) {
            sl_walk later = walk;
            if (key_of(s, &walk.item, key) && find_key(s, &later, key))
                return true;
        }
    }
    return false;
}

static bool check_reports(const side *s, sl_error *error) {
    for (size_t i = 0; i < s->count; i++) {
        char key[KEY_ROOM];
        size_t named = 0;
        sl_walk walk = sl_walk_start(s->reports[i], "queries");
        if (!walk.more)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the %s file (number %zu of its side) is not a report of "
                                "shardquery run",
                                s->name, i + 1);
        if (sl_look_count(s->reports[i], "queries") > QUERIES_MAX)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the %s file (number %zu of its side) has more than %d queries, "
                                "the most that are compared: measure them in several reports",
                                s->name, i + 1, QUERIES_MAX);
        while (sl_walk_next(&walk) && key_of(s, &walk.item, key))
            named++;
        if (named < sl_look_count(s->reports[i], "queries"))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the %s file (number %zu of its side) is not a report of "
                                "shardquery run: query %zu lacks its suite or name",
                                s->name, i + 1, named + 1);
    }
    return true;
}

/* The figure of a query in a report of a side; 0: it has none. */
static double figure_of(const side *s, size_t report, const char *key, size_t figure) {
    double value = 0;
    sl_walk walk = sl_walk_start(s->reports[report], "queries");
    while (!(value > 0) && find_key(s, &walk, key))
        value = sl_look_number(&walk.item, figures[figure].path);
    return value > 0 ? value : 0;
}

/* Reads a figure of a query, and the date of the report, from each report of a side that has it;
 * with `pairs`, if the report of that side has it, too. Returns the number of values. */
static size_t read_figures(const side *s, const side *pairs, const char *key, size_t figure,
                           double *values, double *times) {
    size_t count = 0;
    for (size_t i = 0; i < s->count && count < SL_RUNS_MAX; i++) {
        const double date = sl_look_number(s->reports[i], "date");
        values[count] = figure_of(s, i, key, figure);
        times[count] = isnan(date) ? (double)i : date;
        count += values[count] > 0 &&
                 (!pairs || (i < pairs->count && figure_of(pairs, i, key, figure) > 0));
    }
    return count;
}

/* Counts the runs of a side with this query, and those whose figures do not count. `why`: the first
 * reason. */
static size_t count_unsound(const side *s, const char *key, size_t *runs,
                            char why[SL_UNSOUND_ROOM]) {
    size_t unsound = 0;
    *runs = 0;
    for (size_t i = 0; i < s->count; i++) {
        char text[SL_UNSOUND_ROOM] = "";
        sl_walk walk = sl_walk_start(s->reports[i], "queries");
        bool found = false, sound = true;
        while (sound && find_key(s, &walk, key)) {
            found = true;
            sound = !sl_look_unsound(&walk.item, text);
        }
        *runs += found;
        if (!sound && unsound++ == 0)
            memcpy(why, text, sizeof text);
    }
    return unsound;
}

/* Counts the runs with a query that is in both sides. Do any of them not count? */
static bool is_unsound(row *r, const side *old, const side *new) {
    char why[2][SL_UNSOUND_ROOM];
    size_t before = count_unsound(old, r->key, &r->old_runs, why[0]);
    size_t after = count_unsound(new, r->key, &r->new_runs, why[1]);
    if (r->old_runs == 0 || r->new_runs == 0 || before + after == 0)
        return false;
    snprintf(r->reason, sizeof r->reason, "in %zu old and %zu new runs, %s", before, after,
             why[before == 0]);
    return true;
}

/* ---- comparing ---- */

static bool compare_figure(row *r, const side *old, const side *new,
                           const sl_comparison_options *options) {
    static _Thread_local double values[2][SL_RUNS_MAX], times[2][SL_RUNS_MAX];
    const bool paired = options->paired;
    r->old_runs = read_figures(old, paired ? new : NULL, r->key, r->figure, values[0], times[0]);
    r->new_runs = read_figures(new, paired ? old : NULL, r->key, r->figure, values[1], times[1]);
    if (r->old_runs == 0 || r->new_runs == 0)
        return false;
    r->difference = paired ? sl_difference_paired(values[0], values[1], r->old_runs, options->seed)
                           : sl_difference_unpaired(values[0], times[0], r->old_runs, values[1],
                                                    times[1], r->new_runs, options->seed);
    return true;
}

static bool has_rows(const row *rows, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].key, key) == 0)
            return true;
    }
    return false;
}

/* Fills the rows of a query: one without a figure if it is in both sides, but not comparable.
 * Returns their number. */
static size_t fill_query(row *rows, const char *key, const side *old, const side *new,
                         const sl_comparison_options *options) {
    row made = {.figure = FIGURES, .difference.verdict = SL_TOO_FEW};
    size_t count = 0;
    memcpy(made.key, key, sizeof made.key);
    sl_text_printable(sl_text_of(key), made.label, sizeof made.label);
    const bool sound = !is_unsound(&made, old, new);
    for (size_t figure = 0; sound && figure < FIGURES; figure++) {
        rows[count] = made;
        rows[count].figure = figure;
        count += compare_figure(&rows[count], old, new, options);
    }
    if (count > 0 || made.old_runs == 0 || made.new_runs == 0)
        return count;
    if (sound)
        strcpy(made.reason, "it has no figure that both sides have");
    rows[0] = made;
    return 1;
}

/* Fills the rows of each query that both sides have. Returns their number; more than ROWS_MAX:
 * there are too many queries. */
static size_t fill_rows(row *rows, const side *old, const side *new,
                        const sl_comparison_options *options) {
    size_t count = 0;
    for (size_t i = 0; i < new->count; i++) {
        for (sl_walk walk = sl_walk_start(new->reports[i], "queries"); sl_walk_next(&walk);) {
            char key[KEY_ROOM];
            key_of(new, &walk.item, key);
            if (has_rows(rows, count, key))
                continue;
            if (count + FIGURES > ROWS_MAX)
                return ROWS_MAX + 1;
            count += fill_query(&rows[count], key, old, new, options);
        }
    }
    return count;
}

static int by_p(const void *a, const void *b) {
    const row *x = *(const row *const *)a, *y = *(const row *const *)b;
    return (x->difference.p > y->difference.p) - (x->difference.p < y->difference.p);
}

/* Holm's rule: the smallest p must be at most 5 % / tests, the next 5 % / (tests - 1), and so on.
 * From the first p that is larger, no row is significant. False without memory. */
static bool correct_verdicts(row *rows, size_t count) {
    row **order = malloc((count + 1) * sizeof(row *));
    size_t tests = 0;
    if (!order)
        return false;
    for (size_t i = 0; i < count; i++) {
        rows[i].verdict = rows[i].difference.verdict;
        if (rows[i].verdict != SL_TOO_FEW)
            order[tests++] = &rows[i];
    }
    qsort(order, tests, sizeof(row *), by_p);
    bool significant = true;
    for (size_t i = 0; i < tests; i++) {
        significant = significant && order[i]->difference.p <= LEVEL / (double)(tests - i);
        if (!significant)
            order[i]->verdict = SL_NO_DIFFERENCE;
    }
    free(order);
    return true;
}

static bool is_worse(const row *r, double threshold) {
    if (r->reason[0])
        return false;
    bool better = figures[r->figure].higher_is_better;
    if (r->verdict != (better ? SL_LOWER : SL_HIGHER))
        return false;
    double change = better ? 1 / r->difference.ratio : r->difference.ratio;
    return change > 1 + threshold;
}

static const char *verdict_of(const row *r) {
    if (r->reason[0])
        return "not comparable";
    bool better = figures[r->figure].higher_is_better;
    switch (r->verdict) {
    case SL_LOWER:
        return better ? "slower" : "faster";
    case SL_HIGHER:
        return better ? "faster" : "slower";
    case SL_NO_DIFFERENCE:
        return "no difference shown";
    case SL_TOO_FEW:
        break;
    }
    return "too few runs to tell";
}

/* ---- printing ---- */

static void print_row(sl_text_table *table, const row *r) {
    if (r->reason[0]) {
        const char *const cells[] = {r->label, "-", "-", "-", NULL, "-", "-", verdict_of(r)};
        for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
            if (cells[i])
                sl_text_table_cell(table, "%s", cells[i]);
            else
                sl_text_table_cell(table, "%zu + %zu", r->old_runs, r->new_runs);
        }
        return;
    }
    char before[SL_FIGURE_ROOM], after[SL_FIGURE_ROOM];
    const sl_difference *d = &r->difference;
    sl_text_table_cell(table, "%s", r->label);
    sl_text_table_cell(table, "%s", figures[r->figure].name);
    sl_text_table_cell(table, "%s", sl_figure_text(d->old_mean, d->old_mean < 1 ? 4 : 2, before));
    sl_text_table_cell(table, "%s", sl_figure_text(d->new_mean, d->new_mean < 1 ? 4 : 2, after));
    sl_text_table_cell(table, "%zu + %zu", r->old_runs, r->new_runs);
    sl_text_table_cell(table, "%.3f", d->ratio);
    if (isnan(d->low))
        sl_text_table_cell(table, "-");
    else
        sl_text_table_cell(table, "%.3f to %.3f", d->low, d->high);
    sl_text_table_cell(table, "%s", verdict_of(r));
}

static void note_row(FILE *out, const row *r) {
    if (r->reason[0]) {
        sl_print_to(out, "%s is not compared: %s.\n", r->label, r->reason);
        return;
    }
    const sl_difference *d = &r->difference;
    const char *name = figures[r->figure].name;
    if (d->verdict != r->verdict)
        sl_print_to(out,
                    "%s, %s: significant as a single test (p %.3f), but not after the correction "
                    "for all rows of the table.\n",
                    r->label, name, d->p);
    if (d->old_outliers + d->new_outliers > 0)
        sl_print_to(
            out,
            "%s, %s: %zu old and %zu new runs are outliers, far from the median of their side.\n",
            r->label, name, d->old_outliers, d->new_outliers);
    if (d->drifts)
        sl_print_to(out,
                    "%s, %s: the runs of both sides drifted by %+.1f %% from the first to the "
                    "last.\n",
                    r->label, name, 100 * (d->drift - 1));
}

/* Notes the conditions that differ between two entries with the same key. */
static void note_entries(FILE *out, const char *label, const bson_t *old, const bson_t *new) {
    static const char *const parts[] = {"pipeline", "body", "options"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bson_t a, b;
        bool in_old = sl_look_inside(old, parts[i], &a), in_new = sl_look_inside(new, parts[i], &b);
        if (in_old != in_new || !bson_equal(&a, &b))
            sl_print_to(out, "%s: the %s is not the same on both sides.\n", label,
                        strcmp(parts[i], "body") == 0 ? "query" : parts[i]);
    }
    const char *was = sl_look_text(old, "answerHash"), *is = sl_look_text(new, "answerHash");
    if (was && is && strcmp(was, is) != 0)
        sl_print_to(out, "%s: the answer is not the same on both sides.\n", label);
    for (size_t i = 0; i < FIGURES; i++) {
        const bool had = sl_look_number(old, figures[i].path) > 0,
                   has = sl_look_number(new, figures[i].path) > 0;
        if (had != has)
            sl_print_to(out, "%s: its first %s report has no %s.\n", label, had ? "new" : "old",
                        figures[i].name);
    }
    double before = sl_look_number(old, "documents"), after = sl_look_number(new, "documents");
    if (before >= 0 && after >= 0 && before != after)
        sl_print_to(out, "%s: the collections had %.0f (old) and %.0f (new) documents.\n", label,
                    before, after);
}

/* Notes the queries that only this side has and, if it is the new side, the conditions that differ
 * between the first reports of the two sides with a query. False: only this side has a query. */
static bool note_conditions(FILE *out, const side *s, const side *other, bool new) {
    char key[KEY_ROOM], label[LABEL_ROOM];
    size_t first;
    bool all = true;
    for (size_t i = 0; i < s->count; i++) {
        for (sl_walk walk = sl_walk_start(s->reports[i], "queries"), found; sl_walk_next(&walk);) {
            key_of(s, &walk.item, key);
            if (find_first(s, key, &first, &found) && first < i)
                continue;
            sl_text_printable(sl_text_of(key), label, sizeof label);
            if (!find_first(other, key, &first, &found)) {
                sl_print_to(out, "%s: only in the %s report.\n", label, s->name);
                all = false;
            } else if (new) {
                note_entries(out, label, &found.item, &walk.item);
            }
        }
    }
    return all;
}

/* Notes reports of runs that have not ended. False: there is one. */
static bool note_incomplete(FILE *out, const side *s) {
    bool all = true;
    for (size_t i = 0; i < s->count; i++) {
        if (sl_look_truth(s->reports[i], "complete") != 0)
            continue;
        sl_print_to(out, "The run of the %s file (number %zu of its side) has not ended.\n",
                    s->name, i + 1);
        all = false;
    }
    return all;
}

static void print_legend(FILE *out, const row *rows, size_t count, bool paired) {
    size_t few = 0;
    for (size_t i = 0; i < count; i++)
        few += !rows[i].reason[0] && rows[i].difference.verdict == SL_TOO_FEW;
    sl_print_to(
        out,
        "\nold and new: geometric means of the runs; new/old: their ratio, with its 95 %% "
        "interval\n(permutation test over %s). The level of 5 %% holds for all rows together.\n",
        paired ? "pairs of runs" : "runs");
    if (few > 0)
        sl_print_to(
            out, "A verdict needs %s.\n",
            paired ? "6 pairs of runs"
                   : "4 runs of the program on each side, or 6 pairs of runs: see `compare --ab`");
    else if (!paired)
        sl_print_to(
            out, "The two sides were not measured in pairs: a change of the machine between them "
                 "appears as a difference.\n`compare --ab` measures them in pairs.\n");
}

static bool record_figure(bson_t *item, const row *r) {
    const sl_difference *d = &r->difference;
    if (r->reason[0])
        return BSON_APPEND_UTF8(item, "reason", r->reason);
    return BSON_APPEND_UTF8(item, "figure", figures[r->figure].name) &&
           BSON_APPEND_DOUBLE(item, "old", d->old_mean) &&
           BSON_APPEND_DOUBLE(item, "new", d->new_mean) &&
           BSON_APPEND_DOUBLE(item, "ratio", d->ratio) &&
           (isnan(d->low) ||
            (BSON_APPEND_DOUBLE(item, "low", d->low) && BSON_APPEND_DOUBLE(item, "high", d->high) &&
             BSON_APPEND_DOUBLE(item, "p", d->p))) &&
           BSON_APPEND_INT64(item, "outliers", (int64_t)(d->old_outliers + d->new_outliers)) &&
           (!d->drifts || BSON_APPEND_DOUBLE(item, "drift", d->drift));
}

static bool record_rows(bson_t *record, const row *rows, size_t count, bool paired) {
    bson_t list, item;
    bool ok = BSON_APPEND_BOOL(record, "paired", paired) &&
              BSON_APPEND_UTF8(record, "estimator", "ratio of geometric means, new / old") &&
              BSON_APPEND_ARRAY_BEGIN(record, "rows", &list);
    for (size_t i = 0; ok && i < count; i++) {
        ok = sl_record_begin_item(&list, i, &item) &&
             BSON_APPEND_UTF8(&item, "query", rows[i].label) &&
             BSON_APPEND_INT64(&item, "oldRuns", (int64_t)rows[i].old_runs) &&
             BSON_APPEND_INT64(&item, "newRuns", (int64_t)rows[i].new_runs) &&
             record_figure(&item, &rows[i]) &&
             BSON_APPEND_UTF8(&item, "verdict", verdict_of(&rows[i])) &&
             bson_append_document_end(&list, &item);
    }
    return ok && bson_append_array_end(record, &list);
}

bool sl_reports_compare(const bson_t *const *old_reports, size_t old_count,
                        const bson_t *const *new_reports, size_t new_count,
                        const sl_comparison_options *options, FILE *out, bson_t *record,
                        sl_exit *verdict, sl_error *error) {
    static const sl_text_column columns[] = {
        {"query", .left = true},
        {"figure", .left = true},
        {.title = "old"},
        {.title = "new"},
        {.title = "runs"},
        {.title = "new/old"},
        {.title = "95 % interval"},
        {"the new side is", .left = true},
        {0},
    };
    side old = {old_reports, old_count, "old", false}, new = {new_reports, new_count, "new", false};
    *verdict = SL_EXIT_OK;
    if (!check_reports(&old, error) || !check_reports(&new, error))
        return false;
    old.preferences = new.preferences = has_preferences(&old) || has_preferences(&new);
    row *rows = calloc(ROWS_MAX, sizeof *rows);
    size_t count = rows ? fill_rows(rows, &old, &new, options) : 0;
    if (rows && (count == 0 || count > ROWS_MAX)) {
        free(rows);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            count == 0
                                ? "the two sides have no figure of a query in common"
                                : "the reports have too many queries: compare fewer at once");
    }
    bool ok = rows && correct_verdicts(rows, count);
    sl_text_table *table = sl_text_table_create(columns);
    for (size_t i = 0; ok && i < count; i++) {
        print_row(table, &rows[i]);
        if (rows[i].reason[0])
            *verdict = SL_EXIT_VERIFICATION;
        else if (*verdict == SL_EXIT_OK && is_worse(&rows[i], options->threshold))
            *verdict = SL_EXIT_REJECTS;
    }
    if (!ok) {
        sl_text_table_destroy(table);
    } else {
        sl_text_table_print(table, out, 0);
        print_legend(out, rows, count, options->paired);
        for (size_t i = 0; i < count; i++)
            note_row(out, &rows[i]);
        note_conditions(out, &new, &old, true);
        const bool common = note_conditions(out, &old, &new, false),
                   complete = note_incomplete(out, &old);
        if (!note_incomplete(out, &new) || !complete || !common)
            *verdict = SL_EXIT_VERIFICATION;
    }
    ok = ok && (!record || record_rows(record, rows, count, options->paired));
    free(rows);
    return ok || sl_error_memory(error, "comparing reports");
}
