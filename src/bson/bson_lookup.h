/* SPDX-License-Identifier: Apache-2.0 */
/* Reads fields of BSON documents by their paths: "accounting.records". A field that is missing or
 * has another type is not an error: the functions return NULL, NAN or another given value. */
#ifndef SHARDLOAD_BSON_LOOKUP_H
#define SHARDLOAD_BSON_LOOKUP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

#define SL_DATE_ROOM 32
#define SL_ARRAY_KEY_ROOM 16

/* Finds any value. The functions for values of one type also find the earlier names of keys of
 * run.json; this one does not, because it is for documents of users. */
bool sl_look_find(const bson_t *document, const char *path, bson_iter_t *value);

/* As sl_look_find, or a field whose name is the path, as in {$set: {"a.b": 1}}. */
bool sl_look_set(const bson_t *document, const char *path, bson_iter_t *value);

/* A number from -1e18 to 1e18, or NAN. */
double sl_look_number(const bson_t *document, const char *path);
/* A number from 0 to 1e18, or `fallback`. */
double sl_look_amount(const bson_t *document, const char *path, double fallback);
/* A number as an integer, or `fallback`. */
int64_t sl_look_int64(const bson_t *document, const char *path, int64_t fallback);
/* A text without NUL bytes, borrowed; NULL if there is none. */
const char *sl_look_text(const bson_t *document, const char *path);
/* The same; "" if there is none. */
const char *sl_look_string(const bson_t *document, const char *path);
/* Reads a truth value: 1 is true, 0 is false; -1: there is none. */
int sl_look_truth(const bson_t *document, const char *path);
/* Is it true, or a number other than 0? */
bool sl_look_flag(const bson_t *document, const char *path);
/* Sets `*inner` to the document or array at the path, borrowed. False if there is none: `*inner` is
 * then an empty document. */
bool sl_look_inside(const bson_t *document, const char *path, bson_t *inner);

/* Walks the documents of an array:
 *     for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);)
 *         use(&walk.item); */
typedef struct sl_walk {
    bson_iter_t at;
    bool more;
    bson_t item; /* the current document, borrowed */
} sl_walk;
sl_walk sl_walk_start(const bson_t *document, const char *path);
sl_walk sl_walk_of(const bson_t *array);
bool sl_walk_next(sl_walk *walk); /* skips elements that are not documents */
uint32_t sl_walk_count(const bson_t *document, const char *path); /* counts its documents */
uint32_t sl_look_count(const bson_t *document, const char *path); /* counts its elements */

/* Calls `visit` for each text that only one of the documents has, or that differs between them;
 * NULL: the document has none. An empty text counts as none. */
void sl_look_differences(const bson_t *before, const bson_t *now,
                         void (*visit)(void *context, const char *name, const char *before,
                                       const char *now),
                         void *context);

/* Writes a date as text, "2026-01-31T09:30:00Z"; "" if there is none. */
void sl_look_date(const bson_t *document, const char *path, char out[SL_DATE_ROOM]);

/* The key of element `index` of an array, perhaps in `room`. BSON_APPEND macros evaluate their keys
 * twice. */
static inline const char *sl_array_key(size_t index, char room[SL_ARRAY_KEY_ROOM]) {
    const char *key;
    bson_uint32_to_string((uint32_t)index, &key, room, SL_ARRAY_KEY_ROOM);
    return key;
}

/* The value at `at`: a number from -1e18 to 1e18, or NAN. */
double sl_value_number(const bson_iter_t *at);
/* The same as an integer, of 64 bits if it is stored as such; or `fallback`. */
int64_t sl_value_int64(const bson_iter_t *at, int64_t fallback);
/* Sets `*document` to the value at `at`, borrowed. False if that is not a document, or, for
 * sl_container_at, neither a document nor an array. */
bool sl_document_at(const bson_iter_t *at, bson_t *document);
bool sl_container_at(const bson_iter_t *at, bson_t *document);

/* The document as relaxed Extended JSON on one line; free it with bson_free(). A byte that is not
 * UTF-8, which libbson refuses, becomes SUBSTITUTE (\u001a); in code or a regex: returns a note. */
char *sl_document_json(const bson_t *document);

/* Do the values have the same type and the same bytes? */
bool sl_values_equal(const bson_iter_t *a, const bson_iter_t *b);

/* Does the value at `at` contain a document: is it a document, an array, or code with a scope? Sets
 * `*bytes` to it, borrowed and not checked; NULL if its length is wrong. */
bool sl_inner_at(const bson_iter_t *at, const uint8_t **bytes, uint32_t *length);

/* Is a document of a file valid, with all in it, and nested no deeper than SL_FILE_LEVELS? The
 * check of the BSON library recurses without a limit. */
#define SL_FILE_LEVELS 20
bool sl_document_is_sound(const bson_t *document);

#endif
