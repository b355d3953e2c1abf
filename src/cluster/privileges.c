/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for missing privileges. The server's message repeats the command that it refused; the
 * loader's message names the missing privilege, its resource and its purpose. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

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
