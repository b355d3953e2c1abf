/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload doctor` from start to end: runs the rows of the table of checks. A check that cannot
 * read its figures reports that they are unknown, and why; the following checks still run. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/run_record.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/log.h"
#include "util/text.h"

#include "examine.h"

#define WIDTH 79
#define VERDICT_WIDTH 9
#define CHECK_WIDTH 17
#define GROUP_SHOWN 6 /* findings of several shards that have the same meaning */
#define INDENT (2 + VERDICT_WIDTH + CHECK_WIDTH)

/* Does the check run for this server? */
static bool concerns(const sl_check *row, const sl_examined *examined,
                     const sl_examined_server *server) {
    bool front = server == sl_examined_front(examined), primary = server->role == SL_ROLE_PRIMARY;
    const bool concerned[] = {
        [SL_CHECK_FRONT] = front,
        [SL_CHECK_ROUTER] = front && examined->server->deployment == SL_SHARDED,
        [SL_CHECK_PRIMARIES] = primary,
        [SL_CHECK_REPLICATED] = primary && examined->server->deployment != SL_STANDALONE,
    };
    return concerned[row->servers];
}

static void run_check(const sl_check *row, sl_check_findings *findings) {
    const sl_examined *examined = findings->examined;
    findings->check = row->name;
    if (row->all)
        row->all(examined, findings);
    for (size_t i = 0; row->each && i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        const sl_server_answer *answer = &server->answers[row->question];
        if (!concerns(row, examined, server))
            continue;
        if (row->without && !answer->ok)
            sl_find_unknown(findings, answer->why, row->without);
        else
            row->each(server, findings);
    }
}

/* ---- findings ---- */

sl_check_finding *sl_find(sl_check_findings *findings, sl_check_verdict verdict,
                          const char *meaning, const char *figure, ...) {
    sl_check_finding *items =
        sl_grow(findings->items, findings->count, &findings->room, sizeof *findings->items);
    sl_check_finding *finding = &findings->spare;
    if (items) {
        findings->items = items;
        finding = &items[findings->count++];
        *finding = (sl_check_finding){.check = findings->check, .verdict = verdict};
        finding->values = bson_new();
    }
    findings->failed = findings->failed || !items;
    va_list arguments;
    va_start(arguments, figure);
    sl_print_text_v(finding->figure, sizeof finding->figure, figure, arguments);
    va_end(arguments);
    sl_print_text(finding->meaning, sizeof finding->meaning, "%s", meaning);
    return finding;
}

void sl_find_unknown(sl_check_findings *findings, const char *why, const char *meaning) {
    sl_find(findings, SL_CHECK_UNKNOWN, meaning, SL_LINES, why);
}

static const char *const verdict_names[SL_CHECK_VERDICTS] = {"ok", "warning", "problem", "unknown"};

static void count_verdicts(const sl_check_findings *findings, size_t counts[SL_CHECK_VERDICTS]) {
    memset(counts, 0, SL_CHECK_VERDICTS * sizeof *counts);
    for (size_t i = 0; i < findings->count; i++)
        counts[findings->items[i].verdict]++;
}

/* ---- the page, as text ---- */

/* Prints a text from column INDENT on, in lines of WIDTH; the first line has already been begun. */
static void print_wrapped(FILE *out, const char *text) {
    while (*text) {
        size_t room = WIDTH - INDENT, length = strlen(text);
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ')
                length--;
            if (length == 0) /* one long word */
                length = strcspn(text, " ");
        }
        sl_print_to(out, "%.*s\n", (int)length, text);
        text += length + strspn(text + length, " ");
        if (*text)
            sl_print_to(out, "%*s", INDENT, "");
    }
}

/* The number of findings from `first` on that differ only in their figures, such as those of many
 * shards. */
static size_t group_length(const sl_check_findings *findings, size_t first) {
    const sl_check_finding *a = &findings->items[first];
    size_t length = 1;
    for (; first + length < findings->count; length++) {
        const sl_check_finding *b = &findings->items[first + length];
        if (a->verdict != b->verdict || strcmp(a->check, b->check) != 0 ||
            strcmp(a->meaning, b->meaning) != 0)
            break;
    }
    return length;
}

static void print_group(const sl_check_finding *findings, size_t count, FILE *out) {
    sl_print_to(out, "  %-*s%-*s", VERDICT_WIDTH, verdict_names[findings->verdict], CHECK_WIDTH,
                findings->check);
    for (size_t i = 0; i < count && i < GROUP_SHOWN; i++) {
        if (i > 0)
            sl_print_to(out, "%*s", INDENT, "");
        print_wrapped(out, findings[i].figure);
    }
    if (count > GROUP_SHOWN)
        sl_print_to(out, "%*s... and %zu more like these\n", INDENT, "", count - GROUP_SHOWN);
    if (findings->meaning[0]) {
        sl_print_to(out, "%*s", INDENT, "");
        print_wrapped(out, findings->meaning);
    }
}

static void print_text(const sl_examined *examined, const sl_check_findings *findings, FILE *out) {
    const sl_load_config *load = examined->config->load;
    size_t counts[SL_CHECK_VERDICTS];
    char bytes[SL_HUMAN_ROOM];
    count_verdicts(findings, counts);
    sl_print_to(out, "%s: %s, server %s\n", sl_connection_display_uri(examined->connection),
                sl_deployment_name(examined->server->deployment), examined->server->version);
    if (load->database)
        sl_print_to(out, "for a load into %s%s%s\n", load->database, load->collection ? "." : "",
                    load->collection ? load->collection : "");
    if (examined->preview)
        sl_print_to(out, "of about %s, %s of BSON\n",
                    sl_plural((uint64_t)examined->preview->all.documents.value, "document"),
                    sl_human_bytes(examined->preview->all.bson_bytes.value, bytes));
    sl_print_to(out, "\n");
    for (size_t i = 0, length; i < findings->count; i += length) {
        length = group_length(findings, i);
        print_group(&findings->items[i], length, out);
    }
    sl_print_to(out, "\n%s, %s, %zu unknown, %zu ok\n",
                sl_plural(counts[SL_CHECK_PROBLEM], "problem"),
                sl_plural(counts[SL_CHECK_WARNING], "warning"), counts[SL_CHECK_UNKNOWN],
                counts[SL_CHECK_OK]);
}

/* ---- the page, as JSON ---- */

static void append_findings(bson_t *record, const sl_check_findings *findings) {
    bson_t array, item;
    BSON_APPEND_ARRAY_BEGIN(record, "checks", &array);
    for (size_t i = 0; i < findings->count; i++) {
        const sl_check_finding *finding = &findings->items[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "check", finding->check);
        BSON_APPEND_UTF8(&item, "verdict", verdict_names[finding->verdict]);
        BSON_APPEND_UTF8(&item, "figure", finding->figure);
        BSON_APPEND_UTF8(&item, "meaning", finding->meaning);
        if (bson_count_keys(finding->values) > 0)
            BSON_APPEND_DOCUMENT(&item, "values", finding->values);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

static bool print_json(const sl_examined *examined, const sl_check_findings *findings, sl_exit code,
                       FILE *out, sl_error *error) {
    static const char *const names[SL_CHECK_VERDICTS] = {"ok", "warnings", "problems", "unknown"};
    const sl_load_config *load = examined->config->load;
    size_t counts[SL_CHECK_VERDICTS];
    bson_t record = BSON_INITIALIZER, section;
    count_verdicts(findings, counts);
    sl_record_head(&record, "doctor", load->program_version, examined->started, load->options);
    sl_connection_record(examined->connection, &record);
    append_findings(&record, findings);
    BSON_APPEND_DOCUMENT_BEGIN(&record, "verdicts", &section);
    for (size_t i = 0; i < SL_CHECK_VERDICTS; i++)
        BSON_APPEND_INT64(&section, names[i], (int64_t)counts[i]);
    bson_append_document_end(&record, &section);
    sl_record_tail(&record, code);
    char *text = sl_json_text(&record, error);
    bson_destroy(&record);
    if (text)
        fputs(text, out);
    free(text);
    return text != NULL;
}

/* ---- the command ---- */

sl_exit sl_doctor_run(const sl_doctor_config *config) {
    sl_error error = {0};
    sl_examined examined;
    sl_check_findings findings = {.examined = &examined};
    sl_exit code = SL_EXIT_OK;
    findings.spare.values = bson_new();
    sl_log_level level = sl_log_set_level(config->json ? SL_LOG_WARNING : SL_LOG_DETAIL);
    bool ok = sl_examine(config, &examined, &error);
    for (size_t i = 0; ok && i < sl_check_count; i++)
        run_check(&sl_checks[i], &findings);
    for (size_t i = 0; i < findings.count; i++) {
        if (findings.items[i].verdict == SL_CHECK_PROBLEM)
            code = SL_EXIT_VERIFICATION;
    }
    ok = ok && (!findings.failed || sl_error_memory(&error, "examining the target"));
    if (ok && examined.config->json)
        ok = print_json(&examined, &findings, code, sl_output(), &error);
    else if (ok)
        print_text(&examined, &findings, sl_output());
    fflush(sl_output()); /* a failure is reported at the end of the program */
    if (!ok) {
        sl_error_missing(&error, "the examination");
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    for (size_t i = 0; i < findings.count; i++)
        bson_destroy(findings.items[i].values);
    bson_destroy(findings.spare.values);
    free(findings.items);
    sl_examined_clear(&examined);
    sl_log_set_level(level);
    return code;
}
