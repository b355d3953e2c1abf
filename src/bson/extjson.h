/* SPDX-License-Identifier: Apache-2.0 */
/* Extended JSON: converts the text of a document to BSON, in one pass and in place.
 *
 * Reads JSON (RFC 8259), with NaN, Infinity and -Infinity as numbers; Extended JSON v2, canonical
 * and relaxed; the older forms that mongoexport wrote; and where JSON has no valid token, the
 * syntax of the mongo shell, as `mongoimport --legacy` does. Published description: the MongoDB
 * specification "Extended JSON", version 2. The result equals that of libbson's bson_new_from_json,
 * except for the differences listed in tests/unit/test_extjson.c.
 *
 * A parser belongs to one thread. It allocates nothing per document: its only memory is a table of
 * the current document's keys, which detects duplicate keys and grows with the largest document. */
#ifndef SHARDLOAD_EXTJSON_H
#define SHARDLOAD_EXTJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"
#include "util/text.h"

/* Documents and arrays within each other, the outermost document included. */
#define SL_EXTJSON_DEPTH_MAX 100u

/* An upper bound of the BSON written after the last check for room. The buffer of a document must
 * have this many bytes more than the document's length. */
#define SL_EXTJSON_MARGIN 256u

typedef enum sl_extjson_status {
    SL_EXTJSON_OK,
    SL_EXTJSON_INVALID, /* the text is not a valid document; see sl_extjson_fault */
    SL_EXTJSON_NO_ROOM, /* call again with more room */
} sl_extjson_status;

/* Why a text is invalid. */
typedef struct sl_extjson_fault {
    const char *at;     /* the byte that is wrong, in the text or at its end */
    const char *reason; /* a phrase, such as "a comma or } is missing" */
    sl_text shown;      /* what the reason is about, or length 0; valid until the next call */
} sl_extjson_fault;

typedef struct sl_extjson sl_extjson;

/* As sl_utf8_valid, without the position. */
typedef bool sl_utf8_check(const char *bytes, size_t length);

/* Creates a parser whose loops are built for the instruction set `name`, as in format/simd.h. */
bool sl_extjson_create(const char *name, sl_utf8_check *utf8_valid, sl_extjson **parser,
                       sl_error *error);
void sl_extjson_destroy(sl_extjson *parser); /* NULL is fine */

/* Converts the document that begins with the { at `text`, and writes it to `to`. `end` is the end
 * of the text: end[-1] is a }, and SL_SLACK readable bytes follow. The bytes from `limit` on are
 * not part of the document; the SL_SLACK bytes after it may be overwritten.
 *
 * If the document has an `_id`, at any position, that becomes its first field, and `*own_id` is
 * set. If it has none, `_id: *id` is added as its first field, unless `id` is NULL.
 *
 * SL_EXTJSON_OK: `*after` is the address after the text's document, `*written` the one after the
 * BSON document. */
sl_extjson_status sl_extjson_document(sl_extjson *parser, const char *text, const char *end,
                                      const int64_t *id, uint8_t *to, uint8_t *limit,
                                      const char **after, uint8_t **written, bool *own_id);

/* Writes the character of the escape whose backslash is at `p` to *to, and moves *to after it.
 * Returns the address after the escape; NULL: it is not valid. */
const char *sl_extjson_escape(sl_extjson *parser, const char *p, uint8_t **to);

/* From now on, numbers that would be refused or rounded are decimal128. */
void sl_extjson_set_lossless(sl_extjson *parser);

/* The number of numbers, in all documents so far, that have more digits than a double holds and
 * were rounded. Those of a text that was parsed again for more room are counted again. */
uint64_t sl_extjson_rounded(const sl_extjson *parser);

/* The number of keys and values in the syntax of the mongo shell, in all documents so far. */
uint64_t sl_extjson_shell(const sl_extjson *parser);

const sl_extjson_fault *sl_extjson_why(const sl_extjson *parser);

#endif
