/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: BSON documents as relaxed Extended JSON, and back. Control characters, marks of text
 * direction and line separators are written as \uXXXX, so that the text is harmless on a terminal.
 * Errors are of class SL_EXIT_USAGE when a file cannot be opened or written, SL_EXIT_SOURCE when
 * its text is wrong. */
#ifndef SHARDLOAD_JSON_H
#define SHARDLOAD_JSON_H

#include <stdbool.h>

#include <bson/bson.h>

#include <shardload/error.h>

/* Formats a document as relaxed Extended JSON, indented by 2, with a final newline. Documents and
 * arrays that fit into 100 columns take one line. Doubles have the fewest digits that give the same
 * double back. Free the result with free(). NULL, with error set: text that is not UTF-8, nesting
 * deeper than 100, no memory. */
char *sl_json_text(const bson_t *document, sl_error *error);

/* Formats a document on one line, by libbson. Free the result with free(). NULL on failure. */
char *sl_json_line(const bson_t *document);

/* Formats one value on one line, with the rules of sl_json_text. Free the result with free(). NULL
 * on failure. */
char *sl_json_value(const bson_iter_t *value);

/* Writes the text of sl_json_text to `path` as sl_private_file_replace does. */
bool sl_json_write_file(const char *path, const bson_t *document, sl_error *error);

/* Checks beforehand that sl_json_write_file can write to `path`; see
 * sl_private_file_may_replace. */
bool sl_json_may_write_file(const char *path, sl_error *error);

/* Parses one JSON object or array, with only blanks around it. Destroy the result. NULL with
 * `wrong` set for other text; the message names the position, in bytes from 0, if it is known. */
bson_t *sl_json_parse(const char *text, size_t length, bson_error_t *wrong);

/* Reads a file of one JSON document of at most 256 MiB. Destroy `*document`. */
bool sl_json_read_file(const char *path, bson_t **document, sl_error *error);

#endif
