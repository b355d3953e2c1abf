/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that accept connections and do not answer.
 *
 * Each client looks for the servers itself, and waits connectTimeoutMS for a host that hangs. So
 * that not every client waits for the same host, it is remembered here for the whole process. For
 * some seconds nobody asks it while the URI has another host; then one client tries it again, and
 * the others still pass it over. */
#include <string.h>

#include "internal.h"

#define REMEMBERED_MS 10000
#define HOSTS_MAX 32 /* more are not remembered */

static struct {
    pthread_mutex_t lock;
    struct {
        char name[BSON_HOST_NAME_MAX + 8]; /* "": a free entry */
        int64_t until;                     /* by the driver's clock; afterwards it may be tried */
    } hosts[HOSTS_MAX];
} silent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the entry of this name, or -1. Under the lock. */
static int entry_of(const char *name) {
    for (int i = 0; i < HOSTS_MAX; i++) {
        if (strcmp(silent.hosts[i].name, name) == 0)
            return i;
    }
    return -1;
}

void sl_silent_host_add(const char *host_and_port) {
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    at = at < 0 ? entry_of("") : at;
    if (at >= 0) {
        snprintf(silent.hosts[at].name, sizeof silent.hosts[at].name, "%s", host_and_port);
        silent.hosts[at].until = bson_get_monotonic_time() + (int64_t)REMEMBERED_MS * 1000;
    }
    pthread_mutex_unlock(&silent.lock);
}

void sl_silent_host_remove(const char *host_and_port) {
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    if (at >= 0)
        silent.hosts[at].name[0] = '\0';
    pthread_mutex_unlock(&silent.lock);
}

bool sl_silent_host_is_passed_over(const mongoc_uri_t *uri, const char *host_and_port,
                                   int32_t trial_ms) {
    const int64_t now = bson_get_monotonic_time();
    bool other = false, passed_over = false;
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri); host && at >= 0;
         host = host->next)
        other = other || entry_of(host->host_and_port) < 0;
    if (at >= 0)
        passed_over = other && silent.hosts[at].until > now;
    if (at >= 0 && !passed_over) /* this client tries it */
        silent.hosts[at].until = now + (int64_t)trial_ms * 1000;
    pthread_mutex_unlock(&silent.lock);
    return passed_over;
}
