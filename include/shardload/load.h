/* SPDX-License-Identifier: Apache-2.0 */
/* Loads sources into a cluster, and compares sources with the stored documents. */
#ifndef SHARDLOAD_PUBLIC_LOAD_H
#define SHARDLOAD_PUBLIC_LOAD_H

#include <shardload/context.h>
#include <shardload/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads `sources` (file and folder names, ended by NULL) like `shardload load`, with its options:
 *
 *     {"uri", "mongodb://router1/"}, {"db", "mot"}, {"collection", "tests"}, {NULL, NULL}
 *
 * `record`, if it is not NULL, receives the run record as JSON (the content of run.json), or NULL
 * if the load failed before it began; free it with shardload_free. `error` (may be NULL) receives
 * the code and the message. Returns the same code: SHARDLOAD_OK or SHARDLOAD_REJECTS when the
 * outcome of every record is known. */
shardload_code shardload_load(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error);

/* Compares sources with the stored documents like `shardload verify`. `record`, if it is not NULL,
 * receives the content of verify.json; free it with shardload_free. Returns SHARDLOAD_OK only if
 * they are equal, and SHARDLOAD_VERIFICATION if they differ. */
shardload_code shardload_verify(shardload_context *context, const shardload_option *options,
                                const char *const *sources, char **record, shardload_error *error);

#ifdef __cplusplus
}
#endif

#endif
