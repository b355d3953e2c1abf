/* SPDX-License-Identifier: Apache-2.0 */
/* ISD records whose sections are long, rare, damaged or truncated. An error here would store values
 * of a neighbouring field, or lose remarks and groups. */
#include "isd_record.h"

#define NO_OPTIONS (&(sl_format_options){0})

/* Bytes after the shorter length, and incomplete parts before it, are kept as unparsed text. */
TEST(the_shorter_of_two_lengths_is_used) {
    static const struct {
        const char *declared, *sections, *path, *value, *unparsed;
        uint64_t unknown;
    } rows[] = {
        /* truncated at byte 105 */
        {"0029", "", "pressure.value", "double 1012.3", "nothing", 0},
        /* two bytes are missing at the end */
        {"0031", "ADDSA1+0121REMSYN010ABCDEFGH", "seaSurfaceTemperature.value", "double 1.2",
         "text REMSYN010ABCDEFGH", 1},
        /* longer than declared */
        {"0011", "ADDSA1+0121SA1+0991", "seaSurfaceTemperature.value", "double 1.2",
         "text SA1+0991", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_record(record_with(1, rows[i].declared, rows[i].sections));
        assert_int_equal(p.counts.length_mismatches, 1);
        assert_at(&p, rows[i].path, rows[i].value);
        assert_at(&p, "remarks", "nothing");
        assert_at(&p, "unparsed", rows[i].unparsed);
        assert_int_equal(p.counts.unknown_groups, rows[i].unknown);
    }
    record r = record_with(1, "    ", "ADDSA1+0121");
    parsed p = parse_bytes(NO_OPTIONS, r.bytes, r.length);
    assert_null(p.format); /* the format is not recognised by this record */
}

TEST(shifted_columns_are_rejected) {
    const record good = record_of("ADDSA1+0121");
    for (size_t cut = 0; cut < 105; cut++) { /* the byte at `cut` is missing */
        char text[400];
        snprintf(text, sizeof text, "%.117s%.*s%s", good.bytes, (int)cut, good.bytes,
                 good.bytes + cut + 1);
        parsed p = parse_bytes(NO_OPTIONS, text, strlen(text));
        assert_int_equal(p.counts.rejects, 1);
        assert_int_equal(p.counts.documents, 1);
        if (cut > 27)
            assert_one_reject(&p, "", "its columns are shifted");
    }
}

TEST(too_short_and_too_long) {
    record good = record_of("");
    char text[400];
    snprintf(text, sizeof text, "%.106s%.104s\n\n   \n%.106s", good.bytes, good.bytes, good.bytes);
    parsed p = parse_bytes(NO_OPTIONS, text, strlen(text));
    assert_one_reject(&p, "", "104 bytes are too few: a record has at least 105");
    assert_int_equal(p.counts.documents, 2);
    assert_int_equal(p.counts.blank_lines, 2);
    assert_int_equal(p.counts.lines, 5);
    static char long_text[40000];
    snprintf(long_text, sizeof long_text, "%.106s%.105s%10000s\n", good.bytes, good.bytes, "x");
    p = parse_bytes(NO_OPTIONS, long_text, strlen(long_text));
    assert_one_reject(&p, "", "10105 bytes are too many: a record has at most 10104");
}

/* The longest possible record, filled with the groups that give the largest document. */
TEST(the_longest_record) {
    static const struct {
        const char *tag, *part;
        const char *last, *expected;
    } rows[] = {
        {"ADD", "MW1991", "presentWeatherObservationManual.1664.quality", "text 1"},
        {"ADD", "GF199999999999999999999999", "sections", "array [1]"},
        {"REM", "SYN000", "remarks.syn", NULL},
        {"EQD", "Q01+001235APRSWM", "elementQuality.622.reason", "text 5"},
        {"QNN", "K11 1 00021", "originalObservation.907.value", "text  00021"},
        {"ADD", "ZZ9", "unparsed", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static char sections[10000];
        size_t length = (size_t)snprintf(sections, sizeof sections, "%s", rows[i].tag);
        while (length + strlen(rows[i].part) < sizeof sections)
            length += (size_t)sprintf(sections + length, "%s", rows[i].part);
        parsed p = parse_sections(sections);
        assert_int_equal(p.documents, 1);
        if (rows[i].expected)
            assert_at(&p, rows[i].last, rows[i].expected);
        else
            assert_int_equal(strncmp(at(&p, 0, rows[i].last), "text ", 5), 0);
    }
}

TEST(blanks_at_the_end_are_data) {
    record r = record_of("REMMET010end       EQDQ01.23APC3      ");
    parsed p = parse_record(r);
    assert_at(&p, "remarks.met", "text end       ");
    assert_at(&p, "elementQuality.0.raw", "text .23APC3      ");
    assert_int_equal(p.counts.length_mismatches, 0);
    /* A carriage return belongs to the record only if the declared length includes it. */
    memcpy(r.bytes + r.length - 1, "\r\n", 2);
    p = parse_bytes(NO_OPTIONS, r.bytes, r.length + 1);
    assert_at(&p, "elementQuality.0.raw", "text .23APC3      ");
    assert_int_equal(p.counts.length_mismatches + p.counts.transcoded, 0);
    p = parse_bytes(NO_OPTIONS, r.bytes, r.length - 1); /* without a line end */
    assert_at(&p, "elementQuality.0.raw", "text .23APC3      ");
}

TEST(every_part_is_optional) {
    parsed p = parse_sections("");
    assert_at(&p, "sections", "nothing");
    assert_at(&p, "remarks", "nothing");
    p = parse_sections("REMAWY003abc");
    assert_at(&p, "remarks.awy", "text abc");
    p = parse_sections("EQDR02+000235TOT   ");
    assert_at(&p, "elementQuality.0.parameter", "text TOT");
    p = parse_sections("QNNK11 1 00021EAB   00003E  12 00004");
    assert_at(&p, "originalObservation.0.element", "text K");
    assert_at(&p, "originalObservation.0.flags", "text 11 1");
    assert_at(&p, "originalObservation.0.value", "text  00021");
    assert_at(&p, "originalObservation.2.flags", "text   12");
    assert_at(&p, "originalObservation", "array [3]");
}

/* Words in a remark that look like tags of sections are text. */
TEST(tags_in_texts_are_text) {
    parsed p = parse_sections("ADDSA1+0121REMMET046SCT200 CT2 PREC INCREMENTAL EQDQ01 QNNK REMMET"
                              "EQDQ01+001235APRSWM");
    assert_string_equal(sections_of(&p, 0), "SA1");
    assert_at(&p, "remarks.met", "text SCT200 CT2 PREC INCREMENTAL EQDQ01 QNNK REMMET");
    assert_at(&p, "elementQuality", "array [1]");
    assert_at(&p, "unparsed", "nothing");
}

/* As in records of early 2014: the declared length of a remark includes the next section. */
TEST(a_remark_may_cover_a_section) {
    parsed p = parse_sections("REMMET024KAUS 0121Z=EQDD010ADE693EQDD01+000000ADE726");
    assert_at(&p, "remarks.met", "text KAUS 0121Z=EQDD010ADE693");
}

TEST(remarks_follow_each_other) {
    parsed p = parse_sections("REMSYN003oneAWY003twoSYN005threeHPD000");
    assert_at(&p, "remarks.syn", "text one\nthree");
    assert_at(&p, "remarks.awy", "text two");
    assert_at(&p, "remarks.hpd", "text ");
}

TEST(shifted_entries_are_kept_as_text) {
    parsed p = parse_sections("EQDQ01+001235APRSWMN02     1CPWTH 1P03.23APC3      "
                              "C04+00001SPRSWM1D05      0ADE735");
    assert_at(&p, "elementQuality.0.value", "text +00123");
    assert_at(&p, "elementQuality.0.reason", "text 5");
    assert_at(&p, "elementQuality.0.parameter", "text APRSWM");
    assert_at(&p, "elementQuality.1.value", "text      1");
    assert_at(&p, "elementQuality.1.reason", "text C");
    assert_at(&p, "elementQuality.1.parameter", "text PWTH 1");
    assert_at(&p, "elementQuality.2.raw", "text .23APC3      ");
    assert_at(&p, "elementQuality.2.value", "nothing");
    assert_at(&p, "elementQuality.3.raw", "text +00001SPRSWM1"); /* S is not a valid reason */
    assert_at(&p, "elementQuality.4.value", "text ");
}

TEST(unknown_groups_are_kept_as_text) {
    static const struct {
        const char *sections, *ids, *unparsed, *syn;
    } rows[] = {
        {"ADDSA1+0121BA1123REMSYN003abc", "SA1", "text BA1123", "text abc"},
        {"ADDSA1+0121BA1123", "SA1", "text BA1123", "nothing"},
        {"ADDBA1123SA1+0121", "", "text ADDBA1123SA1+0121", "nothing"},
        {"ADDSA1+0121BA1123EQDQ01+001235APRSWM", "SA1", "text BA1123", "nothing"},
        {"ADDSA1+0121BA1123QNNK11 1 00021", "SA1", "text BA1123", "nothing"},
        /* A tag starts a section only if parsing from it ends at the record's end. */
        {"ADDSA1+0121BA1REMSYN004REMSYN003abc", "SA1", "text BA1REMSYN004", "text abc"},
        {"ADDSA1+0121BA1REMSYN9REMQNN1", "SA1", "text BA1REMSYN9REMQNN1", "nothing"},
        {"ADDSA1+0121SA2+0121", "SA1", "text SA2+0121", "nothing"}, /* SA2 does not exist */
        {"ADDSA1+0121SA1+0121", "SA1", "text SA1+0121", "nothing"},
        {"ADDSA1+012", "", "text ADDSA1+012", "nothing"}, /* truncated */
        {"ADD", "", "text ADD", "nothing"},
        /* A group without an id after it is not parsed: its id may be damaged, its width wrong. */
        {"ADDSA1+0121OC100501AY11061AA101000821", "SA1 OC1", "text AY11061AA101000821", "nothing"},
        {"ADDSA1+0121AA100501AY101061REMSYN003abc", "SA1", "text AA100501AY101061", "text abc"},
        {"ADDAG1101AY101061REMSYN003abc", "", "text ADDAG1101AY101061", "text abc"},
        {"ADDSA1+0121REMSYN", "SA1", "text REMSYN", "nothing"},
        {"XYZ12REMSYN003abc", "", "text XYZ12", "text abc"}, /* not a section */
        {"REMXYZ003abc", "", "text REMXYZ003abc", "nothing"},
        {"REMSYN003abcMET0x3", "", "text MET0x3", "text abc"},
        {"REMSYN003abcMET9QNNK11 1 00021", "", "text MET9", "text abc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_sections(rows[i].sections);
        assert_string_equal(sections_of(&p, 0), rows[i].ids);
        assert_at(&p, "unparsed", rows[i].unparsed);
        assert_at(&p, "remarks.syn", rows[i].syn);
        assert_int_equal(p.counts.unknown_groups, 1);
        assert_int_equal(p.counts.length_mismatches, 0);
    }
}

/* The format document ends at AW4, but stations report up to AW9. */
TEST(families_have_up_to_nine_groups) {
    parsed p = parse_sections("ADDAW1101AW2201AW3301AW4401AW5501AW6601AW7701AW8801AW9991");
    assert_at(&p, "presentWeatherObservation", "array [9]");
    assert_at(&p, "presentWeatherObservation.4.condition", "text 50");
    assert_at(&p, "presentWeatherObservation.8.condition", "text 99"); /* a tornado, not missing */
    assert_int_equal(p.counts.unknown_groups, 0);
    p = parse_sections("ADDAW0101");
    assert_int_equal(p.counts.unknown_groups, 1);
}

TEST(families_scattered_over_the_record_are_one_array) {
    parsed p = parse_sections("ADDMW2112MW1223SA1+0121MW3334AA101000821MW4445");
    assert_string_equal(sections_of(&p, 0), "MW2 MW1 SA1 MW3 AA1 MW4");
    assert_at(&p, "presentWeatherObservationManual", "array [4]");
    assert_at(&p, "presentWeatherObservationManual.0.condition", "text 11");
    assert_at(&p, "presentWeatherObservationManual.1.condition", "text 22");
    assert_at(&p, "presentWeatherObservationManual.2.condition", "text 33");
    assert_at(&p, "presentWeatherObservationManual.3.condition", "text 44");
    assert_at(&p, "seaSurfaceTemperature.value", "double 1.2");
    assert_at(&p, "liquidPrecipitation", "array [1]");
    p = parse_sections("ADDAH1005000111111111AI1060000221111111"); /* two ids, one family */
    assert_at(&p, "liquidPrecipitationMaxShortDurationMonthly", "array [2]");
    assert_at(&p, "liquidPrecipitationMaxShortDurationMonthly.1.period", "int 60");
}

static const char rich[] =
    "ADDAA101000821AA206003091AY101061GA1089+006001061GF108991081061004501031999MA1999999098711"
    "MD1510021+9999MW1101REMSYN0221234501/99 87654 3210;EQDQ01+001235APRSWMQNNK11 1 00021";

/* A truncated record is rejected, or its complete values are correct and the other bytes are kept
 * as text. */
TEST(a_truncated_record_gives_no_wrong_values) {
    const record whole = record_of(rich);
    parsed expected = parse_record(whole);
    assert_at(&expected, "unparsed", "nothing");
    static const char *const paths[] = {"airTemperature.value",
                                        "pressure.value",
                                        "liquidPrecipitation.0.depth",
                                        "liquidPrecipitation.1.depth",
                                        "pastWeatherObservationManual.0.period.value",
                                        "skyCoverLayer.0.baseHeight.value",
                                        "skyConditionObservation.lowestCloudBaseHeight.value",
                                        "atmosphericPressureObservation.stationPressure.value",
                                        "atmosphericPressureChange.quantity3Hours.value",
                                        "presentWeatherObservationManual.0.condition",
                                        "remarks.syn",
                                        "elementQuality.0.value",
                                        "originalObservation.0.value"};
    size_t found_before = 0;
    for (size_t cut = 1; cut < whole.length - 1; cut++) {
        record r = whole;
        memcpy(r.bytes + cut, whole.bytes, whole.length); /* the next record, on the same line */
        r.bytes[cut] = '\n';
        memcpy(r.bytes + cut + 1, whole.bytes, whole.length);
        r.length = cut + 1 + whole.length;
        parsed p = parse_record(r);
        assert_int_equal(p.counts.records, 2);
        assert_int_equal(p.counts.rejects, cut < 105);
        assert_int_equal(p.counts.length_mismatches, cut >= 105);
        size_t found = 0;
        for (size_t i = 0; cut >= 105 && i < sizeof paths / sizeof paths[0]; i++) {
            const char *value = at(&p, 0, paths[i]);
            if (strcmp(value, "nothing") != 0) {
                assert_string_equal(value, at(&expected, 0, paths[i]));
                found++;
            }
        }
        assert_true(found >= found_before);
        found_before = found;
    }
    assert_int_equal(found_before, sizeof paths / sizeof paths[0] - 1);
}

/* The result does not depend on block boundaries, nor on when a batch becomes full. */
TEST(block_boundaries_do_not_matter) {
    static char text[40000];
    const record plain = record_of(""), full = record_of(rich);
    size_t length = 0;
    for (int i = 0; i < 60; i++) {
        const record *r = i % 3 == 0 ? &plain : &full;
        memcpy(text + length, r->bytes, r->length);
        length += r->length;
    }
    parsed whole = parse_bytes(NO_OPTIONS, text, length);
    assert_int_equal(whole.documents, 60);
    assert_int_equal(id_at(&whole, 1) - id_at(&whole, 0), plain.length);
    parsed cut = parse_in_blocks("isd", NO_OPTIONS, (sl_text){text, length}, 500, 0);
    assert_int_equal(cut.length, whole.length);
    assert_int_equal(cut.documents, 60);
    assert_string_equal(at(&cut, 59, "remarks.syn"), at(&whole, 59, "remarks.syn"));
    parsed stopped = parse_in_blocks("isd", NO_OPTIONS, (sl_text){text, length}, 0, 20);
    assert_true(stopped.stopped);
    assert_true(stopped.documents >= 20 && stopped.documents < 60);
}
