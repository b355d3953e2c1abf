/* SPDX-License-Identifier: Apache-2.0 */
/* A load, from sources to a verified collection, and the inspection of sources without a server. */
#ifndef SHARDLOAD_LOAD_H
#define SHARDLOAD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include <shardload/error.h>
#include <shardload/format.h>

typedef enum sl_sink_kind {
    SL_SINK_CLUSTER,
    SL_SINK_NULL, /* parse and encode, throw away: measures the client alone */
    SL_SINK_BSON, /* a BSON dump that other tools read */
} sl_sink_kind;

typedef enum sl_progress_kind {
    SL_PROGRESS_AUTO, /* a terminal's line on a terminal, else plain lines */
    SL_PROGRESS_TERMINAL,
    SL_PROGRESS_PLAIN,
    SL_PROGRESS_JSON,
    SL_PROGRESS_NONE,
} sl_progress_kind;

/* Everything a load needs to know. All borrowed; NULL and 0 where not given. */
typedef struct sl_load_config {
    const char *program_version;
    const bson_t *options; /* the effective configuration, for the record; no secrets */

    const char *const *paths;
    size_t path_count;
    const char *include;      /* shell pattern for names of files found in folders */
    bool skip_other;          /* files and archive entries that are not loaded are no failure */
    const char *format;       /* name, or "auto" */
    sl_format_options format_options;

    sl_sink_kind sink;
    const char *sink_path;    /* for SL_SINK_BSON */
    const char *uri;
    const char *database;
    const char *collection;
    bool drop;
    bool again;               /* load sources that have been loaded before */
    bool another_pipe;        /* load a pipe although that of another one has not been completed */
    const char *compressor;
    bool clustered;
    const bson_t *shard_key;  /* NULL: do not shard */
    bool shard_key_given;     /* by the user; else it is the default */
    bool shard_existing;      /* shard a collection that exists and is not sharded */
    const bson_t *const *indexes;
    size_t index_count;
    const char *write_concern; /* "majority" or a number of members */
    unsigned part, parts;      /* of the blocks, this loader takes part 1 to `parts`; 0: all */
    const char *only_shards;   /* instead: the blocks of these shards, "a,b"; NULL: of all */
    bool direct;               /* batches go straight to the primaries of their shards */

    unsigned timeout_seconds; /* that a batch may wait for its answer */
    unsigned retry_seconds;   /* that a batch is tried again for */

    unsigned threads;         /* workers; with threads_most, those that begin */
    uint32_t batch_documents; /* per insert; with adapt_batches, in the beginning */
    uint64_t rate_limit;      /* documents per second over all threads; 0: no limit */
    size_t batch_bytes;
    /* What changes while the load runs, to what is fastest. */
    unsigned threads_most; /* so many workers may be at work at once; 0: `threads` all the time */
    bool adapt_batches;

    const char *work_directory;  /* NULL: a new one with a name of its own */
    bool resume;                 /* complete the load whose journal is in work_directory */
    const char *report;          /* also write the run record here */
    const char *html;            /* and its pictures here */
    uint64_t rejects_max;        /* UINT64_MAX: no limit */
    double rejects_max_share;    /* of all records, 0..1; 1: no limit */
    bool verify;
    bool allow_other_writers; /* documents of no source may come and go while it loads */
    sl_progress_kind progress;

    /* Which share of the sources' blocks is loaded, above 0; 1 is all of them. They are spread
     * evenly over each source, and over the ranges of a collection sharded by _id. */
    double sample;
    /* Another command runs this load: only warnings and errors are shown, and Ctrl-C ends it, not
     * the process. */
    bool part_of_trial;
    /* The command that completes a load which ended early, for the hint; NULL: the same one. */
    const char *completed_by;
    bson_t *account; /* the run record is copied into this one, which the caller has initialised,
                        whatever the exit code */
} sl_load_config;

/* How many bytes one batch holds where there are so many shards, whose batches share a worker's
 * room; a document that is larger makes its batch larger. */
size_t sl_load_batch_room(const sl_load_config *config, uint32_t shards);

/* Runs the load and prints what it does. Returns the exit code; problems have been reported. */
sl_exit sl_load_run(const sl_load_config *config);

/* Compares sources with what the cluster holds of them, changing nothing; `content`: document by
 * document, and else by counts. Shows the first `problems_shown` problems. Uses what the config says
 * of sources, target, threads and output; a work directory only where one is named. */
sl_exit sl_verify_run(const sl_load_config *config, bool content, uint64_t problems_shown);

/* Prints format, dialect, the first `documents` documents, rejects and estimates of each source.
 * Uses the config's sources and format only. */
sl_exit sl_inspect_run(const sl_load_config *config, unsigned documents);

#endif
