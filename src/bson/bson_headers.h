/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of elements that have been read: in BSON type, key and NUL; in Extended JSON the key
 * in quotes. Each caller of sl_bson_check_next has its own table; everything else is private to
 * src/bson.
 *
 * The documents of a collection have mostly the same keys in the same order. So an element is first
 * compared with the header that has followed the element before it last time. If they are the same,
 * the length of the header is known at once. So the processor can begin with the next element
 * before it has read all bytes of this one. The table holds only valid headers, so its content
 * affects the speed and never the result. */
#ifndef SHARDLOAD_BSON_HEADERS_H
#define SHARDLOAD_BSON_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SL_BSON_HEADER_MAX 32u /* maximum bytes of a stored header */
#define SL_BSON_HEADERS 1024u  /* places of a table; half of them are used */

typedef struct sl_bson_header {
    uint8_t bytes[SL_BSON_HEADER_MAX]; /* padded with 0 */
    uint32_t length;
    uint8_t compared; /* the same; 0: matches no element */
    uint8_t size;     /* of the value: a number of bytes, or of a variable number */
    bool is_id;       /* the key is _id */
    const struct sl_bson_header *parent; /* of the document that has the element */
    struct sl_bson_header *next;         /* of the element that has followed last */
    struct sl_bson_header *first; /* of the first element in the value, which is a document */
    uint32_t serial;              /* of Extended JSON: the last document that has the key */
} sl_bson_header;

/* For one thread. */
typedef struct sl_bson_headers {
    /* Matches no element. Represents an unknown header; its `first` is the first header of a
     * document. */
    sl_bson_header none;
    sl_bson_header other; /* the last header that was not stored; matches no element */
    uint32_t places;      /* 0: no header is stored */
    uint32_t count;       /* of the stored headers */
    uint8_t terminator;   /* the last byte of each header */
    uint32_t unpredicted; /* of BSON: elements that were not predicted, */
    uint64_t bytes;       /* ... and bytes of the documents */
    sl_bson_header kept[SL_BSON_HEADERS];
} sl_bson_headers;

/* Begins a table: no header is known. `places`: SL_BSON_HEADERS, or 0, and `kept` is not used. */
void sl_bson_headers_init(sl_bson_headers *headers, uint32_t places, uint8_t terminator);

/* The header of the element whose bytes are at `from`, in a document of `parent`; NULL if it is not
 * in the table. Reads SL_BSON_HEADER_MAX bytes. */
sl_bson_header *sl_bson_headers_find(sl_bson_headers *headers, const uint8_t *from,
                                     const sl_bson_header *parent);

/* Adds a valid header that was not found. One that is too long, or has no place, becomes
 * `other`. */
sl_bson_header *sl_bson_headers_add(sl_bson_headers *headers, const uint8_t *from, size_t length,
                                    uint8_t size, const sl_bson_header *parent);

/* Are the 16 bytes at `from`, those that the mask selects, the same as `bytes`? */
static inline bool sl_bson_same_16(const uint8_t *bytes, const uint8_t *from, const uint8_t *mask) {
#if defined(__SSE2__)
    __m128i selected =
        _mm_and_si128(_mm_loadu_si128((const void *)from), _mm_loadu_si128((const void *)mask));
    __m128i same = _mm_cmpeq_epi8(selected, _mm_loadu_si128((const void *)bytes));
    return _mm_movemask_epi8(same) == 0xFFFF;
#else
    uint64_t words[6];
    memcpy(words, bytes, 16);
    memcpy(words + 2, from, 16);
    memcpy(words + 4, mask, 16);
    return (((words[2] & words[4]) ^ words[0]) | ((words[3] & words[5]) ^ words[1])) == 0;
#endif
}

/* Does the element at `at` have this header? Reads SL_BSON_HEADER_MAX bytes. */
static inline bool sl_bson_header_is_at(const sl_bson_header *header, const void *at) {
    const uint8_t *from = at;
    static const uint8_t ones[2 * SL_BSON_HEADER_MAX] = {[0 ... SL_BSON_HEADER_MAX - 1] = 0xFF};
    const uint8_t *mask = ones + SL_BSON_HEADER_MAX - header->compared;
    return sl_bson_same_16(header->bytes, from, mask) &&
           (header->compared <= 16 || sl_bson_same_16(header->bytes + 16, from + 16, mask + 16));
}

#endif
