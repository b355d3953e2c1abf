/* SPDX-License-Identifier: Apache-2.0 */
/* SQL dumps as archives; see sql_dump.h. */
#include "sql_dump.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "util/hash.h"
#include "util/text.h"

#include "source_set.h"

#define OUTPUT_BYTES ((size_t)64 << 10)
#define KINDS_MAX 48u
#define TABLES_MAX 20000u
#define MARKS_MAX 30u /* bytes of byte order marks before a dump */
#define HASHES 1024u  /* of names of tables */
#define WORDS_MAX 8u  /* of a value: replace(replace(...)) */
#define KIND_ROOM 40u
#define INSERT_HEAD_MAX ((size_t)64 << 10)
/* The most text of a row. A longer row is cut, and made a line that the reader rejects. */
#define ROW_BYTES_MAX (SL_RECORD_BYTES_MAX + ((size_t)4 << 20))

typedef struct kind_count {
    char kind[KIND_ROOM]; /* SET, CREATE INDEX */
    uint64_t count;
} kind_count;

typedef enum data_kind { DATA_NONE, DATA_COPY, DATA_INSERT } data_kind;

struct sl_sql_dump {
    sl_sql_text text;
    const char *include;
    sl_input contents;
    sl_sql_table *tables, *by_hash[HASHES];
    unsigned table_count, words; /* `words`: of the current value */
    sl_path_set seen;            /* tables whose rows have been read */
    bool open;                   /* a transaction */
    kind_count kinds[KINDS_MAX];
    size_t kind_count;
    /* The current table: */
    data_kind data;
    char name[SL_SQL_TABLE_NAME_ROOM], shown[SL_ENTRY_NAME_ROOM];
    const sl_sql_column *columns[SL_SQL_COLUMNS_MAX];
    size_t column_count;
    bool listed; /* the statement has their names */
    char *schema;
    char *next_schema; /* of the table whose rows have been begun, if next_known */
    char next_name[SL_SQL_TABLE_NAME_ROOM];
    uint64_t line;                /* of the COPY or INSERT statement */
    uint64_t row_line, row_count; /* of the last row read, or of the first one of COPY */
    uint64_t statement;           /* offset of the last statement */
    bool replaces;                /* the last INSERT: REPLACE, or with IGNORE */
    const sl_sql_table *known;    /* only its rows are read; or NULL */
    sl_sql_table *begun;          /* the last table whose rows have begun; NULL if `known` */
    bool at_line;                 /* COPY: at the beginning of a line */
    bool in_values;               /* INSERT: within the rows of a statement */
    char head[INSERT_HEAD_MAX];   /* INSERT: the last statement up to its first row; head_length 0:
                                   it is longer */
    size_t head_length;
    bool next_known; /* the next statement is that of another table, and has been begun */
    /* Rows of INSERT statements as COPY text, not fetched yet: */
    char *row;
    size_t row_used, row_length, row_room;
    bool row_cut; /* the last row has lost bytes */
};

/* ---- comments ---- */

/* A statement after which the tables may have other rows than the dump shows. */
static bool not_read(sl_sql_dump *dump, uint64_t line, const char *what) {
    return sl_sql_fail(&dump->text, line,
                       "%s is not read, and may add or change rows: run the statements in a "
                       "database, and export that (docs/from-sql.md)",
                       what);
}

/* Skips a comment between statements, in which MySQL may execute a statement without rows. */
static void skip_comment(sl_sql_dump *dump) {
    static const char changes[] = "INSERT|REPLACE|UPDATE|DELETE|TRUNCATE|LOAD|RENAME|CALL|WITH";
    sl_sql_text *text = &dump->text;
    const uint64_t line = sl_sql_line(text);
    sl_sql_token token;
    /* No server has this version: none reads the text. */
    const bool never = sl_sql_follows(text, "/*!99999") || sl_sql_follows(text, "/*M!999999");
    if (never || !sl_sql_is_executed(text)) {
        sl_sql_skip_comment(text);
        return;
    }
    sl_sql_note_mode(text, "*/");
    text->used += strlen("/*");
    bool first = true; /* of its words */
    do {               /* its text may have strings, and comments */
        sl_sql_next(text, &token);
        if (first && sl_sql_is_one_of(&token, changes))
            not_read(dump, line, "a statement in a comment that MySQL executes");
        first = first && (token.kind == SL_SQL_MARK || sl_sql_is(&token, "M"));
        sl_sql_skip_blanks(text);
    } while (token.kind != SL_SQL_END && !sl_sql_follows(text, "*/"));
    if (token.kind == SL_SQL_END)
        sl_sql_fail(text, line, "the comment that begins here has no end: the dump is cut off");
    else
        text->used += strlen("*/");
}

/* Skips blanks and comments between statements. */
static void skip_to_statement(sl_sql_dump *dump) {
    sl_sql_text *text = &dump->text;
    if (sl_sql_position(text) == 0) {
        sl_sql_fill(text, MARKS_MAX);
        text->used += sl_byte_order_mark((sl_text){(const char *)text->buffer, text->length});
    }
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0;) {
        if (byte == ';' || byte == ' ' || (byte >= '\t' && byte <= '\r')) {
            text->used++;
            continue;
        }
        if (sl_sql_follows(text, text->rules.terminator)) { /* on a comment of MySQL, for example */
            text->used += strlen(text->rules.terminator);
            continue;
        }
        if (byte == '-' || byte == '/')
            sl_sql_note_comment(text);
        if ((byte == '-' && sl_sql_peek(text, 1) == '-') || sl_sql_follows(text, SL_SQL_WARNING))
            sl_sql_skip_line(text);
        else if (byte == '/' && sl_sql_peek(text, 1) == '*')
            skip_comment(dump); /* one comment: the next one may be read */
        else if (byte == '#') {
            text->rules.mysql = true;
            sl_sql_skip_line(text);
        } else
            return;
    }
}

/* ---- statements that are passed over ---- */

static void count_kind(sl_sql_dump *dump, const char *first, const char *second) {
    char kind[KIND_ROOM];
    size_t i = 0;
    snprintf(kind, sizeof kind, "%.18s%s%.18s", first, *second ? " " : "", second);
    for (char *at = kind; *at; at++)
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at & ~0x20) : *at;
    while (i < dump->kind_count && strcmp(dump->kinds[i].kind, kind) != 0)
        i++;
    if (i == KINDS_MAX)
        snprintf(dump->kinds[--i].kind, KIND_ROOM, "OTHER");
    else if (i == dump->kind_count)
        snprintf(dump->kinds[dump->kind_count++].kind, KIND_ROOM, "%s", kind);
    dump->kinds[i].count++;
}

char *sl_sql_dump_passed_over(const sl_sql_dump *dump, char *out, size_t room) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < dump->kind_count; i++)
        used += sl_print_text(out + used, room - used, "%s%llu %s", i > 0 ? ", " : "",
                              (unsigned long long)dump->kinds[i].count, dump->kinds[i].kind);
    return out;
}

static bool cut_off(sl_sql_dump *dump, uint64_t line, const char *what) {
    return sl_sql_fail(&dump->text, line,
                       "the dump is cut off within %s that begins here: export it again", what);
}

/* Skips to the end of a statement, which is not read if it has one of these words: it is then
 * `what`. */
static bool skip_without(sl_sql_dump *dump, uint64_t line, const char *words, const char *what) {
    bool found = false;
    if (!sl_sql_skip_statement(&dump->text, SL_SQL_ALONE, words, &found))
        return cut_off(dump, line, "the statement");
    return !found || not_read(dump, line, what);
}

static bool skip_statement(sl_sql_dump *dump, uint64_t line) {
    return skip_without(dump, line, NULL, NULL);
}

/* Skips to the end of a statement whose last token has been read. */
static bool end_statement(sl_sql_dump *dump, uint64_t line, const sl_sql_token *last) {
    return sl_sql_is(last, ";") || (sl_sql_ends(&dump->text, last) && skip_statement(dump, line));
}

static bool skip_insert(sl_sql_dump *dump) {
    return skip_without(dump, dump->line, "UPDATE",
                        "an INSERT statement that updates rows (ON DUPLICATE KEY, ON CONFLICT)");
}

/* The statements that add no rows. */
#define HARMLESS                                                                                   \
    "SET|SELECT|DROP|COMMENT|GRANT|REVOKE|BEGIN|COMMIT|START|LOCK|UNLOCK|USE|ANALYZE|PRAGMA|"      \
    "REFRESH|SECURITY|ROLLBACK|END|REINDEX|VACUUM|OPTIMIZE|FLUSH|CHANGE|REASSIGN|RESET|SHOW|"      \
    "DELETE|TRUNCATE|CHECKPOINT|SAVEPOINT|RELEASE"

/* A dump of SQLite is one transaction; ROLLBACK ends it if the database could not be read. */
static void note_transaction(sl_sql_dump *dump, const sl_sql_token *first) {
    sl_sql_text *text = &dump->text;
    sl_sql_skip_blanks(text);
    const bool transaction = sl_sql_follows(text, "TRANSACTION");
    text->rules.begin_transaction |= sl_sql_is(first, "BEGIN") && transaction;
    text->rules.mysql = text->rules.mysql ||
                        (sl_sql_is(first, "USE") && sl_sql_peek(text, 0) != '[') ||
                        (sl_sql_is_one_of(first, "LOCK|UNLOCK") && sl_sql_follows(text, "TABLES"));
    if (sl_sql_is(first, "PRAGMA"))
        text->rules.sqlite = text->rules.brackets = true;
    if (sl_sql_is(first, "BEGIN") || (sl_sql_is(first, "START") && transaction)) {
        if (dump->open && text->rules.sqlite)
            sl_sql_fail(text, sl_sql_line(text),
                        "the transaction before this line has no COMMIT: the dump before is cut "
                        "off: export it again");
        dump->open = true;
    } else if (sl_sql_is_one_of(first, "COMMIT|END|ROLLBACK"))
        dump->open = false;
}

/* ---- CREATE, ALTER ---- */

static size_t hash_of(const char *name) {
    return sl_process_hash(name) % HASHES;
}

static sl_sql_table *table_named(const sl_sql_dump *dump, const char *name) {
    sl_sql_table *table = dump->by_hash[hash_of(name)];
    while (table && strcmp(table->name, name) != 0)
        table = table->alike;
    return table;
}

/* Adds a table, or empties the one of that name. NULL with error. */
static sl_sql_table *add_table(sl_sql_dump *dump, const char *name) {
    sl_sql_table *table = table_named(dump, name), **first = &dump->by_hash[hash_of(name)];
    sl_sql_table *next = table ? table->next : dump->tables, *alike = table ? table->alike : *first;
    if (table)
        sl_sql_table_clear(table);
    else if (dump->table_count++ == TABLES_MAX)
        return sl_sql_fail(&dump->text, sl_sql_line(&dump->text),
                           "the dump has more than %u tables: export fewer", TABLES_MAX),
               NULL;
    else if (!(table = malloc(sizeof *table)))
        return sl_error_memory(dump->text.error, "reading an SQL dump"), NULL;
    else
        dump->tables = *first = table;
    *table = (sl_sql_table){.next = next, .alike = alike, .name = strdup(name)};
    if (!table->name)
        sl_error_memory(dump->text.error, "reading an SQL dump");
    return table->name ? table : NULL;
}

/* Skips words such as IF NOT EXISTS and ONLY before a name. */
static void skip_words(sl_sql_text *text, sl_sql_token *token, const char *words) {
    while (sl_sql_is_one_of(token, words))
        sl_sql_next_name(text, token);
}

/* Fails if a table that is created, changed, dropped or emptied has had rows: they were those of
 * another database, or are not in the table. */
static bool had_no_rows(sl_sql_dump *dump, uint64_t line, const char *name) {
    char shown[80];
    sl_text_printable(sl_text_of(name), shown, sizeof shown);
    return !sl_path_set_has(&dump->seen, name) ||
           sl_sql_fail(&dump->text, line,
                       "the table %s, whose rows are above, is created, changed or emptied here: "
                       "export one database at a time, and no statements that change its rows",
                       shown);
}

/* DROP TABLE, DELETE FROM, TRUNCATE. */
static bool read_removal(sl_sql_dump *dump, uint64_t line, const sl_sql_token *first) {
    sl_sql_text *text = &dump->text;
    const bool drop = sl_sql_is(first, "DROP"), joins = sl_sql_is(first, "DELETE");
    sl_sql_token token;
    char name[SL_SQL_TABLE_NAME_ROOM];
    sl_sql_next(text, &token);
    bool tables = !drop || sl_sql_is(&token, "TABLE");
    skip_words(text, &token, "LOW_PRIORITY|QUICK|IGNORE");
    if (joins && !sl_sql_is(&token, "FROM") && dump->begun)
        return not_read(dump, line, "DELETE of several tables");
    skip_words(text, &token, "TABLE|IF|EXISTS|FROM|ONLY");
    while (tables && sl_sql_table_name(text, &token, name)) {
        if (!had_no_rows(dump, line, name))
            return false;
        tables = sl_sql_is(&token, ",");
        if (tables)
            sl_sql_next(text, &token);
        skip_words(text, &token, "ONLY");
    }
    return end_statement(dump, line, &token);
}

static bool is_selected(const sl_sql_dump *dump, const char *name) {
    return !dump->include || fnmatch(dump->include, name, 0) == 0;
}

/* Reads the names of the tables after INHERITS or PARTITION OF, if it follows. */
static bool read_parents(sl_sql_dump *dump, sl_sql_token *token, sl_sql_table *table) {
    char name[SL_SQL_TABLE_NAME_ROOM];
    size_t inherited = 0;
    const bool part = sl_sql_is(token, "PARTITION");
    sl_sql_skip_blanks(&dump->text);
    if (!(part || sl_sql_is(token, ")")) || !sl_sql_follows(&dump->text, part ? "OF" : "INHERITS"))
        return true;
    sl_sql_next(&dump->text, token);
    if (!part)
        sl_sql_next(&dump->text, token); /* the parenthesis */
    do {
        sl_sql_next_name(&dump->text, token);
        const sl_sql_table *parent =
            sl_sql_table_name(&dump->text, token, name) ? table_named(dump, name) : NULL;
        if (parent && parent != table &&
            !sl_sql_table_inherit(&dump->text, table, parent, &inherited))
            return false;
    } while (sl_sql_is(token, ","));
    return true;
}

static bool read_create(sl_sql_dump *dump, uint64_t line) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    char name[SL_SQL_TABLE_NAME_ROOM];
    sl_sql_next(text, &token);
    skip_words(text, &token, "TEMP|TEMPORARY|UNLOGGED|GLOBAL|LOCAL|OR|REPLACE");
    if (sl_sql_is(&token, "DEFINER")) { /* =`root`@`localhost` TRIGGER, in MySQL */
        text->rules.mysql = true;
        while (token.kind != SL_SQL_END &&
               !sl_sql_is_one_of(&token, "TRIGGER|FUNCTION|PROCEDURE|EVENT|SQL|VIEW"))
            sl_sql_next(text, &token);
    }
    count_kind(dump, "CREATE", token.kind == SL_SQL_WORD ? token.text : "");
    const bool body = sl_sql_is_one_of(&token, "TRIGGER|FUNCTION|PROCEDURE") &&
                      strcmp(text->rules.terminator, ";") == 0;
    if (sl_sql_is(&token, "TABLE")) {
        sl_sql_note_definition(text, dump->statement + INSERT_HEAD_MAX);
        sl_sql_next_name(text, &token);
        skip_words(text, &token, "IF|NOT|EXISTS");
        name[0] = '\0';
        if (sl_sql_table_name(text, &token, name)) {
            sl_sql_table *table = had_no_rows(dump, line, name) ? add_table(dump, name) : NULL;
            if (!table || !sl_sql_table_read(text, &token, table) ||
                !read_parents(dump, &token, table) ||
                (is_selected(dump, name) && !sl_sql_table_check_names(text, table, line)))
                return false;
            sl_sql_skip_blanks(text);
            text->rules.mysql =
                text->rules.mysql || (table->count > 0 && sl_sql_follows(text, "ENGINE"));
        }
        if (sl_sql_is(&token, ";"))
            return true;
        const char *words = is_selected(dump, name) ? "AS|SELECT" : NULL;
        return words && sl_sql_is_one_of(&token, words)
                   ? not_read(dump, line, "CREATE TABLE ... SELECT")
                   : skip_without(dump, line, words, "CREATE TABLE ... SELECT");
    }
    const bool contains = sl_sql_is_one_of(&token, "TRIGGER|FUNCTION|PROCEDURE|EVENT|RULE|"
                                                   "CONSTRAINT|PACKAGE|AGGREGATE");
    const sl_sql_extent extent = contains ? SL_SQL_CONTAINS : SL_SQL_ALONE;
    return sl_sql_skip_statement(text, body ? SL_SQL_BODY : extent, NULL, NULL) ||
           cut_off(dump, line, "the statement");
}

/* ALTER TABLE ... ADD CONSTRAINT ... PRIMARY KEY (...), as pg_dump writes it. */
static bool read_alter(sl_sql_dump *dump, uint64_t line) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    char name[SL_SQL_TABLE_NAME_ROOM];
    int depth = 0;
    sl_sql_next(text, &token);
    count_kind(dump, "ALTER", token.kind == SL_SQL_WORD ? token.text : "");
    if (!sl_sql_is(&token, "TABLE"))
        return end_statement(dump, line, &token);
    sl_sql_next_name(text, &token);
    skip_words(text, &token, "IF|EXISTS|ONLY");
    sl_sql_table *table = sl_sql_table_name(text, &token, name) ? table_named(dump, name) : NULL;
    bool begins = table && is_selected(dump, name); /* a change */
    while (table && token.kind != SL_SQL_END && !sl_sql_is(&token, ";") &&
           sl_sql_ends(text, &token)) {
        if (begins && sl_sql_is(&token, "MODIFY") && !sl_path_set_has(&dump->seen, name))
            table->altered = line; /* after rows it has the same type, as phpMyAdmin writes it */
        if (begins && sl_sql_alters_rows(text, &token)) {
            table->altered = line;
            if (!had_no_rows(dump, line, name))
                return false;
        }
        const bool primary = sl_sql_is(&token, "PRIMARY");
        depth += sl_sql_is(&token, "(") - sl_sql_is(&token, ")");
        begins = depth == 0 && sl_sql_is(&token, ",") && is_selected(dump, name);
        sl_sql_next(text, &token);
        if (primary && sl_sql_is(&token, "KEY") && sl_sql_table_read_key(text, &token, table))
            sl_sql_next(text, &token);
    }
    return end_statement(dump, line, &token);
}

/* ---- the columns of the current table ---- */

/* Reads the names of columns up to the closing parenthesis, whose opening one has been read. */
static bool read_columns(sl_sql_dump *dump, const sl_sql_table *table) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    const sl_sql_column *column = NULL;
    dump->column_count = 0;
    do {
        sl_sql_next_name(text, &token);
        column = sl_sql_is_any_name(&token) ? sl_sql_table_column(table, column, token.text) : NULL;
        if (!column || dump->column_count == SL_SQL_COLUMNS_MAX)
            return sl_sql_fail(
                text, dump->line,
                "the rows have a column %.100s, which the CREATE TABLE of %.100s does "
                "not have",
                token.text, table->name);
        dump->columns[dump->column_count++] = column;
        sl_sql_next(text, &token);
    } while (sl_sql_is(&token, ","));
    return sl_sql_is(&token, ")") || cut_off(dump, dump->line, "the statement");
}

/* Takes the columns of the rows of a table: those of the list that may begin with `token`, or all
 * that are not generated. */
static bool take_columns(sl_sql_dump *dump, const sl_sql_table *table, sl_sql_token *token) {
    dump->listed = token && sl_sql_is(token, "(");
    if (dump->listed) {
        if (!read_columns(dump, table))
            return false;
        sl_sql_next(&dump->text, token);
        return true;
    }
    dump->column_count = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!table->columns[i].generated)
            dump->columns[dump->column_count++] = &table->columns[i];
    }
    return true;
}

/* The table as CREATE TABLE defines it. */
static const sl_sql_table *definition(const sl_sql_dump *dump, const char *name) {
    return dump->known && strcmp(dump->known->name, name) == 0 ? dump->known
                                                               : table_named(dump, name);
}

/* Rows of another table begin: those of the table before end here, unless more of them follow. */
static void note_end(sl_sql_dump *dump) {
    if (dump->begun && dump->begun->rows.end == UINT64_MAX)
        dump->begun->rows.end = dump->statement;
}

/* Notes where the rows of a table begin. */
static void note_rows(sl_sql_dump *dump, const char *name) {
    const sl_sql_text *text = &dump->text;
    note_end(dump);
    dump->begun = table_named(dump, name);
    sl_sql_rows *rows = &dump->begun->rows;
    *rows = (sl_sql_rows){
        .begin = dump->statement, .end = UINT64_MAX, .lines = dump->line - 1, .rules = text->rules};
}

/* Moves to the rows of the known table. */
static void go_to_rows(sl_sql_dump *dump) {
    const sl_sql_rows *rows = &dump->known->rows;
    sl_sql_seek(&dump->text, rows->begin, rows->lines);
    dump->text.rules = rows->rules;
}

/* Begins the rows of a table. `token` follows on its name: the list of columns may begin there. */
static bool begin_table(sl_sql_dump *dump, const char *name, sl_sql_token *token) {
    sl_sql_text *text = &dump->text;
    char shown[80];
    sl_text_printable(sl_text_of(name), shown, sizeof shown);
    snprintf(dump->next_name, sizeof dump->next_name, "%s", name);
    const sl_sql_table *table = definition(dump, name);
    if (!table || table->count == 0)
        return sl_sql_fail(text, dump->line,
                           "the dump has rows of the table %s, but no CREATE TABLE with its "
                           "columns: export it with the definitions (without --data-only, "
                           "--no-create-info)",
                           shown);
    if (table->altered)
        return sl_sql_fail(text, table->altered,
                           "ALTER TABLE changes the columns of the table %s: run the statements in "
                           "a database, and export that",
                           shown);
    switch (sl_path_set_add(&dump->seen, name)) {
    case SL_PATH_NEW:
        break;
    case SL_PATH_NO_MEMORY:
        return sl_error_memory(text->error, "reading an SQL dump");
    default:
        return sl_sql_fail(text, dump->line,
                           "rows of the table %s follow a second time: export one database at a "
                           "time, and partitions without --load-via-partition-root",
                           shown);
    }
    if (!dump->known)
        note_rows(dump, name);
    if (!take_columns(dump, table, token) || text->failed)
        return false;
    size_t stored = 0;
    for (size_t i = 0; i < table->count; i++)
        stored += !table->columns[i].generated;
    if (dump->begun)
        dump->begun->rows.partial = dump->column_count < stored;
    free(dump->next_schema);
    dump->next_schema =
        sl_sql_table_schema(dump->columns, dump->column_count,
                            dump->text.rules.sqlite ? SL_SQL_SCHEMA_ANY : SL_SQL_SCHEMA_COPY);
    return dump->next_schema || sl_error_memory(text->error, "reading an SQL dump");
}

/* ---- COPY ---- */

/* Does the line \. follow? */
static bool is_end_mark(sl_sql_text *text) {
    if (sl_sql_peek(text, 0) != '\\' || sl_sql_peek(text, 1) != '.')
        return false;
    int after = sl_sql_peek(text, 2);
    return after < 0 || after == '\n' || (after == '\r' && sl_sql_peek(text, 3) == '\n');
}

/* Copies the next text of the block, up to `room` bytes; `out` NULL: skips it. *got 0: the block
 * has ended. */
static bool fetch_copy(sl_sql_dump *dump, unsigned char *out, size_t room, size_t *got) {
    sl_sql_text *text = &dump->text;
    *got = 0;
    if (dump->at_line && is_end_mark(text)) {
        sl_sql_skip_line(text);
        dump->data = DATA_NONE;
        return true;
    }
    if (sl_sql_peek(text, 0) < 0)
        return sl_sql_fail(text, dump->line,
                           "the rows of %s, which begin here, have no end (\\.): the dump is cut "
                           "off: export it again",
                           dump->shown);
    const unsigned char *at = text->buffer + text->used;
    size_t length = text->length - text->used;
    if (out && length > room)
        length = room;
    const unsigned char *line = at, *end = at + length;
    sl_sql_line(text); /* counts the lines before; those of the rows are counted here */
    while ((line = memchr(line, '\n', (size_t)(end - line))) != NULL) {
        line++;
        text->lines++;
        if (end - line >= 2 && line[0] == '\\' && line[1] == '.')
            break;
    }
    if (line)
        length = (size_t)(line - at);
    else if (length >= 2 && at[length - 2] == '\n' && at[length - 1] == '\\')
        length--;
    if (out)
        memcpy(out, at, length);
    dump->at_line = at[length - 1] == '\n';
    text->used += length;
    text->counted = text->used;
    *got = length;
    return true;
}

static bool skip_copy(sl_sql_dump *dump) {
    size_t got;
    while (dump->data == DATA_COPY) {
        if (!fetch_copy(dump, NULL, 0, &got))
            return false;
    }
    return true;
}

/* COPY table (columns) FROM stdin; and the line end. */
static bool read_copy(sl_sql_dump *dump, bool *selected) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    char name[SL_SQL_TABLE_NAME_ROOM];
    sl_sql_next(text, &token);
    if (!sl_sql_table_name(text, &token, name))
        return sl_sql_fail(text, dump->line, "this COPY statement is not understood");
    *selected = is_selected(dump, name);
    if (*selected && !begin_table(dump, name, &token))
        return false;
    while (!*selected && token.kind != SL_SQL_END && !sl_sql_is(&token, "FROM"))
        sl_sql_next(text, &token);
    bool from = sl_sql_is(&token, "FROM");
    sl_sql_next(text, &token);
    bool input = from && sl_sql_is(&token, "stdin");
    sl_sql_next(text, &token);
    if (token.kind == SL_SQL_END)
        return cut_off(dump, dump->line, "the COPY statement");
    if (!input || !sl_sql_is(&token, ";"))
        return sl_sql_fail(text, dump->line,
                           "COPY is read only as pg_dump writes it: COPY TABLE (COLUMNS) FROM "
                           "stdin;");
    sl_sql_skip_line(text);
    text->rules.nests = true;
    dump->data = DATA_COPY;
    dump->at_line = true;
    dump->row_line = sl_sql_line(text);
    if (!*selected)
        note_end(dump);
    return *selected || skip_copy(dump);
}

/* ---- INSERT ---- */

static bool row_room(sl_sql_dump *dump, size_t more) {
    if (dump->row_room - dump->row_length >= more)
        return true;
    size_t room = dump->row_room * 2 > dump->row_length + more
                      ? dump->row_room * 2
                      : dump->row_length + more + OUTPUT_BYTES;
    char *row = realloc(dump->row, room);
    if (!row)
        return sl_error_memory(dump->text.error, "reading an SQL dump") ||
               !(dump->text.failed = dump->text.ended = true);
    dump->row = row;
    dump->row_room = room;
    return true;
}

static void put_text(sl_sql_dump *dump, const char *bytes, size_t length) {
    dump->row_cut = dump->row_cut || dump->row_length >= ROW_BYTES_MAX;
    if (length > 0 && !dump->row_cut && row_room(dump, length)) {
        memcpy(dump->row + dump->row_length, bytes, length);
        dump->row_length += length;
    }
}

static void put_byte(sl_sql_dump *dump, char byte) {
    put_text(dump, &byte, 1);
}

/* Writes a byte of a value, with the escapes of COPY text, or as hexadecimal digits. */
static void put_value_byte(sl_sql_dump *dump, unsigned char byte, bool digits) {
    static const char hex[] = "0123456789abcdef", special[] = "\t\n\r\\", letters[] = "tnr\\";
    if (digits) {
        put_byte(dump, hex[byte >> 4]);
        put_byte(dump, hex[byte & 15]);
        return;
    }
    const char *found = byte ? strchr(special, byte) : NULL;
    if (found) {
        put_byte(dump, '\\');
        put_byte(dump, letters[found - special]);
    } else if (byte) {
        put_byte(dump, (char)byte);
    } else {
        put_text(dump, "\\000", 4);
    }
}

/* The number of bytes that are the same in COPY text, in a string of SQL. */
static size_t plain_bytes(const unsigned char *at, size_t length) {
    static const bool ends[256] = {
        [0] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true, ['\\'] = true, ['\''] = true};
    size_t i = 0;
    while (i < length && !ends[at[i]])
        i++;
    return i;
}

/* Reads the rest of an escape, after its backslash, in unistr('\u000a\\') of SQLite's dumps. */
static bool read_unistr_escape(sl_sql_dump *dump, int *byte) {
    sl_sql_text *text = &dump->text;
    const size_t digits = sl_sql_follows(text, "\\") ? 0 : 4;
    int code = digits ? 0 : '\\', digit = 0;
    if (sl_sql_peek(text, digits) < 0)
        return cut_off(dump, dump->line, "the INSERT statement");
    for (size_t i = 1; digit >= 0 && i <= digits; i++) {
        digit = sl_hex_digit((char)sl_sql_peek(text, i));
        code = code << 4 | digit;
    }
    if (code < 0 || code >= 0x80 ||
        (digits && sl_sql_peek(text, 0) != 'u')) /* a control character */
        return sl_sql_fail(text, dump->line, "this call of unistr() is not understood");
    *byte = code;
    text->used += 1 + digits;
    return true;
}

typedef enum string_kind { STRING_PLAIN = false, STRING_ESCAPES = true, STRING_UNISTR } string_kind;

/* Reads a string whose opening quote has been read. */
static bool read_string(sl_sql_dump *dump, string_kind kind, bool digits) {
    sl_sql_text *text = &dump->text;
    for (int byte; (byte = sl_sql_peek(text, 0)) >= 0;) {
        if (!digits) {
            size_t plain = plain_bytes(text->buffer + text->used, text->length - text->used);
            put_text(dump, (const char *)text->buffer + text->used, plain);
            text->used += plain;
            if ((byte = sl_sql_peek(text, 0)) < 0)
                break;
        }
        text->used++;
        if (byte == '\'' && sl_sql_peek(text, 0) != '\'')
            return true;
        if (byte == '\'') {
            text->used++;
        } else if (byte == '\\' && kind == STRING_UNISTR) {
            if (!read_unistr_escape(dump, &byte))
                return false;
        } else if (byte == '\\' && kind == STRING_ESCAPES && (byte = sl_sql_peek(text, 0)) >= 0) {
            text->used++;
            if (!text->rules.mysql && !sl_sql_read_escape(text, &byte))
                return sl_sql_fail(text, sl_sql_line(text),
                                   "a value of the table %s is not understood: \\%c in a string",
                                   dump->shown, byte);
            if (text->rules.mysql && (byte == '%' || byte == '_'))
                put_value_byte(dump, '\\', digits);
            byte = text->rules.mysql ? sl_sql_escaped_byte(byte) : byte;
        }
        put_value_byte(dump, (unsigned char)byte, digits);
    }
    return cut_off(dump, dump->line, "the INSERT statement");
}

/* Reads hexadecimal digits up to another byte. */
static void read_digits(sl_sql_dump *dump) {
    for (int byte; (byte = sl_sql_peek(&dump->text, 0)) >= 0 && sl_hex_digit((char)byte) >= 0;) {
        put_byte(dump, (char)byte);
        dump->text.used++;
    }
}

static bool expect(sl_sql_dump *dump, char mark) {
    const char word[2] = {mark, '\0'};
    sl_sql_skip_blanks(&dump->text);
    if (sl_sql_follows(&dump->text, word)) {
        dump->text.used++;
        return true;
    }
    if (sl_sql_peek(&dump->text, 0) < 0)
        return cut_off(dump, dump->line, "the INSERT statement");
    return sl_sql_fail(&dump->text, sl_sql_line(&dump->text),
                       "a value of the table %s is not understood: `%s` is missing", dump->shown,
                       word);
}

static bool read_value(sl_sql_dump *dump, const sl_sql_column *column);

/* replace(VALUE, 'from', char(N)), as .dump of SQLite writes line ends: replaces within the value
 * that has been written. */
static bool read_replace(sl_sql_dump *dump, const sl_sql_column *column) {
    sl_sql_text *text = &dump->text;
    const size_t start = dump->row_length;
    sl_sql_token from, number;
    if (!expect(dump, '(') || !read_value(dump, column) || !expect(dump, ','))
        return false;
    sl_sql_next(text, &from);
    if (!expect(dump, ','))
        return false;
    sl_sql_next(text, &number);
    bool call = sl_sql_is(&number, "char") && expect(dump, '(');
    unsigned code = 0;
    for (int byte; call && (byte = sl_sql_peek(text, 0)) >= 0 && sl_is_digit((char)byte);
         text->used++)
        code = code < 0x80 ? code * 10 + (unsigned)(byte - '0') : code;
    /* The result is not longer than the value: COPY text has two bytes for a line end. */
    if (!call || code == 0 || code >= 0x80 || from.kind != SL_SQL_STRING || from.cut ||
        from.length < 2 || strpbrk(from.text, "\t\n\r") || !expect(dump, ')') || !expect(dump, ')'))
        return sl_sql_fail(text, sl_sql_line(text), "this call of replace() is not understood");
    /* In COPY text, backslashes of the value are doubled. */
    char pattern[2 * SL_SQL_NAME_MAX];
    size_t length = 0, to = start;
    for (size_t i = 0; i < from.length; i++) {
        pattern[length++] = from.text[i];
        if (from.text[i] == '\\')
            pattern[length++] = '\\';
    }
    const size_t end = dump->row_length;
    for (size_t at = start; at < end;) {
        bool here = end - at >= length && memcmp(dump->row + at, pattern, length) == 0;
        size_t step = here ? length : dump->row[at] == '\\' && at + 1 < end ? 2 : 1;
        if (here) {
            dump->row_length = to;
            put_value_byte(dump, (unsigned char)code, false);
            to = dump->row_length;
        } else {
            memmove(dump->row + to, dump->row + at, step);
            to += step;
        }
        at += step;
    }
    dump->row_length = to;
    return true;
}

static void put_prefix(sl_sql_dump *dump, const sl_sql_column *column) {
    if (column->class != SL_SQL_DIGITS)
        put_text(dump, "\\\\x", 3);
}

/* Reads '0101' of MySQL, after the letter b, as bytes. */
static bool read_bits(sl_sql_dump *dump, const sl_sql_column *column) {
    sl_sql_text *text = &dump->text;
    uint64_t bits = 0;
    unsigned count = 0;
    text->used++;
    for (int byte; (byte = sl_sql_peek(text, 0)) == '0' || byte == '1'; text->used++, count++)
        bits = bits << 1 | (byte == '1');
    if (count > 64)
        return sl_sql_fail(text, sl_sql_line(text), "a value of the table %s has more than 64 bits",
                           dump->shown);
    put_prefix(dump, column);
    for (unsigned left = (count + 7) / 8; left-- > 0;)
        put_value_byte(dump, (unsigned char)(bits >> 8 * left), true);
    return expect(dump, '\'');
}

/* Reads a value that begins with a word: NULL, TRUE, X'00ff', _binary '...', a function. */
static bool read_word_value(sl_sql_dump *dump, const sl_sql_column *column) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    sl_sql_next(text, &token);
    const bool string = sl_sql_peek(text, 0) == '\'';
    if (++dump->words > WORDS_MAX)
        return sl_sql_fail(text, sl_sql_line(text),
                           "a value of the table %s is not understood: too many calls",
                           dump->shown);
    if (sl_sql_is(&token, "NULL") || (sl_sql_is(&token, "DEFAULT") && column->generated)) {
        put_text(dump, "\\N", 2);
    } else if (sl_sql_is(&token, "TRUE") || sl_sql_is(&token, "FALSE")) {
        put_byte(dump, token.text[0] == 'T' || token.text[0] == 't' ? '1' : '0');
    } else if (string && sl_sql_is(&token, "X")) {
        text->used++;
        put_prefix(dump, column);
        read_digits(dump);
        return expect(dump, '\'');
    } else if (string && sl_sql_is(&token, "B") && column->class == SL_SQL_BYTES) {
        return read_bits(dump, column);
    } else if (string && (sl_sql_is(&token, "N") || sl_sql_is(&token, "B"))) {
        text->used++;
        return read_string(dump, (string_kind)sl_sql_escapes(text), false);
    } else if (token.text[0] == '_') { /* a character set of MySQL */
        return read_value(dump, column);
    } else if (sl_sql_is(&token, "replace")) {
        return read_replace(dump, column);
    } else if (sl_sql_is(&token, "unistr")) {
        return expect(dump, '(') && expect(dump, '\'') && read_string(dump, STRING_UNISTR, false) &&
               expect(dump, ')');
    } else if (sl_sql_is(&token, "Inf") || sl_sql_is(&token, "NaN")) {
        put_text(dump, token.text, token.length);
    } else if (sl_sql_peek(text, 0) < 0) {
        return cut_off(dump, dump->line, "the INSERT statement");
    } else if (sl_sql_is(&token, "DEFAULT")) {
        return sl_sql_fail(text, sl_sql_line(text),
                           "DEFAULT is a value of the table %s that only a database has: run the "
                           "statements in a database, and export that",
                           dump->shown);
    } else {
        return sl_sql_fail(text, sl_sql_line(text),
                           "a value of the table %s is not understood: %.40s", dump->shown,
                           token.text);
    }
    return true;
}

static bool is_number_byte(unsigned char byte) {
    return sl_is_digit((char)byte) || byte == '.' || byte == '-' || byte == '+' ||
           (byte | 0x20) == 'e';
}

static bool read_value(sl_sql_dump *dump, const sl_sql_column *column) {
    sl_sql_text *text = &dump->text;
    sl_sql_skip_blanks(text);
    const int byte = sl_sql_peek(text, 0), next = sl_sql_peek(text, 1);
    if (byte == '\'') {
        const bool digits = text->rules.mysql && column->class != SL_SQL_TEXT;
        if (digits)
            put_prefix(dump, column);
        text->used++;
        return read_string(dump, (string_kind)sl_sql_escapes(text), digits);
    }
    if ((byte | 0x20) == 'e' && next == '\'') {
        text->used += 2;
        return read_string(dump, STRING_ESCAPES, false);
    }
    if (byte == '0' && next == 'x') {
        text->used += 2;
        put_prefix(dump, column);
        read_digits(dump);
        return true;
    }
    if (byte != '-' && byte != '+' && byte != '.' && (byte < '0' || byte > '9'))
        return byte < 0 ? cut_off(dump, dump->line, "the INSERT statement")
                        : read_word_value(dump, column);
    const size_t start = dump->row_length;
    do {
        const unsigned char *begin = text->buffer + text->used, *at = begin;
        while (at < text->buffer + text->length && is_number_byte(*at))
            at++;
        put_text(dump, (const char *)begin, (size_t)(at - begin));
        text->used += (size_t)(at - begin);
    } while (text->used == text->length && sl_sql_peek(text, 0) >= 0);
    if (dump->text.rules.sqlite && dump->row_length - start >= 5 &&
        memcmp(dump->row + dump->row_length - 3, "999", 3) == 0 &&
        memchr(dump->row + start, 'e', dump->row_length - start)) { /* 1e999 is infinity */
        dump->row_length = start + (dump->row[start] == '-');
        put_text(dump, "Infinity", 8);
    } else if (dump->text.rules.sqlite) {
        dump->row_length = start + sl_sql_shorten(dump->row + start, dump->row_length - start);
    }
    return true;
}

/* Copies a string, whose opening quote is before `at`, as COPY text to `*to`. Returns the position
 * after the closing quote; NULL: it has bytes that read_string must read, or is not complete. */
static const unsigned char *copy_string(const sl_sql_text *text, const unsigned char *at,
                                        char **to) {
    static const unsigned char marks[256] = {
        [0] = 1, ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\', ['\''] = '\''};
    char *out = *to;
    for (;;) {
        unsigned char mark;
        while ((mark = marks[*at]) == 0)
            *out++ = (char)*at++;
        if (mark == '\'') {
            if (at[1] != '\'') {
                *to = out;
                return at + 1 < text->buffer + text->length ? at + 1 : NULL;
            }
            *out++ = '\'';
            at += 2;
        } else if (mark == '\\' && sl_sql_escapes(text)) {
            const unsigned char letter = at[1];
            if (letter == 'n' || letter == 'r' || letter == 't' || letter == '\\')
                *out++ = '\\';
            else if (letter != '"' && letter != '\'')
                return NULL;
            *out++ = (char)letter;
            at += 2;
        } else if (mark != 1) {
            *out++ = '\\';
            *out++ = (char)mark;
            at++;
        } else {
            return NULL;
        }
    }
}

/* Reads the values of a row from number *i on as long as they are NULL, plain numbers and strings,
 * and buffered. True: that was the last one, and the parenthesis after it. */
static bool read_usual_values(sl_sql_dump *dump, size_t *i) {
    sl_sql_text *text = &dump->text;
    const size_t left = text->length - text->used;
    if (left == 0 || dump->row_cut || dump->row_length >= ROW_BYTES_MAX ||
        !row_room(dump, 2 * left + 1))
        return false;
    const unsigned char *at = text->buffer + text->used;
    char *to = dump->row + dump->row_length;
    unsigned char mark = ',';
    for (; mark == ','; ++*i) {
        at += *at == ' ';
        if (*at == '\'') {
            if (text->rules.mysql && *i < dump->column_count &&
                dump->columns[*i]->class != SL_SQL_TEXT)
                break;
            at = copy_string(text, at + 1, &to);
        } else if (*at == 'N' && memcmp(at, "NULL", 4) == 0) {
            memcpy(to, "\\N", 2);
            to += 2;
            at += 4;
        } else if (sl_is_digit((char)at[*at == '-'])) {
            char *number = to;
            do {
                *to++ = (char)*at++;
            } while (sl_is_digit((char)*at) || *at == '.');
            if (text->rules.sqlite)
                to = number + sl_sql_shorten(number, (size_t)(to - number));
        } else {
            break;
        }
        mark = at ? *at : 0;
        if (mark != ',' && mark != ')')
            break;
        *to++ = mark == ',' ? '\t' : '\n';
        text->used = (size_t)(++at - text->buffer);
        dump->row_length = (size_t)(to - dump->row);
    }
    return mark == ')';
}

/* Without a list, the columns lack those that are generated, whose values are DEFAULT in PostgreSQL
 * and MySQL. Skips such a value before the value number i, `skipped` after the one before. */
static bool skip_default(sl_sql_dump *dump, size_t i, size_t skipped) {
    sl_sql_text *text = &dump->text;
    sl_sql_skip_blanks(text);
    if (dump->listed || i > dump->column_count || !sl_sql_follows(text, "DEFAULT"))
        return false;
    const sl_sql_table *table = definition(dump, dump->name);
    const sl_sql_column *from = i > 0 ? dump->columns[i - 1] + 1 : table->columns;
    const sl_sql_column *to =
        i < dump->column_count ? dump->columns[i] : table->columns + table->count;
    if (skipped >= (size_t)(to - from))
        return false;
    text->used += strlen("DEFAULT");
    return true;
}

/* Reads a row, whose opening parenthesis has been read. */
static bool read_row(sl_sql_dump *dump) {
    static const sl_sql_column extra = {.type = "text"};
    sl_sql_text *text = &dump->text;
    dump->row_cut = false;
    for (size_t i = 0, skipped = 0;; i++) {
        dump->words = 0;
        const size_t before = i;
        if (read_usual_values(dump, &i))
            return true;
        skipped = i > before ? 0 : skipped;
        const bool skips = skip_default(dump, i, skipped);
        if (!skips && !read_value(dump, i < dump->column_count ? dump->columns[i] : &extra))
            return false;
        sl_sql_skip_blanks(text);
        int byte = sl_sql_peek(text, 0);
        if (byte != ',' && byte != ')')
            return byte < 0 ? cut_off(dump, dump->line, "the INSERT statement") : expect(dump, ',');
        text->used++;
        skipped = skips ? skipped + 1 : 0;
        if (byte == ')') {
            dump->row_length -= skips && i > 0; /* the tab before it */
            break;
        }
        if (skips)
            i--;
        else
            put_byte(dump, '\t');
    }
    put_byte(dump, '\n');
    if (dump->row_cut && !text->failed) { /* no backslash may escape the line end */
        if (dump->row_length < ROW_BYTES_MAX)
            memset(dump->row + dump->row_length, '.', ROW_BYTES_MAX - dump->row_length);
        dump->row_length = ROW_BYTES_MAX;
        memcpy(dump->row + ROW_BYTES_MAX - 2, ".\n", 2);
    }
    return !text->failed;
}

/* Reads what follows on a row: a comma, or the end of the statement. */
static bool end_row(sl_sql_dump *dump) {
    sl_sql_text *text = &dump->text;
    sl_sql_skip_blanks(text);
    const int byte = sl_sql_peek(text, 0);
    const bool ends = byte == ';' && strcmp(text->rules.terminator, ";") == 0;
    text->used += byte == ',' || ends;
    if (byte == ',')
        return expect(dump, '(');
    dump->in_values = false;
    if (!ends && !skip_insert(dump))
        return false;
    return !text->executable ||
           not_read(dump, dump->line, "a comment among rows that MySQL executes");
}

/* Reads INSERT up to the name of its table, and the token after it. */
static bool read_inserted(sl_sql_dump *dump, sl_sql_token *token, char *name) {
    sl_sql_text *text = &dump->text;
    for (sl_sql_next(text, token);
         sl_sql_is_one_of(token, "IGNORE|OR|REPLACE|ABORT|FAIL|ROLLBACK|LOW_PRIORITY|DELAYED|"
                                 "HIGH_PRIORITY|INTO");
         sl_sql_next_name(text, token))
        dump->replaces = dump->replaces || sl_sql_is_one_of(token, "IGNORE|REPLACE");
    if (token->kind == SL_SQL_NAME && token->quote == '`')
        sl_sql_note_backquote(&dump->text); /* a dump without comments */
    return sl_sql_table_name(text, token, name) ||
           (token->kind == SL_SQL_END
                ? cut_off(dump, dump->line, "the INSERT statement")
                : sl_sql_fail(text, dump->line, "this INSERT statement is not understood"));
}

/* Is it a table in which SQLite keeps data about tables? Other systems allow users such names. */
static bool is_internal(const sl_sql_rules *rules, const char *name) {
    return !rules->mysql && !rules->nests && strncasecmp(name, "sqlite_", 7) == 0;
}

/* Reads OVERRIDING SYSTEM VALUE VALUES ( */
static bool begin_values(sl_sql_dump *dump, sl_sql_token *token) {
    sl_sql_text *text = &dump->text;
    skip_words(text, token, "OVERRIDING|SYSTEM|VALUE|USER");
    if (token->kind == SL_SQL_END)
        return cut_off(dump, dump->line, "the INSERT statement");
    dump->data = DATA_INSERT;
    dump->in_values = true;
    text->executable = false;
    return (sl_sql_is(token, "VALUES") ||
            sl_sql_fail(text, dump->line, "INSERT without VALUES is not read")) &&
           expect(dump, '(');
}

/* Begins an INSERT statement if it has the same words as the last one up to its first row. */
static bool begin_same_insert(sl_sql_dump *dump) {
    sl_sql_text *text = &dump->text;
    if (dump->data != DATA_INSERT || dump->head_length == 0 ||
        !sl_sql_fill(text, dump->head_length) ||
        memcmp(text->buffer + text->used, dump->head, dump->head_length) != 0)
        return false;
    dump->line = sl_sql_line(text);
    text->used += dump->head_length;
    text->executable = false;
    dump->in_values = true;
    return true;
}

/* Begins an INSERT statement. `*other`: it is of another table than the current one. */
static bool begin_insert(sl_sql_dump *dump, bool *other) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    char name[SL_SQL_TABLE_NAME_ROOM];
    *other = false;
    if (!read_inserted(dump, &token, name))
        return false;
    const bool internal = is_internal(&text->rules, name);
    if (internal || !is_selected(dump, name)) {
        if (internal)
            count_kind(dump, "INSERT", "of SQLite");
        note_end(dump);
        return skip_statement(dump, dump->line);
    }
    *other = dump->data != DATA_INSERT || strcmp(name, dump->name) != 0;
    if (*other && !begin_table(dump, name, &token))
        return false;
    if (dump->begun) {
        dump->begun->rows.end = UINT64_MAX;
        dump->begun->rows.replaces = dump->begun->rows.replaces || dump->replaces;
    }
    if (*other)
        return begin_values(dump, &token);
    const sl_sql_column *before[SL_SQL_COLUMNS_MAX];
    const size_t count = dump->column_count;
    memcpy(before, dump->columns, count * sizeof *before);
    if (!take_columns(dump, definition(dump, name), &token))
        return false;
    if (count != dump->column_count || memcmp(before, dump->columns, count * sizeof *before) != 0)
        return sl_sql_fail(text, dump->line,
                           "this INSERT statement has other columns than the first one of %s",
                           dump->shown);
    return begin_values(dump, &token);
}

/* Begins an INSERT statement, whose first word has been read, and keeps its text up to the first
 * row if that is still buffered. */
static bool read_insert(sl_sql_dump *dump, bool *other) {
    const sl_sql_text *text = &dump->text;
    if (!begin_insert(dump, other))
        return false;
    const uint64_t length = sl_sql_position(text) - dump->statement;
    if (!dump->in_values || length > INSERT_HEAD_MAX || dump->statement < text->moved)
        return true;
    dump->head_length = (size_t)length;
    memcpy(dump->head, text->buffer + (dump->statement - text->moved), dump->head_length);
    return true;
}

/* SET standard_conforming_strings = off */
static bool read_setting(sl_sql_dump *dump, uint64_t line) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    sl_sql_note_mode(text, text->rules.terminator);
    sl_sql_next(text, &token);
    text->rules.mysql = text->rules.mysql || sl_sql_is(&token, "@") ||
                        sl_sql_is_one_of(&token, "FOREIGN_KEY_CHECKS|UNIQUE_CHECKS|SQL_NOTES");
    const bool strings = sl_sql_is(&token, "standard_conforming_strings");
    text->rules.nests =
        text->rules.nests || strings || sl_sql_is_one_of(&token, "client_encoding|search_path");
    for (int i = 0; i < 2 && strings && token.kind != SL_SQL_END; i++)
        sl_sql_next(text, &token);
    if (strings)
        text->rules.escapes =
            strcasecmp(token.text, "off") == 0 || strcasecmp(token.text, "false") == 0;
    return end_statement(dump, line, &token);
}

/* ---- the dump ---- */

/* Reads statements up to the rows of a table, or to the end. `*begun`: rows of another table than
 * the current one begin. */
static bool read_statement(sl_sql_dump *dump, bool *begun) {
    sl_sql_text *text = &dump->text;
    sl_sql_token token;
    *begun = false;
    const uint64_t line = sl_sql_line(text);
    dump->head_length = 0;
    dump->statement = sl_sql_position(text);
    sl_sql_fill(text, INSERT_HEAD_MAX);
    if (sl_sql_peek(text, 0) == '\\') { /* \connect, \restrict */
        if (sl_sql_follows(text, "\\copy") || sl_sql_follows(text, "\\i") ||
            sl_sql_follows(text, "\\g") || sl_sql_follows(text, "\\."))
            return not_read(dump, line, "a command that reads or runs other text");
        text->rules.nests = true;
        count_kind(dump, "psql command", "");
        sl_sql_skip_line(text);
        return true;
    }
    sl_sql_next(text, &token);
    if (sl_sql_is(&token, "DELIMITER")) { /* only MySQL has it */
        text->rules.mysql = true;
        sl_sql_peek(text, sizeof text->rules.terminator + 1);
        size_t used = 0;
        for (int byte; (byte = sl_sql_peek(text, 0)) >= 0 && byte != '\n'; text->used++) {
            if (byte > ' ' && used == sizeof text->rules.terminator - 1)
                return sl_sql_fail(text, line, "DELIMITER has more than %zu bytes", used);
            if (byte > ' ')
                text->rules.terminator[used++] = (char)byte;
        }
        text->rules.terminator[used] = '\0';
        if (used == 0)
            snprintf(text->rules.terminator, sizeof text->rules.terminator, ";");
        return true;
    }
    bool insert = sl_sql_is(&token, "INSERT") || sl_sql_is(&token, "REPLACE");
    if (insert || sl_sql_is(&token, "COPY"))
        dump->line = line;
    dump->replaces = sl_sql_is(&token, "REPLACE");
    if (insert)
        return read_insert(dump, begun);
    if (sl_sql_is(&token, "COPY"))
        return read_copy(dump, begun);
    if (sl_sql_is(&token, "CREATE"))
        return read_create(dump, line);
    if (sl_sql_is(&token, "ALTER"))
        return read_alter(dump, line);
    if (token.kind == SL_SQL_END)
        return cut_off(dump, line, "the statement");
    if (token.kind != SL_SQL_WORD || !sl_sql_is_one_of(&token, HARMLESS)) {
        char shown[60], what[100];
        sl_text_printable(sl_text_of(token.text), shown, sizeof shown);
        snprintf(what, sizeof what, "a statement that begins with `%s`", shown);
        return not_read(dump, line, what);
    }
    if (sl_sql_is(&token, "ROLLBACK") && dump->begun)
        return sl_sql_fail(text, line, "ROLLBACK takes the rows above back: export them again");
    note_transaction(dump, &token);
    count_kind(dump, token.text, "");
    if (sl_sql_is(&token, "SET"))
        return read_setting(dump, line);
    return sl_sql_is_one_of(&token, "DROP|DELETE|TRUNCATE")
               ? read_removal(dump, line, &token)
               : skip_without(dump, line,
                              sl_sql_is(&token, "SELECT") && !text->rules.mysql ? "INTO" : NULL,
                              "SELECT ... INTO");
}

/* At the end of the dump: is it complete? */
static bool check_end(sl_sql_dump *dump) {
    sl_sql_text *text = &dump->text;
    return !text->failed && sl_sql_have_ended(text, 0, "the dump") &&
           (!dump->open ||
            sl_sql_fail(text, sl_sql_line(text),
                        "the dump ends without COMMIT: it is cut off: export it again"));
}

/* Reads up to the next rows: of another table (`*begun`), of the current one, or to the end. */
static bool read_to_rows(sl_sql_dump *dump, bool *begun) {
    *begun = false;
    while (!*begun && !dump->in_values) {
        skip_to_statement(dump);
        const uint64_t end = dump->known ? dump->known->rows.end : UINT64_MAX;
        if (sl_sql_position(&dump->text) >
            end) /* rows of the next table have been taken for text */
            return sl_sql_fail(
                &dump->text, dump->line,
                "the statement that begins here extends into the rows of the table "
                "after %s, which a first reading found at byte %llu: export %s alone",
                dump->shown, (unsigned long long)end, dump->shown);
        if (sl_sql_position(&dump->text) == end)
            return !dump->text.failed;
        if (begin_same_insert(dump))
            break;
        if (sl_sql_peek(&dump->text, 0) < 0)
            return check_end(dump);
        if (!read_statement(dump, begun))
            return false;
    }
    return true;
}

/* Makes the next rows available. */
static bool next_rows(sl_sql_dump *dump) {
    dump->row_used = dump->row_length = 0;
    do {
        if (!dump->in_values && !read_to_rows(dump, &dump->next_known))
            return false;
        if (dump->next_known || !dump->in_values)
            return true;
        if (!read_row(dump) || !end_row(dump))
            return false;
    } while (dump->row_length < OUTPUT_BYTES);
    return true;
}

static bool fetch(sl_input *contents, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error) {
    sl_sql_dump *dump = contents->context;
    dump->text.times = times;
    dump->text.error = error;
    *got = 0;
    if (dump->text.failed)
        return false;
    if (dump->data == DATA_COPY && !dump->next_known)
        return fetch_copy(dump, out, room, got);
    while (*got < room) {
        size_t left = dump->row_length - dump->row_used;
        if (left == 0) {
            if (dump->next_known || dump->data != DATA_INSERT)
                break;
            if (!next_rows(dump))
                return false;
            if (dump->row_length == 0)
                break;
            continue;
        }
        size_t length = left < room - *got ? left : room - *got;
        memcpy(out + *got, dump->row + dump->row_used, length);
        dump->row_used += length;
        *got += length;
    }
    return true;
}

/* Skips the remaining rows of the current table. */
static bool skip_rows(sl_sql_dump *dump) {
    if (!dump->next_known && !skip_copy(dump))
        return false;
    while (dump->data == DATA_INSERT && !dump->next_known) {
        if (dump->in_values) {
            dump->in_values = false;
            if (!skip_insert(dump))
                return false;
        }
        if (!read_to_rows(dump, &dump->next_known))
            return false;
        if (!dump->next_known && !dump->in_values)
            break;
    }
    return true;
}

uint64_t sl_sql_dump_line_of(sl_sql_dump *dump, uint64_t row, sl_reader_times *times,
                             sl_error *error) {
    dump->text.times = times;
    dump->text.error = error;
    if (dump->data == DATA_COPY)
        return dump->row_line + row - 1;
    while (dump->row_count < row) {
        dump->row_length = 0;
        if ((!dump->in_values && !read_to_rows(dump, &dump->next_known)) || !dump->in_values ||
            dump->next_known)
            return 0;
        dump->row_line = sl_sql_line(&dump->text);
        if (!read_row(dump) || !end_row(dump))
            return 0;
        dump->row_count++;
    }
    return dump->row_line;
}

bool sl_sql_dump_create(sl_input *input, const char *include, sl_sql_dump **result,
                        sl_error *error) {
    sl_sql_dump *dump = calloc(1, sizeof *dump);
    *result = dump;
    if (!dump)
        return sl_error_memory(error, "reading an SQL dump");
    dump->include = include;
    dump->contents = (sl_input){.fetch = fetch, .context = dump, .name = dump->shown};
    if (sl_sql_text_init(&dump->text, input, error) &&
        sl_input_init(&dump->contents, OUTPUT_BYTES, error))
        return true;
    sl_sql_dump_destroy(dump);
    *result = NULL;
    return false;
}

void sl_sql_dump_destroy(sl_sql_dump *dump) {
    if (!dump)
        return;
    sl_sql_tables_destroy(dump->tables);
    sl_sql_text_clear(&dump->text);
    sl_input_clear(&dump->contents);
    sl_path_set_clear(&dump->seen);
    free(dump->schema);
    free(dump->next_schema);
    free(dump->row);
    free(dump);
}

bool sl_sql_dump_next(sl_sql_dump *dump, sl_input **contents, sl_reader_times *times,
                      sl_error *error) {
    *contents = NULL;
    dump->text.times = times;
    dump->text.error = error;
    if (dump->known && sl_sql_position(&dump->text) < dump->known->rows.begin)
        go_to_rows(dump);
    if (!skip_rows(dump))
        return false;
    if (!dump->next_known) {
        dump->data = DATA_NONE;
        if (!read_to_rows(dump, &dump->next_known))
            return false;
    }
    if (!dump->next_known)
        return true;
    dump->next_known = false;
    snprintf(dump->name, sizeof dump->name, "%s", dump->next_name);
    sl_text_printable(sl_text_of(dump->name), dump->shown, sizeof dump->shown);
    free(dump->schema);
    dump->schema = dump->next_schema;
    dump->next_schema = NULL;
    dump->row_used = dump->row_length = dump->row_count = 0;
    sl_input_restart(&dump->contents);
    *contents = &dump->contents;
    return true;
}

const char *sl_sql_dump_name(const sl_sql_dump *dump) {
    return dump->name;
}

const sl_sql_table *sl_sql_dump_table(const sl_sql_dump *dump) {
    return definition(dump, dump->name);
}

bool sl_sql_dump_is_packed(const sl_sql_dump *dump) {
    return !dump->text.input->seek;
}

sl_sql_table *sl_sql_dump_take_tables(sl_sql_dump *dump) {
    sl_sql_table *tables = dump->tables;
    dump->tables = NULL;
    memset(dump->by_hash, 0, sizeof dump->by_hash);
    return tables;
}

void sl_sql_dump_read_only(sl_sql_dump *dump, const sl_sql_table *table) {
    dump->known = table;
}

const char *sl_sql_dump_shown(const sl_sql_dump *dump) {
    return dump->shown;
}

const char *sl_sql_dump_schema(const sl_sql_dump *dump) {
    return dump->schema;
}

char *sl_sql_dump_tab_schema(sl_sql_dump *dump, const sl_sql_table **only) {
    const sl_sql_table *table = dump->tables && !dump->tables->next ? dump->tables : NULL;
    *only = table;
    if (!table || !take_columns(dump, table, NULL) || dump->column_count == 0)
        return NULL;
    return sl_sql_table_schema(dump->columns, dump->column_count, SL_SQL_SCHEMA_TAB);
}

bool sl_sql_dump_copy(sl_sql_dump *dump, int file, bool *same, const char *name, sl_error *error) {
    sl_reader_times times = {0};
    sl_input *input = dump->text.input;
    char copy[4096];
    while (sl_input_peek(input, 1, &times, error)) {
        const size_t all = sl_input_left(input), left = same && all > 4096 ? 4096 : all;
        ssize_t n = same ? read(file, copy, left + !left) : write(file, sl_input_at(input), left);
        if (n < 0)
            return sl_error_errno(error, SL_EXIT_USAGE, "%s", name);
        if (same)
            *same = !n == !left && memcmp(copy, sl_input_at(input), (size_t)n) == 0;
        if (left == 0 || (same && !*same))
            return true;
        input->used += (size_t)n;
    }
    return false;
}
