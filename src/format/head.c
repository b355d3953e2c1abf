/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a delimited source: its first line, its delimiter, the names in its header. */
#include <shardload/head.h>

#include <stdio.h>

static const char byte_order_mark[3] = {'\xEF', '\xBB', '\xBF'};

/* What a source that begins like this is, when it is no text; or NULL. */
static const char *binary_kind(sl_text head) {
    static const struct {
        const char *magic;
        size_t length;
        const char *kind;
    } kinds[] = {
        {"\x1F\x8B", 2, "gzip-compressed"},
        {"PK\x03\x04", 4, "a zip archive"},
        {"\x28\xB5\x2F\xFD", 4, "zstd-compressed"},
        {"BZh", 3, "bzip2-compressed"},
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

bool sl_first_line_read(sl_text head, const char *delimiters, sl_first_line *first,
                        sl_error *error) {
    const char *kind = head.length > 0 ? binary_kind(head) : NULL;
    if (kind)
        return sl_error_set(error, SL_EXIT_SOURCE, "this is %s, not delimited text", kind);
    size_t at = 0;
    if (head.length >= 3 && memcmp(head.bytes, byte_order_mark, 3) == 0)
        at = 3;
    first->text_start = at;
    first->line.length = 0;
    while (at < head.length && first->line.length == 0) {
        const char *line = head.bytes + at;
        const char *end = memchr(line, '\n', head.length - at);
        size_t length = end ? (size_t)(end - line) : head.length - at;
        at += length + (end != NULL);
        first->header_bytes = length + (end != NULL);
        if (length > 0 && line[length - 1] == '\r')
            length--;
        size_t blanks = 0;
        while (blanks < length && line[blanks] == ' ')
            blanks++;
        if (blanks < length)
            first->line = (sl_text){line, length};
    }
    if (first->line.length == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is empty: it has no line that is not blank");
    if (memchr(first->line.bytes, '\0', first->line.length))
        return sl_error_set(error, SL_EXIT_SOURCE, "this is a binary file, not delimited text");
    first->end = at;
    first->delimiter = 0;
    first->fields = 1;
    for (const char *candidate = delimiters; *candidate; candidate++) {
        size_t fields = sl_header_split(first->line, *candidate, NULL, 0);
        if (fields > first->fields) {
            first->fields = fields;
            first->delimiter = *candidate;
        }
    }
    return true;
}

/* Where the field that starts at `at` ends. */
static size_t field_end(sl_text line, size_t at, char delimiter) {
    bool may_be_quoted = delimiter != '|' && delimiter != '\t';
    if (may_be_quoted && at < line.length && line.bytes[at] == '"') {
        size_t close = at + 1;
        while (close < line.length && line.bytes[close] != '"')
            close += line.bytes[close] == '\\' ? 2 : 1;
        if (close < line.length)
            at = close;
    }
    while (at < line.length && line.bytes[at] != delimiter)
        at++;
    return at;
}

size_t sl_header_split(sl_text line, char delimiter, sl_text *names, size_t limit) {
    size_t count = 0;
    size_t at = 0;
    for (;;) {
        size_t end = field_end(line, at, delimiter);
        if (count < limit) {
            sl_text name = {line.bytes + at, end - at};
            while (name.length > 0 && *name.bytes == ' ')
                name.bytes++, name.length--;
            while (name.length > 0 && name.bytes[name.length - 1] == ' ')
                name.length--;
            if (name.length >= 2 && *name.bytes == '"' && name.bytes[name.length - 1] == '"')
                name = (sl_text){name.bytes + 1, name.length - 2};
            names[count] = name;
        }
        count++;
        if (end >= line.length)
            return count;
        at = end + 1;
    }
}
