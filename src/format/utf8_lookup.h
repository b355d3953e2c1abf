/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 checked a vector at a time, for instruction sets with a byte shuffle.
 *
 * Whether a byte may follow another byte depends on three nibbles: both nibbles of the first byte,
 * and the upper one of the second. For each nibble a table gives the set of faults that are
 * possible with it; the intersection of the three sets is the pair's faults. This finds all faults
 * of two neighbouring bytes: a lead byte without a continuation, a continuation without a lead
 * byte, overlong forms, surrogates, numbers above U+10FFFF. The remaining check is for the third
 * byte of three-byte and the third and fourth of four-byte characters. They are continuations that
 * follow continuations, for which the tables give TWO_CONTINUATIONS: this is correct if and only if
 * a lead byte of a three- or four-byte character is two positions before, or a lead byte of a
 * four-byte character three positions before.
 *
 * Includers define: utf8_vec, UTF8_VEC (bytes), utf8_load, utf8_set, utf8_zero, utf8_or, utf8_and,
 * utf8_xor, utf8_less (saturating minus), utf8_upper (nibble of each byte), utf8_lookup (in 16
 * bytes, by numbers below 16), utf8_before(now, last, n) (for each byte of `now`, the byte n
 * positions before it), utf8_any (bit set), utf8_any_high. */
#ifndef SHARDLOAD_UTF8_LOOKUP_H
#define SHARDLOAD_UTF8_LOOKUP_H

enum {
    TOO_SHORT = 1,          /* 11______ and then no continuation */
    TOO_LONG = 2,           /* 0_______ and then a continuation */
    OVERLONG_2 = 4,         /* 1100000_ 10______ */
    OVERLONG_3 = 8,         /* 11100000 100_____ */
    SURROGATE = 16,         /* 11101101 101_____ */
    OVERLONG_4 = 32,        /* 11110000 1000____, and 11110101 and up with 1000____ */
    TOO_LARGE = 64,         /* 11110100 and up with 1001____ or 101_____ */
    TWO_CONTINUATIONS = 128 /* 10______ 10______ */
};
#define TOO_LARGE_1000 OVERLONG_4
#define ANY_LOW (TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS) /* independent of the lower nibble */

static const uint8_t utf8_first_upper[16] = {
    [0 ... 7] = TOO_LONG,
    [8 ... 11] = TWO_CONTINUATIONS,
    [12] = TOO_SHORT | OVERLONG_2,
    [13] = TOO_SHORT,
    [14] = TOO_SHORT | OVERLONG_3 | SURROGATE,
    [15] = TOO_SHORT | OVERLONG_4 | TOO_LARGE | TOO_LARGE_1000,
};

static const uint8_t utf8_first_lower[16] = {
    [0] = ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4,
    [1] = ANY_LOW | OVERLONG_2,
    [2 ... 3] = ANY_LOW,
    [4] = ANY_LOW | TOO_LARGE,
    [5 ... 12] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000,
    [13] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000 | SURROGATE,
    [14 ... 15] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000,
};

#define CONTINUATION (TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS)
static const uint8_t utf8_second_upper[16] = {
    [0 ... 7] = TOO_SHORT,
    [8] = CONTINUATION | OVERLONG_3 | OVERLONG_4 | TOO_LARGE_1000,
    [9] = CONTINUATION | OVERLONG_3 | TOO_LARGE,
    [10 ... 11] = CONTINUATION | SURROGATE | TOO_LARGE,
    [12 ... 15] = TOO_SHORT,
};
#undef CONTINUATION
#undef ANY_LOW
#undef TOO_LARGE_1000

/* The faults of the bytes of `now`, which follows `last` in the text; zero: none. */
static inline utf8_vec utf8_faults(utf8_vec now, utf8_vec last) {
    utf8_vec before = utf8_before(now, last, 1);
    utf8_vec first = utf8_and(utf8_lookup(utf8_first_upper, utf8_upper(before)),
                              utf8_lookup(utf8_first_lower, utf8_and(before, utf8_set(0x0F))));
    utf8_vec pair = utf8_and(first, utf8_lookup(utf8_second_upper, utf8_upper(now)));
    utf8_vec third = utf8_less(utf8_before(now, last, 2), utf8_set(0xE0 - 0x80));
    utf8_vec fourth = utf8_less(utf8_before(now, last, 3), utf8_set(0xF0 - 0x80));
    return utf8_xor(pair, utf8_and(utf8_or(third, fourth), utf8_set(0x80)));
}

static bool utf8_valid(const char *text, size_t length) {
    utf8_vec faults = utf8_zero(), last = utf8_zero();
    bool open = false; /* `last` has bytes above 0x7F, so it may end within a character */
    size_t at = 0;
    for (; at + UTF8_VEC <= length; at += UTF8_VEC) {
        utf8_vec now = utf8_load(text + at);
        bool high = utf8_any_high(now);
        if (high | open)
            faults = utf8_or(faults, utf8_faults(now, last));
        open = high;
        last = now;
    }
    char rest[UTF8_VEC] = {0}; /* padded with NULs, which detects an incomplete last character */
    memcpy(rest, text + at, length - at);
    faults = utf8_or(faults, utf8_faults(utf8_load(rest), last));
    return !utf8_any(faults);
}

#endif
