/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of two runs of documents in the order of their ids.
 *
 * An _id is unique on each shard only. Where the shard key is another field, the cluster can hold
 * several documents of one _id, so what is found under an expected _id is judged when the next _id
 * comes: if one of them is the expected document all others are extra, and else the first one is
 * the expected document, changed. */
#include "compare.h"

#include <math.h>
#include <string.h>

size_t sl_expected_length(const uint8_t *document) {
    uint32_t length;
    memcpy(&length, document, sizeof length);
    return BSON_UINT32_FROM_LE(length);
}

int64_t sl_expected_id(const uint8_t *document) {
    uint64_t id;
    memcpy(&id, document + 9, sizeof id); /* behind length, type and "_id" */
    return (int64_t)BSON_UINT64_FROM_LE(id);
}

/* False for an _id that can be none of ours: of another type, or between two whole numbers. */
static bool id_of(const bson_t *document, int64_t *id) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "_id"))
        return false;
    if (BSON_ITER_HOLDS_INT(&iter)) {
        *id = bson_iter_as_int64(&iter);
        return true;
    }
    if (!BSON_ITER_HOLDS_DOUBLE(&iter))
        return false;
    double value = bson_iter_double(&iter);
    if (isnan(value) || value < (double)INT64_MIN || value >= -(double)INT64_MIN)
        return false;
    *id = (int64_t)value;
    return (double)*id == value;
}

/* Judges the next expected document, now that all that is under its _id has been seen. */
static void pass(sl_comparison *comparison) {
    const uint8_t *expected = comparison->expected;
    if (comparison->held)
        comparison->report(comparison->context, comparison->met ? SL_EXTRA : SL_DIFFERENT,
                           comparison->met ? NULL : expected, comparison->held);
    else if (!comparison->met)
        comparison->report(comparison->context, SL_MISSING, expected, NULL);
    sl_compare_clear(comparison);
    comparison->expected += sl_expected_length(expected);
}

static bool is_equal(const uint8_t *expected, const bson_t *found) {
    return found->len == sl_expected_length(expected) &&
           memcmp(bson_get_data(found), expected, found->len) == 0;
}

void sl_compare_found(sl_comparison *comparison, const bson_t *found) {
    int64_t id;
    bool ours = id_of(found, &id);
    while (ours && comparison->expected < comparison->end &&
           sl_expected_id(comparison->expected) < id)
        pass(comparison);
    ours = ours && comparison->expected < comparison->end &&
           sl_expected_id(comparison->expected) == id;
    if (ours && !comparison->met && is_equal(comparison->expected, found))
        comparison->met = true;
    else if (ours && !comparison->met && !comparison->held)
        comparison->held = bson_copy(found);
    else
        comparison->report(comparison->context, SL_EXTRA, NULL, found);
}

void sl_compare_end(sl_comparison *comparison) {
    while (comparison->expected < comparison->end)
        pass(comparison);
}

void sl_compare_clear(sl_comparison *comparison) {
    bson_destroy(comparison->held);
    comparison->held = NULL;
    comparison->met = false;
}
