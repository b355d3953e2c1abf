/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is not the file any more that it was when it was first looked at: noticed at each
 * open, after each block, and at the end, for every kind of source and every kind of change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "source_reading.h"

#define LENGTH ((size_t)3 << 20)

/* ---- kinds of sources ---- */

typedef struct kind {
    const char *name; /* of the file; "-": the file is standard input */
    bool gzip;
    bool tar;
} kind;

static const kind kinds[] = {
    {"plain.txt", false, false},
    {"packed.gz", true, false},
    {"archive.tar", false, true},
    {"-", false, false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static void write_tar(const char *path, const char *bytes, size_t length) {
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    archive_write_set_format_ustar(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    archive_entry_set_pathname(entry, "inner.txt");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)length);
    assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(archive, bytes, length), (long)length);
    archive_entry_free(entry);
    assert_int_equal(archive_write_free(archive), ARCHIVE_OK);
}

/* Lines of 64 bytes that do not become much smaller. */
static char *lines(unsigned seed) {
    char *text = malloc(LENGTH);
    for (size_t i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = i % 64 == 63 ? '\n' : (char)('!' + (seed >> 16) % 90);
    }
    return text;
}

static void write_kind(const kind *made, const char *path, unsigned seed) {
    char *text = lines(seed);
    if (made->tar)
        write_tar(path, text, LENGTH);
    else
        write_file(path, text, LENGTH, made->gzip);
    free(text);
}

/* ---- kinds of changes ---- */

static struct stat facts_of(const char *path) {
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return facts;
}

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Sets one byte in the middle, and again until the file system's clock, which is coarse, shows it.
 */
static void rewrite(const char *path) {
    struct stat before = facts_of(path);
    int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    do
        assert_int_equal(pwrite(file, "#", 1, before.st_size / 2), 1);
    while (!is_later(facts_of(path).st_mtim, before.st_mtim));
    close(file);
}

static void rewrite_with_its_old_time(const char *path) {
    struct stat before = facts_of(path);
    rewrite(path);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    struct stat after = facts_of(path);
    assert_int_equal(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    assert_int_equal(after.st_size, before.st_size);
}

static void append(const char *path) {
    FILE *file = fopen(path, "a");
    fputs("more\n", file);
    fclose(file);
}

static void cut(const char *path) {
    assert_int_equal(truncate(path, facts_of(path).st_size - 64), 0);
}

static void replace(const char *path) {
    const char *other = path_of("other");
    write_file(other, "other\n", 6, false);
    assert_int_equal(rename(other, path), 0);
}

/* By one that looks the same in all but its number: a copy that keeps the times. */
static void replace_by_a_copy(const char *path) {
    char command[700];
    const char *other = path_of("copy");
    snprintf(command, sizeof command, "cp -p '%s' '%s'", path, other);
    assert_int_equal(system(command), 0);
    assert_int_equal(rename(other, path), 0);
}

static void replace_by_a_pipe(const char *path) {
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
}

static void take_away(const char *path) {
    assert_int_equal(unlink(path), 0);
}

typedef struct change {
    void (*make)(const char *path);
    const char *said;
    bool of_path; /* of the path alone: whoever has the file open reads on as if nothing was */
} change;

static const change changes[] = {
    {rewrite, "was modified at ", false},
    {rewrite_with_its_old_time, "had its status changed at ", false},
    {append, "has grown from ", false},
    {cut, "has shrunk from ", false},
    {replace, "was replaced by another file", true},
    {replace_by_a_copy, "was replaced by another file", true},
    {replace_by_a_pipe, "not a regular file", true},
    {take_away, "was removed or renamed", true},
};
#define CHANGES (sizeof changes / sizeof changes[0])

/* ---- where it happens ---- */

static const char *path_for(const kind *made) {
    return path_of(made->name[0] == '-' ? "stdin.txt" : made->name);
}

/* Standard input becomes the file; an end and a beginning of its own each time. */
static void give_as_input(const char *path) {
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    close(file);
}

static sl_source_set *set_of(const kind *made, const char *path) {
    sl_source_set *set;
    sl_error error = {0};
    if (made->name[0] == '-')
        give_as_input(path);
    const char *given = made->name[0] == '-' ? "-" : path;
    if (!sl_source_set_create(&given, 1, NULL, &set, &error))
        fail_msg("%s: %s", path, error.message);
    return set;
}

static void assert_told(const sl_error *error, const kind *made, const change *what) {
    const char *shown = made->name[0] == '-' ? "-" : made->name;
    if (error->code != SL_EXIT_SOURCE || !strstr(error->message, shown) ||
        !strstr(error->message, what->said))
        fail_msg("%s, expected \"%s\", got %d: %s", made->name, what->said, error->code,
                 error->message);
}

/* Of standard input there is no path; losing its name is a change of its status. */
static bool applies(const kind *made, const change *what) {
    return made->name[0] != '-' || !what->of_path;
}

typedef void scene(const kind *made, const change *what, const char *path);

static void play(scene *function) {
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t k = 0; k < CHANGES; k++) {
            const char *path = path_for(&kinds[i]);
            if (!applies(&kinds[i], &changes[k]))
                continue;
            unlink(path);
            write_kind(&kinds[i], path, (unsigned)(i * CHANGES + k));
            function(&kinds[i], &changes[k], path);
        }
    }
}

static void before_it_is_opened(const kind *made, const change *what, const char *path) {
    sl_source_set *set = set_of(made, path);
    sl_reader *reader;
    sl_error error = {0};
    sl_source_block block;
    assert_true(sl_reader_create(set, &reader, &error));
    what->make(path);
    assert_int_equal(sl_reader_next(reader, &block, &error), SL_READ_FAILED);
    assert_told(&error, made, what);
    assert_true(sl_source_set_has_changed(set));
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

static void between_two_blocks(const kind *made, const change *what, const char *path) {
    sl_source_set *set = set_of(made, path);
    sl_reader *reader;
    sl_error error = {0};
    sl_source_block block;
    assert_true(sl_reader_create(set, &reader, &error));
    assert_int_equal(sl_reader_next(reader, &block, &error), SL_READ_BLOCK);
    what->make(path);
    assert_int_equal(sl_reader_next(reader, &block, &error), SL_READ_FAILED);
    assert_told(&error, made, what);
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

static void behind_the_last_block(const kind *made, const change *what, const char *path) {
    sl_source_set *set = set_of(made, path);
    sl_reader *reader;
    sl_error error = {0};
    sl_source_block block;
    assert_true(sl_reader_create(set, &reader, &error));
    while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK)
        ;
    assert_int_equal(error.code, 0);
    assert_true(sl_source_set_unchanged(set, &error));
    assert_false(sl_source_set_has_changed(set));
    what->make(path);
    assert_false(sl_source_set_unchanged(set, &error));
    assert_told(&error, made, what);
    sl_source_set_skip(set, 0); /* one that is left out may change */
    assert_true(sl_source_set_unchanged(set, &error));
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
}

/* A file of a folder is listed long before it is opened. */
static void in_a_folder(const kind *made, const change *what, const char *path) {
    if (made->name[0] == '-')
        return;
    char place[300], inner[600], head[100], fingerprint[SL_FINGERPRINT_ROOM];
    sl_source_set *set;
    sl_error error = {0};
    size_t length;
    bool whole;
    snprintf(place, sizeof place, "%s", path_of("place"));
    snprintf(inner, sizeof inner, "%s/%s", place, made->name);
    mkdir(place, 0700);
    assert_int_equal(rename(path, inner), 0);
    const char *given = place;
    assert_true(sl_source_set_create(&given, 1, NULL, &set, &error));
    what->make(inner);
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    assert_told(&error, made, what);
    error = (sl_error){0};
    assert_false(sl_source_fingerprint(set, 0, fingerprint, &error));
    assert_told(&error, made, what);
    sl_source_set_destroy(set);
    unlink(inner);
    rmdir(place);
}

static void a_change_before_the_first_open_is_noticed(void **state) {
    (void)state;
    play(before_it_is_opened);
}

static void a_change_between_two_blocks_is_noticed(void **state) {
    (void)state;
    play(between_two_blocks);
}

static void a_change_behind_the_last_block_is_noticed(void **state) {
    (void)state;
    play(behind_the_last_block);
}

static void a_change_after_a_folder_was_listed_is_noticed(void **state) {
    (void)state;
    play(in_a_folder);
}

/* Two readers have the same path open, or not yet. */
static void no_reader_gets_text_of_another_file(void **state) {
    (void)state;
    const char *path = path_of("shared.txt");
    sl_source_set *set;
    sl_reader *readers[2];
    sl_error error = {0};
    sl_source_block block;
    write_kind(&kinds[0], path, 1);
    assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
    assert_true(sl_reader_create(set, &readers[0], &error));
    assert_true(sl_reader_create(set, &readers[1], &error));
    assert_int_equal(sl_reader_next(readers[0], &block, &error), SL_READ_BLOCK);
    const char *other = path_of("shared-2.txt");
    write_kind(&kinds[0], other, 2); /* of the same size */
    assert_int_equal(rename(other, path), 0);
    for (int i = 0; i < 2; i++) {
        error = (sl_error){0};
        assert_int_equal(sl_reader_next(readers[i], &block, &error), SL_READ_FAILED);
        assert_non_null(strstr(error.message, "was replaced by another file"));
        sl_reader_destroy(readers[i]);
    }
    sl_source_set_destroy(set);
}

/* Blocks that are done are read where they are to be compared, and only there. */
static void done_blocks_are_read_to_be_compared(void **state) {
    (void)state;
    static const uint64_t done = 5; /* the blocks 0 and 2 */
    const char *path = path_of("done.txt");
    write_kind(&kinds[0], path, 3);
    for (int compare = 0; compare < 2; compare++) {
        sl_source_set *set;
        sl_reader *reader;
        sl_error error = {0};
        sl_source_block block;
        uint64_t seen = 0, marked = 0;
        assert_true(sl_source_set_create(&path, 1, NULL, &set, &error));
        sl_source_set_skip_blocks(set, 0, &done, 1, compare);
        assert_int_equal(sl_source_set_consumed_bytes(set), compare ? 0 : 2 * SL_BLOCK_BYTES);
        assert_true(sl_reader_create(set, &reader, &error));
        while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
            seen |= UINT64_C(1) << block.sequence;
            marked |= (uint64_t)block.done << block.sequence;
            assert_int_equal(block.text.length, SL_BLOCK_BYTES);
        }
        assert_int_equal(seen, compare ? 7 : 2);
        assert_int_equal(marked, compare ? done : 0);
        assert_int_equal(sl_source_set_consumed_bytes(set), LENGTH);
        sl_reader_destroy(reader);
        sl_source_set_destroy(set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_before_the_first_open_is_noticed),
        cmocka_unit_test(a_change_between_two_blocks_is_noticed),
        cmocka_unit_test(a_change_behind_the_last_block_is_noticed),
        cmocka_unit_test(a_change_after_a_folder_was_listed_is_noticed),
        cmocka_unit_test(no_reader_gets_text_of_another_file),
        cmocka_unit_test(done_blocks_are_read_to_be_compared),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
