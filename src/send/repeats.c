/* SPDX-License-Identifier: Apache-2.0 */
/* Records with the same match fields: a table of hashes, of the match fields and of the first
 * document that had them. When it is full, it keeps the half of the keys whose hash has one more
 * leading zero, and only such keys are added then. With n leading zeros, a key counts for 2^n. */
#include "writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/bson_number.h"
#include "bson/bson_writer.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/text.h"

#define SLOTS ((size_t)1 << 19) /* 8 MiB */
#define FULL (SLOTS / 4 * 3)
#define AT_ONCE 256u /* documents that are hashed before the lock is taken */

typedef struct slot {
    uint64_t key; /* 0: empty */
    uint64_t document;
} slot;

struct sl_repeats {
    const sl_key_fields *keys;
    _Atomic unsigned zeros; /* of the keys in the table; 64: without memory, no more are added */
    pthread_mutex_t lock;   /* of what follows, and of changes of `zeros` */
    slot *slots;
    size_t used;
    uint64_t count;
    bson_t example;
};

sl_repeats *sl_repeats_create(const sl_key_fields *keys) {
    sl_repeats *made = sl_zeroed(1, sizeof *made);
    slot *slots = calloc(SLOTS, sizeof *slots);
    if (!made || !slots) {
        free(made);
        free(slots);
        return NULL;
    }
    made->keys = keys;
    made->slots = slots;
    bson_init(&made->example);
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

void sl_repeats_destroy(sl_repeats *repeats) {
    if (!repeats)
        return;
    pthread_mutex_destroy(&repeats->lock);
    bson_destroy(&repeats->example);
    free(repeats->slots);
    free(repeats);
}

static bool is_chosen(uint64_t key, unsigned zeros) {
    return zeros == 0 || (zeros < 64 && key >> (64 - zeros) == 0);
}

/* The slot of the key, or the empty slot for it. */
static slot *slot_of(slot *slots, uint64_t key) {
    size_t at = key & (SLOTS - 1);
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & (SLOTS - 1);
    return &slots[at];
}

static void thin_out(sl_repeats *repeats) {
    slot *kept = calloc(SLOTS, sizeof *kept);
    repeats->zeros = kept ? repeats->zeros + 1 : 64;
    if (!kept)
        return;
    repeats->used = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        const slot *one = &repeats->slots[i];
        if (one->key && is_chosen(one->key, repeats->zeros)) {
            *slot_of(kept, one->key) = *one;
            repeats->used++;
        }
    }
    free(repeats->slots);
    repeats->slots = kept;
}

/* A number in one form, as servers match equal numbers of all types. */
static sl_number number_at(const uint8_t *document, const char *path, const uint8_t *value) {
    const char *dot = strrchr(path, '.');
    uint32_t name = (uint32_t)strlen(dot ? dot + 1 : path);
    bson_iter_t at;
    if (dot && value[-2 - (ptrdiff_t)name] == '.') /* no type: the name is the path */
        name = (uint32_t)strlen(path);
    if (!bson_iter_init_from_data_at_offset(&at, document, sl_bson_length(document),
                                            (uint32_t)(value - document) - name - 2, name))
        return (sl_number){0};
    return sl_number_of(&at);
}

static uint64_t key_of(const sl_key_names *match, const uint8_t *document) {
    uint64_t hash = SL_HASH_A;
    for (size_t i = 0; i < match->count; i++) {
        uint8_t type = 0;
        const uint8_t *value = NULL;
        size_t length = 0;
        sl_number number = {0};
        if (sl_key_field_find(document, match->names[i], &type, &value, &length))
            number = number_at(document, match->names[i], value);
        if (number.kind) {
            type = (uint8_t)(0x80 + number.kind);
            value = (const uint8_t *)&number.value;
            length = number.kind == SL_NUMBER_DECIMAL ? sizeof number.value.decimal
                                                      : sizeof number.value.integer;
        }
        hash = sl_hash_mix(hash ^ sl_hash_text((const char *)value, length), SL_HASH_B ^ type);
    }
    return hash ? hash : 1;
}

static void note_example(sl_repeats *repeats, const bson_t *document) {
    for (size_t i = 0; i < repeats->keys->match.count; i++) {
        const char *name = repeats->keys->match.names[i];
        bson_iter_t value;
        if (sl_look_set(document, name, &value))
            bson_append_iter(&repeats->example, name, -1, &value);
    }
}

static void add(sl_repeats *repeats, slot one, const bson_t *document) {
    slot *found = slot_of(repeats->slots, one.key);
    if (found->key && found->document != one.document) {
        if (repeats->count == 0)
            note_example(repeats, document);
        repeats->count += (uint64_t)1 << repeats->zeros;
    } else if (!found->key) {
        *found = one;
        if (++repeats->used == FULL)
            thin_out(repeats);
    }
}

void sl_repeats_add(sl_repeats *repeats, const bson_t *documents, uint32_t count) {
    slot hashed[AT_ONCE];
    for (uint32_t first = 0, here; first < count; first += here) {
        here = count - first < AT_ONCE ? count - first : AT_ONCE;
        for (uint32_t i = 0; i < here; i++) {
            const uint8_t *bytes = bson_get_data(&documents[first + i]);
            hashed[i] = (slot){.key = key_of(&repeats->keys->match, bytes)};
            if (is_chosen(hashed[i].key, repeats->zeros))
                hashed[i].document = sl_hash_text((const char *)bytes, documents[first + i].len);
        }
        pthread_mutex_lock(&repeats->lock);
        for (uint32_t i = 0; i < here; i++) {
            if (is_chosen(hashed[i].key, repeats->zeros))
                add(repeats, hashed[i], &documents[first + i]);
        }
        pthread_mutex_unlock(&repeats->lock);
    }
}

uint64_t sl_repeats_count(const sl_repeats *repeats, bool *exact, char *example, size_t room) {
    char *json = sl_document_json(&repeats->example);
    sl_text_printable(sl_text_of(json ? json : ""), example, room);
    bson_free(json);
    *exact = repeats->zeros == 0;
    return repeats->count;
}
