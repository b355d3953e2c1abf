/* SPDX-License-Identifier: Apache-2.0 */
/* A preview of a load. It executes the phases of load.c, with the same modules, up to the first
 * change of the cluster: sources, numbers, ranges. Where load.c creates the target and the
 * registry's entries, it computes what they would be. */
#include "preview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "destination.h"
#include "numbers.h"
#include "ranges.h"
#include "sources.h"
#include "types.h"

/* ---- the cluster ---- */

/* Is it an error with which a load would refuse to start? Then stores it in the preview, which
 * continues. */
static bool refused(sl_preview *preview, sl_error *error) {
    if (error->code != SL_EXIT_CLUSTER && error->code != SL_EXIT_USAGE)
        return false;
    if (!preview->refusal.code)
        preview->refusal = *error;
    *error = (sl_error){0};
    return true;
}

static bool look_at_cluster(const sl_job *job, sl_destination *destination, sl_preview *preview,
                            sl_error *error) {
    const sl_load_config *config = job->config;
    if (!sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 1, &preview->connection,
                                 error))
        return false;
    destination->connection = preview->connection;
    sl_target_configure(destination, job, false);
    if (!sl_topology_read(destination->connection, &preview->topology, error) ||
        !sl_balancer_status(destination->connection, &preview->balancer, error))
        return false;
    destination->topology = preview->topology;
    preview->shards = (uint32_t)preview->topology->count;
    if (!sl_check_target(destination->connection, &destination->target, &preview->exists,
                         &preview->sharding, error))
        return refused(preview, error);
    if (preview->sharding == SL_SHARDING_LEFT)
        destination->target.shard_key = NULL;
    bool new = preview->sharding == SL_SHARDING_NEW || preview->sharding == SL_SHARDING_EXISTING;
    if (new && job->key_problem.code && !preview->refusal.code)
        preview->refusal = job->key_problem;
    return true;
}

/* Determines the layout and the chunk map as they will be before ranges are placed. */
static bool read_map(const sl_job *job, sl_destination *destination, sl_preview *preview,
                     sl_error *error) {
    const bson_t *key =
        destination->connection ? destination->target.shard_key : sl_job_shard_key(job);
    uint32_t home = 0;
    if (destination->connection &&
        !sl_database_home(destination->connection, &destination->target, destination->topology,
                          &home, &preview->home_known, error))
        return false;
    if (preview->exists && !sl_shard_map_read(destination->connection, &destination->target,
                                              destination->topology, &destination->map, error))
        return false;
    switch (destination->map ? sl_shard_map_route(destination->map) : SL_ROUTE_NONE) {
    case SL_ROUTE_BY_ID:
        preview->layout = SL_LAYOUT_RANGES;
        break;
    case SL_ROUTE_BY_KEY:
        preview->layout = SL_LAYOUT_KEY;
        break;
    default: {
        bson_iter_t first;
        bool hashed = key && bson_iter_init(&first, key) && bson_iter_next(&first) &&
                      BSON_ITER_HOLDS_UTF8(&first);
        bool split = (!preview->exists || job->config->drop) && !job->has_pipe;
        preview->layout = !key                                 ? SL_LAYOUT_UNSHARDED
                          : sl_key_is_id(key) && !job->own_ids ? SL_LAYOUT_RANGES
                          : hashed                             ? SL_LAYOUT_HASHED
                          : split                              ? SL_LAYOUT_QUANTILES
                                                               : SL_LAYOUT_ONE;
        sl_shard_map_destroy(destination->map);
        destination->map = NULL;
        if (preview->layout == SL_LAYOUT_RANGES &&
            !sl_shard_map_of_new(home, &destination->map, error))
            return false;
    }
    }
    preview->shard_share = calloc(preview->shards, sizeof *preview->shard_share);
    if (!preview->shard_share)
        return sl_error_memory(error, "laying out ranges");
    if (preview->layout == SL_LAYOUT_UNSHARDED || preview->layout == SL_LAYOUT_ONE)
        preview->shard_share[home] = 1;
    return true;
}

/* Numbers the sources: from the registry; new sources get the numbers after its last one. */
static bool number(sl_job *job, sl_destination *destination, sl_preview *preview, sl_error *error) {
    if (!destination->connection || job->config->drop)
        return sl_sources_number_offline(job, error);
    destination->target_gone = !preview->exists;
    return sl_registry_open(destination->connection, &destination->target, &destination->registry,
                            error) &&
           sl_sources_number_as_next(job, destination, &preview->refusal, error);
}

static bool lay_out(sl_job *job, sl_destination *destination, sl_preview *preview,
                    sl_error *error) {
    job->by_range = preview->layout == SL_LAYOUT_RANGES;
    job->shards = preview->shards;
    if (!sl_ranges_lay_out(job, destination, error))
        return false;
    preview->range_count = job->range_count;
    preview->ranges = calloc(job->range_count + 1, sizeof *preview->ranges);
    if (!preview->ranges)
        return sl_error_memory(error, "laying out ranges");
    bool *stays = calloc(job->range_count + 1, sizeof *stays);
    bool ok = stays || sl_error_memory(error, "laying out ranges");
    ok =
        ok && (!job->by_range || sl_count_steps(preview->exists ? destination->connection : NULL,
                                                &destination->target, destination->map, job->ranges,
                                                job->range_count, stays, &preview->steps, error));
    for (size_t i = 0; ok && i < job->range_count; i++)
        preview->ranges[i] = (sl_preview_range){
            .range = job->ranges[i], .shard = job->ranges[i].shard, .stays = stays[i]};
    free(stays);
    return ok;
}

/* ---- documents per range and shard ---- */

/* Adds the documents of a source to the ranges and shards that its blocks belong to. */
static void add_documents(const sl_job *job, const sl_destination *destination,
                          const sl_preview_source *source, sl_preview *preview) {
    const sl_measure *measure = &source->measure;
    double text =
        source->record_bytes > 0 ? (double)source->stored_bytes : measure->text_bytes.value;
    double rest = text / (double)SL_BLOCK_BYTES; /* remaining blocks */
    double each = rest > 0 ? measure->documents.value / rest : 0;
    for (uint64_t block = 0; rest > 0 && block << SL_BLOCK_BITS < SL_SOURCE_BYTES_MAX;
         block++, rest -= 1) {
        int64_t id = sl_document_id(source->number, block << SL_BLOCK_BITS);
        sl_preview_range *range = &preview->ranges[sl_job_range_of(job, id)];
        double documents = each * fmin(rest, 1);
        range->documents += documents;
        if (preview->layout == SL_LAYOUT_RANGES)
            preview->shard_share[range->stays ? sl_shard_map_owner(destination->map, id)
                                              : range->shard] += documents;
    }
}

static void finish_shares(sl_preview *preview, const double *owners) {
    double all = 0;
    for (uint32_t i = 0; i < preview->shards; i++) {
        if (preview->layout == SL_LAYOUT_KEY)
            preview->shard_share[i] = owners[i];
        if (preview->layout == SL_LAYOUT_HASHED || preview->layout == SL_LAYOUT_QUANTILES)
            preview->shard_share[i] = 1;
        all += preview->shard_share[i];
    }
    for (uint32_t i = 0; all > 0 && i < preview->shards; i++)
        preview->shard_share[i] /= all;
}

/* ---- sources ---- */

static bool name_sources(const sl_job *job, sl_preview *preview, sl_error *error) {
    preview->sources = calloc(job->active + 1, sizeof *preview->sources);
    if (!preview->sources)
        return sl_error_memory(error, "examining the sources");
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_job_source *source = &job->sources[i];
        const sl_source *facts = sl_source_set_at(job->set, i);
        if (source->skipped)
            continue;
        if (facts->kind == SL_SOURCE_PIPE)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: a pipe cannot be previewed, because its data can be read only "
                                "once; name files",
                                facts->shown);
        sl_preview_source *into = &preview->sources[preview->source_count++];
        char shown[400];
        sl_text_printable(sl_text_of(facts->path), shown, sizeof shown);
        into->name = strdup(shown);
        if (!into->name)
            return sl_error_memory(error, "examining the sources");
        into->format = source->format->name;
        sl_format_describe(source->format, source->dialect, into->dialect, sizeof into->dialect);
        into->stored_bytes = facts->stored_bytes;
        into->number = source->number;
        into->record_bytes = facts->record_bytes;
    }
    preview->generated = sl_job_is_generated(job);
    return true;
}

static bool measure(sl_job *job, const sl_destination *destination, uint64_t blocks,
                    sl_preview *preview, sl_error *error) {
    double *owners = calloc(preview->shards, sizeof *owners);
    bool ok = (owners || sl_error_memory(error, "examining the sources")) &&
              sl_measure_sources(job, destination->map, blocks, preview->sources,
                                 preview->source_count, &preview->all, owners, error);
    for (size_t i = 0; ok && i < preview->source_count; i++)
        add_documents(job, destination, &preview->sources[i], preview);
    if (ok)
        finish_shares(preview, owners);
    free(owners);
    return ok;
}

bool sl_preview_create(const sl_load_config *config, uint32_t shards, uint64_t blocks,
                       sl_preview **result, sl_error *error) {
    sl_job job;
    sl_destination destination = {0};
    sl_preview *preview = calloc(1, sizeof *preview);
    *result = NULL;
    if (!preview)
        return sl_error_memory(error, "looking ahead");
    preview->shards = shards > 0 ? shards : 1;
    sl_job_init(&job, config);
    bool ok = sl_sources_open(&job, error);
    if (ok && !config->uri)
        preview->refusal = job.key_problem;
    ok = ok && (!config->uri || look_at_cluster(&job, &destination, preview, error)) &&
         read_map(&job, &destination, preview, error) &&
         number(&job, &destination, preview, error) && name_sources(&job, preview, error) &&
         lay_out(&job, &destination, preview, error) &&
         measure(&job, &destination, blocks, preview, error) &&
         sl_source_set_unchanged(job.set, error);
    if (ok)
        sl_types_log(&job);
    if (ok && !preview->refusal.code)
        sl_not_loaded_check(&job, &preview->refusal);
    sl_job_clear(&job);
    /* The preview keeps the connection and the topology. */
    sl_shard_map_destroy(destination.map);
    sl_registry_close(destination.registry);
    if (ok)
        *result = preview;
    else
        sl_preview_destroy(preview);
    return ok;
}

void sl_preview_destroy(sl_preview *preview) {
    if (!preview)
        return;
    for (size_t i = 0; i < preview->source_count; i++)
        free(preview->sources[i].name);
    free(preview->sources);
    free(preview->ranges);
    free(preview->shard_share);
    sl_topology_destroy(preview->topology);
    sl_connection_close(preview->connection);
    free(preview);
}
