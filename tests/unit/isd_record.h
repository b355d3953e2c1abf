/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of ISD: builds records, and reads values of their documents by path. */
#ifndef ISD_RECORD_H
#define ISD_RECORD_H

#define BATCH_BYTES (1 << 20) /* room for the document of the longest record */
#include "parse_text.h"

#include "format/isd.h"

/* Bytes 5 to 105 of a record with a value in every column: station, time, source and position;
 * type, elevation, call letters, quality control; wind, ceiling, visibility, temperatures ... */
#define FIXED_PART                                                                                 \
    "010010999991988013112004+70933-008667"                                                        \
    "FM-12+0009ENJA V020"                                                                          \
    "3181N00611004501CN0100001V5-00671-00801101231"

typedef struct record {
    char bytes[SL_ISD_RECORD_BYTES_MAX + 200];
    size_t length;
} record;

/* A record with these sections, the correct length, and a line feed. */
static record record_of(const char *sections) {
    record r;
    int length =
        snprintf(r.bytes, sizeof r.bytes, "%04zu" FIXED_PART "%s\n", strlen(sections), sections);
    assert_true(length > 0 && (size_t)length < sizeof r.bytes);
    r.length = (size_t)length;
    return r;
}

/* The same, with `text` at `position` (counted from 1, as in the format document). */
static inline record record_with(size_t position, const char *text, const char *sections) {
    record r = record_of(sections);
    assert_true(position - 1 + strlen(text) < r.length);
    memcpy(r.bytes + position - 1, text, strlen(text));
    return r;
}

static inline parsed parse_bytes(const sl_format_options *options, const char *bytes,
                                 size_t length) {
    return parse_in_blocks("isd", options, (sl_text){bytes, length}, 0, 0);
}

static inline parsed parse_record(record r) {
    parsed p = parse_bytes(&(sl_format_options){0}, r.bytes, r.length);
    if (!p.format)
        fail_msg("not recognised as ISD: %s", p.error.message);
    return p;
}

static inline parsed parse_sections(const char *sections) {
    return parse_record(record_of(sections));
}

/* The value at `path` in document `index`, as text: "int 5", "double 6.1", "text N",
 * "date 571752000000", "document", "array [2]", "nothing". Valid until the fourth next call. */
static const char *at(const parsed *p, size_t index, const char *path) {
    static char rooms[4][12000];
    static unsigned turn;
    char *out = rooms[turn++ % 4];
    const size_t room = sizeof rooms[0];
    bson_t document;
    document_at(p, index, &document);
    bson_iter_t iter, found, inner;
    snprintf(out, room, "nothing");
    if (!bson_iter_init(&iter, &document) || !bson_iter_find_descendant(&iter, path, &found))
        return out;
    switch (bson_iter_type(&found)) {
    case BSON_TYPE_INT32:
        snprintf(out, room, "int %d", bson_iter_int32(&found));
        break;
    case BSON_TYPE_DOUBLE:
        snprintf(out, room, "double %.15g", bson_iter_double(&found));
        break;
    case BSON_TYPE_UTF8:
        snprintf(out, room, "text %s", bson_iter_utf8(&found, NULL));
        break;
    case BSON_TYPE_DATE_TIME:
        snprintf(out, room, "date %lld", (long long)bson_iter_date_time(&found));
        break;
    case BSON_TYPE_DOCUMENT:
        snprintf(out, room, "document");
        break;
    case BSON_TYPE_ARRAY: {
        int count = 0;
        assert_true(bson_iter_recurse(&found, &inner));
        while (bson_iter_next(&inner))
            count++;
        snprintf(out, room, "array [%d]", count);
        break;
    }
    default:
        snprintf(out, room, "type %d", (int)bson_iter_type(&found));
    }
    return out;
}

#define assert_at(p, path, expected)                                                               \
    do {                                                                                           \
        if (strcmp(at((p), 0, path), expected) != 0)                                               \
            fail_msg("%s is %s instead of %s", path, at((p), 0, path), expected);                  \
    } while (0)

/* The ids of the parsed groups, separated by blanks. */
static inline const char *sections_of(const parsed *p, size_t index) {
    static char out[12000];
    char path[24];
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0;; i++) {
        snprintf(path, sizeof path, "sections.%d", i);
        const char *id = at(p, index, path);
        if (strcmp(id, "nothing") == 0)
            return out;
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", i ? " " : "", id + 5);
    }
}

#endif
