/* SPDX-License-Identifier: Apache-2.0 */
/* Delimited text. An error here would put values into wrong columns, lose records at block ends, or
 * reject good lines after a bad one. */
#include "format/head.h"
#include "format/notation.h"
#include "parse_text.h"
#include "simd_rows.h"

static const char three_columns[] = "name: three\n"
                                    "columns:\n"
                                    "  - {name: number, type: int, required: true}\n"
                                    "  - {name: word}\n"
                                    "  - {name: day, type: date, missing: [\"NULL\"]}\n";

static parsed parse_delimited(const char *text) {
    return parse_with("delimited", &(sl_format_options){0}, text);
}

TEST(dotted_names_are_nested) {
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"id,origin.name,dest.name,origin.at.lat\n1,A,B,2\n",
         "{ \"id\" : \"1\", \"origin\" : { \"name\" : \"A\", \"at\" : { \"lat\" : \"2\" } }, "
         "\"dest\" : { \"name\" : \"B\" } }"},
        {"id,o.a,o.b\n1,,\n", "{ \"id\" : \"1\" }"},
        {"tags[1],tags[0],x\nb,a,c\n", "{ \"tags\" : [ \"a\", \"b\" ], \"x\" : \"c\" }"},
        {"t[0],t[1],t[2],t[3]\n,b,,\n", "{ \"t\" : [ null, \"b\" ] }"},
        {"i[0].n,i[0].p,i[1].n,i[1].p,i[2].n\na,1,,,c\n",
         "{ \"i\" : [ { \"n\" : \"a\", \"p\" : \"1\" }, null, { \"n\" : \"c\" } ] }"},
        {"m[0][0],m[0][1],m[1][0]\n1,2,3\n", "{ \"m\" : [ [ \"1\", \"2\" ], [ \"3\" ] ] }"},
        /* names that are not nested, and repaired if no query could reach them */
        {"No. of items,3.5mm,a..b,x.,y[z]\n1,2,3,4,5\n",
         "{ \"No of items\" : \"1\", \"3_5mm\" : \"2\", \"a__b\" : \"3\", \"x\" : \"4\", "
         "\"y[z]\" : \"5\" }"},
        /* contradictions: no value may be lost */
        {"a,a.b,c.d\n1,2,3\n", "{ \"a\" : \"1\", \"a_b\" : \"2\", \"c_d\" : \"3\" }"},
        {"a.b,a\n1,2\n", "{ \"a_b\" : \"1\", \"a\" : \"2\" }"},
        {"a.b,a[0]\n1,2\n", "{ \"a_b\" : \"1\", \"a[0]\" : \"2\" }"},
        {"a.b,a.b.c\n1,2\n", "{ \"a_b\" : \"1\", \"a_b_c\" : \"2\" }"},
        {"t[1],t[2]\na,b\n", "{ \"t[1]\" : \"a\", \"t[2]\" : \"b\" }"},
        {"_id.x,b\n1,2\n", "{ \"_id_x\" : \"1\", \"b\" : \"2\" }"},
        {"a.b,a.b,x\n1,2,3\n", "{ \"a\" : { \"b\" : \"1\", \"b_2\" : \"2\" }, \"x\" : \"3\" }"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p =
            parse_with("delimited", &(sl_format_options){.header = SL_HEADER_YES}, rows[i].text);
        assert_int_equal(p.documents, 1);
        assert_string_equal(json_at(&p, 0), rows[i].json);
    }
    parsed p = parse_with_schema("name: s\ncolumns: [{name: a.n, type: int}, {name: a.t}]\n",
                                 "a.n,a.t\n5,\"x \"\"y\"\"\"\nz,1\n3000000000,\xC3\xA9\n");
    assert_string_equal(json_at(&p, 0), "{ \"a\" : { \"n\" : 5, \"t\" : \"x \\\"y\\\"\" } }");
    assert_string_equal(json_at(&p, 1), "{ \"a\" : { \"n\" : 3000000000, \"t\" : \"\xC3\xA9\" } }");
    assert_one_reject(&p, "a.n", "not a whole number");
}

TEST(without_a_schema_columns_are_text) {
    parsed p = parse_delimited("make,count,\"a b\"\nFORD,12,2019-01-01\n,,x\n");
    assert_int_equal(p.documents, 2);
    assert_string_equal(json_at(&p, 0),
                        "{ \"make\" : \"FORD\", \"count\" : \"12\", \"a b\" : \"2019-01-01\" }");
    assert_string_equal(json_at(&p, 1), "{ \"a b\" : \"x\" }");
    assert_string_equal(p.described, "records: commas, header, 3 columns");
    assert_string_equal(p.header, "make,count,\"a b\"\n");
}

/* Every escape of an export. */
TEST(escapes_of_exports) {
    static const struct {
        const char *dialect, *text, *json; /* of the first record; NULL: it is a reject */
    } rows[] = {
        {"postgres", "1\\t2\t\\N\t\n", "{ \"a\" : \"1\\t2\", \"c\" : \"\" }"},
        {"postgres", "\\b\\f\\n\\r\\v\t\\\\N\t\\x41\\101\n",
         "{ \"a\" : \"\\b\\f\\n\\r\\u000b\", \"b\" : \"\\\\N\", \"c\" : \"AA\" }"},
        {"postgres", "a\\\nb\t\\\t\tq\\q\n",
         "{ \"a\" : \"a\\nb\", \"b\" : \"\\t\", \"c\" : \"qq\" }"},
        {"postgres", "a\\\\\\tb\t\\\\\\\\\t\\Nx\n",
         "{ \"a\" : \"a\\\\\\tb\", \"b\" : \"\\\\\\\\\", \"c\" : \"Nx\" }"},
        {"postgres", "\\xff\t1\t1\n", NULL},
        {"postgres", "\\000\t1\t1\n", NULL},
        {"postgres", "1\t2\t3\\", NULL},
        {"mysql", "a\\\tb\t\\\\\t\\Z\\n\n",
         "{ \"a\" : \"a\\tb\", \"b\" : \"\\\\\", \"c\" : \"\\u001a\\n\" }"},
        {"mysql", "a\\0b\t1\t1\n", NULL},
        {"mysql", "\"x\\\"\ty\\\nz\"\t\\N\t\"\"\n", "{ \"a\" : \"x\\\"\\ty\\nz\", \"c\" : \"\" }"},
        {"mysql-batch", "NULL\tNULLS\t\\t\n", "{ \"b\" : \"NULLS\", \"c\" : \"\\t\" }"},
        {"sql-csv", "\"\",,\\N\n", "{ \"a\" : \"\", \"c\" : \"\\\\N\" }"},
        {"csv", "\"\",,\\N\n", "{ \"c\" : \"\\\\N\" }"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_format_options options = {.notation = sl_notation_named(rows[i].dialect),
                                           .columns = "a,b,c",
                                           .quote =
                                               strchr(rows[i].text, '"') ? '"' : SL_QUOTE_AUTO};
        parsed p = parse_with("delimited", &options, rows[i].text);
        if (p.documents != (rows[i].json != NULL) || p.reject_count != (rows[i].json == NULL))
            fail_msg("%s %s: %u documents", rows[i].dialect, rows[i].text, p.documents);
        if (rows[i].json)
            assert_string_equal(json_at(&p, 0), rows[i].json);
    }
}

/* A dialect that the first lines suggest may be wrong: a backslash that its programs do not write
 * is never dropped. */
TEST(escapes_that_a_recognised_dialect_does_not_write_are_rejects) {
    static const struct {
        const char *text, *reason; /* of the last record; NULL: it is read */
    } rows[] = {
        {"a\\tb\\n\\\\", NULL},
        {"C:\\\\Users", NULL},
        {"C:\\Users\\new", "has \\U, which"},
        {"\\\\server\\share", "has \\s"},
        {"a\\|b", "has \\|"},
        {"\\101", "has \\1"},
        {"\\.git", "has \\."},
        {"x\t\\d", "the line has \\d"},
    };
    static const struct {
        const char *head, *advice;
    } heads[] = {{"id\tt\n1\tNULL\n", "--null NULL; otherwise with --dialect mysql-batch"},
                 {"1\t\\N\n", "--null '\\N'; otherwise with --dialect postgres or mysql"}};
    const size_t room = SL_SNIFF_BYTES + 200;
    char *text = malloc(room);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const char *reason = rows[i / 2].reason;
        size_t used = (size_t)sprintf(text, "%s", heads[i % 2].head);
        while (used < SL_SNIFF_BYTES)
            used += (size_t)sprintf(text + used, "2\tx\n");
        sprintf(text + used, "3\t%s\n", rows[i / 2].text);
        parsed p = parse_with(NULL, &(sl_format_options){0}, text);
        assert_int_equal(p.reject_count, reason != NULL);
        assert_true(!reason || (strstr(p.rejects[0].reason, reason) &&
                                strstr(p.rejects[0].reason, heads[i % 2].advice)));
    }
    free(text);
}

/* Lone \N is never stored as text if nothing declares what it is. */
TEST(a_field_that_may_be_null_is_a_reject) {
    parsed p = parse_with("delimited", &(sl_format_options){.header = SL_HEADER_YES},
                          "a,b\nx,y\n\"\\N\",z\n");
    assert_int_equal(p.documents, 2);
    static const char *const nulls[] = {"\\N", "none"};
    const sl_format_options given = {.header = SL_HEADER_YES, .nulls = nulls, .null_count = 2};
    p = parse_with("delimited", &given, "a,b\nx,y\nnone,\\N\n\"none\",1\n");
    assert_string_equal(json_at(&p, 1), "{ }");
    assert_string_equal(json_at(&p, 2), "{ \"a\" : \"none\", \"b\" : \"1\" }");
    const sl_format_options stored = {.header = SL_HEADER_YES, .store_null = true};
    p = parse_with("delimited", &stored, "a,b\nx,\n");
    assert_string_equal(json_at(&p, 0), "{ \"a\" : \"x\", \"b\" : null }");
}

TEST(every_delimiter) {
    static const char delimiters[] = ",|\t;";
    for (const char *d = delimiters; *d; d++) {
        char text[64];
        snprintf(text, sizeof text, "a%cb\n1%c2\n", *d, *d);
        parsed p = parse_delimited(text);
        assert_string_equal(json_at(&p, 0), "{ \"a\" : \"1\", \"b\" : \"2\" }");
    }
}

TEST(other_text_is_refused) {
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"", "empty"},
        {"\n  \r\n\n", "empty"},
        {"Dear reader,\nthis is prose.\nIt goes on.\n", "`Dear reader,`"},
        {"{\"a\": 1, \"b\": 2}\n{\"a\": 1, \"b\": 2}\n", "not delimited text"},
        {"word\nother\n", "expected a header"},
        {"_id,b\n1,2\n", "_id"},
        {"a,b\xFF\n1,2\n", "not UTF-8"},
        {"\x1F\x8B\x08 and so on", "gzip"},
        {"PK\x03\x04 and so on", "zip archive"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_delimited(rows[i].text);
        assert_null(p.format);
        assert_int_equal(p.error.code, SL_EXIT_SOURCE);
        assert_contains(p.error.message, rows[i].message);
    }
    static const char binary[] = "a,b\0,c\n1,2,3\n";
    parsed p = parse_in_blocks("delimited", &(sl_format_options){0},
                               (sl_text){binary, sizeof binary - 1}, 0, 0);
    assert_null(p.format);
    assert_contains(p.error.message, "binary");
}

TEST(a_schema_gives_types) {
    parsed p = parse_with_schema("name: all\n"
                                 "columns:\n"
                                 "  - {name: i, type: int, minimum: -100}\n"
                                 "  - {name: l, type: int}\n"
                                 "  - {name: d, type: double}\n"
                                 "  - {name: t, type: datetime}\n"
                                 "  - {name: c, type: code, missing: [\"99\"]}\n"
                                 "  - {name: f, type: flag, \"yes\": Y, \"no\": N}\n"
                                 "  - {name: s, short: x, missing: [n/a]}\n",
                                 "i,l,d,t,c,f,s\n"
                                 "-7,-3000000000,-1.5,2024-01-01T00:00:01.5Z,04,Y,word\n"
                                 "7,9223372036854775807,2,2024-01-01,4A,N,n/a\n"
                                 ",,,,99,,\n");
    assert_int_equal(p.documents, 3);
    assert_string_equal(json_at(&p, 0), "{ \"i\" : -7, \"l\" : -3000000000, \"d\" : -1.5, "
                                        "\"t\" : { \"$date\" : \"2024-01-01T00:00:01.500Z\" }, "
                                        "\"c\" : \"04\", \"f\" : true, \"x\" : \"word\" }");
    assert_string_equal(json_at(&p, 1), "{ \"i\" : 7, \"l\" : 9223372036854775807, \"d\" : 2.0, "
                                        "\"t\" : { \"$date\" : \"2024-01-01T00:00:00Z\" }, "
                                        "\"c\" : \"4A\", \"f\" : false }");
    assert_string_equal(json_at(&p, 2), "{ }");
}

/* Missing-value words that look like values, and keys that are too long for the fast path. */
TEST(missing_words_and_long_keys) {
    parsed p = parse_with_schema("name: all\n"
                                 "columns:\n"
                                 "  - {name: a_key_that_takes_more_than_32_bytes, type: int}\n"
                                 "  - {name: n, type: int, missing: [\"999\", \"-1\"]}\n"
                                 "  - {name: d, type: date, missing: [\"1971-01-01\"]}\n"
                                 "  - {name: t, type: datetime, missing: [\"1971-01-01\"]}\n",
                                 "a_key_that_takes_more_than_32_bytes,n,d,t\n"
                                 "3000000000,998,1971-01-02,1971-01-02\n"
                                 "-7,999,1971-01-01,1971-01-01\n"
                                 "7,-1,,\n");
    assert_int_equal(p.documents, 3);
    assert_string_equal(json_at(&p, 0), "{ \"a_key_that_takes_more_than_32_bytes\" : 3000000000, "
                                        "\"n\" : 998, "
                                        "\"d\" : { \"$date\" : \"1971-01-02T00:00:00Z\" }, "
                                        "\"t\" : { \"$date\" : \"1971-01-02T00:00:00Z\" } }");
    assert_string_equal(json_at(&p, 1), "{ \"a_key_that_takes_more_than_32_bytes\" : -7 }");
    assert_string_equal(json_at(&p, 2), "{ \"a_key_that_takes_more_than_32_bytes\" : 7 }");
}

/* UTF-8 is checked for many fields at once. One invalid field must be rejected, and only that
 * field, at any position. */
TEST(one_bad_field_among_many_good_ones) {
    static char text[60000];
    for (unsigned bad = 0; bad < 900; bad += 67) {
        size_t length = (size_t)snprintf(text, sizeof text, "a,b\n");
        for (unsigned i = 0; i < 900; i++)
            length += (size_t)snprintf(text + length, sizeof text - length,
                                       i == bad ? "\xC5\xBBUK,\xE9t\xC3\n"
                                                : "\xC5\xBBUK %u,\xE2\x82\xAC \xF0\x9F\x9A\x97\n",
                                       i);
        parsed p = parse_delimited(text);
        assert_int_equal(p.documents, 899);
        assert_int_equal(p.reject_count, 1);
        assert_int_equal(p.rejects[0].line, bad + 1);
        assert_contains(p.rejects[0].reason, "byte 0xe9 at offset 0");
        assert_string_equal(json_at(&p, 898), "{ \"a\" : \"\xC5\xBBUK 899\", \"b\" : "
                                              "\"\xE2\x82\xAC \xF0\x9F\x9A\x97\" }");
    }
}

TEST(every_type_refuses_invalid_values) {
    static const struct {
        const char *column;
        const char *value;
        const char *reason;
    } rows[] = {
        {"type: int", "12x", "\"12x\" is not a whole number"},
        {"type: int", " 12", "is not a whole number"},
        {"{type: int, maximum: 99}", "100", "too large: the greatest value here is 99"},
        {"{type: int, minimum: 3}", "2", "too small: the least value here is 3"},
        {"{type: int, minimum: 3}", "0", "too small"},
        {"{type: int, maximum: 99}", "00000000001", "more digits"},
        {"type: int", "9223372036854775808", "64 bits"},
        {"type: double", "1,5", "\"1,5\" has a decimal comma: give the type double:1.234,5 "},
        {"type: decimal128", "1,5",
         "\"1,5\" has a decimal comma: give the type decimal128:1.234,5 "},
        {"type: decimal128", "x", "\"x\" does not fit the type decimal128"},
        {"type: double", "1,x", "\"1,x\" is not a number"},
        {"type: date", "2019-02-29", "29 February 2019 does not exist"},
        {"type: datetime", "2019-02-28T99:00", "is not a date with time"},
        {"{type: flag, \"yes\": Y, \"no\": N}", "y", "\"y\" is neither \"Y\" nor \"N\""},
        {"type: text", "\xE9t\xE9", "byte 0xe9 at offset 0 of the field \"\\xe9t\\xe9\""},
        {"type: code", "12\xE9", "byte 0xe9 at offset 2"},
        {"required: true", "", "the field is empty"},
        {"{required: true, missing: [n/a]}", "n/a", "\"n/a\" means \"no value\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char schema[200], text[100];
        const char *keys = rows[i].column;
        snprintf(schema, sizeof schema, "name: x\ncolumns: [{name: first}, {name: value, %.*s}]",
                 (int)strlen(keys) - 2 * (*keys == '{'), keys + (*keys == '{'));
        snprintf(text, sizeof text, "first;value\n1;2019-01-01\nkept;%s\n", rows[i].value);
        parsed p = parse_with_schema(schema, text);
        assert_non_null(p.format);
        size_t last = p.reject_count - 1; /* the first row is only there to make it line 2 */
        assert_true(p.reject_count >= 1);
        assert_string_equal(p.rejects[last].column, "value");
        assert_contains(p.rejects[last].reason, rows[i].reason);
        assert_int_equal(p.rejects[last].line, 2);
        assert_int_equal(p.rejects[last].offset, strlen("first;value\n1;2019-01-01\n"));
    }
}

TEST(headerless_text_needs_a_schema) {
    parsed p = parse_with_schema(three_columns, "1,one,2019-01-01\n2,two,NULL\n");
    assert_int_equal(p.documents, 2);
    assert_string_equal(text_at(&p, 1, "word"), "two");
    assert_false(has_key(&p, 1, "day"));
    assert_string_equal(p.header, "");
    p = parse_with_schema(three_columns, "1,one\n");
    assert_null(p.format);
    assert_contains(p.error.message, "has 2 fields");
}

TEST(columns_may_have_any_order_and_be_missing) {
    parsed p = parse_with_schema(three_columns, "other,NUMBER\nkept,7\n");
    assert_string_equal(json_at(&p, 0), "{ \"other\" : \"kept\", \"number\" : 7 }");
    assert_contains(p.described, "not in the schema, loaded as text: other");
    p = parse_with_schema("name: x\nheader: true\ncolumns: [{name: a}, {name: b, required: true},"
                          " {name: c, required: true}]",
                          "a,z\n1,2\n");
    assert_null(p.format);
    assert_contains(p.error.message, "the header lacks columns that x must have: b, c");
}

/* A renamed column, here of the second of two files: the header became a record, and the columns
 * were mixed. */
TEST(a_header_without_a_required_column_is_no_record) {
    static const char people[] = "name: people\ncolumns: [{name: id, required: true}, "
                                 "{name: name, required: true}, {name: city}]";
    parsed p = parse_with_schema(people, "city,id,title\nRome,1,Ann\n");
    assert_null(p.format);
    assert_contains(p.error.message, "the header lacks columns that people must have: name");
    p = parse_with_schema(people, "city,1,2\n"); /* a record with the value "city" */
    assert_int_equal(p.documents, 1);
}

TEST(quotes_and_escapes) {
    static const struct {
        const char *field;
        const char *value; /* NULL: rejected; "\n": the field might continue on the next line */
    } rows[] = {
        {"\"plain\"", "plain"},
        {"\"a, b\"", "a, b"},
        {"\"say \\\"hi\\\"\"", "say \"hi\""},
        {"\"say \"\"hi\"\"\"", "say \"hi\""},
        {"\"12\\\"\"", "12\""},
        {"\"12\"\"\"", "12\""},
        {"\"back\\\\slash\"", "back\\slash"},
        {"\"other \\n escape\"", "other \\n escape"},
        {"\"\\\\\"", "\\"},
        {"\"\"\"\"", "\""},
        {"bare \\ and \" stay", "bare \\ and \" stay"},
        {"12\"", "12\""},
        {"\" blanks \"", " blanks "},
        {"\"\xC5\xBBUK\"", "\xC5\xBBUK"},
        {"\"\xC5\xBB\\\"UK\"", "\xC5\xBB\"UK"},
        {" \"x\"", "x"},
        {" \"a, b\" ", "a, b"},
        {" \"x\" y", " \"x\" y"},
        {" x \"y\"", " x \"y\""},
        {"\"never closed", "\n"},
        {"\"closed by an escape only\\\"", NULL},
        {"\"closed\" too early", NULL},
        {"\"closed\"\"", "\n"},
        {"\"", "\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int last = 0; last <= 1; last++) { /* in the middle of the line and at its end */
            char text[200];
            snprintf(text, sizeof text, last ? "a,b\nx,%s\ny,z\n" : "b,a\n%s,x\nz,y\n",
                     rows[i].field);
            parsed p = parse_with("delimited", &(sl_format_options){.escape = '\\'}, text);
            assert_non_null(p.format);
            if (rows[i].value && *rows[i].value == '\n') { /* parsing stops there */
                assert_true(p.misread && p.stopped);
                assert_int_equal(p.documents, 0);
                assert_int_equal(p.rejects[0].line, 1);
                assert_non_null(strstr(p.rejects[0].reason, "still open"));
            } else if (rows[i].value) {
                assert_int_equal(p.documents, 2);
                assert_string_equal(text_at(&p, 0, "b"), rows[i].value);
            } else {
                assert_one_reject(&p, "b", "quote that");
                assert_int_equal(p.documents, 1); /* the next line is parsed */
            }
            if (!p.misread)
                assert_string_equal(text_at(&p, p.documents - 1, "b"), "z");
        }
    }
    parsed p = parse_delimited("a,b\n\"\",\"\"\n");
    assert_string_equal(json_at(&p, 0), "{ }");
}

TEST(without_escape_a_backslash_is_data) {
    parsed p = parse_delimited("a,b\n\"c:\\\",x\\\n\"p\\q\",\"\\\\\"\n\"say \\\"hi\\\"\",1\n");
    assert_int_equal(p.documents, 2);
    assert_string_equal(text_at(&p, 0, "a"), "c:\\");
    assert_string_equal(text_at(&p, 0, "b"), "x\\");
    assert_string_equal(text_at(&p, 1, "a"), "p\\q");
    assert_string_equal(text_at(&p, 1, "b"), "\\\\");
    assert_int_equal(p.reject_count, 1);
    assert_non_null(strstr(p.rejects[0].reason, "--escape backslash"));
    p = parse_with("delimited", &(sl_format_options){.escape = '^'}, "a,b\n\"x^\"y^^z\\\",1\n");
    assert_int_equal(p.documents, 1);
    assert_string_equal(text_at(&p, 0, "a"), "x\"y^z\\");
}

TEST(pipes_and_tabs_do_not_quote) {
    parsed p = parse_delimited("a|b\n\"x|y\"\n\"p\\\"|q\n");
    assert_string_equal(json_at(&p, 0), "{ \"a\" : \"\\\"x\", \"b\" : \"y\\\"\" }");
    assert_string_equal(json_at(&p, 1), "{ \"a\" : \"\\\"p\\\\\\\"\", \"b\" : \"q\" }");
}

TEST(line_ends_of_every_kind) {
    static const char *const texts[] = {
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r",
        "\357\273\277a,b\n1,2\n3,4\n",
        "\"a\",\"b\"\r\n\"1\",\"2\"\r\n\"3\",\"4\"\r\n",
        "\n\na,b\n1,2\n3,4\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_delimited(texts[i]);
        assert_int_equal(p.documents, 2);
        assert_string_equal(json_at(&p, 0), "{ \"a\" : \"1\", \"b\" : \"2\" }");
        assert_string_equal(json_at(&p, 1), "{ \"a\" : \"3\", \"b\" : \"4\" }");
        assert_int_equal(p.counts.lines, p.counts.records + p.counts.blank_lines + 1);
    }
}

TEST(blank_lines_and_repeated_headers_are_counted) {
    parsed p = parse_delimited("a,b\n\n1,2\n   \n\r\na,b\n3,4\na,other\n\n");
    assert_int_equal(p.documents,
                     3); /* "a,other" is data: only a complete header line is skipped */
    assert_int_equal(p.counts.blank_lines, 4);
    assert_int_equal(p.counts.headers, 1);
    assert_int_equal(p.counts.lines, 9);
    p = parse_with_schema(three_columns, "number|word|day\n1|x|\n\"NUMBER\"|word|Day\nnumber|x|\n");
    assert_int_equal(p.documents, 1);
    assert_int_equal(p.reject_count, 1);
    assert_int_equal(p.counts.headers, 1);
    p = parse_with_schema("name: one\nheader: true\ncolumns: [{name: a}]", "a\nx\n\n  \ny");
    assert_int_equal(p.documents, 3); /* with one column a line of blanks is a value */
    assert_int_equal(p.counts.blank_lines, 1);
    const sl_format_options copy = {.notation = sl_notation_named("postgres"), .columns = "a"};
    p = parse_with("delimited", &copy,
                   "x\\ty\n\\\\.\n\\.\n"); /* the end of COPY's data is no value */
    assert_string_equal(json_at(&p, 1), "{ \"a\" : \"\\\\.\" }");
    assert_int_equal(p.documents, 2);
    assert_int_equal(p.counts.blank_lines, 1);
}

TEST(wrong_numbers_of_fields) {
    parsed p = parse_delimited("a,b,c\n1,2\n1,2,3,4\n1,2,3\n1\n4,5,6\n7,8,9\n");
    assert_int_equal(p.documents, 3);
    assert_int_equal(p.reject_count, 3);
    assert_string_equal(p.rejects[0].reason, "too few fields: 2 of 3");
    assert_string_equal(p.rejects[0].column, "");
    assert_string_equal(p.rejects[0].record, "1,2");
    assert_contains(p.rejects[1].reason, "too many fields: 4 instead of 3");
    assert_int_equal(p.rejects[2].line, 4);
}

TEST(extra_delimiters_spill) {
    static const char schema[] = "name: x\ncolumns: [{name: a, type: int}, {name: b, spill: true},"
                                 " {name: c}]";
    parsed p = parse_with_schema(schema, "a|b|c\n1|x|y|z\n2||||\n");
    assert_int_equal(p.counts.repaired, 2);
    assert_string_equal(json_at(&p, 0), "{ \"a\" : 1, \"b\" : \"x|y\", \"c\" : \"z\" }");
    assert_string_equal(json_at(&p, 1), "{ \"a\" : 2, \"b\" : \"||\" }");
    p = parse_with_schema(schema, "b|a|c\nx|1|y|z\n"); /* not the schema's order of columns */
    assert_one_reject(&p, "", "too many fields");
    p = parse_with_schema(schema, "a,b,c\n1,x,y,z\n"); /* with commas it may be a quoting error */
    assert_one_reject(&p, "", "too many fields");
}

/* Any division into blocks gives the same documents, with the ids of their offsets. The lines are
 * shorter than a step of the scan, longer than the text it scans at once, and of lengths
 * between. */
TEST(block_boundaries_do_not_matter) {
    static const size_t lengths[] = {0,   1,   5,   31,   62, 63,   64,  65,
                                     127, 500, 900, 8190, 3,  8193, 9000};
    enum { LINES = 400 };
    static char text[LINES * 2000];
    for (int dialect = 0; dialect < 2; dialect++) {
        size_t used = (size_t)sprintf(text, "%s", dialect ? "a,b\n" : "a|b\n");
        for (int i = 0; i < LINES; i++) {
            size_t length = lengths[i % 15] > 2000 && i > 60 ? 7 : lengths[i % 15];
            if (length > BATCH_BYTES / 2)
                length = BATCH_BYTES / 2;
            text[used++] = (char)('a' + i % 26);
            if (i % 11 == 3)
                used += (size_t)sprintf(text + used, "\xC5\xBB");
            text[used++] = dialect ? ',' : '|';
            if (dialect && i % 3 == 0)
                text[used++] = '"';
            memset(text + used, 'z', length);
            used += length;
            if (dialect && i % 3 == 0)
                used += (size_t)sprintf(text + used, i % 2 ? "\"" : "\\\"\"");
            used += (size_t)sprintf(text + used, i % 5 ? "\n" : "\r\n");
        }
        sl_text whole = {text, used};
        parsed one =
            parse_in_blocks("delimited", &(sl_format_options){.escape = '\\'}, whole, 0, 0);
        assert_int_equal(one.documents, LINES);
        for (size_t step = 1; step < used; step = step * 2 + 1) {
            parsed many =
                parse_in_blocks("delimited", &(sl_format_options){.escape = '\\'}, whole, step, 0);
            assert_int_equal(many.length, one.length);
            assert_memory_equal(many.bytes, one.bytes, one.length);
            assert_memory_equal(&many.counts, &one.counts, sizeof one.counts);
        }
        size_t at = 4;
        for (uint32_t i = 0; i < one.documents; i++) {
            assert_int_equal(id_at(&one, i), sl_document_id(1, at));
            at = (size_t)((char *)memchr(text + at, '\n', used - at) - text) + 1;
        }
    }
}

TEST(the_sink_can_stop_the_parser) {
    char text[4000] = "a,b\n";
    for (int i = 0; i < 300; i++)
        strcat(text, "x,y\n");
    parsed p = parse_in_blocks("delimited", &(sl_format_options){0}, sl_text_of(text), 0, 50);
    assert_true(p.stopped);
    assert_true(p.documents >= 50 && p.documents < 60);
}

TEST(a_record_too_large_is_refused) {
    size_t length = (size_t)17 << 20;
    char *text = malloc(length);
    assert_non_null(text);
    memset(text, 'x', length);
    memcpy(text, "a,b\n1,", 6);
    text[length - 5] = '\n';
    memcpy(text + length - 4, "2,3\n", 4);
    parsed p = parse_in_blocks("delimited", &(sl_format_options){0}, (sl_text){text, length}, 0, 0);
    assert_one_reject(&p, "", "bytes or more is too large for a document (16 MiB)");
    assert_int_equal(p.documents, 1);
    free(text);
}

TEST(other_bytes_than_utf8) {
    static const char text[] = "a,b\ncaf\xE9,\x80\n\xC5\xBB,y\n\"\x93q\\\"\x94\",z\n";
    parsed p =
        parse_with("delimited", &(sl_format_options){.encoding = "latin-1", .escape = '\\'}, text);
    assert_int_equal(p.documents, 3);
    assert_int_equal(p.counts.transcoded, 2);
    assert_string_equal(text_at(&p, 0, "a"), "caf\xC3\xA9");
    assert_string_equal(text_at(&p, 0, "b"), "\xE2\x82\xAC");
    assert_string_equal(text_at(&p, 1, "a"), "\xC5\xBB");
    assert_string_equal(text_at(&p, 2, "a"), "\xE2\x80\x9Cq\"\xE2\x80\x9D");
    p = parse_delimited(text);
    assert_int_equal(p.documents, 1);
    assert_int_equal(p.reject_count, 2);
    static const char nul[] = "a,b\nx,y\nx\0,y\nx,z\n";
    p = parse_in_blocks("delimited", &(sl_format_options){.encoding = "latin-1"},
                        (sl_text){nul, sizeof nul - 1}, 0, 0);
    assert_one_reject(&p, "a", "byte 0x00 at offset 1");
    assert_int_equal(p.documents, 2);
}

/* Found by fuzzing: one of the blank lines before a header was not counted. */
TEST(block_boundaries_before_the_header_do_not_matter) {
    const sl_text text = sl_text_of("\n \na,b\n1,2\n\n3,4\n");
    parsed one = parse_in_blocks("delimited", &(sl_format_options){0}, text, 0, 0);
    assert_int_equal(one.counts.blank_lines, 3);
    assert_int_equal(one.counts.lines, 6);
    for (size_t step = 1; step < text.length; step++) {
        parsed many = parse_in_blocks("delimited", &(sl_format_options){0}, text, step, 0);
        assert_memory_equal(&many.counts, &one.counts, sizeof one.counts);
    }
}

RUN_TESTS {
    return run_with_each_simd(added, added_count);
}
