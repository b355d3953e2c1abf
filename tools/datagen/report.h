// SPDX-License-Identifier: Apache-2.0
//
// Writes the files of a run, and the answers file in Extended JSON: the options, the content of
// each file, the bad records, and the answers to the queries. Every format writes through this
// module.
#ifndef DATAGEN_REPORT_H
#define DATAGEN_REPORT_H

#include "options.h"
#include "output.h"

// The content of one file. rows = documents + rejects; a repeated header is not a row.
struct file_report {
    char *path;     // owned; NULL until it is known
    uint64_t bytes; // of text, before compression
    uint64_t rows;
    uint64_t documents;
    uint64_t repeated_headers;
    uint64_t rejects;
};

// One record that a loader must reject.
struct bad_record {
    uint32_t file;
    uint64_t line;      // counted from 1, header lines included
    uint64_t offset;    // bytes from the start of the file's text to the start of the line
    const char *column; // header name of the wrong field, or NULL when the line as such is wrong
    const char *kind;
};

struct report {
    const struct options *options; // borrowed
    struct file_report *files;
    uint32_t file_count;
    struct bad_record *bad;
    size_t bad_count;
};

// Allocates entries for the files and bad records of a run. False if memory is exhausted. To be
// cleared in any case.
bool report_init(struct report *report, const struct options *options, uint32_t files);
void report_clear(struct report *report);

// Adds a bad record, whose column and kind the caller sets.
struct bad_record *report_add_bad(struct report *report, uint32_t file, uint64_t line,
                                  uint64_t offset);

// Writes the records of file `index` and counts them in its report, except the bytes. Returns NULL,
// or an error message. `run` is the format's state.
typedef const char *report_rows(void *run, struct output *output, uint32_t index);

// Prints the fields of the object "answers". False with errno set after an error.
typedef bool report_answers(FILE *stream, const void *answers);

// Writes all files, and then the answers file if there is one. A file without a path is named by
// options_file_path. Fails like the `write` of a format.
bool report_run(struct report *report, report_rows *rows, void *run, report_answers *print,
                const void *answers, struct failure *failure);

// Writes `length` bytes as a JSON string.
void json_string(FILE *stream, const char *text, size_t length);

#endif
