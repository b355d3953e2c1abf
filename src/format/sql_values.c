/* SPDX-License-Identifier: Apache-2.0 */
/* Values of databases; see sql_values.h. */
#include "sql_values.h"
#include "bson/extjson.h"
#include "convert.h"
#include "fields.h"
#include "simd.h"

#include <ctype.h>
#include <stdio.h>

/* ---- JSON ---- */

/* The parser of the scratch memory; NULL: out of memory. */
static sl_extjson *json_parser(sl_scratch *scratch) {
    const sl_simd *simd;
    sl_error ignored;
    if (!scratch->json && sl_simd_choose(&simd, &ignored))
        sl_extjson_create(sl_simd_name(simd), sl_simd_utf8_valid(simd), &scratch->json, &ignored);
    if (scratch->json)
        sl_extjson_set_lossless(scratch->json);
    return scratch->json;
}

static const char json_head[] = "{\"\":";

/* Reads the text as the value of the document {"": text}, and moves the value to the front. */
static uint8_t *put_json(const sl_value *v, sl_text text, uint8_t *to) {
    const size_t head = sizeof json_head - 1, length = head + text.length + 1;
    const bool own = text.bytes == v->scratch->bytes; /* it is moved */
    uint8_t *end;
    const char *after;
    bool own_id;
    sl_extjson *parser = json_parser(v->scratch);
    if (!parser || !v->limit || !sl_scratch_grow(v->scratch, length + SL_SLACK))
        return NULL;
    char *copy = v->scratch->bytes;
    memmove(copy + head, own ? copy : text.bytes, text.length);
    memcpy(copy, json_head, head);
    copy[length - 1] = '}';
    memset(copy + length, 0, SL_SLACK);
    switch (v->limit - to < (ptrdiff_t)SL_EXTJSON_MARGIN
                ? SL_EXTJSON_NO_ROOM
                : sl_extjson_document(parser, copy, copy + length, NULL, to, v->limit, &after, &end,
                                      &own_id)) {
    case SL_EXTJSON_OK:
        break;
    case SL_EXTJSON_NO_ROOM:
        v->scratch->no_room = true;
        return NULL;
    default:
        return NULL;
    }
    if (after != copy + length || own_id || sl_bson_value_end(to[4], to + 6) != end - 1)
        return NULL; /* more follows on the value: "x","role":"admin" */
    *v->type = to[4];
    size_t bytes = (size_t)(end - to) - 7; /* without length, type, key and end */
    memmove(to, to + 6, bytes);
    return to + bytes;
}

uint8_t *sl_put_json(const sl_value *v, uint8_t *to) {
    return put_json(v, v->field, to);
}

/* ---- arrays ---- */

#define ARRAY_DEPTH_MAX 16u

typedef struct array {
    const sl_value *value;
    sl_schema_column element; /* its type */
    bool typed;               /* a type of elements is declared */
    sl_extjson *json;         /* the parser, for JSON; NULL: an array of PostgreSQL */
    char open, close;         /* brackets or braces */
    char *at, *end;
} array;

/* Reads a quoted element, and removes its quotes and escapes in place. False: it is not closed. */
static bool read_quoted(array *a, sl_text *element) {
    char *to = ++a->at;
    element->bytes = to;
    while (a->at < a->end && *a->at != '"') {
        uint8_t *out = (uint8_t *)to;
        if (a->json && *a->at == '\\') {
            a->at += sl_extjson_escape(a->json, a->at, &out) - a->at;
            to = (char *)out;
            continue;
        }
        if (*a->at == '\\' && ++a->at == a->end)
            return false;
        *to++ = *a->at++;
    }
    element->length = (size_t)(to - element->bytes);
    return a->at++ < a->end;
}

/* Reads an element without quotes. In JSON: a number or word; other elements are not typed. */
static void read_bare(array *a, sl_text *element) {
    char *from = a->at, *to = from;
    for (; a->at < a->end && *a->at != ',' && *a->at != a->close; a->at++) {
        if (a->json && !strchr("+-.", *a->at) && !isalnum((unsigned char)*a->at))
            break;
        if (*a->at == '\\' && a->at + 1 < a->end)
            a->at++;
        *to++ = *a->at;
    }
    while (to > from && to[-1] == ' ')
        to--;
    *element = (sl_text){from, (size_t)(to - from)};
}

/* Writes an element without a declared type. */
static uint8_t *put_untyped(const sl_value *field, bool quoted, uint8_t *to) {
    int64_t whole;
    double number;
    const sl_text text = field->field;
    if (!quoted && sl_convert_whole(text.bytes, text.length, &whole)) {
        const bool narrow = whole >= INT32_MIN && whole <= INT32_MAX;
        *field->type = narrow ? SL_BSON_INT32 : SL_BSON_INT64;
        return narrow ? sl_bson_put_int32(to, (int32_t)whole) : sl_bson_put_int64(to, whole);
    }
    if (!quoted && sl_convert_lossless(text.bytes, text.length, &number)) {
        *field->type = SL_BSON_DOUBLE;
        return sl_bson_put_double(to, number);
    }
    *field->type = SL_BSON_TEXT;
    return sl_utf8_valid(text.bytes, text.length, NULL) && !memchr(text.bytes, 0, text.length)
               ? sl_bson_put_text(to, text.bytes, text.length)
               : NULL;
}

static uint8_t *put_element(array *a, uint8_t *to) {
    sl_value field = *a->value;
    static const sl_dialect plain = {0};
    const bool quoted = *a->at == '"';
    if (quoted) {
        if (!read_quoted(a, &field.field))
            return NULL;
    } else {
        read_bare(a, &field.field);
        if (field.field.length == 0)
            return NULL;
    }
    field.dialect = &plain;
    field.schema = &a->element;
    field.quoted = false;
    if (field.limit - to < (ptrdiff_t)field.field.length + 64) {
        field.scratch->no_room = true;
        return NULL;
    }
    if (!quoted && sl_text_equal_ignoring_case(field.field, sl_text_of("NULL"))) {
        *field.type = SL_BSON_NULL;
        return to;
    }
    if (!a->typed)
        return put_untyped(&field, quoted, to);
    *field.type = (uint8_t)sl_column_types[a->element.type].bson;
    return sl_column_types[a->element.type].put(&field, to);
}

static bool next_is(array *a, char byte) {
    while (a->json && a->at < a->end && strchr(" \t\r\n", *a->at))
        a->at++;
    return a->at < a->end && *a->at == byte;
}

/* Writes the array that begins at a->at, and moves that after it. */
static uint8_t *put_elements(array *a, uint8_t *to, unsigned depth) {
    uint8_t *const start = to;
    sl_value element = *a->value;
    const sl_value *const outer = a->value;
    unsigned index = 0;
    to = sl_bson_begin(to);
    a->at++; /* the bracket */
    if (next_is(a, a->close)) {
        a->at++;
        return sl_bson_end(start, to);
    }
    while (to && a->at < a->end) {
        char key[12];
        if (element.limit - to < 64) {
            element.scratch->no_room = true;
            return NULL;
        }
        snprintf(key, sizeof key, "%u", index++);
        element.type = to;
        to = sl_bson_put_key(to, SL_BSON_ARRAY, key);
        a->value = &element;
        to = !next_is(a, a->open)      ? put_element(a, to)
             : depth < ARRAY_DEPTH_MAX ? put_elements(a, to, depth + 1)
                                       : NULL;
        a->value = outer;
        if (to && next_is(a, a->close)) {
            a->at++;
            return sl_bson_end(start, to);
        }
        if (to && !next_is(a, ','))
            return NULL;
        a->at++;
    }
    return NULL;
}

uint8_t *sl_put_array(const sl_value *v, uint8_t *to) {
    array a = {.value = v, .element = {.minimum = INT64_MIN, .maximum = INT64_MAX}};
    const bool json = *v->field.bytes == '[';
    if (!json && *v->field.bytes != '{')
        return NULL;
    uint8_t *end = json ? sl_put_json(v, to) : to;
    a.typed = v->schema->format && sl_column_type_named(v->schema->format, &a.element.type);
    if (!end || (json && !a.typed))
        return end;
    a.json = json ? v->scratch->json : NULL;
    a.open = json ? '[' : '{';
    a.close = json ? ']' : '}';
    if (!v->limit)
        return NULL;
    if (!json && v->field.bytes != v->scratch->bytes) {
        if (!sl_scratch_grow(v->scratch, v->field.length + SL_SLACK))
            return NULL;
        memcpy(v->scratch->bytes, v->field.bytes, v->field.length);
        memset(v->scratch->bytes + v->field.length, 0, SL_SLACK);
    }
    a.at = v->scratch->bytes + (json ? sizeof json_head - 1 : 0);
    a.end = a.at + v->field.length;
    to = put_elements(&a, to, 0);
    return a.at == a.end ? to : NULL;
}

/* ---- bytes ---- */

#define BINARY_HEAD 5u /* length and subtype */

static uint8_t *end_binary(uint8_t *to, uint8_t *end) {
    sl_bson_put_int32(to, (int32_t)(end - to) - (int32_t)BINARY_HEAD);
    to[4] = 0; /* generic */
    return end;
}

uint8_t *sl_put_hex(const sl_value *v, uint8_t *to) {
    const char *at = v->field.bytes, *end = at + v->field.length;
    const bool marked = end - at >= 2 && memcmp(at, "\\x", 2) == 0;
    if (marked || (end - at >= 2 && memcmp(at, "0x", 2) == 0))
        at += 2;
    if ((end - at) % 2 != 0 || (v->schema->format && !marked))
        return NULL;
    const size_t bytes = (size_t)(end - at) / 2;
    return sl_bson_put_hex(to + BINARY_HEAD, at, bytes) ? end_binary(to, to + BINARY_HEAD + bytes)
                                                        : NULL;
}

uint8_t *sl_put_base64(const sl_value *v, uint8_t *to) {
    uint8_t *out = to + BINARY_HEAD;
    uint32_t bits = 0, count = 0, padding = 0;
    for (size_t i = 0; i < v->field.length; i++) {
        const char byte = v->field.bytes[i];
        int digit = sl_base64_digit(byte);
        if (byte == '\n' || byte == '\r')
            continue;
        if (byte == '=' ? ++padding > 2 : digit < 0 || padding > 0)
            return NULL;
        bits = bits << 6 | (uint32_t)(digit < 0 ? 0 : digit);
        if (++count % 4 != 0)
            continue;
        for (unsigned k = 0; k < 3 - padding; k++)
            *out++ = (uint8_t)(bits >> (16 - 8 * k));
        bits = 0;
    }
    return count % 4 == 0 ? end_binary(to, out) : NULL;
}

uint8_t *sl_put_base32(const sl_value *v, uint8_t *to) {
    uint8_t *out = to + BINARY_HEAD;
    uint32_t bits = 0, width = 0, count = 0, padding = 0;
    for (size_t i = 0; i < v->field.length; i++, count++) {
        const char byte = v->field.bytes[i];
        const bool letter = byte >= 'A' && byte <= 'Z';
        padding += byte == '=';
        if (byte == '=')
            continue;
        if (padding > 0 || (!letter && (byte < '2' || byte > '7')))
            return NULL;
        bits = bits << 5 | (uint32_t)(letter ? byte - 'A' : byte - '2' + 26);
        width += 5;
        if (width >= 8)
            *out++ = (uint8_t)(bits >> (width -= 8));
    }
    return count % 8 == 0 && padding <= 6 && padding != 2 && padding != 5 ? end_binary(to, out)
                                                                          : NULL;
}

uint8_t *sl_put_raw(const sl_value *v, uint8_t *to) {
    memcpy(to + BINARY_HEAD, v->field.bytes, v->field.length);
    return end_binary(to, to + BINARY_HEAD + v->field.length);
}

/* ---- words ---- */

uint8_t *sl_put_bool(const sl_value *v, uint8_t *to) {
    static const char *const words[] = {"false", "true", "f",   "t",  "no", "yes",
                                        "n",     "y",    "off", "on", "0",  "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (sl_text_equal_ignoring_case(v->field, sl_text_of(words[i]))) {
            *to = i & 1;
            return to + 1;
        }
    }
    return NULL;
}
