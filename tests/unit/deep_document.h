/* SPDX-License-Identifier: Apache-2.0 */
/* For tests against hostile input: a document so deeply nested that recursion overflows the
 * stack. */
#ifndef DEEP_DOCUMENT_H
#define DEEP_DOCUMENT_H

#include "unit.h"

#define DEEP_LEVELS 400000u

/* {NAME: {NAME: ... {}}}, with DEEP_LEVELS levels. Valid until the end of the test. */
static inline bson_t *deep_document(const char *name) {
    const uint32_t head = 4 + 1 + (uint32_t)strlen(name) + 1; /* length, type, name */
    const uint32_t total = DEEP_LEVELS * (head + 1) + 5;
    uint8_t *bytes = calloc(1, total), *at = bytes;
    assert_non_null(bytes);
    for (uint32_t level = 0; level <= DEEP_LEVELS; level++, at += head) {
        uint32_t length = BSON_UINT32_TO_LE((DEEP_LEVELS - level) * (head + 1) + 5);
        memcpy(at, &length, sizeof length);
        if (level < DEEP_LEVELS) {
            at[4] = BSON_TYPE_DOCUMENT;
            memcpy(at + 5, name, strlen(name));
        }
    }
    bson_t *document = bson_new_from_data(bytes, total);
    free(bytes);
    return unit_keep_bson(document);
}

/* {a: code with the scope {a: code with the scope ... {}}}, with DEEP_LEVELS levels. */
static inline bson_t *deep_code(void) {
    enum { HEAD = 4 + 3 + 4 + 4 + 1 }; /* length, type and name; length of value and code */
    const uint32_t total = DEEP_LEVELS * (HEAD + 1) + 5;
    uint8_t *bytes = calloc(1, total), *at = bytes;
    assert_non_null(bytes);
    for (uint32_t level = 0; level <= DEEP_LEVELS; level++, at += HEAD) {
        uint32_t length = (DEEP_LEVELS - level) * (HEAD + 1) + 5;
        const uint32_t numbers[] = {BSON_UINT32_TO_LE(length), BSON_UINT32_TO_LE(length - 8),
                                    BSON_UINT32_TO_LE(1)};
        memcpy(at, &numbers[0], 4);
        if (level < DEEP_LEVELS) {
            at[4] = BSON_TYPE_CODEWSCOPE;
            at[5] = 'a';
            memcpy(at + 7, &numbers[1], 8);
        }
    }
    bson_t *document = bson_new_from_data(bytes, total);
    free(bytes);
    return unit_keep_bson(document);
}

#endif
