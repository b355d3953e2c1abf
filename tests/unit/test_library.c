/* SPDX-License-Identifier: Apache-2.0 */
/* The public library, without a server: two loads at once, options, errors, plans, reports. */
#include "unit.h"

#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shardload/load.h>
#include <shardload/plan.h>
#include <shardload/query.h>
#include <shardload/report.h>
#include <shardload/version.h>

#include "util/context.h"

static const char *const none[] = {NULL};

/* ---- two loads at once ---- */

typedef struct loading {
    unsigned rows, files;
    const char *folder;
    shardload_context *context;
    pthread_barrier_t *begin;
    _Atomic unsigned lines, foreign; /* log lines; those that belong to the other load */
    const char *mine, *other;        /* names that occur in the logs */
    shardload_code code;
    shardload_error error;
    char *record;
} loading;

static void on_log(void *data, shardload_level level, const char *text) {
    loading *one = data;
    (void)level;
    one->lines++;
    if (strstr(text, one->other))
        one->foreign++;
}

static void make_files(loading *one) {
    one->folder = unit_path(one->mine);
    assert_int_equal(mkdir(one->folder, 0700), 0);
    for (unsigned f = 0; f < one->files; f++) {
        char path[100];
        snprintf(path, sizeof path, "%s/%s-%u.csv", one->folder, one->mine, f);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "number,text\n");
        for (unsigned i = 0; i < one->rows; i++)
            fprintf(file, "%u,%s row %u\n", i, one->mine, i);
        fclose(file);
    }
}

static void *load(void *context) {
    loading *one = context;
    char work[100], sink[100], source[100];
    snprintf(work, sizeof work, "%s/run", one->folder);
    snprintf(sink, sizeof sink, "bson:%s/out.bson", one->folder);
    snprintf(source, sizeof source, "%s/", one->folder);
    const shardload_option options[] = {{"sink", sink},       {"work-dir", work},
                                        {"include", "*.csv"}, {"skip-other", "true"},
                                        {"threads", "2"},     {NULL, NULL}};
    const char *const sources[] = {source, NULL};
    pthread_barrier_wait(one->begin);
    one->code = shardload_load(one->context, options, sources, &one->record, &one->error);
    return NULL;
}

static size_t pages_mapped(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages;
}

/* Each thread that is not joined keeps its stack of 8 MiB. */
TEST(loads_leave_no_threads) {
    pthread_barrier_t begin;
    size_t before = 0;
    loading one = {.rows = 9, .files = 1, .mine = "plums", .other = "pears", .begin = &begin};
    pthread_barrier_init(&begin, NULL, 1);
    make_files(&one);
    for (int i = 0; i < 40; i++) {
        one.context = shardload_context_create(NULL);
        load(&one);
        assert_string_equal(one.error.message, "");
        before = i == 5 ? pages_mapped() : before;
        shardload_free(one.record);
        shardload_context_destroy(one.context);
    }
    assert_true(pages_mapped() < before + (256u << 20) / (size_t)sysconf(_SC_PAGESIZE));
    pthread_barrier_destroy(&begin);
}

TEST(two_loads_at_once_do_not_mix) {
    pthread_barrier_t begin;
    pthread_barrier_init(&begin, NULL, 2);
    loading loads[2] = {{.rows = 40000, .files = 3, .mine = "apples", .other = "pears"},
                        {.rows = 50000, .files = 2, .mine = "pears", .other = "apples"}};
    for (int i = 0; i < 2; i++) {
        const shardload_receivers receivers = {.log = on_log, .data = &loads[i]};
        make_files(&loads[i]);
        loads[i].begin = &begin;
        loads[i].context = shardload_context_create(&receivers);
        assert_non_null(loads[i].context);
    }
    unit_run_threads(2, load, loads, sizeof loads[0]);
    for (int i = 0; i < 2; i++) {
        char expected[64], path[100], line[400];
        bool log_is_mine = true;
        unsigned lines = 0;
        assert_string_equal(loads[i].error.message, "");
        assert_int_equal(loads[i].code, SHARDLOAD_OK);
        snprintf(expected, sizeof expected, "\"inserted\" : %u", loads[i].rows * loads[i].files);
        assert_contains(loads[i].record, expected);
        assert_true(loads[i].lines > 0);
        assert_int_equal(loads[i].foreign, 0);
        snprintf(path, sizeof path, "%s/run/shardload.log", loads[i].folder);
        FILE *log = fopen(path, "r");
        assert_non_null(log);
        for (; fgets(line, sizeof line, log); lines++)
            log_is_mine = log_is_mine && !strstr(line, loads[i].other);
        fclose(log);
        assert_true(log_is_mine && lines > 3);
        shardload_free(loads[i].record);
        shardload_context_destroy(loads[i].context);
    }
    pthread_barrier_destroy(&begin);
}

/* ---- one command ---- */

static shardload_context *context; /* of the test; see begin */
static shardload_error error;

static void destroy(void *unused) {
    (void)unused;
    shardload_context_destroy(context);
}

static void begin(void) {
    context = shardload_context_create(NULL);
    assert_non_null(context);
    unit_release_later(destroy, NULL);
}

TEST(all_wrong_options_are_reported_together) {
    begin();
    const shardload_option options[] = {
        {"thread", "2"}, {"batch-size", "many"}, {"suite", "mot"}, {NULL, NULL}};
    char *record = (char *)1;
    assert_int_equal(shardload_load(context, options, none, &record, &error), SHARDLOAD_USAGE);
    assert_null(record);
    assert_contains(error.message, "thread: there is no such option of `load`; did you mean "
                                   "threads?");
    assert_contains(error.message, "batch-size: \"many\" is not a whole number");
    assert_contains(error.message, "suite: there is no such option of `load`");
}

TEST(the_environment_is_not_read) {
    begin();
    const shardload_option options[] = {
        {"sink", "null"}, {"format", "ycsb"}, {"records", "100"}, {NULL, NULL}};
    setenv("SHARDLOAD_RECORDS", "many", 1);
    setenv("SHARDLOAD_THREADS", "many", 1);
    assert_int_equal(shardload_load(context, options, none, NULL, &error), SHARDLOAD_OK);
    unsetenv("SHARDLOAD_RECORDS");
    unsetenv("SHARDLOAD_THREADS");
}

TEST(an_error_has_the_message_of_the_program) {
    begin();
    const shardload_option options[] = {{"sink", "null"}, {NULL, NULL}};
    const char *const sources[] = {"/there/is/no/such.file", NULL};
    assert_int_equal(shardload_load(context, options, sources, NULL, &error), SHARDLOAD_SOURCE);
    assert_string_equal(error.message, "/there/is/no/such.file: No such file or directory");
    assert_int_equal(shardload_load(context, options, sources, NULL, NULL), SHARDLOAD_SOURCE);
}

TEST(a_plan_and_a_page_of_it) {
    begin();
    char *record, *html;
    const shardload_option options[] = {
        {"format", "ycsb"}, {"records", "100000"}, {"shards", "3"}, {NULL, NULL}};
    assert_int_equal(shardload_plan(context, options, none, &record, &error), SHARDLOAD_OK);
    assert_contains(record, "\"command\" : \"plan\"");
    const char *const records[] = {record, NULL}, *const bad[] = {"{\"a\": 1}", NULL};
    assert_int_equal(shardload_report_html(context, records, "A plan", &html, &error),
                     SHARDLOAD_OK);
    assert_contains(html, "A plan");
    shardload_free(html);
    assert_int_equal(shardload_report_html(context, bad, NULL, &html, &error), SHARDLOAD_SOURCE);
    assert_contains(error.message, "record 1");
    assert_null(html);
    shardload_free(record);
}

TEST(a_query_without_a_suite_is_refused) {
    begin();
    char *report;
    assert_int_equal(shardload_query(context, NULL, none, &report, &error), SHARDLOAD_USAGE);
    assert_contains(error.message, "name a suite");
    assert_null(report);
}

/* ---- the calling process ---- */

#define COMMA "de_DE.UTF-8"

static void end_locale(void *unused) {
    (void)unused;
    setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
}

/* Makes a locale with a decimal comma, and lets setlocale find it. Skips the test without it. */
static void make_comma_locale(void) {
    char command[200];
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s >/dev/null 2>&1",
             unit_path(COMMA));
    bool made = system(command) == 0;
    setenv("LOCPATH", unit_folder(), 1);
    unit_release_later(end_locale, NULL);
    if (!made || !setlocale(LC_ALL, COMMA)) {
        print_message("localedef cannot make the locale " COMMA "\n");
        skip();
    }
    setlocale(LC_ALL, "C");
}

/* Has the calling thread a locale with a decimal comma? */
static bool has_comma(void) {
    return strtod("0,5", NULL) > 0;
}

/* Loads two numbers, and checks the stored ones and the record. */
static void load_numbers(shardload_context *in) {
    static const char text[] = "a,b\n0.123,1.7976931348623157e308\n";
    char sink[100], *record;
    const char *kept = unit_path("out.bson"), *source = unit_path("t.csv");
    const char *work = unit_path("work");
    size_t length;
    snprintf(sink, sizeof sink, "bson:%s", kept);
    unit_write(source, text, sizeof text - 1);
    const shardload_option options[] = {
        {"sink", sink}, {"work-dir", work}, {"max-rejects", "0.5%"}, {NULL, NULL}};
    const char *const sources[] = {source, NULL};
    assert_int_equal(shardload_load(in, options, sources, &record, &error), SHARDLOAD_OK);
    bool comma = has_comma();
    sl_binding before = sl_context_bind(NULL); /* libbson and cmocka print numbers, too */
    bson_t document;
    bson_iter_t a, b;
    bson_t *read = unit_keep_bson(bson_new_from_json((const uint8_t *)record, -1, NULL));
    assert_true(bson_has_field(read, "accounting"));
    shardload_free(record);
    const uint8_t *bytes = (const uint8_t *)unit_read(kept, &length);
    assert_true(bson_init_static(&document, bytes, length));
    assert_true(bson_iter_init_find(&a, &document, "a"));
    assert_true(bson_iter_init_find(&b, &document, "b"));
    assert_near(bson_iter_double(&a), 0.123, 0);
    assert_near(bson_iter_double(&b), 1.7976931348623157e308, 0);
    sl_context_restore(before);
    assert_true(comma);
}

TEST(a_decimal_comma_changes_no_number) {
    make_comma_locale();
    begin();
    assert_non_null(setlocale(LC_ALL, COMMA));
    load_numbers(context);
    assert_true(has_comma());
    /* Also when a command fails, and when the context was stopped. */
    const shardload_option wrong[] = {{"threads", "0.5"}, {NULL, NULL}};
    assert_int_equal(shardload_load(context, wrong, none, NULL, &error), SHARDLOAD_USAGE);
    assert_true(has_comma());
    shardload_stop(context);
    assert_true(has_comma());
    assert_int_equal(shardload_plan(context, NULL, none, NULL, &error), SHARDLOAD_INTERRUPTED);
    assert_true(has_comma());
}

static void change_locale(void *data, shardload_level level, const char *text) {
    (void)data, (void)level, (void)text;
    setlocale(LC_ALL, COMMA);
}

TEST(a_locale_that_is_set_during_a_load_changes_no_number) {
    make_comma_locale();
    context = shardload_context_create(&(shardload_receivers){.log = change_locale});
    assert_non_null(context);
    unit_release_later(destroy, NULL);
    load_numbers(context);
}

TEST(a_thread_keeps_its_own_locale) {
    make_comma_locale();
    begin();
    locale_t own = newlocale(LC_ALL_MASK, COMMA, (locale_t)0);
    assert_true(own != (locale_t)0);
    locale_t before = uselocale(own);
    load_numbers(context);
    assert_true(uselocale((locale_t)0) == own);
    uselocale(before);
    freelocale(own);
    assert_false(has_comma());
}

TEST(a_password_leaves_the_process_as_it_is) {
    begin();
    const shardload_option options[] = {
        {"uri", "mongodb://user:secret@127.0.0.1:1/?serverSelectionTimeoutMS=50"},
        {"db", "a"},
        {"collection", "b"},
        {"pipeline", "[]"},
        {NULL, NULL}};
    int before = prctl(PR_GET_DUMPABLE);
    assert_int_equal(shardload_query(context, options, none, NULL, &error), SHARDLOAD_CLUSTER);
    assert_int_equal(prctl(PR_GET_DUMPABLE), before);
    assert_int_equal(before, 1);
}

TEST(an_argument_that_is_null_is_an_error) {
    begin();
    const shardload_option options[] = {{"sink", NULL}, {"threads", NULL}, {NULL, NULL}};
    const char *const records[] = {"{}", NULL};
    typedef shardload_code command(shardload_context *, const shardload_option *,
                                   const char *const *, char **, shardload_error *);
    static command *const commands[] = {shardload_load, shardload_verify, shardload_plan,
                                        shardload_query};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char *record = (char *)1;
        assert_int_equal(commands[i](NULL, NULL, none, &record, &error), SHARDLOAD_USAGE);
        assert_string_equal(error.message, "the argument `context` is NULL");
        assert_null(record);
        assert_int_equal(commands[i](context, NULL, NULL, NULL, &error), SHARDLOAD_USAGE);
        assert_contains(error.message, i < 3 ? "source" : "suite"); /* NULL is an empty list */
        assert_int_equal(commands[i](NULL, NULL, NULL, NULL, NULL), SHARDLOAD_USAGE);
    }
    assert_int_equal(shardload_load(context, options, none, NULL, &error), SHARDLOAD_USAGE);
    assert_contains(error.message, "sink: its value is NULL");
    assert_contains(error.message, "threads: its value is NULL");
    char *html;
    assert_int_equal(shardload_report_html(NULL, records, NULL, &html, &error), SHARDLOAD_USAGE);
    assert_int_equal(shardload_report_html(context, NULL, NULL, &html, &error), SHARDLOAD_USAGE);
    assert_string_equal(error.message, "the argument `records` is NULL");
    assert_int_equal(shardload_report_html(context, records, NULL, NULL, &error), SHARDLOAD_USAGE);
    assert_string_equal(error.message, "the argument `html` is NULL");
    shardload_stop(NULL);
    shardload_context_destroy(NULL);
    shardload_free(NULL);
}

TEST(a_stopped_context_runs_nothing) {
    begin();
    const shardload_option options[] = {
        {"sink", "null"}, {"format", "ycsb"}, {"records", "100"}, {NULL, NULL}};
    shardload_stop(context);
    assert_int_equal(shardload_load(context, options, none, NULL, &error), SHARDLOAD_INTERRUPTED);
}

static void *stop_soon(void *unused) {
    (void)unused;
    usleep(300000);
    shardload_stop(context);
    return NULL;
}

TEST(a_load_can_be_stopped) {
    begin();
    pthread_t thread;
    const shardload_option options[] = {
        {"sink", "null"}, {"format", "ycsb"}, {"records", "5G"}, {NULL, NULL}};
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    assert_int_equal(shardload_load(context, options, none, NULL, &error), SHARDLOAD_INTERRUPTED);
    pthread_join(thread, NULL);
}

/* The load opens the pipe when it examines its sources. */
static void *stop_before_the_first_record(void *pipe) {
    FILE *file = fopen(pipe, "w");
    shardload_stop(context);
    fputs("id,name\n1,a\n2,b\n", file);
    fclose(file);
    return NULL;
}

TEST(a_load_that_is_stopped_before_it_begins_loads_nothing) {
    begin();
    pthread_t thread;
    char sink[80];
    const char *pipe = unit_path("pipe.csv"), *kept = unit_path("kept"), *work = unit_path("work");
    snprintf(sink, sizeof sink, "bson:%s", kept);
    unit_write(kept, "mine", 4);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(
        pthread_create(&thread, NULL, stop_before_the_first_record, (void *)(uintptr_t)pipe), 0);
    const shardload_option options[] = {{"sink", sink}, {"work-dir", work}, {NULL, NULL}};
    const char *const sources[] = {pipe, NULL};
    assert_int_equal(shardload_load(context, options, sources, NULL, &error),
                     SHARDLOAD_INTERRUPTED);
    pthread_join(thread, NULL);
    size_t length;
    assert_string_equal(unit_read(kept, &length), "mine");
    assert_int_equal(unlink(kept), 0);
    assert_int_equal(unlink(pipe), 0);
    assert_int_equal(rmdir(unit_folder()), 0); /* the load has left no work directory */
}

TEST(the_version_has_three_numbers) {
    unsigned a, b, c;
    assert_int_equal(sscanf(shardload_version(), "%u.%u.%u", &a, &b, &c), 3);
}
