/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the query runner: every timing of every query, so that statistics can be made again
 * and two runs be compared. */
#include <shardload/query.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/print.h>
#include <shardload/text.h>

#define QUERIES_MAX 10000

double sl_outcome_rate(const sl_query_outcome *outcome) {
    const sl_query_run *run = outcome->run;
    if (!outcome->documents_known || run->count == 0 || run->sample.median <= 0)
        return 0;
    return (double)outcome->documents / run->sample.median;
}

/* ---- writing ---- */

static bool append_timings(bson_t *entry, const sl_query_run *run) {
    bson_t timings;
    if (!BSON_APPEND_ARRAY_BEGIN(entry, "timingsMs", &timings))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        char room[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
        if (!BSON_APPEND_DOUBLE(&timings, key, run->timings[i]))
            return false;
    }
    if (!bson_append_array_end(entry, &timings))
        return false;
    const sl_sample *sample = &run->sample;
    return run->count == 0 || (BSON_APPEND_DOUBLE(entry, "minMs", sample->minimum) &&
                               BSON_APPEND_DOUBLE(entry, "medianMs", sample->median) &&
                               BSON_APPEND_DOUBLE(entry, "meanMs", sample->mean) &&
                               BSON_APPEND_DOUBLE(entry, "deviationMs", sample->deviation) &&
                               BSON_APPEND_DOUBLE(entry, "maxMs", sample->maximum));
}

static bool append_differences(bson_t *entry, const sl_differences *differences) {
    bson_t list;
    bool ok = BSON_APPEND_INT64(entry, "differenceCount", (int64_t)differences->count) &&
              BSON_APPEND_ARRAY_BEGIN(entry, "differences", &list);
    for (uint32_t i = 0; ok && i < differences->count && i < SL_DIFFERENCES_KEPT; i++) {
        char room[16];
        const char *key;
        bson_uint32_to_string(i, &key, room, sizeof room);
        ok = BSON_APPEND_UTF8(&list, key, differences->text[i]);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool fill(bson_t *entry, const sl_query_outcome *outcome) {
    const sl_query *query = outcome->query;
    const sl_query_options *options = outcome->options;
    const sl_query_run *run = outcome->run;
    const char *preference =
        options->read_preference ? options->read_preference : query->read_preference;
    double rate = sl_outcome_rate(outcome);
    return BSON_APPEND_UTF8(entry, "suite", outcome->suite->name) &&
           BSON_APPEND_UTF8(entry, "name", query->name) &&
           BSON_APPEND_UTF8(entry, "database", options->database) &&
           BSON_APPEND_UTF8(entry, "collection", options->collection) &&
           (!outcome->documents_known ||
            BSON_APPEND_INT64(entry, "documents", (int64_t)outcome->documents)) &&
           BSON_APPEND_ARRAY(entry, "pipeline", query->pipeline) &&
           BSON_APPEND_DOCUMENT(entry, "options", query->options) &&
           (!preference || BSON_APPEND_UTF8(entry, "readPreference", preference)) &&
           BSON_APPEND_INT64(entry, "warmUp", options->warm_up) &&
           BSON_APPEND_INT64(entry, "repeat", options->repeat) && append_timings(entry, run) &&
           (rate <= 0 || BSON_APPEND_DOUBLE(entry, "documentsPerMs", rate)) &&
           BSON_APPEND_UTF8(entry, "answer", sl_answer_text(run->answer)) &&
           (run->answer != SL_ANSWER_WRONG || append_differences(entry, &run->differences)) &&
           (run->error.code == SL_EXIT_OK ||
            BSON_APPEND_UTF8(entry, "error", run->error.message)) &&
           (!run->explained || BSON_APPEND_DOCUMENT(entry, "explain", run->explained)) &&
           BSON_APPEND_INT64(entry, "resultCount", (int64_t)run->document_count) &&
           BSON_APPEND_BOOL(entry, "resultsComplete", !run->truncated) &&
           BSON_APPEND_ARRAY(entry, "results", run->documents);
}

bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome) {
    char room[16];
    const char *key;
    bson_t *entry = bson_new();
    bson_uint32_to_string(bson_count_keys(queries), &key, room, sizeof room);
    bool ok = fill(entry, outcome) && BSON_APPEND_DOCUMENT(queries, key, entry);
    bson_destroy(entry);
    return ok;
}

/* ---- comparing ---- */

/* One query of a report, as far as it is compared. The pointers go into the report. */
typedef struct entry {
    const char *suite;
    const char *name;
    char label[120]; /* suite/name, safe to print */
    double *timings;
    size_t count;
    int64_t documents; /* -1 when not known */
    bson_t pipeline;
} entry;

typedef struct entries {
    entry *items;
    size_t count;
} entries;

static void clear(entries *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].timings);
    free(list->items);
    *list = (entries){0};
}

static bool text_in(const bson_iter_t *document, const char *key, const char **text) {
    bson_iter_t found;
    if (!bson_iter_recurse(document, &found) || !bson_iter_find(&found, key) ||
        !BSON_ITER_HOLDS_UTF8(&found))
        return false;
    *text = bson_iter_utf8(&found, NULL);
    return true;
}

static bool array_in(const bson_iter_t *document, const char *key, bson_t *array) {
    bson_iter_t found;
    if (!bson_iter_recurse(document, &found) || !bson_iter_find(&found, key) ||
        !BSON_ITER_HOLDS_ARRAY(&found))
        return false;
    uint32_t length;
    const uint8_t *bytes;
    bson_iter_array(&found, &length, &bytes);
    return bson_init_static(array, bytes, length);
}

static bool read_entry(const bson_iter_t *document, entry *into) {
    bson_t timings;
    bson_iter_t value;
    if (!BSON_ITER_HOLDS_DOCUMENT(document) || !text_in(document, "suite", &into->suite) ||
        !text_in(document, "name", &into->name) ||
        !array_in(document, "pipeline", &into->pipeline) ||
        !array_in(document, "timingsMs", &timings))
        return false;
    char *label = bson_strdup_printf("%s/%s", into->suite, into->name);
    sl_text_printable(sl_text_of(label), into->label, sizeof into->label);
    bson_free(label);
    into->documents = -1;
    if (bson_iter_recurse(document, &value) && bson_iter_find(&value, "documents") &&
        BSON_ITER_HOLDS_NUMBER(&value))
        into->documents = bson_iter_as_int64(&value);
    into->timings = calloc(bson_count_keys(&timings) + 1, sizeof *into->timings);
    if (!into->timings || !bson_iter_init(&value, &timings))
        return false;
    while (bson_iter_next(&value)) {
        double milliseconds = BSON_ITER_HOLDS_NUMBER(&value) ? bson_iter_as_double(&value) : 0;
        if (!(milliseconds > 0))
            return false;
        into->timings[into->count++] = milliseconds;
    }
    return true;
}

static bool read_entries(const bson_t *report, const char *which, entries *list, sl_error *error) {
    bson_iter_t queries;
    bson_iter_t one;
    *list = (entries){0};
    if (!bson_iter_init_find(&queries, report, "queries") || !BSON_ITER_HOLDS_ARRAY(&queries) ||
        !bson_iter_recurse(&queries, &one))
        return sl_error_set(error, SL_EXIT_SOURCE, "the %s file is not a report of shardquery run",
                            which);
    list->items = calloc(QUERIES_MAX, sizeof *list->items);
    if (!list->items)
        return sl_error_memory(error, "reading a report");
    while (bson_iter_next(&one)) {
        if (list->count == QUERIES_MAX || !read_entry(&one, &list->items[list->count++]))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the %s file is not a report of shardquery run: query %zu lacks "
                                "its suite, name, pipeline or timings above zero",
                                which, list->count);
    }
    return true;
}

static const entry *find(const entries *list, const entry *like) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, like->name) == 0 &&
            strcmp(list->items[i].suite, like->suite) == 0)
            return &list->items[i];
    }
    return NULL;
}

static void add_row(sl_table *table, entry *old, entry *new) {
    char before[SL_FIGURE_ROOM];
    char after[SL_FIGURE_ROOM];
    sl_ratio ratio;
    sl_table_cell(table, "%s", new->label);
    if (!sl_ratio_of(old->timings, old->count, new->timings, new->count, &ratio)) {
        for (int i = 0; i < 4; i++)
            sl_table_cell(table, "-");
        sl_table_cell(table, "cannot be compared");
        return;
    }
    sl_sample old_sample = sl_sample_of(old->timings, old->count);
    sl_sample new_sample = sl_sample_of(new->timings, new->count);
    sl_table_cell(table, "%s", sl_table_figure(old_sample.median, 2, before));
    sl_table_cell(table, "%s", sl_table_figure(new_sample.median, 2, after));
    sl_table_cell(table, "%.3f", ratio.estimate);
    sl_table_cell(table, "%.3f to %.3f (%.1f %%)", ratio.low, ratio.high, 100 * ratio.confidence);
    sl_table_cell(table, "%s", sl_verdict_text(ratio.verdict));
}

static void note(FILE *out, const entry *old, const entry *new) {
    if (!bson_equal(&old->pipeline, &new->pipeline))
        sl_print_to(out, "%s: the pipelines are not the same.\n", new->label);
    if (old->documents != new->documents)
        sl_print_to(out, "%s: the collections had %" PRId64 " and %" PRId64 " documents.\n",
                    new->label, old->documents, new->documents);
    if (old->count > SL_RATIO_TIMINGS_MAX || new->count > SL_RATIO_TIMINGS_MAX)
        sl_print_to(out, "%s: more than %d timings cannot be compared.\n", new->label,
                    SL_RATIO_TIMINGS_MAX);
    else if (old->count < 4 || new->count < 4)
        sl_print_to(out, "%s: %zu and %zu timings are too few to tell anything; repeat 5 times.\n",
                    new->label, old->count, new->count);
}

bool sl_report_compare(const bson_t *old_report, const bson_t *new_report, FILE *out,
                       sl_error *error) {
    static const struct {
        const char *title;
        bool right;
    } columns[] = {{"query", false},  {"old median ms", true}, {"new median ms", true},
                   {"new/old", true}, {"interval", true},      {"the new one is", false}};
    entries before = {0};
    entries after = {0};
    sl_table *table = sl_table_create();
    bool ok = table && read_entries(old_report, "old", &before, error) &&
              read_entries(new_report, "new", &after, error);
    if (!table)
        sl_error_memory(error, "comparing reports");
    if (!ok)
        goto done;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        sl_table_column(table, columns[i].title, columns[i].right);
    for (size_t i = 0; i < after.count; i++) {
        const entry *old = find(&before, &after.items[i]);
        if (old)
            add_row(table, &before.items[old - before.items], &after.items[i]);
    }
    ok = sl_table_print(table, out, 0) || sl_error_memory(error, "comparing reports");
    for (size_t i = 0; ok && i < after.count; i++) {
        const entry *old = find(&before, &after.items[i]);
        if (old)
            note(out, old, &after.items[i]);
        else
            sl_print_to(out, "%s: only in the new report.\n", after.items[i].label);
    }
    for (size_t i = 0; ok && i < before.count; i++) {
        if (!find(&after, &before.items[i]))
            sl_print_to(out, "%s: only in the old report.\n", before.items[i].label);
    }
done:
    clear(&before);
    clear(&after);
    sl_table_destroy(table);
    return ok;
}
