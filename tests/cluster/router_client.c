/* SPDX-License-Identifier: Apache-2.0 */
/* The C driver as a client of the local cluster's router: prints TAP. Run by test_router.py.
 *
 * Usage: router_client URI DATABASE */

#include <mongoc/mongoc.h>
#include <stdbool.h>
#include <stdio.h>

enum { DOCUMENTS = 5000 };

struct client {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    const char *database;
};

static int count;
static int failures;
static bson_error_t error; /* of the last call that failed */

static void check(bool good, const char *name) {
    printf("%s %d - the C driver %s\n", good ? "ok" : "not ok", ++count, name);
    if (!good)
        printf("# not as expected; the last error: %s\n", error.message);
    failures += !good;
}

/* Runs a command, and destroys it. */
static bool run(const struct client *c, bson_t *command) {
    bool good = mongoc_client_command_simple(c->client, "admin", command, NULL, NULL, &error);
    bson_destroy(command);
    return good;
}

static void detect_sharded_cluster(const struct client *c) {
    mongoc_server_description_t *server =
        mongoc_client_select_server(c->client, true, NULL, &error);
    const char *type = server ? mongoc_server_description_type(server) : "none";
    check(server && strcmp(type, "Mongos") == 0, "detects a mongos");
    mongoc_server_description_destroy(server);
}

static void shard(const struct client *c) {
    char ns[256];
    snprintf(ns, sizeof ns, "%s.c", c->database);
    check(run(c, BCON_NEW("enableSharding", BCON_UTF8(c->database))) &&
              run(c, BCON_NEW("shardCollection", BCON_UTF8(ns), "key", "{", "_id",
                              BCON_UTF8("hashed"), "}")),
          "shards a collection");
}

static void insert(const struct client *c) {
    bson_t reply = BSON_INITIALIZER;
    bson_iter_t iter;
    const bson_t **documents = calloc(DOCUMENTS, sizeof *documents);
    bson_t *options = BCON_NEW("ordered", BCON_BOOL(false), "validate", BCON_BOOL(false),
                               "writeConcern", "{", "w", BCON_UTF8("majority"), "}");
    bool good = documents != NULL;
    for (int64_t i = 0; good && i < DOCUMENTS; i++)
        documents[i] = BCON_NEW("_id", BCON_INT64(i), "text", BCON_UTF8("some text of a document"));
    bson_destroy(&reply);
    good = good && mongoc_collection_insert_many(c->collection, documents, DOCUMENTS, options,
                                                 &reply, &error);
    check(good && bson_iter_init_find(&iter, &reply, "insertedCount") &&
              bson_iter_as_int64(&iter) == DOCUMENTS,
          "inserts many documents, with retryable writes enabled");

    /* The same documents again: each is a duplicate, reported by its position in the batch. */
    bson_destroy(&reply);
    good =
        !mongoc_collection_insert_many(c->collection, documents + 10, 3, options, &reply, &error);
    bson_iter_t errors;
    int duplicates = 0;
    bool positions_valid = true;
    if (good && bson_iter_init_find(&iter, &reply, "writeErrors") &&
        bson_iter_recurse(&iter, &errors)) {
        bson_iter_t field;
        while (bson_iter_next(&errors)) {
            positions_valid = positions_valid && bson_iter_recurse(&errors, &field) &&
                              bson_iter_find(&field, "index") && bson_iter_as_int64(&field) < 3;
            duplicates++;
        }
    }
    check(good && positions_valid && duplicates == 3 && error.code == 11000,
          "gets an error for each duplicate");
    for (int i = 0; documents && i < DOCUMENTS; i++)
        bson_destroy((bson_t *)(uintptr_t)documents[i]);
    free(documents);
    bson_destroy(options);
    bson_destroy(&reply);
}

static void find(const struct client *c) {
    bson_t filter = BSON_INITIALIZER;
    const bson_t *document;
    int64_t expected = 0;
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}", "batchSize", BCON_INT32(77));
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(c->collection, &filter, options, NULL);
    while (mongoc_cursor_next(cursor, &document)) {
        bson_iter_t iter;
        if (!bson_iter_init_find(&iter, document, "_id") || bson_iter_as_int64(&iter) != expected)
            break;
        expected++;
    }
    check(!mongoc_cursor_error(cursor, &error) && expected == DOCUMENTS,
          "reads the documents in order, in many batches");
    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(&filter);
}

static void abandon_a_cursor(const struct client *c) {
    bson_t filter = BSON_INITIALIZER;
    const bson_t *document;
    bson_t *options = BCON_NEW("batchSize", BCON_INT32(2));
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(c->collection, &filter, options, NULL);
    const bool read = mongoc_cursor_next(cursor, &document);
    mongoc_cursor_destroy(cursor); /* sends killCursors */
    const int64_t n =
        mongoc_collection_count_documents(c->collection, &filter, NULL, NULL, NULL, &error);
    check(read && n == DOCUMENTS, "counts documents after it has closed a cursor early");
    bson_destroy(options);
    bson_destroy(&filter);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "Usage: router_client URI DATABASE\n");
        return 2;
    }
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new_with_error(argv[1], &error);
    if (!uri) {
        fprintf(stderr, "router_client: %s\n", error.message);
        mongoc_cleanup();
        return 2;
    }
    mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, true);
    struct client c = {.client = mongoc_client_new_from_uri(uri), .database = argv[2]};
    c.collection = mongoc_client_get_collection(c.client, c.database, "c");

    detect_sharded_cluster(&c);
    shard(&c);
    insert(&c);
    find(&c);
    abandon_a_cursor(&c);
    check(!run(&c, BCON_NEW("noSuchCommand", BCON_INT32(1))) && error.code == 59,
          "gets an error for an unknown command");
    printf("1..%d\n", count);

    mongoc_collection_destroy(c.collection);
    mongoc_client_destroy(c.client);
    mongoc_uri_destroy(uri);
    mongoc_cleanup();
    return failures > 0;
}
