/* SPDX-License-Identifier: Apache-2.0 */
#include "document_sample.h"
#include "archive_entries.h"
#include "line_ends.h"
#include "sources.h"

#include <stdlib.h>

#include "bson/bson_writer.h"
#include "util/interrupt.h"

#define BLOCKS UINT64_C(64)
#define KEYS_PER_BLOCK 100u

struct sl_document_sample {
    sl_job *job;
    sl_sampled_documents *receive;
    void *context;
    sl_reader *reader;
    uint8_t *bytes; /* room + SL_SLACK */
    size_t room;
    uint64_t bson_bytes;          /* of the current block */
    const sl_source_block *block; /* the current block */
    bool no_memory;
    sl_error misread;
};

bool sl_document_sample_create(sl_job *job, sl_sampled_documents *receive, void *context,
                               sl_document_sample **sample, sl_error *error) {
    sl_document_sample *made = calloc(1, sizeof *made);
    *sample = made;
    if (!made)
        return sl_error_memory(error, "examining the sources");
    made->job = job;
    made->receive = receive;
    made->context = context;
    made->room = SL_BLOCK_BYTES;
    made->bytes = malloc(made->room + SL_SLACK);
    if (!made->bytes)
        return sl_error_memory(error, "examining the sources");
    return sl_reader_create(job->set, &made->reader, error);
}

void sl_document_sample_destroy(sl_document_sample *sample) {
    if (!sample)
        return;
    sl_reader_destroy(sample->reader);
    free(sample->bytes);
    free(sample);
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_document_sample *s = sink->context;
    s->bson_bytes += (uint64_t)(sink->cursor - s->bytes);
    if (!s->receive(s->context, s->bytes, sink->cursor, sink->documents))
        s->no_memory = true;
    if (need > s->room) {
        uint8_t *bytes = realloc(s->bytes, need + SL_SLACK);
        s->no_memory = s->no_memory || !bytes;
        s->bytes = bytes ? bytes : s->bytes;
        s->room = bytes ? need : s->room;
    }
    sink->cursor = s->bytes;
    sink->limit = s->bytes + s->room;
    sink->documents = 0;
    return !s->no_memory;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_document_sample *s = sink->context;
    if (reject->misread)
        sl_line_ends_error(s->job, s->block, reject, &s->misread);
}

sl_read_result sl_document_sample_read(sl_document_sample *s, size_t source, uint64_t sequence,
                                       sl_sampled_block *into, sl_error *error) {
    sl_job *job = s->job;
    sl_source_block block;
    const sl_dialect *dialect;
    sl_read_result result = sl_reader_next_of(s->reader, source, sequence, &block, error);
    if (result != SL_READ_BLOCK)
        return result;
    *into = (sl_sampled_block){.text_bytes = block.text.length, .last = block.last};
    if (!sl_sources_dialect(job, &block, &dialect, error))
        return SL_READ_FAILED;
    s->bson_bytes = 0;
    s->block = &block;
    sl_sink sink = {.cursor = s->bytes,
                    .limit = s->bytes + s->room,
                    .documents_limit = UINT32_MAX,
                    .full = on_full,
                    .reject = on_reject,
                    .context = s};
    bool parsed =
        !dialect || block.text.length == 0 ||
        (sl_sources_parse(job, &block, dialect, &sink, &into->counts) && on_full(&sink, 0));
    if (!parsed && s->misread.code)
        *error = s->misread;
    else if (!parsed)
        sl_error_memory(error, "examining the sources");
    sl_sources_done_with(job, &block);
    into->bson_bytes = s->bson_bytes;
    return parsed ? SL_READ_BLOCK : SL_READ_FAILED;
}

/* ---- shard keys ---- */

/* Offers some of the documents, evenly spread. */
static bool offer(void *context, const uint8_t *documents, const uint8_t *end, uint32_t count) {
    uint32_t step = count / KEYS_PER_BLOCK + 1, i = 0;
    bool ok = true;
    for (const uint8_t *at = documents; ok && at < end; at += sl_bson_length(at))
        ok = i++ % step != 0 || sl_key_sample_offer(context, at);
    return ok;
}

/* The number of blocks of a source; approximate for a compressed source. */
static uint64_t blocks_of(const sl_job *job, size_t index) {
    const sl_source *facts = sl_source_set_at(job->set, index);
    return job->sources[index].skipped || facts->kind == SL_SOURCE_PIPE
               ? 0
               : (facts->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
}

/* Reads `count` of the blocks of a source. Each source ends with its first error. */
static bool read_source(sl_document_sample *sample, size_t index, uint64_t blocks, uint64_t count,
                        sl_error *error) {
    bool splittable = sl_source_is_splittable(sl_source_set_at(sample->job->set, index));
    bool ended = false;
    for (uint64_t i = 0; i < count && !ended && !sl_interrupt_requested(); i++) {
        uint64_t sequence = splittable ? (2 * i + 1) * blocks / (2 * count) : i;
        sl_sampled_block block;
        sl_error why = {0};
        sl_read_result result = sl_document_sample_read(sample, index, sequence, &block, &why);
        if (why.code == SL_EXIT_RESOURCES) {
            *error = why;
            return false;
        }
        ended = result != SL_READ_BLOCK || (block.last && !splittable);
    }
    return true;
}

bool sl_key_sample_take(sl_job *job, sl_key_sample *keys, sl_error *error) {
    sl_document_sample *sample = NULL;
    uint64_t all = 0, before = 0;
    size_t count = sl_source_set_count(job->set);
    bool ok = sl_document_sample_create(job, offer, keys, &sample, error);
    for (size_t i = 0; i < count; i++)
        all += blocks_of(job, i);
    uint64_t wanted = all < BLOCKS ? all : BLOCKS;
    for (size_t i = 0; ok && all > 0 && i < count; i++) {
        uint64_t blocks = blocks_of(job, i);
        /* Of the numbers (2 k + 1) * all / (2 * wanted), k < wanted, this source has those in its
         * stretch. */
        uint64_t from = (before * 2 * wanted / all + 1) / 2;
        uint64_t to = ((before + blocks) * 2 * wanted / all + 1) / 2;
        bool splittable = sl_source_is_splittable(sl_source_set_at(job->set, i));
        uint64_t own = to - from;
        if (!splittable && own < BLOCKS / count) /* it has more bytes of text than stored bytes */
            own = BLOCKS / count;
        ok = blocks == 0 || read_source(sample, i, blocks, own, error);
        before += blocks;
    }
    sl_document_sample_destroy(sample);
    sl_source_set_reset_consumed(job->set);
    return ok;
}
