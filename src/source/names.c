/* SPDX-License-Identifier: Apache-2.0 */
/* Many short strings in few allocations: one behind the other in chunks that never move. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

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
