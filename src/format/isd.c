/* SPDX-License-Identifier: Apache-2.0 */
/* The format `isd`: complete ISD records, one per line.
 *
 * A record is rejected when it is too short or too long, when its time does not exist, or when its
 * columns are shifted: its length differs from the declared one, and a sign is missing at its fixed
 * position or no section begins after the fixed columns. Other errors affect only the invalid part:
 * a number field that is not a number is left out and counted, unknown sections are kept as text
 * and counted. The ISD formats share the loop over a block's lines, rejects, and the sniff. */
#include "isd_plan.h"

#include "convert.h"
#include "head.h"
#include "key_fields.h"
#include "util/document_id.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SNIFF_LINES 100u
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

struct sl_dialect {
    char usaf[32], wban[32]; /* of the first record, printable */
};

/* ---- lines, for all ISD formats ---- */

bool sl_isd_parse_lines(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts, sl_isd_take *take) {
    sl_isd_parser p = {.plan = plan, .dialect = dialect, .block = block, .sink = sink};
    const char *at = block->text.bytes, *stop = at + block->text.length;
    bool go_on = true;
    while (at < stop && go_on) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        if (!end)
            end = stop;
        p.counts.lines++;
        go_on = take(&p, at, (size_t)(end - at));
        at = end + 1;
    }
    p.counts.records = p.counts.documents + p.counts.rejects;
    sl_parse_counts_add(counts, &p.counts);
    return go_on;
}

static uint64_t offset_of(const sl_isd_parser *parser, const char *line) {
    return parser->block->offset + (uint64_t)(line - parser->block->text.bytes);
}

int64_t sl_isd_line_id(const sl_isd_parser *parser, const char *line) {
    return parser->block->id_base + (int64_t)(offset_of(parser, line) & (SL_BLOCK_BYTES - 1));
}

static sl_reject reject_of(const sl_isd_parser *parser, const char *line, size_t length) {
    return (sl_reject){.offset = offset_of(parser, line),
                       .line = (uint32_t)(parser->counts.lines - 1),
                       .record = {line, length}};
}

static void pass_reject(sl_isd_parser *parser, const sl_reject *reject) {
    parser->counts.rejects += !reject->misread;
    parser->sink->reject(parser->sink, reject);
}

void sl_isd_refuse(sl_isd_parser *parser, const char *line, size_t length, const char *column,
                   const char *reason, ...) {
    if (sl_isd_trimmed(line, length) == 0) {
        parser->counts.blank_lines++;
        return;
    }
    sl_reject reject = reject_of(parser, line, length);
    va_list values;
    reject.column = column;
    va_start(values, reason);
    vsnprintf(reject.reason, sizeof reject.reason, reason, values);
    va_end(values);
    pass_reject(parser, &reject);
}

/* Changes the document at the sink's cursor by the block's key fields. False: rejected. */
static bool apply_keys(sl_isd_parser *parser, const char *line, size_t length, uint8_t **end) {
    sl_reject reject = reject_of(parser, line, length);
    if (sl_key_fields_apply(parser->block->keys, false, parser->sink->cursor, end, &reject))
        return true;
    pass_reject(parser, &reject);
    return false;
}

bool sl_isd_keep(sl_isd_parser *parser, const char *line, size_t length, uint8_t *end) {
    sl_sink *sink = parser->sink;
    if (parser->block->keys && !apply_keys(parser, line, length, &end))
        return false;
    if (sink->offsets)
        sink->offsets[sink->documents] = offset_of(parser, line);
    sink->cursor = end;
    sink->documents++;
    parser->counts.documents++;
    return true;
}

bool sl_isd_refuse_open_quote(sl_isd_parser *parser, const char *line, size_t length, size_t open) {
    sl_reject reject = reject_of(parser, line, length);
    char quoted[SL_QUOTED_ROOM];
    reject.misread = true;
    snprintf(reject.reason, sizeof reject.reason, SL_LINE_CONTINUES,
             sl_quoted((sl_text){line + open, length - open}, quoted));
    pass_reject(parser, &reject);
    return false;
}

bool sl_isd_sniff_lines(sl_text head, bool whole, bool (*looks_like_record)(sl_text line),
                        const char *expected, sl_text *record, sl_error *error) {
    sl_text first = {"", 0};
    size_t lines = 0, records = 0;
    for (size_t at = 0; at < head.length && lines < SNIFF_LINES;) {
        const char *end = memchr(head.bytes + at, '\n', head.length - at);
        if (!end && !whole && lines > 0)
            break; /* the line may be incomplete */
        sl_text line = {head.bytes + at, end ? (size_t)(end - head.bytes) - at : head.length - at};
        at += line.length + 1;
        if (sl_isd_trimmed(line.bytes, line.length) == 0)
            continue;
        if (lines++ == 0)
            first = line;
        if (looks_like_record(line) && records++ == 0)
            *record = line;
    }
    if (records > 0 && 2 * records >= lines)
        return true;
    char shown[100];
    sl_text_printable(first, shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_SOURCE, "its first line is `%s`; expected %s", shown,
                        expected);
}

/* ---- records ---- */

static inline bool read_digits(const char *digits, size_t count, uint32_t *value) {
    uint64_t word = (sl_load_8(digits) ^ 0x3030303030303030u) << (64 - 8 * count);
    *value = (uint32_t)sl_swar_number(word);
    return sl_swar_digits(word);
}

/* Reads date and time from byte 15 on; 2400 is 0000 of the next day. */
static inline bool read_time(const char *record, int64_t *milliseconds) {
    uint32_t date, time;
    int64_t days;
    if (unlikely(!read_digits(record + 15, 8, &date) || !read_digits(record + 23, 4, &time) ||
                 !sl_civil_days(date / 10000, date / 100 % 100, date % 100, &days)))
        return false;
    uint32_t minutes = time / 100 * 60 + time % 100;
    *milliseconds = days * SL_DAY_MS + (int64_t)minutes * 60000;
    return time % 100 < 60 && minutes <= 24 * 60;
}

bool sl_isd_is_plain(const char *record, size_t length) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t odd = 0;
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = sl_load_8(record + (at + 8 <= length ? at : length - 8));
        odd |= word | (word - 0x20 * ones) | (word + ones);
    }
    return (odd & 0x80 * ones) == 0;
}

/* Are the columns of a record of the wrong length still at their positions? */
static bool columns_in_place(const char *record, size_t end) {
    static const uint8_t signs[] = {28, 34, 46, 87, 93};
    static const char *const tags[] = {"ADD", "REM", "EQD", "QNN"};
    for (size_t i = 0; i < sizeof signs; i++) {
        if (record[signs[i]] != '+' && record[signs[i]] != '-')
            return false;
    }
    size_t rest = end - SL_ISD_FIXED_BYTES;
    bool found = rest == 0;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        found |= memcmp(record + SL_ISD_FIXED_BYTES, tags[i], rest < 3 ? rest : 3) == 0;
    return found;
}

static void refuse_length(sl_isd_parser *p, const char *record, size_t length) {
    if (length < SL_ISD_FIXED_BYTES)
        sl_isd_refuse(p, record, length, NULL, "%zu bytes are too few: a record has at least %u",
                      length, SL_ISD_FIXED_BYTES);
    else
        sl_isd_refuse(p, record, length, NULL, "%zu bytes are too many: a record has at most %u",
                      length, SL_ISD_RECORD_BYTES_MAX);
}

static bool take_line(sl_isd_parser *p, const char *record, size_t length) {
    uint32_t variable;
    size_t declared = SIZE_MAX; /* the record's length according to its first four digits */
    if (likely(length >= 4) && likely(read_digits(record, 4, &variable)))
        declared = SL_ISD_FIXED_BYTES + variable;
    if (length != declared && length > 0 && record[length - 1] == '\r')
        length--;
    if (unlikely(length < SL_ISD_FIXED_BYTES || length > SL_ISD_RECORD_BYTES_MAX)) {
        refuse_length(p, record, length);
        return true;
    }
    int64_t milliseconds;
    if (unlikely(!read_time(record, &milliseconds))) {
        char quoted[SL_QUOTED_ROOM];
        sl_isd_refuse(p, record, length, "date and time",
                      "%s is not a date YYYYMMDD with a time HHMM",
                      sl_quoted((sl_text){record + 15, 12}, quoted));
        return true;
    }
    size_t end = length < declared ? length : declared;
    if (unlikely(length != declared)) {
        if (!columns_in_place(record, end)) {
            sl_isd_refuse(
                p, record, length, NULL,
                "the record's length differs from the declared one, and its columns are shifted");
            return true;
        }
        p->counts.length_mismatches++;
    }
    sl_isd_walk walk;
    sl_isd_walk_record(p->plan, record, end, length, &walk);
    sl_sink *sink = p->sink;
    if (unlikely(!sl_sink_make_room(sink, walk.bound)))
        return false;
    bool careful = !sl_isd_is_plain(record, length);
    uint8_t *to = sl_isd_put_document(p->plan, &walk, sl_isd_line_id(p, record), milliseconds,
                                      careful, sink->cursor, &p->counts.malformed_fields);
    if (unlikely(!sl_isd_keep(p, record, length, to)))
        return true;
    p->counts.transcoded += careful;
    p->counts.unknown_groups += sl_isd_has_unparsed(&walk);
    return true;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    return sl_isd_parse_lines(plan, dialect, block, sink, counts, take_line);
}

/* ---- sources ---- */

static bool looks_like_record(sl_text line) {
    int64_t milliseconds;
    uint32_t number;
    return line.length >= SL_ISD_FIXED_BYTES && line.length <= SL_ISD_RECORD_BYTES_MAX + 1 &&
           read_digits(line.bytes, 4, &number) && read_time(line.bytes, &milliseconds) &&
           columns_in_place(line.bytes, SL_ISD_FIXED_BYTES) &&
           read_digits(line.bytes + 29, 5, &number) && read_digits(line.bytes + 35, 6, &number);
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole, sl_dialect **out,
                  sl_error *error) {
    (void)name;
    sl_text record;
    if (!sl_isd_plan_fits(plan, error))
        return false;
    if (!sl_isd_sniff_lines(head, whole, looks_like_record,
                            "105 bytes of fixed columns with date and time at byte 16", &record,
                            error))
        return sl_error_prefix(error, "this is not ISD");
    sl_dialect *dialect = calloc(1, sizeof *dialect);
    if (!dialect)
        return sl_error_memory(error, "looking at a source");
    sl_text_printable((sl_text){record.bytes + 4, 6}, dialect->usaf, sizeof dialect->usaf);
    sl_text_printable((sl_text){record.bytes + 10, 5}, dialect->wban, sizeof dialect->wban);
    *out = dialect;
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    snprintf(out, room, "weather observations, packed ASCII; the first is of station %s-%s",
             dialect->usaf, dialect->wban);
    return out;
}

const sl_format sl_format_isd = {
    .name = "isd",
    .summary = "weather observations of NOAA's Integrated Surface Data, all groups",
    .kind = "weather observations",
    SL_ISD_FUNCTIONS,
};
