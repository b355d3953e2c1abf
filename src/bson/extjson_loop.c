/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the Extended JSON parser, in plain C. src/CMakeLists.txt also builds it for each
 * instruction set of the processor: it includes this file with SL_SET_AVX2 or SL_SET_NEON defined.
 *
 * The loop has no recursion: the documents and arrays around the current one are in x->levels. */
#include "extjson_parser.h"
#include "util/text.h"

#if defined(SL_SET_AVX2)
#include <immintrin.h>
#elif defined(SL_SET_NEON)
#include <arm_neon.h>
#endif

#define likely(condition) __builtin_expect(condition, 1)
#define unlikely(condition) __builtin_expect(condition, 0)

/* ---- the instruction set: a step along a string ---- */

/* extjson_step copies EXTJSON_STEP bytes, up to 64. It returns a mask with a bit for each byte that
 * ends or interrupts a string: a quote, a backslash, a control character; and sets *high to the
 * mask of bytes above 0x7F. */

#if defined(SL_SET_AVX2)

#define KERNEL sl_extjson_avx2
#define KERNEL_NAME "avx2"
#define EXTJSON_STEP 32u

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)from);
    _mm256_storeu_si256((__m256i *)(void *)to, part);
    __m256i stop = _mm256_or_si256(_mm256_cmpeq_epi8(part, _mm256_set1_epi8('"')),
                                   _mm256_cmpeq_epi8(part, _mm256_set1_epi8('\\')));
    stop = _mm256_or_si256(stop,
                           _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(0x1F)), part));
    *high = (uint32_t)_mm256_movemask_epi8(part);
    return (uint32_t)_mm256_movemask_epi8(stop);
}

#elif defined(SL_SET_NEON)

#define KERNEL sl_extjson_neon
#define KERNEL_NAME "neon"
#define EXTJSON_STEP 16u

/* A bit for each byte of a comparison's result. */
static inline uint64_t bits_of(uint8x16_t equal) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t each = vandq_u8(equal, vld1q_u8(bits));
    uint64_t low = vaddv_u8(vget_low_u8(each)), high = vaddv_u8(vget_high_u8(each));
    return low | high << 8;
}

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    uint8x16_t part = vld1q_u8((const uint8_t *)from);
    vst1q_u8(to, part);
    uint8x16_t stop = vorrq_u8(vceqq_u8(part, vdupq_n_u8('"')), vceqq_u8(part, vdupq_n_u8('\\')));
    *high = bits_of(vcgeq_u8(part, vdupq_n_u8(0x80)));
    return bits_of(vorrq_u8(stop, vcltq_u8(part, vdupq_n_u8(0x20))));
}

#else /* eight bytes at a time */

#define KERNEL sl_extjson_portable
#define KERNEL_NAME "portable"
#define EXTJSON_STEP 8u

/* A bit for each byte whose highest bit is set. */
static inline uint64_t high_bits(uint64_t word) {
    return ((word >> 7) & 0x0101010101010101u) * 0x0102040810204080u >> 56;
}

/* The highest bit of each byte that is zero; exact. */
static inline uint64_t zero_bytes(uint64_t word) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    return ~(((word & low) + low) | word | low);
}

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, from, sizeof word);
    memcpy(to, &word, sizeof word);
    uint64_t stop = zero_bytes(word ^ ones * '"') | zero_bytes(word ^ ones * '\\') |
                    zero_bytes(word & ones * 0xE0);
    *high = high_bits(word);
    return high_bits(stop);
}

#endif

/* ---- the loop ---- */

/* As extjson_kernel.string; with `key`, NUL is refused. */
static inline __attribute__((always_inline)) const char *take_string(sl_extjson *x, const char *p,
                                                                     uint8_t **at, bool key) {
    const char *from = p;
    uint8_t *to = *at;
    uint64_t high = 0, above;
    for (;;) {
        uint64_t stop = extjson_step(p, to, &above);
        if (likely(stop != 0)) {
            unsigned count = (unsigned)__builtin_ctzll(stop);
            high |= above & ((UINT64_C(1) << count) - 1);
            p += count;
            to += count;
            if (likely(*p == '"'))
                break;
            if (p >= x->end || *p != '\\')
                return sl_extjson_string_fault(x, p);
            const char *escape = p;
            if (!(p = sl_extjson_escape(x, p, &to)))
                return NULL;
            if (key && to[-1] == 0)
                return extjson_fail(x, escape, "\\u0000 in a key; keys cannot contain NUL");
        } else {
            high |= above;
            p += EXTJSON_STEP;
            to += EXTJSON_STEP;
        }
        if (unlikely(p >= x->end))
            return extjson_expected(x, x->end, NULL);
        if (unlikely(to > x->limit))
            return extjson_no_room(x);
    }
    if (unlikely(p >= x->end))
        return extjson_expected(x, x->end, NULL);
    if (high && !x->utf8_valid((const char *)*at, (size_t)(to - *at)))
        return sl_extjson_utf8_fault(x, from, p);
    *at = to;
    return p + 1;
}

static const char *string(sl_extjson *x, const char *p, uint8_t **to) {
    return take_string(x, p, to, false);
}

/* Writes the key of an array's element. */
static inline uint8_t *put_index(uint8_t *to, uint32_t index) {
    if (likely(index < 10)) {
        *to++ = (uint8_t)('0' + index);
    } else {
        uint8_t digits[10];
        unsigned count = 0;
        do
            digits[count++] = (uint8_t)('0' + index % 10);
        while ((index /= 10) > 0);
        while (count > 0)
            *to++ = digits[--count];
    }
    *to++ = 0;
    return to;
}

/* A number at `p`. Integers of up to 18 digits, and decimal fractions of up to 15, are converted
 * here: their digits, and the power of ten that divides them, are exact as double. */
static inline const char *take_number(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    const bool negative = *p == '-';
    const char *q = p + negative;
    uint64_t value = (uint8_t)(*q - '0');
    unsigned digit;
    if (likely(value - 1 < 9 || (value == 0 && q[1] == '.'))) {
        while ((digit = (uint8_t)(*++q - '0')) < 10)
            value = value * 10 + digit;
        if (*q == '.') {
            const char *point = q;
            while ((digit = (uint8_t)(*++q - '0')) < 10)
                value = value * 10 + digit;
            if (likely(q - point > 1 && q - p <= 16 && (*q | 0x20) != 'e')) {
                double number = (double)value / sl_powers_of_ten[q - point - 1];
                *type = SL_BSON_DOUBLE;
                *to = sl_bson_put_double(*to, negative ? -number : number);
                return q;
            }
        } else if (likely((*q | 0x20) != 'e' && q - p <= 18)) {
            int64_t number = negative ? -(int64_t)value : (int64_t)value;
            if (likely(number == (int32_t)number)) {
                *type = SL_BSON_INT32;
                *to = sl_bson_put_int32(*to, (int32_t)number);
            } else {
                *type = SL_BSON_INT64;
                *to = sl_bson_put_int64(*to, number);
            }
            return q;
        }
    }
    return sl_extjson_number(x, p, type, to);
}

static const char *duplicate_fault(sl_extjson *x, const char *p, const uint8_t *key,
                                   size_t length) {
    if (x->keys_limit == 0)
        return extjson_fail(x, p, "out of memory for the document's keys");
    return extjson_fail_with(x, p, "the key occurs twice", key, length);
}

static const char *document(sl_extjson *x, const char *p, uint8_t **at, uint32_t depth) {
    const uint32_t outermost = depth;
    uint8_t *to = *at, *start = to, *type = to, *key;
    uint32_t index = 0, serial;
    bool array = false, wrapper;
    const char *from;
    size_t length;
    sl_bson_header *unknown = &x->headers.none, **predicted = &unknown; /* the next key */
    sl_bson_header *parent = depth == 0 ? x->top : NULL; /* of the current document */
    sl_bson_header *header = parent;                     /* of the current key; NULL: none */

    p = extjson_skip(p);
begin_document: /* p is after the { and blanks */
    if (unlikely(depth >= SL_EXTJSON_DEPTH_MAX))
        return extjson_fail(x, p, "nested deeper than 100 levels");
    start = to;
    to = depth == 0 && x->id ? sl_bson_begin_with_id(to, *x->id) : sl_bson_begin(to);
    serial = ++x->serial;
    predicted = parent ? &parent->first : &unknown;
    array = false;
    if (unlikely(*p == '}'))
        goto end_document;
next_key:
    if (unlikely(to > x->limit))
        return extjson_no_room(x);
    from = p;
    type = to;
    key = type + 1;
    header = *predicted;
    if (likely(sl_bson_header_is_at(header, p) && header->compared <= x->end - p)) {
        memcpy(type, p, SL_BSON_HEADER_MAX);
        length = header->compared - 2u;
        p += header->compared;
        to += header->compared;
        to[-1] = 0;
    } else {
        to = key;
        if (unlikely(!(p = *p == '"' ? take_string(x, p + 1, &to, true)
                                     : sl_extjson_shell_key(x, p, &to))))
            return NULL;
        length = (size_t)(to - key);
        *to++ = 0;
        bool escaped = *from != '"' || (size_t)(p - from) != length + 2;
        header = parent ? sl_extjson_find_key(x, key, length, escaped, parent) : NULL;
        if (header && predicted != &unknown) {
            if (header->next == &x->headers.none && header != *predicted)
                header->next = *predicted;
            *predicted = header;
        }
    }
    if (depth == 0) {
        if (unlikely(x->own_id > 0) && x->own_id_end == 0)
            x->own_id_end = (uint32_t)(type - x->base);
        if (unlikely(length == 3 && memcmp(key, "_id", 3) == 0)) {
            if (x->id && type == start + SL_BSON_HEAD_BYTES) { /* replaces the added _id */
                type = start + 4;
                key = type + 1;
                memcpy(key, "_id", 4);
                to = key + 4;
            }
            if (x->own_id == 0)
                x->own_id = (uint32_t)(type - x->base);
        }
    }
    if (likely(header != NULL)) {
        if (unlikely(header->serial == serial))
            return duplicate_fault(x, from, key, length);
        header->serial = serial;
        predicted = &header->next;
    } else {
        /* The hash is of the text if that has no escapes: loading bytes that were just stored, by
         * several stores, would wait for these. */
        bool same = (size_t)(p - from) == length + 2;
        if (unlikely(
                !extjson_add_key(x, key, same ? (const uint8_t *)from + 1 : key, length, serial)))
            return duplicate_fault(x, from, key, length);
        predicted = &unknown;
    }
    p = extjson_skip(p);
    if (unlikely(*p != ':'))
        return extjson_expected(x, p, "a colon is expected after a key");
    p = extjson_skip(p + 1);
value:
    switch (*p) {
    case '"':
        key = to; /* the length field */
        to += 4;
        if (unlikely(!(p = take_string(x, p + 1, &to, false))))
            return NULL;
        *to++ = 0;
        sl_bson_put_int32(key, (int32_t)(to - key - 4));
        *type = SL_BSON_TEXT;
        break;
    case '{':
        p = extjson_skip(p + 1);
        if (*p == '"' ? p[1] == '$' || p[1] == '\\' : *p == '$' || *p == '\'') {
            from = sl_extjson_wrapper(x, p, type, &to, depth, &wrapper);
            if (wrapper) {
                if (unlikely(!(p = from)))
                    return NULL;
                break;
            }
        }
        *type = SL_BSON_DOCUMENT;
        x->levels[depth++] =
            (extjson_level){(uint32_t)(start - x->base), index, serial, array, parent};
        parent = header;
        goto begin_document;
    case '[':
        *type = SL_BSON_ARRAY;
        x->levels[depth++] =
            (extjson_level){(uint32_t)(start - x->base), index, serial, array, parent};
        if (unlikely(depth >= SL_EXTJSON_DEPTH_MAX))
            return extjson_fail(x, p, "nested deeper than 100 levels");
        p = extjson_skip(p + 1);
        start = to;
        to = sl_bson_begin(to);
        array = true;
        index = 0;
        if (*p == ']')
            goto end_array;
        goto next_element;
    case '-':
    case '0' ... '9':
        if (unlikely(!(p = take_number(x, p, type, &to))))
            return NULL;
        break;
    default:
        if (unlikely(!(p = sl_extjson_word_value(x, p, type, &to, depth))))
            return NULL;
        break;
    }
after_value:
    p = extjson_skip(p);
    if (array) {
        if (*p == ',') {
            p = extjson_skip(p + 1);
        next_element:
            if (unlikely(to > x->limit))
                return extjson_no_room(x);
            type = to;
            to = put_index(to + 1, index++);
            goto value;
        }
        if (unlikely(*p != ']'))
            return extjson_expected(x, p, "a comma or ] is expected");
    end_array:
        p++;
    } else {
        if (*p == ',') {
            p = extjson_skip(p + 1);
            goto next_key;
        }
        if (unlikely(*p != '}'))
            return extjson_expected(x, p, "a comma or } is expected");
    end_document:
        p++;
        header = parent;
    }
    to = sl_bson_end(start, to);
    if (depth == outermost) {
        *at = to;
        return p;
    }
    if (unlikely(p >= x->end))
        return extjson_expected(x, x->end, NULL);
    depth--;
    start = x->base + x->levels[depth].start;
    index = x->levels[depth].index;
    serial = x->levels[depth].serial;
    array = x->levels[depth].array;
    parent = x->levels[depth].parent;
    predicted = header ? &header->next : &unknown;
    goto after_value;
}

const extjson_kernel KERNEL = {KERNEL_NAME, document, string};
