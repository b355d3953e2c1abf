/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: sets the wall clock of a program back while it runs.
 *
 * The first CLOCK_BACK_AFTER readings are right; later ones are CLOCK_BACK_SECONDS early. The
 * monotonic clock is not changed. The kernel's clock stays right: a deadline that a thread has
 * computed from an early reading is corrected before the thread waits for it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static atomic_long readings;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (status == 0 && clock == CLOCK_REALTIME &&
        atomic_fetch_add(&readings, 1) >= number("CLOCK_BACK_AFTER"))
        now->tv_sec -= number("CLOCK_BACK_SECONDS");
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec fine;
    int status = clock_gettime(CLOCK_REALTIME, &fine);
    if (status == 0)
        *now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
    return status;
}

time_t time(time_t *result) {
    struct timespec fine;
    time_t now = clock_gettime(CLOCK_REALTIME, &fine) == 0 ? fine.tv_sec : (time_t)-1;
    if (result)
        *result = now;
    return now;
}

/* All timed waits of the program use CLOCK_REALTIME. */
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec deadline = *until, now;
    time_t back = number("CLOCK_BACK_SECONDS");
    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 && deadline.tv_sec < now.tv_sec - back / 2)
        deadline.tv_sec += back;
    return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &deadline);
}
