/* SPDX-License-Identifier: Apache-2.0 */
/* A report's figures as CSV (RFC 4180): a header line, then one line per query and measurement. */
#ifndef SHARDLOAD_CLI_QUERY_CSV_H
#define SHARDLOAD_CLI_QUERY_CSV_H

#include <bson/bson.h>

#include "util/error.h"

/* `queries` is the array of that name in a report. Replaces the file as sl_private_file_replace
 * does; false with the error set. */
bool sl_query_csv_write(const bson_t *queries, const char *path, sl_error *error);

#endif
