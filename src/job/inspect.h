/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of sources, without a server. */
#ifndef SHARDLOAD_INSPECT_H
#define SHARDLOAD_INSPECT_H

#include "load_config.h"
#include "util/error.h"

/* Prints format, dialect, the first `documents` documents, rejects and estimates of each source.
 * Uses the config's sources and format only. */
sl_exit sl_inspect_run(const sl_load_config *config, unsigned documents);

#endif
