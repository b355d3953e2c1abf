/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of queries: draws a value for each operation and fills it into the command.
 *
 * Threads: the query is shared and not changed while clients run. Each client has its own
 * generator, whose values depend only on the seed, the query and the number of the client. */
#ifndef QUERY_PARAMETERS_H
#define QUERY_PARAMETERS_H

#include "query.h"

/* The name in {"$parameter": name}; NULL for any other value. */
const char *sl_parameter_name(const bson_iter_t *value);

/* Does the document contain the parameter `name`, or (NULL) any parameter, at any depth? */
bool sl_has_parameter(const bson_t *document, const char *name);

/* Draws numbers 0 .. count - 1 by Zipf's law, in constant time each (rejection-inversion). */
typedef struct sl_zipf_sampler {
    double skew, count;
    double integral_first, integral_last, threshold;
} sl_zipf_sampler;

/* The values of one query for one client. */
typedef struct sl_value_generator {
    const sl_query *query;
    uint64_t random[4]; /* xoshiro256** */
    uint64_t client, clients;
    uint64_t sequence[SL_PARAMETERS_MAX]; /* values drawn so far */
    sl_zipf_sampler zipf[SL_PARAMETERS_MAX];
    uint32_t value_count[SL_PARAMETERS_MAX];    /* elements of lists and samples */
    const uint32_t *offsets[SL_PARAMETERS_MAX]; /* of these elements in the BSON array; owned */
    int64_t limit;                              /* value of SL_LIMIT_PARAMETER; 0: none */
} sl_value_generator;

/* For client `client` (from 0) of `clients`; each client draws different numbers of a sequence. The
 * query is borrowed. False without memory, or when a list of the query is empty. */
bool sl_value_generator_init(sl_value_generator *generator, const sl_query *query, uint64_t seed,
                             uint64_t client, uint64_t clients, int64_t limit);
void sl_value_generator_clear(sl_value_generator *generator);

/* A random number in [0, 1). */
double sl_random_unit(sl_value_generator *generator);

/* Draws the values of the next operation and appends them to `values`: {name: value, ...}. False
 * without memory. */
bool sl_value_generator_next(sl_value_generator *generator, bson_t *values);

/* Appends `template` to `out`; the value of that name in `values` replaces each {"$parameter":
 * name}. False when a name has no value, or without memory. */
bool sl_parameters_fill(const bson_t *template, const bson_t *values, bson_t *out);

#endif
