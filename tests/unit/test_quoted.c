/* SPDX-License-Identifier: Apache-2.0 */
/* Where records with quoted line ends end: the kernels of all instruction sets against a search
 * byte by byte, for every position of a block's end. */
#include "unit.h"

#include "format/kernels.h"

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Text of which long pieces are well-formed, and others are any bytes. */
static void make_text(char *text, size_t length, uint32_t *seed) {
    static const char any[] = "\"\"\",,\n\r\\ab";
    static const char *const pieces[] = {
        "\"x\ny\"", "\"a\"\"b\"", "plain",     "\"\"", "\"\"\"\n\"\"\"",
        "1",        "\"c:\\\"",   "a,b\n\"q,", "\n",   "5\" disk"};
    size_t at = 0;
    while (at < length) {
        if (next_random(seed) % 64 == 0) {
            for (uint32_t more = next_random(seed) % 8; more > 0 && at < length; more--)
                text[at++] = any[next_random(seed) % (sizeof any - 1)];
            continue;
        }
        const char *piece = pieces[next_random(seed) % (next_random(seed) % 8 == 0 ? 10 : 6)];
        for (; *piece && at < length; piece++)
            text[at++] = *piece;
        if (at < length)
            text[at++] = next_random(seed) % 4 == 0 ? '\n' : ',';
    }
}

TEST(all_versions_find_the_same_ends) {
    static const char escapes[] = {0, '\\'};
    enum { LENGTH = 700 };
    char text[LENGTH + SL_SLACK];
    uint32_t seed = 11;
    unsigned versions = 0;
    for (size_t v = 0; sl_simds[v]; v++) {
        if (!sl_simd_supported(sl_simds[v]))
            continue;
        versions++;
        for (unsigned round = 0; round < 300; round++) {
            sl_dialect dialect = {.delimiter = ',',
                                  .quote = '"',
                                  .escape = escapes[round % 4 == 0],
                                  .simd = sl_simds[v]};
            size_t length = 1 + next_random(&seed) % LENGTH;
            make_text(text, length, &seed);
            memset(text + length, '"', SL_SLACK);
            for (size_t least = 1; least <= length; least += 1 + next_random(&seed) % 40) {
                sl_quote_state slow = SL_AT_FIELD;
                size_t expected = sl_quoted_end(&dialect, text, 0, length, least, &slow);
                sl_split split = {.context = &dialect};
                assert_int_equal(
                    sl_quoted_splitter.find_end(&split, (sl_text){text, length}, least, true),
                    expected > 0 ? expected : length);
                /* The text arrives in two pieces. */
                size_t first = 1 + next_random(&seed) % length;
                sl_split again = {.context = &dialect};
                size_t end =
                    sl_quoted_splitter.find_end(&again, (sl_text){text, first}, least, false);
                if (end == 0)
                    end = sl_quoted_splitter.find_end(&again, (sl_text){text, length}, least, true);
                assert_int_equal(end, expected > 0 ? expected : length);
            }
        }
    }
    assert_true(versions > 0);
}

TEST(a_field_that_is_never_closed_ends_the_search) {
    const size_t length = SL_BSON_DOCUMENT_MAX + 4096;
    char *text = unit_keep(malloc(length + SL_SLACK));
    memset(text, '\n', length + SL_SLACK);
    text[0] = '"';
    sl_dialect dialect = {.delimiter = ',', .quote = '"', .simd = sl_simds[0]};
    for (size_t v = 0; !sl_simd_supported(dialect.simd); v++)
        dialect.simd = sl_simds[v];
    sl_split split = {.context = &dialect};
    assert_int_equal(sl_quoted_splitter.find_end(&split, (sl_text){text, 4096}, 1024, false), 0);
    assert_int_equal(sl_quoted_splitter.find_end(&split, (sl_text){text, length}, 1024, false),
                     length);
}
