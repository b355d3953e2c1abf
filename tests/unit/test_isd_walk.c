/* SPDX-License-Identifier: Apache-2.0 */
/* ISD records whose sections are long, rare, damaged or truncated. An error here would store values
 * of a neighbouring field, or lose remarks and groups. */
#include "isd_record.h"

#define NO_OPTIONS (&(sl_format_options){0})

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
