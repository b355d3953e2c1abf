/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a document that is being read: a table with open addressing for all documents within
 * it, which detects a duplicate key in constant time, also in a document with millions of keys.
 *
 * The keys of most documents are not in this table but in x->headers, a table of all short keys so
 * far. Each entry of x->headers belongs to a path (the key of the embedded document, and the key in
 * it), so documents that are open at the same time have different entries, and the serial of the
 * last document in an entry reveals a duplicate key. Nothing is removed from the table, so a key is
 * either in this table or in the other one as long as a document is read. Keys that JSON can only
 * write with an escape are not in the table: it is compared with the text.
 *
 * A slot belongs to the current text if its serial is not below first_serial, so the table is not
 * cleared for each document. The hash has a random seed: texts with many colliding keys cannot be
 * prepared. */
#include "extjson_parser.h"

#include <stdlib.h>
#include <sys/random.h>

#define SLOTS_FIRST 256u
/* If more keys are not predicted, plus so many for every 16 documents, the documents have little in
 * common, and keys are not predicted any more. */
#define UNPREDICTED_MAX 128u

/* At this many keys the table is doubled. */
static uint32_t limit_of(uint32_t slots) {
    return slots / 4 * 3;
}

bool sl_extjson_keys_init(sl_extjson *x) {
    if (getrandom(&x->seed, sizeof x->seed, 0) != sizeof x->seed)
        x->seed = (uint64_t)(uintptr_t)x;
    sl_bson_headers_init(&x->headers, SL_BSON_HEADERS, '"');
    x->slots = calloc(SLOTS_FIRST, sizeof *x->slots);
    x->slot_mask = SLOTS_FIRST - 1;
    x->keys_limit = limit_of(SLOTS_FIRST);
    return x->slots != NULL;
}

void sl_extjson_keys_begin(sl_extjson *x) {
    if (x->serial > UINT32_MAX / 2) { /* one text has far fewer documents than the remaining
                                         serials */
        memset(x->slots, 0, ((size_t)x->slot_mask + 1) * sizeof *x->slots);
        sl_bson_headers_init(&x->headers, SL_BSON_HEADERS, '"');
        x->serial = 0;
    }
    bool helps = x->unpredicted < UNPREDICTED_MAX * (1 + x->documents / 16);
    x->top = helps ? &x->headers.none : NULL;
    x->documents += helps;
    x->first_serial = x->serial + 1;
    x->keys = 0;
    x->keys_limit = limit_of(x->slot_mask + 1);
}

bool sl_extjson_keys_grow(sl_extjson *x) {
    uint32_t count = (x->slot_mask + 1) * 2;
    extjson_slot *slots = calloc(count, sizeof *slots);
    if (!slots) {
        x->keys_limit = 0;
        return false;
    }
    for (uint32_t i = 0; i <= x->slot_mask; i++) {
        extjson_slot slot = x->slots[i];
        if (slot.serial < x->first_serial)
            continue;
        const uint8_t *key = x->base + slot.offset;
        size_t length = strlen((const char *)key);
        uint32_t at = (uint32_t)extjson_key_hash(x, key, length, slot.serial);
        while (slots[at & (count - 1)].serial != 0)
            at++;
        slots[at & (count - 1)] = slot;
    }
    free(x->slots);
    x->slots = slots;
    x->slot_mask = count - 1;
    x->keys_limit = limit_of(count);
    return true;
}

sl_bson_header *sl_extjson_find_key(sl_extjson *x, uint8_t *key, size_t length, bool escaped,
                                    const sl_bson_header *parent) {
    x->unpredicted++;
    for (size_t i = 0; escaped && i < length; i++) {
        if (key[i] < 0x20 || key[i] == '"' || key[i] == '\\')
            return NULL;
    }
    if (length + 2 > SL_BSON_HEADER_MAX)
        return NULL;
    key[-1] = key[length] = '"'; /* as in the text */
    sl_bson_header *header = sl_bson_headers_find(&x->headers, key - 1, parent);
    if (!header)
        header = sl_bson_headers_add(&x->headers, key - 1, length + 2, 0, parent);
    key[length] = 0;
    return header == &x->headers.other ? NULL : header;
}
