/* SPDX-License-Identifier: Apache-2.0 */
/* A BSON dump in memory, divided into batches as by a loader that fills one batch per range. */
#include "dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plain.h"
#include "util/grow.h"

enum { SHORTEST_DOCUMENT = 5, ID_AT = 4, ID_VALUE_AT = 9, ID_END = 17 };

static const char id_head[] = "\x12_id"; /* type and name of a 64-bit integer _id, with the NUL */

bool dump_read(struct dump *dump, const char *path) {
    struct stat facts;
    FILE *file = fopen(path, "rb");
    bool ok = file != NULL && fstat(fileno(file), &facts) == 0 &&
              (dump->bytes = malloc((size_t)facts.st_size + 1)) != NULL;
    if (ok)
        dump->size = fread(dump->bytes, 1, (size_t)facts.st_size, file);
    if (!ok || ferror(file) != 0)
        ok = complain(path, strerror(errno));
    else if (dump->size < (size_t)facts.st_size)
        ok = complain(path, "the file has shrunk");
    if (file != NULL)
        fclose(file);
    return ok;
}

static struct batch *new_batch(struct dump *dump) {
    struct batch *batches =
        sl_grow(dump->batches, dump->batch_count, &dump->batch_room, sizeof *batches);
    if (batches == NULL)
        return NULL;
    dump->batches = batches;
    struct batch *batch = &dump->batches[dump->batch_count++];
    *batch = (struct batch){0};
    return batch;
}

/* Adds a document. If it directly follows the last piece in the dump, the piece is extended. */
static bool add(struct batch *batch, uint8_t *document, size_t length) {
    struct iovec *last = batch->piece_count > 0 ? &batch->pieces[batch->piece_count - 1] : NULL;
    if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == document) {
        last->iov_len += length;
    } else {
        struct iovec *pieces =
            sl_grow(batch->pieces, batch->piece_count, &batch->piece_room, sizeof *pieces);
        if (pieces == NULL)
            return false;
        batch->pieces = pieces;
        batch->pieces[batch->piece_count++] =
            (struct iovec){.iov_base = document, .iov_len = length};
    }
    batch->bytes += length;
    batch->documents++;
    return true;
}

/* The number of the document's range: how many splits are at or below its id. */
static bool range_of(const struct batch_limits *limits, const uint8_t *document, size_t length,
                     size_t *range) {
    *range = 0;
    if (limits->split_count == 0)
        return true;
    if (length < ID_END || memcmp(document + ID_AT, id_head, sizeof id_head) != 0)
        return false;
    int64_t id = 0;
    for (int i = 7; i >= 0; i--)
        id = (int64_t)((uint64_t)id << 8 | document[ID_VALUE_AT + i]);
    while (*range < limits->split_count && limits->splits[*range] <= id)
        ++*range;
    return true;
}

bool dump_divide(struct dump *dump, const struct batch_limits *limits) {
    /* For each range the number of its open batch, counted from 1; 0: none. */
    size_t *open_batches = calloc(limits->split_count + 1, sizeof *open_batches);
    bool ok = open_batches != NULL || complain("forming batches", "memory is exhausted");
    for (size_t at = 0; ok && at < dump->size;) {
        uint8_t *document = dump->bytes + at;
        size_t left = dump->size - at, length = 0, range;
        if (left >= SHORTEST_DOCUMENT)
            length = (size_t)document[0] | (size_t)document[1] << 8 | (size_t)document[2] << 16 |
                     (size_t)document[3] << 24;
        if (length < SHORTEST_DOCUMENT || length > left) {
            fprintf(stderr, "shardload-yardstick: the dump is damaged at byte %zu\n", at);
            ok = false;
            break;
        }
        if (!range_of(limits, document, length, &range)) {
            ok = complain("forming batches", "--split needs documents whose first field is an _id "
                                             "with a 64-bit integer");
            break;
        }
        size_t *slot = &open_batches[range];
        struct batch *batch = *slot > 0 ? &dump->batches[*slot - 1] : NULL;
        if (batch == NULL || batch->documents == limits->documents ||
            batch->bytes + length > limits->bytes) {
            batch = new_batch(dump);
            *slot = dump->batch_count;
        }
        if (batch == NULL || !add(batch, document, length))
            ok = complain("forming batches", "memory is exhausted");
        dump->documents++;
        at += length;
    }
    free(open_batches);
    return ok;
}

void dump_clear(struct dump *dump) {
    for (size_t i = 0; i < dump->batch_count; i++)
        free(dump->batches[i].pieces);
    free(dump->batches);
    free(dump->bytes);
    *dump = (struct dump){0};
}
