/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of sources: writes compressed files and archives with libarchive. */
#ifndef TESTS_ARCHIVE_MAKING_H
#define TESTS_ARCHIVE_MAKING_H

#include <archive.h>
#include <archive_entry.h>

#include "source_reading.h"

typedef int add_filter(struct archive *);

typedef struct compression {
    const char *name;
    add_filter *add;
} compression;

static const compression compressions[] = {
    {"gz", archive_write_add_filter_gzip},    {"xz", archive_write_add_filter_xz},
    {"zst", archive_write_add_filter_zstd},   {"bz2", archive_write_add_filter_bzip2},
    {"lz4", archive_write_add_filter_lz4},    {"lz", archive_write_add_filter_lzip},
    {"Z", archive_write_add_filter_compress},
};
#define COMPRESSIONS (sizeof compressions / sizeof compressions[0])

typedef struct entry_spec {
    const char *name;
    const char *bytes;
    size_t length;
    int type;         /* 0: a file */
    const char *link; /* a hard link's target, or NULL */
} entry_spec;

static inline void add_entry(struct archive *archive, const entry_spec *one) {
    struct archive_entry *header = archive_entry_new();
    archive_entry_set_pathname(header, one->name);
    archive_entry_set_filetype(header, one->type ? (unsigned)one->type : AE_IFREG);
    archive_entry_set_perm(header, 0644);
    archive_entry_set_size(header, (la_int64_t)one->length);
    if (one->type == AE_IFLNK)
        archive_entry_set_symlink(header, "elsewhere.csv");
    if (one->link)
        archive_entry_set_hardlink(header, one->link);
    assert_int_equal(archive_write_header(archive, header), ARCHIVE_OK);
    if (one->length > 0)
        assert_int_equal(archive_write_data(archive, one->bytes, one->length), (long)one->length);
    archive_entry_free(header);
}

/* Writes an archive in `format` ("zip", "gnutar", ...), compressed by `filter` unless it is
 * NULL. */
static inline void make_archive(const char *path, const char *format, add_filter *filter,
                                const entry_spec *entries, size_t count) {
    struct archive *archive = archive_write_new();
    assert_int_equal(archive_write_set_format_by_name(archive, format), ARCHIVE_OK);
    if (filter)
        filter(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    for (size_t i = 0; i < count; i++)
        add_entry(archive, &entries[i]);
    assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
    archive_write_free(archive);
}

/* Returns the compressed text. */
static inline char *pack(const char *text, size_t length, add_filter *filter,
                         size_t *packed_length) {
    size_t room = length * 2 + 4096;
    char *packed = unit_keep(malloc(room));
    struct archive *archive = archive_write_new();
    archive_write_set_format_raw(archive);
    filter(archive);
    archive_write_set_bytes_in_last_block(archive, 1);
    assert_int_equal(archive_write_open_memory(archive, packed, room, packed_length), ARCHIVE_OK);
    entry_spec one = {.name = "text", .bytes = text, .length = length};
    add_entry(archive, &one);
    assert_int_equal(archive_write_close(archive), ARCHIVE_OK);
    archive_write_free(archive);
    return packed;
}

#endif
