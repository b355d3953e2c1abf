/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: how they are repeated after a failure, the driver's errors in words, and reads of
 * stored documents. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/print.h"
#include "util/text.h"

#include "internal.h"

bool sl_backoff(unsigned attempt, bool (*keep_on)(void *context), void *context) {
    /* Quarters of a second: 1 + 2 + 4 + 8 + 6 * 16 is 28 s in all. */
    static const unsigned char quarters[] = {1, 2, 4, 8, 16, 16, 16, 16, 16, 16};
    if (attempt >= sizeof quarters)
        return false;
    for (unsigned i = 0; i < quarters[attempt]; i++) {
        if (keep_on && !keep_on(context))
            return false;
        const struct timespec quarter = {.tv_nsec = 250000000};
        nanosleep(&quarter, NULL);
    }
    return true;
}

bool sl_code_is_refusal(int32_t code) {
    return code == SL_CODE_UNAUTHORIZED || code == SL_CODE_COMMAND_NOT_FOUND ||
           code == 115 /* CommandNotSupported */ || code == 323 /* APIStrictError */ ||
           code == 8000 /* AtlasError */;
}

bool sl_code_is_transient(int32_t code) {
    static const int32_t codes[] = {
        0,     /* no code from a server: the connection broke, or no server answers */
        6,     /* HostUnreachable */
        7,     /* HostNotFound */
        24,    /* LockTimeout */
        46,    /* LockBusy */
        50,    /* MaxTimeMSExpired */
        63,    /* StaleShardVersion */
        64,    /* WriteConcernFailed */
        89,    /* NetworkTimeout */
        90,    /* CallbackCanceled */
        91,    /* ShutdownInProgress */
        96,    /* OperationFailed: a chunk move that another operation interrupted */
        112,   /* WriteConflict */
        117,   /* ConflictingOperationInProgress */
        133,   /* FailedToSatisfyReadPreference */
        134,   /* ReadConcernMajorityNotAvailableYet */
        150,   /* StaleEpoch */
        189,   /* PrimarySteppedDown */
        202,   /* NetworkInterfaceExceededTimeLimit */
        234,   /* RetryChangeStream, also for other lost cursors */
        249,   /* StaleDbVersion */
        262,   /* ExceededTimeLimit */
        317,   /* ConnectionPoolExpired */
        365,   /* TemporarilyUnavailable */
        371,   /* UserWritesBlocked: by setUserWriteBlockMode, perhaps for a short time */
        384,   /* ConnectionError */
        402,   /* ResourceExhausted */
        407,   /* PooledConnectionAcquisitionExceededTimeLimit */
        9001,  /* SocketException */
        10107, /* NotWritablePrimary */
        11600, /* InterruptedAtShutdown */
        11602, /* InterruptedDueToReplStateChange */
        13388, /* StaleConfig */
        13435, /* NotPrimaryNoSecondaryOk */
        13436, /* NotPrimaryOrSecondary */
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] == code)
            return true;
    }
    return false;
}

/* ---- errors of the driver in words ---- */

/* Rewrites the texts of driver errors in terms that a user knows. */

/* Authentication failed: repeating the command does not help. */
bool sl_is_refused_user(const bson_error_t *driver_error) {
    return (driver_error->domain == MONGOC_ERROR_CLIENT &&
            driver_error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE && !*sl_message_refusal()) ||
           (driver_error->domain == MONGOC_ERROR_SERVER &&
            driver_error->code == SL_CODE_AUTHENTICATION_FAILED);
}

int32_t sl_code_from_driver(const bson_error_t *driver_error) {
    return sl_is_refused_user(driver_error)              ? SL_CODE_AUTHENTICATION_FAILED
           : driver_error->domain == MONGOC_ERROR_SERVER ? (int32_t)driver_error->code
                                                         : 0;
}

/* Did the connection fail, or authentication, which is also reported so if the connection fails? */
static bool of_connection(const bson_error_t *driver_error) {
    return driver_error->domain == MONGOC_ERROR_STREAM ||
           driver_error->domain == MONGOC_ERROR_SERVER_SELECTION ||
           driver_error->domain == MONGOC_ERROR_PROTOCOL ||
           driver_error->domain == MONGOC_ERROR_CLIENT || driver_error->domain == 0;
}

static bool with_code(sl_error *error, const bson_error_t *driver_error) {
    if (error && driver_error->domain == MONGOC_ERROR_SERVER)
        error->server_code = (int)driver_error->code;
    return false;
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
        return sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s", doing, text) ||
               with_code(error, driver_error);
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
        snprintf(text, sizeof text,
                 driver_error->domain == MONGOC_ERROR_SERVER
                     ? "the server gives no reason (code %u)"
                     : "the driver gives no reason (code %u); is the reply to hello malformed?",
                 driver_error->code);
    return sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s%s", doing, text, advice) ||
           with_code(error, driver_error);
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
    error->code = domain ? SL_EXIT_CLUSTER : SL_EXIT_USAGE;
    return domain && sl_error_prefix(error, "the records of DNS for %s cannot be used", domain);
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
    {"delete", "remove",
     "to delete documents, or sources of a dropped collection from the registry"},
    {"aggregate", "find", "to count documents and to run queries"},
    {"getMore", "find", "to read"},
    {"explain", "find", "to explain queries"},
    {"findAndModify", "find, insert, update and remove", "to write the registry of sources"},
    {"listCollections", "listCollections", "to read the collection's options"},
    {"create", "insert or createCollection", "to create the collection"},
    {"drop", "dropCollection", "for --drop"},
    {"createIndexes", "createIndex", "to build indexes"},
    {"listIndexes", "listIndexes", "to compare --index with the indexes that exist"},
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
    } else if (strcmp(command, "aggregate") == 0 && strstr(rest, "$currentOp")) {
        actions = "inprog";
        purpose = "to list operations";
    } else if (strcmp(command, "aggregate") == 0 && strstr(rest, "$indexStats")) {
        actions = "indexStats";
        purpose = "to compare the indexes of the shards";
    }
    if (strcmp(database, "shardload") == 0)
        purpose = "to store the balancer's mode";
    if (sl_list_has("serverStatus|replSetGetStatus|currentOp", '|', sl_text_of(command)))
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

/* ---- commands ---- */

/* Commands that are repeated after transient failures (an election, a lock of another client), and
 * small reads and updates built on them. A command may be executed twice: when the connection
 * breaks, the client cannot know whether the server executed the first one. */

char *sl_target_namespace(const sl_target *target, char out[SL_NAMESPACE_ROOM]) {
    snprintf(out, SL_NAMESPACE_ROOM, "%s.%s", target->database, target->collection);
    return out;
}

const char *sl_registry_database(const char *database) {
    return strcmp(database, "admin") == 0 ? "shardload" : database;
}

char *sl_target_registry(const sl_target *target, char out[SL_NAMESPACE_ROOM]) {
    if (target->registry)
        snprintf(out, SL_NAMESPACE_ROOM, "%s", target->registry);
    else
        snprintf(out, SL_NAMESPACE_ROOM, "%s" SL_REGISTRY_SUFFIX, target->collection);
    return out;
}

bool sl_is_registry_name(const char *collection) {
    const size_t length = strlen(collection), end = strlen(SL_REGISTRY_SUFFIX);
    return length > end && strcmp(collection + length - end, SL_REGISTRY_SUFFIX) == 0;
}

int32_t sl_hidden_failure(const bson_t *reply, const char **reason) {
    static const char *const paths[] = {"writeErrors.0", "writeConcernError"};
    for (size_t i = 0; i < 2; i++) {
        bson_t failure;
        if (!sl_look_inside(reply, paths[i], &failure))
            continue;
        const char *text = sl_look_text(&failure, "errmsg");
        *reason = text ? text : "no reason";
        int32_t value = (int32_t)sl_look_int64(&failure, "code", 0);
        return value >= 0 ? value : 0;
    }
    return -1;
}

bool sl_cluster_command(sl_connection *connection, const char *database, const bson_t *command,
                        bson_t *reply, int32_t *code, sl_error *error) {
    bson_t own_reply;
    if (!reply)
        reply = &own_reply;
    int32_t own_code = 0;
    if (!code)
        code = &own_code;
    bool ok;
    int64_t until = sl_connection_retry_until(connection);
    for (unsigned attempt = 0;; attempt++) {
        ok = sl_connection_command(connection, database, command, reply, code, error);
        const char *reason;
        int32_t hidden = ok ? sl_hidden_failure(reply, &reason) : -1;
        if (hidden >= 0) {
            bson_iter_t iter;
            const char *name =
                bson_iter_init(&iter, command) && bson_iter_next(&iter) ? bson_iter_key(&iter) : "";
            *code = hidden;
            ok = sl_error_set(error, SL_EXIT_CLUSTER, "%s on database %s: %s", name, database,
                              reason);
        }
        /* `until` limits only failures without a reply. A server that replies may take any time
         * for each attempt: balancerStop takes as long as the running chunk moves. */
        if (ok || !sl_code_is_transient(*code) || (*code == 0 && sl_clock_ns() > until))
            break;
        if (error)
            sl_log_debug("trying again: " SL_LINES, error->message);
        if (!sl_connection_backoff(connection, attempt, error))
            break;
        bson_destroy(reply);
    }
    if (reply == &own_reply)
        bson_destroy(&own_reply);
    return ok;
}

bool sl_cluster_run(sl_connection *connection, const char *database, bson_t *command, bson_t *reply,
                    int32_t *code, sl_error *error) {
    bool ok = sl_cluster_command(connection, database, command, reply, code, error);
    bson_destroy(command);
    return ok;
}

bool sl_cluster_change(sl_connection *connection, const char *database, bson_t *command,
                       int32_t harmless, sl_error *error) {
    int32_t code;
    if (sl_cluster_run(connection, database, command, NULL, &code, error))
        return true;
    if (harmless == 0 || code != harmless)
        return false;
    if (error)
        *error = (sl_error){.code = SL_EXIT_OK};
    return true;
}

void sl_append_majority(bson_t *command) {
    bson_t concern;
    bson_append_document_begin(command, "writeConcern", -1, &concern);
    BSON_APPEND_UTF8(&concern, "w", "majority");
    BSON_APPEND_INT32(&concern, "wtimeout", 30000);
    bson_append_document_end(command, &concern);
}

bool sl_find_by_id(sl_connection *connection, const char *database, const char *collection,
                   const char *id, bson_t *document, bool *found, sl_error *error) {
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(id));
    bson_t documents, view;
    bool ok = sl_connection_find(connection, database, collection, filter, NULL, &documents, error);
    *found = sl_look_inside(&documents, "0", &view) && ok;
    bson_copy_to(&view, document);
    bson_destroy(&documents);
    bson_destroy(filter);
    return ok;
}

bool sl_document_find(sl_connection *connection, const sl_target *target, const bson_t *filter,
                      bson_t **document, sl_error *error) {
    bson_t reply, view;
    bson_t *find = BCON_NEW("find", BCON_UTF8(target->collection), "filter", BCON_DOCUMENT(filter),
                            "limit", BCON_INT32(1), "singleBatch", BCON_BOOL(true));
    *document = NULL;
    bool ok = sl_cluster_run(connection, target->database, find, &reply, NULL, error);
    if (ok && sl_look_inside(&reply, "cursor.firstBatch.0", &view)) {
        *document = bson_copy(&view);
        ok = *document || sl_error_memory(error, "reading a document");
    }
    bson_destroy(&reply);
    return ok;
}

bool sl_documents_sample(sl_connection *connection, const sl_target *target, bson_t *reply,
                         sl_error *error) {
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(target->collection), "pipeline", "[", "{", "$sample", "{",
                 "size", BCON_INT32(SL_SAMPLE_DOCUMENTS), "}", "}", "]", "cursor", "{", "batchSize",
                 BCON_INT32(SL_SAMPLE_DOCUMENTS), "}", "maxTimeMS", BCON_INT32(10000));
    /* Where many documents have just been deleted, a sample takes minutes: not again. */
    bool ok = sl_connection_command(connection, target->database, command, reply, NULL, error);
    if (!ok && error->server_code == SL_CODE_TOOK_TOO_LONG) {
        sl_log_warning("%s.%s: a sample of the stored documents took too long, so their types are "
                       "not compared with those of this load",
                       target->database, target->collection);
    } else if (!ok) {
        bson_destroy(reply);
        ok = sl_cluster_command(connection, target->database, command, reply, NULL, error);
    }
    bson_destroy(command);
    return ok;
}

bool sl_documents_having(sl_connection *connection, const sl_target *target, const bson_t *fields,
                         bson_t *reply, sl_error *error) {
    bson_t *command =
        BCON_NEW("find", BCON_UTF8(target->collection), "filter", "{", "$or", BCON_ARRAY(fields),
                 "}", "limit", BCON_INT32(100), "batchSize", BCON_INT32(100), "singleBatch",
                 BCON_BOOL(true), "maxTimeMS", BCON_INT32(2000));
    bool ok = sl_connection_command(connection, target->database, command, reply, NULL, error);
    bson_destroy(command);
    return ok;
}

static void append_concern(const sl_connection *connection, bson_t *command, const char *concern) {
    if (sl_connection_server(connection)->deployment == SL_STANDALONE)
        BCON_APPEND(command, "writeConcern", "{", "w", BCON_INT32(1), "j", BCON_BOOL(true), "}");
    else if (strcmp(concern, "majority") != 0)
        BCON_APPEND(command, "writeConcern", "{", "w", BCON_INT32((int32_t)atoi(concern)),
                    "wtimeout", BCON_INT32(30000), "}");
    else
        sl_append_majority(command);
}

bool sl_documents_write(sl_connection *connection, const sl_target *target, const char *verb,
                        const bson_t *statements, const char *concern, sl_error *error) {
    char list[16];
    snprintf(list, sizeof list, "%ss", verb);
    bson_t *command = BCON_NEW(verb, BCON_UTF8(target->collection), list, BCON_ARRAY(statements),
                               "ordered", BCON_BOOL(false));
    append_concern(connection, command, concern);
    return sl_cluster_change(connection, target->database, command, 0, error) ||
           sl_error_prefix(error, "%s.%s", target->database, target->collection);
}

bool sl_documents_insert(sl_connection *connection, const sl_target *target,
                         const bson_t *documents, const char *concern, uint64_t *inserted,
                         sl_error *error) {
    bson_t reply;
    bson_t *command = BCON_NEW("insert", BCON_UTF8(target->collection), "documents",
                               BCON_ARRAY(documents), "ordered", BCON_BOOL(false));
    append_concern(connection, command, concern);
    bool ok = sl_connection_command(connection, target->database, command, &reply, NULL, error);
    const char *reason;
    *inserted = ok ? (uint64_t)sl_look_amount(&reply, "n", 0) : 0;
    if (ok && sl_hidden_failure(&reply, &reason) >= 0)
        ok = sl_error_set(error, SL_EXIT_CLUSTER, "%s.%s: %s", target->database, target->collection,
                          reason);
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

bson_t *sl_range_filter(int64_t minimum, int64_t maximum) {
    return BCON_NEW("_id", "{", "$gte", BCON_INT64(minimum), "$lt", BCON_INT64(maximum), "}");
}

bool sl_is_empty(sl_connection *connection, const sl_target *target, const bson_t *filter,
                 bool *empty, sl_error *error) {
    bson_t documents;
    bson_t *options =
        BCON_NEW("limit", BCON_INT64(1), "projection", "{", "_id", BCON_INT32(1), "}");
    bool ok = sl_connection_find(connection, target->database, target->collection, filter, options,
                                 &documents, error);
    *empty = ok && bson_empty(&documents);
    bson_destroy(&documents);
    bson_destroy(options);
    return ok;
}

bool sl_find_and_modify(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *query, const bson_t *update, bool upsert, bson_t *document,
                        bool *found, sl_error *error) {
    bson_t command, reply;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "findAndModify", collection);
    BSON_APPEND_DOCUMENT(&command, "query", query);
    if (update) {
        BSON_APPEND_DOCUMENT(&command, "update", update);
        BSON_APPEND_BOOL(&command, "new", true);
        BSON_APPEND_BOOL(&command, "upsert", upsert);
    } else {
        BSON_APPEND_BOOL(&command, "remove", true);
    }
    sl_append_majority(&command);

    int32_t code;
    bool ok = false;
    /* One of two concurrent upserts of one _id fails; repeated, it finds the document. */
    for (unsigned attempt = 0; !ok && attempt < 5; attempt++) {
        if (attempt > 0)
            bson_destroy(&reply);
        ok = sl_cluster_command(connection, database, &command, &reply, &code, error);
        if (code != SL_CODE_DUPLICATE_KEY)
            break;
    }

    bson_iter_t iter;
    bson_t view;
    bool any = ok && bson_iter_init_find(&iter, &reply, "value") && sl_document_at(&iter, &view);
    if (found)
        *found = any;
    if (document && any)
        bson_copy_to(&view, document);
    else if (document)
        bson_init(document);
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

bool sl_server_at_least(const sl_server *server, unsigned major, unsigned minor) {
    unsigned its_major, its_minor;
    return sscanf(server->version, "%u.%u", &its_major, &its_minor) != 2 || its_major > major ||
           (its_major == major && its_minor >= minor);
}

void sl_uuid_of(const bson_iter_t *field, char uuid[SL_UUID_ROOM]) {
    const uint8_t *bytes;
    uint32_t length;
    uuid[0] = '\0';
    if (!BSON_ITER_HOLDS_BINARY(field))
        return;
    bson_iter_binary(field, NULL, &length, &bytes);
    for (uint32_t i = 0; i < length && i < 16; i++)
        snprintf(uuid + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- reading stored documents ---- */

/* Reads stored documents of the target in the order of their _id.
 *
 * A scan is one find sorted by _id, for which every collection has an index. If the shard key is
 * not _id, the find goes to all shards and the router merges the results. Read concern majority and
 * the primary are always set, whatever the URI says: an election must not roll back a document that
 * a scan has returned. */

/* More documents than fit into a reply, so that only the limit of 16 MiB applies. */
#define DOCUMENTS_PER_REPLY 100000

bool sl_is_transient(const bson_error_t *why) {
    if (why->domain != MONGOC_ERROR_SERVER)
        return why->domain == MONGOC_ERROR_STREAM || why->domain == MONGOC_ERROR_SERVER_SELECTION ||
               (why->domain == MONGOC_ERROR_CLIENT &&
                why->code == MONGOC_ERROR_CLIENT_AUTHENTICATE); /* authentication has succeeded
                                                                   before, so a failure may be
                                                                   temporary */
    /* A cursor is lost when its server ends, or when chunks of the collection are moved. */
    static const uint32_t of_cursors[] = {43 /* CursorNotFound */, 175 /* QueryPlanKilled */,
                                          237 /* CursorKilled */};
    for (size_t i = 0; i < sizeof of_cursors / sizeof of_cursors[0]; i++) {
        if (why->code == of_cursors[i])
            return true;
    }
    return sl_code_is_transient((int32_t)why->code);
}

sl_scan_result sl_scan(mongoc_client_t *client, const sl_target *target, const bson_t *filter,
                       bool ids_only, void (*each)(void *context, const bson_t *document),
                       void *context, sl_error *error) {
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "batchSize",
                               BCON_INT32(DOCUMENTS_PER_REPLY), "readConcern", "{", "level",
                               BCON_UTF8("majority"), "}");
    if (ids_only)
        BCON_APPEND(options, "projection", "{", "_id", BCON_INT32(1), "}");
    sl_target_append_uuid(target, options);
    mongoc_collection_t *collection =
        mongoc_client_get_collection(client, target->database, target->collection);
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(collection, filter, options, primary);
    const bson_t *document;
    sl_cursor_reading reading = {.cursor = cursor};
    while (sl_cursor_next(&reading, &document))
        each(context, document);

    bson_error_t why = {0};
    sl_scan_result result = SL_SCAN_DONE;
    if (sl_cursor_failed(&reading, &why)) {
        if (why.domain == MONGOC_ERROR_SERVER && why.code == SL_CODE_COLLECTION_UUID_MISMATCH)
            sl_target_replaced(client, target, error);
        else
            sl_error_from_driver(error, "reading documents back", &why);
        result = sl_is_transient(&why) ? SL_SCAN_AGAIN : SL_SCAN_FAILED;
    }
    mongoc_cursor_destroy(cursor);
    mongoc_read_prefs_destroy(primary);
    mongoc_collection_destroy(collection);
    bson_destroy(options);
    return result;
}

sl_scan_result sl_scan_range(mongoc_client_t *client, const sl_target *target, int64_t minimum,
                             int64_t maximum, void (*each)(void *context, const bson_t *document),
                             void *context, sl_error *error) {
    bson_t *filter = sl_range_filter(minimum, maximum);
    sl_scan_result result = sl_scan(client, target, filter, false, each, context, error);
    bson_destroy(filter);
    return result;
}
