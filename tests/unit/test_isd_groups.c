/* SPDX-License-Identifier: Apache-2.0 */
/* Every field of every group of ISD, parsed from generated records: present, missing, malformed. A
 * width that is wrong by one byte would shift all later fields in millions of records. */
#include "isd_record.h"

/* A valid value of a field, different for each `seed`, and not the value of a missing field. */
static void make_value(const sl_isd_field *field, unsigned seed, char *out) {
    for (unsigned i = 0; i < field->width; i++) {
        if (field->type == 's' && i == 0)
            out[i] = seed % 2 ? '-' : '+';
        else if (field->type == 'm' && i == 0 && seed % 2)
            out[i] = '-';
        else if (field->type == 't')
            out[i] = (char)('A' + (seed + i) % 26);
        else
            out[i] = (char)('1' + (seed + i) % 8);
    }
}

/* The text that at() should return for the value. */
static void expected_text(const sl_isd_field *field, const char *value, char *out, size_t room) {
    if (!strchr("nsm", field->type)) {
        snprintf(out, room, "text %.*s", field->width, value);
        return;
    }
    char digits[16];
    snprintf(digits, sizeof digits, "%.*s", field->width, value);
    int number = atoi(digits) * field->factor;
    if (field->divisor > 1)
        snprintf(out, room, "double %.15g", (double)number / field->divisor);
    else
        snprintf(out, room, "int %d", number);
}

static void make_missing(const sl_isd_field *field, char *out) {
    memset(out, '9', field->width);
    if (field->type == 's')
        *out = '+';
}

/* The group's data with every field present. */
static void make_data(const sl_isd_group *group, unsigned seed, char *data) {
    for (unsigned f = 0; f < group->field_count; f++)
        make_value(&group->fields[f], seed + f, data + group->fields[f].offset);
    data[group->width] = '\0';
}

static void path_of(const sl_isd_group *group, unsigned index, const char *field, char *out,
                    size_t room) {
    if (strcmp(group->first, group->last) != 0)
        snprintf(out, room, "%s.%u.%s", group->key, index, field);
    else
        snprintf(out, room, "%s.%s", group->key, field);
}

/* All fields of the group have the values of `data`, except the fields `from` to `to` - 1, which
 * are missing. */
static void assert_fields(const parsed *p, const sl_isd_group *group, const char *data,
                          unsigned index, unsigned from, unsigned to) {
    for (unsigned f = 0; f < group->field_count; f++) {
        const sl_isd_field *field = &group->fields[f];
        char path[200], expected[40] = "nothing";
        path_of(group, index, field->path, path, sizeof path);
        if (f < from || f >= to)
            expected_text(field, data + field->offset, expected, sizeof expected);
        if (strcmp(at(p, 0, path), expected) != 0)
            fail_msg("%s of %s is %s instead of %s", path, group->first, at(p, 0, path), expected);
    }
}

/* Parses the group and a second one after it, whose values show that the first has the right
 * length. */
static parsed parse_group(const char *id, const char *data) {
    char sections[200];
    const char *next = strcmp(id, "WJ1") == 0 ? "MW7" : "WJ1";
    snprintf(sections, sizeof sections, "ADD%s%s%s%s", id, data, next,
             next[0] == 'W' ? "045012341122+004531" : "995");
    parsed p = parse_sections(sections);
    assert_at(&p, "unparsed", "nothing");
    if (next[0] == 'W')
        assert_at(&p, "waterLevel.discharge", "int 1234");
    else
        assert_at(&p, "presentWeatherObservationManual.0.condition", "text 99");
    return p;
}

TEST(every_field_of_every_group) {
    unsigned fields = 0;
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        bool repeats = strcmp(group->first, group->last) != 0;
        for (char digit = group->first[2]; digit <= (repeats ? '9' : group->first[2]); digit++) {
            char id[4] = {group->first[0], group->first[1], digit, '\0'}, data[64];
            make_data(group, (unsigned)digit + (unsigned)g, data);
            parsed p = parse_group(id, data);
            assert_int_equal(strncmp(sections_of(&p, 0), id, 3), 0);
            assert_int_equal(p.counts.malformed_fields, 0);
            assert_fields(&p, group, data, 0, 0, 0);
        }
        fields += group->field_count;
    }
    assert_int_equal(fields, 505);
    assert_int_equal(sl_isd_group_count, 91);
}

TEST(each_field_missing) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        for (unsigned f = 0; f < group->field_count; f++) {
            const sl_isd_field *field = &group->fields[f];
            char data[64];
            make_data(group, (unsigned)g, data);
            make_missing(field, data + field->offset);
            parsed p = parse_group(group->first, data);
            assert_fields(&p, group, data, 0, f, f + field->nullable);
            assert_int_equal(p.counts.malformed_fields, 0);
        }
    }
}

/* A quality or flag of 9 directly after a missing value of the same document is left out, too. */
TEST(qualities_of_missing_values_are_left_out) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        for (unsigned f = 0; f < group->field_count; f++) {
            const sl_isd_field *field = &group->fields[f];
            const char *dot = strrchr(field->path, '.');
            size_t parent = dot ? (size_t)(dot - field->path) + 1 : 0;
            unsigned end = f + 1;
            char data[64];
            if (!field->nullable)
                continue;
            make_data(group, (unsigned)g, data);
            make_missing(field, data + field->offset);
            while (end < group->field_count && strchr("qf", group->fields[end].type) &&
                   strncmp(group->fields[end].path, field->path, parent) == 0 &&
                   !strchr(group->fields[end].path + parent, '.'))
                data[group->fields[end++].offset] = '9';
            parsed p = parse_group(group->first, data);
            assert_fields(&p, group, data, 0, f, end);
        }
    }
}

TEST(each_number_malformed) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        for (unsigned f = 0; f < group->field_count; f++) {
            const sl_isd_field *field = &group->fields[f];
            char data[64];
            if (!strchr("nsm", field->type))
                continue;
            for (unsigned i = 0; i < field->width; i++) {
                make_data(group, (unsigned)g, data);
                data[field->offset + i] = field->type == 's' && i == 0 ? '5' : 'O';
                parsed p = parse_group(group->first, data);
                assert_fields(&p, group, data, 0, f, f + 1);
                assert_int_equal(p.counts.malformed_fields, 1);
            }
        }
    }
}

TEST(families_keep_their_order) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        char sections[1000] = "ADD", data[9][64], path[100];
        size_t used = 3;
        unsigned count = 0;
        if (strcmp(group->first, group->last) == 0)
            continue;
        for (char digit = group->first[2]; digit <= '9'; digit++, count++) {
            make_data(group, 3 * count, data[count]);
            used += (size_t)snprintf(sections + used, sizeof sections - used, "%.2s%c%s",
                                     group->first, digit, data[count]);
        }
        parsed p = parse_sections(sections);
        for (unsigned i = 0; i < count; i++)
            assert_fields(&p, group, data[i], i, 0, 0);
        snprintf(path, sizeof path, "%s.%u", group->key, count);
        assert_at(&p, path, "nothing");
    }
}

/* With --missing raw all values are kept, and qualities of 9, too. */
TEST(missing_values_are_kept_when_asked_for) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        char data[64], sections[200];
        for (unsigned f = 0; f < group->field_count; f++)
            make_missing(&group->fields[f], data + group->fields[f].offset);
        data[group->width] = '\0';
        snprintf(sections, sizeof sections, "ADD%s%s", group->first, data);
        record r = record_of(sections);
        parsed p = parse_bytes(&(sl_format_options){.keep_missing = true}, r.bytes, r.length);
        assert_fields(&p, group, data, 0, 0, 0);
    }
}

/* The table of groups has the properties that compiling a plan relies on, and no duplicate keys. */
TEST(the_table_is_consistent) {
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        unsigned offset = 0;
        for (unsigned f = 0; f < group->field_count; f++) {
            const sl_isd_field *field = &group->fields[f];
            assert_int_equal(field->offset, offset);
            assert_in_range(field->width, 1, 7);
            assert_true(field->divisor >= 1 && field->factor >= 1);
            offset += field->width;
            for (unsigned k = 0; k < f; k++)
                assert_string_not_equal(field->path, group->fields[k].path);
        }
        assert_int_equal(group->width, offset);
        assert_in_range(3 + group->width, 6, 34);
        for (size_t k = 0; k < g; k++) {
            assert_true(strcmp(sl_isd_groups[k].last, group->first) < 0);
            if (strcmp(sl_isd_groups[k].key, group->key) == 0)
                assert_string_equal(group->first, "AI1"); /* AH1 and AI1: one family */
        }
        parsed p = parse_sections("");
        assert_false(has_key(&p, 0, group->key));
    }
}

/* Examples of groups with special rules in the format document. */
TEST(groups_with_special_rules) {
    static const struct {
        const char *group, *path, *expected;
    } rows[] = {
        {"MW1991", "presentWeatherObservationManual.0.condition", "text 99"},
        {"AY191060", "pastWeatherObservationManual.0.atmosphericCondition.value", "text 9"},
        {"AZ191060", "pastWeatherObservation.0.atmosphericCondition.value", "text 9"},
        {"AU109999991", "presentWeatherObservationASOS.0.precipitation", "text 99"},
        {"AT1AU01FG  5", "dailyPresentWeather.0.abbreviation", "text FG"},
        {"AT1AW99BLSN5", "dailyPresentWeather.0.type", "text 99"},
        {"OE13240005211801235", "summaryOfDayWind.0.speed", "double 0.52"},
        {"OE13240005211801235", "summaryOfDayWind.0.direction", "int 118"},
        {"OD132400521180", "supplementaryWindDirectional.0.speed", "double 5.2"},
        {"OD149900521270", "supplementaryWindDirectional.0.direction", "int 270"},
        {"KA1240M+02501", "extremeAirTemperature.0.period", "double 24"},
        {"KB1024A+02505", "averageAirTemperature.0.value", "double 2.5"},
        {"KG1024D+0250D1", "averageDewPointWetBulb.0.value", "double 25"},
        {"CN40100001104001018010", "crnDiagnosticsTransmitter.doorFlag.value", "int 1"},
        {"GE19MSL   +00762+99999", "skyConditionObservationSimple.verticalDatum", "text MSL"},
        {"GE19999999+00762+99999", "skyConditionObservationSimple.verticalDatum", "nothing"},
        {"ED136L08001", "runwayVisualRange.angle", "int 360"},
        {"CO2TMP-0050", "cooperativeElementTimeOffset.0.offset", "double -5"},
        {"CO102-07", "networkMetadata.utcToLstOffset", "int -7"},
        {"GO10060-099101231-0011", "netSolarRadiation.netSolar.value", "int -99"},
        {"UG1080252701", "primarySwell.height", "double 2.5"},
        {"UG2080252701", "secondarySwell.direction", "int 270"},
        {"CR10610110", "crnControl.dataloggerVersion", "double 6.101"},
        {"KC1N9-00302627281", "extremeAirTemperatureMonth.0.dates", "text 262728"},
        {"AD10025492627999999991", "liquidPrecipitationGreatestAmount24HoursMonthly.occurrence1",
         "text 2627"},
        {"AD10025492627999999991", "liquidPrecipitationGreatestAmount24HoursMonthly.occurrence2",
         "nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sections[100];
        snprintf(sections, sizeof sections, "ADD%s", rows[i].group);
        parsed p = parse_sections(sections);
        if (strcmp(at(&p, 0, rows[i].path), rows[i].expected) != 0)
            fail_msg("%s: %s is %s instead of %s", rows[i].group, rows[i].path,
                     at(&p, 0, rows[i].path), rows[i].expected);
        assert_at(&p, "unparsed", "nothing");
    }
}

/* The widths and scales of a group in the form of tests/data/isd-widths.tsv, like "2 4/10 1 1". */
static void describe(const sl_isd_group *group, char *out, size_t room) {
    size_t used = 0;
    for (unsigned f = 0; f < group->field_count && used < room; f++) {
        const sl_isd_field *field = &group->fields[f];
        used += (size_t)snprintf(out + used, room - used, "%s%u", f ? " " : "", field->width);
        if (field->divisor > 1 && used < room)
            used += (size_t)snprintf(out + used, room - used, "/%u", field->divisor);
        if (field->factor > 1 && used < room)
            used += (size_t)snprintf(out + used, room - used, "*%u", field->factor);
    }
}

TEST(widths_are_the_published_ones) {
    char line[400], row[400], described[300];
    size_t groups = 0;
    FILE *file = fopen(TEST_DATA "/isd-widths.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (*line == '#')
            continue;
        assert_true(groups < sl_isd_group_count);
        const sl_isd_group *group = &sl_isd_groups[groups++];
        describe(group, described, sizeof described);
        snprintf(row, sizeof row, "%s\t%s\t%s\n", group->first, group->last, described);
        assert_string_equal(row, line);
    }
    fclose(file);
    assert_int_equal(groups, sl_isd_group_count);
}
