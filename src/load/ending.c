/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a load, expected or not. The balancer is restored by the load itself or, after a
 * second Ctrl-C, by the thread that handles signals. A lock ensures that exactly one of them
 * does. */
#include "record.h"

#include <stdio.h>
#include <unistd.h>

#include "util/interrupt.h"
#include "util/log.h"

/* Holds the lock until the balancer is stopped, so that the handler of a second Ctrl-C waits and
 * then restores it. */
bool sl_load_stop_balancer(sl_load *load, sl_error *error) {
    pthread_mutex_lock(&load->balancer_lock);
    load->balancer_lost = false;
    bool ok = sl_balancer_pause(load->destination.connection, load->ledger.holder, &load->balancer,
                                error);
    if (load->balancer)
        snprintf(load->balancer_before, sizeof load->balancer_before, "%s",
                 sl_balancer_before(load->balancer));
    pthread_mutex_unlock(&load->balancer_lock);
    return ok;
}

bool sl_load_restore_balancer(sl_load *load, sl_error *error) {
    bool ok = true;
    pthread_mutex_lock(&load->balancer_lock);
    atomic_store(&load->putting_back, true);
    if (load->balancer) {
        ok = sl_balancer_restore(load->balancer, error);
        load->balancer_lost = !ok;
        load->balancer = NULL;
    }
    atomic_store(&load->putting_back, false);
    pthread_mutex_unlock(&load->balancer_lock);
    return ok;
}

/* A load of a trial or a restore, whose work directory is inside another one, always counts as
 * used. */
bool sl_load_is_unused(const sl_load *load) {
    const sl_destination *destination = &load->destination;
    if (load->job.config->part_of_trial || atomic_load(&load->run.opened))
        return false;
    return !atomic_load(&load->run.begun) || load->job.config->sink != SL_SINK_CLUSTER ||
           (!load->job.resumed && !load->job.config->drop && !destination->created &&
            !destination->numbered);
}

bool sl_load_may_be_resumed(const sl_load *load, const sl_error *why) {
    const sl_load_config *config = load->job.config;
    bool journal_kept = atomic_load(&load->run.begun) || config->resume || config->part_of_trial;
    return journal_kept && !why->no_resume &&
           atomic_load(&load->run.ended_by) != SL_ENDED_ALL_REJECTED;
}

/* The last status of a load that a user ends at once. */
static void stop_status(const sl_load *load) {
    sl_status_stop(load->status, SL_EXIT_INTERRUPTED, "interrupted by the user",
                   sl_load_may_be_resumed(load, &(sl_error){0}));
}

void sl_load_log_how_to_complete(const sl_load *load, const sl_error *why) {
    if (why->no_resume || load->job.config->part_of_trial)
        return;
    bool changed = load->job.set && sl_source_set_has_changed(load->job.set);
    if (load->job.config->sink == SL_SINK_BSON && atomic_load(&load->run.opened))
        sl_log_warning("the BSON dump is incomplete");
    else if (load->ledger.journal && !sl_load_is_unused(load) && atomic_load(&load->run.begun) &&
             atomic_load(&load->run.ended_by) != SL_ENDED_ALL_REJECTED)
        sl_log_warning("to complete this load, %sgive %s with %s--resume --work-dir %s%s",
                       changed ? "restore the original source and " : "",
                       load->job.config->completed_by ? load->job.config->completed_by
                                                      : "the same command",
                       atomic_load(&load->run.ended_by) == SL_ENDED_BY_REJECT_LIMIT
                           ? "a higher --max-rejects and "
                           : "",
                       load->ledger.work_directory,
                       changed ? "; to load the changed source, start again with --drop" : "");
}

/* The records of --embed are divided, but no document is loaded yet. */
static void log_embedded_records(const sl_load *load) {
    char path[600];
    if (!load->job.config->embed_field || !load->ledger.work_directory[0])
        return;
    snprintf(path, sizeof path, "%.500s/embed/records", load->ledger.work_directory);
    if (access(path, F_OK) == 0)
        sl_log_warning(
            "%s holds the records of --embed that have been read. The same command will read them "
            "again and replace them; if you do not repeat it, remove %.500s",
            path, load->ledger.work_directory);
}

bool sl_load_on_first_request(void *context) {
    sl_load *load = context;
    if (load->job.config->part_of_trial && !atomic_load(&load->run.begun))
        return false;                     /* the load checks for an interrupt before it begins */
    if (!atomic_load(&load->run.begun)) { /* a program need not wait for a server or a pipe */
        sl_log_warning("interrupted before anything was loaded");
        log_embedded_records(load);
        stop_status(load);
        sl_work_directory_abandon(load->ledger.work_directory, &load->ledger.lock);
        return true;
    }
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopping after the batches in flight; press Ctrl-C again to stop at once");
    sl_run_stop(&load->run);
    return false;
}

void sl_load_on_second_request(void *context) {
    sl_load *load = context;
    sl_error error = {0};
    if (!sl_load_restore_balancer(load, &error))
        sl_log_error(SL_LINES, error.message);
    if (!load->job.config->part_of_trial)
        sl_log_warning("stopped at once");
    sl_load_log_how_to_complete(load, &error);
    stop_status(load);
}
