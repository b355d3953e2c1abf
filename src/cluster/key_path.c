/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a field of the shard key from a complete document.
 *
 * This runs for every key field of every document, so it does not use the BSON library, whose
 * checks at each step cost more than all other routing. The documents were encoded by the loader,
 * so their lengths are not checked. */
#include <string.h>

#include "internal.h"

static uint32_t length_at(const uint8_t *bytes) {
    uint32_t length;
    memcpy(&length, bytes, sizeof length);
    return BSON_UINT32_FROM_LE(length);
}

/* The size of a value in bytes. False for types that no format writes. */
static bool length_of(bson_type_t type, const uint8_t *value, size_t *length) {
    switch (type) {
    case BSON_TYPE_NULL:
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
        *length = 0;
        return true;
    case BSON_TYPE_BOOL:
        *length = 1;
        return true;
    case BSON_TYPE_INT32:
        *length = 4;
        return true;
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
    case BSON_TYPE_INT64:
        *length = 8;
        return true;
    case BSON_TYPE_OID:
        *length = 12;
        return true;
    case BSON_TYPE_DECIMAL128:
        *length = 16;
        return true;
    case BSON_TYPE_UTF8:
        *length = 4 + (size_t)length_at(value);
        return true;
    case BSON_TYPE_BINARY:
        *length = 5 + (size_t)length_at(value);
        return true;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        *length = length_at(value);
        return true;
    default:
        return false;
    }
}

/* Decodes a value. Strings and binary data point into the document. False if the type is not known
 * (sl_value_is_known). */
static bool take_value(bson_type_t type, const uint8_t *bytes, bson_value_t *value) {
    uint64_t number = 0;
    value->value_type = type;
    switch (type) {
    case BSON_TYPE_INT32:
        value->value.v_int32 = (int32_t)length_at(bytes);
        break;
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_INT64: /* all three have the same 8 bytes in the union */
        memcpy(&number, bytes, sizeof number);
        value->value.v_int64 = (int64_t)BSON_UINT64_FROM_LE(number);
        break;
    case BSON_TYPE_TIMESTAMP:
        value->value.v_timestamp.increment = length_at(bytes);
        value->value.v_timestamp.timestamp = length_at(bytes + 4);
        break;
    case BSON_TYPE_BOOL:
        value->value.v_bool = *bytes != 0;
        break;
    case BSON_TYPE_OID:
        memcpy(value->value.v_oid.bytes, bytes, sizeof value->value.v_oid.bytes);
        break;
    case BSON_TYPE_UTF8:
        value->value.v_utf8.len = length_at(bytes) - 1;
        value->value.v_utf8.str = (char *)bytes + 4;
        break;
    case BSON_TYPE_BINARY:
        value->value.v_binary.data_len = length_at(bytes);
        value->value.v_binary.subtype = (bson_subtype_t)bytes[4];
        value->value.v_binary.data = (uint8_t *)bytes + 5;
        break;
    default:
        break;
    }
    return sl_value_is_known(value);
}

/* Finds a field by name. `*value` is NULL when the document does not have it. False when an unknown
 * type prevents the search. */
static bool find_name(const uint8_t *document, const char *name, size_t name_length,
                      bson_type_t *type, const uint8_t **value) {
    const uint8_t *at = document + 4, *end = document + length_at(document) - 1;
    while (at < end) {
        const char *here = (const char *)at + 1;
        size_t same = 0; /* common bytes; names are too short for strlen and memcmp to pay off */
        while (same < name_length && here[same] == name[same])
            same++;
        bool found = same == name_length && here[same] == '\0';
        const char *behind = here + same;
        while (*behind++ != '\0')
            continue;
        *type = (bson_type_t)*at;
        *value = (const uint8_t *)behind;
        if (found)
            return true;
        size_t length;
        if (!length_of(*type, *value, &length))
            return false;
        at = *value + length;
    }
    *value = NULL;
    return at == end;
}

bool sl_key_value_at(const uint8_t *document, const char *path, bson_value_t *value) {
    for (;;) {
        size_t name = strcspn(path, ".");
        bson_type_t type;
        const uint8_t *found;
        if (!find_name(document, path, name, &type, &found))
            return false;
        bool last = path[name] == '\0';
        if (found && last)
            return take_value(type, found, value);
        if (!found || type != BSON_TYPE_DOCUMENT) {
            value->value_type = BSON_TYPE_NULL;
            return !found || type != BSON_TYPE_ARRAY;
        }
        document = found;
        path += name + 1;
    }
}
