/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of shardload that load or read sources, and those that experiment: their options as
 * configurations. */
#include "commands.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cluster/uri.h"
#include "doctor/doctor.h"
#include "job/inspect.h"
#include "load/load.h"
#include "load/tables.h"
#include "query/query.h"
#include "report/json.h"
#include "report/report.h"
#include "restore/restore.h"
#include "trial/capacity.h"
#include "trial/forget.h"
#include "trial/plan.h"
#include "trial/reload.h"
#include "trial/tune.h"
#include "util/context.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"
#include "verify/verify.h"

#include "load_setup.h"
#include "option_checks.h"

/* ---- load, inspect, doctor ---- */

#define DOCTOR_SECONDS 10 /* the limit of each command, unless --timeout is given */

static sl_exit load_table(const sl_load_config *config, void *context) {
    (void)context;
    return sl_load_run(config);
}

/* Runs a command once, or for each table. */
static sl_exit run_tables(const sl_load_config *config, bool loads, sl_table_run *run,
                          void *context) {
    return sl_tables_are_many(config) ? sl_tables_run(config, loads, run, context)
                                      : run(config, context);
}

int sl_command_load(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    bool ok = sl_set_up_load(&setup, options, &error);
    return sl_setup_end(&setup, &error,
                        ok ? run_tables(&setup.config, true, load_table, NULL) : SL_EXIT_USAGE);
}

static sl_exit inspect_table(const sl_load_config *config, void *context) {
    const sl_options *options = context;
    return sl_inspect_run(config, (unsigned)sl_option_number(options, "documents"),
                          sl_option_string(options, "write-schema"));
}

int sl_command_inspect(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_setup_init(&setup, options);
    sl_set_up_source(&setup, options, &error);
    if (!error.code)
        code = sl_tables_in_dump(&setup.config)
                   ? sl_tables_run(&setup.config, false, inspect_table, (void *)options)
                   : inspect_table(&setup.config, (void *)options);
    return sl_setup_end(&setup, &error, code);
}

int sl_command_doctor(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_doctor_config config = {.load = &setup.config,
                               .limit_seconds = DOCTOR_SECONDS,
                               .blocks = sl_option_number(options, "blocks"),
                               .json = sl_option_flag(options, "json"),
                               .write = sl_option_flag(options, "write")};
    if (sl_option_given(options, "timeout"))
        config.limit_seconds = (unsigned)sl_option_number(options, "timeout");
    if (sl_options_argument_count(options) > 0 || sl_option_given(options, "records"))
        sl_set_up_source(&setup, options, &error);
    if (config.write && !sl_option_given(options, "db"))
        sl_option_problem(&error, "--write needs --db: the database of the temporary collection");
    sl_set_up_examined(&setup, options, &error);
    if (!sl_option_is_word(options, "rate-limit", "unlimited"))
        setup.config.rate_limit = sl_option_number(options, "rate-limit");
    setup.config.timeout_seconds = config.limit_seconds;
    return sl_setup_end(&setup, &error, error.code ? SL_EXIT_USAGE : sl_doctor_run(&config));
}

int sl_command_forget(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    size_t count = sl_options_argument_count(options);
    sl_setup_init(&setup, options);
    /* Beside folders, a collection from the environment or a file is meant for loads. */
    if (count == 0 || sl_option_origin_of(options, "db") == SL_FROM_COMMAND_LINE ||
        sl_option_origin_of(options, "collection") == SL_FROM_COMMAND_LINE)
        sl_set_up_target(&setup, options, &error);
    sl_exit code = error.code ? error.code
                              : sl_forget_run(&setup.config, sl_options_arguments(options), count);
    return sl_setup_end(&setup, &error, code);
}

/* ---- restore ---- */

static void check_patterns(const char *option, const sl_options *options, sl_error *error) {
    sl_error why;
    for (size_t i = 0; i < sl_option_list_count(options, option); i++) {
        if (!sl_name_pattern_check(option, sl_option_list_item(options, option, i), &why))
            sl_option_failed(error, "", &why);
    }
}

static void set_up_names(const sl_options *options, sl_name_options *to, sl_error *error) {
    const size_t from_count = sl_option_list_count(options, "ns-from"),
                 to_count = sl_option_list_count(options, "ns-to");
    *to = (sl_name_options){.database = sl_option_string(options, "db"),
                            .collection = sl_option_string(options, "collection"),
                            .no_options = sl_option_flag(options, "no-options-restore"),
                            .no_indexes = sl_option_flag(options, "no-index-restore"),
                            .database_users = sl_option_flag(options, "restore-db-users-and-roles"),
                            .include = sl_option_list(options, "ns-include"),
                            .include_count = sl_option_list_count(options, "ns-include"),
                            .exclude = sl_option_list(options, "ns-exclude"),
                            .exclude_count = sl_option_list_count(options, "ns-exclude"),
                            .from = sl_option_list(options, "ns-from"),
                            .to = sl_option_list(options, "ns-to"),
                            .rename_count = from_count};
    if (to->collection && !to->database)
        sl_option_problem(error, "--collection needs --db");
    if (from_count != to_count)
        sl_option_problem(error,
                          "--ns-from is given %zu times, and --ns-to %zu times: each "
                          "--ns-from needs its --ns-to",
                          from_count, to_count);
    sl_error why;
    for (size_t i = 0; i < from_count && i < to_count; i++) {
        if (!sl_rename_check(to->from[i], to->to[i], &why))
            sl_option_failed(error, "", &why);
    }
    check_patterns("ns-include", options, error);
    check_patterns("ns-exclude", options, error);
}

static void set_up_dump(const sl_options *options, sl_restore_config *config, sl_error *error) {
    size_t count = sl_options_argument_count(options);
    config->dump = sl_option_string(options, "archive");
    if (count + (config->dump != NULL) > 1)
        sl_option_problem(error, "restore takes one dump, and %zu were given",
                          count + (config->dump != NULL));
    else if (count == 1)
        config->dump = sl_options_argument(options, 0);
    else if (!config->dump)
        sl_option_problem(error, "no dump is given: name the folder or archive that mongodump "
                                 "wrote, or - for an archive in standard input");
}

int sl_command_restore(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    sl_restore_config config = {.load = &setup.config,
                                .shard_keys = sl_option_string(options, "shard-keys"),
                                .at_once =
                                    (unsigned)sl_option_number(options, "collections-at-once"),
                                .oplog_replay = sl_option_flag(options, "oplog-replay"),
                                .oplog_file = sl_option_string(options, "oplog-file"),
                                .dry_run = sl_option_flag(options, "dry-run")};
    const char *limit = sl_option_string(options, "oplog-limit");
    if (limit)
        sl_option_parse_timestamp(limit, &config.oplog_limit);
    if (!config.oplog_replay)
        sl_options_refuse(options, SL_FROM_CONFIG, "oplog-limit|oplog-file",
                          "is for --oplog-replay only", &error);
    set_up_dump(options, &config, &error);
    set_up_names(options, &config.names, &error);
    bool ok = sl_set_up_restore(&setup, options, &error);
    config.shard_keys_text = setup.shard_keys_text;
    sl_exit code = ok ? sl_restore_run(&config) : error.code;
    return sl_setup_end(&setup, &error, code);
}

/* ---- verify ---- */

static int verify_dump(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_restore_config config = {.load = &setup.config, .dump = sl_option_string(options, "dump")};
    if (sl_options_argument_count(options) > 0)
        sl_option_problem(&error, "--dump replaces the sources: leave the sources out");
    sl_options_refuse(options, SL_FROM_COMMAND_LINE,
                      "format|schema|types|header|columns|skip-lines|ragged|names|encoding|trim|"
                      "delimiter|dialect|null|null-as|quote|escape|quoted-lines|missing|include|"
                      "id-field|embed|on|embed-schema|Generated records",
                      "is for sources, not for --dump", &error);
    set_up_names(options, &config.names, &error);
    sl_set_up_verify_dump(&setup, options, &error);
    sl_exit code = error.code;
    if (!error.code)
        code = sl_verify_dump_run(&config, sl_option_flag(options, "content"),
                                  sl_option_number(options, "max-problems"));
    return sl_setup_end(&setup, &error, code);
}

static sl_exit verify_table(const sl_load_config *config, void *context) {
    const sl_options *options = context;
    return sl_verify_run(config, sl_option_flag(options, "content"),
                         sl_option_number(options, "max-problems"));
}

int sl_command_verify(const sl_options *options, bson_t *record) {
    if (sl_option_given(options, "dump"))
        return verify_dump(options);
    sl_setup setup;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    sl_options_refuse(options, SL_FROM_COMMAND_LINE,
                      "ns-include|ns-exclude|ns-from|ns-to|no-index-restore|no-options-restore|"
                      "restore-db-users-and-roles",
                      "is for --dump only", &error);
    sl_set_up_source(&setup, options, &error);
    sl_set_up_target(&setup, options, &error);
    sl_set_up_run(&setup, options);
    sl_set_up_embed(&setup, options, &error);
    sl_set_up_document_options(&setup, options);
    if (!error.code)
        code = run_tables(&setup.config, false, verify_table, (void *)options);
    return sl_setup_end(&setup, &error, code);
}

/* ---- plan ----
 *
 * The configuration of a plan, or of a capacity model (--model). */

#define SWEEP_MOST 200

typedef struct beside_model {
    sl_error *error;
    bool sources; /* are sources given? Their options are then allowed */
} beside_model;

/* Refuses all options on the command line except those that a model uses. Options in the
 * environment or a configuration file are ignored, because they may be meant for other commands. */
static void refuse_beside_model(void *context, const sl_option_row *row, const char *value,
                                sl_option_origin origin) {
    const beside_model *at = context;
    bool of_source = sl_list_has("Source|Generated records", '|', sl_text_of(row->group)) ||
                     strcmp(row->name, "blocks") == 0;
    (void)value;
    if (origin != SL_FROM_COMMAND_LINE || (of_source && at->sources) ||
        sl_list_has("model|from|set|sweep|report|quiet|verbose", '|', sl_text_of(row->name)))
        return;
    sl_option_problem(at->error,
                      of_source ? "--%s describes sources: name a source beside --model, or leave "
                                  "the option out"
                                : "--%s has no effect on a --model: change its inputs with --set",
                      row->name);
}

/* Parses --sweep, "shards=1,2,4", into `values`, which has room for SWEEP_MOST. */
static void read_sweep(const char *text, sl_model_config *config, double *values, sl_error *error) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    config->sweep = sl_capacity_find(config->model, text, length);
    config->sweep_values = values;
    bool good = equals && config->sweep < config->model->input_count;
    for (const char *at = equals; good && *at;) {
        size_t digits = strcspn(++at, ",");
        good = config->sweep_count < SWEEP_MOST &&
               sl_capacity_number(at, digits, &values[config->sweep_count]) &&
               values[config->sweep_count] >= 0;
        config->sweep_count += good;
        at += digits;
    }
    if (!good)
        sl_option_problem(error,
                          "--sweep %.100s: not NAME=VALUE,VALUE,... with an input of the model, "
                          "like shards=1,2,4,8",
                          text);
}

static sl_exit run_model(const sl_options *options, sl_setup *setup, sl_error *error) {
    double values[SWEEP_MOST];
    sl_capacity_model model;
    sl_model_config config = {
        .load = &setup->config, .model = &model, .blocks = sl_option_number(options, "blocks")};
    const char *sweep = sl_option_string(options, "sweep");
    bool sources = sl_options_argument_count(options) > 0 || sl_option_given(options, "records");
    sl_options_each(options, refuse_beside_model, &(beside_model){error, sources});
    sl_error why = {0};
    bool opened = sl_capacity_open(sl_option_string(options, "model"), &model, &why);
    if (!opened)
        sl_option_failed(error, "--model: ", &why);
    const char *from = sl_option_string(options, "from");
    if (opened && from && !sl_model_use_record(&model, from, error))
        return error->code;
    for (size_t i = 0; opened && i < sl_option_list_count(options, "set"); i++) {
        why = (sl_error){0};
        if (!sl_capacity_set(&model, sl_option_list_item(options, "set", i), &why))
            sl_option_failed(error, "--set: ", &why);
    }
    if (opened && sweep)
        read_sweep(sweep, &config, values, error);
    if (sources)
        sl_set_up_source(setup, options, error);
    return error->code ? error->code : sl_plan_run_model(&config);
}

static sl_exit run_plan(const sl_options *options, sl_setup *setup, sl_error *error) {
    sl_plan_config config = {.load = &setup->config,
                             .shards = (uint32_t)sl_option_number(options, "shards"),
                             .blocks = sl_option_number(options, "blocks"),
                             .from = sl_option_string(options, "from")};
    if (sl_option_given(options, "rate"))
        config.rate = (double)sl_option_number(options, "rate");
    if (config.from && config.rate > 0)
        sl_option_problem(error, "--from and --rate exclude each other");
    sl_options_refuse(options, SL_FROM_COMMAND_LINE, "set|sweep", "is for --model", error);
    sl_set_up_source(setup, options, error);
    sl_set_up_layout(setup, options, error);
    setup->config.drop = sl_option_flag(options, "drop");
    setup->config.again = sl_option_flag(options, "again");
    setup->config.verify = !sl_option_flag(options, "no-verify");
    sl_set_up_mode(&setup->config, options, error);
    if (sl_option_given(options, "uri")) {
        sl_options_refuse(options, SL_FROM_COMMAND_LINE, "shards",
                          "is for a plan without --uri; with --uri the cluster's own shards count",
                          error);
        sl_set_up_target(setup, options, error);
    } else {
        sl_options_refuse(options, SL_FROM_COMMAND_LINE, "Target|Connection|shard-existing",
                          "needs --uri: without it a plan does not read a cluster", error);
    }
    return error->code ? error->code : sl_plan_run(&config);
}

int sl_command_plan(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    setup.config.report = sl_option_string(options, "report");
    sl_exit code =
        (sl_option_given(options, "model") ? run_model : run_plan)(options, &setup, &error);
    return sl_setup_end(&setup, &error, code);
}

/* ---- tune ----
 *
 * Converts the options to the values and limits of the trials. */

/* The option of each dimension. A dimension is a setting that trials may vary. */
static const struct {
    sl_tune_dimension dimension;
    const char *option; /* the list of values to try */
    bool numbers;
    const char *fallback; /* the values without that option; NULL: only the value that `load` would
                             use */
    const char *standard; /* the value that trials of other dimensions use, if it is in the list */
} dimension_rows[] = {
    {SL_TUNE_THREADS, "try-threads", true, NULL, NULL},
    {SL_TUNE_BATCH_SIZE, "try-batch-sizes", true, "100,300,1000,3000,10000,30000", "10000"},
    {SL_TUNE_COMPRESSOR, "try-compressors", false, NULL, "snappy"},
    {SL_TUNE_WRITE_CONCERN, "try-write-concerns", false, NULL, "majority"},
    {SL_TUNE_ROUTE, "try-routes", false, NULL, "mongos"},
    {SL_TUNE_WIRE_COMPRESSION, "try-wire-compression", false, NULL, "none"},
};

/* Adds a value unless the list contains it. False when the list is full. */
static bool add_tried_value(sl_tune_values *values, const char *text, size_t length, bool number) {
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
        room = add_tried_value(values, at, length, numbers);
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
        add_tried_value(values, text, strlen(text), true);
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
    add_tried_value(values, text, strlen(text), false);
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
    for (size_t r = 0; r < sizeof dimension_rows / sizeof dimension_rows[0]; r++) {
        sl_tune_dimension d = dimension_rows[r].dimension;
        sl_tune_values *values = &config->values[d];
        size_t lists = sl_option_list_count(options, dimension_rows[r].option);
        bool room = true;
        for (size_t i = 0; i < lists; i++)
            room = add_values(values, sl_option_list_item(options, dimension_rows[r].option, i),
                              dimension_rows[r].numbers) &&
                   room;
        if (!room)
            sl_option_problem(error, "--%s: more than %d values", dimension_rows[r].option,
                              SL_TUNE_VALUES_MAX);
        bool fixed = !fixing[d] || (sl_option_given(options, fixing[d]) &&
                                    !sl_option_is_word(options, fixing[d], "auto"));
        if (lists == 0 && !fixed && d == SL_TUNE_THREADS)
            usual_thread_counts(values);
        else if (lists == 0 && !fixed)
            add_values(values, dimension_rows[r].fallback, dimension_rows[r].numbers);
        else if (lists == 0)
            add_fixed(config->load, options, d, values);
        if (dimension_rows[r].numbers)
            qsort(values->items, values->count, sizeof values->items[0], by_number);
        choose_standard(values, dimension_rows[r].standard);
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
        add_tried_value(clustered, "false", 5, false);
    if (both || config->load->clustered)
        add_tried_value(clustered, "true", 4, false);
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

/* Refuses answers of queries that the suite does not contain: a drill accepts any answer of a query
 * without an expected one, so a misspelt name would go unnoticed. */
static void check_answers(const bson_t *answers, sl_suite *suite, sl_error *error) {
    sl_error why = {0};
    if (answers && !sl_answers_check(answers, &suite, suite ? 1 : 0, &why) &&
        (suite || !bson_has_field(answers, "answers")))
        sl_option_failed(error, "--answers: ", &why);
}

/* Opens a suite whose queries are run after a load; removes those that change documents. `answers`
 * (NULL: none) are those of the whole suite. */
static sl_suite *open_suite(const char *name, const bson_t *answers, sl_error *error) {
    sl_suite *suite = NULL;
    sl_error why = {0};
    if (!sl_suite_open(name, &suite, &why)) {
        sl_option_failed(error, "--suite: ", &why);
        return NULL;
    }
    check_answers(answers, suite, error);
    if (sl_suite_remove_writes(suite), suite->count == 0)
        sl_option_problem(error, "--suite: all queries of %s change documents", suite->name);
    for (size_t i = 0; suite->limit == 0 && i < suite->count; i++) {
        if (sl_query_uses_limit(&suite->queries[i]))
            sl_option_problem(error,
                              "--suite: %s uses the parameter \"limit\": set `limit` under "
                              "`defaults` of the suite",
                              suite->queries[i].name);
    }
    return suite;
}

int sl_command_tune(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    sl_tune_config *config = calloc(1, sizeof *config);
    if (!config) {
        sl_error_memory(&error, "starting");
    } else if (sl_set_up_load(&setup, options, &error) || error.code == SL_EXIT_USAGE) {
        config->load = &setup.config;
        set_up_values(config, options, &error);
        set_up_trials(config, options, &error);
        /* A wrong suite is reported before the trials. */
        config->suites = sl_option_list(options, "suite");
        config->suite_count = sl_option_list_count(options, "suite");
        for (size_t i = 0; i < config->suite_count; i++)
            sl_suite_destroy(open_suite(config->suites[i], NULL, &error));
    }
    sl_exit code = error.code ? error.code : sl_tune_run(config);
    free(config);
    return sl_setup_end(&setup, &error, code);
}

/* ---- reload ----
 *
 * The configuration of a drill, which extends that of a load. */

static sl_suite *open_only_suite(const sl_options *options, const bson_t *answers,
                                 sl_error *error) {
    size_t count = sl_option_list_count(options, "suite");
    if (count > 1)
        sl_option_problem(error, "--suite: a reload runs one suite; put the queries of several "
                                 "suites into one YAML file, or run one reload for each suite");
    if (count == 0)
        sl_option_problem(error, "--suite is missing: name the queries that must be answered; "
                                 "`shardquery list` shows the built-in suites");
    return count > 0 ? open_suite(sl_option_list_item(options, "suite", 0), answers, error) : NULL;
}

static void read_json(const sl_options *options, const char *option, bson_t **document,
                      sl_error *error) {
    const char *path = sl_option_string(options, option);
    sl_error why = {0};
    char prefix[40];
    snprintf(prefix, sizeof prefix, "--%s: ", option);
    if (path && !sl_json_read_file(path, document, &why))
        sl_option_failed(error, prefix, &why);
}

int sl_command_reload(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    bson_t *answers = NULL, *last = NULL;
    sl_setup_init(&setup, options);
    /* Files are read first: setting up the load asks for a password, unless a problem was found. */
    read_json(options, "answers", &answers, &error);
    sl_suite *suite = open_only_suite(options, answers, &error);
    if (!suite)
        check_answers(answers, NULL, &error);
    read_json(options, "compare", &last, &error);
    if (sl_option_given(options, "objective") && sl_option_seconds(options, "objective") <= 0)
        sl_option_problem(&error, "--objective must be more than 0; write it like 90s, 15m or 4h");
    bool ok = sl_set_up_load(&setup, options, &error) && !error.code;
    const char *sample = sl_option_string(options, "sample");
    if (sample)
        setup.config.sample = sl_option_share(sample);
    sl_exit code = SL_EXIT_OK;
    if (ok) {
        const sl_reload_config config = {
            .load = &setup.config,
            .sampled = sample != NULL,
            .sample_runs = (unsigned)sl_option_number(options, "sample-runs"),
            .suite = suite,
            .answers = answers,
            .repeat = (unsigned)sl_option_number(options, "repeat"),
            .objective_seconds =
                sl_option_given(options, "objective") ? sl_option_seconds(options, "objective") : 0,
            .last = last,
        };
        code = sl_reload_run(&config);
    }
    sl_suite_destroy(suite);
    bson_destroy(answers);
    bson_destroy(last);
    return sl_setup_end(&setup, &error, code);
}

/* ---- report ----
 *
 * Records of runs as an HTML file, or as text for the terminal. */

typedef struct inputs {
    bson_t **records;
    char **names;
    size_t count;
} inputs;

/* The usual names of records. In the folder of a drill or a tuning, run.json is that of a part. */
static const char *const common[] = {SL_WORK_RELOAD, SL_WORK_TUNE, SL_WORK_RECORD, "plan.json"};

/* The path, or that of the record in this folder; NULL without memory. */
static char *file_of_record(const char *path) {
    char *file = NULL;
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        free(file);
        if (asprintf(&file, "%.*s/%s", length, path, common[i]) < 0)
            return NULL;
        struct stat facts;
        if (stat(file, &facts) == 0 && S_ISREG(facts.st_mode))
            return file;
    }
    free(file);
    return strdup(path);
}

/* The title of a record: its file's name, or its folder's name when the file has a common name such
 * as run.json. */
static char *name_of_record(const char *path) {
    const char *base = strrchr(path, '/');
    size_t length = strlen(base ? base + 1 : path);
    for (size_t i = 0; base && base > path && i < sizeof common / sizeof common[0]; i++) {
        if (strcmp(base + 1, common[i]) != 0)
            continue;
        const char *end = base;
        while (base > path && base[-1] != '/')
            base--;
        return strndup(base, (size_t)(end - base));
    }
    base = base ? base + 1 : path;
    if (length > 5 && strcmp(base + length - 5, ".json") == 0)
        length -= 5;
    return strndup(base, length);
}

/* Reads all files; the problems of all files are reported together. */
static bool read_records(const sl_options *options, inputs *in, sl_error *error) {
    size_t count = sl_options_argument_count(options);
    if (count == 0)
        return sl_option_problem(error, "name a record, such as the run.json of a load");
    in->records = calloc(count, sizeof *in->records);
    in->names = calloc(count, sizeof *in->names);
    if (!in->records || !in->names)
        return sl_error_memory(error, "reading records");
    for (; in->count < count; in->count++) {
        char *path = file_of_record(sl_options_argument(options, in->count));
        sl_error one = {0};
        if (!path || !(in->names[in->count] = name_of_record(path))) {
            free(path);
            return sl_error_memory(error, "reading records");
        }
        bool ok = sl_json_read_file(path, &in->records[in->count], &one) &&
                  sl_report_check_record(in->records[in->count], &one);
        if (!ok && in->records[in->count])
            sl_error_prefix(&one, "%s", path);
        free(path);
        if (ok)
            continue;
        sl_exit code = error->code ? error->code : one.code;
        sl_option_problem(error, SL_LINES, one.message);
        error->code = code;
    }
    return !error->code;
}

static bool write_html(const sl_report *report, const char *path, sl_error *error) {
    char *text = sl_report_html(report, error);
    if (!text)
        return false;
    size_t length = strlen(text);
    bool ok;
    if (strcmp(path, "-") == 0) {
        ok = fwrite(text, 1, length, sl_output()) == length && fflush(sl_output()) == 0;
        if (!ok)
            sl_error_set(error, SL_EXIT_USAGE, "the report cannot be written to standard output");
    } else {
        ok = sl_private_file_replace(path, text, length, error);
    }
    free(text);
    return ok;
}

/* 0 when standard output is not a terminal and COLUMNS is not set. */
static unsigned terminal_columns(void) {
    struct winsize size = {0};
    uint64_t columns = 0;
    const char *variable = getenv("COLUMNS");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    bool valid = variable && sl_text_to_u64(sl_text_of(variable), &columns) && columns < 1000;
    return valid ? (unsigned)columns : 0;
}

/* Is UTF-8 the encoding of the locale in the environment? */
static bool terminal_is_utf8(void) {
    locale_t users = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = users && strcmp(nl_langinfo_l(CODESET, users), "UTF-8") == 0;
    if (users)
        freelocale(users);
    return utf8;
}

int sl_command_report(const sl_options *options) {
    inputs in = {0};
    sl_error error = {0};
    const char *html = sl_option_string(options, "html");
    if (read_records(options, &in, &error)) {
        sl_report report = {.records = (const bson_t *const *)in.records,
                            .names = (const char *const *)in.names,
                            .count = in.count,
                            .title = sl_option_string(options, "title")};
        if (html) {
            write_html(&report, html, &error);
        } else {
            sl_report_terminal terminal = {
                .columns = terminal_columns(),
                .ascii = sl_option_flag(options, "ascii") || !terminal_is_utf8(),
            };
            sl_report_text(&report, &terminal, sl_output(), &error);
        }
    }
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    for (size_t i = 0; in.records && i < in.count; i++)
        bson_destroy(in.records[i]);
    for (size_t i = 0; in.names && i < in.count; i++)
        free(in.names[i]);
    free(in.records);
    free(in.names);
    return error.code;
}
