/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as OP_MSG inserts over plain sockets, one in flight per connection. */
#ifndef YARDSTICK_SENDER_H
#define YARDSTICK_SENDER_H

#include "dump.h"

#include <bson/bson.h>

/* Where batches go. All borrowed. */
struct target {
    const char *host;
    const char *port;
    const char *database;
    const char *collection;
    const bson_t *write_concern;
    unsigned threads; /* connections, at least 1 */
};

/*
 * Sends every batch of the dump and waits for each reply. The connections are open before the clock
 * starts: `seconds` is from the first send to the last reply. False, with the reason on the
 * standard error output, when a connection fails, or a reply is anything but "all documents are
 * in".
 */
bool send_all(const struct dump *dump, const struct target *target, double *seconds);

#endif
