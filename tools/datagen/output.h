// SPDX-License-Identifier: Apache-2.0
//
// The files of a run, plain or gzip, written record by record.
#ifndef DATAGEN_OUTPUT_H
#define DATAGEN_OUTPUT_H

#include "options.h"

struct output;

// The most bytes that may be written between output_room and output_commit.
enum { OUTPUT_ROOM = 4096 };

// Room for OUTPUT_ROOM bytes of text. output_commit adds the text up to a given end.
char *output_room(struct output *output);
void output_commit(struct output *output, const char *end);

// True when a write has failed, so that a long run can stop early.
bool output_failed(const struct output *output);

// Writes the records of file `index`. Returns NULL, or an error message. `run` is the format's
// state.
typedef const char *output_rows(void *run, struct output *output, uint32_t index);

// The path of a file, which is freed; NULL when memory ran out.
typedef char *output_path(const void *run, uint32_t index);

// Writes `count` files. Fails like the `write` of a format.
bool output_files(const struct options *options, uint32_t count, output_path *path,
                  output_rows *rows, void *run, struct failure *failure);

#endif
