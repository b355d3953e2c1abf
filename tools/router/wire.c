/* SPDX-License-Identifier: Apache-2.0 */

/* Parses and builds wire messages: see wire.h. */

#include "wire.h"

#include <endian.h>
#include <string.h>

/* Messages with unknown flag bits below 16 must be refused; bits above may be ignored. */
static const uint32_t REQUIRED_FLAGS = 0xffffu;
static const uint32_t KNOWN_FLAGS = WIRE_CHECKSUM_PRESENT | WIRE_MORE_TO_COME;

static uint32_t get_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return le32toh(value);
}

static void put_u32(uint8_t *bytes, uint32_t value) {
    value = htole32(value);
    memcpy(bytes, &value, sizeof value);
}

static void put_header(uint8_t *bytes, uint32_t length, int32_t request_id, int32_t response_to,
                       int32_t opcode) {
    put_u32(bytes, length);
    put_u32(bytes + 4, (uint32_t)request_id);
    put_u32(bytes + 8, (uint32_t)response_to);
    put_u32(bytes + 12, (uint32_t)opcode);
}

bool wire_parse_header(const uint8_t *bytes, size_t length, struct wire_header *header) {
    if (length < WIRE_HEADER_SIZE) {
        return false;
    }
    header->length = get_u32(bytes);
    header->request_id = (int32_t)get_u32(bytes + 4);
    header->response_to = (int32_t)get_u32(bytes + 8);
    header->opcode = (int32_t)get_u32(bytes + 12);
    return header->length >= WIRE_HEADER_SIZE && header->length <= WIRE_MAX_MESSAGE;
}

bool wire_view_document(const uint8_t *bytes, size_t length, bson_t *document) {
    bson_iter_t iter;
    if (length < 5 || !bson_init_static(document, bytes, length) ||
        !bson_iter_init(&iter, document)) {
        return false;
    }
    while (bson_iter_next(&iter)) {
    }
    return iter.err_off == 0;
}

/* CRC-32C (Castagnoli), which OP_MSG ends with when its flag says so. */
static uint32_t crc32c(const uint8_t *bytes, size_t length) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

/* The length of the document that begins at `bytes`, or 0 when it does not fit in `left`. */
static size_t document_length(const uint8_t *bytes, size_t left) {
    if (left < 5) {
        return 0;
    }
    uint32_t length = get_u32(bytes);
    return length >= 5 && length <= left ? length : 0;
}

bool wire_parse_message(const uint8_t *bytes, size_t length, struct wire_message *message) {
    if (!wire_parse_header(bytes, length, &message->header) || message->header.length != length ||
        message->header.opcode != OP_MSG || length < WIRE_PREFIX_SIZE) {
        return false;
    }
    message->flags = get_u32(bytes + WIRE_HEADER_SIZE);
    if (message->flags & REQUIRED_FLAGS & ~KNOWN_FLAGS) {
        return false;
    }
    size_t end = length;
    if (message->flags & WIRE_CHECKSUM_PRESENT) {
        if (end < WIRE_PREFIX_SIZE + 4 || crc32c(bytes, end - 4) != get_u32(bytes + end - 4)) {
            return false;
        }
        end -= 4;
    }

    const size_t sections = WIRE_HEADER_SIZE + 4;
    bool have_body = false;
    for (size_t at = sections; at < end;) {
        const size_t start = at;
        const uint8_t kind = bytes[at++];
        const size_t size = document_length(bytes + at, end - at);
        /* The size of a sequence includes its own 4 bytes and the NUL of its name: at least 5. */
        if (size == 0) {
            return false;
        }
        if (kind == 0) {
            if (have_body || !wire_view_document(bytes + at, size, &message->body)) {
                return false;
            }
            have_body = true;
            message->before = bytes + sections;
            message->before_length = start - sections;
            message->after = bytes + at + size;
            message->after_length = end - (at + size);
        } else if (kind != 1 || !memchr(bytes + at + 4, 0, size - 4)) {
            return false;
        }
        at += size;
    }
    return have_body;
}

bool wire_parse_query(const uint8_t *bytes, size_t length, struct wire_query *query) {
    if (!wire_parse_header(bytes, length, &query->header) || query->header.length != length ||
        query->header.opcode != OP_QUERY || length < WIRE_HEADER_SIZE + 4) {
        return false;
    }
    const uint8_t *name = bytes + WIRE_HEADER_SIZE + 4;
    const uint8_t *nul = memchr(name, 0, (size_t)(bytes + length - name));
    if (!nul) {
        return false;
    }
    /* After the name: numberToSkip and numberToReturn, 4 bytes each, then the document. */
    size_t at = (size_t)(nul + 1 - bytes) + 8;
    if (at > length) {
        return false;
    }
    size_t size = document_length(bytes + at, length - at);
    query->collection = (const char *)name;
    return size > 0 && wire_view_document(bytes + at, size, &query->body);
}

bool wire_build_reply(struct buffer *out, int32_t response_to, int32_t opcode,
                      const bson_t *reply) {
    const size_t prefix = opcode == OP_REPLY ? WIRE_HEADER_SIZE + 20 : WIRE_PREFIX_SIZE;
    const size_t length = prefix + reply->len;
    if (!buffer_reserve(out, length)) {
        return false;
    }
    memset(out->data, 0, prefix);
    put_header(out->data, (uint32_t)length, 0, response_to, opcode);
    if (opcode == OP_REPLY) {
        put_u32(out->data + WIRE_HEADER_SIZE, 8u);      /* flags: AwaitCapable */
        put_u32(out->data + WIRE_HEADER_SIZE + 16, 1u); /* one document */
    }
    memcpy(out->data + prefix, bson_get_data(reply), reply->len);
    out->length = length;
    return true;
}

int wire_gather(const bson_t *body, int32_t request_id, const struct wire_message *original,
                uint8_t prefix[WIRE_PREFIX_SIZE], struct iovec parts[4]) {
    const size_t before = original ? original->before_length : 0;
    const size_t after = original ? original->after_length : 0;
    const size_t length = WIRE_PREFIX_SIZE + body->len + before + after;
    if (length > WIRE_MAX_MESSAGE) {
        return 0;
    }
    /* Section kind 0 is always written first: the protocol allows any order. */
    put_header(prefix, (uint32_t)length, request_id, 0, OP_MSG);
    put_u32(prefix + WIRE_HEADER_SIZE, 0u);
    prefix[WIRE_PREFIX_SIZE - 1] = 0;

    int count = 0;
    parts[count++] = (struct iovec){prefix, WIRE_PREFIX_SIZE};
    parts[count++] = (struct iovec){(void *)(uintptr_t)bson_get_data(body), body->len};
    if (before > 0) {
        parts[count++] = (struct iovec){(void *)(uintptr_t)original->before, before};
    }
    if (after > 0) {
        parts[count++] = (struct iovec){(void *)(uintptr_t)original->after, after};
    }
    return count;
}
