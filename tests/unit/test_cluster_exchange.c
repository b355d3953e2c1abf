/* SPDX-License-Identifier: Apache-2.0 */
/* Reads without the driver (streams.c). If these fail, shardquery cannot continue after a
 * connection is lost. */
#include "cluster_fixture.h"

static bool ping(mongoc_client_t *client) {
    bson_t *command = BCON_NEW("ping", BCON_INT32(1));
    bool ok = mongoc_client_command_simple(client, "admin", command, NULL, NULL, NULL);
    bson_destroy(command);
    return ok;
}

static sl_exchange *exchange_with(fixture *f, mongoc_client_t *client) {
    sl_exchange *exchange = sl_exchange_create(f->connection, client);
    mongoc_server_description_t *server = mongoc_client_select_server(client, false, NULL, NULL);
    assert_non_null(exchange);
    assert_non_null(server);
    const sl_exchange_target target = {.server = server, .database = f->database};
    sl_exchange_select(exchange, &target, client);
    mongoc_server_description_destroy(server);
    return exchange;
}

/* Returns the _id of the document that the exchange finds; -1 without a reply. */
static int64_t find_id(fixture *f, sl_exchange *exchange, int64_t id) {
    bson_t reply, *command = BCON_NEW("find", BCON_UTF8(f->target.collection), "filter", "{", "_id",
                                      BCON_INT64(id), "}");
    bool replied = sl_exchange_run(exchange, command, &reply);
    bson_destroy(command);
    if (!replied)
        return -1;
    bson_iter_t iter, found;
    assert_true(bson_validate(&reply, BSON_VALIDATE_UTF8, NULL));
    assert_true(bson_iter_init(&iter, &reply));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch.0._id", &found));
    return bson_iter_as_int64(&found);
}

TEST_ON(EACH, test_reads_need_a_connection_that_the_driver_has_used) {
    insert(f, 0, 10);
    mongoc_client_t *client = sl_connection_borrow(f->connection);
    sl_exchange *exchange = exchange_with(f, client);
    int64_t early = find_id(f, exchange, 3); /* with driver 2, selecting a server has connected */
    assert_true(early == -1 || early == 3);
    assert_true(ping(client));
    for (int64_t id = 0; id < 10; id++)
        assert_int_equal(find_id(f, exchange, id), id);
    sl_exchange_destroy(exchange);
    sl_connection_return(f->connection, client);
}

TEST_ON(EACH, test_a_lost_connection_is_replaced_by_the_driver) {
    insert(f, 0, 10);
    mongoc_client_t *client = sl_connection_borrow(f->connection);
    sl_streams *streams = sl_connection_streams(f->connection, client);
    mongoc_server_description_t *server = mongoc_client_select_server(client, false, NULL, NULL);
    sl_exchange *exchange = exchange_with(f, client);
    assert_true(ping(client));
    assert_int_equal(find_id(f, exchange, 1), 1);
    sl_streams_shut_down(streams, mongoc_server_description_host(server)->host_and_port);
    assert_int_equal(find_id(f, exchange, 2), -1);
    bool again = false;
    for (unsigned i = 0; i < 10 && !again; i++) /* the driver notices it with the first of these */
        again = ping(client);
    assert_true(again);
    assert_int_equal(find_id(f, exchange, 3), 3);
    mongoc_server_description_destroy(server);
    sl_exchange_destroy(exchange);
    sl_connection_return(f->connection, client);
}

TEST_ON(EACH, test_a_reply_of_megabytes_is_complete) {
    insert(f, 0, 20000);
    mongoc_client_t *client = sl_connection_borrow(f->connection);
    sl_exchange *exchange = exchange_with(f, client);
    assert_true(ping(client));
    bson_t reply, *command = BCON_NEW("find", BCON_UTF8(f->target.collection), "batchSize",
                                      BCON_INT32(20000), "singleBatch", BCON_BOOL(true));
    assert_true(sl_exchange_run(exchange, command, &reply));
    bson_iter_t iter, batch, item;
    size_t count = 0;
    assert_true(bson_iter_init(&iter, &reply));
    assert_true(bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch));
    assert_true(bson_iter_recurse(&batch, &item));
    while (bson_iter_next(&item))
        count++;
    assert_int_equal(count, 20000);
    bson_destroy(command);
    assert_int_equal(find_id(f, exchange, 7), 7);
    sl_exchange_destroy(exchange);
    sl_connection_return(f->connection, client);
}
