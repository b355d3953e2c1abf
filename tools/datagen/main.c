// SPDX-License-Identifier: Apache-2.0
//
// shardload-datagen: generates data in published formats from a seed. It is in C because each run of
// the tests and benchmarks generates millions of records; rows.py generates smaller data sets.
//
// A map of the files:
//   main.c          reads the options, writes the data, prints errors
//   options.c       the command line and the table of formats
//   output.c        the files, plain or gzip
//   calendar.h      dates by the number of the day
//   random.c        random numbers, weighted choice and permutations, the same on every machine
//   tables.c        reads the tables of data/, compiled in as text by embed.cmake
//   mot.c           the format of the MOT test results: dialects, codes, the loop over records
//   mot_fleet.c     tables for drawing tests with the published frequencies
//   mot_draw.c      draws test records, also with the irregularities of real files
//   mot_text.c      a record as text, and bad records
//   isd.c           the format of the ISD weather records: the loop over stations
//   isd_stations.c  generates stations
//   isd_groups.c    reads the groups of records and their frequencies
//   isd_draw.c      generates weather, draws records: their times and observations
//   isd_text.c      a record as text
#include "options.h"

int main(int argc, char **argv) {
    struct options options;
    int status;
    if (!options_parse(&options, argc, argv, &status)) {
        return status;
    }
    struct failure failure = {"out of memory"};
    if (!options.format->write(&options, &failure)) {
        fprintf(stderr, "shardload-datagen: %s\n", failure.text);
        return 1;
    }
    return 0;
}
