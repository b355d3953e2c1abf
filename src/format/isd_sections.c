/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the elements after a record's groups: remarks, element quality, original observations, and
 * the unparsed bytes. */
#include "isd_plan.h"

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
        if (byte < 0x80) {
            *to++ = byte < 0x20 || byte == 0x7F ? ' ' : byte;
        } else {
            *to++ = (uint8_t)(0xC0 | byte >> 6);
            *to++ = (uint8_t)(0x80 | (byte & 0x3F));
        }
    }
    return to;
}

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
                                    sl_isd_trimmed(entry + 3, 6), careful);
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_REASON], entry + 9, 1, careful);
            to = sl_isd_put_element(to, &keys[SL_ISD_KEY_QUALITY_PARAMETER], entry + 10,
                                    sl_isd_trimmed(entry + 10, 6), careful);
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

uint8_t *sl_isd_put_tail(const sl_plan *plan, const sl_isd_walk *walk, bool careful, uint8_t *out) {
    out = put_remarks(plan, walk, careful, out);
    out = put_qualities(plan, walk, careful, out);
    out = put_originals(plan, walk, careful, out);
    if (sl_isd_has_unparsed(walk))
        out = put_unparsed(plan, walk, out);
    return out;
}
