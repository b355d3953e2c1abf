// SPDX-License-Identifier: Apache-2.0
//
// The published frequencies as weighted choices and ranks, for drawing MOT tests. Built by
// mot_fleet.c, used by mot_draw.c only.
#ifndef DATAGEN_MOT_FLEET_H
#define DATAGEN_MOT_FLEET_H

#include "mot.h"

enum {
    POOL_SIZE = 4096,
    RANK_STEPS = 4096,
    AGE_COUNT = 101,
    MILEAGE_COUNT = 101,
    SIZE_COUNT = 1024
};
enum { ENGINE_PETROL, ENGINE_DIESEL, ENGINE_SMALL, ENGINE_BIKE, ENGINE_VAN, ENGINE_COUNT };

// A test class. The group names its models in the table of models.
struct vehicle_class {
    uint8_t id;
    uint8_t engine; // cars: chosen by the fuel
    const char *group;
    uint32_t share;          // of all tests, in 100,000
    int pass_bonus;          // how much likelier than a car it passes, in 10,000
    uint8_t mileage_divisor; // the mileage of a car divided by that of this class
};
enum { CLASS_COUNT = 6 };
extern const struct vehicle_class mot_classes[CLASS_COUNT];

struct group {
    uint32_t *names; // numbers of models
    struct alias choice;
};

struct mot_fleet {
    const struct mot_dialect *dialect;
    struct rng rng;
    struct permutation test_ids;
    struct permutation vehicle_ids;
    uint32_t tests;    // drawn so far
    uint32_t vehicles; // drawn so far
    struct mot_dirt dirt;
    struct mot_calendar calendar;
    struct mot_names names;
    int16_t *pass_bias; // per model, in 10,000
    struct alias class_choice;
    struct group groups[CLASS_COUNT];
    struct mot_text_table areas, colours;
    struct alias area_choice, colour_choice, fuel_choice, day_choice;
    int32_t sizes[SIZE_COUNT];
    struct alias size_choice[ENGINE_COUNT];
    uint32_t age_ends[AGE_COUNT]; // the first rank past an age
    uint8_t age_starts[256];      // the age of a rank with these high bits and no low ones
    int age_pass[AGE_COUNT];      // in 10,000
    int32_t mileage_steps[RANK_STEPS + 1];
    int mileage_pass[MILEAGE_COUNT];
    int published_mean; // chance to pass in the tables, in 10,000
    int mean_pass;      // the chance that tests are drawn with
    struct mot_row pool[POOL_SIZE];
    uint32_t pool_count;
};

#endif
