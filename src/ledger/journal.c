/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's file. Entries are collected in memory, under a lock that is held while one entry is
 * copied. The committing thread exchanges the buffer for an empty one and writes it without the
 * lock. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "bson/bson_lookup.h"
#include "util/private_file.h"

#include "work_directory.h"

#define HEAD_BYTES 12u
#define JOURNAL_BYTES_MAX ((off_t)4 << 30) /* 22 million entries: blocks of 22 TB */
#define WINDOW_BYTES ((size_t)1 << 20)     /* of the journal in memory while it is read */

enum { RECORD_DOCUMENT = 1, RECORD_ENTRY = 2, RECORD_FORMAT = 3 };

#define MAGIC "shardloadjournal" /* without its NUL */
#define MAGIC_BYTES (sizeof MAGIC - 1)
#define FORMAT_BYTES (MAGIC_BYTES + 4) /* payload of the first record */
#define FIRST_RECORD_BYTES (HEAD_BYTES + FORMAT_BYTES)

typedef struct sl_bytes {
    uint8_t *bytes;
    size_t used, room;
} sl_bytes;

struct sl_journal {
    int file;
    off_t end;   /* of the last complete record */
    bool cut;    /* the file has been truncated at `end` */
    bool failed; /* a write has failed: no entry may follow the lost entries */
    char *path;
    pthread_mutex_t lock;
    sl_bytes gathering; /* records; guarded by the lock */
    sl_bytes writing;   /* used by the committing thread only */
};

/* ---- numbers and entries ---- */

static void put(uint8_t *to, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

static uint32_t get32(const uint8_t *from) {
    return (uint32_t)get(from, 4);
}

/* The fields of an entry in the file, by their numbers: the positions of their values in
 * sl_journal_entry. The numbers of counts are in util/load_counts.h. */
#define FIELD(name) offsetof(sl_journal_entry, name)
#define PARSED(place, field, ...) [place] = FIELD(counts.field),
#define SENT(place, field, ...) [place] = FIELD(field),
static const size_t entry_fields[] = {
    [0] = FIELD(source),       [1] = FIELD(sequence),     [2] = FIELD(offset),
    [3] = FIELD(entry_start),  [4] = FIELD(check),        [9] = FIELD(taken),
    [10] = FIELD(table_bytes), [11] = FIELD(raw_bytes),   [24] = FIELD(borders),
    [25] = FIELD(entry),       [26] = FIELD(refused_ids), SL_JOURNAL_COUNTS(PARSED, SENT)};
#define FIELDS (sizeof entry_fields / sizeof entry_fields[0])
#define FIELDS_LEAST 23u /* of the first program that wrote this format */
_Static_assert(FIELDS * 8 == SL_JOURNAL_ENTRY_BYTES, "each field of sl_journal_entry has a row");

void sl_journal_encode(const sl_journal_entry *entry, uint8_t bytes[SL_JOURNAL_ENTRY_BYTES]) {
    for (size_t i = 0; i < FIELDS; i++)
        put(bytes + 8 * i, *(const uint64_t *)((const char *)entry + entry_fields[i]), 8);
}

bool sl_journal_decode(const uint8_t *bytes, size_t length, sl_journal_entry *entry) {
    *entry = (sl_journal_entry){0};
    for (size_t i = 0; i < FIELDS && i < length / 8; i++)
        *(uint64_t *)((char *)entry + entry_fields[i]) = get(bytes + 8 * i, 8);
    return length >= FIELDS_LEAST * 8 && length % 8 == 0;
}

/* ---- records ---- */

static uint32_t checksum(const uint8_t *head, const uint8_t *payload, size_t length) {
    uLong crc = crc32(0, head, 8);
    return (uint32_t)crc32_z(crc, payload, length);
}

static bool append_record(sl_bytes *to, uint32_t type, const void *payload, size_t length) {
    size_t need = HEAD_BYTES + length;
    if (to->room - to->used < need) {
        size_t room = (to->room + need) * 2;
        uint8_t *bytes = realloc(to->bytes, room);
        if (!bytes)
            return false;
        to->bytes = bytes;
        to->room = room;
    }
    uint8_t *at = to->bytes + to->used;
    put(at, length, 4);
    put(at + 4, type, 4);
    memcpy(at + HEAD_BYTES, payload, length);
    put(at + 8, checksum(at, at + HEAD_BYTES, length), 4);
    to->used += need;
    return true;
}

static bool append_first_record(sl_bytes *to) {
    uint8_t payload[FORMAT_BYTES];
    memcpy(payload, MAGIC, MAGIC_BYTES);
    put(payload + MAGIC_BYTES, SL_JOURNAL_FORMAT, 4);
    return append_record(to, RECORD_FORMAT, payload, sizeof payload);
}

static bool take_record(uint32_t type, const uint8_t *payload, uint32_t length,
                        const sl_journal_handlers *handlers) {
    if (type == RECORD_ENTRY) {
        sl_journal_entry entry;
        return sl_journal_decode(payload, length, &entry) &&
               handlers->entry(handlers->context, &entry);
    }
    bson_t document;
    return type == RECORD_DOCUMENT && bson_init_static(&document, payload, length) &&
           sl_document_is_sound(&document) && handlers->document(handlers->context, &document);
}

/* Is there a complete record at the beginning of these bytes, with the right checksum? */
static bool is_record(const uint8_t *bytes, size_t length) {
    return length >= HEAD_BYTES && get32(bytes) <= SL_JOURNAL_DOCUMENTS_MAX &&
           get32(bytes) <= length - HEAD_BYTES &&
           get32(bytes + 8) == checksum(bytes, bytes + HEAD_BYTES, get32(bytes));
}

/* The format version of a journal; 0: the bytes do not begin with a record of a journal. */
static uint32_t format_of(const uint8_t *bytes, size_t length) {
    if (!is_record(bytes, length))
        return 0;
    uint32_t type = get32(bytes + 4);
    if (type == RECORD_FORMAT && get32(bytes) == FORMAT_BYTES &&
        memcmp(bytes + HEAD_BYTES, MAGIC, MAGIC_BYTES) == 0)
        return get32(bytes + HEAD_BYTES + MAGIC_BYTES);
    return type == RECORD_DOCUMENT ? 1 : 0;
}

/* Passes the complete records to the handlers, up to one that is incomplete or wrong. Returns their
 * length. */
static size_t scan_records(const uint8_t *bytes, size_t length,
                           const sl_journal_handlers *handlers) {
    size_t at = 0;
    while (is_record(bytes + at, length - at)) {
        const uint8_t *head = bytes + at;
        if (!take_record(get32(head + 4), head + HEAD_BYTES, get32(head), handlers))
            break;
        at += HEAD_BYTES + get32(head);
    }
    return at;
}

size_t sl_journal_scan(const uint8_t *bytes, size_t length, const sl_journal_handlers *handlers) {
    if (format_of(bytes, length) != SL_JOURNAL_FORMAT)
        return 0;
    size_t first = HEAD_BYTES + get32(bytes);
    return first + scan_records(bytes + first, length - first, handlers);
}

/* ---- the file ---- */

static bool failed(const sl_journal *journal, const char *doing, sl_error *error) {
    return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "%s: cannot be %s: %s",
                        journal->path, doing, strerror(errno));
}

/* The part of the file that is in memory. */
typedef struct window {
    sl_bytes text;
    off_t at;      /* its position in the file */
    uint64_t left; /* bytes of the file after it */
} window;

/* Discards `used` bytes, and reads on. The window grows only for a record that is longer and can be
 * complete. */
static bool read_on(const sl_journal *journal, window *w, size_t used, sl_error *error) {
    sl_bytes *text = &w->text;
    size_t need = WINDOW_BYTES;
    text->used -= used;
    w->at += (off_t)used;
    if (used > 0)
        memmove(text->bytes, text->bytes + used, text->used);
    if (text->used >= HEAD_BYTES && get32(text->bytes) <= SL_JOURNAL_DOCUMENTS_MAX &&
        get32(text->bytes) <= text->used - HEAD_BYTES + w->left)
        need = HEAD_BYTES + get32(text->bytes);
    need = need < WINDOW_BYTES ? WINDOW_BYTES : need;
    if (text->room < need) {
        uint8_t *bytes = realloc(text->bytes, need);
        if (!bytes)
            return sl_error_memory(error, "reading the journal");
        text->bytes = bytes;
        text->room = need;
    }
    while (text->used < text->room && w->left > 0) {
        size_t room = text->room - text->used;
        ssize_t got = pread(journal->file, text->bytes + text->used,
                            room < w->left ? room : (size_t)w->left, w->at + (off_t)text->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failed(journal, "read", error);
        if (got == 0)
            w->left = 0;
        text->used += (size_t)got;
        w->left -= (uint64_t)got;
    }
    return true;
}

/* Are there no bytes, or only the beginning of a record that is not an entry? Then the process was
 * killed while it wrote them. */
static bool is_torn_record(const sl_journal *journal, window *w, bool *torn, sl_error *error) {
    const sl_bytes *text = &w->text;
    uint32_t type = text->used < HEAD_BYTES ? 0 : get32(text->bytes + 4);
    *torn = text->used < HEAD_BYTES || ((type == RECORD_DOCUMENT || type == RECORD_FORMAT) &&
                                        get32(text->bytes) <= SL_JOURNAL_DOCUMENTS_MAX &&
                                        get32(text->bytes) > text->used - HEAD_BYTES + w->left);
    if (*torn)
        return true;
    /* After a crash, a file system may have allocated bytes without writing them. */
    for (bool zeros = true; zeros && !*torn;) {
        for (size_t i = 0; zeros && i < text->used; i++)
            zeros = text->bytes[i] == 0;
        *torn = zeros && w->left == 0;
        if (zeros && !*torn && !read_on(journal, w, text->used, error))
            return false;
    }
    return true;
}

static bool refuse(const sl_journal *journal, uint32_t format, sl_error *error) {
    if (format == 0 || format == SL_JOURNAL_FORMAT)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: is not a journal of this program, or its beginning is damaged "
                            "(this program reads journals of format version %u); start again with "
                            "another --work-dir, and with --drop if the load of this journal has "
                            "stored documents",
                            journal->path, SL_JOURNAL_FORMAT);
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s: is a journal of format version %u, and this program reads version %u; "
                        "complete the load with the version of the program that began it, or start "
                        "again with --drop and another --work-dir",
                        journal->path, format, SL_JOURNAL_FORMAT);
}

/* The window is after the first record, if the file begins with one of this format. */
static bool read_window(sl_journal *journal, window *w, const sl_journal_handlers *handlers,
                        bool *empty, sl_error *error) {
    if (!read_on(journal, w, 0, error))
        return false;
    uint32_t format = format_of(w->text.bytes, w->text.used);
    size_t used = format == SL_JOURNAL_FORMAT ? FIRST_RECORD_BYTES : 0;
    if (used > 0) {
        do {
            if (!read_on(journal, w, used, error))
                return false;
            used = scan_records(w->text.bytes, w->text.used, handlers);
        } while (used > 0);
    }
    journal->end = w->at;
    *empty = w->at <= (off_t)FIRST_RECORD_BYTES;
    bool torn = true;
    return !*empty ||
           (is_torn_record(journal, w, &torn, error) && (torn || refuse(journal, format, error)));
}

static bool read_records(sl_journal *journal, const sl_journal_handlers *handlers, bool *empty,
                         sl_error *error) {
    struct stat facts;
    if (fstat(journal->file, &facts) != 0)
        return failed(journal, "read", error);
    if (!S_ISREG(facts.st_mode))
        return sl_error_set(error, SL_EXIT_USAGE, "%s: is not a regular file", journal->path);
    if (facts.st_size > JOURNAL_BYTES_MAX)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: has %lld bytes, and a journal has at most %lld; start again with "
                            "another --work-dir, and with --drop if the load of this journal has "
                            "stored documents",
                            journal->path, (long long)facts.st_size, (long long)JOURNAL_BYTES_MAX);
    window w = {.left = (uint64_t)facts.st_size};
    bool ok = read_window(journal, &w, handlers, empty, error);
    free(w.text.bytes);
    return ok;
}

bool sl_journal_open(const char *directory, const sl_journal_handlers *handlers,
                     sl_journal **result, bool *empty, sl_error *error) {
    sl_journal *made = calloc(1, sizeof *made);
    *result = NULL;
    if (!made)
        return sl_error_memory(error, "opening the journal");
    pthread_mutex_init(&made->lock, NULL);
    made->file = -1;
    size_t room = strlen(directory) + sizeof "/" SL_WORK_JOURNAL;
    made->path = malloc(room);
    if (!made->path) {
        sl_error_memory(error, "opening the journal");
        goto fail;
    }
    snprintf(made->path, room, "%s/" SL_WORK_JOURNAL, directory);
    made->file = sl_private_file_open(made->path, O_RDWR, error);
    if (made->file < 0)
        goto fail;
    if (!sl_work_directory_lock_file(made->file, directory, error))
        goto fail;
    if (!read_records(made, handlers, empty, error))
        goto fail;
    sl_private_folder_sync(directory); /* the name of a new file must survive a crash too */
    *result = made;
    return true;
fail:
    sl_journal_close(made);
    return false;
}

void sl_journal_close(sl_journal *journal) {
    if (!journal)
        return;
    if (journal->file >= 0)
        close(journal->file); /* unlocks it too */
    pthread_mutex_destroy(&journal->lock);
    free(journal->gathering.bytes);
    free(journal->writing.bytes);
    free(journal->path);
    free(journal);
}

bool sl_journal_begin(sl_journal *journal, sl_error *error) {
    journal->end = 0;
    journal->cut = true;
    return ftruncate(journal->file, 0) == 0 || failed(journal, "written", error);
}

/* The first write truncates the file after the last complete record. After a failure (the disk is
 * full) nothing more is written: a later entry would give sizes of the reject files that include
 * the rejects of the lost entries' blocks, and a resumed load would write these a second time. */
static bool append_to_file(sl_journal *journal, const sl_bytes *records, sl_error *error) {
    bool ok = !journal->failed && (journal->cut || ftruncate(journal->file, journal->end) == 0);
    journal->cut = true;
    for (size_t done = 0; ok && done < records->used;) {
        ssize_t wrote = pwrite(journal->file, records->bytes + done, records->used - done,
                               journal->end + (off_t)done);
        if (wrote >= 0)
            done += (size_t)wrote;
        else
            ok = errno == EINTR;
    }
    ok = ok && fdatasync(journal->file) == 0;
    if (ok) {
        journal->end += (off_t)records->used;
        return true;
    }
    if (!journal->failed)
        failed(journal, "written", error);
    else
        sl_error_set(error, SL_EXIT_USAGE, "%s: an earlier write has failed", journal->path);
    journal->failed = true;
    int cut = ftruncate(journal->file, journal->end);
    (void)cut; /* the block fails in both cases */
    return false;
}

bool sl_journal_write(sl_journal *journal, const bson_t *document, sl_error *error) {
    sl_bytes record = {0};
    if (document->len > SL_JOURNAL_DOCUMENTS_MAX)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: a list of %u bytes is too long for a journal: load the sources "
                            "in several loads, of fewer sources each",
                            journal->path, document->len);
    bool ok =
        (journal->end > 0 || append_first_record(&record)) &&
                append_record(&record, RECORD_DOCUMENT, bson_get_data(document), document->len)
            ? append_to_file(journal, &record, error)
            : sl_error_memory(error, "writing the journal");
    free(record.bytes);
    return ok;
}

bool sl_journal_add(sl_journal *journal, const sl_journal_entry *entry) {
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES];
    sl_journal_encode(entry, bytes);
    pthread_mutex_lock(&journal->lock);
    bool ok = append_record(&journal->gathering, RECORD_ENTRY, bytes, sizeof bytes);
    pthread_mutex_unlock(&journal->lock);
    return ok;
}

void sl_journal_collect(sl_journal *journal) {
    pthread_mutex_lock(&journal->lock);
    sl_bytes empty = journal->writing;
    journal->writing = journal->gathering;
    journal->gathering = empty;
    journal->gathering.used = 0;
    pthread_mutex_unlock(&journal->lock);
}

bool sl_journal_commit(sl_journal *journal, sl_error *error) {
    bool ok = journal->writing.used == 0 || append_to_file(journal, &journal->writing, error);
    journal->writing.used = 0;
    return ok;
}
