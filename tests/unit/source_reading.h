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

/* ---- one reader ---- */

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

/* ---- several readers ---- */

#define GATHERED_MOST 200

/* The blocks of a source by their numbers, and the text of all of them. */
typedef struct gathered {
    sl_source_set *set;
    pthread_mutex_t lock;
    struct {
        uint64_t offset, length, state;
    } blocks[GATHERED_MOST];
    bool seen[GATHERED_MOST];
    size_t count;
    unsigned lasts; /* blocks that are called the last one */
    uint64_t borders;
    char *text; /* the blocks at their offsets, and SL_SLACK bytes; valid until the next call */
    size_t length;
    sl_error error; /* of a reader, or a block that is read twice or beyond the text's length */
} gathered;

static inline void *gather_blocks(void *context) {
    gathered *all = context;
    sl_reader *reader = NULL;
    sl_error error = {0};
    sl_source_block block;
    sl_read_result result = SL_READ_FAILED;
    if (sl_reader_create(all->set, &reader, &error)) {
        while ((result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK) {
            const uint64_t i = block.sequence;
            pthread_mutex_lock(&all->lock);
            if (i >= GATHERED_MOST || all->seen[i] ||
                block.offset + block.text.length > all->length) {
                sl_error_set(&all->error, SL_EXIT_CLUSTER, "block %u is wrong", (unsigned)i);
            } else {
                all->seen[i] = true;
                all->blocks[i].offset = block.offset;
                all->blocks[i].length = block.text.length;
                all->blocks[i].state = block.split_state;
                all->count++;
                all->lasts += block.last;
                all->borders += block.borders;
                if (block.text.length > 0)
                    memcpy(all->text + block.offset, block.text.bytes, block.text.length);
            }
            pthread_mutex_unlock(&all->lock);
        }
        sl_reader_destroy(reader);
    }
    pthread_mutex_lock(&all->lock);
    if (result != SL_READ_END && error.code == SL_EXIT_OK)
        sl_error_set(&error, SL_EXIT_CLUSTER, "a reader failed without an error");
    if (result != SL_READ_END)
        all->error = error;
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* Reads a source of `length` bytes with several threads. `splitter`: NULL for lines. */
static inline gathered gather(const char *path, const sl_splitter *splitter, size_t length,
                              unsigned threads) {
    static char *text;
    text = realloc(text, length + SL_SLACK);
    assert_non_null(text);
    memset(text, 0, length + SL_SLACK);
    gathered all = {.set = open_source(path)->set, .text = text, .length = length};
    pthread_mutex_init(&all.lock, NULL);
    if (splitter) {
        sl_source_set_splitter(all.set, 0, splitter, NULL, false);
        assert_false(sl_source_is_splittable(sl_source_set_at(all.set, 0)));
    }
    unit_run_threads(threads, gather_blocks, &all, 0);
    return all;
}

/* Fails unless the blocks, in the order of their numbers, are this text. */
static inline void check_gathered(const gathered *all, const char *text) {
    uint64_t at = 0;
    if (all->error.code != 0)
        fail_msg("reading failed: %s", all->error.message);
    assert_memory_equal(all->text, text, all->length);
    for (size_t i = 0; i < all->count; i++) {
        assert_true(all->seen[i]);
        if (all->blocks[i].length > 0)
            assert_int_equal(all->blocks[i].offset, at);
        at += all->blocks[i].length;
    }
    assert_int_equal(at, all->length);
    assert_int_equal(all->lasts, 1);
    assert_true(all->borders == 0);
}

/* Fails the test unless each line of the text is read once, and the lines of a block start in the
 * same MiB, from which their ids are computed. */
static inline void check_reading(const char *path, const char *text, size_t length,
                                 unsigned threads) {
    gathered all = gather(path, NULL, length, threads);
    check_gathered(&all, text);
    for (size_t i = 0; i < all.count; i++) {
        const uint64_t first = all.blocks[i].offset, end = first + all.blocks[i].length;
        assert_true(first == end || first == 0 || text[first - 1] == '\n');
        for (uint64_t at = first + 1; at < end; at++)
            assert_true(text[at - 1] != '\n' || at >> SL_BLOCK_BITS == first >> SL_BLOCK_BITS);
    }
}

/* ---- a pipe ---- */

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
