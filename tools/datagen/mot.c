// SPDX-License-Identifier: Apache-2.0
//
// The format of the MOT test results: checks its options and writes its files.
#include "mot.h"

#include <stdlib.h>
#include <strings.h>

enum { YEAR_FIRST = 1970 };

static const struct mot_dialect *find_dialect(const char *name) {
    const struct mot_dialect *dialect = mot_dialects;
    while (dialect->name != NULL && strcasecmp(dialect->name, name) != 0) {
        dialect++;
    }
    return dialect->name != NULL ? dialect : NULL;
}

static void check(struct options *options, unsigned *problems) {
    if (options->stations > 0 || options->ships) {
        usage_problem(problems, "--stations and --ships are for format isd");
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
    struct mot_fleet fleet;
    struct mot_text text;
    struct mot_answers *answers; // NULL without --answers
    struct report report;
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
    const struct options *options = run->report.options;
    struct file_report *file = &run->report.files[index];
    uint64_t first = options->rows * index / options->files;
    uint64_t end = options->rows * (index + 1) / options->files;
    uint64_t lines = 0;
    if (run->text.dialect->header) {
        output_commit(output, mot_text_header(&run->text, output_room(output)));
        lines++;
    }
    uint64_t next_bad = bad_position(options, run->report.bad_count);
    struct mot_row row;
    for (uint64_t i = first; i < end; i++) {
        if (!mot_draw(&run->fleet, &row)) {
            return "out of memory";
        }
        char *p = output_room(output);
        if (i >= next_bad && i > first) {
            uint64_t which = run->report.bad_count;
            p = mot_text_bad(&run->text, &row, which, p,
                             report_add_bad(&run->report, index, lines + 1, output_offset(output)));
            next_bad = bad_position(options, run->report.bad_count);
        } else {
            if (row.repeated_header) {
                p = mot_text_header(&run->text, p);
                file->repeated_headers++;
                lines++;
            }
            p = mot_text_row(&run->text, &row, p);
            file->documents++;
            if (run->answers != NULL && !mot_answers_add(run->answers, &row)) {
                return "out of memory";
            }
        }
        lines++;
        output_commit(output, p);
        if (output_failed(output)) {
            break;
        }
    }
    file->rows = end - first;
    return NULL;
}

static bool write_all(const struct options *options, struct failure *failure) {
    const struct mot_dialect *dialect = find_dialect(options->dialect);
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return false;
    }
    bool done = report_init(&run->report, options, options->files) &&
                mot_fleet_init(&run->fleet, options, dialect) &&
                mot_text_init(&run->text, &run->fleet);
    if (done && options->answers != NULL) {
        run->answers = mot_answers_create(&run->fleet);
        done = run->answers != NULL;
    }
    done =
        done && report_run(&run->report, write_rows, run, mot_answers_print, run->answers, failure);
    mot_answers_destroy(run->answers);
    free(run->text.models);
    mot_fleet_clear(&run->fleet);
    report_clear(&run->report);
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
            "    tab  as B, with tabs\n"
            "  The answers are those of the queries green-ness, pass-rate-by-age, makes and\n"
            "  worst-models.\n",
    .check = check,
    .write = write_all,
};
