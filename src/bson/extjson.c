/* SPDX-License-Identifier: Apache-2.0 */
/* Extended JSON to BSON: the parser of documents around its main loop (extjson_loop.c). Converts
 * numbers, words, escapes, and the values that are written as objects; creates parsers, detects
 * duplicate keys, moves a document's `_id` to the front. */
#include "extjson_parser.h"

#include <bson/bson.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>

_Static_assert(SL_EXTJSON_MARGIN >= 1 + 64 + 1 + 4 + 64 + 1 + SL_EXTJSON_DEPTH_MAX,
               "an element, and the ends of all documents around it, fit into the margin");

static const extjson_kernel *const kernels[] = {
#if defined(__x86_64__)
    &sl_extjson_avx2,
#elif defined(__aarch64__)
    &sl_extjson_neon,
#endif
    &sl_extjson_portable};

/* ---- faults, room ---- */

const char *sl_extjson_string_fault(sl_extjson *x, const char *p) {
    return p < x->end ? extjson_fail(x, p,
                                     "a control character in a string, where an escape such "
                                     "as \\n is needed")
                      : extjson_expected(x, p, NULL);
}

const char *sl_extjson_utf8_fault(sl_extjson *x, const char *from, const char *p) {
    size_t where = 0;
    sl_utf8_valid(from, (size_t)(p - from), &where);
    return extjson_fail_with(x, from + where, "bytes that are not UTF-8", from, (size_t)(p - from));
}

/* Exchanges two neighbouring ranges: [start, middle) and [middle, end). The room from `spare` on is
 * used; false, as extjson_no_room, when it is too small. */
static bool exchange(sl_extjson *x, uint8_t *start, uint8_t *middle, uint8_t *end, uint8_t *spare) {
    size_t before = (size_t)(middle - start), behind = (size_t)(end - middle);
    if (spare > x->limit + SL_EXTJSON_MARGIN ||
        (size_t)(x->limit + SL_EXTJSON_MARGIN - spare) < behind) {
        x->no_room = true;
        return false;
    }
    memcpy(spare, middle, behind);
    memmove(start + behind, start, before);
    memcpy(start, spare, behind);
    return true;
}

/* ---- values that the main loop does not convert itself: numbers, words, escapes ---- */

/* A number of the JSON grammar. */
typedef struct number {
    const char *start, *end;
    bool negative;
    bool real;        /* has a fraction or an exponent */
    bool exact;       /* `digits` holds all significant digits */
    uint64_t digits;  /* the significant digits, without the point */
    int64_t exponent; /* the value is digits * 10^exponent */
} number;

/* Adds the digits at `p`; returns the address after them. */
static const char *add_digits(number *n, const char *p, bool fraction) {
    for (; sl_is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (n->digits < UINT64_MAX / 10 - 1) {
            n->digits = n->digits * 10 + digit;
            n->exponent -= fraction;
        } else {
            n->exact = n->exact && digit == 0;
            n->exponent += !fraction;
        }
    }
    return p;
}

/* Reads the number at `p`. On failure, returns NULL and sets *where and *reason. */
static const char *read_number(number *n, const char *p, const char **where, const char **reason) {
    *n = (number){.start = p, .negative = *p == '-', .exact = true};
    p += n->negative;
    *where = p;
    *reason = "a value is expected";
    if (!sl_is_digit(*p))
        return NULL;
    *reason = "a number that begins with 0 and continues with a digit";
    if (*p == '0' && sl_is_digit(p[1]))
        return NULL;
    p = add_digits(n, p, false);
    if (*p == '.') {
        n->real = true;
        *where = ++p;
        *reason = "a digit is expected after the decimal point";
        if (!sl_is_digit(*p))
            return NULL;
        p = add_digits(n, p, true);
    }
    if (*p == 'e' || *p == 'E') {
        n->real = true;
        p++;
        bool negative = *p == '-';
        p += *p == '-' || *p == '+';
        *where = p;
        *reason = "a digit is expected in an exponent";
        if (!sl_is_digit(*p))
            return NULL;
        int64_t exponent = 0;
        for (; sl_is_digit(*p); p++)
            exponent = exponent < 100000000 ? exponent * 10 + (*p - '0') : exponent;
        n->exponent += negative ? -exponent : exponent;
    }
    return n->end = p;
}

/* The double nearest to the number; false when it is out of range. A byte that is not part of a
 * number follows it. */
static bool to_double(const number *n, double *value) {
    if (n->exact && n->digits <= UINT64_C(1) << 53 && n->exponent >= -22 && n->exponent <= 22) {
        double digits = (double)n->digits; /* exact, so the result is rounded once */
        *value = n->exponent < 0 ? digits / sl_powers_of_ten[-n->exponent]
                                 : digits * sl_powers_of_ten[n->exponent];
        *value = n->negative ? -*value : *value;
        return true;
    }
    *value = strtod(n->start, NULL);
    return isfinite(*value);
}

/* More than 17, which are enough for each double? */
static bool has_many_digits(uint64_t digits) {
    while (digits > UINT64_C(99999999999999999) && digits % 10 == 0)
        digits /= 10;
    return digits > UINT64_C(99999999999999999);
}

void sl_extjson_set_lossless(sl_extjson *x) {
    x->lossless = true;
}

uint64_t sl_extjson_rounded(const sl_extjson *x) {
    return x->rounded;
}

uint64_t sl_extjson_shell(const sl_extjson *x) {
    return x->shell;
}

/* A value in the syntax of the mongo shell, at the end of this file's section about it. */
static const char *shell_value(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth);

const char *sl_extjson_number(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    number n;
    const char *where, *reason, *digits = p + (*p == '-');
    if (*p == '-' && (p[1] | 0x20) == 'i')
        return sl_extjson_word_value(x, p, type, to, 0);
    if (*digits == '.' || (*digits == '0' && (digits[1] | 0x20) == 'x'))
        return shell_value(x, p, type, to, 0);
    if (!read_number(&n, p, &where, &reason))
        return extjson_expected(x, where, reason);
    const bool many = !n.exact || has_many_digits(n.digits);
    const bool wide = !n.exact || n.exponent != 0 || n.digits > (uint64_t)INT64_MAX + n.negative;
    if (x->lossless && (n.real ? many : wide)) {
        uint8_t *after = sl_bson_put_decimal(*to, p, (size_t)(n.end - p));
        if (!after)
            return extjson_fail_with(x, p, "a number of more than 34 digits", p,
                                     (size_t)(n.end - p));
        *type = SL_BSON_DECIMAL;
        *to = after;
        return n.end;
    }
    if (n.real) {
        double value;
        if (!to_double(&n, &value))
            return extjson_fail_with(x, p, "a number beyond the range of a double", p,
                                     (size_t)(n.end - p));
        x->rounded += many;
        *type = SL_BSON_DOUBLE;
        *to = sl_bson_put_double(*to, value);
        return n.end;
    }
    if (wide)
        return extjson_fail_with(x, p,
                                 "an integer beyond 64 bits; write it with a decimal point, or as "
                                 "$numberDecimal",
                                 p, (size_t)(n.end - p));
    int64_t value = (int64_t)(n.negative ? 0 - n.digits : n.digits);
    bool small = value == (int32_t)value;
    *type = small ? SL_BSON_INT32 : SL_BSON_INT64;
    *to = small ? sl_bson_put_int32(*to, (int32_t)value) : sl_bson_put_int64(*to, value);
    return n.end;
}

/* Write the value of a text, as sl_bson_put_uuid does. For int32 and int64 the text has digits with
 * an optional sign; for double it is a JSON number, NaN or infinite; for date it is an ISO 8601
 * date. NULL: it is none of them, or out of range. */
typedef uint8_t *extjson_put(uint8_t *to, const char *text, size_t length);

/* Digits with an optional sign. */
static bool int64_of(const char *text, size_t length, int64_t *value) {
    bool sign = length > 0 && (*text == '-' || *text == '+');
    bool negative = sign && *text == '-';
    uint64_t digits;
    if (!sl_text_to_u64((sl_text){text + sign, length - sign}, &digits) ||
        digits > (uint64_t)INT64_MAX + negative)
        return false;
    *value = (int64_t)(negative ? 0 - digits : digits);
    return true;
}

static uint8_t *put_int64(uint8_t *to, const char *text, size_t length) {
    int64_t value;
    return int64_of(text, length, &value) ? sl_bson_put_int64(to, value) : NULL;
}

static uint8_t *put_int32(uint8_t *to, const char *text, size_t length) {
    int64_t value;
    return int64_of(text, length, &value) && value == (int32_t)value
               ? sl_bson_put_int32(to, (int32_t)value)
               : NULL;
}

/* Writes the double for NaN, Infinity and -Infinity, in any case. Returns the word's length, or
 * 0. */
static size_t word_double(const char *text, size_t length, double *value) {
    static const struct {
        const char *word;
        size_t length;
        double value;
    } words[] = {{"nan", 3, (double)NAN}, {"infinity", 8, INFINITY}, {"-infinity", 9, -INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length >= words[i].length && strncasecmp(text, words[i].word, words[i].length) == 0) {
            *value = words[i].value;
            return words[i].length;
        }
    }
    return 0;
}

static uint8_t *put_double(uint8_t *to, const char *text, size_t length) {
    number n;
    const char *where, *reason;
    double value;
    size_t word = word_double(text, length, &value);
    bool right = word > 0 ? word == length
                          : read_number(&n, text, &where, &reason) && n.end == text + length &&
                                to_double(&n, &value);
    return right ? sl_bson_put_double(to, value) : NULL;
}

const char *sl_extjson_word_value(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth) {
    double value;
    size_t length;
    if (memcmp(p, "true", 4) == 0) {
        *type = SL_BSON_BOOL;
        *(*to)++ = 1;
        return p + 4;
    }
    if (memcmp(p, "false", 5) == 0) {
        *type = SL_BSON_BOOL;
        *(*to)++ = 0;
        return p + 5;
    }
    if (memcmp(p, "null", 4) == 0) {
        *type = SL_BSON_NULL;
        return p + 4;
    }
    if ((length = word_double(p, 9, &value)) > 0) {
        *type = SL_BSON_DOUBLE;
        *to = sl_bson_put_double(*to, value);
        return p + length;
    }
    return shell_value(x, p, type, to, depth);
}

/* ---- escapes ---- */

static bool read_hex4(const char *p, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = sl_hex_digit(p[i]);
        if (digit < 0)
            return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

const char *sl_extjson_escape(sl_extjson *x, const char *p, uint8_t **to) {
    static const char plain[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'n', '\n'},
                                    {'t', '\t'}, {'r', '\r'},  {'b', '\b'}, {'f', '\f'}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (p[1] == plain[i][0]) {
            *(*to)++ = (uint8_t)plain[i][1];
            return p + 2;
        }
    }
    if (p[1] != 'u')
        return extjson_fail_with(x, p, "an escape that JSON does not have", p, 2);
    uint32_t code, second = 0;
    if (!read_hex4(p + 2, &code))
        return extjson_expected(x, p, "four hexadecimal digits are expected after \\u");
    if (code < 0xD800 || code > 0xDFFF) {
        *to = sl_utf8_put(*to, code);
        return p + 6;
    }
    if (code > 0xDBFF || p[6] != '\\' || p[7] != 'u' || !read_hex4(p + 8, &second) ||
        second < 0xDC00 || second > 0xDFFF)
        return extjson_fail_with(x, p, "half of a surrogate pair, which is not a character", p, 6);
    *to = sl_utf8_put(*to, 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00));
    return p + 12;
}

/* ---- values written as objects: {"$oid": "..."}, {"$date": ...} and so on ---- */

/* An object is such a value if its first key is one of the table at the end of this section. Texts
 * are first copied to the position of the value, or a few bytes after it, and converted from
 * there. */

/* A value that is being read. */
typedef struct extjson_value {
    uint8_t *type;  /* the element's BSON type, which has been set; the key follows it */
    uint8_t *to;    /* where the value is written */
    uint32_t depth; /* the level of the document that has the value */
} extjson_value;

/* Reads from `p`, the value of the object's first key, up to the object's }: writes the value to
 * v->to, and moves that after it. Returns the address after what was read, or NULL. */
typedef const char *extjson_take(sl_extjson *x, const char *p, extjson_value *v);

/* Bytes between a value and the text that it is converted from. */
#define EXTJSON_SCRATCH 32
#define EXTJSON_OBJECT_ID "an ObjectId is a text of 24 hexadecimal digits"
#define EXTJSON_UUID "a UUID is a text such as c8edabc3-f738-4ca3-b68d-ab92a91478a3"

static inline const char *extjson_not_a(sl_extjson *x, const char *at, const char *reason,
                                        sl_text text) {
    return extjson_fail_with(x, at, reason, text.bytes, text.length);
}

/* ---- strings and keys of the mongo shell ---- */

static const char *name_end(const char *p) {
    if (!sl_is_digit(*p)) {
        while (sl_is_name_byte(*p))
            p++;
    }
    return p;
}

/* As extjson_kernel.string, for the single-quoted string that begins at `p`. */
static const char *shell_string(sl_extjson *x, const char *p, uint8_t **to) {
    const char *from = ++p;
    uint8_t *start = *to;
    x->shell++;
    while (p < x->end && (uint8_t)*p >= 0x20 && *p != '\'') {
        if (*to > x->limit)
            return extjson_no_room(x);
        if (*p != '\\' || p[1] == '\'') {
            p += *p == '\\';
            *(*to)++ = (uint8_t)*p++;
        } else if (!(p = sl_extjson_escape(x, p, to))) {
            return NULL;
        }
    }
    if (p >= x->end || *p != '\'')
        return sl_extjson_string_fault(x, p);
    if (!x->utf8_valid((const char *)start, (size_t)(*to - start)))
        return sl_extjson_utf8_fault(x, from, p);
    return p + 1;
}

const char *sl_extjson_shell_key(sl_extjson *x, const char *p, uint8_t **to) {
    const char *from = p, *end = name_end(p);
    uint8_t *start = *to;
    if (*p == '\'') {
        p = shell_string(x, p, to);
        return p && memchr(start, 0, (size_t)(*to - start))
                   ? extjson_fail(x, from, "\\u0000 in a key; keys cannot contain NUL")
                   : p;
    }
    if (p == end)
        return extjson_expected(x, p, "a key in quotes is expected");
    if (end - p > x->limit + SL_SLACK - *to)
        return extjson_no_room(x);
    x->shell++;
    memcpy(*to, p, (size_t)(end - p));
    *to += end - p;
    return end;
}

/* ---- parts of objects; each function returns the address after the part, or NULL ---- */

/* Copies the string at `p` to `to`, ended by NUL. `expected`: the reason if it is not a string. */
static const char *take_text(sl_extjson *x, const char *p, uint8_t *to, sl_text *text,
                             const char *expected) {
    if (*p != '"' && *p != '\'')
        return extjson_expected(x, p, expected);
    uint8_t *end = to;
    p = *p == '"' ? x->kernel->string(x, p + 1, &end) : shell_string(x, p, &end);
    if (!p)
        return NULL;
    if (end > x->limit)
        return extjson_no_room(x);
    *end = 0;
    *text = (sl_text){(const char *)to, (size_t)(end - to)};
    return p;
}

/* The end of an object that is a value. The } of the document around it must follow. */
static const char *take_end(sl_extjson *x, const char *p) {
    p = extjson_skip(p);
    if (*p != '}')
        return extjson_expected(x, p, "a } is expected: this value has no further keys");
    return p + 1 < x->end ? p + 1 : extjson_expected(x, x->end, NULL);
}

/* As take_text, for a key. */
static const char *take_name(sl_extjson *x, const char *p, uint8_t *to, sl_text *name) {
    uint8_t *end = to;
    if (*p == '"' || *p == '\'')
        return take_text(x, p, to, name, "");
    if (name_end(p) == p)
        return extjson_expected(x, p, "a key is expected");
    p = sl_extjson_shell_key(x, p, &end);
    *name = (sl_text){(const char *)to, (size_t)(end - to)};
    return p;
}

/* Reads the first key of an object (`p` is after the {), or a further key (`p` is before the
 * comma), and the colon. Returns the address of the value. */
static const char *take_key(sl_extjson *x, const char *p, bool first, uint8_t *scratch,
                            sl_text *key) {
    p = extjson_skip(p);
    if (!first && *p != ',')
        return extjson_expected(x, p, "a comma and another key are expected");
    p = take_name(x, first ? p : extjson_skip(p + 1), scratch, key);
    if (!p)
        return NULL;
    p = extjson_skip(p);
    if (*p != ':')
        return extjson_expected(x, p, "a colon is expected after a key");
    return extjson_skip(p + 1);
}

/* A further key, which must be `name`. */
static const char *take_second(sl_extjson *x, const char *p, uint8_t *scratch, const char *name,
                               const char *expected) {
    sl_text key;
    const char *at = extjson_skip(p);
    p = take_key(x, p, false, scratch, &key);
    if (p && !sl_text_equal(key, sl_text_of(name)))
        return extjson_fail(x, at, expected);
    return p;
}

static const char *begin_object(sl_extjson *x, const char *p, const char *expected) {
    return *p == '{' ? p + 1 : extjson_expected(x, p, expected);
}

/* ---- values that are written as a text ---- */

/* Converts the string at `p` to a value at *to by `put`, and moves *to after it. `expected`: the
 * reason if the string is not such a value. */
static const char *take_converted(sl_extjson *x, const char *p, uint8_t **to, extjson_put *put,
                                  const char *expected) {
    sl_text text;
    const char *at = p;
    if (!(p = take_text(x, p, *to + EXTJSON_SCRATCH, &text, expected)))
        return NULL;
    uint8_t *end = put(*to, text.bytes, text.length);
    if (!end)
        return extjson_not_a(x, at, expected, text);
    *to = end;
    return p;
}

/* ---- dates, timestamps ---- */

/* The integer at `p`, which is not in quotes. `scratch`: room for 16 bytes. */
static const char *take_integer(sl_extjson *x, const char *p, uint8_t *scratch, int64_t *value,
                                const char *expected) {
    uint8_t type = 0, *end = scratch;
    const char *at = p;
    if (*p != '-' && (*p < '0' || *p > '9'))
        return extjson_expected(x, p, expected);
    if (!(p = sl_extjson_number(x, p, &type, &end)))
        return NULL;
    int32_t small;
    memcpy(&small, scratch, sizeof small);
    memcpy(value, scratch, sizeof *value);
    *value = type == SL_BSON_INT32 ? small : *value;
    return type == SL_BSON_INT32 || type == SL_BSON_INT64 ? p : extjson_fail(x, at, expected);
}

#define INT64_REASON "$numberLong is a text of decimal digits, within 64 bits"

static const char *take_date(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$date is a text such as 2015-12-31T23:59:59.999Z with a valid "
                                 "date and an offset from UTC, a number of milliseconds, or "
                                 "{\"$numberLong\": ...}";
    const char *at = p;
    int64_t ms;
    if (*p == '"' || *p == '\'')
        return take_converted(x, p, &v->to, sl_bson_put_iso_date, reason);
    if (*p == '{') {
        sl_text key;
        if (!(p = take_key(x, p + 1, true, v->to + EXTJSON_SCRATCH, &key)))
            return NULL;
        if (!sl_text_equal(key, sl_text_of("$numberLong")))
            return extjson_not_a(x, at, reason, key);
        p = take_converted(x, p, &v->to, put_int64, INT64_REASON);
        return p ? take_end(x, p) : NULL;
    }
    if (!(p = take_integer(x, p, v->to, &ms, reason)))
        return NULL;
    v->to = sl_bson_put_int64(v->to, ms);
    return p;
}

/* `at`: its position. False: a server would change it. */
static bool put_timestamp(sl_extjson *x, const char *at, extjson_value *v, uint32_t t, uint32_t i) {
    const uint32_t values[2] = {i, t}; /* the order in BSON */
    if (v->depth == 0 && t == 0 && i == 0 && strcmp((const char *)v->type + 1, "_id") != 0) {
        extjson_fail(x, at, "Timestamp(0, 0): a server replaces it with the current time");
        return false;
    }
    memcpy(v->to, values, sizeof values);
    v->to += sizeof values;
    return true;
}

static const char *take_timestamp(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] =
        "$timestamp is {\"t\": seconds, \"i\": number}, with integers from 0 to 4294967295";
    uint32_t values[2]; /* i, t */
    bool known[2] = {false, false};
    const char *start = p;
    if (!(p = begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        int64_t value;
        const char *at = p;
        if (!(p = take_key(x, p, i == 0, v->to + EXTJSON_SCRATCH, &key)))
            return NULL;
        size_t which = key.length == 1 && *key.bytes == 't';
        if (key.length != 1 || (*key.bytes != 't' && *key.bytes != 'i') || known[which])
            return extjson_not_a(x, at, reason, key);
        at = p;
        if (!(p = take_integer(x, p, v->to + EXTJSON_SCRATCH, &value, reason)))
            return NULL;
        if (value < 0 || value > UINT32_MAX)
            return extjson_fail(x, at, reason);
        known[which] = true;
        values[which] = (uint32_t)value;
    }
    return put_timestamp(x, start, v, values[1], values[0]) ? take_end(x, p) : NULL;
}

/* ---- binary data ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Decodes base64 to `to`, which may lie before the text in the same memory. Blanks are skipped, as
 * by libbson. */
static bool decode_base64(sl_text text, uint8_t *to, size_t *length) {
    uint32_t bits = 0;
    unsigned count = 0, padding = 0;
    uint8_t *start = to;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        int digit = sl_base64_digit(c);
        if (digit >= 0 && padding == 0) {
            bits = bits << 6 | (uint32_t)digit;
            if (++count % 4 == 0) {
                *to++ = (uint8_t)(bits >> 16);
                *to++ = (uint8_t)(bits >> 8);
                *to++ = (uint8_t)bits;
            }
        } else if (c == '=' && count % 4 >= 2 && padding < 4 - count % 4) {
            padding++;
        } else if (!is_space(c)) {
            return false;
        }
    }
    unsigned rest = count % 4;
    if ((rest > 0 && padding != 4 - rest) || (bits & (rest == 2 ? 0xFu : rest == 3 ? 3u : 0)) != 0)
        return false;
    if (rest >= 2)
        *to++ = (uint8_t)(rest == 2 ? bits >> 4 : bits >> 10);
    if (rest == 3)
        *to++ = (uint8_t)(bits >> 2);
    *length = (size_t)(to - start);
    return true;
}

/* The parts of a binary value while it is read. */
typedef struct binary {
    bool has_bytes, has_subtype;
    uint8_t subtype;
    size_t length; /* the bytes begin EXTJSON_SCRATCH bytes after the value's address */
} binary;

static const char *take_base64(sl_extjson *x, const char *p, uint8_t *to, binary *b) {
    static const char reason[] = "binary data is a text in base64, with padding";
    sl_text text;
    const char *at = p;
    if (!(p = take_text(x, p, to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    if (b->has_bytes || !decode_base64(text, to + EXTJSON_SCRATCH, &b->length))
        return extjson_not_a(x, at, reason, text);
    b->has_bytes = true;
    return p;
}

static const char *take_subtype(sl_extjson *x, const char *p, uint8_t *to, binary *b) {
    static const char reason[] = "the type of binary data is a text of one or two hexadecimal "
                                 "digits";
    sl_text text;
    const char *at = p;
    if (!(p = take_text(x, p, to + EXTJSON_SCRATCH + (b->has_bytes ? b->length : 0), &text,
                        reason)))
        return NULL;
    int high = text.length == 2 ? sl_hex_digit(text.bytes[0]) : 0;
    int low = text.length == 1 || text.length == 2 ? sl_hex_digit(text.bytes[text.length - 1]) : -1;
    if (b->has_subtype || high < 0 || low < 0)
        return extjson_not_a(x, at, reason, text);
    b->subtype = (uint8_t)(high << 4 | low);
    b->has_subtype = true;
    return p;
}

static void put_binary(extjson_value *v, const binary *b) {
    bool old = b->subtype == BSON_SUBTYPE_BINARY_DEPRECATED; /* has a second length */
    uint8_t *at = sl_bson_put_int32(v->to, (int32_t)(b->length + (old ? 4 : 0)));
    *at++ = b->subtype;
    if (old)
        at = sl_bson_put_int32(at, (int32_t)b->length);
    memmove(at, v->to + EXTJSON_SCRATCH, b->length);
    v->to = at + b->length;
}

static const char *take_binary(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$binary is {\"base64\": ..., \"subType\": ...}, or a text "
                                 "followed by \"$type\"";
    binary b = {0};
    if (*p == '"' || *p == '\'') {
        if (!(p = take_base64(x, p, v->to, &b)) ||
            !(p = take_second(x, p, v->to + EXTJSON_SCRATCH + b.length, "$type", reason)) ||
            !(p = take_subtype(x, p, v->to, &b)))
            return NULL;
        put_binary(v, &b);
        return p;
    }
    if (!(p = begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        const char *at = p;
        if (!(p = take_key(x, p, i == 0, v->to + EXTJSON_SCRATCH + b.length, &key)))
            return NULL;
        if (sl_text_equal(key, sl_text_of("base64")))
            p = take_base64(x, p, v->to, &b);
        else if (sl_text_equal(key, sl_text_of("subType")))
            p = take_subtype(x, p, v->to, &b);
        else
            return extjson_not_a(x, at, reason, key);
        if (!p)
            return NULL;
    }
    put_binary(v, &b);
    return take_end(x, p);
}

/* {"$type": "05", "$binary": "..."}: the old form with the keys in the other order. Other objects
 * that begin with $type are ordinary documents (the query operator), which is not a fault. */
static const char *take_type(sl_extjson *x, const char *p, extjson_value *v) {
    binary b = {0};
    sl_text key;
    bool fits = (*p == '"' || *p == '\'') && (p = take_subtype(x, p, v->to, &b)) != NULL &&
                (p = take_key(x, p, false, v->to + EXTJSON_SCRATCH, &key)) != NULL &&
                sl_text_equal(key, sl_text_of("$binary")) &&
                (p = take_base64(x, p, v->to, &b)) != NULL;
    if (fits)
        put_binary(v, &b);
    return fits ? p : NULL;
}

/* ---- values without content ---- */

/* The number 1 of {"$minKey": 1}. */
static const char *take_one(sl_extjson *x, const char *p, extjson_value *v) {
    (void)v;
    if (*p != '1' || (p[1] >= '0' && p[1] <= '9') || p[1] == '.' || (p[1] | 0x20) == 'e')
        return extjson_expected(x, p, "$minKey and $maxKey have the value 1");
    return p + 1;
}

static const char *take_true(sl_extjson *x, const char *p, extjson_value *v) {
    (void)v;
    return memcmp(p, "true", 4) == 0 ? p + 4
                                     : extjson_expected(x, p, "$undefined has the value true");
}

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
    if (!(p = take_text(x, p, *to, &text, expected)))
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

static const char *take_regex(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$regex is a text, and may be followed by \"$options\"";
    if (!(p = take_cstring(x, p, &v->to, reason)))
        return NULL;
    p = extjson_skip(p);
    if (*p == ',') {
        if (!(p = take_second(x, p, v->to, "$options", reason)) ||
            !(p = take_letters(x, p, &v->to, reason)))
            return NULL;
    } else {
        *v->to++ = 0;
    }
    return p;
}

static const char *take_options(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$options is a text, and is followed by \"$regex\"";
    uint8_t *start = v->to, *middle;
    if (!(p = take_letters(x, p, &v->to, reason)))
        return NULL;
    middle = v->to;
    if (!(p = take_second(x, p, v->to, "$regex", reason)) ||
        !(p = take_cstring(x, p, &v->to, reason)))
        return NULL;
    return exchange(x, start, middle, v->to, v->to) ? p : NULL;
}

/* Reads a member's value at `p` and appends it to *to. */
typedef const char *take_member(sl_extjson *x, const char *p, uint8_t **to, const char *reason);

/* Reads the object at `p`, which has the two members in any order, and stores them in the order of
 * `keys`. */
static const char *take_two(sl_extjson *x, const char *p, uint8_t **to, const char *const keys[2],
                            take_member *const takes[2], const char *reason) {
    uint8_t *start = *to, *middle = start;
    bool known[2] = {false, false}, second = false;
    if (!(p = begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        const char *at = p;
        if (!(p = take_key(x, p, i == 0, *to, &key)))
            return NULL;
        second = sl_text_equal(key, sl_text_of(keys[1]));
        if ((!second && !sl_text_equal(key, sl_text_of(keys[0]))) || known[second])
            return extjson_fail(x, at, reason);
        known[second] = true;
        middle = *to;
        if (!(p = takes[second](x, p, to, reason)))
            return NULL;
    }
    if (!second && !exchange(x, start, middle, *to, *to))
        return NULL;
    return take_end(x, p);
}

static const char *take_expression(sl_extjson *x, const char *p, extjson_value *v) {
    return take_two(x, p, &v->to, (const char *const[]){"pattern", "options"},
                    (take_member *const[]){take_cstring, take_letters},
                    "$regularExpression is {\"pattern\": text, \"options\": text}");
}

/* ---- code, symbols ---- */

/* Copies the text at `p` to *to as a BSON string. */
static const char *take_string(sl_extjson *x, const char *p, uint8_t **to, const char *expected) {
    sl_text text;
    if (!(p = take_text(x, p, *to + 4, &text, expected)))
        return NULL;
    sl_bson_put_int32(*to, (int32_t)text.length + 1);
    *to += 4 + text.length + 1;
    return p;
}

static const char *take_symbol(sl_extjson *x, const char *p, extjson_value *v) {
    return take_string(x, p, &v->to, "$symbol is a text");
}

/* The document at `p`, which belongs to code. */
static const char *take_variables(sl_extjson *x, const char *p, uint8_t **to, uint32_t depth) {
    if (*p != '{')
        return extjson_expected(x, p, "$scope is a document");
    if (!(p = x->kernel->document(x, p + 1, to, depth + 1)))
        return NULL;
    return p < x->end ? p : extjson_expected(x, x->end, NULL);
}

static const char code_reason[] = "$code is a text, and may be followed by \"$scope\"";

static const char *take_code(sl_extjson *x, const char *p, extjson_value *v) {
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
    if (!(p = take_second(x, p, v->to, "$scope", code_reason)) ||
        !(p = take_variables(x, p, &v->to, v->depth)))
        return NULL;
    sl_bson_put_int32(start, (int32_t)(v->to - start));
    *v->type = BSON_TYPE_CODEWSCOPE;
    return p;
}

static const char *take_scope(sl_extjson *x, const char *p, extjson_value *v) {
    uint8_t *start = v->to, *middle;
    v->to += 4;
    if (!(p = take_variables(x, p, &v->to, v->depth)))
        return NULL;
    middle = v->to;
    if (middle > x->limit)
        return extjson_no_room(x);
    if (!(p = take_second(x, p, v->to, "$code", code_reason)) ||
        !(p = take_string(x, p, &v->to, code_reason)))
        return NULL;
    if (!exchange(x, start + 4, middle, v->to, v->to))
        return NULL;
    sl_bson_put_int32(start, (int32_t)(v->to - start));
    return p;
}

/* ---- pointers ---- */

static const char *take_wrapped_id(sl_extjson *x, const char *p, uint8_t **to, const char *reason) {
    const char *at = p;
    sl_text key;
    if (!(p = begin_object(x, p, reason)) || !(p = take_key(x, p, true, *to, &key)))
        return NULL;
    if (!sl_text_equal(key, sl_text_of("$oid")))
        return extjson_fail(x, at, reason);
    p = take_converted(x, p, to, sl_bson_put_object_id, EXTJSON_OBJECT_ID);
    return p ? take_end(x, p) : NULL;
}

static const char *take_pointer(sl_extjson *x, const char *p, extjson_value *v) {
    return take_two(x, p, &v->to, (const char *const[]){"$ref", "$id"},
                    (take_member *const[]){take_string, take_wrapped_id},
                    "$dbPointer is {\"$ref\": text, \"$id\": {\"$oid\": ...}}");
}

/* ---- the table ---- */

/* `take` reads the value. If it is NULL, the value is a text, which `put` converts. `expected`
 * describes the value in messages. */
static const struct {
    const char *key;
    bson_type_t type;
    extjson_take *take;
    extjson_put *put;
    const char *expected;
} values[] = {
    {"$oid", BSON_TYPE_OID, .put = sl_bson_put_object_id, .expected = EXTJSON_OBJECT_ID},
    {"$date", BSON_TYPE_DATE_TIME, .take = take_date},
    {"$numberInt", BSON_TYPE_INT32, .put = put_int32,
     .expected = "$numberInt is a text of decimal digits, within 32 bits"},
    {"$numberLong", BSON_TYPE_INT64, .put = put_int64, .expected = INT64_REASON},
    {"$numberDouble", BSON_TYPE_DOUBLE, .put = put_double,
     .expected = "$numberDouble is a text with a number, NaN, Infinity or -Infinity"},
    {"$numberDecimal", BSON_TYPE_DECIMAL128, .put = sl_bson_put_decimal_or_word,
     .expected = "$numberDecimal is a text with a number that a decimal128 holds without loss"},
    {"$binary", BSON_TYPE_BINARY, .take = take_binary},
    {"$type", BSON_TYPE_BINARY, .take = take_type},
    {"$uuid", BSON_TYPE_BINARY, .put = sl_bson_put_uuid, .expected = EXTJSON_UUID},
    {"$regularExpression", BSON_TYPE_REGEX, .take = take_expression},
    {"$regex", BSON_TYPE_REGEX, .take = take_regex},
    {"$options", BSON_TYPE_REGEX, .take = take_options},
    {"$timestamp", BSON_TYPE_TIMESTAMP, .take = take_timestamp},
    {"$minKey", BSON_TYPE_MINKEY, .take = take_one},
    {"$maxKey", BSON_TYPE_MAXKEY, .take = take_one},
    {"$undefined", BSON_TYPE_UNDEFINED, .take = take_true},
    {"$symbol", BSON_TYPE_SYMBOL, .take = take_symbol},
    {"$code", BSON_TYPE_CODE, .take = take_code},
    {"$scope", BSON_TYPE_CODEWSCOPE, .take = take_scope},
    {"$dbPointer", BSON_TYPE_DBPOINTER, .take = take_pointer},
};

const char *sl_extjson_wrapper(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth, bool *wrapper) {
    sl_text key;
    extjson_value v = {type, *to, depth};
    uint8_t *scratch = *to + EXTJSON_SCRATCH;
    *wrapper = true;
    const char *value = take_name(x, p, scratch, &key);
    if (!value)
        return NULL;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (!sl_text_equal(key, sl_text_of(values[i].key)))
            continue;
        value = take_key(x, p, true, scratch, &key);
        if (!value)
            return NULL;
        *type = (uint8_t)values[i].type;
        value = values[i].take ? values[i].take(x, value, &v)
                               : take_converted(x, value, &v.to, values[i].put, values[i].expected);
        value = value ? take_end(x, value) : NULL;
        if (value)
            *to = v.to;
        /* {"$type": ...} may be an ordinary document. */
        *wrapper = value || x->no_room || values[i].take != take_type;
        return value;
    }
    *wrapper = false;
    return NULL;
}

/* ---- the syntax of the mongo shell ---- */

/* Reads what `mongoimport --legacy` reads: keys without quotes, single quotes, functions such as
 * ISODate("..."), regular expressions between slashes, other forms of numbers. The functions above
 * call these where JSON has no valid token. */

/* Reads an argument of a function: any value but a document or an array. */
static const char *shell_argument(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth) {
    if (depth >= SL_EXTJSON_DEPTH_MAX)
        return extjson_fail(x, p, "nested deeper than 100 levels");
    *type = SL_BSON_TEXT;
    if (*p == '"')
        return take_string(x, p, to, "");
    return *p == '-' || sl_is_digit(*p) ? sl_extjson_number(x, p, type, to)
                                        : sl_extjson_word_value(x, p, type, to, depth);
}

/* A number, with or without quotes; `text` is part of the text or is at `scratch`. */
static const char *number_argument(sl_extjson *x, const char *p, uint8_t *scratch, sl_text *text,
                                   const char *expected) {
    if (*p == '"' || *p == '\'')
        return take_text(x, p, scratch, text, expected);
    const char *from = p;
    while (sl_is_name_byte(*p) || *p == '-' || *p == '+' || *p == '.')
        p++;
    *text = (sl_text){from, (size_t)(p - from)};
    return p;
}

/* Hexadecimal digits after 0x, with an optional sign. */
static bool hexadecimal_of(sl_text text, int64_t *value) {
    const char *p = text.bytes, *end = p + text.length;
    bool negative = p < end && *p == '-';
    uint64_t digits = 0;
    p += p < end && (*p == '-' || *p == '+');
    if (end - p < 3 || *p != '0' || (p[1] | 0x20) != 'x')
        return false;
    for (p += 2; p < end; p++) {
        int digit = sl_hex_digit(*p);
        if (digit < 0 || digits >> 59 != 0)
            return false;
        digits = digits << 4 | (uint64_t)digit;
    }
    *value = negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

/* An integer within [least, most]. */
static const char *integer_argument(sl_extjson *x, const char *p, uint8_t *scratch, int64_t least,
                                    int64_t most, int64_t *value, const char *expected) {
    sl_text text;
    const char *at = p;
    if (!(p = number_argument(x, p, scratch, &text, expected)))
        return NULL;
    if ((!int64_of(text.bytes, text.length, value) && !hexadecimal_of(text, value)) ||
        *value < least || *value > most)
        return extjson_not_a(x, at, expected, text);
    return p;
}

/* Reads the comma after an argument. Returns the address of the next argument. */
static const char *next_argument(sl_extjson *x, const char *p, const char *expected) {
    p = extjson_skip(p);
    return *p == ',' ? extjson_skip(p + 1) : extjson_expected(x, p, expected);
}

/* One function of the shell each. They have the type extjson_take, and read the arguments: `p` is
 * the first one, and the result is the address after the last one. */

static const char *call_date(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "a date is a text such as 2015-12-31T23:59:59.999Z with a valid "
                                 "date and an offset from UTC, or a number of milliseconds";
    int64_t ms;
    if (*p == '"' || *p == '\'')
        return take_converted(x, p, &v->to, sl_bson_put_iso_date, reason);
    if ((p = integer_argument(x, p, v->to, INT64_MIN, INT64_MAX, &ms, reason)))
        v->to = sl_bson_put_int64(v->to, ms);
    return p;
}

static const char *call_integer(sl_extjson *x, const char *p, extjson_value *v) {
    const bool small = *v->type == BSON_TYPE_INT32;
    int64_t value;
    p = integer_argument(x, p, v->to + EXTJSON_SCRATCH, small ? INT32_MIN : INT64_MIN,
                         small ? INT32_MAX : INT64_MAX, &value,
                         small ? "NumberInt has an integer within 32 bits"
                               : "NumberLong has an integer within 64 bits");
    if (p)
        v->to = small ? sl_bson_put_int32(v->to, (int32_t)value) : sl_bson_put_int64(v->to, value);
    return p;
}

static const char *call_real(sl_extjson *x, const char *p, extjson_value *v) {
    const bool decimal = *v->type == BSON_TYPE_DECIMAL128;
    const char *at = p, *reason = decimal ? "NumberDecimal has a number that a decimal128 holds "
                                            "without loss"
                                          : "Double has a number";
    sl_text text;
    if (!(p = number_argument(x, p, v->to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    extjson_put *put = decimal ? sl_bson_put_decimal_or_word : put_double;
    uint8_t *end = put(v->to, text.bytes, text.length);
    if (!end)
        return extjson_not_a(x, at, reason, text);
    v->to = end;
    return p;
}

static const char *call_text(sl_extjson *x, const char *p, extjson_value *v) {
    const bool id = *v->type == BSON_TYPE_OID;
    return take_converted(x, p, &v->to, id ? sl_bson_put_object_id : sl_bson_put_uuid,
                          id ? EXTJSON_OBJECT_ID : EXTJSON_UUID);
}

static const char *call_binary(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "BinData has a number from 0 to 255, and a text in base64";
    binary b = {0};
    int64_t subtype;
    if (!(p = integer_argument(x, p, v->to + EXTJSON_SCRATCH, 0, UINT8_MAX, &subtype, reason)) ||
        !(p = next_argument(x, p, reason)) || !(p = take_base64(x, p, v->to, &b)))
        return NULL;
    b.subtype = (uint8_t)subtype;
    put_binary(v, &b);
    return p;
}

static const char *call_timestamp(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "Timestamp has two integers from 0 to 4294967295";
    const char *start = p;
    int64_t t, i;
    if (*p == '{')
        return take_timestamp(x, p, v);
    if (!(p = integer_argument(x, p, v->to + EXTJSON_SCRATCH, 0, UINT32_MAX, &t, reason)) ||
        !(p = next_argument(x, p, reason)) ||
        !(p = integer_argument(x, p, v->to + EXTJSON_SCRATCH, 0, UINT32_MAX, &i, reason)))
        return NULL;
    return put_timestamp(x, start, v, (uint32_t)t, (uint32_t)i) ? p : NULL;
}

static const char *call_regex(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "RegExp has a text, and may have options as a second text";
    if (!(p = take_cstring(x, p, &v->to, reason)))
        return NULL;
    p = extjson_skip(p);
    if (*p == ',')
        return take_letters(x, extjson_skip(p + 1), &v->to, reason);
    *v->to++ = 0;
    return p;
}

static const char *call_reference(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "DBRef has the name of a collection, an _id, and may have the "
                                 "name of a database";
    uint8_t *start = v->to, *type;
    v->to = sl_bson_put_key(sl_bson_begin(start), SL_BSON_TEXT, "$ref");
    if (!(p = take_string(x, p, &v->to, reason)) || !(p = next_argument(x, p, reason)))
        return NULL;
    type = v->to;
    v->to = sl_bson_put_key(type, SL_BSON_TEXT, "$id");
    if (!(p = shell_argument(x, p, type, &v->to, v->depth + 1)))
        return NULL;
    p = extjson_skip(p);
    if (*p == ',') {
        v->to = sl_bson_put_key(v->to, SL_BSON_TEXT, "$db");
        if (!(p = take_string(x, extjson_skip(p + 1), &v->to, reason)))
            return NULL;
    }
    v->to = sl_bson_end(start, v->to);
    return p;
}

static const char *call_pointer(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "DBPointer has the name of a collection, and an ObjectId";
    const char *at;
    uint8_t type;
    if (!(p = take_string(x, p, &v->to, reason)) || !(at = p = next_argument(x, p, reason)) ||
        !(p = shell_argument(x, p, &type, &v->to, v->depth + 1)))
        return NULL;
    return type == BSON_TYPE_OID ? p : extjson_fail(x, at, reason);
}

/* As in JavaScript: false, 0, NaN, null, undefined and the empty text are false. */
static const char *call_bool(sl_extjson *x, const char *p, extjson_value *v) {
    uint8_t type = BSON_TYPE_NULL, *value = v->to + EXTJSON_SCRATCH, *end = value;
    double real;
    int32_t integer = 0;
    if (v->to > x->limit)
        return extjson_no_room(x);
    if (*p != ')' && !(p = shell_argument(x, p, &type, &end, v->depth + 1)))
        return NULL;
    memcpy(&real, value, sizeof real);
    memcpy(&integer, value, type == BSON_TYPE_BOOL ? 1 : sizeof integer);
    bool is = type == SL_BSON_DOUBLE ? real != 0 && !isnan(real)
              : type == SL_BSON_TEXT ? end - value > 5
              : type == SL_BSON_INT32 || type == BSON_TYPE_BOOL
                  ? integer != 0
                  : type != BSON_TYPE_NULL && type != BSON_TYPE_UNDEFINED;
    *v->to++ = is;
    return p;
}

static const char *call_nothing(sl_extjson *x, const char *p, extjson_value *v) {
    (void)x, (void)v;
    return p;
}

/* `call` is NULL for a word that is not a function; `optional`: the word alone is the value. */
static const struct {
    const char *name;
    bson_type_t type;
    extjson_take *call;
    bool optional;
} shell_words[] = {
    {"ISODate", BSON_TYPE_DATE_TIME, call_date, false},
    {"Date", BSON_TYPE_DATE_TIME, call_date, false},
    {"NumberLong", BSON_TYPE_INT64, call_integer, false},
    {"Long", BSON_TYPE_INT64, call_integer, false},
    {"NumberInt", BSON_TYPE_INT32, call_integer, false},
    {"Int32", BSON_TYPE_INT32, call_integer, false},
    {"Double", BSON_TYPE_DOUBLE, call_real, false},
    {"NumberDecimal", BSON_TYPE_DECIMAL128, call_real, false},
    {"Decimal128", BSON_TYPE_DECIMAL128, call_real, false},
    {"ObjectId", BSON_TYPE_OID, call_text, false},
    {"UUID", BSON_TYPE_BINARY, call_text, false},
    {"BinData", BSON_TYPE_BINARY, call_binary, false},
    {"Timestamp", BSON_TYPE_TIMESTAMP, call_timestamp, false},
    {"RegExp", BSON_TYPE_REGEX, call_regex, false},
    {"DBRef", BSON_TYPE_DOCUMENT, call_reference, false},
    {"DBPointer", BSON_TYPE_DBPOINTER, call_pointer, false},
    {"Boolean", BSON_TYPE_BOOL, call_bool, false},
    {"MinKey", BSON_TYPE_MINKEY, call_nothing, true},
    {"MaxKey", BSON_TYPE_MAXKEY, call_nothing, true},
    {"undefined", BSON_TYPE_UNDEFINED, NULL, true},
};

/* A word or function of the shell, as sl_extjson_word_value. */
static const char *shell_word(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                              uint32_t depth) {
    const char *from = p;
    extjson_value v = {type, *to, depth};
    bool made = memcmp(p, "new", 3) == 0 && extjson_is_blank(p[3]);
    p = made ? extjson_skip(p + 3) : p;
    sl_text name = {p, (size_t)(name_end(p) - p)};
    p += name.length;
    for (size_t i = 0; i < sizeof shell_words / sizeof shell_words[0]; i++) {
        if (!sl_text_equal(name, sl_text_of(shell_words[i].name)))
            continue;
        const char *open = extjson_skip(p);
        x->shell++;
        *type = (uint8_t)shell_words[i].type;
        if (!shell_words[i].call || (shell_words[i].optional && *open != '('))
            return p;
        if (*open != '(')
            return extjson_expected(x, open, "a ( is expected after the name of a function");
        if (!(p = shell_words[i].call(x, extjson_skip(open + 1), &v)))
            return NULL;
        p = extjson_skip(p);
        *to = v.to;
        return *p == ')' ? p + 1 : extjson_expected(x, p, "a ) is expected");
    }
    return extjson_expected(x, from, "a value is expected");
}

/* The regular expression whose first / is at `p`. */
static const char *slashed_regex(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    const char *from = ++p;
    uint8_t *start = *to, *options;
    x->shell++;
    for (; p < x->end && (uint8_t)*p >= 0x20 && *p != '/'; *(*to)++ = (uint8_t)*p++) {
        if (*to > x->limit)
            return extjson_no_room(x);
        if (*p == '\\' && p[1] == '\\')
            return extjson_fail(x, p,
                                "two backslashes between slashes, which mongoimport reads as one "
                                "and the shell as two; write {\"$regex\": ...}");
        if (*p == '\\' && p[1] != '/')
            *(*to)++ = (uint8_t)*p++;
        else
            p += *p == '\\';
        if ((uint8_t)*p < 0x20) /* after a backslash */
            break;
    }
    if (p >= x->end || *p != '/')
        return sl_extjson_string_fault(x, p);
    if (p == from)
        return extjson_fail(x, p, "a regular expression between slashes is not empty");
    if (!x->utf8_valid((const char *)start, (size_t)(*to - start)))
        return sl_extjson_utf8_fault(x, from, p);
    *(*to)++ = 0;
    options = *to;
    for (from = ++p; sl_is_name_byte(*p); *(*to)++ = (uint8_t)*p++) {
        if (*to > x->limit)
            return extjson_no_room(x);
    }
    uint8_t *end = sort_options(options, *to);
    if (!end)
        return extjson_fail_with(x, from, "the options of a regular expression are letters",
                                 options, (size_t)(*to - options));
    *end++ = 0;
    *to = end;
    *type = BSON_TYPE_REGEX;
    return p;
}

/* 0x1F, .5, +5, +Infinity, with a sign. */
static const char *shell_number(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    const char *digits = p + (*p == '-' || *p == '+'), *end = p;
    sl_text text;
    int64_t value;
    x->shell++;
    if (*digits == '.' && sl_is_digit(digits[1])) {
        double real = strtod(p, (char **)&end);
        if (!isfinite(real))
            return extjson_fail_with(x, p, "a number beyond the range of a double", p,
                                     (size_t)(end - p));
        *type = SL_BSON_DOUBLE;
        *to = sl_bson_put_double(*to, real);
        return end;
    }
    if (*digits != '0' || (digits[1] | 0x20) != 'x')
        return *p == '+' && (sl_is_digit(p[1]) || (p[1] | 0x20) == 'i')
                   ? shell_argument(x, p + 1, type, to, 0)
                   : extjson_expected(x, digits, "a value is expected");
    p = number_argument(x, p, *to, &text, "");
    if (!hexadecimal_of(text, &value))
        return extjson_fail_with(x, text.bytes, "not a hexadecimal integer within 64 bits",
                                 text.bytes, text.length);
    bool small = value == (int32_t)value;
    *type = small ? SL_BSON_INT32 : SL_BSON_INT64;
    *to = small ? sl_bson_put_int32(*to, (int32_t)value) : sl_bson_put_int64(*to, value);
    return p;
}

static const char *shell_value(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth) {
    if (*p == '\'') {
        *type = SL_BSON_TEXT;
        return take_string(x, p, to, "");
    }
    if (*p == '/')
        return slashed_regex(x, p, type, to);
    return sl_is_name_byte(*p) && !sl_is_digit(*p) ? shell_word(x, p, type, to, depth)
                                                   : shell_number(x, p, type, to);
}

/* ---- keys ---- */

/* x->slots is a hash table with open addressing. It contains the keys of the document that is being
 * read and of all documents within it. So a duplicate key is detected in constant time, even among
 * millions of keys.
 *
 * The keys of most documents are not in this table but in x->headers, a table of all short keys so
 * far. Each entry of x->headers belongs to a path (the key of the embedded document, and the key in
 * it), so documents that are open at the same time have different entries, and the serial of the
 * last document in an entry reveals a duplicate key. Nothing is removed from the table, so a key is
 * either in this table or in the other one as long as a document is read. Keys that JSON can only
 * write with an escape are not in the table: it is compared with the text.
 *
 * A slot belongs to the current text if its serial is not below first_serial, so the table is not
 * cleared for each document. The hash has a random seed: texts with many colliding keys cannot be
 * prepared. */

#define SLOTS_FIRST 256u
/* If more keys are not predicted, plus so many for every 16 documents, the documents have little in
 * common, and keys are not predicted any more. */
#define UNPREDICTED_MAX 128u

/* At this many keys the table is doubled. */
static uint32_t limit_of(uint32_t slots) {
    return slots / 4 * 3;
}

static bool keys_init(sl_extjson *x) {
    if (getrandom(&x->seed, sizeof x->seed, 0) != sizeof x->seed)
        x->seed = (uint64_t)(uintptr_t)x;
    sl_bson_headers_init(&x->headers, SL_BSON_HEADERS, '"');
    x->slots = calloc(SLOTS_FIRST, sizeof *x->slots);
    x->slot_mask = SLOTS_FIRST - 1;
    x->keys_limit = limit_of(SLOTS_FIRST);
    return x->slots != NULL;
}

static void keys_begin(sl_extjson *x) {
    if (x->serial > UINT32_MAX / 2) { /* one text has far fewer documents than the remaining
                                         serials */
        memset(x->slots, 0, ((size_t)x->slot_mask + 1) * sizeof *x->slots);
        sl_bson_headers_init(&x->headers, SL_BSON_HEADERS, '"');
        x->serial = 0;
    }
    bool helps = x->unpredicted < UNPREDICTED_MAX * (1 + x->documents / 16);
    x->top = helps ? &x->headers.none : NULL;
    x->documents += helps;
    x->first_serial = x->serial + 1;
    x->keys = 0;
    x->keys_limit = limit_of(x->slot_mask + 1);
}

bool sl_extjson_keys_grow(sl_extjson *x) {
    uint32_t count = (x->slot_mask + 1) * 2;
    extjson_slot *slots = calloc(count, sizeof *slots);
    if (!slots) {
        x->keys_limit = 0;
        return false;
    }
    for (uint32_t i = 0; i <= x->slot_mask; i++) {
        extjson_slot slot = x->slots[i];
        if (slot.serial < x->first_serial)
            continue;
        const uint8_t *key = x->base + slot.offset;
        size_t length = strlen((const char *)key);
        uint32_t at = (uint32_t)extjson_key_hash(x, key, length, slot.serial);
        while (slots[at & (count - 1)].serial != 0)
            at++;
        slots[at & (count - 1)] = slot;
    }
    free(x->slots);
    x->slots = slots;
    x->slot_mask = count - 1;
    x->keys_limit = limit_of(count);
    return true;
}

sl_bson_header *sl_extjson_find_key(sl_extjson *x, uint8_t *key, size_t length, bool escaped,
                                    const sl_bson_header *parent) {
    x->unpredicted++;
    for (size_t i = 0; escaped && i < length; i++) {
        if (key[i] < 0x20 || key[i] == '"' || key[i] == '\\')
            return NULL;
    }
    if (length + 2 > SL_BSON_HEADER_MAX)
        return NULL;
    key[-1] = key[length] = '"'; /* as in the text */
    sl_bson_header *header = sl_bson_headers_find(&x->headers, key - 1, parent);
    if (!header)
        header = sl_bson_headers_add(&x->headers, key - 1, length + 2, 0, parent);
    key[length] = 0;
    return header == &x->headers.other ? NULL : header;
}

/* ---- parsers, documents ---- */

bool sl_extjson_create(const char *name, sl_utf8_check *utf8_valid, sl_extjson **parser,
                       sl_error *error) {
    sl_extjson *x = calloc(1, sizeof *x);
    *parser = x;
    if (!x || !keys_init(x)) {
        sl_extjson_destroy(x);
        *parser = NULL;
        return sl_error_memory(error, "reading JSON");
    }
    x->utf8_valid = utf8_valid;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        x->kernel = kernels[i]; /* the last kernel works on any processor */
        if (strcmp(kernels[i]->name, name) == 0)
            break;
    }
    return true;
}

void sl_extjson_destroy(sl_extjson *parser) {
    if (!parser)
        return;
    free(parser->slots);
    free(parser);
}

const sl_extjson_fault *sl_extjson_why(const sl_extjson *parser) {
    return &parser->fault;
}

/* Moves the element `_id` to the front, in place of the added _id. */
static void move_id(sl_extjson *x, uint8_t **written) {
    uint8_t *first = x->base + 4, *own = x->base + x->own_id;
    uint8_t *end = x->own_id_end > 0 ? x->base + x->own_id_end : *written - 1;
    if (own == first)
        return;
    if (!exchange(x, first, own, end, *written))
        return;
    if (x->id) {
        const size_t added = SL_BSON_HEAD_BYTES - 4;
        uint8_t *behind = first + (end - own);
        memmove(behind, behind + added, (size_t)(*written - behind) - added);
        *written -= added;
        sl_bson_put_int32(x->base, (int32_t)(*written - x->base));
    }
}

sl_extjson_status sl_extjson_document(sl_extjson *x, const char *text, const char *end,
                                      const int64_t *id, uint8_t *to, uint8_t *limit,
                                      const char **after, uint8_t **written, bool *own_id) {
    const size_t most = SL_BSON_DOCUMENT_MAX + 2 * SL_EXTJSON_MARGIN;
    size_t room = (size_t)(limit - to);
    if (room < 2 * SL_EXTJSON_MARGIN)
        return SL_EXTJSON_NO_ROOM;
    if (room > most)
        room = most;
    x->id = id;
    x->end = end;
    x->base = to;
    x->limit = to + room - SL_EXTJSON_MARGIN;
    x->own_id = x->own_id_end = 0;
    x->no_room = false;
    keys_begin(x);
    uint8_t *at = to;
    const char *p = x->kernel->document(x, text + 1, &at, 0);
    if (p && x->own_id > 0)
        move_id(x, &at);
    if (x->no_room && room < most)
        return SL_EXTJSON_NO_ROOM;
    if (x->no_room || (p && (size_t)(at - to) > SL_BSON_DOCUMENT_MAX)) {
        extjson_fail(x, text, "a document of more than 16 MiB");
        return SL_EXTJSON_INVALID;
    }
    if (!p)
        return SL_EXTJSON_INVALID;
    *after = p;
    *written = at;
    *own_id = x->own_id > 0;
    return SL_EXTJSON_OK;
}
