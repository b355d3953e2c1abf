/* SPDX-License-Identifier: Apache-2.0 */
/* The sinks without a server: the null sink, and a BSON dump. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/private_file.h"

/* ---- the null sink ---- */

static bool null_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)outlet, (void)refused, (void)context, (void)error;
    result->inserted = batch->documents;
    return true;
}

const sl_sink_type sl_sink_null = {.name = "null", .send = null_send};

/* ---- the BSON dump: a file of consecutive documents ---- */

/* All workers use the same outlet. */
struct sl_outlet {
    const char *path;
    int file;
    pthread_mutex_t lock; /* held while one batch is written; the order of batches is arbitrary */
};

/* Standard output that was closed at the start is open for reading only (program.c). */
static int open_output(void) {
    if ((fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
        return dup(STDOUT_FILENO);
    errno = EBADF;
    return -1;
}

static bool file_open(const sl_sending *sending, void **shared, sl_error *error) {
    sl_outlet *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the BSON file");
    made->path = sending->config->sink_path;
    pthread_mutex_init(&made->lock, NULL);
    bool standard = strcmp(made->path, "-") == 0;
    made->file = standard ? open_output() : sl_output_file_open(made->path, error);
    if (made->file < 0) {
        if (standard)
            sl_error_errno(error, SL_EXIT_USAGE, "cannot write standard output");
        free(made);
        return false;
    }
    *shared = made;
    return true;
}

static bool file_close(void *shared, sl_error *error) {
    sl_outlet *file = shared;
    if (!file)
        return true;
    bool ok =
        close(file->file) == 0 || sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                                               "cannot write %s: %s", file->path, strerror(errno));
    pthread_mutex_destroy(&file->lock);
    free(file);
    return ok;
}

static bool file_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context;
    bool ok = true;
    pthread_mutex_lock(&outlet->lock);
    if (!sl_write_all(outlet->file, batch->bytes, batch->used))
        ok = sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write %s: %s",
                          outlet->path, strerror(errno));
    pthread_mutex_unlock(&outlet->lock);
    result->inserted = batch->documents;
    return ok;
}

const sl_sink_type sl_sink_bson = {
    .name = "bson",
    .open = file_open,
    .close = file_close,
    .send = file_send,
};
