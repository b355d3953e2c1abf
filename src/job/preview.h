/* SPDX-License-Identifier: Apache-2.0 */
/* A preview of a load: estimates of the records and documents of its sources, from a sample of
 * their blocks, and of the documents per shard. Nothing is written; a cluster only receives
 * reads. */
#ifndef SHARDLOAD_PREVIEW_H
#define SHARDLOAD_PREVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "job.h"
#include "util/error.h"
#include "util/estimate.h"

/* Estimates for one or several sources. The ranges are 99 % confidence intervals of the sampling.
 * For a sequential source, of which only the beginning is read, they are widened by an assumed
 * error (preview.c). Generated records have no text: text_bytes is 0. */
typedef struct sl_measure {
    sl_estimate records, documents, text_bytes, bson_bytes;
    double rejects_share; /* rejected share of the records read, 0..1 */
    uint64_t blocks_read; /* of 1 MiB */
    double blocks;        /* estimate of all blocks */
} sl_measure;

typedef struct sl_preview_source {
    char *name; /* safe to print */
    const char *format;
    char dialect[120];
    uint64_t stored_bytes;
    uint32_t number; /* the source number in its ids */
    bool exact;      /* the complete source was read: the measure is exact */
    bool sampled;    /* blocks of it were read; otherwise it is estimated from sampled sources */
    uint32_t record_bytes; /* of generated records, as in sl_source; otherwise 0 */
    sl_measure measure;
} sl_preview_source;

typedef struct sl_preview_range {
    sl_range range;
    uint32_t shard; /* the shard that the load will place it on */
    bool stays;     /* sl_prepare_ranges does not move it */
    double documents;
} sl_preview_range;

/* How documents are distributed over shards. */
typedef enum sl_preview_layout {
    SL_LAYOUT_UNSHARDED,
    SL_LAYOUT_RANGES,    /* by {_id: 1}, in ranges split and placed beforehand */
    SL_LAYOUT_HASHED,    /* by a hashed key, which the server spreads over all shards */
    SL_LAYOUT_KEY,       /* by another key, as the existing chunks determine */
    SL_LAYOUT_ONE,       /* by another key with one chunk: all to one shard */
    SL_LAYOUT_QUANTILES, /* by ranges of another key, split beforehand at quantiles of a sample */
} sl_preview_layout;

typedef struct sl_preview {
    size_t source_count;
    sl_preview_source *sources; /* in load order, without skipped sources */
    sl_measure all;
    bool generated;

    sl_connection *connection; /* NULL without a cluster */
    sl_topology *topology;     /* NULL without a cluster */
    uint32_t shards;           /* at least 1 */
    sl_target_view target;     /* what the load finds there, and changes */
    bool home_known; /* false: the database is new, and the server picks its first shard */
    sl_balancer_view balancer;
    sl_preview_layout layout;
    bson_t *shard_key;        /* that the collection has, gets, or would get by --shard-existing;
                                 NULL: none */
    sl_preview_range *ranges; /* sorted by id */
    size_t range_count;
    sl_step_counts steps;
    double *shard_share; /* of the documents, one per shard; they add up to 1 */
    sl_error refusal;    /* the error with which a load would end; code SL_EXIT_OK: none */
} sl_preview;

/* Previews the load that the config describes, reading about `blocks` MiB of its sources. With a
 * NULL uri no cluster is used, and the layout is that for `shards` empty shards. Pipes are an
 * error, because their data can be read only once. With 0 `blocks` only `refusal` is found. */
bool sl_preview_create(const sl_load_config *config, uint32_t shards, uint64_t blocks,
                       sl_preview **preview, sl_error *error);
void sl_preview_destroy(sl_preview *preview); /* NULL is fine */

#endif
