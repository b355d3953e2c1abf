/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line at several widths: it never exceeds the terminal, and always shows the share,
 * the rate, the time left and what is waited for. */
#include "load/progress.h"
#include "unit.h"

static const char *const shards[] = {"s1", "s2"};
static const double rates[] = {40000, 45200};
static char line[SL_PROGRESS_LINE_ROOM];

static sl_progress_facts usual(void) {
    return (sl_progress_facts){.share = 0.123,
                               .left = 200,
                               .documents = 1234567,
                               .rate_now = 85200,
                               .rate_all = 80100,
                               .bytes_now = 36.9e6,
                               .rejects = 12,
                               .threads = 8,
                               .waits = {"the server", "parsing"},
                               .waits_share = {0.78, 0.12},
                               .shards = shards,
                               .shard_rates = rates,
                               .shard_count = 2};
}

static void assert_has_not(const char *part) {
    if (strstr(line, part))
        fail_msg("\"%s\" in \"%s\"", part, line);
}

TEST(eighty_columns) {
    sl_progress_facts facts = usual();
    assert_string_equal(
        sl_progress_line(&facts, 80, line),
        "[>       ]  12.3 %  1.23M docs  85.2k/s  ETA 3m20s  12 rejects  the server 78 %");
}

TEST(forty_columns) {
    sl_progress_facts facts = usual();
    assert_string_equal(sl_progress_line(&facts, 40, line), "12.3 %  85.2k/s  ETA 3m20s  server");
}

TEST(a_wide_terminal_shows_all) {
    static const char *const all[] = {"[==",
                                      "12.3 %",
                                      "1.23M docs",
                                      "85.2k/s",
                                      "36.9 MB/s",
                                      "ETA 3m20s",
                                      "12 rejects",
                                      "8 threads",
                                      "the server 78 %",
                                      "parsing 12 %",
                                      "s1 40.0k/s  s2 45.2k/s"};
    sl_progress_facts facts = usual();
    sl_progress_line(&facts, 200, line);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_contains(line, all[i]);
}

TEST(a_log_has_words_and_no_bar) {
    sl_progress_facts facts = usual();
    facts.rate_limit = 90000;
    assert_string_equal(sl_progress_line(&facts, 0, line),
                        " 12.3 %  1,234,567 documents  85.2k/s now, 80.1k/s overall  36.9 MB/s  "
                        "ETA 3 min 20 s  rejects 12  8 threads  limited to 90,000/s  waits for the "
                        "server 78 %, parsing 12 %  s1 40.0k/s  s2 45.2k/s");
}

/* Every combination of extreme values at every width. */
TEST(it_always_fits_and_always_has_the_four) {
    static const double shares[] = {-1, 0, 0.00001, 0.5, 0.99999, 1};
    static const double lefts[] = {-1, 0, 59.6, 3599, 86399, 8.64e6, 1e9};
    static const double speeds[] = {0, 0.4, 999.6, 999949, 1e6, 999.9e6, 2e9};
    static const char *const stages[] = {"reading", "unpacking", "parsing", "the rate limit",
                                         "the server"};
    sl_progress_facts facts = usual();
    for (unsigned columns = 40; columns <= 250;
         columns = columns < 90 ? columns + 1 : columns + 40) {
        for (unsigned i = 0; i < 6 * 7 * 7 * 5; i++) {
            facts.share = shares[i % 6];
            facts.left = lefts[i / 6 % 7];
            facts.rate_now = speeds[i / 42 % 7];
            facts.waits[0] = stages[i / 294];
            sl_progress_line(&facts, columns, line);
            if (strlen(line) >= columns)
                fail_msg("%zu characters of %u columns: \"%s\"", strlen(line), columns, line);
            const char *waits = facts.waits[0];
            assert_contains(line, facts.share < 0 ? "1.23M" : "%");
            assert_contains(line, "/s");
            assert_contains(line, "ETA ");
            assert_contains(line, waits + (strncmp(waits, "the ", 4) == 0 ? 4 : 0));
        }
    }
}

TEST(an_unknown_total_has_no_share_and_no_bar) {
    sl_progress_facts facts = usual();
    facts.share = facts.left = -1;
    sl_progress_line(&facts, 80, line);
    assert_has_not("[");
    assert_int_equal(strncmp(line, "1.23M docs", 10), 0);
    assert_contains(line, "ETA ?");
    sl_progress_line(&facts, 0, line);
    assert_int_equal(strncmp(line, "1,234,567 documents", 19), 0);
}

TEST(an_unfinished_load_is_not_at_100_percent) {
    sl_progress_facts facts = usual();
    facts.share = 0.99999;
    sl_progress_line(&facts, 80, line);
    assert_has_not("100");
    facts.share = 1;
    assert_contains(sl_progress_line(&facts, 90, line), "100.0 %");
    assert_contains(line, "=]");
}

TEST(the_beginning) {
    sl_progress_facts facts = {.share = 0, .left = -1};
    assert_string_equal(sl_progress_line(&facts, 40, line), "0.0 %  0 docs  0/s  ETA ?  starting");
}

TEST(a_silent_shard_is_named) {
    sl_progress_facts facts = usual();
    facts.silent = 12;
    facts.silent_shard = "s1";
    assert_contains(sl_progress_line(&facts, 0, line), "  no answer from s1 for 12");
    assert_contains(sl_progress_line(&facts, 100, line), "s1 silent 12s");
    assert_contains(sl_progress_line(&facts, 40, line), "s1 silent");
    assert_true(strlen(line) < 40);
}
