/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of queries: values drawn for each operation, and put where a query names them.
 *
 * Threads: a query is shared and not changed while clients run; each client has a state of its own.
 * The values that a client draws depend on the seed, the query and the client's number alone. */
#ifndef QUERY_PARAMETERS_H
#define QUERY_PARAMETERS_H

#include <shardload/query.h>

/* The name in {"$parameter": name}, or NULL when the value is something else. */
const char *sl_parameter_used(const bson_iter_t *value);

/* Is any parameter, or (where `name` is not NULL) this one, used anywhere in the document? */
bool sl_parameters_in(const bson_t *document, const char *name);

/* Numbers 0 .. count - 1 by Zipf's law, one in constant time (rejection-inversion). */
typedef struct sl_zipf_draw {
    double skew, count;
    double integral_first, integral_last, threshold;
} sl_zipf_draw;

void sl_zipf_draw_init(sl_zipf_draw *zipf, uint64_t count, double skew);

/* One client's state of one query. */
typedef struct sl_drawer {
    const sl_query *query;
    uint64_t random[4];   /* xoshiro256** */
    uint64_t client, clients;
    uint64_t sequence[SL_PARAMETERS_MAX];
    sl_zipf_draw zipf[SL_PARAMETERS_MAX];
    uint32_t value_count[SL_PARAMETERS_MAX]; /* of lists and samples */
    const uint32_t *offsets[SL_PARAMETERS_MAX]; /* of their elements; malloc'd */
    int64_t limit;        /* of SL_LIMIT_PARAMETER; 0: none */
} sl_drawer;

/* Client number `client` of `clients`, which share out sequences. False without memory, or when a
 * list of the query is empty. */
bool sl_drawer_init(sl_drawer *drawer, const sl_query *query, uint64_t seed, uint64_t client,
                    uint64_t clients, int64_t limit);
void sl_drawer_clear(sl_drawer *drawer);

/* 64 random bits, and a number from 0 to below 1. */
uint64_t sl_drawer_bits(sl_drawer *drawer);
double sl_drawer_unit(sl_drawer *drawer);
uint64_t sl_zipf_draw_next(const sl_zipf_draw *zipf, sl_drawer *drawer);

/* Draws all values of the next operation, appended to `values` by name: {name: value, ...}. */
bool sl_drawer_draw(sl_drawer *drawer, bson_t *values);

/* Copies `template` to the end of `out`, with {"$parameter": name} replaced by the value of that name
 * (of `values`). False when a name has no value, or without memory. */
bool sl_parameters_fill(const bson_t *template, const bson_t *values, bson_t *out);

#endif
