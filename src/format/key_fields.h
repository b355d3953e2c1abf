/* SPDX-License-Identifier: Apache-2.0 */
/* The fields that identify a document: those that become its _id (--id-field), and those by which
 * the documents of a collection are matched (--match-fields with --mode).
 *
 * A format writes a document with the _id of its position, or with its own _id, and then calls
 * sl_key_fields_apply, which changes the document in place. A name is the key of a field, or names
 * separated by points: the key of a field in embedded documents. */
#ifndef SHARDLOAD_KEY_FIELDS_H
#define SHARDLOAD_KEY_FIELDS_H

#include "format.h"

#define SL_KEY_FIELDS_MAX 16
/* The longest value of an _id made of fields, in bytes. Servers before 4.2 do not index longer
 * values. */
#define SL_KEY_FIELD_BYTES_MAX 1000u

typedef struct sl_key_names {
    size_t count;
    char *names[SL_KEY_FIELDS_MAX]; /* owned */
    char *given[SL_KEY_FIELDS_MAX]; /* the names before they were renamed, or NULL; owned */
} sl_key_names;

/* Does not change once threads have been started. */
typedef struct sl_key_fields {
    sl_key_names id;    /* none: the _id is not changed */
    sl_key_names match; /* none: the load inserts */
    sl_mode mode;
    bool table; /* embedded documents that only held removed fields are removed, too */
    bool paths; /* names of the documents' fields are paths (sl_nesting_set_paths) */
} sl_key_fields;

/* Reads a list of names, separated by commas. NULL: it is valid; otherwise a phrase for a message,
 * a string constant. `names` (may be NULL): cleared by the caller, in any case. */
const char *sl_key_names_read(const char *list, sl_key_names *names);
void sl_key_names_clear(sl_key_names *names);
bool sl_key_names_have(const sl_key_names *names, const char *name);

/* Compiles the options. *keys is NULL if documents need no change. False without memory, or if the
 * options contradict each other (SL_EXIT_USAGE). */
bool sl_key_fields_create(const sl_format_options *options, sl_key_fields **keys, sl_error *error);
void sl_key_fields_destroy(sl_key_fields *keys); /* NULL is fine */

/* Replaces the name of a field by its key in the documents. False without memory. */
bool sl_key_names_rename(sl_key_names *names, size_t index, const char *key);
/* Can the fields be used together, after they were renamed? If not: false, with SL_EXIT_USAGE. */
bool sl_key_fields_check(const sl_key_fields *keys, sl_error *error);

/* Changes a document, whose _id comes first; `own_id`: the _id is not that of its position. `*end`:
 * the document's end, which never moves back. Moves the fields of --id-field into the _id. With
 * another mode than insert, checks that the document can be matched and sent. False: the document
 * is refused; `reject` has column and reason. */
bool sl_key_fields_apply(const sl_key_fields *keys, bool own_id, uint8_t *document, uint8_t **end,
                         sl_reject *reject);

/* Finds a field of a valid document. `*value` is its value, of `*length` bytes. */
bool sl_key_field_find(const uint8_t *document, const char *name, uint8_t *type,
                       const uint8_t **value, size_t *length);

#endif
