/* SPDX-License-Identifier: Apache-2.0 */
/* Targets, the registry and statistics on real servers, on every kind of deployment. An error here
 * would load into a collection with other properties than the user requested, or give two sources
 * the same number, so that documents of one source are mistaken for documents of the other. */
#include "util/document_id.h"

#include "cluster_fixture.h"

/* ---- topology ---- */

TEST_ON(EACH, test_shards_have_names) {
    sl_topology *topology = topology_of(f);
    bool sharded = sl_connection_server(f->connection)->deployment == SL_SHARDED;
    assert_true(sharded ? topology->count >= 2 : topology->count == 1);
    for (size_t i = 0; i < topology->count; i++) {
        assert_true(strlen(topology->shards[i].name) > 0);
        assert_true(strlen(topology->shards[i].host) > 0);
        assert_true(i == 0 || strcmp(topology->shards[i - 1].name, topology->shards[i].name) < 0);
    }
}

/* ---- target ---- */

TEST_ON(EACH, test_compressor_is_kept_and_compared) {
    static const char *const all[] = {"none", "snappy", "zlib", "zstd"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        f->target.collection = all[i];
        f->target.compressor = all[i];
        prepare(f, true);
        prepare(f, false);
        f->target.compressor = NULL;
        prepare(f, false);
        f->target.compressor = i == 0 ? "zlib" : "none";
        refused_target(f, all[i], f->target.compressor, "--drop");
    }
    f->target.collection = "unknown";
    f->target.compressor = "lz4";
    refused_target(f, "lz4");
}

TEST_ON(EACH, test_default_compressor_is_known) {
    prepare(f, true);
    f->target.compressor = "snappy"; /* the server's default */
    prepare(f, false);
    f->target.compressor = "zlib";
    refused_target(f, "snappy", "zlib");
}

TEST_ON(EACH, test_clustered_is_kept_and_compared) {
    if (!sl_server_at_least(sl_connection_server(f->connection), 5, 3))
        skip();
    prepare(f, true);
    f->target.clustered = true;
    refused_target(f, "not clustered", "--drop");
    f->target.drop = true;
    prepare(f, true);
    f->target.drop = false;
    prepare(f, false);
    f->target.clustered = false; /* not requested: any collection is accepted */
    prepare(f, false);
}

TEST_ON(EACH, test_view_is_no_target) {
    prepare(f, true);
    run(f, f->database, BCON_NEW("create", "window", "viewOn", "things", "pipeline", "[", "]"));
    f->target.collection = "window";
    refused_target(f, "view");
}

static sl_registry_entry entry(const char *fingerprint, const char *name) {
    return (sl_registry_entry){.fingerprint = fingerprint, .name = name, .size = 1};
}

TEST_ON(EACH, test_drop_removes_documents_and_sources) {
    sl_registry_entry entries[] = {entry("f1", "one"), entry("f2", "two")};
    prepare(f, true);
    insert(f, 0, 100);
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, entries, 2, &f->error));
    assert_int_equal(entries[1].number, 2);
    f->target.drop = true;
    prepare(f, true);
    assert_int_equal(documents_on(f, NULL), 0);
    ok(f, sl_registry_look_up(registry, entries, 2, &f->error));
    assert_int_equal(entries[0].state, SL_SOURCE_NEW);
    ok(f, sl_registry_start(registry, &entries[1], 1, &f->error));
    assert_int_equal(entries[1].number, 1);
}

TEST_ON(EACH, test_index_is_built_once) {
    bson_t *keys =
        unit_keep_bson(BCON_NEW("key", "{", "k", BCON_INT32(1), "m", BCON_INT32(-1), "}"));
    prepare(f, true);
    insert(f, 0, 50);
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    bson_t reply;
    bson_iter_t iter, name;
    bson_t *list = unit_keep_bson(BCON_NEW("listIndexes", "things"));
    ok(f, sl_cluster_command(f->connection, f->database, list, &reply, NULL, &f->error));
    assert_true(bson_iter_init(&iter, &reply) &&
                bson_iter_find_descendant(&iter, "cursor.firstBatch.1.name", &name));
    assert_string_equal(bson_iter_utf8(&name, NULL), "k_1_m_-1");
    bson_destroy(&reply);
    /* An index with the same keys and another name counts as existing. */
    run(f, f->database,
        BCON_NEW("createIndexes", "things", "indexes", "[", "{", "key", "{", "m", BCON_INT32(1),
                 "}", "name", "by hand", "}", "]"));
    keys = unit_keep_bson(BCON_NEW("key", "{", "m", BCON_INT32(1), "}"));
    ok(f, sl_create_index(f->connection, &f->target, keys, &f->error));
    /* But not if its options differ from those that are asked for: servers before 5.0 refuse it. */
    keys = unit_keep_bson(BCON_NEW("key", "{", "m", BCON_INT32(1), "}", "sparse", BCON_BOOL(true)));
    bool built = sl_create_index(f->connection, &f->target, keys, &f->error);
    if (sl_server_at_least(sl_connection_server(f->connection), 5, 0))
        ok(f, built);
    else
        refused(f, built, "m_1");
}

TEST_ON(EACH, test_counts_and_statistics) {
    sl_shard_statistics *rows;
    size_t count;
    uint64_t documents;
    prepare(f, true);
    insert(f, 1000, 500);
    ok(f, sl_count_range(f->connection, &f->target, 1000, 1500, &documents, &f->error));
    assert_int_equal(documents, 500);
    ok(f, sl_count_range(f->connection, &f->target, 1001, 1003, &documents, &f->error));
    assert_int_equal(documents, 2);
    ok(f, sl_count_range(f->connection, &f->target, 0, 1000, &documents, &f->error));
    assert_int_equal(documents, 0);
    ok(f, sl_statistics_read(f->connection, &f->target, &rows, &count, &f->error));
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].documents, 500);
    assert_int_equal(rows[0].data_bytes, 500 * 29); /* 5 + 13 for _id + 11 for k */
    assert_true(strlen(rows[0].shard) > 0);
    free(rows);
    f->target.collection = "nothing";
    ok(f, sl_statistics_read(f->connection, &f->target, &rows, &count, &f->error));
    assert_int_equal(count, 0);
    assert_null(rows);
}

/* ---- registry ---- */

TEST_ON(EACH, test_sources_keep_their_numbers) {
    sl_registry_entry one = entry("f1", "one.txt"), two = entry("f2", "two.txt");
    sl_registry_entry three = entry("f3", "three.txt");
    one.size = 1ull << 39;
    prepare(f, true);
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_look_up(registry, &one, 1, &f->error));
    assert_int_equal(one.state, SL_SOURCE_NEW);
    assert_int_equal(one.number, 0);
    assert_string_equal(one.when, "");

    ok(f, sl_registry_start(registry, &one, 1, &f->error));
    assert_int_equal(one.number, 1);
    ok(f, sl_registry_start(registry, &two, 1, &f->error));
    assert_int_equal(two.number, 2);
    one.number = 0;
    ok(f, sl_registry_start(registry, &one, 1, &f->error));
    assert_int_equal(one.number, 1);
    ok(f, sl_registry_look_up(registry, &one, 1, &f->error));
    assert_int_equal(one.state, SL_SOURCE_STARTED);
    assert_string_equal(one.when, "");

    ok(f, sl_registry_finish(registry, &one, 1, &f->error));
    ok(f, sl_registry_look_up(registry, &one, 1, &f->error));
    assert_int_equal(one.state, SL_SOURCE_LOADED);
    assert_int_equal(one.number, 1);
    assert_int_equal(strlen(one.when), strlen("2020-01-01T00:00:00Z"));

    /* Loading it again resets its state until it is finished again. */
    ok(f, sl_registry_start(registry, &one, 1, &f->error));
    assert_int_equal(one.number, 1);
    ok(f, sl_registry_look_up(registry, &one, 1, &f->error));
    assert_int_equal(one.state, SL_SOURCE_STARTED);

    refused(f, sl_registry_finish(registry, &three, 1, &f->error), "things.sources");
}

/* A file name may be any bytes; the registry stores UTF-8, which every client can read. */
TEST_ON(EACH, test_any_file_name_is_stored_as_text) {
    bson_t document;
    bson_iter_t iter;
    bool found;
    sl_registry_entry odd = entry("f1", "caf\xe9/\xc3\xa9t\xc3\xa9.txt");
    odd.documents = 12345;
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, &odd, 1, &f->error));
    ok(f, sl_registry_finish(registry, &odd, 1, &f->error));
    ok(f, sl_find_by_id(f->connection, f->database, "things.sources", "f1", &document, &found,
                        &f->error));
    assert_true(found && bson_iter_init_find(&iter, &document, "name"));
    assert_string_equal(bson_iter_utf8(&iter, NULL), "caf\\xe9/\xc3\xa9t\xc3\xa9.txt");
    assert_true(bson_iter_init_find(&iter, &document, "documents"));
    assert_int_equal(bson_iter_as_int64(&iter), 12345);
    bson_destroy(&document);
}

static void same_layout(const sl_layout *a, const sl_layout *b) {
    assert_int_equal(a->shards, b->shards);
    assert_int_equal(a->pieces, b->pieces);
    assert_int_equal(a->leading, b->leading);
    assert_true(a->shard_names == b->shard_names);
}

/* The first proposed layout of a source is used by every loader, also when it is loaded again. */
TEST_ON(EACH, test_sources_keep_their_layout) {
    sl_registry_entry two[] = {entry("f1", "one"), entry("f2", "two")},
                      three = entry("f3", "three");
    const sl_layout first = {.shards = 2, .pieces = 2, .leading = 7, .shard_names = UINT64_MAX - 1};
    const sl_layout other = {.shards = 3, .pieces = 1, .leading = 0, .shard_names = 5};
    prepare(f, true);
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, two, 2, &f->error));
    assert_int_equal(two[0].layout.shards, 0);
    two[0].layout = first;
    ok(f, sl_registry_agree_layout(registry, two, 1, &f->error));
    for (int round = 0; round < 2; round++) {
        two[0].layout = two[1].layout = other;
        ok(f, sl_registry_agree_layout(registry, two, 2, &f->error));
        same_layout(&two[0].layout, &first);
        same_layout(&two[1].layout, &other);
        ok(f, sl_registry_finish(registry, two, 2, &f->error));
        ok(f, sl_registry_start(registry, two, 2, &f->error));
        ok(f, sl_registry_look_up(registry, two, 2, &f->error));
        same_layout(&two[0].layout, &first);
    }
    three.layout = first;
    refused(f, sl_registry_agree_layout(registry, &three, 1, &f->error),
            "a source is no longer in the registry");
}

TEST_ON(EACH, test_error_when_numbers_run_out) {
    sl_registry_entry one = entry("f1", "one"), two = entry("f2", "two");
    prepare(f, true);
    run(f, f->database,
        BCON_NEW("insert", "things.sources", "documents", "[", "{", "_id", "counter", "last",
                 BCON_INT32((int32_t)SL_SOURCE_NUMBER_MAX - 1), "}", "]"));
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, &one, 1, &f->error));
    assert_int_equal(one.number, SL_SOURCE_NUMBER_MAX);
    refused(f, sl_registry_start(registry, &two, 1, &f->error), "8388606", "another collection");
    /* The refused source has used no number. */
    uint32_t last;
    ok(f, sl_registry_last(registry, &last, &f->error));
    assert_int_equal(last, SL_SOURCE_NUMBER_MAX);
}

/* The primary steps down between two commands: the second one is retried and succeeds. */
TEST_ON(REPLICA, test_election_is_waited_out) {
    sl_registry_entry one = entry("f1", "one"), two = entry("f2", "two");
    bool created;
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, &one, 1, &f->error));
    bson_t *step_down = BCON_NEW("replSetStepDown", BCON_INT32(1), "secondaryCatchUpPeriodSecs",
                                 BCON_INT32(0), "force", BCON_BOOL(true));
    run(f, "admin", step_down);
    ok(f, sl_registry_start(registry, &two, 1, &f->error));
    assert_int_equal(two.number, 2);
    step_down = BCON_NEW("replSetStepDown", BCON_INT32(1), "secondaryCatchUpPeriodSecs",
                         BCON_INT32(0), "force", BCON_BOOL(true));
    run(f, "admin", step_down);
    ok(f, sl_prepare_target(f->connection, &f->target, &created, &f->error));
}

static bool three_times(void *context) {
    return ++*(unsigned *)context <= 3;
}

/* A command that always exceeds its time limit is retried until the callback returns false. */
TEST_ON(STANDALONE, test_retries_end_on_request) {
    unsigned asked = 0;
    insert(f, 1, 5);
    bson_t *slow =
        unit_keep_bson(BCON_NEW("find", BCON_UTF8(f->target.collection), "filter", "{", "$where",
                                BCON_UTF8("sleep(200) || true"), "}", "maxTimeMS", BCON_INT32(1)));
    sl_connection_set_retry_check(f->connection, three_times, &asked);
    assert_false(sl_cluster_command(f->connection, f->database, slow, NULL, NULL, &f->error));
    assert_int_equal(f->error.code, SL_EXIT_INTERRUPTED);
    assert_non_null(strstr(f->error.message, "time limit"));
    assert_in_range(asked, 4, 5); /* without the callback: about a hundred retries */
    sl_connection_set_retry_check(f->connection, NULL, NULL);
}

/* ---- many sources ---- */

#define MANY 5000

typedef struct many {
    char fingerprints[MANY][16];
    sl_registry_entry entries[MANY];
    size_t count;
} many;

/* `count` entries with the fingerprints first, first + step, first + 2 * step, ... modulo MANY. */
static many *make_many(unsigned first, unsigned step, unsigned count) {
    many *made = unit_keep(calloc(1, sizeof *made));
    made->count = count;
    for (unsigned i = 0; i < count; i++) {
        snprintf(made->fingerprints[i], sizeof made->fingerprints[i], "f%04u",
                 (first + i * step) % MANY);
        made->entries[i] = entry(made->fingerprints[i], "name");
        made->entries[i].documents = i;
    }
    return made;
}

/* Stores each entry's number in `seen` (by fingerprint); fails if another number is stored
 * already. */
static void collect_numbers(const sl_registry_entry *entries, size_t count, uint32_t *seen) {
    for (size_t i = 0; i < count; i++) {
        uint32_t *number = &seen[strtoul(entries[i].fingerprint + 1, NULL, 10)];
        assert_int_not_equal(entries[i].number, 0);
        if (*number != 0)
            assert_int_equal(entries[i].number, *number);
        *number = entries[i].number;
    }
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void assert_distinct(uint32_t *numbers) {
    qsort(numbers, MANY, sizeof *numbers, by_value);
    assert_int_not_equal(numbers[0], 0);
    for (size_t i = 1; i < MANY; i++)
        assert_int_not_equal(numbers[i], numbers[i - 1]);
}

/* Of many files, half have been loaded before. These keep their numbers; each of the new files gets
 * a number that no other file has. */
TEST_ON(EACH, test_many_sources_of_which_half_are_known) {
    uint32_t seen[MANY] = {0};
    many *known = make_many(0, 3, MANY), *all = make_many(7, 1, MANY); /* 3 does not divide MANY */
    prepare(f, true);
    sl_registry *registry = registry_of(f);
    ok(f, sl_registry_start(registry, known->entries, MANY / 2, &f->error));
    ok(f, sl_registry_finish(registry, known->entries, MANY / 2, &f->error));
    collect_numbers(known->entries, MANY / 2, seen);

    ok(f, sl_registry_look_up(registry, all->entries, MANY, &f->error));
    size_t loaded = 0;
    for (size_t i = 0; i < MANY; i++) {
        uint32_t number = seen[strtoul(all->entries[i].fingerprint + 1, NULL, 10)];
        assert_int_equal(all->entries[i].number, number);
        assert_int_equal(all->entries[i].state, number ? SL_SOURCE_LOADED : SL_SOURCE_NEW);
        assert_int_equal(all->entries[i].when[0] != '\0', number != 0);
        loaded += number != 0;
    }
    assert_int_equal(loaded, MANY / 2);

    ok(f, sl_registry_start(registry, all->entries, MANY, &f->error));
    collect_numbers(all->entries, MANY, seen);
    ok(f, sl_registry_look_up(registry, all->entries, MANY, &f->error));
    collect_numbers(all->entries, MANY, seen);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(all->entries[i].state, SL_SOURCE_STARTED);
    assert_distinct(seen);

    ok(f, sl_registry_finish(registry, all->entries, MANY, &f->error));
    ok(f, sl_registry_look_up(registry, known->entries, MANY, &f->error));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(known->entries[i].state, SL_SOURCE_LOADED);
}

typedef struct racer {
    fixture *f;
    many *sources;
    pthread_barrier_t *line;
    bool ok;
    sl_error error;
} racer;

static void *race(void *context) {
    racer *me = context;
    sl_registry *registry;
    me->ok = sl_registry_open(me->f->connection, &me->f->target, &registry, &me->error);
    pthread_barrier_wait(me->line);
    me->ok =
        me->ok && sl_registry_start(registry, me->sources->entries, me->sources->count, &me->error);
    sl_registry_close(registry);
    return NULL;
}

/* Several loaders register overlapping sets of files in different orders at the same time: they get
 * the same number for the same file, and no number is given twice. */
TEST_ON(EACH, test_racing_loaders_agree_on_numbers) {
    prepare(f, true);
    /* The first and the second cover all sources together, the third alone. */
    racer racers[] = {{.sources = make_many(0, 1, MANY * 3 / 4)},
                      {.sources = make_many(MANY - 1, MANY - 1, MANY * 3 / 4)},
                      {.sources = make_many(11, 3, MANY)}};
    enum { RACERS = sizeof racers / sizeof racers[0] };
    pthread_barrier_t line;
    assert_int_equal(pthread_barrier_init(&line, NULL, RACERS), 0);
    for (int i = 0; i < RACERS; i++) {
        racers[i].f = f;
        racers[i].line = &line;
    }
    unit_run_threads(RACERS, race, racers, sizeof racers[0]);
    pthread_barrier_destroy(&line);
    uint32_t seen[MANY] = {0};
    for (int i = 0; i < RACERS; i++) {
        if (!racers[i].ok)
            fail_msg("%s", racers[i].error.message);
        collect_numbers(racers[i].sources->entries, racers[i].sources->count, seen);
    }
    assert_distinct(seen);
}

/* Eight loaders request a number at the same time, and two numbers are left: six loaders are
 * refused. Many rounds, because the requests do not collide in every round. */
TEST_ON(EACH, test_racing_loaders_do_not_pass_the_last_number) {
    enum { ROUNDS = 20, RACERS = 8, LEFT = 2 };
    prepare(f, true);
    for (int round = 0; round < ROUNDS; round++) {
        racer racers[RACERS];
        pthread_barrier_t line;
        unsigned started = 0;
        run(f, f->database,
            BCON_NEW("delete", "things.sources", "deletes", "[", "{", "q", "{", "}", "limit",
                     BCON_INT32(0), "}", "]"));
        run(f, f->database,
            BCON_NEW("insert", "things.sources", "documents", "[", "{", "_id", "counter", "last",
                     BCON_INT32((int32_t)SL_SOURCE_NUMBER_MAX - LEFT), "}", "]"));
        assert_int_equal(pthread_barrier_init(&line, NULL, RACERS), 0);
        for (unsigned i = 0; i < RACERS; i++)
            racers[i] = (racer){.f = f, .sources = make_many(i, 1, 1), .line = &line};
        unit_run_threads(RACERS, race, racers, sizeof racers[0]);
        for (unsigned i = 0; i < RACERS; i++) {
            started += racers[i].ok;
            if (racers[i].ok)
                assert_true(racers[i].sources->entries[0].number <= SL_SOURCE_NUMBER_MAX);
            else
                assert_non_null(strstr(racers[i].error.message, "another collection"));
        }
        assert_int_equal(started, LEFT);
        pthread_barrier_destroy(&line);
    }
}
