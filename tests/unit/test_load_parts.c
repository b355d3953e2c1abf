/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the load engine that need no server: rejects are written in the order of their source
 * with correct line numbers, and the ranges of a load divide its documents evenly. */
#include "archive_making.h"

#include "job/document_sample.h"
#include "job/job.h"
#include "job/numbers.h"
#include "job/sources.h"
#include "ledger/rejects.h"
#include "load/status.h"
#include "send/rate_limit.h"
#include "util/private_file.h"

static sl_error error;

RELEASER(destroy_set, sl_source_set_destroy)

/* The sources are closed after the test. */
static sl_source_set *set_of(const char *const *paths, size_t count) {
    sl_source_set *set;
    assert_true(sl_source_set_create(paths, count, NULL, &set, &error));
    unit_release_later(destroy_set, set);
    return set;
}

static const char *write_source(const char *name) {
    const char *path = unit_path(name);
    unit_write(path, "x\n", 2);
    return path;
}

/* The rejects of one source. */
static sl_reject_files *open_rejects(const char *name) {
    sl_reject_files *rejects;
    const char *path = write_source(name);
    assert_true(sl_rejects_open(unit_folder(), set_of(&path, 1), false, 0, &rejects, &error));
    return rejects;
}

static const char *read_back(const char *name) {
    size_t length;
    return unit_read(unit_path(name), &length);
}

/* Another user exchanged the folder after the load had checked it. */
TEST(the_status_is_not_written_through_a_link) {
    const char *link = unit_path("link");
    if (geteuid() != 0) /* only root can give a link to another user */
        skip();
    assert_int_equal(symlink(unit_folder(), link), 0);
    assert_int_equal(lchown(link, 65534, 65534), 0);
    static const sl_load_config config = {.program_version = "1"};
    sl_rate_limit limit;
    sl_rate_limit_init(&limit, 0);
    sl_status *status = sl_status_start(&(sl_status_setup){
        .command = "load", .config = &config, .directory = link, .limit = &limit});
    assert_non_null(status);
    sl_status_end(status, SL_EXIT_OK, "", false);
    sl_rate_limit_clear(&limit);
    assert_int_equal(access(unit_path(SL_WORK_STATUS), F_OK), -1);
}

static void add(sl_reject_list *list, uint32_t line, uint64_t offset, const char *reason,
                const char *record) {
    sl_reject reject = {
        .offset = offset, .line = line, .column = "test_date", .record = sl_text_of(record)};
    snprintf(reject.reason, sizeof reject.reason, "%s", reason);
    assert_true(sl_reject_list_add(list, &reject));
}

/* The journal entry of each block: ten lines. */
static const sl_journal_entry ten_lines = {.counts.lines = 10};

/* The entries of a journal. */
typedef struct passed_on {
    uint64_t table_bytes, sequences[3];
    size_t count;
} passed_on;

static bool on_document(void *context, const bson_t *document) {
    (void)context, (void)document;
    return true;
}

static bool on_entry(void *context, const sl_journal_entry *entry) {
    passed_on *read = context;
    read->sequences[read->count++] = entry->sequence;
    read->table_bytes = entry->table_bytes;
    return true;
}

/* Writes the entries that belong into the journal, and reads all of them. */
static passed_on pass_on(sl_reject_files *rejects, sl_journal *journal) {
    passed_on read = {.count = 0};
    size_t length;
    assert_true(sl_rejects_pass_on(rejects, journal));
    sl_journal_collect(journal);
    assert_true(sl_journal_commit(journal, &error));
    const uint8_t *bytes = (const uint8_t *)unit_read(unit_path("journal"), &length);
    assert_int_equal(
        sl_journal_scan(bytes, length, &(sl_journal_handlers){on_document, on_entry, &read}),
        length);
    return read;
}

TEST(rejects_are_in_order_of_the_source) {
    sl_reject_files *rejects = open_rejects("data.txt");
    sl_rejects_set_header(rejects, 0, sl_text_of("a|b\n"), false);
    /* Block 2 is completed first, then 0, then 1. */
    sl_reject_list lists[3] = {{0}};
    add(&lists[2], 4, 2500, "third", "r3|\t");
    add(&lists[0], 0, 17, "first", "r1");
    add(&lists[1], 9, 1999, "second", "r2");
    add(&lists[2], SL_REJECT_LINE_UNKNOWN, 5000, "refused: no", "{}");
    static const unsigned order[] = {2, 0, 1};
    /* The journal gets a block after its rejects are in the files, and their size then. */
    static const unsigned for_journal[] = {0, 1, 3};
    bson_t document = BSON_INITIALIZER;
    sl_journal *journal;
    bool empty;
    const sl_journal_handlers handlers = {on_document, on_entry, NULL};
    assert_true(sl_journal_open(unit_folder(), &handlers, &journal, &empty, &error));
    assert_true(sl_journal_write(journal, &document, &error));
    for (int i = 0; i < 3; i++) {
        sl_journal_entry entry = ten_lines;
        entry.sequence = order[i];
        assert_true(sl_rejects_block_done(rejects, &(sl_source_block){.sequence = order[i]}, &entry,
                                          &lists[order[i]], &error));
        passed_on read = pass_on(rejects, journal);
        assert_int_equal(read.count, for_journal[i]);
        assert_int_equal(read.table_bytes, i == 0 ? 0 : strlen(read_back("rejects.tsv")));
        /* In order: the sizes in an entry include the rejects of the entries before it. */
        for (size_t k = 0; k < read.count; k++)
            assert_int_equal(read.sequences[k], k);
    }
    sl_journal_close(journal);
    uint64_t written;
    assert_true(sl_rejects_close(rejects, &written, &error));
    assert_int_equal(written, 4);
    char expected[2000];
    snprintf(expected, sizeof expected,
             "source\tline\toffset\tcolumn\treason\trecord\n"
             "%1$s/data.txt\t1\t17\ttest_date\tfirst\tr1\n"
             "%1$s/data.txt\t20\t1999\ttest_date\tsecond\tr2\n"
             "%1$s/data.txt\t25\t2500\ttest_date\tthird\tr3|\\x09\n"
             "%1$s/data.txt\t\t5000\ttest_date\trefused: no\t{}\n",
             unit_folder());
    assert_string_equal(read_back("rejects.tsv"), expected);
    /* This file has the header and the unchanged records. */
    assert_string_equal(read_back("rejected/000001-data.txt"), "a|b\nr1\nr2\nr3|\t\n");
    for (int i = 0; i < 3; i++)
        sl_reject_list_clear(&lists[i]);
}

TEST(lines_are_counted_within_an_entry_of_an_archive) {
    sl_reject_files *rejects = open_rejects("year.zip.txt");
    static const sl_source_block blocks[] = {
        {.sequence = 0, .entry = "jan.csv", .entry_start = true},
        {.sequence = 1, .entry = "jan.csv"},
        {.sequence = 2, .entry = "feb.csv", .entry_start = true},
    };
    /* Lists that wait for earlier blocks must not keep the reader's pointer to the entry's name. */
    for (int i = 2; i >= 0; i--) {
        char lent[] = "???.csv";
        sl_source_block block = blocks[i];
        sl_reject_list list = {0};
        block.entry = memcpy(lent, blocks[i].entry, sizeof lent);
        add(&list, 2, (uint64_t)i * 1000, "bad", "r");
        assert_true(sl_rejects_block_done(rejects, &block, &ten_lines, &list, &error));
        memset(lent, '?', sizeof lent - 1);
        sl_reject_list_clear(&list);
    }
    assert_true(sl_rejects_close(rejects, NULL, &error));
    const char *text = read_back("rejects.tsv");
    assert_non_null(strstr(text, "year.zip.txt: jan.csv\t3\t0\t"));
    assert_non_null(strstr(text, "year.zip.txt: jan.csv\t13\t1000\t"));
    assert_non_null(strstr(text, "year.zip.txt: feb.csv\t3\t2000\t"));
}

/* The header of the first entry would give the records of the second one other columns. */
TEST(each_entry_of_an_archive_has_its_own_header_and_file) {
    static const char *const headers[] = {"id,from,to\n", "id,to,from\n"};
    sl_reject_files *rejects = open_rejects("two.zip.txt");
    sl_rejects_set_header(rejects, 0, sl_text_of(headers[0]), false);
    for (unsigned k = 0; k < 4; k++) { /* two blocks of each, the second one first */
        const unsigned i = k ^ 1;
        const uint64_t number = i / 2 + 1;
        char lent[16];
        const sl_source_block block = {
            .sequence = i, .entry = "x.csv", .entry_number = number, .entry_start = i % 2 == 0};
        sl_reject_list list = {0};
        strcpy(lent, headers[number - 1]);
        assert_true(sl_reject_list_begin(&list, sl_text_of(lent)));
        memset(lent, '?', sizeof lent);
        add(&list, 0, i * 1000, "bad", i < 2 ? "x,f,t" : "x,t,f");
        assert_true(sl_rejects_block_done(rejects, &block, &ten_lines, &list, &error));
        assert_int_equal(list.count, 0);
        sl_reject_list_clear(&list);
    }
    assert_true(sl_rejects_close(rejects, NULL, &error));
    assert_string_equal(read_back("rejected/000001-two.zip.txt"), "id,from,to\nx,f,t\nx,f,t\n");
    assert_string_equal(read_back("rejected/000001-two.zip.txt-2"), "id,to,from\nx,t,f\nx,t,f\n");
}

TEST(rejects_of_a_stopped_load_are_not_lost) {
    sl_reject_files *rejects = open_rejects("stopped.txt");
    sl_reject_list list = {0};
    add(&list, 4, 2500, "early", "r");
    /* Block 0 is never completed. */
    assert_true(sl_rejects_block_done(rejects, &(sl_source_block){.sequence = 1}, &ten_lines, &list,
                                      &error));
    assert_true(sl_rejects_close(rejects, NULL, &error));
    assert_non_null(strstr(read_back("rejects.tsv"), "stopped.txt\t\t2500\ttest_date\tearly\tr\n"));
    sl_reject_list_clear(&list);
}

/* Initialises the parts of a job that ranges.c reads. Source i has the number i * step + 5. */
static void lay_out(sl_job *job, unsigned sources, uint32_t shards, uint32_t step) {
    const char *paths[600] = {NULL};
    memset(job, 0, sizeof *job);
    static const sl_destination nowhere = {0};
    for (unsigned i = 0; i < sources; i++) {
        char name[32];
        snprintf(name, sizeof name, "source-%u", i);
        paths[i] = write_source(name);
    }
    job->set = set_of(paths, sources);
    job->sources = unit_keep(calloc(sources, sizeof *job->sources));
    job->active = sources;
    job->by_range = true;
    job->shards = shards;
    for (unsigned i = 0; i < sources; i++)
        job->sources[i].number = i * step + 5;
    assert_true(sl_ranges_lay_out(job, &nowhere, &error));
    unit_keep(job->ranges);
}

TEST(each_shard_has_its_share_of_each_source) {
    for (uint32_t shards = 1; shards <= 7; shards++) {
        sl_job job;
        lay_out(&job, 3, shards, 3);
        assert_int_equal(job.range_count, 3 * shards);
        for (size_t i = 0; i < job.range_count; i++) {
            assert_true(job.ranges[i].minimum < job.ranges[i].maximum);
            assert_true(i == 0 || job.ranges[i - 1].maximum <= job.ranges[i].minimum);
            assert_true(job.ranges[i].shard < shards);
        }
        /* The first documents of the sources start on different shards. */
        if (shards == 2)
            assert_int_not_equal(job.ranges[0].shard, job.ranges[2].shard);
        unsigned blocks[7] = {0};
        for (unsigned source = 0; source < 3; source++) {
            for (uint64_t block = 0; block < 400; block++) {
                int64_t id = sl_document_id(job.sources[source].number, block << SL_BLOCK_BITS);
                const sl_range *range = &job.ranges[sl_job_range_of(&job, id)];
                assert_true(id >= range->minimum && id < range->maximum);
                blocks[range->shard]++;
            }
        }
        for (uint32_t i = 0; i < shards; i++)
            assert_in_range(blocks[i], 1200 / shards - 40, 1200 / shards + 40);
    }
}

/* For --only-shards: each block belongs to exactly one shard, the one that its ids go to. */
TEST(each_block_belongs_to_the_shard_of_its_range) {
    static const struct {
        unsigned sources;
        uint32_t shards, step;
    } rows[] = {{1, 1, 1}, {3, 2, 3}, {3, 3, 1}, {2, 7, 1}, {1, 300, 1}, {500, 16, 1}, {500, 3, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_job job;
        lay_out(&job, rows[i].sources, rows[i].shards, rows[i].step);
        for (unsigned source = 0; source < rows[i].sources; source++) {
            const sl_job_source *from = &job.sources[source];
            for (uint64_t block = 0; block < 600; block++) {
                uint64_t offset = (block << SL_BLOCK_BITS) + block;
                int64_t id = sl_document_id(from->number, offset);
                const sl_range *range = &job.ranges[sl_job_range_of(&job, id)];
                assert_true(id >= range->minimum && id < range->maximum);
                assert_int_equal(sl_job_shard_at(&job, from, offset), range->shard);
            }
        }
    }
}

TEST(thousands_of_sources_share_ranges) {
    sl_job job;
    lay_out(&job, 500, 16, 1); /* 8,000 ranges would be too many */
    assert_in_range(job.range_count, 64, 4096);
    for (unsigned i = 0; i < 500; i++) {
        int64_t id = sl_document_id(job.sources[i].number, 123);
        const sl_range *range = &job.ranges[sl_job_range_of(&job, id)];
        assert_true(id >= range->minimum && id < range->maximum);
    }
    /* A range must not contain ids of a source that is not in this load; they would be counted. */
    lay_out(&job, 500, 16, 2);
    for (unsigned i = 0; i < 500; i++) {
        int64_t others = sl_document_id(job.sources[i].number + 1, 123);
        const sl_range *range = &job.ranges[sl_job_range_of(&job, others)];
        assert_true(others < range->minimum || others >= range->maximum);
    }
}

TEST(no_range_is_empty_with_more_shards_than_stripes) {
    sl_job job;
    lay_out(&job, 1, 300, 1);
    assert_int_equal(job.range_count, SL_STRIPES);
    for (size_t i = 0; i < job.range_count; i++)
        assert_true(job.ranges[i].minimum < job.ranges[i].maximum);
}

static bool look(void *context, const uint8_t *documents, const uint8_t *end, uint32_t count) {
    (void)context, (void)documents, (void)end, (void)count;
    return true;
}

/* A sample reads the first block of an entry before the columns have the types of the collection. A
 * worker with a later block took the entry's columns of that sample, and stored other types than
 * the worker with the first block. */
TEST(an_entry_that_was_sampled_is_read_again) {
    size_t length = (size_t)3 << 20;
    char *text = malloc(length);
    for (size_t i = 0; i < length; i++)
        text[i] = "a,b\n"[i % 4];
    const entry_spec entry = {.name = "t.csv", .bytes = text, .length = length};
    const char *path = unit_path("t.tar");
    make_archive(path, "gnutar", NULL, &entry, 1);
    const sl_load_config config = {.paths = &path, .path_count = 1, .format = "delimited"};
    sl_job job;
    sl_document_sample *sample;
    sl_sampled_block block;
    sl_job_init(&job, &config);
    assert_true(sl_sources_open(&job, &error));
    assert_true(sl_document_sample_create(&job, look, NULL, &sample, &error));
    assert_int_equal(sl_document_sample_read(sample, 0, 0, &block, &error), SL_READ_BLOCK);
    assert_non_null(job.sources[0].entries);
    sl_document_sample_destroy(sample);
    assert_null(job.sources[0].entries);
    sl_job_clear(&job);
    free(text);
}
