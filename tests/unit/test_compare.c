/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of a source's documents with those of the cluster. An error here would report a
 * lost or changed document as loaded, or a stored one as lost. */
#include "send/duplicates.h"
#include "unit.h"

static char findings[2000]; /* the reported findings, in order, like "missing 1 extra 2 " */

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    static const char *const names[] = {"missing", "different", "extra"};
    size_t used = strlen(findings);
    bson_iter_t iter;
    assert_ptr_equal(context, findings);
    assert_int_equal(expected == NULL, finding == SL_EXTRA);
    assert_int_equal(found == NULL, finding == SL_MISSING);
    if (expected) {
        snprintf(findings + used, sizeof findings - used, "%s %lld ", names[finding],
                 (long long)sl_expected_id(expected));
    } else {
        assert_true(bson_iter_init_find(&iter, found, "_id"));
        snprintf(findings + used, sizeof findings - used, "%s %s ", names[finding],
                 BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : "");
        if (!BSON_ITER_HOLDS_UTF8(&iter))
            snprintf(findings + strlen(findings) - 1, sizeof findings - strlen(findings) + 1, "%g ",
                     bson_iter_as_double(&iter));
    }
}

/* The findings when the documents of one JSON array are expected and those of another are found. */
static const char *compare(const char *expected, const char *found) {
    static uint8_t bytes[4000];
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t length;
    size_t used = 0;
    for (assert_true(bson_iter_init(&iter, unit_json(expected))); bson_iter_next(&iter);
         used += length) {
        bson_iter_document(&iter, &length, &data);
        memcpy(bytes + used, data, length);
    }
    findings[0] = '\0';
    sl_comparison comparison = {
        .expected = bytes, .end = bytes + used, .report = on_finding, .context = findings};
    for (assert_true(bson_iter_init(&iter, unit_json(found))); bson_iter_next(&iter);) {
        bson_t document;
        bson_iter_document(&iter, &length, &data);
        assert_true(bson_init_static(&document, data, length));
        sl_compare_found(&comparison, &document);
    }
    sl_compare_end(&comparison);
    assert_null(comparison.held);
    return findings;
}

/* Ids 1, 2, 3, as 64-bit integers. */
#define ID(n) "{\"_id\": {\"$numberLong\": \"" #n "\"}, "
#define THREE "[" ID(1) "\"m\": 1}, " ID(2) "\"m\": 2}, " ID(3) "\"m\": 3}]"

TEST(equal_documents_are_no_findings) {
    assert_string_equal(compare(THREE, THREE), "");
    assert_string_equal(compare("[]", "[]"), "");
}

TEST(each_finding_is_reported_with_its_id) {
    assert_string_equal(compare(THREE, "[]"), "missing 1 missing 2 missing 3 ");
    assert_string_equal(compare("[]", THREE), "extra 1 extra 2 extra 3 ");
    assert_string_equal(compare(THREE, "[" ID(1) "\"m\": 1}, " ID(3) "\"m\": 3}]"), "missing 2 ");
    assert_string_equal(compare(THREE, "[" ID(1) "\"m\": 1}, " ID(2) "\"m\": 7}, " ID(
                                           3) "\"m\": 3}, " ID(4) "\"m\": 4}]"),
                        "different 2 extra 4 ");
    /* The same value of another type, and the same fields in another order, are other bytes. */
    assert_string_equal(compare("[" ID(1) "\"m\": 1}]", "[" ID(1) "\"m\": 1.0}]"), "different 1 ");
    assert_string_equal(compare("[" ID(1) "\"m\": 1, \"n\": 1}]", "[" ID(1) "\"n\": 1, \"m\": 1}]"),
                        "different 1 ");
}

/* With a shard key other than _id, two shards may store documents with the same _id. */
TEST(an_id_may_come_twice) {
    const char *one = "[" ID(1) "\"m\": 1}]";
    assert_string_equal(compare(one, "[" ID(1) "\"m\": 7}, " ID(1) "\"m\": 1}]"), "extra 1 ");
    assert_string_equal(compare(one, "[" ID(1) "\"m\": 1}, " ID(1) "\"m\": 7}]"), "extra 1 ");
    assert_string_equal(compare(one, "[" ID(1) "\"m\": 1}, " ID(1) "\"m\": 1}]"), "extra 1 ");
    assert_string_equal(compare(one, "[" ID(1) "\"m\": 8}, " ID(1) "\"m\": 7}]"),
                        "extra 1 different 1 ");
}

TEST(ids_of_other_types_are_compared_as_the_server_does) {
    /* The double 2.0 equals the id 2; 2.5 equals no id. */
    assert_string_equal(compare(THREE, "[" ID(1) "\"m\": 1}, {\"_id\": 2.0, \"m\": 2}, "
                                                 "{\"_id\": 2.5}, " ID(3) "\"m\": 3}]"),
                        "extra 2.5 different 2 ");
    assert_string_equal(compare("[]", "[{\"_id\": \"x\"}, {\"_id\": 1e300}]"),
                        "extra x extra 1e+300 ");
}

#define DECIMAL(text) "{\"_id\": {\"$numberDecimal\": \"" text "\"}, \"m\": 2}"

TEST(decimal_ids_are_compared_by_value) {
    static const char *const same[] = {"2",     "2.0",  "2.000000000000000000000000000000000",
                                       "0.2E1", "2E+0", "20E-1"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        char found[200];
        snprintf(found, sizeof found, "[" ID(1) "\"m\": 1}, " DECIMAL("%s") ", " ID(3) "\"m\": 3}]",
                 same[i]);
        assert_string_equal(compare(THREE, found), "different 2 ");
    }
    /* Equal to none of the expected ids. */
    static const char *const others[] = {"2.5",
                                         "1.999999999999999999999999999999999",
                                         "9223372036854775808",
                                         "1E+6000",
                                         "-9223372036854775809",
                                         "NaN",
                                         "Infinity",
                                         "-Infinity",
                                         "2E-6000"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char found[200];
        snprintf(found, sizeof found, "[" DECIMAL("%s") "]", others[i]);
        assert_non_null(strstr(compare(THREE, found), "missing 1 missing 2 missing 3 "));
        assert_int_equal(strncmp(findings, "extra", 5), 0);
    }
    static const struct {
        const char *number, *decimal;
    } limits[] = {{"9223372036854775807", "9223372036854775807"},
                  {"9223372036854775807", "92233720368547758070E-1"},
                  {"-9223372036854775808", "-9223372036854775808"},
                  {"-5", "-5.0"},
                  {"9000000000000000000", "9E+18"},
                  {"0", "0E+6000"},
                  {"0", "-0"}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char expected[100], found[100], outcome[60];
        snprintf(expected, sizeof expected, "[{\"_id\": {\"$numberLong\": \"%s\"}}]",
                 limits[i].number);
        snprintf(found, sizeof found, "[" DECIMAL("%s") "]", limits[i].decimal);
        snprintf(outcome, sizeof outcome, "different %s ", limits[i].number);
        assert_string_equal(compare(expected, found), outcome);
    }
}

static const char *difference(const char *expected, const char *found) {
    static char text[120];
    const uint8_t *left = bson_get_data(unit_json(expected));
    assert_ptr_equal(sl_difference(left, unit_json(found), text, sizeof text), text);
    return text;
}

TEST(differences_name_their_fields) {
    assert_string_equal(difference("{\"a\": 1, \"b\": \"x\"}", "{\"a\": 2, \"b\": \"x\"}"),
                        "a is 2, not 1");
    assert_string_equal(difference("{\"a\": 1, \"b\": \"x\"}", "{\"a\": 1.0, \"c\": null}"),
                        "a is 1.0, not 1; b is missing; c is not expected");
    assert_string_equal(difference("{\"a\": 1}", "{\"a\": {\"$numberLong\": \"1\"}}"),
                        "a is 1 as int64, not as int32");
    assert_string_equal(difference("{\"a\": 1, \"b\": 2}", "{\"b\": 2, \"a\": 1}"),
                        "the fields are in another order");
    assert_string_equal(
        difference("{\"t\": {\"v\": 1.5, \"q\": [1, 2]}}", "{\"t\": {\"v\": 1.5, \"q\": [1, 3]}}"),
        "t.q.1 is 3, not 2");
}

TEST(a_long_difference_is_cut) {
    char found[400] = "{\"_id\": 1";
    for (int i = 0; i < 20; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), ", \"field%d\": 1", i);
    strcat(found, "}");
    const char *text = difference("{\"_id\": 1}", found);
    assert_int_equal(strlen(text), 119);
    assert_string_equal(text + 116, "...");
}
