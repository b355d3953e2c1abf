/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of the oplog, applied to a document as a member of a replica set applies them:
 *
 *   {field: value ...}                          the new document
 *   {$v: 1, $set: {path: value}, $unset: {path: ""}}
 *   {$v: 2, diff: {d: {name: false}, u: {name: value}, i: {name: value}, sNAME: diff}}
 *
 * In a diff, d removes fields, u replaces values, i appends fields, and sNAME is the diff of an
 * embedded document or array. The diff of an array is {a: true, l: length, uINDEX: value, sINDEX:
 * diff}; missing elements become null.
 *
 * An update may be applied to a document that already has it, or a later one. The parent of a
 * change may then have another type than expected, until a later update replaces it: as in the
 * server, modifiers do not change it, and a diff makes it null. */
#include "oplog.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"

#define ELEMENTS_MAX 2000000u /* a document of 16 MiB has no array with more elements */
#define BYTES_MAX ((size_t)(16 << 20) + (16 << 10)) /* of a document of the server */

/* ---- checks ---- */

/* The index in the name of an element; ELEMENTS_MAX: it is none. */
static uint32_t index_of(const char *digits) {
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || length > 7 || digits[length] || (digits[0] == '0' && length > 1))
        return ELEMENTS_MAX;
    unsigned long index = strtoul(digits, NULL, 10);
    return index < ELEMENTS_MAX ? (uint32_t)index : ELEMENTS_MAX;
}

static bool check_diff(const bson_t *diff, sl_error *error);

static bool is_array_diff(const bson_t *diff) {
    return sl_look_flag(diff, "a");
}

static bool check_part(const bson_iter_t *part, bool of_array, uint32_t *next, sl_error *error) {
    const char *key = bson_iter_key(part);
    bson_t inner;
    bool document = BSON_ITER_HOLDS_DOCUMENT(part) && sl_document_at(part, &inner), known;
    if (of_array && (strcmp(key, "a") == 0 || strcmp(key, "l") == 0)) {
        known = key[0] == 'a' ||
                (bson_iter_as_int64(part) >= 0 && bson_iter_as_int64(part) <= ELEMENTS_MAX);
    } else if (of_array) {
        uint32_t index = index_of(key + (key[0] != '\0'));
        known = (key[0] == 'u' || (key[0] == 's' && document)) && index < ELEMENTS_MAX &&
                index >= *next;
        *next = index + 1;
    } else {
        known = document && (key[0] == 's' || strcmp(key, "u") == 0 || strcmp(key, "i") == 0 ||
                             strcmp(key, "d") == 0);
    }
    if (known && document && key[0] == 's')
        return check_diff(&inner, error);
    return known || sl_error_set(error, SL_EXIT_SOURCE, "the part \"%.60s\" of its diff", key);
}

static bool check_diff(const bson_t *diff, sl_error *error) {
    bool of_array = is_array_diff(diff), ok = true;
    uint32_t next = 0;
    bson_iter_t part;
    for (bool more = bson_iter_init(&part, diff); ok && more && bson_iter_next(&part);)
        ok = check_part(&part, of_array, &next, error);
    return ok;
}

sl_oplog_form sl_oplog_update_form(const bson_t *update) {
    bson_iter_t first;
    if (!bson_iter_init(&first, update) || !bson_iter_next(&first) ||
        bson_iter_key(&first)[0] != '$')
        return SL_OPLOG_DOCUMENT;
    return sl_look_int64(update, "$v", 1) == 1 ? SL_OPLOG_MODIFIERS : SL_OPLOG_DIFF;
}

/* A path must not be deeper than a document of the server. */
static bool check_paths(const bson_t *paths, sl_error *error) {
    bson_iter_t at;
    bool ok = true;
    for (bool more = bson_iter_init(&at, paths); ok && more && bson_iter_next(&at);) {
        unsigned names = 1;
        for (const char *dot = strchr(bson_iter_key(&at), '.'); dot; dot = strchr(dot + 1, '.'))
            names++;
        ok = names <= SL_BSON_NESTING_MAX ||
             sl_error_set(error, SL_EXIT_SOURCE, "the path \"%.60s...\" has %u names",
                          bson_iter_key(&at), names);
    }
    return ok;
}

bool sl_oplog_update_check(const bson_t *update, sl_error *error) {
    sl_oplog_form form = sl_oplog_update_form(update);
    bson_iter_t part;
    bson_t inner;
    if (form == SL_OPLOG_DOCUMENT)
        return true;
    for (bool more = bson_iter_init(&part, update); more && bson_iter_next(&part);) {
        const char *key = bson_iter_key(&part);
        bool document = sl_document_at(&part, &inner), diff = form == SL_OPLOG_DIFF;
        if (strcmp(key, "$v") == 0 && bson_iter_as_int64(&part) == (diff ? 2 : 1))
            continue;
        if (diff && document && strcmp(key, "diff") == 0) {
            if (!check_diff(&inner, error))
                return false;
        } else if (!diff && document && (strcmp(key, "$set") == 0 || strcmp(key, "$unset") == 0)) {
            if (!check_paths(&inner, error))
                return false;
        } else {
            return sl_error_set(error, SL_EXIT_SOURCE, "the field \"%.60s\"%s", key,
                                strcmp(key, "$v") == 0 ? " with an unknown version" : "");
        }
    }
    return true;
}

/* ---- the new document ---- */

/* Values are copied byte by byte, also those that the BSON library would write in another form. */
typedef struct builder {
    uint8_t *bytes;
    size_t used, room;
    bool large;  /* more than BYTES_MAX; an update can make arrays of any length */
    bool failed; /* large, or without memory */
} builder;

static void put(builder *to, const void *bytes, size_t length) {
    if (to->room - to->used < length) {
        size_t room = 2 * (to->used + length) + 256;
        to->large = to->large || to->used + length > BYTES_MAX;
        to->failed = to->failed || to->large;
        uint8_t *grown = to->failed ? NULL : realloc(to->bytes, room);
        to->failed = !grown;
        if (!grown)
            return;
        to->bytes = grown;
        to->room = room;
    }
    memcpy(to->bytes + to->used, bytes, length);
    to->used += length;
}

static void put_key(builder *to, uint8_t type, const char *key, size_t length) {
    put(to, &type, 1);
    put(to, key, length);
    put(to, "", 1);
}

/* Begins a document or array; returns its position, for end_inner. */
static size_t begin_inner(builder *to) {
    size_t at = to->used;
    put(to, "\0\0\0\0", 4);
    return at;
}

static void end_inner(builder *to, size_t at) {
    put(to, "", 1);
    const uint32_t length = BSON_UINT32_TO_LE((uint32_t)(to->used - at));
    if (!to->failed)
        memcpy(to->bytes + at, &length, sizeof length);
}

/* The value of the element `at`, which ends before the next element. */
static void put_value(builder *to, const bson_iter_t *at) {
    const char *value = bson_iter_key(at) + strlen(bson_iter_key(at)) + 1;
    put(to, value, (size_t)((const char *)at->raw + at->next_off - value));
}

static void put_element(builder *to, const bson_iter_t *at) {
    put_key(to, (uint8_t)bson_iter_type(at), bson_iter_key(at), strlen(bson_iter_key(at)));
    put_value(to, at);
}

/* The value of `value` as element `index` of an array; NULL: null. */
static void put_indexed(builder *to, uint32_t index, const bson_iter_t *value) {
    char room[SL_ARRAY_KEY_ROOM];
    const char *key = sl_array_key(index, room);
    put_key(to, value ? (uint8_t)bson_iter_type(value) : BSON_TYPE_NULL, key, strlen(key));
    if (value)
        put_value(to, value);
}

/* ---- modifiers ---- */

/* Sets the value at a path; `value` NULL removes it. */
typedef struct path_change {
    const char *path;
    const bson_iter_t *value;
} path_change;

static void put_path(const bson_t *from, bool array, path_change what, builder *to);

/* Changes the element `at`, which the path's first name means. `rest`: the path after that name,
 * NULL: none. */
static void put_at_path(const bson_iter_t *at, bool in_array, path_change what, const char *rest,
                        builder *to) {
    const char *key = bson_iter_key(at);
    bson_t inner;
    if (!rest && what.value) {
        put_key(to, (uint8_t)bson_iter_type(what.value), key, strlen(key));
        put_value(to, what.value);
    } else if (!rest && in_array) {
        put_key(to, BSON_TYPE_NULL, key, strlen(key));
    } else if (rest && sl_container_at(at, &inner)) {
        put_key(to, (uint8_t)bson_iter_type(at), key, strlen(key));
        put_path(&inner, BSON_ITER_HOLDS_ARRAY(at), (path_change){rest, what.value}, to);
    } else if (rest) {
        put_element(to, at);
    }
}

/* Appends what the path names and the document or array does not have. */
static void put_missing_path(bool array, uint32_t count, path_change what, size_t length,
                             const char *rest, builder *to) {
    char digits[9] = "";
    const bson_t empty = BSON_INITIALIZER;
    if (array) {
        if (length < sizeof digits)
            memcpy(digits, what.path, length);
        uint32_t index = index_of(digits);
        if (index == ELEMENTS_MAX)
            return;
        for (; count < index && !to->failed; count++)
            put_indexed(to, count, NULL);
    }
    put_key(to, rest ? BSON_TYPE_DOCUMENT : (uint8_t)bson_iter_type(what.value), what.path, length);
    if (rest)
        put_path(&empty, false, (path_change){rest, what.value}, to);
    else
        put_value(to, what.value);
}

static void put_path(const bson_t *from, bool array, path_change what, builder *to) {
    const char *dot = strchr(what.path, '.'), *rest = dot ? dot + 1 : NULL;
    size_t length = dot ? (size_t)(dot - what.path) : strlen(what.path), start = begin_inner(to);
    bool found = false;
    uint32_t count = 0;
    bson_iter_t at;
    for (bool more = bson_iter_init(&at, from); more && bson_iter_next(&at); count++) {
        const char *key = bson_iter_key(&at);
        bool here = strncmp(key, what.path, length) == 0 && key[length] == '\0';
        found = found || here;
        if (here)
            put_at_path(&at, array, what, rest, to);
        else
            put_element(to, &at);
    }
    if (!found && what.value)
        put_missing_path(array, count, what, length, rest, to);
    end_inner(to, start);
}

static bool apply_modifiers(const bson_t *from, const bson_t *update, builder *to) {
    static const char *const names[] = {"$set", "$unset"};
    put(to, bson_get_data(from), from->len);
    for (int i = 0; i < 2; i++) {
        bson_t paths, before;
        bson_iter_t at;
        bool any = sl_look_inside(update, names[i], &paths) && bson_iter_init(&at, &paths);
        while (any && !to->failed && bson_iter_next(&at)) {
            builder made = {0};
            if (!bson_init_static(&before, to->bytes, to->used))
                return false;
            put_path(&before, false, (path_change){bson_iter_key(&at), i == 0 ? &at : NULL}, &made);
            free(to->bytes);
            *to = made;
        }
    }
    return true;
}

/* ---- diffs ---- */

static void put_diff(const bson_t *from, const bson_t *diff, builder *to);

/* The diff of the embedded document or array `name`. */
static bool find_sub_diff(const bson_t *diff, const char *name, bson_t *found) {
    bson_iter_t at;
    for (bool more = bson_iter_init(&at, diff); more && bson_iter_next(&at);) {
        const char *key = bson_iter_key(&at);
        if (key[0] == 's' && strcmp(key + 1, name) == 0)
            return sl_document_at(&at, found);
    }
    return false;
}

/* Appends the element `at` with its diff applied; null if it is of another type. */
static void put_changed(const bson_iter_t *at, const bson_t *diff, builder *to) {
    bson_t inner;
    bool same = is_array_diff(diff) ? BSON_ITER_HOLDS_ARRAY(at) : BSON_ITER_HOLDS_DOCUMENT(at);
    if (!same || !sl_container_at(at, &inner)) {
        put_key(to, BSON_TYPE_NULL, bson_iter_key(at), strlen(bson_iter_key(at)));
        return;
    }
    put_key(to, (uint8_t)bson_iter_type(at), bson_iter_key(at), strlen(bson_iter_key(at)));
    put_diff(&inner, diff, to);
}

/* Appends the fields that `unless` (NULL: none) does not have. */
static void put_fields(const bson_t *fields, const bson_t *unless, builder *to) {
    bson_iter_t at, found;
    for (bool more = bson_iter_init(&at, fields); more && bson_iter_next(&at);) {
        if (!unless || !bson_iter_init_find(&found, unless, bson_iter_key(&at)))
            put_element(to, &at);
    }
}

static void put_document(const bson_t *from, const bson_t *diff, builder *to) {
    bson_t removed, updated, inserted, sub;
    bson_iter_t at, found;
    sl_look_inside(diff, "d", &removed);
    sl_look_inside(diff, "u", &updated);
    sl_look_inside(diff, "i", &inserted);
    for (bool more = bson_iter_init(&at, from); more && bson_iter_next(&at);) {
        const char *key = bson_iter_key(&at);
        if (bson_iter_init_find(&found, &removed, key) ||
            bson_iter_init_find(&found, &inserted, key))
            continue;
        if (bson_iter_init_find(&found, &updated, key))
            put_element(to, &found);
        else if (find_sub_diff(diff, key, &sub))
            put_changed(&at, &sub, to);
        else
            put_element(to, &at);
    }
    put_fields(&updated, from, to);
    put_fields(&inserted, NULL, to);
}

/* The next element that the diff of an array changes. */
static bool next_change(bson_iter_t *change, uint32_t *index) {
    while (bson_iter_next(change)) {
        const char *key = bson_iter_key(change);
        *index = index_of(key + (key[0] != '\0'));
        if (*index < ELEMENTS_MAX)
            return true;
    }
    return false;
}

static void put_array(const bson_t *from, const bson_t *diff, builder *to) {
    bson_iter_t at, change;
    bool old = bson_iter_init(&at, from), more = bson_iter_init(&change, diff);
    uint32_t length = (uint32_t)sl_look_int64(diff, "l", UINT32_MAX), next = 0;
    bson_t sub;
    more = more && next_change(&change, &next);
    for (uint32_t index = 0; index < length && !to->failed; index++) {
        old = old && bson_iter_next(&at);
        bool here = more && next == index;
        if (!old && !more && length == UINT32_MAX)
            break;
        if (here && bson_iter_key(&change)[0] == 'u')
            put_indexed(to, index, &change);
        else if (here && old && sl_document_at(&change, &sub))
            put_changed(&at, &sub, to);
        else
            put_indexed(to, index, old ? &at : NULL);
        more = here ? next_change(&change, &next) : more;
    }
}

static void put_diff(const bson_t *from, const bson_t *diff, builder *to) {
    size_t start = begin_inner(to);
    (is_array_diff(diff) ? put_array : put_document)(from, diff, to);
    end_inner(to, start);
}

bson_t *sl_oplog_update(const bson_t *document, const bson_t *update, sl_error *error) {
    builder to = {0};
    bson_t diff, *made = NULL;
    switch (sl_oplog_update_form(update)) {
    case SL_OPLOG_DOCUMENT:
        return bson_copy(update);
    case SL_OPLOG_MODIFIERS:
        to.failed = !apply_modifiers(document, update, &to) || to.failed;
        break;
    case SL_OPLOG_DIFF:
        sl_look_inside(update, "diff", &diff);
        put_diff(document, &diff, &to);
        break;
    }
    if (!to.failed)
        made = bson_new_from_data(to.bytes, to.used);
    free(to.bytes);
    if (to.large)
        sl_error_set(error, SL_EXIT_SOURCE,
                     "an update makes a document of more than 16 MiB, which no server stores");
    else if (!made)
        sl_error_memory(error, "replaying the oplog");
    return made;
}
