/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON writer: writes documents directly into a buffer, without an object model.
 *
 * Every function takes the address to write to and returns the address after the written bytes. No
 * function checks for room: the caller ensures beforehand that the document's upper bound plus
 * SL_BSON_SLACK bytes fits. The slack may be overwritten, because short texts are copied as full
 * vectors. Layout: bsonspec.org, version 1.1. */
#ifndef SHARDLOAD_BSON_WRITER_H
#define SHARDLOAD_BSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "BSON is written by little-endian stores");

typedef enum sl_bson_type {
    SL_BSON_DOUBLE = 0x01,
    SL_BSON_TEXT = 0x02,
    SL_BSON_DOCUMENT = 0x03,
    SL_BSON_ARRAY = 0x04,
    SL_BSON_BINARY = 0x05,
    SL_BSON_OBJECT_ID = 0x07,
    SL_BSON_BOOL = 0x08,
    SL_BSON_DATE = 0x09,
    SL_BSON_NULL = 0x0A,
    SL_BSON_INT32 = 0x10,
    SL_BSON_INT64 = 0x12,
    SL_BSON_DECIMAL = 0x13,
} sl_bson_type;

/* The server's limit for a document, in bytes. */
#define SL_BSON_DOCUMENT_MAX ((size_t)16 << 20)
/* Up to this many bytes after a text may be read or overwritten. */
#define SL_BSON_SLACK 32
/* Bytes of a document's length field and its int64 `_id`. */
#define SL_BSON_HEAD_BYTES 17

/* The length in bytes of the BSON document, or the text, at `at`. */
static inline uint32_t sl_bson_length(const uint8_t *at) {
    uint32_t length;
    memcpy(&length, at, sizeof length);
    return length;
}

static inline uint64_t sl_load_8(const void *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The address after a key or another text that ends with a NUL. */
static inline const uint8_t *sl_bson_after_text(const uint8_t *at) {
    return at + strlen((const char *)at) + 1;
}

/* The end of a value of any type of the BSON specification, in a valid document. */
const uint8_t *sl_bson_value_end(uint8_t type, const uint8_t *value);

/* ---- values ---- */

static inline uint8_t *sl_bson_put_int32(uint8_t *to, int32_t value) {
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

static inline uint8_t *sl_bson_put_int64(uint8_t *to, int64_t value) { /* or a date in ms */
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

static inline uint8_t *sl_bson_put_double(uint8_t *to, double value) {
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

/* Copies `length` bytes; reads and writes up to SL_BSON_SLACK bytes after them. */
static inline uint8_t *sl_bson_copy(uint8_t *to, const char *from, size_t length) {
    memcpy(to, from, SL_BSON_SLACK);
    for (size_t done = SL_BSON_SLACK; __builtin_expect(done < length, 0); done += SL_BSON_SLACK)
        memcpy(to + done, from + done, SL_BSON_SLACK);
    return to + length;
}

/* Writes a string's value; the text is valid UTF-8. Reads and writes SL_BSON_SLACK bytes after
 * it. */
static inline uint8_t *sl_bson_put_text(uint8_t *to, const char *text, size_t length) {
    sl_bson_put_int32(to, (int32_t)(length + 1));
    to = sl_bson_copy(to + 4, text, length);
    *to = 0;
    return to + 1;
}

/* ---- element prefixes (type, key, NUL), prepared once and copied for each element ---- */

#define SL_BSON_PREFIX_STEP 16u

/* Copies a prefix that sl_bson_put_key has written into room of a multiple of SL_BSON_PREFIX_STEP
 * bytes; may overwrite up to SL_BSON_PREFIX_STEP - 1 bytes after it. */
static inline uint8_t *sl_bson_put_prefix(uint8_t *to, const uint8_t *prefix, uint32_t length) {
    memcpy(to, prefix, SL_BSON_PREFIX_STEP);
    for (uint32_t done = SL_BSON_PREFIX_STEP; done < length; done += SL_BSON_PREFIX_STEP)
        memcpy(to + done, prefix + done, SL_BSON_PREFIX_STEP);
    return to + length;
}

/* Writes the prefix of a key, and no byte after it. */
uint8_t *sl_bson_put_key(uint8_t *to, sl_bson_type type, const char *key);

/* ---- documents ---- */

/* Begins a document, or, after its key has been written, an embedded document or array. End it with
 * sl_bson_end(start, ...), where `start` is the `to` passed here. */
static inline uint8_t *sl_bson_begin(uint8_t *to) {
    return to + 4;
}

/* Begins a document with an int64 `_id`, SL_BSON_HEAD_BYTES bytes. */
static inline uint8_t *sl_bson_begin_with_id(uint8_t *to, int64_t id) {
    static const uint8_t head[8] = {SL_BSON_INT64, '_', 'i', 'd', 0};
    memcpy(to + 4, head, sizeof head);
    return sl_bson_put_int64(to + 9, id);
}

static inline uint8_t *sl_bson_end(uint8_t *start, uint8_t *to) {
    *to++ = 0;
    sl_bson_put_int32(start, (int32_t)(to - start));
    return to;
}

/* ---- values from text ---- */

/* The powers of ten that a double holds exactly. */
extern const double sl_powers_of_ten[23];

/* The size of the longest value in bytes: a UUID with its length and subtype. */
#define SL_BSON_VALUE_MAX 21u

/* Each of these functions reads the complete text, writes the value at `to`, and returns the
 * position after it; NULL if the text is not such a value. */

/* Writes `count` bytes, each from two hexadecimal digits. False if a character is no digit. */
bool sl_bson_put_hex(uint8_t *to, const char *digits, size_t count);
/* 24 hexadecimal digits. */
uint8_t *sl_bson_put_object_id(uint8_t *to, const char *text, size_t length);

/* 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12, joined by hyphens: binary data of subtype
 * 4. */
uint8_t *sl_bson_put_uuid(uint8_t *to, const char *text, size_t length);

/* A decimal number, with an exponent or not, that a decimal128 holds exactly: of up to 34
 * digits. */
uint8_t *sl_bson_put_decimal(uint8_t *to, const char *text, size_t length);
/* The same, or one of the words Infinity and NaN. */
uint8_t *sl_bson_put_decimal_or_word(uint8_t *to, const char *text, size_t length);

/* A date of ISO 8601 with a time and an offset, as $date has it. */
uint8_t *sl_bson_put_iso_date(uint8_t *to, const char *text, size_t length);

#endif
