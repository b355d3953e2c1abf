/* SPDX-License-Identifier: Apache-2.0 */
/* The format `bson`: documents with and without _id, damage at any position, and the division of a
 * text into blocks, which depends on nothing but the text. */
#include "parse_text.h"

#include "bson/bson_writer.h"

typedef struct dump {
    uint8_t *bytes; /* followed by SL_SLACK bytes */
    size_t length;
    size_t starts[64]; /* of the documents */
    size_t count;
} dump;

static void add(dump *d, const bson_t *document) {
    uint8_t *before = d->bytes;
    d->bytes = unit_keep(malloc(d->length + document->len + SL_SLACK));
    if (before)
        memcpy(d->bytes, before, d->length);
    memcpy(d->bytes + d->length, bson_get_data(document), document->len);
    memset(d->bytes + d->length + document->len, 0xA5, SL_SLACK);
    d->starts[d->count++] = d->length;
    d->length += document->len;
}

/* Documents with _ids in several places, embedded documents, and arrays of documents. */
static dump make_dump(unsigned count) {
    dump d = {0};
    for (unsigned i = 0; i < count; i++) {
        char json[200];
        snprintf(json, sizeof json,
                 "{\"a\": %u, \"_id\": %u, \"text\": \"some text\", \"in\": {\"x\": 1}, "
                 "\"many\": [{\"y\": 2}, {}], \"last\": {\"z\": 3}}",
                 i, i);
        add(&d, unit_json(json));
    }
    return d;
}

static parsed parse_dump(const dump *d) {
    sl_text text = {(const char *)d->bytes, d->length};
    return parse_in_blocks("bson", &(sl_format_options){0}, text, 0, 0);
}

TEST(an_id_becomes_the_first_field) {
    dump d = {0};
    static const char *const documents[] = {"{\"_id\": \"x\", \"a\": 1}",
                                            "{\"a\": 1, \"_id\": {\"b\": 2}, \"c\": 3}",
                                            "{\"a\": 1}", "{}"};
    static const char *const expected[] = {"{ \"_id\" : \"x\", \"a\" : 1 }",
                                           "{ \"_id\" : { \"b\" : 2 }, \"a\" : 1, \"c\" : 3 }"};
    for (size_t i = 0; i < 4; i++)
        add(&d, unit_json(documents[i]));
    parsed p = parse_dump(&d);
    assert_int_equal(p.counts.documents, 4);
    for (size_t i = 0; i < 2; i++) {
        bson_t view;
        document_at(&p, i, &view);
        assert_string_equal(unit_json_of(&view), expected[i]);
    }
    for (size_t i = 2; i < 4; i++) /* the position's _id */
        assert_int_equal(id_at(&p, i), sl_document_id(1, 0) + (int64_t)d.starts[i]);
}

TEST(a_document_without_its_key_is_rejected_and_not_stored) {
    dump d = {0};
    static const char *const documents[] = {"{\"a\": 1}", "{\"b\": 2}", "{\"a\": 3}"};
    for (size_t i = 0; i < 3; i++)
        add(&d, unit_json(documents[i]));
    parsed p = parse_in_blocks("bson", &(sl_format_options){.id_fields = "a"},
                               (sl_text){(const char *)d.bytes, d.length}, 0, 0);
    assert_one_reject(&p, "a", "the field is missing, and --id-field needs it");
    assert_int_equal(p.rejects[0].offset, d.starts[1]);
    assert_int_equal(p.documents, 2);
}

TEST(an_id_that_no_server_stores_is_rejected) {
    dump d = {0};
    bson_t *bad[] = {BCON_NEW("_id", "[", BCON_INT32(1), "]"), BCON_NEW("_id", BCON_REGEX("a", "")),
                     BCON_NEW("_id", BCON_UNDEFINED),
                     BCON_NEW("_id", BCON_INT32(1), "_id", BCON_INT32(2)),
                     BCON_NEW("t", BCON_TIMESTAMP(0, 0))};
    for (size_t i = 0; i < 5; i++) {
        add(&d, unit_keep_bson(bad[i]));
    }
    parsed p = parse_dump(&d);
    assert_int_equal(p.counts.rejects, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(p.rejects[i].offset, d.starts[i]);
        assert_int_equal(p.rejects[i].line, SL_NO_LINE);
        assert_string_equal(p.rejects[i].column, i == 4 ? "t" : "_id");
    }
}

/* The ends of the blocks of about `least` bytes, for a text that becomes known in pieces of `step`
 * bytes; each block is parsed. */
static parsed parse_divided(const dump *d, size_t least, size_t step, uint64_t *ends) {
    parsed p = {.format = &sl_format_bson};
    sl_split split = {0};
    bool lines;
    const sl_splitter *splitter = sl_format_bson.splitter(NULL, &lines);
    size_t known = 0, begin = 0;
    *ends = 0;
    while (begin < d->length) {
        uint64_t before = split.state;
        size_t length = 0;
        while (length == 0) {
            bool ended = known == d->length;
            char *copy = malloc(known - begin + SL_SLACK);
            memcpy(copy, d->bytes + begin, known - begin);
            memset(copy + known - begin, 0x11, SL_SLACK);
            if (known > begin)
                length = splitter->find_end(&split, (sl_text){copy, known - begin}, least, ended);
            free(copy);
            if (length == 0)
                assert_false(ended);
            if (length == 0)
                known = known + step < d->length ? known + step : d->length;
        }
        assert_true(length <= d->length - begin);
        assert_true(length >= least || begin + length == d->length);
        char *copy = malloc(length + SL_SLACK);
        uint8_t *batch = malloc(BATCH_BYTES + SL_SLACK);
        memcpy(copy, d->bytes + begin, length);
        memset(copy + length, 0x22, SL_SLACK);
        uint64_t offsets[7];
        sl_sink sink = {.cursor = batch,
                        .limit = batch + BATCH_BYTES,
                        .documents_limit = 7,
                        .full = keep_documents,
                        .reject = keep_reject,
                        .offsets = offsets,
                        .context = &p};
        sl_block block = {.text = {copy, length},
                          .offset = begin,
                          .id_base = sl_document_id(1, 0),
                          .split_state = before};
        assert_true(sl_format_bson.parse(NULL, NULL, &block, &sink, &p.counts));
        keep_documents(&sink, 0);
        free(batch);
        free(copy);
        begin += length;
        split.at = 0;
        memset(split.inside, 0, sizeof split.inside);
        *ends = *ends * 31 + begin;
    }
    assert_int_equal(p.counts.records, p.counts.documents + p.counts.rejects);
    unit_keep(p.bytes);
    return p;
}

/* Divides and parses a text in many ways. All bytes must be in documents or in rejects, the
 * documents the same for any block size, and the blocks the same for any way of reading. */
static parsed parse_any_way(const dump *d) {
    uint64_t ends, others;
    parsed whole = parse_divided(d, SIZE_MAX / 2, d->length, &ends);
    static const size_t sizes[] = {1, 100, 1000};
    for (size_t i = 0; i < 3; i++) {
        parsed p = parse_divided(d, sizes[i], d->length, &ends);
        assert_int_equal(p.counts.documents, whole.counts.documents);
        assert_int_equal(p.length, whole.length);
        assert_memory_equal(p.bytes, whole.bytes, p.length);
        for (size_t step = 1; step < 300; step = step * 3 + 1) {
            p = parse_divided(d, sizes[i], step, &others);
            assert_int_equal(others, ends);
            assert_int_equal(p.counts.documents, whole.counts.documents);
            assert_int_equal(p.counts.rejects > 0, whole.counts.rejects > 0);
        }
    }
    return whole;
}

TEST(blocks_depend_on_the_text_only) {
    dump d = make_dump(20);
    parsed p = parse_any_way(&d);
    assert_int_equal(p.counts.documents, 20);
    assert_int_equal(p.counts.rejects, 0);
}

/* Damages byte `at` and checks that only the documents around it are rejected. */
static void damage(const dump *whole, size_t at, uint8_t value) {
    dump d = *whole;
    if (d.bytes[at] == value)
        return;
    d.bytes = unit_keep(malloc(d.length + SL_SLACK));
    memcpy(d.bytes, whole->bytes, d.length + SL_SLACK);
    d.bytes[at] = value;
    parsed p = parse_any_way(&d);
    assert_true(p.counts.documents >= d.count - 1);
    if (p.counts.documents < d.count)
        assert_true(p.counts.rejects > 0);
    /* Every document but the damaged one is there, and no embedded one. */
    size_t from = 0;
    for (size_t i = 0; i < d.count; i++) {
        size_t begin = d.starts[i], end = i + 1 < d.count ? d.starts[i + 1] : d.length;
        bool damaged = at >= begin && at < end;
        if (damaged && p.counts.documents < d.count)
            continue;
        if (damaged) /* still valid: a changed value, or a changed key, even that of the _id */
            end = begin + sl_bson_length(p.bytes + from);
        assert_int_equal(sl_bson_length(p.bytes + from), end - begin);
        from += end - begin;
    }
    assert_int_equal(from, p.length);
}

TEST(one_damaged_byte_costs_one_document) {
    dump d = make_dump(5);
    static const uint8_t values[] = {0x00, 0x03, 0x40, 0xFF};
    for (size_t at = d.starts[1]; at < d.starts[3]; at++) {
        for (size_t i = 0; i < sizeof values; i++)
            damage(&d, at, values[i]);
    }
}

/* Replaces the bytes from `from` to `to` by `count` bytes of one value. */
static dump replaced(const dump *whole, size_t from, size_t to, size_t count, int value) {
    dump d = {.length = whole->length - (to - from) + count};
    d.bytes = unit_keep(malloc(d.length + SL_SLACK));
    memcpy(d.bytes, whole->bytes, from);
    memset(d.bytes + from, value, count);
    memcpy(d.bytes + from + count, whole->bytes + to, whole->length - to + SL_SLACK);
    return d;
}

TEST(missing_and_inserted_bytes_cost_few_documents) {
    dump whole = make_dump(6);
    size_t begin = whole.starts[2], middle = begin + 30, next = whole.starts[3];
    const struct {
        size_t from, to, count;
        int value;
        unsigned documents;
    } cases[] = {
        {middle, middle + 1, 0, 0, 5},
        {middle, middle, 1, 'x', 5},
        {begin, begin, 1, 0, 6},
        {begin, begin, 5000, 0, 6},
        {begin, next, 0, 0, 5},
        {begin + 3, next + 3, 0, 0, 5},
        {0, 0, 3, 0xFF, 6},
        {whole.length, whole.length, 1, 0, 6},
        {middle, next, 0, 0, 5},
        {whole.length, whole.length, 300, 0, 6},
        {0, middle, 0, 0, 3},
        {whole.length - 1, whole.length, 0, 0, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dump d = replaced(&whole, cases[i].from, cases[i].to, cases[i].count, cases[i].value);
        parsed p = parse_any_way(&d);
        if (p.counts.documents != cases[i].documents)
            print_error("case %zu: %u documents\n", i, (unsigned)p.counts.documents);
        assert_int_equal(p.counts.documents, cases[i].documents);
        if (i != 4 && i != 5) /* removing a document leaves no trace */
            assert_true(p.counts.rejects > 0);
    }
}

TEST(a_truncated_end_is_a_reject) {
    dump d = make_dump(3);
    size_t full = d.length;
    for (d.length = d.starts[2] + 1; d.length < full; d.length++) {
        parsed p = parse_any_way(&d);
        assert_int_equal(p.counts.documents, 2);
        assert_int_equal(p.counts.rejects, 1);
        assert_int_equal(p.rejects[0].offset, d.starts[2]);
        assert_non_null(strstr(p.rejects[0].reason, "truncated"));
    }
}

TEST(a_long_damage_is_rejected_in_pieces) {
    dump whole = make_dump(2);
    dump d = replaced(&whole, whole.starts[1], whole.starts[1], (size_t)3 << 20, 0);
    uint64_t ends;
    parsed p = parse_divided(&d, 1, (size_t)1 << 20, &ends);
    assert_int_equal(p.counts.documents, 2);
    assert_int_equal(p.counts.rejects, 3);
}

TEST(other_text_is_not_taken_for_bson) {
    source_name = "text";
    const char *texts[] = {"", "a,b\n1,2\n", "{\"a\": 1}\n", "\x05\x00"};
    for (size_t i = 0; i < 4; i++) {
        parsed p = parse_with("bson", &(sl_format_options){0}, texts[i]);
        assert_null(p.format);
    }
    source_name = "damaged.bson.gz";
    parsed p = parse_with("bson", &(sl_format_options){0}, "nonsense");
    assert_non_null(p.format);
    assert_int_equal(p.counts.rejects, 1);
    source_name = "text";
}
