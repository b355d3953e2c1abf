// SPDX-License-Identifier: Apache-2.0
//
// Flights as CSV with names such as origin.name, which a loader makes embedded documents.
#include "rows.h"

enum { AIRPORTS = 20, CARRIERS = 8, DAY = 16436 }; // the first of January 2015

static const struct airport {
    const char *code, *name, *city, *state;
} airports[AIRPORTS] = {
    {"ATL", "Hartsfield-Jackson International", "Atlanta", "GA"},
    {"LAX", "Los Angeles International", "Los Angeles", "CA"},
    {"ORD", "O'Hare International", "Chicago", "IL"},
    {"DFW", "Dallas/Fort Worth International", "Dallas", "TX"},
    {"DEN", "Denver International", "Denver", "CO"},
    {"JFK", "John F. Kennedy International", "New York", "NY"},
    {"SFO", "San Francisco International", "San Francisco", "CA"},
    {"LAS", "Harry Reid International", "Las Vegas", "NV"},
    {"SEA", "Seattle-Tacoma International", "Seattle", "WA"},
    {"CLT", "Charlotte Douglas International", "Charlotte", "NC"},
    {"PHX", "Phoenix Sky Harbor International", "Phoenix", "AZ"},
    {"MIA", "Miami International", "Miami", "FL"},
    {"IAH", "George Bush Intercontinental", "Houston", "TX"},
    {"BOS", "Logan International", "Boston", "MA"},
    {"MSP", "Minneapolis-St Paul International", "Minneapolis", "MN"},
    {"DTW", "Detroit Metropolitan", "Detroit", "MI"},
    {"PHL", "Philadelphia International", "Philadelphia", "PA"},
    {"SLC", "Salt Lake City International", "Salt Lake City", "UT"},
    {"AUS", "Austin-Bergstrom International", "Austin", "TX"},
    {"ANC", "Ted Stevens International", "Anchorage", "AK"},
};

static const struct carrier {
    const char *code, *name;
} carriers[CARRIERS] = {
    {"WN", "Southwest Airlines"}, {"DL", "Delta Air Lines"},  {"AA", "American Airlines"},
    {"UA", "United Air Lines"},   {"OO", "SkyWest Airlines"}, {"B6", "JetBlue Airways"},
    {"AS", "Alaska Airlines"},    {"NK", "Spirit Air Lines"},
};

static char *put_airport(char *p, const struct airport *airport) {
    return put(p, "%s,%s,%s,%s,", airport->code, airport->name, airport->city, airport->state);
}

static char *put_time(char *p, int64_t day, uint32_t minute) {
    p = put_date(p, day + minute / 1440);
    return put(p, "T%02u:%02u:00Z,", minute / 60 % 24, minute % 60);
}

// Flights of a day follow each other, and a route has a fixed distance, as in published files.
static char *put_flight(struct drawer *drawer, uint64_t number, char *p) {
    int64_t day = DAY + (int64_t)(number / 500 % 365);
    uint32_t from = drawer_skewed(drawer, AIRPORTS);
    uint32_t to = (from + 1 + drawer_skewed(drawer, AIRPORTS - 1)) % AIRPORTS;
    const struct carrier *carrier = &carriers[drawer_skewed(drawer, CARRIERS)];
    uint32_t distance = 200 + (from * 37 + to * 37 + from * to * 11) % 2400;
    uint32_t minutes = 35 + distance / 7;
    uint32_t departure = 300 + drawer_below(drawer, 1080);
    int32_t late = (int32_t)drawer_skewed(drawer, 180) - 8;
    int32_t arrival = late + (int32_t)drawer_below(drawer, 25) - 15;
    bool cancelled = drawer_chance(drawer, 2);
    uint32_t flight = 1 + drawer_below(drawer, 6999);
    uint32_t tail = 100 + drawer_skewed(drawer, 900);
    p = put(put_date(p, day), ",%u,%s,%s,N%03u%s,", flight, carrier->code, carrier->name, tail,
            carrier->code);
    p = put_airport(put_airport(p, &airports[from]), &airports[to]);
    p = put_time(p, day, departure);
    p = cancelled ? put(p, ",") : put_time(p, day, (uint32_t)((int32_t)departure + late));
    p = put_time(p, day, departure + minutes);
    p = cancelled ? put(p, ",,") : put(p, "%d,%d,", late, arrival);
    return put(p, "%u,%s\n", distance, cancelled ? "true" : "false");
}

const struct format flights_format = {
    .name = "flights",
    .summary = "flights as CSV, with names such as origin.name",
    .help = "  20 airports and 8 carriers, some much busier than others; 500 flights a day of "
            "2015.\n",
    .check = rows_check,
    .write = rows_write,
    .header = "flight.date,flight.number,carrier.code,carrier.name,tail,origin.code,origin.name,"
              "origin.city,origin.state,destination.code,destination.name,destination.city,"
              "destination.state,departure.scheduled,departure.actual,arrival.scheduled,"
              "delay.departure,delay.arrival,distance,cancelled\n",
    .put = put_flight,
};
