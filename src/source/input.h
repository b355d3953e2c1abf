/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: sequential byte streams with lookahead. A file, the output of an unpacker and an entry of
 * an archive are inputs, so that they can be stacked: a gzip-compressed tar of gzip files is a
 * stack of four (file, unpacker, entry, unpacker). */
#ifndef SHARDLOAD_SOURCE_INPUT_H
#define SHARDLOAD_SOURCE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source.h"
#include "util/error.h"

typedef struct sl_input sl_input;

struct sl_input {
    /* Fetches between 1 and `room` bytes; *got 0 is the end. The error names the input. */
    bool (*fetch)(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error);
    /* As lseek; *where is the offset from the input's first byte. NULL: sequential only. */
    bool (*seek)(sl_input *input, int64_t offset, int whence, uint64_t *where);
    /* As pread: does not change the input's position. Returns the number of bytes read, fewer than
     * `room` at the end or on failure. NULL if `seek` is NULL. */
    size_t (*read_at)(sl_input *input, uint64_t offset, void *out, size_t room);
    void *context;
    const char *name;      /* for messages; borrowed */
    unsigned char *buffer; /* the bytes fetched but not used: from `used` to `length` */
    size_t room, used, length;
    size_t lent;     /* bytes given to libarchive that it has not consumed */
    uint64_t offset; /* of the next byte to fetch */
    bool ended;
};

/* Allocates the input's buffer of `room` bytes. The caller sets the other fields before. */
bool sl_input_init(sl_input *input, size_t room, sl_error *error);
void sl_input_clear(sl_input *input);

static inline const unsigned char *sl_input_at(const sl_input *input) {
    return input->buffer + input->used;
}

static inline size_t sl_input_left(const sl_input *input) {
    return input->length - input->used;
}

/* The offset of the first byte not used yet. */
static inline uint64_t sl_input_position(const sl_input *input) {
    return input->offset - sl_input_left(input) - input->lent;
}

/* Fetches until `count` bytes (at most the buffer's room) are buffered or the input has ended. */
bool sl_input_peek(sl_input *input, size_t count, sl_reader_times *times, sl_error *error);

/* Reads `room` bytes into `out`; *length is less only at the end. */
bool sl_input_take(sl_input *input, void *out, size_t room, size_t *length, sl_reader_times *times,
                   sl_error *error);

/* Skips zero bytes up to the next other byte, which is then buffered, or to the end. */
bool sl_input_skip_zeros(sl_input *input, sl_reader_times *times, sl_error *error);

/* Opens a file or pipe as an input; "-" is standard input. Messages name it `shown`. A read that
 * waits for a pipe ends with SL_EXIT_INTERRUPTED once `*stopped` is true. The arguments are
 * borrowed. Close with sl_input_close_file, also after a failure. */
bool sl_input_open_file(sl_input *input, const char *path, const char *shown,
                        const _Atomic bool *stopped, sl_error *error);
int sl_input_file(const sl_input *input); /* its descriptor */
void sl_input_close_file(sl_input *input);

#endif
