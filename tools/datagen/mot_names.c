// SPDX-License-Identifier: Apache-2.0
//
// The set of makes and models: arrays found through hash tables with linear probing.
#include <stdlib.h>
#include <string.h>

#include "mot.h"

static uint32_t name_hash(uint32_t owner, const char *text, size_t length) {
    uint32_t hash = 2166136261u ^ owner * 2654435761u; // FNV-1a, started from the owner
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    }
    return hash;
}

// The slot that holds the name, or the free one where it belongs.
static uint32_t *find_slot(const struct name_set *set, uint32_t owner, const char *text,
                           size_t length) {
    uint32_t mask = set->slot_count - 1;
    for (uint32_t i = name_hash(owner, text, length) & mask;; i = (i + 1) & mask) {
        uint32_t number = set->slots[i];
        if (number == 0) {
            return &set->slots[i];
        }
        const struct name *name = &set->items[number - 1];
        if (name->owner == owner && name->length == length &&
            memcmp(name->text, text, length) == 0) {
            return &set->slots[i];
        }
    }
}

// Doubles the arrays; the hash table has two slots for each name.
static bool grow(struct name_set *set) {
    uint32_t capacity = set->capacity == 0 ? 1024 : set->capacity * 2;
    struct name *items = realloc(set->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    set->items = items;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(set->slots);
    set->slots = slots;
    set->slot_count = capacity * 2;
    set->capacity = capacity;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct name *name = &items[i];
        *find_slot(set, name->owner, name->text, name->length) = i + 1;
    }
    return true;
}

static uint32_t name_set_add(struct name_set *set, uint32_t owner, const char *text,
                             size_t length) {
    if (length > NAME_BYTES) {
        length = NAME_BYTES;
    }
    if (set->count == set->capacity && !grow(set)) {
        return NAME_NONE;
    }
    uint32_t *slot = find_slot(set, owner, text, length);
    if (*slot == 0) {
        struct name *name = &set->items[set->count];
        name->owner = owner;
        name->length = (uint8_t)length;
        memcpy(name->text, text, length);
        *slot = ++set->count;
    }
    return *slot - 1;
}

uint32_t mot_names_add(struct mot_names *names, const char *make, size_t make_length,
                       const char *model, size_t model_length) {
    uint32_t owner = name_set_add(&names->makes, 0, make, make_length);
    return owner == NAME_NONE ? NAME_NONE
                              : name_set_add(&names->models, owner, model, model_length);
}

void mot_names_clear(struct mot_names *names) {
    free(names->makes.items);
    free(names->makes.slots);
    free(names->models.items);
    free(names->models.slots);
    *names = (struct mot_names){0};
}
