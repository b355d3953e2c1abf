/* SPDX-License-Identifier: Apache-2.0 */
/* Loads two files at once in one process, through the public library. test_two_loads.py compares
 * the collections.
 *
 *     two_loads [--stop-first] URI DATABASE FOLDER FILE FILE
 *
 * FILE number N is loaded into the collection tN, with the work directory FOLDER/wN; its log and
 * its progress are written to FOLDER/lN. --stop-first stops the first load after its first
 * progress. Standard output gets the code and the message of each load. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <shardload/load.h>

typedef struct one_load {
    const char *uri, *database, *folder, *file;
    unsigned number;
    bool stop;
    shardload_context *context;
    FILE *log;
    pthread_t thread;
    shardload_error error;
} one_load;

static void on_log(void *data, shardload_level level, const char *text) {
    const one_load *load = data;
    fprintf(load->log, "%d %s\n", (int)level, text);
}

static void on_progress(void *data, const char *json) {
    const one_load *load = data;
    fprintf(load->log, "progress %s\n", json);
    if (load->stop)
        shardload_stop(load->context);
}

static void *run(void *argument) {
    one_load *load = argument;
    char collection[20], work[300];
    snprintf(collection, sizeof collection, "t%u", load->number);
    snprintf(work, sizeof work, "%s/w%u", load->folder, load->number);
    const shardload_option options[] = {
        {"uri", load->uri}, {"db", load->database}, {"collection", collection},
        {"work-dir", work}, {"threads", "2"},       {"rate-limit", load->stop ? "1000" : "20000"},
        {NULL, NULL}};
    const char *const sources[] = {load->file, NULL};
    shardload_load(load->context, options, sources, NULL, &load->error);
    return NULL;
}

int main(int count, char **words) {
    bool stop = count > 1 && strcmp(words[1], "--stop-first") == 0;
    one_load loads[2] = {{.stop = stop}, {.stop = false}};
    if (count != 6 + stop)
        return 2;
    for (unsigned i = 0; i < 2; i++) {
        one_load *load = &loads[i];
        char path[300];
        load->number = i + 1;
        load->uri = words[1 + stop];
        load->database = words[2 + stop];
        load->folder = words[3 + stop];
        load->file = words[4 + (unsigned)stop + i];
        snprintf(path, sizeof path, "%s/l%u", load->folder, load->number);
        load->log = fopen(path, "w");
        const shardload_receivers receivers = {
            .log = on_log, .progress = on_progress, .data = load};
        load->context = shardload_context_create(&receivers);
        if (!load->log || !load->context || pthread_create(&load->thread, NULL, run, load) != 0)
            return 6;
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(loads[i].thread, NULL);
        printf("%d %s\n", (int)loads[i].error.code, loads[i].error.message);
        shardload_context_destroy(loads[i].context);
        fclose(loads[i].log);
    }
    return 0;
}
