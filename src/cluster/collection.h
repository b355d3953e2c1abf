/* SPDX-License-Identifier: Apache-2.0 */
/* Collections and views with all of their options, as a restore creates them. A target is named by
 * its database and collection. Commands are repeated as those of cluster.h. Main thread. */
#ifndef SHARDLOAD_COLLECTION_H
#define SHARDLOAD_COLLECTION_H

#include "cluster.h"

/* A time-series collection X is a view of the collection "system.buckets.X". */
#define SL_BUCKETS "system.buckets."

/* The collection or view that the server has under a name. Clear it in any case. */
typedef struct sl_collection_facts {
    bool exists;
    char type[32];  /* "collection", "view", "timeseries" */
    bson_t options; /* always initialised */
    bool sharded;
    char uuid[33]; /* hexadecimal; "": views and time-series collections have none */
} sl_collection_facts;

bool sl_collection_read(sl_connection *connection, const sl_target *target,
                        sl_collection_facts *facts, sl_error *error);
void sl_collection_facts_clear(sl_collection_facts *facts);

/* What the server has under the name: its type and UUID, of a time-series collection the UUID of
 * its buckets; "": nothing. A view has no UUID. */
#define SL_COLLECTION_IDENTITY_ROOM 72
bool sl_collection_identity(sl_connection *connection, const sl_target *target,
                            char out[SL_COLLECTION_IDENTITY_ROOM], sl_error *error);

/* Has the collection any document? */
bool sl_collection_is_empty(sl_connection *connection, const sl_target *target, bool *empty,
                            sl_error *error);

/* Creates a collection or view with these options of the command `create`. Succeeds if it exists
 * already, whatever its options are: the command may have been sent twice. */
bool sl_collection_create(sl_connection *connection, const sl_target *target, const bson_t *options,
                          sl_error *error);

/* Drops only this collection or view. Succeeds if it does not exist. */
bool sl_collection_drop(sl_connection *connection, const char *database, const char *collection,
                        sl_error *error);

/* Builds all indexes of an array of specifications with one command. */
bool sl_collection_create_indexes(sl_connection *connection, const sl_target *target,
                                  const bson_t *indexes, sl_error *error);

/* The indexes of the collection, as an array of specifications; always initialised. */
bool sl_collection_indexes(sl_connection *connection, const sl_target *target, bson_t *indexes,
                           sl_error *error);

/* Sets these fields of the collection: the command collMod. */
bool sl_collection_modify(sl_connection *connection, const sl_target *target, const bson_t *fields,
                          sl_error *error);

/* Shards the collection, which must be empty or have an index for the key; `simple`: the collection
 * has a collation, so the shard key needs the simple collation. If it is already sharded, its key
 * must be this key. */
bool sl_collection_shard(sl_connection *connection, const sl_target *target, const bson_t *key,
                         bool unique, bool simple, sl_error *error);

#endif
