/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions, code, symbols and pointers of Extended JSON. */
#include "extjson_types.h"

#include <bson/bson.h>

/* ---- regular expressions ---- */

/* Sorts the options and removes repeated ones; the order is that of the BSON specification. Returns
 * their new end; NULL if one is not a letter. */
static uint8_t *sort_options(uint8_t *options, uint8_t *end) {
    bool present[256] = {false};
    for (const uint8_t *at = options; at < end; at++) {
        uint8_t letter = *at | 0x20;
        if (letter < 'a' || letter > 'z')
            return NULL;
        present[*at] = true;
    }
    for (unsigned i = 0; i < 256; i++) {
        if (present[i])
            *options++ = (uint8_t)i;
    }
    return options;
}

/* Copies the text at `p` to *to as a text that ends at its NUL. */
static const char *take_cstring(sl_extjson *x, const char *p, uint8_t **to, const char *expected) {
    sl_text text;
    const char *at = p;
    if (!(p = sl_extjson_take_text(x, p, *to, &text, expected)))
        return NULL;
    if (memchr(text.bytes, 0, text.length))
        return extjson_fail(x, at, "\\u0000 in a regular expression, which cannot contain NUL");
    *to += text.length + 1;
    return p;
}

/* As take_cstring, for options. */
static const char *take_letters(sl_extjson *x, const char *p, uint8_t **to, const char *expected) {
    uint8_t *options = *to;
    const char *at = p;
    if (!(p = take_cstring(x, p, to, expected)))
        return NULL;
    uint8_t *end = sort_options(options, *to - 1);
    if (!end)
        return extjson_fail_with(x, at, "the options of a regular expression are letters", options,
                                 (size_t)(*to - 1 - options));
    *end++ = 0;
    *to = end;
    return p;
}

const char *sl_extjson_take_regex(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$regex is a text, and may be followed by \"$options\"";
    if (!(p = take_cstring(x, p, &v->to, reason)))
        return NULL;
    p = extjson_skip(p);
    if (*p == ',') {
        if (!(p = sl_extjson_take_second(x, p, v->to, "$options", reason)) ||
            !(p = take_letters(x, p, &v->to, reason)))
            return NULL;
    } else {
        *v->to++ = 0;
    }
    return p;
}

const char *sl_extjson_take_options(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$options is a text, and is followed by \"$regex\"";
    uint8_t *start = v->to, *middle;
    if (!(p = take_letters(x, p, &v->to, reason)))
        return NULL;
    middle = v->to;
    if (!(p = sl_extjson_take_second(x, p, v->to, "$regex", reason)) ||
        !(p = take_cstring(x, p, &v->to, reason)))
        return NULL;
    return sl_extjson_exchange(x, start, middle, v->to, v->to) ? p : NULL;
}

const char *sl_extjson_take_expression(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$regularExpression is {\"pattern\": text, \"options\": text}";
    uint8_t *start = v->to, *middle = start;
    bool known[2] = {false, false}, first = true;
    if (!(p = sl_extjson_begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        const char *at = p;
        if (!(p = sl_extjson_take_key(x, p, i == 0, v->to, &key)))
            return NULL;
        bool options = sl_text_equal(key, sl_text_of("options"));
        if ((!options && !sl_text_equal(key, sl_text_of("pattern"))) || known[options])
            return extjson_fail(x, at, reason);
        known[options] = true;
        first = i == 0 ? !options : first;
        middle = v->to;
        if (!(p = (options ? take_letters : take_cstring)(x, p, &v->to, reason)))
            return NULL;
    }
    if (!first && !sl_extjson_exchange(x, start, middle, v->to, v->to))
        return NULL;
    return sl_extjson_take_end(x, p);
}

/* ---- code, symbols ---- */

/* Copies the text at `p` to *to as a BSON string. */
static const char *take_string(sl_extjson *x, const char *p, uint8_t **to, const char *expected) {
    sl_text text;
    if (!(p = sl_extjson_take_text(x, p, *to + 4, &text, expected)))
        return NULL;
    sl_bson_put_int32(*to, (int32_t)text.length + 1);
    *to += 4 + text.length + 1;
    return p;
}

const char *sl_extjson_take_symbol(sl_extjson *x, const char *p, extjson_value *v) {
    return take_string(x, p, &v->to, "$symbol is a text");
}

/* The document at `p`, which belongs to code. */
static const char *take_variables(sl_extjson *x, const char *p, uint8_t **to, uint32_t depth) {
    if (*p != '{')
        return sl_extjson_expected(x, p, "$scope is a document");
    if (!(p = x->kernel->document(x, p + 1, to, depth + 1)))
        return NULL;
    return p < x->end ? p : sl_extjson_expected(x, x->end, NULL);
}

static const char code_reason[] = "$code is a text, and may be followed by \"$scope\"";

const char *sl_extjson_take_code(sl_extjson *x, const char *p, extjson_value *v) {
    uint8_t *start = v->to;
    v->to += 4; /* the length of code with a scope */
    if (!(p = take_string(x, p, &v->to, code_reason)))
        return NULL;
    p = extjson_skip(p);
    if (*p != ',') {
        memmove(start, start + 4, (size_t)(v->to - start) - 4);
        v->to -= 4;
        return p;
    }
    if (!(p = sl_extjson_take_second(x, p, v->to, "$scope", code_reason)) ||
        !(p = take_variables(x, p, &v->to, v->depth)))
        return NULL;
    sl_bson_put_int32(start, (int32_t)(v->to - start));
    *v->type = BSON_TYPE_CODEWSCOPE;
    return p;
}

const char *sl_extjson_take_scope(sl_extjson *x, const char *p, extjson_value *v) {
    uint8_t *start = v->to, *middle;
    v->to += 4;
    if (!(p = take_variables(x, p, &v->to, v->depth)))
        return NULL;
    middle = v->to;
    if (middle > x->limit)
        return extjson_no_room(x);
    if (!(p = sl_extjson_take_second(x, p, v->to, "$code", code_reason)) ||
        !(p = take_string(x, p, &v->to, code_reason)))
        return NULL;
    if (!sl_extjson_exchange(x, start + 4, middle, v->to, v->to))
        return NULL;
    sl_bson_put_int32(start, (int32_t)(v->to - start));
    return p;
}

/* ---- pointers ---- */

const char *sl_extjson_take_pointer(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$dbPointer is {\"$ref\": text, \"$id\": {\"$oid\": ...}}";
    uint8_t *start = v->to, *middle = start;
    bool known[2] = {false, false}, id = false;
    if (!(p = sl_extjson_begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        const char *at = p;
        if (!(p = sl_extjson_take_key(x, p, i == 0, v->to, &key)))
            return NULL;
        id = sl_text_equal(key, sl_text_of("$id"));
        if ((!id && !sl_text_equal(key, sl_text_of("$ref"))) || known[id])
            return extjson_fail(x, at, reason);
        known[id] = true;
        middle = v->to;
        if (!id) {
            p = take_string(x, p, &v->to, reason);
        } else if ((p = sl_extjson_begin_object(x, p, reason)) != NULL &&
                   (p = sl_extjson_take_key(x, p, true, v->to, &key)) != NULL) {
            if (!sl_text_equal(key, sl_text_of("$oid")))
                return extjson_fail(x, at, reason);
            p = sl_extjson_take_converted(x, p, &v->to, sl_bson_put_object_id, EXTJSON_OBJECT_ID);
            p = p ? sl_extjson_take_end(x, p) : NULL;
        }
        if (!p)
            return NULL;
    }
    if (!id && !sl_extjson_exchange(x, start, middle, v->to, v->to)) /* the ObjectId came first */
        return NULL;
    return sl_extjson_take_end(x, p);
}
