/* SPDX-License-Identifier: Apache-2.0 */
/* ISD records: the document's structure, missing values, stations, times, bytes that are not ASCII,
 * names of keys. An error here would make queries find nothing, or shift observations by a day.
 * test_isd_groups.c checks the groups' fields, test_isd_walk.c lengths and sections. */
#include "isd_record.h"

#define NO_OPTIONS (&(sl_format_options){0})
#define RAW (&(sl_format_options){.keep_missing = true})

TEST(a_record_has_the_documented_structure) {
    parsed p = parse_sections("ADDAA101000821AA206003091KA1120M-00541REMSYN00501/1;"
                              "EQDQ01+001235APRSWM");
    assert_string_equal(
        json_at(&p, 0),
        "{ \"st\" : \"u010010\", \"ts\" : { \"$date\" : \"1988-01-31T12:00:00Z\" }, "
        "\"usaf\" : \"010010\", "
        "\"position\" : { \"type\" : \"Point\", \"coordinates\" : [ -8.6669999999999998153, "
        "70.933000000000006935 ] }, \"elevation\" : 9, \"callLetters\" : \"ENJA\", "
        "\"qualityControlProcess\" : \"V020\", \"dataSource\" : \"4\", \"type\" : \"FM-12\", "
        "\"airTemperature\" : { \"value\" : -6.7000000000000001776, \"quality\" : \"1\" }, "
        "\"dewPoint\" : { \"value\" : -8.0, \"quality\" : \"1\" }, "
        "\"pressure\" : { \"value\" : 1012.2999999999999545, \"quality\" : \"1\" }, "
        "\"wind\" : { \"direction\" : { \"angle\" : 318, \"quality\" : \"1\" }, \"type\" : \"N\", "
        "\"speed\" : { \"rate\" : 6.0999999999999996447, \"quality\" : \"1\" } }, "
        "\"visibility\" : { \"distance\" : { \"value\" : 10000, \"quality\" : \"1\" }, "
        "\"variability\" : { \"value\" : \"V\", \"quality\" : \"5\" } }, "
        "\"skyCondition\" : { \"ceilingHeight\" : { \"value\" : 450, \"quality\" : \"1\", "
        "\"determination\" : \"C\" }, \"cavok\" : \"N\" }, "
        "\"sections\" : [ \"AA1\", \"AA2\", \"KA1\" ], "
        "\"liquidPrecipitation\" : [ { \"period\" : 1, \"depth\" : 0.80000000000000004441, "
        "\"condition\" : \"2\", \"quality\" : \"1\" }, { \"period\" : 6, \"depth\" : "
        "3.0, \"condition\" : \"9\", \"quality\" : \"1\" } ], "
        "\"extremeAirTemperature\" : [ { \"period\" : 12.0, \"code\" : \"M\", "
        "\"value\" : -5.4000000000000003553, \"quality\" : \"1\" } ], "
        "\"remarks\" : { \"syn\" : \"01/1;\" }, "
        "\"elementQuality\" : [ { \"id\" : \"Q01\", \"value\" : \"+00123\", \"reason\" : \"5\", "
        "\"parameter\" : \"APRSWM\" } ] }");
}

/* The columns of FIXED_PART without values. */
static const char all_missing[] = "0000"
                                  "999999999991988013112009+99999+999999"
                                  "99999+999999999V020"
                                  "999999999999999999999999999+99999+99999999999\n";

TEST(missing_values_are_left_out) {
    parsed p = parse_bytes(NO_OPTIONS, all_missing, sizeof all_missing - 1);
    assert_string_equal(json_at(&p, 0), "{ \"st\" : \"x+99999+999999\", "
                                        "\"ts\" : { \"$date\" : \"1988-01-31T12:00:00Z\" }, "
                                        "\"qualityControlProcess\" : \"V020\" }");
    assert_int_equal(p.counts.malformed_fields, 0);
}

TEST(missing_values_are_kept_when_asked_for) {
    parsed p = parse_bytes(RAW, all_missing, sizeof all_missing - 1);
    assert_string_equal(
        json_at(&p, 0),
        "{ \"st\" : \"x+99999+999999\", \"ts\" : { \"$date\" : \"1988-01-31T12:00:00Z\" }, "
        "\"elevation\" : 9999, \"callLetters\" : \"99999\", "
        "\"qualityControlProcess\" : \"V020\", \"dataSource\" : \"9\", \"type\" : \"99999\", "
        "\"airTemperature\" : { \"value\" : 999.89999999999997726, \"quality\" : \"9\" }, "
        "\"dewPoint\" : { \"value\" : 999.89999999999997726, \"quality\" : \"9\" }, "
        "\"pressure\" : { \"value\" : 9999.8999999999996362, \"quality\" : \"9\" }, "
        "\"wind\" : { \"direction\" : { \"angle\" : 999, \"quality\" : \"9\" }, \"type\" : \"9\", "
        "\"speed\" : { \"rate\" : 999.89999999999997726, \"quality\" : \"9\" } }, "
        "\"visibility\" : { \"distance\" : { \"value\" : 999999, \"quality\" : \"9\" }, "
        "\"variability\" : { \"value\" : \"9\", \"quality\" : \"9\" } }, "
        "\"skyCondition\" : { \"ceilingHeight\" : { \"value\" : 99999, \"quality\" : \"9\", "
        "\"determination\" : \"9\" }, \"cavok\" : \"9\" } }");
}

/* A quality code of 9 is left out if its value is missing; any other quality code is kept. */
TEST(only_a_missing_value_removes_its_quality) {
    parsed p = parse_record(record_with(88, "+99992", "ADDAA199999999OD199999999999"));
    assert_at(&p, "airTemperature.value", "nothing");
    assert_at(&p, "airTemperature.quality", "text 2");
    assert_at(&p, "liquidPrecipitation.0.depth", "nothing");
    assert_at(&p, "liquidPrecipitation.0.condition", "text 9"); /* codes are never missing */
    assert_at(&p, "liquidPrecipitation.0.quality",
              "text 9"); /* not directly after the missing value */
    assert_at(&p, "supplementaryWindDirectional.0.type", "text 9");
    assert_at(&p, "supplementaryWindDirectional.0.quality", "nothing");
    p = parse_record(record_with(88, "+02319", ""));
    assert_at(&p, "airTemperature.value", "double 23.1");
    assert_at(&p, "airTemperature.quality", "text 9");
}

TEST(an_empty_document_is_left_out_except_from_an_array) {
    parsed p = parse_sections("ADDCG1+9999999CG2+0044110GJ199999SA1+9999");
    assert_string_equal(sections_of(&p, 0), "CG1 CG2 GJ1 SA1");
    assert_at(&p, "sunshineDuration", "nothing");
    assert_at(&p, "seaSurfaceTemperature", "nothing");
    assert_at(&p, "crnPrimaryPrecipitation", "array [2]");
    assert_at(&p, "crnPrimaryPrecipitation.0.depth", "nothing");
    assert_at(&p, "crnPrimaryPrecipitation.0.flag",
              "nothing"); /* after the quality, left out, too */
    assert_at(&p, "crnPrimaryPrecipitation.1.depth", "double 44.1");
    assert_at(&p, "crnPrimaryPrecipitation.1.flag", "text 0");
}

TEST(stations_are_named_by_usaf_wban_or_position) {
    static const struct {
        const char *ids, *st, *usaf, *wban;
    } rows[] = {
        {"72253013904", "text u722530", "text 722530", "text 13904"},
        {"72253099999", "text u722530", "text 722530", "nothing"},
        {"A0735500182", "text uA07355", "text A07355", "text 00182"},
        {"99999913904", "text w13904", "nothing", "text 13904"},
        {"99999999999", "text x+70933-008667", "nothing", "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_record(record_with(5, rows[i].ids, ""));
        assert_at(&p, "st", rows[i].st);
        assert_at(&p, "usaf", rows[i].usaf);
        assert_at(&p, "wban", rows[i].wban);
    }
}

TEST(a_position_needs_both_coordinates) {
    static const struct {
        const char *latitude_longitude, *longitude;
    } rows[] = {
        {"+00000+000000", "double 0"},     {"-90000+180000", "double 180"},
        {"+47600-047900", "double -47.9"}, {"+47600+999999", "nothing"},
        {"+99999-047900", "nothing"},      {"+90001-047900", "nothing"},
        {"+47600+180001", "nothing"},      {"-47600-180001", "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_record(record_with(29, rows[i].latitude_longitude, ""));
        assert_at(&p, "position.coordinates.0", rows[i].longitude);
        assert_int_equal(p.counts.malformed_fields, 0);
    }
}

/* 2400 is midnight of the next day; 183 records of one file of 1943 have it. */
TEST(times) {
    static const struct {
        const char *time, *date; /* NULL: refused */
    } rows[] = {
        {"197001010000", "date 0"},
        {"197001012359", "date 86340000"},
        {"190101010600", "date -2177431200000"},
        {"194308012400", "date -833673600000"},  /* 2 August */
        {"194308312400", "date -831081600000"},  /* 1 September */
        {"199912312400", "date 946684800000"},   /* 1 January 2000 */
        {"200002282400", "date 951782400000"},   /* 29 February */
        {"200002292400", "date 951868800000"},   /* 1 March */
        {"190002282400", "date -2203891200000"}, /* 1 March: 1900 had no 29th */
        {"190002290000", NULL},
        {"194308012401", NULL},
        {"194308011260", NULL},
        {"194308012500", NULL},
        {"194313010000", NULL},
        {"194300010000", NULL},
        {"194308320000", NULL},
        {"1943 8010000", NULL},
        {"19430801 600", NULL},
    };
    const record good = record_of("");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        record r = record_with(16, rows[i].time, "");
        char text[400];
        snprintf(text, sizeof text, "%.106s%.106s", good.bytes, r.bytes);
        parsed p = parse_bytes(NO_OPTIONS, text, strlen(text));
        assert_non_null(p.format);
        if (rows[i].date) {
            assert_string_equal(at(&p, 1, "ts"), rows[i].date);
        } else {
            assert_one_reject(&p, "date and time", "is not a date YYYYMMDD with a time HHMM");
            assert_int_equal(p.rejects[0].line, 1);
            assert_int_equal(p.rejects[0].offset, 106);
        }
    }
}

TEST(malformed_numbers_are_left_out_and_counted) {
    static const struct {
        size_t position;
        const char *text, *path, *beside;
    } rows[] = {
        {88, "00231", "airTemperature.value", "dewPoint.value"},
        {88, "+02 1", "airTemperature.value", "dewPoint.value"},
        {88, "     ", "airTemperature.value", "dewPoint.value"},
        {100, "+0123", "pressure.value", "dewPoint.value"},
        {66, "00-1", "wind.speed.rate", "dewPoint.value"},
        {47, "*0009", "elevation", "dewPoint.value"},
        {29, "+7a933", "position", "dewPoint.value"},
    };
    const record good = record_of("");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        record bad = record_with(rows[i].position, rows[i].text, "");
        char text[400];
        snprintf(text, sizeof text, "%.106s%.106s", good.bytes, bad.bytes);
        parsed p = parse_bytes(NO_OPTIONS, text, strlen(text));
        assert_string_equal(at(&p, 1, rows[i].path), "nothing");
        assert_string_equal(at(&p, 1, rows[i].beside), "double -8");
        assert_int_equal(p.counts.malformed_fields, 1);
    }
}

TEST(other_bytes_become_utf8) {
    record r =
        record_with(52, "\xC9NJA ", "ADDAT1AU99\x1F\xE9  1REMSOM007a*\t\x7F\xFC\x80zMET003abc");
    *strchr(r.bytes, '*') = '\0'; /* as in a record of 2016 */
    parsed p = parse_record(r);
    assert_at(&p, "callLetters", "text \xC3\x89NJA");
    assert_at(&p, "dailyPresentWeather.0.abbreviation", "text  \xC3\xA9");
    assert_at(&p, "remarks.som", "text a   \xC3\xBC\xC2\x80z");
    assert_at(&p, "remarks.met", "text abc");
    assert_int_equal(p.counts.transcoded, 1);
}

/* ---- recognition and names ---- */

TEST(isd_is_recognised_by_its_columns) {
    const record r = record_of("REMSYN009a,b|c,d|e");
    parsed p = parse_in_blocks(NULL, NO_OPTIONS, (sl_text){r.bytes, r.length}, 0, 0);
    assert_non_null(p.format);
    assert_string_equal(p.format->name, "isd");
    assert_string_equal(p.kind, "weather observations");
    assert_string_equal(p.described, "weather observations, packed ASCII; the first is of station "
                                     "010010-99999");
    assert_string_equal(p.header, "");
    static const struct {
        size_t position;
        const char *text;
    } rows[] = {{1, "x"},  {16, "x"}, {29, "0"}, {30, "x"},
                {35, "0"}, {47, "x"}, {88, "9"}, {94, "9"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        record bad = record_with(rows[i].position, rows[i].text, "");
        p = parse_bytes(NO_OPTIONS, bad.bytes, bad.length);
        assert_null(p.format);
        assert_int_equal(p.error.code, SL_EXIT_SOURCE);
        assert_contains(p.error.message, "this is not ISD: its first line is `");
    }
    p = parse_bytes(NO_OPTIONS, "", 0);
    assert_null(p.format);
    /* The format is recognised although the first record is damaged. */
    char text[400];
    snprintf(text, sizeof text, "%.60s\n%.106s", r.bytes, record_of("").bytes);
    p = parse_bytes(NO_OPTIONS, text, strlen(text));
    assert_non_null(p.format);
    assert_int_equal(p.documents, 1);
}

TEST(isd_is_recognised_by_the_length_of_its_lines) {
    static char sections[10000];
    memset(sections, ' ', 9999);
    memcpy(sections, "REM", 3);
    record r = record_of(sections); /* the longest one */
    r.length--;
    static const struct {
        const char *end;
        bool fits;
    } rows[] = {{"\n", true}, {"\r\n", true}, {"", true}, {"xx", false}, {"x\r\n", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        strcpy(r.bytes + r.length, rows[i].end);
        parsed p = parse_bytes(NO_OPTIONS, r.bytes, strlen(r.bytes));
        assert_int_equal(p.format != NULL, rows[i].fits);
        assert_int_equal(p.documents, rows[i].fits);
    }
    r = record_of("");
    r.length -= 2; /* one byte too short */
    assert_null(parse_bytes(NO_OPTIONS, r.bytes, r.length).format);
}

static parsed parse_with_names(const char *names) {
    record r = record_of("ADDAA101000821");
    return parse_bytes(&(sl_format_options){.schema_text = names, .schema_name = "names.yaml"},
                       r.bytes, r.length);
}

TEST(keys_can_have_other_names) {
    parsed p = parse_with_names("name: mine\n"
                                "names:\n"
                                "  pressure: atmosphericPressure\n"
                                "  skyCondition: sky condition\n"
                                "  wind.speed.rate: metresPerSecond\n"
                                "  liquidPrecipitation: rain\n"
                                "  liquidPrecipitation.depth: mm\n"
                                "  st: station\n");
    assert_at(&p, "atmosphericPressure.value", "double 1012.3");
    assert_at(&p, "pressure", "nothing");
    assert_at(&p, "sky condition.cavok", "text N");
    assert_at(&p, "wind.speed.metresPerSecond", "double 6.1");
    assert_at(&p, "rain.0.mm", "double 0.8");
    assert_at(&p, "rain.0.period", "int 1");
    assert_at(&p, "station", "text u010010");
}

TEST(invalid_name_maps_are_refused) {
    static const struct {
        const char *names, *message;
    } rows[] = {
        {"names: {presure: x}", "names.yaml:1:18: expected the path of a key of ISD documents, "
                                "found \"presure\""},
        {"names: {pressure: dewPoint}", "names.yaml:1:19: expected a name that no other key of the "
                                        "document has; \"dewPoint\" is in use"},
        {"names: {pressure: x, dewPoint: x}", "\"x\" is in use"},
        {"names: {pressure: _id}", "\"_id\" is in use"},
        {"names: {wind.speed.rate: quality}", "\"quality\" is in use"},
        {"names: {pressure: a.b}", "names.yaml:1:19: expected a name of at most 46 bytes"},
        {"names: {pressure: $x}", "without dots and dollar signs"},
        {"names: {pressure: 12345678901234567890123456789012345678901234567}", "at most 46 bytes"},
        {"names: {pressure: [x]}", "expected a name"},
        {"names: {pressure: x, pressure: y}", "the key \"pressure\" is given twice"},
        {"names: [x]", "expected a mapping of key paths to new names"},
        {"names: {pressure: x}\nextra: 1", "names.yaml:2:1: expected one of the keys name, names"},
        {"names: {", "not YAML"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_with_names(rows[i].names);
        assert_null(p.format);
        assert_int_equal(p.error.code, SL_EXIT_USAGE);
        assert_contains(p.error.message, rows[i].message);
    }
    parsed p = parse_with_names("names: {pressure: dewPoint, dewPoint: pressure}"); /* a swap */
    assert_at(&p, "dewPoint.value", "double 1012.3");
    assert_at(&p, "pressure.value", "double -8");
    p = parse_with_names("name: parcels\ncolumns: [{name: a}]"); /* another format's */
    assert_null(p.format);
    assert_int_equal(p.error.code, SL_EXIT_SOURCE);
    assert_contains(p.error.message, "names.yaml is not such a map");
}
