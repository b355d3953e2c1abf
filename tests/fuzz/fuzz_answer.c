/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the answers of queries: two arrays of documents are compared, printed and put into a
 * report. Exchanging the two arrays does not change whether they are equal. Differences are
 * counted, and their descriptions contain no control characters. */
#include "query/query.h"
#include "report/json.h"

#include "documents.h"

#define KEYS_MAX 100u
#define DEPTH_MAX 20u

static bool compare(const bson_t *expected, const bson_t *actual) {
    sl_differences differences;
    bool equal = sl_answer_compare(expected, actual, &differences);
    require(equal == (differences.count == 0), "equal answers have no differences");
    for (size_t i = 0; i < SL_DIFFERENCES_KEPT; i++) {
        const char *text = differences.text[i];
        CHECK_TEXT(differences.text[i]);
        require((i < differences.count) == (text[0] != '\0'), "each difference has a description");
        for (; *text; text++)
            require((unsigned char)*text >= ' ' && *text != 0x7F, "descriptions are printable");
    }
    return equal;
}

static void report(const bson_t *expected, bson_t *actual) {
    static char name[] = "q", suite_name[] = "s";
    double timing = 1.5;
    bson_t none = BSON_INITIALIZER;
    sl_query query = {.name = name, .pipeline = actual, .options = &none};
    sl_suite suite = {.name = suite_name, .count = 1, .queries = &query};
    sl_query_options options = {
        .database = "d", .collection = "c", .repeat = 1, .expected = expected};
    sl_query_run run = {.timings = &timing, .count = 1, .documents = actual};
    run.sample = sl_sample_of(&timing, 1);
    run.answer =
        sl_answer_compare(expected, actual, &run.differences) ? SL_ANSWER_OK : SL_ANSWER_WRONG;
    run.explained = sl_explain_summary(actual);
    sl_query_outcome outcome = {.suite = &suite, .query = &query, .options = &options, .run = &run};
    bson_t queries = BSON_INITIALIZER;
    if (sl_report_append(&queries, &outcome))
        free(sl_json_text(&queries, NULL));
    bson_destroy(&queries);
    bson_destroy(run.explained);
}

/* Has a document duplicate keys, of which the comparison reads only the first? Also true for
 * documents that are too large to check. */
static bool has_duplicate_keys(const bson_iter_t *at, unsigned depth) {
    bson_iter_t iter, other;
    if (!bson_iter_recurse(at, &iter))
        return false;
    for (unsigned keys = 0; bson_iter_next(&iter); keys++) {
        if (depth == DEPTH_MAX || keys == KEYS_MAX || !bson_iter_recurse(at, &other) ||
            !bson_iter_find(&other, bson_iter_key(&iter)) ||
            bson_iter_offset(&other) != bson_iter_offset(&iter) ||
            has_duplicate_keys(&iter, depth + 1))
            return true;
    }
    return false;
}

static bool has_unique_keys(const bson_t *rows) {
    bson_iter_t iter;
    bool unique = bson_iter_init(&iter, rows);
    while (unique && bson_iter_next(&iter))
        unique = !has_duplicate_keys(&iter, 0);
    return unique;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    uint8_t flags = begin(&in, data, size);
    bson_t *expected = take_document(&in), *actual = take_document(&in);
    bool equal = compare(expected, actual);
    if (!(flags & 1) && has_unique_keys(expected) && has_unique_keys(actual))
        require(equal == compare(actual, expected) && compare(actual, actual),
                "the comparison is symmetric and reflexive");
    sl_table_print_documents(actual, 20, null_stream(), 2);
    report(expected, actual);
    return finish(&in);
}
