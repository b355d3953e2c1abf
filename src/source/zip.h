/* SPDX-License-Identifier: Apache-2.0 */
/* What libarchive does not do with zip archives: the check of the central directory, entries packed
 * with Deflate64, and a limit on the memory for entries packed with LZMA and xz, whose headers may
 * demand 4 GiB. Layout: PKWARE's APPNOTE.TXT, 4.3, 4.5 and 5.8.
 *
 * The central directory, the table of contents at the end, is compared with the entries. libarchive
 * reads by the central directory, or, in a pipe, entry by entry; if directory and entries disagree,
 * it skips entries without an error. */
#ifndef SHARDLOAD_SOURCE_ZIP_H
#define SHARDLOAD_SOURCE_ZIP_H

#include <lzma.h>

#include "stream.h"

/* ---- Deflate64 ---- */

/* Unpacks Deflate64, the method 9 of zip archives, which Windows uses for files above 2 GB. It is
 * Deflate (RFC 1951) with a window of 64 KiB, distances up to 65,536 (the codes 30 and 31), and
 * lengths up to 65,538 (the code 285 has 16 extra bits and begins at 3). */

#define SL_INFLATE64_WINDOW ((size_t)1 << 16)
#define SL_INFLATE64_FAST_BITS 10u

/* A prefix code. Codes of up to SL_INFLATE64_FAST_BITS bits are looked up in `fast`; longer ones
 * are found by their number within their length. */
typedef struct sl_code64 {
    uint16_t fast[1u << SL_INFLATE64_FAST_BITS]; /* symbol << 4 | length; 0: longer, or no code */
    uint16_t count[16];                          /* codes of each length */
    uint16_t symbols[288];                       /* in the order of their codes */
} sl_code64;

/* All fields are private. The struct is 70 KB; nothing else is allocated. */
typedef struct sl_inflate64 {
    sl_input *input; /* borrowed; its buffer has room for at least 8 bytes */
    uint64_t total;  /* bytes unpacked */
    unsigned bit;    /* of the input's next byte, 0 to 7: the next to be read */
    unsigned state;
    bool last_block;
    uint32_t stored_left;      /* of a stored block */
    uint32_t length, distance; /* of a match that has not been copied completely */
    sl_code64 literals, distances;
    unsigned char window[SL_INFLATE64_WINDOW]; /* the byte at position p is at p modulo its size */
} sl_inflate64;

/* Begins at the input's position. */
void sl_inflate64_begin(sl_inflate64 *inflate, sl_input *input);

/* Unpacks up to `room` bytes. *got is 0 at the end of the data only; the input's position is then
 * the first byte after them. Fails with SL_EXIT_SOURCE if the data are damaged or truncated; the
 * message begins with `label` and names the byte of the input. */
bool sl_inflate64_read(sl_inflate64 *inflate, unsigned char *out, size_t room, size_t *got,
                       const char *label, sl_reader_times *times, sl_error *error);

/* ---- the central directory ---- */

/* A set of positions in the archive, in constant memory. Sets are compared by the sum of the
 * positions' hashes. */
typedef struct sl_positions {
    uint64_t count, sum;
} sl_positions;

void sl_positions_add(sl_positions *positions, uint64_t position);

/* Checks the central directory of a seekable archive: each of its records has a local header at its
 * offset with the same contents, and entries and directory fill the file without gaps up to its
 * end. Leaves the input at its beginning. Sets `*needed` if libarchive needs the central directory:
 * without it, libarchive cannot read some of the entries, or interprets a link as a file. Such an
 * archive is refused if it has entries packed with LZMA or xz. */
bool sl_zip_check_file(sl_input *input, bool *needed, sl_reader_times *times, sl_error *error);

/* Checks the central directory at the input's position: it lists exactly the entries that begin at
 * `starts`, and only zeros follow it. */
bool sl_zip_check_table(sl_input *input, const sl_positions *starts, sl_reader_times *times,
                        sl_error *error);

/* ---- an entry that is unpacked here, read from its local header to the next header ---- */

#define SL_ZIP_LOCAL_BYTES 30u /* a local file header, without name and extra fields */

typedef struct sl_zip_entry {
    unsigned char header[SL_ZIP_LOCAL_BYTES];
    uint32_t crc; /* of the contents so far */
    bool ended;   /* the data have been read and checked */
    sl_input *input;
    uint64_t begin, total; /* position of its first byte in the input; bytes unpacked */
    bool lzma_ended;
    lzma_stream lzma; /* of LZMA and xz */
    sl_inflate64 inflate;
} sl_zip_entry;

sl_zip_entry *sl_zip_entry_create(void); /* NULL without memory */
void sl_zip_entry_destroy(sl_zip_entry *entry);

/* Is this the local header of an entry? Of one that is packed with Deflate64, LZMA or xz? */
bool sl_zip_is_header(const unsigned char header[SL_ZIP_LOCAL_BYTES]);
bool sl_zip_is_own(const unsigned char header[SL_ZIP_LOCAL_BYTES]);

/* Begins an entry whose local header was at byte `start` of the input; the input's position is
 * after the header. `size` is the size of the contents; UINT64_MAX: not known. `label` names the
 * entry in messages. */
bool sl_zip_entry_begin(sl_zip_entry *entry, const unsigned char header[SL_ZIP_LOCAL_BYTES],
                        uint64_t start, uint64_t size, sl_input *input, const char *label,
                        sl_reader_times *times, sl_error *error);

/* Unpacks up to `room` bytes. *got is 0 at the end of the contents only; their checksum and sizes
 * have then been compared, and the input's position is that of the next header. */
bool sl_zip_entry_read(sl_zip_entry *entry, unsigned char *out, size_t room, size_t *got,
                       const char *label, sl_reader_times *times, sl_error *error);

#endif
