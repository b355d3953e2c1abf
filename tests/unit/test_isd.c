/* SPDX-License-Identifier: Apache-2.0 */
/* ISD records: the document's structure, recognition, names of keys. An error here would make
 * queries find nothing. test_isd_groups.c checks the groups' fields, test_isd_walk.c sections, and
 * tests/cli/test_load_isd.py all values, with an independent reader. */
#include "isd_record.h"

#define NO_OPTIONS (&(sl_format_options){0})

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

TEST(a_text_that_ends_within_a_record_is_truncated) {
    const record r = record_of("ADDCG1+9999999CG2+0044110GJ199999SA1+9999");
    for (size_t length = 106; length + 1 < r.length; length++) {
        parsed p = parse_in_blocks("isd", NO_OPTIONS, (sl_text){r.bytes, length}, 0, 0);
        assert_one_reject(&p, "", "the file is truncated");
        assert_int_equal(p.documents, 0);
    }
    parsed p = parse_in_blocks("isd", NO_OPTIONS, (sl_text){r.bytes, r.length - 1}, 0, 0);
    assert_int_equal(p.documents, 1);
}

TEST(a_record_without_its_key_is_rejected_and_not_stored) {
    const record r = record_of("");
    parsed p = parse_in_blocks("isd", &(sl_format_options){.id_fields = "seaSurfaceTemperature"},
                               (sl_text){r.bytes, r.length}, 0, 0);
    assert_one_reject(&p, "seaSurfaceTemperature", "the field is missing, and --id-field needs it");
    assert_int_equal(p.documents, 0);
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
