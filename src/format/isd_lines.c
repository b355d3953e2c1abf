/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the ISD formats share: the loop over a block's lines, rejects, the sniff. */
#include "isd_plan.h"

#include "convert.h"
#include "head.h"
#include "key_fields.h"
#include "util/document_id.h"

#include <stdarg.h>
#include <stdio.h>

#define SNIFF_LINES 100u

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
