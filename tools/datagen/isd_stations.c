// SPDX-License-Identifier: Apache-2.0
//
// Generates stations: positions, names, numbers of records.
//
// Networks are assigned in proportion to their shares, not at random, so that a few stations
// already have the published mix of report types. Station numbers are unique, so that no two
// stations have the same `st` in their documents.
#include <stdlib.h>
#include <string.h>

#include "isd.h"
#include "tables.h"

enum {
    REGIONS_MAX = 64,
    LAND_NETWORKS = 3,
    CENTRAL_EVERY = 40,  // of the airports, one so many is near 30.3 N, 97.7 W
    WEIGHT_LOW = 600,    // of a station's number of records
    WEIGHT_SPREAD = 801, // up to 1,400: 1,000 on average
    BLOCK_STATIONS = 10000
};

// Records of each network in 10,000.
static const uint32_t network_shares[LAND_NETWORKS] = {4132, 5004, 864};

struct region {
    int32_t south, north, west, east; // tenths of a degree
    uint32_t elevation;
    char block[3];
    char call[3];
    uint32_t weights[LAND_NETWORKS];
    uint32_t stations; // so far
};

struct regions {
    struct region items[REGIONS_MAX];
    uint32_t count;
    uint32_t weights[LAND_NETWORKS]; // sums, without the first region
};

static int32_t signed_number(const struct table_row *row, size_t column) {
    return (int32_t)strtol(row->cells[column], NULL, 10);
}

static void read_regions(struct regions *regions) {
    const char *cursor = table_find("isd-regions.txt");
    struct table_row row;
    *regions = (struct regions){0};
    while (regions->count < REGIONS_MAX && table_next(&cursor, &row)) {
        struct region *region = &regions->items[regions->count];
        region->south = signed_number(&row, 0);
        region->north = signed_number(&row, 1);
        region->west = signed_number(&row, 2);
        region->east = signed_number(&row, 3);
        region->elevation = table_number(&row, 4);
        memcpy(region->block, row.cells[5], 2);
        memcpy(region->call, row.cells[6], 2);
        for (int i = 0; i < LAND_NETWORKS; i++) {
            region->weights[i] = table_number(&row, 7 + (size_t)i);
            regions->weights[i] += regions->count > 0 ? region->weights[i] : 0;
        }
        regions->count++;
    }
}

static struct region *choose_region(struct regions *regions, unsigned network, uint32_t bits) {
    uint32_t left = scale32(bits, regions->weights[network]);
    uint32_t i = 1;
    while (left >= regions->items[i].weights[network]) {
        left -= regions->items[i++].weights[network];
    }
    return &regions->items[i];
}

// A number from low to high.
static int32_t between(struct rng *rng, int32_t low, int32_t high) {
    return low + (int32_t)scale32(high32(rng_next(rng)), (uint32_t)(high - low + 1));
}

// Station numbers: the region's two digits and four more, scattered. A region that has run out of
// them takes numbers with a letter in front, as has been usual since 2013.
static void name_station(struct isd_station *station, struct region *region, uint32_t number,
                         struct rng *rng) {
    uint32_t n = region->stations++;
    if (n < BLOCK_STATIONS) {
        snprintf(station->usaf, sizeof station->usaf, "%.2s%04u", region->block,
                 (n * 2137 + 2540) % BLOCK_STATIONS);
    } else {
        snprintf(station->usaf, sizeof station->usaf, "A%05u", number);
    }
    bool american = station->network == NETWORK_SAO || region->call[0] == 'K';
    memcpy(station->wban, "99999", 6);
    if (american) {
        snprintf(station->wban, sizeof station->wban, "%05u", (number + 13904) % 99999);
        if (!station->central && between(rng, 0, 31) == 0) {
            memcpy(station->usaf, "999999", 7); // known by the other number only
        }
    }
    memcpy(station->call, "99999", 6);
    if (station->network != NETWORK_SYNOPTIC || between(rng, 0, 15) == 0) {
        int letters = region->call[0] == 'K' ? 1 : 2;
        memset(station->call, ' ', 5);
        memcpy(station->call, region->call, (size_t)letters);
        for (int i = letters; i < 4; i++) {
            station->call[i] = (char)('A' + between(rng, 0, 25));
        }
    }
}

static void make_station(struct isd_station *station, struct regions *regions, uint32_t number,
                         enum dirt_level dirt, struct rng *rng) {
    struct region *region = station->central
                                ? &regions->items[0]
                                : choose_region(regions, station->network, high32(rng_next(rng)));
    name_station(station, region, number, rng);
    station->latitude = between(rng, region->south * 100, region->north * 100);
    station->longitude = between(rng, region->west * 100, region->east * 100);
    // Most stations have a low elevation.
    int32_t height = between(rng, 0, 1023);
    station->elevation = (int32_t)(region->elevation * (uint32_t)(height * height) >> 20);
    station->version = between(rng, 0, 3) == 0 ? '3' : '2';
    station->summaries = station->network == NETWORK_AIRPORT && between(rng, 0, 1) == 0;
    if (dirt != DIRT_NONE && !station->central) {
        int32_t rarity = dirt == DIRT_HEAVY ? 7 : 127;
        station->late = station->network == NETWORK_SYNOPTIC && between(rng, 0, rarity / 2) == 0;
        // Real files have stations with a latitude, but without longitude and elevation.
        if (between(rng, 0, rarity) == 0) {
            station->longitude = 999999;
            station->elevation = 9999;
        }
    }
}

// The network that is furthest behind its share of the first `made` stations.
static unsigned next_network(const uint32_t *given, uint32_t made) {
    unsigned best = NETWORK_AIRPORT;
    int64_t most = INT64_MIN;
    static const unsigned order[LAND_NETWORKS] = {NETWORK_AIRPORT, NETWORK_SYNOPTIC, NETWORK_SAO};
    for (unsigned i = 0; i < LAND_NETWORKS; i++) {
        unsigned network = order[i];
        int64_t behind =
            (int64_t)network_shares[network] * (made + 1) - (int64_t)given[network] * 10000;
        if (behind > most) {
            most = behind;
            best = network;
        }
    }
    return best;
}

static void make_stations(struct isd_world *world, const struct options *options, struct rng *rng) {
    struct regions regions;
    read_regions(&regions);
    uint32_t given[LAND_NETWORKS] = {0};
    for (uint32_t i = 0; i < world->station_count; i++) {
        struct isd_station *station = &world->stations[i];
        station->network = (uint8_t)next_network(given, i);
        station->central =
            station->network == NETWORK_AIRPORT && given[NETWORK_AIRPORT] % CENTRAL_EVERY == 0;
        given[station->network]++;
        make_station(station, &regions, i, options->dirt, rng);
    }
}

// Spreads the records over the stations by weight. With four records to a station on average, each
// has two at least.
static void spread_rows(struct isd_world *world, uint64_t rows, struct rng *rng) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < world->station_count; i++) {
        uint32_t weight = (uint32_t)between(rng, WEIGHT_LOW, WEIGHT_LOW + WEIGHT_SPREAD - 1);
        world->stations[i].rows = weight;
        sum += weight;
    }
    uint64_t before = 0;
    uint64_t given = 0;
    for (uint32_t i = 0; sum > 0 && i < world->station_count; i++) {
        before += world->stations[i].rows;
        // At most 2^31 rows and 2^28 weights: no overflow.
        uint64_t end = rows * before / sum;
        world->stations[i].rows = end - given;
        given = end;
    }
}

bool isd_world_init(struct isd_world *world, const struct options *options) {
    world->station_count = options->stations;
    world->stations = calloc(world->station_count, sizeof *world->stations);
    if (world->stations == NULL) {
        return false;
    }
    struct rng rng;
    rng_init(&rng, options->seed);
    make_stations(world, options, &rng);
    spread_rows(world, options->rows, &rng);
    return true;
}

void isd_world_clear(struct isd_world *world) {
    free(world->stations);
}
