/* SPDX-License-Identifier: Apache-2.0 */
#include "embed_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "util/hash.h"
#include "util/private_file.h"

#define PATH_ROOM 640

struct sl_store {
    sl_store_facts facts;
    const uint8_t *groups;
    const uint64_t *index;
    _Atomic uint64_t *used;
    size_t index_bytes, used_bytes;
};

/* ---- "complete" ---- */

static bool damaged(const char *path, const char *why, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s: %s; start the load again, with another --work-dir", path, why);
}

bool sl_store_read_facts(const char *folder, bool *there, sl_store_facts *facts, sl_error *error) {
    char path[PATH_ROOM];
    bson_t *document;
    snprintf(path, sizeof path, "%s/complete", folder);
    *there = access(path, F_OK) == 0;
    if (!*there)
        return true;
    if (!sl_json_read_private(path, &document, error))
        return false;
    *facts = (sl_store_facts){.format = (uint64_t)sl_look_int64(document, "format", 0),
                              .records = (uint64_t)sl_look_int64(document, "records", 0),
                              .rejects = (uint64_t)sl_look_int64(document, "rejects", 0),
                              .not_loaded = (uint64_t)sl_look_int64(document, "notLoaded", 0),
                              .left_out = (uint64_t)sl_look_int64(document, "leftOut", 0),
                              .without_key = (uint64_t)sl_look_int64(document, "withoutKey", 0),
                              .too_many = (uint64_t)sl_look_int64(document, "tooMany", 0),
                              .keys = (uint64_t)sl_look_int64(document, "keys", 0),
                              .bits = (uint64_t)sl_look_int64(document, "bits", 0),
                              .group_bytes = (uint64_t)sl_look_int64(document, "groupBytes", 0)};
    snprintf(facts->identity, sizeof facts->identity, "%s", sl_look_string(document, "identity"));
    snprintf(facts->letters, sizeof facts->letters, "%s", sl_look_string(document, "letters"));
    bson_destroy(document);
    if (facts->format != SL_STORE_FORMAT)
        *facts = (sl_store_facts){.format = facts->format};
    return facts->bits <= 40 || damaged(path, "its numbers are wrong", error);
}

/* ---- opening ---- */

/* Maps a file of exactly this length. Returns NULL with error, or when the length is 0. */
static void *map_file(const char *folder, const char *name, uint64_t length, int protection,
                      sl_error *error) {
    char path[PATH_ROOM];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool writable = (protection & PROT_WRITE) != 0;
    int file = sl_private_file_open(path, writable ? O_RDWR : O_RDONLY, error);
    if (file < 0)
        return NULL;
    void *bytes = NULL;
    if (fstat(file, &facts) != 0 || (uint64_t)facts.st_size != length) {
        damaged(path, "it has been truncated or replaced", error);
    } else if (length > 0) {
        bytes = mmap(NULL, length, protection, MAP_SHARED, file, 0);
        if (bytes == MAP_FAILED) {
            sl_error_errno(error, SL_EXIT_USAGE, "cannot map %s", path);
            bytes = NULL;
        }
    }
    close(file);
    return bytes;
}

/* Writes the file "used" with all bits 0. Its blocks are allocated, because a mapped file cannot
 * report that the disk is full. */
static bool create_used(const char *folder, size_t length, sl_error *error) {
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/used", folder);
    sl_private_file_remove(path);
    int file = sl_private_file_open(path, O_RDWR, error);
    if (file < 0)
        return false;
    errno = posix_fallocate(file, 0, (off_t)length);
    bool ok = (errno == 0 && fsync(file) == 0) ||
              sl_error_errno(error, SL_EXIT_USAGE, "cannot write %s", path);
    close(file);
    sl_private_parent_sync(path);
    return ok;
}

bool sl_store_open(const char *folder, const sl_store_facts *facts, sl_store_keys keys,
                   sl_store **store, sl_error *error) {
    sl_store *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the records to embed");
    made->facts = *facts;
    made->index_bytes = (((size_t)1 << facts->bits) + 1) * sizeof(uint64_t);
    made->used_bytes = ((size_t)facts->keys / 64 + 1) * sizeof(uint64_t);
    bool ok = keys != SL_STORE_UNUSED || create_used(folder, made->used_bytes, error);
    if (ok && facts->keys > 0) {
        made->groups = map_file(folder, "groups", facts->group_bytes, PROT_READ, error);
        ok = made->groups != NULL;
    }
    if (ok)
        made->index = map_file(folder, "index", made->index_bytes, PROT_READ, error);
    if (ok && made->index && keys != SL_STORE_READ_ONLY)
        made->used = map_file(folder, "used", made->used_bytes, PROT_READ | PROT_WRITE, error);
    ok = ok && made->index && (made->used || keys == SL_STORE_READ_ONLY);
    if (ok && made->index[(size_t)1 << facts->bits] != facts->group_bytes)
        ok = damaged(folder, "its index does not belong to its groups", error);
    if (ok && made->groups)
        madvise((void *)made->groups, facts->group_bytes, MADV_RANDOM);
    if (ok)
        *store = made;
    else
        sl_store_close(made);
    return ok;
}

void sl_store_close(sl_store *store) {
    if (!store)
        return;
    if (store->groups)
        munmap((void *)store->groups, store->facts.group_bytes);
    if (store->index)
        munmap((void *)store->index, store->index_bytes);
    if (store->used)
        munmap((void *)store->used, store->used_bytes);
    free(store);
}

/* ---- groups ---- */

static const sl_group *group_at(const sl_store *store, uint64_t offset) {
    return (const sl_group *)(const void *)(store->groups + offset);
}

static uint64_t bytes_of(const sl_group *group) {
    return sizeof *group + (((uint64_t)group->key_length + group->array_length + 7) & ~UINT64_C(7));
}

const sl_group *sl_store_find(const sl_store *store, const uint8_t *key, size_t length) {
    uint64_t hash = sl_hash(key, length);
    uint64_t entry = store->facts.bits ? hash >> (64 - store->facts.bits) : 0;
    uint64_t at = store->index[entry], end = store->index[entry + 1];
    while (at < end) {
        const sl_group *group = group_at(store, at);
        if (group->hash == hash && group->key_length == length &&
            memcmp(sl_group_key(group), key, length) == 0)
            return group;
        at += bytes_of(group);
    }
    return NULL;
}

const sl_group *sl_store_next(const sl_store *store, const sl_group *group) {
    uint64_t at = 0;
    if (group)
        at = (uint64_t)((const uint8_t *)group - store->groups) + bytes_of(group);
    return at < store->facts.group_bytes ? group_at(store, at) : NULL;
}

void sl_store_use(sl_store *store, const sl_group *group) {
    if (!store->used)
        return;
    _Atomic uint64_t *word = &store->used[group->ordinal / 64];
    uint64_t bit = (uint64_t)1 << (group->ordinal % 64);
    if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

bool sl_store_is_used(const sl_store *store, const sl_group *group) {
    uint64_t word = atomic_load_explicit(&store->used[group->ordinal / 64], memory_order_relaxed);
    return word >> (group->ordinal % 64) & 1;
}

bool sl_store_sync(sl_store *store, sl_error *error) {
    return msync((void *)store->used, store->used_bytes, MS_SYNC) == 0 ||
           sl_error_errno(error, SL_EXIT_USAGE, "cannot write which records are embedded");
}
