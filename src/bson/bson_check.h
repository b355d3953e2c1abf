/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON checker: validates a document completely, in one pass and without allocating memory.
 * Layout: bsonspec.org, version 1.1. */
#ifndef SHARDLOAD_BSON_CHECK_H
#define SHARDLOAD_BSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bson_headers.h"

/* A document may contain embedded documents and arrays down to this level. Servers store 180 or 181
 * levels, and accept 200 in messages. */
#define SL_BSON_NESTING_MAX 200u
#define SL_BSON_DOCUMENT_MIN 5u

typedef enum sl_bson_verdict {
    SL_BSON_VALID,
    SL_BSON_INVALID,
    SL_BSON_MORE, /* the available bytes are valid; the document is longer */
} sl_bson_verdict;

/* The facts of a document. Offsets are from its first byte; 0: there is no such element. */
typedef struct sl_bson_facts {
    uint32_t length;          /* as declared; set unless fewer than 4 bytes are available */
    uint32_t id_at, id_end;   /* the first element with the key _id: its type byte; its end */
    bool id_twice;            /* the document has more than one */
    uint32_t empty_timestamp; /* an element, other than _id, with the value Timestamp(0, 0) */
    bool not_utf8;     /* it has a key or text that is not UTF-8; servers store it (not set for
                                 a key that sl_bson_check_next has predicted) */
    bool old_binary;   /* it has binary data of subtype 2 with a wrong inner length, which servers
                          store; libbson cannot read fields after it */
    uint32_t wrong_at; /* of an invalid document: the first wrong byte */
    const char *why;   /* of an invalid document: a phrase; a string constant */
} sl_bson_facts;

/* Checks the document at `document`, of which `available` bytes are given, followed by
 * SL_BSON_SLACK readable ones: its size (up to SL_BSON_DOCUMENT_MAX), every length and terminator,
 * types, the values of booleans, nesting. That is what a server checks before it stores a document.
 * A string may contain NUL bytes. The keys of an array may be any
 * keys, and keys may repeat. Sets all facts, which cover the elements of the document itself, not
 * of embedded documents (`not_utf8` and `old_binary` cover both). */
sl_bson_verdict sl_bson_check(const uint8_t *document, size_t available, sl_bson_facts *facts);

/* As sl_bson_check, for a document that is not followed by readable bytes, such as a bson_t: it is
 * copied. SL_BSON_INVALID also if memory is exhausted; `why` is NULL then. */
sl_bson_verdict sl_bson_check_alone(const uint8_t *document, size_t length, sl_bson_facts *facts);

/* As sl_bson_check, with the same result, but faster if the document has the same keys as documents
 * that were checked before with the same `headers`. */
sl_bson_verdict sl_bson_check_next(sl_bson_headers *headers, const uint8_t *document,
                                   size_t available, sl_bson_facts *facts);

/* Could a document begin with these 5 bytes? A quick test for text that is probably BSON. */
bool sl_bson_may_begin(const uint8_t *bytes);

#endif
