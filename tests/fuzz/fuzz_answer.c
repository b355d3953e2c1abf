/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the answers of queries: two arrays of documents are compared, printed and put into a
 * report. Whether they differ does not depend on their order; what differs is counted, and said in
 * words without control characters. */
#include <stdint.h>

#include <shardload/json.h>
#include <shardload/query.h>

#include "documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS_MAX 100u
#define DEPTH_MAX 20u

static FILE *nowhere;

static bool compare(const bson_t *expected, const bson_t *got) {
    sl_differences differences;
    bool equal = sl_answer_compare(expected, got, &differences);
    require(equal == (differences.count == 0), "equal is without differences");
    for (size_t i = 0; i < SL_DIFFERENCES_KEPT; i++) {
        const char *text = differences.text[i];
        CHECK_TEXT(differences.text[i]);
        require((i < differences.count) == (text[0] != '\0'), "each difference has words");
        for (; *text; text++)
            require((unsigned char)*text >= ' ' && *text != 0x7F, "words are printable");
    }
    return equal;
}

static void report(const bson_t *expected, bson_t *got) {
    static char name[] = "q", suite_name[] = "s";
    double timing = 1.5;
    bson_t none = BSON_INITIALIZER;
    sl_query query = {.name = name, .pipeline = got, .options = &none};
    sl_suite suite = {.name = suite_name, .count = 1, .queries = &query};
    sl_query_options options = {
        .database = "d", .collection = "c", .repeat = 1, .expected = expected};
    sl_query_run run = {.timings = &timing, .count = 1, .documents = got};
    run.sample = sl_sample_of(&timing, 1);
    run.answer =
        sl_answer_compare(expected, got, &run.differences) ? SL_ANSWER_OK : SL_ANSWER_WRONG;
    run.explained = sl_explain_summary(got);
    sl_query_outcome outcome = {.suite = &suite, .query = &query, .options = &options, .run = &run};
    bson_t queries = BSON_INITIALIZER;
    if (sl_report_append(&queries, &outcome))
        free(sl_json_text(&queries, NULL));
    bson_destroy(&queries);
    bson_destroy(run.explained);
}

/* Is there a key twice in one of the documents? Of such, only the first is looked at. */
static bool has_twins(const bson_iter_t *at, unsigned depth) {
    bson_iter_t iter, other;
    if (!bson_iter_recurse(at, &iter))
        return false;
    for (unsigned keys = 0; bson_iter_next(&iter); keys++) {
        if (depth == DEPTH_MAX || keys == KEYS_MAX || !bson_iter_recurse(at, &other) ||
            !bson_iter_find(&other, bson_iter_key(&iter)) ||
            bson_iter_offset(&other) != bson_iter_offset(&iter) || has_twins(&iter, depth + 1))
            return true; /* or too large to be looked through */
    }
    return false;
}

static bool is_plain(const bson_t *rows) {
    bson_iter_t iter;
    bool plain = bson_iter_init(&iter, rows);
    while (plain && bson_iter_next(&iter))
        plain = !has_twins(&iter, 0);
    return plain;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    given expected, got;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    uint8_t flags = begin(&in, data, size);
    give(&in, &expected);
    give(&in, &got);
    bool equal = compare(&expected.bson, &got.bson);
    if (!(flags & 1) && is_plain(&expected.bson) && is_plain(&got.bson))
        require(equal == compare(&got.bson, &expected.bson) && compare(&got.bson, &got.bson),
                "which one is expected makes no difference");
    sl_table_print_documents(&got.bson, 20, nowhere, 2);
    report(&expected.bson, &got.bson);
    clear(&got);
    clear(&expected);
    return 0;
}
