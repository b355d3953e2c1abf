/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the config servers know about a database or a collection. It is asked for whenever it is
 * needed and never kept, so it cannot grow stale: the commands that need it are the rare ones.
 */

#ifndef ROUTER_METADATA_H
#define ROUTER_METADATA_H

#include <bson/bson.h>
#include <stdbool.h>

#include "session.h"

enum {
    MAX_NAMESPACE = 512, /* bytes of "db.collection", NUL included: more than the server allows */
    MAX_SHARDS = 1024,
    STALE_ATTEMPTS = 10, /* how often a command is routed anew before its error is passed on */
};

struct database {
    bool exists;
    size_t primary; /* the set of its primary shard; CONFIG_SET for admin and config */
    bson_t version; /* a copy: destroyed by database_clear */
};

/* Looks a database up. False with a server-style error in `reply` (initialised only then). */
bool database_load(struct session *session, const char *name, struct database *database,
                   bson_t *reply);

/* As database_load, but makes the database, placed by the config server, when it is missing. */
bool database_ensure(struct session *session, const char *name, struct database *database,
                     bson_t *reply);

/*
 * Makes the database with the primary shard that is wished for (NULL: any), or checks that it is
 * there. False with an error in `reply` (initialised only then).
 */
bool database_create(struct session *session, const char *name, const char *shard, bson_t *reply);

void database_clear(struct database *database);

/* A shard that owns chunks of a collection, with the newest version among them. */
struct owner {
    size_t set;
    int64_t chunks;
    uint32_t major; /* the version's seconds and increment */
    uint32_t minor;
};

/* How a collection is spread over the shards. */
struct routing {
    bool sharded;
    bson_value_t uuid; /* like all that follows: only where it is sharded */
    bson_oid_t epoch;
    uint32_t timestamp_seconds;
    uint32_t timestamp_increment;
    bson_t key; /* the shard key pattern */
    struct owner *owners;
    size_t owner_count;
};

/* Looks a collection up. False with a server-style error in `reply` (initialised only then). */
bool routing_load(struct session *session, const char *ns, struct routing *routing, bson_t *reply);
void routing_clear(struct routing *routing);

/*
 * Appends the version that makes the owner refuse a command (with CODE_STALE_CONFIG) which was
 * routed with an out-of-date idea of who owns what.
 */
void routing_append_version(const struct routing *routing, const struct owner *owner,
                            bson_t *command);

/* Writes "db.collection" of a request. False, with an error, when there is no collection. */
bool request_namespace(const struct request *request, char ns[MAX_NAMESPACE], bson_t *reply);

/* Splits "db.collection", as admin commands carry it. False, with an error, when it is not that. */
bool split_namespace(const char *ns, char db[MAX_NAMESPACE], const char **collection,
                     bson_t *reply);

/*
 * The first document of a cursor reply's firstBatch, as a view on the reply. False when it is
 * empty.
 */
bool first_of_batch(const bson_t *reply, bson_t *document);

/* A document's own document or array of that name, as a view. False when there is none. */
bool find_document(const bson_t *document, const char *name, bson_t *value);

/* A document's own text of that name, or NULL. */
const char *find_text(const bson_t *document, const char *name);

/* The commands that change metadata want to be durable before they are believed. */
void append_majority(bson_t *command);

#endif
