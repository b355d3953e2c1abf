/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the size of a trial. All trials load the same blocks, so that they differ only in the
 * setting.
 *
 * A trial should take a few seconds: during its start and its end not every thread has work. For
 * the same reason it must contain a few batches for each thread of the largest setting; a setting
 * for which the sample is too small is left out instead of being measured wrongly. A thread fills
 * one batch per shard at the same time, so the number of documents grows with the number of shards.
 *
 * The first load is small and runs on a cold server; the second load corrects its rate once. */
#include "tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/ycsb.h"
#include "source/source.h"
#include "util/document_id.h"
#include "util/log.h"
#include "util/text.h"

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

/* The smallest setting is always usable, unless it is refused. */
bool sl_tune_is_usable(void *context, const size_t *at) {
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
        tune->generated = true;
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
    tune->open_batches = sharded && tune->config->load->shard_key ? tune->shards : 1;
    sl_topology_destroy(topology);
    return true;
}

static bool warm_up(sl_tune *tune, sl_tune_load *figures, sl_error *error) {
    if (!sl_tune_load_once(tune, tune->standard, tune->share, SL_TUNE_FOR_RATE, figures)) {
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

/* Bytes of text; for generated records, the bytes that each counts as. */
static double text_of(const sl_tune *tune, const sl_tune_load *figures) {
    return tune->generated ? (double)figures->documents *
                                 sl_ycsb_record_bytes(&tune->config->load->format_options.ycsb)
                           : (double)figures->text_bytes;
}

/* Corrects the estimate of the sources by the first load: the stored size of compressed sources
 * does not show the size of their text. */
static void measure_sources(sl_tune *tune, const sl_tune_load *look) {
    tune->splittable = look->splittable;
    tune->total_text = look->splittable ? look->source_text : text_of(tune, look) / tune->share;
    tune->total_blocks = look->source_blocks;
    if (!look->splittable)
        tune->total_blocks = fmax(tune->total_blocks, tune->total_text / (double)SL_BLOCK_BYTES);
}

/* The share of the blocks for a trial, from the figures of the first load. */
static double share_for_trials(const sl_tune *tune, const sl_tune_load *look) {
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
    if (!tune->splittable)
        sl_log_warning(
            "every trial reads compressed sources completely, but loads only a sample of "
            "them, so the rates include the reading; use an uncompressed source to "
            "measure the cluster alone");
    if (tune->trial_seconds < TRIAL_SECONDS_SMALL)
        sl_log_warning(
            "a trial takes only %.2f s: the result is not reliable; give larger sources%s",
            tune->trial_seconds,
            tune->config->trial_bytes && tune->share < 1 ? ", or a larger --trial-bytes" : "");
}

bool sl_tune_choose_sample(sl_tune *tune, sl_error *error) {
    if (!estimate_sources(tune, error))
        return false;
    if (tune->total_text <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "the sources are empty: nothing to measure");
    if (!read_topology(tune, error) || !sl_tune_probe(tune, error))
        return false;
    sl_tune_load look, warm;
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
