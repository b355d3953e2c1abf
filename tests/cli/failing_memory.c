/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: lets allocations fail.
 *
 * Allocations are counted from the beginning of main, in all threads. FAIL_AT=N lets the Nth one
 * fail, FAIL_LENGTH=M the M that begin with it (default 1). Without FAIL_AT none fails. When
 * main returns, the number of allocations is written to the file FAIL_COUNT, if it is given.
 *
 * Failures begin in main, since the dynamic linker and the constructors of the system's libraries
 * do not expect any. malloc of the C library stays the only allocator: free needs no wrapper. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static _Atomic bool begun;
static _Atomic unsigned long count;
static unsigned long first, length = 1;
static const char *count_path;

/* Counts an allocation. True when it must fail. */
static bool fails(void) {
    if (!atomic_load_explicit(&begun, memory_order_relaxed))
        return false;
    unsigned long number = atomic_fetch_add(&count, 1) + 1;
    if (first == 0 || number < first || number - first >= length)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) {
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes) {
    return fails() ? NULL : __libc_calloc(items, bytes);
}

void *realloc(void *memory, size_t bytes) {
    return fails() ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **result, size_t alignment, size_t bytes) {
    void *memory = fails() ? NULL : __libc_memalign(alignment, bytes);
    if (!memory)
        return ENOMEM;
    *result = memory;
    return 0;
}

/* ---- the beginning and the end of the program ---- */

static void write_count(void) {
    atomic_store(&begun, false);
    int file = count_path ? open(count_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    dprintf(file, "%lu\n", atomic_load(&count));
    close(file);
}

static int (*real_main)(int, char **, char **);

static int counted_main(int words, char **text, char **environment) {
    const char *at = getenv("FAIL_AT"), *most = getenv("FAIL_LENGTH");
    count_path = getenv("FAIL_COUNT");
    first = at ? strtoul(at, NULL, 10) : 0;
    length = most ? strtoul(most, NULL, 10) : 1;
    atomic_store(&begun, true);
    int code = real_main(words, text, environment);
    write_count();
    return code;
}

int __libc_start_main(int (*program)(int, char **, char **), int words, char **text,
                      void (*init)(void), void (*fini)(void), void (*end)(void), void *stack);

int __libc_start_main(int (*program)(int, char **, char **), int words, char **text,
                      void (*init)(void), void (*fini)(void), void (*end)(void), void *stack) {
    int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                 void (*)(void), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return start(counted_main, words, text, init, fini, end, stack);
}
