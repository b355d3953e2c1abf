// SPDX-License-Identifier: Apache-2.0
//
// Output files: a text buffer in front of write(2) or of zlib.
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { TEXT_BYTES = 1 << 18, PACKED_BYTES = 1 << 16 };

struct output {
    int fd;
    bool owns_fd;
    bool compresses;
    int error; // errno of the first failure
    uint64_t flushed;
    char *end; // of the text in the buffer
    z_stream stream;
    char text[TEXT_BYTES];
    unsigned char packed[PACKED_BYTES];
};

struct output *output_create(const char *path, int gzip_level) {
    struct output *output = malloc(sizeof *output);
    if (output == NULL) {
        return NULL;
    }
    output->fd = -1;
    output->compresses = false;
    output->error = 0;
    output->flushed = 0;
    output->end = output->text;
    output->owns_fd = strcmp(path, "-") != 0;
    output->fd = output->owns_fd ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                                 : STDOUT_FILENO;
    if (output->fd < 0) {
        goto failed;
    }
    if (gzip_level > 0) {
        memset(&output->stream, 0, sizeof output->stream);
        // 15 bits of window, plus 16 for a gzip wrapper (whose time stamp zlib leaves at zero).
        if (deflateInit2(&output->stream, gzip_level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
            Z_OK) {
            errno = ENOMEM;
            goto failed;
        }
        output->compresses = true;
    }
    return output;

failed:;
    int error = errno;
    output_destroy(output);
    errno = error;
    return NULL;
}

static void write_all(struct output *output, const void *data, size_t size) {
    const char *p = data;
    while (size > 0 && output->error == 0) {
        ssize_t written = write(output->fd, p, size);
        if (written >= 0) {
            p += written;
            size -= (size_t)written;
        } else if (errno != EINTR) {
            output->error = errno;
        }
    }
}

static void flush(struct output *output, int mode) {
    size_t size = (size_t)(output->end - output->text);
    if (!output->compresses) {
        write_all(output, output->text, size);
    } else {
        z_stream *stream = &output->stream;
        stream->next_in = (unsigned char *)output->text;
        stream->avail_in = (unsigned)size;
        do {
            stream->next_out = output->packed;
            stream->avail_out = PACKED_BYTES;
            deflate(stream, mode);
            write_all(output, output->packed, PACKED_BYTES - stream->avail_out);
        } while (stream->avail_out == 0);
    }
    output->flushed += size;
    output->end = output->text;
}

char *output_room(struct output *output) {
    if (output->text + TEXT_BYTES - output->end < OUTPUT_ROOM) {
        flush(output, Z_NO_FLUSH);
    }
    return output->end;
}

void output_commit(struct output *output, const char *end) {
    output->end = output->text + (end - output->text);
}

uint64_t output_offset(const struct output *output) {
    return output->flushed + (uint64_t)(output->end - output->text);
}

bool output_failed(const struct output *output) {
    return output->error != 0;
}

bool output_finish(struct output *output) {
    flush(output, Z_FINISH);
    if (output->owns_fd) {
        int closed = close(output->fd);
        output->fd = -1;
        if (closed != 0 && output->error == 0) {
            output->error = errno;
        }
    }
    errno = output->error;
    return output->error == 0;
}

void output_destroy(struct output *output) {
    if (output == NULL) {
        return;
    }
    if (output->compresses) {
        deflateEnd(&output->stream);
    }
    if (output->owns_fd && output->fd >= 0) {
        close(output->fd);
    }
    free(output);
}
