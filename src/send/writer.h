/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of batches: their route, through the routers or directly to the shards, and the
 * commands of updates and deletes. sink.h declares its sinks, sl_sink_cluster and
 * sl_sink_modify. */
#ifndef SHARDLOAD_WRITER_H
#define SHARDLOAD_WRITER_H

#include <bson/bson.h>

#include "format/key_fields.h"
#include "job/job.h"

/* ---- the route ---- */

/* With --route direct: connects to the shards, before anything is created or changed. */
bool sl_route_open(const sl_job *job, sl_destination *destination, unsigned threads,
                   sl_error *error);
/* Reads the chunk map, again if it has been read before. */
bool sl_route_read_map(sl_destination *destination, sl_error *error);
/* The shard that owns all ids of the block with `first_id`; job->shards if several shards own
 * them. Only for a collection sharded by _id. Any thread. */
uint32_t sl_route_of_block(const sl_job *job, const sl_destination *destination, int64_t first_id);
/* On the direct route: are all documents acknowledged before this call on the shards that own them?
 * `*confirmed` false: this cannot be checked now; `error` has the reason. Returns false if a
 * document is on another shard. */
bool sl_route_confirm(sl_destination *destination, bool *confirmed, sl_error *error);

/* ---- statements ---- */

/* Statements: the update or delete command of a load with another mode than insert, encoded by hand
 * from the documents of a batch. A buffer belongs to one thread. */

/* The room for statements in a command with more than one statement. A server accepts commands of
 * up to 16 MiB + 16 KiB. */
#define SL_STATEMENTS_BYTES_MAX ((size_t)15 << 20)

typedef struct sl_statements {
    uint8_t *bytes; /* of the command; the caller frees them */
    size_t room;
    bool probes; /* statements that servers refuse for each document that matches */
} sl_statements;

/* Writes the command for as many of the `count` documents as fit, at least one: `head` (its first
 * field is the command's name) with the statements. documents[places[i]] is document i. `*taken`:
 * the number of documents whose statements fit. `command` is a view of the bytes, valid until the
 * next call. False without memory, or if a document lacks a match field.
 *
 * Each statement matches by {name: {$eq: value}} for each of the keys' match fields, so a value is
 * never interpreted as an operator. */
bool sl_statements_write(sl_statements *statements, const sl_key_fields *keys, const bson_t *head,
                         const bson_t *documents, const uint32_t *places, uint32_t count,
                         uint32_t *taken, bson_t *command, sl_error *error);

/* ---- repeats.c ---- */

/* Finds records of a load with the same match fields and different contents, in bounded memory.
 * They are sent in any order, so which of them remains is not defined. */
typedef struct sl_repeats sl_repeats;

sl_repeats *sl_repeats_create(const sl_key_fields *keys); /* NULL without memory */
void sl_repeats_destroy(sl_repeats *repeats);             /* NULL is fine */

/* Adds the documents of a batch. Any thread. */
void sl_repeats_add(sl_repeats *repeats, const bson_t *documents, uint32_t count);

/* The number of records that differ from another one with the same match fields. `*exact`: false if
 * it is estimated. Their fields, of the first such record, are written to `example`, as JSON. */
uint64_t sl_repeats_count(const sl_repeats *repeats, bool *exact, char *example, size_t room);

#endif
