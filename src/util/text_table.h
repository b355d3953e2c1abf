/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text for people, whose columns are as wide as their widest cell. Rows of columns
 * describe a table; cells are added from left to right and row by row. One thread. */
#ifndef SHARDLOAD_TEXT_TABLE_H
#define SHARDLOAD_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "text.h"

#define SL_TEXT_COLUMNS_MAX 64

typedef struct sl_text_column {
    const char *title; /* copied; NULL ends the columns of a table */
    bool left;         /* text; other columns are aligned to the right */
    unsigned least;    /* the least width, in characters */
    sl_unit unit;      /* of the numbers of sl_text_table_number */
} sl_text_column;

typedef struct sl_text_table sl_text_table;

/* A table with these columns, or, for NULL, without columns. NULL without memory. */
sl_text_table *sl_text_table_create(const sl_text_column *columns);
void sl_text_table_destroy(sl_text_table *table); /* NULL is fine */

/* Add a column, or those of a table, before the first cell. Without memory, and with more than
 * SL_TEXT_COLUMNS_MAX columns, the table is not printed. All functions accept NULL for a table
 * without memory. */
void sl_text_table_column(sl_text_table *table, const sl_text_column *column);
void sl_text_table_columns(sl_text_table *table, const sl_text_column *columns);

/* Adds the next cell. Its text is made safe to print (text.h) and cut to 79 bytes. */
void sl_text_table_cell(sl_text_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a cell with sl_value_text of the value in the unit of its column; "-" for NAN. */
void sl_text_table_number(sl_text_table *table, double value);
/* Adds a cell with sl_figure_text of the value, or "-" when it is not `known`. */
void sl_text_table_figure(sl_text_table *table, bool known, double value, int decimals);
/* Adds empty cells up to the end of the row. */
void sl_text_table_end_row(sl_text_table *table);

/* Sets the characters of the line below the titles (standard: "-"); NULL: no line. */
void sl_text_table_rule(sl_text_table *table, const char *rule);
/* Limits lines to `width` characters: text columns wider than 12 are cut, figures never. Cells that
 * are added later may have 999 bytes. */
#define SL_TEXT_UNLIMITED 100000
void sl_text_table_limit(sl_text_table *table, size_t width);

/* Prints the table, indented by `indent` blanks, and destroys it; calls sl_context_lost_output when
 * a column or cell could not be added. */
void sl_text_table_print(sl_text_table *table, FILE *out, unsigned indent);
/* Logs the table as information, a line each, without a line below the titles, and destroys it. */
void sl_text_table_log(sl_text_table *table);

#endif
