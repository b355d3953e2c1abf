/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of BSON documents. */
#include "query.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "util/text_table.h"

#define COLUMNS_MAX SL_TEXT_COLUMNS_MAX

/* ---- documents ---- */

#define PATH_ROOM 200

typedef struct field {
    char path[PATH_ROOM]; /* "_id.make" */
    bool numbers;         /* all values are numbers or null */
    int decimals;         /* with which all its doubles are printed */
    bson_iter_t value;    /* in the current row */
    bool present;         /* in the current row */
} field;

typedef struct fields {
    field *items; /* room for COLUMNS_MAX */
    size_t count;
} fields;

static field *field_at(fields *all, const char *path) {
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->items[i].path, path) == 0)
            return &all->items[i];
    }
    if (all->count == COLUMNS_MAX)
        return NULL; /* further keys are not shown */
    field *added = &all->items[all->count++];
    *added = (field){.numbers = true};
    snprintf(added->path, sizeof added->path, "%s", path);
    return added;
}

static bool is_number(const bson_iter_t *value) {
    return BSON_ITER_HOLDS_INT32(value) || BSON_ITER_HOLDS_INT64(value) ||
           BSON_ITER_HOLDS_DOUBLE(value);
}

/* Two decimals, or as many (up to 8) as show two significant digits of a small value. */
static int decimals_for(double value) {
    if (value == 0 || !isfinite(value))
        return 2;
    int needed = 1 - (int)floor(log10(fabs(value)));
    return needed < 2 ? 2 : needed > 8 ? 8 : needed;
}

/* Sets the fields to the values of a document, and adds fields for new keys. */
static void read_fields(fields *all, const bson_iter_t *document, const char *prefix) {
    bson_iter_t value;
    bool more = bson_iter_recurse(document, &value);
    while (more && bson_iter_next(&value)) {
        char path[PATH_ROOM];
        bson_iter_t inside;
        int length = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "",
                              bson_iter_key(&value));
        /* An empty key would not lengthen the path, so the recursion would have no bound. */
        bool fits = length < (int)sizeof path && *bson_iter_key(&value);
        if (fits && BSON_ITER_HOLDS_DOCUMENT(&value) && bson_iter_recurse(&value, &inside) &&
            bson_iter_next(&inside)) {
            read_fields(all, &value, path);
            continue;
        }
        field *cell = field_at(all, path);
        if (!cell)
            continue;
        cell->value = value;
        cell->present = true;
        if (!is_number(&value) && !BSON_ITER_HOLDS_NULL(&value))
            cell->numbers = false;
        if (BSON_ITER_HOLDS_DOUBLE(&value)) {
            int decimals = decimals_for(bson_iter_double(&value));
            cell->decimals = decimals > cell->decimals ? decimals : cell->decimals;
        }
    }
}

static void put_date(sl_text_table *table, int64_t milliseconds) {
    time_t seconds = (time_t)(milliseconds / 1000 - (milliseconds % 1000 < 0));
    struct tm parts;
    char text[40];
    const char *format = seconds % 86400 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d";
    if (gmtime_r(&seconds, &parts) && strftime(text, sizeof text, format, &parts) > 0)
        sl_text_table_cell(table, "%s", text);
    else
        sl_text_table_cell(table, "%" PRId64 " ms", milliseconds);
}

static void put_integer(sl_text_table *table, int64_t number, bool in_id) {
    char figure[SL_HUMAN_ROOM];
    if (in_id)
        sl_text_table_cell(table, "%" PRId64, number);
    else
        sl_text_table_cell(
            table, "%s%s", number < 0 ? "-" : "",
            sl_human_count(number < 0 ? -(uint64_t)number : (uint64_t)number, figure));
}

static void put_json(sl_text_table *table, const bson_iter_t *value) {
    char *json = sl_json_value(value);
    sl_text_table_cell(table, "%s", json ? json : "?");
    free(json);
}

static void put_value(sl_text_table *table, const field *cell) {
    bool in_id = strcmp(cell->path, "_id") == 0 || strncmp(cell->path, "_id.", 4) == 0;
    const bson_iter_t *value = &cell->value;
    if (!cell->present)
        sl_text_table_cell(table, "%s", "");
    else if (BSON_ITER_HOLDS_INT32(value) || BSON_ITER_HOLDS_INT64(value))
        put_integer(table, bson_iter_as_int64(value), in_id);
    else if (BSON_ITER_HOLDS_DOUBLE(value) && in_id)
        sl_text_table_cell(table, "%.15g", bson_iter_double(value));
    else if (BSON_ITER_HOLDS_DOUBLE(value))
        sl_text_table_figure(table, true, bson_iter_double(value), cell->decimals);
    else if (BSON_ITER_HOLDS_UTF8(value))
        sl_text_table_cell(table, "%s", bson_iter_utf8(value, NULL));
    else if (BSON_ITER_HOLDS_DATE_TIME(value))
        put_date(table, bson_iter_date_time(value));
    else
        put_json(table, value);
}

bool sl_table_print_documents(const bson_t *documents, size_t rows, FILE *out, unsigned indent) {
    bool ok = false;
    sl_text_table *table = sl_text_table_create(NULL);
    fields all = {.items = calloc(COLUMNS_MAX, sizeof(field))};
    if (!table || !all.items)
        goto done;
    bson_iter_t row;
    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++)
        read_fields(&all, &row, "");
    for (size_t i = 0; i < all.count; i++)
        sl_text_table_column(table,
                             &(sl_text_column){all.items[i].path, .left = !all.items[i].numbers});

    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++) {
        for (size_t k = 0; k < all.count; k++)
            all.items[k].present = false;
        read_fields(&all, &row, "");
        for (size_t k = 0; k < all.count; k++)
            put_value(table, &all.items[k]);
    }
    ok = sl_text_table_print(table, out, indent);
done:
    free(all.items);
    sl_text_table_destroy(table);
    return ok;
}
