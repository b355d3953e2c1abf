/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of sources: texts whose lines contain their offsets, and readers that check
 * blocks. */
#ifndef TESTS_SOURCE_READING_H
#define TESTS_SOURCE_READING_H

#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

#include "source/source.h"
#include "unit.h"
#include "util/document_id.h"

static inline void write_file(const char *path, const char *bytes, size_t length, bool gzip) {
    if (gzip) {
        gzFile file = gzopen(path, "wb1");
        assert_int_equal(gzwrite(file, bytes, (unsigned)length), (int)length);
        gzclose(file);
    } else {
        unit_write(path, bytes, length);
    }
}

/* Lines of many lengths, some empty, a few longer than a block; each starts with its offset. */
static inline char *make_text(size_t size, bool final_newline, size_t *length) {
    char *text = unit_keep(malloc(size + (size_t)4 * SL_BLOCK_BYTES));
    size_t used = 0;
    unsigned seed = 7;
    while (used < size) {
        seed = seed * 1103515245 + 12345;
        size_t pad = seed >> 16 & 0xFF;
        if ((seed >> 8 & 0xFFF) == 0)
            pad = SL_BLOCK_BYTES + (seed >> 16) % (2 * SL_BLOCK_BYTES);
        if ((seed >> 4 & 0x3F) == 0) {
            text[used++] = '\n';
            continue;
        }
        used += (size_t)sprintf(text + used, "%zu:", used);
        memset(text + used, 'x', pad);
        used += pad;
        text[used++] = '\n';
    }
    if (!final_newline)
        used--;
    *length = used;
    return text;
}

typedef struct gathered {
    sl_source_set *set;
    pthread_mutex_t lock;
    char *copy; /* blocks put back at their offsets */
    unsigned char *seen;
    size_t length;
    unsigned lasts;
    uint64_t sequences; /* sum of the blocks' numbers, to detect missing and repeated blocks */
    uint64_t blocks;
    bool failed;
} gathered;

static inline void *gather(void *context) {
    gathered *all = context;
    sl_reader *reader;
    sl_error error;
    sl_source_block block;
    sl_read_result result = SL_READ_FAILED;
    if (sl_reader_create(all->set, &reader, &error)) {
        while ((result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK) {
            pthread_mutex_lock(&all->lock);
            if (block.text.length > 0) {
                if (block.offset + block.text.length > all->length ||
                    (block.offset > 0 && all->copy[block.offset - 1] != '\n' &&
                     all->seen[block.offset - 1]))
                    all->failed = true;
                else
                    memcpy(all->copy + block.offset, block.text.bytes, block.text.length);
                for (size_t i = 0; !all->failed && i < block.text.length; i++)
                    all->seen[block.offset + i]++;
                /* All lines of a block start in the same MiB, from which their ids are computed. */
                for (size_t i = 1; i < block.text.length; i++)
                    all->failed |=
                        block.text.bytes[i - 1] == '\n' &&
                        (block.offset + i) >> SL_BLOCK_BITS != block.offset >> SL_BLOCK_BITS;
            }
            all->lasts += block.last;
            all->sequences += block.sequence;
            all->blocks++;
            pthread_mutex_unlock(&all->lock);
        }
        sl_reader_destroy(reader);
    }
    if (result != SL_READ_END)
        all->failed = true;
    return NULL;
}

/* Reads a source with several threads; fails the test unless each byte of the text is read once. */
static inline void check_reading(const char *path, const char *text, size_t length,
                                 unsigned threads) {
    gathered all = {.length = length, .copy = calloc(1, length), .seen = calloc(1, length)};
    sl_error error;
    pthread_mutex_init(&all.lock, NULL);
    assert_true(sl_source_set_create(&path, 1, NULL, &all.set, &error));
    unit_run_threads(threads, gather, &all, 0);
    assert_false(all.failed);
    assert_memory_equal(all.copy, text, length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(all.seen[i], 1);
    assert_int_equal(all.lasts, 1);
    assert_int_equal(all.sequences, all.blocks * (all.blocks - 1) / 2);
    sl_source_set_destroy(all.set);
    free(all.copy);
    free(all.seen);
}

/* Sources with one reader. All of it is released after the test. */
typedef struct reading {
    sl_source_set *set;
    sl_reader *reader; /* NULL before the first block is read */
    sl_source_block block;
    sl_read_result result;
    sl_error error;
} reading;

static inline void end_reading(void *object) {
    reading *r = object;
    sl_reader_destroy(r->reader);
    sl_source_set_destroy(r->set);
}

/* `include`: as sl_source_set_create. `set` is NULL if the sources are refused. */
static inline reading *try_sources(const char *const *paths, size_t count, const char *include) {
    reading *r = unit_keep(calloc(1, sizeof *r));
    sl_source_set_create(paths, count, include, &r->set, &r->error);
    unit_release_later(end_reading, r);
    return r;
}

static inline reading *open_sources(const char *const *paths, size_t count, const char *include) {
    reading *r = try_sources(paths, count, include);
    if (!r->set)
        fail_msg("%s", r->error.message);
    return r;
}

static inline reading *open_source(const char *path) {
    return open_sources(&path, 1, NULL);
}

/* Reads the next block; false at the end or after an error. */
static inline bool read_block(reading *r) {
    assert_true(r->reader || sl_reader_create(r->set, &r->reader, &r->error));
    r->result = sl_reader_next(r->reader, &r->block, &r->error);
    return r->result == SL_READ_BLOCK;
}

/* Reads a source to its end. Returns the error message, or "" without an error. */
static inline const char *reading_error(const char *path) {
    reading *r = try_sources(&path, 1, NULL);
    while (r->set && read_block(r))
        ;
    if (r->set && r->result == SL_READ_END)
        return "";
    assert_int_equal(r->error.code, SL_EXIT_SOURCE);
    assert_contains(r->error.message, path);
    return r->error.message;
}

/* Bytes on standard input, which a thread writes into a pipe. */
typedef struct piped {
    const char *bytes;
    size_t length;
    int end; /* the pipe's write end */
    pthread_t writer;
} piped;

/* Writes pieces of odd sizes, on which nothing may depend. */
static inline void *write_pipe(void *context) {
    const piped *input = context;
    for (size_t at = 0; at < input->length;) {
        size_t piece = at < 3000 ? 7 : 50001;
        piece = piece < input->length - at ? piece : input->length - at;
        if (write(input->end, input->bytes + at, piece) != (ssize_t)piece)
            break;
        at += piece;
    }
    close(input->end);
    return NULL;
}

static inline void begin_pipe(piped *input, const char *bytes, size_t length) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    *input = (piped){.bytes = bytes, .length = length, .end = ends[1]};
    assert_int_equal(pthread_create(&input->writer, NULL, write_pipe, input), 0);
}

#endif
