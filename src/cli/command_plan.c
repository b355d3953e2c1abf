/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload plan`: the configuration of a plan, or of a capacity model (--model). */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "trial/capacity.h"
#include "trial/plan.h"
#include "util/log.h"

#include "load_setup.h"

#define SWEEP_MOST 200

/* Adds a problem for each of the options (NULL-ended) that is given; `why` follows its name. */
static void refuse(const sl_options *options, const char *const *names, const char *why,
                   sl_error *error) {
    for (; *names; names++) {
        if (sl_option_given(options, *names))
            sl_option_problem(error, "--%s %s", *names, why);
    }
}

typedef struct model_options {
    sl_error *error;
    bool sources; /* are sources given? Their options are then allowed */
} model_options;

/* Refuses all options on the command line except those that a model uses. Options in the
 * environment or a configuration file are ignored, because they may be meant for other commands. */
static void refuse_beside_model(void *context, const char *name, const char *value,
                                const char *origin) {
    static const char *const taken[] = {"model", "set", "sweep", "report", "config"};
    static const char *const of_sources[] = {
        "format",       "schema",      "names",        "encoding",      "trim",          "escape",
        "delimiter",    "quote",       "header",       "columns",       "skip-lines",    "ragged",
        "quoted-lines", "missing",     "include",      "skip-other",    "blocks",        "records",
        "skew",         "field-count", "field-length", "document-size", "integer-count", "seed"};
    const model_options *at = context;
    (void)value;
    if (strcmp(origin, "command line") != 0)
        return;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strcmp(name, taken[i]) == 0)
            return;
    }
    bool of_source = false;
    for (size_t i = 0; i < sizeof of_sources / sizeof of_sources[0]; i++)
        of_source = of_source || strcmp(name, of_sources[i]) == 0;
    if (of_source && at->sources)
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

static int run_model(const sl_options *options, sl_setup *setup, sl_error *error) {
    double values[SWEEP_MOST];
    sl_capacity_model model;
    sl_model_config config = {
        .load = &setup->config, .model = &model, .blocks = sl_option_number(options, "blocks")};
    const char *sweep = sl_option_string(options, "sweep");
    bool sources = sl_options_argument_count(options) > 0 || sl_option_given(options, "records");
    sl_options_each(options, refuse_beside_model, &(model_options){error, sources});
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
    if (sources && !sl_set_up_source(setup, options, error))
        return error->code;
    return error->code ? (int)error->code : (int)sl_plan_run_model(&config);
}

static int run_plan(const sl_options *options, sl_setup *setup, sl_error *error) {
    static const char *const model_only[] = {"set", "sweep", NULL};
    static const char *const without_uri_only[] = {"shards", NULL};
    static const char *const with_uri_only[] = {"db",
                                                "collection",
                                                "drop",
                                                "again",
                                                "shard-existing",
                                                "username",
                                                "password",
                                                "password-file",
                                                "authenticationDatabase",
                                                "authenticationMechanism",
                                                "tls",
                                                "tlsCAFile",
                                                "tlsCertificateKeyFile",
                                                "tlsCertificateKeyFilePassword",
                                                "tlsAllowInvalidHostnames",
                                                NULL};
    sl_plan_config config = {.load = &setup->config,
                             .shards = (uint32_t)sl_option_number(options, "shards"),
                             .blocks = sl_option_number(options, "blocks"),
                             .from = sl_option_string(options, "from")};
    if (sl_option_given(options, "rate"))
        config.rate = (double)sl_option_number(options, "rate");
    if (config.from && config.rate > 0)
        sl_option_problem(error, "--from and --rate exclude each other");
    refuse(options, model_only, "is for --model", error);
    if (!sl_set_up_source(setup, options, error))
        return error->code;
    sl_set_up_layout(setup, options, error);
    setup->config.drop = sl_option_flag(options, "drop");
    setup->config.again = sl_option_flag(options, "again");
    setup->config.verify = !sl_option_flag(options, "no-verify");
    if (sl_option_given(options, "uri")) {
        refuse(options, without_uri_only,
               "is for a plan without --uri; with --uri the cluster's own shards count", error);
        sl_set_up_target(setup, options, error);
    } else {
        refuse(options, with_uri_only, "needs --uri: without it a plan does not read a cluster",
               error);
    }
    return error->code ? (int)error->code : (int)sl_plan_run(&config);
}

int sl_command_plan(const sl_options *options, bson_t *record) {
    sl_setup setup;
    sl_error error = {0};
    sl_setup_init(&setup, options);
    setup.config.run_record = record;
    setup.config.report = sl_option_string(options, "report");
    int code = (sl_option_given(options, "model") ? run_model : run_plan)(options, &setup, &error);
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    sl_setup_clear(&setup);
    return code;
}
