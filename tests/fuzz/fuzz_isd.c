/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the formats isd and isd-lite: whatever the bytes, nothing is read or written out of
 * bounds, a document never outgrows the room that was asked for it, each is sound BSON in UTF-8
 * without a key twice, the counts add up, and how the text is cut into blocks makes no difference.
 *
 * The first byte chooses format and options. A line that begins with ~ becomes a record with what
 * follows as its sections and with the right length, since chance would hardly make one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>

#include <shardload/document_id.h>
#include <shardload/isd.h>

#define INPUT_MAX 20000u
#define FIXED_PART                                                                                 \
    "01001099999198801311200"                                                                      \
    "4+70933-008667FM-12+0009ENJA V0203181N00611004501CN0100001V5-00671-"                          \
    "00801101231"

static const char names[] = "names: {liquidPrecipitation: r, wind.speed.rate: "
                            "a name of forty-six bytes which is the longest}";

typedef struct outcome {
    uint64_t hash; /* of all documents and rejects, in order */
    uint64_t rejects;
    uint8_t *batch; /* room for one document: exactly as much as was asked for */
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

static void require_single_keys(const bson_t *document) {
    bson_iter_t iter, other;
    unsigned seen = 0;
    require(bson_iter_init(&iter, document), "a document can be walked");
    while (bson_iter_next(&iter)) {
        require(bson_iter_init_find(&other, document, bson_iter_key(&iter)), "a key is found");
        require(bson_iter_offset(&other) == bson_iter_offset(&iter), "no key is there twice");
        require(++seen <= 200, "there are not more keys than groups");
    }
}

static bool take(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    if (sink->documents > 0) {
        int32_t length;
        memcpy(&length, o->batch, sizeof length);
        bson_t document;
        require(sink->documents == 1, "one document at a time");
        require(sink->cursor <= sink->limit, "a document keeps to its room");
        require(o->batch + length == sink->cursor, "a document fills what it says");
        require(bson_init_static(&document, o->batch, (size_t)length), "it can be read");
        require(bson_validate(&document, BSON_VALIDATE_UTF8, NULL), "it is valid");
        require_single_keys(&document);
        mix(o, o->batch, (size_t)length);
    }
    free(o->batch);
    o->batch = malloc(need + SL_SLACK);
    require(o->batch != NULL, "there is memory");
    sink->cursor = o->batch;
    sink->limit = o->batch + need;
    sink->documents = 0;
    return true;
}

static void refuse(sl_sink *sink, const sl_reject *reject) {
    outcome *o = sink->context;
    o->rejects++;
    require(reject->reason[0] != '\0', "a reject has a reason");
    mix(o, reject->reason, strlen(reject->reason));
    mix(o, reject->record.bytes, reject->record.length);
    mix(o, &reject->offset, sizeof reject->offset);
}

/* Blocks are cut behind the line end that follows each `step` bytes. */
static outcome parse(const sl_format *format, const sl_plan *plan, const sl_dialect *dialect,
                     sl_text text, size_t step) {
    outcome o = {.hash = 14695981039346656037u};
    sl_sink sink = {.documents_limit = 1, .full = take, .reject = refuse, .context = &o};
    sl_parse_counts counts = {0};
    take(&sink, 0);
    for (size_t at = 0; at < text.length;) {
        size_t end = text.length;
        if (step < text.length - at) {
            const char *line = memchr(text.bytes + at + step, '\n', text.length - at - step);
            end = line ? (size_t)(line - text.bytes) + 1 : text.length;
        }
        char *copy = malloc(end - at + SL_SLACK);
        require(copy != NULL, "there is memory");
        memcpy(copy, text.bytes + at, end - at);
        memset(copy + (end - at), step & 1 ? '9' : ' ', SL_SLACK);
        sl_block block = {{copy, end - at}, at, sl_document_id(1, 0)};
        require(format->parse(plan, dialect, &block, &sink, &counts), "nobody said stop");
        free(copy);
        at = end;
    }
    take(&sink, 0);
    free(o.batch);
    require(counts.records == counts.documents + counts.rejects, "records add up");
    require(counts.rejects == o.rejects, "rejects are counted");
    require(counts.lines == counts.records + counts.blank_lines, "lines add up");
    return o;
}

/* The text with ~lines made records; the caller frees it. */
static sl_text spell_out(const uint8_t *data, size_t size) {
    size_t room = size + 1, used = 0;
    for (size_t i = 0; i < size; i++)
        room += data[i] == '~' ? SL_ISD_FIXED_BYTES : 0;
    char *text = malloc(room);
    require(text != NULL, "there is memory");
    for (size_t at = 0; at < size;) {
        const uint8_t *line = memchr(data + at, '\n', size - at);
        size_t length = line ? (size_t)(line - data) - at : size - at;
        if (data[at] == '~' && length - 1 <= 9999) {
            at++;
            length--;
            used += (size_t)sprintf(text + used, "%04u" FIXED_PART, (unsigned)length);
        }
        length += line != NULL;
        memcpy(text + used, data + at, length);
        used += length;
        at += length;
    }
    require(used <= room, "the text has room");
    return (sl_text){text, used};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > INPUT_MAX)
        return 0;
    uint8_t choice = *data;
    sl_format_options options = {.keep_missing = choice & 1,
                                 .schema_text = choice & 2 ? names : NULL};
    const sl_format *format = choice & 4 ? &sl_format_isd_lite : &sl_format_isd;
    static sl_plan *plans[4]; /* by options; compiling them takes longer than parsing */
    sl_plan **plan = &plans[choice & 3];
    sl_dialect *dialect = NULL;
    sl_error error = {0};
    require(*plan || sl_format_isd.plan_create(&options, plan, &error), "the options make sense");
    sl_text text = spell_out(data + 1, size - 1);
    if (format->sniff(*plan, "029070-99999-1901", text, choice & 8, &dialect, &error)) {
        char described[200];
        format->describe(dialect, described, sizeof described);
        outcome whole = parse(format, *plan, dialect, text, SIZE_MAX / 2);
        outcome cut = parse(format, *plan, dialect, text, choice);
        require(whole.hash == cut.hash, "blocks make no difference");
    } else {
        require(error.code == SL_EXIT_SOURCE && error.message[0], "a refusal has a reason");
    }
    free((char *)text.bytes);
    format->dialect_destroy(dialect);
    return 0;
}
