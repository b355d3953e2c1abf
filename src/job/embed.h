/* SPDX-License-Identifier: Apache-2.0 */
/* --embed: the records of a second source as an array in the documents of the load.
 *
 * The second source is first stored by join key (embed_store.h). Each document then gets the array
 * of its key while its block is parsed, so that all steps after the parser (routing, batches,
 * resuming, verification) handle complete documents. */
#ifndef SHARDLOAD_EMBED_H
#define SHARDLOAD_EMBED_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "embed_store.h"
#include "job.h"

/* The names in --on: of fields in the documents, and of fields in the records to embed. */
typedef struct sl_join {
    char *text; /* owns the names */
    const char *documents[SL_JOIN_FIELDS_MAX];
    const char *records[SL_JOIN_FIELDS_MAX];
    size_t count;
} sl_join;

/* Parses "A,B=C": the fields are A and B in the documents, A and C in the records. False with error
 * (SL_EXIT_USAGE), or without memory. */
bool sl_join_parse(const char *text, sl_join *join, sl_error *error);

/* The options of the sink of records to embed (load/embedding.h). */
typedef struct sl_divided {
    const char *field;                    /* of the array */
    const char *folder;                   /* of the partitions */
    const char *keys[SL_JOIN_FIELDS_MAX]; /* owned by the sl_embed */
    size_t key_count;
    uint64_t seed;                /* of the hashes of keys */
    _Atomic uint64_t without_key; /* records */
    _Atomic uint64_t text;        /* the sum of sl_divided_text of all blocks */
} sl_divided;

typedef struct sl_embed {
    const char *field;     /* of the array; borrowed from the config */
    sl_load_config config; /* of the load of the records, and the names in it */
    sl_divided divided;
    sl_job records;     /* their sources, open, with their types */
    struct stat source; /* the file or folder of the records, before they were read */
    sl_join join;
    const struct sl_key_names *id_fields; /* of the job; or NULL */
    sl_store_facts facts;
    sl_store *store;
    char text[17];              /* a hash of all text of the records */
    bool counting;              /* set before the load: samples are neither counted nor marked */
    _Atomic uint64_t documents; /* with an array */
    _Atomic uint64_t embedded;  /* records in these arrays */
    _Atomic uint64_t keyless;   /* documents without a join key */
    uint64_t unmatched;         /* records in no document; known at the end */
} sl_embed;

void sl_embed_destroy(sl_embed *embed); /* NULL is fine */

/* Parses a block as sl_sources_parse does, and completes its documents. Any thread. */
bool sl_embed_parse(sl_embed *embed, const sl_format *format, const sl_plan *plan,
                    const sl_dialect *dialect, const sl_block *block, sl_sink *sink,
                    sl_parse_counts *counts);

/* The names of --on as the keys that documents have. */
typedef struct sl_embed_keys {
    const char *names[SL_JOIN_FIELDS_MAX];
    char made[SL_JOIN_FIELDS_MAX][200]; /* some of them */
} sl_embed_keys;

/* Of documents of this dialect: with short keys, the names of columns may be given; and a field of
 * `id_fields` (of --id-field, or NULL) is the _id, or a part of it. */
void sl_embed_keys_find(const sl_format *format, const sl_dialect *dialect,
                        const struct sl_key_names *id_fields, const char *const *names,
                        size_t count, sl_embed_keys *keys);

/* Writes the records that are in no document to `path`, as JSON lines: for each key a document with
 * the key's fields and the array that would have been embedded; and a document for each record
 * without a key, or with a key that has too many records. `folder`: the store's folder. `*count`:
 * the number of records written. If there are none, the file is removed. */
bool sl_embed_write_unmatched(const sl_embed *embed, const char *folder, const char *path,
                              uint64_t *count, sl_error *error);

#endif
