/* SPDX-License-Identifier: Apache-2.0 */
#include "decision.h"

#include "format/key_fields.h"
#include "util/log.h"

#include "document_sample.h"
#include "load_config.h"
#include "numbers.h"
#include "types.h"

static bool batches_fit(const sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_load_config *config = job->config;
    const sl_server *server = sl_connection_server(destination->connection);
    return config->adapt_batches ||
           config->batch_documents <= (uint32_t)server->max_batch_documents ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--batch-size %u is more than the server accepts (%d documents)",
                        config->batch_documents, server->max_batch_documents);
}

/* An existing unsharded collection is sharded only if the user asked for it. */
static bool decide_sharding(const sl_job *job, sl_destination *destination, sl_target_view *view,
                            sl_error *error) {
    sl_target *target = &destination->target;
    if (!sl_target_look(destination->connection, target, view, error))
        return false;
    if ((view->change == SL_SHARDING_NEW || view->change == SL_SHARDING_EXISTING) &&
        job->key_problem.code) {
        *error = job->key_problem;
        return false;
    }
    if (view->change != SL_SHARDING_LEFT)
        return true;
    target->shard_key = NULL;
    return !job->config->only_shards ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--only-shards: %s.%s exists and is not sharded; --shard-existing "
                        "shards it, or share the load with --part",
                        target->database, target->collection);
}

static bool records_have(void *context, const char *field) {
    return sl_documents_have(context, field);
}

/* With another mode than insert: can the documents be matched by the fields? */
static bool may_match(sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_key_fields *keys = job->keys;
    if (!keys || !sl_modes[keys->mode].matches)
        return true;
    const sl_matching match = {.fields = (const char *const *)keys->match.names,
                               .count = keys->match.count,
                               .must_exist = !sl_modes[keys->mode].creates,
                               .indexes = job->config->indexes,
                               .index_count = job->config->index_count,
                               .ids = (const char *const *)keys->id.names,
                               .id_count = keys->id.count,
                               .records_have = records_have,
                               .context = job};
    return sl_check_match(destination->connection, &destination->target, &match, error);
}

/* A sharded collection has, or gets, chunks on every shard. */
static bool shards_answer(const sl_destination *destination, sl_error *error) {
    return sl_connection_server(destination->connection)->deployment != SL_SHARDED ||
           !destination->target.shard_key || sl_shards_answer(destination->connection, error);
}

bool sl_decide(sl_job *job, sl_destination *destination, sl_target_view *view, sl_error *error) {
    sl_connection *connection = destination->connection;
    const sl_target *target = &destination->target;
    const sl_load_config *config = job->config;
    *view = (sl_target_view){.silent = !shards_answer(destination, error)};
    return !view->silent && batches_fit(job, destination, error) &&
           decide_sharding(job, destination, view, error) &&
           (destination->registry ||
            sl_registry_open(connection, target, &destination->registry, error)) &&
           (job->resumed || target->drop || sl_types_adopt(job, destination, false, error)) &&
           (destination->topology || sl_topology_read(connection, &destination->topology, error)) &&
           sl_parts_find_shards(job, destination, error) && may_match(job, destination, error) &&
           sl_indexes_may_be_built(connection, target, view->exists, config->indexes,
                                   config->index_count, error) &&
           sl_sources_look_for_target(job, destination, error);
}

void sl_decision_log(const sl_job *job, const sl_destination *destination,
                     const sl_target_view *view) {
    const sl_target *target = &destination->target;
    if (view->change == SL_SHARDING_EXISTING)
        sl_log_warning("%s.%s exists and is not sharded: --shard-existing shards it now",
                       target->database, target->collection);
    if (view->change == SL_SHARDING_LEFT)
        sl_log_info(
            "%s.%s exists and is not sharded: it stays unsharded; --shard-existing would shard it",
            target->database, target->collection);
    if (view->capped && sl_load_mode(job->config)->creates)
        sl_log_warning("%s.%s is a capped collection: when it is full, servers remove its oldest "
                       "documents, also those that were stored before this load",
                       target->database, target->collection);
}
