/* SPDX-License-Identifier: Apache-2.0 */
/* Reads rates from the records of earlier runs, and predicts times from them.
 *
 * The range of a load's rate extends from its slowest to its fastest fifth of the time; for a load
 * too short to have fifths it is SHORT to each side. Rates measured once (placing, indexes,
 * verification) get a range of ONCE to each side, which is a guess. */
#include "plan.h"

#include <math.h>
#include <string.h>

#include "report/json.h"
#include "report/lookup.h"
#include "util/phase_names.h"
#include "util/text.h"

#define PARTS 5
#define SHORT 0.25
#define ONCE 0.3
/* Seconds for a split or a move, for records without "placing". */
#define STEP                                                                                       \
    { 0.1, 0.03, 0.5 }
#define UNKNOWN                                                                                    \
    { NAN, NAN, NAN }

static const sl_rates no_rates = {.documents = UNKNOWN,
                                  .bson_bytes = UNKNOWN,
                                  .connect_seconds = NAN,
                                  .prepare_seconds = NAN,
                                  .step_seconds = STEP,
                                  .index_documents = UNKNOWN,
                                  .verify_documents = UNKNOWN};

static double phase_seconds(const bson_t *record, const char *name) {
    return sl_look_phase_seconds(record, "phases", name);
}

static sl_estimate around(double value, double share) {
    return (sl_estimate){value, value * (1 - share), value * (1 + share)};
}

/* ---- the rate of a load ---- */

/* The value of `key` at `time`, interpolated between two points of the series. */
static double reached_at(const bson_t *record, const char *key, double time) {
    double seconds_before = 0, before = 0;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);) {
        double seconds = sl_look_number(&walk.item, "seconds");
        double reached = sl_look_number(&walk.item, key);
        if (seconds >= time)
            return seconds > seconds_before
                       ? before + (reached - before) * (time - seconds_before) /
                                      (seconds - seconds_before)
                       : reached;
        seconds_before = seconds;
        before = reached;
    }
    return before;
}

/* The rate of `all` in `seconds`, with the rates of the slowest and the fastest fifth as range. */
static sl_estimate rate_of(const bson_t *record, const char *key, double all, double seconds) {
    sl_estimate rate = around(all / seconds, SHORT);
    double end = NAN;
    if (sl_walk_count(record, "series") < PARTS)
        return rate;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);)
        end = sl_look_number(&walk.item, "seconds");
    if (!(end > 0))
        return rate;
    rate.low = rate.high = rate.value;
    double before = 0;
    for (int i = 1; i <= PARTS; i++) {
        double reached = reached_at(record, key, end * i / PARTS);
        double part = (reached - before) * PARTS / end;
        rate.low = part > 0 ? fmin(rate.low, part) : rate.low;
        rate.high = fmax(rate.high, part);
        before = reached;
    }
    return rate;
}

/* ---- kinds of records ---- */

static bool unusable(const char *path, const char *why, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s: %s; --from needs the record of a completed load (run.json), reload or "
                        "tune",
                        path, why);
}

/* Reads the rates of the phases besides the load phase. */
static void take_phases(const bson_t *record, double documents, sl_rates *rates) {
    double placing = sl_look_number(record, "placing.seconds");
    double steps = sl_look_number(record, "placing.steps");
    double prepare = phase_seconds(record, SL_PHASE_PREPARE),
           indexes = phase_seconds(record, SL_PHASE_INDEXES);
    double verify = phase_seconds(record, SL_PHASE_VERIFY),
           connect = phase_seconds(record, SL_PHASE_CONNECT);
    const char *unverified = sl_look_text(record, "options.no-verify");
    rates->connect_seconds = connect;
    rates->prepare_seconds = isnan(placing) ? prepare : prepare - placing;
    rates->step_seconds = steps > 0 ? around(placing / steps, ONCE) : no_rates.step_seconds;
    double built = sl_look_text(record, "options.index") ? 1 : 0;
    bson_t list;
    if (sl_look_inside(record, "options.index", &list))
        built = bson_count_keys(&list);
    if (built > 0 && indexes > 0)
        rates->index_documents = around(documents * built / indexes, ONCE);
    if (verify > 0 && unverified && strcmp(unverified, "false") == 0)
        rates->verify_documents = around(documents / verify, ONCE);
}

static bool from_load(const bson_t *record, const char *path, sl_rates *rates, sl_error *error) {
    double documents = sl_look_number(record, "accounting.inserted");
    double bytes = sl_look_number(record, "accounting.bsonBytes");
    double seconds = phase_seconds(record, SL_PHASE_LOAD),
           code = sl_look_number(record, "exitCode");
    const char *sink = sl_look_text(record, "options.sink");
    if (!(documents > 0) || !(seconds > 0))
        return unusable(path, "it contains no load", error);
    if (code != SL_EXIT_OK && code != SL_EXIT_REJECTS)
        return unusable(path, "its load did not complete", error);
    if (sink && strcmp(sink, "cluster") != 0)
        return unusable(path, "its load did not write to a cluster", error);
    if (sl_look_number(record, "accounting.ofThoseByEarlierRuns.inserted") > 0)
        return unusable(path, "its load was completed by --resume: its rate is unknown", error);
    rates->documents = rate_of(record, "documents", documents, seconds);
    rates->bson_bytes = rate_of(record, "bsonBytes", bytes, seconds);
    take_phases(record, documents, rates);
    return true;
}

static bool from_tune(const bson_t *record, const char *path, sl_rates *rates, sl_error *error) {
    static const char *const choices[] = {"recommended", "best"};
    double code = sl_look_number(record, "exitCode");
    if (code != SL_EXIT_OK && code != SL_EXIT_REJECTS)
        return unusable(path, "its tuning did not complete", error);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        double index = sl_look_number(record, choices[i]);
        char where[48];
        bson_t setting;
        if (isnan(index) || index < 0)
            continue;
        snprintf(where, sizeof where, "settings.%.0f", index);
        if (!sl_look_inside(record, where, &setting))
            continue;
        double rate = sl_look_number(&setting, "rate");
        rates->documents = (sl_estimate){rate, fmin(rate, sl_look_number(&setting, "low")),
                                         fmax(rate, sl_look_number(&setting, "high"))};
        double records = sl_look_number(record, "sample.records");
        double each = sl_look_number(record, "sample.bsonBytes") / records;
        if (each > 0)
            rates->bson_bytes = sl_estimate_scaled(rates->documents, each);
        if (rate > 0)
            return true;
    }
    return unusable(path, "it recommends no setting", error);
}

bool sl_rates_from_record(const bson_t *record, const char *path, sl_rates *rates,
                          sl_error *error) {
    const char *command = sl_look_text(record, "command");
    const char *host = sl_look_text(record, "client.host");
    bson_t load;
    *rates = no_rates;
    if (!command) /* old records of loads have no "command" */
        command = "load";
    bool ok;
    if (strcmp(command, "reload") == 0)
        ok = sl_look_inside(record, "load", &load) ? from_load(&load, path, rates, error)
                                                   : unusable(path, "it contains no load", error);
    else if (strcmp(command, "tune") == 0)
        ok = from_tune(record, path, rates, error);
    else if (strcmp(command, "load") == 0)
        ok = from_load(record, path, rates, error);
    else
        ok = unusable(path, "it is the record of another command", error);
    if (ok) { /* the host name in a record is untrusted */
        char file[200], from[64] = "";
        sl_text_printable(sl_text_of(path), file, sizeof file);
        sl_text_printable(sl_text_of(host ? host : ""), from, sizeof from);
        snprintf(rates->from, sizeof rates->from, "the %s in %s%s%s", command, file,
                 *from ? ", from " : "", from);
    }
    return ok;
}

bool sl_rates_read(const char *path, sl_rates *rates, sl_error *error) {
    bson_t *record;
    char shown[300];
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    if (!sl_json_read_file(path, &record, error)) {
        if (error->code != SL_EXIT_RESOURCES)
            error->code = SL_EXIT_USAGE;
        return sl_error_prefix(error, "--from");
    }
    bool ok = sl_rates_from_record(record, shown, rates, error);
    bson_destroy(record);
    return ok;
}

void sl_rates_from_number(double documents_per_second, sl_rates *rates) {
    *rates = no_rates;
    rates->documents = sl_estimate_exactly(documents_per_second);
    snprintf(rates->from, sizeof rates->from, "--rate, which has no range");
}

/* ---- predicted times ----
 *
 * If the size of the documents differs from the earlier load, the true time lies between the times
 * computed from documents per second and from bytes per second. The prediction is the mean of both
 * times, and the range covers both. */

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
            sl_estimate_scaled(seconds_for(measure->documents, rates->index_documents),
                               (double)indexes),
            "the run with these rates built no index");
    if (verify)
        add(prediction, SL_PHASE_VERIFY, seconds_for(measure->documents, rates->verify_documents),
            "the run with these rates verified nothing");
}
