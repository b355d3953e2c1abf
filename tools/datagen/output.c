// SPDX-License-Identifier: Apache-2.0
//
// Output files, which zlib writes, compressed or not.
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER_BYTES = 1 << 18 };

struct output {
    gzFile file;
    bool failed;
    char text[OUTPUT_ROOM];
};

char *output_room(struct output *output) {
    return output->text;
}

void output_commit(struct output *output, const char *end) {
    unsigned size = (unsigned)(end - output->text);
    output->failed = output->failed || (size > 0 && gzwrite(output->file, output->text, size) == 0);
}

bool output_failed(const struct output *output) {
    return output->failed;
}

static gzFile open_file(const char *path, int gzip_level) {
    char mode[] = "wbT"; // T: without compression
    if (gzip_level > 0) {
        mode[2] = (char)('0' + gzip_level);
    }
    gzFile file = strcmp(path, "-") == 0 ? gzdopen(dup(STDOUT_FILENO), mode) : gzopen(path, mode);
    if (file != NULL) {
        gzbuffer(file, BUFFER_BYTES);
    }
    return file;
}

static bool write_file(const char *path, int gzip_level, output_rows *rows, void *run,
                       uint32_t index, struct failure *failure) {
    struct output output = {.file = open_file(path, gzip_level)};
    if (output.file == NULL) {
        failure_set(failure, "cannot open %s: %s", path, strerror(errno));
        return false;
    }
    const char *problem = rows(run, &output, index);
    // zlib leaves the reason of a failed write in errno.
    int error = output.failed ? errno : 0;
    if (gzclose(output.file) != Z_OK && error == 0) {
        error = errno;
    }
    if (problem == NULL && error != 0) {
        problem = strerror(error);
    }
    if (problem != NULL) {
        failure_set(failure, "cannot write %s: %s", path, problem);
    }
    return problem == NULL;
}

bool output_files(const struct options *options, uint32_t count, output_path *path,
                  output_rows *rows, void *run, struct failure *failure) {
    bool done = true;
    for (uint32_t i = 0; done && i < count; i++) {
        char *name = path(run, i);
        done = name != NULL && write_file(name, options->gzip_level, rows, run, i, failure);
        free(name);
    }
    return done;
}
