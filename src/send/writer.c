/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: sends batches to the cluster, as unordered bulk inserts through the driver.
 *
 * The driver's validation is off, because the encoder has checked the documents. If the server's
 * answer does not account for every document of a batch (reply.h), the batch is sent again: its
 * documents are searched for first, and only those that are not stored are sent. A document that is
 * found, or is refused as a duplicate, is compared (duplicates.h); it counts as stored only if all
 * bytes are equal.
 *
 * A validator's error messages may be so long that the server cannot build its answer for all
 * documents of a batch. Then the batch is sent in pieces, each half as large as before, one after
 * the other. So it is if the server refuses a command for a reason that may be in one of its
 * documents, until that document has been found.
 *
 * A document that is refused with a code that is not known to be about documents is set aside, and
 * sent alone after the others. If the server refuses it again, it is a reject. If the server
 * refuses whole commands, this holds only if it has executed another command of the batch:
 * otherwise no document is the reason. A router refuses the command with a code that is known to be
 * about documents if it cannot find the shard of one of them: then the document is a reject as soon
 * as it is the only one of a command. */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mongoc/mongoc.h>

#include "bson/bson_writer.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"

#include "duplicates.h"
#include "reply.h"
#include "writer_internal.h"

#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 5000
#define REFUSED_MOST 3u /* documents whose commands are refused while none is executed */

/* A connection to the primary of one shard, or to a router. */
typedef struct sl_target_connection {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
} sl_target_connection;

struct sl_outlet {
    const sl_sending *sending;
    /* On the direct route one connection per shard; in any case a last one to the routers. */
    sl_target_connection *connections;
    uint32_t connection_count;
    const sl_target_connection *connection; /* of the current batch */
    bson_t *views; /* one per document of a batch, over the bytes of the batch */
    const bson_t **pointers;
    size_t room;
    /* The documents to send of a batch that is partly stored; NULL until that happens. */
    const bson_t **chosen;
    uint32_t *places;  /* the index of each of these in the piece */
    bool search_first; /* search before the first attempt: an earlier run may have sent the batch */
    sl_aside aside;
    bson_t *options;
    unsigned seed; /* for the jitter */
};

bool sl_writer_open(const sl_sending *sending, void **shared, sl_error *error) {
    (void)shared;
    return sl_connection_open_writers(sending->destination->connection, sending->threads,
                                      sending->config->timeout_seconds, error);
}

mongoc_write_concern_t *sl_writer_concern(const sl_sending *sending) {
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    const char *requested = sending->config->write_concern;
    bool alone =
        sl_connection_server(sending->destination->connection)->deployment == SL_STANDALONE;
    if (strcmp(requested, "majority") != 0) {
        mongoc_write_concern_set_w(concern, (int32_t)strtol(requested, NULL, 10));
    } else if (alone) {
        /* Without a replica set, a document is durable once it is in the server's journal. */
        mongoc_write_concern_set_w(concern, 1);
        mongoc_write_concern_set_journal(concern, true);
    } else {
        mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
    }
    return concern;
}

static void open_connection(sl_outlet *outlet, uint32_t index,
                            const mongoc_write_concern_t *concern) {
    const sl_destination *destination = outlet->sending->destination;
    sl_target_connection *connection = &outlet->connections[index];
    connection->client = index + 1 < outlet->connection_count
                             ? sl_direct_borrow(destination->direct, index)
                             : sl_connection_borrow_writer(destination->connection);
    connection->collection = mongoc_client_get_collection(
        connection->client, destination->target.database, destination->target.collection);
    mongoc_collection_set_write_concern(connection->collection, concern);
}

static void close_connection(sl_outlet *outlet, uint32_t index) {
    const sl_destination *destination = outlet->sending->destination;
    sl_target_connection *connection = &outlet->connections[index];
    mongoc_collection_destroy(connection->collection);
    if (connection->client && index + 1 < outlet->connection_count)
        sl_direct_return(destination->direct, index, connection->client);
    else if (connection->client)
        sl_connection_return_writer(destination->connection, connection->client);
}

static void writer_outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    for (uint32_t i = 0; outlet->connections && i < outlet->connection_count; i++)
        close_connection(outlet, i);
    free(outlet->connections);
    bson_destroy(outlet->options);
    free(outlet->views);
    free(outlet->pointers);
    free(outlet->chosen);
    free(outlet->places);
    free(outlet->aside.indexes);
    free(outlet);
}

static bool writer_outlet_create(const sl_sending *sending, void *shared, sl_outlet **result,
                                 sl_error *error) {
    (void)shared;
    sl_outlet *made = calloc(1, sizeof *made);
    *result = made;
    if (!made)
        return sl_error_memory(error, "starting writers");
    made->sending = sending;
    made->search_first = sending->sent_before;
    made->seed = (unsigned)sl_clock_ns();
    made->options = BCON_NEW("ordered", BCON_BOOL(false), "validate", BCON_BOOL(false));
    sl_target_append_uuid(&sending->destination->target, made->options);
    made->connection_count = sending->destination->direct ? sending->shards + 1 : 1;
    made->connections = calloc(made->connection_count, sizeof *made->connections);
    if (!made->connections)
        return sl_error_memory(error, "starting writers");
    mongoc_write_concern_t *concern = sl_writer_concern(sending);
    for (uint32_t i = 0; i < made->connection_count; i++)
        open_connection(made, i, concern);
    mongoc_write_concern_destroy(concern);
    return true;
}

/* Sets outlet->views to the consecutive documents of the batch. */
static bool view_documents(sl_outlet *outlet, const sl_batch *batch, sl_error *error) {
    if (batch->documents > outlet->room) {
        free(outlet->views);
        free(outlet->pointers);
        free(outlet->chosen);
        free(outlet->places);
        free(outlet->aside.indexes);
        outlet->chosen = NULL;
        outlet->places = NULL;
        outlet->room = batch->documents;
        outlet->views = aligned_alloc(_Alignof(bson_t), outlet->room * sizeof *outlet->views);
        outlet->pointers = malloc(outlet->room * sizeof *outlet->pointers);
        outlet->aside.indexes = malloc(outlet->room * sizeof *outlet->aside.indexes);
        if (!outlet->views || !outlet->pointers || !outlet->aside.indexes) {
            outlet->room = 0;
            return sl_error_memory(error, "sending a batch");
        }
        for (size_t i = 0; i < outlet->room; i++)
            outlet->pointers[i] = &outlet->views[i];
    }
    return sl_batch_view(batch, outlet->views, error);
}

static sl_outcome outcome_of(sl_scan_result result) {
    return result == SL_SCAN_DONE    ? DELIVERED
           : result == SL_SCAN_AGAIN ? SEND_AGAIN
                                     : UNDELIVERABLE;
}

/* Consecutive documents of a batch that are sent as a unit: all documents, unless the server could
 * not build its answer for that many. */
typedef struct sl_piece {
    const bson_t *const *documents;
    uint32_t first; /* index of the first one in the batch */
    uint32_t count;
    bool search_first; /* the piece may have been sent before, perhaps by an earlier run */
    bool sent_before;  /* by an earlier attempt of this run */
} sl_piece;

/* The documents of one insert: all of a piece, or those that are not stored yet. */
typedef struct sl_parcel {
    const bson_t *const *documents;
    uint32_t count;
    const uint32_t *places; /* the index of each in the piece; NULL: all documents of the piece */
} sl_parcel;

static void report(const sl_listener *listener, uint32_t index, sl_fate fate, int32_t code,
                   const char *reason) {
    if (fate == FATE_ALREADY_STORED)
        listener->result->already_stored++;
    else
        listener->result->rejected++;
    listener->refused(listener->context, index, fate, code, reason);
}

/* `first_time`: the document had not been sent before it was refused, and it has its own _id. Then
 * an equal stored document does not come from an earlier attempt. */
static void report_duplicate(const sl_listener *listener, uint32_t index,
                             const sl_duplicates *duplicates, uint32_t place, bool first_time) {
    char reason[500] = "";
    const char *difference = duplicates->difference[place];
    bool repeated = !difference && (duplicates->repeated[place] || first_time);
    if (difference)
        snprintf(reason, sizeof reason, "another document has this _id: %s", difference);
    else if (repeated)
        snprintf(
            reason, sizeof reason,
            "an identical document is stored: the sources hold it more than once, it was stored "
            "before this load, or another loader stores the same sources now. It is not "
            "missing; load sources once, or divide them among loaders with --part");
    report(listener, index,
           difference ? FATE_ID_TAKEN
           : repeated ? FATE_REPEATED
                      : FATE_ALREADY_STORED,
           SL_DUPLICATE_KEY, reason);
}

static uint32_t place_in_piece(const sl_parcel *parcel, const sl_write_error *one) {
    return parcel->places ? parcel->places[one->index] : (uint32_t)one->index;
}

/* Reports the documents that a complete answer refuses. Nothing has been reported when it returns
 * anything but SL_SCAN_DONE. */
static sl_scan_result take_write_errors(sl_outlet *outlet, const bson_t *reply,
                                        const sl_piece *piece, const sl_parcel *parcel,
                                        const sl_listener *listener, sl_error *error) {
    bson_iter_t items;
    if (!sl_reply_errors(reply, &items))
        return SL_SCAN_DONE;
    sl_duplicates duplicates;
    sl_write_error one;
    sl_scan_result compared = SL_SCAN_FAILED;
    bool own_ids = outlet->sending->own_ids;
    if (sl_duplicates_init(&duplicates, piece->documents, piece->count, own_ids)) {
        for (bson_iter_t walk = items; sl_reply_next_error(&walk, &one);) {
            if (one.duplicate_id)
                sl_duplicates_mark(&duplicates, place_in_piece(parcel, &one));
        }
        compared = sl_duplicates_compare(&duplicates, outlet->connection->client,
                                         &outlet->sending->destination->target, error);
    } else {
        sl_error_memory(error, "comparing duplicates");
    }
    while (compared == SL_SCAN_DONE && sl_reply_next_error(&items, &one)) {
        uint32_t place = place_in_piece(parcel, &one);
        if (one.duplicate_id)
            report_duplicate(listener, piece->first + place, &duplicates, place,
                             own_ids && !piece->search_first &&
                                 !outlet->sending->config->equal_is_stored);
        else if (one.doubtful && !listener->alone)
            listener->aside->indexes[listener->aside->count++] = piece->first + place;
        else
            report(listener, piece->first + place, FATE_REFUSED, one.code, one.message);
    }
    sl_duplicates_clear(&duplicates);
    return compared;
}

static sl_outcome send_parcel(sl_outlet *outlet, const sl_piece *piece, const sl_parcel *parcel,
                              const sl_listener *listener, sl_error *error) {
    bson_error_t why = {0};
    bson_t body;
    uint32_t inserted = 0;
    sl_outcome outcome = UNDELIVERABLE;
    /* The driver does not change the documents; its prototype lacks a const. */
    bool ok = mongoc_collection_insert_many(outlet->connection->collection,
                                            (const bson_t **)parcel->documents, parcel->count,
                                            outlet->options, &body, &why);
    if (!ok && sl_reply_is_replaced(&why, &body)) {
        sl_target_mismatch(outlet->sending->destination->connection,
                           &outlet->sending->destination->target, error);
        bson_destroy(&body);
        return UNDELIVERABLE;
    }
    const sl_reply reply = {.ok = ok,
                            .body = &body,
                            .why = &why,
                            .documents = parcel->documents,
                            .count = parcel->count,
                            .own_ids = outlet->sending->own_ids};
    sl_verdict verdict = sl_reply_judge(&reply, &inserted, error);
    if (verdict == SL_REPLY_COMPLETE) {
        outcome = outcome_of(take_write_errors(outlet, &body, piece, parcel, listener, error));
        if (outcome == DELIVERED)
            listener->result->inserted += inserted;
    } else {
        outcome = sl_outcome_of_reply(&reply, verdict, piece->sent_before);
        if (sl_report_alone(listener, outcome, &why, piece->first, piece->count))
            outcome = DELIVERED;
    }
    if (outcome != DELIVERED)
        sl_error_prefix(error, "inserting into %s.%s",
                        outlet->sending->destination->target.database,
                        outlet->sending->destination->target.collection);
    bson_destroy(&body);
    return outcome;
}

/* Makes a parcel of the documents that are not stored. If all are stored, the last one is sent
 * again: its refusal is acknowledged with the write concern, which covers all earlier writes. */
static bool choose(sl_outlet *outlet, const sl_piece *piece, sl_duplicates *there,
                   sl_parcel *parcel, sl_error *error) {
    if (!outlet->chosen) {
        outlet->chosen = malloc(outlet->room * sizeof *outlet->chosen);
        outlet->places = malloc(outlet->room * sizeof *outlet->places);
        if (!outlet->chosen || !outlet->places)
            return sl_error_memory(error, "sending part of a batch");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < piece->count; i++) {
        bool last_chance = i + 1 == piece->count && count == 0;
        /* If a different document with this _id is stored, perhaps on another shard, the server
         * decides whether to accept this document. */
        bool other = there->own_ids && there->difference[i];
        if (!there->missing[i] && !other && !last_chance)
            continue;
        there->missing[i] = true; /* its outcome comes from the answer to this parcel */
        outlet->chosen[count] = piece->documents[i];
        outlet->places[count++] = i;
    }
    *parcel = (sl_parcel){outlet->chosen, count, outlet->places};
    return true;
}

/* One attempt. If the piece may have been sent before, its stored documents are found first, and
 * reported after the other documents have been acknowledged. */
static sl_outcome send_once(sl_outlet *outlet, const sl_piece *piece, const sl_listener *listener,
                            sl_error *error) {
    sl_parcel parcel = {piece->documents, piece->count, NULL};
    if (!piece->search_first)
        return send_parcel(outlet, piece, &parcel, listener, error);
    sl_duplicates there;
    sl_outcome outcome = UNDELIVERABLE;
    bool any = false;
    if (sl_duplicates_init(&there, piece->documents, piece->count, outlet->sending->own_ids))
        outcome =
            outcome_of(sl_duplicates_find(&there, outlet->connection->client,
                                          &outlet->sending->destination->target, &any, error));
    else
        sl_error_memory(error, "looking for documents");
    if (outcome == DELIVERED && any && !choose(outlet, piece, &there, &parcel, error))
        outcome = UNDELIVERABLE;
    if (outcome == DELIVERED)
        outcome = send_parcel(outlet, piece, &parcel, listener, error);
    for (uint32_t i = 0; outcome == DELIVERED && any && i < piece->count; i++) {
        if (!there.missing[i])
            report_duplicate(listener, piece->first + i, &there, i, false);
    }
    sl_duplicates_clear(&there);
    return outcome;
}

/* ---- the attempts ---- */

static bool is_apart(sl_outcome outcome) {
    return outcome == SEND_APART || outcome == SEND_APART_OR_END;
}

bool sl_report_alone(const sl_listener *listener, sl_outcome outcome, const bson_error_t *why,
                     uint32_t index, uint32_t count) {
    const bool known = count == 1 && sl_reply_is_of_document((int32_t)why->code);
    if (!is_apart(outcome) || !(known || (listener->alone && listener->accepted)))
        return false;
    report(listener, index, FATE_REFUSED, (int32_t)why->code, why->message);
    return true;
}

sl_outcome sl_outcome_of_reply(const sl_reply *reply, sl_verdict verdict, bool again) {
    if (sl_reply_refuses_command(reply))
        return verdict == SL_REPLY_FINAL ? SEND_APART_OR_END : SEND_APART;
    switch (verdict) {
    case SL_REPLY_TOO_LARGE:
        return reply->count > 1 ? SEND_LESS : SEND_AGAIN;
    case SL_REPLY_NONE:
        /* A server that cannot build its answer may close the connection instead. */
        return again && reply->count > 1 ? SEND_LESS : SEND_AGAIN;
    case SL_REPLY_FINAL:
        return UNDELIVERABLE;
    default:
        return SEND_AGAIN;
    }
}

/* Waits before attempt `attempt` + 1, longer with each attempt. */
static void wait_before(unsigned *seed, unsigned attempt) {
    long most = RETRY_FIRST_MS << (attempt < 7 ? attempt : 7);
    if (most > RETRY_MOST_MS)
        most = RETRY_MOST_MS;
    long ms = most / 2 + (long)rand_r(seed) % (most / 2 + 1);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* May documents be sent again? `since`: when their first attempt failed, by sl_clock_ns. */
static bool may_try_again(const sl_sending *sending, int64_t since, sl_error *error) {
    if (sl_interrupt_requested()) {
        error->code = SL_EXIT_INTERRUPTED;
        return sl_error_prefix(error, "interrupted while a batch could not be delivered");
    }
    if (atomic_load(sending->stop)) /* another thread has stopped the load */
        return false;
    if (sl_seconds_since(since) > sending->config->retry_seconds)
        return sl_error_prefix(error, "gave up after %.0f s (--retry-timeout %u)",
                               sl_seconds_since(since), sending->config->retry_seconds);
    return true;
}

/* The next piece after the server has executed a command. */
static void go_on_after(sl_course *course, uint32_t count) {
    course->first += count;
    course->accepted = true;
    course->attempt = 0;
    if (course->apart && course->most < course->end)
        course->most *= 2;
}

/* Sets a document aside whose command was refused. False if the document cannot be the reason. */
static bool set_aside(sl_course *course) {
    if (!course->aside || (!course->accepted && course->refused == REFUSED_MOST))
        return false;
    course->refused += !course->accepted;
    course->aside->indexes[course->aside->count++] =
        course->indexes ? course->indexes[course->first] : course->first;
    course->first++;
    return true;
}

/* Begins again with all documents, none of which is the reason why commands are refused. */
static void begin_again(sl_course *course) {
    if (!course->aside)
        return;
    course->first = 0;
    course->most = course->end;
    course->refused = course->aside->count = 0;
}

bool sl_course_go_on(sl_course *course, sl_outcome outcome, uint32_t count, sl_error *error) {
    bool apart = is_apart(outcome);
    if (outcome == UNDELIVERABLE)
        return false;
    if (outcome == DELIVERED) {
        go_on_after(course, count);
        return true;
    }
    course->result->retries++;
    if (course->attempt == 0) { /* the time limit does not include the wait for the first answer */
        if (!apart || !course->apart) /* one warning for documents refused one after the other */
            sl_log_warning(SL_LINES "; trying again", error->message);
        course->since = sl_clock_ns();
    }
    if (apart && count == 1 && set_aside(course))
        return true;
    if (outcome == SEND_APART_OR_END && count == 1)
        return false;
    if (!may_try_again(course->sending, course->since, error))
        return false;
    if (apart && count == 1) {
        begin_again(course);
        apart = false;
    }
    if (apart || outcome == SEND_LESS) {
        course->most = (count + 1) / 2;
        course->apart = apart;
    }
    if (outcome == SEND_LESS)
        course->since = sl_clock_ns();
    else if (!apart)
        wait_before(course->seed, course->attempt);
    course->attempt++;
    return true;
}

sl_course sl_course_alone(const sl_course *course, uint32_t first) {
    course->result->retries++;
    return (sl_course){.sending = course->sending,
                       .result = course->result,
                       .seed = course->seed,
                       .first = first,
                       .end = first + 1,
                       .most = 1};
}

bool sl_course_before_alone(sl_course *course, sl_error *error) {
    if (course->aside->count == 0)
        return true;
    course->since = sl_clock_ns();
    wait_before(course->seed, 0);
    return may_try_again(course->sending, course->since, error);
}

/* Sends the documents [first, end) of the batch. */
static bool send_pieces(sl_outlet *outlet, sl_course *course, const sl_listener *listener,
                        sl_error *error) {
    sl_piece piece = {.search_first = outlet->search_first || listener->alone,
                      .sent_before = listener->alone};
    while (course->first < course->end) {
        uint32_t left = course->end - course->first;
        piece.first = course->first;
        piece.documents = outlet->pointers + piece.first;
        piece.count = course->most < left ? course->most : left;
        sl_interrupt_begin_change();
        sl_outcome outcome = send_once(outlet, &piece, listener, error);
        sl_interrupt_end_change();
        if (!sl_course_go_on(course, outcome, piece.count, error))
            return false;
        /* Applies to the next pieces, too: this attempt may have stored their documents. */
        piece.search_first = piece.search_first || outcome != DELIVERED;
        piece.sent_before = outcome != DELIVERED;
    }
    return true;
}

static bool writer_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                        refusal_handler refused, void *context, sl_error *error) {
    if (!view_documents(outlet, batch, error))
        return false;
    /* A batch of documents whose owner is not known goes through the routers. */
    outlet->connection =
        &outlet
             ->connections[batch->shard < outlet->connection_count ? batch->shard
                                                                   : outlet->connection_count - 1];
    sl_listener listener = {result, refused, context, .aside = &outlet->aside};
    outlet->aside.count = 0;
    sl_course course = {.sending = outlet->sending,
                        .result = result,
                        .seed = &outlet->seed,
                        .aside = &outlet->aside,
                        .end = batch->documents,
                        .most = batch->documents};
    bool ok =
        send_pieces(outlet, &course, &listener, error) && sl_course_before_alone(&course, error);
    listener.alone = true;
    listener.accepted = course.accepted;
    for (uint32_t i = 0; ok && i < outlet->aside.count; i++) {
        sl_course alone = sl_course_alone(&course, outlet->aside.indexes[i]);
        ok = send_pieces(outlet, &alone, &listener, error);
    }
    if (ok)
        error->code = SL_EXIT_OK;
    return ok;
}

const sl_sink_type sl_sink_cluster = {
    .name = "cluster",
    .open = sl_writer_open,
    .outlet_create = writer_outlet_create,
    .outlet_destroy = writer_outlet_destroy,
    .send = writer_send,
};
