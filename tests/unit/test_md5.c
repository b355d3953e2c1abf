/* SPDX-License-Identifier: Apache-2.0 */
/* MD5, compared with the digests in RFC 1321. An error here would compute wrong owners for all
 * documents of a collection with a hashed key. */
#include "unit.h"
#include "util/hash.h"

static void hex_of(sl_md5 *md5, char hex[33]) {
    uint8_t digest[SL_MD5_BYTES];
    sl_md5_end(md5, digest);
    for (int i = 0; i < SL_MD5_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Section A.5 of the RFC. */
static const struct {
    const char *text, *digest;
} vectors[] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e"},
    {"a", "0cc175b9c0f1b6a831c399e269772661"},
    {"abc", "900150983cd24fb0d6963f7d28e17f72"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
    {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
     "d174ab98d277d9f5a5611c2c9f419d9f"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
     "57edf4a22be3c955ac49da2e2107b67a"},
};

TEST(the_published_digests) {
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        sl_md5 md5;
        char hex[33];
        sl_md5_begin(&md5);
        sl_md5_add(&md5, vectors[i].text, strlen(vectors[i].text));
        hex_of(&md5, hex);
        assert_string_equal(hex, vectors[i].digest);
    }
}

/* The digest does not depend on how the text is divided into pieces: every length around the block
 * size, divided at every position. */
TEST(pieces_do_not_change_the_digest) {
    char text[200], whole[33], hex[33];
    sl_md5 md5;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t length = 50; length < sizeof text; length++) {
        sl_md5_begin(&md5);
        for (size_t i = 0; i < length; i++)
            sl_md5_add(&md5, text + i, 1);
        hex_of(&md5, whole);
        for (size_t cut = 0; cut <= length; cut++) {
            sl_md5_begin(&md5);
            sl_md5_add(&md5, text, cut);
            sl_md5_add(&md5, text + cut, length - cut);
            hex_of(&md5, hex);
            assert_string_equal(hex, whole);
        }
    }
}

/* Lengths with the longest and the shortest padding; digests by another implementation. */
TEST(lengths_around_the_padding) {
    static const struct {
        size_t length;
        const char *digest;
    } rows[] = {
        {55, "04364420e25c512fd958a70738aa8f72"},  {56, "668a72d5ba17f08e62dabcafad6db14b"},
        {57, "693037871c4a9d3d8685018905cb530a"},  {63, "7dc2ca208106a2f703567bdff99d8981"},
        {64, "c1bb4f81d892b2d57947682aeb252456"},  {65, "1bc932052302d074bdec39795fe00cf6"},
        {119, "ab347a5f68c8a443cfcddc633f12c24f"}, {120, "fb98667f98096de92620b64f46e1c5b5"},
        {121, "e8bb0ccd83750100b37f4831cd5d7ee2"}, {128, "d69cb61a6ee87200676eb0d4b90edbcb"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200], hex[33];
        sl_md5 md5;
        memset(text, 'x', sizeof text);
        sl_md5_begin(&md5);
        sl_md5_add(&md5, text, rows[i].length);
        hex_of(&md5, hex);
        assert_string_equal(hex, rows[i].digest);
    }
}
