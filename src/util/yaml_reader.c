/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64     /* nested mappings and lists */
#define ANCHORS_MAX 1000 /* in one file */
#define NODES_MAX 100000 /* keys, values, lists and mappings; also with each alias replaced */
#define ALIASED_MAX ((size_t)1 << 20) /* bytes that aliases may add to the text */
#define TOO_DEEP "more than 64 nested lists and mappings"

/* ---- messages ---- */

bool sl_yaml_fail(sl_yaml *r, yaml_mark_t mark, const char *format, ...) {
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sl_error_set(r->error, r->code, "%s:%zu:%zu: %s", r->file, mark.line + 1,
                        mark.column + 1, message);
}

bool sl_yaml_expected(sl_yaml *r, const yaml_node_t *node, const char *expected) {
    char found[SL_YAML_FOUND_ROOM];
    return sl_yaml_fail(r, node->start_mark, "expected %s, found %s", expected,
                        sl_yaml_found(node, found));
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

/* ---- values ---- */

sl_text sl_yaml_text(const yaml_node_t *node) {
    if (node->type != YAML_SCALAR_NODE)
        return (sl_text){"", 0};
    return (sl_text){(const char *)node->data.scalar.value, node->data.scalar.length};
}

const char *sl_yaml_word(const yaml_node_t *node) {
    sl_text text = sl_yaml_text(node);
    return text.length > 0 && !memchr(text.bytes, '\0', text.length) ? text.bytes : NULL;
}

bool sl_yaml_is(const yaml_node_t *node, const char *value) {
    return node->type == YAML_SCALAR_NODE && sl_text_equal(sl_yaml_text(node), sl_text_of(value));
}

bool sl_yaml_choice(sl_yaml *r, const yaml_node_t *node, const char *const *words, size_t count,
                    const char *expected, size_t *index) {
    for (*index = 0; *index < count; ++*index) {
        if (sl_yaml_is(node, words[*index]))
            return true;
    }
    return sl_yaml_expected(r, node, expected);
}

/* ---- mappings and sequences ---- */

size_t sl_yaml_length(const yaml_node_t *node) {
    if (node->type == YAML_MAPPING_NODE)
        return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    if (node->type == YAML_SEQUENCE_NODE)
        return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    return 0;
}

bool sl_yaml_pair(sl_yaml *r, const yaml_node_t *node, size_t i, const yaml_node_t **key,
                  const yaml_node_t **value) {
    if (node->type != YAML_MAPPING_NODE || i >= sl_yaml_length(node))
        return false;
    const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
    *key = yaml_document_get_node(&r->document, pair->key);
    *value = yaml_document_get_node(&r->document, pair->value);
    return true;
}

const yaml_node_t *sl_yaml_item(sl_yaml *r, const yaml_node_t *node, size_t i) {
    if (node->type != YAML_SEQUENCE_NODE || i >= sl_yaml_length(node))
        return NULL;
    return yaml_document_get_node(&r->document, node->data.sequence.items.start[i]);
}

/* Sets an error if an earlier pair has the key of pair `i`. */
static bool is_new(sl_yaml *r, const yaml_node_t *node, size_t i) {
    const yaml_node_t *key, *earlier, *value;
    char name[SL_YAML_FOUND_ROOM];
    sl_yaml_pair(r, node, i, &key, &value);
    for (size_t k = 0; k < i && sl_yaml_pair(r, node, k, &earlier, &value); k++) {
        if (earlier->type == key->type && sl_text_equal(sl_yaml_text(earlier), sl_yaml_text(key)))
            return sl_yaml_fail(r, key->start_mark, "the key %s is given twice",
                                sl_yaml_found(key, name));
    }
    return true;
}

bool sl_yaml_each(sl_yaml *r, const yaml_node_t *node, const char *expected,
                  bool (*one)(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *value,
                              void *into),
                  void *into) {
    const yaml_node_t *key, *value;
    if (node->type != YAML_MAPPING_NODE)
        return sl_yaml_expected(r, node, expected);
    for (size_t i = 0; sl_yaml_pair(r, node, i, &key, &value); i++) {
        if (!is_new(r, node, i) || !one(r, key, value, into))
            return false;
    }
    return true;
}

bool sl_yaml_count(sl_yaml *r, const yaml_node_t *node, yaml_node_type_t type, const char *expected,
                   size_t *count) {
    char found[SL_YAML_FOUND_ROOM];
    *count = node->type == type ? sl_yaml_length(node) : 0;
    return *count > 0 ||
           sl_yaml_fail(r, node->start_mark, "expected %s, found %s", expected,
                        node->type == type ? "an empty one" : sl_yaml_found(node, found));
}

static bool fail_unknown_key(sl_yaml *r, const yaml_node_t *name, const sl_yaml_key *keys) {
    char expected[400] = "one of the keys ";
    for (const sl_yaml_key *k = keys; k->name; k++) {
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s", k == keys ? "" : ", ", k->name);
    }
    return sl_yaml_expected(r, name, expected);
}

bool sl_yaml_mapping(sl_yaml *r, const yaml_node_t *node, const sl_yaml_key *keys, void *into) {
    const yaml_node_t *name, *value;
    char expected[100];
    if (node->type != YAML_MAPPING_NODE) {
        snprintf(expected, sizeof expected, "a mapping of keys to values, such as %s: ...",
                 keys[0].name);
        return sl_yaml_expected(r, node, expected);
    }
    bool seen[SL_YAML_KEYS_MAX] = {false};
    for (size_t i = 0; sl_yaml_pair(r, node, i, &name, &value); i++) {
        size_t k = 0;
        while (keys[k].name && !sl_yaml_is(name, keys[k].name))
            k++;
        if (!keys[k].name)
            return fail_unknown_key(r, name, keys);
        if (seen[k])
            return is_new(r, node, i);
        seen[k] = true;
        if (!keys[k].read(r, value, (char *)into + keys[k].offset))
            return false;
    }
    for (size_t k = 0; keys[k].name; k++) {
        if (keys[k].required && !seen[k])
            return sl_yaml_fail(r, node->start_mark, "the key \"%s\" is missing here",
                                keys[k].name);
    }
    return true;
}

/* ---- documents ---- */

static bool start(yaml_parser_t *parser, sl_yaml *r) {
    if (!yaml_parser_initialize(parser))
        return sl_error_memory(r->error, "reading YAML");
    yaml_parser_set_input_string(parser, (const unsigned char *)r->text.bytes, r->text.length);
    return true;
}

static bool refuse(sl_yaml *r, const yaml_mark_t *mark, const char *reason) {
    return sl_error_set(r->error, r->code,
                        "%s:%zu: %s; simplify the file, or check that it is the right file",
                        r->file, mark->line + 1, reason);
}

/* Checks the limits while parsing the text into events. The parser reads ahead by at most one line
 * of 1,024 characters, so the pass ends before deep nesting makes it slow. True for text that is
 * not YAML: load() reports the syntax error. */
static bool within_limits(sl_yaml *r) {
    yaml_parser_t parser;
    if (r->text.length > SL_YAML_BYTES_MAX)
        return sl_error_set(r->error, r->code, "%s: larger than %zu MiB; is it the right file?",
                            r->file, SL_YAML_BYTES_MAX >> 20);
    if (!start(&parser, r))
        return false;
    yaml_event_t event;
    unsigned depth = 0, anchors = 0, nodes = 0;
    bool ok = true;
    for (bool more = true; more && ok && yaml_parser_parse(&parser, &event);) {
        const yaml_char_t *anchor = NULL;
        more = event.type != YAML_STREAM_END_EVENT && event.type != YAML_NO_EVENT;
        if (event.type == YAML_SEQUENCE_START_EVENT) {
            anchor = event.data.sequence_start.anchor;
            depth++;
        } else if (event.type == YAML_MAPPING_START_EVENT) {
            anchor = event.data.mapping_start.anchor;
            depth++;
        } else if (event.type == YAML_SCALAR_EVENT) {
            anchor = event.data.scalar.anchor;
        } else if (event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT) {
            depth--;
            nodes--;
        }
        anchors += anchor != NULL;
        nodes++;
        if (depth > DEPTH_MAX)
            ok = refuse(r, &event.start_mark, TOO_DEEP);
        else if (anchors > ANCHORS_MAX)
            ok = refuse(r, &event.start_mark, "more than 1,000 anchors");
        else if (nodes > NODES_MAX)
            ok = refuse(r, &event.start_mark, "more than 100,000 keys and values");
        yaml_event_delete(&event);
    }
    if (ok && parser.error != YAML_NO_ERROR && !parser.problem)
        ok = sl_error_memory(r->error, "reading YAML");
    yaml_parser_delete(&parser);
    return ok;
}

/* Loads the next document of the text. */
static bool load(sl_yaml *r, yaml_parser_t *parser, yaml_document_t *document) {
    if (yaml_parser_load(parser, document))
        return true;
    if (!parser->problem) /* all other errors have one */
        return sl_error_memory(r->error, "reading YAML");
    if (parser->error == YAML_READER_ERROR)
        return sl_error_set(r->error, r->code, "%s: byte %zu: not YAML: %s", r->file,
                            parser->problem_offset, parser->problem);
    return sl_yaml_fail(r, parser->problem_mark, "not YAML: %s%s%s",
                        parser->context ? parser->context : "", parser->context ? ": " : "",
                        parser->problem);
}

/* What a walk over a document may still visit. */
typedef struct budget {
    size_t nodes;
    size_t bytes; /* of scalars */
} budget;

/* Walks over the document as its readers do: what an alias refers to is visited for each alias. The
 * walk ends at the limits. So it also ends if an alias is within the value that it refers to. */
static bool small_enough(sl_yaml *r, const yaml_node_t *node, unsigned depth, budget *left) {
    const yaml_node_t *key, *value, *item;
    size_t bytes = sl_yaml_text(node).length;
    bool ok = true;
    if (left->nodes == 0 || bytes > left->bytes)
        return refuse(r, &node->start_mark,
                      "its aliases stand for too much text or too many values");
    if (depth > DEPTH_MAX)
        return refuse(r, &node->start_mark, TOO_DEEP ", with its aliases replaced");
    left->nodes--;
    left->bytes -= bytes;
    depth += node->type != YAML_SCALAR_NODE;
    for (size_t i = 0; ok && sl_yaml_pair(r, node, i, &key, &value); i++)
        ok = small_enough(r, key, depth, left) && small_enough(r, value, depth, left);
    for (size_t i = 0; ok && (item = sl_yaml_item(r, node, i)); i++)
        ok = small_enough(r, item, depth, left);
    return ok;
}

static bool is_single(sl_yaml *r, yaml_parser_t *parser) {
    yaml_document_t second;
    if (!load(r, parser, &second))
        return false;
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root)
        sl_yaml_fail(r, root->start_mark, "expected one %s, found a second document", r->single);
    yaml_document_delete(&second);
    return !root;
}

bool sl_yaml_read(sl_yaml *r, const yaml_node_t **root) {
    yaml_parser_t parser;
    *root = NULL;
    if (!within_limits(r) || !start(&parser, r))
        return false;
    bool ok = load(r, &parser, &r->document);
    budget left = {NODES_MAX, r->text.length + ALIASED_MAX};
    *root = ok ? yaml_document_get_root_node(&r->document) : NULL;
    if (ok &&
        ((*root && !small_enough(r, *root, 0, &left)) || (r->single && !is_single(r, &parser)))) {
        yaml_document_delete(&r->document);
        *root = NULL;
        ok = false;
    }
    yaml_parser_delete(&parser);
    return ok;
}

/* ---- writing ---- */

void sl_yaml_put_quoted(FILE *out, const char *text) {
    const sl_text all = sl_text_of(text);
    putc('"', out);
    for (size_t at = 0, from = 0; from < all.length; from = at) {
        char shown[SL_ESCAPED_ROOM];
        const size_t bytes = sl_text_next_printable(all, &at, shown), length = at - from;
        const uint32_t code = sl_code_point(text + from, length);
        if (bytes > length || code >= 0xFE00)
            fprintf(out, "\\U%08x", (unsigned)code);
        else
            fprintf(out, "%s%.*s", code == '"' || code == '\\' ? "\\" : "", (int)bytes, shown);
    }
    putc('"', out);
}
