/* SPDX-License-Identifier: Apache-2.0 */
/* The rejects of a load summed up by reason and column, with the first example of each. */
#ifndef SHARDLOAD_REJECT_KINDS_H
#define SHARDLOAD_REJECT_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/text.h"

#define SL_REJECT_KINDS_MAX 40

typedef struct sl_reject_kind {
    uint64_t count;
    char reason[240]; /* the common reason of its rejects, with "..." and N for values that
                         differ */
    char column[100];
    char first_place[200]; /* "year.txt, line 12" */
    char first_reason[240];
} sl_reject_kind;

/* All zero is empty. The memory is bounded: further kinds are counted together. */
typedef struct sl_reject_kinds {
    sl_reject_kind *items; /* in the order of their first rejects; allocated with the first one */
    size_t count;
    uint64_t others; /* rejects of further kinds */
} sl_reject_kinds;

void sl_reject_kinds_clear(sl_reject_kinds *kinds);

/* Counts a reject. The texts may be any bytes; `place` is made only for the first of a kind, by
 * `write_place`. */
void sl_reject_kinds_add(sl_reject_kinds *kinds, sl_text reason, sl_text column,
                         void (*write_place)(const void *context, char *out, size_t room),
                         const void *context);

/* Counts the rejects in the first `bytes` of a rejects.tsv, which an earlier run has written. */
void sl_reject_kinds_read(sl_reject_kinds *kinds, const char *path, uint64_t bytes);

/* Indices of the kinds, the most frequent first. */
void sl_reject_kinds_order(const sl_reject_kinds *kinds, size_t order[SL_REJECT_KINDS_MAX]);

uint64_t sl_reject_kinds_sum(const sl_reject_kinds *kinds);

/* Logs what sl_reject_summary_record has appended to a record; nothing if there were no rejects.
 * `of`: the source of the rejects; NULL where a load has only one kind of sources. */
void sl_reject_summary_log(const bson_t *record, const char *of);
/* `all`: the number of rejects in the totals. Those that are in no kind belong to blocks that were
 * not completed before an early end. */
void sl_reject_summary_record(const sl_reject_kinds *kinds, uint64_t all, bson_t *record);

#endif
