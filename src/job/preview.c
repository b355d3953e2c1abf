/* SPDX-License-Identifier: Apache-2.0 */
/* The preview of a load: estimates of its sources from a sample of their blocks, and of the
 * documents per shard. */
#include "preview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"

#include "decision.h"
#include "document_sample.h"
#include "numbers.h"
#include "sources.h"
#include "types.h"

/* ---- estimates of sources ---- */

/* Estimates of the records, documents and bytes of sources, from a sample of their blocks.
 *
 * A splittable source is divided into equal stretches, and one block is read from each, at
 * positions spread by the golden ratio; the length of its text is known. Records, documents and
 * BSON per byte of text are estimated from all sampled blocks (a ratio estimate). The range follows
 * from the differences between blocks: the standard error of a sample without replacement, times
 * Student's t for 99 %.
 *
 * Of a sequential source the first blocks are read. The length of its text is extrapolated from
 * their share of the stored bytes. Since the unread part may differ, the range is widened on both
 * sides by the share BEGINNING of that part. This share is a guess, as docs/plan.md states.
 *
 * Of very many sources some are read, evenly spread in the order of their sizes. The others are
 * estimated from these by stored bytes, and the range follows from the differences between the
 * sources that were read. */

#define BLOCKS_LEAST 4u /* blocks read of each source; fewer if it has fewer */
#define SOURCES_LEAST                                                                              \
    4u                      /* minimum read, if there are that many, even if it exceeds the
                               requested blocks */
#define INFLATED_GUESS 6u   /* bytes of text per byte of a compressed file */
#define READ_AHEAD 327680.0 /* stored bytes that a stream may have read ahead */
#define BEGINNING 0.15
#define ONE_BLOCK 0.25    /* range to each side, as a share, when only one block was read */
#define BLOCKS_MOST 4096u /* read of one source */

enum { RECORDS, DOCUMENTS, BSON, FIGURES };

typedef struct sample {
    double text; /* bytes; of generated records, record_bytes each */
    double figures[FIGURES];
} sample;

/* The state of one measurement. */
typedef struct measuring {
    sl_job *job;
    const sl_shard_map *map;
    sl_document_sample *sample;
    double *owners; /* documents per shard, or NULL */
    sl_owner_cache cache;
    sample *samples; /* of the current source; BLOCKS_MOST */
} measuring;

/* ---- one block ---- */

static bool count_owners(void *context, const uint8_t *documents, const uint8_t *end,
                         uint32_t count) {
    measuring *m = context;
    const sl_shard_map *map = m->map;
    (void)count;
    if (!m->owners || !map || sl_shard_map_route(map) != SL_ROUTE_BY_KEY)
        return true;
    for (const uint8_t *at = documents; at < end;) {
        uint32_t shard;
        if (sl_shard_map_owner_of(map, at, &m->cache, &shard))
            m->owners[shard]++;
        at += sl_bson_length(at);
    }
    return true;
}

/* Reads a block of a source into m->samples[at]. */
static sl_read_result measure_block(measuring *m, size_t index, uint64_t sequence, size_t at,
                                    bool *last, sl_error *error) {
    sl_sampled_block block;
    sl_read_result result = sl_document_sample_read(m->sample, index, sequence, &block, error);
    if (result != SL_READ_BLOCK)
        return result;
    *last = block.last;
    m->samples[at] = (sample){.text = (double)block.text_bytes,
                              .figures = {[RECORDS] = (double)block.counts.records,
                                          [DOCUMENTS] = (double)block.counts.documents,
                                          [BSON] = (double)block.bson_bytes}};
    return result;
}

/* ---- from samples to an estimate ---- */

typedef struct sum {
    size_t count;
    double text, figures[FIGURES];
} sum;

static sum sum_of(const sample *samples, size_t count) {
    sum all = {.count = count};
    for (size_t i = 0; i < count; i++) {
        all.text += samples[i].text;
        for (size_t k = 0; k < FIGURES; k++)
            all.figures[k] += samples[i].figures[k];
    }
    return all;
}

/* Half the width of the range of a total over `blocks` blocks, of which `all->count` were read. */
static double spread_of(const sample *samples, const sum *all, size_t figure, double blocks,
                        double value) {
    double n = (double)all->count, ratio = all->text > 0 ? all->figures[figure] / all->text : 0;
    double squares = 0;
    if (n >= blocks)
        return 0;
    if (all->count < 2)
        return ONE_BLOCK * value;
    for (size_t i = 0; i < all->count; i++) {
        double rest = samples[i].figures[figure] - ratio * samples[i].text;
        squares += rest * rest;
    }
    double error = blocks * sqrt((1 - n / blocks) * squares / (n - 1) / n);
    return sl_student_quantile(SL_99_PERCENT, (double)all->count - 1) * error;
}

/* The range of a total, of which `seen` has been read; `half`: half of its width. */
static sl_estimate range_of(double seen, double value, double half) {
    return (sl_estimate){value, fmin(value, fmax(seen, value - half)), value + half};
}

/* `text`: bytes of text of the source. The range is widened by the share `drift`. */
static sl_estimate estimate(const sample *samples, const sum *all, size_t figure, double text,
                            double blocks, double drift) {
    double value = all->text > 0 ? all->figures[figure] / all->text * text : 0;
    double half = spread_of(samples, all, figure, blocks, value) + drift * value;
    return range_of(all->figures[figure], value, half);
}

/* Sets the measure of a source. `drift`: 0 if the length of the text is known; `whole`: the
 * complete source was read. */
static void set_measure(const sample *samples, size_t count, double text, double drift, bool whole,
                        sl_preview_source *source) {
    sl_measure *into = &source->measure;
    sum all = sum_of(samples, count);
    double blocks = whole ? (double)count : ceil(text / (double)SL_BLOCK_BYTES);
    if (blocks < (double)count)
        blocks = (double)count;
    if (whole)
        text = all.text;
    into->records = estimate(samples, &all, RECORDS, text, blocks, drift);
    into->documents = estimate(samples, &all, DOCUMENTS, text, blocks, drift);
    into->bson_bytes = estimate(samples, &all, BSON, text, blocks, drift);
    into->text_bytes = range_of(all.text, text, drift * text);
    if (source->record_bytes > 0) {
        into->text_bytes = sl_estimate_exactly(0);
        into->records = into->documents =
            sl_estimate_exactly((double)(source->stored_bytes / source->record_bytes));
    }
    into->rejects_share =
        all.figures[RECORDS] > 0 ? 1 - all.figures[DOCUMENTS] / all.figures[RECORDS] : 0;
    into->blocks = blocks;
    into->blocks_read = count;
    source->sampled = true;
    source->exact = whole;
}

/* ---- one source ---- */

static bool measure_splittable(measuring *m, size_t index, uint64_t sample_size,
                               sl_preview_source *source, sl_error *error) {
    uint64_t blocks = (source->stored_bytes + SL_BLOCK_BYTES - 1) >> SL_BLOCK_BITS;
    bool last;
    if (sample_size > blocks)
        sample_size = blocks;
    for (uint64_t i = 0; i < sample_size; i++) {
        if (measure_block(m, index, sl_spread_block(i, sample_size, blocks), i, &last, error) !=
            SL_READ_BLOCK)
            return false;
    }
    set_measure(m->samples, (size_t)sample_size, (double)source->stored_bytes, 0,
                sample_size == blocks, source);
    return true;
}

static bool measure_stream(measuring *m, size_t index, uint64_t sample_size,
                           sl_preview_source *source, sl_error *error) {
    uint64_t before = sl_source_set_consumed_bytes(m->job->set), seen = 0;
    sl_read_result result = SL_READ_BLOCK;
    bool last = false;
    double text = 0;
    while (seen < sample_size && !last) {
        result = measure_block(m, index, seen, seen, &last, error);
        if (result != SL_READ_BLOCK)
            break;
        text += m->samples[seen++].text;
    }
    if (result == SL_READ_FAILED)
        return false;
    double used = (double)(sl_source_set_consumed_bytes(m->job->set) - before);
    double stored = (double)source->stored_bytes;
    bool whole = last || result == SL_READ_END;
    double share = whole || stored <= 0 ? 1 : fmin(used / stored, 1);
    double drift = whole ? 0 : BEGINNING * (1 - share) + READ_AHEAD / fmax(used, READ_AHEAD);
    bool plain = sl_source_set_at(m->job->set, index)->kind == SL_SOURCE_PLAIN;
    set_measure(m->samples, (size_t)seen, plain ? stored : text / fmax(share, 1e-9), drift, whole,
                source);
    return true;
}

/* ---- all sources ---- */

static double blocks_guessed(const sl_source *source) {
    double bytes =
        (double)source->stored_bytes *
        (source->kind == SL_SOURCE_PLAIN || source->kind == SL_SOURCE_GENERATED ? 1
                                                                                : INFLATED_GUESS);
    return fmax(1, ceil(bytes / (double)SL_BLOCK_BYTES));
}

typedef struct turn {
    size_t index; /* into the set */
    sl_preview_source *source;
} turn;

static int by_size(const void *a, const void *b) {
    const turn *x = a, *y = b;
    if (x->source->stored_bytes != y->source->stored_bytes)
        return x->source->stored_bytes < y->source->stored_bytes ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Reads blocks of all sources; of a selection if `blocks` are too few for all. */
static bool sample_sources(measuring *m, turn *turns, size_t count, uint64_t blocks,
                           sl_error *error) {
    double all = 0, least = 0;
    for (size_t i = 0; i < count; i++) {
        double guess = blocks_guessed(sl_source_set_at(m->job->set, turns[i].index));
        all += guess;
        least += fmin(guess, BLOCKS_LEAST);
    }
    bool some = least > (double)blocks;
    size_t chosen = some ? (size_t)(blocks / BLOCKS_LEAST) : count;
    if (some && chosen < SOURCES_LEAST)
        chosen = count < SOURCES_LEAST ? count : SOURCES_LEAST;
    for (size_t i = 0; i < chosen; i++) {
        const turn *one = &turns[some ? (2 * i + 1) * count / (2 * chosen) : i];
        const sl_source *source = sl_source_set_at(m->job->set, one->index);
        double sample_size = some ? BLOCKS_LEAST : (double)blocks * blocks_guessed(source) / all;
        sample_size = fmin(fmax(ceil(sample_size), BLOCKS_LEAST), BLOCKS_MOST);
        if (!(sl_source_is_splittable(source) ? measure_splittable : measure_stream)(
                m, one->index, (uint64_t)sample_size, one->source, error))
            return false;
    }
    return true;
}

static sl_estimate *figure_of(sl_measure *measure, size_t which) {
    sl_estimate *const figures[] = {&measure->records, &measure->documents, &measure->bson_bytes,
                                    &measure->text_bytes};
    return figures[which];
}

/* Estimates a figure of the unread sources from the sources that were read, per stored byte. */
static void extrapolate(const turn *turns, size_t count, size_t figure) {
    double stored = 0, value = 0, squares = 0, seen = 0;
    for (size_t i = 0; i < count; i++) {
        if (!turns[i].source->sampled)
            continue;
        stored += (double)turns[i].source->stored_bytes;
        value += figure_of(&turns[i].source->measure, figure)->value;
        seen++;
    }
    double ratio = stored > 0 ? value / stored : 0;
    for (size_t i = 0; i < count; i++) {
        double rest = figure_of(&turns[i].source->measure, figure)->value -
                      ratio * (double)turns[i].source->stored_bytes;
        squares += turns[i].source->sampled ? rest * rest : 0;
    }
    double unseen = (double)count - seen;
    /* Half the range of the sum over the unread sources, if they are distributed like the sources
     * that were read. */
    double half = seen < 2 ? INFINITY
                           : sl_student_quantile(SL_99_PERCENT, seen - 1) * unseen *
                                 sqrt(squares / (seen - 1) * (1 / seen + 1 / fmax(unseen, 1)));
    double rest = 0;
    for (size_t i = 0; i < count; i++)
        rest += turns[i].source->sampled ? 0 : (double)turns[i].source->stored_bytes;
    for (size_t i = 0; i < count; i++) {
        sl_preview_source *source = turns[i].source;
        if (source->sampled)
            continue;
        double mine = ratio * (double)source->stored_bytes;
        double width = fmin(half * (double)source->stored_bytes / fmax(rest, 1), mine);
        *figure_of(&source->measure, figure) = (sl_estimate){mine, mine - width, mine + width};
        source->measure.blocks =
            fmax(1, ceil(source->measure.text_bytes.value / (double)SL_BLOCK_BYTES));
    }
}

static void add_up(const sl_preview_source *sources, size_t count, sl_measure *all) {
    double records = 0, rejects = 0;
    *all = (sl_measure){0};
    for (size_t i = 0; i < count; i++) {
        sl_measure one = sources[i].measure;
        for (size_t k = 0; k < 4; k++)
            *figure_of(all, k) = sl_estimate_sum(*figure_of(all, k), *figure_of(&one, k));
        all->blocks += one.blocks;
        all->blocks_read += one.blocks_read;
        records += sources[i].sampled ? one.records.value : 0;
        rejects += sources[i].sampled ? one.records.value * one.rejects_share : 0;
    }
    all->rejects_share = records > 0 ? rejects / records : 0;
}

/* Sets the measures of `sources` (the load's sources that are not skipped) and their sum `all`,
 * from about `blocks` blocks. If the collection is sharded by a key other than _id, counts the
 * documents read into `owners`, one per shard. */
static bool measure_sources(sl_job *job, const sl_shard_map *map, uint64_t blocks,
                            sl_preview_source *sources, size_t count, sl_measure *all,
                            double *owners, sl_error *error) {
    measuring m = {.job = job, .map = map, .owners = owners};
    turn *turns = calloc(count + 1, sizeof *turns);
    m.samples = malloc(BLOCKS_MOST * sizeof *m.samples);
    bool ok = (turns && m.samples) || sl_error_memory(error, "examining the sources");
    ok = ok && sl_document_sample_create(job, count_owners, &m, &m.sample, error);
    for (size_t i = 0, next = 0; ok && i < sl_source_set_count(job->set); i++) {
        if (job->sources[i].skipped)
            continue;
        turns[next] = (turn){i, &sources[next]};
        next++;
    }
    if (ok)
        qsort(turns, count, sizeof *turns, by_size);
    ok = ok && sample_sources(&m, turns, count, blocks, error);
    /* Text is the last figure: the number of blocks is computed from it. */
    for (size_t figure = 0; ok && figure < 4; figure++)
        extrapolate(turns, count, figure);
    if (ok)
        add_up(sources, count, all);
    sl_document_sample_destroy(m.sample);
    free(m.samples);
    free(turns);
    return ok;
}

/* ---- the preview ---- */

/* A preview of a load. It executes the phases of load.c, with the same modules, up to the first
 * change of the cluster: sources, numbers, ranges. Where load.c creates the target and the
 * registry's entries, it computes what they would be. */

/* ---- the cluster ---- */

/* Is it an error with which a load would refuse to start? Then stores it in the preview, which
 * continues. */
static bool refused(sl_preview *preview, sl_error *error) {
    if (error->code != SL_EXIT_CLUSTER && error->code != SL_EXIT_USAGE &&
        error->code != SL_EXIT_SOURCE)
        return false;
    if (!preview->refusal.code)
        preview->refusal = *error;
    *error = (sl_error){0};
    return true;
}

static bool look_at_cluster(sl_job *job, sl_destination *destination, sl_preview *preview,
                            sl_error *error) {
    const sl_load_config *config = job->config;
    if (!(preview->connection =
              sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 1, error)))
        return false;
    destination->connection = preview->connection;
    sl_target_configure(destination, job, false);
    if (!sl_topology_read(destination->connection, &preview->topology, error))
        return false;
    destination->topology = preview->topology;
    preview->shards = (uint32_t)preview->topology->count;
    bool ok = sl_decide(job, destination, &preview->target, error) ||
              (!preview->target.silent && refused(preview, error));
    return ok && sl_balancer_status(destination->connection, &preview->balancer, error) &&
           (destination->registry ||
            sl_registry_open_settled(destination->connection, &destination->target, SL_SETTLE_READ,
                                     true, &destination->registry, error));
}

/* Determines the layout and the chunk map as they will be before ranges are placed. */
static bool read_map(const sl_job *job, sl_destination *destination, sl_preview *preview,
                     sl_error *error) {
    bool sharded = !destination->connection ||
                   sl_connection_server(destination->connection)->deployment == SL_SHARDED;
    const bson_t *key = sharded ? sl_job_shard_key(job) : NULL;
    const bson_t *existing = NULL;
    uint32_t home = 0;
    if (destination->connection &&
        !sl_database_home(destination->connection, &destination->target, destination->topology,
                          &home, &preview->home_known, error))
        return false;
    if (preview->target.exists &&
        !sl_shard_map_read(destination->connection, &destination->target, destination->topology,
                           &destination->map, error))
        return false;
    if (destination->map)
        existing = sl_shard_map_key(destination->map);
    if (existing)
        key = existing;
    preview->shard_key = key ? bson_copy(key) : NULL;
    if (preview->target.change == SL_SHARDING_LEFT)
        key = NULL;
    if (destination->map && sl_shard_map_by_id(destination->map)) {
        preview->layout = SL_LAYOUT_RANGES;
    } else if (existing) {
        preview->layout = SL_LAYOUT_KEY;
    } else {
        bool hashed = key && sl_shard_key_is_hashed(key);
        bool new = !preview->target.exists;
        bool split = new && !job->has_pipe;
        preview->layout = !key                                 ? SL_LAYOUT_UNSHARDED
                          : sl_key_is_id(key) && !job->own_ids ? SL_LAYOUT_RANGES
                          : hashed && new                      ? SL_LAYOUT_HASHED
                          : split                              ? SL_LAYOUT_QUANTILES
                                                               : SL_LAYOUT_ONE;
        sl_shard_map_destroy(destination->map);
        destination->map = NULL;
        if (preview->layout == SL_LAYOUT_RANGES &&
            !sl_shard_map_of_new(home, &destination->map, error))
            return false;
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
    if (!sl_sources_refuse_same_text(job, error) && !refused(preview, error))
        return false;
    if (!destination->connection || job->config->drop || sl_load_mode(job->config)->removes)
        return sl_sources_number_offline(job, error);
    return (sl_sources_refuse_copies(job, destination, error) || refused(preview, error)) &&
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
    ok = ok &&
         (!job->by_range || sl_count_steps(preview->target.exists ? destination->connection : NULL,
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
        sl_source_describe(job, source, into->dialect, sizeof into->dialect);
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
              measure_sources(job, destination->map, blocks, preview->sources,
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
    ok = ok && (!config->uri || look_at_cluster(&job, &destination, preview, error));
    const bool all = ok && blocks > 0;
    ok = ok && (!all ||
                (read_map(&job, &destination, preview, error) &&
                 number(&job, &destination, preview, error) && name_sources(&job, preview, error) &&
                 lay_out(&job, &destination, preview, error) &&
                 measure(&job, &destination, blocks, preview, error) &&
                 sl_source_set_unchanged(job.set, error)));
    if (all)
        sl_types_log(&job);
    ok = ok && (!all || !destination.registry || config->drop || preview->refusal.code ||
                sl_types_record(&job, &destination, true, error));
    if (ok && preview->shard_key && preview->layout != SL_LAYOUT_UNSHARDED)
        sl_ids_warn(&job, &destination.target, preview->shard_key);
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
    bson_destroy(preview->shard_key);
    sl_topology_destroy(preview->topology);
    sl_connection_close(preview->connection);
    free(preview);
}
