/* SPDX-License-Identifier: Apache-2.0 */
/* $date and $timestamp of Extended JSON. */
#include "extjson_types.h"

#include <bson/bson.h>

/* The integer at `p`, which is not in quotes. `scratch`: room for 8 bytes. */
static const char *take_integer(sl_extjson *x, const char *p, uint8_t *scratch, int64_t *value,
                                const char *expected) {
    uint8_t type = 0, *end = scratch;
    const char *at = p;
    if (*p != '-' && (*p < '0' || *p > '9'))
        return sl_extjson_expected(x, p, expected);
    if (!(p = sl_extjson_number(x, p, &type, &end)))
        return NULL;
    int32_t small;
    memcpy(&small, scratch, sizeof small);
    memcpy(value, scratch, sizeof *value);
    if (type == SL_BSON_INT32)
        *value = small;
    return type == SL_BSON_DOUBLE ? extjson_fail(x, at, expected) : p;
}

const char *sl_extjson_take_date(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                 uint32_t depth) {
    static const char reason[] = "$date is a text such as 2015-12-31T23:59:59.999Z with a valid "
                                 "date and an offset from UTC, a number of milliseconds, or "
                                 "{\"$numberLong\": ...}";
    sl_text text;
    int64_t ms;
    const char *at = p;
    (void)depth;
    if (*p == '"') {
        if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, reason)))
            return NULL;
        if (!sl_extjson_date_of(text, &ms))
            return extjson_not_a(x, at, reason, text);
    } else if (*p == '{') {
        sl_text key;
        if (!(p = sl_extjson_take_key(x, p + 1, true, *to + EXTJSON_SCRATCH, &key)))
            return NULL;
        if (!sl_text_equal(key, sl_text_of("$numberLong")))
            return extjson_not_a(x, at, reason, key);
        uint8_t inner;
        uint8_t *value = *to + EXTJSON_SCRATCH;
        if (!(p = sl_extjson_take_int64(x, p, &inner, &value, 0)))
            return NULL;
        memcpy(&ms, *to + EXTJSON_SCRATCH, sizeof ms);
    } else if (!(p = take_integer(x, p, *to + EXTJSON_SCRATCH, &ms, reason))) {
        return NULL;
    }
    *type = BSON_TYPE_DATE_TIME;
    *to = sl_bson_put_int64(*to, ms);
    return sl_extjson_take_end(x, p);
}

const char *sl_extjson_take_timestamp(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                      uint32_t depth) {
    static const char reason[] =
        "$timestamp is {\"t\": seconds, \"i\": number}, with integers from 0 to 4294967295";
    uint32_t values[2]; /* i, t: their order in BSON */
    bool known[2] = {false, false};
    const char *start = p, *key_before = (const char *)type + 1;
    if (!(p = sl_extjson_begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        int64_t value;
        const char *at = p;
        if (!(p = sl_extjson_take_key(x, p, i == 0, *to + EXTJSON_SCRATCH, &key)))
            return NULL;
        size_t which = key.length == 1 && *key.bytes == 't';
        if (key.length != 1 || (*key.bytes != 't' && *key.bytes != 'i') || known[which])
            return extjson_not_a(x, at, reason, key);
        at = p;
        if (!(p = take_integer(x, p, *to + EXTJSON_SCRATCH, &value, reason)))
            return NULL;
        if (value < 0 || value > UINT32_MAX)
            return extjson_fail(x, at, reason);
        known[which] = true;
        values[which] = (uint32_t)value;
    }
    if (depth == 0 && values[0] == 0 && values[1] == 0 && strcmp(key_before, "_id") != 0)
        return extjson_fail(x, start,
                            "Timestamp(0, 0): a server replaces it with the current time");
    *type = BSON_TYPE_TIMESTAMP;
    memcpy(*to, values, sizeof values);
    *to += sizeof values;
    p = sl_extjson_take_end(x, p);
    return p ? sl_extjson_take_end(x, p) : NULL;
}
