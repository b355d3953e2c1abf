/* SPDX-License-Identifier: Apache-2.0 */
/* Computed owners, compared with a real cluster: documents with keys of every type are inserted
 * through the router, and each must be on the shard that the chunk map computes for it. An error
 * here would only cost speed: the router would split batches that are meant for one shard. */
#include <math.h>

#include "cluster_fixture.h"

#define DOCUMENTS 900
#define CUTS 20
#define MOVES 14

/* ---- keys of every kind ---- */

static uint64_t random_state;

static uint64_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 20;
}

static void append_double(bson_t *document, const char *key) {
    static const double odd[] = {0.0,    -0.0,  0x1p53,     0x1p53 + 2,    -0x1p63, 0x1p63,
                                 -1e300, 1e300, 2147483647, -2147483648.5, 4e9,     0x1p62};
    uint64_t pick = next_random();
    double value = odd[pick % (sizeof odd / sizeof odd[0])];
    if (pick % 31 == 0)
        value = pick % 2 ? (double)NAN : (pick % 4 ? (double)INFINITY : -(double)INFINITY);
    else if (pick % 3 > 0)
        value = ((double)(next_random() % 4000) - 2000) / 8;
    BSON_APPEND_DOUBLE(document, key, value);
}

static void append_text(bson_t *document, const char *key) {
    char text[240];
    size_t length = next_random() % (next_random() % 4 ? 12 : sizeof text);
    for (size_t i = 0; i < length; i++)
        text[i] = "abz01~ "[next_random() % 7];
    bson_append_utf8(document, key, -1, text, (int)length);
}

static void append_bytes(bson_t *document, const char *key) {
    uint8_t bytes[16];
    bson_oid_t oid;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_random();
    memcpy(oid.bytes, bytes, sizeof oid.bytes);
    if (next_random() % 2)
        BSON_APPEND_OID(document, key, &oid);
    else
        BSON_APPEND_BINARY(document, key,
                           next_random() % 2 ? BSON_SUBTYPE_BINARY : BSON_SUBTYPE_USER, bytes,
                           (uint32_t)(next_random() % sizeof bytes));
}

/* Appends any value whose owner can be computed, or nothing, which counts as null. */
static void append_known(bson_t *document, const char *key) {
    static const int64_t extremes[] = {INT64_MIN,        INT64_MIN + 1, -1,       0,
                                       9007199254740993, INT64_MAX - 1, INT64_MAX};
    switch (next_random() % 13) {
    case 0:
        BSON_APPEND_INT32(document, key, (int32_t)(next_random() % 500) - 250);
        break;
    case 1:
        BSON_APPEND_INT64(document, key, (int64_t)(next_random() % 500) - 250);
        break;
    case 2:
        BSON_APPEND_INT64(document, key, extremes[next_random() % 7]);
        break;
    case 3:
    case 4:
        append_double(document, key);
        break;
    case 5:
    case 6:
        append_text(document, key);
        break;
    case 7:
        append_bytes(document, key);
        break;
    case 8:
        BSON_APPEND_BOOL(document, key, next_random() % 2);
        break;
    case 9:
        BSON_APPEND_DATE_TIME(document, key, (int64_t)(next_random() % 4000000) * 1000003 - 2000);
        break;
    case 10:
        BSON_APPEND_TIMESTAMP(document, key, (uint32_t)next_random() | 1, (uint32_t)next_random());
        break;
    case 11:
        if (next_random() % 2)
            BSON_APPEND_NULL(document, key);
        break;
    default: /* not MaxKey: a key may not consist of it (see test_shard_key.c) */
        BSON_APPEND_MINKEY(document, key);
    }
}

/* A document with the fields a, b and in.k. `unknown`: b has a type whose owner is not computed. */
static void append_document(bson_t *array, uint32_t index, bool unknown) {
    char room[16];
    const char *key;
    bson_t document, inner;
    bson_uint32_to_string(index, &key, room, sizeof room);
    BSON_APPEND_DOCUMENT_BEGIN(array, key, &document);
    BSON_APPEND_INT64(&document, "_id", index);
    append_known(&document, "a");
    if (unknown) {
        bson_decimal128_t decimal;
        bson_decimal128_from_string("1.5", &decimal);
        if (index % 3 == 0)
            BSON_APPEND_DECIMAL128(&document, "b", &decimal);
        else if (index % 3 == 1)
            BCON_APPEND(&document, "b", "{", "x", BCON_INT32((int32_t)index), "}");
        else
            BSON_APPEND_SYMBOL(&document, "b", "old");
    } else {
        append_known(&document, "b");
    }
    if (index % 10 == 0) {
        append_known(&document, "in"); /* not a document: in.k is missing */
    } else {
        BSON_APPEND_DOCUMENT_BEGIN(&document, "in", &inner);
        BSON_APPEND_INT32(&inner, "k.k", 1);
        append_known(&inner, "k");
        bson_append_document_end(&document, &inner);
    }
    bson_append_document_end(array, &document);
}

static void insert_documents(fixture *f, uint32_t count, uint32_t unknown_from) {
    bson_t command = BSON_INITIALIZER, documents;
    BSON_APPEND_UTF8(&command, "insert", f->target.collection);
    BSON_APPEND_ARRAY_BEGIN(&command, "documents", &documents);
    for (uint32_t i = 0; i < count; i++)
        append_document(&documents, i, i >= unknown_from);
    bson_append_array_end(&command, &documents);
    run(f, f->database, &command);
}

/* ---- chunks ---- */

/* Appends a random bound for the key. */
static void append_bound(bson_t *bound, const bson_t *key) {
    bson_iter_t field, made;
    assert_true(bson_iter_init(&field, key));
    while (bson_iter_next(&field)) {
        bson_t value = BSON_INITIALIZER;
        if (BSON_ITER_HOLDS_UTF8(&field))
            BSON_APPEND_INT64(&value, "v", (int64_t)(next_random() << 20));
        while (!bson_iter_init_find(&made, &value, "v"))
            append_known(&value, "v");
        bson_append_iter(bound, bson_iter_key(&field), -1, &made);
        bson_destroy(&value);
    }
}

/* Runs a command on the collection with a random bound as its argument `name`, and `shard` as its
 * argument `to`. */
static void run_at_bound(fixture *f, const char *command, const char *name, const bson_t *key,
                         const char *to, const char *shard) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t made = BSON_INITIALIZER, bound;
    sl_error refused;
    BSON_APPEND_UTF8(&made, command, sl_target_namespace(&f->target, ns));
    BSON_APPEND_DOCUMENT_BEGIN(&made, name, &bound);
    append_bound(&bound, key);
    bson_append_document_end(&made, &bound);
    if (shard)
        BSON_APPEND_UTF8(&made, to, shard);
    /* A split at an existing bound is refused. */
    bool done = sl_connection_command(f->connection, "admin", &made, NULL, NULL, &refused);
    if (!done && shard)
        fail_msg("%s", refused.message);
    bson_destroy(&made);
}

/* Splits chunks at random keys; then moves ranges from a random key to the end of its chunk, or
 * before server 6.0 the chunks of random keys, to alternating shards. */
static void scatter(fixture *f, const sl_topology *topology, const bson_t *key) {
    bool ranges = sl_server_at_least(sl_connection_server(f->connection), 6, 0);
    for (uint32_t i = 0; i < CUTS; i++)
        run_at_bound(f, "split", "middle", key, NULL, NULL);
    for (uint32_t i = 0; i < MOVES; i++)
        run_at_bound(f, ranges ? "moveRange" : "moveChunk", ranges ? "min" : "find", key,
                     ranges ? "toShard" : "to", topology->shards[i % topology->count].name);
}

/* ---- actual owners ---- */

/* Reads the documents of a shard through a direct connection. */
static void read_shard(fixture *f, const sl_shard *shard, bson_t *documents) {
    const char *slash = strchr(shard->host, '/');
    char uri[300];
    sl_connection *direct;
    bson_t everything = BSON_INITIALIZER;
    assert_non_null(slash);
    snprintf(uri, sizeof uri, "mongodb://%s/?replicaSet=%.*s", slash + 1,
             (int)(slash - shard->host), shard->host);
    ok(f,
       sl_connection_open(&(sl_connection_options){uri, "test_cluster_routing", 1, 120, 0, false},
                          &direct, &f->error));
    ok(f, sl_connection_find(direct, f->database, f->target.collection, &everything, NULL,
                             documents, &f->error));
    sl_connection_close(direct);
    bson_destroy(&everything);
}

/* Every document must be on the shard that is computed for it; for `unknown` of them none can be
 * computed. Each shard must have a share of the documents, or the test would prove little. */
static void assert_owners(fixture *f, const sl_topology *topology, uint32_t count,
                          uint32_t unknown) {
    sl_owner_cache cache = {0};
    uint32_t found = 0, not_computed = 0;
    sl_shard_map *map = map_of(f, topology);
    assert_int_equal(sl_shard_map_route(map), SL_ROUTE_BY_KEY);
    for (uint32_t i = 0; i < topology->count; i++) {
        bson_t documents;
        bson_iter_t iter;
        uint32_t here = 0;
        read_shard(f, &topology->shards[i], &documents);
        assert_true(bson_iter_init(&iter, &documents));
        while (bson_iter_next(&iter)) {
            const uint8_t *bytes;
            uint32_t length, shard;
            bson_iter_document(&iter, &length, &bytes);
            here++;
            if (!sl_shard_map_owner_of(map, bytes, &cache, &shard)) {
                not_computed++;
            } else if (shard != i) {
                bson_t view;
                assert_true(bson_init_static(&view, bytes, length));
                fail_msg("on %s, but %s was computed: %s", topology->shards[i].name,
                         topology->shards[shard].name,
                         bson_as_canonical_extended_json(&view, NULL));
            }
        }
        assert_in_range(here, count / 50, count);
        found += here;
        bson_destroy(&documents);
    }
    assert_int_equal(found, count);
    assert_int_equal(not_computed, unknown);
}

static void check_key(fixture *f, bson_t *key, bool scattered, uint32_t unknown) {
    random_state = bson_get_data(key)[4] + 7u * key->len;
    f->target.shard_key = key;
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    if (scattered)
        scatter(f, topology, key);
    insert_documents(f, DOCUMENTS, DOCUMENTS - unknown);
    assert_owners(f, topology, DOCUMENTS, unknown);
    bson_destroy(key);
}

/* With a hashed key the server distributes the chunks of a new collection itself. */
TEST_ON(SHARDED, test_hashed_field) {
    check_key(f, BCON_NEW("b", "hashed"), false, 30);
}

TEST_ON(SHARDED, test_hashed_id) {
    check_key(f, BCON_NEW("_id", "hashed"), false, 0);
}

TEST_ON(SHARDED, test_hashed_field_in_many_chunks) {
    check_key(f, BCON_NEW("in.k", "hashed"), true, 0);
}

TEST_ON(SHARDED, test_hashed_field_behind_a_range) {
    check_key(f, BCON_NEW("a", BCON_INT32(1), "b", "hashed"), true, 30);
}

TEST_ON(SHARDED, test_ranges_of_every_kind_of_value) {
    check_key(f, BCON_NEW("b", BCON_INT32(1)), true, 30);
}

TEST_ON(SHARDED, test_ranges_of_two_fields) {
    check_key(f, BCON_NEW("a", BCON_INT32(1), "in.k", BCON_INT32(1)), true, 0);
}

/* Compares the hash of each value with $toHashedIndexKey. */
TEST_ON(SHARDED, test_hashes_equal_those_of_the_server) {
    if (!sl_server_at_least(sl_connection_server(f->connection), 6, 0))
        skip();
    bson_t reply;
    bson_iter_t iter, row, value, hash;
    uint32_t compared = 0;
    random_state = 4711;
    insert_documents(f, DOCUMENTS, DOCUMENTS);
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(f->target.collection), "pipeline", "[", "{", "$project",
                 "{", "b", BCON_INT32(1), "h", "{", "$toHashedIndexKey", "$b", "}", "}", "}", "]",
                 "cursor", "{", "batchSize", BCON_INT32(DOCUMENTS), "}");
    ok(f, sl_cluster_command(f->connection, f->database, command, &reply, NULL, &f->error));
    assert_true(bson_iter_init(&iter, &reply));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch", &row));
    assert_true(bson_iter_recurse(&row, &iter));
    while (bson_iter_next(&iter)) {
        const bson_value_t null = {.value_type = BSON_TYPE_NULL};
        sl_owner_cache cache = {0};
        assert_true(bson_iter_recurse(&iter, &hash) && bson_iter_find(&hash, "h"));
        bool has_b = bson_iter_recurse(&iter, &value) && bson_iter_find(&value, "b");
        int64_t computed = sl_value_hash(has_b ? bson_iter_value(&value) : &null, &cache);
        if (computed != bson_iter_as_int64(&hash))
            fail_msg("document %u: type %d", compared, has_b ? (int)bson_iter_type(&value) : -1);
        compared++;
    }
    assert_int_equal(compared, DOCUMENTS);
    bson_destroy(&reply);
    bson_destroy(command);
}
