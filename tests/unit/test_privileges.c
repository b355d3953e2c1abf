/* SPDX-License-Identifier: Apache-2.0 */
/* Names the missing privilege from the error message of a server or router. Without it, users would
 * have to find out from the text of a command which privilege they need. */
#include "cluster/internal.h"
#include "unit.h"

TEST(refusals_name_the_privilege) {
    static const struct {
        const char *message;
        const char *words;
    } cases[] = {
        {"not authorized on mot to execute command { insert: \"t\", ordered: false, $db: \"mot\" }",
         "insert on mot.t, which is needed to load documents"},
        {"not authorized on mot to execute command { aggregate: \"t\", pipeline: [ { $collStats: "
         "{ storageStats: {} } } ] }",
         "collStats on mot.t, which is needed to show sizes and counts"},
        {"not authorized on admin to execute command { moveChunk: \"mot.t\", bounds: [] }",
         "moveChunk on mot.t, which is needed to move chunks to their shards"},
        {"not authorized on admin to execute command { enableSharding: \"mot\" }",
         "enableSharding on database mot, which is needed to create the database"},
        {"not authorized on admin to execute command { balancerStop: 1, maxTimeMS: 60000 }",
         "update on config.settings, which is needed to stop the balancer"},
        {"not authorized on config to execute command { find: \"shards\", filter: {} }",
         "find on config.shards, which is needed to read stored documents"},
        {"not authorized on shardload to execute command { findAndModify: \"balancer\", query: {} "
         "}",
         "find, insert, update and remove on shardload.balancer, which is needed to store the "
         "balancer's mode"},
        {"not authorized on mot to execute command { mapReduce: \"t\" }", "mapReduce on mot.t; "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[600];
        assert_true(sl_privilege_in_words(cases[i].message, words, sizeof words));
        assert_non_null(strstr(words, cases[i].words));
    }
}

TEST(other_messages_are_not_changed) {
    char words[600];
    assert_false(sl_privilege_in_words("not authorized on mot", words, sizeof words));
    assert_false(sl_privilege_in_words("", words, sizeof words));
    assert_true(sl_privilege_in_words("not authorized on a to execute command { x", words,
                                      sizeof words)); /* truncated */
}
