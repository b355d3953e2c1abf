/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload doctor` from start to end: runs the rows of the table of checks. A check that cannot
 * read its figures reports that they are unknown, and why; the following checks still run. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>

#include "util/grow.h"
#include "util/log.h"

#include "examine.h"

#define ROW(id, name) {name, sl_check_##id},
static const struct {
    const char *name;
    void (*run)(sl_examined *examined, sl_findings *findings);
} checks[] = {SL_DOCTOR_CHECKS(ROW)};

/* ---- findings ---- */

sl_finding *sl_find(sl_findings *findings, sl_verdict verdict, const char *meaning,
                    const char *figure, ...) {
    sl_finding *items =
        sl_grow(findings->items, findings->count, &findings->room, sizeof *findings->items);
    sl_finding *finding = &findings->spare;
    if (items) {
        findings->items = items;
        finding = &items[findings->count++];
        *finding = (sl_finding){.check = findings->check, .verdict = verdict};
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

void sl_find_unknown(sl_findings *findings, const char *why, const char *meaning) {
    sl_find(findings, SL_VERDICT_UNKNOWN, meaning, SL_LINES, why);
}

static void findings_clear(sl_findings *findings) {
    for (size_t i = 0; i < findings->count; i++)
        bson_destroy(findings->items[i].values);
    bson_destroy(findings->spare.values);
    free(findings->items);
}

/* ---- the page ---- */

sl_exit sl_doctor_run(const sl_doctor_config *config) {
    sl_error error = {0};
    sl_examined examined;
    sl_findings findings = {0};
    sl_exit code = SL_EXIT_OK;
    findings.spare.values = bson_new();
    sl_log_level level = sl_log_set_level(config->json ? SL_LOG_WARNING : SL_LOG_INFO);
    bool ok = sl_examine(config, &examined, &error);
    for (size_t i = 0; ok && i < sizeof checks / sizeof checks[0]; i++) {
        findings.check = checks[i].name;
        checks[i].run(&examined, &findings);
    }
    for (size_t i = 0; i < findings.count; i++) {
        if (findings.items[i].verdict == SL_VERDICT_PROBLEM)
            code = SL_EXIT_VERIFICATION;
    }
    ok = ok && (!findings.failed || sl_error_memory(&error, "examining the target")) &&
         sl_doctor_print(&examined, &findings, code, &error);
    if (!ok) {
        sl_error_missing(&error, "the examination");
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    findings_clear(&findings);
    sl_examined_clear(&examined);
    sl_log_set_level(level);
    return code;
}
