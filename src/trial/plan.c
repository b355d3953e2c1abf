/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload plan`: rates of earlier loads, and the times that they predict; a plan as text; its
 * record, plan.json. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "report/lookup.h"
#include "report/report.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/document_id.h"
#include "util/load_counts.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text_table.h"

/* ---- rates, and predicted times ----
 *
 * Reads rates from the records of earlier runs, and predicts times from them.
 *
 * The range of a load's rate extends from its slowest to its fastest fifth of the time; for a load
 * too short to have fifths it is SHORT to each side. Rates measured once (distribution, indexes,
 * verification) get a range of ONCE to each side, which is a guess. */

#define PARTS 5
#define SHORT 0.25
#define ONCE 0.3
/* Seconds for a split or a move, for records without "distribution". */
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
    double distribution = sl_look_number(record, "distribution.seconds");
    double steps = sl_look_number(record, "distribution.steps");
    double prepare = phase_seconds(record, SL_PHASE_PREPARE),
           indexes = phase_seconds(record, SL_PHASE_INDEXES);
    double verify = phase_seconds(record, SL_PHASE_VERIFY),
           connect = phase_seconds(record, SL_PHASE_CONNECT);
    const char *unverified = sl_look_text(record, "options.no-verify");
    rates->connect_seconds = connect;
    rates->prepare_seconds = isnan(distribution) ? prepare : prepare - distribution;
    rates->step_seconds = steps > 0 ? around(distribution / steps, ONCE) : no_rates.step_seconds;
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
    double documents = sl_look_documents(record, "accounting");
    double stored = sl_look_amount(record, "accounting.alreadyStored", 0);
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
    if (sl_look_documents(record, "accounting.earlierRuns") > 0)
        return unusable(path, "its load was completed by --resume: its rate is unknown", error);
    if (stored > documents / 2)
        return unusable(path, "most of its documents were stored before", error);
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
        double low = sl_look_number(&setting, "low"), high = sl_look_number(&setting, "high");
        rates->documents = isnan(low) || isnan(high)
                               ? around(rate, SHORT)
                               : (sl_estimate){rate, fmin(rate, low), fmax(rate, high)};
        double records = sl_look_number(record, "sample.records");
        double each = sl_look_number(record, "sample.bsonBytes") / records;
        if (each > 0)
            rates->bson_bytes = sl_estimate_scaled(rates->documents, each);
        if (!(rate > 0))
            continue;
        snprintf(rates->write_concern, sizeof rates->write_concern, "%s",
                 sl_look_string(&setting, "writeConcern"));
        return true;
    }
    return unusable(path, "it recommends no setting", error);
}

static bool is_plausible(const sl_estimate *rate) {
    return isnan(rate->value) || (rate->low > 0 && rate->low <= rate->value &&
                                  rate->value <= rate->high && rate->high < INFINITY);
}

/* Are all figures of the record possible? */
static bool check_rates(const sl_rates *rates, const char *path, sl_error *error) {
    const sl_estimate *const all[] = {&rates->documents, &rates->bson_bytes, &rates->step_seconds,
                                      &rates->index_documents, &rates->verify_documents};
    bool ok = !(rates->connect_seconds < 0) && !(rates->prepare_seconds < 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ok = ok && is_plausible(all[i]);
    return ok || unusable(path, "it has a rate or a time that is zero or negative", error);
}

/* What the rates depend on besides the data. */
static void take_conditions(const bson_t *record, sl_rates *rates) {
    snprintf(rates->deployment, sizeof rates->deployment, "%s",
             sl_look_string(record, "server.deployment"));
    if (!rates->write_concern[0])
        snprintf(rates->write_concern, sizeof rates->write_concern, "%s",
                 sl_look_string(record, "options.write-concern"));
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
    ok = ok && check_rates(rates, path, error);
    take_conditions(record, rates);
    if (ok) { /* the host name in a record is untrusted */
        char file[200], from[64] = "";
        sl_text_printable(sl_text_of(path), file, sizeof file);
        sl_text_printable(sl_text_of(host ? host : ""), from, sizeof from);
        snprintf(rates->from, sizeof rates->from, "the %s in %s%s%s", command, file,
                 *from ? ", from " : "", from);
    }
    return ok;
}

/* Reads the record of --from and its rates. Destroy `record` on success. */
static bool read_record(const char *path, bson_t **record, sl_rates *rates, sl_error *error) {
    char shown[300];
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    if (!sl_json_read_file(path, record, error)) {
        if (error->code != SL_EXIT_RESOURCES)
            error->code = SL_EXIT_USAGE;
        return sl_error_prefix(error, "--from");
    }
    if (!sl_rates_from_record(*record, shown, rates, error)) {
        bson_destroy(*record);
        return false;
    }
    static const char *const bounds[] = {"rate-limit", "part", "only-shards"};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        char path_of[32];
        snprintf(path_of, sizeof path_of, "options.%s", bounds[i]);
        const char *value = sl_look_string(*record, path_of);
        if (*value && strcmp(value, "unlimited") != 0)
            sl_log_warning("%s: the load had --%s %.20s; the predicted times hold for a load with "
                           "this option only",
                           shown, bounds[i], value);
    }
    return true;
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

/* ---- the plan as text ----
 *
 * A plan as text: tables of sources and phases, and the layout as bars. */

#define SOURCES_SHOWN 20
#define RANGES_BAR 64 /* characters for the stripes of a source, 4 stripes each */
#define SHARE_BAR 40
#define SHARDS_SHOWN 64

/* The characters that represent shards in the bars. */
static const char shard_signs[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static char sign_of(uint32_t shard) {
    return shard < sizeof shard_signs - 1 ? shard_signs[shard] : '+';
}

static char *count(double value, char out[SL_HUMAN_ROOM]) {
    return sl_human_count((uint64_t)(value + 0.5), out);
}

static void add_range(sl_text_table *table, const sl_estimate *figure, bool exact,
                      char *(*text)(double value, char out[SL_HUMAN_ROOM])) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    if (exact || figure->low == figure->high)
        sl_text_table_cell(table, "exactly");
    else
        sl_text_table_cell(table, "%s to %s", text(figure->low, low), text(figure->high, high));
}

static void add_row(sl_text_table *table, const char *name, const char *format, uint64_t stored,
                    bool generated, bool exact, const sl_measure *measure) {
    double documents = measure->documents.value;
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%s", format);
    sl_text_table_number(table, generated ? NAN : (double)stored);
    sl_text_table_number(table, generated ? NAN : measure->text_bytes.value);
    sl_text_table_number(table, documents);
    add_range(table, &measure->documents, false, count);
    sl_text_table_number(table, measure->bson_bytes.value);
    add_range(table, &measure->bson_bytes, exact, sl_human_bytes);
    sl_text_table_cell(table, "%.0f", documents > 0 ? measure->bson_bytes.value / documents : 0);
    sl_text_table_cell(table, "%.3g %%", 100 * measure->rejects_share);
}

static void print_sources(const sl_preview *preview, FILE *out) {
    static const sl_text_column columns[] = {
        {"source", .left = true},
        {"format", .left = true},
        {"stored", .unit = SL_UNIT_BYTES},
        {"text", .unit = SL_UNIT_BYTES},
        {"documents", .unit = SL_UNIT_COUNT},
        {"range", .left = true},
        {"BSON", .unit = SL_UNIT_BYTES},
        {"range", .left = true},
        {.title = "average"},
        {.title = "rejects"},
        {0},
    };
    char a[SL_HUMAN_ROOM];
    uint64_t stored = 0, looked_at = 0;
    sl_text_table *table = sl_text_table_create(columns);
    for (size_t i = 0; i < preview->source_count; i++) {
        const sl_preview_source *source = &preview->sources[i];
        const char *name = strrchr(source->name, '/');
        stored += source->stored_bytes;
        looked_at += source->sampled;
        if (i < SOURCES_SHOWN)
            add_row(table, name && name[1] && source->record_bytes == 0 ? name + 1 : source->name,
                    source->format, source->stored_bytes, source->record_bytes > 0, source->exact,
                    &source->measure);
    }
    if (preview->source_count > SOURCES_SHOWN) {
        sl_text_table_cell(table, "... and %s more",
                           sl_human_count(preview->source_count - SOURCES_SHOWN, a));
        sl_text_table_end_row(table);
    }
    if (preview->source_count > 1)
        add_row(table, "total", "", stored, preview->generated, false, &preview->all);
    sl_print_to(out, "%s; sampled %s of about %s of 1 MiB",
                sl_plural(preview->source_count, "source"),
                sl_human_count(preview->all.blocks_read, a),
                sl_plural((uint64_t)preview->all.blocks, "block"));
    if (looked_at < preview->source_count)
        sl_print_to(out, ", from %s of the sources", sl_human_count(looked_at, a));
    sl_print_to(out, "\n");
    sl_text_table_print(table, out, 2);
}

/* ---- the target and its layout ---- */

static const char *layout_text(sl_preview_layout layout) {
    static const char *const texts[] = {
        "not sharded",
        "ranges are split and placed before the load",
        "the server distributes it, evenly if the key has many values",
        "shares as the sampled documents fall into the existing chunks",
        "a single chunk: ALL DOCUMENTS GO TO ONE SHARD until the balancer moves them; split the "
        "chunk before the load, or shard by _id or a hashed key",
        "the collection is split before the load at quantiles of a sample of the key"};
    return texts[layout];
}

static void print_balancer(const sl_balancer_view *balancer, FILE *out) {
    bool on = strcmp(balancer->mode, "full") == 0;
    char names[sizeof balancer->names];
    if (!balancer->mode[0])
        return;
    sl_print_to(out, "  the balancer is %s%s\n", on ? "on" : "off",
                on ? "; the load stops it and then restores it" : "");
    if (balancer->holders == 0)
        return;
    sl_text_printable(sl_text_of(balancer->names), names, sizeof names);
    sl_print_to(out, "  it was %s before loads stopped it: %s\n",
                strcmp(balancer->before, "full") == 0 ? "on" : "off", names);
    if (balancer->dead == balancer->holders)
        sl_print_to(out, "  all of these loads have ended: the next load restores it\n");
}

/* Prints what a load changes in the collection: its sharding and its indexes. */
static void print_changes(const sl_preview *preview, const sl_load_config *config, FILE *out) {
    static const char *const changes[] = {
        [SL_SHARDING_NONE] = NULL,
        [SL_SHARDING_NEW] = NULL,
        [SL_SHARDING_EXISTING] = "exists unsharded: --shard-existing SHARDS IT by",
        [SL_SHARDING_LEFT] =
            "exists unsharded and stays unsharded; --shard-existing would shard it by"};
    if (preview->target.exists && !preview->refusal.code && changes[preview->target.change]) {
        char *key = sl_document_json(preview->shard_key);
        sl_print_to(out, "  it %s %s\n", changes[preview->target.change], key);
        bson_free(key);
    }
    for (size_t i = 0; i < config->index_count; i++) {
        char *key = sl_index_shown(config->indexes[i]);
        sl_print_to(out, "  index %s is built %s the load, unless it exists\n", key,
                    sl_look_flag(config->indexes[i], "unique") ? "before" : "after");
        bson_free(key);
    }
}

static void print_target(const sl_preview *preview, const sl_load_config *config, FILE *out) {
    if (!preview->connection) {
        sl_print_to(out, "\nno cluster (--uri) given: planned for %s\n",
                    sl_plural(preview->shards, "empty shard"));
        return;
    }
    const sl_server *server = sl_connection_server(preview->connection);
    sl_print_to(out, "\n%s: %s, server %s\n", sl_connection_display_uri(preview->connection),
                sl_deployment_name(server->deployment), server->version);
    sl_print_to(out, "  %s.%s %s\n", config->database, config->collection,
                preview->target.capped
                    ? "is a capped collection: when it is full, servers remove its oldest documents"
                : preview->target.exists && sl_load_mode(config)->matches
                    ? "exists: its documents are compared with the records"
                : preview->target.exists ? "exists: documents are added to it"
                : config->drop           ? "is dropped, if it exists, and created"
                                         : "is created");
    print_changes(preview, config, out);
    print_balancer(&preview->balancer, out);
}

/* Prints one row per source: the shards of its ids, from its first stripe to its last. */
static void draw_ranges(const sl_preview *preview, FILE *out) {
    sl_print_to(out,
                "\n  ids of each source, in order; each character stands for 1/64 of them and is "
                "the shard's\n  character in the table below\n");
    for (size_t i = 0; i < preview->source_count && i < SOURCES_SHOWN; i++) {
        char bar[RANGES_BAR + 1] = "";
        uint32_t number = preview->sources[i].number;
        size_t range = 0;
        for (uint32_t column = 0; column < RANGES_BAR; column++) {
            int64_t id = sl_stripe_first_id(number, column * (SL_STRIPES / RANGES_BAR));
            while (range + 1 < preview->range_count &&
                   preview->ranges[range + 1].range.minimum <= id)
                range++;
            bar[column] =
                preview->ranges[range].stays ? '=' : sign_of(preview->ranges[range].shard);
        }
        sl_print_to(out, "  #%-6u |%s|\n", number, bar);
    }
    if (preview->source_count > SOURCES_SHOWN)
        sl_print_to(out, "  ... and %zu more\n", preview->source_count - SOURCES_SHOWN);
}

static void draw_shares(const sl_preview *preview, FILE *out) {
    static const sl_text_column columns[] = {
        {"shard", .left = true, .least = 14},
        {"documents", .least = 14},
        {"BSON", .least = 9, .unit = SL_UNIT_BYTES},
        {"share", .least = 7},
        {"", .left = true},
        {0},
    };
    double most = 0;
    sl_text_table *table = sl_text_table_create(columns);
    for (uint32_t i = 0; i < preview->shards; i++)
        most = fmax(most, preview->shard_share[i]);
    for (uint32_t i = 0; i < preview->shards && i < SHARDS_SHOWN; i++) {
        char bar[SHARE_BAR + 1] = "";
        double share = preview->shard_share[i];
        size_t length = most > 0 ? (size_t)(share / most * SHARE_BAR + 0.5) : 0;
        memset(bar, '#', length);
        sl_text_table_cell(table, "%c %.40s", sign_of(i),
                           preview->topology ? preview->topology->shards[i].name : "");
        sl_text_table_number(table, share * preview->all.documents.value);
        sl_text_table_number(table, share * preview->all.bson_bytes.value);
        sl_text_table_cell(table, "%.1f %%", 100 * share);
        sl_text_table_cell(table, "%s", bar);
    }
    sl_print_to(out, "\n");
    sl_text_table_rule(table, NULL);
    sl_text_table_print(table, out, 2);
    if (preview->shards > SHARDS_SHOWN)
        sl_print_to(out, "  ... and %u more\n", preview->shards - SHARDS_SHOWN);
}

static void print_layout(const sl_preview *preview, FILE *out) {
    if (preview->shards == 1 && preview->layout == SL_LAYOUT_RANGES) {
        sl_print_to(out, "  one shard: no ranges to distribute\n");
        return;
    }
    bool sharded = preview->layout != SL_LAYOUT_UNSHARDED && preview->shard_key;
    char *key = sharded ? sl_document_json(preview->shard_key) : NULL;
    sl_print_to(out, "  %s%s%s%s\n", key ? "sharded by " : "", key ? key : "", key ? ": " : "",
                layout_text(preview->layout));
    bson_free(key);
    if (preview->layout == SL_LAYOUT_RANGES) {
        sl_print_to(out, "  %s: %s and %s%s\n", sl_plural(preview->range_count, "range"),
                    sl_plural(preview->steps.splits, "split"),
                    sl_plural(preview->steps.moves, "move"),
                    preview->connection && !preview->home_known
                        ? " (estimated: the server chooses the first shard of the new database)"
                        : "");
        if (preview->steps.occupied > 0)
            sl_print_to(out,
                        "  %zu of them are not moved (=): they hold documents on another shard, or "
                        "have more than %d chunks\n",
                        preview->steps.occupied, SL_CHUNKS_MOVED_MOST);
        draw_ranges(preview, out);
    }
    if (preview->shards > 1)
        draw_shares(preview, out);
}

/* ---- times ---- */

static void print_times(const sl_plan_times *prediction, const char *from, FILE *out) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM];
    if (!prediction) {
        sl_print_to(
            out,
            "\nNo time is predicted: the speed of this cluster is not known. Give --from FILE with "
            "the\nrecord of `shardload tune` (tune.json) or of any load (run.json), or --rate "
            "DOCUMENTS_PER_SECOND.\n");
        return;
    }
    sl_print_to(out, "\npredicted time, from the rates of %s\n", from);
    for (size_t i = 0; i < prediction->count; i++) {
        const sl_estimate *seconds = &prediction->phases[i].seconds;
        if (isnan(seconds->value))
            sl_print_to(out, "  %-10s unknown: %s\n", prediction->phases[i].name,
                        prediction->phases[i].why);
        else
            sl_print_to(out, "  %-10s %14s  (%s to %s)\n", prediction->phases[i].name,
                        sl_human_seconds(seconds->value, a), sl_human_seconds(seconds->low, b),
                        sl_human_seconds(seconds->high, c));
    }
    sl_print_to(out, "  %-10s %14s  (%s to %s)%s\n", "total",
                sl_human_seconds(prediction->seconds.value, a),
                sl_human_seconds(prediction->seconds.low, b),
                sl_human_seconds(prediction->seconds.high, c),
                prediction->complete ? "" : ", without the phases of unknown time");
}

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

/* Warns if the rates were measured under other conditions than those of the planned load. */
static void warn_of_conditions(const sl_rates *rates, const sl_preview *preview,
                               const sl_load_config *load) {
    const char *deployment =
        preview->connection
            ? sl_deployment_name(sl_connection_server(preview->connection)->deployment)
            : rates->deployment;
    const char *concern = load->write_concern ? load->write_concern : "majority";
    bool other = rates->deployment[0] && strcmp(deployment, rates->deployment) != 0;
    if (!other && (!rates->write_concern[0] || strcmp(concern, rates->write_concern) == 0))
        return;
    sl_log_warning("the rates were measured on a %.24s with write concern %.16s, and this load is "
                   "for a %s with write concern %s: the predicted times and their ranges do not "
                   "hold",
                   rates->deployment, rates->write_concern, deployment, concern);
}

/* ---- plan.json ---- */

/* Appends a figure and its range: "records", "recordsLow", "recordsHigh". */
static void append_count(bson_t *document, const char *name, const sl_estimate *figure) {
    char key[40];
    INT64(document, name, figure->value + 0.5);
    snprintf(key, sizeof key, "%sLow", name);
    INT64(document, key, figure->low);
    snprintf(key, sizeof key, "%sHigh", name);
    INT64(document, key, ceil(figure->high));
}

static void append_measure(bson_t *document, const sl_measure *measure) {
    append_count(document, "records", &measure->records);
    append_count(document, "documents", &measure->documents);
    append_count(document, "textBytes", &measure->text_bytes);
    append_count(document, "bsonBytes", &measure->bson_bytes);
    BSON_APPEND_DOUBLE(
        document, "averageDocument",
        measure->documents.value > 0 ? measure->bson_bytes.value / measure->documents.value : 0);
    BSON_APPEND_DOUBLE(document, "rejectsShare", measure->rejects_share);
    INT64(document, "blocks", measure->blocks + 0.5);
    INT64(document, "blocksRead", measure->blocks_read);
}

static void record_server(const sl_preview *preview, bson_t *record) {
    bson_t section;
    sl_connection_record(preview->connection, record);
    const sl_balancer_view *balancer = &preview->balancer;
    if (balancer->mode[0]) {
        BSON_APPEND_DOCUMENT_BEGIN(record, "balancer", &section);
        BSON_APPEND_UTF8(&section, "now", balancer->mode);
        if (balancer->holders > 0) {
            BSON_APPEND_UTF8(&section, "before", balancer->before);
            BSON_APPEND_INT32(&section, "holders", (int32_t)balancer->holders);
            BSON_APPEND_INT32(&section, "endedHolders", (int32_t)balancer->dead);
            BSON_APPEND_UTF8(&section, "names", balancer->names);
        }
        bson_append_document_end(record, &section);
    }
}

static void record_sources(const sl_preview *preview, bson_t *record) {
    bson_t sources, item;
    BSON_APPEND_ARRAY_BEGIN(record, "sources", &sources);
    for (size_t i = 0; i < preview->source_count; i++) {
        const sl_preview_source *source = &preview->sources[i];
        sl_record_begin_item(&sources, i, &item);
        BSON_APPEND_UTF8(&item, "path", source->name);
        if (source->record_bytes == 0)
            INT64(&item, "storedBytes", source->stored_bytes);
        BSON_APPEND_UTF8(&item, "format", source->format);
        BSON_APPEND_UTF8(&item, "dialect", source->dialect);
        BSON_APPEND_INT32(&item, "number", (int32_t)source->number);
        BSON_APPEND_BOOL(&item, "sampled", source->sampled);
        append_measure(&item, &source->measure);
        bson_append_document_end(&sources, &item);
    }
    bson_append_array_end(record, &sources);
}

/* Appends the name of a shard, or without a cluster its index. */
static void append_shard(bson_t *item, const sl_preview *preview, uint32_t shard) {
    if (preview->topology)
        BSON_APPEND_UTF8(item, "shard", preview->topology->shards[shard].name);
    else
        BSON_APPEND_INT32(item, "shard", (int32_t)shard);
}

static void record_layout(const sl_preview *preview, bson_t *record) {
    static const char *const names[] = {"unsharded", "ranges", "hashed", "key", "one", "quantiles"};
    static const char *const changes[] = {[SL_SHARDING_NONE] = "as it is",
                                          [SL_SHARDING_NEW] = "new",
                                          [SL_SHARDING_EXISTING] = "existing",
                                          [SL_SHARDING_LEFT] = "left"};
    bson_t list, item, section;
    BSON_APPEND_DOCUMENT_BEGIN(record, "layout", &section);
    BSON_APPEND_UTF8(&section, "kind", names[preview->layout]);
    BSON_APPEND_BOOL(&section, "collectionExists", preview->target.exists);
    BSON_APPEND_UTF8(&section, "sharding", changes[preview->target.change]);
    if (preview->layout != SL_LAYOUT_UNSHARDED && preview->shard_key)
        BSON_APPEND_DOCUMENT(&section, "shardKey", preview->shard_key);
    INT64(&section, "splits", preview->steps.splits);
    INT64(&section, "moves", preview->steps.moves);
    INT64(&section, "occupied", preview->steps.occupied);
    bson_append_document_end(record, &section);
    BSON_APPEND_ARRAY_BEGIN(record, "ranges", &list);
    for (size_t i = 0; i < preview->range_count; i++) {
        const sl_preview_range *range = &preview->ranges[i];
        sl_record_begin_item(&list, i, &item);
        INT64(&item, "minimum", range->range.minimum);
        INT64(&item, "maximum", range->range.maximum);
        append_shard(&item, preview, range->shard);
        INT64(&item, "documents", range->documents + 0.5);
        if (range->stays)
            BSON_APPEND_BOOL(&item, "unchanged", true);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(record, &list);
    BSON_APPEND_ARRAY_BEGIN(record, "shards", &list);
    for (uint32_t i = 0; i < preview->shards; i++) {
        sl_record_begin_item(&list, i, &item);
        append_shard(&item, preview, i);
        BSON_APPEND_DOUBLE(&item, "share", preview->shard_share[i]);
        INT64(&item, "documents", preview->shard_share[i] * preview->all.documents.value + 0.5);
        INT64(&item, "bsonBytes", preview->shard_share[i] * preview->all.bson_bytes.value + 0.5);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(record, &list);
}

static void append_seconds(bson_t *document, const sl_estimate *seconds) {
    BSON_APPEND_DOUBLE(document, "seconds", seconds->value);
    BSON_APPEND_DOUBLE(document, "low", seconds->low);
    BSON_APPEND_DOUBLE(document, "high", seconds->high);
}

static void record_prediction(const sl_plan_times *prediction, const char *from, bson_t *record) {
    bson_t section, phases, item;
    BSON_APPEND_DOCUMENT_BEGIN(record, "predicted", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "phases", &phases);
    for (size_t i = 0; i < prediction->count; i++) {
        sl_record_begin_item(&phases, i, &item);
        BSON_APPEND_UTF8(&item, "name", prediction->phases[i].name);
        if (isnan(prediction->phases[i].seconds.value))
            BSON_APPEND_UTF8(&item, "unknownBecause", prediction->phases[i].why);
        else
            append_seconds(&item, &prediction->phases[i].seconds);
        bson_append_document_end(&phases, &item);
    }
    bson_append_array_end(&section, &phases);
    append_seconds(&section, &prediction->seconds);
    BSON_APPEND_BOOL(&section, "complete", prediction->complete);
    BSON_APPEND_UTF8(&section, "from", from);
    bson_append_document_end(record, &section);
}

/* Appends the plan to `record`. `prediction` and `from` are NULL when no rates are known. */
static void record_plan(const sl_preview *preview, const sl_plan_times *prediction,
                        const char *from, bson_t *record) {
    bson_t section;
    if (preview->connection)
        record_server(preview, record);
    record_sources(preview, record);
    BSON_APPEND_DOCUMENT_BEGIN(record, "estimate", &section);
    append_measure(&section, &preview->all);
    bson_append_document_end(record, &section);
    record_layout(preview, record);
    if (prediction)
        record_prediction(prediction, from, record);
    if (preview->refusal.code)
        BSON_APPEND_UTF8(record, "refused", preview->refusal.message);
}

/* ---- the command ---- */

static bool read_rates(const sl_plan_config *config, sl_rates *rates, bool *known,
                       sl_error *error) {
    *known = config->from != NULL || config->rate > 0;
    if (config->from) {
        bson_t *record;
        bool ok = read_record(config->from, &record, rates, error);
        if (ok)
            bson_destroy(record);
        return ok;
    }
    if (*known) {
        *rates = no_rates;
        rates->documents = sl_estimate_exactly(config->rate);
        snprintf(rates->from, sizeof rates->from, "--rate, which has no range");
    }
    return true;
}

static bool write_report(const sl_load_config *load, bson_t *record, sl_error *error) {
    return !load->report || sl_json_write_file(load->report, record, error);
}

/* Replaces the model's number and size of documents by those of the sources. */
static bool use_preview(const sl_preview *preview, sl_capacity_model *model, sl_error *error) {
    const sl_measure *all = &preview->all;
    static const char note[] = "a sample of the sources";
    size_t count = sl_capacity_find(model, "documents", 9);
    size_t size = sl_capacity_find(model, "document-bytes", 14);
    double documents = all->documents.value, each = all->bson_bytes.value / documents;
    if (count == model->input_count || size == model->input_count)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "sources replace the inputs documents and document-bytes, and this "
                            "model does not have both");
    if (documents < 1)
        return true;
    sl_capacity_replace(model, count, all->documents.low, documents, all->documents.high,
                        SL_ORIGIN_MEASURED, note);
    sl_capacity_replace(model, size, each, each, each, SL_ORIGIN_MEASURED, note);
    model->other_data = true;
    return true;
}

/* The value of an input; 0: the model does not have it. */
static double input_named(const sl_capacity_model *model, const char *name) {
    size_t input = sl_capacity_find(model, name, strlen(name));
    return input < model->input_count ? model->inputs[input].value : 0;
}

bool sl_model_use_record(sl_capacity_model *model, const char *path, sl_error *error) {
    sl_rates rates;
    bson_t *record;
    if (!read_record(path, &record, &rates, error))
        return false;
    bson_t inside; /* the load of a reload */
    const bson_t *load = sl_look_inside(record, "load", &inside) ? &inside : record;
    double shards = (double)sl_walk_count(load, "shards");
    double documents = sl_look_documents(load, "accounting");
    double each = sl_look_number(load, "accounting.bsonBytes") / documents;
    bson_destroy(record);
    shards = shards > 0 ? shards : 1;
    size_t rate = sl_capacity_find(model, "shard-rate", 10);
    if (rate == model->input_count || !(documents > 0))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--from gives the figures of a load to a model with the input "
                            "shard-rate, such as the model cluster");
    /* The rate of one shard alone, by the law with which the model computes that of several. */
    double speed = sl_capacity_speed(shards, input_named(model, "shard-contention"),
                                     input_named(model, "shard-coherency"));
    const struct {
        const char *name, *note;
        sl_estimate value;
    } rows[] = {
        {"documents", "", sl_estimate_exactly(documents)},
        {"document-bytes", "of BSON", sl_estimate_exactly(each)},
        {"shards", "", sl_estimate_exactly(shards)},
        {"shard-rate", "of one shard", sl_estimate_scaled(rates.documents, 1 / speed)},
        {"members", "the rate contains all members", sl_estimate_exactly(1)},
        {"fixed", "", sl_estimate_exactly(rates.connect_seconds + rates.prepare_seconds)},
        {"index-rate", "of one shard", sl_estimate_scaled(rates.index_documents, 1 / shards)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t input = sl_capacity_find(model, rows[i].name, strlen(rows[i].name));
        sl_estimate value = rows[i].value;
        if (input < model->input_count && !isnan(value.value))
            sl_capacity_replace(model, input, value.low, value.value, value.high,
                                SL_ORIGIN_MEASURED, rows[i].note);
    }
    return true;
}

sl_exit sl_plan_run(const sl_plan_config *config) {
    const sl_load_config *load = config->load;
    sl_error error = {0};
    sl_rates rates;
    sl_plan_times prediction;
    sl_preview *preview = NULL;
    bool known = false;
    bson_t record = BSON_INITIALIZER;
    sl_record_head(&record, "plan", load->program_version, sl_wall_clock_ms(), load->options);
    bool ok = (!load->report || sl_private_file_may_replace(load->report, &error)) &&
              read_rates(config, &rates, &known, &error) &&
              sl_preview_create(load, config->shards, config->blocks, &preview, &error);
    if (ok) {
        if (known)
            sl_predict(&rates, &preview->all, preview->steps.splits + preview->steps.moves,
                       load->index_count, load->verify, &prediction);
        print_sources(preview, sl_output());
        print_target(preview, load, sl_output());
        print_layout(preview, sl_output());
        print_times(known ? &prediction : NULL, known ? rates.from : NULL, sl_output());
        if (known)
            warn_of_conditions(&rates, preview, load);
        fflush(sl_output());
        record_plan(preview, known ? &prediction : NULL, known ? rates.from : NULL, &record);
        if (preview->refusal.code)
            sl_log_error("a load would refuse to start: " SL_LINES, preview->refusal.message);
        sl_record_tail(&record, preview->refusal.code);
        if (load->run_record)
            bson_concat(load->run_record, &record);
        ok = write_report(load, &record, &error);
    }
    if (!ok) {
        sl_error_missing(&error, "the plan");
        sl_log_error(SL_LINES, error.message);
    }
    sl_exit code = !ok ? error.code : preview->refusal.code;
    sl_preview_destroy(preview);
    bson_destroy(&record);
    return code;
}

sl_exit sl_plan_run_model(const sl_model_config *config) {
    const sl_load_config *load = config->load;
    sl_error error = {0};
    sl_capacity_model model = *config->model;
    sl_preview *preview = NULL;
    bson_t record = BSON_INITIALIZER, section;
    const bson_t *const records[] = {&record};
    const char *const names[] = {model.name};
    const sl_report report = {.records = records, .names = names, .count = 1};
    sl_record_head(&record, "plan", load->program_version, sl_wall_clock_ms(), load->options);
    bool ok = !load->report || sl_private_file_may_replace(load->report, &error);
    if (ok && (load->path_count > 0 || load->format_options.ycsb.records > 0))
        ok = sl_preview_create(load, 1, config->blocks, &preview, &error) &&
             use_preview(preview, &model, &error);
    BSON_APPEND_DOCUMENT_BEGIN(&record, "capacity", &section);
    ok = ok && sl_capacity_append(&section, &model, config->sweep, config->sweep_values,
                                  config->sweep_count, &error);
    bson_append_document_end(&record, &section);
    sl_record_tail(&record, SL_EXIT_OK);
    ok = ok && sl_report_text(&report, &(sl_report_terminal){.columns = 160, .ascii = true},
                              sl_output(), &error);
    if (ok && load->run_record)
        bson_concat(load->run_record, &record);
    ok = ok && write_report(load, &record, &error);
    if (!ok) {
        sl_error_missing(&error, "the plan");
        sl_log_error(SL_LINES, error.message);
    }
    sl_preview_destroy(preview);
    bson_destroy(&record);
    return ok ? SL_EXIT_OK : error.code;
}
