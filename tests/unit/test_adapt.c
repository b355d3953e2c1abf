/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of threads and batches against servers that are made up: each has a rate for any
 * settings, answers in batches as a real one does, and is noisy. No clock and no thread is involved;
 * what passes here passes always. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "../../src/load/adapt.h"

#define WORKERS_MOST 64
#define TICK 0.05

typedef double (*rate_function)(double seconds, unsigned threads, uint32_t batch);

typedef struct world {
    rate_function rate;
    double noise;          /* standard deviation of a batch's time, and of the slow wander */
    double seconds;
    double answered;
    uint64_t documents, batches, retries;
    double done[WORKERS_MOST]; /* when the worker's batch is answered; 0: it has none */
    uint32_t sent[WORKERS_MOST];
    double wander, random_left;
    uint64_t random;
    double left;           /* seconds to the end that are told; below 0: not known */
    double ends;           /* > 0: the load ends then, and that is told */
    double ideal;          /* documents that the best settings would have brought */
    unsigned changes;
    sl_adapt adapt;
} world;

static double uniform(world *w) {
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(w->random >> 11) / 9007199254740992.0;
}

static double normal(world *w) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(w);
    return sum - 6;
}

static void world_init(world *w, rate_function rate, double noise, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->rate = rate;
    w->noise = noise;
    w->random = seed * 7919 + 17;
    w->left = -1;
    sl_adapt_init(&w->adapt, &(sl_adapt_limits){.start = {4, 10000}, .threads = true,
                                                .batches = true, .threads_most = 16,
                                                .batch_most = 100000});
}

/* One batch of one worker takes as long as its share of the rate says. */
static void send(world *w, unsigned worker, double from) {
    sl_adapt_settings now = sl_adapt_now(&w->adapt);
    double rate = w->rate(from, now.threads, now.batch_documents) * exp(w->wander);
    double takes = now.threads * (double)now.batch_documents / rate;
    w->sent[worker] = now.batch_documents;
    w->done[worker] = from + takes * exp(w->noise * normal(w));
}

static void tick(world *w, bool still) {
    w->seconds += TICK;
    /* A wander that forgets half of itself in about two seconds. */
    w->wander = 0.98 * w->wander + 0.2 * w->noise * normal(w);
    for (unsigned i = 0; i < WORKERS_MOST; i++) {
        if (still && w->done[i] > 0)
            w->done[i] += TICK;
        while (w->done[i] > 0 && w->done[i] <= w->seconds) {
            double at = w->done[i];
            w->answered = fmax(w->answered, at);
            w->documents += w->sent[i];
            w->batches++;
            w->done[i] = 0;
            if (i < sl_adapt_now(&w->adapt).threads)
                send(w, i, at);
        }
        if (!still && w->done[i] == 0 && i < sl_adapt_now(&w->adapt).threads)
            send(w, i, w->seconds);
    }
    sl_adapt_figures figures = {.seconds = w->seconds, .answered = w->answered,
                                .documents = w->documents, .batches = w->batches,
                                .retries = w->retries,
                                .seconds_left = w->ends > 0 ? w->ends - w->seconds : w->left};
    w->changes += sl_adapt_tick(&w->adapt, &figures);
}

static void run(world *w, double seconds) {
    for (double until = w->seconds + seconds; w->seconds < until;)
        tick(w, false);
}

/* ---- servers ---- */

/* The median of what this machine's figures say of one mongod. */
static double flat(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    double by_threads = threads == 1 ? 0.63 : threads == 2 ? 0.94 : threads == 4 ? 1 : 0.96;
    double by_batch = batch < 500 ? 0.4 : batch < 5000 ? 0.8 : batch < 50000 ? 1 : 0.97;
    return 850000 * by_threads * by_batch;
}

/* So far away that each batch waits 0.2 s whatever it holds; the server itself takes 400,000/s. */
static double far(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    double one = batch / (0.2 + batch / 400000.0);
    double all = one * threads;
    return all < 400000 ? all : 400000;
}

/* Too many at once get into each other's way. */
static double crowded(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds, (void)batch;
    return threads <= 1 ? 100000 : threads == 2 ? 160000 : 160000 / sqrt(threads / 2.0);
}

/* Wants few, large batches under way: neither fewer threads nor larger batches alone are a gain. */
static double few_and_large(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    if (threads == 2 && batch == 50000)
        return 1000000;
    return threads == 4 && batch == 10000 ? 850000 : 800000;
}

/* Nothing is as good as what a load begins with. */
static double as_begun(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    return threads == 4 && batch == 10000 ? 500000 : 400000;
}

/* Hates large batches. */
static double small_batches(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds, (void)threads;
    return batch <= 2000 ? 200000 : batch <= 5000 ? 170000 : 120000;
}

/* After two minutes the network gets slow. */
static double changing(double seconds, unsigned threads, uint32_t batch) {
    return seconds < 120 ? flat(seconds, threads, batch) : far(seconds, threads, batch);
}

static double best_of(rate_function rate, double seconds) {
    static const unsigned threads[] = {1, 2, 4, 8, 16};
    static const uint32_t batches[] = {500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
    double best = 0;
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned k = 0; k < 8; k++)
            best = fmax(best, rate(seconds, threads[i], batches[k]));
    }
    return best;
}

static double found(const world *w) {
    sl_adapt_settings best = sl_adapt_best(&w->adapt);
    return w->rate(w->seconds, best.threads, best.batch_documents);
}

/* ---- tests ---- */

#define SEEDS 60

/* How many of the seeds end within a tenth of the best; the mean share of the documents that the
 * best settings would have brought in the same time goes to `*brought`. */
static unsigned good_ends(rate_function rate, double noise, double seconds, double *brought) {
    unsigned good = 0;
    *brought = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, rate, noise, seed);
        w.ends = seconds;
        run(&w, seconds);
        good += found(&w) >= 0.9 * best_of(rate, seconds);
        *brought += (double)w.documents / (best_of(rate, seconds) * seconds) / SEEDS;
    }
    return good;
}

static void stays_where_it_is_best(void **state) {
    (void)state;
    double brought;
    assert_int_equal(good_ends(flat, 0.05, 30, &brought), SEEDS);
    assert_true(brought > 0.95);
    assert_int_equal(good_ends(flat, 0.05, 120, &brought), SEEDS);
    assert_true(brought > 0.95);
}

static void stays_near_in_much_noise(void **state) {
    (void)state;
    double brought;
    assert_true(good_ends(flat, 0.2, 120, &brought) >= SEEDS - 2);
}

static void finds_many_threads_for_a_distant_server(void **state) {
    (void)state;
    double brought;
    assert_true(good_ends(far, 0.05, 40, &brought) >= SEEDS - 1);
    assert_true(brought > 0.75);
    assert_true(good_ends(far, 0.1, 120, &brought) >= SEEDS - 1);
    assert_true(brought > 0.9);
}

static void finds_fewer_threads(void **state) {
    (void)state;
    double brought;
    assert_true(good_ends(crowded, 0.05, 120, &brought) >= SEEDS - 1);
    print_message("fewer threads: %.3f of what the best would have brought\n", brought);
    assert_true(brought > 0.8);
}

static void finds_smaller_batches(void **state) {
    (void)state;
    double brought;
    assert_true(good_ends(small_batches, 0.05, 120, &brought) >= SEEDS - 1);
    print_message("smaller batches: %.3f of what the best would have brought\n", brought);
    assert_true(brought > 0.8);
}

static void changes_both_where_neither_alone_is_a_gain(void **state) {
    (void)state;
    double brought;
    assert_true(good_ends(few_and_large, 0.03, 120, &brought) >= SEEDS - 1);
}

static void settles_and_then_leaves_it(void **state) {
    (void)state;
    world w;
    world_init(&w, flat, 0.03, 5);
    run(&w, 45);
    assert_true(sl_adapt_settled_at(&w.adapt) > 0);
    assert_true(sl_adapt_settled_at(&w.adapt) < 45);
    unsigned before = w.changes;
    run(&w, 30);
    assert_int_equal(w.changes, before);
    run(&w, 3600); /* searches again now and then: at most every quarter of an hour in the end */
    assert_true(w.changes - before < 150);
    assert_true(w.adapt.step_count <= SL_ADAPT_STEPS);
}

static void follows_a_change_in_the_middle(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, changing, 0.05, seed);
        run(&w, 240);
        assert_true(found(&w) >= 0.85 * best_of(far, 240));
        double settled = sl_adapt_settled_at(&w.adapt); /* on these settings, not on those before */
        assert_true(settled < 0 || settled > 120);
    }
}

static void a_short_load_keeps_its_settings(void **state) {
    (void)state;
    world w;
    world_init(&w, far, 0.05, 3);
    w.ends = 9;
    run(&w, 9);
    assert_int_equal(w.changes, 0);
    assert_true(sl_adapt_settled_at(&w.adapt) < 0);
}

/* What the end of a load says must have been measured. */
static void says_nothing_of_trials_that_were_not_made(void **state) {
    (void)state;
    world w;
    world_init(&w, as_begun, 0.03, 4);
    w.ends = 35; /* fewer threads, smaller batches want longer */
    while (w.changes == 0 && w.seconds < 20)
        run(&w, 0.05);
    assert_true(sl_adapt_now(&w.adapt).threads > sl_adapt_best(&w.adapt).threads);
    assert_false(sl_adapt_only_fewer_left(&w.adapt));
    run(&w, 35 - w.seconds);
    assert_true(sl_adapt_only_fewer_left(&w.adapt));
    assert_true(sl_adapt_settled_at(&w.adapt) < 0);
}

/* A disk that hangs for a second in every two leaves no short window undisturbed. */
static void goes_on_where_standstills_are_usual(void **state) {
    (void)state;
    world w;
    world_init(&w, far, 0.03, 8);
    for (int i = 0; i < 3600; i++)
        tick(&w, i / 20 % 2 == 0);
    assert_true(w.adapt.disturbances > 0);
    assert_true(sl_adapt_best(&w.adapt).threads > 4);
}

/* While a primary is elected nothing is acknowledged, and then batches come again: whatever setting
 * was on trial then is neither to blame nor to praise. */
static void nothing_is_learned_from_an_election(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, flat, 0.03, seed);
        w.ends = 600;
        unsigned steps = 0;
        for (int round = 0; round < 8; round++) {
            run(&w, 2 + uniform(&w) * 3);
            steps = w.adapt.step_count;
            for (int i = 0; i < 80; i++)
                tick(&w, true); /* four seconds of silence */
            w.retries += 4;
            tick(&w, false);
            /* No window that holds the silence was taken. */
            assert_int_equal(w.adapt.step_count, steps);
            sl_adapt_settings now = sl_adapt_now(&w.adapt), best = sl_adapt_best(&w.adapt);
            assert_int_equal(now.threads, best.threads);
            assert_int_equal(now.batch_documents, best.batch_documents);
        }
        assert_true(found(&w) >= 0.9 * best_of(flat, w.seconds));
    }
}

static void keeps_to_its_limits(void **state) {
    (void)state;
    static const sl_adapt_limits all[] = {
        {{1, 10000}, true, true, 6, 100000},
        {{4, 100}, false, true, 4, 2000},
        {{3, 7000}, true, false, 16, 100000},
        {{2, 1000}, true, true, 2, 1000},
    };
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        world w;
        world_init(&w, far, 0.1, i + 1);
        sl_adapt_init(&w.adapt, &all[i]);
        for (int k = 0; k < 4000; k++) {
            tick(&w, false);
            sl_adapt_settings now = sl_adapt_now(&w.adapt);
            assert_in_range(now.threads, 1, all[i].threads_most);
            assert_in_range(now.batch_documents, 1, all[i].batch_most);
            if (!all[i].threads)
                assert_int_equal(now.threads, all[i].start.threads);
            if (!all[i].batches)
                assert_int_equal(now.batch_documents, all[i].start.batch_documents);
        }
        assert_true(sl_adapt_best(&w.adapt).threads >= all[i].start.threads);
    }
}

/* Batches that end by bytes are the same batches, whatever number of documents is allowed. */
static void larger_batches_are_not_tried_without_room(void **state) {
    (void)state;
    sl_adapt adapt;
    sl_adapt_init(&adapt, &(sl_adapt_limits){.start = {4, 10000}, .batches = true,
                                             .threads_most = 4, .batch_most = 100000});
    sl_adapt_figures figures = {.seconds_left = -1, .batch_room = 9000};
    for (int i = 0; i < 4000; i++) {
        figures.seconds += TICK;
        figures.answered = figures.seconds;
        figures.documents += 9000;
        figures.batches++;
        sl_adapt_tick(&adapt, &figures);
        assert_true(sl_adapt_now(&adapt).batch_documents <= 10000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stays_where_it_is_best),
        cmocka_unit_test(stays_near_in_much_noise),
        cmocka_unit_test(finds_many_threads_for_a_distant_server),
        cmocka_unit_test(finds_fewer_threads),
        cmocka_unit_test(finds_smaller_batches),
        cmocka_unit_test(changes_both_where_neither_alone_is_a_gain),
        cmocka_unit_test(settles_and_then_leaves_it),
        cmocka_unit_test(follows_a_change_in_the_middle),
        cmocka_unit_test(a_short_load_keeps_its_settings),
        cmocka_unit_test(says_nothing_of_trials_that_were_not_made),
        cmocka_unit_test(goes_on_where_standstills_are_usual),
        cmocka_unit_test(nothing_is_learned_from_an_election),
        cmocka_unit_test(keeps_to_its_limits),
        cmocka_unit_test(larger_batches_are_not_tried_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
