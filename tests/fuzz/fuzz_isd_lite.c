/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format isd-lite. The first byte selects options; the bytes up to the next NUL are the
 * source's name, which contains the station (a valid default name if empty); the bytes after the
 * NUL are the text. */
#include "parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plans made[4];
    if (size < 2 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data++;
    const uint8_t *end = memchr(data, 0, --size);
    if (!end)
        return 0;
    const char *name = end > data ? (const char *)data : "lite/029070-99999-1901.gz";
    sl_format_options options = {.keep_missing = choice & 1,
                                 .schema_text = choice & 2 ? "names: {wind: w}" : NULL};
    check_text(&sl_format_isd_lite, plans_of(&sl_format_isd_lite, &options, &made[choice & 3]),
               name, (sl_text){(const char *)end + 1, size - (size_t)(end - data) - 1},
               !(choice & 8));
    return 0;
}
