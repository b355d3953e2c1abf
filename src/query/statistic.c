/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread reads a share of the documents (skip and limit of the find) with a client of its own,
 * and keeps its own figures; they are put together after all threads have ended. */
#include "statistic.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct running_figures {
    double minimum, maximum, sum;
    uint64_t count;
} running_figures;

typedef struct worker {
    sl_connection *connection;
    const sl_place *place;
    sl_query query; /* the query with this thread's share as skip and limit */
    const char *field;
    running_figures figures;
    double *list; /* SL_STATISTIC_LIST */
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

static void list(worker *w, double value) {
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

static void take(void *context, const bson_t *document) {
    worker *w = context;
    bson_iter_t iter, field;
    if (!bson_iter_init(&iter, document) || !bson_iter_find_descendant(&iter, w->field, &field) ||
        !BSON_ITER_HOLDS_NUMBER(&field))
        return;
    double value = bson_iter_as_double(&field);
    if (w->query.statistic == SL_STATISTIC_LIST)
        list(w, value);
    else
        accumulate(&w->figures, value);
}

static void *work(void *context) {
    worker *w = context;
    mongoc_client_t *client = sl_connection_borrow(w->connection);
    sl_runner runner;
    w->ok = sl_runner_init(&runner, client, &w->query, w->place, 0, 1, &w->error) &&
            (sl_runner_prepare(&runner) || sl_error_memory(&w->error, "preparing a query")) &&
            sl_runner_run(&runner, take, w, &w->result, &w->error);
    sl_runner_clear(&runner);
    sl_connection_return(w->connection, client);
    for (size_t i = 0; i < w->count; i++)
        accumulate(&w->figures, w->list[i]);
    if (w->no_memory)
        w->ok = sl_error_memory(&w->error, "keeping the values of a statistic");
    return NULL;
}

/* How many documents there are to share out. */
static uint64_t documents_of(const sl_query *query, const sl_place *place, uint64_t documents) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, query->body, "limit"))
        return documents;
    uint64_t limit = sl_parameter_used(&iter) ? (uint64_t)place->limit
                                              : (uint64_t)bson_iter_as_int64(&iter);
    return limit == 0 || (documents > 0 && documents < limit) ? documents : limit;
}

/* The query's body with its share of `all` documents. */
static bool give_share(worker *w, const sl_query *query, uint64_t all, unsigned index) {
    w->query = *query;
    w->query.body = bson_new();
    bool shared = query->threads > 1;
    uint64_t first = all * index / query->threads, end = all * (index + 1) / query->threads;
    bson_iter_t iter;
    bool ok = bson_iter_init(&iter, query->body);
    while (ok && bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        if (!shared || (strcmp(key, "limit") != 0 && strcmp(key, "skip") != 0))
            ok = bson_append_iter(w->query.body, key, -1, &iter);
    }
    return ok && (!shared || (BSON_APPEND_INT64(w->query.body, "skip", (int64_t)first) &&
                              BSON_APPEND_INT64(w->query.body, "limit", (int64_t)(end - first))));
}

static void add(running_figures *sum, const running_figures *one) {
    if (one->count == 0)
        return;
    bool first = sum->count == 0;
    sum->minimum = first || one->minimum < sum->minimum ? one->minimum : sum->minimum;
    sum->maximum = first || one->maximum > sum->maximum ? one->maximum : sum->maximum;
    sum->sum += one->sum;
    sum->count += one->count;
}

/* Without any number the answer stays empty, as a $group of no documents gives none. */
static void append_answer(bson_t *answer, const running_figures *all) {
    if (all->count == 0)
        return;
    BSON_APPEND_DOUBLE(answer, "min", all->minimum);
    BSON_APPEND_DOUBLE(answer, "max", all->maximum);
    BSON_APPEND_DOUBLE(answer, "sum", all->sum);
    BSON_APPEND_INT64(answer, "count", (int64_t)all->count);
}

bool sl_statistic_run(sl_connection *connection, const sl_query *query, const sl_place *place,
                      uint64_t documents, bson_t *answer, sl_result *result, sl_error *error) {
    uint64_t all = documents_of(query, place, documents);
    /* A share of no documents would be a limit of 0, which means all of them. */
    unsigned threads = query->threads < all || query->threads == 1 ? query->threads
                                                                   : (unsigned)(all ? all : 1);
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
        w->place = place;
        w->field = query->statistic_field;
        ok = give_share(w, &shared, all, made) &&
             (threads == 1 || pthread_create(&ids[made], NULL, work, w) == 0);
        if (!ok) {
            sl_error_set(error, SL_EXIT_USAGE, "%s: %u threads cannot be started", query->name,
                         threads);
            bson_destroy(w->query.body);
            break;
        }
        if (threads == 1)
            work(w);
    }
    running_figures sum = {0};
    *result = (sl_result){0};
    for (unsigned i = 0; i < made; i++) {
        worker *w = &workers[i];
        if (threads > 1)
            pthread_join(ids[i], NULL);
        add(&sum, &w->figures);
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
