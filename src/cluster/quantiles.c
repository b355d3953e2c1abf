/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-splitting of a new collection sharded by {_id: 1} whose _ids are not positions: at quantiles
 * of a sample, one chunk per shard. The map that the load reads afterwards decides about routing, so
 * a sample that is not representative costs balance, and no document. */
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "internal.h"

static int by_value(const void *a, const void *b) {
    return sl_value_compare(a, b);
}

/* Reads the _ids, sorted. NULL without memory; `*count` 0: a value has a type whose order is not
 * known. */
static bson_value_t *read_values(const uint8_t *documents, size_t *count) {
    bson_value_t *values = malloc((*count + 1) * sizeof *values);
    for (size_t i = 0; values && i < *count; i++) {
        if (!sl_key_value_at(documents, "_id", &values[i])) {
            *count = 0;
            return values;
        }
        documents += sl_bson_length(documents);
    }
    if (values)
        qsort(values, *count, sizeof *values, by_value);
    return values;
}

static void append_bound(bson_t *command, const char *key, const bson_value_t *value) {
    const bson_value_t ends[] = {{.value_type = BSON_TYPE_MINKEY},
                                 {.value_type = BSON_TYPE_MAXKEY}};
    bson_t bound;
    bson_append_document_begin(command, key, -1, &bound);
    BSON_APPEND_VALUE(&bound, "_id", value ? value : &ends[*key == '1']);
    bson_append_document_end(command, &bound);
}

static bool split_at(sl_connection *connection, const char *ns, const bson_value_t *value,
                     sl_error *error) {
    bson_t command = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&command, "split", ns);
    append_bound(&command, "middle", value);
    bool ok = sl_connection_command(connection, "admin", &command, NULL, NULL, error);
    bson_destroy(&command);
    return ok;
}

/* `from` NULL: MinKey; `to` NULL: MaxKey. */
static bool move(sl_connection *connection, const char *ns, const bson_value_t *from,
                 const bson_value_t *to, const char *shard, sl_error *error) {
    bson_t command = BSON_INITIALIZER, bounds;
    BSON_APPEND_UTF8(&command, "moveChunk", ns);
    bson_append_array_begin(&command, "bounds", -1, &bounds);
    append_bound(&bounds, "0", from);
    append_bound(&bounds, "1", to);
    bson_append_array_end(&command, &bounds);
    BSON_APPEND_UTF8(&command, "to", shard);
    bool ok = sl_connection_command(connection, "admin", &command, NULL, NULL, error);
    bson_destroy(&command);
    return ok;
}

bool sl_place_quantiles(sl_connection *connection, const sl_target *target,
                        const sl_topology *topology, const uint8_t *documents, size_t count,
                        size_t *chunks, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_value_t *values = read_values(documents, &count);
    const bson_value_t **bounds = calloc(topology->count + 1, sizeof(bson_value_t *));
    size_t used = 0; /* bounds[0] and the bound behind the last one are the ends */
    bool ok = (values && bounds) || sl_error_memory(error, "splitting the collection");
    sl_target_namespace(target, ns);
    for (size_t i = 1; ok && count > 0 && i < topology->count; i++) {
        const bson_value_t *value = &values[i * count / topology->count];
        if (sl_value_compare(value, used ? bounds[used] : &values[0]) <= 0)
            continue;
        bounds[++used] = value;
        ok = split_at(connection, ns, value, error);
    }
    for (size_t i = 0; ok && used > 0 && i <= used; i++)
        ok = move(connection, ns, i ? bounds[i] : NULL, i < used ? bounds[i + 1] : NULL,
                  topology->shards[i].name, error);
    *chunks = used + 1;
    free(bounds);
    free(values);
    return ok;
}
