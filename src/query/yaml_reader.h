/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML mappings by tables of keys. Error messages begin with file, line and column.
 *
 * A row of a table has a key, the function that reads its value, and the offset of the field that
 * receives the value. Errors are: a key that is not in the table, a key that is given twice, a
 * required key that is missing. */
#ifndef QUERY_YAML_READER_H
#define QUERY_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

#include "util/error.h"
#include "util/text.h"

typedef struct sl_yaml {
    yaml_document_t document; /* between sl_yaml_load and yaml_document_delete */
    sl_text text;             /* of the file */
    const char *file;         /* the name of the file in messages */
    sl_error *error;          /* set when a function returns false; SL_EXIT_SOURCE */
} sl_yaml;

typedef struct sl_yaml_key {
    const char *name; /* NULL ends the table, which has at most SL_YAML_KEYS_MAX keys */
    bool (*read)(sl_yaml *r, const yaml_node_t *node, void *field);
    size_t offset; /* of the field in the mapping's struct */
    bool required;
} sl_yaml_key;

#define SL_YAML_KEYS_MAX 32

/* Loads the next document of the text. On false, for text that is not YAML, `r->error` is set. */
bool sl_yaml_load(sl_yaml *r, yaml_parser_t *parser);

/* Reads a mapping into the struct at `into`. */
bool sl_yaml_mapping(sl_yaml *r, const yaml_node_t *node, const sl_yaml_key *keys, void *into);

/* Counts the items of a sequence (`type` YAML_SEQUENCE_NODE) or the pairs of a mapping. False, with
 * the error "expected `expected`, found ...", for a node of another type or an empty one. */
bool sl_yaml_count(sl_yaml *r, const yaml_node_t *node, yaml_node_type_t type, const char *expected,
                   size_t *count);

/* Sets the error "file:line:column: ...". Always returns false. */
bool sl_yaml_fail(sl_yaml *r, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Describes a node for a message: "a list", "a mapping", "nothing", or its text in quotes, which is
 * written to `out`. */
#define SL_YAML_FOUND_ROOM 64
const char *sl_yaml_found(const yaml_node_t *node, char out[SL_YAML_FOUND_ROOM]);

/* The value of a scalar. */
sl_text sl_yaml_text(const yaml_node_t *node);

/* The position in the file of byte `at` of a scalar's value. Exact for literal blocks (|) and for
 * scalars on one line without escapes; otherwise the position of the scalar. */
yaml_mark_t sl_yaml_locate(const sl_yaml *r, const yaml_node_t *node, size_t at);

#endif
