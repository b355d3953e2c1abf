/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed inputs: the decoders of gzip, xz and lzip (liblzma), bzip2, zstd, lz4, and of UTF-16;
 * the table of compressions; and what lies between the streams of an input. */
#include "unpack.h"

#include <bzlib.h>
#include <errno.h>
#include <limits.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "util/clock.h"
#include "util/text.h"

#include "archive.h"

#ifdef SHARDLOAD_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

/* ---- decoders: each decodes one stream of a compressed format (a gzip member, a zstd frame) piece
 * by piece with that format's own library ---- */

typedef enum sl_decoded {
    SL_DECODED_SOME, /* zero or more bytes; the stream continues */
    SL_DECODED_END,  /* the stream is complete, and its checksums match */
    SL_DECODED_DAMAGED,
    SL_DECODED_NO_MEMORY,
    SL_DECODED_TOO_LARGE, /* needs more than SL_DECODER_MEMORY_MAX bytes of memory */
} sl_decoded;

/* Input and output of one call of `run`, which advances both. */
typedef struct sl_decode_piece {
    unsigned char *in, *out;
    size_t in_left, out_left;
    const char *fault; /* set with SL_DECODED_DAMAGED; static */
    uint64_t needed;   /* bytes of memory; set with SL_DECODED_TOO_LARGE, 0: not known */
} sl_decode_piece;

typedef struct sl_decoder {
    void *(*create)(void);      /* NULL: no memory */
    bool (*begin)(void *state); /* before each stream; false: no memory */
    sl_decoded (*run)(void *state, sl_decode_piece *piece);
    void (*destroy)(void *state); /* NULL is fine */
} sl_decoder;

/* Limits a length to the unsigned int of zlib, ISA-L and libbz2. */
static unsigned decoder_limit(size_t bytes) {
    return bytes > UINT_MAX ? UINT_MAX : (unsigned)bytes;
}

/* Advances a piece by the bytes used and made. */
static void decoder_advance(sl_decode_piece *piece, size_t used, size_t made) {
    piece->in += used;
    piece->in_left -= used;
    piece->out += made;
    piece->out_left -= made;
}

/* ---- gzip ----
 *
 * ISA-L is used if the build found it, otherwise zlib, which needs nearly three times as long. Both
 * check the length and the checksum of each member. */

#ifdef SHARDLOAD_ISAL

/* isal_inflate() loses its position when the gzip header comes in several pieces;
 * isal_read_gzip_header() does not. */
typedef struct gunzip_state {
    struct inflate_state inflater;
    struct isal_gzip_header header;
    bool header_read;
} gunzip_state;

static void *gunzip_create(void) {
    return malloc(sizeof(gunzip_state));
}

static bool gunzip_begin(void *state_) {
    gunzip_state *state = state_;
    isal_inflate_init(&state->inflater);
    isal_gzip_header_init(&state->header);
    state->header_read = false;
    return true;
}

static int inflate_some(gunzip_state *state) {
    if (!state->header_read) {
        int result = isal_read_gzip_header(&state->inflater, &state->header);
        if (result != ISAL_DECOMP_OK)
            return result;
        state->header_read = true;
        state->inflater.crc_flag = ISAL_GZIP_NO_HDR_VER;
    }
    return isal_inflate(&state->inflater);
}

static sl_decoded gunzip_run(void *state_, sl_decode_piece *piece) {
    static const char *const faults[] = {"bad data",
                                         "invalid block",
                                         "invalid code",
                                         "invalid distance too far back",
                                         "incorrect header",
                                         "unknown compression method",
                                         "incorrect data check"};
    gunzip_state *state = state_;
    struct inflate_state *z = &state->inflater;
    uint32_t in = decoder_limit(piece->in_left), out = decoder_limit(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = inflate_some(state);
    decoder_advance(piece, in - z->avail_in, out - z->avail_out);
    if (result < 0) {
        piece->fault = faults[result >= -6 ? -result : 0];
        return SL_DECODED_DAMAGED;
    }
    return state->header_read && z->block_state == ISAL_BLOCK_FINISH ? SL_DECODED_END
                                                                     : SL_DECODED_SOME;
}

static void gunzip_destroy(void *state) {
    free(state);
}

#else

typedef struct gunzip_state {
    z_stream inflater;
    bool begun;
} gunzip_state;

static void *gunzip_create(void) {
    return calloc(1, sizeof(gunzip_state));
}

static bool gunzip_begin(void *state_) {
    gunzip_state *state = state_;
    int result =
        state->begun ? inflateReset(&state->inflater) : inflateInit2(&state->inflater, 15 + 16);
    state->begun = result == Z_OK;
    return state->begun;
}

static sl_decoded gunzip_run(void *state_, sl_decode_piece *piece) {
    z_stream *z = &((gunzip_state *)state_)->inflater;
    uint32_t in = decoder_limit(piece->in_left), out = decoder_limit(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = inflate(z, Z_NO_FLUSH);
    decoder_advance(piece, in - z->avail_in, out - z->avail_out);
    if (result == Z_STREAM_END)
        return SL_DECODED_END;
    if (result == Z_MEM_ERROR)
        return SL_DECODED_NO_MEMORY;
    piece->fault = z->msg ? z->msg : "bad data";
    return result == Z_OK || result == Z_BUF_ERROR ? SL_DECODED_SOME : SL_DECODED_DAMAGED;
}

static void gunzip_destroy(void *state_) {
    gunzip_state *state = state_;
    if (state && state->begun)
        inflateEnd(&state->inflater);
    free(state);
}

#endif

static const sl_decoder gzip_decoder = {gunzip_create, gunzip_begin, gunzip_run, gunzip_destroy};

/* ---- xz and lzip ---- */

static void *lzma_create(void) {
    static const lzma_stream empty = LZMA_STREAM_INIT;
    lzma_stream *stream = malloc(sizeof *stream);
    if (stream)
        *stream = empty;
    return stream;
}

static bool xz_begin(void *state) {
    return lzma_stream_decoder(state, SL_DECODER_MEMORY_MAX, 0) == LZMA_OK;
}

static bool lzip_begin(void *state) {
    return lzma_lzip_decoder(state, SL_DECODER_MEMORY_MAX, 0) == LZMA_OK;
}

static sl_decoded lzma_run(void *state, sl_decode_piece *piece) {
    lzma_stream *stream = state;
    stream->next_in = piece->in;
    stream->avail_in = piece->in_left;
    stream->next_out = piece->out;
    stream->avail_out = piece->out_left;
    lzma_ret result = lzma_code(stream, LZMA_RUN);
    decoder_advance(piece, piece->in_left - stream->avail_in, piece->out_left - stream->avail_out);
    switch (result) {
    case LZMA_OK:
    case LZMA_BUF_ERROR: /* no progress without more input */
        return SL_DECODED_SOME;
    case LZMA_STREAM_END:
        return SL_DECODED_END;
    case LZMA_MEMLIMIT_ERROR:
        piece->needed = lzma_memusage(stream);
        return SL_DECODED_TOO_LARGE;
    case LZMA_MEM_ERROR:
        return SL_DECODED_NO_MEMORY;
    case LZMA_OPTIONS_ERROR:
        piece->fault = "unknown options in its header";
        return SL_DECODED_DAMAGED;
    default:
        piece->fault = result == LZMA_FORMAT_ERROR ? "incorrect header" : "bad data";
        return SL_DECODED_DAMAGED;
    }
}

static void lzma_destroy(void *state) {
    if (state)
        lzma_end(state);
    free(state);
}

static const sl_decoder xz_decoder = {lzma_create, xz_begin, lzma_run, lzma_destroy};
static const sl_decoder lzip_decoder = {lzma_create, lzip_begin, lzma_run, lzma_destroy};

/* ---- bzip2 ---- */

typedef struct bzip2_state {
    bz_stream stream;
    bool begun;
} bzip2_state;

static void *bzip2_create(void) {
    return calloc(1, sizeof(bzip2_state));
}

static bool bzip2_begin(void *state_) {
    bzip2_state *state = state_;
    if (state->begun)
        BZ2_bzDecompressEnd(&state->stream);
    state->begun = BZ2_bzDecompressInit(&state->stream, 0, 0) == BZ_OK;
    return state->begun;
}

static sl_decoded bzip2_run(void *state_, sl_decode_piece *piece) {
    bz_stream *stream = &((bzip2_state *)state_)->stream;
    unsigned in = decoder_limit(piece->in_left), out = decoder_limit(piece->out_left);
    stream->next_in = (char *)piece->in;
    stream->avail_in = in;
    stream->next_out = (char *)piece->out;
    stream->avail_out = out;
    int result = BZ2_bzDecompress(stream);
    decoder_advance(piece, in - stream->avail_in, out - stream->avail_out);
    if (result == BZ_OK)
        return SL_DECODED_SOME;
    if (result == BZ_STREAM_END)
        return SL_DECODED_END;
    if (result == BZ_MEM_ERROR)
        return SL_DECODED_NO_MEMORY;
    piece->fault = result == BZ_DATA_ERROR_MAGIC ? "incorrect header" : "bad data";
    return SL_DECODED_DAMAGED;
}

static void bzip2_destroy(void *state_) {
    bzip2_state *state = state_;
    if (state && state->begun)
        BZ2_bzDecompressEnd(&state->stream);
    free(state);
}

static const sl_decoder bzip2_decoder = {bzip2_create, bzip2_begin, bzip2_run, bzip2_destroy};

/* ---- zstd ---- */

static void *zstd_create(void) {
    return ZSTD_createDCtx();
}

static bool zstd_begin(void *state) {
    return !ZSTD_isError(ZSTD_DCtx_reset(state, ZSTD_reset_session_only)) &&
           !ZSTD_isError(
               ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, SL_DECODER_MEMORY_MAX_LOG));
}

static sl_decoded zstd_run(void *state, sl_decode_piece *piece) {
    ZSTD_inBuffer in = {piece->in, piece->in_left, 0};
    ZSTD_outBuffer out = {piece->out, piece->out_left, 0};
    size_t result = ZSTD_decompressStream(state, &out, &in);
    decoder_advance(piece, in.pos, out.pos);
    if (!ZSTD_isError(result))
        return result == 0 ? SL_DECODED_END : SL_DECODED_SOME;
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return SL_DECODED_NO_MEMORY;
    piece->fault = ZSTD_getErrorName(result);
    return ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge
               ? SL_DECODED_TOO_LARGE
               : SL_DECODED_DAMAGED;
}

static void zstd_destroy(void *state) {
    ZSTD_freeDCtx(state);
}

static const sl_decoder zstd_decoder = {zstd_create, zstd_begin, zstd_run, zstd_destroy};

/* ---- lz4 ---- */

static void *lz4_create(void) {
    LZ4F_dctx *context = NULL;
    return LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL : context;
}

static bool lz4_begin(void *state) {
    LZ4F_resetDecompressionContext(state);
    return true;
}

static sl_decoded lz4_run(void *state, sl_decode_piece *piece) {
    size_t in = piece->in_left, out = piece->out_left;
    size_t result = LZ4F_decompress(state, piece->out, &out, piece->in, &in, NULL);
    if (LZ4F_isError(result)) {
        piece->fault = LZ4F_getErrorName(result);
        return strstr(piece->fault, "allocation") ? SL_DECODED_NO_MEMORY : SL_DECODED_DAMAGED;
    }
    decoder_advance(piece, in, out);
    return result == 0 ? SL_DECODED_END : SL_DECODED_SOME;
}

static void lz4_destroy(void *state) {
    LZ4F_freeDecompressionContext(state);
}

static const sl_decoder lz4_decoder = {lz4_create, lz4_begin, lz4_run, lz4_destroy};

/* ---- UTF-16 ---- */

/* UTF-16 with byte order mark, as a decoder: the text is converted to UTF-8, and then read like the
 * text of a compressed file. A surrogate without its other half becomes the three bytes that it
 * would have in UTF-8; these are not UTF-8, so that the parser rejects the record that contains
 * them. */

#define CHARACTER_BYTES 6u /* maximum of UTF-8 for one unit: a lone surrogate and a character */

typedef struct utf16_state {
    bool begun; /* the byte order mark has been read */
    bool big_endian;
    bool half; /* `byte` is the first byte of a unit */
    uint8_t byte;
    uint32_t surrogate; /* the first half of a character; 0: none */
} utf16_state;

static void *utf16_create(void) {
    return calloc(1, sizeof(utf16_state));
}

static bool utf16_begin(void *state) {
    *(utf16_state *)state = (utf16_state){0};
    return true;
}

static void put(sl_decode_piece *piece, uint32_t code) {
    unsigned char *end = sl_utf8_put(piece->out, code);
    piece->out_left -= (size_t)(end - piece->out);
    piece->out = end;
}

static void take_unit(utf16_state *state, sl_decode_piece *piece, uint32_t unit) {
    if (!state->begun) {
        state->begun = true;
        state->big_endian = unit == 0xFFFE; /* units are read as little-endian before this */
        unit = 0xFEFF;                      /* the mark tells the format that the text is UTF-8 */
    }
    bool second = unit >= 0xDC00 && unit < 0xE000;
    if (state->surrogate && second) {
        put(piece, 0x10000 + ((state->surrogate - 0xD800) << 10) + (unit - 0xDC00));
        state->surrogate = 0;
        return;
    }
    if (state->surrogate)
        put(piece, state->surrogate);
    state->surrogate = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
    if (!state->surrogate)
        put(piece, unit);
}

/* Without input, the text has ended: it is complete unless it ends within a unit. */
static sl_decoded utf16_run(void *state_, sl_decode_piece *piece) {
    utf16_state *state = state_;
    if (piece->in_left == 0) {
        if (state->surrogate && piece->out_left >= CHARACTER_BYTES)
            put(piece, state->surrogate);
        state->surrogate = 0;
        return state->half ? SL_DECODED_SOME : SL_DECODED_END;
    }
    while (piece->in_left > 0 && piece->out_left >= CHARACTER_BYTES) {
        uint8_t byte = *piece->in++;
        piece->in_left--;
        state->half = !state->half;
        if (state->half)
            state->byte = byte;
        else if (state->big_endian)
            take_unit(state, piece, (uint32_t)state->byte << 8 | byte);
        else
            take_unit(state, piece, (uint32_t)byte << 8 | state->byte);
    }
    return SL_DECODED_SOME;
}

static const sl_decoder utf16_decoder = {utf16_create, utf16_begin, utf16_run, free};

/* ---- compressed inputs ---- */

/* Unpackers: select the decoder of an input, and check the bytes between and after its streams. */

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
    {"gzip", "\x1F\x8B", 2, &gzip_decoder, "gzip -dc", 0, false},
    {"xz",
     "\xFD"
     "7zXZ\0",
     6, &xz_decoder, "xz -dc", 4, false},
    {"zstd", "\x28\xB5\x2F\xFD", 4, &zstd_decoder, "zstd -dc --long=31", 0, true},
    {"bzip2", "BZh", 3, &bzip2_decoder, "bzip2 -dc", 0, false},
    {"lz4", "\x04\x22\x4D\x18", 4, &lz4_decoder, "lz4 -dc", 0, true},
    {"lzip", "LZIP\x01", 5, &lzip_decoder, "lzip -dc", 0, false},
    {"UTF-16", "\xFF\xFE", 2, &utf16_decoder, "iconv -f UTF-16 -t UTF-8", 0, false},
    {"UTF-16", "\xFE\xFF", 2, &utf16_decoder, "iconv -f UTF-16 -t UTF-8", 0, false},
    {"compress", "\x1F\x9D", 2, NULL, "gzip -dc", 0, false},
};

struct sl_unpacker {
    const compression *compression;
    sl_input output;
    sl_input *packed;
    void *state; /* of the decoder */
    bool in_stream;
    bool is_bgzip;     /* the current stream: an empty one ends the data */
    uint64_t unpacked; /* bytes of the current stream, or of the last one */
};

/* A gzip member of which the extra field has the part "BC". */
static bool is_bgzip(const unsigned char *bytes, size_t length) {
    if (length < 12 || bytes[0] != 0x1F || bytes[1] != 0x8B || (bytes[3] & 4) == 0)
        return false;
    size_t at = 12, end = at + (bytes[10] | (size_t)bytes[11] << 8);
    while (at + 4 <= end && at + 4 <= length && memcmp(bytes + at, "BC", 2) != 0)
        at += 4 + (bytes[at + 2] | (size_t)bytes[at + 3] << 8);
    return at + 4 <= end && at + 4 <= length;
}

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
        if (one->decoder == &utf16_decoder && length >= 4 && bytes[2] == 0 && bytes[3] == 0)
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
    unpacker->unpacked = 0;
    unpacker->is_bgzip = is_bgzip(sl_input_at(unpacker->packed), sl_input_left(unpacker->packed));
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
        return !unpacker->is_bgzip || unpacker->unpacked == 0 ||
               sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: the bgzip data ends at byte %llu without its end marker: the file "
                            "is truncated: fetch it again. If it is complete, pipe it in: gzip -dc "
                            "FILE | shardload load ... -",
                            packed->name, (unsigned long long)end);
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
    unpacker->unpacked += *made;
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

const char *sl_unpacker_compression(const sl_unpacker *unpacker) {
    return unpacker->compression->name;
}

sl_input *sl_unpacker_output(sl_unpacker *unpacker) {
    return &unpacker->output;
}
