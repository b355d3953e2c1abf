/* SPDX-License-Identifier: Apache-2.0 */

/* Reading the cluster's shape from its config servers: see topology.h. */

#include "topology.h"

#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int32_t number_or(const bson_t *document, const char *name, int32_t otherwise) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && BSON_ITER_HOLDS_INT32(&iter)
               ? bson_iter_int32(&iter)
               : otherwise;
}

/* Sets the nodes to the members in the reply to hello: a set may be given by one address only. */
static void learn_nodes(struct node_set *set, const bson_t *hello) {
    bson_iter_t iter;
    bson_iter_t hosts;
    char list[4096] = "";
    size_t length = 0;
    if (!bson_iter_init_find(&iter, hello, "hosts") || !bson_iter_recurse(&iter, &hosts)) {
        return;
    }
    while (bson_iter_next(&hosts) && BSON_ITER_HOLDS_UTF8(&hosts)) {
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", length ? "," : "",
                                   bson_iter_utf8(&hosts, NULL));
        if (length >= sizeof list) {
            return;
        }
    }
    struct node_set learnt;
    if (node_set_parse(&learnt, set->name, list)) {
        *set = learnt;
    }
}

static bool read_shards(struct topology *topology, const bson_t *reply, char *why) {
    bson_iter_t iter;
    bson_iter_t batch;
    bson_iter_t shard;
    bson_iter_t shards;
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) ||
        !bson_iter_recurse(&batch, &shards)) {
        snprintf(why, MAX_REASON, "the config server's list of shards cannot be read");
        return false;
    }
    while (bson_iter_next(&shards)) {
        const char *name = NULL;
        const char *host = NULL;
        if (bson_iter_recurse(&shards, &shard)) {
            while (bson_iter_next(&shard)) {
                if (strcmp(bson_iter_key(&shard), "_id") == 0) {
                    name = bson_iter_utf8(&shard, NULL);
                } else if (strcmp(bson_iter_key(&shard), "host") == 0) {
                    host = bson_iter_utf8(&shard, NULL);
                }
            }
        }
        struct node_set *grown =
            realloc(topology->sets, (topology->count + 1) * sizeof *topology->sets);
        if (!grown) {
            snprintf(why, MAX_REASON, "out of memory");
            return false;
        }
        topology->sets = grown;
        if (!name || !host || !node_set_parse(&grown[topology->count], name, host)) {
            snprintf(why, MAX_REASON, "the address of shard %s cannot be read: %s",
                     name ? name : "?", host ? host : "?");
            return false;
        }
        topology->count++;
    }
    if (topology->count == 1) {
        snprintf(why, MAX_REASON, "the cluster has no shard yet");
        return false;
    }
    return true;
}

struct topology *topology_create(const char *config, char *why) {
    struct buffer scratch = {0};
    bson_t hello;
    bson_t reply;
    bool good = false;
    int fd = -1;
    bson_t *find = BCON_NEW("find", BCON_UTF8("shards"), "sort", "{", "_id", BCON_INT32(1), "}",
                            "batchSize", BCON_INT32(10000), "$db", BCON_UTF8("config"));
    struct topology *topology = calloc(1, sizeof *topology);
    if (topology) {
        topology->sets = calloc(1, sizeof *topology->sets);
        topology->count = 1;
    }
    if (!topology || !topology->sets) {
        snprintf(why, MAX_REASON, "out of memory");
        goto done;
    }
    if (!node_set_parse(&topology->sets[CONFIG_SET], "config", config)) {
        snprintf(why, MAX_REASON, "not HOST:PORT: %s", config);
        goto done;
    }
    fd = backend_connect(&topology->sets[CONFIG_SET], -1, PRIMARY_WAIT, &hello, why);
    if (fd < 0) {
        goto done;
    }
    learn_nodes(&topology->sets[CONFIG_SET], &hello);
    topology->max_bson_size = number_or(&hello, "maxBsonObjectSize", 16 * 1024 * 1024);
    topology->max_message_size = number_or(&hello, "maxMessageSizeBytes", 48000000);
    topology->max_write_batch = number_or(&hello, "maxWriteBatchSize", 100000);
    topology->min_wire_version = number_or(&hello, "minWireVersion", 0);
    topology->max_wire_version = number_or(&hello, "maxWireVersion", 17);
    bson_destroy(&hello);

    enum stream_status status = backend_run(fd, find, &scratch, &reply);
    if (status != STREAM_OK) {
        snprintf(why, MAX_REASON, "%s: %s", config, stream_status_text(status));
    } else if (answer_code(&reply) != CODE_OK) {
        snprintf(why, MAX_REASON, "%s does not list the shards", config);
    } else {
        good = read_shards(topology, &reply, why);
    }
done:
    if (fd >= 0) {
        close(fd);
    }
    bson_destroy(find);
    buffer_destroy(&scratch);
    if (!good) {
        topology_destroy(topology);
        return NULL;
    }
    return topology;
}

void topology_destroy(struct topology *topology) {
    if (topology) {
        free(topology->sets);
        free(topology);
    }
}

size_t topology_find_shard(const struct topology *topology, const char *name) {
    for (size_t i = CONFIG_SET + 1; i < topology->count; i++) {
        if (strcmp(topology->sets[i].name, name) == 0) {
            return i;
        }
    }
    return 0;
}
