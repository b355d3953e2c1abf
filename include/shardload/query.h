/* SPDX-License-Identifier: Apache-2.0 */
/* Times queries and checks their answers. */
#ifndef SHARDLOAD_PUBLIC_QUERY_H
#define SHARDLOAD_PUBLIC_QUERY_H

#include <shardload/context.h>
#include <shardload/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs suites like `shardquery run`, with its options. `suites` (ended by NULL) are file names and
 * names of built-in suites; it may be empty or NULL if there is an option `pipeline`. `report`, if
 * it is not NULL, receives the report as JSON (docs/query-report.md); free it with shardload_free.
 * `error` may be NULL. Returns SHARDLOAD_VERIFICATION if an answer is wrong. */
shardload_code shardload_query(shardload_context *context, const shardload_option *options,
                               const char *const *suites, char **report, shardload_error *error);

#ifdef __cplusplus
}
#endif

#endif
