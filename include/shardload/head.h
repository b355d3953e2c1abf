/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a source that is a table: its first line, its delimiter, its header's names. */
#ifndef SHARDLOAD_HEAD_H
#define SHARDLOAD_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include <shardload/error.h>
#include <shardload/text.h>

/* A source's first line that is not blank, as a sniff needs it. */
typedef struct sl_first_line {
    sl_text line;        /* without line end */
    size_t header_bytes; /* of the line with its line end */
    size_t text_start;   /* of the source: behind its byte order mark */
    size_t end;          /* behind its line end */
    char delimiter;      /* the one of | , TAB ; that it has most of, 0 when it has none */
    size_t fields;       /* how many fields that makes */
} sl_first_line;

/* False with error set when there is none, or the head is that of a binary file. `delimiters` are
 * the candidates, in order of preference. */
bool sl_first_line_read(sl_text head, const char *delimiters, sl_first_line *first,
                        sl_error *error);

/* The fields of a header line, quoted or not: at most `limit`. Returns how many there are. */
size_t sl_header_split(sl_text line, char delimiter, sl_text *names, size_t limit);

#endif
