/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a capacity model and its result as tables. */
#include "capacity.h"

#include <math.h>
#include <string.h>

#include "query/query.h"
#include "util/print.h"
#include "util/text.h"

#define CELL 64

/* About three significant digits, at most two decimals: "2,500,000,000", "85,000", "1.6",
 * "0.29". */
static const char *figure(double value, char out[SL_FIGURE_ROOM]) {
    int decimals = fabs(value) >= 100 || value == floor(value) ? 0 : fabs(value) >= 10 ? 1 : 2;
    return sl_table_figure(value, decimals, out);
}

/* A value in the unit of its input: bytes as "1.3 GB", counts without their unit, which is in the
 * input's name. */
static const char *amount(double value, const char *unit, char out[CELL]) {
    char human[SL_HUMAN_ROOM], plain[SL_FIGURE_ROOM];
    if (strncmp(unit, "bytes", 5) == 0 && value >= 1e6)
        snprintf(out, CELL, "%s%s", sl_human_bytes(value, human), unit + 5);
    else if (strncmp(unit, "bytes", 5) == 0 || strpbrk(unit, "/ "))
        snprintf(out, CELL, "%s %s", figure(value, plain), unit);
    else
        snprintf(out, CELL, "%s", figure(value, plain));
    return out;
}

static const char *span(double low, double high, const char *unit, char out[2 * CELL]) {
    char a[CELL], b[CELL];
    if (low == high)
        return "";
    snprintf(out, 2 * CELL, "%s to %s", amount(low, unit, a), amount(high, unit, b));
    return out;
}

static const char *hours(double value, char out[SL_HUMAN_ROOM]) {
    return sl_human_seconds(value * 3600, out);
}

static const char *hours_span(const sl_estimate *range, char out[2 * SL_HUMAN_ROOM]) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    snprintf(out, 2 * SL_HUMAN_ROOM, "%s to %s", hours(range->low, a), hours(range->high, b));
    return out;
}

/* ---- texts from the model's file ---- */

/* Prints a text in lines of at most 96 characters, indented by 2. */
static void print_wrapped(const char *text, FILE *out) {
    size_t column = 0;
    while (*text) {
        char shown[300];
        size_t word = strcspn(text, " \n");
        size_t width = sl_text_printable((sl_text){text, word}, shown, sizeof shown);
        if (column > 0 && column + 1 + width > 96) {
            fputc('\n', out);
            column = 0;
        }
        sl_print_to(out, "%s%s", column > 0 ? " " : "  ", shown);
        column += width + 1;
        text += word;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

/* Prints a text on one line. */
static void print_text(const char *text, FILE *out) {
    char shown[1000];
    sl_text_printable(sl_text_of(text), shown, sizeof shown);
    sl_print_to(out, "%s\n", shown);
}

/* ---- the tables ---- */

static bool print_inputs(const sl_capacity_model *model, const sl_capacity_result *result,
                         FILE *out) {
    sl_table *table = sl_table_create();
    if (!table)
        return false;
    sl_table_column(table, "input", false);
    sl_table_column(table, "value", true);
    sl_table_column(table, "range", false);
    sl_table_column(table, "from", false);
    sl_table_column(table, "why", false);
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        const sl_capacity_value *value =
            i == SL_CAPACITY_HOSTS ? &result->hosts : &model->values[i];
        const char *unit = sl_capacity_inputs[i].unit;
        char a[CELL], b[2 * CELL];
        if (value->origin == SL_ORIGIN_DEFAULT) /* defaults are listed in the help */
            continue;
        sl_table_cell(table, "%s", sl_capacity_inputs[i].name);
        sl_table_cell(table, "%s", amount(value->value, unit, a));
        sl_table_cell(table, "%s", span(value->low, value->high, unit, b));
        sl_table_cell(table, "%s", sl_capacity_origin_names[value->origin]);
        sl_table_cell(table, "%s", value->note);
    }
    bool ok = sl_table_print(table, out, 2);
    sl_table_destroy(table);
    return ok;
}

static bool print_resources(const sl_capacity_result *result, FILE *out) {
    bool indexes_longer = result->index_hours.value > result->load_hours.value;
    sl_table *table = sl_table_create();
    if (!table)
        return false;
    sl_table_column(table, "resource", false);
    sl_table_column(table, "demand", true);
    sl_table_column(table, "capacity", true);
    sl_table_column(table, "time", true);
    sl_table_column(table, "range", false);
    sl_table_column(table, "busy", true);
    sl_table_column(table, "", false);
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        const sl_capacity_row *row = &result->rows[i];
        char a[CELL], b[CELL], c[SL_HUMAN_ROOM], d[2 * SL_HUMAN_ROOM];
        if (!row->known)
            continue;
        sl_table_cell(table, "%s", sl_capacity_resource_names[i]);
        sl_table_cell(table, "%s", amount(row->demand, row->bytes ? "bytes" : "", a));
        sl_table_cell(table, "%s",
                      amount(row->capacity, row->bytes ? "bytes/s" : "documents/s", b));
        sl_table_cell(table, "%s", hours(row->hours.value, c));
        sl_table_cell(table, "%s", hours_span(&row->hours, d));
        sl_table_cell(table, "%.0f %%", 100 * row->utilisation);
        sl_table_cell(table, "%s",
                      i != result->bottleneck ? ""
                      : indexes_longer        ? "<- bottleneck of the load"
                                              : "<- bottleneck");
    }
    bool ok = sl_table_print(table, out, 2);
    sl_table_destroy(table);
    return ok;
}

static void print_missing(const sl_capacity_model *model, const sl_capacity_result *result,
                          FILE *out) {
    const char *names[SL_CAPACITY_MISSING_MAX];
    size_t count = sl_capacity_missing(model, result, names);
    for (size_t i = 0; i < count; i++)
        sl_print_to(out, "%s%s" SL_LINES, i > 0 ? "; " : "  not in the model: ", names[i],
                    i + 1 == count ? "\n" : "");
}

static void print_published(const sl_capacity_model *model, const sl_capacity_result *result,
                            FILE *out) {
    char a[SL_HUMAN_ROOM], b[2 * SL_HUMAN_ROOM], plain[SL_FIGURE_ROOM];
    double published = model->published_hours;
    if (isnan(published) || model->other_data)
        return;
    sl_print_to(out, "  published    %s", hours(published, a));
    if (model->published_low < model->published_high)
        sl_print_to(
            out, " (%s)",
            hours_span(&(sl_estimate){published, model->published_low, model->published_high}, b));
    double ratio = result->hours.value / published;
    bool within = result->hours.low <= published && published <= result->hours.high;
    bool fitted = false;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++)
        fitted = fitted || model->values[i].origin == SL_ORIGIN_FITTED;
    sl_print_to(out, ": the model's time is %s times that, and %s%s\n", figure(ratio, plain),
                within ? "its range contains it" : "its range does not contain it",
                fitted ? " (to which an input was fitted)" : "");
    if (model->published_note[0]) {
        sl_print_to(out, "               ");
        print_text(model->published_note, out);
    }
}

/* Prints the hosts that store the data, whether it fits, and the number of idle hosts. */
static void print_hosts(const sl_capacity_result *result, FILE *out) {
    char human[SL_HUMAN_ROOM], busy[SL_FIGURE_ROOM], all[SL_FIGURE_ROOM];
    double idle = result->hosts.value - result->busy_hosts;
    sl_print_to(out, "  stored       %s on %s machine%s",
                sl_human_bytes(result->stored_bytes, human), figure(result->busy_hosts, busy),
                result->busy_hosts == 1 ? "" : "s");
    if (!isnan(result->host_share))
        sl_print_to(out, ", %.0f %% of %s room%s", 100 * result->host_share,
                    result->busy_hosts == 1 ? "its" : "their",
                    result->host_share > 1 ? ": IT DOES NOT FIT" : "");
    sl_print_to(out, "\n");
    if (idle >= 1)
        sl_print_to(out, "  idle         %s of %s machines: there are too few shards\n",
                    figure(idle, busy), figure(result->hosts.value, all));
}

static void print_result(const sl_capacity_model *model, const sl_capacity_result *result,
                         FILE *out) {
    char a[SL_HUMAN_ROOM], b[2 * SL_HUMAN_ROOM], plain[SL_FIGURE_ROOM], low[SL_FIGURE_ROOM],
        high[SL_FIGURE_ROOM], hourly[SL_FIGURE_ROOM];
    sl_print_to(out, "  loading      %s (%s), %s documents/s\n", hours(result->load_hours.value, a),
                hours_span(&result->load_hours, b), figure(floor(result->rate + 0.5), plain));
    if (isnan(result->index_hours.value))
        sl_print_to(out, "  indexes      not in the model: index-rate is not given\n");
    else if (result->index_hours.value > 0)
        sl_print_to(out, "  indexes      %s (%s)%s\n", hours(result->index_hours.value, a),
                    hours_span(&result->index_hours, b),
                    result->index_hours.value > result->load_hours.value ? "  <- bottleneck" : "");
    if (result->index_hours.value > 0)
        sl_print_to(out, "  total        %s (%s)\n", hours(result->hours.value, a),
                    hours_span(&result->hours, b));
    print_hosts(result, out);
    if (!isnan(result->cost.value))
        sl_print_to(out, "  cost         %s (%s to %s) at %s an hour\n",
                    figure(result->cost.value, plain), figure(result->cost.low, low),
                    figure(result->cost.high, high), figure(result->cost_per_hour, hourly));
    print_published(model, result, out);
}

bool sl_capacity_print(const sl_capacity_model *model, const sl_capacity_result *result,
                       FILE *out) {
    sl_print_to(out, "%s: ", model->name[0] ? model->name : "model");
    print_text(model->title, out);
    if (model->about[0])
        print_wrapped(model->about, out);
    fputc('\n', out);
    bool ok = print_inputs(model, result, out);
    fputc('\n', out);
    ok = print_resources(result, out) && ok;
    print_missing(model, result, out);
    fputc('\n', out);
    print_result(model, result, out);
    return ok;
}

bool sl_capacity_print_sweep(const sl_capacity_sweep *sweep, FILE *out) {
    sl_table *table = sl_table_create();
    if (!table)
        return false;
    sl_table_column(table, sl_capacity_inputs[sweep->input].name, true);
    sl_table_column(table, "documents/s", true);
    sl_table_column(table, "time", true);
    sl_table_column(table, "range", false);
    sl_table_column(table, "cost", true);
    sl_table_column(table, "bottleneck", false);
    for (size_t i = 0; i < sweep->count; i++) {
        char plain[SL_FIGURE_ROOM], a[SL_HUMAN_ROOM], b[2 * SL_HUMAN_ROOM], unit[CELL];
        const sl_capacity_result *result = &sweep->results[i];
        sl_table_cell(table, "%s", amount(sweep->values[i], "", unit));
        sl_table_cell(table, "%s", figure(floor(result->rate + 0.5), plain));
        sl_table_cell(table, "%s", hours(result->hours.value, a));
        sl_table_cell(table, "%s", hours_span(&result->hours, b));
        sl_table_cell(table, "%s",
                      isnan(result->cost.value) ? "-" : figure(result->cost.value, plain));
        sl_table_cell(table, "%s%s", sl_capacity_bottleneck_name(result),
                      result->host_share > 1 ? "; IT DOES NOT FIT" : "");
    }
    bool ok = sl_table_print(table, out, 2);
    sl_table_destroy(table);
    return ok;
}
