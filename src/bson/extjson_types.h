/* SPDX-License-Identifier: Apache-2.0 */
/* Private to src/bson: values that Extended JSON writes as objects, {"$oid": "..."} and so on. */
#ifndef SHARDLOAD_EXTJSON_TYPES_H
#define SHARDLOAD_EXTJSON_TYPES_H

#include "extjson_parser.h"

/* A value that is being read. */
typedef struct extjson_value {
    uint8_t *type;  /* the element's BSON type, which has been set; the key follows it */
    uint8_t *to;    /* where the value is written */
    uint32_t depth; /* the level of the document that has the value */
} extjson_value;

/* Reads from `p`, the value of the object's first key, up to the object's }: writes the value to
 * v->to, and moves that after it. Returns the address after what was read, or NULL. */
typedef const char *sl_extjson_take(sl_extjson *x, const char *p, extjson_value *v);

sl_extjson_take sl_extjson_take_regex, sl_extjson_take_options, sl_extjson_take_expression,
    sl_extjson_take_code, sl_extjson_take_scope, sl_extjson_take_pointer, sl_extjson_take_symbol;

/* Bytes between a value and the text that it is converted from. */
#define EXTJSON_SCRATCH 32

/* ---- parts of objects; each returns the address after the part, or NULL ---- */

/* Copies the string at `p` to `to`, ended by NUL. `expected`: the reason if it is not a string. */
const char *sl_extjson_take_text(sl_extjson *x, const char *p, uint8_t *to, sl_text *text,
                                 const char *expected);
/* Converts the string at `p` to a value at *to by `put`, and moves *to after it. `expected`: the
 * reason if the string is not such a value. */
const char *sl_extjson_take_converted(sl_extjson *x, const char *p, uint8_t **to,
                                      sl_extjson_put *put, const char *expected);
#define EXTJSON_OBJECT_ID "an ObjectId is a text of 24 hexadecimal digits"
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
