/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files: the text is readable, it is read back as the same document, and files that exist are
 * not damaged by a failed write. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "report/json.h"
#include "util/private_file.h"

static sl_error error;

static void assert_content(const char *path, const char *expected) {
    size_t length;
    assert_string_equal(unit_read(path, &length), expected);
}

TEST(text_is_indented) {
    const bson_t *document =
        unit_json("{\"short\": {\"a\": 1, \"b\": [true, null]}, \"empty\": {}, \"none\": [],"
                  "\"text\": \"a, \\\"b\\\": {c}\\\\\", \"tenth\": 0.1, \"third\": "
                  "0.33333333333333331, \"whole\": 100.0, \"big\": 9007199254740993,"
                  "\"rows\": [{\"_id\": \"FORD\", \"tests\": 1234, \"rate\": 12.5},"
                  "{\"_id\": \"VAUXHALL\", \"tests\": 99, \"rate\": 33.25},"
                  "{\"_id\": \"BMW\"}]}");
    char *text = unit_keep(sl_json_text(document, NULL));
    assert_string_equal(text, "{\n"
                              "  \"short\": {\"a\": 1, \"b\": [true, null]},\n"
                              "  \"empty\": {},\n"
                              "  \"none\": [],\n"
                              "  \"text\": \"a, \\\"b\\\": {c}\\\\\",\n"
                              "  \"tenth\": 0.1,\n"
                              "  \"third\": 0.3333333333333333,\n"
                              "  \"whole\": 100.0,\n"
                              "  \"big\": 9007199254740993,\n"
                              "  \"rows\": [\n"
                              "    {\"_id\": \"FORD\", \"tests\": 1234, \"rate\": 12.5},\n"
                              "    {\"_id\": \"VAUXHALL\", \"tests\": 99, \"rate\": 33.25},\n"
                              "    {\"_id\": \"BMW\"}\n"
                              "  ]\n"
                              "}\n");
}

/* Lines of all lengths around the limit: the text is read back as the same document, and no line
 * that can be broken is longer than 100 bytes. */
TEST(text_is_read_back_equal) {
    for (int width = 1; width < 130; width++) {
        bson_t *document = unit_keep_bson(bson_new()), *inner = unit_keep_bson(bson_new()),
               *list = unit_keep_bson(bson_new());
        char key[16];
        for (int i = 0; i * 7 < width; i++) {
            snprintf(key, sizeof key, "k%d", i);
            bson_append_double(inner, key, -1, (double)width / (i + 3));
            bson_append_double(list, key + 1, -1, (double)width / (i + 3));
        }
        bson_append_document(document, "inner", -1, inner);
        bson_append_array(document, "list", -1, list);
        const char *text = unit_keep(sl_json_text(document, NULL));
        bson_iter_t a, b;
        assert_true(bson_iter_init_find(&a, document, "inner"));
        assert_true(bson_iter_init_find(&b, unit_json(text), "inner"));
        uint32_t a_length, b_length;
        const uint8_t *a_bytes, *b_bytes;
        bson_iter_document(&a, &a_length, &a_bytes);
        bson_iter_document(&b, &b_length, &b_bytes);
        assert_int_equal(a_length, b_length);
        assert_memory_equal(a_bytes, b_bytes, a_length); /* doubles are equal bit for bit */
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 100);
    }
}

TEST(written_and_read_back) {
    const char *path = unit_path("report.json");
    bson_t *document =
        unit_keep_bson(BCON_NEW("a", BCON_INT32(1), "t", BCON_DATE_TIME(1577836800000)));
    unit_write(path, "old", 3);
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(sl_json_write_file(path, document, &error));
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    bson_t *back;
    assert_true(sl_json_read_file(path, &back, &error));
    assert_true(bson_equal(document, unit_keep_bson(back)));
    unit_assert_files(1);
}

TEST(links_and_folders_are_not_overwritten) {
    const char *path = unit_path("report.json"), *link = unit_path("link.json");
    bson_t document = BSON_INITIALIZER;
    unit_write(path, "precious", 8);
    assert_int_equal(symlink(path, link), 0);
    assert_false(sl_json_write_file(link, &document, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_contains(error.message, link);
    assert_content(path, "precious");
    assert_false(sl_json_write_file(unit_folder(), &document, &error));
    assert_false(sl_json_write_file("/nowhere/at/all.json", &document, &error));
    assert_contains(error.message, "/nowhere/at/all.json");
    assert_false(sl_private_file_may_replace("/nowhere/at/all.json", &error));
    assert_false(sl_private_file_may_replace(link, &error));
    assert_true(sl_private_file_may_replace(path, &error));
    unit_assert_files(2);
}

TEST(text_of_more_than_128_MiB_is_refused) {
    bson_error_t wrong;
    const size_t length = ((size_t)128 << 20) + 1;
    char *text = unit_keep(malloc(length)); /* as BSON, "[1,1,..." is several times as long */
    memset(text, ' ', length);
    memcpy(text, "{}", 2);
    assert_null(sl_json_parse(text, length, &wrong));
    assert_string_equal(wrong.message, "larger than 128 MiB");
}

TEST(invalid_files_are_errors) {
    const char *path = unit_path("report.json");
    bson_t *document;
    assert_false(sl_json_read_file(path, &document, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    static const char *const texts[] = {
        "", "  ", "{\"a\": 1", "{\"a\": 1} {}", "[{\"]\\\"\": 1}] 2", "text", "{\"a\": }"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        unit_write(path, texts[i], strlen(texts[i]));
        assert_false(sl_json_read_file(path, &document, &error));
        assert_int_equal(error.code, SL_EXIT_SOURCE);
        assert_null(document);
    }
    unit_assert_files(1);
}

TEST(text_that_is_not_utf8) {
    const char *path = unit_path("report.json");
    bson_t *document = unit_keep_bson(BCON_NEW("name", BCON_UTF8("caf\xe9")));
    assert_true(sl_json_write_file(path, document, &error));
    assert_content(path, "{\"name\": \"caf\\u001a\"}\n");
}
