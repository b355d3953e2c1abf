// SPDX-License-Identifier: Apache-2.0
//
// What the formats of rows.h share: the loop over records, drawing, and texts.
#include "rows.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "report.h"
#include "tables.h"

void rows_check(struct options *options, unsigned *problems) {
    const char *name = options->format->name;
    if (options->dialect != NULL) {
        usage_problem(problems, "--dialect: format %s has no dialects", name);
    }
    if (options->stations > 0 || options->ships) {
        usage_problem(problems, "--stations and --ships are for format isd");
    }
    if (options->year != 0) {
        usage_problem(problems, "--year: format %s has a fixed year", name);
    }
    if (options->bad > 0) {
        usage_problem(problems, "--bad: format %s has no bad records", name);
    }
    if (options->dirt_given && options->dirt != DIRT_NONE) {
        usage_problem(problems,
                      "--dirt %s: format %s has no irregularities; leave the option out, or choose "
                      "the format mot or isd",
                      dirt_level_name(options->dirt), name);
    }
    if (options->answers != NULL) {
        usage_problem(problems, "--answers: format %s has no queries with answers", name);
    }
}

static void drawer_clear(struct drawer *drawer) {
    alias_clear(&drawer->frequencies);
    free(drawer->words);
    free(drawer->text);
}

static bool drawer_init(struct drawer *drawer) {
    const char *table = table_find("words.txt");
    size_t lines = table_lines(table);
    struct table_row row;
    uint32_t count = 0;
    uint32_t *weights = calloc(lines, sizeof *weights);
    drawer->words = calloc(lines, sizeof *drawer->words);
    drawer->text = calloc(lines, TABLE_CELL_BYTES);
    bool done = false;
    if (weights == NULL || drawer->words == NULL || drawer->text == NULL) {
        goto cleanup;
    }
    while (table_next(&table, &row)) {
        char *word = drawer->text + (size_t)count * TABLE_CELL_BYTES;
        memcpy(word, row.cells[0], TABLE_CELL_BYTES);
        drawer->words[count] = word;
        weights[count] = 1000000 / (count + 2);
        count++;
    }
    done = alias_init(&drawer->frequencies, weights, count);

cleanup:
    free(weights);
    return done;
}

static const char *write_rows(void *run, struct output *output, uint32_t index) {
    struct drawer *drawer = run;
    const struct options *options = drawer->options;
    const struct format *format = options->format;
    uint64_t end = options->rows * (index + 1) / options->files;
    if (format->header != NULL) {
        output_commit(output, stpcpy(output_room(output), format->header));
    } else if (format->put_header != NULL) {
        output_commit(output, format->put_header(output_room(output)));
    }
    for (uint64_t i = options->rows * index / options->files; i < end && !output_failed(output);
         i++) {
        drawer_start(drawer, i, 0);
        output_commit(output, format->put(drawer, i, output_room(output)));
    }
    return NULL;
}

bool rows_write(const struct options *options, struct failure *failure) {
    struct drawer drawer = {.options = options};
    struct report report;
    bool done = report_init(&report, options, options->files) && drawer_init(&drawer) &&
                report_run(&report, write_rows, &drawer, NULL, NULL, failure);
    drawer_clear(&drawer);
    report_clear(&report);
    return done;
}

// ---- drawing ----

void drawer_start(struct drawer *drawer, uint64_t number, uint32_t stream) {
    rng_init(&drawer->rng, drawer->options->seed * 0xD1342543DE82EF95u + (number << 3) + stream);
}

uint32_t drawer_below(struct drawer *drawer, uint32_t n) {
    return scale32(high32(rng_next(&drawer->rng)), n);
}

uint32_t drawer_skewed(struct drawer *drawer, uint32_t n) {
    // The product of three uniform shares: half of the results are in the first tenth.
    uint32_t first = drawer_below(drawer, n) + 1;
    uint32_t second = drawer_below(drawer, first) + 1;
    return drawer_below(drawer, second);
}

bool drawer_chance(struct drawer *drawer, uint32_t percent) {
    return drawer_below(drawer, 100) < percent;
}

const char *drawer_word(struct drawer *drawer) {
    return drawer->words[alias_draw(&drawer->frequencies, high32(rng_next(&drawer->rng)))];
}

// ---- texts ----

char *put(char *p, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    p += vsprintf(p, format, arguments);
    va_end(arguments);
    return p;
}

char *put_hundredths(char *p, int64_t hundredths) {
    int64_t size = hundredths < 0 ? -hundredths : hundredths;
    return put(p, "%s%" PRId64 ".%02d", hundredths < 0 ? "-" : "", size / 100, (int)(size % 100));
}

char *put_date(char *p, int64_t day) {
    struct date date = date_of(day);
    return put(p, "%04d-%02d-%02d", date.year, date.month, date.day);
}

char *put_words(struct drawer *drawer, char *p, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        p = stpcpy(p, drawer_word(drawer));
        if (i + 1 == count || drawer_chance(drawer, 7)) {
            *p++ = '.';
        }
        if (i + 1 < count) {
            *p++ = ' ';
        }
    }
    return p;
}

char *put_person(char *p, uint32_t number, bool address) {
    static const char *const first[] = {
        "Anna",  "Ben",   "Clara", "David", "Eva",   "Frank", "Grace",  "Hugo",  "Irene",  "James",
        "Karen", "Louis", "Mary",  "Nina",  "Oscar", "Paula", "Robert", "Susan", "Thomas", "Vera"};
    static const char *const last[] = {"Adams",  "Baker",  "Carter",    "Dixon",  "Evans", "Foster",
                                       "Green",  "Harris", "Irwin",     "Jones",  "King",  "Lewis",
                                       "Martin", "Nelson", "Owens",     "Parker", "Quinn", "Reed",
                                       "Smith",  "Turner", "Underwood", "Vaughn", "Walker"};
    const uint32_t firsts = sizeof first / sizeof first[0];
    const uint32_t lasts = sizeof last / sizeof last[0];
    char *begin = p;
    p = put(p, "%s%c%s", first[number % firsts], address ? '.' : ' ',
            last[number / firsts % lasts]);
    if (number >= firsts * lasts) { // more people than names
        p = put(p, "%u", number / (firsts * lasts));
    }
    for (char *c = begin; address && c < p; c++) {
        *c = (char)tolower(*c);
    }
    return p;
}
