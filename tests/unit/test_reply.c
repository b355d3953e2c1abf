/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluation of the driver's replies to inserts. An error here would count documents as loaded
 * that were not inserted, or reject good records because of a temporary error of the server. */
#include <mongoc/mongoc.h>

#include "send/reply.h"
#include "unit.h"

static sl_error error;
static uint32_t inserted;

/* Evaluates a reply (JSON) to an insert of `count` documents. `why`: the driver's error, or
 * NULL. */
static sl_verdict judge(const char *json, uint32_t count, const bson_error_t *why) {
    error = (sl_error){0};
    inserted = UINT32_MAX;
    const sl_reply reply = {.ok = !why, .body = unit_json(json), .why = why, .count = count};
    sl_verdict verdict = sl_reply_judge(&reply, &inserted, &error);
    assert_int_equal(error.code, verdict == SL_REPLY_COMPLETE ? SL_EXIT_OK : SL_EXIT_CLUSTER);
    if (verdict == SL_REPLY_COMPLETE)
        assert_true(inserted <= count);
    else
        assert_int_equal(inserted, UINT32_MAX);
    return verdict;
}

static const bson_error_t of_server = {
    .domain = MONGOC_ERROR_SERVER, .code = 121, .message = "the first one of them"};

#define ERRORS(n, list) "{\"insertedCount\": " #n ", \"writeErrors\": [" list "]}"
#define ERROR(index, code) "{\"index\": " #index ", \"code\": " #code ", \"errmsg\": \"words\"}"

TEST(consistent_replies_are_complete) {
    assert_int_equal(judge("{\"insertedCount\": 5}", 5, NULL), SL_REPLY_COMPLETE);
    assert_int_equal(inserted, 5);
    assert_int_equal(judge(ERRORS(3, ERROR(0, 121) "," ERROR(4, 11000)), 5, &of_server),
                     SL_REPLY_COMPLETE);
    assert_int_equal(inserted, 3);
    assert_int_equal(judge(ERRORS(0, ERROR(1, 121) "," ERROR(0, 16755)), 2, &of_server),
                     SL_REPLY_COMPLETE);
    assert_int_equal(inserted, 0);
}

TEST(inconsistent_replies_are_not_believed) {
    static const char *const numbers[] = {
        "{\"insertedCount\": 0}",
        "{\"insertedCount\": 4}",
        "{\"insertedCount\": 6}",
        "{\"insertedCount\": -5}",
        "{\"insertedCount\": \"5\"}",
        "{}",
        "{\"insertedCount\": {\"$numberLong\": \"4294967301\"}}",
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_int_equal(judge(numbers[i], 5, NULL), SL_REPLY_UNKNOWN);
        assert_non_null(strstr(error.message, "does not add up"));
    }
    static const char *const lists[] = {
        ERRORS(5, ERROR(0, 121)),                   /* too many */
        ERRORS(3, ERROR(0, 121)),                   /* too few */
        ERRORS(3, ERROR(0, 121) "," ERROR(0, 121)), /* the same document twice */
        ERRORS(4, ERROR(5, 121)),                   /* index out of range */
        ERRORS(4, ERROR(-1, 121)),
        ERRORS(4, ERROR(4294967296, 121)),
        ERRORS(4, "{\"index\": \"0\", \"code\": 121}"),
        ERRORS(4, "{\"code\": 121}"),
        ERRORS(4, "7"),
        ERRORS(4, "{\"index\": 0, \"errmsg\": \"no code\"}"),
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        assert_int_equal(judge(lists[i], 5, &of_server), SL_REPLY_UNKNOWN);
}

TEST(an_error_that_is_not_about_a_document_decides) {
    assert_int_equal(judge(ERRORS(3, ERROR(0, 121) "," ERROR(4, 371)), 5, &of_server),
                     SL_REPLY_UNKNOWN);
    assert_non_null(strstr(error.message, "refused 1 of 5 documents: words (code 371)"));
    assert_int_equal(
        judge(ERRORS(2, ERROR(0, 371) "," ERROR(1, 121) "," ERROR(4, 13)), 5, &of_server),
        SL_REPLY_FINAL);
    assert_non_null(strstr(error.message, "(code 13)"));
    assert_int_equal(judge(ERRORS(3, ERROR(0, 13548) "," ERROR(1, 121)), 5, &of_server),
                     SL_REPLY_TOO_LARGE);
    assert_int_equal(judge(ERRORS(0, ERROR(0, 6) "," ERROR(1, 6)), 2, &of_server), SL_REPLY_NONE);
    assert_int_equal(judge(ERRORS(0, ERROR(0, 6) "," ERROR(1, 91)), 2, &of_server),
                     SL_REPLY_UNKNOWN);
    assert_int_equal(judge(ERRORS(4, ERROR(0, 0)), 5, &of_server), SL_REPLY_UNKNOWN);
}

/* A code that is in no list is about the document if the server repeats it for that document. */
TEST(a_code_that_is_not_known_is_doubtful) {
    static const struct {
        const char *json;
        bool doubtful;
    } rows[] = {
        {ERRORS(0, ERROR(0, 2)), true},      {ERRORS(0, ERROR(0, 9)), true},
        {ERRORS(0, ERROR(0, 999999)), true}, {ERRORS(0, ERROR(0, 10334)), true},
        {ERRORS(0, ERROR(0, 121)), false},   {ERRORS(0, ERROR(0, 11000)), false},
        {ERRORS(0, ERROR(0, 371)), false},   {ERRORS(0, ERROR(0, 14031)), false},
        {ERRORS(0, ERROR(0, 13)), false},    {ERRORS(0, ERROR(0, 0)), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bson_iter_t errors;
        sl_write_error one;
        assert_true(sl_reply_errors(unit_json(rows[i].json), &errors));
        assert_true(sl_reply_next_error(&errors, &one));
        assert_int_equal(one.doubtful, rows[i].doubtful);
        if (rows[i].doubtful)
            assert_int_equal(judge(rows[i].json, 1, &of_server), SL_REPLY_COMPLETE);
    }
    assert_int_equal(judge(ERRORS(4, ERROR(0, 999999)), 5, &of_server), SL_REPLY_COMPLETE);
    assert_int_equal(judge(ERRORS(3, ERROR(0, 999999)), 5, &of_server), SL_REPLY_UNKNOWN);
    assert_int_equal(judge(ERRORS(3, ERROR(0, 2) "," ERROR(1, 112)), 5, &of_server),
                     SL_REPLY_UNKNOWN);
}

TEST(a_command_that_may_be_refused_because_of_a_document) {
    static const struct {
        bson_error_t why;
        uint32_t count;
        bool may;
    } rows[] = {
        {{.domain = MONGOC_ERROR_SERVER, .code = 2}, 5, true},
        {{.domain = MONGOC_ERROR_SERVER, .code = 61}, 5, true},
        {{.domain = MONGOC_ERROR_SERVER, .code = 999999}, 1, true},
        {{.domain = MONGOC_ERROR_SERVER, .code = 10334}, 1, true},
        {{.domain = MONGOC_ERROR_SERVER, .code = 10334}, 2, false}, /* perhaps their number */
        {{.domain = MONGOC_ERROR_SERVER, .code = 10107}, 1, false},
        {{.domain = MONGOC_ERROR_SERVER, .code = 13}, 1, false},
        {{.domain = MONGOC_ERROR_STREAM, .code = 2}, 1, false},
    };
    const bson_t *body = unit_json("{\"insertedCount\": 0}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_reply reply = {.body = body, .why = &rows[i].why, .count = rows[i].count};
        assert_int_equal(sl_reply_refuses_command(&reply), rows[i].may);
    }
    const sl_reply named = {
        .body = unit_json(ERRORS(0, ERROR(0, 2))), .why = &of_server, .count = 1};
    assert_false(sl_reply_refuses_command(&named));
}

TEST(a_code_that_is_always_about_a_document) {
    assert_true(sl_reply_is_of_document(61));
    assert_true(sl_reply_is_of_document(15));
    assert_false(sl_reply_is_of_document(11000)); /* another loader may store it now */
    assert_false(sl_reply_is_of_document(10334));
    assert_false(sl_reply_is_of_document(82));
    assert_false(sl_reply_is_of_document(13));
    assert_false(sl_reply_is_of_document(999999));
}

TEST(a_write_concern_that_was_not_satisfied) {
    static const bson_error_t why = {.domain = MONGOC_ERROR_WRITE_CONCERN, .code = 64};
    assert_int_equal(judge("{\"insertedCount\": 5, \"writeConcernErrors\": [{\"code\": 64, "
                           "\"errmsg\": \"waited in vain\"}]}",
                           5, &why),
                     SL_REPLY_UNKNOWN);
    assert_non_null(strstr(error.message, "waited in vain"));
    assert_int_equal(judge("{\"insertedCount\": 4, \"writeErrors\": [" ERROR(
                               0, 121) "], "
                                       "\"writeConcernErrors\": [{\"code\": 64}]}",
                           5, &of_server),
                     SL_REPLY_UNKNOWN);
    assert_int_equal(
        judge("{\"insertedCount\": 5, \"writeConcernErrors\": [{\"code\": 100}]}", 5, &why),
        SL_REPLY_FINAL);
    assert_int_equal(judge("{\"insertedCount\": 5, \"writeConcernErrors\": [{\"code\": 64, "
                           "\"errmsg\": \"multiple errors reported : UnsatisfiableWriteConcern: "
                           "Not enough data-bearing nodes at s0 :: and :: "
                           "UnsatisfiableWriteConcern: Not enough data-bearing nodes at s1\"}]}",
                           5, &why),
                     SL_REPLY_FINAL);
    assert_int_equal(judge("{\"insertedCount\": 5, \"writeConcernErrors\": []}", 5, NULL),
                     SL_REPLY_COMPLETE);
}

TEST(errors_of_the_command_and_of_the_connection) {
    static const struct {
        bson_error_t why;
        sl_verdict verdict;
    } rows[] = {
        {{.domain = MONGOC_ERROR_SERVER, .code = 121}, SL_REPLY_UNKNOWN},
        {{.domain = MONGOC_ERROR_SERVER, .code = 10107}, SL_REPLY_UNKNOWN},
        {{.domain = MONGOC_ERROR_SERVER, .code = 999999}, SL_REPLY_UNKNOWN},
        {{.domain = MONGOC_ERROR_SERVER, .code = 13548}, SL_REPLY_TOO_LARGE},
        {{.domain = MONGOC_ERROR_SERVER, .code = 13}, SL_REPLY_FINAL},
        {{.domain = MONGOC_ERROR_SERVER, .code = 2}, SL_REPLY_FINAL},
        {{.domain = MONGOC_ERROR_STREAM, .code = MONGOC_ERROR_STREAM_SOCKET}, SL_REPLY_NONE},
        {{.domain = MONGOC_ERROR_PROTOCOL, .code = 17}, SL_REPLY_NONE},
        {{.domain = MONGOC_ERROR_SERVER_SELECTION, .code = 13053}, SL_REPLY_NONE},
        /* Authentication succeeded when the load began, so this is a server that restarts. */
        {{.domain = MONGOC_ERROR_CLIENT, .code = MONGOC_ERROR_CLIENT_AUTHENTICATE}, SL_REPLY_NONE},
        {{.domain = MONGOC_ERROR_BSON, .code = MONGOC_ERROR_BSON_INVALID}, SL_REPLY_FINAL},
        {{.domain = MONGOC_ERROR_COMMAND, .code = MONGOC_ERROR_COMMAND_INVALID_ARG},
         SL_REPLY_FINAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(judge("{\"insertedCount\": 0}", 5, &rows[i].why), rows[i].verdict);
        /* Independent of the number of inserted documents. */
        assert_int_equal(judge("{\"insertedCount\": 5}", 5, &rows[i].why), rows[i].verdict);
    }
}

/* Some documents of the batch were refused, and the reply to other documents was lost. */
TEST(a_reply_to_part_of_the_batch) {
    static const bson_error_t broken = {.domain = MONGOC_ERROR_STREAM};
    assert_int_equal(judge(ERRORS(2, ERROR(0, 121)), 5, &broken), SL_REPLY_UNKNOWN);
}

TEST(write_errors_are_read_one_by_one) {
    static const char json[] =
        "{\"writeErrors\": ["
        "{\"index\": 3, \"code\": 11000, \"keyPattern\": {\"_id\": 1}, \"errmsg\": \"E11000\"},"
        "{\"index\": 4, \"code\": 11000, \"keyPattern\": {\"a\": 1}, \"errmsg\": \"{ _id: 5 }\"},"
        "{\"index\": 5, \"code\": 11000, \"errmsg\": \"E11000 index: _id_ dup key\"},"
        "{\"index\": 6, \"code\": 11000, \"errmsg\": \"E11000 index: a_1 dup key: { a: 1 }\"},"
        "{\"index\": 7, \"code\": 121, \"keyPattern\": {\"_id\": 1}},"
        "{\"index\": 8, \"code\": 11000, \"errmsg\": \"\"}]}";
    static const bool duplicate[] = {true, false, true, false, false, false};
    bson_iter_t errors;
    sl_write_error one;
    int64_t count = 0;
    assert_true(sl_reply_errors(unit_json(json), &errors));
    for (; sl_reply_next_error(&errors, &one); count++) {
        assert_int_equal(one.index, 3 + count);
        assert_int_equal(one.duplicate_id, duplicate[count]);
        assert_int_equal(one.unexplained, count == 5);
        assert_non_null(one.message);
    }
    assert_int_equal(count, 6);
    static const char *const none[] = {"{}", "{\"writeErrors\": []}", "{\"writeErrors\": 5}"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(sl_reply_errors(unit_json(none[i]), &errors));
}

TEST(the_message_names_the_document) {
    const bson_t *const documents[] = {
        unit_keep_bson(BCON_NEW("_id", BCON_INT64((int64_t)3 << 40 | 77)))};
    const bson_t *body = unit_json(ERRORS(0, ERROR(0, 371)));
    const sl_reply reply = {
        .ok = false, .body = body, .why = &of_server, .documents = documents, .count = 1};
    assert_int_equal(sl_reply_judge(&reply, &inserted, &error), SL_REPLY_UNKNOWN);
    assert_non_null(strstr(error.message, "at byte 77 of its source"));
}

TEST(a_changed_shard_key_rejects_no_document) {
    static const bson_error_t why = {.domain = MONGOC_ERROR_SERVER, .code = 61};
    sl_reply reply = {.why = &why, .count = 1, .mode = SL_MODE_UPSERT};
    sl_modified found;
    reply.body = unit_json("{\"n\": 0, \"nModified\": 0, \"writeErrors\": [" ERROR(0, 61) "]}");
    assert_int_equal(sl_reply_judge_modify(&reply, &found, &error), SL_REPLY_FINAL);
    reply.mode = SL_MODE_UPDATE;
    reply.body = unit_json("{\"n\": 0, \"nModified\": 0, \"writeErrors\": [" ERROR(0, 31025) "]}");
    assert_int_equal(sl_reply_judge_modify(&reply, &found, &error), SL_REPLY_FINAL);
    reply.body = unit_json("{}");
    assert_false(sl_reply_refuses_command(&reply));
    assert_int_equal(sl_reply_judge_modify(&reply, &found, &error), SL_REPLY_FINAL);
}
