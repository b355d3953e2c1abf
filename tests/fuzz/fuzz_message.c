/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the check of messages before the driver reads them. The input is a message with its
 * header, possibly compressed. In an accepted one, every document can be read as the driver does,
 * without a further check, except that old binary data may end the reading of a stored one. */
#include "cluster/internal.h"
#include "documents.h"

#define LARGE_BYTE 0x80 /* no message above 8 MiB is decompressed here, because of the time */

static void walk(const bson_t *document, unsigned level) {
    bson_iter_t iter;
    require(bson_iter_init(&iter, document), "a document can be read");
    while (bson_iter_next(&iter)) {
        bson_t inner;
        uint32_t length = 0;
        const uint8_t *bytes = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&iter))
            bson_iter_document(&iter, &length, &bytes);
        else if (BSON_ITER_HOLDS_ARRAY(&iter))
            bson_iter_array(&iter, &length, &bytes);
        else
            continue;
        require(bson_init_static(&inner, bytes, length), "an embedded document is complete");
        walk(&inner, level + 1);
    }
    require(iter.err_off == 0 || level >= SL_STORED_LEVEL, "all elements can be read");
}

static void check(const uint8_t *message, size_t length) {
    char why[SL_MESSAGE_WHY] = "";
    bson_t body;
    if (!sl_message_check(message, length, why)) {
        require(why[0] && memchr(why, '\0', sizeof why), "a refusal has a reason");
        return;
    }
    size_t start = message[12] == 1 ? 36 : 21;
    require(length >= start + 5 && bson_init_static(&body, message + start, length - start),
            "the body fills the message");
    walk(&body, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[SL_MESSAGE_WHY] = "";
    size_t length;
    uint8_t *plain = NULL;
    if (size < SL_MESSAGE_HEADER)
        return 0;
    if (sl_message_length(data, &length, why))
        require(length > SL_MESSAGE_HEADER && length <= SL_MESSAGE_MAX, "the length has limits");
    /* An allocation of exactly this size, so that the address sanitizer detects reads beyond it. */
    uint8_t *message = copy_of(data, size, 0, 0);
    if (size >= 24 && (message[23] != 0 || message[22] > LARGE_BYTE))
        message[23] = message[22] = 0;
    if (sl_message_expand(message, size, &plain, &length, why))
        check(plain ? plain : message, plain ? length : size);
    else
        require(!plain && why[0], "a refusal has a reason");
    free(plain);
    free(message);
    return 0;
}
