/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one load, shared by the files of src/load.
 *
 * A field that several threads use is atomic, or is guarded by a lock of its module (rejects.c, the
 * BSON file in sink.c), or is written only before the workers start and after they have ended. */
#ifndef SHARDLOAD_ENGINE_H
#define SHARDLOAD_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/cluster.h"
#include "load.h"
#include "report/run_record.h"
#include "source/source.h"
#include "util/document_id.h"
#include "util/histogram.h"

#include "journal.h"
#include "pace.h"
#include "rate_limit.h"
#include "rejects.h"

/* The activities that a worker's time is divided into. */
typedef enum sl_stage {
    STAGE_READING,
    STAGE_INFLATING,
    STAGE_PARSING,
    STAGE_PACING, /* waiting for --rate-limit */
    STAGE_SENDING,
    STAGES,
} sl_stage;

extern const char *const sl_stage_names[STAGES];

/* ---- sources.c: one source of a load ---- */

typedef struct sl_load_source {
    const sl_format *format;
    sl_dialect *dialect;              /* of an archive, that of its first entry */
    struct sl_archive_entry *entries; /* of an archive: entries being read; archive_entries.c */
    char fingerprint[SL_FINGERPRINT_ROOM];
    uint64_t device, inode; /* of a regular file, also as standard input; 0 otherwise */
    uint32_t number;
    bool skipped;
    uint64_t *done; /* bit set of the blocks that an earlier run has completed; resume.c */
    size_t done_words;
    uint64_t done_end; /* the offset at which the text of these blocks ends */
    bool compare;      /* these blocks are read again: the source is a pipe, or a possibly changed
                     file */
    _Atomic uint64_t accepted; /* documents inserted or already stored */
    _Atomic uint64_t taken;    /* documents refused because another document has their _id */
    uint32_t pieces, leading;  /* layout of its ids over shards; see sl_load_shard_of */
    uint32_t parts_loaded;     /* of a shared load: parts loaded so far, this loader's included */
    uint64_t parts_accepted;   /* sum of `accepted` and `taken` over these parts */
} sl_load_source;

/* ---- worker.c: counters, written by one worker, read by the progress line ---- */

typedef struct sl_worker_counters {
    _Alignas(64) _Atomic uint64_t text_bytes;
    _Atomic uint64_t records;
    _Atomic uint64_t inserted;
    _Atomic uint64_t already_stored;
    _Atomic uint64_t parser_rejects;
    _Atomic uint64_t server_rejects;
    _Atomic uint64_t bson_bytes;
    _Atomic uint64_t batches;
    _Atomic uint64_t retries;
    _Atomic int64_t answered_ns; /* when the last batch was acknowledged, by sl_clock_ns */
    _Atomic int64_t stage_ns[STAGES];
} sl_worker_counters;

/* ---- batch.c: documents to be sent to one shard ---- */

/* A block that is not completed yet, with the outcome of its records so far; see blocks.c. Belongs
 * to one worker. */
typedef struct sl_open_block {
    struct sl_open_block *next, **link; /* in the list of open blocks; *link is this block */
    sl_source_block block;              /* its text is not valid after parsing */
    char *entry_name;                   /* copy of the entry's name, to which block.entry points */
    size_t entry_name_room;
    int64_t first_id;       /* an id within the block's MiB */
    uint64_t check;         /* hash of the text, as in the journal */
    sl_parse_counts counts; /* complete once it is parsed */
    bool has_text;          /* false for generated records */
    bool parsed;
    uint32_t waiting; /* documents in batches that have not been acknowledged */
    uint32_t inserted, already_stored, refused;
    uint32_t taken;         /* of `refused`: another document has their _id */
    sl_reject_list rejects; /* the parser's and the server's */
} sl_open_block;

/* Consecutive documents of a batch that came from one block. */
typedef struct sl_batch_segment {
    sl_open_block *open_block;
    uint32_t documents;
} sl_batch_segment;

typedef struct sl_batch {
    uint32_t shard; /* index of the shard; load->shards: only the router can find the owners */
    uint32_t documents;
    uint8_t *bytes; /* `used` bytes of `room`, then SL_SLACK more */
    size_t used;
    size_t room;
    int64_t since; /* when its first document was added, by sl_clock_ns */
    sl_batch_segment *segments;
    size_t segment_count;
    size_t segment_room;
} sl_batch;

bool sl_batch_init(sl_batch *batch, uint32_t shard, size_t room);
void sl_batch_clear(sl_batch *batch);
void sl_batch_empty(sl_batch *batch);
/* Documents added from now on come from this block. False without memory. */
bool sl_batch_begin_segment(sl_batch *batch, sl_open_block *open_block);
/* Grows the batch to at least `need` bytes in total. False without memory. */
bool sl_batch_make_room(sl_batch *batch, size_t need);
/* Appends a copy of a document of the block. Grows the batch if the document does not fit: the
 * caller sends a full batch first. False without memory. */
bool sl_batch_add(sl_batch *batch, sl_open_block *open_block, const uint8_t *document,
                  size_t length);

/* ---- not_loaded.c: files and archive entries that are not loaded ---- */

typedef struct sl_not_loaded_item {
    size_t source; /* index into the set */
    char *entry;   /* name of the archive's entry; NULL: the file itself */
    char *reason;
} sl_not_loaded_item;

typedef struct sl_not_loaded {
    pthread_mutex_t lock; /* guards the fields below while workers run */
    uint64_t count;
    sl_not_loaded_item *kept; /* the first ones, for the messages and run.json */
    size_t kept_count;
} sl_not_loaded;

/* ---- resume.c: totals of earlier runs, recovered from the journal ---- */

typedef struct sl_recovered {
    uint64_t blocks, text_bytes, inserted, already_stored, refused;
    sl_parse_counts counts;
} sl_recovered;

/* ---- reject_limit.c: loads that end because of their rejects ---- */

typedef enum sl_ending {
    SL_ENDED_OTHERWISE,
    SL_ENDED_BY_REJECT_LIMIT, /* --max-rejects */
    SL_ENDED_ALL_REJECTED,
} sl_ending;

/* ---- unregistered.c: documents of no registered source ---- */

typedef struct sl_unregistered {
    bool known;                    /* the documents have been counted */
    uint64_t numbers, other_types; /* documents whose _id is a number, or of another type */
    size_t sources;                /* registered when they were counted */
} sl_unregistered;

/* ---- the load ---- */

typedef struct sl_load {
    const sl_load_config *config;
    sl_run_record *record;
    char work_directory[512]; /* "" when there is none */
    const char *report;       /* path from the config; NULL if it cannot be written */
    const char *html;         /* likewise */
    double load_seconds;      /* how long the workers ran, in wall-clock time */

    sl_source_set *set;
    sl_load_source *sources; /* one per source of the set */
    sl_plan *plans[8];       /* one per row of sl_formats; NULL where not used */
    size_t active;           /* sources that are not skipped */
    bool has_pipe;           /* a source is a pipe: the total of stored bytes is not known */
    sl_not_loaded not_loaded;

    sl_connection *connection; /* NULL without a cluster */
    sl_target target;
    sl_topology *topology;
    uint32_t parts;   /* N of --part K/N; with --only-shards, number of shards; 0: not shared */
    bool *own_shards; /* per shard: is it one of --only-shards? NULL without that option */
    bool target_gone; /* the collection did not exist, although its registry did */
    bool created;     /* this load has created the collection */
    sl_unregistered unregistered,
        unregistered_now; /* counted before the first document was sent; counted at the end */
    sl_registry *registry;
    char balancer_before[16]; /* "full", "off", or "" when there is none */
    bool balancer_restored;   /* restored, or never stopped */
    char holder[25];          /* its id as a holder of the stopped balancer; "" without a journal */
    sl_shard_map *map;
    sl_direct *direct; /* NULL: through the routers */
    bool doubt_logged; /* a warning was logged: the owners could not be confirmed */
    uint32_t shards;   /* at least 1 */
    bool by_range;     /* the collection is sharded by {_id: 1} */

    sl_range *ranges; /* of _id, sorted: the ranges that are placed and verified */
    size_t range_count;
    size_t placing_steps;       /* splits and moves */
    double placing_seconds;     /* how long these took */
    _Atomic uint64_t *accepted; /* per range: documents it must hold: inserted, already stored,
                                         or another document under the same _id */
    _Atomic uint64_t *shard_documents; /* per shard: documents sent to it, as far as known */

    const struct sl_destination *sink;
    sl_reject_files *rejects;

    sl_journal *journal;            /* NULL unless into a cluster */
    struct sl_earlier_run *earlier; /* the journal's contents at the start; resume.c */
    bool resumed;                   /* documents may have been sent by an earlier run */
    bool compared;                  /* a source's text may differ from that of the earlier run */
    bool uncommitted;               /* collected journal entries have not been committed yet */
    sl_recovered recovered;

    _Atomic sl_ending ended_by;
    uint64_t undelivered; /* records that were parsed and not acknowledged when the workers ended */

    unsigned threads; /* all workers; `pace` has the number of those that are active */
    sl_pace pace;
    sl_rate_limit rate_limit;     /* starts with the workers */
    sl_worker_counters *counters; /* one per worker */
    sl_histogram *latencies;      /* one per worker: nanoseconds per batch; read after the end */
    sl_parse_counts *parsed;      /* one per worker; read after the end */

    pthread_mutex_t working_lock;
    pthread_cond_t all_ended;     /* by the monotonic clock */
    unsigned working;             /* workers that have not ended; under working_lock */
    _Atomic bool stop;            /* workers end after their current block and batches */
    _Atomic bool begun;           /* something may have been created or changed on the cluster */
    pthread_mutex_t entries_lock; /* archive_entries.c */
    pthread_cond_t entries_known;
    bool entries_failed; /* under entries_lock */
    pthread_mutex_t failure_lock;
    sl_error failure; /* the first error; under failure_lock while workers run */
} sl_load;

/* Keeps the first error and stops all workers. Any thread. */
void sl_load_fail(sl_load *load, const sl_error *error);

/* Lets all workers end after their current block and batches. Any thread. */
void sl_load_stop(sl_load *load);

/* Is the load shared with other loaders? */
static inline bool sl_load_is_shared(const sl_load *load) {
    return load->config->parts > 0 || load->config->only_shards;
}

/* The first stripe of a piece. A source's stripes are divided into pieces whose sizes differ by at
 * most one stripe: stripe s is in piece s * pieces / SL_STRIPES. */
static inline uint32_t sl_load_piece_begin(const sl_load_source *source, uint32_t piece) {
    return (SL_STRIPES * piece + source->pieces - 1) / source->pieces;
}

/* The shard that a piece of a source is laid out for. */
static inline uint32_t sl_load_shard_of(const sl_load *load, const sl_load_source *source,
                                        uint32_t piece) {
    return (piece + source->leading) % load->shards;
}

/* The shard that the block containing `offset` is laid out for. */
static inline uint32_t sl_load_shard_at(const sl_load *load, const sl_load_source *source,
                                        uint64_t offset) {
    uint32_t stripe = sl_reverse_8_bits((uint32_t)(offset >> SL_BLOCK_BITS & 0xFF));
    return sl_load_shard_of(load, source, stripe * source->pieces / SL_STRIPES);
}

/* The index of the range that holds `id`. */
size_t sl_load_range_of(const sl_load *load, int64_t id);

/* resume.c, in the order in which a load calls them. Without a journal they do nothing. */

/* Appends the options that change the documents, under their names on the command line. */
void sl_resume_format_options(const sl_load_config *config, bson_t *options);
/* Opens the journal; with --resume, checks that it belongs to this load. `*finished`: that load has
 * been completed, and nothing is left to do. */
bool sl_resume_open(sl_load *load, bool *finished, sl_error *error);
/* Does the collection of the journal still exist? Called before anything is created or changed. */
bool sl_resume_find_target(sl_load *load, sl_error *error);
/* Checks that the prepared collection and the numbers of the sources are those of the journal; a
 * new load writes them to the journal. */
bool sl_resume_target(sl_load *load, sl_error *error);
/* Recovers the completed blocks and the totals of earlier runs, before the first block is read. */
bool sl_resume_recover(sl_load *load, sl_error *error);
/* A hash of a block's text for the journal; 0 for generated records. Any thread. */
uint64_t sl_resume_check(const sl_source_block *block);
/* Is a block consistent with the journal? A completed block must have the same text, and the source
 * must not end before the last completed block. False sets the error. Any thread. */
bool sl_resume_block_fits(const sl_load *load, const sl_source_block *block, sl_error *error);
/* Called when documents of a block were refused because other documents have their _ids. False,
 * with the error, if that means that the source's text has changed since the earlier run. Any
 * thread. */
bool sl_resume_taken_fits(const sl_load *load, const sl_source_block *block, sl_error *error);
/* Writes all completed blocks to the journal and syncs it to disk. On the direct route this is left
 * to a later call if the cluster cannot confirm the owners of the documents now. By one thread. */
bool sl_resume_commit(sl_load *load, sl_error *error);
/* The last commit: waits until the owners are confirmed. */
bool sl_resume_commit_last(sl_load *load, sl_error *error);
/* Marks the load as finished, after it was verified and run.json was written. */
bool sl_resume_finish(sl_load *load, sl_error *error);
void sl_resume_close(sl_load *load);

/* sources.c */
bool sl_sources_open(sl_load *load, sl_error *error);
void sl_sources_close(sl_load *load);
const sl_plan *sl_sources_plan_of(const sl_load *load, const sl_load_source *source);
/* Parses a block of a source; as the `parse` of its format. */
bool sl_sources_parse(const sl_load *load, const sl_source_block *block, const sl_dialect *dialect,
                      sl_sink *sink, sl_parse_counts *counts);

/* Are the records generated? Then there is no text, and the size of a source is a number of
 * records. */
static inline bool sl_load_is_generated(const sl_load *load) {
    return sl_source_set_at(load->set, 0)->kind == SL_SOURCE_GENERATED;
}

/* line_ends.c: text that cannot be split into records. Errors are of class SL_EXIT_SOURCE. */

/* Does a source with unsupported line ends contain NUL bytes? Then it is a binary file, which is
 * skipped like other files without text, where that is allowed. */
bool sl_line_ends_is_binary(sl_text head);
/* Sets the error for a reject with `misread`: the parser cannot find the records behind it. Returns
 * false. Any thread. */
bool sl_line_ends_error(const sl_load *load, const sl_source_block *block, const sl_reject *reject,
                        sl_error *error);

/* archive_entries.c: the dialect of a block's text; *dialect NULL: the block's entry is not loaded.
 * Valid until sl_sources_done_with, which must be called once for each block. Any thread. */
bool sl_sources_dialect(sl_load *load, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error);
void sl_sources_done_with(sl_load *load, const sl_source_block *block);
void sl_archive_entries_clear(const sl_load_source *source);

/* not_loaded.c: logs and lists a file (`entry` NULL), or an archive's entry, that is not loaded.
 * `entry` and `reason` must be printable. Any thread. */
void sl_not_loaded_add(sl_load *load, size_t source, const char *entry, const char *reason);
/* False with SL_EXIT_SOURCE if the list is not empty and --skip-other is not given. */
bool sl_not_loaded_check(sl_load *load, sl_error *error);
/* Appends the section "notLoaded", unless the list is empty. */
void sl_not_loaded_record(const sl_load *load, bson_t *record);
void sl_not_loaded_init(sl_not_loaded *list);
void sl_not_loaded_clear(sl_not_loaded *list);

/* numbers.c */
bool sl_sources_number_offline(sl_load *load, sl_error *error);
/* Registers the sources. One that has been loaded before is an error (unless --again), reported
 * before anything is changed. */
bool sl_sources_number_by_registry(sl_load *load, sl_error *error);
/* For a collection that does not exist although its registry does: a source that is registered as
 * loaded is an error (unless --again); other registered sources cause a warning. Called before
 * anything is created. */
bool sl_sources_look_for_target(sl_load *load, sl_error *error);
/* Gives the sources the numbers that a load would give them, without changing the registry.
 * `refusal` receives the error with which that load would end. */
bool sl_sources_number_as_next(sl_load *load, sl_error *refusal, sl_error *error);
bool sl_sources_mark_loaded(sl_load *load, sl_error *error);
/* Of a shared load: marks the sources whose parts are all loaded. */
bool sl_sources_mark_complete(sl_load *load, sl_error *error);
/* With --only-shards: takes each source's layout from the registry, or registers this loader's. */
bool sl_sources_agree_on_layout(sl_load *load, sl_error *error);
/* Reads the numbers of the sources, changing nothing. A source that was never loaded is an
 * error. */
bool sl_sources_number_as_loaded(sl_load *load, sl_error *error);

/* parts.c: a load that is shared by several loaders (--part K/N, --only-shards). In any other load
 * these functions do nothing, unless noted. */

/* With --part: selects the blocks of this loader's part. */
bool sl_parts_begin(sl_load *load, sl_error *error);
/* With --only-shards: finds these shards. */
bool sl_parts_find_shards(sl_load *load, sl_error *error);
/* Calls the function for each of this loader's parts (numbered from 1), after selecting the part in
 * the registry; a load that is not shared calls it once, with part 0. */
typedef bool sl_parts_function(sl_load *load, uint32_t part, sl_registry_entry *entries,
                               size_t count, sl_error *error);
bool sl_parts_each(sl_load *load, sl_parts_function *function, sl_registry_entry *entries,
                   size_t count, sl_error *error);
/* Was the registered layout of a source, if any, made for the shards that the cluster has now? */
bool sl_parts_layout_holds(const sl_load *load, const sl_registry_entry *entry, sl_error *error);
/* Sets the entry's layout to the one that this load has computed for a source. */
void sl_parts_propose(const sl_load *load, size_t index, sl_registry_entry *entry);
/* With --only-shards: selects the blocks that are laid out for these shards. */
void sl_parts_choose_blocks(sl_load *load);
/* Does this loader fill the range? Always true without --only-shards. */
bool sl_parts_has_range(const sl_load *load, const sl_range *range);
/* The number of documents that this loader has stored for a part of a source; with part 0, for all
 * of the source. */
uint64_t sl_parts_documents(const sl_load *load, size_t index, uint32_t part);
/* Called after this loader's parts have been registered as loaded. Counts and registers the sources
 * that are complete now, and logs which parts are missing. */
bool sl_parts_end(sl_load *load, sl_error *error);

/* reject_limit.c */

#define SL_REJECT_LIMIT_ROOM 32

/* The limit of --max-rejects as text: "10" or "2.5%". Returns out. */
char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]);
/* Are there more rejects than --max-rejects allows? Sets `error` if so. A percentage applies from
 * 100,000 records on; at the end of the load (`at_end`), to any number of records. Any thread. */
bool sl_rejects_pass_limit(sl_load *load, bool at_end, sl_error *error);
/* At the end of a load: was every record rejected (of at least one)? Sets `error` if so, which
 * quotes the `reasons`. Always false for a shared load. */
bool sl_rejects_are_all(sl_load *load, const char *reasons, sl_error *error);

/* work_directory.c: creates load->work_directory, if the load has one, and opens the log file in
 * it. */
bool sl_work_directory_make(sl_load *load, sl_error *error);
/* Checks that load->report and load->html can be written. */
bool sl_report_check(sl_load *load, sl_error *error);

/* ranges.c: an existing unsharded collection is sharded only if the user asked for it; otherwise
 * load->target.shard_key becomes NULL. Changes nothing on the cluster. */
bool sl_ranges_decide_sharding(sl_load *load, sl_error *error);
/* Divides the ids of the sources into pieces, and computes load->ranges. */
bool sl_ranges_lay_out(sl_load *load, sl_error *error);

/* worker.c: allocates `counters`, `parsed` and `shard_documents`, all zero. False without
 * memory. */
bool sl_workers_create_counters(sl_load *load);
/* Starts the threads and returns when all have ended. `tick` is called about twenty times
 * a second meanwhile. */
bool sl_workers_run(sl_load *load, void (*tick)(void *context), void *context, sl_error *error);

/* A thread of a load or a verification calls this at its end. */
void sl_worker_ended(sl_load *load);
/* Waits for 50 ms, or until all threads have ended. False when all have ended. */
bool sl_workers_working(sl_load *load);
/* Starts load->threads threads; each runs `work_of` on one of `items`, which are `item_bytes`
 * apart, and calls sl_worker_ended. Returns when all have ended; `tick` as for sl_workers_run. */
bool sl_threads_run(sl_load *load, void *(*work_of)(void *item), void *items, size_t item_bytes,
                    void (*tick)(void *context), void *context, sl_error *error);

/* delivery.c: the bytes that one batch has room for. */
size_t sl_delivery_room(const sl_load *load);

/* Initialises the locks, conditions and pace of a load that is all zero but for its config. */
void sl_load_init_locks(sl_load *load);
void sl_load_destroy_locks(sl_load *load);

/* target.c */

/* Sets load->target from the config, once connected. */
void sl_target_configure(sl_load *load);
/* Before the target is prepared: finds out whether inserts can name the collection's UUID. If they
 * cannot, waits until no insert of a killed loader is running. */
bool sl_target_begin(sl_load *load, sl_error *error);
/* On the direct route: checks that each shard has the collection with the target's UUID, or has no
 * collection of that name. */
bool sl_target_check_shards(sl_load *load, sl_error *error);
/* Checks that the collection is still the one that was prepared, on the shards too. */
bool sl_target_is_ours(sl_load *load, sl_error *error);

/* route.c */

/* With --route direct: connects to the shards, before anything is created or changed. */
bool sl_route_open(sl_load *load, sl_error *error);
/* Reads load->map, again if it has been read before. */
bool sl_route_read_map(sl_load *load, sl_error *error);
/* The shard that owns all ids of the block with `first_id`; load->shards if several shards own
 * them. Only for a collection sharded by _id. */
uint32_t sl_route_of_block(const sl_load *load, int64_t first_id);
/* On the direct route: are all documents acknowledged before this call on the shards that own them?
 * `*confirmed` false: that cannot be checked now; `error` has the reason. False: they are not. */
bool sl_route_confirm(sl_load *load, bool *confirmed, sl_error *error);

/* verify_counts.c */
bool sl_verify_counts(sl_load *load, sl_error *error);

#endif
