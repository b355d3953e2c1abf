/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the public library. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

#include <shardload/load.h>
#include <shardload/plan.h>
#include <shardload/query.h>
#include <shardload/report.h>

#include "cli/commands.h"
#include "cli/load_options.h"
#include "cli/query_options.h"
#include "cli/query_session.h"
#include "report/json.h"
#include "report/report.h"

static const sl_library_command load_command = {sl_load_rows, SL_COMMAND_LOAD, "load",
                                                sl_command_load};
static const sl_library_command verify_command = {sl_load_rows, SL_COMMAND_VERIFY, "verify",
                                                  sl_command_verify};
static const sl_library_command plan_command = {sl_load_rows, SL_COMMAND_PLAN, "plan",
                                                sl_command_plan};

shardload_code shardload_load(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error) {
    return sl_library_run(context, &load_command, options, sources, record, error);
}

shardload_code shardload_verify(shardload_context *context, const shardload_option *options,
                                const char *const *sources, char **record, shardload_error *error) {
    return sl_library_run(context, &verify_command, options, sources, record, error);
}

shardload_code shardload_plan(shardload_context *context, const shardload_option *options,
                              const char *const *sources, char **record, shardload_error *error) {
    return sl_library_run(context, &plan_command, options, sources, record, error);
}

/* ---- queries ---- */

static int run_queries(const sl_options *options, bson_t *report) {
    return sl_query_command(options, NULL, report);
}

static const sl_library_command query_command = {sl_query_rows, SL_QUERY_RUN, "query", run_queries};

shardload_code shardload_query(shardload_context *context, const shardload_option *options,
                               const char *const *suites, char **report, shardload_error *error) {
    return sl_library_run(context, &query_command, options, suites, report, error);
}

/* ---- reports ---- */

typedef struct page {
    const char *const *records;
    const char *title;
    char **html;
} page;

static int draw(void *argument, sl_error *error) {
    const page *p = argument;
    size_t count = 0, parsed = 0;
    while (p->records[count])
        count++;
    bson_t **records = calloc(count + 1, sizeof *records);
    bool ok = records || sl_error_memory(error, "reading records");
    for (; ok && parsed < count; parsed += ok) {
        bson_error_t why;
        records[parsed] = sl_json_parse(p->records[parsed], strlen(p->records[parsed]), &why);
        ok = records[parsed] ||
             sl_error_set(error, SL_EXIT_SOURCE, "record %zu: %s", parsed + 1, why.message);
        ok = ok &&
             (sl_report_check_record(records[parsed], error) ||
              (bson_destroy(records[parsed]), sl_error_prefix(error, "record %zu", parsed + 1)));
    }
    const sl_report report = {
        .records = (const bson_t *const *)records, .count = count, .title = p->title};
    if (ok && count == 0)
        ok = sl_error_set(error, SL_EXIT_USAGE, "no record is given");
    if (ok)
        *p->html = sl_report_html(&report, error);
    for (size_t i = 0; i < parsed; i++)
        bson_destroy(records[i]);
    free(records);
    return (int)error->code;
}

shardload_code shardload_report_html(shardload_context *context, const char *const *records,
                                     const char *title, char **html, shardload_error *error) {
    page p = {records, title, html};
    *html = NULL;
    return sl_library_call(context, draw, &p, error);
}
