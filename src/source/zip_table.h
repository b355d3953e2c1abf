/* SPDX-License-Identifier: Apache-2.0 */
/* The table of contents at the end of a zip archive (its central directory), held against the
 * entries themselves. libarchive follows the table, or, in a pipe, the entries; where the two
 * disagree it passes over entries without an error. Layout: PKWARE's APPNOTE.TXT, 4.3 and 4.5. */
#ifndef SHARDLOAD_SOURCE_ZIP_TABLE_H
#define SHARDLOAD_SOURCE_ZIP_TABLE_H

#include "input.h"

/* A set of positions in the archive, in constant memory: equal sums are equal sets. */
typedef struct sl_positions {
    uint64_t count, sum;
} sl_positions;

void sl_positions_add(sl_positions *positions, uint64_t position);

/* Checks the table of an archive that can be seeked: each entry that it lists is where it says and
 * described alike there, and entries and table fill the file without gaps up to its end. The input
 * stands at its beginning afterwards. `*needed`: without the table some entries cannot be read, or not
 * be told from links. */
bool sl_zip_check_file(sl_input *input, bool *needed, sl_reader_times *times, sl_error *error);

/* Checks the table that begins where the input stands: it lists the entries that begin at `begun`,
 * and nothing but zeros follows it. */
bool sl_zip_check_table(sl_input *input, const sl_positions *begun, sl_reader_times *times,
                        sl_error *error);

#endif
