/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the journal. If it broke, a load that is resumed would leave out blocks that never
 * arrived, and nobody would be told. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/load/journal.h"
#include "deep_document.h"

static char folder[64];

/* What a journal brought: its documents' first keys, and the sequences of its entries. */
typedef struct heard {
    char keys[200];
    uint64_t sequences[100];
    size_t entries;
} heard;

static bool hear_document(void *context, const bson_t *document) {
    heard *all = context;
    bson_iter_t iter;
    bson_iter_init(&iter, document);
    if (!bson_iter_next(&iter))
        return false;
    strcat(strcat(all->keys, bson_iter_key(&iter)), " ");
    return true;
}

static bool hear_entry(void *context, const sl_journal_entry *entry) {
    heard *all = context;
    assert_int_equal(entry->counts.records, entry->sequence * 10);
    all->sequences[all->entries++] = entry->sequence;
    return true;
}

static sl_journal *open_journal(heard *all, bool *empty) {
    sl_journal *journal;
    sl_error error;
    memset(all, 0, sizeof *all);
    sl_journal_handlers handlers = {hear_document, hear_entry, all};
    if (!sl_journal_open(folder, &handlers, &journal, empty, &error))
        fail_msg("%s", error.message);
    return journal;
}

static void write_document(sl_journal *journal, const char *key) {
    sl_error error;
    bson_t document = BSON_INITIALIZER;
    bson_append_int32(&document, key, -1, 1);
    assert_true(sl_journal_write(journal, &document, &error));
    bson_destroy(&document);
}

static void add(sl_journal *journal, uint64_t sequence) {
    sl_journal_entry entry = {.sequence = sequence, .counts.records = sequence * 10};
    assert_true(sl_journal_add(journal, &entry));
}

static void commit(sl_journal *journal) {
    sl_error error;
    sl_journal_collect(journal);
    assert_true(sl_journal_commit(journal, &error));
}

/* A journal of two documents and `entries` entries, in a folder of its own. */
static void write_journal(unsigned entries) {
    heard all;
    bool empty;
    strcpy(folder, "/tmp/shardload-journal-XXXXXX");
    assert_non_null(mkdtemp(folder));
    sl_journal *journal = open_journal(&all, &empty);
    assert_true(empty);
    write_document(journal, "begun");
    write_document(journal, "target");
    for (unsigned i = 0; i < entries; i++)
        add(journal, i);
    commit(journal);
    sl_journal_close(journal);
}

static char *path_of(char out[100]) {
    snprintf(out, 100, "%s/journal", folder);
    return out;
}

static size_t read_file(uint8_t *bytes, size_t room) {
    char path[100];
    FILE *file = fopen(path_of(path), "rb");
    assert_non_null(file);
    size_t length = fread(bytes, 1, room, file);
    fclose(file);
    return length;
}

static void write_file(const uint8_t *bytes, size_t length) {
    char path[100];
    FILE *file = fopen(path_of(path), "wb");
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void remove_folder(void) {
    char path[100];
    assert_int_equal(unlink(path_of(path)), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void what_was_committed_is_there(void **state) {
    (void)state;
    heard all;
    bool empty;
    write_journal(3);
    sl_journal *journal = open_journal(&all, &empty);
    assert_false(empty);
    assert_string_equal(all.keys, "begun target ");
    assert_int_equal(all.entries, 3);
    /* What is added but not committed is not. */
    add(journal, 3);
    commit(journal);
    add(journal, 4);
    sl_journal_close(journal);
    sl_journal_close(open_journal(&all, &empty));
    assert_int_equal(all.entries, 4);
    assert_int_equal(all.sequences[3], 3);
    remove_folder();
}

/* The machine may have died at any byte of a write. */
static void a_torn_tail_is_as_good_as_not_written(void **state) {
    (void)state;
    static uint8_t bytes[20000];
    write_journal(5);
    size_t length = read_file(bytes, sizeof bytes);
    size_t record = sizeof(sl_journal_entry) + 12;
    for (size_t cut = length - 2 * record; cut < length; cut++) {
        heard all;
        bool empty;
        write_file(bytes, cut);
        sl_journal *journal = open_journal(&all, &empty);
        size_t whole = 5 - (length - cut + record - 1) / record;
        assert_int_equal(all.entries, whole);
        add(journal, 77); /* and what comes next stands behind whole records */
        commit(journal);
        sl_journal_close(journal);
        sl_journal_close(open_journal(&all, &empty));
        assert_int_equal(all.entries, whole + 1);
        assert_int_equal(all.sequences[whole], 77);
    }
    remove_folder();
}

/* Nothing behind a damaged place is believed, not even what looks whole. */
static void no_flipped_bit_is_believed(void **state) {
    (void)state;
    static uint8_t bytes[20000];
    write_journal(3);
    size_t length = read_file(bytes, sizeof bytes);
    size_t record = sizeof(sl_journal_entry) + 12;
    for (size_t bit = 8 * (length - 2 * record); bit < 8 * length; bit++) {
        heard all = {0};
        sl_journal_handlers handlers = {hear_document, hear_entry, &all};
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        size_t good = sl_journal_scan(bytes, length, &handlers);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        size_t hit = (bit / 8 - (length - 3 * record)) / record; /* 1 or 2 */
        assert_int_equal(all.entries, hit);
        assert_int_equal(good, length - (3 - hit) * record);
    }
    remove_folder();
}

static void a_second_loader_is_refused(void **state) {
    (void)state;
    heard all;
    bool empty;
    write_journal(1);
    sl_journal *first = open_journal(&all, &empty), *second;
    sl_error error;
    sl_journal_handlers handlers = {hear_document, hear_entry, &all};
    assert_false(sl_journal_open(folder, &handlers, &second, &empty, &error));
    assert_null(second);
    assert_non_null(strstr(error.message, "another loader"));
    sl_journal_close(first);
    sl_journal_close(open_journal(&all, &empty));
    remove_folder();
}

static void a_planted_link_is_not_followed(void **state) {
    (void)state;
    char path[100], victim[100];
    heard all;
    bool empty;
    sl_error error;
    sl_journal *journal;
    write_journal(1);
    snprintf(victim, sizeof victim, "%s/victim", folder);
    assert_int_equal(rename(path_of(path), victim), 0);
    assert_int_equal(symlink("victim", path), 0);
    sl_journal_handlers handlers = {hear_document, hear_entry, &all};
    assert_false(sl_journal_open(folder, &handlers, &journal, &empty, &error));
    assert_int_equal(unlink(victim), 0);
    remove_folder();
}

/* The reject files may hold, by then, the rejects of blocks whose entries are lost: a later entry
 * must not make them believed. */
static void after_a_failed_write_there_is_no_other(void **state) {
    (void)state;
    heard all;
    bool empty;
    sl_error error;
    struct stat facts;
    char path[100];
    write_journal(2);
    assert_int_equal(stat(path_of(path), &facts), 0);
    sl_journal *journal = open_journal(&all, &empty);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, full;
    getrlimit(RLIMIT_FSIZE, &before);
    full = before;
    full.rlim_cur = (rlim_t)facts.st_size + 50; /* part of an entry fits */
    setrlimit(RLIMIT_FSIZE, &full);
    add(journal, 2);
    sl_journal_collect(journal);
    assert_false(sl_journal_commit(journal, &error));
    setrlimit(RLIMIT_FSIZE, &before);
    add(journal, 3);
    sl_journal_collect(journal);
    assert_false(sl_journal_commit(journal, &error));
    sl_journal_close(journal);
    sl_journal_close(open_journal(&all, &empty));
    assert_int_equal(all.entries, 2);
    remove_folder();
}

static void a_torn_first_record_is_an_empty_journal(void **state) {
    (void)state;
    static uint8_t bytes[2000];
    write_journal(0);
    read_file(bytes, sizeof bytes);
    uint32_t first;
    memcpy(&first, bytes, sizeof first);
    for (size_t cut = 0; cut < first + 12; cut++) {
        heard all;
        bool empty;
        write_file(bytes, cut);
        sl_journal_close(open_journal(&all, &empty));
        assert_true(empty);
    }
    remove_folder();
}

static void somebody_elses_file_is_left_alone(void **state) {
    (void)state;
    heard all;
    bool empty;
    sl_error error;
    sl_journal *journal;
    static const char text[] = "Dear diary, today we loaded the whole of 2013.\n";
    uint8_t left[sizeof text];
    write_journal(0);
    write_file((const uint8_t *)text, sizeof text);
    sl_journal_handlers handlers = {hear_document, hear_entry, &all};
    assert_false(sl_journal_open(folder, &handlers, &journal, &empty, &error));
    assert_non_null(strstr(error.message, "not a journal"));
    assert_int_equal(read_file(left, sizeof left), sizeof text);
    assert_memory_equal(left, text, sizeof text);
    remove_folder();
}

/* A damaged or hostile disk: checking it must not exhaust the stack. */
static void a_deeply_nested_document_is_not_believed(void **state) {
    (void)state;
    heard all;
    bool empty;
    sl_error error;
    write_journal(1);
    sl_journal *journal = open_journal(&all, &empty);
    bson_t *deep = deep_document("a");
    assert_true(sl_journal_write(journal, deep, &error));
    bson_destroy(deep);
    sl_journal_close(journal);
    journal = open_journal(&all, &empty);
    assert_false(empty);
    assert_string_equal(all.keys, "begun target ");
    assert_int_equal(all.entries, 1);
    sl_journal_close(journal);
    remove_folder();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_committed_is_there),
        cmocka_unit_test(a_torn_tail_is_as_good_as_not_written),
        cmocka_unit_test(no_flipped_bit_is_believed),
        cmocka_unit_test(a_second_loader_is_refused),
        cmocka_unit_test(a_planted_link_is_not_followed),
        cmocka_unit_test(after_a_failed_write_there_is_no_other),
        cmocka_unit_test(a_torn_first_record_is_an_empty_journal),
        cmocka_unit_test(somebody_elses_file_is_left_alone),
        cmocka_unit_test(a_deeply_nested_document_is_not_believed),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
