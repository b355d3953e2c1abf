/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: sends batches to the cluster, as unordered bulk inserts through the driver. The other
 * modes are described at "updates and deletes" below, the direct route at "the route".
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
#include "writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mongoc/mongoc.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "util/clock.h"
#include "util/grow.h"
#include "util/interrupt.h"
#include "util/log.h"

#include "duplicates.h"
#include "reply.h"
#include "sink.h"

#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 5000
#define REFUSED_MOST 3u /* documents whose commands are refused while none is executed */

/* The outcome of an attempt to send documents. */
typedef enum sl_outcome {
    DELIVERED,
    SEND_AGAIN,
    SEND_LESS,  /* send the documents again in smaller pieces */
    SEND_APART, /* the same: one of them may be the reason why the server refused the command */
    SEND_APART_OR_END, /* the same, and if none of them is the reason, the load ends */
    UNDELIVERABLE,
} sl_outcome;

/* Documents of a batch that are sent again, each alone, after the others. */
typedef struct sl_aside {
    uint32_t *indexes;
    uint32_t count;
} sl_aside;

/* The receiver of the outcome of documents. */
typedef struct sl_writer_listener {
    sl_batch_result *result;
    refusal_handler refused;
    void *context;
    bool last_chance; /* of updates: duplicates are rejects */
    bool alone;       /* one document is sent, which was refused before: what the server reports
                         now is about this document */
    bool accepted;    /* with `alone`: the server has executed another command of the batch */
    sl_aside *aside;
} sl_writer_listener;

/* How documents are sent in pieces. The caller sends those from `first` on, at most `most`, until
 * `first` is `end`. */
typedef struct sl_course {
    const sl_sending *sending;
    sl_batch_result *result;
    unsigned *seed;          /* for the jitter */
    const uint32_t *indexes; /* in the batch, of the documents; NULL: 0, 1, ... */
    sl_aside *aside;         /* NULL: no document is set aside */
    uint32_t first, end, most;
    bool accepted;    /* the server has executed a command of this batch */
    bool apart;       /* private, as all that follow: the pieces are small because of SEND_APART */
    unsigned refused; /* documents set aside before a command was executed */
    unsigned attempt;
    int64_t since; /* of the first failure */
} sl_course;

/* The outcome of a document of a command. */
typedef enum sl_found { MATCHED, UPSERTED, REFUSED, UNMATCHED } sl_found;

/* A connection to the primary of one shard, or to a router. */
typedef struct sl_target_connection {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
} sl_target_connection;

/* Of one worker. */
struct sl_outlet {
    const sl_sending *sending;
    bson_t *views; /* one per document of a batch, over the bytes of the batch */
    size_t room;
    uint32_t *places; /* indexes of documents: of `chosen` in the piece; in the batch, to be sent */
    sl_aside aside;
    unsigned seed; /* for the jitter */

    /* Of inserts. On the direct route one connection per shard; in any case a last one to the
     * routers. */
    sl_target_connection *connections;
    uint32_t connection_count;
    const sl_target_connection *connection; /* of the current batch */
    const bson_t **pointers;
    /* The documents to send of a batch that is partly stored. */
    const bson_t **chosen;
    bool search_first; /* search before the first attempt: an earlier run may have sent the batch */
    bson_t *options;

    /* Of updates and deletes. */
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    sl_repeats *repeats; /* of the load; NULL: not looked for */
    bson_t *head;        /* of each command */
    sl_statements statements;
    uint8_t *found;  /* sl_found, per document of the batch */
    uint32_t *kept;  /* indexes of documents that at most one stored document matches */
    uint32_t *again; /* indexes of documents to be sent once more */
    uint32_t again_count;
    bson_error_t why; /* why the last command failed */
};

/* ---- opening ---- */

static bool writer_open(const sl_sending *sending, void **shared, sl_error *error) {
    (void)shared;
    return sl_connection_open_writers(sending->destination->connection, sending->threads,
                                      sending->config->timeout_seconds, error);
}

/* The write concern of the load, for the caller to destroy. */
static mongoc_write_concern_t *write_concern_of(const sl_sending *sending) {
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

static void report(const sl_writer_listener *listener, uint32_t index, sl_fate fate, int32_t code,
                   const char *reason) {
    if (fate == FATE_ALREADY_STORED)
        listener->result->already_stored++;
    else
        listener->result->rejected++;
    listener->refused(listener->context, index, fate, code, reason);
}

/* ---- the attempts ---- */

static bool is_apart(sl_outcome outcome) {
    return outcome == SEND_APART || outcome == SEND_APART_OR_END;
}

/* Reports a document whose command was refused: `outcome` is SEND_APART or SEND_APART_OR_END, `why`
 * the server's error, and `count` the number of documents of the command. False, and nothing is
 * reported, if the document need not be the reason. */
static bool report_alone(const sl_writer_listener *listener, sl_outcome outcome,
                         const bson_error_t *why, uint32_t index, uint32_t count) {
    const bool known = count == 1 && sl_reply_is_of_document((int32_t)why->code);
    if (!is_apart(outcome) || !(known || (listener->alone && listener->accepted)))
        return false;
    report(listener, index, FATE_REFUSED, (int32_t)why->code, why->message);
    return true;
}

/* The outcome of an incomplete reply. `again`: the documents were sent before. */
static sl_outcome outcome_of_reply(const sl_reply *reply, sl_verdict verdict, bool again) {
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

/* Decides how to go on after an attempt to send the `count` documents from `first` on, and waits if
 * necessary. False when the batch cannot be delivered. */
static bool course_go_on(sl_course *course, sl_outcome outcome, uint32_t count, sl_error *error) {
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

/* The course of one document that was set aside. */
static sl_course course_alone(const sl_course *course, uint32_t first) {
    course->result->retries++;
    return (sl_course){.sending = course->sending,
                       .result = course->result,
                       .seed = course->seed,
                       .first = first,
                       .end = first + 1,
                       .most = 1};
}

/* Before the documents set aside are sent: waits a moment, since the server may have been in a
 * temporary state. */
static bool course_before_alone(sl_course *course, sl_error *error) {
    if (course->aside->count == 0)
        return true;
    course->since = sl_clock_ns();
    wait_before(course->seed, 0);
    return may_try_again(course->sending, course->since, error);
}

/* ---- inserts ---- */

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

/* Those with one item per document of a batch. */
static void free_arrays(sl_outlet *outlet) {
    free(outlet->views);
    free(outlet->pointers);
    free(outlet->chosen);
    free(outlet->found);
    free(outlet->places);
    free(outlet->again);
    free(outlet->kept);
    free(outlet->aside.indexes);
}

static void writer_outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    for (uint32_t i = 0; outlet->connections && i < outlet->connection_count; i++)
        close_connection(outlet, i);
    free(outlet->connections);
    bson_destroy(outlet->options);
    free_arrays(outlet);
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
    mongoc_write_concern_t *concern = write_concern_of(sending);
    for (uint32_t i = 0; i < made->connection_count; i++)
        open_connection(made, i, concern);
    mongoc_write_concern_destroy(concern);
    return true;
}

/* Sets outlet->views to the consecutive documents of the batch, for which all arrays have room. */
static bool view_documents(sl_outlet *outlet, const sl_batch *batch, sl_error *error) {
    const size_t room = batch->documents;
    if (room > outlet->room) {
        free_arrays(outlet);
        outlet->views = sl_zeroed(room, sizeof *outlet->views);
        outlet->pointers = malloc(room * sizeof *outlet->pointers);
        outlet->chosen = malloc(room * sizeof *outlet->chosen);
        outlet->found = malloc(room);
        outlet->places = malloc(room * sizeof *outlet->places);
        outlet->kept = malloc(room * sizeof *outlet->kept);
        outlet->again = malloc(room * sizeof *outlet->again);
        outlet->aside.indexes = malloc(room * sizeof *outlet->aside.indexes);
        const bool made = outlet->views && outlet->pointers && outlet->chosen && outlet->found &&
                          outlet->places && outlet->kept && outlet->again && outlet->aside.indexes;
        outlet->room = made ? room : 0;
        if (!made)
            return sl_error_memory(error, "sending a batch");
    }
    for (uint32_t i = 0; i < room; i++) {
        outlet->pointers[i] = &outlet->views[i];
        outlet->places[i] = i;
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

/* The server has refused a document because an equal one is stored. If the document has its own _id
 * and had not been sent before, the stored one is not from an earlier attempt of this load, and the
 * document is a reject; but in a restore it counts as stored. */
static void report_duplicate(const sl_outlet *outlet, const sl_piece *piece,
                             const sl_writer_listener *listener, uint32_t index,
                             const sl_duplicates *duplicates, uint32_t place) {
    char reason[500] = "";
    const char *difference = duplicates->difference[place];
    const sl_sending *sending = outlet->sending;
    bool repeated = !difference && sending->own_ids && !sending->config->equal_is_stored &&
                    (duplicates->repeated[place] || !piece->search_first);
    if (difference)
        snprintf(reason, sizeof reason, "another document has this _id: %s", difference);
    else if (repeated)
        snprintf(
            reason, sizeof reason,
            "an identical document is stored: the sources hold it more than once, it was stored "
            "before this load, or another loader stores the same sources now. It is not "
            "missing; load sources once, or divide them among loaders with --part");
    report(listener, piece->first + index,
           difference ? FATE_ID_TAKEN
           : repeated ? FATE_REPEATED
                      : FATE_ALREADY_STORED,
           SL_DUPLICATE_KEY, reason);
}

static uint32_t place_in_piece(const sl_parcel *parcel, const sl_write_error *one) {
    return parcel->places ? parcel->places[one->index] : (uint32_t)one->index;
}

/* Does the refusal not show whether the document is stored? Equal documents count as stored in a
 * restore, and a server validates a document before it notices that the document is stored. */
static bool may_be_stored(const sl_outlet *outlet, const sl_write_error *one) {
    return one->unexplained || (outlet->sending->config->equal_is_stored &&
                                one->code == SL_DOCUMENT_VALIDATION_FAILURE);
}

/* Looks up the documents that may be stored. Puts them into `documents`, in the order of the
 * answer, and what is stored under their _ids into `found`. */
static sl_scan_result find_refused(const sl_outlet *outlet, bson_iter_t errors,
                                   const sl_piece *piece, const sl_parcel *parcel,
                                   const bson_t **documents, sl_duplicates *found,
                                   sl_error *error) {
    sl_write_error one;
    uint32_t count = 0;
    *found = (sl_duplicates){0};
    while (sl_reply_next_error(&errors, &one)) {
        if (may_be_stored(outlet, &one))
            documents[count++] = piece->documents[place_in_piece(parcel, &one)];
    }
    if (count == 0)
        return SL_SCAN_DONE;
    /* One by one also where _ids ascend: other documents of the batch are between these. */
    if (!sl_duplicates_init(found, documents, count, true)) {
        sl_error_memory(error, "looking for documents");
        return SL_SCAN_FAILED;
    }
    return sl_duplicates_find_all(found, outlet->connection->client,
                                  &outlet->sending->destination->target, error);
}

/* Reports the documents that a complete answer refuses. Nothing has been reported when it returns
 * anything but SL_SCAN_DONE. */
static sl_scan_result take_write_errors(sl_outlet *outlet, const bson_t *reply,
                                        const sl_piece *piece, const sl_parcel *parcel,
                                        const sl_writer_listener *listener, sl_error *error) {
    bson_iter_t items;
    if (!sl_reply_errors(reply, &items))
        return SL_SCAN_DONE;
    sl_duplicates duplicates, searched = {0};
    sl_write_error one;
    sl_scan_result compared = SL_SCAN_FAILED;
    bool own_ids = outlet->sending->own_ids;
    uint32_t at_searched = 0;
    char text[SL_WRITE_ERROR_ROOM];
    const bson_t **documents = calloc(piece->count, sizeof *documents);
    if (sl_duplicates_init(&duplicates, piece->documents, piece->count, own_ids) && documents) {
        for (bson_iter_t walk = items; sl_reply_next_error(&walk, &one);) {
            if (one.duplicate_id)
                sl_duplicates_mark(&duplicates, place_in_piece(parcel, &one));
        }
        compared = sl_duplicates_compare(&duplicates, outlet->connection->client,
                                         &outlet->sending->destination->target, error);
        if (compared == SL_SCAN_DONE)
            compared = find_refused(outlet, items, piece, parcel, documents, &searched, error);
    } else {
        sl_error_memory(error, "comparing duplicates");
    }
    while (compared == SL_SCAN_DONE && sl_reply_next_error(&items, &one)) {
        uint32_t place = place_in_piece(parcel, &one), k = at_searched;
        at_searched += may_be_stored(outlet, &one);
        if (k < at_searched && !searched.missing[k] && (one.unexplained || !searched.difference[k]))
            report_duplicate(outlet, piece, listener, place, &searched, k);
        else if (one.duplicate_id)
            report_duplicate(outlet, piece, listener, place, &duplicates, place);
        else if (one.doubtful && !listener->alone)
            listener->aside->indexes[listener->aside->count++] = piece->first + place;
        else
            report(listener, piece->first + place, FATE_REFUSED, one.code,
                   sl_write_error_text(&one, outlet->sending->destination->target.validator, text));
    }
    sl_duplicates_clear(&duplicates);
    sl_duplicates_clear(&searched);
    free(documents);
    return compared;
}

/* A router reports a duplicate key in database admin, whose collections are on the config servers,
 * as an error of the command (seen with mongos 4.4). If the command has one document, this is the
 * one. */
static void name_duplicate(const bson_error_t *why, bson_t *body) {
    bson_iter_t errors;
    if (why->domain != MONGOC_ERROR_SERVER || why->code != SL_DUPLICATE_KEY ||
        sl_reply_errors(body, &errors))
        return;
    bson_t named = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(body, &named, "writeErrors", "insertedCount", NULL);
    BCON_APPEND(&named, "insertedCount", BCON_INT32(0), "writeErrors", "[", "{", "index",
                BCON_INT32(0), "code", BCON_INT32(SL_DUPLICATE_KEY), "errmsg",
                BCON_UTF8(why->message), "}", "]");
    bson_destroy(body);
    bson_steal(body, &named);
}

static sl_outcome send_parcel(sl_outlet *outlet, const sl_piece *piece, const sl_parcel *parcel,
                              const sl_writer_listener *listener, sl_error *error) {
    bson_error_t why = {0};
    bson_t body;
    uint32_t inserted = 0;
    sl_outcome outcome = UNDELIVERABLE;
    /* The driver does not change the documents; its prototype lacks a const. */
    bool ok = mongoc_collection_insert_many(outlet->connection->collection,
                                            (const bson_t **)parcel->documents, parcel->count,
                                            outlet->options, &body, &why);
    if (!ok && parcel->count == 1)
        name_duplicate(&why, &body);
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
        outcome = outcome_of_reply(&reply, verdict, piece->sent_before);
        if (report_alone(listener, outcome, &why, piece->first, piece->count))
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
 * again: its refusal is acknowledged with the write concern, which covers all earlier writes.
 *
 * A full capped collection, of servers before 6.0, loses its oldest document even by an insert that
 * is refused. So no document is sent to it again: the parcel may be empty. */
static void choose(sl_outlet *outlet, const sl_piece *piece, sl_duplicates *there,
                   sl_parcel *parcel) {
    uint32_t count = 0;
    bool capped = outlet->sending->destination->target.capped;
    for (uint32_t i = 0; i < piece->count; i++) {
        bool last_chance = i + 1 == piece->count && count == 0 && !capped;
        /* If a different document with this _id is stored, perhaps on another shard, the server
         * decides whether to accept this document. */
        bool other = there->own_ids && there->difference[i] && !capped;
        if (!there->missing[i] && !other && !last_chance)
            continue;
        there->missing[i] = true; /* its outcome comes from the answer to this parcel */
        outlet->chosen[count] = piece->documents[i];
        outlet->places[count++] = i;
    }
    *parcel = (sl_parcel){outlet->chosen, count, outlet->places};
}

/* Waits until the write concern covers all earlier writes, by an update that changes nothing. */
static sl_outcome acknowledge(const sl_outlet *outlet, const bson_t *document, sl_error *error) {
    bson_error_t why = {0};
    bson_t filter = BSON_INITIALIZER, reply;
    bson_iter_t id;
    uint32_t none;
    if (bson_iter_init_find(&id, document, "_id"))
        bson_append_iter(&filter, "_id", 3, &id);
    bson_t *update = BCON_NEW("$setOnInsert", "{", "a", BCON_INT32(1), "}");
    bool ok = mongoc_collection_update_one(outlet->connection->collection, &filter, update, NULL,
                                           &reply, &why);
    const sl_reply answer = {
        .ok = ok, .body = &reply, .why = &why, .documents = &document, .count = 1};
    sl_outcome outcome = DELIVERED;
    if (!ok)
        outcome = outcome_of_reply(&answer, sl_reply_judge(&answer, &none, error), false);
    bson_destroy(&filter);
    bson_destroy(update);
    bson_destroy(&reply);
    return is_apart(outcome) ? UNDELIVERABLE : outcome;
}

/* One attempt. If the piece may have been sent before, its stored documents are found first, and
 * reported after the other documents have been acknowledged. */
static sl_outcome send_once(sl_outlet *outlet, const sl_piece *piece,
                            const sl_writer_listener *listener, sl_error *error) {
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
    if (outcome == DELIVERED && any)
        choose(outlet, piece, &there, &parcel);
    if (outcome == DELIVERED)
        outcome = parcel.count > 0 ? send_parcel(outlet, piece, &parcel, listener, error)
                                   : acknowledge(outlet, piece->documents[0], error);
    for (uint32_t i = 0; outcome == DELIVERED && any && i < piece->count; i++) {
        if (!there.missing[i])
            report_duplicate(outlet, piece, listener, i, &there, i);
    }
    sl_duplicates_clear(&there);
    return outcome;
}

/* Sends the documents [first, end) of the batch. */
static bool send_pieces(sl_outlet *outlet, sl_course *course, const sl_writer_listener *listener,
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
        if (!course_go_on(course, outcome, piece.count, error))
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
    sl_writer_listener listener = {result, refused, context, .aside = &outlet->aside};
    outlet->aside.count = 0;
    sl_course course = {.sending = outlet->sending,
                        .result = result,
                        .seed = &outlet->seed,
                        .aside = &outlet->aside,
                        .end = batch->documents,
                        .most = batch->documents};
    bool ok = send_pieces(outlet, &course, &listener, error) && course_before_alone(&course, error);
    listener.alone = true;
    listener.accepted = course.accepted;
    for (uint32_t i = 0; ok && i < outlet->aside.count; i++) {
        sl_course alone = course_alone(&course, outlet->aside.indexes[i]);
        ok = send_pieces(outlet, &alone, &listener, error);
    }
    if (ok)
        error->code = SL_EXIT_OK;
    return ok;
}

const sl_sink_type sl_sink_cluster = {
    .name = "cluster",
    .open = writer_open,
    .outlet_create = writer_outlet_create,
    .outlet_destroy = writer_outlet_destroy,
    .send = writer_send,
};

/* ---- the statements of updates and deletes ---- */

/* The statements of an update or delete command:
 *
 *   upsert   {q: <match>, u: <document>, upsert: true}
 *   merge    {q: <match>, u: {$set: <the fields that do not match>}, upsert: true}
 *   update   {q: <match>, u: {$set: <the fields that do not match>}}
 *   replace  {q: <match>, u: <document>}
 *   delete   {q: <match>, limit: 1}
 *
 * and to find out which documents match, without a change, because servers refuse it for each one:
 *
 *   probe    {q: <match>, u: {$unset: {_id: 1}}}
 *
 * Each affects at most one document. Executing one twice has the same effect as executing it once,
 * because the match fields identify a document (sl_check_match), or records that several documents
 * match have been rejected (reject_ambiguous). */

#define OVERHEAD 256u /* bytes of a statement besides names, values and the document */

static uint8_t *begin_document(uint8_t *to, const char *key, uint8_t **start) {
    *start = sl_bson_put_key(to, SL_BSON_DOCUMENT, key);
    return sl_bson_begin(*start);
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t length) {
    memcpy(to, bytes, length);
    return to + length;
}

/* The maximum number of bytes of a document's match. 0: it lacks a field, so that the match would
 * be that of other documents; the format should have rejected it. */
static size_t match_room(const sl_key_names *match, const uint8_t *document) {
    size_t room = OVERHEAD;
    for (size_t i = 0; i < match->count; i++) {
        uint8_t type;
        const uint8_t *value;
        size_t length;
        if (!sl_key_field_find(document, match->names[i], &type, &value, &length))
            return 0;
        room += strlen(match->names[i]) + length + 32;
    }
    return room;
}

static uint8_t *put_match(uint8_t *to, const sl_key_names *match, const uint8_t *document) {
    uint8_t *start, *inner;
    to = begin_document(to, "q", &start);
    for (size_t i = 0; i < match->count; i++) {
        uint8_t type = 0;
        const uint8_t *value = NULL;
        size_t length = 0;
        sl_key_field_find(document, match->names[i], &type, &value, &length);
        to = begin_document(to, match->names[i], &inner);
        to = sl_bson_put_key(to, (sl_bson_type)type, "$eq");
        to = put_bytes(to, value, length);
        to = sl_bson_end(inner, to);
    }
    return sl_bson_end(start, to);
}

/* {$set: {...}}: with upsert the server sets the match fields from the match. Without other fields
 * {$setOnInsert: {...}}, which changes no stored document: older servers refuse an empty $set. */
static uint8_t *put_set(uint8_t *to, const sl_key_names *match, const bson_t *document) {
    uint8_t *start, *body, *set;
    bson_iter_t iter;
    const uint8_t *bytes = bson_get_data(document);
    uint32_t from = 4, next;
    body = begin_document(to, "u", &start);
    to = begin_document(body, "$set", &set);
    for (bool more = bson_iter_init(&iter, document) && bson_iter_next(&iter); more; from = next) {
        bool skip = sl_key_names_have(match, bson_iter_key(&iter));
        more = bson_iter_next(&iter);
        /* An iterator's offset is the offset of its element's type. */
        next = more ? bson_iter_offset(&iter) : document->len - 1;
        if (!skip)
            to = put_bytes(to, bytes + from, next - from);
    }
    if (to == set + 4) {
        to = begin_document(body, "$setOnInsert", &set);
        to = put_bytes(to, bytes + 4, document->len - 5);
    }
    return sl_bson_end(start, sl_bson_end(set, to));
}

static uint8_t *put_statement(uint8_t *to, const sl_key_fields *keys, const bson_t *document,
                              bool probe) {
    const sl_mode_row *mode = &sl_modes[keys->mode];
    uint8_t *start = to, *update, *unset;
    to = put_match(sl_bson_begin(to), &keys->match, bson_get_data(document));
    if (probe) {
        to = begin_document(begin_document(to, "u", &update), "$unset", &unset);
        to = sl_bson_put_int32(sl_bson_put_key(to, SL_BSON_INT32, "_id"), 1);
        return sl_bson_end(start, sl_bson_end(update, sl_bson_end(unset, to)));
    }
    if (mode->removes) {
        to = sl_bson_put_int32(sl_bson_put_key(to, SL_BSON_INT32, "limit"), 1);
        return sl_bson_end(start, to);
    }
    if (mode->sets_fields)
        to = put_set(to, &keys->match, document);
    else
        to = put_bytes(sl_bson_put_key(to, SL_BSON_DOCUMENT, "u"), bson_get_data(document),
                       document->len);
    if (mode->creates) {
        to = sl_bson_put_key(to, SL_BSON_BOOL, "upsert");
        *to++ = 1;
    }
    return sl_bson_end(start, to);
}

static bool make_room(sl_statements *statements, size_t need) {
    if (need <= statements->room)
        return true;
    size_t room = statements->room * 2 > need ? statements->room * 2 : need;
    uint8_t *bytes = realloc(statements->bytes, room);
    if (!bytes)
        return false;
    statements->bytes = bytes;
    statements->room = room;
    return true;
}

bool sl_statements_write(sl_statements *statements, const sl_key_fields *keys, const bson_t *head,
                         const bson_t *documents, const uint32_t *places, uint32_t count,
                         uint32_t *taken, bson_t *command, sl_error *error) {
    size_t used = head->len - 1; /* without its final NUL */
    if (!make_room(statements, used + OVERHEAD))
        return sl_error_memory(error, "sending a batch");
    memcpy(statements->bytes, bson_get_data(head), used);
    uint8_t *to =
        sl_bson_put_key(statements->bytes + used, SL_BSON_ARRAY, sl_modes[keys->mode].statements);
    const size_t array = (size_t)(to - statements->bytes);
    used = array + 4;
    *taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bson_t *document = &documents[places[i]];
        size_t need = match_room(&keys->match, bson_get_data(document));
        if (need == 0)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "a record lacks a field of --match-fields, so any document could "
                                "match: the batch is not sent");
        need += sl_modes[keys->mode].removes ? 0 : document->len;
        if (i > 0 && used + need > SL_STATEMENTS_BYTES_MAX)
            break;
        if (!make_room(statements, used + need + OVERHEAD))
            return sl_error_memory(error, "sending a batch");
        char key[12];
        snprintf(key, sizeof key, "%u", i);
        to = sl_bson_put_key(statements->bytes + used, SL_BSON_DOCUMENT, key);
        used = (size_t)(put_statement(to, keys, document, statements->probes) - statements->bytes);
        ++*taken;
    }
    to = sl_bson_end(statements->bytes + array, statements->bytes + used);
    to = sl_bson_end(statements->bytes, to);
    return bson_init_static(command, statements->bytes, (size_t)(to - statements->bytes));
}

/* ---- updates and deletes ---- */

/* The writer of the modes upsert, merge, replace and delete: sends each batch as update or delete
 * commands, unordered, through the routers.
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
 * document are rejects, so they are identified by probes.
 *
 * Two upserts of the same document at the same time can both insert, and then one is refused as a
 * duplicate. So a duplicate is sent once more before it becomes a reject. A document that is
 * refused with a code that is not known to be about documents is sent once more, alone. */

static bool modify_open(const sl_sending *sending, void **shared, sl_error *error) {
    if (!writer_open(sending, shared, error))
        return false;
    if (!sl_modes[sending->keys->mode].removes) /* each deletes the same document */
        *shared = sl_repeats_create(sending->keys);
    return *shared || sl_modes[sending->keys->mode].removes ||
           sl_error_memory(error, "starting writers");
}

/* Warns of repeated keys. */
static bool modify_close(void *shared, sl_error *error) {
    bool exact;
    char example[200];
    uint64_t count = shared ? sl_repeats_count(shared, &exact, example, sizeof example) : 0;
    (void)error;
    if (count > 0)
        sl_log_warning("%s%s the same match fields as another record, but "
                       "other values, such as %s. It is not defined which of them is stored, "
                       "because they are sent in any order: keep only the last one in the file, "
                       "and load it again",
                       exact ? "" : "about ", sl_plural(count, "record[s] of this run [has|have]"),
                       example);
    sl_repeats_destroy(shared);
    return true;
}

static void modify_outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    mongoc_collection_destroy(outlet->collection);
    if (outlet->client)
        sl_connection_return_writer(outlet->sending->destination->connection, outlet->client);
    bson_destroy(outlet->head);
    free(outlet->statements.bytes);
    free_arrays(outlet);
    free(outlet);
}

static bool modify_outlet_create(const sl_sending *sending, void *shared, sl_outlet **result,
                                 sl_error *error) {
    const sl_target *target = &sending->destination->target;
    sl_outlet *made = calloc(1, sizeof *made);
    *result = made;
    if (!made)
        return sl_error_memory(error, "starting writers");
    made->sending = sending;
    made->repeats = shared;
    made->seed = (unsigned)sl_clock_ns();
    made->client = sl_connection_borrow_writer(sending->destination->connection);
    made->collection =
        mongoc_client_get_collection(made->client, target->database, target->collection);
    made->head = bson_new();
    BSON_APPEND_UTF8(made->head, sl_modes[sending->keys->mode].command, target->collection);
    BSON_APPEND_BOOL(made->head, "ordered", false);
    mongoc_write_concern_t *concern = write_concern_of(sending);
    bool ok = mongoc_write_concern_append(concern, made->head);
    mongoc_write_concern_destroy(concern);
    sl_target_append_uuid(target, made->head);
    return ok || sl_error_memory(error, "starting writers");
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
                             places, count, taken, &command, error)) {
        bson_init(body);
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
    sl_outcome outcome = outcome_of_reply(&reply, verdict, false);
    sl_error_prefix(error, "%s in %s.%s", sl_modes[sending->keys->mode].name, target->database,
                    target->collection);
    return outcome;
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

/* Sets outlet->found: a server refuses the probe of each document that matches. */
static sl_outcome find_unmatched(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                                 uint32_t *unmatched, sl_error *error) {
    sl_outcome outcome = DELIVERED;
    *unmatched = 0;
    outlet->statements.probes = true;
    for (uint32_t first = 0, taken; outcome == DELIVERED && first < count; first += taken) {
        bson_t body;
        bson_iter_t items;
        sl_write_error one;
        sl_modified found;
        outcome = send_command(outlet, places + first, count - first, &taken, &body, &found, error);
        if (outcome == DELIVERED) {
            for (uint32_t i = 0; i < taken; i++)
                outlet->found[places[first + i]] = UNMATCHED;
            for (bool any = sl_reply_errors(&body, &items);
                 any && sl_reply_next_error(&items, &one);)
                outlet->found[places[first + one.index]] = MATCHED;
            *unmatched += taken - found.refused;
        }
        bson_destroy(&body);
    }
    outlet->statements.probes = false;
    return outcome == DELIVERED || outcome == UNDELIVERABLE ? outcome : SEND_AGAIN;
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
                     "%s matched no stored document, but %u did when sent again: another program "
                     "writes to the collection",
                     sl_plural(missing, "document"), unmatched);
        outcome = SEND_AGAIN;
    }
    return outcome;
}

static void report_refusals(sl_outlet *outlet, const sl_writer_listener *listener,
                            const uint32_t *places, const bson_t *body) {
    bson_iter_t items;
    sl_write_error one;
    char text[SL_WRITE_ERROR_ROOM];
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
        listener->refused(
            listener->context, place, FATE_REFUSED, one.code,
            sl_write_error_text(&one, outlet->sending->destination->target.validator, text));
    }
}

/* Reports the outcome of the documents; called once for each, with an answer that adds up. */
static void report_modified(sl_outlet *outlet, const sl_writer_listener *listener,
                            const uint32_t *places, uint32_t count, const sl_modified *found) {
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
                              "no stored document matches; --mode upsert or merge inserts such "
                              "records");
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
static sl_outcome send_statements(sl_outlet *outlet, const uint32_t *places, uint32_t count,
                                  uint32_t *taken, const sl_writer_listener *listener,
                                  sl_error *error) {
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
        report_refusals(outlet, listener, places, &body);
        report_modified(outlet, listener, places, *taken, &found);
    } else if (report_alone(listener, outcome, &outlet->why, places[0], *taken)) {
        outcome = DELIVERED;
    }
    bson_destroy(&body);
    return outcome;
}

/* Sends the documents at `places`, in as many commands as needed. */
static bool send_all_statements(sl_outlet *outlet, const uint32_t *places, sl_course *course,
                                const sl_writer_listener *listener, sl_error *error) {
    while (course->first < course->end) {
        uint32_t left = course->end - course->first, taken;
        sl_interrupt_begin_change();
        sl_outcome outcome =
            send_statements(outlet, places + course->first,
                            course->most < left ? course->most : left, &taken, listener, error);
        sl_interrupt_end_change();
        if (!course_go_on(course, outcome, taken, error))
            return false;
    }
    return true;
}

/* ---- records that several stored documents match ----
 *
 * It is not known which of these documents a record is for, and a batch that is sent again could
 * change another one. So if no unique index excludes that, the server is asked before a batch is
 * sent, and such records are rejected. */

#define KEYS_ASKED 500u /* at once */

/* Executes a find or aggregate; `*found`: the number of documents in its answer. */
static sl_outcome ask(sl_outlet *outlet, const bson_t *command, uint32_t *found, sl_error *error) {
    bson_t reply, rows;
    bson_error_t why;
    const char *database = outlet->sending->destination->target.database;
    bool ok = mongoc_client_command_simple(outlet->client, database, command, NULL, &reply, &why);
    *found = ok && sl_look_inside(&reply, "cursor.firstBatch", &rows) ? bson_count_keys(&rows) : 0;
    bson_destroy(&reply);
    if (ok)
        return DELIVERED;
    sl_error_set(error, SL_EXIT_CLUSTER, "looking for documents that match: %.600s", why.message);
    return sl_code_is_refusal((int32_t)why.code) ? UNDELIVERABLE : SEND_AGAIN;
}

/* Appends the stages that leave the keys of several documents. An element of an array counts as a
 * value, as it does for a match: so some of these keys may be of no record. */
static void append_stages(const sl_key_names *match, bson_t *stages) {
    bson_t keys = BSON_INITIALIZER, own = BSON_INITIALIZER, outer = BSON_INITIALIZER;
    for (size_t i = 0; i < match->count; i++) {
        char key[16], path[24], *field = bson_strdup_printf("$%s", match->names[i]);
        snprintf(key, sizeof key, "k%zu", i);
        BSON_APPEND_UTF8(&keys, key, field);
        snprintf(path, sizeof path, "$k%zu", i);
        BSON_APPEND_UTF8(&own, key, path);
        snprintf(path, sizeof path, "$_id.k%zu", i);
        BSON_APPEND_UTF8(&outer, key, path);
        bson_free(field);
    }
    BSON_APPEND_UTF8(&own, "of", "$_id");
    BCON_APPEND(stages, "1", "{", "$project", BCON_DOCUMENT(&keys), "}");
    for (size_t i = 0; i < match->count; i++) {
        char path[24];
        snprintf(path, sizeof path, "$k%zu", i);
        BCON_APPEND(stages, "2", "{", "$unwind", "{", "path", BCON_UTF8(path),
                    "preserveNullAndEmptyArrays", BCON_BOOL(true), "}", "}");
    }
    BCON_APPEND(stages, "3", "{", "$group", "{", "_id", BCON_DOCUMENT(&own), "}", "}");
    BCON_APPEND(stages, "4", "{", "$group", "{", "_id", BCON_DOCUMENT(&outer), "n", "{", "$sum",
                BCON_INT32(1), "}", "}", "}");
    BCON_APPEND(stages, "5", "{", "$match", "{", "n", "{", "$gt", BCON_INT32(1), "}", "}", "}");
    BCON_APPEND(stages, "6", "{", "$limit", BCON_INT32(1), "}");
    bson_destroy(&keys);
    bson_destroy(&own);
    bson_destroy(&outer);
}

/* Do several documents match one of the records at `places`? Then finds out which: their
 * outlet->found is REFUSED. `matches`: the array of statements with the matches. */
static sl_outcome find_ambiguous(sl_outlet *outlet, const uint32_t *places, const bson_t *matches,
                                 sl_error *error) {
    const char *collection = outlet->sending->destination->target.collection;
    bson_t command = BSON_INITIALIZER, stages, stage, filter, any, match;
    uint32_t found, i = 0;
    BSON_APPEND_UTF8(&command, "aggregate", collection);
    BSON_APPEND_ARRAY_BEGIN(&command, "pipeline", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &filter);
    BSON_APPEND_ARRAY_BEGIN(&filter, "$or", &any);
    for (sl_walk walk = sl_walk_of(matches); sl_walk_next(&walk);) {
        if (sl_look_inside(&walk.item, "q", &match))
            BSON_APPEND_DOCUMENT(&any, "", &match);
    }
    bson_append_array_end(&filter, &any);
    bson_append_document_end(&stage, &filter);
    bson_append_document_end(&stages, &stage);
    append_stages(&outlet->sending->keys->match, &stages);
    bson_append_array_end(&command, &stages);
    BCON_APPEND(&command, "cursor", "{", "}", "allowDiskUse", BCON_BOOL(true));
    sl_outcome outcome = ask(outlet, &command, &found, error);
    bson_destroy(&command);
    for (sl_walk walk = sl_walk_of(matches);
         outcome == DELIVERED && found > 0 && sl_walk_next(&walk); i++) {
        uint32_t documents;
        sl_look_inside(&walk.item, "q", &match);
        bson_t *find = BCON_NEW("find", BCON_UTF8(collection), "filter", BCON_DOCUMENT(&match),
                                "projection", "{", "_id", BCON_INT32(1), "}", "limit",
                                BCON_INT32(2), "singleBatch", BCON_BOOL(true));
        outcome = ask(outlet, find, &documents, error);
        outlet->found[places[i]] = documents > 1 ? REFUSED : MATCHED;
        bson_destroy(find);
    }
    return outcome;
}

/* Rejects the documents of the batch that several stored documents match; the others are in
 * outlet->kept, `*count` of them. */
static bool reject_ambiguous(sl_outlet *outlet, sl_course course, uint32_t *count,
                             const sl_writer_listener *listener, sl_error *error) {
    const char *statements = sl_modes[outlet->sending->keys->mode].statements;
    memset(outlet->found, MATCHED, course.end);
    course.most = KEYS_ASKED;
    while (course.first < course.end) {
        bson_t command, matches;
        const uint32_t left = course.end - course.first, *places = outlet->places + course.first;
        uint32_t taken = left < KEYS_ASKED ? left : KEYS_ASKED;
        outlet->statements.probes = true;
        bool ok = sl_statements_write(&outlet->statements, outlet->sending->keys, outlet->head,
                                      outlet->views, places, taken, &taken, &command, error) &&
                  sl_look_inside(&command, statements, &matches);
        outlet->statements.probes = false;
        sl_outcome outcome = ok ? find_ambiguous(outlet, places, &matches, error) : UNDELIVERABLE;
        if (!course_go_on(&course, outcome, taken, error))
            return false;
    }
    *count = 0;
    for (uint32_t i = 0; i < course.end; i++) {
        if (outlet->found[i] == MATCHED) {
            outlet->kept[(*count)++] = i;
            continue;
        }
        listener->result->rejected++;
        listener->refused(listener->context, i, FATE_NOT_FOUND, 0,
                          "several stored documents match; give more fields to --match-fields");
    }
    return true;
}

static bool modify_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                        refusal_handler refused, void *context, sl_error *error) {
    if (!view_documents(outlet, batch, error))
        return false;
    if (outlet->repeats)
        sl_repeats_add(outlet->repeats, outlet->views, batch->documents);
    sl_writer_listener listener = {result, refused, context, .aside = &outlet->aside};
    outlet->again_count = outlet->aside.count = 0;
    sl_course course = {.sending = outlet->sending,
                        .result = result,
                        .seed = &outlet->seed,
                        .indexes = outlet->places,
                        .aside = &outlet->aside,
                        .end = batch->documents,
                        .most = batch->documents};
    if (outlet->sending->destination->target.ambiguous) {
        uint32_t count;
        if (!reject_ambiguous(outlet, course, &count, &listener, error))
            return false;
        course.indexes = outlet->kept;
        course.end = course.most = count;
    }
    bool ok = send_all_statements(outlet, course.indexes, &course, &listener, error);
    listener.last_chance = true;
    course.indexes = outlet->again;
    course.first = 0;
    course.end = course.most = outlet->again_count;
    ok = ok && send_all_statements(outlet, outlet->again, &course, &listener, error) &&
         course_before_alone(&course, error);
    listener.alone = true;
    listener.accepted = course.accepted;
    for (uint32_t i = 0; ok && i < outlet->aside.count; i++) {
        sl_course alone = course_alone(&course, outlet->aside.indexes[i]);
        ok = send_all_statements(outlet, outlet->places, &alone, &listener, error);
    }
    if (ok)
        error->code = SL_EXIT_OK;
    return ok;
}

const sl_sink_type sl_sink_modify = {
    .name = "cluster",
    .open = modify_open,
    .close = modify_close,
    .outlet_create = modify_outlet_create,
    .outlet_destroy = modify_outlet_destroy,
    .send = modify_send,
};

/* ---- the route ---- */

/* The route of batches: through the routers, or directly to the shards (--route direct).
 *
 * On the direct route only the loader checks the owner of a document. So this route requires a
 * shard key that the loader can evaluate; documents whose owner it cannot determine go through the
 * router; and no block is added to the journal before the cluster has confirmed that no chunk moved
 * (sl_direct_check; ledger.c). */

bool sl_route_open(const sl_job *job, sl_destination *destination, unsigned threads,
                   sl_error *error) {
    const sl_load_config *config = job->config;
    if (!config->direct)
        return true;
    return sl_direct_open(destination->connection, destination->topology, &destination->target,
                          threads, config->timeout_seconds, &destination->direct, error);
}

bool sl_route_read_map(sl_destination *destination, sl_error *error) {
    sl_shard_map_destroy(destination->map);
    destination->map = NULL;
    if (!destination->direct)
        return sl_shard_map_read(destination->connection, &destination->target,
                                 destination->topology, &destination->map, error);
    if (!sl_direct_read_map(destination->direct, &destination->target, &destination->map, error))
        return false;
    if (sl_shard_map_route(destination->map) == SL_ROUTE_NONE)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--route direct: only the router can find the shards of documents of "
                            "%s.%s by its shard key; leave the option out",
                            destination->target.database, destination->target.collection);
    sl_log_info("batches go directly to the primaries of the shards");
    return true;
}

uint32_t sl_route_of_block(const sl_job *job, const sl_destination *destination, int64_t first_id) {
    uint32_t shard = sl_shard_map_owner(destination->map, first_id);
    int64_t begin = first_id & ~(int64_t)(SL_BLOCK_BYTES - 1);
    sl_range block = {.minimum = begin, .maximum = begin + (int64_t)SL_BLOCK_BYTES, .shard = shard};
    return sl_range_is_placed(destination->map, &block) ? shard : job->shards;
}

bool sl_route_confirm(sl_destination *destination, bool *confirmed, sl_error *error) {
    *confirmed = true;
    if (!destination->direct)
        return true;
    sl_error why = {0};
    switch (sl_direct_check(destination->direct, &destination->target, &why)) {
    case SL_OWNERS_SAME:
        return true;
    case SL_OWNERS_CHANGED:
        *error = why;
        return false;
    case SL_OWNERS_UNKNOWN:
        break;
    }
    *confirmed = false;
    *error = why;
    if (!destination->doubt_logged)
        sl_log_warning(SL_LINES "; batches sent meanwhile are counted when their owners are "
                                "confirmed",
                       why.message);
    destination->doubt_logged = true;
    return true;
}
