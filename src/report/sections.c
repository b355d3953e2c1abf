/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of records and the fields that each kind must have; rows of figures as facts, tables
 * and bars; and the parts that several kinds use: values as text, phases, options, totals. */
#include "sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lookup.h"
#include "util/load_counts.h"
#include "util/text.h"

/* ---- values ---- */

const char *sl_section_time(sl_page *page, const bson_t *record, const char *path) {
    double milliseconds = sl_look_number(record, path);
    const char *written = sl_look_text(record, path); /* 2026-11-20T16:31:34Z */
    struct tm parts;
    char text[40];
    if (written && strlen(written) >= 16)
        return sl_page_text(page, "%.10s %.5s", written, written + 11);
    if (!(milliseconds > 0 && milliseconds < 4e12)) /* until the year 2096 */
        return "";
    time_t seconds = (time_t)(milliseconds / 1000);
    if (!gmtime_r(&seconds, &parts) || strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts) == 0)
        return "";
    return sl_page_text(page, "%s", text);
}

const char *sl_section_number(sl_page *page, double value, sl_unit unit) {
    char human[SL_HUMAN_ROOM];
    return sl_page_text(page, "%s", sl_value_text(value, unit, human));
}

const sl_mode_row *sl_section_mode(const bson_t *record) {
    return &sl_modes[sl_mode_named(sl_look_text(record, "accounting.mode"))];
}

#define ENDING(name, code, shardload, shardquery, tone, words) {code, SL_TONE_##tone, words},

const char *sl_section_exit(const bson_t *record, double code, sl_tone *tone) {
    static const struct {
        int code;
        sl_tone tone;
        const char *words;
    } endings[] = {SL_EXITS(ENDING)};
    const sl_mode_row *mode = sl_section_mode(record);
    const char *own = code == SL_EXIT_OK        ? mode->complete
                      : code == SL_EXIT_REJECTS ? mode->with_rejects
                                                : NULL;
    *tone = SL_TONE_BAD;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (code == endings[i].code) {
            *tone = endings[i].tone;
            return own ? own : endings[i].words;
        }
    }
    return "Not ended";
}

const char *sl_section_value(sl_page *page, const bson_t *record, const char *path, sl_unit unit) {
    return sl_section_number(page, sl_look_number(record, path), unit);
}

static const char *scalar_text(sl_page *page, const bson_iter_t *value) {
    if (BSON_ITER_HOLDS_UTF8(value))
        return bson_iter_utf8(value, NULL);
    if (BSON_ITER_HOLDS_BOOL(value))
        return bson_iter_bool(value) ? "yes" : "no";
    if (BSON_ITER_HOLDS_DOUBLE(value))
        return sl_page_text(page, "%.6g", bson_iter_double(value));
    if (BSON_ITER_HOLDS_INT(value))
        return sl_page_text(page, "%" PRId64, bson_iter_as_int64(value));
    return NULL;
}

const char *sl_section_words(sl_page *page, const bson_iter_t *value) {
    bson_iter_t items;
    const char *all = NULL;
    if (!BSON_ITER_HOLDS_ARRAY(value) || !bson_iter_recurse(value, &items))
        return scalar_text(page, value);
    for (unsigned i = 0; i < 20 && bson_iter_next(&items); i++) {
        const char *one = scalar_text(page, &items);
        if (one)
            all = all ? sl_page_text(page, "%.2000s, %.300s", all, one) : one;
    }
    return all;
}

/* ---- rows of figures ---- */

double sl_section_figure(const bson_t *item, const sl_figure *figure) {
    return figure->value ? figure->value(item) : sl_look_number(item, figure->path);
}

const char *sl_cell_text(sl_page *page, const bson_t *item, const char *path) {
    (void)page;
    return sl_look_text(item, path);
}

const char *sl_cell_scalar(sl_page *page, const bson_t *item, const char *path) {
    bson_iter_t at;
    const char *text = bson_iter_init_find(&at, item, path) ? scalar_text(page, &at) : NULL;
    return text ? text : "";
}

const char *sl_cell_ratio(sl_page *page, const bson_t *item, const char *path) {
    double ratio = sl_look_number(item, path);
    return isnan(ratio) ? "-" : sl_page_text(page, "%.2f", ratio);
}

/* "2026-11-20 16:31 UTC", or NULL. */
static const char *cell_moment(sl_page *page, const bson_t *item, const char *path) {
    const char *when = sl_section_time(page, item, path);
    return *when ? sl_page_text(page, "%s UTC", when) : NULL;
}

static const char *cell_of(sl_page *page, const bson_t *item, const sl_figure *figure) {
    sl_cell_function *make = figure->left ? figure->left : figure->right;
    if (make)
        return make(page, item, figure->path);
    if (figure->least > 0 && sl_look_amount(item, "succeeded", INFINITY) < figure->least)
        return "-";
    const char *number = sl_section_number(page, sl_section_figure(item, figure), figure->unit);
    return figure->suffix ? sl_page_text(page, "%s%s", number, figure->suffix) : number;
}

void sl_section_facts(sl_page *page, const bson_t *record, const sl_figure *facts) {
    sl_page_table *table = sl_page_add_facts(page);
    for (; facts->title; facts++) {
        if (!facts->always && !(sl_section_figure(record, facts) >= 0))
            continue;
        sl_page_cell(page, table, facts->title);
        sl_page_cell(page, table, cell_of(page, record, facts));
    }
}

sl_page_table *sl_section_columns(sl_page *page, const char *title, const sl_figure *columns) {
    const char *titles[SL_COLUMNS_MAX];
    char left[SL_COLUMNS_MAX];
    size_t count = 0;
    for (; columns[count].title && count < SL_COLUMNS_MAX; count++) {
        titles[count] = columns[count].title;
        left[count] = columns[count].left ? 'l' : 'r';
    }
    return sl_page_add_table(page, title, titles, left, count);
}

void sl_section_row(sl_page *page, sl_page_table *table, const bson_t *item,
                    const sl_figure *columns) {
    for (; columns->title; columns++)
        sl_page_cell(page, table, cell_of(page, item, columns));
}

/* Has a document of the array this figure? */
static bool any_has(const bson_t *record, const sl_array *array, const sl_figure *figure) {
    for (sl_walk walk = sl_walk_start(record, array->path); sl_walk_next(&walk);) {
        if ((!array->shown || array->shown(&walk.item)) &&
            !isnan(sl_section_figure(&walk.item, figure)))
            return true;
    }
    return false;
}

void sl_section_table(sl_page *page, const bson_t *record, const sl_array *array) {
    sl_figure columns[SL_COLUMNS_MAX] = {array->columns[0]};
    sl_page_table *table = NULL;
    size_t count = 1, rows = 0;
    for (const sl_figure *one = array->columns + 1; one->title && count + 1 < SL_COLUMNS_MAX;
         one++) {
        if (!array->sparse || any_has(record, array, one))
            columns[count++] = *one;
    }
    for (sl_walk walk = sl_walk_start(record, array->path); sl_walk_next(&walk);) {
        if (array->shown && !array->shown(&walk.item))
            continue;
        if (!table)
            table = sl_section_columns(page, array->title, columns);
        if (rows++ < SL_ROWS_MAX)
            sl_section_row(page, table, &walk.item, columns);
    }
    sl_section_more(page, table, rows);
}

#define BARS_MAX 60

void sl_section_bars(sl_page *page, const bson_t *record, const sl_array *array) {
    size_t count = 0;
    if (!any_has(record, array, &array->bar))
        return;
    sl_bars *bars = sl_page_add_bars(page, array->title, array->caption, array->bar.unit);
    for (sl_walk walk = sl_walk_start(record, array->path);
         sl_walk_next(&walk) && count < BARS_MAX;) {
        const bson_t *item = &walk.item;
        double value = sl_section_figure(item, &array->bar);
        if ((array->shown && !array->shown(item)) || (!array->gaps && !(value >= 0)))
            continue;
        sl_bar *bar = sl_page_bar(page, bars, array->label(page, item), value,
                                  cell_of(page, item, &array->bar));
        count++;
        if (bar && array->low) {
            bar->low = sl_look_number(item, array->low);
            bar->high = sl_look_number(item, array->high);
        }
    }
}

void sl_section_more(sl_page *page, sl_page_table *table, size_t rows) {
    if (rows <= SL_ROWS_MAX || !table)
        return;
    sl_page_cell(page, table, sl_page_text(page, "and %zu more", rows - SL_ROWS_MAX));
    for (size_t i = 1; i < table->columns; i++)
        sl_page_cell(page, table, "");
}

void sl_section_emphasize(sl_page_table *table) {
    if (table)
        table->emphasized = table->count / table->columns - 1;
}

void sl_section_texts(sl_page *page, const bson_t *record, const char *path, sl_tone tone) {
    bson_t list;
    bson_iter_t at;
    bool more = sl_look_inside(record, path, &list) && bson_iter_init(&at, &list);
    for (unsigned i = 0; i < 20 && more && bson_iter_next(&at); i++) {
        if (BSON_ITER_HOLDS_UTF8(&at))
            sl_page_add_text(page, tone == SL_TONE_PLAIN ? SL_BLOCK_TEXT : SL_BLOCK_VERDICT, tone,
                             "%s", bson_iter_utf8(&at, NULL));
    }
}

/* ---- phases ---- */

/* More phases than any run has; limits the work on a malicious record. */
#define PARTS_MAX 64

double sl_section_phase_seconds(const bson_t *record, const char *path, const char *name) {
    double seconds = sl_look_phase_seconds(record, path, name);
    return isnan(seconds) ? 0 : seconds;
}

void sl_section_phase_parts(sl_page *page, sl_strips *strips, sl_strip *strip, const bson_t *record,
                            const char *path) {
    size_t parts = 0;
    for (sl_walk walk = sl_walk_start(record, path); sl_walk_next(&walk) && parts < PARTS_MAX;
         parts++) {
        const char *name = sl_look_text(&walk.item, "name");
        sl_page_part(page, strips, strip, name ? name : "?",
                     sl_look_amount(&walk.item, "seconds", 0));
    }
}

sl_strip *sl_section_phase_strip(sl_page *page, sl_strips *strips, const bson_t *record,
                                 const char *path, const char *label) {
    sl_strip *strip = sl_page_strip(page, strips, label);
    sl_section_phase_parts(page, strips, strip, record, path);
    return strip;
}

void sl_section_phase_table(sl_page *page, const bson_t *record, const char *path,
                            const char *title) {
    static const char *const titles[] = {"phase", "time", "share"};
    double all = sl_section_phase_seconds(record, path, NULL);
    size_t rows = 0;
    if (sl_walk_count(record, path) == 0)
        return;
    sl_page_table *table = sl_page_add_table(page, title, titles, "lrr", 3);
    for (sl_walk walk = sl_walk_start(record, path); sl_walk_next(&walk);) {
        if (rows++ >= SL_ROWS_MAX)
            continue;
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        sl_page_cell(page, table, sl_look_text(&walk.item, "name"));
        sl_page_cell(page, table, sl_section_value(page, &walk.item, "seconds", SL_UNIT_SECONDS));
        sl_page_cell(page, table,
                     sl_section_number(page, all > 0 ? seconds / all : 0, SL_UNIT_SHARE));
    }
    sl_section_more(page, table, rows);
    sl_page_cell(page, table, "total");
    sl_page_cell(page, table, sl_section_number(page, all, SL_UNIT_SECONDS));
    sl_page_cell(page, table, "");
    sl_section_emphasize(table);
}

/* ---- options, server, client ---- */

/* Is an option shown? Not if it is off, or has its default; older records do not show which were
 * given. */
static bool is_shown(const bson_t *record, const char *name, const char *value) {
    bson_t given;
    bson_iter_t at;
    if (!sl_option_matters(name) || strcmp(value, "false") == 0)
        return false;
    if (!sl_look_inside(record, "optionsGiven", &given) || !bson_iter_init(&at, &given))
        return true;
    while (bson_iter_next(&at)) {
        if (BSON_ITER_HOLDS_UTF8(&at) && strcmp(bson_iter_utf8(&at, NULL), name) == 0)
            return true;
    }
    return false;
}

/* The scalars of the document at `path` as a table of name and value. */
static void list_values(sl_page *page, const bson_t *record, const char *path, const char *title) {
    const char *const titles[] = {title, "value"};
    bson_t inner;
    bson_iter_t at;
    size_t row = 0;
    if (!sl_look_inside(record, path, &inner) || !bson_iter_init(&at, &inner))
        return;
    sl_page_table *table = NULL;
    while (bson_iter_next(&at) && row < SL_ROWS_MAX) {
        const char *value = sl_section_words(page, &at);
        if (!value ||
            (strcmp(path, "options") == 0 && !is_shown(record, bson_iter_key(&at), value)))
            continue;
        if (row++ == 0)
            table = sl_page_add_table(page, NULL, titles, "ll", 2);
        sl_page_cell(page, table, bson_iter_key(&at));
        sl_page_cell(page, table, value);
    }
}

void sl_section_setting(sl_page *page, const bson_t *record) {
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Settings");
    list_values(page, record, "options", "option");
    list_values(page, record, "server", "server");
    list_values(page, record, "client", "client");
    list_values(page, record, "machine", "machine");
    static const char *const titles[] = {"program", "value"};
    static const sl_figure rows[] = {
        {"program", .left = sl_cell_text},
        {"version", .left = sl_cell_text},
        {"driver", .left = sl_cell_text},
        {"instructions", .left = sl_cell_text},
        {"startedAt", .left = cell_moment},
        {"endedAt", .left = cell_moment},
        {0},
    };
    sl_page_table *table = sl_page_add_table(page, NULL, titles, "ll", 2);
    for (const sl_figure *row = rows; row->title; row++) {
        const char *value = row->left(page, record, row->title);
        if (!value)
            continue;
        sl_page_cell(page, table, row->title);
        sl_page_cell(page, table, value);
    }
}

/* ---- totals ---- */

/* "mot.tests"; "" when the record names none. */
static const char *section_target(sl_page *page, const bson_t *record) {
    bson_iter_t at;
    const char *names[2] = {"", ""};
    static const char *const options[] = {"db", "collection"};
    for (size_t i = 0; i < 2; i++) {
        if (sl_option_find(record, options[i], &at) && BSON_ITER_HOLDS_UTF8(&at))
            names[i] = bson_iter_utf8(&at, NULL);
    }
    return *names[0] && *names[1] ? sl_page_text(page, "%.80s.%.200s", names[0], names[1]) : "";
}

void sl_section_accounting(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"outcome", "records", "share"};
    bson_t account;
    if (!sl_look_inside(record, "accounting", &account))
        return;
    sl_page_table *table = sl_page_add_table(page, "Outcome of the records", titles, "lrr", 3);
    double records = sl_look_amount(&account, "records", 0);
    const sl_mode_row *mode = sl_section_mode(record);
    SL_FOR_COUNTS(one) {
        const sl_count_row *row = &one->row;
        char label[SL_COUNT_LABEL_ROOM];
        double value = row->key ? sl_look_amount(&account, row->key, 0) : 0;
        if (!row->key || !sl_count_is_shown(row, mode, SL_ON_PAGES, value > 0))
            continue;
        sl_page_cell(page, table,
                     sl_page_text(page, "%s", sl_count_label(row, mode, false, label)));
        sl_page_cell(page, table, sl_section_number(page, value, SL_UNIT_COUNT));
        sl_page_cell(page, table,
                     row->of_records && records > 0
                         ? sl_section_number(page, value / records, SL_UNIT_SHARE)
                         : "");
    }
}

/* ---- kinds of records ---- */

typedef struct kind {
    const char *program, *command;
    const char *title;
    const char *array;    /* a required array, or NULL */
    const char *document; /* a required document, or NULL */
    const char *mark;     /* a document that only this kind of the command's records has, or NULL */
    void (*one)(sl_page *page, const bson_t *record);
    void (*several)(sl_page *page, const sl_records *records); /* NULL: call `one` for each */
    bool (*belong)(const sl_records *records); /* do these runs belong to one shared load? NULL:
                                                  never */
    void (*together)(sl_page *page, const sl_records *records); /* shows such parts */
} kind;

static const kind kinds[] = {
    {.program = "shardload",
     .command = "load",
     .title = "Load",
     .array = "phases",
     .document = "accounting",
     .one = sl_sections_load,
     .several = sl_sections_loads,
     .belong = sl_sections_are_shared,
     .together = sl_sections_shared},
    {.program = "shardload",
     .command = "tune",
     .title = "Tuning",
     .array = "settings",
     .one = sl_sections_tune},
    {.program = "shardload",
     .command = "reload",
     .title = "Disaster-recovery drill",
     .array = "phases",
     .one = sl_sections_reload,
     .several = sl_sections_reloads},
    {.program = "shardload",
     .command = "plan",
     .title = "Capacity model",
     .mark = "capacity",
     .one = sl_sections_capacity},
    {.program = "shardload",
     .command = "plan",
     .title = "Plan",
     .array = "sources",
     .document = "estimate",
     .one = sl_sections_plan},
    {.program = "shardquery",
     .command = "run",
     .title = "Queries",
     .array = "queries",
     .one = sl_sections_queries},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static bool has(const bson_t *record, const char *path, bool array) {
    bson_iter_t at;
    return bson_iter_init_find(&at, record, path) &&
           (array ? BSON_ITER_HOLDS_ARRAY(&at) : BSON_ITER_HOLDS_DOCUMENT(&at));
}

/* The kind of a record that can be shown, or NULL with error. */
static const kind *kind_of(const bson_t *record, sl_error *error) {
    const char *program = sl_look_text(record, "program");
    const char *command = sl_look_text(record, "command");
    char shown[80];
    if (!program) {
        sl_error_set(error, SL_EXIT_SOURCE,
                     "not a record of a run: the field \"program\" is missing; give the run.json "
                     "of a load, or a record of tune, reload or plan");
        return NULL;
    }
    /* Old records of loads have no "command". */
    if (!command && strcmp(program, "shardload") == 0)
        command = "load";
    for (size_t i = 0; i < KINDS; i++) {
        const kind *one = &kinds[i];
        if (strcmp(program, one->program) != 0 || !command || strcmp(command, one->command) != 0)
            continue;
        if (one->mark && !has(record, one->mark, false))
            continue;
        const char *missing = one->array && !has(record, one->array, true) ? one->array : NULL;
        if (!missing && one->document && !has(record, one->document, false))
            missing = one->document;
        if (!missing)
            return one;
        sl_error_set(error, SL_EXIT_SOURCE, "an incomplete record of %s %s: \"%s\" is missing",
                     program, one->command, missing);
        return NULL;
    }
    sl_text_printable(sl_text_of(program), shown, 40);
    if (command) {
        size_t used = strlen(shown);
        shown[used] = ' ';
        sl_text_printable(sl_text_of(command), shown + used + 1, 38);
    }
    sl_error_set(error, SL_EXIT_SOURCE,
                 "a record of \"%s\" cannot be shown; records of shardload load, tune, reload and "
                 "plan, and of shardquery run can",
                 shown);
    return NULL;
}

bool sl_report_check_record(const bson_t *record, sl_error *error) {
    return kind_of(record, error) != NULL;
}

/* The name of a record: as given, or its number and time. */
static const char *name_of(sl_page *page, const sl_report *report, size_t index) {
    if (report->names && report->names[index])
        return report->names[index];
    const char *when = sl_section_time(page, report->records[index], "startedAt");
    if (report->count == 1)
        return *when ? when : "one run";
    return sl_page_text(page, "run %zu%s%s", index + 1, *when ? ", " : "", when);
}

/* Target and date, because the page may be read without its file's name. */
static const char *title_of_one(sl_page *page, const sl_report *report, const kind *one) {
    const bson_t *record = report->records[0];
    const char *target = section_target(page, record);
    const char *when = sl_section_time(page, record, "startedAt");
    const char *name = report->names ? report->names[0] : NULL;
    return sl_page_text(page, "%s%s%s%s%s%s%s", one->title, *target || *when || name ? ": " : "",
                        target, *target && *when ? ", " : "", when,
                        name && (*target || *when) ? " - " : "", name ? name : "");
}

static const char *title_of_several(sl_page *page, const sl_report *report, const kind *const *of) {
    const char *target = section_target(page, report->records[0]);
    const char *when = sl_section_time(page, report->records[report->count - 1], "startedAt");
    bool same = true;
    for (size_t i = 1; i < report->count; i++) {
        same = same && of[i] == of[0];
        if (strcmp(target, section_target(page, report->records[i])) != 0)
            target = "";
    }
    return sl_page_text(page, "%s: %s%s%s%s%s", same ? of[0]->title : "shardload",
                        sl_plural(report->count, "record"), *target ? ", " : "", target,
                        *when ? ", until " : "", when);
}

static void fill_kind(sl_page *page, const kind *one, const sl_records *records, bool alone) {
    if (records->count > 1 && one->belong && one->belong(records)) {
        sl_page_add_text(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "%s by %zu loaders", one->title,
                         records->count);
        one->together(page, records);
        return;
    }
    if (records->count > 1 && one->several) {
        sl_page_add_text(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "%s: %zu side by side", one->title,
                         records->count);
        one->several(page, records);
        return;
    }
    for (size_t i = 0; i < records->count; i++) {
        if (!alone) /* otherwise the title contains it */
            sl_page_add_text(page, SL_BLOCK_CHAPTER, SL_TONE_PLAIN, "%s: %s", one->title,
                             records->names[i]);
        one->one(page, records->items[i]);
    }
}

bool sl_sections_fill(sl_page *page, const sl_report *report, const char **title, sl_error *error) {
    const kind **of = sl_page_memory(page, (report->count + 1) * sizeof *of);
    const bson_t **items = sl_page_memory(page, (report->count + 1) * sizeof *items);
    const char **names = sl_page_memory(page, (report->count + 1) * sizeof *names);
    if (!of || !items || !names)
        return sl_error_memory(error, "making a report");
    for (size_t i = 0; i < report->count; i++) {
        if (!(of[i] = kind_of(report->records[i], error)))
            return report->names && report->names[i]
                       ? sl_error_prefix(error, "%s", report->names[i])
                       : false;
    }
    for (size_t k = 0; k < KINDS; k++) {
        sl_records group = {items, names, 0};
        for (size_t i = 0; i < report->count; i++) {
            if (of[i] != &kinds[k])
                continue;
            items[group.count] = report->records[i];
            names[group.count++] = name_of(page, report, i);
        }
        if (group.count > 0)
            fill_kind(page, &kinds[k], &group, report->count == 1 && !report->title);
    }
    *title = report->title        ? report->title
             : report->count == 1 ? title_of_one(page, report, of[0])
                                  : title_of_several(page, report, of);
    return !sl_page_failed(page) || sl_error_memory(error, "making a report");
}
