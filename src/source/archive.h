/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, and how libarchive reads from an input. */
#ifndef SHARDLOAD_SOURCE_ARCHIVE_H
#define SHARDLOAD_SOURCE_ARCHIVE_H

#include <archive.h>

#include "stream.h"

/* Lets libarchive read from an input, and measures libarchive's time. */
typedef struct sl_bridge {
    struct archive *library; /* created and configured by the owner */
    sl_input *input;         /* borrowed */
    uint64_t base;           /* the input's position when `library` was opened */
    bool input_failed;       /* reading failed; the error is set */
    bool ran_out;            /* libarchive requested bytes after the input's end */
    /* Of the current call. */
    sl_reader_times *times;
    sl_error *error;
    int64_t began, spent_before;
    char reason[200];
    /* See bridge_copy_next. */
    unsigned char *copy;
    size_t copy_room, copied;
} sl_bridge;

/* Opens bridge->library on bridge->input; false when libarchive refuses. */
bool sl_bridge_open(sl_bridge *bridge);

/* Enclose each call of libarchive that may read, and sl_bridge_open. The time between the two calls
 * counts as inflating, except the time that the input itself has counted. */
void sl_bridge_enter(sl_bridge *bridge, sl_reader_times *times, sl_error *error);
void sl_bridge_leave(sl_bridge *bridge);

/* libarchive's message for its last error, on one line. */
const char *sl_bridge_reason(sl_bridge *bridge);

/* ---- archives ---- */

/* Zip and tar archives: their entries in archive order. Skips folders, links, hidden entries, those
 * in __MACOSX, and those that do not match a pattern. */

/* Number of bytes needed to recognise an archive. */
#define SL_ARCHIVE_HEAD_BYTES 512

typedef struct sl_archive sl_archive;

/* Recognises an archive by its first bytes: "zip", "tar", or NULL. */
const char *sl_archive_kind_of(const unsigned char *bytes, size_t length);

/* Opens the archive in `input`, which is borrowed; its first SL_ARCHIVE_HEAD_BYTES have been peeked
 * and recognised by sl_archive_kind_of. `include` (borrowed) is a shell pattern for the entries'
 * names without folders; NULL: all. */
bool sl_archive_create(sl_input *input, const char *include, sl_archive **archive,
                       sl_reader_times *times, sl_error *error);
void sl_archive_destroy(sl_archive *archive); /* NULL is fine */

/* Moves to the next entry; `*contents` reads its bytes as stored in the archive and is valid until
 * the next call. NULL at the archive's end. The first file may be an SQL dump, and is returned even
 * if its name does not match `include`: sl_archive_is_included. */
bool sl_archive_next(sl_archive *archive, sl_input **contents, sl_reader_times *times,
                     sl_error *error);

bool sl_archive_is_included(const sl_archive *archive);
/* Is the current entry the first file, or (`included`) the first one that is included? */
bool sl_archive_is_first(const sl_archive *archive, bool included);
/* From now on, all entries match. */
void sl_archive_include_all(sl_archive *archive);

/* Marks the current entry as read. An archive of which no entry is read ends with an error. */
void sl_archive_mark_used(sl_archive *archive);

/* The current entry's name, safe to print. */
const char *sl_archive_entry_name(const sl_archive *archive);
/* Why the current entry, which matches `include`, has no contents; NULL when it has contents. */
const char *sl_archive_skip_reason(const sl_archive *archive);

#endif
