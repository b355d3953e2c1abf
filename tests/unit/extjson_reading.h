/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of Extended JSON: converts texts with every instruction set of this processor. */
#ifndef TESTS_EXTJSON_READING_H
#define TESTS_EXTJSON_READING_H

#include "bson/extjson.h"
#include "format/simd.h"
#include "unit.h"

static bool utf8_valid(const char *bytes, size_t length) {
    return sl_utf8_valid(bytes, length, NULL);
}

typedef struct converted {
    uint8_t *bytes; /* NULL: the text is invalid; see free_converted */
    size_t length;
    char reason[600];
    size_t where; /* of the fault, in the text */
    size_t used;  /* bytes of the text */
    bool own_id;
    bool shell; /* has syntax of the mongo shell, which libbson refuses */
} converted;

static inline void free_converted(converted *c) {
    free(c->bytes);
    *c = (converted){0};
}

/* The end of the text that a parser is given: behind its last }. */
static inline size_t last_brace(const char *text, size_t length) {
    while (length > 0 && text[length - 1] != '}')
        length--;
    return length;
}

/* Converts with one parser, in memory of exactly the sizes that it may use, which grows from `room`
 * bytes as the parser requests. */
static inline converted convert_with(sl_extjson *parser, const char *text, size_t length,
                                     const int64_t *id, size_t room) {
    converted c = {0};
    size_t end = last_brace(text, length);
    if (end == 0 || *text != '{') {
        snprintf(c.reason, sizeof c.reason, "no document");
        return c;
    }
    char *copy = malloc(end + SL_SLACK);
    assert_non_null(copy);
    memcpy(copy, text, end);
    for (size_t i = 0; i < SL_SLACK; i++) /* these bytes must not affect the result */
        copy[end + i] = "9\"}\\u0 ,e"[(i + end) % 9];
    sl_extjson_status status = SL_EXTJSON_NO_ROOM;
    const uint64_t shell = sl_extjson_shell(parser);
    for (; status == SL_EXTJSON_NO_ROOM; room = room * 2 + 100) {
        assert_true(room < (size_t)100 << 20);
        uint8_t *to = malloc(room + SL_SLACK), *written = NULL;
        assert_non_null(to);
        const char *after = NULL;
        status = sl_extjson_document(parser, copy, copy + end, id, to, to + room, &after, &written,
                                     &c.own_id);
        if (status == SL_EXTJSON_OK) {
            c.length = (size_t)(written - to);
            c.used = (size_t)(after - copy);
            assert_true(c.length <= room && c.used <= end);
            c.shell = sl_extjson_shell(parser) > shell;
            c.bytes = malloc(c.length);
            assert_non_null(c.bytes);
            memcpy(c.bytes, to, c.length);
        } else if (status == SL_EXTJSON_INVALID) {
            const sl_extjson_fault *why = sl_extjson_why(parser);
            snprintf(c.reason, sizeof c.reason, "%s", why->reason);
            assert_true(why->at >= copy && why->at <= copy + end);
            c.where = (size_t)(why->at - copy);
        }
        free(to);
    }
    free(copy);
    return c;
}

static inline void destroy_parsers(void *parsers) {
    for (sl_extjson **parser = parsers; *parser; parser++) {
        sl_extjson_destroy(*parser);
        *parser = NULL;
    }
}

/* Parsers for all instruction sets of this processor, ended by NULL. The first call of a test
 * creates them. */
static inline sl_extjson **all_parsers(void) {
    static sl_extjson *parsers[10];
    if (parsers[0])
        return parsers;
    for (size_t i = 0, count = 0; sl_simds[i]; i++) {
        sl_error error;
        if (sl_simd_supported(sl_simds[i]))
            assert_true(sl_extjson_create(sl_simd_name(sl_simds[i]), utf8_valid, &parsers[count++],
                                          &error));
    }
    unit_release_later(destroy_parsers, parsers);
    return parsers;
}

/* Converts with all instruction sets; fails the test if they differ. */
static inline converted convert(const char *text, size_t length, const int64_t *id) {
    converted first = {0};
    size_t room = 300 + length % 7;
    for (sl_extjson **parser = all_parsers(); *parser; parser++) {
        converted c = convert_with(*parser, text, length, id, room);
        if (parser == all_parsers()) {
            first = c;
            continue;
        }
        assert_string_equal(c.reason, first.reason);
        assert_int_equal(c.where, first.where);
        assert_int_equal(c.length, first.length);
        assert_int_equal(c.used, first.used);
        if (c.bytes)
            assert_memory_equal(c.bytes, first.bytes, c.length);
        free_converted(&c);
    }
    return first;
}

static inline converted convert_text(const char *text) {
    return convert(text, strlen(text), NULL);
}

/* As libbson converts the text; bytes NULL if it refuses it. */
static inline converted convert_by_libbson(const char *text, size_t length) {
    bson_error_t error;
    converted c = {0};
    bson_t *document = bson_new_from_json((const uint8_t *)text, (ssize_t)length, &error);
    if (!document) {
        snprintf(c.reason, sizeof c.reason, "%s", error.message);
        return c;
    }
    c.length = document->len;
    c.bytes = malloc(c.length);
    assert_non_null(c.bytes);
    memcpy(c.bytes, bson_get_data(document), c.length);
    bson_destroy(document);
    return c;
}

static inline void assert_same_as_libbson(const char *text, size_t length) {
    converted ours = convert(text, length, NULL), theirs = convert_by_libbson(text, length);
    if (!theirs.bytes && !ours.shell)
        fail_msg("libbson refuses %.*s: %s", (int)length, text, theirs.reason);
    if (!ours.bytes)
        fail_msg("refused at byte %zu: %s: %.*s", ours.where, ours.reason, (int)length, text);
    if (theirs.bytes &&
        (ours.length != theirs.length || memcmp(ours.bytes, theirs.bytes, ours.length) != 0)) {
        for (size_t i = 0; i < ours.length; i++)
            fprintf(stderr, "%02x%s", ours.bytes[i], i + 1 == ours.length ? "\n" : " ");
        for (size_t i = 0; i < theirs.length; i++)
            fprintf(stderr, "%02x%s", theirs.bytes[i], i + 1 == theirs.length ? "\n" : " ");
        fail_msg("another document than libbson's: %.*s", (int)length, text);
    }
    free_converted(&ours);
    free_converted(&theirs);
}

#endif
