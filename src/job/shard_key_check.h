/* SPDX-License-Identifier: Apache-2.0 */
/* Do the documents have the fields of --shard-key? A mistyped field would send all documents to one
 * chunk, where the server cannot split them. */
#ifndef SHARDLOAD_SHARD_KEY_CHECK_H
#define SHARDLOAD_SHARD_KEY_CHECK_H

#include "job.h"

/* Parses blocks of the sources, spread over them, until a document with each field of the key was
 * found. Sets job->key_problem when a field of the key is in no sampled document: the collection
 * must then not be sharded by this key. Pipes are not sampled. False without memory only. */
bool sl_shard_key_check(sl_job *job, sl_error *error);

#endif
