/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets of formats share: a text is parsed in one block, cut behind every line, and
 * cut in two at each of its lines, into batches and into rooms of exactly the size that was asked
 * for. Whatever the bytes, nothing is read or written out of bounds (a sanitizer sees to it: blocks
 * and rooms are allocations of their own), every document is sound BSON in UTF-8 without a key
 * twice, records are documents and rejects, lines add up, and all ways give the same documents and
 * the same rejects with the same line numbers; so does the version for each instruction set that
 * this processor has. A long text, of several blocks of the usual size, is cut at fewer places. */
#ifndef TESTS_FUZZ_PARSING_H
#define TESTS_FUZZ_PARSING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>

#include <shardload/document_id.h>
#include <shardload/format.h>
#include <shardload/simd.h>

#define BATCH_BYTES ((size_t)16 << 10)
#define CUTS_MAX 12u  /* places at which a text is cut in two */
#define LONG_BYTES ((size_t)64 << 10) /* longer texts are cut at LONG_CUTS_MAX places */
#define LONG_CUTS_MAX 2u
#define INPUT_MAX ((size_t)6 << 20)
#define KEYS_MAX 200u /* of a document, for them to be looked up one by one */

typedef struct outcome {
    uint64_t hash; /* of all documents and rejects, in order of records */
    uint64_t documents_hash;
    uint64_t rejects;
    uint64_t lines_before; /* the present block */
    bool misread;          /* the last of them ended the parsing */
    bool exact;            /* one document at a time, in as much room as was asked for */
    uint8_t *batch;
} outcome;

static inline void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

static inline void mix(uint64_t *hash, const void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        *hash = (*hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
}

static inline void check_document(const uint8_t *bytes, size_t length) {
    bson_t document;
    bson_iter_t iter, other;
    unsigned seen = 0;
    require(bson_init_static(&document, bytes, length), "a document can be read");
    require(bson_validate(&document, BSON_VALIDATE_UTF8, NULL), "a document is valid");
    require(bson_iter_init(&iter, &document), "a document can be walked");
    while (bson_iter_next(&iter) && ++seen <= KEYS_MAX) {
        require(bson_iter_init_find(&other, &document, bson_iter_key(&iter)), "a key is found");
        require(bson_iter_offset(&other) == bson_iter_offset(&iter), "no key is there twice");
    }
}

static inline bool take(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    size_t documents = 0;
    require(sink->cursor <= sink->limit, "documents keep to their room");
    for (const uint8_t *p = o->batch; p < sink->cursor; documents++) {
        int32_t length;
        memcpy(&length, p, sizeof length);
        require(length > 0 && length <= sink->cursor - p, "documents fill the batch");
        check_document(p, (size_t)length);
        mix(&o->documents_hash, p, (size_t)length);
        p += length;
    }
    require(documents == sink->documents, "documents are counted");
    require(!o->exact || documents <= 1, "one document at a time");
    free(o->batch);
    size_t room = o->exact || need > BATCH_BYTES ? need : BATCH_BYTES;
    o->batch = malloc(room + SL_SLACK);
    require(o->batch != NULL, "there is memory");
    sink->cursor = o->batch;
    sink->limit = o->batch + room;
    sink->documents = 0;
    return true;
}

static inline void refuse(sl_sink *sink, const sl_reject *reject) {
    outcome *o = sink->context;
    uint64_t line = o->lines_before + reject->line;
    o->rejects += !reject->misread;
    o->misread = reject->misread;
    require(reject->reason[0] != '\0', "a reject has a reason");
    require(memchr(reject->reason, '\0', sizeof reject->reason) != NULL, "a reason ends");
    mix(&o->hash, reject->reason, strlen(reject->reason));
    mix(&o->hash, reject->record.bytes, reject->record.length);
    mix(&o->hash, &reject->offset, sizeof reject->offset);
    mix(&o->hash, &line, sizeof line);
}

/* The end of the first line that ends at or behind `at`. */
static inline size_t line_end(sl_text text, size_t at) {
    const char *end = at < text.length ? memchr(text.bytes + at, '\n', text.length - at) : NULL;
    return end ? (size_t)(end - text.bytes) + 1 : text.length;
}

/* Cuts behind `first` bytes, and then, where `every`, behind each line. */
static inline uint64_t parse_cut(const sl_format *format, const sl_plan *plan,
                                 const sl_dialect *dialect, sl_text text, size_t first, bool every,
                                 bool exact) {
    outcome o = {.hash = 14695981039346656037u, .exact = exact};
    sl_sink sink = {
        .documents_limit = exact ? 1 : 3, .full = take, .reject = refuse, .context = &o};
    sl_parse_counts counts = {0};
    take(&sink, 0);
    for (size_t at = 0, end = first; at < text.length; at = end) {
        if (at > 0)
            end = every ? line_end(text, at) : text.length;
        char *copy = malloc(end - at + SL_SLACK);
        require(copy != NULL, "there is memory");
        memcpy(copy, text.bytes + at, end - at);
        memset(copy + (end - at), every ? '"' : '9', SL_SLACK); /* what is there must not matter */
        sl_block block = {{copy, end - at}, at, sl_document_id(1, 0)};
        o.lines_before = counts.lines;
        require(format->parse(plan, dialect, &block, &sink, &counts) == !o.misread,
                "only a line that would be misread stops the parser");
        free(copy);
        if (o.misread)
            break;
    }
    take(&sink, 0);
    free(o.batch);
    require(counts.records == counts.documents + counts.rejects, "records add up");
    require(counts.rejects == o.rejects, "rejects are counted");
    require(counts.lines >= counts.records + counts.headers + counts.blank_lines, "lines add up");
    mix(&o.hash, &o.documents_hash, sizeof o.documents_hash);
    mix(&o.hash, &counts, sizeof counts);
    return o.hash;
}

/* Asks the format whether the text is its own, and if so parses it in every way. What came of it,
 * as a number. */
static inline uint64_t check_ways(const sl_format *format, const sl_plan *plan, const char *name,
                                  sl_text text, bool whole) {
    sl_dialect *dialect = NULL;
    sl_error error = {0};
    uint64_t one = 0;
    char *head = malloc(text.length + 1); /* no slack here */
    require(head != NULL, "there is memory");
    memcpy(head, text.bytes, text.length);
    if (format->sniff(plan, name, (sl_text){head, text.length}, whole, &dialect, &error)) {
        char described[200];
        format->describe(dialect, described, sizeof described);
        require(strlen(format->record_kind(dialect)) > 0, "records are of a kind");
        sl_text header = format->header(dialect);
        require(header.length <= text.length, "a header is part of the text");
        one = parse_cut(format, plan, dialect, text, text.length, false, false);
        bool is_long = text.length > LONG_BYTES;
        require(is_long ||
                    parse_cut(format, plan, dialect, text, line_end(text, 0), true, true) == one,
                "a block for each line makes no difference");
        size_t lines = 1, cuts = is_long ? LONG_CUTS_MAX : CUTS_MAX;
        for (size_t at = line_end(text, 0); at < text.length; at = line_end(text, at))
            lines++;
        for (size_t at = 0, line = 0; at < text.length; line++) {
            at = line_end(text, at);
            if (lines <= cuts || line % (lines / cuts + 1) == lines / cuts / 2)
                require(parse_cut(format, plan, dialect, text, at, false, line % 2) == one,
                        "where a block is cut makes no difference");
        }
    } else {
        require(error.code == SL_EXIT_SOURCE && error.message[0], "a refusal has a reason");
    }
    free(head);
    format->dialect_destroy(dialect);
    return one;
}

/* A format's plan for each instruction set of this processor, the best first. */
#define SETS_MAX 8
typedef struct plans {
    sl_plan *of[SETS_MAX];
} plans;

static inline void choose_instructions(const char *name) {
    require(setenv("SHARDLOAD_SIMD", name, 1) == 0, "there is memory");
}

/* Number `index` of the instruction sets that this processor has; NULL when there are no more. */
static inline const char *instructions(size_t index) {
    for (size_t i = 0; sl_simds[i]; i++) {
        if (sl_simd_supported(sl_simds[i]) && index-- == 0)
            return sl_simd_name(sl_simds[i]);
    }
    return NULL;
}

static inline bool make_plans(const sl_format *format, const sl_format_options *options,
                              plans *made, sl_error *error) {
    bool ok = true;
    for (size_t i = 0; i < SETS_MAX && instructions(i); i++) {
        choose_instructions(instructions(i));
        bool made_this = format->plan_create(options, &made->of[i], error);
        require(i == 0 || made_this == ok, "all make sense or none");
        ok = made_this;
    }
    choose_instructions("");
    return ok;
}

static inline void destroy_plans(const sl_format *format, plans *made) {
    for (size_t i = 0; i < SETS_MAX; i++)
        format->plan_destroy(made->of[i]);
}

/* The plans by these options, of which there are few: compiling one takes longer than parsing. They
 * are made when they are first wanted. */
static inline const plans *plans_of(const sl_format *format, const sl_format_options *options,
                                    plans *made) {
    sl_error error = {0};
    require(made->of[0] || make_plans(format, options, made, &error), "the options make sense");
    return made;
}

static inline void check_text(const sl_format *format, const plans *made, const char *name,
                              sl_text text, bool whole) {
    uint64_t best = 0;
    for (size_t i = 0; i < SETS_MAX && made->of[i]; i++) {
        choose_instructions(instructions(i));
        uint64_t outcome = check_ways(format, made->of[i], name, text, whole);
        require(i == 0 || outcome == best, "all instructions give the same");
        best = outcome;
    }
    choose_instructions("");
}

#endif
