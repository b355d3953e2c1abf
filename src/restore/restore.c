/* SPDX-License-Identifier: Apache-2.0 */
#include "restore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "ledger/resume.h"
#include "load/status.h"
#include "report/json.h"
#include "report/run_record.h"
#include "restoring.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"

/* ---- interrupts ---- */

/* The last status of a restore that a user ends at once. */
static void stop_status(const sl_restore *restore) {
    sl_status_stop(restore->status, SL_EXIT_INTERRUPTED, "interrupted by the user", true);
}

static bool on_first_signal(void *context) {
    const sl_restore *restore = context;
    if (!restore->connection) { /* it may wait for a server */
        stop_status(restore);
        return true;
    }
    if (restore->unpacking) /* unpack_archive.c listens too */
        return false;
    sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    sl_restore_interrupt(context, false);
    return false;
}

static void log_how_to_complete(const sl_restore *restore) {
    if (restore->directory[0] && restore->connection)
        sl_log_warning("to complete this restore, give the same command with --resume --work-dir "
                       "%s",
                       restore->directory);
}

static void on_second_signal(void *context) {
    sl_restore_interrupt(context, true);
    log_how_to_complete(context);
    stop_status(context);
}

/* ---- the work directory ---- */

static char *file_of(const sl_restore *restore, const char *name, char path[600]) {
    snprintf(path, 600, "%s/%s", restore->directory, name);
    return path;
}

bool sl_restore_make_directory(sl_restore *restore, const char *name, sl_error *error) {
    const char *given = restore->config->load->work_directory;
    if (given && strlen(given) >= SL_RESTORE_DIRECTORY_ROOM) /* it will contain other ones */
        return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %d bytes",
                            SL_RESTORE_DIRECTORY_ROOM - 1);
    return sl_work_directory_make(restore->config->load, name, restore->directory, &restore->lock,
                                  error);
}

/* An archive is not compared: once it has been unpacked, it is not read again. */
static bool check_list(sl_restore *restore, sl_error *error) {
    bool folder = sl_dump_is_folder(restore->config->dump);
    if (folder == sl_restore_has_list(restore))
        return !folder || sl_restore_same_dump(restore, error);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        folder ? "--resume: %s does not list the files of a dump, because an "
                                 "earlier version of this program or a restore of an archive has "
                                 "written it. So %s cannot be compared with the dump of the "
                                 "interrupted restore: begin a new restore with another --work-dir "
                                 "and --drop"
                               : "--resume: %s is a restore of a folder, and %s is none: give it "
                                 "the same dump again, or begin a new restore with another "
                                 "--work-dir and --drop",
                        restore->directory, restore->config->dump);
}

/* Compares the options that change what is restored with those of the first run. */
static bool check_options(const sl_restore *restore, sl_error *error) {
    char path[600], how[900];
    bson_t *was;
    if (!sl_json_read_private(file_of(restore, "options.json", path), &was, error))
        return sl_error_prefix(error, "--resume");
    bool differ =
        sl_resume_options_differ(was, restore->config->load->document_options, how, sizeof how);
    bson_destroy(was);
    return !differ ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--resume: the restore in %s was begun with other options: %s. Give the "
                        "options of the first run, or start a new restore with another --work-dir",
                        restore->directory, how);
}

/* The file `restore` marks a work directory, and names the dump. It is written last. */
static bool begin_or_resume(sl_restore *restore, sl_error *error) {
    char path[600], options[600], resolved[4096];
    const char *dump = realpath(restore->config->dump, resolved) ? resolved : restore->config->dump;
    bool begun = access(file_of(restore, "restore", path), F_OK) == 0;
    bool resume = restore->config->load->resume;
    if (resume && !begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--resume: %s is not the work directory of a restore; leave --resume "
                            "out to start a new restore",
                            restore->directory);
    if (!resume && begun)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s holds the files of another restore: complete it with --resume, or "
                            "name another --work-dir",
                            restore->directory);
    if (begun) {
        char text[4096] = "";
        FILE *file = sl_private_file_stream(path, O_RDONLY, NULL);
        bool read = file && fgets(text, sizeof text, file);
        if (file)
            fclose(file);
        text[strcspn(text, "\n")] = '\0';
        if (!read || strcmp(text, dump) != 0)
            return sl_error_set(error, SL_EXIT_USAGE, "--resume: %s is a restore of %s, not of %s",
                                restore->directory, text, dump);
        return check_options(restore, error) && check_list(restore, error);
    }
    char line[4100];
    int length = snprintf(line, sizeof line, "%s\n", dump);
    return sl_json_write_file(file_of(restore, "options.json", options),
                              restore->config->load->document_options, error) &&
           (!sl_dump_is_folder(restore->config->dump) || sl_restore_write_list(restore, error)) &&
           sl_private_file_replace(path, line, (size_t)length, error);
}

/* ---- the phases ---- */

/* A view reads the collection that its definition names, even if the restore renames that
 * collection. */
static void warn_of_views(const sl_restore *restore) {
    for (size_t i = 0; i < restore->dump.count; i++) {
        const sl_namespace *view = &restore->dump.items[i];
        const char *on =
            view->kind == SL_NAMESPACE_VIEW ? sl_look_text(view->options, "viewOn") : NULL;
        if (view->left_out || !on)
            continue;
        for (size_t k = 0; k < restore->dump.count; k++) {
            const sl_namespace *item = &restore->dump.items[k];
            if (item->left_out || strcmp(item->collection, on) != 0 ||
                strcmp(item->database, view->database) != 0 ||
                (strcmp(item->to_collection, on) == 0 &&
                 strcmp(item->to_database, view->to_database) == 0))
                continue;
            sl_log_warning("view %s.%s reads %s.%s according to its definition, but %s.%s is "
                           "restored as %s.%s",
                           view->to_database, view->to_collection, view->to_database, on,
                           item->database, item->collection, item->to_database,
                           item->to_collection);
        }
    }
}

bool sl_dump_is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Unpacks the archive, unless an earlier run has done that. */
static bool open_archive(sl_restore *restore, sl_error *error) {
    const sl_restore_config *config = restore->config;
    char folder[600];
    bool found;
    if (config->dry_run)
        return sl_dump_open_archive(&restore->dump, config->dump, NULL, &config->names, error);
    file_of(restore, "unpacked", folder);
    found = false;
    if (!sl_private_folder_make(folder, NULL, error) ||
        (!restore->verifying &&
         !sl_dump_read_list(&restore->dump, folder, &config->names, &found, error)))
        return false;
    restore->unpacking = true;
    bool ok = found ||
              (sl_dump_open_archive(&restore->dump, config->dump, folder, &config->names, error) &&
               (restore->verifying || sl_dump_write_list(&restore->dump, folder, error)));
    restore->unpacking = false;
    return ok;
}

bool sl_restore_open_dump(sl_restore *restore, sl_error *error) {
    const sl_restore_config *config = restore->config;
    if (sl_dump_is_folder(config->dump)) {
        if (!sl_dump_open_folder(&restore->dump, config->dump, error) ||
            !sl_names_apply(&config->names, &restore->dump, error))
            return false;
    } else if (!open_archive(restore, error)) {
        return false;
    }
    if (config->shard_keys && (!sl_shard_keys_parse(&restore->shard_keys, config->shard_keys,
                                                    sl_text_of(config->shard_keys_text), error) ||
                               !sl_shard_keys_apply(&restore->shard_keys, &restore->dump, error)))
        return false;
    size_t chosen = 0;
    for (size_t i = 0; i < restore->dump.count; i++)
        chosen += !restore->dump.items[i].left_out;
    restore->outcomes = calloc(restore->dump.count + 1, sizeof *restore->outcomes);
    if (!restore->outcomes)
        return sl_error_memory(error, "starting");
    sl_restore_log_notes(restore);
    warn_of_views(restore);
    if (chosen == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            restore->dump.count == 0
                                ? "%s: there is nothing to restore: no collections of a database "
                                  "other than admin, config and local"
                                : "%s: nothing is left to restore: no namespace matches "
                                  "--ns-include, or all of them match --ns-exclude",
                            config->dump);
    return true;
}

/* Parts that cannot be restored are an error at the end of the restore: all other parts are
 * restored first. */
bool sl_restore_all_known(const sl_restore *restore, sl_error *error) {
    size_t lost = 0;
    for (size_t i = 0; i < restore->dump.note_count; i++)
        lost += restore->dump.notes[i].lost;
    return lost == 0 || restore->config->load->skip_other ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%zu part%s of the dump %s not restored (see the warnings); --skip-other "
                        "accepts that",
                        lost, lost == 1 ? "" : "s", lost == 1 ? "is" : "are");
}

static bool connect_to_server(sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    if (!sl_load_open_connection(load, SL_FOR_WRITING, "shardload", 3, &restore->connection, error))
        return false;
    sl_connection_set_retry_check(restore->connection, sl_restore_keep_trying, restore);
    const sl_server *server = sl_connection_server(restore->connection);
    sl_log_info("%s: %s, server %s", sl_connection_display_uri(restore->connection),
                sl_deployment_name(server->deployment), server->version);
    return true;
}

/* The most serious outcome: an interrupt, then the first failure, then rejects. */
static sl_exit code_of(const sl_restore *restore) {
    sl_exit code = SL_EXIT_OK;
    for (size_t i = 0; i < restore->dump.count; i++) {
        sl_exit one = restore->outcomes[i].code;
        if (one == SL_EXIT_INTERRUPTED)
            return one;
        if (code == SL_EXIT_OK || (code == SL_EXIT_REJECTS && one != SL_EXIT_OK))
            code = one;
    }
    return code;
}

static sl_exit restore_all(sl_restore *restore) {
    int64_t start = sl_clock_ns();
    sl_status_phase(restore->status, "restore");
    bool going = sl_restore_all(restore);
    restore->seconds = sl_seconds_since(start);
    sl_exit code = code_of(restore);
    if (!going && (code == SL_EXIT_OK || code == SL_EXIT_REJECTS))
        code = SL_EXIT_INTERRUPTED;
    return code;
}

static sl_exit write_record(const sl_restore *restore, int64_t started, sl_exit code) {
    const sl_load_config *load = restore->config->load;
    const char *paths[2] = {NULL, load->report};
    char path[600];
    bson_t record = BSON_INITIALIZER;
    sl_error error;
    sl_record_head(&record, "restore", load->program_version, started, load->options);
    sl_restore_append(restore, &record);
    sl_record_tail(&record, code);
    paths[0] = file_of(restore, "restore.json", path);
    for (int i = 0; i < 2; i++) {
        if (paths[i] && !sl_json_write_file(paths[i], &record, &error)) {
            sl_log_error(SL_LINES, error.message);
            code = code == SL_EXIT_OK || code == SL_EXIT_REJECTS ? error.code : code;
        }
    }
    if (load->run_record)
        bson_concat(load->run_record, &record);
    bson_destroy(&record);
    return code;
}

static bool check_server(const sl_restore *restore, sl_error *error) {
    return sl_dump_fits_server(&restore->dump, sl_connection_server(restore->connection), error);
}

static bool prepare(sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    return connect_to_server(restore, error) && check_server(restore, error) &&
           sl_restore_make_directory(restore, "restore", error) &&
           (!load->report || sl_json_may_write_file(load->report, error)) &&
           (!load->metrics || sl_private_file_may_replace(load->metrics, error)) &&
           begin_or_resume(restore, error);
}

/* The work directory is locked. */
static void start_status(sl_restore *restore) {
    restore->status = sl_status_start(&(sl_status_setup){
        .command = "restore",
        .config = restore->config->load,
        .directory = restore->directory,
        .target = restore->config->dump,
        .metrics = restore->config->load->metrics,
        .resume_command = "the same command",
        .resume_directory = restore->directory,
        .limit = &restore->limit,
        .at_once = restore->config->at_once > 0 ? restore->config->at_once : 1,
    });
}

static sl_exit run(sl_restore *restore) {
    sl_error error = {0};
    int64_t started = sl_wall_clock_ms();
    bool first = restore->config->dry_run || sl_dump_is_folder(restore->config->dump);
    /* A folder is read before the work directory is created; an archive is read later, because it
     * is unpacked into the work directory. */
    bool ok = !first || sl_restore_open_dump(restore, &error);
    if (ok && restore->config->dry_run) {
        sl_restore_print_plan(restore);
        return sl_restore_all_known(restore, &error)
                   ? SL_EXIT_OK
                   : (sl_log_error(SL_LINES, error.message), error.code);
    }
    if (ok && !prepare(restore, &error)) {
        ok = false;
        sl_work_directory_abandon(restore->directory, &restore->lock);
    }
    if (ok)
        start_status(restore);
    ok = ok && (first || (sl_restore_open_dump(restore, &error) && check_server(restore, &error)));
    if (!ok) {
        sl_log_error(SL_LINES, error.message);
        if (error.code == SL_EXIT_INTERRUPTED)
            log_how_to_complete(restore);
        return error.code;
    }
    sl_exit code = restore_all(restore);
    sl_restore_print_outcomes(restore);
    sl_restore_log_rejects(restore);
    bool complete = code == SL_EXIT_OK || code == SL_EXIT_REJECTS;
    if (!complete)
        log_how_to_complete(restore);
    if (!sl_restore_all_known(restore, &error)) {
        sl_log_error(SL_LINES, error.message);
        code = complete ? error.code : code;
    }
    return write_record(restore, started, code);
}

void sl_restore_clear(sl_restore *restore) {
    sl_dump_clear(&restore->dump);
    sl_shard_keys_clear(&restore->shard_keys);
    free(restore->outcomes);
    sl_work_directory_release(&restore->lock);
    sl_connection_close(restore->connection);
    sl_restore_team_destroy(restore);
    pthread_mutex_destroy(&restore->sharding);
}

sl_exit sl_restore_run(const sl_restore_config *config) {
    sl_restore restore = {.config = config, .sharding = PTHREAD_MUTEX_INITIALIZER};
    sl_error error = {0};
    sl_exit code;
    sl_rate_limit_init(&restore.limit, config->load->rate_limit);
    if (sl_interrupt_listen(on_first_signal, on_second_signal, &restore, &error)) {
        code = run(&restore);
        sl_interrupt_stop_listening();
    } else {
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    char message[600] = "";
    if (code != SL_EXIT_OK && code != SL_EXIT_REJECTS && sl_context_current())
        sl_context_first_error(sl_context_current(), message, sizeof message);
    sl_status_end(restore.status, code, message, true);
    sl_restore_clear(&restore);
    sl_rate_limit_clear(&restore.limit);
    sl_log_close_file();
    return code;
}
