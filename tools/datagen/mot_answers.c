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

struct make_tally {
    uint64_t tests;
    uint64_t failed;
    uint64_t miles;
    uint64_t with_miles;
};

struct model_tally {
    uint64_t tests;
    uint64_t failed;
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
    struct make_tally *makes;
    uint32_t make_room;
    struct model_tally *models;
    uint32_t model_room;
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
        free(answers->makes);
        free(answers->models);
        free(answers);
    }
}

// Grows the tables to the current number of names.
static bool make_room(struct mot_answers *answers) {
    uint32_t room = answers->names->makes.capacity;
    if (answers->make_room < room) {
        struct make_tally *makes = realloc(answers->makes, room * sizeof *makes);
        if (makes == NULL) {
            return false;
        }
        memset(makes + answers->make_room, 0, (room - answers->make_room) * sizeof *makes);
        answers->makes = makes;
        answers->make_room = room;
    }
    room = answers->names->models.capacity;
    if (answers->model_room < room) {
        struct model_tally *models = realloc(answers->models, room * sizeof *models);
        if (models == NULL) {
            return false;
        }
        memset(models + answers->model_room, 0, (room - answers->model_room) * sizeof *models);
        answers->models = models;
        answers->model_room = room;
    }
    return true;
}

bool mot_answers_add(struct mot_answers *answers, const struct mot_row *row) {
    uint32_t make = answers->names->models.items[row->name].owner;
    if ((row->name >= answers->model_room || make >= answers->make_room) && !make_room(answers)) {
        return false;
    }
    uint64_t miles = row->mileage > 0 ? (uint64_t)row->mileage : 0;
    bool failed = row->result == RESULT_F;

    int band = 1;
    for (int i = 0; i < BAND_COUNT - 1; i++) {
        band += row->capacity > band_ends[i];
    }
    int value = band * (row->fuel == FUEL_DIESEL ? 3 : 2);
    answers->bands[value].count++;
    answers->bands[value].miles += miles;

    struct make_tally *of_make = &answers->makes[make];
    of_make->tests++;
    of_make->failed += failed;
    of_make->miles += miles;
    of_make->with_miles += row->mileage >= 0;

    if (row->class_id == 4 && row->type == TYPE_NORMAL) {
        struct model_tally *of_model = &answers->models[row->name];
        of_model->tests++;
        of_model->failed += failed;
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

static void print_makes(FILE *stream, const struct mot_answers *answers, struct ranked *ranked) {
    size_t count = 0;
    for (uint32_t i = 0; i < answers->make_room; i++) {
        const struct make_tally *tally = &answers->makes[i];
        if (tally->tests > 0) {
            ranked[count++] =
                (struct ranked){answers, i, tally->tests, percent(tally->failed, tally->tests)};
        }
    }
    qsort(ranked, count, sizeof *ranked, compare_makes);
    for (size_t i = 0; i < count && i < MAKES_SHOWN; i++) {
        const struct name *make = &answers->names->makes.items[ranked[i].number];
        const struct make_tally *tally = &answers->makes[ranked[i].number];
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
    size_t count = 0;
    for (uint32_t i = 0; i < answers->model_room; i++) {
        const struct model_tally *tally = &answers->models[i];
        if (tally->tests >= MODEL_TESTS) {
            ranked[count++] =
                (struct ranked){answers, i, tally->tests, percent(tally->failed, tally->tests)};
        }
    }
    qsort(ranked, count, sizeof *ranked, compare_models);
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
    uint32_t room =
        answers->make_room > answers->model_room ? answers->make_room : answers->model_room;
    struct ranked *ranked = calloc(room + 1, sizeof *ranked);
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
