/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of libFuzzer, and checks for the fuzz targets. A failed check aborts the process,
 * which libFuzzer reports. */
#ifndef TESTS_FUZZ_CHECK_H
#define TESTS_FUZZ_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* `claim` is what should be true; it is printed when it is not. */
static inline void require(bool condition, const char *claim) {
    if (!condition) {
        fprintf(stderr, "check failed: %s\n", claim);
        abort();
    }
}

/* A copy, followed by `slack` bytes of the value `after`. These must not affect the result. The
 * address sanitizer detects accesses beyond them. The caller frees the copy. */
static inline void *copy_of(const void *bytes, size_t length, size_t slack, int after) {
    char *copy = malloc(length + slack > 0 ? length + slack : 1);
    require(copy != NULL, "allocation succeeds");
    if (length > 0)
        memcpy(copy, bytes, length);
    memset(copy + length, after, slack);
    return copy;
}

#define CHECK_TEXT(text)                                                                           \
    require(memchr((text), '\0', sizeof(text)) != NULL, #text " is NUL-terminated")

static inline void check_error(const sl_error *error) {
    require(error->code != SL_EXIT_OK && error->message[0], "a failure has a code and a message");
    CHECK_TEXT(error->message);
}

/* A stream for output that nothing reads. */
static inline FILE *null_stream(void) {
    static FILE *stream;
    if (!stream)
        stream = fopen("/dev/null", "w");
    require(stream != NULL, "/dev/null can be opened");
    return stream;
}

#endif
