/* SPDX-License-Identifier: Apache-2.0 */
/* The program of the unit tests, which contains all files test_*.c:
 *
 *     unit_tests FILE [CASE]    the tests of FILE, such as test_options, whose names contain CASE
 *     unit_tests                all files, each in a process of its own
 *
 * One program needs one link with the libraries instead of one for each file. */
#include "unit.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- objects of a test ---- */

typedef struct kept_object {
    struct kept_object *before;
    void (*release)(void *);
    void *object;
} kept_object;

static kept_object *kept; /* the last one */

void unit_release_later(void (*release)(void *), void *object) {
    kept_object *one = malloc(sizeof *one);
    if (!one)
        abort();
    *one = (kept_object){kept, release, object};
    kept = one;
}

int unit_release(__attribute__((unused)) void **state) {
    while (kept) {
        kept_object *one = kept;
        kept = one->before;
        one->release(one->object);
        free(one);
    }
    return 0;
}

void *unit_keep(void *memory) {
    assert_non_null(memory);
    unit_release_later(free, memory);
    return memory;
}

static void destroy_document(void *document) {
    bson_destroy(document);
}

bson_t *unit_keep_bson(bson_t *document) {
    assert_non_null(document);
    unit_release_later(destroy_document, document);
    return document;
}

bson_t *unit_json(const char *text) {
    bson_error_t why;
    bson_t *document = bson_new_from_json((const uint8_t *)text, -1, &why);
    if (!document)
        fail_msg("%s: %s", text, why.message);
    return unit_keep_bson(document);
}

const char *unit_json_of(const bson_t *document) {
    char *json = bson_as_relaxed_extended_json(document, NULL);
    assert_non_null(json);
    unit_release_later(bson_free, json);
    return json;
}

static char folder[40]; /* of the current test; "": it has none */

static void remove_folder(__attribute__((unused)) void *object) {
    char command[sizeof folder + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        abort();
    folder[0] = '\0';
}

const char *unit_folder(void) {
    if (folder[0] == '\0') {
        strcpy(folder, "/tmp/shardload-unit-XXXXXX");
        assert_non_null(mkdtemp(folder));
        unit_release_later(remove_folder, NULL);
    }
    return folder;
}

const char *unit_path(const char *name) {
    size_t room = sizeof folder + strlen(name) + 1;
    char *path = unit_keep(malloc(room));
    snprintf(path, room, "%s/%s", unit_folder(), name);
    return path;
}

void unit_write(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

char *unit_read(const char *path, size_t *length) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *bytes = unit_keep(malloc(*length + 1));
    assert_int_equal(fread(bytes, 1, *length, file), *length);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}

void unit_assert_files(unsigned count) {
    DIR *files = opendir(unit_folder());
    unsigned found = 0;
    assert_non_null(files);
    for (const struct dirent *file; (file = readdir(files));)
        found += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
    closedir(files);
    assert_int_equal(found, count);
}

void unit_run_threads(unsigned count, void *(*function)(void *), void *items, size_t size) {
    pthread_t threads[64];
    assert_in_range(count, 1, 64);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, function, size ? (char *)items + i * size : items),
            0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- the files ---- */

#define FILES_MAX 200
#define TESTS_MAX 100

typedef struct test_file {
    const char *path;
    struct CMUnitTest tests[TESTS_MAX]; /* sorted by line */
    int lines[TESTS_MAX];
    size_t count;
    CMFixtureFunction before_all, after_all;
    unit_runner *run; /* NULL: the tests one after the other */
} test_file;

static test_file files[FILES_MAX];
static size_t file_count;

/* The entry of the file, a new one if there is none. */
static test_file *file_of(const char *path) {
    for (size_t i = 0; i < file_count; i++) {
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    }
    if (file_count == FILES_MAX)
        abort();
    files[file_count].path = path;
    return &files[file_count++];
}

void unit_add(const char *path, int line, struct CMUnitTest test) {
    test_file *file = file_of(path);
    if (file->count == TESTS_MAX)
        abort();
    size_t at = file->count++;
    for (; at > 0 && file->lines[at - 1] > line; at--) {
        file->tests[at] = file->tests[at - 1];
        file->lines[at] = file->lines[at - 1];
    }
    file->tests[at] = test;
    file->lines[at] = line;
}

void unit_surround(const char *path, CMFixtureFunction before, CMFixtureFunction after) {
    test_file *file = file_of(path);
    file->before_all = before;
    file->after_all = after;
}

void unit_run_with(const char *path, unit_runner *run) {
    file_of(path)->run = run;
}

/* Is `name` the name of the file, without folder and suffix? */
static bool is_called(const test_file *file, const char *name) {
    const char *slash = strrchr(file->path, '/');
    const char *base = slash ? slash + 1 : file->path;
    size_t length = strlen(name);
    return strncmp(base, name, length) == 0 && strcmp(base + length, ".c") == 0;
}

/* Returns the exit status: 0 if no test failed. */
static int run_file(const test_file *file) {
    int failed = file->run ? file->run(file->tests, file->count)
                           : _cmocka_run_group_tests("tests", file->tests, file->count,
                                                     file->before_all, file->after_all);
    return failed ? 1 : 0;
}

/* Tests change the environment, signals and limits of their process. */
static int run_in_child(const test_file *file) {
    printf("# %s\n", file->path);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(run_file(file));
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

int main(int count, char **words) {
    int status = 0;
    if (count == 1) {
        for (size_t i = 0; i < file_count; i++)
            status |= run_in_child(&files[i]);
        return status;
    }
    if (count == 3) {
        static char pattern[200];
        snprintf(pattern, sizeof pattern, "*%s*", words[2]);
        cmocka_set_test_filter(pattern);
    }
    for (size_t i = 0; i < file_count && count < 4; i++) {
        if (is_called(&files[i], words[1]))
            return run_file(&files[i]);
    }
    fprintf(stderr,
            "usage: unit_tests [FILE [CASE]], with FILE one of the files tests/unit/test_*.c "
            "without \".c\"\n");
    return 2;
}
