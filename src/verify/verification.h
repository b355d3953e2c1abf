/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one verification (`shardload verify`), shared by its files.
 *
 * verify.c runs the phases, verify_blocks.c compares the blocks of the sources with the cluster,
 * verify_gaps.c searches the ids outside these blocks, problems.c lists the differences,
 * verify_report.c reports the totals. */
#ifndef SHARDLOAD_VERIFICATION_H
#define SHARDLOAD_VERIFICATION_H

#include "job/destination.h"
#include "job/job.h"
#include "ledger/unregistered.h"
#include "ledger/work_directory.h"
#include "load/run.h"
#include "report/run_record.h"
#include "send/compare.h"

/* ---- problems.c: one missing, different or extra document ---- */

typedef struct sl_problem {
    sl_finding finding;
    bool placed;       /* its _id belongs to one of the sources: `source` and `offset` are set */
    size_t source;     /* index into the set */
    const char *entry; /* entry of an archive, or NULL */
    uint64_t offset; /* in the source's uncompressed stream; for generated records, as in the _id */
    char *id;        /* as JSON */
    char *detail;    /* the difference in words, or NULL */
} sl_problem;

/* Frees what the problem owns: `id` and `detail`. */
void sl_problem_clear(sl_problem *problem);

/* Returns a problem. Its position is set from its _id, if one of the load's sources has the source
 * number in that _id; the source with index `likely` is checked first. `expected` and `found` as in
 * compare.h. */
sl_problem sl_problem_of(const sl_job *job, sl_finding finding, size_t likely,
                         const uint8_t *expected, const bson_t *found);

typedef struct sl_problems sl_problems;

/* Opens the list of problems, which are written to problems.tsv in `directory` (NULL: to no file),
 * and the first `shown_max` to the log. */
bool sl_problems_open(const char *directory, const sl_source_set *set, uint64_t shown_max,
                      sl_problems **problems, sl_error *error);
/* Any thread. */
void sl_problems_add(sl_problems *problems, const sl_problem *problem);
/* False when the file could not be written. NULL is fine. */
bool sl_problems_close(sl_problems *problems, sl_error *error);

/* ---- the verification ---- */

/* The totals of one range. A hash is the sum of the hashes of its documents. */
typedef struct sl_range_totals {
    _Atomic uint64_t expected, found, missing, different, extra;
    _Atomic uint64_t expected_hash, found_hash;
} sl_range_totals;

typedef struct sl_verification {
    sl_job job;
    sl_destination destination;
    sl_run run;
    sl_run_record *record;
    char work_directory[SL_WORK_DIRECTORY_ROOM]; /* "" when there is none */
    sl_work_directory_lock directory_lock;
    const char *report;      /* path from the config; NULL if it cannot be written */
    bool content;            /* compare documents, instead of counting them */
    sl_range_totals *ranges; /* one per range of the load, and one for all ids outside the ranges */
    sl_problems *problems;
    bson_t *other_sources; /* those with extra documents, for the record; NULL: none */
    uint32_t *registered;  /* the numbers of all registered sources */
    size_t registered_count;

    pthread_mutex_t lock;
    sl_interval *covered; /* intervals that have been compared; guarded by the lock */
    size_t covered_count, covered_room;
} sl_verification;

/* The totals to which a document with this _id is added. */
sl_range_totals *sl_verification_totals(sl_verification *verification, int64_t id);

/* Records that the interval has been compared. False without memory. Any thread. */
bool sl_verification_cover(sl_verification *verification, sl_interval interval);

/* Parses all sources, and with `content` compares each block with the documents that the cluster
 * holds under its ids. `tick` as for sl_run_threads. */
bool sl_verify_blocks(sl_verification *verification, void (*tick)(void *context), void *context,
                      sl_error *error);

/* Counts the documents of each range, for a verification without `content`. */
bool sl_verify_ranges(sl_verification *verification, sl_error *error);

/* Finds the documents outside all compared intervals and all other registered sources. */
bool sl_verify_gaps(sl_verification *verification, sl_error *error);

/* Counts the documents in the ids of each loaded source that is not verified: more than its load
 * has left there are extra. */
bool sl_verify_other_sources(sl_verification *verification, sl_error *error);

/* ---- verify_by_id.c: documents with their own _id ---- */

/* Looks up `count` consecutive documents of a block, whose records begin at `offsets`, and adds the
 * outcome to the totals and the problems. */
bool sl_verify_slice_by_id(sl_verification *verification, mongoc_client_t *client,
                           const sl_source_block *block, const uint8_t *documents,
                           const uint64_t *offsets, uint32_t count, sl_range_totals *totals,
                           sl_error *error);

/* Compares the number of documents of the collection with those found, or, without `content`, with
 * those expected. */
bool sl_verify_total_by_id(sl_verification *verification, sl_error *error);

/* ---- verify_report.c: the result on the screen and in the record ---- */

/* Logs the table of ranges, and appends the section "verification" to the record. True when no
 * document is missing, different or extra. */
bool sl_verify_report(sl_verification *verification);

#endif
