/* SPDX-License-Identifier: Apache-2.0 */
/* Sized text: views of bytes, number parsing, human-readable sizes and durations, UTF-8,
 * redaction. */
#ifndef SHARDLOAD_TEXT_H
#define SHARDLOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A block's text is followed by this many readable bytes (of any value), so that a parser may load
 * full vectors at its end. A sink's buffer has this many writable bytes after its limit. */
#define SL_SLACK 64

/* Borrowed bytes; not NUL-terminated. */
typedef struct sl_text {
    const char *bytes;
    size_t length;
} sl_text;

static inline sl_text sl_text_of(const char *string) {
    return (sl_text){string, strlen(string)};
}

static inline bool sl_text_equal(sl_text a, sl_text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* The length of the byte order marks of UTF-8 at the beginning of a text; 0: it has none. A program
 * that adds one to a text that had one leaves two. */
static inline size_t sl_byte_order_mark(sl_text text) {
    size_t length = 0;
    while (text.length - length >= 3 && memcmp(text.bytes + length, "\xEF\xBB\xBF", 3) == 0)
        length += 3;
    return length;
}

static inline bool sl_is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The value of a hexadecimal digit; -1: none. */
static inline int sl_hex_digit(char c) {
    if (sl_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of a key without quotes, as in the mongo shell. */
static inline bool sl_is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || sl_is_digit(c) || c == '_' ||
           c == '$';
}

/* The value of a digit of base64; -1: none. */
static inline int sl_base64_digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (sl_is_digit(c))
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* As sl_text_equal, ignoring the case of ASCII letters. One of the texts contains no NUL. */
bool sl_text_equal_ignoring_case(sl_text a, sl_text b);

/* Parses decimal digits (no sign, no blank, at least one digit). False when the text is not a
 * number or the number does not fit; `*value` is then unchanged. */
bool sl_text_to_u64(sl_text text, uint64_t *value);

/* Parses a count: digits with an optional suffix k, M, G or T in any case, powers of 1000. */
bool sl_text_to_count(sl_text text, uint64_t *count);

/* Parses a number of bytes: digits with an optional suffix B, K, KB, KiB, M, MB, MiB, G, GB, GiB,
 * T, TB, TiB in any case; K, KiB and so on are powers of 1024, KB and so on of 1000. */
bool sl_text_to_bytes(sl_text text, uint64_t *bytes);

/* Parses a duration, "90", "90s", "15m", "4h" or "2d", into seconds. */
bool sl_text_to_seconds(sl_text text, double *seconds);

/* Is the text well-formed UTF-8 (no surrogates, no overlong forms, up to U+10FFFF)? On false
 * `*where` (may be NULL) is the index of the first byte that is not. */
bool sl_utf8_valid(const char *bytes, size_t length, size_t *where);

/* Writes a code point as 1 to 4 bytes of UTF-8, and returns the position after it. */
static inline uint8_t *sl_utf8_put(uint8_t *to, uint32_t code) {
    if (code < 0x80) {
        *to++ = (uint8_t)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (uint8_t)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (uint8_t)(0xE0 | code >> 12);
        } else {
            *to++ = (uint8_t)(0xF0 | code >> 18);
            *to++ = (uint8_t)(0x80 | (code >> 12 & 0x3F));
        }
        *to++ = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    }
    *to++ = (uint8_t)(0x80 | (code & 0x3F));
    return to;
}

/* The number of characters of a UTF-8 text. */
size_t sl_letters(sl_text text);

/* Is the word an item of a list, such as "one|two|three" with the separator '|'? */
bool sl_list_has(const char *list, char separator, sl_text word);

/* Is the name one of the list? */
bool sl_is_listed(const char *name, const char *const *list, size_t count);

/* The last component of a path: a pointer into it. */
const char *sl_base_name(const char *path);

/* The code point of a well-formed sequence; the value of a single byte. */
uint32_t sl_code_point(const char *bytes, size_t length);

/* Makes the character at `*at` (< text.length) safe to print, and moves `*at` after it. Control
 * characters (C0, DEL, C1), marks that change the direction of text or that cannot be seen, line
 * and paragraph separators, and bytes that are not UTF-8 become \xHH for each byte; others are
 * copied. Returns the number of bytes written to `out`, without a NUL. */
#define SL_ESCAPED_ROOM 16
size_t sl_text_next_printable(sl_text text, size_t *at, char out[SL_ESCAPED_ROOM]);

/* Writes the text, made safe by sl_text_next_printable, so that it is harmless on a terminal and in
 * a tab-separated file: at most `room`-1 bytes and a NUL. Text that does not fit is truncated and
 * ends in "...". Returns the number of bytes before the NUL. To print or log, use print.h
 * instead. */
size_t sl_text_printable(sl_text text, char *out, size_t room);

/* Writes the text as one word of a shell command: in single quotes, unless it consists of letters,
 * digits and marks without meaning. For commands in messages, which users copy: a path or name may
 * come from another user's file or from a server. Returns `out`; "..." if it does not fit. */
#define SL_WORD_ROOM(bytes) (4 * (bytes) + 3) /* for a text of so many bytes */
char *sl_shell_word(const char *text, char *out, size_t room);

/* The same for commands of mongosh: the text as a string of JavaScript, in single quotes. Quotes,
 * backslashes and what sl_text_next_printable escapes become \\uHHHH. sl_mongosh_collection is the
 * beginning of a command, db.getSiblingDB('DATABASE').getCollection('COLLECTION'). Valid until the
 * end of the enclosing block; "..." if it does not fit. */
#define sl_mongosh_string(text) sl_mongosh_string_in(text, (char[SL_MONGOSH_ROOM]){0})
#define sl_mongosh_collection(database, collection)                                                \
    sl_mongosh_collection_in(database, collection, (char[SL_MONGOSH_ROOM]){0})
#define SL_MONGOSH_ROOM 1700 /* a namespace has at most 255 bytes, each becomes at most 6 */
char *sl_mongosh_string_in(const char *text, char out[SL_MONGOSH_ROOM]);
char *sl_mongosh_collection_in(const char *database, const char *collection,
                               char out[SL_MONGOSH_ROOM]);

/* ---- numbers for people: all functions return `out` ---- */

/* The unit of a number, which determines its format. */
typedef enum sl_unit {
    SL_UNIT_COUNT,        /* 1,234,567 */
    SL_UNIT_BYTES,        /* 1.2 GB */
    SL_UNIT_SECONDS,      /* 3 min 20 s */
    SL_UNIT_MILLISECONDS, /* 12.3 ms */
    SL_UNIT_SHARE,        /* 0..1, as percent */
} sl_unit;

/* Larger values are treated as missing: no measurement is so large. */
#define SL_VALUE_MAX 1e18

#define SL_HUMAN_ROOM 32
/* A value with its unit, in the formats below; "-" for a negative value and NAN. */
char *sl_value_text(double value, sl_unit unit, char out[SL_HUMAN_ROOM]);
/* "85.2 MB", "1.3 GB" (powers of 1000). */
char *sl_human_bytes(double bytes, char out[SL_HUMAN_ROOM]);
/* The fewest digits of the same double, with a point or an exponent: libbson and SQLite write 0.1
 * as 0.10000000000000000555. False: the text is no number with a point, or too long. */
bool sl_shortest_number(sl_text number, char out[SL_HUMAN_ROOM]);
/* "1,234,567". */
char *sl_human_count(uint64_t count, char out[SL_HUMAN_ROOM]);
/* The same, and "1 document", "40,000 documents"; valid until the end of the enclosing block.
 * sl_agreeing is without the number. Words like "entr[y|ies] [is|are]" have the forms for 1 and for
 * other counts, "file[s]" the ending for other counts; without these, an s follows. */
#define sl_number_text(count) sl_human_count(count, (char[SL_HUMAN_ROOM]){0})
#define sl_plural(count, words) sl_plural_text(count, words, true, (char[SL_PLURAL_ROOM]){0})
#define sl_agreeing(count, words) sl_plural_text(count, words, false, (char[SL_PLURAL_ROOM]){0})
#define SL_PLURAL_ROOM 120
char *sl_plural_text(uint64_t count, const char *words, bool number, char out[SL_PLURAL_ROOM]);
/* "0.8 s", "42 s", "3 min 20 s", "4 h 05 min". */
char *sl_human_seconds(double seconds, char out[SL_HUMAN_ROOM]);
/* "12.3 %"; with three decimals close to 0 % and 100 %. */
char *sl_share_text(double share, char out[SL_HUMAN_ROOM]);
/* At most three significant digits: 0, 12, 345, 1.20k, 45.6M. */
char *sl_short_text(double value, char out[SL_HUMAN_ROOM]);
/* "1,234,567.89", with `decimals` digits after the point. */
#define SL_FIGURE_ROOM 64
char *sl_figure_text(double value, int decimals, char out[SL_FIGURE_ROOM]);

/* Does the text begin with "name://" (any name) or, in any case, with "mongodb:" or "mongodb+srv:"?
 * Then it may contain a password: print it only through sl_redact_uri. */
bool sl_is_connection_string(const char *text);

/* Hides the secrets of a connection string in place: the text between "://" and the last "@", and
 * the values of secret query options, become "***" (or fewer asterisks, so that the text does not
 * become longer). If there is no "@" and the text after "://" does not begin with hosts and ports
 * only, all of it is hidden. The bytes that become free are overwritten. */
void sl_hide_uri(char *uri);

/* The same for every URI in any text, such as a message: from "://" to the next white space. A URI
 * without "@" and without secret options is not changed. Returns whether there was a secret. */
bool sl_hide_secrets(char *text);

/* Copies a connection string, and hides its secrets. Returns a malloc'd string; NULL without
 * memory. */
char *sl_redact_uri(const char *uri);

/* Overwrites a text that may contain a password, then frees it; NULL is fine. */
void sl_secret_free(char *text);

#endif
