/* SPDX-License-Identifier: Apache-2.0 */

/* The router's log: see log.h. */

#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void router_log(const char *format, ...) {
    char text[1024];
    char when[32];
    struct tm parts;
    const time_t now = time(NULL);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gmtime_r(&now, &parts);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    fprintf(stderr, "%s %s\n", when, text); /* one call: lines of two threads do not mix */
}
