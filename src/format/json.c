/* SPDX-License-Identifier: Apache-2.0 */
/* The format `json`: documents in Extended JSON, one after the other.
 *
 * JSON lines are divided at line ends, so any thread reads any block. Other texts are divided
 * between documents by the splitter, which reads them sequentially and checks the
 * text between documents. An invalid line is a reject, and reading continues with the next line. In
 * other texts, an invalid document is a reject only if it is JSON by the grammar, because then its
 * end is certain; otherwise the load ends. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "bson/extjson.h"
#include "convert.h"
#include "declared.h"
#include "head.h"
#include "key_fields.h"
#include "scan.h"
#include "simd.h"
#include "util/document_id.h"

#define TEXT_MAX ((size_t)16 << 20) /* of a document; the reader also cuts longer lines */
/* Commands that print the documents within a document. (jq before 1.7 rounds large integers.) */
#define UNWRAP                                                                                     \
    "load the output of: python3 -c 'import json; d = json.load(open(\"FILE\", \"rb\")); "
#define UNWRAP_ARRAY(name) UNWRAP "[print(json.dumps(one)) for one in d[\"" name "\"]]'"
#define UNWRAP_KEYS UNWRAP "[print(json.dumps({**one, \"_id\": key})) for key, one in d.items()]'"
#define WRAPPED_ADVICE "; if it holds the records in an array, " UNWRAP_ARRAY("NAME")

struct sl_plan {
    const sl_simd *simd;
    sl_declared *declared; /* types of --types; NULL: none */
};

typedef struct json_dialect {
    bool lines;
    bool array;
} json_dialect;

/* ---- the splitter ---- */

/* Finds the ends of documents by counting brackets outside strings, and checks the text between
 * documents: blanks, the commas and brackets of an array.
 *
 * It reads 64 bytes at a time. For each byte a mask has a bit: quotes, backslashes, opening and
 * closing brackets. The quotes that are not escaped divide the bytes into those within strings and
 * the others. Only if 64 bytes hold enough closing brackets to end the document are the brackets
 * examined one after the other. Between documents the text is read byte by byte, and so are strings
 * in single quotes and regular expressions between slashes, the syntax of the mongo shell, which
 * end with their line at the latest.
 *
 * Brackets are counted without their kinds: text in which they do not match is found invalid when
 * the document is parsed, and ends the load there. */

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
    uint64_t string;  /* all bits set: the next byte is within a string; a single quote or a slash:
                         within what this byte ends */
    uint64_t escaped; /* 1: the next byte is escaped */
    uint64_t place;
} state;

_Static_assert(SL_SPLIT_HEAD_BYTES == SL_SNIFF_BYTES, "a sniff and `divides` read the same bytes");
_Static_assert(sizeof(state) == sizeof((sl_split *)0)->words, "the state fits");

/* -- 64 bytes -- */

typedef struct masks {
    uint64_t quotes, backslashes, opening, closing;
    uint64_t shell; /* single quotes and slashes */
} masks;

#if defined(__SSE2__)

static masks masks_of(const char *p) {
    masks m = {0};
    for (unsigned i = 0; i < STEP; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        __m128i curly = _mm_or_si128(part, _mm_set1_epi8(0x20)); /* [ ] become { } */
        __m128i slash = _mm_or_si128(part, _mm_set1_epi8(0x08)); /* ' becomes / */
#define BITS(a, c) ((uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, _mm_set1_epi8(c))) << i)
        m.quotes |= BITS(part, '"');
        m.backslashes |= BITS(part, '\\');
        m.opening |= BITS(curly, '{');
        m.closing |= BITS(curly, '}');
        m.shell |= BITS(slash, '/');
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
        m.shell |= (uint64_t)((c | 0x08) == '/') << i;
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

/* As read_bytes, byte by byte. */
static size_t read_shell(state *s, const char *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char c = p[i], curly = c | 0x20;
        const uint64_t end = c == '"' ? UINT64_MAX : (uint64_t)(uint8_t)c;
        if (s->escaped || c == '\\') {
            s->escaped = !s->escaped;
        } else if (c == '"' || (c | 0x08) == '/') {
            s->string = s->string == 0 ? end : s->string == end ? 0 : s->string;
        } else if (c == '\n' && s->string != UINT64_MAX) {
            s->string = 0;
        } else if (s->string == 0 && (curly == '{' || curly == '}')) {
            s->depth += curly == '{' ? 1 : UINT64_MAX;
            if (s->depth == 0)
                return i + 1;
        }
    }
    return count;
}

/* Reads up to `count` (1 to 64) bytes of a document. Returns their number, less if it ends within
 * them. */
static size_t read_bytes(state *s, const char *p, size_t count) {
    masks m = masks_of(p);
    uint64_t valid = count == STEP ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    if (s->string + 1 > 1)
        return read_shell(s, p, count);
    uint64_t carry = s->escaped;
    uint64_t escaped = escaped_by(m.backslashes & valid, &carry);
    if (count < STEP)
        carry = escaped >> count & 1;
    uint64_t inside = sl_parity_before(m.quotes & ~escaped & valid) ^ s->string;
    if ((m.shell & ~inside & valid) != 0)
        return read_shell(s, p, count);
    const uint64_t counted = ~inside & ~escaped & valid;
    uint64_t opening = m.opening & counted, closing = m.closing & counted;
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

/* -- between documents -- */

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
    return s->place == PLACE_TEXT && c == ','
               ? "a comma between documents, which is read only in an array: put the text between "
                 "[ and ], without a comma after the last document"
               : expected[s->place];
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
                       "missing before here" WRAPPED_ADVICE;
    return ended && !split->fault ? text.length : 0;
}

const sl_splitter sl_json_splitter = {.divides = divides, .find_end = find_end};

/* -- lines or not -- */

bool sl_json_is_lines(sl_text head, bool whole) {
    const char *end = head.bytes + head.length, *p = sl_json_skip(head.bytes, end);
    if (p == end || *p != '{')
        return p == end;
    uint32_t depth = 0;
    char string = 0; /* the byte that ends the string */
    char before = 0; /* the last byte that is not blank */
    for (; p < end; p++) {
        if (*p == '\n') {
            /* A document cannot continue with { without a comma before it: so the document is
             * damaged, and the source is JSON lines. */
            p = sl_json_skip(p, end);
            return string != 0 || (p < end && *p == '{' && !strchr(",:[{", before));
        }
        if (string) {
            if (*p == '\\')
                p++;
            else
                string = *p == string ? 0 : string;
        } else if (*p == '"' || *p == '\'' || *p == '/') {
            string = *p;
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

/* The end of a key without quotes; NULL if none is at `p`. */
static const char *name_end(const char *p, const char *end) {
    if (p >= end || !sl_is_name_byte(*p) || sl_is_digit(*p))
        return NULL;
    while (p < end && sl_is_name_byte(*p))
        p++;
    return p;
}

/* Can the bytes from `p` on, as far as they have been read, begin a document? */
static bool begins_document(const char *p, const char *end) {
    p = sl_json_skip(p + 1, end);
    if (p >= end || *p == '}')
        return true;
    const char quote = *p;
    if (quote != '"' && quote != '\'') {
        p = name_end(p, end);
        if (!p)
            return false;
    } else {
        for (p++; p < end && *p != quote; p++) {
            if ((unsigned char)*p < 0x20)
                return false;
            p += *p == '\\';
        }
        p = p < end ? p + 1 : end;
    }
    p = sl_json_skip(p, end);
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

/* -- documents that cannot be stored -- */

/* Finds the end of such a document by the grammar of JSON and of the mongo shell alone. If the
 * document is valid by these, its end is certain. If it is not (a quote is missing, for example),
 * any text after it may be part of it, and a guess could turn the contents of a string into
 * documents. */

/* More levels are not checked. */
#define LEVELS 4096u

static const char *skip_blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* The end of the string or regular expression whose first quote or slash is at `p`; NULL if it is
 * not closed. Any byte from 0x20 on may be in it. */
static const char *string_end(const char *p, const char *end) {
    if (p >= end || (*p != '"' && *p != '\'' && *p != '/'))
        return NULL;
    const char quote = *p;
    for (p++; p < end && *p != quote; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p == '\\' && (++p >= end || (quote != '/' && !strchr("\"'\\/bfnrtu", *p)) || *p == 0))
            return NULL;
    }
    return p < end ? p + 1 : NULL;
}

/* The end of a number or word: the end of all bytes that can be part of one. */
static const char *plain_end(const char *p, const char *end) {
    const char *start = p;
    while (p < end && (sl_is_name_byte(*p) || *p == '-' || *p == '+' || *p == '.'))
        p++;
    return p > start ? p : NULL;
}

/* The end of the parentheses that begin at `p`, with the arguments of a function in them. */
static const char *call_end(const char *p, const char *end) {
    uint32_t open = 0;
    do {
        if (p >= end)
            return NULL;
        if (*p == '(' || *p == ')')
            open += *p++ == '(' ? 1 : UINT32_MAX;
        else if (*p == '"' || *p == '\'')
            p = string_end(p, end);
        else
            p = *p == ',' || skip_blanks(p, end) > p ? p + 1 : plain_end(p, end);
    } while (p && open > 0);
    return p;
}

/* The end of a value that is not a document or array. */
static const char *value_end(const char *p, const char *end) {
    const char *start = p;
    if (*p == '"' || *p == '\'')
        return string_end(p, end);
    if (*p == '/') {
        p = string_end(p, end);
        while (p && p < end && sl_is_name_byte(*p)) /* options */
            p++;
        return p;
    }
    p = plain_end(p, end);
    if (!p || (*start | 0x20) < 'a' || (*start | 0x20) > 'z')
        return p;
    const char *next = skip_blanks(p, end);
    if (p - start == 3 && memcmp(start, "new", 3) == 0 && next > p) {
        p = plain_end(next, end);
        next = p ? skip_blanks(p, end) : end;
    }
    return next < end && *next == '(' ? call_end(next, end) : p;
}

/* Reads a key and its colon. */
static const char *key_end(const char *p, const char *end) {
    p = p < end && (*p == '"' || *p == '\'') ? string_end(p, end) : name_end(p, end);
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
            p = value_end(p, end);
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

/* ---- the plan ---- */

static bool plan_create(const sl_format_options *options, sl_plan **plan, sl_error *error) {
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return sl_error_memory(error, "preparing the format json");
    if (sl_simd_choose(&(*plan)->simd, error) &&
        sl_declared_create(options->declared, &(*plan)->declared, error))
        return true;
    free(*plan);
    *plan = NULL;
    return false;
}

static const sl_declared *declared(const sl_plan *plan) {
    return plan->declared;
}

static void plan_destroy(sl_plan *plan) {
    if (plan)
        sl_declared_destroy(plan->declared);
    free(plan);
}

/* ---- recognising a source ---- */

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)plan, (void)name;
    const char *end = head.bytes + head.length, *p = sl_json_skip(head.bytes, end);
    if (head.length >= 2 &&
        (memcmp(head.bytes, "\xFF\xFE", 2) == 0 || memcmp(head.bytes, "\xFE\xFF", 2) == 0))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 FILE "
                            "> NEW");
    if (p == end)
        return sl_error_set(error, SL_EXIT_SOURCE, "the file is empty: it contains no document");
    if (!sl_json_begins(head)) {
        char shown[60];
        const char *line = memchr(p, '\n', (size_t)(end - p));
        sl_text_printable((sl_text){p, (size_t)((line ? line : end) - p)}, shown, sizeof shown);
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is not JSON: it begins with `%s`; expected documents such as "
                            "{\"key\": 1}, or an array of them",
                            shown);
    }
    json_dialect *found = malloc(sizeof *found);
    if (!found)
        return sl_error_memory(error, "looking at a source");
    *found = (json_dialect){.lines = sl_json_is_lines(head, whole), .array = *p == '['};
    *dialect = (sl_dialect *)found;
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    const json_dialect *own = (const json_dialect *)dialect;
    snprintf(out, room, "%s",
             own->lines   ? "JSON lines: a document on each line"
             : own->array ? "an array of documents"
                          : "documents one after the other");
    return out;
}

static const sl_splitter *splitter(const sl_dialect *dialect, bool *lines) {
    *lines = ((const json_dialect *)dialect)->lines;
    return &sl_json_splitter;
}

/* ---- parsing ---- */

typedef struct parser {
    sl_extjson *extjson;
    const sl_declared *declared; /* types of texts; NULL: none */
    sl_scratch scratch;
    const sl_block *block;
    sl_sink *sink;
    sl_parse_counts counts;
    const char *line_start; /* of the last line counted by lines_before */
    uint32_t lines;         /* line ends before it */
    const uint8_t *last;    /* the document that was read last */
} parser;

/* The number of line ends of the block before `p`, which does not decrease from call to call. */
static uint32_t lines_before(parser *ps, const char *p) {
    ps->lines += sl_line_feeds(ps->line_start, p);
    ps->line_start = p;
    return ps->lines;
}

/* Writes the reason of a reject, with its position in the record that begins at `from`. */
static void explain(sl_reject *reject, const char *from, const char *at, const char *reason,
                    sl_text shown) {
    char quoted[SL_QUOTED_ROOM] = "", line[40] = "";
    uint32_t before = sl_line_feeds(from, at);
    const char *start = at;
    while (start > from && before > 0 && start[-1] != '\n')
        start--;
    if (before > 0)
        snprintf(line, sizeof line, "line %u, ", before + 1);
    else
        start = from;
    if (shown.length > 0)
        sl_quoted(shown, quoted);
    snprintf(reject->reason, sizeof reject->reason, "at %sbyte %zu of the document: %s%s%s%s", line,
             (size_t)(at - start) + 1, reason, quoted[0] ? ": " : "", quoted,
             strstr(reason, "not UTF-8")
                 ? "; correct the record, or, if the whole file has another "
                   "encoding, convert it (iconv -f ENCODING -t UTF-8)"
                 : "");
}

static void reject_record(parser *ps, const char *from, const char *to, const char *at,
                          const char *reason, sl_text shown, bool misread) {
    sl_reject reject = {.offset = ps->block->offset + (uint64_t)(from - ps->block->text.bytes),
                        .line = lines_before(ps, from),
                        .misread = misread,
                        .record = {from, (size_t)(to - from)}};
    explain(&reject, from, at, reason, shown);
    if (misread) {
        size_t used = strlen(reject.reason);
        snprintf(reject.reason + used, sizeof reject.reason - used,
                 "; the start of the next document is not certain, so the load ends here");
    }
    ps->counts.rejects += !misread;
    ps->sink->reject(ps->sink, &reject);
}

/* Changes the document of the text from `from` to `to` by the block's key fields. False: it is
 * refused, and has been rejected. */
static bool apply_keys(parser *ps, const char *from, const char *to, bool own_id, uint8_t **end) {
    sl_reject reject = {.offset = ps->block->offset + (uint64_t)(from - ps->block->text.bytes),
                        .record = {from, (size_t)(to - from)}};
    if (sl_key_fields_apply(ps->block->keys, own_id, ps->sink->cursor, end, &reject))
        return true;
    reject.line = lines_before(ps, from);
    ps->counts.rejects++;
    ps->sink->reject(ps->sink, &reject);
    return false;
}

/* Converts the texts with declared types in the document at the sink's cursor, which ends at *end.
 * SL_DECLARED_UNFIT: it is refused, and has been rejected. */
static sl_declared_status convert_texts(parser *ps, const char *from, const char *to,
                                        uint8_t **end) {
    sl_sink *sink = ps->sink;
    sl_reject reject = {.offset = ps->block->offset + (uint64_t)(from - ps->block->text.bytes),
                        .record = {from, (size_t)(to - from)}};
    uint8_t *converted = *end, *after;
    sl_declared_status status = sl_declared_convert(ps->declared, &ps->scratch, sink->cursor,
                                                    converted, sink->limit, &after, &reject);
    if (status == SL_DECLARED_OK) {
        memmove(sink->cursor, converted, (size_t)(after - converted));
        *end = sink->cursor + (after - converted);
    } else if (status == SL_DECLARED_UNFIT) {
        reject.line = lines_before(ps, from);
        ps->counts.rejects++;
        sink->reject(sink, &reject);
    }
    return status;
}

/* Converts the document at *p, in text whose last } is before `end`, and moves *p after it. False
 * when the sink ends the block; otherwise `*valid`. */
static bool take_document(parser *ps, const char **p, const char *end, bool *valid) {
    sl_sink *sink = ps->sink;
    size_t need = 1024;
    uint64_t offset = ps->block->offset + (uint64_t)(*p - ps->block->text.bytes);
    int64_t id = ps->block->id_base + (int64_t)(offset & (SL_BLOCK_BYTES - 1));
    if (sink->documents >= sink->documents_limit && !sink->full(sink, need))
        return false;
    for (;;) {
        uint8_t *written;
        const char *after;
        bool own;
        sl_declared_status types = SL_DECLARED_OK;
        sl_extjson_status status = sl_extjson_document(ps->extjson, *p, end, &id, sink->cursor,
                                                       sink->limit, &after, &written, &own);
        if (status == SL_EXTJSON_OK && ps->declared)
            types = convert_texts(ps, *p, after, &written);
        switch (types == SL_DECLARED_NO_ROOM ? SL_EXTJSON_NO_ROOM : status) {
        case SL_EXTJSON_OK:
            if (types == SL_DECLARED_UNFIT) {
                *p = after;
                *valid = true;
                return true;
            }
            ps->last = sink->cursor;
            if (!ps->block->keys || apply_keys(ps, *p, after, own, &written)) {
                if (sink->offsets)
                    sink->offsets[sink->documents] = offset;
                sink->cursor = written;
                sink->documents++;
                ps->counts.documents++;
            }
            *p = after;
            *valid = true;
            return true;
        case SL_EXTJSON_INVALID:
            *valid = false;
            return true;
        case SL_EXTJSON_NO_ROOM:
            if (!sink->full(sink, need))
                return false;
            need *= 4;
        }
    }
}

/* The position after the last } before `end`, where the last document of the text may end; `from`
 * if there is no }. */
static const char *last_brace(const char *from, const char *end) {
    const char *last = memrchr(from, '}', (size_t)(end - from));
    return last ? last + 1 : from;
}

/* ---- JSON lines ---- */

/* Parses the documents of a line without its line end. False: the sink ends the block. */
static bool take_line(parser *ps, const char *p, const char *end) {
    const sl_text nothing = {"", 0};
    p = sl_json_skip(p, end);
    while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    if (p == end) {
        ps->counts.blank_lines++;
        return true;
    }
    if ((size_t)(end - p) > TEXT_MAX) {
        reject_record(ps, p, end, p, "a line of more than 16 MiB" WRAPPED_ADVICE, nothing, false);
        return true;
    }
    const char *brace = end[-1] == '}' ? end : last_brace(p, end);
    while (p < end) {
        if (*p != '{') {
            reject_record(ps, p, end, p, "not a document: a document begins with { and ends with }",
                          nothing, false);
            return true;
        }
        bool valid;
        if (p >= brace) {
            reject_record(ps, p, end, end, "the line ends before the document is complete", nothing,
                          false);
            return true;
        }
        if (!take_document(ps, &p, brace, &valid))
            return false;
        if (!valid) {
            const sl_extjson_fault *why = sl_extjson_why(ps->extjson);
            bool cut = why->at >= brace;
            reject_record(ps, p, end, cut ? end : why->at,
                          cut ? "the line ends before the document is complete" : why->reason,
                          why->shown, false);
            return true;
        }
        p = sl_json_skip(p, end);
    }
    return true;
}

static bool take_lines(parser *ps) {
    const char *p = ps->block->text.bytes, *stop = p + ps->block->text.length;
    bool go_on = true;
    while (p < stop && go_on) {
        const char *end = memchr(p, '\n', (size_t)(stop - p));
        if (!end)
            end = stop;
        ps->counts.lines++;
        go_on = take_line(ps, p, end);
        p = end + 1;
    }
    return go_on;
}

/* ---- other texts ---- */

/* The next document at or after `p`, or `end`. The splitter has checked the text before it. */
static const char *next_document(const char *p, const char *end) {
    while ((p = sl_json_skip(p, end)) < end && (*p == ',' || *p == '[' || *p == ']'))
        p++;
    return p;
}

static bool take_text(parser *ps) {
    const char *start = ps->block->text.bytes, *end = start + ps->block->text.length, *p = start;
    const char *brace = last_brace(p, end);
    bool go_on = true;
    while (go_on && (p = next_document(p, end)) < end) {
        const sl_extjson_fault outside = {p, "a document is expected here", {"", 0}},
                               *why = &outside;
        const char *from = p, *certain = NULL;
        bool valid = false;
        if (*p == '{' && p < brace) {
            go_on = take_document(ps, &p, brace, &valid);
            if (!go_on || valid)
                continue;
            why = sl_extjson_why(ps->extjson);
            certain = sl_json_document_end(from, end);
        }
        p = certain ? certain : why->at;
        reject_record(ps, from, p, why->at, why->reason, why->shown, !certain);
        go_on = certain != NULL;
        if (!certain)
            end = from; /* the lines after it have not been read */
    }
    ps->counts.lines += sl_line_feeds(start, end);
    return go_on;
}

/* ---- a document that holds the records ---- */

#define WRAPPED_LEAST 10u /* documents within a document */

/* The number of values of a document or an array, but for the _id of the position, if all are
 * documents; or 0. */
static uint32_t documents_within(const bson_t *container) {
    bson_iter_t at;
    uint32_t count = 0;
    for (bool more = bson_iter_init(&at, container); more && bson_iter_next(&at);) {
        if (BSON_ITER_HOLDS_DOCUMENT(&at))
            count++;
        else if (!BSON_ITER_IS_KEY(&at, "_id") || !BSON_ITER_HOLDS_INT64(&at))
            return 0;
    }
    return count;
}

/* Warns if the source's first document seems to hold its records: it is the answer of a service or
 * a FeatureCollection of GeoJSON, with an array of them, or has a key for each of them. */
static void doubt_wrapped(const parser *ps) {
    bson_t document, array;
    bson_iter_t at;
    sl_reject record = {.offset = ps->block->offset};
    if (!bson_init_static(&document, ps->last, sl_bson_length(ps->last)))
        return;
    uint32_t count = documents_within(&document);
    if (count >= WRAPPED_LEAST)
        snprintf(record.reason, sizeof record.reason,
                 "this document consists of %u documents; to store each one, with its key as "
                 "_id, " UNWRAP_KEYS,
                 count);
    for (bool more = !count && bson_iter_init(&at, &document); more && bson_iter_next(&at);) {
        const char *name = bson_iter_key(&at);
        if (BSON_ITER_HOLDS_ARRAY(&at) && sl_container_at(&at, &array) &&
            array.len > document.len / 4 * 3 && strlen(name) < 100 && !strpbrk(name, "\"'\\") &&
            (count = documents_within(&array)) >= WRAPPED_LEAST)
            snprintf(record.reason, sizeof record.reason,
                     "\"%s\" of this document is an array of %u documents; to store each "
                     "one, " UNWRAP_ARRAY("%s"),
                     name, count, name);
    }
    if (record.reason[0])
        ps->sink->doubt(ps->sink, &record);
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    parser ps = {
        .declared = plan->declared, .block = block, .sink = sink, .line_start = block->text.bytes};
    sl_error error;
    if (!sl_extjson_create(sl_simd_name(plan->simd), sl_simd_utf8_valid(plan->simd), &ps.extjson,
                           &error)) {
        sl_reject reject = {
            .offset = block->offset, .record = {block->text.bytes, 0}, .misread = true};
        snprintf(reject.reason, sizeof reject.reason, "out of memory while reading JSON");
        sink->reject(sink, &reject);
        return false;
    }
    bool go_on = ((const json_dialect *)dialect)->lines ? take_lines(&ps) : take_text(&ps);
    ps.counts.rounded_numbers = sl_extjson_rounded(ps.extjson);
    sl_extjson_destroy(ps.extjson);
    sl_scratch_clear(&ps.scratch);
    ps.counts.records = ps.counts.documents + ps.counts.rejects;
    if (go_on && block->offset == 0 && ps.counts.records == 1 && ps.last && sink->doubt)
        doubt_wrapped(&ps);
    sl_parse_counts_add(counts, &ps.counts);
    return go_on;
}

const sl_format sl_format_json = {
    .name = "json",
    .summary = "JSON lines, arrays and concatenated documents, in Extended JSON",
    .kind = "documents",
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .declared = declared,
    .sniff = sniff,
    .describe = describe,
    .splitter = splitter,
    .own_ids = true,
    .parse = parse,
};
