/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor thread sends replSetGetStatus once a second, and serverStatus when it starts and when
 * it ends. */
#include "query_load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mongoc/mongoc.h>

#include "bson/bson_lookup.h"
#include "util/context.h"

struct sl_monitor {
    sl_connection *connection;
    sl_monitor_figures figures;
    _Atomic bool end;
    pthread_t thread;
    bool started;
};

static bool run_command(mongoc_client_t *client, const char *command, bson_t *reply) {
    bson_error_t ignored;
    bson_t *document = BCON_NEW(command, BCON_INT32(1));
    bool ok = mongoc_client_command_simple(client, "admin", document, NULL, reply, &ignored);
    bson_destroy(document);
    return ok;
}

static int64_t number_at(const bson_t *reply, const char *path, bool *known) {
    bson_iter_t found;
    if (sl_look_find(reply, path, &found) && BSON_ITER_HOLDS_NUMBER(&found))
        return bson_iter_as_int64(&found);
    *known = false;
    return 0;
}

static sl_server_latencies read_latencies(mongoc_client_t *client) {
    sl_server_latencies read = {.known = true};
    bson_t reply;
    if (run_command(client, "serverStatus", &reply)) {
        read.reads = number_at(&reply, "opLatencies.reads.ops", &read.known);
        read.read_microseconds = number_at(&reply, "opLatencies.reads.latency", &read.known);
        read.writes = number_at(&reply, "opLatencies.writes.ops", &read.known);
        read.write_microseconds = number_at(&reply, "opLatencies.writes.latency", &read.known);
    } else {
        read.known = false;
    }
    bson_destroy(&reply);
    return read;
}

typedef struct member {
    const char *name;
    int64_t applied; /* time of the last applied operation, milliseconds since 1970 */
    bool primary;
} member;

static size_t read_members(const bson_t *reply, member *members) {
    bson_iter_t iter, list, field;
    size_t count = 0;
    if (!bson_iter_init_find(&iter, reply, "members") || !bson_iter_recurse(&iter, &list))
        return 0;
    while (count < SL_MEMBERS_MAX && bson_iter_next(&list)) {
        member *m = &members[count];
        *m = (member){0};
        bool has_time = false;
        if (!bson_iter_recurse(&list, &field))
            continue;
        while (bson_iter_next(&field)) {
            const char *key = bson_iter_key(&field);
            if (strcmp(key, "name") == 0 && BSON_ITER_HOLDS_UTF8(&field))
                m->name = bson_iter_utf8(&field, NULL);
            else if (strcmp(key, "state") == 0)
                m->primary = bson_iter_as_int64(&field) == 1;
            else if (strcmp(key, "optimeDate") == 0 && BSON_ITER_HOLDS_DATE_TIME(&field)) {
                m->applied = bson_iter_date_time(&field);
                has_time = true;
            }
        }
        count += m->name && has_time;
    }
    return count;
}

static sl_member_lag *lag_of(sl_monitor_figures *figures, const char *name) {
    for (size_t i = 0; i < figures->member_count; i++) {
        if (strncmp(figures->members[i].name, name, sizeof figures->members[i].name - 1) == 0)
            return &figures->members[i];
    }
    if (figures->member_count == SL_MEMBERS_MAX)
        return NULL;
    sl_member_lag *added = &figures->members[figures->member_count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

static void read_lags(sl_monitor *monitor, mongoc_client_t *client) {
    bson_t reply;
    member members[SL_MEMBERS_MAX];
    if (run_command(client, "replSetGetStatus", &reply)) {
        size_t count = read_members(&reply, members);
        const member *primary = NULL;
        for (size_t i = 0; i < count; i++)
            primary = members[i].primary ? &members[i] : primary;
        for (size_t i = 0; primary && i < count; i++) {
            sl_member_lag *lag =
                members[i].primary ? NULL : lag_of(&monitor->figures, members[i].name);
            if (!lag)
                continue;
            double behind = (double)(primary->applied - members[i].applied) / 1000;
            behind = behind > 0 ? behind : 0; /* the primary's time may be the older reading */
            lag->count++;
            lag->sum += behind;
            lag->max = behind > lag->max ? behind : lag->max;
        }
    }
    bson_destroy(&reply);
}

static void *run_monitor(void *context) {
    sl_monitor *monitor = context;
    bool replicated = sl_connection_server(monitor->connection)->deployment == SL_REPLICA_SET;
    mongoc_client_t *client = sl_connection_borrow(monitor->connection);
    sl_server_latencies begin = read_latencies(client);
    for (unsigned tick = 0; !atomic_load(&monitor->end); tick++) {
        if (replicated && tick % 10 == 0)
            read_lags(monitor, client);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    sl_server_latencies now = read_latencies(client);
    monitor->figures.server = (sl_server_latencies){
        .known = now.known && begin.known,
        .reads = now.reads - begin.reads,
        .read_microseconds = now.read_microseconds - begin.read_microseconds,
        .writes = now.writes - begin.writes,
        .write_microseconds = now.write_microseconds - begin.write_microseconds,
    };
    sl_connection_return(monitor->connection, client);
    return NULL;
}

sl_monitor *sl_monitor_start(sl_connection *connection) {
    sl_monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor)
        return NULL;
    monitor->connection = connection;
    monitor->started = sl_thread_start(&monitor->thread, run_monitor, monitor) == 0;
    return monitor;
}

void sl_monitor_end(sl_monitor *monitor, sl_monitor_figures *figures) {
    *figures = (sl_monitor_figures){0};
    if (!monitor)
        return;
    atomic_store(&monitor->end, true);
    if (monitor->started)
        pthread_join(monitor->thread, NULL);
    *figures = monitor->figures;
    free(monitor);
}
