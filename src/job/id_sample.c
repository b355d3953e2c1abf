/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of _ids; see id_sample.h. The blocks of all sources are numbered in one series, and one
 * block is read from each of BLOCKS equal stretches of it. Blocks that cannot be read or parsed are
 * left out: the load reports them. */
#include "id_sample.h"
#include "sources.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "format/key_fields.h"

#define BLOCKS UINT64_C(64)
#define IDS_PER_BLOCK 100u

typedef struct sampling {
    sl_id_sample *sample;
    uint8_t *bytes; /* of the documents of a block: room + SL_SLACK */
    size_t room;
    bool failed; /* without memory */
} sampling;

void sl_id_sample_clear(sl_id_sample *sample) {
    free(sample->bytes);
    *sample = (sl_id_sample){0};
}

static bool add_id(sl_id_sample *sample, const uint8_t *document) {
    uint8_t type;
    const uint8_t *value;
    size_t length;
    if (!sl_key_field_find(document, "_id", &type, &value, &length) ||
        length > SL_KEY_FIELD_BYTES_MAX)
        return true;
    size_t need = sample->used + length + 64;
    if (need > sample->room) {
        uint8_t *bytes = realloc(sample->bytes, 2 * need);
        if (!bytes)
            return false;
        sample->bytes = bytes;
        sample->room = 2 * need;
    }
    uint8_t *start = sample->bytes + sample->used;
    uint8_t *to = sl_bson_put_key(sl_bson_begin(start), (sl_bson_type)type, "_id");
    memcpy(to, value, length);
    sample->used = (size_t)(sl_bson_end(start, to + length) - sample->bytes);
    sample->count++;
    return true;
}

/* Adds _ids of the documents in the buffer, evenly spread. */
static void add_documents(sampling *s, const sl_sink *sink) {
    uint32_t step = sink->documents / IDS_PER_BLOCK + 1, i = 0;
    for (const uint8_t *at = s->bytes; at < sink->cursor; at += sl_bson_length(at)) {
        if (i++ % step == 0 && !add_id(s->sample, at))
            s->failed = true;
    }
}

static bool on_full(sl_sink *sink, size_t need) {
    sampling *s = sink->context;
    add_documents(s, sink);
    if (need > s->room) {
        uint8_t *bytes = realloc(s->bytes, need + SL_SLACK);
        if (!bytes) {
            s->failed = true;
            return false;
        }
        s->bytes = bytes;
        s->room = need;
    }
    sink->cursor = s->bytes;
    sink->limit = s->bytes + s->room;
    sink->documents = 0;
    return !s->failed;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    (void)sink, (void)reject;
}

static uint64_t blocks_of(const sl_job *job, size_t index) {
    const sl_source *facts = sl_source_set_at(job->set, index);
    return job->sources[index].skipped
               ? 0
               : (facts->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
}

/* Adds block `index` of the series. */
static void add_block(const sl_job *job, sl_reader *reader, uint64_t index, sampling *s) {
    size_t source = 0;
    for (uint64_t own; index >= (own = blocks_of(job, source)); source++)
        index -= own;
    sl_source_block block;
    sl_parse_counts counts = {0};
    sl_error ignored;
    if (sl_reader_next_of(reader, source, index, &block, &ignored) != SL_READ_BLOCK ||
        block.text.length == 0)
        return;
    sl_sink sink = {.cursor = s->bytes,
                    .limit = s->bytes + s->room,
                    .documents_limit = UINT32_MAX,
                    .full = on_full,
                    .reject = on_reject,
                    .context = s};
    sl_sources_parse(job, &block, job->sources[source].dialect, &sink, &counts);
    add_documents(s, &sink);
}

bool sl_id_sample_take(const sl_job *job, sl_id_sample *sample, sl_error *error) {
    sl_reader *reader = NULL;
    uint64_t all = 0;
    *sample = (sl_id_sample){0};
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (job->sources[i].skipped)
            continue;
        if (!sl_source_is_splittable(sl_source_set_at(job->set, i)))
            return true;
        all += blocks_of(job, i);
    }
    sampling s = {.sample = sample, .room = SL_BLOCK_BYTES};
    s.bytes = malloc(s.room + SL_SLACK);
    bool ok = s.bytes || sl_error_memory(error, "sampling the sources");
    ok = ok && sl_reader_create(job->set, &reader, error);
    uint64_t count = all < BLOCKS ? all : BLOCKS;
    for (uint64_t i = 0; ok && !s.failed && i < count; i++)
        add_block(job, reader, (2 * i + 1) * all / (2 * count), &s);
    sl_reader_destroy(reader);
    sl_source_set_reset_consumed(job->set);
    free(s.bytes);
    return ok && (!s.failed || sl_error_memory(error, "sampling the sources"));
}
