/* SPDX-License-Identifier: Apache-2.0 */
/* The totals of a run: sums of the counters of its workers, and values left out by column. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#include "report/run_record.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/print.h"
#include "util/text.h"

/* Adds a worker's time, including the stage in progress: otherwise a server that hangs would show
 * only after it has answered. A worker that changes its stage meanwhile is read again; a few
 * attempts are enough, since a stage lasts much longer than reading it. */
static void add_stages(const sl_worker_counters *one, int64_t now, double seconds[STAGES]) {
    int64_t spent[STAGES];
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        uint32_t changes = atomic_load(&one->changes);
        for (unsigned k = 0; k < STAGES; k++)
            spent[k] = atomic_load(&one->stage_ns[k]);
        sl_stage stage = atomic_load(&one->stage);
        int64_t since = atomic_load(&one->stage_since);
        if (stage < STAGES && now > since)
            spent[stage] += now - since;
        if (changes % 2 == 0 && atomic_load(&one->changes) == changes)
            break;
    }
    for (unsigned k = 0; k < STAGES; k++)
        seconds[k] += (double)spent[k] / 1e9;
}

sl_run_totals sl_run_sum(const sl_run *run) {
    sl_run_totals sum = {0};
    int64_t now = sl_clock_ns();
    for (unsigned i = 0; run->counters && i < run->threads; i++) {
        const sl_worker_counters *one = &run->counters[i];
#define READ(place, field, ...)                                                                    \
    sum.field += atomic_load_explicit(&one->field, memory_order_relaxed);
        SL_WORKER_COUNTS(READ)
        int64_t answered = atomic_load_explicit(&one->answered_ns, memory_order_relaxed);
        if (answered > sum.answered_ns)
            sum.answered_ns = answered;
        add_stages(one, now, sum.stage_seconds);
    }
    return sum;
}

void sl_run_totals_add(sl_run_totals *sum, const sl_run_totals *more) {
#define ADD(place, field, ...) sum->field += more->field;
    SL_WORKER_COUNTS(ADD)
    if (more->answered_ns > sum->answered_ns)
        sum->answered_ns = more->answered_ns;
    for (unsigned k = 0; k < STAGES; k++)
        sum->stage_seconds[k] += more->stage_seconds[k];
}

/* ---- values left out ---- */

bool sl_left_out_add(sl_left_out *list, const char *column, uint64_t values) {
    size_t i = 0;
    while (i < list->count && strcmp(list->columns[i].name, column) != 0)
        i++;
    if (i == list->count) {
        void *grown = realloc(list->columns, (i + 1) * sizeof *list->columns);
        char *name = strdup(column);
        list->columns = grown ? grown : list->columns;
        if (!grown || !name) {
            free(name);
            return false;
        }
        list->columns[list->count++] = (struct sl_left_out_column){.name = name};
    }
    list->columns[i].values += values;
    return true;
}

bool sl_left_out_merge(sl_left_out *list, const sl_left_out *more) {
    bool ok = true;
    for (size_t i = 0; ok && i < more->count; i++)
        ok = sl_left_out_add(list, more->columns[i].name, more->columns[i].values);
    return ok;
}

void sl_left_out_clear(sl_left_out *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->columns[i].name);
    free(list->columns);
    *list = (sl_left_out){0};
}

void sl_left_out_append(const sl_left_out *list, bson_t *record) {
    bson_t array, item;
    if (list->count == 0)
        return;
    BSON_APPEND_ARRAY_BEGIN(record, "leftOutByColumn", &array);
    for (size_t i = 0; i < list->count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "column", list->columns[i].name);
        BSON_APPEND_INT64(&item, "values", (int64_t)list->columns[i].values);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

void sl_left_out_log(const sl_left_out *list, uint64_t total) {
    char label[40], human[SL_HUMAN_ROOM];
    uint64_t here = 0;
    for (size_t i = 0; i < list->count; i++) {
        sl_print_text(label, sizeof label, "left out in column %s", list->columns[i].name);
        sl_log_row(label, sl_human_count(list->columns[i].values, human));
        here += list->columns[i].values;
    }
    if (list->count > 0 && here < total)
        sl_log_row("left out in earlier runs", sl_human_count(total - here, human));
}
