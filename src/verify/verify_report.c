/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a verification: a row per range on the screen, and a section of the record. */
#include "verification.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "util/text_table.h"

#define ROWS_SHOWN 40
#define NAME_ROOM 80

typedef struct sl_figures {
    uint64_t expected, found, missing, different, extra;
    uint64_t expected_hash, found_hash;
} sl_figures;

/* Adds the totals of a range; returns them. */
static sl_figures add(sl_figures *sum, const sl_range_totals *totals) {
    const sl_figures more = {.expected = totals->expected,
                             .found = totals->found,
                             .missing = totals->missing,
                             .different = totals->different,
                             .extra = totals->extra,
                             .expected_hash = totals->expected_hash,
                             .found_hash = totals->found_hash};
    sum->expected += more.expected;
    sum->found += more.found;
    sum->missing += more.missing;
    sum->different += more.different;
    sum->extra += more.extra;
    sum->expected_hash += more.expected_hash;
    sum->found_hash += more.found_hash;
    return more;
}

static bool is_equal(const sl_figures *figures) {
    return figures->missing + figures->different + figures->extra == 0;
}

static const char *shard_of(const sl_job *job, const sl_destination *destination,
                            const sl_range *range) {
    if (!job->by_range)
        return destination->topology->count == 1 ? destination->topology->shards[0].name : "all";
    sl_range whole = *range;
    whole.shard = sl_shard_map_owner(destination->map, range->minimum);
    return sl_range_is_placed(destination->map, &whole)
               ? destination->topology->shards[whole.shard].name
               : "several";
}

/* The label of a range: "year.txt", "year.txt 0-127" (stripes), "a.gz to z.gz". */
static const char *name_of(const sl_job *job, const sl_range *range, char out[NAME_ROOM]) {
    const char *names[2] = {"?", "?"};
    uint32_t numbers[2] = {sl_document_id_source(range->minimum),
                           sl_document_id_source(range->maximum - 1)};
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        for (int k = 0; k < 2; k++) {
            if (job->sources[i].skipped || job->sources[i].number != numbers[k])
                continue;
            const char *path = sl_source_set_at(job->set, i)->shown;
            const char *slash = strrchr(path, '/');
            names[k] = slash && slash[1] ? slash + 1 : path;
        }
    }
    uint32_t from = (uint32_t)(range->minimum >> 32) & 0xFF;
    uint32_t to = (uint32_t)((range->maximum - 1) >> 32) & 0xFF;
    if (numbers[0] != numbers[1])
        snprintf(out, NAME_ROOM, "%.16s to %.16s", names[0], names[1]);
    else if (from == 0 && to == SL_STRIPES - 1)
        snprintf(out, NAME_ROOM, "%.36s", names[0]);
    else
        snprintf(out, NAME_ROOM, "%.28s %u-%u", names[0], from, to);
    return out;
}

static const sl_text_column columns[] = {
    {"range (stripes)", .left = true, .least = 36},
    {"shard", .left = true, .least = 9},
    {"expected", .least = 13, .unit = SL_UNIT_COUNT},
    {"found", .least = 13, .unit = SL_UNIT_COUNT},
    {"missing", .least = 10, .unit = SL_UNIT_COUNT},
    {"extra", .least = 10, .unit = SL_UNIT_COUNT},
    {"different", .least = 10, .unit = SL_UNIT_COUNT},
    {0},
};

static void add_row(sl_text_table *table, const sl_verification *verification, const char *name,
                    const char *shard, const sl_figures *figures) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%s", shard);
    sl_text_table_number(table, (double)figures->expected);
    sl_text_table_number(table, (double)figures->found);
    sl_text_table_number(table, (double)figures->missing);
    sl_text_table_number(table, (double)figures->extra);
    sl_text_table_number(table, verification->content ? (double)figures->different : NAN);
}

static void append_figures(bson_t *document, const sl_verification *verification,
                           const sl_figures *figures) {
    char hash[20];
    BSON_APPEND_INT64(document, "expected", (int64_t)figures->expected);
    BSON_APPEND_INT64(document, "found", (int64_t)figures->found);
    BSON_APPEND_INT64(document, "missing", (int64_t)figures->missing);
    BSON_APPEND_INT64(document, "extra", (int64_t)figures->extra);
    if (verification->content)
        BSON_APPEND_INT64(document, "different", (int64_t)figures->different);
    snprintf(hash, sizeof hash, "%016" PRIx64, figures->expected_hash);
    BSON_APPEND_UTF8(document, "expectedHash", hash);
    snprintf(hash, sizeof hash, "%016" PRIx64, figures->found_hash);
    if (verification->content)
        BSON_APPEND_UTF8(document, "foundHash", hash);
}

/* Adds a row per range to the table, and records it; if there are many ranges, only those with
 * problems are in the table. Returns the sum. */
static sl_figures report_ranges(sl_verification *verification, bson_t *section,
                                sl_text_table *table) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    bson_t ranges, item;
    sl_figures sum = {0};
    size_t shown = 0;
    BSON_APPEND_ARRAY_BEGIN(section, "ranges", &ranges);
    for (size_t i = 0; i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        sl_figures figures = add(&sum, &verification->ranges[i]);
        char name[NAME_ROOM];
        const char *shard = shard_of(job, destination, range);
        sl_record_begin_item(&ranges, i, &item);
        BSON_APPEND_INT64(&item, "minimum", range->minimum);
        BSON_APPEND_INT64(&item, "maximum", range->maximum);
        BSON_APPEND_UTF8(&item, "shard", shard);
        append_figures(&item, verification, &figures);
        bson_append_document_end(&ranges, &item);
        if ((job->range_count <= ROWS_SHOWN || !is_equal(&figures)) && shown < ROWS_SHOWN) {
            add_row(table, verification, name_of(job, range, name), shard, &figures);
            shown++;
        }
    }
    bson_append_array_end(section, &ranges);
    if (shown < job->range_count)
        sl_text_table_cell(table, "... and %zu more ranges%s", job->range_count - shown,
                           shown < ROWS_SHOWN ? ", all equal" : "");
    sl_text_table_end_row(table);
    return sum;
}

bool sl_verify_report(sl_verification *verification) {
    const sl_job *job = &verification->job;
    const sl_run *run = &verification->run;
    bson_t section;
    bson_t *record = sl_run_record_document(verification->record);
    uint64_t rejects = 0;
    for (unsigned i = 0; i < run->threads; i++)
        rejects += run->parsed[i].rejects;
    sl_text_table *table = sl_text_table_create(columns);
    sl_log_info("%s", "");
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    BSON_APPEND_UTF8(&section, "compared", verification->content ? "content" : "counts");
    sl_figures sum = report_ranges(verification, &section, table);
    sl_figures outside = add(&sum, &verification->ranges[job->range_count]);
    if (outside.found > 0)
        add_row(table, verification, "outside all ranges", "", &outside);
    add_row(table, verification, "total", "", &sum);
    sl_text_table_log(table);
    append_figures(&section, verification, &sum);
    BSON_APPEND_INT64(&section, "underOtherIds", (int64_t)outside.found);
    BSON_APPEND_INT64(&section, "rejectedByParser", (int64_t)rejects);
    BSON_APPEND_INT64(&section, "otherSources",
                      (int64_t)(verification->registered_count - job->active));
    if (verification->other_sources)
        BSON_APPEND_ARRAY(&section, "otherSourcesWithExtra", verification->other_sources);
    BSON_APPEND_BOOL(&section, "ok", is_equal(&sum));
    bson_append_document_end(record, &section);

    char human[SL_HUMAN_ROOM];
    sl_log_info("%s", "");
    if (verification->content)
        sl_log_info("  hash of the sources %016" PRIx64 ", of the cluster %016" PRIx64,
                    sum.expected_hash, sum.found_hash);
    else
        sl_log_info("  documents were counted only; --content also compares them");
    if (rejects > 0)
        sl_log_info("  %s records are rejected by the parser: no documents are expected of them",
                    sl_human_count(rejects, human));
    if (verification->registered_count > job->active)
        sl_log_info("  %s other sources of the collection were not named, and not verified",
                    sl_human_count(verification->registered_count - job->active, human));
    if (sum.missing > 0)
        sl_log_info(
            "  the missing documents include those that the server refused during the load");
    return is_equal(&sum);
}
