/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the texts of driver errors in terms that a user knows. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* Authentication failed: repeating the command does not help. */
bool sl_is_refused_user(const bson_error_t *driver_error) {
    return (driver_error->domain == MONGOC_ERROR_CLIENT &&
            driver_error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE) ||
           (driver_error->domain == MONGOC_ERROR_SERVER &&
            driver_error->code == SL_CODE_AUTHENTICATION_FAILED);
}

/* The table lists internal parts of driver messages and their replacements. */
bool sl_error_from_driver(sl_error *error, const char *doing, const bson_error_t *driver_error) {
    static const struct {
        const char *from;
        const char *to;
    } rewrites[] = {
        {"No suitable servers found: ", "no server answers: "},
        {"No suitable servers found (`serverSelectionTryOnce` set): ", "no server answers: "},
        {"No servers yet eligible for rescan", "no server answers"},
        {"`serverSelectionTimeoutMS` expired: ", ""},
        {"calling hello on ", ""},
        {"calling ismaster on ", ""},
        {"calling isMaster on ", ""},
        {"Failed to send \"hello\" command with database \"admin\": ", ""},
        {"Failed to read 4 bytes: ", ""},
        {"socket error or timeout", "the connection broke or timed out"},
        {"connection refused", "connection refused"},
        {"connection timeout", "no answer in time"},
        {". Topology type: Unknown", ""},
        {". Topology type: Single", ""},
        {". Topology type: Sharded", ""},
        {". Topology type: ReplicaSetNoPrimary", " (the replica set has no primary)"},
        {". Topology type: ReplicaSetWithPrimary", ""},
        {"libmongoc ", "driver "},
    };
    char text[sizeof driver_error->message * 2];
    if (driver_error->code == SL_CODE_UNAUTHORIZED &&
        sl_privilege_in_words(driver_error->message, text, sizeof text))
        return sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s", doing, text);
    snprintf(text, sizeof text, "%s", driver_error->message);
    for (size_t i = 0; i < sizeof rewrites / sizeof rewrites[0]; i++) {
        size_t from = strlen(rewrites[i].from);
        size_t to = strlen(rewrites[i].to);
        char *at = text;
        while ((at = strstr(at, rewrites[i].from)) != NULL) {
            size_t tail = strlen(at + from) + 1;
            if ((size_t)(at - text) + to + tail > sizeof text)
                break;
            memmove(at + to, at + from, tail);
            memcpy(at, rewrites[i].to, to);
            at += to;
        }
    }
    const char *advice = "";
    if (driver_error->domain == MONGOC_ERROR_SERVER_SELECTION)
        advice = "; is the server running, and is --uri right?";
    else if (sl_is_refused_user(driver_error))
        advice = "; check user name, password and authentication database";
    return sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s%s", doing, text, advice);
}

/* The driver's text names the record: `Failed to look up SRV record "_mongodb._tcp.x.y": Unknown
 * host`. Only the part after the last colon is the reason. */
bool sl_error_from_dns(sl_error *error, const char *domain, const bson_error_t *driver_error) {
    const char *reason = strrchr(driver_error->message, '"');
    reason = reason ? reason + 1 + strspn(reason + 1, ": ") : driver_error->message;
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "DNS has no list of servers for %s (SRV record _mongodb._tcp.%s: %s); mongodb+srv:// takes "
        "the domain of a deployment, and asks DNS for its servers. Check the name and the DNS of "
        "this machine, or name the servers: mongodb://HOST:PORT,HOST:PORT/",
        domain, domain, *reason ? reason : "no answer");
}

bool sl_error_from_pool(sl_error *error, const mongoc_uri_t *uri,
                        const bson_error_t *driver_error) {
    const char *domain = mongoc_uri_get_srv_hostname(uri);
    if (domain && driver_error->domain == MONGOC_ERROR_STREAM)
        return sl_error_from_dns(error, domain, driver_error);
    sl_error_from_driver(error, "connecting", driver_error);
    error->code = SL_EXIT_USAGE;
    return false;
}
