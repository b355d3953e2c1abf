/* SPDX-License-Identifier: Apache-2.0 */
/* Parses single blocks of a job's sources before the load, for estimates (measure.h) and for
 * samples of the shard key (key_sample.h). Call it from one thread, before the workers start. */
#ifndef SHARDLOAD_DOCUMENT_SAMPLE_H
#define SHARDLOAD_DOCUMENT_SAMPLE_H

#include "job.h"

typedef struct sl_document_sample sl_document_sample;

/* Receives `count` consecutive BSON documents that end at `end`. False: without memory. */
typedef bool sl_sampled_documents(void *context, const uint8_t *documents, const uint8_t *end,
                                  uint32_t count);

bool sl_document_sample_create(sl_job *job, sl_sampled_documents *receive, void *context,
                               sl_document_sample **sample, sl_error *error);
void sl_document_sample_destroy(sl_document_sample *sample); /* NULL is fine */

typedef struct sl_sampled_block {
    uint64_t text_bytes; /* for generated records, the bytes that they count as */
    uint64_t bson_bytes;
    sl_parse_counts counts; /* zero if the block belongs to an entry that is not loaded */
    bool last;
} sl_sampled_block;

/* Reads block `sequence` of a source, as sl_reader_next_of, and passes on its documents. */
sl_read_result sl_document_sample_read(sl_document_sample *sample, size_t source, uint64_t sequence,
                                       sl_sampled_block *block, sl_error *error);

#endif
