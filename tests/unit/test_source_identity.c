/* SPDX-License-Identifier: Apache-2.0 */
/* Files that change while they are loaded: the change is detected when the file is opened, after
 * each block, and at the end of the load, for every kind of source and every kind of change. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "source/sql_dump.h"

#include "archive_making.h"

#define LENGTH ((size_t)3 << 20)

/* ---- kinds of sources ---- */

typedef struct kind {
    const char *name; /* the file's name; "-": standard input is the file */
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

/* LENGTH bytes in lines of 64 bytes that hardly compress. */
static char *lines(unsigned seed) {
    char *text = unit_keep(malloc(LENGTH));
    for (size_t i = 0; i < LENGTH; i++) {
        seed = seed * 1103515245 + 12345;
        text[i] = i % 64 == 63 ? '\n' : (char)('!' + (seed >> 16) % 90);
    }
    return text;
}

static void write_kind(const kind *made, const char *path, unsigned seed) {
    char *text = lines(seed);
    if (made->tar)
        make_archive(path, "ustar", NULL,
                     &(entry_spec){.name = "inner.txt", .bytes = text, .length = LENGTH}, 1);
    else
        write_file(path, text, LENGTH, made->gzip);
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

/* Writes one byte in the middle until the modification time changes: the file system's clock is
 * coarse. */
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
    const char *other = unit_path("other");
    write_file(other, "other\n", 6, false);
    assert_int_equal(rename(other, path), 0);
}

/* Replaces the file by a copy with the same times, which differs only in its inode. */
static void replace_by_a_copy(const char *path) {
    char command[700];
    const char *other = unit_path("copy");
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
    const char *message;
    bool of_path; /* only the path changes; the content of the open file stays the same */
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

/* ---- when the file changes ---- */

/* Opens the file as standard input. */
static void redirect_input(const char *path) {
    int file = open(path, O_RDONLY);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
    close(file);
}

/* Reads the file at `path`, or the standard input, which it becomes. */
static reading *begin_reading(const kind *made, const char *path) {
    if (made->name[0] == '-')
        redirect_input(path);
    return open_source(made->name[0] == '-' ? "-" : path);
}

static void assert_detected(const sl_error *error, const kind *made, const change *what) {
    if (error->code != SL_EXIT_SOURCE || !strstr(error->message, made->name) ||
        !strstr(error->message, what->message))
        fail_msg("%s, expected \"%s\", but the error is %d: %s", made->name, what->message,
                 error->code, error->message);
}

typedef void scenario(const kind *made, const change *what, const char *path);

/* Runs a scenario with a new file for each kind of source and each change. */
static void run(scenario *function) {
    for (size_t i = 0; i < KINDS; i++) {
        for (size_t k = 0; k < CHANGES; k++) {
            const char *path = unit_path(kinds[i].name[0] == '-' ? "stdin.txt" : kinds[i].name);
            if (kinds[i].name[0] == '-' && changes[k].of_path) /* no path could be replaced */
                continue;
            unlink(path);
            write_kind(&kinds[i], path, (unsigned)(i * CHANGES + k));
            function(&kinds[i], &changes[k], path);
        }
    }
}

static void before_it_is_opened(const kind *made, const change *what, const char *path) {
    reading *r = begin_reading(made, path);
    what->make(path);
    assert_false(read_block(r));
    assert_int_equal(r->result, SL_READ_FAILED);
    assert_detected(&r->error, made, what);
    assert_true(sl_source_set_has_changed(r->set));
}

static void between_two_blocks(const kind *made, const change *what, const char *path) {
    reading *r = begin_reading(made, path);
    assert_true(read_block(r));
    what->make(path);
    assert_false(read_block(r));
    assert_int_equal(r->result, SL_READ_FAILED);
    assert_detected(&r->error, made, what);
}

static void after_the_last_block(const kind *made, const change *what, const char *path) {
    reading *r = begin_reading(made, path);
    while (read_block(r))
        ;
    assert_int_equal(r->error.code, 0);
    assert_true(sl_source_set_unchanged(r->set, &r->error));
    assert_false(sl_source_set_has_changed(r->set));
    what->make(path);
    assert_false(sl_source_set_unchanged(r->set, &r->error));
    assert_detected(&r->error, made, what);
    sl_source_set_skip(r->set, 0); /* a skipped source may change */
    assert_true(sl_source_set_unchanged(r->set, &r->error));
}

/* The files of a folder are listed long before they are opened. */
static void in_a_folder(const kind *made, const change *what, const char *path) {
    if (made->name[0] == '-')
        return;
    char inner[300], head[100], fingerprint[SL_FINGERPRINT_ROOM];
    const char *parent = unit_path("parent");
    sl_error error = {0};
    size_t length;
    bool whole;
    snprintf(inner, sizeof inner, "%s/%s", parent, made->name);
    mkdir(parent, 0700);
    assert_int_equal(rename(path, inner), 0);
    sl_source_set *set = open_source(parent)->set;
    what->make(inner);
    assert_false(sl_source_head(set, 0, head, sizeof head, &length, &whole, NULL, &error));
    assert_detected(&error, made, what);
    error = (sl_error){0};
    assert_false(sl_source_fingerprint(set, 0, fingerprint, &error));
    assert_detected(&error, made, what);
    unlink(inner);
    rmdir(parent);
}

TEST(a_change_before_the_first_open_is_detected) {
    run(before_it_is_opened);
}

TEST(a_change_between_two_blocks_is_detected) {
    run(between_two_blocks);
}

TEST(a_change_after_the_last_block_is_detected) {
    run(after_the_last_block);
}

TEST(a_change_after_a_folder_was_listed_is_detected) {
    run(in_a_folder);
}

TEST(a_file_that_cannot_be_opened_has_not_changed) {
    const char *path = unit_path("full.txt");
    char fingerprint[SL_FINGERPRINT_ROOM];
    struct rlimit before;
    sl_error error = {0};
    write_kind(&kinds[0], path, 1);
    reading *r = open_source(path);
    getrlimit(RLIMIT_NOFILE, &before);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max});
    assert_false(sl_source_fingerprint(r->set, 0, fingerprint, &error));
    assert_false(read_block(r));
    setrlimit(RLIMIT_NOFILE, &before);
    assert_contains(error.message, strerror(EMFILE));
    assert_int_equal(r->error.code, SL_EXIT_RESOURCES);
    assert_contains(r->error.message, strerror(EMFILE));
}

/* The file is replaced while one reader has it open and another has not opened it yet. */
TEST(no_reader_reads_another_file) {
    const char *path = unit_path("shared.txt"), *other = unit_path("shared-2.txt");
    sl_reader *readers[2];
    sl_error error = {0};
    sl_source_block block;
    write_kind(&kinds[0], path, 1);
    sl_source_set *set = open_source(path)->set;
    assert_true(sl_reader_create(set, &readers[0], &error));
    assert_true(sl_reader_create(set, &readers[1], &error));
    assert_int_equal(sl_reader_next(readers[0], &block, &error), SL_READ_BLOCK);
    write_kind(&kinds[0], other, 2); /* of the same size */
    assert_int_equal(rename(other, path), 0);
    for (int i = 0; i < 2; i++) {
        error = (sl_error){0};
        assert_int_equal(sl_reader_next(readers[i], &block, &error), SL_READ_FAILED);
        assert_contains(error.message, "was replaced by another file");
        sl_reader_destroy(readers[i]);
    }
}

/* Completed blocks are read again only if they are to be compared. */
TEST(completed_blocks_are_read_only_to_be_compared) {
    static const uint64_t done = 5; /* the blocks 0 and 2 */
    const char *path = unit_path("done.txt");
    write_kind(&kinds[0], path, 3);
    for (int compare = 0; compare < 2; compare++) {
        reading *r = open_source(path);
        uint64_t seen = 0, marked = 0;
        sl_source_set_skip_blocks(r->set, 0, &done, 1, compare);
        assert_int_equal(sl_source_set_consumed_bytes(r->set), compare ? 0 : 2 * SL_BLOCK_BYTES);
        while (read_block(r)) {
            seen |= UINT64_C(1) << r->block.sequence;
            marked |= (uint64_t)r->block.done << r->block.sequence;
            assert_int_equal(r->block.text.length, SL_BLOCK_BYTES);
        }
        assert_int_equal(seen, compare ? 7 : 2);
        assert_int_equal(marked, compare ? done : 0);
        assert_int_equal(sl_source_set_consumed_bytes(r->set), LENGTH);
    }
}

/* Reads a dump to its end; the caller owns its tables. */
static sl_sql_table *tables_of(const char *path) {
    const _Atomic bool stopped = false;
    sl_error error = {0};
    sl_reader_times times = {0};
    sl_stream *stream;
    sl_input *rows;
    bool not_text;
    assert_true(sl_stream_open(path, path, NULL, false, &stopped, &not_text, &stream, &error));
    do
        assert_true(sl_sql_dump_next(sl_stream_dump(stream), &rows, &times, &error));
    while (rows);
    sl_sql_table *tables = sl_sql_dump_take_tables(sl_stream_dump(stream));
    sl_stream_close(stream);
    return tables;
}

/* For a known table of a dump, only the text from its rows to those of the next table is read. */
TEST(only_the_rows_of_a_known_table_are_read) {
    const char dump[] =
        "-- MySQL dump 8\nCREATE TABLE `a` (`x` int);\nINSERT INTO `a` VALUES (1);\n"
        "CREATE TABLE `b` (`x` text);\nDELIMITER ;;\nINSERT INTO `b` VALUES (3);;\n"
        "INSERT INTO `b` VALUES ('\\n');;\nDELIMITER ;\nCREATE TABLE `c` (`x` int);\n"
        "INSERT INTO `c` VALUES (4);\n-- Dump completed\n";
    for (int gzip = 0; gzip < 2; gzip++) {
        const char *path = unit_path(gzip ? "shop.sql.gz" : "shop.sql");
        char text[sizeof dump];
        strcpy(text, dump);
        write_file(path, text, sizeof dump - 1, gzip);
        sl_sql_table *tables = tables_of(path);
        memcpy(strstr(text, "CREATE TABLE `a`"), "UNREAD", 6);
        memcpy(strstr(text, "CREATE TABLE `b`"), "UNREAD", 6);
        memcpy(strstr(text, "(1)"), "('u", 3);
        memcpy(strstr(text, "(4)"), "('u", 3);
        write_file(path, text, sizeof dump - 1, gzip);
        for (int known = 0; known < 2; known++) {
            sl_sql_map map = {.identity = sl_source_identity_at(path), .table = tables->next};
            sl_error error = {0};
            sl_source_set *set;
            sl_reader *reader;
            sl_source_block block;
            assert_string_equal(map.table->name, "b");
            assert_true(sl_source_set_create(&path, 1, "b", &set, &error));
            sl_source_set_use_map(set, known ? &map : NULL);
            assert_true(sl_reader_create(set, &reader, &error));
            assert_int_equal(sl_reader_next(reader, &block, &error),
                             known ? SL_READ_BLOCK : SL_READ_FAILED);
            if (known) {
                assert_int_equal(block.text.length, 5);
                assert_memory_equal(block.text.bytes, "3\n\\n\n", 5);
                assert_int_equal(sl_reader_next(reader, &block, &error), SL_READ_END);
            }
            sl_reader_destroy(reader);
            sl_source_set_destroy(set);
        }
        sl_sql_tables_destroy(tables);
    }
}

/* A row of a known table that extends into the rows of the next one shows that the text has been
 * read in another way before. */
TEST(a_known_table_ends_where_it_ended_before) {
    const char *path = unit_path("crossed.sql");
    char text[] =
        "CREATE TABLE a (x text);\nINSERT INTO a VALUES ('1');\nCREATE TABLE b (x text);\n"
        "INSERT INTO b VALUES ('2');\nINSERT INTO b VALUES ('3');\n";
    sl_error error = {0};
    sl_source_set *set;
    sl_reader *reader;
    sl_source_block block;
    write_file(path, text, sizeof text - 1, false);
    sl_sql_table *tables = tables_of(path);
    memcpy(strstr(text, "'1'"), "'1 ", 3);
    memcpy(strstr(text, "('2"), " (2", 3);
    write_file(path, text, sizeof text - 1, false);
    const sl_sql_table *a = strcmp(tables->name, "a") == 0 ? tables : tables->next;
    sl_sql_map map = {.identity = sl_source_identity_at(path), .table = a};
    assert_true(sl_source_set_create(&path, 1, "a", &set, &error));
    sl_source_set_use_map(set, &map);
    assert_true(sl_reader_create(set, &reader, &error));
    assert_int_equal(sl_reader_next(reader, &block, &error), SL_READ_FAILED);
    assert_int_equal(error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(error.message, "crossed.sql, line 2: the statement that begins here "
                                          "extends into the rows of the table after a"));
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    sl_sql_tables_destroy(tables);
}
