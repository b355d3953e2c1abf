/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts: a trial listens, and so does each load that it runs. Ctrl-C in a load is heard by both,
 * and is still known when the load has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shardload/interrupt.h>

static _Atomic unsigned heard; /* a digit per call: 1 outer, 2 inner */

static void note(void *context) {
    heard = heard * 10 + *(const unsigned *)context;
}

static void tell(void *context) { /* the second time: to who waits for the end of this process */
    const char digit = (char)('0' + *(const unsigned *)context);
    if (write(STDOUT_FILENO, &digit, 1) != 1)
        _exit(99);
}

static const unsigned outer = 1, inner = 2;

static void await(unsigned value) {
    for (int i = 0; i < 500 && heard != value; i++)
        usleep(10000);
    assert_int_equal(heard, value);
}

static void who_listens_within_is_told_first(void **state) {
    (void)state;
    sl_error error = {0};
    heard = 0;
    assert_true(sl_interrupt_listen(note, tell, (void *)&outer, &error));
    assert_true(sl_interrupt_listen(note, tell, (void *)&inner, &error));
    assert_false(sl_interrupt_requested());
    kill(getpid(), SIGINT);
    await(21);
    sl_interrupt_stop_listening();
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    assert_true(sl_interrupt_listen(note, tell, (void *)&outer, &error)); /* from the beginning */
    assert_false(sl_interrupt_requested());
    sl_interrupt_stop_listening();
}

static void between_two_loads_the_outer_one_hears_alone(void **state) {
    (void)state;
    sl_error error = {0};
    heard = 0;
    assert_true(sl_interrupt_listen(note, tell, (void *)&outer, &error));
    assert_true(sl_interrupt_listen(note, tell, (void *)&inner, &error));
    sl_interrupt_stop_listening();
    kill(getpid(), SIGTERM);
    await(1);
    assert_true(sl_interrupt_listen(note, tell, (void *)&inner, &error)); /* it begins, and is told */
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    sl_interrupt_stop_listening();
}

static _Atomic bool serving;

static void serve_slowly(void *context) {
    serving = true;
    usleep(300000); /* meanwhile the main thread has stopped listening */
    tell(context);
}

/* What the second signal has begun (a balancer that is put back) is not cut short by a program that is
 * about to end. */
static void who_stops_listening_waits_for_the_second_signal(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sl_error error = {0};
        dup2(ends[1], STDOUT_FILENO);
        heard = 0;
        if (!sl_interrupt_listen(note, serve_slowly, (void *)&outer, &error))
            _exit(98);
        kill(getpid(), SIGINT);
        while (heard != 1)
            usleep(1000);
        kill(getpid(), SIGINT);
        while (!serving)
            usleep(1000);
        sl_interrupt_stop_listening();
        _exit(97);
    }
    close(ends[1]);
    char digit = 0;
    ssize_t got = read(ends[0], &digit, 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SL_EXIT_INTERRUPTED);
    assert_int_equal(got, 1);
    assert_int_equal(digit, '1');
    close(ends[0]);
}

/* A worker that is in the middle of a change when the second signal comes, and would begin another.
 */
static _Atomic bool changing;

static void *change_twice(void *context) {
    const unsigned first = 1, second = 9;
    sl_interrupt_begin_change();
    changing = true;
    while (!serving)
        usleep(1000);
    for (unsigned ms = *(const unsigned *)context; ms > 0; ms--)
        usleep(1000);
    tell((void *)&first);
    sl_interrupt_end_change();
    sl_interrupt_begin_change(); /* and here it stays */
    tell((void *)&second);
    return NULL;
}

static void ignore(void *context) {
    (void)context;
}

static void clean_up(void *context) {
    const unsigned quiet = 2, not_quiet = 3;
    serving = true;
    tell(sl_interrupt_await_changes(*(const double *)context) ? (void *)&quiet
                                                              : (void *)&not_quiet);
    usleep(100000); /* in which nothing is changed any more */
}

/* What is told when a change takes so many milliseconds, and is waited for so many seconds. */
static void told_of_changes(unsigned takes, double patience, const char *expected) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sl_error error = {0};
        pthread_t worker;
        dup2(ends[1], STDOUT_FILENO);
        serving = false;
        if (!sl_interrupt_listen(ignore, clean_up, &patience, &error) ||
            pthread_create(&worker, NULL, change_twice, &takes) != 0)
            _exit(98);
        while (!changing)
            usleep(1000);
        kill(getpid(), SIGINT);
        while (!sl_interrupt_requested())
            usleep(1000);
        kill(getpid(), SIGINT);
        for (;;)
            pause();
    }
    close(ends[1]);
    char digits[8] = "";
    size_t used = 0;
    for (ssize_t got; used < sizeof digits - 1 && (got = read(ends[0], digits + used, 1)) > 0;)
        used++;
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SL_EXIT_INTERRUPTED);
    assert_string_equal(digits, expected);
    close(ends[0]);
}

static void the_second_signal_waits_for_changes_and_lets_none_begin(void **state) {
    (void)state;
    told_of_changes(300, 10, "12");
    told_of_changes(60000, 0.1, "3"); /* no longer than was said */
}

static void loads_within_loads_have_an_end(void **state) {
    (void)state;
    sl_error error = {0};
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        assert_true(sl_interrupt_listen(note, tell, (void *)&outer, &error));
    assert_false(sl_interrupt_listen(note, tell, (void *)&outer, &error));
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        sl_interrupt_stop_listening();
}

static void the_second_signal_ends_the_process_after_both_were_told(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sl_error error = {0};
        dup2(ends[1], STDOUT_FILENO);
        heard = 0;
        if (!sl_interrupt_listen(note, tell, (void *)&outer, &error) ||
            !sl_interrupt_listen(note, tell, (void *)&inner, &error))
            _exit(98);
        kill(getpid(), SIGINT);
        while (heard != 21)
            usleep(1000);
        kill(getpid(), SIGINT);
        for (;;)
            pause();
    }
    close(ends[1]);
    char digits[8] = "";
    size_t used = 0;
    for (ssize_t got; used < sizeof digits && (got = read(ends[0], digits + used, 1)) > 0;)
        used++;
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SL_EXIT_INTERRUPTED);
    assert_string_equal(digits, "21");
    close(ends[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            the_second_signal_ends_the_process_after_both_were_told), /* no thread yet */
        cmocka_unit_test(who_stops_listening_waits_for_the_second_signal),
        cmocka_unit_test(the_second_signal_waits_for_changes_and_lets_none_begin),
        cmocka_unit_test(who_listens_within_is_told_first),
        cmocka_unit_test(between_two_loads_the_outer_one_hears_alone),
        cmocka_unit_test(loads_within_loads_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
