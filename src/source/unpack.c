/* SPDX-License-Identifier: Apache-2.0 */
/* Unpackers: select the decoder of an input, and check the bytes between and after its streams. */
#include "unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/text.h"

#include "bridge.h"
#include "decoder.h"

#define OUTPUT_BYTES ((size_t)64 << 10)

/* UTF-16 text is in this list, because it is converted in the same way. */
typedef struct compression {
    const char *name;
    const char *magic;
    size_t length;
    const sl_decoder *decoder; /* NULL: .Z, through libarchive */
    const char *tool;          /* the command that unpacks to standard output */
    /* Zeros after a stream. 0: any number of them, then the input must end. Otherwise: a multiple
     * of this number, then another stream may follow. */
    unsigned padding;
    bool skippable; /* the format has skippable frames, which contain no text */
} compression;

static const compression compressions[] = {
    {"gzip", "\x1F\x8B", 2, &sl_decoder_gzip, "gzip -dc", 0, false},
    {"xz",
     "\xFD"
     "7zXZ\0",
     6, &sl_decoder_xz, "xz -dc", 4, false},
    {"zstd", "\x28\xB5\x2F\xFD", 4, &sl_decoder_zstd, "zstd -dc --long=31", 0, true},
    {"bzip2", "BZh", 3, &sl_decoder_bzip2, "bzip2 -dc", 0, false},
    {"lz4", "\x04\x22\x4D\x18", 4, &sl_decoder_lz4, "lz4 -dc", 0, true},
    {"lzip", "LZIP\x01", 5, &sl_decoder_lzip, "lzip -dc", 0, false},
    {"UTF-16", "\xFF\xFE", 2, &sl_decoder_utf16, "iconv -f UTF-16 -t UTF-8", 0, false},
    {"UTF-16", "\xFE\xFF", 2, &sl_decoder_utf16, "iconv -f UTF-16 -t UTF-8", 0, false},
    {"compress", "\x1F\x9D", 2, NULL, "gzip -dc", 0, false},
};

struct sl_unpacker {
    const compression *compression;
    sl_input output;
    sl_input *packed;
    void *state; /* of the decoder */
    bool in_stream;
};

/* Do the bytes begin a skippable frame? Fewer than 4 bytes are compared as far as they go. */
static bool is_skippable(const unsigned char *bytes, size_t length) {
    return (bytes[0] & 0xF0) == 0x50 &&
           memcmp(bytes + 1, "\x2A\x4D\x18", length < 4 ? length - 1 : 3) == 0;
}

static const compression *find(const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < sizeof compressions / sizeof compressions[0]; i++) {
        const compression *one = &compressions[i];
        if (length < one->length)
            continue;
        if (one->skippable && is_skippable(bytes, length)) /* at the start: taken as zstd's */
            return one;
        if (memcmp(bytes, one->magic, one->length) != 0)
            continue;
        if (one->decoder == &sl_decoder_utf16 && length >= 4 && bytes[2] == 0 && bytes[3] == 0)
            continue; /* UTF-32 */
        /* Text may begin with "BZh" too: bzip2 continues with a level, and a block or the end. */
        if (strcmp(one->name, "bzip2") == 0 && (length < 5 || bytes[3] < '1' || bytes[3] > '9' ||
                                                (bytes[4] != 0x31 && bytes[4] != 0x17)))
            continue;
        return one;
    }
    return NULL;
}

/* Do the bytes begin another stream of the same format? Compares only the available bytes if the
 * stream is truncated. */
static bool continues(const compression *one, const unsigned char *bytes, size_t length) {
    return memcmp(bytes, one->magic, length < one->length ? length : one->length) == 0 ||
           (one->skippable && is_skippable(bytes, length));
}

static bool begin_stream(sl_unpacker *unpacker, sl_error *error) {
    unpacker->in_stream = true;
    return unpacker->compression->decoder->begin(unpacker->state) ||
           sl_error_memory(error, "unpacking sources");
}

/* Checks the bytes after a stream. Begins the next stream, if there is one. */
static bool between_streams(sl_unpacker *unpacker, sl_reader_times *times, sl_error *error) {
    const compression *kind = unpacker->compression;
    sl_input *packed = unpacker->packed;
    uint64_t end = sl_input_position(packed);
    if (!sl_input_skip_zeros(packed, times, error) ||
        !sl_input_peek(packed, SL_MAGIC_BYTES, times, error))
        return false;
    uint64_t zeros = sl_input_position(packed) - end;
    bool fits = kind->padding == 0 || zeros % kind->padding == 0;
    if (sl_input_left(packed) == 0 && fits)
        return true;
    if (sl_input_left(packed) > 0 && fits && (zeros == 0 || kind->padding > 0) &&
        continues(kind, sl_input_at(packed), sl_input_left(packed)))
        return begin_stream(unpacker, error);
    if (sl_input_left(packed) == 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s: %llu zero bytes follow the %s data that ends at byte %llu, which is not a "
            "multiple of %u: the file is damaged: fetch it again",
            packed->name, (unsigned long long)zeros, kind->name, (unsigned long long)end,
            kind->padding);
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: the %s data ends at byte %llu, but the bytes from byte %llu on are neither "
        "another stream nor zeros: they may be damaged data. Fetch the file again, or, if "
        "they are not data, cut them off: head -c %llu FILE",
        packed->name, kind->name, (unsigned long long)end,
        (unsigned long long)sl_input_position(packed), (unsigned long long)end);
}

static bool too_large(const sl_unpacker *unpacker, uint64_t needed, sl_error *error) {
    char bytes[SL_HUMAN_ROOM];
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s: unpacking this %s data takes %s%smore than %u MiB of memory, the limit for one "
        "source; unpack it first, or pipe it in: %s FILE | shardload load ... -",
        unpacker->packed->name, unpacker->compression->name,
        needed ? sl_human_bytes((double)needed, bytes) : "", needed ? ", " : "",
        (unsigned)(SL_DECODER_MEMORY_MAX >> 20), unpacker->compression->tool);
}

static bool decode_some(sl_unpacker *unpacker, unsigned char *out, size_t room, size_t *made,
                        sl_reader_times *times, sl_error *error) {
    sl_input *packed = unpacker->packed;
    sl_decode_piece piece = {.in = packed->buffer + packed->used,
                             .in_left = sl_input_left(packed),
                             .out = out,
                             .out_left = room};
    int64_t start = sl_clock_ns();
    sl_decoded result = unpacker->compression->decoder->run(unpacker->state, &piece);
    times->inflating += sl_clock_ns() - start;
    bool no_input = sl_input_left(packed) == 0;
    bool none_used = piece.in_left == sl_input_left(packed);
    packed->used = packed->length - piece.in_left;
    *made = room - piece.out_left;
    if (result == SL_DECODED_END)
        unpacker->in_stream = false;
    if (result == SL_DECODED_NO_MEMORY)
        return sl_error_memory(error, "unpacking sources");
    if (result == SL_DECODED_TOO_LARGE)
        return too_large(unpacker, piece.needed, error);
    if (result == SL_DECODED_SOME && none_used && *made == 0 && !no_input) {
        piece.fault = "bad data";
        result = SL_DECODED_DAMAGED;
    }
    if (result == SL_DECODED_DAMAGED)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the %s data is damaged near byte %llu, after %llu bytes of text "
                            "(%s); fetch the file again",
                            packed->name, unpacker->compression->name,
                            (unsigned long long)sl_input_position(packed),
                            (unsigned long long)unpacker->output.offset + *made, piece.fault);
    if (no_input && *made == 0 && unpacker->in_stream)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s: the %s data ends early at byte %llu, after %llu bytes of text; the "
            "file is truncated: fetch it again",
            packed->name, unpacker->compression->name, (unsigned long long)packed->offset,
            (unsigned long long)unpacker->output.offset);
    return true;
}

static bool fetch(sl_input *output, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    sl_unpacker *unpacker = output->context;
    *got = 0;
    while (*got == 0) {
        if (!unpacker->in_stream && !between_streams(unpacker, times, error))
            return false;
        if (!unpacker->in_stream)
            return true;
        /* Also called after the input's end: the decoder may still have buffered text. */
        if (!sl_input_peek(unpacker->packed, 1, times, error) ||
            !decode_some(unpacker, out, room, got, times, error))
            return false;
    }
    return true;
}

/* ---- .Z files ---- */

/* The format of compress(1) (.Z), through libarchive. The format has neither an end marker nor a
 * checksum: all bytes of the input are data. */
typedef struct uncompress_state {
    sl_bridge bridge;
    bool header_read, empty;
} uncompress_state;

/* For libarchive this is an archive of the format "raw" with one entry, or none when it is
 * empty. */
static bool read_header(uncompress_state *state) {
    struct archive_entry *entry;
    if (!sl_bridge_open(&state->bridge))
        return false;
    int result = archive_read_next_header(state->bridge.library, &entry);
    state->header_read = true;
    state->empty = result == ARCHIVE_EOF;
    return state->empty || result == ARCHIVE_OK;
}

static bool fetch_uncompressed(sl_input *output, unsigned char *out, size_t room, size_t *got,
                               sl_reader_times *times, sl_error *error) {
    uncompress_state *state = output->context;
    sl_bridge *bridge = &state->bridge;
    sl_bridge_enter(bridge, times, error);
    la_ssize_t result = -1;
    if (state->header_read || read_header(state))
        result = state->empty ? 0 : archive_read_data(bridge->library, out, room);
    sl_bridge_leave(bridge);
    *got = result > 0 ? (size_t)result : 0;
    if (result >= 0)
        return true;
    const sl_input *packed = bridge->input;
    if (archive_errno(bridge->library) == ENOMEM)
        return sl_error_memory(error, "unpacking sources");
    return !bridge->input_failed &&
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: the compress data is damaged near byte %llu, after %llu bytes of text "
                        "(%s); fetch the file again",
                        packed->name, (unsigned long long)sl_input_position(packed),
                        (unsigned long long)output->offset, sl_bridge_reason(bridge));
}

static bool uncompress_init(sl_input *output, sl_input *packed, sl_error *error) {
    uncompress_state *state = calloc(1, sizeof *state);
    *output = (sl_input){.fetch = fetch_uncompressed, .name = packed->name, .context = state};
    struct archive *library = state ? archive_read_new() : NULL;
    if (!library)
        return sl_error_memory(error, "opening compressed sources");
    state->bridge = (sl_bridge){.library = library, .input = packed};
    return ((archive_read_support_format_raw(library) == ARCHIVE_OK &&
             archive_read_support_format_empty(library) == ARCHIVE_OK &&
             archive_read_support_filter_compress(library) == ARCHIVE_OK) ||
            sl_error_memory(error, "opening compressed sources")) &&
           sl_input_init(output, OUTPUT_BYTES, error);
}

static void uncompress_clear(sl_input *output) {
    uncompress_state *state = output->context;
    if (state)
        archive_read_free(state->bridge.library);
    free(state);
    sl_input_clear(output);
}

/* ---- interface ---- */

bool sl_unpacker_create(sl_input *packed, sl_unpacker **result, sl_error *error) {
    const compression *found = find(sl_input_at(packed), sl_input_left(packed));
    sl_unpacker *unpacker = found ? calloc(1, sizeof *unpacker) : NULL;
    *result = unpacker;
    if (!unpacker)
        return !found || sl_error_memory(error, "opening compressed sources");
    unpacker->compression = found;
    unpacker->packed = packed;
    const sl_decoder *decoder = found->decoder;
    bool ok;
    if (!decoder) {
        ok = uncompress_init(&unpacker->output, packed, error);
    } else {
        unpacker->output = (sl_input){.fetch = fetch, .name = packed->name, .context = unpacker};
        unpacker->state = decoder->create();
        ok = (unpacker->state || sl_error_memory(error, "opening compressed sources")) &&
             begin_stream(unpacker, error) && sl_input_init(&unpacker->output, OUTPUT_BYTES, error);
    }
    if (ok)
        return true;
    sl_unpacker_destroy(unpacker);
    *result = NULL;
    return false;
}

void sl_unpacker_destroy(sl_unpacker *unpacker) {
    if (!unpacker)
        return;
    if (unpacker->compression->decoder) {
        unpacker->compression->decoder->destroy(unpacker->state);
        sl_input_clear(&unpacker->output);
    } else {
        uncompress_clear(&unpacker->output);
    }
    free(unpacker);
}

bool sl_unpacker_detects_truncation(const sl_unpacker *unpacker) {
    return unpacker->compression->decoder != NULL;
}

const char *sl_unpacker_compression(const sl_unpacker *unpacker) {
    return unpacker->compression->name;
}

sl_input *sl_unpacker_output(sl_unpacker *unpacker) {
    return &unpacker->output;
}
