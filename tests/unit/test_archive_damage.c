/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged archives and compressed files: reading them gives the complete text or an error, and the
 * error message names the file, the entry, the position, and what the user can do. */
#include "archive_making.h"

#define ENTRIES 6

typedef struct container {
    const char *name;
    char *bytes;
    size_t length;
    size_t data_end; /* a file truncated before this offset lacks data */
} container;

#define CONTAINERS (COMPRESSIONS + 7)

static container containers[CONTAINERS];
static char *text; /* the uncompressed content of each container */
static size_t text_length;

static void read_container(container *out, const char *name, const char *path) {
    *out = (container){.name = name};
    out->bytes = unit_read(path, &out->length);
    out->data_end = out->length;
}

static void make_containers(void) {
    static const struct {
        const char *name, *format;
        add_filter *filter;
        bool gzip;
    } archives[] = {
        {"stored.tar", "gnutar", NULL, false},
        {"gz-inside.tar", "gnutar", NULL, true},
        {"all.tar.gz", "gnutar", archive_write_add_filter_gzip, false},
        {"all.tar.xz", "gnutar", archive_write_add_filter_xz, false},
        {"all.tar.Z", "gnutar", archive_write_add_filter_compress, false},
        {"all.zip", "zip", NULL, false},
        {"gz-inside.zip", "zip", NULL, true},
    };
    text = make_text(300000, true, &text_length);
    unsigned seed = 1; /* random letters, so that most bytes of a compressed file encode text */
    for (size_t i = 0; i < text_length; i++) {
        seed = seed * 1103515245 + 12345;
        if (text[i] == 'x')
            text[i] = (char)('A' + (seed >> 16) % 58);
    }
    entry_spec entries[ENTRIES];
    entry_spec gzipped[ENTRIES];
    size_t at = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        size_t end = i + 1 == ENTRIES ? text_length : (i + 1) * text_length / ENTRIES;
        while (text[end - 1] != '\n')
            end++;
        static char names[ENTRIES][16];
        snprintf(names[i], sizeof names[i], "part-%zu.csv", i);
        entries[i] = gzipped[i] =
            (entry_spec){.name = names[i], .bytes = text + at, .length = end - at};
        gzipped[i].bytes =
            pack(text + at, end - at, archive_write_add_filter_gzip, &gzipped[i].length);
        at = end;
    }
    size_t count = 0;
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++) {
        const char *path = unit_path(archives[i].name);
        make_archive(path, archives[i].format, archives[i].filter,
                     archives[i].gzip ? gzipped : entries, ENTRIES);
        container *made = &containers[count++];
        read_container(made, archives[i].name, path);
        /* The zeros at the end of a tar file may be missing. */
        while (!archives[i].filter && made->bytes[made->data_end - 1] == 0)
            made->data_end--;
        if (archives[i].filter == archive_write_add_filter_compress)
            made->data_end -= made->length / 20;
    }
    for (size_t i = 0; i < COMPRESSIONS; i++) {
        size_t length;
        char *packed = pack(text, text_length, compressions[i].add, &length);
        write_file(unit_path(compressions[i].name), packed, length, false);
        read_container(&containers[count++], compressions[i].name, unit_path(compressions[i].name));
    }
}

/* Does reading give exactly the text? If not, `error` is the error that ended the reading, if
 * any. */
static bool reads_correctly(const char *path, sl_error *error) {
    reading *r = try_sources(&path, 1, NULL);
    bool right = true;
    uint64_t end = 0;
    while (r->set && read_block(r)) {
        end = r->block.offset + r->block.text.length;
        right = right && end <= text_length &&
                memcmp(r->block.text.bytes, text + r->block.offset, r->block.text.length) == 0;
    }
    *error = r->error;
    return r->set && r->result == SL_READ_END && right && end == text_length;
}

TEST(a_truncated_file_is_an_error) {
    make_containers();
    for (size_t i = 0; i < CONTAINERS; i++) {
        const container *one = &containers[i];
        const char *path = unit_path(one->name);
        write_file(path, one->bytes, one->length, false);
        assert_string_equal(reading_error(path), "");
        if (strcmp(one->name, "Z") == 0) /* has neither an end mark nor a checksum */
            continue;
        unsigned detected = 0;
        for (size_t step = 1; step <= 60; step++) {
            size_t length = 600 + (one->data_end - 601) * step / 60;
            write_file(path, one->bytes, length, false);
            sl_error error;
            bool right = reads_correctly(path, &error);
            if (!right && !strstr(error.message, "truncated"))
                fail_msg("%s truncated to %zu of %zu bytes: \"%s\"", one->name, length, one->length,
                         error.message);
            detected += !right;
        }
        assert_true(detected >= 59); /* a zip file may lack part of the directory at its end */
    }
}

/* A tar file that is truncated between two entries differs from a shorter archive only by the
 * missing end mark. */
TEST(a_tar_file_without_its_end_mark_is_truncated) {
    entry_spec one = {.name = "one.csv", .bytes = "one\n", .length = 4};
    const char *path = unit_path("between.tar");
    make_archive(path, "gnutar", NULL, &one, 1);
    assert_string_equal(reading_error(path), "");
    assert_int_equal(truncate(path, 2048), 0); /* header, data, and the end mark */
    assert_string_equal(reading_error(path), "");
    assert_int_equal(truncate(path, 1024), 0);
    assert_non_null(strstr(reading_error(path), "truncated"));
    assert_int_equal(truncate(path, 512), 0);
    assert_non_null(strstr(reading_error(path), "truncated"));
}

TEST(errors_name_the_entry) {
    make_containers();
    const container *tar = &containers[1];
    const char *path = unit_path("half.tar");
    write_file(path, tar->bytes, tar->data_end / 2, false);
    const char *why = reading_error(path);
    assert_non_null(strstr(why, "half.tar: part-"));
    assert_non_null(strstr(why, "at byte"));
    const container *zip = &containers[5];
    path = unit_path("half.zip");
    write_file(path, zip->bytes, zip->length / 2, false);
    why = reading_error(path); /* the missing directory is detected before any entry is read */
    assert_non_null(strstr(why, "half.zip: "));
    assert_non_null(strstr(why, "truncated"));
}

/* A zip file with one entry, whose header declares this compression method and these flags. */
static void write_zip(const char *path, unsigned char method, unsigned char flags) {
    static const char local[] = "PK\3\4\x15\0\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\5\0\0\0"
                                "a.csvone\n";
    static const char central[] = "PK\1\2\x15\0\x15\0\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\5\0"
                                  "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a.csv"
                                  "PK\5\6\0\0\0\0\1\0\1\0\x33\0\0\0\x27\0\0\0\0\0";
    char bytes[sizeof local + sizeof central - 2];
    memcpy(bytes, local, sizeof local - 1);
    memcpy(bytes + sizeof local - 1, central, sizeof central - 1);
    bytes[8] = bytes[sizeof local - 1 + 10] = (char)method;
    bytes[6] = bytes[sizeof local - 1 + 8] = (char)flags;
    write_file(path, bytes, sizeof bytes, false);
}

TEST(errors_suggest_how_to_unpack) {
    const char *path = unit_path("mot.zip");
    write_zip(path, 9, 0);
    const char *why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv: the Deflate64 data are damaged near byte 35"));
    write_zip(path, 0, 1);
    why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv: encrypted"));
    assert_non_null(strstr(why, "password"));
    write_zip(path, 6, 0); /* Implode */
    why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv"));
    assert_non_null(strstr(why, "unpack the archive first"));
}

/* The error message of reading a source's head. */
static const char *open_error(const char *path, const char *include) {
    reading *r = try_sources(&path, 1, include);
    assert_null(r->set);
    assert_int_equal(r->error.code, SL_EXIT_SOURCE);
    assert_contains(r->error.message, path);
    return r->error.message;
}

TEST(an_archive_without_data_is_an_error) {
    entry_spec folder_only = {.name = "set", .type = AE_IFDIR};
    entry_spec hidden = {.name = "set/.csv", .bytes = "1\n", .length = 2};
    for (int zip = 0; zip < 2; zip++) {
        const char *format = zip ? "zip" : "gnutar";
        const char *path = unit_path(zip ? "none.zip" : "none.tar");
        make_archive(path, format, NULL, &folder_only, 1);
        assert_non_null(strstr(open_error(path, NULL), "holds no files"));
        make_archive(path, format, NULL, &hidden, 1);
        assert_non_null(strstr(open_error(path, NULL), "hidden"));
        hidden.name = "set/one.csv";
        make_archive(path, format, NULL, &hidden, 1);
        assert_non_null(strstr(open_error(path, "*.txt"), "--include *.txt"));
        hidden.name = "set/.csv";
    }
    make_archive(unit_path("bare.zip"), "zip", NULL, NULL, 0);
    assert_non_null(strstr(open_error(unit_path("bare.zip"), NULL), "holds no files"));
}
