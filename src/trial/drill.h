/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a drill: what its files share. One thread, but for the interrupts (reload.c). */
#ifndef SHARDLOAD_DRILL_H
#define SHARDLOAD_DRILL_H

#include <stdatomic.h>

#include <shardload/extrapolate.h>
#include <shardload/reload.h>

#include "throwaway.h"

/* The phases of the way to the first correct query, in their order. */
typedef enum sl_drill_phase {
    PHASE_START,    /* connecting, looking for leftovers, making the work directory */
    PHASE_SOURCES,  /* those of the load, by its own record */
    PHASE_CONNECT,
    PHASE_PREPARE,
    PHASE_LOAD,
    PHASE_INDEXES,
    PHASE_BALANCER,
    PHASE_VERIFY,
    PHASE_ACCOUNT,  /* the rest of the load: statistics of the shards, the record */
    PHASE_QUERY,    /* until the first answer is right */
    PHASES,
} sl_drill_phase;

typedef struct sl_phase_row {
    const char *name;
    sl_growth_model model;
} sl_phase_row;

extern const sl_phase_row sl_drill_phases[PHASES];

/* One load with its queries: the whole, or one size of a sample. */
typedef struct sl_drill_step {
    double share; /* of the blocks; 1: all */
    char collection[SL_THROWAWAY_ROOM];
    bson_t account; /* the load's whole record; initialised always */
    double documents;
    double text_bytes;
    double seconds[PHASES]; /* of a sample's query: the median of its runs */
    double load_deviation;  /* relative, of the load's rate; 0: unknown */
    sl_query_run *runs;     /* one per query of the suite; NULL before the queries */
    size_t run_count;
    uint64_t stored;        /* documents in the collection, when the queries began */
} sl_drill_step;

#define STEPS_MAX 3

typedef struct sl_drill {
    const sl_reload_config *config;
    sl_connection *connection;
    char work_directory[512];
    int64_t start;
    int64_t wall_start; /* milliseconds since 1970 */
    sl_drill_step steps[STEPS_MAX];
    size_t step_count;
    _Atomic bool loading;  /* a load of ours listens to signals, too */
    bool wrong;            /* an answer was */
    bool failed;           /* a query did */
    bool checked;          /* an answer was expected */
    bool correct;          /* and at least one was right */
    double first_correct;  /* seconds since the start; of a whole drill */
    bool rejects;          /* records were rejected, within the limit */
    bool judged;            /* the drill came to its end, and has been held against the objective */
    sl_objective objective; /* once it is judged */

    bool forecast; /* what follows is set: of a sample */
    sl_size whole; /* documents of it */
    sl_prediction phases[PHASES];
    sl_prediction total;
    sl_prediction *queries; /* one per query of the suite, milliseconds */
    char notes[8][240];     /* what the reader of the figures must know */
    unsigned note_count;
} sl_drill;

/* The last step: the whole, or the largest size of the sample. */
static inline const sl_drill_step *sl_drill_last(const sl_drill *drill) {
    return &drill->steps[drill->step_count - 1];
}

static inline bool sl_drill_sampled(const sl_drill *drill) {
    return drill->config->sampled;
}

/* Runs of each query. Those of a sample are short, and one alone would say little. */
#define SAMPLE_REPEAT 3
static inline unsigned sl_drill_repeat(const sl_drill *drill) {
    unsigned wanted = drill->config->repeat;
    return sl_drill_sampled(drill) && wanted < SAMPLE_REPEAT ? SAMPLE_REPEAT : wanted;
}

/* ---- drill_step.c ---- */

/* Runs the load of a step, and its queries. The step is counted in drill->step_count from the
 * beginning. On failure the reason has been reported, and its exit code is returned. */
sl_exit sl_drill_run_step(sl_drill *drill, double share, const char *collection,
                          const char *work_directory);
void sl_drill_step_clear(sl_drill_step *step);
/* The answer that a query of the suite must give; false when none is expected. The array lives as
 * long as the configuration. */
bool sl_drill_expected(const sl_drill *drill, const sl_query *query, bson_t *array);

/* ---- drill_forecast.c ---- */

/* From the steps of a sample to the whole. */
bool sl_drill_forecast(sl_drill *drill, sl_error *error);
void sl_drill_note(sl_drill *drill, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- drill_record.c ---- */

/* Prints the tables and the verdict. */
void sl_drill_print(const sl_drill *drill);
/* Makes the record of the drill in `record`, which is initialised. False without memory. */
bool sl_drill_record(const sl_drill *drill, sl_exit code, bson_t *record);

/* ---- drill_compare.c ---- */

/* Can a drill be compared with this record? False with error set (SL_EXIT_SOURCE): asked before the
 * drill, which may take hours. */
bool sl_drill_check_last(const bson_t *last, sl_error *error);
/* Prints how two records of drills compare, phase by phase and together. `last` has been checked;
 * false with error set (SL_EXIT_SOURCE) when this one has loaded nothing or did not come to its
 * end. */
bool sl_drill_compare(const bson_t *last, const bson_t *now, sl_error *error);

#endif
