/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of option values. A shard key that no server accepts must be refused before --drop drops
 * the collection. */
#include "cli/option_checks.h"
#include "unit.h"

TEST(shard_keys) {
    static const struct {
        const char *text;
        const char *message; /* NULL: valid */
    } rows[] = {
        {"none", NULL},
        {"{\"_id\": 1}", NULL},
        {"{\"_id\": 1.0}", NULL},
        {"{\"_id\": {\"$numberLong\": \"1\"}}", NULL},
        {"{\"st\": \"hashed\"}", NULL},
        {"{\"st\": 1, \"ts\": \"hashed\", \"at.x\": 1}", NULL},
        {"", "is not a key"},
        {"{}", "is not a key"},
        {"{\"st\": 0}", "is not a key"},
        {"{\"st\": \"up\"}", "is not a key"},
        {"{\"st\": 1, \"ts\": -1}", "\"ts\" is neither 1 nor \"hashed\""},
        {"{\"st\": 2}", "\"st\" is neither 1 nor"},
        {"{\"st\": 1.5}", "\"st\" is neither 1 nor"},
        {"{\"st\": \"2d\"}", "\"st\" is neither 1 nor"},
        {"{\"st\": \"2dsphere\"}", "\"st\" is neither 1 nor"},
        {"{\"st\": \"text\"}", "\"st\" is neither 1 nor"},
        {"{\"st\": \"hashed\", \"ts\": \"hashed\"}", "\"ts\" is a second \"hashed\" field"},
        {"{\"st\": 1, \"st\": 1}", "\"st\" is named twice"},
        {"{\"\": 1}", "\"\" is not the name of a field"},
        {"{\"a..b\": 1}", "is not the name of a field"},
        {"{\".a\": 1}", "is not the name of a field"},
        {"{\"a.\": 1}", "is not the name of a field"},
        {"{\"a.$id\": 1}", "is not the name of a field"},
        {"{\"$id\": 1}", "is not the name of a field"},
        {"{\"key\": {\"st\": 1}, \"unique\": true}", NULL},
        {"{\"key\": {\"st\": 1}}", NULL},
        {"{\"key\": 1}", NULL},
        {"{\"key\": {\"st\": \"hashed\"}, \"unique\": true}", "\"st\" is hashed"},
        {"{\"key\": {\"st\": 1}, \"sparse\": true}", "is not a key"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char problem[400] = "";
        bool good = sl_check_shard_key(rows[i].text, problem, sizeof problem);
        if (good != !rows[i].message)
            fail_msg("%s: %s", rows[i].text, good ? "accepted" : problem);
        if (!good && (!strstr(problem, rows[i].message) || !strstr(problem, "write it like")))
            fail_msg("%s: wrong message: %s", rows[i].text, problem);
    }
}

/* Index keys that no shard key may be are accepted. */
TEST(keys_of_indexes) {
    static const char *const good[] = {"{\"st\": 1, \"ts\": -1}",
                                       "{\"at\": \"2dsphere\"}",
                                       "{\"st\": \"hashed\"}",
                                       "{\"words\": \"text\"}",
                                       "{\"key\": {\"st\": 1}, \"unique\": true}",
                                       "{\"key\": {\"at\": 1}, \"expireAfterSeconds\": 3600}",
                                       "{\"key\": {\"a\": 1}, \"name\": \"x\", \"sparse\": true, "
                                       "\"collation\": {\"locale\": \"de\"}}",
                                       "{\"key\": {\"a\": 1}, \"partialFilterExpression\": {\"a\": "
                                       "{\"$gt\": 1}}}",
                                       "{\"a.b.$**\": 1}",
                                       "{\"owner.$id\": 1}",
                                       "{\"$**\": 1}"};
    static const char *const bad[] = {"{}",
                                      "{\"Kunden-Nr.\": 1}",
                                      "{\"a..b\": 1}",
                                      "{\"key\": {\"a.$b\": 1}}",
                                      "{\"st\": \"up\"}",
                                      "{\"st\": 0}",
                                      "st",
                                      "{\"key\": {}}",
                                      "{\"key\": {\"st\": 1}, \"uniq\": true}",
                                      "{\"key\": {\"st\": 1}, \"unique\": 1}"};
    char problem[400];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(sl_check_index(good[i], problem, sizeof problem));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sl_check_index(bad[i], problem, sizeof problem));
    assert_false(sl_check_index("{\"Nr.\": 1}", problem, sizeof problem));
    assert_non_null(strstr(problem, "\"Nr.\" is not the path of a field"));
}

TEST(names_of_shards) {
    static const char *const good[] = {"a", "a,b", "rs-0,rs-1,rs-2"};
    static const char *const bad[] = {"", ",", "a,", ",a", "a,,b"};
    char problem[300];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(sl_check_shard_names(good[i], problem, sizeof problem));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(sl_check_shard_names(bad[i], problem, sizeof problem));
        assert_non_null(strstr(problem, "contains an empty shard name"));
    }
}

/* Databases and collections of the server are refused. */
TEST(names_of_targets) {
    static const char *const good[] = {"a", "administration", "configs", "locale", "my_local"};
    static const char *const bad[] = {"admin", "config", "local", "Admin", "CONFIG", "", "a.b"};
    char problem[300];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(sl_check_database(good[i], problem, sizeof problem));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(sl_check_database(bad[i], problem, sizeof problem));
        assert_non_null(
            strstr(problem, i < 5 ? "a database of the server" : "is not a database name"));
    }
    assert_true(sl_check_collection("systems", problem, sizeof problem));
    assert_true(sl_check_collection("my.system.x", problem, sizeof problem));
    assert_false(sl_check_collection("system.users", problem, sizeof problem));
}
