/* SPDX-License-Identifier: Apache-2.0 */
/* The store of records to embed: every record is found under its key, in the order of the text,
 * also if the partitions are larger than what is sorted at once; and join keys are equal for equal
 * values. */
#include <sys/stat.h>
#include <unistd.h>

#include "job/embed_store.h"
#include "unit.h"
#include "util/hash.h"

#define KEYS 3000u

/* The number of records of a key. */
static unsigned records_of(unsigned key) {
    return key == 7 ? 400 : key % 4;
}

static void write_records(const char *folder) {
    char path[SL_PARTITION_PATH];
    sl_partitions *partitions;
    sl_error error = {0};
    snprintf(path, sizeof path, "%.600s/records", folder);
    assert_true(sl_partitions_create(path, 0, &partitions, &error));
    sl_partition_writer *writer = sl_partition_writer_create(partitions);
    assert_non_null(writer);
    /* In the order of position, a key's records are its 0th, 1st, 2nd ...; they are written from
     * the last to the first. */
    for (unsigned turn = 400; turn-- > 0;) {
        for (unsigned i = 0; i < KEYS; i++) {
            if (turn >= records_of(i))
                continue;
            const bson_t *by = unit_keep_bson(BCON_NEW("k", BCON_INT32((int32_t)i)));
            const bson_t *record = unit_keep_bson(BCON_NEW("turn", BCON_INT32((int32_t)turn)));
            const char *names[] = {"k"};
            uint8_t key[SL_JOIN_KEY_ROOM];
            size_t length = sl_join_key_of(by, names, 1, key);
            assert_true(sl_partition_write(writer, key, length, sl_seeded_hash(key, length, 0),
                                           sl_record_position(1, turn), bson_get_data(record),
                                           record->len, &error));
        }
    }
    assert_true(sl_partition_flush(writer, &error));
    sl_partition_writer_destroy(writer);
    assert_true(sl_partitions_close(partitions, &error));
}

static void check_group(const sl_group *group, unsigned key) {
    bson_t array;
    bson_iter_t iter, turn;
    unsigned found = 0;
    assert_non_null(group);
    assert_int_equal(group->records, records_of(key));
    assert_true(bson_init_static(&array, sl_group_array(group), group->array_length));
    assert_true(bson_validate(&array, BSON_VALIDATE_NONE, NULL));
    for (assert_true(bson_iter_init(&iter, &array)); bson_iter_next(&iter); found++) {
        char name[16];
        snprintf(name, sizeof name, "%u", found);
        assert_string_equal(bson_iter_key(&iter), name);
        assert_true(bson_iter_recurse(&iter, &turn) && bson_iter_find(&turn, "turn"));
        assert_int_equal(bson_iter_int32(&turn), found);
    }
    assert_int_equal(found, records_of(key));
}

/* The group of the records with the key `by`, which is released after the test. */
static const sl_group *group_of(sl_store *store, bson_t *by) {
    static const char *const names[] = {"k"};
    uint8_t key[SL_JOIN_KEY_ROOM];
    return sl_store_find(store, key, sl_join_key_of(unit_keep_bson(by), names, 1, key));
}

static void check_store(size_t sorted_at_once) {
    const char *folder = unit_folder();
    sl_error error = {0};
    sl_store *store;
    write_records(folder);
    uint64_t records = 0, keys = 0, used = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        records += records_of(i);
        keys += records_of(i) > 0;
    }
    sl_store_facts facts = {.identity = "test", .records = records}, read;
    bool there;
    assert_true(sl_store_read_facts(folder, &there, &read, &error));
    assert_false(there);
    assert_true(sl_store_build(folder, sorted_at_once, &facts, &error));
    assert_int_equal(facts.keys, keys);
    assert_int_equal(facts.too_many, 0);
    assert_true(sl_store_read_facts(folder, &there, &read, &error));
    assert_true(there);
    assert_memory_equal(&read, &facts, sizeof read);
    assert_true(sl_store_open(folder, &read, SL_STORE_UNUSED, &store, &error));
    for (unsigned i = 0; i < KEYS; i++) {
        /* Equal to the int32. */
        const sl_group *group = group_of(store, BCON_NEW("k", BCON_DOUBLE((double)i)));
        if (records_of(i) == 0) {
            assert_null(group);
            continue;
        }
        check_group(group, i);
        if (i % 2)
            sl_store_use(store, group);
    }
    assert_true(sl_store_sync(store, &error));
    sl_store_close(store);
    /* Which keys are used is kept when the store is opened again. */
    assert_true(sl_store_open(folder, &read, SL_STORE_CONTINUED, &store, &error));
    assert_true(sl_store_check(store, folder, &error));
    for (const sl_group *group = sl_store_next(store, NULL); group;
         group = sl_store_next(store, group))
        used += sl_store_is_used(store, group);
    assert_int_equal(used, KEYS / 2);
    sl_store_close(store);
    sl_partitions_remove(unit_path("records"));
    static const char *const names[] = {"groups", "index", "used", "complete"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(unit_path(names[i]));
    assert_int_equal(rmdir(folder), 0); /* no other file is left */
    assert_int_equal(mkdir(folder, 0700), 0);
}

TEST(all_records_are_found_in_the_order_of_the_text) {
    check_store(SL_SORTED_AT_ONCE);
}

/* A partition has some 36 records, and that of key 7 has 400 of one key. */
TEST(partitions_that_are_too_large_are_divided) {
    check_store(401);
    check_store(20 * 20 + 1);
}

/* The positions and lengths in these files are trusted when records are looked up. */
TEST(a_damaged_store_is_refused) {
    static const char *const names[] = {"groups", "index"};
    const char *folder = unit_folder();
    sl_store_facts facts = {.identity = "test", .records = 5000};
    sl_error error = {0};
    write_records(folder);
    assert_true(sl_store_build(folder, SL_SORTED_AT_ONCE, &facts, &error));
    for (size_t at = 0; at < 48; at++) {
        FILE *file = fopen(unit_path(names[at % 2]), "r+b");
        int byte = fseek(file, (long)at, SEEK_SET) == 0 ? fgetc(file) : EOF;
        for (int wrong = 1; wrong >= 0; wrong--) {
            sl_store *store = NULL;
            assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
            assert_int_equal(fputc(wrong ? byte ^ 0x80 : byte, file), wrong ? byte ^ 0x80 : byte);
            assert_int_equal(fflush(file), 0);
            assert_true(sl_store_open(folder, &facts, SL_STORE_UNUSED, &store, &error));
            assert_int_equal(sl_store_check(store, folder, &error), !wrong);
            sl_store_close(store);
        }
        fclose(file);
    }
    assert_contains(error.message, "its files are damaged; start the load again");
}

TEST(a_key_with_too_many_records_is_kept_apart) {
    const char *folder = unit_folder();
    sl_error error = {0};
    sl_store *store;
    write_records(folder);
    sl_store_facts facts = {.identity = "test", .records = 5000};
    assert_true(sl_store_build(folder, 10, &facts, &error)); /* divides partitions, too */
    assert_int_equal(facts.too_many, 400);
    assert_true(sl_store_open(folder, &facts, SL_STORE_UNUSED, &store, &error));
    for (unsigned i = 0; i < KEYS; i++) {
        const sl_group *group = group_of(store, BCON_NEW("k", BCON_INT64(i)));
        if (i == 7)
            assert_int_equal(group->array_length, 0);
        else if (records_of(i) > 0)
            check_group(group, i);
    }
    sl_store_close(store);
}

/* ---- keys ---- */

static size_t key_of_json(const char *json, uint8_t *key) {
    static const char *const names[] = {"a", "b.c"};
    return sl_join_key_of(unit_json(json), names, 2, key);
}

TEST(keys_are_equal_for_equal_values_only) {
    static const struct {
        const char *one, *other;
        bool equal;
    } rows[] = {
        {"{\"a\": 1, \"b\": {\"c\": \"x\"}}", "{\"b\": {\"c\": \"x\"}, \"a\": 1.0}", true},
        {"{\"a\": 1, \"b\": {\"c\": \"x\"}}",
         "{\"a\": {\"$numberLong\": \"1\"}, \"b\": {\"c\": \"x\"}}", true},
        {"{\"a\": 1, \"b\": {\"c\": \"x\"}}", "{\"a\": 1, \"b\": {\"c\": \"xy\"}}", false},
        {"{\"a\": 1, \"b\": {\"c\": 1}}", "{\"a\": \"1\", \"b\": {\"c\": 1}}", false},
        {"{\"a\": 0.0, \"b\": {\"c\": 1}}", "{\"a\": -0.0, \"b\": {\"c\": 1}}", true},
        {"{\"a\": 9223372036854775807, \"b\": {\"c\": 1}}",
         "{\"a\": 9223372036854775808.0, \"b\": {\"c\": 1}}", false},
        {"{\"a\": 0.5, \"b\": {\"c\": true}}", "{\"a\": 0.5, \"b\": {\"c\": 1}}", false},
        {"{\"a\": \"x\", \"b\": {\"c\": \"yz\"}}", "{\"a\": \"xy\", \"b\": {\"c\": \"z\"}}", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t one[SL_JOIN_KEY_ROOM], other[SL_JOIN_KEY_ROOM];
        size_t length = key_of_json(rows[i].one, one),
               other_length = key_of_json(rows[i].other, other);
        assert_int_not_equal(length, 0);
        assert_int_not_equal(other_length, 0);
        bool equal = length == other_length && memcmp(one, other, length) == 0;
        if (equal != rows[i].equal)
            fail_msg("%s and %s: %s", rows[i].one, rows[i].other, equal ? "equal" : "different");
    }
}

/* Each row has all ways to write one number; the numbers of different rows are different. */
TEST(numbers_of_equal_value_have_equal_keys) {
#define I(n) "{\"$numberInt\": \"" n "\"}"
#define L(n) "{\"$numberLong\": \"" n "\"}"
#define F(n) "{\"$numberDouble\": \"" n "\"}"
#define D(n) "{\"$numberDecimal\": \"" n "\"}"
    static const char *const rows[][7] = {
        {I("0"), L("0"), F("0"), F("-0.0"), D("0"), D("-0E+10"), D("0E-6176")},
        {I("1"), L("1"), F("1"), D("1"), D("1.0"), D("1000E-3"),
         D("1.000000000000000000000000000000000")},
        {I("-1"), L("-1"), F("-1"), D("-1"), D("-10E-1")},
        {I("100"), F("1e2"), D("1E2"), D("100")},
        {L("9007199254740992"), F("9007199254740992"), D("9007199254740992")},
        {L("9007199254740993"), D("9007199254740993"), D("9.007199254740993E15")},
        {L("9223372036854775807"), D("9223372036854775807")},
        {F("9223372036854775808"), D("9223372036854775808")}, /* 2^63 */
        {L("-9223372036854775808"), F("-9223372036854775808"), D("-9223372036854775808.0")},
        {D("-9223372036854775809")},
        {F("1267650600228229401496703205376"), D("1267650600228229401496703205376")}, /* 2^100 */
        {D("1267650600228229401496703205377")},
        {F("1e22"), D("1E22")},
        {F("1e23")}, /* the nearest double */
        {D("1E23"), D("100E21")},
        {F("0.5"), D("0.5"), D("0.50")},
        {F("-0.5"), D("-0.5")},
        {F("0.1")}, /* not exactly a tenth, so that the server, too, finds them different */
        {D("0.1"), D("0.100")},
        {F("3.552713678800500929355621337890625e-15"),
         D("3.552713678800500929355621337890625E-15")},
        {F("Infinity"), D("Infinity")},
        {F("-Infinity"), D("-Infinity")},
        {D("1E6144"), D("10E6143"), D("1.00E6144")}, /* the largest exponent needs zeros */
        {D("1E-6176")},
        {"\"1\""},
        {"true"},
    };
#undef I
#undef L
#undef F
#undef D
    enum { ROWS = sizeof rows / sizeof rows[0], COLUMNS = 7 };
    static const char *const names[] = {"a"};
    static uint8_t keys[ROWS * COLUMNS][SL_JOIN_KEY_ROOM];
    size_t lengths[ROWS * COLUMNS] = {0};
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        char json[120];
        const char *text = rows[i / COLUMNS][i % COLUMNS];
        snprintf(json, sizeof json, "{\"a\": %s}", text ? text : "null");
        lengths[i] = sl_join_key_of(unit_json(json), names, 1, keys[i]);
        if ((lengths[i] > 0) != (text != NULL))
            fail_msg("%s: the key has %zu bytes", json, lengths[i]);
    }
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        for (size_t k = 0; k < i; k++) {
            bool equal = lengths[i] == lengths[k] && memcmp(keys[i], keys[k], lengths[i]) == 0;
            if (lengths[i] && lengths[k] && equal != (i / COLUMNS == k / COLUMNS))
                fail_msg("%s and %s: %s", rows[i / COLUMNS][i % COLUMNS],
                         rows[k / COLUMNS][k % COLUMNS], equal ? "equal" : "different");
        }
    }
}

TEST(documents_without_a_value_have_no_key) {
    static const char *const rows[] = {
        "{}",
        "{\"a\": 1}",
        "{\"a\": 1, \"b\": 2}",
        "{\"a\": null, \"b\": {\"c\": 1}}",
        "{\"a\": [1], \"b\": {\"c\": 1}}",
        "{\"a\": {\"x\": 1}, \"b\": {\"c\": 1}}",
        "{\"a\": {\"$numberDouble\": \"NaN\"}, \"b\": {\"c\": 1}}",
        "{\"a\": {\"$numberDecimal\": \"NaN\"}, \"b\": {\"c\": 1}}",
        "{\"a\": {\"$numberDecimal\": \"-NaN\"}, \"b\": {\"c\": 1}}",
    };
    uint8_t key[SL_JOIN_KEY_ROOM];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (key_of_json(rows[i], key) != 0)
            fail_msg("%s has a key", rows[i]);
    }
    char *json = unit_keep(malloc(6000));
    memset(json, 'x', 6000);
    memcpy(json, "{\"b\": {\"c\": 1}, \"a\": \"", 22);
    snprintf(json + 5000, 10, "\"}");
    assert_int_equal(key_of_json(json, key), 0); /* longer than SL_JOIN_KEY_ROOM */
}

TEST(values_are_written_back_as_they_were) {
    static const char *const rows[] = {
        "{ \"a\" : 1, \"b\" : 2.5 }",
        "{ \"a\" : { \"$binary\" : { \"base64\" : \"AAEC\", \"subType\" : \"00\" } }, \"b\" : 7 }",
        "{ \"a\" : 5000000000, \"b\" : \"text\" }",
        "{ \"a\" : { \"$date\" : { \"$numberLong\" : \"-1\" } }, \"b\" : true }",
        "{ \"a\" : { \"$oid\" : \"0123456789abcdef01234567\" }, \"b\" : { \"$binary\" : { "
        "\"base64\" : "
        "\"AAEC\", \"subType\" : \"04\" } } }",
        "{ \"a\" : { \"$numberDecimal\" : \"0.1\" }, \"b\" : { \"$timestamp\" : { \"t\" : 7, "
        "\"i\" : 9 } "
        "} }",
    };
    static const char *const names[] = {"a", "b"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bson_t *back = unit_keep_bson(bson_new());
        uint8_t key[SL_JOIN_KEY_ROOM];
        size_t length = sl_join_key_of(unit_json(rows[i]), names, 2, key);
        assert_int_not_equal(length, 0);
        sl_join_key_append(key, length, names, 2, back);
        assert_string_equal(unit_json_of(back), rows[i]);
        assert_true(sl_join_key_is_sound(key, length));
        assert_false(sl_join_key_is_sound(key, length - 1)); /* a file that another program wrote */
        key[0] = 's';
        key[2] = key[3] = 0x7f;
        assert_false(sl_join_key_is_sound(key, length));
    }
}
