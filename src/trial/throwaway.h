/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary collections beside the target: their names, their removal, and loads into them. The
 * name contains the host and the process that created the collection, so that the next trial can
 * find and remove collections of processes that have ended. */
#ifndef SHARDLOAD_THROWAWAY_H
#define SHARDLOAD_THROWAWAY_H

#include "cluster/cluster.h"
#include "load/load.h"

#define SL_THROWAWAY_ROOM 256

/* ---- names ---- */

/* Writes "<collection>.<kind>.<host>.<pid>.<start>.<number>": `host` is sl_host_identity, `start`
 * is sl_process_start of this process. False (SL_EXIT_USAGE) when the name is too long. */
bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error);

/* Drops the temporary collections of this kind beside the target, with their registries, that
 * ended processes of this host have left, and logs each. Collections of other hosts are only
 * logged, with advice; collections of running processes are left alone. `will_create`: also fails
 * if the user may not drop such a collection. */
bool sl_throwaway_begin(sl_connection *connection, const char *database, const char *collection,
                        const char *kind, bool will_create, sl_error *error);

/* ---- the current temporary collection ---- */

/* A trial has at most one temporary collection at a time. The functions below may be called by the
 * thread that creates it and by the thread that handles signals. */
typedef struct sl_throwaway {
    pthread_mutex_t lock; /* guards the next three fields */
    sl_connection *connection;
    const char *database;
    char name[SL_THROWAWAY_ROOM]; /* "" for none */
    _Atomic bool at_once;         /* sl_throwaway_drop_at_once has begun */
} sl_throwaway;

void sl_throwaway_init(sl_throwaway *current);
void sl_throwaway_clear(sl_throwaway *current);

/* Registers the collection; call it before the collection is created. `connection` and `database`
 * are borrowed until the last call of these functions; `name` is copied. */
void sl_throwaway_register(sl_throwaway *current, sl_connection *connection, const char *database,
                           const char *name);

/* Drops the registered collection and its registry; true when none is registered. On failure the
 * error contains the command that drops the collection, which stays registered, so that the call
 * can be repeated. */
bool sl_throwaway_drop(sl_throwaway *current, sl_error *error);

/* The same for the second signal, when inserts of a running load could create the collection again.
 * Call it from the signal handler (interrupt.h), which has stopped new requests: waits up to 5 s
 * for running requests, then drops the collection repeatedly, for up to 10 s, until it no longer
 * exists. */
bool sl_throwaway_drop_at_once(sl_throwaway *current, sl_error *error);

/* ---- loads into a temporary collection ---- */

/* How a load would shard its collection, so that a trial's collection is sharded likewise. */
typedef struct sl_trial_target {
    bson_t *shard_key; /* NULL: not sharded */
    bool empty;        /* the sources hold no document */
    double bson_bytes; /* of all their documents, estimated from above */
} sl_trial_target;

/* Decides as a load would (job/decision.h), by reads alone. Fails for each reason by which the load
 * would be refused, except that its sources have been loaded before, and that a pipe cannot be read
 * twice. */
bool sl_trial_target_decide(const sl_load_config *load, sl_trial_target *target, sl_error *error);
void sl_trial_target_clear(sl_trial_target *target);

/* Derives the configuration of a trial's load from `user_config`: `share` of the blocks is loaded
 * into `collection`, sharded as `target`, with fixed threads and batches, without report, HTML page
 * and advice about --resume. `run_record` is as in sl_load_config. The caller sets `drop` and
 * `verify`. All arguments are borrowed. */
sl_load_config sl_load_as_trial(const sl_load_config *user_config, const sl_trial_target *target,
                                const char *collection, const char *work_directory, double share,
                                bson_t *run_record);

#endif
