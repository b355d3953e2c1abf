/* SPDX-License-Identifier: Apache-2.0 */
/* Values of BSON from text: ObjectId, UUID, decimal128. Each function reads the complete text,
 * writes the value at `to`, and returns the position after it; NULL if the text is not such a
 * value. */
#ifndef SHARDLOAD_BSON_VALUES_H
#define SHARDLOAD_BSON_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that a value takes: a UUID with length and subtype. */
#define SL_BSON_VALUE_MAX 21u

/* Writes `count` bytes, each from two hexadecimal digits. False for other characters. */
bool sl_bson_hex_bytes(uint8_t *to, const char *digits, size_t count);

/* 24 hexadecimal digits. */
uint8_t *sl_bson_put_object_id(uint8_t *to, const char *text, size_t length);

/* 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, joined by hyphens: binary data of subtype
 * 4. */
uint8_t *sl_bson_put_uuid(uint8_t *to, const char *text, size_t length);

/* A decimal number, with an exponent or not, that a decimal128 holds exactly: of up to 34
 * digits. */
uint8_t *sl_bson_put_decimal(uint8_t *to, const char *text, size_t length);
/* The same, or one of the words Infinity and NaN. */
uint8_t *sl_bson_put_decimal_or_word(uint8_t *to, const char *text, size_t length);

#endif
