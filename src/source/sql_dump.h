/* SPDX-License-Identifier: Apache-2.0 */
/* SQL dumps as archives: each table whose data a dump holds is an entry, and the entry's contents
 * are its rows as PostgreSQL's COPY writes them. A COPY block is such text already; INSERT
 * statements are rewritten. The columns and their types come from CREATE TABLE.
 *
 * Read: plain dumps of pg_dump (also through pg_restore -f -), mysqldump, mariadb-dump, and .dump
 * of sqlite3. A statement that changes data in another way than COPY and INSERT ... VALUES is an
 * error; all others are passed over, and counted by kind. */
#ifndef SHARDLOAD_SQL_DUMP_H
#define SHARDLOAD_SQL_DUMP_H

#include "sql_table.h"
#include "stream.h"

typedef struct sl_sql_dump sl_sql_dump;

/* A table of a dump in a regular file, which has been read. */
typedef struct sl_sql_map {
    sl_source_identity identity; /* of the file */
    const sl_sql_table *table;   /* borrowed; NULL: the file is no dump */
    const char *files; /* borrowed; NULL, or the pattern that selects the dump in an archive */
} sl_sql_map;

/* `input` and `include`, a shell pattern for the names of tables (NULL: all), are borrowed. */
bool sl_sql_dump_create(sl_input *input, const char *include, sl_sql_dump **dump, sl_error *error);
void sl_sql_dump_destroy(sl_sql_dump *dump); /* NULL is fine */

/* Moves to the next table with rows; `*contents` reads them. NULL at the end of the dump. Tables
 * with rows that do not match `include` are passed over. False with error (SL_EXIT_SOURCE), with
 * the line: the dump is cut off, or not understood. */
bool sl_sql_dump_next(sl_sql_dump *dump, sl_input **contents, sl_reader_times *times,
                      sl_error *error);

/* The current table. It is complete, with its rows and its primary key, at the end of the dump. */
const sl_sql_table *sl_sql_dump_table(const sl_sql_dump *dump);
/* Is the text unpacked again up to the rows of each table? */
bool sl_sql_dump_is_packed(const sl_sql_dump *dump);
/* The caller owns the tables then: sl_sql_tables_destroy. */
sl_sql_table *sl_sql_dump_take_tables(sl_sql_dump *dump);
/* Reads only the rows of this table, which is borrowed; nothing has been read so far. */
void sl_sql_dump_read_only(sl_sql_dump *dump, const sl_sql_table *table);

/* The line of the dump, from 1, at which a row of the current table begins. Rows are asked for in
 * ascending order, and not read otherwise. 0: not known. */
uint64_t sl_sql_dump_line_of(sl_sql_dump *dump, uint64_t row, sl_reader_times *times,
                             sl_error *error);

/* Of the current table: its name (sl_sql_table), and safe to print; its schema, for COPY text. */
const char *sl_sql_dump_name(const sl_sql_dump *dump);
const char *sl_sql_dump_shown(const sl_sql_dump *dump);
const char *sl_sql_dump_schema(const sl_sql_dump *dump);

/* A schema for the text file that mysqldump --tab writes beside this dump, which has been read to
 * its end and has no rows, and its table, the bytes of whose name the name of the file encodes.
 * NULL: the dump has not one table. */
char *sl_sql_dump_tab_schema(sl_sql_dump *dump, const sl_sql_table **only);

/* Copies the unpacked text of a dump of which nothing has been read into the file, or, with `same`,
 * compares it with that of the file. `name` is that of the file. */
bool sl_sql_dump_copy(sl_sql_dump *dump, int file, bool *same, const char *name, sl_error *error);

/* Writes the statements passed over so far, by kind: "12 SET, 3 CREATE INDEX". Returns out. */
char *sl_sql_dump_passed_over(const sl_sql_dump *dump, char *out, size_t room);

#endif
