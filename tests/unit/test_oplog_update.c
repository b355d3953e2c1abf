/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of the oplog, applied to documents. Each expected document is what servers of version 5.0
 * and 6.0 store when they apply the entry. */
#include "restore/oplog.h"
#include "unit.h"

#define DOCUMENT "{'_id': 1, 'a': 1, 'b': {'c': 1, 'd': [1, 2, 3]}, 'e': [{'x': 1}, {'y': 2}, 3]}"

static bson_t *parse(const char *text) {
    char json[600];
    snprintf(json, sizeof json, "%s", text);
    for (char *at = json; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    bson_t *made = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(made);
    return made;
}

typedef struct update_case {
    const char *before, *update, *expected;
} update_case;

static void check_case(const update_case *one) {
    bson_t *before = parse(one->before), *update = parse(one->update),
           *expected = parse(one->expected);
    sl_error error = {0};
    assert_true(sl_oplog_update_check(update, &error));
    bson_t *made = sl_oplog_update(before, update, &error);
    assert_non_null(made);
    if (!bson_equal(made, expected))
        fail_msg("%s: %s", one->update, bson_as_relaxed_extended_json(made, NULL));
    bson_destroy(made);
    made = sl_oplog_update(expected, update, &error); /* repeated, it has no effect */
    if (!bson_equal(made, expected))
        fail_msg("repeated %s: %s", one->update, bson_as_relaxed_extended_json(made, NULL));
    bson_destroy(made);
    bson_destroy(before);
    bson_destroy(update);
    bson_destroy(expected);
}

TEST(documents_and_modifiers) {
    static const update_case cases[] = {
        {DOCUMENT, "{'_id': 1, 'n': 2}", "{'_id': 1, 'n': 2}"},
        {DOCUMENT, "{'$v': 1, '$set': {'a': 2, 'b.c': 'x', 'g.h': 1}}",
         "{'_id': 1, 'a': 2, 'b': {'c': 'x', 'd': [1, 2, 3]}, 'e': [{'x': 1}, {'y': 2}, 3], 'g': "
         "{'h': 1}}"},
        {DOCUMENT, "{'$set': {'a': 2}, '$unset': {'b': true, 'none.x': 1}}",
         "{'_id': 1, 'a': 2, 'e': [{'x': 1}, {'y': 2}, 3]}"},
        {DOCUMENT, "{'$v': 1, '$set': {'b.d.1': 'two', 'b.d.5': 6, 'e.0.x': 2}}",
         "{'_id': 1, 'a': 1, 'b': {'c': 1, 'd': [1, 'two', 3, null, null, 6]}, 'e': [{'x': 2}, "
         "{'y': 2}, 3]}"},
        {DOCUMENT, "{'$v': 1, '$unset': {'b.d.0': 1, 'e.1.y': 1}}",
         "{'_id': 1, 'a': 1, 'b': {'c': 1, 'd': [null, 2, 3]}, 'e': [{'x': 1}, {}, 3]}"},
        {DOCUMENT, "{'$v': 1, '$set': {'a.x': 1, 'b.d.name': 2, 'e.2.q': 3}}", DOCUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

TEST(diffs) {
    static const update_case cases[] = {
        {DOCUMENT, "{'$v': 2, 'diff': {'d': {'e': false, 'none': false}, 'u': {'a': [1]}}}",
         "{'_id': 1, 'a': [1], 'b': {'c': 1, 'd': [1, 2, 3]}}"},
        {"{'_id': 1, 'a': 1, 'b': 2}", "{'$v': 2, 'diff': {'i': {'a': 7, 'm': 8}}}",
         "{'_id': 1, 'b': 2, 'a': 7, 'm': 8}"},
        {DOCUMENT, "{'$v': 2, 'diff': {'sb': {'i': {'n': 1}, 'sd': {'a': true, 'u1': 20}}}}",
         "{'_id': 1, 'a': 1, 'b': {'c': 1, 'd': [1, 20, 3], 'n': 1}, 'e': [{'x': 1}, {'y': 2}, "
         "3]}"},
        {"{'a': [1, 2, 3]}", "{'$v': 2, 'diff': {'sa': {'a': true, 'u5': 6}}}",
         "{'a': [1, 2, 3, null, null, 6]}"},
        {"{'a': [1, 2, 3]}", "{'$v': 2, 'diff': {'sa': {'a': true, 'l': 2, 'u0': 'x'}}}",
         "{'a': ['x', 2]}"},
        {"{'a': [1]}", "{'$v': 2, 'diff': {'sa': {'a': true, 'l': 3, 'u1': 2}}}",
         "{'a': [1, 2, null]}"},
        {"{'a': [{'x': 1}]}", "{'$v': 2, 'diff': {'sa': {'a': true, 's0': {'u': {'x': 2}}}}}",
         "{'a': [{'x': 2}]}"},
        {"{'a': 1, 'b': {}, 'c': [1]}",
         "{'$v': 2, 'diff': {'sa': {'u': {'x': 1}}, 'sb': {'a': true, 'u0': 1}, 'sc': {'u': {'x': "
         "1}}, 'snone': {'u': {'x': 1}}}}",
         "{'a': null, 'b': null, 'c': null}"},
        {"{'s': 1, 'a.b': 1, '': {'x': 1}}",
         "{'$v': 2, 'diff': {'u': {'a.b': 2}, 'i': {'c.d': 1}, 's': {'u': {'x': 5}}}}",
         "{'s': 1, 'a.b': 2, '': {'x': 5}, 'c.d': 1}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(&cases[i]);
}

TEST(what_is_not_known_is_refused_by_name) {
    static const char *const updates[][2] = {
        {"{'$v': 1, '$inc': {'a': 1}}", "\"$inc\""},
        {"{'$v': 3, 'diff': {}}", "\"$v\" with an unknown version"},
        {"{'$v': 2, 'diff': {'b': {'x': 1}}}", "\"b\""},
        {"{'$v': 2, 'diff': {'sa': {'a': true, 'u01': 1}}}", "\"u01\""},
        {"{'$v': 2, 'diff': {'sa': {'a': true, 'u2': 1, 'u1': 1}}}", "\"u1\""},
        {"{'$v': 2, 'diff': {'sa': {'a': true, 'u2000000': 1}}}", "\"u2000000\""},
        {"{'$v': 2, 'diff': {'sa': {'a': true, 'l': -1}}}", "\"l\""},
        {"{'$v': 2, 'other': {}}", "\"other\""},
    };
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        bson_t *update = parse(updates[i][0]);
        sl_error error = {0};
        assert_false(sl_oplog_update_check(update, &error));
        if (!strstr(error.message, updates[i][1]))
            fail_msg("%s: %s", updates[i][0], error.message);
        bson_destroy(update);
    }
}

TEST(a_path_is_not_deeper_than_a_document) {
    char text[600] = "{'$set': {'a";
    for (int i = 0; i < 200; i++)
        strcat(text, ".b");
    strcat(text, "': 1}}");
    bson_t *update = parse(text);
    sl_error error = {0};
    assert_false(sl_oplog_update_check(update, &error));
    assert_non_null(strstr(error.message, "has 201 names"));
    bson_destroy(update);
}

/* Each array may get two million elements. */
TEST(a_document_is_not_larger_than_servers_store) {
    static const char *const updates[] = {
        "{'$v': 2, 'diff': {'sa': {'a': true, 'u1999999': 1}, 'sb': {'a': true, 'u1999999': 1}}}",
        "{'$v': 1, '$set': {'a.1999999': 1, 'b.1999999': 1}}"};
    bson_t *before = parse("{'a': [1], 'b': [1]}");
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        bson_t *update = parse(updates[i]);
        sl_error error = {0};
        assert_null(sl_oplog_update(before, update, &error));
        assert_int_equal(error.code, SL_EXIT_SOURCE);
        assert_non_null(strstr(error.message, "more than 16 MiB"));
        bson_destroy(update);
    }
    bson_destroy(before);
}

/* Also what the BSON library would write in another form: options of a regular expression. */
TEST(values_are_copied_byte_by_byte) {
    static const uint8_t before[16] = {16, 0, 0, 0, 0x0b, 'r', 0, 'x', 0, 'x', 'i', 0, 0x0a, 'n'};
    bson_t document, *update = parse("{'$v': 2, 'diff': {'i': {'m': 1}}}");
    assert_true(bson_init_static(&document, before, sizeof before));
    sl_error error = {0};
    bson_t *made = sl_oplog_update(&document, update, &error);
    assert_memory_equal(bson_get_data(made) + 4, before + 4, 11);
    bson_destroy(made);
    bson_destroy(update);
}
