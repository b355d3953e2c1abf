/* SPDX-License-Identifier: Apache-2.0 */
#include "write_modes.h"

#include <string.h>

#define ROW(id, mode_name, help, ...) [SL_MODE_##id] = {.name = mode_name, __VA_ARGS__},
const sl_mode_row sl_modes[SL_MODE_COUNT] = {SL_MODES(ROW)};

sl_mode sl_mode_named(const char *name) {
    for (sl_mode mode = 0; name && mode < SL_MODE_COUNT; mode++) {
        if (strcmp(sl_modes[mode].name, name) == 0)
            return mode;
    }
    return SL_MODE_INSERT;
}
