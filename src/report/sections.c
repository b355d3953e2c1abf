/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of records, the fields that each kind must have, and the sections that show it. */
#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lookup.h"
#include "util/text.h"

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
    {.program = "bench",
     .command = "shards",
     .title = "Shards on one machine",
     .array = "rows",
     .one = sl_sections_shards},
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
                 "plan, of shardquery run and of bench shards can",
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
    const char *target = sl_section_target(page, record);
    const char *when = sl_section_time(page, record, "startedAt");
    const char *name = report->names ? report->names[0] : NULL;
    return sl_page_text(page, "%s%s%s%s%s%s%s", one->title, *target || *when || name ? ": " : "",
                        target, *target && *when ? ", " : "", when,
                        name && (*target || *when) ? " - " : "", name ? name : "");
}

static const char *title_of_several(sl_page *page, const sl_report *report, const kind *const *of) {
    const char *target = sl_section_target(page, report->records[0]);
    const char *when = sl_section_time(page, report->records[report->count - 1], "startedAt");
    bool same = true;
    for (size_t i = 1; i < report->count; i++) {
        same = same && of[i] == of[0];
        if (strcmp(target, sl_section_target(page, report->records[i])) != 0)
            target = "";
    }
    return sl_page_text(page, "%s: %zu records%s%s%s%s", same ? of[0]->title : "shardload",
                        report->count, *target ? ", " : "", target, *when ? ", until " : "", when);
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
