/* SPDX-License-Identifier: Apache-2.0 */
/* Buffered inputs, and the input that reads a file or pipe. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/read_file.h"

#define FILE_BUFFER_BYTES ((size_t)256 << 10)
#define FILE_BUFFER_BYTES_MIN ((size_t)4 << 10)
#define PIPE_POLL_MS 200 /* interval at which a reader waiting for a pipe checks `stopped` */

typedef struct file_state {
    int file;
    off_t start; /* file offset of the input's first byte; above 0 if stdin was read before */
    bool pipe;   /* reading may block */
    const _Atomic bool *stopped;
} file_state;

bool sl_input_init(sl_input *input, size_t room, sl_error *error) {
    input->buffer = malloc(room);
    input->room = room;
    return input->buffer || sl_error_memory(error, "opening sources");
}

void sl_input_clear(sl_input *input) {
    free(input->buffer);
    input->buffer = NULL;
}

bool sl_input_peek(sl_input *input, size_t count, sl_reader_times *times, sl_error *error) {
    while (sl_input_left(input) < count && !input->ended) {
        if (input->used > 0) {
            input->length -= input->used;
            memmove(input->buffer, input->buffer + input->used, input->length);
            input->used = 0;
        }
        size_t got;
        if (!input->fetch(input, input->buffer + input->length, input->room - input->length, &got,
                          times, error))
            return false;
        input->length += got;
        input->offset += got;
        input->ended = got == 0;
    }
    return true;
}

bool sl_input_take(sl_input *input, void *out, size_t room, size_t *length, sl_reader_times *times,
                   sl_error *error) {
    unsigned char *to = out;
    size_t filled = 0;
    while (filled < room) {
        size_t left = sl_input_left(input), got;
        if (left > 0) {
            got = left < room - filled ? left : room - filled;
            memcpy(to + filled, sl_input_at(input), got);
            input->used += got;
            filled += got;
        } else if (input->ended) {
            break;
        } else if (room - filled < input->room) {
            if (!sl_input_peek(input, 1, times, error))
                return false;
        } else { /* a large piece bypasses the buffer */
            if (!input->fetch(input, to + filled, room - filled, &got, times, error))
                return false;
            filled += got;
            input->offset += got;
            input->ended = got == 0;
        }
    }
    *length = filled;
    return true;
}

bool sl_input_skip_zeros(sl_input *input, sl_reader_times *times, sl_error *error) {
    do {
        while (input->used < input->length && input->buffer[input->used] == 0)
            input->used++;
    } while (sl_input_left(input) == 0 && !input->ended && sl_input_peek(input, 1, times, error));
    return sl_input_left(input) > 0 || input->ended;
}

static bool fetch_from_file(sl_input *input, unsigned char *out, size_t room, size_t *got,
                            sl_reader_times *times, sl_error *error) {
    const file_state *state = input->context;
    int64_t start = sl_clock_ns();
    ssize_t result;
    do {
        while (state->pipe && !atomic_load(state->stopped)) {
            struct pollfd waiting = {.fd = state->file, .events = POLLIN};
            if (poll(&waiting, 1, PIPE_POLL_MS) > 0)
                break;
        }
        if (state->pipe && atomic_load(state->stopped))
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "%s: reading was stopped", input->name);
        result = read(state->file, out, room);
    } while (result < 0 && (errno == EINTR || errno == EAGAIN));
    times->reading += sl_clock_ns() - start;
    if (result < 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu", input->name,
                              (unsigned long long)input->offset);
    *got = (size_t)result;
    return true;
}

static bool seek_in_file(sl_input *input, int64_t offset, int whence, uint64_t *where) {
    const file_state *state = input->context;
    off_t to = (off_t)offset + (whence == SEEK_SET ? state->start : 0);
    if (whence == SEEK_CUR)
        to -= (off_t)sl_input_left(input);
    off_t result = lseek(state->file, to, whence);
    if (result < state->start)
        return false;
    input->used = input->length = 0;
    input->ended = false;
    input->offset = *where = (uint64_t)(result - state->start);
    return true;
}

static size_t read_file_at(sl_input *input, uint64_t offset, void *out, size_t room) {
    const file_state *state = input->context;
    return sl_read_at(state->file, out, room, (uint64_t)state->start + offset);
}

bool sl_input_open_file(sl_input *input, const char *path, const char *shown,
                        const _Atomic bool *stopped, sl_error *error) {
    *input = (sl_input){.fetch = fetch_from_file, .name = shown};
    file_state *state = malloc(sizeof *state);
    if (!state)
        return sl_error_memory(error, "opening sources");
    input->context = state;
    struct stat facts;
    /* O_NONBLOCK: a FIFO without a writer must not block here, only in fetch_from_file, where the
     * wait can be stopped. */
    state->file =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (state->file < 0 || fstat(state->file, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", shown);
    size_t room = FILE_BUFFER_BYTES;
    state->stopped = stopped;
    state->pipe = !S_ISREG(facts.st_mode);
    if (S_ISREG(facts.st_mode)) {
        state->start = lseek(state->file, 0, SEEK_CUR);
        if (state->start >= 0) {
            input->seek = seek_in_file;
            input->read_at = read_file_at;
        }
        if ((uint64_t)facts.st_size < room) /* a small buffer saves time and memory for many small
                                               files */
            room = (size_t)facts.st_size < FILE_BUFFER_BYTES_MIN ? FILE_BUFFER_BYTES_MIN
                                                                 : (size_t)facts.st_size;
    }
    return sl_input_init(input, room, error);
}

int sl_input_file(const sl_input *input) {
    return ((const file_state *)input->context)->file;
}

void sl_input_close_file(sl_input *input) {
    file_state *state = input->context;
    if (state && state->file >= 0)
        close(state->file);
    free(state);
    sl_input_clear(input);
    input->context = NULL;
}
