/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes query suites (YAML with Extended JSON in it): reading a suite fails with an error message,
 * or the expected answers of its queries can be compared and printed. */
#include "query/query.h"
#include "report/json.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_error error = {0};
    sl_suite *suite;
    if (!sl_suite_parse((const char *)data, size, "fuzz.yaml", &suite, &error)) {
        check_error(&error);
        return 0;
    }
    for (size_t i = 0; i < suite->count; i++) {
        const sl_query *query = &suite->queries[i];
        const bson_t *answer = query->expected ? query->expected : query->pipeline;
        sl_differences differences;
        sl_answer_compare(answer, suite->queries[0].pipeline, &differences);
        sl_table_print_documents(answer, 20, null_stream(), 2);
        free(sl_json_text(answer, NULL));
    }
    sl_suite_destroy(suite);
    return 0;
}
