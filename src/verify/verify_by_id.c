/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of documents with their own _id, which form no intervals: the documents of a block
 * are looked up by their _ids, with the same comparison as re-sent batches (duplicates.h). Extra
 * documents are detected by counting: the collection must hold as many documents as have been
 * found. A record whose document equals that of an earlier record of the same slice is reported as
 * missing, since a load rejects it. */
#include "verification.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "send/duplicates.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"

static bool keep_on(void *context) {
    const sl_run *run = context;
    return !atomic_load(&run->stop);
}

/* Views over `count` consecutive documents; *views and *pointers are for free(). */
static bool view(const uint8_t *at, uint32_t count, bson_t **views, const bson_t ***pointers) {
    *views = aligned_alloc(_Alignof(bson_t), count * sizeof **views);
    *pointers = malloc(count * sizeof **pointers);
    bool ok = *views && *pointers;
    for (uint32_t i = 0; ok && i < count; i++) {
        ok = bson_init_static(&(*views)[i], at, sl_bson_length(at));
        (*pointers)[i] = &(*views)[i];
        at += sl_bson_length(at);
    }
    return ok;
}

static bool compare(const sl_verification *verification, mongoc_client_t *client,
                    sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count,
                    sl_error *error) {
    for (unsigned attempt = 0;; attempt++) {
        if (!sl_duplicates_init(duplicates, documents, count, true))
            return sl_error_memory(error, "comparing documents");
        switch (
            sl_duplicates_find_all(duplicates, client, &verification->destination.target, error)) {
        case SL_SCAN_DONE:
            *error = (sl_error){0};
            return true;
        case SL_SCAN_FAILED:
            return false;
        case SL_SCAN_AGAIN:
            if (attempt == 0)
                sl_log_warning(SL_LINES "; trying again", error->message);
            if (!sl_backoff(attempt, keep_on, (void *)&verification->run))
                return false;
            sl_duplicates_clear(duplicates);
        }
    }
}

static void add_problem(sl_verification *verification, const sl_source_block *block,
                        sl_finding finding, uint64_t offset, const bson_t *expected,
                        const char *detail) {
    sl_problem problem = {.finding = finding,
                          .placed = true,
                          .source = block->source,
                          .entry = block->entry,
                          .offset = offset,
                          .detail = detail ? bson_strdup(detail) : NULL};
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, expected, "_id"))
        problem.id = sl_json_value(&iter);
    sl_problems_add(verification->problems, &problem);
    sl_problem_clear(&problem);
}

bool sl_verify_slice_by_id(sl_verification *verification, mongoc_client_t *client,
                           const sl_source_block *block, const uint8_t *documents,
                           const uint64_t *offsets, uint32_t count, sl_range_totals *totals,
                           sl_error *error) {
    bson_t *views = NULL;
    const bson_t **pointers = NULL;
    sl_duplicates duplicates = {0};
    if (count == 0)
        return true;
    bool ok =
        view(documents, count, &views, &pointers) || sl_error_memory(error, "comparing documents");
    ok = ok && compare(verification, client, &duplicates, pointers, count, error);
    for (uint32_t i = 0; ok && i < count; i++) {
        const char *difference = duplicates.difference[i];
        if (duplicates.missing[i] || duplicates.repeated[i]) {
            atomic_fetch_add(&totals->missing, 1);
            add_problem(verification, block, SL_MISSING, offsets[i], pointers[i],
                        duplicates.repeated[i]
                            ? "an earlier record has an identical document, which is stored"
                            : NULL);
            continue;
        }
        atomic_fetch_add(&totals->found, 1);
        if (difference) {
            atomic_fetch_add(&totals->different, 1);
            add_problem(verification, block, SL_DIFFERENT, offsets[i], pointers[i], difference);
        } else {
            atomic_fetch_add(&totals->found_hash,
                             sl_hash(bson_get_data(pointers[i]), pointers[i]->len));
        }
    }
    sl_duplicates_clear(&duplicates);
    free(pointers);
    free(views);
    return ok;
}

/* The most documents that the other registered sources may have stored; UINT64_MAX if one of them
 * has not been loaded completely. Two sources may have records with the same _id, so the collection
 * may hold fewer. */
static bool documents_of_others(const sl_verification *verification, uint64_t *most,
                                sl_error *error) {
    const sl_job *job = &verification->job;
    bson_t numbers = BSON_INITIALIZER;
    bool complete = false;
    uint32_t used = 0;
    *most = 0;
    if (verification->registered_count <= job->active)
        return true;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        char room[SL_ARRAY_KEY_ROOM];
        if (!job->sources[i].skipped)
            bson_append_int32(&numbers, sl_array_key(used++, room), -1,
                              (int32_t)job->sources[i].number);
    }
    bool ok =
        sl_registry_total(verification->destination.registry, &numbers, most, &complete, error);
    if (!complete)
        *most = UINT64_MAX;
    bson_destroy(&numbers);
    return ok;
}

bool sl_verify_total_by_id(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    sl_range_totals *outside = &verification->ranges[job->range_count];
    uint64_t found = 0, all, others;
    const bson_t everything = BSON_INITIALIZER;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    if (!sl_count_matching(destination->connection, &destination->target, &everything, &all, error))
        return false;
    for (size_t i = 0; i < job->range_count; i++) {
        sl_range_totals *totals = &verification->ranges[i];
        if (!verification->content)
            atomic_store(&totals->found, atomic_load(&totals->expected));
        found += atomic_load(&totals->found);
    }
    if (all < found && !verification->content)
        atomic_store(&outside->missing, found - all);
    else if (all < found)
        sl_log_warning("%" PRIu64 " records have the same _id as another record of the sources",
                       found - all);
    if (all <= found)
        return true;
    if (!documents_of_others(verification, &others, error))
        return false;
    uint64_t more = all - found, extra = more > others ? more - others : 0;
    atomic_store(&outside->found, extra);
    atomic_store(&outside->extra, extra);
    if (extra > 0)
        sl_log_warning("%s.%s holds %" PRIu64 " documents that no record of the sources has%s",
                       destination->target.database, destination->target.collection, extra,
                       others > 0 ? ", in addition to those of the other registered sources" : "");
    else
        sl_log_warning("%s.%s holds %" PRIu64 " documents more than these sources; they may belong "
                       "to the other registered sources, which were not named",
                       destination->target.database, destination->target.collection, more);
    return true;
}
