// SPDX-License-Identifier: Apache-2.0
//
// The command line: one table of options, from which parsing and help come.
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "isd.h"
#include "mot.h"

static const struct format *const formats[] = {&mot_format, &isd_format};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static const char *const dirt_names[] = {"none", "published", "heavy"};

void failure_set(struct failure *failure, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
}

void usage_problem(unsigned *problems, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("shardload-datagen: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    ++*problems;
}

// Reads a whole number from `low` to `high`; k, m and g after it multiply by a thousand, a million
// and a thousand million. Returns `low` after reporting a problem.
static uint64_t parse_number(const char *option, const char *value, uint64_t low, uint64_t high,
                             unsigned *problems) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    static const char suffixes[] = "kmg";
    static const uint64_t factors[] = {1000, 1000000, 1000000000};
    const char *suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    uint64_t factor = suffix != NULL ? factors[suffix - suffixes] : 1;
    end += suffix != NULL;
    if (*value < '0' || *value > '9' || *end != '\0' || errno == ERANGE || number > high / factor ||
        number * factor < low) {
        usage_problem(problems, "--%s must be a whole number from %llu to %llu, not '%s'", option,
                      (unsigned long long)low, (unsigned long long)high, value);
        return low;
    }
    return number * factor;
}

static void set_format(struct options *options, const char *value, unsigned *problems) {
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(formats[i]->name, value) == 0) {
            options->format = formats[i];
            return;
        }
    }
    usage_problem(problems, "--format: there is no format '%s'", value);
}

static void set_dirt(struct options *options, const char *value, unsigned *problems) {
    for (int i = DIRT_NONE; i <= DIRT_HEAVY; i++) {
        if (strcmp(dirt_names[i], value) == 0) {
            options->dirt = (enum dirt_level)i;
            return;
        }
    }
    usage_problem(problems, "--dirt must be none, published or heavy, not '%s'", value);
}

#define FIELD(name) .offset = offsetof(struct options, name)
#define NUMBER(name, least, most)                                                                  \
    FIELD(name), .size = sizeof((struct options *)0)->name, .low = least, .high = most

// A row without `set` stores the value in a field of struct options: as a number if `size` is not
// zero, or else as text, and for a switch as true.
static const struct option_row {
    const char *name;
    const char *argument; // NULL for a switch
    const char *help;
    size_t offset, size; // of the field, in bytes
    uint64_t low, high;  // of a number
    void (*set)(struct options *options, const char *value, unsigned *problems);
} option_table[] = {
    {"format", "NAME", "format to write (default mot)", .set = set_format},
    {"dialect", "NAME", "dialect of the format", FIELD(dialect)},
    {"year", "YYYY", "year of the data (default: one that fits the dialect)",
     NUMBER(year, 1901, 2100)},
    {"rows", "N", "total number of records (default 100k)", NUMBER(rows, 0, 1500000000)},
    {"seed", "N", "the same seed and options give the same bytes (default 1)",
     NUMBER(seed, 0, UINT64_MAX)},
    {"files", "N", "split the records evenly over N files (default 1)", NUMBER(files, 1, 100000)},
    {"stations", "N", "weather stations (default: one for each 4000 records)",
     NUMBER(stations, 1, ISD_STATIONS)},
    {"gzip", NULL, "compress with gzip", FIELD(gzip)},
    {"gzip-level", "1-9", "compress with gzip at this level (default 6)", NUMBER(gzip_level, 1, 9)},
    {"dirt", "LEVEL",
     "irregularities of real files, which a loader must accept: none,\n"
     "                       published (default), or heavy, so that small files have all kinds",
     .set = set_dirt},
    {"bad", "N", "add N records that a loader must reject (default 0)", NUMBER(bad, 0, 1000000)},
};
enum { OPTION_COUNT = sizeof option_table / sizeof option_table[0] };

static void set_option(const struct option_row *row, struct options *options, const char *value,
                       unsigned *problems) {
    void *field = (char *)options + row->offset;
    if (row->set != NULL) {
        row->set(options, value, problems);
    } else if (row->argument == NULL) {
        *(bool *)field = true;
    } else if (row->size == 0) {
        *(const char **)field = value;
    } else {
        uint64_t number = parse_number(row->name, value, row->low, row->high, problems);
        uint32_t small = (uint32_t)number;
        memcpy(field, row->size == sizeof number ? (void *)&number : (void *)&small, row->size);
    }
}

static void print_help(void) {
    fputs(
        "Usage: shardload-datagen [options] OUTPUT\n"
        "\n"
        "Generates data in published formats, with the frequencies of the real data. OUTPUT is a\n"
        "file, or - for standard output; some formats also write a folder. With several files,\n"
        "-1, -2 ... is inserted before the first dot of the name.\n"
        "\n"
        "Options:\n",
        stdout);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = &option_table[i];
        char left[32];
        snprintf(left, sizeof left, "--%s %s", row->name, row->argument ? row->argument : "");
        printf("  %-20s %s\n", left, row->help);
    }
    fputs("  --help               show this text\n"
          "\n"
          "Numbers may end in k, m or g for thousands, millions or thousand millions.\n",
          stdout);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        printf("\nFormat %s: %s\n%s", formats[i]->name, formats[i]->summary, formats[i]->help);
    }
    fputs("\n"
          "Examples:\n"
          "  A million records of 2015:\n"
          "    shardload-datagen --rows 1m test_result_2015.txt\n"
          "  Twelve compressed files in the layout of 2021:\n"
          "    shardload-datagen --dialect E --rows 12m --files 12 --gzip test_result.csv.gz\n"
          "  A small file with every irregularity and 20 records that must be rejected:\n"
          "    shardload-datagen --dialect D --rows 20k --dirt heavy --bad 20 d.csv\n"
          "  Weather of 200 stations, a compressed file for each station:\n"
          "    shardload-datagen --format isd --rows 1m --stations 200 --gzip weather/\n"
          "  Pipe the records into another program:\n"
          "    shardload-datagen --rows 10m - | wc -l\n"
          "\n"
          "Exit status: 0 done, 1 could not write, 2 wrong options (all are reported at once).\n",
          stdout);
}

// Checks combinations of options.
static void check_together(const struct options *options, unsigned *problems) {
    if (options->output == NULL) {
        usage_problem(problems, "no OUTPUT given");
    } else if (strcmp(options->output, "-") == 0 && options->files > 1) {
        usage_problem(problems, "--files %u cannot go to standard output", options->files);
    }
    // A bad record is never the first of a file, by which a loader recognises the dialect.
    if (options->bad > 0 &&
        (options->bad > options->rows / 2 || options->files > options->rows / 2)) {
        usage_problem(problems,
                      "--bad needs at least two records per bad record and per file: "
                      "--rows %llu is too few",
                      (unsigned long long)options->rows);
    }
}

// Reads the options by getopt_long, which reports unknown options and missing values. False for
// --help.
static bool read_options(struct options *options, int argc, char **argv, unsigned *problems) {
    struct option long_options[OPTION_COUNT + 2] = {{0}};
    for (int i = 0; i < OPTION_COUNT; i++) {
        int argument = option_table[i].argument != NULL ? required_argument : no_argument;
        long_options[i] = (struct option){option_table[i].name, argument, NULL, i};
    }
    long_options[OPTION_COUNT] = (struct option){"help", no_argument, NULL, 'h'};
    for (int found; (found = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
        if (found == 'h') {
            return false;
        } else if (found == '?') {
            ++*problems;
        } else {
            set_option(&option_table[found], options, optarg, problems);
        }
    }
    options->output = optind < argc ? argv[optind] : NULL;
    if (optind + 1 < argc) {
        usage_problem(problems, "more than one OUTPUT: '%s'", argv[optind + 1]);
    }
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, int *status) {
    unsigned problems = 0;
    *options = (struct options){
        .format = formats[0], .rows = 100000, .seed = 1, .files = 1, .dirt = DIRT_PUBLISHED};
    *status = 0;
    if (!read_options(options, argc, argv, &problems)) {
        print_help();
        return false;
    }
    if (options->gzip && options->gzip_level == 0) {
        options->gzip_level = 6;
    }
    check_together(options, &problems);
    options->format->check(options, &problems);
    if (problems > 0) {
        fputs("Try --help.\n", stderr);
        *status = 2;
    }
    return problems == 0;
}

char *options_file_path(const struct options *options, uint32_t index) {
    const char *path = options->output;
    if (options->files == 1) {
        return strdup(path);
    }
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    // A leading dot hides a file; it does not begin its suffix.
    size_t stem = (size_t)(name - path) + (*name == '.') + strcspn(name + (*name == '.'), ".");
    int digits = snprintf(NULL, 0, "%u", options->files);
    char *result;
    int length = asprintf(&result, "%.*s-%0*u%s", (int)stem, path, digits, index + 1, path + stem);
    return length < 0 ? NULL : result;
}
