/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the load floor: the state of one load, which its modules share.
 *
 * What several threads touch is either atomic, or belongs to one module that locks it itself
 * (rejects.c, the BSON file in sink.c), or is written before the workers start and after they have
 * ended only. */
#ifndef SHARDLOAD_ENGINE_H
#define SHARDLOAD_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include <shardload/cluster.h>
#include <shardload/document_id.h>
#include <shardload/histogram.h>
#include <shardload/load.h>
#include <shardload/run_record.h>
#include <shardload/source.h>

#include "journal.h"
#include "pace.h"
#include "rate_limit.h"
#include "rejects.h"

/* What a worker is doing; also what it spent its time on. */
typedef enum sl_stage {
    STAGE_READING,
    STAGE_INFLATING,
    STAGE_PARSING,
    STAGE_PACING, /* waiting for --rate-limit */
    STAGE_SENDING,
    STAGES,
} sl_stage;

extern const char *const sl_stage_names[STAGES];

/* ---- sources.c: what is known of each source ---- */

typedef struct sl_load_source {
    const sl_format *format;
    sl_dialect *dialect;  /* of an archive, that of its first member */
    struct sl_member *members; /* of an archive: those that are being read; members.c */
    char fingerprint[SL_FINGERPRINT_ROOM];
    uint64_t device, inode; /* of a regular file, also as standard input; 0 otherwise */
    uint32_t number;
    bool skipped;
    uint64_t *done; /* blocks recovered from the journal of an earlier run; resume.c */
    size_t done_words;
    uint64_t done_end; /* where the text of the last of them ends */
    bool compare;      /* a resume reads them again: a pipe, or a file that may have changed */
    _Atomic uint64_t accepted; /* documents inserted or already there */
    _Atomic uint64_t taken;    /* documents refused because another one is stored under their _id */
    uint32_t pieces, leading;  /* how its ids go to shards; see sl_load_shard_of */
    uint32_t parts_loaded;     /* of a load that is shared: how many are, this loader's included */
    uint64_t parts_accepted;   /* in all of them, with those that are in the place of one */
} sl_load_source;

/* ---- worker.c: counters, written by one worker, read by the progress line ---- */

typedef struct sl_worker_counters {
    _Alignas(64) _Atomic uint64_t text_bytes;
    _Atomic uint64_t records;
    _Atomic uint64_t inserted;
    _Atomic uint64_t already_there;
    _Atomic uint64_t parser_rejects;
    _Atomic uint64_t server_rejects;
    _Atomic uint64_t bson_bytes;
    _Atomic uint64_t batches;
    _Atomic uint64_t retries;
    _Atomic int64_t answered_ns; /* when the last batch was acknowledged, by sl_clock_ns */
    _Atomic int64_t stage_ns[STAGES];
} sl_worker_counters;

/* ---- batch.c: documents on their way to one shard ---- */

/* What has become of the records of one block so far; see blocks.c. Belongs to one worker. */
typedef struct sl_block_account {
    struct sl_block_account *next, **link; /* link: what points to it, while it is open */
    sl_source_block block;  /* whose text is gone once it is parsed */
    char *member;           /* what block.entry points to, with its memory */
    size_t member_room;
    int64_t first_id;       /* any id in the block's MiB */
    uint64_t check;         /* as in the journal */
    sl_parse_counts counts; /* known once it is parsed */
    bool has_text; /* made-up records have none */
    bool parsed;
    uint32_t waiting; /* documents whose fate is not known: they are in batches */
    uint32_t inserted, already_there, refused;
    uint32_t taken; /* of those refused: another document stands under their _id */
    sl_reject_list rejects; /* the parser's and the server's */
} sl_block_account;

/* Which documents of a batch came from which block: segments follow each other in the batch. */
typedef struct sl_batch_segment {
    sl_block_account *account;
    uint32_t documents;
} sl_batch_segment;

typedef struct sl_batch {
    uint32_t shard; /* load->shards where only the router knows */
    uint32_t documents;
    uint8_t *bytes; /* `used` bytes of `room`, then SL_SLACK more */
    size_t used;
    size_t room;
    int64_t since; /* by sl_clock_ns, when the first document came into it */
    sl_batch_segment *segments;
    size_t segment_count;
    size_t segment_room;
} sl_batch;

bool sl_batch_init(sl_batch *batch, uint32_t shard, size_t room);
void sl_batch_clear(sl_batch *batch);
void sl_batch_empty(sl_batch *batch);
/* Documents added from now on come from this block. */
bool sl_batch_begin_segment(sl_batch *batch, sl_block_account *account);
/* Makes the batch hold at least `need` bytes. */
bool sl_batch_make_room(sl_batch *batch, size_t need);
/* Copies a document of the block to the end. Grows the batch when it does not fit: the caller sends
 * full ones before. */
bool sl_batch_add(sl_batch *batch, sl_block_account *account, const uint8_t *document,
                  size_t length);

/* ---- others.c: what is not loaded ---- */

typedef struct sl_other {
    size_t source; /* index into the set */
    char *entry;   /* of that archive; NULL: the file itself */
    char *reason;
} sl_other;

typedef struct sl_others {
    pthread_mutex_t lock; /* guards what follows while workers run */
    uint64_t count;
    sl_other *kept; /* the first of them */
    size_t kept_count;
} sl_others;

/* ---- resume.c: what earlier runs of a load have done ---- */

typedef struct sl_carried {
    uint64_t blocks, text_bytes, inserted, already_there, refused;
    sl_parse_counts counts;
} sl_carried;

/* ---- reject_limit.c: loads that end because of their rejects ---- */

typedef enum sl_ending {
    SL_ENDED_OTHERWISE,
    SL_ENDED_BY_REJECT_LIMIT, /* --max-rejects */
    SL_ENDED_ALL_REJECTED,
} sl_ending;

/* ---- outside.c: documents of no source that the registry knows ---- */

typedef struct sl_outside {
    bool known;
    uint64_t numbers, others; /* by the type of their _id */
    size_t sources;           /* that the registry knew then */
} sl_outside;

/* ---- the load ---- */

typedef struct sl_load {
    const sl_load_config *config;
    sl_run_record *record;
    char work_directory[512]; /* "" when there is none */
    const char *report;       /* the config's, unless nothing can be written there */
    const char *html;         /* the same */
    double load_seconds;      /* how long the workers ran, by the clock on the wall */

    sl_source_set *set;
    sl_load_source *sources; /* one per source of the set */
    sl_plan *plans[8];    /* one per row of sl_formats; NULL where not used */
    size_t active;        /* sources that are not skipped */
    sl_others others;

    sl_connection *connection; /* NULL without a cluster */
    sl_target target;
    sl_topology *topology;
    uint32_t parts;   /* that the load is shared in: of --part, or shards; 0: not, or not yet */
    bool *ours;       /* with --only-shards, once it is connected: is it one of these, per shard */
    bool target_gone; /* there was no such collection, whatever the registry says */
    bool created;     /* this load has created the collection */
    sl_outside outside, outside_now; /* before the first document was sent; at the end */
    sl_registry *registry;
    char balancer_before[16]; /* "full", "off", or "" when there is none */
    bool balancer_restored; /* or never stopped */
    char holder[25];        /* the load's id as a holder of the balancer; "" without a journal */
    sl_shard_map *map;
    sl_direct *direct;   /* NULL: through the routers */
    bool doubted;        /* it was told that the owners could not be confirmed */
    uint32_t shards; /* at least 1 */
    bool by_range;   /* sharded by {_id: 1}: batches are kept apart by shard */

    sl_range *ranges; /* of _id, sorted; what is placed and verified */
    size_t range_count;
    size_t placing_steps;   /* splits and moves that it took */
    double placing_seconds; /* and how long */
    _Atomic uint64_t *accepted;       /* per range: documents it must hold: inserted, already there,
                                         or others in their places */
    _Atomic uint64_t *shard_documents; /* per shard: documents sent to it, as far as known */

    const struct sl_destination *sink;
    sl_reject_files *rejects;

    sl_journal *journal; /* NULL unless into a cluster */
    struct sl_past *past; /* what it held at the start; resume.c */
    bool resumed;         /* documents may have been sent by an earlier run */
    bool compared;        /* a source's text may be another one than in that run */
    bool uncommitted;     /* entries were collected, and could not be committed yet */
    sl_carried carried;

    _Atomic sl_ending ended_by;
    uint64_t undelivered; /* records parsed by workers that have ended, whose outcome is not known */

    unsigned threads;             /* workers, of whom `pace` says which are at work */
    sl_pace pace;
    sl_rate_limit rate_limit; /* begins with the workers */
    sl_worker_counters *counters; /* one per worker */
    sl_histogram *latencies;   /* one per worker: nanoseconds per batch; read after the end */
    sl_parse_counts *parsed;   /* one per worker; read after the end */

    pthread_mutex_t working_lock;
    pthread_cond_t all_ended; /* by the monotonic clock */
    unsigned working;         /* workers that have not ended; under working_lock */
    _Atomic bool stop;        /* workers end after what they have in hand */
    _Atomic bool begun;       /* something has been made or changed on the cluster */
    pthread_mutex_t members_lock; /* members.c */
    pthread_cond_t members_known;
    bool members_failed; /* under members_lock */
    pthread_mutex_t failure_lock;
    sl_error failure; /* the first one; under failure_lock while workers run */
} sl_load;

/* Keeps the first error and tells all workers to stop. Any thread. */
void sl_load_fail(sl_load *load, const sl_error *error);

/* Tells all workers to stop after what they have in hand. Any thread. */
void sl_load_stop(sl_load *load);

/* Is the load shared with other loaders? */
static inline bool sl_load_is_shared(const sl_load *load) {
    return load->config->parts > 0 || load->config->only_shards;
}

/* A source's ids are cut into pieces at stripes, rounded up, so that stripe 0 starts one and they
 * differ by one stripe: stripe s is in piece s * pieces / SL_STRIPES. */
static inline uint32_t sl_load_piece_begin(const sl_load_source *source, uint32_t piece) {
    return (SL_STRIPES * piece + source->pieces - 1) / source->pieces;
}

/* The shard that a piece of a source is laid out for. */
static inline uint32_t sl_load_shard_of(const sl_load *load, const sl_load_source *source,
                                        uint32_t piece) {
    return (piece + source->leading) % load->shards;
}

/* The one that a source's block is laid out for, in whose MiB `offset` is. */
static inline uint32_t sl_load_shard_at(const sl_load *load, const sl_load_source *source,
                                        uint64_t offset) {
    uint32_t stripe = sl_reverse_8_bits((uint32_t)(offset >> SL_BLOCK_BITS & 0xFF));
    return sl_load_shard_of(load, source, stripe * source->pieces / SL_STRIPES);
}

/* The index of the range that holds `id`. */
size_t sl_load_range_of(const sl_load *load, int64_t id);

/* resume.c, in the order in which a load calls them. Without a journal they do nothing. */

/* Appends the options that change what documents look like, by the names users give them. */
void sl_resume_format_options(const sl_load_config *config, bson_t *options);
/* Opens the journal; with --resume, finds out whether it is about this load. `*finished`: there is
 * nothing left to do. */
bool sl_resume_open(sl_load *load, bool *finished, sl_error *error);
/* Is the collection of the journal there? Before anything is made or changed. */
bool sl_resume_find_target(sl_load *load, sl_error *error);
/* The target is ready and the sources have their numbers: are they those of the journal? */
bool sl_resume_target(sl_load *load, sl_error *error);
/* Takes over what earlier runs have done, before the first block is read. */
bool sl_resume_carry(sl_load *load, sl_error *error);
/* A hash of a block's text for the journal; 0 for made-up records. Any thread. */
uint64_t sl_resume_check(const sl_source_block *block);
/* Does a block fit to what the journal says of its source: when it is done, is it the same text,
 * and when it is the last one, have all that are done been read? Any thread. */
bool sl_resume_block_fits(const sl_load *load, const sl_source_block *block, sl_error *error);
/* Documents of a block were refused because other ones are stored under their ids: is that no sign
 * of a source whose text has changed since the run that is resumed sent them? Any thread. */
bool sl_resume_taken_fits(const sl_load *load, const sl_source_block *block, sl_error *error);
/* Brings all blocks that are settled into the journal, and it to the disk; on the direct route, when
 * the cluster confirms that they are in their places, or else the next time. By one thread. */
bool sl_resume_commit(sl_load *load, sl_error *error);
/* The same for the last time: waits until they are confirmed. */
bool sl_resume_commit_rest(sl_load *load, sl_error *error);
/* All is loaded and verified, and run.json says so. */
bool sl_resume_finish(sl_load *load, sl_error *error);
void sl_resume_close(sl_load *load);

/* sources.c */
bool sl_sources_open(sl_load *load, sl_error *error);
void sl_sources_close(sl_load *load);
const sl_plan *sl_sources_plan_of(const sl_load *load, const sl_load_source *source);

/* Are the records made up? Then there is no text, and sources have records, not bytes. */
static inline bool sl_load_made_up(const sl_load *load) {
    return sl_source_set_at(load->set, 0)->kind == SL_SOURCE_GENERATED;
}

/* misread.c; errors are of class SL_EXIT_SOURCE. */

/* Are the line ends of a source of any format those that are read? The error does not name it. */
bool sl_misread_check_text(sl_text head, bool whole, sl_error *error);
/* Has a source whose line ends are not those that are read bytes of no text? Then it is passed over
 * like other files that hold none, where that is allowed. */
bool sl_misread_is_binary(sl_text head);
/* Sets the error for a reject of which the parser says that what follows would be misread. Returns
 * false. Any thread. */
bool sl_misread_error(const sl_load *load, const sl_source_block *block, const sl_reject *reject,
                      sl_error *error);

/* members.c: how the text of a block is written; *dialect NULL when it is none of the load's. Any
 * thread. Valid until sl_sources_done_with, which is called once for each block. */
bool sl_sources_dialect(sl_load *load, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error);
void sl_sources_done_with(sl_load *load, const sl_source_block *block);
void sl_members_clear(const sl_load_source *source);

/* others.c. A file (`entry` NULL) or an entry of an archive is not loaded; shown and noted. Both texts
 * are safe to print. Any thread. */
void sl_others_add(sl_load *load, size_t source, const char *entry, const char *reason);
/* False, SL_EXIT_SOURCE, when there are some and --skip-other is not given. */
bool sl_others_check(sl_load *load, sl_error *error);
/* Appends the section "notLoaded", if there are some. */
void sl_others_record(const sl_load *load, bson_t *record);
void sl_others_init(sl_others *others);
void sl_others_clear(sl_others *others);

/* numbers.c */
bool sl_sources_number_offline(sl_load *load, sl_error *error);
/* Refuses, before anything is changed, what has been loaded before (unless --again). */
bool sl_sources_number_by_registry(sl_load *load, sl_error *error);
/* Refuses, before anything is made, what the registry of a collection that is gone calls loaded
 * (unless --again); of other sources that it knows there is a warning. */
bool sl_sources_look_for_target(sl_load *load, sl_error *error);
/* Takes the numbers that a load would give, changing nothing. What that load would refuse, because it
 * has been loaded before, goes into `refusal`. */
bool sl_sources_number_as_next(sl_load *load, sl_error *refusal, sl_error *error);
bool sl_sources_mark_loaded(sl_load *load, sl_error *error);
/* Of a load in parts: marks the sources of which no part is missing. */
bool sl_sources_mark_whole(sl_load *load, sl_error *error);
/* The layout of each source: this loader's, or another one's that was there first. */
bool sl_sources_agree_on_layout(sl_load *load, sl_error *error);
/* Takes the numbers that the sources have, changing nothing; one that was never loaded is an error. */
bool sl_sources_number_as_loaded(sl_load *load, sl_error *error);

/* parts.c: a load that is shared by several loaders (--part K/N, --only-shards). Without that these
 * do nothing, unless it says otherwise. */

/* With --part the blocks of this loader's part are wanted only. */
bool sl_parts_begin(sl_load *load, sl_error *error);
/* Which shards --only-shards means. */
bool sl_parts_find_shards(sl_load *load, sl_error *error);
/* Calls the function for each part (from 1) of this loader's, of which the registry then speaks;
 * once, with part 0, where the load is not shared. */
typedef bool sl_parts_function(sl_load *load, uint32_t part, sl_registry_entry *entries,
                               size_t count, sl_error *error);
bool sl_parts_each(sl_load *load, sl_parts_function *function, sl_registry_entry *entries,
                   size_t count, sl_error *error);
/* Is the layout that the registry has of a source, if any, about the shards that there are? */
bool sl_parts_layout_holds(const sl_load *load, const sl_registry_entry *entry, sl_error *error);
/* Sets the entry's layout to the one that this load has made of a source. */
void sl_parts_propose(const sl_load *load, size_t index, sl_registry_entry *entry);
/* With --only-shards the blocks that are laid out for these shards are wanted only. */
void sl_parts_choose_blocks(sl_load *load);
/* Is it a range that this loader fills? Also true without --only-shards. */
bool sl_parts_has_range(const sl_load *load, const sl_range *range);
/* The documents that this loader has given to a part of a source, or (part 0) to all of it. */
uint64_t sl_parts_documents(const sl_load *load, size_t index, uint32_t part);
/* Says what is done, once this part is registered as loaded; and where all parts are, counts them
 * together. */
bool sl_parts_end(sl_load *load, sl_error *error);

/* reject_limit.c */

#define SL_REJECT_LIMIT_ROOM 32

/* The value of --max-rejects, "10" or "2.5%", where there is a limit. */
char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]);
/* Are there more rejects than --max-rejects allows? Then `error` says so. A limit as a share holds
 * from 100,000 records on, and `at_end` for any number. Any thread. */
bool sl_rejects_pass_limit(sl_load *load, bool at_end, sl_error *error);
/* All blocks are done: was every record rejected, and was there one? Then `error` says so, with
 * the `reasons`. Never of a load that is shared. */
bool sl_rejects_are_all(sl_load *load, const char *reasons, sl_error *error);

/* work_directory.c: makes load->work_directory, where one is wanted, and opens the log in it. */
bool sl_work_directory_make(sl_load *load, sl_error *error);
/* Can the report be written? */
bool sl_report_check(sl_load *load, sl_error *error);

/* ranges.c: a collection that exists unsharded is sharded only where the user asked for it; else it
 * loses its shard key in load->target. Changes nothing on the cluster. */
bool sl_ranges_decide_sharding(sl_load *load, sl_error *error);
/* Gives sources their pieces, and makes load->ranges of them. */
bool sl_ranges_lay_out(sl_load *load, sl_error *error);

/* worker.c: starts the threads and returns when all have ended. `tick` is called about twenty times
 * a second meanwhile. */
bool sl_workers_run(sl_load *load, void (*tick)(void *context), void *context, sl_error *error);

/* For the threads of a load or a verification, whose number is in load->working: one has ended. */
void sl_worker_ended(sl_load *load);
/* Waits for a twentieth of a second, or until all have ended; then returns false. */
bool sl_workers_working(sl_load *load);
/* Runs `work_of` in a thread for each of the load's items, which calls sl_worker_ended at its end,
 * and returns when all have ended; `tick` as below. */
bool sl_threads_run(sl_load *load, void *(*work_of)(void *item), void *items, size_t item_bytes,
                    void (*tick)(void *context), void *context, sl_error *error);

/* delivery.c: how many bytes one batch holds. */
size_t sl_delivery_room(const sl_load *load);

/* The locks and conditions of a load, which begins as all zero but for its config; and its pace. */
void sl_load_init_locks(sl_load *load);
void sl_load_destroy_locks(sl_load *load);

/* target.c */

/* Before the target is prepared: finds out how it can be named, and where only by name waits until
 * no insert of a loader that was killed is running. */
bool sl_target_begin(sl_load *load, sl_error *error);
/* On the direct route: has each shard the collection with the target's UUID, or none? */
bool sl_target_check_shards(sl_load *load, sl_error *error);
/* Is the collection of that name still the one that was prepared, on the shards too? */
bool sl_target_is_ours(sl_load *load, sl_error *error);

/* route.c */

/* With --route direct: connects to the shards, before anything is made or changed. */
bool sl_route_open(sl_load *load, sl_error *error);
/* Reads load->map, again if it has been read before. */
bool sl_route_read_map(sl_load *load, sl_error *error);
/* The shard that owns all ids of a block, `first_id` being one of them; load->shards where several
 * do. For a map by id. */
uint32_t sl_route_of_block(const sl_load *load, int64_t first_id);
/* Is everything that was acknowledged before this call where it belongs? `*confirmed` false: it
 * cannot be told now, and `error` says why. False: it is not. */
bool sl_route_confirm(sl_load *load, bool *confirmed, sl_error *error);

/* verify_counts.c */
bool sl_verify_counts(sl_load *load, sl_error *error);

#endif
