/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the texts of driver errors in terms that a user knows. */
#include <stdio.h>
#include <string.h>

#include "util/print.h"

#include "internal.h"

/* Authentication failed: repeating the command does not help. */
bool sl_is_refused_user(const bson_error_t *driver_error) {
    return (driver_error->domain == MONGOC_ERROR_CLIENT &&
            driver_error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE && !*sl_message_refusal()) ||
           (driver_error->domain == MONGOC_ERROR_SERVER &&
            driver_error->code == SL_CODE_AUTHENTICATION_FAILED);
}

/* Did the connection fail, or authentication, which is also reported so if the connection fails? */
static bool of_connection(const bson_error_t *driver_error) {
    return driver_error->domain == MONGOC_ERROR_STREAM ||
           driver_error->domain == MONGOC_ERROR_SERVER_SELECTION ||
           driver_error->domain == MONGOC_ERROR_PROTOCOL ||
           driver_error->domain == MONGOC_ERROR_CLIENT || driver_error->domain == 0;
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
    if (of_connection(driver_error) && *sl_message_refusal()) {
        sl_error_set(error, SL_EXIT_CLUSTER, "%s: " SL_LINES, doing, sl_message_refusal());
        sl_message_forget_refusal();
        return false;
    }
    for (size_t end = strlen(text); end > 0 && strchr(": ", text[end - 1]); end--)
        text[end - 1] = '\0';
    if (!text[0])
        snprintf(text, sizeof text, "%s gives no reason (code %u)",
                 driver_error->domain == MONGOC_ERROR_SERVER ? "the server" : "the driver",
                 driver_error->code);
    return sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s%s", doing, text, advice);
}

/* The driver's text names the record: `Failed to look up SRV record "_mongodb._tcp.x.y": Unknown
 * host`. Only the part after the last colon is the reason. */
static bool error_from_dns(sl_error *error, const char *domain, const bson_error_t *driver_error) {
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
        return error_from_dns(error, domain, driver_error);
    sl_error_from_driver(error, "connecting", driver_error);
    error->code = SL_EXIT_USAGE;
    return false;
}

/* ---- missing privileges ----
 *
 * The server's message repeats the command that it refused; the loader's message names the missing
 * privilege, its resource and its purpose. */

static const struct {
    const char *command;
    const char *actions;
    const char *purpose;
} needs[] = {
    {"insert", "insert", "to load documents"},
    {"update", "update", "to write the registry of sources"},
    {"find", "find", "to read stored documents"},
    {"aggregate", "find", "to count documents and to run queries"},
    {"getMore", "find", "to read"},
    {"explain", "find", "to explain queries"},
    {"findAndModify", "find, insert, update and remove", "to write the registry of sources"},
    {"listCollections", "listCollections", "to read the collection's options"},
    {"create", "insert or createCollection", "to create the collection"},
    {"drop", "dropCollection", "for --drop"},
    {"createIndexes", "createIndex", "to build indexes"},
    {"enableSharding", "enableSharding", "to create the database"},
    {"shardCollection", "enableSharding", "to shard the collection"},
    {"split", "splitChunk", "to split chunks before the load"},
    {"moveChunk", "moveChunk", "to move chunks to their shards"},
    {"balancerStatus", "find", "to read the balancer's mode"},
    {"balancerStop", "update", "to stop the balancer"},
    {"balancerStart", "update", "to restore the balancer"},
    {"serverStatus", "serverStatus", "to examine the servers (role clusterMonitor)"},
    {"replSetGetStatus", "replSetGetStatus", "to examine the members (role clusterMonitor)"},
    {"currentOp", "inprog", "to list operations (role clusterMonitor)"},
    {"dbStats", "dbStats", "to read the free space of the disks (role clusterMonitor)"},
};

/* Is the cluster the resource of the command's privilege? */
static bool is_of_cluster(const char *command) {
    return strcmp(command, "serverStatus") == 0 || strcmp(command, "replSetGetStatus") == 0 ||
           strcmp(command, "currentOp") == 0;
}

/* Copies the word at `from`, up to one of `ends`, into `out`; returns its end. */
static const char *word_after(const char *from, const char *ends, char *out, size_t room) {
    size_t length = strcspn(from, ends);
    snprintf(out, room, "%.*s", (int)length, from);
    return from + length;
}

bool sl_privilege_in_words(const char *message, char *out, size_t room) {
    static const char begin[] = "not authorized on ", middle[] = " to execute command { ";
    char database[128], command[64], value[300] = "", resource[450];
    if (strstr(message, "requires authentication")) {
        snprintf(out, room,
                 "the server requires authentication; give --username, or a client "
                 "certificate with --authenticationMechanism MONGODB-X509");
        return true;
    }
    const char *at = strstr(message, begin);
    const char *rest = at ? strstr(at, middle) : NULL;
    if (!rest)
        return false;
    word_after(at + strlen(begin), " ", database, sizeof database);
    rest = word_after(rest + strlen(middle), ":", command, sizeof command);
    if (strncmp(rest, ": \"", 3) == 0)
        word_after(rest + 3, "\"", value, sizeof value);

    const char *actions = command, *purpose = NULL;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (strcmp(command, needs[i].command) == 0) {
            actions = needs[i].actions;
            purpose = needs[i].purpose;
        }
    }
    if (strcmp(command, "aggregate") == 0 && strstr(rest, "$collStats")) {
        actions = "collStats";
        purpose = "to show sizes and counts";
    }
    if (strcmp(database, "shardload") == 0)
        purpose = "to store the balancer's mode";
    if (is_of_cluster(command))
        snprintf(resource, sizeof resource, "the cluster");
    else if (strncmp(command, "balancer", 8) == 0)
        snprintf(resource, sizeof resource, "config.settings");
    else if (strcmp(command, "listCollections") == 0)
        snprintf(resource, sizeof resource, "database %s", database);
    else if (strcmp(command, "enableSharding") == 0)
        snprintf(resource, sizeof resource, "database %s", value);
    else if (strcmp(database, "admin") == 0 && strchr(value, '.'))
        snprintf(resource, sizeof resource, "%s", value);
    else
        snprintf(resource, sizeof resource, "%s%s%s", database, value[0] ? "." : "", value);
    snprintf(out, room,
             "the user lacks the privilege %s on %s%s%s; docs/security.md lists the roles", actions,
             resource, purpose ? ", which is needed " : "", purpose ? purpose : "");
    return true;
}
