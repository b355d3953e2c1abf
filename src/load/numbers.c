/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a load's sources: in order without a cluster, else from the registry beside the
 * target, which also knows what has been loaded before. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

bool sl_sources_number_offline(sl_load *load, sl_error *error) {
    uint32_t number = 0;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        if (!load->sources[i].skipped)
            load->sources[i].number = ++number;
    }
    return number <= SL_SOURCE_NUMBER_MAX ||
           sl_error_set(error, SL_EXIT_SOURCE, "more than %u sources", SL_SOURCE_NUMBER_MAX);
}

/* What the registry is asked about: the sources that are not skipped, in order. To be freed. */
static sl_registry_entry *entries_of(const sl_load *load, size_t *count, sl_error *error) {
    size_t sources = sl_source_set_count(load->set);
    sl_registry_entry *entries = calloc(sources, sizeof *entries);
    *count = 0;
    for (size_t i = 0; entries && i < sources; i++) {
        const sl_load_source *source = &load->sources[i];
        const sl_source *facts = sl_source_set_at(load->set, i);
        if (!source->skipped)
            entries[(*count)++] = (sl_registry_entry){.fingerprint = source->fingerprint,
                                                      .name = facts->path,
                                                      .size = facts->stored_bytes,
                                                      .documents = atomic_load(&source->accepted)};
    }
    if (!entries)
        sl_error_memory(error, "numbering the sources");
    return entries;
}

static bool refuse_loaded(const sl_load *load, const sl_registry_entry *entries, size_t count,
                          sl_error *error) {
    char refused[800] = "";
    size_t used = 0, loaded = 0;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state == SL_SOURCE_LOADED && loaded++ < 5 && used < sizeof refused)
            used += (size_t)snprintf(refused + used, sizeof refused - used, "\n  %s, on %s",
                                     entries[i].name, entries[i].when);
    }
    return loaded == 0 ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%zu of the sources %s been loaded into %s.%s before:%s%s\n"
                        "--again sends them once more (documents that are there stay as they "
                        "are); --drop starts anew",
                        loaded, loaded == 1 ? "has" : "have", load->target.database,
                        load->target.collection, refused, loaded > 5 ? "\n  ..." : "");
}

bool sl_sources_number_by_registry(sl_load *load, sl_error *error) {
    size_t count, next = 0;
    sl_registry_entry *entries = entries_of(load, &count, error);
    bool ok = entries && sl_registry_look_up(load->registry, entries, count, error) &&
              (load->config->again || load->resumed || refuse_loaded(load, entries, count, error)) &&
              sl_registry_start(load->registry, entries, count, error);
    for (size_t i = 0; ok && i < sl_source_set_count(load->set); i++) {
        if (!load->sources[i].skipped)
            load->sources[i].number = entries[next++].number;
    }
    free(entries);
    return ok;
}

bool sl_sources_mark_loaded(sl_load *load, sl_error *error) {
    size_t count;
    sl_registry_entry *entries = entries_of(load, &count, error);
    bool ok = entries && sl_registry_finish(load->registry, entries, count, error);
    free(entries);
    return ok;
}
