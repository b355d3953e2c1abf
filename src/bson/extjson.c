/* SPDX-License-Identifier: Apache-2.0 */
/* Extended JSON: creates parsers, converts one document, moves its `_id` to the front, detects
 * duplicate keys. */
#include "extjson_parser.h"

#include <stdlib.h>
#include <sys/random.h>

_Static_assert(SL_EXTJSON_MARGIN >= 1 + 64 + 1 + 4 + 64 + 1 + SL_EXTJSON_DEPTH_MAX,
               "an element, and the ends of all documents around it, fit into the margin");

static const extjson_kernel *const kernels[] = {
#if defined(__x86_64__)
    &sl_extjson_avx2,
#elif defined(__aarch64__)
    &sl_extjson_neon,
#endif
    &sl_extjson_portable};

/* ---- keys ---- */

/* x->slots is a hash table with open addressing. It contains the keys of the document that is being
 * read and of all documents within it. So a duplicate key is detected in constant time, even among
 * millions of keys.
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

#define SLOTS_FIRST 256u
/* If more keys are not predicted, plus so many for every 16 documents, the documents have little in
 * common, and keys are not predicted any more. */
#define UNPREDICTED_MAX 128u

/* At this many keys the table is doubled. */
static uint32_t limit_of(uint32_t slots) {
    return slots / 4 * 3;
}

static bool keys_init(sl_extjson *x) {
    if (getrandom(&x->seed, sizeof x->seed, 0) != sizeof x->seed)
        x->seed = (uint64_t)(uintptr_t)x;
    sl_bson_headers_init(&x->headers, SL_BSON_HEADERS, '"');
    x->slots = calloc(SLOTS_FIRST, sizeof *x->slots);
    x->slot_mask = SLOTS_FIRST - 1;
    x->keys_limit = limit_of(SLOTS_FIRST);
    return x->slots != NULL;
}

static void keys_begin(sl_extjson *x) {
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

/* ---- parsers, documents ---- */

bool sl_extjson_create(const char *name, sl_utf8_check *utf8_valid, sl_extjson **parser,
                       sl_error *error) {
    sl_extjson *x = calloc(1, sizeof *x);
    *parser = x;
    if (!x || !keys_init(x)) {
        sl_extjson_destroy(x);
        *parser = NULL;
        return sl_error_memory(error, "reading JSON");
    }
    x->utf8_valid = utf8_valid;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        x->kernel = kernels[i]; /* the last kernel works on any processor */
        if (strcmp(kernels[i]->name, name) == 0)
            break;
    }
    return true;
}

void sl_extjson_destroy(sl_extjson *parser) {
    if (!parser)
        return;
    free(parser->slots);
    free(parser);
}

const sl_extjson_fault *sl_extjson_why(const sl_extjson *parser) {
    return &parser->fault;
}

const char *sl_extjson_expected(sl_extjson *x, const char *at, const char *reason) {
    if (at >= x->end || !reason)
        return extjson_fail(x, x->end, "the text ends before the document is complete");
    return extjson_fail(x, at, reason);
}

bool sl_extjson_exchange(sl_extjson *x, uint8_t *start, uint8_t *middle, uint8_t *end,
                         uint8_t *spare) {
    size_t before = (size_t)(middle - start), behind = (size_t)(end - middle);
    if (spare > x->limit + SL_EXTJSON_MARGIN ||
        (size_t)(x->limit + SL_EXTJSON_MARGIN - spare) < behind) {
        x->no_room = true;
        return false;
    }
    memcpy(spare, middle, behind);
    memmove(start + behind, start, before);
    memcpy(start, spare, behind);
    return true;
}

/* Moves the element `_id` to the front, in place of the added _id. */
static void move_id(sl_extjson *x, uint8_t **written) {
    uint8_t *first = x->base + 4, *own = x->base + x->own_id;
    uint8_t *end = x->own_id_end > 0 ? x->base + x->own_id_end : *written - 1;
    if (own == first)
        return;
    if (!sl_extjson_exchange(x, first, own, end, *written))
        return;
    if (x->id) {
        const size_t added = SL_BSON_HEAD_BYTES - 4;
        uint8_t *behind = first + (end - own);
        memmove(behind, behind + added, (size_t)(*written - behind) - added);
        *written -= added;
        sl_bson_put_int32(x->base, (int32_t)(*written - x->base));
    }
}

sl_extjson_status sl_extjson_document(sl_extjson *x, const char *text, const char *end,
                                      const int64_t *id, uint8_t *to, uint8_t *limit,
                                      const char **after, uint8_t **written, bool *own_id) {
    const size_t most = SL_BSON_DOCUMENT_MAX + 2 * SL_EXTJSON_MARGIN;
    size_t room = (size_t)(limit - to);
    if (room < 2 * SL_EXTJSON_MARGIN)
        return SL_EXTJSON_NO_ROOM;
    if (room > most)
        room = most;
    x->id = id;
    x->end = end;
    x->base = to;
    x->limit = to + room - SL_EXTJSON_MARGIN;
    x->own_id = x->own_id_end = 0;
    x->no_room = false;
    keys_begin(x);
    uint8_t *at = to;
    const char *p = x->kernel->document(x, text + 1, &at, 0);
    if (p && x->own_id > 0)
        move_id(x, &at);
    if (x->no_room && room < most)
        return SL_EXTJSON_NO_ROOM;
    if (x->no_room || (p && (size_t)(at - to) > SL_BSON_DOCUMENT_MAX)) {
        extjson_fail(x, text, "a document of more than 16 MiB");
        return SL_EXTJSON_INVALID;
    }
    if (!p)
        return SL_EXTJSON_INVALID;
    *after = p;
    *written = at;
    *own_id = x->own_id > 0;
    return SL_EXTJSON_OK;
}
