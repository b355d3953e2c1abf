// SPDX-License-Identifier: Apache-2.0
//
// The answers of the four MOT queries, computed record by record from the drawn values,
// independently of the loader and the server, which are checked against them. Codes in the queries
// are compared as they are written in the files.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mot.h"

enum {
    BAND_COUNT = 7,
    BAND_VALUES = 3 * BAND_COUNT + 1, // twice the value 1.5 * BAND_COUNT of a diesel, and 0
    AGE_LOW = -3000,
    AGE_SPAN = 6001,
    MAKES_SHOWN = 20,
    MODELS_SHOWN = 20,
    MODEL_TESTS = 100
};

// The largest capacity of each band but the last, in cc.
static const int32_t band_ends[BAND_COUNT - 1] = {1000, 1200, 1600, 2000, 2500, 3500};

// The tests of a make, or of a model its first tests of class 4.
struct tally {
    uint64_t tests;
    uint64_t failed;
    uint64_t miles;
    uint64_t with_miles;
};

// By the number of the make or model.
struct tallies {
    struct tally *items;
    uint32_t room;
};

struct mot_answers {
    const struct mot_names *names;
    const struct mot_day *days;
    struct {
        uint64_t count;
        uint64_t miles;
    } bands[BAND_VALUES]; // index: 2 * the band's number, 3 * for a diesel (which counts 1.5 times)
    struct {
        uint64_t tests;
        uint64_t passed;
    } ages[AGE_SPAN];
    struct tallies makes, models;
};

struct mot_answers *mot_answers_create(const struct mot_fleet *fleet) {
    struct mot_answers *answers = calloc(1, sizeof *answers);
    if (answers != NULL) {
        answers->names = &fleet->names;
        answers->days = fleet->calendar.days;
    }
    return answers;
}

void mot_answers_destroy(struct mot_answers *answers) {
    if (answers != NULL) {
        free(answers->makes.items);
        free(answers->models.items);
        free(answers);
    }
}

// Adds a test to a tally; the table grows to `capacity`, the current room of the names. False when
// memory ran out.
static bool add_test(struct tallies *tallies, uint32_t number, uint32_t capacity, bool failed,
                     int32_t mileage) {
    if (number >= tallies->room) {
        struct tally *items = realloc(tallies->items, capacity * sizeof *items);
        if (items == NULL) {
            return false;
        }
        memset(items + tallies->room, 0, (capacity - tallies->room) * sizeof *items);
        *tallies = (struct tallies){items, capacity};
    }
    struct tally *tally = &tallies->items[number];
    tally->tests++;
    tally->failed += failed;
    tally->miles += mileage > 0 ? (uint64_t)mileage : 0;
    tally->with_miles += mileage >= 0;
    return true;
}

bool mot_answers_add(struct mot_answers *answers, const struct mot_row *row) {
    const struct mot_names *names = answers->names;
    uint32_t make = names->models.items[row->name].owner;
    bool failed = row->result == RESULT_F;

    int band = 1;
    for (int i = 0; i < BAND_COUNT - 1; i++) {
        band += row->capacity > band_ends[i];
    }
    int value = band * (row->fuel == FUEL_DIESEL ? 3 : 2);
    answers->bands[value].count++;
    answers->bands[value].miles += row->mileage > 0 ? (uint64_t)row->mileage : 0;

    if (!add_test(&answers->makes, make, names->makes.capacity, failed, row->mileage)) {
        return false;
    }
    if (row->class_id == 4 && row->type == TYPE_NORMAL) {
        if (!add_test(&answers->models, row->name, names->models.capacity, failed, row->mileage)) {
            return false;
        }
        if (row->test_day != DAY_MISSING && row->first_use != DAY_MISSING) {
            int age = answers->days[row->test_day].year - answers->days[row->first_use].year;
            answers->ages[age - AGE_LOW].tests++;
            answers->ages[age - AGE_LOW].passed +=
                row->result == RESULT_P || row->result == RESULT_PRS;
        }
    }
    return true;
}

// ---- printing ----

// Divides before it multiplies, like the queries.
static double percent(uint64_t part, uint64_t whole) {
    return 100.0 * ((double)part / (double)whole);
}

static void print_bands(FILE *stream, const struct mot_answers *answers) {
    const char *separator = "";
    for (int i = 0; i < BAND_VALUES; i++) {
        if (answers->bands[i].count > 0) {
            fprintf(stream,
                    "%s\n      {\"_id\": %.1f, \"count\": %" PRIu64 ", \"miles\": %" PRIu64 "}",
                    separator, i / 2.0, answers->bands[i].count, answers->bands[i].miles);
            separator = ",";
        }
    }
}

static void print_ages(FILE *stream, const struct mot_answers *answers) {
    const char *separator = "";
    for (int i = 0; i < AGE_SPAN; i++) {
        uint64_t tests = answers->ages[i].tests;
        uint64_t passed = answers->ages[i].passed;
        if (tests > 0) {
            fprintf(stream,
                    "%s\n      {\"_id\": %d, \"tests\": %" PRIu64 ", \"passed\": %" PRIu64
                    ", \"passRate\": %.17g}",
                    separator, i + AGE_LOW, tests, passed, percent(passed, tests));
            separator = ",";
        }
    }
}

// A line of a sorted answer.
struct ranked {
    const struct mot_answers *answers;
    uint32_t number; // of the make or model
    uint64_t tests;
    double fail_rate;
};

static int compare_names(const struct name *a, const struct name *b) {
    size_t shorter = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, shorter);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

// Most tests first, then by make.
static int compare_makes(const void *a, const void *b) {
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->tests != y->tests) {
        return x->tests < y->tests ? 1 : -1;
    }
    const struct name *makes = x->answers->names->makes.items;
    return compare_names(&makes[x->number], &makes[y->number]);
}

// Worst first, then most tests, then by make and model. Equal shares of failures are equal doubles,
// for a quotient is rounded the same way however its fraction is written.
static int compare_models(const void *a, const void *b) {
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->fail_rate != y->fail_rate) {
        return x->fail_rate < y->fail_rate ? 1 : -1;
    }
    if (x->tests != y->tests) {
        return x->tests < y->tests ? 1 : -1;
    }
    const struct mot_names *names = x->answers->names;
    const struct name *first = &names->models.items[x->number];
    const struct name *second = &names->models.items[y->number];
    int order =
        compare_names(&names->makes.items[first->owner], &names->makes.items[second->owner]);
    return order != 0 ? order : compare_names(first, second);
}

// Sorts the makes or models with at least so many tests. Returns their number.
static size_t rank(const struct mot_answers *answers, const struct tallies *tallies, uint64_t tests,
                   int (*compare)(const void *, const void *), struct ranked *ranked) {
    size_t count = 0;
    for (uint32_t i = 0; i < tallies->room; i++) {
        const struct tally *tally = &tallies->items[i];
        if (tally->tests >= tests) {
            ranked[count++] =
                (struct ranked){answers, i, tally->tests, percent(tally->failed, tally->tests)};
        }
    }
    qsort(ranked, count, sizeof *ranked, compare);
    return count;
}

static void print_makes(FILE *stream, const struct mot_answers *answers, struct ranked *ranked) {
    size_t count = rank(answers, &answers->makes, 1, compare_makes, ranked);
    for (size_t i = 0; i < count && i < MAKES_SHOWN; i++) {
        const struct name *make = &answers->names->makes.items[ranked[i].number];
        const struct tally *tally = &answers->makes.items[ranked[i].number];
        fprintf(stream, "%s\n      {\"_id\": ", i == 0 ? "" : ",");
        json_string(stream, make->text, make->length);
        fprintf(stream, ", \"tests\": %" PRIu64 ", \"meanMiles\": ", ranked[i].tests);
        if (tally->with_miles > 0) {
            fprintf(stream, "%.17g", (double)tally->miles / (double)tally->with_miles);
        } else {
            fputs("null", stream);
        }
        fprintf(stream, ", \"failRate\": %.17g}", ranked[i].fail_rate);
    }
}

static void print_models(FILE *stream, const struct mot_answers *answers, struct ranked *ranked) {
    size_t count = rank(answers, &answers->models, MODEL_TESTS, compare_models, ranked);
    for (size_t i = 0; i < count && i < MODELS_SHOWN; i++) {
        const struct name *model = &answers->names->models.items[ranked[i].number];
        const struct name *make = &answers->names->makes.items[model->owner];
        fprintf(stream, "%s\n      {\"_id\": {\"make\": ", i == 0 ? "" : ",");
        json_string(stream, make->text, make->length);
        fputs(", \"model\": ", stream);
        json_string(stream, model->text, model->length);
        fprintf(stream, "}, \"tests\": %" PRIu64 ", \"failRate\": %.17g}", ranked[i].tests,
                ranked[i].fail_rate);
    }
}

bool mot_answers_print(FILE *stream, const void *context) {
    const struct mot_answers *answers = context;
    uint32_t makes = answers->makes.room;
    uint32_t models = answers->models.room;
    struct ranked *ranked = calloc((makes > models ? makes : models) + 1, sizeof *ranked);
    if (ranked == NULL) {
        return false;
    }
    fputs("\n    \"green-ness\": [", stream);
    print_bands(stream, answers);
    fputs("],\n    \"pass-rate-by-age\": [", stream);
    print_ages(stream, answers);
    fputs("],\n    \"makes\": [", stream);
    print_makes(stream, answers, ranked);
    fputs("],\n    \"worst-models\": [", stream);
    print_models(stream, answers, ranked);
    fputs("]\n  ", stream);
    free(ranked);
    return true;
}
