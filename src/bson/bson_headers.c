/* SPDX-License-Identifier: Apache-2.0 */
/* The table of headers: open addressing. At most half of the places are used, so a search is short;
 * further headers are not stored. */
#include "bson_headers.h"

#include "bson_writer.h"
#include "util/hash.h"

_Static_assert(SL_BSON_HEADER_MAX <= SL_BSON_SLACK, "headers may be read after the document");

void sl_bson_headers_init(sl_bson_headers *headers, uint32_t places, uint8_t terminator) {
    memset(headers, 0, offsetof(sl_bson_headers, kept) + places * sizeof *headers->kept);
    headers->places = places;
    headers->terminator = terminator;
    headers->none = (sl_bson_header){
        .bytes = {1}, .next = &headers->none, .first = &headers->none}; /* of 0 bytes, all are 0 */
    headers->other = headers->none;
}

/* The bytes of a word up to the first terminator, or all. `*ended`: there is one. */
static uint64_t until(uint64_t word, uint8_t terminator, bool *ended) {
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t other = word ^ ones * terminator;
    uint64_t ends = (other - ones) & ~other & highs; /* its lowest bit belongs to the first
                                                        terminator */
    *ended = ends != 0;
    return *ended ? word & (ends ^ (ends - 1)) : word;
}

/* A hash of up to 17 bytes of a header, and of its parent's place in the table. */
static uint64_t hash_of(const sl_bson_headers *headers, const uint8_t *from,
                        const sl_bson_header *parent) {
    uint64_t words[2], place = (uint64_t)((const uint8_t *)parent - (const uint8_t *)headers);
    bool ended;
    memcpy(words, from + 1, sizeof words);
    words[0] = until(words[0], headers->terminator, &ended);
    words[1] = ended ? 0 : until(words[1], headers->terminator, &ended);
    return sl_hash_mix(words[0] ^ SL_HASH_A,
                       words[1] ^ sl_hash_mix(place ^ SL_HASH_B, *from ^ SL_HASH_A));
}

/* The place of a header, or an empty place where it may lie. */
static sl_bson_header *search(sl_bson_headers *headers, const uint8_t *from,
                              const sl_bson_header *parent) {
    for (uint64_t at = hash_of(headers, from, parent);; at++) {
        sl_bson_header *header = &headers->kept[at % SL_BSON_HEADERS];
        if (header->compared == 0 ||
            (header->parent == parent && sl_bson_header_is_at(header, from)))
            return header;
    }
}

sl_bson_header *sl_bson_headers_find(sl_bson_headers *headers, const uint8_t *from,
                                     const sl_bson_header *parent) {
    sl_bson_header *header = headers->places > 0 ? search(headers, from, parent) : NULL;
    return header && header->compared > 0 ? header : NULL;
}

sl_bson_header *sl_bson_headers_add(sl_bson_headers *headers, const uint8_t *from, size_t length,
                                    uint8_t size, const sl_bson_header *parent) {
    bool keep = length <= SL_BSON_HEADER_MAX && headers->count < headers->places / 2;
    sl_bson_header *header = keep ? search(headers, from, parent) : &headers->other;
    headers->count += keep;
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
