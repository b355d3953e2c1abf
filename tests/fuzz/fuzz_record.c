/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what reads records: the input is JSON, a record or not. Its last byte selects `report`
 * (HTML or terminal), the comparison with an earlier reload, or `status`. Each writes its text, or
 * fails with an error message. Text of the record must not become HTML elements of the page, nor
 * control characters on the terminal. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "report/json.h"
#include "report/report.h"
#include "trial/reload_report.h"
#include "util/context.h"

#include "check.h"

static const char completed[] =
    "{\"command\": \"reload\", \"exitCode\": 0, \"ended\": true, \"version\": \"1\", \"sample\": 1,"
    " \"accounting\": {\"inserted\": 1000}, \"options\": {\"threads\": \"2\", \"index\": [\"a\"]},"
    " \"phases\": [{\"name\": \"load\", \"seconds\": 2.5}, {\"name\": \"query\", \"seconds\": 9}]}";

static const sl_command commands[] = {{"status", SL_COMMAND_STATUS, "", "", "", true, NULL}, {0}};
static const sl_program program = {.name = "shardload",
                                   .environment_prefix = "SHARDLOAD",
                                   .commands = commands,
                                   .rows = sl_load_rows};

/* Compares a reload with the record of an earlier one. */
static void compare_reload(const bson_t *record, bool with_itself) {
    sl_error error = {0};
    bson_t *now = sl_json_parse(completed, sizeof completed - 1, NULL);
    require(now != NULL, "the record of the reload is valid");
    if (!sl_drill_check_last(record, &error) ||
        !sl_drill_compare(record, with_itself ? record : now, &error))
        check_error(&error);
    bson_destroy(now);
}

/* Shows the record as the status.json of a work directory. */
static void show_status(const uint8_t *text, size_t length, bool as_json) {
    static char folder[64], path[80];
    char *words[] = {"shardload", "status", folder, as_json ? "--json" : NULL, NULL};
    sl_options *options;
    sl_error error;
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/%s/fuzz_record-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "dev/shm" : "tmp");
        require(mkdtemp(folder) != NULL, "a folder can be created");
        snprintf(path, sizeof path, "%s/status.json", folder);
    }
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(file >= 0 && write(file, text, length) == (ssize_t)length, "the file can be written");
    close(file);
    require(sl_options_parse(&program, as_json ? 4 : 3, words, &options, &error) == SL_OPTIONS_RUN,
            "the options are valid");
    sl_command_status(options);
    sl_options_destroy(options);
}

/* Runs one of the two, and checks what it shows. */
static void show(const uint8_t *text, size_t length, const bson_t *record, uint8_t flags) {
    char *shown;
    size_t shown_length;
    FILE *stream = open_memstream(&shown, &shown_length);
    sl_surroundings around = {.program = "fuzz", .output = stream, .screen = stream};
    sl_context *context = sl_context_create(&around);
    require(stream && context, "allocation succeeds");
    sl_binding before = sl_context_bind(context);
    if (flags & 128)
        show_status(text, length, flags & 1);
    else
        compare_reload(record, flags & 1);
    sl_context_restore(before);
    sl_context_destroy(context);
    fclose(stream);
    for (size_t i = 0; i < shown_length; i++)
        require((uint8_t)shown[i] >= ' ' || shown[i] == '\n', "control characters are escaped");
    free(shown);
}

static size_t occurrences(const char *text, const char *of) {
    size_t count = 0;
    for (; (text = strstr(text, of)); text++)
        count++;
    return count;
}

/* Tags are balanced, there is no <script>, and no coordinate is NaN or infinite. */
static void check_html(const char *html) {
    static const char *const pairs[][2] = {{"<svg ", "</svg>"},   {"<figure>", "</figure>"},
                                           {"<text ", "</text>"}, {"<table>", "</table>"},
                                           {"<td ", "</td>"},     {"<title>", "</title>"},
                                           {"<p", "</p>"},        {"<ul ", "</ul>"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t opened = occurrences(html, pairs[i][0]);
        if (strcmp(pairs[i][0], "<p") == 0)
            opened -= occurrences(html, "<path");
        require(opened == occurrences(html, pairs[i][1]), pairs[i][1]);
    }
    require(!strstr(html, "<script"), "the page has no scripts");
    /* Quotes in the record's text are escaped, so an attribute with a quote is the renderer's. */
    static const char *const bad[] = {"=\"nan",   "=\"-nan",   "=\"inf",
                                      "d=\"Mnan", "d=\"M-nan", "d=\"Minf"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        require(!strstr(html, bad[i]), "coordinates are finite");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bson_error_t wrong;
    sl_error error = {0};
    uint8_t flags = size > 0 ? data[size - 1] : 0;
    bson_t *record = sl_json_parse((const char *)data, size > 0 ? size - 1 : 0, &wrong);
    if (!record)
        return 0;
    if (flags & 192) {
        show(data, size - 1, record, flags);
        bson_destroy(record);
        return 0;
    }
    const bson_t *const records[] = {record, record};
    const sl_report report = {.records = records, .count = 1 + (flags & 1)};
    bool written;
    if (flags & 2) {
        const sl_report_terminal terminal = {flags, (flags & 4) != 0};
        written = sl_report_text(&report, &terminal, null_stream(), &error);
    } else {
        char *html = sl_report_html(&report, &error);
        written = html != NULL;
        if (html)
            check_html(html);
        free(html);
    }
    if (!written)
        check_error(&error);
    bson_destroy(record);
    return 0;
}
