/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the time of each phase of a load from the rates of an earlier load.
 *
 * If the size of the documents differs from the earlier load, the true time lies between the times
 * computed from documents per second and from bytes per second. So both are computed: the
 * prediction is their mean, and the range covers both. */
#include "plan.h"

#include <math.h>

#include "util/phase_names.h"

static const sl_estimate unknown = {NAN, NAN, NAN};

static sl_estimate seconds_for(sl_estimate amount, sl_estimate rate) {
    return (sl_estimate){amount.value / rate.value, amount.low / rate.high, amount.high / rate.low};
}

static sl_estimate load_seconds(const sl_rates *rates, const sl_measure *measure) {
    sl_estimate a = seconds_for(measure->documents, rates->documents);
    if (isnan(rates->bson_bytes.value))
        return a;
    sl_estimate b = seconds_for(measure->bson_bytes, rates->bson_bytes);
    return (sl_estimate){(a.value + b.value) / 2, fmin(a.low, b.low), fmax(a.high, b.high)};
}

static void add(sl_plan_times *prediction, const char *name, sl_estimate seconds, const char *why) {
    size_t i = prediction->count++;
    prediction->phases[i].name = name;
    prediction->phases[i].seconds = seconds;
    prediction->phases[i].why = isnan(seconds.value) ? why : "";
    if (isnan(seconds.value))
        prediction->complete = false;
    else
        prediction->seconds = sl_estimate_sum(prediction->seconds, seconds);
}

void sl_predict(const sl_rates *rates, const sl_measure *measure, size_t steps, size_t indexes,
                bool verify, sl_plan_times *prediction) {
    *prediction = (sl_plan_times){.complete = true};
    double fixed = (isnan(rates->connect_seconds) ? 0 : rates->connect_seconds) +
                   (isnan(rates->prepare_seconds) ? 0 : rates->prepare_seconds);
    add(prediction, SL_PHASE_PREPARE,
        sl_estimate_sum(sl_estimate_exactly(fixed),
                        sl_estimate_scaled(rates->step_seconds, (double)steps)),
        "");
    add(prediction, SL_PHASE_LOAD, load_seconds(rates, measure), "no rate is known");
    if (indexes > 0)
        add(prediction, SL_PHASE_INDEXES,
            isnan(rates->index_documents.value)
                ? unknown
                : sl_estimate_scaled(seconds_for(measure->documents, rates->index_documents),
                                     (double)indexes),
            "the run with these rates built no index");
    if (verify)
        add(prediction, SL_PHASE_VERIFY,
            isnan(rates->verify_documents.value)
                ? unknown
                : seconds_for(measure->documents, rates->verify_documents),
            "the run with these rates verified nothing");
}
