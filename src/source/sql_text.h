/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an SQL dump: its beginning, its tokens, and the ends of its statements. Memory is
 * bounded: a token's text is cut at SL_SQL_NAME_MAX bytes, and no statement is held. */
#ifndef SHARDLOAD_SQL_TEXT_H
#define SHARDLOAD_SQL_TEXT_H

#include <strings.h>

#include "stream.h"

/* Bytes of a name or word, which has no NUL byte. Names of PostgreSQL and MySQL have at most 63 and
 * 64 characters. */
#define SL_SQL_NAME_MAX 400u
#define SL_SQL_TERMINATOR_ROOM 16u
#define SL_SQL_WARNING "mysqldump: [Warning] " /* a line on standard error, joined with the dump */
#define SL_SQL_FRAMES 4u                    /* kinds of dumps that have a first and a last line */
#define SL_SQL_DEFINITIONS_MAX (256u << 20) /* bytes of all columns */

/* How a database reads the text that follows. */
typedef struct sl_sql_rules {
    bool mysql;   /* backslashes in strings, also in double quotes, are escape characters; no dollar
                   quotes */
    bool escapes; /* so are they in strings of PostgreSQL: standard_conforming_strings is off */
    bool literal, ansi; /* MySQL: NO_BACKSLASH_ESCAPES; ANSI_QUOTES: double quotes quote names */
    bool saved_literal, saved_ansi; /* the mode that a variable holds */
    bool sqlite;
    bool begin_transaction; /* the text has BEGIN TRANSACTION, which MySQL does not have */
    bool nests;             /* comments within comments, as in PostgreSQL */
    bool brackets;          /* quote names, as in SQLite; otherwise they are those of arrays */
    uint64_t looked_at;     /* the text before this offset has been looked at for MySQL */
    char terminator[SL_SQL_TERMINATOR_ROOM]; /* of statements */
} sl_sql_rules;

typedef struct sl_sql_text {
    sl_input *input;       /* borrowed */
    unsigned char *buffer; /* a NUL byte, and seven others, follow on its `length` bytes */
    size_t used, length;
    uint64_t moved;       /* bytes of the text before the buffer */
    unsigned char before; /* the byte before the buffer */
    bool ended;
    bool failed;    /* reading failed: `error` is set; from then on the text is at its end */
    uint64_t lines; /* line feeds before buffer[counted] */
    size_t counted;
    bool unended[SL_SQL_FRAMES]; /* such a dump has begun, and its last line has not been read */
    bool executable;             /* a comment has been skipped whose text MySQL executes */
    sl_sql_rules rules;
    size_t kept; /* bytes of names and types of columns in memory */
    sl_reader_times *times;
    sl_error *error;
} sl_sql_text;

typedef enum sl_sql_kind {
    SL_SQL_END,
    SL_SQL_WORD,   /* not quoted */
    SL_SQL_NAME,   /* in double quotes, backquotes or brackets */
    SL_SQL_STRING, /* in single quotes, also E'...', or in dollar quotes */
    SL_SQL_MARK,   /* one byte; also digits and other bytes */
} sl_sql_kind;

typedef struct sl_sql_token {
    sl_sql_kind kind;
    size_t length;
    char quote; /* of a name or string */
    bool cut;   /* the text is longer, or has a NUL byte */
    char text[SL_SQL_NAME_MAX + 1];
} sl_sql_token;

/* Are these the first bytes of an SQL dump? */
bool sl_sql_text_begins(const unsigned char *bytes, size_t length);

bool sl_sql_text_init(sl_sql_text *text, sl_input *input, sl_error *error);
void sl_sql_text_clear(sl_sql_text *text);

/* Buffers at least `count` bytes (up to 64 KiB); false: fewer are left. */
bool sl_sql_fill(sl_sql_text *text, size_t count);

/* The byte `ahead` bytes after the next one; -1: the text has ended. */
static inline int sl_sql_peek(sl_sql_text *text, size_t ahead) {
    if (text->used + ahead < text->length || sl_sql_fill(text, ahead + 1))
        return text->buffer[text->used + ahead];
    return -1;
}

/* Are backslashes in single quotes escape characters? */
static inline bool sl_sql_escapes(const sl_sql_text *text) {
    return (text->rules.mysql && !text->rules.literal) || text->rules.escapes;
}

/* The offset of the next byte. */
static inline uint64_t sl_sql_position(const sl_sql_text *text) {
    return text->moved + text->used;
}

/* Moves forward to an offset, before which there are `lines` line feeds. A text that is sequential
 * is skipped up to there, or to its end. */
void sl_sql_seek(sl_sql_text *text, uint64_t offset, uint64_t lines);

/* The number of the current line, from 1. */
uint64_t sl_sql_line(sl_sql_text *text);

/* Do these bytes follow? Ignores the case of letters. */
bool sl_sql_follows(sl_sql_text *text, const char *word);

/* Does a comment follow whose text MySQL executes? */
static inline bool sl_sql_is_executed(sl_sql_text *text) {
    return text->rules.mysql && (sl_sql_follows(text, "/*!") || sl_sql_follows(text, "/*M!"));
}

/* Skips a comment that begins with a slash and an asterisk. */
void sl_sql_skip_comment(sl_sql_text *text);
/* Skips blanks and comments. */
void sl_sql_skip_blanks(sl_sql_text *text);
/* Skips the remainder of the line, and its end. */
void sl_sql_skip_line(sl_sql_text *text);

/* What a letter after a backslash stands for in MySQL. */
unsigned char sl_sql_escaped_byte(int letter);
/* Reads what follows on a backslash and `*byte` in PostgreSQL; sets the byte. False: a number of
 * Unicode. */
bool sl_sql_read_escape(sl_sql_text *text, int *byte);

/* Reads the next token after blanks and comments. */
void sl_sql_next(sl_sql_text *text, sl_sql_token *token);
/* A name must follow: a bracket there shows that brackets quote names in this text. */
void sl_sql_next_name(sl_sql_text *text, sl_sql_token *token);
static inline bool sl_sql_is(const sl_sql_token *token, const char *word) {
    return (token->kind == SL_SQL_WORD || token->kind == SL_SQL_MARK) &&
           strcasecmp(token->text, word) == 0;
}
/* Is the token, unquoted, one of these words, separated by bars? */
bool sl_sql_is_one_of(const sl_sql_token *token, const char *words);
static inline bool sl_sql_is_name(const sl_sql_token *token) {
    return (token->kind == SL_SQL_WORD || token->kind == SL_SQL_NAME) && !token->cut;
}

/* Also a name in single quotes, as SQLite writes the tables and columns of a full-text index. */
static inline bool sl_sql_is_any_name(const sl_sql_token *token) {
    return sl_sql_is_name(token) ||
           (token->kind == SL_SQL_STRING && token->quote == '\'' && !token->cut);
}

typedef enum sl_sql_extent {
    SL_SQL_ALONE,    /* INSERT INTO shows that its terminator is missing */
    SL_SQL_CONTAINS, /* it may have another statement */
    SL_SQL_BODY,     /* it may have statements between BEGIN and END */
} sl_sql_extent;

/* Skips the remainder of the statement, and its terminator. `*found` is set if it has one of
 * `words` (may be NULL), separated by bars. False: the text has ended before, or with error. */
bool sl_sql_skip_statement(sl_sql_text *text, sl_sql_extent extent, const char *words, bool *found);

/* With another terminator than a semicolon: false with error if the token is a semicolon after
 * which neither the terminator nor the end follows. */
bool sl_sql_ends(sl_sql_text *text, const sl_sql_token *token);

/* A comment follows that begins a line: it may show what has written the dump, and where a dump
 * begins and ends. Fails if one begins before another one has ended. */
void sl_sql_note_comment(sl_sql_text *text);
/* Fails if a dump of the kinds from `first` on has begun and not ended. */
bool sl_sql_have_ended(sl_sql_text *text, size_t first, const char *what);

/* Text follows that may set the SQL mode of MySQL, up to `end`; nothing is skipped. */
void sl_sql_note_mode(sl_sql_text *text, const char *end);

/* A name in backquotes: MySQL, unless the text shows SQLite. */
void sl_sql_note_backquote(sl_sql_text *text);
/* Does CREATE TABLE, whose text follows, show MySQL? Looks at what is buffered, up to an offset. */
void sl_sql_note_definition(sl_sql_text *text, uint64_t end);

/* Sets the error (SL_EXIT_SOURCE), with the line; false. */
bool sl_sql_fail(sl_sql_text *text, uint64_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* SQLite stores numbers with a fraction as double, and writes 99.99 as 99.989999999999994882.
 * Writes the shortest number that is the same double in its place. Returns its length. */
size_t sl_sql_shorten(char *number, size_t length);

#endif
