/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the servers of a target, and queries all of them at the same time, so that several servers
 * that do not answer take no longer than one. */
#include "examine.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/log.h"

#define THREADS 16
#define LONG_SECONDS 60   /* operations that run longer are reported */
#define SERVERS_MAX 10000 /* each is compared with all others */

/* ---- one server ---- */

void sl_ask(const sl_examined_server *server, const char *database, bson_t *command,
            sl_server_answer *answer) {
    sl_error error = {0};
    *answer = (sl_server_answer){0};
    if (!server->member) {
        bson_init(&answer->reply);
        snprintf(answer->why, sizeof answer->why, "%s", server->not_opened);
        bson_destroy(command);
        return;
    }
    answer->ok =
        sl_member_command(server->member, database, command, &answer->reply, &answer->code, &error);
    bson_destroy(command);
    if (answer->ok)
        return;
    if (answer->code == SL_MEMBER_UNKNOWN_USER)
        sl_print_text(answer->why, sizeof answer->why,
                      "the user does not exist on %s: create it there too, as for --route direct",
                      server->name);
    else
        sl_print_text(answer->why, sizeof answer->why, SL_LINES, error.message);
}

static bson_t *question(const sl_examined *examined, sl_question which) {
    switch (which) {
    case SL_ASK_HELLO:
        return BCON_NEW(sl_connection_server(examined->connection)->hello, BCON_INT32(1),
                        "compression", "[", "zstd", "zlib", "snappy", "]");
    case SL_ASK_STATUS:
        return BCON_NEW("serverStatus", BCON_INT32(1), "metrics", BCON_INT32(0), "locks",
                        BCON_INT32(0), "oplog", BCON_INT32(1));
    case SL_ASK_REPLICAS:
        return BCON_NEW("replSetGetStatus", BCON_INT32(1));
    case SL_ASK_STORAGE: /* for a database that does not exist the reply would not show the disk */
        return BCON_NEW("dbStats", BCON_INT32(1));
    case SL_ASK_COMPATIBILITY:
        return BCON_NEW("getParameter", BCON_INT32(1), "featureCompatibilityVersion",
                        BCON_BOOL(true));
    case SL_ASK_OPLOG:
        return BCON_NEW("collStats", BCON_UTF8("oplog.rs"));
    default:
        return BCON_NEW("currentOp", BCON_INT32(1), "active", BCON_BOOL(true), "secs_running", "{",
                        "$gte", BCON_INT32(LONG_SECONDS), "}");
    }
}

/* Does the question apply to a server of this role? */
static bool concerns(const sl_examined_server *server, sl_question which) {
    bool stores = server->role == SL_ROLE_PRIMARY || server->role == SL_ROLE_SECONDARY;
    switch (which) {
    case SL_ASK_HELLO:
        return true;
    case SL_ASK_STATUS:
        return server->role != SL_ROLE_NONE && server->role != SL_ROLE_ARBITER;
    case SL_ASK_REPLICAS:
        return stores && sl_look_text(&server->answers[SL_ASK_HELLO].reply, "setName");
    case SL_ASK_OPERATIONS:
    case SL_ASK_COMPATIBILITY:
        return server->role == SL_ROLE_PRIMARY;
    case SL_ASK_OPLOG:
        return server->role == SL_ROLE_PRIMARY && concerns(server, SL_ASK_REPLICAS);
    default:
        return stores;
    }
}

static sl_server_role role_of(const bson_t *hello) {
    const char *message = sl_look_text(hello, "msg");
    if (message && strcmp(message, "isdbgrid") == 0)
        return SL_ROLE_ROUTER;
    if (sl_look_truth(hello, "arbiterOnly") == 1)
        return SL_ROLE_ARBITER;
    if (sl_look_truth(hello, "isWritablePrimary") == 1 || sl_look_truth(hello, "ismaster") == 1)
        return SL_ROLE_PRIMARY;
    return sl_look_truth(hello, "secondary") == 1 ? SL_ROLE_SECONDARY : SL_ROLE_NONE;
}

/* The server's clock is compared with the middle of the exchange. */
static void compare_clocks(sl_examined_server *server, int64_t before, int64_t after) {
    bson_iter_t iter;
    server->clock_ms = NAN;
    if (server->answers[SL_ASK_HELLO].ok &&
        bson_iter_init_find(&iter, &server->answers[SL_ASK_HELLO].reply, "localTime") &&
        BSON_ITER_HOLDS_DATE_TIME(&iter)) {
        server->clock_ms =
            (double)bson_iter_date_time(&iter) - ((double)before + (double)after) / 2;
        server->error_ms = (double)(after - before) / 2;
    }
}

/* Drops an answer for which there is no room: a server decides how long its answers are. */
static void limit_answers(sl_examined *examined, sl_server_answer *answer) {
    const uint32_t length = answer->reply.len;
    if (atomic_fetch_add(&examined->kept, length) + length <= SL_CURSOR_KEPT_MAX)
        return;
    atomic_fetch_sub(&examined->kept, length);
    bson_destroy(&answer->reply);
    bson_init(&answer->reply);
    answer->ok = false;
    snprintf(answer->why, sizeof answer->why,
             "the answers of all servers have more than %d MiB, the most that this program keeps",
             (int)(SL_CURSOR_KEPT_MAX >> 20));
}

static void ask_server(sl_examined *examined, int64_t start, sl_examined_server *server) {
    const unsigned limit = examined->config->limit_seconds;
    sl_error error = {0};
    if (sl_seconds_since(start) < (double)limit * SL_ASK_TIMES)
        server->member = sl_member_open(examined->connection, server->name, limit * 1000, &error);
    else
        sl_error_set(&error, SL_EXIT_CLUSTER, "not asked: the other servers took %u s",
                     limit * SL_ASK_TIMES);
    if (!server->member)
        sl_print_text(server->not_opened, sizeof server->not_opened, SL_LINES, error.message);
    for (int which = 0; which < SL_QUESTIONS; which++) {
        sl_server_answer *answer = &server->answers[which];
        if (!concerns(server, which))
            continue;
        int64_t before = sl_wall_clock_ms();
        sl_ask(server, which == SL_ASK_OPLOG ? "local" : "admin", question(examined, which),
               answer);
        if (which == SL_ASK_HELLO && answer->ok) { /* the first command also connects */
            bson_destroy(&answer->reply);
            before = sl_wall_clock_ms();
            sl_ask(server, "admin", question(examined, which), answer);
        }
        int64_t after = sl_wall_clock_ms();
        limit_answers(examined, answer);
        if (which == SL_ASK_HELLO) {
            compare_clocks(server, before, after);
            server->role = answer->ok ? role_of(&answer->reply) : SL_ROLE_NONE;
        }
    }
    const char *version = sl_look_text(&server->answers[SL_ASK_STATUS].reply, "version");
    if (!version && server->answers[SL_ASK_HELLO].ok) {
        sl_server_answer build;
        sl_ask(server, "admin", BCON_NEW("buildInfo", BCON_INT32(1)), &build);
        snprintf(server->version, sizeof server->version, "%s",
                 sl_look_string(&build.reply, "version"));
        bson_destroy(&build.reply);
    } else {
        snprintf(server->version, sizeof server->version, "%s", version ? version : "");
    }
}

typedef struct asking {
    sl_examined *examined;
    int64_t start;
    _Atomic size_t next;
} asking;

static void *ask_servers(void *context) {
    asking *a = context;
    for (size_t i; (i = atomic_fetch_add(&a->next, 1)) < a->examined->count;)
        ask_server(a->examined, a->start, &a->examined->servers[i]);
    return NULL;
}

static void ask_all(sl_examined *examined) {
    asking a = {.examined = examined, .start = sl_clock_ns()};
    pthread_t threads[THREADS];
    size_t started = 0;
    while (started < THREADS && started + 1 < examined->count &&
           sl_thread_start(&threads[started], ask_servers, &a) == 0)
        started++;
    ask_servers(&a);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- finding the servers ---- */

typedef struct adding {
    sl_examined *examined;
    const char *shard;
    bool failed;
} adding;

static void add_server(void *context, const char *name) {
    adding *a = context;
    sl_examined *examined = a->examined;
    for (size_t i = 0; i < examined->count; i++) {
        if (strcmp(examined->servers[i].name, name) == 0)
            return;
    }
    sl_examined_server *servers =
        examined->count == SERVERS_MAX
            ? NULL
            : sl_grow(examined->servers, examined->count, &examined->room, sizeof *servers);
    if (!servers) {
        a->failed = true;
        return;
    }
    examined->servers = servers;
    sl_examined_server *server = &servers[examined->count++];
    *server = (sl_examined_server){.clock_ms = NAN};
    for (size_t i = 0; i < SL_QUESTIONS; i++)
        bson_init(&server->answers[i].reply);
    snprintf(server->name, sizeof server->name, "%s", name);
    snprintf(server->shard, sizeof server->shard, "%s", a->shard);
}

/* The members of a shard, from "s0/host:port,host:port". */
static void add_members(adding *a, const sl_shard *shard) {
    const char *at = strchr(shard->host, '/');
    char name[SL_MEMBER_NAME_ROOM];
    a->shard = shard->name;
    for (at = at ? at + 1 : shard->host; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        add_server(a, name);
        at += length;
    }
}

static bool find_servers(sl_examined *examined, sl_error *error) {
    adding a = {.examined = examined, .shard = ""};
    bool sharded = examined->server->deployment == SL_SHARDED;
    if (!sharded)
        a.shard = examined->server->set_name[0] ? examined->server->set_name : "standalone";
    sl_connection_each_host(examined->connection, add_server, &a);
    if (sharded &&
        !sl_topology_read(examined->connection, &examined->topology, &examined->topology_why))
        examined->topology = NULL;
    for (size_t i = 0; examined->topology && i < examined->topology->count; i++)
        add_members(&a, &examined->topology->shards[i]);
    if (a.failed && examined->count == SERVERS_MAX)
        return sl_error_set(error, SL_EXIT_CLUSTER, "the target has more than %d servers",
                            SERVERS_MAX);
    return !a.failed || sl_error_memory(error, "examining the servers");
}

bool sl_examine(const sl_doctor_config *config, sl_examined *examined, sl_error *error) {
    const sl_load_config *load = config->load;
    *examined = (sl_examined){.config = config, .started = sl_wall_clock_ms()};
    if (load->path_count > 0 || load->format_options.ycsb.records > 0) {
        sl_load_config offline = *load;
        offline.uri = NULL;
        if (!sl_preview_create(&offline, 1, config->blocks, &examined->preview, error))
            return false;
    }
    if (!(examined->connection =
              sl_load_open_connection(load, SL_FOR_EXAMINING, "shardload doctor", 2, error)))
        return false;
    examined->server = sl_connection_server(examined->connection);
    if (!find_servers(examined, error))
        return false;
    ask_all(examined);
    return true;
}

void sl_examined_clear(sl_examined *examined) {
    for (size_t i = 0; i < examined->count; i++) {
        sl_examined_server *server = &examined->servers[i];
        for (size_t k = 0; k < SL_QUESTIONS; k++)
            bson_destroy(&server->answers[k].reply);
        sl_member_close(server->member);
    }
    free(examined->servers);
    sl_topology_destroy(examined->topology);
    sl_preview_destroy(examined->preview);
    sl_connection_close(examined->connection);
}

sl_examined_server *sl_examined_front(const sl_examined *examined) {
    bool sharded = examined->server->deployment == SL_SHARDED;
    for (size_t i = 0; i < examined->count; i++) {
        if (examined->servers[i].role == (sharded ? SL_ROLE_ROUTER : SL_ROLE_PRIMARY))
            return &examined->servers[i];
    }
    return NULL;
}
