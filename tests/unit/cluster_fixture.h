/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of src/cluster against servers: each test gets a connection and its own
 * database, which is dropped at the end. */
#ifndef SHARDLOAD_TESTS_CLUSTER_FIXTURE_H
#define SHARDLOAD_TESTS_CLUSTER_FIXTURE_H

#include <unistd.h>

#include "cluster/internal.h"
#include "unit.h"

typedef struct fixture {
    sl_connection *connection;
    char database[64];
    sl_target target;
    bson_t by_id; /* {_id: 1} */
    sl_error error;
} fixture;

/* The environment variables with the connection strings of the deployments. */
#define STANDALONE "SHARDLOAD_TEST_STANDALONE_URI"
#define REPLICA "SHARDLOAD_TEST_REPLICA_URI"
#define SHARDED "SHARDLOAD_TEST_URI"
#define EACH STANDALONE, REPLICA, SHARDED

/* TEST_ON(deployments, name) { ... } is a TEST with a fixture `f` on each of the deployments. It is
 * skipped on those whose variable is not set. */
#define TEST_ON(deployments, test)                                                                 \
    static void test(fixture *f);                                                                  \
    static void run_##test(void **state) {                                                         \
        test(*state);                                                                              \
    }                                                                                              \
    __attribute__((constructor)) static void add_##test(void) {                                    \
        static const char *const variables[] = {deployments};                                      \
        for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)                        \
            add_test_on(variables[i], __LINE__, #test, run_##test);                                \
    }                                                                                              \
    static void test(fixture *f)

/* Fails the test with the error's message if the call fails. */
#define ok(f, call)                                                                                \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s", #call, (f)->error.message);                                         \
    } while (0)

/* The call must fail, and its error message must contain each of the texts. */
#define refused(f, call, ...)                                                                      \
    do {                                                                                           \
        assert_false(call);                                                                        \
        assert_error(&(f)->error, (const char *const[]){__VA_ARGS__, NULL});                       \
    } while (0)

/* The target must be refused as `refused` describes. */
#define refused_target(f, ...)                                                                     \
    do {                                                                                           \
        bool created_target;                                                                       \
        refused(f, sl_prepare_target((f)->connection, &(f)->target, &created_target, &(f)->error), \
                __VA_ARGS__);                                                                      \
    } while (0)

static inline void assert_error(const sl_error *error, const char *const *texts) {
    assert_int_equal(error->code, SL_EXIT_CLUSTER);
    for (; *texts; texts++) {
        if (!strstr(error->message, *texts))
            fail_msg("\"%s\" is not in: %s", *texts, error->message);
    }
}

static inline int setup(void **state) {
    static unsigned number;
    const char *variable = *state;
    fixture *f = calloc(1, sizeof *f);
    if (!f || !sl_connection_open(&(sl_connection_options){getenv(variable), "test_cluster_floor",
                                                           16, 120, 0, false},
                                  &f->connection, &f->error)) {
        print_message("# cannot connect: %s\n", f ? f->error.message : "no memory");
        free(f);
        return -1;
    }
    snprintf(f->database, sizeof f->database, "floor_%d_%u", (int)getpid(), number++);
    f->target = (sl_target){.database = f->database, .collection = "things"};
    bson_init(&f->by_id);
    BSON_APPEND_INT32(&f->by_id, "_id", 1);
    *state = f;
    return 0;
}

static inline int teardown(void **state) {
    fixture *f = *state;
    bson_t *drop = BCON_NEW("dropDatabase", BCON_INT32(1));
    bool dropped = sl_cluster_command(f->connection, f->database, drop, NULL, NULL, &f->error);
    if (!dropped)
        print_message("# %s\n", f->error.message);
    bson_destroy(drop);
    unit_release(NULL);
    sl_connection_close(f->connection);
    free(f);
    return dropped ? 0 : -1;
}

static inline void skipped(void **state) {
    (void)state;
}

/* ---- helpers ---- */

static inline void destroy_topology(void *topology) {
    sl_topology_destroy(topology);
}

static inline void destroy_map(void *map) {
    sl_shard_map_destroy(map);
}

static inline void close_registry(void *registry) {
    sl_registry_close(registry);
}

static inline void insert(fixture *f, int64_t first, int64_t count) {
    bson_t command = BSON_INITIALIZER, documents, document;
    BSON_APPEND_UTF8(&command, "insert", f->target.collection);
    bson_append_array_begin(&command, "documents", -1, &documents);
    for (int64_t i = 0; i < count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        bson_append_document_begin(&documents, key, -1, &document);
        BSON_APPEND_INT64(&document, "_id", first + i);
        BSON_APPEND_INT64(&document, "k", i % 7);
        bson_append_document_end(&documents, &document);
    }
    bson_append_array_end(&command, &documents);
    ok(f, sl_cluster_command(f->connection, f->database, &command, NULL, NULL, &f->error));
    bson_destroy(&command);
}

static inline void run(fixture *f, const char *database, bson_t *command) {
    ok(f, sl_cluster_command(f->connection, database, command, NULL, NULL, &f->error));
    bson_destroy(command);
}

static inline void prepare(fixture *f, bool expect_created) {
    bool created;
    ok(f, sl_prepare_target(f->connection, &f->target, &created, &f->error));
    assert_int_equal(created, expect_created);
}

static inline uint64_t documents_on(fixture *f, const char *shard) {
    sl_shard_statistics *rows;
    size_t count;
    uint64_t documents = 0;
    ok(f, sl_statistics_read(f->connection, &f->target, &rows, &count, &f->error));
    for (size_t i = 0; i < count; i++) {
        if (!shard || strcmp(rows[i].shard, shard) == 0)
            documents += rows[i].documents;
    }
    free(rows);
    return documents;
}

/* Of the deployment; destroyed after the test. */
static inline sl_topology *topology_of(fixture *f) {
    sl_topology *topology;
    ok(f, sl_topology_read(f->connection, &topology, &f->error));
    unit_release_later(destroy_topology, topology);
    return topology;
}

/* Of the target; destroyed after the test. */
static inline sl_shard_map *map_of(fixture *f, const sl_topology *topology) {
    sl_shard_map *map;
    ok(f, sl_shard_map_read(f->connection, &f->target, topology, &map, &f->error));
    unit_release_later(destroy_map, map);
    return map;
}

/* Of the target; closed after the test. */
static inline sl_registry *registry_of(fixture *f) {
    sl_registry *registry;
    ok(f, sl_registry_open(f->connection, &f->target, &registry, &f->error));
    unit_release_later(close_registry, registry);
    return registry;
}

static inline void add_test_on(const char *variable, int line, const char *test,
                               CMUnitTestFunction run_test) {
    static char names[100][160];
    static size_t count;
    struct CMUnitTest made = {names[count], run_test, setup, teardown, (void *)(uintptr_t)variable};
    snprintf(names[count], sizeof names[0], "%s, %s", test, variable);
    if (!getenv(variable)) {
        snprintf(names[count], sizeof names[0], "%s # SKIP %s is not set", test, variable);
        made = (struct CMUnitTest){.name = names[count], .test_func = skipped};
    }
    if (count++ == sizeof names / sizeof names[0])
        abort();
    unit_add(__BASE_FILE__, line, made);
}

#endif
