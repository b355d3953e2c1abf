/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing values, and filling them in. */
#include "parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- where parameters are used ---- */

const char *sl_parameter_used(const bson_iter_t *value) {
    bson_iter_t inside;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &inside) ||
        !bson_iter_next(&inside) || strcmp(bson_iter_key(&inside), "$parameter") != 0 ||
        !BSON_ITER_HOLDS_UTF8(&inside))
        return NULL;
    const char *name = bson_iter_utf8(&inside, NULL);
    return bson_iter_next(&inside) ? NULL : name;
}

static bool used_below(bson_iter_t *iter, const char *name) {
    while (bson_iter_next(iter)) {
        bson_iter_t child;
        const char *used = sl_parameter_used(iter);
        if (used && (!name || strcmp(used, name) == 0))
            return true;
        if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
            bson_iter_recurse(iter, &child) && used_below(&child, name))
            return true;
    }
    return false;
}

bool sl_parameters_in(const bson_t *document, const char *name) {
    bson_iter_t iter;
    return document && bson_iter_init(&iter, document) && used_below(&iter, name);
}

/* ---- random numbers ---- */

/* splitmix64: spreads a seed over the state. */
static uint64_t spread(uint64_t *seed) {
    uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint64_t rotate(uint64_t bits, unsigned by) {
    return bits << by | bits >> (64 - by);
}

uint64_t sl_drawer_bits(sl_drawer *drawer) { /* xoshiro256** */
    uint64_t *s = drawer->random;
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

double sl_drawer_unit(sl_drawer *drawer) {
    return (double)(sl_drawer_bits(drawer) >> 11) * 0x1p-53;
}

/* A whole number below `count`, all equally likely. */
static uint64_t below(sl_drawer *drawer, uint64_t count) {
    uint64_t limit = -count % count; /* numbers below it would favour the small ones */
    uint64_t bits;
    do
        bits = sl_drawer_bits(drawer);
    while (bits < limit);
    return bits % count;
}

/* Zipf's law by rejection-inversion (Hoermann and Derflinger, 1996). `integral` is the integral of
 * x^-skew, `inverse` its inverse. */
static double integral(const sl_zipf_draw *zipf, double x) {
    double y = log(x) * (1 - zipf->skew);
    return fabs(y) > 1e-8 ? expm1(y) / (1 - zipf->skew) : log(x) * (1 + y / 2);
}

static double inverse(const sl_zipf_draw *zipf, double x) {
    double y = x * (1 - zipf->skew);
    if (y < -1)
        y = -1;
    return exp(fabs(y) > 1e-8 ? log1p(y) / (1 - zipf->skew) : x * (1 - y / 2));
}

void sl_zipf_draw_init(sl_zipf_draw *zipf, uint64_t count, double skew) {
    *zipf = (sl_zipf_draw){.skew = skew, .count = (double)count};
    zipf->integral_first = integral(zipf, 1.5) - 1;
    zipf->integral_last = integral(zipf, zipf->count + 0.5);
    zipf->threshold = 2 - inverse(zipf, integral(zipf, 2.5) - pow(2, -skew));
}

uint64_t sl_zipf_draw_next(const sl_zipf_draw *zipf, sl_drawer *drawer) {
    for (;;) {
        double u = zipf->integral_last +
                   sl_drawer_unit(drawer) * (zipf->integral_first - zipf->integral_last);
        double x = inverse(zipf, u), k = floor(x + 0.5);
        k = k < 1 ? 1 : k > zipf->count ? zipf->count : k;
        if (k - x <= zipf->threshold || u >= integral(zipf, k + 0.5) - pow(k, -zipf->skew))
            return (uint64_t)k - 1;
    }
}

/* ---- a client's state ---- */

/* Where each element of an array begins, so that any of them is found at once. */
static bool index_values(sl_drawer *drawer, size_t at, const bson_t *values) {
    uint32_t count = values ? bson_count_keys(values) : 0, i = 0;
    uint32_t *offsets = count ? malloc(count * sizeof *offsets) : NULL;
    bson_iter_t iter;
    drawer->offsets[at] = offsets;
    if (!offsets || !bson_iter_init(&iter, values))
        return false;
    while (bson_iter_next(&iter))
        offsets[i++] = bson_iter_offset(&iter);
    drawer->value_count[at] = count;
    return true;
}

bool sl_drawer_init(sl_drawer *drawer, const sl_query *query, uint64_t seed, uint64_t client,
                    uint64_t clients, int64_t limit) {
    *drawer = (sl_drawer){.query = query, .client = client, .clients = clients, .limit = limit};
    uint64_t state = seed ^ client * UINT64_C(0xD1342543DE82EF95);
    /* Queries of a mix draw independently: otherwise the n-th write would change the document of the
     * n-th read. */
    for (const char *at = query->name; at && *at; at++)
        state = (state ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
    for (size_t i = 0; i < 4; i++)
        drawer->random[i] = spread(&state);
    bool ok = true;
    for (size_t i = 0; i < query->parameter_count; i++) {
        const sl_parameter *parameter = &query->parameters[i];
        if (parameter->draw == SL_DRAW_ZIPF)
            sl_zipf_draw_init(&drawer->zipf[i], parameter->count, parameter->skew);
        if (parameter->draw == SL_DRAW_LIST || parameter->draw == SL_DRAW_SAMPLE)
            ok = index_values(drawer, i, parameter->values) && ok;
    }
    return ok;
}

void sl_drawer_clear(sl_drawer *drawer) {
    for (size_t i = 0; i < SL_PARAMETERS_MAX; i++)
        free((void *)drawer->offsets[i]);
}

static bool append_element(sl_drawer *drawer, size_t at, const char *name, bson_t *values) {
    const bson_t *list = drawer->query->parameters[at].values;
    uint32_t offset = drawer->offsets[at][below(drawer, drawer->value_count[at])];
    bson_iter_t iter;
    /* An iterator that stands before that element: its key is "0", "12" ... up to the NUL. */
    const char *key = (const char *)bson_get_data(list) + offset + 1;
    return bson_iter_init_from_data_at_offset(&iter, bson_get_data(list), list->len, offset,
                                              (uint32_t)strlen(key)) &&
           bson_append_iter(values, name, -1, &iter);
}

static bool draw_one(sl_drawer *drawer, size_t at, bson_t *values) {
    const sl_parameter *p = &drawer->query->parameters[at];
    uint64_t number;
    switch (p->draw) {
    case SL_DRAW_RANGE:
        if (!p->whole)
            return BSON_APPEND_DOUBLE(values, p->name,
                                      p->low + sl_drawer_unit(drawer) * (p->high - p->low));
        number = (uint64_t)p->last - (uint64_t)p->first + 1; /* 0: all 2^64 numbers */
        number = number ? below(drawer, number) : sl_drawer_bits(drawer);
        return BSON_APPEND_INT64(values, p->name, (int64_t)((uint64_t)p->first + number));
    case SL_DRAW_ZIPF:
        number = sl_zipf_draw_next(&drawer->zipf[at], drawer);
        return BSON_APPEND_INT64(values, p->name, (int64_t)((uint64_t)p->first + number));
    case SL_DRAW_SEQUENCE:
        number = drawer->client + drawer->sequence[at]++ * drawer->clients;
        return BSON_APPEND_INT64(
            values, p->name, (int64_t)((uint64_t)p->first + number * (uint64_t)p->step));
    case SL_DRAW_LIST:
    case SL_DRAW_SAMPLE:
        return append_element(drawer, at, p->name, values);
    }
    return false;
}

bool sl_drawer_draw(sl_drawer *drawer, bson_t *values) {
    bool ok = drawer->limit == 0 || BSON_APPEND_INT64(values, SL_LIMIT_PARAMETER, drawer->limit);
    for (size_t i = 0; ok && i < drawer->query->parameter_count; i++)
        ok = draw_one(drawer, i, values);
    return ok;
}

/* ---- filling in ---- */

static bool fill(bson_iter_t *iter, const bson_t *values, bson_t *out) {
    while (bson_iter_next(iter)) {
        const char *key = bson_iter_key(iter);
        uint32_t length = bson_iter_key_len(iter);
        const char *name = sl_parameter_used(iter);
        bson_iter_t found, child;
        bson_t inside;
        bool ok;
        if (name) {
            ok = bson_iter_init_find(&found, values, name) &&
                 bson_append_iter(out, key, (int)length, &found);
        } else if (BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) {
            bool array = BSON_ITER_HOLDS_ARRAY(iter);
            ok = bson_iter_recurse(iter, &child) &&
                 (array ? bson_append_array_begin : bson_append_document_begin)(
                     out, key, (int)length, &inside) &&
                 fill(&child, values, &inside) &&
                 (array ? bson_append_array_end : bson_append_document_end)(out, &inside);
        } else {
            ok = bson_append_iter(out, key, (int)length, iter);
        }
        if (!ok)
            return false;
    }
    return true;
}

bool sl_parameters_fill(const bson_t *template, const bson_t *values, bson_t *out) {
    bson_iter_t iter;
    return bson_iter_init(&iter, template) && fill(&iter, values, out);
}
