/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an Extended JSON parser, and the functions of extjson.c that its main loop calls.
 * Private to src/bson.
 *
 * The main loop (extjson_loop.c) is built once per instruction set. It calls the functions below
 * for everything that is rare: values in wrappers such as {"$date": ...}, escapes, unusual numbers,
 * the syntax of the mongo shell.
 *
 * Reading: the text's last byte is a }. So a loop over blanks, digits or letters ends within the
 * text without a check; only strings, and what follows a } or ], must be compared with the end.
 *
 * Writing: `limit` lies SL_EXTJSON_MARGIN bytes before the end of the room. Before an element is
 * written, and before each further vector of a string, the address is compared with it. */
#ifndef SHARDLOAD_EXTJSON_PARSER_H
#define SHARDLOAD_EXTJSON_PARSER_H

#include <string.h>

#include "bson_headers.h"
#include "bson_writer.h"
#include "extjson.h"
#include "util/hash.h"

/* A key of a document that is being read. */
typedef struct extjson_slot {
    uint32_t serial; /* of the (sub)document that has the key; lower than first_serial: empty */
    uint32_t offset; /* of the key in the BSON document */
} extjson_slot;

typedef struct extjson_level {
    uint32_t start;  /* offset of the length field in the BSON document */
    uint32_t index;  /* of an array: the next element's */
    uint32_t serial; /* of a document: unique */
    bool array;
    sl_bson_header
        *parent; /* of a document: the key that has it as value; NULL: not in the table */
} extjson_level;

typedef struct extjson_kernel {
    const char *name; /* as in format/simd.h, which also has sets without a kernel of this parser */
    /* Converts the document whose { is before `p` into the one that begins at `to`; returns the
     * address after its }, or NULL. `depth` is the level of this document. */
    const char *(*document)(sl_extjson *parser, const char *p, uint8_t **to, uint32_t depth);
    /* Copies the string whose opening quote is before `p`, without escapes, to *to, and moves *to
     * after it. Returns the address after the closing quote, or NULL. */
    const char *(*string)(sl_extjson *parser, const char *p, uint8_t **to);
} extjson_kernel;

struct sl_extjson {
    const extjson_kernel *kernel;
    sl_utf8_check *utf8_valid;
    sl_extjson_fault fault;
    bool no_room;     /* the text has not been found invalid */
    bool lossless;    /* numbers that other types would round are decimal128 */
    uint64_t rounded; /* numbers */
    uint64_t shell;   /* keys and values in the syntax of the mongo shell */

    /* The current document: */
    const char *end;
    const int64_t *id; /* NULL: none is added */
    uint8_t *base;
    uint8_t *limit;
    uint32_t own_id;     /* offset of the element `_id`; 0: none so far */
    uint32_t own_id_end; /* 0: its value has not been read */

    /* The keys of the current document; extjson.c. */
    uint64_t seed;
    extjson_slot *slots;
    uint32_t slot_mask;
    uint32_t keys, keys_limit;
    uint32_t first_serial, serial; /* of the outermost document; of the document begun last */

    extjson_level levels[SL_EXTJSON_DEPTH_MAX + 1];
    sl_bson_headers headers; /* keys of earlier documents, in quotes; extjson.c */
    sl_bson_header *top; /* the parent of the document's own keys; NULL: `headers` is not used */
    uint32_t documents, unpredicted; /* documents that used `headers`; keys not predicted */
};

extern const extjson_kernel sl_extjson_portable, sl_extjson_avx2, sl_extjson_neon;

/* Sets the fault; returns NULL. */
static inline const char *extjson_fail(sl_extjson *x, const char *at, const char *reason) {
    x->fault = (sl_extjson_fault){at, reason, {"", 0}};
    return NULL;
}

/* As extjson_fail; `shown` is part of the text or of the BSON document. */
static inline const char *extjson_fail_with(sl_extjson *x, const char *at, const char *reason,
                                            const void *shown, size_t length) {
    x->fault = (sl_extjson_fault){at, reason, {shown, length}};
    return NULL;
}

/* Returns NULL, after which the document is read again with more room. */
static inline const char *extjson_no_room(sl_extjson *x) {
    x->no_room = true;
    return NULL;
}

static inline bool extjson_is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const char *extjson_skip(const char *p) {
    while (extjson_is_blank(*p))
        p++;
    return p;
}

/* As extjson_fail; at the end of the text, the reason is that the document is not complete. */
static inline const char *extjson_expected(sl_extjson *x, const char *at, const char *reason) {
    if (at >= x->end || !reason)
        return extjson_fail(x, x->end, "the text ends before the document is complete");
    return extjson_fail(x, at, reason);
}

/* Set the fault; return NULL. The first: a string ends at `p`, which is not a closing quote within
 * the text. The second: the string from `from` to `p` is not UTF-8. */
const char *sl_extjson_string_fault(sl_extjson *x, const char *p);
const char *sl_extjson_utf8_fault(sl_extjson *x, const char *from, const char *p);

/* Doubles the table. False without memory. */
bool sl_extjson_keys_grow(sl_extjson *x);

/* Finds the key at `key` in the table x->headers, or adds it. Escapes of the text have been
 * replaced at `key`; `escaped`: it had some. NULL: the key is not in the table, and cannot be
 * added. */
sl_bson_header *sl_extjson_find_key(sl_extjson *x, uint8_t *key, size_t length, bool escaped,
                                    const sl_bson_header *parent);

/* The hash of a key in a document; up to 8 bytes after the key are read. */
static inline uint64_t extjson_key_hash(const sl_extjson *x, const uint8_t *key, size_t length,
                                        uint32_t serial) {
    uint64_t hash = x->seed ^ ((uint64_t)serial << 32 | (uint32_t)length), last;
    if (length < 8) {
        last = sl_load_8(key) << (56 - 8 * length) << 8;
    } else {
        for (size_t at = 0; at + 8 < length; at += 8)
            hash = sl_hash_mix(hash ^ SL_HASH_B, sl_load_8(key + at) ^ x->seed);
        last = sl_load_8(key + length - 8);
    }
    return sl_hash_mix(last ^ x->seed ^ SL_HASH_A, hash);
}

/* Adds a key, written at `key`, to those of the document `serial`. `copy`: the same bytes. False:
 * it is a duplicate, or there is no memory (x->keys_limit is 0). */
static inline bool extjson_add_key(sl_extjson *x, const uint8_t *key, const uint8_t *copy,
                                   size_t length, uint32_t serial) {
    uint32_t at = (uint32_t)extjson_key_hash(x, copy, length, serial) & x->slot_mask;
    for (;; at = (at + 1) & x->slot_mask) {
        extjson_slot *slot = &x->slots[at];
        if (slot->serial < x->first_serial) {
            *slot = (extjson_slot){serial, (uint32_t)(key - x->base)};
            return ++x->keys < x->keys_limit || sl_extjson_keys_grow(x);
        }
        if (slot->serial == serial && memcmp(x->base + slot->offset, key, length + 1) == 0)
            return false;
    }
}

/* ---- values: each function reads from `p` on, and returns the address after it or NULL ---- */

/* A number at `p` (a digit or minus sign); writes its type to *type. */
const char *sl_extjson_number(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to);
/* true, false, null, NaN, Infinity, -Infinity, or a value of the mongo shell. `depth`: as of
 * sl_extjson_wrapper. */
const char *sl_extjson_word_value(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth);
/* A key of the mongo shell: without quotes, or in single quotes. */
const char *sl_extjson_shell_key(sl_extjson *x, const char *p, uint8_t **to);

/* The value in the object whose first key begins at `p` (a quote followed by $ or a backslash, or
 * shell syntax), as {"$oid": "..."}: writes its type to *type and its value to *to. `depth`: levels
 * around it. Returns NULL on failure; without a fault and with `*wrapper` false, the object is an
 * ordinary document. */
const char *sl_extjson_wrapper(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth, bool *wrapper);

#endif
