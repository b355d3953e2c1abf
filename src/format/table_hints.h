/* SPDX-License-Identifier: Apache-2.0 */
/* What the first lines of a table suggest about its delimiter and its columns. Private to
 * src/format. */
#ifndef SHARDLOAD_TABLE_HINTS_H
#define SHARDLOAD_TABLE_HINTS_H

#include "header.h"

/* If both commas and semicolons could separate the fields, as in 1;1,5: semicolons do if at least
 * as many of their fields are typed. */
void sl_prefer_semicolons(sl_table *table, sl_text head, bool whole);

/* With --ragged pad: does the first line name the columns of lines that may be shorter? */
bool sl_heads_short_lines(const sl_table *table, const sl_text *fields, const sl_evidence *found);

/* Are the lines dates with times, such as 2016-01-15 10:00:00, so that their blank separates no
 * columns? */
bool sl_are_dates(const sl_table *table, sl_text head, bool whole);

/* Is it a table of one column: short lines of numbers or dates, perhaps below a name? `typed`: the
 * first line is a number or date. */
bool sl_is_column(const sl_table *table, sl_text head, bool whole, bool typed);

/* Looks for another byte that quotes fields than table->quote, and sets it. False: there is
 * none. */
bool sl_find_quote(sl_table *table, sl_text head, bool whole);

/* If no byte quotes the fields of the table: do fields begin and end with double quotes all the
 * same? */
bool sl_keeps_quotes(const sl_table *table, sl_text head, bool whole);

#endif
