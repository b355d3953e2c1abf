/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: every line of a file is returned exactly once with its offset, for each kind of file and
 * any number of reading threads; ids are computed from offsets as document_id.h describes. */
#include <sys/stat.h>
#include <unistd.h>

#include "source/source_set.h"
#include "source_reading.h"

TEST(each_byte_is_read_once_plain_and_compressed) {
    for (int newline = 0; newline < 2; newline++) {
        size_t length;
        char *text = make_text((size_t)6 << 20, newline, &length);
        for (int gzip = 0; gzip < 2; gzip++) {
            const char *path = unit_path(gzip ? "many.gz" : "many.txt");
            write_file(path, text, length, gzip);
            check_reading(path, text, length, 1);
            check_reading(path, text, length, 4);
        }
    }
}

TEST(line_ends_near_block_boundaries) {
    /* A line end before, at and after each block boundary. */
    for (int shift = -2; shift <= 2; shift++) {
        size_t length = (size_t)2 * SL_BLOCK_BYTES + 100;
        char *text = unit_keep(malloc(length));
        memset(text, 'y', length);
        text[(long)SL_BLOCK_BYTES + shift] = '\n';
        text[(long)SL_BLOCK_BYTES * 2 + shift] = '\n';
        for (int gzip = 0; gzip < 2; gzip++) {
            const char *path = unit_path(gzip ? "border.gz" : "border.txt");
            write_file(path, text, length, gzip);
            check_reading(path, text, length, 3);
        }
    }
}

/* Reads all blocks and returns their number; counts the blocks of the sample by the low three bits
 * of their number. */
static uint64_t read_sample(const char *const *paths, size_t count, double share,
                            uint64_t inside[8]) {
    reading *r = open_sources(paths, count, NULL);
    uint64_t blocks = 0;
    sl_source_set_sample(r->set, share);
    memset(inside, 0, 8 * sizeof *inside);
    for (; read_block(r); blocks++) {
        inside[r->block.sequence & 7] += !r->block.unselected;
        assert_true(!r->block.unselected || r->block.text.length == 0 || r->block.text.bytes);
    }
    return blocks;
}

TEST(a_sample_is_spread_over_the_file_and_over_all_stripes) {
    const char *path = unit_path("sparse.txt");
    unit_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)4 << 30), 0); /* sparse: other blocks must not be read */
    uint64_t inside[8];
    assert_int_equal(read_sample(&path, 1, 0.05, inside), 4096);
    for (int i = 0; i < 8; i++)
        assert_in_range(inside[i], 23, 28); /* 5 % of 512 are 25.6 */
}

TEST(each_block_belongs_to_one_part) {
    const char *path = unit_path("parts.txt");
    unit_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)4 << 30), 0);
    sl_source_set *set = open_source(path)->set;
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
}

TEST(a_sample_of_many_small_files) {
    const char *paths[200];
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "small-%d.%s", i, i % 2 ? "gz" : "txt");
        paths[i] = unit_path(name);
        write_file(paths[i], "1\n", 2, i % 2);
    }
    uint64_t inside[8];
    assert_int_equal(read_sample(paths, 200, 0.1, inside), 200);
    assert_in_range(inside[0], 17, 23);
}

TEST(the_lines_of_a_block_start_in_one_mib) {
    size_t length;
    char *text = make_text((size_t)3 << 20, true, &length);
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *path = unit_path(gzip ? "begin.gz" : "begin.txt");
        write_file(path, text, length, gzip);
        for (reading *r = open_source(path); read_block(r);) {
            const sl_source_block *block = &r->block;
            for (size_t start = 0; start < block->text.length;) {
                assert_int_equal((block->offset + start) >> SL_BLOCK_BITS,
                                 block->offset >> SL_BLOCK_BITS);
                const char *from = block->text.bytes + start;
                const char *end = memchr(from, '\n', block->text.length - start);
                start = end ? (size_t)(end - block->text.bytes) + 1 : block->text.length;
            }
        }
    }
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
    reading *r = open_source(path);
    size_t at = 0;
    while (read_block(r)) {
        sl_text expected = lines_of_one_mib(text, length, at);
        if (r->block.text.length == 0) /* no line starts in its MiB */
            continue;
        assert_int_equal(r->block.offset, at);
        assert_int_equal(r->block.text.length, expected.length);
        assert_memory_equal(r->block.text.bytes, expected.bytes, expected.length);
        at += expected.length;
    }
    assert_int_equal(r->error.code, 0);
    assert_int_equal(at, length);
}

TEST(a_line_end_near_a_boundary_ends_the_correct_block) {
    size_t length = (size_t)3 * SL_BLOCK_BYTES;
    char *text = unit_keep(malloc(length));
    for (int shift = -2; shift <= 2; shift++) { /* -1: the block's last byte */
        for (size_t i = 0; i < length; i++)     /* short lines; none ends near a boundary */
            text[i] = i % 64 == 32 ? '\n' : (char)('a' + i % 23);
        text[(long)SL_BLOCK_BYTES + shift] = '\n';
        text[2 * (long)SL_BLOCK_BYTES + shift] = '\n';
        /* cut: the text ends at the second boundary's line end. */
        for (int cut = 0; cut < 2; cut++) {
            size_t used = cut ? (size_t)(2 * (long)SL_BLOCK_BYTES + shift + 1) : length;
            const char *plain = unit_path("exact.txt"), *packed = unit_path("exact.gz");
            write_file(plain, text, used, false);
            write_file(packed, text, used, true);
            check_blocks(plain, text, used);
            check_blocks(packed, text, used);
            piped input;
            begin_pipe(&input, text, used);
            check_blocks("-", text, used);
            pthread_join(input.writer, NULL);
        }
    }
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
            const char *path = unit_path(containers[i].name);
            write_file(path, containers[i].bytes, strlen(containers[i].bytes), gzip);
            if (!gzip && strcmp(containers[i].word, "iconv") == 0)
                continue; /* UTF-16 that is not compressed is read */
            assert_non_null(strstr(reading_error(path), containers[i].word));
        }
    }
    /* In a folder such a file is an error only when its head is read. */
    mkdir(unit_path("mixed"), 0700);
    write_file(unit_path("mixed/a.7z"), "7z\xBC\xAF\x27\x1C", 6, false);
    write_file(unit_path("mixed/b.csv"), "1\n", 2, true);
    sl_source_set *set = open_source(unit_path("mixed"))->set;
    sl_error error;
    char head[16];
    size_t length;
    bool whole;
    assert_int_equal(sl_source_set_at(set, 1)->kind, SL_SOURCE_UNOPENED);
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, "a.7z"));
    assert_true(sl_source_head(set, 1, head, sizeof head, &length, &whole, NULL, &error));
    assert_int_equal(sl_source_set_at(set, 1)->kind, SL_SOURCE_GZIP);
    assert_int_equal(length, 2);
    assert_true(whole);
}

TEST(an_empty_file_is_a_source) {
    write_file(unit_path("empty.txt"), "", 0, false);
    write_file(unit_path("empty.gz"), "", 0, true);
    assert_string_equal(reading_error(unit_path("empty.txt")), "");
    assert_string_equal(reading_error(unit_path("empty.gz")), "");
}

TEST(a_file_that_ends_before_its_size_has_no_head) {
    static const char path[] = "/sys/devices/system/cpu/online"; /* states the size of a page */
    char head[64];
    size_t length;
    bool whole;
    sl_error error;
    if (access(path, R_OK) != 0)
        skip();
    sl_source_set *set = open_source(path)->set;
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    assert_non_null(strstr(error.message, "cannot be read after byte"));
}

/* The largest file is read first. Read last, it would keep one thread busy while the others
 * idle. */
TEST(the_largest_file_is_read_first) {
    size_t length;
    char *text = make_text((size_t)2 << 20, true, &length);
    mkdir(unit_path("fleet"), 0700);
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "fleet/%02d%s", i, i % 5 == 0 ? "" : ".gz");
        write_file(unit_path(name), text, 100, i % 5 != 0);
    }
    write_file(unit_path("fleet/99-ships.gz"), text, length, true);
    for (int heads = 0; heads < 2; heads++) { /* without and with reading all heads before */
        reading *r = open_source(unit_path("fleet"));
        assert_int_equal(sl_source_set_count(r->set), 21);
        for (size_t i = 0; heads && i < 21; i++) {
            char head[8];
            size_t got;
            bool whole;
            assert_true(
                sl_source_head(r->set, i, head, sizeof head, &got, &whole, NULL, &r->error));
        }
        size_t begun[21], count = 0;
        while (read_block(r)) {
            if (r->block.sequence == 0)
                begun[count++] = r->block.source;
        }
        assert_int_equal(count, 21);
        assert_int_equal(begun[0], 20);
        for (size_t i = 0; heads && i < 4; i++) /* plain files are last, in order */
            assert_int_equal(begun[17 + i], i * 5);
    }
}

TEST(folders_are_searched_without_hidden_files_and_loops) {
    static const char *const folders[] = {"tree", "tree/b", "tree/.git", "tree/__MACOSX"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        mkdir(unit_path(folders[i]), 0700);
    static const char *const names[] = {"b/two.csv",   "a-one.csv",       "c-three.txt",
                                        ".hidden.csv", ".git/config.csv", "__MACOSX/x.csv"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "tree/%s", names[i]);
        unit_write(unit_path(path), "1\n", 2);
    }
    assert_int_equal(symlink("..", unit_path("tree/b/loop")), 0);
    const char *path = unit_path("tree");
    sl_source_set *set = open_source(path)->set;
    assert_int_equal(sl_source_set_count(set), 3);
    assert_contains(sl_source_set_at(set, 0)->path, "a-one.csv");
    assert_contains(sl_source_set_at(set, 1)->path, "b/two.csv");
    assert_false(sl_source_set_at(set, 0)->named);
    assert_int_equal(sl_source_set_count(open_sources(&path, 1, "*.csv")->set), 2);
    const reading *none = try_sources(&path, 1, "*.json");
    assert_null(none->set);
    assert_contains(none->error.message, "--include");
}

TEST(a_set_of_paths_finds_repeated_ones) {
    static const char *const same[] = {"d/a", "./d/a", "/d//a", "d/./a", "d/a/"};
    static const char *const others[] = {"a", "d", "d/a/b", "a/d", "da", "D/a", ".d/a", "..", ""};
    sl_path_set set = {0};
    assert_false(sl_path_set_has(&set, same[0]));
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_int_equal(sl_path_set_add(&set, same[i]), i == 0 ? SL_PATH_NEW : SL_PATH_KNOWN);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(sl_path_set_has(&set, others[i]));
        assert_int_equal(sl_path_set_add(&set, others[i]), SL_PATH_NEW);
        assert_true(sl_path_set_has(&set, others[i]));
    }
    sl_path_set_clear(&set);
}

TEST(a_set_of_paths_has_a_limit) {
    sl_path_set set = {.most = 100000};
    char path[32];
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(path, sizeof path, "folder/%u", i);
        assert_int_equal(sl_path_set_add(&set, path), SL_PATH_NEW);
    }
    assert_in_range(set.room * sizeof *set.hashes, 0, 100000 * 22);
    assert_int_equal(sl_path_set_add(&set, "one/more"), SL_PATH_TOO_MANY);
    assert_int_equal(sl_path_set_add(&set, "folder/77"), SL_PATH_KNOWN);
    sl_path_set_clear(&set);
}

TEST(all_bad_paths_are_reported_at_once) {
    const char *paths[] = {"/nowhere/one.txt", "/nowhere/two.txt"};
    const reading *none = try_sources(paths, 2, NULL);
    assert_null(none->set);
    assert_contains(none->error.message, "one.txt");
    assert_contains(none->error.message, "two.txt");
}

TEST(a_fingerprint_identifies_a_file) {
    size_t length;
    char *text = make_text(400000, true, &length);
    char first[SL_FINGERPRINT_ROOM], again[SL_FINGERPRINT_ROOM];
    mkdir(unit_path("elsewhere"), 0700);
    const char *paths[] = {unit_path("same.txt"), unit_path("elsewhere/same.txt"),
                           unit_path("other.txt")};
    for (int i = 0; i < 3; i++)
        write_file(paths[i], text, length, false);
    sl_source_set *set = open_sources(paths, 3, NULL)->set;
    sl_error error;
    assert_true(sl_source_fingerprint(set, 0, first, &error));
    assert_true(sl_source_fingerprint(set, 1, again, &error));
    assert_string_equal(first, again); /* moved to another folder */
    assert_true(sl_source_fingerprint(set, 2, again, &error));
    assert_string_not_equal(first, again); /* another name */
    text[length - 10] ^= 1;
    write_file(paths[1], text, length, false);
    set = open_sources(paths, 3, NULL)->set;
    assert_true(sl_source_fingerprint(set, 1, again, &error));
    assert_string_not_equal(first, again); /* a changed byte near the end */
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
