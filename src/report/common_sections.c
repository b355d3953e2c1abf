/* SPDX-License-Identifier: Apache-2.0 */
/* Sections that several kinds of records use: values as text, phases, options, totals. */
#include "sections.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lookup.h"

#include "scale.h"

#include "util/load_counts.h"
#include "util/phase_names.h"

#define COLUMNS_MAX 32

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

#define ENDING(name, code, shardload, shardquery, tone, words) {code, SL_TONE_##tone, words},

const char *sl_section_ending(const bson_t *record, sl_tone *tone) {
    static const struct {
        int code;
        sl_tone tone;
        const char *words;
    } endings[] = {SL_EXITS(ENDING)};
    double code = sl_look_number(record, "exitCode");
    *tone = SL_TONE_BAD;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (code == endings[i].code) {
            *tone = endings[i].tone;
            return endings[i].words;
        }
    }
    return "Not ended";
}

const char *sl_section_value(sl_page *page, const bson_t *record, const char *path, sl_unit unit) {
    return sl_section_number(page, sl_look_number(record, path), unit);
}

const char *sl_section_ratio(sl_page *page, double value, double first) {
    if (!(value >= 0) || !(first > 0))
        return "";
    return sl_page_text(page, value / first < 0.095 ? "%.2g" : "%.2f", value / first);
}

void sl_section_fact(sl_page *page, sl_page_table *facts, const bson_t *record, const char *path,
                     const char *name, sl_unit unit) {
    if (sl_look_number(record, path) >= 0)
        sl_page_fact(page, facts, name, sl_section_value(page, record, path, unit));
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

const char *sl_cell_text(sl_page *page, const bson_t *item, const char *path) {
    (void)page;
    return sl_look_text(item, path);
}

const char *sl_cell_ratio(sl_page *page, const bson_t *item, const char *path) {
    double ratio = sl_look_number(item, path);
    return isnan(ratio) ? "-" : sl_page_text(page, "%.2f", ratio);
}

sl_page_table *sl_section_columns(sl_page *page, const char *title, const sl_column *columns) {
    const char *titles[COLUMNS_MAX];
    char left[COLUMNS_MAX];
    size_t count = 0;
    for (; columns[count].title && count < COLUMNS_MAX; count++) {
        titles[count] = columns[count].title;
        left[count] = columns[count].text ? 'l' : 'r';
    }
    return sl_page_add_table(page, title, titles, left, count);
}

void sl_section_row(sl_page *page, sl_page_table *table, const bson_t *item,
                    const sl_column *columns) {
    for (const sl_column *one = columns; one->title; one++) {
        sl_cell_function *make = one->text ? one->text : one->figure;
        sl_page_cell(page, table,
                     make ? make(page, item, one->path)
                          : sl_section_value(page, item, one->path, one->unit));
    }
}

sl_page_table *sl_section_table(sl_page *page, const bson_t *record, const char *path,
                                const char *title, const sl_column *columns) {
    sl_page_table *table = sl_section_columns(page, title, columns);
    size_t rows = 0;
    for (sl_walk walk = sl_walk_start(record, path); sl_walk_next(&walk);) {
        if (rows++ < SL_ROWS_MAX)
            sl_section_row(page, table, &walk.item, columns);
    }
    sl_section_more(page, table, rows);
    return table;
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

/* The reason why the time of a phase is unknown, or NULL. Earlier programs wrote another name. */
static const char *unknown_because(const bson_t *phase) {
    const char *why = sl_look_text(phase, "unknownBecause");
    return why ? why : sl_look_text(phase, "cannotBeTold");
}

static void predicted_row(sl_page *page, sl_page_table *table, const bson_t *item,
                          const char *name) {
    static const char *const paths[] = {"seconds", "low", "high"};
    const char *why = unknown_because(item);
    sl_page_cell(page, table,
                 why ? sl_page_text(page, "%.60s: %.200s", name ? name : "?", why) : name);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        sl_page_cell(page, table, sl_section_value(page, item, paths[i], SL_UNIT_SECONDS));
}

const char *sl_section_unknown_phases(sl_page *page, const bson_t *predicted) {
    const char *all = "";
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(predicted, "phases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        if (unknown_because(&walk.item) && count++ < PARTS_MAX)
            all = sl_page_text(page, "%.1000s%s%.60s", all, *all ? ", " : "", name ? name : "?");
    }
    return *all || sl_look_truth(predicted, "complete") != 0 ? all : "a part";
}

void sl_section_predicted_table(sl_page *page, const bson_t *record, const char *title) {
    static const char *const titles[] = {"phase", "predicted", "at least", "at most"};
    bson_t predicted;
    size_t rows = 0;
    if (!sl_look_inside(record, "predicted", &predicted))
        return;
    sl_page_table *table = sl_page_add_table(page, title, titles, "lrrr", 4);
    for (sl_walk walk = sl_walk_start(&predicted, "phases"); sl_walk_next(&walk);) {
        if (rows++ < SL_ROWS_MAX)
            predicted_row(page, table, &walk.item, sl_look_text(&walk.item, "name"));
    }
    sl_section_more(page, table, rows);
    predicted_row(page, table, &predicted,
                  *sl_section_unknown_phases(page, &predicted) ? "total, without the unknown phases"
                                                               : "total");
    sl_section_emphasize(table);
}

/* ---- options, server, client ---- */

const char *sl_section_scalar(sl_page *page, const bson_iter_t *value) {
    if (BSON_ITER_HOLDS_UTF8(value))
        return bson_iter_utf8(value, NULL);
    if (BSON_ITER_HOLDS_BOOL(value))
        return bson_iter_bool(value) ? "yes" : "no";
    if (BSON_ITER_HOLDS_DOUBLE(value))
        return sl_page_text(page, "%.6g", bson_iter_double(value));
    if (BSON_ITER_HOLDS_INT32(value) || BSON_ITER_HOLDS_INT64(value))
        return sl_page_text(page, "%" PRId64, bson_iter_as_int64(value));
    return NULL;
}

const char *sl_section_words(sl_page *page, const bson_iter_t *value) {
    bson_iter_t items;
    const char *all = NULL;
    if (!BSON_ITER_HOLDS_ARRAY(value) || !bson_iter_recurse(value, &items))
        return sl_section_scalar(page, value);
    for (unsigned i = 0; i < 20 && bson_iter_next(&items); i++) {
        const char *one = sl_section_scalar(page, &items);
        if (one)
            all = all ? sl_page_text(page, "%.2000s, %.300s", all, one) : one;
    }
    return all;
}

/* Options that concern sources of some formats only. */
static const struct {
    const char *name, *formats;
} specific[] = {
    {"records", "ycsb"},
    {"field-count", "ycsb"},
    {"field-length", "ycsb"},
    {"document-size", "ycsb"},
    {"integer-count", "ycsb"},
    {"skew", "ycsb"},
    {"seed", "ycsb"},
    {"missing", "isd isd-lite isd-csv"},
    {"types", "delimited"},
    {"header", "delimited"},
    {"columns", "delimited"},
    {"skip-lines", "delimited"},
    {"ragged", "delimited"},
    {"escape", "delimited mot"},
    {"quoted-lines", "delimited mot"},
    {"schema", "delimited isd"},
    {"names", "mot isd isd-lite isd-csv"},
    {"encoding", "delimited mot isd-csv"},
    {"trim", "delimited mot isd-csv"},
};

/* Options of loads into a cluster. */
static const char *const for_clusters[] = {
    "uri", "mode", "shard-key", "route", "timeout", "write-concern", "retry-timeout", "compressor"};

/* Does an option concern the sources and the sink of the record? */
static bool is_relevant(const bson_t *record, const char *name) {
    const char *format = sl_look_text(record, "sources.0.format");
    const char *sink = sl_look_text(record, "options.sink");
    if (!sl_option_matters(name))
        return false;
    for (size_t i = 0;
         sink && strcmp(sink, "cluster") != 0 && i < sizeof for_clusters / sizeof for_clusters[0];
         i++) {
        if (strcmp(for_clusters[i], name) == 0)
            return false;
    }
    for (size_t i = 0; format && i < sizeof specific / sizeof specific[0]; i++) {
        if (strcmp(specific[i].name, name) != 0)
            continue;
        size_t length = strlen(format);
        for (const char *at = specific[i].formats; (at = strstr(at, format)); at += length) {
            bool begins = at == specific[i].formats || at[-1] == ' ';
            if (begins && (at[length] == ' ' || at[length] == '\0'))
                return true;
        }
        return false;
    }
    return true;
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
        /* Leaves out options that are off, to keep the list short. */
        if (!value || strcmp(value, "false") == 0 ||
            (strcmp(path, "options") == 0 && !is_relevant(record, bson_iter_key(&at))))
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
    static const char *const paths[] = {"program", "version", "driver", "instructions"};
    sl_page_table *table = sl_page_add_table(page, NULL, titles, "ll", 2);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *value = sl_look_text(record, paths[i]);
        if (!value)
            continue;
        sl_page_cell(page, table, paths[i]);
        sl_page_cell(page, table, value);
    }
    static const char *const times[] = {"startedAt", "endedAt"};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const char *when = sl_section_time(page, record, times[i]);
        if (!*when)
            continue;
        sl_page_cell(page, table, times[i]);
        sl_page_cell(page, table, sl_page_text(page, "%s UTC", when));
    }
}

/* ---- totals ---- */

double sl_section_documents(const bson_t *record) {
    return sl_look_number(record, "accounting.inserted") +
           sl_look_amount(record, "accounting.alreadyThere", 0) +
           sl_look_amount(record, "accounting.changed", 0);
}

double sl_section_load_seconds(const bson_t *record) {
    return sl_look_amount(record, "accounting.loadSeconds",
                          sl_section_phase_seconds(record, "phases", SL_PHASE_LOAD));
}

const char *sl_section_target(sl_page *page, const bson_t *record) {
    bson_iter_t at;
    const char *names[2] = {"", ""};
    static const char *const options[] = {"db", "collection"};
    for (size_t i = 0; i < 2; i++) {
        if (sl_option_find(record, options[i], &at) && BSON_ITER_HOLDS_UTF8(&at))
            names[i] = bson_iter_utf8(&at, NULL);
    }
    return *names[0] && *names[1] ? sl_page_text(page, "%.80s.%.200s", names[0], names[1]) : "";
}

double sl_section_rate(const bson_t *record) {
    double seconds = sl_section_load_seconds(record);
    double documents = sl_section_documents(record) -
                       sl_look_amount(record, "accounting.ofThoseByEarlierRuns.inserted", 0) -
                       sl_look_amount(record, "accounting.ofThoseByEarlierRuns.alreadyThere", 0) -
                       sl_look_amount(record, "accounting.ofThoseByEarlierRuns.changed", 0);
    return seconds > 0 && documents >= 0 ? documents / seconds : NAN;
}

void sl_section_accounting(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"outcome", "records", "share"};
    bson_t account;
    if (!sl_look_inside(record, "accounting", &account))
        return;
    sl_page_table *table = sl_page_add_table(page, "Outcome of the records", titles, "lrr", 3);
    double records = sl_look_amount(&account, "records", 0);
    const sl_mode_row *mode = &sl_modes[sl_mode_named(sl_look_text(&account, "mode"))];
    SL_FOR_COUNTS(one) {
        const sl_count_row *row = &one->row;
        char label[SL_COUNT_LABEL_ROOM];
        double value = row->key ? sl_look_amount(&account, row->key, 0) : 0;
        if (!row->key || !sl_count_is_shown(row, mode, SL_ON_PAGES, value > 0))
            continue;
        sl_page_cell(page, table, sl_page_text(page, "%s", sl_count_label(row, mode, label)));
        sl_page_cell(page, table, sl_section_number(page, value, SL_UNIT_COUNT));
        sl_page_cell(page, table,
                     row->of_records && records > 0
                         ? sl_section_number(page, value / records, SL_UNIT_SHARE)
                         : "");
    }
}
