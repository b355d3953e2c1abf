// SPDX-License-Identifier: Apache-2.0
//
// Writes the files and the answers file: see report.h.
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool report_init(struct report *report, const struct options *options, uint32_t files) {
    *report = (struct report){.options = options, .file_count = files};
    report->files = calloc(files, sizeof *report->files);
    report->bad = calloc(options->bad + 1, sizeof *report->bad);
    return report->files != NULL && report->bad != NULL;
}

void report_clear(struct report *report) {
    for (uint32_t i = 0; report->files != NULL && i < report->file_count; i++) {
        free(report->files[i].path);
    }
    free(report->files);
    free(report->bad);
    *report = (struct report){0};
}

struct bad_record *report_add_bad(struct report *report, uint32_t file, uint64_t line,
                                  uint64_t offset) {
    struct bad_record *bad = &report->bad[report->bad_count++];
    *bad = (struct bad_record){.file = file, .line = line, .offset = offset};
    report->files[file].rejects++;
    return bad;
}

void json_string(FILE *stream, const char *text, size_t length) {
    fputc('"', stream);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            fprintf(stream, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(stream, "\\u%04x", c);
        } else {
            fputc(c, stream);
        }
    }
    fputc('"', stream);
}

static void text_member(FILE *stream, const char *name, const char *text) {
    fprintf(stream, "\"%s\": ", name);
    if (text == NULL) {
        fputs("null", stream);
    } else {
        json_string(stream, text, strlen(text));
    }
}

static void write_generator(FILE *stream, const struct options *options) {
    fputs("{\n  \"generator\": {", stream);
    text_member(stream, "format", options->format->name);
    fputs(", ", stream);
    text_member(stream, "dialect", options->dialect);
    fprintf(stream,
            ", \"year\": %d, \"rows\": %" PRIu64 ", \"seed\": %" PRIu64
            ", \"files\": %u, \"gzipLevel\": %d, ",
            options->year, options->rows, options->seed, options->files, options->gzip_level);
    if (options->stations > 0) {
        fprintf(stream, "\"stations\": %u, \"ships\": %s, ", options->stations,
                options->ships ? "true" : "false");
    }
    text_member(stream, "dirt", dirt_level_name(options->dirt));
    fprintf(stream, ", \"bad\": %" PRIu64 "},\n", options->bad);
}

static void write_counts(FILE *stream, const struct file_report *file) {
    fprintf(stream,
            "\"bytes\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"documents\": %" PRIu64
            ", \"repeatedHeaders\": %" PRIu64 ", \"rejects\": %" PRIu64 "}",
            file->bytes, file->rows, file->documents, file->repeated_headers, file->rejects);
}

static void write_files(FILE *stream, const struct report *report) {
    struct file_report totals = {0};
    fputs("  \"files\": [", stream);
    for (uint32_t i = 0; i < report->file_count; i++) {
        const struct file_report *file = &report->files[i];
        fputs(i == 0 ? "\n    {" : ",\n    {", stream);
        text_member(stream, "path", file->path);
        fputs(", ", stream);
        write_counts(stream, file);
        totals.bytes += file->bytes;
        totals.rows += file->rows;
        totals.documents += file->documents;
        totals.repeated_headers += file->repeated_headers;
        totals.rejects += file->rejects;
    }
    fputs("\n  ],\n  \"totals\": {", stream);
    write_counts(stream, &totals);
    fputs(",\n", stream);
}

static void write_bad(FILE *stream, const struct report *report) {
    fputs("  \"bad\": [", stream);
    for (size_t i = 0; i < report->bad_count; i++) {
        const struct bad_record *bad = &report->bad[i];
        fputs(i == 0 ? "\n    {" : ",\n    {", stream);
        text_member(stream, "file", report->files[bad->file].path);
        fprintf(stream, ", \"line\": %" PRIu64 ", \"offset\": %" PRIu64 ", ", bad->line,
                bad->offset);
        text_member(stream, "column", bad->column);
        fputs(", ", stream);
        text_member(stream, "kind", bad->kind);
        fputc('}', stream);
    }
    fputs("\n  ],\n", stream);
}

// False with errno set after an error.
static bool write_answers(const struct report *report, report_answers *print, const void *answers) {
    const struct options *options = report->options;
    FILE *stream = fopen(options->answers, "w");
    if (stream == NULL) {
        return false;
    }
    write_generator(stream, options);
    write_files(stream, report);
    write_bad(stream, report);
    fputs("  \"answers\": {", stream);
    bool written = print(stream, answers);
    fputs("}\n}\n", stream);
    written = written && ferror(stream) == 0;
    int error = errno;
    bool closed = fclose(stream) == 0;
    if (!written) {
        errno = error;
    }
    return written && closed;
}

static bool write_file(struct report *report, uint32_t index, report_rows *rows, void *run,
                       struct failure *failure) {
    struct file_report *file = &report->files[index];
    if (file->path == NULL) {
        file->path = options_file_path(report->options, index);
    }
    if (file->path == NULL) {
        return false;
    }
    struct output *output = output_create(file->path, report->options->gzip_level);
    if (output == NULL) {
        failure_set(failure, "cannot open %s: %s", file->path, strerror(errno));
        return false;
    }
    const char *problem = rows(run, output, index);
    file->bytes = output_offset(output);
    if (problem == NULL && !output_finish(output)) {
        problem = strerror(errno);
    }
    if (problem != NULL) {
        failure_set(failure, "cannot write %s: %s", file->path, problem);
    }
    output_destroy(output);
    return problem == NULL;
}

bool report_run(struct report *report, report_rows *rows, void *run, report_answers *print,
                const void *answers, struct failure *failure) {
    for (uint32_t i = 0; i < report->file_count; i++) {
        if (!write_file(report, i, rows, run, failure)) {
            return false;
        }
    }
    if (report->options->answers != NULL && !write_answers(report, print, answers)) {
        failure_set(failure, "cannot write %s: %s", report->options->answers, strerror(errno));
        return false;
    }
    return true;
}
