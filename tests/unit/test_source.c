/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: every line of a file is returned exactly once with its offset, for each kind of file and
 * any number of reading threads; ids are computed from offsets as document_id.h describes. */
#include <sys/stat.h>

#include "source_reading.h"
#include "unit.h"

TEST(each_byte_is_read_once_plain_and_compressed) {
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

TEST(line_ends_near_block_boundaries) {
    /* A line end before, at and after each block boundary. */
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

/* Reads all blocks of the set; counts the blocks of the sample by the low three bits of their
 * number. */
static void read_sample(const char *const *paths, size_t count, double share, uint64_t inside[8],
                        uint64_t *blocks) {
    sl_source_set *set;
    sl_reader *reader;
    sl_error error;
    sl_source_block block;
    assert_true(sl_source_set_create(paths, count, NULL, &set, &error));
    sl_source_set_sample(set, share);
    assert_true(sl_reader_create(set, &reader, &error));
    memset(inside, 0, 8 * sizeof *inside);
    *blocks = 0;
    while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
        inside[block.sequence & 7] += !block.unselected;
        assert_true(!block.unselected || block.text.length == 0 || block.text.bytes);
        ++*blocks;
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

TEST(a_sample_is_spread_over_the_file_and_over_all_stripes) {
    const char *path = path_of("sparse.txt");
    FILE *file = fopen(path, "w"); /* sparse, 4 GiB: blocks outside the sample must not be read */
    assert_int_equal(ftruncate(fileno(file), (off_t)4 << 30), 0);
    fclose(file);
    uint64_t inside[8], blocks;
    read_sample(&path, 1, 0.05, inside, &blocks);
    assert_int_equal(blocks, 4096);
    for (int i = 0; i < 8; i++)
        assert_in_range(inside[i], 23, 28); /* 5 % of 512 are 25.6 */
    assert_int_equal(unlink(path), 0);
}

TEST(each_block_belongs_to_one_part) {
    const char *path = path_of("parts.txt");
    FILE *file = fopen(path, "w");
    assert_int_equal(ftruncate(fileno(file), (off_t)4 << 30), 0);
    fclose(file);
    sl_source_set *set;
    sl_error error;
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    static const uint32_t numbers[] = {1, 2, 3, 7, 64, 100};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        uint32_t parts = numbers[i], most = 0, least = UINT32_MAX, sampled = 0;
        uint32_t owners[4096] = {0};
        for (uint32_t part = 1; part <= parts; part++) {
            uint32_t taken = 0, low[2] = {0, 0};
            sl_source_set_sample(set, 0.25);
            sl_source_set_part(set, part, parts);
            for (uint64_t k = 0; k < 4096; k++)
                sampled += sl_source_set_selects(set, 0, k, k << SL_BLOCK_BITS);
            sl_source_set_sample(set, 0x1.fffffffffffffp-1);
            for (uint64_t k = 0; k < 4096; k++) {
                bool selected = sl_source_set_selects(set, 0, k, k << SL_BLOCK_BITS);
                owners[k] += selected;
                taken += selected;
                low[k & 1] += selected;
            }
            most = taken > most ? taken : most;
            least = taken < least ? taken : least;
            assert_in_range(low[0], taken / 2 - 3, taken / 2 + 3); /* of both halves of the ids */
        }
        for (uint64_t k = 0; k < 4096; k++)
            assert_int_equal(owners[k], 1);
        assert_in_range(most - least, 0, 4);
        assert_in_range(sampled, 1024 - parts * 2, 1024 + parts * 2);
    }
    sl_source_set_destroy(set);
    assert_int_equal(unlink(path), 0);
}

TEST(a_sample_of_many_small_files) {
    char names[200][300];
    const char *paths[200];
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "%s/small-%d.%s", folder, i, i % 2 ? "gz" : "txt");
        paths[i] = names[i];
        write_file(names[i], "1\n", 2, i % 2);
    }
    uint64_t inside[8], blocks;
    read_sample(paths, 200, 0.1, inside, &blocks);
    assert_int_equal(blocks, 200);
    assert_in_range(inside[0], 17, 23);
    for (int i = 0; i < 200; i++)
        unlink(names[i]);
}

TEST(the_lines_of_a_block_start_in_one_mib) {
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
                const char *end = memchr(block.text.bytes + start, '\n', block.text.length - start);
                start = end ? (size_t)(end - block.text.bytes) + 1 : block.text.length;
            }
        }
        sl_reader_destroy(reader);
        sl_source_set_destroy(set);
    }
    free(text);
}

/* The lines from offset `from` on that start in the same MiB. */
static sl_text lines_of_one_mib(const char *text, size_t length, size_t from) {
    size_t end = from;
    while (end < length && end >> SL_BLOCK_BITS == from >> SL_BLOCK_BITS) {
        const char *line_end = memchr(text + end, '\n', length - end);
        end = line_end ? (size_t)(line_end - text) + 1 : length;
    }
    return (sl_text){text + from, end - from};
}

/* Fails unless one reader returns these lines, block by block. */
static void check_blocks(const char *path, const char *text, size_t length) {
    sl_source_set *set;
    sl_reader *reader;
    sl_error error = {0};
    sl_source_block block;
    size_t at = 0;
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_true(sl_reader_create(set, &reader, &error));
    while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
        sl_text expected = lines_of_one_mib(text, length, at);
        if (block.text.length == 0) /* no line starts in its MiB */
            continue;
        assert_int_equal(block.offset, at);
        assert_int_equal(block.text.length, expected.length);
        assert_memory_equal(block.text.bytes, expected.bytes, expected.length);
        at += expected.length;
    }
    assert_int_equal(error.code, 0);
    assert_int_equal(at, length);
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

static void check_piped_blocks(const char *text, size_t length) {
    piped input;
    begin_pipe(&input, text, length);
    check_blocks("-", text, length);
    pthread_join(input.writer, NULL);
}

TEST(a_line_end_near_a_boundary_ends_the_correct_block) {
    size_t length = (size_t)3 * SL_BLOCK_BYTES;
    char *text = malloc(length);
    for (int shift = -2; shift <= 2; shift++) { /* -1: the block's last byte */
        for (size_t i = 0; i < length; i++)     /* short lines; none ends near a boundary */
            text[i] = i % 64 == 32 ? '\n' : (char)('a' + i % 23);
        text[(long)SL_BLOCK_BYTES + shift] = '\n';
        text[2 * (long)SL_BLOCK_BYTES + shift] = '\n';
        /* cut: the text ends at the second boundary's line end. */
        for (int cut = 0; cut < 2; cut++) {
            size_t used = cut ? (size_t)(2 * (long)SL_BLOCK_BYTES + shift + 1) : length;
            const char *plain = path_of("exact.txt"), *packed = path_of("exact.gz");
            write_file(plain, text, used, false);
            write_file(packed, text, used, true);
            check_blocks(plain, text, used);
            check_blocks(packed, text, used);
            check_piped_blocks(text, used);
        }
    }
    free(text);
}

TEST(gzip_members_are_one_stream) {
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

TEST(damaged_gzip_is_an_error) {
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

TEST(unsupported_formats_get_advice) {
    static const struct {
        const char *name, *bytes, *word;
    } containers[] = {
        {"results.7z", "7z\xBC\xAF\x27\x1C and so on", "7z x"},
        {"results.rar", "Rar!\x1A\x07 and so on", "RAR"},
        {"guide.txt", "%PDF-1.4 and so on", "PDF"},
        {"results.csv", "\xFF\xFEt.e.s.t", "iconv"},
    };
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        for (int gzip = 0; gzip < 2; gzip++) {
            const char *path = path_of(containers[i].name);
            write_file(path, containers[i].bytes, strlen(containers[i].bytes), gzip);
            if (!gzip && strcmp(containers[i].word, "iconv") == 0)
                continue; /* UTF-16 that is not compressed is read */
            assert_non_null(strstr(reading_error(path), containers[i].word));
        }
    }
    /* In a folder such a file is an error only when its head is read. */
    mkdir(path_of("mixed"), 0700);
    write_file(path_of("mixed/a.7z"), "7z\xBC\xAF\x27\x1C", 6, false);
    write_file(path_of("mixed/b.csv"), "1\n", 2, true);
    const char *path = path_of("mixed");
    sl_source_set *set;
    sl_error error;
    char head[16];
    size_t length;
    bool whole;
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_int_equal(sl_source_set_at(set, 1)->kind, SL_SOURCE_UNOPENED);
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, "a.7z"));
    assert_true(sl_source_head(set, 1, head, sizeof head, &length, &whole, NULL, &error));
    assert_int_equal(sl_source_set_at(set, 1)->kind, SL_SOURCE_GZIP);
    assert_int_equal(length, 2);
    assert_true(whole);
    sl_source_set_destroy(set);
}

TEST(an_empty_file_is_a_source) {
    write_file(path_of("empty.txt"), "", 0, false);
    write_file(path_of("empty.gz"), "", 0, true);
    assert_string_equal(reading_error(path_of("empty.txt")), "");
    assert_string_equal(reading_error(path_of("empty.gz")), "");
}

/* The largest file is read first. Read last, it would keep one thread busy while the others
 * idle. */
TEST(the_largest_file_is_read_first) {
    size_t length;
    char *text = make_text((size_t)2 << 20, true, &length);
    mkdir(path_of("fleet"), 0700);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "fleet/%02d%s", i, i % 5 == 0 ? "" : ".gz");
        write_file(path_of(name), text, 100, i % 5 != 0);
    }
    write_file(path_of("fleet/99-ships.gz"), text, length, true);
    const char *path = path_of("fleet");
    for (int heads = 0; heads < 2; heads++) { /* without and with reading all heads before */
        sl_source_set *set;
        sl_reader *reader;
        sl_error error;
        sl_source_block block;
        assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
        assert_int_equal(sl_source_set_count(set), 21);
        for (size_t i = 0; heads && i < 21; i++) {
            char head[8];
            size_t got;
            bool whole;
            assert_true(sl_source_head(set, i, head, sizeof head, &got, &whole, NULL, &error));
        }
        assert_true(sl_reader_create(set, &reader, &error));
        size_t begun[21], count = 0;
        while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
            if (block.sequence == 0)
                begun[count++] = block.source;
        }
        assert_int_equal(count, 21);
        assert_int_equal(begun[0], 20);
        for (size_t i = 0; heads && i < 4; i++) /* plain files are last, in order */
            assert_int_equal(begun[17 + i], i * 5);
        sl_reader_destroy(reader);
        sl_source_set_destroy(set);
    }
    free(text);
}

TEST(folders_are_searched_without_hidden_files_and_loops) {
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

TEST(all_bad_paths_are_reported_at_once) {
    const char *paths[] = {"/nowhere/one.txt", "/nowhere/two.txt"};
    sl_source_set *set;
    sl_error error;
    assert_false(sl_source_set_create(paths, 2, NULL, &set, &error));
    assert_non_null(strstr(error.message, "one.txt"));
    assert_non_null(strstr(error.message, "two.txt"));
}

TEST(a_fingerprint_identifies_a_file) {
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
    sl_source_set_destroy(set);
    assert_true(sl_source_set_create(paths, 3, NULL, &set, &error));
    assert_true(sl_source_fingerprint(set, 1, again, &error));
    assert_string_not_equal(first, again); /* a changed byte near the end */
    sl_source_set_destroy(set);
    free(text);
}

TEST(ids_contain_source_and_offset) {
    uint64_t offset = 1;
    for (int i = 0; i < 100000; i++) {
        offset = (offset * 6364136223846793005u + 1442695040888963407u);
        uint64_t position = offset % SL_SOURCE_BYTES_MAX;
        uint32_t number = (uint32_t)(offset >> 40) % (SL_SOURCE_NUMBER_MAX + 1);
        int64_t id = sl_document_id(number, position);
        assert_true(id >= 0);
        assert_int_equal(sl_document_id_source(id), number);
        assert_int_equal(sl_document_id_offset(id), position);
        assert_true(id >= sl_stripe_first_id(number, 0) && id < sl_stripe_first_id(number, 256));
    }
    assert_true(sl_document_id(1, 10) < sl_document_id(1, 20));
    /* The ids of the last number end at its last stripe. */
    int64_t last = sl_document_id(SL_SOURCE_NUMBER_MAX, SL_SOURCE_BYTES_MAX - 1);
    assert_true(last < sl_stripe_first_id(SL_SOURCE_NUMBER_MAX, SL_STRIPES));
    assert_int_equal(last + 1, sl_stripe_first_id(SL_SOURCE_NUMBER_MAX, SL_STRIPES));
}

TEST(successive_blocks_go_to_all_ranges) {
    /* For any number of equal ranges: the first few blocks of a source reach all ranges, and later
     * the ranges have almost the same number of blocks. */
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

BEFORE_AND_AFTER_ALL(make_folder, remove_folder)
