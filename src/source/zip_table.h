/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the central directory, the table of contents at the end of a zip archive, with the
 * entries. libarchive reads by the central directory, or, in a pipe, entry by entry; if directory
 * and entries disagree, it skips entries without an error. Layout: PKWARE's APPNOTE.TXT, 4.3 and
 * 4.5. */
#ifndef SHARDLOAD_SOURCE_ZIP_TABLE_H
#define SHARDLOAD_SOURCE_ZIP_TABLE_H

#include "input.h"

/* A set of positions in the archive, in constant memory. Sets are compared by the sum of the
 * positions' hashes. */
typedef struct sl_positions {
    uint64_t count, sum;
} sl_positions;

void sl_positions_add(sl_positions *positions, uint64_t position);

/* Checks the central directory of a seekable archive: each of its records has a local header at its
 * offset with the same contents, and entries and directory fill the file without gaps up to its
 * end. Leaves the input at its beginning. Sets `*needed` if libarchive needs the central directory:
 * without it, libarchive cannot read some of the entries, or interprets a link as a file. */
bool sl_zip_check_file(sl_input *input, bool *needed, sl_reader_times *times, sl_error *error);

/* Checks the central directory at the input's position: it lists exactly the entries that begin at
 * `starts`, and only zeros follow it. */
bool sl_zip_check_table(sl_input *input, const sl_positions *starts, sl_reader_times *times,
                        sl_error *error);

#endif
