/* SPDX-License-Identifier: Apache-2.0 */
/* ISD-Lite: lines of 61 bytes with fixed columns. An error here would give temperatures ten times
 * too high, -999.9 mm of rain, or another station's name. */
#include "isd_record.h"

#define HOUR "1901 01 01 06   -78  -103 10200   270   159     8    12    -1\n"

static parsed parse_lite(const sl_format_options *options, const char *name, const char *text) {
    source_name = name;
    return parse_in_blocks("isd-lite", options, sl_text_of(text), 0, 0);
}

static parsed parse_hours(const char *text) {
    return parse_lite(&(sl_format_options){0}, "lite/029070-99999-1901.gz", text);
}

TEST(an_hour_has_the_structure_of_isd) {
    parsed p = parse_hours(HOUR);
    assert_string_equal(
        json_at(&p, 0),
        "{ \"st\" : \"u029070\", \"ts\" : { \"$date\" : { \"$numberLong\" : \"-2177431200000\" } "
        "}, "
        "\"airTemperature\" : { \"value\" : -7.7999999999999998224 }, "
        "\"dewPoint\" : { \"value\" : -10.300000000000000711 }, "
        "\"pressure\" : { \"value\" : 1020.0 }, "
        "\"wind\" : { \"direction\" : { \"angle\" : 270 }, "
        "\"speed\" : { \"rate\" : 15.900000000000000355 } }, \"skyCover\" : { \"code\" : 8 }, "
        "\"liquidPrecipitation\" : [ { \"period\" : 1, \"depth\" : 1.1999999999999999556 }, "
        "{ \"period\" : 6, \"depth\" : 0.0, \"condition\" : \"2\" } ] }");
    assert_string_equal(p.kind, "hourly weather");
    assert_string_equal(p.described,
                        "hourly weather, lines of 61 bytes; station and year 029070-99999-1901");
}

TEST(the_station_is_in_the_name) {
    static const struct {
        const char *name, *st; /* NULL: refused */
    } rows[] = {
        {"029070-99999-1901", "text u029070"},
        {"/data/isd-lite/1901/029070-99999-1901.gz", "text u029070"},
        {"999999-13904-2001.gz", "text w13904"},
        {"A07355-00241-2019.gz", "text uA07355"},
        {"rejected/000001-029070-99999-1901.gz", "text u029070"},
        {"00001-029070-99999-1901.gz", NULL},
        {"-", NULL},
        {"1901.gz", NULL},
        {"029070-99999-190", NULL},
        {"029070-99999-1901/hours.txt", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_lite(&(sl_format_options){0}, rows[i].name, HOUR);
        if (rows[i].st) {
            assert_at(&p, "st", rows[i].st);
            continue;
        }
        assert_null(p.format);
        assert_contains(p.error.message, "USAF-WBAN-YEAR");
    }
}

TEST(line_ends) {
    char text[200];
    snprintf(text, sizeof text, "%.61s\r\n%.61s   \r\n%.61s", HOUR, HOUR, HOUR);
    parsed p = parse_hours(text);
    assert_int_equal(p.documents, 3);
    assert_int_equal(id_at(&p, 1) - id_at(&p, 0), 63);
}

TEST(isd_lite_is_distinguished_from_other_formats) {
    source_name = "029070-99999-1901.gz";
    parsed p = parse_in_blocks(NULL, &(sl_format_options){0}, sl_text_of(HOUR), 0, 0);
    assert_string_equal(p.format->name, "isd-lite");
    record r = record_of("");
    p = parse_lite(&(sl_format_options){0}, source_name, r.bytes);
    assert_null(p.format);
    assert_contains(p.error.message, "this is not ISD-Lite: its first line is `");
}
