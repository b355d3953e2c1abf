/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as OP_MSG inserts over plain sockets, one in flight per connection. */
#ifndef YARDSTICK_SENDER_H
#define YARDSTICK_SENDER_H

#include "dump.h"

#include <bson/bson.h>

enum { ADDRESSES_MOST = 8 };

struct address {
    char host[256];
    char port[16];
};

/* The destination of batches. All pointers are borrowed. */
struct target {
    struct address addresses[ADDRESSES_MOST]; /* connections use them in turn */
    unsigned address_count;                   /* at least 1 */
    const char *database;
    const char *collection;
    const bson_t *write_concern;
    unsigned threads; /* connections, at least 1 */
};

/*
 * Sends all batches of the dump and waits for the replies. The connections are opened first;
 * `seconds` is the time from the first send to the last reply. False, after an error message on
 * standard error, if a connection fails or a document is not inserted.
 */
bool send_all(const struct dump *dump, const struct target *target, double *seconds);

#endif
