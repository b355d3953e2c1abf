/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the first bytes of a delimited source; checks line ends. */
#include "head.h"
#include "convert.h"
#include "notation.h"

/* A phrase for the kind of a source that begins with these bytes and is not text; NULL: unknown. */
static const char *binary_kind(sl_text head) {
    static const struct {
        const char *magic;
        size_t length;
        const char *kind;
    } kinds[] = {
        {"\x1F\x8B", 2, "gzip-compressed"},
        {"PK\x03\x04", 4, "a zip archive"},
        {"\x28\xB5\x2F\xFD", 4, "zstd-compressed"},
        {"\xFD"
         "7zXZ",
         5, "xz-compressed"},
        {"\xFF\xFE", 2, "UTF-16 text"},
        {"\xFE\xFF", 2, "UTF-16 text"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (head.length >= kinds[i].length &&
            memcmp(head.bytes, kinds[i].magic, kinds[i].length) == 0)
            return kinds[i].kind;
    }
    return NULL;
}

char sl_quote_of(char choice, char delimiter) {
    if (choice == SL_QUOTE_AUTO)
        return delimiter == '|' || delimiter == '\t' ? 0 : '"';
    return choice == SL_QUOTE_NONE ? 0 : choice;
}

bool sl_line_is_blank(sl_text line) {
    size_t blanks = 0;
    while (blanks < line.length && line.bytes[blanks] == ' ')
        blanks++;
    return blanks == line.length;
}

uint32_t sl_line_feeds(const char *from, const char *to) {
    uint32_t count = 0;
    for (const char *p = from; p < to && (p = memchr(p, '\n', (size_t)(to - p))); p++)
        count++;
    return count;
}

bool sl_next_line(sl_text head, bool whole, size_t *at, sl_text *line) {
    if (*at >= head.length)
        return false;
    const char *begin = head.bytes + *at;
    const char *end = memchr(begin, '\n', head.length - *at);
    *line = (sl_text){begin, end ? (size_t)(end - begin) : head.length - *at};
    *at += line->length + 1;
    if (line->length > 0 && begin[line->length - 1] == '\r')
        line->length--;
    return end || whole;
}

bool sl_first_line_read(sl_text head, size_t from, const char *delimiters, char quote,
                        sl_first_line *first, sl_error *error) {
    const sl_text rest = {head.bytes + from, head.length - from};
    const char *kind = rest.length > 0 ? binary_kind(rest) : NULL;
    if (kind)
        return sl_error_set(error, SL_EXIT_SOURCE, "this is %s, not delimited text", kind);
    size_t at = from + sl_byte_order_mark(rest);
    first->text_start = at;
    first->marked = sl_byte_order_mark(head) > 0;
    first->line.length = 0;
    while (at < head.length && first->line.length == 0) {
        size_t begin = at;
        sl_text line;
        sl_next_line(head, true, &at, &line);
        at = at < head.length ? at : head.length;
        first->header_bytes = at - begin;
        if (!sl_line_is_blank(line))
            first->line = line;
    }
    if (first->line.length == 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "the file is empty: all its lines are blank");
    if (memchr(first->line.bytes, '\0', first->line.length))
        return sl_error_set(error, SL_EXIT_SOURCE, "this is a binary file, not delimited text");
    first->end = at;
    first->delimiter = 0;
    first->fields = 1;
    for (const char *candidate = delimiters; *candidate; candidate++) {
        size_t fields =
            sl_fields_split(first->line, *candidate, sl_quote_of(quote, *candidate), 0, NULL, 0);
        if (fields > first->fields) {
            first->fields = fields;
            first->delimiter = *candidate;
        }
    }
    return true;
}

size_t sl_closing_quote(const char *text, size_t at, size_t end, char quote, char escape) {
    while (at < end) {
        bool pair = at + 1 < end && ((escape && text[at] == escape) ||
                                     (text[at] == quote && text[at + 1] == quote));
        if (text[at] == quote && !pair)
            return at;
        at += pair ? 2 : 1;
    }
    return end;
}

/* The position of the end of the field that starts at `at`. */
static size_t field_end(sl_text line, size_t at, char delimiter, char quote, char escape) {
    size_t open = at;
    while (quote && open < line.length && line.bytes[open] == ' ')
        open++;
    if (quote && open < line.length && line.bytes[open] == quote) {
        size_t close = sl_closing_quote(line.bytes, open + 1, line.length, quote, '\\');
        size_t after = close + 1;
        while (after < line.length && line.bytes[after] == ' ')
            after++;
        if (close < line.length &&
            (open == at || after >= line.length || line.bytes[after] == delimiter))
            at = close;
    }
    const char *end = line.bytes + line.length;
    return (size_t)(sl_find_bare(line.bytes + at, end, delimiter, escape) - line.bytes);
}

size_t sl_fields_split(sl_text line, char delimiter, char quote, char escape, sl_text *names,
                       size_t limit) {
    const char around = quote ? quote : '"';
    size_t count = 0;
    size_t at = 0;
    for (;;) {
        size_t end = field_end(line, at, delimiter, quote, escape);
        if (count < limit) {
            sl_text name = {line.bytes + at, end - at};
            while (name.length > 0 && *name.bytes == ' ')
                name.bytes++, name.length--;
            while (name.length > 0 && name.bytes[name.length - 1] == ' ')
                name.length--;
            if (name.length >= 2 && *name.bytes == around && name.bytes[name.length - 1] == around)
                name = (sl_text){name.bytes + 1, name.length - 2};
            names[count] = name;
        }
        count++;
        if (end >= line.length)
            return count;
        at = end + 1;
    }
}

void sl_header_unquote(sl_text line, char quote, sl_text *names, size_t count, char *memory) {
    const char around = quote ? quote : '"';
    for (size_t i = 0; i < count; i++) {
        if (names[i].length < 2)
            continue;
        const char *end = names[i].bytes + names[i].length;
        bool quoted = names[i].bytes > line.bytes && names[i].bytes[-1] == around &&
                      end < line.bytes + line.length && *end == around;
        if (!quoted)
            continue;
        char *to = memory;
        for (const char *from = names[i].bytes; from < end; from++) {
            *to++ = *from;
            from += *from == around && from + 1 < end && from[1] == around;
        }
        names[i] = (sl_text){memory, (size_t)(to - memory)};
        memory = to;
    }
}

/* ---- line ends ---- */

sl_quotes sl_line_quotes(sl_text line, char delimiter, char quote, bool escapes, size_t *open) {
    for (size_t at = 0;; at++) {
        if (at < line.length && line.bytes[at] == quote) {
            *open = at;
            at = sl_closing_quote(line.bytes, at + 1, line.length, quote, escapes ? '\\' : 0);
            if (at >= line.length)
                return SL_QUOTES_OPEN;
            if (++at < line.length && line.bytes[at] != delimiter)
                return SL_QUOTES_STRANGE;
        }
        while (at < line.length && line.bytes[at] != delimiter)
            at++;
        if (at >= line.length)
            return SL_QUOTES_CLOSED;
    }
}

size_t sl_record_fields(sl_text text, char delimiter, char quote, char escape) {
    size_t fields = 1;
    bool begins = true;
    for (size_t at = 0; at < text.length; at++) {
        char byte = text.bytes[at];
        if (begins && byte == quote) {
            for (at++; at < text.length; at++) {
                bool doubled = at + 1 < text.length && text.bytes[at] == quote &&
                               text.bytes[at + 1] == quote && quote != escape;
                if (doubled || (escape && text.bytes[at] == escape))
                    at++;
                else if (text.bytes[at] == quote)
                    break;
            }
            size_t next = at + 1;
            bool ends =
                next < text.length && (text.bytes[next] == delimiter || text.bytes[next] == '\n' ||
                                       text.bytes[next] == '\r');
            if (!ends)
                return 0;
        } else if (byte == '\n') {
            return fields;
        }
        begins = byte == delimiter;
        fields += begins;
    }
    return 0;
}

bool sl_record_spans_lines(sl_text text, char delimiter, char quote, char escape, size_t columns) {
    size_t open;
    while (text.length > 0) {
        const char *end = memchr(text.bytes, '\n', text.length);
        size_t length = end ? (size_t)(end - text.bytes) : text.length;
        size_t line = length - (length > 0 && text.bytes[length - 1] == '\r');
        if (sl_line_quotes((sl_text){text.bytes, line}, delimiter, quote, escape != 0, &open) ==
                SL_QUOTES_OPEN &&
            sl_record_fields(text, delimiter, quote, escape) == columns)
            return true;
        length += end != NULL;
        text.bytes += length;
        text.length -= length;
    }
    return false;
}

bool sl_line_continues(sl_text line, char delimiter, char quote, size_t *open) {
    size_t with = 0, without = 0;
    sl_quotes escaped = sl_line_quotes(line, delimiter, quote, true, &with);
    sl_quotes plain = sl_line_quotes(line, delimiter, quote, false, &without);
    *open = escaped == SL_QUOTES_OPEN ? with : without;
    return escaped != SL_QUOTES_CLOSED && plain != SL_QUOTES_CLOSED &&
           (escaped == SL_QUOTES_OPEN || plain == SL_QUOTES_OPEN);
}

/* The position of the first CR, from `at` on, that is not in quotes; the line's length if there is
 * none. */
static size_t lone_return(sl_text line, char quote, size_t at) {
    for (bool quoted = false; at < line.length; at++) {
        quoted ^= line.bytes[at] == quote;
        if (line.bytes[at] == '\r' && !quoted)
            break;
    }
    return at;
}

bool sl_line_holds_records(sl_text line, char delimiter, char quote, size_t columns) {
    const char around = quote ? quote : '"';
    size_t from = 0;
    for (size_t at = lone_return(line, around, 0); from < line.length;
         at = lone_return(line, around, from)) {
        sl_text piece = {line.bytes + from, at - from};
        if (from == 0 && at == line.length)
            return false;
        if ((from == 0 || !sl_line_is_blank(piece)) &&
            sl_fields_split(piece, delimiter, quote, 0, NULL, 0) != columns)
            return false;
        from = at + 1;
    }
    return true;
}

static bool refuse_returns(size_t line, size_t byte, sl_error *error) {
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "line %zu, byte %zu: a carriage return (CR) that no line feed (LF) follows; "
        "if it ends a record, convert the file first: tr '\\r' '\\n' < FILE > NEW",
        line, byte);
}

bool sl_lines_check(sl_text head, bool whole, const sl_lines *lines, sl_error *error) {
    size_t at = sl_byte_order_mark(head);
    sl_text line;
    for (size_t number = 1, begin = at; sl_next_line(head, whole, &at, &line);
         number++, begin = at) {
        size_t open;
        if (lines->continues && sl_line_continues(line, lines->delimiter, lines->quote, &open)) {
            char quoted[SL_QUOTED_ROOM];
            if (begin < lines->body)
                return sl_error_set(
                    error, SL_EXIT_SOURCE,
                    "line %zu, byte %zu: a quoted field is still open at the end of its line: %s; "
                    "a header, and lines before it, must not have line ends in quotes: correct the "
                    "file%s",
                    number, begin + open,
                    sl_quoted((sl_text){line.bytes + open, line.length - open}, quoted),
                    lines->advice);
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "line %zu, byte %zu: " SL_LINE_CONTINUES "%s", number, begin + open,
                                sl_quoted((sl_text){line.bytes + open, line.length - open}, quoted),
                                lines->advice);
        }
        if (memchr(line.bytes, '\r', line.length) &&
            sl_line_holds_records(line, lines->delimiter, lines->quote, lines->columns))
            return refuse_returns(
                number, begin + lone_return(line, lines->quote ? lines->quote : '"', 0), error);
    }
    return true;
}

bool sl_first_line_end_check(sl_text head, bool whole, sl_error *error) {
    sl_text line = {head.bytes, 0};
    size_t at = 0;
    bool complete = sl_next_line(head, whole, &at, &line);
    if (!complete && line.length == 0)
        return true;
    size_t found = lone_return(line, '"', 0);
    return found == line.length || refuse_returns(1, found, error);
}
