/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of all BSON types in one form, which is the same for equal numbers, whatever their types
 * are. They are compared exactly, as by the server: the double 0.5 and the decimal128 0.50 are
 * equal; the double 0.1, which is not exactly a tenth, and the decimal128 0.1 are not. */
#ifndef SHARDLOAD_BSON_NUMBER_H
#define SHARDLOAD_BSON_NUMBER_H

#include <stdint.h>

#include <bson/bson.h>

/* The first of these that holds the number exactly. */
typedef enum sl_number_kind {
    SL_NUMBER_NONE, /* NaN, or not of a numeric type */
    SL_NUMBER_INTEGER,
    SL_NUMBER_DOUBLE, /* also infinity */
    SL_NUMBER_DECIMAL /* without zeros at the end, unless its exponent would be too large */
} sl_number_kind;

typedef struct sl_number {
    sl_number_kind kind;
    union {
        int64_t integer;
        double real;
        bson_decimal128_t decimal;
    } value;
} sl_number;

sl_number sl_number_of(const bson_iter_t *iter);

#endif
