/* SPDX-License-Identifier: Apache-2.0 */
/* Text tables, whose columns are as wide as their widest cell, and tables of BSON documents. */
#include "query.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "util/print.h"
#include "util/text.h"

#define CELL_ROOM 80
#define COLUMNS_MAX 64

typedef struct column {
    char *title;
    size_t width; /* of the widest cell, in characters */
    bool right;
} column;

struct sl_table {
    column columns[COLUMNS_MAX];
    size_t column_count;
    char **cells;
    size_t cell_count;
    size_t cell_room;
    bool failed; /* a column or cell could not be added */
};

sl_table *sl_table_create(void) {
    return calloc(1, sizeof(sl_table));
}

void sl_table_destroy(sl_table *table) {
    if (!table)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        free(table->columns[i].title);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

static char *printable(const char *text) {
    char shown[CELL_ROOM];
    sl_text_printable(sl_text_of(text), shown, sizeof shown);
    return strdup(shown);
}

bool sl_table_column(sl_table *table, const char *title, bool right) {
    char *shown = table->column_count < COLUMNS_MAX ? printable(title) : NULL;
    if (!shown) {
        table->failed = true;
        return false;
    }
    table->columns[table->column_count++] = (column){shown, sl_letters(sl_text_of(shown)), right};
    return true;
}

void sl_table_columns(sl_table *table, const char *const *titles, const char *sides) {
    for (; *sides; sides++)
        sl_table_column(table, *titles++, *sides == 'r');
}

bool sl_table_cell(sl_table *table, const char *format, ...) {
    char *text = NULL;
    if (table->failed || table->column_count == 0)
        return false;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    char *shown = length < 0 ? NULL : printable(text);
    if (length >= 0)
        free(text);
    if (shown && table->cell_count == table->cell_room) {
        size_t room = table->cell_room ? 2 * table->cell_room : 64;
        char **cells = realloc(table->cells, room * sizeof *cells);
        table->cells = cells ? cells : table->cells;
        table->cell_room = cells ? room : table->cell_room;
    }
    if (!shown || table->cell_count == table->cell_room) {
        free(shown);
        table->failed = true;
        return false;
    }
    column *col = &table->columns[table->cell_count % table->column_count];
    size_t width = sl_letters(sl_text_of(shown));
    if (width > col->width)
        col->width = width;
    table->cells[table->cell_count++] = shown;
    return true;
}

bool sl_table_figure_cell(sl_table *table, bool known, double value, int decimals) {
    char figure[SL_FIGURE_ROOM];
    return sl_table_cell(table, "%s", known ? sl_table_figure(value, decimals, figure) : "-");
}

static void print_cell(FILE *out, const sl_table *table, size_t index, const char *text) {
    const column *col = &table->columns[index];
    bool last = index + 1 == table->column_count;
    int blanks = (int)(col->width - sl_letters(sl_text_of(text)));
    if (col->right)
        sl_print_to(out, "%*s%s", blanks, "", text);
    else
        sl_print_to(out, "%s%*s", text, last ? 0 : blanks, "");
    fputs(last ? "\n" : "  ", out);
}

bool sl_table_print(const sl_table *table, FILE *out, unsigned indent) {
    if (table->failed || table->column_count == 0)
        return !table->failed;
    static const char rule[CELL_ROOM] = "----------------------------------------"
                                        "---------------------------------------";
    sl_print_to(out, "%*s", (int)indent, "");
    for (size_t i = 0; i < table->column_count; i++)
        print_cell(out, table, i, table->columns[i].title);
    sl_print_to(out, "%*s", (int)indent, "");
    for (size_t i = 0; i < table->column_count; i++)
        sl_print_to(out, "%.*s" SL_LINES, (int)table->columns[i].width, rule,
                    i + 1 == table->column_count ? "\n" : "  ");
    for (size_t i = 0; i < table->cell_count; i++) {
        if (i % table->column_count == 0)
            sl_print_to(out, "%*s", (int)indent, "");
        print_cell(out, table, i % table->column_count, table->cells[i]);
    }
    return true;
}

char *sl_table_figure(double value, int decimals, char out[SL_FIGURE_ROOM]) {
    char plain[SL_FIGURE_ROOM];
    int length = snprintf(plain, sizeof plain, "%.*f", decimals, value);
    size_t whole = strcspn(plain, ".");
    size_t first = plain[0] == '-';
    if (!isfinite(value) || length >= (int)sizeof plain || whole + whole / 3 + 10 > sizeof plain) {
        snprintf(out, SL_FIGURE_ROOM, "%.6g", value); /* such as 1e+40 */
        return out;
    }
    char *to = out;
    for (size_t i = 0; i < whole; i++) {
        if (i > first && (whole - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    snprintf(to, SL_FIGURE_ROOM - (size_t)(to - out), "%s", plain + whole);
    return out;
}

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

static bool put_date(sl_table *table, int64_t milliseconds) {
    time_t seconds = (time_t)(milliseconds / 1000 - (milliseconds % 1000 < 0));
    struct tm parts;
    char text[40];
    if (!gmtime_r(&seconds, &parts) ||
        strftime(text, sizeof text, seconds % 86400 ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d", &parts) ==
            0)
        return sl_table_cell(table, "%" PRId64 " ms", milliseconds);
    return sl_table_cell(table, "%s", text);
}

static bool put_json(sl_table *table, const bson_iter_t *value) {
    char *json = sl_json_value(value);
    bool ok = sl_table_cell(table, "%s", json ? json : "?");
    free(json);
    return ok;
}

static bool put_value(sl_table *table, const field *cell) {
    char figure[SL_FIGURE_ROOM];
    bool in_id = strcmp(cell->path, "_id") == 0 || strncmp(cell->path, "_id.", 4) == 0;
    const bson_iter_t *value = &cell->value;
    if (!cell->present)
        return sl_table_cell(table, "%s", "");
    switch (bson_iter_type(value)) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64: {
        int64_t number = bson_iter_as_int64(value);
        if (in_id)
            return sl_table_cell(table, "%" PRId64, number);
        return sl_table_cell(
            table, "%s%s", number < 0 ? "-" : "",
            sl_human_count(number < 0 ? -(uint64_t)number : (uint64_t)number, figure));
    }
    case BSON_TYPE_DOUBLE:
        if (in_id)
            return sl_table_cell(table, "%.15g", bson_iter_double(value));
        return sl_table_cell(table, "%s",
                             sl_table_figure(bson_iter_double(value), cell->decimals, figure));
    case BSON_TYPE_UTF8:
        return sl_table_cell(table, "%s", bson_iter_utf8(value, NULL));
    case BSON_TYPE_DATE_TIME:
        return put_date(table, bson_iter_date_time(value));
    default:
        return put_json(table, value);
    }
}

bool sl_table_print_documents(const bson_t *documents, size_t rows, FILE *out, unsigned indent) {
    bool ok = false;
    sl_table *table = sl_table_create();
    fields all = {.items = calloc(COLUMNS_MAX, sizeof(field))};
    if (!table || !all.items)
        goto done;
    bson_iter_t row;
    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++)
        read_fields(&all, &row, "");
    for (size_t i = 0; i < all.count; i++)
        sl_table_column(table, all.items[i].path, all.items[i].numbers);

    bson_iter_init(&row, documents);
    for (size_t i = 0; i < rows && bson_iter_next(&row); i++) {
        for (size_t k = 0; k < all.count; k++)
            all.items[k].present = false;
        read_fields(&all, &row, "");
        for (size_t k = 0; k < all.count; k++)
            put_value(table, &all.items[k]);
    }
    ok = sl_table_print(table, out, indent);
done:
    free(all.items);
    sl_table_destroy(table);
    return ok;
}
