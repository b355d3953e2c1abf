/* SPDX-License-Identifier: Apache-2.0 */
/* Sized text: views of bytes, checked numbers, sizes and durations for people, UTF-8, redaction. */
#ifndef SHARDLOAD_TEXT_H
#define SHARDLOAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that somebody else owns; not NUL-ended. */
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

/* As above, but A-Z equals a-z. */
bool sl_text_equal_ignoring_case(sl_text a, sl_text b);

/* Decimal digits only (no sign, no blank, at least one digit). False when not a number or when it
 * does not fit; `*value` is then unchanged. */
bool sl_text_to_u64(sl_text text, uint64_t *value);

/* A number of things: digits with an optional suffix k, M, G or T in any case, powers of 1000. */
bool sl_text_to_count(sl_text text, uint64_t *count);

/* A number of bytes: digits with an optional suffix B, K, KB, KiB, M, MB, MiB, G, GB, GiB, T, TB,
 * TiB in any case; K, KiB and so on are powers of 1024, KB and so on of 1000. */
bool sl_text_to_bytes(sl_text text, uint64_t *bytes);

/* Seconds from "90", "90s", "15m", "4h", "2d". */
bool sl_text_to_seconds(sl_text text, double *seconds);

/* Is every byte part of well-formed UTF-8 (no surrogates, no overlong forms, up to U+10FFFF)?
 * On false `*where` (may be NULL) is the index of the first byte that is not. */
bool sl_utf8_valid(const char *bytes, size_t length, size_t *where);

/* Makes the character at `*at` (< text.length) safe to show, and moves `*at` behind it. Control
 * characters (C0, DEL, C1), marks that change the direction of text, line and paragraph separators,
 * and bytes that are not UTF-8 become \xHH for each byte; all else is copied. Returns the number of
 * bytes written to `out`, which is not NUL-ended. */
#define SL_ESCAPED_ROOM 16
size_t sl_text_next_printable(sl_text text, size_t *at, char out[SL_ESCAPED_ROOM]);

/* Copies at most `room`-1 bytes of a text made safe by sl_text_next_printable, so that the result
 * is harmless on a terminal and in a tab-separated file. Always NUL-ends. Returns the number of
 * bytes written before the NUL. Ends in "..." when the text was cut. To print or log foreign text,
 * print.h is simpler. */
size_t sl_text_printable(sl_text text, char *out, size_t room);

/* "85.2 MB", "1.3 GB" (powers of 1000) into `out`; returns out. */
#define SL_HUMAN_ROOM 32
char *sl_human_bytes(double bytes, char out[SL_HUMAN_ROOM]);
/* "1,234,567". */
char *sl_human_count(uint64_t count, char out[SL_HUMAN_ROOM]);
/* "0.8 s", "42 s", "3 min 20 s", "4 h 05 min". */
char *sl_human_seconds(double seconds, char out[SL_HUMAN_ROOM]);

/* Does the text begin as a connection string does: with "name://" of any name, or with "mongodb:"
 * in any case? It may hold a password, and is shown only as sl_redact_uri makes it. */
bool sl_is_connection_string(const char *text);

/* Copies a connection string with what is between "://" and the last "@" replaced by "***", and the
 * values of password-like query options as well. Without "@", all behind "://" is replaced unless
 * it begins with hosts and ports only. Returns a malloc'd string, NULL without memory. */
char *sl_redact_uri(const char *uri);

/* Overwrites a text that may hold a password, then frees it; NULL is fine. */
void sl_secret_free(char *text);

#endif
