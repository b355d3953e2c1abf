/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of threads and batch sizes against simulated servers. A server's rate is a
 * function of the settings, with noise; it answers batches. The simulation uses no clock and no
 * threads, so that the results are the same in every run. */
#include "load/pace.h"
#include "unit.h"

#define WORKERS_MOST 64
#define TICK 0.05

typedef double (*rate_function)(double seconds, unsigned threads, uint32_t batch);

typedef struct world {
    rate_function rate;
    double noise; /* standard deviation of the logarithm of a batch's time, and of `drift` */
    double seconds;
    double answered;
    uint64_t documents, batches, retries;
    double done[WORKERS_MOST];   /* time at which the worker's batch is answered; 0: it has none */
    uint32_t sent[WORKERS_MOST]; /* documents in that batch */
    double drift;                /* slow change of the rate, as a logarithm */
    uint64_t random;
    double ends;      /* time at which the load ends, known to the controller; 0: unknown */
    unsigned changes; /* of the settings */
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

    sl_adapt_init(&w->adapt, &(sl_adapt_limits){.start = {4, 10000},
                                                .threads = true,
                                                .batches = true,
                                                .threads_most = 16,
                                                .batch_most = 100000});
}

/* Starts a batch of a worker, which takes as long as its share of the rate implies. */
static void send(world *w, unsigned worker, double from) {
    sl_adapt_settings now = w->adapt.now;
    double rate = w->rate(from, now.threads, now.batch_documents) * exp(w->drift);
    double takes = now.threads * (double)now.batch_documents / rate;
    w->sent[worker] = now.batch_documents;
    w->done[worker] = from + takes * exp(w->noise * normal(w));
}

/* Advances the time by TICK; `still`: the server answers nothing. */
static void tick(world *w, bool still) {
    w->seconds += TICK;
    /* A random drift with a half-life of about two seconds. */
    w->drift = 0.98 * w->drift + 0.2 * w->noise * normal(w);
    for (unsigned i = 0; i < WORKERS_MOST; i++) {
        if (still && w->done[i] > 0)
            w->done[i] += TICK;
        while (w->done[i] > 0 && w->done[i] <= w->seconds) {
            double at = w->done[i];
            w->answered = fmax(w->answered, at);
            w->documents += w->sent[i];
            w->batches++;
            w->done[i] = 0;
            if (i < w->adapt.now.threads)
                send(w, i, at);
        }
        if (!still && w->done[i] == 0 && i < w->adapt.now.threads)
            send(w, i, w->seconds);
    }
    sl_adapt_figures figures = {.seconds = w->seconds,
                                .answered = w->answered,
                                .documents = w->documents,
                                .batches = w->batches,
                                .retries = w->retries,
                                .seconds_left = w->ends > 0 ? w->ends - w->seconds : -1};
    w->changes += sl_adapt_tick(&w->adapt, &figures);
}

static void run(world *w, double seconds) {
    for (double until = w->seconds + seconds; w->seconds < until;)
        tick(w, false);
}

/* ---- servers ---- */

/* Similar to the measured rates of one mongod: almost independent of the settings. */
static double flat(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    double by_threads = threads == 1 ? 0.63 : threads == 2 ? 0.94 : threads == 4 ? 1 : 0.96;
    double by_batch = batch < 500 ? 0.4 : batch < 5000 ? 0.8 : batch < 50000 ? 1 : 0.97;
    return 850000 * by_threads * by_batch;
}

/* A distant server: each batch takes 0.2 s more; the server takes at most 400,000 documents/s. */
static double far(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    double one = batch / (0.2 + batch / 400000.0);
    double all = one * threads;
    return all < 400000 ? all : 400000;
}

/* More than two threads slow each other down. */
static double crowded(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds, (void)batch;
    return threads <= 1 ? 100000 : threads == 2 ? 160000 : 160000 / sqrt(threads / 2.0);
}

/* Two threads with large batches are fastest; changing only one of the two settings gains
 * nothing. */
static double few_and_large(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    if (threads == 2 && batch == 50000)
        return 1000000;
    return threads == 4 && batch == 10000 ? 850000 : 800000;
}

/* Similar, with a larger gain, and so slow that trials of all moves take longer than one search. */
static double slow(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    if (threads == 2 && batch == 50000)
        return 100000;
    return batch > 10000 ? 40000 : threads == 4 && batch == 10000 ? 70000 : 60000;
}

/* Eight threads are 8 % faster, which only four pairs of measurements show. There is time for two
 * pairs in one search. */
static double slow_small_gain(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    return threads == 8 && batch == 10000 ? 32400 : 30000;
}

/* The settings that a load starts with are the best. */
static double start_is_best(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds;
    return threads == 4 && batch == 10000 ? 500000 : 400000;
}

/* The smaller the batches, the faster. */
static double small_batches(double seconds, unsigned threads, uint32_t batch) {
    (void)seconds, (void)threads;
    return batch <= 2000 ? 200000 : batch <= 5000 ? 170000 : 120000;
}

/* After two minutes the network becomes slow. */
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

/* The rate with the settings that the controller considers best. */
static double rate_found(const world *w) {
    sl_adapt_settings best = w->adapt.base;
    return w->rate(w->seconds, best.threads, best.batch_documents);
}

/* ---- tests ---- */

#define SEEDS 60

/* Returns for how many seeds the final rate is at least 90 % of the best one. `*share`: the
 * documents loaded, as a share of those that the best settings would have loaded, mean of all
 * seeds. */
static unsigned good_ends(rate_function rate, double noise, double seconds, double *share) {
    unsigned good = 0;
    *share = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, rate, noise, seed);
        w.ends = seconds;
        run(&w, seconds);
        good += rate_found(&w) >= 0.9 * best_of(rate, seconds);
        *share += (double)w.documents / (best_of(rate, seconds) * seconds) / SEEDS;
    }
    return good;
}

TEST(finds_settings_near_the_best) {
    static const struct {
        const char *name;
        rate_function rate;
        double noise, seconds;
        unsigned good;
        double share; /* minimum of the documents that the best settings would have loaded */
    } rows[] = {
        {"best at first", flat, 0.05, 30, SEEDS, 0.95},
        {"best at first", flat, 0.05, 120, SEEDS, 0.95},
        {"best at first, noisy", flat, 0.2, 120, SEEDS - 2, 0},
        {"distant: more threads", far, 0.05, 40, SEEDS - 1, 0.75},
        {"distant: more threads", far, 0.1, 120, SEEDS - 1, 0.9},
        {"crowded: fewer threads", crowded, 0.05, 120, SEEDS - 1, 0.8},
        {"smaller batches", small_batches, 0.05, 120, SEEDS - 1, 0.8},
        {"both, where neither alone is a gain", few_and_large, 0.03, 120, SEEDS - 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double share;
        unsigned good = good_ends(rows[i].rate, rows[i].noise, rows[i].seconds, &share);
        print_message("%s, %.0f s: %u near the best settings; %.3f of their documents\n",
                      rows[i].name, rows[i].seconds, good, share);
        assert_in_range(good, rows[i].good, SEEDS);
        assert_true(share > rows[i].share);
    }
}

TEST(stops_changing_settings_once_settled) {
    world w;
    world_init(&w, flat, 0.03, 5);
    run(&w, 45);
    assert_true(w.adapt.settled_at > 0);
    assert_true(w.adapt.settled_at < 45);
    unsigned before = w.changes;
    run(&w, 30);
    assert_int_equal(w.changes, before);
    run(&w, 3600); /* searches again, at intervals that grow to a quarter of an hour */
    assert_true(w.changes - before < 150);
    assert_true(w.adapt.step_count <= SL_ADAPT_STEPS);
}

/* A search that takes minutes does not help a load that takes minutes. Neither does one that ends
 * early with settings that are not near the best. */
TEST(settles_within_a_minute) {
    static const struct server {
        const char *name;
        rate_function rate;
        double noise;
        double share; /* minimum of the documents that the best settings would have loaded */
    } servers[] = {{"near", flat, 0.05, 0.95},
                   {"near", flat, 0.1, 0.95},
                   {"start is best", start_is_best, 0.05, 0.95},
                   {"start is best", start_is_best, 0.1, 0.95},
                   {"small batches", small_batches, 0.05, 0.85},
                   {"small batches", small_batches, 0.1, 0.85},
                   {"distant", far, 0.05, 0.85},
                   {"distant", far, 0.1, 0.85},
                   {"crowded", crowded, 0.05, 0.8},
                   {"crowded", crowded, 0.1, 0.8}};
    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        const struct server *server = &servers[i];
        unsigned settled = 0, good = 0;
        double first = 60, latest = 0, best = best_of(server->rate, 60), share = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            world w;
            world_init(&w, server->rate, server->noise, seed);
            run(&w, 60);
            double at = w.adapt.settled_at;
            settled += at >= 0;
            first = at >= 0 ? fmin(first, at) : first;
            latest = fmax(latest, at);
            good += rate_found(&w) >= 0.9 * best;
            share += (double)w.documents / (best * 60) / SEEDS;
        }
        print_message(
            "%s, noise %.0f %%: %u of %d searches settle within 60 s, after %.0f to %.0f s; "
            "%u near the best settings; %.3f of their documents\n",
            server->name, server->noise * 100, settled, SEEDS, first, latest, good, share);
        assert_int_equal(settled, SEEDS);
        assert_true(latest <= 59);
        assert_true(good >= SEEDS - 6);
        assert_true(share > server->share);
    }
}

/* A search that ended for lack of time continues where it stopped. A search from the beginning
 * would never come to the last move, the only one that is a gain here. */
TEST(continues_with_the_moves_that_are_left) {
    unsigned kept = 0, found = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, slow, 0.03, seed);
        while (w.adapt.settled_at < 0 && w.seconds < 60)
            run(&w, TICK);
        assert_true(w.adapt.settled_at > 0);
        assert_true(rate_found(&w) < 0.9 * best_of(slow, 60));
        unsigned changes = w.changes;
        run(&w, 29);
        kept += w.changes == changes; /* except where noise looks like a change of the rate */
        run(&w, 240 - w.seconds);
        found += rate_found(&w) >= 0.9 * best_of(slow, 240);
    }
    print_message("continued searches: %u of %d find the best settings\n", found, SEEDS);
    assert_true(kept >= SEEDS - 1);
    assert_true(found >= SEEDS - 1);
}

TEST(continues_an_undecided_comparison) {
    world w;
    world_init(&w, slow_small_gain, 0, 1);
    run(&w, 60);
    assert_true(w.adapt.settled_at > 0);
    assert_int_equal(w.adapt.base.threads, 4);
    run(&w, 90);
    assert_int_equal(w.adapt.base.threads, 8);
}

TEST(follows_a_change_in_the_middle) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        world w;
        world_init(&w, changing, 0.05, seed);
        run(&w, 120);
        sl_adapt_settings early = w.adapt.base;
        run(&w, 120);
        assert_true(rate_found(&w) >= 0.85 * best_of(far, 240));
        if (far(120, early.threads, early.batch_documents) >= 0.85 * best_of(far, 120))
            continue; /* the settings before the change are good after it as well */
        double settled = w.adapt.settled_at; /* after the change, if at all */
        assert_true(settled < 0 || settled > 120);
    }
}

TEST(a_short_load_keeps_its_settings) {
    world w;
    world_init(&w, far, 0.05, 3);
    w.ends = 9;
    run(&w, 9);
    assert_int_equal(w.changes, 0);
    assert_true(w.adapt.settled_at < 0);
}

/* "Only fewer threads or smaller batches are left to try" must be true only after the other
 * trials. */
TEST(reports_only_trials_that_were_run) {
    world w;
    world_init(&w, start_is_best, 0.03, 4);
    w.ends = 35; /* too short for trials of fewer threads and smaller batches */
    while (w.changes == 0 && w.seconds < 20)
        run(&w, 0.05);
    assert_true(w.adapt.now.threads > w.adapt.base.threads);
    assert_false(w.adapt.only_fewer_left);
    run(&w, 35 - w.seconds);
    assert_true(w.adapt.only_fewer_left);
    assert_true(w.adapt.settled_at < 0);
}

/* A disk that stalls every other second disturbs every short measuring window. */
TEST(continues_despite_frequent_stalls) {
    world w;
    world_init(&w, far, 0.03, 8);
    for (int i = 0; i < 3600; i++)
        tick(&w, i / 20 % 2 == 0);
    assert_true(w.adapt.disturbances > 0);
    assert_true(w.adapt.base.threads > 4);
}

/* During the election of a primary no batch is acknowledged. A measuring window with an election in
 * it must not count for or against the settings under trial. */
TEST(nothing_is_learned_from_an_election) {
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
            /* No window with the silence in it was evaluated. */
            assert_int_equal(w.adapt.step_count, steps);
            sl_adapt_settings now = w.adapt.now, best = w.adapt.base;
            assert_int_equal(now.threads, best.threads);
            assert_int_equal(now.batch_documents, best.batch_documents);
        }
        assert_true(rate_found(&w) >= 0.9 * best_of(flat, w.seconds));
    }
}

TEST(respects_its_limits) {
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
            sl_adapt_settings now = w.adapt.now;
            assert_in_range(now.threads, 1, all[i].threads_most);
            assert_in_range(now.batch_documents, 1, all[i].batch_most);
            if (!all[i].threads)
                assert_int_equal(now.threads, all[i].start.threads);
            if (!all[i].batches)
                assert_int_equal(now.batch_documents, all[i].start.batch_documents);
        }
        assert_true(w.adapt.base.threads >= all[i].start.threads);
    }
}

/* Where the limit in bytes ends batches, a larger limit in documents does not change them. */
TEST(larger_batches_are_not_tried_beyond_the_byte_limit) {
    sl_adapt adapt;
    sl_adapt_init(
        &adapt, &(sl_adapt_limits){
                    .start = {4, 10000}, .batches = true, .threads_most = 4, .batch_most = 100000});
    sl_adapt_figures figures = {.seconds_left = -1, .batch_room = 9000};
    for (int i = 0; i < 4000; i++) {
        figures.seconds += TICK;
        figures.answered = figures.seconds;
        figures.documents += 9000;
        figures.batches++;
        sl_adapt_tick(&adapt, &figures);
        assert_true(adapt.now.batch_documents <= 10000);
    }
}
