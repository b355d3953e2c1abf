/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of an update or delete command:
 *
 *   upsert   {q: <match>, u: <document>, upsert: true}
 *   merge    {q: <match>, u: {$set: <the fields that do not match>}, upsert: true}
 *   replace  {q: <match>, u: <document>}
 *   delete   {q: <match>, limit: 1}
 *
 * Each affects at most one document. Executing one twice has the same effect as executing it once,
 * because the match fields identify a document (sl_check_match). */
#include "statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"

#define OVERHEAD 256u /* bytes of a statement besides names, values and the document */

static uint8_t *begin_document(uint8_t *to, const char *key, uint8_t **start) {
    *start = sl_bson_put_key(to, SL_BSON_DOCUMENT, key);
    return sl_bson_begin(*start);
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t length) {
    memcpy(to, bytes, length);
    return to + length;
}

/* The maximum number of bytes of a document's match. */
static size_t match_room(const sl_key_names *match, const uint8_t *document) {
    size_t room = OVERHEAD;
    for (size_t i = 0; i < match->count; i++) {
        uint8_t type;
        const uint8_t *value;
        size_t length = 0;
        sl_key_field_find(document, match->names[i], &type, &value, &length);
        room += strlen(match->names[i]) + length + 32;
    }
    return room;
}

static uint8_t *put_match(uint8_t *to, const sl_key_names *match, const uint8_t *document) {
    uint8_t *start, *inner;
    to = begin_document(to, "q", &start);
    for (size_t i = 0; i < match->count; i++) {
        uint8_t type;
        const uint8_t *value;
        size_t length;
        if (!sl_key_field_find(document, match->names[i], &type, &value, &length))
            continue; /* the format has rejected records without this field */
        to = begin_document(to, match->names[i], &inner);
        to = sl_bson_put_key(to, (sl_bson_type)type, "$eq");
        to = put_bytes(to, value, length);
        to = sl_bson_end(inner, to);
    }
    return sl_bson_end(start, to);
}

static bool is_match(const sl_key_names *match, const char *key) {
    for (size_t i = 0; i < match->count; i++) {
        if (strcmp(match->names[i], key) == 0)
            return true;
    }
    return false;
}

/* {$set: {...}}: with upsert the server sets the match fields from the match. */
static uint8_t *put_set(uint8_t *to, const sl_key_names *match, const bson_t *document) {
    uint8_t *start, *set;
    bson_iter_t iter;
    const uint8_t *bytes = bson_get_data(document);
    uint32_t from = 4, next;
    to = begin_document(to, "u", &start);
    to = begin_document(to, "$set", &set);
    for (bool more = bson_iter_init(&iter, document) && bson_iter_next(&iter); more; from = next) {
        bool skip = is_match(match, bson_iter_key(&iter));
        more = bson_iter_next(&iter);
        /* An iterator's offset is the offset of its element's type. */
        next = more ? bson_iter_offset(&iter) : document->len - 1;
        if (!skip)
            to = put_bytes(to, bytes + from, next - from);
    }
    return sl_bson_end(start, sl_bson_end(set, to));
}

static uint8_t *put_flag(uint8_t *to, const char *key) {
    to = sl_bson_put_key(to, SL_BSON_BOOL, key);
    *to = 1;
    return to + 1;
}

static uint8_t *put_statement(uint8_t *to, const sl_key_fields *keys, const bson_t *document) {
    const sl_mode_row *mode = &sl_modes[keys->mode];
    uint8_t *start = to;
    to = put_match(sl_bson_begin(to), &keys->match, bson_get_data(document));
    if (mode->removes) {
        to = sl_bson_put_int32(sl_bson_put_key(to, SL_BSON_INT32, "limit"), 1);
        return sl_bson_end(start, to);
    }
    if (mode->sets_fields)
        to = put_set(to, &keys->match, document);
    else
        to = put_bytes(sl_bson_put_key(to, SL_BSON_DOCUMENT, "u"), bson_get_data(document),
                       document->len);
    if (mode->creates)
        to = put_flag(to, "upsert");
    return sl_bson_end(start, to);
}

static bool make_room(sl_statements *statements, size_t need) {
    if (need <= statements->room)
        return true;
    size_t room = statements->room * 2 > need ? statements->room * 2 : need;
    uint8_t *bytes = realloc(statements->bytes, room);
    if (!bytes)
        return false;
    statements->bytes = bytes;
    statements->room = room;
    return true;
}

bool sl_statements_write(sl_statements *statements, const sl_key_fields *keys, const bson_t *head,
                         const bson_t *documents, const uint32_t *places, uint32_t count,
                         uint32_t *taken, bson_t *command) {
    size_t used = head->len - 1; /* without its final NUL */
    if (!make_room(statements, used + OVERHEAD))
        return false;
    memcpy(statements->bytes, bson_get_data(head), used);
    uint8_t *to =
        sl_bson_put_key(statements->bytes + used, SL_BSON_ARRAY, sl_modes[keys->mode].statements);
    const size_t array = (size_t)(to - statements->bytes);
    used = array + 4;
    *taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bson_t *document = &documents[places[i]];
        size_t need = match_room(&keys->match, bson_get_data(document));
        need += sl_modes[keys->mode].removes ? 0 : document->len;
        if (i > 0 && used + need > SL_STATEMENTS_BYTES_MAX)
            break;
        if (!make_room(statements, used + need + OVERHEAD))
            return false;
        char key[12];
        snprintf(key, sizeof key, "%u", i);
        to = sl_bson_put_key(statements->bytes + used, SL_BSON_DOCUMENT, key);
        used = (size_t)(put_statement(to, keys, document) - statements->bytes);
        ++*taken;
    }
    to = sl_bson_end(statements->bytes + array, statements->bytes + used);
    to = sl_bson_end(statements->bytes, to);
    return bson_init_static(command, statements->bytes, (size_t)(to - statements->bytes));
}
