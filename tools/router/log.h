/* SPDX-License-Identifier: Apache-2.0 */

/* One line of the router's log: the time, then the text formatted as by printf. */

#ifndef ROUTER_LOG_H
#define ROUTER_LOG_H

/* Writes the line to standard error, which `--log` redirects to a file. Thread-safe. */
void router_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
