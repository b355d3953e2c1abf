/* SPDX-License-Identifier: Apache-2.0 */
/* What the progress line shows, for chosen counters at chosen times, against figures computed by
 * hand. No rate is the same in any two spans, so that a wrong span shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "../../src/load/progress_figures.h"

static void assert_near(double is, double wanted) {
    if (fabs(is - wanted) > 1e-9 * fabs(wanted))
        fail_msg("is %.17g, not %.17g", is, wanted);
}

/* Moment number i is at i / 2 seconds; everything grows with its square. */
static sl_moment moment(unsigned i) {
    return (sl_moment){.seconds = i * 0.5,
                       .documents = (uint64_t)i * i * 10,
                       .bytes = (uint64_t)i * i * 1000,
                       .stored_bytes = (uint64_t)i * i * 300};
}

static void keep(sl_window *window, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        sl_moment one = moment(i);
        sl_window_keep(window, &one);
    }
}

static void before_anything_was_kept(void **state) {
    (void)state;
    static sl_window window;
    sl_moment now = {.seconds = 4, .documents = 1000, .bytes = 80000, .stored_bytes = 20000};
    sl_figures is = sl_figures_of(&window, &now, 100000);
    assert_near(is.rate_now, 250);
    assert_near(is.rate_all, 250);
    assert_near(is.bytes_now, 20000);
    assert_near(is.share, 0.2);
    assert_near(is.left, 16); /* 80,000 bytes at 5,000 a second */
}

static void in_its_first_half_minute(void **state) {
    (void)state;
    static sl_window window;
    keep(&window, 20); /* the last kept is number 19; four back is number 16 */
    sl_moment now = moment(20);
    sl_figures is = sl_figures_of(&window, &now, 240000);
    assert_near(is.rate_now, (4000 - 2560) / 2.0);
    assert_near(is.bytes_now, (400000 - 256000) / 2.0);
    assert_near(is.rate_all, 4000 / 10.0);
    assert_near(is.share, 0.5);
    assert_near(is.left, 120000 / (120000 / 10.0)); /* since number 0 */
}

static void later(void **state) {
    (void)state;
    static sl_window window;
    keep(&window, 100); /* numbers 36 to 99 are left */
    sl_moment now = moment(100);
    sl_figures is = sl_figures_of(&window, &now, 4000000);
    assert_near(is.rate_now, (100000 - 92160) / 2.0);
    assert_near(is.rate_all, 100000 / 50.0);
    assert_near(is.share, 0.75);
    assert_near(is.left, 1000000 / ((3000000 - 36 * 36 * 300) / 32.0));
}

static void what_is_not_known_is_not_shown(void **state) {
    (void)state;
    static sl_window window;
    keep(&window, 20);
    sl_moment now = moment(20);
    assert_near(sl_figures_of(&window, &now, 0).left, -1); /* a pipe has no total */
    assert_true(sl_figures_of(&window, &now, 0).share == 0);
    static sl_window still;
    sl_moment nothing = {.seconds = 3};
    assert_near(sl_figures_of(&still, &nothing, 1000).left, -1); /* no progress, no estimate */
    sl_moment early = {.seconds = 0.9, .stored_bytes = 10};
    assert_near(sl_figures_of(&still, &early, 1000).left, -1);
    sl_moment zero = {0};
    assert_true(sl_figures_of(&still, &zero, 1000).rate_all == 0);
}

static void shares_of_the_workers_time(void **state) {
    (void)state;
    static sl_window window;
    for (unsigned i = 0; i < 10; i++) {
        sl_moment one = moment(i);
        one.stage_seconds[STAGE_PARSING] = i;
        one.stage_seconds[STAGE_SENDING] = i < 6 ? 0 : (i - 6) * 3.0;
        sl_window_keep(&window, &one);
    }
    sl_moment now = moment(10);
    now.stage_seconds[STAGE_PARSING] = 10;
    now.stage_seconds[STAGE_SENDING] = 12;
    sl_figures is = sl_figures_of(&window, &now, 0);
    assert_near(is.stage_share[STAGE_PARSING], 4.0 / 16);
    assert_near(is.stage_share[STAGE_SENDING], 12.0 / 16);
    assert_true(is.stage_share[STAGE_READING] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_anything_was_kept),
        cmocka_unit_test(in_its_first_half_minute),
        cmocka_unit_test(later),
        cmocka_unit_test(what_is_not_known_is_not_shown),
        cmocka_unit_test(shares_of_the_workers_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
