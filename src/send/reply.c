/* SPDX-License-Identifier: Apache-2.0 */
#include "reply.h"
#include "bson/bson_writer.h"

#include <stdlib.h>
#include <string.h>

#include <mongoc/mongoc.h>

#include "bson/bson_lookup.h"
#include "cluster/cluster.h"
#include "cluster/connection.h"
#include "report/json.h"
#include "util/document_id.h"

#define IMMUTABLE_FIELD 66 /* of an update: the stored document has another _id */

/* The codes that are known. With those about the document, one answer decides. Those about the
 * state of the server, here and in sl_code_is_transient, never reject a document. What a server
 * reports for one document with any other code is about the document if it reports it again when
 * that document is sent alone. */
static const struct {
    int32_t code;
    sl_verdict verdict;
} codes[] = {
    /* About the document. */
    {15, SL_REPLY_COMPLETE},    /* Overflow: nested too deeply */
    {52, SL_REPLY_COMPLETE},    /* DollarPrefixedFieldName: in the _id */
    {53, SL_REPLY_COMPLETE},    /* InvalidIdField: an _id of type array or regex */
    {61, SL_REPLY_COMPLETE},    /* ShardKeyNotFound: an array in the shard key */
    {121, SL_REPLY_COMPLETE},   /* DocumentValidationFailure: by the collection's validator */
    {171, SL_REPLY_COMPLETE},   /* CannotIndexParallelArrays */
    {11000, SL_REPLY_COMPLETE}, /* DuplicateKey */
    {13026, SL_REPLY_COMPLETE}, /* 2d index: not a pair of coordinates */
    {13027, SL_REPLY_COMPLETE}, /* 2d index: a point outside its bounds */
    {13068, SL_REPLY_COMPLETE}, /* 2d index: one coordinate only */
    {16755, SL_REPLY_COMPLETE}, /* 2dsphere index: not a geometry */
    {16766, SL_REPLY_COMPLETE}, /* hashed index: an array */
    {17261, SL_REPLY_COMPLETE}, /* text index: the language is not a string */
    {17262, SL_REPLY_COMPLETE}, /* text index: an unknown language */

    /* A router received no answer from a shard. */
    {6, SL_REPLY_NONE},    /* HostUnreachable: the shard closed the connection */
    {89, SL_REPLY_NONE},   /* NetworkTimeout */
    {9001, SL_REPLY_NONE}, /* SocketException */

    /* Temporary conditions of a server. */
    {8, SL_REPLY_UNKNOWN},     /* UnknownError: such as an error of the disk */
    {39, SL_REPLY_UNKNOWN},    /* FileRenameFailed */
    {70, SL_REPLY_UNKNOWN},    /* ShardNotFound: the router does not know a new shard yet */
    {82, SL_REPLY_UNKNOWN},    /* NoProgressMade: the chunks move while the router sends */
    {107, SL_REPLY_UNKNOWN},   /* LockFailed */
    {146, SL_REPLY_UNKNOWN},   /* ExceededMemoryLimit */
    {175, SL_REPLY_UNKNOWN},   /* QueryPlanKilled: an index was dropped during an update */
    {215, SL_REPLY_UNKNOWN},   /* DatabaseDropPending */
    {304, SL_REPLY_UNKNOWN},   /* ShardInvalidatedForTargeting: the router reads the chunks again */
    {11601, SL_REPLY_UNKNOWN}, /* Interrupted */
    {12586, SL_REPLY_UNKNOWN}, /* BackgroundOperationInProgressForDatabase */
    {12587, SL_REPLY_UNKNOWN}, /* BackgroundOperationInProgressForNamespace */
    {14031, SL_REPLY_UNKNOWN}, /* OutOfDiskSpace */

    {10334, SL_REPLY_TOO_LARGE}, /* BSONObjectTooLarge */
    {13548, SL_REPLY_TOO_LARGE}, /* BufBuilder attempted to grow beyond its limit */

    /* Repeating does not help. */
    {13, SL_REPLY_FINAL},   /* Unauthorized */
    {18, SL_REPLY_FINAL},   /* AuthenticationFailed */
    {26, SL_REPLY_FINAL},   /* NamespaceNotFound */
    {59, SL_REPLY_FINAL},   /* CommandNotFound */
    {72, SL_REPLY_FINAL},   /* InvalidOptions */
    {73, SL_REPLY_FINAL},   /* InvalidNamespace */
    {79, SL_REPLY_FINAL},   /* UnknownReplWriteConcern */
    {100, SL_REPLY_FINAL},  /* UnsatisfiableWriteConcern: the set has too few members */
    {166, SL_REPLY_FINAL},  /* CommandNotSupportedOnView */
    {361, SL_REPLY_FINAL},  /* CollectionUUIDMismatch: the collection was replaced */
    {8000, SL_REPLY_FINAL}, /* a hosted service: its quota is used up, or the user is unknown */
};

/* The verdict that one error leads to. `*listed`: the code is known. */
static sl_verdict verdict_of(int32_t code, bool *listed) {
    *listed = true;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == code)
            return codes[i].verdict;
    }
    *listed = sl_code_is_transient(code);
    return SL_REPLY_UNKNOWN;
}

/* The verdict of a code in a reply. In modes that match documents, the errors about shard keys mean
 * that the shard key was changed during the load: the records contained all fields of the earlier
 * one, and no arrays in them. Such an error ends the load; no record is rejected for it. */
static sl_verdict verdict_in(const sl_reply *reply, int32_t code, bool *listed) {
    sl_verdict verdict = verdict_of(code, listed);
    bool of_key = code == 61 || code == 31025; /* the key is missing; its value would change */
    if (!of_key || !sl_modes[reply->mode].matches)
        return verdict;
    *listed = true;
    return SL_REPLY_FINAL; /* the server's message names the shard key */
}

/* ---- write errors ---- */

static bool array_of(const bson_t *body, const char *key, bson_iter_t *items) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, body, key) && BSON_ITER_HOLDS_ARRAY(&iter) &&
           bson_iter_recurse(&iter, items);
}

bool sl_reply_errors(const bson_t *body, bson_iter_t *errors) {
    bson_iter_t first;
    if (!array_of(body, "writeErrors", errors))
        return false;
    first = *errors;
    return bson_iter_next(&first);
}

/* Is it a duplicate of _id itself, not of some other unique index? */
static bool is_duplicate_id(const bson_t *write_error, const sl_write_error *found) {
    bson_iter_t key;
    bson_t pattern;
    if (found->code != SL_DUPLICATE_KEY)
        return false;
    if (sl_look_inside(write_error, "keyPattern", &pattern) && bson_iter_init(&key, &pattern) &&
        bson_iter_next(&key))
        return strcmp(bson_iter_key(&key), "_id") == 0;
    return strstr(found->message, "index: _id_ ") || strstr(found->message, "{ _id:");
}

bool sl_reply_next_error(bson_iter_t *errors, sl_write_error *found) {
    bson_t fields;
    if (!bson_iter_next(errors))
        return false;
    *found = (sl_write_error){.index = -1, .message = ""};
    if (!sl_document_at(errors, &fields))
        return true;
    found->index = sl_look_int64(&fields, "index", -1);
    found->code = (int32_t)sl_look_int64(&fields, "code", 0);
    found->message = sl_look_string(&fields, "errmsg");
    found->duplicate_id = is_duplicate_id(&fields, found);
    found->unexplained =
        found->code == SL_DUPLICATE_KEY && !*found->message && !found->duplicate_id;
    bson_t rule;
    if (sl_look_inside(&fields, "errInfo.details", &rule))
        found->rule = bson_get_data(&rule);
    bool listed;
    found->doubtful = verdict_of(found->code, &listed) == SL_REPLY_TOO_LARGE || !listed;
    return true;
}

const char *sl_write_error_text(const sl_write_error *one, const char *validator,
                                char out[SL_WRITE_ERROR_ROOM]) {
    const bool named = one->code == SL_DOCUMENT_VALIDATION_FAILURE && !one->rule && *validator;
    bson_t rule;
    char *json = NULL;
    if (one->rule && bson_init_static(&rule, one->rule, sl_bson_length(one->rule)))
        json = sl_document_json(&rule);
    sl_print_text(out, SL_WRITE_ERROR_ROOM, "%s%s%s%s",
                  *one->message ? one->message : "an error without a message", json ? ": " : "",
                  named ? " by the collection's validator " : "",
                  json ? json : (named ? validator : ""));
    bson_free(json);
    return out;
}

/* ---- the verdict ---- */

/* Sets `error` to `doing` and the server's error in words. */
static void quote(sl_error *error, const char *doing, int32_t code, const char *message) {
    bson_error_t why = {.domain = MONGOC_ERROR_SERVER, .code = (uint32_t)code};
    bson_strncpy(why.message, *message ? message : "an error without a message",
                 sizeof why.message);
    sl_error_from_driver(error, doing, &why);
    size_t used = strlen(error->message);
    bson_snprintf(error->message + used, sizeof error->message - used, " (code %d)", code);
}

/* Adds the position of the refused document, so that the user can find it. */
static void add_place(sl_error *error, const sl_reply *reply, int64_t index) {
    bson_iter_t iter;
    if (!reply->documents || index < 0 || index >= reply->count ||
        !bson_iter_init_find(&iter, reply->documents[index], "_id"))
        return;
    size_t used = strlen(error->message);
    if (reply->own_ids) {
        char *json = sl_json_value(&iter);
        bson_snprintf(error->message + used, sizeof error->message - used,
                      ", the first of them with _id %.200s", json ? json : "?");
        free(json);
    }
    if (reply->own_ids || !BSON_ITER_HOLDS_INT64(&iter))
        return;
    int64_t id = bson_iter_int64(&iter);
    bson_snprintf(error->message + used, sizeof error->message - used,
                  ", the first of them with _id %lld, at byte %llu of its source", (long long)id,
                  (unsigned long long)sl_document_id_offset(id));
}

/* The verdict of one write error. */
static sl_verdict verdict_of_one(const sl_reply *reply, const sl_write_error *one) {
    bool listed, immutable = sl_modes[reply->mode].matches && one->code == IMMUTABLE_FIELD;
    sl_verdict verdict = verdict_in(reply, one->code, &listed);
    bool alone = verdict == SL_REPLY_TOO_LARGE && reply->count == 1;
    return immutable || !listed || alone ? SL_REPLY_COMPLETE : verdict;
}

/* The verdict of all write errors; the most severe is quoted. `*errors` is their number;
 * `*each_once`: no two of them name the same document. */
static sl_verdict judge_errors(const sl_reply *reply, uint32_t *errors, bool *each_once,
                               sl_error *error) {
    bson_iter_t items;
    sl_write_error one, worst = {0};
    sl_verdict verdict = SL_REPLY_COMPLETE;
    uint32_t same_code = 0; /* errors with the code of `worst` */
    *errors = 0;
    *each_once = true;
    if (!sl_reply_errors(reply->body, &items))
        return verdict;
    bool *seen = calloc(reply->count, sizeof *seen);
    if (!seen) {
        sl_error_memory(error, "reading the answer to an insert");
        return SL_REPLY_FINAL;
    }
    while (sl_reply_next_error(&items, &one)) {
        bool new = one.index >= 0 && one.index < reply->count && !seen[one.index];
        *each_once &= new;
        if (new)
            seen[one.index] = true;
        ++*errors;
        sl_verdict of_one = verdict_of_one(reply, &one);
        if (of_one > verdict) {
            verdict = of_one;
            worst = one;
            same_code = 0;
        }
        same_code += one.code == worst.code;
    }
    free(seen);
    if (verdict != SL_REPLY_COMPLETE) {
        char doing[80];
        bson_snprintf(doing, sizeof doing, "the server refused %u of %u documents", same_code,
                      reply->count);
        quote(error, doing, worst.code, worst.message);
        add_place(error, reply, worst.index);
    }
    return verdict;
}

/* The verdict of a write concern that was not satisfied: the writes are less durable than
 * requested. A router reports the errors of several shards with code 64, WriteConcernFailed, and
 * their names. If such a batch were sent again, its documents would be found already stored. */
static sl_verdict concern_verdict(int32_t code, const char *message, sl_error *error) {
    quote(error, "the write concern was not satisfied", code, message);
    bool listed;
    bool final = verdict_of(code, &listed) == SL_REPLY_FINAL ||
                 (code == 64 && (strstr(message, "UnsatisfiableWriteConcern") ||
                                 strstr(message, "UnknownReplWriteConcern")));
    return final ? SL_REPLY_FINAL : SL_REPLY_UNKNOWN;
}

static sl_verdict judge_concern(const sl_reply *reply, sl_error *error) {
    bson_iter_t items;
    sl_write_error one;
    if (!array_of(reply->body, "writeConcernErrors", &items) || !sl_reply_next_error(&items, &one))
        return SL_REPLY_COMPLETE;
    return concern_verdict(one.code, one.message, error);
}

/* An error of the command or of the connection, not of documents. */
static sl_verdict judge_command(const sl_reply *reply, sl_error *error) {
    const bson_error_t *why = reply->why;
    if (why->domain == MONGOC_ERROR_SERVER) {
        quote(error, "the server answered", (int32_t)why->code, why->message);
        bool listed;
        sl_verdict verdict = verdict_in(reply, (int32_t)why->code, &listed);
        /* BadValue, FailedToParse, TypeMismatch: the server refuses the command itself. */
        if (why->code == 2 || why->code == 9 || why->code == 14)
            return SL_REPLY_FINAL;
        /* The error does not name the documents. */
        return verdict == SL_REPLY_COMPLETE ? SL_REPLY_UNKNOWN : verdict;
    }
    /* The driver refused to send the command. */
    if (why->domain == MONGOC_ERROR_BSON ||
        (why->domain == MONGOC_ERROR_COMMAND && why->code == MONGOC_ERROR_COMMAND_INVALID_ARG)) {
        sl_error_from_driver(error, "the driver refused the batch", why);
        return SL_REPLY_FINAL;
    }
    sl_error_from_driver(error, "no answer", why);
    return SL_REPLY_NONE;
}

bool sl_reply_is_of_document(int32_t code) {
    bool listed;
    return verdict_of(code, &listed) == SL_REPLY_COMPLETE && code != SL_DUPLICATE_KEY;
}

bool sl_reply_refuses_command(const sl_reply *reply) {
    bson_iter_t errors;
    bool listed;
    if (reply->ok || reply->why->domain != MONGOC_ERROR_SERVER ||
        sl_reply_errors(reply->body, &errors))
        return false;
    sl_verdict verdict = verdict_in(reply, (int32_t)reply->why->code, &listed);
    return !listed || verdict == SL_REPLY_COMPLETE ||
           (verdict == SL_REPLY_TOO_LARGE && reply->count == 1);
}

sl_verdict sl_reply_judge(const sl_reply *reply, uint32_t *inserted, sl_error *error) {
    int64_t count = sl_look_int64(reply->body, "insertedCount", -1);
    uint32_t errors;
    bool each_once;
    sl_verdict verdict = judge_concern(reply, error);
    if (verdict != SL_REPLY_COMPLETE)
        return verdict;
    verdict = judge_errors(reply, &errors, &each_once, error);
    if (verdict != SL_REPLY_COMPLETE)
        return verdict;
    if (!reply->ok && errors == 0)
        return judge_command(reply, error);
    if (!each_once || count < 0 || count + errors != reply->count) {
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the server's answer does not add up: of %u documents it reports %lld as "
                     "inserted and %u as refused%s",
                     reply->count, (long long)count, errors,
                     each_once ? "" : ", some of them more than once");
        return SL_REPLY_UNKNOWN;
    }
    *inserted = (uint32_t)count;
    return SL_REPLY_COMPLETE;
}

/* ---- updates and deletes ---- */

bool sl_reply_upserted(const bson_t *body, bson_iter_t *upserted) {
    return array_of(body, "upserted", upserted);
}

bool sl_reply_next_upserted(bson_iter_t *upserted, int64_t *index) {
    bson_t fields;
    *index = -1;
    if (!bson_iter_next(upserted))
        return false;
    if (sl_document_at(upserted, &fields))
        *index = sl_look_int64(&fields, "index", -1);
    return true;
}

/* As judge_concern, for the server's own answer to a command. */
static sl_verdict judge_own_concern(const sl_reply *reply, sl_error *error) {
    if (!bson_has_field(reply->body, "writeConcernError"))
        return SL_REPLY_COMPLETE;
    return concern_verdict((int32_t)sl_look_int64(reply->body, "writeConcernError.code", 0),
                           sl_look_string(reply->body, "writeConcernError.errmsg"), error);
}

/* The number of documents that were inserted. -1: the reply names one that was not sent, or one
 * twice, or one as inserted and as refused; or no memory is left. The batch is then sent again. */
static int64_t count_upserted(const sl_reply *reply) {
    bson_iter_t items;
    sl_write_error refused;
    int64_t index, count = 0;
    bool *seen = calloc(reply->count, sizeof *seen);
    for (bool any = seen && sl_reply_errors(reply->body, &items);
         any && sl_reply_next_error(&items, &refused);) {
        if (refused.index >= 0 && refused.index < reply->count)
            seen[refused.index] = true;
    }
    for (bool any = sl_reply_upserted(reply->body, &items);
         any && count >= 0 && sl_reply_next_upserted(&items, &index);) {
        bool new = seen &&index >= 0 && index < reply->count && !seen[index];
        if (new)
            seen[index] = true;
        count = new ? count + 1 : -1;
    }
    free(seen);
    return count;
}

sl_verdict sl_reply_judge_modify(const sl_reply *reply, sl_modified *found, sl_error *error) {
    uint32_t refused;
    bool each_once;
    const int64_t n = sl_look_int64(reply->body, "n", -1), upserted = count_upserted(reply);
    const sl_mode_row *mode = &sl_modes[reply->mode];
    const int64_t modified = sl_look_int64(reply->body, "nModified", mode->removes ? n : -1);
    *found = (sl_modified){0};
    if (n < 0 && !reply->ok)
        return judge_command(reply, error);
    sl_verdict verdict = judge_own_concern(reply, error);
    if (verdict == SL_REPLY_COMPLETE)
        verdict = judge_errors(reply, &refused, &each_once, error);
    if (verdict != SL_REPLY_COMPLETE)
        return verdict;
    if (!reply->ok && refused == 0)
        return judge_command(reply, error);
    const int64_t known = n > reply->count ? n : n + refused;
    if (!each_once || n < 0 || upserted < 0 || upserted > n || modified < 0 ||
        modified > n - upserted || known > reply->count ||
        (mode->creates && known < reply->count) || (!mode->creates && upserted > 0)) {
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the server's answer does not add up: of %u documents it reports %lld as "
                     "matched or inserted, %lld as modified, %lld as inserted and %u as refused",
                     reply->count, (long long)n, (long long)modified, (long long)upserted, refused);
        return SL_REPLY_UNKNOWN;
    }
    *found = (sl_modified){.matched = (uint32_t)(n - upserted),
                           .modified = (uint32_t)modified,
                           .upserted = (uint32_t)upserted,
                           .refused = refused};
    return SL_REPLY_COMPLETE;
}

bool sl_reply_is_replaced(const bson_error_t *why, const bson_t *body) {
    bson_iter_t items;
    sl_write_error one;
    bool is = why->domain == MONGOC_ERROR_SERVER && why->code == SL_CODE_COLLECTION_UUID_MISMATCH;
    for (bool any = sl_reply_errors(body, &items); !is && any && sl_reply_next_error(&items, &one);)
        is = one.code == SL_CODE_COLLECTION_UUID_MISMATCH;
    return is;
}
