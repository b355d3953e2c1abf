/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the format `bson`. The first byte selects the size of blocks, the second the way the text
 * becomes known; the remaining bytes are the text. The checker must agree with a recursive
 * validation of the same bytes, and libbson must accept what it accepts. Blocks must depend on the
 * text only. */
#include "../unit/bson_reference.h"
#include "bson/bson_check.h"
#include "format/format.h"
#include "util/document_id.h"

#include "check.h"

#define INPUT_MAX ((size_t)1 << 16)

static void check_checker(const uint8_t *bytes, size_t size, int after) {
    sl_bson_facts facts;
    uint8_t *copy = copy_of(bytes, size, SL_SLACK, after);
    sl_bson_verdict verdict = sl_bson_check(copy, size, &facts);
    bson_t view;
    static sl_bson_headers headers; /* of all inputs so far */
    sl_bson_facts next;
    if (!headers.none.next)
        sl_bson_headers_init(&headers, SL_BSON_HEADERS, 0);
    for (int i = 0; i < 2; i++)
        require(sl_bson_check_next(&headers, copy, size, &next) == verdict &&
                    next.length == facts.length && next.id_at == facts.id_at &&
                    next.id_end == facts.id_end && next.id_twice == facts.id_twice &&
                    next.empty_timestamp == facts.empty_timestamp &&
                    next.old_binary == facts.old_binary && next.wrong_at == facts.wrong_at &&
                    next.why == facts.why,
                "headers of other documents change nothing");
    require(verdict != SL_BSON_INVALID || facts.why, "an invalid document has a reason");
    require((verdict == SL_BSON_VALID) == reference_accepts(bytes, size),
            "the checker agrees with the recursive validation");
    require(verdict != SL_BSON_MORE || size < 4 || facts.length > size,
            "only a longer document needs more bytes");
    if (verdict == SL_BSON_VALID && !facts.not_utf8 && !facts.old_binary)
        require(bson_init_static(&view, copy, facts.length) &&
                    bson_validate(&view, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL),
                "libbson accepts a valid document");
    free(copy);
}

typedef struct outcome {
    uint64_t ends; /* hash of the ends of the blocks */
    uint8_t *batch;
    size_t room;
    uint64_t offsets[1];
} outcome;

static bool take(sl_sink *sink, size_t need) {
    outcome *o = sink->context;
    if (sink->documents > 0) {
        bson_t view;
        bson_iter_t iter;
        size_t length = (size_t)(sink->cursor - o->batch);
        require(reference_accepts(o->batch, length), "a document is valid");
        require(bson_init_static(&view, o->batch, length) && bson_iter_init(&iter, &view) &&
                    bson_iter_next(&iter) && strcmp(bson_iter_key(&iter), "_id") == 0,
                "the first field is _id");
    }
    if (need > o->room || !o->batch) {
        free(o->batch);
        o->batch = malloc(need + SL_SLACK);
        o->room = need;
    }
    sink->cursor = o->batch;
    sink->limit = o->batch + o->room;
    sink->documents = 0;
    return true;
}

static void refuse(sl_sink *sink, const sl_reject *reject) {
    (void)sink;
    require(reject->reason[0] && reject->line == SL_NO_LINE, "a reject has a reason, and no line");
    CHECK_TEXT(reject->reason);
    require(reject->record.length > 0, "a reject has bytes");
}

/* Divides the text, which becomes known in steps, and parses the blocks. */
static uint64_t parse(const uint8_t *bytes, size_t size, size_t least, size_t step) {
    outcome o = {.ends = 1};
    sl_split split = {0};
    bool lines;
    const sl_splitter *splitter = sl_format_bson.splitter(NULL, &lines);
    sl_parse_counts counts = {0};
    sl_sink sink = {
        .documents_limit = 1, .full = take, .reject = refuse, .offsets = o.offsets, .context = &o};
    for (size_t begin = 0, known = 0; begin < size;) {
        uint64_t state = split.state;
        size_t length = 0;
        while (length == 0) {
            if (known > begin) {
                char *copy = copy_of(bytes + begin, known - begin, SL_SLACK, 0x10);
                length = splitter->find_end(&split, (sl_text){copy, known - begin}, least,
                                            known == size);
                free(copy);
                require(length > 0 || known < size, "the end of the text is an end");
            }
            if (length == 0)
                known = size - known > step ? known + step : size;
        }
        require(length <= known - begin && (length >= least || begin + length == size),
                "a block ends at or behind its least size");
        char *copy = copy_of(bytes + begin, length, SL_SLACK, 0x02);
        sl_block block = {.text = {copy, length},
                          .offset = begin,
                          .id_base = sl_document_id(1, 0),
                          .split_state = state};
        require(sl_format_bson.parse(NULL, NULL, &block, &sink, &counts), "parsing goes on");
        free(copy);
        begin += length;
        o.ends = (o.ends ^ begin) * 1099511628211u;
        split.at = 0;
        memset(split.inside, 0, sizeof split.inside);
    }
    take(&sink, 0);
    free(o.batch);
    require(counts.records == counts.documents + counts.rejects, "records = documents + rejects");
    require(size == 0 || counts.records > 0, "no text is lost");
    return o.ends;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > INPUT_MAX)
        return 0;
    size_t least = 1 + (size_t)data[0] * 5, step = 1 + (size_t)data[1];
    const uint8_t *bytes = data + 2;
    size -= 2;
    check_checker(bytes, size, 0);
    check_checker(bytes, size, 0xFF);
    require(parse(bytes, size, least, step) == parse(bytes, size, least, INPUT_MAX),
            "blocks depend on the text only");
    return 0;
}
