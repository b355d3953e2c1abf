/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a load: connection, collection, registry, ranges. */
#include "record.h"

#include "cluster/cluster.h"
#include "format/key_fields.h"
#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"

#include "job/document_sample.h"
#include "job/numbers.h"
#include "job/sources.h"
#include "ledger/ledger.h"
#include "send/writer.h"

static bool not_interrupted(sl_error *error) {
    return !sl_interrupt_requested() ||
           sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before anything was loaded");
}

/* After Ctrl-C, commands are not retried, except those that restore the balancer. */
static bool keep_trying(void *context) {
    sl_load *load = context;
    return !sl_interrupt_requested() || atomic_load(&load->putting_back);
}

bool sl_load_connect(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    load->destination.connection = config->connection;
    load->destination.borrowed = config->connection != NULL;
    if (!config->connection && !sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 3,
                                                        &load->destination.connection, error))
        return false;
    sl_connection_set_retry_check(load->destination.connection, keep_trying, load);
    sl_record_server(load->record, load->destination.connection);
    if (sl_connection_server(load->destination.connection)->deployment != SL_SHARDED &&
        config->shard_key)
        sl_log_info("not a sharded cluster: the collection is not sharded");
    return true;
}

typedef struct placing {
    sl_load *load;
    int64_t logged; /* when progress was logged last, by sl_clock_ns */
} placing;

static bool on_prepare_step(void *context, size_t done, size_t all) {
    placing *work = context;
    work->load->placing_steps = done;
    if (sl_seconds_since(work->logged) > 2) {
        sl_log_info("placing ranges: step %zu of %zu", done, all);
        work->logged = sl_clock_ns();
    }
    return !sl_interrupt_requested();
}

static const char *layout_of(const sl_load *load) {
    switch (sl_shard_map_route(load->destination.map)) {
    case SL_ROUTE_BY_ID:
        return "sharded by _id";
    case SL_ROUTE_BY_KEY:
        return "sharded by another key; the loader finds each document's shard";
    default:
        return load->destination.target.shard_key
                   ? "sharded by another key; the router finds each document's shard"
                   : "not sharded";
    }
}

static bool batches_fit(const sl_load *load, sl_error *error) {
    const sl_load_config *config = load->job.config;
    const sl_server *server = sl_connection_server(load->destination.connection);
    return config->adapt_batches ||
           config->batch_documents <= (uint32_t)server->max_batch_documents ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--batch-size %u is more than the server accepts (%d documents)",
                        config->batch_documents, server->max_batch_documents);
}

/* With another mode than insert: can the documents be matched by the fields? */
static bool may_match(const sl_load *load, sl_error *error) {
    const sl_key_fields *keys = load->job.keys;
    if (!keys || !sl_modes[keys->mode].matches)
        return true;
    bool must_exist = !sl_modes[keys->mode].creates;
    return sl_check_match(load->destination.connection, &load->destination.target, must_exist,
                          (const char *const *)keys->match.names, keys->match.count, error);
}

/* Is the collection new, and sharded by ranges that sl_prepare_ranges does not place? */
static bool needs_quantiles(const sl_load *load) {
    const sl_target *target = &load->destination.target;
    return load->destination.created && load->job.shards > 1 && target->shard_key &&
           !sl_shard_key_is_hashed(target->shard_key) &&
           (load->job.own_ids || !sl_key_is_id(target->shard_key)) &&
           sl_connection_server(load->destination.connection)->deployment == SL_SHARDED;
}

/* Splits such a collection at quantiles of a sample of its shard key. The map that is read
 * afterwards determines the routes, so a failure, or a sample that is not representative, only
 * makes the shards' loads uneven. */
static bool place_quantiles(sl_load *load, sl_error *error) {
    const sl_destination *destination = &load->destination;
    const sl_target *target = &destination->target;
    size_t chunks = 1;
    sl_error why = {0};
    if (!needs_quantiles(load))
        return true;
    if (load->job.parts > 0 && load->job.config->direct) { /* other loaders may have read the chunk
                                                              map */
        sl_log_info("%s.%s is one range on one shard: with --part and --route direct it is not "
                    "split before the load",
                    target->database, target->collection);
        return true;
    }
    sl_key_sample *sample = sl_key_sample_create(target->shard_key);
    bool ok = (sample || sl_error_memory(error, "sampling the sources")) &&
              sl_key_sample_take(&load->job, sample, error) && not_interrupted(error);
    if (ok && !sl_presplit(destination->connection, target, destination->topology, sample, 1,
                           &chunks, &why))
        sl_log_warning("%s.%s could not be split before the load: " SL_LINES, target->database,
                       target->collection, why.message);
    else if (ok && chunks > 1)
        sl_log_info("%s.%s: split into %zu ranges at quantiles of a sample of %zu shard keys",
                    target->database, target->collection, chunks, sl_key_sample_count(sample));
    else if (ok)
        sl_log_info("%s.%s is one range on one shard: the sources give no sample of its shard key "
                    "to split it by; --shard-key with a hashed field uses all shards",
                    target->database, target->collection);
    sl_key_sample_destroy(sample);
    return ok && not_interrupted(error);
}

/* All checks that can refuse the load come before anything is created or, with --drop, removed. */
bool sl_load_prepare(sl_load *load, sl_error *error) {
    sl_job *job = &load->job;
    const sl_load_config *config = job->config;
    sl_destination *destination = &load->destination;
    sl_connection *connection = destination->connection;
    bool sharded = sl_connection_server(connection)->deployment == SL_SHARDED;
    sl_target_configure(destination, job, job->resumed);
    if (!batches_fit(load, error) ||
        !sl_resume_find_target(job, destination, &load->ledger, error) ||
        !sl_resume_decide_drop(job, destination, &load->ledger, error) ||
        !sl_target_decide_sharding(job, destination, error) ||
        !sl_registry_open(connection, &destination->target, &destination->registry, error) ||
        !sl_topology_read(connection, &destination->topology, error) ||
        !sl_parts_find_shards(job, destination, error) || !may_match(load, error) ||
        !sl_sources_look_for_target(job, destination, error) ||
        !sl_route_open(job, destination, load->run.threads, error))
        return false;
    if (!sl_same_content_check(job, destination, load->ledger.work_directory, error) ||
        !sl_sources_refuse_copies(job, destination, error) ||
        !sl_resume_begin(job, &load->ledger, error))
        return false;
    atomic_store(&load->run.begun, true);
    if (!not_interrupted(error) || !sl_load_stop_balancer(load, error))
        return false;
    if (!sl_target_begin(job, destination, error) ||
        !sl_resume_record_drop(destination, &load->ledger, error) ||
        !sl_prepare_target(connection, &destination->target, &destination->created, error) ||
        !sl_target_identify(connection, &destination->target, error) ||
        !sl_target_check_shards(destination, NULL, error) ||
        !sl_sources_number_by_registry(job, destination, load->ledger.work_directory, error) ||
        !sl_resume_target(job, destination, &load->ledger, error) ||
        !sl_shard_map_read(connection, &destination->target, destination->topology,
                           &destination->map, error))
        return false;
    job->by_range = sl_shard_map_by_id(destination->map);
    job->shards = (uint32_t)destination->topology->count;
    if (!sl_ranges_lay_out(job, destination, error))
        return false;
    if (job->by_range) {
        int64_t start = sl_clock_ns();
        placing work = {load, start};
        if (!sl_prepare_ranges(connection, &destination->target, destination->topology, job->ranges,
                               job->range_count, on_prepare_step, &work, error))
            return false;
        load->placing_seconds = sl_seconds_since(start);
    }
    if (!place_quantiles(load, error) || !sl_route_read_map(destination, error))
        return false;
    sl_parts_choose_blocks(job, destination);
    if (sharded)
        sl_log_info("%s.%s: %s, %zu range%s on %u shards", config->database, config->collection,
                    layout_of(load), job->range_count, job->range_count == 1 ? "" : "s",
                    job->shards);
    return not_interrupted(error);
}

bool sl_load_prepare_offline(sl_load *load, sl_error *error) {
    load->job.shards = 1;
    return sl_sources_number_offline(&load->job, error) &&
           sl_ranges_lay_out(&load->job, &load->destination, error);
}
