/* SPDX-License-Identifier: Apache-2.0 */
/* Options: values from environment variables. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "options_internal.h"

void sl_options_read_environment(sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        if (!sl_options_applies(options, i))
            continue;
        char variable[128];
        int length = snprintf(variable, sizeof variable, "%s_%s",
                              options->program->environment_prefix, options->program->rows[i].name);
        for (int k = 0; k < length; k++)
            variable[k] = variable[k] == '-' ? '_' : (char)toupper((unsigned char)variable[k]);
        char *text = getenv(variable);
        if (text && *text) {
            sl_options_store(options, i, text, FROM_ENVIRONMENT, variable);
            sl_options_wipe(text, options->program->rows[i].secret);
        }
    }
}
