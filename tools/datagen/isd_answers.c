// SPDX-License-Identifier: Apache-2.0
//
// The answers of the six ISD queries, computed record by record from the drawn values,
// independently of the loader and the server, which are checked against them. Sums are exact,
// because they add integers (tenths).
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "isd.h"

enum {
    MONTHS = 13, // of the year, and the next January, to which 2400 of 31 December belongs
    SWINGS_SHOWN = 20,
    MEANS_SHOWN = 500
};

struct tally {
    uint64_t documents;
    uint64_t snow;
    bool near; // within 100 km of the point
    bool seen_near;
    // Of the day of the last record.
    int32_t day, count, low, high;
    // The day with the largest swing so far; none when negative.
    int32_t swing, swing_day;
    struct {
        int64_t sum; // tenths of a degree
        uint64_t count;
    } months[MONTHS];
};

struct isd_answers {
    const struct isd_world *world;
    const struct isd_groups *groups;
    int year;
    uint8_t month_of[367]; // of the days of the year
    uint64_t hour_count[24];
    uint64_t hour_oktas[24];
    uint64_t near_records;
    uint64_t near_stations;
    struct {
        uint64_t count;
        int32_t fastest;
    } decades[2]; // of the year, of the one after it
    uint32_t count;
    struct tally *tallies; // by number in the documents
};

// Is a position within 100 km of 30.3 N, 97.7 W, on a sphere with a radius of 6,378.1 km?
static bool is_near(int32_t latitude, int32_t longitude) {
    const double degree = 3.14159265358979323846 / 180.0;
    double a = (double)latitude / 1000.0 * degree;
    double b = 30.3 * degree;
    double east = ((double)longitude / 1000.0 + 97.7) * degree;
    double half = sin((a - b) / 2.0);
    double side = sin(east / 2.0);
    double haversine = half * half + cos(a) * cos(b) * side * side;
    return longitude != 999999 && 2.0 * asin(sqrt(haversine)) <= 100.0 / 6378.1;
}

struct isd_answers *isd_answers_create(const struct options *options, const struct isd_world *world,
                                       const struct isd_groups *groups) {
    struct isd_answers *answers = calloc(1, sizeof *answers);
    if (answers == NULL) {
        return NULL;
    }
    answers->world = world;
    answers->groups = groups;
    answers->year = options->year;
    for (int32_t day = 0; day < 367; day++) {
        struct date date = date_of(year_start(options->year) + day);
        answers->month_of[day] = (uint8_t)(12 * (date.year - options->year) + date.month - 1);
    }
    answers->count = world->land_count + world->place_count;
    answers->tallies = calloc(answers->count, sizeof *answers->tallies);
    if (answers->tallies == NULL) {
        isd_answers_destroy(answers);
        return NULL;
    }
    for (uint32_t i = 0; i < answers->count; i++) {
        struct tally *tally = &answers->tallies[i];
        tally->day = tally->swing = -1;
        if (i < world->land_count) {
            tally->near = is_near(world->stations[i].latitude, world->stations[i].longitude);
        } else {
            const struct isd_place *place = &world->places[i - world->land_count];
            tally->near = is_near(place->latitude, place->longitude);
        }
    }
    return answers;
}

void isd_answers_destroy(struct isd_answers *answers) {
    if (answers != NULL) {
        free(answers->tallies);
        free(answers);
    }
}

static bool is_good(char quality) {
    return quality == '0' || quality == '1' || quality == '4' || quality == '5';
}

static bool shows_snow(const struct isd_answers *answers, const struct isd_row *row) {
    const uint8_t *special = answers->groups->special;
    bool snow = false;
    for (unsigned i = isd_row_instances(row, special[SPECIAL_MW]); i-- > 0;) {
        snow |= row->manual[i] >= 70 && row->manual[i] <= 79;
    }
    for (unsigned i = isd_row_instances(row, special[SPECIAL_AW]); i-- > 0;) {
        snow |= row->automated[i] >= 70 && row->automated[i] <= 78;
    }
    for (unsigned i = isd_row_instances(row, special[SPECIAL_AU]); i-- > 0;) {
        snow |= row->precipitation[i] == 3 || row->precipitation[i] == 4;
    }
    return snow || (isd_row_instances(row, special[SPECIAL_AJ]) > 0 && row->snow_depth > 0 &&
                    row->snow_depth != 9999);
}

// Ends the current day. Of equal swings the earliest is kept.
static void end_day(struct tally *tally) {
    if (tally->count >= 2 && tally->high - tally->low > tally->swing) {
        tally->swing = tally->high - tally->low;
        tally->swing_day = tally->day;
    }
    tally->count = 0;
}

static void add_temperature(struct tally *tally, int32_t day, uint8_t month, int32_t temperature) {
    if (tally->count == 0 || tally->day != day) {
        end_day(tally);
        tally->day = day;
        tally->low = tally->high = temperature;
    }
    tally->count++;
    tally->low = temperature < tally->low ? temperature : tally->low;
    tally->high = temperature > tally->high ? temperature : tally->high;
    tally->months[month].sum += temperature;
    tally->months[month].count++;
}

void isd_answers_add(struct isd_answers *answers, const struct isd_row *row) {
    struct tally *tally = &answers->tallies[row->st];
    int32_t day = row->minute / DAY_MINUTES;
    uint8_t month = answers->month_of[day];
    tally->documents++;
    tally->snow += shows_snow(answers, row);
    if (row->has_temperature && is_good(row->temperature_quality)) {
        add_temperature(tally, day, month, row->temperature);
    }
    if (isd_row_instances(row, answers->groups->special[SPECIAL_GF]) > 0 && row->total_cover <= 8) {
        int32_t hour = row->minute % DAY_MINUTES / 60;
        answers->hour_count[hour]++;
        answers->hour_oktas[hour] += row->total_cover;
    }
    if (tally->near && answers->year + month / 12 == 2014 && month % 12 == 0) {
        answers->near_records++;
        answers->near_stations += !tally->seen_near;
        tally->seen_near = true;
    }
    if (row->has_wind && is_good(row->wind_quality)) {
        bool next = (answers->year + month / 12) / 10 != answers->year / 10;
        answers->decades[next].count++;
        if (row->wind_speed > answers->decades[next].fastest) {
            answers->decades[next].fastest = row->wind_speed;
        }
    }
}

// ---- printing ----

// A station with documents, and its name, by which it is sorted.
struct named {
    char st[ST_BYTES];
    struct tally *tally;
};

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct named *)a)->st, ((const struct named *)b)->st);
}

// Largest swing first, then by name.
static int compare_swings(const void *a, const void *b) {
    const struct named *x = a;
    const struct named *y = b;
    if (x->tally->swing != y->tally->swing) {
        return x->tally->swing < y->tally->swing ? 1 : -1;
    }
    return strcmp(x->st, y->st);
}

// Milliseconds since 1970 of a day of the year asked for.
static int64_t day_milliseconds(const struct isd_answers *answers, int32_t day) {
    return (int64_t)(year_start(answers->year) + day) * DAY_MINUTES * 60000;
}

static void print_swings(FILE *stream, const struct isd_answers *answers, struct named *stations,
                         size_t count) {
    qsort(stations, count, sizeof *stations, compare_swings);
    for (size_t i = 0; i < count && i < SWINGS_SHOWN && stations[i].tally->swing >= 0; i++) {
        const struct tally *tally = stations[i].tally;
        fprintf(stream,
                "%s\n      {\"_id\": \"%s\", \"day\": {\"$date\": {\"$numberLong\": \"%" PRId64
                "\"}}, \"swing\": %d.%d}",
                i == 0 ? "" : ",", stations[i].st, day_milliseconds(answers, tally->swing_day),
                tally->swing / 10, tally->swing % 10);
    }
}

static void print_snow(FILE *stream, const struct named *stations, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fprintf(stream,
                "%s\n      {\"_id\": \"%s\", \"snow\": %" PRIu64 ", \"documents\": %" PRIu64 "}",
                i == 0 ? "" : ",", stations[i].st, stations[i].tally->snow,
                stations[i].tally->documents);
    }
}

static void print_sky(FILE *stream, const struct isd_answers *answers) {
    const char *separator = "";
    for (int hour = 0; hour < 24; hour++) {
        uint64_t count = answers->hour_count[hour];
        if (count > 0) {
            fprintf(stream,
                    "%s\n      {\"_id\": %d, \"observations\": %" PRIu64 ", \"meanOktas\": %.17g}",
                    separator, hour, count, (double)answers->hour_oktas[hour] / (double)count);
            separator = ",";
        }
    }
}

static void print_means(FILE *stream, const struct isd_answers *answers,
                        const struct named *stations, size_t count) {
    unsigned shown = 0;
    for (size_t i = 0; i < count; i++) {
        for (int month = 0; month < MONTHS && shown < MEANS_SHOWN; month++) {
            const struct tally *tally = stations[i].tally;
            uint64_t observations = tally->months[month].count;
            if (observations > 0) {
                fprintf(stream,
                        "%s\n      {\"_id\": {\"st\": \"%s\", \"year\": %d, \"month\": %d}, "
                        "\"observations\": %" PRIu64 ", \"meanTemperature\": %.17g}",
                        shown++ == 0 ? "" : ",", stations[i].st, answers->year + month / 12,
                        month % 12 + 1, observations,
                        (double)tally->months[month].sum / (double)observations / 10.0);
            }
        }
    }
}

static void print_winds(FILE *stream, const struct isd_answers *answers) {
    const char *separator = "";
    for (int i = 0; i < 2; i++) {
        if (answers->decades[i].count > 0) {
            int32_t fastest = answers->decades[i].fastest;
            fprintf(stream, "%s\n      {\"_id\": %d, \"speed\": %d.%d, \"records\": %" PRIu64 "}",
                    separator, (answers->year + i) / 10 * 10, fastest / 10, fastest % 10,
                    answers->decades[i].count);
            separator = ",";
        }
    }
}

bool isd_answers_print(FILE *stream, const void *context) {
    const struct isd_answers *answers = context;
    struct named *stations = malloc((answers->count + 1) * sizeof *stations);
    if (stations == NULL) {
        return false;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < answers->count; i++) {
        if (answers->tallies[i].documents > 0) {
            end_day(&answers->tallies[i]);
            isd_world_st(answers->world, i, stations[count].st);
            stations[count++].tally = &answers->tallies[i];
        }
    }
    fputs("\n    \"temperature-swing\": [", stream);
    print_swings(stream, answers, stations, count);
    qsort(stations, count, sizeof *stations, compare_names);
    fputs("\n    ],\n    \"snow-stations\": [", stream);
    print_snow(stream, stations, count);
    fputs("\n    ],\n    \"sky-by-hour\": [", stream);
    print_sky(stream, answers);
    fputs("\n    ],\n    \"monthly-means\": [", stream);
    print_means(stream, answers, stations, count);
    fputs("\n    ],\n    \"near-point\": [", stream);
    if (answers->near_records > 0) {
        fprintf(stream,
                "\n      {\"_id\": null, \"records\": %" PRIu64 ", \"stations\": %" PRIu64 "}",
                answers->near_records, answers->near_stations);
    }
    fputs("\n    ],\n    \"strongest-wind\": [", stream);
    print_winds(stream, answers);
    fputs("\n    ]\n  ", stream);
    free(stations);
    return true;
}
