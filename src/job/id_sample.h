/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of the _ids of a job's documents, for pre-splitting a collection whose shard key is a
 * range of _id. Main thread, before workers start. */
#ifndef SHARDLOAD_ID_SAMPLE_H
#define SHARDLOAD_ID_SAMPLE_H

#include "job.h"

/* Consecutive BSON documents {_id: ...}. */
typedef struct sl_id_sample {
    uint8_t *bytes; /* owned */
    size_t used, room;
    size_t count;
} sl_id_sample;

/* Takes a sample, spread evenly over the sources. It is empty if a source can only be read
 * sequentially: its first blocks would not be representative. The caller clears it in any case. */
bool sl_id_sample_take(const sl_job *job, sl_id_sample *sample, sl_error *error);
void sl_id_sample_clear(sl_id_sample *sample);

#endif
