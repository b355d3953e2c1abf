/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 validation. An error here would send text that the server refuses, or reject good
 * records. */
#include "parse_text.h"
#include "simd_rows.h"

#include "format/convert.h"
#include "format/encoding.h"

#include "format/kernels.h"

/* Validates by the definition: decodes each character and checks that its encoding is the
 * shortest. */
static bool valid_by_definition(const uint8_t *p, size_t length) {
    for (size_t i = 0; i < length;) {
        size_t more = p[i] < 0x80       ? 0
                      : p[i] >> 5 == 6  ? 1
                      : p[i] >> 4 == 14 ? 2
                      : p[i] >> 3 == 30 ? 3
                                        : 9;
        if (more == 9 || i + more >= length)
            return false;
        uint32_t code = more == 0 ? p[i] : p[i] & (0x3Fu >> more);
        for (size_t k = 1; k <= more; k++) {
            if (p[i + k] >> 6 != 2)
                return false;
            code = code << 6 | (p[i + k] & 0x3F);
        }
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            return false;
        i += more + 1;
    }
    return true;
}

TEST(every_pair_of_bytes) {
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            uint8_t text[4] = {(uint8_t)a, (uint8_t)b, 0x80, 0xBF};
            for (size_t length = 1; length <= 4; length++)
                assert_int_equal(sl_utf8_valid((char *)text, length, NULL),
                                 valid_by_definition(text, length));
        }
    }
}

/* Each instruction set must agree with the definition: for all sequences of four bytes at the
 * bounds of byte classes, and all pairs of bytes, at many positions of a vector. */
TEST(each_instruction_set_agrees_with_the_definition) {
    static const uint8_t bounds[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                     0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                     0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFF};
    enum { N = sizeof bounds };
    uint8_t text[128];
    for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd)) {
        for (unsigned i = 0; i < N * N * N * N; i++) {
            unsigned at = i % 70;
            memset(text, 'a', sizeof text);
            text[at] = bounds[i % N];
            text[at + 1] = bounds[i / N % N];
            text[at + 2] = bounds[i / N / N % N];
            text[at + 3] = bounds[i / N / N / N];
            bool within = valid_by_definition(text + at, 5),
                 last = valid_by_definition(text + at, 4);
            assert_int_equal(simd->utf8_valid((char *)text, sizeof text), within);
            assert_int_equal(simd->utf8_valid((char *)text, at + 4), last);
        }
        for (unsigned pair = 0; pair < 65536; pair++) {
            for (unsigned at = 29; at < 35; at += 1 + pair % 3) {
                memset(text, 'a', sizeof text);
                text[at] = (uint8_t)(pair >> 8);
                text[at + 1] = (uint8_t)pair;
                assert_int_equal(simd->utf8_valid((char *)text, 64), valid_by_definition(text, 64));
            }
        }
    }
}

/* Mixed text of many lengths, valid or with one changed byte. */
TEST(each_instruction_set_agrees_on_mixed_text) {
    static const char *const words[] = {"a",
                                        "Motor ",
                                        "\xC3\xA9",
                                        "\xE2\x82\xAC",
                                        "\xED\x9F\xBF",
                                        "\xEE\x80\x80",
                                        "\xF0\x9F\x9A\x97",
                                        "\xF4\x8F\xBF\xBF",
                                        "plain text that goes on for more than a vector; "};
    uint32_t random = 99;
    for (unsigned round = 0; round < 20000; round++) {
        char text[400];
        size_t length = 0, room = 1 + round % 200;
        while (length < room) {
            random = random * 1664525 + 1013904223;
            const char *word = words[(random >> 16) % (sizeof words / sizeof words[0])];
            memcpy(text + length, word, strlen(word));
            length += strlen(word);
        }
        if (round % 3) {
            random = random * 1664525 + 1013904223;
            text[(random >> 8) % length] = (char)(random >> 24);
        }
        if (round % 5 == 0)
            length = room; /* may end within a character */
        bool valid = valid_by_definition((uint8_t *)text, length);
        assert_int_equal(sl_utf8_valid(text, length, NULL), valid);
        for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd))
            assert_int_equal(simd->utf8_valid(text, length), valid);
    }
}

TEST(the_first_bad_byte_is_named) {
    static const struct {
        const char *text;
        size_t where;
    } rows[] = {
        {"\xFF", 0},      {"ab\x80", 2},           {"\xC5\xBBUK \xE9t\xE9", 5}, {"\xED\xA0\x80", 0},
        {"x\xC0\xAF", 1}, {"\xF4\x90\x80\x80", 0}, {"ok \xE2\x82", 3},          {"\xF0\x9F\x98", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t where = 99;
        assert_false(sl_utf8_valid(rows[i].text, strlen(rows[i].text), &where));
        assert_int_equal(where, rows[i].where);
    }
}

/* The fast check that skips validation: an error at any position would accept invalid bytes. */
TEST(plain_means_ascii_without_nul) {
    for (size_t length = 0; length <= 40; length++) {
        char text[64];
        memset(text, '\xFF', sizeof text); /* bytes after the text must not affect the result */
        memset(text, 'a', length);
        assert_true(sl_text_is_plain(text, length));
        for (size_t at = 0; at < length; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                text[at] = (char)byte;
                assert_int_equal(sl_text_is_plain(text, length), byte >= 1 && byte < 0x80);
            }
            text[at] = 'a';
        }
    }
}

TEST(encodings_become_utf8) {
    static const struct {
        const char *name, *bytes, *text; /* text NULL: the last byte is undefined */
    } rows[] = {
        {"latin-1", "\x80 \x81\x8D\x8F\x90\x9D \x9F\xA0\xE9\xFFz",
         "\u20AC \xC2\x81\xC2\x8D\xC2\x8F\xC2\x90\xC2\x9D \u0178\u00A0\u00E9\u00FFz"},
        {"ISO_8859-1", "\xE9", "\u00E9"},
        {"Windows-1252", "\x93", "\u201C"},
        {"cp1252", "M\x81", NULL}, /* of DOS */
        {"iso-8859-15", "\xA4", "\u20AC"},
        {"iso-8859-2", "\xB1 \x9C", NULL}, /* windows-1250 */
        {"windows-1251", "\xCC\xEE", "\u041C\u043E"},
        {"cp1251", "a\x98", NULL},
        {"koi8-r", "\xC5\xA3", "\u0435\u0451"}, /* also UTF-8, of another letter */
    };
    uint8_t out[64];
    sl_encoding *encoding;
    sl_error error = {0};
    size_t where = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(sl_encoding_create(rows[i].name, &encoding, &error));
        uint8_t *end = sl_encoding_put(encoding, out, sl_text_of(rows[i].bytes), &where);
        assert_int_equal(end == NULL, rows[i].text == NULL);
        if (end) {
            *end = 0;
            assert_string_equal((char *)out, rows[i].text);
        } else {
            assert_int_equal(where, strlen(rows[i].bytes) - 1);
        }
        free(encoding);
    }
    assert_true(sl_encoding_create("UTF-8", &encoding, &error));
    assert_null(encoding);
}

TEST(encodings_that_are_not_single_bytes_with_ascii_are_refused) {
    static const char *const names[] = {"utf-16", "shift_jis", "gbk",
                                        "utf-7",  "ibm037",    "nonsense"};
    sl_encoding *encoding;
    sl_error error = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_false(sl_encoding_create(names[i], &encoding, &error));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        assert_non_null(strstr(error.message, "iconv"));
        error = (sl_error){0};
    }
}
