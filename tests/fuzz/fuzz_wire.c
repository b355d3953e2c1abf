/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fuzzes the local router's message reader. The parts of an accepted message lie inside the input,
 * and the message that is forwarded for it is accepted again, with the same command and
 * documents. */

#include "../../tools/router/stream.c"
#include "../../tools/router/wire.c"

static void check(bool condition) {
    if (!condition) {
        abort();
    }
}

static void check_forwarding(const uint8_t *bytes, size_t length,
                             const struct wire_message *message) {
    uint8_t prefix[WIRE_PREFIX_SIZE];
    struct iovec parts[4];
    struct wire_message again;
    struct buffer whole = {0};
    check(message->before >= bytes && message->after + message->after_length <= bytes + length);
    const int count = wire_gather(&message->body, 1, message, prefix, parts);
    check(count > 0 && buffer_reserve(&whole, length));
    for (int i = 0; i < count; i++) {
        check(whole.length + parts[i].iov_len <= length);
        memcpy(whole.data + whole.length, parts[i].iov_base, parts[i].iov_len);
        whole.length += parts[i].iov_len;
    }
    check(wire_parse_message(whole.data, whole.length, &again));
    check(bson_equal(&again.body, &message->body) && again.before_length == 0);
    check(again.after_length == message->before_length + message->after_length);
    buffer_destroy(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_header header;
    struct wire_message message;
    struct wire_query query;
    /* An allocation of exactly this size, so that the address sanitizer detects reads beyond it. */
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (!bytes) {
        return 0;
    }
    memcpy(bytes, data, size);
    if (size >= WIRE_HEADER_SIZE) {
        /* Mutation rarely produces a correct length field, so it is corrected. */
        put_u32(bytes, (uint32_t)size);
    }
    wire_parse_header(bytes, size, &header);
    if (wire_parse_message(bytes, size, &message)) {
        check_forwarding(bytes, size, &message);
    }
    if (wire_parse_query(bytes, size, &query)) {
        check(strlen(query.collection) < size);
    }
    free(bytes);
    return 0;
}
