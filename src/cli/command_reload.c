/* SPDX-License-Identifier: Apache-2.0 */
/* shardload reload: its own options on top of those of a load. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/json.h>
#include <shardload/log.h>
#include <shardload/reload.h>
#include <shardload/text.h>

#include "load_options.h"
#include "option_checks.h"
#include "load_setup.h"

/* Adds another error to the problems that there are. */
static void add_error(sl_error *error, const char *option, const sl_error *why) {
    char problem[sizeof why->message + 100];
    sl_print_text(problem, sizeof problem, "%s: " SL_LINES, option, why->message);
    sl_option_problem(error, problem);
}

static void open_suite(const sl_options *options, sl_suite **suite, sl_error *error) {
    size_t count = sl_option_list_count(options, "suite");
    const char *name = count > 0 ? sl_option_list_item(options, "suite", 0) : NULL;
    sl_error why = {0};
    if (count > 1)
        sl_option_problem(error, "--suite: a reload asks one suite; put the queries of several into one "
                          "YAML file, or drill once for each");
    if (!name)
        sl_option_problem(error, "--suite is missing: which queries tell that the data is back? "
                          "`shardquery list` names those that are built in");
    else if (!sl_suite_open(name, suite, &why))
        add_error(error, "--suite", &why);
    else if ((*suite)->count == 0)
        sl_option_problem(error, "--suite: there is no query in it");
}

static void read_json(const sl_options *options, const char *option, bson_t **document,
                      sl_error *error) {
    const char *path = sl_option_string(options, option);
    sl_error why = {0};
    char name[32];
    snprintf(name, sizeof name, "--%s", option);
    if (path && !sl_json_read_file(path, document, &why))
        add_error(error, name, &why);
}

static bool is_asked(const sl_suite *suite, const char *name) {
    for (size_t i = 0; i < suite->count; i++) {
        if (strcmp(suite->queries[i].name, name) == 0)
            return true;
    }
    return false;
}

/* An answer that belongs to no query would never be compared with anything, and a drill without
 * answers to compare is one whose first answer counts: so none is passed over. Suites without
 * queries have been refused. */
static void check_answers(const bson_t *answers, const sl_suite *suite, sl_error *error) {
    bson_iter_t found, one;
    size_t known = 0, wrong = 0;
    if (!answers)
        return;
    if (!bson_iter_init_find(&found, answers, "answers") || !BSON_ITER_HOLDS_DOCUMENT(&found) ||
        !bson_iter_recurse(&found, &one)) {
        sl_option_problem(error, "--answers: there is no object \"answers\" in it");
        return;
    }
    while (suite && bson_iter_next(&one)) {
        char shown[100], problem[300];
        bool asked = is_asked(suite, bson_iter_key(&one)), list = BSON_ITER_HOLDS_ARRAY(&one);
        if (asked && list)
            known++;
        if ((asked && list) || wrong++ >= 5)
            continue;
        sl_text_printable(sl_text_of(bson_iter_key(&one)), shown, sizeof shown);
        if (asked)
            sl_print_text(problem, sizeof problem,
                          "--answers: what it has for %s is not an array of "
                          "documents",
                          shown);
        else
            sl_print_text(problem, sizeof problem,
                          "--answers: the suite %.60s has no query %s; leave it "
                          "out of the file, or name another suite",
                          suite->name, shown);
        sl_option_problem(error, problem);
    }
    if (suite && suite->count > 0 && known == 0 && wrong == 0)
        sl_option_problem(error,
                          "--answers: there is no answer in it; without the option, the answers "
                          "that the suite has are checked");
}

int sl_command_reload(const sl_options *options) {
    sl_setup setup;
    sl_error error = {0};
    sl_suite *suite = NULL;
    bson_t *answers = NULL, *last = NULL;
    sl_setup_init(&setup, options);
    /* The files first: the rest may ask for a password, and does so only when all is well. */
    open_suite(options, &suite, &error);
    read_json(options, "answers", &answers, &error);
    check_answers(answers, suite, &error);
    read_json(options, "compare", &last, &error);
    if (sl_option_given(options, "objective") && sl_option_seconds(options, "objective") <= 0)
        sl_option_problem(&error, "--objective: nothing takes no time; give one like 90s, 15m or 4h");
    bool ok = sl_set_up_load(&setup, options, &error) && !error.code;
    const char *sample = sl_option_string(options, "sample");
    if (sample) /* its check has refused what is no share, and the whole */
        setup.config.sample = sl_option_share(sample);
    int code;
    if (ok) {
        const sl_reload_config config = {
            .load = &setup.config,
            .sampled = sample != NULL,
            .suite = suite,
            .answers = answers,
            .repeat = (unsigned)sl_option_number(options, "repeat"),
            .objective_seconds = sl_option_given(options, "objective")
                                     ? sl_option_seconds(options, "objective")
                                     : 0,
            .last = last,
        };
        code = sl_reload_run(&config);
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    sl_suite_destroy(suite);
    bson_destroy(answers);
    bson_destroy(last);
    sl_setup_clear(&setup);
    return code;
}
