/* SPDX-License-Identifier: Apache-2.0 */
/* The rejects of one block, packed one after the other. */
#include "rejects.h"

#include <stdlib.h>
#include <string.h>

/* An entry of a list; the reason, the record and the column's name follow it. */
typedef struct sl_entry {
    uint64_t offset;
    uint32_t line;
    uint32_t reason_length;
    size_t record_length, column_length;
} sl_entry;

static size_t size_of_entry(const sl_entry *entry) {
    size_t size =
        sizeof *entry + entry->reason_length + entry->record_length + entry->column_length;
    return (size + _Alignof(sl_entry) - 1) / _Alignof(sl_entry) * _Alignof(sl_entry);
}

bool sl_reject_list_add(sl_reject_list *list, const sl_reject *reject) {
    sl_entry made = {.offset = reject->offset,
                     .line = reject->line,
                     .reason_length = (uint32_t)strlen(reject->reason),
                     .record_length = reject->record.length,
                     .column_length = reject->column ? strlen(reject->column) : 0};
    size_t need = size_of_entry(&made);
    if (list->room - list->used < need) {
        size_t room = (list->room + need) * 2;
        char *bytes = realloc(list->bytes, room);
        if (!bytes)
            return false;
        list->bytes = bytes;
        list->room = room;
    }
    char *at = list->bytes + list->used;
    memcpy(at, &made, sizeof made);
    memcpy(at + sizeof made, reject->reason, made.reason_length);
    if (made.record_length > 0)
        memcpy(at + sizeof made + made.reason_length, reject->record.bytes, made.record_length);
    /* The name is copied: the dialect that owns it may be freed before it is written. */
    if (made.column_length > 0)
        memcpy(at + sizeof made + made.reason_length + made.record_length, reject->column,
               made.column_length);
    list->used += need;
    list->count++;
    return true;
}

bool sl_reject_list_next(const sl_reject_list *list, size_t *at, sl_listed_reject *reject) {
    sl_entry entry;
    if (*at >= list->used)
        return false;
    const char *bytes = list->bytes + *at;
    memcpy(&entry, bytes, sizeof entry);
    bytes += sizeof entry;
    *reject = (sl_listed_reject){
        .offset = entry.offset,
        .line = entry.line,
        .reason = {bytes, entry.reason_length},
        .record = {bytes + entry.reason_length, entry.record_length},
        .column = {bytes + entry.reason_length + entry.record_length, entry.column_length},
    };
    *at += size_of_entry(&entry);
    return true;
}

void sl_reject_list_clear(sl_reject_list *list) {
    free(list->bytes);
    memset(list, 0, sizeof *list);
}
