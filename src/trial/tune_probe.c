/* SPDX-License-Identifier: Apache-2.0 */
/* Tests before the trials which values the target supports: an old server has no clustered
 * collections, a server may be built without a compressor, shards may be unreachable, a write
 * concern may require more members than there are.
 *
 * Each value is tried once by a load of one or two blocks, with the standard setting otherwise. The
 * cause of a failure is not derived from the error: a full disk or a lost server must not count as
 * a refused value. Instead the standard setting is loaded again; if that works, the value was the
 * cause. */
#include "tuning.h"

#include <math.h>
#include <string.h>

#include "util/document_id.h"
#include "util/log.h"

#define PROBE_BYTES (2.0 * (double)SL_BLOCK_BYTES)

static bool works(sl_tune *tune, const size_t *at) {
    sl_tune_load figures;
    return sl_tune_load_once(tune, at, fmin(1, PROBE_BYTES / tune->total_text), SL_TUNE_FOR_PROBE,
                             &figures);
}

/* May the setting be the cause of the failure? Not when the sources cannot be read, the user
 * interrupts, or a trial's folder cannot be created. */
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

bool sl_tune_probe(sl_tune *tune, sl_error *error) {
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
            if (!sl_tune_was_refused(tune)) {
                *error = tune->failure;
                return false;
            }
            leave_out(tune, d, v);
        }
    }
    return true;
}
