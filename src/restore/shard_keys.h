/* SPDX-License-Identifier: Apache-2.0 */
/* --shard-keys: a YAML file that maps namespaces, as they are named on the server, to shard keys:
 *
 *   shop.orders: {key: {customer: 1, _id: 1}}
 *   shop.log: {key: {_id: hashed}}
 *   shop.users: {key: {email: 1}, unique: true}
 */
#ifndef SHARDLOAD_RESTORE_SHARD_KEYS_H
#define SHARDLOAD_RESTORE_SHARD_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include <bson/bson.h>

#include "dump.h"
#include "util/text.h"

typedef struct sl_shard_entry {
    char *name;
    bson_t *key;
    bool unique;
} sl_shard_entry;

typedef struct sl_shard_keys {
    sl_shard_entry *items;
    size_t count, room;
} sl_shard_keys;

/* Reads the text of the file; `keys` is empty before. Clear it in any case. SL_EXIT_USAGE. */
bool sl_shard_keys_parse(sl_shard_keys *keys, const char *path, sl_text text, sl_error *error);
void sl_shard_keys_clear(sl_shard_keys *keys);

/* Gives the keys to their namespaces. An entry must name a collection that is restored and can be
 * sharded. `keys` must outlive the dump. */
bool sl_shard_keys_apply(const sl_shard_keys *keys, sl_dump *dump, sl_error *error);

#endif
