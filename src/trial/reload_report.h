/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a drill: tables, reload.json and the comparison with an earlier drill; and the
 * state of a drill, from which they are made. One thread, except for the signal handlers in
 * reload.c. */
#ifndef SHARDLOAD_RELOAD_REPORT_H
#define SHARDLOAD_RELOAD_REPORT_H

#include <stdatomic.h>

#include "extrapolate.h"
#include "reload.h"

#include "throwaway.h"

/* The phases until the first correct query, in order. PHASE_SOURCES to PHASE_VERIFY are the phases
 * in the record of the load. */
typedef enum sl_drill_phase {
    PHASE_START, /* connecting, removing leftovers, creating the work directory */
    PHASE_SOURCES,
    PHASE_CONNECT,
    PHASE_PREPARE,
    PHASE_LOAD,
    PHASE_INDEXES,
    PHASE_BALANCER,
    PHASE_VERIFY,
    PHASE_ACCOUNT, /* the load's remaining time: statistics of the shards, its record */
    PHASE_QUERY,   /* until the first correct answer */
    PHASES,
} sl_drill_phase;

typedef struct sl_phase_row {
    const char *name;
    sl_growth_model model;
} sl_phase_row;

extern const sl_phase_row sl_drill_phases[PHASES];

/* One load with its queries: a full drill has one step. A sampled drill has one step to warm up,
 * then alternately a small step and a step with the full sample, as often as configured. */
typedef struct sl_drill_step {
    double share; /* of the blocks; 1: all */
    char collection[SL_THROWAWAY_ROOM];
    bson_t load_record; /* of the load (run.json); always initialised */
    double documents;
    double text_bytes;
    double seconds[PHASES];
    double load_deviation; /* relative, of the load's rate; 0: unknown */
    sl_query_run *runs;    /* one per query of the suite; NULL before the queries */
    size_t run_count;
    uint64_t stored; /* documents in the collection after the queries; 0: unknown */
} sl_drill_step;

#define STEPS_MAX (1 + 2 * SL_SAMPLE_RUNS_MAX)

typedef struct sl_drill {
    const sl_reload_config *config;
    sl_connection *_Atomic connection; /* NULL until it is open. Read by the thread of signals */
    sl_trial_target target;            /* of a sampled drill, like the next one */
    sl_throwaway throwaway;
    char work_directory[512];
    int64_t start;
    int64_t wall_start; /* milliseconds since 1970 */
    sl_drill_step steps[STEPS_MAX];
    size_t step_count;
    _Atomic bool loading;   /* a load runs, which handles signals itself */
    bool wrong;             /* an answer was wrong */
    bool failed;            /* a query failed */
    bool checked;           /* a query has an expected answer */
    bool correct;           /* at least one answer was as expected */
    double first_correct;   /* seconds from the start to the first correct answer, or to the first
                             answer if none is expected; of a full drill */
    bool rejects;           /* records were rejected, within the limit */
    bool judged;            /* the drill has ended and was compared with the objective */
    sl_objective objective; /* set when `judged` */

    bool forecast;      /* the fields below are set: a sampled drill */
    sl_size total_size; /* documents of all sources */
    sl_prediction phases[PHASES];
    sl_prediction total;
    sl_prediction *queries; /* one per query of the suite, in seconds */
    sl_variation variation; /* of the load between runs */
    char notes[8][240];     /* limits of the prediction, for the reader */
    unsigned note_count;
} sl_drill;

/* The last step: of a sampled drill, the one with the full sample. */
static inline const sl_drill_step *sl_drill_last(const sl_drill *drill) {
    return &drill->steps[drill->step_count - 1];
}

/* Runs of each query: at least SAMPLE_REPEAT on a sample, because short runs scatter. */
#define SAMPLE_REPEAT 3
static inline unsigned sl_drill_repeat(const sl_drill *drill) {
    unsigned repeat = drill->config->repeat;
    return drill->config->sampled && repeat < SAMPLE_REPEAT ? SAMPLE_REPEAT : repeat;
}

/* Prints the tables and whether the objective is met. */
void sl_drill_print(const sl_drill *drill);
/* Appends the record of the drill to `record`, which is initialised. False without memory. */
bool sl_drill_record(const sl_drill *drill, sl_exit code, bson_t *record);

/* Can a drill be compared with this record? If not, sets the error (SL_EXIT_SOURCE). Checked before
 * the drill, which may take hours. */
bool sl_drill_check_last(const bson_t *last, sl_error *error);
/* Prints the comparison of two records of drills, per phase and in total. `last` has been checked.
 * False with error set (SL_EXIT_SOURCE) when `now` has loaded nothing or did not complete. */
bool sl_drill_compare(const bson_t *last, const bson_t *now, sl_error *error);

#endif
