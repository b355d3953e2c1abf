/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload tune`: converts its options to the values and limits of the trials. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/uri.h"
#include "query/query.h"
#include "trial/tune.h"
#include "util/text.h"

#include "commands.h"
#include "load_setup.h"

/* The option of each dimension. A dimension is a setting that trials may vary. */
static const struct {
    sl_tune_dimension dimension;
    const char *option; /* the list of values to try */
    bool numbers;
    const char *fallback; /* the values without that option; NULL: only the value that `load` would
                             use */
    const char *standard; /* the value that trials of other dimensions use, if it is in the list */
} rows[] = {
    {SL_TUNE_THREADS, "try-threads", true, NULL, NULL},
    {SL_TUNE_BATCH_SIZE, "try-batch-sizes", true, "100,300,1000,3000,10000,30000", "10000"},
    {SL_TUNE_COMPRESSOR, "try-compressors", false, NULL, "snappy"},
    {SL_TUNE_WRITE_CONCERN, "try-write-concerns", false, NULL, "majority"},
    {SL_TUNE_ROUTE, "try-routes", false, NULL, "mongos"},
    {SL_TUNE_WIRE_COMPRESSION, "try-wire-compression", false, NULL, "none"},
};

/* Adds a value unless the list contains it. False when the list is full. */
static bool add_value(sl_tune_values *values, const char *text, size_t length, bool number) {
    char item[SL_TUNE_VALUE_ROOM];
    uint64_t count;
    if (number && sl_text_to_count((sl_text){text, length}, &count))
        snprintf(item, sizeof item, "%llu", (unsigned long long)count); /* "10k" */
    else
        snprintf(item, sizeof item, "%.*s", (int)length, text);
    for (size_t i = 0; i < values->count; i++) {
        if (strcmp(values->items[i], item) == 0)
            return true;
    }
    if (values->count == SL_TUNE_VALUES_MAX)
        return false;
    memcpy(values->items[values->count++], item, sizeof item);
    return true;
}

static bool add_values(sl_tune_values *values, const char *list, bool numbers) {
    bool room = true;
    for (const char *at = list; room;) {
        size_t length = strcspn(at, ",");
        room = add_value(values, at, length, numbers);
        at += length;
        if (!*at++)
            break;
    }
    return room;
}

static int by_number(const void *a, const void *b) {
    double x = strtod(a, NULL), y = strtod(b, NULL);
    return (x > y) - (x < y);
}

/* Powers of two, from a quarter of the cores to eight times as many. */
static void usual_thread_counts(sl_tune_values *values) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long first = 1;
    while (cores > 0 && first * 4 < cores)
        first *= 2;
    for (long n = first; n <= 8 * (cores > 0 ? cores : 1) && n <= 1024; n *= 2) {
        char text[SL_TUNE_VALUE_ROOM];
        snprintf(text, sizeof text, "%ld", n);
        add_value(values, text, strlen(text), true);
    }
}

/* Adds the only value of a dimension that is not varied: the value that `load` would use. */
static void add_fixed(const sl_load_config *load, const sl_options *options,
                      sl_tune_dimension dimension, sl_tune_values *values) {
    char threads[SL_TUNE_VALUE_ROOM], documents[SL_TUNE_VALUE_ROOM];
    snprintf(threads, sizeof threads, "%u", load->threads);
    snprintf(documents, sizeof documents, "%u", load->batch_documents);
    const char *const fixed[SL_TUNE_DIMENSIONS] = {
        [SL_TUNE_THREADS] = threads,
        [SL_TUNE_BATCH_SIZE] = documents,
        [SL_TUNE_COMPRESSOR] = load->compressor,
        [SL_TUNE_WRITE_CONCERN] = load->write_concern,
        [SL_TUNE_ROUTE] = load->direct ? "direct" : "mongos",
        [SL_TUNE_WIRE_COMPRESSION] = sl_option_string(options, "wire-compression"),
    };
    /* "": the default of the server or of the connection string */
    const char *text = fixed[dimension] ? fixed[dimension] : "";
    add_value(values, text, strlen(text), false);
}

static void choose_standard(sl_tune_values *values, const char *preferred) {
    for (size_t i = 0; preferred && i < values->count; i++) {
        if (strcmp(values->items[i], preferred) == 0)
            values->standard = i;
    }
}

static void set_up_values(sl_tune_config *config, const sl_options *options, sl_error *error) {
    static const char *const fixing[SL_TUNE_DIMENSIONS] = {
        [SL_TUNE_THREADS] = "threads", [SL_TUNE_BATCH_SIZE] = "batch-size"};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        sl_tune_dimension d = rows[r].dimension;
        sl_tune_values *values = &config->values[d];
        size_t lists = sl_option_list_count(options, rows[r].option);
        bool room = true;
        for (size_t i = 0; i < lists; i++)
            room = add_values(values, sl_option_list_item(options, rows[r].option, i),
                              rows[r].numbers) &&
                   room;
        if (!room)
            sl_option_problem(error, "--%s: more than %d values", rows[r].option,
                              SL_TUNE_VALUES_MAX);
        bool fixed = !fixing[d] || (sl_option_given(options, fixing[d]) &&
                                    !sl_option_is_word(options, fixing[d], "auto"));
        if (lists == 0 && !fixed && d == SL_TUNE_THREADS)
            usual_thread_counts(values);
        else if (lists == 0 && !fixed)
            add_values(values, rows[r].fallback, rows[r].numbers);
        else if (lists == 0)
            add_fixed(config->load, options, d, values);
        if (rows[r].numbers)
            qsort(values->items, values->count, sizeof values->items[0], by_number);
        choose_standard(values, rows[r].standard);
    }
    /* The options of a load override the standards of the table. */
    choose_standard(&config->values[SL_TUNE_COMPRESSOR], config->load->compressor);
    choose_standard(&config->values[SL_TUNE_WRITE_CONCERN], config->load->write_concern);
    choose_standard(&config->values[SL_TUNE_ROUTE], config->load->direct ? "direct" : "mongos");
    sl_tune_values *threads = &config->values[SL_TUNE_THREADS];
    for (size_t i = 0; i < threads->count; i++) {
        if (strtoul(threads->items[i], NULL, 10) <= config->load->threads)
            threads->standard = i;
    }
    sl_tune_values *clustered = &config->values[SL_TUNE_CLUSTERED];
    bool both = sl_option_flag(options, "try-clustered");
    if (both || !config->load->clustered)
        add_value(clustered, "false", 5, false);
    if (both || config->load->clustered)
        add_value(clustered, "true", 4, false);
    choose_standard(clustered, config->load->clustered ? "true" : "false");
}

static void set_up_trials(sl_tune_config *config, const sl_options *options, sl_error *error) {
    bool grid = strcmp(sl_option_string(options, "search"), "grid") == 0;
    config->search = grid ? SL_SEARCH_GRID : SL_SEARCH_ADAPTIVE;
    config->repeats = (unsigned)sl_option_number(options, "repeats");
    if (sl_option_given(options, "max-trials"))
        config->trials_max = (size_t)sl_option_number(options, "max-trials");
    if (sl_option_given(options, "max-time"))
        config->time_max = sl_option_seconds(options, "max-time");
    if (sl_option_given(options, "trial-bytes"))
        config->trial_bytes = sl_option_number(options, "trial-bytes");
    if (grid && sl_option_given(options, "max-trials"))
        sl_option_problem(error, "--max-trials is for --search adaptive: the number of a grid's "
                                 "trials is fixed");
    config->html = sl_option_string(options, "html");
    config->save = sl_option_string(options, "save");
    config->storage = config->values[SL_TUNE_COMPRESSOR].count > 1;
    size_t suites = sl_option_list_count(options, "suite");
    if (suites > 0 && !config->storage)
        sl_option_problem(error, "--suite needs --try-compressors with several compressors: the "
                                 "queries are timed with each of them");
    if (config->load->index_count > 0 && !config->storage)
        sl_option_problem(error, "--index needs --try-compressors with several compressors: "
                                 "indexes are built once for each of them, not in trials");
    if (config->values[SL_TUNE_ROUTE].count > 1 && !config->load->shard_key)
        sl_option_problem(error, "--try-routes needs a sharded collection: leave out --shard-key "
                                 "none");
    bool wires = sl_option_list_count(options, "try-wire-compression") > 0;
    if (wires && sl_option_given(options, "wire-compression"))
        sl_option_problem(error,
                          "--try-wire-compression and --wire-compression exclude each other");
    else if (wires && config->load->uri && sl_uri_named_compressors(config->load->uri))
        sl_option_problem(error, "--try-wire-compression: --uri already has compressors=; remove "
                                 "one of them");
}

/* Opens each suite, so that a wrong one is reported before the trials; keeps their names. Free the
 * result. */
static const char **open_suites(sl_tune_config *config, const sl_options *options,
                                sl_error *error) {
    size_t count = sl_option_list_count(options, "suite");
    const char **suites = calloc(count + 1, sizeof *suites);
    if (!suites)
        sl_option_memory(error, "reading --suite");
    for (size_t i = 0; suites && i < count; i++) {
        sl_suite *suite = NULL;
        sl_error why = {0};
        suites[i] = sl_option_list_item(options, "suite", i);
        if (!sl_suite_open(suites[i], &suite, &why))
            sl_option_failed(error, "", &why);
        else if (sl_suite_remove_writes(suite), suite->count == 0)
            sl_option_problem(error, "--suite: all queries of %s change documents", suite->name);
        sl_suite_destroy(suite);
    }
    config->suites = suites;
    config->suite_count = suites ? count : 0;
    return suites;
}

int sl_command_tune(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_tune_config *config = calloc(1, sizeof *config);
    const char **suites = NULL;
    if (!config) {
        sl_error_memory(&error, "starting");
    } else if (sl_set_up_load(&setup, options, &error) || error.code == SL_EXIT_USAGE) {
        config->load = &setup.config;
        set_up_values(config, options, &error);
        set_up_trials(config, options, &error);
        suites = open_suites(config, options, &error);
    }
    sl_exit code = error.code ? error.code : sl_tune_run(config);
    free(suites);
    free(config);
    return sl_setup_end(&setup, &error, code);
}
