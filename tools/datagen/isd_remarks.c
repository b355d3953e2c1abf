// SPDX-License-Identifier: Apache-2.0
//
// Writes the sections after the groups: remarks (the original report), element quality data,
// original observations. As in real records, remarks contain words that look like groups and
// sections: SCT200 contains CT2, INCREMENTAL contains REM, and some remarks end with EQD.
#include "isd_text.h"

// ---- remarks ----

// Starts a remark; end_remark sets its length.
static char *begin_remark(const char *type, char *p) {
    return put_bytes(p, type, 3) + 3;
}

static char *end_remark(char *begun, char *end) {
    put_digits(begun - 3, (uint32_t)(end - begun), 3);
    return end;
}

// Whole degrees; M is the minus sign.
static char *put_degrees(char *p, int32_t tenths) {
    int32_t magnitude = tenths < 0 ? -tenths : tenths;
    if (tenths < 0) {
        p = put_char(p, 'M');
    }
    return put_digits(p, (uint32_t)(magnitude + 5) / 10, 2);
}

// Tenths of a degree, the sign as a digit.
static char *put_coded(char *p, int32_t tenths) {
    p = put_char(p, tenths < 0 ? '1' : '0');
    return put_digits(p, (uint32_t)(tenths < 0 ? -tenths : tenths), 3);
}

static char *put_sky(const struct isd_row *row, uint32_t bits, char *p) {
    static const char amounts[][4] = {"CLR", "FEW", "FEW", "SCT", "SCT",
                                      "BKN", "BKN", "BKN", "OVC"};
    p = put_bytes(p, amounts[row->cover], 3);
    if (row->cover == 0) {
        return p;
    }
    if (row->ceiling == 22000) {
        return put_string(p, (bits & 1) != 0 ? "200" : "250");
    }
    return put_digits(p, (uint32_t)row->ceiling / 30, 3);
}

// METAR KAUS 010053Z 18007KT 10SM SCT200 12/08 A3012 RMK AO2 SLP196 T01170083
static char *put_metar(const struct isd_text *text, const struct isd_row *row, uint32_t bits,
                       char *p) {
    static const char weather[][4] = {" ", " BR", " FG", " RA", " SN"};
    const char *day = text->days[row->minute / DAY_MINUTES];
    uint32_t minute = (uint32_t)row->minute % DAY_MINUTES;
    if (row->station->version == '3') { // the local time before it
        p = put_char(put_bytes(p, day + 4, 2), '/');
        p = put_char(put_bytes(p, day + 6, 2), '/');
        p = put_char(put_bytes(p, day + 2, 2), ' ');
        p = put_char(put_digits(p, minute / 60, 2), ':');
        p = put_string(put_digits(p, minute % 60, 2), ":02 ");
    }
    p = put_string(p, row->type == TYPE_FM_16 ? "SPECI " : "METAR ");
    p = put_char(put_bytes(p, row->station->call, 4), ' ');
    p = put_digits(put_bytes(p, day + 6, 2), minute / 60 * 100 + minute % 60, 4);
    p = put_string(p, "Z ");
    p = put_digits(p, row->wind_speed == 0 ? 0 : (uint32_t)row->wind_direction, 3);
    p = put_digits(p, (uint32_t)row->wind_speed * 194 / 1000, 2);
    p = put_string(p, "KT ");
    p = put_number(p, row->visibility >= 16000 ? 10 : 1 + row->visibility / 1609);
    p = put_string(p, "SM");
    p = put_string(p, row->weather == WEATHER_DRY ? "" : weather[row->weather]);
    p = put_char(put_sky(row, bits, put_char(p, ' ')), ' ');
    p = put_char(put_degrees(p, row->temperature), '/');
    p = put_string(put_degrees(p, row->dew_point), " A");
    p = put_string(put_digits(p, (uint32_t)row->pressure * 2953 / 10000, 4), " RMK AO2");
    if (row->has_pressure) {
        p = put_digits(put_string(p, " SLP"), (uint32_t)row->pressure % 1000, 3);
    }
    if ((bits & 6) != 0) {
        p = put_coded(put_coded(put_string(p, " T"), row->temperature), row->dew_point);
    }
    if (row->minute / 60 % 3 == 2) {
        int32_t change = row->tendency < 0 ? -row->tendency : row->tendency;
        p = put_digits(put_string(p, row->tendency < 0 ? " 58" : " 53"), (uint32_t)change, 3);
    }
    if ((bits & 0xF80) == 0) {
        p = put_string(p, " PREC 24 HR INCREMENTAL 0.02 ADD MW1");
    }
    p = put_string(p, (bits & 0x1000) != 0 ? "" : (bits & 0x2000) != 0 ? " TSNO" : " (DF)");
    if ((bits & 0x3FC000) == 0) {
        return put_string(p, "EQDD07+000000ADE726"); // counted in the length of the remark
    }
    return put_string(p, (bits & 0xC00000) != 0 ? "" : "=");
}

// A group of the synoptic code: a blank, a digit, the sign of a temperature as a digit, tenths.
static char *put_synoptic(char *p, char group, int32_t tenths) {
    return put_coded(put_char(put_char(p, ' '), group), tenths);
}

static char *put_synop(const struct isd_row *row, uint32_t bits, char *p) {
    if ((bits & 3) == 0) {
        p = put_string(p, "333  ");
        if ((bits & 4) != 0) {
            p = put_synoptic(p, '1', row->temperature + (int32_t)(bits >> 8 & 31));
        }
        return put_digits(put_string(p, " 91"), bits >> 13 & 63, 3);
    }
    p = put_bytes(p, row->station->usaf, 5);
    p = put_string(p, " 1168");
    p = put_char(put_digits(p, bits >> 4 & 7, 1), ' ');
    p = put_digits(p, row->cover, 1);
    p = put_digits(p, (uint32_t)(row->wind_speed == 0 ? 0 : row->wind_direction / 10), 2);
    p = put_digits(p, (uint32_t)row->wind_speed / 10, 2);
    p = put_synoptic(p, '1', row->temperature);
    p = put_synoptic(p, '2', row->dew_point);
    p = put_digits(put_string(p, " 3"), (uint32_t)row->low_pressure % 10000, 4);
    p = put_digits(put_string(p, " 4"), (uint32_t)row->pressure % 10000, 4);
    return put_char(p, (bits & 0x1000) != 0 ? ';' : '=');
}

static char *put_airways(const struct isd_row *row, uint32_t bits, char *p) {
    p = put_digits(p, bits & 127, 3);
    p = put_string(p, (bits & 0x80) != 0 ? "10 10" : "00 CIG8V10/ 10");
    p = put_digits(p, bits >> 8 & 15, 2);
    p = put_string(p, row->rain > 0 ? " RB01RE40" : (bits & 0x1000) != 0 ? " 17//" : "");
    return put_char(p, '?');
}

static char *put_inches(char *p, uint32_t hundredths) {
    p = put_char(put_number(p, (int32_t)(hundredths / 100)), '.');
    return put_digits(p, hundredths % 100, 2);
}

static char *put_day_summary(const struct isd_row *row, uint32_t bits, char *p) {
    int32_t fahrenheit = row->temperature * 9 / 50 + 32;
    p = put_inches(put_string(p, "24 HR PRECIPITATION (IN):"), (uint32_t)row->rain / 2);
    p = put_number(put_string(p, "  SNOW DEPTH (IN):"), row->snow_depth % 9999 * 2 / 5);
    p = put_number(put_string(p, "  24 HR MAX TEMP (F):"), fahrenheit + (int32_t)(bits & 15));
    p = put_number(put_string(p, " 24 HR MIN TEMP (F):"), fahrenheit - (int32_t)(bits >> 4 & 15));
    p = put_inches(put_string(p, " AVERAGE STATION PRESSURE:"),
                   (uint32_t)row->low_pressure * 2953 / 10000);
    p = put_number(put_string(p, " TIME OF OCCURRENCE:2359 PEAK WIND SPEED (MPH):"),
                   row->wind_speed / 4);
    p = put_number(put_string(p, "  PEAK WIND DIR (DEG):"), row->wind_direction);
    p = put_string(p, " HEATING DEGREE DAYS:");
    p = put_number(p, fahrenheit < 65 ? 65 - fahrenheit : 0);
    p = put_string(p, " HOURLY INCREMENTAL PRECIPITATION VALUES (IN):");
    for (int hour = 0; hour < 24; hour++) {
        p = put_inches(p, row->rain > 0 && (bits >> hour & 1) != 0 ? (uint32_t)row->rain / 5 : 0);
        p = put_char(p, ' ');
    }
    return p;
}

static char *put_month_summary(const struct isd_row *row, uint32_t bits, char *p) {
    static const uint8_t minutes[] = {5, 10, 15, 20, 30, 45, 60, 80, 100, 120, 150, 180};
    p = put_inches(put_string(p, "PCP MTOT:"), bits & 1023);
    p = put_number(put_string(p, " DATE(S):"), 1 + (int32_t)(bits >> 10 & 15));
    p = put_string(p, " DAYS W/PCP >=.01:5  DAYS W/PCP >=.10:2 MSDP AMTS W/DATE-TIME TAGS:");
    for (uint32_t i = 0; i < sizeof minutes; i++) {
        p = put_number(put_string(p, "MIN:"), minutes[i]);
        p = put_inches(put_char(p, ' '), 7 + i * (bits >> 14 & 3));
        p = put_string(p, "  26/0205 ");
    }
    p = put_number(put_string(p, "AVG MLY TMP:"), row->temperature * 9 / 50 + 32);
    return put_string(p, ".0  DAYS MAX <=32:1 DAYS MAX >=90:0  DAYS MIN <=32:8  DEP NORM:-2553 "
                         "SEASON(JUL 1-JUN 30):1799 DEP NORM:-25536");
}

char *isd_put_remarks(struct isd_text *text, const struct isd_row *row, char *p) {
    uint32_t bits = high32(rng_next(&text->rng));
    p = put_bytes(p, "REM", 3);
    char *begun;
    switch ((enum isd_type)row->type) {
    case TYPE_FM_15:
    case TYPE_FM_16:
        begun = begin_remark("MET", p);
        return end_remark(begun, put_metar(text, row, bits, begun));
    case TYPE_SY_SA: // both codes
        begun = begin_remark("SYN", p);
        p = end_remark(begun, put_synop(row, bits, begun));
        begun = begin_remark("AWY", p);
        return end_remark(begun, put_airways(row, bits >> 16, begun));
    case TYPE_SAO:
        begun = begin_remark("AWY", p);
        return end_remark(begun, put_airways(row, bits, begun));
    case TYPE_SOD:
        begun = begin_remark("SOD", p);
        return end_remark(begun, put_day_summary(row, bits, begun));
    case TYPE_SOM:
        begun = begin_remark("SOM", p);
        return end_remark(begun, put_month_summary(row, bits, begun));
    default:
        begun = begin_remark("SYN", p);
        return end_remark(begun, put_synop(row, bits, begun));
    }
}

// ---- element quality ----

// Letter, original value, reason, parameter. In the last two synoptic entries the value is shifted
// to the left. '#' stands for a digit.
static const char *const synoptic_entries[] = {"Q+0000#2SCOTCV", "Q+0000#2SCOTLC", "Q  0000#PRCP06",
                                               "Q   01#3SCOCIG", "Q  0#003PRSWM1", "P0#00004APOSLP",
                                               "Q.#3APC3      ", "Q.#    3APC3  "};
static const char *const airport_entries[] = {"D      0ADE726", "D      0ADE726", "D      0ADE726",
                                              "RSEERMK7MVW012", "R    SN7AWW012", "R      7SKY009",
                                              "R #/2SM7VIS018", "Q  0000#PRCP03"};
static const char *const airways_entries[] = {"N 00000JPWTH 1", "N 08100JPWTH 1", "N 07000JPWTH 1",
                                              "N 02#70JPWTH 1"};
static const char *const summary_entries[] = {"R     N7GJS072", "R     N7GKS075", "R     87AXW093",
                                              "R   8,17AXW093"};
enum { ENTRY_VALUE = 13, ENTRIES_MAX = 8 };

static const struct {
    const char *const *entries;
    uint32_t mask; // one less than the number of entries
} quality_entries[ISD_TYPES] = {
    [TYPE_FM_12] = {synoptic_entries, 7}, [TYPE_FM_13] = {synoptic_entries, 7},
    [TYPE_FM_15] = {airport_entries, 7},  [TYPE_FM_16] = {airport_entries, 7},
    [TYPE_SAO] = {airways_entries, 3},    [TYPE_SY_SA] = {airways_entries, 3},
    [TYPE_SOD] = {summary_entries, 3},    [TYPE_SOM] = {summary_entries, 3},
};

char *isd_put_element_quality(struct isd_text *text, const struct isd_row *row, char *p) {
    const char *const *entries = quality_entries[row->type].entries;
    uint32_t mask = quality_entries[row->type].mask;
    p = put_bytes(p, "EQD", 3);
    uint64_t bits = rng_next(&text->rng);
    for (uint32_t i = 1; i <= ENTRIES_MAX; i++) {
        const char *entry = entries[bits & mask];
        p = put_digits(put_char(p, *entry), i, 2);
        memcpy(p, entry + 1, ENTRY_VALUE);
        char *digit = memchr(p, '#', ENTRY_VALUE);
        if (digit != NULL) {
            *digit = (char)('0' + (bits >> 3 & 7));
        }
        p += ENTRY_VALUE;
        bits >>= 6;
        if ((bits & 3) != 0) { // a few have more
            break;
        }
    }
    return p;
}

// ---- original observations ----

static char *put_element(char *p, char element, int32_t value) {
    p = put_bytes(put_char(p, element), value < 0 ? "11 1-" : "11 1 ", 5);
    return put_digits(p, (uint32_t)(value < 0 ? -value : value), 5);
}

char *isd_put_original(struct isd_text *text, const struct isd_row *row, char *p) {
    int32_t dots = (int32_t)(rng_next(&text->rng) >> 62);
    p = put_bytes(p, "QNN", 3);
    p = put_element(p, 'E', row->cover * 100 + 99);
    for (int32_t i = 0; i < 3; i++) { // the same letter again is normal
        p = put_element(p, 'E', 99);
    }
    p = put_element(p, 'G', row->ceiling / 30 % 1000);
    if (dots == 0) {
        p = put_element(p, 'H', 15000 + row->ceiling / 30 % 1000);
    }
    p = put_element(p, 'K', row->dew_point / 5);
    p = put_element(p, 'L', row->visibility / 16);
    p = put_element(p, 'M', row->low_pressure * 3);
    p = put_element(p, 'N', row->weather * 1000);
    p = put_element(p, 'Q', row->pressure);
    p = put_element(p, 'S', row->temperature / 5);
    p = put_bytes(p, "V11 1 01010", 11);
    return put_element(p, 'X', row->wind_direction % 360 * 10 + row->wind_speed / 5);
}
