/* SPDX-License-Identifier: Apache-2.0 */
/* Options: values from environment variables, and from the YAML file of --config: one mapping from
 * long option names to scalars or, for lists, sequences of scalars. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/read_file.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#include "options_internal.h"

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

static void store_node(sl_options *options, sl_yaml *r, size_t index, const yaml_node_t *node,
                       const char *where) {
    const yaml_node_t *element;
    if (node->type == YAML_SCALAR_NODE) {
        sl_options_store(options, index, (char *)node->data.scalar.value, FROM_CONFIG, where);
        return;
    }
    if (node->type != YAML_SEQUENCE_NODE || options->program->rows[index].kind != SL_OPTION_LIST) {
        sl_option_problem(options->error, "%s: expected a plain value", where);
        return;
    }
    for (size_t i = 0; (element = sl_yaml_item(r, node, i)); i++) {
        if (element->type == YAML_SCALAR_NODE)
            sl_options_store(options, index, (char *)element->data.scalar.value, FROM_CONFIG,
                             where);
        else
            sl_option_problem(options->error, "%s: expected plain values in the list", where);
    }
}

/* Options of the program's other commands are ignored, so that one file serves all commands. */
static void store_pair(sl_options *options, sl_yaml *r, const yaml_node_t *key,
                       const yaml_node_t *value) {
    const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "?";
    size_t length = strlen(name), index = sl_options_row(options, name, length);
    char where[400], shown[SL_NAME_ROOM];
    snprintf(where, sizeof where, "%s:%zu: %s", r->file, key->start_mark.line + 1,
             sl_options_shown_name(name, length, shown));
    if (index == SIZE_MAX) {
        const char *near = sl_options_nearest(options->program, name, length);
        sl_option_problem(options->error, "%s is not an option%s%s%s", where,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    } else if (sl_options_applies(options, index)) {
        store_node(options, r, index, value, where);
    }
}

void sl_options_read_config(sl_options *options, const char *path) {
    char shown[SL_NAME_ROOM], prefix[SL_NAME_ROOM + 16];
    sl_error why;
    sl_yaml r = {.file = path, .code = SL_EXIT_USAGE, .error = &why};
    const yaml_node_t *root, *key, *value;
    snprintf(prefix, sizeof prefix,
             "--config %s: ", sl_options_shown_name(path, strlen(path), shown));
    if (!sl_read_file(path, CONFIG_BYTES_MAX, SL_EXIT_USAGE, &r.text, &why)) {
        sl_option_failed(options->error, prefix, &why);
        return;
    }
    if (!sl_yaml_read(&r, &root)) {
        sl_option_failed(options->error, "--config ", &why);
    } else {
        if (root && root->type != YAML_MAPPING_NODE)
            sl_option_problem(options->error,
                              "%s:%zu: expected a mapping from option names to values", path,
                              root->start_mark.line + 1);
        for (size_t i = 0; root && sl_yaml_pair(&r, root, i, &key, &value); i++)
            store_pair(options, &r, key, value);
        yaml_document_delete(&r.document);
    }
    explicit_bzero((char *)r.text.bytes, r.text.length); /* it may hold a password */
    free((char *)r.text.bytes);
}

/* ---- environment variables ---- */

const char *sl_options_variable(const sl_program *program, size_t row, char out[SL_VARIABLE_ROOM]) {
    int length = snprintf(out, SL_VARIABLE_ROOM, "%s_%s", program->environment_prefix,
                          program->rows[row].name);
    for (int k = 0; k < length; k++)
        out[k] = out[k] == '-' ? '_' : (char)toupper((unsigned char)out[k]);
    return out;
}

/* Does the program start commands? They inherit the environment, which must not be overwritten. */
static bool starts_commands(const sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        if (options->program->rows[i].secret == SL_COMMAND_LINE)
            return true;
    }
    return false;
}

void sl_options_read_environment(sl_options *options) {
    bool keep = starts_commands(options);
    for (size_t i = 0; i < options->rows; i++) {
        if (!sl_options_applies(options, i))
            continue;
        char variable[SL_VARIABLE_ROOM];
        char *text = getenv(sl_options_variable(options->program, i, variable));
        if (text && *text) {
            sl_options_store(options, i, text, FROM_ENVIRONMENT, variable);
            if (!keep)
                sl_options_wipe(text, options->program->rows[i].secret);
        }
    }
}
