/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of reports of shardquery: verdicts hold for the table with all its rows, and runs
 * whose answers are wrong or whose operations failed are not compared. */
#include "query/query.h"
#include "unit.h"

#define RUNS_MAX 6

/* A query of the reports: in the first `runs` reports of each side; the new side takes `factor`
 * times as long. */
typedef struct measured {
    unsigned runs;
    double factor;
    const char *old_more, *new_more; /* further fields of the entry in the last report; or NULL */
} measured;

static const bson_t *reports[2][RUNS_MAX];
static const char *text; /* what the comparison prints */
static bson_t *record;
static sl_exit verdict;

static bson_t *report_of(const measured *queries, unsigned count, bool new, unsigned run) {
    char json[4000], *at = json, *end = json + sizeof json;
    at += snprintf(at, sizeof json, "{\"date\": %u, \"queries\": [", run);
    const char *comma = "";
    for (unsigned i = 0; i < count; i++) {
        const measured *q = &queries[i];
        const char *more = new ? q->new_more : q->old_more;
        if (run >= q->runs)
            continue;
        /* The runs of a side differ by up to 5 %, not in the order of their dates. */
        at += snprintf(at, (size_t)(end - at),
                       "%s{\"suite\": \"s\", \"name\": \"q%u\", \"medianMs\": %.9g%s%s}", comma, i,
                       (new ? q->factor : 1) * (10 + (run * 5 + i) % 7 * 0.083),
                       more && run + 1 == q->runs ? ", " : "",
                       more && run + 1 == q->runs ? more : "");
        comma = ", ";
    }
    snprintf(at, (size_t)(end - at), "]}");
    return unit_json(json);
}

static const sl_comparison_options usual = {.threshold = 0, .seed = 1};

/* Compares reports with these queries. */
static void compare(const measured *queries, unsigned count) {
    char *printed;
    size_t length;
    sl_error error = {0};
    unsigned runs = 0;
    for (unsigned i = 0; i < count; i++)
        runs = queries[i].runs > runs ? queries[i].runs : runs;
    for (unsigned run = 0; run < runs; run++) {
        reports[0][run] = report_of(queries, count, false, run);
        reports[1][run] = report_of(queries, count, true, run);
    }
    FILE *out = open_memstream(&printed, &length);
    assert_non_null(out);
    record = unit_keep_bson(bson_new());
    assert_true(sl_reports_compare(reports[0], runs, reports[1], runs, &usual, out, record,
                                   &verdict, &error));
    fclose(out);
    text = unit_keep(printed);
}

/* The verdict of row `index`, and another field of it. */
static const char *field_of_row(unsigned index, const char *field) {
    char path[40];
    snprintf(path, sizeof path, "rows.%u.%s", index, field);
    bson_iter_t iter, found;
    assert_true(bson_iter_init(&iter, record));
    return bson_iter_find_descendant(&iter, path, &found) ? bson_iter_utf8(&found, NULL) : NULL;
}

static void assert_verdict(unsigned index, const char *expected) {
    assert_non_null(field_of_row(index, "verdict"));
    assert_string_equal(field_of_row(index, "verdict"), expected);
}

/* ---- several figures ----
 *
 * Two sides of n runs each that do not overlap have p = 2 / (2n over n): 0.029 with 4 runs, 0.0079
 * with 5, 0.0022 with 6. */

TEST(one_row_needs_no_correction) {
    const measured queries[] = {{.runs = 4, .factor = 2}};
    compare(queries, 1);
    assert_verdict(0, "slower");
    assert_int_equal(verdict, SL_EXIT_REJECTS);
    assert_null(strstr(text, "correction"));
}

TEST(two_rows_need_a_smaller_p) {
    const measured queries[] = {{.runs = 4, .factor = 2}, {.runs = 4, .factor = 0.5}};
    compare(queries, 2);
    assert_verdict(0, "no difference shown");
    assert_verdict(1, "no difference shown");
    assert_int_equal(verdict, SL_EXIT_OK); /* the exit code follows the corrected verdicts */
    assert_contains(text, "s/q0, median ms: significant as a single test (p 0.029), but not after");
    assert_contains(text, "s/q1, median ms: significant as a single test (p 0.029), but not after");
}

TEST(the_number_of_rows_decides) {
    measured queries[7];
    for (unsigned i = 0; i < 7; i++)
        queries[i] = (measured){.runs = 5, .factor = 2};
    compare(queries, 6); /* 0.05 / 6 = 0.0083 */
    for (unsigned i = 0; i < 6; i++)
        assert_verdict(i, "slower");
    compare(queries, 7); /* 0.05 / 7 = 0.0071 */
    for (unsigned i = 0; i < 7; i++)
        assert_verdict(i, "no difference shown");
}

TEST(each_significant_row_leaves_fewer_tests) {
    const measured queries[] = {
        {.runs = 6, .factor = 0.5}, {.runs = 4, .factor = 2}, {.runs = 6, .factor = 1}};
    compare(queries, 2); /* 0.0022 <= 0.05 / 2; then 0.029 <= 0.05 / 1 */
    assert_verdict(0, "faster");
    assert_verdict(1, "slower");
    assert_int_equal(verdict, SL_EXIT_REJECTS);
    compare(queries, 3); /* 0.0022 <= 0.05 / 3, but 0.029 > 0.05 / 2 */
    assert_verdict(0, "faster");
    assert_verdict(1, "no difference shown");
    assert_verdict(2, "no difference shown");
    assert_int_equal(verdict, SL_EXIT_OK);
}

TEST(rows_with_too_few_runs_are_no_tests) {
    const measured queries[] = {{.runs = 4, .factor = 2}, {.runs = 3, .factor = 2}};
    compare(queries, 2);
    assert_verdict(0, "slower");
    assert_verdict(1, "too few runs to tell");
}

/* ---- runs that do not count ---- */

TEST(a_query_with_a_wrong_answer_or_failures_is_not_compared) {
    static const struct {
        const char *old_more, *new_more, *reason; /* NULL: it is compared */
    } rows[] = {
        {"\"answer\": \"ok\"", "\"answer\": \"not checked\"", NULL},
        {NULL, "\"answer\": \"WRONG\"", "in 0 old and 1 new runs, the answer is wrong"},
        {"\"answer\": \"WRONG\"", NULL, "in 1 old and 0 new runs, the answer is wrong"},
        {"\"answer\": \"FAILED\"", "\"answer\": \"WRONG\"",
         "in 1 old and 1 new runs, the query failed"},
        {NULL, "\"attempted\": 1000, \"failed\": 700",
         "in 0 old and 1 new runs, of 1000 operations, 700 failed and 0 were skipped"},
        {NULL, "\"attempted\": 1000, \"failed\": 1, \"skipped\": 1",
         "in 0 old and 1 new runs, of 1000 operations, 1 failed and 1 were skipped"},
        {"\"attempted\": 1000, \"failed\": 1, \"skipped\": 0",
         "\"attempted\": 5000, \"failed\": 3, \"skipped\": 2", NULL},
        {"\"attempted\": 0, \"failed\": 0", "\"attempted\": 100",
         "in 1 old and 0 new runs, no operation was measured: give a longer --duration"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const measured queries[] = {
            {4, 0.5, rows[i].old_more, rows[i].new_more}, /* would be faster */
            {4, 1, NULL, NULL},
        };
        compare(queries, 1);
        if (!rows[i].reason) {
            assert_verdict(0, "faster");
            assert_null(field_of_row(0, "reason"));
            assert_int_equal(verdict, SL_EXIT_OK);
            continue;
        }
        assert_verdict(0, "not comparable");
        assert_string_equal(field_of_row(0, "reason"), rows[i].reason);
        assert_int_equal(verdict, SL_EXIT_VERIFICATION);
        assert_null(strstr(text, "faster"));
        assert_contains(text, "s/q0 is not compared: ");
        assert_contains(text, rows[i].reason);
        compare(queries, 2); /* the other query is compared */
        assert_verdict(0, "not comparable");
        assert_verdict(1, "no difference shown");
        assert_int_equal(verdict, SL_EXIT_VERIFICATION);
    }
}

TEST(a_query_that_is_not_compared_is_no_test) {
    const measured queries[] = {{4, 0.5, NULL, "\"answer\": \"WRONG\""}, {4, 2, NULL, NULL}};
    compare(queries, 2);
    assert_verdict(0, "not comparable");
    assert_verdict(1, "slower"); /* p 0.029, as the only row */
    assert_int_equal(verdict, SL_EXIT_VERIFICATION);
}

/* Compares two reports, and returns what was printed; "": an error is set. */
static const char *compare_two(const bson_t *old, const bson_t *new, sl_error *error) {
    char *printed;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    assert_non_null(out);
    *error = (sl_error){0};
    sl_reports_compare(&old, 1, &new, 1, &usual, out, NULL, &verdict, error);
    fclose(out);
    return unit_keep(printed);
}

/* The queries of a nightly job, each in reports of its own: only those of the first one had
 * rows. */
TEST(queries_of_all_reports_are_compared) {
    const measured one[] = {{4, 1, NULL, NULL}}, two[] = {{0, 1, NULL, NULL}, {4, 2, NULL, NULL}};
    char *printed;
    size_t length;
    sl_error error = {0};
    const bson_t *sides[2][8];
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned new = 0; new < 2; new ++)
            sides[new][i] = report_of(i < 4 ? one : two, i < 4 ? 1 : 2, new, i % 4);
    }
    FILE *out = open_memstream(&printed, &length);
    record = unit_keep_bson(bson_new());
    assert_true(
        sl_reports_compare(sides[0], 8, sides[1], 8, &usual, out, record, &verdict, &error));
    fclose(out);
    text = unit_keep(printed);
    assert_contains(text, "s/q1");
    assert_null(strstr(text, "only in the"));
    assert_verdict(0, "no difference shown");
    assert_string_equal(field_of_row(1, "query"), "s/q1");
}

TEST(a_query_without_a_common_figure_is_not_comparable) {
    static const char *const reports_of_one[] = {
        "{\"queries\": [{\"suite\": \"s\", \"name\": \"q\", \"medianMs\": 5}, %s]}",
        "{\"queries\": [{\"suite\": \"s\", \"name\": \"q\", \"answer\": \"not supported here\"}, "
        "%s]}"};
    const char *other = "{\"suite\": \"s\", \"name\": \"r\", \"medianMs\": 5}";
    char json[2][300];
    sl_error error;
    for (unsigned new = 0; new < 2; new ++)
        snprintf(json[new], sizeof json[new], reports_of_one[new], other);
    assert_contains(compare_two(unit_json(json[0]), unit_json(json[1]), &error),
                    "s/q is not compared: it has no figure that both sides have.\n");
    assert_int_equal(verdict, SL_EXIT_VERIFICATION);
}

TEST(queries_with_long_names_are_told_apart) {
    char json[900], name[200];
    sl_error error;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(json, sizeof json,
             "{\"queries\": [{\"suite\": \"s\", \"name\": \"%s1\", \"medianMs\": 5}, "
             "{\"suite\": \"s\", \"name\": \"%s2\", \"medianMs\": 5}]}",
             name, name);
    const char *at = strstr(compare_two(unit_json(json), unit_json(json), &error), "s/nnn");
    assert_non_null(at);
    assert_non_null(strstr(at + 1, "s/nnn"));
}

TEST(what_was_not_measured_again_is_not_comparable) {
    const measured queries[] = {{1, 1, NULL, NULL}, {1, 1, NULL, NULL}};
    const bson_t *one = report_of(queries, 1, true, 0), *two = report_of(queries, 2, true, 0);
    sl_error error;
    assert_contains(compare_two(two, one, &error), "s/q1: only in the old report");
    assert_int_equal(verdict, SL_EXIT_VERIFICATION);
    assert_contains(compare_two(one, two, &error), "s/q1: only in the new report");
    assert_int_equal(verdict, SL_EXIT_OK); /* it was added */
    compare_two(one, unit_json("{\"queries\": []}"), &error);
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_contains(error.message, "no figure of a query in common");
    const char *ended = "{\"complete\": false, \"queries\": [{\"suite\": \"s\", \"name\": \"q0\", "
                        "\"medianMs\": 10}]}";
    assert_contains(compare_two(one, unit_json(ended), &error),
                    "the new file (number 1 of its side) has not");
    assert_int_equal(verdict, SL_EXIT_VERIFICATION);
}

TEST(different_answers_are_noted) {
    const measured same[] = {{1, 1, "\"answerHash\": \"a\"", "\"answerHash\": \"a\""}};
    const measured other[] = {{1, 1, "\"answerHash\": \"a\"", "\"answerHash\": \"b\""}};
    compare(same, 1);
    assert_null(strstr(text, "the answer is not the same"));
    compare(other, 1);
    assert_contains(text, "s/q0: the answer is not the same on both sides.");
}

TEST(a_report_with_too_many_queries_is_refused) {
    static const sl_comparison_options options = {.seed = 1};
    char *json;
    size_t length;
    FILE *out = open_memstream(&json, &length);
    for (unsigned i = 0; i <= 2500; i++)
        fprintf(out, "%s{\"suite\": \"s\", \"name\": \"q%u\"}", i ? ", " : "{\"queries\": [", i);
    fputs("]}", out);
    fclose(out);
    const bson_t *many = unit_json(unit_keep(json));
    sl_error error = {0};
    assert_false(sl_reports_compare(&many, 1, &many, 1, &options, stderr, NULL, &verdict, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_contains(error.message, "more than 2500 queries");
}
