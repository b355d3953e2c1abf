/* SPDX-License-Identifier: Apache-2.0 */
/* The public library: contexts, and the commands that run in them. */
#include <stdlib.h>
#include <string.h>

#include <shardload/context.h>
#include <shardload/error.h>
#include <shardload/load.h>
#include <shardload/plan.h>
#include <shardload/query.h>
#include <shardload/report.h>
#include <shardload/version.h>

#include "cli/commands.h"
#include "cli/query_session.h"
#include "report/json.h"
#include "report/report.h"
#include "util/context.h"
#include "util/interrupt.h"

struct shardload_context {
    sl_context *inner;
    shardload_receivers receivers;
};

_Static_assert(sizeof((shardload_error *)0)->message == sizeof((sl_error *)0)->message, "one size");
#define EQUAL(name, code, shardload, shardquery, tone, words)                                      \
    _Static_assert((int)SHARDLOAD_##name == SL_EXIT_##name, "public codes equal the exit codes");
SL_EXITS(EQUAL)

const char *shardload_version(void) {
    return SHARDLOAD_VERSION;
}

static void on_log(void *data, sl_log_level level, const char *text) {
    const shardload_context *context = data;
    shardload_level known = level == SL_LOG_ERROR     ? SHARDLOAD_LOG_ERROR
                            : level == SL_LOG_WARNING ? SHARDLOAD_LOG_WARNING
                                                      : SHARDLOAD_LOG_INFO;
    context->receivers.log(context->receivers.data, known, text);
}

static void on_progress(void *data, const char *json) {
    const shardload_context *context = data;
    context->receivers.progress(context->receivers.data, json);
}

shardload_context *shardload_context_create(const shardload_receivers *receivers) {
    shardload_context *context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    if (receivers)
        context->receivers = *receivers;
    const sl_surroundings around = {.program = "shardload",
                                    .output = context->receivers.output,
                                    .log = context->receivers.log ? on_log : NULL,
                                    .progress = context->receivers.progress ? on_progress : NULL,
                                    .data = context};
    context->inner = sl_context_create(&around);
    if (context->inner)
        return context;
    free(context);
    return NULL;
}

void shardload_context_destroy(shardload_context *context) {
    if (context)
        sl_context_destroy(context->inner);
    free(context);
}

void shardload_stop(shardload_context *context) {
    if (context)
        sl_interrupt_request(context->inner);
}

void shardload_free(char *text) {
    free(text);
}

/* ---- commands ---- */

/* Gives the caller the code and the message. */
static shardload_code end(int code, const sl_error *why, shardload_error *error) {
    if (error) {
        error->code = (shardload_code)code;
        memcpy(error->message, why->message, sizeof error->message);
    }
    return (shardload_code)code;
}

/* Runs `work` bound to the context; the error is the one that `work` has set, or the first one that
 * it has logged. `missing`: the name of a parameter that must not be NULL, but is; or NULL. */
static shardload_code run_bound(shardload_context *context, const char *missing,
                                int (*work)(void *argument, sl_error *error), void *argument,
                                shardload_error *error) {
    sl_error why = {0};
    if (!context || missing) {
        sl_error_set(&why, SL_EXIT_USAGE, "the argument `%s` is NULL",
                     context ? missing : "context");
        return end(SL_EXIT_USAGE, &why, error);
    }
    sl_binding before = sl_context_bind(context->inner);
    sl_context_begin(context->inner);
    int code = SL_EXIT_INTERRUPTED;
    if (sl_interrupt_requested())
        sl_error_set(&why, SL_EXIT_INTERRUPTED, "the context was stopped");
    else
        code = (int)sl_context_exit((sl_exit)work(argument, &why));
    if (code != SL_EXIT_OK && !why.message[0])
        sl_context_first_error(context->inner, why.message, sizeof why.message);
    sl_context_restore(before);
    return end(code, &why, error);
}

/* A command, its options by name, and its arguments. */
typedef struct command_call {
    const sl_option_row *rows;
    unsigned bit;     /* of the command in sl_option_row.commands */
    const char *name; /* for messages */
    int (*run)(const sl_options *options, bson_t *record);
    const shardload_option *options;
    const char *const *arguments;
    char **json; /* receives the record; may be NULL */
} command_call;

static int run_command(void *argument, sl_error *error) {
    const command_call *c = argument;
    const sl_command commands[] = {{.name = c->name, .bit = c->bit, .takes_arguments = true}, {0}};
    const sl_program program = {.name = "shardload", .commands = commands, .rows = c->rows};
    sl_options *options;
    if (!sl_options_create(&program, commands, c->arguments, &options, error))
        return (int)error->code;
    for (const shardload_option *one = c->options; one && one->name; one++) {
        if (one->value)
            sl_options_set(options, one->name, one->value);
        else
            sl_option_problem(error, "%s: its value is NULL", one->name);
    }
    if (error->code || !sl_option_files_check(options, error)) {
        sl_options_destroy(options);
        return (int)error->code;
    }
    sl_options_set_verbosity(options);
    bson_t record = BSON_INITIALIZER;
    int code = c->run(options, &record);
    if (c->json && !bson_empty(&record)) {
        *c->json = sl_json_line(&record);
        if (!*c->json && sl_exit_is_complete(code))
            code = SL_EXIT_RESOURCES, sl_error_memory(error, "making the record");
    }
    bson_destroy(&record);
    sl_options_destroy(options);
    return code;
}

static shardload_code run_call(shardload_context *context, command_call *call,
                               shardload_error *error) {
    if (call->json)
        *call->json = NULL;
    return run_bound(context, NULL, run_command, call, error);
}

shardload_code shardload_load(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error) {
    command_call call = {sl_load_rows, SL_COMMAND_LOAD, "load", sl_command_load,
                         options,      sources,         record};
    return run_call(context, &call, error);
}

shardload_code shardload_verify(shardload_context *context, const shardload_option *options,
                                const char *const *sources, char **record, shardload_error *error) {
    command_call call = {sl_load_rows, SL_COMMAND_VERIFY, "verify", sl_command_verify,
                         options,      sources,           record};
    return run_call(context, &call, error);
}

shardload_code shardload_plan(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error) {
    command_call call = {sl_load_rows, SL_COMMAND_PLAN, "plan", sl_command_plan,
                         options,      sources,         record};
    return run_call(context, &call, error);
}

static int run_queries(const sl_options *options, bson_t *report) {
    return sl_query_command(options, NULL, report);
}

shardload_code shardload_query(shardload_context *context, const shardload_option *options,
                               const char *const *suites, char **report, shardload_error *error) {
    command_call call = {sl_query_rows, SL_QUERY_RUN, "query", run_queries,
                         options,       suites,       report};
    return run_call(context, &call, error);
}

/* ---- reports ---- */

typedef struct page {
    const char *const *records;
    const char *title;
    char **html;
} page;

static int draw(void *argument, sl_error *error) {
    const page *p = argument;
    size_t count = 0, parsed = 0;
    while (p->records[count])
        count++;
    bson_t **records = calloc(count + 1, sizeof *records);
    bool ok = records || sl_error_memory(error, "reading records");
    for (; ok && parsed < count; parsed += ok) {
        bson_error_t why;
        records[parsed] = sl_json_parse(p->records[parsed], strlen(p->records[parsed]), &why);
        ok = records[parsed] ||
             sl_error_set(error, SL_EXIT_SOURCE, "record %zu: %s", parsed + 1, why.message);
        ok = ok &&
             (sl_report_check_record(records[parsed], error) ||
              (bson_destroy(records[parsed]), sl_error_prefix(error, "record %zu", parsed + 1)));
    }
    const sl_report report = {
        .records = (const bson_t *const *)records, .count = count, .title = p->title};
    if (ok && count == 0)
        ok = sl_error_set(error, SL_EXIT_USAGE, "no record is given");
    if (ok)
        *p->html = sl_report_html(&report, error);
    for (size_t i = 0; i < parsed; i++)
        bson_destroy(records[i]);
    free(records);
    return (int)error->code;
}

shardload_code shardload_report_html(shardload_context *context, const char *const *records,
                                     const char *title, char **html, shardload_error *error) {
    page p = {records, title, html};
    if (html)
        *html = NULL;
    return run_bound(context, !records ? "records" : !html ? "html" : NULL, draw, &p, error);
}
