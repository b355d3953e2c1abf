// SPDX-License-Identifier: Apache-2.0
//
// Generates weather: the climate of the latitude and elevation by season and hour, plus states that
// change randomly from record to record (temperature, dew point spread, pressure, wind, clouds).
// Computed with integers, so that all machines give the same result.
#include "isd.h"

static int32_t clamp(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

// From -width to +width, by the lowest 16 bits.
static int32_t noise(uint64_t bits, int32_t width) {
    return (int32_t)(((int64_t)(bits & 0xFFFF) * (2 * width + 1)) >> 16) - width;
}

// ---- climate ----

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

struct isd_climate isd_climate_at(int32_t latitude, int32_t elevation) {
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

// ---- weather ----

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

void isd_draw_weather(struct isd_weather_state *now, const struct isd_climate *climate,
                      struct rng *rng, struct isd_row *row) {
    uint64_t bits = rng_next(rng);
    uint64_t more = rng_next(rng);
    int32_t old_pressure = now->pressure;
    wander(now, bits, more);
    int32_t day = row->minute / DAY_MINUTES;
    int32_t east = row->longitude == 999999 ? 0 : row->longitude;
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

// ---- codes ----

uint8_t isd_manual_code(const struct isd_row *row, uint32_t bits) {
    static const uint8_t codes[][8] = {[WEATHER_DRY] = {5, 2, 2, 2, 2, 2, 2, 2},
                                       [WEATHER_MIST] = {10, 10, 10, 10, 10, 10, 10, 10},
                                       [WEATHER_FOG] = {45, 45, 45, 45, 45, 45, 45, 45},
                                       [WEATHER_RAIN] = {61, 63, 65, 60, 80, 51, 95, 81},
                                       [WEATHER_SNOW] = {71, 73, 75, 70, 77, 85, 79, 71}};
    bool synoptic = row->weather == WEATHER_DRY && row->type == TYPE_FM_12;
    return synoptic ? (uint8_t)(bits & 3) : codes[row->weather][bits & 7];
}

uint8_t isd_automated_code(const struct isd_row *row, uint32_t bits) {
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

uint8_t isd_precipitation_code(const struct isd_row *row, uint32_t bits) {
    // Drizzle and rain; grains, pellets and snow.
    static const uint8_t codes[][8] = {
        [WEATHER_RAIN] = {1, 2, 2, 2, 2, 2, 2, 2}, [WEATHER_SNOW] = {4, 6, 3, 3, 3, 3, 3, 3}};
    return codes[row->weather][bits & 7];
}

// Oktas; in METARs the code for few, scattered, broken or overcast, or 99: missing.
uint8_t isd_cover_code(const struct isd_row *row, uint32_t bits) {
    static const uint8_t metar[] = {0, 2, 2, 4, 4, 7, 7, 7, 8};
    if (row->type != TYPE_FM_15 && row->type != TYPE_FM_16) {
        return (bits & 63) == 0 ? 9 : row->cover;
    }
    return (bits & 3) == 0 ? 99 : metar[row->cover];
}
