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

/* How the quotes of a line stand, if a backslash in quotes escapes the next byte (`escapes`) or is
 * a byte like others. A field is quoted when it begins with a quote; a doubled quote is data. */
typedef enum sl_quotes {
    SL_QUOTES_CLOSED,  /* every quoted field is closed in front of a delimiter or the line's end */
    SL_QUOTES_OPEN,    /* the last quoted field is still open at the line's end */
    SL_QUOTES_STRANGE, /* something comes between a closing quote and the delimiter */
} sl_quotes;
sl_quotes sl_line_quotes(sl_text line, char delimiter, bool escapes, size_t *open);

/* Does a quoted field of the line go on in the next one: open with or without escapes, and not a
 * complete line in either reading? `*open` is then the position of its quote. */
bool sl_line_goes_on(sl_text line, char delimiter, size_t *open);

/* What to say of such a line; the argument is its text from the quote on, by sl_quoted. */
#define SL_LINE_GOES_ON                                                                            \
    "a quoted field is still open at the end of its line: %s; line ends within quotes cannot be "  \
    "read: replace them in the file first"

/* Is the line several records with CRs between them: has its first piece as many fields as there
 * are columns, and each other piece that is not blank as well? */
bool sl_line_holds_records(sl_text line, char delimiter, size_t columns);

/* What a check of lines needs of the dialect. */
typedef struct sl_lines {
    char delimiter;
    bool quotes;
    size_t columns;
    const char *advice; /* appended to SL_LINE_GOES_ON */
} sl_lines;

/* Looks through the lines of a head, but for a last one that may be cut: false with error, as
 * sl_format.check_head, when a quoted field goes on in the next line, or a line holds several
 * records that end in CR alone. */
bool sl_lines_check(sl_text head, bool whole, const sl_lines *lines, sl_error *error);

/* The same for any text: false when its first line has a CR, outside of quotes, in front of
 * anything but LF. */
bool sl_first_line_end_check(sl_text head, bool whole, sl_error *error);

#endif
