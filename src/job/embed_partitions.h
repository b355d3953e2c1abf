/* SPDX-License-Identifier: Apache-2.0 */
/* The records to embed, on disk, divided by the hash of their join key.
 *
 * A folder has SL_PARTITIONS files "000", "001", ..., each with the records whose hash has these
 * highest bits. The file "apart" has the records that cannot be embedded, because they have no key
 * or their key has too many records. A record in a file, integers in the byte order of this
 * machine:
 *
 *   uint32 length of all of it    uint32 key length    uint64 hash    uint64 position
 *   key    BSON document */
#ifndef SHARDLOAD_EMBED_PARTITIONS_H
#define SHARDLOAD_EMBED_PARTITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define SL_PARTITION_BITS 7
#define SL_PARTITIONS (1u << SL_PARTITION_BITS)

typedef struct sl_partition_head {
    uint32_t length; /* of head, key and document */
    uint32_t key_length;
    uint64_t hash;
    uint64_t
        position; /* of the record in its source, and the source's number: sl_record_position */
} sl_partition_head;

/* Ascends in the order of the sources, and within a source in the order of the text. */
static inline uint64_t sl_record_position(uint32_t source, uint64_t offset) {
    return (uint64_t)source << 40 | offset;
}

/* The partition of a hash, after `level` divisions. */
static inline unsigned sl_partition_of(uint64_t hash, unsigned level) {
    return (unsigned)(hash << SL_PARTITION_BITS * level >> (64 - SL_PARTITION_BITS));
}

/* Files that several threads write to; each thread has a writer. */
typedef struct sl_partitions sl_partitions;
typedef struct sl_partition_writer sl_partition_writer;

/* Creates the folder and its files; removes files of those names that exist. `level`: the number of
 * divisions before this one. */
bool sl_partitions_create(const char *folder, unsigned level, sl_partitions **partitions,
                          sl_error *error);
/* Closes the files; false when one could not be written completely. NULL is fine. */
bool sl_partitions_close(sl_partitions *partitions, sl_error *error);

/* A writer buffers SL_PARTITION_BUFFER bytes for each file. NULL without memory. */
#define SL_PARTITION_BUFFER ((size_t)16 << 10)
sl_partition_writer *sl_partition_writer_create(sl_partitions *partitions);
void sl_partition_writer_destroy(sl_partition_writer *writer); /* does not flush; NULL is fine */
/* Adds a record; without key (key_length 0) to the file "apart". */
bool sl_partition_write(sl_partition_writer *writer, const uint8_t *key, size_t key_length,
                        uint64_t hash, uint64_t position, const uint8_t *document, size_t length,
                        sl_error *error);
bool sl_partition_flush(sl_partition_writer *writer, sl_error *error);

/* Writes the path of a file into `path` (SL_PARTITION_PATH bytes); SL_PARTITIONS is "apart". */
#define SL_PARTITION_PATH 640
const char *sl_partition_path(const char *folder, unsigned index, char path[SL_PARTITION_PATH]);

/* Removes the files and the folder. Missing files are not an error. */
void sl_partitions_remove(const char *folder);

#endif
