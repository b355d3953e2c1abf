/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of texts whose records are not lines: the same records in each block, whatever reads them
 * (a plain file, gzip, a pipe, an archive; any number of threads), and none lost or read twice. */
#include "format/json.h"
#include "source_reading.h"

/* ---- JSON ---- */

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

/* Counts the documents of all blocks by the grammar. */
static uint64_t count_documents(const gathered *all) {
    uint64_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const char *p = all->text + all->blocks[i].offset, *end = p + all->blocks[i].length;
        while (true) {
            while ((p = sl_json_skip(p, end)) < end && strchr("[],", *p))
                p++;
            if (p == end)
                break;
            p = sl_json_document_end(p, end);
            assert_non_null(p);
            count++;
        }
    }
    return count;
}

static gathered gather_json(const char *path, const char *text, size_t length, uint64_t documents,
                            unsigned threads) {
    gathered all = gather(path, &sl_json_splitter, length, threads);
    check_gathered(&all, text);
    assert_int_equal(count_documents(&all), documents);
    for (size_t i = 1; i < all.count; i++) /* a block's last document begins in the block's MiB */
        assert_true(all.blocks[i].offset >> SL_BLOCK_BITS > all.blocks[i - 1].offset >>
                    SL_BLOCK_BITS);
    return all;
}

TEST(the_same_blocks_from_every_source) {
    for (int array = 0; array < 2; array++) {
        size_t length;
        uint64_t documents;
        char *text = make_documents((size_t)9 << 20, array, &length, &documents);
        write_file(unit_path("records.json"), text, length, false);
        write_file(unit_path("records.json.gz"), text, length, true);
        gathered one = gather_json(unit_path("records.json"), text, length, documents, 1),
                 others[3];
        others[0] = gather_json(unit_path("records.json"), text, length, documents, 4);
        others[1] = gather_json(unit_path("records.json.gz"), text, length, documents, 3);
        piped input;
        begin_pipe(&input, text, length);
        others[2] = gather_json("-", text, length, documents, 2);
        pthread_join(input.writer, NULL);
        for (int i = 0; i < 3; i++) {
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
    gathered all = gather(unit_path("all.tar"), &sl_json_splitter, 2 * length + 36, 3);
    if (all.error.code != 0)
        fail_msg("reading failed: %s", all.error.message);
    assert_int_equal(count_documents(&all), 2 * documents + 4);
}

TEST(a_document_that_does_not_end_is_an_error) {
    size_t length = (size_t)20 << 20;
    char *text = unit_keep(malloc(length));
    memset(text, ' ', length);
    memcpy(text, "{\n\"a\":1}\n{\n\"b\":[", 16);
    write_file(unit_path("endless.json"), text, length, false);
    gathered all = gather(unit_path("endless.json"), &sl_json_splitter, length, 1);
    assert_int_equal(all.error.code, SL_EXIT_SOURCE);
    assert_contains(all.error.message, "endless.json, byte ");
    assert_contains(all.error.message, "more than 16 MiB");
    write_file(unit_path("cut.json"), text, 30, false);
    all = gather(unit_path("cut.json"), &sl_json_splitter, 30, 1);
    assert_contains(all.error.message, "cut.json, byte 30: the text ends within a document");
}

/* ---- records with their lengths ---- */

/* Records of this test: 4 bytes of length, which includes them, and any bytes. The state is the
 * number of records before. */
static size_t split_records(sl_split *split, sl_text text, size_t least, bool ended) {
    while (split->at < least && split->at < text.length) {
        uint32_t length = 0;
        if (text.length - split->at >= sizeof length)
            memcpy(&length, text.bytes + split->at, sizeof length);
        if (length == 0 || text.length - split->at < length)
            return ended ? text.length : 0;
        split->at += length;
        split->state++;
    }
    return split->at < least && !ended ? 0 : split->at;
}

static const sl_splitter records_of_lengths = {.find_end = split_records};

static char *make_records(size_t size, size_t *length) {
    char *text = unit_keep(malloc(size + (size_t)4 * SL_BLOCK_BYTES));
    size_t used = 0;
    unsigned seed = 7;
    while (used < size) {
        seed = seed * 1103515245 + 12345;
        uint32_t record = 4 + (seed >> 16 & 0x3FF);
        if ((seed >> 8 & 0xFFF) == 0)
            record = (uint32_t)SL_BLOCK_BYTES + (seed >> 16) % (2 * SL_BLOCK_BYTES);
        memset(text + used, '\n', record);
        memcpy(text + used, &record, sizeof record);
        used += record;
    }
    *length = used;
    return text;
}

TEST(blocks_begin_at_records_for_any_reader) {
    size_t length;
    char *text = make_records((size_t)20 << 20, &length);
    write_file(unit_path("plain"), text, length, false);
    write_file(unit_path("packed.gz"), text, length, true);
    gathered plain = gather(unit_path("plain"), &records_of_lengths, length, 1);
    uint64_t next = 0, records = 0;
    check_gathered(&plain, text);
    for (uint64_t i = 0; i < plain.count; i++) {
        assert_int_equal(plain.blocks[i].state, records);
        for (uint64_t at = next; at < next + plain.blocks[i].length; records++) {
            uint32_t record;
            assert_int_equal(at >> SL_BLOCK_BITS, next >> SL_BLOCK_BITS);
            memcpy(&record, text + at, sizeof record);
            at += record;
        }
        next += plain.blocks[i].length;
    }
    for (unsigned threads = 1; threads <= 4; threads++) {
        gathered packed = gather(unit_path("packed.gz"), &records_of_lengths, length, threads);
        check_gathered(&packed, text);
        assert_int_equal(packed.count, plain.count);
        assert_memory_equal(packed.blocks, plain.blocks, sizeof plain.blocks);
    }
    piped input;
    begin_pipe(&input, text, length);
    gathered pipe = gather("-", &records_of_lengths, length, 2);
    pthread_join(input.writer, NULL);
    check_gathered(&pipe, text);
    assert_int_equal(pipe.count, plain.count);
    assert_memory_equal(pipe.blocks, plain.blocks, sizeof plain.blocks);
}

TEST(a_truncated_record_is_the_end_of_the_last_block) {
    size_t length;
    char *text = make_records((size_t)3 << 20, &length);
    length -= 2;
    write_file(unit_path("short"), text, length, false);
    gathered all = gather(unit_path("short"), &records_of_lengths, length, 2);
    check_gathered(&all, text);
}

/* Finds no end of a record. */
static size_t split_nothing(sl_split *split, sl_text text, size_t least, bool ended) {
    (void)split, (void)text, (void)least, (void)ended;
    return 0;
}

TEST(a_format_that_finds_no_end_is_an_error) {
    const char *path = unit_path("endless");
    write_file(path, "abc", 3, false);
    reading *r = open_source(path);
    sl_source_set_splitter(r->set, 0, &(sl_splitter){.find_end = split_nothing}, NULL, false);
    assert_false(read_block(r));
    assert_int_equal(r->result, SL_READ_FAILED);
    assert_contains(r->error.message, "no end of a record");
}
