/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of the public library; runs a command and returns its record. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

#include <shardload/version.h>

#include "report/json.h"
#include "util/context.h"
#include "util/interrupt.h"

_Static_assert(sizeof((shardload_error *)0)->message == sizeof((sl_error *)0)->message, "one size");
_Static_assert((int)SHARDLOAD_RESOURCES == SL_EXIT_RESOURCES &&
                   (int)SHARDLOAD_INTERRUPTED == SL_EXIT_INTERRUPTED &&
                   (int)SHARDLOAD_VERIFICATION == SL_EXIT_VERIFICATION,
               "public codes equal the exit codes");
_Static_assert((int)SHARDLOAD_LOG_INFO == SL_LOG_INFO, "public levels equal those of the log");

const char *shardload_version(void) {
    return SHARDLOAD_VERSION;
}

static void on_log(void *data, sl_log_level level, const char *text) {
    const shardload_context *context = data;
    context->receivers.log(context->receivers.data, (shardload_level)level, text);
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
    sl_interrupt_request(context->inner);
}

void shardload_free(char *text) {
    free(text);
}

/* ---- commands ---- */

shardload_code sl_library_call(shardload_context *context,
                               int (*work)(void *argument, sl_error *error), void *argument,
                               shardload_error *error) {
    sl_error why = {0};
    sl_context *before = sl_context_bind(context->inner);
    sl_context_forget_error(context->inner);
    int code = SL_EXIT_INTERRUPTED;
    if (sl_interrupt_requested())
        sl_error_set(&why, SL_EXIT_INTERRUPTED, "the context was stopped");
    else
        code = work(argument, &why);
    if (code != SL_EXIT_OK && !why.message[0])
        sl_context_first_error(context->inner, why.message, sizeof why.message);
    sl_context_bind(before);
    if (error) {
        error->code = (shardload_code)code;
        memcpy(error->message, why.message, sizeof error->message);
    }
    return (shardload_code)code;
}

typedef struct call {
    const sl_library_command *command;
    const shardload_option *options;
    const char *const *arguments;
    char **json;
} call;

static int run_command(void *argument, sl_error *error) {
    const call *c = argument;
    const sl_command commands[] = {
        {.name = c->command->name, .bit = c->command->bit, .takes_arguments = true}, {0}};
    const sl_program program = {
        .name = "shardload", .commands = commands, .rows = c->command->rows};
    sl_options *options;
    if (!sl_options_create(&program, commands, c->arguments, &options, error))
        return (int)error->code;
    for (const shardload_option *one = c->options; one && one->name; one++)
        sl_options_set(options, one->name, one->value);
    if (error->code) {
        sl_options_destroy(options);
        return (int)error->code;
    }
    bson_t record = BSON_INITIALIZER;
    int code = c->command->run(options, &record);
    if (c->json && !bson_empty(&record)) {
        *c->json = sl_json_line(&record);
        if (!*c->json && (code == SL_EXIT_OK || code == SL_EXIT_REJECTS))
            code = SL_EXIT_RESOURCES, sl_error_memory(error, "making the record");
    }
    bson_destroy(&record);
    sl_options_destroy(options);
    return code;
}

shardload_code sl_library_run(shardload_context *context, const sl_library_command *command,
                              const shardload_option *options, const char *const *arguments,
                              char **json, shardload_error *error) {
    call c = {command, options, arguments, json};
    if (json)
        *json = NULL;
    return sl_library_call(context, run_command, &c, error);
}
