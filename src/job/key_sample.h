/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of the shard key of a job's documents, by which a new collection is split (presplit.h).
 * Main thread, before workers start. */
#ifndef SHARDLOAD_KEY_SAMPLE_H
#define SHARDLOAD_KEY_SAMPLE_H

#include "cluster/presplit.h"

#include "job.h"

/* Offers documents of about 64 blocks, spread evenly over the sources. Of a source that can only be
 * read sequentially (compressed, JSON, BSON) the first blocks are read, which may not be
 * representative. Pipes are not read. Blocks that cannot be read or parsed are left out: the load
 * reports them. */
bool sl_key_sample_take(sl_job *job, sl_key_sample *sample, sl_error *error);

#endif
