/* SPDX-License-Identifier: Apache-2.0 */
/* The unit test of the format `lines` and of --line-limit, the examples of CONTRIBUTING.md. Built
 * by tests/cli/test_contributing.py only. */
#include "parse_text.h"

#include "cli/commands.h"

TEST(each_line_becomes_a_document) {
    const char *text = "a line\nxxxxxxxxxxxxxxxxxxxx\nthe end";
    for (size_t step = 0; step < 10; step++) {
        parsed p = parse_in_blocks("lines", &(sl_format_options){.line_limit = 10},
                                   sl_text_of(text), step, 0);
        assert_int_equal(p.documents, 2);
        bson_t document;
        bson_iter_t line;
        document_at(&p, 1, &document);
        assert_true(bson_iter_init_find(&line, &document, "line"));
        assert_string_equal(bson_iter_utf8(&line, NULL), "the end");
        assert_int_equal(p.reject_count, 1);
        assert_int_equal(p.rejects[0].offset, 7);
        assert_string_equal(p.rejects[0].reason, "the line has 20 bytes; the limit is 10");
    }
}

TEST(the_option_table_has_both) {
    bool format = false, limit = false;
    for (const sl_option_row *row = sl_load_rows; row->name; row++) {
        format |= strcmp(row->name, "format") == 0 && strstr(row->choices, "|lines") != NULL &&
                  strstr(row->help, "lines: any text; each line becomes a document.") != NULL;
        limit |= strcmp(row->name, "line-limit") == 0 && row->effect == SL_EFFECT_DOCUMENTS;
    }
    assert_true(format);
    assert_true(limit);
}
