/* SPDX-License-Identifier: Apache-2.0 */
/* Notations of delimited text: how programs write NULL, line ends within values, true and false. A
 * notation is a row of a table; --dialect names it, or it is recognised in the first bytes of a
 * text.
 *
 * Published descriptions: PostgreSQL, "COPY", text format and CSV format; MySQL, "SELECT ... INTO"
 * and "mysql client options" (--batch). */
#ifndef SHARDLOAD_NOTATION_H
#define SHARDLOAD_NOTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/text.h"

/* The bytes that letters after an escape character stand for; other bytes stand for themselves. */
typedef enum sl_escapes {
    SL_ESCAPES_POSTGRES, /* \b \f \n \r \t \v, up to three octal digits, \x and hexadecimal ones */
    SL_ESCAPES_MYSQL,    /* \0 \b \n \r \t \Z */
} sl_escapes;

typedef struct sl_notation {
    const char *name; /* in --dialect and in schemas */
    const char *help;
    char delimiter;    /* 0: detected */
    char quote;        /* as in sl_format_options */
    char quote_escape; /* in quoted fields; 0: only quotes are doubled */
    char escape;       /* in other fields, and before delimiters and line ends in them; 0: none */
    sl_escapes escapes;
    const char *letters; /* that its programs write after the escape character */
    bool escapes_ends;   /* they also write the delimiter and line feeds after it */
    const char *null;    /* what an unquoted field holds instead of NULL. "": nothing, and then ""
                           is the empty text. NULL: it is not known, and nothing means "no value" */
    const char *yes;     /* the words for true and false, besides those of all texts; NULL: none */
    const char *no;
    bool header_rare;  /* no header is written, unless a user asks for it */
    bool header_usual; /* a header is written, unless a user asks for none */
    bool cr_is_data;   /* a CR before a line feed is data, unless all lines have one */
    bool words;        /* words such as NA are missing values in columns of numbers and dates */
} sl_notation;

/* The rows, ended by one without name. The first one is that of all texts without another one. */
#define SL_NOTATIONS 6u
extern const sl_notation sl_notations[SL_NOTATIONS + 1];

/* The row of that name; NULL: none, or "auto". */
const sl_notation *sl_notation_named(const char *name);

/* Is NULL known, and does it differ from the empty text? */
static inline bool sl_notation_knows_null(const sl_notation *notation) {
    return notation && notation->null;
}

#define SL_NOTATION_WHY_ROOM 80

/* Are there fields in quotes, does each field that begins with a quote end with one, and are the
 * other fields numbers or \N? */
bool sl_has_quoted_fields(sl_text head, char delimiter);

/* Recognises the notation of a text by its first bytes. `delimiter`: the given one, or 0. Returns
 * the first row, with "" in `why`, if they show none; otherwise `why` is what they show. */
const sl_notation *sl_notation_recognise(sl_text head, bool whole, char delimiter, char *found,
                                         char why[SL_NOTATION_WHY_ROOM]);

/* Is the byte at `at` of a text that begins at `begin` escaped? */
static inline bool sl_is_escaped(const char *begin, const char *at, char escape) {
    const char *first = at;
    while (first > begin && first[-1] == escape)
        first--;
    return (at - first) & 1;
}

/* The first `byte` from `at` to `end` that is not escaped; `end`: there is none. `at` is not
 * escaped itself. */
static inline const char *sl_find_bare(const char *at, const char *end, char byte, char escape) {
    const char *begin = at;
    while (at < end) {
        const char *found = memchr(at, byte, (size_t)(end - at));
        if (!found || !escape || !sl_is_escaped(begin, found, escape))
            return found ? found : end;
        at = found + 1;
    }
    return end;
}

/* Writes for each byte the one that it stands for after the escape character; 0: it is written by
 * number, or a NUL, or is not known. Of a notation that the user has named, each escape is known;
 * then `strict` is 0. If the notation was guessed from the first bytes of the text, only those
 * escapes are known that its programs write, because other backslashes may be data; then `strict`
 * is the delimiter of the text. */
void sl_notation_letters(const sl_notation *notation, char strict, uint8_t bytes[256]);

/* The first escape of a text that is not known (`strict` as above); NULL: there is none. */
const char *sl_notation_strange(const sl_notation *notation, char strict, sl_text text);

/* Writes the field without its escapes to `to`, which may be the field itself. Returns the length;
 * SIZE_MAX if the escape at its end is incomplete. `*numeric`: bytes were given by numbers, and may
 * be no UTF-8. */
size_t sl_unescape(const sl_notation *notation, const char *from, size_t length, char *to,
                   bool *numeric);

#endif
