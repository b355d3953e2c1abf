/* SPDX-License-Identifier: Apache-2.0 */
/* Documents whose _id belongs to no source in the registry beside the collection. A load never
 * inserts or removes such a document, so their number must be the same at its end. */
#ifndef SHARDLOAD_UNREGISTERED_H
#define SHARDLOAD_UNREGISTERED_H

#include "job/job.h"

struct sl_ledger;

typedef struct sl_unregistered {
    bool known;                    /* the documents have been counted */
    uint64_t numbers, other_types; /* documents whose _id is a number, or of another type */
    size_t sources;                /* registered when they were counted */
} sl_unregistered;

/* Counts these documents into ledger->unregistered, before the first document is sent. A collection
 * that the load has created has none. With --no-verify nothing is counted, nor, of documents with
 * their own _id, by a run that resumes such a load. */
bool sl_unregistered_count(sl_job *job, sl_destination *destination, struct sl_ledger *ledger,
                           sl_error *error);

/* Counts all documents of the collection, as `numbers`: for sources whose documents have their own
 * _id, which sl_unregistered_count counts in this way. */
bool sl_count_all(const sl_destination *destination, sl_unregistered *counts, sl_error *error);

/* Counts these documents now. `expected` is the likely result. */
bool sl_unregistered_find(sl_destination *destination, const sl_unregistered *expected,
                          sl_unregistered *found, sl_error *error);

/* The number of documents that no load has stored, by the counts at the end of this load, for the
 * registry; 0 if it is not known. `loaded`: documents of the sources of this load. */
bool sl_unregistered_foreign(const sl_job *job, const sl_destination *destination,
                             const struct sl_ledger *ledger, uint64_t loaded, uint64_t *documents,
                             sl_error *error);

/* Write the counts to the journal's target document, and read them from it: a resumed load compares
 * with the counts at the start of its first run. False if the document has no counts. */
void sl_unregistered_append(const struct sl_ledger *ledger, bson_t *document);
bool sl_unregistered_recall(struct sl_ledger *ledger, const bson_t *document);

/* Counts these documents again, into ledger->unregistered_now and the record's section
 * "verification". False when they cannot be counted. */
bool sl_unregistered_count_again(sl_job *job, sl_destination *destination, struct sl_ledger *ledger,
                                 bson_t *section, sl_error *error);

/* Is the number of these documents the same as before the load? */
bool sl_unregistered_is_unchanged(const struct sl_ledger *ledger);

/* If that number has changed: a warning with --allow-other-writers, otherwise an error
 * (SL_EXIT_VERIFICATION). */
bool sl_unregistered_check(sl_job *job, sl_destination *destination, struct sl_ledger *ledger,
                           sl_error *error);

/* ---- gaps: the ids that are in none of a set of intervals ---- */

/* Ids from minimum to before maximum. */
typedef struct sl_interval {
    int64_t minimum, maximum;
} sl_interval;

/* All ids of the source with this number. */
sl_interval sl_interval_of_source(uint32_t number);

typedef struct sl_gap {
    const bson_t *filter; /* on _id; valid during the call only */
    bool numbers;         /* true: the ids of the gap are numbers; false: they are all ids of other
                             types, and NaN */
    bool within;          /* it has a lower and an upper bound */
    double share;         /* share of the gaps visited before this one, 0..1 */
} sl_gap;

typedef bool sl_gap_function(void *context, const sl_gap *gap, sl_error *error);

/* Sorts the intervals and calls `visit` for each gap between them, and last for the ids that are
 * not numbers. Stops and returns false when `visit` returns false. Gaps include fractions. */
bool sl_gaps_walk(sl_interval *covered, size_t count, sl_gap_function *visit, void *context,
                  sl_error *error);

#endif
