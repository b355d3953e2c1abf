/* SPDX-License-Identifier: Apache-2.0 */
/* MOT data: every published dialect, its known irregularities, and what is refused. An error here
 * would shift columns by one, truncate models at a quote, or reject good rows. */
#include "parse_text.h"
#include "simd_rows.h"

#define PIPES                                                                                      \
    "test_id|vehicle_id|test_date|test_class_id|test_type|test_result|test_mileage|postcode_area|" \
    "make|model|colour|fuel_type|cylinder_capacity|first_use_date"
#define COMMAS                                                                                     \
    "test_id,vehicle_id,test_date,test_class_id,test_type,test_result,test_mileage,postcode_area," \
    "make,model,colour,fuel_type,cylinder_capacity,first_use_date"
#define ROW                                                                                        \
    "233955117|1464922263|2015-11-20|4|NT|PRS|49828|UB|TOYOTA|ESTIMA|SILVER|PE|3000|2005-10-17"
#define ROW_JSON                                                                                   \
    "{ \"t\" : 233955117, \"v\" : 1464922263, \"d\" : { \"$date\" : \"2015-11-20T00:00:00Z\" }, "  \
    "\"c\" : 4, \"y\" : \"NT\", \"r\" : \"PRS\", \"m\" : 49828, \"s\" : \"UB\", "                  \
    "\"k\" : \"TOYOTA\", \"o\" : \"ESTIMA\", \"u\" : \"SILVER\", \"f\" : \"PE\", \"e\" : 3000, "   \
    "\"i\" : { \"$date\" : \"2005-10-17T00:00:00Z\" } }"

/* A copy of `text` in which every `from` is replaced by `to`. Valid until the eighth next call. */
static const char *with(const char *text, const char *from, const char *to) {
    static char rooms[8][4096];
    static unsigned turn;
    char *out = rooms[turn++ % 8];
    size_t used = 0;
    while (*text) {
        bool here = strncmp(text, from, strlen(from)) == 0;
        used += (size_t)sprintf(out + used, "%.*s", here ? (int)strlen(to) : 1, here ? to : text);
        text += here ? strlen(from) : 1;
    }
    out[used] = '\0';
    return out;
}

TEST(one_row_in_every_dialect) {
    static const struct {
        const char *text;
        const char *described;
    } rows[] = {
        {ROW "\n", "test results, dialect A: pipes, no header, 14 columns"},
        {PIPES "\n" ROW "\n", "test results, dialect B/F: pipes, header, 14 columns"},
        {COMMAS "\n233955117,1464922263,2015-11-20,4,NT,PRS,49828,UB,TOYOTA,ESTIMA,SILVER,PE,3000,"
                "2005-10-17\n",
         "test results, dialect D: commas, header, 14 columns"},
        {"\"test_id\",\"vehicle_id\",\"test_date\",\"test_class_id\",\"test_type\",\"test_result\","
         "\"test_mileage\",\"postcode_area\",\"make\",\"model\",\"colour\",\"fuel_type\","
         "\"cylinder_capacity\",\"first_use_date\"\n"
         "233955117,1464922263,\"2015-11-20\",4,\"NT\",\"PRS\",49828,\"UB\",\"TOYOTA\",\"ESTIMA\","
         "\"SILVER\",\"PE\",3000,\"2005-10-17\"\n",
         "test results, dialect E: commas, header, 14 columns"},
        {COMMAS ",completed_date\n"
                "233955117,1464922263,2015-11-20,4,NT,PRS,49828,UB,TOYOTA,ESTIMA,SILVER,PE,3000,"
                "2005-10-17,\n",
         "test results, dialect G: commas, header, 15 columns"},
        {"testid|vehicleid|testdate|testclassid|testtype|testresult|testmileage|postcoderegion|"
         "make|model|colour|fueltype|cylcpcty|firstusedate\n" ROW "\n",
         "test results, dialect B/F: pipes, header, 14 columns"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_mot(rows[i].text);
        if (!p.format)
            fail_msg("%s", p.error.message);
        assert_string_equal(p.described, rows[i].described);
        assert_string_equal(p.kind, "test results");
        assert_string_equal(json_at(&p, 0), ROW_JSON);
        assert_int_equal(p.documents, 1);
        const char *tabs = with(rows[i].text, strchr(rows[i].text, '|') ? "|" : ",", "\t");
        if (i != 3) { /* quotes have no meaning with tabs */
            p = parse_mot(tabs);
            assert_string_equal(json_at(&p, 0), ROW_JSON);
        }
    }
}

TEST(missing_values_have_no_key) {
    parsed p = parse_mot(PIPES "\n1|2||4|NT|P|||||||||\n1|2||4|NT|P|||||||\n"
                               "1|2|NULL|4|NT|P||NULL|||||0|NULL\n");
    assert_int_equal(p.documents, 2);
    assert_string_equal(json_at(&p, 0),
                        "{ \"t\" : 1, \"v\" : 2, \"c\" : 4, \"y\" : \"NT\", "
                        "\"r\" : \"P\", \"o\" : \"|\" }"); /* one extra pipe, in the model */
    assert_one_reject(&p, "", "too few fields: 13 of 14");
    assert_string_equal(json_at(&p, 1), "{ \"t\" : 1, \"v\" : 2, \"c\" : 4, \"y\" : \"NT\", "
                                        "\"r\" : \"P\", \"s\" : \"NULL\", \"e\" : 0 }");
    p = parse_mot("1|2|NULL|4|NT|P||NULL|||||0|NULL\n"); /* the only line shows the format */
    assert_int_equal(p.documents, 1);
}

TEST(required_values_may_not_be_missing) {
    static const struct {
        const char *field;
        const char *column;
    } rows[] = {{"233955117|", "test_id"},
                {"1464922263|", "vehicle_id"},
                {"4|", "test_class_id"},
                {"NT|", "test_type"},
                {"PRS|", "test_result"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[600];
        const char *at = strstr(ROW, rows[i].field);
        if (i == 2)
            at = strstr(ROW, "|4|") + 1;
        snprintf(text, sizeof text, PIPES "\n%.*s%s\n", (int)(at - ROW), ROW,
                 at + strlen(rows[i].field) - 1);
        parsed p = parse_mot(text);
        assert_one_reject(&p, rows[i].column, "the field is empty, but must have a value");
    }
}

/* A real line of 2015: "Estima II", typed with pipes. */
TEST(extra_pipes_belong_to_the_model) {
    const char *row = with(ROW, "ESTIMA", "Estima ||");
    char text[800];
    parsed p = parse_mot(row);
    assert_string_equal(text_at(&p, 0, "o"), "Estima ||");
    assert_string_equal(text_at(&p, 0, "u"), "SILVER");
    assert_int_equal(p.counts.repaired, 1);
    snprintf(text, sizeof text, PIPES "|completed_date\n%s|2024-01-02T03:04:05\n", row);
    p = parse_mot(text);
    assert_string_equal(text_at(&p, 0, "o"), "Estima ||");
    bson_iter_t iter = element_at(&p, 0, "completed_date");
    assert_int_equal(bson_iter_date_time(&iter), 1704164645000);
    snprintf(text, sizeof text, "%s\n%s\n", with(PIPES, "|", "\t"), with(row, "|", "\t"));
    p = parse_mot(text);
    assert_string_equal(text_at(&p, 0, "o"), "Estima \t\t");
    snprintf(text, sizeof text, "%s\n%s\n", with(PIPES, "make|model", "model|make"), row);
    p = parse_mot(text);
    assert_one_reject(&p, "", "too many fields: 16 instead of 14");
    snprintf(text, sizeof text, "%s\n%s\n", with(PIPES, "|", ","), with(row, "|", ","));
    p = parse_mot(text);
    assert_one_reject(&p, "", "too many fields: 16 instead of 14");
}

TEST(headers_inside_the_data) {
    parsed p = parse_mot(PIPES "\n" ROW "\n" PIPES "\r\n\nTEST_ID|vehicle_id\n" ROW "\n");
    assert_int_equal(p.documents, 2);
    assert_int_equal(p.counts.headers, 2);
    assert_int_equal(p.counts.blank_lines, 1);
    assert_int_equal(p.counts.lines, 6);
    assert_int_equal(p.reject_count, 0);
    p = parse_mot(
        ROW
        "\n\"test_id\"|\"vehicle_id\"\n" ROW); /* also in a file without a header at its start */
    assert_int_equal(p.documents, 2);
    assert_int_equal(p.counts.headers, 1);
}

TEST(headers_bind_by_name) {
    parsed p = parse_mot("\xEF\xBB\xBF\"VEHICLE_ID\",\"Test_Id\",test_result,test_type,"
                         "test_class_id,site_id\r\n5,4,P,NT,4,007\r\n");
    assert_string_equal(json_at(&p, 0), "{ \"v\" : 5, \"t\" : 4, \"r\" : \"P\", \"y\" : \"NT\", "
                                        "\"c\" : 4, \"site_id\" : \"007\" }");
    assert_contains(p.described, "loaded as text: site_id");
    p = parse_mot("test_id|vehicle_id|make|model\n1|2|A|B\n");
    assert_null(p.format);
    assert_contains(p.error.message,
                    "test results must have: test_class_id, test_type, test_result");
    p = parse_mot(PIPES "|make\n" ROW "|X\n");
    assert_null(p.format);
    assert_contains(p.error.message, "two columns");
}

TEST(items_and_lookups) {
    static const struct {
        const char *text;
        const char *kind;
        const char *json;
    } rows[] = {
        {"test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n7|31194|A|17|\n", "test items",
         "{ \"t\" : 7, \"q\" : 31194, \"a\" : \"A\", \"l\" : 17 }"},
        {"test_id,rfr_id,rfr_type_code,mot_test_rfr_location_type_id,dangerous_mark,completed_"
         "date\n"
         "7,31194,F,9,D,2024-05-06T07:08:09Z\n",
         "test items",
         "{ \"t\" : 7, \"q\" : 31194, \"a\" : \"F\", \"l\" : 9, \"g\" : true, "
         "\"completed_date\" : { \"$date\" : \"2024-05-06T07:08:09Z\" } }"},
        {"7|31194|F|N|F|L|D\n", "test items",
         "{ \"t\" : 7, \"q\" : 31194, \"a\" : \"F\", \"lat_location_id\" : \"N\", "
         "\"long_location_id\" : \"F\", \"vert_location_id\" : \"L\", \"g\" : true }"},
        {"7|31194|F|17|\n", "test items",
         "{ \"t\" : 7, \"q\" : 31194, \"a\" : \"F\", \"l\" : 17 }"},
        {"rfr_id|test_class_id|test_item_id|minor_item|rfr_deficiency_category|rfr_desc|"
         "rfr_loc_marker|rfr_insp_manual_desc|rfr_advisory_text|test_item_set_section_id\n"
         "4|1|3|Y|Major|missing|N|an obligatory \"lamp\" missing||1\n",
         "reasons for rejection",
         "{ \"rfr_id\" : 4, \"test_class_id\" : 1, \"test_item_id\" : 3, \"minor_item\" : \"Y\", "
         "\"rfr_deficiency_category\" : \"Major\", \"rfr_desc\" : \"missing\", "
         "\"rfr_loc_marker\" : \"N\", "
         "\"rfr_insp_manual_desc\" : \"an obligatory \\\"lamp\\\" missing\", "
         "\"test_item_set_section_id\" : 1 }"},
        {"type_code|fuel_type\nDI|Diesel\n", "fuel types",
         "{ \"type_code\" : \"DI\", \"fuel_type\" : \"Diesel\" }"},
        {"id|lateral|longitudinal|vertical\n3|Nearside||\n", "defect locations",
         "{ \"id\" : 3, \"lateral\" : \"Nearside\" }"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_mot(rows[i].text);
        if (!p.format)
            fail_msg("%s", p.error.message);
        assert_string_equal(p.kind, rows[i].kind);
        assert_string_equal(json_at(&p, 0), rows[i].json);
    }
    parsed p = parse_mot("test_id|rfr_id|rfr_type_code|location_id|dangerous_mark\n1|2|A|3|X\n");
    assert_one_reject(&p, "dangerous_mark", "\"X\" is neither \"D\" nor empty");
}

TEST(other_text_is_refused) {
    static const char *const texts[] = {
        "{\"testid\":59,\"testdate\":\"2021-08-21\"}\n",
        "make,count\nFORD,1\n",
        "type_code,fuel_type,count\nDI,Diesel,4\n",
        "1|2|3\n",
        "2019-01-01,1,2,3,4,5,6,7,8,9,10,11,12,13\n",
        "# MOT data, shared half\n",
        "word\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_mot(texts[i]);
        assert_null(p.format);
        assert_int_equal(p.error.code, SL_EXIT_SOURCE);
        assert_contains(p.error.message, "this is not MOT data: its first line is `");
        assert_contains(p.error.message, "expected a header that begins with test_id");
    }
    parsed p = parse_mot("");
    assert_null(p.format);
    assert_contains(p.error.message, "empty");
    p = parse_with("mot", &(sl_format_options){.schema_text = "name: x"}, PIPES "\n");
    assert_null(p.format);
    assert_contains(p.error.message, "has built-in schemas");
}

RUN_TESTS {
    return run_with_each_simd(added, added_count);
}
