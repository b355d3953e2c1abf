/* SPDX-License-Identifier: Apache-2.0 */
/* Strings stored consecutively in chunks that never move; sets of paths; paths escaped for
 * messages. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
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

/* ---- sets of paths ---- */

#define FIRST_ROOM ((size_t)256)

/* The hash of a path's components, without empty ones and `.`; never 0. */
static uint64_t hash_of(const char *path) {
    uint64_t hash = SL_HASH_B;
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.'))
            hash = sl_hash_mix(hash ^ SL_HASH_A, sl_hash((const uint8_t *)path, length));
        path += length + (path[length] == '/');
    }
    return hash ? hash : 1;
}

/* The slot of a hash, or the free slot for it. The room is a power of two, with free slots. */
static uint64_t *slot_of(uint64_t *hashes, size_t room, uint64_t hash) {
    size_t at = hash & (room - 1);
    while (hashes[at] && hashes[at] != hash)
        at = (at + 1) & (room - 1);
    return &hashes[at];
}

/* Three quarters of the slots are used at most. */
static bool grow(sl_path_set *set) {
    if (set->count + 1 <= set->room / 4 * 3)
        return true;
    size_t room = set->room ? set->room * 2 : FIRST_ROOM;
    uint64_t *hashes = calloc(room, sizeof *hashes);
    if (!hashes)
        return false;
    for (size_t i = 0; i < set->room; i++) {
        if (set->hashes[i])
            *slot_of(hashes, room, set->hashes[i]) = set->hashes[i];
    }
    free(set->hashes);
    set->hashes = hashes;
    set->room = room;
    return true;
}

sl_path_added sl_path_set_add(sl_path_set *set, const char *path) {
    uint64_t hash = hash_of(path);
    if (!grow(set))
        return SL_PATH_NO_MEMORY;
    uint64_t *slot = slot_of(set->hashes, set->room, hash);
    if (*slot)
        return SL_PATH_KNOWN;
    if (set->count >= (set->most ? set->most : SL_PATH_SET_MOST))
        return SL_PATH_TOO_MANY;
    *slot = hash;
    set->count++;
    return SL_PATH_NEW;
}

bool sl_path_set_has(const sl_path_set *set, const char *path) {
    return set->count > 0 && *slot_of(set->hashes, set->room, hash_of(path)) != 0;
}

bool sl_path_same(const char *a, const char *b) {
    return hash_of(a) == hash_of(b);
}

void sl_path_set_clear(sl_path_set *set) {
    free(set->hashes);
    *set = (sl_path_set){0};
}

/* ---- paths ---- */

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
