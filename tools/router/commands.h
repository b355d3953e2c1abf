/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handling of commands: a table from names to handlers, which are in the command_*.c files. A
 * command that is not in the table gets an error.
 */

#ifndef ROUTER_COMMANDS_H
#define ROUTER_COMMANDS_H

#include "answer.h"
#include "metadata.h"
#include "session.h"

enum command_flag {
    COMMAND_REPEATABLE = 1u << 0,   /* may be run twice */
    COMMAND_OPENS_CURSOR = 1u << 1, /* the reply may contain the id of a cursor */
    COMMAND_WRITES = 1u << 2,       /* has a write concern, the default one if none is given */
    COMMAND_CREATES = 1u << 3,      /* creates a missing database */
};

typedef enum outcome command_handler(struct session *session, const struct request *request,
                                     bson_t *reply);

/* Handles a command on the sharded collection `ns`. */
typedef enum outcome sharded_handler(struct session *session, const struct request *request,
                                     const char *ns, struct routing *routing, bson_t *reply);

struct command {
    const char *name;
    const char *alias; /* another spelling, or NULL */
    command_handler *run;
    sharded_handler *sharded; /* for run_by_sharding */
    const char *sent_as;      /* the server's name of the command; NULL: the same */
    unsigned flags;
};

/* Runs any command of a client. */
enum outcome command_run(struct session *session, struct request *request, bson_t *reply);

/* True for the names of the first command on a connection. */
bool command_is_handshake(const char *name);

/*
 * Initialises `out` as the command with another name and without the fields that are not forwarded:
 * sessions, transaction numbers, cluster times, API versions.
 */
void command_rewrite(const bson_t *command, const char *name, bson_t *out);

/* Like command_rewrite, with the write concern that commands on metadata require. */
void command_rewrite_majority(const bson_t *command, const char *name, bson_t *out);

/*
 * Initialises `out` as a client's command rewritten for the server: under the name it is sent as,
 * and with the default write concern, which shards leave to routers, where a write has none.
 */
void command_prepare(const struct request *request, bson_t *out);

/* Appends `command`'s field `name`, where it has one, to `out`. */
void copy_field(const bson_t *command, const char *name, bson_t *out);

/* command_local.c: commands that the router answers itself */
command_handler answer_hello, answer_ping, answer_my_address, answer_list_commands;

/* command_forward.c: commands that are forwarded to one server */
command_handler forward_home, forward_config, forward_primary, forward_everywhere, forward_get_more,
    kill_cursors;

/*
 * Runs a command on a collection: by its `sharded` handler if the collection is sharded, otherwise
 * on the primary shard of its database.
 */
command_handler run_by_sharding;

/* Sends `body` to one set, and stores the cursor of the reply, if any. */
enum outcome forward_to(struct session *session, const struct request *request, size_t set,
                        const bson_t *body, bson_t *reply);

/*
 * Runs `command` on each set from number `first`, and passes each reply to `each` (NULL: to
 * nothing). False with an error in `reply` (initialised only then) as soon as one refuses.
 */
typedef void reply_visitor(void *state, const struct node_set *set, const bson_t *reply);
bool run_on_sets(struct session *session, size_t first, const bson_t *command, reply_visitor *each,
                 void *state, bson_t *reply);

/*
 * session_run on the shard that the session routes through, once more with a renewed routing table
 * when that shard's is old.
 */
bool run_at_home(struct session *session, const struct request *request, const bson_t *body,
                 bson_t *reply);

/* command_query.c: reads and writes without a cluster* form */
command_handler run_count, run_distinct, run_explain;
sharded_handler find_and_modify;

/* command_schema.c: databases, collections, indexes */
command_handler run_ddl, run_drop_database, run_rename;
sharded_handler run_on_owners, list_indexes;

/* command_sharding.c: sharded collections, chunks, zones, the balancer */
command_handler run_enable_sharding, run_shard_collection, run_split, run_move_chunk,
    run_move_range, run_on_config, run_list_shards;

/* command_stats.c: sums of the shards' statistics */
command_handler run_database_stats, run_list_databases;
sharded_handler collection_stats;

/*
 * Runs `command` (without its version and "$db") on every shard that owns chunks of a sharded
 * collection, again if the routing is out of date, and passes each reply to `each`. False with an
 * error in `reply` (initialised only then) as soon as one shard refuses. `restart` is called before
 * each round, so that a sum restarts at 0.
 */
struct owner_visitor {
    void (*restart)(void *state);
    reply_visitor *each;
    void *state;
};
bool visit_owners(struct session *session, const char *db, const char *ns, struct routing *routing,
                  const bson_t *command, const struct owner_visitor *visitor, bson_t *reply);

#endif
