/* SPDX-License-Identifier: Apache-2.0 */
/* A look ahead at a load: how much its sources will give, judged by a sample of their blocks, and
 * where the documents will go. Nothing is written anywhere; with a cluster only reads are sent. */
#ifndef SHARDLOAD_PREVIEW_H
#define SHARDLOAD_PREVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/cluster.h>
#include <shardload/error.h>
#include <shardload/estimate.h>
#include <shardload/load.h>

/* What sources give. Ranges are meant to hold the true value 99 times in 100 as far as chance goes;
 * of a source that can only be read from front to back, which is seen to its beginning alone, they
 * are wider by a guess (see measure.c). Text of made-up records is 0. */
typedef struct sl_measure {
    sl_estimate records, documents, text_bytes, bson_bytes;
    double rejects_share; /* of the records that were looked at, 0..1 */
    uint64_t blocks_read; /* of 1 MiB */
    double blocks;        /* that there are, about */
} sl_measure;

typedef struct sl_preview_source {
    char *name; /* safe to print */
    const char *format;
    char dialect[120];
    uint64_t stored_bytes;
    uint32_t number; /* that its ids begin with */
    bool leads_to_end; /* it was read whole: what is said of it is exact */
    bool looked_at;    /* else judged by others of its kind */
    bool made_up;
    sl_measure measure;
} sl_preview_source;

typedef struct sl_preview_range {
    sl_range range;
    uint32_t shard; /* where its documents will be */
    bool stays;     /* it holds documents, and stays where it is */
    double documents;
} sl_preview_range;

/* How documents find their shards. */
typedef enum sl_preview_layout {
    SL_LAYOUT_UNSHARDED,
    SL_LAYOUT_RANGES,  /* by {_id: 1}, split and placed beforehand */
    SL_LAYOUT_HASHED,  /* by a hashed key, which the server spreads over all shards */
    SL_LAYOUT_KEY,     /* by another key, along the chunks that there are */
    SL_LAYOUT_ONE,     /* by another key that has one chunk yet: all to one shard */
} sl_preview_layout;

typedef struct sl_preview {
    size_t source_count;
    sl_preview_source *sources; /* those that are not left out, in order */
    sl_measure all;
    bool made_up;

    sl_connection *connection; /* NULL without a cluster */
    sl_topology *topology;     /* NULL without a cluster */
    uint32_t shards;           /* at least 1 */
    bool exists;               /* the collection is there, and stays */
    sl_sharding_change sharding; /* of the collection, by the load */
    bool home_known;           /* else the database is new, and the server picks its first shard */
    sl_balancer_view balancer;
    sl_preview_layout layout;
    sl_preview_range *ranges; /* sorted by id */
    size_t range_count;
    sl_step_counts steps;
    double *shard_share; /* of the documents, one per shard; they add up to 1 */
    sl_error refusal;    /* what a load would refuse with; code SL_EXIT_OK when it would not */
} sl_preview;

/* Looks ahead at the load that the config describes, reading about `blocks` MiB of its sources. The
 * cluster is the config's; with uri NULL there is none, and the layout is that for `shards` empty
 * shards. Pipes are an error, since a look uses them up. */
bool sl_preview_create(const sl_load_config *config, uint32_t shards, uint64_t blocks,
                       sl_preview **preview, sl_error *error);
void sl_preview_destroy(sl_preview *preview); /* NULL is fine */

#endif
