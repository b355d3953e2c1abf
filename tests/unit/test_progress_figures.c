/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the progress line, compared with figures computed by hand. The rate is different
 * in any two time spans, so that a wrong span gives a wrong rate. */
#include <unistd.h>

#include "load/progress.h"
#include "unit.h"

/* Counters at i / 2 seconds, which grow with the square of i. */
static sl_progress_sample sample(unsigned i) {
    return (sl_progress_sample){.seconds = i * 0.5,
                                .documents = (uint64_t)i * i * 10,
                                .bytes = (uint64_t)i * i * 1000,
                                .stored_bytes = (uint64_t)i * i * 300};
}

static void keep(sl_window *window, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        sl_progress_sample one = sample(i);
        sl_window_keep(window, &one);
    }
}

TEST(with_an_empty_window) {
    static sl_window window;
    sl_progress_sample now = {
        .seconds = 4, .documents = 1000, .bytes = 80000, .stored_bytes = 20000};
    sl_figures shown = sl_figures_of(&window, &now, 100000);
    assert_near(shown.rate_now, 250, 1e-9);
    assert_near(shown.rate_all, 250, 1e-9);
    assert_near(shown.bytes_now, 20000, 1e-9);
    assert_near(shown.share, 0.2, 1e-9);
    assert_near(shown.left, 16, 1e-9); /* seconds: 80,000 bytes at 5,000 bytes/s */
}

TEST(in_the_first_half_minute) {
    static sl_window window;
    keep(&window, 20); /* samples 0 to 19; the current rate is that since sample 16 */
    sl_progress_sample now = sample(20);
    sl_figures shown = sl_figures_of(&window, &now, 240000);
    assert_near(shown.rate_now, (4000 - 2560) / 2.0, 1e-9);
    assert_near(shown.bytes_now, (400000 - 256000) / 2.0, 1e-9);
    assert_near(shown.rate_all, 4000 / 10.0, 1e-9);
    assert_near(shown.share, 0.5, 1e-9);
    assert_near(shown.left, 120000 / (120000 / 10.0), 1e-9); /* at the rate since sample 0 */
}

TEST(later) {
    static sl_window window;
    keep(&window, 100); /* the window keeps the samples 36 to 99 */
    sl_progress_sample now = sample(100);
    sl_figures shown = sl_figures_of(&window, &now, 4000000);
    assert_near(shown.rate_now, (100000 - 92160) / 2.0, 1e-9);
    assert_near(shown.rate_all, 100000 / 50.0, 1e-9);
    assert_near(shown.share, 0.75, 1e-9);
    assert_near(shown.left, 1000000 / ((3000000 - 36 * 36 * 300) / 32.0), 1e-9);
}

TEST(unknown_figures_are_not_shown) {
    static sl_window window;
    keep(&window, 20);
    sl_progress_sample now = sample(20);
    assert_near(sl_figures_of(&window, &now, 0).left, -1, 1e-9); /* a pipe has no total */
    assert_true(sl_figures_of(&window, &now, 0).share == 0);
    static sl_window still;
    sl_progress_sample nothing = {.seconds = 3};
    assert_near(sl_figures_of(&still, &nothing, 1000).left, -1,
                1e-9); /* no progress, no estimate */
    sl_progress_sample early = {.seconds = 0.9, .stored_bytes = 10};
    assert_near(sl_figures_of(&still, &early, 1000).left, -1, 1e-9);
    sl_progress_sample few = {.seconds = 3,
                              .stored_bytes = 10}; /* an estimate of an hour a second */
    assert_near(sl_figures_of(&still, &few, 10 + 36000).left, 10800, 1e-9);
    assert_near(sl_figures_of(&still, &few, 10 + 36001).left, -1, 1e-9);
    sl_progress_sample zero = {0};
    assert_true(sl_figures_of(&still, &zero, 1000).rate_all == 0);
}

TEST(shares_of_the_workers_time) {
    static sl_window window;
    for (unsigned i = 0; i < 10; i++) {
        sl_progress_sample one = sample(i);
        one.stage_seconds[STAGE_PARSING] = i;
        one.stage_seconds[STAGE_SENDING] = i < 6 ? 0 : (i - 6) * 3.0;
        sl_window_keep(&window, &one);
    }
    sl_progress_sample now = sample(10);
    now.stage_seconds[STAGE_PARSING] = 10;
    now.stage_seconds[STAGE_SENDING] = 12;
    sl_figures shown = sl_figures_of(&window, &now, 0);
    assert_near(shown.stage_share[STAGE_PARSING], 4.0 / 16, 1e-9);
    assert_near(shown.stage_share[STAGE_SENDING], 12.0 / 16, 1e-9);
    assert_true(shown.stage_share[STAGE_READING] == 0);
}

/* A server that hangs shows while it hangs, not only after its answer. */
TEST(a_stage_in_progress_counts) {
    _Alignas(64) static sl_worker_counters counters;
    sl_run run = {.counters = &counters, .threads = 1};
    atomic_store(&counters.stage, STAGES);
    assert_true(sl_run_sum(&run).stage_seconds[STAGE_SENDING] <= 0);
    sl_stage_enter(&counters, STAGE_SENDING);
    usleep(20000);
    double waited = sl_run_sum(&run).stage_seconds[STAGE_SENDING];
    assert_true(waited >= 0.02);
    sl_stage_enter(&counters, STAGES);
    double ended = sl_run_sum(&run).stage_seconds[STAGE_SENDING];
    assert_true(ended >= waited);
    usleep(1000);
    assert_true(sl_run_sum(&run).stage_seconds[STAGE_SENDING] <= ended);
    assert_true(sl_run_sum(&run).stage_seconds[STAGE_PARSING] <= 0);
}
