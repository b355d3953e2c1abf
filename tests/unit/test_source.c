/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: every line of every file is handed out exactly once, at its right offset, however it is
 * stored and however many threads read; and the ids made of offsets are what document_id.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <shardload/document_id.h>
#include <shardload/source.h>

static char folder[] = "/tmp/shardload-test-XXXXXX";

static const char *path_of(const char *name) {
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *bytes, size_t length, bool gzip) {
    if (gzip) {
        gzFile file = gzopen(path, "wb1");
        assert_int_equal(gzwrite(file, bytes, (unsigned)length), (int)length);
        gzclose(file);
    } else {
        FILE *file = fopen(path, "w");
        assert_int_equal(fwrite(bytes, 1, length, file), length);
        fclose(file);
    }
}

/* Lines of many lengths, some of them empty, a few longer than a block; each says its offset. */
static char *make_text(size_t size, bool final_newline, size_t *length) {
    char *text = malloc(size + (size_t)4 * SL_BLOCK_BYTES);
    size_t used = 0;
    unsigned seed = 7;
    while (used < size) {
        seed = seed * 1103515245 + 12345;
        size_t pad = seed >> 16 & 0xFF;
        if ((seed >> 8 & 0xFFF) == 0)
            pad = SL_BLOCK_BYTES + (seed >> 16) % (2 * SL_BLOCK_BYTES);
        if ((seed >> 4 & 0x3F) == 0) {
            text[used++] = '\n';
            continue;
        }
        used += (size_t)sprintf(text + used, "%zu:", used);
        memset(text + used, 'x', pad);
        used += pad;
        text[used++] = '\n';
    }
    if (!final_newline)
        used--;
    *length = used;
    return text;
}

typedef struct gathered {
    sl_source_set *set;
    pthread_mutex_t lock;
    char *copy; /* blocks put back at their offsets */
    unsigned char *seen;
    size_t length;
    unsigned lasts;
    uint64_t sequences; /* sum, to see that none is missing or double */
    uint64_t blocks;
    bool failed;
} gathered;

static void *gather(void *context) {
    gathered *all = context;
    sl_reader *reader;
    sl_error error;
    sl_source_block block;
    sl_read_result result = SL_READ_FAILED;
    if (sl_reader_create(all->set, &reader, &error)) {
        while ((result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK) {
            pthread_mutex_lock(&all->lock);
            if (block.text.length > 0) {
                if (block.offset + block.text.length > all->length ||
                    (block.offset > 0 && all->copy[block.offset - 1] != '\n' &&
                     all->seen[block.offset - 1]))
                    all->failed = true;
                else
                    memcpy(all->copy + block.offset, block.text.bytes, block.text.length);
                for (size_t i = 0; !all->failed && i < block.text.length; i++)
                    all->seen[block.offset + i]++;
            }
            all->lasts += block.last;
            all->sequences += block.sequence;
            all->blocks++;
            pthread_mutex_unlock(&all->lock);
        }
        sl_reader_destroy(reader);
    }
    if (result != SL_READ_END)
        all->failed = true;
    return NULL;
}

static void check_reading(const char *path, const char *text, size_t length, unsigned threads) {
    gathered all = {.length = length, .copy = calloc(1, length), .seen = calloc(1, length)};
    sl_error error;
    pthread_mutex_init(&all.lock, NULL);
    assert_true(sl_source_set_create(&path, 1, NULL, &all.set, &error));
    pthread_t workers[8];
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&workers[i], NULL, gather, &all);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    assert_false(all.failed);
    assert_memory_equal(all.copy, text, length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(all.seen[i], 1);
    assert_int_equal(all.lasts, 1);
    assert_int_equal(all.sequences, all.blocks * (all.blocks - 1) / 2);
    sl_source_set_destroy(all.set);
    free(all.copy);
    free(all.seen);
}

static void every_byte_once_whatever_the_storage(void **state) {
    (void)state;
    for (int newline = 0; newline < 2; newline++) {
        size_t length;
        char *text = make_text((size_t)6 << 20, newline, &length);
        for (int gzip = 0; gzip < 2; gzip++) {
            const char *path = path_of(gzip ? "many.gz" : "many.txt");
            write_file(path, text, length, gzip);
            check_reading(path, text, length, 1);
            check_reading(path, text, length, 4);
        }
        free(text);
    }
}

static void block_borders_fall_everywhere(void **state) {
    (void)state;
    /* A line end right before, at and right behind each block's border. */
    for (int shift = -2; shift <= 2; shift++) {
        size_t length = (size_t)2 * SL_BLOCK_BYTES + 100;
        char *text = malloc(length);
        memset(text, 'y', length);
        text[(long)SL_BLOCK_BYTES + shift] = '\n';
        text[(long)SL_BLOCK_BYTES * 2 + shift] = '\n';
        for (int gzip = 0; gzip < 2; gzip++) {
            const char *path = path_of(gzip ? "border.gz" : "border.txt");
            write_file(path, text, length, gzip);
            check_reading(path, text, length, 3);
        }
        free(text);
    }
}

static void a_block_holds_the_lines_that_begin_in_it(void **state) {
    (void)state;
    size_t length;
    char *text = make_text((size_t)3 << 20, true, &length);
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *path = path_of(gzip ? "begin.gz" : "begin.txt");
        write_file(path, text, length, gzip);
        sl_source_set *set;
        sl_reader *reader;
        sl_error error;
        sl_source_block block;
        assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
        assert_true(sl_reader_create(set, &reader, &error));
        while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
            size_t start = 0;
            while (start < block.text.length) {
                assert_int_equal((block.offset + start) >> SL_BLOCK_BITS,
                                 block.offset >> SL_BLOCK_BITS);
                const char *end = memchr(block.text.bytes + start, '\n',
                                         block.text.length - start);
                start = end ? (size_t)(end - block.text.bytes) + 1 : block.text.length;
            }
        }
        sl_reader_destroy(reader);
        sl_source_set_destroy(set);
    }
    free(text);
}

static void gzip_members_are_one_stream(void **state) {
    (void)state;
    const char *path = path_of("members.gz");
    FILE *whole = fopen(path, "w");
    for (int part = 0; part < 3; part++) {
        char text[64], bytes[4096];
        int length = sprintf(text, "line %d\nrest of", part);
        const char *one = path_of("one.gz");
        write_file(one, text, (size_t)length, true);
        FILE *file = fopen(one, "r");
        size_t got = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        fwrite(bytes, 1, got, whole);
    }
    fclose(whole);
    static const char expected[] = "line 0\nrest ofline 1\nrest ofline 2\nrest of";
    check_reading(path, expected, sizeof expected - 1, 2);
}

/* Reads all; the error that ends it, or "" when it ends well. */
static const char *reading_error(const char *path) {
    static sl_error error;
    sl_source_set *set;
    sl_reader *reader;
    sl_source_block block;
    error = (sl_error){0};
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_true(sl_reader_create(set, &reader, &error));
    sl_read_result result;
    while ((result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK)
        ;
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    if (result == SL_READ_END)
        return "";
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, path));
    return error.message;
}

static void damaged_gzip_is_told(void **state) {
    (void)state;
    size_t length;
    char *text = make_text(300000, true, &length);
    const char *path = path_of("damaged.gz");
    write_file(path, text, length, true);
    assert_string_equal(reading_error(path), "");
    struct stat facts;
    stat(path, &facts);
    assert_int_equal(truncate(path, facts.st_size / 2), 0);
    assert_non_null(strstr(reading_error(path), "truncated"));
    write_file(path, text, length, true);
    FILE *file = fopen(path, "r+");
    fseek(file, facts.st_size / 2, SEEK_SET);
    fputs("broken broken broken", file);
    fclose(file);
    assert_non_null(strstr(reading_error(path), "damaged"));
    free(text);
}

static void containers_get_advice(void **state) {
    (void)state;
    const char *path = path_of("results.zip");
    write_file(path, "PK\003\004 and so on", 16, false);
    sl_source_set *set;
    sl_error error;
    assert_false(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, "results.zip"));
    assert_non_null(strstr(error.message, "zip archive"));
}

static void folders_are_searched_without_hidden_files_and_loops(void **state) {
    (void)state;
    char inside[300];
    snprintf(inside, sizeof inside, "%s", path_of("tree"));
    mkdir(inside, 0700);
    mkdir(path_of("tree/b"), 0700);
    mkdir(path_of("tree/.git"), 0700);
    mkdir(path_of("tree/__MACOSX"), 0700);
    write_file(path_of("tree/b/two.csv"), "2\n", 2, false);
    write_file(path_of("tree/a-one.csv"), "1\n", 2, false);
    write_file(path_of("tree/c-three.txt"), "3\n", 2, false);
    write_file(path_of("tree/.hidden.csv"), "4\n", 2, false);
    write_file(path_of("tree/.git/config.csv"), "5\n", 2, false);
    write_file(path_of("tree/__MACOSX/x.csv"), "6\n", 2, false);
    assert_int_equal(symlink("..", path_of("tree/b/loop")), 0);
    const char *path = inside;
    sl_source_set *set;
    sl_error error;
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_int_equal(sl_source_set_count(set), 3);
    assert_non_null(strstr(sl_source_set_at(set, 0)->path, "a-one.csv"));
    assert_non_null(strstr(sl_source_set_at(set, 1)->path, "b/two.csv"));
    assert_false(sl_source_set_at(set, 0)->named);
    sl_source_set_destroy(set);
    assert_true(sl_source_set_create(&path, 1, "*.csv", &set, &error));
    assert_int_equal(sl_source_set_count(set), 2);
    sl_source_set_destroy(set);
    assert_false(sl_source_set_create(&path, 1, "*.json", &set, &error));
    assert_non_null(strstr(error.message, "--include"));
}

static void all_bad_paths_are_reported_at_once(void **state) {
    (void)state;
    const char *paths[] = {"/nowhere/one.txt", "/nowhere/two.txt"};
    sl_source_set *set;
    sl_error error;
    assert_false(sl_source_set_create(paths, 2, NULL, &set, &error));
    assert_non_null(strstr(error.message, "one.txt"));
    assert_non_null(strstr(error.message, "two.txt"));
}

static void a_fingerprint_knows_a_file_again(void **state) {
    (void)state;
    size_t length;
    char *text = make_text(400000, true, &length);
    char first[SL_FINGERPRINT_ROOM], again[SL_FINGERPRINT_ROOM];
    mkdir(path_of("elsewhere"), 0700);
    const char *paths[] = {path_of("same.txt"), path_of("elsewhere/same.txt"),
                           path_of("other.txt")};
    for (int i = 0; i < 3; i++)
        write_file(paths[i], text, length, false);
    sl_source_set *set;
    sl_error error;
    assert_true(sl_source_set_create(paths, 3, NULL, &set, &error));
    assert_true(sl_source_fingerprint(set, 0, first, &error));
    assert_true(sl_source_fingerprint(set, 1, again, &error));
    assert_string_equal(first, again); /* moved to another folder */
    assert_true(sl_source_fingerprint(set, 2, again, &error));
    assert_string_not_equal(first, again); /* another name */
    text[length - 10] ^= 1;
    write_file(paths[1], text, length, false);
    assert_true(sl_source_fingerprint(set, 1, again, &error));
    assert_string_not_equal(first, again); /* a changed byte near the end */
    sl_source_set_destroy(set);
    free(text);
}

static void ids_lead_back_to_the_byte(void **state) {
    (void)state;
    uint64_t offset = 1;
    for (int i = 0; i < 100000; i++) {
        offset = (offset * 6364136223846793005u + 1442695040888963407u);
        uint64_t place = offset % SL_SOURCE_BYTES_MAX;
        uint32_t number = (uint32_t)(offset >> 40) & SL_SOURCE_NUMBER_MAX;
        int64_t id = sl_document_id(number, place);
        assert_true(id >= 0);
        assert_int_equal(sl_document_id_source(id), number);
        assert_int_equal(sl_document_id_offset(id), place);
        assert_true(id >= sl_stripe_first_id(number, 0) && id < sl_stripe_first_id(number, 256));
    }
    assert_true(sl_document_id(1, 10) < sl_document_id(1, 20));
    assert_int_equal(sl_document_id(SL_SOURCE_NUMBER_MAX, SL_SOURCE_BYTES_MAX - 1), INT64_MAX);
}

static void successive_blocks_feed_all_ranges(void **state) {
    (void)state;
    /* Whatever the number of equal ranges, the first blocks of a source visit all of them soon,
     * and after any number of blocks the ranges differ by little. */
    for (uint32_t ranges = 2; ranges <= 16; ranges++) {
        unsigned filled[16] = {0};
        for (uint64_t block = 0; block < 1000; block++) {
            int64_t id = sl_document_id(3, block << SL_BLOCK_BITS);
            uint32_t stripe = (uint32_t)((uint64_t)id >> 32) & 0xFF;
            filled[stripe * ranges / SL_STRIPES]++;
            if (block == 4u * ranges) {
                for (uint32_t i = 0; i < ranges; i++)
                    assert_true(filled[i] > 0);
            }
        }
        for (uint32_t i = 0; i < ranges; i++)
            assert_in_range(filled[i], 1000 / ranges - 25, 1000 / ranges + 25);
    }
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_once_whatever_the_storage),
        cmocka_unit_test(block_borders_fall_everywhere),
        cmocka_unit_test(a_block_holds_the_lines_that_begin_in_it),
        cmocka_unit_test(gzip_members_are_one_stream),
        cmocka_unit_test(damaged_gzip_is_told),
        cmocka_unit_test(containers_get_advice),
        cmocka_unit_test(folders_are_searched_without_hidden_files_and_loops),
        cmocka_unit_test(all_bad_paths_are_reported_at_once),
        cmocka_unit_test(a_fingerprint_knows_a_file_again),
        cmocka_unit_test(ids_lead_back_to_the_byte),
        cmocka_unit_test(successive_blocks_feed_all_ranges),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
