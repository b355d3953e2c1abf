/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share that read BSON from a server or from a disk: documents out of the
 * input, and checks of what was made of them.
 *
 * The input is read as BSON documents that follow each other. Chance rarely keeps the lengths
 * within a document right, so they are corrected on the way: types, names and values are taken as
 * they are, and each nested document ends at its zero byte. A document that is valid already stays
 * as it is. With `raw` nothing is corrected but the length of the outermost document, which is what
 * the driver checks; what is inside may then be broken in any way. */
#ifndef TESTS_FUZZ_DOCUMENTS_H
#define TESTS_FUZZ_DOCUMENTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>

#include <shardload/error.h>

static inline void require(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

typedef struct input {
    const uint8_t *at, *end;
    bool raw;
} input;

/* A document of the input, in memory of exactly its size. Not to be copied: `bson` points into
 * itself. */
typedef struct given {
    bson_t bson;
    uint8_t *bytes;
} given;

static inline uint8_t take_byte(input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

/* Copies up to `length` bytes of the input, and zeros behind them. */
static inline void take_bytes(input *in, void *out, size_t length) {
    size_t there = (size_t)(in->end - in->at) < length ? (size_t)(in->end - in->at) : length;
    memset(out, 0, length);
    if (there > 0)
        memcpy(out, in->at, there);
    in->at += there;
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

/* ---- lengths corrected ---- */

/* A growing document, and where the documents begin that are open in it. */
typedef struct mending {
    uint8_t *bytes;
    size_t used, room;
    size_t *open;
    size_t depth, depth_room;
} mending;

static inline uint8_t *add_bytes(mending *m, size_t length) {
    if (!m->bytes || m->room - m->used < length) {
        m->room = (m->room + length + 8) * 2;
        m->bytes = realloc(m->bytes, m->room);
        require(m->bytes != NULL, "there is memory");
    }
    m->used += length;
    return m->bytes + m->used - length;
}

static inline void open_document(mending *m) {
    if (m->depth == m->depth_room) {
        m->depth_room = m->depth_room * 2 + 16;
        m->open = realloc(m->open, m->depth_room * sizeof *m->open);
        require(m->open != NULL, "there is memory");
    }
    m->open[m->depth++] = m->used;
    memset(add_bytes(m, 4), 0, 4);
}

static inline void close_document(mending *m) {
    *add_bytes(m, 1) = 0;
    size_t start = m->open[--m->depth];
    put_u32(m->bytes + start, m->used - start);
}

/* Up to the next zero byte, which is added where the input ends before it. */
static inline void add_name(mending *m, input *in) {
    const uint8_t *zero = memchr(in->at, 0, (size_t)(in->end - in->at));
    size_t length = (size_t)((zero ? zero : in->end) - in->at);
    uint8_t *out = add_bytes(m, length + 1);
    if (length > 0)
        memcpy(out, in->at, length);
    out[length] = 0;
    in->at += length + (zero != NULL);
}

/* Bytes with a length in front; `zero` when the last of them must be zero, and counts. */
static inline void add_counted(mending *m, input *in, bool zero) {
    size_t length = take_u32(in), left = (size_t)(in->end - in->at);
    size_t front = zero ? 4 : 5; /* binary has its subtype behind the length */
    if (zero)
        length = length > 0 && length <= left ? length : 1;
    else if (length + 1 > left)
        length = left > 0 ? left - 1 : 0;
    uint8_t *out = add_bytes(m, front + length);
    put_u32(out, length);
    take_bytes(in, out + 4, front - 4 + length);
    if (zero)
        out[3 + length] = 0;
}

static inline void add_value(mending *m, input *in, uint8_t type) {
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
    case 0x0C: { /* a pointer to a document: name and id */
        add_counted(m, in, true);
        take_bytes(in, add_bytes(m, 12), 12);
        break;
    }
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

static inline void mend_document(input *in, mending *m) {
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

/* The next document of the input; an empty one when nothing is left. Clear it. */
static inline void give(input *in, given *out) {
    size_t left = (size_t)(in->end - in->at), length = 5;
    if (in->raw && left >= 5) {
        input ahead = *in;
        size_t wanted = take_u32(&ahead);
        length = wanted >= 5 && wanted <= left ? wanted : left;
        out->bytes = malloc(length);
        require(out->bytes != NULL, "there is memory");
        memcpy(out->bytes, in->at, length);
        put_u32(out->bytes, length);
        out->bytes[length - 1] = 0;
        in->at += length;
    } else {
        mending m = {0};
        mend_document(in, &m);
        length = m.used;
        out->bytes = malloc(length);
        require(out->bytes != NULL, "there is memory");
        memcpy(out->bytes, m.bytes, length);
        free(m.bytes);
    }
    require(bson_init_static(&out->bson, out->bytes, length), "a document can be given");
}

static inline void clear(given *document) {
    free(document->bytes);
}

/* The flags in front of the documents: bit 0 is `raw`, the others are the target's. */
static inline uint8_t begin(input *in, const uint8_t *data, size_t size) {
    *in = (input){.at = data, .end = data + size};
    uint8_t flags = take_byte(in);
    in->raw = flags & 1;
    return flags;
}

/* ---- checks ---- */

static inline void check_error(const sl_error *error) {
    require(error->code != SL_EXIT_OK && error->message[0], "a failure has a reason");
    require(memchr(error->message, '\0', sizeof error->message) != NULL, "a reason ends");
}

#define CHECK_TEXT(text) require(memchr((text), '\0', sizeof(text)) != NULL, #text " ends")

/* Not by bson_validate, which also refuses names that are no UTF-8. */
static inline void check_own(const bson_t *made) {
    input in = {.at = bson_get_data(made), .end = bson_get_data(made) + made->len};
    mending m = {0};
    mend_document(&in, &m);
    require(m.used == made->len && memcmp(m.bytes, bson_get_data(made), m.used) == 0,
            "a document that was made is valid");
    free(m.bytes);
}

#endif
