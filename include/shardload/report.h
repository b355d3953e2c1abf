/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the records of runs. */
#ifndef SHARDLOAD_PUBLIC_REPORT_H
#define SHARDLOAD_PUBLIC_REPORT_H

#include <shardload/context.h>
#include <shardload/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Draws records as one HTML page. `records` (ended by NULL) are JSON texts that a command has
 * returned, or the contents of run.json, tune.json, reload.json or plan.json. `title` may be NULL.
 * Sets `html`, to be freed with shardload_free, or NULL on failure. */
shardload_code shardload_report_html(shardload_context *context, const char *const *records,
                                     const char *title, char **html, shardload_error *error);

#ifdef __cplusplus
}
#endif

#endif
