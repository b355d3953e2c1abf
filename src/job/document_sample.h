/* SPDX-License-Identifier: Apache-2.0 */
/* Parses single blocks of a job's sources before the load, for estimates (preview.c), for the check
 * and samples of the shard key (cluster.h), and for the types of fields (types.c). Call it from one
 * thread, before the workers start. */
#ifndef SHARDLOAD_DOCUMENT_SAMPLE_H
#define SHARDLOAD_DOCUMENT_SAMPLE_H

#include <math.h>

#include "cluster/cluster.h"
#include "format/key_fields.h"

#include "job.h"

typedef struct sl_document_sample sl_document_sample;

/* Receives `count` consecutive BSON documents that end at `end`. False: without memory. If the
 * function is NULL, documents are only counted. */
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

/* The index of the block to read in stretch `i` of `sample_size` equal stretches of `blocks`
 * blocks: at positions spread by the golden ratio. */
static inline uint64_t sl_spread_block(uint64_t i, uint64_t sample_size, uint64_t blocks) {
    uint64_t first = i * blocks / sample_size, next = (i + 1) * blocks / sample_size;
    double golden = (double)i * 0.6180339887498949;
    return first + (uint64_t)((golden - floor(golden)) * (double)(next - first));
}

/* Offers documents of about 64 blocks, spread evenly over the sources, to a sample of the shard
 * key. Of a source that can only be read sequentially (compressed, JSON, BSON) the first blocks are
 * read, which may not be representative. Pipes are not read. Blocks that cannot be read or parsed
 * are left out: the load reports them. Ends early when an interrupt is requested. False without
 * memory. */
bool sl_key_sample_take(sl_job *job, sl_key_sample *sample, sl_error *error);

/* Do the documents have the fields of --shard-key? A mistyped field would send all documents to one
 * chunk, where the server cannot split them. */

/* Parses blocks of the sources, spread over them, until a document with each field of the key was
 * found. Sets job->key_problem when a field of the key is in no sampled document: the collection
 * must then not be sharded by this key. Pipes are not sampled. False without memory only. */
bool sl_shard_key_check(sl_job *job, sl_error *error);
/* Warns if no sampled document has a field of the key by which the collection is sharded. False
 * without memory only. */
bool sl_shard_key_look(sl_job *job, const sl_target *target, const bson_t *shard_key,
                       sl_error *error);

/* Warns of a field of --types that no sampled document has. False without memory only. */
bool sl_declared_look(sl_job *job, sl_error *error);

/* Passes on the documents at the beginning of up to 8 sources that are not pipes. Blocks that
 * cannot be read or parsed are left out. */
void sl_documents_look(sl_job *job, sl_sampled_documents *receive, void *context);

/* For --drop. Fails if three blocks of each of up to 64 sources hold only rejects, or cannot be
 * read: the first, middle and last one; of a compressed file the first three. Ends with success at
 * the first pipe, archive or source of generated records. */
bool sl_documents_refuse_rejects(sl_job *job, const sl_target *target, sl_error *error);

#define SL_SAMPLED_TEXT_ROOM 60

/* The BSON type of the field in the first sampled document that has it. 0 if none has it, also if
 * the sources cannot be sampled. The _id of a record's position is not counted. `text` (may be
 * NULL): the value, if it is a text or a number; otherwise "". */
int sl_documents_type(sl_job *job, const char *field, char text[SL_SAMPLED_TEXT_ROOM]);

/* ---- the types of fields in documents ---- */

#define SL_FIELD_ROOM 200
#define SL_FIELD_EXAMPLE_ROOM 60
#define SL_FIELD_KINDS 10u

/* Types of BSON that columns have. */
extern const struct sl_field_kind {
    const char *type;    /* as sl_column_type_read reads it */
    uint32_t bson_types; /* bit set */
    bool declared;       /* a column has the type only by declaration */
} sl_field_kinds[SL_FIELD_KINDS];

typedef struct sl_typed_field {
    char name[SL_FIELD_ROOM]; /* with dots, in embedded documents, also in those of arrays */
    uint32_t types;           /* of BSON; bit set */
    char example[SL_FIELD_EXAMPLE_ROOM];
} sl_typed_field;

typedef struct sl_typed_fields {
    const sl_key_names *ids; /* --id-field: columns that are the _id; may be NULL */
    const char *array;       /* --embed: the documents are elements of this field; or NULL */
    sl_typed_field *items;
    size_t count, room;
    size_t read; /* of the document */
    size_t next; /* documents have their fields in the same order, so this one is likely */
} sl_typed_fields;

/* Notes the fields of a document, and those of embedded ones: at most 1,000 names. */
void sl_fields_add(sl_typed_fields *fields, const bson_t *document);
/* For sl_documents_look; `context`: the sl_typed_fields. Looks at 1,000 documents of a block. */
bool sl_fields_add_documents(void *context, const uint8_t *documents, const uint8_t *end,
                             uint32_t count);

#endif
