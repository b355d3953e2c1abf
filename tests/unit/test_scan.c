/* SPDX-License-Identifier: Apache-2.0 */
/* The scan for delimiters: for each instruction set it must find the same positions as a plain
 * loop. A missed position would join two fields, on one kind of processor only. */
#include "parse_text.h"
#include "simd_rows.h"

#include "format/kernels.h"

static sl_marks marks;

/* Checks positions, lines and flags of bytes[start..stop). The flags may include up to 63 bytes
 * after `stop`, so the callers put only `x` there. */
static void check(const sl_simd *simd, const char *bytes, uint32_t start, uint32_t stop,
                  char delimiter, char quote) {
    bool high = false, odd = false, quoted = false;
    uint32_t count = 0, lines = 0;
    simd->find_marks(&marks, bytes, start, stop, delimiter, quote);
    for (uint32_t i = start; i < stop; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        if (byte == '\n' || byte == (uint8_t)delimiter || (quote && byte == (uint8_t)quote))
            assert_int_equal(marks.marks[++count], i);
        if (byte == '\n')
            assert_int_equal(marks.lines[lines++], i);
        high |= byte >= 0x80;
        odd |= byte == 0 || (quote && byte == '\\');
        quoted |= quote && byte == (uint8_t)quote;
    }
    assert_int_equal(marks.mark_count, count);
    assert_int_equal(marks.line_count, lines);
    assert_true(marks.high == high && marks.odd == odd && marks.quoted == quoted);
}

TEST(every_byte_at_every_position) {
    char bytes[192];
    memset(bytes, 'x', sizeof bytes);
    for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd)) {
        for (unsigned at = 0; at < 64; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bytes[at] = (char)byte;
                check(simd, bytes, 0, 64, ',', 0);
                check(simd, bytes, 0, 64, ',', '"');
                check(simd, bytes, 0, 64, ',', '\'');
                check(simd, bytes, 0, at + 1, '|', 0);
            }
            bytes[at] = 'x';
        }
    }
}

/* Adjacent bytes with adjacent values, which detect a carry between bytes; and more marks in 64
 * bytes than are stored at once. */
TEST(many_marks) {
    static const char crowd[] = "\0\x01\x80\x7F\xFF\n\x0B\x09,-+|}{\"!#\\[]x,,,,,,||||||\n";
    static char bytes[SL_STRETCH_BYTES + 256];
    uint32_t random = 12345;
    for (unsigned round = 0; round < 3000; round++) {
        memset(bytes, 'x', sizeof bytes);
        uint32_t start = round % 70;
        uint32_t stop = start + 1 + (round < 100 ? SL_STRETCH_BYTES - 1 : round % 300);
        size_t kinds = round % 7 == 0 ? 3 : 0; /* or only marks */
        for (unsigned i = start; i < stop; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] =
                kinds ? ",\n|"[(random >> 16) % kinds] : crowd[(random >> 16) % (sizeof crowd - 1)];
        }
        for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd))
            check(simd, bytes, start, stop, round % 2 ? ',' : '|',
                  round % 3   ? 0
                  : round % 2 ? '"'
                              : '!');
    }
}

/* Checks find_records against a walk byte by byte over bytes[0..stop). */
static void check_records(const sl_simd *simd, const char *bytes, uint32_t stop) {
    bool inside = false, quoted = false, irregular = false;
    uint32_t count = 0, lines = 0, line_feeds = 0;
    simd->find_records(&marks, bytes, 0, stop, ',', '"');
    for (uint32_t i = 0; i < stop; i++) {
        const char byte = bytes[i], before = i > 0 ? bytes[i - 1] : '\n';
        inside ^= byte == '"';
        quoted |= byte == '"';
        irregular |= byte == '"' && inside && before != ',' && before != '\n';
        line_feeds += byte == '\n';
        if (!inside && (byte == '\n' || byte == ','))
            assert_int_equal(marks.marks[++count], i);
        if (!inside && byte == '\n') {
            assert_int_equal(marks.numbers[lines], line_feeds);
            assert_int_equal(marks.lines[lines++], i);
        }
    }
    assert_int_equal(marks.mark_count, count);
    assert_int_equal(marks.line_count, lines);
    assert_int_equal(marks.line_feeds, line_feeds);
    assert_true(marks.quoted == quoted && marks.irregular == irregular);
}

/* Texts of pieces that are all regular, or of which one is not. */
TEST(marks_of_records_with_quotes) {
    static const char *const pieces[] = {"\"a,\nb\"", "plain", "\"\n\n,\"", "",
                                         "\"x\"",     "\"\"",  "5\" disk",  "\"a\"\"b\""};
    static char bytes[1024];
    uint32_t random = 99, regular = 0;
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t length = 0, most = 1 + round % 500;
        memset(bytes, 'x', sizeof bytes);
        while (length < most) {
            random = random * 1664525 + 1013904223;
            const char *piece = pieces[(random >> 16) % (round % 2 && length > 200 ? 8 : 6)];
            memcpy(bytes + length, piece, strlen(piece));
            length += (uint32_t)strlen(piece);
            bytes[length++] = (random >> 8) % 3 ? ',' : '\n';
        }
        for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd))
            check_records(simd, bytes, most);
        regular += !marks.irregular;
    }
    assert_true(regular > 1000 && regular < 2000);
}

/* SHARDLOAD_SIMD selects the instruction set; an unknown or unsupported name is an error. */
TEST(the_environment_selects_the_instruction_set) {
    const sl_simd *chosen = NULL;
    sl_error error = {0};
    for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd)) {
        assert_true(sl_simd_choose(&chosen, &error));
        assert_ptr_equal(chosen, simd);
    }
    assert_true(sl_simd_choose(&chosen, &error)); /* default: the fastest */
    assert_ptr_equal(chosen, next_simd(NULL));
    setenv("SHARDLOAD_SIMD", "mmx", 1);
    assert_false(sl_simd_choose(&chosen, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_non_null(strstr(error.message, "SHARDLOAD_SIMD=mmx"));
    assert_non_null(strstr(error.message, "portable"));
    unsetenv("SHARDLOAD_SIMD");
}
