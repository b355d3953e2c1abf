/* SPDX-License-Identifier: Apache-2.0 */
/* Loads: their entries in a report, the table and the notes on standard output. */
#include "query_load.h"

#include <inttypes.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/context.h"
#include "util/print.h"
#include "util/text_table.h"

#include "report.h"

static const struct {
    const char *key, *title;
    double quantile;
} percentiles[] = {{"p50", "p50 ms", 0.5},
                   {"p90", "p90 ms", 0.9},
                   {"p95", "p95 ms", 0.95},
                   {"p99", "p99 ms", 0.99},
                   {"p99_9", "p99.9 ms", 0.999}};
#define PERCENTILES (sizeof percentiles / sizeof percentiles[0])
#define LABEL_ROOM 280
#define CURVE_POINTS 17 /* quantiles 1 - 2^-1 ... 1 - 2^-17 */

static double milliseconds(uint64_t nanoseconds) {
    return (double)nanoseconds / 1e6;
}

bool sl_load_adds_up(const sl_load_outcome *outcome) {
    const sl_load_figures *all = &outcome->figures[outcome->count];
    return all->attempted == all->succeeded + all->failed + all->skipped &&
           all->latency.count == all->succeeded;
}

/* ---- the report ---- */

static bool append_histogram(bson_t *document, const char *name, const sl_histogram *histogram) {
    bson_t part;
    if (histogram->count == 0)
        return true;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(document, name, &part) &&
              BSON_APPEND_INT64(&part, "count", (int64_t)histogram->count) &&
              BSON_APPEND_DOUBLE(&part, "mean", sl_histogram_mean(histogram) / 1e6) &&
              BSON_APPEND_DOUBLE(&part, "min", milliseconds(histogram->minimum));
    for (size_t i = 0; ok && i < PERCENTILES; i++) {
        if (sl_histogram_supports(histogram, percentiles[i].quantile))
            ok = BSON_APPEND_DOUBLE(
                &part, percentiles[i].key,
                milliseconds(sl_histogram_quantile(histogram, percentiles[i].quantile)));
    }
    return ok && BSON_APPEND_DOUBLE(&part, "max", milliseconds(histogram->maximum)) &&
           bson_append_document_end(document, &part);
}

/* Appends "latencyCurve": [[quantile, milliseconds], ...] for the quantiles 0.5, 0.75, 0.875 ...
 * that the histogram supports. */
static bool append_curve(bson_t *document, const sl_histogram *histogram) {
    bson_t list, point;
    double above = 1;
    bool ok = BSON_APPEND_ARRAY_BEGIN(document, "latencyCurve", &list);
    for (uint32_t i = 0; ok && i < CURVE_POINTS; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        above /= 2;
        if (!sl_histogram_supports(histogram, 1 - above))
            break;
        ok = bson_append_array_begin(&list, sl_array_key(i, room), -1, &point) &&
             BSON_APPEND_DOUBLE(&point, "0", 1 - above) &&
             BSON_APPEND_DOUBLE(&point, "1",
                                milliseconds(sl_histogram_quantile(histogram, 1 - above))) &&
             bson_append_array_end(&list, &point);
    }
    return ok && bson_append_array_end(document, &list);
}

static bool append_figures(bson_t *entry, const sl_load_figures *figures, double seconds) {
    return BSON_APPEND_INT64(entry, "attempted", (int64_t)figures->attempted) &&
           BSON_APPEND_INT64(entry, "succeeded", (int64_t)figures->succeeded) &&
           BSON_APPEND_INT64(entry, "failed", (int64_t)figures->failed) &&
           BSON_APPEND_INT64(entry, "skipped", (int64_t)figures->skipped) &&
           (!(seconds > 0) || BSON_APPEND_DOUBLE(entry, "operationsPerSecond",
                                                 (double)figures->succeeded / seconds)) &&
           BSON_APPEND_INT64(entry, "documentsReturned", (int64_t)figures->documents) &&
           BSON_APPEND_INT64(entry, "bytes", (int64_t)figures->bytes) &&
           append_histogram(entry, "latencyMs", &figures->latency) &&
           append_histogram(entry, "serviceMs", &figures->service) &&
           append_histogram(entry, "lagMs", &figures->lag);
}

/* Appends "overTime": for each figure an array with one value per slot. */
static bool append_slots(bson_t *entry, const sl_load_outcome *outcome) {
    static const char *const names[] = {"succeeded", "failed", "skipped", "meanMs", "maxMs"};
    bson_t part, list;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(entry, "overTime", &part) &&
              BSON_APPEND_DOUBLE(&part, "slotSeconds", outcome->slot_seconds);
    for (size_t column = 0; ok && column < sizeof names / sizeof names[0]; column++) {
        ok = BSON_APPEND_ARRAY_BEGIN(&part, names[column], &list);
        for (size_t i = 0; ok && i < outcome->slot_count; i++) {
            const sl_slot *slot = &outcome->slots[i];
            double mean = slot->succeeded ? (double)slot->latency_sum / (double)slot->succeeded : 0;
            const uint64_t counts[] = {slot->succeeded, slot->failed, slot->skipped};
            char room[SL_ARRAY_KEY_ROOM];
            const char *key = sl_array_key(i, room);
            ok = column < 3
                     ? BSON_APPEND_INT64(&list, key, (int64_t)counts[column])
                     : BSON_APPEND_DOUBLE(
                           &list, key, column == 3 ? mean / 1e6 : milliseconds(slot->latency_max));
        }
        ok = ok && bson_append_array_end(&part, &list);
    }
    return ok && bson_append_document_end(entry, &part);
}

static bool append_rows(bson_t *entry, const sl_load_step *step) {
    const sl_load_plan *plan = step->plan;
    bson_t list, item;
    bool ok = BSON_APPEND_ARRAY_BEGIN(entry, "operations", &list);
    for (uint32_t i = 0; ok && i < plan->mix_count; i++) {
        const sl_query *query = &plan->queries[plan->mix[i].query];
        ok = sl_record_begin_item(&list, i, &item) &&
             BSON_APPEND_UTF8(&item, "name", query->name) &&
             BSON_APPEND_UTF8(&item, "operation", sl_operation_name(query->operation)) &&
             BSON_APPEND_DOUBLE(&item, "weight", plan->mix[i].weight) &&
             (!query->pipeline || BSON_APPEND_ARRAY(&item, "pipeline", query->pipeline)) &&
             BSON_APPEND_DOCUMENT(&item, "body", query->body) &&
             append_figures(&item, &step->outcome->figures[i], step->outcome->seconds) &&
             bson_append_document_end(&list, &item);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool append_failures(bson_t *entry, const sl_load_outcome *outcome) {
    bson_t list, item;
    bool ok = BSON_APPEND_ARRAY_BEGIN(entry, "failures", &list);
    for (uint32_t i = 0; ok && i < outcome->failure_count; i++) {
        ok = sl_record_begin_item(&list, i, &item) &&
             BSON_APPEND_INT32(&item, "code", outcome->failures[i].code) &&
             BSON_APPEND_INT64(&item, "count", (int64_t)outcome->failures[i].count) &&
             BSON_APPEND_UTF8(&item, "message", outcome->failures[i].message) &&
             bson_append_document_end(&list, &item);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool append_monitor(bson_t *entry, const sl_monitor_figures *figures) {
    const sl_server_latencies *server = &figures->server;
    bson_t part, item;
    bool ok = true;
    if (server->known && server->reads + server->writes > 0) {
        ok = BSON_APPEND_DOCUMENT_BEGIN(entry, "server", &part) &&
             BSON_APPEND_INT64(&part, "reads", server->reads) &&
             BSON_APPEND_INT64(&part, "writes", server->writes) &&
             (server->reads == 0 || BSON_APPEND_DOUBLE(&part, "readMs",
                                                       (double)server->read_microseconds / 1e3 /
                                                           (double)server->reads)) &&
             (server->writes == 0 || BSON_APPEND_DOUBLE(&part, "writeMs",
                                                        (double)server->write_microseconds / 1e3 /
                                                            (double)server->writes)) &&
             bson_append_document_end(entry, &part);
    }
    ok = ok && BSON_APPEND_ARRAY_BEGIN(entry, "replicationLag", &part);
    for (uint32_t i = 0; ok && i < figures->member_count; i++) {
        const sl_member_lag *lag = &figures->members[i];
        ok = sl_record_begin_item(&part, i, &item) &&
             BSON_APPEND_UTF8(&item, "member", lag->name) &&
             BSON_APPEND_DOUBLE(&item, "meanSeconds", lag->sum / (double)lag->count) &&
             BSON_APPEND_DOUBLE(&item, "maxSeconds", lag->max) &&
             bson_append_document_end(&part, &item);
    }
    return ok && bson_append_array_end(entry, &part);
}

static bool fill(bson_t *entry, const sl_load_step *step) {
    const sl_load_plan *plan = step->plan;
    const sl_load_outcome *outcome = step->outcome;
    bson_t client;
    return BSON_APPEND_UTF8(entry, "suite", step->suite->name) &&
           BSON_APPEND_UTF8(entry, "name", step->name) &&
           BSON_APPEND_UTF8(entry, "database", plan->target.database) &&
           BSON_APPEND_UTF8(entry, "collection", plan->target.collection) &&
           (step->documents == 0 ||
            BSON_APPEND_INT64(entry, "documents", (int64_t)step->documents)) &&
           BSON_APPEND_UTF8(entry, "mode", plan->rate > 0 ? "open loop" : "closed loop") &&
           (!step->phase || BSON_APPEND_UTF8(entry, "phase", step->phase)) &&
           (plan->target.limit == 0 || BSON_APPEND_INT64(entry, "limit", plan->target.limit)) &&
           (!plan->target.read_preference ||
            BSON_APPEND_UTF8(entry, "readPreference", plan->target.read_preference)) &&
           BSON_APPEND_INT64(entry, "clients", plan->clients) &&
           (!(plan->rate > 0) || BSON_APPEND_DOUBLE(entry, "rate", plan->rate)) &&
           BSON_APPEND_DOUBLE(entry, "warmUpSeconds", plan->warm_up) &&
           BSON_APPEND_DOUBLE(entry, "seconds", outcome->seconds) &&
           append_figures(entry, &outcome->figures[outcome->count], outcome->seconds) &&
           append_curve(entry, &outcome->figures[outcome->count].latency) &&
           BSON_APPEND_DOUBLE(entry, "precision", SL_HISTOGRAM_PRECISION) &&
           append_rows(entry, step) && append_slots(entry, outcome) &&
           append_failures(entry, outcome) &&
           BSON_APPEND_DOCUMENT_BEGIN(entry, "client", &client) &&
           BSON_APPEND_DOUBLE(&client, "processorSeconds", outcome->client_cpu) &&
           append_histogram(&client, "stallMs", &outcome->stall) &&
           bson_append_document_end(entry, &client) && append_monitor(entry, step->monitor);
}

bool sl_load_report_append(bson_t *queries, const sl_load_step *step) {
    bson_t *entry = bson_new();
    return sl_report_add(queries, entry, fill(entry, step));
}

/* ---- the table ---- */

static void add_row(sl_text_table *table, const sl_load_step *step, const char *name,
                    const sl_load_figures *figures) {
    double seconds = step->outcome->seconds;
    if (step->phase)
        sl_text_table_cell(table, "%s", step->phase);
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%u", step->plan->clients);
    double rate = seconds > 0 ? (double)figures->succeeded / seconds : 0;
    sl_text_table_figure(table, seconds > 0, rate, rate < 100 ? 1 : 0);
    for (size_t i = 0; i < PERCENTILES; i++) {
        double quantile = percentiles[i].quantile;
        sl_text_table_figure(table, sl_histogram_supports(&figures->latency, quantile),
                             milliseconds(sl_histogram_quantile(&figures->latency, quantile)), 2);
    }
    sl_text_table_figure(table, figures->succeeded > 0, milliseconds(figures->latency.maximum), 2);
    const uint64_t counts[] = {figures->attempted, figures->succeeded, figures->failed,
                               figures->skipped};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        sl_text_table_number(table, (double)counts[i]);
}

bool sl_load_show(const sl_load_step *steps, size_t count) {
    static const sl_text_column when = {"when", .left = true};
    static const sl_text_column first[] = {
        {"query", .left = true}, {.title = "clients"}, {.title = "operations/s"}, {0}};
    static const sl_text_column last[] = {{.title = "max ms"},    {.title = "attempted"},
                                          {.title = "succeeded"}, {.title = "failed"},
                                          {.title = "skipped"},   {0}};
    sl_text_table *table = sl_text_table_create(NULL);
    if (count > 0 && steps[0].phase)
        sl_text_table_column(table, &when);
    sl_text_table_columns(table, first);
    for (size_t i = 0; i < PERCENTILES; i++)
        sl_text_table_column(table, &(sl_text_column){.title = percentiles[i].title});
    sl_text_table_columns(table, last);
    for (size_t i = 0; i < count; i++) {
        const sl_load_step *step = &steps[i];
        add_row(table, step, step->name, &step->outcome->figures[step->outcome->count]);
        for (size_t k = 0; step->outcome->count > 1 && k < step->outcome->count; k++) {
            char name[200];
            snprintf(name, sizeof name, "  %s", step->plan->queries[step->plan->mix[k].query].name);
            add_row(table, step, name, &step->outcome->figures[k]);
        }
    }
    bool ok = sl_text_table_print(table, sl_output(), 0);
    sl_text_table_destroy(table);
    return ok;
}

static void show_step_notes(const sl_load_step *step) {
    const sl_load_outcome *outcome = step->outcome;
    const sl_load_figures *all = &outcome->figures[outcome->count];
    char label[LABEL_ROOM]; /* "during, point-read, 8 clients" */
    snprintf(label, sizeof label, "%s%s%s, %u client%s", step->phase ? step->phase : "",
             step->phase ? ", " : "", step->name, step->plan->clients,
             step->plan->clients == 1 ? "" : "s");
    for (size_t k = 0; k < outcome->failure_count; k++)
        sl_print("%s: %" PRIu64 " operations failed: %s (code %d)\n", label,
                 outcome->failures[k].count, outcome->failures[k].message,
                 outcome->failures[k].code);
    for (size_t k = 0; k < step->monitor->member_count; k++) {
        const sl_member_lag *lag = &step->monitor->members[k];
        sl_print("%s: %s was %.1f s behind the primary on average, %.1f s at most\n", label,
                 lag->name, lag->sum / (double)lag->count, lag->max);
    }
    uint64_t stall = sl_histogram_quantile(&outcome->stall, 0.99);
    uint64_t median = sl_histogram_quantile(&all->latency, 0.5);
    if (all->succeeded > 0 && stall > 100000 && stall > median / 4)
        sl_print("%s: 1 in 100 times this machine woke a thread %.2f ms late or later (%.2f ms at "
                 "most), and the latencies contain such delays; use more processors or fewer "
                 "clients\n",
                 label, milliseconds(stall), milliseconds(outcome->stall.maximum));
    if (!sl_load_adds_up(outcome))
        sl_print("%s: INTERNAL ERROR: attempted is not succeeded + failed + skipped\n", label);
}

void sl_load_show_notes(const sl_load_step *steps, size_t count) {
    if (count > 0)
        sl_print("\nLatency is " SL_LINES
                 ".\nPercentiles are at most %.1f %% above the exact ones; \"-\": fewer "
                 "than 10 operations lie above.\n",
                 steps[0].plan->rate > 0
                     ? "from the time that an operation was due to its last document"
                     : "from sending to the last document. While a server stalls, few operations "
                       "are sent,\nand the percentiles hardly show it: use --rate to measure what "
                       "users would see",
                 100 * SL_HISTOGRAM_PRECISION);
    for (size_t i = 0; i < count; i++)
        show_step_notes(&steps[i]);
}
