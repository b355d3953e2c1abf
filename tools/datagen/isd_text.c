// SPDX-License-Identifier: Apache-2.0
//
// Writes ISD records as text. Each function writes at `p` and returns the end of
// what it wrote.
#include <string.h>

#include "calendar.h"
#include "isd.h"

// ---- fields ----

// Like sprintf, but returns the new end.
static char *PRINTF_LIKE(2, 3) put(char *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    p += vsprintf(p, format, arguments);
    va_end(arguments);
    return p;
}

// Digits with leading zeros, not ended.
static char *put_digits(char *p, uint32_t value, unsigned width) {
    for (unsigned i = width; i-- > 0; value /= 10) {
        p[i] = (char)('0' + value % 10);
    }
    return p + width;
}

static char *put_nines(char *p, unsigned width) {
    memset(p, '9', width);
    return p + width;
}

static char quality_of(const struct isd_row *row) {
    return row->type == TYPE_FM_12 ? '1' : '5';
}

static int32_t smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

// ---- groups whose values follow from the weather of an hour ----

// The instance of a group that is written.
struct isd_part {
    const struct isd_row *row;
    unsigned number; // of the instance, from 1
    uint32_t bits;   // random
    char quality;
};

// Liquid precipitation: period, depth, condition.
static char *put_aa(const struct isd_part *part, char *p) {
    static const uint8_t periods[] = {1, 6, 24, 12};
    const struct isd_row *row = part->row;
    uint32_t hours = row->type == TYPE_SOD ? 24 : periods[part->number - 1];
    uint32_t depth = row->rain > 0 ? (uint32_t)row->rain * (1 + hours / 3) : 0;
    char condition = depth == 0 && (part->bits & 31) == 0 ? '2' : '9'; // 2: a trace
    return put(p, "%02u%04u%c%c", hours, depth, condition, part->quality);
}

static char *put_ag(const struct isd_part *part, char *p) {
    int32_t rain = part->row->rain;
    return put(p, "%c%03d", rain > 0 ? '3' : '0', (part->bits & 7) == 0 ? 999 : rain / 10);
}

static char *put_aj(const struct isd_part *part, char *p) {
    int32_t depth = part->row->snow_depth;
    return put(p, "%04d9%c99999999", depth, depth == 9999 ? '9' : part->quality);
}

static char *put_au(const struct isd_part *part, char *p) {
    const struct isd_row *row = part->row;
    uint8_t code = row->precipitation[part->number - 1];
    char obscured = row->weather == WEATHER_FOG ? '2' : row->weather == WEATHER_MIST ? '1' : '7';
    return put(p, "%c0%02u%c005", code != 0 ? '1' + row->strength : '0', code,
               code != 0 ? '0' : obscured);
}

static char *put_aw(const struct isd_part *part, char *p) {
    return put(p, "%02u%c", part->row->automated[part->number - 1], part->quality);
}

static char *put_mw(const struct isd_part *part, char *p) {
    return put(p, "%02u%c", part->row->manual[part->number - 1], part->quality);
}

// Past weather: condition, period. Condition 9 is thunder, not a missing value.
static char *put_ay(const struct isd_part *part, char *p) {
    static const char by_weather[] = {'2', '4', '4', '6', '7'};
    return put(p, "%c%c%02u%c", (part->bits & 63) == 0 ? '9' : by_weather[part->row->weather],
               part->quality, part->row->minute / 60 % 6 == 0 ? 6u : 3u, part->quality);
}

static uint32_t oktas_of(const struct isd_part *part) {
    return (uint32_t)smaller(part->row->cover, 2 + 2 * (int32_t)part->number);
}

// The base of the layer, or that there is none.
static char *put_base(const struct isd_part *part, char *p) {
    const struct isd_row *row = part->row;
    int32_t low = row->ceiling == 22000 ? 1500 : row->ceiling;
    if (row->cover == 0 && part->number == 1) {
        return put(p, "+999999");
    }
    return put(p, "%+06d%c", low + ((int32_t)part->number - 1) * 750, part->quality);
}

static char *put_ga(const struct isd_part *part, char *p) {
    p = put_base(part, put(p, "%02u%c", oktas_of(part), part->quality));
    return (part->bits & 3) != 0 ? put(p, "999")
                                 : put(p, "%02u%c", part->bits >> 2 & 7, part->quality);
}

static char *put_gd(const struct isd_part *part, char *p) {
    static const char by_oktas[] = {'0', '1', '1', '2', '2', '3', '3', '3', '4'};
    uint32_t oktas = oktas_of(part);
    bool counted = part->row->type == TYPE_SAO || part->row->type == TYPE_SY_SA;
    p = put(p, "%c%02u%c", by_oktas[oktas < 9 ? oktas : 8], counted ? oktas : 99, part->quality);
    return put(put_base(part, p), "9");
}

static char *put_ge(const struct isd_part *part, char *p) {
    return put(p, "%c%s   +99999+99999", (part->bits & 31) == 0 ? '1' : '9',
               (part->bits & 7) == 0 ? "AGL" : "MSL");
}

static char *put_gf(const struct isd_part *part, char *p) {
    const struct isd_row *row = part->row;
    uint32_t bits = part->bits;
    char quality = part->quality;
    p = put(p, "%02u99%c", row->total_cover, row->total_cover == 99 ? '9' : quality);
    if ((bits & 3) == 0 && row->cover > 0) {
        p = put(p, "%02u%c%02u%c", row->cover, quality, bits >> 2 & 7, quality);
    } else {
        p = put(p, "999999");
    }
    if (row->cover > 0 && row->ceiling != 22000) {
        p = put(p, "%05d%c", row->ceiling, quality);
    } else {
        p = put(p, "999999");
    }
    return put(p, "%02u%c%02u%c", (bits & 16) != 0 ? 99 : bits >> 5 & 7, quality,
               (bits & 256) != 0 ? 99 : bits >> 9 & 7, quality);
}

// Highest and lowest temperatures of six hours, then of twenty-four.
static char *put_ka(const struct isd_part *part, char *p) {
    const struct isd_row *row = part->row;
    int32_t distance = (int32_t)(part->bits & 63) * (1 + (int32_t)part->number / 3);
    bool highest = part->number % 2 == 1;
    // Daily summaries have whole hours where all others have tenths.
    int32_t period = row->type == TYPE_SOD ? 24
                     : part->number > 2    ? 240
                                           : (row->type == TYPE_FM_12 ? 120 : 60);
    return put(p, "%03d%c%+05d%c", period, highest ? 'M' : 'N',
               row->temperature + (highest ? distance : -distance), part->quality);
}

static char *put_ma(const struct isd_part *part, char *p) {
    const struct isd_row *row = part->row;
    if (row->type == TYPE_FM_12 && (part->bits & 3) != 0) {
        p = put(p, "999999");
    } else {
        p = put(p, "%05d%c", row->pressure, part->quality);
    }
    return put(p, "%05d%c", row->low_pressure, part->quality);
}

// Tendency, change in three hours and in a day.
static char *put_md(const struct isd_part *part, char *p) {
    int32_t change = part->row->tendency;
    uint32_t which = part->bits & 3;
    uint32_t code = change == 0 ? 4 : change > 0 ? which : 5 + which;
    return put(p, "%u%c%03d%c+9999", code, part->quality, change < 0 ? -change : change,
               part->quality);
}

static char *put_oc(const struct isd_part *part, char *p) {
    int32_t gust = smaller(part->row->wind_speed + 30 + (int32_t)(part->bits & 63), 1100);
    return put(p, "%04d%c", gust, part->quality);
}

static char *put_oa(const struct isd_part *part, char *p) {
    return put_oc(part, put(p, "401"));
}

static char *put_od(const struct isd_part *part, char *p) {
    return put(put_oc(part, put(p, "399")), "%03d", part->row->wind_direction);
}

// The sea's temperature varies less than the air's and is at least -1.8, where sea water freezes.
static char *put_sa(const struct isd_part *part, char *p) {
    int32_t degrees = part->row->temperature * 3 / 4 + 30 + (int32_t)(part->bits & 15);
    return put(p, "%+04d%c", degrees < -18 ? -18 : degrees, part->quality);
}

static const struct {
    char letters[3];
    isd_put_group *put;
} writers[] = {
    {"AA", put_aa}, {"AG", put_ag}, {"AJ", put_aj}, {"AU", put_au}, {"AW", put_aw},
    {"AY", put_ay}, {"AZ", put_ay}, {"GA", put_ga}, {"GD", put_gd}, {"GE", put_ge},
    {"GF", put_gf}, {"KA", put_ka}, {"MA", put_ma}, {"MD", put_md}, {"MW", put_mw},
    {"OA", put_oa}, {"OC", put_oc}, {"OD", put_od}, {"SA", put_sa},
};
enum { WRITERS = sizeof writers / sizeof writers[0] };

void isd_text_init(struct isd_text *text, const struct options *options,
                   const struct isd_groups *groups) {
    text->groups = groups;
    for (unsigned i = 0; i < groups->count * WRITERS; i++) {
        if (strcmp(writers[i % WRITERS].letters, groups->families[i / WRITERS].letters) == 0) {
            text->put[i / WRITERS] = writers[i % WRITERS].put;
        }
    }
    rng_init(&text->rng, options->seed ^ 0x7E87);
    int32_t start = year_start(options->year);
    for (int32_t i = 0; i <= year_start(options->year + 1) - start; i++) {
        struct date date = date_of(start + i);
        char *p = put_digits(text->days[i], (uint32_t)date.year, 4);
        p = put_digits(p, (uint32_t)date.month, 2);
        put_digits(p, (uint32_t)date.day, 2);
    }
}

// ---- other groups ----

// A value within all limits; 1 of 16 is missing.
static char *put_any(char type, unsigned width, uint32_t bits, char *p) {
    static const char words[] = "HZ   FG   BLSN RA   BR   TS   SN   DZ   "; // five letters each
    bool missing = (bits >> 28) == 0;
    uint32_t value = (bits & 0xFFFF) % (width < 3 ? 24 : width == 3 ? 400 : 3000);
    switch (type) {
    case 'n':
        return missing ? put_nines(p, width) : put_digits(p, value, width);
    case 's': {
        int32_t number = (int32_t)(value % 600) - 200;
        return missing ? put_nines(put(p, "+"), width - 1)
                       : put_digits(put(p, number < 0 ? "-" : "+"),
                                    (uint32_t)(number < 0 ? -number : number), width - 1);
    }
    case 'm':
        return missing           ? put_nines(p, width)
               : (bits & 1) != 0 ? put_digits(put(p, "-"), value, width - 1)
                                 : put_digits(p, value, width);
    case 'd': // days, hours and minutes
        for (unsigned i = 0; i < width; i += 2) {
            p = missing ? put_nines(p, 2) : put_digits(p, 1 + (bits >> (4 * i) & 15), 2);
        }
        return p;
    case 'q':
        return put(p, missing ? "9" : "1");
    case 'f':
        return put(p, "0");
    case 't':
        memset(p, ' ', width);
        memcpy(p, words + (bits & 7) * 5, width < 5 ? width : 5);
        return p + width;
    default: // c
        return missing ? put_nines(p, width) : put_digits(p, (bits & 0xFFFF) % 9, width);
    }
}

static char *put_unusual(struct isd_text *text, const struct isd_family *family, char *p) {
    for (unsigned i = 0; i < family->field_count; i++) {
        p = put_any(family->fields[i].type, family->fields[i].width, high32(rng_next(&text->rng)),
                    p);
    }
    return p;
}

static char *put_instances(struct isd_text *text, const struct isd_row *row, unsigned number,
                           unsigned instances, char *p) {
    const struct isd_family *family = &text->groups->families[number];
    for (unsigned i = 0; i < instances; i++) {
        p = put(p, "%s%c", family->letters, (char)(family->first + (char)i));
        if (text->put[number] == NULL) {
            p = put_unusual(text, family, p);
            continue;
        }
        struct isd_part part = {row, i + 1, high32(rng_next(&text->rng)), quality_of(row)};
        p = text->put[number](&part, p);
    }
    return p;
}

static char *put_groups(struct isd_text *text, const struct isd_row *row, char *p) {
    // An unknown group makes the groups after it unparsable, so it follows those that queries use.
    bool unknown = row->oddity == ODDITY_UNKNOWN_GROUP;
    p = put(p, "ADD");
    for (unsigned i = 0; i < row->group_count; i++) {
        unsigned number = row->groups[i].family;
        if (unknown && text->groups->families[number].letters[0] > 'N') {
            p = put(p, "NX1042913");
            unknown = false;
        }
        p = put_instances(text, row, number, row->groups[i].instances, p);
    }
    return unknown ? put(p, "NX1042913") : p;
}

// ---- remarks (the original report), element quality data, original observations ----
//
// As in real records, remarks contain words that look like groups and sections: SCT200 contains
// CT2, INCREMENTAL contains REM, and some remarks end with EQD.

// Whole degrees; M is the minus sign.
static char *put_degrees(char *p, int32_t tenths) {
    return put(p, "%s%02d", tenths < 0 ? "M" : "", ((tenths < 0 ? -tenths : tenths) + 5) / 10);
}

// Tenths of a degree, the sign as a digit.
static char *put_coded(char *p, int32_t tenths) {
    return put(p, "%c%03d", tenths < 0 ? '1' : '0', tenths < 0 ? -tenths : tenths);
}

static char *put_sky(const struct isd_row *row, uint32_t bits, char *p) {
    static const char amounts[][4] = {"CLR", "FEW", "FEW", "SCT", "SCT",
                                      "BKN", "BKN", "BKN", "OVC"};
    if (row->cover == 0) {
        return put(p, "CLR");
    }
    int32_t base = row->ceiling != 22000 ? row->ceiling / 30 : (bits & 1) != 0 ? 200 : 250;
    return put(p, "%s%03d", amounts[row->cover], base);
}

// METAR KAUS 010053Z 18007KT 10SM SCT200 12/08 A3012 RMK AO2 SLP196 T01170083
static char *put_metar(const struct isd_text *text, const struct isd_row *row, uint32_t bits,
                       char *p) {
    static const char weather[][4] = {"", " BR", " FG", " RA", " SN"};
    const char *day = text->days[row->minute / DAY_MINUTES];
    int32_t hour = row->minute % DAY_MINUTES / 60, minute = row->minute % 60;
    if (row->station->version == '3') { // the local time before it
        p = put(p, "%.2s/%.2s/%.2s %02d:%02d:02 ", day + 4, day + 6, day + 2, hour, minute);
    }
    p = put(p, "%s %.4s %.2s%02d%02dZ %03d%02dKT %dSM%s ",
            row->type == TYPE_FM_16 ? "SPECI" : "METAR", row->station->call, day + 6, hour, minute,
            row->wind_speed == 0 ? 0 : row->wind_direction, row->wind_speed * 194 / 1000,
            row->visibility >= 16000 ? 10 : 1 + row->visibility / 1609, weather[row->weather]);
    p = put_degrees(put(put_sky(row, bits, p), " "), row->temperature);
    p = put_degrees(put(p, "/"), row->dew_point);
    p = put(p, " A%04d RMK AO2", row->pressure * 2953 / 10000);
    if (row->has_pressure) {
        p = put(p, " SLP%03d", row->pressure % 1000);
    }
    if ((bits & 6) != 0) {
        p = put_coded(put_coded(put(p, " T"), row->temperature), row->dew_point);
    }
    if (row->minute / 60 % 3 == 2) {
        p = put(p, " 5%c%03d", row->tendency < 0 ? '8' : '3',
                row->tendency < 0 ? -row->tendency : row->tendency);
    }
    if ((bits & 0xF80) == 0) {
        p = put(p, " PREC 24 HR INCREMENTAL 0.02 ADD MW1");
    }
    p = put(p, "%s", (bits & 0x1000) != 0 ? "" : (bits & 0x2000) != 0 ? " TSNO" : " (DF)");
    if ((bits & 0x3FC000) == 0) {
        return put(p, "EQDD07+000000ADE726"); // counted in the length of the remark
    }
    return put(p, "%s", (bits & 0xC00000) != 0 ? "" : "=");
}

static char *put_synop(const struct isd_row *row, uint32_t bits, char *p) {
    if ((bits & 3) == 0) {
        p = put(p, "333  ");
        if ((bits & 4) != 0) {
            p = put_coded(put(p, " 1"), row->temperature + (int32_t)(bits >> 8 & 31));
        }
        return put(p, " 91%03u", bits >> 13 & 63);
    }
    p = put(p, "%.5s 1168%u %u%02d%02d", row->station->usaf, bits >> 4 & 7, row->cover,
            row->wind_speed == 0 ? 0 : row->wind_direction / 10, row->wind_speed / 10);
    p = put_coded(put(p, " 1"), row->temperature);
    p = put_coded(put(p, " 2"), row->dew_point);
    return put(p, " 3%04d 4%04d%c", row->low_pressure % 10000, row->pressure % 10000,
               (bits & 0x1000) != 0 ? ';' : '=');
}

static char *put_airways(const struct isd_row *row, uint32_t bits, char *p) {
    return put(p, "%03u%s%02u%s?", bits & 127, (bits & 0x80) != 0 ? "10 10" : "00 CIG8V10/ 10",
               bits >> 8 & 15,
               row->rain > 0          ? " RB01RE40"
               : (bits & 0x1000) != 0 ? " 17//"
                                      : "");
}

static char *put_inches(char *p, uint32_t hundredths) {
    return put(p, "%u.%02u", hundredths / 100, hundredths % 100);
}

static char *put_day_summary(const struct isd_row *row, uint32_t bits, char *p) {
    int32_t fahrenheit = row->temperature * 9 / 50 + 32;
    p = put_inches(put(p, "24 HR PRECIPITATION (IN):"), (uint32_t)row->rain / 2);
    p = put(p,
            "  SNOW DEPTH (IN):%d  24 HR MAX TEMP (F):%d 24 HR MIN TEMP (F):%d"
            " AVERAGE STATION PRESSURE:",
            row->snow_depth % 9999 * 2 / 5, fahrenheit + (int32_t)(bits & 15),
            fahrenheit - (int32_t)(bits >> 4 & 15));
    p = put_inches(p, (uint32_t)row->low_pressure * 2953 / 10000);
    p = put(p,
            " TIME OF OCCURRENCE:2359 PEAK WIND SPEED (MPH):%d  PEAK WIND DIR (DEG):%d"
            " HEATING DEGREE DAYS:%d HOURLY INCREMENTAL PRECIPITATION VALUES (IN):",
            row->wind_speed / 4, row->wind_direction, fahrenheit < 65 ? 65 - fahrenheit : 0);
    for (int hour = 0; hour < 24; hour++) {
        bool rained = row->rain > 0 && (bits >> hour & 1) != 0;
        p = put(put_inches(p, rained ? (uint32_t)row->rain / 5 : 0), " ");
    }
    return p;
}

static char *put_month_summary(const struct isd_row *row, uint32_t bits, char *p) {
    static const uint8_t minutes[] = {5, 10, 15, 20, 30, 45, 60, 80, 100, 120, 150, 180};
    p = put_inches(put(p, "PCP MTOT:"), bits & 1023);
    p = put(p, " DATE(S):%u DAYS W/PCP >=.01:5  DAYS W/PCP >=.10:2 MSDP AMTS W/DATE-TIME TAGS:",
            1 + (bits >> 10 & 15));
    for (uint32_t i = 0; i < sizeof minutes; i++) {
        p = put_inches(put(p, "MIN:%u ", minutes[i]), 7 + i * (bits >> 14 & 3));
        p = put(p, "  26/0205 ");
    }
    return put(p,
               "AVG MLY TMP:%d.0  DAYS MAX <=32:1 DAYS MAX >=90:0  DAYS MIN <=32:8  DEP NORM:-2553 "
               "SEASON(JUL 1-JUN 30):1799 DEP NORM:-25536",
               row->temperature * 9 / 50 + 32);
}

// Writes the length of a remark between its type and its text, which begins at `begun`.
static char *end_remark(char *begun, char *end) {
    put_digits(begun - 3, (uint32_t)(end - begun), 3);
    return end;
}

static char *put_remarks(struct isd_text *text, const struct isd_row *row, char *p) {
    uint32_t bits = high32(rng_next(&text->rng));
    p = put(p, "REM");
    switch ((enum isd_type)row->type) {
    case TYPE_FM_15:
    case TYPE_FM_16:
        p = put(p, "MET...");
        return end_remark(p, put_metar(text, row, bits, p));
    case TYPE_SY_SA: // both codes
        p = put(p, "SYN...");
        p = put(end_remark(p, put_synop(row, bits, p)), "AWY...");
        return end_remark(p, put_airways(row, bits >> 16, p));
    case TYPE_SAO:
        p = put(p, "AWY...");
        return end_remark(p, put_airways(row, bits, p));
    case TYPE_SOD:
        p = put(p, "SOD...");
        return end_remark(p, put_day_summary(row, bits, p));
    case TYPE_SOM:
        p = put(p, "SOM...");
        return end_remark(p, put_month_summary(row, bits, p));
    default:
        p = put(p, "SYN...");
        return end_remark(p, put_synop(row, bits, p));
    }
}

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
    [TYPE_FM_12] = {synoptic_entries, 7}, [TYPE_FM_15] = {airport_entries, 7},
    [TYPE_FM_16] = {airport_entries, 7},  [TYPE_SAO] = {airways_entries, 3},
    [TYPE_SY_SA] = {airways_entries, 3},  [TYPE_SOD] = {summary_entries, 3},
    [TYPE_SOM] = {summary_entries, 3},
};

static char *put_element_quality(struct isd_text *text, const struct isd_row *row, char *p) {
    const char *const *entries = quality_entries[row->type].entries;
    uint32_t mask = quality_entries[row->type].mask;
    p = put(p, "EQD");
    uint64_t bits = rng_next(&text->rng);
    for (uint32_t i = 1; i <= ENTRIES_MAX; i++) {
        const char *entry = entries[bits & mask];
        p = put(p, "%c%02u", *entry, i);
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

static char *put_element(char *p, char element, int32_t value) {
    return put(p, "%c11 1%c%05d", element, value < 0 ? '-' : ' ', value < 0 ? -value : value);
}

static char *put_original(struct isd_text *text, const struct isd_row *row, char *p) {
    int32_t dots = (int32_t)(rng_next(&text->rng) >> 62);
    p = put(p, "QNN");
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
    p = put(p, "V11 1 01010");
    return put_element(p, 'X', row->wind_direction % 360 * 10 + row->wind_speed / 5);
}

// ---- records ----

static const struct {
    char name[6];
    char source;
} types[ISD_TYPES] = {
    [TYPE_FM_12] = {"FM-12", '4'}, [TYPE_FM_15] = {"FM-15", '7'}, [TYPE_FM_16] = {"FM-16", '7'},
    [TYPE_SAO] = {"SAO  ", 'C'},   [TYPE_SY_SA] = {"SY-SA", 'C'}, [TYPE_SOD] = {"SOD  ", '6'},
    [TYPE_SOM] = {"SOM  ", '6'},
};

// Bytes 5 to 60; the four before, the length, are known at the end.
static char *put_control(const struct isd_text *text, const struct isd_row *row, char *p) {
    const struct isd_station *station = row->station;
    int32_t day = row->minute / DAY_MINUTES - (row->late ? 1 : 0);
    int32_t minute = row->late ? DAY_MINUTES : row->minute % DAY_MINUTES;
    return put(p, "%.6s%.5s%.8s%02d%02d%c%+06d%+07d%.5s%+05d%.5sV0%c0", station->usaf,
               station->wban, text->days[day], minute / 60, minute % 60, types[row->type].source,
               station->latitude, station->longitude, types[row->type].name, station->elevation,
               station->call, station->version);
}

static char *put_measure(char *p, bool has, int32_t value, char quality) {
    return has ? put(p, "%+05d%c", value, quality) : put(p, "+99999");
}

// Bytes 61 to 105.
static char *put_mandatory(const struct isd_row *row, char *p) {
    char quality = quality_of(row);
    bool airport = row->type == TYPE_FM_15 || row->type == TYPE_FM_16;
    bool calm = row->wind_speed == 0;
    if (row->has_wind) {
        p = put(p, "%03d%c%c%04d%c", row->wind_direction, calm ? '9' : quality, calm ? 'C' : 'N',
                row->wind_speed, row->wind_quality);
    } else {
        p = put_nines(p, 10);
    }
    if (row->has_ceiling) {
        p = put(p, "%05d%c%cN", row->ceiling, quality,
                airport && row->ceiling != 22000 ? 'M' : '9');
    } else {
        p = put_nines(p, 8);
    }
    if (row->has_visibility) {
        p = put(p, "%06d%c%s", row->visibility, quality, airport ? "N5" : "99");
    } else {
        p = put_nines(p, 9);
    }
    p = put_measure(p, row->has_temperature, row->temperature, row->temperature_quality);
    p = put_measure(p, row->has_dew_point, row->dew_point, row->temperature_quality);
    return row->has_pressure ? put(p, "%05d%c", row->pressure, quality) : put_nines(p, 6);
}

static char *put_record(struct isd_text *text, const struct isd_row *row, char *start) {
    char *p = put_control(text, row, start + 4);
    p = put_mandatory(row, p);
    if (row->group_count > 0 || row->oddity == ODDITY_UNKNOWN_GROUP) {
        p = put_groups(text, row, p);
    }
    if (row->has_remark) {
        p = put_remarks(text, row, p);
    }
    if (row->has_element_quality) {
        p = put_element_quality(text, row, p);
    }
    if (row->has_original) {
        p = put_original(text, row, p);
    }
    uint32_t length = (uint32_t)(p - start) - RECORD_FIXED;
    if (row->oddity == ODDITY_LENGTH) {
        length += 26; // as a record of 1973 has it
    }
    put_digits(start, length, 4);
    return p;
}

char *isd_text_row(struct isd_text *text, const struct isd_row *row, char *p) {
    return put(put_record(text, row, p), "\n");
}
