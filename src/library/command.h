/* SPDX-License-Identifier: Apache-2.0 */
/* A command of the public library: options by name, a context, a record. Internal to
 * src/library. */
#ifndef SHARDLOAD_LIBRARY_COMMAND_H
#define SHARDLOAD_LIBRARY_COMMAND_H

#include <bson/bson.h>

#include <shardload/context.h>
#include <shardload/error.h>

#include "cli/options.h"

struct shardload_context {
    struct sl_context *inner;
    shardload_receivers receivers;
};

typedef struct sl_library_command {
    const sl_option_row *rows;
    unsigned bit;     /* of the command in sl_option_row.commands */
    const char *name; /* for messages */
    int (*run)(const sl_options *options, bson_t *record);
} sl_library_command;

/* Runs the command in the context. `json`, if it is not NULL, receives its record. */
shardload_code sl_library_run(shardload_context *context, const sl_library_command *command,
                              const shardload_option *options, const char *const *arguments,
                              char **json, shardload_error *error);

/* Runs `work` bound to the context; the error is the one that `work` has set, or the first one that
 * it has logged. */
shardload_code sl_library_call(shardload_context *context,
                               int (*work)(void *argument, sl_error *error), void *argument,
                               shardload_error *error);

#endif
