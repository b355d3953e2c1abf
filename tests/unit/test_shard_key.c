/* SPDX-License-Identifier: Apache-2.0 */
/* Shard keys without a server: the order of values, their hashes as a server computed them, and the
 * owners of documents in chunk maps written by hand. test_cluster_routing.c compares the same with
 * a real cluster. */
#include "cluster/internal.h"
#include "unit.h"

static sl_shard shards[] = {{"a", "a/h:1", false}, {"b", "b/h:2", false}, {"c", "c/h:3", false}};
static const sl_topology topology = {3, shards};

/* ---- values ---- */

/* The values of a row are equal, and larger than those of the row before. */
static const char *const order[] = {
    "[{'$minKey': 1}]",
    "[null]",
    "[{'$numberDouble': 'NaN'}]",
    "[{'$numberDouble': '-Infinity'}]",
    "[-1e300]",
    "[{'$numberLong': '-9223372036854775808'}, -9223372036854775808.0]",
    "[{'$numberLong': '-9223372036854775807'}]",
    "[{'$numberInt': '-2'}, {'$numberLong': '-2'}, -2.0]",
    "[-1.5]",
    "[-1]",
    "[-0.25]",
    "[0, 0.0, {'$numberDouble': '-0.0'}, {'$numberLong': '0'}]",
    "[5e-324]",
    "[2147483647, 2147483647.0]",
    "[2147483647.5]",
    "[{'$numberLong': '9007199254740992'}, 9007199254740992.0]",
    "[{'$numberLong': '9007199254740993'}]", /* not representable as a double */
    "[{'$numberLong': '9007199254740994'}, 9007199254740994.0]",
    "[{'$numberLong': '9223372036854775807'}]",
    "[9223372036854775808.0]",
    "[{'$numberDouble': 'Infinity'}]",
    "['']",
    "['\\u0000']",
    "['A']",
    "['a']",
    "['a\\u0000']",
    "['aa']",
    "['b']",
    "['\\u00e9']", /* larger than any ASCII text, byte by byte */
    "[{'$binary': {'base64': '', 'subType': '00'}}]",
    "[{'$binary': {'base64': '/w==', 'subType': '00'}}]",
    "[{'$binary': {'base64': 'AA==', 'subType': '80'}}]",
    "[{'$binary': {'base64': 'AAA=', 'subType': '00'}}]",
    "[{'$oid': '000000000000000000000001'}]",
    "[{'$oid': 'ff0000000000000000000000'}]",
    "[false]",
    "[true]",
    "[{'$date': {'$numberLong': '-1'}}]",
    "[{'$date': {'$numberLong': '0'}}]",
    "[{'$date': {'$numberLong': '4102444800000'}}]",
    "[{'$timestamp': {'t': 0, 'i': 4294967295}}]",
    "[{'$timestamp': {'t': 1, 'i': 0}}]",
    "[{'$timestamp': {'t': 4294967295, 'i': 1}}]",
    "[{'$maxKey': 1}]",
};
#define ROWS (sizeof order / sizeof order[0])

/* Parses JSON that is written with single quotes. */
static bson_t *quoted(const char *text) {
    char copy[2000];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; *at; at++) {
        if (*at == '\'')
            *at = '"';
    }
    return unit_json(copy);
}

TEST(test_order_of_all_kinds) {
    bson_t *rows[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        rows[i] = quoted(order[i]);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < ROWS; j++) {
            bson_iter_t a, b;
            assert_true(bson_iter_init(&a, rows[i]));
            while (bson_iter_next(&a)) {
                assert_true(sl_value_is_known(bson_iter_value(&a)));
                assert_true(bson_iter_init(&b, rows[j]));
                while (bson_iter_next(&b)) {
                    int found = sl_value_compare(bson_iter_value(&a), bson_iter_value(&b));
                    if ((found > 0) - (found < 0) != (i > j) - (i < j))
                        fail_msg("%s against %s: %d", order[i], order[j], found);
                }
            }
        }
    }
}

/* The hashes of a hashed index, as computed by server 6.0.5. */
static const struct {
    const char *value;
    int64_t hash;
} hashes[] = {
    {"[{'$minKey': 1}]", 7961148599568647290},
    {"[null]", 2338878944348059895},
    {"[{'$numberDouble': 'NaN'}]", 4854801880128277513},
    {"[{'$numberDouble': 'Infinity'}]", 921523596458303250},
    {"[{'$numberDouble': '-Infinity'}]", 4532067210535695462},
    {"[{'$numberDouble': '9223372036854775808.0'}]", 4532067210535695462},
    {"[{'$numberLong': '9223372036854775807'}]", 921523596458303250},
    {"[{'$numberLong': '-9223372036854775808'}]", 4532067210535695462},
    {"[-1e300]", 4532067210535695462},
    {"[1e300]", 921523596458303250},
    {"[0]", 4854801880128277513},
    {"[{'$numberDouble': '-0.0'}]", 4854801880128277513},
    {"[0.99]", 4854801880128277513},
    {"[-2.5]", 4563317049361071164},
    {"[{'$numberInt': '-2'}]", 4563317049361071164},
    {"[{'$numberLong': '-2'}]", 4563317049361071164},
    {"['']", 2049396243249673340},
    {"['KJFK']", -2644079067520150834},
    {"['72503014732']", -6301465941273018247},
    {"['a\\u0000b']", 5846247960051164223},
    {"['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']",
     7917400102093917682},
    {"[{'$binary': {'base64': 'YWJj', 'subType': '00'}}]", -5469096009886218469},
    {"[{'$binary': {'base64': 'YWJj', 'subType': '80'}}]", -4988423610185211135},
    {"[{'$binary': {'base64': '', 'subType': '00'}}]", -6439747103366268393},
    {"[{'$oid': '5b6ed2f5e3a1c2a1b0c0ffee'}]", -8953049632756217506},
    {"[false]", 6289544573401934092},
    {"[true]", 6405873908747105701},
    {"[{'$date': {'$numberLong': '-1'}}]", -9185066864950842249},
    {"[{'$date': {'$numberLong': '1577836800000'}}]", -8439725397068880569},
    {"[{'$timestamp': {'t': 5, 'i': 7}}]", -3445407603186619028},
    {"[{'$maxKey': 1}]", 5504842513779440750},
};

TEST(test_hashes_equal_those_of_a_server) {
    sl_owner_cache kept = {0};
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
        bson_t *value = quoted(hashes[i].value);
        bson_iter_t iter;
        assert_true(bson_iter_init(&iter, value) && bson_iter_next(&iter));
        /* With a cache of other values, of the value itself, and empty. */
        sl_owner_cache nothing = {0};
        for (int k = 0; k < 3; k++) {
            int64_t hash = sl_value_hash(bson_iter_value(&iter), k < 2 ? &kept : &nothing);
            if (hash != hashes[i].hash)
                fail_msg("%s, %d: %lld", hashes[i].value, k, (long long)hash);
        }
    }
}

/* ---- owners ---- */

RELEASER(destroy_map, sl_shard_map_destroy)

/* Creates a map of `key` and `chunks` (JSON), valid until the end of the test; NULL if it is
 * refused. */
static sl_shard_map *map_or_null(const char *key, const char *chunks, sl_error *error) {
    bson_t *pattern = quoted(key), *list = quoted(chunks);
    sl_shard_map *map;
    bool made = sl_shard_map_from_keys(pattern, list, &topology, &map, error);
    assert_int_equal(made, map != NULL);
    unit_release_later(destroy_map, map);
    memset((void *)(uintptr_t)bson_get_data(pattern), 0xFF,
           pattern->len); /* the map has copied it */
    return map;
}

static sl_shard_map *map_of(const char *key, const char *chunks) {
    sl_error error = {0};
    sl_shard_map *map = map_or_null(key, chunks, &error);
    if (!map)
        fail_msg("%s: %s", chunks, error.message);
    return map;
}

/* The owner's name; '?' if it cannot be computed. */
static char owner_with(const sl_shard_map *map, const char *document, sl_owner_cache *cache) {
    const uint8_t *bytes = bson_get_data(quoted(document));
    uint32_t shard;
    return sl_shard_map_owner_of(map, bytes, cache, &shard) ? *shards[shard].name : '?';
}

static void assert_owner(const sl_shard_map *map, const char *document, char name) {
    sl_owner_cache cache = {0};
    char found = owner_with(map, document, &cache);
    if (found != name)
        fail_msg("%s: %c, not %c", document, found, name);
}

#define STATIONS                                                                                   \
    "[{'min': {'st': {'$minKey': 1}, 'ts': {'$minKey': 1}}, 'max': {'st': 'B', 'ts': 10},"         \
    "  'shard': 'a'},"                                                                             \
    " {'min': {'st': 'B', 'ts': 10}, 'max': {'st': 'B', 'ts': 20}, 'shard': 'b'},"                 \
    " {'min': {'st': 'B', 'ts': 20}, 'max': {'st': 'C', 'ts': {'$minKey': 1}}, 'shard': 'b'},"     \
    " {'min': {'st': 'C', 'ts': {'$minKey': 1}},"                                                  \
    "  'max': {'st': {'$maxKey': 1}, 'ts': {'$maxKey': 1}}, 'shard': 'c'}]"

TEST(test_ranges_of_two_fields) {
    sl_shard_map *map = map_of("{'st': 1, 'ts': 1}", STATIONS);
    assert_int_equal(sl_shard_map_route(map), SL_ROUTE_BY_KEY);
    assert_false(sl_shard_map_by_id(map));
    assert_owner(map, "{'_id': 1, 'st': 'A', 'ts': 99}", 'a');
    assert_owner(map, "{'_id': 1, 'ts': 9, 'st': 'B'}", 'a');
    assert_owner(map, "{'st': 'B', 'ts': 9.999}", 'a');
    assert_owner(map, "{'st': 'B', 'ts': 10.0}", 'b');
    assert_owner(map, "{'st': 'B', 'ts': {'$numberLong': '25'}}", 'b');
    assert_owner(map, "{'st': 'BZ'}", 'b');
    assert_owner(map, "{'st': 'C', 'ts': {'$minKey': 1}}", 'c');
    assert_owner(map, "{'st': true}", 'c');
}

TEST(test_missing_fields_are_null) {
    sl_shard_map *map = map_of(
        "{'p.q': 1}", "[{'min': {'p.q': {'$minKey': 1}}, 'max': {'p.q': null}, 'shard': 'a'},"
                      " {'min': {'p.q': null}, 'max': {'p.q': 5}, 'shard': 'b'},"
                      " {'min': {'p.q': 5}, 'max': {'p.q': {'$maxKey': 1}}, 'shard': 'c'}]");
    assert_owner(map, "{'p': {'q': {'$minKey': 1}}}", 'a');
    assert_owner(map, "{'p': {'q': null}}", 'b');
    assert_owner(map, "{'p': {'r': 9}}", 'b');
    assert_owner(map, "{'p': 9}", 'b');
    assert_owner(map, "{}", 'b');
    assert_owner(map, "{'p.q': 9, 'pq': 9}", 'b'); /* a field name with a dot is not a path */
    assert_owner(map, "{'p': {'qq': 1, 'q': 9}}", 'c');
    assert_owner(map, "{'p': {'q': 4}}", 'b');
}

TEST(test_flags) {
    sl_shard_map *map =
        map_of("{'f': 1}", "[{'min': {'f': {'$minKey': 1}}, 'max': {'f': true}, 'shard': 'a'},"
                           " {'min': {'f': true}, 'max': {'f': {'$maxKey': 1}}, 'shard': 'b'}]");
    assert_owner(map, "{'f': false}", 'a');
    assert_owner(map, "{'f': true}", 'b');
}

/* The owner of these values is not computed: the router finds it. */
TEST(test_values_without_a_computed_owner) {
    static const char *const unknown[] = {
        "{'p': {'q': {'x': 1}}}",
        "{'p': {'q': [1]}}",
        "{'p': [{'q': 1}]}",
        "{'p': {'q': {'$numberDecimal': '1'}}}",
        "{'p': {'q': {'$regularExpression': {'pattern': 'a', 'options': ''}}}}",
        "{'p': {'q': {'$binary': {'base64': 'AAA=', 'subType': '02'}}}}",
        "{'p': {'q': {'$undefined': true}}}",
        "{'p': {'q': {'$symbol': 'a'}}}",
    };
    static const char *const keys[] = {"{'p.q': 1}", "{'p.q': 'hashed'}"};
    for (size_t k = 0; k < 2; k++) {
        sl_shard_map *map = map_of(keys[k], "[{'min': {'p.q': {'$minKey': 1}},"
                                            "  'max': {'p.q': {'$maxKey': 1}}, 'shard': 'b'}]");
        for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
            assert_owner(map, unknown[i], '?');
        assert_owner(map, "{'p': {'q': 1}}", 'b');
    }
}

TEST(test_hashed_field_behind_a_range) {
    /* The hash of null is 2338878944348059895, that of 0 is 4854801880128277513. */
    sl_shard_map *map =
        map_of("{'a': 1, 'h': 'hashed'}",
               "[{'min': {'a': {'$minKey': 1}, 'h': {'$minKey': 1}},"
               "  'max': {'a': 7, 'h': {'$numberLong': '2338878944348059896'}}, 'shard': 'a'},"
               " {'min': {'a': 7, 'h': {'$numberLong': '2338878944348059896'}},"
               "  'max': {'a': 7, 'h': {'$numberLong': '4854801880128277513'}}, 'shard': 'c'},"
               " {'min': {'a': 7, 'h': {'$numberLong': '4854801880128277513'}},"
               "  'max': {'a': {'$maxKey': 1}, 'h': {'$maxKey': 1}}, 'shard': 'b'}]");
    assert_owner(map, "{'a': 6, 'h': 0}", 'a');
    assert_owner(map, "{'a': 7}", 'a');
    assert_owner(map, "{'a': 7, 'h': 0}", 'b');
    assert_owner(map, "{'a': 7, 'h': {'$numberDouble': '-0.75'}}", 'b');
    assert_owner(map, "{'a': 8, 'h': null}", 'b');
}

/* A thread's cache must not change the result. */
TEST(test_the_cache_changes_no_owner) {
    sl_shard_map *ranges = map_of("{'st': 1, 'ts': 1}", STATIONS);
    sl_shard_map *hashed =
        map_of("{'st': 'hashed'}",
               "[{'min': {'st': {'$minKey': 1}}, 'max': {'st': {'$numberLong': '-1000000000000'}},"
               "  'shard': 'a'},"
               " {'min': {'st': {'$numberLong': '-1000000000000'}},"
               "  'max': {'st': {'$numberLong': '3000000000000000000'}}, 'shard': 'b'},"
               " {'min': {'st': {'$numberLong': '3000000000000000000'}},"
               "  'max': {'st': {'$maxKey': 1}}, 'shard': 'c'}]");
    sl_owner_cache of_ranges = {0}, of_hashed = {0};
    unsigned seen[128] = {0};
    srand(5);
    for (int i = 0; i < 4000; i++) {
        /* Runs of one station, as in a file; stations of the same length, sometimes a long one. */
        static char station[160] = "A", document[300];
        if (rand() % 4 == 0)
            snprintf(station, sizeof station, "%c%0*d", 'A' + rand() % 3,
                     rand() % 16 ? 3 : 90 + rand() % 8, rand() % 50);
        snprintf(document, sizeof document, "{'st': '%s', 'ts': %d}", rand() % 9 ? station : "B",
                 rand() % 30);
        sl_owner_cache nothing = {0};
        char fresh = owner_with(ranges, document, &nothing);
        assert_int_equal(owner_with(ranges, document, &of_ranges), fresh);
        seen[(size_t)fresh]++;
        nothing = (sl_owner_cache){0};
        fresh = owner_with(hashed, document, &nothing);
        assert_int_equal(owner_with(hashed, document, &of_hashed), fresh);
        seen[(size_t)fresh]++;
    }
    for (char name = 'a'; name <= 'c'; name++)
        assert_in_range(seen[(size_t)name], 100, 8000);
}

/* The owner of every key in many chunks, compared with the definition. */
TEST(test_many_chunks) {
    bson_t *chunks = unit_keep_bson(bson_new());
    for (int i = 0; i < 500; i++) {
        char row[200], key[16];
        char from[40] = "{'$minKey': 1}", to[40] = "{'$maxKey': 1}";
        if (i > 0)
            snprintf(from, sizeof from, "%d", i * 10);
        if (i < 499)
            snprintf(to, sizeof to, "%d", (i + 1) * 10);
        snprintf(row, sizeof row, "{'min': {'k': %s}, 'max': {'k': %s}, 'shard': '%c'}", from, to,
                 "abcc"[i % 4]);
        snprintf(key, sizeof key, "%d", i);
        bson_append_document(chunks, key, -1, quoted(row));
    }
    sl_shard_map *map;
    sl_error error;
    assert_true(sl_shard_map_from_keys(quoted("{'k': 1}"), chunks, &topology, &map, &error));
    unit_release_later(destroy_map, map);
    sl_owner_cache cache = {0};
    for (int k = -20; k < 5020; k++) {
        int chunk = k < 0 ? 0 : k / 10 > 499 ? 499 : k / 10;
        char document[40];
        snprintf(document, sizeof document, "{'k': %d}", k);
        assert_owner(map, document, "abcc"[chunk % 4]);
        assert_int_equal(owner_with(map, document, &cache), "abcc"[chunk % 4]);
    }
}

/* An inconsistent map, read while chunks were split or moved, is refused. */
TEST(test_inconsistent_maps_are_refused) {
    static const char *const torn[] = {
        "[]",
        "[{'min': {'k': 1}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'a'}]",
        "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': 1}, 'shard': 'a'}]",
        "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': 1}, 'shard': 'a'},"
        " {'min': {'k': 2}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'a'}]",
        "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': 3}, 'shard': 'a'},"
        " {'min': {'k': 2}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'b'}]",
        "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'unheard-of'}]",
    };
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        sl_error error = {0};
        assert_null(map_or_null("{'k': 1}", torn[i], &error));
        assert_int_equal(error.code, SL_EXIT_CLUSTER);
        assert_true(error.message[0] != '\0');
    }
}

/* Keys and bounds of unsupported types: no owners are computed, and the router routes documents. */
TEST(test_unknown_keys_have_no_route) {
    static const char *const rows[][2] = {
        {"{'k': '2dsphere'}",
         "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'a'}]"},
        {"{'k': -1}",
         "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'a'}]"},
        {"{'k': 1}",
         "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': {'$numberDecimal': '1'}}, 'shard': 'a'},"
         " {'min': {'k': {'$numberDecimal': '1'}}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'b'}]"},
        {"{'k': 1, 'l': 1}",
         "[{'min': {'k': {'$minKey': 1}}, 'max': {'k': {'$maxKey': 1}}, 'shard': 'a'}]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_shard_map *map = map_of(rows[i][0], rows[i][1]);
        assert_int_equal(sl_shard_map_route(map), SL_ROUTE_NONE);
        assert_owner(map, "{'k': 1}", '?');
    }
}
