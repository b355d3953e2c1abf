/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of src/cluster against servers: each test gets a connection and its own
 * database, which is dropped at the end.
 *
 * ON() and ON_EACH() name the deployments that a test runs against. The environment variables below
 * hold their connection strings; tests whose variable is not set are skipped. */
#ifndef SHARDLOAD_TESTS_CLUSTER_FIXTURE_H
#define SHARDLOAD_TESTS_CLUSTER_FIXTURE_H

#include <pthread.h>
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

#define STANDALONE "SHARDLOAD_TEST_STANDALONE_URI"
#define REPLICA "SHARDLOAD_TEST_REPLICA_URI"
#define SHARDED "SHARDLOAD_TEST_URI"

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
    if (!f || !sl_connection_open(
                  &(sl_connection_options){getenv(variable), "test_cluster_floor", 16, 120, 0},
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
    sl_connection_close(f->connection);
    free(f);
    return dropped ? 0 : -1;
}

/* ---- helpers ---- */

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

/* A test, and the environment variable of the deployment that it needs. */
#define ON(deployment, test)                                                                       \
    {                                                                                              \
#deployment " " #test, test, setup, teardown, (char[]) {                                   \
            deployment                                                                             \
        }                                                                                          \
    }
#define ON_EACH(test) ON(STANDALONE, test), ON(REPLICA, test), ON(SHARDED, test)

static inline void skipped(void **state) {
    (void)state;
}

/* Replaces each test whose variable is not set by one that is reported as skipped. Tests made by
 * cmocka_unit_test need no variable. */
static inline void skip_without_server(struct CMUnitTest *tests, size_t count) {
    static char names[100][160];
    if (count > sizeof names / sizeof names[0])
        abort();
    for (size_t i = 0; i < count; i++) {
        const char *variable = tests[i].initial_state;
        if (!variable || getenv(variable))
            continue;
        snprintf(names[i], sizeof names[i], "%s # SKIP %s is not set", tests[i].name, variable);
        tests[i] = (struct CMUnitTest){.name = names[i], .test_func = skipped};
    }
}

#endif
