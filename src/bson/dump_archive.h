/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of archives that `mongodump --archive` writes: the documents of several collections,
 * interleaved in one stream. Layout (that of the mongo-tools project's package `archive`, version
 * 0.1), integers little-endian:
 *
 *   magic          0x8199e26d
 *   prelude        {concurrent_collections, version, server_version, tool_version}
 *                  {db, collection, metadata, size, type} for each collection
 *                  terminator
 *   blocks         {db, collection, EOF, CRC}, documents of that collection, terminator
 *
 * A terminator is the 32-bit number -1, in the place of a document's length. The last block of a
 * collection has EOF true, no documents, and in CRC the CRC-64 (ECMA-182) of the bytes of all
 * documents of the collection. A view has no blocks.
 *
 * The reader allocates memory for each collection, none for a document. One thread. */
#ifndef SHARDLOAD_DUMP_ARCHIVE_H
#define SHARDLOAD_DUMP_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_DUMP_ARCHIVE_MAGIC 0x8199E26Du

typedef enum sl_dump_event {
    SL_DUMP_MORE,       /* the item is not complete: call again with more bytes */
    SL_DUMP_PRELUDE,    /* the document that describes the archive */
    SL_DUMP_COLLECTION, /* a collection of the archive: the document has its metadata */
    SL_DUMP_DOCUMENT,   /* a document of a collection */
    SL_DUMP_SKIPPED,    /* bytes that hold no document: magic, terminators, headers of blocks */
    SL_DUMP_COMPLETE,   /* all documents of a collection have been read, and their CRC is right */
    SL_DUMP_WRONG_CRC, /* as COMPLETE, but the CRC is wrong: documents were changed or are missing */
    SL_DUMP_END,       /* the end of the archive; all collections are complete */
    SL_DUMP_DAMAGED,   /* the archive is damaged at this byte; sl_dump_find_block finds the next
                          block after it */
    SL_DUMP_NO_MEMORY,
} sl_dump_event;

typedef struct sl_dump_namespace {
    char *database, *collection;
    uint64_t documents; /* read so far */
    uint64_t crc;       /* of their bytes */
    bool complete;
    bool view; /* it need not be complete at the end */
} sl_dump_namespace;

/* The result of sl_dump_next. */
typedef struct sl_dump_item {
    const uint8_t *document; /* of PRELUDE, COLLECTION and DOCUMENT: valid, in the given bytes */
    size_t length;           /* of the item: the bytes that the caller skips */
    const sl_dump_namespace *of; /* of COLLECTION, DOCUMENT, COMPLETE, WRONG_CRC, and of DAMAGED if
                                    it is known; valid until the next call */
    const char *why;             /* of DAMAGED; a string constant */
} sl_dump_item;

typedef struct sl_dump_archive sl_dump_archive;

sl_dump_archive *sl_dump_archive_create(void);          /* NULL without memory */
void sl_dump_archive_destroy(sl_dump_archive *archive); /* NULL is fine */

/* Reads the next item. `bytes` begins where the last item ended, has `available` bytes and is
 * followed by SL_BSON_SLACK readable ones; `ended`: nothing follows them. After MORE with `ended`
 * an archive is truncated: DAMAGED is returned instead. */
sl_dump_event sl_dump_next(sl_dump_archive *archive, const uint8_t *bytes, size_t available,
                           bool ended, sl_dump_item *item);

/* After DAMAGED: searches for the next block. `bytes` begins after the first damaged byte, as for
 * sl_dump_next. True: the bytes before `*length` are damaged, and sl_dump_next continues after
 * them. False: none of the bytes before `*length` begins a block; call again with the bytes from
 * there on, and more of them. Nothing is found if the damage is before the first block. */
bool sl_dump_find_block(sl_dump_archive *archive, const uint8_t *bytes, size_t available,
                        bool ended, size_t *length);

/* The collections read so far, and the one of these names; NULL: none. */
const sl_dump_namespace *sl_dump_namespaces(const sl_dump_archive *archive, size_t *count);
const sl_dump_namespace *sl_dump_namespace_of(const sl_dump_archive *archive, const char *database,
                                              const char *collection);

#endif
