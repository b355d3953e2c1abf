/* SPDX-License-Identifier: Apache-2.0 */
/* The format `json`: documents in Extended JSON, one after the other.
 *
 * JSON lines are divided at line ends, so any thread reads any block. Other texts are divided
 * between documents by the splitter (json_split.c), which reads them sequentially and checks the
 * text between documents. An invalid line is a reject, and reading continues with the next line. In
 * other texts, an invalid document is a reject only if it is JSON by the grammar, because then its
 * end is certain; otherwise the load ends. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "bson/extjson.h"
#include "convert.h"
#include "head.h"
#include "key_fields.h"
#include "simd.h"
#include "util/document_id.h"

#define TEXT_MAX ((size_t)16 << 20) /* of a document; the reader also cuts longer lines */

struct sl_plan {
    const sl_simd *simd;
};

struct sl_dialect {
    bool lines;
    bool array;
};

static bool plan_create(const sl_format_options *options, sl_plan **plan, sl_error *error) {
    (void)options;
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return sl_error_memory(error, "preparing the format json");
    if (sl_simd_choose(&(*plan)->simd, error))
        return true;
    free(*plan);
    *plan = NULL;
    return false;
}

/* ---- recognising a source ---- */

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)plan, (void)name;
    const char *end = head.bytes + head.length, *p = sl_json_skip(head.bytes, end);
    if (head.length >= 2 &&
        (memcmp(head.bytes, "\xFF\xFE", 2) == 0 || memcmp(head.bytes, "\xFE\xFF", 2) == 0))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 FILE "
                            "> NEW");
    if (p == end)
        return sl_error_set(error, SL_EXIT_SOURCE, "the file is empty: it contains no document");
    if (!sl_json_begins(head)) {
        char shown[60];
        const char *line = memchr(p, '\n', (size_t)(end - p));
        sl_text_printable((sl_text){p, (size_t)((line ? line : end) - p)}, shown, sizeof shown);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is not JSON: it begins with `%s`; expected documents such as "
                            "{\"key\": 1}, or an array of them",
                            shown);
    }
    *dialect = malloc(sizeof **dialect);
    if (!*dialect)
        return sl_error_memory(error, "looking at a source");
    **dialect = (sl_dialect){.lines = sl_json_is_lines(head, whole), .array = *p == '['};
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    snprintf(out, room, "%s",
             dialect->lines   ? "JSON lines: a document on each line"
             : dialect->array ? "an array of documents"
                              : "documents one after the other");
    return out;
}

static const sl_splitter *splitter(const sl_dialect *dialect, bool *lines) {
    *lines = dialect->lines;
    return &sl_json_splitter;
}

/* ---- parsing ---- */

typedef struct parser {
    sl_extjson *extjson;
    const sl_block *block;
    sl_sink *sink;
    sl_parse_counts counts;
    const char *line_start; /* of the last line counted by lines_before */
    uint32_t lines;         /* line ends before it */
} parser;

/* The number of line ends of the block before `p`, which does not decrease from call to call. */
static uint32_t lines_before(parser *ps, const char *p) {
    ps->lines += sl_line_feeds(ps->line_start, p);
    ps->line_start = p;
    return ps->lines;
}

/* Writes the reason of a reject, with its position in the record that begins at `from`. */
static void explain(sl_reject *reject, const char *from, const char *at, const char *reason,
                    sl_text shown) {
    char quoted[SL_QUOTED_ROOM] = "", line[40] = "";
    uint32_t before = sl_line_feeds(from, at);
    const char *start = at;
    while (start > from && before > 0 && start[-1] != '\n')
        start--;
    if (before > 0)
        snprintf(line, sizeof line, "line %u, ", before + 1);
    else
        start = from;
    if (shown.length > 0)
        sl_quoted(shown, quoted);
    snprintf(reject->reason, sizeof reject->reason, "at %sbyte %zu of the document: %s%s%s", line,
             (size_t)(at - start) + 1, reason, quoted[0] ? ": " : "", quoted);
}

static void reject_record(parser *ps, const char *from, const char *to, const char *at,
                          const char *reason, sl_text shown, bool misread) {
    sl_reject reject = {.offset = ps->block->offset + (uint64_t)(from - ps->block->text.bytes),
                        .line = lines_before(ps, from),
                        .misread = misread,
                        .record = {from, (size_t)(to - from)}};
    explain(&reject, from, at, reason, shown);
    if (misread) {
        size_t used = strlen(reject.reason);
        snprintf(reject.reason + used, sizeof reject.reason - used,
                 "; the start of the next document is not certain, so the load ends here");
    }
    ps->counts.rejects += !misread;
    ps->sink->reject(ps->sink, &reject);
}

/* Changes the document of the text from `from` to `to` by the block's key fields. False: it is
 * refused, and has been rejected. */
static bool apply_keys(parser *ps, const char *from, const char *to, bool own_id, uint8_t **end) {
    sl_reject reject = {.offset = ps->block->offset + (uint64_t)(from - ps->block->text.bytes),
                        .record = {from, (size_t)(to - from)}};
    if (sl_key_fields_apply(ps->block->keys, own_id, ps->sink->cursor, end, &reject))
        return true;
    reject.line = lines_before(ps, from);
    ps->counts.rejects++;
    ps->sink->reject(ps->sink, &reject);
    return false;
}

/* Converts the document at *p, in text whose last } is before `end`, and moves *p after it. False
 * when the sink ends the block; otherwise `*valid`. */
static bool take_document(parser *ps, const char **p, const char *end, bool *valid) {
    sl_sink *sink = ps->sink;
    size_t need = 1024;
    uint64_t offset = ps->block->offset + (uint64_t)(*p - ps->block->text.bytes);
    int64_t id = ps->block->id_base + (int64_t)(offset & (SL_BLOCK_BYTES - 1));
    if (sink->documents >= sink->documents_limit && !sink->full(sink, need))
        return false;
    for (;;) {
        uint8_t *written;
        const char *after;
        bool own;
        switch (sl_extjson_document(ps->extjson, *p, end, &id, sink->cursor, sink->limit, &after,
                                    &written, &own)) {
        case SL_EXTJSON_OK:
            if (!ps->block->keys || apply_keys(ps, *p, after, own, &written)) {
                if (sink->offsets)
                    sink->offsets[sink->documents] = offset;
                sink->cursor = written;
                sink->documents++;
                ps->counts.documents++;
            }
            *p = after;
            *valid = true;
            return true;
        case SL_EXTJSON_INVALID:
            *valid = false;
            return true;
        case SL_EXTJSON_NO_ROOM:
            if (!sink->full(sink, need))
                return false;
            need *= 4;
        }
    }
}

/* The position after the last } before `end`, where the last document of the text may end; `from`
 * if there is no }. */
static const char *last_brace(const char *from, const char *end) {
    const char *last = memrchr(from, '}', (size_t)(end - from));
    return last ? last + 1 : from;
}

/* ---- JSON lines ---- */

/* Parses the documents of a line without its line end. False: the sink ends the block. */
static bool take_line(parser *ps, const char *p, const char *end) {
    const sl_text nothing = {"", 0};
    p = sl_json_skip(p, end);
    while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (p == end) {
        ps->counts.blank_lines++;
        return true;
    }
    if ((size_t)(end - p) > TEXT_MAX) {
        reject_record(ps, p, end, p, "a line of more than 16 MiB", nothing, false);
        return true;
    }
    const char *brace = end[-1] == '}' ? end : last_brace(p, end);
    while (p < end) {
        if (*p != '{') {
            reject_record(ps, p, end, p, "not a document: a document begins with { and ends with }",
                          nothing, false);
            return true;
        }
        bool valid;
        if (p >= brace) {
            reject_record(ps, p, end, end, "the line ends before the document is complete", nothing,
                          false);
            return true;
        }
        if (!take_document(ps, &p, brace, &valid))
            return false;
        if (!valid) {
            const sl_extjson_fault *why = sl_extjson_why(ps->extjson);
            bool cut = why->at >= brace;
            reject_record(ps, p, end, cut ? end : why->at,
                          cut ? "the line ends before the document is complete" : why->reason,
                          why->shown, false);
            return true;
        }
        p = sl_json_skip(p, end);
    }
    return true;
}

static bool take_lines(parser *ps) {
    const char *p = ps->block->text.bytes, *stop = p + ps->block->text.length;
    bool go_on = true;
    while (p < stop && go_on) {
        const char *end = memchr(p, '\n', (size_t)(stop - p));
        if (!end)
            end = stop;
        ps->counts.lines++;
        go_on = take_line(ps, p, end);
        p = end + 1;
    }
    return go_on;
}

/* ---- other texts ---- */

/* The next document at or after `p`, or `end`. The splitter has checked the text before it. */
static const char *next_document(const char *p, const char *end) {
    while ((p = sl_json_skip(p, end)) < end && (*p == ',' || *p == '[' || *p == ']'))
        p++;
    return p;
}

static bool take_text(parser *ps) {
    const char *start = ps->block->text.bytes, *end = start + ps->block->text.length, *p = start;
    const char *brace = last_brace(p, end);
    bool go_on = true;
    while (go_on && (p = next_document(p, end)) < end) {
        const sl_extjson_fault outside = {p, "a document is expected here", {"", 0}},
                               *why = &outside;
        const char *from = p, *certain = NULL;
        bool valid = false;
        if (*p == '{' && p < brace) {
            go_on = take_document(ps, &p, brace, &valid);
            if (!go_on || valid)
                continue;
            why = sl_extjson_why(ps->extjson);
            certain = sl_json_document_end(from, end);
        }
        p = certain ? certain : why->at;
        reject_record(ps, from, p, why->at, why->reason, why->shown, !certain);
        go_on = certain != NULL;
        if (!certain)
            end = from; /* the lines after it have not been read */
    }
    ps->counts.lines += sl_line_feeds(start, end);
    return go_on;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    parser ps = {.block = block, .sink = sink, .line_start = block->text.bytes};
    sl_error error;
    if (!sl_extjson_create(sl_simd_name(plan->simd), sl_simd_utf8_valid(plan->simd), &ps.extjson,
                           &error)) {
        sl_reject reject = {
            .offset = block->offset, .record = {block->text.bytes, 0}, .misread = true};
        snprintf(reject.reason, sizeof reject.reason, "out of memory while reading JSON");
        sink->reject(sink, &reject);
        return false;
    }
    bool go_on = dialect->lines ? take_lines(&ps) : take_text(&ps);
    sl_extjson_destroy(ps.extjson);
    ps.counts.records = ps.counts.documents + ps.counts.rejects;
    sl_parse_counts_add(counts, &ps.counts);
    return go_on;
}

const sl_format sl_format_json = {
    .name = "json",
    .summary = "JSON lines, arrays and concatenated documents, in Extended JSON",
    .kind = "documents",
    .plan_create = plan_create,
    .sniff = sniff,
    .describe = describe,
    .splitter = splitter,
    .own_ids = true,
    .parse = parse,
};
