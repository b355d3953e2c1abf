/* SPDX-License-Identifier: Apache-2.0 */
/* Private to src/format: the text of JSON sources around and between their documents.
 *
 * A source is JSON lines (each line holds complete documents), or a text whose documents span
 * lines: concatenated ones, or an array of them. Blanks and byte order marks may precede each
 * document. */
#ifndef SHARDLOAD_JSON_H
#define SHARDLOAD_JSON_H

#include "format.h"

/* The bytes that begin a text: blanks and byte order marks. */
static inline const char *sl_json_skip(const char *p, const char *end) {
    for (; p < end; p++) {
        if (*p == '\xEF' && end - p >= 3 && p[1] == '\xBB' && p[2] == '\xBF')
            p += 2;
        else if (*p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
            break;
    }
    return p;
}

/* Can the text, as far as it has been read, begin with a document or an array of documents? If not,
 * it is in another format. */
bool sl_json_begins(sl_text head);

/* Is this JSON lines? The first document decides: it is followed by a line end, and has none
 * within. If the head ends before the document ends, the answer is true, unless the head is the
 * complete text. */
bool sl_json_is_lines(sl_text head, bool whole);

/* The end of the document that begins at `p`, by the grammar of JSON alone; NULL when the text is
 * not JSON, or too deep to check. The end is certain even if the document cannot be stored. */
const char *sl_json_document_end(const char *p, const char *end);

extern const sl_splitter sl_json_splitter;

#endif
