/* SPDX-License-Identifier: Apache-2.0 */
/* CREATE TABLE of PostgreSQL, MySQL and SQLite; see sql_table.h. */
#include "sql_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/grow.h"
#include "util/memory_stream.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#define COLUMN_BYTES 64u /* of the allocations for a column, and of its line in a schema */

/* ---- types ---- */

/* The types of columns by the words with which they begin. Others are text: names, enums, sets,
 * times of day, intervals, networks, geometry of PostGIS, ranges. */
typedef struct type_row {
    const char *words; /* separated by bars */
    const char *type;  /* of a schema */
    bool wide, exact;  /* as in sl_sql_column */
    sl_sql_class class;
    bool mysql; /* in MySQL only */
} type_row;

static const type_row types[] = {
    {"smallint|int2|int|integer|int4|bigint|int8|tinyint|mediumint|year|smallserial|serial|"
     "bigserial|oid|unsigned",
     "int", true, false, SL_SQL_TEXT, false},
    {"real|float|float4|float8|double", "double", false, false, SL_SQL_TEXT, false},
    {"numeric|decimal|dec|fixed|num|number", "decimal128", true, false, SL_SQL_TEXT, false},
    {"bool|boolean", "bool", false, false, SL_SQL_TEXT, false},
    {"date", "date", true, false, SL_SQL_TEXT, false},
    {"timestamp|timestamptz|datetime", "datetime", true, true, SL_SQL_TEXT, false},
    {"uuid", "uuid", false, false, SL_SQL_TEXT, false},
    {"json|jsonb", "json", false, false, SL_SQL_TEXT, false},
    {"bytea|blob|tinyblob|mediumblob|longblob|binary|varbinary", "hex", false, false, SL_SQL_BYTES,
     false},
    {"geometry|point|linestring|polygon|multipoint|multilinestring|multipolygon|"
     "geometrycollection|geomcollection",
     "text", false, false, SL_SQL_DIGITS, true},
    {"bit|vector", "hex", false, false, SL_SQL_BYTES, true},
};

static const type_row *type_of(sl_sql_token *word, bool mysql) {
    if (word->quote == '[') /* SQL Server quotes types, too */
        word->kind = SL_SQL_WORD;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if ((mysql || !types[i].mysql) && sl_sql_is_one_of(word, types[i].words))
            return &types[i];
    }
    return NULL;
}

/* An array has elements of this type. JSON, and dates that may have to stay text, are text. */
static void make_array(sl_sql_column *column) {
    bool keeps = !column->exact && strcmp(column->type, "json") != 0;
    column->format = keeps ? column->type : "text";
    column->type = "array";
    column->wide = column->exact = false;
    column->class = SL_SQL_TEXT;
}

/* Skips from an opening parenthesis or bracket to after the closing one; `token` is then the next
 * one. */
static bool skip_parentheses(sl_sql_text *text, sl_sql_token *token) {
    int depth = 0;
    do {
        if (token->kind == SL_SQL_END)
            return false;
        const char mark = token->kind == SL_SQL_MARK ? token->text[0] : '\0';
        depth += (mark == '(' || mark == '[') - (mark == ')' || mark == ']');
        sl_sql_next(text, token);
    } while (depth > 0);
    return true;
}

/* Reads the type, which may be missing in SQLite. `token` is its first word; then what follows. */
static bool read_type(sl_sql_text *text, sl_sql_token *token, sl_sql_column *column) {
    const type_row *row = NULL;
    column->type = "text";
    if (!sl_sql_is_name(token) ||
        sl_sql_is_one_of(token, "primary|not|default|references|unique|check|collate|constraint|"
                                "as|generated"))
        return true;
    row = type_of(token, text->rules.mysql);
    const bool serial = sl_sql_is(token, "serial");
    const bool big = text->rules.mysql && (serial || sl_sql_is_one_of(token, "bigint|int8"));
    sl_sql_next(text, token);
    while (sl_sql_is(token, ".")) { /* the schema of a type */
        sl_sql_next(text, token);
        row = type_of(token, text->rules.mysql);
        sl_sql_next(text, token);
    }
    if (row) {
        column->type = row->type;
        column->wide = row->wide;
        column->exact = row->exact;
        column->class = row->class;
    }
    if (sl_sql_is(token, "(")) {
        sl_sql_skip_blanks(text);
        int digits = sl_sql_peek(text, 0); /* of the fraction of a second */
        if (row && strcmp(row->type, "datetime") == 0 && digits <= '3')
            column->exact = false;
        if (!skip_parentheses(text, token))
            return false;
    } else if (row && strcmp(row->type, "datetime") == 0 && text->rules.mysql) {
        column->exact = false; /* of MySQL: seconds */
    }
    if (row && strcmp(row->type, "int") == 0) /* others fit in 64 bits */
        column->wide = big && (serial || sl_sql_is(token, "unsigned"));
    return true;
}

/* Reads what follows on the type, up to the comma or parenthesis after the column. */
static bool read_constraints(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table,
                             sl_sql_column *column) {
    while (!sl_sql_is(token, ",") && !sl_sql_is(token, ")")) {
        if (token->kind == SL_SQL_END)
            return false;
        bool mark = token->kind == SL_SQL_MARK, as = sl_sql_is(token, "AS");
        bool primary = sl_sql_is(token, "PRIMARY");
        if (mark && token->text[0] == '[' && strcmp(column->type, "array") != 0)
            make_array(column);
        if (mark && (token->text[0] == '(' || token->text[0] == '[')) {
            if (!skip_parentheses(text, token))
                return false;
            continue;
        }
        sl_sql_next(text, token);
        column->generated = column->generated || (as && sl_sql_is(token, "("));
        if (primary && sl_sql_is(token, "KEY")) {
            free(table->primary_key);
            table->primary_key = strchr(column->name, ',') ? NULL : strdup(column->name);
        }
    }
    return true;
}

/* ---- tables ---- */

bool sl_sql_table_name(sl_sql_text *text, sl_sql_token *token, char name[SL_SQL_TABLE_NAME_ROOM]) {
    if (!sl_sql_is_any_name(token))
        return false;
    snprintf(name, SL_SQL_TABLE_NAME_ROOM, "%s", token->text);
    sl_sql_next(text, token);
    if (!sl_sql_is(token, "."))
        return true;
    sl_sql_next_name(text, token);
    if (!sl_sql_is_any_name(token))
        return false;
    const bool usual = strcmp(name, "public") == 0 || strcmp(name, "main") == 0;
    size_t length = usual ? 0 : strlen(name);
    snprintf(name + length, SL_SQL_TABLE_NAME_ROOM - length, "%s%s", usual ? "" : ".", token->text);
    sl_sql_next(text, token);
    return true;
}

bool sl_sql_table_read_key(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table) {
    char names[2 * SL_SQL_NAME_MAX] = "";
    size_t used = 0;
    bool usable = true; /* as a list */
    do
        sl_sql_next(text, token); /* USING BTREE */
    while (token->kind == SL_SQL_WORD);
    if (!sl_sql_is(token, "("))
        return false;
    for (int depth = 1; depth > 0 && token->kind != SL_SQL_END;) {
        sl_sql_next(text, token);
        if (token->kind == SL_SQL_MARK) {
            depth += (token->text[0] == '(') - (token->text[0] == ')');
        } else if (depth == 1 && !sl_sql_is(token, "ASC") && !sl_sql_is(token, "DESC")) {
            usable = usable && sl_sql_is_any_name(token) && !strchr(token->text, ',') &&
                     used + token->length + 1 < sizeof names;
            used +=
                usable ? (size_t)sprintf(names + used, "%s%s", used ? "," : "", token->text) : 0;
        }
    }
    free(table->primary_key);
    table->primary_key = usable ? strdup(names) : NULL;
    return true;
}

/* Does a constraint or an index of the table begin with this word, and not a column? */
static bool begins_constraint(const sl_sql_token *token, bool mysql) {
    return sl_sql_is_one_of(token, "constraint|primary|unique|foreign|check|like") ||
           (mysql && sl_sql_is_one_of(token, "key|index|fulltext|spatial|period|vector"));
}

static bool read_constraint(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table) {
    while (!sl_sql_is(token, ",") && !sl_sql_is(token, ")")) {
        bool primary = sl_sql_is(token, "PRIMARY");
        if (token->kind == SL_SQL_END || (sl_sql_is(token, "(") && !skip_parentheses(text, token)))
            return false;
        if (sl_sql_is(token, ",") || sl_sql_is(token, ")"))
            break;
        sl_sql_next(text, token);
        if (primary && sl_sql_is(token, "KEY")) {
            sl_sql_table_read_key(text, token, table);
            sl_sql_next(text, token);
        }
    }
    return true;
}

static bool count_column(sl_sql_text *text, const sl_sql_table *table, const sl_sql_column *column,
                         uint64_t line) {
    text->kept += sizeof *column + COLUMN_BYTES + strlen(column->name);
    return (table->count <= SL_SQL_COLUMNS_MAX && text->kept <= SL_SQL_DEFINITIONS_MAX) ||
           sl_sql_fail(text, line,
                       "the table %s has more than %u columns, or the columns of all tables "
                       "need more than %u MiB",
                       table->name, SL_SQL_COLUMNS_MAX, SL_SQL_DEFINITIONS_MAX >> 20);
}

/* Adds a column at the end. NULL with the text's error. */
static sl_sql_column *add_column(sl_sql_text *text, sl_sql_table *table, sl_sql_column column,
                                 uint64_t line) {
    sl_sql_column *columns =
        sl_grow(table->columns, table->count, &table->room, sizeof *table->columns);
    if (columns)
        table->columns = columns;
    if (!columns || !(column.name = strdup(column.name)))
        return sl_error_memory(text->error, "reading an SQL dump"), NULL;
    columns[table->count++] = column;
    return count_column(text, table, &column, line) ? &columns[table->count - 1] : NULL;
}

static bool read_column(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table,
                        uint64_t line) {
    sl_sql_column *column = add_column(text, table, (sl_sql_column){.name = token->text}, line);
    if (!column)
        return false;
    sl_sql_next(text, token);
    return read_type(text, token, column) && read_constraints(text, token, table, column);
}

bool sl_sql_table_read(sl_sql_text *text, sl_sql_token *token, sl_sql_table *table) {
    const uint64_t line = sl_sql_line(text);
    if (!sl_sql_is(token, "("))
        return true;
    do {
        sl_sql_next_name(text, token);
        bool column = sl_sql_is_any_name(token) && !begins_constraint(token, text->rules.mysql);
        if (token->cut)
            return sl_sql_fail(text, line,
                               "the table %s has a name of more than %u bytes, or with NUL",
                               table->name, SL_SQL_NAME_MAX);
        if (!(column ? read_column(text, token, table, line) : read_constraint(text, token, table)))
            return sl_sql_fail(text, line,
                               "the statement CREATE TABLE %s is not complete: the dump is cut off",
                               table->name);
    } while (sl_sql_is(token, ","));
    return true;
}

bool sl_sql_table_inherit(sl_sql_text *text, sl_sql_table *table, const sl_sql_table *parent,
                          size_t *inherited) {
    for (size_t i = 0; i < parent->count; i++) {
        size_t at = 0;
        while (at < table->count && strcmp(table->columns[at].name, parent->columns[i].name) != 0)
            at++;
        /* A common column counts again, which limits the time of tables with very many parents. */
        if (at < table->count ? !count_column(text, table, &parent->columns[i], sl_sql_line(text))
                              : !add_column(text, table, parent->columns[i], sl_sql_line(text)))
            return false;
        if (at < *inherited)
            continue;
        const sl_sql_column column = table->columns[at];
        memmove(&table->columns[*inherited + 1], &table->columns[*inherited],
                (at - *inherited) * sizeof column);
        table->columns[(*inherited)++] = column;
    }
    return true;
}

bool sl_sql_table_check_names(sl_sql_text *text, const sl_sql_table *table, uint64_t line) {
    char shown[80], column[200];
    size_t i = 0;
    while (i < table->count && table->columns[i].name[0] &&
           sl_utf8_valid(table->columns[i].name, strlen(table->columns[i].name), NULL))
        i++;
    if (i == table->count)
        return true;
    sl_text_printable(sl_text_of(table->name), shown, sizeof shown);
    sl_text_printable(sl_text_of(table->columns[i].name), column, sizeof column);
    return sl_sql_fail(text, line,
                       "column %zu of the table %s has a name that is empty or not UTF-8: \"%s\": "
                       "rename it, or export the dump in UTF-8, or select other tables with "
                       "--include",
                       i + 1, shown, column);
}

bool sl_sql_alters_rows(sl_sql_text *text, sl_sql_token *token) {
    const bool drop = sl_sql_is(token, "DROP"), rename = sl_sql_is(token, "RENAME");
    const bool alter = sl_sql_is(token, "ALTER");
    if (sl_sql_is_one_of(token, "CHANGE|EXCHANGE|TRUNCATE|DISCARD|IMPORT"))
        return true;
    if (!drop && !rename && !alter && !sl_sql_is(token, "ADD"))
        return false;
    sl_sql_next(text, token);
    if (alter) {
        if (sl_sql_is(token, "COLUMN"))
            sl_sql_next_name(text, token);
        if (sl_sql_is_name(token))
            sl_sql_next(text, token);
        if (sl_sql_is(token, "SET"))
            sl_sql_next(text, token);
        return sl_sql_is_one_of(token, "TYPE|DATA");
    }
    return !sl_sql_is_one_of(token, "INDEX|KEY|CONSTRAINT") &&
           (rename || !sl_sql_is_one_of(token, "PRIMARY|FOREIGN|CHECK")) &&
           (rename || drop ||
            !sl_sql_is_one_of(token, "UNIQUE|FULLTEXT|SPATIAL|VECTOR|EXCLUDE|PARTITION|PERIOD|"
                                     "SYSTEM|NOT"));
}

void sl_sql_table_clear(sl_sql_table *table) {
    for (size_t i = 0; i < table->count; i++)
        free(table->columns[i].name);
    free(table->columns);
    free(table->primary_key);
    free(table->name);
}

void sl_sql_tables_destroy(sl_sql_table *first) {
    while (first) {
        sl_sql_table *next = first->next;
        sl_sql_table_clear(first);
        free(first);
        first = next;
    }
}

const sl_sql_column *sl_sql_table_column(const sl_sql_table *table, const sl_sql_column *before,
                                         const char *name) {
    const sl_sql_column *alike = NULL; /* in PostgreSQL, "Key" and "key" may be two columns */
    const size_t next = before ? (size_t)(before - table->columns) + 1 : 0;
    if (next < table->count && strcmp(table->columns[next].name, name) == 0)
        return &table->columns[next];
    for (size_t i = 0; i < table->count; i++) {
        const sl_sql_column *column = &table->columns[i];
        if (strcmp(column->name, name) == 0)
            return column;
        if (!alike && strcasecmp(column->name, name) == 0)
            alike = column;
    }
    return alike;
}

/* ---- the schema ---- */

char *sl_sql_table_schema(const sl_sql_column *const *columns, size_t count, sl_sql_schema kind) {
    char *schema;
    size_t length;
    FILE *out = sl_memory_stream(&schema, &length);
    if (!out)
        return NULL;
    const bool tab = kind == SL_SQL_SCHEMA_TAB;
    fprintf(out, "name: table\nkind: rows\ndialect: %s\nheader: false\ncolumns:\n",
            tab ? "mysql" : "postgres\ndelimiter: tab");
    for (size_t i = 0; i < count; i++) {
        const bool bytes = tab && columns[i]->class != SL_SQL_TEXT;
        const char *type = bytes ? "binary" : columns[i]->type;
        const bool wide = kind == SL_SQL_SCHEMA_ANY || columns[i]->wide;
        fputs("- {name: ", out);
        sl_yaml_put_quoted(out, columns[i]->name);
        fprintf(out, ", type: %s%s%s", type, columns[i]->format ? ", format: " : "",
                columns[i]->format ? columns[i]->format : "");
        if (strcmp(type, "hex") == 0) /* a text of digits in a BLOB column of SQLite is a text */
            fputs(", format: '\\x'", out);
        fprintf(out, "%s%s}\n", wide && strcmp(type, "text") != 0 ? ", invalid: text" : "",
                columns[i]->exact ? ", lossless: true" : "");
    }
    return fclose(out) == 0 ? schema : NULL;
}
