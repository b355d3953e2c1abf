/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed files and archives give the same lines at the same offsets as a plain file. Blocks do
 * not span entries, and have the entries' names; entries that are not data are skipped. */
#include <sys/stat.h>

#include "archive_making.h"

TEST(compressed_files_are_read_as_text) {
    for (int newline = 0; newline < 2; newline++) {
        size_t length, packed_length;
        char *text = make_text((size_t)3 << 20, newline, &length);
        for (size_t i = 0; i < COMPRESSIONS; i++) {
            char *packed = pack(text, length, compressions[i].add, &packed_length);
            const char *path = unit_path(compressions[i].name);
            write_file(path, packed, packed_length, false);
            check_reading(path, text, length, 1);
            check_reading(path, text, length, 4);
        }
    }
}

/* Parallel compressors and `cat` write several streams into one file. */
TEST(concatenated_streams_are_one_text) {
    for (size_t i = 0; i < COMPRESSIONS; i++) {
        if (compressions[i].add == archive_write_add_filter_compress)
            continue; /* the format does not mark the end of a stream */
        size_t length;
        char *packed = pack("first\nrest of", 13, compressions[i].add, &length);
        const char *path = unit_path("twice");
        FILE *file = fopen(path, "w");
        fwrite(packed, 1, length, file);
        fwrite(packed, 1, length, file);
        fclose(file);
        check_reading(path, "first\nrest offirst\nrest of", 26, 2);
    }
}

TEST(text_that_starts_like_a_compressed_file_is_text) {
    write_file(unit_path("bz.txt"), "BZhang|1\n", 9, false);
    check_reading(unit_path("bz.txt"), "BZhang|1\n", 9, 1);
    write_file(unit_path("lz.txt"), "LZIP|1\n", 7, false);
    check_reading(unit_path("lz.txt"), "LZIP|1\n", 7, 1);
    char text[1024]; /* "ustar" at the offset of tar's magic number */
    memset(text, '0', sizeof text);
    memcpy(text + 257, "ustar", 5);
    text[sizeof text - 1] = '\n';
    write_file(unit_path("ustar.txt"), text, sizeof text, false);
    check_reading(unit_path("ustar.txt"), text, sizeof text, 1);
}

/* Four entries: plain, gzip, xz, and one without a final newline. */
#define PARTS 4

typedef struct parts {
    char *texts[PARTS];
    size_t lengths[PARTS];
    entry_spec entries[PARTS];
    char *all; /* the concatenated texts, each ending with a line feed */
    size_t all_length;
} parts;

static void make_parts(parts *made) {
    static const char *const names[PARTS] = {"2014/010010-99999-2014", "2014/010014-99999-2014.gz",
                                             "2014/010015-99999-2014.xz", "2014/last.csv"};
    static const size_t sizes[PARTS] = {(size_t)1 << 20, 3000, (size_t)2 << 20, 700000};
    *made = (parts){.all = unit_keep(malloc((size_t)32 << 20))};
    for (size_t i = 0; i < PARTS; i++) {
        made->texts[i] = make_text(sizes[i], i != 1 && i != 3, &made->lengths[i]);
        made->entries[i] = (entry_spec){.name = names[i]};
        size_t *length = &made->entries[i].length;
        add_filter *filter = i == 1   ? archive_write_add_filter_gzip
                             : i == 2 ? archive_write_add_filter_xz
                                      : archive_write_add_filter_none;
        made->entries[i].bytes = pack(made->texts[i], made->lengths[i], filter, length);
        memcpy(made->all + made->all_length, made->texts[i], made->lengths[i]);
        made->all_length += made->lengths[i];
        if (made->texts[i][made->lengths[i] - 1] != '\n')
            made->all[made->all_length++] = '\n';
    }
}

static const struct kind {
    const char *name, *format;
    add_filter *filter;
} kinds[] = {
    {"a.zip", "zip", NULL},
    {"a.tar", "gnutar", NULL},
    {"pax.tar", "pax", NULL},
    {"old.tar", "v7tar", NULL},
    {"a.tar.gz", "ustar", archive_write_add_filter_gzip},
    {"a.tar.xz", "pax", archive_write_add_filter_xz},
    {"a.tar.zst", "gnutar", archive_write_add_filter_zstd},
    {"a.tar.Z", "gnutar", archive_write_add_filter_compress},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

TEST(an_archive_is_the_concatenation_of_its_entries) {
    parts made;
    make_parts(&made);
    for (size_t i = 0; i < KINDS; i++) {
        const char *path = unit_path(kinds[i].name);
        make_archive(path, kinds[i].format, kinds[i].filter, made.entries, PARTS);
        check_reading(path, made.all, made.all_length, 1);
        check_reading(path, made.all, made.all_length, 4);
    }
}

TEST(a_block_is_of_one_entry) {
    parts made;
    make_parts(&made);
    for (size_t i = 0; i < KINDS; i++) {
        const char *path = unit_path(kinds[i].name);
        make_archive(path, kinds[i].format, kinds[i].filter, made.entries, PARTS);
        reading *r = open_source(path);
        assert_int_equal(sl_source_set_at(r->set, 0)->kind, SL_SOURCE_ARCHIVE);
        size_t count = 0, used = 0;
        while (read_block(r)) {
            const sl_source_block block = r->block;
            if (block.entry_start) {
                assert_true(count == 0 || used >= made.lengths[count - 1]);
                used = 0;
                count++;
            }
            assert_string_equal(block.entry, made.entries[count - 1].name);
            size_t own = made.lengths[count - 1] - used; /* without an added line feed */
            own = own < block.text.length ? own : block.text.length;
            assert_memory_equal(block.text.bytes, made.texts[count - 1] + used, own);
            used += block.text.length;
            for (size_t at = 0; at < block.text.length;) {
                assert_int_equal((block.offset + at) >> SL_BLOCK_BITS,
                                 block.offset >> SL_BLOCK_BITS);
                const char *end = memchr(block.text.bytes + at, '\n', block.text.length - at);
                assert_non_null(end);
                at = (size_t)(end - block.text.bytes) + 1;
            }
        }
        assert_int_equal(count, PARTS);
        assert_true(r->block.last);
        assert_int_equal(sl_source_set_consumed_bytes(r->set), sl_source_set_stored_bytes(r->set));
    }
}

/* Three data files, and entries that are not data. */
static const entry_spec clutter[] = {
    {.name = "set", .type = AE_IFDIR},
    {.name = "._set", .bytes = "no\n", .length = 3},
    {.name = "__MACOSX/set/one.csv", .bytes = "no\n", .length = 3},
    {.name = "set/.git/config.csv", .bytes = "no\n", .length = 3},
    {.name = "set/empty.csv"},
    {.name = "./set/one.csv", .bytes = "one", .length = 3},
    {.name = "set/link.csv", .type = AE_IFLNK},
    {.name = "set/guide.pdf", .bytes = "%PDF-1.4", .length = 8},
    {.name = "set/two.txt", .bytes = "two\n", .length = 4},
    {.name = "set/hard.csv", .link = "./set/one.csv"},
    {.name = "set/h\xC3\xA4m\x1B.csv", .bytes = "three", .length = 5},
    {.name = "set/.last", .bytes = "no\n", .length = 3},
};
#define CLUTTER (sizeof clutter / sizeof clutter[0])

TEST(entries_that_are_not_data_are_skipped) {
    make_archive(unit_path("clutter.tar"), "gnutar", NULL, clutter, CLUTTER);
    check_reading(unit_path("clutter.tar"), "one\ntwo\nthree\n", 14, 2);
    entry_spec for_zip[CLUTTER]; /* zip has no hard links */
    size_t count = 0;
    for (size_t i = 0; i < CLUTTER; i++) {
        if (!clutter[i].link)
            for_zip[count++] = clutter[i];
    }
    make_archive(unit_path("clutter.zip"), "zip", NULL, for_zip, count);
    check_reading(unit_path("clutter.zip"), "one\ntwo\nthree\n", 14, 2);
}

/* The text of the first source, and the names of its entries, each followed by a blank. */
static void read_all(const char *path, const char *include, char *text, char *names) {
    reading *r = open_sources(&path, 1, include);
    *text = *names = '\0';
    while (read_block(r)) {
        strncat(text, r->block.text.bytes, r->block.text.length);
        if (r->block.entry_start)
            strcat(strcat(names, r->block.entry), " ");
    }
}

/* A zip file with one stored entry, whose name is marked as UTF-8. */
static const char utf8_zip[] = "PK\3\4\x14\0\0\x08\0\0\0\0\0\0\x9F\xA8\x17\xF8\4\0\0\0\4\0\0\0"
                               "\6\0\0\0\xC3\xA4.csvone\n"
                               "PK\1\2\x14\0\x14\0\0\x08\0\0\0\0\0\0\x9F\xA8\x17\xF8\4\0\0\0"
                               "\4\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xC3\xA4.csv"
                               "PK\5\6\0\0\0\0\1\0\1\0\x34\0\0\0\x28\0\0\0\0\0";

TEST(include_selects_entries_of_named_archives) {
    char text[100], names[200];
    mkdir(unit_path("years"), 0700);
    const char *path = unit_path("years/clutter.tar");
    make_archive(path, "gnutar", NULL, clutter, CLUTTER);
    read_all(path, "*.csv", text, names);
    assert_string_equal(text, "one\nthree\n");
    assert_string_equal(names, "./set/one.csv set/h\xC3\xA4m\\x1b.csv "); /* safe to print */
    /* Of an archive that the pattern has selected in a folder, all entries are read. */
    read_all(unit_path("years"), "clutter.*", text, names);
    assert_string_equal(text, "one\ntwo\nthree\n");
    /* Names that a zip file marks as UTF-8 are read as UTF-8 in any locale. */
    path = unit_path("names.zip");
    write_file(path, utf8_zip, sizeof utf8_zip - 1, false);
    read_all(path, "*.csv", text, names);
    assert_string_equal(text, "one\n");
    assert_string_equal(names, "\xC3\xA4.csv ");
}

TEST(the_head_is_that_of_the_first_entry) {
    const char *path = unit_path("head.tar");
    make_archive(path, "gnutar", NULL, clutter, CLUTTER);
    reading *r = open_source(path);
    char head[64];
    size_t length;
    bool whole;
    assert_true(sl_source_head(r->set, 0, head, sizeof head, &length, &whole, NULL, &r->error));
    assert_int_equal(length, 4);
    assert_memory_equal(head, "one\n", 4);
    assert_true(whole);
}

/* Reads the archive from standard input, with or without reading its head first. */
static void check_piped_archive(const char *path, const parts *expected, bool head_first) {
    piped input;
    size_t length, at = 0;
    char *bytes = unit_read(path, &length);
    begin_pipe(&input, bytes, length);
    reading *r = open_source("-");
    char head[1000];
    bool whole;
    if (head_first) {
        assert_true(sl_source_head(r->set, 0, head, sizeof head, &length, &whole, NULL, &r->error));
        assert_memory_equal(head, expected->all, sizeof head);
    }
    for (; read_block(r); at += r->block.text.length) {
        assert_int_equal(r->block.offset, at);
        assert_memory_equal(r->block.text.bytes, expected->all + at, r->block.text.length);
    }
    assert_int_equal(at, expected->all_length);
    assert_true(r->block.last);
    pthread_join(input.writer, NULL);
}

TEST(archives_are_read_from_a_pipe) {
    parts made;
    make_parts(&made);
    int stdin_before = dup(STDIN_FILENO);
    for (size_t i = 0; i < KINDS; i++) {
        const char *path = unit_path(kinds[i].name);
        make_archive(path, kinds[i].format, kinds[i].filter, made.entries, PARTS);
        check_piped_archive(path, &made, false);
        check_piped_archive(path, &made, true);
    }
    dup2(stdin_before, STDIN_FILENO);
    close(stdin_before);
}
