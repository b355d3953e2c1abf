/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format isd-csv: tables with arbitrary headers. The first byte selects options; the
 * remaining bytes are the text. */
#include "parsing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static plans made[4];
    if (size < 1 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data;
    sl_format_options options = {.keep_missing = choice & 1,
                                 .schema_text = choice & 2 ? "names: {st: station}" : NULL};
    check_text(&sl_format_isd_csv, plans_of(&sl_format_isd_csv, &options, &made[choice & 3]),
               "fuzz", (sl_text){(const char *)data + 1, size - 1}, !(choice & 8));
    return 0;
}
