/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run` from start to end. */
#include <stdlib.h>
#include <string.h>

#include "util/interrupt.h"
#include "util/log.h"
#include "util/print.h"

#include "query_session.h"

/* The largest number of clients that are connected at the same time. */
static unsigned clients_needed(const sl_query_session *s) {
    uint64_t clients[SL_STEPS_MAX], most = 64; /* for an open loop, and for statistics in threads */
    size_t count = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < count; i++)
        most = clients[i] > most ? clients[i] : most;
    return (unsigned)most;
}

static bool check_options(const sl_query_session *s, sl_error *error) {
    static const char *const of_load[] = {"during",       "operations", "duration",
                                          "warm-up-time", "max-lag",    NULL};
    static const char *const of_repeat[] = {"repeat", "warm-up", "cold", "explain", NULL};
    bool load = sl_query_is_load(s->options);
    const char *const *wrong = load ? of_repeat : of_load;
    for (; *wrong; wrong++) {
        if (sl_option_given(s->options, *wrong))
            return sl_error_set(error, SL_EXIT_USAGE,
                                load ? "--%s is for repeated runs: leave out this option, or "
                                       "--clients and --rate"
                                     : "--%s is for measuring under load: add --clients or --rate",
                                *wrong);
    }
    uint64_t clients[SL_STEPS_MAX];
    size_t steps = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < steps; i++) {
        if (clients[i] > SL_CLIENTS_MAX)
            return sl_error_set(error, SL_EXIT_USAGE, "--clients: at most %d", SL_CLIENTS_MAX);
    }
    return true;
}

static bool on_request(void *session) {
    atomic_store(&((sl_query_session *)session)->stop, true);
    return false;
}

static void on_second_request(void *session) {
    (void)session;
}

int sl_query_command(const sl_options *options, void (*listen)(_Atomic bool *stop),
                     bson_t *report) {
    sl_error error = {0};
    sl_query_session s = {.options = options};
    bool load = sl_query_is_load(options);
    bool ok = check_options(&s, &error) && sl_query_session_open(&s, &error) &&
              sl_query_session_connect(&s, clients_needed(&s), &error) &&
              sl_query_write_report(&s, false, &error);
    if (ok && listen)
        listen(&s.stop);
    bool listening = ok && sl_interrupt_listen(on_request, on_second_request, &s, &error);
    ok = listening;
    for (size_t i = 0; ok && i < s.suite_count && !atomic_load(&s.stop); i++) {
        if (i > 0)
            sl_print("\n");
        ok = load ? sl_query_load_suite(&s, s.suites[i], &error)
                  : sl_query_repeat_suite(&s, s.suites[i], &error);
    }
    bool stopped = atomic_load(&s.stop);
    ok = ok && sl_query_write_report(&s, !stopped, &error);
    if (ok && stopped)
        sl_log_warning("interrupted: only the results so far are shown");
    if (ok && report && !sl_query_make_report(&s, !stopped, report))
        ok = sl_error_memory(&error, "making the report");
    int code = !ok        ? sl_query_fail(&error)
               : stopped  ? SL_EXIT_INTERRUPTED
               : s.failed ? SL_EXIT_CLUSTER
               : s.wrong  ? SL_EXIT_VERIFICATION
                          : SL_EXIT_OK;
    if (listening)
        sl_interrupt_stop_listening();
    sl_query_session_close(&s);
    return code;
}
