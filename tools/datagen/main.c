// SPDX-License-Identifier: Apache-2.0
//
// shardload-datagen: generates data in published formats from a seed, with the answers to queries.
// It is in C because each run of the tests and benchmarks generates millions of records.
//
// A map of the files:
//   main.c          reads the options, writes the data, prints errors
//   options.c       the command line and the table of formats
//   report.c        the loop over files, and the answers file: files, bad records, answers
//   output.c        one output file, plain or gzip
//   calendar.h      dates by the number of the day
//   random.c        random numbers, weighted choice and permutations, the same on every machine
//   tables.c        reads the tables of data/, compiled in as text by embed.cmake
//   rows.c          formats whose records depend only on their number: the loop over records
//   emails.c        ... e-mails as a BSON dump
//   flights.c       ... flights as CSV
//   orders.c        ... orders and their line items
//   tweets.c        ... tweets as JSON lines
//   sensors.c       ... a car's sensor log
//   mot.c           the format of the MOT test results: the loop over records
//   mot_dialect.c   the published dialects and codes
//   mot_fleet.c     tables for drawing tests with the published frequencies
//   mot_draw.c      draws test records
//   mot_dirt.c      the irregularities of real files
//   mot_names.c     the set of makes and models in use
//   mot_text.c      a record as text
//   mot_answers.c   the answers of the queries over the records drawn
//   isd.c           the format of the ISD weather records: the loop over stations
//   isd_stations.c  generates stations and the lanes of ships
//   isd_groups.c    reads the groups of records and their frequencies
//   isd_weather.c   generates weather, and its codes in reports
//   isd_draw.c      draws records: their times and observations
//   isd_text.c      a record as text, and bad records
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
    struct failure failure = {"out of memory"};
    if (!options.format->write(&options, &failure)) {
        fprintf(stderr, "shardload-datagen: %s\n", failure.text);
        return 1;
    }
    return 0;
}
