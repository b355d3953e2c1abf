/* SPDX-License-Identifier: Apache-2.0 */
/* Shard keys, ranges and the balancer on a real cluster. An error here would fill one shard while
 * the other shards are idle, or leave the cluster's balancer off. */
#include <sys/wait.h>

#include "util/document_id.h"

#include "cluster_fixture.h"

/* ---- sharding ---- */

TEST_ON(SHARDED, test_shard_key_is_compared) {
    bson_t *hashed = unit_keep_bson(BCON_NEW("k", "hashed"));
    bson_t *by_double = unit_keep_bson(BCON_NEW("_id", BCON_DOUBLE(1)));
    f->target.shard_key = &f->by_id;
    prepare(f, true);
    prepare(f, false);
    f->target.shard_key = by_double; /* the same key */
    prepare(f, false);
    f->target.shard_key = NULL; /* not requested: any key is accepted */
    prepare(f, false);
    f->target.shard_key = hashed;
    prepare(f, false); /* the default key of a load: the existing key is used */
    f->target.shard_key_given = true;
    refused_target(f, "\"_id\"", "\"k\"", "--drop");
    f->target.drop = true;
    prepare(f, true);
    f->target.drop = false;
    prepare(f, false);
    f->target.shard_key = &f->by_id;
    refused_target(f, "hashed");
}

/* The collection had documents before it was sharded. */
TEST_ON(SHARDED, test_filled_collection_is_sharded) {
    bson_t *key = unit_keep_bson(BCON_NEW("k", BCON_INT32(1), "_id", BCON_INT32(1)));
    prepare(f, true);
    insert(f, 0, 100);
    f->target.shard_key = key;
    /* Not sharded by the default key; an error if a key was given without --shard-existing. */
    sl_target_view view;
    prepare(f, false);
    ok(f, sl_target_look(f->connection, &f->target, &view, &f->error));
    assert_int_equal(view.change, SL_SHARDING_LEFT);
    f->target.shard_key_given = true;
    bool created;
    assert_false(sl_prepare_target(f->connection, &f->target, &created, &f->error));
    assert_int_equal(f->error.code, SL_EXIT_USAGE);
    assert_non_null(strstr(f->error.message, "--shard-existing"));
    f->error = (sl_error){0};
    f->target.shard_existing = true;
    ok(f, sl_target_look(f->connection, &f->target, &view, &f->error));
    assert_int_equal(view.change, SL_SHARDING_EXISTING);
    prepare(f, false);
    ok(f, sl_target_look(f->connection, &f->target, &view, &f->error));
    assert_int_equal(view.change, SL_SHARDING_NONE);
    prepare(f, false);
    assert_int_equal(documents_on(f, NULL), 100);
}

TEST_ON(EACH, test_unsharded_map_has_one_owner) {
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    sl_shard_map *map = map_of(f, topology);
    assert_false(sl_shard_map_by_id(map));
    assert_int_equal(sl_shard_map_owner(map, -1), 0);
    assert_int_equal(sl_shard_map_owner(map, INT64_MAX), 0);
}

/* The ranges of one source, which alternate between two shards. */
static void ranges_of(uint32_t source, sl_range ranges[8]) {
    for (uint32_t i = 0; i < 8; i++)
        ranges[i] = (sl_range){sl_stripe_first_id(source, i * 32),
                               sl_stripe_first_id(source, (i + 1) * 32), i % 2};
}

static void assert_placed(fixture *f, const sl_topology *topology, const sl_range *ranges,
                          size_t count) {
    sl_shard_map *map = map_of(f, topology);
    assert_true(sl_shard_map_by_id(map));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sl_shard_map_owner(map, ranges[i].minimum), ranges[i].shard);
        assert_int_equal(sl_shard_map_owner(map, ranges[i].maximum - 1), ranges[i].shard);
    }
}

static bool count_step(void *context, size_t done, size_t all) {
    assert_true(done <= all);
    ++*(size_t *)context;
    return true;
}

TEST_ON(SHARDED, test_ranges_go_to_their_shards) {
    sl_range ranges[8];
    size_t steps = 0;
    f->target.shard_key = &f->by_id;
    f->target.clustered = sl_server_at_least(sl_connection_server(f->connection), 5, 3);
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    for (uint32_t source = 1; source <= 2; source++) {
        ranges_of(source, ranges);
        ok(f, sl_prepare_ranges(f->connection, &f->target, topology, ranges, 8, count_step, &steps,
                                &f->error));
        assert_true(steps > 0);
        assert_placed(f, topology, ranges, 8);
        /* Repeating it changes nothing. */
        steps = 0;
        ok(f, sl_prepare_ranges(f->connection, &f->target, topology, ranges, 8, count_step, &steps,
                                &f->error));
        assert_int_equal(steps, 0);
    }
    /* Inserted documents go to the shards of their ranges. */
    uint64_t before = documents_on(f, topology->shards[1].name);
    assert_int_equal(before, 0);
    for (int i = 0; i < 8; i++)
        insert(f, ranges[i].minimum, 10);
    assert_int_equal(documents_on(f, topology->shards[0].name), 40);
    assert_int_equal(documents_on(f, topology->shards[1].name), 40);
}

/* A resumed load, perhaps with other ranges, must not move stored documents. */
TEST_ON(SHARDED, test_filled_ranges_stay) {
    sl_range ranges[8];
    f->target.shard_key = &f->by_id;
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    sl_shard_map *map = map_of(f, topology);
    uint32_t first = sl_shard_map_owner(map, 0); /* the shard of a new collection */
    insert(f, sl_stripe_first_id(1, 2 * 32), 10);
    insert(f, sl_stripe_first_id(1, 4 * 32) - 1, 1);
    ranges_of(1, ranges);
    for (int i = 0; i < 8; i++)
        ranges[i].shard = first == 0 ? 1 : 0;
    ok(f, sl_prepare_ranges(f->connection, &f->target, topology, ranges, 8, NULL, NULL, &f->error));
    ranges[2].shard = ranges[3].shard = first;
    assert_placed(f, topology, ranges, 8);
}

static bool stop_after_three(void *context, size_t done, size_t all) {
    (void)all;
    *(size_t *)context = done;
    return done < 3;
}

TEST_ON(SHARDED, test_interrupted_preparing_is_continued) {
    sl_range ranges[8];
    size_t done = 0;
    f->target.shard_key = &f->by_id;
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    ranges_of(1, ranges);
    assert_false(sl_prepare_ranges(f->connection, &f->target, topology, ranges, 8, stop_after_three,
                                   &done, &f->error));
    assert_int_equal(f->error.code, SL_EXIT_INTERRUPTED);
    assert_int_equal(done, 3);
    ok(f, sl_prepare_ranges(f->connection, &f->target, topology, ranges, 8, NULL, NULL, &f->error));
    assert_placed(f, topology, ranges, 8);
}

typedef struct preparer {
    fixture *f;
    const sl_topology *topology;
    sl_range ranges[8];
    bool ok;
    sl_error error;
} preparer;

static void *prepare_in_thread(void *context) {
    preparer *me = context;
    me->ok = sl_prepare_ranges(me->f->connection, &me->f->target, me->topology, me->ranges, 8, NULL,
                               NULL, &me->error);
    return NULL;
}

/* Two loaders with a source each change the same chunk map at the same time. */
TEST_ON(SHARDED, test_two_loaders_prepare_at_once) {
    f->target.shard_key = &f->by_id;
    prepare(f, true);
    sl_topology *topology = topology_of(f);
    preparer preparers[2];
    for (uint32_t i = 0; i < 2; i++) {
        preparers[i] = (preparer){.f = f, .topology = topology};
        ranges_of(i + 1, preparers[i].ranges);
    }
    unit_run_threads(2, prepare_in_thread, preparers, sizeof preparers[0]);
    for (int i = 0; i < 2; i++) {
        if (!preparers[i].ok)
            fail_msg("%s", preparers[i].error.message);
        assert_placed(f, topology, preparers[i].ranges, 8);
    }
}

/* ---- balancer ---- */

static bool balancer_is_on(sl_connection *connection) {
    bson_t reply;
    bson_iter_t iter;
    sl_error error;
    bson_t *status = BCON_NEW("balancerStatus", BCON_INT32(1));
    if (!sl_cluster_command(connection, "admin", status, &reply, NULL, &error))
        fail_msg("%s", error.message);
    bool on = bson_iter_init_find(&iter, &reply, "mode") &&
              strcmp(bson_iter_utf8(&iter, NULL), "full") == 0;
    bson_destroy(&reply);
    bson_destroy(status);
    return on;
}

static void switch_balancer(fixture *f, bool on) {
    run(f, "admin", BCON_NEW(on ? "balancerStart" : "balancerStop", BCON_INT32(1)));
}

static void assert_no_saved_state(fixture *f) {
    bson_t document;
    bool found;
    static const char *const ids[] = {"state", "lock"};
    for (int i = 0; i < 2; i++) {
        ok(f, sl_find_by_id(f->connection, "shardload", "balancer", ids[i], &document, &found,
                            &f->error));
        assert_false(found);
        bson_destroy(&document);
    }
}

TEST_ON(SHARDED, test_balancer_is_restored) {
    sl_balancer *first, *second;
    bool was_on = balancer_is_on(f->connection);
    prepare(f, true);

    switch_balancer(f, true);
    ok(f, sl_balancer_pause(f->connection, NULL, &first, &f->error));
    assert_false(balancer_is_on(f->connection));
    assert_string_equal(sl_balancer_before(first), "full");
    /* A second loader joins, and the first one ends. */
    ok(f, sl_balancer_pause(f->connection, NULL, &second, &f->error));
    assert_string_equal(sl_balancer_before(second), "full");
    ok(f, sl_balancer_restore(first, &f->error));
    assert_false(balancer_is_on(f->connection));
    ok(f, sl_balancer_restore(second, &f->error));
    assert_true(balancer_is_on(f->connection));
    assert_no_saved_state(f);

    switch_balancer(f, false);
    ok(f, sl_balancer_pause(f->connection, NULL, &first, &f->error));
    assert_string_equal(sl_balancer_before(first), "off");
    ok(f, sl_balancer_restore(first, &f->error));
    assert_false(balancer_is_on(f->connection));
    assert_no_saved_state(f);
    switch_balancer(f, was_on);
}

/* The killed loader, which runs as a separate process: this program with the variable HOLD. */
#define HOLD "SHARDLOAD_TEST_HOLD"
static int hold_balancer(void) {
    sl_connection *connection;
    sl_balancer *balancer;
    sl_error error;
    if (!sl_connection_open(&(sl_connection_options){getenv(SHARDED), "killed", 2, 120, 0, false},
                            &connection, &error) ||
        !sl_balancer_pause(connection, NULL, &balancer, &error)) {
        print_message("# %s\n", error.message);
        return 1;
    }
    _exit(0); /* like a killed loader, without restoring the balancer */
}

/* A loader is killed; the next loader restores the state before the killed one. */
TEST_ON(SHARDED, test_balancer_after_a_killed_loader) {
    bool was_on = balancer_is_on(f->connection);
    prepare(f, true);
    switch_balancer(f, true);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv(HOLD, "1", 1);
        execl("/proc/self/exe", "unit_tests", "test_cluster_sharding", (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(balancer_is_on(f->connection));

    sl_balancer *balancer;
    ok(f, sl_balancer_pause(f->connection, NULL, &balancer, &f->error));
    assert_string_equal(sl_balancer_before(balancer), "full");
    assert_false(balancer_is_on(f->connection));
    ok(f, sl_balancer_restore(balancer, &f->error));
    assert_true(balancer_is_on(f->connection));
    assert_no_saved_state(f);
    switch_balancer(f, was_on);
}

#define LOADERS 4

typedef struct pauser {
    fixture *f;
    bool ok;
    bool ran_while_held;
    sl_error error;
} pauser;

static void *pause_and_restore(void *context) {
    pauser *me = context;
    me->ok = true;
    for (int i = 0; me->ok && i < 3; i++) {
        sl_balancer *balancer;
        me->ok = sl_balancer_pause(me->f->connection, NULL, &balancer, &me->error);
        if (me->ok) {
            me->ran_while_held |= balancer_is_on(me->f->connection);
            me->ok = sl_balancer_restore(balancer, &me->error);
        }
    }
    return NULL;
}

/* Several loaders start and end at the same time: the balancer is off while any of them runs, and
 * on after the last one. */
TEST_ON(SHARDED, test_balancer_with_many_loaders) {
    bool was_on = balancer_is_on(f->connection);
    prepare(f, true);
    switch_balancer(f, true);
    pauser pausers[LOADERS];
    for (int i = 0; i < LOADERS; i++)
        pausers[i] = (pauser){.f = f};
    unit_run_threads(LOADERS, pause_and_restore, pausers, sizeof pausers[0]);
    for (int i = 0; i < LOADERS; i++) {
        if (!pausers[i].ok)
            fail_msg("%s", pausers[i].error.message);
        assert_false(pausers[i].ran_while_held);
    }
    assert_true(balancer_is_on(f->connection));
    assert_no_saved_state(f);
    switch_balancer(f, was_on);
}

TEST_ON(STANDALONE, test_no_balancer_without_shards) {
    sl_balancer *balancer;
    ok(f, sl_balancer_pause(f->connection, NULL, &balancer, &f->error));
    assert_null(balancer);
    ok(f, sl_balancer_restore(balancer, &f->error));
    assert_string_equal(sl_balancer_before(balancer), "");
}

RUN_TESTS {
    return getenv(HOLD) ? hold_balancer()
                        : _cmocka_run_group_tests("tests", added, added_count, NULL, NULL);
}
