/* SPDX-License-Identifier: Apache-2.0 */
/* The format `lines`, the example of CONTRIBUTING.md: each line becomes {_id, line}. Built by
 * tests/cli/test_contributing.py only. */
#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/document_id.h"

struct sl_plan {
    uint64_t line_limit; /* bytes */
};

static bool plan_create(const sl_format_options *options, sl_plan **plan, sl_error *error) {
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return sl_error_memory(error, "preparing the format lines");
    (void)options;
    (*plan)->line_limit = SL_BLOCK_BYTES;
    return true;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)plan, (void)name, (void)head, (void)whole;
    *dialect = calloc(1, 1); /* all sources have the same layout */
    return *dialect || sl_error_memory(error, "looking at a source");
}

/* Writes the document of a line. False if the sink ends the block. */
static bool put_line(sl_sink *sink, sl_text line, int64_t id) {
    size_t need = SL_BSON_HEAD_BYTES + line.length + 32;
    if (((size_t)(sink->limit - sink->cursor) < need || sink->documents >= sink->documents_limit) &&
        !sink->full(sink, need))
        return false;
    uint8_t *to = sl_bson_begin_with_id(sink->cursor, id);
    to = sl_bson_put_key(to, SL_BSON_TEXT, "line");
    to = sl_bson_put_text(to, line.bytes, line.length);
    sink->cursor = sl_bson_end(sink->cursor, to);
    sink->documents++;
    return true;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    (void)dialect;
    const char *next = block->text.bytes, *end = next + block->text.length;
    for (uint32_t number = 0; next < end; number++) {
        const char *stop = memchr(next, '\n', (size_t)(end - next));
        sl_text line = {next, (size_t)((stop ? stop : end) - next)};
        uint64_t offset = block->offset + (uint64_t)(next - block->text.bytes);
        size_t wrong;
        sl_reject reject = {.offset = offset, .line = number, .column = "line", .record = line};
        if (line.length > plan->line_limit)
            snprintf(reject.reason, sizeof reject.reason,
                     "the line has %zu bytes; the limit is %llu", line.length,
                     (unsigned long long)plan->line_limit);
        else if (!sl_utf8_valid(line.bytes, line.length, &wrong))
            snprintf(reject.reason, sizeof reject.reason, "byte %zu is not UTF-8", wrong);
        counts->lines++;
        counts->records++;
        if (reject.reason[0]) {
            counts->rejects++;
            sink->reject(sink, &reject);
        } else if (put_line(sink, line, block->id_base + (int64_t)(offset % SL_BLOCK_BYTES))) {
            counts->documents++;
        } else {
            return false;
        }
        next = stop ? stop + 1 : end;
    }
    return true;
}

const sl_format sl_format_lines = {
    .name = "lines",
    .summary = "any text; each line becomes a document",
    .kind = "lines of text",
    .plan_create = plan_create,
    .sniff = sniff,
    .parse = parse,
};
