/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON checker, compared with a recursive validation of the same bytes and with libbson. */
#include "unit.h"

#include "bson/bson_check.h"
#include "bson/bson_writer.h"

#include "bson_reference.h"

/* A document with an element of every type. Valid until the end of the test. */
static bson_t *make_all_types(void) {
    bson_t *d = bson_new(), child, array, scope = BSON_INITIALIZER;
    bson_oid_t oid;
    bson_decimal128_t decimal = {.high = 0x3040000000000000u, .low = 7};
    bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
    BSON_APPEND_DOUBLE(d, "double", 1.5);
    BSON_APPEND_UTF8(d, "text", "a text of more than thirty-two bytes, to leave the first loop");
    BSON_APPEND_UTF8(d, "other_text",
                     "Gr\xC3\xBC\xC3\x9F"
                     "e aus K\xC3\xB6ln, \xE2\x82\xAC \xF0\x9F\x98\x80");
    bson_append_utf8(d, "nul", -1, "a\0b", 3);
    BSON_APPEND_DOCUMENT_BEGIN(d, "document", &child);
    BSON_APPEND_INT32(&child, "_id", 1);
    bson_append_document_end(d, &child);
    BSON_APPEND_ARRAY_BEGIN(d, "array", &array);
    BSON_APPEND_NULL(&array, "0");
    BSON_APPEND_BOOL(&array, "1", false);
    bson_append_array_end(d, &array);
    BSON_APPEND_BINARY(d, "binary", BSON_SUBTYPE_BINARY, (const uint8_t *)"abc", 3);
    BSON_APPEND_BINARY(d, "old", BSON_SUBTYPE_BINARY_DEPRECATED, (const uint8_t *)"abc", 3);
    BSON_APPEND_UNDEFINED(d, "undefined");
    BSON_APPEND_OID(d, "_id", &oid);
    BSON_APPEND_BOOL(d, "bool", true);
    BSON_APPEND_DATE_TIME(d, "date", 12345);
    BSON_APPEND_NULL(d, "null");
    BSON_APPEND_REGEX(d, "regex", "^a.*\xC3\xBC", "im");
    BSON_APPEND_DBPOINTER(d, "pointer", "db.c", &oid);
    BSON_APPEND_CODE(d, "code", "f()");
    BSON_APPEND_SYMBOL(d, "symbol", "s");
    BSON_APPEND_INT32(&scope, "x", 1);
    BSON_APPEND_CODE_WITH_SCOPE(d, "scope", "f(x)", &scope);
    BSON_APPEND_INT32(d, "int32", -1);
    BSON_APPEND_TIMESTAMP(d, "time", 1, 2);
    BSON_APPEND_INT64(d, "int64", INT64_MIN);
    BSON_APPEND_DECIMAL128(d, "decimal", &decimal);
    BSON_APPEND_MINKEY(d, "min");
    BSON_APPEND_MAXKEY(d, "a_key_of_more_than_eight_bytes");
    BSON_APPEND_INT32(d, "", 1);
    bson_destroy(&scope);
    return unit_keep_bson(d);
}

static sl_bson_headers *predicting; /* NULL: no headers of earlier documents are used */

/* Checks a copy that is followed by bytes of one value, in an allocation of exactly its size. */
static sl_bson_verdict check(const uint8_t *bytes, size_t available, uint8_t after,
                             sl_bson_facts *facts) {
    uint8_t *copy = malloc(available + SL_BSON_SLACK);
    memcpy(copy, bytes, available);
    memset(copy + available, after, SL_BSON_SLACK);
    sl_bson_verdict verdict = sl_bson_check(copy, available, facts);
    if (predicting) {
        sl_bson_facts other;
        assert_int_equal(sl_bson_check_next(predicting, copy, available, &other), verdict);
        assert_int_equal(other.length, facts->length);
        assert_int_equal(other.id_at, facts->id_at);
        assert_int_equal(other.id_end, facts->id_end);
        assert_int_equal(other.id_twice, facts->id_twice);
        assert_int_equal(other.empty_timestamp, facts->empty_timestamp);
        assert_int_equal(other.old_binary, facts->old_binary);
        assert_int_equal(other.wrong_at, facts->wrong_at);
        assert_ptr_equal(other.why, facts->why);
    }
    free(copy);
    return verdict;
}

/* Runs a test with headers of earlier documents; each result must be that without them. */
static void with_predictions(void (*test)(void **state), void **state) {
    predicting = unit_keep(malloc(sizeof *predicting));
    sl_bson_headers_init(predicting, SL_BSON_HEADERS, 0);
    test(state);
    predicting = NULL;
}

static bool libbson_accepts(const uint8_t *bytes, size_t length) {
    bson_t view;
    return bson_init_static(&view, bytes, length) &&
           bson_validate(&view, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL);
}

TEST(every_type_is_valid_and_every_truncation_is_noticed) {
    bson_t *d = make_all_types();
    const uint8_t *bytes = bson_get_data(d);
    sl_bson_facts facts;
    assert_int_equal(check(bytes, d->len, 0, &facts), SL_BSON_VALID);
    assert_int_equal(facts.length, d->len);
    for (size_t available = 0; available < d->len; available++) {
        for (unsigned after = 0; after < 256; after += 51) {
            sl_bson_verdict verdict = check(bytes, available, (uint8_t)after, &facts);
            assert_int_equal(verdict, SL_BSON_MORE);
        }
    }
}

TEST(every_wrong_byte_is_judged_as_by_the_reference) {
    bson_t *d = make_all_types();
    uint8_t *bytes = unit_keep(malloc(d->len));
    unsigned accepted = 0, refused = 0, not_utf8 = 0;
    memcpy(bytes, bson_get_data(d), d->len);
    for (size_t i = 4; i < d->len; i++) {
        uint8_t was = bytes[i];
        for (unsigned value = 0; value < 256; value++) {
            sl_bson_facts facts;
            bytes[i] = (uint8_t)value;
            bool valid = check(bytes, d->len, 0xFF, &facts) == SL_BSON_VALID;
            assert_int_equal(valid, reference_accepts(bytes, d->len));
            assert_true(!valid || facts.not_utf8 || facts.old_binary ||
                        libbson_accepts(bytes, d->len));
            not_utf8 += valid && facts.not_utf8;
            accepted += valid;
            refused += !valid;
        }
        bytes[i] = was;
    }
    assert_true(accepted > 10000 && refused > 10000 && not_utf8 > 1000);
}

TEST(the_id_is_found_only_at_the_top) {
    bson_t *d = make_all_types();
    sl_bson_facts facts;
    bson_iter_t iter;
    assert_int_equal(check(bson_get_data(d), d->len, 0, &facts), SL_BSON_VALID);
    assert_true(bson_iter_init_find(&iter, d, "_id"));
    assert_int_equal(facts.id_at, bson_iter_offset(&iter));
    assert_int_equal(facts.id_end - facts.id_at, 1 + 4 + 12);
    assert_false(facts.id_twice);
    assert_int_equal(facts.empty_timestamp, 0);
    BSON_APPEND_UTF8(d, "_id", "again");
    BSON_APPEND_TIMESTAMP(d, "now", 0, 0);
    assert_int_equal(check(bson_get_data(d), d->len, 0, &facts), SL_BSON_VALID);
    assert_true(facts.id_twice);
    assert_string_equal((const char *)bson_get_data(d) + facts.empty_timestamp + 1, "now");
    const bson_t *other = unit_json("{\"_idx\": 1, \"x_id\": 1, \"a\": {\"_id\": 1, \"t\": "
                                    "{\"$timestamp\": {\"t\": 0, \"i\": 0}}}}");
    assert_int_equal(check(bson_get_data(other), other->len, 0, &facts), SL_BSON_VALID);
    assert_int_equal(facts.id_at, 0);
    assert_int_equal(facts.empty_timestamp, 0);
    const bson_t *whole = unit_json("{\"_id\": {\"a\": 1}, \"b\": 2}");
    assert_int_equal(check(bson_get_data(whole), whole->len, 0, &facts), SL_BSON_VALID);
    assert_int_equal(facts.id_at, 4);
    assert_int_equal(facts.id_end, 4 + 1 + 4 + 12);
}

TEST(old_binary_data_may_have_any_inner_length) {
    static const uint8_t lengths[] = {0, 9, 3};
    for (size_t i = 0; i < sizeof lengths; i++) {
        sl_bson_facts facts;
        bson_t *d = make_all_types();
        bson_iter_t iter;
        assert_true(bson_iter_init_find(&iter, d, "old"));
        uint8_t *at = (uint8_t *)iter.raw + iter.off + 1 + sizeof "old" + 5;
        assert_int_equal(at[0], 3);
        at[0] = lengths[i];
        assert_int_equal(check(bson_get_data(d), d->len, 0, &facts), SL_BSON_VALID);
        assert_int_equal(facts.old_binary, lengths[i] != 3);
    }
}

TEST(nesting_has_a_limit) {
    for (unsigned levels = SL_BSON_NESTING_MAX; levels <= SL_BSON_NESTING_MAX + 1; levels++) {
        bson_t *d = unit_keep_bson(bson_new());
        for (unsigned i = 0; i < levels; i++) {
            bson_t *outer = unit_keep_bson(bson_new());
            BSON_APPEND_DOCUMENT(outer, "a", d);
            d = outer;
        }
        sl_bson_facts facts;
        assert_int_equal(check(bson_get_data(d), d->len, 0, &facts),
                         levels <= SL_BSON_NESTING_MAX ? SL_BSON_VALID : SL_BSON_INVALID);
    }
}

TEST(a_document_has_16_mib_at_most) {
    size_t length = SL_BSON_DOCUMENT_MAX;
    uint8_t *bytes = unit_keep(calloc(1, length + 1 + SL_BSON_SLACK));
    for (size_t more = 0; more <= 1; more++) {
        sl_bson_facts facts;
        uint32_t all = (uint32_t)(length + more), text = (uint32_t)(length + more - 4 - 3 - 4 - 1);
        memset(bytes, 'x', length + 1);
        memcpy(bytes, &all, 4);
        memcpy(bytes + 4,
               "\x02"
               "a",
               3);
        memcpy(bytes + 7, &text, 4);
        bytes[all - 1] = bytes[all - 2] = 0;
        assert_int_equal(sl_bson_check(bytes, all, &facts), more ? SL_BSON_INVALID : SL_BSON_VALID);
        assert_int_equal(facts.wrong_at, 0); /* its length */
    }
}

/* The bytes at the end of a document, or after a truncated one, look like a predicted element. */
TEST(an_element_at_the_end_of_a_document) {
    static const uint8_t like_y[] = {0x10, 'y', 0, 2, 0, 0, 0};
    sl_bson_headers *headers = unit_keep(malloc(sizeof *headers));
    sl_bson_facts facts;
    uint8_t bytes[100] = {0};
    const bson_t *two = unit_json("{\"x\": 1, \"y\": 2}"), *one = unit_json("{\"x\": 1}");
    const bson_t *inner = unit_json("{\"d\": {\"x\": 1, \"y\": 2}}");
    sl_bson_headers_init(headers, SL_BSON_HEADERS, 0);
    memcpy(bytes, bson_get_data(two), two->len);
    assert_int_equal(sl_bson_check_next(headers, bytes, two->len, &facts), SL_BSON_VALID);
    memcpy(bytes, bson_get_data(one), one->len);
    memcpy(bytes + one->len - 1, like_y, sizeof like_y);
    assert_int_equal(sl_bson_check_next(headers, bytes, one->len - 1, &facts), SL_BSON_MORE);
    memcpy(bytes, bson_get_data(inner), inner->len);
    assert_int_equal(sl_bson_check_next(headers, bytes, inner->len, &facts), SL_BSON_VALID);
    bytes[7] = (uint8_t)one->len; /* the inner document's terminator is now the type of `y` */
    assert_int_equal(sl_bson_check_next(headers, bytes, inner->len, &facts), SL_BSON_INVALID);
    assert_string_equal(facts.why, "a document has no NUL at its end");
}

TEST(predictions_change_no_result) {
    with_predictions(every_type_is_valid_and_every_truncation_is_noticed, state);
    with_predictions(every_wrong_byte_is_judged_as_by_the_reference, state);
    with_predictions(the_id_is_found_only_at_the_top, state);
    with_predictions(nesting_has_a_limit, state);
}

/* More keys than the table has places, in two orders, and with one of every three missing. */
TEST(many_keys_are_checked) {
    sl_bson_facts facts;
    predicting = unit_keep(malloc(sizeof *predicting));
    sl_bson_headers_init(predicting, SL_BSON_HEADERS, 0);
    for (unsigned round = 0; round < 9; round++) {
        bson_t *d = unit_keep_bson(bson_new());
        for (unsigned i = 0; i < 3 * SL_BSON_HEADERS; i++) {
            char key[40];
            unsigned number = round % 2 ? i : 3 * SL_BSON_HEADERS - i;
            snprintf(key, sizeof key, "%0*u", 1 + (int)(number % 35), number);
            if (round < 3 || i % 3 != round % 3)
                BSON_APPEND_INT32(d, key, (int)i);
        }
        assert_int_equal(check(bson_get_data(d), d->len, 0, &facts), SL_BSON_VALID);
    }
    predicting = NULL;
}

TEST(the_quick_test_accepts_every_document) {
    bson_t *d = make_all_types(), empty = BSON_INITIALIZER;
    assert_true(sl_bson_may_begin(bson_get_data(d)));
    assert_true(sl_bson_may_begin(bson_get_data(&empty)));
    assert_false(sl_bson_may_begin((const uint8_t *)"\x05\0\0\0\x01"));
    assert_false(sl_bson_may_begin((const uint8_t *)"\x06\0\0\0\0"));
    assert_false(sl_bson_may_begin((const uint8_t *)"\0\0\0\0\0"));
    assert_false(sl_bson_may_begin((const uint8_t *)"\x20\0\0\x02\x10"));
    assert_false(sl_bson_may_begin((const uint8_t *)"\x20\0\0\0\x20"));
}
