/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on standard output: answers, plans, timings, differences. */
#include "bson/bson_lookup.h"
#include "query.h"
#include "util/context.h"
#include "util/print.h"

#include <inttypes.h>
#include <math.h>

#include "util/text_table.h"

/* The unit of time of a table, chosen by its longest run. */
typedef struct unit {
    const char *name;
    double per_millisecond;
} unit;

static unit unit_for(double longest_ms) {
    if (longest_ms >= 100000)
        return (unit){"s", 1e-3};
    return longest_ms < 1 ? (unit){"us", 1e3} : (unit){"ms", 1};
}

void sl_show_run(const sl_query *query, const sl_query_run *run, size_t rows, bool show_plan) {
    char count[SL_HUMAN_ROOM];
    sl_print("%s\n", query->name);
    if (query->description)
        sl_print("  %s\n", query->description);
    if (show_plan && run->explained && bson_has_field(run->explained, "plans")) {
        for (sl_walk walk = sl_walk_start(run->explained, "plans"); sl_walk_next(&walk);) {
            const char *shard = sl_look_string(&walk.item, "shard");
            int64_t examined = sl_look_int64(&walk.item, "examined", -1);
            sl_print("  plan%s%s: %s", *shard ? " on " : "", shard,
                     sl_look_string(&walk.item, "plan"));
            if (examined >= 0)
                sl_print(", %s documents examined", sl_human_count((uint64_t)examined, count));
            sl_print("\n");
        }
        bool split = sl_look_flag(run->explained, "split");
        sl_print("  the pipeline is %s\n",
                 split ? "split: each shard runs its first part, one server merges"
                       : "not split over shards");
    }
    if (run->answer != SL_ANSWER_NONE && run->answer != SL_ANSWER_UNSUPPORTED) {
        if (rows > 0 && !sl_table_print_documents(run->documents, rows, sl_output(), 2))
            sl_print("  (out of memory: the documents are not shown)\n");
        sl_print("  %s document%s%s\n", sl_human_count(run->document_count, count),
                 run->document_count == 1 ? "" : "s",
                 rows > 0 && run->document_count > rows ? ", the first ones shown" : "");
    }
    sl_print("\n");
}

bool sl_show_timings(const sl_query_outcome *outcomes, size_t count) {
    static const char *const figures[] = {"min", "median", "mean", "st.dev.", "max"};
    static const sl_text_column rates[] = {
        {.title = "documents/ms"}, {.title = "+-"}, {"answer", .left = true}, {0}};
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].run->count > 0 && outcomes[i].run->sample.maximum > longest)
            longest = outcomes[i].run->sample.maximum;
    }
    unit time_unit = unit_for(longest);
    sl_text_table *table = sl_text_table_create(NULL);
    sl_text_table_column(table, &(sl_text_column){"query", .left = true});
    bool has_limits = count > 0 && outcomes[0].options->limit > 0;
    if (has_limits)
        sl_text_table_column(table, &(sl_text_column){.title = "limit"});
    sl_text_table_column(table, &(sl_text_column){.title = "examined"});
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        char title[32];
        snprintf(title, sizeof title, "%s %s", figures[i], time_unit.name);
        sl_text_table_column(table, &(sl_text_column){.title = title});
    }
    sl_text_table_columns(table, rates);
    for (size_t i = 0; i < count; i++) {
        const sl_query_run *run = outcomes[i].run;
        const sl_sample *sample = &run->sample;
        const double values[] = {sample->minimum, sample->median, sample->mean, sample->deviation,
                                 sample->maximum};
        sl_text_table_cell(table, "%s", outcomes[i].query->name);
        if (has_limits)
            sl_text_table_number(table, (double)outcomes[i].options->limit);
        sl_text_table_number(table, run->examined_known ? (double)run->examined : NAN);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            bool known = run->count > (k == 3 ? 1 : 0); /* a deviation needs two runs */
            sl_text_table_figure(table, known, values[k] * time_unit.per_millisecond, 2);
        }
        sl_sample rate = {0};
        bool rated = sl_outcome_rate(&outcomes[i], &rate);
        int decimals = rate.mean < 100 ? 2 : 0;
        sl_text_table_figure(table, rated, rate.mean, decimals);
        sl_text_table_figure(table, rated && run->count > 1, rate.deviation, decimals);
        sl_text_table_cell(table, "%s", sl_answer_text(run->answer));
    }
    bool ok = sl_text_table_print(table, sl_output(), 0);
    sl_text_table_destroy(table);
    return ok;
}

void sl_show_differences(const sl_query_outcome *outcome) {
    const sl_differences *differences = &outcome->run->differences;
    if (outcome->run->answer != SL_ANSWER_WRONG)
        return;
    char limit[SL_HUMAN_ROOM];
    bool limited = outcome->options->limit > 0;
    sl_print("\nThe answer of %s%s%s is wrong:\n", outcome->query->name,
             limited ? " with limit " : "",
             limited ? sl_human_count((uint64_t)outcome->options->limit, limit) : "");
    for (uint64_t i = 0; i < differences->count && i < SL_DIFFERENCES_KEPT; i++)
        sl_print("  %s\n", differences->text[i]);
    if (differences->count > SL_DIFFERENCES_KEPT)
        sl_print("  and %" PRIu64 " more differences\n", differences->count - SL_DIFFERENCES_KEPT);
}
