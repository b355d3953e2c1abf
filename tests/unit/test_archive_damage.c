/* SPDX-License-Identifier: Apache-2.0 */
/* Archives and compressed files that cannot be read: nothing is lost in silence, and the message
 * says which file, which member, where, and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "archive_making.h"

#define MEMBERS 6

typedef struct container {
    const char *name;
    char *bytes;
    size_t length;
    size_t data_end; /* a cut before this loses something that matters */
    bool checked;    /* every byte of text is covered by a checksum */
} container;

#define CONTAINERS (COMPRESSIONS + 7)

static container containers[CONTAINERS];
static char *text; /* what all of them hold */
static size_t text_length;

static void keep(container *made, const char *name, const char *path, bool checked) {
    *made = (container){.name = name, .checked = checked};
    made->bytes = read_file(path, &made->length);
    made->data_end = made->length;
}

static int make_containers(void **state) {
    static const struct {
        const char *name, *format;
        add_filter *filter;
        bool gzip, checked;
    } archives[] = {
        {"stored.tar", "gnutar", NULL, false, false},
        {"gz-inside.tar", "gnutar", NULL, true, true},
        {"all.tar.gz", "gnutar", archive_write_add_filter_gzip, false, true},
        {"all.tar.xz", "gnutar", archive_write_add_filter_xz, false, true},
        {"all.tar.Z", "gnutar", archive_write_add_filter_compress, false, false},
        {"all.zip", "zip", NULL, false, true},
        {"gz-inside.zip", "zip", NULL, true, true},
    };
    if (make_folder(state) != 0)
        return -1;
    text = make_text(300000, true, &text_length);
    unsigned seed = 1; /* letters that do not pack well, so that most bytes stand for text */
    for (size_t i = 0; i < text_length; i++) {
        seed = seed * 1103515245 + 12345;
        if (text[i] == 'x')
            text[i] = (char)('A' + (seed >> 16) % 58);
    }
    member members[MEMBERS];
    member gzipped[MEMBERS];
    size_t at = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        size_t end = i + 1 == MEMBERS ? text_length : (i + 1) * text_length / MEMBERS;
        while (text[end - 1] != '\n')
            end++;
        static char names[MEMBERS][16];
        snprintf(names[i], sizeof names[i], "part-%zu.csv", i);
        members[i] = gzipped[i] =
            (member){.name = names[i], .bytes = text + at, .length = end - at};
        gzipped[i].bytes = pack(text + at, end - at, archive_write_add_filter_gzip,
                                &gzipped[i].length);
        at = end;
    }
    size_t count = 0;
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++) {
        const char *path = path_of(archives[i].name);
        make_archive(path, archives[i].format, archives[i].filter,
                     archives[i].gzip ? gzipped : members, MEMBERS);
        container *made = &containers[count++];
        keep(made, archives[i].name, path, archives[i].checked);
        /* What fills a tar up behind its mark of the end may be cut off. */
        while (!archives[i].filter && made->bytes[made->data_end - 1] == 0)
            made->data_end--;
        if (archives[i].filter == archive_write_add_filter_compress)
            made->data_end -= made->length / 20;
    }
    for (size_t i = 0; i < COMPRESSIONS; i++) {
        size_t length;
        char *packed = pack(text, text_length, compressions[i].add, &length);
        write_file(path_of(compressions[i].name), packed, length, false);
        free(packed);
        keep(&containers[count++], compressions[i].name, path_of(compressions[i].name),
             compressions[i].checked);
    }
    for (size_t i = 0; i < MEMBERS; i++)
        free((char *)(uintptr_t)gzipped[i].bytes);
    return 0;
}

static int free_containers(void **state) {
    for (size_t i = 0; i < CONTAINERS; i++)
        free(containers[i].bytes);
    free(text);
    return remove_folder(state);
}

/* Reads what it can; true when all of it is right. The error is set when it ends early. */
static bool reads_right(const char *path, sl_error *error) {
    sl_source_set *set;
    sl_reader *reader;
    sl_source_block block;
    bool right = true;
    uint64_t end = 0;
    *error = (sl_error){0};
    if (!sl_source_set_create(&path, 1, NULL, &set, error))
        return false;
    assert_true(sl_reader_create(set, &reader, error));
    sl_read_result result;
    while ((result = sl_reader_next(reader, &block, error)) == SL_READ_BLOCK) {
        end = block.offset + block.text.length;
        right = right && end <= text_length &&
                memcmp(block.text.bytes, text + block.offset, block.text.length) == 0;
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    return result == SL_READ_END && right && end == text_length;
}

/* .Z has neither an end nor a checksum; zcat cannot tell either. */
static bool cut_shows(const container *one) {
    return strcmp(one->name, "Z") != 0;
}

static void a_cut_file_never_ends_well(void **state) {
    (void)state;
    for (size_t i = 0; i < CONTAINERS; i++) {
        const container *one = &containers[i];
        const char *path = path_of(one->name);
        write_file(path, one->bytes, one->length, false);
        assert_string_equal(reading_error(path), "");
        if (!cut_shows(one))
            continue;
        unsigned cuts_told = 0;
        for (size_t step = 1; step <= 60; step++) {
            size_t length = 600 + (one->data_end - 601) * step / 60;
            write_file(path, one->bytes, length, false);
            sl_error error;
            bool right = reads_right(path, &error); /* but for a zip file's table at the end */
            if (!right && !strstr(error.message, "truncated"))
                fail_msg("%s cut to %zu of %zu bytes: \"%s\"", one->name, length, one->length,
                         error.message);
            cuts_told += !right;
        }
        assert_true(cuts_told >= 59);
    }
}

/* A download that stops between two members looks like a shorter archive. */
static void a_cut_between_members_shows(void **state) {
    (void)state;
    member one = {.name = "one.csv", .bytes = "one\n", .length = 4};
    const char *path = path_of("between.tar");
    make_archive(path, "gnutar", NULL, &one, 1);
    assert_string_equal(reading_error(path), "");
    assert_int_equal(truncate(path, 2048), 0); /* header, data, and the mark of the end */
    assert_string_equal(reading_error(path), "");
    assert_int_equal(truncate(path, 1024), 0);
    assert_non_null(strstr(reading_error(path), "truncated"));
    assert_int_equal(truncate(path, 512), 0);
    assert_non_null(strstr(reading_error(path), "truncated"));
}

static void a_damaged_byte_is_told_or_harmless(void **state) {
    (void)state;
    for (size_t i = 0; i < CONTAINERS; i++) {
        const container *one = &containers[i];
        if (!one->checked)
            continue;
        const char *path = path_of(one->name);
        unsigned told = 0;
        for (size_t step = 1; step <= 60; step++) {
            size_t at = one->data_end * step / 61;
            one->bytes[at] ^= 0x10;
            write_file(path, one->bytes, one->length, false);
            one->bytes[at] ^= 0x10;
            sl_error error;
            bool right = reads_right(path, &error);
            if (!right && (error.code != SL_EXIT_SOURCE || !strstr(error.message, path)))
                fail_msg("%s with byte %zu changed: wrong text, error \"%s\"", one->name, at,
                         error.message);
            told += !right;
        }
        assert_true(told > 40); /* or no byte was changed at all */
    }
}

static void the_member_is_named(void **state) {
    (void)state;
    const container *tar = &containers[1];
    const char *path = path_of("half.tar");
    write_file(path, tar->bytes, tar->data_end / 2, false);
    const char *why = reading_error(path);
    assert_non_null(strstr(why, "half.tar: part-"));
    assert_non_null(strstr(why, "at byte"));
    const container *zip = &containers[5];
    path = path_of("half.zip");
    write_file(path, zip->bytes, zip->length / 2, false);
    why = reading_error(path); /* its table is looked at before any member */
    assert_non_null(strstr(why, "half.zip: "));
    assert_non_null(strstr(why, "truncated"));
}

/* A zip file with one stored member, its method and flags as they are asked for. */
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

static void what_cannot_be_unpacked_gets_advice(void **state) {
    (void)state;
    const char *path = path_of("mot.zip");
    write_zip(path, 9, 0);
    const char *why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv"));
    assert_non_null(strstr(why, "Deflate64"));
    assert_non_null(strstr(why, "7z x -so"));
    write_zip(path, 0, 1);
    why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv: encrypted"));
    assert_non_null(strstr(why, "password"));
    write_zip(path, 6, 0); /* implode, of the years before 1993 */
    why = reading_error(path);
    assert_non_null(strstr(why, "mot.zip: a.csv"));
    assert_non_null(strstr(why, "unpack the archive first"));
}

/* The error of looking at the head, where a load begins. */
static const char *head_error(const char *path, const char *include) {
    static sl_error error;
    sl_source_set *set;
    char head[100];
    size_t length;
    bool whole;
    assert_true(sl_source_set_create(&path, 1, include, &set, &error));
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    sl_source_set_destroy(set);
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, path));
    return error.message;
}

static void an_archive_without_data_is_an_error(void **state) {
    (void)state;
    member folder_only = {.name = "set", .type = AE_IFDIR};
    member hidden = {.name = "set/.csv", .bytes = "1\n", .length = 2};
    for (int zip = 0; zip < 2; zip++) {
        const char *format = zip ? "zip" : "gnutar";
        const char *path = path_of(zip ? "none.zip" : "none.tar");
        make_archive(path, format, NULL, &folder_only, 1);
        assert_non_null(strstr(head_error(path, NULL), "holds no files"));
        make_archive(path, format, NULL, &hidden, 1);
        assert_non_null(strstr(head_error(path, NULL), "hidden"));
        hidden.name = "set/one.csv";
        make_archive(path, format, NULL, &hidden, 1);
        assert_non_null(strstr(head_error(path, "*.txt"), "--include *.txt"));
        hidden.name = "set/.csv";
    }
    make_archive(path_of("bare.zip"), "zip", NULL, NULL, 0);
    assert_non_null(strstr(head_error(path_of("bare.zip"), NULL), "holds no files"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_file_never_ends_well),
        cmocka_unit_test(a_cut_between_members_shows),
        cmocka_unit_test(a_damaged_byte_is_told_or_harmless),
        cmocka_unit_test(the_member_is_named),
        cmocka_unit_test(what_cannot_be_unpacked_gets_advice),
        cmocka_unit_test(an_archive_without_data_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_containers, free_containers);
}
