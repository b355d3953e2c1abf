/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts with nested listeners: a tuning listens, and so does each of its loads. Ctrl-C during
 * a load is reported to both, and the tuning can still read it after the load has ended. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"
#include "cluster/registry.h"
#include "util/interrupt.h"

static _Atomic unsigned calls; /* one decimal digit per call: 1 outer, 2 inner listener */

static bool on_first_signal(void *context) {
    calls = calls * 10 + *(const unsigned *)context;
    return false;
}

/* Writes a digit to standard output, which the parent process reads. */
static void on_second_signal(void *context) {
    const char digit = (char)('0' + *(const unsigned *)context);
    if (write(STDOUT_FILENO, &digit, 1) != 1)
        _exit(99);
}

static const unsigned outer = 1, inner = 2;
static sl_error error;

static void await_calls(unsigned value) {
    for (int i = 0; i < 500 && calls != value; i++)
        usleep(10000);
    assert_int_equal(calls, value);
}

/* Calls `run` in a child process, which must be ended by the second signal. `expected`: the digits
 * that the child writes. */
static void check_child(void (*run)(const void *), const void *context, const char *expected) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        calls = 0;
        run(context);
        _exit(97);
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

/* ---- in a child process; these tests come first, since no thread exists yet ---- */

static void interrupt_twice(const void *context) {
    (void)context;
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

TEST(the_second_signal_ends_the_process_after_both_handlers) {
    check_child(interrupt_twice, NULL, "21");
}

static _Atomic bool serving;

static void serve_slowly(void *context) {
    serving = true;
    usleep(300000); /* meanwhile the main thread has stopped listening */
    on_second_signal(context);
}

static void stop_listening_after_the_second_signal(const void *context) {
    (void)context;
    if (!sl_interrupt_listen(on_first_signal, serve_slowly, (void *)&outer, &error))
        _exit(98);
    kill(getpid(), SIGINT);
    while (calls != 1)
        usleep(1000);
    kill(getpid(), SIGINT);
    while (!serving)
        usleep(1000);
    sl_interrupt_stop_listening();
}

/* The handler of the second signal (which restores the balancer) runs to its end although the
 * program is about to exit. */
TEST(stop_listening_waits_for_the_second_handler) {
    check_child(stop_listening_after_the_second_signal, NULL, "1");
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

static bool ignore(void *context) {
    (void)context;
    return false;
}

static void clean_up(void *context) {
    const unsigned quiet = 2, not_quiet = 3;
    serving = true;
    on_second_signal(sl_interrupt_await_changes(*(const double *)context) ? (void *)&quiet
                                                                          : (void *)&not_quiet);
    usleep(100000); /* time in which a second change would begin */
}

typedef struct change_case {
    unsigned takes;  /* milliseconds of the change */
    double patience; /* seconds for which its end is awaited */
} change_case;

static void interrupt_a_change(const void *context) {
    change_case c = *(const change_case *)context;
    pthread_t worker;
    if (!sl_interrupt_listen(ignore, clean_up, &c.patience, &error) ||
        sl_thread_start(&worker, change_twice, &c.takes) != 0)
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

/* Digits: 1 the change ended, 2 its end was awaited, 3 the wait timed out. */
TEST(the_second_signal_waits_for_changes_and_lets_none_begin) {
    check_child(interrupt_a_change, &(change_case){.takes = 300, .patience = 10}, "12");
    check_child(interrupt_a_change, &(change_case){.takes = 60000, .patience = 0.1}, "3");
}

/* ---- in this process ---- */

static void listen_as(const unsigned *who) {
    assert_true(
        sl_interrupt_listen(on_first_signal, on_second_signal, (void *)(uintptr_t)who, &error));
}

TEST(the_inner_listener_is_called_first) {
    calls = 0;
    listen_as(&outer);
    listen_as(&inner);
    assert_false(sl_interrupt_requested());
    kill(getpid(), SIGINT);
    await_calls(21);
    sl_interrupt_stop_listening();
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    listen_as(&outer); /* resets the request */
    assert_false(sl_interrupt_requested());
    sl_interrupt_stop_listening();
}

TEST(between_two_loads_only_the_outer_listener_is_called) {
    calls = 0;
    listen_as(&outer);
    listen_as(&inner);
    sl_interrupt_stop_listening();
    kill(getpid(), SIGTERM);
    await_calls(1);
    listen_as(&inner); /* the earlier request remains */
    assert_true(sl_interrupt_requested());
    sl_interrupt_stop_listening();
    sl_interrupt_stop_listening();
}

TEST(the_number_of_listeners_is_limited) {
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        listen_as(&outer);
    assert_false(sl_interrupt_listen(on_first_signal, on_second_signal, (void *)&outer, &error));
    for (int i = 0; i < SL_LISTENERS_MAX; i++)
        sl_interrupt_stop_listening();
}

static sl_context *context;

static int begin(void **state) {
    (void)state;
    context = sl_context_create(
        &(sl_surroundings){.start_signals = sl_signals_start, .stop_signals = sl_signals_stop});
    sl_context_bind(context);
    return 0;
}

static int end(void **state) {
    (void)state;
    sl_context_bind(NULL);
    sl_context_destroy(context);
    return 0;
}

BEFORE_AND_AFTER_ALL(begin, end)

/* A registry may have millions of sources. */
TEST(the_first_request_ends_the_reading_of_a_registry) {
    bson_t *source = unit_keep_bson(BCON_NEW("number", BCON_INT32(1)));
    sl_number_list list = {.count = 0};
    assert_true(sl_interrupt_listen(on_first_signal, NULL, (void *)(uintptr_t)&outer, &error));
    for (int i = 0; i < 3000; i++)
        assert_true(sl_registry_add_number(&list, source));
    sl_interrupt_request(sl_context_current());
    while (list.count < 6000 && sl_registry_add_number(&list, source))
        ;
    assert_in_range(list.count, 3000, 5000);
    assert_int_equal(list.error.code, SL_EXIT_INTERRUPTED);
    sl_interrupt_stop_listening();
    free(list.items);
}
