/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes updates of an oplog: a document, then updates. An update is refused by name, or gives a
 * document that is BSON, also when it is applied again. Servers refuse one with too many levels. */
#include "restore/oplog.h"

#include "bson/bson_check.h"
#include "bson/bson_writer.h"
#include "documents.h"

#define UPDATES_MAX 8
#define DOCUMENT_MAX 100000 /* an array may grow to millions of elements */

static bool is_valid(const bson_t *document, sl_bson_facts *facts) {
    uint8_t *copy = copy_of(bson_get_data(document), document->len, SL_BSON_SLACK, '}');
    bool valid = sl_bson_check(copy, document->len, facts) == SL_BSON_VALID && !facts->old_binary;
    free(copy);
    return valid;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    begin(&in, data, size);
    bson_t *document = bson_copy(take_document(&in));
    sl_bson_facts facts;
    bool valid = is_valid(document, &facts);
    for (int i = 0; valid && i < UPDATES_MAX && in.at < in.end; i++) {
        const bson_t *update = take_document(&in);
        sl_error error = {0};
        if (!is_valid(update, &facts) || !sl_oplog_update_check(update, &error)) {
            require(error.code == SL_EXIT_OK || error.message[0], "a refusal has a reason");
            continue;
        }
        for (int times = 0; valid && times < 2; times++) {
            bson_t *made = sl_oplog_update(document, update, &error);
            require(made || strstr(error.message, "16 MiB"),
                    "an update that was checked is applied");
            if (!made)
                break;
            valid = is_valid(made, &facts);
            require(valid || strstr(facts.why, "levels"), "the document is BSON");
            bson_destroy(document);
            document = made;
            valid = valid && made->len < DOCUMENT_MAX;
        }
    }
    bson_destroy(document);
    return finish(&in);
}
