/* SPDX-License-Identifier: Apache-2.0 */
/* One load, shared by several loaders (--part K/N), each with a work directory of its own.
 *
 * All of them are given the same sources. Which block of a source belongs to which part is a matter of
 * arithmetic (sl_source_set_part), so they need not speak to each other; ids, ranges and placement are
 * the same as if one of them did everything. What they have in common is the registry: it gives a
 * source the same number whoever asks, and remembers which parts of it are loaded. The one that
 * finishes last finds that no part is missing, counts the documents of all, and only then the source
 * is loaded. */
#include "engine.h"

#include <string.h>

#include <shardload/hash.h>
#include <shardload/log.h>
#include <shardload/text.h>

bool sl_parts_begin(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (config->parts == 0)
        return true;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_source *source = sl_source_set_at(load->set, i);
        if (source->kind == SL_SOURCE_PIPE)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s: a pipe cannot be shared by several loaders; --part is for "
                                "files", source->shown);
    }
    /* By who a source is, not by its place among those of this command: another loader may have been
     * given them in another order, or find one file more in a folder. */
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const char *who = load->sources[i].fingerprint;
        sl_source_set_spread(load->set, i, sl_hash((const uint8_t *)who, strlen(who)));
    }
    sl_source_set_part(load->set, config->part, config->parts);
    return true;
}

bool sl_parts_register(sl_load *load, sl_error *error) {
    (void)error;
    if (load->config->parts > 0)
        sl_registry_set_part(load->registry, load->config->part, load->config->parts,
                             load->config->again && !load->resumed);
    return true;
}

/* What the cluster holds of a source that is complete. */
static bool count_source(sl_load *load, size_t index, sl_error *error) {
    const sl_load_source *source = &load->sources[index];
    uint64_t found;
    if (!sl_count_range(load->connection, &load->target, sl_stripe_first_id(source->number, 0),
                        sl_stripe_first_id(source->number, SL_STRIPES), &found, error))
        return false;
    return found >= source->parts_accepted ||
           sl_error_set(error, SL_EXIT_VERIFICATION,
                        "%s: its %u parts have loaded %llu documents, of which %llu are there; has "
                        "something else removed some?",
                        sl_source_set_at(load->set, index)->shown, load->config->parts,
                        (unsigned long long)source->parts_accepted, (unsigned long long)found);
}

bool sl_parts_end(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    size_t whole = 0;
    uint64_t documents = 0;
    if (config->parts == 0)
        return true;
    for (size_t i = 0; i < sl_source_set_count(load->set); i++) {
        const sl_load_source *source = &load->sources[i];
        if (source->skipped || source->parts_loaded < config->parts)
            continue;
        if (config->verify && !count_source(load, i, error))
            return false;
        whole++;
        documents += source->parts_accepted;
    }
    if (!sl_sources_mark_whole(load, error))
        return false;
    char shown[SL_HUMAN_ROOM];
    if (whole == load->active)
        sl_log_info("all %u parts are loaded: %s documents together", config->parts,
                    sl_human_count(documents, shown));
    else
        sl_log_info("part %u of %u is loaded; %zu of %zu sources wait for other parts",
                    config->part, config->parts, load->active - whole, load->active);
    return true;
}
