/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a load's sources: without a cluster in order, otherwise from the registry beside
 * the target, which also records the sources that have been loaded. */
#include "numbers.h"
#include "parts.h"
#include "types.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "util/text.h"

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

/* Registry entries for the sources that are not skipped, in order. The caller frees them. */
sl_registry_entry *sl_sources_entries(const sl_job *job, size_t *count, sl_error *error) {
    size_t sources = sl_source_set_count(job->set);
    sl_registry_entry *entries = calloc(sources, sizeof *entries);
    *count = 0;
    for (size_t i = 0; entries && i < sources; i++) {
        const sl_job_source *source = &job->sources[i];
        const sl_source *facts = sl_source_set_at(job->set, i);
        if (!source->skipped)
            entries[(*count)++] = (sl_registry_entry){.fingerprint = source->fingerprint,
                                                      .name = facts->path,
                                                      .size = facts->stored_bytes,
                                                      .content = facts->content,
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

static bool refuse_loaded(const sl_job *job, const sl_destination *destination,
                          const sl_registry_entry *entries, size_t count, sl_error *error) {
    const sl_target *target = &destination->target;
    char refused[800] = "";
    size_t used = 0, loaded = 0;
    for (size_t i = 0; i < count; i++) {
        bool whole = entries[i].state == SL_SOURCE_LOADED;
        if ((whole || entries[i].part_loaded) && loaded++ < 5)
            used +=
                sl_print_text(refused + used, sizeof refused - used, "\n  %s%s%s", entries[i].name,
                              whole ? ", on " : ", this part of it", whole ? entries[i].when : "");
    }
    if (loaded == 0)
        return true;
    const char *more = loaded > 5 ? "\n  ..." : "";
    if (destination->target_gone)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s.%s does not exist, but its registry %s.%s.sources still does, and lists %zu of the "
            "sources as loaded:" SL_LINES SL_LINES "\n--again loads them again, with the same "
            "ids%s",
            target->database, target->collection, target->database, target->collection, loaded,
            refused, more,
            sl_load_is_shared(job->config) ? "" : "; --drop removes the registry as well");
    return sl_error_set(
        error, SL_EXIT_SOURCE,
        "%zu of the sources %s been loaded into %s.%s before:" SL_LINES SL_LINES
        "\n--again sends them again (stored documents are not changed)%s. For other "
        "files with the same name and content, rename the files",
        loaded, loaded == 1 ? "has" : "have", target->database, target->collection, refused, more,
        sl_load_is_shared(job->config) ? "" : "; --drop starts anew");
}

/* Checks the registry for one of this loader's parts, before anything is changed. */
static bool may_be_loaded(const sl_job *job, const sl_destination *destination, const void *context,
                          uint32_t part, sl_registry_entry *entries, size_t count,
                          sl_error *error) {
    (void)context, (void)part;
    bool inserts = job->config->format_options.mode == SL_MODE_INSERT;
    bool ok = sl_registry_look_up(destination->registry, entries, count, error) &&
              (job->config->again || job->resumed || !inserts ||
               refuse_loaded(job, destination, entries, count, error));
    for (size_t i = 0; ok && i < count; i++)
        ok = sl_parts_layout_holds(job, destination, &entries[i], error);
    return ok;
}

bool sl_sources_look_for_target(sl_job *job, sl_destination *destination, sl_error *error) {
    const sl_target *target = &destination->target;
    size_t left, count;
    if (job->resumed || target->drop)
        return true;
    if (!sl_registry_left_behind(destination->connection, target, &left, error))
        return false;
    destination->target_gone = left > 0;
    char uuid[SL_UUID_ROOM]; /* "" for a view, which later checks refuse */
    if (left == 0 && !sl_target_uuid(destination->connection, target, uuid, error))
        return false;
    /* Deleting does not use the registry. */
    if (left == 0 && (!uuid[0] || job->config->format_options.mode == SL_MODE_DELETE))
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok =
        entries && sl_parts_each(job, destination, may_be_loaded, NULL, entries, count, error);
    if (ok && left > 0)
        sl_log_warning(
            "%s.%s does not exist, but its registry %s.%s.sources still does: the documents of the "
            "%zu source%s that it lists no longer exist; only the documents of this load will be "
            "stored%s",
            target->database, target->collection, target->database, target->collection, left,
            left == 1 ? "" : "s",
            sl_load_is_shared(job->config) ? "" : "; --drop removes the registry as well");
    free(entries);
    return ok;
}

typedef struct copies {
    char shown[800];
    size_t used, count;
} copies;

static void on_copy(void *context, const sl_registry_entry *entry, const char *name,
                    const char *when) {
    copies *c = context;
    char own[400];
    sl_text_printable(sl_text_of(entry->name), own, sizeof own);
    if (c->count++ < 5)
        c->used += sl_print_text(c->shown + c->used, sizeof c->shown - c->used, "\n  %s: as %s%s%s",
                                 own, name, when[0] ? ", on " : ", whose load has not ended", when);
}

/* Refuses sources whose content the registry lists under another name. With --again they are only
 * reported, if `report`. The entries have been looked up. */
static bool refuse_copies(const sl_job *job, const sl_destination *destination,
                          const sl_registry_entry *entries, size_t count, bool report,
                          sl_error *error) {
    const sl_load_config *config = job->config;
    const sl_target *target = &destination->target;
    copies found = {.count = 0};
    if (job->own_ids || destination->target_gone || config->part_of_trial ||
        config->format_options.mode != SL_MODE_INSERT || (config->again && !report))
        return true;
    if (!sl_registry_same_content(destination->registry, entries, count, on_copy, &found, error))
        return false;
    const char *more = found.count > 5 ? "\n  ..." : "";
    if (found.count > 0 && config->again)
        sl_log_warning("the registry %s.%s.sources lists files with the size, beginning and end of "
                       "these sources, under other names:" SL_LINES SL_LINES
                       "\nIf these are the same files, their documents are stored twice",
                       target->database, target->collection, found.shown, more);
    return found.count == 0 || config->again ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "the registry %s.%s.sources lists files with the size, beginning and "
                        "end of these sources, under other names:" SL_LINES SL_LINES
                        "\nIf these are the same files, their documents would be stored "
                        "twice. --again loads them anyway%s",
                        target->database, target->collection, found.shown, more,
                        sl_load_is_shared(config) ? "" : ", --drop starts again");
}

bool sl_sources_refuse_copies(sl_job *job, const sl_destination *destination, sl_error *error) {
    size_t count;
    if (destination->target.drop)
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              refuse_copies(job, destination, entries, count, true, error);
    free(entries);
    return ok;
}

static bool is_pipe(const sl_registry_entry *entry) {
    return strncmp(entry->fingerprint, SL_PIPE_FINGERPRINT, strlen(SL_PIPE_FINGERPRINT)) == 0;
}

static void warn_of_namesake(const sl_registry_entry *entry, uint64_t size) {
    char shown[400];
    if (is_pipe(entry))
        return; /* all pipes have the same name */
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    sl_log_warning("%s: another file of this name, of %llu bytes, has been loaded into this "
                   "collection before; this one has %llu. If it is the same data, downloaded again "
                   "or extended, its documents will be stored twice: --drop starts again",
                   shown, (unsigned long long)size, (unsigned long long)entry->size);
}

static bool start(const sl_job *job, const sl_destination *destination, const void *context,
                  uint32_t part, sl_registry_entry *entries, size_t count, sl_error *error) {
    (void)job, (void)context, (void)part;
    return sl_registry_start(destination->registry, entries, count, error);
}

/* Two loaders may start at once with copies of a file. Each looks for copies after it has registered
 * its own, so that at least one of them finds the other's, and is refused. */
static bool refuse_started_copies(const sl_job *job, const sl_destination *destination,
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
    if (!any || job->resumed || destination->target_gone || job->config->another_pipe ||
        job->config->format_options.mode != SL_MODE_INSERT)
        return true;
    sl_registry_unfinished first;
    if (!sl_registry_find_unfinished(destination->registry, SL_PIPE_FINGERPRINT, entries, count,
                                     &first, error))
        return false;
    if (first.count == 0)
        return true;
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s.%s holds the documents of %zu pipe%s whose load was not completed (the "
                        "first began at %s on %s). If this is the same data again, it would be "
                        "stored twice. Complete that load there with its command and --resume "
                        "--work-dir %s, or start again with --drop. If this is other data, or if "
                        "that load is still running, give --another-pipe",
                        destination->target.database, destination->target.collection, first.count,
                        first.count == 1 ? "" : "s", first.when[0] ? first.when : "an unknown time",
                        first.host[0] ? first.host : "an unknown host",
                        first.work_directory[0] ? first.work_directory : "DIR");
}

bool sl_sources_number_by_registry(sl_job *job, sl_destination *destination, const char *folder,
                                   sl_error *error) {
    size_t count;
    char host[256] = "", work_directory[PATH_MAX] = "";
    gethostname(host, sizeof host - 1);
    if (!realpath(folder, work_directory))
        snprintf(work_directory, sizeof work_directory, "%s", folder);
    /* The registry lists sources whose documents are stored. */
    if (job->config->format_options.mode == SL_MODE_DELETE) {
        destination->numbered = true;
        return sl_sources_number_offline(job, error);
    }
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok =
        entries && sl_parts_each(job, destination, may_be_loaded, NULL, entries, count, error) &&
        refuse_beside_pipe(job, destination, entries, count, host, work_directory, error) &&
        (job->keys || /* documents with these keys are not stored twice */
         sl_registry_namesakes(destination->registry, entries, count, warn_of_namesake, error));
    destination->numbered = ok;
    ok = ok && sl_parts_each(job, destination, start, NULL, entries, count, error) &&
         refuse_started_copies(job, destination, entries, count, error);
    if (ok)
        take_numbers(job, entries);
    free(entries);
    return ok;
}

bool sl_sources_number_as_next(sl_job *job, const sl_destination *destination, sl_error *refusal,
                               sl_error *error) {
    size_t count;
    uint32_t last;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              sl_registry_last(destination->registry, &last, error);
    if (ok && !job->config->again && !refusal->code)
        refuse_loaded(job, destination, entries, count, refusal);
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

/* A source that was never loaded is an error; one whose load was not finished is a warning. */
static bool refuse_unknown(const sl_destination *destination, const sl_registry_entry *entries,
                           size_t count, sl_error *error) {
    char unknown[800] = "";
    size_t used = 0, news = 0;
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
                   SL_LINES,
               news, news == 1 ? "has" : "have", destination->target.database,
               destination->target.collection, unknown, news > 5 ? "\n  ..." : "");
}

bool sl_sources_number_as_loaded(sl_job *job, const sl_destination *destination, sl_error *error) {
    size_t count;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    bool ok = entries && sl_registry_look_up(destination->registry, entries, count, error) &&
              refuse_unknown(destination, entries, count, error);
    if (ok)
        take_numbers(job, entries);
    free(entries);
    return ok;
}

bool sl_sources_agree_on_layout(sl_job *job, const sl_destination *destination, sl_error *error) {
    size_t count, next = 0;
    if (!job->own_shards)
        return true;
    sl_registry_entry *entries = sl_sources_entries(job, &count, error);
    for (size_t i = 0; entries && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            sl_parts_propose(job, destination, i, &entries[next++]);
    }
    bool ok = entries && sl_registry_agree_layout(destination->registry, entries, count, error);
    next = 0;
    for (size_t i = 0; ok && i < sl_source_set_count(job->set); i++) {
        sl_job_source *source = &job->sources[i];
        if (source->skipped)
            continue;
        ok = sl_parts_layout_holds(job, destination, &entries[next], error);
        source->pieces = entries[next].layout.pieces;
        source->leading = entries[next++].layout.leading;
    }
    free(entries);
    return ok;
}
