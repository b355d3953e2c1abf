/* SPDX-License-Identifier: Apache-2.0 */
/* Explained aggregations in short. A server's reply to an explained aggregation is pages long and
 * has a shape of its own for each way of running it; what matters for a timing is which access path
 * was chosen on each shard, and whether the shards shared the work. */
#include <shardload/query.h>

#include <stdlib.h>
#include <string.h>

/* A server nests documents up to 200 deep. What is deeper is not looked at: the stack has an end.
 */
#define DEPTH_MAX 200

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

/* "IXSCAN t_1 -> FETCH": a stage after what it reads from. Stages with several inputs show the
 * first. */
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

/* The plan of one server: its winning plan, then the pipeline's stages that are not part of it. */
static char *plan_text(const bson_iter_t *server) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    bson_iter_t plan;
    if (find_deep(&plan, server, "winningPlan", DEPTH_MAX)) {
        bson_iter_t inner; /* since 5.0 for the slot-based engine */
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
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* Appends {shard, plan} to `plans`. */
static bool append_plan(bson_t *plans, uint32_t index, const char *shard,
                        const bson_iter_t *server) {
    char *text = plan_text(server);
    if (!text)
        return false;
    char room[16];
    const char *key;
    bson_uint32_to_string(index, &key, room, sizeof room);
    bson_t row;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(plans, key, &row) &&
              BSON_APPEND_UTF8(&row, "shard", shard) && BSON_APPEND_UTF8(&row, "plan", text) &&
              bson_append_document_end(plans, &row);
    free(text);
    return ok;
}

bson_t *sl_explain_summary(const bson_t *reply) {
    bson_t *summary = bson_new();
    bson_t whole = BSON_INITIALIZER; /* {"": reply}, so that a lone server looks like a shard */
    bson_iter_t found;
    bool split =
        bson_iter_init_find(&found, reply, "splitPipeline") && BSON_ITER_HOLDS_DOCUMENT(&found);
    bson_t plans;
    bool ok = BSON_APPEND_BOOL(summary, "split", split) &&
              BSON_APPEND_ARRAY_BEGIN(summary, "plans", &plans);
    bson_iter_t server;
    if (bson_iter_init_find(&found, reply, "shards") && bson_iter_recurse(&found, &server)) {
        for (uint32_t i = 0; ok && bson_iter_next(&server); i++)
            ok = append_plan(&plans, i, bson_iter_key(&server), &server);
    } else {
        ok = ok && BSON_APPEND_DOCUMENT(&whole, "", reply) && bson_iter_init(&server, &whole) &&
             bson_iter_next(&server) && append_plan(&plans, 0, "", &server);
    }
    ok = ok && bson_append_array_end(summary, &plans);
    bson_destroy(&whole);
    if (!ok) {
        bson_destroy(summary);
        summary = NULL;
    }
    return summary;
}
