/* SPDX-License-Identifier: Apache-2.0 */
/* Private to src/bson: values that Extended JSON writes as objects, {"$oid": "..."} and so on. */
#ifndef SHARDLOAD_EXTJSON_TYPES_H
#define SHARDLOAD_EXTJSON_TYPES_H

#include "extjson_parser.h"

/* Reads from `p`, the value of the object's first key, to the end of the object: writes the BSON
 * type to *type and the value to *to, and moves *to after it. `depth`: the level of the document
 * that has the value. Returns the address after the object, or NULL. */
typedef const char *sl_extjson_take(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                    uint32_t depth);

sl_extjson_take sl_extjson_take_oid, sl_extjson_take_int32, sl_extjson_take_int64,
    sl_extjson_take_double, sl_extjson_take_decimal, sl_extjson_take_date,
    sl_extjson_take_timestamp, sl_extjson_take_binary, sl_extjson_take_type, sl_extjson_take_uuid,
    sl_extjson_take_regex, sl_extjson_take_options, sl_extjson_take_expression,
    sl_extjson_take_code, sl_extjson_take_scope, sl_extjson_take_pointer, sl_extjson_take_symbol;

/* Bytes between a value and the text that it is converted from. */
#define EXTJSON_SCRATCH 32

/* ---- parts of objects; each returns the address after the part, or NULL ---- */

/* Copies the string at `p` to `to`, ended by NUL. `expected`: the reason if it is not a string. */
const char *sl_extjson_take_text(sl_extjson *x, const char *p, uint8_t *to, sl_text *text,
                                 const char *expected);
/* The end of an object that is a value. The } of the document around it must follow. */
const char *sl_extjson_take_end(sl_extjson *x, const char *p);
/* Reads the first key of an object (`p` is after the {), or a further key (`p` is before the
 * comma), and the colon. Returns the address of the value. */
const char *sl_extjson_take_key(sl_extjson *x, const char *p, bool first, uint8_t *scratch,
                                sl_text *key);
/* A further key, which must be `name`. */
const char *sl_extjson_take_second(sl_extjson *x, const char *p, uint8_t *scratch, const char *name,
                                   const char *expected);
const char *sl_extjson_begin_object(sl_extjson *x, const char *p, const char *expected);

static inline const char *extjson_not_a(sl_extjson *x, const char *at, const char *reason,
                                        sl_text text) {
    return extjson_fail_with(x, at, reason, text.bytes, text.length);
}

#endif
