// SPDX-License-Identifier: Apache-2.0
//
// The answers file: the options that made the data, what each file holds, the bad records, and what
// queries must answer. Extended JSON; every format writes it through this module.
#ifndef DATAGEN_REPORT_H
#define DATAGEN_REPORT_H

#include "options.h"

// What one file holds. rows = documents + rejects; a repeated header is no row.
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
    const char *column; // header name of the wrong field, or NULL when the whole line is wrong
    const char *kind;
};

struct report {
    struct file_report *files;
    uint32_t file_count;
    struct bad_record *bad;
    size_t bad_count;
};

// Makes room for the files and bad records of a run; the format names the files. False when memory
// ran out; report_clear is due either way.
bool report_init(struct report *report, uint32_t files, uint64_t bad);
void report_clear(struct report *report);

// Writes `length` bytes as a JSON string.
void json_string(FILE *stream, const char *text, size_t length);

// Writes the answers file options->answers. `answers` prints the members of the object "answers"
// and returns false, with errno set, when it cannot.
// False with errno set when that did not work.
bool report_write(const struct report *report, const struct options *options,
                  bool (*answers)(FILE *stream, const void *context), const void *context);

#endif
