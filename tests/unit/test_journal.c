/* SPDX-License-Identifier: Apache-2.0 */
/* The journal. An error here would make a resumed load skip blocks that were never stored, without
 * an error. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "deep_document.h"
#include "ledger/journal.h"
#include "unit.h"

#define FIRST_RECORD_BYTES 32u
#define ENTRY_RECORD_BYTES (12u + SL_JOURNAL_ENTRY_BYTES)

/* The content of a journal: the first key of each document, the block number of each entry. */
typedef struct content {
    char keys[200];
    uint64_t sequences[100];
    size_t entries;
} content;

/* Of the journal that was opened last. */
static content all;
static bool empty;
static sl_error error;

static bool on_document(void *context, const bson_t *document) {
    content *read = context;
    bson_iter_t iter;
    bson_iter_init(&iter, document);
    if (!bson_iter_next(&iter))
        return false;
    strcat(strcat(read->keys, bson_iter_key(&iter)), " ");
    return true;
}

static bool on_entry(void *context, const sl_journal_entry *entry) {
    content *read = context;
    assert_int_equal(entry->counts.records, entry->sequence * 10);
    read->sequences[read->entries++] = entry->sequence;
    return true;
}

/* NULL if the journal is refused. */
static sl_journal *try_journal(void) {
    sl_journal *journal;
    const sl_journal_handlers handlers = {on_document, on_entry, &all};
    memset(&all, 0, sizeof all);
    error = (sl_error){0};
    bool opened = sl_journal_open(unit_folder(), &handlers, &journal, &empty, &error);
    assert_int_equal(opened, journal != NULL);
    return journal;
}

static sl_journal *open_journal(void) {
    sl_journal *journal = try_journal();
    if (!journal)
        fail_msg("%s", error.message);
    return journal;
}

static void read_journal(void) {
    sl_journal_close(open_journal());
}

static void write_document(sl_journal *journal, const char *key) {
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
    sl_journal_collect(journal);
    assert_true(sl_journal_commit(journal, &error));
}

/* Writes a journal of two documents and `entries` entries; returns its path. */
static const char *write_journal(unsigned entries) {
    sl_journal *journal = open_journal();
    assert_true(empty);
    write_document(journal, "begun");
    write_document(journal, "target");
    for (unsigned i = 0; i < entries; i++)
        add(journal, i);
    commit(journal);
    sl_journal_close(journal);
    return unit_path("journal");
}

TEST(committed_entries_are_read_back) {
    write_journal(3);
    sl_journal *journal = open_journal();
    assert_false(empty);
    assert_string_equal(all.keys, "begun target ");
    assert_int_equal(all.entries, 3);
    /* An entry that is added but not committed is not read back. */
    add(journal, 3);
    commit(journal);
    add(journal, 4);
    sl_journal_close(journal);
    read_journal();
    assert_int_equal(all.entries, 4);
    assert_int_equal(all.sequences[3], 3);
    unit_assert_files(1);
}

/* A crash may truncate a write at any byte. */
TEST(a_truncated_record_is_ignored) {
    size_t length;
    const char *path = write_journal(5), *bytes = unit_read(path, &length);
    size_t record = ENTRY_RECORD_BYTES;
    for (size_t cut = length - 2 * record; cut < length; cut++) {
        unit_write(path, bytes, cut);
        sl_journal *journal = open_journal();
        size_t whole = 5 - (length - cut + record - 1) / record;
        assert_int_equal(all.entries, whole);
        add(journal, 77); /* is written after the last complete record */
        commit(journal);
        sl_journal_close(journal);
        read_journal();
        assert_int_equal(all.entries, whole + 1);
        assert_int_equal(all.sequences[whole], 77);
    }
    unit_assert_files(1);
}

/* A damaged record and all records after it are ignored, even undamaged ones. */
TEST(records_after_a_flipped_bit_are_ignored) {
    size_t length;
    uint8_t *bytes = (uint8_t *)unit_read(write_journal(3), &length);
    size_t record = ENTRY_RECORD_BYTES;
    for (size_t bit = 8 * (length - 2 * record); bit < 8 * length; bit++) {
        const sl_journal_handlers handlers = {on_document, on_entry, &all};
        memset(&all, 0, sizeof all);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        size_t good = sl_journal_scan(bytes, length, &handlers);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        size_t hit = (bit / 8 - (length - 3 * record)) / record; /* 1 or 2 */
        assert_int_equal(all.entries, hit);
        assert_int_equal(good, length - (3 - hit) * record);
    }
}

TEST(a_second_loader_is_refused) {
    write_journal(1);
    sl_journal *first = open_journal();
    assert_null(try_journal());
    assert_contains(error.message, "another command");
    sl_journal_close(first);
    read_journal();
}

TEST(a_planted_link_is_not_followed) {
    const char *path = write_journal(1), *victim = unit_path("victim");
    assert_int_equal(rename(path, victim), 0);
    assert_int_equal(symlink("victim", path), 0);
    assert_null(try_journal());
    unit_assert_files(2);
}

/* The reject files may contain rejects of blocks whose entries were not written. A later entry
 * would make the resumed load keep these rejects. */
TEST(after_a_failed_write_all_writes_fail) {
    struct stat facts;
    assert_int_equal(stat(write_journal(2), &facts), 0);
    sl_journal *journal = open_journal();
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
    read_journal();
    assert_int_equal(all.entries, 2);
    unit_assert_files(1);
}

TEST(a_journal_without_a_complete_document_is_empty) {
    size_t length;
    const char *path = write_journal(0), *bytes = unit_read(path, &length);
    uint32_t document;
    memcpy(&document, bytes + FIRST_RECORD_BYTES, sizeof document);
    for (size_t cut = 0; cut < FIRST_RECORD_BYTES + 12 + document; cut++) {
        unit_write(path, bytes, cut);
        read_journal();
        assert_true(empty);
    }
    unit_assert_files(1);
}

/* Replaces the journal by these bytes, which must be refused and not changed. */
static void refuses(const void *bytes, size_t length, const char *reason) {
    const char *path = unit_path("journal");
    size_t left;
    unit_write(path, bytes, length);
    assert_null(try_journal());
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_contains(error.message, reason);
    assert_contains(error.message, unit_folder());
    assert_string_equal(all.keys, "");
    const char *after = unit_read(path, &left);
    assert_int_equal(left, length);
    assert_memory_equal(after, bytes, length);
    unit_assert_files(1);
}

TEST(a_file_that_is_no_journal_is_not_changed) {
    static const char text[] = "This text file is in the place of the journal.\n";
    refuses(text, sizeof text, "not a journal");
}

/* The first record of version 1 was a document. */
TEST(a_journal_of_another_format_is_not_changed) {
    size_t length;
    char *bytes = unit_read(write_journal(1), &length);
    refuses(bytes + FIRST_RECORD_BYTES, length - FIRST_RECORD_BYTES,
            "is a journal of format version 1, and this program reads version 2");
    bytes[FIRST_RECORD_BYTES - 4] = 3;
    refuses(bytes, length, "beginning is damaged"); /* the checksum is wrong */
    uint32_t crc = (uint32_t)crc32_z(crc32(0, (uint8_t *)bytes, 8), (uint8_t *)bytes + 12,
                                     FIRST_RECORD_BYTES - 12);
    memcpy(bytes + 8, &crc, sizeof crc);
    refuses(bytes, length, "is a journal of format version 3, and this program reads version 2");
}

/* After a crash, a file may end in bytes that were allocated and not written. */
TEST(a_journal_that_ends_in_zeros_is_empty) {
    static char bytes[(3 << 20) + 100];
    size_t length;
    memcpy(bytes, unit_read(write_journal(0), &length), FIRST_RECORD_BYTES);
    for (size_t kept = 0; kept <= FIRST_RECORD_BYTES; kept += FIRST_RECORD_BYTES) {
        static const size_t zeros[] = {20, 1 << 20, (1 << 20) + 1, 3 << 20};
        for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++) {
            const char *from = bytes + FIRST_RECORD_BYTES - kept;
            unit_write(unit_path("journal"), from, kept + zeros[i]);
            read_journal();
            assert_true(empty);
            bytes[FIRST_RECORD_BYTES + zeros[i] - 1] = 1;
            if (kept > 0)
                refuses(from, kept + zeros[i], "beginning is damaged");
            bytes[FIRST_RECORD_BYTES + zeros[i] - 1] = 0;
        }
    }
}

TEST(a_damaged_first_document_is_refused) {
    size_t length;
    char *bytes = unit_read(write_journal(1), &length);
    bytes[FIRST_RECORD_BYTES + 20] ^= 1;
    refuses(bytes, length, "beginning is damaged");
}

/* ---- fields of an entry ---- */

/* The fields of the first program, in the order of the file and by their names in
 * docs/internals/delivery.md: a second list beside the one in journal.c. */
#define FIELD(name)                                                                                \
    { #name, offsetof(sl_journal_entry, name) }
#define COUNT(name)                                                                                \
    { #name, offsetof(sl_journal_entry, counts.name) }
static const struct {
    const char *name;
    size_t at;
} fields[] = {
    FIELD(source),
    FIELD(sequence),
    FIELD(offset),
    FIELD(entry_start),
    FIELD(check),
    FIELD(text_bytes),
    FIELD(inserted),
    FIELD(already_stored),
    {"refused", offsetof(sl_journal_entry, server_rejects)}, /* the name in entries.tsv */
    FIELD(taken),
    FIELD(table_bytes),
    FIELD(raw_bytes),
    COUNT(lines),
    COUNT(records),
    COUNT(documents),
    COUNT(rejects),
    COUNT(headers),
    COUNT(blank_lines),
    COUNT(repaired),
    COUNT(transcoded),
    COUNT(length_mismatches),
    COUNT(malformed_fields),
    COUNT(unknown_groups),
    COUNT(rounded_numbers),
    FIELD(borders),
};
#define FIELDS (sizeof fields / sizeof fields[0])

static uint64_t value_of(const sl_journal_entry *entry, size_t field) {
    uint64_t value;
    memcpy(&value, (const char *)entry + fields[field].at, sizeof value);
    return value;
}

/* Each member gets another value in each of its bytes. A member that is not in the file fails here:
 * a resumed load would report it as 0. */
TEST(each_field_is_written_little_endian_and_read_back) {
    sl_journal_entry entry, read;
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES];
    for (size_t i = 0; i < sizeof entry; i++)
        ((uint8_t *)&entry)[i] = (uint8_t)(i + 1);
    sl_journal_encode(&entry, bytes);
    memset(&read, 0xFF, sizeof read);
    assert_true(sl_journal_decode(bytes, sizeof bytes, &read));
    assert_memory_equal(&read, &entry, sizeof entry);
    assert_true(FIELDS * 8 <= SL_JOURNAL_ENTRY_BYTES);
    for (size_t i = 0; i < FIELDS; i++) {
        uint64_t value = 0;
        for (unsigned k = 0; k < 8; k++)
            value |= (uint64_t)bytes[8 * i + k] << 8 * k;
        if (value != value_of(&entry, i))
            fail_msg("%s is not at byte %zu", fields[i].name, 8 * i);
    }
}

/* ---- the recorded journal ---- */

typedef struct recorded {
    FILE *table; /* entries.tsv: a line of names, then a line per entry */
    char keys[100];
    size_t entries;
} recorded;

static bool on_recorded_document(void *context, const bson_t *document) {
    recorded *read = context;
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, document) && bson_iter_next(&iter));
    strcat(strcat(read->keys, bson_iter_key(&iter)), " ");
    return true;
}

static bool on_recorded_entry(void *context, const sl_journal_entry *entry) {
    recorded *read = context;
    read->entries++;
    for (size_t i = 0; i < FIELDS; i++) {
        unsigned long long expected;
        assert_int_equal(fscanf(read->table, "%llu", &expected), 1);
        if (expected != value_of(entry, i))
            fail_msg("entry %zu: %s is %llu, expected %llu", read->entries, fields[i].name,
                     (unsigned long long)value_of(entry, i), expected);
    }
    return true;
}

TEST(the_recorded_journal_is_read_field_by_field) {
    size_t length;
    uint8_t *bytes = (uint8_t *)unit_read(TEST_DATA "/journal/journal", &length);
    recorded read = {.table = fopen(TEST_DATA "/journal/entries.tsv", "r")};
    assert_non_null(read.table);
    for (size_t i = 0; i < FIELDS; i++) {
        char name[40];
        assert_int_equal(fscanf(read.table, "%39s", name), 1);
        assert_string_equal(name, fields[i].name);
    }
    sl_journal_handlers handlers = {on_recorded_document, on_recorded_entry, &read};
    assert_int_equal(sl_journal_scan(bytes, length, &handlers), length);
    assert_string_equal(read.keys, "begun target finished ");
    assert_int_equal(read.entries, 3);
    assert_int_equal(fscanf(read.table, "%*s"), EOF);
    fclose(read.table);
}

/* A deeply nested document, from a damaged or hostile disk, must not overflow the stack. */
TEST(a_deeply_nested_document_is_ignored) {
    const bson_t *const deep[] = {deep_document("a"), deep_code()};
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        write_journal(1);
        sl_journal *journal = open_journal();
        assert_true(sl_journal_write(journal, deep[i], &error));
        sl_journal_close(journal);
        read_journal();
        assert_false(empty);
        assert_string_equal(all.keys, "begun target ");
        assert_int_equal(all.entries, 1);
        assert_int_equal(unlink(unit_path("journal")), 0);
    }
}

/* A later program adds counters at the end. */
TEST(fields_of_a_later_program_are_ignored) {
    enum { MORE = 16 };
    sl_journal_entry entry, read;
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES + MORE];
    memset(bytes, 0xFF, sizeof bytes);
    for (size_t i = 0; i < sizeof entry; i++)
        ((uint8_t *)&entry)[i] = (uint8_t)(i + 1);
    sl_journal_encode(&entry, bytes);
    assert_true(sl_journal_decode(bytes, sizeof bytes, &read));
    assert_memory_equal(&read, &entry, sizeof entry);
}

TEST(an_entry_has_at_least_the_fields_of_the_first_program) {
    sl_journal_entry entry = {.source = 1}, read;
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES];
    sl_journal_encode(&entry, bytes);
    assert_true(sl_journal_decode(bytes, 184, &read));
    assert_false(sl_journal_decode(bytes, 176, &read));
    assert_false(sl_journal_decode(bytes, 183, &read));
}
