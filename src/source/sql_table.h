/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that an SQL dump creates: the names and types of their columns, as a schema
 * (format/schema.h). */
#ifndef SHARDLOAD_SQL_TABLE_H
#define SHARDLOAD_SQL_TABLE_H

#include "sql_text.h"

/* How the values of a column are written as COPY text. */
typedef enum sl_sql_class {
    SL_SQL_TEXT,
    SL_SQL_BYTES,  /* hexadecimal digits after \x */
    SL_SQL_DIGITS, /* hexadecimal digits alone */
} sl_sql_class;

typedef struct sl_sql_column {
    char *name;
    const char *type;   /* of a schema: a string constant */
    const char *format; /* elements of an array; or NULL */
    bool wide;          /* it may have values that the type does not store: they stay text */
    bool exact;         /* so do values that the type would change */
    bool generated;     /* INSERT statements without names have no value for it */
    sl_sql_class class;
} sl_sql_column;

/* Where the rows of a table are in a dump, and how the statements there are read. */
typedef struct sl_sql_rows {
    uint64_t begin, end; /* offsets: of the first statement with rows, and of the first one of
                            other tables after all of them (UINT64_MAX: none) */
    uint64_t lines;      /* line feeds before `begin` */
    sl_sql_rules rules;
    bool replaces; /* REPLACE or INSERT IGNORE: the database keeps one row of each key */
    bool partial;  /* they lack columns, for which the database has values by default */
} sl_sql_rows;

typedef struct sl_sql_table {
    struct sl_sql_table *next, *alike; /* `alike`: another one with the same hash of its name */
    char *name; /* of the collection: the schema, unless it is the usual one, a dot, and the name */
    sl_sql_column *columns;
    size_t count, room;
    char *primary_key; /* names, separated by commas; or NULL */
    sl_sql_rows rows;  /* if it has any */
    uint64_t altered;  /* the line of ALTER TABLE that changes its columns; 0: none */
} sl_sql_table;

/* The most columns of a table, as of a schema. */
#define SL_SQL_COLUMNS_MAX 1024u

/* Reads a name such as public."a b"; `token` is its first token. `name` is that of the collection.
 * Afterwards `token` is the one that follows. False: this is no name. */
#define SL_SQL_TABLE_NAME_ROOM (2 * SL_SQL_NAME_MAX + 2)
bool sl_sql_table_name(sl_sql_text *text, sl_sql_token *token, char name[SL_SQL_TABLE_NAME_ROOM]);

/* Reads what follows on the name in CREATE TABLE, from `token` on, up to the closing parenthesis. A
 * statement without columns leaves the table without any. False with the text's error. */
bool sl_sql_table_read(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table);
/* Adds the columns that a table of PostgreSQL inherits from a parent before its own ones, and their
 * number to `*inherited`, which is 0 before the first parent. False with the text's error. */
bool sl_sql_table_inherit(sl_sql_text *text, sl_sql_table *table, const sl_sql_table *parent,
                          size_t *inherited);
/* Fails if a column has a name that no field can have. */
bool sl_sql_table_check_names(sl_sql_text *text, const sl_sql_table *table, uint64_t line);
/* Reads the columns after PRIMARY KEY, up to the closing parenthesis. They replace an earlier
 * primary key. False if no parenthesis follows; `token` is what does. */
bool sl_sql_table_read_key(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table);
/* Does a change of ALTER TABLE, which begins with this word, change rows or columns? Reads up to
 * the token that shows it. */
bool sl_sql_alters_rows(sl_sql_text *text, sl_sql_token *token);
void sl_sql_table_clear(sl_sql_table *table);
void sl_sql_tables_destroy(sl_sql_table *first); /* it, and all that follow; NULL is fine */

/* The column of this name, which is often that after `before` (may be NULL); NULL: none. */
const sl_sql_column *sl_sql_table_column(const sl_sql_table *table, const sl_sql_column *before,
                                         const char *name);

/* A schema for COPY text; for COPY text of columns that may have values of any type, as in SQLite;
 * for a file of mysqldump --tab, which has bytes as they are. */
typedef enum sl_sql_schema {
    SL_SQL_SCHEMA_COPY,
    SL_SQL_SCHEMA_ANY,
    SL_SQL_SCHEMA_TAB
} sl_sql_schema;

/* Writes a schema of these columns. NULL without memory. */
char *sl_sql_table_schema(const sl_sql_column *const *columns, size_t count, sl_sql_schema kind);

#endif
