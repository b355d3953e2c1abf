/* SPDX-License-Identifier: Apache-2.0 */
/* Extended JSON: creates parsers, converts one document, moves its `_id` to the front. */
#include "extjson_parser.h"

#include <stdlib.h>

_Static_assert(SL_EXTJSON_MARGIN >= 1 + 64 + 1 + 4 + 64 + 1 + SL_EXTJSON_DEPTH_MAX,
               "an element, and the ends of all documents around it, fit into the margin");

static const extjson_kernel *const kernels[] = {
#if defined(__x86_64__)
    &sl_extjson_avx512, &sl_extjson_avx2, &sl_extjson_sse2,
#elif defined(__aarch64__)
    &sl_extjson_neon,
#endif
    &sl_extjson_portable};

bool sl_extjson_create(const char *name, sl_utf8_check *utf8_valid, sl_extjson **parser,
                       sl_error *error) {
    sl_extjson *x = calloc(1, sizeof *x);
    *parser = x;
    if (!x || !sl_extjson_keys_init(x)) {
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
        (size_t)(x->limit + SL_EXTJSON_MARGIN - spare) < behind)
        return false;
    memcpy(spare, middle, behind);
    memmove(start + behind, start, before);
    memcpy(start, spare, behind);
    return true;
}

/* Moves the element `_id` to the front, in place of the added _id. */
static bool move_id(sl_extjson *x, uint8_t **written) {
    uint8_t *first = x->base + 4, *own = x->base + x->own_id;
    uint8_t *end = x->own_id_end > 0 ? x->base + x->own_id_end : *written - 1;
    if (own == first)
        return true;
    if (!sl_extjson_exchange(x, first, own, end, *written))
        return false;
    if (x->id) {
        const size_t added = SL_BSON_HEAD_BYTES - 4;
        uint8_t *behind = first + (end - own);
        memmove(behind, behind + added, (size_t)(*written - behind) - added);
        *written -= added;
        sl_bson_put_int32(x->base, (int32_t)(*written - x->base));
    }
    return true;
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
    sl_extjson_keys_begin(x);
    uint8_t *at = to;
    const char *p = x->kernel->document(x, text + 1, &at, 0);
    if (p && x->own_id > 0 && !move_id(x, &at))
        x->no_room = true;
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
