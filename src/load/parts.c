/* SPDX-License-Identifier: Apache-2.0 */
/* A load that is shared by several loaders (--part K/N, --only-shards), each with a work directory
 * of its own.
 *
 * All loaders are given the same sources, and do not communicate; ids, ranges and placement are the
 * same as in a load by one loader. They share only the registry: it gives a source the same number
 * in all loaders, and records which parts of it are loaded. The loader that finishes last finds no
 * part missing, counts the documents of all parts, and only then marks the source as loaded.
 *
 * All loaders must assign the same blocks to the same part, or some blocks would not be loaded.
 * With --part the assignment is arithmetic (sl_source_set_part). With --only-shards each shard of
 * the cluster is a part: the stripes that ranges.c lays out for it. The layout of a source depends
 * on the other sources of the same load, so loaders could compute different ones. Therefore the
 * layout that is proposed first is kept in the registry (sl_registry_agree_layout), with the shards that
 * it is for, and all loaders use it. The present owners of the chunks do not matter: a block whose
 * chunk is on another shard is loaded by the same loader. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

/* ---- the parts of this loader ---- */

bool sl_parts_begin(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (!sl_load_is_shared(load))
        return true;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_source *source = sl_source_set_at(load->set, i);
        if (source->kind == SL_SOURCE_PIPE)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s: a pipe cannot be shared by several loaders; %s is for files",
                                source->shown, config->only_shards ? "--only-shards" : "--part");
    }
    if (config->only_shards) /* needs a connection: sl_parts_find_shards */
        return true;
    /* By the fingerprint of a source, not by its position on the command line: another loader may
     * have them in another order, or find one file more in a folder. */
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const char *fingerprint = load->sources[i].fingerprint;
        sl_source_set_spread(load->set, i,
                             sl_hash((const uint8_t *)fingerprint, strlen(fingerprint)));
    }
    sl_source_set_part(load->set, config->part, config->parts);
    load->parts = config->parts;
    return true;
}

/* The names of all shards, or with `which` of those marked there. */
static const char *names_of(const sl_load *load, const bool *which, char names[300]) {
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < load->topology->count && used < 300; i++) {
        if (!which || which[i])
            used += (size_t)snprintf(names + used, 300 - used, "%s%s", used > 0 ? ", " : "",
                                     load->topology->shards[i].name);
    }
    if (used >= 300)
        memcpy(names + 295, " ...", 5);
    return names;
}

static bool find_shard(sl_load *load, sl_text name, sl_error *error) {
    char names[300];
    for (size_t i = 0; i < load->topology->count; i++) {
        if (sl_text_equal(name, sl_text_of(load->topology->shards[i].name))) {
            load->own_shards[i] = true;
            return true;
        }
    }
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--only-shards: the cluster has no shard \"%.*s\"; it has %s",
                        (int)name.length, name.bytes, names_of(load, NULL, names));
}

bool sl_parts_find_shards(sl_load *load, sl_error *error) {
    const char *names = load->config->only_shards;
    const sl_server *server = sl_connection_server(load->connection);
    if (!names)
        return true;
    if (server->deployment != SL_SHARDED)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--only-shards needs a sharded cluster, and %s is a %s; several "
                            "loaders share a load into it with --part",
                            sl_connection_display_uri(load->connection),
                            sl_deployment_name(server->deployment));
    load->parts = (uint32_t)load->topology->count;
    load->own_shards = calloc(load->parts, sizeof *load->own_shards);
    if (!load->own_shards)
        return sl_error_memory(error, "starting");
    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ",");
        if (!find_shard(load, (sl_text){at, length}, error))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

/* The first of this loader's parts after `part`; 0: there is none. */
static uint32_t next_part(const sl_load *load, uint32_t part) {
    if (!load->own_shards)
        return part < load->config->part ? load->config->part : 0;
    while (part < load->parts && !load->own_shards[part])
        part++;
    return part < load->parts ? part + 1 : 0;
}

bool sl_parts_each(sl_load *load, sl_parts_function *function, sl_registry_entry *entries,
                   size_t count, sl_error *error) {
    char division[SL_DIVISION_ROOM] = "shards";
    if (!load->own_shards)
        snprintf(division, sizeof division, "%u", load->parts);
    if (load->parts > 0) {
        bson_t options = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&options, "version", load->config->program_version);
        sl_resume_format_options(load->config, &options);
        sl_registry_set_options(load->registry, &options);
        bson_destroy(&options);
    }
    uint32_t part = next_part(load, 0);
    bool ok;
    do {
        if (part > 0)
            sl_registry_set_part(load->registry, division, part,
                                 load->config->again && !load->resumed);
        ok = function(load, part, entries, count, error);
        part = part > 0 ? next_part(load, part) : 0;
    } while (ok && part > 0);
    return ok;
}

/* ---- by shards ---- */

static uint64_t hash_names(const sl_topology *topology) {
    uint64_t hash = topology->count;
    for (size_t i = 0; i < topology->count; i++) {
        const char *name = topology->shards[i].name;
        hash = sl_hash_mix(hash ^ sl_hash((const uint8_t *)name, strlen(name)), SL_HASH_A);
    }
    return hash;
}

bool sl_parts_layout_holds(const sl_load *load, const sl_registry_entry *entry, sl_error *error) {
    const sl_layout *layout = &entry->layout;
    char shown[400], names[300];
    if (!load->own_shards || layout->shards == 0 ||
        (layout->shards == load->topology->count &&
         layout->shard_names == hash_names(load->topology) && layout->pieces > 0 &&
         layout->pieces <= SL_STRIPES && layout->pieces <= layout->shards))
        return true;
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "--only-shards: the first loader of %s divided it over %u shards, which are "
        "not the shards that the cluster has now (%s): some of its blocks would not "
        "be loaded. Load it with --part, or by one loader without either option; "
        "documents that are stored stay as they are",
        shown, layout->shards, names_of(load, NULL, names));
}

void sl_parts_propose(const sl_load *load, size_t index, sl_registry_entry *entry) {
    const sl_load_source *source = &load->sources[index];
    entry->layout = (sl_layout){.shards = load->parts,
                                .shard_names = hash_names(load->topology),
                                .pieces = source->pieces,
                                .leading = source->leading};
}

static bool is_ours(const void *context, size_t index, uint64_t offset) {
    const sl_load *load = context;
    return load->own_shards[sl_load_shard_at(load, &load->sources[index], offset)];
}

static bool any_is_ours(const sl_load *load, const sl_load_source *source) {
    uint32_t piece = 0;
    while (piece < source->pieces && !load->own_shards[sl_load_shard_of(load, source, piece)])
        piece++;
    return piece < source->pieces;
}

void sl_parts_choose_blocks(sl_load *load) {
    size_t ranges = 0, elsewhere = 0;
    char names[300];
    if (!load->own_shards)
        return;
    sl_source_set_filter(load->set, is_ours, load);
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        if (!load->sources[i].skipped && !any_is_ours(load, &load->sources[i]))
            sl_source_set_skip(load->set, i); /* need not be read */
    }
    for (size_t i = 0; i < load->range_count; i++) {
        const sl_range *range = &load->ranges[i];
        ranges += load->own_shards[range->shard];
        elsewhere += load->own_shards[range->shard] && !sl_range_is_placed(load->map, range);
    }
    sl_log_info("only shards %s: %zu of %zu ranges, the others are left to other loaders",
                names_of(load, load->own_shards, names), ranges, load->range_count);
    if (elsewhere > 0)
        sl_log_info(
            "%zu of these ranges hold documents and are on other shards; they are loaded there",
            elsewhere);
}

bool sl_parts_has_range(const sl_load *load, const sl_range *range) {
    return !load->own_shards || load->own_shards[range->shard];
}

/* ---- the end ---- */

/* Each piece of a source in several pieces is a range of its own, laid out for one shard. */
uint64_t sl_parts_documents(const sl_load *load, size_t index, uint32_t part) {
    const sl_load_source *source = &load->sources[index];
    if (part == 0)
        return atomic_load(&source->accepted);
    if (!load->own_shards || source->pieces == 1)
        return !load->own_shards || sl_load_shard_of(load, source, 0) == part - 1
                   ? atomic_load(&source->accepted) + atomic_load(&source->taken)
                   : 0;
    uint64_t documents = 0;
    for (uint32_t piece = 0; piece < source->pieces; piece++) {
        int64_t first = sl_stripe_first_id(source->number, sl_load_piece_begin(source, piece));
        if (sl_load_shard_of(load, source, piece) == part - 1)
            documents += atomic_load(&load->accepted[sl_load_range_of(load, first)]);
    }
    return documents;
}

/* Compares the documents that the cluster holds of a complete source with those of its parts. */
static bool count_source(sl_load *load, size_t index, sl_error *error) {
    const sl_load_source *source = &load->sources[index];
    uint64_t found;
    if (!sl_count_range(load->connection, &load->target, sl_stripe_first_id(source->number, 0),
                        sl_stripe_first_id(source->number, SL_STRIPES), &found, error))
        return false;
    return found == source->parts_accepted ||
           sl_error_set(
               error, SL_EXIT_VERIFICATION,
               "verification failed: %s: its %u parts have loaded %llu documents, and %llu "
               "are stored; has another program written to %s.%s? shardload verify --content "
               "lists the documents",
               sl_source_set_at(load->set, index)->shown, load->parts,
               (unsigned long long)source->parts_accepted, (unsigned long long)found,
               load->target.database, load->target.collection);
}

static void log_what_is_loaded(const sl_load *load, size_t whole, uint64_t documents) {
    char shown[SL_HUMAN_ROOM], names[300];
    size_t rest = load->active - whole;
    if (rest == 0)
        sl_log_info("all %u %s are loaded: %s documents in total", load->parts,
                    load->own_shards ? "shards" : "parts", sl_human_count(documents, shown));
    else if (load->own_shards)
        sl_log_info("shards %s are loaded; %zu of %zu sources wait for other shards",
                    names_of(load, load->own_shards, names), rest, load->active);
    else
        sl_log_info("part %u of %u is loaded; %zu of %zu sources wait for other parts",
                    load->config->part, load->parts, rest, load->active);
}

bool sl_parts_end(sl_load *load, sl_error *error) {
    size_t whole = 0;
    uint64_t documents = 0;
    if (load->parts == 0)
        return true;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_load_source *source = &load->sources[i];
        if (source->skipped || source->parts_loaded < load->parts)
            continue;
        if (load->config->verify && !count_source(load, i, error))
            return false;
        whole++;
        documents += source->parts_accepted;
    }
    if (!sl_sources_mark_complete(load, error))
        return false;
    log_what_is_loaded(load, whole, documents);
    return true;
}
