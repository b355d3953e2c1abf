// SPDX-License-Identifier: Apache-2.0
//
// The dialects in which the MOT results were published, and their codes.
#include "mot.h"

const struct mot_dialect mot_dialects[] = {
    {"A", 2013, '|', false, true, false, false, QUOTE_NEVER, ERA_2005, 2180, IN_A},
    {"B", 2015, '|', true, false, false, false, QUOTE_NEVER, ERA_2015, 2050, IN_B},
    {"C1", 2017, ',', true, false, false, false, QUOTE_WHEN_NEEDED, ERA_2015, 1900, IN_C1},
    {"C2", 2017, '|', true, false, false, false, QUOTE_NEVER, ERA_2015, 1900, IN_C2},
    {"D", 2019, ',', true, false, false, false, QUOTE_WHEN_NEEDED, ERA_2021, 1731, IN_D},
    {"E", 2021, ',', true, false, false, false, QUOTE_ALL_TEXT, ERA_2021, 1731, IN_E},
    {"F", 2023, '|', true, false, false, false, QUOTE_NEVER, ERA_2021, 1731, IN_F},
    {"G1", 2024, ',', true, false, true, false, QUOTE_WHEN_NEEDED, ERA_2024, 1731, IN_G1},
    {"G2", 2025, ',', true, false, true, true, QUOTE_WHEN_NEEDED, ERA_2024, 1731, IN_G2},
    {"tab", 2015, '\t', true, false, false, false, QUOTE_NEVER, ERA_2015, 2050, IN_TAB},
    {.name = NULL},
};

const char *const mot_columns[COL_COUNT] = {
    "test_id",     "vehicle_id",   "test_date",         "test_class_id",  "test_type",
    "test_result", "test_mileage", "postcode_area",     "make",           "model",
    "colour",      "fuel_type",    "cylinder_capacity", "first_use_date", "completed_date",
};

const char *const mot_results[RESULT_COUNT] = {"P", "F", "PRS", "ABA", "ABR", "ABRVE", "R"};

const char *mot_type_code(const struct mot_dialect *dialect, enum mot_type type) {
    static const char *const codes[TYPE_COUNT] = {"NT", "RT", "ES"};
    return type == TYPE_NORMAL && dialect->original ? "N" : codes[type];
}

// Of the one-letter codes of dialect A only P and D are certain, so it has no other fuels. The
// shares of petrol and diesel follow published totals; those of the rare fuels are estimates.
const struct mot_fuel mot_fuels[FUEL_COUNT] = {
    {"PE", "P", false, {70000, 60000, 57500, 56000}},
    {"DI", "D", true, {30000, 39500, 40700, 37500}},
    {"EL", "P", false, {0, 40, 200, 1600}},
    {"HY", "P", false, {0, 300, 1450, 2600}},
    {"HYBRID ELECTRIC (CLEAN)", "P", false, {0, 0, 0, 2000}},
    {"ED", "D", true, {0, 20, 60, 150}},
    {"LP", "P", false, {0, 80, 30, 20}},
    {"GB", "P", false, {0, 50, 30, 20}},
    {"OT", "P", false, {0, 4, 4, 4}},
    {"ST", "P", false, {0, 3, 3, 3}},
    {"CN", "P", false, {0, 2, 2, 2}},
    {"GD", "D", true, {0, 2, 2, 2}},
    {"GA", "P", false, {0, 2, 2, 2}},
    {"LN", "P", false, {0, 1, 1, 1}},
    {"FC", "P", false, {0, 1, 1, 1}},
};

const char *mot_fuel_code(const struct mot_dialect *dialect, unsigned fuel) {
    if (fuel == FUEL_HYBRID_WORDS && !dialect->fuel_words) {
        fuel = FUEL_HYBRID;
    }
    return dialect->original ? mot_fuels[fuel].original : mot_fuels[fuel].code;
}
