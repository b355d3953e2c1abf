/* SPDX-License-Identifier: Apache-2.0 */

/*
 * shardload-clusterctl: configures newly started servers as a cluster.
 *
 * It replaces a driver in tools/localcluster: it initiates a replica set and waits until all
 * members are ready, and it adds a shard.
 */

#include "answer.h"
#include "backend.h"
#include "util/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    PAUSE = 25,         /* ms between two checks */
    WAIT_SECONDS = 60,  /* for a set of servers to be ready */
    ELECTION_MS = 2000, /* local members answer at once: no need for the usual 10 seconds */
};

static const char usage[] =
    "Usage: shardload-clusterctl initiate NAME HOST:PORT[,HOST:PORT...] [configsvr]\n"
    "       shardload-clusterctl add-shard CONFIG-HOST:PORT NAME/HOST:PORT[,HOST:PORT...]\n"
    "\n"
    "  initiate   initiate a replica set, and wait until each of its members is ready\n"
    "  add-shard  add a replica set to the cluster of a config server\n";

static int fail(const char *what, const char *why) {
    fprintf(stderr, "shardload-clusterctl: %s: %s\n", what, why);
    return EXIT_FAILED;
}

/* Waits until `ready` accepts the server's hello. -1 with the reason WAIT_SECONDS after `start`. */
static int wait_for_node(const char *node, bool (*ready)(const bson_t *), int64_t start,
                         char *why) {
    for (;;) {
        bson_t hello;
        const int fd = backend_connect_node(node, -1, &hello, why);
        if (fd >= 0) {
            const bool good = ready(&hello);
            bson_destroy(&hello);
            if (good) {
                return fd;
            }
            close(fd);
            snprintf(why, MAX_REASON, "%s answers, but is not ready", node);
        }
        if (sl_seconds_since(start) >= WAIT_SECONDS) {
            return -1;
        }
        stream_pause(-1, PAUSE);
    }
}

static bool is_there(const bson_t *hello) {
    (void)hello;
    return true;
}

static bool is_member(const bson_t *hello) {
    bson_iter_t iter;
    return backend_is_primary(hello) ||
           (bson_iter_init_find(&iter, hello, "secondary") && bson_iter_as_bool(&iter));
}

/* Runs a command; its error, if any, as text in `why`. */
static bool run(int fd, const bson_t *command, char *why) {
    struct buffer scratch = {0};
    bson_t reply;
    bson_iter_t iter;
    const enum stream_status status = backend_run(fd, command, &scratch, &reply);
    bool good = false;
    if (status != STREAM_OK) {
        snprintf(why, MAX_REASON, "%s", stream_status_text(status));
    } else if (answer_code(&reply) != CODE_OK) {
        const bool text =
            bson_iter_init_find(&iter, &reply, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter);
        snprintf(why, MAX_REASON, "%s", text ? bson_iter_utf8(&iter, NULL) : "it was refused");
    } else {
        good = true;
    }
    buffer_destroy(&scratch);
    return good;
}

/* Builds {replSetInitiate: {_id, [configsvr], members, settings}}. */
static void build_initiate(const char *name, const struct node_set *set, bool configsvr,
                           bson_t *command) {
    bson_t config;
    bson_t members;
    bson_t member;
    bson_t settings;
    bson_init(command);
    BSON_APPEND_DOCUMENT_BEGIN(command, "replSetInitiate", &config);
    BSON_APPEND_UTF8(&config, "_id", name);
    if (configsvr) {
        BSON_APPEND_BOOL(&config, "configsvr", true);
    }
    BSON_APPEND_ARRAY_BEGIN(&config, "members", &members);
    for (size_t i = 0; i < set->count; i++) {
        char index[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, index, sizeof index);
        BSON_APPEND_DOCUMENT_BEGIN(&members, key, &member);
        BSON_APPEND_INT32(&member, "_id", (int32_t)i);
        BSON_APPEND_UTF8(&member, "host", set->nodes[i]);
        bson_append_document_end(&members, &member);
    }
    bson_append_array_end(&config, &members);
    BSON_APPEND_DOCUMENT_BEGIN(&config, "settings", &settings);
    BSON_APPEND_INT32(&settings, "electionTimeoutMillis", ELECTION_MS);
    bson_append_document_end(&config, &settings);
    bson_append_document_end(command, &config);
    BSON_APPEND_UTF8(command, "$db", "admin");
}

static int do_initiate(int argc, char **argv) {
    struct node_set set;
    char why[MAX_REASON] = "";
    bson_t command;
    const int64_t start = sl_clock_ns();
    const bool configsvr = argc == 3 && strcmp(argv[2], "configsvr") == 0;
    if (argc < 2 || argc > 3 || (argc == 3 && !configsvr) ||
        !node_set_parse(&set, argv[0], argv[1])) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    int fd = -1;
    for (size_t i = set.count; i-- > 0;) { /* the first node last: it receives the command */
        fd = wait_for_node(set.nodes[i], is_there, start, why);
        if (fd < 0) {
            return fail("initiate", why);
        }
        if (i > 0) {
            close(fd);
        }
    }
    build_initiate(argv[0], &set, configsvr, &command);
    const bool good = run(fd, &command, why);
    bson_destroy(&command);
    close(fd);
    if (!good) {
        return fail("initiate", why);
    }
    for (size_t i = 0; i < set.count; i++) {
        fd = wait_for_node(set.nodes[i], is_member, start, why);
        if (fd < 0) {
            return fail("initiate", why);
        }
        close(fd);
    }
    fd = backend_connect(&set, -1, WAIT_SECONDS * 1000, NULL, why);
    if (fd < 0) {
        return fail("initiate", why);
    }
    close(fd);
    return 0;
}

static int do_add_shard(int argc, char **argv) {
    struct node_set config;
    struct node_set shard;
    char why[MAX_REASON] = "";
    if (argc != 2 || !node_set_parse(&config, NULL, argv[0]) ||
        !node_set_parse(&shard, NULL, argv[1]) || !shard.name[0]) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    const int fd = backend_connect(&config, -1, PRIMARY_WAIT, NULL, why);
    if (fd < 0) {
        return fail("add-shard", why);
    }
    bson_t *command =
        BCON_NEW("_configsvrAddShard", BCON_UTF8(argv[1]), "name", BCON_UTF8(shard.name),
                 "writeConcern", "{", "w", BCON_UTF8("majority"), "}", "$db", BCON_UTF8("admin"));
    const bool good = run(fd, command, why);
    bson_destroy(command);
    close(fd);
    return good ? 0 : fail("add-shard", why);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"initiate", do_initiate}, {"add-shard", do_add_shard}};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            return verbs[i].run(argc - 2, argv + 2);
        }
    }
    fputs(usage, stderr);
    return EXIT_USAGE;
}
