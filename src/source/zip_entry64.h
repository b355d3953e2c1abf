/* SPDX-License-Identifier: Apache-2.0 */
/* An entry of a zip archive that is packed with Deflate64, which libarchive does not unpack. The
 * archive is read sequentially: from the local header, through the data, to the next header. */
#ifndef SHARDLOAD_SOURCE_ZIP_ENTRY64_H
#define SHARDLOAD_SOURCE_ZIP_ENTRY64_H

#include "inflate64.h"

#define SL_ZIP_LOCAL_BYTES 30u /* a local file header, without name and extra fields */

typedef struct sl_zip_entry64 {
    unsigned char header[SL_ZIP_LOCAL_BYTES];
    uint32_t crc; /* of the contents so far */
    bool ended;   /* the data have been read and checked */
    sl_inflate64 inflate;
} sl_zip_entry64;

/* Is this the local header of an entry packed with Deflate64? */
bool sl_zip_is_entry64(const unsigned char header[SL_ZIP_LOCAL_BYTES]);

/* Begins an entry whose local header was at byte `start` of the input; the input's position is
 * after the header. `label` names the entry in messages. */
bool sl_zip_entry64_begin(sl_zip_entry64 *entry, const unsigned char header[SL_ZIP_LOCAL_BYTES],
                          uint64_t start, sl_input *input, const char *label, sl_error *error);

/* Unpacks up to `room` bytes. *got is 0 at the end of the contents only; their checksum and sizes
 * have then been compared, and the input's position is that of the next header. */
bool sl_zip_entry64_read(sl_zip_entry64 *entry, unsigned char *out, size_t room, size_t *got,
                         const char *label, sl_reader_times *times, sl_error *error);

#endif
