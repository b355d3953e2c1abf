/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML files. Error messages begin with file, line and column.
 *
 * Mappings with fixed keys are read by tables: a row has a key, the function that reads its value,
 * and the offset of the field that receives the value. Errors are: a key that is not in the table,
 * a key that is given twice, a required key that is missing.
 *
 * Limits on size, nesting and anchors are checked before a document is built: libyaml's time grows
 * with the square of the nesting depth and of the number of anchors, so 100,000 brackets would take
 * minutes. */
#ifndef SHARDLOAD_YAML_READER_H
#define SHARDLOAD_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

#include "error.h"
#include "text.h"

typedef struct sl_yaml {
    sl_text text;             /* of the file; needed until sl_yaml_read returns */
    const char *file;         /* the name of the file in messages */
    sl_exit code;             /* the class of errors */
    sl_error *error;          /* set when a function returns false */
    const char *single;       /* what the file holds, for the message that refuses a second document
                               * in it; NULL: a second document is ignored */
    yaml_document_t document; /* between sl_yaml_read and yaml_document_delete */
} sl_yaml;

typedef struct sl_yaml_key {
    const char *name; /* NULL ends the table, which has at most SL_YAML_KEYS_MAX keys */
    bool (*read)(sl_yaml *r, const yaml_node_t *node, void *field);
    size_t offset; /* of the field in the mapping's struct */
    bool required;
} sl_yaml_key;

#define SL_YAML_KEYS_MAX 32
#define SL_YAML_BYTES_MAX ((size_t)16 << 20) /* of a file */

/* Checks the limits and reads the text's first document, which the caller deletes. `*root` is NULL
 * when the text is empty. False, with no document to delete, when the text is not YAML. */
bool sl_yaml_read(sl_yaml *r, const yaml_node_t **root);

/* Reads a mapping into the struct at `into`. */
bool sl_yaml_mapping(sl_yaml *r, const yaml_node_t *node, const sl_yaml_key *keys, void *into);

/* The pair `i` of a mapping, or the item `i` of a sequence. False or NULL after the last one, and
 * for a node of another type. */
bool sl_yaml_pair(sl_yaml *r, const yaml_node_t *node, size_t i, const yaml_node_t **key,
                  const yaml_node_t **value);
const yaml_node_t *sl_yaml_item(sl_yaml *r, const yaml_node_t *node, size_t i);

/* The number of pairs of a mapping, or of items of a sequence; 0 for a scalar. */
size_t sl_yaml_length(const yaml_node_t *node);

/* Calls `one` for each pair of a mapping. False when it returns false, and with an error for a key
 * that is given twice and for a node of another type: "expected `expected`, found ...". */
bool sl_yaml_each(sl_yaml *r, const yaml_node_t *node, const char *expected,
                  bool (*one)(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *value,
                              void *into),
                  void *into);

/* Counts the items of a sequence (`type` YAML_SEQUENCE_NODE) or the pairs of a mapping. False, with
 * the error "expected `expected`, found ...", for a node of another type or an empty one. */
bool sl_yaml_count(sl_yaml *r, const yaml_node_t *node, yaml_node_type_t type, const char *expected,
                   size_t *count);

/* Sets the error "file:line:column: ...". Always returns false. */
bool sl_yaml_fail(sl_yaml *r, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the error "file:line:column: expected `expected`, found ...". Always returns false. */
bool sl_yaml_expected(sl_yaml *r, const yaml_node_t *node, const char *expected);

/* Describes a node for a message: "a list", "a mapping", "nothing", or its text in quotes, which is
 * written to `out`. */
#define SL_YAML_FOUND_ROOM 64
const char *sl_yaml_found(const yaml_node_t *node, char out[SL_YAML_FOUND_ROOM]);

/* The value of a scalar; the empty text for other nodes. */
sl_text sl_yaml_text(const yaml_node_t *node);

/* The value of a scalar, NUL-terminated; NULL when it is empty or contains a NUL, and for other
 * nodes. */
const char *sl_yaml_word(const yaml_node_t *node);

/* Is the node a scalar with this value? */
bool sl_yaml_is(const yaml_node_t *node, const char *value);

/* Finds the scalar among `count` words. False, with an error, if it is none of them. */
bool sl_yaml_choice(sl_yaml *r, const yaml_node_t *node, const char *const *words, size_t count,
                    const char *expected, size_t *index);

/* The position in the file of byte `at` of a scalar's value. Exact for literal blocks (|) and for
 * scalars on one line without escapes; otherwise the position of the scalar. */
yaml_mark_t sl_yaml_locate(const sl_yaml *r, const yaml_node_t *node, size_t at);

/* Writes a text, which is UTF-8, as a quoted scalar. Characters that YAML refuses or replaces, and
 * those that control a terminal or the direction of text, are escaped. */
void sl_yaml_put_quoted(FILE *out, const char *text);

#endif
