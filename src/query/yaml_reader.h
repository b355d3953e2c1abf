/* SPDX-License-Identifier: Apache-2.0 */
/* YAML read by tables of keys, with errors that name file, line and column. Internal to the query
 * floor.
 *
 * A mapping is described by a table: each row is a key, the function that reads its value, and
 * where the value goes. Whatever is not in the table is an error, and so is a key that comes twice
 * or a required one that does not come. */
#ifndef QUERY_YAML_READER_H
#define QUERY_YAML_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <yaml.h>

#include <shardload/error.h>
#include <shardload/text.h>

typedef struct sl_yaml {
    yaml_document_t document; /* between sl_yaml_load and yaml_document_delete */
    sl_text text;             /* the whole file */
    const char *file;         /* its name in messages */
    sl_error *error;          /* set when a function returns false; SL_EXIT_SOURCE */
} sl_yaml;

typedef struct sl_yaml_key {
    const char *name; /* NULL ends a table of at most SL_YAML_KEYS_MAX rows */
    bool (*read)(sl_yaml *r, const yaml_node_t *node, void *field);
    size_t offset; /* of the field in the mapping's struct */
    bool required;
} sl_yaml_key;

#define SL_YAML_KEYS_MAX 32

/* Loads the next document; false when the text is not YAML. */
bool sl_yaml_load(sl_yaml *r, yaml_parser_t *parser);

/* Reads a mapping into the struct at `into`. */
bool sl_yaml_mapping(sl_yaml *r, const yaml_node_t *node, const sl_yaml_key *keys, void *into);

/* Sets the error "file:line:column: ...". Always returns false. */
bool sl_yaml_complain(sl_yaml *r, yaml_mark_t mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a node is, for messages: "a list", "nothing", or its text in quotes, put into `out`. */
#define SL_YAML_FOUND_ROOM 64
const char *sl_yaml_found(const yaml_node_t *node, char out[SL_YAML_FOUND_ROOM]);

/* The value of a scalar. */
sl_text sl_yaml_text(const yaml_node_t *node);

/* Where in the file byte `at` of a scalar's value stands. Exact for literal blocks (|) and for
 * scalars on one line without escapes; the scalar's beginning otherwise. */
yaml_mark_t sl_yaml_locate(const sl_yaml *r, const yaml_node_t *node, size_t at);

#endif
