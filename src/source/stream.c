/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream read from front to back. Whether it is gzip is told by its first two bytes, for a
 * pipe as for a file; members that follow each other are one stream, as gzip itself has it. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <shardload/clock.h>
#include <shardload/log.h>

#define INPUT_BYTES ((size_t)256 << 10)

struct sl_stream {
    const char *path; /* borrowed */
    int file;
    bool gzip;
    bool member_open;   /* inside a gzip member: an end here is a truncation */
    bool file_ended;
    uint64_t stored;    /* bytes read from the file */
    uint64_t delivered; /* bytes handed out */
    unsigned char *input;
    size_t input_used, input_length; /* what is left of it: from used to length */
    z_stream inflater;
};

const char *sl_container_advice(const unsigned char *bytes, size_t length) {
    static const struct {
        const char *magic;
        size_t length;
        const char *advice;
    } containers[] = {
        {"PK\003\004", 4, "a zip archive; unpack it first (unzip, or 7z for Deflate64)"},
        {"PK\005\006", 4, "an empty zip archive"},
        {"BZh", 3, "compressed with bzip2; pipe it in: bzcat FILE | shardload load ... -"},
        {"\xFD""7zXZ", 5, "compressed with xz; pipe it in: xzcat FILE | shardload load ... -"},
        {"\x28\xB5\x2F\xFD", 4, "compressed with zstd; pipe it in: zstdcat FILE | shardload load ... -"},
        {"7z\xBC\xAF\x27\x1C", 6, "a 7-Zip archive; unpack it first (7z x)"},
        {"\x1F\x9D", 2, "compressed with compress; pipe it in: zcat FILE | shardload load ... -"},
        {"%PDF", 4, "a PDF document, not text"},
        {"\xFF\xFE", 2, "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"},
        {"\xFE\xFF", 2, "UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8"},
    };
    for (size_t i = 0; i < sizeof containers / sizeof containers[0]; i++) {
        if (length >= containers[i].length &&
            memcmp(bytes, containers[i].magic, containers[i].length) == 0)
            return containers[i].advice;
    }
    return NULL;
}

/* Reads more of the file behind what is left of the input. */
static bool fill_input(sl_stream *stream, sl_reader_times *times, sl_error *error) {
    if (stream->input_used > 0) {
        stream->input_length -= stream->input_used;
        memmove(stream->input, stream->input + stream->input_used, stream->input_length);
        stream->input_used = 0;
    }
    int64_t start = sl_clock_ns();
    ssize_t got;
    do {
        got = read(stream->file, stream->input + stream->input_length,
                   INPUT_BYTES - stream->input_length);
    } while (got < 0 && errno == EINTR);
    times->reading += sl_clock_ns() - start;
    if (got < 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu: %s",
                            stream->path, (unsigned long long)stream->stored, strerror(errno));
    stream->file_ended = got == 0;
    stream->stored += (uint64_t)got;
    stream->input_length += (size_t)got;
    return true;
}

bool sl_stream_open(const char *path, sl_stream **result, sl_error *error) {
    *result = NULL;
    sl_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return sl_error_memory(error, "opening sources");
    stream->path = path;
    stream->file = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    stream->input = malloc(INPUT_BYTES);
    if (stream->file < 0) {
        sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", path, strerror(errno));
        goto fail;
    }
    if (!stream->input) {
        sl_error_memory(error, "opening sources");
        goto fail;
    }
    sl_reader_times times = {0};
    while (stream->input_length < 8 && !stream->file_ended) {
        if (!fill_input(stream, &times, error))
            goto fail;
    }
    stream->gzip = stream->input_length >= 2 && stream->input[0] == 0x1F && stream->input[1] == 0x8B;
    if (stream->gzip) {
        if (inflateInit2(&stream->inflater, 15 + 16) != Z_OK) {
            stream->gzip = false;
            sl_error_memory(error, "opening gzip sources");
            goto fail;
        }
        stream->member_open = true;
    }
    *result = stream;
    return true;
fail:
    sl_stream_close(stream);
    return false;
}

void sl_stream_close(sl_stream *stream) {
    if (!stream)
        return;
    if (stream->gzip)
        inflateEnd(&stream->inflater);
    if (stream->file >= 0)
        close(stream->file);
    free(stream->input);
    free(stream);
}

uint64_t sl_stream_stored_bytes(const sl_stream *stream) {
    return stream->stored - (stream->input_length - stream->input_used);
}

/* Between members: another one may follow, or padding, or the end. Sets member_open again when one
 * does; otherwise what is left is passed over. */
static bool next_member(sl_stream *stream, sl_reader_times *times, sl_error *error) {
    while (stream->input_length - stream->input_used < 2 && !stream->file_ended) {
        if (!fill_input(stream, times, error))
            return false;
    }
    const unsigned char *at = stream->input + stream->input_used;
    size_t left = stream->input_length - stream->input_used;
    if (left >= 2 && at[0] == 0x1F && at[1] == 0x8B) {
        inflateReset(&stream->inflater);
        stream->member_open = true;
        return true;
    }
    if (left > 0 && at[0] != 0)
        sl_log_warning("%s: what follows the gzip data at byte %llu is not gzip and is ignored",
                       stream->path, (unsigned long long)sl_stream_stored_bytes(stream));
    stream->input_used = stream->input_length;
    stream->file_ended = true;
    return true;
}

static bool inflate_some(sl_stream *stream, char *out, size_t room, size_t *made,
                         sl_reader_times *times, sl_error *error) {
    *made = 0;
    if (stream->input_used == stream->input_length && !stream->file_ended &&
        !fill_input(stream, times, error))
        return false;
    if (stream->input_used == stream->input_length && stream->file_ended)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the gzip data breaks off at byte %llu, after %llu bytes of text; "
                            "the file is truncated: fetch it again",
                            stream->path, (unsigned long long)stream->stored,
                            (unsigned long long)stream->delivered);
    z_stream *z = &stream->inflater;
    z->next_in = stream->input + stream->input_used;
    z->avail_in = (uInt)(stream->input_length - stream->input_used);
    z->next_out = (unsigned char *)out;
    z->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
    uInt before = z->avail_out;
    int64_t start = sl_clock_ns();
    int result = inflate(z, Z_NO_FLUSH);
    times->inflating += sl_clock_ns() - start;
    stream->input_used = stream->input_length - z->avail_in;
    *made = before - z->avail_out;
    if (result == Z_STREAM_END)
        stream->member_open = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the gzip data is damaged near byte %llu, after %llu bytes of "
                            "text (%s); fetch the file again",
                            stream->path, (unsigned long long)sl_stream_stored_bytes(stream),
                            (unsigned long long)(stream->delivered + *made),
                            z->msg ? z->msg : "bad data");
    return true;
}

bool sl_stream_read(sl_stream *stream, char *out, size_t room, size_t *length,
                    sl_reader_times *times, sl_error *error) {
    size_t filled = 0;
    while (filled < room) {
        size_t left = stream->input_length - stream->input_used;
        if (stream->gzip && stream->member_open) {
            size_t made;
            if (!inflate_some(stream, out + filled, room - filled, &made, times, error))
                return false;
            filled += made;
            stream->delivered += made;
        } else if (stream->gzip && !(stream->file_ended && left == 0)) {
            if (!next_member(stream, times, error))
                return false;
        } else if (left > 0) {
            size_t take = left < room - filled ? left : room - filled;
            memcpy(out + filled, stream->input + stream->input_used, take);
            stream->input_used += take;
            filled += take;
            stream->delivered += take;
        } else if (stream->file_ended) {
            break;
        } else if (!fill_input(stream, times, error)) {
            return false;
        }
    }
    *length = filled;
    return true;
}
