// SPDX-License-Identifier: Apache-2.0
//
// The options of one run, the formats that can be written, and how the command line is read.
#ifndef DATAGEN_OPTIONS_H
#define DATAGEN_OPTIONS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum dirt_level { DIRT_NONE, DIRT_PUBLISHED, DIRT_HEAVY };

struct format;

struct options {
    const struct format *format; // never NULL after options_parse succeeded
    const char *dialect;         // NULL until the format has filled in its default
    int year;                    // 0 until the format has filled in its default
    uint64_t rows;               // over all files, bad records included
    uint64_t seed;
    uint32_t files;
    uint32_t stations; // 0 until the format has filled in its default, if it has stations
    bool gzip;         // with the default level
    int gzip_level;    // 0 means plain text
    enum dirt_level dirt;
    uint64_t bad;       // records that a loader must reject
    const char *output; // path, or "-"
};

// An error message, which main prints.
struct failure {
    char text[512];
};

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

// Writes the text of a failure.
void failure_set(struct failure *failure, const char *format, ...) PRINTF_LIKE(2, 3);

// Reports a wrong option on standard error and counts it, so that all are reported together.
void usage_problem(unsigned *problems, const char *format, ...) PRINTF_LIKE(2, 3);

// One format of data. A new format is a new struct, listed in options.c.
struct format {
    const char *name;
    const char *summary;
    const char *help; // lines that describe what the options mean for this format
    // Fills in the format's own defaults and reports each wrong option with usage_problem.
    void (*check)(struct options *options, unsigned *problems);
    // Writes all files. False after an error; `failure` is left as it is when memory is exhausted,
    // and otherwise set.
    bool (*write)(const struct options *options, struct failure *failure);
};

// Reads the command line. Returns false when the program should end with *status at once: after
// --help (0), or after reporting every wrong option (2).
bool options_parse(struct options *options, int argc, char **argv, int *status);

// The path of file `index` of options->files: the output itself when there is one file, else with
// -1, -2 ... (as many digits as the last one has) before the first dot of its name. NULL when
// memory ran out; the caller frees it.
char *options_file_path(const struct options *options, uint32_t index);

#endif
