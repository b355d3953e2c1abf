// SPDX-License-Identifier: Apache-2.0
//
// The makes and models in use: each text is stored once and identified by a number, so that records
// and tallies contain only numbers.
#ifndef DATAGEN_MOT_NAMES_H
#define DATAGEN_MOT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAME_BYTES = 56 };

// A text, or a pair of texts: a model belongs to a make, a make to nothing.
struct name {
    uint32_t owner; // number of the make, for a model
    uint8_t length;
    char text[NAME_BYTES];
};

// Names numbered from 0 in the order in which they were added.
struct name_set {
    struct name *items;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; // hash table of number + 1; 0 is free
    uint32_t slot_count;
};

// Every make, and every make and model. A zeroed struct is empty; mot_names_clear frees it.
struct mot_names {
    struct name_set makes;
    struct name_set models;
};

#define NAME_NONE UINT32_MAX

// The number of a make and model, which is added when new. Texts of up to NAME_BYTES bytes;
// longer ones are cut. NAME_NONE when memory ran out.
uint32_t mot_names_add(struct mot_names *names, const char *make, size_t make_length,
                       const char *model, size_t model_length);

void mot_names_clear(struct mot_names *names);

#endif
