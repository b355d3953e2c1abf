/* SPDX-License-Identifier: Apache-2.0 */
/* The first connection: how often it is tried, and what is reported meanwhile.
 *
 * A wrong host or port is detected at once and is an error at once. A server that does not answer
 * in time is tried for some seconds. With --wait all failures are tried again until that time is
 * over. An attempt may be blocked for seconds (in DNS, in a handshake), so a separate thread logs
 * what is tried. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#define SLOW_SECONDS 6 /* for a server that does not answer in time */
#define FIRST_REPORT_SECONDS 2
#define REPORT_SECONDS 10
#define PAUSE_MS 500 /* between two attempts */

struct sl_connecting {
    int64_t start;
    unsigned wait_seconds;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    /* Guarded by `lock`: */
    bool over;
    char doing[200];
    char failure[600]; /* of the last attempt */
};

void sl_connecting_to(void *connecting, const char *format, ...) {
    sl_connecting *c = connecting;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&c->lock);
    sl_print_text_v(c->doing, sizeof c->doing, format, arguments);
    pthread_mutex_unlock(&c->lock);
    va_end(arguments);
}

/* Call it under the lock. */
static void report(const sl_connecting *c) {
    char so_far[SL_HUMAN_ROOM], most[SL_HUMAN_ROOM], limit[80] = "";
    if (c->wait_seconds > 0)
        snprintf(limit, sizeof limit, " of at most %s (--wait)",
                 sl_human_seconds(c->wait_seconds, most));
    sl_log_info("connecting: %s, %s so far%s%s%s", c->doing,
                sl_human_seconds(sl_seconds_since(c->start), so_far), limit,
                c->failure[0] ? "; the last attempt: " : "", c->failure);
}

static void *report_slow(void *context) {
    sl_connecting *c = context;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec += FIRST_REPORT_SECONDS;
    pthread_mutex_lock(&c->lock);
    while (!c->over) {
        if (pthread_cond_timedwait(&c->ended, &c->lock, &next) == 0 || c->over)
            continue;
        report(c);
        next.tv_sec += REPORT_SECONDS;
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool run_attempts(sl_connect_attempt *attempt, void *context, sl_connecting *c,
                         sl_error *error) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    for (;;) {
        bool again = false, soon = false;
        *error = (sl_error){0};
        if (attempt(context, c, &again, &soon, error))
            return true;
        double limit = c->wait_seconds;
        if (soon && limit < SLOW_SECONDS)
            limit = SLOW_SECONDS;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted while connecting");
        if (!again)
            return false;
        if (sl_seconds_since(c->start) + PAUSE_MS / 1000.0 >= limit) {
            size_t used = strlen(error->message);
            if (c->wait_seconds > 0)
                snprintf(error->message + used, sizeof error->message - used,
                         " (tried for %u s, --wait)", c->wait_seconds);
            return false;
        }
        pthread_mutex_lock(&c->lock);
        sl_print_text(c->failure, sizeof c->failure, SL_LINES, error->message);
        pthread_mutex_unlock(&c->lock);
        nanosleep(&pause, NULL);
    }
}

bool sl_connect(sl_connect_attempt *attempt, void *context, unsigned wait_seconds,
                sl_error *error) {
    sl_connecting c = {.start = sl_clock_ns(), .wait_seconds = wait_seconds, .doing = "starting"};
    sl_error own;
    pthread_t thread;
    if (!error)
        error = &own;
    pthread_mutex_init(&c.lock, NULL);
    sl_clock_init_condition(&c.ended);
    bool reporting = sl_thread_start(&thread, report_slow, &c) == 0; /* without a thread nothing is
                                                                        logged */
    bool ok = run_attempts(attempt, context, &c, error);
    pthread_mutex_lock(&c.lock);
    c.over = true;
    pthread_cond_signal(&c.ended);
    pthread_mutex_unlock(&c.lock);
    if (reporting)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.lock);
    return ok;
}
