/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited engine: a structural scan finds the marks in a stretch of text, and a flat list of
 * converters runs over them, straight into BSON.
 *
 * A stretch is scanned into two lists of positions: marks (delimiters, line feeds, quotes) and
 * lines (line feeds alone). A line whose last mark is as far on as the dialect has columns is a
 * record, and its fields stand between its marks; that takes one comparison. All else (blank lines,
 * repeated headers, wrong numbers of fields, escapes) goes byte by byte through record.c, and so
 * does a line that is longer than a stretch. Where the scan saw a byte that is not plain ASCII, the
 * texts of the whole stretch are checked with care. */
#include "marks.h"
#include "record.h"

#include <shardload/convert.h>
#include <shardload/document_id.h>

#include <stdio.h>

/* A record larger than that might not fit into a document. */
#define RECORD_MAX (SL_BSON_DOCUMENT_MAX - 65536)

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))

static inline uint8_t *put_whole_number(uint8_t *element, uint8_t *to, uint64_t value) {
    if (likely(value <= INT32_MAX)) {
        *element = SL_BSON_INT32;
        return sl_bson_put_int32(to, (int32_t)value);
    }
    *element = SL_BSON_INT64;
    return sl_bson_put_int64(to, (int64_t)value);
}

/* Does the field behind this mark stand in quotes? */
static inline bool is_quoted(const sl_dialect *d, const char *text, uint32_t before) {
    return d->quotes && before != UINT32_MAX && text[before] == '"';
}

/* Writes the record's document. NULL when a field is refused: record->failed says which. `careful`
 * (texts may have bytes above 0x7F, NULs or escapes) and `trim` are constants where speed matters.
 */
static ALWAYS_INLINE uint8_t *put_document(const sl_dialect *d, const char *text, sl_record *record,
                                           int64_t id, uint8_t *start, bool careful, sl_trim trim) {
    const uint32_t *before = record->before, *after = record->after;
    const sl_converter *converter = d->converters;
    uint8_t *out = sl_bson_begin_with_id(start, id);
    const sl_converter *end = converter + d->column_count;
    for (; converter < end; converter++, before++, after++) {
        const char *begin = text + (uint32_t)(*before + 1);
        size_t length = (size_t)(text + *after - begin);
        if (trim != SL_TRIM_NOTHING) {
            sl_text field = sl_field_trim((sl_text){begin, length}, trim);
            begin = field.bytes;
            length = field.length;
        }
        uint8_t *to = sl_bson_put_prefix(out, converter->prefix, converter->prefix_length);
        uint64_t number;
        int64_t milliseconds;
        switch ((sl_type)converter->type) {
        case SL_TYPE_CODE:
            if (likely(sl_convert_digits(begin, length, &number) && !converter->has_words)) {
                out = put_whole_number(out, to, number);
                continue;
            }
            if (converter->has_words)
                break;
            *out = SL_BSON_TEXT;
            /* fall through */
        case SL_TYPE_TEXT:
            if (unlikely(length == 0 || converter->has_words))
                break;
            if (careful) {
                to = sl_put_careful_text(d, (sl_text){begin, length}, is_quoted(d, text, *before),
                                         to, &record->transcoded);
                if (unlikely(!to))
                    goto refused;
                out = to;
                continue;
            }
            out = sl_bson_put_text(to, begin, length);
            continue;
        case SL_TYPE_INT:
            if (unlikely(!sl_convert_digits(begin, length, &number) ||
                         number >= converter->fast_limit))
                break;
            out = put_whole_number(out, to, number);
            continue;
        case SL_TYPE_DATE:
            if (unlikely(!sl_convert_date(begin, length, &milliseconds)))
                break;
            out = sl_bson_put_int64(to, milliseconds);
            continue;
        case SL_TYPE_DATETIME:
            if (unlikely(!sl_convert_datetime(begin, length, &milliseconds)))
                break;
            out = sl_bson_put_int64(to, milliseconds);
            continue;
        case SL_TYPE_DOUBLE:
        case SL_TYPE_FLAG:
            break;
        default:
            __builtin_unreachable();
        }
        out = sl_put_unusual(d, (size_t)(converter - d->converters), (sl_text){begin, length},
                             is_quoted(d, text, *before), out, &record->transcoded);
        if (unlikely(!out))
            goto refused;
    }
    return sl_bson_end(start, out);
refused:
    record->failed = (size_t)(converter - d->converters);
    return NULL;
}

/* Its versions. The common ones are inlined into the loop over lines, which makes a twentieth. */
typedef uint8_t *put_function(const sl_dialect *d, const char *text, sl_record *record, int64_t id,
                              uint8_t *start);

static ALWAYS_INLINE uint8_t *put_plain(const sl_dialect *d, const char *text, sl_record *record,
                                        int64_t id, uint8_t *start) {
    return put_document(d, text, record, id, start, false, SL_TRIM_NOTHING);
}

static ALWAYS_INLINE uint8_t *put_trimmed(const sl_dialect *d, const char *text, sl_record *record,
                                          int64_t id, uint8_t *start) {
    return put_document(d, text, record, id, start, false, d->trim);
}

static uint8_t *put_careful(const sl_dialect *d, const char *text, sl_record *record, int64_t id,
                            uint8_t *start) {
    return put_document(d, text, record, id, start, true, d->trim);
}

/* How much longer than its text the record's document may become by transcoding. */
static size_t transcoding_bytes(const sl_parser *parser, const sl_record *record) {
    if (!parser->dialect->latin1)
        return 0;
    size_t high = 0;
    for (uint32_t at = record->start; at < record->end; at++)
        high += (uint8_t)parser->block->text.bytes[at] >> 7;
    return 2 * high;
}

/* A record that was refused, unless it is a repeated header. */
static void refuse(sl_parser *parser, const sl_record *record) {
    sl_reject reject = {0};
    if (sl_record_is_header(parser, record)) {
        parser->counts.headers++;
        return;
    }
    sl_record_explain(parser, record, &reject);
    sl_record_reject(parser, record, &reject);
}

static void refuse_size(sl_parser *parser, const sl_record *record) {
    sl_reject reject = {0};
    snprintf(reject.reason, sizeof reject.reason,
             "a record of %u bytes is larger than a document may be (16 MiB)",
             record->end - record->start);
    sl_record_reject(parser, record, &reject);
}

/* Takes a record whose fields are known. False when the sink said stop. */
static ALWAYS_INLINE bool take(sl_parser *parser, sl_record *record, put_function *put) {
    const sl_dialect *d = parser->dialect;
    const sl_block *block = parser->block;
    sl_sink *sink = parser->sink;
    size_t need = d->fixed_bytes + (record->end - record->start);
    if (put == put_careful)
        need += transcoding_bytes(parser, record);
    if (unlikely(need > SL_BSON_DOCUMENT_MAX)) {
        refuse_size(parser, record);
        return true;
    }
    if (unlikely((size_t)(sink->limit - sink->cursor) < need ||
                 sink->documents >= sink->documents_limit)) {
        if (!sink->full(sink, need))
            return false;
    }
    int64_t id = block->id_base + (int64_t)((block->offset + record->start) & (SL_BLOCK_BYTES - 1));
    uint8_t *end = put(d, block->text.bytes, record, id, sink->cursor);
    if (unlikely(!end)) {
        refuse(parser, record);
        return true;
    }
    sink->cursor = end;
    sink->documents++;
    parser->counts.documents++;
    parser->counts.repaired += record->repaired;
    parser->counts.transcoded += record->transcoded;
    return true;
}

/* Takes a line of any kind, byte by byte. */
static NEVER_INLINE bool take_line(sl_parser *parser, sl_record *record) {
    sl_reject reject = {0};
    if (record->end - record->start > RECORD_MAX) {
        refuse_size(parser, record);
        return true;
    }
    switch (sl_record_split(parser, record, &reject)) {
    case SL_LINE_RECORD:
        return take(parser, record, put_careful);
    case SL_LINE_BLANK:
        parser->counts.blank_lines++;
        return true;
    case SL_LINE_HEADER:
        parser->counts.headers++;
        return true;
    case SL_LINE_BAD:
        sl_record_reject(parser, record, &reject);
        return true;
    }
    return true;
}

/* Is the line the header once more, where only the whole line can tell? */
static inline bool repeats_header(const sl_dialect *d, const char *text, const sl_record *record) {
    return d->watched_length == record->end - record->start &&
           memcmp(text + record->start, d->header, d->watched_length) == 0;
}

/* Finds the fields of a line with quotes but without escapes, from marks[next] on. False when the
 * line is anything else. The mark at line_end may stand behind the text's last byte, where no line
 * feed is: nothing is read there. */
static inline bool resolve_quotes(sl_parser *parser, const sl_marks *m, const char *text,
                                  uint32_t next, const sl_record *record, uint32_t line_end) {
    const uint32_t *mark = m->marks + next;
    const size_t count = parser->dialect->column_count;
    uint32_t at = record->start;
    for (size_t f = 0; f < count; f++) {
        if (*mark == at && at != line_end && text[at] == '"') {
            do {
                if (*++mark == line_end)
                    return false;
            } while (text[*mark] != '"');
            uint32_t close = *mark++;
            parser->before[f] = at;
            parser->after[f] = close;
            if (text[close - 1] == '\\' ||
                (*mark == line_end ? close + 1 != record->end
                                   : close + 1 != *mark || text[*mark] == '"'))
                return false;
        } else {
            while (*mark != line_end && text[*mark] == '"')
                mark++;
            parser->before[f] = at - 1;
            parser->after[f] = *mark == line_end ? record->end : *mark;
        }
        if (*mark == line_end)
            return f + 1 == count;
        at = *mark++ + 1;
    }
    return false;
}

/* Takes all lines of a stretch that starts at *start, and moves *start behind them. */
static ALWAYS_INLINE bool take_stretch(sl_parser *parser, sl_marks *m, uint32_t *start,
                                       put_function *put, bool quotes) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    const uint32_t columns = (uint32_t)d->column_count;
    uint32_t next = 1; /* the line's first mark; the line end before the line goes before it */
    bool go_on = true;
    for (uint32_t i = 0; i < m->line_count && go_on; i++) {
        const uint32_t line_end = m->lines[i];
        sl_record record = {
            .start = *start, .end = line_end, .line = (uint32_t)parser->counts.lines++};
        *start = line_end + 1;
        bool fits;
        if (likely(record.start != line_end))
            record.end -= text[line_end - 1] == '\r';
        if (quotes) {
            fits = record.start != record.end &&
                   resolve_quotes(parser, m, text, next, &record, line_end);
            record.before = parser->before;
            record.after = parser->after;
        } else {
            uint32_t *last = m->marks + next + columns - 1;
            fits = next + columns <= m->mark_count + 1 && *last == line_end &&
                   record.start != record.end;
            record.before = m->marks + next - 1;
            record.after = m->marks + next;
            if (fits) {
                m->marks[next - 1] = record.start - 1;
                *last = record.end;
                next += columns;
            }
        }
        if (likely(fits && !repeats_header(d, text, &record)))
            go_on = take(parser, &record, put);
        else
            go_on = take_line(parser, &record);
        if (quotes || !fits) {
            while (m->marks[next] != line_end)
                next++;
            next++;
        }
    }
    return go_on;
}

static NEVER_INLINE bool take_plain(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, put_plain, false);
}

static NEVER_INLINE bool take_trimmed(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, put_trimmed, false);
}

static NEVER_INLINE bool take_quoted(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, put_trimmed, true);
}

static NEVER_INLINE bool take_careful(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, put_careful, m->quoted);
}

/* Where the records of the block start, for the source's header may stand before them. */
static uint32_t body_start(sl_parser *parser) {
    const sl_block *block = parser->block;
    if (block->offset >= parser->dialect->body_offset)
        return 0;
    uint64_t skip = parser->dialect->body_offset - block->offset;
    if (skip > block->text.length)
        skip = block->text.length;
    const char *text = block->text.bytes;
    uint64_t lines = 0;
    for (uint64_t i = 0; i < skip; i++)
        lines += text[i] == '\n' || i + 1 == block->text.length;
    parser->counts.lines += lines;
    if (lines > 1) /* what stands before a header is blank */
        parser->counts.blank_lines += lines - 1;
    return (uint32_t)skip;
}

/* Takes the line that begins at *start and has no end within a stretch. */
static bool take_long_line(sl_parser *parser, uint32_t *start) {
    const sl_text text = parser->block->text;
    const char *end = memchr(text.bytes + *start, '\n', text.length - *start);
    sl_record record = {.start = *start,
                        .end = (uint32_t)(end ? (size_t)(end - text.bytes) : text.length),
                        .line = (uint32_t)parser->counts.lines++};
    *start = record.end + 1;
    record.end -= text.bytes[record.end - 1] == '\r';
    return take_line(parser, &record);
}

static bool parse_text(sl_parser *parser, sl_marks *m) {
    const char *text = parser->block->text.bytes;
    const uint32_t length = (uint32_t)parser->block->text.length;
    const sl_dialect *d = parser->dialect;
    uint32_t start = body_start(parser);
    bool go_on = true;
    while (start < length && go_on) {
        uint32_t stop = length - start < SL_STRETCH_BYTES ? length : start + SL_STRETCH_BYTES;
        sl_marks_find(m, text, start, stop, d->delimiter, d->quotes);
        if (stop == length && text[length - 1] != '\n') /* as if there were one behind it */
            sl_marks_add_line_end(m, length);
        if (m->line_count == 0)
            go_on = take_long_line(parser, &start);
        else if (!m->plain)
            go_on = take_careful(parser, m, &start);
        else if (m->quoted)
            go_on = take_quoted(parser, m, &start);
        else if (d->trim != SL_TRIM_NOTHING)
            go_on = take_trimmed(parser, m, &start);
        else
            go_on = take_plain(parser, m, &start);
    }
    return go_on;
}

bool sl_delimited_parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts) {
    (void)plan;
    sl_marks marks;
    sl_parser parser;
    parser.dialect = dialect;
    parser.block = block;
    parser.sink = sink;
    parser.counts = (sl_parse_counts){0};
    bool go_on = parse_text(&parser, &marks);
    counts->lines += parser.counts.lines;
    counts->records += parser.counts.documents + parser.counts.rejects;
    counts->documents += parser.counts.documents;
    counts->rejects += parser.counts.rejects;
    counts->headers += parser.counts.headers;
    counts->blank_lines += parser.counts.blank_lines;
    counts->repaired += parser.counts.repaired;
    counts->transcoded += parser.counts.transcoded;
    return go_on;
}
