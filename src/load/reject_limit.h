/* SPDX-License-Identifier: Apache-2.0 */
/* Loads that end because of their rejects. */
#ifndef SHARDLOAD_REJECT_LIMIT_H
#define SHARDLOAD_REJECT_LIMIT_H

#include "ledger/ledger.h"
#include "run.h"

#define SL_REJECT_LIMIT_ROOM 32

/* The limit of --max-rejects as text: "10" or "2.5%". Returns out. */
char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]);
/* Are there more rejects than --max-rejects allows? Sets `error` if so. A percentage applies from
 * 100,000 records on; at the end of the load (`at_end`), to any number of records. Any thread. */
bool sl_rejects_pass_limit(sl_run *run, const sl_ledger *ledger, bool at_end, sl_error *error);
/* At the end of a load: was every record rejected (of at least one)? Sets `error` if so, which
 * quotes the `reasons`. Always false for a shared load. */
bool sl_rejects_are_all(sl_run *run, const sl_ledger *ledger, const char *reasons, sl_error *error);

#endif
