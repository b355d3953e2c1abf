/* SPDX-License-Identifier: Apache-2.0 */
/* Reads capacity models from YAML files, built in or the user's, and assignments of --set.
 *
 *   title: Weather records on one server
 *   about: Description and source of the publication.
 *   published: {hours: 10.3, low: 10, high: 11, note: index builds included}
 *   values:
 *     documents: 2.5G
 *     shard-rate: {value: 85k, low: 68k, high: 85k, from: published, note: eight threads} */
#include "capacity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "util/embedded.h"
#include "util/text.h"
#include "util/yaml_limits.h"

#define MODEL_BYTES_MAX ((size_t)1 << 20)

/* ---- numbers and names ---- */

bool sl_capacity_number(const char *text, size_t length, double *number) {
    static const char suffixes[] = "kMGTP";
    char copy[40], *end;
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-kMGTP") != length)
        return false;
    *number = strtod(copy, &end);
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    for (int i = 0; suffix && i <= suffix - suffixes; i++)
        *number *= 1000;
    end += suffix != NULL;
    return end != copy && !*end && isfinite(*number);
}

sl_capacity_input sl_capacity_find(const char *name, size_t length) {
    size_t i = 0;
    while (i < SL_CAPACITY_INPUTS && (strlen(sl_capacity_inputs[i].name) != length ||
                                      memcmp(sl_capacity_inputs[i].name, name, length) != 0))
        i++;
    return (sl_capacity_input)i;
}

static bool no_such_input(const char *name, size_t length, sl_error *error) {
    char shown[64], known[900] = "";
    size_t used = 0;
    sl_text_printable((sl_text){name, length}, shown, sizeof shown);
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                 sl_capacity_inputs[i].name);
    return sl_error_set(error, SL_EXIT_USAGE, "a model has no input \"%s\"; its inputs are %s",
                        shown, known);
}

/* Checks that the value is within its range, and the range within the limits of the input. */
static bool check_value(sl_capacity_input input, const sl_capacity_value *value, sl_error *error) {
    const sl_capacity_input_row *row = &sl_capacity_inputs[input];
    if (!(value->low <= value->value && value->value <= value->high))
        return sl_error_set(error, SL_EXIT_USAGE, "%s: %g is not within %g to %g", row->name,
                            value->value, value->low, value->high);
    if (value->low < row->minimum || value->high > row->maximum)
        return sl_error_set(error, SL_EXIT_USAGE, "%s must be %g to %g%s%s, not %g", row->name,
                            row->minimum, row->maximum, *row->unit ? " " : "", row->unit,
                            value->low < row->minimum ? value->low : value->high);
    return true;
}

void sl_capacity_give(sl_capacity_model *model, sl_capacity_input input,
                      const sl_capacity_value *value) {
    static const sl_capacity_input both[] = {SL_CAPACITY_HOSTS, SL_CAPACITY_SHARDS_PER_HOST};
    model->values[input] = *value;
    model->values[input].origin = SL_ORIGIN_GIVEN;
    for (size_t i = 0; i < 2; i++) {
        sl_capacity_value *other = &model->values[both[1 - i]];
        double usual = sl_capacity_inputs[both[1 - i]].fallback;
        if (input == both[i] && other->origin != SL_ORIGIN_GIVEN)
            *other = (sl_capacity_value){.value = usual, .low = usual, .high = usual};
    }
}

bool sl_capacity_set(sl_capacity_model *model, const char *assignment, sl_error *error) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "\"%.100s\" is not NAME=VALUE or NAME=LOW..VALUE..HIGH", assignment);
    sl_capacity_input input = sl_capacity_find(assignment, (size_t)(equals - assignment));
    if (input == SL_CAPACITY_INPUTS)
        return no_such_input(assignment, (size_t)(equals - assignment), error);
    double numbers[3];
    size_t count = 0;
    const char *at = equals + 1;
    for (bool more = true; more && count < 3; count++) {
        const char *dots = strstr(at, "..");
        size_t length = dots ? (size_t)(dots - at) : strlen(at);
        if (!sl_capacity_number(at, length, &numbers[count]))
            break;
        at += length + (dots ? 2 : 0);
        more = dots != NULL;
    }
    if (*at || (count != 1 && count != 3))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%.*s: \"%.60s\" is not a number, like 85k, nor "
                            "LOW..VALUE..HIGH",
                            (int)(equals - assignment), assignment, equals + 1);
    sl_capacity_value value = {
        .value = numbers[count / 2], .low = numbers[0], .high = numbers[count - 1]};
    if (!check_value(input, &value, error))
        return false;
    sl_capacity_give(model, input, &value);
    if (input == SL_CAPACITY_DOCUMENTS || input == SL_CAPACITY_DOCUMENT_BYTES)
        model->other_data = true;
    return true;
}

/* ---- YAML ---- */

typedef struct reader {
    yaml_document_t document;
    const char *name;
    sl_error *error;
} reader;

static bool complain(const reader *r, const yaml_node_t *node, const char *problem) {
    return sl_error_set(r->error, SL_EXIT_USAGE, "%s:%zu:%zu: %s", r->name,
                        node->start_mark.line + 1, node->start_mark.column + 1, problem);
}

static bool scalar(const yaml_node_t *node, sl_text *text) {
    if (node->type != YAML_SCALAR_NODE)
        return false;
    *text = (sl_text){(const char *)node->data.scalar.value, node->data.scalar.length};
    return true;
}

/* A key of a mapping, and the field for its value. */
typedef struct key_row {
    const char *name;
    enum { TEXT, NUMBER, ORIGIN } kind;
    size_t offset;
    size_t room; /* of a TEXT */
} key_row;

static bool take(const reader *r, const yaml_node_t *node, const key_row *row, void *into) {
    sl_text text;
    char *field = (char *)into + row->offset;
    if (!scalar(node, &text))
        return complain(r, node, "expected a plain value");
    switch (row->kind) {
    case TEXT:
        if (text.length >= row->room)
            return complain(r, node, "this text is too long");
        memcpy(field, text.bytes, text.length);
        field[text.length] = '\0';
        return true;
    case NUMBER:
        return sl_capacity_number(text.bytes, text.length, (double *)(void *)field) ||
               complain(r, node, "expected a number, like 85000, 85k or 2.5G");
    case ORIGIN:
        for (sl_capacity_origin i = SL_ORIGIN_PUBLISHED; i <= SL_ORIGIN_ASSUMED; i++) {
            if (sl_text_equal(text, sl_text_of(sl_capacity_origin_names[i]))) {
                *(sl_capacity_origin *)(void *)field = i;
                return true;
            }
        }
        return complain(r, node, "expected published, measured, fitted or assumed");
    }
    return false;
}

/* Reads a mapping by a table of keys; passes other keys to `other`, which may be NULL. */
static bool read_mapping(reader *r, const yaml_node_t *node, const key_row *rows, size_t count,
                         void *into,
                         bool (*other)(reader *r, const yaml_node_t *key, sl_text name,
                                       const yaml_node_t *value, void *into)) {
    if (node->type != YAML_MAPPING_NODE)
        return complain(r, node, "expected keys and their values");
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);
        sl_text name;
        if (!scalar(key, &name))
            return complain(r, key, "expected a key");
        size_t i = 0;
        while (i < count && !sl_text_equal(name, sl_text_of(rows[i].name)))
            i++;
        if (i < count
                ? !take(r, value, &rows[i], into)
                : !(other ? other(r, key, name, value, into) : complain(r, key, "unknown key")))
            return false;
    }
    return true;
}

static bool read_input(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                       void *into) {
    static const key_row rows[] = {
        {"value", NUMBER, offsetof(sl_capacity_value, value), 0},
        {"low", NUMBER, offsetof(sl_capacity_value, low), 0},
        {"high", NUMBER, offsetof(sl_capacity_value, high), 0},
        {"from", ORIGIN, offsetof(sl_capacity_value, origin), 0},
        {"note", TEXT, offsetof(sl_capacity_value, note), sizeof(((sl_capacity_value *)0)->note)},
    };
    sl_capacity_model *model = into;
    sl_error why = {0};
    sl_capacity_input input = sl_capacity_find(name.bytes, name.length);
    if (input == SL_CAPACITY_INPUTS) {
        no_such_input(name.bytes, name.length, &why);
        return complain(r, key, why.message);
    }
    sl_capacity_value value = {.value = NAN, .low = NAN, .high = NAN, .origin = SL_ORIGIN_ASSUMED};
    if (node->type == YAML_SCALAR_NODE
            ? !take(r, node, &rows[0], &value)
            : !read_mapping(r, node, rows, sizeof rows / sizeof rows[0], &value, NULL))
        return false;
    if (isnan(value.value))
        return complain(r, node, "its value is missing");
    value.low = isnan(value.low) ? value.value : value.low;
    value.high = isnan(value.high) ? value.value : value.high;
    if (!check_value(input, &value, &why))
        return complain(r, node, why.message);
    model->values[input] = value;
    return true;
}

static bool read_section(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                         void *into) {
    static const key_row rows[] = {
        {"hours", NUMBER, offsetof(sl_capacity_model, published_hours), 0},
        {"low", NUMBER, offsetof(sl_capacity_model, published_low), 0},
        {"high", NUMBER, offsetof(sl_capacity_model, published_high), 0},
        {"note", TEXT, offsetof(sl_capacity_model, published_note),
         sizeof(((sl_capacity_model *)0)->published_note)},
    };
    if (sl_text_equal(name, sl_text_of("published")))
        return read_mapping(r, node, rows, sizeof rows / sizeof rows[0], into, NULL);
    if (sl_text_equal(name, sl_text_of("values")))
        return read_mapping(r, node, NULL, 0, into, read_input);
    return complain(r, key, "expected one of title, about, published, values");
}

bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error) {
    static const key_row rows[] = {
        {"title", TEXT, offsetof(sl_capacity_model, title), sizeof model->title},
        {"about", TEXT, offsetof(sl_capacity_model, about), sizeof model->about},
    };
    reader r = {.name = name, .error = error};
    sl_capacity_init(model);
    sl_text_printable((sl_text){name, strcspn(name, ".")}, model->name, sizeof model->name);
    if (!sl_yaml_read_document((sl_text){text, length}, name, &r.document, error))
        return false;
    const yaml_node_t *root = yaml_document_get_root_node(&r.document);
    bool ok = root ? read_mapping(&r, root, rows, sizeof rows / sizeof rows[0], model, read_section)
                   : sl_error_set(error, SL_EXIT_USAGE, "%s: the file is empty", name);
    if (isnan(model->published_low))
        model->published_low = model->published_hours;
    if (isnan(model->published_high))
        model->published_high = model->published_hours;
    yaml_document_delete(&r.document);
    return ok;
}

/* ---- built-in models and files ---- */

static bool read_file(const char *path, sl_capacity_model *model, sl_error *error) {
    char shown[300], known[400] = "";
    size_t used = 0;
    FILE *file = fopen(path, "r");
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    for (const sl_embedded *one = sl_embedded_models; one->name && used < sizeof known; one++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "",
                                 (int)strcspn(one->name, "."), one->name);
    if (!file)
        return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                            "%s is not a built-in model (%s), and cannot be opened as a file: %s",
                            shown, known, strerror(errno));
    char *text = malloc(MODEL_BYTES_MAX + 1);
    size_t length = text ? fread(text, 1, MODEL_BYTES_MAX + 1, file) : 0;
    bool ok = text != NULL || sl_error_memory(error, "reading a model");
    if (ok && (ferror(file) || length > MODEL_BYTES_MAX))
        ok = sl_error_set(error, SL_EXIT_USAGE, "%s: %s", shown,
                          ferror(file) ? "cannot be read" : "larger than 1 MiB: not a model");
    const char *name = strrchr(shown, '/');
    ok = ok && sl_capacity_parse(text, length, name ? name + 1 : shown, model, error);
    free(text);
    fclose(file);
    return ok;
}

bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error) {
    for (const sl_embedded *one = sl_embedded_models; one->name; one++) {
        size_t length = strcspn(one->name, ".");
        if (strlen(name) == length && memcmp(one->name, name, length) == 0)
            return sl_capacity_parse(one->text, one->length, one->name, model, error);
    }
    return read_file(name, model, error);
}
