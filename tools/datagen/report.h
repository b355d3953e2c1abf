// SPDX-License-Identifier: Apache-2.0
//
// The answers file, in Extended JSON: the options, the content of each file, the bad records, and
// the answers to the queries. Every format writes it through this module.
#ifndef DATAGEN_REPORT_H
#define DATAGEN_REPORT_H

#include "options.h"

// The content of one file. rows = documents + rejects; a repeated header is not a row.
struct file_report {
    char *path;     // owned
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
    struct file_report *files;
    uint32_t file_count;
    struct bad_record *bad;
    size_t bad_count;
};

// Allocates entries for the files and bad records of a run; the format sets the files' names. False
// if memory is exhausted. To be cleared in any case.
bool report_init(struct report *report, uint32_t files, uint64_t bad);
void report_clear(struct report *report);

// Writes `length` bytes as a JSON string.
void json_string(FILE *stream, const char *text, size_t length);

// Writes the answers file options->answers. `answers` prints the fields of the object "answers" and
// returns false with errno set after an error, and so does this function.
bool report_write(const struct report *report, const struct options *options,
                  bool (*answers)(FILE *stream, const void *context), const void *context);

#endif
