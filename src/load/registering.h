/* SPDX-License-Identifier: Apache-2.0 */
/* The registration of what a load has loaded, at its end. */
#ifndef SHARDLOAD_REGISTERING_H
#define SHARDLOAD_REGISTERING_H

#include "job/destination.h"
#include "job/job.h"
#include "ledger/ledger.h"

/* Registers the job's sources as loaded; of a shared load, this loader's parts of them. Then, of a
 * shared load, counts and registers the sources that are complete now, and logs which parts are
 * missing. */
bool sl_register_loaded(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                        sl_error *error);

#endif
