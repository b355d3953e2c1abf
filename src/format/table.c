/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of tables; see table.h.
 *
 * Most texts begin with a header, and the lines after it have the same number of fields: one pass
 * finds such a table. Only other texts are searched: for each delimiter, for the number of fields
 * that most lines have, and the first line from which on lines have that number. The lines of a
 * table that is found by this search must contain numbers or dates, because prose has commas
 * too.
 *
 * The first line is a header if a column has a word in it and typed values (numbers, dates) below
 * it. It is a record if it contains a typed value or, without such a column, a word for a missing
 * value (NA), or words that occur in their columns again.
 * Years as names (country,2019,2020) make a header although they are numbers. */
#include "table.h"
#include "column_types.h"

#include <stdlib.h>

#include "util/name_index.h"

#define LINES_SEARCHED 400u
#define FIT_SHARE 0.7      /* least share of a table's lines that have its number of fields */
#define LINES_COMPARED 20u /* with the first line, to detect a header */
#define RECORD_MOST ((size_t)16 << 10) /* bytes of a record with quoted line ends */
#define HINT_LINES 50u
#define RECORDS_WATCHED 400u

/* ---- lines ---- */

/* The position of the line end of the record that begins at `at`; its first line ends at
 * `line_end`. Returns `line_end` if the quotes do not form a record, or the record is too long. */
static size_t record_end(const sl_table *table, sl_text head, size_t at, size_t line_end) {
    const char delimiter = table->first.delimiter, escape = table->escape, quote = table->quote;
    size_t stop = head.length - at < RECORD_MOST ? head.length : at + RECORD_MOST;
    const char bare = table->notation ? table->notation->escape : 0;
    if (bare)
        return (size_t)(sl_find_bare(head.bytes + at, head.bytes + head.length, '\n', bare) -
                        head.bytes);
    if (delimiter == 0 || !quote || !memchr(head.bytes + at, quote, line_end - at))
        return line_end;
    while (at < stop) {
        if (head.bytes[at] == quote) {
            at = sl_closing_quote(head.bytes, at + 1, stop, quote, escape);
            if (++at < stop && head.bytes[at] != delimiter && !memchr("\r\n", head.bytes[at], 2))
                return line_end;
        }
        while (at < stop && head.bytes[at] != delimiter && head.bytes[at] != '\n')
            at++;
        if (at < stop && head.bytes[at] == '\n')
            return at;
        at++;
    }
    return line_end;
}

/* Reads the line at *at, without its line end, and moves *at after it; includes the following lines
 * if a quoted field continues there. False at the end of the head, and for a last line without line
 * end unless the head is the `whole` text. */
static bool table_next_line(const sl_table *table, sl_text head, bool whole, size_t *at,
                            sl_text *line) {
    if (*at >= head.length)
        return false;
    const char *begin = head.bytes + *at;
    const char *end = memchr(begin, '\n', head.length - *at);
    if (!end && !whole)
        return false;
    if (end)
        end = head.bytes + record_end(table, head, *at, (size_t)(end - head.bytes));
    *line = (sl_text){begin, end ? (size_t)(end - begin) : head.length - *at};
    *at += line->length + 1;
    if (line->length > 0 && begin[line->length - 1] == '\r')
        line->length--;
    return true;
}

size_t sl_blanks_split(sl_text line, unsigned least, sl_text *fields, size_t limit) {
    size_t count = 0, at = 0;
    while (line.length > 0 && line.bytes[line.length - 1] == ' ')
        line.length--;
    while (at < line.length && line.bytes[at] == ' ')
        at++;
    while (at < line.length) {
        size_t begin = at, run = 0;
        while (at < line.length && run < least) {
            run = line.bytes[at] == ' ' ? run + 1 : 0;
            at++;
        }
        size_t end = run == least ? at - run : at;
        while (at < line.length && line.bytes[at] == ' ')
            at++;
        if (count < limit)
            fields[count] = (sl_text){line.bytes + begin, end - begin};
        count++;
    }
    return count;
}

size_t sl_table_split(const sl_table *table, sl_text line, sl_text *fields, size_t limit) {
    return table->blanks
               ? sl_blanks_split(line, table->blanks, fields, limit)
               : sl_fields_split(line, table->first.delimiter, table->quote,
                                 table->notation ? table->notation->escape : 0, fields, limit);
}

/* ---- is the first line a header? ---- */

/* What the lines compared so far show about a column. */
typedef struct compared {
    sl_look first;
    bool word;      /* a value below the first line is a word */
    bool typed;     /* a value is typed */
    bool not_years; /* a typed value is not a year */
} compared;

static bool is_year(sl_text field, uint64_t *year) {
    return field.length == 4 && sl_text_to_u64(field, year) && *year >= 1900 && *year <= 2100;
}

/* Do at least two fields hold years in sequence (2019, 2020), none of them the first field, and the
 * other fields no typed values? */
static bool names_years(const sl_text *fields, const compared *columns, size_t count) {
    uint64_t last = 0, year;
    size_t years = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_year(fields[i], &year)) {
            if (i == 0 || (years > 0 && year != last + 1))
                return false;
            last = year;
            years++;
        } else if (columns[i].first == SL_LOOKS_TYPED) {
            return false;
        }
    }
    return years >= 2;
}

/* What the lines below the first one show. */
typedef struct evidence {
    size_t lines, fitting; /* not blank; with as many fields as the first line */
    size_t longer;         /* with more fields */
    bool contrast;         /* a column has a word in the first line and typed values below it */
    bool missing;          /* the first line has a word for a missing value */
    bool typed;            /* a column holds typed values below the first line */
    unsigned repeated;     /* values of the first line that are repeated in their columns */
    bool years;            /* the first line names years, and their columns hold other values */
} evidence;

static void compare_fields(const sl_text *fields, const sl_text *first, compared *columns,
                           size_t count, evidence *found) {
    uint64_t year;
    for (size_t i = 0; i < count; i++) {
        found->repeated += fields[i].length > 0 && columns[i].first != SL_LOOKS_MISSING &&
                           sl_text_equal(fields[i], first[i]);
        if (columns[i].word)
            continue;
        sl_look look = sl_value_look(fields[i]);
        columns[i].word = look == SL_LOOKS_WORD;
        columns[i].typed = columns[i].typed || look == SL_LOOKS_TYPED;
        columns[i].not_years =
            columns[i].not_years || (look == SL_LOOKS_TYPED && !is_year(fields[i], &year));
    }
}

/* Compares the table's first line, whose fields are `first`, with the lines after it. False without
 * memory. */
static bool evidence_collect(const sl_table *table, sl_text head, bool whole, const sl_text *first,
                             evidence *found, sl_error *error) {
    size_t count = table->first.fields;
    sl_text *fields = malloc(count * sizeof *fields);
    compared *columns = calloc(count, sizeof *columns);
    *found = (evidence){0};
    if (!fields || !columns) {
        free(fields);
        free(columns);
        return sl_error_memory(error, "reading a header");
    }
    for (size_t i = 0; i < count; i++)
        columns[i].first = sl_value_look(first[i]);
    sl_text line;
    for (size_t at = table->first.end; table_next_line(table, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        bool near = found->lines++ < LINES_COMPARED;
        size_t split = sl_table_split(table, line, fields, near ? count : 0);
        found->longer += split > count;
        if (split != count)
            continue;
        found->fitting++;
        if (near && !sl_text_equal(line, table->first.line))
            compare_fields(fields, first, columns, count, found);
    }
    for (size_t i = 0; i < count; i++)
        found->missing =
            found->missing || (columns[i].first == SL_LOOKS_MISSING && first[i].length);
    bool years = names_years(first, columns, count);
    for (size_t i = 0; i < count; i++) {
        bool typed = columns[i].typed && !columns[i].word;
        found->typed = found->typed || typed;
        found->contrast = found->contrast || (typed && columns[i].first == SL_LOOKS_WORD);
        found->years = found->years || (years && columns[i].first == SL_LOOKS_TYPED && typed &&
                                        columns[i].not_years);
    }
    free(fields);
    free(columns);
    return true;
}

/* Does the first line hold a typed value? */
static bool fields_have_typed(const sl_text *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (sl_value_look(fields[i]) == SL_LOOKS_TYPED)
            return true;
    }
    return false;
}

/* Is the first line a header? */
static bool evidence_of_header(const sl_table *table, const sl_text *fields,
                               const evidence *found) {
    if (fields_have_typed(fields, table->first.fields))
        return found->years;
    return found->contrast || (found->repeated < 2 && !found->missing);
}

/* ---- hints: decimal commas ---- */

/* Is it a number, date or the like, which contains no semicolon and no comma but a decimal one? */
static bool is_typed(sl_text field) {
    const char *comma = memchr(field.bytes, ',', field.length);
    return sl_value_look(field) == SL_LOOKS_TYPED && !memchr(field.bytes, ';', field.length) &&
           (!comma || sl_has_decimal_comma(field));
}

/* The share of fields that are typed in the first lines of a table, all of which must have as many
 * fields as its first line; 0: they do not. */
static double typed_share(const sl_table *table, sl_text head, bool whole) {
    const size_t count = sl_table_split(table, table->first.line, NULL, 0);
    sl_text fields[32], line;
    size_t seen = 0, typed = 0, lines = 0;
    for (size_t at = table->first.text_start;
         lines < HINT_LINES && table_next_line(table, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        lines++;
        if (count < 2 || sl_table_split(table, line, fields, 32) != count)
            return 0;
        for (size_t i = 0; i < count && i < 32; i++, seen++)
            typed += is_typed(fields[i]);
    }
    return seen > 0 ? (double)typed / (double)seen : 0;
}

/* If both commas and semicolons could separate the fields, as in 1;1,5: semicolons do if at least
 * as many of their fields are typed. */
static void prefer_semicolons(sl_table *table, sl_text head, bool whole) {
    sl_table other = *table;
    other.first.delimiter = ';';
    double share = typed_share(&other, head, whole);
    if (table->first.delimiter != ',' || share <= 0 || share < typed_share(table, head, whole))
        return;
    table->first.delimiter = ';';
    table->first.fields = sl_table_split(table, table->first.line, NULL, 0);
}

/* With --ragged pad: does the first line name the columns of lines that may be shorter? */
static bool heads_short_lines(const sl_table *table, const sl_text *fields, const evidence *found) {
    for (size_t i = 0; i < table->first.fields; i++) {
        if (sl_value_look(fields[i]) != SL_LOOKS_WORD)
            return false;
    }
    return table->first.fields >= 2 && found->lines > 0 && found->longer == 0;
}

/* The type of the lines from `at` on, if they are one column; SL_TYPE_TEXT if one of them contains
 * a delimiter, or there are fewer than two. */
static sl_type type_of_lines(const sl_table *table, sl_text head, bool whole, size_t at) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    sl_schema_column type = {0};
    sl_text line;
    size_t count = 0;
    while (count < HINT_LINES && table_next_line(table, head, whole, &at, &line)) {
        if (sl_line_is_blank(line))
            continue;
        if (line.length > 64 || memchr(line.bytes, ';', line.length) ||
            memchr(line.bytes, ',', line.length))
            return SL_TYPE_TEXT;
        sl_column_guess_add(&guess, line, NULL);
        count++;
    }
    sl_column_guess_decide(&guess, &type);
    return count >= 2 ? type.type : SL_TYPE_TEXT;
}

/* Are the lines dates with times, such as 2016-01-15 10:00:00, so that their blank separates no
 * columns? */
static bool are_dates(const sl_table *table, sl_text head, bool whole) {
    sl_type type = type_of_lines(table, head, whole, table->first.text_start);
    return type == SL_TYPE_DATE || type == SL_TYPE_DATETIME;
}

/* Is it a table of one column: short lines of numbers or dates, perhaps below a name? `typed`: the
 * first line is a number or date. */
static bool is_column(const sl_table *table, sl_text head, bool whole, bool typed) {
    return table->first.delimiter == 0 &&
           type_of_lines(table, head, whole, typed ? table->first.text_start : table->first.end) !=
               SL_TYPE_TEXT;
}

bool sl_is_named_column(sl_text head, bool whole) {
    const sl_table lines = {0};
    sl_text line;
    size_t at = 0, count = 0;
    while (table_next_line(&lines, head, whole, &at, &line)) {
        bool letters = true, coded = false;
        if (sl_line_is_blank(line))
            continue;
        for (size_t i = 0; i < line.length; i++) {
            uint8_t byte = (uint8_t)line.bytes[i];
            if (byte < 0x20 || strchr("|,;{}[]<>", byte))
                return false;
            letters = letters && (((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte == '_' ||
                                  byte >= 0x80);
            coded = coded || sl_is_digit((char)byte) || byte == '@';
        }
        if (count++ == 0 ? !letters || sl_value_look(line) != SL_LOOKS_WORD : !coded)
            return false;
    }
    return count >= 3;
}

/* ---- hints: quotes ---- */

#define COLUMNS_WATCHED 64u

static bool is_quoted(sl_text line, sl_text field, char quote) {
    const char *end = field.bytes + field.length;
    return field.bytes > line.bytes && field.bytes[-1] == quote && end < line.bytes + line.length &&
           *end == quote;
}

/* Would the field be read as something else without its quotes? */
static bool needs_quotes(sl_text field, char delimiter, char quote) {
    return memchr(field.bytes, delimiter, field.length) ||
           memchr(field.bytes, quote, field.length) || memchr(field.bytes, '\n', field.length);
}

/* What the first records show about a column, if a certain byte quotes fields. */
typedef struct watched {
    unsigned filled, quoted; /* fields */
    bool name;               /* the field of the first record is quoted */
} watched;

/* Are all or all but the first one of the column's fields quoted? With single quotes, the first one
 * must be quoted too, because 'a' may be data. */
static bool is_quoted_column(const watched *column, char quote) {
    return (column->filled >= 2 && column->quoted == column->filled) ||
           (quote == '"' && !column->name && column->quoted >= 2 &&
            column->quoted + 1 == column->filled);
}

/* Does this byte quote fields of the table? It does if each field that begins with it also ends
 * with it, nearly all records then have the same number of fields, and either a column is quoted
 * throughout, or a quoted field contains a delimiter, a line end or a doubled quote. */
static bool quotes_fields(const sl_table *table, sl_text head, bool whole, char quote) {
    sl_table one = *table;
    sl_text line, fields[COLUMNS_WATCHED];
    watched columns[COLUMNS_WATCHED] = {{0}};
    size_t records = 0, fitting = 0, count = 0, open;
    bool needed = false;
    const char delimiter = table->first.delimiter;
    one.quote = quote;
    for (size_t at = (size_t)(table->first.line.bytes - head.bytes);
         records < RECORDS_WATCHED && table_next_line(&one, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        if (sl_line_quotes(line, delimiter, quote, table->escape != 0, &open) != SL_QUOTES_CLOSED)
            return false;
        size_t n = sl_table_split(&one, line, fields, COLUMNS_WATCHED);
        count = records++ == 0 ? n : count;
        fitting += n == count;
        for (size_t i = 0; i < n && i < COLUMNS_WATCHED; i++) {
            bool quoted = is_quoted(line, fields[i], quote);
            if (quote != '"' && (is_quoted(line, fields[i], '"') ||
                                 (fields[i].length > 0 && *fields[i].bytes == '"')))
                return false;
            columns[i].filled += quoted || fields[i].length > 0;
            columns[i].quoted += quoted;
            columns[i].name = columns[i].name || (quoted && records == 1);
            needed = needed || (quoted && needs_quotes(fields[i], delimiter, quote));
        }
    }
    for (size_t i = 0; i < COLUMNS_WATCHED && !needed; i++)
        needed = is_quoted_column(&columns[i], quote);
    return needed && records >= 2 && 10 * fitting >= 9 * records;
}

/* Looks for another byte that quotes fields than table->quote, and sets it. False: there is
 * none. */
static bool find_quote(sl_table *table, sl_text head, bool whole) {
    const char usual = table->quote;
    if (table->blanks || table->first.delimiter == 0)
        return false;
    if (!usual && quotes_fields(table, head, whole, '"'))
        table->quote = '"';
    else if (quotes_fields(table, head, whole, '\''))
        table->quote = '\'';
    table->first.fields = sl_table_split(table, table->first.line, NULL, 0);
    return table->quote != usual;
}

/* If no byte quotes the fields of the table: do fields begin and end with double quotes all the
 * same? */
static bool keeps_quotes(const sl_table *table, sl_text head, bool whole) {
    sl_text fields[COLUMNS_WATCHED], line;
    size_t at = table->first.text_start;
    if (table->quote || table->blanks)
        return false;
    for (size_t i = 0; i < RECORDS_WATCHED && table_next_line(table, head, whole, &at, &line);
         i++) {
        size_t count = sl_table_split(table, line, fields, COLUMNS_WATCHED);
        for (size_t k = 0; k < count && k < COLUMNS_WATCHED; k++) {
            if (fields[k].length > 0 && is_quoted(line, fields[k], '"'))
                return true;
        }
    }
    return false;
}

static const char delimiters[] = "\t|,;";

/* ---- names ---- */

static uint64_t hash_of(sl_text name) {
    return sl_seeded_hash(name.bytes, name.length, sl_process_seed());
}

static bool name_is_taken(const sl_table *table, const sl_name_index *taken, sl_text name) {
    uint64_t at = hash_of(name);
    size_t i = sl_name_index_next(taken, &at);
    while (i != SIZE_MAX && !sl_text_equal(table->names[i], name))
        i = sl_name_index_next(taken, &at);
    return i != SIZE_MAX;
}

static void add_note(sl_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add_note(sl_table *table, const char *format, ...) {
    size_t used = strlen(table->note);
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(table->note + used, sizeof table->note - used, format, arguments);
    va_end(arguments);
}

/* At most SL_COLUMNS_MAX names are compared with each other. */
bool sl_table_set_names(sl_table *table, const sl_text *given, size_t count, sl_error *error) {
    size_t bytes = 0;
    if (count > SL_COLUMNS_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the header has %zu columns; at most %d are allowed", count,
                            SL_COLUMNS_MAX);
    for (size_t i = 0; given && i < count; i++)
        bytes += given[i].length;
    table->names = calloc(count + 1, sizeof *table->names);
    table->memory = malloc(bytes + count * 32 + 1);
    table->count = count;
    sl_name_index taken = {0};
    if (!table->names || !table->memory || !sl_name_index_reset(&taken, count))
        return sl_error_memory(error, "reading a header");
    char *at = table->memory;
    size_t empty = 0, repeated = 0, numbered = 0; /* `numbered`: the first repeated column */
    /* The names of the header first: a name that is made up takes none of them. */
    for (size_t i = 0; given && i < count; i++) {
        if (given[i].length == 0 || name_is_taken(table, &taken, given[i]))
            continue;
        table->names[i] = (sl_text){memcpy(at, given[i].bytes, given[i].length), given[i].length};
        at += given[i].length;
        sl_name_index_add(&taken, hash_of(given[i]), i);
    }
    for (size_t i = 0; i < count; i++) {
        char *begin = at, *base = at;
        if (table->names[i].bytes)
            continue;
        if (given && given[i].length > 0) {
            base += given[i].length;
            memcpy(at, given[i].bytes, given[i].length);
        } else {
            base += snprintf(at, 32, "column%zu", i + 1);
            empty++;
        }
        at = base;
        size_t earlier = 1; /* columns of this name */
        for (size_t k = 0; given && k < i; k++)
            earlier += given[i].length > 0 && sl_text_equal(given[k], given[i]);
        for (size_t number = earlier > 2 ? earlier : 2;
             name_is_taken(table, &taken, (sl_text){begin, (size_t)(at - begin)}); number++) {
            at = base + snprintf(base, 24, "_%zu", number);
        }
        numbered = at != base && repeated++ == 0 ? i : numbered;
        table->names[i] = (sl_text){begin, (size_t)(at - begin)};
        sl_name_index_add(&taken, hash_of(table->names[i]), i);
    }
    sl_name_index_clear(&taken);
    if (given && empty > 0)
        add_note(table, "; %s without name: named by number", sl_plural(empty, "column"));
    if (repeated > 0) {
        char name[40];
        sl_text_printable(table->names[numbered], name, sizeof name);
        add_note(table, "; %s numbered, as " SL_LINES, sl_plural(repeated, "repeated name"), name);
    }
    return true;
}

/* The names of --columns, separated by commas. The first line is `cut`: it may have more fields. */
static bool set_given_names(sl_table *table, const char *columns, bool cut, sl_error *error) {
    const size_t fields = table->first.fields;
    sl_text names[SL_COLUMNS_MAX];
    size_t count = 0;
    for (const char *at = columns;; at++) {
        size_t length = strcspn(at, ",");
        if (count < SL_COLUMNS_MAX)
            names[count] = (sl_text){at, length};
        count++;
        at += length;
        if (*at == '\0')
            break;
    }
    if (count > SL_COLUMNS_MAX ||
        (count != fields && fields > 0 && !(cut && count > fields && table->first.delimiter)))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "--columns names %zu columns, and the first line of the table has %zu "
                            "fields%s",
                            count, fields,
                            cut ? " in its first 64 KiB: give --delimiter, if it has more" : "");
    return sl_table_set_names(table, names, count, error);
}

/* ---- the search ---- */

/* Reads the line at `at` as the table's first line. */
static void set_first(sl_table *table, sl_text head, size_t at) {
    sl_first_line *first = &table->first;
    size_t end = at;
    table_next_line(table, head, true, &end, &first->line);
    first->text_start = at;
    first->end = end < head.length ? end : head.length;
    first->header_bytes = first->end - at;
    first->fields = sl_table_split(table, first->line, NULL, 0);
}

void sl_table_extend_first(sl_table *table, sl_text head) {
    size_t at = (size_t)(table->first.line.bytes - head.bytes), end = at;
    const size_t text_start = table->first.text_start;
    sl_text record;
    table_next_line(table, head, true, &end, &record);
    if (record.length <= table->first.line.length)
        return;
    set_first(table, head, at);
    table->first.text_start = text_start;
}

typedef struct searched {
    size_t start[LINES_SEARCHED]; /* offsets of lines that are not blank */
    size_t fields[LINES_SEARCHED];
    size_t count;
} searched;

/* The number of fields that most lines have, at least 2; 0: no number is frequent. */
static size_t most_frequent(const searched *lines) {
    size_t tally[SL_COLUMNS_MAX + 1] = {0}, best = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->fields[i] >= 2 && lines->fields[i] <= SL_COLUMNS_MAX)
            tally[lines->fields[i]]++;
    }
    for (size_t fields = 2; fields <= SL_COLUMNS_MAX; fields++) {
        if (tally[fields] > tally[best])
            best = fields;
    }
    return tally[best] >= 2 ? best : 0;
}

/* Tries one delimiter: sets the table's first line, and the share of the following lines that
 * fit. */
static double try_delimiter(sl_table *table, sl_text head, bool whole, size_t from,
                            searched *lines) {
    sl_text line;
    lines->count = 0;
    for (size_t at = from, begin = at;
         lines->count < LINES_SEARCHED && table_next_line(table, head, whole, &at, &line);
         begin = at) {
        if (sl_line_is_blank(line))
            continue;
        lines->start[lines->count] = begin;
        lines->fields[lines->count++] = sl_table_split(table, line, NULL, 0);
    }
    size_t fields = most_frequent(lines), first = 0, fitting = 0;
    if (fields == 0)
        return 0;
    while (lines->fields[first] != fields ||
           (first + 1 < lines->count && lines->fields[first + 1] != fields))
        if (++first == lines->count)
            return 0;
    for (size_t i = first; i < lines->count; i++)
        fitting += lines->fields[i] == fields;
    set_first(table, head, lines->start[first]);
    return fitting >= 2 ? (double)fitting / (double)(lines->count - first) : 0;
}

/* ---- lines before the header ---- */

#define TITLES_MAX 50u

/* Is at most one field of the line not empty, and that one not a number or date? */
static bool is_title(const sl_table *table, sl_text line, size_t count) {
    sl_text fields[SL_COLUMNS_MAX];
    size_t filled = 0, split = sl_table_split(table, line, fields, count);
    for (size_t i = 0; i < count && i < split; i++)
        filled += fields[i].length == 0 ? 0 : sl_value_look(fields[i]) == SL_LOOKS_TYPED ? 2 : 1;
    return filled <= 1;
}

/* Spreadsheets write a title and empty lines above the header as `Sales,,,` and `,,,`: moves the
 * first line of a table of three columns or more after these. */
static void skip_titles(sl_table *table, sl_text head, bool whole) {
    const size_t count = table->first.fields;
    sl_table next = *table;
    if (table->blanks || count < 3 || count > SL_COLUMNS_MAX)
        return;
    for (size_t i = 0; i < TITLES_MAX && is_title(&next, next.first.line, count); i++) {
        size_t begin, at = next.first.end;
        sl_text line;
        do {
            begin = at;
            if (!table_next_line(&next, head, whole, &at, &line))
                return;
        } while (sl_line_is_blank(line));
        set_first(&next, head, begin);
        if (next.first.fields != count)
            return;
    }
    if (!is_title(&next, next.first.line, count))
        *table = next;
}

static bool refuse(sl_text line, const char *why, sl_error *error) {
    char shown[60];
    sl_text_printable(line, shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "this is not delimited text: its first line is `%s`; %s", shown, why);
}

/* Does the head contain a byte that is neither the delimiter nor occurs in text? */
static bool is_binary(const sl_table *table, sl_text head, char delimiter) {
    if (table->notation->escape) /* exports hold all bytes but NUL */
        return memchr(head.bytes, '\0', head.length) != NULL;
    for (size_t i = 0; i < head.length; i++) {
        uint8_t byte = (uint8_t)head.bytes[i];
        if (byte < 0x20 && !memchr("\t\r\n\f", byte, 4) && byte != (uint8_t)delimiter)
            return true;
    }
    return false;
}

/* Is the table divided by commas that are all within a number between blanks, such as -1.234,50,
 * and not the line before it? They then may be decimal commas. */
static bool may_have_decimal_commas(const sl_table *table, sl_text head) {
    const char *end = head.bytes + head.length, *at = head.bytes + table->first.text_start;
    bool decimal = table->first.delimiter == ',' && !table->blanks && at > head.bytes;
    while (decimal && (at = memchr(at, ',', (size_t)(end - at))) != NULL) {
        const char *first = at, *rest = at + 1;
        while (sl_is_digit(first[-1]) || (first[-1] == '.' && (at - first) % 4 == 3))
            first--;
        while (rest < end && sl_is_digit(*rest))
            rest++;
        const bool sign = memchr("+-", first[-1], 2) != NULL && first - 1 > head.bytes;
        decimal = sl_is_digit(*first) && first < at && memchr(" \n", first[-1 - sign], 2) &&
                  (rest == end || (rest > at + 1 && memchr(" \r\n", *rest, 3)));
        at = rest;
    }
    return decimal;
}

/* Has the line that begins at `start` no numbers or dates between blanks? */
static bool has_words_only(sl_text head, size_t start) {
    const char *end = head.bytes + head.length;
    for (const char *at = head.bytes + start; at < end && !memchr("\r\n", *at, 2);) {
        const char *first = at;
        while (at < end && !memchr(" \r\n", *at, 3))
            at++;
        if (at > first && sl_value_look((sl_text){first, (size_t)(at - first)}) == SL_LOOKS_TYPED)
            return false;
        at += at < end && *at == ' ';
    }
    return true;
}

/* Searches for a table from `from` on. */
static bool search(const sl_format_options *options, sl_table *table, sl_text head, bool whole,
                   size_t from, sl_error *error) {
    const char given = options->delimiter;
    static const struct {
        char delimiter;
        uint8_t blanks;
    } tried[] = {{'\t', 0}, {'|', 0}, {',', 0}, {';', 0}, {' ', 2}, {' ', 1}};
    sl_table best = *table;
    double best_share = 0;
    sl_text line = table->first.line;
    searched *lines = malloc(sizeof *lines);
    if (!lines)
        return sl_error_memory(error, "looking for a table");
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        const bool fits = tried[i].blanks && best_share >= FIT_SHARE;
        if (given ? i > 0 : fits && !may_have_decimal_commas(&best, head))
            break;
        sl_table one = *table;
        one.first.delimiter = given ? given : tried[i].delimiter;
        one.blanks = given ? 0 : tried[i].blanks;
        one.quote = one.blanks ? 0 : sl_quote_of(options->quote, one.first.delimiter);
        double share = try_delimiter(&one, head, whole, from, lines);
        if (share > 0 && options->quote == SL_QUOTE_AUTO && find_quote(&one, head, whole))
            share = try_delimiter(&one, head, whole, from, lines);
        const bool more = share > 0 && share == best_share;
        if (fits ? share == 1 && one.first.text_start < best.first.text_start &&
                       has_words_only(head, one.first.text_start)
                 : share > best_share || (more && one.first.fields > best.first.fields)) {
            best = one;
            best_share = share;
        }
    }
    free(lines);
    if (best_share >= FIT_SHARE && best.blanks == 1 && are_dates(&best, head, whole))
        best_share = 0;
    if (best_share < FIT_SHARE || is_binary(table, head, given))
        return refuse(
            line,
            "expected a header of names separated by tabs, pipes, commas or semicolons, "
            "or lines of values with the same number of fields. For a single column give "
            "--header yes, or --columns NAME if its first line is a value. For lines before the "
            "table give --skip-lines, for another delimiter --delimiter, if lines lack their last "
            "fields --ragged pad",
            error);
    *table = best;
    return true;
}

/* Is the line before the table its header, with one delimiter at the end more or less than the
 * lines? It then names each column in words, and the column without name is empty in all lines.
 * Sets the table's first line. */
static bool header_before(sl_table *table, sl_text head, size_t from) {
    const size_t count = table->first.fields;
    sl_text names[SL_COLUMNS_MAX + 1], line;
    sl_table one = *table;
    size_t before = SIZE_MAX, at = from;
    for (size_t begin = at;
         begin < table->first.text_start && table_next_line(table, head, true, &at, &line);
         begin = at) {
        if (!sl_line_is_blank(line))
            before = begin;
    }
    if (table->blanks || before == SIZE_MAX || at != table->first.text_start || count < 2 ||
        count + 1 > SL_COLUMNS_MAX)
        return false;
    set_first(&one, head, before);
    const size_t named = one.first.fields > count ? count : count - 1;
    if (named < 2 || (one.first.fields != count + 1 && one.first.fields != count - 1))
        return false;
    sl_table_split(&one, one.first.line, names, one.first.fields);
    for (size_t i = 0; i < one.first.fields; i++) {
        if (i < named ? sl_value_look(names[i]) != SL_LOOKS_WORD : names[i].length > 0)
            return false;
        for (size_t k = 0; k < i; k++) {
            if (sl_text_equal(names[i], names[k]))
                return false;
        }
    }
    while (named < count && table_next_line(table, head, true, &at, &line)) {
        if (sl_table_split(table, line, names, count) == count && names[count - 1].length > 0)
            return false;
    }
    one.first.fields = count;
    *table = one;
    add_note(table, "; the header has one field %s than the lines",
             named < count ? "less" : "more");
    return true;
}

/* ---- from the options ---- */

size_t sl_after_lines(sl_text head, uint64_t skip) {
    size_t at = 0;
    for (; skip > 0 && at < head.length; skip--) {
        const char *end = memchr(head.bytes + at, '\n', head.length - at);
        at = end ? (size_t)(end - head.bytes) + 1 : head.length;
    }
    return at;
}

/* Replaces fields that have escapes by fields in `memory`. */
static void remove_escapes(const sl_notation *notation, sl_text *fields, size_t count,
                           char *memory) {
    bool numeric;
    for (size_t i = 0; i < count; i++) {
        if (!memchr(fields[i].bytes, notation->escape, fields[i].length))
            continue;
        size_t length = sl_unescape(notation, fields[i].bytes, fields[i].length, memory, &numeric);
        if (length == SIZE_MAX)
            continue;
        fields[i] = (sl_text){memory, length};
        memory += length;
    }
}

sl_text *sl_table_fields(const sl_table *table, sl_error *error) {
    const size_t count = table->first.fields;
    sl_text *fields = calloc(1, (count + 1) * sizeof *fields + table->first.line.length);
    if (!fields) {
        sl_error_memory(error, "reading a header");
        return NULL;
    }
    sl_table_split(table, table->first.line, fields, count);
    const char escape = table->notation ? table->notation->escape : 0;
    if (escape)
        remove_escapes(table->notation, fields, count, (char *)(fields + count + 1));
    else if (!table->blanks)
        sl_header_unquote(table->first.line, table->quote, fields, count,
                          (char *)(fields + count + 1));
    return fields;
}

/* Is the first line the header that the notation usually has: does it hold no typed value? */
static bool is_usual_header(const sl_table *table, const sl_text *fields) {
    return table->notation->header_usual && !fields_have_typed(fields, table->first.fields);
}

/* Writes the beginning of a line as it can be printed. */
static void show(const sl_table *table, sl_text line, char *out, size_t room) {
    const sl_encoding *encoding = table->first.marked ? NULL : table->encoding;
    char converted[3 * 100];
    size_t undefined;
    if (encoding && line.length > sizeof converted / 3)
        line.length = sizeof converted / 3;
    const uint8_t *end =
        encoding && !(encoding->mixed && sl_utf8_valid(line.bytes, line.length, NULL))
            ? sl_encoding_put(encoding, (uint8_t *)converted, line, &undefined)
            : NULL;
    if (end)
        line = (sl_text){converted, (size_t)((const char *)end - converted)};
    sl_text_printable(line, out, room);
}

/* Completes a table whose first line is known: header and names. */
static bool complete(const sl_format_options *options, sl_table *table, sl_text *fields,
                     const evidence *found, bool cut, sl_error *error) {
    table->header = options->header == SL_HEADER_YES ||
                    (options->header == SL_HEADER_AUTO && !options->columns &&
                     (evidence_of_header(table, fields, found) || is_usual_header(table, fields)) &&
                     !(table->notation->header_rare && (!found->contrast || found->missing)));
    if (options->columns) {
        table->header = options->header == SL_HEADER_YES;
        table->header_assumed =
            options->header == SL_HEADER_AUTO && options->skip_lines == 0 &&
            (evidence_of_header(table, fields, found) || is_usual_header(table, fields));
        if (cut && table->first.delimiter == 0)
            table->first.delimiter = options->delimiter;
        return set_given_names(table, options->columns, cut && !table->header, error);
    }
    table->header_assumed =
        table->header && options->header == SL_HEADER_AUTO && !found->contrast && !found->years;
    if (table->header_assumed) {
        char shown[60];
        show(table, table->first.line, shown, sizeof shown);
        add_note(table, "; the first line is assumed to be a header: `" SL_LINES "`", shown);
    }
    table->header_missed = !table->header && options->header == SL_HEADER_AUTO &&
                           table->skipped == 0 && !table->notation->header_rare;
    if (!table->header && table->first.fields == 1)
        add_note(table, "; no header found: the column is named column1");
    else if (!table->header)
        add_note(table, "; no header found: columns are named column1 to column%zu%s",
                 table->first.fields,
                 cut ? ", and more if the first line has more after 64 KiB: give --columns" : "");
    return sl_table_set_names(table, table->header ? fields : NULL, table->first.fields, error);
}

/* Sets the number of lines before the table. Without header a line before it that holds typed
 * values may be a record with another number of fields, and one with the table's number of fields
 * is a record: the table then begins with that line, so that it is not skipped. */
static void skip_lines(sl_table *table, sl_text head, size_t from) {
    sl_text fields[8], line;
    size_t end = table->first.text_start;
    bool names = false; /* the last line may name the columns */
    for (size_t at = from, begin = at;
         !table->header && begin < end && table_next_line(table, head, true, &at, &line);
         begin = at) {
        size_t count = sl_table_split(table, line, fields, 8);
        if (count >= 2 &&
            (count == table->first.fields || fields_have_typed(fields, count < 8 ? count : 8)))
            end = begin;
        else
            names = count >= 2;
    }
    table->first.text_start = end;
    table->skipped = sl_line_feeds(head.bytes, head.bytes + end);
    if (table->skipped == 0)
        return;
    if (!table->header && table->skipped == 1 && table->first.fields == 2 &&
        may_have_decimal_commas(table, head) && has_words_only(head, from))
        table->advice = "; if it is the name of one column with decimal commas, give --delimiter "
                        "';' --header yes";
    else if (names)
        table->advice = "; if the last one names the columns, it has another number of fields than "
                        "the records, whose values may hold the delimiter (12,50): export them in "
                        "quotes";
    while (from < end && memchr(" \r\n", head.bytes[from], 3))
        from++;
    size_t last = end;
    while (last > from && memchr(" \r\n", head.bytes[last - 1], 3))
        last--;
    show(table, (sl_text){head.bytes + from, last - from}, table->skipped_text,
         sizeof table->skipped_text);
    add_note(table, "; %s before the table skipped: `" SL_LINES "`",
             sl_plural(table->skipped, "line"), table->skipped_text);
}

/* The length of a first line `sep=;`, by which spreadsheets name the delimiter; 0: there is
 * none. */
static size_t separator_line(sl_text head, char delimiter[2]) {
    size_t mark = sl_byte_order_mark(head);
    const char *line = head.bytes + mark, *end = memchr(line, '\n', head.length - mark);
    size_t length = end ? (size_t)(end - line) : 0;
    bool fits = (length == 5 || (length == 6 && line[5] == '\r')) &&
                sl_text_equal_ignoring_case((sl_text){line, 4}, sl_text_of("sep=")) &&
                line[4] != '\0' && strchr(delimiters, line[4]);
    if (!fits)
        return 0;
    delimiter[0] = line[4];
    return mark + length + 1;
}

/* Looks for a delimiter that divides the text better than the given one, or than none (`undivided`:
 * one column). Refuses a text of one column whose name may be a title. */
static bool find_other(const sl_format_options *options, sl_table *table, bool undivided,
                       sl_text head, bool whole, size_t from, sl_error *error) {
    sl_format_options free_choice = *options;
    sl_table other = {.escape = table->escape, .notation = table->notation, .first = table->first};
    sl_error ignored;
    char why[200];
    free_choice.delimiter = 0;
    if ((!options->delimiter && !undivided) ||
        !search(&free_choice, &other, head, whole, from, &ignored) || other.blanks ||
        other.first.delimiter == options->delimiter || other.first.fields <= table->first.fields ||
        (undivided && may_have_decimal_commas(&other, head)))
        return true;
    table->other = other.first.delimiter;
    table->other_fields = other.first.fields;
    const size_t lines = sl_line_feeds(head.bytes, head.bytes + other.first.text_start);
    const bool tab = other.first.delimiter == '\t';
    snprintf(why, sizeof why,
             "%s would divide the next lines evenly into %zu columns. If it is a title, give "
             "--skip-lines %zu, and if it is one column, --delimiter %s",
             tab ? "tab" : (char[]){other.first.delimiter, '\0'}, other.first.fields, lines,
             tab ? "','" : "tab");
    return !undivided || options->header != SL_HEADER_AUTO || refuse(table->first.line, why, error);
}

/* Do all lines of a text, at least one, end in CR LF? An escaped line feed ends no line. */
static bool has_cr_lines(sl_text head) {
    size_t lines = 0;
    for (const char *at = head.bytes, *end = at + head.length;
         (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
        if (sl_is_escaped(head.bytes, at, '\\'))
            continue;
        if (at == head.bytes || at[-1] != '\r')
            return false;
        lines++;
    }
    return lines > 0;
}

void sl_table_set_notation(sl_table *table, const sl_format_options *options,
                           const sl_notation *of_schema, sl_text head, bool whole, char *delimiter,
                           char *quote) {
    const sl_notation *given = options->notation ? options->notation : of_schema;
    char found = 0;
    table->notation =
        given ? given : sl_notation_recognise(head, whole, *delimiter, &found, table->why);
    if (!given && *table->why && !table->notation->null)
        table->null = "\\N";
    table->cr_lines = has_cr_lines(head);
    if (given && !*delimiter)
        *delimiter = given->delimiter;
    else if (!*delimiter && table->notation->escape)
        *delimiter = found;
    if (*quote == SL_QUOTE_AUTO)
        *quote =
            table->notation->quote_escape && *delimiter && !sl_has_quoted_fields(head, *delimiter)
                ? SL_QUOTE_NONE
                : table->notation->quote;
}

bool sl_table_find(const sl_format_options *chosen, const sl_encoding *encoding, sl_text head,
                   bool whole, sl_table *table, sl_error *error) {
    sl_format_options copy = *chosen;
    const sl_format_options *options = &copy;
    *table = (sl_table){.escape = chosen->escape, .encoding = encoding};
    sl_table_set_notation(table, chosen, NULL, head, whole, &copy.delimiter, &copy.quote);
    if (!table->escape)
        table->escape = table->notation->quote_escape;
    size_t skip = sl_after_lines(head, options->skip_lines);
    bool declared = options->header != SL_HEADER_AUTO || options->columns || skip > 0 ||
                    (chosen->notation && chosen->notation->escape);
    size_t skipped = (size_t)options->skip_lines;
    const char given[2] = {options->delimiter, '\0'};
    char separator[2] = "";
    if (skip == 0) {
        skip = separator_line(head, separator);
        skipped = skip > 0;
    }
    if (!sl_first_line_read(head, skip,
                            *given       ? given
                            : *separator ? separator
                                         : delimiters,
                            options->quote, &table->first, error))
        return false;
    if (skip > 0) {
        table->skipped = skipped;
        if (*separator)
            add_note(table, "; the first line, sep=%s, is skipped", separator);
        else
            add_note(table, "; %s skipped", sl_plural(skipped, "first line[s] [is|are]"));
    }
    if (strchr("{[<", *table->first.line.bytes) && !declared)
        return refuse(table->first.line, "it looks like JSON, XML or HTML", error);
    if (table->notation->escape && table->first.delimiter == 0) { /* its line end may be data */
        sl_first_line line = table->first;
        table->first.delimiter = options->delimiter;
        sl_table_extend_first(table, head);
        if (table->first.fields < 2)
            table->first = line;
    }
    table->quote = sl_quote_of(options->quote, table->first.delimiter);
    if (table->notation->escape) /* delimiters after escapes divide nothing */
        table->first.fields = sl_table_split(table, table->first.line, NULL, 0);
    if (table->notation->escape && table->first.fields < 2)
        table->first.delimiter = 0;
    if (!*separator && !*given)
        prefer_semicolons(table, head, whole);
    if (options->quote == SL_QUOTE_AUTO)
        find_quote(table, head, whole);
    const size_t from = table->first.text_start;
    if (!declared)
        skip_titles(table, head, whole);
    sl_table_extend_first(table, head);
    evidence found = {0};
    size_t searched_from = table->first.text_start > from ? from : SIZE_MAX;
    bool header = false; /* with another number of fields than the lines */
    const sl_text first = table->first.line;
    sl_text *fields = sl_table_fields(table, error);
    bool ok = fields && evidence_collect(table, head, whole, fields, &found, error);
    bool normal = table->first.delimiter != 0 && 2 * found.fitting >= found.lines;
    bool typed = ok && fields_have_typed(fields, table->first.fields);
    normal = normal || (ok && options->pad && table->first.delimiter != 0 &&
                        heads_short_lines(table, fields, &found));
    normal = normal || (ok && is_column(table, head, whole, typed));
    if (ok && !declared && normal && typed && !found.typed && found.lines > 0)
        normal = false; /* a title with a number, perhaps */
    if (ok && !normal && !declared) {
        sl_lines rule = {.delimiter = table->first.delimiter,
                         .quote = table->quote,
                         .continues = table->quote != 0,
                         .columns = table->first.fields,
                         .advice = ""};
        /* Fields that continue in the next line are refused by check_head. */
        if (table->first.delimiter != 0 && !typed && !sl_lines_check(head, whole, &rule, NULL)) {
            normal = true;
        } else {
            free(fields);
            fields = NULL;
            ok = search(options, table, head, whole, from, error) &&
                 (fields = sl_table_fields(table, error)) != NULL &&
                 evidence_collect(table, head, whole, fields, &found, error);
            const size_t titles = sl_line_feeds(head.bytes, head.bytes + table->first.text_start);
            if (ok && !found.typed && !fields_have_typed(fields, table->first.fields)) {
                char why[200];
                snprintf(why, sizeof why,
                         "it may be prose that contains delimiters. If a table of texts begins in "
                         "line %zu, give --skip-lines %zu; if lines lack their last fields, "
                         "--ragged pad",
                         titles + 1, titles);
                ok = refuse(first, why, error);
            }
            if (ok && header_before(table, head, from)) {
                free(fields);
                header = true;
                ok = (fields = sl_table_fields(table, error)) != NULL;
            }
            searched_from = from;
            if (ok && table->blanks)
                add_note(table, "; fields are separated by %s",
                         table->blanks == 1 ? "blanks" : "two blanks or more");
        }
    }
    found.contrast = found.contrast || header;
    const bool cut = sl_line_is_cut(head, whole, table->first.line);
    ok = ok && complete(options, table, fields, &found, cut, error);
    if (ok && table->first.text_start > searched_from)
        skip_lines(table, head, searched_from);
    if (ok && table->quote != sl_quote_of(SL_QUOTE_AUTO, table->first.delimiter) && table->quote)
        add_note(table, "; fields are quoted by %c", table->quote);
    table->quotes_kept = ok && options->quote == SL_QUOTE_AUTO && keeps_quotes(table, head, whole);
    if (table->quotes_kept)
        add_note(table, "; quotes are kept: --quote '\"' removes them");
    ok = ok && find_other(chosen, table,
                          declared && !options->delimiter && !options->columns &&
                              table->first.delimiter == 0,
                          head, whole, from, error);
    if (ok && !declared && !table->header && is_binary(table, head, table->first.delimiter))
        ok = refuse(first, "it contains bytes that do not occur in text", error);
    free(fields);
    return ok;
}

void sl_table_clear(sl_table *table) {
    free(table->names);
    free(table->memory);
}
