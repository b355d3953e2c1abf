/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of sources, without a server. */
#ifndef SHARDLOAD_INSPECT_H
#define SHARDLOAD_INSPECT_H

#include "load_config.h"
#include "util/error.h"

/* Prints format, dialect, inferred types, the first `documents` documents, rejects and estimates of
 * each source. Uses the config's sources and format only. Writes the inferred types to the file
 * `schema`, unless it is NULL. */
sl_exit sl_inspect_run(const sl_load_config *config, unsigned documents, const char *schema);

#endif
