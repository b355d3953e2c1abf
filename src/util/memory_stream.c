/* SPDX-License-Identifier: Apache-2.0 */
/* A stream into memory, whose first failed allocation is kept until fclose. */
#include "memory_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory {
    char **text;
    size_t *length;
    char *bytes;
    size_t used, room;
    bool failed;
} memory;

static ssize_t on_write(void *cookie, const char *bytes, size_t count) {
    memory *to = cookie;
    if (to->room - to->used <= count) { /* room for a NUL too */
        size_t room = 2 * (to->used + count) + 256;
        char *more = to->failed ? NULL : realloc(to->bytes, room);
        if (!more) {
            to->failed = true;
            return 0;
        }
        to->bytes = more;
        to->room = room;
    }
    memcpy(to->bytes + to->used, bytes, count);
    to->used += count;
    return (ssize_t)count;
}

static int on_close(void *cookie) {
    memory *to = cookie;
    char nothing = '\0';
    bool ok = !to->failed && (to->bytes || on_write(to, &nothing, 0) == 0) && to->bytes;
    if (ok)
        to->bytes[to->used] = '\0';
    else
        free(to->bytes);
    *to->text = ok ? to->bytes : NULL;
    *to->length = ok ? to->used : 0;
    free(to);
    return ok ? 0 : -1;
}

FILE *sl_memory_stream(char **text, size_t *length) {
    memory *to = calloc(1, sizeof *to);
    *text = NULL;
    *length = 0;
    if (!to)
        return NULL;
    to->text = text;
    to->length = length;
    FILE *stream =
        fopencookie(to, "w", (cookie_io_functions_t){.write = on_write, .close = on_close});
    if (!stream)
        free(to);
    return stream;
}
