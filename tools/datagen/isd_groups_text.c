// SPDX-License-Identifier: Apache-2.0
//
// Writes the groups of the additional data section. Frequent groups show the record's weather; the
// other groups have random values in the form that the table of groups declares for each field.
#include "isd_text.h"

static char quality_of(const struct isd_row *row) {
    return row->type == TYPE_FM_12 || row->type == TYPE_FM_13 ? '1' : '5';
}

static int32_t smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

// ---- groups that show the weather ----

// Liquid precipitation: period, depth, condition.
static char *put_aa(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    static const uint8_t periods[] = {1, 6, 24, 12};
    bool day = row->type == TYPE_SOD;
    uint32_t hours = day ? 24 : periods[instance - 1];
    p = put_digits(p, hours, 2);
    uint32_t depth = row->rain > 0 ? (uint32_t)row->rain * (1 + hours / 3) : 0;
    p = put_digits(p, depth, 4);
    p = put_char(p, depth == 0 && (bits & 31) == 0 ? '2' : '9'); // 2: a trace
    return put_char(p, quality_of(row));
}

static char *put_ag(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    p = put_char(p, row->rain > 0 ? '3' : '0');
    return (bits & 7) == 0 ? put_nines(p, 3) : put_digits(p, (uint32_t)row->rain / 10, 3);
}

static char *put_aj(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    (void)bits;
    p = put_digits(p, (uint32_t)row->snow_depth, 4);
    p = put_char(p, '9');
    p = put_char(p, row->snow_depth == 9999 ? '9' : quality_of(row));
    return put_nines(p, 8);
}

static char *put_au(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)bits;
    uint8_t code = row->precipitation[instance - 1];
    bool fog = row->weather == WEATHER_FOG;
    p = put_char(p, code != 0 ? (char)('1' + row->strength) : '0');
    p = put_char(p, '0');
    p = put_digits(p, code, 2);
    p = put_char(p, code != 0 ? '0' : fog ? '2' : row->weather == WEATHER_MIST ? '1' : '7');
    p = put_bytes(p, "00", 2);
    return put_char(p, '5');
}

static char *put_code(const struct isd_row *row, uint8_t code, char *p) {
    return put_char(put_digits(p, code, 2), quality_of(row));
}

static char *put_aw(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)bits;
    return put_code(row, row->automated[instance - 1], p);
}

static char *put_mw(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)bits;
    return put_code(row, row->manual[instance - 1], p);
}

// Past weather: condition, period. Condition 9 is thunder, not a missing value.
static char *put_ay(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    static const char by_weather[] = {'2', '4', '4', '6', '7'};
    (void)instance;
    p = put_char(p, (bits & 63) == 0 ? '9' : by_weather[row->weather]);
    p = put_char(p, quality_of(row));
    return put_char(put_digits(p, row->minute / 60 % 6 == 0 ? 6 : 3, 2), quality_of(row));
}

// Computes oktas and base of the layer number `instance`. False if there is no such layer.
static bool layer(const struct isd_row *row, unsigned instance, uint32_t *oktas, int32_t *base) {
    *oktas = (uint32_t)smaller(row->cover, 2 + 2 * (int32_t)instance);
    int32_t low = row->ceiling == 22000 ? 1500 : row->ceiling;
    *base = low + ((int32_t)instance - 1) * 750;
    return row->cover > 0 || instance > 1;
}

static char *put_ga(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    uint32_t oktas;
    int32_t base;
    bool clouds = layer(row, instance, &oktas, &base);
    char quality = quality_of(row);
    p = put_char(put_digits(p, oktas, 2), quality);
    p = clouds ? put_char(put_signed(p, base, 6), quality) : put_bytes(p, "+999999", 7);
    if ((bits & 3) != 0) {
        return put_nines(p, 3);
    }
    return put_char(put_digits(p, bits >> 2 & 7, 2), quality);
}

static char *put_gd(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    static const char by_oktas[] = {'0', '1', '1', '2', '2', '3', '3', '3', '4'};
    uint32_t oktas;
    int32_t base;
    (void)bits;
    bool clouds = layer(row, instance, &oktas, &base);
    char quality = quality_of(row);
    p = put_char(p, by_oktas[oktas < 9 ? oktas : 8]);
    if (row->type == TYPE_SAO || row->type == TYPE_SY_SA) {
        p = put_digits(p, oktas, 2);
    } else {
        p = put_nines(p, 2);
    }
    p = put_char(p, quality);
    p = clouds ? put_char(put_signed(p, base, 6), quality) : put_bytes(p, "+999999", 7);
    return put_char(p, '9');
}

static char *put_ge(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)row;
    (void)instance;
    p = put_char(p, (bits & 31) == 0 ? '1' : '9');
    p = put_bytes(p, (bits & 7) == 0 ? "AGL   " : "MSL   ", 6);
    return put_bytes(p, "+99999+99999", 12);
}

static char *put_gf(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    char quality = quality_of(row);
    p = put_digits(p, row->total_cover, 2);
    p = put_nines(p, 2);
    p = put_char(p, row->total_cover == 99 ? '9' : quality);
    if ((bits & 3) == 0 && row->cover > 0) {
        p = put_char(put_digits(p, row->cover, 2), quality);
        p = put_char(put_digits(p, bits >> 2 & 7, 2), quality);
    } else {
        p = put_bytes(p, "999999", 6);
    }
    if (row->cover > 0 && row->ceiling != 22000) {
        p = put_char(put_digits(p, (uint32_t)row->ceiling, 5), quality);
    } else {
        p = put_nines(p, 6);
    }
    p = put_char(put_digits(p, (bits & 16) != 0 ? 99 : bits >> 5 & 7, 2), quality);
    return put_char(put_digits(p, (bits & 256) != 0 ? 99 : bits >> 9 & 7, 2), quality);
}

// Highest and lowest temperatures of six hours, then of twenty-four.
static char *put_ka(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    int32_t distance = (int32_t)(bits & 63) * (1 + (int32_t)instance / 3);
    bool highest = instance % 2 == 1;
    if (row->type == TYPE_SOD) {
        p = put_bytes(p, "024", 3); // whole hours, where all others have tenths
    } else {
        p = put_digits(p, instance > 2 ? 240 : row->type == TYPE_FM_12 ? 120 : 60, 3);
    }
    p = put_char(p, highest ? 'M' : 'N');
    p = put_signed(p, row->temperature + (highest ? distance : -distance), 5);
    return put_char(p, quality_of(row));
}

static char *put_ma(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    char quality = quality_of(row);
    if (row->type == TYPE_FM_12 && (bits & 3) != 0) {
        p = put_bytes(p, "999999", 6);
    } else {
        p = put_char(put_digits(p, (uint32_t)row->pressure, 5), quality);
    }
    return put_char(put_digits(p, (uint32_t)row->low_pressure, 5), quality);
}

// Tendency, change in three hours and in a day.
static char *put_md(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    char quality = quality_of(row);
    int32_t change = row->tendency < 0 ? -row->tendency : row->tendency;
    char code = row->tendency == 0  ? '4'
                : row->tendency > 0 ? (char)('0' + (bits & 3))
                                    : (char)('5' + (bits & 3));
    p = put_char(put_char(p, code), quality);
    p = put_char(put_digits(p, (uint32_t)change, 3), quality);
    return put_bytes(p, "+9999", 5);
}

static char *put_speed(const struct isd_row *row, uint32_t bits, char *p) {
    uint32_t gust = (uint32_t)smaller(row->wind_speed + 30 + (int32_t)(bits & 63), 1100);
    return put_char(put_digits(p, gust, 4), quality_of(row));
}

static char *put_oa(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    return put_speed(row, bits, put_bytes(p, "401", 3));
}

static char *put_oc(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    return put_speed(row, bits, p);
}

static char *put_od(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    p = put_speed(row, bits, put_bytes(p, "399", 3));
    return put_digits(p, (uint32_t)row->wind_direction, 3);
}

// The sea's temperature varies less than the air's and is at least -1.8, where sea water freezes.
static char *put_sa(const struct isd_row *row, unsigned instance, uint32_t bits, char *p) {
    (void)instance;
    int32_t degrees = row->temperature * 3 / 4 + 30 + (int32_t)(bits & 15);
    degrees = degrees < -18 ? -18 : degrees;
    return put_char(put_signed(p, degrees, 4), quality_of(row));
}

static const struct {
    char letters[3];
    isd_put_group *put;
} tellers[] = {
    {"AA", put_aa}, {"AG", put_ag}, {"AJ", put_aj}, {"AU", put_au}, {"AW", put_aw},
    {"AY", put_ay}, {"AZ", put_ay}, {"GA", put_ga}, {"GD", put_gd}, {"GE", put_ge},
    {"GF", put_gf}, {"KA", put_ka}, {"MA", put_ma}, {"MD", put_md}, {"MW", put_mw},
    {"OA", put_oa}, {"OC", put_oc}, {"OD", put_od}, {"SA", put_sa},
};
enum { TELLERS = sizeof tellers / sizeof tellers[0] };

void isd_find_tellers(struct isd_text *text) {
    for (unsigned number = 0; number < text->groups->count; number++) {
        for (unsigned i = 0; i < TELLERS; i++) {
            if (strcmp(tellers[i].letters, text->groups->families[number].letters) == 0) {
                text->put[number] = tellers[i].put;
            }
        }
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
    case 's':
        return missing ? put_nines(put_char(p, '+'), width - 1)
                       : put_signed(p, (int32_t)(value % 600) - 200, width);
    case 'm':
        return missing           ? put_nines(p, width)
               : (bits & 1) != 0 ? put_digits(put_char(p, '-'), value, width - 1)
                                 : put_digits(p, value, width);
    case 'd': // days, hours and minutes
        for (unsigned i = 0; i < width; i += 2) {
            p = missing ? put_nines(p, 2) : put_digits(p, 1 + (bits >> (4 * i) & 15), 2);
        }
        return p;
    case 'q':
        return put_char(p, missing ? '9' : '1');
    case 'f':
        return put_char(p, '0');
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

// ---- the section ----

static char *put_instances(struct isd_text *text, const struct isd_row *row, unsigned number,
                           unsigned instances, char *p) {
    const struct isd_family *family = &text->groups->families[number];
    isd_put_group *put = text->put[number];
    for (unsigned i = 0; i < instances; i++) {
        p = put_bytes(p, family->letters, 2);
        p = put_char(p, (char)(family->first + (char)i));
        p = put != NULL ? put(row, i + 1, high32(rng_next(&text->rng)), p)
                        : put_unusual(text, family, p);
    }
    return p;
}

char *isd_put_groups(struct isd_text *text, const struct isd_row *row, char *p) {
    // An unknown group makes the groups after it unparsable, so it follows those that queries use.
    bool unknown = row->oddity == ODDITY_UNKNOWN_GROUP;
    p = put_bytes(p, "ADD", 3);
    for (unsigned i = 0; i < row->group_count; i++) {
        unsigned number = row->groups[i].family;
        if (unknown && text->groups->families[number].letters[0] > 'N') {
            p = put_string(p, "NX1042913");
            unknown = false;
        }
        p = put_instances(text, row, number, row->groups[i].instances, p);
    }
    return unknown ? put_string(p, "NX1042913") : p;
}
