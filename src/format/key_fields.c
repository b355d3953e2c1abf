/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that identify a document; see key_fields.h. A document with the _id of its position can
 * only become shorter: the 13 bytes of that _id and the fields' keys are replaced by the shorter
 * key _id. */
#include "key_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"

#define POSITION_BYTES 13u /* of an element {_id: <int64>} */
#define DEPTH_MAX 20u

/* ---- names ---- */

static const char *last_part(const char *name) {
    const char *point = strrchr(name, '.');
    return point ? point + 1 : name;
}

static const char *check_name(sl_text name) {
    if (name.length == 0)
        return "a name is empty";
    if (name.length > 4 && memcmp(name.bytes, "_id.", 4) == 0)
        return "a part of an _id is not a separate field: name _id";
    return NULL;
}

bool sl_key_names_have(const sl_key_names *names, const char *name) {
    return sl_is_listed(name, (const char *const *)names->names, names->count);
}

const char *sl_key_names_read(const char *list, sl_key_names *names) {
    sl_key_names own = {0}, *made = names ? names : &own;
    const char *problem = NULL;
    *made = (sl_key_names){0};
    for (const char *at = list; !problem; at++) {
        size_t length = strcspn(at, ",");
        problem = check_name((sl_text){at, length});
        if (!problem && made->count == SL_KEY_FIELDS_MAX)
            problem = "there are more than 16 names";
        if (problem)
            break;
        char *name = strndup(at, length);
        if (!name) {
            problem = "out of memory";
            break;
        }
        if (sl_key_names_have(made, name))
            problem = "a name is given twice";
        made->names[made->count++] = name;
        at += length;
        if (*at == '\0')
            break;
    }
    sl_key_names_clear(&own);
    return problem;
}

void sl_key_names_clear(sl_key_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]), free(names->given[i]);
    *names = (sl_key_names){.count = 0};
}

bool sl_key_names_rename(sl_key_names *names, size_t index, const char *key) {
    char *copy = strdup(key);
    if (!copy)
        return false;
    if (!names->given[index])
        names->given[index] = names->names[index];
    else
        free(names->names[index]);
    names->names[index] = copy;
    return true;
}

/* ---- options ---- */

/* Is `name` a field inside `other`, as a.b is inside a? */
static bool is_inside(const char *name, const char *other) {
    size_t length = strlen(name), others = strlen(other),
           common = length < others ? length : others;
    return strncmp(name, other, common) == 0 &&
           (length < others ? other[common] : name[common]) == '.';
}

/* The reason why the fields cannot be used together; NULL if they can. A value is moved once:
 * otherwise a document could become longer than the room that it has. */
static const char *contradiction(const sl_key_fields *keys) {
    if (keys->id.count > 1 && sl_key_names_have(&keys->id, "_id"))
        return "--id-field: _id cannot be one of several fields";
    for (size_t i = 0; i < keys->id.count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(last_part(keys->id.names[i]), last_part(keys->id.names[k])) == 0)
                return "--id-field: two fields would have the same key in the _id";
            if (is_inside(keys->id.names[i], keys->id.names[k]))
                return "--id-field: a field is part of another field, so its value would be in the "
                       "_id twice; name only one of them";
        }
        if (strcmp(keys->id.names[i], "_id") != 0 &&
            sl_key_names_have(&keys->match, keys->id.names[i]))
            return "--match-fields names a field that --id-field moves into the _id: match by _id";
    }
    return NULL;
}

bool sl_key_fields_create(const sl_format_options *options, sl_key_fields **result,
                          sl_error *error) {
    *result = NULL;
    if (!options->id_fields && !sl_modes[options->mode].matches)
        return true;
    sl_key_fields *keys = calloc(1, sizeof *keys);
    if (!keys)
        return sl_error_memory(error, "reading --id-field");
    keys->mode = options->mode;
    const char *problem = NULL;
    if (options->id_fields)
        problem = sl_key_names_read(options->id_fields, &keys->id);
    if (!problem && sl_modes[options->mode].matches)
        problem =
            sl_key_names_read(options->match_fields ? options->match_fields : "_id", &keys->match);
    bool ok = problem ? sl_error_set(error, SL_EXIT_USAGE, "%s", problem)
                      : sl_key_fields_check(keys, error);
    if (ok)
        *result = keys;
    else
        sl_key_fields_destroy(keys);
    return ok;
}

bool sl_key_fields_check(const sl_key_fields *keys, sl_error *error) {
    const char *problem = contradiction(keys);
    return !problem || sl_error_set(error, SL_EXIT_USAGE, "%s", problem);
}

void sl_key_fields_destroy(sl_key_fields *keys) {
    if (!keys)
        return;
    sl_key_names_clear(&keys->id);
    sl_key_names_clear(&keys->match);
    free(keys);
}

/* ---- walking a document ---- */

/* A field, and the documents that it is in; the first is the document itself. */
typedef struct place {
    const uint8_t *at, *value, *end; /* of the element */
    const uint8_t *parents[DEPTH_MAX];
    const uint8_t *holders[DEPTH_MAX]; /* the elements of these parents; [0] is not used */
    size_t depth;
} place;

/* Finds a field in the elements from `at` to the document's final NUL. */
static bool find_in(const uint8_t *document, const uint8_t *at, const char *name, place *found) {
    const char *point = strchr(name, '.');
    size_t first = point ? (size_t)(point - name) : 0;
    const uint8_t *inner = NULL, *holder = NULL;
    while (*at != 0) {
        const char *key = (const char *)at + 1;
        const uint8_t *value = sl_bson_after_text(at + 1), *end = sl_bson_value_end(*at, value);
        if (strcmp(key, name) == 0) {
            found->at = at;
            found->value = value;
            found->end = end;
            found->parents[found->depth++] = document;
            return true;
        }
        if (point && *at == SL_BSON_DOCUMENT && strncmp(key, name, first) == 0 &&
            key[first] == '\0')
            inner = value, holder = at;
        at = end;
    }
    if (!inner || found->depth + 1 >= DEPTH_MAX)
        return false;
    found->parents[found->depth++] = document;
    found->holders[found->depth] = holder;
    return find_in(inner, inner + 4, point + 1, found);
}

/* Finds a field after the first `skip` bytes of elements. */
static bool find(const uint8_t *document, size_t skip, const char *name, place *found) {
    found->depth = 0;
    return find_in(document, document + 4 + skip, name, found);
}

bool sl_key_field_find(const uint8_t *document, const char *name, uint8_t *type,
                       const uint8_t **value, size_t *length) {
    place found;
    if (!find(document, 0, name, &found))
        return false;
    *type = *found.at;
    *value = found.value;
    *length = (size_t)(found.end - found.value);
    return true;
}

/* ---- changing a document ---- */

static bool refuse(sl_reject *reject, const char *name, const char *reason) {
    reject->column = name;
    snprintf(reject->reason, sizeof reject->reason, "%s", reason);
    return false;
}

/* The reason why a value cannot identify a document; NULL if it can. */
static const char *flaw_of(const place *field) {
    switch (*field->at) {
    case 0x02:
        return sl_bson_length(field->value) <= 1 ? "the field is empty" : NULL;
    case 0x06:
    case 0x0A:
        return "the field has no value";
    case 0x04:
        return "an array cannot identify a document";
    case 0x0B:
        return "a regular expression cannot identify a document";
    case 0x03: /* {$gt: 5} */
        return field->value[4] != 0 && field->value[5] == '$'
                   ? "a document whose first key begins with $ cannot identify a document"
                   : NULL;
    default:
        return NULL;
    }
}

/* Finds a field that identifies the document. */
static bool need(const uint8_t *document, size_t skip, const char *name, const char *option,
                 place *field, sl_reject *reject) {
    const char *flaw = find(document, skip, name, field) ? flaw_of(field) : "the field is missing";
    char reason[200];
    if (!flaw)
        return true;
    snprintf(reason, sizeof reason, "%s, and --%s needs it", flaw, option);
    return refuse(reject, name, reason);
}

/* Writes the element _id of these fields to `to`. NULL: refused. */
static uint8_t *put_id(const sl_key_names *names, const uint8_t *document, uint8_t *to,
                       const uint8_t *limit, sl_reject *reject) {
    uint8_t *type = to, *value;
    place field;
    memcpy(to + 1, "_id", 4);
    to = value = to + 5;
    if (names->count > 1) {
        *type = SL_BSON_DOCUMENT;
        to = sl_bson_begin(to);
    }
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->names[i], *key = last_part(name);
        if (!need(document, POSITION_BYTES, name, "id-field", &field, reject))
            return NULL;
        size_t length = (size_t)(field.end - field.value);
        size_t before = names->count > 1 ? strlen(key) + 2 : 0;
        if (before + length + 2 > (size_t)(limit - to)) {
            refuse(reject, name, "the value is too long for an _id: 1000 bytes are allowed");
            return NULL;
        }
        if (names->count == 1)
            *type = *field.at;
        else
            to = sl_bson_put_key(to, (sl_bson_type)*field.at, key);
        memcpy(to, field.value, length);
        to += length;
    }
    return names->count > 1 ? sl_bson_end(value, to) : to;
}

/* Removes a field. `emptied`: also embedded documents that have no other field. Reduces the lengths
 * of the documents around it. */
static void remove_field(uint8_t *document, place *field, bool emptied, uint8_t **end) {
    while (emptied && field->depth > 1 &&
           sl_bson_length(field->parents[field->depth - 1]) ==
               (size_t)(field->end - field->at) + 5) {
        field->end = field->parents[--field->depth] + (field->end - field->at) + 5;
        field->at = field->holders[field->depth];
    }
    size_t length = (size_t)(field->end - field->at);
    memmove(document + (field->at - document), field->end, (size_t)(*end - field->end));
    *end -= length;
    for (size_t i = 0; i < field->depth; i++) {
        uint8_t *parent = document + (field->parents[i] - document);
        sl_bson_put_int32(parent, (int32_t)(sl_bson_length(parent) - length));
    }
}

/* Replaces the element of the position by `length` bytes. */
static void replace_position(uint8_t *document, const uint8_t *element, size_t length,
                             uint8_t **end) {
    uint8_t *rest = document + 4 + POSITION_BYTES;
    size_t bytes = (size_t)(*end - rest);
    memmove(document + 4 + length, rest, bytes);
    memcpy(document + 4, element, length);
    *end = document + 4 + length + bytes;
    sl_bson_put_int32(document, (int32_t)(*end - document));
}

static bool move_id(const sl_key_fields *keys, bool own_id, uint8_t *document, uint8_t **end,
                    sl_reject *reject) {
    const sl_key_names *names = &keys->id;
    uint8_t element[SL_KEY_FIELD_BYTES_MAX + 64];
    place field;
    if (own_id) {
        if (strcmp(names->names[0], "_id") == 0)
            return need(document, 0, "_id", "id-field", &field, reject);
        return refuse(reject, "_id",
                      "the document already has an _id besides the fields of --id-field");
    }
    uint8_t *stop = put_id(names, document, element, element + sizeof element, reject);
    if (!stop)
        return false;
    for (size_t i = 0; i < names->count; i++) {
        if (find(document, POSITION_BYTES, names->names[i], &field))
            remove_field(document, &field, keys->table, end);
    }
    replace_position(document, element, (size_t)(stop - element), end);
    return true;
}

/* Can the top-level fields be sent unchanged in an update command? */
static bool check_names(const sl_key_fields *keys, const uint8_t *document, sl_reject *reject) {
    for (const uint8_t *at = document + 4; *at != 0;) {
        const char *key = (const char *)at + 1;
        if (*key == '$')
            return refuse(reject, NULL,
                          "a name begins with $, which an update command interprets as an "
                          "operator; load the record with --mode insert");
        if (sl_modes[keys->mode].sets_fields &&
            (*key == '\0' || (strchr(key, '.') && !keys->paths)))
            return refuse(reject, NULL,
                          "a name is empty or contains a dot, which --mode merge and update "
                          "interpret as a path: only columns of a table are set by such names. "
                          "--mode upsert and replace store the name as it is, but remove all other "
                          "fields of the stored document");
        const uint8_t *value = sl_bson_after_text(at + 1);
        at = sl_bson_value_end(*at, value);
    }
    return true;
}

bool sl_key_fields_apply(const sl_key_fields *keys, bool own_id, uint8_t *document, uint8_t **end,
                         sl_reject *reject) {
    place field;
    if (keys->id.count > 0) {
        if (!move_id(keys, own_id, document, end, reject))
            return false;
        own_id = true;
    }
    if (!sl_modes[keys->mode].matches)
        return true;
    if (!own_id) /* a position cannot identify a stored document */
        replace_position(document, document, 0, end);
    for (size_t i = 0; i < keys->match.count; i++) {
        if (!need(document, 0, keys->match.names[i], "match-fields", &field, reject))
            return false;
        if (strchr((const char *)field.at + 1, '.') && !keys->paths)
            return refuse(
                reject, keys->match.names[i],
                "the dot is part of the field's name here, and servers match the field of "
                "an embedded document");
    }
    return sl_modes[keys->mode].removes || check_names(keys, document, reject);
}
