/* SPDX-License-Identifier: Apache-2.0 */
/* The run record and the summary of a load. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "format/simd.h"
#include "job/sources.h"
#include "job/types.h"
#include "report/report.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"
#include "util/text_table.h"

#include "embedding.h"
#include "worker.h"

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

void sl_record_start(sl_run_record *record, const sl_load_config *config, const char *command) {
    bson_t *document = sl_run_record_document(record);
    const sl_simd *simd;
    sl_record_head(document, command, config->program_version, sl_wall_clock_ms(), config->options);
    BSON_APPEND_UTF8(document, "driver", MONGOC_VERSION_S);
    if (sl_simd_choose(&simd, &(sl_error){0}))
        BSON_APPEND_UTF8(document, "instructions", sl_simd_name(simd));
    sl_run_record_name_stages(record, sl_stage_keys);
}

void sl_record_server(sl_run_record *record, sl_connection *connection) {
    const sl_server *server = sl_connection_server(connection);
    sl_log_detail("%s: %s, server %s", sl_connection_display_uri(connection),
                  sl_deployment_name(server->deployment), server->version);
    sl_connection_record(connection, sl_run_record_document(record));
}

/* The shards, the collection, the distribution of ranges, the balancer. */
static void record_cluster(const sl_load *load, bson_t *record) {
    const sl_topology *topology = load->destination.topology;
    const bson_t *key = load->destination.map ? sl_shard_map_key(load->destination.map) : NULL;
    const char *uuid = load->destination.target.uuid, *before = load->balancer_before;
    bson_t array;
    if (topology) {
        BSON_APPEND_ARRAY_BEGIN(record, "topology", &array);
        for (size_t i = 0; i < topology->count; i++) {
            char room[SL_ARRAY_KEY_ROOM];
            BCON_APPEND(&array, sl_array_key(i, room), "{", "shard",
                        BCON_UTF8(topology->shards[i].name), "host",
                        BCON_UTF8(topology->shards[i].host), "}");
        }
        bson_append_array_end(record, &array);
    }
    if (uuid[0])
        BSON_APPEND_UTF8(record, "collectionUuid", uuid);
    if (key)
        BSON_APPEND_DOCUMENT(record, "shardKey", key);
    if (load->job.by_range)
        BCON_APPEND(record, "distribution", "{", "ranges",
                    BCON_INT64((int64_t)load->job.range_count), "steps",
                    BCON_INT64((int64_t)load->distribution_steps), "seconds",
                    BCON_DOUBLE(load->distribution_seconds), "}");
    if (before[0])
        BCON_APPEND(record, "balancer", "{", "before", BCON_UTF8(before), "after",
                    BCON_UTF8(load->balancer_restored ? before : "off"), "}");
}

static void record_sources(const sl_load *load, bson_t *record) {
    bson_t array, item;
    BSON_APPEND_ARRAY_BEGIN(record, "sources", &array);
    for (size_t i = 0; load->job.sources && i < sl_source_set_count(load->job.set); i++) {
        const sl_job_source *source = &load->job.sources[i];
        const sl_source *facts = sl_source_set_at(load->job.set, i);
        char text[300];
        sl_record_begin_item(&array, i, &item);
        sl_text_printable(sl_text_of(facts->path), text, sizeof text);
        BSON_APPEND_UTF8(&item, "path", text);
        if (facts->kind == SL_SOURCE_GENERATED)
            INT64(&item, "records", sl_source_records(facts));
        else
            INT64(&item, "storedBytes", facts->stored_bytes);
        /* Otherwise the source is sequential, and the length of its text is
         * known only at its end. */
        BSON_APPEND_BOOL(&item, "splittable", sl_source_is_splittable(facts));
        if (source->skipped || !source->format) {
            BSON_APPEND_BOOL(&item, "leftOut", true);
        } else {
            BSON_APPEND_UTF8(&item, "fingerprint", source->fingerprint);
            snprintf(text, sizeof text, "%016llx", (unsigned long long)facts->content);
            if (facts->content != 0) /* the fingerprint without the name */
                BSON_APPEND_UTF8(&item, "content", text);
            BSON_APPEND_UTF8(&item, "format", source->format->name);
            BSON_APPEND_UTF8(&item, "dialect",
                             sl_source_describe(&load->job, source, text, sizeof text));
            BSON_APPEND_INT32(&item, "number", (int32_t)source->number);
            INT64(&item, "documents", sl_ledger_accepted(&load->ledger, i));
        }
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

/* The counts that earlier runs have kept in the journal. */
static sl_load_counts earlier_counts(const sl_recovered *recovered) {
#define PARSED_EARLIER(place, name, ...) .name = recovered->counts.name,
#define SENT_EARLIER(place, name, ...) .name = recovered->name,
    return (sl_load_counts){SL_PARSED_COUNTS(PARSED_EARLIER) SL_RECOVERED_COUNTS(SENT_EARLIER)};
}

/* The counts of all runs of the load, earlier ones included. */
static sl_load_counts sum_counts(const sl_load *load, const sl_run_totals *totals) {
    sl_load_counts sum = earlier_counts(&load->ledger.recovered);
    sl_parse_counts parsed = {0};
    for (unsigned i = 0; load->run.parsed && i < load->run.threads; i++)
        sl_parse_counts_add(&parsed, &load->run.parsed[i]);
#define ADD_PARSED(place, name, ...) sum.name += parsed.name;
#define ADD_SENT(place, name, ...) sum.name += totals->name;
    SL_PARSED_COUNTS(ADD_PARSED)
    SL_RUN_COUNTS(ADD_SENT)
    sum.earlier_records = load->ledger.recovered.counts.records;
    sum.undelivered = load->run.undelivered;
    if (load->job.set) /* NULL if the sources could not be opened */
        sum.sources_left_out = sl_source_set_count(load->job.set) - load->job.active;
    sum.not_loaded = load->job.not_loaded.count;
    const sl_embed *embed = load->job.embed;
    if (embed && sum.earlier_records == 0) { /* the journal does not keep them */
        sum.embedding_documents = atomic_load(&embed->documents);
        sum.embedded = atomic_load(&embed->embedded);
    }
    if (embed) {
        sum.unmatched = embed->unmatched;
        sum.embed_rejects = embed->facts.rejects;
        sum.embed_left_out = embed->facts.left_out;
    }
    return sum;
}

/* The values left out in this run, by column. False without memory. */
static bool sum_left_out(const sl_load *load, sl_left_out *sum) {
    bool ok = true;
    for (unsigned i = 0; ok && load->run.left_out && i < load->run.threads; i++)
        ok = sl_left_out_merge(sum, &load->run.left_out[i]);
    return ok;
}

/* The part of the sources that was not read before the load ended. */
typedef struct sl_not_reached {
    uint64_t stored_bytes;
    uint64_t records; /* exact for generated records; otherwise estimated from the records read */
} sl_not_reached;

static sl_not_reached not_reached(const sl_load *load, uint64_t records) {
    uint64_t stored = sl_source_set_stored_bytes(load->job.set);
    uint64_t read = sl_source_set_consumed_bytes(load->job.set);
    if (stored <= read)
        return (sl_not_reached){0};
    sl_not_reached left = {.stored_bytes = stored - read};
    if (sl_job_is_generated(&load->job))
        left.records = left.stored_bytes / sl_job_record_bytes(&load->job);
    else if (read > 0)
        left.records = (uint64_t)((double)records * (double)left.stored_bytes / (double)read);
    return left;
}

/* Appends the counts; `earlier`: those of earlier runs. */
static void append_counts(const sl_load *load, const sl_load_counts *counts, bool earlier,
                          bson_t *section) {
    SL_FOR_COUNTS(one) {
        const sl_count_row *row = &one->row;
        if (row->key && (!earlier || row->of_earlier) &&
            (!row->if_matching || sl_load_mode(load->job.config)->matches) &&
            (!row->if_own_ids || load->job.own_ids))
            INT64(section, row->key, sl_count_value(counts, one));
    }
}

/* Records the totals, and checks that records = inserted + already stored + changed + rejected by
 * the parser + rejected by the server, and, after an early end, + undelivered. */
static bool record_accounting(const sl_load *load, const sl_load_counts *counts,
                              const sl_not_reached *left, const sl_left_out *left_out,
                              bson_t *record) {
    bool holds = counts->records == counts->inserted + counts->already_stored + counts->changed +
                                        counts->rejects + counts->server_rejects +
                                        counts->undelivered;
    const sl_mode_row *mode = sl_load_mode(load->job.config);
    bson_t section;
    BSON_APPEND_DOCUMENT_BEGIN(record, "accounting", &section);
    append_counts(load, counts, false, &section);
    BSON_APPEND_BOOL(&section, "addsUp", holds);
    BSON_APPEND_DOUBLE(&section, "loadSeconds", load->run.seconds);
    if (mode->matches)
        BSON_APPEND_UTF8(&section, "mode", mode->name);
    sl_left_out_append(left_out, &section);
    if (left->stored_bytes > 0)
        BCON_APPEND(&section, "notReached", "{", "storedBytes",
                    BCON_INT64((int64_t)left->stored_bytes), "records",
                    BCON_INT64((int64_t)left->records), "}");
    if (atomic_load(&load->run.ended_by) == SL_ENDED_BY_REJECT_LIMIT) {
        char limit[SL_REJECT_LIMIT_ROOM];
        BSON_APPEND_UTF8(&section, "endedByMaxRejects",
                         sl_reject_limit_text(load->job.config, limit));
    }
    if (load->job.resumed) {
        const sl_load_counts recovered = earlier_counts(&load->ledger.recovered);
        bson_t earlier;
        BSON_APPEND_DOCUMENT_BEGIN(&section, "earlierRuns", &earlier);
        append_counts(load, &recovered, true, &earlier);
        bson_append_document_end(&section, &earlier);
    }
    bson_append_document_end(record, &section);
    return holds;
}

static void record_times(const sl_load *load, const sl_run_totals *totals, bson_t *record) {
    bson_t section;
    BSON_APPEND_DOCUMENT_BEGIN(record, "workerSeconds", &section);
    for (unsigned k = 0; k < STAGES; k++)
        BSON_APPEND_DOUBLE(&section, sl_stage_keys[k], totals->stage_seconds[k]);
    bson_append_document_end(record, &section);
    sl_histogram *all = calloc(1, sizeof *all);
    if (!all)
        return;
    for (unsigned i = 0; load->run.latencies && i < load->run.threads; i++)
        sl_histogram_merge(all, &load->run.latencies[i]);
    static const struct {
        const char *name;
        double quantile;
    } rows[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    BSON_APPEND_DOCUMENT_BEGIN(record, "batchMilliseconds", &section);
    INT64(&section, "batches", all->count);
    if (all->count > 0)
        BSON_APPEND_DOUBLE(&section, "mean", (double)all->sum / (double)all->count / 1e6);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        BSON_APPEND_DOUBLE(&section, rows[i].name,
                           (double)sl_histogram_quantile(all, rows[i].quantile) / 1e6);
    bson_append_document_end(record, &section);
    free(all);
}

static void print_rate(const sl_load *load, const sl_load_counts *counts, bool generated) {
    const sl_recovered *earlier = &load->ledger.recovered;
    uint64_t sent = counts->inserted + counts->already_stored + counts->changed -
                    earlier->inserted - earlier->already_stored - earlier->changed;
    uint64_t moved = generated ? counts->bson_bytes : counts->text_bytes - earlier->text_bytes;
    double seconds = load->run.seconds;
    char rate[SL_HUMAN_ROOM], bytes[SL_HUMAN_ROOM];
    unsigned threads = sl_pace_threads(&load->run);
    if (seconds > 0)
        sl_log_result("  %s documents/s, %s/s of %s, %s",
                      sl_human_count((uint64_t)((double)sent / seconds), rate),
                      sl_human_bytes((double)moved / seconds, bytes), generated ? "BSON" : "text",
                      sl_plural(threads, "thread"));
}

/* Appends the counts that are not zero, in words: "12 inserted, 3 rejected by the parser". */
static void list_counts(const sl_load *load, const sl_load_counts *counts, char *out, size_t room) {
    const sl_mode_row *mode = sl_load_mode(load->job.config);
    char human[SL_HUMAN_ROOM], label[SL_COUNT_LABEL_ROOM];
    size_t used = 0;
    *out = '\0';
    SL_FOR_COUNTS(one) {
        uint64_t number = sl_count_value(counts, one);
        if (number == 0 || !sl_count_is_shown(&one->row, mode, SL_ON_SCREEN, true) ||
            one->offset == offsetof(sl_load_counts, records) ||
            one->offset == offsetof(sl_load_counts, earlier_records))
            continue;
        const char *words = sl_count_label(&one->row, mode, number == 1, label);
        words += strspn(words, "=+ ");
        used += sl_print_text(out + used, room - used, "%s%s %s", used ? ", " : ": ",
                              sl_human_count(number, human), words);
    }
}

/* The summary of a load that soon ended: one line. */
static void print_line(const sl_load *load, const sl_load_counts *counts) {
    const sl_load_config *config = load->job.config;
    char human[SL_HUMAN_ROOM], took[SL_HUMAN_ROOM], list[600], target[300] = "", earlier[60] = "";
    if (config->sink == SL_SINK_CLUSTER)
        sl_print_text(target, sizeof target, "%s.%s: ", config->database, config->collection);
    if (counts->earlier_records > 0)
        sl_print_text(earlier, sizeof earlier, ", %s of them in earlier runs",
                      sl_human_count(counts->earlier_records, human));
    list_counts(load, counts, list, sizeof list);
    sl_log_result("%s%s in %s%s%s", target, sl_plural(counts->records, "record"),
                  sl_human_seconds(sl_run_record_seconds(load->record), took), earlier, list);
}

static void print_table(const sl_load *load, const sl_load_counts *counts) {
    const sl_mode_row *mode = sl_load_mode(load->job.config);
    char human[SL_HUMAN_ROOM], label[SL_COUNT_LABEL_ROOM];
    sl_log_result("%s", "");
    SL_FOR_COUNTS(one) {
        uint64_t number = sl_count_value(counts, one);
        if (sl_count_is_shown(&one->row, mode, SL_ON_SCREEN, number > 0))
            sl_log_row(sl_count_label(&one->row, mode, false, label),
                       sl_human_count(number, human));
    }
}

static void print_summary(const sl_load *load, const sl_load_counts *counts,
                          const sl_not_reached *left, const sl_left_out *left_out) {
    bool generated = sl_job_is_generated(&load->job), is_long = sl_context_is_long();
    char human[SL_HUMAN_ROOM];
    (is_long ? print_table : print_line)(load, counts);
    sl_left_out_log(left_out, counts->malformed_fields);
    if (left->stored_bytes > 0 && !generated)
        sl_log_row("stored bytes not read", sl_human_bytes((double)left->stored_bytes, human));
    if (atomic_load(&load->run.ended_by) == SL_ENDED_BY_REJECT_LIMIT) {
        char limit[SL_REJECT_LIMIT_ROOM];
        sl_log_row("ended by --max-rejects", sl_reject_limit_text(load->job.config, limit));
    }
    if (!is_long)
        return;
    print_rate(load, counts, generated);
    sl_pace_log(&load->run.pace);
}

/* A load that was refused before it began keeps the records of earlier loads. */
static bool keeps_earlier(const sl_load *load, const char *path) {
    if (atomic_load(&load->run.begun) || access(path, F_OK) != 0)
        return false;
    sl_log_info("%s is kept: it is the record of an earlier load", path);
    return true;
}

/* Writes the HTML report of the finished record. */
static sl_exit write_html(sl_load *load, sl_exit code) {
    bson_t copy = BSON_INITIALIZER;
    const bson_t *const records[] = {&copy};
    sl_error error = {0};
    if (!load->html || keeps_earlier(load, load->html))
        return code;
    sl_run_record_copy(load->record, &copy);
    bool written = sl_report_html_write(records, 1, NULL, load->html, &error);
    bson_destroy(&copy);
    if (written)
        sl_log_result("HTML report: %s", load->html);
    else
        sl_log_error(SL_LINES, error.message);
    return written || !sl_exit_is_complete(code) ? code : error.code;
}

/* Writes the finished record to the work directory and to the --report file. */
static sl_exit write_record(sl_load *load, sl_exit code) {
    const char *paths[2] = {NULL, load->report};
    char path[600];
    sl_error error;
    if (load->ledger.work_directory[0]) {
        snprintf(path, sizeof path, "%s/" SL_WORK_RECORD, load->ledger.work_directory);
        paths[0] = path;
    }
    for (int i = 0; i < 2; i++) {
        if (paths[i] && keeps_earlier(load, paths[i]))
            continue;
        if (paths[i] && !sl_run_record_write(load->record, paths[i], &error)) {
            sl_log_error(SL_LINES, error.message);
            if (sl_exit_is_complete(code))
                code = error.code;
        } else if (paths[i]) {
            sl_log_result("run record: %s", paths[i]);
        }
    }
    return code;
}

/* ---- the shards ---- */

static uint64_t sum_documents(const sl_shard_statistics *rows, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += rows[i].documents;
    return sum;
}

uint64_t sl_record_stored(const sl_destination *destination) {
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    sl_error ignored;
    (void)sl_statistics_read(destination->connection, &destination->target, &rows, &count,
                             &ignored);
    const uint64_t sum = sum_documents(rows, count);
    free(rows);
    return sum;
}

/* May another load be storing documents? Every load on a sharded cluster holds the balancer until
 * its documents are stored; this one no longer does. */
static bool others_are_loading(const sl_load *load) {
    sl_balancer_view view;
    sl_error error;
    return !sl_balancer_status(load->destination.connection, &view, &error) ||
           view.holders > view.dead;
}

/* Do the document counts in the servers' statistics agree with the registry's totals of finished
 * loads? After a crash these statistics are wrong, and stay so: then, and while another load is not
 * finished, the documents are counted at the end of a load with verification. The shards are
 * counted one after the other, so their counts do not belong together if another load runs. False
 * when the counts in `rows` may be wrong. */
static bool make_exact(sl_load *load, bool succeeded, sl_shard_statistics *rows, size_t count) {
    uint64_t expected, all = sum_documents(rows, count);
    bool complete, counted;
    sl_error error;
    if (!load->destination.registry ||
        !sl_registry_total(load->destination.registry, NULL, false, &expected, &complete, &error))
        return false;
    if (complete && all == expected)
        return true;
    if (!succeeded || !load->job.config->verify || !load->destination.map || count == 0 ||
        (!complete && count > 1 && others_are_loading(load)) ||
        !sl_statistics_count(load->destination.connection, &load->destination.target,
                             load->destination.topology, load->destination.map, rows, count,
                             &counted, &error))
        return false;
    uint64_t sum = sum_documents(rows, count);
    if (!complete && count > 1 && others_are_loading(load)) /* it began while they were counted */
        return false;
    return counted && (!complete || count == 1 || sum == expected || sum == all);
}

/* If all values of the shard key belong to one shard, the collection uses only that shard. Smaller
 * collections than this get no warning. */
#define ONE_SHARD_LEAST 100
static void warn_of_one_shard(const sl_load *load, const sl_shard_statistics *rows, size_t count,
                              uint64_t all) {
    const sl_topology *topology = load->destination.topology;
    const sl_shard_map *map = load->destination.map;
    const bson_t *shard_key = map ? sl_shard_map_key(map) : NULL;
    if (!topology || topology->count < 2 || all < ONE_SHARD_LEAST || load->job.by_range ||
        !shard_key || !load->destination.created) /* otherwise its owner has chosen the key */
        return;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].documents != all)
            continue;
        char *key = sl_document_json(shard_key);
        sl_log_warning("all documents are on shard %s, and %zu other shard%s none: the "
                       "shard key %s puts them into one range. A hashed field (--shard-key "
                       "'{\"_id\": \"hashed\"}') or a field with many values distributes them: "
                       "load again with it and --drop",
                       rows[i].shard, topology->count - 1, topology->count == 2 ? " has" : "s have",
                       key ? key : "");
        bson_free(key);
    }
}

static const sl_text_column columns[] = {
    {"shard", .left = true, .least = 12},
    {"documents", .least = 14, .unit = SL_UNIT_COUNT},
    {"share", .least = 7},
    {"data", .least = 11, .unit = SL_UNIT_BYTES},
    {"stored", .least = 11, .unit = SL_UNIT_BYTES},
    {"indexes", .least = 11, .unit = SL_UNIT_BYTES},
    {0},
};

/* Records and logs the documents and bytes of the collection on each shard. `succeeded`: the load
 * has not failed, so the documents may be counted where the servers' statistics are in doubt. */
static void shard_table(sl_load *load, bool succeeded) {
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    sl_error error;
    if (!load->destination.connection || !load->destination.target.database)
        return;
    if (!sl_statistics_read(load->destination.connection, &load->destination.target, &rows, &count,
                            &error)) {
        sl_log_warning("no storage figures: " SL_LINES, error.message);
        return;
    }
    bool exact = make_exact(load, succeeded, rows, count);
    uint64_t all = sum_documents(rows, count);
    bson_t array, item;
    bson_t *record = sl_run_record_document(load->record);
    BSON_APPEND_ARRAY_BEGIN(record, "shards", &array);
    sl_text_table *table = sl_text_table_create(columns);
    for (size_t i = 0; i < count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "shard", rows[i].shard);
        INT64(&item, "documents", rows[i].documents);
        BSON_APPEND_BOOL(&item, "exact", exact);
        INT64(&item, "dataBytes", rows[i].data_bytes);
        INT64(&item, "storageBytes", rows[i].storage_bytes);
        INT64(&item, "indexBytes", rows[i].index_bytes);
        bson_append_document_end(&array, &item);
        sl_text_table_cell(table, "%s", rows[i].shard);
        sl_text_table_number(table, (double)rows[i].documents);
        sl_text_table_cell(table, "%.1f %%",
                           all ? 100 * (double)rows[i].documents / (double)all : 0);
        sl_text_table_number(table, (double)rows[i].data_bytes);
        sl_text_table_number(table, (double)rows[i].storage_bytes);
        sl_text_table_number(table, (double)rows[i].index_bytes);
    }
    bson_append_array_end(record, &array);
    bool is_long = sl_context_is_long();
    if (is_long)
        sl_log_result("%s", "");
    if (is_long)
        sl_text_table_log(table);
    else
        sl_text_table_destroy(table);
    warn_of_one_shard(load, rows, count, all);
    if (!exact && count > 0 && is_long)
        sl_log_result(
            "  documents as in the servers' statistics, which may be wrong after a crash, or "
            "while another load runs");
    free(rows);
}

/* ---- the end ---- */

/* The name of the sources whose documents receive the records of --embed. */
static const char *embedding_sources(const sl_load *load) {
    const sl_load_config *config = load->job.config;
    return config->path_count == 1 ? config->paths[0] : "the sources of the documents";
}

/* Rejects of a source. If all of them were corrected and loaded before, `known` and `lost` are 0:
 * they are not offered again, because in other words they would be stored twice. */
typedef struct reject_counts {
    uint64_t all;
    uint64_t known; /* those whose text is in the folder of rejects */
    uint64_t lost;  /* refused documents whose text is not known */
} reject_counts;

static reject_counts rejects_of(const sl_load *load, size_t source) {
    const sl_source_account *account = &load->ledger.sources[source];
    const sl_registry_entry *before = load->job.sources[source].corrected;
    const uint64_t taken = load->job.own_ids ? 0 : atomic_load(&account->taken);
    const uint64_t rejected = atomic_load(&account->rejected);
    const uint64_t refused = atomic_load(&account->refused) - taken;
    const bool kept = sl_text_is_kept(&load->job, &load->destination, source);
    reject_counts counts = {.all = rejected + refused};
    if (before && counts.all <= before->corrected)
        return counts;
    counts.known = rejected + (kept ? refused : 0);
    counts.lost = kept ? 0 : refused;
    return counts;
}

/* Logs how many rejects of a source were corrected and loaded before. */
static void log_corrected(const sl_load *load, size_t source) {
    const sl_registry_entry *before = load->job.sources[source].corrected;
    const uint64_t rejects = rejects_of(load, source).all;
    const bool all = before && rejects <= before->corrected;
    if (!before || rejects == 0)
        return;
    sl_log_result("  %s: %s rejected, %s%scorrected and loaded on %s%s",
                  sl_source_set_at(load->job.set, source)->shown, sl_number_text(rejects),
                  all ? "" : sl_number_text(before->corrected), all ? "" : " of these ",
                  before->corrected_when,
                  all ? "" : ": remove these from the file of rejects before you load it");
}

/* The first source, from this one on, with rejects whose text is known. Sets the `options` that
 * read the rejects. */
static size_t next_rejecting(const sl_load *load, size_t source, char options[200]) {
    while (source < sl_source_set_count(load->job.set) && rejects_of(load, source).known == 0)
        source++;
    if (source < sl_source_set_count(load->job.set))
        sl_sources_reading_options(&load->job, source, load->job.config->corrected_by, options,
                                   200);
    return source;
}

#define COMMANDS_SHOWN 20u

/* Logs the command that loads the corrected records: one for the folder, or for its only file; or
 * one for each file if the files are not read alike, or if some are not offered again. */
static void log_commands(const sl_load *load) {
    const char *command = load->job.config->corrected_by;
    char path[SL_REJECTED_PATH_ROOM], word[SL_REJECTED_PATH_ROOM + 20], more[200], other[200];
    const size_t sources = sl_source_set_count(load->job.set);
    const size_t first = next_rejecting(load, 0, more);
    size_t shown = 0;
    bool each = false;
    if (first == sources)
        return;
    sl_rejected_path(load->ledger.work_directory, path);
    const bool one = strcmp(sl_base_name(path), SL_WORK_REJECTED) != 0;
    for (size_t i = 0; !one && !each && i < sources; i++)
        each = load->job.sources[i].corrected != NULL;
    for (size_t i = first; !one && !each && (i = next_rejecting(load, i + 1, other)) < sources;)
        each = strcmp(more, other) != 0;
    sl_shell_word(path, word, sizeof word);
    sl_log_result("  the rejected records are in %s; correct them there, and load them:", path);
    if (!each)
        sl_log_result("    %s%s %s", command, more, word);
    for (size_t i = first; each && i < sources; i = next_rejecting(load, i + 1, more)) {
        if (shown++ < COMMANDS_SHOWN)
            sl_log_result("    %s%s %s/" SL_REJECTED_NUMBER "*", command, more, word, i + 1);
    }
    if (shown > COMMANDS_SHOWN)
        sl_log_result("    and %zu more files of the folder, each by such a command",
                      shown - COMMANDS_SHOWN);
}

/* Logs the command that loads the corrected records of rejects, and, if most records were rejected,
 * how to load them with other options. */
static void log_correction(const sl_load *load, const sl_load_counts *counts) {
    const sl_load_config *config = load->job.config;
    const uint64_t rejects = counts->rejects + counts->server_rejects;
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    uint64_t lost = 0; /* rejects whose text is not known */
    if (!config->corrected_by || config->map || !load->ledger.work_directory[0])
        return;
    for (size_t i = 0; i < sl_source_set_count(load->job.set); i++) {
        log_corrected(load, i);
        lost += rejects_of(load, i).lost;
    }
    log_commands(load);
    const sl_mode_row *mode = sl_load_mode(config);
    if (mode->must_match && counts->server_rejects > lost)
        sl_log_result(
            "  to insert those that match no stored document, load them with --mode insert "
            "instead of --mode %s%s",
            mode->name, config->format_options.match_fields ? " and --match-fields" : "");
    if (lost > 0 && !mode->removes)
        sl_log_result("  the text of %s was not kept: when the reason is removed, load the same "
                      "sources again%s",
                      sl_plural(lost, "refused record"),
                      mode->matches ? ""
                                    : " with --again: stored documents are not changed, and the "
                                      "missing ones are inserted");
    if (rejects * 2 > counts->records)
        sl_log_warning(
            "most records were rejected: %s of %s. If a type or another option is wrong, correct "
            "it, and load the same sources again with --again: stored documents are not changed, "
            "and the missing ones are inserted%s",
            sl_human_count(rejects, a), sl_human_count(counts->records, b),
            counts->server_rejects > counts->rejects && load->job.own_ids &&
                    !sl_load_mode(config)->matches
                ? ". If the sources are another version of stored documents, load them with --mode "
                  "upsert, which replaces documents, or --mode merge, which sets fields"
                : "");
}

sl_exit sl_record_end(sl_load *load, sl_exit code) {
    sl_run_totals totals = sl_run_sum(&load->run);
    sl_load_counts counts = sum_counts(load, &totals);
    bool began = load->run.counters != NULL;
    sl_not_reached left = {0};
    if (began && code != SL_EXIT_OK) {
        left = not_reached(load, counts.records);
        *(sl_job_is_generated(&load->job) ? &counts.not_read : &counts.not_read_estimated) =
            left.records;
    }
    bson_t *record = sl_run_record_document(load->record);
    record_cluster(load, record);
    record_sources(load, record);
    sl_types_append(&load->job, record);
    sl_not_loaded_record(&load->job, record);
    sl_embedding_record(&load->job, record);
    uint64_t rejects = counts.rejects + counts.server_rejects;
    char human[SL_HUMAN_ROOM];
    sl_reject_summary_record(&load->ledger.reject_kinds, rejects, record);
    sl_left_out left_out = {0};
    if (!sum_left_out(load, &left_out))
        sl_log_warning("values left out are not listed by column: out of memory");
    bool holds = record_accounting(load, &counts, &left, &left_out, record);
    record_times(load, &totals, record);
    sl_pace_record(&load->run.pace, record);
    if (began) {
        print_summary(load, &counts, &left, &left_out);
        sl_reject_summary_log(record, load->job.embed ? embedding_sources(load) : NULL);
        sl_embedding_log_rejects(&load->job, load->ledger.work_directory);
        if (code != SL_EXIT_CLUSTER) /* a failed cluster is not queried again */
            shard_table(load, sl_exit_is_complete(code));
        if (sl_context_is_long())
            sl_run_record_log_phases(load->record);
    }
    sl_left_out_clear(&left_out);
    if (began && code == SL_EXIT_OK && counts.records == 0 &&
        !sl_load_is_shared(load->job.config) && !load->job.config->divided)
        sl_log_warning("no records: the sources hold only headers and blank lines");
    if (load->dropped > 0 && counts.inserted + counts.already_stored + counts.changed == 0)
        sl_log_warning("--drop has removed %s of %s.%s, and no document was loaded",
                       sl_plural(load->dropped, "document"), load->destination.target.database,
                       load->destination.target.collection);
    if (began && !holds) {
        sl_log_error("the totals do not add up: %llu records were read, but they are not all "
                     "inserted, already stored, rejected or counted as not acknowledged; do not "
                     "rely on this load",
                     (unsigned long long)counts.records);
        if (code == SL_EXIT_OK || code == SL_EXIT_INTERRUPTED)
            code = SL_EXIT_VERIFICATION;
    }
    if (code == SL_EXIT_OK && rejects + counts.embed_rejects + counts.unmatched > 0)
        code = SL_EXIT_REJECTS;
    if (began && code == SL_EXIT_REJECTS)
        log_correction(load, &counts);
    const char *directory = load->ledger.work_directory;
    if (began && rejects > 0 && sl_context_is_quiet())
        sl_log_error("%s of %s rejected%s%s%s", sl_human_count(rejects, human),
                     sl_plural(counts.records, "record"), *directory ? ": see " : "", directory,
                     *directory ? "/" SL_WORK_REJECTS : "");
    sl_record_tail(record, code);

    if (load->job.config->run_record)
        sl_run_record_copy(load->record, load->job.config->run_record);
    code = write_record(load, code);
    return write_html(load, code);
}
