/* SPDX-License-Identifier: Apache-2.0 */
/* Strings stored consecutively in chunks that never move; paths escaped for messages. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"

#define CHUNK_BYTES ((size_t)64 << 10)

struct sl_name_chunk {
    sl_name_chunk *before;
    size_t used, room;
    char bytes[];
};

const char *sl_names_add(sl_names *names, const char *name) {
    size_t size = strlen(name) + 1;
    sl_name_chunk *chunk = names->last;
    if (!chunk || chunk->room - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        *chunk = (sl_name_chunk){.before = names->last, .room = room};
        names->last = chunk;
    }
    char *copy = memcpy(chunk->bytes + chunk->used, name, size);
    chunk->used += size;
    return copy;
}

void sl_names_clear(sl_names *names) {
    while (names->last) {
        sl_name_chunk *before = names->last->before;
        free(names->last);
        names->last = before;
    }
}

char *sl_path_shown(const char *path, char out[SL_SHOWN_ROOM]) {
    size_t start = strlen(path), bytes = sizeof "...";
    while (start > 0) { /* backwards, while the escaped bytes fit */
        unsigned char byte = (unsigned char)path[start - 1];
        bytes += byte >= 0x20 && byte < 0x7F ? 1 : sizeof "\\xHH" - 1;
        if (bytes > SL_SHOWN_ROOM)
            break;
        start--;
    }
    size_t dots = start > 0 ? 3 : 0;
    memcpy(out, "...", dots);
    while (dots && ((unsigned char)path[start] & 0xC0) == 0x80) /* skip a partial character */
        start++;
    sl_text_printable(sl_text_of(path + start), out + dots, SL_SHOWN_ROOM - dots);
    return out;
}

const char *sl_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
