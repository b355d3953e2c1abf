/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a delimited source: its first line, delimiter and header names; and a check of
 * its line ends. */
#ifndef SHARDLOAD_HEAD_H
#define SHARDLOAD_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/error.h"
#include "util/text.h"

/* The byte that quotes fields, as chosen by the user: one of these, or the byte itself. */
#define SL_QUOTE_AUTO '\0' /* a double quote, but none if pipes or tabs separate fields */
#define SL_QUOTE_NONE '\n' /* a byte that cannot be a delimiter */

/* The byte that quotes fields if this choice was made and this delimiter is used; 0: none. */
char sl_quote_of(char choice, char delimiter);

/* A source's first line that is not blank. Offsets are from the source's first byte. */
typedef struct sl_first_line {
    sl_text line;        /* without line end */
    size_t header_bytes; /* of the line with its line end */
    size_t text_start;   /* offset after the byte order mark */
    size_t end;          /* offset after the line's line end */
    char delimiter;      /* the candidate that gives the most fields; 0: the line contains no
                            candidate */
    size_t fields;       /* number of fields with this delimiter */
    bool marked;         /* the source begins with a byte order mark: it is UTF-8 */
} sl_first_line;

#define SL_SKIPPED_ROOM 64 /* for the beginning of lines before a table */

bool sl_line_is_blank(sl_text line);

/* The number of line feeds in a text. */
uint32_t sl_line_feeds(const char *from, const char *to);

/* Reads the line at *at, without its line end, and moves *at after it. False at the end of the
 * head. A last line without line end is stored in *line, too; the result is true only if the head
 * is the `whole` text, since otherwise the line may be longer. */
bool sl_next_line(sl_text head, bool whole, size_t *at, sl_text *line);

/* Does the head, which is not the `whole` text, end within this line? */
static inline bool sl_line_is_cut(sl_text head, bool whole, sl_text line) {
    const char *end = line.bytes + line.length;
    return !whole && !memchr(end, '\n', (size_t)(head.bytes + head.length - end));
}

/* Reads the first line at or after `from`. False with error set when all lines are blank, or the
 * bytes are those of a binary file. `delimiters`: the candidates, in order of preference. `quote`:
 * see SL_QUOTE_AUTO. */
bool sl_first_line_read(sl_text head, size_t from, const char *delimiters, char quote,
                        sl_first_line *first, sl_error *error);

/* In the following functions `quote` is the byte that quotes fields, or 0. */

/* The position, from `at` (after an opening quote) to `end`, of the quote that closes a field;
 * `end`: none does. Two quotes in a row are data; so is the byte after an `escape` (0: there is
 * none). */
size_t sl_closing_quote(const char *text, size_t at, size_t end, char quote, char escape);

/* Splits a line into its fields, without quotes, and stores the first `limit`. Returns the number
 * of all fields. With `quote` 0, double quotes around a name are removed all the same. The byte
 * after an `escape` (0: there is none) is data. */
size_t sl_fields_split(sl_text line, char delimiter, char quote, char escape, sl_text *fields,
                       size_t limit);

/* Replaces the doubled quotes of quoted names by single ones. Changed names are stored in `memory`,
 * of line.length bytes. `names`: from sl_fields_split for this line. */
void sl_header_unquote(sl_text line, char quote, sl_text *names, size_t count, char *memory);

/* Checks the quotes of a line. A field is quoted when it begins with a quote; a doubled quote is
 * data. `escapes`: a backslash in quotes escapes the next byte. `*open`: position of the opening
 * quote of the last quoted field. */
typedef enum sl_quotes {
    SL_QUOTES_CLOSED,  /* every quoted field is closed before a delimiter or the line's end */
    SL_QUOTES_OPEN,    /* the last quoted field is still open at the line's end */
    SL_QUOTES_STRANGE, /* a byte other than the delimiter follows a closing quote */
} sl_quotes;
sl_quotes sl_line_quotes(sl_text line, char delimiter, char quote, bool escapes, size_t *open);

/* The number of fields of the record at the beginning of the text; 0 if it has no end, or another
 * byte follows a closing quote. `escape`: 0 for none. */
size_t sl_record_fields(sl_text text, char delimiter, char quote, char escape);

/* Has the text, which begins with a line, a record of several lines: a quoted field that is open at
 * the end of its line is closed later, and the record has so many fields? `escape`: 0 for none. */
bool sl_record_spans_lines(sl_text text, char delimiter, char quote, char escape, size_t columns);

/* Does a quoted field of the line continue in the next line? The quotes are checked with and
 * without escapes: true if neither check returns SL_QUOTES_CLOSED, and at least one SL_QUOTES_OPEN.
 * `*open` is then the position of the opening quote. */
bool sl_line_continues(sl_text line, char delimiter, char quote, size_t *open);

/* The message for a line that continues; its argument is the line's text from the quote on, by
 * sl_quoted. */
#define SL_LINE_CONTINUES                                                                          \
    "a quoted field is still open at the end of its line: %s; if it contains the line end, load "  \
    "with --quoted-lines yes"

/* Does the line consist of several records separated by CRs? True if it contains a CR outside
 * quotes, and the first piece, and each other piece that is not blank, has `columns` fields. */
bool sl_line_holds_records(sl_text line, char delimiter, char quote, size_t columns);

/* The properties of a dialect that sl_lines_check needs. */
typedef struct sl_lines {
    char delimiter;
    char quote;     /* the byte that quotes fields; 0: none */
    bool continues; /* a quoted field that is open at the end of its line is an error */
    size_t columns;
    const char *advice; /* appended to SL_LINE_CONTINUES */
    size_t body;        /* offset of the first record: --quoted-lines does not help before it */
} sl_lines;

/* Checks the complete lines of a head (`whole`: the last one is complete, even without line end).
 * False with error, as sl_format.check_head, when a quoted field continues in the next line, or a
 * line consists of several records that end in CR only. */
bool sl_lines_check(sl_text head, bool whole, const sl_lines *lines, sl_error *error);

/* Checks the first line of any text: false when it contains a CR, outside quotes, that is not
 * followed by LF. */
bool sl_first_line_end_check(sl_text head, bool whole, sl_error *error);

#endif
