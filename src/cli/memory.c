/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation functions of libbson that exit when memory is exhausted. Nothing is allocated or
 * locked after that, because the thread may hold any lock. An exit before the end of main comes
 * from libarchive, which has printed the reason. */
#include "memory.h"

#include <bson/bson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"

static void *checked(void *memory, size_t bytes) {
    static const char text[] =
        "shardload: out of memory while encoding documents or messages; use fewer threads or "
        "smaller batches\n";
    if (memory || bytes == 0)
        return memory;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(SL_EXIT_RESOURCES);
}

static void *allocate(size_t bytes) {
    return checked(malloc(bytes), bytes);
}

static void *allocate_zero(size_t count, size_t bytes) {
    return checked(calloc(count, bytes), count && bytes);
}

static void *reallocate(void *memory, size_t bytes) {
    return checked(realloc(memory, bytes), bytes);
}

#if BSON_CHECK_VERSION(1, 23, 0)
static void *allocate_aligned(size_t alignment, size_t bytes) {
    return checked(aligned_alloc(alignment, bytes), bytes);
}
#endif

static bool ended; /* main is about to return */

static void on_exit_of_a_library(void) {
    if (!ended)
        _exit(SL_EXIT_RESOURCES);
}

void sl_memory_begin(void) {
    static const bson_mem_vtable_t functions = {
        .malloc = allocate,
        .calloc = allocate_zero,
        .realloc = reallocate,
        .free = free,
#if BSON_CHECK_VERSION(1, 23, 0)
        .aligned_alloc = allocate_aligned,
#endif
    };
    bson_mem_set_vtable(&functions);
    atexit(on_exit_of_a_library);
}

int sl_memory_end(int code) {
    ended = true;
    return code;
}
