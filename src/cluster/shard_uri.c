/* SPDX-License-Identifier: Apache-2.0 */
/* The URI of a shard: its hosts from config.shards, all options from the URI of the routers. Built
 * with the driver's setters, so that no text contains the password. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Options about finding the servers, which do not apply to a shard. */
static bool is_of_topology(const char *option) {
    static const char *const names[] = {MONGOC_URI_REPLICASET, MONGOC_URI_DIRECTCONNECTION,
                                        MONGOC_URI_LOADBALANCED, MONGOC_URI_SRVMAXHOSTS,
                                        MONGOC_URI_SRVSERVICENAME};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(option, names[i]) == 0)
            return true;
    }
    return false;
}

static void copy_options(mongoc_uri_t *to, const mongoc_uri_t *from) {
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, mongoc_uri_get_options(from));
         more && bson_iter_next(&iter);) {
        const char *name = bson_iter_key(&iter);
        if (is_of_topology(name))
            continue;
        if (BSON_ITER_HOLDS_UTF8(&iter))
            mongoc_uri_set_option_as_utf8(to, name, bson_iter_utf8(&iter, NULL));
        else if (BSON_ITER_HOLDS_BOOL(&iter))
            mongoc_uri_set_option_as_bool(to, name, bson_iter_bool(&iter));
        else if (BSON_ITER_HOLDS_INT32(&iter))
            mongoc_uri_set_option_as_int32(to, name, bson_iter_int32(&iter));
        else if (BSON_ITER_HOLDS_INT64(&iter))
            mongoc_uri_set_option_as_int64(to, name, bson_iter_int64(&iter));
    }
}

mongoc_uri_t *sl_shard_uri(const sl_shard *shard, const mongoc_uri_t *like) {
    const char *slash = strchr(shard->host, '/');
    size_t room = 2 * strlen(shard->host) + 64;
    char *text = malloc(room);
    if (!text)
        return NULL;
    if (slash)
        snprintf(text, room, "mongodb://%s/?replicaSet=%.*s", slash + 1, (int)(slash - shard->host),
                 shard->host);
    else
        snprintf(text, room, "mongodb://%s/", shard->host);
    mongoc_uri_t *uri = mongoc_uri_new(text);
    free(text);
    if (!uri)
        return NULL;
    copy_options(uri, like);
    const char *user = mongoc_uri_get_username(like), *password = mongoc_uri_get_password(like);
    const char *mechanism = mongoc_uri_get_auth_mechanism(like);
    bson_t properties;
    if (user)
        mongoc_uri_set_username(uri, user);
    if (password)
        mongoc_uri_set_password(uri, password);
    if (mechanism)
        mongoc_uri_set_auth_mechanism(uri, mechanism);
    if (user || mechanism)
        mongoc_uri_set_auth_source(uri, mongoc_uri_get_auth_source(like));
    if (mongoc_uri_get_mechanism_properties(like, &properties))
        mongoc_uri_set_mechanism_properties(uri, &properties);
    bson_iter_t iter;
    char list[200] = "";
    size_t used = 0;
    for (bool more = bson_iter_init(&iter, mongoc_uri_get_compressors(like));
         more && bson_iter_next(&iter) && used < sizeof list;)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                 bson_iter_key(&iter));
    if (used > 0)
        mongoc_uri_set_compressors(uri, list);
    return uri;
}
