/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a document that cannot be stored, by the grammar of JSON alone. If the document
 * is JSON, its end is certain. If it is not (a quote is missing, for example), any text after it
 * may be part of it, and a guess could turn the contents of a string into documents. */
#include "json.h"

#include <string.h>

/* More levels are not checked. */
#define LEVELS 4096u

static const char *skip(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The end of the string whose opening quote is at `p`; NULL if there is no closing quote. Any byte
 * from 0x20 on may be in it. */
static const char *string_end(const char *p, const char *end) {
    if (p >= end || *p != '"')
        return NULL;
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p == '\\' && (++p >= end || !strchr("\"\\/bfnrtu", *p) || *p == 0))
            return NULL;
    }
    return p < end ? p + 1 : NULL;
}

/* The end of a number or word: the end of all bytes that can be part of one. */
static const char *plain_end(const char *p, const char *end) {
    const char *start = p;
    while (p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                       (*p >= 'A' && *p <= 'Z') || *p == '-' || *p == '+' || *p == '.'))
        p++;
    return p > start ? p : NULL;
}

/* Reads a key and its colon. */
static const char *key_end(const char *p, const char *end) {
    p = string_end(p, end);
    if (!p)
        return NULL;
    p = skip(p, end);
    return p < end && *p == ':' ? skip(p + 1, end) : NULL;
}

const char *sl_json_document_end(const char *p, const char *end) {
    uint64_t arrays[LEVELS / 64]; /* a bit per level: is it an array? */
    uint32_t depth = 0;
    bool opened = true; /* a value is expected at p; else, what follows a value */
    if (p >= end || *p != '{')
        return NULL;
    while (p) {
        if (opened && (*p == '{' || *p == '[')) {
            if (depth == LEVELS)
                return NULL;
            bool array = *p == '[';
            uint64_t bit = UINT64_C(1) << (depth & 63);
            arrays[depth >> 6] = (depth & 63 ? arrays[depth >> 6] & ~bit : 0) | (array ? bit : 0);
            depth++;
            p = skip(p + 1, end);
            if (p >= end)
                return NULL;
            opened = *p != (array ? ']' : '}');
            if (opened && !array)
                p = key_end(p, end);
        } else if (opened) {
            p = *p == '"' ? string_end(p, end) : plain_end(p, end);
            opened = false;
        } else {
            bool array = arrays[(depth - 1) >> 6] >> ((depth - 1) & 63) & 1;
            p = skip(p, end);
            if (p >= end)
                return NULL;
            if (*p == ',') {
                p = skip(p + 1, end);
                if (!array)
                    p = key_end(p, end);
                opened = true;
            } else if (*p == (array ? ']' : '}')) {
                p++;
                if (--depth == 0)
                    return p;
            } else {
                return NULL;
            }
        }
        if (p && p >= end)
            return NULL;
    }
    return NULL;
}
