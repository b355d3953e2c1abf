/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON writer's functions that are not inline: keys. */
#include "bson_writer.h"

size_t sl_bson_prefix_room(const char *key) {
    size_t length = strlen(key) + 2;
    return (length + SL_BSON_PREFIX_STEP - 1) / SL_BSON_PREFIX_STEP * SL_BSON_PREFIX_STEP;
}

uint32_t sl_bson_prefix_make(uint8_t *room, sl_bson_type type, const char *key) {
    memset(room, 0, sl_bson_prefix_room(key));
    return (uint32_t)(sl_bson_put_key(room, type, key) - room);
}

uint8_t *sl_bson_put_key(uint8_t *to, sl_bson_type type, const char *key) {
    size_t length = strlen(key) + 1;
    *to = (uint8_t)type;
    memcpy(to + 1, key, length);
    return to + 1 + length;
}
