/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the replies of $collStats and serverStatus, and the error text of a missing privilege,
 * which is rephrased. There is one row per document with a valid length, at most 10,000, ordered by
 * shard, and every text is NUL-terminated. */
#include "cluster/internal.h"
#include "documents.h"

#define ROWS_MAX ((size_t)10000)

static size_t documents_in(const bson_t *reply) {
    bson_iter_t iter, batch, row;
    bson_t document;
    size_t count = 0;
    if (bson_iter_init(&iter, reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
        BSON_ITER_HOLDS_ARRAY(&batch) && bson_iter_recurse(&batch, &row)) {
        while (bson_iter_next(&row))
            count += sl_document_at(&row, &document);
    }
    return count;
}

static void fuzz_rows(input *in) {
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    sl_error error = {0};
    const bson_t *reply = take_document(in);
    const size_t documents = documents_in(reply);
    require(sl_statistics_of(reply, "lone", &rows, &count, &error) == (documents <= ROWS_MAX),
            "more rows are refused");
    require(count == (documents < ROWS_MAX ? documents : ROWS_MAX), "there is a row per document");
    for (size_t i = 0; i < count; i++) {
        CHECK_TEXT(rows[i].shard);
        require(i == 0 || strcmp(rows[i - 1].shard, rows[i].shard) <= 0,
                "rows are ordered by shard");
        require(rows[i].documents <= INT64_MAX && rows[i].data_bytes <= INT64_MAX &&
                    rows[i].storage_bytes <= INT64_MAX && rows[i].index_bytes <= INT64_MAX,
                "no figure is negative");
    }
    free(rows);
}

static void fuzz_refusal(const input *in) {
    char words[300] = "";
    char *message = copy_of(in->at, (size_t)(in->end - in->at), 1, '\0');
    if (sl_privilege_in_words(message, words, sizeof words)) {
        require(words[0], "a rephrased error is not empty");
        CHECK_TEXT(words);
    }
    free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    begin(&in, data, size);
    fuzz_rows(&in);
    sl_storage_engine engine = {.cache_bytes = 0};
    sl_storage_engine_of(take_document(&in), &engine);
    CHECK_TEXT(engine.name);
    fuzz_refusal(&in);
    return finish(&in);
}
