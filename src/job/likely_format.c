/* SPDX-License-Identifier: Apache-2.0 */
/* The likelihood of formats, from hints: endings and parts of the source's name, and its first
 * bytes. */
#include "likely_format.h"

#include <string.h>

#define HEAD_BYTES 4096 /* examined */

/* A hint by the name: it ends in, or contains, this text. */
static const struct {
    const char *text;
    bool ending;
    const char *format;
    unsigned weight;
} names[] = {
    {".bson", true, "bson", 4},         {".json", true, "json", 4},
    {".jsonl", true, "json", 4},        {".ndjson", true, "json", 4},
    {".geojson", true, "json", 4},      {".csv", true, "delimited", 4},
    {".tsv", true, "delimited", 4},     {".tab", true, "delimited", 4},
    {".psv", true, "delimited", 4},     {".txt", true, "delimited", 1},
    {"test_result", false, "mot", 5},   {"test_item", false, "mot", 5},
    {"isd-lite", false, "isd-lite", 5}, {"-99999-", false, "isd", 2},
};

/* Endings of compressed files, which follow the ending that names the format. */
static const char *const packed[] = {".gz", ".zst", ".xz", ".bz2", ".lz4", ".Z"};

static bool ends_in(sl_text text, const char *ending) {
    size_t length = strlen(ending);
    return text.length >= length &&
           sl_text_equal_ignoring_case((sl_text){text.bytes + text.length - length, length},
                                       sl_text_of(ending));
}

static unsigned by_name(const char *format, sl_text name) {
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        if (ends_in(name, packed[i]))
            name.length -= strlen(packed[i]);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].format, format) == 0 &&
            (names[i].ending
                 ? ends_in(name, names[i].text)
                 : memmem(name.bytes, name.length, names[i].text, strlen(names[i].text)) != NULL))
            sum += names[i].weight;
    }
    return sum;
}

/* The format that the first bytes look like. */
static const char *looks_like(sl_text head) {
    size_t length = head.length < HEAD_BYTES ? head.length : HEAD_BYTES, at = 0;
    if (length == 0)
        return "";
    if (memchr(head.bytes, '\0', length))
        return "bson";
    while (at < length && strchr(" \t\r\n", head.bytes[at]))
        at++;
    return at < length && (head.bytes[at] == '{' || head.bytes[at] == '[') ? "json" : "delimited";
}

void sl_misfits_sort(sl_misfit *misfits, size_t count, const char *name, sl_text head) {
    const char *likely = looks_like(head);
    for (size_t i = 0; i < count; i++) {
        sl_misfit one = misfits[i];
        one.weight = by_name(one.format, sl_text_of(name)) + (strcmp(likely, one.format) ? 0 : 3);
        size_t at = i;
        for (; at > 0 && misfits[at - 1].weight < one.weight; at--)
            misfits[at] = misfits[at - 1];
        misfits[at] = one;
    }
}
