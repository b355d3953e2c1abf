/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a file to a collection and counts its documents, with the installed library. (The option
 * "drop" would drop the collection first.)
 *
 *     cc load_and_query.c $(pkg-config --cflags --libs shardload) -o load_and_query
 *     ./load_and_query mongodb://127.0.0.1/ test people people.csv
 */
#include <shardload/load.h>
#include <shardload/query.h>
#include <stdio.h>

static void on_log(void *data, shardload_level level, const char *text) {
    static const char *const names[] = {"error", "warning", "info"};
    (void)data;
    fprintf(stderr, "%s: %s\n", names[level], text);
}

static void on_progress(void *data, const char *json) {
    (void)data;
    fprintf(stderr, "progress: %s\n", json);
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "usage: %s URI DATABASE COLLECTION FILE\n", words[0]);
        return SHARDLOAD_USAGE;
    }
    const shardload_receivers receivers = {.log = on_log, .progress = on_progress};
    shardload_context *context = shardload_context_create(&receivers);
    if (!context)
        return SHARDLOAD_RESOURCES;

    const shardload_option load[] = {{"uri", words[1]},
                                     {"db", words[2]},
                                     {"collection", words[3]},
                                     {"max-rejects", "0"},
                                     {NULL, NULL}};
    const char *const sources[] = {words[4], NULL};
    shardload_error error;
    shardload_code code = shardload_load(context, load, sources, NULL, &error);

    char *report = NULL;
    if (code == SHARDLOAD_OK) {
        const shardload_option query[] = {{"uri", words[1]},
                                          {"db", words[2]},
                                          {"collection", words[3]},
                                          {"pipeline", "[{\"$count\": \"documents\"}]"},
                                          {NULL, NULL}};
        code = shardload_query(context, query, NULL, &report, &error);
    }
    if (code == SHARDLOAD_OK)
        printf("%s\n", report);
    else
        fprintf(stderr, "failed with code %d: %s\n", (int)code, error.message);
    shardload_free(report);
    shardload_context_destroy(context);
    return (int)code;
}
