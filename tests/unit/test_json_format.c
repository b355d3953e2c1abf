/* SPDX-License-Identifier: Apache-2.0 */
/* The format `json`: what is between documents, rejects with their positions, and blocks that end
 * anywhere. An error here would lose documents at block borders, or load text that is none. */
#define BATCH_BYTES 20000
#include "parse_text.h"
#include "simd_rows.h"

#include "format/json.h"

static parsed parse_json(const char *text) {
    return parse_with("json", &(sl_format_options){0}, text);
}

TEST(documents_in_every_layout) {
    static const struct {
        const char *text, *described;
    } rows[] = {
        {"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "JSON lines: a document on each line"},
        {"\n {\"a\":1}\r\n\r\n{\"a\":2}\t\n\t{\"a\":3}", "JSON lines: a document on each line"},
        {"\xEF\xBB\xBF{\"a\":1}\n\xEF\xBB\xBF{\"a\":2} {\"a\":3}\n",
         "JSON lines: a document on each line"},
        {"{\"a\":1}{\"a\":2}{\"a\":3}", "documents one after the other"},
        {"{\n  \"a\": 1\n}\n{\n\"a\":2}{\"a\"\n:3}\n", "documents one after the other"},
        {"\xEF\xBB\xBF{\n\"a\":1}\xEF\xBB\xBF{\"a\":2}\n\xEF\xBB\xBF {\"a\":3}",
         "documents one after the other"},
        {"[{\"a\":1},{\"a\":2},{\"a\":3}]", "an array of documents"},
        {"\xEF\xBB\xBF [\n {\"a\":1}\n,\n {\"a\":2} , {\"a\":3} ] \n", "an array of documents"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse_json(rows[i].text);
        assert_int_equal(p.reject_count, 0);
        assert_int_equal(p.documents, 3);
        assert_string_equal(p.described, rows[i].described);
        assert_string_equal(p.kind, "documents");
        assert_string_equal(json_at(&p, 2), "{ \"a\" : 3 }");
        for (size_t k = 0; k < 3; k++) { /* the _id is the position */
            int64_t at = id_at(&p, k) & (int64_t)(SL_BLOCK_BYTES - 1);
            assert_int_equal(rows[i].text[at], '{');
        }
    }
}

TEST(empty_texts) {
    parsed p = parse_json("[]");
    assert_non_null(p.format);
    assert_int_equal(p.counts.records, 0);
    p = parse_json("{}\n");
    assert_int_equal(p.documents, 1);
}

TEST(other_texts_are_not_recognised) {
    static const char *const texts[] = {
        "",           " \n",
        "a,b\n1,2\n", "{id},name\n1,2\n",
        "[id],b\n",   "[1,2]",
        "[\"a\"]",    "[[{\"a\":1}]]",
        "{1:1}\n",    "{\"a\"}\n",
        "{\"a\",b}",  "1\n2\n",
        "\"text\"",   "null",
        "<a/>",       "{\"a\n\":1}",
        "{'a'}",      "\xFF\xFE{\0\"\0",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_json(texts[i]);
        if (p.format)
            fail_msg("recognised: %s", texts[i]);
        assert_int_equal(p.error.code, SL_EXIT_SOURCE);
    }
    parsed p = parse_with("json", &(sl_format_options){.schema_text = "name: x"}, "{\"a\":1}\n");
    assert_null(p.format);
}

TEST(no_other_format_takes_json) {
    static const char *const texts[] = {
        "{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2}\n",
        "[{\"a\":1,\"b\":2},\n{\"a\":1,\"b\":2}]\n",
        "{\"test_id\":1,\"vehicle_id\":2}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        parsed p = parse_with(NULL, &(sl_format_options){0}, texts[i]);
        assert_string_equal(p.format->name, "json");
    }
}

TEST(an_invalid_line_is_a_reject) {
    static const struct {
        const char *line, *reason, *record;
        uint32_t documents; /* of this line */
    } rows[] = {
        {"{\"b\":}", "at byte 6 of the document: a value is expected", NULL, 0},
        {"{\"b\":1", "at byte 7 of the document: the line ends before", NULL, 0},
        {"{\"b\":{\"c\":1}", "at byte 13 of the document: the line ends before", NULL, 0},
        {"{\"b\":{\"c\":1},\"d", "at byte 16 of the document: the line ends before", NULL, 0},
        {"{\"b\":1}}", "not a document", "}", 1},
        {"{\"b\":1} x", "at byte 1 of the document: not a document", "x", 1},
        {"{\"b\":1},{\"b\":2}", "not a document", ",{\"b\":2}", 1},
        {"x {\"b\":1}", "not a document", NULL, 0},
        {"[{\"b\":1}]", "not a document", NULL, 0},
        {"5", "not a document", NULL, 0},
        {"{\"b\":1,\"b\":2}", "at byte 8 of the document: the key occurs twice: \"b\"", NULL, 0},
        {"{\"b\":\"\xFF\"}", "at byte 7 of the document: bytes that are not UTF-8", NULL, 0},
        {"{\"b\":{\"$oid\":\"12\"}}", "24 hexadecimal digits: \"12\"", NULL, 0},
        {"{\"b\":01}", "begins with 0", NULL, 0},
        {"{\"b\":1.}", "after the decimal point", NULL, 0},
        {"{\"b\":1,}", "a key in quotes is expected", NULL, 0},
        {"{\"b\":\"x\"y\"}", "a comma or }", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"a\":1}\n\n%s\n{\"z\":1}\n", rows[i].line);
        parsed p = parse_json(text);
        assert_int_equal(p.documents, 2 + rows[i].documents);
        assert_one_reject(&p, "", rows[i].reason);
        const char *record = rows[i].record ? rows[i].record : rows[i].line;
        assert_string_equal(p.rejects[0].record, record);
        assert_int_equal(p.rejects[0].line, 2);
        assert_memory_equal(text + p.rejects[0].offset, record, strlen(record));
        assert_string_equal(json_at(&p, p.documents - 1), "{ \"z\" : 1 }");
        assert_int_equal(p.counts.blank_lines, 1);
    }
}

TEST(an_invalid_document_with_a_certain_end_is_a_reject) {
    static const char *const documents[] = {
        "{\"b\":\n {\"$oid\":\"12\"}}",   "{\"b\":1,\n\"b\":\"}\"}",
        "{\"b\":[{}, []],\n\"c\":1e999}", "{\"b\":\n\"\xFF{\"}",
        "{\"b\":\n\"\\ud800\\\"\"}",      "{\"b\":\n99999999999999999999}",
    };
    static const char *const around[][3] = {
        {"{\n\"a\":1}\n", "\n", "{\"z\":1}"},
        {"{\n\"a\":1}", "", "{\"z\":1}\n"},
        {"[{\n\"a\":1},", ",", "{\"z\":1}]\n"},
    };
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        for (size_t k = 0; k < 3; k++) {
            char text[200];
            snprintf(text, sizeof text, "%s%s%s%s", around[k][0], documents[i], around[k][1],
                     around[k][2]);
            parsed p = parse_json(text);
            assert_int_equal(p.documents, 2);
            assert_int_equal(p.reject_count, 1);
            assert_false(p.misread);
            assert_string_equal(p.rejects[0].record, documents[i]);
            assert_memory_equal(text + p.rejects[0].offset, documents[i], strlen(documents[i]));
            assert_int_equal(p.rejects[0].line, k == 0 ? 2 : 1);
            assert_string_equal(json_at(&p, 1), "{ \"z\" : 1 }");
        }
    }
    parsed p = parse_json("{\n\"a\":1,\n  \"a\":2}");
    assert_one_reject(&p, "", "at line 3, byte 3 of the document: the key occurs twice: \"a\"");
}

TEST(an_uncertain_end_ends_the_load) {
    static const char *const documents[] = {
        "{\"b\":\"x\"y\"}", "{\"b\":}",  "{\"b\" 1}",  "{\"b\":1,}",
        "{\"b\":[1}]}",     "{b:'x'y'}", "{b:/x}/y/}", "{b:Date('1)}",
        "{b:Date(1}",       "{b:/x\n/}", "{b:'\n'}",   "{\"b\":\"x\ny\"}",
        "{\"b\":[1,]}",     "{b-:1}",    "{\"b\":1",   "{\"b\":\"\\q\"}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\n\"a\":1}\n%s\n{\"z\":\"{}\"}", documents[i]);
        parsed p = parse_json(text);
        assert_true(p.misread && p.stopped);
        assert_int_equal(p.documents, 1);
        assert_int_equal(p.counts.records, 1);
        assert_int_equal(p.rejects[0].offset, 9);
        assert_contains(p.rejects[0].reason, "is not certain, so the load ends here");
    }
}

/* ---- block borders ---- */

/* Documents of many sizes, one per line. */
static char *make_lines(size_t size, size_t *length) {
    char *text = unit_keep(malloc(size + 5000));
    unsigned seed = 3;
    size_t used = 0;
    while (used < size) {
        seed = seed * 1103515245 + 12345;
        unsigned pad = seed >> 16 & 0x1FF;
        used += (size_t)sprintf(text + used, "{\"at\":%zu,\"pad\":\"", used);
        static const char *const parts[] = {"}", "{", "\\\\", "\\\"", "]", "[", ",", ": ", "x"};
        for (unsigned i = 0; i < pad; i++)
            used += (size_t)sprintf(text + used, "%s", parts[(seed >> i % 16) % 9]);
        used += (size_t)sprintf(text + used, "\",\"b\":[{\"c\":%u}]}\n", seed & 7);
    }
    *length = used;
    return text;
}

TEST(lines_in_blocks_of_any_size) {
    size_t length;
    char *text = make_lines(30000, &length);
    parsed whole = parse_in_blocks("json", &(sl_format_options){0}, (sl_text){text, length}, 0, 0);
    assert_int_equal(whole.reject_count, 0);
    assert_true(whole.documents > 50);
    for (size_t step = 1; step < 4000; step += 211) {
        parsed p =
            parse_in_blocks("json", &(sl_format_options){0}, (sl_text){text, length}, step, 0);
        assert_int_equal(p.documents, whole.documents);
        assert_int_equal(p.length, whole.length);
        assert_memory_equal(p.bytes, whole.bytes, p.length);
    }
    parsed p = parse_in_blocks("json", &(sl_format_options){0}, (sl_text){text, length}, 0, 9);
    assert_true(p.stopped && p.documents >= 9 && p.documents < whole.documents);
}

/* Gives the splitter the text in pieces of `piece` bytes, up to the first end of a document from
 * `least` on. Returns that position, or that of the fault. */
static size_t split_at(const char *text, size_t length, size_t piece, size_t least,
                       const char **fault) {
    sl_split split = {0};
    size_t found = 0;
    const sl_text whole = {text, length};
    assert_int_equal(sl_json_splitter.divides(whole, true), sl_json_begins(whole));
    for (size_t end = 0; found == 0 && end < length && !split.fault;) {
        end = end + piece < length ? end + piece : length;
        char *copy = malloc(end + SL_SLACK);
        assert_non_null(copy);
        memcpy(copy, text, end);
        memset(copy + end, '}', SL_SLACK);
        found = sl_json_splitter.find_end(&split, (sl_text){copy, end}, least, end == length);
        free(copy);
    }
    *fault = split.fault;
    return found > 0 ? found : split.at;
}

/* The same, byte by byte. */
static size_t split_slowly(const char *text, size_t length, size_t least) {
    int depth = 0;
    bool string = false;
    size_t lists = text[0] == '[';
    for (size_t i = 0; i < length; i++) {
        if (i >= least && depth == 0)
            return i;
        if (string) {
            if (text[i] == '\\')
                i++;
            else
                string = text[i] != '"';
        } else if (text[i] == '"') {
            string = true;
        } else if (strchr("{[", text[i]) && i >= lists) {
            depth++;
        } else if (strchr("}]", text[i]) && depth > 0) {
            depth--;
        }
    }
    return length;
}

TEST(the_splitter_finds_the_ends_of_documents) {
    size_t length;
    char *lines = make_lines(3000, &length), *text = unit_keep(malloc(length + 10));
    for (int array = 0; array < 2; array++) {
        memcpy(text, lines, length);
        size_t used = length;
        for (size_t i = 0; i + 1 < length; i++) { /* concatenated without line ends, or an array */
            if (text[i] == '\n')
                text[i] = array ? ',' : ' ';
        }
        if (array) {
            memmove(text + 1, text, length);
            text[0] = '[';
            text[used++] = '\n';
            text[used++] = ']';
        } else {
            text[1] = '"'; /* unchanged: begins a document */
            memmove(text + 1, text, used++);
            text[0] = '\n';
            for (size_t i = 0; i < used; i++) {
                if (text[i] == ':') { /* the first document spans lines */
                    memmove(text + i + 1, text + i, used++ - i);
                    text[i] = '\n';
                    break;
                }
            }
        }
        for (size_t least = 0; least <= used; least += least < 300 ? 1 : 37) {
            size_t expected = split_slowly(text, used, least);
            for (size_t piece = 1; piece < 400; piece += 1 + piece / 2) {
                const char *fault;
                assert_int_equal(split_at(text, used, piece, least, &fault), expected);
                if (fault)
                    fail_msg("%s", fault);
            }
        }
    }
}

/* Documents in the syntax of the mongo shell, which contain brackets and quotes of other kinds, and
 * are divided the same way in pieces of any size. */
static const char shell_text[] =
    "[{ _id : 1, 'a' : 'it\\'s }\"' },\n {_id:2, a:/}]\"'\\//i, b:[/x/, '{']},{_id:3,\n"
    "a:ISODate(\"2015-12-31T23:59:59Z\"),b:{c:'\\\\'},d:new Date(5)},\n"
    "{_id:4,a:ObjectId( 'zz' , ('}'),NumberLong(-5)),b:/x/i,c:UUID ( \"}\" )},{_id:5}]";

TEST(documents_of_the_shell_in_pieces_of_any_size) {
    static const size_t ends[] = {30, 67, 135, 207, 215};
    const size_t length = sizeof shell_text - 1;
    parsed p = parse_json(shell_text);
    assert_int_equal(p.documents, 4);
    assert_int_equal(p.reject_count, 1); /* the fourth, whose end is certain */
    assert_false(p.misread);
    assert_contains(p.rejects[0].reason, "an ObjectId is a text of 24 hexadecimal digits");
    for (size_t piece = 1; piece <= length; piece++) {
        const char *fault;
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            size_t least = i == 0 ? 2 : ends[i - 1] + 4;
            assert_int_equal(split_at(shell_text, length, piece, least, &fault), ends[i]);
            assert_null(fault);
        }
    }
}

TEST(the_splitter_checks_the_text_between_documents) {
    static const struct {
        const char *text;
        size_t where;
        const char *fault;
    } rows[] = {
        {"[{\"a\":1},]", 9, "after a comma of the array, a document"},
        {"[{\"a\":1},,{\"a\":1}]", 9, "after a comma of the array, a document"},
        {"[,{\"a\":1}]", 1, "this value is not a document"},
        {"[{\"a\":1} {\"a\":1}]", 9, "a comma or ]"},
        {"[{\"a\":1}", 8, "its ] is missing"},
        {"[{\"a\":1},", 9, "its ] is missing"},
        {"[", 1, "its ] is missing"},
        {"[{\"a\":1}] x", 10, "text after the ]"},
        {"[{\"a\":1}][{\"a\":1}]", 9, "text after the ]"},
        {"[{\"a\":1}, 5]", 10, "a document is expected"},
        {"[5]", 1, "this value is not a document"},
        {"{\"a\":1}{\"b\":\"", 13, "ends within a document"},
        {"{\"a\":1}{\"b\":[{}]", 16, "ends within a document"},
        {"{\"a\":1},{\"b\":1}", 7, "a comma between documents, which is read only in an array"},
        {"{\"a\":1}}", 7, "text between documents"},
        {"{\"a\":1}x\n", 7, "text between documents"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].text);
        for (size_t piece = 1; piece <= length; piece++) {
            const char *fault;
            size_t at = split_at(rows[i].text, length, piece, SIZE_MAX, &fault);
            assert_non_null(fault);
            assert_contains(fault, rows[i].fault);
            assert_int_equal(at, rows[i].where);
        }
    }
}

TEST(lines_are_recognised) {
    static const struct {
        const char *text;
        bool whole, lines;
    } rows[] = {
        {"{\"a\":1}\n", true, true},
        {"{\"a\":1} \r\n{", false, true},
        {"{\"a\":\"\\\"}\\\\\"}\n", true, true},
        {"{\"a\":1}", false, true},
        {"{\"a\":1", false, true},
        {"{\"a\":1}", true, false},
        {"{\"a\":1}{\"a\":1}\n", true, false},
        {"{\"a\":1} {\"a\":1}\n", true, false},
        {"{\n\"a\":1}\n", true, false},
        {"{\"a\":[\n{\"b\":1}]}\n", true, false},
        {"{\"a\":1,\n{\"b\":1}\n", true, false},
        {"{\"a\":1\n{\"b\":1}\n", true, true}, /* a damaged line */
        {"{\"a\":\"x\n{\"b\":1}\n", true, true},
        {"[{\"a\":1}]\n", true, false},
        {"\n\n{\"a\":1}\n", true, true},
        {"{a:'}{\"'}\n{\n", true, true},
        {"{a:/'/,b:1}\n{\n", true, true},
        {"{a:'\\'}',\n b:1}\n", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (sl_json_is_lines(sl_text_of(rows[i].text), rows[i].whole) != rows[i].lines)
            fail_msg("%s", rows[i].text);
    }
}

TEST(a_document_without_its_key_is_rejected_and_not_stored) {
    parsed p = parse_with("json", &(sl_format_options){.id_fields = "a"},
                          "{\"a\":1,\"b\":2}\n{\"b\":3}\n{\"a\":4}\n");
    assert_one_reject(&p, "a", "the field is missing, and --id-field needs it");
    assert_string_equal(p.rejects[0].record, "{\"b\":3}");
    assert_int_equal(p.documents, 2);
    bson_iter_t id = element_at(&p, 1, "_id");
    assert_int_equal(bson_iter_type(&id), BSON_TYPE_INT32);
}

TEST(the_offsets_of_documents_are_reported) {
    static const char text[] = "{\"_id\":5}\n{}\n {\"a\":1,\"_id\":\"x\"}\n\n";
    char copy[sizeof text + SL_SLACK] = {0};
    memcpy(copy, text, sizeof text - 1);
    uint8_t batch[4096 + SL_SLACK];
    uint64_t offsets[8];
    sl_plan *plan;
    sl_dialect *dialect;
    sl_error error;
    sl_parse_counts counts = {0};
    const sl_format *format = sl_format_named("json");
    sl_text all = {copy, sizeof text - 1};
    assert_true(format->own_ids);
    assert_true(sl_format_plan_create(format, &(sl_format_options){0}, &plan, &error));
    assert_true(format->sniff(plan, "", all, true, &dialect, &error));
    sl_sink sink = {.cursor = batch,
                    .limit = batch + 4096,
                    .documents = 1,
                    .documents_limit = 8,
                    .offsets = offsets};
    sl_block block = {.text = all, .offset = 1000};
    assert_true(format->parse(plan, dialect, &block, &sink, &counts));
    assert_int_equal(sink.documents, 4);
    assert_int_equal(offsets[1], 1000);
    assert_int_equal(offsets[2], 1010);
    assert_int_equal(offsets[3], 1014);
    sl_format_dialect_destroy(format, dialect);
    sl_format_plan_destroy(format, plan);
}

RUN_TESTS {
    return run_with_each_simd(added, added_count);
}
