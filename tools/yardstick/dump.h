/* SPDX-License-Identifier: Apache-2.0 */
/* A BSON dump in memory, divided into the batches to be sent. */
#ifndef YARDSTICK_DUMP_H
#define YARDSTICK_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The documents of one insert, as pieces of the dump. */
struct batch {
    struct iovec *pieces; /* into the dump's bytes */
    size_t piece_count;
    size_t piece_room;
    size_t bytes; /* in all pieces */
    uint32_t documents;
};

struct dump {
    uint8_t *bytes;
    size_t size;
    struct batch *batches; /* ordered by their first documents */
    size_t batch_count;
    size_t batch_room;
    uint64_t documents;
};

/* The limits of batches. */
struct batch_limits {
    uint32_t documents;    /* maximum per batch, at least 1 */
    size_t bytes;          /* maximum per batch, unless a single document is larger */
    const int64_t *splits; /* ascending; a batch has no ids on both sides of a split */
    size_t split_count;
};

/*
 * Reads the dump at `path` into memory. False after an error message on standard error. To be
 * cleared in any case.
 */
bool dump_read(struct dump *dump, const char *path);

/*
 * Divides the dump into batches. Between two splits documents keep their order. With splits, the
 * first field of each document must be an `_id` with a 64-bit integer. False, after an error
 * message on standard error, if the dump is damaged or memory is exhausted.
 */
bool dump_divide(struct dump *dump, const struct batch_limits *limits);

/* Frees the dump and its batches. */
void dump_clear(struct dump *dump);

#endif
