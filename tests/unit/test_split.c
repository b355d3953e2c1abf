/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of sources whose format divides the text into records: they cover the text, begin at
 * records, and are the same plain, compressed, from a pipe, and for any number of threads. */
#include "source_reading.h"

#define BLOCKS_MOST 64

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

typedef struct block_facts {
    uint64_t offset, length, state;
} block_facts;

typedef struct gathering {
    sl_source_set *set;
    const char *text;
    block_facts blocks[BLOCKS_MOST];
    uint64_t last; /* number of blocks */
} gathering;

static void *read_blocks(void *context) {
    gathering *all = context;
    sl_reader *reader;
    sl_error error;
    sl_source_block block;
    assert_true(sl_reader_create(all->set, &reader, &error));
    while (sl_reader_next(reader, &block, &error) == SL_READ_BLOCK) {
        assert_true(block.sequence < BLOCKS_MOST);
        all->blocks[block.sequence] =
            (block_facts){block.offset, block.text.length, block.split_state};
        if (memcmp(block.text.bytes, all->text + block.offset, block.text.length) != 0)
            all->blocks[block.sequence].length = UINT64_MAX;
        if (block.last)
            all->last = block.sequence + 1;
    }
    sl_reader_destroy(reader);
    return NULL;
}

/* Reads all blocks of a source, in which a record of the format above follows another one. */
static gathering read_all(const char *path, const char *text, unsigned threads) {
    gathering all = {.set = open_source(path)->set, .text = text};
    sl_source_set_splitter(all.set, 0, &(sl_splitter){.find_end = split_records}, NULL, false);
    assert_false(sl_source_is_splittable(sl_source_set_at(all.set, 0)));
    unit_run_threads(threads, read_blocks, &all, 0);
    return all;
}

TEST(blocks_begin_at_records_for_any_reader) {
    size_t length;
    char *text = make_records((size_t)20 << 20, &length);
    write_file(unit_path("plain"), text, length, false);
    write_file(unit_path("packed.gz"), text, length, true);
    gathering plain = read_all(unit_path("plain"), text, 1);
    uint64_t next = 0, records = 0;
    for (uint64_t i = 0; i < plain.last; i++) {
        const block_facts *block = &plain.blocks[i];
        assert_int_equal(block->offset, next);
        assert_int_equal(block->state, records);
        for (uint64_t at = next; at < next + block->length; records++) {
            uint32_t record;
            assert_int_equal(at >> SL_BLOCK_BITS, next >> SL_BLOCK_BITS);
            memcpy(&record, text + at, sizeof record);
            at += record;
        }
        next += block->length;
    }
    assert_int_equal(next, length);
    for (unsigned threads = 1; threads <= 4; threads++) {
        gathering packed = read_all(unit_path("packed.gz"), text, threads);
        assert_int_equal(packed.last, plain.last);
        assert_memory_equal(packed.blocks, plain.blocks, sizeof plain.blocks);
    }
    piped input;
    begin_pipe(&input, text, length);
    gathering pipe = read_all("-", text, 2);
    pthread_join(input.writer, NULL);
    assert_int_equal(pipe.last, plain.last);
    assert_memory_equal(pipe.blocks, plain.blocks, sizeof plain.blocks);
}

TEST(a_truncated_record_is_the_end_of_the_last_block) {
    size_t length;
    char *text = make_records((size_t)3 << 20, &length);
    length -= 2;
    write_file(unit_path("short"), text, length, false);
    gathering all = read_all(unit_path("short"), text, 2);
    assert_true(all.last > 0);
    const block_facts *block = &all.blocks[all.last - 1];
    assert_int_equal(block->offset + block->length, length);
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
