/* SPDX-License-Identifier: Apache-2.0 */
/* A BSON dump in memory, cut into the batches that will be sent. */
#ifndef YARDSTICK_DUMP_H
#define YARDSTICK_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Documents that go into one insert: pieces of the dump, one behind the other. */
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
    struct batch *batches; /* in the order in which they began */
    size_t batch_count;
    size_t batch_room;
    uint64_t documents;
};

/* How batches are cut. */
struct cut {
    uint32_t documents;    /* at most so many in a batch, at least 1 */
    size_t bytes;          /* at most so many, unless a single document is larger */
    const int64_t *splits; /* ascending; no batch has ids on both sides of one of them */
    size_t split_count;
};

/*
 * Reads the dump at `path` into memory. False, with the reason on the standard error output, when
 * that fails. dump_clear in any case.
 */
bool dump_read(struct dump *dump, const char *path);

/*
 * Cuts the dump into batches. Between two splits documents keep their order. With splits, each
 * document must begin with a 64-bit integer `_id`. False, with the reason on the standard error
 * output, when the dump is damaged or memory runs out.
 */
bool dump_cut(struct dump *dump, const struct cut *cut);

/* Gives everything back. */
void dump_clear(struct dump *dump);

#endif
