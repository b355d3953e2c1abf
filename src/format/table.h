/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the table in a delimited text without schema: its delimiter, the lines before it, whether
 * its first line is a header, and the names of its columns. Private to src/format. */
#ifndef SHARDLOAD_TABLE_H
#define SHARDLOAD_TABLE_H

#include "format.h"
#include "head.h"

#define SL_TABLE_NOTE_ROOM 240

typedef struct sl_table {
    sl_first_line first; /* the table's first line; `text_start` is its offset */
    uint8_t blanks;      /* fields are separated by this many blanks or more; 0: by the delimiter */
    char quote;          /* the byte that quotes fields; 0: none */
    char escape;         /* as in sl_format_options */
    size_t skipped;      /* lines before it */
    bool header;         /* the first line names the columns */
    sl_text *names;      /* unique, not empty; `count` of them. Owned, as is `memory` */
    size_t count;
    char *memory;
    char note[SL_TABLE_NOTE_ROOM]; /* assumptions, for messages: "; no header: ..." or "" */
} sl_table;

/* Finds the table at the beginning of a text; `whole`: the head is the complete text. False with
 * error (SL_EXIT_SOURCE) if there is none. Clear the table in any case. */
bool sl_table_find(const sl_format_options *options, sl_text head, bool whole, sl_table *table,
                   sl_error *error);
void sl_table_clear(sl_table *table);

/* Sets the names of the table's columns: unique names made from `given` or, if that is NULL or
 * empty, from the number of the column. */
bool sl_table_set_names(sl_table *table, const sl_text *given, size_t count, sl_error *error);

/* Binds the columns of a table: as sl_dialect_bind, with the table's names. */
bool sl_dialect_bind_table(const struct sl_plan *plan, const sl_table *table, sl_dialect **dialect,
                           sl_error *error);

/* The offset after the first `count` lines of a head. */
size_t sl_after_lines(sl_text head, uint64_t count);

/* Splits a line whose fields are separated by `least` blanks or more; blanks at its ends are
 * ignored. Stores the first `limit` fields; returns their number. */
size_t sl_blanks_split(sl_text line, unsigned least, sl_text *fields, size_t limit);

#endif
