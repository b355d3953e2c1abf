// SPDX-License-Identifier: Apache-2.0
//
// The format of the ISD weather records: checks its options and writes its files. A folder gets a
// file for each station, named as the publisher names them; any other output holds stations one
// after the other.
#include "isd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    const struct options *options; // borrowed
    struct isd_world world;
    struct isd_groups groups;
    struct isd_drawer drawer;
    struct isd_text text;
    uint32_t files;
    uint64_t rows, bad; // so far
};

// USAF-WBAN-YYYY in the folder.
static char *station_path(const void *state, uint32_t index) {
    const struct run *run = state;
    const struct isd_station *station = &run->world.stations[index];
    const char *folder = run->options->output;
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    const char *suffix = run->options->gzip_level > 0 ? ".gz" : "";
    char *path;
    int length = asprintf(&path, "%s%s%.6s-%.5s-%04d%s", folder, slash, station->usaf,
                          station->wban, run->options->year, suffix);
    return length < 0 ? NULL : path;
}

static char *file_path(const void *state, uint32_t index) {
    const struct run *run = state;
    return options_file_path(run->options, index);
}

static uint32_t first_station(const struct run *run, uint32_t file) {
    return (uint32_t)((uint64_t)run->world.station_count * file / run->files);
}

// Writes the stations of one file, with its share of the bad records. The first record is never
// bad, because a loader recognises the format by it.
static const char *write_rows(void *state, struct output *output, uint32_t index) {
    struct run *run = state;
    const struct options *options = run->options;
    uint32_t end = first_station(run, index + 1);
    uint64_t rows = 0, written = 0, line = 0;
    for (uint32_t i = first_station(run, index); i < end; i++) {
        rows += run->world.stations[i].rows;
    }
    // Without records there are no bad ones.
    uint64_t all = options->rows > 0 ? options->rows : 1;
    uint64_t bad = options->bad * (run->rows + rows) / all - options->bad * run->rows / all;
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
            if (written < bad && line == 2 + (2 * written + 1) * (rows - 1) / (2 * bad)) {
                p = isd_text_bad(&run->text, &row, run->bad++, p);
                written++;
            } else {
                p = isd_text_row(&run->text, &row, p);
            }
            output_commit(output, p);
        }
    }
    run->rows += rows;
    return NULL;
}

// Prepares the run and writes everything.
static bool run_all(struct run *run, const struct options *options, struct failure *failure) {
    bool folder = is_folder(options->output);
    run->options = options;
    isd_groups_init(&run->groups);
    if (!isd_world_init(&run->world, options)) {
        return false;
    }
    isd_drawer_init(&run->drawer, options, &run->world, &run->groups);
    isd_text_init(&run->text, options, &run->groups);
    if (folder && mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        failure_set(failure, "cannot make %s: %s", options->output, strerror(errno));
        return false;
    }
    run->files = folder ? run->world.station_count : options->files;
    return output_files(options, run->files, folder ? station_path : file_path, write_rows, run,
                        failure);
}

static bool write_all(const struct options *options, struct failure *failure) {
    struct run run = {0};
    bool done = run_all(&run, options, failure);
    isd_world_clear(&run.world);
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
        "  2400, stations without a position, wrong lengths and unknown groups.\n",
    .check = check,
    .write = write_all,
};
