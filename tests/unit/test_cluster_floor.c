/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of targets, the registry and statistics against real servers, of every kind of deployment.
 * If these broke, a load would go into a collection that is not what the user asked for, or two
 * sources would get one number and overwrite each other's documents. */
#include <shardload/document_id.h>

#include "cluster_fixture.h"

/* ---- topology ---- */

static void test_shards_have_names(void **state) {
    fixture *f = *state;
    sl_topology *topology;
    ok(f, sl_topology_read(f->connection, &topology, &f->error));
    bool sharded = sl_connection_server(f->connection)->deployment == SL_SHARDED;
    assert_true(sharded ? topology->count >= 2 : topology->count == 1);
    for (size_t i = 0; i < topology->count; i++) {
        assert_true(strlen(topology->shards[i].name) > 0);
        assert_true(strlen(topology->shards[i].host) > 0);
        assert_true(i == 0 || strcmp(topology->shards[i - 1].name, topology->shards[i].name) < 0);
    }
    sl_topology_destroy(topology);
}

/* ---- target ---- */

static void test_compressor_is_kept_and_compared(void **state) {
    fixture *f = *state;
    bool created;
    static const char *const all[] = {"none", "snappy", "zlib", "zstd"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        f->target.collection = all[i];
        f->target.compressor = all[i];
        prepare(f, true);
        prepare(f, false);
        f->target.compressor = NULL;
        prepare(f, false);
        f->target.compressor = i == 0 ? "zlib" : "none";
        refused(f, sl_prepare_target(f->connection, &f->target, &created, &f->error), all[i],
                f->target.compressor, "--drop");
    }
    f->target.collection = "unknown";
    f->target.compressor = "lz4";
    refused(f, sl_prepare_target(f->connection, &f->target, &created, &f->error), "lz4");
}

static void test_default_compressor_is_known(void **state) {
    fixture *f = *state;
    bool created;
    prepare(f, true);
    f->target.compressor = "snappy"; /* the server's default, if nobody changed it */
    prepare(f, false);
    f->target.compressor = "zlib";
    refused(f, sl_prepare_target(f->connection, &f->target, &created, &f->error), "snappy", "zlib");
}

static void test_clustered_is_kept_and_compared(void **state) {
    fixture *f = *state;
    bool created;
    prepare(f, true);
    f->target.clustered = true;
    refused(f, sl_prepare_target(f->connection, &f->target, &created, &f->error), "not clustered",
            "--drop");
    f->target.drop = true;
    prepare(f, true);
    f->target.drop = false;
    prepare(f, false);
    f->target.clustered = false; /* not asked for: whatever it is */
    prepare(f, false);
}

static void test_view_is_no_target(void **state) {
    fixture *f = *state;
    bool created;
    prepare(f, true);
    run(f, f->database, BCON_NEW("create", "window", "viewOn", "things", "pipeline", "[", "]"));
    f->target.collection = "window";
    refused(f, sl_prepare_target(f->connection, &f->target, &created, &f->error), "view");
}

static void test_drop_forgets_documents_and_sources(void **state) {
    fixture *f = *state;
    sl_registry *registry;
    sl_source_state source;
    uint32_t number;
    char when[32];
    prepare(f, true);
    insert(f, 0, 100);
    ok(f, sl_registry_open(f->connection, &f->target, &registry, &f->error));
    ok(f, sl_registry_start(registry, "f1", "one", 1, &number, &f->error));
    ok(f, sl_registry_start(registry, "f2", "two", 1, &number, &f->error));
    assert_int_equal(number, 2);
    f->target.drop = true;
    prepare(f, true);
    assert_int_equal(documents_on(f, NULL), 0);
    ok(f, sl_registry_find(registry, "f1", &source, &number, when, &f->error));
    assert_int_equal(source, SL_SOURCE_NEW);
    ok(f, sl_registry_start(registry, "f2", "two", 1, &number, &f->error));
    assert_int_equal(number, 1);
    sl_registry_close(registry);
}

static void test_index_is_built_once(void **state) {
    fixture *f = *state;
    bson_t *keys = BCON_NEW("k", BCON_INT32(1), "m", BCON_INT32(-1));
    prepare(f, true);
    insert(f, 0, 50);
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    bson_t reply;
    bson_iter_t iter, name;
    bson_t *list = BCON_NEW("listIndexes", "things");
    ok(f, sl_cluster_command(f->connection, f->database, list, &reply, NULL, &f->error));
    assert_true(bson_iter_init(&iter, &reply) &&
                bson_iter_find_descendant(&iter, "cursor.firstBatch.1.name", &name));
    assert_string_equal(bson_iter_utf8(&name, NULL), "k_1_m_-1");
    bson_destroy(&reply);
    bson_destroy(list);
    bson_destroy(keys);
    /* The same index made by hand under another name is the same index. */
    run(f, f->database,
        BCON_NEW("createIndexes", "things", "indexes", "[", "{", "key", "{", "m", BCON_INT32(1),
                 "}", "name", "by hand", "}", "]"));
    keys = BCON_NEW("m", BCON_INT32(1));
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    bson_destroy(keys);
}

static void test_counts_and_statistics(void **state) {
    fixture *f = *state;
    sl_shard_statistics *rows;
    size_t count;
    uint64_t documents;
    prepare(f, true);
    insert(f, 1000, 500);
    ok(f, sl_count_range(f->connection, &f->target, 1000, 1500, &documents, &f->error));
    assert_int_equal(documents, 500);
    ok(f, sl_count_range(f->connection, &f->target, 1001, 1003, &documents, &f->error));
    assert_int_equal(documents, 2);
    ok(f, sl_count_range(f->connection, &f->target, 0, 1000, &documents, &f->error));
    assert_int_equal(documents, 0);
    ok(f, sl_statistics_read(f->connection, &f->target, &rows, &count, &f->error));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].documents, 500);
    assert_int_equal(rows[0].data_bytes, 500 * 29); /* 5 + 13 for _id + 11 for k */
    assert_true(strlen(rows[0].shard) > 0);
    free(rows);
    f->target.collection = "nothing";
    ok(f, sl_statistics_read(f->connection, &f->target, &rows, &count, &f->error));
    assert_int_equal(count, 0);
    assert_null(rows);
}

/* ---- registry ---- */

static void test_sources_keep_their_numbers(void **state) {
    fixture *f = *state;
    sl_registry *registry;
    sl_source_state source;
    uint32_t number;
    char when[32];
    prepare(f, true);
    ok(f, sl_registry_open(f->connection, &f->target, &registry, &f->error));
    ok(f, sl_registry_find(registry, "f1", &source, &number, when, &f->error));
    assert_int_equal(source, SL_SOURCE_NEW);
    assert_int_equal(number, 0);
    assert_string_equal(when, "");

    ok(f, sl_registry_start(registry, "f1", "one.txt", 1ull << 39, &number, &f->error));
    assert_int_equal(number, 1);
    ok(f, sl_registry_start(registry, "f2", "two.txt", 5, &number, &f->error));
    assert_int_equal(number, 2);
    ok(f, sl_registry_start(registry, "f1", "one.txt", 1ull << 39, &number, &f->error));
    assert_int_equal(number, 1);
    ok(f, sl_registry_find(registry, "f1", &source, &number, when, &f->error));
    assert_int_equal(source, SL_SOURCE_STARTED);
    assert_string_equal(when, "");

    ok(f, sl_registry_finish(registry, "f1", 12345, &f->error));
    ok(f, sl_registry_find(registry, "f1", &source, &number, when, &f->error));
    assert_int_equal(source, SL_SOURCE_LOADED);
    assert_int_equal(number, 1);
    assert_int_equal(strlen(when), strlen("2020-01-01T00:00:00Z"));

    /* Loading it again takes the mark away until it is finished again. */
    ok(f, sl_registry_start(registry, "f1", "one.txt", 1ull << 39, &number, &f->error));
    assert_int_equal(number, 1);
    ok(f, sl_registry_find(registry, "f1", &source, &number, when, &f->error));
    assert_int_equal(source, SL_SOURCE_STARTED);

    refused(f, sl_registry_finish(registry, "f3", 1, &f->error), "things.sources");
    sl_registry_close(registry);
}

static void test_numbers_run_out_with_words(void **state) {
    fixture *f = *state;
    sl_registry *registry;
    uint32_t number;
    prepare(f, true);
    run(f, f->database,
        BCON_NEW("insert", "things.sources", "documents", "[", "{", "_id", "counter", "last",
                 BCON_INT32((int32_t)SL_SOURCE_NUMBER_MAX - 1), "}", "]"));
    ok(f, sl_registry_open(f->connection, &f->target, &registry, &f->error));
    ok(f, sl_registry_start(registry, "f1", "one", 1, &number, &f->error));
    assert_int_equal(number, SL_SOURCE_NUMBER_MAX);
    refused(f, sl_registry_start(registry, "f2", "two", 1, &number, &f->error), "8388607",
            "another collection");
    sl_registry_close(registry);
}

/* The primary steps down between two commands: nobody above notices. */
static void test_election_is_waited_out(void **state) {
    fixture *f = *state;
    sl_registry *registry;
    uint32_t number;
    bool created;
    ok(f, sl_registry_open(f->connection, &f->target, &registry, &f->error));
    ok(f, sl_registry_start(registry, "f1", "one", 1, &number, &f->error));
    bson_t *step_down = BCON_NEW("replSetStepDown", BCON_INT32(1), "secondaryCatchUpPeriodSecs",
                                 BCON_INT32(0), "force", BCON_BOOL(true));
    run(f, "admin", step_down);
    ok(f, sl_registry_start(registry, "f2", "two", 1, &number, &f->error));
    assert_int_equal(number, 2);
    step_down = BCON_NEW("replSetStepDown", BCON_INT32(1), "secondaryCatchUpPeriodSecs",
                         BCON_INT32(0), "force", BCON_BOOL(true));
    run(f, "admin", step_down);
    ok(f, sl_prepare_target(f->connection, &f->target, &created, &f->error));
    sl_registry_close(registry);
}

#define RACERS 4
#define RACED 12

typedef struct racer {
    fixture *f;
    uint32_t numbers[RACED];
    bool ok;
    sl_error error;
} racer;

static void *race(void *context) {
    racer *me = context;
    sl_registry *registry;
    me->ok = sl_registry_open(me->f->connection, &me->f->target, &registry, &me->error);
    for (int i = 0; me->ok && i < RACED; i++) {
        char fingerprint[16];
        snprintf(fingerprint, sizeof fingerprint, "f%d", i);
        me->ok = sl_registry_start(registry, fingerprint, "name", 1, &me->numbers[i], &me->error);
    }
    sl_registry_close(registry);
    return NULL;
}

/* Loaders that register the same files at once agree, and no number is given twice. */
static void test_racing_loaders_agree_on_numbers(void **state) {
    fixture *f = *state;
    prepare(f, true);
    racer racers[RACERS];
    pthread_t threads[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (racer){.f = f};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RACERS; i++) {
        if (!racers[i].ok)
            fail_msg("%s", racers[i].error.message);
        for (int k = 0; k < RACED; k++) {
            assert_int_equal(racers[i].numbers[k], racers[0].numbers[k]);
            for (int other = 0; other < k; other++)
                assert_int_not_equal(racers[i].numbers[k], racers[i].numbers[other]);
        }
    }
}

int main(void) {
    struct CMUnitTest tests[] = {
        ON_EACH(test_shards_have_names),
        ON_EACH(test_compressor_is_kept_and_compared),
        ON_EACH(test_default_compressor_is_known),
        ON_EACH(test_clustered_is_kept_and_compared),
        ON_EACH(test_view_is_no_target),
        ON_EACH(test_drop_forgets_documents_and_sources),
        ON_EACH(test_index_is_built_once),
        ON_EACH(test_counts_and_statistics),
        ON_EACH(test_sources_keep_their_numbers),
        ON_EACH(test_numbers_run_out_with_words),
        ON_EACH(test_racing_loaders_agree_on_numbers),
        ON(REPLICA, test_election_is_waited_out),
    };
    skip_without_server(tests, sizeof tests / sizeof tests[0]);
    return cmocka_run_group_tests_name("cluster floor", tests, NULL, NULL);
}
