/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes Extended JSON. For any text: nothing is accessed out of bounds, whatever the room (each
 * text and each document is an allocation of exactly its size); every instruction set gives the
 * same result; a document is valid BSON without duplicate keys, and equals libbson's, unless the
 * text has one of the keys that libbson is known to read differently (test_extjson.c), or syntax
 * of the mongo shell; a refused text has a reason, and a position within it. The first byte of the
 * input selects the room, and whether an _id is added. */
#include "parsing.h"

#include "bson/extjson.h"

static bool utf8_valid(const char *bytes, size_t length) {
    return sl_utf8_valid(bytes, length, NULL);
}

/* Does libbson refuse or change some texts with these keys? A key may be written with escapes. */
static bool is_read_differently(sl_text text) {
    static const char *const keys[] = {"$type", "$date",  "$regex",     "$options", "$regularE",
                                       "$code", "$scope", "$dbPointer", "\\u"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (memmem(text.bytes, text.length, keys[i], strlen(keys[i])))
            return true;
    }
    return false;
}

static void compare_with_libbson(sl_text text, const uint8_t *document, size_t length) {
    bson_error_t error;
    bson_t *other = bson_new_from_json((const uint8_t *)text.bytes, (ssize_t)text.length, &error);
    require(other || is_read_differently(text), "libbson accepts the text of a document");
    if (other)
        require((other->len == length && memcmp(bson_get_data(other), document, length) == 0) ||
                    is_read_differently(text),
                "a document is the same as libbson's");
    bson_destroy(other);
}

/* Converts the text; returns a hash of the result. */
static uint64_t convert(sl_extjson *parser, const char *text, size_t length, const int64_t *id,
                        size_t room) {
    uint64_t hash = 14695981039346656037u;
    const uint64_t shell = sl_extjson_shell(parser);
    for (;; room = room * 2 + 64) {
        uint8_t *to = malloc(room + SL_SLACK), *written;
        const char *after;
        bool own;
        require(to != NULL && room < ((size_t)64 << 20), "allocation succeeds");
        sl_extjson_status status = sl_extjson_document(parser, text, text + length, id, to,
                                                       to + room, &after, &written, &own);
        if (status == SL_EXTJSON_OK) {
            size_t bytes = (size_t)(written - to);
            require(bytes <= room, "a document fits into its room");
            require(after > text && after <= text + length, "a document is part of the text");
            check_document(to, bytes);
            mix(&hash, to, bytes);
            mix(&hash, &own, sizeof own);
            if (!id && !own && sl_extjson_shell(parser) == shell)
                compare_with_libbson((sl_text){text, (size_t)(after - text)}, to, bytes);
        } else if (status == SL_EXTJSON_INVALID) {
            const sl_extjson_fault *why = sl_extjson_why(parser);
            size_t where = (size_t)(why->at - text);
            require(why->at >= text && why->at <= text + length, "a fault is within the text");
            mix(&hash, why->reason, strlen(why->reason));
            mix(&hash, &where, sizeof where);
        }
        free(to);
        if (status != SL_EXTJSON_NO_ROOM)
            return hash;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_extjson *parsers[SETS_MAX];
    static const int64_t id = 1234567890123;
    sl_error error;
    if (size < 3 || size > INPUT_MAX || data[1] != '{')
        return 0;
    uint8_t choice = *data++;
    const uint8_t *brace = memrchr(data, '}', --size);
    if (!brace)
        return 0;
    size_t length = (size_t)(brace - data) + 1;
    char *text = copy_of(data, length, SL_SLACK, "\"9} "[choice & 3]);
    uint64_t best = 0;
    for (size_t i = 0; i < SETS_MAX && instructions(i); i++) {
        require(parsers[i] || sl_extjson_create(instructions(i), utf8_valid, &parsers[i], &error),
                "allocation succeeds");
        uint64_t hash =
            convert(parsers[i], text, length, choice & 4 ? &id : NULL, (size_t)(choice >> 3) * 50);
        require(i == 0 || hash == best, "all instruction sets give the same result");
        best = hash;
    }
    free(text);
    return 0;
}
