/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON writer, read back by libbson. An error here would be a document that the server refuses,
 * or that has other values than the source. */
#include "parse_text.h"

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"

static void assert_json(const uint8_t *bytes, const uint8_t *end, const char *expected) {
    bson_t document;
    assert_true(bson_init_static(&document, bytes, (size_t)(end - bytes)));
    assert_true(bson_validate(&document, BSON_VALIDATE_UTF8, NULL));
    char *json = bson_as_canonical_extended_json(&document, NULL);
    assert_same_json(json, expected);
    bson_free(json);
}

TEST(every_kind_of_value) {
    uint8_t buffer[512];
    uint8_t *to = sl_bson_begin_with_id(buffer, -5);
    assert_int_equal(to - buffer, SL_BSON_HEAD_BYTES);
    to = sl_bson_put_int32(sl_bson_put_key(to, SL_BSON_INT32, "i"), INT32_MIN);
    to = sl_bson_put_int64(sl_bson_put_key(to, SL_BSON_INT64, "l"), INT64_MAX);
    to = sl_bson_put_double(sl_bson_put_key(to, SL_BSON_DOUBLE, "d"), -0.5);
    to = sl_bson_put_int64(sl_bson_put_key(to, SL_BSON_DATE, "t"), -1);
    char padded[64] = "caf\xC3\xA9";
    to = sl_bson_put_text(sl_bson_put_key(to, SL_BSON_TEXT, "s"), padded, 5);
    uint8_t *inner = sl_bson_put_key(to, SL_BSON_DOCUMENT, "o");
    to = sl_bson_end(inner, sl_bson_begin(inner));
    to = sl_bson_put_key(to, SL_BSON_NULL, "n");
    to = sl_bson_end(buffer, to);
    assert_json(buffer, to,
                "{ \"_id\" : { \"$numberLong\" : \"-5\" }, "
                "\"i\" : { \"$numberInt\" : \"-2147483648\" }, "
                "\"l\" : { \"$numberLong\" : \"9223372036854775807\" }, "
                "\"d\" : { \"$numberDouble\" : \"-0.5\" }, "
                "\"t\" : { \"$date\" : { \"$numberLong\" : \"-1\" } }, \"s\" : \"caf\xC3\xA9\", "
                "\"o\" : {  }, \"n\" : null }");
}

/* Texts are copied vector by vector: each length must be copied completely, and no byte beyond the
 * slack may be written. */
TEST(texts_of_every_length) {
    enum { LONGEST = 200, ROOM = LONGEST + 32 };
    char text[ROOM];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 26);
    for (size_t length = 0; length <= LONGEST; length++) {
        uint8_t buffer[ROOM + 64];
        memset(buffer, 0xEE, sizeof buffer);
        uint8_t *to = sl_bson_put_key(sl_bson_begin(buffer), SL_BSON_TEXT, "s");
        to = sl_bson_put_text(to, text, length);
        to = sl_bson_end(buffer, to);
        bson_t document;
        assert_true(bson_init_static(&document, buffer, (size_t)(to - buffer)));
        bson_iter_t iter;
        uint32_t found;
        assert_true(bson_iter_init_find(&iter, &document, "s"));
        const char *value = bson_iter_utf8(&iter, &found);
        assert_int_equal(found, length);
        assert_memory_equal(value, text, length);
        for (const uint8_t *p = to + SL_BSON_SLACK; p < buffer + sizeof buffer; p++)
            assert_int_equal(*p, 0xEE);
    }
}

TEST(prefixes_of_every_length) {
    char key[100];
    for (size_t length = 0; length < 70; length++) {
        memset(key, 'k', length);
        key[length] = '\0';
        size_t steps = (length + 2 + SL_BSON_PREFIX_STEP - 1) / SL_BSON_PREFIX_STEP;
        /* exactly the room: sanitizers detect writes beyond it */
        uint8_t *prefix = unit_keep(calloc(steps, SL_BSON_PREFIX_STEP));
        uint32_t made = (uint32_t)(sl_bson_put_key(prefix, SL_BSON_INT32, key) - prefix);
        assert_int_equal(made, length + 2);
        uint8_t buffer[160], expected[160];
        uint8_t *to = sl_bson_put_prefix(buffer, prefix, made);
        uint8_t *end = sl_bson_put_key(expected, SL_BSON_INT32, key);
        assert_int_equal(to - buffer, end - expected);
        assert_memory_equal(buffer, expected, made);
    }
}

/* The shard key "distribution" of a document without it was the value of its field "placing". */
TEST(fields_of_users_have_no_earlier_names) {
    bson_iter_t value;
    bson_t *document = BCON_NEW("placing", BCON_INT32(5));
    assert_false(sl_look_set(document, "distribution", &value));
    assert_true(sl_look_number(document, "distribution") == 5); /* of an earlier run.json */
    bson_destroy(document);
}
