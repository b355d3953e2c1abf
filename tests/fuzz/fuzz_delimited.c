/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format delimited. The first byte of the input selects options; the bytes up to the
 * next NUL are a schema in YAML (none if empty); the bytes after the NUL are the text. */
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
                "an error in a schema names the file");
    destroy_plans(format, &made);
    return 0;
}
