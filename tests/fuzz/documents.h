/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the input of a fuzz target into BSON documents, for code that reads BSON from a server or a
 * disk.
 *
 * The input is a sequence of BSON documents. Mutated documents rarely have correct lengths, so the
 * lengths are recomputed: types, names and values are copied, and each nested document ends at its
 * zero byte. A valid document stays unchanged. With `raw` only the length of the outermost document
 * is corrected, because the driver checks it; its contents may then be invalid. */
#ifndef TESTS_FUZZ_DOCUMENTS_H
#define TESTS_FUZZ_DOCUMENTS_H

#include <bson/bson.h>

#include "check.h"

typedef struct input {
    const uint8_t *at, *end;
    bool raw;
    struct input_document *documents; /* the last document that was taken; NULL: none */
} input;

/* A document of the input, in an allocation of exactly its size. */
typedef struct input_document {
    bson_t bson;
    uint8_t *bytes;
    struct input_document *before;
} input_document;

static inline uint8_t take_byte(input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

/* Copies the next `length` bytes of the input; zeros where the input is too short. */
static inline void take_bytes(input *in, void *out, size_t length) {
    size_t left = (size_t)(in->end - in->at), copied = left < length ? left : length;
    memset(out, 0, length);
    if (copied > 0)
        memcpy(out, in->at, copied);
    in->at += copied;
}

static inline uint32_t take_u32(input *in) {
    uint8_t bytes[4];
    take_bytes(in, bytes, sizeof bytes);
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static inline void put_u32(uint8_t *to, size_t value) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* ---- documents with corrected lengths ---- */

/* A growing buffer with a document, and the offsets of its nested documents that are not closed. */
typedef struct builder {
    uint8_t *bytes;
    size_t used, room;
    size_t *open;
    size_t depth, depth_room;
} builder;

static inline uint8_t *add_bytes(builder *m, size_t length) {
    if (!m->bytes || m->room - m->used < length) {
        m->room = (m->room + length + 8) * 2;
        m->bytes = realloc(m->bytes, m->room);
        require(m->bytes != NULL, "allocation succeeds");
    }
    m->used += length;
    return m->bytes + m->used - length;
}

static inline void open_document(builder *m) {
    if (m->depth == m->depth_room) {
        m->depth_room = m->depth_room * 2 + 16;
        m->open = realloc(m->open, m->depth_room * sizeof *m->open);
        require(m->open != NULL, "allocation succeeds");
    }
    m->open[m->depth++] = m->used;
    memset(add_bytes(m, 4), 0, 4);
}

static inline void close_document(builder *m) {
    *add_bytes(m, 1) = 0;
    size_t start = m->open[--m->depth];
    put_u32(m->bytes + start, m->used - start);
}

/* Copies the input up to the next zero byte. A zero byte is added if the input ends before it. */
static inline void add_name(builder *m, input *in) {
    const uint8_t *zero = memchr(in->at, 0, (size_t)(in->end - in->at));
    size_t length = (size_t)((zero ? zero : in->end) - in->at);
    uint8_t *out = add_bytes(m, length + 1);
    if (length > 0)
        memcpy(out, in->at, length);
    out[length] = 0;
    in->at += length + (zero != NULL);
}

/* Copies a value that starts with its length: a string, whose length includes its zero byte, or
 * binary, which has a subtype byte after the length. */
static inline void add_counted(builder *m, input *in, bool is_string) {
    size_t length = take_u32(in), left = (size_t)(in->end - in->at);
    size_t head = is_string ? 4 : 5;
    if (is_string)
        length = length > 0 && length <= left ? length : 1;
    else if (length + 1 > left)
        length = left > 0 ? left - 1 : 0;
    uint8_t *out = add_bytes(m, head + length);
    put_u32(out, length);
    take_bytes(in, out + 4, head - 4 + length);
    if (is_string)
        out[3 + length] = 0;
}

static inline void add_value(builder *m, input *in, uint8_t type) {
    static const uint8_t fixed[256] = {
        [0x01] = 8, [0x07] = 12, [0x09] = 8, [0x10] = 4, [0x11] = 8, [0x12] = 8, [0x13] = 16};
    switch (type) {
    case 0x02: /* string, code, symbol */
    case 0x0D:
    case 0x0E:
        add_counted(m, in, true);
        break;
    case 0x05:
        add_counted(m, in, false);
        break;
    case 0x08:
        *add_bytes(m, 1) = take_byte(in) & 1;
        break;
    case 0x0B: /* regular expression: pattern and options */
        add_name(m, in);
        add_name(m, in);
        break;
    case 0x0C: /* DBPointer: namespace and ObjectId */
        add_counted(m, in, true);
        take_bytes(in, add_bytes(m, 12), 12);
        break;
    default:
        if (fixed[type] > 0)
            take_bytes(in, add_bytes(m, fixed[type]), fixed[type]);
        break;
    }
}

static inline uint8_t known_type(uint8_t type) {
    static const uint8_t types[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A,
                                    0x0B, 0x0C, 0x0D, 0x0E, 0x10, 0x11, 0x12, 0x13, 0x7F, 0xFF};
    return memchr(types, type, sizeof types) ? type : types[type % sizeof types];
}

static inline void repair_document(input *in, builder *m) {
    take_u32(in);
    open_document(m);
    while (m->depth > 0) {
        uint8_t type = take_byte(in);
        if (type == 0) {
            close_document(m);
            continue;
        }
        type = known_type(type);
        *add_bytes(m, 1) = type;
        add_name(m, in);
        if (type == 0x03 || type == 0x04) {
            take_u32(in);
            open_document(m);
        } else {
            add_value(m, in, type);
        }
    }
    free(m->open);
}

/* ---- documents ---- */

/* Takes the next document of the input, an empty one at its end. To be released. */
static inline bson_t *take_document(input *in) {
    size_t left = (size_t)(in->end - in->at), length = 5;
    input_document *out = aligned_alloc(_Alignof(input_document), sizeof *out); /* for bson_t */
    require(out != NULL, "allocation succeeds");
    *out = (input_document){.before = in->documents};
    if (in->raw && left >= 5) {
        input ahead = *in;
        size_t declared = take_u32(&ahead);
        length = declared >= 5 && declared <= left ? declared : left;
        out->bytes = copy_of(in->at, length, 0, 0);
        put_u32(out->bytes, length);
        out->bytes[length - 1] = 0;
        in->at += length;
    } else {
        builder m = {0};
        repair_document(in, &m);
        length = m.used;
        out->bytes = copy_of(m.bytes, length, 0, 0);
        free(m.bytes);
    }
    require(bson_init_static(&out->bson, out->bytes, length), "the driver accepts a document");
    in->documents = out;
    return &out->bson;
}

/* Releases the document that was taken last, so that later accesses to it are detected. */
static inline void release_document(input *in) {
    input_document *last = in->documents;
    in->documents = last->before;
    free(last->bytes);
    free(last);
}

/* Releases all documents. Returns 0, the result of a fuzz target. */
static inline int finish(input *in) {
    while (in->documents)
        release_document(in);
    return 0;
}

/* Returns the flags, the first byte of the input. Bit 0 is `raw`; the target defines the others. */
static inline uint8_t begin(input *in, const uint8_t *data, size_t size) {
    *in = (input){.at = data, .end = data + size};
    uint8_t flags = take_byte(in);
    in->raw = flags & 1;
    return flags;
}

/* Checks a document that the code under test has built. bson_validate would also refuse names that
 * are not UTF-8, so the lengths are recomputed: those of a valid document do not change. */
static inline void check_built(const bson_t *document) {
    input in = {.at = bson_get_data(document), .end = bson_get_data(document) + document->len};
    builder m = {0};
    repair_document(&in, &m);
    require(m.used == document->len && memcmp(m.bytes, bson_get_data(document), m.used) == 0,
            "a built document is valid BSON");
    free(m.bytes);
}

#endif
