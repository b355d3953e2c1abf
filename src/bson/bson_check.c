/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a document. `stop` is the lowest position that no element may cross: the terminator
 * of the innermost document, or the end of the available bytes. So one comparison per element
 * checks both limits, and the slow path determines which of them was crossed.
 *
 * The type and key of an element are compared with the predicted ones: see bson_headers.h. */
#include "bson_check.h"

#include <bson/bson.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "bson_writer.h"
#include "util/text.h"

/* The size of a type's value: a number of bytes, or one of these. A header with the key _id has the
 * size VARIABLE, so elements of a fixed size need no test for _id. */
enum { NO_TYPE = 0xFF, VARIABLE = 0xFE, TEXT = 0xFD };

static const uint8_t size_of[256] = {
    [0x00] = NO_TYPE,
    [BSON_TYPE_DOUBLE] = 8,
    [BSON_TYPE_UTF8] = TEXT,
    [BSON_TYPE_DOCUMENT] = VARIABLE,
    [BSON_TYPE_ARRAY] = VARIABLE,
    [BSON_TYPE_BINARY] = VARIABLE,
    [BSON_TYPE_UNDEFINED] = 0,
    [BSON_TYPE_OID] = 12,
    [BSON_TYPE_BOOL] = VARIABLE,
    [BSON_TYPE_DATE_TIME] = 8,
    [BSON_TYPE_NULL] = 0,
    [BSON_TYPE_REGEX] = VARIABLE,
    [BSON_TYPE_DBPOINTER] = VARIABLE,
    [BSON_TYPE_CODE] = VARIABLE,
    [BSON_TYPE_SYMBOL] = VARIABLE,
    [BSON_TYPE_CODEWSCOPE] = VARIABLE,
    [BSON_TYPE_INT32] = 4,
    [BSON_TYPE_TIMESTAMP] = VARIABLE,
    [BSON_TYPE_INT64] = 8,
    [BSON_TYPE_DECIMAL128] = 16,
    [0x14 ... 0x7E] = NO_TYPE,
    [BSON_TYPE_MAXKEY] = 0,
    [0x80 ... 0xFE] = NO_TYPE,
    [BSON_TYPE_MINKEY] = 0,
};

#define ONES 0x0101010101010101u
#define HIGHS 0x8080808080808080u
#define ID_KEY 0x0064695Fu /* "_id" with its NUL, as a little-endian number */

/* The bytes of a word that belong to a text of `length` bytes, 0 to 8. */
static inline uint64_t first_bytes(uint64_t word, size_t length) {
    return length >= 8 ? word : word & ((UINT64_C(1) << (8 * length)) - 1);
}

/* Is the text valid UTF-8? Reads up to 7 bytes after it. */
static inline bool is_utf8(const uint8_t *text, size_t length) {
    size_t at = 0;
    if (length <= 8 && (first_bytes(sl_load_8(text), length) & HIGHS) == 0)
        return true;
    for (; length - at >= 32; at += 32) {
        uint64_t any = sl_load_8(text + at) | sl_load_8(text + at + 8) | sl_load_8(text + at + 16) |
                       sl_load_8(text + at + 24);
        if (__builtin_expect((any & HIGHS) != 0, 0))
            return sl_utf8_valid((const char *)text + at, length - at, NULL);
    }
    for (; at < length; at += 8) {
        if (first_bytes(sl_load_8(text + at), length - at) & HIGHS)
            return sl_utf8_valid((const char *)text + at, length - at, NULL);
    }
    return true;
}

/* The state of a check. Positions are 64-bit, so that adding a length cannot overflow. */
typedef struct walk {
    const uint8_t *document;
    uint64_t available;
    uint64_t end;  /* of the innermost document, after its terminator */
    uint64_t stop; /* end - 1, or `available` if that is less */
    sl_bson_facts *facts;
    sl_bson_headers *headers;
} walk;

__attribute__((cold, noinline)) static sl_bson_verdict wrong(const walk *w, uint64_t at,
                                                             const char *why) {
    w->facts->wrong_at = (uint32_t)at;
    w->facts->why = why;
    return SL_BSON_INVALID;
}

/* Do the available bytes end before the innermost document? */
static inline bool is_truncated(const walk *w) {
    return w->stop < w->end - 1;
}

/* The verdict when a value that ends at `next` crosses `stop`. */
static sl_bson_verdict crossed(const walk *w, uint64_t at, uint64_t next) {
    if (next > w->end - 1)
        return wrong(w, at, "a value is longer than its document");
    return SL_BSON_MORE;
}

/* The position after the NUL of a text without length at `at`; `*verdict` is changed unless the
 * text is valid. */
static uint64_t skip_text(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    const uint8_t *text = w->document + at;
    const uint8_t *nul = at < w->stop ? memchr(text, 0, w->stop - at) : NULL;
    if (!nul) {
        *verdict = is_truncated(w) ? SL_BSON_MORE
                                   : wrong(w, at, "a key or text without length has no end");
        return at;
    }
    w->facts->not_utf8 |= !is_utf8(text, (size_t)(nul - text));
    return at + (uint64_t)(nul - text) + 1;
}

/* The position after a string at `at`: its length, its bytes, a NUL. */
static uint64_t skip_string(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    if (at + 4 > w->stop) {
        *verdict = crossed(w, at, at + 4);
        return at;
    }
    uint32_t length = sl_bson_length(w->document + at);
    uint64_t next = at + 4 + length;
    if (length == 0 || length > INT32_MAX)
        *verdict = wrong(w, at, "a string has an impossible length");
    else if (next > w->stop)
        *verdict = crossed(w, at, next);
    else if (w->document[next - 1] != 0)
        *verdict = wrong(w, next - 1, "a string has no NUL at its end");
    else
        w->facts->not_utf8 |= !is_utf8(w->document + at + 4, length - 1);
    return next;
}

#define SHORT_BYTES 32u

/* A bit for each of SHORT_BYTES bytes that is not ASCII. */
static inline uint32_t high_bytes(const uint8_t *text) {
#if defined(__SSE2__)
    const __m128i *parts = (const __m128i *)(const void *)text;
    return (uint32_t)_mm_movemask_epi8(_mm_loadu_si128(parts)) |
           (uint32_t)_mm_movemask_epi8(_mm_loadu_si128(parts + 1)) << 16;
#else
    uint32_t bits = 0;
    for (unsigned i = 0; i < SHORT_BYTES; i += 8)
        bits |= (uint32_t)((sl_load_8(text + i) & HIGHS) / 0x80 * 0x0102040810204080u >> 56) << i;
    return bits;
#endif
}

/* As skip_string, for a valid string of less than SHORT_BYTES bytes of ASCII. False for any other
 * string. */
static inline bool skip_short_string(const uint8_t *document, uint64_t stop, uint64_t at,
                                     uint64_t *next) {
    if (__builtin_expect(at + 5 > stop, 0))
        return false;
    uint64_t length = (uint64_t)sl_bson_length(document + at) - 1; /* without the NUL */
    *next = at + 5 + length;
    return length < SHORT_BYTES && *next <= stop && document[*next - 1] == 0 &&
           (high_bytes(document + at + 4) & ((UINT32_C(1) << length) - 1)) == 0;
}

static uint64_t skip_binary(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    if (at + 5 > w->stop) {
        *verdict = crossed(w, at, at + 5);
        return at;
    }
    uint32_t length = sl_bson_length(w->document + at);
    uint64_t next = at + 5 + length;
    if (length > INT32_MAX)
        *verdict = wrong(w, at, "binary data has an impossible length");
    else if (next > w->stop)
        *verdict = crossed(w, at, next);
    else if (w->document[at + 4] == 2 &&
             (length < 4 || sl_bson_length(w->document + at + 5) != length - 4))
        w->facts->old_binary = true;
    return next;
}

/* Checks the length of an embedded document at `at`, which the walk then enters. Returns its
 * end. */
static inline uint64_t enter(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    if (at + 4 > w->stop) {
        *verdict = crossed(w, at, at + 4);
        return at;
    }
    uint32_t length = sl_bson_length(w->document + at);
    uint64_t next = at + length;
    if (length < SL_BSON_DOCUMENT_MIN || next > w->end - 1)
        *verdict = wrong(w, at, "an embedded document or array has an impossible length");
    return next;
}

/* As `enter`, for code with scope at `at`: sets `*scope` to the position of its document. */
static uint64_t enter_scope(const walk *w, uint64_t at, uint64_t *scope, sl_bson_verdict *verdict) {
    if (at + 4 > w->stop) {
        *verdict = crossed(w, at, at + 4);
        return at;
    }
    uint64_t next = at + sl_bson_length(w->document + at);
    if (next > w->end - 1) {
        *verdict = wrong(w, at, "code with scope has an impossible length");
        return at;
    }
    *scope = skip_string(w, at + 4, verdict);
    if (*verdict != SL_BSON_VALID)
        return at;
    if (*scope + 4 > w->stop) {
        *verdict = crossed(w, *scope, *scope + 4);
        return at;
    }
    uint32_t length = sl_bson_length(w->document + *scope);
    if (length < SL_BSON_DOCUMENT_MIN || *scope + length != next)
        *verdict = wrong(w, *scope, "the scope of code has an impossible length");
    return next;
}

static inline void begin(walk *w, uint64_t end) {
    w->end = end;
    w->stop = end - 1 < w->available ? end - 1 : w->available;
}

/* The position after the value of a type without fixed size. `*inner`: the position of a document
 * to enter. */
static uint64_t skip_value(const walk *w, uint8_t type, uint64_t at, uint64_t *inner,
                           sl_bson_verdict *verdict) {
    uint64_t next;
    switch (type) {
    case BSON_TYPE_CODEWSCOPE:
        return enter_scope(w, at, inner, verdict);
    case BSON_TYPE_BINARY:
        return skip_binary(w, at, verdict);
    case BSON_TYPE_BOOL:
        if (at + 1 > w->stop)
            *verdict = crossed(w, at, at + 1);
        else if (w->document[at] > 1)
            *verdict = wrong(w, at, "a boolean is neither 0 nor 1");
        return at + 1;
    case BSON_TYPE_REGEX:
        next = skip_text(w, at, verdict);
        return *verdict == SL_BSON_VALID ? skip_text(w, next, verdict) : next;
    case BSON_TYPE_DBPOINTER:
        next = skip_string(w, at, verdict) + 12;
        if (*verdict == SL_BSON_VALID && next > w->stop)
            *verdict = crossed(w, at, next);
        return next;
    default:
        return skip_string(w, at, verdict);
    }
}

/* Skips a timestamp at `at`, which belongs to the element `element` of the document itself, or (0)
 * to an embedded document. */
static uint64_t skip_timestamp(const walk *w, uint64_t element, uint64_t at,
                               sl_bson_verdict *verdict) {
    if (at + 8 > w->stop)
        *verdict = crossed(w, at, at + 8);
    else if (element > 0 && sl_load_8(w->document + at) == 0)
        w->facts->empty_timestamp = (uint32_t)element;
    return at + 8;
}

static void note_id(sl_bson_facts *facts, uint64_t at, uint64_t next) {
    facts->id_twice = facts->id_at > 0;
    if (facts->id_twice)
        return;
    facts->id_at = (uint32_t)at;
    facts->id_end = (uint32_t)next;
}

/* The verdict on an element at or after `stop` that is not a terminator. */
static sl_bson_verdict no_element(const walk *w, uint64_t at) {
    return at >= w->available ? SL_BSON_MORE : wrong(w, at, "a document has no NUL at its end");
}

/* The verdict when a value of fixed size, at `value`, crosses `stop`. The element may also begin
 * at `stop`: at the position of the terminator, or at the end of the available bytes. */
static sl_bson_verdict value_crossed(const walk *w, uint64_t at, uint64_t value, uint64_t next) {
    if (at >= w->stop)
        return no_element(w, at);
    if (value <= w->stop)
        return crossed(w, at, next);
    return is_truncated(w) ? SL_BSON_MORE : wrong(w, at, "a key has no end");
}

/* The position after the type and key of the element at `at`; `*verdict` is changed unless they are
 * valid. */
static uint64_t skip_header(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    const uint8_t *key = w->document + at + 1;
    const uint8_t *nul = at + 1 < w->stop ? memchr(key, 0, w->stop - at - 1) : NULL;
    if (size_of[key[-1]] == NO_TYPE)
        *verdict = wrong(w, at,
                         key[-1] == 0 ? "a document ends before its declared length"
                                      : "an element has an unknown type");
    else if (!nul)
        *verdict = is_truncated(w) ? SL_BSON_MORE : wrong(w, at, "a key has no end");
    else
        w->facts->not_utf8 |= !is_utf8(key, (size_t)(nul - key));
    return *verdict == SL_BSON_VALID ? (uint64_t)(nul - w->document) + 1 : at;
}

#define MISSING_MAX 3u /* elements in a row */

/* If more elements than this, plus one for every 64 bytes, were not predicted, the documents have
 * little in common, and are checked without predictions from then on. */
#define UNPREDICTED_MAX 128u

static inline bool predictions_help(const sl_bson_headers *headers) {
    return headers->places > 0 && headers->unpredicted < UNPREDICTED_MAX + headers->bytes / 64;
}

/* The header of the element at `at`, without the table. Most keys have fewer than 8 bytes: one load
 * finds the NUL and bytes that are not ASCII. NULL if it is not valid; `*verdict` is set. */
static sl_bson_header *read_header(const walk *w, uint64_t at, sl_bson_verdict *verdict) {
    sl_bson_header *header = &w->headers->other;
    const uint8_t *from = w->document + at;
    uint64_t key = sl_load_8(from + 1), nul = (key - ONES) & ~key & HIGHS;
    header->is_id = (uint32_t)key == ID_KEY;
    header->size = size_of[*from];
    if (header->is_id && header->size != NO_TYPE)
        header->size = VARIABLE;
    if (nul == 0 || (key & (nul ^ (nul - 1)) & HIGHS) != 0 || header->size == NO_TYPE) {
        header->length = (uint32_t)(skip_header(w, at, verdict) - at);
        return *verdict == SL_BSON_VALID ? header : NULL;
    }
    header->length = 2 + (uint32_t)__builtin_ctzll(nul) / 8;
    return header;
}

/* The header of the element at `at`, in a document of `parent`, which is not *predicted. NULL: it
 * is not valid, as `*verdict` shows. Some elements may be missing in this document, so the headers
 * that have followed the predicted one are tried first. */
static sl_bson_header *find_header(const walk *w, uint64_t at, const sl_bson_header *parent,
                                   sl_bson_header **predicted, sl_bson_verdict *verdict) {
    if (!predictions_help(w->headers))
        return read_header(w, at, verdict);
    w->headers->unpredicted++;
    const uint8_t *from = w->document + at;
    sl_bson_header *header = (*predicted)->next;
    for (unsigned i = 0; i < MISSING_MAX; i++, header = header->next) {
        if (sl_bson_header_is_at(header, from))
            return header;
    }
    header = sl_bson_headers_find(w->headers, from, parent);
    if (!header) {
        uint64_t value = skip_header(w, at, verdict);
        if (*verdict != SL_BSON_VALID)
            return NULL;
        header = sl_bson_headers_add(w->headers, from, value - at, size_of[*from], parent);
        if (header->is_id)
            header->size = VARIABLE;
    }
    if (header->next == &w->headers->none && header != *predicted)
        header->next = *predicted;
    return *predicted = header;
}

/* Checks the elements; the document's own length is possible. */
static sl_bson_verdict check_elements(walk *w) {
    struct {
        uint32_t end;
        sl_bson_header *header;
    } around[SL_BSON_NESTING_MAX + 1]; /* the documents around the innermost one */
    uint32_t depth = 0;
    const uint8_t *document = w->document;
    uint64_t stop = w->stop;
    sl_bson_header *parent = &w->headers->none, **predicted = &parent->first;
    for (uint64_t at = 4, next;; at = next) {
        sl_bson_verdict verdict = SL_BSON_VALID;
        sl_bson_header *header = *predicted;
        if (__builtin_expect(!sl_bson_header_is_at(header, document + at), 0)) {
            if (at >= stop) { /* no header begins with the NUL of a terminator */
                if (at >= w->available || document[at] != 0)
                    return no_element(w, at);
                if (depth == 0)
                    return SL_BSON_VALID;
                begin(w, around[--depth].end);
                stop = w->stop;
                predicted = &parent->next;
                parent = around[depth].header;
                next = at + 1;
                continue;
            }
            header = find_header(w, at, parent, predicted, &verdict);
            if (!header)
                return verdict;
        }
        predicted = &header->next;
        uint64_t value = at + header->length;
        uint32_t size = header->size;
        if (__builtin_expect(size < TEXT, 1)) {
            next = value + size;
            if (__builtin_expect(next > stop, 0))
                return value_crossed(w, at, value, next);
            continue;
        }
        if (__builtin_expect(size == TEXT && skip_short_string(document, stop, value, &next), 1))
            continue;
        if (__builtin_expect(value > stop, 0))
            return value_crossed(w, at, value, value);
        bool is_id = header->is_id && depth == 0;
        uint8_t type = document[at];
        uint64_t inner = 0;
        if (size_of[type] < TEXT) { /* the key is _id */
            next = value + size_of[type];
            if (next > stop)
                return value_crossed(w, at, value, next);
        } else if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY) {
            next = enter(w, inner = value, &verdict);
        } else if (type == BSON_TYPE_TIMESTAMP) {
            next = skip_timestamp(w, depth == 0 && !is_id ? at : 0, value, &verdict);
        } else {
            next = skip_value(w, type, value, &inner, &verdict);
        }
        if (__builtin_expect(verdict != SL_BSON_VALID, 0))
            return verdict;
        if (__builtin_expect(is_id, 0))
            note_id(w->facts, at, next);
        if (inner > 0) {
            if (depth == SL_BSON_NESTING_MAX)
                return wrong(w, at, "more than 200 levels of embedded documents");
            around[depth].end = (uint32_t)w->end;
            around[depth++].header = parent;
            begin(w, next);
            stop = w->stop;
            parent = header;
            predicted = &header->first;
            next = inner + 4;
        }
    }
}

sl_bson_verdict sl_bson_check_next(sl_bson_headers *headers, const uint8_t *document,
                                   size_t available, sl_bson_facts *facts) {
    *facts = (sl_bson_facts){0};
    walk w = {.document = document, .available = available, .facts = facts, .headers = headers};
    if (available < 4)
        return SL_BSON_MORE;
    facts->length = sl_bson_length(document);
    if (facts->length < SL_BSON_DOCUMENT_MIN || facts->length > SL_BSON_DOCUMENT_MAX)
        return wrong(&w, 0,
                     facts->length > SL_BSON_DOCUMENT_MAX && facts->length <= INT32_MAX
                         ? "the document is larger than 16 MiB, or its length is damaged"
                         : "this is not the length of a document");
    if (available >= facts->length && document[facts->length - 1] != 0)
        return wrong(&w, facts->length - 1, "the document has no NUL at its end");
    if (predictions_help(headers))
        headers->bytes += facts->length;
    begin(&w, facts->length);
    return check_elements(&w);
}

sl_bson_verdict sl_bson_check(const uint8_t *document, size_t available, sl_bson_facts *facts) {
    sl_bson_headers headers; /* most of it is not used */
    sl_bson_headers_init(&headers, 0, 0);
    return sl_bson_check_next(&headers, document, available, facts);
}

sl_bson_verdict sl_bson_check_alone(const uint8_t *document, size_t length, sl_bson_facts *facts) {
    uint8_t *copy = calloc(1, length + SL_BSON_SLACK);
    *facts = (sl_bson_facts){0};
    if (!copy)
        return SL_BSON_INVALID;
    if (length > 0)
        memcpy(copy, document, length);
    sl_bson_verdict verdict = sl_bson_check(copy, length, facts);
    free(copy);
    return verdict;
}

bool sl_bson_may_begin(const uint8_t *bytes) {
    uint32_t length = sl_bson_length(bytes);
    return length >= SL_BSON_DOCUMENT_MIN && length <= SL_BSON_DOCUMENT_MAX &&
           (length == SL_BSON_DOCUMENT_MIN ? bytes[4] == 0 : size_of[bytes[4]] != NO_TYPE);
}
