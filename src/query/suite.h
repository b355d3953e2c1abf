/* SPDX-License-Identifier: Apache-2.0 */
/* Suites as they are read: what suite.c (the file), suite_query.c (a query) and suite_values.c
 * (values) share. */
#ifndef QUERY_SUITE_H
#define QUERY_SUITE_H

#include <shardload/query.h>

#include "parameters.h"
#include "yaml_reader.h"

/* Values of keys, to be named in tables of keys. `field` is where the value goes, by the type at the
 * end of the name. */
bool sl_suite_text(sl_yaml *r, const yaml_node_t *node, void *field /* char ** */);
bool sl_suite_name(sl_yaml *r, const yaml_node_t *node, void *field /* char **, one line */);
bool sl_suite_repeat(sl_yaml *r, const yaml_node_t *node, void *field /* unsigned *, from 1 */);
bool sl_suite_warm_up(sl_yaml *r, const yaml_node_t *node, void *field /* unsigned *, from 0 */);

/* A whole number between the bounds. */
bool sl_suite_number(sl_yaml *r, const yaml_node_t *node, int64_t minimum, int64_t maximum,
                     int64_t *number);
/* A finite number. */
bool sl_suite_double(sl_yaml *r, const yaml_node_t *node, double *number);
bool sl_suite_flag(sl_yaml *r, const yaml_node_t *node, bool *flag);

/* Extended JSON as the text of a scalar: an array or a document. `hint` is the key's name. */
bool sl_suite_json(sl_yaml *r, const yaml_node_t *node, const char *hint, bool array,
                   bson_t **document);
/* The same, an array of nothing but documents. */
bool sl_suite_documents(sl_yaml *r, const yaml_node_t *node, const char *hint, bson_t **array);

/* Appending to a document that is being made failed only without memory. */
bool sl_suite_append(sl_yaml *r, bool appended);

/* Reads one query, a mapping, into a zeroed struct. */
bool sl_suite_query(sl_yaml *r, const yaml_node_t *node, sl_query *query);
void sl_query_clear(sl_query *query);

/* Reads the mapping of a query's parameters (suite_parameters.c). */
bool sl_suite_parameters(sl_yaml *r, const yaml_node_t *node, sl_query *query);
void sl_parameter_clear(sl_parameter *parameter);

#endif
