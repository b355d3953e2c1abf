/* SPDX-License-Identifier: Apache-2.0 */
/* Nested documents; see nesting.h. The names form a tree, which is flattened into steps: open a
 * document or array, write a column, close. */
#include "nesting.h"
#include "util/grow.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 20u
#define NONE SIZE_MAX
#define POINT_BYTES 32u /* at least the bytes of type: "Point" */

typedef struct node {
    sl_text name;    /* of a member of a document */
    size_t index;    /* of an element of an array */
    size_t column;   /* NONE: a document or array */
    bool array;      /* holds elements */
    bool point;      /* holds only the coordinates of a point */
    size_t children; /* first one, or NONE */
    size_t next;     /* sibling, or NONE */
} node;

typedef struct tree {
    node *nodes; /* the first is the document itself */
    size_t count, room;
    bool contradiction, no_memory;
} tree;

/* One part of a name: a member, or an index. */
typedef struct part {
    sl_text name;
    size_t index;
    bool is_index;
} part;

static bool is_member(sl_text name) {
    if (name.length == 0)
        return false;
    uint8_t first = (uint8_t)*name.bytes;
    return ((first | 0x20) >= 'a' && (first | 0x20) <= 'z') || first == '_' || first >= 0x80;
}

/* Splits a key into its parts. Returns their number; 0: the key is not nested. */
static size_t split(const char *key, part parts[DEPTH_MAX]) {
    size_t count = 0;
    if (strchr(key, ' ') || !strpbrk(key, ".["))
        return 0;
    for (const char *at = key;; at++) {
        sl_text name = {at, strcspn(at, ".[]")};
        if (!is_member(name) || count == DEPTH_MAX)
            return 0;
        parts[count++] = (part){.name = name};
        at += name.length;
        while (*at == '[') {
            size_t digits = strspn(at + 1, "0123456789");
            uint64_t index;
            if (digits == 0 || digits > 4 || at[1 + digits] != ']' || count == DEPTH_MAX ||
                (digits > 1 && at[1] == '0') || !sl_text_to_u64((sl_text){at + 1, digits}, &index))
                return 0;
            parts[count++] = (part){.index = (size_t)index, .is_index = true};
            at += digits + 2;
        }
        if (*at == '\0')
            return count;
        if (*at != '.')
            return 0;
    }
}

bool sl_nesting_is_nested(const char *name) {
    part parts[DEPTH_MAX];
    return split(name, parts) > 0;
}

bool sl_nesting_is_element(const char *name, char *path, char *first) {
    char *end = path;
    bool element = false, last = false;
    for (const char *at = name; *at;) {
        const bool bracket = *at == '[';
        const size_t digits = *at == '.' || bracket ? strspn(at + 1, "0123456789") : 0;
        const char *after = at + 1 + digits + bracket;
        last = digits > 0 && (bracket ? after[-1] == ']' : !*after || strchr(".[", *after));
        element = element || last;
        if (last)
            first += sprintf(first, bracket ? "[0]" : ".0");
        else
            *end++ = *first++ = *at;
        at = last ? after : at + 1;
    }
    *first = '\0';
    strcpy(end, "[0]");
    element = element && sl_nesting_is_nested(path);
    *end = '\0';
    if (last)
        strcpy(path, name);
    return element;
}

static size_t add_node(tree *t, node added) {
    node *nodes = sl_grow(t->nodes, t->count, &t->room, sizeof *nodes);
    if (!nodes) {
        t->no_memory = true;
        return 0;
    }
    t->nodes = nodes;
    t->nodes[t->count] = added;
    return t->count++;
}

/* The child for this part, added if it is new. Elements are ordered by index. */
static size_t child_of(tree *t, size_t parent, const part *wanted) {
    size_t last = NONE, next = t->nodes[parent].children;
    if (next == NONE)
        t->nodes[parent].array = wanted->is_index;
    if (t->nodes[parent].array != wanted->is_index || t->nodes[parent].column != NONE)
        t->contradiction = true;
    for (; next != NONE; last = next, next = t->nodes[next].next) {
        if (wanted->is_index ? t->nodes[next].index == wanted->index
                             : sl_text_equal(t->nodes[next].name, wanted->name))
            return next;
        if (wanted->is_index && t->nodes[next].index > wanted->index)
            break;
    }
    size_t made = add_node(t, (node){.name = wanted->name,
                                     .index = wanted->index,
                                     .column = NONE,
                                     .children = NONE,
                                     .next = next});
    if (t->no_memory)
        return 0;
    if (last == NONE)
        t->nodes[parent].children = made;
    else
        t->nodes[last].next = made;
    return made;
}

static bool grow_tree(tree *t, const sl_dialect *dialect) {
    part parts[DEPTH_MAX];
    bool nested = false;
    add_node(t, (node){.column = NONE, .children = NONE, .next = NONE});
    for (size_t i = 0; i < dialect->column_count && !t->no_memory; i++) {
        const char *key = dialect->columns[i].key;
        size_t count = split(key, parts), at = 0;
        nested = nested || count > 0;
        if (count == 0) {
            parts[0] = (part){.name = sl_text_of(key)};
            count = 1;
        }
        for (size_t k = 0; k < count && !t->no_memory; k++) {
            at = child_of(t, at, &parts[k]);
            if (dialect->columns[i].schema.point && k + 3 == count)
                t->nodes[at].point = true;
        }
        if (t->no_memory)
            return false;
        if (t->nodes[at].column != NONE || t->nodes[at].children != NONE)
            t->contradiction = true;
        t->nodes[at].column = i;
    }
    for (size_t i = t->nodes[0].children; i != NONE; i = t->nodes[i].next) {
        if (t->nodes[i].column == NONE && sl_text_equal(t->nodes[i].name, sl_text_of("_id")))
            t->contradiction = true; /* the loader generates it */
    }
    return nested && !t->contradiction;
}

/* Does the node have exactly one child, which has children and contains both coordinates? */
static bool is_point(const tree *t, const node *one) {
    const node *pair = one->children == NONE ? NULL : &t->nodes[one->children];
    if (!pair || pair->next != NONE || pair->column != NONE || pair->children == NONE)
        return false;
    const node *first = &t->nodes[pair->children];
    return first->next != NONE && t->nodes[first->next].next == NONE;
}

/* Checks the points. Contradictions of other columns are not an error: these columns are not
 * nested. */
static bool check_points(const sl_dialect *dialect, const tree *t, bool nested, sl_error *error) {
    const char *point = NULL;
    for (size_t i = 0; i < dialect->column_count; i++)
        point = dialect->columns[i].schema.point ? dialect->columns[i].schema.point : point;
    if (point && !nested)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "the point %s cannot be built, because the keys of the columns contradict each other: "
            "a key is both a field and a document, or the key of the point is not like at or "
            "place.at",
            point);
    for (size_t i = 0; nested && i < t->count; i++) {
        if (t->nodes[i].point && !is_point(t, &t->nodes[i]))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the point %.*s needs one column of type longitude and one of type "
                                "latitude, and can have no other fields",
                                (int)t->nodes[i].name.length, t->nodes[i].name.bytes);
    }
    return true;
}

/* ---- steps ---- */

static bool add_step(sl_nesting *nesting, sl_nest_step step, sl_text key) {
    step.key = strndup(key.length > 0 ? key.bytes : "", key.length);
    nesting->steps[nesting->count++] = step;
    nesting->bytes += step.kind == SL_NEST_OPEN ? key.length + 16 : 8;
    nesting->bytes += step.point ? POINT_BYTES : 0;
    return step.key != NULL;
}

/* Adds the steps of a node's children. */
static bool flatten(tree *t, size_t parent, sl_nesting *nesting) {
    const bool array = t->nodes[parent].array;
    size_t index = 0;
    for (size_t i = t->nodes[parent].children; i != NONE; i = t->nodes[i].next, index++) {
        const node *one = &t->nodes[i];
        if (array && one->index != index) { /* an index is missing */
            t->contradiction = true;
            return true;
        }
        sl_text key = array ? (sl_text){NULL, 0} : one->name;
        if (one->column != NONE) {
            if (!add_step(nesting,
                          (sl_nest_step){.kind = SL_NEST_COLUMN, .column = (uint32_t)one->column},
                          key))
                return false;
        } else if (!add_step(nesting,
                             (sl_nest_step){
                                 .kind = SL_NEST_OPEN, .array = one->array, .point = one->point},
                             key) ||
                   !flatten(t, i, nesting) ||
                   !add_step(nesting,
                             (sl_nest_step){.kind = SL_NEST_CLOSE, .pair = t->nodes[parent].point},
                             (sl_text){NULL, 0})) {
            return false;
        }
    }
    return true;
}

bool sl_nesting_create(const sl_dialect *dialect, sl_nesting **result, bool *contradict,
                       sl_error *error) {
    part parts[DEPTH_MAX];
    bool any = false;
    *result = NULL;
    *contradict = false;
    for (size_t i = 0; i < dialect->column_count && !any; i++)
        any = dialect->columns[i].schema.point || split(dialect->columns[i].key, parts) > 0;
    if (!any)
        return true;
    tree t = {0};
    bool nested = grow_tree(&t, dialect), ok = !t.no_memory;
    if (ok && !check_points(dialect, &t, nested, error)) {
        free(t.nodes);
        return false;
    }
    sl_nesting *nesting = NULL;
    if (nested) {
        nesting = calloc(1, sizeof *nesting);
        if (nesting)
            nesting->steps = calloc(2 * t.count, sizeof *nesting->steps);
        ok = nesting && nesting->steps && flatten(&t, 0, nesting);
    }
    if (!ok || t.contradiction) {
        sl_nesting_destroy(nesting);
        nesting = NULL;
    }
    free(t.nodes);
    *contradict = t.contradiction;
    *result = nesting;
    return ok || sl_error_memory(error, "reading a header");
}

void sl_nesting_destroy(sl_nesting *nesting) {
    if (!nesting)
        return;
    for (size_t i = 0; nesting->steps && i < nesting->count; i++)
        free(nesting->steps[i].key);
    free(nesting->steps);
    free(nesting);
}

bool sl_nesting_set_paths(const sl_dialect *dialect) {
    sl_nesting *nesting = dialect->nesting;
    size_t lengths[DEPTH_MAX + 1] = {0}, open = 0, inside = 0, kept = 0;
    for (size_t i = 0, column = 0; i < nesting->count; i++) {
        sl_nest_step step = nesting->steps[i];
        nesting->steps[i].key = NULL;
        if (inside > 0) {
            inside += step.kind == SL_NEST_OPEN;
            inside -= step.kind == SL_NEST_CLOSE;
        } else if (step.kind == SL_NEST_CLOSE) {
            open--;
            free(step.key);
            continue;
        } else {
            /* The path begins the key of each column in it. */
            for (column = i; nesting->steps[column].kind != SL_NEST_COLUMN;)
                column++;
            const size_t length = lengths[open] + (open > 0) + strlen(step.key);
            char *path = strndup(dialect->columns[nesting->steps[column].column].key, length);
            free(step.key);
            if (!path)
                return false;
            if (step.kind == SL_NEST_OPEN && !step.array && !step.point) {
                lengths[++open] = length;
                free(path);
                continue;
            }
            inside = step.kind == SL_NEST_OPEN;
            nesting->bytes += length;
            step.key = path;
        }
        nesting->steps[kept++] = step;
    }
    nesting->count = kept;
    return true;
}

/* ---- documents ---- */

/* A document or array that is being written. */
typedef struct frame {
    uint8_t *before; /* where its element begins */
    uint8_t *start;  /* of its bytes */
    bool array;
    unsigned written; /* elements, with the nulls between them */
    unsigned missing; /* elements since then */
    unsigned nulls;   /* of `written` */
} frame;

static uint8_t *put_index(uint8_t *out, sl_bson_type type, unsigned index) {
    char key[12];
    snprintf(key, sizeof key, "%u", index);
    return sl_bson_put_key(out, type, key);
}

/* Writes the nulls that are due, and the element's type and key. `*type` is where its type is. */
static uint8_t *put_key(frame *in, uint8_t *out, sl_bson_type kind, const char *key,
                        uint8_t **type) {
    unsigned index = in->written;
    for (; in->array && index < in->written + in->missing; index++)
        out = put_index(out, SL_BSON_NULL, index);
    *type = out;
    return in->array ? put_index(out, kind, index) : sl_bson_put_key(out, kind, key);
}

static void count_written(frame *in) {
    in->written += in->missing + 1;
    in->nulls += in->missing;
    in->missing = 0;
}

static uint8_t *put_column(sl_parser *parser, sl_record *record, const sl_nest_step *step,
                           frame *in, uint8_t *out) {
    const sl_dialect *d = parser->dialect;
    const char *text = parser->block->text.bytes;
    const uint32_t before = record->before[step->column], after = record->after[step->column];
    const char *begin = text + (uint32_t)(before + 1);
    sl_text field = sl_field_trim((sl_text){begin, (size_t)(text + after - begin)}, d->trim);
    const sl_bound_column *column = &d->columns[step->column];
    if (column->schema.trim)
        field = sl_field_trim(field, SL_TRIM_BOTH);
    bool quoted = d->quote && before != UINT32_MAX && text[before] == d->quote;
    uint8_t *type;
    if (sl_field_is_missing(d, &column->schema, field, quoted)) {
        if (d->stores_null && !in->array && !column->schema.required) {
            out = put_key(in, out, SL_BSON_NULL, step->key, &type);
            count_written(in);
            return out;
        }
        in->missing++;
        return column->schema.required ? NULL : out;
    }
    const frame as_before = *in;
    uint8_t *to = put_key(in, out, column->type, step->key, &type);
    count_written(in);
    to = sl_put_value(parser, step->column, field, quoted, type, to, &record->transcoded);
    if (to || parser->scratch.no_room || !sl_leave_out(parser, step->column))
        return to;
    *in = as_before;
    in->missing++;
    return out;
}

static const char point_word[SL_SLACK + 8] = "Point"; /* sl_bson_put_text reads beyond the text */

uint8_t *sl_put_nested(sl_parser *parser, sl_record *record, int64_t id, uint8_t *start) {
    const sl_nesting *nesting = parser->dialect->nesting;
    frame frames[DEPTH_MAX + 2] = {{.start = start}}, *top = frames;
    uint8_t *out = sl_bson_begin_with_id(start, id), *type;
    for (size_t i = 0; i < nesting->count; i++) {
        const sl_nest_step *step = &nesting->steps[i];
        switch (step->kind) {
        case SL_NEST_OPEN: {
            uint8_t *before = out;
            out =
                put_key(top, out, step->array ? SL_BSON_ARRAY : SL_BSON_DOCUMENT, step->key, &type);
            *++top = (frame){.before = before, .start = out, .array = step->array};
            out = sl_bson_begin(out);
            if (step->point) {
                out = sl_bson_put_key(out, SL_BSON_TEXT, "type");
                out = sl_bson_put_text(out, point_word, 5);
            }
            break;
        }
        case SL_NEST_CLOSE: {
            frame done = *top--;
            if (done.written == 0 || (step->pair && done.nulls + done.missing > 0)) {
                out = done.before;
                top->missing++;
                break;
            }
            out = sl_bson_end(done.start, out);
            count_written(top);
            break;
        }
        case SL_NEST_COLUMN:
            out = put_column(parser, record, step, top, out);
            if (!out) {
                record->failed = step->column;
                return NULL;
            }
            break;
        }
    }
    return sl_bson_end(start, out);
}
