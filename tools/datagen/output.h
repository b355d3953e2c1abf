// SPDX-License-Identifier: Apache-2.0
//
// One output file, plain or gzip, filled line by line without a copy.
#ifndef DATAGEN_OUTPUT_H
#define DATAGEN_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct output;

// The most bytes that may be written between output_room and output_commit.
enum { OUTPUT_ROOM = 4096 };

// Opens `path` for writing, "-" being standard output. gzip_level 1..9 compresses, 0 does not. NULL
// with errno set when the file cannot be opened or memory ran out.
struct output *output_create(const char *path, int gzip_level);

// Room for OUTPUT_ROOM bytes of text. output_commit adds the text up to a given end.
char *output_room(struct output *output);
void output_commit(struct output *output, const char *end);

// The bytes of text so far, before compression.
uint64_t output_offset(const struct output *output);

// Writes what is left and closes the file. False with errno set when any write since the start
// failed; after the first failure nothing more is written.
bool output_finish(struct output *output);

// True when a write has failed, so that a long run can stop early.
bool output_failed(const struct output *output);

// Frees the output, closing a file that was not finished. NULL is fine.
void output_destroy(struct output *output);

#endif
