/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the replies to reads without the driver. The input is a message: header and body. An
 * accepted header announces a reply of at most `MOST` bytes to request 1; an accepted body is one
 * document that fills it, all of whose elements can be read. */
#include "cluster/internal.h"
#include "documents.h"

#define MOST 48000000u
#define HEADER 16u
#define BODY_LEAST 10u

static uint64_t walk(const bson_t *document, unsigned levels) {
    bson_iter_t iter, inner;
    uint64_t elements = 0;
    if (!bson_iter_init(&iter, document))
        return 0;
    while (bson_iter_next(&iter)) {
        elements++;
        if (levels > 0 && BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &inner)) {
            while (bson_iter_next(&inner))
                elements++;
        }
    }
    return elements;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEADER)
        return 0;
    if (sl_exchange_check_header(data, 1, MOST)) {
        uint32_t length = take_u32(&(input){.at = data, .end = data + size});
        require(length >= HEADER + BODY_LEAST && length <= MOST, "the length is in its bounds");
        require(data[8] == 1 && data[9] == 0 && data[10] == 0 && data[11] == 0,
                "the reply is to the request");
    }
    /* The body in an allocation of its size, so that a read beyond its end is detected. */
    size_t length = size - HEADER;
    if (length < BODY_LEAST)
        return 0;
    uint8_t *body = copy_of(data + HEADER, length, 0, 0);
    bson_t document;
    if (sl_exchange_check_body(body, length, &document)) {
        require(document.len == length - 5, "the document fills the body");
        require(walk(&document, 1) <= length, "elements have bytes of their own");
    }
    free(body);
    return 0;
}
