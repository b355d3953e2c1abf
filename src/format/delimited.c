/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited engine: a structural scan finds the marks in a stretch of text, and a flat list of
 * converters runs over them, straight into BSON.
 *
 * The scan of a stretch gives two lists of positions: marks (delimiters, line feeds, quotes) and
 * lines (line feeds only). A line is a record if its number of marks is the dialect's number of
 * columns, which takes one comparison to check; its fields lie between its marks. Other lines
 * (blank lines, repeated headers, wrong numbers of fields, escapes) and lines longer than a stretch
 * are parsed byte by byte in fields.c. Where quoted fields may contain line ends, marks within
 * quotes are left out, so that such records are read like lines; stretches with doubled quotes are
 * scanned again, with the quotes as marks. If the scan found bytes above 0x7F, the stretch is
 * checked for UTF-8 in one call: fields are separated by ASCII bytes, so if the stretch is UTF-8,
 * each field is. If it is not, or contains NULs or escapes, its texts are checked one by one. The
 * loops are in delimited_loop.c, compiled once for each instruction set. */
#include <stdlib.h>
#include <string.h>

#include "util/document_id.h"

#include "convert.h"
#include "kernels.h"
#include "nesting.h"
#include "typing.h"

/* ---- quoted fields with line ends ---- */

/* The kernel `pass_quotes` (delimited_loop.c) reads the text up to the last 64 bytes before
 * `least`, many bytes at a time. The bytes after that are read one by one. */

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
        if (byte == ' ' && d->blank_quotes && state == SL_AT_FIELD)
            return SL_AT_FIELD;
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
    const bool within = split->at == 0 && split->state > 0; /* a record that is too large */
    sl_quote_state state = (sl_quote_state)(within ? split->state - 1 : split->inside[0]);
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
    if (end == 0 && !ended && text.length <= least + SL_BSON_DOCUMENT_MAX)
        return 0;
    /* After this much text, the parser refuses a field whose quote is not closed, and rejects any
     * other record, whose rest it passes over. */
    const bool quoted = state == SL_IN_QUOTES || state == SL_AFTER_ESCAPE;
    split->state = end > 0 || ended || quoted ? 0 : 1 + (uint64_t)state;
    return end > 0 ? end : text.length;
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
    const bool quote = text.bytes[at] == d->quote;
    while (at > 0 && d->blank_quotes && text.bytes[at - 1] == ' ')
        at--;
    return quote && (at == 0 || text.bytes[at - 1] == d->delimiter || text.bytes[at - 1] == '\n');
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
    if (!d->quote || d->stray_quotes || d->bare_escape)
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

/* ---- the engine ---- */

/* Writes a nested document; as sl_simd.take_record. */
static bool take_nested(sl_parser *parser, sl_record *record) {
    const sl_block *block = parser->block;
    sl_sink *sink = parser->sink;
    size_t length = record->end - record->start;
    size_t need = parser->dialect->fixed_bytes + (parser->dialect->encoding ? 3 : 1) * length;
    if (need > SL_BSON_DOCUMENT_MAX) {
        sl_record_refuse_size(parser, record);
        return true;
    }
    const size_t least = need;
again:
    need = least + parser->scratch.growth;
    parser->scratch.growth_left = parser->scratch.growth;
    if (!sl_sink_make_room(sink, need))
        return false;
    int64_t id = block->id_base + (int64_t)((block->offset + record->start) & (SL_BLOCK_BYTES - 1));
    uint8_t *end = sl_put_nested(parser, record, id, sink->cursor);
    if (!end && parser->scratch.no_room) {
        parser->left_count = 0;
        if (sl_scratch_more(&parser->scratch))
            goto again;
        sl_record_refuse_size(parser, record);
        return true;
    }
    if (!end) {
        sl_record_refuse(parser, record);
        return true;
    }
    if (sl_record_is_empty(parser, record) ||
        (parser->dialect->keys && !sl_record_apply_keys(parser, record, &end)))
        return true;
    if (parser->left_count > 0 && !sl_record_count_left(parser, record))
        return true;
    sink->cursor = end;
    sink->documents++;
    parser->counts.documents++;
    parser->counts.repaired += record->repaired;
    parser->counts.transcoded += record->transcoded;
    return true;
}

bool sl_delimited_take_line(sl_parser *parser, sl_record *record) {
    sl_reject reject = {0};
    record->transcoded = record->repaired = false;
    bool large = record->end - record->start > SL_BSON_DOCUMENT_MAX;
    /* In a divided block, a large record may be a field that is never closed: it is split, too. */
    sl_line line =
        large && !parser->block->divided ? SL_LINE_BAD : sl_record_split(parser, record, &reject);
    if (large && !reject.misread) {
        sl_record_refuse_size(parser, record);
        return true;
    }
    switch (line) {
    case SL_LINE_RECORD:
        return parser->dialect->nesting ? take_nested(parser, record)
                                        : parser->simd->take_record(parser, record);
    case SL_LINE_BLANK:
        parser->counts.blank_lines++;
        return true;
    case SL_LINE_HEADER:
        parser->counts.headers++;
        return true;
    case SL_LINE_BAD:
        sl_record_reject(parser, record, &reject);
        return !reject.misread;
    }
    return true;
}

/* The position of the block's first record, after the source's header. Counts the lines before
 * it. */
static uint32_t body_start(sl_parser *parser) {
    const sl_block *block = parser->block;
    if (block->offset >= parser->dialect->body_offset)
        return 0;
    uint64_t skip = parser->dialect->body_offset - block->offset;
    if (skip > block->text.length) /* the header ends in a later block */
        skip = block->text.length;
    const char *text = block->text.bytes;
    uint64_t lines = 0, blank = 0, mark = block->offset ? 0 : sl_byte_order_mark(block->text);
    bool only_blanks = true;
    for (uint64_t i = 0; i < skip; i++) {
        only_blanks = only_blanks && (i < mark || memchr(" \r\n", text[i], 3));
        if (text[i] == '\n' || i + 1 == block->text.length) {
            lines++;
            blank += only_blanks;
            only_blanks = true;
        }
    }
    parser->counts.lines += lines;
    parser->counts.blank_lines += blank;
    return (uint32_t)skip;
}

uint32_t sl_delimited_record_end(const sl_parser *parser, uint32_t start) {
    const sl_text text = parser->block->text;
    sl_quote_state state = SL_AT_FIELD;
    size_t end = sl_quoted_end(parser->dialect, text.bytes, start, text.length, 0, &state);
    return (uint32_t)(end > 0 ? end - 1 : text.length);
}

/* The position after the rest of a record that began in the block before. */
static uint32_t pass_rest(sl_parser *parser) {
    const sl_text text = parser->block->text;
    sl_quote_state state = (sl_quote_state)(parser->block->split_state - 1);
    size_t end = sl_quoted_end(parser->dialect, text.bytes, 0, text.length, 0, &state);
    const uint32_t start = (uint32_t)(end > 0 ? end : text.length);
    parser->counts.lines += sl_line_feeds(text.bytes, text.bytes + start) - (end > 0);
    return start;
}

/* Parses the line at *start byte by byte, and moves *start after it. */
static bool take_long_line(sl_parser *parser, uint32_t *start) {
    const sl_text text = parser->block->text;
    const sl_dialect *d = parser->dialect;
    const char *end =
        sl_find_bare(text.bytes + *start, text.bytes + text.length, '\n', d->bare_escape);
    sl_record record = {.start = *start,
                        .end = (uint32_t)(end - text.bytes),
                        .line = (uint32_t)parser->counts.lines};
    if (parser->block->divided)
        record.end = sl_delimited_record_end(parser, *start);
    if (parser->block->divided)
        sl_record_doubt(parser, record.start, record.end, record.line);
    parser->counts.lines += 1 + sl_line_feeds(text.bytes + record.start, text.bytes + record.end);
    *start = record.end + 1;
    if (!d->keeps_cr)
        record.end -= record.end > record.start && text.bytes[record.end - 1] == '\r';
    return sl_delimited_take_line(parser, &record);
}

/* Must the texts of the stretch's fields be checked one by one? */
static bool needs_care(const sl_parser *parser, const sl_marks *m, uint32_t start) {
    const char escape = parser->dialect->escape;
    if (m->quoted && escape && escape != '\\') /* the scan does not detect other escapes */
        return true;
    if (m->odd || !m->high)
        return m->odd;
    const sl_encoding *encoding = parser->dialect->encoding;
    if (encoding && !encoding->mixed)
        return true;
    const char *text = parser->block->text.bytes;
    return !parser->simd->utf8_valid(text + start, m->lines[m->line_count - 1] - start);
}

static void find_marks(sl_parser *parser, sl_marks *m, uint32_t start, bool records) {
    const sl_text text = parser->block->text;
    const sl_dialect *d = parser->dialect;
    const uint32_t left = (uint32_t)text.length - start;
    const uint32_t stop = start + (left < SL_STRETCH_BYTES ? left : SL_STRETCH_BYTES);
    if (d->bare_escape)
        parser->simd->find_escaped(m, text.bytes, start, stop, d->delimiter, d->bare_escape);
    else if (records)
        parser->simd->find_records(m, text.bytes, start, stop, d->delimiter, d->quote);
    else
        parser->simd->find_marks(m, text.bytes, start, stop, d->delimiter, d->quote);
    bool ended = d->bare_escape ? m->line_count > 0 && m->lines[m->line_count - 1] == stop - 1
                                : text.bytes[stop - 1] == '\n';
    if (stop == text.length && !ended) /* a last line without line feed */
        sl_marks_add_line_end(m, stop);
}

/* Parses the complete records of a stretch of text with escapes. */
static bool take_escaped(sl_parser *parser, sl_marks *m, uint32_t *start) {
    bool go_on = true;
    if (!needs_care(parser, m, *start))
        return parser->simd->take_escaped(parser, m, start);
    for (uint32_t end = m->lines[m->line_count - 1]; go_on && *start <= end;)
        go_on = take_long_line(parser, start);
    return go_on;
}

static bool parse_text(sl_parser *parser, sl_marks *m) {
    const uint32_t length = (uint32_t)parser->block->text.length;
    const sl_dialect *d = parser->dialect;
    const sl_simd *simd = parser->simd;
    const bool divided = parser->block->divided;
    uint32_t start = parser->block->split_state > 0 ? pass_rest(parser) : body_start(parser);
    bool go_on = true;
    const bool by_byte = d->blanks || d->nesting || (d->bare_escape && d->quote);
    while (start < length && go_on && by_byte)
        go_on = take_long_line(parser, &start);
    while (start < length && go_on) {
        bool records = divided && !d->escape;
        find_marks(parser, m, start, records);
        if (records && m->quoted &&
            (m->irregular || (m->line_count > 0 && needs_care(parser, m, start)))) {
            records = false;
            find_marks(parser, m, start, records);
        }
        if (m->line_count == 0)
            go_on = take_long_line(parser, &start);
        else if (d->bare_escape)
            go_on = take_escaped(parser, m, &start);
        else if (m->quoted && records)
            go_on = simd->take_regular(parser, m, &start);
        else if (m->quoted && divided)
            go_on = simd->take_divided(parser, m, &start, needs_care(parser, m, start));
        else if (needs_care(parser, m, start))
            go_on = simd->take_careful(parser, m, &start);
        else if (m->quoted)
            go_on = simd->take_quoted(parser, m, &start);
        else if (d->trim != SL_TRIM_NOTHING)
            go_on = simd->take_trimmed(parser, m, &start);
        else
            go_on = simd->take_plain(parser, m, &start);
    }
    return go_on;
}

#define KEPT_LOOKS 64 /* at quotes of a block: in some texts they are data, in each line */

/* Reports the block's first field that is between quotes although quotes are data. The beginning of
 * the text and the sample of it have shown none, or the user was warned then. */
static void doubt_kept_quotes(const sl_parser *parser, const sl_plan *plan) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes, *end = text + parser->block->text.length;
    bool known = plan->options.quote != SL_QUOTE_AUTO || plan->schema_count > 0 || d->bare_escape ||
                 d->blanks || d->quotes_kept || !parser->sink->doubt;
    for (size_t k = 0; plan->typing && k < sl_typing_count(plan->typing); k++)
        known = known || sl_typing_at(plan->typing, k)->quotes.shown[0];
    for (const char *quote = "\"'"; *quote && !known; quote++) {
        const char *at = text;
        for (unsigned i = 0; i < KEPT_LOOKS && *quote != d->quote && !known; i++, at++) {
            if (!(at = memchr(at, *quote, (size_t)(end - at))))
                break;
            if (at == text || (at[-1] != d->delimiter && at[-1] != '\n'))
                continue;
            const char *stop = at + 1;
            while (stop < end && *stop != d->delimiter && *stop != '\n' && *stop != '\r')
                stop++;
            known = stop > at + 1 && stop[-1] == *quote;
            if (!known)
                continue;
            char shown[SL_QUOTED_ROOM];
            sl_reject record = {.offset = parser->block->offset + (uint64_t)(at - text),
                                .line = (uint32_t)sl_line_feeds(text, at)};
            snprintf(record.reason, sizeof record.reason,
                     "%s: this value has quotes, which are kept, as none were at the beginning of "
                     "the text: --quote %s removes them, --quote none confirms them",
                     sl_quoted((sl_text){at, (size_t)(stop - at)}, shown),
                     *quote == '"' ? "'\"'" : "\"'\"");
            parser->sink->doubt(parser->sink, &record);
        }
    }
}

bool sl_delimited_parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts) {
    sl_marks marks;
    sl_parser parser;
    parser.simd = plan->simd;
    parser.dialect = dialect;
    parser.block = block;
    parser.sink = sink;
    parser.counts = (sl_parse_counts){0};
    parser.left_count = 0;
    parser.escapes = NULL;
    parser.scratch = (sl_scratch){.growth = dialect->grows ? SL_GROWTH_FIRST : 0};
    doubt_kept_quotes(&parser, plan);
    bool go_on = parse_text(&parser, &marks);
    parser.counts.records = parser.counts.documents + parser.counts.rejects;
    sl_parse_counts_add(counts, &parser.counts);
    sl_scratch_clear(&parser.scratch);
    return go_on;
}
