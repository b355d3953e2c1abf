/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts with nested listeners: a tuning listens, and so does each of its loads. Ctrl-C during
 * a load is reported to both, and the tuning still sees it after the load has ended. */
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

static _Atomic unsigned calls; /* one decimal digit per call: 1 outer, 2 inner listener */

static void on_first_signal(void *context) {
    calls = calls * 10 + *(const unsigned *)context;
}

/* Writes a digit to standard output, which the parent process reads. */
static void on_second_signal(void *context) {
    const char digit = (char)('0' + *(const unsigned *)context);
    if (write(STDOUT_FILENO, &digit, 1) != 1)
        _exit(99);
}

static const unsigned outer = 1, inner = 2;

static void await_calls(unsigned value) {
    for (int i = 0; i < 500 && calls != value; i++)
        usleep(10000);
    assert_int_equal(calls, value);
}

static void the_inner_listener_is_called_first(void **state) {
    (void)state;
    sl_error error = {0};
    calls = 0;
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error));
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&inner, &error));
    assert_false(sl_interrupt_requested());
    kill(getpid(), SIGINT);
    await_calls(21);
    sl_interrupt_stop_listening();
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer,
                                    &error)); /* resets the request */
    assert_false(sl_interrupt_requested());
    sl_interrupt_stop_listening();
}

static void between_two_loads_only_the_outer_listener_is_called(void **state) {
    (void)state;
    sl_error error = {0};
    calls = 0;
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error));
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&inner, &error));
    sl_interrupt_stop_listening();
    kill(getpid(), SIGTERM);
    await_calls(1);
    assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&inner,
                                    &error)); /* sees the earlier request */
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    sl_interrupt_stop_listening();
}

static _Atomic bool serving;

static void serve_slowly(void *context) {
    serving = true;
    usleep(300000); /* meanwhile the main thread has stopped listening */
    on_second_signal(context);
}

/* The handler of the second signal (which restores the balancer) runs to its end although the
 * program is about to exit. */
static void stop_listening_waits_for_the_second_handler(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sl_error error = {0};
        dup2(ends[1], STDOUT_FILENO);
        calls = 0;
        if (!sl_interrupt_listen(on_first_signal, serve_slowly, (void *)&outer, &error))
            _exit(98);
        kill(getpid(), SIGINT);
        while (calls != 1)
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

/* A worker that is changing something when the second signal arrives, and would begin another
 * change afterwards. */
static _Atomic bool changing;

static void *change_twice(void *context) {
    const unsigned first = 1, second = 9;
    sl_interrupt_begin_change();
    changing = true;
    while (!serving)
        usleep(1000);
    for (unsigned ms = *(const unsigned *)context; ms > 0; ms--)
        usleep(1000);
    on_second_signal((void *)&first);
    sl_interrupt_end_change();
    sl_interrupt_begin_change(); /* blocks for ever */
    on_second_signal((void *)&second);
    return NULL;
}

static void ignore(void *context) {
    (void)context;
}

static void clean_up(void *context) {
    const unsigned quiet = 2, not_quiet = 3;
    serving = true;
    on_second_signal(sl_interrupt_await_changes(*(const double *)context) ? (void *)&quiet
                                                                          : (void *)&not_quiet);
    usleep(100000); /* time in which a second change would begin */
}

/* The change takes `takes` milliseconds and is awaited for `patience` seconds. `expected`: the
 * digits that are written: 1 the change ended, 2 it was awaited, 3 the wait timed out. */
static void check_changes(unsigned takes, double patience, const char *expected) {
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
    check_changes(300, 10, "12");
    check_changes(60000, 0.1, "3");
}

static void the_number_of_listeners_is_limited(void **state) {
    (void)state;
    sl_error error = {0};
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        assert_true(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error));
    assert_false(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error));
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        sl_interrupt_stop_listening();
}

static void the_second_signal_ends_the_process_after_both_handlers(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sl_error error = {0};
        dup2(ends[1], STDOUT_FILENO);
        calls = 0;
        if (!sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error) ||
            !sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&inner, &error))
            _exit(98);
        kill(getpid(), SIGINT);
        while (calls != 21)
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
            the_second_signal_ends_the_process_after_both_handlers), /* no thread yet */
        cmocka_unit_test(stop_listening_waits_for_the_second_handler),
        cmocka_unit_test(the_second_signal_waits_for_changes_and_lets_none_begin),
        cmocka_unit_test(the_inner_listener_is_called_first),
        cmocka_unit_test(between_two_loads_only_the_outer_listener_is_called),
        cmocka_unit_test(the_number_of_listeners_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
