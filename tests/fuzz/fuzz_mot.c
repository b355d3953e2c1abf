/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format mot: dialect detection, and parsing by the detected dialect. The first byte
 * selects options; the remaining bytes are the text. */
#include "parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plans made[8];
    if (size < 1 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data;
    sl_format_options options = {
        .long_names = choice & 1, .encoding = choice & 2 ? "latin-1" : NULL, .trim = choice & 4};
    const sl_format *format = sl_format_named("mot");
    check_text(format, plans_of(format, &options, &made[choice & 7]), "fuzz",
               (sl_text){(const char *)data + 1, size - 1}, !(choice & 8));
    return 0;
}
