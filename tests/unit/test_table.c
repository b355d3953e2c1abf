/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of tables. An error here loses a record as a header, names columns after a record, or
 * loads prose or a binary file as a table. */
#include "parse_text.h"

#include "format/head.h"

static parsed parse_delimited(const char *text) {
    return parse_with("delimited", &(sl_format_options){0}, text);
}

typedef struct found {
    const char *text, *described, *first; /* the first document */
    unsigned documents;
} found;

static void assert_found(const found *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        parsed p = parse_delimited(rows[i].text);
        if (!p.format)
            fail_msg("%s: %s", rows[i].text, p.error.message);
        assert_contains(p.described, rows[i].described);
        if (p.documents != rows[i].documents || p.reject_count > 0)
            fail_msg("%s: %u documents", rows[i].text, p.documents);
        if (rows[i].first)
            assert_string_equal(json_at(&p, 0), rows[i].first);
        uint64_t lines = 0;
        for (const char *at = rows[i].text; *at; at++)
            lines += *at == '\n';
        assert_int_equal(p.counts.lines, lines);
    }
}

TEST(tables_are_found) {
    static const found rows[] = {
        {"a,b\n1,2\n", "commas, header, 2 columns", "{ \"a\" : \"1\", \"b\" : \"2\" }", 1},
        {"a,b\n", "header, 2 columns", NULL, 0},
        {"1,2,3\n4,5,6\n", "no header found: columns are named column1 to column3",
         "{ \"column1\" : \"1\", \"column2\" : \"2\", \"column3\" : \"3\" }", 2},
        {"2019-01-01,FORD\n2019-01-02,BMW\n", "no header, 2 columns",
         "{ \"column1\" : \"2019-01-01\", \"column2\" : \"FORD\" }", 2},
        {"FORD,RED\nBMW,BLUE\nFORD,GREEN\nAUDI,RED\n", "no header", NULL, 4},
        {"make,colour\nBMW,BLUE\nFORD,GREEN\n", "commas, header", NULL, 2},
        {"country,2019,2020\nDE,1.5,2.5\nFR,3,4\n", "commas, header, 3 columns",
         "{ \"country\" : \"DE\", \"2019\" : \"1.5\", \"2020\" : \"2.5\" }", 2},
        {"DE,2019,2020\nFR,2018,2019\n", "no header", NULL, 2},
        {"00501;x\n10001;y\n", "semicolons, no header", NULL, 2},
        {"\xEF\xBB\xBF\xEF\xBB\xBF"
         "1;x\n2;y\n",
         "no header", "{ \"column1\" : \"1\", \"column2\" : \"x\" }", 2},
        {",name,age\n0,Ann,5\n1,Bob,6\n", "1 column without name: named by number",
         "{ \"column1\" : \"0\", \"name\" : \"Ann\", \"age\" : \"5\" }", 2},
        {"a,a.b,c[1]\n1,2,3\n", "no name is nested",
         "{ \"a\" : \"1\", \"a_b\" : \"2\", \"c[1]\" : \"3\" }", 1},
        {"a,b,a,a\n1,2,3,4\n", "2 repeated names numbered, as a_2",
         "{ \"a\" : \"1\", \"b\" : \"2\", \"a_2\" : \"3\", \"a_3\" : \"4\" }", 1},
        {"a,a,a_2,,column4\n1,2,3,4,5\n",
         "2 repeated names numbered, as a_3", /* real names remain */
         "{ \"a\" : \"1\", \"a_3\" : \"2\", \"a_2\" : \"3\", \"column4_2\" : \"4\", \"column4\" : "
         "\"5\" }",
         1},
        {"Report of stations\nMade 2020-01-01\n\nid,name,lat\n1,x,2.5\n2,y,3.5\n",
         "3 lines before the table skipped",
         "{ \"id\" : \"1\", \"name\" : \"x\", \"lat\" : \"2.5\" }", 2},
        {"Title, with a comma\n1;2;3\n4;5;6\n7;8;9\n", "1 line before the table skipped", NULL, 3},
        {"Report, 2024\nall regions\nid,name\n1,a\n2,b\n", "2 lines before the table skipped",
         "{ \"id\" : \"1\", \"name\" : \"a\" }", 2},
        {"id    name one   lat\n1     x y        2.5\n22    z          3.5\n", "two blanks or more",
         "{ \"id\" : \"1\", \"name one\" : \"x y\", \"lat\" : \"2.5\" }", 2},
        {"a,b,c,\n1,2,x\n3,4,y\n5,6,z\n", "header, 3 columns; the header has one field more",
         "{ \"a\" : \"1\", \"b\" : \"2\", \"c\" : \"x\" }", 3},
        {"a,b,c\n1,2,x,\n3,4,y,\n5,6,z,\n", "header, 4 columns; the header has one field less",
         "{ \"a\" : \"1\", \"b\" : \"2\", \"c\" : \"x\" }", 3},
        {"Report\n\na,b,c\n1,2,x,\n3,4,y,\n5,6,z,\n", "2 lines before the table skipped",
         "{ \"a\" : \"1\", \"b\" : \"2\", \"c\" : \"x\" }", 3},
        /* No header: a value below the column without name; two empty names. */
        {"a,b,c\n1,2,x,9\n3,4,y,\n5,6,z,\n", "no header", NULL, 3},
        {"a,b,,\n1,2,x\n3,4,y\n5,6,z\n", "no header", NULL, 3},
        {"x y\n1 2\n3 4\n", "separated by blanks", "{ \"x\" : \"1\", \"y\" : \"2\" }", 2},
        {"1.5 2\n3 4\n", "no header", "{ \"column1\" : \"1.5\", \"column2\" : \"2\" }", 2},
        /* Decimal commas: as many fields, whether commas or semicolons separate them. */
        {"1;1,5\n2;2,5\n", "semicolons, no header",
         "{ \"column1\" : \"1\", \"column2\" : \"1,5\" }", 2},
        {"2020-01-01;1,5;2,5\n2020-01-02;2,5;3,5\n", "semicolons, no header, 3 columns", NULL, 2},
        {"Temp (C, mean);Hum\n1,5;40\n2,5;50\n", "semicolons, header",
         "{ \"Temp (C, mean)\" : \"1,5\", \"Hum\" : \"40\" }", 2},
        {"Lee, Ann;12,5\nMay, Bob;13,5\n", "semicolons, no header, 2 columns", NULL, 2},
        {"1,2,10;20\n3,4,30;40\n", "commas, no header, 3 columns", NULL, 2},
        {"1,a;b\n2,c;d\n", "commas, no header, 2 columns", NULL, 2},
        /* One column. */
        {"ts\n2020-01-01 10:00:00\n2020-01-02 10:00:00\n", "header, 1 column",
         "{ \"ts\" : \"2020-01-01 10:00:00\" }", 2},
        {"1\n2\n3\n", "no header, 1 column; no header found: the column is named column1",
         "{ \"column1\" : \"1\" }", 3},
        /* Titles of spreadsheets; sparse records are no titles. */
        {"Sales,,\n,,\nid,name,v\n1,x,2.5\n2,y,3.5\n",
         "header, 3 columns; 2 lines before the table skipped",
         "{ \"id\" : \"1\", \"name\" : \"x\", \"v\" : \"2.5\" }", 2},
        {"Sales;;\n\nid;name;v\n1;x;2.5\n2;y;3.5\n",
         "header, 3 columns; 2 lines before the table skipped",
         "{ \"id\" : \"1\", \"name\" : \"x\", \"v\" : \"2.5\" }", 2},
        {"5,,\n6,7,8\n9,10,11\n", "no header", "{ \"column1\" : \"5\" }", 3},
    };
    assert_found(rows, sizeof rows / sizeof rows[0]);
}

/* A quote that is not recognised would be stored in each value, and a delimiter within it would
 * move all later values to the next column. A quote that is data must be kept. */
TEST(quotes_are_found) {
    static const found rows[] = {
        {"\"1\"\t\"x\"\n\"2\"\t\"y\"\n", "fields are quoted by \"",
         "{ \"column1\" : \"1\", \"column2\" : \"x\" }", 2},
        {"id|text\n1|\"x\"\n2|\"y\"\n3|\n", "fields are quoted by \"",
         "{ \"id\" : \"1\", \"text\" : \"x\" }", 3},
        {"id\ttext\n1\t\"a\tb\"\n2\tc\n", "fields are quoted by \"",
         "{ \"id\" : \"1\", \"text\" : \"a\\tb\" }", 2},
        {"id|text\n1|\"a \"\"b\"\" c\"\n2|c\n", "fields are quoted by \"",
         "{ \"id\" : \"1\", \"text\" : \"a \\\"b\\\" c\" }", 2},
        {"'id','text'\n'1','a, b'\n'2','it''s'\n", "fields are quoted by '",
         "{ \"id\" : \"1\", \"text\" : \"a, b\" }", 2},
        {"id;text\n1;'a;b'\n2;'c;d'\n3;'e;f'\n", "fields are quoted by '",
         "{ \"id\" : \"1\", \"text\" : \"a;b\" }", 3},
        /* Quotes that are data. */
        {"1\t\"x\"\n2\ty\n", "quotes are kept: --quote '\"'",
         "{ \"column1\" : \"1\", \"column2\" : \"\\\"x\\\"\" }", 2},
        {"id|size\n1|\"x\"\n2|\"y\" disk\n", "quotes are kept",
         "{ \"id\" : \"1\", \"size\" : \"\\\"x\\\"\" }", 2},
        {"id\ttext\n1\t\"a \"\"b\"\" c\"\n2\t\"x\" y\n", "quotes are kept",
         "{ \"id\" : \"1\", \"text\" : \"\\\"a \\\"\\\"b\\\"\\\" c\\\"\" }", 2},
        {"id,text\n1,'x'\n2,'y'\n", "commas, header, 2 columns",
         "{ \"id\" : \"1\", \"text\" : \"'x'\" }", 2},
        {"id,a,b\n1,'t is,it'\n2,'x,y'\n", "commas, header, 3 columns",
         "{ \"id\" : \"1\", \"a\" : \"'t is\", \"b\" : \"it'\" }", 2},
        {"'id',\"text\"\n'1',\"a, b\"\n'2',\"c\"\n", "commas, header, 2 columns",
         "{ \"'id'\" : \"'1'\", \"text\" : \"a, b\" }", 2},
    };
    assert_found(rows, sizeof rows / sizeof rows[0]);
}

TEST(options_replace_the_detection) {
    static const struct {
        sl_format_options options;
        const char *text, *first;
        unsigned documents;
    } rows[] = {
        {{.delimiter = '^'}, "a^b\n1^2\n", "{ \"a\" : \"1\", \"b\" : \"2\" }", 1},
        {{.delimiter = '\1'}, "a\001b,c\n1\0012,3\n", "{ \"a\" : \"1\", \"b,c\" : \"2,3\" }", 1},
        {{.delimiter = ';'}, "a,b,c;d\n1,2,3;4\n", "{ \"a,b,c\" : \"1,2,3\", \"d\" : \"4\" }", 1},
        {{.quote = SL_QUOTE_NONE}, "a,b\n\"1\",2\n", "{ \"a\" : \"\\\"1\\\"\", \"b\" : \"2\" }", 1},
        {{.quote = '\''}, "a,b\n'1',\"2\"\n", "{ \"a\" : \"1\", \"b\" : \"\\\"2\\\"\" }", 1},
        {{.quote = '"'}, "a|b\n\"1\"|2\n", "{ \"a\" : \"1\", \"b\" : \"2\" }", 1},
        {{.quote = '~', .delimiter = ':'},
         "a:b\n~1:2~:3\n",
         "{ \"a\" : \"1:2\", \"b\" : \"3\" }",
         1},
        {{.header = SL_HEADER_NO}, "a,b\nc,d\n", "{ \"column1\" : \"a\", \"column2\" : \"b\" }", 2},
        {{.header = SL_HEADER_YES}, "1,2\n3,4\n", "{ \"1\" : \"3\", \"2\" : \"4\" }", 1},
        {{.header = SL_HEADER_YES}, "word\nother\n", "{ \"word\" : \"other\" }", 1},
        {{.columns = "x,y"}, "a,b\n3,4\n", "{ \"x\" : \"a\", \"y\" : \"b\" }", 2},
        {{.columns = "x,y", .header = SL_HEADER_YES},
         "a,b\n3,4\n",
         "{ \"x\" : \"3\", \"y\" : \"4\" }",
         1},
        {{.skip_lines = 2}, "1,2\n3,4\na,b\n5,6\n", "{ \"a\" : \"5\", \"b\" : \"6\" }", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_with("delimited", &rows[i].options, rows[i].text);
        if (!p.format)
            fail_msg("%s: %s", rows[i].text, p.error.message);
        assert_int_equal(p.documents, rows[i].documents);
        assert_string_equal(json_at(&p, 0), rows[i].first);
        if (rows[i].options.skip_lines > 0)
            assert_int_equal(p.counts.lines, 4);
    }
    parsed p = parse_with("delimited", &(sl_format_options){.delimiter = '^'}, "a,b\n1,2\n");
    assert_null(p.format);
    static const struct {
        const char *columns, *text, *words; /* `words` of the error; NULL: it is read */
    } named[] = {{"x,y,z", "a,b\n3,4\n", "--columns names 3 columns, and the first line"},
                 {"x,y", "3\n4\n", "--columns names 2 columns, and the first line"},
                 {"x", "3,4\n5,6\n", "--columns names 1 columns, and the first line"},
                 {"x,y", "3,4\n5,6\n", NULL},
                 {"x", "3\n4\n", NULL}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        p = parse_with("delimited", &(sl_format_options){.columns = named[i].columns},
                       named[i].text);
        assert_int_equal(p.format != NULL, !named[i].words);
        if (named[i].words)
            assert_contains(p.error.message, named[i].words);
    }
}

TEST(other_text_is_refused) {
    static const char *const texts[] = {
        "Dear reader,\nthis is prose.\nIt goes on, and on, and on.\nNever mind, it ends.\n",
        "word\nother\n",
        "{\"a\": 1, \"b\": 2}\n{\"a\": 1, \"b\": 2}\n",
        "[1, 2]\n[3, 4]\n",
        "<html>\n<p>1, 2</p>\n",
        "1,\x01,2\n3,\x02,4\n",
        "int main(void) {\n    int a, b;\n    f(a, b, c);\n    return 0;\n}\n",
        "Call me Ishmael. Some years ago never mind how long precisely having little\n"
        "or no money in my purse, and nothing particular to interest me on shore, I\n"
        "thought I would sail about a little and see the watery part of the world. It\n"
        "is a way I have of driving off the spleen, and regulating the circulation.\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_delimited(texts[i]);
        if (p.format)
            fail_msg("%s is taken for: %s", texts[i], p.described);
        assert_int_equal(p.error.code, SL_EXIT_SOURCE);
        assert_contains(p.error.message, "not delimited text");
    }
    static const char tar[] = "1.csv\0\0\0000644\0\n1,2\n3,4\n5,6\n"; /* a damaged archive */
    parsed p =
        parse_in_blocks("delimited", &(sl_format_options){0}, (sl_text){tar, sizeof tar - 1}, 0, 0);
    assert_null(p.format);
}

TEST(ragged_lines_are_padded_or_rejected) {
    static const char *const texts[] = {"a,b,c\n1,2,3\n4,5\n6\n7,8,9,10\n",
                                        "a|b|c\n1|2|3\n4|5\n6\n7|8|9|10\n"};
    for (size_t i = 0; i < 2; i++) {
        sl_format_options options = {.header = SL_HEADER_YES};
        parsed p = parse_with("delimited", &options, texts[i]);
        assert_int_equal(p.documents, 1);
        assert_int_equal(p.reject_count, 3);
        assert_contains(p.rejects[0].reason, "too few fields: 2 of 3");
        options.pad = true;
        p = parse_with("delimited", &options, texts[i]);
        assert_int_equal(p.documents, 3);
        assert_string_equal(json_at(&p, 1), "{ \"a\" : \"4\", \"b\" : \"5\" }");
        assert_string_equal(json_at(&p, 2), "{ \"a\" : \"6\" }");
        assert_one_reject(&p, "", "too many fields: 4 instead of 3");
        assert_int_equal(p.counts.repaired, 0);
    }
}

/* Takes no longer than other headers: a hostile file must not stop a load. */
TEST(many_equal_names_are_numbered) {
    static char text[70000];
    for (size_t columns = 1000; columns <= 30000; columns += 29000) {
        char *at = text;
        for (size_t i = 0; i < columns; i++)
            at = stpcpy(at, i + 1 < columns ? "a," : "a\n");
        parsed p = parse_delimited(text);
        assert_int_equal(p.format != NULL, columns == 1000);
        if (p.format)
            assert_contains(p.described, "999 repeated names numbered");
        else
            assert_contains(p.error.message, "at most 1024");
    }
    char *at = text; /* for each repeated name, many numbers are tried */
    for (int i = 1; i < 512; i++)
        at += sprintf(at, "a_%d,", i);
    for (int i = 0; i < 512; i++)
        at = stpcpy(at, i < 511 ? "a," : "a\n");
    for (int i = 0; i < 100; i++)
        assert_contains(parse_delimited(text).described, "511 repeated names numbered, as a_512");
}

/* The header takes the first record of a table that has none, so it must be certain, or announced
 * with its text. */
TEST(first_records_are_not_taken_for_a_header) {
    static const found rows[] = {
        {"NA,NA\n1,2\n3,4\n", "no header, 2 columns", NULL, 3},
        {"NA,Berlin\n1,Paris\n2,Rome\n", "no header, 2 columns", NULL, 3},
        {"-,Berlin\nx,Paris\ny,Rome\n", "no header, 2 columns", NULL, 3},
        {"id,inf\n1,2.5\n2,3.5\n", "header, 2 columns", "{ \"id\" : \"1\", \"inf\" : \"2.5\" }", 2},
        {"x,inf\ny,2.5\nz,3.5\n", "no header, 2 columns", NULL, 3},
        {"NA,id\nx,1\ny,2\n", "header, 2 columns", "{ \"NA\" : \"x\", \"id\" : \"1\" }", 2},
        {",name\n0,Ann\n1,Bob\n", "header, 2 columns; the first line is assumed", NULL, 2},
        {"name,town\nx,Paris\ny,Rome\n", "the first line is assumed to be a header: `name,town`",
         NULL, 2},
        /* One value of the first line is repeated, and two are. */
        {"a,b,c\na,y,z\nx,y,z\n", "commas, header", NULL, 2},
        {"a,b,c\na,b,z\nx,y,z\n", "no header", NULL, 3},
        {"a,b,c\na,y,z\na,y,z\n", "no header", NULL, 3},
        /* Years are names: successive ones, not in the first column, from 1900 to 2100. */
        {"x,1900,1901\nDE,1.5,2\nFR,3,4\n", "commas, header", NULL, 2},
        {"x,2099,2100\nDE,1.5,2\nFR,3,4\n", "commas, header", NULL, 2},
        {"x,1899,1900\nDE,1.5,2\nFR,3,4\n", "no header", NULL, 3},
        {"x,2100,2101\nDE,1.5,2\nFR,3,4\n", "no header", NULL, 3},
        {"x,2019,2021\nDE,1.5,2\nFR,3,4\n", "no header", NULL, 3},
        {"2018,2019,x\n1.5,2,DE\n3,4,FR\n", "no header", NULL, 3},
        /* Lines with a single field above a table: titles only if there is a header below. */
        {"x,,\ny,,\nz,1,2\nw,3,4\nv,5,6\n", "no header, 3 columns", NULL, 5},
        {"a,b\nc,d\n1,x,3\n2,y,4\n5,z,3\n", "2 lines before the table skipped: `a,b\\x0ac,d`", NULL,
         3},
    };
    assert_found(rows, sizeof rows / sizeof rows[0]);
}

/* Below a title, seven tenths of the lines must have the number of fields of the table. */
TEST(a_table_below_a_title_needs_lines_that_fit) {
    for (unsigned other = 2; other <= 4; other++) {
        char text[300] = "Report\n";
        for (unsigned i = 0; i < 7 + other; i++)
            strcat(text, i < 7 ? "1,2,3\n" : "1,2\n");
        parsed p = parse_delimited(text);
        assert_int_equal(p.format != NULL, other <= 3);
        assert_int_equal(p.documents, other <= 3 ? 7 : 0);
        assert_int_equal(p.reject_count, other <= 3 ? other : 0);
    }
}

/* A short first record is not skipped like a title: exit code 0 means that nothing was lost. */
TEST(short_records_before_the_table_are_rejected) {
    parsed p = parse_delimited("Title\n\n1,2\n3,4,5\n6,7,8\n9,10,11\n");
    assert_int_equal(p.documents, 3);
    assert_one_reject(&p, "", "too few fields: 2 of 3");
    assert_int_equal(p.rejects[0].line, 2);
    assert_contains(p.described, "2 lines before the table skipped");
    p = parse_delimited("1,2\n3,4,5\n6,7,8\n9,10,11\n");
    assert_int_equal(p.documents, 3);
    assert_one_reject(&p, "", "too few fields: 2 of 3");
}

/* Tables that merely have 5 or 14 columns and begin with a number are not MOT data. */
TEST(other_tables_are_not_mot) {
    static const char *const texts[] = {"1,2,3,4,5\n6,7,8,9,10\n", "1,2,A,word,D\n2,3,B,other,D\n",
                                        "1,2,3,4,5,6,7,8,9,10,11,12,13,14\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_with(NULL, &(sl_format_options){0}, texts[i]);
        assert_non_null(p.format);
        assert_string_equal(p.format->name, "delimited");
    }
    parsed p = parse_with(NULL, &(sl_format_options){0}, "1343771031|8394|A|7|\n1|2|F|13|D\n");
    assert_string_equal(p.format->name, "mot");
}
