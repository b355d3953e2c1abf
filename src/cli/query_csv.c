/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run`: figures as CSV. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory_stream.h"
#include "util/print.h"
#include "util/private_file.h"

#include "query_session.h"

/* The columns: dotted paths in an entry of the report. */
/* clang-format off */
static const char *const columns[] = {
    "suite", "name", "mode", "phase", "readPreference", "limit", "clients", "rate", "documents",
    "examined", "seconds", "attempted", "succeeded", "failed", "skipped", "operationsPerSecond",
    "minMs", "medianMs", "meanMs", "deviationMs", "maxMs", "documentsPerMsMean",
    "documentsPerMsDeviation", "latencyMs.mean", "latencyMs.p50", "latencyMs.p90", "latencyMs.p95",
    "latencyMs.p99", "latencyMs.p99_9", "latencyMs.max", "resultCount", "resultBytes", "answer",
};
/* clang-format on */
#define COLUMNS (sizeof columns / sizeof columns[0])

/* Quotes text that contains a delimiter, a quote or a line end. Text that a spreadsheet would
 * compute as a formula gets an apostrophe before it; numbers are not text. */
static void put_text(FILE *out, const char *text) {
    const char *formula = *text && strchr("=+-@\t\r", *text) ? "'" : "";
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(formula, out);
        fputs(text, out);
        return;
    }
    fprintf(out, "\"%s", formula);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_value(FILE *out, const bson_iter_t *value) {
    if (BSON_ITER_HOLDS_UTF8(value))
        put_text(out, bson_iter_utf8(value, NULL));
    else if (BSON_ITER_HOLDS_DOUBLE(value))
        sl_print_to(out, "%.9g", bson_iter_double(value));
    else
        sl_print_to(out, "%" PRId64, bson_iter_as_int64(value));
}

bool sl_query_csv_write(const bson_t *queries, const char *path, sl_error *error) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    bson_iter_t entry, inside, value;
    if (!out || !bson_iter_init(&entry, queries))
        return sl_error_memory(error, "writing figures");
    for (size_t i = 0; i < COLUMNS; i++)
        sl_print_to(out, "%s%s", i ? "," : "", columns[i]);
    fputs("\r\n", out);
    while (bson_iter_next(&entry)) {
        for (size_t i = 0; i < COLUMNS; i++) {
            fputs(i ? "," : "", out);
            if (bson_iter_recurse(&entry, &inside) &&
                bson_iter_find_descendant(&inside, columns[i], &value))
                put_value(out, &value);
        }
        fputs("\r\n", out);
    }
    bool ok = fclose(out) == 0 ? sl_private_file_replace(path, text, length, error)
                               : sl_error_memory(error, "writing figures");
    free(text);
    return ok;
}
