/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the schema reader: a text gives a valid schema or an error that names the file. */
#include "format/column_types.h"

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_schema *schema = NULL;
    sl_error error = {0};
    if (!sl_schema_read((sl_text){(const char *)data, size}, "fuzz.yaml", &schema, &error)) {
        require(!schema && error.code == SL_EXIT_USAGE &&
                    strncmp(error.message, "fuzz.yaml:", 10) == 0,
                "an error names the file");
        return 0;
    }
    size_t used = strlen(schema->name) + strlen(schema->kind);
    for (size_t i = 0; i < schema->column_count; i++) {
        const sl_schema_column *column = &schema->columns[i];
        used += strlen(column->name) + strlen(column->short_name);
        used += strlen(sl_column_types[column->type].word);
        require(sl_schema_column_is_named(column, sl_text_of(column->name)) &&
                    column->minimum <= column->maximum,
                "a column has its name and a range");
        for (size_t k = 0; k < column->missing.count; k++)
            used += strlen(column->missing.words[k]);
    }
    require(used > 0, "a schema has names");
    sl_schema_destroy(schema);
    return 0;
}
