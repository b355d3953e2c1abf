/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text: tables of sources and phases, and the layout as bars. */
#include "plan.h"

#include <math.h>
#include <string.h>

#include "util/document_id.h"
#include "util/print.h"
#include "util/text_table.h"

#define SOURCES_SHOWN 20
#define RANGES_BAR 64 /* characters for the stripes of a source, 4 stripes each */
#define SHARE_BAR 40
#define SHARDS_SHOWN 64

/* The characters that represent shards in the bars. */
static const char shard_signs[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static char sign_of(uint32_t shard) {
    return shard < sizeof shard_signs - 1 ? shard_signs[shard] : '+';
}

static char *count(double value, char out[SL_HUMAN_ROOM]) {
    return sl_human_count((uint64_t)(value + 0.5), out);
}

static void add_range(sl_text_table *table, const sl_estimate *figure, bool exact,
                      char *(*text)(double value, char out[SL_HUMAN_ROOM])) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    if (exact || figure->low == figure->high)
        sl_text_table_cell(table, "exactly");
    else
        sl_text_table_cell(table, "%s to %s", text(figure->low, low), text(figure->high, high));
}

static void add_row(sl_text_table *table, const char *name, const char *format, uint64_t stored,
                    bool generated, bool exact, const sl_measure *measure) {
    double documents = measure->documents.value;
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%s", format);
    sl_text_table_number(table, generated ? NAN : (double)stored);
    sl_text_table_number(table, generated ? NAN : measure->text_bytes.value);
    sl_text_table_number(table, documents);
    add_range(table, &measure->documents, false, count);
    sl_text_table_number(table, measure->bson_bytes.value);
    add_range(table, &measure->bson_bytes, exact, sl_human_bytes);
    sl_text_table_cell(table, "%.0f", documents > 0 ? measure->bson_bytes.value / documents : 0);
    sl_text_table_cell(table, "%.3g %%", 100 * measure->rejects_share);
}

bool sl_plan_print_sources(const sl_preview *preview, FILE *out) {
    static const sl_text_column columns[] = {
        {"source", .left = true},
        {"format", .left = true},
        {"stored", .unit = SL_UNIT_BYTES},
        {"text", .unit = SL_UNIT_BYTES},
        {"documents", .unit = SL_UNIT_COUNT},
        {"range", .left = true},
        {"BSON", .unit = SL_UNIT_BYTES},
        {"range", .left = true},
        {.title = "average"},
        {.title = "rejects"},
        {0},
    };
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    uint64_t stored = 0, looked_at = 0;
    sl_text_table *table = sl_text_table_create(columns);
    for (size_t i = 0; i < preview->source_count; i++) {
        const sl_preview_source *source = &preview->sources[i];
        const char *name = strrchr(source->name, '/');
        stored += source->stored_bytes;
        looked_at += source->sampled;
        if (i < SOURCES_SHOWN)
            add_row(table, name && name[1] && source->record_bytes == 0 ? name + 1 : source->name,
                    source->format, source->stored_bytes, source->record_bytes > 0, source->exact,
                    &source->measure);
    }
    if (preview->source_count > SOURCES_SHOWN) {
        sl_text_table_cell(table, "... and %s more",
                           sl_human_count(preview->source_count - SOURCES_SHOWN, a));
        sl_text_table_end_row(table);
    }
    if (preview->source_count > 1)
        add_row(table, "total", "", stored, preview->generated, false, &preview->all);
    sl_print_to(out, "%zu source%s; sampled %s of about %s blocks of 1 MiB", preview->source_count,
                preview->source_count == 1 ? "" : "s", sl_human_count(preview->all.blocks_read, a),
                count(preview->all.blocks, b));
    if (looked_at < preview->source_count)
        sl_print_to(out, ", from %s of the sources", sl_human_count(looked_at, a));
    sl_print_to(out, "\n");
    bool ok = sl_text_table_print(table, out, 2);
    sl_text_table_destroy(table);
    return ok;
}

/* ---- the target and its layout ---- */

static const char *layout_text(sl_preview_layout layout) {
    static const char *const texts[] = {
        "not sharded",
        "sharded by _id: ranges are split and placed before the load",
        "sharded by a hashed key: the server distributes it, evenly if the key has many values",
        "sharded by another key: shares as the sampled documents fall into the existing chunks",
        "sharded by another key, with a single chunk: ALL DOCUMENTS GO TO ONE SHARD until the "
        "balancer moves them; split the chunk before the load, or shard by _id or a hashed key",
        "sharded by ranges of another key: the collection is split before the load at quantiles of "
        "a "
        "sample of the key"};
    return texts[layout];
}

static void print_balancer(const sl_balancer_view *balancer, FILE *out) {
    bool on = strcmp(balancer->mode, "full") == 0;
    char names[sizeof balancer->names];
    if (!balancer->mode[0])
        return;
    sl_print_to(out, "  the balancer is %s%s\n", on ? "on" : "off",
                on ? "; the load stops it and then restores it" : "");
    if (balancer->holders == 0)
        return;
    sl_text_printable(sl_text_of(balancer->names), names, sizeof names);
    sl_print_to(out, "  it was %s before loads stopped it: %s\n",
                strcmp(balancer->before, "full") == 0 ? "on" : "off", names);
    if (balancer->dead == balancer->holders)
        sl_print_to(out, "  all of these loads have ended: the next load restores it\n");
}

/* Prints what a load changes in the collection: its sharding and its indexes. */
static void print_changes(const sl_preview *preview, const sl_load_config *config, FILE *out) {
    static const char *const changes[] = {
        [SL_SHARDING_NONE] = NULL,
        [SL_SHARDING_NEW] = NULL,
        [SL_SHARDING_EXISTING] = "exists unsharded: --shard-existing SHARDS IT by",
        [SL_SHARDING_LEFT] =
            "exists unsharded and stays unsharded; --shard-existing would shard it by"};
    if (preview->exists && !preview->refusal.code && changes[preview->sharding]) {
        char *key = bson_as_relaxed_extended_json(config->shard_key, NULL);
        sl_print_to(out, "  it %s %s\n", changes[preview->sharding], key);
        bson_free(key);
    }
    for (size_t i = 0; i < config->index_count; i++) {
        char *key = bson_as_relaxed_extended_json(config->indexes[i], NULL);
        sl_print_to(out, "  index %s is built after the load, unless it exists\n", key);
        bson_free(key);
    }
}

void sl_plan_print_target(const sl_preview *preview, const sl_load_config *config, FILE *out) {
    if (!preview->connection) {
        sl_print_to(out, "\nno cluster (--uri) given: planned for %u empty shard%s\n",
                    preview->shards, preview->shards == 1 ? "" : "s");
        return;
    }
    const sl_server *server = sl_connection_server(preview->connection);
    sl_print_to(out, "\n%s: %s, server %s\n", sl_connection_display_uri(preview->connection),
                sl_deployment_name(server->deployment), server->version);
    sl_print_to(out, "  %s.%s %s\n", config->database, config->collection,
                preview->exists ? "exists: documents are added to it"
                : config->drop  ? "is dropped, if it exists, and created"
                                : "is created");
    print_changes(preview, config, out);
    print_balancer(&preview->balancer, out);
}

/* Prints one row per source: the shards of its ids, from its first stripe to its last. */
static void draw_ranges(const sl_preview *preview, FILE *out) {
    size_t range = 0;
    sl_print_to(
        out, "\n  ids of each source, in order; a character stands for 4 of its 256 stripes and is "
             "the shard's\n  character in the table below\n");
    for (size_t i = 0; i < preview->source_count && i < SOURCES_SHOWN; i++) {
        char bar[RANGES_BAR + 1] = "";
        uint32_t number = preview->sources[i].number;
        range = 0;
        for (uint32_t column = 0; column < RANGES_BAR; column++) {
            int64_t id = sl_stripe_first_id(number, column * (SL_STRIPES / RANGES_BAR));
            while (range + 1 < preview->range_count &&
                   preview->ranges[range + 1].range.minimum <= id)
                range++;
            bar[column] =
                preview->ranges[range].stays ? '=' : sign_of(preview->ranges[range].shard);
        }
        sl_print_to(out, "  #%-6u |%s|\n", number, bar);
    }
    if (preview->source_count > SOURCES_SHOWN)
        sl_print_to(out, "  ... and %zu more\n", preview->source_count - SOURCES_SHOWN);
}

static void draw_shares(const sl_preview *preview, FILE *out) {
    static const sl_text_column columns[] = {
        {"shard", .left = true, .least = 14},
        {"documents", .least = 14},
        {"BSON", .least = 9, .unit = SL_UNIT_BYTES},
        {"share", .least = 7},
        {"", .left = true},
        {0},
    };
    double most = 0;
    sl_text_table *table = sl_text_table_create(columns);
    for (uint32_t i = 0; i < preview->shards; i++)
        most = fmax(most, preview->shard_share[i]);
    for (uint32_t i = 0; i < preview->shards && i < SHARDS_SHOWN; i++) {
        char bar[SHARE_BAR + 1] = "";
        double share = preview->shard_share[i];
        size_t length = most > 0 ? (size_t)(share / most * SHARE_BAR + 0.5) : 0;
        memset(bar, '#', length);
        sl_text_table_cell(table, "%c %.40s", sign_of(i),
                           preview->topology ? preview->topology->shards[i].name : "");
        sl_text_table_number(table, share * preview->all.documents.value);
        sl_text_table_number(table, share * preview->all.bson_bytes.value);
        sl_text_table_cell(table, "%.1f %%", 100 * share);
        sl_text_table_cell(table, "%s", bar);
    }
    sl_print_to(out, "\n");
    sl_text_table_rule(table, NULL);
    sl_text_table_print(table, out, 2);
    sl_text_table_destroy(table);
    if (preview->shards > SHARDS_SHOWN)
        sl_print_to(out, "  ... and %u more\n", preview->shards - SHARDS_SHOWN);
}

void sl_plan_print_layout(const sl_preview *preview, FILE *out) {
    if (preview->shards == 1 && preview->layout == SL_LAYOUT_RANGES) {
        sl_print_to(out, "  one shard: no ranges to distribute\n");
        return;
    }
    sl_print_to(out, "  %s\n", layout_text(preview->layout));
    if (preview->layout == SL_LAYOUT_RANGES) {
        sl_print_to(out, "  %zu ranges: %zu split%s and %zu move%s%s\n", preview->range_count,
                    preview->steps.splits, preview->steps.splits == 1 ? "" : "s",
                    preview->steps.moves, preview->steps.moves == 1 ? "" : "s",
                    preview->connection && !preview->home_known
                        ? " (estimated: the server chooses the first shard of the new database)"
                        : "");
        if (preview->steps.occupied > 0)
            sl_print_to(out,
                        "  %zu of them hold documents on another shard and are not moved (=)\n",
                        preview->steps.occupied);
        draw_ranges(preview, out);
    }
    if (preview->shards > 1)
        draw_shares(preview, out);
}

/* ---- times ---- */

void sl_plan_print_times(const sl_plan_times *prediction, const char *from, FILE *out) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM];
    if (!prediction) {
        sl_print_to(
            out,
            "\nNo time is predicted: the speed of this cluster is not known. Give --from FILE with "
            "the\nrecord of `shardload tune` (tune.json) or of any load (run.json), or --rate "
            "DOCUMENTS_PER_SECOND.\n");
        return;
    }
    sl_print_to(out, "\npredicted time, from the rates of %s\n", from);
    for (size_t i = 0; i < prediction->count; i++) {
        const sl_estimate *seconds = &prediction->phases[i].seconds;
        if (isnan(seconds->value))
            sl_print_to(out, "  %-10s unknown: %s\n", prediction->phases[i].name,
                        prediction->phases[i].why);
        else
            sl_print_to(out, "  %-10s %14s  (%s to %s)\n", prediction->phases[i].name,
                        sl_human_seconds(seconds->value, a), sl_human_seconds(seconds->low, b),
                        sl_human_seconds(seconds->high, c));
    }
    sl_print_to(out, "  %-10s %14s  (%s to %s)%s\n", "total",
                sl_human_seconds(prediction->seconds.value, a),
                sl_human_seconds(prediction->seconds.low, b),
                sl_human_seconds(prediction->seconds.high, c),
                prediction->complete ? "" : ", without the phases of unknown time");
}
