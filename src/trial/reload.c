/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a drill from start to end.
 *
 * A full drill runs one load into the target, then the queries. The load has its journal in the
 * drill's work directory and logs its own progress.
 *
 * A sampled drill loads into temporary collections beside the target, and runs the queries after
 * each load: once to warm the server up, then a quarter of the sample and the full sample in turn,
 * several times, which shows how much runs of the same size vary. Each collection is dropped after
 * its queries; the end of sl_reload_run drops a collection that is left after an error. After a
 * second Ctrl-C the signal thread drops the collection itself, once the running load has stopped
 * sending (throwaway.h). If that fails, it logs the collection's name, and the next drill drops the
 * collection. */
#include "drill.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/load_config.h"
#include "report/json.h"
#include "report/report.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"

#define KIND "drill"
#define WARM_UP_SHARE (1.0 / 16) /* of the sample */
#define SMALL_SHARE (1.0 / 4)

/* ---- interrupts ---- */

static bool on_first_signal(void *context) {
    sl_drill *drill = context;
    if (!drill->connection) /* it may be waiting for a server */
        return true;
    if (sl_drill_sampled(drill))
        sl_log_warning("stopping, and dropping the temporary collection; press Ctrl-C again to "
                       "stop at once");
    else if (!atomic_load(&drill->loading))
        sl_log_warning("stopping after the running query; press Ctrl-C again to stop at once");
    return false;
}

static void on_second_signal(void *context) {
    sl_drill *drill = context;
    sl_error error = {0};
    if (!sl_throwaway_drop_at_once(&drill->throwaway, &error))
        sl_log_error(SL_LINES, error.message);
    if (sl_drill_sampled(drill) || !atomic_load(&drill->loading)) /* otherwise the load has logged
                                                                     it */
        sl_log_warning("stopped at once");
}

/* ---- the beginning ---- */

static bool make_work_directory(sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    size_t room = sizeof drill->work_directory;
    bool made = false, ok = true;
    if (load->work_directory) {
        if (strlen(load->work_directory) >= room - 20)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                room - 21);
        if (!sl_outputs_check_folder(load->work_directory, error))
            return false;
        strcpy(drill->work_directory, load->work_directory);
        ok = sl_private_folder_make(drill->work_directory, NULL, error);
    }
    for (unsigned attempt = 1; ok && !load->work_directory && !made && attempt < 1000; attempt++) {
        time_t now = time(NULL);
        struct tm local;
        char stamp[32], number[16] = "";
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
        if (attempt > 1)
            snprintf(number, sizeof number, "-%u", attempt);
        snprintf(drill->work_directory, room, "shardload-reload-%s.%s-%s%s", load->database,
                 load->collection, stamp, number);
        ok = sl_private_folder_make(drill->work_directory, &made, error);
    }
    char path[600];
    snprintf(path, sizeof path, "%s/reload.json", drill->work_directory);
    if (!ok)
        return sl_error_prefix(error, "name another directory with --work-dir");
    if (!sl_json_may_write_file(path, error))
        return false;
    snprintf(path, sizeof path, "%s/shardload.log", drill->work_directory);
    return sl_log_open_file(path, error) &&
           (!load->report || sl_json_may_write_file(load->report, error)) &&
           (!load->html || sl_json_may_write_file(load->html, error));
}

/* Refuses pipes for a sampled drill, which reads its sources several times. */
static bool check_sources(const sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    for (size_t i = 0; sl_drill_sampled(drill) && i < load->path_count; i++) {
        struct stat facts;
        bool piped = strcmp(load->paths[i], "-") == 0 ||
                     (stat(load->paths[i], &facts) == 0 && S_ISFIFO(facts.st_mode));
        if (piped)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s is a pipe: with --sample sources are read several times; give "
                                "files, or leave --sample out",
                                load->paths[i]);
    }
    return true;
}

/* A full drill needs an empty target: no collection, and no registry that lists sources as
 * loaded. */
static bool check_target(const sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    const sl_target target = {.database = load->database, .collection = load->collection};
    bool exists;
    size_t left;
    if (sl_drill_sampled(drill) || load->drop)
        return true;
    if (!sl_target_exists(drill->connection, &target, &exists, error))
        return false;
    if (exists)
        return sl_error_set(
            error, SL_EXIT_USAGE,
            "%s.%s already exists, and a reload needs an empty target: --drop drops it; --sample "
            "5%% does not touch it",
            load->database, load->collection);
    if (!sl_registry_left_behind(drill->connection, &target, &left, error))
        return false;
    return left == 0 ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "%s.%s does not exist, but its registry %s.%s.sources does, with %zu "
                        "source%s, and a reload needs an empty target: --drop drops the registry "
                        "as well; --sample 5%% does not touch it",
                        load->database, load->collection, load->database, load->collection, left,
                        left == 1 ? "" : "s");
}

static bool begin(sl_drill *drill, sl_error *error) {
    const sl_load_config *load = drill->config->load;
    return check_sources(drill, error) &&
           sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, &drill->connection,
                                   error) &&
           check_target(drill, error) &&
           sl_throwaway_remove_leftovers(drill->connection, load->database, load->collection, KIND,
                                         error) &&
           make_work_directory(drill, error);
}

/* ---- the drills ---- */

static sl_exit report_error(const sl_error *error) {
    sl_log_error(SL_LINES, error->message);
    return error->code;
}

static sl_exit drill_whole(sl_drill *drill) {
    return sl_drill_run_step(drill, 1, drill->config->load->collection, drill->work_directory);
}

static sl_exit drill_size(sl_drill *drill, unsigned number, double share, const char *folder) {
    const sl_load_config *load = drill->config->load;
    char name[SL_THROWAWAY_ROOM], path[600];
    sl_error error = {0};
    if (sl_interrupt_requested())
        return SL_EXIT_INTERRUPTED;
    if (!sl_throwaway_name(load->database, load->collection, KIND, number, name, &error))
        return report_error(&error);
    /* A journal of an earlier, interrupted drill belongs to a collection that no longer exists. */
    snprintf(path, sizeof path, "%s/%s/journal", drill->work_directory, folder);
    sl_private_file_remove(path);
    snprintf(path, sizeof path, "%s/%s", drill->work_directory, folder);
    sl_throwaway_register(&drill->throwaway, drill->connection, load->database, name);
    sl_exit code = sl_drill_run_step(drill, share, name, path);
    if (!sl_throwaway_drop(&drill->throwaway, &error)) {
        report_error(&error);
        code = code == SL_EXIT_OK ? error.code : code;
    }
    return code;
}

static sl_exit drill_sample(sl_drill *drill) {
    double share = drill->config->load->sample;
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_log_info("a sample of %.3g %%, in temporary collections beside %s.%s; the first load is to "
                "warm up",
                100 * share, drill->config->load->database, drill->config->load->collection);
    code = drill_size(drill, 1, share * WARM_UP_SHARE, "warm-up");
    for (unsigned i = 0; code == SL_EXIT_OK && i < 2 * drill->config->sample_runs; i++) {
        char folder[20];
        bool full = i % 2 == 1;
        snprintf(folder, sizeof folder, "%s-%u", full ? "sample" : "small", i / 2 + 1);
        code = drill_size(drill, i + 2, share * (full ? 1 : SMALL_SHARE), folder);
    }
    if (code == SL_EXIT_OK && sl_drill_last(drill)->documents == 0)
        sl_error_set(&error, SL_EXIT_SOURCE,
                     "there is no document in the sample: give a larger --sample");
    if (code == SL_EXIT_OK && (error.code || !sl_drill_forecast(drill, &error)))
        code = report_error(&error);
    return code;
}

/* ---- the end ---- */

static void judge(sl_drill *drill) {
    double objective = drill->config->objective_seconds;
    drill->judged = true;
    if (drill->forecast) {
        drill->objective = sl_objective_of(&drill->total, objective);
        return;
    }
    bool reached = drill->correct || (!drill->checked && drill->first_correct > 0);
    drill->objective =
        reached && drill->first_correct <= objective ? SL_OBJECTIVE_MET : SL_OBJECTIVE_NOT_MET;
}

static sl_exit code_of(const sl_drill *drill) {
    if (drill->failed)
        return SL_EXIT_CLUSTER;
    if (drill->wrong ||
        (drill->config->objective_seconds > 0 && drill->objective == SL_OBJECTIVE_NOT_MET))
        return SL_EXIT_VERIFICATION;
    return drill->rejects ? SL_EXIT_REJECTS : SL_EXIT_OK;
}

static bool write_record(const sl_drill *drill, sl_exit code, sl_error *error) {
    const sl_reload_config *config = drill->config;
    bson_t record = BSON_INITIALIZER;
    char path[600];
    snprintf(path, sizeof path, "%s/reload.json", drill->work_directory);
    bool ok = sl_drill_record(drill, code, &record) || sl_error_memory(error, "making the record");
    ok = ok && sl_json_write_file(path, &record, error);
    if (ok)
        sl_log_info("drill record: %s", path);
    ok = ok && (!config->load->report || sl_json_write_file(config->load->report, &record, error));
    if (ok && config->load->html) {
        const bson_t *const records[] = {&record};
        ok = sl_report_html_write(records, 1, NULL, config->load->html, error);
    }
    if (ok && config->last)
        ok = sl_drill_compare(config->last, &record, error);
    bson_destroy(&record);
    return ok;
}

sl_exit sl_reload_run(const sl_reload_config *config) {
    sl_drill drill = {.config = config, .start = sl_clock_ns(), .wall_start = sl_wall_clock_ms()};
    sl_error error = {0};
    sl_exit code = SL_EXIT_OK;
    sl_throwaway_init(&drill.throwaway);
    bool listening = (!config->last || sl_drill_check_last(config->last, &error)) &&
                     sl_interrupt_listen(on_first_signal, on_second_signal, &drill, &error);
    bool begun = listening && begin(&drill, &error);
    if (!begun)
        code = report_error(&error);
    if (begun)
        code = sl_drill_sampled(&drill) ? drill_sample(&drill) : drill_whole(&drill);
    if (begun && code == SL_EXIT_OK) {
        judge(&drill);
        code = code_of(&drill);
        sl_drill_print(&drill);
    } else if (begun && code == SL_EXIT_INTERRUPTED && sl_drill_sampled(&drill)) {
        sl_log_warning("interrupted; the target was not touched");
    }
    if (begun && !write_record(&drill, code, &error)) {
        report_error(&error);
        code = code == SL_EXIT_OK || code == SL_EXIT_REJECTS ? error.code : code;
    }
    sl_error removing = {0};
    if (drill.connection && !sl_throwaway_drop(&drill.throwaway, &removing))
        report_error(&removing);
    if (listening)
        sl_interrupt_stop_listening();
    for (size_t i = 0; i < drill.step_count; i++)
        sl_drill_step_clear(&drill.steps[i]);
    free(drill.queries);
    sl_throwaway_clear(&drill.throwaway);
    sl_connection_close(drill.connection);
    sl_log_close_file();
    return code;
}
