/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the records of runs as an HTML page. */
#ifndef SHARDLOAD_PUBLIC_REPORT_H
#define SHARDLOAD_PUBLIC_REPORT_H

#include <shardload/context.h>
#include <shardload/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes one HTML page from records. `records` (ended by NULL) are JSON texts that a command has
 * returned, or the contents of run.json, tune.json, reload.json or plan.json. `title` may be NULL.
 * Sets `html`, or NULL on failure; free it with shardload_free. `error` may be NULL. */
shardload_code shardload_report_html(shardload_context *context, const char *const *records,
                                     const char *title, char **html, shardload_error *error);

#ifdef __cplusplus
}
#endif

#endif
