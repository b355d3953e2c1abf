/* SPDX-License-Identifier: Apache-2.0 */
/* Converts BSON documents to relaxed Extended JSON and back. Control characters, bidirectional
 * formatting characters and line separators are written as \uXXXX, so that the text is harmless on
 * a terminal. Errors: SL_EXIT_USAGE when a file cannot be opened or written, SL_EXIT_SOURCE when
 * its text is not valid JSON. */
#ifndef SHARDLOAD_JSON_H
#define SHARDLOAD_JSON_H

#include <stdbool.h>

#include <bson/bson.h>

#include "util/error.h"

/* The document as relaxed Extended JSON, indented by 2, ending with a newline. A value that fits
 * into 100 columns stays on one line; doubles have the fewest digits that identify them. Free the
 * result with free(). NULL, with error set, without memory. */
char *sl_json_text(const bson_t *document, sl_error *error);

/* A document on one line, by sl_document_json. Free the result with free(). NULL on failure. */
char *sl_json_line(const bson_t *document);

/* Formats one value on one line, with the rules of sl_json_text. Free the result with free(). NULL
 * on failure. */
char *sl_json_value(const bson_iter_t *value);

/* Writes the text of sl_json_text to `path` as sl_private_file_replace does. */
bool sl_json_write_file(const char *path, const bson_t *document, sl_error *error);

/* Parses one JSON object or array of at most 128 MiB, surrounded only by white space. Destroy the
 * result. NULL with `wrong` set for any other text; the message gives the position in bytes from 0,
 * if known. */
bson_t *sl_json_parse(const char *text, size_t length, bson_error_t *wrong);

/* Reads a file of one JSON document, as sl_json_parse. Destroy `*document`. */
bool sl_json_read_file(const char *path, bson_t **document, sl_error *error);
/* The same for a file of a work directory, opened by sl_private_file_read. */
bool sl_json_read_private(const char *path, bson_t **document, sl_error *error);

#endif
