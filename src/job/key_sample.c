/* SPDX-License-Identifier: Apache-2.0 */
#include "key_sample.h"
#include "document_sample.h"

#include "bson/bson_writer.h"
#include "util/interrupt.h"

#define BLOCKS UINT64_C(64)
#define KEYS_PER_BLOCK 100u

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
static bool read_source(sl_document_sample *sample, const sl_job *job, size_t index,
                        uint64_t blocks, uint64_t count, sl_error *error) {
    bool splittable = sl_source_is_splittable(sl_source_set_at(job->set, index));
    sl_sampled_block block = {.last = false};
    for (uint64_t i = 0; i < count && !block.last && !sl_interrupt_requested(); i++) {
        uint64_t sequence = splittable ? (2 * i + 1) * blocks / (2 * count) : i;
        sl_error why = {0};
        sl_read_result result = sl_document_sample_read(sample, index, sequence, &block, &why);
        block.last = block.last && !splittable;
        if (result == SL_READ_FAILED && why.code == SL_EXIT_RESOURCES) {
            *error = why;
            return false;
        }
        if (result != SL_READ_BLOCK)
            break;
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
        ok = blocks == 0 || read_source(sample, job, i, blocks, own, error);
        before += blocks;
    }
    sl_document_sample_destroy(sample);
    sl_source_set_reset_consumed(job->set);
    return ok;
}
