/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload report`: records of runs as an HTML file, or as text for the terminal. */
#include "commands.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/json.h"
#include "report/report.h"
#include "util/context.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#include "load_setup.h"

typedef struct inputs {
    bson_t **records;
    char **names;
    size_t count;
} inputs;

static void clear(inputs *in) {
    for (size_t i = 0; in->records && i < in->count; i++)
        bson_destroy(in->records[i]);
    for (size_t i = 0; in->names && i < in->count; i++)
        free(in->names[i]);
    free(in->records);
    free(in->names);
}

/* The title of a record: its file's name, or its folder's name when the file has a common name such
 * as run.json. */
static char *name_of(const char *path) {
    static const char *const common[] = {"run.json", "tune.json", "reload.json", "plan.json"};
    const char *base = strrchr(path, '/');
    size_t length = strlen(base ? base + 1 : path);
    for (size_t i = 0; base && base > path && i < sizeof common / sizeof common[0]; i++) {
        if (strcmp(base + 1, common[i]) != 0)
            continue;
        const char *end = base;
        while (base > path && base[-1] != '/')
            base--;
        return strndup(base, (size_t)(end - base));
    }
    base = base ? base + 1 : path;
    if (length > 5 && strcmp(base + length - 5, ".json") == 0)
        length -= 5;
    return strndup(base, length);
}

/* Reads all files; the problems of all files are reported together. */
static bool read_records(const sl_options *options, inputs *in, sl_error *error) {
    size_t count = sl_options_argument_count(options);
    if (count == 0)
        return sl_option_problem(error, "name a record, such as the run.json of a load");
    in->records = calloc(count, sizeof *in->records);
    in->names = calloc(count, sizeof *in->names);
    if (!in->records || !in->names)
        return sl_error_memory(error, "reading records");
    for (; in->count < count; in->count++) {
        const char *path = sl_options_argument(options, in->count);
        sl_error one = {0};
        if (!(in->names[in->count] = name_of(path)))
            return sl_error_memory(error, "reading records");
        if (sl_json_read_file(path, &in->records[in->count], &one) &&
            sl_report_check_record(in->records[in->count], &one))
            continue;
        if (in->records[in->count])
            sl_error_prefix(&one, "%s", path);
        sl_exit code = error->code ? error->code : one.code;
        sl_option_problem(error, SL_LINES, one.message);
        error->code = code;
    }
    return !error->code;
}

static bool write_html(const sl_report *report, const char *path, sl_error *error) {
    char *text = sl_report_html(report, error);
    if (!text)
        return false;
    size_t length = strlen(text);
    bool ok;
    if (strcmp(path, "-") == 0) {
        ok = fwrite(text, 1, length, sl_output()) == length && fflush(sl_output()) == 0;
        if (!ok)
            sl_error_set(error, SL_EXIT_USAGE, "the report cannot be written to standard output");
    } else {
        ok = sl_private_file_replace(path, text, length, error);
    }
    free(text);
    return ok;
}

/* 0 when standard output is not a terminal and COLUMNS is not set. */
static unsigned terminal_columns(void) {
    struct winsize size = {0};
    uint64_t columns = 0;
    const char *variable = getenv("COLUMNS");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    bool valid = variable && sl_text_to_u64(sl_text_of(variable), &columns) && columns < 1000;
    return valid ? (unsigned)columns : 0;
}

/* Is UTF-8 the encoding of the locale in the environment? */
static bool terminal_is_utf8(void) {
    locale_t users = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = users && strcmp(nl_langinfo_l(CODESET, users), "UTF-8") == 0;
    if (users)
        freelocale(users);
    return utf8;
}

int sl_command_report(const sl_options *options) {
    inputs in = {0};
    sl_error error = {0};
    const char *html = sl_option_string(options, "html");
    if (read_records(options, &in, &error)) {
        sl_report report = {.records = (const bson_t *const *)in.records,
                            .names = (const char *const *)in.names,
                            .count = in.count,
                            .title = sl_option_string(options, "title")};
        if (html) {
            write_html(&report, html, &error);
        } else {
            sl_report_terminal terminal = {
                .columns = terminal_columns(),
                .ascii = sl_option_flag(options, "ascii") || !terminal_is_utf8(),
            };
            sl_report_text(&report, &terminal, sl_output(), &error);
        }
    }
    if (error.code)
        sl_log_error(SL_LINES, error.message);
    clear(&in);
    return error.code;
}
