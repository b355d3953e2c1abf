/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: valid suites are read correctly, and error messages name the position of the
 * error. */
#include "query/query.h"
#include "unit.h"
#include "util/embedded.h"

static bool parse(const char *text, sl_suite **suite, sl_error *error) {
    return sl_suite_parse(text, strlen(text), "s.yaml", suite, error);
}

TEST(full_suite) {
    sl_error error = {0};
    sl_suite *suite;
    assert_true(
        parse("name: trips\n"
              "description: All about trips.\n"
              "defaults: {repeat: 7, warm-up: 0, database: d, collection: c}\n"
              "queries:\n"
              "  - name: long\n"
              "    description: The long ones.\n"
              "    options:\n"
              "      allowDiskUse: true\n"
              "      hint: '{\"km\": 1}'\n"
              "      maxTimeMS: 500\n"
              "      readPreference: secondaryPreferred\n"
              "    pipeline: |\n"
              "      [{\"$match\": {\"at\": {\"$gte\": {\"$date\": \"2020-01-01T00:00:00Z\"}}}}]\n"
              "    expect: |\n"
              "      [{\"_id\": 1}, {\"_id\": 2}]\n"
              "  - name: all\n"
              "    pipeline: \"[]\"\n",
              &suite, &error));
    assert_string_equal(suite->name, "trips");
    assert_string_equal(suite->description, "All about trips.");
    assert_string_equal(suite->database, "d");
    assert_string_equal(suite->collection, "c");
    assert_int_equal(suite->repeat, 7);
    assert_int_equal(suite->warm_up, 0);
    assert_int_equal(suite->count, 2);

    const sl_query *query = &suite->queries[0];
    assert_string_equal(query->name, "long");
    assert_string_equal(query->description, "The long ones.");
    assert_string_equal(query->read_preference, "secondaryPreferred");
    assert_int_equal(bson_count_keys(query->expected), 2);
    bson_iter_t iter;
    bson_iter_t field;
    assert_true(bson_iter_init_find(&iter, query->options, "allowDiskUse"));
    assert_true(bson_iter_bool(&iter));
    assert_true(bson_iter_init_find(&iter, query->options, "maxTimeMS"));
    assert_int_equal(bson_iter_as_int64(&iter), 500);
    assert_true(bson_iter_init(&iter, query->options));
    assert_true(bson_iter_find_descendant(&iter, "hint.km", &field));
    /* Extended JSON: {"$date": ...} becomes a date. */
    assert_true(bson_iter_init(&iter, query->pipeline));
    assert_true(bson_iter_find_descendant(&iter, "0.$match.at.$gte", &field));
    assert_true(BSON_ITER_HOLDS_DATE_TIME(&field));
    assert_int_equal(bson_iter_date_time(&field), 1577836800000);

    assert_null(suite->queries[1].expected);
    assert_null(suite->queries[1].read_preference);
    assert_true(bson_empty(suite->queries[1].pipeline));
    sl_suite_destroy(suite);
}

TEST(defaults) {
    sl_error error = {0};
    sl_suite *suite;
    assert_true(parse("name: s\nqueries: [{name: q, pipeline: '[]', options: {hint: km_1}}]\n",
                      &suite, &error));
    assert_int_equal(suite->repeat, 5);
    assert_int_equal(suite->warm_up, 1);
    assert_null(suite->database);
    bson_iter_t iter;
    assert_true(bson_iter_init_find(&iter, suite->queries[0].options, "hint"));
    assert_string_equal(bson_iter_utf8(&iter, NULL), "km_1");
    sl_suite_destroy(suite);
}

/* Queries of each operation except aggregations. */
TEST(operations) {
    sl_error error = {0};
    sl_suite *suite;
    if (!parse("name: s\n"
               "mix: {read: 95, write: 5}\n" /* may precede its queries */
               "defaults: {limit: 7, agree: false}\n"
               "queries:\n"
               "  - name: read\n"
               "    operation: findOne\n"
               "    filter: '{\"a\": {\"$parameter\": \"x\"}}'\n"
               "    parameters: {x: {zipf: {from: 3, count: 9}}, y: {range: [0.5, 2]},\n"
               "                 z: {sequence: {from: 5, step: 2}}, w: {sample: {field: a.b}}}\n"
               "  - name: write\n"
               "    operation: update\n"
               "    filter: '{}'\n"
               "    update: '[{\"$set\": {\"b\": 1}}]'\n"
               "    upsert: true\n"
               "  - name: scan\n"
               "    operation: find\n"
               "    limit: '{\"$parameter\": \"limit\"}'\n"
               "    sort: '{\"_id\": 1}'\n"
               "    statistic: {field: a.b, by: list, threads: 3}\n"
               "    options: {batchSize: 5, comment: c, readConcern: majority}\n"
               "  - {name: js, operation: mapReduce, map: 'function(){}', reduce: 'function(){}',\n"
               "     jsMode: true, expect-hash: 00ff}\n",
               &suite, &error))
        fail_msg("%s", error.message);
    assert_int_equal(suite->mix_count, 2);
    assert_int_equal(suite->mix[1].query, 1);
    assert_true(suite->mix[0].weight == 95);
    assert_int_equal(suite->limit, 7);
    const sl_query *read = &suite->queries[0], *scan = &suite->queries[2], *js = &suite->queries[3];
    assert_int_equal(read->operation, SL_FIND_ONE);
    assert_int_equal(read->parameter_count, 4);
    assert_int_equal(read->parameters[0].draw, SL_DRAW_ZIPF);
    assert_int_equal(read->parameters[0].first, 3);
    assert_false(read->parameters[1].integers);
    assert_int_equal(read->parameters[2].step, 2);
    assert_string_equal(read->parameters[3].field, "a.b");
    assert_int_equal(suite->queries[1].operation, SL_UPDATE);
    assert_int_equal(scan->statistic, SL_STATISTIC_LIST);
    assert_int_equal(scan->threads, 3);
    bson_iter_t iter, field;
    assert_true(bson_iter_init(&iter, scan->options));
    assert_true(bson_iter_find_descendant(&iter, "readConcern.level", &field));
    assert_string_equal(js->expected_hash, "00ff");
    assert_true(bson_iter_init_find(&iter, js->body, "map"));
    assert_true(BSON_ITER_HOLDS_CODE(&iter));
    uint64_t examined;
    assert_true(sl_examined_by_definition(scan, 7, 100, &examined));
    assert_int_equal(examined, 7);
    assert_false(sl_examined_by_definition(read, 7, 100, &examined)); /* needs the plan */
    sl_suite_destroy(suite);
}

/* "examined" was the limit, although a filter before it reads the whole collection. */
TEST(a_limit_after_a_filter_does_not_limit_what_is_read) {
    static const struct {
        sl_operation operation;
        const char *query;
        bool known;
    } rows[] = {
        {SL_FIND, "{\"filter\": {}, \"limit\": {\"$parameter\": \"limit\"}}", true},
        {SL_FIND, "{\"filter\": {\"a\": 1}, \"limit\": {\"$parameter\": \"limit\"}}", false},
        {SL_AGGREGATE, "[{\"$limit\": {\"$parameter\": \"limit\"}}, {\"$match\": {}}]", true},
        {SL_AGGREGATE, "[{\"$match\": {}}, {\"$limit\": {\"$parameter\": \"limit\"}}]", false},
    };
    bson_t none = BSON_INITIALIZER;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool pipeline = rows[i].operation == SL_AGGREGATE;
        uint64_t examined = 7;
        sl_query query = {.operation = rows[i].operation,
                          .pipeline = pipeline ? unit_json(rows[i].query) : NULL,
                          .body = pipeline ? &none : unit_json(rows[i].query),
                          .options = &none};
        assert_int_equal(sl_examined_by_definition(&query, 7, 100, &examined), rows[i].known);
        assert_int_equal(examined, 7);
    }
}

#define START "name: s\nqueries:\n  - name: q\n"

/* Invalid suites, and the position and text that the error message must have. */
static const struct {
    const char *text;
    const char *position; /* start of the message */
    const char *part;     /* another part of the message */
} wrong[] = {
    {"", "s.yaml: ", "contains no suite"},
    {"- a\n", "s.yaml:1:1: ", "found a list"},
    {"name: s\n", "s.yaml:1:1: ", "\"queries\" is missing"},
    {"queries: [{name: q, pipeline: '[]'}]\n", "s.yaml:1:1: ", "\"name\" is missing"},
    {"name: s\nquerys: []\n", "s.yaml:2:1: ", "name, description, defaults, queries"},
    {"name: s\nname: t\n", "s.yaml:2:1: ", "is given twice"},
    {"name: [a]\n", "s.yaml:1:7: ", "found a list"},
    {"name: s\nqueries: []\n", "s.yaml:2:10: ", "found an empty one"},
    {"name: s\nqueries: nothing\n", "s.yaml:2:10: ", "found \"nothing\""},
    {"name: s\ndefaults: {repeat: 0}\n", "s.yaml:2:20: ", "from 1 to 1000000, found \"0\""},
    {"name: s\ndefaults: {warm-up: many}\n", "s.yaml:2:21: ", "whole number"},
    {"name: s\nqueries:\n  - {pipeline: '[]'}\n", "s.yaml:3:5: ", "\"name\" is missing"},
    {START, "s.yaml:3:5: ", "aggregate needs the key \"pipeline\""},
    {START "    operation: remove\n", "s.yaml:4:16: ", "update or insert, found \"remove\""},
    {START "    operation: count\n    sort: '{}'\n", "s.yaml:3:5: ", "count takes no key \"sort\""},
    {START "    operation: distinct\n", "s.yaml:3:5: ", "distinct needs the key \"key\""},
    {START "    operation: find\n    filter: '{\"a\": {\"$parameter\": \"b\"}}'\n",
     "s.yaml:3:5: ", "the parameter \"b\" is used, but not declared under \"parameters\""},
    {START "    operation: find\n    parameters: {a: {range: [2, 1]}}\n",
     "s.yaml:5:29: ", "the lowest number is above the highest"},
    {START "    operation: find\n    parameters: {a: {}}\n",
     "s.yaml:5:21: ", "expected one of range"},
    {START "    operation: find\n    parameters: {a: {range: [1, 2], list: '[1]'}}\n",
     "s.yaml:5:43: ", "found two"},
    {START "    operation: find\n    parameters: {a: {list: '[]'}}\n", "s.yaml:5:28: ", "empty"},
    {START "    operation: find\n    parameters: {a: {zipf: {count: 3, skew: -1}}}\n",
     "s.yaml:5:45: ", "skew"},
    {START "    operation: find\n    parameters: {limit: {range: [1, 2]}}\n",
     "s.yaml:5:18: ", "set by --limit"},
    /* Right answers to other values were called wrong. */
    {"name: s\ndefaults: {agree: true}\nqueries:\n  - name: q\n    operation: count\n"
     "    parameters: {a: {sequence: {}}, b: {list: '[1]'}}\n",
     "s.yaml:1:1: ", "instead of the parameter \"b\" of q"},
    {START "    pipeline: '[]'\nmix: {p: 1}\n", "s.yaml:5:7: ", "no query of this suite is called"},
    {START "    pipeline: '[]'\nmix: {q: 0}\n", "s.yaml:5:10: ", "a weight above 0"},
    {START "    pipeline: '[]'\nmix: {}\n", "s.yaml:5:6: ", "an empty one"},
    {START "    pipeline: '[]'\n  - name: q\n    pipeline: '[]'\n",
     "s.yaml:5:5: ", "the query name \"q\" is used twice"},
    {START "    pipeline: '[]'\n    options: {sort: 1}\n", "s.yaml:5:15: ", "allowDiskUse"},
    {START "    pipeline: '[]'\n    options: {allowDiskUse: maybe}\n",
     "s.yaml:5:29: ", "true or false"},
    {START "    pipeline: '[]'\n    options: {maxTimeMS: 0}\n", "s.yaml:5:26: ", "whole number"},
    {START "    pipeline: '[]'\n    options: {hint: '{x}'}\n", "s.yaml:5:23: ", "double quotes"},
    {START "    pipeline: '[]'\n    options: {readPreference: near}\n", "s.yaml:5:31: ", "nearest"},
    /* A pipeline written as YAML instead of JSON text. */
    {START "    pipeline: [{\"$match\": {}}]\n", "s.yaml:4:15: ", "write \"pipeline: |\""},
    {START "    pipeline: |\n      {\"$match\": {}}\n", "s.yaml:5:7: ", "expected ["},
    /* Errors inside a block of text have the line and column of the file. */
    {START "    pipeline: |\n      [\n        {\"$match\": {\"a\" 1}}\n      ]\n",
     "s.yaml:6:25: ", ""},
    {START "    pipeline: |\n      [\n        {\"$limit\": 3},\n      ]\n",
     "s.yaml:7:7: ", "a comma before a closing bracket"},
    {START "    pipeline: |\n      [\n        {\"$limit\": 3}\n",
     "s.yaml:6:22: ", "closing bracket or quote is missing"},
    {START "    pipeline: |\r\n      [\r\n        {$limit: 3}\r\n      ]\r\n",
     "s.yaml:6:10: ", "double quotes"},
    {START "    pipeline: '[{\"$limit\" 3}]'\n", "s.yaml:4:27: ", ""},
    {START "    pipeline: '[]'\n    options: {hint: '{\"a\": 1} {}'}\n",
     "s.yaml:5:31: ", "text after the end"},
    {START "    pipeline: '[1]'\n", "s.yaml:4:16: ", "element 1 of the array is not a document"},
    {START "    pipeline: '[{}]'\n", "s.yaml:4:15: ", "stage 1"},
    {START "    pipeline: '[{\"match\": {}}]'\n", "s.yaml:4:15: ", "stage 1"},
    {START "    pipeline: '[{\"$a\": 1, \"$b\": 1}]'\n", "s.yaml:4:15: ", "a second key, \"$b\""},
    {START "    pipeline: '[{\"$match\": {}}, {\"$out\": \"x\"}]'\n",
     "s.yaml:4:15: ", "stage 2: $out writes"},
    {START "    pipeline: '[{\"$merge\": \"x\"}]'\n", "s.yaml:4:15: ", "$merge writes"},
    {START "    pipeline: '[]'\n    expect: '[1]'\n", "s.yaml:5:14: ", "not a document"},
    {"name: s\nqueries: [\n", "s.yaml:3:1: ", ""},
    {"name: \"a\\0b\"\n", "s.yaml:1:7: ", "one line"},
    {"name: s\ndescription: \"a\\0b\"\n", "s.yaml:2:14: ", "expected text"},
    {"name: \"a\\nb\"\n", "s.yaml:1:7: ", "one line"},
    {"name: \xff\n", "s.yaml: byte 6: ", ""},
    {START "    pipeline: '[]'\n---\nname: t\n", "s.yaml:6:1: ", "second document"},
};

TEST(wrong_suites) {
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sl_error error = {0};
        sl_suite *suite;
        if (parse(wrong[i].text, &suite, &error))
            fail_msg("accepted:\n%s", wrong[i].text);
        if (strncmp(error.message, wrong[i].position, strlen(wrong[i].position)) != 0 ||
            !strstr(error.message, wrong[i].part))
            fail_msg("expected %s... %s, but the message is %s for\n%s", wrong[i].position,
                     wrong[i].part, error.message, wrong[i].text);
        assert_null(suite);
        assert_int_equal(error.code, SL_EXIT_SOURCE);
    }
}

/* All suites of `queries/` can be read. */
TEST(built_in_suites) {
    static const char *const names[] = {"mot", "mot-long"};
    static const char *const queries[] = {"green-ness", "pass-rate-by-age", "makes",
                                          "worst-models"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        sl_error error = {0};
        sl_suite *suite;
        if (!sl_suite_open(names[i], &suite, &error))
            fail_msg("%s", error.message);
        assert_string_equal(suite->name, names[i]);
        assert_int_equal(suite->count, 4);
        for (size_t k = 0; k < 4; k++)
            assert_string_equal(suite->queries[k].name, queries[k]);
        sl_suite_destroy(suite);
    }
    for (const sl_embedded *file = sl_embedded_queries; file->name; file++) {
        sl_error error = {0};
        sl_suite *suite;
        if (!sl_suite_parse(file->text, file->length, file->name, &suite, &error))
            fail_msg("%s", error.message);
        sl_suite_destroy(suite);
    }
}

TEST(files) {
    const char *path = unit_path("own.yaml");
    sl_error error = {0};
    sl_suite *suite;
    assert_false(sl_suite_open(path, &suite, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_contains(error.message, path);
    assert_false(sl_suite_open(unit_folder(), &suite, &error));
    assert_contains(error.message, "directory");
    static const char text[] = "name: own\nqueries: [{name: q, pipeline: '[]'}]\n";
    unit_write(path, text, sizeof text - 1);
    assert_true(sl_suite_open(path, &suite, &error));
    assert_string_equal(suite->name, "own");
    sl_suite_destroy(suite);
}
