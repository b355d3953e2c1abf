/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the JSON files: what is read as a document can be written, and what was written is read
 * again as the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/json.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bson_error_t wrong = {0};
    bson_t *document = sl_json_parse((const char *)data, size, &wrong);
    if (!document) {
        if (!wrong.message[0])
            abort();
        return 0;
    }
    sl_error error = {0};
    char *text = sl_json_text(document, &error);
    if (text) {
        bson_t *again = sl_json_parse(text, strlen(text), &wrong);
        char *same = again ? sl_json_text(again, NULL) : NULL;
        if (!same || strcmp(text, same) != 0)
            abort();
        free(same);
        bson_destroy(again);
    } else if (!error.message[0]) {
        abort();
    }
    free(text);
    bson_destroy(document);
    return 0;
}
