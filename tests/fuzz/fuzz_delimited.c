/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format delimited. The first byte of the input selects options; the bytes up to the
 * next NUL are a schema in YAML (none if empty); the bytes after the NUL are the text. Without a
 * schema, types are inferred from the complete text if bit 6 is set; then each value must fit. With
 * bit 7, quoted fields may contain line ends. With bits 2 and 5 the notation is given. */
#include "parsing.h"

#include "format/typing.h"

static void infer_types(const sl_plan *plan, sl_dialect *dialect, sl_text text) {
    sl_error error = {0};
    sl_typing *typing = NULL;
    char *copy = copy_of(text.bytes, text.length, SL_SLACK, '9');
    require(sl_typing_create(&typing, &error), "allocation succeeds");
    require(sl_typing_add(typing, plan, dialect, (sl_text){copy, text.length}, 0, 0, &error),
            "a text is sampled");
    sl_typing_decide(typing);
    require(sl_typing_apply(typing, false, dialect, NULL, &error), "types are applied");
    const sl_typed_layout *layout = sl_typing_layout_of(typing, dialect);
    char *schema = sl_typing_write_schema(plan, (const sl_dialect *const[]){dialect}, 1, "fuzz",
                                          layout->records);
    require(schema != NULL, "a schema is written");
    sl_schema *read = NULL;
    require(sl_schema_read(sl_text_of(schema), "fuzz.yaml", &read, &error),
            "a written schema can be read");
    require(read->column_count == dialect->column_count, "a written schema is complete");
    for (size_t i = 0; i < read->column_count; i++)
        require(read->columns[i].type == dialect->columns[i].schema.type &&
                    strcmp(read->columns[i].name, dialect->columns[i].published) == 0,
                "a written schema has the names and types");
    sl_schema_destroy(read);
    free(schema);
    sl_typing_destroy(typing);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data++;
    const uint8_t *end = memchr(data, 0, --size);
    if (!end)
        return 0;
    size_t schema = (size_t)(end - data);
    sl_format_options options = {.long_names = choice & 1,
                                 .encoding = choice & 2 ? "latin-1" : NULL,
                                 .trim = choice & 4,
                                 .header = choice & 16 ? SL_HEADER_NO : SL_HEADER_AUTO,
                                 .pad = choice & 32,
                                 .notation = (choice & 36) == 36 ? &sl_notations[choice % 6] : NULL,
                                 .store_null = (choice & 9) == 9,
                                 .quoted_lines = choice & 128,
                                 .escape = (choice & 129) == 129 ? '\\' : '\0',
                                 .quote = (choice & 130) == 130 ? '\'' : SL_QUOTE_AUTO,
                                 .delimiter = (choice & 20) == 20 ? ';' : '\0',
                                 .schema_text = schema > 0 ? (const char *)data : NULL,
                                 .schema_name = "fuzz.yaml"};
    const sl_format *format = sl_format_named("delimited");
    plans made = {0};
    sl_error error = {0};
    after_sniff = choice & 64 && schema == 0 ? infer_types : NULL;
    if (make_plans(format, &options, &made, &error))
        check_text(format, &made, "fuzz", (sl_text){(const char *)end + 1, size - schema - 1},
                   !(choice & 8));
    else
        require(error.code == SL_EXIT_USAGE && strncmp(error.message, "fuzz.yaml:", 10) == 0,
                "an error in a schema names the file");
    destroy_plans(format, &made);
    return 0;
}
