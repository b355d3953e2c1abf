/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates are read back and compared.
 *
 * Within a block ids ascend, and all stored documents between two of its ids belong to that block.
 * So one find per block, from its first duplicate to its last, is enough, and returns few other
 * documents. The ids of two blocks in one batch may lie far apart. */
#include "duplicates.h"

#include <stdlib.h>

#include "util/document_id.h"

#include "compare.h"

#define SAMPLE 16u /* documents that are searched for first */

bool sl_duplicates_init(sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count,
                        bool own_ids) {
    *duplicates = (sl_duplicates){.documents = documents, .count = count, .own_ids = own_ids};
    duplicates->marked = calloc(count, sizeof *duplicates->marked);
    duplicates->repeated = calloc(count, sizeof *duplicates->repeated);
    duplicates->difference = calloc(count, sizeof *duplicates->difference);
    return duplicates->marked && duplicates->repeated && duplicates->difference;
}

void sl_duplicates_clear(sl_duplicates *duplicates) {
    for (uint32_t i = 0; duplicates->difference && i < duplicates->count; i++)
        bson_free(duplicates->difference[i]);
    free(duplicates->difference);
    free(duplicates->missing);
    free(duplicates->repeated);
    free(duplicates->marked);
}

void sl_duplicates_mark(sl_duplicates *duplicates, uint32_t index) {
    duplicates->marked[index] = true;
}

static const uint8_t *bytes_of(const sl_duplicates *duplicates, uint32_t index) {
    return bson_get_data(duplicates->documents[index]);
}

static void on_found(void *context, const bson_t *found) {
    sl_compare_found(context, found);
}

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    sl_duplicates *duplicates = context;
    if (!expected)
        return; /* a document of another batch, or on another shard */
    while (bytes_of(duplicates, duplicates->at) != expected)
        duplicates->at++;
    if (!duplicates->marked[duplicates->at])
        return; /* refused for another reason */
    if (finding == SL_MISSING && duplicates->missing) {
        duplicates->missing[duplicates->at] = true;
        return;
    }
    if (finding == SL_MISSING) {
        duplicates->is_lost = true;
        duplicates->lost = sl_expected_id(expected);
        return;
    }
    char text[SL_DIFFERENCE_ROOM];
    duplicates->difference[duplicates->at] =
        bson_strdup(sl_difference(expected, found, text, sizeof text));
}

/* Compares the documents `first` to `last` of the batch, which belong to one block. */
static sl_scan_result judge_run(sl_duplicates *duplicates, uint32_t first, uint32_t last,
                                mongoc_client_t *client, const sl_target *target, sl_error *error) {
    const uint8_t *from = bytes_of(duplicates, first), *to = bytes_of(duplicates, last);
    sl_comparison comparison = {.expected = from,
                                .end = to + sl_bson_length(to),
                                .report = on_finding,
                                .context = duplicates};
    duplicates->at = first;
    sl_scan_result result = sl_scan_range(client, target, sl_expected_id(from),
                                          sl_expected_id(to) + 1, on_found, &comparison, error);
    if (result == SL_SCAN_DONE)
        sl_compare_end(&comparison);
    else
        sl_compare_clear(&comparison);
    if (result == SL_SCAN_DONE && duplicates->is_lost) {
        sl_error_set(
            error, SL_EXIT_CLUSTER,
            "the server reports the _id %lld as a duplicate, but no document is found under "
            "it: that document is not replicated to a majority yet, or was removed",
            (long long)duplicates->lost);
        result = SL_SCAN_AGAIN;
    }
    return result;
}

sl_scan_result sl_duplicates_compare(sl_duplicates *duplicates, mongoc_client_t *client,
                                     const sl_target *target, sl_error *error) {
    sl_scan_result result = SL_SCAN_DONE;
    if (duplicates->own_ids)
        return sl_duplicates_compare_by_id(duplicates, client, target, error);
    for (uint32_t i = 0; result == SL_SCAN_DONE && i < duplicates->count; i++) {
        if (!duplicates->marked[i])
            continue;
        uint32_t first = i, last = i;
        int64_t id = sl_expected_id(bytes_of(duplicates, i));
        const int64_t block = id >> SL_BLOCK_BITS;
        for (uint32_t k = i + 1; k < duplicates->count; k++) {
            int64_t next = sl_expected_id(bytes_of(duplicates, k));
            if (next <= id || next >> SL_BLOCK_BITS != block)
                break;
            id = next;
            if (duplicates->marked[k])
                last = k;
        }
        result = judge_run(duplicates, first, last, client, target, error);
        i = last;
    }
    return result;
}

static void on_sample(void *context, const bson_t *found) {
    (void)found;
    *(bool *)context = true;
}

/* Is any document of a sample stored? The sample is spread evenly over the batch. */
static sl_scan_result find_sample(const sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error) {
    uint32_t list[SAMPLE];
    uint32_t sample = duplicates->count < SAMPLE ? duplicates->count : SAMPLE;
    for (uint32_t i = 0; i < sample; i++)
        list[i] = sample > 1 ? (uint32_t)((uint64_t)i * (duplicates->count - 1) / (sample - 1)) : 0;
    *any = false;
    return sl_duplicates_scan(duplicates, list, sample, true, client, target, on_sample, any,
                              error);
}

sl_scan_result sl_duplicates_find(sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error) {
    sl_scan_result result = find_sample(duplicates, client, target, any, error);
    if (result != SL_SCAN_DONE || !*any)
        return result;
    return sl_duplicates_find_all(duplicates, client, target, error);
}

sl_scan_result sl_duplicates_find_all(sl_duplicates *duplicates, mongoc_client_t *client,
                                      const sl_target *target, sl_error *error) {
    duplicates->missing = calloc(duplicates->count, sizeof *duplicates->missing);
    if (!duplicates->missing) {
        sl_error_memory(error, "looking for documents");
        return SL_SCAN_FAILED;
    }
    for (uint32_t i = 0; i < duplicates->count; i++)
        sl_duplicates_mark(duplicates, i);
    return sl_duplicates_compare(duplicates, client, target, error);
}
