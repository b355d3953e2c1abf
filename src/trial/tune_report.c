/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a tuning: tune.json, the recommended options as a configuration file, and tables
 * on standard output. */
#include "tune_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/context.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/text_table.h"

/* ---- tune.json ----
 *
 * Writes the results of a tuning: tune.json, and the recommended options as a configuration
 * file. */

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

static void append_start(const sl_tune *tune, bson_t *record) {
    bson_t section;
    sl_record_head(record, "tune", tune->config->load->program_version, tune->begun_at,
                   tune->config->load->options);
    if (tune->connection)
        sl_connection_record(tune->connection, record);
    BSON_APPEND_DOCUMENT_BEGIN(record, "sample", &section);
    BSON_APPEND_DOUBLE(&section, "share", tune->share);
    INT64(&section, "records", tune->documents);
    INT64(&section, "textBytes", tune->text_bytes);
    INT64(&section, "bsonBytes", tune->bson_bytes);
    bson_append_document_end(record, &section);
}

static void append_dimensions(const sl_tune *tune, bson_t *record) {
    bson_t section, array;
    BSON_APPEND_DOCUMENT_BEGIN(record, "dimensions", &section);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        const sl_tune_values *values = &tune->config->values[d];
        bson_append_array_begin(&section, sl_tune_key(d), -1, &array);
        for (size_t i = 0; i < values->count; i++) {
            char room[SL_ARRAY_KEY_ROOM];
            sl_tune_append_value(&array, sl_array_key(i, room), d, values->items[i]);
        }
        bson_append_array_end(&section, &array);
    }
    bson_append_document_end(record, &section);
}

static void append_settings(const sl_tune *tune, bson_t *record) {
    bson_t settings, setting, trials, trial;
    BSON_APPEND_ARRAY_BEGIN(record, "settings", &settings);
    for (size_t i = 0; i < tune->search.count; i++) {
        const sl_search_cell *cell = &tune->search.cells[i];
        sl_record_begin_item(&settings, i, &setting);
        sl_tune_append_setting(tune, cell->at, &setting);
        BSON_APPEND_ARRAY_BEGIN(&setting, "trials", &trials);
        for (size_t k = 0; k < cell->trials; k++) {
            const sl_tune_trial *one = &tune->trials[i * SL_TUNE_TIMES_MAX + k];
            sl_record_begin_item(&trials, k, &trial);
            BSON_APPEND_DOUBLE(&trial, "afterSeconds", sl_rounded(one->after, 1000));
            INT64(&trial, "documents", one->documents);
            BSON_APPEND_DOUBLE(&trial, "seconds", one->seconds);
            BSON_APPEND_DOUBLE(&trial, "secondsLeft", sl_rounded(one->left, 1000));
            BSON_APPEND_DOUBLE(&trial, "rate", sl_rounded(cell->rates[k], 10));
            BCON_APPEND(&trial, "batchMilliseconds", "{", "p50",
                        BCON_DOUBLE(sl_rounded(one->p50, 1000)), "p99",
                        BCON_DOUBLE(sl_rounded(one->p99, 1000)), "}");
            if (!isnan(one->lag))
                BSON_APPEND_DOUBLE(&trial, "replicationLagSeconds", one->lag);
            bson_append_document_end(&trials, &trial);
        }
        bson_append_array_end(&setting, &trials);
        if (cell->trials > 0) {
            BSON_APPEND_DOUBLE(&setting, "rate", sl_rounded(cell->rate, 10));
        }
        if (cell->trials > 0 && !isnan(cell->low)) {
            BSON_APPEND_DOUBLE(&setting, "low", sl_rounded(cell->low, 10));
            BSON_APPEND_DOUBLE(&setting, "high", sl_rounded(cell->high, 10));
        }
        BSON_APPEND_UTF8(&setting, "stopped",
                         sl_tune_is_refused(tune, cell->at) ? "refused" : cell->stopped);
        bson_append_document_end(&settings, &setting);
    }
    bson_append_array_end(record, &settings);
    if (tune->search.trials > 0) {
        INT64(record, "best", tune->search.best);
        INT64(record, "recommended", tune->search.recommended);
        BSON_APPEND_DOUBLE(record, "noise", sl_rounded(tune->search.noise, 10000));
        BSON_APPEND_BOOL(record, "noiseMeasured", tune->search.noise_measured);
    }
    INT64(record, "trials", tune->search.trials);
    INT64(record, "gridTrials", tune->search.grid_trials);
}

static void append_storage(const sl_tune *tune, bson_t *record) {
    bson_t array, item;
    if (tune->storage_count == 0)
        return;
    BSON_APPEND_ARRAY_BEGIN(record, "storage", &array);
    for (size_t i = 0; i < tune->storage_count; i++) {
        const sl_tune_storage *storage = &tune->storage[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "compressor", storage->compressor);
        INT64(&item, "documents", storage->documents);
        if (storage->sized) {
            INT64(&item, "dataBytes", storage->data_bytes);
            INT64(&item, "storageBytes", storage->storage_bytes);
            INT64(&item, "indexBytes", storage->index_bytes);
        }
        if (storage->sized && storage->storage_bytes > 0)
            BSON_APPEND_DOUBLE(
                &item, "ratio",
                sl_rounded((double)storage->data_bytes / (double)storage->storage_bytes, 1000));
        BSON_APPEND_DOUBLE(&item, "rate", sl_rounded(storage->rate, 10));
        BSON_APPEND_ARRAY(&item, "queries", &storage->queries);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

void sl_tune_record(const sl_tune *tune, sl_exit code, bson_t *record) {
    append_start(tune, record);
    append_dimensions(tune, record);
    append_settings(tune, record);
    append_storage(tune, record);
    sl_record_tail(record, code);
}

/* ---- the recommendation as options ---- */

char *sl_tune_yaml(const sl_tune *tune) {
    const sl_search_cell *cell = &tune->search.cells[tune->search.recommended];
    char *text = NULL, stamp[32], rate[SL_HUMAN_ROOM];
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    if (!out)
        return NULL;
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    sl_print_to(out, "# Recommended by shardload tune on %s for %s.%s: %s documents/s in %s\n",
                stamp, tune->config->load->database, tune->config->load->collection,
                sl_human_count((uint64_t)cell->rate, rate), sl_plural(cell->trials, "trial"));
    fputs(
        "# These values are fixed. To start with them and change them during the load if that is\n"
        "# faster, add to the command line: --threads auto --batch-size auto\n",
        out);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        const char *value = sl_tune_value(tune, tune->search.recommended, d);
        if (*value)
            sl_print_to(out, "%s: %s\n", sl_tune_option(d), value);
    }
    return fclose(out) == 0 ? text : NULL;
}

/* ---- tables ----
 *
 * Prints the results of a tuning: tables of rates, the recommendation with its uncertainty, and the
 * storage of compressors. */

#define NOISE_REPORTED 0.05 /* noise above this is reported */
#define SETTINGS_SHOWN 40

char *sl_tune_describe(const sl_tune *tune, const size_t *at, char *out, size_t room) {
    const sl_tune_values *values = tune->config->values;
    char batch[SL_HUMAN_ROOM];
    const char *threads = values[SL_TUNE_THREADS].items[at[SL_TUNE_THREADS]];
    size_t used = (size_t)snprintf(
        out, room, "%s thread%s, %s per batch", threads, strcmp(threads, "1") == 0 ? "" : "s",
        sl_human_count(strtoull(values[SL_TUNE_BATCH_SIZE].items[at[SL_TUNE_BATCH_SIZE]], NULL, 10),
                       batch));
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++) {
        if (values[d].count > 1 && used < room)
            used += (size_t)snprintf(out + used, room - used, ", %s %s", sl_tune_option(d),
                                     values[d].items[at[d]]);
    }
    return out;
}

/* "140,000 .. 160,000", or "-" when the interval is not known. */
static void interval_cell(sl_text_table *table, const sl_search_cell *cell) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    if (isnan(cell->low))
        sl_text_table_cell(table, "-");
    else
        sl_text_table_cell(table, "%s .. %s", sl_human_count((uint64_t)cell->low, low),
                           sl_human_count((uint64_t)cell->high, high));
}

/* Do the settings differ only in threads and batches? */
static bool same_kind(const size_t *at, const size_t *other) {
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++) {
        if (at[d] != other[d])
            return false;
    }
    return true;
}

/* "152k", with its marks: * for the one that is expected to be the fastest, > recommended. */
static void show_cell(const sl_tune *tune, sl_text_table *table, size_t index) {
    const sl_search_cell *cell = &tune->search.cells[index];
    if (cell->trials == 0) {
        bool failed = sl_tune_is_refused(tune, cell->at) || strcmp(cell->stopped, "failed") == 0;
        bool small = strcmp(cell->stopped, "left out") == 0;
        sl_text_table_cell(table, "%s", failed ? "x" : small ? "-" : ".");
        return;
    }
    const char *mark = index == tune->search.recommended ? ">" : "";
    const char *star = index == tune->search.best ? "*" : "";
    if (cell->rate >= 10000)
        sl_text_table_cell(table, "%s%s%.0fk", mark, star, cell->rate / 1000);
    else
        sl_text_table_cell(table, "%s%s%.0f", mark, star, cell->rate);
}

static void show_map(const sl_tune *tune) {
    const sl_tune_values *threads = &tune->config->values[SL_TUNE_THREADS];
    const sl_tune_values *batches = &tune->config->values[SL_TUNE_BATCH_SIZE];
    sl_text_table *table = sl_text_table_create(NULL);
    sl_text_table_column(table, &(sl_text_column){.title = "threads"});
    for (size_t b = 0; b < batches->count; b++)
        sl_text_table_column(table, &(sl_text_column){.title = batches->items[b]});
    size_t at[SL_SEARCH_DIMENSIONS_MAX];
    memcpy(at, tune->search.cells[tune->search.recommended].at, sizeof at);
    for (size_t t = 0; t < threads->count; t++) {
        sl_text_table_cell(table, "%s", threads->items[t]);
        for (size_t b = 0; b < batches->count; b++) {
            at[SL_TUNE_THREADS] = t;
            at[SL_TUNE_BATCH_SIZE] = b;
            show_cell(tune, table, sl_tune_cell(tune, at));
        }
    }
    sl_print(
        "\ndocuments/s by threads and documents per batch (median; * expected to be the fastest, > "
        "recommended, . not tried, x failed, - sample too small)\n\n");
    sl_text_table_print(table, sl_output(), 2);
}

/* Prints the fastest setting of each kind: settings that differ only in threads and batches are of
 * one kind. */
static void show_kinds(const sl_tune *tune) {
    static const sl_text_column columns[] = {{"the fastest of each kind", .left = true},
                                             {.title = "documents/s"},
                                             {.title = "between"},
                                             {.title = "trials"},
                                             {0}};
    const sl_search *search = &tune->search;
    sl_text_table *table = sl_text_table_create(columns);
    bool *shown = calloc(search->count, sizeof *shown);
    size_t kinds = 0;
    while (shown) {
        size_t top = search->count;
        for (size_t i = 0; i < search->count; i++) {
            if (search->cells[i].trials > 0 && !shown[i] &&
                (top == search->count || search->cells[i].rate > search->cells[top].rate))
                top = i;
        }
        if (top == search->count)
            break;
        for (size_t i = 0; i < search->count; i++)
            shown[i] = shown[i] || same_kind(search->cells[i].at, search->cells[top].at);
        char text[200], rate[SL_HUMAN_ROOM];
        const sl_search_cell *cell = &search->cells[top];
        sl_text_table_cell(table, "%s", sl_tune_describe(tune, cell->at, text, sizeof text));
        sl_text_table_cell(table, "%s", sl_human_count((uint64_t)cell->rate, rate));
        interval_cell(table, cell);
        sl_text_table_cell(table, "%zu", cell->trials);
        kinds++;
    }
    if (kinds > 1) {
        sl_print("\n");
        sl_text_table_print(table, sl_output(), 2);
    } else {
        sl_text_table_destroy(table);
    }
    free(shown);
}

static int by_median(const void *a, const void *b) {
    double x = (*(const sl_search_cell *const *)a)->rate,
           y = (*(const sl_search_cell *const *)b)->rate;
    return (x < y) - (x > y);
}

/* Prints each setting that was tried, with the spread of its trials. */
static void show_settings(const sl_tune *tune) {
    static const sl_text_column columns[] = {
        {"setting", .left = true},    {.title = "trials"},
        {.title = "documents/s"},     {.title = "least .. most"},
        {.title = "true rate, 90 %"}, {.title = "batch p50 .. p99, ms"},
        {.title = "lag, s"},          {0}};
    const sl_search *search = &tune->search;
    sl_text_table *table = sl_text_table_create(columns);
    const sl_search_cell **tried = calloc(search->count, sizeof *tried);
    size_t count = 0;
    for (size_t i = 0; tried && i < search->count; i++) {
        if (search->cells[i].trials > 0)
            tried[count++] = &search->cells[i];
    }
    if (count > 0) {
        qsort(tried, count, sizeof *tried, by_median);
        for (size_t i = 0; i < count && i < SETTINGS_SHOWN; i++) {
            char text[200], a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
            const sl_search_cell *cell = tried[i];
            const sl_tune_trial *trials =
                &tune->trials[(size_t)(cell - search->cells) * SL_TUNE_TIMES_MAX];
            double least = cell->rates[0], most = least, p50 = 0, p99 = 0, lag = NAN;
            for (size_t k = 0; k < cell->trials; k++) {
                least = fmin(least, cell->rates[k]);
                most = fmax(most, cell->rates[k]);
                p50 += trials[k].p50 / (double)cell->trials;
                p99 = fmax(p99, trials[k].p99);
                lag = fmax(lag, trials[k].lag);
            }
            sl_text_table_cell(table, "%s", sl_tune_describe(tune, cell->at, text, sizeof text));
            sl_text_table_cell(table, "%zu", cell->trials);
            sl_text_table_cell(table, "%s", sl_human_count((uint64_t)cell->rate, a));
            sl_text_table_cell(table, "%s .. %s", sl_human_count((uint64_t)least, a),
                               sl_human_count((uint64_t)most, b));
            interval_cell(table, cell);
            sl_text_table_cell(table, "%.1f .. %.1f", p50, p99);
            sl_text_table_figure(table, !isnan(lag), lag, 0);
        }
        sl_print("\nrate of each setting, the fastest first (median, and range of its trials), the "
                 "time of a batch (mean of its medians, highest p99), and how far the secondaries "
                 "were behind at the end of its trials (highest)\n\n");
        sl_text_table_print(table, sl_output(), 2);
        if (count > SETTINGS_SHOWN)
            sl_print("  and %zu more settings, see tune.json\n", count - SETTINGS_SHOWN);
    } else {
        sl_text_table_destroy(table);
    }
    free(tried);
}

static void show_recommendation(const sl_tune *tune) {
    const sl_search *search = &tune->search;
    const sl_search_cell *best = &search->cells[search->best];
    const sl_search_cell *chosen = &search->cells[search->recommended];
    char text[200], rate[SL_HUMAN_ROOM], low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    sl_print("\nrecommended: %s\n", sl_tune_describe(tune, chosen->at, text, sizeof text));
    sl_print("  %s documents/s, by %s", sl_human_count((uint64_t)chosen->rate, rate),
             sl_plural(chosen->trials, "trial"));
    if (isnan(chosen->low))
        sl_print("; too few trials were repeated to give a range\n");
    else
        sl_print(", between %s and %s (90 %%)\n", sl_human_count((uint64_t)chosen->low, low),
                 sl_human_count((uint64_t)chosen->high, high));
    if (chosen != best)
        sl_print("  %s had %s; according to all trials together it is expected to be the fastest, "
                 "by at most 2 %%, and it needs more resources\n",
                 sl_tune_describe(tune, best->at, text, sizeof text),
                 sl_human_count((uint64_t)best->rate, rate));
    if (search->noise > NOISE_REPORTED && search->noise_measured)
        sl_print("  trials of one setting differ by %.0f %% (standard deviation): the machines run "
                 "other work, or the trials are too short\n",
                 100 * search->noise);
    else if (search->noise > NOISE_REPORTED)
        sl_print(
            "  trials of one setting seem to differ by about %.0f %%; too few were repeated to "
            "measure that\n",
            100 * search->noise);
    if (chosen->trials < 2)
        sl_print("  it was tried only once, so its rate is a first estimate\n");
    sl_print("  %zu trials; the full grid, %u times each setting, has %zu\n", search->trials,
             tune->plan.repeats, search->grid_trials);
}

/* The median of the n-th query in milliseconds; NAN when it has none. */
static double query_time(const sl_tune_storage *storage, size_t n, const char **name) {
    bson_iter_t iter, item;
    size_t i = 0;
    *name = "";
    double median = NAN;
    for (bool more = bson_iter_init(&iter, &storage->queries); more && bson_iter_next(&iter); i++) {
        if (i != n || !bson_iter_recurse(&iter, &item) || !bson_iter_find(&item, "name"))
            continue;
        *name = bson_iter_utf8(&item, NULL);
        if (bson_iter_recurse(&iter, &item) && bson_iter_find(&item, "medianMilliseconds"))
            median = bson_iter_as_double(&item);
        break;
    }
    return median;
}

void sl_tune_show_storage(const sl_tune *tune) {
    if (tune->storage_count == 0)
        return;
    static const sl_text_column columns[] = {{"compressor", .left = true},
                                             {"documents/s", .unit = SL_UNIT_COUNT},
                                             {"data", .unit = SL_UNIT_BYTES},
                                             {"stored", .unit = SL_UNIT_BYTES},
                                             {.title = "ratio"},
                                             {"indexes", .unit = SL_UNIT_BYTES},
                                             {0}};
    sl_text_table *table = sl_text_table_create(columns);
    size_t queries = bson_count_keys(&tune->storage[0].queries);
    for (size_t q = 0; q < queries; q++) {
        char title[80];
        const char *name;
        query_time(&tune->storage[0], q, &name);
        snprintf(title, sizeof title, "%.60s, ms", name);
        sl_text_table_column(table, &(sl_text_column){.title = title});
    }
    for (size_t i = 0; i < tune->storage_count; i++) {
        const sl_tune_storage *one = &tune->storage[i];
        double ratio = (double)one->data_bytes / (double)one->storage_bytes;
        sl_text_table_cell(table, "%s", one->compressor);
        sl_text_table_number(table, one->rate);
        sl_text_table_number(table, one->sized ? (double)one->data_bytes : NAN);
        sl_text_table_number(table, one->sized ? (double)one->storage_bytes : NAN);
        sl_text_table_figure(table, one->sized && one->storage_bytes > 0, ratio, 2);
        sl_text_table_number(table, one->sized ? (double)one->index_bytes : NAN);
        for (size_t q = 0; q < queries; q++) {
            const char *name;
            double median = query_time(one, q, &name);
            sl_text_table_figure(table, !isnan(median), median, 1);
        }
    }
    sl_print("\nstorage of the sample with each compressor, from one load each (- unknown)\n\n");
    sl_text_table_print(table, sl_output(), 2);
    fflush(sl_output());
}

void sl_tune_show(const sl_tune *tune) {
    show_map(tune);
    show_kinds(tune);
    show_settings(tune);
    show_recommendation(tune);
    fflush(sl_output());
}
