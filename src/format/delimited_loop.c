/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop, in plain C: finds the marks in a stretch of text, and runs converters over
 * the fields between them. src/CMakeLists.txt also builds it for instruction sets of the processor:
 * it includes this file with SL_SET_AVX2, SL_SET_SSE2 or SL_SET_NEON defined. */

#include "util/document_id.h"

#include "delimited_sets.h"
#include "kernels.h"

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

_Static_assert(SL_BSON_SLACK <= SL_SLACK, "the encoder copies complete vectors");
_Static_assert(SL_SCAN_BYTES <= SL_SLACK, "the scan may read after the text");

#define SECONDS_LENGTH (sizeof "2016-01-15T10:00:00" - 1)
#define ISO_LENGTH_MAX (sizeof "2016-01-15T10:00:00.123" - 1) /* no digit is lost */

/* ---- passing over quoted fields ---- */

/* A byte lies within quotes if the number of quotes before it is odd, provided that each quote that
 * makes this number odd opens a field or is the second of two: the byte before it is a delimiter, a
 * line feed, or a quote that made the parity even. Text in which a quote does neither, and text of
 * a dialect with an escape character, is left to sl_quoted_end. */

/* Passes over steps of 64 bytes from `at` on, up to `stop` at the latest. Returns the position
 * reached: less than 64 bytes before `stop`, or the beginning of a step that must be passed over
 * byte by byte. */
static size_t pass_quotes(const sl_dialect *d, const char *text, size_t at, size_t stop,
                          sl_quote_state *state) {
    const size_t first = at;
    uint64_t inside = *state == SL_IN_QUOTES ? UINT64_MAX : 0; /* of the byte before `at` */
    uint64_t after_mark = *state == SL_AT_FIELD || *state == SL_AFTER_QUOTE;
    const char quote = d->quote;
    if (d->escape || !quote)
        return at;
    for (; at + SL_SCAN_BYTES <= stop; at += SL_SCAN_BYTES) {
        sl_scan scan = sl_scan_64(text + at, d->delimiter, quote);
        uint64_t within = sl_parity_before(scan.quotes) ^ inside;
        if (scan.quotes & within & ~(scan.marks << 1 | after_mark))
            break;
        inside = 0 - (within >> 63);
        after_mark = scan.marks >> 63;
    }
    if (at == first)
        return at;
    char last = text[at - 1];
    if (inside)
        *state = SL_IN_QUOTES;
    else if (last == quote)
        *state = SL_AFTER_QUOTE;
    else
        *state = last == d->delimiter || last == '\n' ? SL_AT_FIELD : SL_IN_FIELD;
    return at;
}

/* ---- marks, 64 bytes at a time ---- */

/* The 64 bytes at `at`, without marks, line feeds and quotes from `stop` on. */
static ALWAYS_INLINE sl_scan scan_until(uint32_t stop, const char *text, uint32_t at,
                                        char delimiter, char quote) {
    sl_scan scan = sl_scan_64(text + at, delimiter, quote);
    if (unlikely(stop - at < SL_SCAN_BYTES)) {
        uint64_t within = (UINT64_C(1) << (stop - at)) - 1;
        scan.marks &= within;
        scan.lines &= within;
        scan.quotes &= within;
    }
    return scan;
}

static ALWAYS_INLINE void find(sl_marks *m, const char *text, uint32_t start, uint32_t stop,
                               char delimiter, char quote) {
    const uint64_t last = UINT64_C(1) << 63; /* the result of ctz is undefined for 0 */
    uint32_t *marks = m->marks + 1, *lines = m->lines;
    bool high = false, odd = false, quoted = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = scan_until(stop, text, at, delimiter, quote);
        high |= scan.high;
        odd |= scan.odd;
        quoted |= scan.quotes != 0;
        marks = sl_scan_positions(marks, scan.marks, at);
        do {
            *lines = at + (uint32_t)__builtin_ctzll(scan.lines | last);
            lines += scan.lines != 0;
            scan.lines &= scan.lines - 1;
        } while (unlikely(scan.lines != 0));
    }
    m->high = high;
    m->odd = odd;
    m->quoted = quoted;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = (uint32_t)(lines - m->lines);
}

static void find_marks(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                       char delimiter, char quote) {
    if (quote) /* two copies of the loop, each without this condition */
        find(marks, text, start, stop, delimiter, quote);
    else
        find(marks, text, start, stop, delimiter, 0);
}

/* Adds the lines that end at the bits of `left`, a part of `feeds`. Returns their number. */
static ALWAYS_INLINE uint32_t add_lines(sl_marks *m, uint32_t count, uint64_t feeds, uint64_t left,
                                        uint32_t at, uint32_t feeds_before) {
    do {
        uint64_t up_to = left ^ (left - 1);
        m->lines[count] = at + (uint32_t)__builtin_ctzll(left | UINT64_C(1) << 63);
        m->numbers[count] = (uint16_t)(feeds_before + sl_scan_count(feeds & up_to));
        count += left != 0;
        left &= left - 1;
    } while (unlikely(left != 0));
    return count;
}

/* As find_marks for a text without quotes, in which a delimiter or line feed after the escape
 * character is data; also finds the escape characters. */
static void find_escaped(sl_marks *m, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char escape) {
    const uint64_t last = UINT64_C(1) << 63; /* the result of ctz is undefined for 0 */
    uint32_t *marks = m->marks + 1, *escapes = m->escapes, line_count = 0, line_feeds = 0;
    uint64_t carry = 0;
    bool high = false, odd = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = scan_until(stop, text, at, delimiter, 0);
        sl_scan found = scan_until(stop, text, at, escape, 0);
        uint64_t here = found.marks & ~found.lines;
        const uint64_t escaped = sl_scan_escaped(here, &carry);
        do { /* mostly one or none: no branch that is hard to predict */
            *escapes = at + (uint32_t)__builtin_ctzll(here | last);
            escapes += here != 0;
            here &= here - 1;
        } while (unlikely(here != 0));
        high |= scan.high;
        odd |= scan.odd;
        marks = sl_scan_positions(marks, scan.marks & ~escaped, at);
        line_count = add_lines(m, line_count, scan.lines, scan.lines & ~escaped, at, line_feeds);
        line_feeds += sl_scan_count(scan.lines);
    }
    *escapes = UINT32_MAX;
    m->high = high;
    m->odd = odd;
    m->quoted = false;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = line_count;
    m->line_feeds = (uint16_t)line_feeds;
}

/* As find_marks for a dialect with quotes and without escapes: finds the marks that end fields and
 * records of a text that begins with a record. */
static void find_records(sl_marks *m, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char quote) {
    if (!quote)
        __builtin_unreachable(); /* so that the scan does not test it */
    uint32_t *marks = m->marks + 1, line_count = 0, line_feeds = 0;
    uint64_t inside = 0, after_end = 1; /* of the byte before `at` */
    uint64_t irregular = 0, quotes = 0;
    bool high = false, odd = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = scan_until(stop, text, at, delimiter, quote);
        const uint64_t within = sl_parity_before(scan.quotes) ^ inside;
        const uint64_t ends = scan.marks ^ scan.quotes;
        /* A quote that opens a field follows an end. The second of two quotes in a field does not;
         * the second quote of an empty field opens nothing. */
        irregular |= scan.quotes & within & ~(ends << 1 | after_end);
        inside = 0 - (within >> 63);
        after_end = ends >> 63;
        quotes |= scan.quotes;
        high |= scan.high;
        odd |= scan.odd;
        marks = sl_scan_positions(marks, ends & ~within, at);
        line_count = add_lines(m, line_count, scan.lines, scan.lines & ~within, at, line_feeds);
        line_feeds += sl_scan_count(scan.lines);
    }
    m->high = high;
    m->odd = odd;
    m->quoted = quotes != 0;
    m->irregular = irregular != 0;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = line_count;
    m->line_feeds = (uint16_t)line_feeds;
}

/* ---- documents ---- */

/* Converts a date with time that is not written as YYYY-MM-DDThh:mm:ss or with a Z behind it. */
static bool convert_other_datetime(const sl_converter *converter, const char *field, size_t length,
                                   int64_t *milliseconds) {
    const bool zoned = length > 0 && field[length - 1] == 'Z';
    return !converter->refuses[zoned] &&
           (converter->step == SL_STEP_DATETIME || length - zoned <= ISO_LENGTH_MAX) &&
           sl_convert_datetime(field, length, milliseconds);
}

static ALWAYS_INLINE bool convert_datetime(const sl_converter *converter, const char *field,
                                           size_t length, int64_t *milliseconds) {
    const size_t zoned = length - SECONDS_LENGTH;
    if (likely(zoned <= 1 && (!zoned || field[SECONDS_LENGTH] == 'Z')))
        return !converter->refuses[zoned] && convert_seconds(field, milliseconds);
    return convert_other_datetime(converter, field, length, milliseconds);
}

/* How fields are read. The members are compile-time constants on the fast path. */
typedef struct read_mode {
    bool careful; /* texts may contain NULs, escapes, or bytes above 0x7F that are not UTF-8 */
    bool quotes;  /* fields may be quoted, so a field may begin after its quote */
    bool trims;
    bool regular; /* quoted fields have no quotes within; a record that is refused is split again */
    bool escapes; /* fields have escapes; parser->escapes are their positions */
} read_mode;

/* Is the field after the mark `before` quoted? */
static inline bool is_quoted(const sl_dialect *d, const char *text, uint32_t before) {
    return d->quote && before != UINT32_MAX && text[before] == d->quote;
}

/* Has the field, which no earlier field follows, an escape? Moves *escapes to it. */
static ALWAYS_INLINE bool has_escape(const uint32_t **escapes, uint32_t begin, uint32_t end) {
    while (**escapes < begin)
        ++*escapes;
    return **escapes < end;
}

/* Writes a text with escapes, of which **escapes is the first, and moves *escapes after them. NULL:
 * one is unusual. */
static ALWAYS_INLINE uint8_t *put_escaped(const sl_dialect *d, const char *text, const char *begin,
                                          const char *end, const uint32_t **escapes, uint8_t *to) {
    uint8_t *value = to + 4;
    const uint32_t *next = *escapes;
    for (const char *at; (at = text + *next) < end; begin = at + 2) {
        value = sl_bson_copy(value, begin, (size_t)(at - begin));
        const uint8_t byte = d->letters[(uint8_t)at[1]];
        if (unlikely(byte == 0 || at + 1 == end))
            return NULL;
        *value++ = byte;
        next += 1 + (next[1] == *next + 1); /* an escaped escape character */
    }
    value = sl_bson_copy(value, begin, (size_t)(end - begin));
    *value++ = 0;
    sl_bson_put_int32(to, (int32_t)(value - to) - 4);
    *escapes = next;
    return value;
}

static ALWAYS_INLINE const char *field_begin(const char *text, uint32_t before) {
    return text + (uint32_t)(before + 1);
}

/* Writes the record's document. NULL when a field is refused: record->failed is its column. */
static ALWAYS_INLINE uint8_t *put_document(sl_parser *parser, const char *text, sl_record *record,
                                           int64_t id, uint8_t *start, read_mode mode) {
    const sl_dialect *d = parser->dialect;
    const uint32_t *before = record->before, *after = record->after;
    const sl_converter *converter = d->converters;
    const char quote = d->quote, *next = field_begin(text, *before);
    const uint32_t *escapes = parser->escapes; /* only of mode.escapes */
    const char *const null = d->null, null_begin = mode.escapes ? *null : 0;
    const size_t null_length = d->null_length;
    uint8_t *out = sl_bson_begin_with_id(start, id);
    for (; converter->step != SL_STEP_END; converter++, before++, after++) {
        const char *begin = mode.quotes ? field_begin(text, *before) : next;
        const char *end = text + *after;
        size_t length = (size_t)(end - begin);
        next = end + 1;
        bool quoted = false; /* only of `regular` */
        if (mode.regular && *begin == quote) {
            if (unlikely(length < 2 || end[-1] != quote))
                goto refused;
            begin++;
            length -= 2;
            quoted = true;
        }
        if (mode.trims) {
            sl_text field = sl_field_trim((sl_text){begin, length}, d->trim);
            begin = field.bytes;
            length = field.length;
        }
        uint8_t *to = out + converter->prefix_length;
        if (mode.escapes && length == null_length && *begin == null_begin &&
            memcmp(begin, null, length) == 0) {
            if (likely(converter->skips_null))
                continue;
            goto unusual;
        }
        memcpy(out, converter->prefix, SL_SHORT_PREFIX);
        uint64_t number;
        int64_t milliseconds;
        double decimal;
        switch ((sl_field_step)converter->step) {
        case SL_STEP_CODE: /* 007 is text; a lossless whole number has no leading zero */
        case SL_STEP_WHOLE:
            if (unlikely(length > 1 && *begin == '0'))
                break;
            /* fall through */
        case SL_STEP_INT:
            if (likely(convert_digits(begin, length, &number))) {
                if (likely(number < converter->int32_limit)) {
                    out = sl_bson_put_int32(to, (int32_t)number);
                    continue;
                }
                if (likely(number < converter->int64_limit)) {
                    *out = SL_BSON_INT64;
                    out = sl_bson_put_int64(to, (int64_t)number);
                    continue;
                }
            }
            if (converter->step != SL_STEP_CODE)
                break;
            *out = SL_BSON_TEXT;
            /* fall through */
        case SL_STEP_TEXT:
            if (mode.careful && d->bare_escape)
                break;
            if (mode.escapes) {
                if (has_escape(&escapes, *before + 1, *after)) {
                    uint8_t *stop = put_escaped(d, text, begin, begin + length, &escapes, to);
                    if (unlikely(!stop))
                        break;
                    out = stop;
                    continue;
                }
            } else if (unlikely(length <= 2) &&
                       (length == 0 || (length == 2 && memcmp(begin, "\\N", 2) == 0))) {
                break;
            }
            if (mode.careful) {
                to = sl_put_careful_text(d, (sl_text){begin, length},
                                         mode.quotes && is_quoted(d, text, *before), to,
                                         &record->transcoded);
                if (unlikely(!to))
                    goto refused;
                out = to;
                continue;
            }
            out = sl_bson_put_text(to, begin, length);
            continue;
        case SL_STEP_DOUBLE:
            if (unlikely(!convert_decimal(begin, length, &decimal)))
                break;
            out = sl_bson_put_double(to, decimal);
            continue;
        case SL_STEP_DATE:
            if (unlikely(!convert_date(begin, length, &milliseconds)))
                break;
            out = sl_bson_put_int64(to, milliseconds);
            continue;
        case SL_STEP_DATETIME:
        case SL_STEP_ISO:
            if (unlikely(!convert_datetime(converter, begin, length, &milliseconds)))
                break;
            out = sl_bson_put_int64(to, milliseconds);
            continue;
        case SL_STEP_UNUSUAL:
            break;
        case SL_STEP_END:
        default:
            __builtin_unreachable();
        }
    unusual:
        if (length <= 1 &&
            (length == 0 ? converter->skips_empty : *begin == '-' && converter->skips_dash))
            continue;
        out = sl_put_unusual(parser, (size_t)(converter - d->converters), (sl_text){begin, length},
                             quoted || (mode.quotes && is_quoted(d, text, *before)), out,
                             &record->transcoded);
        if (unlikely(!out))
            goto refused;
    }
    if (mode.escapes)
        parser->escapes = escapes;
    return sl_bson_end(start, out);
refused:
    record->failed = (size_t)(converter - d->converters);
    return NULL;
}

/* Writes the document, of at most `need` bytes, of a record that has been split into fields. False
 * when the sink's `full` returned false. */
static ALWAYS_INLINE bool take(sl_parser *parser, sl_record *record, size_t need, read_mode mode) {
    const sl_block *block = parser->block;
    sl_sink *sink = parser->sink;
    const uint32_t *const escapes = parser->escapes;
    const size_t least = need;
again:
    need = least + parser->scratch.growth;
    parser->scratch.growth_left = parser->scratch.growth;
    if (unlikely((size_t)(sink->limit - sink->cursor) < need ||
                 sink->documents >= sink->documents_limit)) {
        if (!sink->full(sink, need))
            return false;
    }
    int64_t id = block->id_base + (int64_t)((block->offset + record->start) & (SL_BLOCK_BYTES - 1));
    uint8_t *end = put_document(parser, block->text.bytes, record, id, sink->cursor, mode);
    if (unlikely(!end) && parser->scratch.no_room) {
        parser->left_count = 0;
        parser->escapes = escapes;
        if (sl_scratch_more(&parser->scratch))
            goto again;
        sl_record_refuse_size(parser, record);
        return true;
    }
    if (unlikely(!end) && mode.regular) { /* messages quote fields without their quotes */
        parser->left_count = 0;
        return sl_delimited_take_line(parser, record);
    }
    if (unlikely(!end)) {
        sl_record_refuse(parser, record);
        return true;
    }
    if (unlikely(record->end - record->start < parser->dialect->column_count) &&
        sl_record_is_empty(parser, record))
        return true;
    if (unlikely(parser->dialect->keys != NULL) && !sl_record_apply_keys(parser, record, &end))
        return true;
    if (unlikely(parser->left_count > 0) && !sl_record_count_left(parser, record))
        return true;
    sink->cursor = end;
    sink->documents++;
    parser->counts.documents++;
    if (mode.careful) {
        parser->counts.repaired += record->repaired;
        parser->counts.transcoded += record->transcoded;
    }
    return true;
}

/* The most bytes that transcoding may add to the record's text. */
static size_t transcoding_bytes(const sl_parser *parser, const sl_record *record) {
    if (!parser->dialect->encoding)
        return 0;
    size_t high = 0;
    for (uint32_t at = record->start; at < record->end; at++)
        high += (uint8_t)parser->block->text.bytes[at] >> 7;
    return 2 * high;
}

static bool take_record(sl_parser *parser, sl_record *record) {
    size_t need = parser->dialect->fixed_bytes + (record->end - record->start) +
                  transcoding_bytes(parser, record);
    if (need > SL_BSON_DOCUMENT_MAX) {
        sl_record_refuse_size(parser, record);
        return true;
    }
    return take(parser, record, need, (read_mode){.careful = true, .quotes = true, .trims = true});
}

/* ---- lines ---- */

/* Is the line a repeated header, perhaps with other quotes, another order or a byte order mark? The
 * length excludes most lines. */
static inline bool repeats_header(const sl_dialect *d, const char *text, const sl_record *record) {
    const size_t length = record->end - record->start;
    bool same_order;
    if (likely(length - d->watched_length > 3 && length - d->requoted_length > 3))
        return false;
    return sl_line_is_header(d, (sl_text){text + record->start, length}, &same_order);
}

/* Splits a line that may have quotes but no escapes into fields; its first mark is marks[next].
 * False for other lines. If the last line has no line feed, line_end is the text's length: the byte
 * at line_end is never read. */
static inline bool resolve_quotes(sl_parser *parser, const sl_marks *m, const char *text,
                                  uint32_t next, const sl_record *record, uint32_t line_end) {
    const uint32_t *mark = m->marks + next;
    const size_t count = parser->dialect->column_count;
    const char escape = parser->dialect->escape, quote = parser->dialect->quote;
    uint32_t at = record->start;
    for (size_t f = 0; f < count; f++) {
        if (*mark == at && at != line_end && text[at] == quote) {
            do {
                if (*++mark == line_end)
                    return false;
            } while (text[*mark] != quote);
            uint32_t close = *mark++;
            parser->before[f] = at;
            parser->after[f] = close;
            if ((escape && text[close - 1] == escape) ||
                (*mark == line_end ? close + 1 != record->end
                                   : close + 1 != *mark || text[*mark] == quote))
                return false;
        } else {
            while (*mark != line_end && text[*mark] == quote) {
                if (text[at] == ' ') /* perhaps before an opening quote */
                    return false;
                mark++;
            }
            parser->before[f] = at - 1;
            parser->after[f] = *mark == line_end ? record->end : *mark;
        }
        if (*mark == line_end)
            return f + 1 == count;
        at = *mark++ + 1;
    }
    return false;
}

/* Parses all lines of a stretch of text that starts at *start, and moves *start after them. */
static ALWAYS_INLINE bool take_stretch(sl_parser *parser, sl_marks *m, uint32_t *start,
                                       read_mode mode) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    const uint32_t columns = (uint32_t)d->column_count;
    const uint32_t lines_before = (uint32_t)parser->counts.lines;
    uint32_t next = 1; /* the line's first mark; marks[next - 1] becomes the previous line end */
    uint32_t i = 0;
    bool go_on = true;
    while (i < m->line_count && go_on) {
        const uint32_t line_end = m->lines[i];
        sl_record record;
        record.start = *start;
        record.end = line_end;
        record.line =
            lines_before + ((mode.regular || mode.escapes) && i > 0 ? m->numbers[i - 1] : i);
        if (mode.regular && unlikely(lines_before + m->numbers[i] - record.line > 2))
            sl_record_doubt(parser, record.start, line_end, record.line);
        i++;
        *start = line_end + 1;
        if (likely(record.start != line_end) && !(mode.escapes && d->keeps_cr))
            record.end -= text[line_end - 1] == '\r';
        bool fits = record.start != record.end;
        if (mode.escapes && columns == 1 && record.end == record.start + 2)
            fits = memcmp(text + record.start, "\\.", 2) != 0; /* the end of COPY's data */
        if (mode.quotes) {
            fits = fits && resolve_quotes(parser, m, text, next, &record, line_end);
            record.before = parser->before;
            record.after = parser->after;
        } else {
            uint32_t *last = m->marks + next + columns - 1;
            fits = fits && next + columns <= m->mark_count + 1 && *last == line_end;
            record.before = m->marks + next - 1;
            record.after = m->marks + next;
            if (likely(fits)) {
                m->marks[next - 1] = record.start - 1;
                *last = record.end;
                next += columns;
            }
        }
        if (likely(fits && !repeats_header(d, text, &record))) {
            if (mode.careful) {
                record.transcoded = record.repaired = false;
                go_on = take_record(parser, &record);
            } else {
                go_on = take(parser, &record, d->fixed_bytes + (record.end - record.start), mode);
            }
        } else {
            go_on = sl_delimited_take_line(parser, &record);
        }
        if (mode.quotes || !fits) {
            while (m->marks[next] != line_end)
                next++;
            next++;
        }
    }
    parser->counts.lines += mode.regular || mode.escapes ? m->numbers[i - 1] : i;
    return go_on;
}

/* As resolve_quotes, for a record of a divided block: also finds the line end that ends it. The
 * record's first mark is marks[*next], and *next becomes the first mark after the record. False
 * also when the record may end after the stretch. */
static inline bool resolve_record(sl_parser *parser, const sl_marks *m, uint32_t *next,
                                  sl_record *record, uint32_t *line_end) {
    const char *text = parser->block->text.bytes;
    const uint32_t length = (uint32_t)parser->block->text.length;
    const size_t count = parser->dialect->column_count;
    const char escape = parser->dialect->escape, quote = parser->dialect->quote;
    const uint32_t *mark = m->marks + *next, *stop = m->marks + 1 + m->mark_count;
    uint32_t at = record->start;
    for (size_t f = 0; f < count; f++) {
        bool quoted = mark < stop && *mark == at && at < length && text[at] == quote;
        uint32_t close = 0;
        if (quoted) {
            do {
                if (++mark >= stop || *mark == length)
                    return false;
            } while (text[*mark] != quote);
            close = *mark++;
            if (escape && text[close - 1] == escape)
                return false;
        } else {
            while (mark < stop && *mark < length && text[*mark] == quote) {
                if (text[at] == ' ')
                    return false;
                mark++;
            }
        }
        if (mark >= stop)
            return false;
        bool ends = *mark == length || text[*mark] == '\n';
        uint32_t after = *mark;
        if (ends && after > at)
            after -= text[after - 1] == '\r';
        if (quoted && (close + 1 != after || (!ends && text[after] == quote)))
            return false;
        parser->before[f] = quoted ? at : at - 1;
        parser->after[f] = quoted ? close : after;
        at = *mark++ + 1;
        if (ends) {
            record->end = after;
            *line_end = at - 1;
            *next = (uint32_t)(mark - m->marks);
            return f + 1 == count && record->end > record->start;
        }
    }
    return false;
}

static ALWAYS_INLINE bool take_records(sl_parser *parser, sl_marks *m, uint32_t *start,
                                       read_mode mode) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    const uint32_t first = *start, lines_before = (uint32_t)parser->counts.lines;
    const uint32_t last_line = m->lines[m->line_count - 1];
    uint32_t next = 1, i = 0;
    uint32_t more_lines = 0; /* line ends after the stretch */
    bool go_on = true;
    while (i < m->line_count && go_on) {
        uint32_t line_end, mark = next;
        sl_record record = {.start = *start,
                            .line = lines_before + i,
                            .before = parser->before,
                            .after = parser->after};
        if (likely(resolve_record(parser, m, &mark, &record, &line_end)) &&
            likely(!repeats_header(d, text, &record))) {
            next = mark;
            if (mode.careful)
                go_on = take_record(parser, &record);
            else
                go_on = take(parser, &record, d->fixed_bytes + (record.end - record.start), mode);
        } else {
            line_end = sl_delimited_record_end(parser, record.start);
            if (line_end > last_line && record.start > first)
                break; /* the next stretch begins with this record */
            record.end = line_end;
            if (record.end > record.start)
                record.end -= text[record.end - 1] == '\r';
            go_on = sl_delimited_take_line(parser, &record);
            while (next <= m->mark_count && m->marks[next] <= line_end)
                next++;
        }
        if (unlikely(m->lines[i] < line_end))
            sl_record_doubt(parser, record.start, line_end, record.line);
        *start = line_end + 1;
        while (i < m->line_count && m->lines[i] <= line_end)
            i++;
        for (uint32_t at = last_line + 1; at <= line_end; at++)
            more_lines += text[at] == '\n' || at == parser->block->text.length;
    }
    parser->counts.lines += i + more_lines;
    return go_on;
}

static bool take_divided(sl_parser *parser, sl_marks *m, uint32_t *start, bool careful) {
    if (careful)
        return take_records(parser, m, start,
                            (read_mode){.careful = true, .quotes = true, .trims = true});
    return take_records(parser, m, start, (read_mode){.quotes = true, .trims = true});
}

static bool take_plain(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, (read_mode){0});
}

static bool take_trimmed(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, (read_mode){.trims = true});
}

static bool take_quoted(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start, (read_mode){.quotes = true, .trims = true});
}

static bool take_regular(sl_parser *parser, sl_marks *m, uint32_t *start) {
    if (parser->dialect->trim == SL_TRIM_NOTHING)
        return take_stretch(parser, m, start, (read_mode){.regular = true});
    return take_stretch(parser, m, start, (read_mode){.trims = true, .regular = true});
}

static bool take_escaped(sl_parser *parser, sl_marks *m, uint32_t *start) {
    parser->escapes = m->escapes;
    if (parser->dialect->trim == SL_TRIM_NOTHING)
        return take_stretch(parser, m, start, (read_mode){.escapes = true});
    return take_stretch(parser, m, start, (read_mode){.trims = true, .escapes = true});
}

static bool take_careful(sl_parser *parser, sl_marks *m, uint32_t *start) {
    return take_stretch(parser, m, start,
                        (read_mode){.careful = true, .quotes = m->quoted, .trims = true});
}

/* ---- this version ---- */

#define SL_KERNELS                                                                                 \
    .find_marks = find_marks, .find_records = find_records, .utf8_valid = utf8_valid,              \
    .take_plain = take_plain, .take_regular = take_regular, .take_trimmed = take_trimmed,          \
    .take_quoted = take_quoted, .take_careful = take_careful, .take_record = take_record,          \
    .take_divided = take_divided, .pass_quotes = pass_quotes, .find_escaped = find_escaped,        \
    .take_escaped = take_escaped

#if defined(SL_SET_AVX2)

static bool supported(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("pclmul");
}

const sl_simd sl_simd_avx2 = {.name = "avx2", .supported = supported, SL_KERNELS};

#elif defined(SL_SET_SSE2) /* every 64-bit x86 processor has it */

const sl_simd sl_simd_sse2 = {.name = "sse2", SL_KERNELS};

#elif defined(SL_SET_NEON) /* every 64-bit ARM processor has it */

const sl_simd sl_simd_neon = {.name = "neon", SL_KERNELS};

#else

const sl_simd sl_simd_portable = {.name = "portable", SL_KERNELS};

#endif
