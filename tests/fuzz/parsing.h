/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the fuzz targets of the formats. A text is parsed as one block, as a block per line,
 * and as two blocks, split after each of up to CUTS_MAX lines; into batches of BATCH_BYTES, and
 * into batches that have exactly the room that the parser requests for a document. For any text:
 * - nothing is accessed out of bounds (blocks and batches are separate allocations, which the
 *   address sanitizer watches);
 * - every document is valid BSON in UTF-8 without duplicate keys;
 * - records = documents + rejects, and the line counts are consistent;
 * - every split, and every instruction set of this processor, gives the same documents and the same
 *   rejects with the same line numbers. */
#ifndef TESTS_FUZZ_PARSING_H
#define TESTS_FUZZ_PARSING_H

#include <bson/bson.h>

#include "format/format.h"
#include "format/notation.h"
#include "format/simd.h"
#include "util/document_id.h"

#include "check.h"

#define BATCH_BYTES ((size_t)16 << 10)
#define CUTS_MAX 12u                  /* positions at which a text is split into two blocks */
#define LONG_BYTES ((size_t)64 << 10) /* longer texts are split at LONG_CUTS_MAX positions */
#define LONG_CUTS_MAX 2u
#define INPUT_MAX ((size_t)6 << 20)
#define KEYS_MAX 200u /* keys per document that are checked for duplicates */

/* If a target sets it: called after each successful sniff, to change the dialect. */
static void (*after_sniff)(const sl_plan *plan, sl_dialect *dialect, sl_text text);

typedef struct outcome {
    uint64_t hash; /* of all documents and rejects */
    uint64_t documents_hash;
    uint64_t rejects;
    uint64_t lines_before; /* lines before the current block */
    bool misread;          /* the last reject ended the parsing */
    bool exact;            /* one document per batch, whose room is exactly what was requested */
    uint8_t *batch;
} outcome;

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
    require(bson_iter_init(&iter, &document), "a document can be iterated");
    while (bson_iter_next(&iter) && ++seen <= KEYS_MAX) {
        require(bson_iter_init_find(&other, &document, bson_iter_key(&iter)), "a key is found");
        require(bson_iter_offset(&other) == bson_iter_offset(&iter), "keys are unique");
    }
}

static inline bool take(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    size_t documents = 0;
    require(sink->cursor <= sink->limit, "documents fit into their batch");
    for (const uint8_t *p = o->batch; p < sink->cursor; documents++) {
        int32_t length;
        memcpy(&length, p, sizeof length);
        require(length > 0 && length <= sink->cursor - p, "documents fill the batch");
        check_document(p, (size_t)length);
        mix(&o->documents_hash, p, (size_t)length);
        p += length;
    }
    require(documents == sink->documents, "documents are counted");
    require(!o->exact || documents <= 1, "a batch with exact room has one document");
    free(o->batch);
    size_t room = o->exact || need > BATCH_BYTES ? need : BATCH_BYTES;
    o->batch = malloc(room + SL_SLACK);
    require(o->batch != NULL, "allocation succeeds");
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
    CHECK_TEXT(reject->reason);
    static const char inferred[] = "(inspect --write-schema)"; /* such a reason ends with it */
    size_t length = strlen(reject->reason), end = sizeof inferred - 1;
    require(length < end || strcmp(reject->reason + length - end, inferred) != 0,
            "sampled values fit the inferred types");
    mix(&o->hash, reject->reason, strlen(reject->reason));
    mix(&o->hash, reject->record.bytes, reject->record.length);
    mix(&o->hash, &reject->offset, sizeof reject->offset);
    mix(&o->hash, &line, sizeof line);
}

/* The position after the first line break at or after `at`, or the text's length. */
static inline size_t line_end(sl_text text, size_t at) {
    const char *end = at < text.length ? memchr(text.bytes + at, '\n', text.length - at) : NULL;
    return end ? (size_t)(end - text.bytes) + 1 : text.length;
}

/* Do quoted fields of the dialect's texts contain line ends? */
static inline const sl_splitter *quoted_splitter(const sl_format *format,
                                                 const sl_dialect *dialect) {
    bool lines;
    const sl_splitter *splitter = format->splitter ? format->splitter(dialect, &lines) : NULL;
    return splitter && !splitter->divides ? splitter : NULL;
}

/* As line_end, for the first line break that ends a record. `at` is the beginning of a record. */
static inline size_t record_end(const sl_format *format, const sl_dialect *dialect, sl_text text,
                                size_t at) {
    const sl_splitter *splitter = quoted_splitter(format, dialect);
    sl_split split = {.context = dialect};
    sl_text left = {text.bytes + at, text.length - at};
    const char escape = format->line_escape ? format->line_escape(dialect) : 0;
    size_t end = at;
    if (!splitter || at >= text.length) {
        do
            end = line_end(text, end);
        while (escape && end < text.length &&
               sl_is_escaped(text.bytes + at, text.bytes + end - 1, escape));
        return end;
    }
    return at + splitter->find_end(&split, left, 1, true);
}

static bool parsing_ended; /* the last call of parse_blocks ended at a record that is misread */

/* Parses the text as blocks: the first has `first` bytes; the remaining text is one block or, with
 * `every`, a block per line. Returns a hash of the documents, rejects and counts. */
static inline uint64_t parse_blocks(const sl_format *format, const sl_plan *plan,
                                    const sl_dialect *dialect, sl_text text, size_t first,
                                    bool every, bool exact) {
    outcome o = {.hash = 14695981039346656037u, .exact = exact};
    sl_sink sink = {
        .documents_limit = exact ? 1 : 3, .full = take, .reject = refuse, .context = &o};
    sl_parse_counts counts = {0};
    take(&sink, 0);
    for (size_t at = 0, end = first; at < text.length; at = end) {
        if (at > 0)
            end = every ? record_end(format, dialect, text, at) : text.length;
        char *copy = copy_of(text.bytes + at, end - at, SL_SLACK, every ? '"' : '9');
        sl_block block = {.text = {copy, end - at},
                          .offset = at,
                          .id_base = sl_document_id(1, 0),
                          .divided = quoted_splitter(format, dialect) != NULL};
        o.lines_before = counts.lines;
        require(format->parse(plan, dialect, &block, &sink, &counts) == !o.misread,
                "the parser stops only at a line that would be misread");
        free(copy);
        if (o.misread)
            break;
    }
    take(&sink, 0);
    free(o.batch);
    require(counts.records == counts.documents + counts.rejects, "records = documents + rejects");
    require(counts.rejects == o.rejects, "rejects are counted");
    require(format->splitter || /* a line may hold several records */
                counts.lines >= counts.records + counts.headers + counts.blank_lines,
            "lines >= records + headers + blank lines");
    mix(&o.hash, &o.documents_hash, sizeof o.documents_hash);
    mix(&o.hash, &counts, sizeof counts);
    parsing_ended = o.misread;
    return o.hash;
}

/* Parses the text, if the format recognises it, with different block boundaries. Returns the hash
 * of the result; 0 if the format refuses the text. `whole`: the text is the complete source. */
static inline uint64_t check_splits(const sl_format *format, const sl_plan *plan, const char *name,
                                    sl_text text, bool whole) {
    sl_dialect *dialect = NULL;
    sl_error error = {0};
    uint64_t one = 0;
    char *head = copy_of(text.bytes, text.length, 0, 0); /* `sniff` must not need SL_SLACK */
    if (format->sniff(plan, name, (sl_text){head, text.length}, whole, &dialect, &error)) {
        if (after_sniff)
            after_sniff(plan, dialect, text);
        char described[200];
        sl_format_describe(format, dialect, described, sizeof described);
        require(strlen(sl_format_record_kind(format, dialect)) > 0, "records have a kind");
        sl_text header = sl_format_header(format, dialect);
        require(header.length <= text.length, "a header is part of the text");
        one = parse_blocks(format, plan, dialect, text, text.length, false, false);
        bool is_long = text.length > LONG_BYTES;
        require(is_long || parse_blocks(format, plan, dialect, text,
                                        record_end(format, dialect, text, 0), true, true) == one,
                "a block per line gives the same result");
        size_t lines = 1, cuts = is_long ? LONG_CUTS_MAX : CUTS_MAX;
        for (size_t at = record_end(format, dialect, text, 0); at < text.length;
             at = record_end(format, dialect, text, at))
            lines++;
        for (size_t at = 0, line = 0; at < text.length; line++) {
            at = record_end(format, dialect, text, at);
            if (lines <= cuts || line % (lines / cuts + 1) == lines / cuts / 2)
                require(parse_blocks(format, plan, dialect, text, at, false, line % 2) == one,
                        "every block boundary gives the same result");
        }
    } else {
        check_error(&error);
        require(error.code == SL_EXIT_SOURCE, "a refused text is an error of the source");
    }
    free(head);
    sl_format_dialect_destroy(format, dialect);
    return one;
}

/* A format's plan for each instruction set of this processor, the fastest first. */
#define SETS_MAX 8
typedef struct plans {
    sl_plan *of[SETS_MAX];
} plans;

static inline void choose_instructions(const char *name) {
    require(setenv("SHARDLOAD_SIMD", name, 1) == 0, "allocation succeeds");
}

/* The name of instruction set `index` of those that this processor has; NULL past the last. */
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
        bool created = sl_format_plan_create(format, options, &made->of[i], error);
        require(i == 0 || created == ok, "options are valid for all instruction sets or none");
        ok = created;
    }
    choose_instructions("");
    return ok;
}

static inline void destroy_plans(const sl_format *format, plans *made) {
    for (size_t i = 0; i < SETS_MAX; i++)
        sl_format_plan_destroy(format, made->of[i]);
}

/* Creates the plans at the first call and keeps them in `made`, because creating a plan takes
 * longer than parsing an input. */
static inline const plans *plans_of(const sl_format *format, const sl_format_options *options,
                                    plans *made) {
    sl_error error = {0};
    require(made->of[0] || make_plans(format, options, made, &error), "the options are valid");
    return made;
}

static inline void check_text(const sl_format *format, const plans *made, const char *name,
                              sl_text text, bool whole) {
    uint64_t best = 0;
    for (size_t i = 0; i < SETS_MAX && made->of[i]; i++) {
        choose_instructions(instructions(i));
        uint64_t hash = check_splits(format, made->of[i], name, text, whole);
        require(i == 0 || hash == best, "all instruction sets give the same result");
        best = hash;
    }
    choose_instructions("");
}

#endif
