/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the resuming of a load from a damaged journal. The input is the journal file itself, or a
 * list of records that get correct checksums: documents as a load of the same sources writes them,
 * such documents with changed fields, arbitrary documents, and block entries. Resuming fails with
 * an error message, or its totals are the sums of the accepted entries, with each block counted
 * once and within its source. The journal file is not changed. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "util/document_id.h"
#include "util/log.h"

#include "documents.h"
#include "job/job.h"
#include "ledger/journal.h"
#include "ledger/ledger.h"

#define HEAD_BYTES 12u
#define FIRST_RECORD_BYTES (HEAD_BYTES + 20u)
#define SOURCES 3u
#define RECORDS_MAX 400u
#define RANGES 2u

static char folder[64], journal_path[80];
static uint8_t first_record[FIRST_RECORD_BYTES];
static bson_t *begun;
static const char target_uuid[] = "00010203-0405-0607-0809-0a0b0c0d0e0f";

/* ---- a load without servers ---- */

static sl_load_config config = {
    .program_version = "fuzz",
    .format = "mot",
    .database = "db",
    .collection = "c",
    .sink = SL_SINK_CLUSTER,
    .resume = true,
};

typedef struct loading {
    sl_job job;
    sl_destination destination; /* none */
    sl_ledger ledger;
    sl_job_source sources[SOURCES];
    sl_range ranges[RANGES];
} loading;

static void set_up(loading *l) {
    static sl_source_set *set;
    sl_error error;
    memset(l, 0, sizeof *l);
    if (!set) {
        const char *none[] = {NULL};
        require(sl_source_set_create(none, 0, NULL, &set, &error), "allocation succeeds");
        for (size_t i = 0; i < SOURCES; i++) {
            char name[16];
            snprintf(name, sizeof name, "source %zu", i);
            require(sl_source_set_add_generated(set, name, 1u << 20, SL_GENERATED_BYTES, &error),
                    "a generated source can be added");
        }
    }
    l->job.config = &config;
    l->job.set = set;
    l->job.sources = l->sources;
    l->job.ranges = l->ranges;
    l->job.range_count = RANGES;
    l->ranges[0] = (sl_range){.minimum = INT64_MIN, .maximum = sl_document_id(2, 0)};
    l->ranges[1] = (sl_range){.minimum = sl_document_id(2, 0), .maximum = INT64_MAX};
    snprintf(l->ledger.work_directory, sizeof l->ledger.work_directory, "%s", folder);
    for (size_t i = 0; i < SOURCES; i++) {
        l->sources[i].number = (uint32_t)i + 1;
        l->sources[i].skipped = i == SOURCES - 1;
        snprintf(l->sources[i].fingerprint, sizeof l->sources[i].fingerprint, "print %zu", i);
    }
}

static void take_down(loading *l) {
    sl_ledger_clear(&l->ledger);
    for (size_t i = 0; i < SOURCES; i++)
        free(l->sources[i].done);
}

/* ---- the journal ---- */

static uint8_t *read_journal(size_t *length) {
    struct stat facts;
    int file = open(journal_path, O_RDONLY);
    require(file >= 0 && fstat(file, &facts) == 0, "the journal exists");
    uint8_t *bytes = malloc((size_t)facts.st_size + 1);
    require(bytes && read(file, bytes, (size_t)facts.st_size) == facts.st_size,
            "the journal can be read");
    *length = (size_t)facts.st_size;
    close(file);
    return bytes;
}

/* Creates the work directory, and takes `first_record` and `begun`, the first document, from the
 * journal of a new load. */
static void begin_journal(void) {
    loading l;
    sl_error error = {0};
    bool finished;
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/fuzz_resume-XXXXXX", parent);
    require(mkdtemp(folder) != NULL, "a folder can be created");
    snprintf(journal_path, sizeof journal_path, "%s/journal", folder);
    config.resume = false;
    set_up(&l);
    require(sl_resume_open(&l.job, &l.ledger, &finished, &error), "a journal can be created");
    take_down(&l);
    config.resume = true;
    size_t length;
    uint8_t *bytes = read_journal(&length);
    require(length > FIRST_RECORD_BYTES + HEAD_BYTES, "a journal has a first record");
    memcpy(first_record, bytes, FIRST_RECORD_BYTES);
    begun = bson_new_from_data(bytes + FIRST_RECORD_BYTES + HEAD_BYTES,
                               length - FIRST_RECORD_BYTES - HEAD_BYTES);
    require(begun != NULL, "a document follows the first record");
    free(bytes);
}

static void remove_folder(void) {
    char path[96];
    unlink(journal_path);
    snprintf(path, sizeof path, "%s/rejects.tsv", folder);
    unlink(path);
    rmdir(folder);
}

static void append_record(builder *m, uint32_t type, const void *payload, size_t length) {
    uint8_t *head = add_bytes(m, HEAD_BYTES + length);
    put_u32(head, length);
    put_u32(head + 4, type);
    memcpy(head + HEAD_BYTES, payload, length);
    put_u32(head + 8, crc32_z(crc32(0, head, 8), head + HEAD_BYTES, length));
}

static void append_document(builder *m, const bson_t *document) {
    append_record(m, 1, bson_get_data(document), document->len);
}

static void append_target(builder *m) {
    bson_t document = BSON_INITIALIZER, numbers;
    BSON_APPEND_UTF8(&document, "target", target_uuid);
    BSON_APPEND_ARRAY_BEGIN(&document, "numbers", &numbers);
    for (int32_t i = 0; i < (int32_t)SOURCES; i++)
        BSON_APPEND_INT32(&numbers, "", i + 1);
    bson_append_array_end(&document, &numbers);
    append_document(m, &document);
    bson_destroy(&document);
}

/* The journal's first document, with the fields of the next input document replacing its own. */
static void append_changed(builder *m, input *in) {
    bson_t document;
    bson_iter_t iter;
    const bson_t *fields = take_document(in);
    bson_copy_to(fields, &document);
    for (bool more = bson_iter_init(&iter, begun); more && bson_iter_next(&iter);) {
        if (!bson_has_field(fields, bson_iter_key(&iter)))
            bson_append_iter(&document, NULL, 0, &iter);
    }
    append_document(m, &document);
    bson_destroy(&document);
}

/* A block entry with values from the next input bytes; mostly a block that the sources have. */
static void append_block(builder *m, input *in) {
    sl_journal_entry entry = {.source = take_byte(in) % (SOURCES + 1), .sequence = take_byte(in)};
    entry.offset = entry.sequence << SL_BLOCK_BITS | take_byte(in);
    entry.text_bytes = take_byte(in);
    entry.inserted = take_byte(in);
    entry.already_stored = take_byte(in);
    entry.server_rejects = take_byte(in);
    entry.taken = entry.server_rejects / 2;
    entry.counts.documents = entry.inserted + entry.already_stored + entry.server_rejects;
    entry.counts.records = entry.counts.documents;
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES];
    sl_journal_encode(&entry, bytes);
    append_record(m, 2, bytes, sizeof bytes);
}

static void append_any_entry(builder *m, input *in) {
    uint8_t bytes[SL_JOURNAL_ENTRY_BYTES];
    take_bytes(in, bytes, sizeof bytes);
    append_record(m, 2, bytes, sizeof bytes);
}

static void compose(builder *m, input *in) {
    memcpy(add_bytes(m, FIRST_RECORD_BYTES), first_record, FIRST_RECORD_BYTES);
    for (unsigned i = 0; in->at < in->end && i < RECORDS_MAX; i++) {
        switch (take_byte(in) % 6) {
        case 0:
            append_document(m, begun);
            break;
        case 1:
            append_target(m);
            break;
        case 2:
            append_block(m, in);
            break;
        case 3:
            append_changed(m, in);
            break;
        case 4:
            append_document(m, take_document(in));
            break;
        default:
            append_any_entry(m, in);
            break;
        }
    }
}

/* ---- resuming ---- */

static uint64_t blocks_done(const loading *l) {
    uint64_t blocks = 0;
    for (size_t i = 0; i < SOURCES; i++) {
        require(!l->sources[i].skipped || !l->sources[i].done, "a skipped source has no blocks");
        for (size_t word = 0; word < l->sources[i].done_words; word++)
            blocks += (uint64_t)__builtin_popcountll(l->sources[i].done[word]);
    }
    return blocks;
}

static void check_recovered(loading *l) {
    const sl_recovered *recovered = &l->ledger.recovered;
    uint64_t sources = 0;
    for (size_t i = 0; i < SOURCES; i++)
        sources += sl_ledger_accepted(&l->ledger, i);
    require(blocks_done(l) == recovered->blocks, "each block is counted once");
    require(sources == recovered->inserted + recovered->already_stored,
            "the sources' documents are inserted or already stored");
    sl_source_block block = {.source = 0, .sequence = 1, .offset = SL_BLOCK_BYTES};
    sl_error error = {0};
    if (recovered->blocks > 0 && !sl_resume_block_fits(&l->job, &l->ledger, &block, &error))
        check_error(&error);
}

static void resume(void) {
    loading l;
    sl_error error = {0};
    bool finished = false;
    set_up(&l);
    bool ok = sl_resume_open(&l.job, &l.ledger, &finished, &error);
    if (ok && !finished && l.job.resumed)
        ok = sl_resume_target(&l.job, &l.destination, &l.ledger, &error) &&
             sl_resume_recover(&l.job, &l.ledger, &error);
    if (!ok)
        check_error(&error);
    else if (l.job.resumed && !finished)
        check_recovered(&l);
    take_down(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in;
    builder m = {0};
    if (!begun) {
        sl_log_set_level(SL_LOG_ERROR);
        begin_journal();
        atexit(remove_folder);
    }
    uint8_t flags = begin(&in, data, size);
    if (flags & 2) {
        uint8_t *bytes = add_bytes(&m, (size_t)(in.end - in.at));
        take_bytes(&in, bytes, (size_t)(in.end - in.at));
    } else {
        compose(&m, &in);
    }
    if (flags & 4 && m.used > 0) /* damage a byte of the last record */
        m.bytes[m.used - 1 - m.used % HEAD_BYTES % m.used] ^= 1;
    int file = open(journal_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && write(file, m.bytes, m.used) == (ssize_t)m.used,
            "the journal can be written");
    close(file);
    resume();
    size_t length;
    uint8_t *left = read_journal(&length);
    require(length == m.used && (length == 0 || memcmp(left, m.bytes, length) == 0),
            "resuming does not change the journal");
    free(left);
    free(m.bytes);
    return finish(&in);
}
