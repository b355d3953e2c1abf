/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter of JSON: finds the ends of documents by counting brackets outside strings, and
 * checks the text between documents: blanks, the commas and brackets of an array.
 *
 * It reads 64 bytes at a time. For each byte a mask has a bit: quotes, backslashes, opening and
 * closing brackets. The quotes that are not escaped divide the bytes into those within strings and
 * the others. Only if 64 bytes hold enough closing brackets to end the document are the brackets
 * examined one after the other. Between documents the text is read byte by byte.
 *
 * Brackets are counted without their kinds: text in which they do not match is found invalid when
 * the document is parsed, and ends the load there. */
#include "json.h"
#include "scan.h"

#include "bson/bson_writer.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define STEP 64u

/* What may follow between documents. */
enum {
    PLACE_START,  /* nothing read: a document or an array */
    PLACE_TEXT,   /* concatenated documents: another one */
    PLACE_FIRST,  /* in an array, after the [ */
    PLACE_BEHIND, /* in an array, after a document */
    PLACE_NEXT,   /* in an array, after a comma */
    PLACE_CLOSED, /* after the array */
};

typedef struct state {
    uint64_t depth;   /* open brackets, not counting that of the array; 0: between documents */
    uint64_t string;  /* all bits set: the next byte is within a string */
    uint64_t escaped; /* 1: the next byte is escaped */
    uint64_t place;
} state;

_Static_assert(SL_SPLIT_HEAD_BYTES == SL_SNIFF_BYTES, "a sniff and `divides` read the same bytes");
_Static_assert(sizeof(state) == sizeof((sl_split *)0)->words, "the state fits");

/* ---- 64 bytes ---- */

typedef struct masks {
    uint64_t quotes, backslashes, opening, closing;
} masks;

#if defined(__SSE2__)

static masks masks_of(const char *p) {
    masks m = {0};
    for (unsigned i = 0; i < STEP; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i curly = _mm_or_si128(part, _mm_set1_epi8(0x20)); /* [ ] become { } */
#define BITS(a, c) ((uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, _mm_set1_epi8(c))) << i)
        m.quotes |= BITS(part, '"');
        m.backslashes |= BITS(part, '\\');
        m.opening |= BITS(curly, '{');
        m.closing |= BITS(curly, '}');
#undef BITS
    }
    return m;
}

#else

static masks masks_of(const char *p) {
    masks m = {0};
    for (unsigned i = 0; i < STEP; i++) {
        char c = p[i], curly = c | 0x20;
        m.quotes |= (uint64_t)(c == '"') << i;
        m.backslashes |= (uint64_t)(c == '\\') << i;
        m.opening |= (uint64_t)(curly == '{') << i;
        m.closing |= (uint64_t)(curly == '}') << i;
    }
    return m;
}

#endif

/* The bytes that a backslash escapes. *carry on entry: the first byte is escaped; on return: the
 * byte after these is escaped. */
static uint64_t escaped_by(uint64_t backslashes, uint64_t *carry) {
    uint64_t escaped = *carry;
    backslashes &= ~*carry;
    *carry = 0;
    while (backslashes != 0) {
        uint64_t first = backslashes & -backslashes;
        if (first >> 63)
            *carry = 1;
        escaped |= first << 1;
        backslashes &= ~(first | first << 1);
    }
    return escaped;
}

/* Reads up to `count` (1 to 64) bytes of a document. Returns their number, less if it ends within
 * them. */
static size_t read_bytes(state *s, const char *p, size_t count) {
    masks m = masks_of(p);
    uint64_t valid = count == STEP ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    uint64_t carry = s->escaped;
    uint64_t escaped = escaped_by(m.backslashes & valid, &carry);
    if (count < STEP)
        carry = escaped >> count & 1;
    uint64_t inside = sl_parity_before(m.quotes & ~escaped & valid) ^ s->string;
    uint64_t opening = m.opening & ~inside & valid, closing = m.closing & ~inside & valid;
    if ((uint64_t)__builtin_popcountll(closing) >= s->depth) {
        uint64_t depth = s->depth;
        for (uint64_t left = opening | closing; left != 0; left &= left - 1) {
            depth += (opening & left & -left) != 0 ? 1 : UINT64_MAX;
            if (depth == 0) {
                *s = (state){.place = s->place};
                return (size_t)__builtin_ctzll(left) + 1;
            }
        }
    }
    s->depth += (uint64_t)__builtin_popcountll(opening) - (uint64_t)__builtin_popcountll(closing);
    s->string = (inside >> (count - 1) & 1) != 0 ? UINT64_MAX : 0;
    s->escaped = carry;
    return count;
}

/* ---- between documents ---- */

/* Reads one byte between documents. Returns a fault, or NULL. */
static const char *read_between(state *s, char c) {
    static const char *const expected[] = {
        [PLACE_START] = "a document, which begins with {, or an array of documents is expected",
        [PLACE_TEXT] = "text between documents; after a document, another { or the end is expected",
        [PLACE_FIRST] = "an array of documents is expected; this value is not a document",
        [PLACE_BEHIND] = "after a document of the array, a comma or ] is expected",
        [PLACE_NEXT] = "after a comma of the array, a document is expected",
        [PLACE_CLOSED] = "text after the ] that ends the array of documents",
    };
    static const struct {
        char byte;
        uint8_t place, next;
    } moves[] = {
        {'{', PLACE_START, PLACE_TEXT},   {'{', PLACE_TEXT, PLACE_TEXT},
        {'{', PLACE_FIRST, PLACE_BEHIND}, {'{', PLACE_NEXT, PLACE_BEHIND},
        {'[', PLACE_START, PLACE_FIRST},  {']', PLACE_FIRST, PLACE_CLOSED},
        {',', PLACE_BEHIND, PLACE_NEXT},  {']', PLACE_BEHIND, PLACE_CLOSED},
    };
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        if (moves[i].byte != c || moves[i].place != s->place)
            continue;
        s->place = moves[i].next;
        s->depth = c == '{';
        return NULL;
    }
    return expected[s->place];
}

static size_t read_on(sl_split *split, sl_text text, size_t least, bool *found) {
    static const char mark[] = "\xEF\xBB\xBF";
    state s;
    memcpy(&s, split->words, sizeof s);
    size_t at = 0;
    *found = false;
    while (at < text.length && !split->fault) {
        if (s.depth > 0) {
            size_t left = text.length - at;
            at += read_bytes(&s, text.bytes + at, left < STEP ? left : STEP);
            continue;
        }
        if (at >= least) {
            *found = true;
            break;
        }
        const char *next = text.bytes + at;
        size_t left = text.length - at;
        if (memcmp(next, mark, left < 3 ? left : 3) == 0) {
            if (left < 3)
                break; /* the other bytes of the mark come later, or the parser refuses it */
            at += 3;
        } else {
            bool blank = strchr(" \n\r\t", *next) && *next != 0;
            split->fault = blank ? NULL : read_between(&s, *next);
            at += !split->fault;
        }
    }
    *found = *found || (s.depth == 0 && at >= least && !split->fault);
    memcpy(split->words, &s, sizeof s);
    return at;
}

/* An archive entry in another format is split at line ends, and not loaded. */
static bool divides(sl_text head, bool whole) {
    return sl_json_begins(head) && !sl_json_is_lines(head, whole);
}

/* The reason why a text must not end here; NULL if it may. */
static const char *flaw_at_end(const sl_split *split) {
    state s;
    memcpy(&s, split->words, sizeof s);
    if (s.depth > 0)
        return "the text ends within a document";
    if (s.place == PLACE_FIRST || s.place == PLACE_BEHIND || s.place == PLACE_NEXT)
        return "the text ends within an array of documents: its ] is missing";
    return NULL;
}

static size_t find_end(sl_split *split, sl_text text, size_t least, bool ended) {
    bool found;
    sl_text new = {text.bytes + split->at, text.length - split->at};
    split->at += read_on(split, new, least > split->at ? least - split->at : 0, &found);
    if (found && !split->fault)
        return split->at;
    if (ended && !split->fault)
        split->fault = flaw_at_end(split);
    else if (!split->fault && text.length > least + SL_BSON_DOCUMENT_MAX)
        split->fault = "the text of a document has more than 16 MiB, or brackets or quotes are "
                       "missing before here";
    return ended && !split->fault ? text.length : 0;
}

const sl_splitter sl_json_splitter = {.divides = divides, .find_end = find_end};

/* ---- lines or not ---- */

bool sl_json_is_lines(sl_text head, bool whole) {
    const char *end = head.bytes + head.length, *p = sl_json_skip(head.bytes, end);
    if (p == end || *p != '{')
        return p == end;
    uint32_t depth = 0;
    bool string = false;
    char before = 0; /* the last byte that is not blank */
    for (; p < end; p++) {
        if (*p == '\n') {
            /* A document cannot continue with { without a comma before it: so the document is
             * damaged, and the source is JSON lines. */
            p = sl_json_skip(p, end);
            return string || (p < end && *p == '{' && !strchr(",:[{", before));
        }
        if (string) {
            if (*p == '\\')
                p++;
            else
                string = *p != '"';
        } else if (*p == '"') {
            string = true;
        } else if (*p == '{' || *p == '[') {
            depth++;
        } else if ((*p == '}' || *p == ']') && --depth == 0) {
            break;
        }
        if (p < end && *p != ' ' && *p != '\t' && *p != '\r')
            before = *p;
    }
    if (p >= end)
        return !whole;
    for (p++; p < end && (*p == ' ' || *p == '\t' || *p == '\r'); p++)
        continue;
    return p < end ? *p == '\n' : !whole;
}

/* Can the bytes from `p` on, as far as they have been read, begin a document? */
static bool begins_document(const char *p, const char *end) {
    p = sl_json_skip(p + 1, end);
    if (p >= end || *p == '}')
        return true;
    if (*p != '"')
        return false;
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return false;
        p += *p == '\\';
    }
    p = p < end ? sl_json_skip(p + 1, end) : end;
    return p >= end || *p == ':';
}

bool sl_json_begins(sl_text head) {
    const char *end = head.bytes + head.length, *p = sl_json_skip(head.bytes, end);
    if (p == end)
        return false;
    const char *first = *p == '[' ? sl_json_skip(p + 1, end) : p;
    if (first > p && (first == end || *first == ']'))
        return true;
    return *first == '{' && begins_document(first, end);
}

/* ---- documents that cannot be stored ---- */

/* Finds the end of such a document by the grammar of JSON alone. If the document is JSON, its end
 * is certain. If it is not (a quote is missing, for example), any text after it may be part of it,
 * and a guess could turn the contents of a string into documents. */

/* More levels are not checked. */
#define LEVELS 4096u

static const char *skip_blanks(const char *p, const char *end) {
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
    p = skip_blanks(p, end);
    return p < end && *p == ':' ? skip_blanks(p + 1, end) : NULL;
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
            p = skip_blanks(p + 1, end);
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
            p = skip_blanks(p, end);
            if (p >= end)
                return NULL;
            if (*p == ',') {
                p = skip_blanks(p + 1, end);
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
