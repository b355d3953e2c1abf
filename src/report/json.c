/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files. libbson writes a document as one line; flatten() normalises that line, then indent()
 * breaks it into lines. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "util/memory_stream.h"
#include "util/private_file.h"
#include "util/read_file.h"
#include "util/text.h"

#define LINE_COLUMNS 100
#define TEXT_BYTES_MAX ((size_t)128 << 20) /* as BSON below 1 GiB, above which libbson aborts */

/* The bytes of the string that begins at `at`, with both quotes. */
static size_t string_length(const char *at) {
    size_t length = 1;
    while (at[length] != '"') {
        length += at[length] == '\\' ? 2 : 1;
    }
    return length + 1;
}

/* Writes a number with the fewest digits. */
static void put_number(FILE *out, const char *digits, size_t length) {
    char shortest[SL_HUMAN_ROOM];
    if (sl_shortest_number((sl_text){digits, length}, shortest))
        fputs(shortest, out);
    else
        fwrite(digits, 1, length, out);
}

/* Copies JSON; characters that sl_text_next_printable does not copy become \uXXXX. They
 * occur only in strings, where the escape is equivalent. */
static void put_escaped(FILE *out, const char *json, size_t length) {
    for (size_t at = 0; at < length;) {
        const size_t from = at;
        char shown[SL_ESCAPED_ROOM];
        size_t bytes = sl_text_next_printable((sl_text){json, length}, &at, shown);
        const uint32_t code = sl_code_point(json + from, at - from);
        if (bytes == at - from)
            fwrite(json + from, 1, bytes, out);
        else if (code > 0xFFFF)
            fprintf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 | (code & 0x3FF));
        else
            fprintf(out, "\\u%04x", code);
    }
}

/* Keeps the spaces. */
static void escape(FILE *out, const char *json) {
    for (size_t length; *json; json += length) {
        length = *json == '"' ? string_length(json) : strspn(json, "+-.0123456789eE");
        if (*json == '"')
            put_escaped(out, json, length);
        else
            put_number(out, json, length += length == 0);
    }
}

/* Normalises spaces and numbers: {"a": 1, "b": [1.5, 2]} */
static void flatten(FILE *out, const char *json) {
    while (*json) {
        size_t length = 1;
        if (*json == '"') {
            length = string_length(json);
            put_escaped(out, json, length);
        } else if (*json == ',' || *json == ':') {
            fputc(*json, out);
            fputc(' ', out);
        } else if (*json == '-' || (*json >= '0' && *json <= '9')) {
            length = strspn(json, "+-.0123456789eE");
            put_number(out, json, length);
        } else if (*json != ' ' && *json != '\n') {
            fputc(*json, out);
        }
        json += length;
    }
}

/* The length in bytes of the object or array at `at`, or limit + 1 if it exceeds `limit`. */
static size_t container_length(const char *at, size_t limit) {
    size_t length = 0;
    unsigned depth = 0;
    do {
        if (at[length] == '{' || at[length] == '[')
            depth++;
        else if (at[length] == '}' || at[length] == ']')
            depth--;
        length += at[length] == '"' ? string_length(at + length) : 1;
    } while (depth > 0 && length <= limit);
    return depth > 0 || length > limit ? limit + 1 : length;
}

/* Breaks a flat line. An object or array that fits is copied at once, so every bracket and comma
 * that the loop reads belongs to one that is broken into lines. */
static void indent(FILE *out, const char *flat) {
    size_t depth = 0;
    size_t column = 0;
    while (*flat) {
        size_t length = 1;
        bool broken = false;
        if (*flat == '"') {
            length = string_length(flat);
        } else if (*flat == '{' || *flat == '[') {
            size_t room = column < LINE_COLUMNS - 1 ? LINE_COLUMNS - 1 - column : 0;
            length = container_length(flat, room > 2 ? room : 2); /* {} is never broken */
            if (length > (room > 2 ? room : 2)) {
                length = 1;
                depth++;
                broken = true;
            }
        } else if (*flat == '}' || *flat == ']') {
            depth--;
            column = 2 * depth;
            fprintf(out, "\n%*s", (int)column, "");
        } else if (*flat == ',') {
            broken = true;
        }
        fwrite(flat, 1, length, out);
        column += length;
        flat += length;
        if (broken) {
            flat += *flat == ' ';
            column = 2 * depth;
            fprintf(out, "\n%*s", (int)column, "");
        }
    }
    fputc('\n', out);
}

/* The output of `write` on `text` as a malloc'd string, or NULL without memory. */
static char *written_by(void (*write)(FILE *out, const char *text), const char *text) {
    char *result = NULL;
    size_t size = 0;
    FILE *out = sl_memory_stream(&result, &size);
    if (!out)
        return NULL;
    write(out, text);
    return fclose(out) == 0 ? result : NULL;
}

char *sl_json_text(const bson_t *document, sl_error *error) {
    char *json = sl_document_json(document);
    char *flat = json ? written_by(flatten, json) : NULL;
    char *text = flat ? written_by(indent, flat) : NULL;
    if (!text)
        sl_error_memory(error, "writing JSON");
    free(flat);
    bson_free(json);
    return text;
}

char *sl_json_line(const bson_t *document) {
    char *json = sl_document_json(document);
    char *line = json ? written_by(escape, json) : NULL;
    bson_free(json);
    return line;
}

char *sl_json_value(const bson_iter_t *value) {
    bson_t alone = BSON_INITIALIZER;
    bool ok = bson_append_iter(&alone, "", 0, value);
    char *json = ok ? sl_document_json(&alone) : NULL;
    char *flat = json ? written_by(flatten, json) : NULL; /* {"": VALUE} */
    if (flat) {
        size_t length = strlen(flat) - strlen("{\"\": }");
        memmove(flat, flat + strlen("{\"\": "), length);
        flat[length] = 0;
    }
    bson_free(json);
    bson_destroy(&alone);
    return flat;
}

bool sl_json_write_file(const char *path, const bson_t *document, sl_error *error) {
    char *text = sl_json_text(document, error);
    if (!text)
        return sl_error_prefix(error, "%s", path);
    bool ok = sl_private_file_replace(path, text, strlen(text), error);
    free(text);
    return ok;
}

/* The index of the first byte after the object or array at the start of `text`. */
static size_t container_end(const char *text, size_t length) {
    size_t at = 0;
    size_t depth = 0;
    bool in_string = false;
    do {
        char byte = text[at];
        if (in_string && byte == '\\')
            at++;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && (byte == '{' || byte == '['))
            depth++;
        else if (!in_string && (byte == '}' || byte == ']'))
            depth--;
        at++;
    } while (at < length && (depth > 0 || strchr(" \t\r\n", text[at - 1])));
    return at;
}

bson_t *sl_json_parse(const char *text, size_t length, bson_error_t *wrong) {
    if (length > TEXT_BYTES_MAX) {
        bson_set_error(wrong, BSON_ERROR_JSON, BSON_JSON_ERROR_READ_INVALID_PARAM,
                       "larger than %zu MiB", TEXT_BYTES_MAX >> 20);
        return NULL;
    }
    bson_t *document = bson_new_from_json((const uint8_t *)text, (ssize_t)length, wrong);
    if (!document)
        return NULL;
    /* libbson ignores text after the first object. */
    size_t at = container_end(text, length);
    while (at < length && strchr(" \t\r\n", text[at]))
        at++;
    if (at < length) {
        bson_set_error(wrong, BSON_ERROR_JSON, BSON_JSON_ERROR_READ_CORRUPT_JS,
                       "Got parse error at \"%c\", position %zu: \"TRAILING_TEXT\"", text[at], at);
        bson_destroy(document);
        document = NULL;
    }
    return document;
}

static bool parse_file(const char *path, sl_text text, bson_t **document, sl_error *error) {
    bson_error_t wrong = {0};
    *document = sl_json_parse(text.bytes, text.length, &wrong);
    free((char *)text.bytes);
    return *document ||
           sl_error_set(error, SL_EXIT_SOURCE, "%s: not a JSON document: %s", path, wrong.message);
}

bool sl_json_read_file(const char *path, bson_t **document, sl_error *error) {
    sl_text text;
    *document = NULL;
    if (!sl_read_file(path, TEXT_BYTES_MAX, SL_EXIT_USAGE, &text, error))
        return sl_error_prefix(error, "%s", path);
    return parse_file(path, text, document, error);
}

bool sl_json_read_private(const char *path, bson_t **document, sl_error *error) {
    sl_text text;
    *document = NULL;
    return sl_private_file_read(path, TEXT_BYTES_MAX, SL_EXIT_USAGE, &text, error) &&
           parse_file(path, text, document, error);
}
