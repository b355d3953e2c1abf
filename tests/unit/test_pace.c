/* SPDX-License-Identifier: Apache-2.0 */
/* The number of active workers and the size of batches change during a load into a counting
 * destination. Each document must arrive once; a waiting worker must not hold documents back; and
 * the end of a load must wake all waiting workers. */
#include <unistd.h>

#include "format/ycsb.h"
#include "unit.h"

#include "job/numbers.h"
#include "job/sources.h"
#include "load/worker.h"

#define THREADS 8
#define RECORDS 120000u

/* ---- a slow destination that counts documents ---- */

typedef struct counting {
    _Atomic unsigned char *seen; /* per record: how often it has arrived */
    _Atomic unsigned sent;
    _Atomic unsigned fail_at; /* number of the send that fails; 0: none */
} counting;

static counting counts;

static bool counting_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                          refusal_handler refused, void *context, sl_error *error) {
    (void)outlet, (void)refused, (void)context;
    unsigned number = atomic_fetch_add(&counts.sent, 1) + 1;
    if (number == atomic_load(&counts.fail_at))
        return sl_error_set(error, SL_EXIT_CLUSTER, "batch %u fails", number);
    const uint8_t *at = batch->bytes;
    for (uint32_t i = 0; i < batch->documents; i++) {
        int32_t length;
        int64_t id;
        memcpy(&length, at, sizeof length);
        memcpy(&id, at + 9, sizeof id);
        uint64_t record = sl_document_id_offset(id) / SL_GENERATED_BYTES;
        if (record >= RECORDS)
            return sl_error_set(error, SL_EXIT_CLUSTER, "a document that no source has");
        atomic_fetch_add(&counts.seen[record], 1);
        at += length;
    }
    usleep(100 + 20 * batch->documents);
    result->inserted = batch->documents;
    return true;
}

static const sl_sink_type counting_sink = {.name = "counting", .send = counting_send};

/* ---- a load of generated records ---- */

typedef struct bench {
    sl_load_config config;
    sl_job job;
    sl_destination destination; /* none */
    sl_ledger ledger;
    sl_run run;
    unsigned ticks, changes;
    unsigned held_back; /* checks at which a waiting worker had undelivered documents */
    unsigned waited;    /* checks at which all workers but one were waiting */
    unsigned stop_at;   /* tick at which the load is stopped */
} bench;

static void bench_destroy(void *context) {
    bench *made = context;
    sl_ledger_clear(&made->ledger);
    sl_run_clear(&made->run);
    sl_job_clear(&made->job);
}

/* The bench is destroyed after the test. */
static bench *bench_create(unsigned begin) {
    bench *made = unit_keep(calloc(1, sizeof *made));
    sl_error error = {0};
    memset(&counts, 0, sizeof counts);
    counts.seen = unit_keep(calloc(RECORDS, sizeof *counts.seen));
    made->config = (sl_load_config){.threads = begin,
                                    .threads_most = THREADS,
                                    .batch_documents = 100,
                                    .batch_bytes = 1 << 20,
                                    .format = "ycsb",
                                    .rejects_max = UINT64_MAX,
                                    .rejects_max_share = 1,
                                    .sample = 1,
                                    .format_options.ycsb = {.records = RECORDS,
                                                            .seed = 1,
                                                            .field_count = 1,
                                                            .field_length = 8,
                                                            .integer_count = 1,
                                                            .skew = 0.99}};
    sl_job_init(&made->job, &made->config);
    sl_run_init(&made->run, &made->job);
    assert_int_equal(made->run.threads, THREADS);
    assert_true(sl_sources_open(&made->job, &error));
    assert_true(sl_sources_number_offline(&made->job, &error));
    assert_true(sl_ranges_lay_out(&made->job, &made->destination, &error));
    assert_true(sl_ledger_open_accounts(&made->ledger, &made->job));
    assert_true(sl_rejects_open(NULL, made->job.set, false, 0, &made->ledger.rejects, &error));
    assert_true(sl_run_create_counters(&made->run));
    unit_release_later(bench_destroy, made);
    return made;
}

static bool run_workers(bench *b, void (*tick)(void *context), sl_error *error) {
    return sl_workers_run(&b->run, &b->destination, &b->ledger, &counting_sink, tick, b, error);
}

static uint64_t records_of(const bench *b, unsigned i) {
    return atomic_load(&b->run.counters[i].records);
}

static uint64_t inserted_by(const bench *b, unsigned i) {
    return atomic_load(&b->run.counters[i].inserted);
}

static uint64_t arrived(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < RECORDS; i++)
        sum += atomic_load(&counts.seen[i]);
    return sum;
}

static void assert_all_once(const bench *b) {
    uint64_t inserted = 0;
    for (unsigned i = 0; i < RECORDS; i++)
        assert_int_equal(atomic_load(&counts.seen[i]), 1);
    for (unsigned i = 0; i < THREADS; i++)
        inserted += inserted_by(b, i);
    assert_int_equal(inserted, RECORDS);
    assert_int_equal(atomic_load(&b->ledger.ranges[0].accepted), RECORDS);
}

/* ---- calls during the load, one per tick ---- */

static void check_waiting_workers(bench *b) {
    sl_pace *pace = &b->run.pace;
    pthread_mutex_lock(&pace->lock);
    bool all_wait = !pace->over && pace->parked == THREADS - atomic_load(&pace->active);
    for (unsigned i = atomic_load(&pace->active); all_wait && i < THREADS; i++)
        b->held_back += records_of(b, i) != inserted_by(b, i);
    b->waited += all_wait && atomic_load(&pace->active) == 1;
    pthread_mutex_unlock(&pace->lock);
}

static void change_all_the_time(void *context) {
    bench *b = context;
    static const unsigned threads[] = {8, 1, 5, 2, 7, 1, 3, 8, 1};
    static const uint32_t batches[] = {10, 5000, 100, 1000, 1, 20000, 300};
    check_waiting_workers(b);
    if (b->ticks++ % 10 > 0) /* leaves time for the workers to reach their states */
        return;
    for (unsigned i = 0; i < 20; i++) { /* fast, to wake workers that are about to wait */
        unsigned k = b->changes++;
        sl_pace_hold(&b->run.pace, threads[k % 9], batches[k / 9 % 7]);
        usleep(k % 4 * 700);
    }
    sl_pace_hold(&b->run.pace, 8,
                 3000); /* less than a block, so that workers have partial batches */
    usleep(50000);
    sl_pace_hold(&b->run.pace, 1, 3000);
}

static void wait_then_stop(void *context) {
    bench *b = context;
    check_waiting_workers(b);
    if (++b->ticks == b->stop_at)
        sl_run_stop(&b->run);
}

static void only_check(void *context) {
    check_waiting_workers(context);
}

/* ---- tests ---- */

TEST(each_document_arrives_once) {
    bench *b = bench_create(3);
    sl_error error = {0};
    assert_true(run_workers(b, change_all_the_time, &error));
    assert_all_once(b);
    assert_true(b->waited > 0);
    assert_int_equal(b->held_back, 0);
}

TEST(the_end_of_the_sources_wakes_all) {
    bench *b = bench_create(1);
    b->config.batch_documents = 1000;
    sl_pace_hold(&b->run.pace, 1, 1000);
    sl_error error = {0};
    assert_true(run_workers(b, only_check, &error));
    assert_all_once(b);
    assert_true(b->waited > 0);
    assert_int_equal(b->held_back, 0);
    assert_int_equal(inserted_by(b, 0), RECORDS); /* the other workers were never active */
}

TEST(ctrl_c_wakes_all) {
    bench *b = bench_create(1);
    b->stop_at = 3;
    sl_error error = {0};
    assert_true(run_workers(b, wait_then_stop, &error));
    assert_true(arrived() < RECORDS);
    assert_int_equal(arrived(), inserted_by(b, 0));
    assert_int_equal(records_of(b, 0), inserted_by(b, 0)); /* its batches were delivered */
}

TEST(a_failure_wakes_all) {
    bench *b = bench_create(2);
    atomic_store(&counts.fail_at, 20);
    sl_error error = {0};
    assert_false(run_workers(b, only_check, &error));
    assert_string_equal(error.message, "batch 20 fails");
}
