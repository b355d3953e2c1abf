/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the ISD formats: compiles the tables of ISD's fields, and the new names for keys. The
 * plan has for each group a flat list of steps, each with its element's prepared prefix; and a
 * table that maps an id to its group. */
#include "isd_plan.h"

#include "util/grow.h"
#include "util/yaml_reader.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- name maps: new names for keys, from YAML ---- */

typedef struct renaming {
    const char *path;
    const char *name;
    yaml_mark_t mark; /* of the name */
} renaming;

struct sl_isd_names {
    char *file;
    yaml_document_t document; /* owns the strings */
    renaming *renamings;
    size_t count;
    char **paths; /* passed to sl_isd_name so far, without duplicates; owned */
    size_t path_count;
    bool out_of_memory;
};

static bool take_pair(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *value, void *into) {
    sl_isd_names *names = into;
    renaming new = {sl_yaml_word(key), sl_yaml_word(value), value->start_mark};
    if (!new.path)
        return sl_yaml_expected(r, key, "the path of a key");
    if (!new.name || strlen(new.name) > SL_ISD_NAME_BYTES_MAX || strpbrk(new.name, ".$") ||
        !sl_utf8_valid(new.name, strlen(new.name), NULL))
        return sl_yaml_expected(r, value,
                                "a name of at most 46 bytes without dots and dollar signs");
    names->renamings[names->count++] = new;
    return true;
}

static bool read_pairs(sl_isd_names *names, sl_yaml *r, const yaml_node_t *node) {
    names->renamings = calloc(sl_yaml_length(node) + 1, sizeof *names->renamings);
    if (!names->renamings)
        return sl_error_memory(r->error, "reading a name map");
    return sl_yaml_each(r, node, "a mapping of key paths to new names", take_pair, names);
}

/* Reads a map of names. Without the key `names`, the text is another schema: *out is NULL. */
static bool isd_names_read(sl_text yaml, const char *source, sl_isd_names **out, sl_error *error) {
    sl_yaml r = {.text = yaml, .file = source, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root = NULL, *map = NULL, *unknown = NULL, *key, *value;
    *out = NULL;
    sl_isd_names *names = calloc(1, sizeof *names);
    if (names)
        names->file = strdup(source);
    if (!names || !names->file) {
        free(names);
        return sl_error_memory(error, "reading a name map");
    }
    bool ok = sl_yaml_read(&r, &root);
    names->document = r.document;
    for (size_t i = 0; root && sl_yaml_pair(&r, root, i, &key, &value); i++) {
        if (sl_yaml_is(key, "names"))
            map = value;
        else if (!sl_yaml_is(key, "name"))
            unknown = key;
    }
    if (map)
        ok = unknown ? sl_yaml_expected(&r, unknown, "one of the keys name, names")
                     : read_pairs(names, &r, map);
    if (ok && map)
        *out = names;
    else
        sl_isd_names_destroy(names);
    return ok;
}

void sl_isd_names_destroy(sl_isd_names *names) {
    if (!names)
        return;
    for (size_t i = 0; i < names->path_count; i++)
        free(names->paths[i]);
    free(names->paths);
    free(names->renamings);
    yaml_document_delete(&names->document);
    free(names->file);
    free(names);
}

/* The length of the path without its last key and the dot before it. */
static size_t parent_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static const char *last_key(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static const char *name_of(const sl_isd_names *names, const char *path) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->renamings[i].path, path) == 0)
            return names->renamings[i].name;
    }
    return last_key(path);
}

const char *sl_isd_name(sl_isd_names *names, const char *path) {
    if (!names)
        return last_key(path);
    for (size_t i = 0; i < names->path_count; i++) {
        if (strcmp(names->paths[i], path) == 0)
            return name_of(names, path);
    }
    char **paths = realloc(names->paths, (names->path_count + 1) * sizeof *paths);
    if (paths)
        names->paths = paths;
    if (paths && (paths[names->path_count] = strdup(path)))
        names->path_count++;
    else
        names->out_of_memory = true;
    return name_of(names, path);
}

/* Checks that every path of the map is a key, and that names are unique within each document. */
static bool isd_names_check(const sl_isd_names *names, sl_error *error) {
    if (!names)
        return true;
    if (names->out_of_memory)
        return sl_error_memory(error, "reading a name map");
    sl_yaml r = {.file = names->file, .code = SL_EXIT_USAGE, .error = error};
    for (size_t i = 0; i < names->count; i++) {
        const renaming *new = &names->renamings[i];
        size_t parent = parent_length(new->path);
        bool known = false, taken = parent == 0 && strcmp(new->name, "_id") == 0;
        for (size_t k = 0; k < names->path_count; k++) {
            const char *path = names->paths[k];
            if (strcmp(path, new->path) == 0)
                known = true;
            else if (parent_length(path) == parent && strncmp(path, new->path, parent) == 0)
                taken |= strcmp(name_of(names, path), new->name) == 0;
        }
        char shown[80];
        sl_text_printable(sl_text_of(known ? new->name : new->path), shown, sizeof shown);
        if (!known)
            return sl_yaml_fail(&r, new->mark,
                                "expected the path of a key of ISD documents, found \"%s\"", shown);
        if (taken)
            return sl_yaml_fail(&r, new->mark,
                                "expected a name that no other key of the document has; \"%s\" is "
                                "in use",
                                shown);
    }
    return true;
}

/* ---- the compiled plan ---- */

/* In the document's order. Offsets are the format document's positions minus 1. */
static const sl_isd_field fixed_fields[] = {
    {"elevation", 's', 46, 5, true, 1, 1},
    {"callLetters", 't', 51, 5, true, 1, 1},
    {"qualityControlProcess", 'c', 56, 4, false, 1, 1},
    {"dataSource", 'c', 27, 1, true, 1, 1},
    {"type", 't', 41, 5, true, 1, 1},
    {"airTemperature.value", 's', 87, 5, true, 10, 1},
    {"airTemperature.quality", 'q', 92, 1, false, 1, 1},
    {"dewPoint.value", 's', 93, 5, true, 10, 1},
    {"dewPoint.quality", 'q', 98, 1, false, 1, 1},
    {"pressure.value", 'n', 99, 5, true, 10, 1},
    {"pressure.quality", 'q', 104, 1, false, 1, 1},
    {"wind.direction.angle", 'n', 60, 3, true, 1, 1},
    {"wind.direction.quality", 'q', 63, 1, false, 1, 1},
    {"wind.type", 'c', 64, 1, true, 1, 1},
    {"wind.speed.rate", 'n', 65, 4, true, 10, 1},
    {"wind.speed.quality", 'q', 69, 1, false, 1, 1},
    {"visibility.distance.value", 'n', 78, 6, true, 1, 1},
    {"visibility.distance.quality", 'q', 84, 1, false, 1, 1},
    {"visibility.variability.value", 'c', 85, 1, true, 1, 1},
    {"visibility.variability.quality", 'q', 86, 1, false, 1, 1},
    {"skyCondition.ceilingHeight.value", 'n', 70, 5, true, 1, 1},
    {"skyCondition.ceilingHeight.quality", 'q', 75, 1, false, 1, 1},
    {"skyCondition.ceilingHeight.determination", 'c', 76, 1, true, 1, 1},
    {"skyCondition.cavok", 'c', 77, 1, true, 1, 1},
};

const sl_isd_group sl_isd_fixed = {
    "", "", "", fixed_fields, sizeof fixed_fields / sizeof fixed_fields[0], SL_ISD_FIXED_BYTES};

#define ROW(key, path, type) [key] = {path, type},
static const struct {
    const char *path;
    sl_bson_type type;
} keys[SL_ISD_KEYS] = {SL_ISD_KEY_ROWS(ROW)};

#define PATH_ROOM 160
/* Upper bounds, in bytes: an element's value (a double; or a length, seven characters of up to two
 * bytes, and a NUL); a document's length and final NUL; the prefix of an array element with an
 * index of up to four digits; a group's id in the list of sections. */
#define VALUE_BOUND 20u
#define DOCUMENT_BOUND 5u
#define INDEX_BOUND 6u
#define SECTION_BOUND (INDEX_BOUND + 8u)

typedef struct compiler {
    sl_plan *plan;
    sl_isd_step *next;
    uint32_t bound;
    const char *parent;   /* the group's key */
    char open[PATH_ROOM]; /* path of the innermost open document within the group's document */
    uint8_t prefix_lengths[SL_ISD_DEPTH_MAX];
    unsigned depth;
} compiler;

static const char *name_below(compiler *c, const char *path) {
    char full[PATH_ROOM];
    snprintf(full, sizeof full, "%s%s%s", c->parent, *c->parent ? "." : "", path);
    const char *name = sl_isd_name(c->plan->names, full);
    return name >= full && name < full + sizeof full ? path + strlen(path) - strlen(name) : name;
}

static sl_isd_step *add_step(compiler *c, sl_isd_step_kind kind, sl_bson_type type,
                             const char *path) {
    sl_isd_step *step = c->next++;
    step->kind = (uint8_t)kind;
    if (path) {
        step->prefix_length =
            (uint8_t)(sl_bson_put_key(step->prefix, type, name_below(c, path)) - step->prefix);
        c->bound += step->prefix_length + VALUE_BOUND;
    }
    return step;
}

/* Closes and opens documents until the one at path[..length) is the innermost open one. */
static void move_to(compiler *c, const char *path, size_t length) {
    size_t open = strlen(c->open);
    while (open > 0 && (open > length || strncmp(c->open, path, open) != 0 ||
                        (open < length && path[open] != '.'))) {
        char *dot = strrchr(c->open, '.');
        *(dot ? dot : c->open) = '\0';
        open = strlen(c->open);
        add_step(c, SL_ISD_CLOSE, SL_BSON_DOCUMENT, NULL)->prefix_length =
            c->prefix_lengths[--c->depth];
    }
    while (open < length) {
        size_t end = open + (open > 0);
        while (end < length && path[end] != '.')
            end++;
        memcpy(c->open, path, end);
        c->open[end] = '\0';
        open = end;
        c->prefix_lengths[c->depth++] =
            add_step(c, SL_ISD_OPEN, SL_BSON_DOCUMENT, c->open)->prefix_length;
    }
}

static bool is_number(const sl_isd_field *field) {
    return strchr("nsm", field->type) != NULL;
}

static sl_isd_step_kind kind_of(const sl_isd_field *field) {
    switch (field->type) {
    case 'n':
        return field->divisor > 1 ? SL_ISD_DOUBLE : SL_ISD_INT;
    case 's':
        return field->divisor > 1 ? SL_ISD_SIGNED_DOUBLE : SL_ISD_SIGNED_INT;
    case 'm':
        return SL_ISD_MINUS_INT;
    case 't':
        return SL_ISD_TRIMMED;
    default:
        return SL_ISD_TEXT;
    }
}

static void add_field(compiler *c, const sl_isd_field *field) {
    const bool keep = c->plan->keep_missing;
    const char *dot = strrchr(field->path, '.');
    move_to(c, field->path, dot ? (size_t)(dot - field->path) : 0);
    sl_isd_step_kind kind = kind_of(field);
    sl_bson_type type = !is_number(field)    ? SL_BSON_TEXT
                        : field->divisor > 1 ? SL_BSON_DOUBLE
                                             : SL_BSON_INT32;
    sl_isd_step *step = add_step(c, kind, type, field->path);
    unsigned digits = field->width - (unsigned)(field->type == 's');
    step->offset = field->offset;
    step->width = field->width;
    step->shift = (uint8_t)(64 - 8 * digits);
    step->nullable = field->nullable && !keep;
    step->follows = (field->type == 'q' || field->type == 'f') && !keep;
    step->divisor = field->divisor;
    step->factor = (uint8_t)field->factor;
    step->missing = INT32_MIN;
    if (step->nullable && is_number(field)) {
        step->missing = 0;
        for (unsigned i = 0; i < digits; i++)
            step->missing = step->missing * 10 + 9;
    }
}

/* Compiles a group's fields; returns the upper bound of its document's bytes. */
static uint32_t compile_group(compiler *c, const sl_isd_group *group) {
    c->parent = group->key;
    c->bound = DOCUMENT_BOUND;
    for (size_t f = 0; f < group->field_count; f++)
        add_field(c, &group->fields[f]);
    move_to(c, "", 0);
    add_step(c, SL_ISD_END, SL_BSON_NULL, NULL);
    return c->bound;
}

static void compile_groups(compiler *c) {
    sl_plan *plan = c->plan;
    for (size_t g = 0; g < sl_isd_group_count; g++) {
        const sl_isd_group *group = &sl_isd_groups[g];
        sl_isd_group_plan *compiled = &plan->groups[g];
        compiled->repeats = strcmp(group->first, group->last) != 0;
        compiled->width = group->width;
        compiled->family = (uint8_t)g;
        for (size_t i = 0; i < g; i++) {
            if (strcmp(sl_isd_groups[i].key, group->key) == 0)
                compiled->family = (uint8_t)i;
        }
        uint8_t *end =
            sl_bson_put_key(compiled->prefix, compiled->repeats ? SL_BSON_ARRAY : SL_BSON_DOCUMENT,
                            sl_isd_name(plan->names, group->key));
        compiled->prefix_length = (uint8_t)(end - compiled->prefix);
        compiled->steps = c->next;
        compiled->bound = compile_group(c, group) + compiled->prefix_length + DOCUMENT_BOUND +
                          INDEX_BOUND + SECTION_BOUND;
        unsigned base =
            ((unsigned)(group->first[0] - 'A') * 26 + (unsigned)(group->first[1] - 'A')) * 10;
        char last = compiled->repeats ? '9' : group->first[2];
        for (char digit = group->first[2]; digit <= last; digit++)
            plan->rows[base + (unsigned)(digit - '0')] = (uint8_t)(g + 1);
    }
}

static void compile_keys(sl_plan *plan) {
    plan->fixed_bound += SL_BSON_HEAD_BYTES + 1 + 64; /* 64: position */
    for (size_t i = 0; i < SL_ISD_KEYS; i++) {
        sl_isd_prefix *prefix = &plan->keys[i];
        prefix->length = (uint32_t)(sl_bson_put_key(prefix->bytes, keys[i].type,
                                                    sl_isd_name(plan->names, keys[i].path)) -
                                    prefix->bytes);
        uint32_t bound = prefix->length + VALUE_BOUND;
        if (i > SL_ISD_KEY_UNPARSED)
            plan->lite_bound += 2 * (bound + INDEX_BOUND); /* two depths of precipitation */
        else if (i > SL_ISD_KEY_ELEMENT_QUALITY && i < SL_ISD_KEY_ORIGINAL)
            plan->quality_bound += bound;
        else if (i > SL_ISD_KEY_ORIGINAL && i < SL_ISD_KEY_UNPARSED)
            plan->original_bound += bound;
        else
            plan->fixed_bound += bound;
    }
    plan->quality_bound += DOCUMENT_BOUND + INDEX_BOUND;
    plan->original_bound += DOCUMENT_BOUND + INDEX_BOUND;
    plan->lite_bound += plan->fixed_bound;
}

/* Upper bound: one step per field, two (open, close) per level of nesting, one end per group. */
static size_t count_steps(void) {
    size_t count = 0;
    for (size_t g = 0; g <= sl_isd_group_count; g++) {
        const sl_isd_group *group = g < sl_isd_group_count ? &sl_isd_groups[g] : &sl_isd_fixed;
        count += 1 + group->field_count * (1 + 2 * (size_t)SL_ISD_DEPTH_MAX);
    }
    return count;
}

static bool read_names(sl_plan *plan, const sl_format_options *options, sl_error *error) {
    const char *source = options->schema_name ? options->schema_name : "names";
    if (!options->schema_text)
        return true;
    if (!isd_names_read(sl_text_of(options->schema_text), source, &plan->names, error))
        return false;
    if (!plan->names && !(plan->foreign_schema = strdup(source)))
        return sl_error_memory(error, "reading a schema");
    return true;
}

bool sl_isd_plan_create(const sl_format_options *options, sl_plan **out, sl_error *error) {
    sl_plan *plan = calloc(1, sizeof *plan);
    sl_isd_step *steps = sl_zeroed(count_steps(), sizeof *steps);
    if (!plan || !steps) {
        free(plan);
        free(steps);
        return sl_error_memory(error, "compiling the groups of ISD");
    }
    plan->steps = steps;
    plan->keep_missing = options->keep_missing;
    compiler c = {.plan = plan, .next = steps};
    if (!read_names(plan, options, error))
        goto fail;
    plan->fixed = c.next;
    plan->fixed_bound = compile_group(&c, &sl_isd_fixed);
    compile_keys(plan);
    compile_groups(&c);
    if (!isd_names_check(plan->names, error))
        goto fail;
    *out = plan;
    return true;
fail:
    sl_isd_plan_destroy(plan);
    return false;
}

void sl_isd_plan_destroy(sl_plan *plan) {
    if (!plan)
        return;
    sl_isd_names_destroy(plan->names);
    free(plan->foreign_schema);
    free(plan->steps);
    free(plan);
}

bool sl_isd_plan_fits(const sl_plan *plan, sl_error *error) {
    return !plan->foreign_schema ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "ISD has built-in columns and accepts only a map of names (`names: "
                        "{pressure: atmosphericPressure}`); %s is not such a map",
                        plan->foreign_schema);
}
