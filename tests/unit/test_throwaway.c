/* SPDX-License-Identifier: Apache-2.0 */
/* Names of temporary collections. If two hosts used the same name, one could drop the other's
 * collection during a trial, because it looks like a leftover of its own. */
#include <unistd.h>

#include "unit.h"
#include "util/process.h"

#include "trial/throwaway.h"

#define BOOT "3f0c6a52-7c3e-4c58-9c8e-0d6a1f2b9e77\n"

static const char *host(const char *name, const char *boot, uint64_t space) {
    static char rooms[8][SL_HOST_ROOM];
    static unsigned next;
    char *room = rooms[next++ % 8];
    sl_host_identity_of(name, boot, space, room);
    return room;
}

TEST(test_hosts_have_different_identities) {
    static const char name[] = "loader-with-a-long-name-in-a-cluster-of-them-1.example";
    static const char other[] = "loader-with-a-long-name-in-a-cluster-of-them-2.example";
    assert_string_equal(host(name, BOOT, 7), host(name, BOOT, 7));
    assert_string_not_equal(host(name, BOOT, 7), host(other, BOOT, 7));
    assert_string_not_equal(host("a", BOOT, 7), host("a", "", 7)); /* another boot id */
    assert_string_not_equal(host("a", BOOT, 7),
                            host("a", BOOT, 8)); /* another namespace of process ids */
    assert_memory_equal(host(name, BOOT, 7), "loader-with-a-lo-", 17);
}

TEST(test_identities_have_no_special_characters) {
    static const char *const names[] = {"a.b.c", "", "host", "$x y", "h\xc3\xb6st"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *made = host(names[i], BOOT, 1);
        assert_int_equal(
            strspn(made, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"),
            strlen(made));
        assert_true(strlen(made) > 12 && strlen(made) < SL_HOST_ROOM);
    }
}

TEST(test_names) {
    char first[SL_THROWAWAY_ROOM], second[SL_THROWAWAY_ROOM], longest[260];
    sl_error error = {0};
    assert_true(sl_throwaway_name("db", "t", "tune", 1, first, &error));
    assert_true(sl_throwaway_name("db", "t", "tune", 2, second, &error));
    assert_string_not_equal(first, second);
    assert_memory_equal(first, "t.tune.", 7);
    char pid[32];
    snprintf(pid, sizeof pid, ".%lld.", (long long)getpid());
    assert_non_null(strstr(first, pid));
    memset(longest, 'x', 199);
    longest[199] = '\0';
    assert_false(sl_throwaway_name("a-database-with-a-name-of-some-length", longest, "tune", 1,
                                   first, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
}

TEST(test_there_are_no_leftovers_at_first) {
    sl_error error = {0};
    sl_throwaway current;
    sl_throwaway_init(&current);
    assert_true(sl_throwaway_drop(&current, &error));
    assert_true(sl_throwaway_drop_at_once(&current, &error));
    sl_throwaway_clear(&current);
}

TEST(test_a_trial_writes_no_reports) {
    bson_t account;
    const sl_load_config whole = {.report = "r.json",
                                  .html = "page.html",
                                  .again = true,
                                  .resume = true,
                                  .threads = 3,
                                  .threads_most = 9,
                                  .adapt_batches = true,
                                  .sample = 1,
                                  .collection = "t",
                                  .database = "db"};
    const sl_load_config trial = sl_load_as_trial(&whole, &(sl_trial_target){.empty = false},
                                                  "t.tune.x", "w/trial-001", 0.25, &account);
    assert_null(trial.report);
    assert_null(trial.html);
    assert_false(trial.again || trial.resume || trial.adapt_batches);
    assert_int_equal(trial.threads_most, 0);
    assert_int_equal(trial.threads, 3);
    assert_true(trial.part_of_trial && trial.sample < 0.26 && trial.run_record == &account);
    assert_string_equal(trial.collection, "t.tune.x");
    assert_string_equal(trial.work_directory, "w/trial-001");
    assert_string_equal(trial.database, "db");
}
