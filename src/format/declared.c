/* SPDX-License-Identifier: Apache-2.0 */
/* Types that --types declares by name; see declared.h. */
#include "declared.h"
#include "column_types.h"
#include "convert.h"
#include "delimited.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 100u
#define MARGIN                                                                                     \
    (64 + (ptrdiff_t)DEPTH_MAX) /* beyond a value: it may grow, and each level ends with a byte */

/* ---- reading ---- */

static bool refuse(const char *item, const char *why, sl_error *error) {
    char shown[80];
    sl_text_printable(sl_text_of(item), shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_USAGE, "--types: %s: %s", shown, why);
}

bool sl_declaration_write(const char *before, const char *name, const char *words, sl_type type,
                          char *out, size_t room) {
    char shown[256], repaired[256];
    if (strlen(name) < sizeof repaired) {
        sl_name_put(repaired, name);
        name = repaired;
    }
    const int length = snprintf(out, room, "%s%s=%s", before, name, words);
    sl_text_printable(sl_text_of(name), shown, sizeof shown);
    if ((size_t)length >= room || strpbrk(name, ",=") || strcmp(name, shown) != 0)
        *out = '\0';
    for (char *at = *out ? strchr(out + length - strlen(words), ' ') : NULL; at;
         at = sl_column_types[type].has_words ? strchr(at, ' ') : NULL)
        *at = ':';
    return *out;
}

/* Reads what stands behind the colon. */
static bool read_details(char *details, const char *item, sl_schema_column *column,
                         sl_error *error) {
    const sl_column_type *type = &sl_column_types[column->type];
    if (type->has_words) {
        char *no = details ? strchr(details, ':') : NULL;
        if (!no)
            return refuse(item, "a flag has the words for true and false: flag:Y:N", error);
        *no = '\0';
        column->yes = details;
        column->no = no + 1;
        return true;
    }
    if (!details)
        return true;
    column->format = details;
    return (type->has_format && sl_column_format_valid(column)) ||
           refuse(item, "this is no format of the type: date:%d.%m.%Y, double:1.234,5, array:int",
                  error);
}

static bool read_item(char *item, sl_schema_column *column, sl_error *error) {
    char *type = strrchr(item, '='), *at;
    for (at = strchr(item, '='); at && !sl_column_type_named(at + 1, &column->type);)
        at = strchr(at + 1, '='); /* a name may have a = */
    type = at ? at : type;
    if (!type || type == item)
        return refuse(item, "expected NAME=TYPE", error);
    char *details = strchr(type + 1, ':');
    if (details)
        *details++ = '\0';
    *type = '\0';
    *column = (sl_schema_column){
        .name = item, .short_name = item, .minimum = INT64_MIN, .maximum = INT64_MAX};
    if (!sl_column_type_named(type + 1, &column->type)) {
        char words[400];
        return refuse(type + 1, sl_column_type_list(words, sizeof words), error);
    }
    if (!sl_column_types[column->type].any_text)
        column->missing = sl_missing_words_of(column->type);
    if (sl_column_types[column->type].axis != SL_AXIS_NONE)
        return refuse(item, "coordinates are declared in a schema", error);
    return read_details(details, item, column, error);
}

/* The end of the item: the comma before the next NAME=, or the end of the text. */
static char *item_end(char *at) {
    for (char *comma = strchr(at, ','); comma; comma = strchr(comma + 1, ',')) {
        const char *next = strchr(comma + 1, ','), *equals = strchr(comma + 1, '=');
        if (equals && (!next || equals < next))
            return comma;
    }
    return at + strlen(at);
}

bool sl_declared_create(const char *text, sl_declared **out, sl_error *error) {
    *out = NULL;
    if (!text)
        return true;
    sl_declared *d = calloc(1, sizeof *d);
    if (d)
        d->memory = strdup(text);
    if (d)
        d->found = calloc(SL_DECLARED_MAX, sizeof *d->found);
    if (!d || !d->memory || !d->found) {
        sl_declared_destroy(d);
        return sl_error_memory(error, "reading --types");
    }
    bool ok = true;
    for (char *at = d->memory, *end; ok && *at; at = end) {
        end = item_end(at);
        if (*end)
            *end++ = '\0';
        ok = d->count < SL_DECLARED_MAX || refuse(at, "at most 64 types can be declared", error);
        ok = ok && read_item(at, &d->columns[d->count], error);
        d->count += ok;
    }
    if (ok)
        *out = d;
    else
        sl_declared_destroy(d);
    return ok;
}

void sl_declared_destroy(sl_declared *declared) {
    if (declared) {
        free(declared->memory);
        free(declared->found);
    }
    free(declared);
}

bool sl_declared_apply(const sl_declared *declared, sl_dialect *d, sl_error *error) {
    for (size_t k = 0; declared && k < declared->count; k++) {
        const size_t i = sl_delimited_column_named(d, declared->columns[k].name, "types", error);
        if (i == SIZE_MAX && error->code)
            return false;
        if (i == SIZE_MAX) {
            char shown[80];
            sl_text_printable(sl_text_of(declared->columns[k].name), shown, sizeof shown);
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "--types names the column %s, which the text does not have (load "
                                "files that lack it by another command)",
                                shown);
        }
        sl_schema_column *into = &d->columns[i].schema;
        const char *name = into->name, *short_name = into->short_name;
        *into = declared->columns[k];
        into->name = name;
        into->short_name = short_name;
        into->declared = true;
        if (d->notation && !d->notation->words)
            into->missing.count = 0;
    }
    return true;
}

/* ---- documents ---- */

/* What a name demands of the values of a document or array. */
typedef struct paths {
    const char *rest[SL_DECLARED_MAX]; /* of each name, from this document on; NULL: none */
} paths;

typedef struct conversion {
    const sl_declared *declared;
    sl_scratch *scratch;
    uint8_t *limit;
    sl_reject *reject;
    sl_declared_status status;
} conversion;

/* Converts a text. NULL: it does not fit, or there is no room. */
static uint8_t *convert(conversion *c, const sl_schema_column *column, const uint8_t *value,
                        uint8_t *type, uint8_t *to) {
    static const sl_dialect plain = {0};
    bool transcoded = false;
    const size_t length = sl_bson_length(value) - 1;
    const sl_value field = {.dialect = &plain,
                            .schema = column,
                            .field = {(const char *)value + 4, length},
                            .type = type,
                            .scratch = c->scratch,
                            .limit = c->limit,
                            .transcoded = &transcoded};
    c->scratch->no_room = false;
    *type = (uint8_t)sl_column_types[column->type].bson;
    uint8_t *end = c->limit - to < (ptrdiff_t)length + MARGIN
                       ? NULL
                       : sl_column_types[column->type].put(&field, to);
    if (end)
        return end;
    c->status = c->scratch->no_room || c->limit - to < (ptrdiff_t)length + MARGIN
                    ? SL_DECLARED_NO_ROOM
                    : SL_DECLARED_UNFIT;
    char shown[SL_QUOTED_ROOM], name[SL_TYPE_ROOM];
    c->reject->column = column->name;
    snprintf(c->reject->reason, sizeof c->reject->reason,
             "%s does not fit the type %s, which --types declares for %s",
             sl_quoted(field.field, shown), sl_column_type_write(column, name), column->name);
    return NULL;
}

/* The rests of the names behind a key; returns the column that ends with it, or NULL. */
static const sl_schema_column *step(const conversion *c, const paths *in, const char *key,
                                    paths *below, bool *any) {
    const size_t length = strlen(key);
    const sl_schema_column *column = NULL;
    *any = false;
    for (size_t i = 0; i < c->declared->count; i++) {
        const char *rest = in->rest[i];
        below->rest[i] = NULL;
        if (!rest || strncmp(rest, key, length) != 0)
            continue;
        if (rest[length] == '\0') {
            column = &c->declared->columns[i];
            if (!atomic_load_explicit(&c->declared->found[i], memory_order_relaxed))
                atomic_store_explicit(&c->declared->found[i], true, memory_order_relaxed);
        } else if (rest[length] == '.') {
            below->rest[i] = rest + length + 1;
        }
        *any = *any || below->rest[i];
    }
    return column;
}

/* Writes a document or array. `each`: the column of the texts of an array. */
static uint8_t *put_document(conversion *c, const uint8_t *from, const paths *in,
                             const sl_schema_column *each, bool array, uint8_t *to,
                             unsigned depth) {
    uint8_t *const start = to;
    const uint8_t *at = from + 4, *const stop = from + sl_bson_length(from) - 1;
    to += 4;
    while (at < stop && to) {
        const uint8_t type = *at;
        const char *key = (const char *)at + 1;
        const uint8_t *value = sl_bson_after_text(at + 1);
        const size_t bytes = (size_t)(sl_bson_value_end(type, value) - value);
        paths below = *in;
        bool any = array;
        const sl_schema_column *column = array ? each : step(c, in, key, &below, &any);
        if (c->limit - to < (value - at) + (ptrdiff_t)bytes + MARGIN) {
            c->status = SL_DECLARED_NO_ROOM;
            return NULL;
        }
        uint8_t *const element = to;
        memcpy(to, at, (size_t)(value - at));
        to += value - at;
        if (type == SL_BSON_TEXT && column) {
            to = convert(c, column, value, element, to);
        } else if ((type == SL_BSON_DOCUMENT || type == SL_BSON_ARRAY) && (any || column) &&
                   depth < DEPTH_MAX) {
            to = put_document(c, value, &below, type == SL_BSON_ARRAY ? column : NULL,
                              type == SL_BSON_ARRAY, to, depth + 1);
        } else {
            memcpy(to, value, bytes);
            to += bytes;
        }
        at = value + bytes;
    }
    return to ? sl_bson_end(start, to) : NULL;
}

sl_declared_status sl_declared_convert(const sl_declared *declared, sl_scratch *scratch,
                                       const uint8_t *document, uint8_t *to, uint8_t *limit,
                                       uint8_t **end, sl_reject *reject) {
    conversion c = {.declared = declared, .scratch = scratch, .limit = limit, .reject = reject};
    paths all = {{NULL}};
    for (size_t i = 0; i < declared->count; i++)
        all.rest[i] = declared->columns[i].name;
    if (limit - to < MARGIN)
        return SL_DECLARED_NO_ROOM;
    *end = put_document(&c, document, &all, NULL, false, to, 0);
    return c.status;
}
