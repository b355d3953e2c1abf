/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats. */
#include "format.h"

#include <string.h>

#define ADDRESS(id, name, help) &sl_format_##id,
const sl_format *const sl_formats[] = {SL_FORMATS(ADDRESS) NULL};

const char *const sl_mode_names[] = {"insert", "upsert", "merge", "replace", "delete"};

const sl_format *sl_format_named(const char *name) {
    for (size_t i = 0; sl_formats[i]; i++) {
        if (strcmp(sl_formats[i]->name, name) == 0)
            return sl_formats[i];
    }
    return NULL;
}
