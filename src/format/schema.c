/* SPDX-License-Identifier: Apache-2.0 */
/* Reads schemas from YAML, by two tables of keys and one function for each kind of value. */
#include "schema.h"
#include "date_format.h"
#include "util/yaml_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

typedef struct reader {
    yaml_document_t *document;
    const char *source;
    sl_error *error;
} reader;

typedef enum key_kind {
    KEY_TEXT,      /* const char * */
    KEY_WORDS,     /* sl_words */
    KEY_BOOL,      /* bool */
    KEY_CHOICE,    /* sl_choice */
    KEY_INT64,     /* int64_t */
    KEY_TYPE,      /* sl_type */
    KEY_INVALID,   /* sl_invalid */
    KEY_DELIMITER, /* char */
    KEY_QUOTES,    /* char */
    KEY_COUNTS,    /* field_counts */
    KEY_COLUMNS,
} key_kind;

typedef struct key_row {
    const char *name;
    key_kind kind;
    size_t offset;
} key_row;

static const key_row schema_keys[] = {
    {"name", KEY_TEXT, offsetof(sl_schema, name)},
    {"kind", KEY_TEXT, offsetof(sl_schema, kind)},
    {"delimiter", KEY_DELIMITER, offsetof(sl_schema, delimiter)},
    {"quotes", KEY_QUOTES, offsetof(sl_schema, quote)},
    {"header", KEY_CHOICE, offsetof(sl_schema, header)},
    {"exact", KEY_BOOL, offsetof(sl_schema, exact)},
    {"trim", KEY_BOOL, offsetof(sl_schema, trim)},
    {"field_counts", KEY_COUNTS, offsetof(sl_schema, field_counts)},
    {"skip_lines", KEY_INT64, offsetof(sl_schema, skip_lines)},
    {"blanks", KEY_INT64, offsetof(sl_schema, blanks)},
    {"missing", KEY_WORDS, offsetof(sl_schema, missing)},
    {"lossless", KEY_BOOL, offsetof(sl_schema, lossless)},
    {"columns", KEY_COLUMNS, 0},
    {NULL, KEY_TEXT, 0},
};

static const key_row column_keys[] = {
    {"name", KEY_TEXT, offsetof(sl_schema_column, name)},
    {"short", KEY_TEXT, offsetof(sl_schema_column, short_name)},
    {"aliases", KEY_WORDS, offsetof(sl_schema_column, aliases)},
    {"type", KEY_TYPE, offsetof(sl_schema_column, type)},
    {"required", KEY_BOOL, offsetof(sl_schema_column, required)},
    {"missing", KEY_WORDS, offsetof(sl_schema_column, missing)},
    {"minimum", KEY_INT64, offsetof(sl_schema_column, minimum)},
    {"maximum", KEY_INT64, offsetof(sl_schema_column, maximum)},
    {"yes", KEY_TEXT, offsetof(sl_schema_column, yes)},
    {"no", KEY_TEXT, offsetof(sl_schema_column, no)},
    {"format", KEY_TEXT, offsetof(sl_schema_column, format)},
    {"offset", KEY_CHOICE, offsetof(sl_schema_column, zone)},
    {"lossless", KEY_BOOL, offsetof(sl_schema_column, lossless)},
    {"invalid", KEY_INVALID, offsetof(sl_schema_column, invalid)},
    {"point", KEY_TEXT, offsetof(sl_schema_column, point)},
    {"spill", KEY_BOOL, offsetof(sl_schema_column, spill)},
    {NULL, KEY_TEXT, 0},
};

static const char *const type_names[] = {"text",     "int",  "double",    "date",
                                         "datetime", "code", "flag",      "decimal128",
                                         "objectid", "uuid", "longitude", "latitude"};

const char *sl_type_name(sl_type type) {
    return type_names[type];
}

/* Sets the error "source:line:column: expected ..., found ...". Returns false. */
static bool report(const reader *r, const yaml_node_t *node, const char *expected) {
    char found[80] = "";
    if (node->type == YAML_SCALAR_NODE) {
        char word[64];
        sl_text value = {(const char *)node->data.scalar.value, node->data.scalar.length};
        sl_text_printable(value, word, sizeof word);
        snprintf(found, sizeof found, ", found \"%s\"", word);
    }
    sl_error_set(r->error, SL_EXIT_USAGE, "%s:%zu:%zu: expected %s%s", r->source,
                 node->start_mark.line + 1, node->start_mark.column + 1, expected, found);
    return false;
}

/* The node's text; NULL when it is not a scalar, or is empty, or contains a NUL. */
static const char *scalar(const yaml_node_t *node) {
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0 ||
        memchr(node->data.scalar.value, '\0', node->data.scalar.length))
        return NULL;
    return (const char *)node->data.scalar.value;
}

static bool read_bool(const reader *r, const yaml_node_t *node, bool *value) {
    const char *word = scalar(node);
    if (word && (strcmp(word, "true") == 0 || strcmp(word, "yes") == 0))
        *value = true;
    else if (word && (strcmp(word, "false") == 0 || strcmp(word, "no") == 0))
        *value = false;
    else
        return report(r, node, "true or false");
    return true;
}

static bool read_int64(const reader *r, const yaml_node_t *node, int64_t *value) {
    const char *word = scalar(node);
    bool negative = word && *word == '-';
    uint64_t magnitude;
    if (!word || !sl_text_to_u64(sl_text_of(word + negative), &magnitude) ||
        magnitude > (uint64_t)INT64_MAX)
        return report(r, node, "a whole number");
    *value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

static bool read_type(const reader *r, const yaml_node_t *node, sl_type *type) {
    const char *word = scalar(node);
    for (size_t i = 0; word && i < sizeof type_names / sizeof type_names[0]; i++) {
        if (strcmp(word, type_names[i]) == 0) {
            *type = (sl_type)i;
            return true;
        }
    }
    return report(r, node,
                  "a type: text, int, double, date, datetime, code, flag, decimal128, objectid, "
                  "uuid, longitude or latitude");
}

static bool read_invalid(const reader *r, const yaml_node_t *node, sl_invalid *invalid) {
    static const char *const words[] = {"reject", "text", "missing"};
    const char *word = scalar(node);
    for (size_t i = 0; word && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *invalid = (sl_invalid)i;
            return true;
        }
    }
    return report(r, node, "reject, text or missing");
}

bool sl_delimiter_named(const char *word, char *delimiter) {
    static const struct {
        const char *word;
        char byte;
    } names[] = {{"comma", ','}, {"pipe", '|'},      {"tab", '\t'},
                 {"\\t", '\t'},  {"semicolon", ';'}, {"blank", ' '}};
    unsigned byte = word[1] == '\0' ? (uint8_t)*word : 0;
    int end = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(word, names[i].word) == 0)
            byte = (uint8_t)names[i].byte;
    }
    if (sscanf(word, "\\x%2x%n", &byte, &end) == 1 && word[end] != '\0')
        byte = 0;
    if (byte == 0 || byte > 0x7F || strchr("\"\\\r\n", (int)byte))
        return false;
    *delimiter = (char)byte;
    return true;
}

bool sl_quote_named(const char *word, char *quote) {
    if (*word <= ' ' || *word >= 0x7F || word[1] != '\0' || *word == '\\')
        return false;
    *quote = *word;
    return true;
}

static bool read_delimiter(const reader *r, const yaml_node_t *node, char *delimiter) {
    const char *word = scalar(node);
    return (word && sl_delimiter_named(word, delimiter)) ||
           report(r, node,
                  "comma, pipe, tab, semicolon, blank, or one ASCII byte (\";\", \"\\x01\") that "
                  "is not a quote, a backslash or a line end");
}

static bool read_quotes(const reader *r, const yaml_node_t *node, char *quote) {
    const char *word = scalar(node);
    bool yes;
    if (word && word[0] != '\0' && word[1] != '\0') {
        if (!read_bool(r, node, &yes))
            return false;
        *quote = yes ? '"' : SL_QUOTE_NONE;
        return true;
    }
    return (word && sl_quote_named(word, quote)) ||
           report(r, node, "true, false, or one character that quotes fields");
}

/* The number of items of a sequence; SIZE_MAX when the node is not a sequence. */
static size_t sequence_length(const yaml_node_t *node) {
    if (node->type != YAML_SEQUENCE_NODE)
        return SIZE_MAX;
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

static yaml_node_t *sequence_item(const reader *r, const yaml_node_t *node, size_t index) {
    return yaml_document_get_node(r->document, node->data.sequence.items.start[index]);
}

static bool read_words(const reader *r, const yaml_node_t *node, sl_words *words) {
    size_t count = sequence_length(node);
    if (count == SIZE_MAX)
        return report(r, node, "a list of words, [one, two]");
    words->words = calloc(count + 1, sizeof *words->words);
    if (!words->words)
        return sl_error_memory(r->error, "reading a schema");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = sequence_item(r, node, i);
        words->words[i] = scalar(item);
        if (!words->words[i])
            return report(r, item, "a word");
    }
    words->count = count;
    return true;
}

static bool read_counts(const reader *r, const yaml_node_t *node, uint32_t *counts) {
    const size_t most = sizeof((sl_schema *)0)->field_counts / sizeof *counts - 1;
    size_t length = sequence_length(node);
    if (length > most) /* also SIZE_MAX */
        return report(r, node, "a list of at most 7 numbers of fields, [14, 15]");
    for (size_t i = 0; i < length; i++) {
        const yaml_node_t *item = sequence_item(r, node, i);
        int64_t value = 0;
        if (!read_int64(r, item, &value))
            return false;
        if (value < 1 || value > SL_COLUMNS_MAX)
            return report(r, item, "a number of fields from 1 to 1024");
        counts[i] = (uint32_t)value;
    }
    return true;
}

static bool read_mapping(const reader *r, const yaml_node_t *node, const key_row *keys,
                         const char *what, void *target);

bool sl_schema_is_coordinate(const sl_schema_column *column) {
    return column->type == SL_TYPE_LONGITUDE || column->type == SL_TYPE_LATITUDE;
}

/* Gives a coordinate its key: the longitude is the first of the point's coordinates. */
static bool check_point(const reader *r, const yaml_node_t *node, sl_schema_column *column) {
    bool coordinate = sl_schema_is_coordinate(column);
    if (!coordinate)
        return !column->point || report(r, node, "a point with the type longitude or latitude");
    if (!column->point || column->short_name || column->invalid == SL_INVALID_TEXT)
        return report(r, node,
                      "a coordinate with the key of its point, and without short or invalid: text: "
                      "{name: lon, type: longitude, point: at}");
    if (asprintf(&column->point_key, "%s.coordinates[%d]", column->point,
                 column->type == SL_TYPE_LATITUDE) < 0) {
        column->point_key = NULL;
        return sl_error_memory(r->error, "reading a schema");
    }
    return true;
}

static bool check_column(const reader *r, const yaml_node_t *node, sl_schema_column *column) {
    if (!column->name) {
        report(r, node, "a column with a name: {name: ..., type: ...}");
        return false;
    }
    if (column->type == SL_TYPE_FLAG && !column->yes)
        return report(r, node, "a flag with the word for true: {type: flag, yes: Y}");
    bool date = column->type == SL_TYPE_DATE || column->type == SL_TYPE_DATETIME;
    if (column->format && (!date || !sl_date_format_valid(column->format)))
        return report(r, node,
                      "a format of a date or datetime: %Y, %d, and %m or %b, with %H %M %S, "
                      "%I %p, %z, %a where needed; or epoch, or epoch-ms");
    if (column->minimum > column->maximum)
        return report(r, node, "a minimum that is not above the maximum");
    if (column->invalid == SL_INVALID_MISSING && column->required)
        return report(r, node, "a required column without invalid: missing");
    if (!check_point(r, node, column))
        return false;
    if (!column->short_name)
        column->short_name = column->point_key ? column->point_key : column->name;
    return true;
}

static bool read_columns(const reader *r, const yaml_node_t *node, sl_schema *schema) {
    size_t count = sequence_length(node);
    if (count < 1 || count > SL_COLUMNS_MAX)
        return report(r, node, "a list of 1 to 1024 columns");
    schema->columns = calloc(count, sizeof *schema->columns);
    if (!schema->columns)
        return sl_error_memory(r->error, "reading a schema");
    schema->column_count = count;
    bool spills = false;
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = sequence_item(r, node, i);
        sl_schema_column *column = &schema->columns[i];
        *column = (sl_schema_column){.minimum = INT64_MIN, .maximum = INT64_MAX};
        if (!read_mapping(r, item, column_keys, "a column", column) ||
            !check_column(r, item, column))
            return false;
        if (column->spill && (spills || column->type != SL_TYPE_TEXT))
            return report(r, item, "at most one column that spills, and that one a text");
        spills |= column->spill;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(column->name, schema->columns[k].name) == 0 ||
                strcmp(column->short_name, schema->columns[k].short_name) == 0)
                return report(r, item, "names and short names that no other column has");
        }
        if (strcmp(column->name, "_id") == 0 || strcmp(column->short_name, "_id") == 0)
            return report(r, item, "a key other than _id, which the loader generates");
    }
    return true;
}

static bool read_value(const reader *r, const yaml_node_t *node, const key_row *key, void *target) {
    void *field = (char *)target + key->offset;
    bool yes = false;
    switch (key->kind) {
    case KEY_TEXT:
        *(const char **)field = scalar(node);
        return *(const char **)field || report(r, node, "a word");
    case KEY_WORDS:
        return read_words(r, node, field);
    case KEY_BOOL:
        return read_bool(r, node, field);
    case KEY_CHOICE:
        if (!read_bool(r, node, &yes))
            return false;
        *(sl_choice *)field = yes ? SL_CHOICE_YES : SL_CHOICE_NO;
        return true;
    case KEY_INT64:
        return read_int64(r, node, field);
    case KEY_TYPE:
        return read_type(r, node, field);
    case KEY_INVALID:
        return read_invalid(r, node, field);
    case KEY_DELIMITER:
        return read_delimiter(r, node, field);
    case KEY_QUOTES:
        return read_quotes(r, node, field);
    case KEY_COUNTS:
        return read_counts(r, node, field);
    case KEY_COLUMNS:
        return read_columns(r, node, target);
    }
    return false;
}

static bool unknown_key(const reader *r, const yaml_node_t *node, const key_row *keys) {
    char expected[300] = "one of the keys ";
    for (const key_row *key = keys; key->name; key++) {
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s", key == keys ? "" : ", ",
                 key->name);
    }
    return report(r, node, expected);
}

static bool read_mapping(const reader *r, const yaml_node_t *node, const key_row *keys,
                         const char *what, void *target) {
    if (node->type != YAML_MAPPING_NODE) {
        char expected[64];
        snprintf(expected, sizeof expected, "%s: a mapping of keys to values", what);
        return report(r, node, expected);
    }
    unsigned seen = 0;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key_node = yaml_document_get_node(r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(r->document, pair->value);
        const char *word = scalar(key_node);
        const key_row *key = keys;
        while (key->name && (!word || strcmp(word, key->name) != 0))
            key++;
        if (!key->name)
            return unknown_key(r, key_node, keys);
        unsigned bit = 1u << (key - keys);
        if (seen & bit)
            return report(r, key_node, "each key once");
        seen |= bit;
        if (!read_value(r, value, key, target))
            return false;
    }
    return true;
}

bool sl_schema_read(sl_text yaml, const char *source, sl_schema **out, sl_error *error) {
    sl_schema *schema = calloc(1, sizeof *schema);
    yaml_document_t *document = calloc(1, sizeof *document);
    reader r = {document, source, error};
    if (!schema || !document) {
        free(schema);
        free(document);
        return sl_error_memory(error, "reading a schema");
    }
    if (!sl_yaml_read_document(yaml, source, document, error)) {
        free(schema);
        free(document);
        return false;
    }
    schema->document = document;
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (!root) {
        sl_error_set(error, SL_EXIT_USAGE, "%s: the schema is empty", source);
        goto fail;
    }
    if (!read_mapping(&r, root, schema_keys, "a schema", schema))
        goto fail;
    if (!schema->name || !schema->columns) {
        report(&r, root, "a schema with the keys name and columns");
        goto fail;
    }
    if (schema->skip_lines < 0 || schema->skip_lines > 1000 || schema->blanks < 0 ||
        schema->blanks > 2) {
        report(&r, root, "a schema with skip_lines from 0 to 1000, and blanks from 0 to 2");
        goto fail;
    }
    if (schema->delimiter && schema->quote == schema->delimiter) {
        report(&r, root, "a schema whose delimiter is not its quote");
        goto fail;
    }
    if (!schema->kind)
        schema->kind = schema->name;
    for (size_t i = 0; i < schema->column_count; i++) {
        sl_schema_column *column = &schema->columns[i];
        if (!column->missing.words)
            column->missing = schema->missing;
        column->lossless = column->lossless || schema->lossless;
    }
    *out = schema;
    return true;
fail:
    sl_schema_destroy(schema);
    return false;
}

void sl_schema_destroy(sl_schema *schema) {
    if (!schema)
        return;
    for (size_t i = 0; i < schema->column_count; i++) {
        free(schema->columns[i].aliases.words);
        free(schema->columns[i].point_key);
        if (schema->columns[i].missing.words != schema->missing.words)
            free(schema->columns[i].missing.words);
    }
    free(schema->missing.words);
    free(schema->columns);
    yaml_document_delete(schema->document);
    free(schema->document);
    free(schema);
}

bool sl_schema_column_is_named(const sl_schema_column *column, sl_text name) {
    if (sl_text_equal_ignoring_case(name, sl_text_of(column->name)))
        return true;
    for (size_t i = 0; i < column->aliases.count; i++) {
        if (sl_text_equal_ignoring_case(name, sl_text_of(column->aliases.words[i])))
            return true;
    }
    return false;
}
