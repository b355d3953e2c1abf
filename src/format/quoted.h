/* SPDX-License-Identifier: Apache-2.0 */
/* Delimited text whose quoted fields may contain line ends (RFC 4180): where records end.
 *
 * A field is quoted if its first byte is a quote. In a quoted field, two quotes in a row stand for
 * one quote, and the byte after the escape character, if the dialect has one, is data. A record
 * ends at the first line feed outside quoted fields. A quote in an unquoted field is data. Private
 * to src/format. */
#ifndef SHARDLOAD_QUOTED_H
#define SHARDLOAD_QUOTED_H

#include <stddef.h>
#include <stdint.h>

#include "util/splitter.h"

#include "delimited.h"

/* Where a position lies, according to the bytes before it. */
typedef enum sl_quote_state {
    SL_AT_FIELD, /* a record or field begins here */
    SL_IN_FIELD, /* an unquoted field, or text after a closing quote */
    SL_IN_QUOTES,
    SL_AFTER_ESCAPE, /* in quotes, after the escape character */
    SL_AFTER_QUOTE,  /* after a quote that closes a field, unless another quote follows */
} sl_quote_state;

/* Passes over text[at..length) and returns the position after the first line feed that ends a
 * record and lies at or after `least` - 1. Returns 0 if there is none; then `*state` is the state
 * at `length`. */
size_t sl_quoted_end(const sl_dialect *dialect, const char *text, size_t at, size_t length,
                     size_t least, sl_quote_state *state);

/* Does a quoted field begin in a record of the head? */
bool sl_quoted_begins(const sl_dialect *dialect, sl_text head);

/* Is each quoted field of the complete records of the head closed before a delimiter or the end of
 * its record? */
bool sl_quoted_closes(const sl_dialect *dialect, sl_text head, bool whole);

/* Must a source with this head be divided into blocks by sl_quoted_splitter? True if its records
 * have quoted fields, or, with `always`, may have. The other sources can be read at any offset; a
 * line end within quotes then ends the load. */
bool sl_quoted_divides(const sl_dialect *dialect, sl_text head, bool always);

/* The splitter of such text; its context is the sl_dialect. */
extern const sl_splitter sl_quoted_splitter;

#endif
