/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a server (streams.c). If these fail, a hostile server crashes the driver, or a valid
 * reply is refused, and a load ends for no reason. */
#include <arpa/inet.h>
#include <pthread.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "cluster_fixture.h"

#define HEADER SL_MESSAGE_HEADER

static char why[SL_MESSAGE_WHY];

static void put(uint8_t *to, uint32_t value) {
    memcpy(to, &value, sizeof value);
}

/* Makes an OP_MSG of a document that is given as JSON. Returns its length. */
static size_t message_of(const char *json, uint8_t out[512]) {
    bson_error_t wrong;
    bson_t *body = bson_new_from_json((const uint8_t *)json, -1, &wrong);
    assert_non_null(body);
    if (!bson_has_field(body, "ok"))
        BSON_APPEND_INT32(body, "ok", 1);
    size_t length = HEADER + 5 + body->len;
    memset(out, 0, 512);
    put(out, (uint32_t)length);
    put(out + 12, 2013);
    memcpy(out + HEADER + 5, bson_get_data(body), body->len);
    bson_destroy(body);
    return length;
}

static bool accepts(const char *json) {
    uint8_t message[512];
    why[0] = '\0';
    return sl_message_check(message, message_of(json, message), why);
}

TEST(replies_of_servers_are_accepted) {
    static const char *const replies[] = {
        "{\"ok\": 1}",
        "{\"ok\": 0, \"code\": 13, \"errmsg\": \"no\", \"errorLabels\": [\"x\"]}",
        "{\"ok\": 0, \"errmsg\": \"an error without a code\"}",
        "{\"ok\": 0, \"code\": {\"$numberLong\": \"11000\"}, \"errmsg\": \"of another type\"}",
        "{\"ok\": 1, \"speculativeAuthenticate\": {\"conversationId\": 1, \"done\": false}}",
        "{\"n\": 1, \"writeErrors\": [{\"index\": 0, \"code\": 0, \"errmsg\": \"\"}], \"ok\": 1}",
        "{\"writeConcernError\": {\"code\": 64, \"errmsg\": \"late\"}, \"ok\": 1}",
        "{\"cursor\": {\"id\": {\"$numberLong\": \"5\"}, \"ns\": \"a.b\","
        " \"firstBatch\": [{}, {\"a\": []}]}}",
        "{\"cursor\": {\"id\": {\"$numberLong\": \"0\"}, \"nextBatch\": []}}",
        "{\"maxWireVersion\": 21, \"maxBsonObjectSize\": 16777216, \"maxWriteBatchSize\": 100000,"
        " \"maxMessageSizeBytes\": 48000000, \"logicalSessionTimeoutMinutes\": null,"
        " \"setName\": \"rs_0.a-b\", \"hosts\": [\"a.b:27017\", \"[::1]:1\"]}",
        "{\"payload\": {\"$binary\": {\"base64\": \"cj14LHM9eSxpPTEwMDAwMDA=\", \"subType\": "
        "\"00\"}}}",
    };
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        assert_true(accepts(replies[i]));
        assert_string_equal(why, "");
    }
}

TEST(fields_that_would_end_the_process_are_refused) {
    static const char *const replies[][2] = {
        {"{\"ok\": 0, \"code\": 0}", "its code is 0"},
        {"{\"ok\": 0}", "its ok is not 1, and it has no error"},
        {"{\"ok\": 1, \"n\": 1, \"ok\": 0}", "its ok is not 1"},
        {"{\"ok\": {\"$numberDouble\": \"NaN\"}}", "its ok is not 1"},
        {"{\"ok\": \"1\", \"code\": \"x\", \"errmsg\": 5}", "its ok is not 1"},
        {"{\"code\": 0}", "its code is 0"},
        {"{\"ok\": 1, \"code\": 0}", "its code is 0"},
        {"{\"ok\": 0, \"code\": 13, \"code\": 0}", "its code is 0"},
        {"{\"ok\": 0, \"code\": 0.5}", "its code is 0.5"},
        {"{\"ok\": 0, \"code\": {\"$numberDouble\": \"NaN\"}}", "nan"},
        {"{\"ok\": 0, \"code\": {\"$numberLong\": \"4294967296\"}}", "its code is 4294967296"},
        {"{\"ok\": 0, \"writeConcernError\": {\"code\": 0}}", "its writeConcernError.code is 0"},
        {"{\"ok\": 1, \"speculativeAuthenticate\": 5}",
         "speculativeAuthenticate is not a document"},
        {"{\"ok\": 1, \"speculativeAuthenticate\": []}",
         "speculativeAuthenticate is not a document"},
        {"{\"ok\": 1, \"speculativeAuthenticate\": null}",
         "speculativeAuthenticate is not a document"},
        {"{\"writeErrors\": [{\"errmsg\": 5}]}", "errmsg of its writeErrors"},
        {"{\"writeErrors\": [{\"index\": 5.5}]}", "index of its writeErrors is not an integer"},
        {"{\"writeErrors\": 5}", "writeErrors are not an array"},
        {"{\"writeConcernError\": 5}", "writeConcernError is not a document"},
        {"{\"errorLabels\": 5}", "errorLabels are not an array"},
        {"{\"maxWireVersion\": 9, \"maxWriteBatchSize\": 0}", "its maxWriteBatchSize is 0"},
        {"{\"compression\": [\"zlib\", 5]}", "compression contains a value that is not a string"},
        {"{\"topologyVersion\": {\"processId\": 5}}", "the processId of its topologyVersion"},
        {"{\"cursor\": {\"id\": 5, \"firstBatch\": []}}", "its cursor has no ns"},
        {"{\"cursor\": {\"ns\": 5}}", "the ns of its cursor"},
        {"{\"cursor\": {\"ns\": \"a\"}}", "the ns of its cursor"},
        {"{\"cursor\": {\"ns\": \"a.\"}}", "the ns of its cursor"},
        {"{\"cursor\": {\"ns\": \"a\\u0000b.c\"}}", "the ns of its cursor"},
        {"{\"cursor\": {\"nextBatch\": {}}}", "the nextBatch of its cursor is not an array"},
        {"{\"cursor\": {\"firstBatch\": [{}, 5]}}", "firstBatch of its cursor contains a value"},
        {"{\"maxWireVersion\": 9, \"hosts\": [\"a:1?tls=false\"]}", "is not HOST:PORT"},
        {"{\"hosts\": [\"a:1,b:1\"]}", "is not HOST:PORT"},
        {"{\"hosts\": [\"[::.]:1\"]}", "is not HOST:PORT"},
        /* r=x,s=y,i=1000001 and i=2147483647x */
        {"{\"payload\": {\"$binary\": {\"base64\": \"cj14LHM9eSxpPTEwMDAwMDE=\", \"subType\": "
         "\"00\"}}}",
         "SCRAM iterations"},
        /* r=x,s and v */
        {"{\"payload\": {\"$binary\": {\"base64\": \"cj14LHM=\", \"subType\": \"00\"}}}",
         "ends in an attribute without a value"},
        {"{\"speculativeAuthenticate\": {\"payload\": {\"$binary\": {\"base64\": \"dg==\","
         " \"subType\": \"00\"}}}}",
         "ends in an attribute without a value"},
    };
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        assert_false(accepts(replies[i][0]));
        assert_contains(why, replies[i][1]);
    }
}

/* The driver reads the last of two fields with one name, other readers the first. */
TEST(each_of_two_fields_with_one_name_is_checked) {
    static const char *const replies[][2] = {
        {"{\"maxMessageSizeBytes\": 48000000, \"maxMessageSizeBytes\": 100}",
         "its maxMessageSizeBytes is 100"},
        {"{\"maxMessageSizeBytes\": 100, \"maxMessageSizeBytes\": 48000000}",
         "its maxMessageSizeBytes is 100"},
        {"{\"hosts\": [\"a:1\"], \"hosts\": [\"a:1?tls=false\"]}", "is not HOST:PORT"},
        {"{\"setName\": \"a\", \"setName\": \"a/b\"}", "is not a name of a replica set"},
        {"{\"cursor\": {\"ns\": \"a.b\", \"ns\": 5}}", "the ns of its cursor"},
        {"{\"cursor\": {}, \"cursor\": 5}", "its cursor is not a document"},
    };
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        assert_false(accepts(replies[i][0]));
        assert_contains(why, replies[i][1]);
    }
}

/* Documents in documents, or in the scopes of code. */
TEST(levels_are_limited) {
    uint8_t message[16384] = {0};
    for (int in_code = 0; in_code <= 1; in_code++) {
        bson_t *body = bson_new();
        for (int level = 2; level <= 251; level++) {
            bson_t *outer = bson_new();
            if (in_code)
                assert_true(bson_append_code_with_scope(outer, "a", 1, "", body));
            else
                assert_true(bson_append_document(outer, "a", 1, body));
            BSON_APPEND_INT32(outer, "ok", 1);
            bson_destroy(body);
            body = outer;
            size_t length = HEADER + 5 + body->len;
            put(message, (uint32_t)length);
            put(message + 12, 2013);
            assert_true(length <= sizeof message);
            memcpy(message + HEADER + 5, bson_get_data(body), body->len);
            assert_true(sl_message_check(message, length, why) == (level <= 250));
        }
        bson_destroy(body);
        assert_contains(why, "deeper than 250 levels");
    }
}

/* The driver compares each label with all before it: a message of 48 MB would take it hours. */
TEST(labels_of_errors_are_limited) {
    static uint8_t message[16384];
    bson_t body = BSON_INITIALIZER, labels;
    BSON_APPEND_ARRAY_BEGIN(&body, "errorLabels", &labels);
    for (int i = 0; i <= 1000; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_UTF8(&labels, key, "");
    }
    bson_append_array_end(&body, &labels);
    assert_true(HEADER + 5 + body.len <= sizeof message);
    put(message, HEADER + 5 + body.len);
    put(message + 12, 2013);
    memcpy(message + HEADER + 5, bson_get_data(&body), body.len);
    assert_false(sl_message_check(message, HEADER + 5 + body.len, why));
    assert_contains(why, "its errorLabels are more than 1000");
    bson_destroy(&body);
}

/* Each byte of the lengths and terminators is changed: no such message may be accepted. */
TEST(lengths_and_terminators_are_checked) {
    uint8_t message[512];
    const size_t length = message_of("{\"a\": {\"b\": [{}]}}", message);
    assert_true(sl_message_check(message, length, why));
    for (size_t at = HEADER + 5; at < length; at++) {
        uint8_t right = message[at];
        bool is_key = right == 'a' || right == 'b' || right == '0';
        message[at] ^= 0x81;
        assert_true(is_key || !sl_message_check(message, length, why));
        message[at] = right;
    }
    for (size_t cut = 0; cut < length; cut++)
        assert_false(sl_message_check(message, cut, why));
    for (size_t at = HEADER; at < HEADER + 5; at += 4) { /* a checksum; the kind of the section */
        message[at] ^= 1;
        assert_false(sl_message_check(message, length, why));
        message[at] ^= 1;
    }
    for (uint32_t wrong = INT32_MAX; wrong; wrong = wrong == INT32_MAX ? UINT32_MAX : 0) {
        put(message + HEADER + 5, wrong);
        assert_false(sl_message_check(message, length, why));
    }
}

TEST(a_message_belongs_to_the_request) {
    static const uint32_t others[][2] = {{6, 2013}, {8, 2013}, {7, 1}, {7, 2012}, {7, 0}};
    uint8_t message[512];
    message_of("{\"ok\": 1}", message);
    put(message + 4, 99); /* the server's own number of the message */
    put(message + 8, 7);
    assert_true(sl_message_answers(message, 7, 2013, why));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(sl_message_answers(message, others[i][0], others[i][1], why));
    assert_contains(why, "of the kind 2013 for request 7, not of the kind 0 for request 7");
}

TEST(compressed_messages_are_expanded_to_the_declared_size) {
    uint8_t message[512], packed[1024], *plain;
    const size_t length = message_of("{\"a\": \"aaaaaaaaaaaaaaaaaaaaaaaa\", \"ok\": 1}", message);
    const size_t size = length - HEADER;
    memcpy(packed, message, HEADER);
    put(packed + 12, 2012);
    put(packed + HEADER, 2013);
    for (uint8_t compressor = 0; compressor <= 4; compressor++) {
        uLongf used = sizeof packed - HEADER - 9;
        packed[HEADER + 8] = compressor;
        if (compressor == 2)
            assert_int_equal(compress(packed + HEADER + 9, &used, message + HEADER, size), Z_OK);
        else if (compressor == 3)
            used = ZSTD_compress(packed + HEADER + 9, used, message + HEADER, size, 1);
        else if (compressor == 1) { /* a literal with a length of one byte */
            packed[HEADER + 9] = (uint8_t)size;
            packed[HEADER + 10] = 60 << 2;
            packed[HEADER + 11] = (uint8_t)(size - 1);
            memcpy(packed + HEADER + 12, message + HEADER, size);
            used = size + 3;
        } else
            memcpy(packed + HEADER + 9, message + HEADER, used = size);
        for (int wrong = -1; wrong <= 2; wrong++) { /* 2: another byte after the compressed data */
            size_t found = 0, more = wrong == 2;
            put(packed + HEADER + 4, (uint32_t)((int)size + wrong % 2));
            bool ok = sl_message_expand(packed, HEADER + 9 + used + more, &plain, &found, why);
            assert_true(ok == (wrong == 0 && compressor < 4));
            if (ok) {
                assert_int_equal(found, length);
                assert_memory_equal(plain, message, length);
            }
            free(plain);
        }
    }
}

static void *close_one(void *listener) {
    close(accept(*(const int *)listener, NULL, NULL));
    return NULL;
}

/* During a long command the name of the server is not resolved again, which may take any time. */
TEST(a_server_is_asked_at_the_address_of_its_connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    const mongoc_host_list_t host = {.host = "unknown.invalid", .port = 1, .family = AF_UNSPEC};
    mongoc_uri_t *uri = mongoc_uri_new("mongodb://unknown.invalid:1");
    pthread_t thread;
    assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(connect(one, (struct sockaddr *)&address, length), 0);
    close(accept(listener, NULL, NULL));
    pthread_create(&thread, NULL, close_one, (void *)(uintptr_t)&listener);
    assert_true(sl_server_answers(uri, &host, one));
    pthread_join(thread, NULL);
    close(listener);
    assert_false(sl_server_answers(uri, &host, one));
    close(one);
    mongoc_uri_destroy(uri);
}
