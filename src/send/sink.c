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

static bool null_open(const sl_sending *sending, void **shared, sl_error *error) {
    (void)sending, (void)error;
    *shared = NULL;
    return true;
}

static bool null_close(void *shared, sl_error *error) {
    (void)shared, (void)error;
    return true;
}

static bool null_outlet_create(const sl_sending *sending, void *shared, sl_outlet **outlet,
                               sl_error *error) {
    (void)sending, (void)shared, (void)error;
    *outlet = NULL;
    return true;
}

static void null_outlet_destroy(sl_outlet *outlet) {
    (void)outlet;
}

static bool null_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)outlet, (void)refused, (void)context, (void)error;
    result->inserted = batch->documents;
    return true;
}

const sl_sink_type sl_sink_null = {
    .name = "null",
    .open = null_open,
    .close = null_close,
    .outlet_create = null_outlet_create,
    .outlet_destroy = null_outlet_destroy,
    .send = null_send,
};

/* ---- the BSON dump: a file of consecutive documents ---- */

typedef struct sl_bson_file {
    const char *path;
    int file;
    pthread_mutex_t lock; /* held while one batch is written; the order of batches is arbitrary */
} sl_bson_file;

struct sl_outlet {
    sl_bson_file *to;
};

static bool file_open(const sl_sending *sending, void **shared, sl_error *error) {
    sl_bson_file *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the BSON file");
    made->path = sending->config->sink_path;
    pthread_mutex_init(&made->lock, NULL);
    if (strcmp(made->path, "-") == 0)
        made->file = dup(STDOUT_FILENO);
    else
        made->file = open(made->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made->file < 0) {
        sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write %s: %s",
                     made->path, strerror(errno));
        free(made);
        return false;
    }
    *shared = made;
    return true;
}

static bool file_close(void *shared, sl_error *error) {
    sl_bson_file *file = shared;
    if (!file)
        return true;
    bool ok =
        close(file->file) == 0 || sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                                               "cannot write %s: %s", file->path, strerror(errno));
    pthread_mutex_destroy(&file->lock);
    free(file);
    return ok;
}

static bool file_outlet_create(const sl_sending *sending, void *shared, sl_outlet **result,
                               sl_error *error) {
    (void)sending;
    *result = malloc(sizeof **result);
    if (!*result)
        return sl_error_memory(error, "starting writers");
    (*result)->to = shared;
    return true;
}

static void file_outlet_destroy(sl_outlet *outlet) {
    free(outlet);
}

static bool file_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context;
    bool ok = true;
    pthread_mutex_lock(&outlet->to->lock);
    if (!sl_write_all(outlet->to->file, batch->bytes, batch->used))
        ok = sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write %s: %s",
                          outlet->to->path, strerror(errno));
    pthread_mutex_unlock(&outlet->to->lock);
    result->inserted = batch->documents;
    return ok;
}

const sl_sink_type sl_sink_bson = {
    .name = "bson",
    .open = file_open,
    .close = file_close,
    .outlet_create = file_outlet_create,
    .outlet_destroy = file_outlet_destroy,
    .send = file_send,
};
