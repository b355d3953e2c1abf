/* SPDX-License-Identifier: Apache-2.0 */
/* The table of notations, and their recognition; see notation.h. */
#include "notation.h"
#include "column_types.h"
#include "head.h"

#include <stdlib.h>

/* clang-format off */
const sl_notation sl_notations[SL_NOTATIONS + 1] = {
    {.name = "csv", .help = "as RFC 4180", .words = true},
    {.name = "sql-csv", .help = "CSV of PostgreSQL or DuckDB: nothing is NULL, \"\" is empty text",
     .quote = '"', .null = "", .yes = "t", .no = "f", .words = true},
    {.name = "postgres", .help = "COPY, text format", .delimiter = '\t', .quote = SL_QUOTE_NONE,
     .escape = '\\', .escapes = SL_ESCAPES_POSTGRES, .letters = "bfnrtv\\", .escapes_ends = true,
     .null = "\\N", .yes = "t", .no = "f", .header_rare = true},
    {.name = "mysql", .help = "mysqldump --tab, SELECT ... INTO OUTFILE", .delimiter = '\t',
     .quote_escape = '\\', .escape = '\\', .escapes = SL_ESCAPES_MYSQL,
     .letters = "0bnrtZ\\'\"", .escapes_ends = true, .null = "\\N", .header_rare = true,
     .cr_is_data = true},
    {.name = "mysql-batch", .help = "mysql --batch", .delimiter = '\t', .quote = SL_QUOTE_NONE,
     .escape = '\\', .escapes = SL_ESCAPES_MYSQL, .letters = "0nt\\", .null = "NULL",
     .header_usual = true, .cr_is_data = true},
    {.name = "excel", .help = "CSV or Unicode text of spreadsheets", .quote = '"', .words = true},
    {.name = NULL},
};
/* clang-format on */

const sl_notation *sl_notation_named(const char *name) {
    for (const sl_notation *row = sl_notations; name && row->name; row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

/* ---- escapes ---- */

/* Reads up to `most` digits; returns their number. */
static size_t read_digits(const char *at, const char *end, unsigned base, size_t most, char *byte) {
    unsigned value = 0;
    size_t count = 0;
    for (unsigned digit;
         count < most && at + count < end && (digit = (unsigned)sl_hex_digit(at[count])) < base;
         count++)
        value = value * base + digit;
    *byte = (char)value;
    return count;
}

/* The byte that a letter after the escape character stands for. */
static char letter_byte(sl_escapes escapes, char letter) {
    static const char letters[] = "bntr", bytes[] = "\b\n\t\r";
    const char *common = letter ? strchr(letters, letter) : NULL;
    if (common)
        return bytes[common - letters];
    if (escapes == SL_ESCAPES_POSTGRES)
        return letter == 'f' ? '\f' : letter == 'v' ? '\v' : letter;
    return letter == '0' ? '\0' : letter == 'Z' ? '\x1A' : letter;
}

/* Has this byte a meaning after the escape character? */
static bool is_known(const sl_notation *notation, char strict, char letter) {
    return !strict || (letter && strchr(notation->letters, letter)) ||
           (notation->escapes_ends && (letter == strict || letter == '\n'));
}

void sl_notation_letters(const sl_notation *notation, char strict, uint8_t bytes[256]) {
    const bool numbers = notation->escapes == SL_ESCAPES_POSTGRES;
    for (unsigned i = 0; notation->escape && i < 256; i++)
        bytes[i] =
            (numbers && (i == 'x' || (i >= '0' && i < '8'))) || !is_known(notation, strict, (char)i)
                ? 0
                : (uint8_t)letter_byte(notation->escapes, (char)i);
}

const char *sl_notation_strange(const sl_notation *notation, char strict, sl_text text) {
    const char *at = text.bytes, *end = at + text.length;
    while (strict && end - at >= 2 &&
           (at = memchr(at, notation->escape, (size_t)(end - at) - 1)) != NULL) {
        if (!is_known(notation, strict, at[1]))
            return at;
        at += 2;
    }
    return NULL;
}

size_t sl_unescape(const sl_notation *notation, const char *from, size_t length, char *to,
                   bool *numeric) {
    const char *end = from + length, *start = to;
    const bool numbers = notation->escapes == SL_ESCAPES_POSTGRES;
    while (from < end) {
        if (*from != notation->escape) {
            *to++ = *from++;
            continue;
        }
        if (++from == end)
            return SIZE_MAX;
        char byte;
        size_t octal = numbers ? read_digits(from, end, 8, 3, &byte) : 0;
        size_t hexadecimal = numbers && *from == 'x' ? read_digits(from + 1, end, 16, 2, &byte) : 0;
        if (octal + hexadecimal > 0) {
            *numeric = true;
            from += octal + hexadecimal + (hexadecimal > 0);
        } else {
            byte = letter_byte(notation->escapes, *from++);
        }
        *to++ = byte;
    }
    return (size_t)(to - start);
}

/* ---- recognition ---- */

#define DELIMITERS "\t|,;\x01"
#define DELIMITER_COUNT (sizeof DELIMITERS - 1)

/* What the backslashes of a text show. */
typedef struct seen {
    size_t nulls[DELIMITER_COUNT];      /* fields that are \N, between these delimiters */
    size_t delimiters[DELIMITER_COUNT]; /* after a backslash */
    size_t lines;                       /* line feeds after a backslash */
    size_t pairs;                       /* of backslashes */
    size_t batch;                       /* letters that mysql --batch writes: \n, \t, \0 */
    size_t letters;                     /* other letters that PostgreSQL writes */
    size_t zeros;                       /* \0 */
    size_t quotes;                      /* \" */
    size_t other;                       /* backslashes that none of these programs writes */
} seen;

static bool ends_field(sl_text head, bool whole, size_t at, char delimiter) {
    return at >= head.length
               ? whole
               : head.bytes[at] == delimiter || head.bytes[at] == '\n' || head.bytes[at] == '\r';
}

/* Is the field with this end a lone \N, whose backslash is at `at`? */
static bool is_null(sl_text head, bool whole, size_t at, char delimiter) {
    bool begins = at == 0 || head.bytes[at - 1] == delimiter || head.bytes[at - 1] == '\n';
    return begins && ends_field(head, whole, at + 2, delimiter);
}

static void see_backslash(sl_text head, bool whole, size_t at, seen *s) {
    const char next = head.bytes[at + 1], *delimiter = next ? strchr(DELIMITERS, next) : NULL;
    bool null = false;
    for (size_t i = 0; i < DELIMITER_COUNT && next == 'N'; i++) {
        bool here = is_null(head, whole, at, DELIMITERS[i]);
        s->nulls[i] += here;
        null = null || here;
    }
    if (null)
        return;
    if (delimiter)
        s->delimiters[delimiter - DELIMITERS]++;
    else if (next == '\n')
        s->lines++;
    else if (next == '\\')
        s->pairs++;
    else if (next == '"')
        s->quotes++;
    else if (next && strchr("nt0", next))
        s->batch++;
    else if (next && strchr("bfrv", next))
        s->letters++;
    else if (next != '.' || (at > 0 && head.bytes[at - 1] != '\n'))
        s->other++;
    s->zeros += next == '0';
}

static void see_backslashes(sl_text head, bool whole, seen *s) {
    *s = (seen){.lines = 0};
    const char *end = head.bytes + head.length, *at = head.bytes;
    while (end - at >= 2 && (at = memchr(at, '\\', (size_t)(end - at) - 1)) != NULL) {
        see_backslash(head, whole, (size_t)(at - head.bytes), s);
        at += 2;
    }
}

/* Have all complete records, at least two, the same number of fields, of two or more? */
static bool is_even(sl_text head, char delimiter, char escape) {
    const char *at = head.bytes, *end = at + head.length;
    size_t first = 0, records = 0;
    for (const char *stop; (stop = sl_find_bare(at, end, '\n', escape)) < end; at = stop + 1) {
        size_t fields = 1;
        for (const char *p = at; (p = sl_find_bare(p, stop, delimiter, escape)) < stop; p++)
            fields++;
        first = records++ == 0 ? fields : first;
        if (fields != first)
            return false;
    }
    return records > 0 && first > 1;
}

/* The number of fields that consist of `word`. */
static size_t count_words(sl_text head, bool whole, const char *word, char delimiter) {
    const size_t length = strlen(word);
    const char *end = head.bytes + head.length, *at = head.bytes;
    size_t count = 0;
    for (; (at = memmem(at, (size_t)(end - at), word, length)) != NULL; at += length) {
        bool begins = at == head.bytes || at[-1] == delimiter || at[-1] == '\n';
        count += begins && ends_field(head, whole, (size_t)(at - head.bytes) + length, delimiter);
    }
    return count;
}

static const sl_notation *row_of(const char *name, char *why, const char *because) {
    snprintf(why, SL_NOTATION_WHY_ROOM, "%s", because);
    return sl_notation_named(name);
}

/* The delimiter: the given one, or the one around most fields that are \N. */
static size_t delimiter_of(char given, const seen *s) {
    size_t best = 0, most = 0;
    for (size_t i = 0; i < DELIMITER_COUNT; i++) {
        if (given ? DELIMITERS[i] == given : s->nulls[i] > most) {
            best = i;
            most = s->nulls[i];
        }
    }
    return best;
}

bool sl_has_quoted_fields(sl_text head, char delimiter) {
    bool begins = true, any = false;
    for (size_t at = 0; at < head.length; at++) {
        if (begins && head.bytes[at] != delimiter &&
            !memchr("\"\\-.0123456789\r\n", head.bytes[at], 16))
            return false;
        if (begins && head.bytes[at] == '"') {
            at = sl_closing_quote(head.bytes, at + 1, head.length, '"', '\\') + 1;
            if (at < head.length && head.bytes[at] != delimiter &&
                !memchr("\r\n", head.bytes[at], 2))
                return false;
            any = any || at < head.length;
        }
        begins = at < head.length && (head.bytes[at] == delimiter || head.bytes[at] == '\n');
    }
    return any;
}

/* Does the first line consist of names? Then no field is NULL, quoted or a number, and none is
 * empty unless `gaps` is set. */
static bool begins_with_names(sl_text head, char delimiter, bool gaps) {
    const char *end = memchr(head.bytes, '\n', head.length);
    for (const char *at = head.bytes; end && at <= end; at++) {
        const char *field = at;
        while (*at != delimiter && *at != '\n')
            at++;
        sl_text name = {field, (size_t)(at - field)};
        if ((name.length == 0 && !gaps) || *field == '"' ||
            sl_text_equal(name, sl_text_of("NULL")) ||
            sl_is_digit(field[*field == '-' || *field == '+']))
            return false;
    }
    return end != NULL;
}

/* Does a time with an offset of hours only, such as 10:00:00+00, end at `at`? */
static bool ends_short_offset(sl_text head, size_t at) {
    if (at < 11 || (head.bytes[at - 3] != '+' && head.bytes[at - 3] != '-') ||
        !sl_is_digit(head.bytes[at - 1]) || !sl_is_digit(head.bytes[at - 2]))
        return false;
    size_t digit = at - 4;
    while (digit > 6 && sl_is_digit(head.bytes[digit]))
        digit--;
    if (head.bytes[digit] == '.' && digit > 8)
        digit -= 3;
    else
        digit = at - 6;
    return head.bytes[digit] == ':' && head.bytes[digit - 3] == ':';
}

/* The delimiter of quoted text: the most frequent one outside of quotes. */
static char frequent_delimiter(sl_text head) {
    size_t counts[DELIMITER_COUNT] = {0}, all[256] = {0}, best = 0;
    bool quoted = false;
    for (size_t i = 0; i < head.length; i++) {
        quoted ^= head.bytes[i] == '"';
        all[(uint8_t)head.bytes[i]] += !quoted;
    }
    for (size_t i = 0; i < DELIMITER_COUNT; i++)
        counts[i] = all[(uint8_t)DELIMITERS[i]];
    for (size_t i = 1; i < DELIMITER_COUNT; i++)
        best = counts[i] > counts[best] ? i : best;
    return DELIMITERS[best];
}

/* What a text shows if it is CSV. */
typedef struct csv_seen {
    size_t nothing; /* empty fields */
    size_t quoted;  /* fields that are "" */
    size_t offsets; /* times with offsets of hours only */
    size_t opened;  /* fields that begin with a quote */
    bool even;      /* all records have the same number of fields, of two or more */
} csv_seen;

static csv_seen see_csv(sl_text head, char delimiter) {
    csv_seen s = {.even = true};
    size_t fields = 1, first = 0;
    bool inside = false;
    for (size_t at = 0; at < head.length; at++) {
        const char byte = head.bytes[at], before = at > 0 ? head.bytes[at - 1] : '\n';
        const bool begins = before == delimiter || before == '\n';
        if (byte == '"' && (inside || begins || before == '"')) {
            s.quoted += !inside && begins && at + 2 < head.length && head.bytes[at + 1] == '"' &&
                        (head.bytes[at + 2] == delimiter || memchr("\r\n", head.bytes[at + 2], 2));
            s.opened += !inside && begins;
            inside = !inside;
        }
        if (inside || (byte != delimiter && byte != '\n'))
            continue;
        s.nothing += begins && (byte == delimiter || before == delimiter);
        s.offsets += ends_short_offset(head, at);
        fields += byte == delimiter;
        if (byte != '\n')
            continue;
        first = first ? first : fields;
        s.even = s.even && fields == first && fields > 1;
        fields = 1;
    }
    return s;
}

/* Fields that are \N have been found. */
static const sl_notation *with_nulls(sl_text head, char delimiter, const seen *s, char *why) {
    const bool quoted = sl_has_quoted_fields(head, delimiter);
    size_t at = delimiter_of(delimiter, s);
    const csv_seen csv = see_csv(head, delimiter);
    if (!quoted && csv.opened && csv.even &&
        (delimiter == ',' || !is_even(head, delimiter, '\\')) &&
        s->pairs + s->lines + s->delimiters[at] == 0)
        return row_of("csv", why, "fields are \\N, and others are quoted");
    if (quoted ? s->letters + s->other > 0 || s->batch > s->zeros : s->other + s->quotes > 0)
        return row_of("csv", why, "fields are \\N, and backslashes are data");
    if (quoted || s->lines + s->zeros + (delimiter == '\t' ? s->delimiters[at] : 0) > 0)
        return row_of("mysql", why,
                      quoted         ? "fields are quoted or \\N"
                      : s->lines > 0 ? "fields are \\N, and line ends are escaped"
                                     : "fields are \\N, and tabs are escaped");
    return row_of("postgres", why, "fields are \\N");
}

/* With a quote: has a column of numbers or dates, all in quotes, also ""? Then "" is no empty text.
 * Without (0): has a column of numbers or dates also empty fields, or words such as NULL? */
static bool has_empty_numbers(sl_text head, char delimiter, char quote) {
    struct column {
        sl_column_guess guess;
        bool empty;
    } *columns = malloc(SL_COLUMNS_MAX * sizeof *columns);
    sl_text fields[SL_COLUMNS_MAX];
    bool header = quote != 0, found = false;
    for (size_t i = 0; columns && i < SL_COLUMNS_MAX; i++)
        columns[i] = (struct column){.guess = SL_COLUMN_GUESS};
    for (size_t start = 0, end; columns && start < head.length; start = end + 1) {
        bool inside = false;
        for (end = start; end < head.length && (inside || head.bytes[end] != '\n'); end++)
            inside ^= quote && head.bytes[end] == quote;
        if (end == head.length) /* perhaps cut */
            break;
        const sl_text line = {head.bytes + start,
                              end - start - (end > start && head.bytes[end - 1] == '\r')};
        const size_t count = sl_fields_split(line, delimiter, quote, 0, fields, SL_COLUMNS_MAX);
        const bool skipped = header; /* and titles before it */
        header = header && count < 2;
        for (size_t i = 0; i < count && i < SL_COLUMNS_MAX && !skipped; i++) {
            const bool quoted = fields[i].bytes > line.bytes && fields[i].bytes[-1] == '"';
            if (fields[i].length == 0)
                columns[i].empty = columns[i].empty || quoted || !quote;
            else if (quoted || !quote)
                sl_column_guess_add(&columns[i].guess, fields[i], NULL);
            else
                sl_column_guess_add_text(&columns[i].guess);
        }
    }
    for (size_t i = 0; columns && i < SL_COLUMNS_MAX && !found; i++) {
        sl_schema_column type = {0};
        sl_column_guess_decide(&columns[i].guess, &type);
        found = type.type != SL_TYPE_TEXT &&
                (columns[i].empty ||
                 (!quote && columns[i].guess.words & ((1u << SL_MISSING_TEXTS) - 1)));
    }
    free(columns);
    return found;
}

/* Is each pair of backslashes in JSON the one that COPY writes for a backslash of JSON? */
static bool has_pairs_of_json(sl_text head) {
    bool json = false;
    for (size_t at = 0; at + 2 < head.length; at++) {
        const char *byte = head.bytes + at;
        if (at == 0 || byte[-1] == '\t' || byte[-1] == '\n')
            json = *byte == '{' || *byte == '[';
        if (!json || byte[0] != '\\' || byte[1] != '\\')
            continue;
        if (!byte[2] || !strchr("\"\\/bfnrtu", byte[2]))
            return false;
        at += byte[2] == '\\' ? 3 : 1; /* of two pairs, JSON has one */
    }
    return true;
}

/* Is the text probably COPY text of PostgreSQL? It has times with a short offset such as +00, no
 * quoted field, and no empty field in a column of numbers. */
static bool is_copied(sl_text head) {
    bool timed = false;
    for (size_t at = 0; at < head.length; at++) {
        const bool ends = head.bytes[at] == '\t' || head.bytes[at] == '\n';
        if (head.bytes[at] == '"' && (at == 0 || memchr("\t\n", head.bytes[at - 1], 2)))
            return false;
        timed = timed || (ends && ends_short_offset(head, at));
    }
    return timed && is_even(head, '\t', 0) &&
           sl_line_feeds(head.bytes, head.bytes + head.length) > 1 &&
           !begins_with_names(head, '\t', true) && !has_empty_numbers(head, '\t', 0) &&
           has_pairs_of_json(head);
}

/* No field is \N. */
static const sl_notation *without_nulls(sl_text head, bool whole, const seen *s, char *why) {
    const bool valid = s->other + s->quotes == 0;
    const bool tabs = memchr(head.bytes, '\t', head.length) != NULL;
    /* A backslash in JSON may be an escape of JSON itself. */
    const bool json = memmem(head.bytes, head.length, "{\"", 2) != NULL;
    if (!tabs || !valid || (json && s->pairs == 0 && s->batch + s->letters > 0))
        return NULL;
    if (s->pairs > 0 && s->lines + s->delimiters[0] == 0 && is_copied(head))
        return row_of("postgres", why, "tabs, pairs of backslashes, and offsets such as +00");
    if (s->lines + s->delimiters[0] > 0 && s->letters == 0 && is_even(head, '\t', '\\') &&
        !is_even(head, '\t', 0))
        return row_of("mysql", why, s->lines ? "line ends are escaped" : "tabs are escaped");
    if (s->lines + s->delimiters[0] > 0)
        return NULL;
    bool names = begins_with_names(head, '\t', false);
    if (names && s->letters == 0 && count_words(head, whole, "NULL", '\t') > 0)
        return row_of("mysql-batch", why, "tabs, a header, and fields that are NULL");
    if (!json && s->pairs > 0 && s->batch + s->letters > 0)
        return names && s->letters == 0
                   ? row_of("mysql-batch", why,
                            "tabs, a header, and backslashes before n, t and \\")
                   : row_of("postgres", why, "tabs, and backslashes before n, t and \\");
    return NULL;
}

/* Is it CSV in which an empty field and "" differ? `null`: fields are \N. */
static const sl_notation *with_empty_texts(sl_text head, char delimiter, bool null, char *why) {
    const csv_seen s = see_csv(head, delimiter);
    const bool known = s.nothing > 0 && (s.quoted > 0 || (s.offsets > 0 && s.opened > 0));
    if (null && !(known && s.even && (delimiter == ',' || !is_even(head, delimiter, '\\'))))
        return NULL;
    if (s.nothing > 0 && s.quoted > 0 &&
        (s.offsets > 0 || !has_empty_numbers(head, delimiter, '"')))
        return row_of("sql-csv", why, "nothing and \"\" differ");
    return s.offsets > 0 ? row_of("sql-csv", why, "times have offsets such as +00") : NULL;
}

const sl_notation *sl_notation_recognise(sl_text head, bool whole, char delimiter, char *found,
                                         char why[SL_NOTATION_WHY_ROOM]) {
    seen s;
    const sl_notation *row;
    *why = '\0';
    *found = 0;
    see_backslashes(head, whole, &s);
    size_t best = delimiter_of(delimiter, &s);
    for (size_t i = 0; i < DELIMITER_COUNT; i++)
        s.other += i == best ? 0 : s.delimiters[i];
    if (s.nulls[best] > 0) {
        if ((row = with_empty_texts(head, DELIMITERS[best], true, why)))
            return row;
        *found = DELIMITERS[best];
        return with_nulls(head, DELIMITERS[best], &s, why);
    }
    if ((!delimiter || delimiter == '\t') && (row = without_nulls(head, whole, &s, why))) {
        *found = '\t';
        return row;
    }
    row = with_empty_texts(head, delimiter ? delimiter : frequent_delimiter(head), false, why);
    return row ? row : sl_notations;
}
