/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of update and delete commands, and the judgement of their answers. */
#include "send/reply.h"
#include "send/writer.h"
#include "unit.h"

/* The command for documents given as JSON. */
static const char *command_of(sl_mode mode, const char *match, const char *const *documents,
                              uint32_t count, uint32_t *taken) {
    bson_t views[8];
    uint32_t places[8];
    sl_key_fields keys = {.mode = mode};
    sl_statements statements = {0};
    bson_t command, *head = unit_keep_bson(BCON_NEW(sl_modes[mode].command, BCON_UTF8("t")));
    assert_null(sl_key_names_read(match, &keys.match));
    for (uint32_t i = 0; i < count; i++) {
        const bson_t *document = unit_json(documents[i]);
        assert_true(bson_init_static(&views[i], bson_get_data(document), document->len));
        places[i] = i;
    }
    sl_error error = {0};
    const char *json = NULL;
    if (sl_statements_write(&statements, &keys, head, views, places, count, taken, &command,
                            &error)) {
        assert_true(bson_validate(&command, BSON_VALIDATE_UTF8, NULL));
        json = unit_json_of(&command);
    } else {
        assert_contains(error.message, "lacks a field of --match-fields");
    }
    free(statements.bytes);
    sl_key_names_clear(&keys.match);
    return json;
}

static void check(sl_mode mode, const char *match, const char *document, const char *expected) {
    uint32_t taken;
    assert_string_equal(command_of(mode, match, &document, 1, &taken), expected);
    assert_true(taken == 1);
}

TEST(statements_of_each_mode) {
    check(
        SL_MODE_UPSERT, "_id", "{\"_id\":5,\"a\":1}",
        "{ \"update\" : \"t\", \"updates\" : [ { \"q\" : { \"_id\" : { \"$eq\" : 5 } }, \"u\" : { "
        "\"_id\" : 5, \"a\" : 1 }, \"upsert\" : true } ] }");
    check(
        SL_MODE_REPLACE, "_id", "{\"_id\":5,\"a\":1}",
        "{ \"update\" : \"t\", \"updates\" : [ { \"q\" : { \"_id\" : { \"$eq\" : 5 } }, \"u\" : { "
        "\"_id\" : 5, \"a\" : 1 } } ] }");
    check(SL_MODE_MERGE, "_id,b", "{\"_id\":5,\"a\":1,\"b\":\"x\",\"c\":[1]}",
          "{ \"update\" : \"t\", \"updates\" : [ { \"q\" : { \"_id\" : { \"$eq\" : 5 }, \"b\" : { "
          "\"$eq\" : \"x\" } }, \"u\" : { \"$set\" : { \"a\" : 1, \"c\" : [ 1 ] } }, \"upsert\" : "
          "true } ] }");
    check(SL_MODE_UPDATE, "k", "{\"k\":5}",
          "{ \"update\" : \"t\", \"updates\" : [ { \"q\" : { \"k\" : { \"$eq\" : 5 } }, \"u\" : { "
          "\"$setOnInsert\" : { \"k\" : 5 } } } ] }");
    check(
        SL_MODE_DELETE, "a.b", "{\"_id\":5,\"a\":{\"b\":{\"$gt\":1}}}",
        "{ \"delete\" : \"t\", \"deletes\" : [ { \"q\" : { \"a.b\" : { \"$eq\" : { \"$gt\" : 1 } } "
        "}, \"limit\" : 1 } ] }");
}

TEST(a_record_without_a_match_field_is_not_sent) { /* any document could match it */
    const char *documents[] = {"{\"_id\":5,\"a\":1}", "{\"_id\":6}"};
    uint32_t taken;
    assert_null(command_of(SL_MODE_DELETE, "_id,a", documents, 2, &taken));
}

TEST(a_command_takes_what_fits) {
    char *large = unit_keep(malloc((8u << 20) + 100));
    strcpy(large, "{\"_id\":1,\"t\":\"");
    size_t used = strlen(large);
    memset(large + used, 'x', 8u << 20);
    strcpy(large + used + (8u << 20), "\"}");
    const char *documents[] = {"{\"_id\":2}", large, large};
    uint32_t taken;
    command_of(SL_MODE_UPSERT, "_id", documents, 3, &taken);
    assert_true(taken == 2);
    command_of(SL_MODE_DELETE, "_id", documents, 3, &taken);
    assert_true(taken == 3);
}

/* The document of a record with these fields after those of --id-field became its _id, as JSON, or
 * the reason why it cannot be sent. */
static const char *identified(sl_mode mode, const char *id, const char *match, bool own_id,
                              const char *json) {
    const sl_format_options options = {.mode = mode, .id_fields = id, .match_fields = match};
    sl_key_fields *keys;
    sl_error error;
    sl_reject reject = {0};
    const bson_t *record = unit_json(json);
    uint8_t bytes[2000], *end = bytes + record->len;
    memcpy(bytes, bson_get_data(record), record->len);
    assert_true(sl_key_fields_create(&options, &keys, &error) && keys);
    bool ok = sl_key_fields_apply(keys, own_id, bytes, &end, &reject);
    sl_key_fields_destroy(keys);
    if (!ok)
        return unit_keep(strdup(reject.reason));
    bson_t document;
    assert_true(bson_init_static(&document, bytes, (size_t)(end - bytes)));
    return unit_json_of(&document);
}

TEST(documents_as_they_are_matched) {
    static const char position[] = "{\"_id\":{\"$numberLong\":\"5\"},";
    static const struct {
        sl_mode mode;
        const char *id, *match;
        bool own_id;
        const char *fields,
            *expected; /* after the _id; `expected`: part of the document or reason */
    } cases[] = {
        {SL_MODE_UPSERT, NULL, "k", false, "\"k\":1,\"t\":2}", "{ \"k\" : 1, \"t\" : 2 }"},
        {SL_MODE_UPSERT, NULL, "k", true, "\"k\":1}", "{ \"_id\" : 5, \"k\" : 1 }"},
        {SL_MODE_UPSERT, NULL, NULL, true, "\"k\":1}", "{ \"_id\" : 5, \"k\" : 1 }"},
        {SL_MODE_UPSERT, NULL, NULL, false, "\"k\":1}", "the field is missing"},
        {SL_MODE_UPSERT, NULL, "k,n", false, "\"k\":1}", "--match-fields needs it"},
        {SL_MODE_UPSERT, "k", NULL, false, "\"t\":2,\"k\":1}", "{ \"_id\" : 1, \"t\" : 2 }"},
        {SL_MODE_INSERT, "k", NULL, false, "\"t\":2,\"k\":1}", "{ \"_id\" : 1, \"t\" : 2 }"},
        {SL_MODE_UPSERT, "k", NULL, true, "\"k\":1}", "already has an _id"},
        {SL_MODE_UPSERT, "k", "n", false, "\"n\":3,\"k\":1}", "{ \"_id\" : 1, \"n\" : 3 }"},
        {SL_MODE_UPSERT, NULL, "k", false, "\"k\":1,\"$n\":3}", "begins with $"},
        {SL_MODE_UPSERT, NULL, "k", false, "\"k\":1,\"a.b\":3}", "{ \"k\" : 1, \"a.b\" : 3 }"},
        {SL_MODE_UPSERT, NULL, "k", false, "\"k\":1,\"\":3}", "{ \"k\" : 1, \"\" : 3 }"},
        {SL_MODE_MERGE, NULL, "k", false, "\"k\":1,\"a.b\":3}", "contains a dot"},
        {SL_MODE_MERGE, NULL, "k", false, "\"k\":1,\"\":3}", "is empty"},
        {SL_MODE_DELETE, NULL, "k", false, "\"k\":1,\"$n\":3}", "{ \"k\" : 1, \"$n\" : 3 }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[200];
        snprintf(json, sizeof json, "%s%s", position, cases[i].fields);
        const char *found =
            identified(cases[i].mode, cases[i].id, cases[i].match, cases[i].own_id, json);
        if (!strstr(found, cases[i].expected))
            fail_msg("case %zu: %s", i, found);
    }
}

static sl_verdict judge(sl_mode mode, uint32_t count, const char *json, sl_modified *found) {
    bson_error_t why = {0};
    sl_error error;
    const sl_reply reply = {
        .ok = true, .body = unit_json(json), .why = &why, .count = count, .mode = mode};
    return sl_reply_judge_modify(&reply, found, &error);
}

TEST(answers_that_add_up) {
    sl_modified found;
    assert_true(
        judge(SL_MODE_UPSERT, 4,
              "{\"n\":3,\"nModified\":1,\"upserted\":[{\"index\":2,\"_id\":5}],\"writeErrors\":[{"
              "\"index\":0,\"code\":121,\"errmsg\":\"no\"}]}",
              &found) == SL_REPLY_COMPLETE);
    assert_true(found.matched == 2 && found.modified == 1 && found.upserted == 1 &&
                found.refused == 1);
    assert_true(judge(SL_MODE_REPLACE, 4, "{\"n\":3,\"nModified\":1}", &found) ==
                SL_REPLY_COMPLETE);
    assert_true(found.matched == 3 && found.modified == 1);
    assert_true(judge(SL_MODE_DELETE, 4, "{\"n\":1}", &found) == SL_REPLY_COMPLETE);
    assert_true(found.matched == 1 && found.modified == 1);
    /* The stored document has another _id. */
    assert_true(judge(SL_MODE_UPSERT, 1,
                      "{\"n\":0,\"nModified\":0,\"writeErrors\":[{\"index\":0,\"code\":66}]}",
                      &found) == SL_REPLY_COMPLETE);
}

TEST(answers_that_do_not_add_up) {
    static const struct {
        sl_mode mode;
        const char *json;
    } rows[] = {
        {SL_MODE_UPSERT, "{\"n\":1,\"nModified\":0}"},
        {SL_MODE_UPSERT, "{\"n\":3,\"nModified\":0}"},
        {SL_MODE_UPSERT, "{\"n\":2}"},
        {SL_MODE_UPSERT, "{\"nModified\":0}"},
        {SL_MODE_UPSERT, "{\"n\":2,\"nModified\":3}"},
        {SL_MODE_UPSERT, "{\"n\":2,\"nModified\":2,\"upserted\":[{\"index\":0}]}"},
        {SL_MODE_UPSERT, "{\"n\":2,\"nModified\":0,\"upserted\":[{\"index\":2}]}"},
        {SL_MODE_UPSERT, "{\"n\":2,\"nModified\":0,\"upserted\":[{\"index\":1},{\"index\":1}]}"},
        {SL_MODE_UPSERT, "{\"n\":2,\"nModified\":0,\"upserted\":[{}]}"},
        {SL_MODE_UPSERT, "{\"n\":1,\"nModified\":0,\"upserted\":[{\"index\":0}],"
                         "\"writeErrors\":[{\"index\":0,\"code\":121}]}"},
        {SL_MODE_REPLACE, "{\"n\":{\"$numberLong\":\"9223372036854775807\"},\"nModified\":0,"
                          "\"writeErrors\":[{\"index\":0,\"code\":121}]}"},
        {SL_MODE_UPSERT, "{\"n\":1,\"nModified\":0,\"writeErrors\":[{\"index\":7,\"code\":121}]}"},
        {SL_MODE_REPLACE, "{\"n\":3,\"nModified\":0}"},
        {SL_MODE_REPLACE, "{\"n\":1,\"nModified\":0,\"upserted\":[{\"index\":0}]}"},
        {SL_MODE_DELETE, "{\"n\":3}"},
        {SL_MODE_DELETE, "{\"ok\":1}"},
        {SL_MODE_DELETE, "{\"n\":2,\"writeConcernError\":{\"code\":64,\"errmsg\":\"late\"}}"},
        {SL_MODE_DELETE, "{\"n\":1,\"writeErrors\":[{\"index\":0,\"code\":189}]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_modified found;
        if (judge(rows[i].mode, 2, rows[i].json, &found) != SL_REPLY_UNKNOWN)
            fail_msg("%s", rows[i].json);
    }
    sl_modified found;
    assert_int_equal(judge(SL_MODE_UPSERT, 3,
                           "{\"n\":3,\"nModified\":0,\"upserted\":[{\"index\":1},"
                           "{\"index\":0},{\"index\":1}]}",
                           &found),
                     SL_REPLY_UNKNOWN);
}

TEST(repeated_keys_are_counted_in_bounded_memory) {
    sl_key_fields keys = {.mode = SL_MODE_UPSERT};
    assert_null(sl_key_names_read("_id,a", &keys.match));
    sl_repeats *repeats = sl_repeats_create(&keys);
    char example[80];
    bool exact;
    for (int32_t i = 0; i < 1200000; i++) { /* after 300,000, the first ones with another value */
        bson_t *one = BCON_NEW("_id", BCON_INT32(i < 300000 ? i : i - 300000), "a", BCON_UTF8("x"),
                               "b", BCON_INT32(i < 300000 || i % 10 > 0 ? 1 : 2));
        sl_repeats_add(repeats, one, 1);
        bson_destroy(one);
        if (i == 599999) {
            assert_int_equal(sl_repeats_count(repeats, &exact, example, sizeof example), 30000);
            assert_true(exact);
            assert_string_equal(example, "{ \"_id\" : 0, \"a\" : \"x\" }");
        }
    }
    for (int32_t i = 0; i < 900000; i++) {
        bson_t *one = BCON_NEW("_id", BCON_INT32(i), "a", BCON_UTF8("x"), "b", BCON_INT32(3));
        sl_repeats_add(repeats, one, 1);
        bson_destroy(one);
    }
    assert_in_range(sl_repeats_count(repeats, &exact, example, sizeof example), 925000, 935000);
    assert_false(exact);
    sl_repeats_destroy(repeats);
    sl_key_names_clear(&keys.match);
}
