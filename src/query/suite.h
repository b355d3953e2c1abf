/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that suite.c (the file), suite_query.c (a query), suite_parameters.c (its parameters)
 * and suite_values.c (values of keys) share. On false `r->error` is set. */
#ifndef QUERY_SUITE_H
#define QUERY_SUITE_H

#include "query.h"

#include "util/yaml_reader.h"

#include "parameters.h"

/* Readers of values, for tables of keys. Each stores the value in `field`, whose type is given at
 * the parameter. Strings are owned by the struct with the field. */
bool sl_suite_text(sl_yaml *r, const yaml_node_t *node, void *field /* char ** */);
bool sl_suite_name(sl_yaml *r, const yaml_node_t *node, void *field /* char **, one line */);
bool sl_suite_repeat(sl_yaml *r, const yaml_node_t *node, void *field /* unsigned *, from 1 */);
bool sl_suite_flag(sl_yaml *r, const yaml_node_t *node, void *field /* bool * */);
bool sl_suite_warm_up(sl_yaml *r, const yaml_node_t *node, void *field /* unsigned *, from 0 */);

/* Reads an integer from `minimum` to `maximum`. */
bool sl_suite_number(sl_yaml *r, const yaml_node_t *node, int64_t minimum, int64_t maximum,
                     int64_t *number);
/* Reads a finite number. */
bool sl_suite_double(sl_yaml *r, const yaml_node_t *node, double *number);

/* Parses the text of a scalar as Extended JSON: an array, or a document. `key` is the name of the
 * key in messages. Destroy `*document`. */
bool sl_suite_json(sl_yaml *r, const yaml_node_t *node, const char *key, bool array,
                   bson_t **document);
/* The same; each element of the array must be a document. */
bool sl_suite_documents(sl_yaml *r, const yaml_node_t *node, const char *key, bson_t **array);

/* Returns `appended`. False means that appending to a BSON document ran out of memory. */
bool sl_suite_append(sl_yaml *r, bool appended);

/* Reads one query, a mapping, into a zeroed struct. */
bool sl_suite_query(sl_yaml *r, const yaml_node_t *node, sl_query *query);
void sl_query_clear(sl_query *query);

/* Reads the mapping of a query's parameters (suite_parameters.c). */
bool sl_suite_parameters(sl_yaml *r, const yaml_node_t *node, sl_query *query);
void sl_parameter_clear(sl_parameter *parameter);

#endif
