/* SPDX-License-Identifier: Apache-2.0 */
/* The table of headers: open addressing with a few places for each header. If all are occupied by
 * others, the header is not kept. */
#include "bson_headers.h"

#include "bson_writer.h"
#include "util/hash.h"

_Static_assert(SL_BSON_HEADER_MAX <= SL_BSON_SLACK, "headers may be read behind the document");

#define PLACES 12u /* where a header may lie */

void sl_bson_headers_init(sl_bson_headers *headers, uint32_t places, uint8_t terminator) {
    memset(headers, 0, offsetof(sl_bson_headers, kept) + places * sizeof *headers->kept);
    headers->places = places;
    headers->terminator = terminator;
    headers->none = (sl_bson_header){
        .bytes = {1}, .next = &headers->none, .first = &headers->none}; /* of 0 bytes, all are 0 */
    headers->other = headers->none;
}

/* A hash of up to 8 bytes of a header, and of its parent's place in the table. */
static uint64_t hash_of(const sl_bson_headers *headers, const uint8_t *from,
                        const sl_bson_header *parent) {
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t word, place = (uint64_t)((const uint8_t *)parent - (const uint8_t *)headers);
    memcpy(&word, from, sizeof word);
    uint64_t key = (word ^ ones * headers->terminator) >> 8 | UINT64_C(0xFF) << 56;
    uint64_t nul = (key - ones) & ~key & highs; /* its lowest bit is that of the terminator */
    if (nul != 0)
        word &= (nul ^ (nul - 1)) << 8 | 0xFF;
    return sl_hash_mix(word ^ SL_HASH_A, place ^ SL_HASH_B);
}

sl_bson_header *sl_bson_headers_find(sl_bson_headers *headers, const uint8_t *from,
                                     const sl_bson_header *parent) {
    uint64_t hash = headers->places > 0 ? hash_of(headers, from, parent) : 0;
    for (unsigned i = 0; i < PLACES && headers->places > 0; i++) {
        sl_bson_header *header = &headers->kept[(hash + i) % SL_BSON_HEADERS];
        if (header->compared == 0)
            return NULL;
        if (header->parent == parent && sl_bson_header_is_at(header, from))
            return header;
    }
    return NULL;
}

sl_bson_header *sl_bson_headers_add(sl_bson_headers *headers, const uint8_t *from, size_t length,
                                    uint8_t size, const sl_bson_header *parent) {
    bool keep = headers->places > 0 && length <= SL_BSON_HEADER_MAX;
    sl_bson_header *header = NULL;
    if (keep) {
        uint64_t hash = hash_of(headers, from, parent);
        unsigned i = 0;
        do
            header = &headers->kept[(hash + i) % SL_BSON_HEADERS];
        while (header->compared > 0 && ++i < PLACES);
        keep = i < PLACES;
    }
    if (!keep)
        header = &headers->other;
    *header = (sl_bson_header){.bytes = {1},
                               .length = (uint32_t)length,
                               .compared = keep ? (uint8_t)length : 0,
                               .size = size,
                               .is_id = length == 5 && memcmp(from + 1, "_id", 4) == 0,
                               .parent = parent,
                               .next = &headers->none,
                               .first = &headers->none};
    if (keep)
        memcpy(header->bytes, from, length);
    return header;
}
