/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes query suites: whatever the YAML and the Extended JSON in it, reading it ends in a suite
 * whose answers can be compared and shown, or in an error that says something. */
#include <stdint.h>
#include <stdlib.h>

#include <shardload/json.h>
#include <shardload/query.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    sl_error error = {0};
    sl_suite *suite;
    if (!sl_suite_parse((const char *)data, size, "fuzz.yaml", &suite, &error)) {
        if (error.code == SL_EXIT_OK || !error.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < suite->count; i++) {
        const sl_query *query = &suite->queries[i];
        const bson_t *answer = query->expected ? query->expected : query->pipeline;
        sl_differences differences;
        sl_answer_compare(answer, suite->queries[0].pipeline, &differences);
        sl_table_print_documents(answer, 20, nowhere, 2);
        free(sl_json_text(answer, NULL));
    }
    sl_suite_destroy(suite);
    return 0;
}
