/* SPDX-License-Identifier: Apache-2.0 */
/* A job: what is loaded, and how its documents are laid out over the shards.
 *
 * A job is prepared by one thread: its sources are opened, numbered, divided into ranges and, when
 * a load is resumed, compared with those of the journal. It does not change once threads have been
 * started, with two exceptions, each with its own lock: the list of what is not loaded
 * (not_loaded.h), and the archive entries that are being read (archive_entries.h). */
#ifndef SHARDLOAD_JOB_H
#define SHARDLOAD_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "source/source.h"
#include "util/document_id.h"

#include "load_config.h"
#include "not_loaded.h"

typedef struct sl_job_source {
    const sl_format *format;
    sl_dialect *dialect;              /* for an archive, the dialect of its first entry */
    bool divided;                     /* into records by the format's splitter */
    struct sl_archive_entry *entries; /* of an archive: entries being read; archive_entries.c */
    char fingerprint[SL_FINGERPRINT_ROOM];
    uint64_t device, inode; /* of a regular file, also if it is standard input; 0 otherwise */
    uint32_t number;
    uint64_t sampled; /* offset up to which the text has been sampled for types; types.c */
    bool skipped;
    uint64_t *done; /* bit set of the blocks that an earlier run has completed; resume.c */
    size_t done_words;
    uint64_t done_end; /* the offset at which the text of these blocks ends */
    bool compare;      /* these blocks are read again: the source is a pipe, or a possibly changed
                     file */
    uint32_t pieces, leading; /* layout of its ids over shards; see sl_job_shard_of */
} sl_job_source;

typedef struct sl_job {
    const sl_load_config *config;
    sl_source_set *set;
    sl_job_source *sources;       /* one per source of the set */
    sl_plan **plans;              /* one per row of sl_formats; NULL where not used */
    size_t active;                /* sources that are not skipped */
    size_t copies;                /* of these: with the name and content of another source */
    bool has_pipe;                /* a source is a pipe: the total of stored bytes is not known */
    struct sl_key_fields *keys;   /* of --id-field and --match-fields; NULL: neither applies */
    struct sl_dialects *dialects; /* of delimited texts (format/dialects.h). Owned */
    bool own_ids; /* documents may have their own _id, or none: the _id is not a position */
    bool resumed; /* documents may have been sent by an earlier run */
    sl_not_loaded not_loaded;
    struct sl_embed *embed; /* --embed (embed.h); NULL without it. Owned */

    bson_t *hashed_id;    /* {_id: "hashed"}: the default shard key if own_ids */
    sl_error key_problem; /* why no collection may be sharded by the given key; code 0: no
                             problem */
    uint32_t shards;      /* at least 1 */
    bool by_range;        /* the collection is sharded by {_id: 1} */
    sl_range *ranges;     /* of _id, sorted: the ranges that are placed and verified */
    size_t range_count;

    uint32_t parts;   /* N of --part K/N; with --only-shards, number of shards; 0: not shared */
    bool *own_shards; /* per shard: is it one of --only-shards? NULL without that option */

    pthread_mutex_t entries_lock; /* archive_entries.c */
    pthread_cond_t entries_known;
    bool entries_failed; /* under entries_lock */
    unsigned doubts;     /* guarded by entries_lock: records that may hold others; line_ends.c */
    uint64_t untyped_entries; /* guarded by entries_lock: archive entries with columns that were not
                                 in the sample, loaded as text */
} sl_job;

/* Begins a job for one shard, without sources. */
void sl_job_init(sl_job *job, const sl_load_config *config);
/* Frees the job and closes its sources. */
void sl_job_clear(sl_job *job);

/* The shard key of a new collection on a sharded cluster; NULL: none. */
static inline const bson_t *sl_job_shard_key(const sl_job *job) {
    return job->own_ids && !job->config->shard_key_given ? job->hashed_id : job->config->shard_key;
}

/* Are the records generated? Then there is no text, and the size of a source is a number of
 * records. */
static inline bool sl_job_is_generated(const sl_job *job) {
    return sl_source_set_at(job->set, 0)->kind == SL_SOURCE_GENERATED;
}

/* The bytes that each generated record counts as; 0 if the records are not generated. */
static inline uint32_t sl_job_record_bytes(const sl_job *job) {
    return sl_source_set_at(job->set, 0)->record_bytes;
}

/* The first stripe of a piece. A source's stripes are divided into pieces whose sizes differ by at
 * most one stripe: stripe s is in piece s * pieces / SL_STRIPES. */
static inline uint32_t sl_piece_begin(const sl_job_source *source, uint32_t piece) {
    return (SL_STRIPES * piece + source->pieces - 1) / source->pieces;
}

/* The shard that a piece of a source is laid out for. */
static inline uint32_t sl_job_shard_of(const sl_job *job, const sl_job_source *source,
                                       uint32_t piece) {
    return (piece + source->leading) % job->shards;
}

/* The shard that the block containing `offset` is laid out for. */
static inline uint32_t sl_job_shard_at(const sl_job *job, const sl_job_source *source,
                                       uint64_t offset) {
    uint32_t stripe = sl_reverse_8_bits((uint32_t)(offset >> SL_BLOCK_BITS & 0xFF));
    return sl_job_shard_of(job, source, stripe * source->pieces / SL_STRIPES);
}

/* The index of the range that holds `id`. */
size_t sl_job_range_of(const sl_job *job, int64_t id);

#endif
