/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload reload`: the configuration of a drill, which extends that of a load. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "trial/reload.h"

#include "load_setup.h"
#include "option_checks.h"

static void open_suite(const sl_options *options, sl_suite **suite, sl_error *error) {
    size_t count = sl_option_list_count(options, "suite");
    const char *name = count > 0 ? sl_option_list_item(options, "suite", 0) : NULL;
    sl_error why = {0};
    if (count > 1)
        sl_option_problem(error, "--suite: a reload runs one suite; put the queries of several "
                                 "suites into one YAML file, or run one drill for each suite");
    if (!name)
        sl_option_problem(error, "--suite is missing: name the queries that must be answered; "
                                 "`shardquery list` shows the built-in suites");
    else if (!sl_suite_open(name, suite, &why))
        sl_option_failed(error, "--suite: ", &why);
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

/* Refuses answers of queries that the suite does not contain: a drill accepts any answer of a query
 * without an expected one, so a misspelt name would go unnoticed. */
static void check_answers(const bson_t *answers, sl_suite *suite, sl_error *error) {
    sl_error why = {0};
    if (answers && !sl_answers_check(answers, &suite, suite ? 1 : 0, &why) &&
        (suite || !bson_has_field(answers, "answers")))
        sl_option_failed(error, "--answers: ", &why);
}

int sl_command_reload(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_suite *suite = NULL;
    bson_t *answers = NULL, *last = NULL;
    sl_setup_init(&setup, options);
    /* Files are read first: setting up the load asks for a password, unless a problem was found. */
    open_suite(options, &suite, &error);
    read_json(options, "answers", &answers, &error);
    check_answers(answers, suite, &error);
    if (suite && (sl_suite_remove_writes(suite), suite->count == 0))
        sl_option_problem(&error, "--suite: all queries of %s change documents", suite->name);
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
