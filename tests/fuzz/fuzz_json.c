/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes reading and writing of JSON: a document that was read can be written, unless writing fails
 * with an error message; the written text can be read, and writing it again gives the same text. */
#include "report/json.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bson_error_t wrong = {0};
    bson_t *document = sl_json_parse((const char *)data, size, &wrong);
    if (!document) {
        require(wrong.message[0], "a parse error has a message");
        return 0;
    }
    sl_error error = {0};
    char *text = sl_json_text(document, &error);
    if (text) {
        bson_t *again = sl_json_parse(text, strlen(text), &wrong);
        char *same = again ? sl_json_text(again, NULL) : NULL;
        require(same && strcmp(text, same) == 0, "written JSON is read as the same document");
        free(same);
        bson_destroy(again);
    } else {
        require(error.message[0], "a failure to write has a message");
    }
    free(text);
    bson_destroy(document);
    return 0;
}
