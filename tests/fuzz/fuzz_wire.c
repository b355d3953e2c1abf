/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the local router's message reader. The parts of an accepted message lie inside the input,
 * and the message that is forwarded for it is accepted again, with the same command and
 * documents. */

#include "../../tools/router/stream.c"
#include "../../tools/router/wire.c"
#include "check.h"

static void check_forwarding(const uint8_t *bytes, size_t length,
                             const struct wire_message *message) {
    uint8_t prefix[WIRE_PREFIX_SIZE];
    struct iovec parts[4];
    struct wire_message again;
    struct buffer whole = {0};
    require(message->before >= bytes && message->after + message->after_length <= bytes + length,
            "the parts are inside the input");
    const int count = wire_gather(&message->body, 1, message, prefix, parts);
    require(count > 0 && buffer_reserve(&whole, length), "the message can be gathered");
    for (int i = 0; i < count; i++) {
        require(whole.length + parts[i].iov_len <= length, "the message does not grow");
        memcpy(whole.data + whole.length, parts[i].iov_base, parts[i].iov_len);
        whole.length += parts[i].iov_len;
    }
    require(wire_parse_message(whole.data, whole.length, &again) &&
                bson_equal(&again.body, &message->body) && again.before_length == 0 &&
                again.after_length == message->before_length + message->after_length,
            "the forwarded message has the same command and documents");
    buffer_destroy(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_header header;
    struct wire_message message;
    struct wire_query query;
    /* An allocation of exactly this size, so that the address sanitizer detects reads beyond it. */
    uint8_t *bytes = copy_of(data, size, 0, 0);
    /* Mutation rarely produces a correct length, so it is corrected. */
    if (size >= WIRE_HEADER_SIZE)
        put_u32(bytes, (uint32_t)size);
    wire_parse_header(bytes, size, &header);
    if (wire_parse_message(bytes, size, &message))
        check_forwarding(bytes, size, &message);
    if (wire_parse_query(bytes, size, &query))
        require(strlen(query.collection) < size, "the collection's name is inside the input");
    free(bytes);
    return 0;
}
