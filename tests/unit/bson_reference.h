/* SPDX-License-Identifier: Apache-2.0 */
/* A slow, recursive validation of BSON, written from bsonspec.org 1.1, to compare the checker with.
 * As a server, it accepts text that is not UTF-8. */
#ifndef BSON_REFERENCE_H
#define BSON_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bson/bson.h>

typedef struct reference {
    const uint8_t *at, *end;
} reference;

static inline bool reference_take(reference *r, size_t count) {
    if ((size_t)(r->end - r->at) < count)
        return false;
    r->at += count;
    return true;
}

static inline bool reference_length(reference *r, int32_t *length) {
    const uint8_t *from = r->at;
    if (!reference_take(r, 4))
        return false;
    memcpy(length, from, 4);
    return *length >= 0;
}

static inline bool reference_cstring(reference *r) {
    const uint8_t *nul = memchr(r->at, 0, (size_t)(r->end - r->at));
    if (!nul)
        return false;
    r->at = nul + 1;
    return true;
}

static inline bool reference_string(reference *r) {
    int32_t length;
    const uint8_t *text = r->at + 4;
    return reference_length(r, &length) && length > 0 && reference_take(r, (size_t)length) &&
           text[length - 1] == 0;
}

static inline bool reference_document(reference *r, unsigned level);

static inline bool reference_value(reference *r, uint8_t type, unsigned level) {
    int32_t length;
    const uint8_t *begin = r->at;
    switch (type) {
    case 0x01:
    case 0x09:
    case 0x11:
    case 0x12:
        return reference_take(r, 8);
    case 0x02:
    case 0x0D:
    case 0x0E:
        return reference_string(r);
    case 0x03:
    case 0x04:
        return level < 200 && reference_document(r, level + 1);
    case 0x05:
        return reference_length(r, &length) && reference_take(r, 1 + (size_t)length);
    case 0x06:
    case 0x0A:
    case 0x7F:
    case 0xFF:
        return true;
    case 0x07:
        return reference_take(r, 12);
    case 0x08:
        return reference_take(r, 1) && *begin <= 1;
    case 0x0B:
        return reference_cstring(r) && reference_cstring(r);
    case 0x0C:
        return reference_string(r) && reference_take(r, 12);
    case 0x0F:
        return reference_length(r, &length) && reference_string(r) && level < 200 &&
               reference_document(r, level + 1) && r->at == begin + length;
    case 0x10:
        return reference_take(r, 4);
    case 0x13:
        return reference_take(r, 16);
    default:
        return false;
    }
}

static inline bool reference_document(reference *r, unsigned level) {
    int32_t length;
    reference inner = *r;
    if (!reference_length(&inner, &length) || length < 5 ||
        (size_t)length > (size_t)(r->end - r->at))
        return false;
    inner.end = r->at + length;
    if (inner.end[-1] != 0)
        return false;
    inner.end--; /* no element may use the terminator */
    while (inner.at < inner.end) {
        uint8_t type = *inner.at++;
        if (!reference_cstring(&inner) || !reference_value(&inner, type, level))
            return false;
    }
    r->at += length;
    return true;
}

/* Is the document at `bytes`, of which `length` bytes are given, valid? */
static inline bool reference_accepts(const uint8_t *bytes, size_t length) {
    reference r = {bytes, bytes + length};
    int32_t declared;
    if (length < 4)
        return false;
    memcpy(&declared, bytes, 4);
    return declared <= (16 << 20) && reference_document(&r, 0);
}

#endif
