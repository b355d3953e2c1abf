/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of a setting the target takes at all, asked before the trials: an old server knows no
 * clustered collections, one may be built without a compressor, shards may be out of reach, a write
 * concern may ask for more members than there are.
 *
 * Each value is tried once by a load of a block or two, in the standard setting otherwise. What it is
 * that fails a load is not read from its error: a full disk or a server that is gone must not pass for
 * a value that is refused. The standard setting is loaded again instead; if that works, it was the
 * value. */
#include "tuning.h"

#include <math.h>
#include <string.h>

#include <shardload/document_id.h>
#include <shardload/log.h>

#define PROBE_BYTES (2.0 * (double)SL_BLOCK_BYTES)

static bool works(sl_tune *tune, const size_t *at) {
    sl_tune_load figures;
    return sl_tune_load_once(tune, at, fmin(1, PROBE_BYTES / tune->whole_text), SL_TUNE_FOR_PROBE,
                             &figures);
}

/* Might another setting have worked? Not when the sources cannot be read, or the user stops it, or
 * there is no place for a trial's folder. */
static bool may_be_refusal(const sl_tune *tune) {
    return !tune->interrupted && tune->load_failed &&
           (tune->failure.code == SL_EXIT_CLUSTER || tune->failure.code == SL_EXIT_USAGE);
}

bool sl_tune_was_refused(sl_tune *tune) {
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
    sl_log_warning("left out: --%s %s, which is refused here for the reason above",
                   sl_tune_option(dimension), tune->config->values[dimension].items[value]);
}

/* The standard setting, if it works; else one that differs from it in a single value. */
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

bool sl_tune_probe(sl_tune *tune, sl_error *error) {
    bool any = false;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        tune->standard[d] = tune->config->values[d].standard;
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++)
        any = any || tune->config->values[d].count > 1;
    if (!any) /* the first load to warm up tells */
        return true;
    sl_log_info("trying what the target takes");
    if (!find_standard(tune, error))
        return false;
    for (size_t d = SL_TUNE_COMPRESSOR; d < SL_TUNE_DIMENSIONS; d++) {
        size_t at[SL_TUNE_DIMENSIONS];
        memcpy(at, tune->standard, sizeof at);
        for (size_t v = 0; v < tune->config->values[d].count; v++) {
            at[d] = v;
            if (v == tune->standard[d] || tune->refused[d][v] || works(tune, at))
                continue;
            if (!sl_tune_was_refused(tune)) {
                *error = tune->failure;
                return false;
            }
            leave_out(tune, d, v);
        }
    }
    return true;
}
