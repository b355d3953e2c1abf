/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checked character by character, for instruction sets without a byte shuffle. */
#ifndef SHARDLOAD_UTF8_SCALAR_H
#define SHARDLOAD_UTF8_SCALAR_H

#include "util/text.h"

static bool utf8_valid(const char *text, size_t length) {
    return sl_utf8_valid(text, length, NULL);
}

#endif
