// SPDX-License-Identifier: Apache-2.0
//
// The format of the MOT test results: the dialects in which they were published, their codes; checks
// its options and writes its files.
#include "mot.h"

#include <stdlib.h>
#include <strings.h>

enum { YEAR_FIRST = 1970 };

// ---- dialects and codes ----

static const struct mot_dialect dialects[] = {
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

// ---- the format ----

static const struct mot_dialect *find_dialect(const char *name) {
    const struct mot_dialect *dialect = dialects;
    while (dialect->name != NULL && strcasecmp(dialect->name, name) != 0) {
        dialect++;
    }
    return dialect->name != NULL ? dialect : NULL;
}

static void check(struct options *options, unsigned *problems) {
    if (options->stations > 0) {
        usage_problem(problems, "--stations is for format isd");
    }
    if (options->year != 0 && options->year < YEAR_FIRST) {
        usage_problem(problems, "--year must be %d or later, not %d", YEAR_FIRST, options->year);
    }
    if (options->dialect == NULL) {
        options->dialect = "B";
    }
    const struct mot_dialect *dialect = find_dialect(options->dialect);
    if (dialect == NULL) {
        usage_problem(problems, "--dialect: format mot has no dialect '%s'", options->dialect);
        return;
    }
    options->dialect = dialect->name;
    if (options->year == 0) {
        options->year = dialect->year;
    }
}

// The state of one run.
struct run {
    const struct options *options; // borrowed
    struct mot_fleet fleet;
    uint64_t bad; // records so far
};

// The number of the record, over all files, that is bad record `n`. Bad records are spread evenly,
// but never the first line of a file, by which a loader recognises the dialect. options_parse has
// checked that there are enough records.
static uint64_t bad_position(const struct options *options, uint64_t n) {
    return n < options->bad ? (2 * n + 1) * options->rows / (2 * options->bad) : UINT64_MAX;
}

// Writes the records of a file.
static const char *write_rows(void *state, struct output *output, uint32_t index) {
    struct run *run = state;
    const struct options *options = run->options;
    uint64_t first = options->rows * index / options->files;
    uint64_t end = options->rows * (index + 1) / options->files;
    if (run->fleet.dialect->header) {
        output_commit(output, mot_text_header(run->fleet.dialect, output_room(output)));
    }
    struct mot_row row;
    for (uint64_t i = first; i < end && !output_failed(output); i++) {
        char *p = output_room(output);
        mot_draw(&run->fleet, &row);
        if (i > first && i >= bad_position(options, run->bad)) {
            p = mot_text_bad(&run->fleet, &row, run->bad++, p);
        } else {
            p = row.repeated_header ? mot_text_header(run->fleet.dialect, p) : p;
            p = mot_text_row(&run->fleet, &row, p);
        }
        output_commit(output, p);
    }
    return NULL;
}

static char *file_path(const void *state, uint32_t index) {
    const struct run *run = state;
    return options_file_path(run->options, index);
}

static bool write_all(const struct options *options, struct failure *failure) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return false;
    }
    run->options = options;
    mot_fleet_init(&run->fleet, options, find_dialect(options->dialect));
    bool done = output_files(options, options->files, file_path, write_rows, run, failure);
    free(run);
    return done;
}

const struct format mot_format = {
    .name = "mot",
    .summary = "anonymised MOT test results of Great Britain",
    .help = "  Dialects of the published files (default B):\n"
            "    A    2005-2013 as first published: pipes, no header, NULL and 0 for missing\n"
            "    B    2005-2016 as published again: pipes, header\n"
            "    C1   2017, first publication: commas\n"
            "    C2   2017, later publication: pipes\n"
            "    D    2018-2020: commas, quotes where needed\n"
            "    E    2021: commas, every text quoted\n"
            "    F    2022-2023: pipes, bare quotes\n"
            "    G1   2024, first publication: commas, completed_date, stray header lines\n"
            "    G2   2024-2025: commas, completed_date, some fuels in words\n"
            "    tab  as B, with tabs\n",
    .check = check,
    .write = write_all,
};
