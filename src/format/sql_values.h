/* SPDX-License-Identifier: Apache-2.0 */
/* Values that databases have and plain tables do not: documents, arrays, bytes. Their functions are
 * the `put` of rows of sl_column_types. */
#ifndef SHARDLOAD_SQL_VALUES_H
#define SHARDLOAD_SQL_VALUES_H

#include "column_types.h"

/* A JSON value, also a number or text alone; Extended JSON. */
uint8_t *sl_put_json(const sl_value *value, uint8_t *to);

/* An array as PostgreSQL writes it, {1,NULL,"a b"}, or a JSON array. The elements have the type
 * that the column has as `format`; otherwise unquoted numbers are numbers. */
uint8_t *sl_put_array(const sl_value *value, uint8_t *to);

/* Hexadecimal digits, with or without \x or 0x before them, as binary data. */
uint8_t *sl_put_hex(const sl_value *value, uint8_t *to);

/* Base64 (RFC 4648), with or without line ends, as binary data. */
uint8_t *sl_put_base64(const sl_value *value, uint8_t *to);
uint8_t *sl_put_base32(const sl_value *value, uint8_t *to);

/* The bytes of the field as binary data. */
uint8_t *sl_put_raw(const sl_value *value, uint8_t *to);

/* One of the usual words for true and false, in any case. */
uint8_t *sl_put_bool(const sl_value *value, uint8_t *to);

#endif
