/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the options of a command to the configuration of a load. */
#ifndef SHARDLOAD_LOAD_SETUP_H
#define SHARDLOAD_LOAD_SETUP_H

#include <bson/bson.h>

#include "load/load.h"
#include "options.h"

/* A configuration, and the data that it borrows. */
typedef struct sl_setup {
    sl_load_config config;
    bson_t options; /* for the run record */
    bson_t document_options;
    bson_t *shard_key;
    bson_t **indexes;
    char *schema_text;
    char *embed_schema_text;
    struct sl_schema *schema, *embed_schema; /* of these texts; NULL: they are none of tables */
    char *shard_keys_text;                   /* of restore */
    char embed_field[SL_EMBED_FIELD_MAX + 1];
    char *uri;
    char write_concern[24];
    char corrected_by[2000];
} sl_setup;

/* Sets up an empty configuration with the options recorded. End it with sl_setup_end. */
void sl_setup_init(sl_setup *setup, const sl_options *options);
/* Ends a command: clears the configuration, and logs the error if there is one. Returns the code of
 * the error, or else `code`. */
int sl_setup_end(sl_setup *setup, const sl_error *error, sl_exit code);

/* Each function below adds its problems to the error (SL_EXIT_USAGE, one line each) and
 * continues. */

/* Sets the sources, their format and schema. */
void sl_set_up_source(sl_setup *setup, const sl_options *options, sl_error *error);
/* Sets the connection, database and collection. Asks the user for a password only if all options
 * so far are correct. */
void sl_set_up_target(sl_setup *setup, const sl_options *options, sl_error *error);
/* Sets the connection of `doctor`, and database and collection as far as given. */
void sl_set_up_examined(sl_setup *setup, const sl_options *options, sl_error *error);
/* --embed; after sl_set_up_run. */
void sl_set_up_embed(sl_setup *setup, const sl_options *options, sl_error *error);
/* Lists the options that change documents, for the journal; after the functions above. */
void sl_set_up_document_options(sl_setup *setup, const sl_options *options);
/* Sets the properties of the collection: shard key, indexes, compressor, clustered. */
void sl_set_up_layout(sl_setup *setup, const sl_options *options, sl_error *error);
/* Sets the mode and the fields to match, and refuses the options that they exclude. */
void sl_set_up_mode(sl_load_config *config, const sl_options *options, sl_error *error);
/* Sets the threads, progress display, work directory and report. */
void sl_set_up_run(sl_setup *setup, const sl_options *options);
/* Sets all options of a load: calls the functions above, and sets delivery and limits. False if an
 * option is wrong. */
bool sl_set_up_load(sl_setup *setup, const sl_options *options, sl_error *error);
/* Sets all options of a restore that its loads have in common. False if an option is wrong. */
bool sl_set_up_restore(sl_setup *setup, const sl_options *options, sl_error *error);
/* Sets the options of `verify --dump`. */
void sl_set_up_verify_dump(sl_setup *setup, const sl_options *options, sl_error *error);

#endif
