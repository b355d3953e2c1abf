/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool sl_yaml_fail(sl_yaml *r, yaml_mark_t mark, const char *format, ...) {
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sl_error_set(r->error, SL_EXIT_SOURCE, "%s:%zu:%zu: %s", r->file, mark.line + 1,
                        mark.column + 1, message);
}

const char *sl_yaml_found(const yaml_node_t *node, char out[SL_YAML_FOUND_ROOM]) {
    if (node->type == YAML_MAPPING_NODE)
        return "a mapping";
    if (node->type == YAML_SEQUENCE_NODE)
        return "a list";
    if (node->data.scalar.length == 0)
        return "nothing";
    char value[SL_YAML_FOUND_ROOM - 2];
    sl_text_printable((sl_text){(const char *)node->data.scalar.value, node->data.scalar.length},
                      value, sizeof value);
    snprintf(out, SL_YAML_FOUND_ROOM, "\"%s\"", value);
    return out;
}

sl_text sl_yaml_text(const yaml_node_t *node) {
    return (sl_text){(const char *)node->data.scalar.value, node->data.scalar.length};
}

yaml_mark_t sl_yaml_locate(const sl_yaml *r, const yaml_node_t *node, size_t at) {
    yaml_mark_t mark = node->start_mark;
    yaml_scalar_style_t style = node->data.scalar.style;
    sl_text value = sl_yaml_text(node);
    if (style != YAML_LITERAL_SCALAR_STYLE) {
        bool quoted =
            style == YAML_SINGLE_QUOTED_SCALAR_STYLE || style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        if (node->end_mark.line == mark.line)
            mark.column += at + quoted;
        return mark;
    }
    size_t line_start = 0;
    for (size_t i = 0; i < at && i < value.length; i++) {
        if (value.bytes[i] == '\n') {
            line_start = i + 1;
            mark.line++;
        }
    }
    mark.line++; /* the text of a literal block begins on the line after the | */
    const char *line_end = memchr(value.bytes + line_start, '\n', value.length - line_start);
    size_t shown =
        line_end ? (size_t)(line_end - value.bytes) - line_start : value.length - line_start;

    /* In the file, the line is longer by its indentation. */
    const char *raw = r->text.bytes;
    const char *end = raw + r->text.length;
    for (size_t line = 0; line < mark.line && raw < end; line++) {
        const char *newline = memchr(raw, '\n', (size_t)(end - raw));
        raw = newline ? newline + 1 : end;
    }
    const char *raw_end = memchr(raw, '\n', (size_t)(end - raw));
    size_t raw_length = (size_t)((raw_end ? raw_end : end) - raw);
    if (raw_length > 0 && raw[raw_length - 1] == '\r')
        raw_length--;
    mark.column = (raw_length > shown ? raw_length - shown : 0) + at - line_start;
    return mark;
}

static bool fail_unknown_key(sl_yaml *r, const yaml_node_t *name, const sl_yaml_key *keys) {
    char known[256] = "";
    size_t used = 0;
    for (const sl_yaml_key *k = keys; k->name && used < sizeof known; k++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", k->name);
    char what[SL_YAML_FOUND_ROOM];
    return sl_yaml_fail(r, name->start_mark, "expected one of the keys %s; found %s", known,
                        sl_yaml_found(name, what));
}

bool sl_yaml_mapping(sl_yaml *r, const yaml_node_t *node, const sl_yaml_key *keys, void *into) {
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_MAPPING_NODE)
        return sl_yaml_fail(r, node->start_mark, "expected a mapping with the key \"%s\", found %s",
                            keys[0].name, sl_yaml_found(node, what));
    bool seen[SL_YAML_KEYS_MAX] = {false};
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(&r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);
        if (name->type != YAML_SCALAR_NODE)
            return fail_unknown_key(r, name, keys);
        size_t i = 0;
        while (keys[i].name && !sl_text_equal(sl_yaml_text(name), sl_text_of(keys[i].name)))
            i++;
        if (!keys[i].name)
            return fail_unknown_key(r, name, keys);
        if (seen[i])
            return sl_yaml_fail(r, name->start_mark, "the key \"%s\" is given twice", keys[i].name);
        seen[i] = true;
        if (!keys[i].read(r, value, (char *)into + keys[i].offset))
            return false;
    }
    for (size_t i = 0; keys[i].name; i++) {
        if (keys[i].required && !seen[i])
            return sl_yaml_fail(r, node->start_mark, "the key \"%s\" is missing here",
                                keys[i].name);
    }
    return true;
}

bool sl_yaml_count(sl_yaml *r, const yaml_node_t *node, yaml_node_type_t type, const char *expected,
                   size_t *count) {
    char found[SL_YAML_FOUND_ROOM];
    *count = 0;
    if (node->type == type && type == YAML_SEQUENCE_NODE)
        *count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    else if (node->type == type && type == YAML_MAPPING_NODE)
        *count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    return *count > 0 ||
           sl_yaml_fail(r, node->start_mark, "expected %s, found %s", expected,
                        node->type == type ? "an empty one" : sl_yaml_found(node, found));
}

bool sl_yaml_load(sl_yaml *r, yaml_parser_t *parser) {
    if (yaml_parser_load(parser, &r->document))
        return true;
    if (!parser->problem) /* all other errors have one */
        return sl_error_memory(r->error, "reading YAML");
    if (parser->error == YAML_READER_ERROR)
        return sl_error_set(r->error, SL_EXIT_SOURCE, "%s: byte %zu: %s", r->file,
                            parser->problem_offset, parser->problem);
    return sl_yaml_fail(r, parser->problem_mark, "%s%s%s", parser->context ? parser->context : "",
                        parser->context ? ": " : "", parser->problem);
}
