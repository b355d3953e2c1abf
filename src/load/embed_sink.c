/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of the records to embed: writes each to the partition of its join key.
 *
 * A record is stored in the form in which it will be embedded: without the fields of its key, which
 * the outer document has, and without an _id that was made from its position. */
#include "embedding.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "job/embed_store.h"
#include "ledger/ledger.h"
#include "util/hash.h"
#include "worker.h"

typedef struct sl_dividing {
    sl_divided *options;
    sl_partitions *partitions;
} sl_dividing;

struct sl_outlet {
    sl_dividing *to;
    sl_partition_writer *writer;
    uint8_t *document; /* the record in the form in which it will be embedded */
    size_t room;
};

static bool divided_open(const sl_sending *sending, void **shared, sl_error *error) {
    sl_dividing *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "dividing the records to embed");
    made->options = sending->config->divided;
    if (!sl_partitions_create(made->options->folder, 0, &made->partitions, error)) {
        free(made);
        return false;
    }
    *shared = made;
    return true;
}

static bool divided_close(void *shared, sl_error *error) {
    sl_dividing *dividing = shared;
    if (!dividing)
        return true;
    bool ok = sl_partitions_close(dividing->partitions, error);
    free(dividing);
    return ok;
}

static bool outlet_create(const sl_sending *sending, void *shared, sl_outlet **outlet,
                          sl_error *error) {
    (void)sending;
    sl_dividing *dividing = shared;
    sl_outlet *made = calloc(1, sizeof *made);
    if (made) {
        made->to = dividing;
        made->writer = sl_partition_writer_create(dividing->partitions);
    }
    if (!made || !made->writer) {
        free(made);
        return sl_error_memory(error, "starting writers");
    }
    *outlet = made;
    return true;
}

static void outlet_destroy(sl_outlet *outlet) {
    if (!outlet)
        return;
    sl_partition_writer_destroy(outlet->writer);
    free(outlet->document);
    free(outlet);
}

/* Does the field belong to the key? */
static bool is_key(const sl_divided *options, const char *name) {
    for (size_t i = 0; i < options->key_count; i++) {
        if (strcmp(options->keys[i], name) == 0)
            return true;
    }
    return false;
}

/* Copies the fields of the record that are embedded; returns the length. `outlet` has room for the
 * complete record. */
static size_t copy_embedded(sl_outlet *outlet, const bson_t *record, bool without_key,
                            bool without_id) {
    const uint8_t *bytes = bson_get_data(record), *from = NULL;
    uint8_t *to = outlet->document + 4;
    bson_iter_t iter;
    bool more = bson_iter_init(&iter, record) && bson_iter_next(&iter);
    while (more) {
        const char *name = bson_iter_key(&iter);
        bool wanted = !(without_key && is_key(outlet->to->options, name)) &&
                      !(without_id && strcmp(name, "_id") == 0);
        from = bytes + bson_iter_offset(&iter);
        more = bson_iter_next(&iter);
        const uint8_t *end = more ? bytes + bson_iter_offset(&iter) : bytes + record->len - 1;
        if (wanted) {
            memcpy(to, from, (size_t)(end - from));
            to += end - from;
        }
    }
    *to++ = 0;
    sl_bson_put_int32(outlet->document, (int32_t)(to - outlet->document));
    return (size_t)(to - outlet->document);
}

static bool write_record(sl_outlet *outlet, const bson_t *record, uint32_t source,
                         const uint64_t *offset, sl_error *error) {
    const sl_divided *options = outlet->to->options;
    uint8_t key[SL_JOIN_KEY_ROOM];
    bson_iter_t iter;
    if (record->len > outlet->room) {
        free(outlet->document);
        outlet->room = 2 * (size_t)record->len;
        outlet->document = malloc(outlet->room);
        if (!outlet->document) {
            outlet->room = 0;
            return sl_error_memory(error, "dividing the records to embed");
        }
    }
    /* The position is in the _id, or beside the document if documents may have their own _id. */
    bool int64_id = bson_iter_init_find(&iter, record, "_id") && BSON_ITER_HOLDS_INT64(&iter);
    int64_t id = int64_id ? bson_iter_int64(&iter) : 0;
    uint64_t at = offset ? *offset : sl_document_id_offset(id);
    bool made_id = int64_id && id == sl_document_id(source, at);
    size_t key_length = sl_join_key_of(record, options->keys, options->key_count, key);
    if (key_length == 0)
        atomic_fetch_add_explicit(&outlet->to->options->without_key, 1, memory_order_relaxed);
    size_t length = copy_embedded(outlet, record, key_length > 0, made_id);
    return sl_partition_write(outlet->writer, key, key_length, sl_hash(key, key_length),
                              sl_record_position(source, at), outlet->document, length, error);
}

uint64_t sl_divided_text(const sl_source_block *block) {
    const uint64_t words[] = {block->source, block->offset, sl_resume_check(block)};
    return block->text.length ? sl_hash((const uint8_t *)words, sizeof words) : 0;
}

/* A batch counts as written once the buffers have been flushed: there may be no next batch to flush
 * them. */
static bool divided_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                         refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context;
    const uint8_t *at = batch->bytes;
    const uint64_t *offset = batch->offsets;
    for (size_t s = 0; s < batch->segment_count; s++) {
        const sl_batch_segment *segment = &batch->segments[s];
        for (uint32_t i = 0; i < segment->documents; i++) {
            bson_t record;
            uint32_t length = sl_bson_length(at);
            uint32_t source = sl_document_id_source(segment->open_block->first_id);
            if (!bson_init_static(&record, at, length) ||
                !write_record(outlet, &record, source, offset, error))
                return error->code ? false
                                   : sl_error_set(error, SL_EXIT_SOURCE,
                                                  "a record to embed is not a valid document");
            at += length;
            if (offset)
                offset++;
        }
    }
    result->inserted = batch->documents;
    return sl_partition_flush(outlet->writer, error);
}

const sl_sink_type sl_sink_divided = {
    .name = "divided",
    .open = divided_open,
    .close = divided_close,
    .outlet_create = outlet_create,
    .outlet_destroy = outlet_destroy,
    .send = divided_send,
};
