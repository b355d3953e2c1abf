/* SPDX-License-Identifier: Apache-2.0 */
/* From the options of a command to the configuration of a load. */
#ifndef SHARDLOAD_LOAD_SETUP_H
#define SHARDLOAD_LOAD_SETUP_H

#include <bson/bson.h>

#include <shardload/load.h>
#include <shardload/options.h>

/* A configuration with all that it borrows. */
typedef struct sl_setup {
    sl_load_config config;
    bson_t options; /* as they stand in the record */
    bson_t *shard_key;
    bson_t **indexes;
    const char **paths;
    char *schema_text;
    char *uri;
    char write_concern[24];
} sl_setup;

/* An empty configuration, with the options recorded. Clear it in any case. */
void sl_setup_init(sl_setup *setup, const sl_options *options);
void sl_setup_clear(sl_setup *setup);

/* Each of these adds what is wrong to the error (SL_EXIT_USAGE), one line per problem, and goes on;
 * false also when there is no memory. The target's part may ask the user for a password, and does so
 * only while nothing is wrong. */

/* What is loaded: sources, their format, schema. */
bool sl_set_up_source(sl_setup *setup, const sl_options *options, sl_error *error);
/* Where to: connection, database, collection. */
void sl_set_up_target(sl_setup *setup, const sl_options *options, sl_error *error);
/* What the collection is like: shard key, indexes, compressor, clustered. */
void sl_set_up_layout(sl_setup *setup, const sl_options *options);
/* How it runs, and what it leaves behind: threads, progress, work directory, report. */
void sl_set_up_run(sl_setup *setup, const sl_options *options);
/* All of that, and layout, delivery and limits: a load. False when anything is wrong. */
bool sl_set_up_load(sl_setup *setup, const sl_options *options, sl_error *error);

/* Adds one more problem. Returns false. */
bool sl_option_problem(sl_error *error, const char *text);

#endif
