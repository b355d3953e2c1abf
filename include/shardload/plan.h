/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a load without changing anything. */
#ifndef SHARDLOAD_PUBLIC_PLAN_H
#define SHARDLOAD_PUBLIC_PLAN_H

#include <shardload/context.h>
#include <shardload/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plans a load of `sources` (ended by NULL) like `shardload plan`, with its options. `record`, if
 * it is not NULL, receives the content of plan.json; free it with shardload_free. `error` may be
 * NULL. If the load would refuse to start, returns the code of that refusal. */
shardload_code shardload_plan(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error);

#ifdef __cplusplus
}
#endif

#endif
