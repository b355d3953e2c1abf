/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads and writes for which a server's router code has no command: count, distinct, explain and
 * findAndModify. The first three become aggregations, which the router code supports.
 */

#include "commands.h"

#include <stdio.h>
#include <string.h>

/* A pipeline under construction: the array and how many stages it has. */
struct pipeline {
    bson_t stages;
    uint32_t count;
};

static void append_stage(struct pipeline *pipeline, const bson_t *stage) {
    char index[16];
    const char *key;
    bson_uint32_to_string(pipeline->count++, &key, index, sizeof index);
    BSON_APPEND_DOCUMENT(&pipeline->stages, key, stage);
}

/* Appends {operator: value of the command's field} unless the field is missing, 0 or empty. */
static void append_field_stage(struct pipeline *pipeline, const char *operator_name,
                               const bson_t *command, const char *field) {
    bson_iter_t iter;
    bson_t stage = BSON_INITIALIZER;
    bool needed = bson_iter_init_find(&iter, command, field);
    if (needed && BSON_ITER_HOLDS_NUMBER(&iter)) {
        int64_t number = bson_iter_as_int64(&iter);
        /* A negative limit means one batch. */
        number = number < 0 && number > INT64_MIN ? -number : number;
        needed = number != 0;
        BSON_APPEND_INT64(&stage, operator_name, number);
    } else if (needed && BSON_ITER_HOLDS_DOCUMENT(&iter)) {
        bson_t value;
        needed = find_document(command, field, &value) &&
                 (!bson_empty(&value) || strcmp(operator_name, "$match") == 0);
        bson_append_iter(&stage, operator_name, -1, &iter);
    } else {
        needed = false;
    }
    if (needed) {
        append_stage(pipeline, &stage);
    }
    bson_destroy(&stage);
}

static void append_built_stage(struct pipeline *pipeline, bson_t *stage) {
    append_stage(pipeline, stage);
    bson_destroy(stage);
}

/*
 * Appends $unwind for every step of a path, because distinct also reads the elements of arrays, and
 * $match, so that documents without the field do not count as null.
 */
static void append_path_stages(struct pipeline *pipeline, const char *path) {
    const size_t length = strlen(path);
    char step[MAX_NAMESPACE + 1] = "$";
    if (length >= MAX_NAMESPACE) {
        return;
    }
    for (size_t i = 0; i <= length; i++) {
        if (path[i] == '.' || path[i] == '\0') {
            step[i + 1] = '\0';
            append_built_stage(pipeline,
                               BCON_NEW("$unwind", "{", "path", BCON_UTF8(step),
                                        "preserveNullAndEmptyArrays", BCON_BOOL(true), "}"));
        }
        step[i + 1] = path[i];
    }
    /* BCON_NEW cannot be used: it interprets a name that starts with a bracket as the start or end
     * of a document. */
    bson_t match = BSON_INITIALIZER;
    bson_t field;
    bson_t exists;
    BSON_APPEND_DOCUMENT_BEGIN(&match, "$match", &field);
    BSON_APPEND_DOCUMENT_BEGIN(&field, path, &exists);
    BSON_APPEND_BOOL(&exists, "$exists", true);
    bson_append_document_end(&field, &exists);
    bson_append_document_end(&match, &field);
    append_stage(pipeline, &match);
    bson_destroy(&match);
}

/*
 * Initialises `pipeline` with the stages for a find, count or distinct. False for other
 * commands. */
static bool build_pipeline(const bson_t *command, struct pipeline *pipeline) {
    bson_iter_t iter;
    bson_init(&pipeline->stages);
    pipeline->count = 0;
    if (!bson_iter_init(&iter, command) || !bson_iter_next(&iter)) {
        return false;
    }
    if (BSON_ITER_IS_KEY(&iter, "find")) {
        append_field_stage(pipeline, "$match", command, "filter");
        append_field_stage(pipeline, "$sort", command, "sort");
        append_field_stage(pipeline, "$skip", command, "skip");
        append_field_stage(pipeline, "$limit", command, "limit");
        append_field_stage(pipeline, "$project", command, "projection");
        return true;
    }
    append_field_stage(pipeline, "$match", command, "query");
    if (BSON_ITER_IS_KEY(&iter, "count")) {
        append_field_stage(pipeline, "$skip", command, "skip");
        append_field_stage(pipeline, "$limit", command, "limit");
        append_built_stage(pipeline, BCON_NEW("$group", "{", "_id", BCON_NULL, "n", "{", "$sum",
                                              BCON_INT64(1), "}", "}"));
        return true;
    }
    const char *key = find_text(command, "key");
    if (BSON_ITER_IS_KEY(&iter, "distinct") && key && key[0]) {
        char path[MAX_NAMESPACE + 1];
        snprintf(path, sizeof path, "$%s", key);
        append_path_stages(pipeline, key);
        append_built_stage(pipeline, BCON_NEW("$group", "{", "_id", BCON_UTF8(path), "}"));
        append_built_stage(pipeline, BCON_NEW("$sort", "{", "_id", BCON_INT32(1), "}"));
        append_built_stage(pipeline, BCON_NEW("$group", "{", "_id", BCON_NULL, "values", "{",
                                              "$push", BCON_UTF8("$_id"), "}", "}"));
        return true;
    }
    return false;
}

/* Runs the aggregation of `stages` that replaces `command`; `reply` as in session_run. */
static bool run_aggregate(struct session *session, const struct request *request,
                          const bson_t *command, const char *collection, const bson_t *stages,
                          bool explain, bson_t *reply) {
    static const char *const kept[] = {"hint",    "collation",   "let",          "maxTimeMS",
                                       "comment", "readConcern", "allowDiskUse", "$readPreference"};
    bson_t cursor;
    bson_t aggregate = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&aggregate, "clusterAggregate", collection);
    BSON_APPEND_ARRAY(&aggregate, "pipeline", stages);
    BSON_APPEND_DOCUMENT_BEGIN(&aggregate, "cursor", &cursor);
    bson_append_document_end(&aggregate, &cursor);
    if (explain) {
        BSON_APPEND_BOOL(&aggregate, "explain", true);
    }
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        copy_field(command, kept[i], &aggregate);
    }
    BSON_APPEND_UTF8(&aggregate, "$db", request->db);
    const bool good = run_at_home(session, request, &aggregate, reply);
    bson_destroy(&aggregate);
    return good;
}

/* Runs the aggregation that replaces a count or a distinct; `reply` as in session_run. */
static bool aggregate_for(struct session *session, const struct request *request, bson_t *reply) {
    struct pipeline pipeline;
    char ns[MAX_NAMESPACE];
    bson_t plain;
    bool good = false;
    if (!request_namespace(request, ns, reply)) {
        return false;
    }
    command_rewrite(request->body, request->name, &plain);
    if (build_pipeline(&plain, &pipeline)) {
        good = run_aggregate(session, request, &plain, request->target, &pipeline.stages, false,
                             reply);
    } else {
        answer_error(reply, CODE_FAILED_TO_PARSE, "%s cannot be read", request->name);
    }
    bson_destroy(&pipeline.stages);
    bson_destroy(&plain);
    return good;
}

/* A count by the shards' statistics: as fast as that of mongos, and counts orphans, too. */
static bool count_from_statistics(struct session *session, const struct request *request,
                                  bson_t *reply) {
    bson_t *aggregate = BCON_NEW("clusterAggregate", BCON_UTF8(request->target), "pipeline", "[",
                                 "{", "$collStats", "{", "count", "{", "}", "}", "}", "{", "$group",
                                 "{", "_id", BCON_NULL, "n", "{", "$sum", BCON_UTF8("$count"), "}",
                                 "}", "}", "]", "cursor", "{", "}", "$db", BCON_UTF8(request->db));
    const bool good = run_at_home(session, request, aggregate, reply);
    bson_destroy(aggregate);
    return good || answer_code(reply) == CODE_NAMESPACE_NOT_FOUND;
}

enum outcome run_count(struct session *session, const struct request *request, bson_t *reply) {
    static const char *const narrowing[] = {"skip", "limit", "hint"};
    bson_t query;
    bson_t row;
    bson_iter_t iter;
    bool whole = request->target && strcmp(request->db, "config") != 0 &&
                 strcmp(request->db, "admin") != 0 &&
                 (!find_document(request->body, "query", &query) || bson_empty(&query));
    for (size_t i = 0; i < sizeof narrowing / sizeof narrowing[0]; i++) {
        whole = whole && !bson_has_field(request->body, narrowing[i]);
    }
    if (whole ? !count_from_statistics(session, request, reply)
              : !aggregate_for(session, request, reply)) {
        return ANSWERED;
    }
    int64_t n = 0;
    if (first_of_batch(reply, &row) && bson_iter_init_find(&iter, &row, "n")) {
        n = bson_iter_as_int64(&iter);
    }
    bson_reinit(reply);
    if (n <= INT32_MAX) {
        BSON_APPEND_INT32(reply, "n", (int32_t)n);
    } else {
        BSON_APPEND_INT64(reply, "n", n);
    }
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    return ANSWERED;
}

enum outcome run_distinct(struct session *session, const struct request *request, bson_t *reply) {
    bson_t answer = BSON_INITIALIZER;
    bson_t row;
    bson_t values;
    if (!aggregate_for(session, request, reply)) {
        return ANSWERED;
    }
    if (!first_of_batch(reply, &row) || !find_document(&row, "values", &values)) {
        bson_init(&values);
    }
    BSON_APPEND_ARRAY(&answer, "values", &values);
    BSON_APPEND_DOUBLE(&answer, "ok", 1.0);
    bson_destroy(reply);
    bson_steal(reply, &answer);
    return ANSWERED;
}

/* Explains a command on a sharded collection by the plan of the aggregation that replaces it. */
static enum outcome explain_sharded(struct session *session, const struct request *request,
                                    const bson_t *explained, const char *collection,
                                    bson_t *reply) {
    struct pipeline pipeline;
    bson_t given;
    bool known = build_pipeline(explained, &pipeline);
    if (!known && bson_has_field(explained, "aggregate") &&
        find_document(explained, "pipeline", &given)) {
        bson_concat(&pipeline.stages, &given);
        known = true;
    }
    if (known) {
        run_aggregate(session, request, explained, collection, &pipeline.stages, true, reply);
    } else {
        answer_error(reply, CODE_COMMAND_NOT_FOUND,
                     "the local router does not explain this command on a sharded collection");
    }
    bson_destroy(&pipeline.stages);
    return ANSWERED;
}

enum outcome run_explain(struct session *session, const struct request *request, bson_t *reply) {
    bson_t given;
    bson_t explained;
    bson_iter_t iter;
    struct routing routing;
    char ns[MAX_NAMESPACE];
    enum outcome outcome = ANSWERED;
    if (!find_document(request->body, request->name, &given) || !bson_iter_init(&iter, &given) ||
        !bson_iter_next(&iter)) {
        answer_error(reply, CODE_FAILED_TO_PARSE, "explain needs a command");
        return ANSWERED;
    }
    struct request inner = *request;
    inner.target = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : NULL;
    command_rewrite(&given, bson_iter_key(&iter), &explained);
    if (request_namespace(&inner, ns, reply) && routing_load(session, ns, &routing, reply)) {
        if (routing.sharded) {
            outcome = explain_sharded(session, request, &explained, inner.target, reply);
        } else {
            /* A copy without the fields that are not forwarded, as for other commands. */
            bson_t outer = BSON_INITIALIZER;
            struct request cleaned = *request;
            BSON_APPEND_DOCUMENT(&outer, "explain", &explained);
            copy_field(request->body, "verbosity", &outer);
            copy_field(request->body, "comment", &outer);
            copy_field(request->body, "$db", &outer);
            cleaned.body = &outer;
            outcome = forward_primary(session, &cleaned, reply);
            bson_destroy(&outer);
        }
        routing_clear(&routing);
    }
    bson_destroy(&explained);
    return outcome;
}

/*
 * Finds the only shard that a query needs, by the plan that the server's router code returns for
 * it. False with an error in `reply` if it needs several shards.
 */
static bool find_target(struct session *session, const struct request *request,
                        const struct routing *routing, size_t *owner, bson_t *reply) {
    bson_t query;
    bson_t shards;
    bson_iter_t iter;
    bool good = find_document(request->body, "query", &query);
    if (bson_iter_init(&iter, &routing->key)) {
        while (good && bson_iter_next(&iter)) {
            bson_iter_t given;
            good = bson_iter_init_find(&given, &query, bson_iter_key(&iter));
        }
    }
    if (!good) {
        return answer_error(reply, CODE_SHARD_KEY_NOT_FOUND,
                            "Query for sharded findAndModify must contain the shard key");
    }
    bson_t *stages = BCON_NEW("0", "{", "$match", BCON_DOCUMENT(&query), "}");
    good = run_aggregate(session, request, request->body, request->target, stages, true, reply);
    bson_destroy(stages);
    if (!good) {
        return false;
    }
    good = find_document(reply, "shards", &shards) && bson_count_keys(&shards) == 1 &&
           bson_iter_init(&iter, &shards) && bson_iter_next(&iter);
    const size_t set =
        good ? topology_find_shard(session->router->topology, bson_iter_key(&iter)) : CONFIG_SET;
    bson_destroy(reply);
    for (*owner = 0; *owner < routing->owner_count; (*owner)++) {
        if (routing->owners[*owner].set == set) {
            return true;
        }
    }
    return answer_error(reply, CODE_SHARD_KEY_NOT_FOUND,
                        "Query for sharded findAndModify must contain the shard key, as one value");
}

enum outcome find_and_modify(struct session *session, const struct request *request, const char *ns,
                             struct routing *routing, bson_t *reply) {
    for (int attempt = 1;; attempt++) {
        size_t owner = 0;
        bson_t body;
        bson_t answer;
        if (!find_target(session, request, routing, &owner, reply)) {
            return ANSWERED;
        }
        command_prepare(request, &body);
        routing_append_version(routing, &routing->owners[owner], &body);
        const enum outcome outcome =
            forward_to(session, request, routing->owners[owner].set, &body, reply);
        bson_destroy(&body);
        if (outcome != FORWARDED || attempt == STALE_ATTEMPTS ||
            !session_forwarded_body(session, &answer) ||
            answer_code(&answer) != CODE_STALE_CONFIG) {
            return outcome;
        }
        routing_clear(routing);
        if (!routing_load(session, ns, routing, reply)) {
            return ANSWERED;
        }
    }
}
