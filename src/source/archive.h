/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, zip and tar, as a row of members in archive order. Members that are hidden, in
 * __MACOSX, folders or links, or that do not match a pattern are passed over. */
#ifndef SHARDLOAD_SOURCE_ARCHIVE_H
#define SHARDLOAD_SOURCE_ARCHIVE_H

#include "input.h"

/* Enough bytes to recognise an archive. */
#define SL_ARCHIVE_HEAD_BYTES 512

/* Room for a name as sl_archive_member_name gives it. */
#define SL_ENTRY_NAME_ROOM 800

typedef struct sl_archive sl_archive;

/* "zip", "tar", or NULL when bytes that begin like this are no archive. */
const char *sl_archive_kind_of(const unsigned char *bytes, size_t length);

/* An archive in `input`, which is borrowed and has SL_ARCHIVE_HEAD_BYTES peeked that
 * sl_archive_kind_of knows. `include` (borrowed) is a shell pattern for the members' names without
 * folders; NULL: all. `checked`: the input tells when its end is missing. */
bool sl_archive_create(sl_input *input, const char *include, bool checked, sl_archive **archive,
                       sl_reader_times *times, sl_error *error);
void sl_archive_destroy(sl_archive *archive); /* NULL is fine */

/* Goes to the next member; `*member` is its bytes as stored in the archive, valid until the next
 * call, or NULL at the end. */
bool sl_archive_next(sl_archive *archive, sl_input **member, sl_reader_times *times,
                     sl_error *error);

/* The present member is of use. An archive of which no member is ends with an error. */
void sl_archive_use_member(sl_archive *archive);

/* The name of the present member, safe to print. */
const char *sl_archive_member_name(const sl_archive *archive);
/* Why the present member, though wanted, has no contents to be read; NULL when it has. */
const char *sl_archive_advice(const sl_archive *archive);

#endif
