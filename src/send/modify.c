/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of the modes upsert, merge, replace and delete: sends each batch as update or delete
 * commands (statements.h), unordered, through the routers.
 *
 * Sending a batch again is safe for this reason: a statement affects the one document that its
 * match fields identify (sl_check_match), and leaves it in a state that depends on the record
 * alone. So if the outcome of a command is not known, the command is sent again: a document that
 * the first attempt has changed is then found unchanged, and one that it has deleted is not found.
 * Both count as "already stored", and no search is needed. If several documents of a batch match
 * the same stored document, the result is not defined: the server may execute them in any order.
 *
 * The server reports totals, and which documents were inserted or refused, but not which documents
 * were modified. Since only totals are shown, the first matched documents are counted as the
 * modified ones. If each record must match (--mode replace), the documents that match no stored
 * document are rejects, so they are identified by bisection.
 *
 * Two upserts of the same document at the same time can both insert, and then one is refused as a
 * duplicate. So a duplicate is sent once more before it becomes a reject. A document that is
 * refused with a code that is not known to be about documents is sent once more, alone
 * (writer.c). */
#include "writer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"

#include "reply.h"
#include "statements.h"

/* The outcome of a document of a command. */
typedef enum sl_found { MATCHED, UPSERTED, REFUSED, UNMATCHED } sl_found;

struct sl_outlet {
    const sl_sending *sending;
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    bson_t *head; /* of each command */
    sl_statements statements;
    bson_t *views;            /* of a batch's documents */
    uint8_t *found;           /* sl_found, per document of the batch */
    uint32_t *places, *again; /* indexes of documents: to be sent; to be sent once more */
    uint32_t again_count;
    sl_aside aside;   /* to be sent once more, each alone */
    bson_error_t why; /* why the last command failed */
    size_t room;
    unsigned seed;
};

static void outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    mongoc_collection_destroy(outlet->collection);
    if (outlet->client)
        sl_connection_return_writer(outlet->sending->destination->connection, outlet->client);
    bson_destroy(outlet->head);
    free(outlet->statements.bytes);
    free(outlet->views);
    free(outlet->found);
    free(outlet->places);
    free(outlet->again);
    free(outlet->aside.indexes);
    free(outlet);
}

static bool outlet_create(const sl_sending *sending, void *shared, sl_outlet **result,
                          sl_error *error) {
    (void)shared;
    const sl_target *target = &sending->destination->target;
    sl_outlet *made = calloc(1, sizeof *made);
    *result = made;
    if (!made)
        return sl_error_memory(error, "starting writers");
    made->sending = sending;
    made->seed = (unsigned)sl_clock_ns();
    made->client = sl_connection_borrow_writer(sending->destination->connection);
    made->collection =
        mongoc_client_get_collection(made->client, target->database, target->collection);
    made->head = bson_new();
    BSON_APPEND_UTF8(made->head, sl_modes[sending->keys->mode].command, target->collection);
    BSON_APPEND_BOOL(made->head, "ordered", false);
    mongoc_write_concern_t *concern = sl_writer_concern(sending);
    bool ok = mongoc_write_concern_append(concern, made->head);
    mongoc_write_concern_destroy(concern);
    sl_target_append_uuid(target, made->head);
    return ok || sl_error_memory(error, "starting writers");
}

/* Makes views of the consecutive documents of the batch. */
static bool view_documents(sl_outlet *outlet, const sl_batch *batch, sl_error *error) {
    if (batch->documents > outlet->room) {
        free(outlet->views);
        free(outlet->found);
        free(outlet->places);
        free(outlet->again);
        free(outlet->aside.indexes);
        outlet->room = batch->documents;
        outlet->views = aligned_alloc(_Alignof(bson_t), outlet->room * sizeof *outlet->views);
        outlet->found = malloc(outlet->room);
        outlet->places = malloc(outlet->room * sizeof *outlet->places);
        outlet->again = malloc(outlet->room * sizeof *outlet->again);
        outlet->aside.indexes = malloc(outlet->room * sizeof *outlet->aside.indexes);
        if (!outlet->views || !outlet->found || !outlet->places || !outlet->again ||
            !outlet->aside.indexes) {
            outlet->room = 0;
            return sl_error_memory(error, "sending a batch");
        }
    }
    for (uint32_t i = 0; i < batch->documents; i++)
        outlet->places[i] = i;
    return sl_batch_view(batch, outlet->views, error);
}

/* Sends the documents at `places`, or the first of them that fit. `body` is always initialised. */
static sl_outcome send_command(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                               uint32_t *taken, bson_t *body, sl_modified *found, sl_error *error) {
    const sl_sending *sending = outlet->sending;
    const sl_target *target = &sending->destination->target;
    bson_t command;
    outlet->why = (bson_error_t){0};
    *taken = count;
    if (!sl_statements_write(&outlet->statements, sending->keys, outlet->head, outlet->views,
                             places, count, taken, &command)) {
        bson_init(body);
        sl_error_memory(error, "sending a batch");
        return UNDELIVERABLE;
    }
    bool ok = mongoc_client_write_command_with_opts(outlet->client, target->database, &command,
                                                    NULL, body, &outlet->why);
    if (sl_reply_is_replaced(&outlet->why, body)) {
        sl_target_mismatch(sending->destination->connection, target, error);
        return UNDELIVERABLE;
    }
    const sl_reply reply = {.ok = ok,
                            .body = body,
                            .why = &outlet->why,
                            .count = *taken,
                            .own_ids = true,
                            .mode = sending->keys->mode};
    sl_verdict verdict = sl_reply_judge_modify(&reply, found, error);
    if (verdict == SL_REPLY_COMPLETE)
        return DELIVERED;
    sl_outcome outcome = sl_outcome_of_reply(&reply, verdict, false);
    sl_error_prefix(error, "%s in %s.%s", sl_modes[sending->keys->mode].name, target->database,
                    target->collection);
    return outcome;
}

/* Finds those of the documents at `places` that match no stored document, by sending halves. Their
 * number goes to `*unmatched`. */
static sl_outcome find_unmatched(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                                 uint32_t *unmatched, sl_error *error) {
    sl_outcome outcome = DELIVERED;
    *unmatched = 0;
    for (uint32_t first = 0, taken; outcome == DELIVERED && first < count; first += taken) {
        bson_t body;
        sl_modified found;
        outcome = send_command(outlet, places + first, count - first, &taken, &body, &found, error);
        bson_destroy(&body);
        if (outcome != DELIVERED)
            break;
        uint32_t missing = taken - found.matched - found.refused;
        bool all = missing == taken;
        for (uint32_t i = 0; all && i < taken; i++)
            outlet->found[places[first + i]] = UNMATCHED;
        *unmatched += all ? missing : 0;
        for (uint32_t half = 0; !all && missing > 0 && half < 2 && outcome == DELIVERED; half++) {
            uint32_t middle = taken / 2, more;
            outcome = find_unmatched(outlet, places + first + (half ? middle : 0),
                                     half ? taken - middle : middle, &more, error);
            *unmatched += more;
        }
    }
    return outcome == DELIVERED || outcome == UNDELIVERABLE ? outcome : SEND_AGAIN;
}

/* Sets outlet->found of the documents by the answer. */
static void take_answer(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                        const bson_t *body) {
    bson_iter_t items;
    sl_write_error one;
    int64_t index;
    for (uint32_t i = 0; i < count; i++)
        outlet->found[places[i]] = MATCHED;
    for (bool any = sl_reply_upserted(body, &items); any && sl_reply_next_upserted(&items, &index);)
        outlet->found[places[index]] = UPSERTED;
    for (bool any = sl_reply_errors(body, &items); any && sl_reply_next_error(&items, &one);)
        outlet->found[places[one.index]] = REFUSED;
}

/* In a mode whose records must match: which documents have matched no stored document? */
static sl_outcome find_rejects(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                               uint32_t missing, sl_error *error) {
    uint32_t *list = malloc(count * sizeof *list), used = 0, unmatched;
    if (!list) {
        sl_error_memory(error, "sending a batch");
        return UNDELIVERABLE;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (outlet->found[places[i]] == MATCHED)
            list[used++] = places[i];
    }
    sl_outcome outcome = find_unmatched(outlet, list, used, &unmatched, error);
    free(list);
    if (outcome == DELIVERED && unmatched != missing) {
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "%u documents matched no stored document, but %u did when they were sent "
                     "again: another program writes to the collection",
                     missing, unmatched);
        outcome = SEND_AGAIN;
    }
    return outcome;
}

static void report_refused(sl_outlet *outlet, const sl_listener *listener, const uint32_t *places,
                           const bson_t *body) {
    bson_iter_t items;
    sl_write_error one;
    for (bool any = sl_reply_errors(body, &items); any && sl_reply_next_error(&items, &one);) {
        uint32_t place = places[one.index];
        if (one.code == SL_DUPLICATE_KEY && !listener->last_chance) {
            outlet->again[outlet->again_count++] = place;
            continue;
        }
        if (one.doubtful && !listener->alone) {
            listener->aside->indexes[listener->aside->count++] = place;
            continue;
        }
        listener->result->rejected++;
        listener->refused(listener->context, place, FATE_REFUSED, one.code, one.message);
    }
}

/* Reports the outcome of the documents; called once for each, with an answer that adds up. */
static void report(sl_outlet *outlet, const sl_listener *listener, const uint32_t *places,
                   uint32_t count, const sl_modified *found) {
    const sl_mode_row *mode = &sl_modes[outlet->sending->keys->mode];
    uint32_t changed = mode->removes ? found->matched : found->modified;
    for (uint32_t i = 0; i < count; i++) {
        sl_fate fate = FATE_ALREADY_STORED;
        switch ((sl_found)outlet->found[places[i]]) {
        case UPSERTED:
            listener->result->inserted++;
            continue;
        case REFUSED:
            continue;
        case UNMATCHED:
            listener->result->rejected++;
            listener->refused(listener->context, places[i], FATE_NOT_FOUND, 0,
                              "no stored document matches; --mode upsert inserts "
                              "such records");
            continue;
        case MATCHED:
            if (changed > 0) {
                changed--;
                fate = FATE_CHANGED;
            }
        }
        *(fate == FATE_CHANGED ? &listener->result->changed : &listener->result->already_stored) +=
            1;
        listener->refused(listener->context, places[i], fate, 0, "");
    }
}

/* One attempt to send the documents at `places`, or the first of them. Nothing has been reported
 * unless they are DELIVERED. */
static sl_outcome send_once(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                            uint32_t *taken, const sl_listener *listener, sl_error *error) {
    bson_t body;
    sl_modified found;
    sl_outcome outcome = send_command(outlet, places, count, taken, &body, &found, error);
    if (outcome == DELIVERED) {
        uint32_t missing = *taken - found.matched - found.upserted - found.refused;
        take_answer(outlet, places, *taken, &body);
        if (missing > 0 && sl_modes[outlet->sending->keys->mode].must_match)
            outcome = find_rejects(outlet, places, *taken, missing, error);
    }
    if (outcome == DELIVERED) {
        report_refused(outlet, listener, places, &body);
        report(outlet, listener, places, *taken, &found);
    } else if (sl_report_alone(listener, outcome, &outlet->why, places[0], *taken)) {
        outcome = DELIVERED;
    }
    bson_destroy(&body);
    return outcome;
}

/* Sends the documents at `places`, in as many commands as needed. */
static bool send_all(sl_outlet *outlet, const uint32_t *places, sl_course *course,
                     const sl_listener *listener, sl_error *error) {
    while (course->first < course->end) {
        uint32_t left = course->end - course->first, taken;
        sl_interrupt_begin_change();
        sl_outcome outcome =
            send_once(outlet, places + course->first, course->most < left ? course->most : left,
                      &taken, listener, error);
        sl_interrupt_end_change();
        if (!sl_course_go_on(course, outcome, taken, error))
            return false;
    }
    return true;
}

static bool modify_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                        refusal_handler refused, void *context, sl_error *error) {
    if (!view_documents(outlet, batch, error))
        return false;
    sl_listener listener = {result, refused, context, .aside = &outlet->aside};
    outlet->again_count = outlet->aside.count = 0;
    sl_course course = {.sending = outlet->sending,
                        .result = result,
                        .seed = &outlet->seed,
                        .indexes = outlet->places,
                        .aside = &outlet->aside,
                        .end = batch->documents,
                        .most = batch->documents};
    bool ok = send_all(outlet, outlet->places, &course, &listener, error);
    listener.last_chance = true;
    course.indexes = outlet->again;
    course.first = 0;
    course.end = course.most = outlet->again_count;
    ok = ok && send_all(outlet, outlet->again, &course, &listener, error) &&
         sl_course_before_alone(&course, error);
    listener.alone = true;
    listener.accepted = course.accepted;
    for (uint32_t i = 0; ok && i < outlet->aside.count; i++) {
        sl_course alone = sl_course_alone(&course, outlet->aside.indexes[i]);
        ok = send_all(outlet, outlet->places, &alone, &listener, error);
    }
    if (ok)
        error->code = SL_EXIT_OK;
    return ok;
}

const sl_sink_type sl_sink_modify = {
    .name = "cluster",
    .open = sl_writer_open,
    .outlet_create = outlet_create,
    .outlet_destroy = outlet_destroy,
    .send = modify_send,
};
