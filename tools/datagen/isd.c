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
    }
    if (options->stations > 1 && options->stations > options->rows / LEAST_ROWS) {
        usage_problem(problems, "--rows %" PRIu64 " is too few for %u stations: each needs %d",
                      options->rows, options->stations, LEAST_ROWS);
    }
    if (options->bad > 0) {
        usage_problem(problems, "--bad: format isd has no bad records");
    }
    if (options->files > 1) {
        usage_problem(problems, "--files: format isd writes one file, or a folder with a file for "
                                "each station");
    }
}

// The state of one run.
struct run {
    const struct options *options; // borrowed
    struct isd_world world;
    struct isd_groups groups;
    struct isd_drawer drawer;
    struct isd_text text;
    bool folder;
};

// The output, or in a folder USAF-WBAN-YYYY.
static char *file_path(const void *state, uint32_t index) {
    const struct run *run = state;
    const struct isd_station *station = &run->world.stations[index];
    const char *folder = run->options->output;
    if (!run->folder) {
        return strdup(folder);
    }
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    const char *suffix = run->options->gzip_level > 0 ? ".gz" : "";
    char *path;
    int length = asprintf(&path, "%s%s%.6s-%.5s-%04d%s", folder, slash, station->usaf,
                          station->wban, run->options->year, suffix);
    return length < 0 ? NULL : path;
}

// Writes all stations, or in a folder one.
static const char *write_rows(void *state, struct output *output, uint32_t index) {
    struct run *run = state;
    uint32_t end = run->folder ? index + 1 : run->world.station_count;
    struct isd_row row = {0};
    for (uint32_t i = run->folder ? index : 0; i < end && !output_failed(output); i++) {
        const struct isd_station *station = &run->world.stations[i];
        isd_drawer_start(&run->drawer, station);
        for (uint64_t k = 0; k < station->rows && !output_failed(output); k++) {
            isd_draw(&run->drawer, &row);
            output_commit(output, isd_text_row(&run->text, &row, output_room(output)));
        }
    }
    return NULL;
}

// Prepares the run and writes everything.
static bool run_all(struct run *run, const struct options *options, struct failure *failure) {
    run->options = options;
    run->folder = is_folder(options->output);
    isd_groups_init(&run->groups);
    if (!isd_world_init(&run->world, options)) {
        return false;
    }
    isd_drawer_init(&run->drawer, options, &run->groups);
    isd_text_init(&run->text, options, &run->groups);
    if (run->folder && mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        failure_set(failure, "cannot make %s: %s", options->output, strerror(errno));
        return false;
    }
    return output_files(options, run->folder ? run->world.station_count : 1, file_path, write_rows,
                        run, failure);
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
        "  The stations belong to several networks. If OUTPUT is a folder, or ends in /, each "
        "station\n"
        "  has a file, named USAF-WBAN-YYYY (.gz with --gzip). Station 722540 and some more are\n"
        "  within 100 km of 30.3 N, 97.7 W and have records in January. --dirt adds midnights "
        "written\n"
        "  as 2400, stations without a position, wrong lengths and unknown groups.\n",
    .check = check,
    .write = write_all,
};
