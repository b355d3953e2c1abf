/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: bytes that are fetched from front to back, with a look ahead. A file, what an unpacker
 * makes of another input, and a member of an archive are inputs alike, so that each can be laid on
 * top of the other: a tar in a gzip file that holds gzip files is five of them. */
#ifndef SHARDLOAD_SOURCE_INPUT_H
#define SHARDLOAD_SOURCE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/error.h>
#include <shardload/source.h>

typedef struct sl_input sl_input;

struct sl_input {
    /* Fetches between 1 and `room` bytes; *got 0 is the end. The error names the input. */
    bool (*fetch)(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error);
    /* As lseek; *where is counted from where the input began. NULL: from front to back only. */
    bool (*seek)(sl_input *input, int64_t offset, int whence, uint64_t *where);
    /* Bytes at a position, as pread; NULL where there is no seek. Moves nothing. Returns how many there
     * were, up to `room`. */
    size_t (*read_at)(sl_input *input, uint64_t offset, void *out, size_t room);
    void *context;
    const char *name;      /* for messages; borrowed */
    unsigned char *buffer; /* what was fetched ahead: from used to length */
    size_t room, used, length;
    size_t lent;           /* bytes handed to libarchive that it has not used yet */
    uint64_t offset;       /* of what will be fetched next */
    bool ended;
};

/* Gives the input its buffer of `room` bytes; the other fields are set already. */
bool sl_input_init(sl_input *input, size_t room, sl_error *error);
void sl_input_clear(sl_input *input);

static inline const unsigned char *sl_input_at(const sl_input *input) {
    return input->buffer + input->used;
}

static inline size_t sl_input_left(const sl_input *input) {
    return input->length - input->used;
}

/* How far the input has been used. */
static inline uint64_t sl_input_position(const sl_input *input) {
    return input->offset - sl_input_left(input) - input->lent;
}

/* Fetches until `wanted` bytes, at most the room, lie ahead or the input has ended. */
bool sl_input_peek(sl_input *input, size_t wanted, sl_reader_times *times, sl_error *error);

/* Fills `out`; *length is less than `room` only at the end. */
bool sl_input_take(sl_input *input, void *out, size_t room, size_t *length,
                   sl_reader_times *times, sl_error *error);

/* Passes over zero bytes, up to another byte, which then lies ahead, or the end. */
bool sl_input_pass_zeros(sl_input *input, sl_reader_times *times, sl_error *error);

/* Opens a file or pipe as an input; "-" is standard input; messages call it `shown`. A pipe is not
 * waited for any more once `*stopped` is true: SL_EXIT_INTERRUPTED. All are borrowed. Close with
 * sl_input_close_file, also after a failure. */
bool sl_input_open_file(sl_input *input, const char *path, const char *shown,
                        const _Atomic bool *stopped, sl_error *error);
int sl_input_file(const sl_input *input); /* its descriptor */
void sl_input_close_file(sl_input *input);

#endif
