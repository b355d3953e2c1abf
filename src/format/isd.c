/* SPDX-License-Identifier: Apache-2.0 */
/* The format `isd`: complete ISD records, one per line; and what all ISD formats share: the walk
 * over a record's sections, the writer of documents, the loop over a block's lines.
 *
 * A record is rejected when it is too short or too long, when its time does not exist, or when its
 * columns are shifted: its length differs from the declared one, and a sign is missing at its fixed
 * position or no section begins after the fixed columns. Other errors affect only the invalid part:
 * a number field that is not a number is left out and counted, unknown sections are kept as text
 * and counted. */
#include "isd_plan.h"

#include "convert.h"
#include "head.h"
#include "key_fields.h"
#include "util/document_id.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SNIFF_LINES 100u
#define INLINE static inline __attribute__((always_inline))
#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

typedef struct isd_dialect {
    char usaf[32], wban[32]; /* of the first record, printable */
} isd_dialect;

/* ---- the walk over a record's sections ---- */

/* The sections are ADD, REM, EQD, QNN, in this order, each optional.
 *
 * The parts of a section have no separators: the position of a part follows from the length of the
 * part before it. Tags are not searched for in the text, since weather reports contain all of them
 * by chance. When a part cannot be parsed, the bytes up to the first later tag from which a walk
 * ends exactly at the record's end are lost; without such a tag, all bytes up to the record's end
 * are lost. */

typedef enum section { SECTION_ADD, SECTION_REM, SECTION_EQD, SECTION_QNN, SECTIONS } section;

static bool has_tag(const char *record, size_t at, size_t end, section tag) {
    static const char tags[SECTIONS][4] = {"ADD", "REM", "EQD", "QNN"};
    return end - at >= 3 && memcmp(record + at, tags[tag], 3) == 0;
}

/* The type of a remark by its three bytes: 0 to 5; -1: no such type. */
static int isd_remark_type(const char *bytes) {
    static const char types[6][4] = {"SYN", "AWY", "MET", "SOD", "SOM", "HPD"};
    for (int i = 0; i < 6; i++) {
        if (memcmp(bytes, types[i], 3) == 0)
            return i;
    }
    return -1;
}

/* The three digits of a remark's length; -1 when they are not digits. */
static int isd_remark_length(const char *digits) {
    if (!sl_is_digit(digits[0]) || !sl_is_digit(digits[1]) || !sl_is_digit(digits[2]))
        return -1;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

/* Each pass_ function parses a section from `at`, the offset after its tag. Returns the offset of
 * the first byte that it cannot parse. */

static size_t pass_remarks(const char *record, size_t at, size_t end) {
    while (end - at >= SL_ISD_REMARK_HEAD && isd_remark_type(record + at) >= 0) {
        int length = isd_remark_length(record + at + 3);
        if (length < 0 || (size_t)length > end - at - SL_ISD_REMARK_HEAD)
            break;
        at += SL_ISD_REMARK_HEAD + (size_t)length;
    }
    return at;
}

static size_t pass_qualities(const char *record, size_t at, size_t end) {
    while (end - at >= SL_ISD_QUALITY_BYTES && record[at] != '\0' && strchr("QPRCDN", record[at]) &&
           sl_is_digit(record[at + 1]) && sl_is_digit(record[at + 2]))
        at += SL_ISD_QUALITY_BYTES;
    return at;
}

static size_t pass_originals(const char *record, size_t at, size_t end) {
    while (end - at >= SL_ISD_ORIGINAL_BYTES && record[at] >= 'A' && record[at] <= 'Y')
        at += SL_ISD_ORIGINAL_BYTES;
    return at;
}

/* Walks the sections after ADD, from `first` on. Returns the offset of the first byte that it
 * cannot parse. A tag without contents cannot be parsed. */
static size_t walk_tail(const char *record, size_t at, size_t end, section first,
                        sl_isd_tail *tail) {
    static size_t (*const pass[SECTIONS])(const char *, size_t, size_t) = {
        NULL, pass_remarks, pass_qualities, pass_originals};
    sl_isd_span *spans[SECTIONS] = {NULL, &tail->remarks, &tail->qualities, &tail->originals};
    for (section tag = first; tag < SECTIONS; tag++) {
        if (!has_tag(record, at, end, tag))
            continue;
        size_t to = pass[tag](record, at + 3, end);
        if (to == at + 3)
            break;
        *spans[tag] = (sl_isd_span){(uint16_t)(at + 3), (uint16_t)to};
        at = to;
    }
    return at;
}

/* The first section that may follow. */
static section next_section(const sl_isd_tail *tail) {
    if (tail->originals.to > 0)
        return SECTIONS;
    if (tail->qualities.to > 0)
        return SECTION_QNN;
    return tail->remarks.to > 0 ? SECTION_EQD : SECTION_REM;
}

/* Finds the tag at which the walk can continue after unparsable bytes, and continues there. */
static __attribute__((noinline)) void resume(sl_isd_walk *walk, size_t at, size_t end) {
    const char *record = walk->record;
    section first = next_section(&walk->tail);
    walk->lost = (sl_isd_span){(uint16_t)at, (uint16_t)end};
    for (size_t from = at; end - from > 3; from++) {
        for (section tag = first; tag < SECTIONS; tag++) {
            sl_isd_tail tail = walk->tail;
            if (has_tag(record, from, end, tag) &&
                walk_tail(record, from, end, tag, &tail) == end) {
                walk->tail = tail;
                walk->lost.to = (uint16_t)from;
                return;
            }
        }
    }
}

/* Walks the groups after the tag ADD. Stops at a second instance of a group that does not repeat:
 * an earlier group probably had the wrong width. */
static size_t walk_groups(const sl_plan *plan, const char *record, size_t at, size_t end,
                          sl_isd_walk *walk) {
    uint64_t seen[SL_ISD_FAMILY_WORDS] = {0};
    unsigned family = UINT8_MAX + 1;
    uint32_t bound = walk->bound, count = 0;
    while (end - at > 3) {
        unsigned row = sl_isd_row(plan, record + at);
        if (row == 0)
            break;
        const sl_isd_group_plan *group = &plan->groups[row - 1];
        if (end - at - 3 < group->width)
            break;
        if (group->family != family) {
            family = group->family;
            uint64_t bit = UINT64_C(1) << (family & 63);
            if (seen[family >> 6] & bit) {
                if (!group->repeats)
                    break;
                walk->interrupted = true;
            }
            seen[family >> 6] |= bit;
        } else if (!group->repeats) {
            break;
        }
        walk->groups[count].at = (uint16_t)at;
        walk->groups[count++].row = (uint8_t)(row - 1);
        bound += group->bound;
        at += 3u + group->width;
    }
    walk->group_count = count;
    walk->bound = bound;
    return at;
}

static bool is_letter(char byte) {
    return byte >= 'A' && byte <= 'Z';
}

/* May the bytes at `at` begin a group's id or a tag? Near the end, fewer than 3 bytes are
 * compared. */
static bool may_follow_groups(const char *record, size_t at, size_t end) {
    for (section tag = SECTION_REM; tag < SECTIONS; tag++) {
        if (has_tag(record, at, end, tag))
            return true;
    }
    return is_letter(record[at]) && (end - at < 2 || is_letter(record[at + 1])) &&
           (end - at < 3 || sl_is_digit(record[at + 2]));
}

/* Drops the last group, and returns its offset. For groups followed by bytes that cannot begin
 * another group or section: the last group's id may be damaged, so its width is probably wrong. */
static size_t drop_last_group(sl_isd_walk *walk, size_t at) {
    if (walk->group_count == 0)
        return at;
    walk->group_count--;
    return walk->group_count > 0 ? walk->groups[walk->group_count].at : SL_ISD_FIXED_BYTES;
}

static uint32_t entries(sl_isd_span span, uint32_t bytes) {
    return (uint32_t)(span.to - span.from) / bytes;
}

void sl_isd_walk_record(const sl_plan *plan, const char *record, size_t end, size_t length,
                        sl_isd_walk *walk) {
    const sl_isd_span nothing = {0, 0};
    size_t at = SL_ISD_FIXED_BYTES;
    walk->record = record;
    walk->tail = (sl_isd_tail){nothing, nothing, nothing};
    walk->lost = nothing;
    walk->surplus = (sl_isd_span){(uint16_t)end, (uint16_t)length};
    walk->interrupted = false;
    walk->position = NULL;
    walk->elevation = 0;
    walk->group_count = 0;
    walk->bound = plan->fixed_bound;
    if (has_tag(record, at, end, SECTION_ADD)) {
        size_t to = walk_groups(plan, record, at + 3, end, walk);
        at = to == at + 3 ? at : to;
    }
    size_t groups_end = at;
    at = walk_tail(record, at, end, SECTION_REM, &walk->tail);
    if (__builtin_expect(at < end, 0)) {
        if (at == groups_end && !may_follow_groups(record, at, end))
            at = drop_last_group(walk, at);
        resume(walk, at, end);
    }
    walk->bound += entries(walk->tail.qualities, SL_ISD_QUALITY_BYTES) * plan->quality_bound +
                   entries(walk->tail.originals, SL_ISD_ORIGINAL_BYTES) * plan->original_bound +
                   2 * (uint32_t)length; /* texts: a byte may become two */
}

/* ---- the document of a walked record ---- */

/* Most of the time is spent in the steps of a plan. They branch only on the kind of step, which is
 * predictable, since it is the same for all records with the same groups. An element is always
 * written; if it is to be left out, the write position does not move, so the next element
 * overwrites it. */

/* -- texts, indexes -- */

uint8_t *sl_isd_put_large_index(uint8_t *to, sl_bson_type type, uint32_t index) {
    char digits[12];
    char *digit = digits + sizeof digits;
    *--digit = '\0';
    for (; index > 0; index /= 10)
        *--digit = (char)('0' + index % 10);
    return sl_bson_put_key(to, type, digit);
}

uint8_t *sl_isd_put_latin1(uint8_t *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)text[i];
        to = sl_utf8_put(to, byte < 0x20 || byte == 0x7F ? ' ' : byte);
    }
    return to;
}

/* -- steps -- */

#define ZEROS UINT64_C(0x3030303030303030)
#define NINES UINT64_C(0x3939393939393939)
#define BLANKS UINT64_C(0x2020202020202020)

/* Converts the digits of a field; false when a byte is not a digit. */
INLINE bool read_digits(const char *digits, unsigned shift, int32_t *value) {
    uint64_t word = (sl_load_8(digits) ^ ZEROS) << shift;
    *value = (int32_t)sl_swar_number(word);
    return sl_swar_digits(word);
}

/* Converts a sign and digits; `optional`: the sign may be missing, and a plus is not allowed. */
INLINE bool read_signed(const char *field, unsigned shift, bool optional, int32_t *value) {
    bool minus = *field == '-';
    int32_t magnitude;
    bool digits;
    if (optional) { /* the first byte is a minus or a digit */
        uint64_t word = sl_load_8(field) ^ ZEROS;
        word = (minus ? word & ~(uint64_t)0xFF : word) << shift;
        magnitude = (int32_t)sl_swar_number(word);
        digits = sl_swar_digits(word);
    } else {
        digits = read_digits(field + 1, shift, &magnitude) & (minus | (*field == '+'));
    }
    *value = (int32_t)(((uint32_t)magnitude ^ -(uint32_t)minus) + minus);
    return digits;
}

/* The text of a field of at most seven bytes, padded with NULs. */
INLINE uint64_t read_text(const char *field, unsigned shift) {
    return sl_load_8(field) << shift >> shift;
}

/* The length of a text without its trailing blanks. */
INLINE unsigned text_length(uint64_t word, unsigned shift) {
    word ^= BLANKS << shift >> shift;
    return word == 0 ? 0 : 8 - ((unsigned)__builtin_clzll(word) >> 3);
}

/* Writes a short text that may contain control characters or bytes above 0x7E. */
static __attribute__((noinline)) uint8_t *put_careful_text(uint8_t *to, const char *field,
                                                           size_t width, bool trim) {
    char clean[8];
    for (size_t i = 0; i < width; i++)
        clean[i] = (uint8_t)field[i] < 0x20 || field[i] == 0x7F ? ' ' : field[i];
    return sl_isd_put_string(to, clean, trim ? sl_isd_trimmed(clean, width) : width, true);
}

/* Writes the elements of a group's document by the group's steps. */
INLINE uint8_t *run(const sl_isd_step *step, const char *data, uint8_t *out, bool careful,
                    uint64_t *malformed) {
    uint8_t *open[SL_ISD_DEPTH_MAX];
    unsigned depth = 0;
    bool left_out = false; /* the last field was left out */
    uint64_t wrong = 0;
    for (;; step++) {
        const char *field = data + step->offset;
        uint8_t *to = out + step->prefix_length;
        memcpy(out, step->prefix, 32);
        if (__builtin_expect(step->prefix_length > 32, 0))
            memcpy(out + 32, step->prefix + 32, sizeof step->prefix - 32);
        int32_t value;
        bool right;
        switch ((sl_isd_step_kind)step->kind) {
        case SL_ISD_INT:
            right = read_digits(field, step->shift, &value);
            goto put_int;
        case SL_ISD_SIGNED_INT:
            right = read_signed(field, step->shift, false, &value);
            goto put_int;
        case SL_ISD_MINUS_INT:
            right = read_signed(field, step->shift, true, &value);
        put_int:
            sl_bson_put_int32(to, (int32_t)((uint32_t)value * step->factor));
            wrong += !right;
            left_out = !(right & (value != step->missing));
            out = left_out ? out : to + sizeof(int32_t);
            continue;
        case SL_ISD_DOUBLE:
            right = read_digits(field, step->shift, &value);
            goto put_double;
        case SL_ISD_SIGNED_DOUBLE:
            right = read_signed(field, step->shift, false, &value);
        put_double:
            sl_bson_put_double(to, (double)value / step->divisor);
            wrong += !right;
            left_out = !(right & (value != step->missing));
            out = left_out ? out : to + sizeof(double);
            continue;
        case SL_ISD_TEXT:
        case SL_ISD_TRIMMED: {
            bool trim = step->kind == SL_ISD_TRIMMED;
            uint64_t word = read_text(field, step->shift);
            left_out = (step->nullable & (word == NINES << step->shift >> step->shift)) |
                       (step->follows & left_out & (word == '9'));
            if (careful) {
                out = left_out ? out : put_careful_text(to, field, step->width, trim);
                continue;
            }
            unsigned length = trim ? text_length(word, step->shift) : step->width;
            if (trim && length < step->width)
                word &= (UINT64_C(1) << (8 * length)) - 1;
            sl_bson_put_int32(to, (int32_t)length + 1);
            memcpy(to + 4, &word, sizeof word);
            out = left_out ? out : to + 5 + length;
            continue;
        }
        case SL_ISD_OPEN:
            open[depth++] = out;
            out = sl_bson_begin(to);
            left_out = false;
            continue;
        case SL_ISD_CLOSE: {
            uint8_t *element = open[--depth];
            uint8_t *document = element + step->prefix_length;
            bool empty = out == sl_bson_begin(document);
            uint8_t *end = sl_bson_end(document, out);
            out = empty ? element : end;
            left_out = false;
            continue;
        }
        case SL_ISD_END:
            *malformed += wrong;
            return out;
        }
        __builtin_unreachable();
    }
}

/* -- groups -- */

INLINE uint8_t *put_groups(const sl_plan *plan, const sl_isd_walk *walk, uint8_t *out, bool careful,
                           uint64_t *malformed) {
    const uint32_t count = walk->group_count;
    uint64_t done[SL_ISD_FAMILY_WORDS] = {0};
    for (uint32_t i = 0; i < count;) {
        const sl_isd_group_plan *group = &plan->groups[walk->groups[i].row];
        const unsigned family = group->family;
        uint8_t *document = sl_bson_put_prefix(out, group->prefix, group->prefix_length);
        if (!group->repeats) {
            const char *data = walk->record + walk->groups[i++].at + 3;
            uint8_t *first = sl_bson_begin(document);
            uint8_t *to = run(group->steps, data, first, careful, malformed);
            out = to == first ? out : sl_bson_end(document, to);
            continue;
        }
        if (__builtin_expect(walk->interrupted, 0)) {
            uint64_t bit = UINT64_C(1) << (family & 63);
            if (done[family >> 6] & bit) {
                i++;
                continue;
            }
            done[family >> 6] |= bit;
        }
        uint8_t *to = sl_bson_begin(document);
        uint32_t index = 0, next = i;
        for (; next < count; next++) {
            const sl_isd_group_plan *instance = &plan->groups[walk->groups[next].row];
            if (instance->family != family) {
                if (__builtin_expect(walk->interrupted, 0))
                    continue;
                break;
            }
            const char *data = walk->record + walk->groups[next].at + 3;
            uint8_t *element = sl_isd_put_index(to, SL_BSON_DOCUMENT, index++);
            to = sl_bson_end(
                element, run(instance->steps, data, sl_bson_begin(element), careful, malformed));
        }
        out = sl_bson_end(document, to);
        i = walk->interrupted ? i + 1 : next;
    }
    return out;
}

INLINE uint8_t *put_sections(const sl_plan *plan, const sl_isd_walk *walk, uint8_t *out) {
    if (walk->group_count == 0)
        return out;
    uint8_t *array = sl_isd_put_key(out, &plan->keys[SL_ISD_KEY_SECTIONS]);
    uint8_t *to = sl_bson_begin(array);
    for (uint32_t i = 0; i < walk->group_count; i++) {
        uint64_t id = read_text(walk->record + walk->groups[i].at, 40);
        to = sl_isd_put_index(to, SL_BSON_TEXT, i);
        sl_bson_put_int32(to, 4);
        memcpy(to + 4, &id, sizeof id);
        to += 8;
    }
    return sl_bson_end(array, to);
}

/* -- remarks, element quality, original observations, unparsed bytes -- */

/* Writes the remarks. Those of the same type are joined by line feeds, at the position of the
 * first. */
static uint8_t *put_remarks(const sl_plan *plan, const sl_isd_walk *walk, bool careful,
                            uint8_t *out) {
    const sl_isd_span span = walk->tail.remarks;
    if (span.from == span.to)
        return out;
    uint8_t *document = sl_isd_put_key(out, &plan->keys[SL_ISD_KEY_REMARKS]);
    uint8_t *to = sl_bson_begin(document);
    unsigned done = 0;
    for (size_t at = span.from; at < span.to;) {
        const char *head = walk->record + at;
        int type = isd_remark_type(head);
        at += SL_ISD_REMARK_HEAD + (size_t)isd_remark_length(head + 3);
        if (done & 1u << type)
            continue;
        done |= 1u << type;
        uint8_t *value = sl_isd_put_key(to, &plan->keys[SL_ISD_KEY_SYN + type]);
        to = sl_isd_put_string(value, head + SL_ISD_REMARK_HEAD,
                               (size_t)isd_remark_length(head + 3), careful);
        for (size_t more = at; more < span.to;) {
            head = walk->record + more;
            size_t length = (size_t)isd_remark_length(head + 3);
            more += SL_ISD_REMARK_HEAD + length;
            if (isd_remark_type(head) != type)
                continue;
            to[-1] = '\n'; /* replaces the NUL */
            to = sl_isd_put_latin1(to, head + SL_ISD_REMARK_HEAD, length);
            *to++ = 0;
            sl_bson_put_int32(value, (int32_t)(to - value - 4));
        }
    }
    return sl_bson_end(document, to);
}

/* The length of a text without trailing blanks. Control characters are stored as blanks. */
static size_t shown_length(const char *text, size_t length) {
    while (length > 0 && ((uint8_t)text[length - 1] <= ' ' || text[length - 1] == 0x7F))
        length--;
    return length;
}

/* Are an entry's value, reason and parameter plausible? If the value was not padded, the bytes
 * after it are shifted to the left. */
static bool is_sane(const char *entry) {
    for (size_t i = 3; i < 9; i++) {
        if (entry[i] != ' ' && entry[i] != '+' && entry[i] != '-' &&
            (entry[i] < '0' || entry[i] > '9'))
            return false;
    }
    bool reason = (entry[9] >= '0' && entry[9] <= '9') || (entry[9] >= 'A' && entry[9] <= 'R');
    bool letter = (entry[10] >= 'A' && entry[10] <= 'Z') || (entry[10] >= 'a' && entry[10] <= 'z');
    return reason && (letter || sl_isd_trimmed(entry + 10, 6) == 0);
}

static uint8_t *put_qualities(const sl_plan *plan, const sl_isd_walk *walk, bool careful,
                              uint8_t *out) {
    const sl_isd_span span = walk->tail.qualities;
    const sl_isd_prefix *keys = plan->keys;
    if (span.from == span.to)
        return out;
    uint8_t *array = sl_isd_put_key(out, &keys[SL_ISD_KEY_ELEMENT_QUALITY]);
    uint8_t *to = sl_bson_begin(array);
    uint32_t index = 0;
    for (size_t at = span.from; at < span.to; at += SL_ISD_QUALITY_BYTES) {
        const char *entry = walk->record + at;
        uint8_t *document = sl_isd_put_index(to, SL_BSON_DOCUMENT, index++);
        to = sl_isd_put_element(sl_bson_begin(document), &keys[SL_ISD_KEY_QUALITY_ID], entry, 3,
                                careful);
        if (is_sane(entry)) {
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_VALUE], entry + 3,
                                    shown_length(entry + 3, 6), careful);
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_REASON], entry + 9, 1, careful);
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_PARAMETER], entry + 10,
                                    shown_length(entry + 10, 6), careful);
        } else {
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_RAW], entry + 3, 13, careful);
        }
        to = sl_bson_end(document, to);
    }
    return sl_bson_end(array, to);
}

static uint8_t *put_originals(const sl_plan *plan, const sl_isd_walk *walk, bool careful,
                              uint8_t *out) {
    const sl_isd_span span = walk->tail.originals;
    const sl_isd_prefix *keys = plan->keys;
    if (span.from == span.to)
        return out;
    uint8_t *array = sl_isd_put_key(out, &keys[SL_ISD_KEY_ORIGINAL]);
    uint8_t *to = sl_bson_begin(array);
    uint32_t index = 0;
    for (size_t at = span.from; at < span.to; at += SL_ISD_ORIGINAL_BYTES) {
        const char *entry = walk->record + at;
        uint8_t *document = sl_isd_put_index(to, SL_BSON_DOCUMENT, index++);
        to = sl_bson_begin(document);
        to = sl_isd_put_element(to, &keys[SL_ISD_KEY_ORIGINAL_ELEMENT], entry, 1, careful);
        to = sl_isd_put_element(to, &keys[SL_ISD_KEY_ORIGINAL_FLAGS], entry + 1, 4, careful);
        to = sl_isd_put_element(to, &keys[SL_ISD_KEY_ORIGINAL_VALUE], entry + 5, 6, careful);
        to = sl_bson_end(document, to);
    }
    return sl_bson_end(array, to);
}

/* Writes the lost bytes and the surplus bytes as one text. */
static uint8_t *put_unparsed(const sl_plan *plan, const sl_isd_walk *walk, uint8_t *out) {
    const sl_isd_span lost = walk->lost, surplus = walk->surplus;
    uint8_t *value = sl_isd_put_key(out, &plan->keys[SL_ISD_KEY_UNPARSED]);
    uint8_t *to =
        sl_isd_put_latin1(value + 4, walk->record + lost.from, (size_t)(lost.to - lost.from));
    if (lost.from < lost.to && surplus.from < surplus.to)
        *to++ = '\n';
    to = sl_isd_put_latin1(to, walk->record + surplus.from, (size_t)(surplus.to - surplus.from));
    *to++ = 0;
    sl_bson_put_int32(value, (int32_t)(to - value - 4));
    return to;
}

static __attribute__((noinline)) uint8_t *put_tail(const sl_plan *plan, const sl_isd_walk *walk,
                                                   bool careful, uint8_t *out) {
    out = put_remarks(plan, walk, careful, out);
    out = put_qualities(plan, walk, careful, out);
    out = put_originals(plan, walk, careful, out);
    if (sl_isd_has_unparsed(walk))
        out = put_unparsed(plan, walk, out);
    return out;
}

/* -- the record -- */

/* Writes {type: "Point", coordinates: [longitude, latitude]} if both are known. */
INLINE uint8_t *put_position(const sl_plan *plan, const char *record, const double *position,
                             uint8_t *out, uint64_t *malformed) {
    static const char point[] = "\x3D\0\0\0\2type\0\6\0\0\0Point\0\4coordinates\0\x1B\0\0\0";
    int32_t latitude, longitude;
    bool right = read_signed(record + 28, 64 - 8 * 5, false, &latitude);
    bool both = read_signed(record + 34, 64 - 8 * 6, false, &longitude);
    *malformed += (uint64_t)!right + !both;
    both = both & right & (latitude >= -90000) & (latitude <= 90000) & (longitude >= -180000) &
           (longitude <= 180000);
    uint8_t *to = sl_isd_put_key(out, &plan->keys[SL_ISD_KEY_POSITION]);
    memcpy(to, point, sizeof point - 1);
    to = sl_isd_put_index(to + sizeof point - 1, SL_BSON_DOUBLE, 0);
    to = sl_bson_put_double(to, position ? position[0] : (double)longitude / 1000.0);
    to = sl_isd_put_index(to, SL_BSON_DOUBLE, 1);
    to = sl_bson_put_double(to, position ? position[1] : (double)latitude / 1000.0);
    *to++ = 0; /* ends the coordinates */
    *to++ = 0;
    return both ? to : out;
}

/* Writes st, ts, usaf and wban. */
INLINE uint8_t *put_station(const sl_plan *plan, const char *record, int64_t milliseconds,
                            uint8_t *out, bool careful) {
    const char *usaf = record + 4, *wban = record + 10;
    bool has_usaf = memcmp(usaf, "999999", 6) != 0;
    bool has_wban = memcmp(wban, "99999", 5) != 0;
    const char *name = has_usaf ? usaf : has_wban ? wban : record + 28; /* 28: the coordinates */
    size_t length = has_usaf ? 6 : has_wban ? 5 : 13;
    char st[1 + 13 + SL_BSON_SLACK] = {has_usaf ? 'u' : has_wban ? 'w' : 'x'};
    memcpy(st + 1, name, 13);
    out = sl_isd_put_element(out, &plan->keys[SL_ISD_KEY_ST], st, 1 + length, careful);
    out = sl_bson_put_int64(sl_isd_put_key(out, &plan->keys[SL_ISD_KEY_TS]), milliseconds);
    if (has_usaf)
        out = sl_isd_put_element(out, &plan->keys[SL_ISD_KEY_USAF], usaf, 6, careful);
    if (has_wban)
        out = sl_isd_put_element(out, &plan->keys[SL_ISD_KEY_WBAN], wban, 5, careful);
    return out;
}

/* Replaces the integer of the first element by a double; returns the new end. */
static __attribute__((noinline)) uint8_t *put_fraction(uint8_t *element, uint8_t *end,
                                                       double value) {
    uint8_t *at = element + 1 + strlen((char *)element + 1) + 1;
    memmove(at + sizeof value, at + sizeof(int32_t), (size_t)(end - at) - sizeof(int32_t));
    *element = SL_BSON_DOUBLE;
    sl_bson_put_double(at, value);
    return end + sizeof value - sizeof(int32_t);
}

INLINE uint8_t *put_document(const sl_plan *plan, const sl_isd_walk *walk, int64_t id,
                             int64_t milliseconds, bool careful, uint8_t *start,
                             uint64_t *malformed) {
    const char *record = walk->record;
    uint8_t *out = sl_bson_begin_with_id(start, id);
    out = put_station(plan, record, milliseconds, out, careful);
    out = put_position(plan, record, walk->position, out, malformed);
    uint8_t *const elevation = out; /* the first of the fixed fields */
    out = run(plan->fixed, record, out, careful, malformed);
    if (__builtin_expect(walk->elevation > 0 || walk->elevation < 0, 0))
        out = put_fraction(elevation, out, walk->elevation);
    out = put_sections(plan, walk, out);
    out = put_groups(plan, walk, out, careful, malformed);
    out = put_tail(plan, walk, careful, out);
    return sl_bson_end(start, out);
}

static __attribute__((noinline)) uint8_t *put_carefully(const sl_plan *plan,
                                                        const sl_isd_walk *walk, int64_t id,
                                                        int64_t milliseconds, uint8_t *start,
                                                        uint64_t *malformed) {
    return put_document(plan, walk, id, milliseconds, true, start, malformed);
}

uint8_t *sl_isd_put_document(const sl_plan *plan, const sl_isd_walk *walk, int64_t id,
                             int64_t milliseconds, bool careful, uint8_t *start,
                             uint64_t *malformed) {
    if (__builtin_expect(careful, 0))
        return put_carefully(plan, walk, id, milliseconds, start, malformed);
    return put_document(plan, walk, id, milliseconds, false, start, malformed);
}

/* ---- lines, for all ISD formats ---- */

bool sl_isd_parse_lines(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                        sl_sink *sink, sl_parse_counts *counts, sl_isd_take *take) {
    sl_isd_parser p = {.plan = plan, .dialect = dialect, .block = block, .sink = sink};
    const char *at = block->text.bytes, *stop = at + block->text.length;
    bool go_on = true;
    while (at < stop && go_on) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        if (!end)
            end = stop;
        p.counts.lines++;
        go_on = take(&p, at, (size_t)(end - at));
        at = end + 1;
    }
    p.counts.records = p.counts.documents + p.counts.rejects;
    sl_parse_counts_add(counts, &p.counts);
    return go_on;
}

static uint64_t offset_of(const sl_isd_parser *parser, const char *line) {
    return parser->block->offset + (uint64_t)(line - parser->block->text.bytes);
}

int64_t sl_isd_line_id(const sl_isd_parser *parser, const char *line) {
    return parser->block->id_base + (int64_t)(offset_of(parser, line) & (SL_BLOCK_BYTES - 1));
}

static sl_reject reject_of(const sl_isd_parser *parser, const char *line, size_t length) {
    return (sl_reject){.offset = offset_of(parser, line),
                       .line = (uint32_t)(parser->counts.lines - 1),
                       .record = {line, length}};
}

static void pass_reject(sl_isd_parser *parser, const sl_reject *reject) {
    parser->counts.rejects += !reject->misread;
    parser->sink->reject(parser->sink, reject);
}

void sl_isd_refuse(sl_isd_parser *parser, const char *line, size_t length, const char *column,
                   const char *reason, ...) {
    if (sl_isd_trimmed(line, length) == 0) {
        parser->counts.blank_lines++;
        return;
    }
    sl_reject reject = reject_of(parser, line, length);
    va_list values;
    reject.column = column;
    va_start(values, reason);
    vsnprintf(reject.reason, sizeof reject.reason, reason, values);
    va_end(values);
    pass_reject(parser, &reject);
}

/* Changes the document at the sink's cursor by the block's key fields. False: rejected. */
static bool apply_keys(sl_isd_parser *parser, const char *line, size_t length, uint8_t **end) {
    sl_reject reject = reject_of(parser, line, length);
    if (sl_key_fields_apply(parser->block->keys, false, parser->sink->cursor, end, &reject))
        return true;
    pass_reject(parser, &reject);
    return false;
}

bool sl_isd_keep(sl_isd_parser *parser, const char *line, size_t length, uint8_t *end) {
    sl_sink *sink = parser->sink;
    if (parser->block->keys && !apply_keys(parser, line, length, &end))
        return false;
    if (sink->offsets)
        sink->offsets[sink->documents] = offset_of(parser, line);
    sink->cursor = end;
    sink->documents++;
    parser->counts.documents++;
    return true;
}

bool sl_isd_refuse_open_quote(sl_isd_parser *parser, const char *line, size_t length, size_t open) {
    sl_reject reject = reject_of(parser, line, length);
    char quoted[SL_QUOTED_ROOM];
    reject.misread = true;
    snprintf(reject.reason, sizeof reject.reason, SL_LINE_CONTINUES,
             sl_quoted((sl_text){line + open, length - open}, quoted));
    pass_reject(parser, &reject);
    return false;
}

bool sl_isd_sniff_lines(sl_text head, bool whole, bool (*looks_like_record)(sl_text line),
                        const char *expected, sl_text *record, sl_error *error) {
    sl_text first = {"", 0};
    size_t lines = 0, records = 0;
    for (size_t at = 0; at < head.length && lines < SNIFF_LINES;) {
        const char *end = memchr(head.bytes + at, '\n', head.length - at);
        if (!end && !whole && lines > 0)
            break; /* the line may be incomplete */
        sl_text line = {head.bytes + at, end ? (size_t)(end - head.bytes) - at : head.length - at};
        at += line.length + 1;
        if (sl_isd_trimmed(line.bytes, line.length) == 0)
            continue;
        if (lines++ == 0)
            first = line;
        if (looks_like_record(line) && records++ == 0)
            *record = line;
    }
    if (records > 0 && 2 * records >= lines)
        return true;
    char shown[100];
    sl_text_printable(first, shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_SOURCE, "its first line is `%s`; expected %s", shown,
                        expected);
}

/* ---- records ---- */

static inline bool record_digits(const char *digits, size_t count, uint32_t *value) {
    uint64_t word = (sl_load_8(digits) ^ 0x3030303030303030u) << (64 - 8 * count);
    *value = (uint32_t)sl_swar_number(word);
    return sl_swar_digits(word);
}

/* Reads date and time from byte 15 on; 2400 is 0000 of the next day. */
static inline bool read_time(const char *record, int64_t *milliseconds) {
    uint32_t date, time;
    int64_t days;
    if (unlikely(!record_digits(record + 15, 8, &date) || !record_digits(record + 23, 4, &time) ||
                 !sl_civil_days(date / 10000, date / 100 % 100, date % 100, &days)))
        return false;
    uint32_t minutes = time / 100 * 60 + time % 100;
    *milliseconds = days * SL_DAY_MS + (int64_t)minutes * 60000;
    return time % 100 < 60 && minutes <= 24 * 60;
}

bool sl_isd_is_plain(const char *record, size_t length) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t odd = 0;
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = sl_load_8(record + (at + 8 <= length ? at : length - 8));
        odd |= word | (word - 0x20 * ones) | (word + ones);
    }
    return (odd & 0x80 * ones) == 0;
}

/* Are the columns of a record of the wrong length still at their positions? */
static bool columns_in_place(const char *record, size_t end) {
    static const uint8_t signs[] = {28, 34, 46, 87, 93};
    static const char *const tags[] = {"ADD", "REM", "EQD", "QNN"};
    for (size_t i = 0; i < sizeof signs; i++) {
        if (record[signs[i]] != '+' && record[signs[i]] != '-')
            return false;
    }
    size_t rest = end - SL_ISD_FIXED_BYTES;
    bool found = rest == 0;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        found |= memcmp(record + SL_ISD_FIXED_BYTES, tags[i], rest < 3 ? rest : 3) == 0;
    return found;
}

static void refuse_length(sl_isd_parser *p, const char *record, size_t length) {
    if (length < SL_ISD_FIXED_BYTES)
        sl_isd_refuse(p, record, length, NULL, "%zu bytes are too few: a record has at least %u",
                      length, SL_ISD_FIXED_BYTES);
    else
        sl_isd_refuse(p, record, length, NULL, "%zu bytes are too many: a record has at most %u",
                      length, SL_ISD_RECORD_BYTES_MAX);
}

static bool take_line(sl_isd_parser *p, const char *record, size_t length) {
    uint32_t variable;
    size_t declared = SIZE_MAX; /* the record's length according to its first four digits */
    if (likely(length >= 4) && likely(record_digits(record, 4, &variable)))
        declared = SL_ISD_FIXED_BYTES + variable;
    if (length != declared && length > 0 && record[length - 1] == '\r')
        length--;
    if (unlikely(length < SL_ISD_FIXED_BYTES || length > SL_ISD_RECORD_BYTES_MAX)) {
        refuse_length(p, record, length);
        return true;
    }
    int64_t milliseconds;
    if (unlikely(!read_time(record, &milliseconds))) {
        char quoted[SL_QUOTED_ROOM];
        sl_isd_refuse(p, record, length, "date and time",
                      "%s is not a date YYYYMMDD with a time HHMM",
                      sl_quoted((sl_text){record + 15, 12}, quoted));
        return true;
    }
    size_t end = length < declared ? length : declared;
    if (unlikely(length != declared)) {
        const sl_text text = p->block->text;
        /* Files of only the fixed columns exist. */
        if (length > SL_ISD_FIXED_BYTES && length < declared && declared != SIZE_MAX &&
            record + length == text.bytes + text.length) {
            sl_isd_refuse(p, record, length, NULL,
                          "the text ends after %zu of its %zu bytes, without a line end: the file "
                          "is truncated; fetch it again",
                          length, declared);
            return true;
        }
        if (!columns_in_place(record, end)) {
            sl_isd_refuse(
                p, record, length, NULL,
                "the record's length differs from the declared one, and its columns are shifted");
            return true;
        }
        p->counts.length_mismatches++;
    }
    sl_isd_walk walk;
    sl_isd_walk_record(p->plan, record, end, length, &walk);
    sl_sink *sink = p->sink;
    if (unlikely(!sl_sink_make_room(sink, walk.bound)))
        return false;
    bool careful = !sl_isd_is_plain(record, length);
    uint8_t *to = sl_isd_put_document(p->plan, &walk, sl_isd_line_id(p, record), milliseconds,
                                      careful, sink->cursor, &p->counts.malformed_fields);
    if (unlikely(!sl_isd_keep(p, record, length, to)))
        return true;
    p->counts.transcoded += careful;
    p->counts.unknown_groups += sl_isd_has_unparsed(&walk);
    return true;
}

static bool parse(const sl_plan *plan, const sl_dialect *dialect, const sl_block *block,
                  sl_sink *sink, sl_parse_counts *counts) {
    return sl_isd_parse_lines(plan, dialect, block, sink, counts, take_line);
}

/* ---- sources ---- */

static bool looks_like_record(sl_text line) {
    int64_t milliseconds;
    uint32_t number;
    return line.length >= SL_ISD_FIXED_BYTES && line.length <= SL_ISD_RECORD_BYTES_MAX + 1 &&
           record_digits(line.bytes, 4, &number) && read_time(line.bytes, &milliseconds) &&
           columns_in_place(line.bytes, SL_ISD_FIXED_BYTES) &&
           record_digits(line.bytes + 29, 5, &number) && record_digits(line.bytes + 35, 6, &number);
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole, sl_dialect **out,
                  sl_error *error) {
    (void)name;
    sl_text record;
    if (!sl_isd_plan_fits(plan, error))
        return false;
    if (!sl_isd_sniff_lines(head, whole, looks_like_record,
                            "105 bytes of fixed columns with date and time at byte 16", &record,
                            error))
        return sl_error_prefix(error, "this is not ISD");
    isd_dialect *dialect = calloc(1, sizeof *dialect);
    if (!dialect)
        return sl_error_memory(error, "looking at a source");
    sl_text_printable((sl_text){record.bytes + 4, 6}, dialect->usaf, sizeof dialect->usaf);
    sl_text_printable((sl_text){record.bytes + 10, 5}, dialect->wban, sizeof dialect->wban);
    *out = (sl_dialect *)dialect;
    return true;
}

static char *describe(const sl_dialect *dialect, char *out, size_t room) {
    const isd_dialect *own = (const isd_dialect *)dialect;
    snprintf(out, room, "weather observations, packed ASCII; the first is of station %s-%s",
             own->usaf, own->wban);
    return out;
}

const sl_format sl_format_isd = {
    .name = "isd",
    .summary = "weather observations of NOAA's Integrated Surface Data, all groups",
    .kind = "weather observations",
    SL_ISD_FUNCTIONS,
};
