/* SPDX-License-Identifier: Apache-2.0 */
/* Options: values from the YAML file of --config: one mapping from long option names to scalars or,
 * for lists, sequences of scalars. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "util/print.h"
#include "util/text.h"
#include "util/yaml_limits.h"

#include "options_internal.h"

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

/* Reads the configuration file; free text->bytes. */
static bool read_file(sl_options *options, const char *path, sl_text *text) {
    char shown[SL_NAME_ROOM];
    FILE *file = fopen(path, "r");
    if (!file && sl_exit_of_errno(errno, SL_EXIT_USAGE) == SL_EXIT_RESOURCES)
        return sl_option_memory(options->error, "opening the file of --config");
    if (!file)
        return sl_option_problem(options->error, "--config %s: %s",
                                 sl_options_shown_name(path, strlen(path), shown), strerror(errno));
    setvbuf(file, NULL, _IONBF, 0); /* a buffer would keep a copy of a password */
    char *bytes = malloc(CONFIG_BYTES_MAX + 1);
    size_t length = bytes ? fread(bytes, 1, CONFIG_BYTES_MAX + 1, file) : 0;
    bool ok = bytes && !ferror(file) && length <= CONFIG_BYTES_MAX;
    if (!bytes)
        sl_option_memory(options->error, "reading the file of --config");
    else if (!ok)
        sl_option_problem(
            options->error, "--config %s: %s", sl_options_shown_name(path, strlen(path), shown),
            ferror(file) ? strerror(errno) : "larger than 1 MiB: not a configuration file");
    fclose(file);
    *text = (sl_text){bytes, length};
    if (!ok)
        free(bytes);
    return ok;
}

static void store_node(sl_options *options, yaml_document_t *document, size_t index,
                       const yaml_node_t *node, const char *where) {
    if (node->type == YAML_SCALAR_NODE) {
        sl_options_store(options, index, (char *)node->data.scalar.value, FROM_CONFIG, where);
        return;
    }
    if (node->type != YAML_SEQUENCE_NODE || options->program->rows[index].kind != SL_OPTION_LIST) {
        sl_option_problem(options->error, "%s: expected a plain value", where);
        return;
    }
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        yaml_node_t *element = yaml_document_get_node(document, *item);
        if (element->type == YAML_SCALAR_NODE)
            sl_options_store(options, index, (char *)element->data.scalar.value, FROM_CONFIG,
                             where);
        else
            sl_option_problem(options->error, "%s: expected plain values in the list", where);
    }
}

/* Options of the program's other commands are ignored, so that one file serves all commands. */
static void store_pair(sl_options *options, yaml_document_t *document, const yaml_node_pair_t *pair,
                       const char *path) {
    yaml_node_t *key = yaml_document_get_node(document, pair->key);
    const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "?";
    size_t length = strlen(name), index = sl_options_row(options, name, length);
    char where[400], shown[SL_NAME_ROOM];
    snprintf(where, sizeof where, "%s:%zu: %s", path, key->start_mark.line + 1,
             sl_options_shown_name(name, length, shown));
    if (index == SIZE_MAX) {
        const char *near = sl_options_nearest(options->program, name, length);
        sl_option_problem(options->error, "%s is not an option%s%s%s", where,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    } else if (sl_options_applies(options, index)) {
        store_node(options, document, index, yaml_document_get_node(document, pair->value), where);
    }
}

static void store_document(sl_options *options, yaml_document_t *document, const char *path) {
    yaml_node_t *root = yaml_document_get_root_node(document);
    if (root && root->type != YAML_MAPPING_NODE)
        sl_option_problem(options->error, "%s:%zu: expected a mapping from option names to values",
                          path, root->start_mark.line + 1);
    else if (root)
        for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
             pair < root->data.mapping.pairs.top; pair++)
            store_pair(options, document, pair, path);
}

void sl_options_read_config(sl_options *options, const char *path) {
    sl_text text;
    sl_error limit;
    if (!read_file(options, path, &text))
        return;
    if (sl_yaml_within_limits(text, path, SL_EXIT_USAGE, &limit)) {
        yaml_parser_t parser;
        yaml_document_t document;
        if (!yaml_parser_initialize(&parser)) {
            sl_option_memory(options->error, "reading the file of --config");
            goto done;
        }
        yaml_parser_set_input_string(&parser, (const unsigned char *)text.bytes, text.length);
        if (yaml_parser_load(&parser, &document)) {
            store_document(options, &document, path);
            yaml_document_delete(&document);
        } else {
            if (!parser.problem)
                sl_option_memory(options->error, "reading the file of --config");
            else
                sl_option_problem(options->error, "%s:%zu:%zu: %s", path,
                                  parser.problem_mark.line + 1, parser.problem_mark.column + 1,
                                  parser.problem);
        }
        yaml_parser_delete(&parser);
    } else {
        sl_option_failed(options->error, "--config ", &limit);
    }
done:
    explicit_bzero((char *)text.bytes, text.length); /* it may hold a password */
    free((char *)text.bytes);
}
