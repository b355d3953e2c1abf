/* SPDX-License-Identifier: Apache-2.0 */
/* Zip and tar archives: their entries in archive order. Skips folders, links, hidden entries, those
 * in __MACOSX, and those that do not match a pattern. */
#ifndef SHARDLOAD_SOURCE_ARCHIVE_H
#define SHARDLOAD_SOURCE_ARCHIVE_H

#include "input.h"

/* Number of bytes needed to recognise an archive. */
#define SL_ARCHIVE_HEAD_BYTES 512

/* Room for the longest sl_archive_entry_name with its NUL. */
#define SL_ENTRY_NAME_ROOM 800

typedef struct sl_archive sl_archive;

/* Recognises an archive by its first bytes: "zip", "tar", or NULL. */
const char *sl_archive_kind_of(const unsigned char *bytes, size_t length);

/* Opens the archive in `input`, which is borrowed; its first SL_ARCHIVE_HEAD_BYTES have been peeked
 * and recognised by sl_archive_kind_of. `include` (borrowed) is a shell pattern for the entries'
 * names without folders; NULL: all. `detects_truncation`: the input itself reports an error when
 * its end is missing. */
bool sl_archive_create(sl_input *input, const char *include, bool detects_truncation,
                       sl_archive **archive, sl_reader_times *times, sl_error *error);
void sl_archive_destroy(sl_archive *archive); /* NULL is fine */

/* Moves to the next entry; `*contents` reads its bytes as stored in the archive and is valid until
 * the next call. NULL at the archive's end. */
bool sl_archive_next(sl_archive *archive, sl_input **contents, sl_reader_times *times,
                     sl_error *error);

/* Marks the current entry as read. An archive of which no entry is read ends with an error. */
void sl_archive_mark_used(sl_archive *archive);

/* The current entry's name, safe to print. */
const char *sl_archive_entry_name(const sl_archive *archive);
/* Why the current entry, which matches `include`, has no contents; NULL when it has contents. */
const char *sl_archive_skip_reason(const sl_archive *archive);

#endif
