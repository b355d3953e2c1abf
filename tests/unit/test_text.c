/* SPDX-License-Identifier: Apache-2.0 */
/* Sized text: what a user types as sizes and times, what must never reach a log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <shardload/histogram.h>
#include <shardload/text.h>

static void sizes_as_people_write_them(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},          {"500000", 500000},   {"64KiB", 65536},   {"64k", 65536},
                {"8MB", 8000000},  {"16mib", 16777216},  {"2G", 2147483648}, {"1tb", 1000000000000}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 1;
        assert_true(sl_text_to_bytes(sl_text_of(good[i].text), &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"", "k", "-1", "1.5M", "12 M", "99999999999999999999",
                                      "20000000000G", "5X"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 77;
        assert_false(sl_text_to_bytes(sl_text_of(bad[i]), &bytes));
    }
}

static void counts_as_people_write_them(void **state) {
    (void)state;
    uint64_t count;
    assert_true(sl_text_to_count(sl_text_of("0"), &count) && count == 0);
    assert_true(sl_text_to_count(sl_text_of("10k"), &count) && count == 10000);
    assert_true(sl_text_to_count(sl_text_of("100M"), &count) && count == 100000000);
    assert_true(sl_text_to_count(sl_text_of("2g"), &count) && count == 2000000000);
    assert_true(sl_text_to_count(sl_text_of("1T"), &count) && count == 1000000000000);
    static const char *const bad[] = {"", "k", "-1", "1.5M", "12 M", "1KiB", "1MB",
                                      "99999999999T"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sl_text_to_count(sl_text_of(bad[i]), &count));
}

static void times_as_people_write_them(void **state) {
    (void)state;
    double seconds;
    assert_true(sl_text_to_seconds(sl_text_of("90"), &seconds) && seconds == 90);
    assert_true(sl_text_to_seconds(sl_text_of("15m"), &seconds) && seconds == 900);
    assert_true(sl_text_to_seconds(sl_text_of("4h"), &seconds) && seconds == 14400);
    assert_false(sl_text_to_seconds(sl_text_of("h"), &seconds));
    assert_false(sl_text_to_seconds(sl_text_of("4 h"), &seconds));
}

static void utf8_is_judged_as_the_standard_does(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        int where; /* -1: valid */
    } rows[] = {
        {"plain", 5, -1},
        {"\xC5\xBBUK", 4, -1},             /* a letter of two bytes */
        {"\xE2\x82\xAC", 3, -1},           /* three */
        {"\xF0\x9F\x9A\x97", 4, -1},       /* four */
        {"\xF4\x8F\xBF\xBF", 4, -1},       /* the last code point */
        {"a\xE9", 2, 1},                   /* Latin-1 */
        {"\xC0\xAF", 2, 0},                /* overlong */
        {"\xE0\x9F\xBF", 3, 0},            /* overlong */
        {"\xED\xA0\x80", 3, 0},            /* a surrogate */
        {"\xF4\x90\x80\x80", 4, 0},        /* beyond the last code point */
        {"ok\x80", 3, 2},                  /* a continuation without a lead */
        {"\xE2\x82", 2, 0},                /* cut off */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t where = 99;
        assert_int_equal(sl_utf8_valid(rows[i].bytes, rows[i].length, &where), rows[i].where < 0);
        if (rows[i].where >= 0)
            assert_int_equal(where, rows[i].where);
    }
}

static void printable_text_is_safe_on_a_terminal(void **state) {
    (void)state;
    char out[64];
    sl_text_printable((sl_text){"a\tb\x1B[31m\xC5\xBB\xFF", 11}, out, sizeof out);
    assert_string_equal(out, "a\\x09b\\x1b[31m\xC5\xBB\\xff");
    /* U+009B begins a command as ESC [ does; U+00A0 is but a blank. */
    sl_text_printable(sl_text_of("\xC2\x9B" "31m\xC2\xA0"), out, sizeof out);
    assert_string_equal(out, "\\xc2\\x9b31m\xC2\xA0");
    char small[8];
    sl_text_printable(sl_text_of("abcdefghijk"), small, sizeof small);
    assert_string_equal(small, "abcd...");
    sl_text_printable(sl_text_of("abcdefg"), small, sizeof small);
    assert_string_equal(small, "abcdefg");
}

static void figures_read_well(void **state) {
    (void)state;
    char out[SL_HUMAN_ROOM];
    assert_string_equal(sl_human_count(1234567, out), "1,234,567");
    assert_string_equal(sl_human_count(12, out), "12");
    assert_string_equal(sl_human_bytes(85200000, out), "85.2 MB");
    assert_string_equal(sl_human_bytes(999, out), "999 B");
    assert_string_equal(sl_human_seconds(200, out), "3 min 20 s");
    assert_string_equal(sl_human_seconds(14700, out), "4 h 05 min");
}

static void passwords_do_not_survive_redaction(void **state) {
    (void)state;
    static const struct {
        const char *uri;
        const char *shown;
    } rows[] = {
        {"mongodb://127.0.0.1:27017/", "mongodb://127.0.0.1:27017/"},
        {"mongodb://ann:secret@a,b/?ssl=true", "mongodb://***@a,b/?ssl=true"},
        {"mongodb://ann:se@cret@a/", "mongodb://***@a/"},     /* not escaped, as people do */
        {"mongodb://ann:se/cret@a/", "mongodb://***@a/"},
        {"ann:secret@a", "***@a"},                              /* the scheme forgotten */
        {"mongodb://a/?tlsCertificateKeyFilePassword=abc&x=1",
         "mongodb://a/?tlsCertificateKeyFilePassword=***&x=1"},
        {"mongodb://ann:s@cret/two@three?x@a/", "mongodb://***@a/"}, /* all at once */
        {"mongodb://a/?x=1&TLSCertificateKeyFilePassword=abc", /* any case, and at the end */
         "mongodb://a/?x=1&TLSCertificateKeyFilePassword=***"},
        {"mongodb://a/?authMechanismProperties=T:1&tlsCertificateKeyFilePassword=b&tls=true&"
         "tlsCertificateKeyFilePassword=c",
         "mongodb://a/?authMechanismProperties=***&tlsCertificateKeyFilePassword=***&tls=true&"
         "tlsCertificateKeyFilePassword=***"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *shown = sl_redact_uri(rows[i].uri);
        assert_string_equal(shown, rows[i].shown);
        free(shown);
    }
}

static void quantiles_are_near_the_truth(void **state) {
    (void)state;
    sl_histogram *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    for (uint64_t i = 1; i <= 100000; i++)
        sl_histogram_add(i % 2 ? a : b, i * 1000);
    sl_histogram_merge(a, b);
    assert_int_equal(a->count, 100000);
    assert_int_equal(a->minimum, 1000);
    assert_int_equal(sl_histogram_quantile(a, 1), 100000000);
    static const double quantiles[] = {0.01, 0.5, 0.9, 0.99, 0.999};
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        double truth = quantiles[i] * 100000000;
        double found = (double)sl_histogram_quantile(a, quantiles[i]);
        assert_true(found >= truth && found <= truth * 1.0626);
    }
    sl_histogram empty = {0};
    assert_int_equal(sl_histogram_quantile(&empty, 0.5), 0);
    free(a);
    free(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_as_people_write_them),
        cmocka_unit_test(counts_as_people_write_them),
        cmocka_unit_test(times_as_people_write_them),
        cmocka_unit_test(utf8_is_judged_as_the_standard_does),
        cmocka_unit_test(printable_text_is_safe_on_a_terminal),
        cmocka_unit_test(figures_read_well),
        cmocka_unit_test(passwords_do_not_survive_redaction),
        cmocka_unit_test(quantiles_are_near_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
