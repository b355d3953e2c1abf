/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of SQL; see sql_text.h. */
#include "sql_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define BUFFER_BYTES ((size_t)256 << 10)

/* ---- recognition ---- */

/* The length of the one of these words, separated by bars, with which the text begins, in capital
 * or small letters; 0: none. */
static size_t begins_with(const unsigned char *text, size_t length, const char *words) {
    for (const char *at = words; *at;) {
        const size_t word = strcspn(at, "|");
        if (length >= word && strncasecmp((const char *)text, at, word) == 0)
            return word;
        at += word + (at[word] == '|');
    }
    return 0;
}

/* Does a name follow, also with a list in parentheses, and then one of these words? */
static bool has_name_before(const unsigned char *at, const unsigned char *end, const char *words) {
    while (at < end && (*at >= '@' || strchr(".\"#$", *at) || sl_is_digit((char)*at)))
        at++;
    while (at < end && *at <= ' ')
        at++;
    if (at < end && *at == '(')
        at = memchr(at, ')', (size_t)(end - at));
    while (at && at < end && (*at <= ' ' || *at == ')'))
        at++;
    return at && begins_with(at, (size_t)(end - at), words) > 0;
}

/* Does the text begin with a statement, and not with a row of a table? */
static bool is_statement(const unsigned char *at, const unsigned char *end) {
    static const char values[] = "VALUES |VALUES(|VALUES\n|VALUES\r|SELECT |SET ";
    static const struct {
        const char *words, *after; /* the name of a table */
    } kinds[] = {{"INSERT ", values},
                 {"REPLACE INTO ", values},
                 {"UPDATE ", "SET "},
                 {"DELETE FROM ", "WHERE |;\n|;\r"},
                 {"MERGE INTO ", "USING |AS "}};
    const size_t left = (size_t)(end - at);
    bool found = begins_with(at, left, "CREATE TABLE |INSERT INTO |DROP TABLE |LOCK TABLES ") > 0;
    for (size_t i = 0; !found && i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t length = begins_with(at, left, kinds[i].words);
        found = length > 0 && has_name_before(at + length, end, kinds[i].after);
    }
    return found;
}

/* Does such a statement begin a line, or follow on another `separator`? */
static bool has_statement(const unsigned char *at, const unsigned char *end, char separator) {
    while (at < end) {
        while (at < end && (*at <= ' ' || *at == separator))
            at++;
        if (is_statement(at, end))
            return true;
        while (at < end && *at != '\n' && *at != separator)
            at++;
    }
    return false;
}

#define LINES_BYTES 8192u /* at the beginning; archives may have many entries */

/* Are most lines such statements, whatever the first line is? Lines in quotes are not: they are
 * values of a table. */
static bool has_mostly_statements(const unsigned char *at, const unsigned char *end) {
    size_t lines = 0, statements = 0;
    for (bool quoted = false; at < end;) {
        const unsigned char *feed = memchr(at, '\n', (size_t)(end - at));
        const unsigned char *stop = feed ? feed : end;
        while (stop > at && stop[-1] <= ' ')
            stop--;
        lines += stop > at;
        statements += stop > at && !quoted && stop[-1] == ';' && is_statement(at, stop);
        for (; at < stop; at++)
            quoted ^= *at == '"';
        at = feed ? feed + 1 : end;
    }
    return statements > lines / 2;
}

/* Does the first line have one statement, such as SET x = 1;? */
static bool is_short_statement(const unsigned char *text, size_t length) {
    const unsigned char *feed = memchr(text, '\n', length);
    length = feed ? (size_t)(feed - text) : length;
    while (length > 0 && text[length - 1] <= ' ')
        length--;
    if (begins_with(text, length, "DELIMITER ") && length <= 10 + SL_SQL_TERMINATOR_ROOM)
        return length > 10 && strchr(";$/|", text[10]);
    if (length == 0 || memchr(text, ';', length) != text + length - 1)
        return false;
    if (begins_with(text, length, "SET "))
        return memchr(text, '=', length) || memmem(text, length, " TO ", 4);
    return begins_with(text, length,
                       "BEGIN;|BEGIN TRANSACTION|BEGIN WORK|PRAGMA |"
                       "START TRANSACTION|UNLOCK TABLES;") > 0;
}

/* Words with which dumps and scripts begin, and with which no table does, or only one without
 * statements in other lines. */
static bool begins_statement(const unsigned char *text, size_t length) {
    const unsigned char *end = memchr(text, '\n', length);
    return begins_with(
               text, length,
               "CREATE TABLE |CREATE DATABASE |CREATE SCHEMA |DROP TABLE |DROP DATABASE |"
               "DROP SCHEMA |ALTER TABLE |ALTER DATABASE |INSERT INTO |INSERT IGNORE INTO |"
               "INSERT OR |SET NAMES |LOCK TABLES |SELECT pg_catalog.|\\connect |\\restrict |"
               "\\set |\\c |\\encoding |/*!|/*M!") > 0 ||
           is_short_statement(text, length) ||
           (begins_with(text, length, "COPY ") && end &&
            memmem(text, (size_t)(end - text), " FROM stdin", strlen(" FROM stdin"))) ||
           (begins_with(text, length,
                        "CREATE |DROP |ALTER |DELETE |TRUNCATE |REPLACE INTO |USE |SET |GRANT |"
                        "COMMENT ON |SELECT ") &&
            has_statement(text, text + length, ';')) ||
           /* Names of columns may begin with these, and semicolons divide a table. */
           (begins_with(text, length,
                        "INSERT |UPDATE |MERGE |DECLARE |EXEC |IF |WHENEVER |SPOOL ") &&
            has_statement(text, text + length, '\n'));
}

bool sl_sql_text_begins(const unsigned char *bytes, size_t length) {
    const unsigned char *at = bytes + sl_byte_order_mark((sl_text){(const char *)bytes, length});
    const unsigned char *end = bytes + length;
    if (begins_with(at, (size_t)(end - at),
                    "--\n-- PostgreSQL database |-- MySQL dump |-- MariaDB dump "))
        return true;
    while (at && at < end) {
        const size_t left = (size_t)(end - at);
        if (strchr(" \t\r\n", *at))
            at++;
        else if (*at == '#' ||
                 begins_with(at, left, "--|REM |PROMPT |" SL_SQL_WARNING)) /* SQL*Plus */
            at = memchr(at, '\n', left);
        else if (begins_with(at, left, "/*") && !begins_with(at, left, "/*!|/*M!"))
            at = (at = memmem(at + 2, left - 2, "*/", 2)) ? at + 2 : NULL;
        else
            return begins_statement(at, left) ||
                   has_mostly_statements(at, left > LINES_BYTES ? at + LINES_BYTES : end);
    }
    return false;
}

/* ---- the buffer ---- */

bool sl_sql_text_init(sl_sql_text *text, sl_input *input, sl_error *error) {
    *text =
        (sl_sql_text){.input = input, .buffer = malloc(BUFFER_BYTES + 8), .rules.terminator = ";"};
    return text->buffer || sl_error_memory(error, "reading an SQL dump");
}

void sl_sql_text_clear(sl_sql_text *text) {
    free(text->buffer);
}

/* Counts the lines up to the next byte. */
static void count_lines(sl_sql_text *text) {
    const unsigned char *at = text->buffer + text->counted, *end = text->buffer + text->used;
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        text->lines++;
        at++;
    }
    text->counted = text->used;
}

bool sl_sql_fill(sl_sql_text *text, size_t count) {
    if (text->length - text->used >= count)
        return true;
    if (text->ended || text->failed)
        return false;
    count_lines(text);
    if (text->used > 0)
        text->before = text->buffer[text->used - 1];
    text->moved += text->used;
    text->length -= text->used;
    memmove(text->buffer, text->buffer + text->used, text->length);
    text->used = text->counted = 0;
    while (text->length < count && !text->ended) {
        size_t got;
        if (!sl_input_peek(text->input, 1, text->times, text->error) ||
            !sl_input_take(text->input, text->buffer + text->length,
                           sl_input_left(text->input) < BUFFER_BYTES - text->length
                               ? sl_input_left(text->input)
                               : BUFFER_BYTES - text->length,
                           &got, text->times, text->error)) {
            text->failed = text->ended = true;
            text->used = text->length = text->counted = 0;
            return false;
        }
        text->length += got;
        text->ended = got == 0;
        text->buffer[text->length] = 0;
    }
    return text->length >= count;
}

void sl_sql_seek(sl_sql_text *text, uint64_t offset, uint64_t lines) {
    uint64_t where;
    if (offset > text->moved + text->length && text->input->seek &&
        text->input->seek(text->input, (int64_t)offset, SEEK_SET, &where)) {
        text->used = text->length = text->counted = 0;
        text->ended = false;
        text->moved = where;
    }
    while (sl_sql_position(text) < offset && sl_sql_fill(text, 1)) {
        const uint64_t left = offset - sl_sql_position(text);
        text->used = left < text->length - text->used ? text->used + (size_t)left : text->length;
        text->counted = text->used;
    }
    text->counted = text->used;
    text->lines = lines;
}

uint64_t sl_sql_line(sl_sql_text *text) {
    count_lines(text);
    return text->lines + 1;
}

bool sl_sql_fail(sl_sql_text *text, uint64_t line, const char *format, ...) {
    char why[600];
    va_list arguments;
    if (text->failed) /* the reason is known */
        return false;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    text->failed = text->ended = true;
    text->used = text->length = text->counted = 0;
    sl_error_set(text->error, SL_EXIT_SOURCE, "%s, line %llu: %s", text->input->name,
                 (unsigned long long)line, why);
    return false;
}

bool sl_sql_follows(sl_sql_text *text, const char *word) {
    size_t length = strlen(word);
    return sl_sql_fill(text, length) &&
           strncasecmp((const char *)text->buffer + text->used, word, length) == 0;
}

/* ---- blanks, comments, quotes ---- */

/* Skips to after the next occurrence of `end`; false: there is none. */
static bool skip_past(sl_sql_text *text, const char *end) {
    size_t length = strlen(end);
    while (sl_sql_fill(text, length)) {
        unsigned char *at = text->buffer + text->used;
        unsigned char *found = memmem(at, text->length - text->used, end, length);
        text->used = found ? (size_t)(found - text->buffer) + length : text->length - length + 1;
        if (found)
            return true;
    }
    text->used = text->length;
    return false;
}

void sl_sql_skip_line(sl_sql_text *text) {
    skip_past(text, "\n");
}

void sl_sql_skip_comment(sl_sql_text *text) {
    const bool may_nest = !text->rules.mysql && !text->rules.brackets;
    const uint64_t line = sl_sql_line(text);
    int depth = 0;
    text->executable |= sl_sql_is_executed(text);
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0; text->used++) {
        const int next = sl_sql_peek(text, 1);
        const bool begins = byte == '/' && next == '*' && (may_nest || depth == 0);
        if (!begins && !(byte == '*' && next == '/'))
            continue;
        text->used++;
        depth += begins ? 1 : -1;
        if (depth == 0) {
            text->used++;
            return;
        }
        if (depth > 1 && !text->rules.nests) {
            sl_sql_fail(text, line,
                        "a comment within a comment: databases end it at different positions: "
                        "remove it");
            return;
        }
    }
    sl_sql_fail(text, line, "the comment that begins here has no end: the dump is cut off");
}

void sl_sql_skip_blanks(sl_sql_text *text) {
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0;) {
        if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
            text->used++;
        else if ((byte == '-' && sl_sql_peek(text, 1) == '-' &&
                  (!text->rules.mysql || sl_sql_peek(text, 2) <= ' ')) || /* 2--1 is 3 in MySQL */
                 (byte == '#' && text->rules.mysql))
            sl_sql_skip_line(text);
        else if (byte == '/' && sl_sql_peek(text, 1) == '*')
            sl_sql_skip_comment(text);
        else
            return;
    }
}

static void put(sl_sql_token *token, int byte) {
    if (token->length < SL_SQL_NAME_MAX)
        token->text[token->length++] = (char)byte;
    else
        token->cut = true;
    token->cut = token->cut || byte == 0;
}

/* Reads to after the closing quote, which is doubled where it belongs to the text. The opening one
 * has been read. False: there is none. */
static bool read_quoted(sl_sql_text *text, int quote, bool escapes, sl_sql_token *token) {
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0;) {
        text->used++;
        if (byte == quote && sl_sql_peek(text, 0) != quote)
            return true;
        if (byte == quote)
            text->used++;
        else if (byte == '\\' && escapes && (byte = sl_sql_peek(text, 0)) >= 0)
            text->used++;
        put(token, byte);
    }
    return false;
}

unsigned char sl_sql_escaped_byte(int letter) {
    static const char letters[] = "0bnrtZ", bytes[] = "\0\b\n\r\t\x1A";
    const char *found = letter > 0 ? strchr(letters, letter) : NULL;
    return (unsigned char)(found ? bytes[found - letters] : letter);
}

bool sl_sql_read_escape(sl_sql_text *text, int *byte) {
    static const char letters[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    const char *found = strchr(letters, *byte);
    int most = *byte >= '0' && *byte <= '7' ? 2 : 0, base = 8;
    if (*byte == 'u' || *byte == 'U')
        return false;
    if (*byte == 'x' && sl_hex_digit((char)sl_sql_peek(text, 0)) >= 0) {
        most = 2;
        base = 16;
        *byte = '0';
    }
    if (most > 0)
        *byte -= '0';
    else if (found)
        *byte = bytes[found - letters];
    for (int i = 0; i < most; i++) {
        const int next = sl_sql_peek(text, 0), digit = next < 0 ? -1 : sl_hex_digit((char)next);
        if (digit < 0 || digit >= base)
            break;
        *byte = (*byte * base + digit) & 0xFF;
        text->used++;
    }
    return true;
}

static bool is_word_byte(int byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           byte >= 0x80;
}

/* Reads $tag$ ... $tag$, if it follows. */
static bool read_dollar_quoted(sl_sql_text *text) {
    char tag[72] = "$";
    size_t length = 1;
    int byte;
    while ((byte = sl_sql_peek(text, length)) >= 0 && length < sizeof tag - 2 &&
           (is_word_byte(byte) || (length > 1 && sl_is_digit((char)byte))))
        tag[length++] = (char)byte;
    if (byte != '$')
        return false;
    tag[length] = '$';
    text->used += length + 1;
    skip_past(text, tag);
    return true;
}

/* Is a $ part of a word? Not where it may begin the terminator, as in `END$$`. */
static bool joins_dollar(const sl_sql_text *text) {
    return text->rules.terminator[0] != '$';
}

static void read_word(sl_sql_text *text, sl_sql_token *token) {
    const bool dollar = joins_dollar(text);
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0; text->used++) {
        if (!is_word_byte(byte) && !(dollar && byte == '$') && !sl_is_digit((char)byte))
            return;
        put(token, byte);
    }
}

void sl_sql_next(sl_sql_text *text, sl_sql_token *token) {
    sl_sql_skip_blanks(text);
    const int byte = sl_sql_peek(text, 0);
    token->length = 0;
    token->cut = false;
    token->kind = SL_SQL_MARK;
    if (byte < 0) {
        token->kind = SL_SQL_END;
    } else if ((byte | 0x20) == 'e' && sl_sql_peek(text, 1) == '\'') {
        text->used++;
        token->kind = SL_SQL_STRING;
        token->quote = '\'';
        while (token->kind != SL_SQL_END && sl_sql_follows(text, "'")) { /* 'a' 'b' is one string */
            text->used++;
            if (!read_quoted(text, '\'', true, token))
                token->kind = SL_SQL_END;
            sl_sql_skip_blanks(text);
        }
    } else if (is_word_byte(byte)) {
        token->kind = SL_SQL_WORD;
        read_word(text, token);
    } else if (byte == '\'' || byte == '"' || byte == '`' ||
               (byte == '[' && text->rules.brackets)) {
        token->kind = byte == '\'' ? SL_SQL_STRING : SL_SQL_NAME;
        token->quote = (char)byte;
        text->used++;
        const bool escapes = byte == '\'' ? sl_sql_escapes(text)
                                          : byte == '"' && text->rules.mysql &&
                                                !text->rules.literal && !text->rules.ansi;
        if (!read_quoted(text, byte == '[' ? ']' : byte, escapes, token))
            token->kind = SL_SQL_END;
    } else if (byte == '$' && !text->rules.mysql && read_dollar_quoted(text)) {
        token->kind = SL_SQL_STRING;
        token->quote = '$';
    } else { /* the mark ; is the end of a statement, whatever its terminator is */
        const bool ends = sl_sql_follows(text, text->rules.terminator);
        put(token, ends ? ';' : byte == ';' ? ' ' : byte);
        text->used += ends ? strlen(text->rules.terminator) : 1;
    }
    token->text[token->length] = '\0';
}

void sl_sql_next_name(sl_sql_text *text, sl_sql_token *token) {
    sl_sql_skip_blanks(text);
    text->rules.brackets = text->rules.brackets || sl_sql_peek(text, 0) == '[';
    sl_sql_next(text, token);
}

bool sl_sql_is_one_of(const sl_sql_token *token, const char *words) {
    for (const char *at = words; token->kind == SL_SQL_WORD && *at;) {
        size_t length = strcspn(at, "|");
        if (token->length == length && strncasecmp(token->text, at, length) == 0)
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

/* ---- statements ---- */

/* The first lines of dumps and those that end them. The first row's have dumps between them. */
static const struct {
    const char *begin, *end;
} frames[SL_SQL_FRAMES] = {
    {"-- PostgreSQL database cluster dump", "-- PostgreSQL database cluster dump complete"},
    {"-- PostgreSQL database dump", "-- PostgreSQL database dump complete"},
    {"-- MySQL dump ", "-- Dump completed"},
    {"-- MariaDB dump ", "-- Dump completed"},
};

bool sl_sql_have_ended(sl_sql_text *text, size_t first, const char *what) {
    while (first < SL_SQL_FRAMES && !text->unended[first])
        first++;
    return first == SL_SQL_FRAMES ||
           sl_sql_fail(text, sl_sql_line(text),
                       "%s ends without the line `%s`: it is cut off: export it again", what,
                       frames[first].end);
}

void sl_sql_note_comment(sl_sql_text *text) {
    text->rules.nests = text->rules.nests || sl_sql_follows(text, "-- PostgreSQL database ");
    if (sl_sql_follows(text, "-- MySQL dump ") || sl_sql_follows(text, "-- MariaDB dump ") ||
        sl_sql_follows(text, "/*!") || sl_sql_follows(text, "/*M!") ||
        sl_sql_follows(text, "-- phpMyAdmin SQL Dump"))
        text->rules.mysql = true;
    for (size_t i = 0; i < SL_SQL_FRAMES; i++) {
        const bool end = sl_sql_follows(text, frames[i].end);
        if (!end && !sl_sql_follows(text, frames[i].begin))
            continue;
        if (!end || i == 0)
            sl_sql_have_ended(text, end || i > 0, "the dump before this line");
        text->unended[i] = !end;
    }
}

/* A variable has the mode that was set before. */
void sl_sql_note_mode(sl_sql_text *text, const char *end) {
    char setting[1000];
    sl_sql_fill(text, sizeof setting - 1);
    const size_t left = text->length - text->used;
    const size_t length = left < sizeof setting - 1 ? left : sizeof setting - 1;
    memcpy(setting, text->buffer + text->used, length);
    setting[length] = '\0';
    char *stop = strstr(setting, end), *value = NULL;
    if (stop)
        *stop = '\0';
    for (char *at = setting; (at = strcasestr(at, "SQL_MODE")) != NULL;) {
        at += strlen("SQL_MODE");
        at += strspn(at, " :");
        value = *at == '=' ? at + 1 + strspn(at + 1, " ") : value;
    }
    if (strcasestr(setting, "@@SQL_MODE")) {
        text->rules.saved_literal = text->rules.literal;
        text->rules.saved_ansi = text->rules.ansi;
    }
    if (!value || strncmp(value, "@@", 2) == 0)
        return;
    const bool variable = *value == '@';
    text->rules.mysql = true;
    text->rules.literal =
        variable ? text->rules.saved_literal : strcasestr(value, "NO_BACKSLASH_") != NULL;
    text->rules.ansi = variable ? text->rules.saved_ansi : strcasestr(value, "ANSI") != NULL;
}

void sl_sql_note_backquote(sl_sql_text *text) {
    if (text->rules.mysql)
        return;
    if (text->rules.begin_transaction)
        text->rules.sqlite = text->rules.brackets = true;
    text->rules.mysql = !text->rules.sqlite;
}

void sl_sql_note_definition(sl_sql_text *text, uint64_t end) {
    const char *const begin = (const char *)text->buffer + text->used, *at = begin;
    char quote = '\0';                                 /* ends a string, a name or a comment */
    if (sl_sql_position(text) < text->rules.looked_at) /* each text is looked at once */
        return;
    for (uint64_t left = end; left > sl_sql_position(text) && *at && (quote || *at != ';') &&
                              !text->rules.mysql && !text->rules.nests && !text->rules.sqlite;
         at++, left--) {
        if (quote)
            quote = *at != quote || (quote == '*' && at[1] != '/') ? quote : '\0';
        else if (*at == '\'' || *at == '"' || *at == '[')
            quote = *at == '[' ? ']' : *at;
        else if ((*at == '-' && at[1] == '-') || (*at == '/' && at[1] == '*'))
            quote = *at++ == '-' ? '\n' : '*';
        else if (*at == '`')
            sl_sql_note_backquote(text);
        else if (*at == '$' || ((*at | 0x20) == 'e' && at[1] == '\''))
            break; /* strings of PostgreSQL may begin */
        else
            text->rules.mysql =
                strncasecmp(at, "AUTO_INCREMENT", 14) == 0 || strncasecmp(at, ") ENGINE", 8) == 0;
    }
    text->rules.looked_at = sl_sql_position(text) + (uint64_t)(at - begin);
}

/* Is the byte at an offset of the buffer the first one of a line? */
static bool begins_line(const sl_sql_text *text, size_t offset) {
    return (offset > 0 ? text->buffer[offset - 1] : text->before) == '\n';
}

/* Skips buffered strings, words (unless `words` are wanted, or they may begin a statement) and
 * other bytes that neither end a statement nor begin a comment, a quoted name or a string such as
 * E'\''. */
static void skip_plain(sl_sql_text *text, bool words) {
    static const bool special[256] = {['"'] = true, ['`'] = true, ['-'] = true, ['/'] = true,
                                      ['#'] = true, ['$'] = true, ['['] = true};
    const unsigned char stop = (unsigned char)text->rules.terminator[0];
    const bool dollar = joins_dollar(text);
    const unsigned char *at = text->buffer + text->used, *end = text->buffer + text->length;
    while (at < end && *at != stop && *at != ';') {
        const unsigned char *next = at + 1;
        if (*at == '\'') {
            while (next < end && *next != '\'')
                next += 1 + (*next == '\\' && sl_sql_escapes(text));
            next++;
        } else if (is_word_byte(*at)) {
            while (next < end &&
                   (is_word_byte(*next) || (dollar && *next == '$') || sl_is_digit((char)*next)))
                next++;
            next = words || strchr("iIrRgG", *at) ||
                           (next - at == 1 && (*at | 0x20) == 'e' && *next == '\'')
                       ? end
                       : next;
        } else if (special[*at] && !(*at == '-' && next < end && *next != '-')) {
            break;
        }
        if (next >= end)
            break;
        at = next;
    }
    text->used = (size_t)(at - text->buffer);
}

/* Does this word, the `first` of a line or not, begin another statement, or separate two? */
static bool begins_next(sl_sql_text *text, const sl_sql_token *token, bool first) {
    if (sl_sql_is(token, "GO") && first) /* of SQL Server */
        return sl_sql_peek(text, 0) <= '\r';
    if (!sl_sql_is_one_of(token, "INSERT|REPLACE"))
        return false;
    sl_sql_skip_blanks(text);
    return (sl_sql_follows(text, "INTO") || sl_sql_follows(text, "IGNORE") ||
            sl_sql_follows(text, "OR "));
}

bool sl_sql_ends(sl_sql_text *text, const sl_sql_token *token) {
    sl_sql_skip_blanks(text);
    return !sl_sql_is(token, " ") || sl_sql_peek(text, 0) < 0 ||
           sl_sql_follows(text, text->rules.terminator) ||
           sl_sql_fail(text, sl_sql_line(text),
                       "a statement follows on a semicolon, but statements end with %s here",
                       text->rules.terminator);
}

bool sl_sql_skip_statement(sl_sql_text *text, sl_sql_extent extent, const char *words,
                           bool *found) {
    sl_sql_token token;
    int depth = 0;
    bool member = false;
    for (;;) {
        if (extent == SL_SQL_ALONE)
            skip_plain(text, words != NULL);
        sl_sql_skip_blanks(text);
        if (depth <= 0 && sl_sql_follows(text, text->rules.terminator)) {
            text->used += strlen(text->rules.terminator);
            return true;
        }
        const bool first = begins_line(text, text->used);
        sl_sql_next(text, &token);
        if (token.kind == SL_SQL_END)
            return false;
        if ((extent == SL_SQL_ALONE || sl_sql_is(&token, "GO")) && begins_next(text, &token, first))
            return sl_sql_fail(text, sl_sql_line(text),
                               "%s is within another statement: end each statement with a "
                               "semicolon",
                               token.text);
        if (extent == SL_SQL_ALONE && !sl_sql_ends(text, &token))
            return false;
        if (words && sl_sql_is_one_of(&token, words))
            *found = true;
        if (extent != SL_SQL_ALONE) /* the actions of a rule are in parentheses */
            depth += sl_sql_is(&token, "(") - sl_sql_is(&token, ")");
        if (extent == SL_SQL_BODY && !member) {
            sl_sql_skip_blanks(text); /* in PostgreSQL, `begin` alone is a name */
            const bool begins = !text->rules.nests || sl_sql_follows(text, "ATOMIC");
            depth +=
                sl_sql_is_one_of(&token, begins ? "BEGIN|CASE" : "CASE") - sl_sql_is(&token, "END");
        }
        member = sl_sql_is(&token, "."); /* new.end */
    }
}

#define PLAIN_NUMBER 16 /* bytes; SQLite writes only longer numbers with digits of rounding */

size_t sl_sql_shorten(char *number, size_t length) {
    char shortest[SL_HUMAN_ROOM];
    if (length <= PLAIN_NUMBER || !sl_shortest_number((sl_text){number, length}, shortest) ||
        strlen(shortest) > length || (strchr(shortest, 'e') && !memchr(number, 'e', length)))
        return length;
    memcpy(number, shortest, strlen(shortest));
    return strlen(shortest);
}
