/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload verify`: compares the sources with the collection. */
#ifndef SHARDLOAD_VERIFY_H
#define SHARDLOAD_VERIFY_H

#include "job/load_config.h"
#include "util/error.h"

/* Compares the sources with the collection, with `content` document by document, otherwise by
 * counts. Changes nothing. Logs the first `problems_shown` problems. Uses the config's sources,
 * target, threads and output; the work directory only if the config names one. */
sl_exit sl_verify_run(const sl_load_config *config, bool content, uint64_t problems_shown);

#endif
