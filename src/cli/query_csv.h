/* SPDX-License-Identifier: Apache-2.0 */
/* A report's figures as CSV: one line per query and step, a header line, RFC 4180. */
#ifndef SHARDLOAD_CLI_QUERY_CSV_H
#define SHARDLOAD_CLI_QUERY_CSV_H

#include <bson/bson.h>

#include <shardload/error.h>

/* `queries` is the array of a report. Writes as sl_private_file_replace does. */
bool sl_query_csv_write(const bson_t *queries, const char *path, sl_error *error);

#endif
