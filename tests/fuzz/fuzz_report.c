/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes `shardquery compare`: the input is two JSON texts with a NUL between them, reports or any
 * other JSON. The comparison is printed, or fails with an error message. */
#include "query/query.h"
#include "report/json.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *cut = memchr(data, 0, size);
    if (!cut)
        return 0;
    bson_error_t wrong;
    size_t first = (size_t)(cut - data);
    bson_t *before = sl_json_parse((const char *)data, first, &wrong);
    bson_t *after = sl_json_parse((const char *)cut + 1, size - first - 1, &wrong);
    sl_error error = {0};
    /* Four runs on each side, which are enough for a test of significance. */
    const bson_t *old[] = {before, before, before, before}, *new[] = {after, after, after, after};
    const sl_comparison_options options = {.paired = size % 2};
    bson_t record = BSON_INITIALIZER;
    sl_exit verdict;
    if (before && after &&
        !sl_reports_compare(old, 4, new, 4, &options, null_stream(), &record, &verdict, &error))
        check_error(&error);
    require(bson_validate(&record, BSON_VALIDATE_UTF8, NULL), "the record is valid BSON");
    bson_destroy(&record);
    bson_destroy(before);
    bson_destroy(after);
    return 0;
}
