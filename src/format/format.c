/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of formats. */
#include "format.h"
#include "delimited.h"
#include "isd.h"
#include "ycsb.h"

#include <string.h>

/* In the order in which they are tried: specific formats before general ones. */
const sl_format *const sl_formats[] = {&sl_format_mot,
                                       &sl_format_isd,
                                       &sl_format_isd_lite,
                                       &sl_format_isd_csv,
                                       &sl_format_delimited,
                                       &sl_format_ycsb,
                                       NULL};

const sl_format *sl_format_named(const char *name) {
    for (size_t i = 0; sl_formats[i]; i++) {
        if (strcmp(sl_formats[i]->name, name) == 0)
            return sl_formats[i];
    }
    return NULL;
}
