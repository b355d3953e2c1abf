/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML files, within limits that are checked before a document is built: libyaml's time grows
 * with the square of the nesting depth and of the number of anchors, so 100,000 brackets would take
 * minutes. */
#ifndef SHARDLOAD_YAML_LIMITS_H
#define SHARDLOAD_YAML_LIMITS_H

#include <yaml.h>

#include "error.h"
#include "text.h"

#define SL_YAML_DEPTH_MAX 64     /* nested mappings and lists */
#define SL_YAML_ANCHORS_MAX 1000 /* in one file */
#define SL_YAML_BYTES_MAX (16 << 20)

/* False, with an error of class `code` that names file and line, when the text exceeds a limit.
 * True for text that is not YAML: parsing it reports the syntax error. */
bool sl_yaml_within_limits(sl_text text, const char *file, sl_exit code, sl_error *error);

/* Checks the limits and reads the text's first document, which the caller deletes. False, with an
 * error (SL_EXIT_USAGE) that names file, line and column, when the text is not YAML. */
bool sl_yaml_read_document(sl_text text, const char *file, yaml_document_t *document,
                           sl_error *error);

#endif
