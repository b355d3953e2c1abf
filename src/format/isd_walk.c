/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a record's sections: ADD, REM, EQD, QNN, in this order, each optional.
 *
 * The parts of a section have no separators: the position of a part follows from the length of the
 * part before it. Tags are not searched for in the text, since weather reports contain all of them
 * by chance. When a part cannot be parsed, the bytes up to the first later tag from which a walk
 * ends exactly at the record's end are lost; without such a tag, all bytes up to the record's end
 * are lost. */
#include "isd_plan.h"

typedef enum section { SECTION_ADD, SECTION_REM, SECTION_EQD, SECTION_QNN, SECTIONS } section;

static bool has_tag(const char *record, size_t at, size_t end, section tag) {
    static const char tags[SECTIONS][4] = {"ADD", "REM", "EQD", "QNN"};
    return end - at >= 3 && memcmp(record + at, tags[tag], 3) == 0;
}

int sl_isd_remark_type(const char *bytes) {
    static const char types[6][4] = {"SYN", "AWY", "MET", "SOD", "SOM", "HPD"};
    for (int i = 0; i < 6; i++) {
        if (memcmp(bytes, types[i], 3) == 0)
            return i;
    }
    return -1;
}

int sl_isd_remark_length(const char *digits) {
    if (!sl_is_digit(digits[0]) || !sl_is_digit(digits[1]) || !sl_is_digit(digits[2]))
        return -1;
    return (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
}

/* Each pass_ function parses a section from `at`, the offset after its tag. Returns the offset of
 * the first byte that it cannot parse. */

static size_t pass_remarks(const char *record, size_t at, size_t end) {
    while (end - at >= SL_ISD_REMARK_HEAD && sl_isd_remark_type(record + at) >= 0) {
        int length = sl_isd_remark_length(record + at + 3);
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
