/* SPDX-License-Identifier: Apache-2.0 */
/* What a query does on the servers, explained; statistics that the client computes. */
#include "operation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/context.h"
#include "util/memory_stream.h"
#include "util/text.h"

/* ---- explained queries ----
 *
 * Summaries of explained queries. A server's reply is pages long, and its structure depends on the
 * operation and the deployment. The summary contains, for each shard, the winning plan and the
 * numbers of documents and keys examined, and whether the pipeline was split. */

#define DEPTH_MAX 200              /* of nesting in a server's reply; bounds the recursion */
#define LIST_MAX ((size_t)1 << 29) /* values of SL_STATISTIC_LIST in all threads, 4 GiB */

/* Finds the first key called `key` within `depth` levels. */
static bool find_deep(bson_iter_t *found, const bson_iter_t *container, const char *key,
                      unsigned depth) {
    bson_iter_t child;
    if (depth == 0 || !bson_iter_recurse(container, &child))
        return false;
    while (bson_iter_next(&child)) {
        if (strcmp(bson_iter_key(&child), key) == 0) {
            *found = child;
            return true;
        }
        if ((BSON_ITER_HOLDS_DOCUMENT(&child) || BSON_ITER_HOLDS_ARRAY(&child)) &&
            find_deep(found, &child, key, depth - 1))
            return true;
    }
    return false;
}

static const char *text_of(const bson_iter_t *document, const char *key) {
    bson_iter_t child;
    bool found = bson_iter_recurse(document, &child) && bson_iter_find(&child, key) &&
                 BSON_ITER_HOLDS_UTF8(&child);
    return found ? bson_iter_utf8(&child, NULL) : NULL;
}

/* Writes "IXSCAN t_1 -> FETCH": a stage follows its input. Of several inputs only the first is
 * written. */
static void put_plan(FILE *out, const bson_iter_t *stage, unsigned depth) {
    bson_iter_t input;
    bool has_input = bson_iter_recurse(stage, &input) && bson_iter_find(&input, "inputStage");
    if (!has_input && bson_iter_recurse(stage, &input) && bson_iter_find(&input, "inputStages")) {
        bson_iter_t list = input;
        has_input = bson_iter_recurse(&list, &input) && bson_iter_next(&input);
    }
    if (depth > 0 && has_input && BSON_ITER_HOLDS_DOCUMENT(&input)) {
        put_plan(out, &input, depth - 1);
        fputs(" -> ", out);
    }
    const char *name = text_of(stage, "stage");
    const char *index = text_of(stage, "indexName");
    fprintf(out, "%s%s%s", name ? name : "?", index ? " " : "", index ? index : "");
}

/* The winning plan of one server, then the stages of the pipeline after it. NULL without memory;
 * free the result. */
static char *plan_text(const bson_iter_t *server) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = sl_memory_stream(&text, &size);
    if (!out)
        return NULL;
    bson_iter_t plan;
    if (find_deep(&plan, server, "winningPlan", DEPTH_MAX)) {
        bson_iter_t inner; /* present since 5.0 for the slot-based engine */
        if (find_deep(&inner, &plan, "queryPlan", DEPTH_MAX))
            plan = inner;
        put_plan(out, &plan, DEPTH_MAX);
    } else {
        fputs("?", out);
    }
    bson_iter_t stages;
    bson_iter_t stage;
    if (bson_iter_recurse(server, &stages) && bson_iter_find(&stages, "stages") &&
        bson_iter_recurse(&stages, &stage)) {
        while (bson_iter_next(&stage)) {
            bson_iter_t name;
            if (bson_iter_recurse(&stage, &name) && bson_iter_next(&name) &&
                strcmp(bson_iter_key(&name), "$cursor") != 0)
                fprintf(out, " -> %s", bson_iter_key(&name));
        }
    }
    return fclose(out) == 0 ? text : NULL;
}

/* Appends {shard, plan, examined, keys, returned, milliseconds} to `plans`, without the numbers
 * that `statistics`, the part of the reply with the server's execution statistics, lacks. */
static bool append_plan(bson_t *plans, uint32_t index, const char *shard, const bson_iter_t *server,
                        const bson_iter_t *statistics) {
    static const char *const figures[][2] = {{"totalDocsExamined", "examined"},
                                             {"totalKeysExamined", "keys"},
                                             {"nReturned", "returned"},
                                             {"executionTimeMillis", "milliseconds"}};
    char *text = plan_text(server);
    if (!text)
        return false;
    bson_iter_t numbers;
    if (!find_deep(&numbers, statistics, "executionStats", DEPTH_MAX))
        numbers = *statistics; /* for a find, the numbers of a shard are at the top level */
    bson_t row;
    bool ok = sl_record_begin_item(plans, index, &row) && BSON_APPEND_UTF8(&row, "shard", shard) &&
              BSON_APPEND_UTF8(&row, "plan", text);
    for (size_t i = 0; ok && i < sizeof figures / sizeof figures[0]; i++) {
        bson_iter_t value;
        if (bson_iter_recurse(&numbers, &value) && bson_iter_find(&value, figures[i][0]) &&
            BSON_ITER_HOLDS_NUMBER(&value) && bson_iter_as_int64(&value) >= 0)
            ok = BSON_APPEND_INT64(&row, figures[i][1], bson_iter_as_int64(&value));
    }
    free(text);
    return ok && bson_append_document_end(plans, &row);
}

/* Appends the plans of a find on shards. The reply is
 * {queryPlanner: {winningPlan: {shards: [{shardName, winningPlan}]}},
 *  executionStats: {executionStages: {shards: [{shardName, totalDocsExamined ...}]}}}. */
static bool append_find_plans(bson_t *plans, const bson_t *reply, bool *any) {
    bson_iter_t list, statistics, server, figures;
    if (!sl_look_find(reply, "queryPlanner.winningPlan.shards", &list) ||
        !BSON_ITER_HOLDS_ARRAY(&list) || !bson_iter_recurse(&list, &server))
        return true;
    bool ran = sl_look_find(reply, "executionStats.executionStages.shards", &statistics) &&
               BSON_ITER_HOLDS_ARRAY(&statistics);
    for (uint32_t i = 0; bson_iter_next(&server); i++) {
        const char *name = text_of(&server, "shardName");
        bool found = false;
        if (ran && name && bson_iter_recurse(&statistics, &figures)) {
            while (!found && bson_iter_next(&figures)) {
                const char *other = text_of(&figures, "shardName");
                found = other && strcmp(other, name) == 0;
            }
        }
        *any = true;
        if (!append_plan(plans, i, name ? name : "?", &server, found ? &figures : &server))
            return false;
    }
    return true;
}

bson_t *sl_explain_summary(const bson_t *reply) {
    bson_t *summary = bson_new();
    bson_t wrapped = BSON_INITIALIZER; /* {"": reply}: a single server, in the form of a shard */
    bson_iter_t found;
    bool split =
        bson_iter_init_find(&found, reply, "splitPipeline") && BSON_ITER_HOLDS_DOCUMENT(&found);
    bson_t plans;
    bool any = false;
    bool ok = BSON_APPEND_BOOL(summary, "split", split) &&
              BSON_APPEND_ARRAY_BEGIN(summary, "plans", &plans);
    bson_iter_t server;
    if (bson_iter_init_find(&found, reply, "shards") && bson_iter_recurse(&found, &server)) {
        any = true;
        for (uint32_t i = 0; ok && bson_iter_next(&server); i++)
            ok = append_plan(&plans, i, bson_iter_key(&server), &server, &server);
    }
    ok = ok && (any || append_find_plans(&plans, reply, &any));
    if (ok && !any)
        ok = BSON_APPEND_DOCUMENT(&wrapped, "", reply) && bson_iter_init(&server, &wrapped) &&
             bson_iter_next(&server) && append_plan(&plans, 0, "", &server, &server);
    ok = ok && bson_append_array_end(summary, &plans);
    bson_destroy(&wrapped);
    if (!ok) {
        bson_destroy(summary);
        summary = NULL;
    }
    return summary;
}

/* ---- documents examined ---- */

/* Must every plan of the query read all documents? */
static bool reads_all(const sl_query *query) {
    bson_iter_t stage, name;
    if (bson_has_field(query->options, "hint"))
        return false;
    /* The servers may read less when the pipeline begins with one of these stages. */
    const char *const partial =
        "$match|$limit|$sample|$geoNear|$search|$skip|$sort|$collStats|$indexStats";
    if (query->operation == SL_AGGREGATE)
        return bson_iter_init(&stage, query->pipeline) && bson_iter_next(&stage) &&
               bson_iter_recurse(&stage, &name) && bson_iter_next(&name) &&
               !sl_list_has(partial, '|', sl_text_of(bson_iter_key(&name)));
    bool scans = query->operation == SL_FIND || query->operation == SL_MAP_REDUCE;
    bson_iter_t field;
    return scans && !bson_has_field(query->body, "limit") &&
           (!bson_iter_init_find(&field, query->body, "filter") ||
            (bson_iter_recurse(&field, &name) && !bson_iter_next(&name)));
}

/* Does the parameter `limit` limit what is read? No, if a filter or $match comes before it. */
static bool reads_limit(const sl_query *query) {
    bson_t filter;
    if (!query->pipeline)
        return sl_has_parameter(query->body, SL_LIMIT_PARAMETER) &&
               (!sl_look_inside(query->body, "filter", &filter) || bson_empty(&filter));
    for (sl_walk walk = sl_walk_of(query->pipeline); sl_walk_next(&walk);) {
        if (bson_has_field(&walk.item, "$match") ||
            sl_has_parameter(&walk.item, SL_LIMIT_PARAMETER))
            return !bson_has_field(&walk.item, "$match");
    }
    return false;
}

bool sl_examined_by_definition(const sl_query *query, int64_t limit, uint64_t documents,
                               uint64_t *examined) {
    const bool limited = reads_limit(query);
    if (documents == 0 || (!limited && !reads_all(query)))
        return false;
    *examined = limited && (uint64_t)limit < documents ? (uint64_t)limit : documents;
    return true;
}

/* The documents examined, summed over the servers of a summary. Without execution statistics, all
 * `documents` when every server scans the collection. False when unknown. */
static bool examined_by_plan(const bson_t *summary, uint64_t documents, uint64_t *examined) {
    uint64_t sum = 0;
    bool measured = true, scanned = true, any = false;
    for (sl_walk walk = sl_walk_start(summary, "plans"); sl_walk_next(&walk);) {
        const char *text = sl_look_text(&walk.item, "plan");
        int64_t counted = sl_look_int64(&walk.item, "examined", -1);
        any = true;
        if (counted >= 0)
            sum += (uint64_t)counted;
        else
            measured = false;
        scanned = scanned && text && strncmp(text, "COLLSCAN", 8) == 0 && !strstr(text, "LIMIT") &&
                  !strstr(text, "$limit");
    }
    if (!any || (!measured && (!scanned || documents == 0)))
        return false;
    *examined = measured ? sum : documents;
    return true;
}

bool sl_explain_query(sl_runner *runner, uint64_t documents, sl_query_run *run) {
    const sl_query *query = runner->query;
    run->examined_known =
        sl_examined_by_definition(query, runner->target->limit, documents, &run->examined);
    if (sl_operation_writes(query->operation) || query->operation == SL_MAP_REDUCE)
        return true;
    if (!sl_runner_prepare(runner))
        return sl_error_memory(&run->error, "explaining a query");
    bson_t command = BSON_INITIALIZER, reply;
    bson_error_t ignored;
    BSON_APPEND_DOCUMENT(&command, "explain", sl_runner_command(runner));
    BSON_APPEND_UTF8(&command, "verbosity", "executionStats");
    bool ok = true;
    if (mongoc_client_read_command_with_opts(runner->client, runner->target->database, &command,
                                             runner->preference, NULL, &reply, &ignored)) {
        run->explained = sl_explain_summary(&reply);
        ok = run->explained || sl_error_memory(&run->error, "explaining a query");
    }
    /* The values of the timed runs are others than those of the plan. */
    if (run->explained && !run->examined_known && query->parameter_count == 0)
        run->examined_known = examined_by_plan(run->explained, documents, &run->examined);
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

/* ---- statistics ----
 *
 * Statistics that the client computes. Each thread reads a part of the documents (skip and limit of
 * the find) with its own client and computes its own figures. The figures are merged after all
 * threads have ended. */

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

static bool append_value(worker *w, double value) {
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 1024;
        double *grown =
            room > LIST_MAX / w->query.threads ? NULL : realloc(w->list, room * sizeof *grown);
        if (!grown)
            return !(w->no_memory = true);
        w->list = grown;
        w->room = room;
    }
    w->list[w->count++] = value;
    return true;
}

static bool read_value(void *context, const bson_t *document) {
    worker *w = context;
    bson_iter_t field;
    if (!sl_look_find(document, w->field, &field) || !BSON_ITER_HOLDS_NUMBER(&field))
        return true;
    double value = bson_iter_as_double(&field);
    if (w->query.statistic == SL_STATISTIC_LIST)
        return append_value(w, value);
    accumulate(&w->figures, value);
    return true;
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
        w->ok = sl_error_set(&w->error, SL_EXIT_RESOURCES,
                             "no memory for the values of a statistic, which are at most 4 GiB: "
                             "give the query a limit");
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
