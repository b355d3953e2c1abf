// SPDX-License-Identifier: Apache-2.0
//
// Writes ISD records as text, also bad records.
#include "isd_text.h"

#include "calendar.h"

void isd_text_init(struct isd_text *text, const struct options *options,
                   const struct isd_groups *groups) {
    text->groups = groups;
    isd_find_tellers(text);
    rng_init(&text->rng, options->seed ^ 0x7E87);
    int32_t start = year_start(options->year);
    for (int32_t i = 0; i <= year_start(options->year + 1) - start; i++) {
        struct date date = date_of(start + i);
        char *p = put_digits(text->days[i], (uint32_t)date.year, 4);
        p = put_digits(p, (uint32_t)date.month, 2);
        put_digits(p, (uint32_t)date.day, 2);
    }
}

char *put_number(char *p, int32_t value) {
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    unsigned width = 1;
    for (uint32_t rest = magnitude; rest >= 10; rest /= 10) {
        width++;
    }
    if (value < 0) {
        *p++ = '-';
    }
    return put_digits(p, magnitude, width);
}

// ---- the fixed part ----

static const struct {
    char name[6];
    char source;
} types[ISD_TYPES] = {
    [TYPE_FM_12] = {"FM-12", '4'}, [TYPE_FM_13] = {"FM-13", '2'}, [TYPE_FM_15] = {"FM-15", '7'},
    [TYPE_FM_16] = {"FM-16", '7'}, [TYPE_SAO] = {"SAO  ", 'C'},   [TYPE_SY_SA] = {"SY-SA", 'C'},
    [TYPE_SOD] = {"SOD  ", '6'},   [TYPE_SOM] = {"SOM  ", '6'},
};

// Bytes 5 to 60; the four before, the length, are known at the end.
static char *put_control(const struct isd_text *text, const struct isd_row *row, char *p) {
    const struct isd_station *station = row->station;
    int32_t day = row->minute / DAY_MINUTES - (row->late ? 1 : 0);
    int32_t minute = row->late ? DAY_MINUTES : row->minute % DAY_MINUTES;
    p = put_bytes(p, station->usaf, 6);
    p = put_bytes(p, station->wban, 5);
    p = put_bytes(p, text->days[day], 8);
    p = put_digits(p, (uint32_t)(minute / 60 * 100 + minute % 60), 4);
    p = put_char(p, types[row->type].source);
    p = put_signed(p, row->latitude, 6);
    p = put_signed(p, row->longitude, 7);
    p = put_bytes(p, types[row->type].name, 5);
    p = put_signed(p, station->elevation, 5);
    p = put_bytes(p, station->call, 5);
    p = put_char(put_bytes(p, "V0", 2), station->version);
    return put_char(p, '0');
}

static char *put_wind(const struct isd_row *row, char quality, char *p) {
    if (!row->has_wind) {
        return put_bytes(p, "9999999999", 10);
    }
    bool calm = row->wind_speed == 0;
    p = put_digits(p, (uint32_t)row->wind_direction, 3);
    p = put_char(p, calm ? '9' : quality);
    p = put_char(p, calm ? 'C' : 'N');
    p = put_digits(p, (uint32_t)row->wind_speed, 4);
    return put_char(p, row->wind_quality);
}

static char *put_measure(char *p, bool has, int32_t value, char quality) {
    if (!has) {
        return put_bytes(p, "+99999", 6);
    }
    return put_char(put_signed(p, value, 5), quality);
}

// Bytes 61 to 105.
static char *put_mandatory(const struct isd_row *row, char *p) {
    char quality = row->type == TYPE_FM_12 || row->type == TYPE_FM_13 ? '1' : '5';
    bool airport = row->type == TYPE_FM_15 || row->type == TYPE_FM_16;
    p = put_wind(row, quality, p);
    if (row->has_ceiling) {
        p = put_digits(p, (uint32_t)row->ceiling, 5);
        p = put_char(p, quality);
        p = put_char(p, airport && row->ceiling != 22000 ? 'M' : '9');
    } else {
        p = put_nines(p, 7);
    }
    p = put_char(p, row->has_ceiling ? 'N' : '9');
    if (row->has_visibility) {
        p = put_digits(p, (uint32_t)row->visibility, 6);
        p = put_char(p, quality);
        p = put_bytes(p, airport ? "N5" : "99", 2);
    } else {
        p = put_nines(p, 9);
    }
    p = put_measure(p, row->has_temperature, row->temperature, row->temperature_quality);
    p = put_measure(p, row->has_dew_point, row->dew_point, row->temperature_quality);
    if (!row->has_pressure) {
        return put_nines(p, 6);
    }
    return put_char(put_digits(p, (uint32_t)row->pressure, 5), quality);
}

// ---- records ----

static char *put_record(struct isd_text *text, const struct isd_row *row, char *start) {
    char *p = put_control(text, row, start + 4);
    p = put_mandatory(row, p);
    if (row->group_count > 0 || row->oddity == ODDITY_UNKNOWN_GROUP) {
        p = isd_put_groups(text, row, p);
    }
    if (row->has_remark) {
        p = isd_put_remarks(text, row, p);
    }
    if (row->has_element_quality) {
        p = isd_put_element_quality(text, row, p);
    }
    if (row->has_original) {
        p = isd_put_original(text, row, p);
    }
    uint32_t length = (uint32_t)(p - start) - RECORD_FIXED;
    if (row->oddity == ODDITY_LENGTH) {
        length += 26; // as a record of 1973 has it
    }
    put_digits(start, length, 4);
    return p;
}

char *isd_text_row(struct isd_text *text, const struct isd_row *row, char *p) {
    return put_char(put_record(text, row, p), '\n');
}

// ---- bad records ----

// The kinds of bad records: truncated, or with an invalid date and time.
static const struct {
    const char *kind;
    unsigned cut; // bytes that are left, or 0
    unsigned at;
    const char *text;
} spoilers[] = {
    {"too short", 104, 0, ""},
    {"letters in a date", 0, 15, "2O14"},
    {"too short", 61, 0, ""},
    {"no such day", 0, 19, "0230"},
    {"letters in a time", 0, 23, "12:0"},
    {"too short", 15, 0, ""},
    {"no such time", 0, 23, "2460"},
    {"blanks for a date", 0, 15, "        "},
};
enum { SPOILERS = sizeof spoilers / sizeof spoilers[0] };

char *isd_text_bad(struct isd_text *text, const struct isd_row *row, uint64_t which, char *p,
                   struct bad_record *bad) {
    char *end = put_record(text, row, p);
    unsigned way = which % SPOILERS;
    bad->kind = spoilers[way].kind;
    if (spoilers[way].cut > 0) {
        end = p + spoilers[way].cut;
    } else {
        bad->column = "date and time";
        memcpy(p + spoilers[way].at, spoilers[way].text, strlen(spoilers[way].text));
    }
    return put_char(end, '\n');
}
