/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's delivery of documents to batches, without a server: the destination checks each batch.
 * An error here would lose or repeat documents between the parser and the batches, send documents
 * to a wrong shard, or count them for another source. */
#include "cluster/internal.h"
#include "load/worker.h"
#include "unit.h"

#define SHARDS 3u
#define SOURCES 2u

/* ---- a destination that checks its batches ---- */

typedef struct seen {
    unsigned batches;
    unsigned documents[SHARDS + 1]; /* per shard; the last: routed by the router */
    unsigned largest_documents;
    size_t largest_bytes;
    int32_t refuse; /* the _id to be refused; -1: none */
    bool *ids;      /* by _id: the document has arrived */
    int32_t last_id[SHARDS + 1];
} seen;

static seen now;

/* Documents are {_id, k, block, pad}. k is the owner's name "a", "b" or "c", or a document, for
 * which no owner is computed. */
static bool keep(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                 refusal_handler refused, void *context, sl_error *error) {
    (void)outlet, (void)error;
    uint32_t documents = 0, of_segment = 0;
    const sl_batch_segment *segment = batch->segments;
    now.batches++;
    for (size_t at = 0; at < batch->used; documents++) {
        bson_t view;
        bson_iter_t iter;
        uint32_t length;
        memcpy(&length, batch->bytes + at, sizeof length);
        assert_true(bson_init_static(&view, batch->bytes + at, length));
        assert_true(bson_iter_init_find(&iter, &view, "_id"));
        int32_t id = (int32_t)bson_iter_int64(&iter);
        assert_false(now.ids[id]);
        now.ids[id] = true;
        assert_true(bson_iter_init_find(&iter, &view, "k"));
        uint32_t owner =
            BSON_ITER_HOLDS_UTF8(&iter) ? (uint32_t)(bson_iter_utf8(&iter, NULL)[0] - 'a') : SHARDS;
        assert_int_equal(batch->shard, owner);
        /* Ids ascend, so that inserts go to one end of the index. */
        assert_true(id > now.last_id[owner]);
        now.last_id[owner] = id;
        /* The document's segment belongs to its block. */
        for (; of_segment == segment->documents; of_segment = 0)
            segment++;
        of_segment++;
        assert_true(bson_iter_init_find(&iter, &view, "block"));
        assert_int_equal(bson_iter_int64(&iter), segment->open_block->block.sequence * SOURCES +
                                                     segment->open_block->block.source);
        if (id == now.refuse) {
            result->rejected++;
            refused(context, documents, FATE_REFUSED, 121, "not today");
        }
        at += length;
    }
    assert_int_equal(documents, batch->documents);
    assert_true(batch->used <= batch->room);
    now.documents[batch->shard] += documents;
    if (documents > now.largest_documents)
        now.largest_documents = documents;
    if (batch->used > now.largest_bytes && documents > 1)
        now.largest_bytes = batch->used;
    result->inserted = documents - result->rejected;
    return true;
}

static const sl_sink_type keeper = {.name = "keeper", .send = keep};

/* ---- a load of two sources on three shards ---- */

typedef struct bench {
    sl_load_config config;
    sl_job job;
    sl_destination destination;
    sl_ledger ledger;
    sl_run run;
    sl_worker worker;
    sl_worker_counters counters;
    sl_histogram latencies;
    sl_job_source sources[SOURCES];
    sl_source_account accounts[SOURCES];
    sl_range ranges[SOURCES];
    sl_range_account accounts_of_ranges[SOURCES];
    _Atomic uint64_t shard_documents[SHARDS];
    sl_source_set *set;
} bench;

static const char chunks[] =
    "[{\"min\": {\"k\": {\"$minKey\": 1}}, \"max\": {\"k\": \"b\"}, \"shard\": \"a\"},"
    " {\"min\": {\"k\": \"b\"}, \"max\": {\"k\": \"c\"}, \"shard\": \"b\"},"
    " {\"min\": {\"k\": \"c\"}, \"max\": {\"k\": {\"$maxKey\": 1}}, \"shard\": \"c\"}]";

static void bench_destroy(void *context) {
    bench *made = context;
    sl_error error;
    if (!sl_rejects_close(made->ledger.rejects, NULL, &error))
        abort();
    sl_source_set_destroy(made->set);
    sl_delivery_clear(&made->worker);
    sl_blocks_clear(&made->worker);
    sl_shard_map_destroy(made->destination.map);
}

/* The bench is destroyed after the test. */
static bench *bench_create(uint32_t batch_documents, size_t batch_bytes, unsigned ids) {
    static sl_shard shards[SHARDS] = {
        {"a", "a/h:1", false}, {"b", "b/h:2", false}, {"c", "c/h:3", false}};
    static const sl_topology topology = {SHARDS, shards};
    bench *made = unit_keep(aligned_alloc(_Alignof(bench), sizeof *made));
    memset(made, 0, sizeof *made);
    memset(&now, 0, sizeof now);
    now.ids = unit_keep(calloc(ids, sizeof *now.ids));
    now.refuse = -1;
    for (unsigned i = 0; i <= SHARDS; i++)
        now.last_id[i] = -1;

    const bson_t *key = unit_json("{\"k\": 1}"), *list = unit_json(chunks);
    sl_error error;
    assert_true(sl_shard_map_from_keys(key, list, &topology, &made->destination.map, &error));

    made->config = (sl_load_config){
        .threads = 1, .batch_documents = batch_documents, .batch_bytes = batch_bytes};
    made->job.config = &made->config;
    atomic_store(&made->run.pace.batch_documents, batch_documents);
    made->job.shards = SHARDS;
    made->job.sources = made->sources;
    made->job.ranges = made->ranges;
    made->job.range_count = SOURCES;
    made->ledger.ranges = made->accounts_of_ranges;
    made->ledger.sources = made->accounts;
    made->run.job = &made->job;
    sl_rate_limit_init(&made->run.own_limit, 0);
    made->run.rate_limit = &made->run.own_limit;
    made->run.shard_documents = made->shard_documents;
    made->run.counters = &made->counters;
    made->run.latencies = &made->latencies;
    for (uint32_t i = 0; i < SOURCES; i++) {
        made->sources[i].number = i + 1;
        made->ranges[i] =
            (sl_range){sl_stripe_first_id(i + 1, 0), sl_stripe_first_id(i + 1, SL_STRIPES), 0};
    }
    made->worker = (sl_worker){.job = &made->job,
                               .destination = &made->destination,
                               .ledger = &made->ledger,
                               .run = &made->run,
                               .sink_type = &keeper,
                               .counters = &made->counters};
    assert_true(sl_delivery_init(&made->worker, &error));

    /* Files for the rejects. */
    const char *paths[SOURCES] = {unit_path("source-0"), unit_path("source-1")};
    for (unsigned i = 0; i < SOURCES; i++)
        unit_write(paths[i], i ? "1\n" : "0\n", 2);
    assert_true(sl_source_set_create(paths, SOURCES, NULL, &made->set, &error));
    assert_true(sl_rejects_open(unit_folder(), made->set, false, 0, &made->ledger.rejects, &error));
    unit_release_later(bench_destroy, made);
    return made;
}

/* Delivers one block as the parser does: `count` documents, with ids from `id` on. */
static void parse_block(bench *b, uint32_t source, uint64_t sequence, int id, int count, int pad) {
    sl_batch *scratch = &b->worker.scratch;
    char *text = unit_keep(calloc(1, (size_t)pad + 1));
    memset(text, 'x', (size_t)pad);
    assert_int_equal(scratch->used, 0);
    sl_open_block *open_block =
        sl_block_begin(&b->worker, &(sl_source_block){.source = source,
                                                      .sequence = sequence,
                                                      .offset = sequence << SL_BLOCK_BITS});
    assert_non_null(open_block);
    assert_true(sl_batch_begin_segment(scratch, open_block));
    for (int i = id; i < id + count; i++) {
        bson_t document = BSON_INITIALIZER;
        char owner[2] = {(char)('a' + i * 7 % 10 % 4), 0};
        BSON_APPEND_INT64(&document, "_id", i);
        if (owner[0] < 'd')
            BSON_APPEND_UTF8(&document, "k", owner);
        else
            BCON_APPEND(&document, "k", "{", "x", BCON_INT32(1), "}");
        BSON_APPEND_INT64(&document, "block", (int64_t)(sequence * SOURCES + source));
        BSON_APPEND_UTF8(&document, "pad", text);
        assert_true(sl_batch_make_room(scratch, scratch->used + document.len));
        memcpy(scratch->bytes + scratch->used, bson_get_data(&document), document.len);
        scratch->used += document.len;
        scratch->documents++;
        scratch->segments[0].documents++;
        open_block->waiting++;
        bson_destroy(&document);
    }
    assert_true(sl_deliver(&b->worker, scratch));
    assert_int_equal(scratch->documents, 0);
    open_block->parsed = true;
    assert_true(sl_block_complete(&b->worker, open_block));
}

static void assert_all_delivered(const bench *b, unsigned count) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        assert_true(now.ids[i]);
    for (unsigned i = 0; i <= SHARDS; i++)
        sum += now.documents[i];
    assert_int_equal(sum, count);
    for (unsigned i = 0; i < SHARDS; i++)
        assert_int_equal(atomic_load(&b->shard_documents[i]), now.documents[i]);
    assert_int_equal(atomic_load(&b->counters.batches), now.batches);
}

TEST(documents_go_to_their_owners) {
    bench *b = bench_create(50, 1 << 20, 2000);
    /* Blocks of two sources alternate, as in a load: 70 documents, then 130. */
    for (int i = 0; i < 20; i++)
        parse_block(b, (uint32_t)i % 2, (uint64_t)i / 2, i * 100 - i % 2 * 30, i % 2 ? 130 : 70,
                    10);
    assert_true(now.batches > 20); /* full batches have been sent already */
    assert_true(sl_deliver_all(&b->worker));
    assert_all_delivered(b, 2000);
    assert_int_equal(now.largest_documents, 50);
    for (unsigned i = 0; i <= SHARDS; i++)
        assert_in_range(now.documents[i], 300, 700);
    assert_int_equal(atomic_load(&b->accounts_of_ranges[0].accepted), 700);
    assert_int_equal(atomic_load(&b->accounts_of_ranges[1].accepted), 1300);
    assert_int_equal(atomic_load(&b->accounts[0].accepted), 700);
    assert_int_equal(atomic_load(&b->accounts[1].accepted), 1300);
}

TEST(batches_are_full_by_bytes_too) {
    bench *b = bench_create(100000, 65536, 3000);
    for (int i = 0; i < 30; i++)
        parse_block(b, 0, (uint64_t)i, i * 100, 100, 1000);
    assert_true(sl_deliver_all(&b->worker));
    assert_all_delivered(b, 3000);
    assert_in_range(now.largest_bytes, 63000, 65536);
}

/* A document larger than --batch-bytes is sent in its own, larger batch. */
TEST(a_large_document_is_sent_alone) {
    bench *b = bench_create(1000, 65536, 21);
    parse_block(b, 0, 0, 0, 10, 10);
    parse_block(b, 0, 1, 10, 1, 200000);
    parse_block(b, 0, 2, 11, 10, 10);
    assert_true(sl_deliver_all(&b->worker));
    assert_all_delivered(b, 21);
    assert_true(now.largest_bytes < 65536);
}

TEST(refusals_are_counted_for_their_source) {
    bench *b = bench_create(1000, 1 << 20, 200);
    now.refuse = 151;
    parse_block(b, 0, 0, 0, 100, 10);
    parse_block(b, 1, 0, 100, 100, 10);
    assert_true(sl_deliver_all(&b->worker));
    assert_int_equal(atomic_load(&b->accounts_of_ranges[0].accepted), 100);
    assert_int_equal(atomic_load(&b->accounts_of_ranges[1].accepted), 99);
    assert_int_equal(atomic_load(&b->accounts[1].accepted), 99);
    assert_int_equal(atomic_load(&b->counters.server_rejects), 1);
    assert_int_equal(atomic_load(&b->counters.inserted), 199);
}
