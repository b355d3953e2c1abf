/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of texts whose records are not lines: the same records in each block, whatever reads them
 * (a plain file, gzip, a pipe, an archive; any number of threads), and none lost or read twice. */
#include "format/json.h"
#include "source_reading.h"

typedef struct block_seen {
    uint64_t offset, length, documents;
} block_seen;

typedef struct gathering {
    sl_source_set *set;
    pthread_mutex_t lock;
    block_seen blocks[200];
    size_t count;
    char *text; /* the blocks put together */
    size_t length;
    bool failed;
    sl_error error;
} gathering;

/* Documents over several lines, of 60 bytes to 3 MiB, with brackets and quotes in their strings. An
 * array if `array`. */
static char *make_documents(size_t size, bool array, size_t *length, uint64_t *documents) {
    char *text = unit_keep(malloc(size + ((size_t)5 << 20)));
    unsigned seed = 11;
    size_t used = (size_t)sprintf(text, array ? "[" : "\xEF\xBB\xBF");
    for (*documents = 0; used < size; ++*documents) {
        seed = seed * 1103515245 + 12345;
        size_t pad = seed >> 16 & 0xFFF;
        if (*documents % 700 == 99)
            pad = ((size_t)1 << 20) + (seed & 0x1FFFFF);
        if (*documents > 0)
            used += (size_t)sprintf(text + used, "%s", array ? ",\n" : seed & 64 ? "" : "  \n");
        used += (size_t)sprintf(text + used,
                                "{\n  \"at\": %zu,\n  \"s\": \"}]\\\"{[\\\\\", \"p\": \"", used);
        memset(text + used, seed & 32 ? '{' : ']', pad);
        used += pad;
        used += (size_t)sprintf(text + used, "\",\n \"l\": [[], {}, [{}]]\n}");
    }
    used += (size_t)sprintf(text + used, array ? "\n]\n" : "\n");
    *length = used;
    return text;
}

/* Counts the documents of a block by the grammar. */
static uint64_t count_documents(sl_text text) {
    const char *p = text.bytes, *end = p + text.length;
    uint64_t count = 0;
    while (p) {
        while ((p = sl_json_skip(p, end)) < end && strchr("[],", *p))
            p++;
        if (p == end)
            return count;
        p = sl_json_document_end(p, end);
        count++;
    }
    return UINT64_MAX;
}

static void *read_records(void *context) {
    gathering *r = context;
    sl_reader *reader;
    sl_error error = {0};
    sl_source_block block;
    sl_read_result result = SL_READ_FAILED;
    if (sl_reader_create(r->set, &reader, &error)) {
        while ((result = sl_reader_next(reader, &block, &error)) == SL_READ_BLOCK) {
            uint64_t documents = count_documents(block.text);
            pthread_mutex_lock(&r->lock);
            r->failed |= documents == UINT64_MAX || block.sequence >= 200 ||
                         block.offset + block.text.length > r->length;
            if (!r->failed) {
                r->blocks[block.sequence] =
                    (block_seen){block.offset, block.text.length, documents};
                memcpy(r->text + block.offset, block.text.bytes, block.text.length);
                r->count++;
            }
            pthread_mutex_unlock(&r->lock);
        }
        sl_reader_destroy(reader);
    }
    if (result != SL_READ_END) {
        pthread_mutex_lock(&r->lock);
        r->failed = true;
        r->error = error;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static gathering read_all(const char *path, size_t length, unsigned threads) {
    gathering r = {
        .set = open_source(path)->set, .length = length, .text = unit_keep(calloc(1, length + 1))};
    pthread_mutex_init(&r.lock, NULL);
    sl_source_set_splitter(r.set, 0, &sl_json_splitter, NULL, false);
    assert_false(sl_source_is_splittable(sl_source_set_at(r.set, 0)));
    unit_run_threads(threads, read_records, &r, 0);
    return r;
}

static void check_blocks(const gathering *r, const char *text, size_t length, uint64_t documents) {
    uint64_t at = 0, sum = 0;
    if (r->failed)
        fail_msg("reading failed: %s", r->error.message);
    assert_memory_equal(r->text, text, length);
    for (size_t i = 0; i < r->count; i++) {
        assert_int_equal(r->blocks[i].offset, at);
        at += r->blocks[i].length;
        sum += r->blocks[i].documents;
        /* The block's last document begins in the block's MiB, and the next one in a later MiB. */
        if (i > 0)
            assert_true(r->blocks[i].offset >> SL_BLOCK_BITS > r->blocks[i - 1].offset >>
                        SL_BLOCK_BITS);
    }
    assert_int_equal(at, length);
    assert_int_equal(sum, documents);
}

TEST(the_same_blocks_from_every_source) {
    for (int array = 0; array < 2; array++) {
        size_t length;
        uint64_t documents;
        char *text = make_documents((size_t)9 << 20, array, &length, &documents);
        write_file(unit_path("records.json"), text, length, false);
        write_file(unit_path("records.json.gz"), text, length, true);
        gathering one = read_all(unit_path("records.json"), length, 1);
        check_blocks(&one, text, length, documents);
        gathering others[3];
        others[0] = read_all(unit_path("records.json"), length, 4);
        others[1] = read_all(unit_path("records.json.gz"), length, 3);
        piped input;
        begin_pipe(&input, text, length);
        others[2] = read_all("-", length, 2);
        pthread_join(input.writer, NULL);
        for (int i = 0; i < 3; i++) {
            check_blocks(&others[i], text, length, documents);
            assert_int_equal(others[i].count, one.count);
            assert_memory_equal(others[i].blocks, one.blocks, sizeof one.blocks);
        }
    }
}

TEST(each_entry_of_an_archive_begins_anew) {
    size_t length;
    uint64_t documents;
    char *text = make_documents((size_t)3 << 20, true, &length, &documents), command[600];
    write_file(unit_path("a.json"), text, length, false);
    write_file(unit_path("d.json"), text, length, false);
    write_file(unit_path("b.json"), "{\"at\":1}\n{\"at\":2}\n", 18, false);
    write_file(unit_path("c.json"), "{\"at\"\n:1}{\"at\":2}\n", 18, false);
    snprintf(command, sizeof command, "cd '%s' && tar -cf all.tar a.json b.json d.json c.json",
             unit_folder());
    assert_int_equal(system(command), 0);
    gathering r = read_all(unit_path("all.tar"), 2 * length + 36, 3);
    if (r.failed)
        fail_msg("reading failed: %s", r.error.message);
    uint64_t sum = 0;
    for (size_t i = 0; i < r.count; i++)
        sum += r.blocks[i].documents;
    assert_int_equal(sum, 2 * documents + 4);
}

TEST(a_document_that_does_not_end_is_an_error) {
    size_t length = (size_t)20 << 20;
    char *text = unit_keep(malloc(length));
    memset(text, ' ', length);
    memcpy(text, "{\n\"a\":1}\n{\n\"b\":[", 16);
    write_file(unit_path("endless.json"), text, length, false);
    gathering r = read_all(unit_path("endless.json"), length, 1);
    assert_true(r.failed);
    assert_int_equal(r.error.code, SL_EXIT_SOURCE);
    assert_non_null(strstr(r.error.message, "endless.json, byte "));
    assert_non_null(strstr(r.error.message, "more than 16 MiB"));
    write_file(unit_path("cut.json"), text, 30, false);
    r = read_all(unit_path("cut.json"), 30, 1);
    assert_true(r.failed);
    assert_non_null(strstr(r.error.message, "cut.json, byte 30: the text ends within a document"));
}
