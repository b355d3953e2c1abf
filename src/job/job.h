/* SPDX-License-Identifier: Apache-2.0 */
/* A job: what is loaded, what is not, how its documents are laid out over the shards, and the
 * collection that receives them.
 *
 * A job is prepared by one thread: its sources are opened, numbered, divided into ranges and, when
 * a load is resumed, compared with those of the journal. It does not change once threads have been
 * started, with two exceptions, each with its own lock: the list of what is not loaded
 * (sl_not_loaded), and the archive entries that are being read (sources.h). */
#ifndef SHARDLOAD_JOB_H
#define SHARDLOAD_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "cluster/cluster.h"
#include "source/source.h"
#include "util/document_id.h"
#include "util/error.h"

#include "load_config.h"

#define SL_COPIES_SHOWN 5 /* in messages */

typedef struct sl_job_source {
    const sl_format *format;
    sl_dialect *dialect; /* for an archive, that of the entry `deciding` */
    unsigned deciding;   /* of an archive: the first entry that a format recognises, from 1 */
    bool divided;        /* into records by the format's splitter */
    struct sl_archive_entry *entries; /* of an archive: entries being read; sources.c */
    char fingerprint[SL_FINGERPRINT_ROOM];
    uint64_t device, inode; /* of a regular file, also if it is standard input; 0 otherwise */
    char registered[SL_FINGERPRINT_ROOM]; /* in the registry, if other than the fingerprint; "" */
    uint64_t beginning;                   /* hash of its first text; 0: perhaps only a header */
    uint64_t records;                     /* as in sl_registry_entry */
    uint64_t text_bytes;                  /* its size unpacked; 0: not read */
    size_t like; /* index + 1 of an earlier file with this beginning; 0: none */
    uint32_t number;
    _Atomic bool ends_at_mark; /* it ends with Ctrl-Z, and this has been said */
    uint64_t sampled;          /* bytes of text that have been sampled for types; types.c */
    uint64_t sampled_from;     /* the offset of these */
    bool skipped;
    sl_registry_entry *corrected; /* rejects of it have been corrected; NULL: none. Owned */
    uint64_t *done; /* bit set of the blocks that an earlier run has completed; ledger.c */
    size_t done_words;
    uint64_t done_end; /* the offset at which the text of these blocks ends */
    bool compare;      /* these blocks are read again: the source is a pipe, or a possibly changed
                     file */
    _Atomic uint64_t uncompared; /* of these blocks: how many have not been compared yet */
    uint32_t pieces, leading;    /* layout of its ids over shards; see sl_job_shard_of */
} sl_job_source;

/* A file or archive entry that is not loaded. */
typedef struct sl_not_loaded_item {
    size_t source; /* index into the set */
    char *entry;   /* name of the archive's entry; NULL: the file itself */
    char *reason;
} sl_not_loaded_item;

typedef struct sl_not_loaded {
    pthread_mutex_t lock; /* guards the fields below while workers run */
    uint64_t count;
    uint64_t empty;           /* files and entries, not in the list: they do not fail the load */
    sl_not_loaded_item *kept; /* the first ones, for the messages and run.json */
    size_t kept_count;
} sl_not_loaded;

typedef struct sl_job {
    const sl_load_config *config;
    sl_source_set *set;
    sl_job_source *sources;     /* one per source of the set */
    sl_plan **plans;            /* one per row of sl_formats; NULL where not used */
    size_t active;              /* sources that are not skipped */
    size_t copies;              /* of these: with the name and content of another source */
    bool has_pipe;              /* a source is a pipe: the total of stored bytes is not known */
    struct sl_key_fields *keys; /* of --id-field and --match-fields; NULL: neither applies */
    const char *schema; /* of the tables of an SQL dump, in `set`; NULL: the sources are no dumps */
    struct sl_dialects *dialects; /* of delimited texts (format/dialects.h). Owned */
    bool spans_lines;  /* the sample has found quoted fields with line ends, which the first text of
                         the sources did not show */
    const char *again; /* what the sample has shown, so that the sources are read again; or NULL */
    bool own_ids;      /* documents may have their own _id, or none: the _id is not a position */
    bool other_ids;    /* --again: earlier loads have taken the _id from elsewhere */
    bool resumed;      /* documents may have been sent by an earlier run */
    uint64_t foreign;  /* sl_registry_entry.foreign, the greatest of these sources, without those
                          that their records have; verify only */
    uint64_t rejected; /* records of these sources that earlier loads have rejected, and the
                              first work directory that lists some; verify only */
    char rejected_in[300];
    uint64_t refused_ids; /* the sum of sl_registry_entry.refused_ids; verify only */
    bool refused_unknown; /* the registry lacks refused_ids of one of these sources */
    uint64_t stored;      /* the sum of sl_registry_entry.stored; verify only */
    uint64_t registered;  /* documents that these sources must have, by the registry; UINT64_MAX:
                            not known, since a load has not ended, or was one of parts */
    sl_not_loaded not_loaded;
    struct sl_embed *embed; /* --embed (embed.h); NULL without it. Owned */

    bson_t *hashed_id;      /* {_id: "hashed"}: the default shard key if own_ids */
    sl_error match_problem; /* the stored documents have other types in a match field; code 0: no */
    sl_error key_problem;   /* why no collection may be sharded by the given key; code 0: no
                             problem */
    uint32_t shards;        /* at least 1 */
    bool by_range;          /* the collection is sharded by {_id: 1} */
    sl_range *ranges;       /* of _id, sorted: the ranges that are placed and verified */
    size_t range_count;

    uint32_t parts;   /* N of --part K/N; with --only-shards, number of shards; 0: not shared */
    bool *own_shards; /* per shard: is it one of --only-shards? NULL without that option */

    pthread_mutex_t entries_lock; /* sources.c */
    pthread_cond_t entries_known;
    bool entries_failed;      /* under entries_lock */
    unsigned doubts;          /* guarded by entries_lock: records that may hold others; sources.c */
    bool doubted_once;        /* guarded by entries_lock: a doubt with `once` was shown */
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

/* ---- what is not loaded ---- */

/* Logs and lists a file (`entry` NULL), or an archive's entry, that is not loaded. `reason` NULL:
 * it is empty, and only logged. `entry` and `reason` must be printable. Any thread. */
void sl_not_loaded_add(sl_job *job, size_t source, const char *entry, const char *reason);
/* False with SL_EXIT_SOURCE if the list is not empty and --skip-other is not given. */
bool sl_not_loaded_check(sl_job *job, sl_error *error);
bool sl_not_loaded_allowed(const sl_load_config *config, uint64_t count, sl_error *error);
/* Appends the section "notLoaded", unless the list is empty. */
void sl_not_loaded_record(const sl_job *job, bson_t *record);

/* ---- the destination ---- */

/* A destination: the collection that a job is loaded into, or compared with, and its cluster. All
 * zero when there is no cluster.
 *
 * Only the main thread calls these functions and sends commands through it. Workers read the chunk
 * map, and borrow clients from the connection pools, which have their own locks. */

typedef struct sl_destination {
    sl_connection *connection;
    bool borrowed; /* the connection belongs to another object, and stays open */
    sl_target target;
    sl_topology *topology;
    sl_registry *registry;
    sl_shard_map *map;
    sl_direct *direct; /* NULL: through the routers */
    bool created;      /* this load has created the collection */
    bool numbered;     /* the registry may list the sources as started by this load */
    bool doubt_logged; /* the warning was logged that the owners could not be confirmed */
} sl_destination;

/* Sets the destination's target from the config, once connected. */
void sl_target_configure(sl_destination *destination, const sl_job *job, bool resumed);
/* Before the target is prepared: finds out whether commands can name the collection's UUID. Waits
 * until no write of a killed loader is running that could change the result of this load. */
bool sl_target_begin(sl_job *job, sl_destination *destination, sl_error *error);
/* On the direct route: checks that each shard has the collection with the target's UUID, or has no
 * collection of that name. `sent`: documents sent to each shard, which must then have it; NULL
 * before the load. */
bool sl_target_check_shards(const sl_destination *destination, const _Atomic uint64_t *sent,
                            sl_error *error);
/* Checks that the collection is still the one that was prepared, on the shards too. */
bool sl_target_is_ours(const sl_destination *destination, const _Atomic uint64_t *sent,
                       sl_error *error);

/* Closes all connections that are not borrowed. */
void sl_destination_close(sl_destination *destination);

#endif
