/* SPDX-License-Identifier: Apache-2.0 */
/* How much a trial loads. All trials load the same blocks, so that nothing but the setting differs.
 *
 * A trial should take a few seconds: a shorter one is mostly its start and its end, where not every
 * thread has work. And it must give each thread of the largest setting a few batches, for the same
 * reason; a setting for which the sample is too small is left out, rather than measured wrongly. */
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
#define TRIAL_SECONDS_SMALL 0.5 /* below this a trial says little */
#define ROUNDS 2.0              /* batches, and blocks, that each thread should have */

static double number_of(const sl_tune *tune, const size_t *at, sl_tune_dimension dimension) {
    return strtod(tune->config->values[dimension].items[at[dimension]], NULL);
}

static double largest(const sl_tune *tune, sl_tune_dimension dimension) {
    const sl_tune_values *values = &tune->config->values[dimension];
    return strtod(values->items[values->count - 1], NULL);
}

/* A setting that is not varied at all is measured as it is. */
bool sl_tune_is_usable(void *context, const size_t *at) {
    const sl_tune *tune = context;
    double threads = number_of(tune, at, SL_TUNE_THREADS);
    double batch = number_of(tune, at, SL_TUNE_BATCH_SIZE);
    bool smallest = at[SL_TUNE_THREADS] == 0 && at[SL_TUNE_BATCH_SIZE] == 0;
    if (sl_tune_is_refused(tune, at))
        return false;
    return smallest || (threads * ROUNDS <= tune->blocks &&
                        threads * batch * ROUNDS <= (double)tune->documents);
}

static bool look_at_sources(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    tune->cut = true;
    if (load->path_count == 0) { /* made up */
        tune->made_up = true;
        tune->whole_text = (double)load->format_options.ycsb.records * SL_MADE_UP_BYTES;
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
        tune->cut = tune->cut && sl_source_is_cut(source);
    }
    if (ok)
        tune->whole_text = (double)sl_source_set_stored_bytes(set);
    sl_source_set_destroy(set);
    return ok;
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
    return tune->made_up ? (double)figures->documents * SL_MADE_UP_BYTES
                         : (double)figures->text_bytes;
}

/* How much text a trial takes, from what the first look has shown. */
static double wanted_text(const sl_tune *tune, const sl_tune_load *look) {
    if (tune->config->trial_bytes)
        return (double)tune->config->trial_bytes;
    double text = text_of(tune, look), seconds = fmax(look->seconds, 0.001);
    double threads = largest(tune, SL_TUNE_THREADS);
    double documents = threads * largest(tune, SL_TUNE_BATCH_SIZE) * ROUNDS;
    double wanted = TRIAL_SECONDS * text / seconds;
    wanted = fmax(wanted, threads * ROUNDS * (double)SL_BLOCK_BYTES);
    wanted = fmax(wanted, 1.05 * documents * text / (double)look->documents);
    return fmin(wanted, TRIAL_SECONDS_MAX * text / seconds);
}

static void say_what_is_odd(const sl_tune *tune) {
    if (!tune->cut)
        sl_log_warning("compressed sources are read from front to back in every trial, though only a "
                       "sample of them is loaded: the rates hold for such sources; unpack one of "
                       "them for those of the cluster alone");
    if (tune->trial_seconds < TRIAL_SECONDS_SMALL)
        sl_log_warning("a trial takes %.2f s only: the result says little; give larger sources%s",
                       tune->trial_seconds,
                       tune->config->trial_bytes ? ", or a larger --trial-bytes" : "");
}

bool sl_tune_choose_sample(sl_tune *tune, sl_error *error) {
    if (!look_at_sources(tune, error))
        return false;
    if (tune->whole_text <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "the sources are empty: nothing to measure");
    if (!sl_tune_probe(tune, error))
        return false;
    sl_tune_load look, warm;
    tune->share = fmin(1, FIRST_LOOK_BYTES / tune->whole_text);
    sl_log_info("warming up");
    if (!warm_up(tune, &look, error))
        return false;
    if (!tune->cut) /* what is stored says little of how much text it is */
        tune->whole_text = text_of(tune, &look) / tune->share;
    tune->share = fmin(1, wanted_text(tune, &look) / tune->whole_text);
    if (!warm_up(tune, &warm, error))
        return false;
    tune->blocks = tune->share * tune->whole_text / (double)SL_BLOCK_BYTES;
    say_what_is_odd(tune);
    return true;
}
