/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of documents. Reports store its values and compare them years later: a changed hash
 * would make equal collections look different. */
#include "unit.h"
#include "util/hash.h"

static uint64_t hash_of(const char *text) {
    return sl_hash((const uint8_t *)text, strlen(text));
}

TEST(values_do_not_change) {
    assert_true(hash_of("") == UINT64_C(0x1674c442a5b4d68c));
    assert_true(hash_of("a") == UINT64_C(0xe28fc20d11def0aa));
    assert_true(hash_of("The quick brown fox jumps over the lazy dog") ==
                UINT64_C(0x72833786032a8174));
}

TEST(every_bit_and_the_length_matter) {
    uint8_t bytes[100] = {0};
    for (size_t length = 1; length <= sizeof bytes; length++) {
        uint64_t before = sl_hash(bytes, length);
        assert_true(before != sl_hash(bytes, length - 1)); /* although all bytes are zero */
        for (size_t bit = 0; bit < length * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_true(sl_hash(bytes, length) != before);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

/* Texts can be chosen whose sl_hash is equal; for whoever does not know the seed they differ. */
TEST(a_seed_divides_texts_that_were_chosen_to_collide) {
    uint64_t words[2] = {1, SL_HASH_A ^ sizeof words}, other[2] = {2, words[1]};
    const uint8_t *one = (const uint8_t *)words, *two = (const uint8_t *)other;
    assert_true(sl_hash(one, sizeof words) == sl_hash(two, sizeof words));
    assert_true(sl_seeded_hash(one, sizeof words, 7) != sl_seeded_hash(two, sizeof words, 7));
    assert_true(sl_seeded_hash(one, sizeof words, 7) != sl_seeded_hash(one, sizeof words, 8));
    assert_true(sl_seeded_hash(one, 16, 7) != sl_seeded_hash(one, 15, 7));
    assert_true(sl_process_seed() == sl_process_seed());
    /* The value of another implementation, which has the test vector of SipHash-2-4. */
    assert_true(sl_seeded_hash("0123456789abcde", 15, 7) == UINT64_C(0x3cf64cf778eb9bc4));
}

/* Changing one bit of a document must change each bit of the hash with a probability of about one
 * half, so that errors do not cancel in a sum of hashes. */
TEST(one_bit_changes_half_of_the_hash) {
    uint8_t bytes[64];
    unsigned changed[64] = {0}, tries = 0;
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    uint64_t before = sl_hash(bytes, sizeof bytes);
    for (; tries < sizeof bytes * 8; tries++) {
        bytes[tries / 8] ^= (uint8_t)(1 << tries % 8);
        uint64_t difference = before ^ sl_hash(bytes, sizeof bytes);
        bytes[tries / 8] ^= (uint8_t)(1 << tries % 8);
        for (unsigned bit = 0; bit < 64; bit++)
            changed[bit] += (unsigned)(difference >> bit & 1);
    }
    for (unsigned bit = 0; bit < 64; bit++)
        assert_in_range(changed[bit], tries / 3, tries * 2 / 3);
}

TEST(every_byte_and_the_length_of_a_text_matter) {
    static const size_t lengths[] = {0, 1, 15, 16, 63, 64, 65, 127, 128, 200};
    char bytes[201] = {0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint64_t before = sl_hash_text(bytes, lengths[i]);
        assert_true(before !=
                    sl_hash_text(bytes, lengths[i] + 1)); /* although all bytes are zero */
        for (size_t at = 0; at < lengths[i]; at++) {
            bytes[at] = 1;
            assert_true(sl_hash_text(bytes, lengths[i]) != before);
            bytes[at] = 0;
        }
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 37);
    for (size_t at = 0; at + 16 < 192; at++) { /* two bytes are exchanged */
        uint64_t before = sl_hash_text(bytes, sizeof bytes);
        char kept = bytes[at];
        bytes[at] = bytes[at + 16];
        bytes[at + 16] = kept;
        assert_true(sl_hash_text(bytes, sizeof bytes) != before);
        bytes[at + 16] = bytes[at];
        bytes[at] = kept;
    }
}
