/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a load. */
#ifndef SHARDLOAD_LOAD_CONFIG_H
#define SHARDLOAD_LOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "cluster/connection.h"
#include "format/format.h"
#include "util/error.h"

typedef enum sl_sink_kind {
    SL_SINK_CLUSTER,
    SL_SINK_NULL,    /* documents are encoded and discarded, to measure the client alone */
    SL_SINK_BSON,    /* a BSON dump, readable by other tools */
    SL_SINK_DIVIDED, /* records of --embed, divided by their join key (load/embedding.h) */
} sl_sink_kind;

/* row(ID, value of --progress). AUTO is TERMINAL on a terminal, else PLAIN. */
#define SL_PROGRESS_KINDS(row)                                                                     \
    row(AUTO, "auto") row(TERMINAL, "tty") row(PLAIN, "plain") row(JSON, "json") row(NONE, "none")

#define SL_PROGRESS_ID(id, word) SL_PROGRESS_##id,
typedef enum sl_progress_kind { SL_PROGRESS_KINDS(SL_PROGRESS_ID) } sl_progress_kind;
#undef SL_PROGRESS_ID

/* The longest name of the field of --embed, in bytes. */
#define SL_EMBED_FIELD_MAX 120

/* The parameters of a load. All pointers are borrowed; NULL and 0 where not given. */
typedef struct sl_load_config {
    const char *program_version;
    /* The fields of the record about the options (sl_options_append). */
    const bson_t *options;
    /* The options that change documents, as texts under their names on the command line; defaults
     * are left out. */
    const bson_t *document_options;

    const char *const *paths;
    size_t path_count;
    const char *include;          /* shell pattern for names of files found in folders */
    const struct sl_sql_map *map; /* of an SQL dump, whose tables have been listed */
    bool skip_other;    /* files and archive entries that cannot be loaded do not fail the load */
    const char *format; /* name, or "auto" */
    sl_format_options format_options;

    sl_sink_kind sink;
    const char *sink_path;      /* for SL_SINK_BSON */
    struct sl_divided *divided; /* for SL_SINK_DIVIDED */
    const bson_t *types;        /* of the columns, by sl_types_append; NULL: they are inferred */
    struct sl_id_search
        *search;             /* for SL_SINK_NULL: its documents are searched (verify_counts.h) */
    const char *embed_field; /* --embed: the field of the array; NULL: nothing is embedded */
    const char *embed_path;  /* the source of its records */
    const char *embed_on;    /* --on */
    sl_format_options embed_format_options; /* of that source */
    const char *uri;
    /* The connection of a command that runs several loads; NULL: the load opens its own. Borrowed.
     * The load sets the retry check of the connection, and no other thread uses it meanwhile. */
    struct sl_connection *connection;
    bool equal_is_stored; /* a stored document with the same _id and bytes is not a reject, also if
                             another program has stored it */
    const char *database;
    const char *collection;
    bool unregistered; /* verify: the sources need not be in the registry; for documents with their
                          own _ids */
    const char *registry; /* the collection of the registry of sources; NULL:
                             "<collection>.sources" */
    bool drop;
    bool again;        /* load sources that have been loaded before */
    bool another_pipe; /* load a pipe although the load of another pipe is incomplete */
    const char *compressor;
    bool clustered;
    const bson_t *shard_key; /* NULL: do not shard */
    bool shard_key_unique;
    bool shard_key_given;         /* by the user; otherwise shard_key is the default */
    bool shard_existing;          /* shard a collection that exists and is not sharded */
    const bson_t *const *indexes; /* {key, options}; the unique ones are built before the load */
    size_t index_count;
    const bson_t *later_indexes; /* an array of those that restore builds after the load; or NULL */
    const char *write_concern;   /* "majority" or a number of members */
    unsigned part, parts;        /* load part 1 to `parts` of the blocks; 0: all blocks */
    const char *only_shards;     /* load the blocks of these shards, "a,b"; NULL: of all */
    bool direct;                 /* batches are sent directly to the primaries of their shards */

    unsigned timeout_seconds; /* limit for the answer to a batch */
    unsigned wait_seconds;    /* how long to wait for a server at the start */
    unsigned retry_seconds;   /* limit for repeating a batch after failures */

    unsigned threads;                   /* workers; with threads_most, at the start */
    uint32_t batch_documents;           /* per insert; with adapt_batches, at the start */
    uint64_t rate_limit;                /* documents per second over all threads; 0: no limit */
    struct sl_rate_limit *shared_limit; /* of several loads, instead of rate_limit; or NULL */
    size_t batch_bytes;
    /* Settings that adapt while the load runs. */
    unsigned threads_most; /* maximum of active workers; 0: always `threads` */
    bool adapt_batches;    /* the batch size adapts */

    const char *work_directory; /* NULL: a new one, named after target and time */
    bool resume;                /* complete the load whose journal is in work_directory */
    bool resume_or_begin;       /* with `resume`: begin if it was killed before it had begun */
    const char *report;         /* path of a second copy of the run record */
    const char *html;           /* path of an HTML report */
    const char *metrics;        /* path of a file of metrics */
    struct sl_status *above;    /* the status of a command that runs several loads; or NULL */
    size_t above_item;          /* the number of this load in `above` (load/status.h) */
    uint64_t rejects_max;       /* UINT64_MAX: no limit */
    double rejects_max_share;   /* of all records, 0..1; 1: no limit */
    bool rejects_auto;          /* the bytes of rejects are limited; see sl_rejects_limit_bytes */
    bool verify;
    bool allow_other_writers; /* other programs may insert and remove unregistered documents */
    sl_progress_kind progress;

    /* The share of the sources' blocks that is loaded, above 0; 1 loads all. The blocks are spread
     * evenly over each source, and over the ranges of a collection sharded by _id. */
    double sample;
    /* Another command runs this load: only warnings and errors are logged, and Ctrl-C ends the
     * load, not the process. */
    bool part_of_trial;
    /* The command that completes a load that ended early, for the message; NULL: the same
     * command. */
    const char *completed_by;
    /* The command, without sources, that loads corrected records like this load; NULL: it is not
     * shown. Quoted for a shell, without passwords. */
    const char *corrected_by;
    const char *resumed_in; /* the work directory for that command; NULL: that of the load */
    bson_t *run_record; /* receives a copy of the run record, whatever the exit code; initialised by
                           the caller, or NULL */
    bool *no_resume; /* set if the load failed, and --resume with the same options and sources would
                        fail again; or NULL */
    bool *how_logged;        /* set when the load has logged how it is completed; or NULL */
    unsigned *loaded_before; /* counts the loads of a command that are refused because their sources
                                are stored; only the first one logs that; or NULL */
} sl_load_config;

/* Does a command write, or predict a command that does? Then it must connect to the routers of a
 * sharded cluster, not to its servers. A command that examines reports by itself what it may not
 * read. */
typedef enum sl_access { SL_FOR_READING, SL_FOR_WRITING, SL_FOR_EXAMINING } sl_access;

/* Opens the connection to the configured cluster (sl_connection_open); NULL on failure. */
sl_connection *sl_load_open_connection(const sl_load_config *config, sl_access access,
                                       const char *application, unsigned pool_size,
                                       sl_error *error);

/* The size of one batch in bytes: a worker's batch_bytes are shared by the batches of `shards`
 * shards. A larger document enlarges its batch. */
size_t sl_load_batch_room(const sl_load_config *config, uint32_t shards);

/* How the load writes documents. */
static inline const sl_mode_row *sl_load_mode(const sl_load_config *config) {
    return &sl_modes[config->format_options.mode];
}

/* Is the load shared with other loaders? */
static inline bool sl_load_is_shared(const sl_load_config *config) {
    return config->parts > 0 || config->only_shards;
}

/* Is it a name under which a load may store documents? */
bool sl_is_collection_name(const char *name);

/* Refuses (SL_EXIT_USAGE) a --work-dir that holds files and is no work directory of this program: a
 * command would replace those with the names of its own. A folder that does not exist, or is empty,
 * is fine, and so is one that cannot be read: creating files there fails. Nothing is written. */
bool sl_outputs_check_folder(const char *directory, sl_error *error);

#endif
