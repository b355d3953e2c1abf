/* SPDX-License-Identifier: Apache-2.0 */
/* Generated records: options, names, and sources without a file, which return each record once.
 * tests/cli/test_ycsb.py compares every byte with an independent generator. */
#include <pthread.h>

#include "bson/bson_writer.h"
#include "format/ycsb.h"
#include "source/source.h"
#include "unit.h"
#include "util/document_id.h"

#define BLOCK_RECORDS (SL_BLOCK_BYTES / SL_GENERATED_BYTES)
#define RECORDS_MAX (SL_SOURCE_BYTES_MAX / SL_GENERATED_BYTES)

static const sl_ycsb_options usual = {.records = 10000,
                                      .seed = 1,
                                      .field_count = 8,
                                      .field_length = 100,
                                      .integer_count = 8,
                                      .skew = 0.99};

static sl_error error;

static void destroy_plan(void *plan) {
    sl_format_plan_destroy(&sl_format_ycsb, plan);
}

/* The plan is destroyed after the test. */
static sl_plan *plan_of(const sl_ycsb_options *options) {
    sl_plan *plan;
    assert_true(sl_format_plan_create(&sl_format_ycsb, &(sl_format_options){.ycsb = *options},
                                      &plan, &error));
    unit_release_later(destroy_plan, plan);
    return plan;
}

/* ---- generating documents into a growing buffer ---- */

typedef struct made {
    uint8_t *bytes;
    size_t length;
    uint32_t documents;
    uint8_t *batch;
    size_t room;
    unsigned stop_after; /* batches; 0: never */
    unsigned batches;
    sl_parse_counts counts;
} made;

static bool keep(sl_sink *sink, size_t need) {
    made *all = sink->context;
    size_t length = (size_t)(sink->cursor - all->batch);
    assert_true(need <= all->room);
    all->bytes = realloc(all->bytes, all->length + length + 1);
    assert_non_null(all->bytes);
    memcpy(all->bytes + all->length, all->batch, length);
    all->length += length;
    all->documents += sink->documents;
    sink->cursor = all->batch;
    sink->documents = 0;
    return ++all->batches != all->stop_after;
}

/* Generates the documents of the `count` records from record `from` on, in a source whose first
 * record is `first`. False if it was stopped. */
static bool make(made *all, const sl_plan *plan, uint64_t first, uint64_t from, uint64_t count,
                 size_t room, uint32_t batch_documents) {
    char name[256];
    sl_dialect *dialect;
    sl_format_ycsb.name_records(plan, first, first + 9, name, sizeof name);
    assert_true(sl_format_ycsb.sniff(plan, name, sl_text_of(""), true, &dialect, &error));
    all->room = room;
    all->batch = malloc(room + SL_SLACK);
    assert_non_null(all->batch);
    sl_sink sink = {.cursor = all->batch,
                    .limit = all->batch + room,
                    .documents_limit = batch_documents,
                    .full = keep,
                    .context = all};
    uint64_t each = sl_format_ycsb.record_bytes(plan), offset = from * each;
    sl_block block = {.text = {NULL, (size_t)(count * each)},
                      .offset = offset,
                      .id_base = sl_document_id(3, offset) & ~(int64_t)(SL_BLOCK_BYTES - 1)};
    bool whole = sl_format_ycsb.parse(plan, dialect, &block, &sink, &all->counts);
    unsigned stop_after = all->stop_after;
    all->stop_after = 0;
    keep(&sink, 0);
    all->stop_after = stop_after;
    free(all->batch);
    unit_keep(all->bytes);
    sl_format_dialect_destroy(&sl_format_ycsb, dialect);
    return whole;
}

/* ---- documents ---- */

TEST(a_block_has_16_mib_of_documents_at_most) {
    for (size_t size = 154; size <= SL_BSON_DOCUMENT_MAX; size = size * 17 / 16) {
        sl_ycsb_options options = usual;
        options.document_bytes = (uint32_t)size;
        uint64_t bytes = sl_ycsb_record_bytes(&options);
        assert_true((bytes & (bytes - 1)) == 0 && bytes >= SL_GENERATED_BYTES);
        assert_true(SL_BLOCK_BYTES / bytes * size <= SL_YCSB_BLOCK_BSON_MAX);
        assert_true(bytes == SL_GENERATED_BYTES ||
                    2 * SL_BLOCK_BYTES / bytes * size > SL_YCSB_BLOCK_BSON_MAX);
    }
    sl_ycsb_options options = usual;
    options.document_bytes = (uint32_t)SL_BSON_DOCUMENT_MAX;
    assert_true(sl_ycsb_record_bytes(&options) == SL_BLOCK_BYTES);
}

TEST(every_option_that_changes_bytes_is_in_the_name) {
    sl_ycsb_options others[] = {usual, usual, usual, usual, usual, usual};
    others[0].seed = 2;
    others[1].field_count = 7;
    others[2].field_length = 101;
    others[3].integer_count = 9;
    others[4].skew = 0.9901;
    others[5].document_bytes = 955;
    char name[256], other[256];
    sl_plan *plan = plan_of(&usual);
    sl_format_ycsb.name_records(plan, 0, 99, name, sizeof name);
    for (size_t i = 0; i < 6; i++) {
        sl_plan *changed = plan_of(&others[i]);
        sl_format_ycsb.name_records(changed, 0, 99, other, sizeof other);
        assert_string_not_equal(name, other);
    }
    sl_format_ycsb.name_records(plan, 0, 98, other, sizeof other);
    assert_string_not_equal(name, other);
    sl_format_ycsb.name_records(plan, 0, 99, other, sizeof other);
    assert_string_equal(name, other);
}

TEST(the_sink_can_stop_the_generator) {
    sl_plan *plan = plan_of(&usual);
    made all = {.stop_after = 3};
    assert_false(make(&all, plan, 0, 0, BLOCK_RECORDS, (size_t)1 << 20, 100));
    assert_int_equal(all.documents, 300);
    assert_int_equal(all.counts.documents, 300);
    assert_int_equal(all.counts.records, 300);
}

TEST(invalid_options_are_refused) {
    sl_plan *plan;
    sl_format_options options = {.ycsb = usual};
    options.ycsb.field_length = (uint32_t)SL_BLOCK_BYTES * 2;
    assert_false(sl_format_plan_create(&sl_format_ycsb, &options, &plan, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_contains(error.message, "a server accepts at most 16777216");
    options = (sl_format_options){.ycsb = usual, .schema_text = "x", .schema_name = "x"};
    assert_false(sl_format_plan_create(&sl_format_ycsb, &options, &plan, &error));
    assert_contains(error.message, "--schema");
    plan = plan_of(&usual);
    sl_dialect *dialect;
    assert_false(
        sl_format_ycsb.sniff(plan, "test_result.csv", sl_text_of("a,b\n"), true, &dialect, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
}

/* ---- integers ---- */

/* ---- sources ---- */

typedef struct tally {
    sl_source_set *set;
    pthread_mutex_t lock;
    uint64_t records[2], blocks[2], lasts[2], sequences[2];
    bool failed;
} tally;

static void *count_blocks(void *context) {
    tally *all = context;
    sl_reader *reader;
    sl_error why;
    sl_source_block block;
    sl_read_result result;
    if (!sl_reader_create(all->set, &reader, &why))
        return NULL;
    while ((result = sl_reader_next(reader, &block, &why)) == SL_READ_BLOCK) {
        pthread_mutex_lock(&all->lock);
        all->records[block.source] += block.text.length / SL_GENERATED_BYTES;
        all->blocks[block.source]++;
        all->lasts[block.source] += block.last;
        all->sequences[block.source] += block.sequence;
        all->failed = all->failed || block.text.bytes || block.entry ||
                      block.offset != block.sequence * SL_BLOCK_BYTES;
        pthread_mutex_unlock(&all->lock);
    }
    pthread_mutex_lock(&all->lock);
    all->failed = all->failed || result != SL_READ_END;
    pthread_mutex_unlock(&all->lock);
    sl_reader_destroy(reader);
    return NULL;
}

TEST(each_record_is_returned_once) {
    static const uint64_t records[] = {40 * BLOCK_RECORDS + 1, 1};
    tally all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_true(sl_source_set_create(NULL, 0, NULL, &all.set, &error));
    assert_true(sl_source_set_add_generated(all.set, "a", records[0], SL_GENERATED_BYTES, &error));
    assert_true(sl_source_set_add_generated(all.set, "b", records[1], SL_GENERATED_BYTES, &error));
    assert_int_equal(sl_source_set_stored_bytes(all.set),
                     (records[0] + records[1]) * SL_GENERATED_BYTES);
    unit_run_threads(3, count_blocks, &all, 0);
    assert_false(all.failed);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(all.records[i], records[i]);
        assert_int_equal(all.lasts[i], 1);
        assert_int_equal(all.sequences[i], all.blocks[i] * (all.blocks[i] - 1) / 2);
    }
    assert_int_equal(sl_source_set_consumed_bytes(all.set), sl_source_set_stored_bytes(all.set));
    sl_source_set_destroy(all.set);
}

TEST(the_same_name_is_the_same_source) {
    sl_source_set *set;
    char prints[4][SL_FINGERPRINT_ROOM];
    assert_true(sl_source_set_create(NULL, 0, NULL, &set, &error));
    static const struct {
        const char *name;
        uint64_t records;
    } sources[] = {{"a", 5}, {"a", 5}, {"b", 5}, {"a", 6}};
    for (size_t i = 0; i < 4; i++) {
        assert_true(sl_source_set_add_generated(set, sources[i].name, sources[i].records,
                                                SL_GENERATED_BYTES, &error));
        assert_true(sl_source_fingerprint(set, i, prints[i], &error));
    }
    assert_string_equal(prints[0], prints[1]);
    assert_string_not_equal(prints[0], prints[2]);
    assert_string_not_equal(prints[0], prints[3]);
    char head[16];
    size_t length;
    bool whole;
    const char *name;
    assert_true(sl_source_head(set, 2, head, sizeof head, &length, &whole, &name, &error));
    assert_true(whole && length == 0);
    assert_string_equal(name, "b");
    sl_source_set_destroy(set);
}
