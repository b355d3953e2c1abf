/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of one load that several loaders share by --part or --only-shards: their records added
 * up, on one time axis. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"
#include "series.h"

#include "util/phase_names.h"

/* More curves are not distinguishable. */
#define CURVES_MAX 12
/* Shares that are missing, or that several records have. */
#define LISTED_MAX 20
#define PARTS_OF_LOAD_MAX 9999
/* More fields of the totals are ignored. */
#define FIELDS_MAX 64

/* ---- which records belong together ---- */

/* The option by which a loader's share of a load is given, or NULL. */
static const char *option_of(const bson_t *record) {
    return sl_look_text(record, "options.part")          ? "options.part"
           : sl_look_text(record, "options.only-shards") ? "options.only-shards"
                                                         : NULL;
}

/* A loader's share: "1/4", or the names of shards. */
static const char *share_of(const bson_t *record) {
    const char *option = option_of(record);
    return option ? sl_look_text(record, option) : NULL;
}

static bool same_text(const bson_t *a, const bson_t *b, const char *path) {
    const char *left = sl_look_text(a, path), *right = sl_look_text(b, path);
    return left && right && strcmp(left, right) == 0;
}

static bool same_sources(const bson_t *a, const bson_t *b) {
    sl_walk left = sl_walk_start(a, "sources"), right = sl_walk_start(b, "sources");
    while (sl_walk_next(&left)) {
        if (!sl_walk_next(&right))
            return false;
        const char *one = sl_look_text(&left.item, "fingerprint");
        const char *other = sl_look_text(&right.item, "fingerprint");
        if (!one != !other || (one && strcmp(one, other) != 0))
            return false;
    }
    return !sl_walk_next(&right);
}

/* The N of "K/N", or 0; sets `part` to K. */
static unsigned read_part(const bson_t *record, unsigned *part) {
    unsigned parts = 0;
    const char *text = sl_look_text(record, "options.part");
    bool read = text && sscanf(text, "%8u/%8u", part, &parts) == 2;
    return read && parts <= PARTS_OF_LOAD_MAX ? parts : 0;
}

static unsigned parts_of(const bson_t *record) {
    unsigned part = 0;
    return read_part(record, &part);
}

/* Part numbers are compared as numbers, because --part also accepts 01/4. */
static bool is_part(const bson_t *record, unsigned wanted) {
    unsigned part = 0;
    return read_part(record, &part) > 0 && part == wanted;
}

bool sl_sections_are_shared(const sl_records *records) {
    const bson_t *first = records->items[0];
    const char *option = option_of(first);
    for (size_t i = 0; i < records->count && option; i++) {
        const bson_t *one = records->items[i];
        const char *other = option_of(one);
        if (!other || strcmp(option, other) != 0 || parts_of(first) != parts_of(one) ||
            !same_text(first, one, "options.db") || !same_text(first, one, "options.collection") ||
            !same_sources(first, one))
            return false;
    }
    return option && records->count > 1;
}

/* The number of records with this part or, if `part` is 0, whose list contains this shard. */
static size_t holders(const sl_records *records, const char *shard, unsigned part) {
    size_t found = 0;
    for (size_t i = 0; i < records->count; i++) {
        const bson_t *one = records->items[i];
        found += part > 0 ? is_part(one, part) : sl_list_has(share_of(one), ',', sl_text_of(shard));
    }
    return found;
}

/* The shares that no record has or, `several`, that more than one has. "" if there are none. */
static const char *shares(sl_page *page, const sl_records *records, bool several) {
    const bson_t *first = records->items[0];
    unsigned parts = parts_of(first);
    const char *all = "";
    unsigned listed = 0;
    char part[24];
    sl_walk walk = sl_walk_start(first, "topology");
    for (unsigned k = 1; parts ? k <= parts : sl_walk_next(&walk); k++) {
        const char *share = parts ? part : sl_look_text(&walk.item, "shard");
        snprintf(part, sizeof part, "%u/%u", k, parts);
        size_t count = share ? holders(records, share, parts > 0 ? k : 0) : 1;
        if ((several ? count <= 1 : count > 0) || listed > LISTED_MAX)
            continue;
        all = sl_page_text(page, "%.1900s%s%.90s", all, *all ? ", " : "",
                           listed++ < LISTED_MAX ? share : "and more");
    }
    return all;
}

/* ---- all loaders together ---- */

/* When a loader did its load phase, in seconds since 1970. */
typedef struct span {
    double started, begin, end, ended;
} span;

static span span_of(const bson_t *record) {
    span found = {.started = sl_look_amount(record, "startedAt", 0) / 1e3};
    double now = found.started;
    found.begin = found.end = now;
    for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        bool loading = name && strcmp(name, SL_PHASE_LOAD) == 0;
        if (loading)
            found.begin = now;
        now += sl_look_amount(&walk.item, "seconds", 0);
        if (loading)
            found.end = now;
    }
    found.ended = now;
    return found;
}

static span span_of_all(const sl_records *records) {
    span all = span_of(records->items[0]);
    for (size_t i = 1; i < records->count; i++) {
        span one = span_of(records->items[i]);
        all.started = one.started < all.started ? one.started : all.started;
        all.begin = one.begin < all.begin ? one.begin : all.begin;
        all.end = one.end > all.end ? one.end : all.end;
        all.ended = one.ended > all.ended ? one.ended : all.ended;
    }
    return all;
}

/* Documents that the last run of a loader has loaded: without the documents of runs that it
 * resumed. */
static double loaded_now(const bson_t *record) {
    double count =
        sl_section_rate(record) * sl_section_phase_seconds(record, "phases", SL_PHASE_LOAD);
    return count >= 0 ? count : 0;
}

static double rejects_of(const bson_t *record) {
    return sl_look_amount(record, "accounting.rejectedByParser", 0) +
           sl_look_amount(record, "accounting.rejectedByServer", 0);
}

/* The common verdict of all records. */
typedef struct verdict {
    double documents, loaded, rejects;
    bool complete, failed, interrupted, holds, counted, miscounted;
} verdict;

static verdict judge(const sl_records *records) {
    verdict all = {.complete = true, .holds = true};
    for (size_t i = 0; i < records->count; i++) {
        const bson_t *one = records->items[i];
        double code = sl_look_number(one, "exitCode");
        double documents = sl_section_documents(one);
        int verified = sl_look_truth(one, "verification.ok");
        all.documents += documents >= 0 ? documents : 0;
        all.loaded += loaded_now(one);
        all.rejects += rejects_of(one);
        all.interrupted = all.interrupted || code == 130;
        all.complete = all.complete && (code == 0 || code == 1);
        all.failed = all.failed || !(code == 0 || code == 1 || code == 130);
        all.holds = all.holds && sl_look_truth(one, "accounting.holds") == 1;
        all.counted = all.counted || verified == 1;
        all.miscounted = all.miscounted || verified == 0;
    }
    return all;
}

static void add_verdict(sl_page *page, const sl_records *records) {
    verdict all = judge(records);
    span time = span_of_all(records);
    const char *missing = shares(page, records, false);
    const char *kind = parts_of(records->items[0]) ? "part" : "shard";
    double seconds = time.end - time.begin;
    const char *speed =
        seconds > 0 && all.loaded > 0
            ? sl_page_text(page, " at %s per second",
                           sl_section_number(page, all.loaded / seconds, SL_UNIT_COUNT))
            : "";
    const char *words = all.failed        ? "A loader has failed"
                        : all.interrupted ? "A loader was interrupted, to be resumed"
                        : *missing        ? "Records of some loaders are missing"
                        : all.rejects > 0 ? "Loaded, with rejects"
                                          : "Everything was loaded";
    bool bad = all.failed || !all.holds || all.miscounted;
    bool doubtful = !all.complete || *missing || all.rejects > 0;
    sl_page_add_text(page, SL_BLOCK_VERDICT,
                     bad        ? SL_TONE_BAD
                     : doubtful ? SL_TONE_WARNING
                                : SL_TONE_GOOD,
                     "%s: %zu loaders stored %s documents in %s%s. The totals of %s.%s%s%s%s%s",
                     words, records->count, sl_section_number(page, all.documents, SL_UNIT_COUNT),
                     sl_section_number(page, time.ended - time.started, SL_UNIT_SECONDS), speed,
                     all.holds ? "all loaders add up" : "a loader DO NOT ADD UP",
                     all.miscounted ? " THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG."
                     : all.counted  ? " The counts of the ranges on the cluster are right."
                                    : "",
                     *missing ? " No record for " : "", *missing ? kind : "", *missing ? " " : "",
                     *missing ? sl_page_text(page, "%s.", missing) : "");
}

static void show_loaders(sl_page *page, const sl_records *records) {
    static const char *const titles[] = {
        "loader",      "share",      "host",    "documents",
        "documents/s", "load phase", "rejects", "batches sent again",
        "exit"};
    sl_page_table *table = sl_page_add_table(page, "The loaders", titles, "lllrrrrrr", 9);
    for (size_t i = 0; i < records->count && i < SL_ROWS_MAX; i++) {
        const bson_t *one = records->items[i];
        sl_page_cell(page, table, records->names[i]);
        sl_page_cell(page, table, share_of(one));
        sl_page_cell(page, table, sl_look_text(one, "client.host"));
        sl_page_cell(page, table,
                     sl_section_number(page, sl_section_documents(one), SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_number(page, sl_section_rate(one), SL_UNIT_COUNT));
        sl_page_cell(page, table,
                     sl_section_number(page, sl_section_phase_seconds(one, "phases", SL_PHASE_LOAD),
                                       SL_UNIT_SECONDS));
        sl_page_cell(page, table, sl_section_number(page, rejects_of(one), SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_value(page, one, "accounting.retries", SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_value(page, one, "exitCode", SL_UNIT_COUNT));
    }
    sl_section_more(page, table, records->count);
}

static void show_times(sl_page *page, const sl_records *records) {
    span all = span_of_all(records);
    sl_curves *curves = NULL;
    for (size_t i = 0; i < records->count && i < CURVES_MAX; i++) {
        sl_series series = sl_series_read(page, records->items[i], 120);
        if (series.intervals == 0)
            continue;
        if (!curves)
            curves = sl_page_add_curves(
                page, "Documents per second of each loader",
                "On one time axis, by the clocks of the loaders' machines. At most 12 are drawn.",
                "documents per second", SL_UNIT_COUNT, false);
        sl_series_curve(page, curves, records->names[i], &series, SL_SERIES_DOCUMENTS,
                        span_of(records->items[i]).begin - all.begin);
    }
    sl_strips *strips = sl_page_add_strips(page, "Phases of each loader",
                                           "From the start of the first loader.", SL_UNIT_SECONDS);
    for (size_t i = 0; i < records->count && i < SL_ROWS_MAX; i++) {
        sl_strip *strip = sl_page_strip(page, strips, records->names[i]);
        sl_page_part(page, strips, strip, "before its start",
                     span_of(records->items[i]).started - all.started);
        sl_section_phase_parts(page, strips, strip, records->items[i], "phases");
    }
}

/* Adds the sums of all records' totals. */
static void show_totals(sl_page *page, const sl_records *records) {
    bson_t merged, section;
    unsigned fields = 0;
    const char *mode = sl_look_text(records->items[0], "accounting.mode"); /* of all of them */
    bson_init(&merged);
    BSON_APPEND_DOCUMENT_BEGIN(&merged, "accounting", &section);
    if (mode)
        BSON_APPEND_UTF8(&section, "mode", mode);
    for (size_t i = 0; i < records->count; i++) {
        bson_t account;
        bson_iter_t at;
        bool more = sl_look_inside(records->items[i], "accounting", &account) &&
                    bson_iter_init(&at, &account);
        while (more && bson_iter_next(&at) && fields < FIELDS_MAX) {
            const char *key = bson_iter_key(&at);
            double sum = 0;
            if (!(sl_value_number(&at) >= 0) || bson_has_field(&section, key) || strchr(key, '.'))
                continue;
            for (size_t k = i; k < records->count; k++) {
                bson_t other;
                if (sl_look_inside(records->items[k], "accounting", &other))
                    sum += sl_look_amount(&other, key, 0);
            }
            BSON_APPEND_DOUBLE(&section, key, sum);
            fields++;
        }
    }
    bson_append_document_end(&merged, &section);
    sl_section_accounting(page, &merged);
    bson_destroy(&merged);
}

/* The shards as the loader that ended last has found them. */
static void show_shards(sl_page *page, const sl_records *records) {
    const bson_t *last = records->items[0];
    for (size_t i = 1; i < records->count; i++) {
        if (span_of(records->items[i]).ended > span_of(last).ended)
            last = records->items[i];
    }
    sl_section_table(page, last, "shards", "Shards, when the last loader ended", sl_shard_columns);
}

void sl_sections_shared(sl_page *page, const sl_records *records) {
    const char *twice = shares(page, records, true);
    if (*twice)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         "Several records belong to %s, so the sums below count some documents "
                         "twice: give one record for each share.",
                         twice);
    add_verdict(page, records);
    show_loaders(page, records);
    show_times(page, records);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Totals of all loaders");
    show_totals(page, records);
    show_shards(page, records);
    sl_section_setting(page, records->items[0]);
}
