/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a report for queries that were run one at a time. They contain every timing, so that
 * reports can be compared. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

#include "bson/bson_lookup.h"
#include "query.h"
#include "report/run_record.h"
#include "util/estimate.h"

sl_sample sl_sample_of(double *values, size_t count) {
    double sum = 0, squares = 0;
    qsort(values, count, sizeof *values, sl_by_value);
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (sl_sample){
        .count = count,
        .minimum = values[0],
        .median = (values[(count - 1) / 2] + values[count / 2]) / 2,
        .mean = mean,
        .deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0,
        .maximum = values[count - 1],
    };
}

bool sl_outcome_rate(const sl_query_outcome *outcome, sl_sample *rate) {
    const sl_query_run *run = outcome->run;
    double *rates =
        run->examined_known && run->count > 0 ? malloc(run->count * sizeof *rates) : NULL;
    if (!rates)
        return false;
    for (size_t i = 0; i < run->count; i++)
        rates[i] = (double)run->examined / (run->timings[i] > 1e-6 ? run->timings[i] : 1e-6);
    *rate = sl_sample_of(rates, run->count);
    free(rates);
    return true;
}

static bool append_timings(bson_t *entry, const sl_query_run *run) {
    bson_t timings;
    if (!BSON_APPEND_ARRAY_BEGIN(entry, "timingsMs", &timings))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        if (!bson_append_double(&timings, sl_array_key(i, room), -1, run->timings[i]))
            return false;
    }
    if (!bson_append_array_end(entry, &timings))
        return false;
    const sl_sample *sample = &run->sample;
    return run->count == 0 || (BSON_APPEND_DOUBLE(entry, "minMs", sample->minimum) &&
                               BSON_APPEND_DOUBLE(entry, "medianMs", sample->median) &&
                               BSON_APPEND_DOUBLE(entry, "meanMs", sample->mean) &&
                               BSON_APPEND_DOUBLE(entry, "deviationMs", sample->deviation) &&
                               BSON_APPEND_DOUBLE(entry, "maxMs", sample->maximum));
}

static bool append_differences(bson_t *entry, const sl_differences *differences) {
    bson_t list;
    bool ok = BSON_APPEND_INT64(entry, "differenceCount", (int64_t)differences->count) &&
              BSON_APPEND_ARRAY_BEGIN(entry, "differences", &list);
    for (uint32_t i = 0; ok && i < differences->count && i < SL_DIFFERENCES_KEPT; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        ok = bson_append_utf8(&list, sl_array_key(i, room), -1, differences->text[i], -1);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool fill(bson_t *entry, const sl_query_outcome *outcome) {
    const sl_query *query = outcome->query;
    const sl_query_options *options = outcome->options;
    const sl_query_run *run = outcome->run;
    const char *preference =
        options->read_preference ? options->read_preference : query->read_preference;
    sl_sample rate;
    bool rated = sl_outcome_rate(outcome, &rate);
    char hash[SL_ANSWER_HASH_ROOM];
    return BSON_APPEND_UTF8(entry, "suite", outcome->suite->name) &&
           BSON_APPEND_UTF8(entry, "name", query->name) &&
           BSON_APPEND_UTF8(entry, "database", options->database) &&
           BSON_APPEND_UTF8(entry, "collection", options->collection) &&
           (!outcome->documents_known ||
            BSON_APPEND_INT64(entry, "documents", (int64_t)outcome->documents)) &&
           BSON_APPEND_UTF8(entry, "operation", sl_operation_name(query->operation)) &&
           (!query->pipeline || BSON_APPEND_ARRAY(entry, "pipeline", query->pipeline)) &&
           (!query->body || BSON_APPEND_DOCUMENT(entry, "body", query->body)) &&
           (options->limit == 0 || BSON_APPEND_INT64(entry, "limit", options->limit)) &&
           BSON_APPEND_DOCUMENT(entry, "options", query->options) &&
           (!preference || BSON_APPEND_UTF8(entry, "readPreference", preference)) &&
           BSON_APPEND_INT64(entry, "warmUp", options->warm_up) &&
           BSON_APPEND_INT64(entry, "repeat", options->repeat) && append_timings(entry, run) &&
           (!run->examined_known || BSON_APPEND_INT64(entry, "examined", (int64_t)run->examined)) &&
           (!rated || (BSON_APPEND_DOUBLE(entry, "documentsPerMs", rate.median) &&
                       BSON_APPEND_DOUBLE(entry, "documentsPerMsMean", rate.mean) &&
                       BSON_APPEND_DOUBLE(entry, "documentsPerMsDeviation", rate.deviation))) &&
           BSON_APPEND_UTF8(entry, "answer", sl_answer_text(run->answer)) &&
           (run->answer != SL_ANSWER_WRONG || append_differences(entry, &run->differences)) &&
           (run->error.code == SL_EXIT_OK ||
            BSON_APPEND_UTF8(entry, "error", run->error.message)) &&
           (!run->explained || BSON_APPEND_DOCUMENT(entry, "explain", run->explained)) &&
           BSON_APPEND_INT64(entry, "resultCount", (int64_t)run->document_count) &&
           BSON_APPEND_INT64(entry, "resultBytes", (int64_t)run->bytes) &&
           (run->truncated || run->count == 0 ||
            BSON_APPEND_UTF8(entry, "answerHash", sl_answer_hash(run->documents, hash))) &&
           BSON_APPEND_BOOL(entry, "resultsComplete", !run->truncated) &&
           BSON_APPEND_ARRAY(entry, "results", run->documents);
}

bool sl_report_add(bson_t *queries, bson_t *entry, bool filled) {
    char room[SL_ARRAY_KEY_ROOM];
    const char *key = sl_array_key(bson_count_keys(queries), room);
    bool ok = filled && BSON_APPEND_DOCUMENT(queries, key, entry);
    bson_destroy(entry);
    return ok;
}

bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome) {
    bson_t *entry = bson_new();
    return sl_report_add(queries, entry, fill(entry, outcome));
}
