/* SPDX-License-Identifier: Apache-2.0 */
/* Generated documents: the same bytes as libbson makes of the same text. Some texts are written by
 * libbson from documents of every type; the others are generated, with all freedoms of the grammar:
 * blanks, escapes, forms of numbers. */
#include "extjson_reading.h"

#define DOCUMENTS 6000
#define TEXTS 12000
#define DEPTH 4u

static uint64_t drawn = 88172645463325252u;

static uint32_t draw(uint32_t limit) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (uint32_t)(drawn >> 33) % limit;
}

static uint64_t draw_word(void) {
    return (uint64_t)draw(UINT32_MAX) << 33 ^ (uint64_t)draw(UINT32_MAX) << 7 ^ draw(256);
}

/* ---- documents by libbson ---- */

/* A text of up to 80 bytes: ASCII, control characters, quotes, other characters. */
static int draw_text(char *out) {
    static const char *const parts[] = {"a",
                                        "Z",
                                        " ",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\x01",
                                        "/",
                                        "\xC3\xA9",
                                        "\xE2\x82\xAC",
                                        "\xF0\x9F\x98\x80",
                                        "{",
                                        "}",
                                        "0123456789"};
    *out = 0;
    size_t used = 0;
    for (uint32_t count = draw(3) ? draw(6) : draw(16); count > 0 && used < 70; count--)
        used += (size_t)sprintf(out + used, "%s", parts[draw(14)]);
    return (int)used;
}

static double draw_double(void) {
    union {
        uint64_t bits;
        double value;
    } any = {draw_word()};
    switch (draw(4)) {
    case 0:
        return (double)(int64_t)any.bits / 1000;
    case 1:
        return draw(100000) / 100.0;
    case 2:
        return any.value == any.value ? any.value : 0.5;
    default:
        return -(double)draw(10);
    }
}

static int64_t draw_int64(void) {
    int64_t value = (int64_t)(draw_word() >> draw(64));
    return draw(2) ? value : -value;
}

static void add_document(bson_t *document, unsigned depth);

static void add_value(bson_t *to, const char *key, unsigned depth, bool array) {
    char text[100], other[100];
    uint8_t bytes[64];
    bson_oid_t oid;
    bson_t child;
    bson_decimal128_t decimal;
    int length = draw_text(text);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)draw(256);
    bson_oid_init_from_data(&oid, bytes);
    uint32_t kind = draw(depth > 0 ? 21 : 19);
    if (array && (kind == 9 || kind == 10 || kind == 12))
        kind = 1; /* libbson reads code and pointers in arrays under wrong keys (test_extjson.c) */
    switch (kind) {
    case 0:
        assert_true(bson_append_double(to, key, -1, draw_double()));
        break;
    case 1:
        assert_true(bson_append_utf8(to, key, -1, text, length));
        break;
    case 2:
        assert_true(bson_append_binary(to, key, -1, (bson_subtype_t)draw(256), bytes, draw(60)));
        break;
    case 3:
        assert_true(bson_append_undefined(to, key, -1));
        break;
    case 4:
        assert_true(bson_append_oid(to, key, -1, &oid));
        break;
    case 5:
        assert_true(bson_append_bool(to, key, -1, draw(2)));
        break;
    case 6:
        /* libbson writes a relaxed date after 9999 that it does not read. */
        assert_true(bson_append_date_time(to, key, -1, draw_int64() % 253402300800000));
        break;
    case 7:
        assert_true(bson_append_null(to, key, -1));
        break;
    case 8:
        assert_true(bson_append_regex(to, key, -1, text, draw(2) ? "" : "imsx"));
        break;
    case 9:
        assert_true(bson_append_dbpointer(to, key, -1, text, &oid));
        break;
    case 10:
        assert_true(bson_append_code(to, key, -1, text));
        break;
    case 11:
        assert_true(bson_append_symbol(to, key, -1, text, length));
        break;
    case 12:
        bson_init(&child); /* flat: libbson reads wrappers within a scope differently */
        assert_true(bson_append_utf8(&child, "a", -1, text, length));
        assert_true(bson_append_int32(&child, "b", -1, (int32_t)draw(100)));
        draw_text(other);
        assert_true(bson_append_code_with_scope(to, key, -1, other, &child));
        bson_destroy(&child);
        break;
    case 13:
        assert_true(bson_append_int32(to, key, -1, (int32_t)draw_int64()));
        break;
    case 14:
        assert_true(bson_append_timestamp(to, key, -1, draw(UINT32_MAX), draw(UINT32_MAX)));
        break;
    case 15:
        assert_true(bson_append_int64(to, key, -1, draw_int64()));
        break;
    case 16:
        snprintf(other, sizeof other, "%lld.%uE%d", (long long)draw_int64(), draw(1000),
                 (int)draw(8000) - 4000);
        assert_true(bson_decimal128_from_string(other, &decimal));
        assert_true(bson_append_decimal128(to, key, -1, &decimal));
        break;
    case 17:
        assert_true(draw(2) ? bson_append_minkey(to, key, -1) : bson_append_maxkey(to, key, -1));
        break;
    case 18:
        assert_true(bson_append_double(to, key, -1, 0.0 / (draw(2) ? 1 : -1)));
        break;
    case 19:
        assert_true(bson_append_document_begin(to, key, -1, &child));
        add_document(&child, depth - 1);
        assert_true(bson_append_document_end(to, &child));
        break;
    default:
        assert_true(bson_append_array_begin(to, key, -1, &child));
        for (uint32_t i = 0, count = draw(14); i < count; i++) {
            snprintf(other, sizeof other, "%u", i);
            add_value(&child, other, depth - 1, true);
        }
        assert_true(bson_append_array_end(to, &child));
    }
}

static void add_document(bson_t *document, unsigned depth) {
    char key[120];
    for (uint32_t i = 0, count = draw(7); i < count; i++) {
        int length = draw_text(key);
        snprintf(key + length, sizeof key - (size_t)length, "%u", i); /* unique, and not _id */
        add_value(document, key, depth, false);
    }
}

TEST(documents_written_by_libbson) {
    for (int i = 0; i < DOCUMENTS; i++) {
        bson_t document = BSON_INITIALIZER;
        size_t length;
        add_document(&document, DEPTH);
        char *canonical = bson_as_canonical_extended_json(&document, &length);
        assert_non_null(canonical);
        assert_same_as_libbson(canonical, length);
        converted c = convert(canonical, length, NULL);
        assert_int_equal(c.length, document.len);
        /* libbson writes 17 to 20 digits, so doubles come back, too. */
        assert_memory_equal(c.bytes, bson_get_data(&document), c.length);
        free_converted(&c);
        bson_free(canonical);
        char *relaxed = bson_as_relaxed_extended_json(&document, &length);
        assert_same_as_libbson(relaxed, length);
        bson_free(relaxed);
        bson_destroy(&document);
    }
}

/* ---- generated texts ---- */

typedef struct text {
    char bytes[100000];
    size_t used;
} text;

static void put(text *t, const char *bytes) {
    size_t length = strlen(bytes);
    assert_true(t->used + length < sizeof t->bytes);
    memcpy(t->bytes + t->used, bytes, length + 1);
    t->used += length;
}

static void put_blanks(text *t) {
    static const char *const blanks[] = {"", "", "", " ", "\n", "\t \r\n  "};
    put(t, blanks[draw(6)]);
}

/* The contents of a string, with escapes where none are needed; `key`: without NUL. */
static void put_characters(text *t, bool key) {
    char escape[20];
    for (uint32_t count = draw(4) ? draw(10) : draw(100); count > 0; count--) {
        switch (draw(12)) {
        case 0:
            snprintf(escape, sizeof escape, draw(2) ? "\\u%04x" : "\\u%04X",
                     draw(0xD7FF) + (key ? 1u : 0u));
            put(t, escape);
            break;
        case 1:
            snprintf(escape, sizeof escape, "\\u%04x\\u%04X", 0xD800 + draw(0x400),
                     0xDC00 + draw(0x400));
            put(t, escape);
            break;
        case 2:
            snprintf(escape, sizeof escape, "\\%c", "\"\\/bfnrt"[draw(8)]);
            put(t, escape);
            break;
        case 3:
            put(t, draw(2) ? "\xE6\x97\xA5\xE6\x9C\xAC" : "\xC3\xBC\xF0\x9F\x98\x80");
            break;
        default:
            snprintf(escape, sizeof escape, "%c", 'a' + (char)draw(26));
            put(t, escape);
        }
    }
}

static void put_digits(text *t, uint32_t count) {
    char digit[2] = "";
    for (; count > 0; count--) {
        *digit = (char)('0' + draw(10));
        put(t, digit);
    }
}

static void put_number(text *t) {
    char first[3];
    snprintf(first, sizeof first, "%s%c", draw(2) ? "-" : "", '1' + (char)draw(9));
    put(t, draw(8) ? first : draw(2) ? "0" : "-0");
    bool zero = t->bytes[t->used - 1] == '0';
    uint32_t form = draw(4);
    if (!zero) /* integers have up to 18 digits, so that all fit */
        put_digits(t, draw(form == 0 ? 18 : 25));
    if (form == 0)
        return;
    if (form != 1) {
        put(t, ".");
        put_digits(t, 1 + draw(draw(4) ? 5 : 30));
    }
    if (form != 2) {
        put(t, draw(2) ? "e" : "E");
        put(t, draw(3) ? "" : draw(2) ? "+" : "-");
        put_digits(t, 1 + draw(2));
    }
}

static void put_value(text *t, unsigned depth);

static void put_object(text *t, unsigned depth) {
    char number[20];
    put(t, "{");
    put_blanks(t);
    for (uint32_t i = 0, count = draw(6); i < count; i++) {
        put(t, i > 0 ? "," : "");
        put_blanks(t);
        put(t, "\"");
        put_characters(t, true);
        snprintf(number, sizeof number, "%u\"", i);
        put(t, number);
        put_blanks(t);
        put(t, ":");
        put_blanks(t);
        put_value(t, depth);
        put_blanks(t);
    }
    put(t, "}");
}

static void put_value(text *t, unsigned depth) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    switch (draw(depth > 0 ? 8 : 6)) {
    case 0:
        put(t, words[draw(6)]);
        break;
    case 1:
    case 2:
    case 3:
        put_number(t);
        break;
    case 4:
    case 5:
        put(t, "\"");
        put_characters(t, false);
        put(t, "\"");
        break;
    case 6:
        put_object(t, depth - 1);
        break;
    default:
        put(t, "[");
        put_blanks(t);
        for (uint32_t i = 0, count = draw(draw(8) ? 5 : 120); i < count && t->used < 20000; i++) {
            put(t, i > 0 ? "," : "");
            put_blanks(t);
            put_value(t, depth - 1);
            put_blanks(t);
        }
        put(t, "]");
    }
}

TEST(generated_texts) {
    static text t;
    for (int i = 0; i < TEXTS; i++) {
        t.used = 0;
        put_object(&t, DEPTH);
        assert_same_as_libbson(t.bytes, t.used);
    }
}

/* A text of which a byte is changed: refused by both, or the same document. libbson accepts some
 * texts that this parser refuses, so only the other direction is checked. */
TEST(damaged_texts) {
    static text t;
    for (int i = 0; i < TEXTS; i++) {
        t.used = 0;
        put_object(&t, DEPTH - 1);
        t.bytes[draw((uint32_t)t.used)] = "{}[],:\"\\0e.- \xFFxu"[draw(16)];
        converted ours = convert(t.bytes, t.used, NULL);
        if (ours.bytes && ours.used == t.used)
            assert_same_as_libbson(t.bytes, t.used);
        free_converted(&ours);
    }
}
