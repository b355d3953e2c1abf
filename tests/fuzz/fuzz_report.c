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
    /* Four times each, so that there are enough runs for a verdict. */
    const bson_t *old[] = {before, before, before, before}, *new[] = {after, after, after, after};
    const sl_comparison_options options = {.paired = size % 2};
    bson_t record = BSON_INITIALIZER;
    bool slower;
    if (before && after &&
        !sl_reports_compare(old, 4, new, 4, &options, nowhere, &record, &slower, &error) &&
        (error.code == SL_EXIT_OK || !error.message[0]))
        abort();
    if (!bson_validate(&record, BSON_VALIDATE_UTF8, NULL))
        abort();
    bson_destroy(&record);
    bson_destroy(before);
    bson_destroy(after);
    return 0;
}
