/* SPDX-License-Identifier: Apache-2.0 */
#include "bson_lookup.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/text.h"

#define NUMBER_MAX 1e18
#define JSON_LEVELS 200u /* BSON_MAX_RECURSION of libbson */

/* Keys of run.json, and their names in the records of earlier programs. */
static const struct {
    const char *key, *earlier;
} renamed[] = {
    {"addsUp", "holds"},
    {"alreadyStored", "alreadyThere"},
    {"unpacking", "inflating"},
    {"distribution", "placing"},
    {"earlierRuns", "ofThoseByEarlierRuns"},
    {"splittable", "cut"},
    {"unmatched", "inNoDocument"},
};

/* Writes the path with the earlier names of its keys. False: it has none of these keys. */
static bool earlier_path(const char *path, char *earlier, size_t room) {
    bool found = false;
    size_t used = 0;
    for (size_t length; used < room; path += length + 1) {
        const char *key = path;
        length = strcspn(path, ".");
        int count = (int)length;
        for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++) {
            if (strlen(renamed[i].key) == length && memcmp(renamed[i].key, path, length) == 0) {
                found = true;
                key = renamed[i].earlier;
                count = (int)strlen(key);
            }
        }
        used += (size_t)snprintf(earlier + used, room - used, "%.*s%s", count, key,
                                 path[length] ? "." : "");
        if (!path[length])
            break;
    }
    return found && used < room;
}

bool sl_look_find(const bson_t *document, const char *path, bson_iter_t *value) {
    bson_iter_t iter;
    return bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, path, value);
}

static bool find_key(const bson_t *document, const char *path, bson_iter_t *value) {
    char earlier[100];
    return sl_look_find(document, path, value) ||
           (earlier_path(path, earlier, sizeof earlier) && sl_look_find(document, earlier, value));
}

bool sl_look_set(const bson_t *document, const char *path, bson_iter_t *value) {
    return bson_iter_init_find(value, document, path) || sl_look_find(document, path, value);
}

double sl_value_number(const bson_iter_t *at) {
    double value = NAN;
    if (BSON_ITER_HOLDS_DOUBLE(at))
        value = bson_iter_double(at);
    else if (BSON_ITER_HOLDS_INT(at))
        value = (double)bson_iter_as_int64(at);
    else if (BSON_ITER_HOLDS_DATE_TIME(at))
        value = (double)bson_iter_date_time(at);
    return fabs(value) <= NUMBER_MAX ? value : NAN;
}

double sl_look_number(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find_key(document, path, &value) ? sl_value_number(&value) : NAN;
}

double sl_look_amount(const bson_t *document, const char *path, double fallback) {
    double value = sl_look_number(document, path);
    return value >= 0 ? value : fallback;
}

const char *sl_look_text(const bson_t *document, const char *path) {
    bson_iter_t value;
    uint32_t length;
    if (!find_key(document, path, &value) || !BSON_ITER_HOLDS_UTF8(&value))
        return NULL;
    const char *text = bson_iter_utf8(&value, &length);
    return strlen(text) == length ? text : NULL; /* otherwise it would be cut at a NUL */
}

const char *sl_look_string(const bson_t *document, const char *path) {
    const char *text = sl_look_text(document, path);
    return text ? text : "";
}

int64_t sl_value_int64(const bson_iter_t *at, int64_t fallback) {
    if (BSON_ITER_HOLDS_DOUBLE(at) && !(fabs(bson_iter_double(at)) <= NUMBER_MAX))
        return fallback; /* the conversion would be undefined */
    return BSON_ITER_HOLDS_NUMBER(at) ? bson_iter_as_int64(at) : fallback;
}

int64_t sl_look_int64(const bson_t *document, const char *path, int64_t fallback) {
    bson_iter_t value;
    return find_key(document, path, &value) ? sl_value_int64(&value, fallback) : fallback;
}

int sl_look_truth(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find_key(document, path, &value) && BSON_ITER_HOLDS_BOOL(&value) ? bson_iter_bool(&value)
                                                                            : -1;
}

bool sl_look_flag(const bson_t *document, const char *path) {
    bson_iter_t value;
    return find_key(document, path, &value) && bson_iter_as_bool(&value);
}

void sl_look_date(const bson_t *document, const char *path, char out[SL_DATE_ROOM]) {
    bson_iter_t value;
    struct tm utc;
    out[0] = '\0';
    if (!find_key(document, path, &value) || !BSON_ITER_HOLDS_DATE_TIME(&value))
        return;
    time_t seconds = (time_t)(bson_iter_date_time(&value) / 1000);
    if (gmtime_r(&seconds, &utc))
        strftime(out, SL_DATE_ROOM, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

bool sl_document_at(const bson_iter_t *at, bson_t *document) {
    return BSON_ITER_HOLDS_DOCUMENT(at) && sl_container_at(at, document);
}

bool sl_container_at(const bson_iter_t *at, bson_t *document) {
    uint32_t length = 0;
    const uint8_t *bytes = NULL;
    if (BSON_ITER_HOLDS_DOCUMENT(at))
        bson_iter_document(at, &length, &bytes);
    else if (BSON_ITER_HOLDS_ARRAY(at))
        bson_iter_array(at, &length, &bytes);
    return bytes && bson_init_static(document, bytes, length);
}

bool sl_values_equal(const bson_iter_t *a, const bson_iter_t *b) {
    bson_t first = BSON_INITIALIZER, second = BSON_INITIALIZER;
    bool equal = bson_append_iter(&first, "", 0, a) && bson_append_iter(&second, "", 0, b) &&
                 bson_equal(&first, &second);
    bson_destroy(&first);
    bson_destroy(&second);
    return equal;
}

bool sl_inner_at(const bson_iter_t *at, const uint8_t **bytes, uint32_t *length) {
    uint32_t code_length;
    *bytes = NULL;
    *length = 0;
    if (BSON_ITER_HOLDS_DOCUMENT(at))
        bson_iter_document(at, length, bytes);
    else if (BSON_ITER_HOLDS_ARRAY(at))
        bson_iter_array(at, length, bytes);
    else if (BSON_ITER_HOLDS_CODEWSCOPE(at))
        bson_iter_codewscope(at, &code_length, length, bytes);
    else
        return false;
    return true;
}

static bool is_shallow(const bson_t *document, unsigned levels) {
    bson_iter_t iter;
    bool shallow = levels > 0;
    for (bool more = bson_iter_init(&iter, document); shallow && more && bson_iter_next(&iter);) {
        const uint8_t *bytes;
        uint32_t length;
        bson_t inner;
        shallow = !sl_inner_at(&iter, &bytes, &length) || !bytes ||
                  !bson_init_static(&inner, bytes, length) || is_shallow(&inner, levels - 1);
    }
    return shallow;
}

bool sl_document_is_sound(const bson_t *document) {
    return is_shallow(document, SL_FILE_LEVELS) &&
           bson_validate(document, BSON_VALIDATE_NONE, NULL);
}

static void make_text_valid(const char *text, size_t length) {
    for (size_t at; !sl_utf8_valid(text, length, &at); text += at + 1, length -= at + 1)
        ((char *)text)[at] = '\x1A';
}

/* Replaces bytes that are not UTF-8 in keys and strings of a document that the caller owns. */
static void make_valid(const bson_t *document, unsigned levels) {
    bson_iter_t at;
    for (bool more = bson_iter_init(&at, document); more && bson_iter_next(&at);) {
        bson_t inner;
        uint32_t length;
        make_text_valid(bson_iter_key(&at), bson_iter_key_len(&at));
        if (BSON_ITER_HOLDS_UTF8(&at)) {
            const char *text = bson_iter_utf8(&at, &length);
            make_text_valid(text, length);
        } else if (levels > 0 && sl_container_at(&at, &inner)) {
            make_valid(&inner, levels - 1);
        }
    }
}

char *sl_document_json(const bson_t *document) {
    char *json = bson_as_relaxed_extended_json(document, NULL);
    if (json)
        return json;
    bson_t *valid = bson_copy(document);
    make_valid(valid, JSON_LEVELS);
    json = bson_as_relaxed_extended_json(valid, NULL);
    bson_destroy(valid);
    return json ? json : bson_strdup("{ \"(code or regular expression, not UTF-8)\" : null }");
}

bool sl_look_inside(const bson_t *document, const char *path, bson_t *inner) {
    bson_iter_t value;
    if (find_key(document, path, &value) && sl_container_at(&value, inner))
        return true;
    bson_init(inner); /* an empty document needs no bson_destroy */
    return false;
}

sl_walk sl_walk_start(const bson_t *document, const char *path) {
    sl_walk walk = {.more = false};
    bson_iter_t value;
    walk.more = find_key(document, path, &value) && BSON_ITER_HOLDS_ARRAY(&value) &&
                bson_iter_recurse(&value, &walk.at);
    return walk;
}

sl_walk sl_walk_of(const bson_t *array) {
    sl_walk walk = {.more = false};
    walk.more = bson_iter_init(&walk.at, array);
    return walk;
}

bool sl_walk_next(sl_walk *walk) {
    while (walk->more && (walk->more = bson_iter_next(&walk->at))) {
        if (sl_document_at(&walk->at, &walk->item))
            return true;
    }
    return false;
}

uint32_t sl_walk_count(const bson_t *document, const char *path) {
    uint32_t count = 0;
    for (sl_walk walk = sl_walk_start(document, path); sl_walk_next(&walk);)
        count++;
    return count;
}

uint32_t sl_look_count(const bson_t *document, const char *path) {
    uint32_t count = 0;
    sl_walk walk = sl_walk_start(document, path);
    while (walk.more && bson_iter_next(&walk.at))
        count++;
    return count;
}

static const char *text_or_null(const bson_t *document, const char *name) {
    bson_iter_t iter;
    bool is_text = bson_iter_init_find(&iter, document, name) && BSON_ITER_HOLDS_UTF8(&iter);
    const char *text = is_text ? bson_iter_utf8(&iter, NULL) : "";
    return text[0] ? text : NULL;
}

void sl_look_differences(const bson_t *before, const bson_t *now,
                         void (*visit)(void *context, const char *name, const char *before,
                                       const char *now),
                         void *context) {
    const bson_t *documents[] = {now, before};
    for (int i = 0; i < 2; i++) {
        bson_iter_t iter;
        bool more = bson_iter_init(&iter, documents[i]);
        while (more && bson_iter_next(&iter)) {
            const char *name = bson_iter_key(&iter);
            const char *was = text_or_null(before, name), *is = text_or_null(now, name);
            /* The second document adds the texts that only it has. */
            if (i == 0 ? is && (!was || strcmp(was, is) != 0) : was && !is)
                visit(context, name, was, is);
        }
    }
}
