/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a job's sources, the ranges of their ids, and the blocks that this loader loads if
 * several loaders share a load. */
#include "numbers.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#include "document_sample.h"
#include "types.h"

/* ---- loads that several loaders share ---- */

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
 * the cluster is a part: the stripes that are laid out for it. The layout of a source depends
 * on the other sources of the same load, so loaders could compute different ones. Therefore the
 * registry stores the layout that is proposed first, with its shards (sl_registry_agree_layout),
 * and all loaders use that layout. The present owners of the chunks do not matter: a block whose
 * chunk is on another shard is loaded by the same loader. */

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
                                 (job->config->again || sl_load_mode(job->config)->matches) &&
                                     !job->resumed);
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

/* Was the registered layout of a source, if any, made for the shards that the cluster has now? */
static bool parts_layout_holds(const sl_job *job, const sl_destination *destination,
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

/* Sets the entry's layout to the one that this load has computed for a source. */
static void parts_propose(const sl_job *job, const sl_destination *destination, size_t index,
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
        sl_log_info("%zu of these ranges are on other shards and are not moved; their documents "
                    "are sent to those shards",
                    elsewhere);
}

bool sl_parts_has_range(const sl_job *job, const sl_range *range) {
    return !job->own_shards || job->own_shards[range->shard];
}

/* ---- the numbers of the sources ---- */

/* The numbers of a load's sources: without a cluster in order, otherwise from the registry beside
 * the target, which also records the sources that have been loaded. */

bool sl_sources_number_offline(sl_job *job, sl_error *error) {
    /* A record to embed may already have an _id that is a position in an earlier load, with a low
     * source number. It must not be confused with a position in this load. */
    uint32_t number = job->config->sink == SL_SINK_DIVIDED ? SL_SOURCE_NUMBER_MAX / 2 : 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            job->sources[i].number = ++number;
    }
    return number <= SL_SOURCE_NUMBER_MAX ||
           sl_error_set(error, SL_EXIT_SOURCE, "more than %u sources", SL_SOURCE_NUMBER_MAX);
}

/* The position of a record is counted within the entries that --include selects. So the entries of
 * an archive, and the tables of a dump, are one source for each --include: the fingerprint in the
 * registry is that of the file and the pattern. */
static const char *registered_as(sl_job_source *source, const sl_source *facts,
                                 const char *include) {
    const char *file = source->fingerprint;
    if (!source->registered[0])
        snprintf(
            source->registered, sizeof source->registered, "%016" PRIx64 "-%" PRIu64,
            sl_hash_mix(sl_hash_text(include, strlen(include)), sl_hash_text(file, strlen(file))),
            facts->stored_bytes);
    return source->registered;
}

/* Registry entries for the sources that are not skipped, in order. The caller frees them. */
sl_registry_entry *sl_sources_entries(const sl_job *job, size_t *count, sl_error *error) {
    size_t sources = sl_source_set_count(job->set);
    sl_registry_entry *entries = calloc(sources, sizeof *entries);
    *count = 0;
    for (size_t i = 0; entries && i < sources; i++) {
        sl_job_source *source = &job->sources[i];
        const sl_source *facts = sl_source_set_at(job->set, i);
        const char *include = facts->kind != SL_SOURCE_ARCHIVE       ? NULL
                              : facts->named && job->config->include ? job->config->include
                                                                     : "";
        if (!source->skipped)
            entries[(*count)++] =
                (sl_registry_entry){.fingerprint = include ? registered_as(source, facts, include)
                                                           : source->fingerprint,
                                    .name = facts->path,
                                    .include = include,
                                    .size = facts->stored_bytes,
                                    .content = facts->content,
                                    .beginning = source->beginning,
                                    .records = source->records,
                                    .types = sl_types_hash(job, source)};
    }
    if (!entries)
        sl_error_memory(error, "numbering the sources");
    return entries;
}

/* Gives each source the number of its entry. */
static void take_numbers(sl_job *job, const sl_registry_entry *entries) {
    size_t next = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            job->sources[i].number = entries[next++].number;
    }
}

/* Are the _ids of the records their positions, so that the records of a copy are stored twice? To
 * answer, documents are read (not those of pipes, where it is assumed), so this is asked only when
 * copies were found. */
static bool takes_positions(sl_job *job) {
    return !job->own_ids || job->has_pipe || (!job->keys && !sl_documents_type(job, "_id", NULL));
}

/* Writes a source that has been loaded, with what that load stored and rejected. */
static size_t write_loaded(const sl_registry_entry *entry, char *out, size_t room) {
    char stored[SL_HUMAN_ROOM], rejected[SL_HUMAN_ROOM];
    if (entry->state != SL_SOURCE_LOADED)
        return sl_print_text(out, room, "\n  %s, this part of it", entry->name);
    size_t used = sl_print_text(out, room, "\n  %s, on %s: %s stored", entry->name, entry->when,
                                sl_human_count(entry->stored, stored));
    if (entry->matched > 0) /* a mode that changes documents */
        used += sl_print_text(out + used, room - used, ", %s matched a stored document",
                              sl_number_text(entry->matched));
    if (entry->rejected > 0 && entry->corrected >= entry->rejected)
        used += sl_print_text(out + used, room - used, ", %s rejected, corrected and loaded on %s",
                              sl_human_count(entry->rejected, rejected), entry->corrected_when);
    else if (entry->rejected > 0)
        used += sl_print_text(out + used, room - used, ", %s rejected%s%s",
                              sl_human_count(entry->rejected, rejected),
                              entry->rejected_in[0] ? ", see " : "", entry->rejected_in);
    return used;
}

/* The documents that --drop would remove, besides those of these sources. */
static void write_drop_advice(const sl_job *job, const sl_destination *destination,
                              const sl_registry_entry *entries, size_t count, char *out,
                              size_t room) {
    bson_t own = BSON_INITIALIZER;
    char key[SL_ARRAY_KEY_ROOM], shown[SL_HUMAN_ROOM];
    uint64_t others = 0;
    bool complete;
    sl_error ignored;
    *out = '\0';
    for (size_t i = 0; i < count; i++)
        BSON_APPEND_INT64(&own, sl_array_key(i, key), entries[i].number);
    if (!sl_load_is_shared(job->config) &&
        sl_registry_total(destination->registry, &own, false, &others, &complete, &ignored))
        sl_print_text(out, room,
                      others > 0 ? "; --drop would also remove %s documents of other sources"
                                 : "; --drop starts anew",
                      sl_human_count(others, shown));
    bson_destroy(&own);
}

static bool refuse_loaded(const sl_job *job, const sl_destination *destination,
                          const sl_registry_entry *entries, size_t count, sl_error *error) {
    const sl_target *target = &destination->target;
    char refused[700] = "", drop[100];
    size_t used = 0, loaded = 0, rejecting = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state != SL_SOURCE_LOADED && !entries[i].part_loaded)
            continue;
        rejecting += entries[i].rejected > entries[i].corrected;
        if (loaded++ < 5)
            used += write_loaded(&entries[i], refused + used, sizeof refused - used);
    }
    if (loaded == 0)
        return true;
    const char *more = loaded > 5 ? "\n  ..." : "";
    write_drop_advice(job, destination, entries, count, drop, sizeof drop);
    sl_error_set(
        error, SL_EXIT_SOURCE,
        "%zu of the sources %s been loaded into %s.%s before:" SL_LINES SL_LINES
        "\n%s%s. A file counts as loaded by its name, size, beginning and end: if it was "
        "corrected elsewhere, %s. For other files with the same name and content, rename the files",
        loaded, loaded == 1 ? "has" : "have", target->database, target->collection, refused, more,
        rejecting > 0 ? "To load rejected records, correct and load the files in rejected/ in that "
                        "folder. If an option was wrong, correct it and add --again, which inserts "
                        "missing documents only"
                      : "--again sends them again (stored documents are not changed)",
        drop,
        takes_positions((sl_job *)job) ? "load all files of the collection with --drop"
                                       : "--mode upsert replaces its documents");
    error->loaded_before = rejecting == 0;
    return false;
}

/* Refuses sources whose records have matched stored documents: --mode insert would store them a
 * second time, with their positions as _ids. --again does not allow it. */
static bool refuse_beside_matched(sl_job *job, const sl_target *target,
                                  const sl_registry_entry *entries, size_t count, sl_error *error) {
    const sl_registry_entry *one = entries;
    while (one < entries + count && one->matched == 0)
        one++;
    return one == entries + count || !takes_positions(job) ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "%s: %s of its records have matched documents of %s.%s in a load with "
               "--mode. --mode insert would store these records a second time, beside the "
               "documents%s%s. To store all of its records nevertheless, load a copy "
               "under another name with --again",
               one->name, sl_number_text(one->matched), target->database, target->collection,
               one->rejected_in[0] ? ". Records that matched none are in the folder rejected/ in "
                                   : "",
               one->rejected_in);
}

/* Checks the registry for one of this loader's parts, before anything is changed. */
static bool may_be_loaded(const sl_job *job, const sl_destination *destination, const void *context,
                          uint32_t part, sl_registry_entry *entries, size_t count,
                          sl_error *error) {
    (void)context;
    bool repeats = !sl_load_mode(job->config)->matches; /* loaded again, stored again */
    bool ok =
        sl_registry_look_up(destination->registry, entries, count, error) &&
        (part > 0 || sl_registry_find_corrected(destination->registry, entries, count, error)) &&
        (!repeats ||
         refuse_beside_matched((sl_job *)job, &destination->target, entries, count, error)) &&
        (job->config->again || job->resumed || !repeats ||
         refuse_loaded(job, destination, entries, count, error));
    for (size_t i = 0; ok && i < count; i++)
        ok = parts_layout_holds(job, destination, &entries[i], error);
    return ok;
}

bool sl_sources_refuse_loaded(sl_job *job, sl_destination *destination, sl_error *error) {
    size_t count;
    /* The registry lists sources whose documents are stored. */
    if (job->resumed || destination->target.drop || sl_load_mode(job->config)->removes)
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok =
        entries && sl_parts_each(job, destination, may_be_loaded, NULL, entries, count, error);
    free(entries);
    return ok;
}

static bool is_loaded(const bson_t *document) {
    return strcmp(sl_look_string(document, "state"), "loaded") == 0;
}

static bool is_pipe(const sl_registry_entry *entry) {
    return strncmp(entry->fingerprint, SL_PIPE_FINGERPRINT, strlen(SL_PIPE_FINGERPRINT)) == 0;
}

/* The path without "/", "./" and "../" at its beginning. */
static const char *inner_path(const char *path) {
    for (const char *slash; (slash = strchr(path, '/')) && slash - path <= 2; path = slash + 1) {
        if (strncmp(path, "..", (size_t)(slash - path)) != 0)
            break;
    }
    return path;
}

/* May the entry's path be that of the source in the registry, perhaps from another folder? Then one
 * of them ends with the other one. */
static bool has_path(const sl_registry_entry *entry, const bson_t *document) {
    char own[400];
    sl_text_printable(sl_text_of(entry->name), own, sizeof own);
    const char *one = inner_path(own), *other = inner_path(sl_look_string(document, "name"));
    const bool longer = strlen(one) > strlen(other);
    const char *path = longer ? one : other, *end = longer ? other : one;
    const char *at = path + strlen(path) - strlen(end);
    return strcmp(at, end) == 0 && (at == path || at[-1] == '/');
}

/* Are the first records of an entry those of the document? SL_UNKNOWN: too few to tell. */
typedef enum alikeness { SL_UNKNOWN, SL_ALIKE, SL_OTHERS } alikeness;

static alikeness compare_records(const sl_registry_entry *entry, const bson_t *document) {
    const uint64_t stored = (uint64_t)sl_look_int64(document, "records", 0);
    unsigned own = 0, other = 0, found = 0;
    for (unsigned i = 0; i < 64; i += 16) {
        const uint64_t hash = entry->records >> i & 0xFFFF;
        bool same = false;
        for (unsigned k = 0; k < 64; k += 16)
            same = same || (hash && hash == (stored >> k & 0xFFFF));
        own += hash != 0;
        other += (stored >> i & 0xFFFF) != 0;
        found += same;
    }
    const unsigned both = own < other ? own : other;
    return found * 2 > both ? SL_ALIKE : both > 2 ? SL_OTHERS : SL_UNKNOWN;
}

#define CHANGED_SHOWN 1 /* files that the refusal names, each with a long command */

typedef struct copies {
    char shown[800];
    size_t used, count;
    uint64_t documents; /* of the sources that were found */
    bool selection;     /* one of these is of an archive */
} copies;

/* Lists a source of the registry. `how`: in what the entry resembles it; `stored`: the number of
 * its documents; -1: as registered. */
static void add_found(copies *c, const sl_registry_entry *entry, const char *how,
                      const bson_t *document, int64_t stored) {
    const uint64_t documents =
        (uint64_t)(stored >= 0 ? stored : sl_look_int64(document, "documents", 0));
    char own[400], when[SL_DATE_ROOM], include[SL_WORD_ROOM(200)] = "";
    sl_text_printable(sl_text_of(entry->name), own, sizeof own);
    sl_look_date(document, "loadedAt", when);
    if (sl_look_string(document, "include")[0])
        sl_shell_word(sl_look_string(document, "include"), include, sizeof include);
    c->selection = c->selection || entry->include;
    c->documents += documents;
    if (c->count++ < SL_COPIES_SHOWN)
        c->used += sl_print_text(
            c->shown + c->used, sizeof c->shown - c->used, "\n  %s%s %s%s%s%s%s%s%s", own, how,
            sl_look_string(document, "name"), include[0] ? " --include " : "", include,
            when[0] ? ", on " : ", whose load has not ended", when, documents ? ", " : "",
            documents ? sl_plural(documents, "document") : "");
}

static void on_copy(void *context, const sl_registry_entry *entry, const bson_t *document) {
    add_found(context, entry, ": as", document, -1);
}

static bool warn_instead(sl_error *error) {
    sl_log_warning(SL_LINES, error->message);
    *error = (sl_error){0};
    return true;
}

/* Refuses the sources that were found in the registry; `what` they have of others. With --again
 * they are only reported. */
static bool refuse_found(sl_job *job, const sl_target *target, const copies *found,
                         const char *what, sl_error *error) {
    const bool again = job->config->again;
    if (found->count == 0 || !takes_positions(job))
        return true;
    sl_error_set(error, SL_EXIT_SOURCE,
                 "the registry %s.%s.sources lists %s:" SL_LINES SL_LINES
                 "\nIf these have the same records, their documents %s stored twice%s%s",
                 target->database, target->collection, what, found->shown,
                 found->count > SL_COPIES_SHOWN ? "\n  ..." : "", again ? "are" : "would be",
                 again ? ""
                 : found->selection
                     ? ". --again loads them anyway (to add other entries or tables: "
                       "with an --include of these only)"
                     : ". --again loads them anyway",
                 again || sl_load_is_shared(job->config) ? "" : ", --drop starts again");
    return again && warn_instead(error);
}

typedef struct alike {
    sl_job *job;
    const sl_destination *destination;
    const sl_registry_entry *entries; /* those compared: `content` is the beginning of the text */
    copies found, versions;
    copies changed;        /* unfinished loads of the path of a source, with another text */
    bool asked, positions; /* takes_positions */
    bool verifies;         /* for `verify`: on_selection */
    char (*same)[SL_FINGERPRINT_ROOM]; /* registered sources that each source is; "" */
    sl_error error;
} alike;

static bool stores_copies(alike *a) {
    if (!a->asked)
        a->positions = takes_positions(a->job);
    a->asked = true;
    return a->positions;
}

/* Has the text of a loaded source, unpacked, this size? Packed sources are read for that. */
static bool has_size(alike *a, size_t index, int64_t size) {
    uint64_t *own = &a->job->sources[index].text_bytes;
    return size > 0 && sl_source_set_at(a->job->set, index)->kind != SL_SOURCE_PIPE &&
           (*own > 0 || sl_source_text_bytes(a->job->set, index, own, &a->error)) &&
           *own == (uint64_t)size;
}

/* Finds a registered source of this file whose --include is another one, or was not recorded by an
 * earlier version, and has selected the same: it has as many bytes, and this load or (of dumps,
 * which leave nothing out) the other one has selected everything. `verify` compares the documents,
 * and takes what an earlier version has registered if it begins with the same text. */
static void on_selection(void *context, const sl_registry_entry *entry, const bson_t *document) {
    alike *a = context;
    size_t index = 0;
    const char *include = sl_look_text(document, "include"), *id = sl_look_text(document, "_id");
    char own[400];
    while (a->job->sources[index].registered != entry->fingerprint)
        index++;
    if (a->error.code || entry->state != SL_SOURCE_NEW || !id ||
        strcmp(sl_base_name(entry->name), sl_base_name(sl_look_string(document, "name"))) != 0)
        return;
    sl_text_printable(sl_text_of(entry->include), own, sizeof own);
    const uint64_t beginning = (uint64_t)sl_look_int64(document, "beginning", 0);
    const bool earlier = !include && beginning != 0 && beginning == entry->beginning;
    const bool all = !own[0] || earlier ||
                     (include && !include[0] && sl_source_set_at(a->job->set, index)->schema);
    const bool loaded = is_loaded(document);
    if ((include && strcmp(include, own) == 0) || ((a->verifies || a->job->resumed) && earlier) ||
        (all && loaded && has_size(a, index, sl_look_int64(document, "textBytes", 0))))
        snprintf(a->same[index], sizeof a->same[index], "%s", id);
    else
        add_found(&a->found, entry, ": as", document, -1);
}

/* `*others`: registered sources of these files with another selection. */
static bool find_selections(sl_job *job, const sl_destination *destination, bool verifies,
                            copies *others, sl_error *error) {
    size_t count, archives = 0, sources = sl_source_set_count(job->set);
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    for (size_t i = 0; entries && i < count; i++) {
        if (entries[i].include)
            entries[archives++] = entries[i];
    }
    alike a = {.job = job, .destination = destination, .entries = entries, .verifies = verifies};
    a.same = calloc(sources + 1, sizeof *a.same);
    if (entries && !a.same)
        sl_error_memory(error, "comparing the sources with the registry");
    bool ok = entries && a.same &&
              sl_registry_look_up(destination->registry, entries, archives, error) &&
              sl_registry_same_content(destination->registry, "content", entries, archives,
                                       on_selection, &a, error);
    if (ok && a.error.code)
        *error = a.error;
    ok = ok && !a.error.code;
    for (size_t i = 0; ok && i < sources; i++) {
        if (a.same[i][0])
            memcpy(job->sources[i].registered, a.same[i], sizeof a.same[i]);
    }
    *others = a.found;
    free(a.same);
    free(entries);
    return ok;
}

bool sl_sources_find_selections(sl_job *job, const sl_destination *destination, sl_error *error) {
    copies ignored;
    return destination->target.drop || sl_load_mode(job->config)->removes ||
           find_selections(job, destination, false, &ignored, error);
}

/* Counts the stored documents of a registered source whose _ids are positions; sets the bounds. */
static bool count_stored(const sl_destination *destination, const bson_t *document,
                         int64_t bounds[2], uint64_t *stored, sl_error *error) {
    const int64_t number = sl_look_int64(document, "number", 0);
    *stored = 0;
    if (number <= 0 || number > SL_SOURCE_NUMBER_MAX)
        return true;
    bounds[0] = sl_stripe_first_id((uint32_t)number, 0);
    bounds[1] = sl_stripe_first_id((uint32_t)number, SL_STRIPES);
    return sl_count_range(destination->connection, &destination->target, bounds[0], bounds[1],
                          stored, error);
}

/* Adds a source whose load has not ended, if documents of it are stored. */
static void add_unfinished(alike *a, copies *others, const sl_registry_entry *entry,
                           const char *how, const bson_t *document) {
    const sl_target *target = &a->destination->target;
    int64_t bounds[2];
    uint64_t stored;
    if (!count_stored(a->destination, document, bounds, &stored, &a->error) || stored == 0)
        return;
    if (is_pipe(entry) || !has_path(entry, document))
        add_found(others, entry, how, document, (int64_t)stored);
    else if (a->changed.count++ < CHANGED_SHOWN)
        a->changed.used += sl_print_text(
            a->changed.shown + a->changed.used, sizeof a->changed.shown - a->changed.used,
            "\n  %.100s: %s; %s.deleteMany({_id: {$gte: "
            "NumberLong('%lld'), $lt: NumberLong('%lld')}})",
            entry->name, sl_plural(stored, "document"),
            sl_mongosh_collection(target->database, target->collection), (long long)bounds[0],
            (long long)bounds[1]);
}

static void on_alike(void *context, const sl_registry_entry *entry, const bson_t *document) {
    alike *a = context;
    size_t index = 0;
    for (size_t left = (size_t)(entry - a->entries); left > 0 || a->job->sources[index].skipped;)
        left -= !a->job->sources[index++].skipped;
    const sl_source *source = sl_source_set_at(a->job->set, index);
    const bool loaded = is_loaded(document);
    const uint64_t content = (uint64_t)sl_look_int64(document, "content", 0);
    /* A pipe beside one that was not loaded completely is refused without --another-pipe. */
    const bool pipes = source->kind == SL_SOURCE_PIPE && !loaded && content == 0;
    if (a->error.code || pipes || (content != 0 && content == source->content) || !stores_copies(a))
        return;
    if (!loaded)
        add_unfinished(a, &a->found, entry, ": as", document);
    else if (has_size(a, index, sl_look_int64(document, "textBytes", 0)))
        on_copy(&a->found, entry, document);
    else if (!a->error.code)
        add_found(&a->versions, entry, " begins with the text of", document, -1);
}

/* Notes a source with the entry's file name, unless both begin with the same text: then it has been
 * noted already. At the same path (has_path), an export may have overwritten the file, sorted
 * otherwise or with new records first. At another path, the file is taken for a version only if its
 * size differs by at most 1 %, and the first records, if known, are the same: each month may have a
 * folder with files of one name. */
static void on_namesake(void *context, const sl_registry_entry *entry, const bson_t *document) {
    alike *a = context;
    const uint64_t beginning = (uint64_t)sl_look_int64(document, "beginning", 0);
    const double size = (double)entry->size, other = sl_look_amount(document, "size", 0);
    char how[100];
    const bool loaded = is_loaded(document);
    const bool near =
        has_path(entry, document) || (fabs(size - other) * 100 <= fmax(size, other) &&
                                      (!loaded || compare_records(entry, document) != SL_OTHERS));
    snprintf(how, sizeof how,
             ", %s bytes, has the name of a file of %s bytes:", sl_number_text((uint64_t)size),
             sl_number_text((uint64_t)other));
    if (a->error.code || !near || is_pipe(entry) || sl_registry_is_rejects(entry->name) ||
        (beginning != 0 && beginning == entry->beginning) || !stores_copies(a))
        return;
    if (!loaded)
        add_unfinished(a, &a->versions, entry, how, document);
    else
        add_found(&a->versions, entry, how, document, -1);
}

/* Notes a loaded source that begins with the same four records: it may be an earlier version of the
 * file, under another name. A source with the same text or name has been noted already. */
static void on_same_records(void *context, const sl_registry_entry *entry, const bson_t *document) {
    alike *a = context;
    const uint64_t beginning = (uint64_t)sl_look_int64(document, "beginning", 0);
    const char *other = sl_look_string(document, "name");
    if (!a->error.code && is_loaded(document) &&
        (beginning == 0 || beginning != entry->beginning) &&
        strcmp(sl_base_name(entry->name), sl_base_name(other)) != 0 && stores_copies(a))
        add_found(&a->versions, entry, " begins with the records of", document, -1);
}

/* Refuses files that have changed since an unfinished load of them. With --again they are only
 * reported. */
static bool refuse_changed(const alike *a, sl_error *error) {
    const sl_target *target = &a->destination->target;
    const bool again = a->job->config->again;
    if (a->changed.count == 0)
        return true;
    sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s.%s holds documents of loads that have not ended, of files with these paths and "
        "another text:" SL_LINES SL_LINES "\nIf a file is the same one, which has "
        "changed, its records %s stored twice%s",
        target->database, target->collection, a->changed.shown,
        a->changed.count > CHANGED_SHOWN ? "\n  ..." : "", again ? "are" : "would be",
        again ? ""
              : ": if its load does not run any more, remove its documents with the "
                "command of mongosh, or all of the collection with --drop; or restore the "
                "file, and complete its load with --resume --work-dir. --again loads the "
                "files, also those that are other files with the same path");
    return again && warn_instead(error);
}

static void warn_of_versions(const alike *a) {
    const sl_target *target = &a->destination->target;
    const bool documents = a->job->has_pipe && a->job->own_ids;
    if (a->versions.count > 0)
        sl_log_warning("%s.%s holds sources of which these may be copies, or other "
                       "versions:" SL_LINES SL_LINES
                       "\nIf so, %s are stored twice: the %s of these "
                       "sources are kept. To store one version only, load all files of the "
                       "collection with --drop. So that later versions replace documents, give "
                       "them an _id then (--id-field), and load the versions with --mode upsert",
                       target->database, target->collection, a->versions.shown,
                       a->versions.count > SL_COPIES_SHOWN ? "\n  ..." : "",
                       documents ? "documents without an _id of their own" : "records",
                       sl_plural(a->versions.documents, "document"));
}

static bool refuse_alike(sl_job *job, const sl_destination *destination,
                         const sl_registry_entry *entries, size_t count, sl_error *error) {
    sl_registry_entry *compared = malloc((count + 1) * sizeof *compared);
    if (!compared)
        return sl_error_memory(error, "comparing the sources with the registry");
    for (size_t i = 0; i < count; i++) {
        compared[i] = entries[i];
        compared[i].content = entries[i].beginning;
    }
    alike found = {.job = job, .destination = destination, .entries = compared};
    bool ok =
        sl_registry_same_content(destination->registry, "beginning", compared, count, on_alike,
                                 &found, error) &&
        sl_registry_namesakes(destination->registry, entries, count, on_namesake, &found, error);
    for (size_t i = 0; i < count; i++) {
        const uint64_t records = entries[i].records;
        compared[i].content = records >> 48 && records >> 48 != (records & 0xFFFF) ? records : 0;
    }
    ok = ok && sl_registry_same_content(destination->registry, "records", compared, count,
                                        on_same_records, &found, error);
    free(compared);
    if (ok && found.error.code) {
        *error = found.error;
        return false;
    }
    if (ok && found.found.count == 0 && (found.changed.count == 0 || job->config->again))
        warn_of_versions(&found);
    return ok && refuse_changed(&found, error) &&
           refuse_found(job, &destination->target, &found.found,
                        "texts with the beginning and size of these sources, or whose load "
                        "has not ended",
                        error);
}

/* Refuses sources whose content the registry lists under another name, or whose text it lists. With
 * --again they are only reported, if `report`. The entries have been looked up. */
static bool refuse_copies(sl_job *job, const sl_destination *destination,
                          const sl_registry_entry *entries, size_t count, bool report,
                          sl_error *error) {
    const sl_load_config *config = job->config;
    copies found = {.count = 0};
    if (job->keys || config->part_of_trial || config->format_options.mode != SL_MODE_INSERT ||
        (config->again && !report))
        return true;
    return sl_registry_same_content(destination->registry, "content", entries, count, on_copy,
                                    &found, error) &&
           refuse_found(job, &destination->target, &found,
                        "files with the size, beginning and end of these sources, under other "
                        "names or with another --include",
                        error) &&
           (job->resumed || !report || refuse_alike(job, destination, entries, count, error));
}

/* Of an `alike`. */
static void on_changed(void *context, const sl_registry_entry *entry, const bson_t *document) {
    alike *a = context;
    int64_t bounds[2];
    uint64_t stored;
    char own[400], when[SL_DATE_ROOM];
    if (a->error.code || is_pipe(entry) || !has_path(entry, document) ||
        (!a->job->config->again && compare_records(entry, document) != SL_ALIKE) ||
        !is_loaded(document) ||
        !count_stored(a->destination, document, bounds, &stored, &a->error) || stored == 0)
        return;
    sl_text_printable(sl_text_of(entry->name), own, sizeof own);
    sl_look_date(document, "loadedAt", when);
    if (a->found.count++ < SL_COPIES_SHOWN)
        a->found.used += sl_print_text(
            a->found.shown + a->found.used, sizeof a->found.shown - a->found.used,
            "\n  %s: %lld bytes were loaded on %s, and it has %llu, of another text", own,
            (long long)sl_look_int64(document, "size", 0), when, (unsigned long long)entry->size);
}

/* A file that is not the one that was loaded under its name gets other _ids: one that was
 * corrected, or has got more records, would be stored a second time. With --again, it may be one in
 * which the rejects were corrected, whatever its first records are. The entries have been looked
 * up. */
static bool refuse_corrected(sl_job *job, const sl_destination *destination,
                             const sl_registry_entry *entries, size_t count, sl_error *error) {
    const sl_load_config *config = job->config;
    alike changed = {.job = job, .destination = destination};
    const copies *found = &changed.found;
    if (job->resumed || job->keys || job->other_ids || config->part_of_trial ||
        config->format_options.mode != SL_MODE_INSERT)
        return true;
    if (!sl_registry_namesakes(destination->registry, entries, count, on_changed, &changed, error))
        return false;
    if (changed.error.code) {
        *error = changed.error;
        return false;
    }
    return found->count == 0 || !takes_positions(job) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%sthese files have changed since they were loaded into "
                        "%s.%s:" SL_LINES SL_LINES
                        "\nTheir stored records would be stored a second time. To load corrected "
                        "rejects, load only the file in rejected/ in the work directory of the "
                        "first load; or start again with --drop. For new data, rename the files",
                        config->again ? "--again: " : "", destination->target.database,
                        destination->target.collection, found->shown,
                        found->count > SL_COPIES_SHOWN ? "\n  ..." : "");
}

bool sl_sources_refuse_same_text(sl_job *job, sl_error *error) {
    const sl_load_config *config = job->config;
    copies found = {.count = 0};
    if (job->keys || job->resumed || config->again || config->part_of_trial ||
        config->format_options.mode != SL_MODE_INSERT)
        return true;
    for (size_t i = 0; i < sl_source_set_count(job->set) && found.count <= SL_COPIES_SHOWN; i++) {
        const sl_source *copy = sl_source_set_at(job->set, i);
        if (job->sources[i].like == 0 || job->sources[i].skipped)
            continue;
        const size_t first = job->sources[i].like - 1;
        const sl_source *like = sl_source_set_at(job->set, first);
        uint64_t where;
        bool same = false;
        if (copy->kind == SL_SOURCE_PIPE || like->kind == SL_SOURCE_PIPE)
            continue;
        if (found.count == 0 && !takes_positions(job))
            break;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
        sl_log_info("comparing the text of %s with %s", copy->shown, like->shown);
        if (!sl_source_same_text(job->set, first, i, &same, &where, error))
            return false;
        if (same && found.count++ < SL_COPIES_SHOWN)
            found.used += sl_print_text(found.shown + found.used, sizeof found.shown - found.used,
                                        "\n  %s: as %s", copy->shown, like->shown);
    }
    return found.count == 0 ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "these files have the text of other sources:" SL_LINES SL_LINES
                        "\nTheir documents would be stored twice: name each file once. --again "
                        "loads them anyway",
                        found.shown, found.count <= SL_COPIES_SHOWN ? "" : "\n  ...");
}

bool sl_sources_refuse_copies(sl_job *job, const sl_destination *destination, sl_error *error) {
    size_t count;
    if (destination->target.drop)
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              refuse_corrected(job, destination, entries, count, error) &&
              refuse_copies(job, destination, entries, count, true, error);
    free(entries);
    return ok;
}

/* Have records of JSON or BSON no _id? Those of pipes are not known. */
static bool lack_ids(void *job) {
    return takes_positions(job) && !((sl_job *)job)->has_pipe;
}

static bool start(const sl_job *job, const sl_destination *destination, const void *context,
                  uint32_t part, sl_registry_entry *entries, size_t count, sl_error *error) {
    (void)job, (void)context, (void)part;
    return sl_registry_start(destination->registry, entries, count, error);
}

/* Two loaders may start at once with copies of a file. Each looks for copies after it has
 * registered its own, so that at least one of them finds the other's, and is refused. */
static bool refuse_started_copies(sl_job *job, const sl_destination *destination,
                                  sl_registry_entry *entries, size_t count, sl_error *error) {
    sl_error ignored;
    if (refuse_copies(job, destination, entries, count, false, error))
        return true;
    (void)sl_registry_withdraw(destination->registry, entries, count, &ignored);
    return false;
}

/* A pipe has no fingerprint that identifies its text. If the load of a pipe was killed, and a new
 * load gets the same text, its documents would be stored twice. Nor is it known whether the other
 * loader still runs, perhaps on another host. So while the load of a pipe is incomplete, another
 * pipe needs --another-pipe. */
static bool refuse_beside_pipe(const sl_job *job, const sl_destination *destination,
                               sl_registry_entry *entries, size_t count, const char *host,
                               const char *work_directory, sl_error *error) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!is_pipe(&entries[i]))
            continue;
        entries[i].host = host;
        entries[i].work_directory = work_directory;
        any = true;
    }
    if (!any || job->resumed || job->config->another_pipe || sl_load_mode(job->config)->matches)
        return true;
    sl_registry_unfinished first;
    char folder[SL_WORD_ROOM(sizeof first.work_directory)];
    if (!sl_registry_find_unfinished(destination->registry, SL_PIPE_FINGERPRINT, entries, count,
                                     &first, error))
        return false;
    if (first.count == 0)
        return true;
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%s.%s holds the documents of %s whose load was not completed (the "
        "first began at %s on %s). The same data would be stored twice: complete "
        "that load with --resume --work-dir %s, or give --drop. For other data give --another-pipe",
        destination->target.database, destination->target.collection,
        sl_plural(first.count, "pipe"), first.when[0] ? first.when : "an unknown time",
        first.host[0] ? first.host : "an unknown host",
        first.work_directory[0] ? sl_shell_word(first.work_directory, folder, sizeof folder)
                                : "DIR");
}

/* Keeps the entries of sources with corrected rejects, which the load need not offer again. */
static bool note_corrected(sl_job *job, const sl_registry_entry *entries, sl_error *error) {
    size_t next = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        const sl_registry_entry *entry = job->sources[i].skipped ? NULL : &entries[next++];
        if (!entry || entry->corrected == 0)
            continue;
        sl_registry_entry *kept = malloc(sizeof *kept);
        if (!kept)
            return sl_error_memory(error, "numbering the sources");
        *kept = *entry;
        job->sources[i].corrected = kept;
    }
    return true;
}

bool sl_sources_number_by_registry(sl_job *job, sl_destination *destination, const char *folder,
                                   sl_error *error) {
    size_t count;
    char host[256] = "", work_directory[PATH_MAX] = "";
    gethostname(host, sizeof host - 1);
    if (!realpath(folder, work_directory))
        snprintf(work_directory, sizeof work_directory, "%s", folder);
    /* The registry lists sources whose documents are stored. */
    if (sl_load_mode(job->config)->removes) {
        destination->numbered = true;
        return sl_sources_number_offline(job, error);
    }
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries &&
              sl_parts_each(job, destination, may_be_loaded, NULL, entries, count, error) &&
              note_corrected(job, entries, error) &&
              refuse_beside_pipe(job, destination, entries, count, host, work_directory, error);
    destination->numbered = ok;
    if (job->own_ids)
        sl_registry_ask_positions(destination->registry, lack_ids, job);
    ok = ok && sl_parts_each(job, destination, start, NULL, entries, count, error);
    ok = ok && refuse_started_copies(job, destination, entries, count, error);
    if (ok)
        take_numbers(job, entries);
    free(entries);
    return ok;
}

void sl_sources_end_pipes(const sl_job *job, const sl_destination *destination) {
    size_t count, pipes = 0;
    sl_error ignored = {0};
    sl_registry_entry *entries =
        destination->registry && job->has_pipe ? sl_sources_entries(job, &count, &ignored) : NULL;
    for (size_t i = 0; entries && i < count; i++) {
        if (is_pipe(&entries[i]))
            entries[pipes++] = entries[i];
    }
    if (pipes > 0)
        (void)sl_registry_finish(destination->registry, entries, pipes, &ignored);
    free(entries);
}

bool sl_sources_number_as_next(sl_job *job, const sl_destination *destination, sl_error *refusal,
                               sl_error *error) {
    size_t count;
    uint32_t last;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              sl_registry_last(destination->registry, &last, error);
    for (size_t i = 0; ok && i < count; i++) {
        if (entries[i].state != SL_SOURCE_NEW)
            continue;
        if (last < SL_SOURCE_NUMBER_MAX)
            entries[i].number = ++last;
        else if (!refusal->code)
            sl_error_set(refusal, SL_EXIT_CLUSTER,
                         "the registry %s.%s.sources has no source numbers left for %zu of the "
                         "sources; load into another collection",
                         destination->target.database, destination->target.collection, count - i);
    }
    if (ok)
        take_numbers(job, entries);
    free(entries);
    return ok;
}

/* Writes how files of a dump are compared that `restore` has stored. */
static void advise_dump(const sl_job *job, char *out, size_t room) {
    char word[SL_WORD_ROOM(PATH_MAX)];
    for (size_t i = 0; i < sl_source_set_count(job->set) && !*out; i++) {
        if (!job->sources[i].skipped && strcmp(job->sources[i].format->name, "bson") == 0)
            sl_print_text(out, room,
                          "\nWhat `restore` has stored is compared with its dump by --dump and the "
                          "options of the connection: shardload verify --dump %s",
                          sl_shell_word(sl_source_set_at(job->set, i)->path, word, sizeof word));
    }
}

/* A source that was never loaded is an error; one whose load was not finished is a warning. */
static bool refuse_unknown(const sl_job *job, const sl_destination *destination,
                           const sl_registry_entry *entries, size_t count, const copies *others,
                           sl_error *error) {
    char unknown[800] = "", advice[1000] = "";
    size_t used = 0, news = 0;
    advise_dump(job, advice, sizeof advice);
    if (!*advice && others->count > 0)
        sl_print_text(advice, sizeof advice,
                      "\nOf these files, other selections are loaded:" SL_LINES, others->shown);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state == SL_SOURCE_NEW && news++ < 5)
            used += sl_print_text(unknown + used, sizeof unknown - used, "\n  %s", entries[i].name);
        else if (entries[i].state == SL_SOURCE_STARTED)
            sl_log_warning("%s: a load of it into %s.%s began and has not finished",
                           entries[i].name, destination->target.database,
                           destination->target.collection);
    }
    return news == 0 ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "%zu of the sources %s never been loaded into %s.%s (or changed since):" SL_LINES
                   SL_LINES SL_LINES,
               news, news == 1 ? "has" : "have", destination->target.database,
               destination->target.collection, unknown, news > 5 ? "\n  ..." : "", advice);
}

/* Documents that were matched by other fields than the _id, or whose _id is that of columns, are
 * not found by the positions of their records. */
static bool refuse_matched(const sl_job *job, const sl_destination *destination,
                           const sl_registry_entry *entries, size_t count, sl_error *error) {
    for (size_t i = 0; i < count && !job->own_ids; i++) {
        uint64_t found;
        if (!entries[i].no_range)
            continue;
        if (!sl_count_range(destination->connection, &destination->target,
                            sl_stripe_first_id(entries[i].number, 0),
                            sl_stripe_first_id(entries[i].number, SL_STRIPES), &found, error))
            return false;
        char number[SL_HUMAN_ROOM], all[SL_HUMAN_ROOM];
        const uint64_t records = entries[i].stored + entries[i].matched;
        if (found > 0 && found < records)
            return sl_error_set(
                error, SL_EXIT_VERIFICATION,
                "%s: %s of its %s documents in %s.%s have the positions of the records as _ids. "
                "Others are missing, or were matched by a load with --mode and --match-fields "
                "other than _id, and cannot be verified (docs/modes.md)",
                entries[i].name, sl_human_count(found, number), sl_human_count(records, all),
                destination->target.database, destination->target.collection);
        if (found == 0)
            return sl_error_set(
                error, SL_EXIT_SOURCE,
                "%s: its documents in %s.%s have other _ids than the positions of the records. "
                "After a load with --id-field, give the same --id-field. A load with --mode and "
                "--match-fields other than _id cannot be verified (docs/modes.md)",
                entries[i].name, destination->target.database, destination->target.collection);
    }
    return true;
}

bool sl_sources_number_as_loaded(sl_job *job, const sl_destination *destination, sl_error *error) {
    size_t count;
    uint64_t matched = 0;
    copies others;
    if (!find_selections(job, destination, true, &others, error))
        return false;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              refuse_unknown(job, destination, entries, count, &others, error) &&
              refuse_matched(job, destination, entries, count, error);
    if (ok)
        take_numbers(job, entries);
    for (size_t i = 0; ok && i < count; i++) {
        job->rejected += entries[i].rejected;
        job->refused_ids += entries[i].refused_ids;
        job->refused_unknown = job->refused_unknown || !entries[i].refused_known;
        job->stored += entries[i].stored;
        if (entries[i].state != SL_SOURCE_LOADED || entries[i].in_parts)
            job->registered = UINT64_MAX;
        else if (job->registered != UINT64_MAX)
            job->registered += entries[i].in_range > 0 ? entries[i].in_range
                                                       : entries[i].stored + entries[i].matched;
        matched += entries[i].matched;
        if (entries[i].foreign > job->foreign)
            job->foreign = entries[i].foreign;
        if (!job->rejected_in[0])
            memcpy(job->rejected_in, entries[i].rejected_in, sizeof job->rejected_in);
    }
    job->foreign -= matched < job->foreign ? matched : job->foreign;
    free(entries);
    return ok;
}

bool sl_sources_others(const sl_job *job, const sl_destination *destination, bool own_ids,
                       uint64_t *documents, bool *complete, sl_error *error) {
    bson_t numbers = BSON_INITIALIZER;
    uint32_t used = 0;
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        char room[SL_ARRAY_KEY_ROOM];
        if (!job->sources[i].skipped)
            bson_append_int32(&numbers, sl_array_key(used++, room), -1,
                              (int32_t)job->sources[i].number);
    }
    bool ok =
        sl_registry_total(destination->registry, &numbers, own_ids, documents, complete, error);
    bson_destroy(&numbers);
    return ok;
}

/* With --only-shards: takes each source's layout from the registry, or registers this loader's. */
static bool sources_agree_on_layout(sl_job *job, const sl_destination *destination,
                                    sl_error *error) {
    size_t count, next = 0;
    if (!job->own_shards)
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    for (size_t i = 0; entries && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            parts_propose(job, destination, i, &entries[next++]);
    }
    bool ok = entries && sl_registry_agree_layout(destination->registry, entries, count, error);
    next = 0;
    for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++) {
        sl_job_source *source = &job->sources[i];
        if (source->skipped)
            continue;
        ok = parts_layout_holds(job, destination, &entries[next], error);
        source->pieces = entries[next].layout.pieces;
        source->leading = entries[next++].layout.leading;
    }
    free(entries);
    return ok;
}

/* ---- ranges of ids ---- */

/* The layout of a load's ids over the shards.
 *
 * With one range per shard and source, split at stripes (document_id.h), every shard gets its share
 * of every source from the first megabyte on. The first range of each source is on the shard after
 * that of the previous source, so that many small sources, which fill only the first stripes, are
 * spread, too.
 *
 * Moving a range takes about a tenth of a second. If moving many sources would take long compared
 * with the load itself, a range contains several consecutive sources, such that ranges have about
 * equal numbers of bytes. */

#define BYTES_PER_RANGE ((uint64_t)32 << 20) /* stored bytes that justify a separate range */
#define RANGES_PER_SHARD 16u                 /* always allowed */
#define RANGES_MAX 4096u
#define RANGES_COUNTED 256u /* maximum when ranges are not placed, but only counted at the end */

typedef struct numbered {
    uint32_t number;
    uint64_t bytes;
    sl_job_source *source;
} numbered;

static int by_number(const void *a, const void *b) {
    uint32_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

/* The sources to load, by ascending number; malloc'd. */
static numbered *sorted_sources(const sl_job *job) {
    numbered *list = malloc((job->active + 1) * sizeof *list);
    size_t used = 0;
    for (size_t i = 0; list && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            list[used++] =
                (numbered){job->sources[i].number, sl_source_set_at(job->set, i)->stored_bytes + 1,
                           &job->sources[i]};
    }
    if (list)
        qsort(list, used, sizeof *list, by_number);
    return list;
}

static size_t ranges_worth_it(const sl_job *job) {
    if (!job->by_range)
        return RANGES_COUNTED;
    uint64_t worth = sl_source_set_stored_bytes(job->set) / BYTES_PER_RANGE;
    if (worth < RANGES_PER_SHARD * job->shards)
        worth = RANGES_PER_SHARD * job->shards;
    return worth < RANGES_MAX ? (size_t)worth : RANGES_MAX;
}

/* Sets the number of pieces of each source, and the shard of its first piece. */
static void deal_out(const sl_job *job, const numbered *list) {
    uint32_t pieces = 1;
    uint64_t run_bytes = 0; /* minimum of stored bytes per range; 0: one source per range */
    size_t most = ranges_worth_it(job);
    if (job->by_range)
        pieces = job->shards < SL_STRIPES ? job->shards : SL_STRIPES;
    if (job->active > 1 && job->active * pieces > most) {
        pieces = 1;
        run_bytes = (sl_source_set_stored_bytes(job->set) + job->active) / most;
    }
    uint32_t turn = 0; /* the shard of the next run, modulo shards */
    for (size_t first = 0, next; first < job->active; first = next, turn++) {
        uint64_t bytes = list[first].bytes;
        /* A run ends at a gap in the numbers, because the missing numbers belong to sources of
         * other loads. */
        for (next = first + 1; next < job->active && bytes < run_bytes &&
                               list[next].number == list[next - 1].number + 1;
             next++)
            bytes += list[next].bytes;
        for (size_t i = first; i < next; i++) {
            list[i].source->pieces = pieces;
            list[i].source->leading = run_bytes > 0 ? turn : list[i].number;
        }
    }
}

/* Do two consecutive sources of the list belong to one range? */
static bool same_run(const numbered *a, const numbered *b) {
    return a->source->pieces == 1 && b->source->pieces == 1 && b->number == a->number + 1 &&
           a->source->leading == b->source->leading;
}

/* A range of a shard that is being removed is for the next shard. With --only-shards the layout
 * decides which loader loads a range, wherever it is placed. */
static void make_ranges(sl_job *job, const sl_destination *destination, const numbered *list) {
    for (size_t first = 0, next; first < job->active; first = next) {
        const sl_job_source *source = list[first].source;
        for (next = first + 1; next < job->active && same_run(&list[next - 1], &list[next]);)
            next++;
        for (uint32_t piece = 0; piece < source->pieces; piece++) {
            uint32_t shard = sl_job_shard_of(job, source, piece);
            if (!job->own_shards && destination->topology)
                shard = sl_topology_receiver(destination->topology, destination->topology, shard);
            uint32_t begin = sl_piece_begin(source, piece);
            uint32_t end = sl_piece_begin(source, piece + 1);
            job->ranges[job->range_count++] = (sl_range){
                .minimum = sl_stripe_first_id(list[first].number, begin),
                .maximum = sl_stripe_first_id(list[next - 1].number, end),
                .shard = shard,
            };
        }
    }
}

bool sl_ranges_lay_out(sl_job *job, const sl_destination *destination, sl_error *error) {
    numbered *list = sorted_sources(job);
    size_t count = 0;
    if (!list)
        return sl_error_memory(error, "laying out ranges");
    deal_out(job, list);
    if (!sources_agree_on_layout(job, destination, error)) {
        free(list);
        return false;
    }
    for (size_t i = 0; i < job->active; i++)
        count += list[i].source->pieces;
    job->ranges = calloc(count, sizeof *job->ranges);
    bool ok = job->ranges;
    if (ok)
        make_ranges(job, destination, list);
    free(list);
    return ok || sl_error_memory(error, "laying out ranges");
}
