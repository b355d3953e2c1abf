/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: the blocks of each source that need not be sent again.
 *
 * One file, `journal` in the work directory, to which records are only ever appended:
 *
 *   uint32 length of the payload | uint32 type | uint32 crc | payload
 *
 * All numbers are little-endian; the crc (CRC-32 of zlib) is over length, type and payload. The
 * payload depends on the type:
 *
 *   3  the first record, the same in all versions: "shardloadjournal", uint32 format version
 *   1  a BSON document, whose fields show its kind (ledger.c)
 *   2  an entry, one per block of this loader: uint64 fields by the table in journal.c, which ends
 *      with counts of util/load_counts.h
 *
 * Bytes after the last complete record are ignored. docs/internals/delivery.md lists all fields. A
 * field that is added at the end of an entry does not change the format: it is 0 in an entry
 * without it, and a program that does not know it ignores it. Any other change of the layout needs
 * another SL_JOURNAL_FORMAT; a journal of another format is refused.
 *
 * The file is locked while it is open: two loaders never share a work directory. */
#ifndef SHARDLOAD_JOURNAL_H
#define SHARDLOAD_JOURNAL_H

#include <bson/bson.h>

#include "format/format.h"
#include "util/error.h"

/* The outcome of one block, all of whose documents are durable. */
typedef struct sl_journal_entry {
    uint64_t source;      /* index into the load's sources */
    uint64_t sequence;    /* of the block */
    uint64_t offset;      /* of its text in the uncompressed stream */
    uint64_t entry_start; /* 1: it is the first block of its source, or of an archive's entry. Or
                             SL_JOURNAL_READ: the block was read, and this is not its outcome */
    uint64_t check;       /* hash of the text; 0 for generated records */
    uint64_t taken;       /* of server_rejects: because another document has the _id */
    uint64_t table_bytes; /* size of rejects.tsv after this block's rejects; 0: no rejects */
    uint64_t raw_bytes;   /* size of the file of raw rejects at that time; 0: no rejects */
    uint64_t borders;     /* as in sl_source_block */
    uint64_t entry;       /* the number of the archive's entry, from 1; 0 outside archives */
    uint64_t refused_ids; /* the sum of sl_id_sum over server_rejects */
    SL_JOURNAL_COUNTS(SL_NO_COUNT, SL_COUNT_FIELD) /* of its documents and its text */
    sl_parse_counts counts;
} sl_journal_entry; /* of uint64_t only */

#define SL_JOURNAL_READ 2u
#define SL_JOURNAL_ENTRY_BYTES sizeof(sl_journal_entry)
#define SL_JOURNAL_FORMAT 2u /* version 1 had no first record of type 3 */

/* Encodes an entry for the file. */
void sl_journal_encode(const sl_journal_entry *entry, uint8_t bytes[SL_JOURNAL_ENTRY_BYTES]);
/* Decodes the `length` bytes of an entry from the file. False: an entry has not this length. */
bool sl_journal_decode(const uint8_t *bytes, size_t length, sl_journal_entry *entry);

typedef struct sl_journal_handlers {
    /* False ends the reading: this program did not write the record. */
    bool (*document)(void *context, const bson_t *document);
    bool (*entry)(void *context, const sl_journal_entry *entry);
    void *context;
} sl_journal_handlers;

/* Reads the records of a journal from memory. Returns the length of the complete records, with the
 * first one; 0 without a first record of this format. */
size_t sl_journal_scan(const uint8_t *bytes, size_t length, const sl_journal_handlers *handlers);

typedef struct sl_journal sl_journal;

/* Opens the journal in `directory`, creates it if there is none, and locks it. Passes its records
 * to the handlers. The first write removes an incomplete record at its end. `*empty`: the journal
 * has no document and no entry. A file of another format, or that is not a journal, is not changed
 * and is an error (SL_EXIT_USAGE). */
bool sl_journal_open(const char *directory, const sl_journal_handlers *handlers,
                     sl_journal **journal, bool *empty, sl_error *error);
void sl_journal_close(sl_journal *journal); /* NULL is fine */

/* Empties the journal for a new load. */
bool sl_journal_begin(sl_journal *journal, sl_error *error);

#define SL_JOURNAL_DOCUMENTS_MAX ((uint32_t)256 << 20) /* bytes of all documents of a journal */

/* Appends a document and waits until it is on the disk. Writes the file's first record with the
 * first document. */
bool sl_journal_write(sl_journal *journal, const bson_t *document, sl_error *error);

/* Adds an entry to the next commit; a document must have been written before. False without memory.
 * Any thread. */
bool sl_journal_add(sl_journal *journal, const sl_journal_entry *entry);

/* sl_journal_collect takes the entries added so far; sl_journal_commit appends these to the file
 * and waits until they are on the disk. The reject files that they describe must be synced in
 * between. One thread at a time. */
void sl_journal_collect(sl_journal *journal);
bool sl_journal_commit(sl_journal *journal, sl_error *error);

#endif
