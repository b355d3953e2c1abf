/* SPDX-License-Identifier: Apache-2.0 */
/* A load that is shared by several loaders (--part K/N, --only-shards), each with its own work
 * directory.
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
 * registry stores the layout that is proposed first, with its shards (sl_registry_agree_layout),
 * and all loaders use that layout. The present owners of the chunks do not matter: a block whose
 * chunk is on another shard is loaded by the same loader. */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/log.h"
#include "util/text.h"

/* ---- the parts of this loader ---- */

bool sl_parts_begin(sl_job *job, sl_error *error) {
    const sl_load_config *config = job->config;
    if (!sl_load_is_shared(job->config))
        return true;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_source *source = sl_source_set_at(job->set, i);
        if (source->kind == SL_SOURCE_PIPE)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s: a pipe cannot be shared by several loaders; %s is for files",
                                source->shown, config->only_shards ? "--only-shards" : "--part");
    }
    if (config->only_shards) /* these need a connection: see sl_parts_find_shards */
        return true;
    /* The part depends on the fingerprint of a source, not on its position on the command line:
     * another loader may be given the sources in another order, or find one file more in a
     * folder. */
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const char *fingerprint = job->sources[i].fingerprint;
        sl_source_set_spread(job->set, i,
                             sl_hash((const uint8_t *)fingerprint, strlen(fingerprint)));
    }
    sl_source_set_part(job->set, config->part, config->parts);
    job->parts = config->parts;
    return true;
}

const char *sl_shard_names(const sl_topology *topology, const bool *which,
                           char names[SL_SHARD_NAMES_ROOM]) {
    const size_t room = SL_SHARD_NAMES_ROOM;
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < topology->count && used < room; i++) {
        if (!which || which[i])
            used += (size_t)snprintf(names + used, room - used, "%s%s", used > 0 ? ", " : "",
                                     topology->shards[i].name);
    }
    if (used >= room)
        memcpy(names + room - 5, " ...", 5);
    return names;
}

static bool find_shard(const sl_job *job, const sl_destination *destination, sl_text name,
                       sl_error *error) {
    char names[SL_SHARD_NAMES_ROOM];
    for (size_t i = 0; i < destination->topology->count; i++) {
        if (sl_text_equal(name, sl_text_of(destination->topology->shards[i].name))) {
            job->own_shards[i] = true;
            return true;
        }
    }
    return sl_error_set(
        error, SL_EXIT_USAGE, "--only-shards: the cluster has no shard \"%.*s\"; it has %s",
        (int)name.length, name.bytes, sl_shard_names(destination->topology, NULL, names));
}

bool sl_parts_find_shards(sl_job *job, sl_destination *destination, sl_error *error) {
    const char *names = job->config->only_shards;
    const sl_server *server = sl_connection_server(destination->connection);
    if (!names)
        return true;
    if (server->deployment != SL_SHARDED)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--only-shards needs a sharded cluster, and %s is a %s; several "
                            "loaders share a load into it with --part",
                            sl_connection_display_uri(destination->connection),
                            sl_deployment_name(server->deployment));
    job->parts = (uint32_t)destination->topology->count;
    job->own_shards = calloc(job->parts, sizeof *job->own_shards);
    if (!job->own_shards)
        return sl_error_memory(error, "starting");
    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ",");
        if (!find_shard(job, destination, (sl_text){at, length}, error))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

/* The first of this loader's parts after `part`; 0: there is none. */
static uint32_t next_part(const sl_job *job, uint32_t part) {
    if (!job->own_shards)
        return part < job->config->part ? job->config->part : 0;
    while (part < job->parts && !job->own_shards[part])
        part++;
    return part < job->parts ? part + 1 : 0;
}

bool sl_parts_each(const sl_job *job, sl_destination *destination, sl_parts_function *function,
                   const void *context, sl_registry_entry *entries, size_t count, sl_error *error) {
    char division[SL_DIVISION_ROOM] = "shards";
    if (!job->own_shards)
        snprintf(division, sizeof division, "%u", job->parts);
    if (job->parts > 0) {
        bson_t options = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&options, "version", job->config->program_version);
        if (job->config->document_options)
            bson_copy_to_excluding_noinit(job->config->document_options, &options, "part",
                                          "only-shards", NULL);
        sl_registry_set_options(destination->registry, &options);
        bson_destroy(&options);
    }
    uint32_t part = next_part(job, 0);
    bool ok;
    do {
        if (part > 0)
            sl_registry_set_part(destination->registry, division, part,
                                 job->config->again && !job->resumed);
        ok = function(job, destination, context, part, entries, count, error);
        part = part > 0 ? next_part(job, part) : 0;
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

bool sl_parts_layout_holds(const sl_job *job, const sl_destination *destination,
                           const sl_registry_entry *entry, sl_error *error) {
    const sl_layout *layout = &entry->layout;
    char shown[400], names[SL_SHARD_NAMES_ROOM];
    if (!job->own_shards || layout->shards == 0 ||
        (layout->shards == destination->topology->count &&
         layout->shard_names == hash_names(destination->topology) && layout->pieces > 0 &&
         layout->pieces <= SL_STRIPES && layout->pieces <= layout->shards))
        return true;
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "--only-shards: the first loader of %s divided it over %u shards, and the cluster now has "
        "other shards (%s): some of its blocks would not be loaded. Load it with --part, or by one "
        "loader without either option; stored documents are not changed",
        shown, layout->shards, sl_shard_names(destination->topology, NULL, names));
}

void sl_parts_propose(const sl_job *job, const sl_destination *destination, size_t index,
                      sl_registry_entry *entry) {
    const sl_job_source *source = &job->sources[index];
    entry->layout = (sl_layout){.shards = job->parts,
                                .shard_names = hash_names(destination->topology),
                                .pieces = source->pieces,
                                .leading = source->leading};
}

static bool is_ours(const void *context, size_t index, uint64_t offset) {
    const sl_job *job = context;
    return job->own_shards[sl_job_shard_at(job, &job->sources[index], offset)];
}

static bool any_is_ours(const sl_job *job, const sl_job_source *source) {
    uint32_t piece = 0;
    while (piece < source->pieces && !job->own_shards[sl_job_shard_of(job, source, piece)])
        piece++;
    return piece < source->pieces;
}

void sl_parts_choose_blocks(sl_job *job, const sl_destination *destination) {
    size_t ranges = 0, elsewhere = 0;
    char names[SL_SHARD_NAMES_ROOM];
    if (!job->own_shards)
        return;
    sl_source_set_filter(job->set, is_ours, job);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped && !any_is_ours(job, &job->sources[i]))
            sl_source_set_skip(job->set, i); /* no block of it is loaded here */
    }
    for (size_t i = 0; i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        ranges += job->own_shards[range->shard];
        elsewhere += job->own_shards[range->shard] && !sl_range_is_placed(destination->map, range);
    }
    sl_log_info("only shards %s: %zu of %zu ranges; other loaders load the other ranges",
                sl_shard_names(destination->topology, job->own_shards, names), ranges,
                job->range_count);
    if (elsewhere > 0)
        sl_log_info(
            "%zu of these ranges hold documents and are on other shards; their documents are sent "
            "to those shards",
            elsewhere);
}

bool sl_parts_has_range(const sl_job *job, const sl_range *range) {
    return !job->own_shards || job->own_shards[range->shard];
}
