/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery compare`: compares existing reports, or (--ab) runs both sides in pairs and compares
 * their reports.
 *
 * With --ab each run is a process with its own connections, because runs, not repeats within a run,
 * are independent. The order within each pair is random. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wordexp.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/text.h"

#include "query_session.h"

#define REPORTS_MAX 1000

typedef struct reports {
    bson_t *items[REPORTS_MAX];
    size_t count;
} reports;

static void clear_reports(reports *list) {
    for (size_t i = 0; i < list->count; i++)
        bson_destroy(list->items[i]);
}

static bool add_report(reports *list, const char *path, sl_error *error) {
    if (list->count == REPORTS_MAX)
        return sl_error_set(error, SL_EXIT_USAGE, "more than %d reports on one side", REPORTS_MAX);
    if (!sl_json_read_file(path, &list->items[list->count], error))
        return false;
    list->count++;
    return true;
}

static int is_json(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && entry->d_type != DT_FIFO && length > 5 &&
           strcmp(entry->d_name + length - 5, ".json") == 0;
}

/* Reads the reports of one side: a file, several with commas between them, or a folder of
 * *.json. */
static bool read_side(const char *text, reports *list, sl_error *error) {
    struct stat facts;
    bool ok = true;
    if (stat(text, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        struct dirent **entries;
        int count = scandir(text, &entries, is_json, alphasort);
        for (int i = 0; i < count; i++) {
            char *path = bson_strdup_printf("%s/%s", text, entries[i]->d_name);
            ok = ok && add_report(list, path, error);
            bson_free(path);
            free(entries[i]);
        }
        if (count >= 0)
            free(entries);
        return ok && (list->count > 0 ||
                      sl_error_set(error, SL_EXIT_SOURCE, "%s: no *.json in this folder", text));
    }
    if (stat(text, &facts) == 0) /* a file's name may contain a comma */
        return add_report(list, text, error);
    char *copy = strdup(text), *rest = copy;
    for (const char *path; ok && copy && (path = strsep(&rest, ","));)
        ok = add_report(list, path, error);
    free(copy);
    return copy ? ok : sl_error_memory(error, "reading reports");
}

/* ---- measuring in pairs ---- */

/* A and B: the arrays' elements 0 and 1. */
typedef struct ab_test {
    const sl_options *options;
    char *folder;       /* temporary */
    wordexp_t words[2]; /* of --a and --b */
    reports reports[2];
    _Atomic bool stop; /* set by an interrupt */
} ab_test;

/* The caller frees it; NULL without memory. */
static char *path_of_report(const ab_test *test, int side, unsigned number) {
    char *path;
    return asprintf(&path, "%s/%c%03u.json", test->folder, "ab"[side], number) < 0 ? NULL : path;
}

/* Runs `shardquery run WORDS... --quiet --report FILE SUITE...` and reads its report. */
static bool run_child(ab_test *test, int side, unsigned number, sl_error *error) {
    size_t common = sl_options_argument_count(test->options), count = 0;
    size_t words = test->words[side].we_wordc;
    const char **list = calloc(common + words + 8, sizeof *list);
    char *report = path_of_report(test, side, number);
    if (!list || !report) {
        free(list);
        free(report);
        return sl_error_memory(error, "starting a run");
    }
    list[count++] = "shardquery";
    list[count++] = "run";
    for (size_t i = 0; i < words; i++)
        list[count++] = test->words[side].we_wordv[i];
    list[count++] = "--quiet";
    list[count++] = "--report";
    list[count++] = report;
    for (size_t i = 0; i < common; i++)
        list[count++] = sl_options_argument(test->options, i);
    pid_t child = fork();
    if (child == 0) {
        if (!sl_options_words_to_environment(test->options, list, &count))
            _exit(SL_EXIT_RESOURCES);
        list[count] = NULL;
        if (!freopen("/dev/null", "w", stdout))
            _exit(127);
        execv("/proc/self/exe", (char *const *)(uintptr_t)list);
        _exit(127);
    }
    free(list);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    bool ok = child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok)
        sl_error_set(
            error, child > 0 && WIFEXITED(status) ? (sl_exit)WEXITSTATUS(status) : SL_EXIT_CLUSTER,
            "run %u of %c failed; its message is above", number + 1, "AB"[side]);
    ok = ok && sl_json_read_private(report, &test->reports[side].items[number], error);
    free(report);
    return ok;
}

static void remove_folder(const ab_test *test, size_t runs) {
    for (int side = 0; side < 2; side++) {
        for (unsigned i = 0; i < runs; i++) {
            char *path = path_of_report(test, side, i);
            if (path)
                sl_private_file_remove(path);
            free(path);
        }
    }
    sl_private_folder_remove(test->folder);
}

static bool measure_pairs(ab_test *test, sl_error *error) {
    unsigned runs = (unsigned)sl_option_number(test->options, "runs");
    uint64_t chance = sl_option_number(test->options, "seed") ^ (uint64_t)sl_clock_ns();
    bool progress = sl_screen_is_terminal(), ok = true;
    for (unsigned i = 0; ok && i < runs && !atomic_load(&test->stop); i++) {
        chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int first = (int)(chance >> 40 & 1);
        if (progress)
            sl_print_to(sl_screen_stream(), "\rpair %u of %u\033[K", i + 1, runs);
        ok = run_child(test, first, i, error) && run_child(test, 1 - first, i, error);
        if (ok)
            test->reports[0].count = test->reports[1].count = i + 1;
    }
    if (progress)
        fputs("\r\033[K", sl_screen_stream());
    return ok || test->reports[0].count > 0;
}

static bool split_words(const sl_options *options, const char *name, wordexp_t *words,
                        sl_error *error) {
    const char *text = sl_option_string(options, name);
    return wordexp(text ? text : "", words, WRDE_NOCMD | WRDE_UNDEF) == 0 ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--%s: cannot be split into words as by a shell; quote special characters",
                        name);
}

/* ---- the command ---- */

static bool compare(const sl_options *options, const reports *old, const reports *new, bool paired,
                    sl_exit *verdict, sl_error *error) {
    const sl_comparison_options how = {.paired = paired,
                                       .threshold =
                                           (double)sl_option_number(options, "threshold") / 1e4,
                                       .seed = sl_option_number(options, "seed")};
    const char *path = sl_option_string(options, "report");
    bson_t record = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&record, "program", "shardquery");
    BSON_APPEND_UTF8(&record, "command", "compare");
    BSON_APPEND_INT32(&record, "schema", 1);
    BSON_APPEND_DATE_TIME(&record, "date", sl_wall_clock_ms());
    bool ok = sl_reports_compare((const bson_t *const *)old->items, old->count,
                                 (const bson_t *const *)new->items, new->count, &how, sl_output(),
                                 &record, verdict, error) &&
              (!path || sl_json_write_file(path, &record, error));
    bson_destroy(&record);
    return ok;
}

static bool compare_ab(const sl_options *options, sl_exit *verdict, sl_error *error) {
    ab_test *test = calloc(1, sizeof *test);
    if (!test)
        return sl_error_memory(error, "measuring in pairs");
    test->options = options;
    bool both = sl_option_string(options, "a") && sl_option_string(options, "b");
    bool ok = both || sl_options_argument_count(options) > 0 ||
              sl_error_set(error, SL_EXIT_USAGE,
                           "--ab: name the suites to run, or name one in both --a and --b");
    ok = ok && split_words(options, "a", &test->words[0], error) &&
         split_words(options, "b", &test->words[1], error) &&
         (test->folder = sl_private_folder_temporary("shardquery", error));
    if (ok) {
        sl_query_listen(&test->stop);
        ok = measure_pairs(test, error);
        if (error->code)
            sl_query_fail(error);
        sl_error comparing = {0};
        if (ok &&
            !compare(options, &test->reports[0], &test->reports[1], true, verdict, &comparing)) {
            *error = comparing;
            ok = false;
        }
        remove_folder(test, (size_t)sl_option_number(options, "runs"));
    }
    for (int side = 0; side < 2; side++) {
        clear_reports(&test->reports[side]);
        if (test->words[side].we_wordv)
            wordfree(&test->words[side]);
    }
    free(test->folder);
    free(test);
    return ok;
}

static bool compare_files(const sl_options *options, sl_exit *verdict, sl_error *error) {
    reports *sides = calloc(2, sizeof *sides);
    if (!sides)
        return sl_error_memory(error, "reading reports");
    bool ok = sl_options_argument_count(options) == 2
                  ? read_side(sl_options_argument(options, 0), &sides[0], error) &&
                        read_side(sl_options_argument(options, 1), &sides[1], error) &&
                        compare(options, &sides[0], &sides[1], false, verdict, error)
                  : sl_error_set(error, SL_EXIT_USAGE,
                                 "compare needs two sides, OLD and NEW: each a report, several "
                                 "with commas between them, or a folder of reports");
    clear_reports(&sides[0]);
    clear_reports(&sides[1]);
    free(sides);
    return ok;
}

int sl_query_compare(const sl_options *options) {
    sl_error error = {0};
    sl_exit verdict = SL_EXIT_OK;
    const bool ab = sl_option_flag(options, "ab");
    if (!ab)
        sl_options_refuse(options, SL_FROM_COMMAND_LINE, "a|b|runs", "is for --ab", &error);
    if (error.code || !(ab ? compare_ab : compare_files)(options, &verdict, &error))
        return sl_query_fail(&error);
    return error.code ? (int)error.code : (int)verdict;
}
