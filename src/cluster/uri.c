/* SPDX-License-Identifier: Apache-2.0 */
/* Connection strings: the facts of one, and those of other servers of a deployment.
 *
 * The driver's parser is the only one: every decision about users and TLS asks the parsed URI. Text
 * from a server never becomes part of a connection string, except for hosts that consist of
 * characters without a meaning there; all options are set through the driver's setters. */
#include "uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#include "internal.h"

/* ---- the facts ---- */

/* Lists the compressors of a URI that the driver has: "snappy,zstd". False when there are none. */
static bool uri_compressors(const mongoc_uri_t *uri, char *list, size_t room) {
    bson_iter_t iter;
    size_t used = 0;
    list[0] = '\0';
    for (bool more = bson_iter_init(&iter, mongoc_uri_get_compressors(uri));
         more && bson_iter_next(&iter) && used < room;)
        used += (size_t)snprintf(list + used, room - used, "%s%s", used ? "," : "",
                                 bson_iter_key(&iter));
    return used > 0;
}

void sl_uri_read(const char *text, sl_uri_facts *facts) {
    sl_driver_start();
    mongoc_uri_t *uri = mongoc_uri_new(text);
    *facts = (sl_uri_facts){.valid = uri != NULL};
    if (!uri)
        return;
    const char *mechanism = mongoc_uri_get_auth_mechanism(uri);
    facts->tls = mongoc_uri_get_tls(uri);
    snprintf(facts->mechanism, sizeof facts->mechanism, "%s", mechanism ? mechanism : "");
    uri_compressors(uri, facts->compressors, sizeof facts->compressors);
    mongoc_uri_destroy(uri);
}

const char *sl_uri_named_compressors(const char *text) {
    static const char name[] = "compressors=";
    const char *query = strchr(text, '?');
    const char *named = query ? strcasestr(query, name) : NULL;
    return named ? named + strlen(name) : NULL;
}

/* ---- the hosts ---- */

#define NAME_MAX_BYTES 253 /* of a DNS name */

/* Returns the length of the host at the beginning of the text; 0 if there is none. The driver
 * crashes on a member whose name is longer than its room for it, also one in brackets. */
static size_t host_length(const char *text) {
    static const char alphanumeric[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (*text == '[') {
        char address[INET6_ADDRSTRLEN] = "";
        struct in6_addr parsed;
        const size_t length = strcspn(text + 1, "]");
        if (length < sizeof address)
            memcpy(address, text + 1, length);
        return text[1 + length] && inet_pton(AF_INET6, address, &parsed) == 1 ? length + 2 : 0;
    }
    size_t length = 0;
    while (text[length] && (strchr(alphanumeric, text[length]) || strchr("._-", text[length])))
        length++;
    return length <= NAME_MAX_BYTES && *text != '.' && *text != '-' ? length : 0;
}

/* Returns the length of ":PORT", 0 if there is no colon, or -1 for a port that does not exist. */
static int port_length(const char *text) {
    if (*text != ':')
        return 0;
    size_t digits = strspn(text + 1, "0123456789");
    long port = digits > 0 && digits <= 5 ? strtol(text + 1, NULL, 10) : 0;
    return port >= 1 && port <= 65535 ? (int)digits + 1 : -1;
}

bool sl_hosts_are_valid(const char *hosts, bool several) {
    for (;; hosts++) {
        size_t length = host_length(hosts);
        int port = length > 0 ? port_length(hosts + length) : -1;
        if (port < 0)
            return false;
        hosts += length + (size_t)port;
        if (*hosts != ',' || !several)
            return *hosts == '\0';
    }
}

bool sl_set_name_is_valid(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7F || strchr("/\\\"$?&,", name[i]))
            return false;
    }
    return length > 0 && length <= SL_SET_NAME_MAX && bson_utf8_validate(name, length, false);
}

/* ---- the URI of another server ---- */

/* Options about finding the servers, which do not apply to another server. */
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

static void copy_credentials(mongoc_uri_t *to, const mongoc_uri_t *from) {
    const char *user = mongoc_uri_get_username(from), *password = mongoc_uri_get_password(from);
    const char *mechanism = mongoc_uri_get_auth_mechanism(from);
    bson_t properties;
    if (user)
        mongoc_uri_set_username(to, user);
    if (password)
        mongoc_uri_set_password(to, password);
    if (mechanism)
        mongoc_uri_set_auth_mechanism(to, mechanism);
    if (user || mechanism)
        mongoc_uri_set_auth_source(to, mongoc_uri_get_auth_source(from));
    if (mongoc_uri_get_mechanism_properties(from, &properties))
        mongoc_uri_set_mechanism_properties(to, &properties);
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Does `in` have all options of `of` that do not concern the topology, with the same values? With
 * `tls_only`, only those of TLS. */
static bool has_options(const mongoc_uri_t *in, const mongoc_uri_t *of, bool tls_only) {
    bson_iter_t iter, other;
    for (bool more = bson_iter_init(&iter, mongoc_uri_get_options(of));
         more && bson_iter_next(&iter);) {
        const char *name = bson_iter_key(&iter);
        if (is_of_topology(name) ||
            (tls_only && strncasecmp(name, "tls", 3) != 0 && strncasecmp(name, "ssl", 3) != 0))
            continue;
        if (!bson_iter_init_find_case(&other, mongoc_uri_get_options(in), name) ||
            !sl_values_equal(&iter, &other))
            return false;
    }
    return true;
}

/* Are the TLS options and credentials of the URIs the same, and has `made` no options of its own?
 * The last check before a user or documents are sent to a server that another server named. */
static bool is_as_safe(const mongoc_uri_t *made, const mongoc_uri_t *like) {
    bson_t a, b;
    bool any_a = mongoc_uri_get_mechanism_properties(made, &a);
    bool any_b = mongoc_uri_get_mechanism_properties(like, &b);
    bool user = mongoc_uri_get_username(like) || mongoc_uri_get_auth_mechanism(like);
    return mongoc_uri_get_tls(made) == mongoc_uri_get_tls(like) && has_options(made, like, true) &&
           has_options(like, made, false) &&
           same_text(mongoc_uri_get_username(made), mongoc_uri_get_username(like)) &&
           same_text(mongoc_uri_get_password(made), mongoc_uri_get_password(like)) &&
           same_text(mongoc_uri_get_auth_mechanism(made), mongoc_uri_get_auth_mechanism(like)) &&
           (!user ||
            same_text(mongoc_uri_get_auth_source(made), mongoc_uri_get_auth_source(like))) &&
           any_a == any_b && (!any_a || bson_equal(&a, &b));
}

mongoc_uri_t *sl_uri_of_server(const char *host, const mongoc_uri_t *like, sl_error *error) {
    const char *slash = strchr(host, '/'), *hosts = slash ? slash + 1 : host;
    const size_t set_length = slash ? (size_t)(slash - host) : 0;
    char set[SL_SET_NAME_MAX + 1] = "";
    if (!sl_hosts_are_valid(hosts, true) || (slash && !sl_set_name_is_valid(host, set_length))) {
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the host \"%s\", which a server reports, does not have the form HOST:PORT or "
                     "REPLICASET/HOST:PORT,...",
                     host);
        return NULL;
    }
    memcpy(set, host, set_length);
    char *text = bson_strdup_printf("mongodb://%s/", hosts);
    mongoc_uri_t *made = mongoc_uri_new(text);
    bson_free(text);
    if (made) {
        copy_options(made, like);
        copy_credentials(made, like);
        char list[200];
        if (uri_compressors(like, list, sizeof list))
            mongoc_uri_set_compressors(made, list);
    }
    if (made && is_as_safe(made, like) &&
        (!slash || mongoc_uri_set_option_as_utf8(made, MONGOC_URI_REPLICASET, set)))
        return made;
    mongoc_uri_destroy(made);
    sl_error_set(
        error, SL_EXIT_CLUSTER,
        "the host \"%s\", which a server reports, cannot be used with the user and the TLS "
        "options of --uri",
        host);
    return NULL;
}
