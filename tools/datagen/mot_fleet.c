// SPDX-License-Identifier: Apache-2.0
//
// Turns the published tables into the tables that tests are drawn from.
#include <string.h>

#include "calendar.h"
#include "mot.h"
#include "tables.h"

const struct vehicle_class mot_classes[CLASS_COUNT] = {
    {4, ENGINE_PETROL, "car", 94490, 0, 1},  {7, ENGINE_VAN, "van", 2780, -400, 1},
    {2, ENGINE_BIKE, "bike", 1950, 1100, 4}, {1, ENGINE_SMALL, "moped", 620, 600, 6},
    {5, ENGINE_VAN, "bus", 130, 100, 1},     {3, ENGINE_BIKE, "trike", 30, 600, 3},
};

static void set_day(char day[DAY_BYTES], struct date date) {
    char text[40];
    snprintf(text, sizeof text, "%04d-%02d-%02d", date.year, date.month, date.day);
    memcpy(day, text, 10);
}

static void make_calendar(struct mot_calendar *calendar, int data_year) {
    int32_t first = year_start(1900);
    calendar->count = year_start(data_year + 3) - first;
    calendar->year_start = year_start(data_year) - first;
    calendar->year_days = year_start(data_year + 1) - year_start(data_year);
    for (int32_t i = 0; i < calendar->count; i++) {
        set_day(calendar->days[i], date_of(first + i));
    }
    set_day(calendar->days[calendar->count], (struct date){1, 1, 1});
    set_day(calendar->days[calendar->count + 1], (struct date){2913, 2, 6});
}

// Tests are booked on working days, some on Saturdays, hardly any on Sundays; none on 1 January,
// 25 and 26 December. March and September, when new plates come out, are the busiest.
static void choose_days(struct mot_fleet *fleet) {
    static const uint32_t week[] = {100, 104, 103, 104, 106, 52, 4}; // from Monday
    static const uint32_t months[] = {98, 100, 122, 100, 99, 101, 103, 98, 112, 103, 99, 66};
    const struct mot_calendar *calendar = &fleet->calendar;
    uint32_t weights[366];
    for (int32_t i = 0; i < calendar->year_days; i++) {
        const char *text = calendar->days[calendar->year_start + i];
        int month = (text[5] - '0') * 10 + text[6] - '0';
        // 1900-01-01 was a Monday.
        weights[i] = week[(calendar->year_start + i) % 7] * months[month - 1];
    }
    weights[0] = weights[calendar->year_days - 7] = weights[calendar->year_days - 6] = 0;
    alias_init(&fleet->day_choice, weights, (uint32_t)calendar->year_days);
}

// Reads a table of texts and weights; `column` is that of the weights.
static void choose_texts(const char *name, size_t column, struct mot_text_table *texts) {
    const char *table = table_find(name);
    uint32_t weights[TEXTS_MAX] = {0};
    struct table_row row;
    while (texts->count < TEXTS_MAX && table_next(&table, &row)) {
        snprintf(texts->texts[texts->count], sizeof texts->texts[0], "%.23s", row.cells[0]);
        weights[texts->count++] = table_number(&row, column);
    }
    alias_init(&texts->choice, weights, texts->count);
}

static void choose_sizes(struct mot_fleet *fleet) {
    static uint32_t weights[ENGINE_COUNT][SIZE_COUNT];
    const char *table = table_find("capacities.txt");
    struct table_row row;
    uint32_t count = 0;
    while (count < SIZE_COUNT && table_next(&table, &row)) {
        fleet->sizes[count] = (int32_t)table_number(&row, 0);
        for (size_t engine = 0; engine < ENGINE_COUNT; engine++) {
            weights[engine][count] = table_number(&row, engine + 1);
        }
        count++;
    }
    for (int engine = 0; engine < ENGINE_COUNT; engine++) {
        alias_init(&fleet->size_choice[engine], weights[engine], count);
    }
}

// Turns the published counts by age into ranks.
static void rank_ages(struct mot_fleet *fleet) {
    struct table_row row;
    uint64_t counts[AGE_COUNT] = {0};
    uint64_t total = 0;
    uint64_t passes = 0;
    int lines = 0;
    for (const char *table = table_find("ages.txt"); lines < AGE_COUNT && table_next(&table, &row);
         lines++) {
        counts[lines] = table_number(&row, 1);
        fleet->age_pass[lines] = (int)table_number(&row, 2);
        total += counts[lines];
        passes += counts[lines] * (uint64_t)fleet->age_pass[lines];
    }
    fleet->published_mean = (int)(passes / total);
    fleet->mean_pass = fleet->published_mean;
    uint64_t sum = 0;
    for (int i = 0; i < AGE_COUNT; i++) {
        sum += counts[i];
        fleet->age_ends[i] = (uint32_t)(((sum << 32) - 1) / total);
    }
    for (uint32_t i = 0, age = 0; i < 256; i++) {
        while (i << 24 >= fleet->age_ends[age] && age + 1 < AGE_COUNT) {
            age++;
        }
        fleet->age_starts[i] = (uint8_t)age;
    }
}

// Turns the published counts by mileage into ranks: step k is the mileage below which k of
// RANK_STEPS lie. A line of the table counts the values that are rounded to its mileage.
static void rank_mileages(struct mot_fleet *fleet) {
    struct table_row row;
    uint64_t counts[MILEAGE_COUNT] = {0};
    uint64_t total = 0;
    int lines = 0;
    for (const char *table = table_find("mileages.txt");
         lines < MILEAGE_COUNT && table_next(&table, &row); lines++) {
        counts[lines] = table_number(&row, 1);
        fleet->mileage_pass[lines] = (int)table_number(&row, 2);
        if (lines == 0) {
            // Most values of the first line are zero; zeros are generated as dirt.
            counts[0] /= 5;
            fleet->mileage_pass[0] = 8800;
        }
        total += counts[lines];
    }
    int band = 0;
    uint64_t sum = 0;
    for (uint64_t k = 0; k <= RANK_STEPS; k++) {
        uint64_t target = total * k / RANK_STEPS;
        while (band + 1 < MILEAGE_COUNT && sum + counts[band] < target) {
            sum += counts[band++];
        }
        uint64_t start = band == 0 ? 1 : (uint64_t)band * 10000 - 5000;
        uint64_t width = band == 0 ? 4999 : 10000;
        uint64_t inside = counts[band] == 0 ? 0 : (target - sum) * width / counts[band];
        uint64_t mileage = start + inside;
        fleet->mileage_steps[k] = (int32_t)(mileage < 999999 ? mileage : 999999);
    }
}

// Adjusts the mileages of 2005-2013 so that they have the published quantiles of 2021.
static void bend_mileages(struct mot_fleet *fleet) {
    static const struct {
        int step;
        int32_t mileage;
    } knots[] = {
        {0, 1},
        {RANK_STEPS * 5 / 100, 14512},
        {RANK_STEPS * 25 / 100, 37676},
        {RANK_STEPS * 50 / 100, 65725},
        {RANK_STEPS * 75 / 100, 100920},
        {RANK_STEPS * 95 / 100, 161815},
        {RANK_STEPS, 999999},
    };
    int32_t old[RANK_STEPS + 1];
    memcpy(old, fleet->mileage_steps, sizeof old);
    int knot = 0;
    for (int k = 0; k <= RANK_STEPS; k++) {
        while (k > knots[knot + 1].step) {
            knot++;
        }
        int64_t low = old[knots[knot].step];
        int64_t high = old[knots[knot + 1].step];
        int64_t rise = knots[knot + 1].mileage - knots[knot].mileage;
        fleet->mileage_steps[k] =
            knots[knot].mileage + (int32_t)((old[k] - low) * rise / (high - low));
    }
}

// The number of a make and model, which is added when new. The slots are a hash table of number + 1,
// with linear probing; the built-in tables fill a quarter of it.
static uint32_t add_name(struct mot_fleet *fleet, const char *make, const char *model) {
    struct mot_name name = {0};
    snprintf(name.make, sizeof name.make, "%s", make);
    snprintf(name.model, sizeof name.model, "%s", model);
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < sizeof name; i++) {
        hash = (hash ^ ((const unsigned char *)&name)[i]) * 16777619u;
    }
    uint32_t slot = hash % NAME_SLOTS;
    while (fleet->name_slots[slot] != 0 &&
           memcmp(&fleet->names[fleet->name_slots[slot] - 1], &name, sizeof name) != 0) {
        slot = (slot + 1) % NAME_SLOTS;
    }
    if (fleet->name_slots[slot] == 0 && fleet->name_count < NAMES_MAX) {
        fleet->names[fleet->name_count++] = name;
        fleet->name_slots[slot] = fleet->name_count;
    }
    return fleet->name_slots[slot] - 1;
}

static void add_model(struct mot_fleet *fleet, int class, const char *make, const char *model,
                      uint32_t weight) {
    struct mot_models *models = &fleet->models[class];
    if (models->count < NAMES_MAX) {
        models->names[models->count] = add_name(fleet, make, model);
        models->weights[models->count++] = weight;
    }
}

// One line of the trims: the words after a model, for a make or (*) for all others.
struct trim {
    char make[TABLE_CELL_BYTES];
    char words[TABLE_CELL_BYTES];
    uint32_t weight;
};

static size_t read_trims(struct trim trims[TRIMS_MAX]) {
    size_t count = 0;
    struct table_row row;
    for (const char *table = table_find("trims.txt"); count < TRIMS_MAX && table_next(&table, &row);
         count++) {
        memcpy(trims[count].make, row.cells[0], TABLE_CELL_BYTES);
        memcpy(trims[count].words, row.cells[1], TABLE_CELL_BYTES);
        trims[count].weight = table_number(&row, 2);
    }
    return count;
}

// Adds a model with each trim of its make in turn. A name longer than the 30 bytes of the old files
// goes without its trim.
static void add_trimmed(struct mot_fleet *fleet, const struct trim *trims, size_t trim_count,
                        const struct table_row *row, uint32_t weight) {
    const char *make = row->cells[1];
    const char *key = strcmp(row->cells[2], "UNCLASSIFIED") == 0 ? "UNCLASSIFIED" : "*";
    for (size_t i = 0; i < trim_count; i++) {
        if (key[0] == '*' && strcmp(trims[i].make, make) == 0) {
            key = make;
        }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < trim_count; i++) {
        sum += strcmp(trims[i].make, key) == 0 ? trims[i].weight : 0;
    }
    for (size_t i = 0; i < trim_count; i++) {
        if (strcmp(trims[i].make, key) != 0) {
            continue;
        }
        char model[2 * TABLE_CELL_BYTES];
        int length = snprintf(model, sizeof model, "%s %s", row->cells[2], trims[i].words);
        if (length > 30 || trims[i].words[0] == '\0') {
            snprintf(model, sizeof model, "%s", row->cells[2]);
        }
        // Scaled so that rounding loses no rare model.
        add_model(fleet, 0, make, model, (uint32_t)((uint64_t)weight * 64 * trims[i].weight / sum));
    }
}

static void choose_models(struct mot_fleet *fleet) {
    const bool original = fleet->dialect->original;
    struct trim trims[TRIMS_MAX];
    size_t trim_count = read_trims(trims);
    struct table_row row;
    for (const char *table = table_find("models.txt"); table_next(&table, &row);) {
        uint32_t weight = table_number(&row, original ? 3 : 4);
        int class = 0;
        while (class < CLASS_COUNT - 1 && strcmp(mot_classes[class].group, row.cells[0]) != 0) {
            class ++;
        }
        if (weight > 0 && original && class == 0) {
            add_trimmed(fleet, trims, trim_count, &row, weight);
        } else if (weight > 0) {
            add_model(fleet, class, row.cells[1], row.cells[2], weight);
        }
    }
    // The pass rate of each model differs from that of its age by up to 8 %.
    struct rng rng;
    rng_init(&rng, 20051);
    for (uint32_t i = 0; i < fleet->name_count; i++) {
        uint64_t bits = rng_next(&rng);
        fleet->names[i].pass_bias = (int16_t)((int)scale32((uint32_t)bits, 801) +
                                              (int)scale32((uint32_t)(bits >> 32), 801) - 800);
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        struct mot_models *models = &fleet->models[i];
        alias_init(&models->choice, models->weights, models->count);
    }
}

void mot_fleet_init(struct mot_fleet *fleet, const struct options *options,
                    const struct mot_dialect *dialect) {
    fleet->dialect = dialect;
    rng_init(&fleet->rng, options->seed);
    permutation_init(&fleet->test_ids, &fleet->rng, 2000000000);
    permutation_init(&fleet->vehicle_ids, &fleet->rng, 1500000000);
    mot_set_dirt(fleet, options->dirt);
    uint32_t shares[CLASS_COUNT];
    for (int i = 0; i < CLASS_COUNT; i++) {
        shares[i] = mot_classes[i].share;
    }
    uint32_t fuels[FUEL_COUNT];
    for (int i = 0; i < FUEL_COUNT; i++) {
        fuels[i] = mot_fuels[i].weights[dialect->era];
    }
    rank_ages(fleet);
    rank_mileages(fleet);
    if (!dialect->original) {
        // In 2021, of the cars of an age and mileage, some nine in a hundred more were passed.
        bend_mileages(fleet);
        fleet->mean_pass += 880;
    }
    make_calendar(&fleet->calendar, options->year);
    choose_days(fleet);
    alias_init(&fleet->class_choice, shares, CLASS_COUNT);
    alias_init(&fleet->fuel_choice, fuels, FUEL_COUNT);
    choose_texts("areas.txt", 1, &fleet->areas);
    choose_texts("colours.txt", dialect->original ? 1 : 2, &fleet->colours);
    choose_sizes(fleet);
    choose_models(fleet);
}
