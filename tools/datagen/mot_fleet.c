// SPDX-License-Identifier: Apache-2.0
//
// Turns the published tables into the tables that tests are drawn from.
#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "mot.h"
#include "tables.h"
#include "util/grow.h"

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

static bool make_calendar(struct mot_calendar *calendar, int data_year) {
    int32_t first = year_start(1900);
    calendar->count = year_start(data_year + 3) - first;
    calendar->year_start = year_start(data_year) - first;
    calendar->year_days = year_start(data_year + 1) - year_start(data_year);
    calendar->days = calloc((size_t)calendar->count + 2, sizeof *calendar->days);
    if (calendar->days == NULL) {
        return false;
    }
    for (int32_t i = 0; i < calendar->count; i++) {
        set_day(calendar->days[i], date_of(first + i));
    }
    set_day(calendar->days[calendar->count], (struct date){1, 1, 1});
    set_day(calendar->days[calendar->count + 1], (struct date){2913, 2, 6});
    return true;
}

// Tests are booked on working days, some on Saturdays, hardly any on Sundays; none on 1 January,
// 25 and 26 December. March and September, when new plates come out, are the busiest.
static bool choose_days(struct mot_fleet *fleet) {
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
    return alias_init(&fleet->day_choice, weights, (uint32_t)calendar->year_days);
}

// Reads a table of texts and weights; `column` is that of the weights.
static bool choose_texts(const char *table, size_t column, struct mot_text_table *texts,
                         struct alias *choice) {
    bool done = false;
    uint32_t *weights = calloc(table_lines(table), sizeof *weights);
    texts->texts = calloc(table_lines(table), sizeof *texts->texts);
    if (weights == NULL || texts->texts == NULL) {
        goto cleanup;
    }
    struct table_row row;
    while (table_next(&table, &row)) {
        snprintf(texts->texts[texts->count], sizeof texts->texts[0], "%.23s", row.cells[0]);
        weights[texts->count++] = table_number(&row, column);
    }
    done = alias_init(choice, weights, texts->count);

cleanup:
    free(weights);
    return done;
}

static bool choose_sizes(struct mot_fleet *fleet) {
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
        if (!alias_init(&fleet->size_choice[engine], weights[engine], count)) {
            return false;
        }
    }
    return true;
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

// The number of a make and model, which is added when new; SIZE_MAX when memory ran out. The slots
// are a hash table of number + 1, with linear probing.
static size_t add_name(struct mot_fleet *fleet, const char *make, const char *model) {
    struct mot_name name = {0};
    snprintf(name.make, sizeof name.make, "%s", make);
    snprintf(name.model, sizeof name.model, "%s", model);
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < sizeof name; i++) {
        hash = (hash ^ ((const unsigned char *)&name)[i]) * 16777619u;
    }
    uint32_t slot = hash % NAME_SLOTS;
    for (; fleet->name_slots[slot] != 0; slot = (slot + 1) % NAME_SLOTS) {
        uint32_t number = fleet->name_slots[slot] - 1;
        if (memcmp(&fleet->names[number], &name, sizeof name) == 0) {
            return number;
        }
    }
    struct mot_name *names =
        sl_grow(fleet->names, fleet->name_count, &fleet->name_room, sizeof *names);
    if (names == NULL || fleet->name_count == NAME_SLOTS / 2) {
        return SIZE_MAX;
    }
    fleet->names = names;
    fleet->names[fleet->name_count++] = name;
    fleet->name_slots[slot] = fleet->name_count;
    return fleet->name_count - 1;
}

// One line of the trims: the words after a model, for a make or (*) for all others.
struct trim {
    char make[TABLE_CELL_BYTES];
    char words[TABLE_CELL_BYTES];
    uint32_t weight;
};

// A growing list of models and weights.
struct model_list {
    uint32_t *names;
    uint32_t *weights;
    uint32_t count;
    size_t name_room, weight_room;
};

static bool list_add(struct model_list *list, size_t name, uint32_t weight) {
    uint32_t *names = sl_grow(list->names, list->count, &list->name_room, sizeof *names);
    uint32_t *weights = sl_grow(list->weights, list->count, &list->weight_room, sizeof *weights);
    list->names = names != NULL ? names : list->names;
    list->weights = weights != NULL ? weights : list->weights;
    if (names == NULL || weights == NULL) {
        return false;
    }
    list->names[list->count] = (uint32_t)name;
    list->weights[list->count++] = weight;
    return name != SIZE_MAX;
}

// Adds a model with each trim of its make in turn. A name longer than the 30 bytes of the old files
// goes without its trim.
static bool add_trimmed(struct mot_fleet *fleet, struct model_list *list, const struct trim *trims,
                        size_t trim_count, const struct table_row *row, uint32_t weight) {
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
        uint32_t share = (uint32_t)((uint64_t)weight * 64 * trims[i].weight / sum);
        if (!list_add(list, add_name(fleet, make, model), share)) {
            return false;
        }
    }
    return true;
}

static bool choose_models(struct mot_fleet *fleet) {
    bool done = false;
    const bool original = fleet->dialect->original;
    struct model_list lists[CLASS_COUNT] = {0};
    struct table_row row;
    size_t trim_count = 0;
    struct trim *trims = calloc(table_lines(table_find("trims.txt")), sizeof *trims);
    if (trims == NULL) {
        goto cleanup;
    }
    for (const char *table = table_find("trims.txt"); table_next(&table, &row); trim_count++) {
        memcpy(trims[trim_count].make, row.cells[0], TABLE_CELL_BYTES);
        memcpy(trims[trim_count].words, row.cells[1], TABLE_CELL_BYTES);
        trims[trim_count].weight = table_number(&row, 2);
    }
    for (const char *table = table_find("models.txt"); table_next(&table, &row);) {
        uint32_t weight = table_number(&row, original ? 3 : 4);
        int class = 0;
        while (class < CLASS_COUNT - 1 && strcmp(mot_classes[class].group, row.cells[0]) != 0) {
            class ++;
        }
        if (weight == 0) {
            continue;
        }
        bool added;
        if (original && class == 0) {
            added = add_trimmed(fleet, &lists[class], trims, trim_count, &row, weight);
        } else {
            added = list_add(&lists[class], add_name(fleet, row.cells[1], row.cells[2]), weight);
        }
        if (!added) {
            goto cleanup;
        }
    }
    for (int i = 0; i < CLASS_COUNT; i++) {
        if (!alias_init(&fleet->groups[i].choice, lists[i].weights, lists[i].count)) {
            goto cleanup;
        }
        fleet->groups[i].names = lists[i].names;
        lists[i].names = NULL;
    }
    // The pass rate of each model differs from that of its age by up to 8 %.
    struct rng rng;
    rng_init(&rng, 20051);
    for (uint32_t i = 0; i < fleet->name_count; i++) {
        uint64_t bits = rng_next(&rng);
        fleet->names[i].pass_bias = (int16_t)((int)scale32((uint32_t)bits, 801) +
                                              (int)scale32((uint32_t)(bits >> 32), 801) - 800);
    }
    done = true;

cleanup:
    for (int i = 0; i < CLASS_COUNT; i++) {
        free(lists[i].names);
        free(lists[i].weights);
    }
    free(trims);
    return done;
}

bool mot_fleet_init(struct mot_fleet *fleet, const struct options *options,
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
    return make_calendar(&fleet->calendar, options->year) && choose_days(fleet) &&
           alias_init(&fleet->class_choice, shares, CLASS_COUNT) &&
           alias_init(&fleet->fuel_choice, fuels, FUEL_COUNT) &&
           choose_texts(table_find("areas.txt"), 1, &fleet->areas, &fleet->area_choice) &&
           choose_texts(table_find("colours.txt"), dialect->original ? 1 : 2, &fleet->colours,
                        &fleet->colour_choice) &&
           choose_sizes(fleet) && choose_models(fleet);
}

void mot_fleet_clear(struct mot_fleet *fleet) {
    for (int i = 0; i < CLASS_COUNT; i++) {
        free(fleet->groups[i].names);
        alias_clear(&fleet->groups[i].choice);
    }
    for (int i = 0; i < ENGINE_COUNT; i++) {
        alias_clear(&fleet->size_choice[i]);
    }
    alias_clear(&fleet->class_choice);
    alias_clear(&fleet->area_choice);
    alias_clear(&fleet->colour_choice);
    alias_clear(&fleet->fuel_choice);
    alias_clear(&fleet->day_choice);
    free(fleet->areas.texts);
    free(fleet->colours.texts);
    free(fleet->calendar.days);
    free(fleet->names);
}
