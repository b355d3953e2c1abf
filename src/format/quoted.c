/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ends of records with quoted fields; see quoted.h. The kernel `pass_quotes`
 * (quoted_loop.h) reads the text up to the last 64 bytes before `least`, many bytes at a time. The
 * bytes after that are read one by one. */
#include "quoted.h"

#include "kernels.h"

#include <string.h>

static sl_quote_state next_state(const sl_dialect *d, sl_quote_state state, char byte) {
    switch (state) {
    case SL_AFTER_ESCAPE:
        return SL_IN_QUOTES;
    case SL_IN_QUOTES:
        if (d->escape && byte == d->escape)
            return SL_AFTER_ESCAPE;
        return byte == d->quote ? SL_AFTER_QUOTE : SL_IN_QUOTES;
    case SL_AFTER_QUOTE:
    case SL_AT_FIELD:
        if (byte == d->quote)
            return SL_IN_QUOTES;
        break;
    case SL_IN_FIELD:
        break;
    }
    return byte == d->delimiter || byte == '\n' ? SL_AT_FIELD : SL_IN_FIELD;
}

size_t sl_quoted_end(const sl_dialect *d, const char *text, size_t at, size_t length, size_t least,
                     sl_quote_state *state) {
    sl_quote_state now = *state;
    while (at < length) {
        char byte = text[at++];
        now = next_state(d, now, byte);
        if (byte == '\n' && now == SL_AT_FIELD && at >= least)
            return at;
    }
    *state = now;
    return 0;
}

static size_t find_end(sl_split *split, sl_text text, size_t least, bool ended) {
    const sl_dialect *d = split->context;
    sl_quote_state state = (sl_quote_state)split->inside[0];
    size_t stop = least < text.length ? least : text.length;
    while (split->at + SL_SCAN_BYTES < stop) {
        split->at = d->simd->pass_quotes(d, text.bytes, split->at, stop - 1, &state);
        if (split->at + SL_SCAN_BYTES < stop) { /* unusual quotes in the next bytes */
            sl_quoted_end(d, text.bytes, split->at, split->at + SL_SCAN_BYTES, SIZE_MAX, &state);
            split->at += SL_SCAN_BYTES;
        }
    }
    size_t end = sl_quoted_end(d, text.bytes, split->at, text.length, least, &state);
    split->at = text.length;
    split->inside[0] = state;
    if (end > 0)
        return end;
    /* The parser refuses a field that is still open after this much text. */
    return ended || text.length > least + SL_BSON_DOCUMENT_MAX ? text.length : 0;
}

const sl_splitter sl_quoted_splitter = {.find_end = find_end};

size_t sl_quoted_records(const sl_dialect *d, sl_text text, size_t from, bool whole, size_t most) {
    size_t end = from < text.length ? from : text.length;
    while (end < text.length && end < most) {
        sl_quote_state state = SL_AT_FIELD;
        size_t next = sl_quoted_end(d, text.bytes, end, text.length, 0, &state);
        if (next == 0 && !whole)
            break;
        next = next > 0 ? next : text.length;
        if (next > most && end > from)
            break;
        end = next;
    }
    return end;
}

/* Does a quoted field begin at `at`? */
static bool opens_field(const sl_dialect *d, sl_text text, size_t at) {
    return text.bytes[at] == d->quote &&
           (at == 0 || text.bytes[at - 1] == d->delimiter || text.bytes[at - 1] == '\n');
}

bool sl_quoted_begins(const sl_dialect *d, sl_text head) {
    size_t at = d->body_offset < head.length ? (size_t)d->body_offset : head.length;
    const char *end = head.bytes + head.length, *found = d->quote ? head.bytes + at : NULL;
    while (found && (found = memchr(found, d->quote, (size_t)(end - found)))) {
        if (opens_field(d, head, (size_t)(found - head.bytes)))
            return true;
        found++;
    }
    return false;
}

bool sl_quoted_closes(const sl_dialect *d, sl_text head, bool whole) {
    size_t at = (size_t)d->body_offset, open;
    while (at < head.length) {
        sl_quote_state state = SL_AT_FIELD;
        size_t end = sl_quoted_end(d, head.bytes, at, head.length, 0, &state);
        if (end == 0 && !whole)
            return at > d->body_offset;
        size_t stop = end > 0 ? end - 1 : head.length;
        stop -= stop > at && head.bytes[stop - 1] == '\r';
        sl_text record = {head.bytes + at, stop - at};
        if (sl_line_quotes(record, d->delimiter, d->quote, d->escape != 0, &open) !=
            SL_QUOTES_CLOSED)
            return false;
        at = end > 0 ? end : head.length;
    }
    return true;
}

bool sl_quoted_divides(const sl_dialect *d, sl_text head, bool always) {
    if (!d->quote || d->stray_quotes)
        return false;
    size_t body = d->body_offset < head.length ? d->body_offset : head.length;
    sl_quote_state state = SL_AT_FIELD;
    if (d->header_length > 0 && sl_quoted_end(d, d->header, 0, d->header_length, d->header_length,
                                              &state) != d->header_length)
        return false;
    /* The splitter begins before the body; if it began within an open field, it would find wrong
     * record ends. */
    state = SL_AT_FIELD;
    if (sl_quoted_end(d, head.bytes, 0, body, body, &state) == 0 &&
        (state == SL_IN_QUOTES || state == SL_AFTER_ESCAPE))
        return false;
    /* If a header has several lines, its line ends are in quotes. */
    if (always || (d->header_length > 0 && memchr(d->header, '\n', d->header_length - 1)))
        return true;
    return sl_quoted_begins(d, head);
}
