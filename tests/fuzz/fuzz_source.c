/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes src/source: the input is read as a file (plain text, compressed, or an archive), then from
 * a pipe. Blocks are in order, without gaps, and end at line ends; exactly one is the last; the
 * head is the start of the text; and the pipe gives the same text as the file. A source that cannot
 * be read ends in an error message. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "source/source.h"
#include "util/log.h"

#include "check.h"

#define PIPE_BYTES 32768u /* an input of this size fits into the buffer of a pipe */
#define INPUT_MAX ((size_t)6 << 20)
/* Bytes of unpacked text that are read, of an input up to PIPE_BYTES and of a longer one. */
#define TEXT_MAX ((uint64_t)3 << 19)
#define LONG_TEXT_MAX ((uint64_t)12 << 20)
#define HEAD_BYTES 4096u

typedef struct outcome {
    bool readable;
    bool whole; /* read to its end */
    uint64_t hash, length;
    sl_source_kind kind;
} outcome;

static uint64_t text_max;

static void read_blocks(sl_source_set *set, const char *head, size_t head_length, outcome *o) {
    sl_reader *reader;
    sl_source_block block;
    sl_error error = {0};
    sl_read_result result = SL_READ_BLOCK;
    uint64_t sequence = 0;
    bool last = false, cut = false; /* cut: the previous block ended without a line break */
    require(sl_reader_create(set, &reader, &error), "allocation succeeds");
    while (o->length < text_max &&
           (result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK) {
        const sl_text text = block.text;
        require(!last && block.source == 0 && block.sequence == sequence++, "blocks are in order");
        last = block.last;
        if (text.length == 0)
            continue;
        require(block.offset == o->length, "blocks have no gaps");
        require(!cut || block.entry_start, "a block ends at a line end or an entry's end");
        cut = text.bytes[text.length - 1] != '\n' && /* a longer line is split between blocks */
              text.length <= SL_RECORD_BYTES_MAX;
        for (size_t i = 0; i < text.length; i++) {
            if (block.offset + i < head_length)
                require(text.bytes[i] == head[block.offset + i],
                        "the head is the start of the text");
            o->hash = (o->hash ^ (uint8_t)text.bytes[i]) * 1099511628211u;
        }
        o->length += text.length;
    }
    if (result == SL_READ_FAILED)
        check_error(&error);
    o->whole = result == SL_READ_END;
    require(!o->whole || last, "a complete source has a last block");
    sl_reader_destroy(reader);
}

static outcome read_source(const char *path) {
    outcome o = {.hash = 14695981039346656037u};
    sl_source_set *set;
    sl_error error = {0};
    char head[HEAD_BYTES], first[SL_FINGERPRINT_ROOM], second[SL_FINGERPRINT_ROOM];
    size_t length;
    bool whole;
    const char *name = NULL;
    if (!sl_source_set_create(&path, 1, NULL, &set, &error)) {
        check_error(&error);
        return o;
    }
    if (sl_source_head(set, 0, head, sizeof head, &length, &whole, &name, &error)) {
        require(name && length <= sizeof head && (whole || length == sizeof head),
                "a head has a name and a length");
        o.readable = true;
        o.kind = sl_source_set_at(set, 0)->kind;
        if (o.kind != SL_SOURCE_PIPE)
            require(sl_source_fingerprint(set, 0, first, &error) &&
                        sl_source_fingerprint(set, 0, second, &error) && strcmp(first, second) == 0,
                    "the fingerprint of a file does not change");
        read_blocks(set, head, length, &o);
    } else {
        check_error(&error);
    }
    sl_source_set_destroy(set);
    return o;
}

typedef struct filling {
    const uint8_t *data;
    size_t size;
    int end; /* the pipe's write end, which fill_pipe closes */
} filling;

/* Writes pieces of many sizes, on which blocks must not depend. The reader may stop early. */
static void *fill_pipe(void *context) {
    const filling *f = context;
    size_t piece = 1;
    ssize_t wrote = 0;
    for (size_t at = 0; at < f->size && wrote >= 0; at += (size_t)wrote) {
        piece = piece * 7 % 70001;
        wrote = write(f->end, f->data + at, f->size - at < piece ? f->size - at : piece);
    }
    close(f->end);
    return NULL;
}

static outcome read_pipe(const uint8_t *data, size_t size) {
    char path[64];
    int ends[2];
    pthread_t thread;
    require(pipe(ends) == 0, "a pipe can be created");
    filling f = {data, size, ends[1]};
    bool fits = size <= PIPE_BYTES;
    if (fits)
        fill_pipe(&f);
    else
        require(pthread_create(&thread, NULL, fill_pipe, &f) == 0, "a thread can be started");
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    outcome o = read_source(path);
    close(ends[0]);
    if (!fits)
        pthread_join(thread, NULL);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    char path[64];
    if (size > INPUT_MAX)
        return 0;
    text_max = size > PIPE_BYTES ? LONG_TEXT_MAX : TEXT_MAX;
    if (file < 0) {
        sl_log_set_level(SL_LOG_ERROR);
        signal(SIGPIPE, SIG_IGN);
        require((file = memfd_create("source", 0)) >= 0, "a file can be created");
    }
    require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size,
            "the file can be written");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    outcome from_file = read_source(path);
    require(from_file.kind != SL_SOURCE_PLAIN || !from_file.readable || from_file.length == size,
            "plain text is read completely");

    outcome from_pipe = read_pipe(data, size);
    /* A zip file from a pipe is read without the directory at its end, so it may differ. */
    if (from_file.readable && from_file.kind != SL_SOURCE_ARCHIVE) {
        require(from_pipe.readable, "a pipe is read like a file");
        require(from_file.whole == from_pipe.whole && from_file.hash == from_pipe.hash,
                "a pipe has the same text");
    }
    return 0;
}
