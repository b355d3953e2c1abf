// SPDX-License-Identifier: Apache-2.0
//
// Draws ISD records: the weather, their times, their observations, and their groups.
//
// The weather is the climate of the latitude and elevation by season and hour, plus states that change
// randomly from record to record (temperature, dew point spread, pressure, wind, clouds). It is computed
// with integers, so that all machines give the same result.
//
// A station reports at regular times during a part of the year, whose length depends on its number
// of records; nine of ten times have a record.
#include <string.h>

#include "calendar.h"
#include "isd.h"

// ---- weather ----

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

// From -width to +width, by the lowest 16 bits.
static int32_t noise(uint64_t bits, int32_t width) {
    return (int32_t)(((int64_t)(bits & 0xFFFF) * (2 * width + 1)) >> 16) - width;
}

// 1,024 times the cosine of `part` / `whole` of a turn, by Bhaskara's formula.
static int32_t cosine(int32_t part, int32_t whole) {
    int32_t degrees = (int32_t)((int64_t)part * 360 / whole) % 360;
    degrees = (degrees < 0 ? degrees + 360 : degrees) + 90;
    bool negative = degrees % 360 >= 180;
    int32_t d = degrees % 180;
    int32_t product = d * (180 - d);
    int32_t sine = 4096 * product / (40500 - product);
    return negative ? -sine : sine;
}

// The climate at a latitude (thousandths of a degree) and an elevation (metres; 9999 when missing).
static struct isd_climate climate_at(int32_t latitude, int32_t elevation) {
    // By ten degrees of latitude, in tenths of a degree.
    static const int16_t means[] = {265, 262, 245, 205, 145, 95, 25, -90, -180, -260};
    static const int16_t seasons[] = {8, 15, 45, 80, 105, 90, 130, 140, 140, 150};
    int32_t distance = latitude < 0 ? -latitude : latitude;
    int32_t band = distance / 10000 < 9 ? distance / 10000 : 8;
    int32_t part = distance - band * 10000;
    struct isd_climate climate = {
        .mean = means[band] + (means[band + 1] - means[band]) * part / 10000,
        .season = seasons[band] + (seasons[band + 1] - seasons[band]) * part / 10000,
        .day = 55 - distance / 2500,
        .warmest = latitude < 0 ? 20 : 202,
    };
    climate.mean -= elevation == 9999 ? 0 : elevation * 65 / 1000;
    return climate;
}

static void wander(struct isd_weather_state *now, uint64_t bits, uint64_t more) {
    now->anomaly += noise(bits, 16) - now->anomaly / 24;
    now->spread = clamp(now->spread + noise(bits >> 16, 12) - (now->spread - 45) / 24, 0, 250);
    now->pressure += noise(bits >> 32, 20) - now->pressure / 64;
    // A stronger wind changes more, so that there are occasional gales.
    int32_t gust = noise(bits >> 48, 12 + now->wind / 6);
    now->wind = clamp(now->wind + gust - (now->wind - 38) / 12, 0, 450);
    now->direction = (now->direction + noise(more, 25) + 360) % 360;
    int32_t turn = noise(more >> 16, 5);
    now->cover = clamp(now->cover + (turn > 3 ? turn - 3 : turn < -3 ? turn + 3 : 0), 0, 8);
    now->wet = now->cover >= 6 && (now->wet ? (more >> 32 & 7) != 0 : (more >> 32 & 15) == 0);
}

// Sets the weather of a record, whose station, position and time are set, and advances the state.
static void draw_weather(struct isd_weather_state *now, const struct isd_climate *climate,
                         struct rng *rng, struct isd_row *row) {
    uint64_t bits = rng_next(rng);
    uint64_t more = rng_next(rng);
    int32_t old_pressure = now->pressure;
    wander(now, bits, more);
    int32_t day = row->minute / DAY_MINUTES;
    int32_t east = row->station->longitude == 999999 ? 0 : row->station->longitude;
    int32_t local = row->minute + east / 250; // four minutes a degree
    // Warmest at three in the afternoon, and less so under clouds.
    int32_t swing = climate->day * (12 - now->cover) / 12;
    int32_t hour = cosine(local - 15 * 60, DAY_MINUTES);
    int32_t temperature = climate->mean +
                          climate->season * cosine(day - climate->warmest, 365) / 1024 +
                          swing * hour / 1024 + now->anomaly;
    row->temperature = clamp(temperature, -900, 550);
    int32_t spread = now->wet ? now->spread / 4 : now->spread * (1024 + hour / 2) / 1024;
    row->dew_point = clamp(row->temperature - spread, -950, row->temperature);
    row->pressure = clamp(10130 + now->pressure, 8700, 10850);
    row->tendency = clamp(now->pressure - old_pressure, -499, 499);
    int32_t height = row->station->elevation == 9999 ? 0 : row->station->elevation;
    row->low_pressure = row->pressure - height * (120 - height / 150) / 100;

    row->wind_speed = now->wind < 6 ? 0 : now->wind;
    row->wind_direction = row->wind_speed == 0 ? 999 : now->direction / 10 * 10;
    row->wind_direction = row->wind_direction == 0 ? 360 : row->wind_direction;

    row->cover = (uint8_t)now->cover;
    row->strength = (uint8_t)((more >> 36 & 7) == 0 ? 2 : (more >> 36 & 7) < 3);
    row->rain = 0;
    row->weather = spread <= 4 ? WEATHER_FOG : spread <= 14 ? WEATHER_MIST : WEATHER_DRY;
    if (now->wet) {
        row->weather = row->temperature <= 5 ? WEATHER_SNOW : WEATHER_RAIN;
        row->rain = 1 + (int32_t)(more >> 40 & 15) + row->strength * 20;
    }
    now->snow += row->weather == WEATHER_SNOW ? row->rain : 0;
    now->snow -= row->temperature > 10 ? row->temperature / 5 : 0;
    now->snow = clamp(now->snow, 0, 9000);
    row->snow_depth = now->snow / 10;
    row->visibility = row->weather == WEATHER_FOG    ? 100 + (int32_t)(more >> 48 & 7) * 100
                      : row->weather == WEATHER_SNOW ? 4000 - row->strength * 1600
                      : row->weather == WEATHER_DRY  ? 16000
                                                     : 7000 - row->strength * 2000;
    row->ceiling = 60 + (8 - now->cover) * 200 + (int32_t)(more >> 52 & 63) * 61;
}

// Codes of the present weather, as a person (MW) and as a machine (AW, AU) reports it, and of the
// cover of the sky (GF). The bits are random.

static uint8_t manual_code(const struct isd_row *row, uint32_t bits) {
    static const uint8_t codes[][8] = {[WEATHER_DRY] = {5, 2, 2, 2, 2, 2, 2, 2},
                                       [WEATHER_MIST] = {10, 10, 10, 10, 10, 10, 10, 10},
                                       [WEATHER_FOG] = {45, 45, 45, 45, 45, 45, 45, 45},
                                       [WEATHER_RAIN] = {61, 63, 65, 60, 80, 51, 95, 81},
                                       [WEATHER_SNOW] = {71, 73, 75, 70, 77, 85, 79, 71}};
    bool synoptic = row->weather == WEATHER_DRY && row->type == TYPE_FM_12;
    return synoptic ? (uint8_t)(bits & 3) : codes[row->weather][bits & 7];
}

static uint8_t automated_code(const struct isd_row *row, uint32_t bits) {
    static const uint8_t codes[] = {[WEATHER_DRY] = 5,
                                    [WEATHER_MIST] = 10,
                                    [WEATHER_FOG] = 30,
                                    [WEATHER_RAIN] = 61,
                                    [WEATHER_SNOW] = 71};
    bool falls = row->weather == WEATHER_RAIN || row->weather == WEATHER_SNOW;
    uint8_t code = (uint8_t)(codes[row->weather] + (falls ? row->strength : 0));
    uint8_t showers = row->weather == WEATHER_RAIN ? 20 : 14; // 81 to 83, 85 to 87
    return falls && (bits & 15) == 0 ? (uint8_t)(code + showers) : code;
}

static uint8_t precipitation_code(const struct isd_row *row, uint32_t bits) {
    // Drizzle and rain; grains, pellets and snow.
    static const uint8_t codes[][8] = {
        [WEATHER_RAIN] = {1, 2, 2, 2, 2, 2, 2, 2}, [WEATHER_SNOW] = {4, 6, 3, 3, 3, 3, 3, 3}};
    return codes[row->weather][bits & 7];
}

// Oktas; in METARs the code for few, scattered, broken or overcast, or 99: missing.
static uint8_t cover_code(const struct isd_row *row, uint32_t bits) {
    static const uint8_t metar[] = {0, 2, 2, 4, 4, 7, 7, 7, 8};
    if (row->type != TYPE_FM_15 && row->type != TYPE_FM_16) {
        return (bits & 63) == 0 ? 9 : row->cover;
    }
    return (bits & 3) == 0 ? 99 : metar[row->cover];
}

// ---- time and type ----

enum { STEPS = 5 };

// The networks' intervals between records, in minutes; the longest that fits is used.
static const int32_t steps[][STEPS] = {
    [NETWORK_SYNOPTIC] = {180, 60, 30, 10, 5},
    [NETWORK_AIRPORT] = {60, 30, 20, 10, 5},
    [NETWORK_SAO] = {60, 30, 20, 10, 5},
};

static const struct {
    uint32_t lengths, groups, weather; // one record in so many
} odd_rates[] = {
    [DIRT_NONE] = {0, 0, 0},
    [DIRT_PUBLISHED] = {60000, 100000, 20000},
    [DIRT_HEAVY] = {150, 150, 150},
};

static uint32_t threshold(uint32_t one_in) {
    return one_in == 0 ? 0 : UINT32_MAX / one_in;
}

void isd_drawer_init(struct isd_drawer *drawer, const struct options *options,
                     const struct isd_groups *groups) {
    drawer->groups = groups;
    drawer->year_start = year_start(options->year);
    drawer->year_days = year_start(options->year + 1) - drawer->year_start;
    drawer->odd_lengths = threshold(odd_rates[options->dirt].lengths);
    drawer->odd_groups = threshold(odd_rates[options->dirt].groups);
    drawer->odd_weather = threshold(odd_rates[options->dirt].weather);
    rng_init(&drawer->rng, options->seed ^ 0x157D);
}

void isd_drawer_start(struct isd_drawer *drawer, const struct isd_station *station) {
    drawer->station = station;
    drawer->drawn = 0;
    drawer->last_day = -1;
    drawer->climate = climate_at(station->latitude, station->elevation);
    drawer->at_station =
        (struct isd_weather_state){.spread = 40, .wind = 30, .direction = 200, .cover = 4};
    const int32_t *step = steps[station->network];
    uint64_t wanted = station->rows * 10 / 9 + 1;
    uint64_t in_year = 0;
    for (int i = 0; i < STEPS; i++) {
        drawer->step = step[i];
        in_year = (uint64_t)(drawer->year_days * DAY_MINUTES / step[i]);
        if (in_year >= wanted) {
            break;
        }
    }
    drawer->slots = wanted < in_year ? wanted : in_year;
    uint64_t spare_days = (in_year - drawer->slots) * (uint64_t)drawer->step / DAY_MINUTES;
    uint32_t slots_a_day = (uint32_t)(DAY_MINUTES / drawer->step);
    uint32_t bits = high32(rng_next(&drawer->rng));
    if (station->central) {
        drawer->first_slot = 0; // January is included
    } else if (station->late) {
        drawer->first_slot = (int32_t)(in_year - drawer->slots); // December is included
    } else {
        drawer->first_slot = (int32_t)(scale32(bits, (uint32_t)spare_days + 1) * slots_a_day);
    }
}

// Was the day the last of its month?
static bool ends_month(const struct isd_drawer *drawer, int32_t day) {
    return date_of(drawer->year_start + day + 1).day == 1;
}

static void draw_time(struct isd_drawer *drawer, uint32_t bits, struct isd_row *row) {
    const struct isd_station *station = drawer->station;
    uint64_t slot = (++drawer->drawn * drawer->slots - 1) / station->rows; // the last in any case
    int32_t start = (drawer->first_slot + (int32_t)slot) * drawer->step;
    int32_t day = start / DAY_MINUTES;
    bool new_day = day != drawer->last_day && drawer->last_day >= 0;
    int32_t day_before = drawer->last_day;
    drawer->last_day = day;
    row->minute = start;
    row->late = false;
    switch ((enum isd_network)station->network) {
    case NETWORK_SYNOPTIC:
        row->type = TYPE_FM_12;
        if (station->late) {
            row->minute += drawer->step;
            row->late = row->minute % DAY_MINUTES == 0;
        }
        break;
    case NETWORK_SAO:
        row->type = start % (DAY_MINUTES / 4) == 0 ? TYPE_SY_SA : TYPE_SAO;
        break;
    case NETWORK_AIRPORT:
        if (new_day && station->summaries) {
            row->type = ends_month(drawer, day_before) ? TYPE_SOM : TYPE_SOD;
            row->minute = day_before * DAY_MINUTES + DAY_MINUTES - 1;
        } else if (scale32(bits, 100) < 7) {
            // A special report when the weather changes, at any minute.
            row->type = TYPE_FM_16;
            bool alone = drawer->slots > station->rows;
            row->minute += alone ? (int32_t)(bits & 0xFFFF) % drawer->step : 0;
        } else {
            row->type = TYPE_FM_15;
            row->minute +=
                drawer->step > 10 && drawer->slots > station->rows ? drawer->step - 7 : 0;
        }
        break;
    }
}

// ---- observations ----

// Nearly always the network's ordinary mark; now and then one of the others.
static char draw_quality(const struct isd_station *station, uint32_t bits) {
    static const char others[] = "0234567ACIMPRU14";
    if ((bits & 0x1FF) == 0) {
        return others[bits >> 9 & 15];
    }
    return station->network == NETWORK_SYNOPTIC ? '1' : '5';
}

static void draw_shown(struct isd_drawer *drawer, struct isd_row *row) {
    uint64_t a = rng_next(&drawer->rng);
    uint64_t b = rng_next(&drawer->rng);
    uint64_t c = rng_next(&drawer->rng);
    const uint32_t *shares = drawer->groups->types[row->type];
    bool summary = row->type == TYPE_SOD || row->type == TYPE_SOM;
    row->has_pressure = (a & 0xFFFF) >= shares[SHARE_NO_PRESSURE];
    row->has_visibility = (a >> 16 & 0xFFFF) >= shares[SHARE_NO_VISIBILITY];
    // Without a temperature there is no dew point.
    uint32_t luck = a >> 32 & 0xFFFF;
    row->has_temperature = luck >= shares[SHARE_NO_TEMPERATURE];
    row->has_dew_point = luck >= shares[SHARE_NO_DEW_POINT];
    row->has_wind = !summary && (a >> 48) > 800;
    luck = b & 0xFFFF;
    row->has_ceiling = luck >= shares[SHARE_NO_CEILING];
    if (row->has_ceiling && luck - shares[SHARE_NO_CEILING] < shares[SHARE_UNLIMITED]) {
        row->ceiling = 22000;
    }
    row->bare = (b >> 16 & 0xFFFF) < shares[SHARE_BARE];
    row->has_remark =
        (b >> 32 & 0xFFFF) < (row->bare ? shares[SHARE_REMARK_BARE] : shares[SHARE_REMARK]);
    // Reports that keep their original observations have all their element quality data, too.
    luck = high32(b) >> 16;
    row->has_element_quality = luck < shares[SHARE_ELEMENT_QUALITY];
    row->has_original = luck < shares[SHARE_ORIGINAL];
    row->temperature_quality = draw_quality(drawer->station, low32(c));
    row->wind_quality = draw_quality(drawer->station, high32(c));
    row->oddity = ODDITY_NONE;
}

static void draw_codes(struct isd_drawer *drawer, struct isd_row *row) {
    const uint8_t *special = drawer->groups->special;
    for (unsigned i = 0; i < row->group_count; i++) {
        unsigned family = row->groups[i].family;
        unsigned instances = row->groups[i].instances;
        uint32_t bits = high32(rng_next(&drawer->rng));
        for (unsigned k = 0; k < instances; k++) {
            // A second instance has another code.
            uint32_t luck = bits >> (3 * k);
            if (family == special[SPECIAL_MW]) {
                row->manual[k] = k == 0 ? manual_code(row, luck) : (uint8_t)(luck & 1 ? 10 : 5);
            } else if (family == special[SPECIAL_AW]) {
                row->automated[k] = k == 0 ? automated_code(row, luck) : (uint8_t)(10 + (luck & 1));
            } else if (family == special[SPECIAL_AU]) {
                row->precipitation[k] = k == 0 ? precipitation_code(row, luck) : 0;
            }
        }
        if (family == special[SPECIAL_GF]) {
            row->total_cover = cover_code(row, bits);
        } else if (family == special[SPECIAL_AJ] && (bits & 15) == 0) {
            row->snow_depth = 9999;
        }
    }
}

static void draw_groups(struct isd_drawer *drawer, struct isd_row *row) {
    const struct isd_groups *groups = drawer->groups;
    uint16_t luck[FAMILIES_MAX];
    uint64_t bits = 0;
    unsigned total = 0;
    row->group_count = 0;
    if (row->bare) {
        return;
    }
    uint32_t odd = high32(rng_next(&drawer->rng));
    for (unsigned i = 0; i < groups->count; i++) {
        const struct isd_family *family = &groups->families[i];
        bits = i % 4 == 0 ? rng_next(&drawer->rng) : bits >> 16;
        luck[i] = family->drawn_with == i ? (uint16_t)bits : luck[family->drawn_with];
        const uint32_t *shares = family->shares[row->type];
        if (luck[i] >= shares[0] &&
            !(i == groups->special[SPECIAL_AW] && odd < drawer->odd_weather)) {
            continue;
        }
        unsigned instances = 1;
        while (instances < family->instances && luck[i] < shares[instances]) {
            instances++;
        }
        if (i == groups->special[SPECIAL_AW] && odd < drawer->odd_weather) {
            instances = 5 + (odd & 1); // more instances than in the format document
        }
        if (total + instances > GROUPS_MAX) {
            break;
        }
        row->groups[row->group_count].family = (uint8_t)i;
        row->groups[row->group_count++].instances = (uint8_t)instances;
        total += instances;
    }
    draw_codes(drawer, row);
}

void isd_draw(struct isd_drawer *drawer, struct isd_row *row) {
    const struct isd_station *station = drawer->station;
    uint64_t bits = rng_next(&drawer->rng);
    row->station = station;
    draw_time(drawer, low32(bits), row);
    draw_weather(&drawer->at_station, &drawer->climate, &drawer->rng, row);
    draw_shown(drawer, row);
    draw_groups(drawer, row);
    uint64_t odd = rng_next(&drawer->rng);
    if (low32(odd) < drawer->odd_lengths) {
        row->oddity = ODDITY_LENGTH;
    } else if (high32(odd) < drawer->odd_groups && !row->bare) {
        row->oddity = ODDITY_UNKNOWN_GROUP;
    }
}
