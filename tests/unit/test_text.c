/* SPDX-License-Identifier: Apache-2.0 */
/* Text: sizes and times as users write them, printing of foreign text, removal of passwords. */
#include <inttypes.h>
#include <sys/types.h>

#include "unit.h"
#include "util/error.h"
#include "util/histogram.h"
#include "util/text.h"

TEST(sizes_as_people_write_them) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},         {"500000", 500000},  {"64KiB", 65536},   {"64k", 65536},
                {"8MB", 8000000}, {"16mib", 16777216}, {"2G", 2147483648}, {"1tb", 1000000000000}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 1;
        assert_true(sl_text_to_bytes(sl_text_of(good[i].text), &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {
        "", "k", "-1", "1.5M", "12 M", "99999999999999999999", "20000000000G", "5X"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 77;
        assert_false(sl_text_to_bytes(sl_text_of(bad[i]), &bytes));
    }
}

TEST(counts_as_people_write_them) {
    uint64_t count;
    assert_true(sl_text_to_count(sl_text_of("0"), &count) && count == 0);
    assert_true(sl_text_to_count(sl_text_of("10k"), &count) && count == 10000);
    assert_true(sl_text_to_count(sl_text_of("100M"), &count) && count == 100000000);
    assert_true(sl_text_to_count(sl_text_of("2g"), &count) && count == 2000000000);
    assert_true(sl_text_to_count(sl_text_of("1T"), &count) && count == 1000000000000);
    static const char *const bad[] = {"", "k", "-1", "1.5M", "12 M", "1KiB", "1MB", "99999999999T"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(sl_text_to_count(sl_text_of(bad[i]), &count));
}

TEST(times_as_people_write_them) {
    double seconds;
    assert_true(sl_text_to_seconds(sl_text_of("90"), &seconds) && seconds == 90);
    assert_true(sl_text_to_seconds(sl_text_of("15m"), &seconds) && seconds == 900);
    assert_true(sl_text_to_seconds(sl_text_of("4h"), &seconds) && seconds == 14400);
    assert_false(sl_text_to_seconds(sl_text_of("h"), &seconds));
    assert_false(sl_text_to_seconds(sl_text_of("4 h"), &seconds));
}

TEST(utf8_is_checked_by_the_standard) {
    static const struct {
        const char *bytes;
        size_t length;
        int where; /* -1: valid */
    } rows[] = {
        {"plain", 5, -1},
        {"\xC5\xBBUK", 4, -1},       /* a letter of two bytes */
        {"\xE2\x82\xAC", 3, -1},     /* three */
        {"\xF0\x9F\x9A\x97", 4, -1}, /* four */
        {"\xF4\x8F\xBF\xBF", 4, -1}, /* the last code point */
        {"a\xE9", 2, 1},             /* Latin-1 */
        {"\xC0\xAF", 2, 0},          /* overlong */
        {"\xE0\x9F\xBF", 3, 0},      /* overlong */
        {"\xED\xA0\x80", 3, 0},      /* a surrogate */
        {"\xF4\x90\x80\x80", 4, 0},  /* beyond the last code point */
        {"ok\x80", 3, 2},            /* a continuation without a lead */
        {"\xE2\x82", 2, 0},          /* cut off */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t where = 99;
        assert_int_equal(sl_utf8_valid(rows[i].bytes, rows[i].length, &where), rows[i].where < 0);
        if (rows[i].where >= 0)
            assert_int_equal(where, rows[i].where);
    }
}

TEST(printable_text_is_safe_on_a_terminal) {
    char out[64];
    sl_text_printable((sl_text){"a\tb\x1B[31m\xC5\xBB\xFF", 11}, out, sizeof out);
    assert_string_equal(out, "a\\x09b\\x1b[31m\xC5\xBB\\xff");
    /* U+009B starts a control sequence, like ESC [; U+00A0 is a harmless blank. */
    sl_text_printable(sl_text_of("\xC2\x9B"
                                 "31m\xC2\xA0"),
                      out, sizeof out);
    assert_string_equal(out, "\\xc2\\x9b31m\xC2\xA0");
    /* Direction marks, overrides, isolates, separators and what shows nothing (a byte order mark,
     * tags) are escaped; their neighbours are not. */
    static const char *const control[] = {
        "\xD8\x9C",         "\xE2\x80\x8E", "\xE2\x80\x8F", "\xE2\x80\xA8",
        "\xE2\x80\xA9",     "\xE2\x80\xAA", "\xE2\x80\xAE", "\xE2\x81\xA6",
        "\xE2\x81\xA9",     "\xC2\x80",     "\x7F",         "\n",
        "\xE2\x80\x8B",     "\xE2\x81\xA5", "\xEF\xBB\xBF", "\xF3\xA0\x80\x80",
        "\xF3\xA0\xBF\xBF", "\xC2\xAD"};
    for (size_t i = 0; i < sizeof control / sizeof control[0]; i++) {
        sl_text_printable(sl_text_of(control[i]), out, sizeof out);
        assert_int_equal(strlen(out), 4 * strlen(control[i]));
        assert_null(strpbrk(out, control[i]));
    }
    static const char plain[] =
        "\xD8\x9B \xE2\x80\x8D \xE2\x80\x90 \xE2\x80\xA7 \xE2\x80\xAF \xEF\xB8\x8F "
        "\xE2\x81\xB0 \xF0\x9F\x9A\x97";
    sl_text_printable(sl_text_of(plain), out, sizeof out);
    assert_string_equal(out, plain);
    char small[8];
    sl_text_printable(sl_text_of("abcdefghijk"), small, sizeof small);
    assert_string_equal(small, "abcd...");
    sl_text_printable(sl_text_of("abcdefg"), small, sizeof small);
    assert_string_equal(small, "abcdefg");
}

/* The printer formats these arguments as printf does. */
#define ASSERT_AS_PRINTF(...)                                                                      \
    do {                                                                                           \
        char expected[300], found[300];                                                            \
        int length = snprintf(expected, sizeof expected, __VA_ARGS__);                             \
        assert_int_equal(sl_print_text(found, sizeof found, __VA_ARGS__), length);                 \
        assert_string_equal(found, expected);                                                      \
    } while (0)

TEST(formats_are_those_of_printf) {
    ASSERT_AS_PRINTF("nothing but text\n100 %%\n");
    ASSERT_AS_PRINTF("%d %5d|%-5d|%05d %+d %i", -1, 42, 42, 42, 42, INT32_MIN);
    ASSERT_AS_PRINTF("%u %x %#x %02X %o", 7u, 255u, 255u, 10u, 8u);
    ASSERT_AS_PRINTF("%ld %lld %zu %lu %llu %zd", -3L, INT64_MIN + 0LL, SIZE_MAX, 5ul,
                     UINT64_MAX + 0ull, (ssize_t)-1);
    ASSERT_AS_PRINTF("%" PRId64 " %" PRIu64 " %" PRIu32, INT64_MAX, UINT64_MAX, UINT32_MAX);
    ASSERT_AS_PRINTF("%.1f %8.3f|%-8.2f|%g %.6g %e %.*f %+.1f", 1.25, 3.14159, 2.5, 1e40,
                     123456789.0, 1e-9, 2, 1.005, 3.0);
    ASSERT_AS_PRINTF("%s|%10s|%-10s|%.3s|%.*s|%*s|%c", "abc", "abc", "abc", "abcdef", 2, "xyz", 6,
                     "q", 'c');
    ASSERT_AS_PRINTF("%*s%.*s%*s", 0, "", 3, "abcdef", 4, "");
}

TEST(inserted_texts_are_harmless) {
    char out[100];
    sl_print_text(out, sizeof out, "%s:\n%s", "a\nb\x1B[2J", "\xE2\x80\xAEzyx");
    assert_string_equal(out, "a\\x0ab\\x1b[2J:\n\\xe2\\x80\\xaezyx");
    sl_print_text(out, sizeof out, "%c%.2s", '\x07', "\xC3\xA9\xC3"); /* cut within a character */
    assert_string_equal(out, "\\x07\xC3\xA9");
    sl_print_text(out, sizeof out, "%.1s", "\xC3\xA9");
    assert_string_equal(out, "\\xc3");
    sl_print_text(out, sizeof out, "<" SL_LINES ">", "two\nlines\r\x9B");
    assert_string_equal(out, "<two\nlines\\x0d\\x9b>");
    /* A width counts characters, not bytes. */
    sl_print_text(out, sizeof out, "%-4s|%4s|", "\xC5\xBB", "\xC5\xBBuk");
    assert_string_equal(out, "\xC5\xBB   | \xC5\xBBuk|");
    /* Text that does not fit is cut between characters, and nothing is printed after the cut. */
    char small[6];
    assert_int_equal(sl_print_text(small, sizeof small, "abc%s%s", "\xE2\x82\xAC", "d"), 3);
    assert_string_equal(small, "abc");
    assert_int_equal(sl_print_text(small, sizeof small, "ab%s", "\n"), 2);
    assert_int_equal(sl_print_text(small, sizeof small, "a long literal"), 5);
    assert_int_equal(sl_print_text(small, 0, "x"), 0);
}

TEST(errors_contain_no_foreign_line_ends) {
    sl_error error = {0};
    sl_error_set(&error, SL_EXIT_SOURCE, "%s:\nadvice", "a\nb");
    assert_string_equal(error.message, "a\\x0ab:\nadvice");
    sl_error_prefix(&error, "%s", "c\td");
    assert_string_equal(error.message, "c\\x09d: a\\x0ab:\nadvice");
}

TEST(words_agree_with_their_number) {
    assert_string_equal(sl_plural(1, "file"), "1 file");
    assert_string_equal(sl_plural(1000, "file"), "1,000 files");
    assert_string_equal(sl_plural(1, "batch[|es] of file[s] [is|are]"), "1 batch of file is");
    assert_string_equal(sl_plural(0, "batch[|es] of file[s] [is|are]"), "0 batches of files are");
    assert_string_equal(sl_agreeing(2, "entr[y|ies]"), "entries");
}

TEST(figures_with_units) {
    char out[SL_HUMAN_ROOM];
    assert_string_equal(sl_human_count(1234567, out), "1,234,567");
    assert_string_equal(sl_human_count(12, out), "12");
    assert_string_equal(sl_human_bytes(85200000, out), "85.2 MB");
    assert_string_equal(sl_human_bytes(999, out), "999 B");
    assert_string_equal(sl_human_seconds(200, out), "3 min 20 s");
    assert_string_equal(sl_human_seconds(14700, out), "4 h 05 min");
}

TEST(passwords_are_redacted) {
    static const struct {
        const char *uri;
        const char *shown;
    } rows[] = {
        {"mongodb://127.0.0.1:27017/", "mongodb://127.0.0.1:27017/"},
        {"mongodb://ann:secret@a,b/?ssl=true", "mongodb://***@a,b/?ssl=true"},
        {"mongodb://ann:se@cret@a/", "mongodb://***@a/"}, /* an @ that is not escaped */
        {"mongodb://ann:se/cret@a/", "mongodb://***@a/"},
        /* Without an "@", or with another character in its place. */
        {"mongodb://ann:secret", "mongodb://***"},
        {"mongodb://ann:secret/db", "mongodb://***"},
        {"mongodb://ann:se/cret", "mongodb://***"},
        {"mongodb://ann:secret%40host:27017/", "mongodb://***"},
        {"mongodb://ann:secret#host:27017/", "mongodb://***"},
        {"mongodb://ann:secret:host:27017/", "mongodb://***"},
        {"mongodb://a:27017,ann:secret,b/", "mongodb://***"},
        {"mongodb://ann:1secret/", "mongodb://***"},
        {"mongodb://ann:/secret", "mongodb://***"},
        {"mongodb:ann:secret", "***"},
        {"mongodb:/ann:secret/", "***"},
        {"ann:secret", "***"},
        {"mongodb+srv://ann:secret.example.org/", "mongodb+srv://***"},
        {"https://ann:secret@a/", "https://***@a/"},
        {"MONGODB://ann:secret@a/", "MONGODB://***@a/"},
        {"mongodb://a:1,[::1]:27017,b/d?w=1", "mongodb://a:1,[::1]:27017,b/d?w=1"},
        {"mongodb://%2Ftmp%2Fmongodb.sock", "mongodb://%2Ftmp%2Fmongodb.sock"},
        {"localhost:27017", "localhost:27017"},
        {"mongodb:///", "mongodb:///"},
        {"ann:secret@a", "***@a"}, /* without a scheme */
        {"mongodb://a/?tlsCertificateKeyFilePassword=abc&x=1",
         "mongodb://a/?tlsCertificateKeyFilePassword=***&x=1"},
        {"mongodb://ann:s@cret/two@three?x@a/", "mongodb://***@a/"}, /* all at once */
        {"mongodb://a/?x=1&TLSCertificateKeyFilePassword=abc",       /* any case, and at the end */
         "mongodb://a/?x=1&TLSCertificateKeyFilePassword=***"},
        {"mongodb://a/?authMechanismProperties=T:1&tlsCertificateKeyFilePassword=bcd&tls=true&"
         "tlsCertificateKeyFilePassword=cde",
         "mongodb://a/?authMechanismProperties=***&tlsCertificateKeyFilePassword=***&tls=true&"
         "tlsCertificateKeyFilePassword=***"},
        /* The driver takes all characters but & as parts of a value. */
        {"mongodb://a/?tlsCertificateKeyFilePassword=b?c;d/e=f&x=1",
         "mongodb://a/?tlsCertificateKeyFilePassword=***&x=1"},
        {"mongodb://a/?tlsCertificateKeyFilePassword=b@c;d&x=1", "mongodb://***&x=1"},
        {"mongodb://a/?authMechanismProperties=b?c@d", "mongodb://***"},
        {"mongodb://a/?proxyPassword=bcd&x=1",
         "mongodb://a/?proxyPassword=***&x=1"}, /* of others */
        {"mongodb://password/?x=1&y=password", "mongodb://password/?x=1&y=password"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(unit_keep(sl_redact_uri(rows[i].uri)), rows[i].shown);
    }
}

/* Returns what sl_hide_secrets makes of the text; checks that it overwrites the bytes after it. */
static const char *hidden(const char *text, bool *found) {
    size_t length = strlen(text);
    char *copy = unit_keep(strdup(text));
    *found = sl_hide_secrets(copy);
    for (size_t i = strlen(copy); i < length; i++)
        assert_int_equal(copy[i], '\0');
    return copy;
}

TEST(secrets_are_hidden_in_any_text) {
    static const struct {
        const char *text;
        const char *shown;
    } rows[] = {
        {"--uri mongodb://ann:secret@a/ -d t", "--uri mongodb://***@a/ -d t"},
        {"a mongodb://ann:secret@a/?w=1\n"
         "MONGODB+SRV://ann:s3cret@b/\thttps://x:secret@c d@e",
         "a mongodb://***@a/?w=1\nMONGODB+SRV://***@b/\thttps://***@c d@e"},
        {"x mongodb://a/?tlsCertificateKeyFilePassword=secret y",
         "x mongodb://a/?tlsCertificateKeyFilePassword=*** y"},
        {"x mongodb://a/?w=1&authMechanismProperties=secret;tls=true",
         "x mongodb://a/?w=1&authMechanismProperties=***"},
        {"'mongodb://ann:secret@a/'", "'mongodb://***@a/'"},
        {"{\"u\":\"mongodb://ann:secret@a/\"}", "{\"u\":\"mongodb://***@a/\"}"},
        {"mongodb://a@b", "mongodb://*@b"}, /* not longer than before */
    };
    static const char *const open[] = {"",
                                       "ann@a",
                                       "see https://example.org/a?b=1&c, or ann@example.org",
                                       "mongodb://HOST:PORT,HOST:PORT/ with user:password@",
                                       "a://b c://d",
                                       "://",
                                       "mongodb://a:27017/?w=1"};
    bool found;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(hidden(rows[i].text, &found), rows[i].shown);
        assert_true(found);
    }
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        assert_string_equal(hidden(open[i], &found), open[i]);
        assert_false(found);
    }
}

TEST(messages_contain_no_secret) {
    sl_error error;
    char text[100];
    sl_error_set(&error, SL_EXIT_USAGE, "%s: refused", "mongodb://ann:secret@a/");
    assert_string_equal(error.message, "mongodb://***@a/: refused");
    assert_int_equal(sl_print_text(text, sizeof text, "<%s>", "x://ann:secret@a"),
                     strlen("<x://***@a>"));
    assert_string_equal(text, "<x://***@a>");
}

TEST(words_of_a_shell) {
    char word[SL_WORD_ROOM(4)];
    static const char *const pairs[][2] = {
        {"/a-_.", "/a-_."},     {"", "''"},
        {"a b", "'a b'"},       {"$(i)", "'$(i)'"},
        {"`i`", "'`i`'"},       {"'", "''\\'''"},
        {"a';b", "'a'\\'';b'"}, {"''''", "''\\'''\\'''\\'''\\'''"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(sl_shell_word(pairs[i][0], word, sizeof word), pairs[i][1]);
    assert_string_equal(sl_shell_word("/a/path/longer/than/that", word, sizeof word), "...");
    assert_string_equal(sl_shell_word("/a path longer than that", word, sizeof word), "...");
}

TEST(strings_of_mongosh_are_quoted) {
    char text[400] = "";
    assert_string_equal(sl_mongosh_string("été o');x('"), "'été o\\u0027);x(\\u0027'");
    assert_string_equal(sl_mongosh_string("\\\n\x7f\u2028\u202e\u200b\U000E0041\xff"),
                        "'\\u005c\\u000a\\u007f\\u2028\\u202e\\u200b\\u{e0041}\\u00ff'");
    assert_string_equal(sl_mongosh_collection("d'", "c\""),
                        "db.getSiblingDB('d\\u0027').getCollection('c\"')");
    memset(text, '\'', 255);
    assert_int_equal(strlen(sl_mongosh_string(text)), 2 + 6 * 255);
    assert_string_equal(sl_mongosh_collection(text, text), "...");
    memset(text, '\'', sizeof text - 1);
    assert_string_equal(sl_mongosh_string(text), "...");
}

TEST(connection_strings_are_recognised_by_their_scheme) {
    static const char *const are[] = {"mongodb://h",     "mongodb+srv://h/", "MongoDB://h",
                                      "mongodb:ann:b@h", "mongodb:/ann:b",   "postgres://a:b@h",
                                      "s3://bucket"};
    static const char *const are_not[] = {"",     "mongodb",  "a/b://c", "./mongodb:x",
                                          "://x", "data.csv", "C:data",  "x:y@z"};
    for (size_t i = 0; i < sizeof are / sizeof are[0]; i++)
        assert_true(sl_is_connection_string(are[i]));
    for (size_t i = 0; i < sizeof are_not / sizeof are_not[0]; i++)
        assert_false(sl_is_connection_string(are_not[i]));
}

TEST(quantiles_are_near_the_exact_values) {
    sl_histogram *a = unit_keep(calloc(1, sizeof *a)), *b = unit_keep(calloc(1, sizeof *b));
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
}
