/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two yardstick programs: plain sockets, the clock, error messages. */
#ifndef YARDSTICK_PLAIN_H
#define YARDSTICK_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OP_MSG = 2013, HEADER_BYTES = 16 };

/* Prints "PROGRAM: what: why" to standard error. Returns false. */
bool complain(const char *what, const char *why);

/* Connects to a server. Returns the socket, or -1 after an error message. */
int open_socket(const char *host, const char *port);

/* Reads exactly `count` bytes. False after an error message. */
bool read_bytes(int from, uint8_t *to, size_t count);

/* Monotonic time in seconds. */
double now(void);

#endif
