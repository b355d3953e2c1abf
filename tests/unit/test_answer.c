/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of answers with expected answers, and the descriptions of differences; statistics
 * of timings; tables. */
#include "query/query.h"
#include "unit.h"
#include "util/text.h"

#include "deep_document.h"

static bool compare(const char *expected, const char *actual, sl_differences *differences) {
    return sl_answer_compare(unit_json(expected), unit_json(actual), differences);
}

TEST(equal_answers) {
    static const struct {
        const char *expected;
        const char *actual;
    } pairs[] = {
        {"[]", "[]"},
        {"[{\"_id\": 1, \"n\": 2}]", "[{\"n\": 2, \"_id\": 1}]"},
        {"[{\"n\": 5}]", "[{\"n\": 5.0}]"},
        {"[{\"n\": 5}]", "[{\"n\": {\"$numberLong\": \"5\"}}]"},
        {"[{\"n\": 5}]", "[{\"n\": {\"$numberDecimal\": \"5.0\"}}]"},
        {"[{\"n\": 33.333333333333336}]", "[{\"n\": 33.33333333333334}]"},
        {"[{\"n\": 1e300}]", "[{\"n\": 1.0000000000001e300}]"},
        {"[{\"n\": {\"$numberDouble\": \"NaN\"}}]", "[{\"n\": {\"$numberDouble\": \"NaN\"}}]"},
        {"[{\"n\": {\"$numberDouble\": \"Infinity\"}}]",
         "[{\"n\": {\"$numberDouble\": \"Infinity\"}}]"},
        {"[{\"a\": {\"x\": 1, \"y\": [1, {\"z\": null}]}}]",
         "[{\"a\": {\"y\": [1.0, {\"z\": null}], \"x\": 1}}]"},
        {"[{\"d\": {\"$date\": \"2020-01-01T00:00:00Z\"}, \"b\": true, \"s\": \"x\"}]",
         "[{\"b\": true, \"s\": \"x\", \"d\": {\"$date\": \"2020-01-01T00:00:00Z\"}}]"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        sl_differences differences;
        if (!compare(pairs[i].expected, pairs[i].actual, &differences))
            fail_msg("%s against %s: %s", pairs[i].expected, pairs[i].actual, differences.text[0]);
        assert_int_equal(differences.count, 0);
    }
}

TEST(wrong_answers) {
    static const struct {
        const char *expected;
        const char *actual;
        const char *difference;
    } pairs[] = {
        {"[{\"n\": 5}]", "[{\"n\": 6}]", "row 1, n: expected 5, got 6"},
        /* Integers are compared exactly, however large. */
        {"[{\"n\": 10000000001}]", "[{\"n\": 10000000002}]",
         "row 1, n: expected 10000000001, got 10000000002"},
        {"[{\"n\": 1.5}]", "[{\"n\": 1.50001}]", "row 1, n: expected 1.5, got 1.50001"},
        {"[{\"n\": 0}]", "[{\"n\": 1e-12}]", "row 1, n: expected 0, got 1e-12"},
        {"[{\"n\": 1}]", "[{\"n\": {\"$numberDouble\": \"NaN\"}}]",
         "row 1, n: expected 1, got {\"$numberDouble\": \"NaN\"}"},
        {"[{\"n\": 1}]", "[{\"n\": {\"$numberDouble\": \"Infinity\"}}]",
         "row 1, n: expected 1, got {\"$numberDouble\": \"Infinity\"}"},
        {"[{\"k\": \"FORD\"}]", "[{\"k\": \"BMW\"}]", "row 1, k: expected \"FORD\", got \"BMW\""},
        {"[{\"k\": \"1\"}]", "[{\"k\": 1}]", "row 1, k: expected \"1\", got 1"},
        {"[{\"k\": null}]", "[{}]", "row 1, k: missing, expected null"},
        {"[{}]", "[{\"k\": null}]", "row 1, k: got null, expected no such key"},
        {"[{\"k\": {}}]", "[{\"k\": []}]", "row 1, k: expected {}, got []"},
        {"[{\"_id\": {\"make\": \"A\"}}]", "[{\"_id\": {\"make\": \"B\"}}]",
         "row 1, _id.make: expected \"A\", got \"B\""},
        {"[{\"a\": [1, 2]}]", "[{\"a\": [2, 1]}]", "row 1, a.0: expected 1, got 2"},
        /* The order of rows matters. */
        {"[{\"_id\": 1}, {\"_id\": 2}]", "[{\"_id\": 2}, {\"_id\": 1}]",
         "row 1, _id: expected 1, got 2"},
        {"[{\"_id\": 1}, {\"_id\": 2}, {\"_id\": 3}]", "[{\"_id\": 1}]",
         "expected 2 more rows, the first of them row 2: {\"_id\": 2}"},
        {"[]", "[{\"_id\": 7}]", "got 1 row too many, the first of them row 1: {\"_id\": 7}"},
        /* Control characters from a server must not reach the terminal. */
        {"[{\"k\": \"a\"}]", "[{\"k\": \"\\u001b[2J\"}]",
         "row 1, k: expected \"a\", got \"\\u001b[2J\""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        sl_differences differences;
        assert_false(compare(pairs[i].expected, pairs[i].actual, &differences));
        assert_string_equal(differences.text[0], pairs[i].difference);
    }
}

TEST(only_the_first_differences_are_kept) {
    sl_differences differences;
    assert_false(compare("[{\"a\":1,\"b\":1,\"c\":1,\"d\":1},{\"a\":1,\"b\":1,\"c\":1,\"d\":1}]",
                         "[{\"a\":2,\"b\":2,\"c\":2,\"d\":2},{\"a\":2,\"b\":2,\"c\":2,\"d\":1}]",
                         &differences));
    assert_int_equal(differences.count, 7);
    assert_string_equal(differences.text[0], "row 1, a: expected 1, got 2");
    assert_string_equal(differences.text[4], "row 2, a: expected 1, got 2");
}

TEST(sample) {
    double values[] = {9, 2, 4, 4, 5, 7, 5, 4};
    sl_sample figures = sl_sample_of(values, 8);
    assert_near(figures.minimum, 2, 0);
    assert_near(figures.maximum, 9, 0);
    assert_near(figures.median, 4.5, 1e-12);
    assert_near(figures.mean, 5, 1e-12);
    assert_near(figures.deviation, 2.1380899352993950, 1e-12); /* divided by n - 1 */
    double one[] = {3};
    figures = sl_sample_of(one, 1);
    assert_near(figures.median, 3, 0);
    assert_near(figures.deviation, 0, 0);
}

/* Queries that wrap the answer in a field agree with queries that do not. */
TEST(wrapped_answers_agree) {
    sl_differences differences;
    bson_t *plain = unit_json("[{\"min\": 1, \"sum\": 3.5}]");
    bson_t *wrapped = unit_json("[{\"_id\": null, \"value\": {\"sum\": 3.5, \"min\": 1.0}}]");
    bson_t *other = unit_json("[{\"_id\": null, \"value\": {\"sum\": 3.6, \"min\": 1.0}}]");
    assert_true(sl_answers_agree(plain, wrapped, &differences));
    assert_false(sl_answers_agree(plain, other, &differences));
    assert_int_equal(differences.count, 1);
    char a[SL_ANSWER_HASH_ROOM], b[SL_ANSWER_HASH_ROOM];
    assert_string_equal(sl_answer_hash(plain, a), sl_answer_hash(plain, b));
    assert_string_not_equal(sl_answer_hash(plain, a), sl_answer_hash(wrapped, b));
}

TEST(figures) {
    char out[SL_FIGURE_ROOM];
    assert_string_equal(sl_figure_text(0, 2, out), "0.00");
    assert_string_equal(sl_figure_text(999.994, 2, out), "999.99");
    assert_string_equal(sl_figure_text(1234567.891, 2, out), "1,234,567.89");
    assert_string_equal(sl_figure_text(-123456, 0, out), "-123,456");
    assert_string_equal(sl_figure_text(-1234, 0, out), "-1,234");
    assert_string_equal(sl_figure_text(1e300, 2, out), "1e+300");
    assert_string_equal(sl_figure_text(NAN, 2, out), "nan");
}

TEST(documents_as_a_table) {
    bson_t *documents =
        unit_json("[{\"_id\": {\"y\": 2005, \"m\": \"\\u00c9A\"}, \"n\": 1234567, \"r\": 0.5},"
                  " {\"_id\": {\"y\": 2006, \"m\": \"B\"}, \"r\": 12.25, \"d\": {\"$date\": 0}},"
                  " {\"_id\": {\"y\": 2007, \"m\": \"\\u001b\"}, \"n\": null, \"l\": [1, \"x\"]},"
                  " {\"_id\": \"not shown\"}]");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    sl_table_print_documents(documents, 3, out, 1);
    fclose(out);
    assert_string_equal(text, " _id.y  _id.m          n      r  d           l\n"
                              " -----  -----  ---------  -----  ----------  --------\n"
                              "  2005  \xc3\x89"
                              "A     1,234,567   0.50\n"
                              "  2006  B                 12.25  1970-01-01\n"
                              "  2007  \\x1b        null                     [1, \"x\"]\n");
    free(text);
}

/* Prints hostile rows: a deeply nested document, and a row that is not a document. */
static void print_rows(const bson_t *row) {
    bson_t rows = BSON_INITIALIZER;
    FILE *null_stream = fopen("/dev/null", "w");
    assert_non_null(null_stream);
    BSON_APPEND_DOCUMENT(&rows, "0", row);
    BSON_APPEND_INT32(&rows, "1", 7);
    sl_table_print_documents(&rows, 20, null_stream, 0);
    fclose(null_stream);
    bson_destroy(&rows);
}

static void compare_deep(bson_t *row) {
    bson_t one = BSON_INITIALIZER, other = BSON_INITIALIZER;
    sl_differences differences;
    BSON_APPEND_DOCUMENT(&one, "0", row);
    ((uint8_t *)(uintptr_t)bson_get_data(row))[row->len / 2 - 8] ^=
        1; /* changes a deeply nested field name */
    BSON_APPEND_DOCUMENT(&other, "0", row);
    assert_true(sl_answer_compare(&one, &one, &differences));
    assert_false(sl_answer_compare(&one, &other, &differences));
    bson_destroy(&one);
    bson_destroy(&other);
}

TEST(deep_answers) {
    static const char *const names[] = {"", "inputStage", "winningPlan"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bson_t *row = deep_document(names[i]);
        print_rows(row);
        unit_keep_bson(sl_explain_summary(row));
    }
    compare_deep(deep_document("bbbbbbbbbbbbbbbbbbbbb"));
}
