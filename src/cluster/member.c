/* SPDX-License-Identifier: Apache-2.0 */
/* A client of one server; see member.h. */
#include "member.h"

#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

struct sl_member {
    mongoc_client_t *client;
    char name[SL_MEMBER_NAME_ROOM];
};

sl_member *sl_member_open(const sl_connection *connection, const char *host_and_port,
                          unsigned limit_ms) {
    static const char *const limits[] = {MONGOC_URI_SOCKETTIMEOUTMS, MONGOC_URI_CONNECTTIMEOUTMS,
                                         MONGOC_URI_SERVERSELECTIONTIMEOUTMS};
    char host[SL_MEMBER_NAME_ROOM];
    snprintf(host, sizeof host, "%s", host_and_port);
    const sl_shard lone = {.name = host, .host = host};
    mongoc_uri_t *uri = sl_shard_uri(&lone, sl_connection_uri(connection));
    sl_member *member = uri ? calloc(1, sizeof *member) : NULL;
    if (!member) {
        mongoc_uri_destroy(uri);
        return NULL;
    }
    snprintf(member->name, sizeof member->name, "%s", host);
    mongoc_uri_set_option_as_bool(uri, MONGOC_URI_DIRECTCONNECTION, true);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        mongoc_uri_set_option_as_int32(uri, limits[i], (int32_t)limit_ms);
    member->client = mongoc_client_new_from_uri(uri);
    mongoc_uri_destroy(uri);
    if (!member->client) {
        free(member);
        return NULL;
    }
    mongoc_client_set_error_api(member->client, MONGOC_ERROR_API_VERSION_2);
    mongoc_client_set_appname(member->client, "shardload doctor");
    return member;
}

void sl_member_close(sl_member *member) {
    if (!member)
        return;
    mongoc_client_destroy(member->client);
    free(member);
}

bool sl_member_command(sl_member *member, const char *database, const bson_t *command,
                       bson_t *reply, int32_t *code, sl_error *error) {
    bson_error_t driver_error = {0};
    bson_iter_t iter;
    char doing[SL_MEMBER_NAME_ROOM + 80];
    bool ok =
        mongoc_client_command_simple(member->client, database, command, NULL, reply, &driver_error);
    *code = 0;
    if (ok)
        return true;
    if (sl_is_refused_user(&driver_error))
        *code = SL_MEMBER_UNKNOWN_USER;
    else if (driver_error.domain == MONGOC_ERROR_SERVER)
        *code = (int32_t)driver_error.code;
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
