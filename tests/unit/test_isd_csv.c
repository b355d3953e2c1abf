/* SPDX-License-Identifier: Apache-2.0 */
/* Global-hourly tables. An error here would give documents that queries for packed records do not
 * find, put values under a wrong key, or lose cells. */
#include "isd_record.h"

#define HEADER                                                                                     \
    "\"STATION\",\"DATE\",\"SOURCE\",\"LATITUDE\",\"LONGITUDE\",\"ELEVATION\",\"NAME\","           \
    "\"REPORT_TYPE\",\"CALL_SIGN\",\"QUALITY_CONTROL\",\"WND\",\"CIG\",\"VIS\",\"TMP\",\"DEW\","   \
    "\"SLP\",\"AA1\",\"GE1\",\"OC1\",\"REM\",\"EQD\"\n"
#define STATION "\"01001099999\",\"1988-01-31T12:00:00\",\"4\",\"70.933\",\"-8.667\",\"9.0\","
#define FIXED_CELLS                                                                                \
    "\"JAN MAYEN, NO\",\"FM-12\",\"ENJA \",\"V020\",\"318,1,N,0061,1\",\"00450,1,C,N\","           \
    "\"010000,1,V,5\",\"-0067,1\",\"-0080,1\",\"10123,1\","
#define GROUP_CELLS "\"06,0012,9,1\",\"9,AGL   ,+99999,+00300\",\"\","
#define ROW STATION FIXED_CELLS GROUP_CELLS "\"SYN003abc\",\"Q01  00420APOSP \"\n"

/* A table with the required columns and one more. */
#define SMALL(column, cell)                                                                        \
    "STATION,DATE,TMP,\"" column "\"\n01001099999,1988-01-31T12:00:00,\"-0067,1\",\"" cell "\"\n"

static parsed parse_table(const char *text) {
    parsed p = parse_with("isd-csv", &(sl_format_options){0}, text);
    if (!p.format)
        fail_msg("not recognised as isd-csv: %s", p.error.message);
    return p;
}

TEST(a_row_gives_the_document_of_the_packed_record) {
    parsed packed = parse_sections("ADDAA1060012"
                                   "91GE19AGL   +99999+00300"
                                   "REMSYN003abcEQDQ01  00420APOSP ");
    parsed table = parse_table(HEADER ROW);
    char expected[4096];
    snprintf(expected, sizeof expected, "%s", json_at(&packed, 0));
    char *end = strrchr(expected, '}') - 1; /* the blank before it */
    snprintf(end, sizeof expected - (size_t)(end - expected), ", \"name\" : \"JAN MAYEN, NO\" }");
    assert_string_equal(json_at(&table, 0), expected);
    assert_string_equal(table.kind, packed.kind);
    assert_contains(table.described, "21 columns, 3 of groups");
    assert_string_equal(table.header, HEADER);
}

TEST(recognised_before_delimited_text) {
    parsed p = parse_with(NULL, &(sl_format_options){0}, HEADER ROW);
    assert_string_equal(p.format->name, "isd-csv");
    p = parse_with(NULL, &(sl_format_options){0},
                   "STATION,DATE,TEMP,DEWP,SLP\n01001099999,1988-01-31,30.1,28.0,1005.0\n");
    assert_string_equal(p.format->name, "delimited");
}

TEST(every_group_of_the_table) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        char cell[400], data[400], text[1024], sections[600];
        size_t used = 0, width = 0;
        for (size_t f = 0; f < group->field_count; f++) {
            const sl_isd_field *field = &group->fields[f];
            char value[300];
            snprintf(value, sizeof value, "%s%0*zu", field->type == 's' ? "-" : "",
                     field->width - (field->type == 's'), f % 8 + 1);
            used += (size_t)snprintf(cell + used, sizeof cell - used, "%s%s", f ? "," : "", value);
            width += (size_t)snprintf(data + width, sizeof data - width, "%s", value);
        }
        snprintf(text, sizeof text,
                 "STATION,DATE,TMP,%s\n01001099999,1988-01-31T12:00:00,,\"%s\"\n", group->first,
                 cell);
        snprintf(sections, sizeof sections, "ADD%s%s", group->first, data);
        parsed table = parse_table(text), packed = parse_sections(sections);
        bson_iter_t left = element_at(&table, 0, group->key);
        const uint32_t left_length = bson_iter_value(&left)->value.v_doc.data_len;
        uint8_t copy[2048];
        assert_true(left_length <= sizeof copy);
        memcpy(copy, bson_iter_value(&left)->value.v_doc.data, left_length);
        bson_iter_t right = element_at(&packed, 0, group->key);
        assert_int_equal(bson_iter_value(&right)->value.v_doc.data_len, left_length);
        assert_memory_equal(copy, bson_iter_value(&right)->value.v_doc.data, left_length);
        assert_false(has_key(&table, 0, "unparsed"));
    }
}

TEST(cells_without_leading_zeros_or_blanks) {
    parsed p = parse_table(SMALL("OA1", "1,3,15,1"));
    assert_at(&p, "supplementaryWind.0.period", "int 3");
    assert_at(&p, "supplementaryWind.0.speed", "double 1.5");
    p = parse_table(SMALL("KA1", "240,N,-5,1"));
    assert_at(&p, "extremeAirTemperature.0.value", "double -0.5");
    p = parse_table(SMALL("GE1", "9,AGL,+300,+99999"));
    assert_at(&p, "skyConditionObservationSimple.verticalDatum", "text AGL");
    assert_at(&p, "skyConditionObservationSimple.baseHeightUpperRange", "int 300");
}

TEST(cells_that_do_not_fit_are_kept_as_text) {
    static const struct {
        const char *text, *unparsed;
    } rows[] = {
        {SMALL("OC1", "0067"), "text OC1=0067"},
        {SMALL("OC1", "0067,1,1"), "text OC1=0067,1,1"},
        {SMALL("OC1", "00067,1"), "text OC1=00067,1"},
        {SMALL("OC1", "6x,1"), "text OC1=6x,1"},
        {SMALL("OC1", "+67,1"), "text OC1=+67,1"},
        {SMALL("OC1", ",1"), "text OC1=,1"},
        {SMALL("KA1", "240,N,5,1"), "text KA1=240,N,5,1"},
        {SMALL("KA1", "240,N,-,1"), "text KA1=240,N,-,1"},
        {SMALL("MW1", "5,1"), "text MW1=5,1"},
        {SMALL("WND", "1,2"), "text WND=1,2"},
        {SMALL("SOURCE", "12"), "text SOURCE=12"},
        {SMALL("LATITUDE", "north"), "text LATITUDE=north"},
        {SMALL("LONGITUDE", "180.1"), "text LONGITUDE=180.1"},
        {SMALL("ELEVATION", "10000"), "text ELEVATION=10000"},
        {SMALL("ELEVATION", "-999.9"), "text ELEVATION=-999.9"},
        {SMALL("ZZ1", "any thing"), "text ZZ1=any thing"},
        {SMALL("wind speed", "1"), "text wind speed=1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_table(rows[i].text);
        assert_at(&p, "unparsed", rows[i].unparsed);
        assert_at(&p, "airTemperature.value", "double -6.7");
        assert_at(&p, "sections", "nothing");
        assert_int_equal(p.counts.unknown_groups, 1);
    }
}

TEST(several_cells_that_do_not_fit) {
    parsed p = parse_table("STATION,DATE,TMP,AA1,OC1,REM\n"
                           "01001099999,1988-01-31T12:00:00,1,\"2,3\",\"0067,1\",SYN9\n");
    assert_at(&p, "unparsed", "text REMSYN9\nTMP=1; AA1=2,3");
    assert_at(&p, "windGust.speed", "double 6.7");
    assert_int_equal(p.counts.unknown_groups, 1);
    assert_int_equal(p.counts.transcoded, 0);
}

TEST(a_malformed_number_of_the_right_width) {
    parsed p = parse_table(SMALL("OC1", "00x7,5"));
    assert_at(&p, "windGust.speed", "nothing");
    assert_at(&p, "windGust.quality", "text 5");
    assert_int_equal(p.counts.malformed_fields, 1);
}

TEST(positions) {
    static const struct {
        const char *latitude, *longitude, *expected, *unparsed;
    } rows[] = {
        {"40.77898", "-73.96925", "double 40.77898", "nothing"},
        {"0.0", "0.0", "nothing", "nothing"},
        {"0.0", "12.5", "double 0", "nothing"},
        {"", "12.5", "nothing", "text LONGITUDE=12.5"},
        {"40.7", "", "nothing", "text LATITUDE=40.7"},
        {"90.01", "1", "nothing", "text LATITUDE=90.01; LONGITUDE=1"},
        {"-90", "180", "double -90", "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "STATION,DATE,LATITUDE,LONGITUDE,ELEVATION,WND\n"
                 "99999999999,1988-01-31T12:00:00,%s,%s,42.7,\n",
                 rows[i].latitude, rows[i].longitude);
        parsed p = parse_table(text);
        assert_at(&p, "position.coordinates.1", rows[i].expected);
        assert_at(&p, "elevation", "double 42.7");
        assert_at(&p, "unparsed", rows[i].unparsed);
        if (i == 0)
            assert_at(&p, "st", "text x+40779-073969");
    }
}

TEST(quotes_in_text) {
    parsed p = parse_table(SMALL("NAME", "A \"\"B\"\", C\\\\D"));
    assert_at(&p, "name", "text A \"B\", C\\\\D");
    p = parse_table("STATION,DATE,TMP,NAME\n01001099999,1988-01-31T12:00:00,,\"\"\"\"\"\"\r\n");
    assert_at(&p, "name", "text \"\"");
    p = parse_table("STATION,DATE,TMP,NAME\n01001099999,1988-01-31T12:00:00,,a\"b\xE9\n");
    assert_at(&p, "name", "text a\"b\xC3\xA9");
}

TEST(invalid_rows_are_rejected) {
    static const struct {
        const char *row, *column, *reason;
    } rows[] = {
        {"0100109999,1988-01-31T12:00:00,,", "STATION", "\"0100109999\" is not a station"},
        {",1988-01-31T12:00:00,,", "STATION", "is not a station"},
        {"01001099999,1988-02-30T12:00:00,,", "DATE", "is not a date and time"},
        {"01001099999,,,", "DATE", "is not a date and time"},
        {"01001099999,1988-01-31T12:00:00,", "", "3 cells, but the header has 4"},
        {"01001099999,1988-01-31T12:00:00,,,", "", "5 cells, but the header has 4"},
        {"01001099999,1988-01-31T12:00:00,,\"a", "", "still open"},
        {"01001099999,1988-01-31T12:00:00,,\"a\"b", "", "quote"},
        {"01001099999,1988-01-31T12:00:00,,\"a\"\"", "", "still open"},
        {"STATION,DATE,TMP,OTHER", "STATION", "is not a station"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, "STATION,DATE,TMP,NAME\n%s\n\n%s", rows[i].row,
                 "01001099999,1988-01-31T12:00:00,,right");
        parsed p = parse_table(text);
        assert_true(p.misread == (strcmp(rows[i].reason, "still open") == 0));
        if (p.misread) { /* parsing stops there */
            assert_non_null(strstr(p.rejects[0].reason, rows[i].reason));
            assert_int_equal(p.counts.lines, 2);
            assert_int_equal(p.documents, 0);
            continue;
        }
        assert_one_reject(&p, rows[i].column, rows[i].reason);
        assert_int_equal(p.rejects[0].offset, 22);
        assert_int_equal(p.rejects[0].line, 1);
        assert_int_equal(p.counts.blank_lines, 1);
        assert_int_equal(p.documents, 1);
        assert_at(&p, "name", "text right");
    }
}

TEST(a_row_that_is_too_long) {
    static char text[40000];
    static const size_t lengths[] = {9000, 10200, 16000, 20000};
    for (size_t i = 0; i < 4; i++) {
        int head = snprintf(text, sizeof text,
                            "STATION,DATE,TMP,XX1\n"
                            "01001099999,1988-01-31T12:00:00,,");
        memset(text + head, 'x', lengths[i]);
        text[(size_t)head + lengths[i]] = '\0';
        parsed p = parse_table(text);
        assert_int_equal(p.documents, lengths[i] < 10000);
        assert_int_equal(p.reject_count, lengths[i] >= 10000);
    }
}

TEST(headers) {
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"STATION,DATE,NAME\n", "WND"},
        {"DATE,WND\n", "STATION"},
        {"STATION,TMP\n", "DATE"},
        {"STATION,DATE,TMP,TMP\n", "TMP twice"},
        {"", "empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_with("isd-csv", &(sl_format_options){0}, rows[i].text);
        assert_null(p.format);
        assert_contains(p.error.message, rows[i].reason);
    }
    parsed p = parse_table("TMP,DATE,STATION\n\"+0010,1\",1988-01-31T12:00:00,99999913904\n"
                           "TMP,DATE,STATION\n\"+0020,1\",1988-01-31T12:00:00,99999913904\n");
    assert_int_equal(p.documents, 2);
    assert_int_equal(p.counts.headers, 1);
    assert_at(&p, "st", "text w13904");
}

TEST(blocks_and_small_batches) {
    char text[8000] = HEADER;
    for (int i = 0; i < 12; i++)
        strcat(text, ROW);
    parsed whole = parse_table(text);
    parsed cut = parse_in_blocks("isd-csv", &(sl_format_options){0}, sl_text_of(text), 300, 0);
    assert_int_equal(whole.documents, 12);
    assert_int_equal(cut.length, whole.length);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(id_at(&whole, i), id_at(&cut, i));
        assert_int_equal(id_at(&whole, i), sl_document_id(1, strlen(HEADER) + i * strlen(ROW)));
    }
    assert_memory_equal(cut.bytes, whole.bytes, whole.length);
    parsed stopped = parse_in_blocks("isd-csv", &(sl_format_options){0}, sl_text_of(text), 0, 7);
    assert_true(stopped.stopped);
}
