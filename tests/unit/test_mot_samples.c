/* SPDX-License-Identifier: Apache-2.0 */
/* The published sample files must load completely and unchanged. They are read from
 * $SHARDLOAD_SAMPLES/mot, by default beside the source tree; if there are none, from files of the
 * same names and layouts that tools/test makes, in $SHARDLOAD_STAND_INS/mot. */
#define BATCH_BYTES 65536
#include "parse_text.h"
#include "simd_rows.h"

#include <dirent.h>
#include <unistd.h>

static const char *samples_folder(char room[1024]) {
    const char *given = getenv("SHARDLOAD_SAMPLES"), *made = getenv("SHARDLOAD_STAND_INS");
    if (given)
        snprintf(room, 1024, "%s/mot", given);
    else
        snprintf(room, 1024, "%.*s../../../shared/data/mot",
                 (int)(strrchr(__FILE__, '/') + 1 - __FILE__), __FILE__);
    if (made && access(room, F_OK) != 0)
        snprintf(room, 1024, "%s/mot", made);
    return room;
}

static char *read_whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *length, file), *length);
    fclose(file);
    return text;
}

static bool begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Each sample is recognised as the right format, and every row is loaded. */
TEST(every_sample_loads_completely) {
    static const char *const mot[] = {"test_", "constructed", "dirty", "item_", "mdr_"};
    static const char *const delimited[] = {"freq_", "make_model", "rfr_catalogue"};
    char folder[1024], path[2048];
    DIR *directory = opendir(samples_folder(folder));
    if (!directory) {
        print_message("no samples in %s; set SHARDLOAD_SAMPLES\n", folder);
        skip();
    }
    unsigned seen = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *name = entry->d_name;
        const char *expected = NULL;
        for (size_t i = 0; i < sizeof mot / sizeof mot[0]; i++)
            expected = begins(name, mot[i]) ? "mot" : expected;
        for (size_t i = 0; i < sizeof delimited / sizeof delimited[0]; i++)
            expected = begins(name, delimited[i]) ? "delimited" : expected;
        if (begins(name, "tests_2021_joined_a.jsonl"))
            expected = "json";
        if (*name == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        size_t length;
        char *text = read_whole(path, &length);
        size_t lines = 0;
        for (size_t i = 0; i < length; i++)
            lines += text[i] == '\n' || i + 1 == length;
        parsed p =
            parse_in_blocks(NULL, &(sl_format_options){0}, (sl_text){text, length}, 10000, 0);
        if (!expected) {
            assert_null(p.format);
        } else {
            assert_non_null(p.format);
            assert_string_equal(p.format->name, expected);
            assert_int_equal(p.reject_count, 0);
            assert_int_equal(p.counts.lines, lines);
            assert_int_equal(p.documents + p.counts.headers + (p.header[0] != '\0'), lines);
            seen++;
        }
        free(text);
    }
    closedir(directory);
    assert_true(seen > 0);
}

RUN_TESTS {
    return run_with_each_simd(added, added_count);
}
