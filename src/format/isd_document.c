/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the document of a walked record.
 *
 * Most of the time is spent in the steps of a plan. They branch only on the kind of step, which is
 * predictable, since it is the same for all records with the same groups. An element is always
 * written; if it is to be left out, the write position does not move, so the next element
 * overwrites it. */
#include "isd_plan.h"

#include "convert.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- texts, indexes ---- */

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

/* ---- steps ---- */

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

/* ---- groups ---- */

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

/* ---- remarks, element quality, original observations, unparsed bytes ---- */

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
        int type = sl_isd_remark_type(head);
        at += SL_ISD_REMARK_HEAD + (size_t)sl_isd_remark_length(head + 3);
        if (done & 1u << type)
            continue;
        done |= 1u << type;
        uint8_t *value = sl_isd_put_key(to, &plan->keys[SL_ISD_KEY_SYN + type]);
        to = sl_isd_put_string(value, head + SL_ISD_REMARK_HEAD,
                               (size_t)sl_isd_remark_length(head + 3), careful);
        for (size_t more = at; more < span.to;) {
            head = walk->record + more;
            size_t length = (size_t)sl_isd_remark_length(head + 3);
            more += SL_ISD_REMARK_HEAD + length;
            if (sl_isd_remark_type(head) != type)
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

/* ---- the record ---- */

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

INLINE uint8_t *put_document(const sl_plan *plan, const sl_isd_walk *walk, int64_t id,
                             int64_t milliseconds, bool careful, uint8_t *start,
                             uint64_t *malformed) {
    const char *record = walk->record;
    uint8_t *out = sl_bson_begin_with_id(start, id);
    out = put_station(plan, record, milliseconds, out, careful);
    out = put_position(plan, record, walk->position, out, malformed);
    out = run(plan->fixed, record, out, careful, malformed);
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
