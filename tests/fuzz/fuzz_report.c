/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes `shardquery compare`: two files of JSON with a NUL between them, which may be reports or
 * anything else. They are compared and shown, or refused in words. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/json.h>
#include <shardload/query.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    const uint8_t *cut = memchr(data, 0, size);
    if (!cut)
        return 0;
    bson_error_t wrong;
    size_t first = (size_t)(cut - data);
    bson_t *before = sl_json_parse((const char *)data, first, &wrong);
    bson_t *after = sl_json_parse((const char *)cut + 1, size - first - 1, &wrong);
    sl_error error = {0};
    if (before && after && !sl_report_compare(before, after, nowhere, &error) &&
        (error.code == SL_EXIT_OK || !error.message[0]))
        abort();
    bson_destroy(before);
    bson_destroy(after);
    return 0;
}
