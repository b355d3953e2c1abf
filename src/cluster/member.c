/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of single servers; see member.h. */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct sl_member {
    sl_pool *pool;
    mongoc_client_t *client; /* of the pool */
    char name[SL_MEMBER_NAME_ROOM];
};

sl_member *sl_member_open(const sl_connection *connection, const char *host_and_port,
                          unsigned limit_ms, sl_error *error) {
    static const char *const limits[] = {MONGOC_URI_SOCKETTIMEOUTMS, MONGOC_URI_CONNECTTIMEOUTMS,
                                         MONGOC_URI_SERVERSELECTIONTIMEOUTMS};
    mongoc_uri_t *uri = sl_uri_of_server(host_and_port, sl_connection_uri(connection), error);
    sl_member *member = uri ? calloc(1, sizeof *member) : NULL;
    if (!member) {
        if (uri)
            sl_error_memory(error, "connecting");
        mongoc_uri_destroy(uri);
        return NULL;
    }
    snprintf(member->name, sizeof member->name, "%s", host_and_port);
    mongoc_uri_set_option_as_bool(uri, MONGOC_URI_DIRECTCONNECTION, true);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        mongoc_uri_set_option_as_int32(uri, limits[i], (int32_t)limit_ms);
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, 1);
    bson_error_t why;
    member->pool = sl_pool_create(uri, "shardload doctor", 0, &why);
    mongoc_uri_destroy(uri);
    if (!member->pool) {
        sl_error_from_driver(error, "connecting", &why);
        free(member);
        return NULL;
    }
    member->client = sl_pool_borrow(member->pool);
    return member;
}

void sl_member_close(sl_member *member) {
    if (!member)
        return;
    sl_pool_return(member->pool, member->client);
    sl_pool_destroy(member->pool);
    free(member);
}

bool sl_member_command(sl_member *member, const char *database, const bson_t *command,
                       bson_t *reply, int32_t *code, sl_error *error) {
    bson_error_t driver_error = {0};
    bson_iter_t iter;
    char doing[SL_MEMBER_NAME_ROOM + 80];
    bool ok =
        mongoc_client_command_simple(member->client, database, command, NULL, reply, &driver_error);
    *code = ok ? 0 : sl_code_from_driver(&driver_error);
    if (ok)
        return true;
    bool named = bson_iter_init(&iter, command) && bson_iter_next(&iter);
    snprintf(doing, sizeof doing, "%s on %s", named ? bson_iter_key(&iter) : "command",
             member->name);
    return sl_error_from_driver(error, doing, &driver_error);
}

/* The members that the primary lists. Returns whether there are any. */
static bool each_member(const bson_t *hello,
                        void (*found)(void *context, const char *host_and_port), void *context) {
    static const char *const lists[] = {"hosts", "passives", "arbiters"};
    bool any = false;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        bson_iter_t iter, items;
        if (!bson_iter_init_find(&iter, hello, lists[i]) || !bson_iter_recurse(&iter, &items))
            continue;
        for (; bson_iter_next(&items); any = true) {
            if (BSON_ITER_HOLDS_UTF8(&items))
                found(context, bson_iter_utf8(&items, NULL));
        }
    }
    return any;
}

void sl_connection_each_host(sl_connection *connection,
                             void (*found)(void *context, const char *host_and_port),
                             void *context) {
    size_t count;
    bson_t reply, *hello = BCON_NEW(sl_connection_server(connection)->hello, BCON_INT32(1));
    const mongoc_host_list_t *host = mongoc_uri_get_hosts(sl_connection_uri(connection));
    mongoc_client_t *client = sl_connection_borrow(connection);
    mongoc_client_command_simple(client, "admin", hello, NULL, &reply, NULL);
    if (!each_member(&reply, found, context)) {
        for (; host; host = host->next)
            found(context, host->host_and_port);
        /* A mongodb+srv URI contains no hosts. */
        mongoc_server_description_t **servers =
            mongoc_client_get_server_descriptions(client, &count);
        for (size_t i = 0; i < count; i++)
            found(context, mongoc_server_description_host(servers[i])->host_and_port);
        mongoc_server_descriptions_destroy_all(servers, count);
    }
    sl_connection_return(connection, client);
    bson_destroy(&reply);
    bson_destroy(hello);
}

/* ---- the hosts of a URI ---- */

#define HOST_MS 2000 /* for each command */

/* The deployment of a host. */
typedef struct sl_host {
    const char *name;
    char deployment[120]; /* "a router of the cluster 65..."; "": not known */
    bson_t hello;
} sl_host;

/* Sets `id` to the id of the router's cluster; "" if it cannot be read. */
static void read_cluster_id(sl_member *member, char id[25]) {
    bson_t reply;
    bson_iter_t field;
    int32_t code;
    sl_error error;
    bson_t *find = BCON_NEW("find", "version", "limit", BCON_INT32(1));
    bool ok = sl_member_command(member, "config", find, &reply, &code, &error);
    id[0] = '\0';
    if (ok && sl_look_find(&reply, "cursor.firstBatch.0.clusterId", &field) &&
        BSON_ITER_HOLDS_OID(&field))
        bson_oid_to_string(bson_iter_oid(&field), id);
    bson_destroy(&reply);
    bson_destroy(find);
}

/* Initialises `host`; the caller destroys its `hello`. */
static void read_host(sl_connection *connection, sl_host *host, const char *name) {
    char id[25];
    int32_t code;
    sl_error error;
    sl_member *member = sl_member_open(connection, name, HOST_MS, &error);
    bson_t *hello = BCON_NEW(sl_connection_server(connection)->hello, BCON_INT32(1));
    host->name = name;
    host->deployment[0] = '\0';
    bson_init(&host->hello);
    if (member && sl_member_command(member, "admin", hello, &host->hello, &code, &error)) {
        const char *set = sl_look_string(&host->hello, "setName");
        bool router = strcmp(sl_look_string(&host->hello, "msg"), "isdbgrid") == 0;
        if (router)
            read_cluster_id(member, id);
        if (router && id[0])
            snprintf(host->deployment, sizeof host->deployment, "a router of the cluster %s", id);
        else if (!router && set[0])
            snprintf(host->deployment, sizeof host->deployment, "a member of the replica set %.80s",
                     set);
        else if (!router && !sl_look_flag(&host->hello, "isreplicaset"))
            snprintf(host->deployment, sizeof host->deployment, "a server of its own");
    }
    bson_destroy(hello);
    sl_member_close(member);
}

/* Do the members of two replica sets of one name list each other? */
static bool share_members(const bson_t *a, const bson_t *b) {
    bson_iter_t from, list, to, other;
    bool listed = bson_iter_init_find(&from, a, "hosts") && bson_iter_init_find(&to, b, "hosts");
    if (!listed) /* routers, or members that do not list them */
        return true;
    for (bool more = bson_iter_recurse(&from, &list); more && bson_iter_next(&list);) {
        for (more = bson_iter_recurse(&to, &other); more && bson_iter_next(&other);) {
            if (BSON_ITER_HOLDS_UTF8(&list) && BSON_ITER_HOLDS_UTF8(&other) &&
                strcmp(bson_iter_utf8(&list, NULL), bson_iter_utf8(&other, NULL)) == 0)
                return true;
        }
    }
    return false;
}

static bool check_host(const sl_host *first, const sl_host *host, sl_error *error) {
    if (!first->deployment[0] || !host->deployment[0])
        return true;
    bool same = strcmp(first->deployment, host->deployment) == 0;
    if (same && share_members(&first->hello, &host->hello))
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "the hosts of --uri do not belong together: %s is %s, and %s is %s%s. Name "
                        "the hosts of one cluster or replica set only",
                        first->name, first->deployment, host->name,
                        same ? "of another set, also " : "", host->deployment);
}

bool sl_check_hosts(sl_connection *connection, sl_error *error) {
    const mongoc_host_list_t *at = mongoc_uri_get_hosts(sl_connection_uri(connection));
    if (!at || !at->next || mongoc_uri_get_srv_hostname(sl_connection_uri(connection)))
        return true;
    sl_host first = {.deployment = ""}, other;
    bool ok = true;
    while (at && !first.deployment[0]) {
        read_host(connection, &first, at->host_and_port);
        at = at->next;
        if (!first.deployment[0])
            bson_destroy(&first.hello);
    }
    for (; ok && at; at = at->next) {
        read_host(connection, &other, at->host_and_port);
        ok = check_host(&first, &other, error);
        bson_destroy(&other.hello);
    }
    if (first.deployment[0])
        bson_destroy(&first.hello);
    return ok;
}
