// SPDX-License-Identifier: Apache-2.0
//
// shardload-datagen: writes made-up data in published formats, seeded and with known answers.
//
// A map of the files:
//   main.c          this: reads the options, writes the data, says what failed
//   options.c       the command line and the table of formats
//   report.c        the answers file: what was written where, and what queries must answer
//   output.c        one output file, plain or gzip
//   random.c        random numbers, weighted choice and permutations, the same on every machine
//   tables.c        reads the tables of data/, compiled in as text by embed.cmake
//   mot.c           the format of the MOT test results: the loop over files and records
//   mot_dialect.c   the published dialects and codes
//   mot_fleet.c     makes the published frequencies into what tests are drawn from
//   mot_draw.c      draws test records
//   mot_dirt.c      the oddities of real files
//   mot_names.c     the set of makes and models in use
//   mot_text.c      a record as text
//   mot_answers.c   the answers of the queries over the records drawn
//   isd.c           the format of the ISD weather records: the loop over files and stations
//   isd_stations.c  makes up stations and the lanes of ships
//   isd_groups.c    reads the groups that records are made of, and their frequencies
//   isd_weather.c   makes up weather, and the codes that tell of it
//   isd_draw.c      draws records: their time, and what they show of the weather
//   isd_text.c      a record as text, and records spoilt
//   isd_groups_text.c  its groups
//   isd_remarks.c   its remarks, element quality data and original observations
//   isd_answers.c   the answers of the queries over the records drawn
#include "options.h"

int main(int argc, char **argv) {
    struct options options;
    int status;
    if (!options_parse(&options, argc, argv, &status)) {
        return status;
    }
    struct failure failure;
    if (!options.format->write(&options, &failure)) {
        fprintf(stderr, "shardload-datagen: %s\n", failure.text);
        return 1;
    }
    return 0;
}
