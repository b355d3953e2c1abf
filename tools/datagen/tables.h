// SPDX-License-Identifier: Apache-2.0
//
// The built-in tables of published frequencies, data/*.txt: lines of cells divided by '|'. Lines
// that begin with '#' describe the columns. Beside them is schemas/isd-groups.tsv, which
// isd_groups.c reads in its own way.
#ifndef DATAGEN_TABLES_H
#define DATAGEN_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TABLE_COLUMNS = 12, TABLE_CELL_BYTES = 48 };

// One line of a table, divided into cells that end in NUL. Longer cells are truncated.
struct table_row {
    size_t count;
    char cells[TABLE_COLUMNS][TABLE_CELL_BYTES];
};

// The text of a table by its file name; empty when there is none of that name.
const char *table_find(const char *name);

// Reads the line at *cursor into `row` and moves the cursor on. False at the end of the table.
bool table_next(const char **cursor, struct table_row *row);

// The cell as a number; 0 when the cell is missing.
uint32_t table_number(const struct table_row *row, size_t column);

#endif
