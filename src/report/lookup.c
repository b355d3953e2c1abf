/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values from records. */
#include "lookup.h"

#include <string.h>

#define NUMBER_MAX 1e18

static bool find(const bson_t *document, const char *path, bson_iter_t *value) {
    bson_iter_t iter;
    return bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, path, value);
}

double sl_value_number(const bson_iter_t *at) {
    double value = NAN;
    if (BSON_ITER_HOLDS_DOUBLE(at))
        value = bson_iter_double(at);
    else if (BSON_ITER_HOLDS_INT32(at) || BSON_ITER_HOLDS_INT64(at))
        value = (double)bson_iter_as_int64(at);
    else if (BSON_ITER_HOLDS_DATE_TIME(at))
        value = (double)bson_iter_date_time(at);
    return fabs(value) <= NUMBER_MAX ? value : NAN;
}

double sl_look_number(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find(document, path, &value) ? sl_value_number(&value) : NAN;
}

double sl_look_amount(const bson_t *document, const char *path, double fallback) {
    double value = sl_look_number(document, path);
    return value >= 0 ? value : fallback;
}

const char *sl_look_text(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find(document, path, &value) && BSON_ITER_HOLDS_UTF8(&value)
               ? bson_iter_utf8(&value, NULL)
               : NULL;
}

int sl_look_truth(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find(document, path, &value) && BSON_ITER_HOLDS_BOOL(&value) ? bson_iter_bool(&value)
                                                                        : -1;
}

static bool borrow(const bson_iter_t *value, bson_t *inner) {
    uint32_t length = 0;
    const uint8_t *bytes = NULL;
    if (BSON_ITER_HOLDS_DOCUMENT(value))
        bson_iter_document(value, &length, &bytes);
    else if (BSON_ITER_HOLDS_ARRAY(value))
        bson_iter_array(value, &length, &bytes);
    return bytes && bson_init_static(inner, bytes, length);
}

bool sl_look_inside(const bson_t *document, const char *path, bson_t *inner) {
    bson_iter_t value;
    if (find(document, path, &value) && borrow(&value, inner))
        return true;
    bson_init(inner); /* an empty document needs no bson_destroy */
    return false;
}

sl_walk sl_walk_start(const bson_t *document, const char *path) {
    sl_walk walk = {.more = false};
    bson_iter_t value;
    walk.more = find(document, path, &value) && BSON_ITER_HOLDS_ARRAY(&value) &&
                bson_iter_recurse(&value, &walk.at);
    return walk;
}

bool sl_walk_next(sl_walk *walk) {
    while (walk->more && (walk->more = bson_iter_next(&walk->at))) {
        if (BSON_ITER_HOLDS_DOCUMENT(&walk->at) && borrow(&walk->at, &walk->item))
            return true;
    }
    return false;
}

uint32_t sl_walk_count(const bson_t *document, const char *path) {
    uint32_t count = 0;
    for (sl_walk walk = sl_walk_start(document, path); sl_walk_next(&walk);)
        count++;
    return count;
}

uint32_t sl_look_count(const bson_t *document, const char *path) {
    uint32_t count = 0;
    sl_walk walk = sl_walk_start(document, path);
    while (walk.more && bson_iter_next(&walk.at))
        count++;
    return count;
}

/* ---- fields of certain records ---- */

double sl_look_phase_seconds(const bson_t *record, const char *path, const char *name) {
    double seconds = NAN;
    for (sl_walk walk = sl_walk_start(record, path); sl_walk_next(&walk);) {
        const char *phase = sl_look_text(&walk.item, "name");
        double own = sl_look_number(&walk.item, "seconds");
        if (own >= 0 && (!name || (phase && strcmp(phase, name) == 0)))
            seconds = (isnan(seconds) ? 0 : seconds) + own;
    }
    return seconds;
}

bool sl_option_find(const bson_t *record, const char *name, bson_iter_t *at) {
    bson_t options;
    return sl_look_inside(record, "options", &options) && bson_iter_init_find(at, &options, name);
}

bool sl_option_lists_equal(const bson_t *a, const bson_t *b, const char *name, bool *both) {
    bson_iter_t at_a, at_b;
    bson_t list_a, list_b;
    *both = sl_option_find(a, name, &at_a) && sl_option_find(b, name, &at_b) &&
            BSON_ITER_HOLDS_ARRAY(&at_a) && BSON_ITER_HOLDS_ARRAY(&at_b) &&
            borrow(&at_a, &list_a) && borrow(&at_b, &list_b);
    return *both && bson_equal(&list_a, &list_b);
}

bool sl_look_drill_ended(const bson_t *record) {
    int ended = sl_look_truth(record, "ended");
    double code = sl_look_number(record, "exitCode");
    return ended >= 0 ? ended == 1 : code == 0 || code == 1 || code == 5;
}

bool sl_option_matters(const char *name) {
    static const char *const output[] = {"work-dir", "report",  "html",
                                         "progress", "compare", "metrics-file"};
    for (size_t i = 0; i < sizeof output / sizeof output[0]; i++) {
        if (strcmp(name, output[i]) == 0)
            return false;
    }
    return true;
}
