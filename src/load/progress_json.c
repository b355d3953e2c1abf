/* SPDX-License-Identifier: Apache-2.0 */
/* A view of a running load as JSON, for `--progress json` and status.json. docs/status.md lists the
 * keys. */
#include "progress_json.h"

void sl_view_append(const sl_view *view, const sl_run *run, const sl_destination *destination,
                    bson_t *json) {
    const sl_figures *figures = &view->figures;
    bson_t inner;
    unsigned most, second;
    BSON_APPEND_DOUBLE(json, "seconds", view->seconds);
    BSON_APPEND_INT64(json, "records", (int64_t)view->records);
    BSON_APPEND_INT64(json, "documents", (int64_t)view->documents);
    BSON_APPEND_INT64(json, "rejects", (int64_t)view->rejects);
    BSON_APPEND_INT64(json, "retries", (int64_t)view->sum.retries);
    BSON_APPEND_DOUBLE(json, "documentsPerSecond", figures->rate_now);
    BSON_APPEND_DOUBLE(json, "documentsPerSecondOverall", figures->rate_all);
    BSON_APPEND_DOUBLE(json, view->generated ? "bsonBytesPerSecond" : "textBytesPerSecond",
                       figures->bytes_now);
    if (!view->generated)
        BSON_APPEND_INT64(json, "textBytes", (int64_t)view->text_bytes);
    BSON_APPEND_INT64(json, "bsonBytes", (int64_t)view->sum.bson_bytes);
    if (view->stored_total > 0)
        BSON_APPEND_DOUBLE(json, "share", figures->share);
    if (view->stored_total > 0 && !view->generated) {
        BSON_APPEND_INT64(json, "sourceBytes", (int64_t)view->stored_bytes);
        BSON_APPEND_INT64(json, "sourceBytesTotal", (int64_t)view->stored_total);
    }
    if (view->stored_total > 0 && figures->left >= 0)
        BSON_APPEND_DOUBLE(json, "secondsLeft", figures->left);
    BSON_APPEND_INT32(json, "threads", (int32_t)view->threads);
    BSON_APPEND_INT32(json, "threadsMost", (int32_t)view->threads_most);
    BSON_APPEND_INT32(json, "batchSize", (int32_t)view->batch_documents);
    if (view->rate_limit > 0)
        BSON_APPEND_INT64(json, "rateLimit", (int64_t)view->rate_limit);
    else
        BSON_APPEND_NULL(json, "rateLimit");
    if (sl_figures_waits(figures, &most, &second))
        BSON_APPEND_UTF8(json, "waitsMostFor", sl_stage_keys[most]);
    BSON_APPEND_DOCUMENT_BEGIN(json, "waitsFor", &inner);
    for (unsigned k = 0; k < STAGES; k++)
        BSON_APPEND_DOUBLE(&inner, sl_stage_keys[k], figures->stage_share[k]);
    bson_append_document_end(json, &inner);
    BSON_APPEND_DOCUMENT_BEGIN(json, "shards", &inner);
    for (uint32_t i = 0; run && destination->topology && i < run->job->shards; i++)
        BSON_APPEND_INT64(
            &inner, destination->topology->shards[i].name,
            (int64_t)atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed));
    bson_append_document_end(json, &inner);
}
