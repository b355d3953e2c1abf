// SPDX-License-Identifier: Apache-2.0
//
// Reads the built-in tables line by line.
#include "tables.h"

#include <stdlib.h>
#include <string.h>

#include <shardload/embedded.h>

extern const sl_embedded datagen_tables[]; // made by CMake from data/

const char *table_find(const char *name) {
    for (const sl_embedded *table = datagen_tables; table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0) {
            return table->text;
        }
    }
    return "";
}

bool table_next(const char **cursor, struct table_row *row) {
    const char *p = *cursor;
    while (*p == '#') {
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    if (*p == '\0') {
        return false;
    }
    *row = (struct table_row){.count = 1};
    size_t length = 0;
    for (; *p != '\n' && *p != '\0'; p++) {
        if (*p == '|' && row->count < TABLE_COLUMNS) {
            row->count++;
            length = 0;
        } else if (length + 1 < TABLE_CELL_BYTES) {
            row->cells[row->count - 1][length++] = *p;
        }
    }
    *cursor = *p == '\n' ? p + 1 : p;
    return true;
}

uint32_t table_number(const struct table_row *row, size_t column) {
    return (uint32_t)strtoul(row->cells[column], NULL, 10);
}

size_t table_lines(const char *table) {
    size_t lines = 1;
    for (const char *p = table; *p != '\0'; p++) {
        lines += *p == '\n';
    }
    return lines;
}
