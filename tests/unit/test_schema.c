/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: errors in a user's schema are reported with their line, and the built-in schemas have
 * the documented names. */
#include "parse_text.h"

#include "format/schema.h"
#include "util/embedded.h"

static const char every_key[] =
    "name: parcels\n"
    "kind: posted parcels\n"
    "delimiter: semicolon\n"
    "quotes: false\n"
    "header: true\n"
    "exact: true\n"
    "trim: yes\n"
    "field_counts: [2, 3]\n"
    "columns:\n"
    "  - {name: weight, short: w, aliases: [mass, grams], type: int, minimum: -5, maximum: 70}\n"
    "  - name: fragile\n"
    "    type: flag\n"
    "    \"yes\": Y\n"
    "    \"no\": N\n"
    "    missing: [\"?\", n/a]\n"
    "  - {name: note, spill: true, required: true}\n";

TEST(every_key_is_read) {
    sl_schema *schema = NULL;
    sl_error error = {0};
    if (!sl_schema_read(sl_text_of(every_key), "parcels.yaml", &schema, &error))
        fail_msg("%s", error.message);
    assert_string_equal(schema->name, "parcels");
    assert_string_equal(schema->kind, "posted parcels");
    assert_int_equal(schema->delimiter, ';');
    assert_int_equal(schema->quote, SL_QUOTE_NONE);
    assert_int_equal(schema->header, SL_CHOICE_YES);
    assert_true(schema->exact && schema->trim);
    assert_int_equal(schema->field_counts[0], 2);
    assert_int_equal(schema->field_counts[1], 3);
    assert_int_equal(schema->field_counts[2], 0);
    assert_int_equal(schema->column_count, 3);
    const sl_schema_column *weight = &schema->columns[0];
    assert_string_equal(weight->short_name, "w");
    assert_int_equal(weight->aliases.count, 2);
    assert_string_equal(weight->aliases.words[1], "grams");
    assert_int_equal(weight->type, SL_TYPE_INT);
    assert_int_equal(weight->minimum, -5);
    assert_int_equal(weight->maximum, 70);
    assert_true(sl_schema_column_is_named(weight, sl_text_of("MASS")));
    assert_false(sl_schema_column_is_named(weight, sl_text_of("w")));
    const sl_schema_column *fragile = &schema->columns[1];
    assert_string_equal(fragile->short_name, "fragile"); /* default: the name */
    assert_string_equal(fragile->yes, "Y");
    assert_string_equal(fragile->no, "N");
    assert_string_equal(fragile->missing.words[0], "?");
    assert_true(schema->columns[2].required && schema->columns[2].spill);
    assert_int_equal(schema->columns[2].type, SL_TYPE_TEXT);
    sl_schema_destroy(schema);
    sl_schema_destroy(NULL);
}

TEST(errors_name_their_position) {
    static const struct {
        const char *yaml;
        const char *position;
        const char *message;
    } rows[] = {
        {"", "s.yaml: ", "empty"},
        {"name: [\n", "s.yaml:2:1: ", "not YAML"},
        {"just words", "s.yaml:1:1: ", "expected a mapping of keys to values"},
        {"name: x\n", "s.yaml:1:1: ", "the keys name and columns"},
        {"columns: [{name: a}]\n", "s.yaml:1:1: ", "the keys name and columns"},
        {"name: x\ncolumsn: []\n", "s.yaml:2:1: ", "expected one of the keys name, kind,"},
        {"name: x\ncolumsn: []\n", "s.yaml:2:1: ", "found \"columsn\""},
        {"name: x\nname: y\n", "s.yaml:2:1: ", "the key \"name\" is given twice"},
        {"name: x\ncolumns: []\n", "s.yaml:2:10: ", "a list of 1 to 1024 columns"},
        {"name: x\ncolumns:\n  - a\n",
         "s.yaml:3:5: ", "expected a mapping of keys to values, such as name: ..., found \"a\""},
        {"name: x\ncolumns:\n  - {type: int}\n", "s.yaml:3:5: ", "a column with a name"},
        {"name: x\ncolumns:\n  - {name: a, type: integer}\n", "s.yaml:3:21: ",
         "a type: text, int, double, date, datetime, code, flag, decimal128, objectid, int64, "
         "uuid, "
         "json, array, bool, base32, hex, base64, binary, longitude or latitude"},
        {"name: x\ncolumns:\n  - {name: a, type: integer}\n",
         "s.yaml:3:21: ", ", found \"integer\""},
        {"name: x\ncolumns:\n  - {name: a, type: flag}\n", "s.yaml:3:5: ", "the word for true"},
        {"name: x\ncolumns:\n  - {name: a, maximum: many}\n", "s.yaml:3:24: ", "a whole number"},
        {"name: x\ncolumns:\n  - {name: a, minimum: 2, maximum: 1}\n", "s.yaml:3:5: ", "minimum"},
        {"name: x\ncolumns: [{name: a}, {name: a}]\n", "s.yaml:2:22: ", "no other column has"},
        {"name: x\ncolumns: [{name: a}, {name: b, short: a}]\n", "s.yaml:2:22: ", "short names"},
        {"name: x\ncolumns: [{name: a, spill: true, type: int}]\n", "s.yaml:2:11: ", "spills"},
        {"name: x\ndelimiter: '\"'\n", "s.yaml:2:12: ", "comma, pipe, tab, semicolon"},
        {"name: x\ndelimiter: '||'\n", "s.yaml:2:12: ", "found \"||\""},
        {"name: x\nheader: perhaps\n", "s.yaml:2:9: ", "true or false"},
        {"name: x\nfield_counts: [0]\n", "s.yaml:2:16: ", "from 1 to 1024"},
        {"name: x\ncolumns: [{name: a, aliases: b}]\n",
         "s.yaml:2:30: ", "a list of at most 1000 words"},
        {"name: \"a\\0b\"\n", "s.yaml:1:7: ", "a word"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_schema *schema = NULL;
        sl_error error = {0};
        assert_false(sl_schema_read(sl_text_of(rows[i].yaml), "s.yaml", &schema, &error));
        assert_null(schema);
        assert_int_equal(error.code, SL_EXIT_USAGE);
        if (strncmp(error.message, rows[i].position, strlen(rows[i].position)) != 0)
            fail_msg("%s does not begin with %s", error.message, rows[i].position);
        assert_contains(error.message, rows[i].message);
    }
}

/* The short names of the published blog post, on which queries of its readers depend. */
TEST(the_short_names_are_the_published_ones) {
    const sl_embedded *file = sl_embedded_schemas;
    while (file->name && strcmp(file->name, "mot-result.yaml") != 0)
        file++;
    assert_non_null(file->name);
    sl_schema *schema = NULL;
    assert_true(sl_schema_read((sl_text){file->text, file->length}, file->name, &schema, NULL));
    static const char letters[] = "tvdcyrmskoufei";
    for (size_t i = 0; i < 14; i++) {
        assert_int_equal(schema->columns[i].short_name[0], letters[i]);
        assert_int_equal(schema->columns[i].short_name[1], '\0');
    }
    assert_int_equal(schema->column_count, 15);
    sl_schema_destroy(schema);
}
