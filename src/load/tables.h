/* SPDX-License-Identifier: Apache-2.0 */
/* Loads of many tables: without --collection, each table of an SQL dump and each file becomes a
 * collection of its name.
 *
 * The loads run one after the other, each with its own work directory, below the given one: a load
 * is resumed, counted and verified as any other, and the balancer, the registry and the journal
 * know no other case. What reads the sources more than once (one load per table; the primary keys,
 * which pg_dump writes last) needs a file: a dump from a pipe is copied into the work directory
 * first. */
#ifndef SHARDLOAD_TABLES_H
#define SHARDLOAD_TABLES_H

#include "job/load_config.h"
#include "util/error.h"

/* --id-field: the columns of each table's primary key. */
#define SL_PRIMARY_KEY "primary-key"

/* Runs a command for one table: sl_load_run, or another. */
typedef sl_exit sl_table_run(const sl_load_config *config, void *context);

/* Is the only source an SQL dump, in a file? */
bool sl_tables_in_dump(const sl_load_config *config);

/* Does the command run for several tables, or have the sources to be examined before it: without
 * --collection, for a dump, or with --id-field primary-key? */
bool sl_tables_are_many(const sl_load_config *config);

/* Runs `run` for each table, and logs the outcome of each. `loads`: it is a load. Returns the most
 * severe exit code; an interruption and an error of the cluster end the remaining ones. */
sl_exit sl_tables_run(const sl_load_config *config, bool loads, sl_table_run *run, void *context);

#endif
