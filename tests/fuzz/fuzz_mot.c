/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the delimited engine through the formats mot and delimited: whatever the bytes, nothing is
 * read or written out of bounds, every document is sound BSON in UTF-8, the counts add up, and how
 * the text is cut into blocks makes no difference. The first byte chooses options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>

#include <shardload/document_id.h>
#include <shardload/format.h>

#define ROOM 65536u

static const char schema[] = "name: fuzz\n"
                             "columns:\n"
                             "  - {name: i, type: int, minimum: -9}\n"
                             "  - {name: d, type: double}\n"
                             "  - {name: t, type: datetime, missing: [x]}\n"
                             "  - {name: c, type: code, missing: [\"0\"]}\n"
                             "  - {name: f, type: flag, \"yes\": Y, \"no\": N}\n"
                             "  - {name: s, spill: true, missing: [n/a]}\n";

typedef struct outcome {
    uint64_t hash; /* of all documents and rejects, in order */
    uint64_t rejects;
    uint8_t *start;
} outcome;

static void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

static void mix(outcome *o, const void *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        o->hash = (o->hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
}

static bool take(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    size_t documents = 0;
    for (const uint8_t *p = o->start; p < sink->cursor; documents++) {
        int32_t length;
        memcpy(&length, p, sizeof length);
        bson_t document;
        require(length > 0 && p + length <= sink->cursor, "documents fill the batch");
        require(bson_init_static(&document, p, (size_t)length), "a document can be read");
        require(bson_validate(&document, BSON_VALIDATE_UTF8, NULL), "a document is valid");
        mix(o, p, (size_t)length);
        p += length;
    }
    require(documents == sink->documents, "documents are counted");
    sink->cursor = o->start;
    sink->documents = 0;
    return need <= ROOM;
}

static void refuse(sl_sink *sink, const sl_reject *reject) {
    outcome *o = sink->context;
    o->rejects++;
    require(reject->reason[0] != '\0', "a reject has a reason");
    require(memchr(reject->reason, '\0', sizeof reject->reason) != NULL, "a reason ends");
    mix(o, reject->reason, strlen(reject->reason));
    mix(o, reject->record.bytes, reject->record.length);
    mix(o, &reject->offset, sizeof reject->offset);
}

/* Blocks are cut behind the line end that follows each `step` bytes. */
static outcome parse(const sl_format *format, const sl_plan *plan, const sl_dialect *dialect,
                     const uint8_t *data, size_t size, size_t step) {
    uint8_t *batch = malloc(ROOM + SL_SLACK);
    require(batch != NULL, "there is memory");
    outcome o = {.hash = 14695981039346656037u, .start = batch};
    sl_sink sink = {.cursor = batch,
                    .limit = batch + ROOM,
                    .documents_limit = 3,
                    .full = take,
                    .reject = refuse,
                    .context = &o};
    sl_parse_counts counts = {0};
    bool go_on = true;
    for (size_t at = 0; at < size && go_on;) {
        size_t end = size;
        if (step < size - at) {
            const uint8_t *line = memchr(data + at + step, '\n', size - at - step);
            end = line ? (size_t)(line - data) + 1 : size;
        }
        char *copy = malloc(end - at + SL_SLACK);
        require(copy != NULL, "there is memory");
        memcpy(copy, data + at, end - at);
        memset(copy + (end - at), step & 1 ? '\n' : '"', SL_SLACK);
        sl_block block = {{copy, end - at}, at, sl_document_id(1, 0)};
        go_on = format->parse(plan, dialect, &block, &sink, &counts);
        free(copy);
        at = end;
    }
    take(&sink, 0);
    free(batch);
    require(counts.records == counts.documents + counts.rejects, "records add up");
    require(counts.rejects == o.rejects, "rejects are counted");
    require(!go_on || counts.lines >= counts.records + counts.headers + counts.blank_lines,
            "lines add up");
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > ROOM / 4)
        return 0;
    uint8_t choice = *data++;
    size--;
    sl_format_options options = {.long_names = choice & 1,
                                 .latin1 = choice & 2,
                                 .trim = choice & 4,
                                 .schema_text = (choice & 24) == 24 ? schema : NULL};
    const sl_format *format = sl_format_named(choice & 8 ? "delimited" : "mot");
    static sl_plan *plans[32]; /* by options; compiling them takes longer than parsing */
    sl_plan **plan = &plans[choice & 31];
    sl_dialect *dialect = NULL;
    sl_error error = {0};
    require(*plan || format->plan_create(&options, plan, &error), "the options make sense");
    char *head = malloc(size + 1); /* no slack here */
    require(head != NULL, "there is memory");
    memcpy(head, data, size);
    if (format->sniff(*plan, "fuzz", (sl_text){head, size}, true, &dialect, &error)) {
        char text[200];
        format->describe(dialect, text, sizeof text);
        outcome whole = parse(format, *plan, dialect, data, size, SIZE_MAX / 2);
        outcome cut = parse(format, *plan, dialect, data, size, choice);
        require(whole.hash == cut.hash, "blocks make no difference");
    } else {
        require(error.code == SL_EXIT_SOURCE && error.message[0], "a refusal has a reason");
    }
    free(head);
    format->dialect_destroy(dialect);
    return 0;
}
