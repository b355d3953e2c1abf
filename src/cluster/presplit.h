/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a new collection at quantiles of a sample of its shard key, and distributes the chunks, so
 * that all shards receive documents from the beginning. One thread. */
#ifndef SHARDLOAD_PRESPLIT_H
#define SHARDLOAD_PRESPLIT_H

#include "cluster.h"

typedef struct sl_key_sample sl_key_sample;

/* A sample of at most some thousand values of the shard key. NULL without memory. `key` is
 * copied. */
sl_key_sample *sl_key_sample_create(const bson_t *key);
void sl_key_sample_destroy(sl_key_sample *sample); /* NULL is fine */

/* Offers a valid BSON document to the sample. All documents are equally likely to be in the sample,
 * except those whose key has a type that only the server compares (sl_shard_map_owner_of): these
 * are ignored. False without memory. */
bool sl_key_sample_offer(sl_key_sample *sample, const uint8_t *document);

/* Is the first field of the key hashed? Then the server distributes the chunks. */
bool sl_shard_key_is_hashed(const bson_t *key);

/* The number of keys in the sample. */
size_t sl_key_sample_count(const sl_key_sample *sample);

/* Splits and distributes the chunks of the collection, which is new: it is sharded by the key, and
 * has one chunk on the primary shard of its database. There are up to `per_shard` chunks for each
 * shard: fewer if the sample has few different keys. `*chunks`: their number at the end. */
bool sl_presplit(sl_connection *connection, const sl_target *target, const sl_topology *topology,
                 sl_key_sample *sample, size_t per_shard, size_t *chunks, sl_error *error);

#endif
