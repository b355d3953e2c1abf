/* SPDX-License-Identifier: Apache-2.0 */
/* How much a trial loads. All trials load the same blocks, so that nothing but the setting differs.
 *
 * A trial should take a few seconds: a shorter one is mostly its start and its end, where not every
 * thread has work. And it must give each thread of the largest setting a few batches, for the same
 * reason; a setting for which the sample is too small is left out, rather than measured wrongly. A
 * thread fills one batch for each shard at the same time, so it takes so many times as many
 * documents.
 *
 * The first load of all is small and meets a cold server; what it says of the rate is corrected
 * once, by the second one. */
#include "tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/document_id.h>
#include <shardload/log.h>
#include <shardload/source.h>
#include <shardload/text.h>

#define FIRST_LOOK_BYTES (8.0 * 1024 * 1024) /* of text, in the first load */
#define TRIAL_SECONDS 3.0
#define TRIAL_SECONDS_MAX 8.0
#define TOO_SHORT 0.7           /* of TRIAL_SECONDS: the sample is made larger */
#define LARGER_MAX 10.0         /* times, by one load that was over too soon */
#define TRIAL_SECONDS_SMALL 0.5 /* below this a trial says little */
#define ROUNDS 2.0 /* batches of each shard, and blocks, that each thread should have */

static double number_of(const sl_tune *tune, const size_t *at, sl_tune_dimension dimension) {
    return strtod(tune->config->values[dimension].items[at[dimension]], NULL);
}

static double largest(const sl_tune *tune, sl_tune_dimension dimension) {
    const sl_tune_values *values = &tune->config->values[dimension];
    return strtod(values->items[values->count - 1], NULL);
}

/* How many documents keep so many threads busy, which go to their batches by as many, or fewer
 * where documents of this size fill a batch's bytes first. */
static double documents_for(const sl_tune *tune, double threads, double batch,
                            double document_bytes) {
    double room = (double)sl_load_batch_room(tune->config->load, tune->shards);
    double fit = fmax(1, room / fmax(1, document_bytes));
    return threads * fmin(batch, fit) * tune->open_batches * ROUNDS;
}

/* A setting that is not varied at all is measured as it is. */
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

/* As far as can be told without opening them. */
static bool look_at_sources(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    if (load->path_count == 0) { /* made up */
        tune->made_up = true;
        tune->whole_text = (double)load->format_options.ycsb.records * SL_GENERATED_BYTES;
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
        tune->whole_text = (double)sl_source_set_stored_bytes(set);
    sl_source_set_destroy(set);
    return ok;
}

static bool look_at_target(sl_tune *tune, sl_error *error) {
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
                            "measure", 100 * tune->share);
    tune->documents = figures->documents;
    tune->text_bytes = figures->text_bytes;
    tune->bson_bytes = figures->bson_bytes;
    tune->trial_seconds = figures->seconds;
    tune->around_seconds = figures->everything - figures->seconds;
    return true;
}

/* Text of made-up records is the room they stand on. */
static double text_of(const sl_tune *tune, const sl_tune_load *figures) {
    return tune->made_up ? (double)figures->documents * SL_GENERATED_BYTES
                         : (double)figures->text_bytes;
}

/* What the first load has shown of the sources. What is stored says little of how much text there
 * is, where that is compressed. */
static void measure_sources(sl_tune *tune, const sl_tune_load *look) {
    tune->cut = look->cut;
    tune->whole_text = look->cut ? look->source_text : text_of(tune, look) / tune->share;
    tune->whole_blocks = look->source_blocks;
    if (!look->cut)
        tune->whole_blocks = fmax(tune->whole_blocks, tune->whole_text / (double)SL_BLOCK_BYTES);
}

/* The share that a trial takes, from what the first look has shown. */
static double wanted_share(const sl_tune *tune, const sl_tune_load *look) {
    if (tune->config->trial_bytes)
        return fmin(1, (double)tune->config->trial_bytes / tune->whole_text);
    double documents = (double)look->documents, seconds = fmax(look->seconds, 0.001);
    double threads = largest(tune, SL_TUNE_THREADS);
    double enough = documents_for(tune, threads, largest(tune, SL_TUNE_BATCH_SIZE),
                                  (double)look->bson_bytes / documents);
    double wanted = TRIAL_SECONDS / seconds * tune->share;
    wanted = fmax(wanted, 1.05 * threads * ROUNDS / tune->whole_blocks);
    wanted = fmax(wanted, 1.05 * enough / documents * tune->share);
    return fmin(1, fmin(wanted, TRIAL_SECONDS_MAX / seconds * tune->share));
}

/* Was the first look so much slower than what came after it that trials would be too short? Then
 * the share is another one. */
static bool correct_share(sl_tune *tune) {
    if (tune->config->trial_bytes || tune->share >= 1 ||
        tune->trial_seconds >= TOO_SHORT * TRIAL_SECONDS)
        return false;
    double times = fmin(LARGER_MAX, TRIAL_SECONDS / fmax(tune->trial_seconds, 0.001));
    tune->share = fmin(1, tune->share * times);
    return true;
}

static void say_what_is_odd(const sl_tune *tune) {
    if (!tune->cut)
        sl_log_warning("compressed sources are read from front to back in every trial, though only a "
                       "sample of them is loaded: the rates hold for such sources; unpack one of "
                       "them for those of the cluster alone");
    if (tune->trial_seconds < TRIAL_SECONDS_SMALL)
        sl_log_warning("a trial takes %.2f s only: the result says little; give larger sources%s",
                       tune->trial_seconds,
                       tune->config->trial_bytes && tune->share < 1 ? ", or a larger --trial-bytes"
                                                                    : "");
}

bool sl_tune_choose_sample(sl_tune *tune, sl_error *error) {
    if (!look_at_sources(tune, error))
        return false;
    if (tune->whole_text <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "the sources are empty: nothing to measure");
    if (!look_at_target(tune, error) || !sl_tune_probe(tune, error))
        return false;
    sl_tune_load look, warm;
    tune->share = fmin(1, FIRST_LOOK_BYTES / tune->whole_text);
    sl_log_info("warming up");
    if (!warm_up(tune, &look, error))
        return false;
    measure_sources(tune, &look);
    tune->share = wanted_share(tune, &look);
    if (!warm_up(tune, &warm, error) || (correct_share(tune) && !warm_up(tune, &warm, error)))
        return false;
    tune->blocks = tune->share * tune->whole_blocks;
    say_what_is_odd(tune);
    return true;
}
