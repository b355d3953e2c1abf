/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the values of parameters, and fills them into commands. */
#include "parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"

/* ---- where parameters are used ---- */

const char *sl_parameter_name(const bson_iter_t *value) {
    bson_iter_t inside;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &inside) ||
        !bson_iter_next(&inside) || strcmp(bson_iter_key(&inside), "$parameter") != 0 ||
        !BSON_ITER_HOLDS_UTF8(&inside))
        return NULL;
    const char *name = bson_iter_utf8(&inside, NULL);
    return bson_iter_next(&inside) ? NULL : name;
}

static bool contains(bson_iter_t *iter, const char *name) {
    while (bson_iter_next(iter)) {
        bson_iter_t child;
        const char *used = sl_parameter_name(iter);
        if (used && (!name || strcmp(used, name) == 0))
            return true;
        if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
            bson_iter_recurse(iter, &child) && contains(&child, name))
            return true;
    }
    return false;
}

bool sl_has_parameter(const bson_t *document, const char *name) {
    bson_iter_t iter;
    return document && bson_iter_init(&iter, document) && contains(&iter, name);
}

/* ---- random numbers ---- */

static uint64_t rotate(uint64_t bits, unsigned by) {
    return bits << by | bits >> (64 - by);
}

/* 64 random bits. */
static uint64_t random_bits(sl_value_generator *generator) { /* xoshiro256** */
    uint64_t *s = generator->random;
    uint64_t result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

double sl_random_unit(sl_value_generator *generator) {
    return (double)(random_bits(generator) >> 11) * 0x1p-53;
}

/* An integer below `count`, uniformly. */
static uint64_t random_below(sl_value_generator *generator, uint64_t count) {
    uint64_t limit = -count % count; /* rejecting bits below it makes the remainders uniform */
    uint64_t bits;
    do
        bits = random_bits(generator);
    while (bits < limit);
    return bits % count;
}

/* Zipf's law by rejection-inversion (Hoermann and Derflinger, 1996). `integral` is the integral of
 * x^-skew, `inverse` its inverse. */
static double integral(const sl_zipf_sampler *zipf, double x) {
    double y = log(x) * (1 - zipf->skew);
    return fabs(y) > 1e-8 ? expm1(y) / (1 - zipf->skew) : log(x) * (1 + y / 2);
}

static double inverse(const sl_zipf_sampler *zipf, double x) {
    double y = x * (1 - zipf->skew);
    if (y < -1)
        y = -1;
    return exp(fabs(y) > 1e-8 ? log1p(y) / (1 - zipf->skew) : x * (1 - y / 2));
}

static void zipf_sampler_init(sl_zipf_sampler *zipf, uint64_t count, double skew) {
    *zipf = (sl_zipf_sampler){.skew = skew, .count = (double)count};
    zipf->integral_first = integral(zipf, 1.5) - 1;
    zipf->integral_last = integral(zipf, zipf->count + 0.5);
    zipf->threshold = 2 - inverse(zipf, integral(zipf, 2.5) - pow(2, -skew));
}

static uint64_t zipf_sampler_next(const sl_zipf_sampler *zipf, sl_value_generator *generator) {
    for (;;) {
        double u = zipf->integral_last +
                   sl_random_unit(generator) * (zipf->integral_first - zipf->integral_last);
        double x = inverse(zipf, u), k = floor(x + 0.5);
        k = k < 1 ? 1 : k > zipf->count ? zipf->count : k;
        if (k - x <= zipf->threshold || u >= integral(zipf, k + 0.5) - pow(k, -zipf->skew))
            return (uint64_t)k - 1;
    }
}

/* ---- generators ---- */

/* Stores the offset of each element of the array, so that append_element need not search. */
static bool index_values(sl_value_generator *generator, size_t at, const bson_t *values) {
    uint32_t count = values ? bson_count_keys(values) : 0, i = 0;
    uint32_t *offsets = count ? malloc(count * sizeof *offsets) : NULL;
    bson_iter_t iter;
    generator->offsets[at] = offsets;
    if (!offsets || !bson_iter_init(&iter, values))
        return false;
    while (bson_iter_next(&iter))
        offsets[i++] = bson_iter_offset(&iter);
    generator->value_count[at] = count;
    return true;
}

bool sl_value_generator_init(sl_value_generator *generator, const sl_query *query, uint64_t seed,
                             uint64_t client, uint64_t clients, int64_t limit) {
    *generator =
        (sl_value_generator){.query = query, .client = client, .clients = clients, .limit = limit};
    uint64_t state = seed ^ client * UINT64_C(0xD1342543DE82EF95);
    /* Queries of a mix draw independently: with equal states, the n-th write would change the
     * document of the n-th read. */
    for (const char *at = query->name; at && *at; at++)
        state = (state ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
    for (size_t i = 0; i < 4; i++)
        generator->random[i] = sl_random_word(state += SL_HASH_A);
    bool ok = true;
    for (size_t i = 0; i < query->parameter_count; i++) {
        const sl_parameter *parameter = &query->parameters[i];
        if (parameter->draw == SL_DRAW_ZIPF)
            zipf_sampler_init(&generator->zipf[i], parameter->count, parameter->skew);
        if (parameter->draw == SL_DRAW_LIST || parameter->draw == SL_DRAW_SAMPLE)
            ok = index_values(generator, i, parameter->values) && ok;
    }
    return ok;
}

void sl_value_generator_clear(sl_value_generator *generator) {
    for (size_t i = 0; i < SL_PARAMETERS_MAX; i++)
        free((void *)generator->offsets[i]);
}

static bool append_element(sl_value_generator *generator, size_t at, const char *name,
                           bson_t *values) {
    const bson_t *list = generator->query->parameters[at].values;
    uint32_t offset = generator->offsets[at][random_below(generator, generator->value_count[at])];
    bson_iter_t iter;
    /* The key ("0", "12" ...) follows the type byte at `offset`. */
    const char *key = (const char *)bson_get_data(list) + offset + 1;
    return bson_iter_init_from_data_at_offset(&iter, bson_get_data(list), list->len, offset,
                                              (uint32_t)strlen(key)) &&
           bson_append_iter(values, name, -1, &iter);
}

static bool draw_one(sl_value_generator *generator, size_t at, bson_t *values) {
    const sl_parameter *p = &generator->query->parameters[at];
    uint64_t number;
    switch (p->draw) {
    case SL_DRAW_RANGE:
        if (!p->integers)
            return BSON_APPEND_DOUBLE(values, p->name,
                                      p->low + sl_random_unit(generator) * (p->high - p->low));
        number = (uint64_t)p->last - (uint64_t)p->first + 1; /* 0: all 2^64 numbers */
        number = number ? random_below(generator, number) : random_bits(generator);
        return BSON_APPEND_INT64(values, p->name, (int64_t)((uint64_t)p->first + number));
    case SL_DRAW_ZIPF:
        number = zipf_sampler_next(&generator->zipf[at], generator);
        return BSON_APPEND_INT64(values, p->name, (int64_t)((uint64_t)p->first + number));
    case SL_DRAW_SEQUENCE:
        number = generator->client + generator->sequence[at]++ * generator->clients;
        return BSON_APPEND_INT64(values, p->name,
                                 (int64_t)((uint64_t)p->first + number * (uint64_t)p->step));
    case SL_DRAW_LIST:
    case SL_DRAW_SAMPLE:
        return append_element(generator, at, p->name, values);
    }
    return false;
}

bool sl_value_generator_next(sl_value_generator *generator, bson_t *values) {
    bool ok =
        generator->limit == 0 || BSON_APPEND_INT64(values, SL_LIMIT_PARAMETER, generator->limit);
    for (size_t i = 0; ok && i < generator->query->parameter_count; i++)
        ok = draw_one(generator, i, values);
    return ok;
}

/* ---- filling in ---- */

static bool fill(bson_iter_t *iter, const bson_t *values, bson_t *out) {
    while (bson_iter_next(iter)) {
        const char *key = bson_iter_key(iter);
        uint32_t length = bson_iter_key_len(iter);
        const char *name = sl_parameter_name(iter);
        bson_iter_t found, child;
        bson_t inside;
        bool ok;
        if (name) {
            ok = bson_iter_init_find(&found, values, name) &&
                 bson_append_iter(out, key, (int)length, &found);
        } else if (BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) {
            bool array = BSON_ITER_HOLDS_ARRAY(iter);
            ok = bson_iter_recurse(iter, &child) &&
                 (array ? bson_append_array_begin
                        : bson_append_document_begin)(out, key, (int)length, &inside) &&
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
