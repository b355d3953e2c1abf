/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what servers say of themselves: the replies of $collStats and serverStatus, and the text
 * of a refusal that is put into other words. There is one row for each document, in the order of
 * their shards, and every text ends. */
#include <stdint.h>

#include "../../src/cluster/internal.h"
#include "documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t documents_in(const bson_t *reply) {
    bson_iter_t iter, batch, row;
    size_t count = 0;
    if (bson_iter_init(&iter, reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
        bson_iter_recurse(&batch, &row)) {
        while (bson_iter_next(&row))
            count++;
    }
    return count;
}

static void fuzz_rows(input *in) {
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    sl_error error = {0};
    given reply;
    give(in, &reply);
    require(sl_statistics_of(&reply.bson, "lone", &rows, &count, &error), "there is memory");
    require(count == documents_in(&reply.bson), "each document is a row");
    for (size_t i = 0; i < count; i++) {
        CHECK_TEXT(rows[i].shard);
        require(i == 0 || strcmp(rows[i - 1].shard, rows[i].shard) <= 0, "rows are in order");
        require(rows[i].documents <= INT64_MAX && rows[i].data_bytes <= INT64_MAX &&
                    rows[i].storage_bytes <= INT64_MAX && rows[i].index_bytes <= INT64_MAX,
                "nothing is below zero");
    }
    free(rows);
    clear(&reply);
}

static void fuzz_engine(input *in) {
    sl_storage_engine engine = {.cache_bytes = 0};
    given status;
    give(in, &status);
    sl_storage_engine_of(&status.bson, &engine);
    CHECK_TEXT(engine.name);
    clear(&status);
}

static void fuzz_refusal(const input *in) {
    char words[300] = "";
    size_t length = (size_t)(in->end - in->at);
    char *message = malloc(length + 1);
    require(message != NULL, "there is memory");
    memcpy(message, in->at, length);
    message[length] = '\0';
    if (sl_privilege_in_words(message, words, sizeof words))
        require(words[0] && memchr(words, '\0', sizeof words), "a refusal has words");
    free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    begin(&in, data, size);
    fuzz_rows(&in);
    fuzz_engine(&in);
    fuzz_refusal(&in);
    return 0;
}
