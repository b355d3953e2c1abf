/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of `shardload verify`: the state of one verification, which its files share.
 *
 * verify.c goes through the phases, verify_blocks.c compares what the sources give, verify_rest.c
 * looks where they give nothing, problems.c tells what is wrong, verify_report.c sums up. */
#ifndef SHARDLOAD_VERIFICATION_H
#define SHARDLOAD_VERIFICATION_H

#include "compare.h"
#include "engine.h"
#include "gaps.h"

/* ---- problems.c: what is wrong, document by document ---- */

typedef struct sl_problem {
    sl_finding finding;
    bool placed;       /* has an _id that is a place in one of the sources: `source`, `offset` */
    size_t source;     /* index into the set */
    const char *member; /* of an archive, or NULL */
    uint64_t offset;   /* in the source's uncompressed stream; of made-up records, as for ids */
    char *id;          /* as JSON */
    char *detail;      /* in words, or NULL */
} sl_problem;

/* Frees what the problem owns: `id` and `detail`. */
void sl_problem_clear(sl_problem *problem);

/* A problem with the place that its _id says, if the source of that number is one of the load's;
 * `likely` is the index of the one that it probably is. `expected` and `found` as in compare.h. */
sl_problem sl_problem_of(const sl_load *load, sl_finding finding, size_t likely,
                         const uint8_t *expected, const bson_t *found);

typedef struct sl_problems sl_problems;

/* Problems go to problems.tsv in `directory` (NULL: to no file), and the first `shown_max` of them
 * to the log. */
bool sl_problems_open(const char *directory, const sl_source_set *set, uint64_t shown_max,
                      sl_problems **problems, sl_error *error);
/* Any thread. */
void sl_problems_add(sl_problems *problems, const sl_problem *problem);
/* False when the file could not be written. NULL is fine. */
bool sl_problems_close(sl_problems *problems, sl_error *error);

/* ---- the verification ---- */

/* What is known of one range. Hashes are sums over its documents. */
typedef struct sl_range_account {
    _Atomic uint64_t expected, found, missing, different, extra;
    _Atomic uint64_t expected_hash, found_hash;
} sl_range_account;

typedef struct sl_verification {
    sl_load *load;
    bool content;             /* compare documents, instead of counting them */
    sl_range_account *ranges; /* one per range of the load, and one for all that is in none */
    sl_problems *problems;
    uint32_t *registered; /* the numbers of all sources that the registry knows */
    size_t registered_count;

    pthread_mutex_t lock;
    sl_interval *covered; /* intervals that have been compared whole; under the lock */
    size_t covered_count, covered_room;
} sl_verification;

/* The account that a document with this _id belongs to. */
sl_range_account *sl_verification_account(sl_verification *verification, int64_t id);

/* The interval has been compared. False without memory. Any thread. */
bool sl_verification_cover(sl_verification *verification, sl_interval interval);

/* Parses all sources, and with `content` compares each block with what the cluster has in its
 * place. `tick` as for sl_workers_run. */
bool sl_verify_blocks(sl_verification *verification, void (*tick)(void *context), void *context,
                      sl_error *error);

/* Counts the ranges, where contents are not compared. */
bool sl_verify_ranges(sl_verification *verification, sl_error *error);

/* Finds the documents whose ids are no places of any source that the registry knows. */
bool sl_verify_rest(sl_verification *verification, sl_error *error);

/* The table on the screen, and the section "verification" of the record. True when all is equal. */
bool sl_verify_report(sl_verification *verification);

#endif
