/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: the update or delete command of a load with another mode than insert, encoded by hand
 * from the documents of a batch. A buffer belongs to one thread. */
#ifndef SHARDLOAD_STATEMENTS_H
#define SHARDLOAD_STATEMENTS_H

#include <bson/bson.h>

#include "format/key_fields.h"

/* The room for statements in a command with more than one statement. A server accepts commands of
 * up to 16 MiB + 16 KiB. */
#define SL_STATEMENTS_BYTES_MAX ((size_t)15 << 20)

typedef struct sl_statements {
    uint8_t *bytes; /* of the command; the caller frees them */
    size_t room;
} sl_statements;

/* Writes the command for as many of the `count` documents as fit, at least one: `head` (its first
 * field is the command's name) with the statements. documents[places[i]] is document i. `*taken`:
 * the number of documents whose statements fit. `command` is a view of the bytes, valid until the
 * next call. False without memory.
 *
 * Each statement matches by {name: {$eq: value}} for each of the keys' match fields, so a value is
 * never interpreted as an operator. */
bool sl_statements_write(sl_statements *statements, const sl_key_fields *keys, const bson_t *head,
                         const bson_t *documents, const uint32_t *places, uint32_t count,
                         uint32_t *taken, bson_t *command);

#endif
