/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload plan`: the configuration of a plan, or of a capacity model (--model). */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "trial/capacity.h"
#include "trial/plan.h"
#include "util/text.h"

#include "load_setup.h"

#define SWEEP_MOST 200

typedef struct given_options {
    const sl_options *options;
    sl_error *error;
    bool sources; /* are sources given? Their options are then allowed */
} given_options;

/* Refuses all options on the command line except those that a model uses. Options in the
 * environment or a configuration file are ignored, because they may be meant for other commands. */
static void refuse_beside_model(void *context, const char *name, const char *value,
                                const char *origin) {
    const given_options *at = context;
    bool of_source = sl_list_has("Source|Generated records", '|',
                                 sl_text_of(sl_option_group(at->options, name))) ||
                     strcmp(name, "blocks") == 0;
    (void)value;
    if (strcmp(origin, "command line") != 0 || (of_source && at->sources) ||
        sl_list_has("model|set|sweep|report|config", '|', sl_text_of(name)))
        return;
    sl_option_problem(at->error,
                      of_source ? "--%s describes sources: name a source beside --model, or leave "
                                  "the option out"
                                : "--%s has no effect on a --model: change its inputs with --set",
                      name);
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
               sl_capacity_number(at, digits, &values[config->sweep_count]);
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
    sl_options_each(options, refuse_beside_model, &(given_options){options, error, sources});
    sl_error why = {0};
    bool opened = sl_capacity_open(sl_option_string(options, "model"), &model, &why);
    if (!opened)
        sl_option_failed(error, "--model: ", &why);
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

/* Refuses the options of a target and of its connection. */
static void refuse_without_uri(void *context, const char *name, const char *value,
                               const char *origin) {
    const given_options *at = context;
    (void)value;
    if (strcmp(origin, "default") != 0 &&
        (sl_list_has("Target|Connection", '|', sl_text_of(sl_option_group(at->options, name))) ||
         strcmp(name, "shard-existing") == 0))
        sl_option_problem(at->error, "--%s needs --uri: without it a plan does not read a cluster",
                          name);
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
    sl_options_refuse(options, "set|sweep", "is for --model", error);
    if (!sl_set_up_source(setup, options, error))
        return error->code;
    sl_set_up_layout(setup, options, error);
    setup->config.drop = sl_option_flag(options, "drop");
    setup->config.again = sl_option_flag(options, "again");
    setup->config.verify = !sl_option_flag(options, "no-verify");
    if (sl_option_given(options, "uri")) {
        sl_options_refuse(options, "shards",
                          "is for a plan without --uri; with --uri the cluster's own shards count",
                          error);
        sl_set_up_target(setup, options, error);
    } else {
        sl_options_each(options, refuse_without_uri, &(given_options){options, error, false});
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
