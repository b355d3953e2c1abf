/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder of Deflate64: matches of each length and distance, however the data are divided; each
 * kind of damage is named with its position. The blocks are written bit by bit. */
#include "source/zip.h"

#include "unit.h"

typedef struct written {
    unsigned char bytes[80000];
    size_t bits;
} written;

static written data;

static void put(uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; i++, data.bits++) {
        if (data.bits % 8 == 0)
            data.bytes[data.bits / 8] = 0;
        data.bytes[data.bits / 8] |=
            (unsigned char)(((i < 32 ? value >> i : 0) & 1) << data.bits % 8);
    }
}

/* Writes the first bit of a word of a prefix code first. */
static void put_word(uint32_t word, unsigned count) {
    while (count-- > 0)
        put(word >> count & 1, 1);
}

static void put_stored(const unsigned char *bytes, uint32_t length, bool last) {
    put(last, 3);
    data.bits = (data.bits + 7) / 8 * 8;
    put(length, 16);
    put(length ^ 0xFFFF, 16);
    for (uint32_t i = 0; i < length; i++)
        put(bytes[i], 8);
}

/* A match in a block with the fixed codes. */
static void put_match(unsigned code, uint32_t more, unsigned bits, unsigned distance,
                      uint32_t distance_more, unsigned distance_bits) {
    if (code < 280)
        put_word(code - 256, 7);
    else
        put_word(code - 280 + 0xC0, 8);
    put(more, bits);
    put_word(distance, 5);
    put(distance_more, distance_bits);
}

static bool fetch(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    size_t left = (data.bits + 7) / 8 - (size_t)input->offset;
    size_t piece = *(size_t *)input->context;
    (void)times, (void)error;
    *got = left < piece ? left : piece;
    *got = *got < room ? *got : room;
    memcpy(out, data.bytes + input->offset, *got);
    return true;
}

static unsigned char output[400000];

/* Unpacks the data in pieces of input and output; returns the number of bytes. */
static size_t unpack(size_t piece, size_t room, sl_error *error) {
    sl_input input = {.fetch = fetch, .context = &piece, .name = "x.zip"};
    sl_inflate64 *inflate = malloc(sizeof *inflate);
    sl_reader_times times = {0};
    *error = (sl_error){0};
    assert_true(inflate && sl_input_init(&input, 64, error));
    sl_inflate64_begin(inflate, &input);
    size_t total = 0, got = 1;
    while (got > 0 &&
           sl_inflate64_read(inflate, output + total, room, &got, "x.zip: a", &times, error))
        total += got;
    if (!error->code)
        assert_int_equal(sl_input_position(&input), (data.bits + 7) / 8);
    sl_input_clear(&input);
    free(inflate);
    return total;
}

/* The data must be refused; new data begin. */
static void assert_error(const char *part, const char *where) {
    sl_error error;
    unpack(1000, 1000, &error);
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    if (!strstr(error.message, part) || !strstr(error.message, where) ||
        strncmp(error.message, "x.zip: a: ", 10) != 0)
        fail_msg("%s", error.message);
    data.bits = 0;
}

TEST(long_matches_and_far_distances) {
    static unsigned char expected[sizeof output];
    size_t length = 60000;
    for (size_t i = 0; i < length; i++)
        expected[i] = (unsigned char)(i * i >> 7);
    data.bits = 0;
    put_stored(expected, (uint32_t)length, false);
    put(3, 3);                            /* the last block, with the fixed codes */
    put_match(285, 65535, 16, 2, 0, 0);   /* 65,538 bytes at the distance 3 */
    put_match(285, 0, 16, 31, 16383, 14); /* 3 bytes at the distance 65,536 */
    put_match(285, 65535, 16, 31, 16383, 14);
    put_match(257, 0, 0, 30, 0, 14); /* 3 bytes at the distance 32,769 */
    put_word(0x30 + 'x', 8);
    put_word(0, 7);
    static const struct {
        size_t length, distance;
    } matches[] = {{65538, 3}, {3, 65536}, {65538, 65536}, {3, 32769}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t left = matches[i].length; left > 0; left--, length++)
            expected[length] = expected[length - matches[i].distance];
    }
    expected[length++] = 'x';
    static const size_t sizes[] = {1, 7, 63, 64, 65535, 65536, 65537, sizeof output};
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            sl_error error;
            if (sizes[j] == sizeof output && i == 0)
                continue;
            size_t room = sizes[j] < sizeof output ? sizes[j] : sizeof output - length;
            memset(output, 0, sizeof output);
            assert_int_equal(unpack(sizes[i], room, &error), length);
            assert_int_equal(error.code, 0);
            assert_memory_equal(output, expected, length);
        }
    }
}

TEST(damage_is_named_with_its_position) {
    data.bits = 0;
    put(7, 3);
    put(0, 13);
    assert_error("a block of an unknown kind", "near byte 0 ");
    put_stored((const unsigned char *)"abcdefgh", 8, true);
    data.bytes[3] ^= 1;
    assert_error("its complement", "near byte 5 ");
    put_stored((const unsigned char *)"abcdefgh", 8, true);
    data.bits -= 8;
    assert_error("end early at byte 12 ", "after 7 bytes");
    put(3, 3);
    put_word(0x30 + 'x', 8);
    put_match(257, 0, 0, 1, 0, 0); /* the distance 2 after one byte */
    put(0, 32);
    assert_error("a distance to before the beginning", "near byte 2 ");
    put(3, 3);
    put_match(286, 0, 0, 0, 0, 0);
    put(0, 32);
    assert_error("an invalid length", "near byte 1 ");
    put(5, 3);
    put(30, 5); /* 287 codes of literals and lengths */
    put(0, 32);
    assert_error("too many codes of lengths", "near byte ");
    put(5, 3);
    put(0, 14);
    for (int i = 0; i < 4; i++)
        put(1, 3); /* four words of one bit */
    put(0, 32);
    assert_error("the code of code lengths is invalid", "near byte ");
}

/* Writes a dynamic block's head with the words of two bits for the lengths 0, 1 and the repetitions
 * 16 and 18. */
static void put_dynamic_head(void) {
    static const unsigned order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
    put(5, 3);
    put(0, 5);
    put(1, 5); /* two distances */
    put(15, 4);
    for (unsigned i = 0; i < 19; i++)
        put(order[i] <= 1 || order[i] == 16 || order[i] == 18 ? 2 : 0, 3);
}

TEST(dynamic_codes_are_checked) {
    data.bits = 0;
    put_dynamic_head(); /* the words: 0 is 00, 1 is 01, 16 is 10, 18 is 11 */
    put_word(2, 2);
    put(0, 40);
    assert_error("the first code length is a repetition", "near byte ");
    put_dynamic_head();
    for (int i = 0; i < 3; i++) {
        put_word(3, 2);
        put(127, 7); /* 138 zeros, three times */
    }
    put(0, 40);
    assert_error("too many code lengths", "near byte ");
    put_dynamic_head();
    put_word(3, 2);
    put(127, 7);
    put_word(3, 2);
    put(121 - 11 - 1, 7); /* 258 zeros */
    put_word(0, 2);
    put(0, 80);
    assert_error("a block has no code for its end", "near byte ");
    put_dynamic_head();
    for (int i = 0; i < 3; i++)
        put_word(1, 2); /* three words of one bit */
    put_word(3, 2);
    put(127, 7);
    put_word(3, 2);
    put(256 - 3 - 138 - 11, 7);
    put_word(1, 2);
    put_word(0, 2);
    put_word(0, 2);
    put(0, 80);
    assert_error("the code of literals is invalid", "near byte ");
}
