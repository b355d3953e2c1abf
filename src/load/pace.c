/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: applies the settings of the search to the threads.
 *
 * Workers have indices; workers with an index below `active` work, the others wait. A worker reads
 * `active` between two blocks (worker.c). An inactive worker first sends the documents it holds, so
 * that their blocks can be completed, frees its batches, and waits here.
 *
 * Why no worker waits for ever: the condition it waits for - its index is below `active`, or `over`
 * is set - is read under the lock; both variables are changed under the lock, followed by a
 * broadcast. So either the worker reads after the change, or it is waiting already when the
 * broadcast comes:
 *
 *     worker (index 5)                          main thread, or a thread that ends the load
 *     lock; 5 < active (4)? no; over? no
 *     wait (unlocks) ........................   lock; active = 8, or over = true; unlock; broadcast
 *     woken; lock; 5 < 8: unlock, work
 *
 * `active` is atomic only so that active workers need not take the lock for each block. A worker
 * that reads an old value processes one more block, or comes here and reads again under the lock.
 *
 * `over` is set by everything that ends a load: a worker that finds no block left (then no worker
 * finds one: sl_reader_next), the first failure, Ctrl-C. It is never reset, so the order in which
 * it and `active` change does not matter. Index 0 is always below `active`: at least one worker is
 * active and ends in one of these ways. A parked worker holds nothing that another worker could
 * wait for: no document, no lock, no part of a block. If it began to read a sequential source,
 * another reader continues with that source when no other source is left to begin (block.c). */
#include "pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include "run.h"

#define DISTURBANCES_MANY                                                                          \
    4 /* from this number on, the summary names them as the reason for not
                               settling */

void sl_pace_init(sl_pace *pace, unsigned threads, uint32_t batch_documents) {
    pthread_mutex_init(&pace->lock, NULL);
    pthread_cond_init(&pace->changed, NULL);
    atomic_store(&pace->active, threads);
    atomic_store(&pace->batch_documents, batch_documents);
    pace->most_active = threads;
}

void sl_pace_clear(sl_pace *pace) {
    free(pace->adapt);
    pthread_cond_destroy(&pace->changed);
    pthread_mutex_destroy(&pace->lock);
}

void sl_pace_hold(sl_pace *pace, unsigned threads, uint32_t batch_documents) {
    atomic_store_explicit(&pace->batch_documents, batch_documents, memory_order_relaxed);
    pthread_mutex_lock(&pace->lock);
    atomic_store_explicit(&pace->active, threads, memory_order_relaxed);
    pthread_cond_broadcast(&pace->changed);
    pthread_mutex_unlock(&pace->lock);
    if (threads > pace->most_active)
        pace->most_active = threads;
}

static void hold_now(sl_pace *pace) {
    sl_adapt_settings now = pace->adapt->now;
    sl_pace_hold(pace, now.threads, now.batch_documents);
}

bool sl_pace_start(sl_run *run, uint32_t batch_most, sl_error *error) {
    const sl_load_config *config = run->job->config;
    sl_pace *pace = &run->pace;
    if (config->threads_most == 0 && !config->adapt_batches)
        return true;
    pace->adapt = malloc(sizeof *pace->adapt);
    if (!pace->adapt)
        return sl_error_memory(error, "starting workers");
    uint32_t batch = config->batch_documents < batch_most ? config->batch_documents : batch_most;
    sl_adapt_init(pace->adapt, &(sl_adapt_limits){.start = {config->threads, batch},
                                                  .threads = config->threads_most > 0,
                                                  .batches = config->adapt_batches,
                                                  .threads_most = run->threads,
                                                  .batch_most = batch_most});
    hold_now(pace);
    return true;
}

/* Seconds until the sources have been read, at the rate so far; below 0 if that is not known. */
static double seconds_left(const sl_job *job, double seconds) {
    if (job->has_pipe)
        return -1;
    double all = (double)sl_source_set_stored_bytes(job->set);
    double done = (double)sl_source_set_consumed_bytes(job->set);
    return done > 0 && done < all ? seconds * (all - done) / done : done > 0 ? 0 : -1;
}

void sl_pace_tick(sl_run *run, int64_t start) {
    const sl_load_config *config = run->job->config;
    sl_pace *pace = &run->pace;
    /* Under a rate limit, which may be set while the load runs, no rate can be compared. */
    if (!pace->adapt || sl_rate_limit_batch(run->rate_limit) != UINT32_MAX)
        return;
    sl_run_totals sum = sl_run_sum(run);
    double seconds = sl_seconds_since(start);
    sl_adapt_figures figures = {
        .seconds = seconds,
        .answered = sum.answered_ns > start ? (double)(sum.answered_ns - start) / 1e9 : 0,
        .documents = sum.inserted + sum.already_stored + sum.changed + sum.server_rejects,
        .batches = sum.batches,
        .retries = sum.retries + sl_rate_limit_changes(run->rate_limit), /* invalidates the
                                                                            measurement */
        .seconds_left = seconds_left(run->job, seconds),
    };
    if (sum.inserted + sum.already_stored + sum.changed > 0) {
        double mean = (double)sum.bson_bytes / (double)figures.documents;
        double room = (double)sl_load_batch_room(config, run->job->shards) / (mean > 1 ? mean : 1);
        figures.batch_room = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    }
    if (sl_adapt_tick(pace->adapt, &figures))
        hold_now(pace);
}

void sl_pace_wait(sl_pace *pace, unsigned index) {
    pthread_mutex_lock(&pace->lock);
    pace->parked++;
    while (index >= atomic_load_explicit(&pace->active, memory_order_relaxed) && !pace->over)
        pthread_cond_wait(&pace->changed, &pace->lock);
    pace->parked--;
    pthread_mutex_unlock(&pace->lock);
}

void sl_pace_over(sl_pace *pace) {
    pthread_mutex_lock(&pace->lock);
    pace->over = true;
    pthread_cond_broadcast(&pace->changed);
    pthread_mutex_unlock(&pace->lock);
}

/* ---- the result ---- */

unsigned sl_pace_threads(const sl_run *run) {
    return run->pace.adapt ? run->pace.adapt->base.threads : run->threads;
}

void sl_pace_record(const sl_pace *pace, bson_t *record) {
    const sl_adapt *adapt = pace->adapt;
    if (!adapt)
        return;
    bson_t section, array;
    sl_adapt_settings best = adapt->base;
    BSON_APPEND_DOCUMENT_BEGIN(record, "adaptation", &section);
    BSON_APPEND_INT32(&section, "threads", (int32_t)best.threads);
    BSON_APPEND_INT32(&section, "batchSize", (int32_t)best.batch_documents);
    BSON_APPEND_INT32(&section, "threadsMost", (int32_t)pace->most_active);
    if (adapt->settled_at >= 0)
        BSON_APPEND_DOUBLE(&section, "settledAfterSeconds", adapt->settled_at);
    if (adapt->disturbances > 0)
        BSON_APPEND_INT32(&section, "disturbances", (int32_t)adapt->disturbances);
    if (adapt->steps_left_out > 0)
        BSON_APPEND_INT32(&section, "stepsLeftOut", (int32_t)adapt->steps_left_out);
    BSON_APPEND_ARRAY_BEGIN(&section, "steps", &array);
    for (unsigned i = 0; i < adapt->step_count; i++) {
        const sl_adapt_step *step = &adapt->steps[i];
        char room[SL_ARRAY_KEY_ROOM];
        BCON_APPEND(&array, sl_array_key(i, room), "{", "seconds", BCON_DOUBLE(step->seconds),
                    "threads", BCON_INT32((int32_t)step->settings.threads), "batchSize",
                    BCON_INT32((int32_t)step->settings.batch_documents), "rate",
                    BCON_DOUBLE(step->rate), "}");
    }
    bson_append_array_end(&section, &array);
    bson_append_document_end(record, &section);
}

void sl_pace_log(const sl_pace *pace) {
    const sl_adapt *adapt = pace->adapt;
    char batch[SL_HUMAN_ROOM], after[SL_HUMAN_ROOM];
    if (!adapt)
        return;
    sl_adapt_settings best = adapt->base;
    sl_human_count(best.batch_documents, batch);
    if (adapt->settled_at >= 0)
        sl_log_result("  settled on %s, batches of %s after %s", sl_plural(best.threads, "thread"),
                      batch, sl_human_seconds(adapt->settled_at, after));
    else
        sl_log_result(
            "  %s, batches of %s: %s", sl_plural(best.threads, "thread"), batch,
            adapt->disturbances >= DISTURBANCES_MANY
                ? "pauses of the server and batches sent again left no time to compare other "
                  "settings"
            : adapt->only_fewer_left
                ? "more threads and larger batches are not faster; the load was too short to "
                  "compare fewer threads and smaller batches"
                : "the load was too short to compare other settings");
}

/* ---- the search ---- */

/* Adaptation: hill climbing by paired comparisons.
 *
 * A server's rate varies: caches fill, checkpoints come and go, other clients work. Two rates
 * measured one after the other are hard to compare. So a trial (B) is measured between two
 * measurements of the present settings (A B A). Its gain is B over the mean of the two A; a steady
 * drift does not change it. The number of such pairs depends on their gains: the limits of
 * acceptance and refusal begin far apart and converge on GAIN_LEAST. So a gain of a fifth is
 * accepted at once, a loss is refused at once, and a small difference takes up to PAIRS_MOST pairs;
 * these cost little because the rates are nearly equal. A gain below GAIN_LEAST is never accepted,
 * so noise does not change the settings.
 *
 * The moves are tried from the base in the order of their table. A move that is a gain becomes the
 * base, and is tried again from there. When no move is left, the search has settled: only the base
 * is measured from then on. A new search begins after a waiting time, which doubles after each
 * search, or when the rate has differed for two windows.
 *
 * A search begins no trial that would end after SEARCH_SECONDS. The base then stays for
 * RESUME_SECONDS, after which the search continues where it stopped, for as long again. A gain is a
 * ratio of rates that were measured together, so the pairs of an undecided comparison still count
 * after that time.
 *
 * A rate is measured between two acknowledgements, not between two ticks: with few, large batches
 * most of a second can pass between two acknowledgements. A window holds several batches per
 * thread, because the batches of several threads may be answered together. It opens after each
 * thread has had an answer under the settings in question, and ends when it is long enough both in
 * seconds and in batches. A window is not used if a batch had to be sent again in it, or if no
 * answer came for half of its time (an election, a disk that hangs). Then the comparison is dropped
 * and begun again after a pause, with longer windows: if a disk hangs every other second, each long
 * window contains the same share of that.
 *
 * The cost of trials is limited: no trial is begun when the load is about to end, moves to fewer
 * threads or documents (which can lose most) need a longer remaining time, and a trial that is
 * clearly slower ends early. */

#define START_SECONDS 1.5
#define SETTLE_SECONDS 0.4 /* minimum time between a change and the measurement */
#define SETTLE_SECONDS_MOST 5.0
#define WINDOW_SECONDS 1.5 /* shortest measurement of a rate */
#define WINDOW_SECONDS_MOST 12.0
#define STRETCH_MOST 3    /* doublings of WINDOW_SECONDS, one after each disturbed window */
#define WINDOW_BATCHES 16 /* minimum of a window */
#define WINDOW_ROUNDS 4   /* minimum of batches per thread */
#define WATCH_SECONDS 5.0 /* minimum of a window once settled */
#define EARLY_SECONDS 0.6 /* after this time a trial ends early if its rate is below EARLY_SHARE */
#define EARLY_SHARE 0.75  /* as a share of the base's rate */
#define GAIN_LEAST 1.05
#define PAIRS_MOST 4
#define LATENCY_MOST 2.0    /* a move without gain that multiplies the latency by more is refused */
#define STEADY_SHARE 0.2    /* two rates of the base that differ more require another pair */
#define PAUSE_SECONDS 5.0   /* after a disturbance */
#define SEARCH_SECONDS 52.0 /* a search begins no trial that is expected to end after this time; */
#define RESUME_SECONDS 30.0 /* after this pause it continues with the moves that are left */
#define PATIENCE_SECONDS 60.0
#define PATIENCE_SECONDS_MOST 900.0
#define ODD_SHARE 0.3 /* a rate that differs more from the known rate is odd */
#define ODD_WINDOWS 2 /* after this many odd windows in a row the rate has changed */

/* The moves in the order in which they are tried: first more threads, which help with a distant
 * server and cost little when they are wrong; then moves whose windows are short; last moves to
 * larger batches, whose windows last many seconds on a slow server. The last move changes both
 * settings: fewer threads with larger batches have as many documents in flight in fewer batches,
 * although neither step alone need be a gain. */
static const struct {
    int threads, batches; /* 1: more, -1: fewer, 0: as they are */
    double left_least;    /* remaining seconds of the load that the move needs */
} moves[SL_ADAPT_MOVES] = {
    {1, 0, 10}, {0, -1, 40}, {-1, 0, 40}, {0, 1, 10}, {-1, 1, 20},
};

/* Batch sizes; a move goes two rungs. The gain of a smaller step could not be measured. */
static const uint32_t rungs[] = {100, 250, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
enum { RUNGS = sizeof rungs / sizeof rungs[0] };

static uint32_t batch_moved(uint32_t from, bool more) {
    unsigned at = 0;
    while (at + 1 < RUNGS && rungs[at + 1] <= from)
        at++;
    if (more)
        return rungs[at + 2 < RUNGS ? at + 2 : RUNGS - 1];
    if (rungs[at] < from) /* between two rungs */
        at++;
    return rungs[at >= 2 ? at - 2 : 0];
}

/* The settings after a move from the base. False if a limit prevents any of its changes. */
static bool apply_move(const sl_adapt *adapt, unsigned move, const sl_adapt_figures *figures,
                       sl_adapt_settings *result) {
    const sl_adapt_limits *limits = &adapt->limits;
    int threads = moves[move].threads, batches = moves[move].batches;
    *result = adapt->base;
    if (threads != 0) {
        unsigned to = threads > 0 ? adapt->base.threads * 2 : adapt->base.threads / 2;
        result->threads = to > limits->threads_most ? limits->threads_most : to < 1 ? 1 : to;
        if (!limits->threads || result->threads == adapt->base.threads)
            return false;
    }
    if (batches == 0)
        return true;
    /* More documents per batch change nothing where batches are already limited by bytes. */
    uint32_t room = figures->batch_room;
    if (batches > 0 && room > 0 && adapt->base.batch_documents >= room - room / 4)
        return false;
    uint32_t to = batch_moved(adapt->base.batch_documents, batches > 0);
    result->batch_documents = to > limits->batch_most ? limits->batch_most : to;
    return limits->batches && (batches > 0 ? result->batch_documents > adapt->base.batch_documents
                                           : result->batch_documents < adapt->base.batch_documents);
}

/* ---- windows ---- */

/* Have the batches of the earlier settings been answered? */
static bool earlier_batches_answered(const sl_adapt *adapt, const sl_adapt_figures *figures) {
    const sl_adapt_window *window = &adapt->window;
    double waited = figures->seconds - window->requested;
    return waited >= SETTLE_SECONDS_MOST ||
           (waited >= SETTLE_SECONDS &&
            figures->batches - window->requested_batches >= adapt->now.threads);
}

static double rate_of(const sl_adapt_window *window) {
    double seconds = window->end - window->start;
    return seconds > 0 ? (double)(window->end_documents - window->start_documents) / seconds : 0;
}

/* Batches of a window with these settings, at least. */
static uint64_t required_batches(sl_adapt_settings settings) {
    uint64_t rounds = WINDOW_ROUNDS * (uint64_t)settings.threads;
    return rounds > WINDOW_BATCHES ? rounds : WINDOW_BATCHES;
}

static double window_least(const sl_adapt *adapt, sl_adapt_stage stage) {
    return stage == ADAPT_SETTLED ? WATCH_SECONDS : WINDOW_SECONDS * (double)(1u << adapt->stretch);
}

/* Expected time for a window with these settings and for the answers before it, at the base's
 * rate. */
static double expected_seconds(const sl_adapt *adapt, sl_adapt_settings settings) {
    double batch = settings.batch_documents / adapt->before;
    double window =
        fmax(window_least(adapt, ADAPT_TRIAL), batch * (double)required_batches(settings));
    return fmin(SETTLE_SECONDS_MOST, fmax(SETTLE_SECONDS, batch * settings.threads)) +
           fmin(WINDOW_SECONDS_MOST, window);
}

typedef enum window_state { WINDOW_GOES_ON, WINDOW_COMPLETE, WINDOW_DISTURBED } window_state;

static window_state look_at_window(sl_adapt *adapt, const sl_adapt_figures *figures) {
    sl_adapt_window *window = &adapt->window;
    if (figures->retries != window->retries)
        return WINDOW_DISTURBED;
    if (!window->open) {
        if (!earlier_batches_answered(adapt, figures))
            return WINDOW_GOES_ON;
        window->open = true;
        window->start = -1;
        window->start_batches = figures->batches;
    }
    if (window->start < 0) { /* the window begins at the next acknowledgement */
        if (figures->batches == window->start_batches)
            return figures->seconds - window->requested > WINDOW_SECONDS_MOST ? WINDOW_DISTURBED
                                                                              : WINDOW_GOES_ON;
        window->start = window->end = figures->answered;
        window->start_documents = window->end_documents = figures->documents;
        window->start_batches = window->end_batches = figures->batches;
        return WINDOW_GOES_ON;
    }
    double gap = figures->seconds - window->end;
    if (gap > window->longest_gap)
        window->longest_gap = gap;
    if (figures->batches != window->end_batches) {
        window->end = figures->answered;
        window->end_documents = figures->documents;
        window->end_batches = figures->batches;
    }
    double length = window->end - window->start;
    uint64_t batches = window->end_batches - window->start_batches;
    uint64_t required = required_batches(adapt->now);
    bool too_long = figures->seconds - window->start > WINDOW_SECONDS_MOST;
    bool still = window->longest_gap > length / 2;
    bool plainly_worse = adapt->stage == ADAPT_TRIAL && length >= EARLY_SECONDS && !still &&
                         batches >= required / 2 && rate_of(window) < EARLY_SHARE * adapt->before;
    if (!plainly_worse && !too_long &&
        (length < window_least(adapt, adapt->stage) || batches < required))
        return WINDOW_GOES_ON;
    return batches < 2 || still ? WINDOW_DISTURBED : WINDOW_COMPLETE;
}

static void keep_step(sl_adapt *adapt, const sl_adapt_figures *figures, double rate) {
    if (adapt->step_count < SL_ADAPT_STEPS)
        adapt->steps[adapt->step_count++] = (sl_adapt_step){figures->seconds, adapt->now, rate};
    else
        adapt->steps_left_out++;
}

/* ---- the search ---- */

static void measure(sl_adapt *adapt, sl_adapt_stage stage, const sl_adapt_figures *figures) {
    adapt->stage = stage;
    adapt->now = stage == ADAPT_TRIAL ? adapt->trial : adapt->base;
    adapt->window = (sl_adapt_window){.requested = figures->seconds,
                                      .requested_batches = figures->batches,
                                      .retries = figures->retries};
}

/* The base stays for some seconds, unless the rate changes. */
static void stay(sl_adapt *adapt, double seconds, const sl_adapt_figures *figures) {
    if (adapt->settled_at < 0)
        adapt->settled_at = figures->seconds;
    adapt->settled_rate = 0; /* `before` is of a short window */
    adapt->odd_windows = 0;
    adapt->not_before = figures->seconds + seconds;
    measure(adapt, ADAPT_SETTLED, figures);
}

/* No move is left. */
static void settle(sl_adapt *adapt, const sl_adapt_figures *figures) {
    adapt->moves_left = false;
    adapt->stretch = 0;
    stay(adapt, adapt->patience, figures);
    adapt->patience *= 2;
    if (adapt->patience > PATIENCE_SECONDS_MOST)
        adapt->patience = PATIENCE_SECONDS_MOST;
}

static void forget_pairs(sl_adapt *adapt) {
    adapt->pairs = 0;
    adapt->gains = 0;
}

/* Begins the trial of `adapt->move`, or postpones it if the search has no time left for it. */
static void try_or_postpone(sl_adapt *adapt, const sl_adapt_figures *figures) {
    double seconds = figures->seconds - adapt->search_began +
                     expected_seconds(adapt, adapt->trial) + expected_seconds(adapt, adapt->base);
    if (seconds <= SEARCH_SECONDS) {
        measure(adapt, ADAPT_TRIAL, figures);
    } else {
        adapt->moves_left = true;
        stay(adapt, RESUME_SECONDS, figures);
    }
}

static bool is_odd(double rate, double known) {
    return known > 0 && fabs(rate / known - 1) > ODD_SHARE;
}

static void search_anew(sl_adapt *adapt, double rate, const sl_adapt_figures *figures);

/* The base has been measured: begins the next trial, if there is one. */
static void try_next(sl_adapt *adapt, const sl_adapt_figures *figures) {
    bool later = false, only_fewer = true; /* is a move left for later, for lack of time? */
    adapt->only_fewer_left = false;
    /* The move that was a gain comes first: the same move may be a gain again. */
    for (unsigned i = 0; i < SL_ADAPT_MOVES; i++) {
        unsigned move = (adapt->move + i) % SL_ADAPT_MOVES;
        if (adapt->refused[move] || !apply_move(adapt, move, figures, &adapt->trial))
            continue;
        if (figures->seconds_left >= 0 && figures->seconds_left < moves[move].left_least) {
            later = true;
            only_fewer = only_fewer && moves[move].threads <= 0 && moves[move].batches <= 0;
            continue;
        }
        if (move != adapt->move)
            forget_pairs(adapt);
        adapt->move = move;
        try_or_postpone(adapt, figures);
        return;
    }
    adapt->only_fewer_left = later && only_fewer;
    if (later) {
        measure(adapt, ADAPT_BASE, figures);
    } else if (is_odd(adapt->before, adapt->search_rate) && !adapt->repeated) {
        adapt->repeated = true; /* the moves were refused at another rate */
        search_anew(adapt, adapt->before, figures);
    } else {
        adapt->repeated = false;
        settle(adapt, figures);
    }
}

/* The limits converge on GAIN_LEAST as pairs are added. */
static double accept_limit(unsigned pairs) {
    return GAIN_LEAST + (pairs < PAIRS_MOST ? 0.12 / pairs : 0);
}

static double refuse_limit(unsigned pairs) {
    return GAIN_LEAST - (pairs < PAIRS_MOST ? 0.06 / pairs : 0);
}

/* Latency of a batch's documents under the trial over that of the base, at this gain. A worker has
 * one batch in flight, so by Little's law the latency is the documents in flight over the rate. */
static double latency_ratio(const sl_adapt *adapt, double gain) {
    double trial = (double)adapt->trial.threads * adapt->trial.batch_documents;
    double base = (double)adapt->base.threads * adapt->base.batch_documents;
    return trial / base / gain;
}

/* A B A is complete: `rate` is the second A. */
static void judge(sl_adapt *adapt, double rate, const sl_adapt_figures *figures) {
    double before = adapt->before, difference = rate > before ? rate - before : before - rate;
    bool steady = difference <= STEADY_SHARE * (rate + before) / 2;
    adapt->gains += adapt->tried / ((before + rate) / 2);
    adapt->pairs++;
    double gain = adapt->gains / adapt->pairs;
    adapt->before = rate; /* the first A of the next pair */
    adapt->tried = 0;
    if (gain >= accept_limit(adapt->pairs) && (steady || adapt->pairs > 1)) {
        adapt->base = adapt->trial;
        adapt->before = adapt->search_rate = 0;
        adapt->settled_at = -1;
        forget_pairs(adapt);
        memset(adapt->refused, 0, sizeof adapt->refused); /* the move back is tried again, too */
        measure(adapt, ADAPT_BASE, figures);
    } else if (gain < refuse_limit(adapt->pairs) || adapt->pairs == PAIRS_MOST ||
               (gain < GAIN_LEAST && latency_ratio(adapt, gain) > LATENCY_MOST)) {
        adapt->refused[adapt->move] = true;
        adapt->move = 0;
        forget_pairs(adapt);
        try_next(adapt, figures);
    } else {
        try_or_postpone(adapt, figures);
    }
}

static void search_anew(sl_adapt *adapt, double rate, const sl_adapt_figures *figures) {
    memset(adapt->refused, 0, sizeof adapt->refused);
    adapt->move = 0;
    forget_pairs(adapt);
    adapt->before = adapt->search_rate = rate;
    try_next(adapt, figures);
}

/* A window of the settled load. */
static void watch(sl_adapt *adapt, double rate, const sl_adapt_figures *figures) {
    if (is_odd(rate, adapt->settled_rate)) {
        if (++adapt->odd_windows >= ODD_WINDOWS) {
            adapt->patience = PATIENCE_SECONDS;
            adapt->settled_rate = rate;
            adapt->odd_windows = 0;
            adapt->repeated = false;
            adapt->search_began = figures->seconds;
            search_anew(adapt, rate, figures);
            return;
        }
    } else {
        adapt->odd_windows = 0;
        double known = adapt->settled_rate > 0 ? adapt->settled_rate : rate;
        adapt->settled_rate = known + (rate - known) / 4;
    }
    if (figures->seconds < adapt->not_before || adapt->odd_windows > 0) {
        measure(adapt, ADAPT_SETTLED, figures);
        return;
    }
    adapt->search_began = figures->seconds;
    if (adapt->moves_left) {
        adapt->before = rate;
        try_next(adapt, figures);
    } else {
        search_anew(adapt, rate, figures);
    }
}

static void on_window(sl_adapt *adapt, double rate, const sl_adapt_figures *figures) {
    if (adapt->stage == ADAPT_TRIAL || adapt->tried > 0 || adapt->step_count == 0)
        keep_step(adapt, figures, rate);
    switch (adapt->stage) {
    case ADAPT_TRIAL:
        adapt->tried = rate;
        measure(adapt, ADAPT_BASE, figures);
        break;
    case ADAPT_BASE:
        if (adapt->tried > 0) {
            judge(adapt, rate, figures);
        } else {
            if (adapt->search_rate <= 0)
                adapt->search_rate = rate;
            adapt->before = rate;
            try_next(adapt, figures);
        }
        break;
    case ADAPT_SETTLED:
        watch(adapt, rate, figures);
        break;
    case ADAPT_STARTING:
        break;
    }
}

/* Drops the measurements of the comparison in which a window was disturbed. */
static void on_disturbance(sl_adapt *adapt, const sl_adapt_figures *figures) {
    bool settled = adapt->stage == ADAPT_SETTLED;
    adapt->disturbances++;
    if (adapt->stretch < STRETCH_MOST) /* a longer window averages over repeated disturbances */
        adapt->stretch++;
    forget_pairs(adapt);
    adapt->tried = adapt->before = 0;
    adapt->odd_windows = 0;
    measure(adapt, settled ? ADAPT_SETTLED : ADAPT_BASE, figures);
    adapt->window.requested = figures->seconds + PAUSE_SECONDS; /* it opens after the pause */
}

/* ---- the public functions ---- */

void sl_adapt_init(sl_adapt *adapt, const sl_adapt_limits *limits) {
    memset(adapt, 0, sizeof *adapt);
    adapt->limits = *limits;
    adapt->base = adapt->now = limits->start;
    adapt->settled_at = -1;
    adapt->patience = PATIENCE_SECONDS;
}

bool sl_adapt_tick(sl_adapt *adapt, const sl_adapt_figures *figures) {
    sl_adapt_settings before = adapt->now;
    if (adapt->stage == ADAPT_STARTING) {
        if (figures->seconds >= START_SECONDS && figures->batches >= adapt->now.threads) {
            adapt->search_began = figures->seconds;
            measure(adapt, ADAPT_BASE, figures);
        }
        return false;
    }
    switch (look_at_window(adapt, figures)) {
    case WINDOW_COMPLETE:
        on_window(adapt, rate_of(&adapt->window), figures);
        break;
    case WINDOW_DISTURBED:
        on_disturbance(adapt, figures);
        break;
    case WINDOW_GOES_ON:
        break;
    }
    return adapt->now.threads != before.threads ||
           adapt->now.batch_documents != before.batch_documents;
}
