/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload tune` from start to end: connects, drops leftovers of a killed tuning, chooses the
 * sample, searches, compares the storage of compressors, reports and recommends.
 *
 * All trials use one temporary collection, which each trial creates and drops. It is also dropped
 * after an error, and after a second Ctrl-C by the signal thread. If the process is killed, the
 * collection remains until the next tuning of the same collection. */
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/json.h"
#include "report/report.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

/* ---- interrupts ---- */

static bool on_first_signal(void *context) {
    const sl_tune *tune = context;
    if (!tune->connection) /* it may be waiting for a server */
        return true;
    sl_log_warning("stopping, and dropping the temporary collection; press Ctrl-C again to stop at "
                   "once");
    return false;
}

static void on_second_signal(void *context) {
    sl_error error = {0};
    sl_tune *tune = context;
    if (!sl_throwaway_drop_at_once(&tune->throwaway, &error))
        sl_log_error(SL_LINES, error.message);
    sl_log_warning("stopped at once");
}

/* ---- the work directory ---- */

static bool name_work_directory(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    if (load->work_directory) {
        if (strlen(load->work_directory) >= sizeof tune->work_directory)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                sizeof tune->work_directory - 1);
        strcpy(tune->work_directory, load->work_directory);
        return sl_private_folder_make(tune->work_directory, NULL, error) ||
               sl_error_prefix(error, "--work-dir");
    }
    time_t now = time(NULL);
    struct tm local;
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    snprintf(tune->work_directory, sizeof tune->work_directory, "shardload-tune-%s.%s-%s-%ld",
             load->database, load->collection, stamp, (long)getpid());
    return sl_private_folder_make(tune->work_directory, NULL, error) ||
           sl_error_prefix(error, "name another directory with --work-dir");
}

/* Checks before the trials that the result files can be written. */
static bool check_files(const sl_tune *tune, sl_error *error) {
    const char *report = tune->config->load->report;
    char path[600];
    snprintf(path, sizeof path, "%s/tune.json", tune->work_directory);
    return sl_json_may_write_file(path, error) &&
           (!report || sl_json_may_write_file(report, error)) &&
           (!tune->config->html || sl_json_may_write_file(tune->config->html, error)) &&
           (!tune->config->save || sl_private_file_may_replace(tune->config->save, error));
}

/* ---- trials ---- */

static sl_trial_result measure(void *context, const size_t *at, double *rate) {
    sl_tune *tune = context;
    if (sl_interrupt_requested()) {
        tune->interrupted = true;
        return SL_TRIAL_STOP;
    }
    if (sl_tune_time_is_up(tune)) {
        tune->out_of_time = true;
        return SL_TRIAL_STOP;
    }
    sl_tune_load figures;
    char setting[200], human[SL_HUMAN_ROOM];
    sl_tune_describe(tune, at, setting, sizeof setting);
    size_t cell = sl_tune_cell(tune, at);
    double after = sl_seconds_since(tune->begun);
    if (!sl_tune_load_once(tune, at, tune->share, SL_TUNE_FOR_RATE, &figures)) {
        /* A setting that worked before cannot be refused: the failure has another cause. */
        if (tune->search.cells[cell].trials > 0 || !sl_tune_was_refused(tune))
            return SL_TRIAL_STOP;
        sl_log_warning("left out: %s, which failed for the reason above", setting);
        return SL_TRIAL_IMPOSSIBLE;
    }
    if (figures.seconds <= 0 || figures.documents == 0) {
        sl_error_set(&tune->failure, SL_EXIT_SOURCE,
                     "a trial was too short to be timed: give larger sources, or a larger "
                     "--trial-bytes");
        return SL_TRIAL_STOP;
    }
    tune->trials[cell * SL_TUNE_TIMES_MAX + tune->search.cells[cell].trials] =
        (sl_tune_trial){after, figures.documents, figures.seconds};
    *rate = (double)figures.documents / figures.seconds;
    sl_log_info("trial %zu of at most %zu: %s: %s documents/s", tune->search.trials + 1,
                tune->planned, setting, sl_human_count((uint64_t)*rate, human));
    return SL_TRIAL_MEASURED;
}

static void plan_search(sl_tune *tune) {
    const sl_tune_config *config = tune->config;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++)
        tune->dimensions[d] = (sl_search_dimension){
            .name = sl_tune_option(d),
            .count = config->values[d].count,
            .ordered = d == SL_TUNE_THREADS || d == SL_TUNE_BATCH_SIZE,
            .standard = tune->standard[d],
        };
    tune->plan = (sl_search_plan){
        .dimensions = tune->dimensions,
        .dimension_count = SL_TUNE_DIMENSIONS,
        .kind = config->search,
        .repeats = config->repeats,
        .trials_max = config->trials_max,
        .seed = (uint64_t)tune->begun_at,
        .usable = sl_tune_is_usable,
        .measure = measure,
        .context = tune,
    };
}

static void announce_trials(sl_tune *tune) {
    char count[SL_HUMAN_ROOM], duration[SL_HUMAN_ROOM], bytes[SL_HUMAN_ROOM];
    tune->planned = sl_search_trials_max(&tune->plan);
    size_t cells = sl_search_cells(&tune->plan), all = 1;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        size_t taken = 0;
        for (size_t v = 0; v < tune->dimensions[d].count; v++)
            taken += !tune->refused[d][v];
        all *= taken;
    }
    double seconds = (double)tune->planned * (tune->trial_seconds + tune->other_seconds);
    sl_log_info("each trial loads the same %s documents (%s of BSON), %.3g %% of the sources",
                sl_human_count(tune->documents, count),
                sl_human_bytes((double)tune->bson_bytes, bytes), 100 * tune->share);
    if (cells < all)
        sl_log_warning("%zu of %zu settings are left out: with so many threads and such large "
                       "batches%s the sample is too small to keep all threads busy; %s",
                       all - cells, all, tune->open_batches > 1 ? ", one for each shard," : "",
                       tune->share < 1 ? "give a larger --trial-bytes to include them"
                                       : "the sample is all data: give larger sources to include "
                                         "them");
    sl_log_info("at most %zu trials of %zu settings, about %s%s", tune->planned, cells,
                sl_human_seconds(seconds, duration),
                tune->config->time_max > 0 && tune->config->time_max < seconds
                    ? ", limited by --max-time"
                    : "");
}

/* Checks the size of the grid before anything is loaded. */
static bool check_size(const sl_tune *tune, sl_error *error) {
    size_t cells = 1;
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS && cells <= SL_SEARCH_CELLS_MAX; d++)
        cells *= tune->config->values[d].count;
    return cells <= SL_SEARCH_CELLS_MAX ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "more than %d settings to try: name fewer values with the --try options",
                        SL_SEARCH_CELLS_MAX);
}

static bool no_time_for_a_trial(const sl_tune *tune, sl_error *error) {
    char limit[SL_HUMAN_ROOM], before[SL_HUMAN_ROOM], trial[SL_HUMAN_ROOM];
    return sl_error_set(
        error, SL_EXIT_USAGE,
        "no trial fits into --max-time (%s): the preparation took %s, and a trial takes "
        "about %s; give more time, or a smaller --trial-bytes",
        sl_human_seconds(tune->config->time_max, limit),
        sl_human_seconds(sl_seconds_since(tune->begun), before),
        sl_human_seconds(tune->trial_seconds + tune->other_seconds, trial));
}

static bool search(sl_tune *tune, sl_error *error) {
    plan_search(tune);
    announce_trials(tune);
    tune->trials =
        calloc(sl_search_grid_size(&tune->plan) * SL_TUNE_TIMES_MAX, sizeof *tune->trials);
    if (!tune->trials)
        return sl_error_memory(error, "starting the trials");
    if (!sl_search_run(&tune->plan, &tune->search, error))
        return false;
    if (tune->failure.code) {
        *error = tune->failure;
        return false;
    }
    if (tune->search.trials == 0 && tune->out_of_time)
        return no_time_for_a_trial(tune, error);
    if (tune->search.trials == 0 && !tune->interrupted)
        return sl_error_set(error, SL_EXIT_CLUSTER, "no setting works: see the reasons above");
    if (tune->out_of_time)
        sl_log_warning("--max-time is reached after %zu trials: the result is based on these",
                       tune->search.trials);
    return true;
}

/* ---- recommendation and records ---- */

static bool save_recommendation(const sl_tune *tune, sl_error *error) {
    char *yaml = sl_tune_yaml(tune);
    if (!yaml)
        return sl_error_memory(error, "writing the recommendation");
    const char *path = tune->config->save;
    bool ok = true;
    if (path) {
        ok = sl_private_file_replace(path, yaml, strlen(yaml), error) ||
             sl_error_prefix(error, "--save");
        if (ok)
            sl_print("\nsaved in %s, for: shardload load --config %s ...\n"
                     "or, to start with these threads and batches and change them during the load "
                     "if that "
                     "is faster: shardload load --config %s -j auto --batch-size auto ...\n",
                     path, path, path);
    } else {
        sl_print("\ncontent for the FILE of `shardload load --config FILE` (--save writes "
                 "it):\n\n" SL_LINES,
                 yaml);
    }
    fflush(sl_output());
    free(yaml);
    return ok;
}

static bool write_records(const sl_tune *tune, sl_exit code, sl_error *error) {
    bson_t record = BSON_INITIALIZER;
    const bson_t *const records[] = {&record};
    char path[600];
    sl_tune_record(tune, code, &record);
    snprintf(path, sizeof path, "%s/tune.json", tune->work_directory);
    const char *report = tune->config->load->report;
    bool ok = sl_json_write_file(path, &record, error);
    if (ok)
        sl_log_info("record of the tuning: %s", path);
    ok = ok && (!report || sl_json_write_file(report, &record, error));
    ok = ok &&
         (!tune->config->html || sl_report_html_write(records, 1, NULL, tune->config->html, error));
    bson_destroy(&record);
    return ok;
}

/* ---- the tuning ---- */

static bool begin(sl_tune *tune, sl_error *error) {
    const sl_load_config *load = tune->config->load;
    return check_size(tune, error) &&
           sl_load_open_connection(load, SL_FOR_WRITING, "shardload tune", 3, &tune->connection,
                                   error) &&
           name_work_directory(tune, error) && check_files(tune, error) &&
           sl_throwaway_remove_leftovers(tune->connection, load->database, load->collection, "tune",
                                         error) &&
           sl_throwaway_name(load->database, load->collection, "tune", 1, tune->scratch, error);
}

static bool run(sl_tune *tune, sl_error *error) {
    if (!begin(tune, error))
        return false;
    const sl_server *server = sl_connection_server(tune->connection);
    if (tune->config->values[SL_TUNE_ROUTE].count > 1 && server->deployment != SL_SHARDED)
        return sl_error_set(error, SL_EXIT_USAGE, "--try-routes: a %s has only one route",
                            sl_deployment_name(server->deployment));
    sl_log_info("%s: %s, server %s", sl_connection_display_uri(tune->connection),
                sl_deployment_name(server->deployment), server->version);
    return sl_tune_choose_sample(tune, error) && search(tune, error);
}

/* Shows and saves the recommendation before comparing compressors, which takes long and may
 * fail. */
static bool finish(sl_tune *tune, bool ok, sl_error *error) {
    if (tune->search.trials == 0)
        return true;
    sl_tune_show(tune);
    if (!ok || tune->interrupted)
        return true;
    if (!save_recommendation(tune, error))
        return false;
    if (tune->config->storage) {
        sl_tune_compare_storage(tune);
        sl_tune_show_storage(tune);
    }
    return true;
}

/* Logs an error. The first error sets the exit code. */
static void report_error(const sl_error *error, sl_exit *code) {
    if (error->code)
        sl_log_error(SL_LINES, error->message);
    if (*code == SL_EXIT_OK)
        *code = error->code;
}

sl_exit sl_tune_run(const sl_tune_config *config) {
    sl_error error = {0}, finishing = {0}, removing = {0}, writing = {0};
    sl_exit code = SL_EXIT_OK;
    sl_tune tune = {.config = config, .begun = sl_clock_ns(), .begun_at = sl_wall_clock_ms()};
    sl_throwaway_init(&tune.throwaway);
    bool listening = sl_interrupt_listen(on_first_signal, on_second_signal, &tune, &error);
    bool ok = listening && run(&tune, &error);
    if (!ok && !tune.interrupted)
        report_error(&error, &code);
    if (!finish(&tune, ok, &finishing))
        report_error(&finishing, &code);
    if (!sl_throwaway_drop(&tune.throwaway, &removing))
        report_error(&removing, &code);
    if (tune.interrupted || (listening && sl_interrupt_requested())) {
        code = SL_EXIT_INTERRUPTED;
        sl_log_error("interrupted%s", removing.code ? "" : "; nothing is left in the cluster");
    }
    if (tune.scratch[0] && !write_records(&tune, code, &writing))
        report_error(&writing, &code);
    if (listening)
        sl_interrupt_stop_listening();
    for (size_t i = 0; i < tune.storage_count; i++)
        bson_destroy(&tune.storage[i].queries);
    sl_search_clear(&tune.search);
    sl_throwaway_clear(&tune.throwaway);
    free(tune.trials);
    sl_connection_close(tune.connection);
    return code;
}
