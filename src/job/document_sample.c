/* SPDX-License-Identifier: Apache-2.0 */
#include "document_sample.h"
#include "archive_entries.h"
#include "line_ends.h"
#include "sources.h"

#include <stdlib.h>

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
