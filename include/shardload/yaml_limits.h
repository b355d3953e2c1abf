/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for YAML, checked before a document is built. libyaml takes time that grows with the
 * square of the depth of nesting and of the number of anchors: a schema of 100,000 brackets would
 * take minutes. */
#ifndef SHARDLOAD_YAML_LIMITS_H
#define SHARDLOAD_YAML_LIMITS_H

#include <shardload/error.h>
#include <shardload/text.h>

#define SL_YAML_DEPTH_MAX 64     /* mappings and lists within each other */
#define SL_YAML_ANCHORS_MAX 1000 /* in one file */
#define SL_YAML_BYTES_MAX (16 << 20)

/* False, with an error of class `code` that names file and line, when the text passes a limit. Text
 * that is no YAML passes: the reader says what is wrong with it. */
bool sl_yaml_within_limits(sl_text text, const char *file, sl_exit code, sl_error *error);

#endif
