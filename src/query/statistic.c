/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that the client computes. Each thread reads a part of the documents (skip and limit of
 * the find) with its own client and computes its own figures. The figures are merged after all
 * threads have ended. */
#include "operation.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "util/context.h"

typedef struct running_figures {
    double minimum, maximum, sum;
    uint64_t count;
} running_figures;

typedef struct worker {
    sl_connection *connection;
    const sl_query_target *target;
    sl_query query; /* the query with this thread's skip and limit */
    const char *field;
    running_figures figures;
    double *list; /* the values, of SL_STATISTIC_LIST */
    size_t count, room;
    bool no_memory, ok;
    sl_result result;
    sl_error error;
} worker;

static void accumulate(running_figures *figures, double value) {
    figures->minimum = figures->count == 0 || value < figures->minimum ? value : figures->minimum;
    figures->maximum = figures->count == 0 || value > figures->maximum ? value : figures->maximum;
    figures->sum += value;
    figures->count++;
}

static void append_value(worker *w, double value) {
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 1024;
        double *grown = realloc(w->list, room * sizeof *grown);
        if (!grown) {
            w->no_memory = true;
            return;
        }
        w->list = grown;
        w->room = room;
    }
    w->list[w->count++] = value;
}

static void read_value(void *context, const bson_t *document) {
    worker *w = context;
    bson_iter_t field;
    if (!sl_look_find(document, w->field, &field) || !BSON_ITER_HOLDS_NUMBER(&field))
        return;
    double value = bson_iter_as_double(&field);
    if (w->query.statistic == SL_STATISTIC_LIST)
        append_value(w, value);
    else
        accumulate(&w->figures, value);
}

static void *run_worker(void *context) {
    worker *w = context;
    mongoc_client_t *client = sl_connection_borrow(w->connection);
    sl_runner runner;
    w->ok = sl_runner_init(&runner, w->connection, client, &w->query, w->target, 0, 1, &w->error) &&
            (sl_runner_prepare(&runner) || sl_error_memory(&w->error, "preparing a query")) &&
            sl_runner_run(&runner, read_value, w, &w->result, &w->error);
    sl_runner_clear(&runner);
    sl_connection_return(w->connection, client);
    for (size_t i = 0; i < w->count; i++)
        accumulate(&w->figures, w->list[i]);
    if (w->no_memory)
        w->ok = sl_error_memory(&w->error, "keeping the values of a statistic");
    return NULL;
}

/* The number of documents that the query reads: its limit, or all `documents`. */
static uint64_t documents_to_read(const sl_query *query, const sl_query_target *target,
                                  uint64_t documents) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, query->body, "limit"))
        return documents;
    uint64_t limit =
        sl_parameter_name(&iter) ? (uint64_t)target->limit : (uint64_t)bson_iter_as_int64(&iter);
    return limit == 0 || (documents > 0 && documents < limit) ? documents : limit;
}

/* Sets the worker's query: the query with skip and limit for part `index` of `all` documents. */
static bool set_part(worker *w, const sl_query *query, uint64_t all, unsigned index) {
    w->query = *query;
    w->query.body = bson_new();
    bool split = query->threads > 1;
    uint64_t first = all * index / query->threads, end = all * (index + 1) / query->threads;
    bson_iter_t iter;
    bool ok = bson_iter_init(&iter, query->body);
    while (ok && bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        if (!split || (strcmp(key, "limit") != 0 && strcmp(key, "skip") != 0))
            ok = bson_append_iter(w->query.body, key, -1, &iter);
    }
    return ok && (!split || (BSON_APPEND_INT64(w->query.body, "skip", (int64_t)first) &&
                             BSON_APPEND_INT64(w->query.body, "limit", (int64_t)(end - first))));
}

static void merge(running_figures *sum, const running_figures *part) {
    if (part->count == 0)
        return;
    bool first = sum->count == 0;
    sum->minimum = first || part->minimum < sum->minimum ? part->minimum : sum->minimum;
    sum->maximum = first || part->maximum > sum->maximum ? part->maximum : sum->maximum;
    sum->sum += part->sum;
    sum->count += part->count;
}

/* Appends nothing when there is no number, as $group returns nothing for no documents. */
static void append_answer(bson_t *answer, const running_figures *all) {
    if (all->count == 0)
        return;
    BSON_APPEND_DOUBLE(answer, "min", all->minimum);
    BSON_APPEND_DOUBLE(answer, "max", all->maximum);
    BSON_APPEND_DOUBLE(answer, "sum", all->sum);
    BSON_APPEND_INT64(answer, "count", (int64_t)all->count);
}

bool sl_statistic_run(sl_connection *connection, const sl_query *query,
                      const sl_query_target *target, uint64_t documents, bson_t *answer,
                      sl_result *result, sl_error *error) {
    uint64_t all = documents_to_read(query, target, documents);
    /* No more threads than documents: a part of 0 documents would have the limit 0, which means no
     * limit. */
    unsigned threads =
        query->threads < all || query->threads == 1 ? query->threads : (unsigned)(all ? all : 1);
    worker workers[SL_STATISTIC_THREADS_MAX];
    pthread_t ids[SL_STATISTIC_THREADS_MAX];
    unsigned made = 0;
    bool ok = true;
    sl_query shared = *query;
    shared.threads = threads;
    memset(workers, 0, threads * sizeof *workers);
    for (; ok && made < threads; made++) {
        worker *w = &workers[made];
        w->connection = connection;
        w->target = target;
        w->field = query->statistic_field;
        ok = set_part(w, &shared, all, made) &&
             (threads == 1 || sl_thread_start(&ids[made], run_worker, w) == 0);
        if (!ok) {
            sl_error_set(error, SL_EXIT_RESOURCES, "%s: %u threads cannot be started", query->name,
                         threads);
            bson_destroy(w->query.body);
            break;
        }
        if (threads == 1)
            run_worker(w);
    }
    running_figures sum = {0};
    *result = (sl_result){0};
    for (unsigned i = 0; i < made; i++) {
        worker *w = &workers[i];
        if (threads > 1)
            pthread_join(ids[i], NULL);
        merge(&sum, &w->figures);
        result->documents += w->result.documents;
        result->bytes += w->result.bytes;
        if (ok && !w->ok) {
            ok = false;
            *error = w->error;
            result->code = w->result.code;
        }
        bson_destroy(w->query.body);
        free(w->list);
    }
    append_answer(answer, &sum);
    return ok;
}
