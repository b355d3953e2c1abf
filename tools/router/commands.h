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

struct command;
typedef enum outcome (*command_handler)(struct session *session, const struct request *request,
                                        const struct command *command, bson_t *reply);

struct command {
    const char *name;
    const char *alias; /* another spelling, or NULL */
    command_handler run;
    const char *sent_as; /* the server's name of the command; NULL: the same */
    unsigned flags;
};

/* Runs any command of a client. */
enum outcome command_run(struct session *session, const struct request *request, bson_t *reply);

/* True for the names of the first command on a connection. */
bool command_is_handshake(const char *name);

/*
 * Initialises `out` as the command with another name and without the fields that are not forwarded:
 * sessions, transaction numbers, cluster times, API versions.
 */
void command_rewrite(const bson_t *command, const char *name, bson_t *out);

/*
 * Initialises `out` as a client's command rewritten for the server: under the name it is sent as,
 * and with the default write concern, which shards leave to routers, where a write has none.
 */
void command_prepare(const struct request *request, const struct command *command, bson_t *out);

/* Appends `command`'s field `name`, where it has one, to `out`. */
void copy_field(const bson_t *command, const char *name, bson_t *out);

/* command_local.c: commands that the router answers itself */
enum outcome answer_hello(struct session *, const struct request *, const struct command *,
                          bson_t *);
enum outcome answer_ping(struct session *, const struct request *, const struct command *,
                         bson_t *);
enum outcome answer_my_address(struct session *, const struct request *, const struct command *,
                               bson_t *);
enum outcome answer_list_commands(struct session *, const struct request *, const struct command *,
                                  bson_t *);

/* command_forward.c: commands that are forwarded to one server */
enum outcome forward_home(struct session *, const struct request *, const struct command *,
                          bson_t *);
enum outcome forward_config(struct session *, const struct request *, const struct command *,
                            bson_t *);
enum outcome forward_primary(struct session *, const struct request *, const struct command *,
                             bson_t *);
enum outcome forward_everywhere(struct session *, const struct request *, const struct command *,
                                bson_t *);
enum outcome forward_get_more(struct session *, const struct request *, const struct command *,
                              bson_t *);
enum outcome kill_cursors(struct session *, const struct request *, const struct command *,
                          bson_t *);

/* Sends `body` to one set, and stores the cursor of the reply, if any. */
enum outcome forward_to(struct session *session, const struct request *request,
                        const struct command *command, size_t set, const bson_t *body,
                        bson_t *reply);

/*
 * session_run on the shard that the session routes through, once more with a renewed routing table
 * when that shard's is old.
 */
bool run_at_home(struct session *session, const struct request *request, const bson_t *body,
                 bson_t *reply);

/* command_query.c: reads and writes without a cluster* form */
enum outcome run_count(struct session *, const struct request *, const struct command *, bson_t *);
enum outcome run_distinct(struct session *, const struct request *, const struct command *,
                          bson_t *);
enum outcome run_explain(struct session *, const struct request *, const struct command *,
                         bson_t *);
enum outcome run_find_and_modify(struct session *, const struct request *, const struct command *,
                                 bson_t *);

/* command_schema.c: databases, collections, indexes */
enum outcome run_ddl(struct session *, const struct request *, const struct command *, bson_t *);
enum outcome run_drop_database(struct session *, const struct request *, const struct command *,
                               bson_t *);
enum outcome run_on_owners(struct session *, const struct request *, const struct command *,
                           bson_t *);
enum outcome run_list_indexes(struct session *, const struct request *, const struct command *,
                              bson_t *);
enum outcome run_rename(struct session *, const struct request *, const struct command *, bson_t *);

/* command_sharding.c: sharded collections, chunks, zones, the balancer */
enum outcome run_enable_sharding(struct session *, const struct request *, const struct command *,
                                 bson_t *);
enum outcome run_shard_collection(struct session *, const struct request *, const struct command *,
                                  bson_t *);
enum outcome run_split(struct session *, const struct request *, const struct command *, bson_t *);
enum outcome run_move_chunk(struct session *, const struct request *, const struct command *,
                            bson_t *);
enum outcome run_move_range(struct session *, const struct request *, const struct command *,
                            bson_t *);
enum outcome run_on_config(struct session *, const struct request *, const struct command *,
                           bson_t *);
enum outcome run_list_shards(struct session *, const struct request *, const struct command *,
                             bson_t *);

/* command_stats.c: sums of the shards' statistics */
enum outcome run_collection_stats(struct session *, const struct request *, const struct command *,
                                  bson_t *);
enum outcome run_database_stats(struct session *, const struct request *, const struct command *,
                                bson_t *);
enum outcome run_list_databases(struct session *, const struct request *, const struct command *,
                                bson_t *);

/*
 * Runs `command` (without its version and "$db") on every shard that owns chunks of a sharded
 * collection, again when the routing proved out of date, and gives each reply to `each`. False with
 * an error in `reply` (initialised only then) as soon as one shard refuses. `restart` is called
 * before each round, so that a sum begins anew.
 */
struct owner_visitor {
    void (*restart)(void *state);
    void (*each)(void *state, const struct node_set *shard, const bson_t *reply);
    void *state;
};
bool visit_owners(struct session *session, const char *db, const char *ns, struct routing *routing,
                  const bson_t *command, const struct owner_visitor *visitor, bson_t *reply);

#endif
