/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the summary of an explained aggregation. It is valid BSON, can be written as JSON, and has
 * one plan for each shard of the reply, or one plan if the reply names no shards. */
#include "query/query.h"
#include "report/json.h"

#include "documents.h"

static size_t plans_in(const bson_t *summary) {
    bson_iter_t iter, row, field;
    size_t count = 0;
    require(bson_iter_init_find(&iter, summary, "split") && BSON_ITER_HOLDS_BOOL(&iter),
            "the summary has a boolean `split`");
    require(bson_iter_init_find(&iter, summary, "plans") && bson_iter_recurse(&iter, &row),
            "the summary has an array `plans`");
    for (; bson_iter_next(&row); count++) {
        require(bson_iter_recurse(&row, &field) && bson_iter_find(&field, "shard") &&
                    BSON_ITER_HOLDS_UTF8(&field) && bson_iter_find(&field, "plan") &&
                    BSON_ITER_HOLDS_UTF8(&field),
                "a plan has the texts `shard` and `plan`");
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    bson_iter_t iter, shard;
    size_t shards = 1;
    begin(&in, data, size);
    const bson_t *reply = take_document(&in);
    if (bson_iter_init_find(&iter, reply, "shards") && bson_iter_recurse(&iter, &shard)) {
        for (shards = 0; bson_iter_next(&shard);)
            shards++;
    }
    bson_t *summary = sl_explain_summary(reply);
    require(summary != NULL, "allocation succeeds");
    require(plans_in(summary) == shards, "each shard has a plan");
    check_built(summary);
    free(sl_json_text(summary, NULL));
    bson_destroy(summary);
    return finish(&in);
}
