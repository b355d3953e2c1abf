/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the array `queries` of a report, for report.c and load_report.c. */
#ifndef QUERY_REPORT_H
#define QUERY_REPORT_H

#include <stdbool.h>

#include <bson/bson.h>

/* Appends `entry` to `queries` if it was `filled` completely, and destroys it in any case. False
 * without memory. */
bool sl_report_add(bson_t *queries, bson_t *entry, bool filled);

#endif
