/* SPDX-License-Identifier: Apache-2.0 */
/* The chunk map and the planning of splits and moves, with chunk lists written by hand. An error
 * here would count documents for a wrong shard, move chunks needlessly, or leave ranges on one
 * shard while the other shards are idle. */
#include <limits.h>

#include "cluster/internal.h"
#include "unit.h"

static sl_shard shards[] = {{"a", "a/h:1", false}, {"b", "b/h:2", false}, {"c", "c/h:3", false}};
static const sl_topology topology = {3, shards};

/* Appends a bound: MIN, MAX, NULL, TEXT, or a number after I (int32), L (int64) or D (double). */
static void append_bound(bson_t *chunk, const char *which, const char *word) {
    bson_t bound;
    bson_append_document_begin(chunk, which, -1, &bound);
    if (strcmp(word, "MIN") == 0)
        BSON_APPEND_MINKEY(&bound, "_id");
    else if (strcmp(word, "MAX") == 0)
        BSON_APPEND_MAXKEY(&bound, "_id");
    else if (strcmp(word, "NULL") == 0)
        BSON_APPEND_NULL(&bound, "_id");
    else if (strcmp(word, "TEXT") == 0)
        BSON_APPEND_UTF8(&bound, "_id", "text");
    else if (word[0] == 'I')
        BSON_APPEND_INT32(&bound, "_id", (int32_t)strtol(word + 1, NULL, 10));
    else if (word[0] == 'L')
        BSON_APPEND_INT64(&bound, "_id", strtoll(word + 1, NULL, 10));
    else if (word[0] == 'D')
        BSON_APPEND_DOUBLE(&bound, "_id", strtod(word + 1, NULL));
    else
        fail_msg("what is %s?", word);
    bson_append_document_end(chunk, &bound);
}

RELEASER(destroy_map, sl_shard_map_destroy)

/* Builds a map of "bound shard bound shard ... bound"; a semicolon starts a new list of chunks.
 * Valid until the end of the test; NULL if it is refused. */
static sl_shard_map *map_or_null(const char *text, sl_error *error) {
    bson_t *chunks = unit_keep_bson(bson_new()), chunk;
    char *copy = unit_keep(strdup(text)), *rest;
    char *minimum = strtok_r(copy, " ", &rest);
    for (int i = 0; minimum; i++) {
        char key[16];
        char *shard = strtok_r(NULL, " ", &rest);
        char *maximum = shard && *shard != ';' ? strtok_r(NULL, " ", &rest) : NULL;
        if (maximum) {
            snprintf(key, sizeof key, "%d", i);
            bson_append_document_begin(chunks, key, -1, &chunk);
            append_bound(&chunk, "min", minimum);
            append_bound(&chunk, "max", maximum);
            BSON_APPEND_UTF8(&chunk, "shard", shard);
            bson_append_document_end(chunks, &chunk);
        }
        minimum = maximum ? maximum : shard ? strtok_r(NULL, " ", &rest) : NULL;
    }
    sl_shard_map *map;
    bool ok = sl_shard_map_from_chunks(chunks, &topology, &map, error);
    assert_int_equal(ok, map != NULL);
    unit_release_later(destroy_map, map);
    return map;
}

static sl_shard_map *map_of(const char *text) {
    sl_error error = {0};
    sl_shard_map *map = map_or_null(text, &error);
    if (!map)
        fail_msg("%s: %s", text, error.message);
    return map;
}

/* Shards are found by a binary search: of many shards, a linear one for each chunk takes hours. */
TEST(test_shards_are_sorted_by_name) {
    bson_error_t wrong;
    sl_error error = {0};
    bson_t *documents = unit_keep_bson(bson_new_from_json(
        (const uint8_t
             *)"{\"0\": {\"_id\": \"c\"}, \"1\": {\"_id\": \"a\"}, \"2\": {\"_id\": \"b\"}}",
        -1, &wrong));
    sl_topology *made = calloc(1, sizeof *made);
    assert_true(made && sl_topology_add_shards(made, documents, &error));
    for (uint32_t i = 0, found = 9; i < 3; i++) {
        assert_string_equal(made->shards[i].name, shards[i].name);
        assert_true(sl_topology_find(made, shards[i].name, &found) && found == i);
        assert_false(sl_topology_find(made, "ab", &found));
    }
    sl_topology_destroy(made);
}

TEST(test_one_chunk_owns_everything) {
    sl_shard_map *map = map_of("MIN b MAX");
    const int64_t ids[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_int_equal(sl_shard_map_owner(map, ids[i]), 1);
}

TEST(test_bounds_are_half_open) {
    sl_shard_map *map = map_of("MIN a L-5 b L0 c L1099511627776 a MAX");
    assert_int_equal(sl_shard_map_owner(map, INT64_MIN), 0);
    assert_int_equal(sl_shard_map_owner(map, -6), 0);
    assert_int_equal(sl_shard_map_owner(map, -5), 1);
    assert_int_equal(sl_shard_map_owner(map, -1), 1);
    assert_int_equal(sl_shard_map_owner(map, 0), 2);
    assert_int_equal(sl_shard_map_owner(map, 1099511627775), 2);
    assert_int_equal(sl_shard_map_owner(map, 1099511627776), 0);
    assert_int_equal(sl_shard_map_owner(map, INT64_MAX), 0);
}

/* Bounds by other tools: int32, fractions, numbers beyond 64 bits, other types. */
TEST(test_bounds_of_other_types) {
    sl_shard_map *map = map_of("MIN c NULL c D-1e300 a I7 b D9.25 c D9.5 a D1e300 c TEXT b MAX");
    assert_int_equal(sl_shard_map_owner(map, INT64_MIN), 0);
    assert_int_equal(sl_shard_map_owner(map, 6), 0);
    assert_int_equal(sl_shard_map_owner(map, 7), 1);
    assert_int_equal(sl_shard_map_owner(map, 9), 1);
    assert_int_equal(sl_shard_map_owner(map, 10), 0);
    assert_int_equal(sl_shard_map_owner(map, INT64_MAX), 0);
}

TEST(test_extreme_integers) {
    sl_shard_map *map = map_of("MIN a L-9223372036854775808 b L9223372036854775807 c MAX");
    assert_int_equal(sl_shard_map_owner(map, INT64_MIN), 1);
    assert_int_equal(sl_shard_map_owner(map, INT64_MAX - 1), 1);
    assert_int_equal(sl_shard_map_owner(map, INT64_MAX), 2);
}

/* The owner of every id in a thousand chunks, compared with the definition. */
TEST(test_many_chunks) {
    char text[16000] = "MIN";
    for (int i = 0, used = 3; i < 1000; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, i < 999 ? " %c L%d" : " %c MAX",
                         "abc"[i % 3], (i + 1) * 10);
    sl_shard_map *map = map_of(text);
    for (int64_t id = -20; id < 10020; id++) {
        int64_t chunk = id < 0 ? 0 : id / 10 > 999 ? 999 : id / 10;
        assert_int_equal(sl_shard_map_owner(map, id), chunk % 3);
    }
}

/* The owner of a document in a map by _id is computed only for a 64-bit _id. */
TEST(test_owner_of_a_document) {
    static const struct {
        const char *json;
        int shard;
    } rows[] = {
        {"{\"_id\": {\"$numberLong\": \"-1\"}, \"k\": 5}", 0},
        {"{\"k\": 5, \"_id\": {\"$numberLong\": \"0\"}}", 1},
        {"{\"_id\": \"text\"}", -1},
        {"{\"k\": {\"$numberLong\": \"5\"}}", -1},
    };
    sl_shard_map *map = map_of("MIN a L0 b MAX");
    assert_int_equal(sl_shard_map_route(map), SL_ROUTE_BY_ID);
    assert_true(sl_shard_map_by_id(map));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bson_t *document = unit_json(rows[i].json);
        sl_owner_cache cache = {0};
        uint32_t shard = 99;
        assert_int_equal(sl_shard_map_owner_of(map, bson_get_data(document), &cache, &shard),
                         rows[i].shard >= 0);
        if (rows[i].shard >= 0)
            assert_int_equal(shard, rows[i].shard);
    }
}

/* An inconsistent map, read while chunks were split or moved, is refused. */
TEST(test_inconsistent_maps_are_refused) {
    static const char *const torn[] = {
        "",                      /* no chunks */
        "MIN a L5",              /* no last chunk */
        "L5 a MAX",              /* no first chunk */
        "MIN a L5 ; L6 a MAX",   /* a hole */
        "MIN a L5 ; L4 a MAX",   /* an overlap */
        "MIN a L5 a L1 a MAX",   /* descending bounds */
        "MIN a L5 ; NULL a MAX", /* a hole of another type */
        "MIN a L5 nowhere MAX",  /* an unknown shard */
        "MIN a MAX ; MIN a MAX", /* overlapping chunks */
    };
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        sl_error error = {0};
        assert_null(map_or_null(torn[i], &error));
        assert_int_equal(error.code, SL_EXIT_CLUSTER);
        assert_true(strlen(error.message) > 0);
    }
}

/* The router finds the owners when a bound has a type that the loader does not compare. */
TEST(test_a_decimal_bound_leaves_owners_to_the_router) {
    sl_error error = {0};
    sl_shard_map *map;
    bson_decimal128_t five;
    assert_true(bson_decimal128_from_string("5", &five));
    bson_t *chunks = BCON_NEW("0", "{", "min", "{", "_id", BCON_MINKEY, "}", "max", "{", "_id",
                              BCON_DECIMAL128(&five), "}", "shard", "a", "}", "1", "{", "min", "{",
                              "_id", BCON_DECIMAL128(&five), "}", "max", "{", "_id", BCON_MAXKEY,
                              "}", "shard", "b", "}");
    assert_true(sl_shard_map_from_chunks(chunks, &topology, &map, &error));
    assert_int_equal(sl_shard_map_route(map), SL_ROUTE_NONE);
    sl_shard_map_destroy(map);
    bson_destroy(chunks);
}

/* Chunks of another shard key, and documents that are not chunks. */
TEST(test_chunks_without_id_are_refused) {
    bson_t *chunks[] = {
        BCON_NEW("0", "{", "min", "{", "k", BCON_MINKEY, "}", "max", "{", "k", BCON_MAXKEY, "}",
                 "shard", "a", "}"),
        BCON_NEW("0", "{", "min", "{", "_id", BCON_MINKEY, "}", "shard", "a", "}"),
        BCON_NEW("0", "a"),
    };
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        sl_error error = {0};
        sl_shard_map *map;
        assert_false(sl_shard_map_from_chunks(chunks[i], &topology, &map, &error));
        assert_null(map);
        assert_int_equal(error.code, SL_EXIT_CLUSTER);
        bson_destroy(chunks[i]);
    }
}

TEST(test_a_key_behind_a_value_of_unknown_length_is_not_known) {
    bson_value_t value;
    bson_t *document = BCON_NEW("r", BCON_REGEX("x", ""), "k", BCON_INT32(1));
    assert_false(sl_key_value_at(bson_get_data(document), "k", false, &value));
    bson_destroy(document);
}

/* The plan as text: "s5" is a split at 5, "m[5,9)b" a move to b; bounds of other types are "?". */
static void describe(const sl_chunk_steps *steps, char *out, size_t room) {
    out[0] = '\0';
    for (size_t i = 0; i < steps->count; i++) {
        const sl_chunk_step *step = &steps->items[i];
        char bounds[2][32];
        const bson_value_t *values[] = {&step->minimum, &step->maximum};
        for (int k = 0; k < 2; k++) {
            if (values[k]->value_type == BSON_TYPE_INT64)
                snprintf(bounds[k], sizeof bounds[k], "%lld", (long long)values[k]->value.v_int64);
            else
                strcpy(bounds[k], "?");
        }
        size_t used = strlen(out);
        if (step->move)
            snprintf(out + used, room - used, "m[%s,%s)%s ", bounds[0], bounds[1],
                     shards[step->shard].name);
        else
            snprintf(out + used, room - used, "s%s ", bounds[0]);
    }
}

static void assert_plan(const char *chunks, const sl_range *ranges, size_t count,
                        const char *expected) {
    sl_shard_map *map = map_of(chunks);
    sl_chunk_steps steps = {0};
    sl_error error;
    for (size_t i = 0; i < count; i++) {
        size_t before = steps.count;
        assert_true(sl_plan_range(map, &ranges[i], &steps, &error));
        assert_int_equal(sl_range_is_placed(map, &ranges[i]), steps.count == before);
    }
    char text[400];
    describe(&steps, text, sizeof text);
    assert_string_equal(text, expected);
    free(steps.items);
}

/* A new collection is on one shard; only the ranges of other shards are split off. */
TEST(test_plan_for_a_new_collection) {
    const sl_range ranges[] = {{10, 20, 0}, {20, 30, 1}, {30, 40, 0}, {40, 50, 1}};
    assert_plan("MIN a MAX", ranges, 4, "s20 s30 m[20,30)b s40 s50 m[40,50)b ");
}

TEST(test_plan_shares_the_bounds_of_neighbours) {
    const sl_range ranges[] = {{10, 20, 0}, {20, 30, 1}, {30, 40, 2}};
    assert_plan("MIN c MAX", ranges, 3, "s10 s20 m[10,20)a s30 m[20,30)b ");
}

TEST(test_plan_is_empty_if_all_ranges_are_placed) {
    const sl_range ranges[] = {{10, 20, 0}, {20, 30, 1}, {30, 35, 0}};
    assert_plan("MIN a L20 b L30 a MAX", ranges, 3, "");
}

/* A range that contains existing chunks: only those on a wrong shard move, by the cluster's
 * bounds. */
TEST(test_plan_moves_existing_chunks) {
    const sl_range ranges[] = {{10, 40, 1}};
    assert_plan("MIN a L10 a L20 b L30 c MAX", ranges, 1, "m[10,20)b s40 m[30,40)b ");
}

TEST(test_plan_keeps_bounds_of_other_types) {
    const sl_range ranges[] = {{10, 40, 1}};
    assert_plan("MIN a D9.5 a I40 a MAX", ranges, 1, "m[?,?)b ");
}

TEST(test_plan_up_to_the_last_id) {
    const sl_range ranges[] = {{10, INT64_MAX, 1}};
    assert_plan("MIN a MAX", ranges, 1, "s10 s9223372036854775807 m[10,9223372036854775807)b ");
}
