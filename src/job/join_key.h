/* SPDX-License-Identifier: Apache-2.0 */
/* The key by which --embed joins two sources, as bytes that are equal for equal values.
 *
 * Numbers are equal if their values are, whatever their types (bson_number.h). All other values are
 * equal only if their types and bytes are equal. For each value the key contains a letter for the
 * type, and then:
 *
 *   i  integer: 8 bytes        d  other double: 8      s  text: length in 4 bytes, bytes
 *   t  date: 8                 b  bool: 1              x  binary: length, subtype, bytes
 *   o  ObjectId: 12            n  other decimal128: 16 p  timestamp: 8
 *
 * If this layout changes, SL_STORE_FORMAT (embed_store.h) must change.
 */
#ifndef SHARDLOAD_JOIN_KEY_H
#define SHARDLOAD_JOIN_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#define SL_JOIN_FIELDS_MAX 8
#define SL_JOIN_KEY_ROOM ((size_t)4096) /* the longest key, in bytes */

/* Writes the key made of the fields `names` of a document into `key` (SL_JOIN_KEY_ROOM bytes), and
 * returns its length. A name with dots is a path into embedded documents. Returns 0 when the
 * document has no key: a field is absent, null, an array, a document, NaN or of a type not listed
 * above, or the key is too long. */
size_t sl_join_key_of(const bson_t *document, const char *const *names, size_t count, uint8_t *key);

/* Appends the values of a key to a document, under these names. An integer is appended as int32 if
 * it fits, else as int64; another number as double, or as decimal128 if it is not a double. */
void sl_join_key_append(const uint8_t *key, size_t length, const char *const *names, size_t count,
                        bson_t *to);

/* The letters of a key's values, such as "is", into `out` (SL_JOIN_FIELDS_MAX + 1 bytes). Returns
 * out. */
const char *sl_join_key_letters(const uint8_t *key, size_t length, char *out);

/* Can a value of the type of one letter be equal to one of the other's? */
bool sl_join_may_equal(char one, char other);

/* The name of a letter's type, such as "an integer". */
const char *sl_join_letter_name(char letter);

#endif
