/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of formats: parses a text and keeps the documents, rejects and counts. */
#ifndef PARSE_TEXT_H
#define PARSE_TEXT_H

#include "format/format.h"
#include "format/key_fields.h"
#include "format/notation.h"
#include "unit.h"
#include "util/document_id.h"

#define KEPT_REJECTS 64

typedef struct kept_reject {
    uint64_t offset;
    uint32_t line;
    char column[64]; /* "" for none */
    char reason[600];
    char record[600];
} kept_reject;

typedef struct parsed {
    const sl_format *format; /* NULL when no format recognised the text */
    sl_error error;          /* why the first format did not recognise it */
    char described[600];
    char kind[64];
    char header[300];
    uint8_t *bytes; /* all documents, concatenated; kept until the end of the test */
    size_t length;
    uint32_t documents;
    kept_reject rejects[KEPT_REJECTS];
    size_t reject_count;
    sl_parse_counts counts;
    bool stopped;
    bool misread;        /* rejects[reject_count] ended the parsing; it is not counted */
    uint32_t stop_after; /* documents; 0: never */
    sl_key_fields *keys; /* of the options; NULL after parsing */
} parsed;

/* A small batch, which becomes full often. */
#ifndef BATCH_BYTES
#define BATCH_BYTES 4096
#endif

/* The source's name, from which some formats read the station. */
static const char *source_name = "text";

static bool keep_documents(sl_sink *sink, size_t need) {
    parsed *p = sink->context;
    uint8_t *batch = sink->limit - BATCH_BYTES;
    size_t length = (size_t)(sink->cursor - batch);
    p->bytes = realloc(p->bytes, p->length + length + 1);
    assert_non_null(p->bytes);
    memcpy(p->bytes + p->length, batch, length);
    p->length += length;
    p->documents += sink->documents;
    sink->cursor = batch;
    sink->documents = 0;
    assert_true(need <= BATCH_BYTES);
    return p->stop_after == 0 || p->documents < p->stop_after;
}

static void keep_reject(sl_sink *sink, const sl_reject *reject) {
    parsed *p = sink->context;
    assert_true(p->reject_count < KEPT_REJECTS);
    assert_false(p->misread); /* a misread record is the last one */
    kept_reject *kept = &p->rejects[p->reject_count];
    p->misread = reject->misread;
    p->reject_count += !reject->misread;
    kept->offset = reject->offset;
    kept->line = reject->line;
    snprintf(kept->column, sizeof kept->column, "%s", reject->column ? reject->column : "");
    snprintf(kept->reason, sizeof kept->reason, "%s", reject->reason);
    snprintf(kept->record, sizeof kept->record, "%.*s", (int)reject->record.length,
             reject->record.bytes);
}

/* Parses text[from..to) as one block, in an allocation of exactly its size and SL_SLACK. */
static void parse_block(parsed *p, const sl_plan *plan, const sl_dialect *dialect, sl_text text,
                        size_t from, size_t to) {
    char *copy = malloc(to - from + SL_SLACK);
    uint8_t *batch = malloc(BATCH_BYTES + SL_SLACK);
    assert_non_null(copy);
    assert_non_null(batch);
    memcpy(copy, text.bytes + from, to - from);
    for (size_t i = 0; i < SL_SLACK; i++) /* these bytes must not affect the result */
        copy[to - from + i] = "\"|,\n\\\xFF"[(i + to) % 6];
    sl_sink sink = {.cursor = batch,
                    .limit = batch + BATCH_BYTES,
                    .documents_limit = 7,
                    .full = keep_documents,
                    .reject = keep_reject,
                    .context = p};
    sl_block block = {.text = {copy, to - from},
                      .offset = from,
                      .id_base = sl_document_id(1, 0),
                      .keys = p->keys};
    p->stopped = !p->format->parse(plan, dialect, &block, &sink, &p->counts);
    uint32_t stop_after = p->stop_after;
    p->stop_after = 0;
    keep_documents(&sink, 0);
    p->stop_after = stop_after;
    free(batch);
    free(copy);
}

/* Parses `text` with the first format that recognises it, or with the format `name`. A block ends
 * at the first line end after `step` bytes; with 0 the text is one block. */
static parsed parse_in_blocks(const char *name, const sl_format_options *options, sl_text text,
                              size_t step, uint32_t stop_after) {
    parsed p = {.stop_after = stop_after};
    sl_plan *plan = NULL;
    sl_dialect *dialect = NULL;
    sl_text head = {text.bytes, text.length < SL_SNIFF_BYTES ? text.length : SL_SNIFF_BYTES};
    for (size_t i = 0; sl_formats[i] && !p.format; i++) {
        if (name && strcmp(name, sl_formats[i]->name) != 0)
            continue;
        sl_error error = {0};
        if (sl_format_plan_create(sl_formats[i], options, &plan, &error) &&
            sl_formats[i]->sniff(plan, source_name, head, head.length == text.length, &dialect,
                                 &error))
            p.format = sl_formats[i];
        else
            sl_format_plan_destroy(sl_formats[i], plan), plan = NULL;
        if (p.error.code == SL_EXIT_OK && !sl_formats[i]->binary)
            p.error = error;
    }
    if (!p.format)
        return p;
    assert_true(sl_key_fields_create(options, &p.keys, &p.error));
    sl_format_describe(p.format, dialect, p.described, sizeof p.described);
    snprintf(p.kind, sizeof p.kind, "%s", sl_format_record_kind(p.format, dialect));
    sl_text header = sl_format_header(p.format, dialect);
    snprintf(p.header, sizeof p.header, "%.*s", (int)header.length, header.bytes);
    size_t at = 0;
    while (at < text.length && !p.stopped) {
        size_t end = text.length;
        if (step > 0 && at + step < text.length) {
            const char escape = p.format->line_escape ? p.format->line_escape(dialect) : 0;
            const char *line = text.bytes + at + step - 1;
            do
                line = memchr(line + 1, '\n', (size_t)(text.bytes + text.length - line) - 1);
            while (line && escape && sl_is_escaped(text.bytes + at, line, escape));
            end = line ? (size_t)(line - text.bytes) + 1 : text.length;
        }
        parse_block(&p, plan, dialect, text, at, end);
        at = end;
    }
    sl_format_dialect_destroy(p.format, dialect);
    sl_format_plan_destroy(p.format, plan);
    sl_key_fields_destroy(p.keys);
    p.keys = NULL;
    if (p.bytes)
        unit_keep(p.bytes);
    assert_int_equal(p.counts.records, p.counts.documents + p.counts.rejects);
    assert_int_equal(p.counts.rejects, p.reject_count);
    assert_int_equal(p.counts.documents, p.documents);
    return p;
}

static inline parsed parse_with(const char *name, const sl_format_options *options,
                                const char *text) {
    return parse_in_blocks(name, options, sl_text_of(text), 0, 0);
}

static inline parsed parse_mot(const char *text) {
    return parse_with("mot", &(sl_format_options){0}, text);
}

static inline parsed parse_with_schema(const char *schema, const char *text) {
    return parse_with(
        "delimited", &(sl_format_options){.schema_text = schema, .schema_name = "test.yaml"}, text);
}

/* Reads document `index` with libbson; fails the test if that is impossible. */
static void document_at(const parsed *p, size_t index, bson_t *document) {
    size_t at = 0;
    for (size_t i = 0; at < p->length; i++) {
        int32_t length;
        memcpy(&length, p->bytes + at, sizeof length);
        assert_true(bson_init_static(document, p->bytes + at, (size_t)length));
        assert_true(bson_validate(document, BSON_VALIDATE_UTF8, NULL));
        if (i == index)
            return;
        at += (size_t)length;
    }
    fail_msg("document %zu does not exist", index);
}

/* The document without its _id, as relaxed Extended JSON. */
static inline const char *json_at(const parsed *p, size_t index) {
    bson_t whole, document = BSON_INITIALIZER;
    document_at(p, index, &whole);
    bson_copy_to_excluding_noinit(&whole, &document, "_id", NULL);
    const char *json = unit_json_of(&document);
    bson_destroy(&document);
    return json;
}

static inline int64_t id_at(const parsed *p, size_t index) {
    bson_t document;
    document_at(p, index, &document);
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, &document) && bson_iter_next(&iter));
    assert_string_equal(bson_iter_key(&iter), "_id");
    assert_int_equal(bson_iter_type(&iter), BSON_TYPE_INT64);
    return bson_iter_int64(&iter);
}

/* The element `key` of a document; fails the test if it is missing. */
static inline bson_iter_t element_at(const parsed *p, size_t index, const char *key) {
    static bson_t document; /* the iterator points into it */
    document_at(p, index, &document);
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, &document, key))
        fail_msg("document %zu has no key %s", index, key);
    return iter;
}

static inline const char *text_at(const parsed *p, size_t index, const char *key) {
    bson_iter_t iter = element_at(p, index, key);
    assert_int_equal(bson_iter_type(&iter), BSON_TYPE_UTF8);
    return bson_iter_utf8(&iter, NULL);
}

static inline bool has_key(const parsed *p, size_t index, const char *key) {
    bson_t document;
    document_at(p, index, &document);
    return bson_has_field(&document, key);
}

/* Exactly one reject, in this column ("" for none), whose reason contains `part`. */
#define assert_one_reject(p, where, part)                                                          \
    do {                                                                                           \
        assert_int_equal((p)->reject_count, 1);                                                    \
        assert_string_equal((p)->rejects[0].column, where);                                        \
        assert_contains((p)->rejects[0].reason, part);                                             \
    } while (0)

#endif
