/* SPDX-License-Identifier: Apache-2.0 */
/* Converters of numbers and dates. An error here would be a wrong value in the database, which is
 * worse than a reject. */
#include "parse_text.h"

#include "format/convert.h"

/* Copies a field into a larger text, whose other bytes must not affect the result. */
static const char *in_text(const char *field, char room[128]) {
    memset(room, '7', 128);
    memcpy(room + 16, field, strlen(field));
    return room + 16;
}

static bool digits(const char *field, uint64_t *value) {
    char room[128];
    return sl_convert_digits(in_text(field, room), strlen(field), value);
}

static bool date(const char *field, int64_t *value) {
    char room[128];
    return sl_convert_date(in_text(field, room), strlen(field), value);
}

TEST(numbers_of_every_length) {
    const uint64_t seeds[] = {0, 1, 9, 1234567890, 9999999999, 8070605040, 2147483647, 2147483648};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        for (uint64_t number = seeds[i];; number /= 10) {
            for (int width = 1; width <= 10; width++) {
                char field[24];
                int length =
                    snprintf(field, sizeof field, "%0*llu", width, (unsigned long long)number);
                uint64_t value = 0;
                assert_true(digits(field, &value));
                assert_true(length <= 10);
                assert_int_equal(value, number);
            }
            if (number == 0)
                break;
        }
    }
}

/* Any byte that is not a digit, at any position of a number of any length. */
TEST(one_wrong_byte_is_refused) {
    for (size_t length = 1; length <= 10; length++) {
        for (size_t at = 0; at < length; at++) {
            for (unsigned byte = 1; byte < 256; byte++) {
                char field[12] = {0};
                memset(field, '9', length);
                field[at] = (char)byte;
                uint64_t value;
                assert_int_equal(digits(field, &value), byte >= '0' && byte <= '9');
            }
        }
    }
    uint64_t value;
    assert_false(digits("", &value));
    assert_false(digits("12345678901", &value));
}

/* Every day of the years 1 to 9999 is one day after the day before it; no other date is
 * accepted. */
TEST(every_existing_day) {
    int64_t expected = -719162 * SL_DAY_MS;
    for (int year = 1; year <= 9999; year++) {
        bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for (int month = 1; month <= 12; month++) {
            int days = month == 2 ? 28 + leap : 30 + (month + (month > 7)) % 2;
            for (int day = 1; day <= days + 1; day++) {
                char field[40];
                snprintf(field, sizeof field, "%04d-%02d-%02d", year, month, day);
                int64_t value = 1;
                bool exists = date(field, &value);
                if (exists != (day <= days) || (exists && value != expected))
                    fail_msg("%s: %d %lld", field, exists, (long long)value);
                expected += exists ? SL_DAY_MS : 0;
            }
        }
    }
    int64_t value;
    assert_true(date("1970-01-01", &value));
    assert_int_equal(value, 0);
    assert_true(date("9999-12-31", &value));
    assert_int_equal(value, 253402214400000);
}

TEST(one_wrong_byte_in_a_date_is_refused) {
    const char good[] = "2011-11-11";
    for (size_t at = 0; at < 10; at++) {
        for (unsigned byte = 1; byte < 256; byte++) {
            char field[11];
            memcpy(field, good, sizeof good);
            field[at] = (char)byte;
            bool digit = byte >= '0' && byte <= '9';
            bool fine = at == 4 || at == 7 ? byte == '-'
                        : at == 5          ? byte == '0' || byte == '1'
                        : at == 6          ? byte >= '0' && byte <= '2'
                        : at == 8          ? byte >= '0' && byte <= '2'
                                           : digit;
            int64_t value;
            assert_int_equal(date(field, &value), fine);
        }
    }
    static const char *const wrong[] = {
        "",           "2011-1-11",  "2011-11-1",  "11-11-2011", "2011-11-111", "0000-01-01",
        "2011-00-11", "2011-13-11", "2011-11-00", "2011-11-31", "2100-02-29",  "2O11-11-11"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(date(wrong[i], &(int64_t){0}));
}

TEST(dates_with_time) {
    static const struct {
        const char *field;
        int64_t value; /* milliseconds since 2024-01-01; -1: refused */
    } rows[] = {
        {"2024-01-01", 0},
        {"2024-01-01 00:00", 0},
        {"2024-01-01T13:45", 49500000},
        {"2024-01-01 13:45:07", 49507000},
        {"2024-01-01T13:45:07Z", 49507000},
        {"2024-01-01T13:45:07.5", 49507500},
        {"2024-01-01 13:45:07.123456789Z", 49507123},
        {"2024-01-01T23:59:59.999Z", 86399999},
        {"2024-01-01T13:45Z", 49500000},
        {"2024-01-01T24:00", -1},
        {"2024-01-01T13:60", -1},
        {"2024-01-01T13:45:60", -1},
        {"2024-01-01T13:45:07.", -1},
        {"2024-01-01T13:45:07.1234567890", -1},
        {"2024-01-01T13:45:07+00:00", -1},
        {"2024-01-01x13:45", -1},
        {"2024-01-01T1:45:07", -1},
        {"2024-01-01T13:45:0", -1},
        {"2024-01-01Z", -1},
        {"2024-02-30T13:45", -1},
        {"2024-01-01T13:45:07ZZ", -1},
        {"2024-01-01T", -1},
    };
    int64_t start;
    assert_true(date("2024-01-01", &start));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t value = 0;
        char room[128];
        bool accepted =
            sl_convert_datetime(in_text(rows[i].field, room), strlen(rows[i].field), &value);
        if (accepted != (rows[i].value >= 0) || (accepted && value - start != rows[i].value))
            fail_msg("%s: %d %lld", rows[i].field, accepted, (long long)(value - start));
    }
}

TEST(integers_and_doubles) {
    int64_t whole;
    assert_true(sl_convert_integer("-9223372036854775808", 20, &whole));
    assert_true(whole == INT64_MIN);
    assert_true(sl_convert_integer("9223372036854775807", 19, &whole));
    assert_true(whole == INT64_MAX);
    static const char *const no_integers[] = {
        "",    "-",   "9223372036854775808", "-9223372036854775809", "1 ", "+1",
        "--1", "1.0", "00000000000000000001"};
    for (size_t i = 0; i < sizeof no_integers / sizeof no_integers[0]; i++)
        assert_false(sl_convert_integer(no_integers[i], strlen(no_integers[i]), &whole));
    double value;
    assert_true(sl_convert_double("-12.75", 6, &value) && value == -12.75);
    assert_true(sl_convert_double("3e-4x", 4, &value) && value == 3e-4);
    static const char *const no_doubles[] = {"",      "-",  "nan", "inf",   "0x10",
                                             "1e999", " 1", "1,5", "1.2.3", "e"};
    for (size_t i = 0; i < sizeof no_doubles / sizeof no_doubles[0]; i++)
        assert_false(sl_convert_double(no_doubles[i], strlen(no_doubles[i]), &value));
}

TEST(reasons_name_the_error) {
    char out[200];
    sl_explain_date(sl_text_of("2O19-01-02"), false, out, sizeof out);
    assert_string_equal(out, "\"2O19-01-02\" is not a date of the form YYYY-MM-DD");
    sl_explain_date(sl_text_of("2019-02-31"), false, out, sizeof out);
    assert_string_equal(out, "\"2019-02-31\": 31 February 2019 does not exist");
    sl_explain_date(sl_text_of("2019-13-01"), false, out, sizeof out);
    assert_string_equal(out, "\"2019-13-01\": there is no month 13");
    sl_explain_date(sl_text_of("0000-01-01"), false, out, sizeof out);
    assert_contains(out, "there is no year 0");
    sl_explain_date(sl_text_of("2019-01-01T25:00:00"), true, out, sizeof out);
    assert_contains(out, "is not a date with time of the form YYYY-MM-DD hh:mm:ss");
    sl_explain_integer(sl_text_of("12x"), 0, 10, out, sizeof out);
    assert_string_equal(out, "\"12x\" is not a whole number");
    sl_explain_integer(sl_text_of("-1"), 0, 10, out, sizeof out);
    assert_string_equal(out, "\"-1\" is too small: the least value here is 0");
    sl_explain_integer(sl_text_of("11"), 0, 10, out, sizeof out);
    assert_string_equal(out, "\"11\" is too large: the greatest value here is 10");
    sl_explain_text((sl_text){"caf\xE9", 4}, out, sizeof out);
    assert_string_equal(out, "byte 0xe9 at offset 3 of the field \"caf\\xe9\" is not UTF-8: "
                             "give --encoding: windows-1252 for \"caf\u00e9\", windows-1250 for "
                             "\"caf\u00e9\", windows-1251 for \"caf\u0439\"");
    sl_explain_text((sl_text){"M\x81ller", 6}, out, sizeof out); /* of DOS */
    assert_contains(out, "windows-1251 for \"M\u0403ller\", cp850 for \"M\u00fcller\"");
    sl_explain_text((sl_text){"\x81\x98\xDB", 3}, out, sizeof out);
    assert_contains(out, "give --encoding: the name of the encoding");
    sl_explain_text((sl_text){"a\0b", 3}, out, sizeof out);
    assert_contains(out, "byte 0x00 at offset 1");
}

/* For any field the reason is one printable line that fits into its buffer. */
TEST(reasons_are_printable) {
    char field[5000];
    for (size_t i = 0; i < sizeof field; i++)
        field[i] = (char)(i * 37);
    for (size_t length = 0; length < sizeof field; length += 13) {
        sl_text text = {field, length};
        char out[4][200];
        sl_explain_date(text, false, out[0], sizeof out[0]);
        sl_explain_integer(text, 0, 10, out[1], sizeof out[1]);
        sl_explain_double(text, out[2], sizeof out[2]);
        sl_explain_text(text, out[3], sizeof out[3]);
        for (size_t k = 0; k < 4; k++) {
            assert_true(strlen(out[k]) < 190);
            for (const char *p = out[k]; *p; p++)
                assert_true((unsigned char)*p >= 0x20);
        }
    }
}
