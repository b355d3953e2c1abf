/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format delimited with any schema: the first byte chooses options, what follows up to a
 * NUL is a schema in YAML (none when it is empty), and the rest is the text. */
#include "parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data++;
    const uint8_t *end = memchr(data, 0, --size);
    if (!end)
        return 0;
    size_t schema = (size_t)(end - data);
    sl_format_options options = {.long_names = choice & 1,
                                 .latin1 = choice & 2,
                                 .trim = choice & 4,
                                 .schema_text = schema > 0 ? (const char *)data : NULL,
                                 .schema_name = "fuzz.yaml"};
    const sl_format *format = sl_format_named("delimited");
    plans made = {0};
    sl_error error = {0};
    if (make_plans(format, &options, &made, &error))
        check_text(format, &made, "fuzz", (sl_text){(const char *)end + 1, size - schema - 1},
                   !(choice & 8));
    else
        require(error.code == SL_EXIT_USAGE && strncmp(error.message, "fuzz.yaml:", 10) == 0,
                "a schema is refused with its place");
    destroy_plans(format, &made);
    return 0;
}
