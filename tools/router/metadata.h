/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The config servers' data about a database or a collection. It is read for each command that needs
 * it and not cached, so it is always current; such commands are rare.
 */

#ifndef ROUTER_METADATA_H
#define ROUTER_METADATA_H

#include <bson/bson.h>
#include <stdbool.h>

#include "session.h"

enum {
    MAX_NAMESPACE = 512, /* bytes of "db.collection", NUL included: more than the server allows */
    MAX_SHARDS = 1024,
    STALE_ATTEMPTS = 10, /* attempts to route a command again before its error is returned */
};

struct database {
    bool exists;
    size_t primary; /* the set of its primary shard; CONFIG_SET for admin and config */
    bson_t version; /* a copy: destroyed by database_clear */
};

/* Looks a database up. False with a server-style error in `reply` (initialised only then). */
bool database_load(struct session *session, const char *name, struct database *database,
                   bson_t *reply);

/* Like database_load, but lets the config server create a missing database. */
bool database_ensure(struct session *session, const char *name, struct database *database,
                     bson_t *reply);

/*
 * Creates the database with this primary shard (NULL: any), or checks that it exists. False with an
 * error in `reply` (initialised only then).
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

/* The distribution of a collection over the shards. */
struct routing {
    bool sharded;
    bson_value_t uuid; /* this and the following fields: only of a sharded collection */
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
 * Appends the version of the routing. The owner refuses a command with an outdated version with
 * CODE_STALE_CONFIG.
 */
void routing_append_version(const struct routing *routing, const struct owner *owner,
                            bson_t *command);

/* Writes "db.collection" of a request. False, with an error, if it names no collection. */
bool request_namespace(const struct request *request, char ns[MAX_NAMESPACE], bson_t *reply);

/* Splits "db.collection", an argument of admin commands. False, with an error, for other forms. */
bool split_namespace(const char *ns, char db[MAX_NAMESPACE], const char **collection,
                     bson_t *reply);

/*
 * The first document of a cursor reply's firstBatch, as a view on the reply. False when it is
 * empty.
 */
bool first_of_batch(const bson_t *reply, bson_t *document);

/* The document or array of that name in a document, as a view. False if there is none. */
bool find_document(const bson_t *document, const char *name, bson_t *value);

/* The text of that name in a document, or NULL. */
const char *find_text(const bson_t *document, const char *name);

/* The write concern of commands that change metadata. */
void append_majority(bson_t *command);

#endif
