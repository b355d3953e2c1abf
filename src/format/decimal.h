/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers that a double stores without loss: the shortest decimal number that converts to
 * the double has the same digits as the text. All numbers of up to 15 significant digits are stored
 * without loss; numbers of 16 or 17 digits are if programs print them for a double. Of two shortest
 * numbers that are equally close to the double, both are accepted: 9.019607543945313 and ...312 are
 * the same double.
 *
 * Accepted: 12, -1.5, .5, 6.6666669845581055, -7.324219E-4, Infinity, inf, and U+221E with or
 * without minus. Refused, because codes may have this form, or because digits would be lost: 007,
 * +1, 5., 1E5 (an exponent without a point), -0, whole numbers beyond 64 bits, 0.10000000000000001.
 * Zeros at the end of a fraction are not digits: 1.50 equals 1.5. */
#ifndef SHARDLOAD_DECIMAL_H
#define SHARDLOAD_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bson/bson_writer.h"

/* Converts a number as described above; false: it is refused. */
bool sl_convert_lossless(const char *field, size_t length, double *value);

/* Converts a whole number of 64 bits without sign +, leading zeros, or the form -0. */
bool sl_convert_whole(const char *field, size_t length, int64_t *value);

/* Converts the most frequent numbers that sl_convert_lossless accepts: up to 16 bytes after the
 * sign, up to 15 digits, no exponent. False for any other text. */
static inline bool sl_convert_short_decimal(const char *field, size_t length, double *value) {
    size_t at = length > 0 && *field == '-', start = at, point = SIZE_MAX;
    uint64_t digits = 0;
    if (length - at - 1 >= 16)
        return false;
    for (; at < length; at++) {
        unsigned digit = (unsigned)(field[at] - '0');
        if (digit <= 9)
            digits = digits * 10 + digit;
        else if (field[at] == '.' && point == SIZE_MAX)
            point = at;
        else
            return false;
    }
    size_t whole = (point == SIZE_MAX ? length : point) - start; /* digits before the point */
    size_t fraction = point == SIZE_MAX ? 0 : length - point - 1;
    if ((whole > 1 && field[start] == '0') || (point != SIZE_MAX && fraction == 0) ||
        digits >= UINT64_C(1000000000000000) || (digits == 0 && start > 0 && point == SIZE_MAX))
        return false;
    *value = (double)digits / sl_powers_of_ten[fraction];
    if (start > 0)
        *value = -*value;
    return true;
}

#endif
