// SPDX-License-Identifier: Apache-2.0
//
// The format of the ISD weather records: checks its options and writes its files. A folder gets a
// file for each station, named as the publisher names them; any other output holds stations one
// after the other.
#include "isd_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

enum { STATION_ROWS = 4000, LEAST_ROWS = 4, YEAR_DEFAULT = 2014 };

// Is the output a folder, which exists or is to be created?
static bool is_folder(const char *path) {
    struct stat status;
    size_t length = strlen(path);
    return (length > 0 && path[length - 1] == '/') ||
           (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

static void check(struct options *options, unsigned *problems) {
    if (options->dialect != NULL) {
        usage_problem(problems, "--dialect: format isd has no dialects");
    }
    if (options->year == 0) {
        options->year = YEAR_DEFAULT;
    }
    if (options->stations == 0) {
        uint64_t stations = options->rows / STATION_ROWS;
        options->stations = (uint32_t)(stations < 1              ? 1
                                       : stations < ISD_STATIONS ? stations
                                                                 : ISD_STATIONS);
        options->stations = options->stations < options->files ? options->files : options->stations;
    }
    uint64_t stations = options->stations + (options->ships ? 1u : 0u);
    if (stations > 1 && stations > options->rows / LEAST_ROWS) {
        usage_problem(problems,
                      "--rows %" PRIu64 " is too few for %" PRIu64 " stations: each needs %d",
                      options->rows, stations, LEAST_ROWS);
    }
    if (options->bad > options->rows / LEAST_ROWS) {
        usage_problem(problems,
                      "--bad needs %d records per bad record: --rows %" PRIu64 " is too few",
                      LEAST_ROWS, options->rows);
    }
    if (options->files > stations) {
        usage_problem(problems, "--files %u is more than there are stations (%" PRIu64 ")",
                      options->files, stations);
    }
    if (options->files > 1 && options->output != NULL && is_folder(options->output)) {
        usage_problem(problems, "--files: a folder gets a file for each station");
    }
}

// The state of one run.
struct run {
    struct isd_world world;
    struct isd_groups groups;
    struct isd_drawer drawer;
    struct isd_text text;
    struct isd_answers *answers; // NULL without --answers
    struct report report;
    uint64_t rows; // so far
};

// USAF-WBAN-YYYY in the folder. NULL when memory ran out; the caller frees it.
static char *station_path(const struct run *run, uint32_t index) {
    const struct isd_station *station = &run->world.stations[index];
    const struct options *options = run->report.options;
    const char *folder = options->output;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    const char *suffix = options->gzip_level > 0 ? ".gz" : "";
    char *path;
    int length = asprintf(&path, "%s%s%.6s-%.5s-%04d%s", folder, slash, station->usaf,
                          station->wban, options->year, suffix);
    return length < 0 ? NULL : path;
}

static uint32_t first_station(const struct run *run, uint32_t file) {
    return (uint32_t)((uint64_t)run->world.station_count * file / run->report.file_count);
}

// Writes the stations of one file, with its share of the bad records. The first record is never
// bad, because a loader recognises the format by it.
static const char *write_rows(void *state, struct output *output, uint32_t index) {
    struct run *run = state;
    struct file_report *file = &run->report.files[index];
    const struct options *options = run->report.options;
    uint32_t end = first_station(run, index + 1);
    for (uint32_t i = first_station(run, index); i < end; i++) {
        file->rows += run->world.stations[i].rows;
    }
    uint64_t bad = 0;
    if (options->bad > 0) {
        bad = options->bad * (run->rows + file->rows) / options->rows -
              options->bad * run->rows / options->rows;
    }
    uint64_t line = 0;
    struct isd_row row = {0};
    for (uint32_t i = first_station(run, index); i < end && !output_failed(output); i++) {
        const struct isd_station *station = &run->world.stations[i];
        isd_drawer_start(&run->drawer, station);
        for (uint64_t k = 0; k < station->rows && !output_failed(output); k++) {
            isd_draw(&run->drawer, &row);
            char *p = output_room(output);
            // The lines after the first are divided into equal parts; bad record n is in the middle
            // of part n.
            line++;
            if (file->rejects < bad &&
                line == 2 + (2 * file->rejects + 1) * (file->rows - 1) / (2 * bad)) {
                uint64_t which = run->report.bad_count;
                p = isd_text_bad(&run->text, &row, which, p,
                                 report_add_bad(&run->report, index, line, output_offset(output)));
            } else {
                p = isd_text_row(&run->text, &row, p);
                file->documents++;
                if (run->answers != NULL) {
                    isd_answers_add(run->answers, &row);
                }
            }
            output_commit(output, p);
        }
    }
    run->rows += file->rows;
    return NULL;
}

// Prepares the run and writes everything.
static bool run_all(struct run *run, const struct options *options, struct failure *failure) {
    bool folder = is_folder(options->output);
    isd_groups_init(&run->groups);
    if (!isd_world_init(&run->world, options) ||
        !isd_drawer_init(&run->drawer, options, &run->world, &run->groups) ||
        !report_init(&run->report, options, folder ? run->world.station_count : options->files)) {
        return false;
    }
    isd_text_init(&run->text, options, &run->groups);
    if (options->answers != NULL) {
        run->answers = isd_answers_create(options, &run->world, &run->groups);
        if (run->answers == NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; folder && i < run->world.station_count; i++) {
        run->report.files[i].path = station_path(run, i);
        if (run->report.files[i].path == NULL) {
            return false;
        }
    }
    if (folder && mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        failure_set(failure, "cannot make %s: %s", options->output, strerror(errno));
        return false;
    }
    return report_run(&run->report, write_rows, run, isd_answers_print, run->answers, failure);
}

static bool write_all(const struct options *options, struct failure *failure) {
    struct run run = {0};
    bool done = run_all(&run, options, failure);
    isd_answers_destroy(run.answers);
    free(run.drawer.ships);
    isd_world_clear(&run.world);
    report_clear(&run.report);
    return done;
}

const struct format isd_format = {
    .name = "isd",
    .summary = "weather observations of NOAA's Integrated Surface Data, packed ASCII",
    .help =
        "  The stations belong to several networks. --ships adds a file of ships' reports, which "
        "is\n"
        "  much longer than the others. If OUTPUT is a folder, or ends in /, each station has a\n"
        "  file, named USAF-WBAN-YYYY (.gz with --gzip). Station 722540 and some more are within\n"
        "  100 km of 30.3 N, 97.7 W and have records in January. --dirt adds midnights written as\n"
        "  2400, stations without a position, wrong lengths and unknown groups.\n"
        "  The answers are those of the queries temperature-swing, snow-stations, sky-by-hour,\n"
        "  monthly-means, near-point and strongest-wind.\n",
    .check = check,
    .write = write_all,
};
