/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: batches into the cluster, as unordered bulk inserts through the driver.
 *
 * The driver's own validation is off, because the encoder has checked everything. A batch whose
 * fate is unknown (the connection broke, a primary stepped down) is sent again: what has arrived of
 * it is looked for first, and only the rest is sent. What is found, or comes back as a duplicate, is
 * compared (duplicates.h); only the same bytes mean that it has arrived. */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mongoc/mongoc.h>

#include <shardload/clock.h>
#include <shardload/interrupt.h>
#include <shardload/log.h>

#include "duplicates.h"

#define RETRY_FIRST_MS 50
#define RETRY_MOST_MS 5000

/* The server's codes. */
#define DUPLICATE_KEY 11000
#define INTERRUPTED 11601

/* A way into the cluster: to one shard, or through a router. */
typedef struct sl_lane {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
} sl_lane;

struct sl_outlet {
    sl_load *load;
    /* One per shard when batches go straight to the shards, and in any case a last one through the
     * routers. */
    sl_lane *lanes;
    uint32_t lane_count;
    const sl_lane *lane; /* of the batch in hand */
    bson_t *views;         /* one per document of a batch, over the batch's own bytes */
    const bson_t **pointers;
    size_t room;
    /* What of a batch is sent when part of it is there; NULL until that happens. */
    const bson_t **chosen;
    uint32_t *places; /* of each of them in the batch */
    bool look;        /* before the first attempt: an earlier run may have sent it */
    bson_t *options;
    unsigned seed; /* for the jitter */
};

static bool writer_open(sl_load *load, void **shared, sl_error *error) {
    *shared = load;
    return sl_connection_open_writers(load->connection, load->threads,
                                      load->config->timeout_seconds, error);
}

static bool writer_close(void *shared, sl_error *error) {
    (void)shared, (void)error;
    return true;
}

static mongoc_write_concern_t *write_concern_of(const sl_load *load) {
    mongoc_write_concern_t *concern = mongoc_write_concern_new();
    const char *wanted = load->config->write_concern;
    bool alone = sl_connection_server(load->connection)->deployment == SL_STANDALONE;
    if (strcmp(wanted, "majority") != 0) {
        mongoc_write_concern_set_w(concern, (int32_t)strtol(wanted, NULL, 10));
    } else if (alone) {
        /* There is no majority to wait for: durable means in the journal. */
        mongoc_write_concern_set_w(concern, 1);
        mongoc_write_concern_set_journal(concern, true);
    } else {
        mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
    }
    return concern;
}

static void open_lane(sl_outlet *outlet, uint32_t index, const mongoc_write_concern_t *concern) {
    const sl_load *load = outlet->load;
    sl_lane *lane = &outlet->lanes[index];
    lane->client = index + 1 < outlet->lane_count ? sl_direct_borrow(load->direct, index)
                                                  : sl_connection_borrow_writer(load->connection);
    lane->collection = mongoc_client_get_collection(lane->client, load->target.database,
                                                    load->target.collection);
    mongoc_collection_set_write_concern(lane->collection, concern);
}

static void close_lane(sl_outlet *outlet, uint32_t index) {
    const sl_load *load = outlet->load;
    sl_lane *lane = &outlet->lanes[index];
    mongoc_collection_destroy(lane->collection);
    if (lane->client && index + 1 < outlet->lane_count)
        sl_direct_return(load->direct, index, lane->client);
    else if (lane->client)
        sl_connection_return_writer(load->connection, lane->client);
}

static void writer_outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    for (uint32_t i = 0; outlet->lanes && i < outlet->lane_count; i++)
        close_lane(outlet, i);
    free(outlet->lanes);
    bson_destroy(outlet->options);
    free(outlet->views);
    free(outlet->pointers);
    free(outlet->chosen);
    free(outlet->places);
    free(outlet);
}

static bool writer_outlet_create(sl_load *load, void *shared, sl_outlet **result, sl_error *error) {
    (void)shared;
    sl_outlet *made = calloc(1, sizeof *made);
    *result = made;
    if (!made)
        return sl_error_memory(error, "starting writers");
    made->load = load;
    made->look = load->resumed || load->config->again;
    made->seed = (unsigned)sl_clock_ns();
    made->options = BCON_NEW("ordered", BCON_BOOL(false), "validate", BCON_BOOL(false));
    made->lane_count = load->direct ? load->shards + 1 : 1;
    made->lanes = calloc(made->lane_count, sizeof *made->lanes);
    if (!made->lanes)
        return sl_error_memory(error, "starting writers");
    mongoc_write_concern_t *concern = write_concern_of(load);
    for (uint32_t i = 0; i < made->lane_count; i++)
        open_lane(made, i, concern);
    mongoc_write_concern_destroy(concern);
    return true;
}

/* Points a bson_t at each document of the batch; they lie one behind the other. */
static bool view_documents(sl_outlet *outlet, const sl_batch *batch, sl_error *error) {
    if (batch->documents > outlet->room) {
        free(outlet->views);
        free(outlet->pointers);
        free(outlet->chosen);
        free(outlet->places);
        outlet->chosen = NULL;
        outlet->places = NULL;
        outlet->room = batch->documents;
        outlet->views = aligned_alloc(_Alignof(bson_t), outlet->room * sizeof *outlet->views);
        outlet->pointers = malloc(outlet->room * sizeof *outlet->pointers);
        if (!outlet->views || !outlet->pointers) {
            outlet->room = 0;
            return sl_error_memory(error, "sending a batch");
        }
        for (size_t i = 0; i < outlet->room; i++)
            outlet->pointers[i] = &outlet->views[i];
    }
    size_t at = 0;
    for (uint32_t i = 0; i < batch->documents; i++) {
        uint32_t length;
        memcpy(&length, batch->bytes + at, sizeof length);
        length = BSON_UINT32_FROM_LE(length);
        if (!bson_init_static(&outlet->views[i], batch->bytes + at, length))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "internal error: document %u of a batch is not BSON", i);
        at += length;
    }
    return true;
}

typedef enum sl_outcome { DELIVERED, SEND_AGAIN, UNDELIVERABLE } sl_outcome;

static uint32_t array_length(const bson_t *reply, const char *key) {
    bson_iter_t iter, items;
    uint32_t length = 0;
    if (bson_iter_init_find(&iter, reply, key) && BSON_ITER_HOLDS_ARRAY(&iter) &&
        bson_iter_recurse(&iter, &items)) {
        while (bson_iter_next(&items))
            length++;
    }
    return length;
}

/* Is the write error a duplicate of _id itself, not of some other unique index? */
static bool is_duplicate_id(const bson_iter_t *write_error, int32_t code, const char *message) {
    bson_iter_t iter, key;
    if (code != DUPLICATE_KEY)
        return false;
    if (bson_iter_recurse(write_error, &iter) && bson_iter_find(&iter, "keyPattern") &&
        BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &key) && bson_iter_next(&key))
        return strcmp(bson_iter_key(&key), "_id") == 0;
    return strstr(message, "index: _id_ ") || strstr(message, "{ _id:");
}

typedef struct write_error {
    uint32_t index; /* in the batch */
    int32_t code;
    const char *message;
    bool duplicate_id;
} write_error;

/* What is sent at once: a batch, or those documents of it that are not there yet. */
typedef struct sl_parcel {
    const bson_t **documents;
    uint32_t count;
    const uint32_t *places; /* of each in the batch; NULL: it is the batch */
} sl_parcel;

/* The next of a reply's write errors. */
static bool next_write_error(bson_iter_t *items, const sl_parcel *parcel, write_error *found) {
    while (bson_iter_next(items)) {
        bson_iter_t field;
        *found = (write_error){.index = parcel->count, .message = ""};
        if (bson_iter_recurse(items, &field)) {
            while (bson_iter_next(&field)) {
                const char *key = bson_iter_key(&field);
                if (strcmp(key, "index") == 0)
                    found->index = (uint32_t)bson_iter_as_int64(&field);
                else if (strcmp(key, "code") == 0)
                    found->code = (int32_t)bson_iter_as_int64(&field);
                else if (strcmp(key, "errmsg") == 0 && BSON_ITER_HOLDS_UTF8(&field))
                    found->message = bson_iter_utf8(&field, NULL);
            }
        }
        found->duplicate_id = is_duplicate_id(items, found->code, found->message);
        if (found->index >= parcel->count)
            continue;
        if (parcel->places)
            found->index = parcel->places[found->index];
        return true;
    }
    return false;
}

/* Who wants to know what becomes of a batch. */
typedef struct sl_listener {
    sl_batch_result *result;
    refusal_handler refused;
    void *context;
} sl_listener;

static void tell(const sl_listener *listener, const write_error *one, sl_fate fate,
                 const char *reason) {
    if (fate == FATE_ALREADY_THERE)
        listener->result->already_there++;
    else
        listener->result->rejected++;
    listener->refused(listener->context, one->index, fate, one->code, reason);
}

static void tell_duplicate(const sl_listener *listener, const write_error *one,
                           const char *difference) {
    char reason[500];
    if (difference)
        snprintf(reason, sizeof reason, "another document stands under this _id: %s", difference);
    tell(listener, one, difference ? FATE_PLACE_TAKEN : FATE_ALREADY_THERE,
         difference ? reason : "");
}

/* Tells what became of each document that was not inserted. Nothing has been told when it returns
 * anything but SL_SCAN_DONE. */
static sl_scan_result take_write_errors(sl_outlet *outlet, const bson_t *reply,
                                        const sl_batch *batch, const sl_parcel *parcel,
                                        const sl_listener *listener, sl_error *error) {
    bson_iter_t iter, items;
    if (!bson_iter_init_find(&iter, reply, "writeErrors") || !bson_iter_recurse(&iter, &items))
        return SL_SCAN_DONE;
    sl_duplicates duplicates;
    write_error one;
    sl_scan_result judged = SL_SCAN_FAILED;
    if (sl_duplicates_init(&duplicates, outlet->pointers, batch->documents)) {
        for (bson_iter_t walk = items; next_write_error(&walk, parcel, &one);) {
            if (one.duplicate_id)
                sl_duplicates_mark(&duplicates, one.index);
        }
        judged = sl_duplicates_judge(&duplicates, outlet->lane->client, &outlet->load->target, error);
    } else {
        sl_error_memory(error, "comparing duplicates");
    }
    while (judged == SL_SCAN_DONE && next_write_error(&items, parcel, &one)) {
        if (one.duplicate_id)
            tell_duplicate(listener, &one, duplicates.difference[one.index]);
        else
            tell(listener, &one, FATE_REFUSED, one.message);
    }
    sl_duplicates_clear(&duplicates);
    return judged;
}

/* "Not now" rather than "not this": elections, shutdowns, shards that cannot be reached, stale
 * routing, an operation that was killed. */
static bool is_transient_code(int64_t code) {
    return code != 0 && (sl_code_is_transient((int32_t)code) || code == INTERRUPTED);
}

/* No set of this size can ever satisfy the write concern. */
#define UNSATISFIABLE_WRITE_CONCERN 100

static bool is_transient(const bson_error_t *error, const bson_t *reply) {
    if (error->code == UNSATISFIABLE_WRITE_CONCERN)
        return false;
    return error->domain == MONGOC_ERROR_STREAM ||
           error->domain == MONGOC_ERROR_SERVER_SELECTION ||
           error->domain == MONGOC_ERROR_WRITE_CONCERN ||
           /* The user was good when the load began: this one broke while it reconnected. */
           (error->domain == MONGOC_ERROR_CLIENT &&
            error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE) ||
           mongoc_error_has_label(reply, "RetryableWriteError") || is_transient_code(error->code);
}

/* Codes that speak of one document: of a validator, a key, an index. */
static bool is_of_document(int64_t code) {
    static const int64_t codes[] = {2,     9,     14,    22,    28,    52,    53,    56,   57,
                                    61,    121,   171,   10334, 11000, 11001, 12582, 16755, 17261,
                                    17262, 17280, 17419};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (code == codes[i])
            return true;
    }
    return false;
}

/* A router that cannot reach a shard, or has no answer from it, says so of each document, in the
 * words of whatever went wrong. So an error that is not known to speak of a document is believed to
 * when it does not come for all of them alike. */
static bool has_transient_write_error(const bson_t *reply, uint32_t count) {
    bson_iter_t iter, items, field;
    uint32_t unknown = 0;
    if (!bson_iter_init_find(&iter, reply, "writeErrors") || !bson_iter_recurse(&iter, &items))
        return false;
    while (bson_iter_next(&items)) {
        int64_t code = bson_iter_recurse(&items, &field) && bson_iter_find(&field, "code")
                           ? bson_iter_as_int64(&field)
                           : 0;
        const char *message = bson_iter_recurse(&items, &field) &&
                                      bson_iter_find(&field, "errmsg") &&
                                      BSON_ITER_HOLDS_UTF8(&field)
                                  ? bson_iter_utf8(&field, NULL)
                                  : "";
        if (is_transient_code(code) || strstr(message, "rite results unavailable"))
            return true;
        unknown += !is_of_document(code);
    }
    return unknown > 1 && unknown == count;
}

static sl_outcome outcome_of(sl_scan_result result) {
    return result == SL_SCAN_DONE ? DELIVERED : result == SL_SCAN_AGAIN ? SEND_AGAIN
                                                                         : UNDELIVERABLE;
}

static sl_outcome send_parcel(sl_outlet *outlet, const sl_batch *batch, const sl_parcel *parcel,
                              const sl_listener *listener, sl_error *error) {
    bson_error_t why = {0};
    bson_t reply;
    bool ok = mongoc_collection_insert_many(outlet->lane->collection, parcel->documents,
                                            parcel->count, outlet->options, &reply, &why);
    sl_outcome outcome = DELIVERED;
    if (!ok) {
        bson_iter_t iter;
        uint32_t refusals = array_length(&reply, "writeErrors");
        uint32_t inserted = 0;
        if (bson_iter_init_find(&iter, &reply, "insertedCount"))
            inserted = (uint32_t)bson_iter_as_int64(&iter);
        /* All documents have a fate: refused ones are told apart, nothing is left to try. */
        bool transient = has_transient_write_error(&reply, parcel->count);
        bool unconcerned = array_length(&reply, "writeConcernErrors") == 0;
        bool final = unconcerned && !transient;
        if (final && inserted + refusals == parcel->count) {
            listener->result->inserted = inserted;
            outcome = outcome_of(take_write_errors(outlet, &reply, batch, parcel, listener, error));
        } else {
            sl_error_from_driver(error, "inserting a batch", &why);
            /* Where there are write errors too, the driver tells of the first of these. */
            bool hidden = !unconcerned && refusals > 0;
            if (hidden)
                sl_error_set(error, SL_EXIT_CLUSTER, "inserting a batch: the write concern was not "
                             "satisfied");
            outcome = hidden || transient || is_transient(&why, &reply) ? SEND_AGAIN
                                                                        : UNDELIVERABLE;
        }
    } else {
        listener->result->inserted = parcel->count;
    }
    bson_destroy(&reply);
    return outcome;
}

/* Makes a parcel of the documents that are not there. If all are, the last one goes nevertheless:
 * its refusal is acknowledged with the write concern, and with it what was written before. */
static bool choose(sl_outlet *outlet, const sl_batch *batch, sl_duplicates *there,
                   sl_parcel *parcel, sl_error *error) {
    if (!outlet->chosen) {
        outlet->chosen = malloc(outlet->room * sizeof *outlet->chosen);
        outlet->places = malloc(outlet->room * sizeof *outlet->places);
        if (!outlet->chosen || !outlet->places)
            return sl_error_memory(error, "sending part of a batch");
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->documents; i++) {
        bool last_chance = i + 1 == batch->documents && count == 0;
        if (!there->missing[i] && !last_chance)
            continue;
        there->missing[i] = true; /* as far as we know before it is sent */
        outlet->chosen[count] = outlet->pointers[i];
        outlet->places[count++] = i;
    }
    *parcel = (sl_parcel){outlet->chosen, count, outlet->places};
    return true;
}

/* One attempt. Where the batch may have been sent before, what is there already is found first, and
 * told when the rest has been acknowledged. */
static sl_outcome send_once(sl_outlet *outlet, const sl_batch *batch, bool look,
                            const sl_listener *listener, sl_error *error) {
    sl_parcel parcel = {outlet->pointers, batch->documents, NULL};
    if (!look)
        return send_parcel(outlet, batch, &parcel, listener, error);
    sl_duplicates there;
    sl_outcome outcome = UNDELIVERABLE;
    bool any = false;
    if (sl_duplicates_init(&there, outlet->pointers, batch->documents))
        outcome = outcome_of(sl_duplicates_look(&there, outlet->lane->client,
                                                &outlet->load->target, &any, error));
    else
        sl_error_memory(error, "looking for documents");
    if (outcome == DELIVERED && any && !choose(outlet, batch, &there, &parcel, error))
        outcome = UNDELIVERABLE;
    if (outcome == DELIVERED)
        outcome = send_parcel(outlet, batch, &parcel, listener, error);
    for (uint32_t i = 0; outcome == DELIVERED && any && i < batch->documents; i++) {
        write_error one = {.index = i, .code = DUPLICATE_KEY};
        if (!there.missing[i])
            tell_duplicate(listener, &one, there.difference[i]);
    }
    sl_duplicates_clear(&there);
    return outcome;
}

static void wait_before_retry(sl_outlet *outlet, unsigned attempt) {
    long most = RETRY_FIRST_MS << (attempt < 7 ? attempt : 7);
    if (most > RETRY_MOST_MS)
        most = RETRY_MOST_MS;
    long ms = most / 2 + (long)rand_r(&outlet->seed) % (most / 2 + 1);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool writer_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                        refusal_handler refused, void *context, sl_error *error) {
    if (!view_documents(outlet, batch, error))
        return false;
    /* A batch of documents whose owner is not known is beyond the shards' lanes. */
    outlet->lane = &outlet->lanes[batch->shard < outlet->lane_count ? batch->shard
                                                                    : outlet->lane_count - 1];
    int64_t start = sl_clock_ns();
    const sl_listener listener = {result, refused, context};
    for (unsigned attempt = 0;; attempt++) {
        *result = (sl_batch_result){.retries = attempt};
        sl_interrupt_begin_change();
        sl_outcome outcome =
            send_once(outlet, batch, outlet->look || attempt > 0, &listener, error);
        sl_interrupt_end_change();
        switch (outcome) {
        case DELIVERED:
            error->code = SL_EXIT_OK;
            return true;
        case UNDELIVERABLE:
            return false;
        case SEND_AGAIN:
            if (attempt == 0) { /* the limit is for trying again, not for the first answer */
                sl_log_warning("%s; trying again", error->message);
                start = sl_clock_ns();
            }
            if (sl_interrupt_requested()) {
                error->code = SL_EXIT_INTERRUPTED;
                return sl_error_prefix(error, "interrupted while a batch could not be delivered");
            }
            if (atomic_load(&outlet->load->stop)) /* another thread has given up */
                return false;
            if (sl_seconds_since(start) > outlet->load->config->retry_seconds)
                return sl_error_prefix(error, "gave up after %.0f s", sl_seconds_since(start));
            wait_before_retry(outlet, attempt);
        }
    }
}

const sl_destination sink_cluster = {
    .name = "cluster",
    .open = writer_open,
    .close = writer_close,
    .outlet_create = writer_outlet_create,
    .outlet_destroy = writer_outlet_destroy,
    .send = writer_send,
};
