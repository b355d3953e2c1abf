/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload tune` from start to end: connects, drops leftovers of a killed tuning, chooses the
 * sample, searches, compares the storage of compressors, reports and recommends.
 *
 * All trials use one temporary collection, which each trial creates and drops. It is also dropped
 * after an error, and after a second Ctrl-C by the signal thread. If the process is killed, the
 * collection remains until the next tuning of the same collection. */
#include "tune_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/uri.h"
#include "format/ycsb.h"
#include "report/json.h"
#include "report/lookup.h"
#include "report/report.h"
#include "report/run_record.h"
#include "source/source.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/document_id.h"
#include "util/estimate.h"
#include "util/interrupt.h"
#include "util/load_counts.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

/* ---- one trial ----
 *
 * A single trial: makes the configuration of a load from a setting, runs it, and reads its figures
 * from its record. */

typedef enum tune_purpose {
    SL_TUNE_FOR_RATE,
    SL_TUNE_FOR_STORAGE, /* builds indexes, and does not drop the collection */
    SL_TUNE_FOR_PROBE,   /* tests whether the setting works */
} tune_purpose;

/* The figures of one load. */
typedef struct tune_load {
    uint64_t documents;
    uint64_t text_bytes;
    uint64_t bson_bytes;
    double seconds;       /* of the load phase */
    double total_seconds; /* of all phases, in seconds */
    double p50, p99;      /* of the batches, in milliseconds */
    double lag;           /* of the secondaries at the end, in seconds; NAN: unknown or none */
    /* Of all sources of the load that were not left out: */
    bool splittable;      /* as in sl_tune */
    double source_text;   /* bytes of text if `splittable`; else stored bytes */
    double source_blocks; /* minimum number of blocks */
} tune_load;

/* The names of the dimensions, and the types of their values in tune.json. */
static const struct {
    const char *option;
    const char *key;
    enum { NUMBER, TRUTH, WORD } kind;
} names[SL_TUNE_DIMENSIONS] = {
    [SL_TUNE_THREADS] = {"threads", "threads", NUMBER},
    [SL_TUNE_BATCH_SIZE] = {"batch-size", "batchSize", NUMBER},
    [SL_TUNE_COMPRESSOR] = {"compressor", "compressor", WORD},
    [SL_TUNE_CLUSTERED] = {"clustered", "clustered", TRUTH},
    [SL_TUNE_WRITE_CONCERN] = {"write-concern", "writeConcern", WORD},
    [SL_TUNE_ROUTE] = {"route", "route", WORD},
    [SL_TUNE_WIRE_COMPRESSION] = {"wire-compression", "wireCompression", WORD},
};

const char *sl_tune_option(sl_tune_dimension dimension) {
    return names[dimension].option;
}

const char *sl_tune_key(sl_tune_dimension dimension) {
    return names[dimension].key;
}

static const char *value_at(const sl_tune *tune, const size_t *at, sl_tune_dimension dimension) {
    return tune->config->values[dimension].items[at[dimension]];
}

size_t sl_tune_cell(const sl_tune *tune, const size_t *at) {
    size_t cell = 0;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        cell = cell * tune->dimensions[d].count + at[d];
    return cell;
}

const char *sl_tune_value(const sl_tune *tune, size_t cell, sl_tune_dimension dimension) {
    return value_at(tune, tune->search.cells[cell].at, dimension);
}

void sl_tune_append_value(bson_t *document, const char *key, sl_tune_dimension dimension,
                          const char *value) {
    if (names[dimension].kind == NUMBER)
        bson_append_int64(document, key, -1, strtoll(value, NULL, 10));
    else if (names[dimension].kind == TRUTH)
        bson_append_bool(document, key, -1, strcmp(value, "true") == 0);
    else if (*value)
        bson_append_utf8(document, key, -1, value, -1);
    else
        bson_append_null(document, key, -1); /* the default of the server or connection string */
}

void sl_tune_append_setting(const sl_tune *tune, const size_t *at, bson_t *document) {
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        sl_tune_append_value(document, names[d].key, d, value_at(tune, at, d));
}

/* ---- a setting as a configuration ---- */

/* The connection string, with a compressor unless it names one already. Free the result. */
static char *with_wire_compression(const char *uri, const char *compressor) {
    size_t room = strlen(uri) + strlen(compressor) + 32;
    char *made = malloc(room);
    if (!made)
        return NULL;
    const char *hosts = strstr(uri, "://");
    const char *slash = hosts ? strchr(hosts + 3, '/') : NULL;
    const char *query = strchr(uri, '?');
    const char *joint = query ? "&" : slash ? "?" : "/?";
    bool named = sl_uri_named_compressors(uri) != NULL;
    if (*compressor && strcmp(compressor, "none") != 0 && !named)
        snprintf(made, room, "%s%scompressors=%s", uri, joint, compressor);
    else
        snprintf(made, room, "%s", uri);
    return made;
}

/* sl_load_config.options of a trial: the options of the command, with the values of the setting. */
static void make_options(const sl_tune *tune, const size_t *at, bson_t *fields) {
    const bson_t *of_command = tune->config->load->options;
    bson_t given, options;
    bson_init(fields);
    bson_copy_to_excluding_noinit(of_command, fields, "options", NULL);
    BSON_APPEND_DOCUMENT_BEGIN(fields, "options", &options);
    if (sl_look_inside(of_command, "options", &given))
        bson_copy_to_excluding_noinit(&given, &options, names[0].option, names[1].option,
                                      names[2].option, names[3].option, names[4].option,
                                      names[5].option, names[6].option, NULL);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        sl_tune_append_value(&options, names[d].option, d, value_at(tune, at, d));
    bson_append_document_end(fields, &options);
}

static void apply(const sl_tune *tune, const size_t *at, sl_load_config *load) {
    const char *compressor = value_at(tune, at, SL_TUNE_COMPRESSOR);
    load->threads = (unsigned)strtoul(value_at(tune, at, SL_TUNE_THREADS), NULL, 10);
    load->batch_documents = (uint32_t)strtoul(value_at(tune, at, SL_TUNE_BATCH_SIZE), NULL, 10);
    load->compressor = *compressor ? compressor : NULL;
    load->clustered = strcmp(value_at(tune, at, SL_TUNE_CLUSTERED), "true") == 0;
    load->write_concern = value_at(tune, at, SL_TUNE_WRITE_CONCERN);
    load->direct = strcmp(value_at(tune, at, SL_TUNE_ROUTE), "direct") == 0;
}

/* ---- figures of the load ---- */

static void read_sources(const bson_t *record, double record_bytes, tune_load *figures) {
    figures->splittable = true;
    for (sl_walk walk = sl_walk_start(record, "sources"); sl_walk_next(&walk);) {
        if (sl_look_truth(&walk.item, "leftOut") == 1)
            continue;
        double text = sl_look_amount(&walk.item, "records", 0) * record_bytes +
                      sl_look_amount(&walk.item, "storedBytes", 0);
        bool splittable = sl_look_truth(&walk.item, "splittable") == 1;
        figures->splittable = figures->splittable && splittable;
        figures->source_text += text;
        figures->source_blocks += splittable ? fmax(1, ceil(text / (double)SL_BLOCK_BYTES)) : 1;
    }
}

static bool make_work_directory(sl_tune *tune, tune_purpose purpose, char path[600],
                                sl_error *error) {
    bool probe = purpose == SL_TUNE_FOR_PROBE;
    const char *name = probe ? "probe" : "trial";
    unsigned number = probe ? ++tune->probes : ++tune->loads;
    /* A journal of an earlier, interrupted tuning belongs to a collection that no longer exists. */
    snprintf(path, 600, "%s/%s-%03u/" SL_WORK_JOURNAL, tune->work_directory, name, number);
    sl_private_file_remove(path);
    snprintf(path, 600, "%s/%s-%03u", tune->work_directory, name, number);
    return sl_private_folder_make(path, NULL, error);
}

static bool run_load(sl_tune *tune, const sl_load_config *load, const bson_t *account,
                     tune_load *figures) {
    int64_t start = sl_clock_ns();
    sl_exit code = sl_load_run(load);
    figures->total_seconds = sl_seconds_since(start);
    figures->documents = (uint64_t)sl_look_amount(account, "accounting.inserted", 0);
    figures->text_bytes = (uint64_t)sl_look_amount(account, "accounting.textBytes", 0);
    figures->bson_bytes = (uint64_t)sl_look_amount(account, "accounting.bsonBytes", 0);
    figures->seconds = fmax(0, sl_look_phase_seconds(account, "phases", SL_PHASE_LOAD));
    figures->p50 = sl_look_amount(account, "batchMilliseconds.p50", 0);
    figures->p99 = sl_look_amount(account, "batchMilliseconds.p99", 0);
    read_sources(account, sl_ycsb_record_bytes(&tune->config->load->format_options.ycsb), figures);
    if (code == SL_EXIT_INTERRUPTED || sl_interrupt_requested()) {
        tune->interrupted = true;
        return false;
    }
    if (sl_exit_is_complete(code))
        return true;
    tune->load_failed = true;
    return sl_error_set(&tune->failure, code, "the trial in %s failed", load->work_directory);
}

/* Loads a part of the blocks (`share`, 0 to 1) with the setting into the temporary collection. Then
 * drops the collection, except for SL_TUNE_FOR_STORAGE. On false tune->failure or tune->interrupted
 * is set. */
static bool load_once(sl_tune *tune, const size_t *at, double share, tune_purpose purpose,
                      tune_load *figures) {
    bson_t account = BSON_INITIALIZER, options;
    char path[600];
    char *uri = NULL;
    *figures = (tune_load){.documents = 0};
    tune->load_failed = false;
    make_options(tune, at, &options);
    sl_load_config load =
        sl_load_as_trial(tune->config->load, &tune->target, tune->scratch, path, share, &account);
    apply(tune, at, &load);
    bool ok = make_work_directory(tune, purpose, path, &tune->failure);
    if (ok) {
        uri = with_wire_compression(load.uri, value_at(tune, at, SL_TUNE_WIRE_COMPRESSION));
        ok = uri || sl_error_memory(&tune->failure, "starting a trial");
    }
    load.uri = uri;
    load.options = &options;
    load.drop = true;
    load.verify = false;
    load.index_count = purpose == SL_TUNE_FOR_STORAGE ? load.index_count : 0;
    sl_throwaway_register(&tune->throwaway, tune->connection, load.database, tune->scratch);
    ok = ok && run_load(tune, &load, &account, figures);
    /* If it was unknown once, it is not asked again: each trial could wait for a hidden shard. */
    const bool asks = ok && purpose == SL_TUNE_FOR_RATE && !tune->lag_unknown;
    figures->lag = asks ? sl_replication_lag_now(tune->connection) : NAN;
    tune->lag_unknown = tune->lag_unknown || (asks && isnan(figures->lag));
    sl_error removing = {0};
    /* Dropped now, so that the drop does not slow down the next trial. */
    if (purpose != SL_TUNE_FOR_STORAGE && !sl_throwaway_drop(&tune->throwaway, &removing) && ok) {
        tune->failure = removing;
        ok = false;
    }
    sl_secret_free(uri);
    bson_destroy(&options);
    bson_destroy(&account);
    return ok;
}

/* Would another trial exceed --max-time? */
static bool time_is_up(const sl_tune *tune) {
    double limit = tune->config->time_max;
    return limit > 0 &&
           sl_seconds_since(tune->begun) + tune->trial_seconds + tune->other_seconds > limit;
}

/* ---- values that the target refuses ----
 *
 * Tests before the trials which values the target supports: an old server has no clustered
 * collections, a server may be built without a compressor, shards may be unreachable, a write
 * concern may require more members than there are.
 *
 * Each value is tried once by a load of one or two blocks, with the standard setting otherwise. The
 * cause of a failure is not derived from the error: a full disk or a lost server must not count as
 * a refused value. Instead the standard setting is loaded again; if that works, the value was the
 * cause. */

#define PROBE_BYTES (2.0 * (double)SL_BLOCK_BYTES)

static bool works(sl_tune *tune, const size_t *at) {
    tune_load figures;
    return load_once(tune, at, fmin(1, PROBE_BYTES / tune->total_text), SL_TUNE_FOR_PROBE,
                     &figures);
}

/* May the setting be the cause of the failure? Not when the sources cannot be read, the user
 * interrupts, or a trial's folder cannot be created. */
static bool may_be_refusal(const sl_tune *tune) {
    return !tune->interrupted && tune->load_failed &&
           (tune->failure.code == SL_EXIT_CLUSTER || tune->failure.code == SL_EXIT_USAGE);
}

/* After a load has failed: was its setting the cause? If so, clears tune->failure. */
static bool was_refused(sl_tune *tune) {
    sl_error failure = tune->failure;
    if (!may_be_refusal(tune) || !works(tune, tune->standard)) {
        tune->failure = failure;
        return false;
    }
    tune->failure = (sl_error){0};
    return true;
}

bool sl_tune_is_refused(const sl_tune *tune, const size_t *at) {
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        if (tune->refused[d][at[d]])
            return true;
    }
    return false;
}

static void leave_out(sl_tune *tune, size_t dimension, size_t value) {
    tune->refused[dimension][value] = true;
    sl_log_warning("left out: --%s %s, which the target refuses for the reason above",
                   sl_tune_option(dimension), tune->config->values[dimension].items[value]);
}

/* Checks the standard setting; if it fails, replaces it by a working setting that differs in a
 * single value. */
static bool find_standard(sl_tune *tune, sl_error *error) {
    if (works(tune, tune->standard))
        return true;
    sl_error first = tune->failure;
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS && may_be_refusal(tune); d++) {
        size_t standard = tune->standard[d];
        for (size_t v = 0; v < tune->config->values[d].count && may_be_refusal(tune); v++) {
            tune->standard[d] = v;
            if (v == standard || !works(tune, tune->standard))
                continue;
            tune->failure = (sl_error){0};
            leave_out(tune, d, standard);
            return true;
        }
        tune->standard[d] = standard;
    }
    *error = first;
    return false;
}

/* Tries each value of the unordered dimensions once, and marks the values that the target refuses.
 * False, with error or tune->interrupted, when no setting works. */
static bool probe_values(sl_tune *tune, sl_error *error) {
    bool any = false;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        tune->standard[d] = tune->config->values[d].standard;
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++)
        any = any || tune->config->values[d].count > 1;
    if (!any) /* no choice: the first load shows whether the setting works */
        return true;
    sl_log_info("testing which settings the target supports");
    if (!find_standard(tune, error))
        return false;
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++) {
        size_t at[SL_TUNE_DIMENSIONS];
        memcpy(at, tune->standard, sizeof at);
        for (size_t v = 0; v < tune->config->values[d].count; v++) {
            at[d] = v;
            if (v == tune->standard[d] || tune->refused[d][v] || works(tune, at))
                continue;
            if (!was_refused(tune)) {
                *error = tune->failure;
                return false;
            }
            leave_out(tune, d, v);
        }
    }
    return true;
}

/* ---- the size of a trial ----
 *
 * Chooses the size of a trial. All trials load the same blocks, so that they differ only in the
 * setting.
 *
 * A trial should take a few seconds: during its start and its end not every thread has work. For
 * the same reason it must contain a few batches for each thread of the largest setting; a setting
 * for which the sample is too small is left out instead of being measured wrongly. A thread fills
 * one batch per shard at the same time, so the number of documents grows with the number of shards.
 *
 * The first load is small and runs on a cold server; the second load corrects its rate once. */

#define FIRST_LOOK_BYTES (8.0 * 1024 * 1024) /* of text, in the first load */
#define TRIAL_SECONDS 3.0
#define TRIAL_SECONDS_MAX 8.0
#define TOO_SHORT 0.7           /* of TRIAL_SECONDS: a shorter trial enlarges the sample */
#define LARGER_MAX 10.0         /* maximum factor of that */
#define TRIAL_SECONDS_SMALL 0.5 /* a shorter trial is not reliable */
#define ROUNDS 2.0              /* minimum batches per shard, and blocks, for each thread */

static double number_of(const sl_tune *tune, const size_t *at, sl_tune_dimension dimension) {
    return strtod(tune->config->values[dimension].items[at[dimension]], NULL);
}

static double largest(const sl_tune *tune, sl_tune_dimension dimension) {
    const sl_tune_values *values = &tune->config->values[dimension];
    return strtod(values->items[values->count - 1], NULL);
}

/* The number of documents that keep `threads` threads busy with batches of `batch` documents, or of
 * fewer if documents of this size fill a batch's bytes first. */
static double documents_for(const sl_tune *tune, double threads, double batch,
                            double document_bytes) {
    double room = (double)sl_load_batch_room(tune->config->load, tune->shards);
    double fit = fmax(1, room / fmax(1, document_bytes));
    return threads * fmin(batch, fit) * tune->open_batches * ROUNDS;
}

/* Is the sample large enough for the setting, and has the target refused none of its values? The
 * smallest setting is always usable, unless it is refused. */
static bool is_usable(void *context, const size_t *at) {
    const sl_tune *tune = context;
    double threads = number_of(tune, at, SL_TUNE_THREADS);
    double batch = number_of(tune, at, SL_TUNE_BATCH_SIZE);
    bool smallest = at[SL_TUNE_THREADS] == 0 && at[SL_TUNE_BATCH_SIZE] == 0;
    if (sl_tune_is_refused(tune, at))
        return false;
    double documents = (double)tune->documents;
    return smallest ||
           (threads * ROUNDS <= tune->blocks &&
            documents_for(tune, threads, batch, (double)tune->bson_bytes / documents) <= documents);
}

/* Estimates the sources' text without opening them. */
static bool estimate_sources(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    if (load->path_count == 0) { /* generated records */
        tune->total_text = (double)load->format_options.ycsb.records *
                           sl_ycsb_record_bytes(&load->format_options.ycsb);
        return true;
    }
    sl_source_set *set = NULL;
    bool ok = sl_source_set_create(load->paths, load->path_count, load->include, &set, error);
    for (size_t i = 0; ok && i < sl_source_set_count(set); i++) {
        const sl_source *source = sl_source_set_at(set, i);
        if (source->kind == SL_SOURCE_PIPE)
            ok = sl_error_set(error, SL_EXIT_SOURCE,
                              "%s can be read only once, and each trial reads it again: name files",
                              source->shown);
    }
    if (ok)
        tune->total_text = (double)sl_source_set_stored_bytes(set);
    sl_source_set_destroy(set);
    return ok;
}

static bool read_topology(sl_tune *tune, sl_error *error) {
    sl_topology *topology;
    if (!sl_topology_read(tune->connection, &topology, error))
        return false;
    bool sharded = sl_connection_server(tune->connection)->deployment == SL_SHARDED;
    tune->shards = (uint32_t)topology->count;
    tune->open_batches = sharded && tune->target.shard_key ? tune->shards : 1;
    sl_topology_destroy(topology);
    return true;
}

/* The files of a dropped collection may exist for a while: two trials need room. */
#define TRIALS_ON_DISK 2

static bool warm_up(sl_tune *tune, tune_load *figures, sl_error *error) {
    if (!sl_disks_have_room(tune->connection,
                            TRIALS_ON_DISK * tune->share * tune->target.bson_bytes, error))
        return false;
    if (!load_once(tune, tune->standard, tune->share, SL_TUNE_FOR_RATE, figures)) {
        *error = tune->failure;
        return false;
    }
    if (figures->documents == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "no documents in the sample of %.3g %% of the sources: nothing to "
                            "measure",
                            100 * tune->share);
    tune->documents = figures->documents;
    tune->text_bytes = figures->text_bytes;
    tune->bson_bytes = figures->bson_bytes;
    tune->trial_seconds = figures->seconds;
    tune->other_seconds = figures->total_seconds - figures->seconds;
    return true;
}

/* Corrects the estimate of the sources by the first load: the stored size of compressed sources
 * does not show the size of their text. */
static void measure_sources(sl_tune *tune, const tune_load *look) {
    tune->splittable = look->splittable;
    tune->total_text =
        look->splittable ? look->source_text : (double)look->text_bytes / tune->share;
    tune->total_blocks = look->source_blocks;
    if (!look->splittable)
        tune->total_blocks = fmax(tune->total_blocks, tune->total_text / (double)SL_BLOCK_BYTES);
}

/* The share of the blocks for a trial, from the figures of the first load. */
static double share_for_trials(const sl_tune *tune, const tune_load *look) {
    if (tune->config->trial_bytes)
        return fmin(1, (double)tune->config->trial_bytes / tune->total_text);
    double documents = (double)look->documents, seconds = fmax(look->seconds, 0.001);
    double threads = largest(tune, SL_TUNE_THREADS);
    double enough = documents_for(tune, threads, largest(tune, SL_TUNE_BATCH_SIZE),
                                  (double)look->bson_bytes / documents);
    double share = TRIAL_SECONDS / seconds * tune->share;
    share = fmax(share, 1.05 * threads * ROUNDS / tune->total_blocks);
    share = fmax(share, 1.05 * enough / documents * tune->share);
    return fmin(1, fmin(share, TRIAL_SECONDS_MAX / seconds * tune->share));
}

/* Enlarges the share if the second load was too short, because the first one was slow. Returns
 * whether it did. */
static bool correct_share(sl_tune *tune) {
    if (tune->config->trial_bytes || tune->share >= 1 ||
        tune->trial_seconds >= TOO_SHORT * TRIAL_SECONDS)
        return false;
    double times = fmin(LARGER_MAX, TRIAL_SECONDS / fmax(tune->trial_seconds, 0.001));
    tune->share = fmin(1, tune->share * times);
    return true;
}

static void warn_of_limits(const sl_tune *tune) {
    if (!tune->splittable && tune->share < 1)
        sl_log_warning(
            "every trial reads the sources completely, but loads only a sample of "
            "them, so the rates include the reading: they are compressed, JSON, BSON, or "
            "have quoted fields, and can only be read from the beginning");
    if (tune->trial_seconds < TRIAL_SECONDS_SMALL)
        sl_log_warning(
            "a trial takes only %.2f s: the result is not reliable; give larger sources%s",
            tune->trial_seconds,
            tune->config->trial_bytes && tune->share < 1 ? ", or a larger --trial-bytes" : "");
}

/* Measures the sources, probes the target, warms it up, and sets the size of the trials' sample. */
static bool choose_sample(sl_tune *tune, sl_error *error) {
    if (tune->total_text <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "the sources are empty: nothing to measure");
    if (!read_topology(tune, error) || !probe_values(tune, error))
        return false;
    tune_load look, warm;
    tune->share = fmin(1, FIRST_LOOK_BYTES / tune->total_text);
    sl_log_info("warming up");
    if (!warm_up(tune, &look, error))
        return false;
    measure_sources(tune, &look);
    tune->share = share_for_trials(tune, &look);
    if (!warm_up(tune, &warm, error) || (correct_share(tune) && !warm_up(tune, &warm, error)))
        return false;
    tune->blocks = tune->share * tune->total_blocks;
    warn_of_limits(tune);
    return true;
}

/* ---- storage ----
 *
 * Compares compressors: storage size of the sample, and query times on it. */

/* Forces a checkpoint: the servers report the sizes of the last one. */
static void flush(sl_tune *tune) {
    sl_error error;
    bson_t *command = BCON_NEW("fsync", BCON_INT32(1));
    if (!sl_connection_command(tune->connection, "admin", command, NULL, NULL, &error))
        sl_log_warning("the storage figures may be out of date: " SL_LINES, error.message);
    bson_destroy(command);
}

static bool read_sizes(sl_tune *tune, sl_tune_storage *storage, sl_error *error) {
    const sl_target target = {.database = tune->config->load->database,
                              .collection = tune->scratch};
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    flush(tune);
    if (!sl_statistics_read(tune->connection, &target, &rows, &count, error))
        return false;
    storage->sized = true;
    storage->documents = 0;
    for (size_t i = 0; i < count; i++) {
        storage->documents += rows[i].documents;
        storage->data_bytes += rows[i].data_bytes;
        storage->storage_bytes += rows[i].storage_bytes;
        storage->index_bytes += rows[i].index_bytes;
    }
    free(rows);
    return true;
}

static void run_suite(sl_tune *tune, const char *name, sl_tune_storage *storage, uint32_t *index) {
    sl_suite *suite = NULL;
    sl_error error = {0};
    bool open = sl_suite_open(name, &suite, &error);
    if (open)
        sl_suite_remove_writes(suite);
    else
        sl_log_warning(SL_LINES, error.message);
    for (size_t i = 0; open && i < suite->count && !sl_interrupt_requested(); i++) {
        const sl_query_options options = {.database = tune->config->load->database,
                                          .collection = tune->scratch,
                                          .repeat = suite->repeat,
                                          .warm_up = suite->warm_up,
                                          .limit = suite->limit};
        sl_query_run run = {.count = 0};
        bson_t item;
        bool answered = sl_query_execute(tune->connection, &suite->queries[i], &options, &run);
        sl_record_begin_item(&storage->queries, (*index)++, &item);
        BSON_APPEND_UTF8(&item, "name", suite->queries[i].name);
        if (answered)
            BSON_APPEND_DOUBLE(&item, "medianMilliseconds", run.sample.median);
        else
            sl_log_warning("with compressor %s, query %s was not timed: " SL_LINES,
                           storage->compressor, suite->queries[i].name, run.error.message);
        bson_append_document_end(&storage->queries, &item);
        sl_query_run_clear(&run);
    }
    sl_suite_destroy(suite);
}

/* Measures one compressor. False when its load fails. */
static bool measure_storage(sl_tune *tune, const size_t *at, const char *compressor) {
    sl_tune_storage *storage = &tune->storage[tune->storage_count];
    tune_load figures;
    sl_error error = {0};
    uint32_t index = 0;
    if (!load_once(tune, at, tune->share, SL_TUNE_FOR_STORAGE, &figures))
        return false;
    *storage = (sl_tune_storage){.compressor = compressor,
                                 .documents = figures.documents,
                                 .rate = (double)figures.documents /
                                         (figures.seconds > 0 ? figures.seconds : 1e-3)};
    bson_init(&storage->queries);
    tune->storage_count++;
    if (!read_sizes(tune, storage, &error))
        sl_log_warning("the storage size with compressor %s is not known: " SL_LINES, compressor,
                       error.message);
    for (size_t s = 0; s < tune->config->suite_count; s++)
        run_suite(tune, tune->config->suites[s], storage, &index);
    return true;
}

/* Runs one load per compressor with the recommended setting, reads its storage size and runs the
 * queries on it. A compressor that fails is left out, with a warning. */
static void compare_storage(sl_tune *tune) {
    const sl_tune_values *compressors = &tune->config->values[SL_TUNE_COMPRESSOR];
    size_t at[SL_SEARCH_DIMENSIONS_MAX];
    memcpy(at, tune->search.cells[tune->search.recommended].at, sizeof at);
    for (size_t i = 0; i < compressors->count && !sl_interrupt_requested(); i++) {
        at[SL_TUNE_COMPRESSOR] = i;
        if (sl_tune_is_refused(tune, at))
            continue;
        if (time_is_up(tune)) {
            sl_log_warning("--max-time is reached: compressor %s is not compared%s",
                           compressors->items[i],
                           i + 1 < compressors->count ? ", nor are the ones after it" : "");
            break;
        }
        sl_log_info("measuring compressor %s", compressors->items[i]);
        if (!measure_storage(tune, at, compressors->items[i]) && !tune->interrupted) {
            sl_log_warning("compressor %s is not compared: " SL_LINES, compressors->items[i],
                           tune->failure.message);
            tune->failure = (sl_error){0};
        }
    }
    tune->interrupted = tune->interrupted || sl_interrupt_requested();
}

/* ---- the command ---- */

static bool on_first_signal(void *context) {
    const sl_tune *tune = context;
    if (!tune->connection) /* it may be waiting for a server */
        return true;
    sl_log_warning("stopping, and dropping the temporary collection; press Ctrl-C again to stop at "
                   "once");
    return false;
}

static void on_second_signal(void *context) {
    sl_error error = {0};
    sl_tune *tune = context;
    if (!sl_throwaway_drop_at_once(&tune->throwaway, &error))
        sl_log_error(SL_LINES, error.message);
    sl_log_warning("stopped at once");
}

/* ---- the work directory ---- */

static bool name_work_directory(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    if (load->work_directory) {
        if (strlen(load->work_directory) >= sizeof tune->work_directory)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                sizeof tune->work_directory - 1);
        strcpy(tune->work_directory, load->work_directory);
        return sl_private_folder_make(tune->work_directory, NULL, error) ||
               sl_error_prefix(error, "--work-dir");
    }
    bool created;
    char name[300];
    snprintf(name, sizeof name, "tune-%s.%s", load->database, load->collection);
    return sl_private_folder_make_named(name, tune->work_directory, sizeof tune->work_directory,
                                        &created, error) ||
           sl_error_prefix(error, "name another directory with --work-dir");
}

/* Checks before the trials that the result files can be written. */
static bool check_files(const sl_tune *tune, sl_error *error) {
    const char *report = tune->config->load->report;
    char path[600];
    snprintf(path, sizeof path, "%s/" SL_WORK_TUNE, tune->work_directory);
    return sl_private_file_may_replace(path, error) &&
           (!report || sl_private_file_may_replace(report, error)) &&
           (!tune->config->html || sl_private_file_may_replace(tune->config->html, error)) &&
           (!tune->config->save || sl_private_file_may_replace(tune->config->save, error));
}

/* ---- trials ---- */

/* The expected duration of one more trial, in seconds. An adaptive search begins with slow and fast
 * settings and continues with fast ones, so that the mean would be too long: it is the median. */
static double usual_seconds(const sl_tune *tune, size_t done) {
    double sum = 0;
    if (tune->config->search == SL_SEARCH_ADAPTIVE)
        return (tune->took[done / 2] + tune->took[(done - 1) / 2]) / 2;
    for (size_t i = 0; i < done; i++)
        sum += tune->took[i];
    return sum / (double)done;
}

static sl_trial_result measure(void *context, const size_t *at, double *rate) {
    sl_tune *tune = context;
    if (sl_interrupt_requested()) {
        tune->interrupted = true;
        return SL_TRIAL_STOP;
    }
    if (time_is_up(tune)) {
        tune->out_of_time = true;
        return SL_TRIAL_STOP;
    }
    tune_load figures;
    char setting[200], human[SL_HUMAN_ROOM], remaining[SL_HUMAN_ROOM];
    sl_tune_describe(tune, at, setting, sizeof setting);
    size_t cell = sl_tune_cell(tune, at);
    size_t done = tune->search.trials + 1;
    double after = sl_seconds_since(tune->begun);
    if (!load_once(tune, at, tune->share, SL_TUNE_FOR_RATE, &figures)) {
        /* A setting that worked before cannot be refused: the failure has another cause. */
        if (tune->search.cells[cell].trials > 0 || !was_refused(tune))
            return SL_TRIAL_STOP;
        sl_log_warning("left out: %s, which failed for the reason above", setting);
        return SL_TRIAL_IMPOSSIBLE;
    }
    if (figures.seconds <= 0 || figures.documents == 0) {
        sl_error_set(&tune->failure, SL_EXIT_SOURCE,
                     "a trial was too short to be timed: give larger sources, or a larger "
                     "--trial-bytes");
        return SL_TRIAL_STOP;
    }
    tune->took[done - 1] = sl_seconds_since(tune->begun) - after;
    qsort(tune->took, done, sizeof *tune->took, sl_by_value);
    double left = usual_seconds(tune, done) * (double)(tune->planned - done);
    tune->trials[cell * SL_TUNE_TIMES_MAX + tune->search.cells[cell].trials] = (sl_tune_trial){
        after, figures.documents, figures.seconds, figures.p50, figures.p99, figures.lag, left};
    *rate = (double)figures.documents / figures.seconds;
    sl_log_info("trial %zu of at most %zu: %s: %s documents/s%s%s%s", done, tune->planned, setting,
                sl_human_count((uint64_t)*rate, human), left > 0 ? "; about " : "",
                left > 0 ? sl_human_seconds(left, remaining) : "", left > 0 ? " left" : "");
    return SL_TRIAL_MEASURED;
}

static void plan_search(sl_tune *tune) {
    const sl_tune_config *config = tune->config;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        tune->dimensions[d] = (sl_search_dimension){
            .name = sl_tune_option(d),
            .count = config->values[d].count,
            .ordered = d == SL_TUNE_THREADS || d == SL_TUNE_BATCH_SIZE,
            .standard = tune->standard[d],
        };
    tune->plan = (sl_search_plan){
        .dimensions = tune->dimensions,
        .dimension_count = SL_TUNE_DIMENSIONS,
        .kind = config->search,
        .repeats = config->repeats,
        .trials_max = config->trials_max,
        .seed = (uint64_t)tune->begun_at,
        .usable = is_usable,
        .measure = measure,
        .context = tune,
    };
}

static void announce_trials(sl_tune *tune) {
    char count[SL_HUMAN_ROOM], duration[SL_HUMAN_ROOM], bytes[SL_HUMAN_ROOM];
    tune->planned = sl_search_trials_max(&tune->plan);
    size_t cells = sl_search_cells(&tune->plan), all = 1;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        size_t taken = 0;
        for (size_t v = 0; v < tune->dimensions[d].count; v++)
            taken += !tune->refused[d][v];
        all *= taken;
    }
    double seconds = (double)tune->planned * (tune->trial_seconds + tune->other_seconds);
    sl_log_info("each trial loads the same %s documents (%s of BSON), %.3g %% of the sources",
                sl_human_count(tune->documents, count),
                sl_human_bytes((double)tune->bson_bytes, bytes), 100 * tune->share);
    if (cells < all)
        sl_log_warning("%zu of %zu settings are left out: with so many threads and such large "
                       "batches%s the sample is too small to keep all threads busy; %s",
                       all - cells, all, tune->open_batches > 1 ? ", one for each shard," : "",
                       tune->share < 1 ? "give a larger --trial-bytes to include them"
                                       : "the sample is all data: give larger sources to include "
                                         "them");
    sl_log_info("at most %zu trials of %zu settings, about %s at this rate%s", tune->planned, cells,
                sl_human_seconds(seconds, duration),
                tune->config->time_max > 0 && tune->config->time_max < seconds
                    ? ", limited by --max-time"
                    : "");
}

/* Checks the size of the grid before anything is loaded. */
static bool check_size(const sl_tune *tune, sl_error *error) {
    size_t cells = 1;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS && cells <= SL_SEARCH_CELLS_MAX; d++)
        cells *= tune->config->values[d].count;
    return cells <= SL_SEARCH_CELLS_MAX ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "more than %d settings to try: name fewer values with the --try options",
                        SL_SEARCH_CELLS_MAX);
}

static bool no_time_for_a_trial(const sl_tune *tune, sl_error *error) {
    char limit[SL_HUMAN_ROOM], before[SL_HUMAN_ROOM], trial[SL_HUMAN_ROOM];
    return sl_error_set(
        error, SL_EXIT_USAGE,
        "no trial fits into --max-time (%s): the preparation took %s, and a trial takes "
        "about %s; give more time, or a smaller --trial-bytes",
        sl_human_seconds(tune->config->time_max, limit),
        sl_human_seconds(sl_seconds_since(tune->begun), before),
        sl_human_seconds(tune->trial_seconds + tune->other_seconds, trial));
}

static bool search(sl_tune *tune, sl_error *error) {
    plan_search(tune);
    announce_trials(tune);
    tune->trials =
        calloc(sl_search_grid_size(&tune->plan) * SL_TUNE_TIMES_MAX, sizeof *tune->trials);
    tune->took = calloc(tune->planned + 1, sizeof *tune->took);
    if (!tune->trials || !tune->took)
        return sl_error_memory(error, "starting the trials");
    if (!sl_search_run(&tune->plan, &tune->search, error))
        return false;
    if (tune->failure.code) {
        *error = tune->failure;
        return false;
    }
    if (tune->search.trials == 0 && tune->out_of_time)
        return no_time_for_a_trial(tune, error);
    if (tune->search.trials == 0 && !tune->interrupted)
        return sl_error_set(error, SL_EXIT_CLUSTER, "no setting works: see the reasons above");
    if (tune->out_of_time)
        sl_log_warning("--max-time is reached after %zu trials: the result is based on these",
                       tune->search.trials);
    return true;
}

/* ---- recommendation and records ---- */

static bool save_recommendation(const sl_tune *tune, sl_error *error) {
    char *yaml = sl_tune_yaml(tune);
    if (!yaml)
        return sl_error_memory(error, "writing the recommendation");
    const char *path = tune->config->save;
    bool ok = true;
    if (path) {
        ok = sl_private_file_replace(path, yaml, strlen(yaml), error) ||
             sl_error_prefix(error, "--save");
        char word[SL_WORD_ROOM(PATH_MAX)];
        if (ok)
            sl_print("\nsaved in %s, for: shardload load --config %s ...\n"
                     "or, to start with these threads and batches and change them during the load "
                     "if that "
                     "is faster: shardload load --config %s -j auto --batch-size auto ...\n",
                     path, sl_shell_word(path, word, sizeof word), word);
    } else {
        sl_print("\ncontent for the FILE of `shardload load --config FILE` (--save writes "
                 "it):\n\n" SL_LINES,
                 yaml);
    }
    fflush(sl_output());
    free(yaml);
    return ok;
}

static bool write_records(const sl_tune *tune, sl_exit code, sl_error *error) {
    bson_t record = BSON_INITIALIZER;
    const bson_t *const records[] = {&record};
    char path[600];
    sl_tune_record(tune, code, &record);
    snprintf(path, sizeof path, "%s/" SL_WORK_TUNE, tune->work_directory);
    const char *report = tune->config->load->report;
    bool ok = sl_json_write_file(path, &record, error);
    if (ok)
        sl_log_result("record of the tuning: %s", path);
    ok = ok && (!report || sl_json_write_file(report, &record, error));
    ok = ok &&
         (!tune->config->html || sl_report_html_write(records, 1, NULL, tune->config->html, error));
    bson_destroy(&record);
    return ok;
}

/* ---- the tuning ---- */

static bool begin(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    if (!check_size(tune, error))
        return false;
    tune->connection = sl_load_open_connection(load, SL_FOR_WRITING, "shardload tune", 3, error);
    return tune->connection && estimate_sources(tune, error) &&
           sl_trial_target_decide(load, &tune->target, error) && name_work_directory(tune, error) &&
           check_files(tune, error) &&
           sl_throwaway_begin(tune->connection, load->database, load->collection, "tune", true,
                              error) &&
           sl_throwaway_name(load->database, load->collection, "tune", 1, tune->scratch, error);
}

static bool run(sl_tune *tune, sl_error *error) {
    if (!begin(tune, error))
        return false;
    const sl_server *server = sl_connection_server(tune->connection);
    if (tune->config->values[SL_TUNE_ROUTE].count > 1 && server->deployment != SL_SHARDED)
        return sl_error_set(error, SL_EXIT_USAGE, "--try-routes: a %s has only one route",
                            sl_deployment_name(server->deployment));
    sl_log_detail("%s: %s, server %s", sl_connection_display_uri(tune->connection),
                  sl_deployment_name(server->deployment), server->version);
    return choose_sample(tune, error) && search(tune, error);
}

/* Shows and saves the recommendation before comparing compressors, which takes long and may
 * fail. */
static bool finish(sl_tune *tune, bool ok, sl_error *error) {
    if (tune->search.trials == 0)
        return true;
    sl_tune_show(tune);
    if (!ok || tune->interrupted)
        return true;
    if (!save_recommendation(tune, error))
        return false;
    if (tune->config->storage) {
        compare_storage(tune);
        sl_tune_show_storage(tune);
    }
    return true;
}

/* Logs an error. The first error sets the exit code. */
static void report_error(const sl_error *error, sl_exit *code) {
    if (error->code)
        sl_log_error(SL_LINES, error->message);
    if (*code == SL_EXIT_OK)
        *code = error->code;
}

sl_exit sl_tune_run(const sl_tune_config *config) {
    sl_error error = {0}, finishing = {0}, removing = {0}, writing = {0};
    sl_exit code = SL_EXIT_OK;
    sl_tune tune = {.config = config, .begun = sl_clock_ns(), .begun_at = sl_wall_clock_ms()};
    sl_throwaway_init(&tune.throwaway);
    bool listening = sl_interrupt_listen(on_first_signal, on_second_signal, &tune, &error);
    bool ok = listening && run(&tune, &error);
    if (!ok && !tune.interrupted)
        report_error(&error, &code);
    if (!finish(&tune, ok, &finishing))
        report_error(&finishing, &code);
    if (!sl_throwaway_drop(&tune.throwaway, &removing))
        report_error(&removing, &code);
    if (tune.interrupted || (listening && sl_interrupt_requested())) {
        code = SL_EXIT_INTERRUPTED;
        sl_log_error("interrupted%s", removing.code ? "" : "; nothing is left in the cluster");
    }
    if (tune.scratch[0] && !write_records(&tune, code, &writing))
        report_error(&writing, &code);
    if (listening)
        sl_interrupt_stop_listening();
    for (size_t i = 0; i < tune.storage_count; i++)
        bson_destroy(&tune.storage[i].queries);
    sl_search_clear(&tune.search);
    sl_throwaway_clear(&tune.throwaway);
    sl_trial_target_clear(&tune.target);
    free(tune.trials);
    free(tune.took);
    sl_connection_close(tune.connection);
    return code;
}
