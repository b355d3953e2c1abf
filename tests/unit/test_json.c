/* SPDX-License-Identifier: Apache-2.0 */
/* JSON files: the text is readable, it is read back as the same document, and files that exist are
 * not damaged by a failed write. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "report/json.h"

typedef struct scratch {
    char folder[40];
    char path[64];
    char link[64];
} scratch;

static int make_scratch(void **state) {
    scratch *s = calloc(1, sizeof *s);
    assert_non_null(s);
    strcpy(s->folder, "/tmp/shardload-json-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/report.json", s->folder);
    snprintf(s->link, sizeof s->link, "%s/link.json", s->folder);
    *state = s;
    return 0;
}

/* Fails if the folder contains other files. */
static int remove_scratch(void **state) {
    scratch *s = *state;
    unlink(s->path);
    unlink(s->link);
    int left = rmdir(s->folder);
    free(s);
    return left;
}

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void get(const char *path, char *out, size_t room) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(out, 1, room - 1, file);
    out[length] = 0;
    fclose(file);
}

static void text_is_indented(void **state) {
    (void)state;
    bson_t *document = bson_new_from_json(
        (const uint8_t *)"{\"short\": {\"a\": 1, \"b\": [true, null]}, \"empty\": {}, \"none\": [],"
                         "\"text\": \"a, \\\"b\\\": {c}\\\\\", \"tenth\": 0.1, \"third\": "
                         "0.33333333333333331, \"whole\": 100.0, \"big\": 9007199254740993,"
                         "\"rows\": [{\"_id\": \"FORD\", \"tests\": 1234, \"rate\": 12.5},"
                         "{\"_id\": \"VAUXHALL\", \"tests\": 99, \"rate\": 33.25},"
                         "{\"_id\": \"BMW\"}]}",
        -1, NULL);
    assert_non_null(document);
    char *text = sl_json_text(document, NULL);
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
    free(text);
    bson_destroy(document);
}

/* Lines of all lengths around the limit: the text is read back as the same document, and no line
 * that can be broken is longer than 100 bytes. */
static void text_is_read_back_equal(void **state) {
    (void)state;
    for (int width = 1; width < 130; width++) {
        bson_t document = BSON_INITIALIZER;
        bson_t inner = BSON_INITIALIZER;
        bson_t list = BSON_INITIALIZER;
        char key[16];
        for (int i = 0; i * 7 < width; i++) {
            snprintf(key, sizeof key, "k%d", i);
            bson_append_double(&inner, key, -1, (double)width / (i + 3));
            bson_append_double(&list, key + 1, -1, (double)width / (i + 3));
        }
        bson_append_document(&document, "inner", -1, &inner);
        bson_append_array(&document, "list", -1, &list);
        char *text = sl_json_text(&document, NULL);
        bson_t *back = bson_new_from_json((const uint8_t *)text, -1, NULL);
        assert_non_null(back);
        bson_iter_t a;
        bson_iter_t b;
        assert_true(bson_iter_init(&a, &document) && bson_iter_find(&a, "inner"));
        assert_true(bson_iter_init(&b, back) && bson_iter_find(&b, "inner"));
        uint32_t a_length, b_length;
        const uint8_t *a_bytes, *b_bytes;
        bson_iter_document(&a, &a_length, &a_bytes);
        bson_iter_document(&b, &b_length, &b_bytes);
        assert_int_equal(a_length, b_length);
        assert_memory_equal(a_bytes, b_bytes, a_length); /* doubles are equal bit for bit */
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= 100);
        bson_destroy(back);
        free(text);
        bson_destroy(&inner);
        bson_destroy(&list);
        bson_destroy(&document);
    }
}

static void written_and_read_back(void **state) {
    scratch *s = *state;
    sl_error error = {0};
    bson_t *document = BCON_NEW("a", BCON_INT32(1), "t", BCON_DATE_TIME(1577836800000));
    put(s->path, "old");
    assert_int_equal(chmod(s->path, 0644), 0);
    assert_true(sl_json_write_file(s->path, document, &error));
    struct stat about;
    assert_int_equal(stat(s->path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    bson_t *back;
    assert_true(sl_json_read_file(s->path, &back, &error));
    assert_true(bson_equal(document, back));
    bson_destroy(back);
    bson_destroy(document);
}

static void links_and_folders_are_not_overwritten(void **state) {
    scratch *s = *state;
    sl_error error = {0};
    char text[32];
    bson_t document = BSON_INITIALIZER;
    put(s->path, "precious");
    assert_int_equal(symlink(s->path, s->link), 0);
    assert_false(sl_json_write_file(s->link, &document, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_non_null(strstr(error.message, s->link));
    get(s->path, text, sizeof text);
    assert_string_equal(text, "precious");
    assert_false(sl_json_write_file(s->folder, &document, &error));
    assert_false(sl_json_write_file("/nowhere/at/all.json", &document, &error));
    assert_non_null(strstr(error.message, "/nowhere/at/all.json"));
    assert_false(sl_json_may_write_file("/nowhere/at/all.json", &error));
    assert_false(sl_json_may_write_file(s->link, &error));
    assert_true(sl_json_may_write_file(s->path, &error));
}

static void invalid_files_are_errors(void **state) {
    scratch *s = *state;
    sl_error error = {0};
    bson_t *document;
    assert_false(sl_json_read_file(s->path, &document, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    static const char *const texts[] = {
        "", "  ", "{\"a\": 1", "{\"a\": 1} {}", "[{\"]\\\"\": 1}] 2", "text", "{\"a\": }"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put(s->path, texts[i]);
        assert_false(sl_json_read_file(s->path, &document, &error));
        assert_int_equal(error.code, SL_EXIT_SOURCE);
        assert_null(document);
    }
}

static void text_that_is_not_utf8(void **state) {
    scratch *s = *state;
    sl_error error = {0};
    bson_t document = BSON_INITIALIZER;
    put(s->path, "old");
    BSON_APPEND_UTF8(&document, "name", "caf\xe9");
    assert_false(sl_json_write_file(s->path, &document, &error));
    char text[32];
    get(s->path, text, sizeof text);
    assert_string_equal(text, "old");
    bson_destroy(&document);
}

RUN_TESTS {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_indented),
        cmocka_unit_test(text_is_read_back_equal),
        cmocka_unit_test_setup_teardown(written_and_read_back, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(links_and_folders_are_not_overwritten, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(invalid_files_are_errors, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(text_that_is_not_utf8, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
