/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the YAML document on standard input to JSON, because the tests have no YAML library.
 * Plain scalars become null, booleans and numbers by YAML's core schema; all other scalars become
 * strings. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

static void put_text(const yaml_node_t *node) {
    putchar('"');
    for (size_t i = 0; i < node->data.scalar.length; i++) {
        unsigned char byte = node->data.scalar.value[i];
        if (byte < 0x20 || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void put_scalar(const yaml_node_t *node) {
    const char *text = (const char *)node->data.scalar.value;
    char *end;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        put_text(node);
        return;
    }
    if (*text == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0) {
        fputs("null", stdout);
        return;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        fputs(text, stdout);
        return;
    }
    bool numeric = text[strspn(text, "+-.0123456789eE")] == '\0' && strpbrk(text, "0123456789");
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (numeric && *end == '\0' && errno == 0) {
        printf("%lld", whole);
        return;
    }
    double number = strtod(text, &end);
    if (numeric && *end == '\0' && isfinite(number))
        printf("%.17g", number);
    else
        put_text(node);
}

static void put_node(yaml_document_t *document, const yaml_node_t *node) {
    const char *between = "";
    switch (node->type) {
    case YAML_SEQUENCE_NODE:
        putchar('[');
        for (yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++, between = ", ") {
            fputs(between, stdout);
            put_node(document, yaml_document_get_node(document, *item));
        }
        putchar(']');
        break;
    case YAML_MAPPING_NODE:
        putchar('{');
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++, between = ", ") {
            fputs(between, stdout);
            put_text(
                yaml_document_get_node(document, pair->key)); /* keys are scalars in the tests */
            fputs(": ", stdout);
            put_node(document, yaml_document_get_node(document, pair->value));
        }
        putchar('}');
        break;
    default:
        put_scalar(node);
    }
}

int main(void) {
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser))
        return 1;
    yaml_parser_set_input_file(&parser, stdin);
    if (!yaml_parser_load(&parser, &document)) {
        fprintf(stderr, "line %zu: %s\n", parser.problem_mark.line + 1, parser.problem);
        return 1;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root)
        put_node(&document, root);
    putchar('\n');
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return 0;
}
